"""Import and export of questions and cards in the formats of other programs."""


class UnusableFileError(ValueError):
    """The whole file cannot be read; the message says why."""
