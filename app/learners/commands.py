"""`headroom learners`: who is there, and a way back for one who lost the cookie."""

import argparse
import datetime as dt
import sys
from collections.abc import Collection, Sequence

from sqlalchemy import Engine
from sqlmodel import Session

from app.authors.commands import table, when
from app.authors.store import COMMAND_LINE, AuditRecord, record
from app.db.writer import WRITING
from app.learners import store
from app.learners.codes import LIFE, new_code, normalize_code
from app.learners.store import LearnerListRow
from app.web.clock import utc_now
from app.web.visitor import SessionCookies


def learners_command(
    words: Sequence[str],
    engine: Engine,
    keeper: SessionCookies,
    address: str,
    courses: Collection[str],
) -> int:
    """`headroom learners …`: 0 when done, 1 where it is not clear who is meant."""
    given = _parser().parse_args(words)
    with Session(engine) as db:
        if given.what == "list":
            return _list(store.people(db))
        db.connection(execution_options=WRITING)
        if given.what == "adopt":
            return _adopt(db, given.course, courses)
        people = store.people(db)
        meant = _meant(people, given.learner)
        if len(meant) != 1:
            sys.stderr.write(f"headroom: {_unclear(meant, given.learner)}\n")
            return 1
        now = utc_now()
        sys.stdout.write(_code(db, keeper, meant[0], address, now))
        db.commit()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="headroom learners", description="Who studies on this server."
    )
    actions = parser.add_subparsers(dest="what", required=True, metavar="ACTION")
    actions.add_parser("list", help="list every learner, without any secret")
    link = actions.add_parser("link", help="print a code that lets a browser back in")
    link.add_argument("learner", metavar="NAME|ID")
    adopt = actions.add_parser(
        "adopt", help="give a course what was done when the server had it alone"
    )
    adopt.add_argument("course", metavar="COURSE")
    return parser


def _adopt(db: Session, course: str, courses: Collection[str]) -> int:
    if course not in courses or not course:
        named = ", ".join(filter(None, courses)) or "none: this server has one alone"
        sys.stderr.write(f"headroom: there is no course “{course}”; there is {named}.\n")
        return 1
    done, left = store.move_to_course(db, course)
    now = utc_now()
    record(db, AuditRecord(now, COMMAND_LINE, "learners adopted", f"{done} into {course}"))
    db.commit()
    sys.stdout.write(f"{course} has the work of {done} learners.\n")
    if left:
        sys.stdout.write(f"{left} had begun anew in it; theirs stays where it was.\n")
    return 0


def _list(people: Sequence[LearnerListRow]) -> int:
    if not people:
        sys.stdout.write("Nobody has saved anything yet.\n")
        return 0
    lines = [("ID", "NAME", "CREATED", "LAST SEEN")]
    lines += [
        (str(one.id), _plain(one.name) or "-", when(one.created), when(one.last_seen))
        for one in people
    ]
    sys.stdout.write(table(lines))
    return 0


def _code(
    db: Session, keeper: SessionCookies, person: LearnerListRow, address: str, now: dt.datetime
) -> str:
    code = new_code()
    store.add_code(db, person.id, keeper.digest(normalize_code(code)), now + LIFE)
    record(db, AuditRecord(now, COMMAND_LINE, "learner code made", f"learner {person.id}"))
    minutes = int(LIFE.total_seconds() / 60)
    named = f"learner {person.id} ({_plain(person.name) or 'no name'})"
    return (
        f"{address}/continue?code={code}\n"
        f"Whoever opens it within {minutes} minutes continues as {named}. "
        f"It works once. The code alone is {code}.\n"
    )


def _meant(people: Sequence[LearnerListRow], wanted: str) -> list[LearnerListRow]:
    """Whom a number or a name means; a number is never taken for a name."""
    if wanted.isascii() and wanted.isdigit():
        return [one for one in people if str(one.id) == wanted.lstrip("0")]
    name = " ".join(wanted.split()).casefold()
    return [one for one in people if name and one.name.casefold() == name]


def _unclear(meant: Sequence[LearnerListRow], wanted: str) -> str:
    if not meant:
        return (
            f"there is no learner “{wanted}”; `headroom learners list` shows "
            "everybody with name and number."
        )
    each = ", ".join(f"{one.id} (last seen {when(one.last_seen)})" for one in meant)
    return f"several learners have the name “{wanted}”; give the number of one: {each}."


def _plain(name: str) -> str:
    """A name without what a terminal would obey."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)
