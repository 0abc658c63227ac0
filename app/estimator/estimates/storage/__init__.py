"""The estimate `storage`: data, checkpoints, and how often to save."""
