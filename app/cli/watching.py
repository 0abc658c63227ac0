"""`headroom check --watch`: check again at every change."""

import argparse

from app.authoring.commands import watch_command
from app.cli.checking import folder_of
from app.cli.stop import Stop


def watch(given: argparse.Namespace) -> int:
    """Print the problems until somebody says stop."""
    folder = folder_of(given)
    if given.fix or given.explain or given.format != "text":
        raise Stop("--watch prints text and writes nothing; leave the others out.")
    return watch_command(folder)
