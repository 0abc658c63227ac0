"""`headroom check`: name everything wrong in the content."""

import argparse
import gc
from pathlib import Path

from app.cli.course import course_folder
from app.cli.settings import read_settings
from app.cli.stop import Stop
from app.content.check import check, write


def check_content(given: argparse.Namespace) -> int:
    """Print the problems, after what `--fix` mends; 1 where one is an error."""
    problems = check(folder_of(given), fix=given.fix)
    gc.freeze()  # the command ends: nothing is left that should be looked for
    print(write(problems, given.format))
    return int(any(p.severity == "error" for p in problems))


def folder_of(given: argparse.Namespace) -> Path:
    """The folder that was named, or that of the settings."""
    if given.folder and given.course:
        raise Stop("name a folder or a course, not both.")
    folder: Path = given.folder or course_folder(read_settings(), given.course)
    if not folder.is_dir():
        raise Stop(f"{folder} is not a folder; name the folder that holds the course.")
    return folder
