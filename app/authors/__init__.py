"""Authors: who may see the bench, and a log of what they do there."""
