"""Which course a command means, where a server has several."""

from collections.abc import Sequence
from pathlib import Path

from app.cli.settings import read_settings
from app.cli.stop import CommandError
from app.config import Settings
from app.content.live.courses import ALONE, folders

_OPTION = "--course"


def course_folder(settings: Settings, name: str) -> Path:
    """The folder of the course `name`; Stop where it is not clear which is meant."""
    courses = folders(settings.content)
    if ALONE in courses:
        if name:
            raise CommandError(f"{settings.content} is one course alone; leave {_OPTION} out.")
        return courses[ALONE]
    if not name and len(courses) == 1:
        return next(iter(courses.values()))
    if name not in courses:
        meant = f"there is no course “{name}”" if name else "there are several courses"
        raise CommandError(f"{meant}; name one with {_OPTION}: {', '.join(courses)}.")
    return courses[name]


def pop_course_option(words: Sequence[str]) -> tuple[list[str], str]:
    """The words without `--course NAME`, and the name; empty where none was given."""
    rest, name = list(words), ""
    for place, word in enumerate(rest):
        option, equals, value = word.partition("=")
        if option != _OPTION:
            continue
        if not equals:
            value = rest[place + 1] if place + 1 < len(rest) else ""
        if not value:
            raise CommandError(f"{_OPTION} needs the name of a course.")
        name = value
        del rest[place : place + (1 if equals else 2)]
        break
    return rest, name


def split_course_option(words: Sequence[str], naming: Sequence[str]) -> tuple[list[str], Path]:
    """The words without the course, and its folder.

    Where one of the options `naming` or a question for help is among the words, the
    folder is that of the settings: another was named, or none is needed.
    """
    settings = read_settings()
    rest, name = pop_course_option(words)
    asked = {word.partition("=")[0] for word in rest}
    if not name and asked & {*naming, "-h", "--help"}:
        return rest, settings.content
    return rest, course_folder(settings, name)
