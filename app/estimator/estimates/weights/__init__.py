"""The estimate `weights`: what a model takes in each number format."""
