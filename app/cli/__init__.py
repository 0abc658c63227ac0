"""The `headroom` command and its argument parser.

A command's modules are imported when it runs, so that other commands start faster.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from app.cli.launcher import CommandError, load_attribute

# Commands that parse their own arguments: help text and function.
_COMMANDS = {
    "estimate": (
        "size a model: estimate --list names all",
        "app.cli.estimate:estimate_command",
    ),
    "accuracy": (
        "say how near the estimates come to published values",
        "app.cli.estimate:accuracy_command",
    ),
    "catalogue": (
        "list the hardware, its values, and what is unknown of it",
        "app.cli.estimate:catalogue_command",
    ),
    "new": ("begin a topic, a question or a mock exam", "app.cli.content:new"),
    "coverage": (
        "count what the course has for each objective",
        "app.cli.content:coverage",
    ),
    "regrade": (
        "grade the answers to a question again, after its key was mended",
        "app.cli.people:regrade",
    ),
    "import": ("take questions in from another format", "app.cli.content:exchange"),
    "export": ("write questions or attempts for others", "app.cli.content:exchange"),
    "backup": (
        "write database and key to one file, while the server runs",
        "app.cli.database:upkeep",
    ),
    "restore": (
        "put a backup in the place of what is there, which is kept",
        "app.cli.database:upkeep",
    ),
    "doctor": ("check the installation and say what to do", "app.cli.database:upkeep"),
    "author": (
        "let a browser onto the author's bench: author link, list, revoke, log",
        "app.cli.people:author",
    ),
    "learners": (
        "list learners; learners link NAME lets one back in",
        "app.cli.people:learners",
    ),
}
_INTERRUPTED = 130
# their function runs several commands and needs the name
_BY_NAME = {"import", "export", "backup", "restore", "doctor"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. Returns 0, 1 (problems found), 2 (failed) or 130 (Ctrl-C)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if words[:1] and words[0] in _COMMANDS:
            rest = words if words[0] in _BY_NAME else words[1:]
            return _run_action(_COMMANDS[words[0]][1], rest)
        given = _build_parser().parse_args(words)
        return _run_action(given.action, given)
    except CommandError as stop:
        print(f"headroom: {stop}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:  # no message needed; shells expect 128 + SIGINT
        return _INTERRUPTED
    except BrokenPipeError:  # the reader ended, e.g. `headroom check | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run_action(action: str, given: Any) -> int:
    """Call the function named `module:function`."""
    run: Callable[[Any], int] = load_attribute(action)
    return run(given)


_BY_ENVIRONMENT = (
    "What can be set is set in the environment, for example "
    "HEADROOM_PORT=8080 headroom serve; headroom settings lists everything."
)


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="headroom", description="Study for an exam, with live calculators."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    serve = commands.add_parser(
        "serve",
        help="migrate, check the content and serve",
        epilog=_BY_ENVIRONMENT,
    )
    serve.set_defaults(action="app.cli.launcher:serve")
    _add_check(commands.add_parser("check", help="name everything wrong in the content"))
    for name, (words, _) in _COMMANDS.items():
        commands.add_parser(name, help=words)
    health = commands.add_parser("health", help="ask the running server how it is")
    health.set_defaults(action="app.cli.server:health")
    listing = commands.add_parser("settings", help="list every setting")
    listing.set_defaults(action="app.cli.database:list_settings")
    database = commands.add_parser("db", help="look after the database")
    database.add_argument("what", choices=("upgrade", "vacuum"))
    database.set_defaults(action="app.cli.database:run_database_command")
    return parser


def _add_check(check: argparse.ArgumentParser) -> None:
    check.add_argument("folder", nargs="?", type=Path, metavar="DIR")
    check.add_argument("--course", default="", metavar="NAME", help="one of several")
    check.add_argument("--format", choices=("text", "json", "github"), default="text")
    check.add_argument(
        "--fix", action="store_true", help="write missing ids, ids.lock, stale figures"
    )
    check.add_argument("--dry-run", action="store_true", help="show what --fix would write")
    check.add_argument(
        "--accept",
        action="append",
        default=[],
        metavar="ID",
        help="with --fix: this item is the same as before, whatever it says now",
    )
    check.add_argument("--verbose", action="store_true", help="show where Headroom itself failed")
    check.add_argument("--explain", metavar="CODE", help="say what a code means and what mends it")
    check.add_argument(
        "--watch",
        dest="action",
        action="store_const",
        const="app.cli.content:watch_content",
        default="app.cli.content:check_content",
        help="check again at every change",
    )
