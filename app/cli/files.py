"""`headroom new`, `import` and `export`: files of the course and of others."""

from collections.abc import Sequence

from app.authoring.commands import new_command
from app.cli.settings import read_settings
from app.exchange.commands import exchange_command


def new(words: Sequence[str]) -> int:
    """Begin a topic, a question or a mock exam."""
    return new_command(words, read_settings().content)


def exchange(words: Sequence[str]) -> int:
    """Take questions in from another format, or write them for others."""
    settings = read_settings()
    return exchange_command(list(words), settings.content, settings.database)
