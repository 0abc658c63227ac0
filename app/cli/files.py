"""`headroom new`, `coverage`, `import`, `export`: files of the course and others."""

from collections.abc import Sequence
from pathlib import Path

from app.authoring.commands import coverage_command, new_command
from app.cli.course import pop_course_option, split_course_option
from app.cli.settings import read_settings
from app.content.live.courses import folders
from app.exchange.commands import exchange_command


def new(words: Sequence[str]) -> int:
    """Begin a topic, a question or a mock exam."""
    if words[:1] == ["course"]:
        return new_command(words, read_settings().content)
    rest, folder = split_course_option(words, ("--content", "--dir"))
    return new_command(rest, folder, _name_of(folder) or "")


def exchange(words: Sequence[str]) -> int:
    """Take questions in from another format, or write them for others."""
    rest, folder = split_course_option(words, ("--content",))
    return exchange_command(rest, folder, read_settings().database, _name_of(folder))


def _name_of(folder: Path) -> str | None:
    """The name under which a server has the course; None for a folder it has not."""
    courses = folders(read_settings().content)
    return next((name for name, place in courses.items() if place == folder), None)


def coverage(words: Sequence[str]) -> int:
    """Count what the course has for each objective."""
    rest, name = pop_course_option(words)
    given = name or not any(not word.startswith("-") for word in rest)
    _, folder = split_course_option(words, ()) if given else (rest, read_settings().content)
    return coverage_command(rest, folder)
