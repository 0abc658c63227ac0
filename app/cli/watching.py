"""`headroom check --watch`: check again at every change."""

import argparse

from app.authoring.commands import watch_command
from app.cli.checking import folder_of
from app.cli.stop import CommandError
from app.content.live.courses import ALONE, folders


def watch(given: argparse.Namespace) -> int:
    """Print the problems until somebody says stop."""
    folder = folder_of(given)
    if given.fix or given.explain or given.format != "text":
        raise CommandError("--watch prints text and writes nothing; leave the others out.")
    courses = folders(folder)
    if ALONE not in courses:
        raise CommandError(f"--watch looks at one course; name one of {', '.join(courses)}.")
    return watch_command(folder)
