"""`headroom new`, `coverage`, `import`, `export`: files of the course and others."""

from collections.abc import Sequence

from app.authoring.commands import coverage_command, new_command
from app.cli.course import chosen, taken_out
from app.cli.settings import read_settings
from app.content.live.courses import folders
from app.exchange.commands import exchange_command


def new(words: Sequence[str]) -> int:
    """Begin a topic, a question or a mock exam."""
    rest, folder = chosen(words, ("--content", "--dir"))
    return new_command(rest, folder)


def exchange(words: Sequence[str]) -> int:
    """Take questions in from another format, or write them for others."""
    rest, folder = chosen(words, ("--content",))
    settings = read_settings()
    courses = folders(settings.content)
    name = next((n for n, place in courses.items() if place == folder), None)
    return exchange_command(rest, folder, settings.database, name)


def coverage(words: Sequence[str]) -> int:
    """Count what the course has for each objective."""
    rest, name = taken_out(words)
    given = name or not any(not word.startswith("-") for word in rest)
    _, folder = chosen(words, ()) if given else (rest, read_settings().content)
    return coverage_command(rest, folder)
