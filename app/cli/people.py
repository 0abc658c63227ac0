"""The commands `author`, `learners` and `regrade`."""

import argparse
import dataclasses
import datetime as dt
import json
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Engine
from sqlmodel import Session

from app.accounts import author_store, learner_store
from app.accounts.author_store import (
    COMMAND_LINE,
    LINK_LIFETIME,
    AuditRecord,
    author_link_url,
    new_token,
    record_audit_entry,
)
from app.accounts.devices_page import CODE_LIFETIME as CODES_LIFE
from app.accounts.devices_page import new_code, normalize_code
from app.accounts.learner_store import LearnerListRow
from app.authoring.regrading import RegradeImpact, RegradePreview, confirm_regrade, preview_regrade
from app.cli.content import course_folder, pop_course_option
from app.cli.database import local_server_url, open_database, read_settings
from app.cli.launcher import CommandError
from app.clock import utc_now
from app.content.courses import find_course_folders
from app.content.library import load_library
from app.database.write_queue import WRITING
from app.main import create_session_cookies
from app.questions.grading import RegradeRefusal
from app.questions.model import Question
from app.web.visitor import SessionCookies, hash_session_key

_LOGGED = 200


def new_link(engine: Engine, address: str, now: dt.datetime) -> str:
    """Create a single-use author link. It is printed, and only its hash is stored."""
    token = new_token()
    with Session(engine) as db:
        db.connection(execution_options=WRITING)
        author_store.add_link(db, hash_session_key(token), now)
        db.commit()
    return author_link_url(address, token)


def format_link(link: str) -> str:
    """Return the author link with instructions."""
    minutes = int(LINK_LIFETIME.total_seconds() / 60)
    return f"{link}\nOpen it within {minutes} minutes. It works once, in one browser."


def author_command(words: Sequence[str], engine: Engine, address: str, now: dt.datetime) -> int:
    """Run `headroom author …`. Returns 0, or 1 if there is no such session."""
    given = _build_author_parser().parse_args(words)
    if given.what == "link":
        sys.stdout.write(f"{format_link(new_link(engine, address, now))}\n")
        return 0
    with Session(engine) as db:
        if given.what == "list":
            return _list_authors(db, now)
        if given.what == "log":
            return _show_audit_log(db, given.last)
        db.connection(execution_options=WRITING)
        status = _revoke_author_sessions(db, given.session, now)
        db.commit()
        return status


def _build_author_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="headroom author", description="Who may see the author's bench."
    )
    actions = parser.add_subparsers(dest="what", required=True, metavar="ACTION")
    actions.add_parser("link", help="print a link that lets one browser in")
    actions.add_parser("list", help="list the browsers that were let in")
    revoke = actions.add_parser("revoke", help="sign a browser out, or all of them")
    revoke.add_argument("session", metavar="ID|all", type=_parse_session_number)
    log = actions.add_parser("log", help="print what authors did")
    log.add_argument("--last", type=_parse_count, default=_LOGGED, metavar="N")
    return parser


def _list_authors(db: Session, now: dt.datetime) -> int:
    found = author_store.list_author_sessions(db, now)
    if not found:
        sys.stdout.write("No browser is signed in as an author.\n")
        return 0
    lines = [("ID", "DEVICE", "CREATED", "LAST USED")]
    lines += [
        (str(one.id), one.device, format_moment(one.created), format_moment(one.last_used))
        for one in found
    ]
    sys.stdout.write(align_columns(lines))
    return 0


def _revoke_author_sessions(db: Session, wanted: int | None, now: dt.datetime) -> int:
    standing = [one.id for one in author_store.list_author_sessions(db, now)]
    asked = standing if wanted is None else [wanted]
    ended = author_store.revoke_author_sessions(db, asked, author_store.COMMAND_LINE, now)
    if wanted is not None and not ended:
        sys.stderr.write(
            f"headroom: no session {wanted} is signed in; "
            "`headroom author list` shows those that are.\n"
        )
        return 1
    names = ", ".join(str(number) for number in ended) or "none"
    sys.stdout.write(f"Signed out: {names}\n")
    return 0


def _show_audit_log(db: Session, most: int) -> int:
    for deed in reversed(author_store.list_audit_records(db, most)):
        by = f"session {deed.session}" if deed.session else "command line"
        sys.stdout.write(f"{format_moment(deed.at)}  {by:14}  {deed.action}  {deed.subject}\n")
    return 0


def format_moment(moment: dt.datetime) -> str:
    """Format a time for the terminal."""
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def align_columns(lines: Sequence[Sequence[str]]) -> str:
    """Format lines as a table with aligned columns."""
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
    rows = (
        "  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True))
        for line in lines
    )
    return "".join(f"{row.rstrip()}\n" for row in rows)


def _parse_session_number(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"“{text}” is neither a number nor “all”")
    return int(text)


def _parse_count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= len(text) <= 6:
        raise argparse.ArgumentTypeError(f"“{text}” is not a number of lines")
    return int(text)


def learners_command(
    words: Sequence[str],
    engine: Engine,
    keeper: SessionCookies,
    address: str,
    courses: Collection[str],
) -> int:
    """Run `headroom learners …`. Returns 0, or 1 if it is unclear which learner is meant."""
    given = _learners_parser().parse_args(words)
    with Session(engine) as db:
        if given.what == "list":
            return _learners_list(learner_store.list_people(db))
        db.connection(execution_options=WRITING)
        if given.what == "adopt":
            return _adopt_learners(db, given.course, courses)
        people = learner_store.list_people(db)
        meant = _match_learners(people, given.learner)
        if len(meant) != 1:
            sys.stderr.write(f"headroom: {_ambiguous_name_message(meant, given.learner)}\n")
            return 1
        now = utc_now()
        sys.stdout.write(_create_login_code(db, keeper, meant[0], address, now))
        db.commit()
    return 0


def _learners_parser() -> argparse.ArgumentParser:
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


def _adopt_learners(db: Session, course: str, courses: Collection[str]) -> int:
    if course not in courses or not course:
        named = ", ".join(filter(None, courses)) or "none: this server has one alone"
        sys.stderr.write(f"headroom: there is no course “{course}”; there is {named}.\n")
        return 1
    done, left = learner_store.move_to_course(db, course)
    now = utc_now()
    record_audit_entry(
        db, AuditRecord(now, COMMAND_LINE, "learners adopted", f"{done} into {course}")
    )
    db.commit()
    sys.stdout.write(f"{course} has the work of {done} learners.\n")
    if left:
        sys.stdout.write(f"{left} had begun anew in it; theirs stays where it was.\n")
    return 0


def _learners_list(people: Sequence[LearnerListRow]) -> int:
    if not people:
        sys.stdout.write("Nobody has saved anything yet.\n")
        return 0
    lines = [("ID", "NAME", "CREATED", "LAST SEEN")]
    lines += [
        (
            str(one.id),
            _strip_control_characters(one.name) or "-",
            format_moment(one.created),
            format_moment(one.last_seen),
        )
        for one in people
    ]
    sys.stdout.write(align_columns(lines))
    return 0


def _create_login_code(
    db: Session, keeper: SessionCookies, person: LearnerListRow, address: str, now: dt.datetime
) -> str:
    code = new_code()
    learner_store.add_code(db, person.id, keeper.digest(normalize_code(code)), now + CODES_LIFE)
    record_audit_entry(
        db, AuditRecord(now, COMMAND_LINE, "learner code made", f"learner {person.id}")
    )
    minutes = int(CODES_LIFE.total_seconds() / 60)
    named = f"learner {person.id} ({_strip_control_characters(person.name) or 'no name'})"
    return (
        f"{address}/continue?code={code}\n"
        f"Whoever opens it within {minutes} minutes continues as {named}. "
        f"It works once. The code alone is {code}.\n"
    )


def _match_learners(people: Sequence[LearnerListRow], wanted: str) -> list[LearnerListRow]:
    """Return the learners with this number or name. A number is never taken for a name."""
    if wanted.isascii() and wanted.isdigit():
        return [one for one in people if str(one.id) == wanted.lstrip("0")]
    name = " ".join(wanted.split()).casefold()
    return [one for one in people if name and one.name.casefold() == name]


def _ambiguous_name_message(meant: Sequence[LearnerListRow], wanted: str) -> str:
    if not meant:
        return (
            f"there is no learner “{wanted}”; `headroom learners list` shows "
            "everybody with name and number."
        )
    each = ", ".join(f"{one.id} (last seen {format_moment(one.last_seen)})" for one in meant)
    return f"several learners have the name “{wanted}”; give the number of one: {each}."


def _strip_control_characters(name: str) -> str:
    """Return the name without control characters that a terminal would interpret."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def author(words: Sequence[str]) -> int:
    """Run `headroom author`: print an author link, manage sessions, show the audit log."""
    settings = read_settings()
    if not settings.authoring:
        raise CommandError("the author's bench is switched off by HEADROOM_AUTHORING.")
    with open_database(settings) as engine:
        return author_command(words, engine, local_server_url(settings), utc_now())


def learners(words: Sequence[str]) -> int:
    """Run `headroom learners`: list learners, or print a link that signs one in."""
    settings = read_settings()
    with open_database(settings) as engine:
        keeper = create_session_cookies(settings)
        courses = find_course_folders(settings.content)
        address = local_server_url(settings)
        return learners_command(words, engine, keeper, address, courses)


_HEADS = ("SCORE", "ANSWERS", "LEARNERS", "FIRST ANSWERS", "MOCK EXAMS")


def regrade(words: Sequence[str]) -> int:
    """Run `headroom regrade`: preview what a corrected key changes, or apply it."""
    rest, name = pop_course_option(words)
    given = _regrade_parser().parse_args(rest)
    settings = read_settings()
    folder = course_folder(settings, name)
    courses = find_course_folders(settings.content)
    course = next(n for n, place in courses.items() if place == folder)
    question = _require_question(courses, course, given.question)
    with open_database(settings) as engine:
        with Session(engine) as db:
            regrading = preview_regrade(db, course, question, reworded=given.reworded)
        written = _write_regrade(engine, course, regrading) if given.yes else 0
    if given.json:
        print(json.dumps(_regrade_json(regrading, written), ensure_ascii=False))
    else:
        print("\n".join(_regrade_lines(regrading, written, wanted=given.yes)))
    return 0


def _regrade_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="headroom regrade",
        description="Show what the mended key of a question changes for the answers "
        "given before, and grade them again with --yes. What was answered stays.",
    )
    parser.add_argument("question", metavar="QUESTION", help="its id")
    parser.add_argument("--course", metavar="NAME", help="one of several")
    parser.add_argument("--yes", action="store_true", help="grade them again")
    parser.add_argument(
        "--reworded",
        action="store_true",
        help="also answers to other words, where these mean the same",
    )
    parser.add_argument("--json", action="store_true")
    return parser


def _require_question(courses: Mapping[str, Path], course: str, item: str) -> Question:
    library = load_library(courses[course])
    found = library.questions.get(item)
    if found is not None:
        return found
    if item in library.as_authored().questions:
        raise CommandError(f"the question “{item}” is not live; only a live key can count.")
    where = f"the course “{course}”" if course else str(courses[course])
    others = [n for n in courses if n != course and item in load_library(courses[n]).questions]
    if others:
        raise CommandError(
            f"there is no question “{item}” in {where}; there is one in "
            f"{', '.join(others)}: name it with --course."
        )
    raise CommandError(
        f"there is no question “{item}” in {where}; `headroom check` names what is "
        "left out of the course."
    )


def _write_regrade(engine: Engine, course: str, regrading: RegradePreview) -> int:
    with Session(engine) as db:
        db.connection(execution_options=WRITING)
        written = confirm_regrade(db, course, regrading, COMMAND_LINE, utc_now())
        db.commit()
    return written


def _regrade_lines(regrading: RegradePreview, written: int, *, wanted: bool) -> list[str]:
    place = regrading.question.place
    lines = [f"{regrading.question.id}, {place.path}:{place.line}"]
    given = _regrade_count(regrading.answers, "answer")
    lines.append(f"{given} graded by another wording than that of now.")
    rows = [
        (f"{_format_score(e.before)} to {_format_score(e.after)}", *_impact_cells(e.reach))
        for e in regrading.effects
    ]
    if len(rows) > 1:
        rows.append(("in all", *_impact_cells(regrading.reach)))
    if rows:
        lines += ["", align_columns([_HEADS, *rows])]
    if regrading.same:
        lines.append(f"{_regrade_count(regrading.same, 'answer')} would keep the score.")
    lines += [
        f"{_regrade_count(count, 'answer')} cannot be graded again: {why}"
        f"{'; see --reworded' if why is RegradeRefusal.WORDS else ''}."
        for why, count in regrading.refused
    ]
    return [*lines, _regrade_outcome(regrading, written, wanted=wanted)]


def _regrade_outcome(regrading: RegradePreview, written: int, *, wanted: bool) -> str:
    if not regrading.rows:
        return "No score changes, so there is nothing to write."
    if wanted:
        return f"{_regrade_count(written, 'answer')} graded again."
    return "Nothing was written; --yes grades them again."


def _regrade_count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _impact_cells(reach: RegradeImpact) -> tuple[str, ...]:
    return tuple(f"{number}" for number in dataclasses.astuple(reach))


def _format_score(score: float) -> str:
    return f"{score:.2f}".rstrip("0").rstrip(".")


def _regrade_json(regrading: RegradePreview, written: int) -> dict[str, Any]:
    return {
        "question": regrading.question.id,
        "revision": regrading.question.revision,
        "answers": regrading.answers,
        "changed": dataclasses.asdict(regrading.reach),
        "effects": [
            {"before": e.before, "after": e.after, **dataclasses.asdict(e.reach)}
            for e in regrading.effects
        ],
        "same": regrading.same,
        "refused": [{"why": why, "answers": count} for why, count in regrading.refused],
        "written": written,
    }
