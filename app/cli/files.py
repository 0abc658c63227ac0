"""`headroom new`, `coverage`, `import`, `export`: files of the course and others."""

from collections.abc import Sequence

from app.authoring.commands import coverage_command, new_command
from app.cli.settings import read_settings
from app.exchange.commands import exchange_command


def new(words: Sequence[str]) -> int:
    """Begin a topic, a question or a mock exam."""
    return new_command(words, read_settings().content)


def exchange(words: Sequence[str]) -> int:
    """Take questions in from another format, or write them for others."""
    settings = read_settings()
    return exchange_command(list(words), settings.content, settings.database)


def coverage(words: Sequence[str]) -> int:
    """Count what the course has for each objective."""
    return coverage_command(words, read_settings().content)
