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
    COMMAND_LINE_SESSION,
    LINK_LIFETIME,
    AuditRecord,
    generate_author_token,
    record_audit_entry,
)
from app.accounts.devices_page import CODE_LIFETIME, generate_device_code, normalize_device_code
from app.accounts.learner_store import ListedPerson
from app.authoring.regrading import (
    RegradePolicy,
    RegradePreview,
    preview_regrade,
    write_regrades_of_preview,
)
from app.cli import CommandError, align_columns
from app.cli.content import find_course_folder
from app.cli.database import get_server_url, open_database, read_settings
from app.clock import utc_now
from app.content.check import format_count_noun
from app.content.course import load_course
from app.content.live_courses import find_course_folders
from app.database.engine import WRITE_OPTIONS
from app.main import create_session_cookies
from app.markup.problems import replace_unprintable_characters
from app.questions.grading import RegradeRefusal
from app.questions.model import Question
from app.settings import Settings
from app.web.visitor import hash_session_key


def create_author_link(engine: Engine, base_url: str, now: dt.datetime) -> str:
    """Create a single-use author link. It is printed, and only its hash is stored."""
    token = generate_author_token()
    with Session(engine) as db:
        db.connection(execution_options=WRITE_OPTIONS)
        author_store.insert_author_link_and_purge_expired(db, hash_session_key(token), now)
        db.commit()
    return f"{base_url}/authoring/enter?token={token}"


def format_author_link(link: str) -> str:
    minutes = int(LINK_LIFETIME.total_seconds() / 60)
    return f"{link}\nOpen it within {minutes} minutes. It works once, in one browser."


def run_author_command(options: argparse.Namespace) -> int:
    """Run `headroom author`. Returns 1 if there is no such session."""
    settings = read_settings()
    if not settings.authoring:
        raise CommandError("the author pages are switched off by HEADROOM_AUTHORING.")
    now = utc_now()
    with open_database(settings) as engine:
        if options.action == "link":
            print(format_author_link(create_author_link(engine, get_server_url(settings), now)))
        elif options.action == "revoke":
            return revoke_author_sessions_and_print(engine, options.session, now)
        else:
            with Session(engine) as db:
                if options.action == "list":
                    _print_author_sessions(db, now)
                else:
                    _print_audit_log(db, options.last)
    return 0


def _print_author_sessions(db: Session, now: dt.datetime) -> None:
    rows = [
        (str(s.id), s.device, format_utc_time(s.created), format_utc_time(s.last_used))
        for s in author_store.list_author_sessions(db, now)
    ]
    table = align_columns([("ID", "DEVICE", "CREATED", "LAST USED"), *rows])
    print(table if rows else "No browser is signed in as an author.")


def revoke_author_sessions_and_print(
    engine: Engine, session_id: int | None, now: dt.datetime
) -> int:
    """Sign out a browser, or all if the id is None. Returns 1 if there is no such session."""
    with Session(engine) as db:
        db.connection(execution_options=WRITE_OPTIONS)
        active_ids = [session.id for session in author_store.list_author_sessions(db, now)]
        session_ids = active_ids if session_id is None else [session_id]
        revoked_ids = author_store.revoke_author_sessions(
            db, session_ids, COMMAND_LINE_SESSION, now
        )
        db.commit()
    if session_id is not None and not revoked_ids:
        print(
            f"headroom: no session {session_id} is signed in; "
            "`headroom author list` shows those that are.",
            file=sys.stderr,
        )
        return 1
    print(f"Signed out: {', '.join(map(str, revoked_ids)) or 'none'}")
    return 0


def _print_audit_log(db: Session, limit: int) -> None:
    for record in reversed(author_store.list_audit_records(db, limit)):
        actor = (
            f"session {record.author_session_id}" if record.author_session_id else "command line"
        )
        print(f"{format_utc_time(record.logged_at)}  {actor:14}  {record.action}  {record.subject}")


def format_utc_time(moment: dt.datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def run_learners_command(options: argparse.Namespace) -> int:
    """Run `headroom learners`. Returns 1 if it is unclear which learner or course is meant."""
    settings = read_settings()
    with open_database(settings) as engine, Session(engine) as db:
        if options.action == "list":
            return _print_learners(learner_store.list_people(db))
        db.connection(execution_options=WRITE_OPTIONS)
        if options.action == "adopt":
            return _adopt_learners_and_print(
                db, options.course, find_course_folders(settings.content)
            )
        matches = _find_learners_by_name_or_id(learner_store.list_people(db), options.learner)
        if len(matches) != 1:
            print(
                f"headroom: {_no_single_match_message(matches, options.learner)}", file=sys.stderr
            )
            return 1
        print(_create_device_code_and_describe(db, settings, matches[0], utc_now()))
        db.commit()
    return 0


def _print_learners(people: Sequence[ListedPerson]) -> int:
    rows = [
        (
            str(person.id),
            replace_unprintable_characters(person.name) or "-",
            format_utc_time(person.created),
            format_utc_time(person.last_seen),
        )
        for person in people
    ]
    table = align_columns([("ID", "NAME", "CREATED", "LAST SEEN"), *rows])
    print(table if rows else "Nobody has saved anything yet.")
    return 0


def _adopt_learners_and_print(db: Session, course_name: str, known_courses: Collection[str]) -> int:
    if course_name not in known_courses or not course_name:
        names = ", ".join(filter(None, known_courses)) or "none: this server has a single course"
        print(f"headroom: there is no course “{course_name}”; there is {names}.", file=sys.stderr)
        return 1
    moved_count, not_moved_count = learner_store.adopt_learners_without_course(db, course_name)
    subject = f"{moved_count} into {course_name}"
    record_audit_entry(
        db, AuditRecord(utc_now(), COMMAND_LINE_SESSION, "learners adopted", subject)
    )
    db.commit()
    print(f"{course_name} has the work of {moved_count} learners.")
    if not_moved_count:
        print(f"{not_moved_count} had started again in it; their earlier work stays where it was.")
    return 0


def _create_device_code_and_describe(
    db: Session, settings: Settings, person: ListedPerson, now: dt.datetime
) -> str:
    """Create a device code for a person; returns the text that says how to use it."""
    code = generate_device_code()
    digest = create_session_cookies(settings).hash_short_code(normalize_device_code(code))
    learner_store.replace_device_code(db, person.id, digest, now + CODE_LIFETIME)
    record_audit_entry(
        db, AuditRecord(now, COMMAND_LINE_SESSION, "learner code made", f"learner {person.id}")
    )
    minutes = int(CODE_LIFETIME.total_seconds() / 60)
    name = replace_unprintable_characters(person.name) or "no name"
    return (
        f"{get_server_url(settings)}/continue?code={code}\n"
        f"Whoever opens it within {minutes} minutes continues as learner {person.id} ({name}). "
        f"It works once. The code alone is {code}."
    )


def _find_learners_by_name_or_id(
    people: Sequence[ListedPerson], name_or_id: str
) -> list[ListedPerson]:
    """Return the learners with this number or name. A number is never taken for a name."""
    if name_or_id.isascii() and name_or_id.isdigit():
        return [person for person in people if str(person.id) == name_or_id.lstrip("0")]
    folded = " ".join(name_or_id.split()).casefold()
    return [person for person in people if folded and person.name.casefold() == folded]


def _no_single_match_message(matches: Sequence[ListedPerson], name_or_id: str) -> str:
    if not matches:
        return (
            f"there is no learner “{name_or_id}”; `headroom learners list` shows "
            "everybody with name and number."
        )
    listing = ", ".join(
        f"{person.id} (last seen {format_utc_time(person.last_seen)})" for person in matches
    )
    return f"several learners have the name “{name_or_id}”; give the number of one: {listing}."


_COLUMN_TITLES = ("SCORE", "ANSWERS", "LEARNERS", "FIRST ANSWERS", "MOCK EXAMS")


def run_regrade_command(options: argparse.Namespace) -> int:
    """Run `headroom regrade`: preview what a corrected key changes, or apply it."""
    settings = read_settings()
    folder = find_course_folder(options.course)
    courses = find_course_folders(settings.content)
    if folder not in courses.values():  # the course in the current folder
        courses = find_course_folders(folder)
    course_name = next(name for name, course_folder in courses.items() if course_folder == folder)
    question = _require_live_question(courses, course_name, options.question)
    with open_database(settings) as engine, Session(engine) as db:
        if options.yes:
            db.connection(execution_options=WRITE_OPTIONS)
        preview = preview_regrade(
            db,
            course_name,
            question,
            accept_rewording=options.reworded,
            policy=RegradePolicy(options.policy),
        )
        regraded_count = 0
        if options.yes:
            regraded_count = write_regrades_of_preview(
                db, course_name, preview, COMMAND_LINE_SESSION, utc_now()
            )
            db.commit()
    if options.json:
        print(json.dumps(_regrade_as_json_dict(preview, regraded_count), ensure_ascii=False))
    else:
        print("\n".join(_format_regrade(preview, regraded_count, is_confirmed=options.yes)))
    return 0


def _require_live_question(courses: Mapping[str, Path], course_name: str, item: str) -> Question:
    course = load_course(courses[course_name])
    if item in course.questions:
        return course.questions[item]
    if item in course.with_drafts().questions:
        raise CommandError(f"the question “{item}” is not live; only a live key can count.")
    course_label = f"the course “{course_name}”" if course_name else str(courses[course_name])
    other_courses = [
        n for n in courses if n != course_name and item in load_course(courses[n]).questions
    ]
    if other_courses:
        raise CommandError(
            f"there is no question “{item}” in {course_label}; there is one in "
            f"{', '.join(other_courses)}: name it with --course."
        )
    raise CommandError(
        f"there is no question “{item}” in {course_label}; `headroom check` lists what is "
        "left out of the course."
    )


def _format_regrade(
    preview: RegradePreview, written_count: int, *, is_confirmed: bool
) -> list[str]:
    location = preview.question.place
    lines = [
        f"{preview.question.id}, {location.path}:{location.line}",
        f"{format_count_noun(preview.answer_count, 'answer')} graded with another wording than the current one.",
    ]
    impacts = [
        (f"{_format_score(change.old_score)} to {_format_score(change.new_score)}", change.impact)
        for change in preview.score_changes
    ]
    if len(impacts) > 1:
        impacts.append(("in all", preview.impact))
    rows = [(change, *map(str, dataclasses.astuple(impact))) for change, impact in impacts]
    if rows:
        lines += ["", align_columns([_COLUMN_TITLES, *rows]), ""]
    if preview.unchanged_count:
        lines.append(
            f"{format_count_noun(preview.unchanged_count, 'answer')} would keep the score."
        )
    lines += [
        f"{format_count_noun(count, 'answer')} cannot be graded again: {refusal}"
        f"{'; see --reworded' if refusal is RegradeRefusal.WORDS else ''}."
        for refusal, count in preview.refusals
    ]
    if not preview.scores_to_write:
        return [*lines, "No score changes, so there is nothing to write."]
    if is_confirmed:
        return [*lines, f"{format_count_noun(written_count, 'answer')} graded again."]
    return [*lines, "Nothing was written; --yes grades them again."]


def _format_score(score: float) -> str:
    return f"{score:.2f}".rstrip("0").rstrip(".")


def _regrade_as_json_dict(preview: RegradePreview, written_count: int) -> dict[str, Any]:
    return {
        "question": preview.question.id,
        "revision": preview.question.revision,
        "answers": preview.answer_count,
        "changed": dataclasses.asdict(preview.impact),
        "effects": [
            {"before": e.old_score, "after": e.new_score, **dataclasses.asdict(e.impact)}
            for e in preview.score_changes
        ],
        "same": preview.unchanged_count,
        "refused": [{"why": refusal, "answers": count} for refusal, count in preview.refusals],
        "written": written_count,
    }


COMMANDS = {
    "author": run_author_command,
    "learners": run_learners_command,
    "regrade": run_regrade_command,
}
