"""`headroom author`: let browsers onto the bench, list them, end them, see the log."""

import argparse
import datetime as dt
import sys
from collections.abc import Sequence

from sqlalchemy import Engine
from sqlmodel import Session

from app.authors import store
from app.authors.links import LIFE, link_of, new_token
from app.db.writer import WRITING
from app.web.visitor import hash_session_key

_LOGGED = 200


def new_link(engine: Engine, address: str, now: dt.datetime) -> str:
    """Make a link that works once; it is printed and kept nowhere."""
    token = new_token()
    with Session(engine) as db:
        db.connection(execution_options=WRITING)
        store.add_link(db, hash_session_key(token), now)
        db.commit()
    return link_of(address, token)


def words_of_link(link: str) -> str:
    """The link with what its reader has to know."""
    minutes = int(LIFE.total_seconds() / 60)
    return f"{link}\nOpen it within {minutes} minutes. It works once, in one browser."


def author_command(words: Sequence[str], engine: Engine, address: str, now: dt.datetime) -> int:
    """`headroom author …`: 0 when done, 1 where there is no such session."""
    given = _parser().parse_args(words)
    if given.what == "link":
        sys.stdout.write(f"{words_of_link(new_link(engine, address, now))}\n")
        return 0
    with Session(engine) as db:
        if given.what == "list":
            return _list(db, now)
        if given.what == "log":
            return _log(db, given.last)
        db.connection(execution_options=WRITING)
        status = _revoke(db, given.session, now)
        db.commit()
        return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="headroom author", description="Who may see the author's bench."
    )
    actions = parser.add_subparsers(dest="what", required=True, metavar="ACTION")
    actions.add_parser("link", help="print a link that lets one browser in")
    actions.add_parser("list", help="list the browsers that were let in")
    revoke = actions.add_parser("revoke", help="sign a browser out, or all of them")
    revoke.add_argument("session", metavar="ID|all", type=_session)
    log = actions.add_parser("log", help="print what authors did")
    log.add_argument("--last", type=_count, default=_LOGGED, metavar="N")
    return parser


def _list(db: Session, now: dt.datetime) -> int:
    found = store.sessions(db, now)
    if not found:
        sys.stdout.write("No browser is signed in as an author.\n")
        return 0
    lines = [("ID", "DEVICE", "CREATED", "LAST USED")]
    lines += [(str(one.id), one.device, when(one.created), when(one.last_used)) for one in found]
    sys.stdout.write(table(lines))
    return 0


def _revoke(db: Session, wanted: int | None, now: dt.datetime) -> int:
    standing = [one.id for one in store.sessions(db, now)]
    asked = standing if wanted is None else [wanted]
    ended = store.revoke(db, asked, store.COMMAND_LINE, now)
    if wanted is not None and not ended:
        sys.stderr.write(
            f"headroom: no session {wanted} is signed in; "
            "`headroom author list` shows those that are.\n"
        )
        return 1
    names = ", ".join(str(number) for number in ended) or "none"
    sys.stdout.write(f"Signed out: {names}\n")
    return 0


def _log(db: Session, most: int) -> int:
    for deed in reversed(store.deeds(db, most)):
        by = f"session {deed.session}" if deed.session else "command line"
        sys.stdout.write(f"{when(deed.at)}  {by:14}  {deed.action}  {deed.subject}\n")
    return 0


def when(moment: dt.datetime) -> str:
    """A moment as a terminal shows it."""
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def table(lines: Sequence[Sequence[str]]) -> str:
    """Lines whose columns stand one below the other."""
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
    rows = (
        "  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True))
        for line in lines
    )
    return "".join(f"{row.rstrip()}\n" for row in rows)


def _session(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"“{text}” is neither a number nor “all”")
    return int(text)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= len(text) <= 6:
        raise argparse.ArgumentTypeError(f"“{text}” is not a number of lines")
    return int(text)
