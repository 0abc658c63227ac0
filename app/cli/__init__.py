"""The `headroom` command: one argument parser for all commands.

A command's modules are imported when it runs, so that the others start faster. Most of the time
that a server takes to start is imports, so only this module is imported before `serve` runs.
"""

import argparse
import contextlib
import gc
import importlib
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

_INTERRUPTED_EXIT_CODE = 130
LOCAL_DATA = ".headroom"
"""The data folder inside a course that is served as `headroom serve DIR`."""
_HELP_EPILOG = (
    "What can be set is set in the environment, for example "
    "HEADROOM_PORT=8080 headroom serve; headroom settings lists everything."
)
# Written out, because importing what they name takes longer than most commands.
IMPORT_FORMATS = ("aiken", "csv", "gift", "json", "moodle", "qti", "spreadsheet")
EXPORT_FORMATS = (
    *("aiken", "apkg", "attempts-csv", "attempts-json", "csv"),
    *("gift", "json", "moodle", "qti", "qti21", "xlsx"),
)
QUESTION_TYPES = (
    *("single", "multiple", "true-false", "numeric", "short", "order"),
    *("match", "cloze", "design", "place", "console", "computed", "card"),
)
PART_KINDS = ("accelerator", "system", "link", "adapter", "dpu", "switch")


class CommandError(Exception):
    """The command failed. The message says why and what to do."""


def align_columns(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as lines, with each column as wide as its longest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


@contextlib.contextmanager
def exempt_imports_from_garbage_collection() -> Iterator[None]:
    """Exclude imports, which stay anyway, from garbage collection: a seventh of the time less."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if running:
            gc.enable()


def create_server_app() -> Any:
    """Create the app of a server process. A stop signal during the import exits at once."""
    with exit_at_once_on_stop_signal():
        with exempt_imports_from_garbage_collection():
            from app import main
        return main.serve_app()


@contextlib.contextmanager
def exit_at_once_on_stop_signal() -> Iterator[None]:
    """Exit with status 0 at a stop signal, like a server that is stopped later.

    By default, SIGINT would print a traceback, and SIGTERM would do nothing if this is
    the first process of a container.
    """

    def exit_at_once(_number: int, _frame: FrameType | None) -> None:
        os._exit(0)

    before = {
        number: signal.signal(number, exit_at_once) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, action in before.items():
            signal.signal(number, action)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. Returns 0, 1 (problems found), 2 (failed) or 130 (Ctrl-C)."""
    try:
        parser = build_parser()
        options, unknown = parser.parse_known_args(arguments)
        if unknown:
            parser.error(
                f"unrecognized arguments: {' '.join(unknown)}; "
                f"headroom {options.command} --help names what it takes."
            )
        status = _run_server(options) if options.command == "serve" else _run_command(options)
    except CommandError as error:
        print(f"headroom: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:  # no message needed; shells expect 128 + SIGINT
        return _INTERRUPTED_EXIT_CODE
    except BrokenPipeError:  # the reader ended, e.g. `headroom check | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status


def _run_server(options: argparse.Namespace) -> int:
    with exit_at_once_on_stop_signal():
        with exempt_imports_from_garbage_collection():
            from app.cli import server
        return server.run_serve_command(options)


def _run_command(options: argparse.Namespace) -> int:
    _default_to_data_in_current_folder()
    with exempt_imports_from_garbage_collection():
        module = importlib.import_module(f"app.cli.{options.module}")
    status: int = module.COMMANDS[options.command](options)
    return status


def _default_to_data_in_current_folder() -> None:
    """In a folder that was served as `headroom serve .`, use its course and its data.

    Without it `headroom author link` would look for another server's database. Folders that the
    environment names come first.
    """
    if Path(LOCAL_DATA).is_dir() and not os.environ.get("HEADROOM_DATA"):
        os.environ["HEADROOM_DATA"] = LOCAL_DATA
        os.environ["HEADROOM_CONTENT"] = os.environ.get("HEADROOM_CONTENT") or "."


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands. `module` of its result is the module with the command."""
    parser = argparse.ArgumentParser(
        prog="headroom", description="Study for an exam, with live calculators."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, module: str, text: str, **settings: Any) -> argparse.ArgumentParser:
        command: argparse.ArgumentParser = commands.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.", **settings
        )
        command.set_defaults(module=module)
        return command

    serve = add(
        "serve", "server", "migrate the database, load the course and serve", epilog=_HELP_EPILOG
    )
    serve.add_argument(
        *("folder",),
        nargs="?",
        type=Path,
        metavar="DIR",
        help="a course or a folder of courses, instead of HEADROOM_CONTENT; without "
        "HEADROOM_DATA, what is learned is stored in its folder .headroom",
    )
    serve.add_argument(
        "--host", metavar="ADDRESS", help="address to listen on, instead of HEADROOM_HOST"
    )
    serve.add_argument("--port", metavar="N", help="port to listen on, instead of HEADROOM_PORT")
    _add_check_options(add("check", "content", "report every problem in the content"))
    # No argument is an option to argparse: each estimate parses its own inputs.
    verbatim = {"prefix_chars": "\0", "add_help": False}
    for name, text in (
        ("estimate", "size a model or a cluster; estimate --list names all estimates"),
        ("accuracy", "show how close the estimates are to published values"),
    ):
        add(name, "estimator", text, **verbatim).add_argument("arguments", nargs="*")
    _add_catalogue_options(add("catalogue", "estimator", "list the hardware with its values"))
    _add_new_command_options(add("new", "content", "write a commented starting point"))
    coverage = add("coverage", "content", "count what the course has for each objective")
    _add_folder_and_course_options(coverage)
    _add_regrade_options(
        add("regrade", "people", "grade answers again after the key of a question changed")
    )
    _add_import_options(add("import", "import_export", "import questions into a topic"))
    _add_export_options(add("export", "import_export", "export questions, cards or attempts"))
    backup = add("backup", "database", "write database and key to one file, while the server runs")
    backup.add_argument("file", type=Path, metavar="FILE")
    backup.add_argument("--force", action="store_true", help="replace FILE if it exists")
    restore = add(
        "restore", "database", "replace the data by a backup, and keep what was there beside it"
    )
    restore.add_argument("file", type=Path, metavar="FILE")
    add("doctor", "database", "check the installation and say what to do")
    _add_author_actions(add("author", "people", "decide which browsers may use the author pages"))
    _add_learners_actions(add("learners", "people", "list learners, or let one back in"))
    add("health", "database", "show the readiness checks of the running server")
    add("settings", "database", "list every setting")
    database = add("db", "database", "upgrade the database, or rewrite its file")
    database.add_argument("action", choices=("upgrade", "vacuum"))
    return parser


def _add_course_option(command: argparse.ArgumentParser) -> None:
    command.add_argument("--course", default="", metavar="NAME", help="one of several courses")


def _add_folder_and_course_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("folder", nargs="?", type=Path, metavar="DIR")
    _add_course_option(command)


def _add_check_options(check: argparse.ArgumentParser) -> None:
    _add_folder_and_course_options(check)
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
        help="with --fix: this item is the same as before, even if all of its text changed",
    )
    check.add_argument("--verbose", action="store_true", help="show where Headroom itself failed")
    check.add_argument(
        "--explain",
        metavar="CODE",
        nargs="?",
        const="all",
        help="explain a code and how to fix it; without one, list all codes",
    )
    check.add_argument("--watch", action="store_true", help="check again at every change")


def _add_catalogue_options(catalogue: argparse.ArgumentParser) -> None:
    catalogue.add_argument("part", nargs="*", help="ids; all values of these parts")
    catalogue.add_argument("--kind", choices=PART_KINDS)
    catalogue.add_argument("--vendor", help="the maker, or the beginning of its name")
    catalogue.add_argument(
        "--missing", action="store_true", help="show which values are unknown, and why"
    )
    catalogue.add_argument("--json", action="store_true")


def _add_new_command_options(new: argparse.ArgumentParser) -> None:
    folder = argparse.ArgumentParser(add_help=False)
    folder.add_argument("--content", "--dir", type=Path, metavar="DIR", help="the course")
    _add_course_option(folder)
    kinds = new.add_subparsers(dest="kind", required=True, metavar="course|topic|question|exam")
    course = kinds.add_parser("course", help="a course beside others")
    course.add_argument("folder", type=Path, help="its folder, whose name is used in addresses")
    course.add_argument("--title", default="", help="by default made of the folder's name")
    course.add_argument("--exam", default="", help="the short name of the exam")
    course.add_argument(
        *("--content", "--dir"), type=Path, metavar="DIR", help="the folder to put it in"
    )
    topic = kinds.add_parser("topic", parents=[folder], help="a page, questions and cards")
    topic.add_argument("slug")
    topic.add_argument("--title", required=True)
    topic.add_argument("--objective", default="", help="a number of syllabus.toml")
    question = kinds.add_parser("question", parents=[folder], help="a question or card of a topic")
    question.add_argument("--topic", required=True, metavar="SLUG")
    question.add_argument("--type", choices=QUESTION_TYPES, default="single")
    question.add_argument("--id", default="", help="by default made of topic and type")
    exam = kinds.add_parser("exam", parents=[folder], help="a mock exam")
    exam.add_argument("slug")
    exam.add_argument("--title", default="")
    exam.add_argument("--questions", type=_make_whole_number_parser(500), default=0)
    exam.add_argument("--minutes", type=_make_whole_number_parser(500), default=0)


def _make_whole_number_parser(limit: int) -> Any:
    """Return a parser of whole numbers from 1."""

    def parse(text: str) -> int:
        if text.isascii() and text.isdigit() and len(text) <= len(str(limit)):
            number = int(text)
            if 1 <= number <= limit:
                return number
        raise argparse.ArgumentTypeError(f"“{text}” is not a number from 1 to {limit}")

    return parse


def _add_regrade_options(regrade: argparse.ArgumentParser) -> None:
    regrade.description = (
        "Show what the corrected key of a question changes for the answers given before, "
        "and grade them again with --yes. The answers themselves stay."
    )
    regrade.add_argument("question", metavar="QUESTION", help="its id")
    _add_course_option(regrade)
    regrade.add_argument("--yes", action="store_true", help="grade them again")
    regrade.add_argument(
        "--reworded",
        action="store_true",
        help="also answers to another wording, if it means the same",
    )
    regrade.add_argument(
        "--policy",
        choices=("key", "both", "never-lower", "drop", "undo"),
        default="key",
        help="which score counts: that of the current key; of it or an earlier key, whichever is "
        "better; never less than now; full marks for everyone; or the current key again",
    )
    regrade.add_argument("--json", action="store_true")


def _add_import_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("format", choices=IMPORT_FORMATS)
    command.add_argument("file", type=Path, metavar="FILE")
    command.add_argument(
        "--topic", default="", metavar="SLUG", help="left out: the topic that each item names"
    )
    command.add_argument("--dry-run", action="store_true", help="report only, and write nothing")
    command.add_argument("--content", type=Path, metavar="DIR", help="the course")
    _add_course_option(command)


def _add_export_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("format", choices=EXPORT_FORMATS)
    command.add_argument("file", type=Path, metavar="FILE", help="- for standard output")
    command.add_argument("--topic", default="", metavar="SLUG", help="one topic only")
    command.add_argument(
        "--seed", type=int, default=0, help="selects the numbers of computed questions"
    )
    command.add_argument("--content", type=Path, metavar="DIR", help="the course")
    _add_course_option(command)


def _add_author_actions(author: argparse.ArgumentParser) -> None:
    actions = author.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("link", help="print a link that lets one browser in")
    actions.add_parser("list", help="list the signed-in browsers")
    revoke = actions.add_parser("revoke", help="sign a browser out, or all of them")
    revoke.add_argument("session", metavar="ID|all", type=_parse_session_id_or_all)
    log = actions.add_parser("log", help="print what authors did")
    log.add_argument("--last", type=_make_whole_number_parser(999_999), default=200, metavar="N")


def _parse_session_id_or_all(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"“{text}” is neither a number nor “all”")
    return int(text)


def _add_learners_actions(learners: argparse.ArgumentParser) -> None:
    actions = learners.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("list", help="list every learner, without any secret")
    link = actions.add_parser("link", help="print a code that lets a browser back in")
    link.add_argument("learner", metavar="NAME|ID")
    adopt = actions.add_parser(
        "adopt", help="move what learners did while the server had one course into a course"
    )
    adopt.add_argument("course", metavar="COURSE")
