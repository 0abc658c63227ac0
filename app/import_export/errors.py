"""Errors of files, apart from `items`: a process that reads a workbook imports little."""


class UnusableFileError(ValueError):
    """The whole file cannot be read; the message says why."""
