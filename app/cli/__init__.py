"""Front door 2: the `headroom` command."""

import argparse
import contextlib
import datetime as dt
import gc
import json
import os
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # importing these takes half a second that `check` has not
    from sqlalchemy import Engine

    from app.config import Settings
    from app.content.library import Library
    from app.upkeep.installation import Installation


class Stop(Exception):  # noqa: N818 - ends the command, with a sentence
    """The command cannot go on; the sentence says what to do about it."""


# Commands whose options are known to their rooms: the registry, a list of formats.
_ELSEWHERE = {
    "estimate": "size a model: estimate --list names all",
    "new": "begin a topic, a question or a mock exam",
    "import": "take questions in from another format",
    "export": "write questions or attempts for others",
    "backup": "write database and key to one file, while the server runs",
    "restore": "put a backup in the place of what is there, which is kept",
    "doctor": "check the installation and say what to do",
    "author": "let a browser onto the author's bench: author link, list, revoke, log",
    "learners": "list learners; learners link NAME lets one back in",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0, 1 (found wrong) or 2 (cannot)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if words[:1] and words[0] in _ELSEWHERE:
            return _elsewhere(words)
        given = _parser().parse_args(words)
        action: Callable[[argparse.Namespace], int] = given.action
        return action(given)
    except Stop as stop:
        print(f"headroom: {stop}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader went away, e.g. `headroom check | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="headroom", description="Study for an exam, with live calculators."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="migrate, check the content and serve")
    serve.set_defaults(action=_serve)
    _add_check(
        commands.add_parser("check", help="name everything wrong in the content")
    )
    for name, words in _ELSEWHERE.items():
        commands.add_parser(name, help=words)
    accuracy = commands.add_parser(
        "accuracy", help="answer reference cases and print how near the answers are"
    )
    accuracy.add_argument("files", nargs="*", type=Path, metavar="FILE")
    accuracy.add_argument("--verbose", action="store_true", help="print each case")
    accuracy.add_argument("--json", action="store_true")
    accuracy.set_defaults(action=_accuracy)
    health = commands.add_parser("health", help="ask the running server how it is")
    health.set_defaults(action=_health)
    listing = commands.add_parser("settings", help="list every setting")
    listing.set_defaults(action=_list_settings)
    database = commands.add_parser("db", help="look after the database")
    database.add_argument("what", choices=("upgrade",))
    database.set_defaults(action=_upgrade)
    return parser


def _add_check(check: argparse.ArgumentParser) -> None:
    check.add_argument("folder", nargs="?", type=Path, metavar="DIR")
    check.add_argument("--format", choices=("text", "json", "github"), default="text")
    check.add_argument(
        "--fix", action="store_true", help="write missing ids, ids.lock, stale figures"
    )
    check.add_argument(
        "--watch", action="store_true", help="check again at every change"
    )
    check.set_defaults(action=_check)


def _settings() -> "Settings":
    from pydantic import ValidationError  # noqa: PLC0415 - slow to import

    from app.config import Settings, unknown  # noqa: PLC0415 - slow to import

    for sentence in unknown():
        raise Stop(sentence)
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = f"HEADROOM_{str(first['loc'][0]).upper()}"
        raise Stop(
            f"{name} is “{first['input']}”, which cannot be used: {first['msg']}."
        ) from None


def _list_settings(_given: argparse.Namespace) -> int:
    from app.config import rows  # noqa: PLC0415 - slow to import
    from app.db.database_url import shown  # noqa: PLC0415 - slow to import

    for variable, value, default, meaning in rows(_settings()):
        if variable == "HEADROOM_DATABASE_URL" and value:
            value = shown(value)  # noqa: PLW2901 - as it may be seen
        print(f"{variable}\n    value    {value}\n    default  {default or '(empty)'}")
        print(f"    meaning  {meaning}")
    return 0


def _accuracy(given: argparse.Namespace) -> int:
    from app.estimator.accuracy.report import (  # noqa: PLC0415 - of this command alone
        as_json,
        as_text,
        own_cases,
        report,
    )

    try:
        found = report(given.files or own_cases())
    except (OSError, ValueError, KeyError) as error:
        raise Stop(f"the reference cases cannot be read: {error}.") from None
    if given.json:
        print(json.dumps(as_json(found)))
    else:
        print(as_text(found, verbose=given.verbose))
    return 0


def _health(_given: argparse.Namespace) -> int:
    import http.client  # noqa: PLC0415 - slow to import

    settings = _settings()
    host = "127.0.0.1" if settings.host in {"0.0.0.0", "::"} else settings.host  # noqa: S104 - asked about, not listened on
    try:
        connection = http.client.HTTPConnection(host, settings.port, timeout=10)
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        words = answer.read().decode(errors="replace")
    except OSError as error:
        raise Stop(f"no answer on {host}:{settings.port} ({error}).") from None
    print(words, end="")
    return int(answer.status != http.HTTPStatus.OK)


def _upgrade(_given: argparse.Namespace) -> int:
    from app.db.database_url import shown  # noqa: PLC0415 - slow to import

    settings = _settings()
    _make_folder(settings.data)
    with _ready(settings):
        print(f"The database {shown(settings.database)} is up to date.")
    return 0


def _check(given: argparse.Namespace) -> int:
    from app.content.check import check, write  # noqa: PLC0415 - slow to import

    folder = given.folder or _settings().content
    if not folder.is_dir():
        raise Stop(f"{folder} is not a folder; name the folder that holds the course.")
    if given.watch:
        return _watch(folder, given)
    problems = check(folder, fix=given.fix)
    gc.freeze()  # the command ends: nothing is left that should be looked for
    print(write(problems, given.format))
    return int(any(p.severity == "error" for p in problems))


def _watch(folder: Path, given: argparse.Namespace) -> int:
    from app.authoring.commands import watch_command  # noqa: PLC0415 - slow to import

    if given.fix or given.format != "text":
        raise Stop("--watch prints text and writes nothing; leave the others out.")
    return watch_command(folder)


def _new(words: Sequence[str]) -> int:
    from app.authoring.commands import new_command  # noqa: PLC0415 - slow to import

    return new_command(words, _settings().content)


def _elsewhere(words: list[str]) -> int:
    if words[0] == "estimate":
        return _estimate(words[1:])
    if words[0] == "new":
        return _new(words[1:])
    if words[0] in {"backup", "restore", "doctor"}:
        return _upkeep(words)
    if words[0] in {"author", "learners"}:
        return _people(words)
    return _exchange(words)


def _people(words: list[str]) -> int:
    from app.web.clock import system_clock  # noqa: PLC0415 - slow to import

    settings = _settings()
    with _database(settings) as engine:
        if words[0] == "author":
            from app.authors.commands import (  # noqa: PLC0415 - of this command alone
                author_command,
            )

            if not settings.authoring:
                raise Stop("the author's bench is switched off by HEADROOM_AUTHORING.")
            return author_command(words[1:], engine, _address(settings), system_clock())
        from app.learners.commands import (  # noqa: PLC0415 - of this command alone
            learners_command,
        )
        from app.main import doorkeeper_of  # noqa: PLC0415 - slow to import

        keeper = doorkeeper_of(settings)
        return learners_command(words[1:], engine, keeper, _address(settings))


@contextlib.contextmanager
def _database(settings: "Settings") -> Iterator["Engine"]:
    """The database of the server, which may be running meanwhile."""
    from sqlalchemy import make_url  # noqa: PLC0415 - slow to import

    from app.db.engine import make_engine  # noqa: PLC0415 - slow to import
    from app.db.schema_state import is_current  # noqa: PLC0415 - slow to import

    url = make_url(settings.database)
    file = url.database if url.get_backend_name() == "sqlite" else None
    engine = make_engine(settings.database)
    try:
        # To open a file of SQLite that is not there would make one.
        if (file and not Path(file).is_file()) or not is_current(engine):
            raise Stop(
                "the database is not there yet or has an older shape; start the "
                "server once, or run `headroom db upgrade`."
            )
        yield engine
    finally:
        engine.dispose()


def _address(settings: "Settings") -> str:
    from app.web.addresses import own_address  # noqa: PLC0415 - slow to import

    return own_address(settings.url, settings.host, settings.port)


def _estimate(words: Sequence[str]) -> int:
    from app.calculators.commands import (  # noqa: PLC0415 - other commands need it not
        estimate_command,
    )

    return estimate_command(words)


def _exchange(words: list[str]) -> int:
    from app.exchange.commands import (  # noqa: PLC0415 - other commands need it not
        exchange_command,
    )

    settings = _settings()
    return exchange_command(words, settings.content, settings.database)


def _upkeep(words: list[str]) -> int:
    from app.config import Settings  # noqa: PLC0415 - slow to import
    from app.upkeep.commands import upkeep_command  # noqa: PLC0415 - slow to import
    from app.upkeep.doctor import Deployment  # noqa: PLC0415 - slow to import

    settings = _settings()
    names = frozenset(f"HEADROOM_{name.upper()}" for name in Settings.model_fields)
    place = Deployment(_installation(settings), settings.content, names, os.environ)
    return upkeep_command(words, place)


def _installation(settings: "Settings") -> "Installation":
    from app.upkeep.installation import Installation  # noqa: PLC0415 - slow to import

    return Installation(
        settings.data, settings.database, settings.secret, settings.backups_folder
    )


def _serve(_given: argparse.Namespace) -> int:
    settings = _settings()
    _make_folder(settings.data)
    if not settings.content.is_dir():
        raise Stop(
            f"the content folder {settings.content} is missing; "
            "set HEADROOM_CONTENT to the folder that holds syllabus.toml."
        )
    _claim_port(settings)
    with _ready(settings):
        from app.cli.server import run  # noqa: PLC0415 - slow to import
        from app.main import create_app  # noqa: PLC0415 - slow to import

        app = create_app(settings)
        _announce(settings, app.state.library.current())
        gc.freeze()  # the course stays: the collector need not walk through it again
        run(settings, app)
    return 0


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink(missing_ok=True)  # another process that starts may be first
    except OSError as error:
        raise Stop(
            f"the data folder {folder} cannot be written ({error.strerror}); "
            "set HEADROOM_DATA to a folder that can."
        ) from None


def _claim_port(settings: "Settings") -> None:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            raise Stop(
                f"cannot listen on {settings.host}:{settings.port} "
                f"({error.strerror}); set HEADROOM_PORT to a free port, "
                f"e.g. HEADROOM_PORT={settings.port + 1}."
            ) from None


@contextlib.contextmanager
def _ready(settings: "Settings") -> Iterator[None]:
    """Use the data folder, in which the database was made ready."""
    from app.upkeep.installation import Unusable  # noqa: PLC0415 - slow to import
    from app.upkeep.preparing import prepare  # noqa: PLC0415 - slow to import

    installation = _installation(settings)
    try:
        with installation.in_use():
            prepare(installation, dt.datetime.now(dt.UTC))
            yield
    except Unusable as error:
        raise Stop(str(error)) from None


def _announce(settings: "Settings", library: "Library") -> None:
    errors = sum(p.severity == "error" for p in library.problems)
    print(
        f"Course: {len(library.topics)} topics, {len(library.questions)} questions, "
        f"{len(library.cards)} cards from {settings.content}"
    )
    if errors:
        print(f"{errors} errors in the content; `headroom check` names each.")
    print(f"Data:   {settings.data}")
    print(f"Open    {_address(settings)}", flush=True)
    if settings.authoring and sys.stdout.isatty():
        _print_link(settings)


def _print_link(settings: "Settings") -> None:
    from app.authors.commands import (  # noqa: PLC0415 - slow to import
        new_link,
        words_of_link,
    )
    from app.web.clock import system_clock  # noqa: PLC0415 - slow to import

    with _database(settings) as engine:
        link = words_of_link(new_link(engine, _address(settings), system_clock()))
    print(f"Author  {link}", flush=True)
