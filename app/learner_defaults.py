"""What a learner's settings are before they are changed."""

DEFAULT_RETENTION = 0.9
"""The probability of recall at which a card is due again."""
DEFAULT_MINUTES_A_DAY = 30
