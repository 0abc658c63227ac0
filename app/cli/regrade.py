"""`headroom regrade`: answers graded by an earlier key, by that of today."""

import argparse
import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Engine
from sqlmodel import Session

from app.authoring.regrading import RegradeImpact, RegradePreview, confirm, regrading_of
from app.authors.commands import table
from app.authors.store import COMMAND_LINE
from app.cli.course import course_folder, pop_course_option
from app.cli.installation import database
from app.cli.settings import read_settings
from app.cli.stop import CommandError
from app.content.live.courses import folders
from app.content.live.library import load
from app.db.writer import WRITING
from app.questions.model import Question
from app.questions.regrading import RegradeRefusal
from app.web.clock import utc_now

_HEADS = ("SCORE", "ANSWERS", "LEARNERS", "FIRST ANSWERS", "MOCK EXAMS")


def regrade(words: Sequence[str]) -> int:
    """Show what the key of a question changes; write it where that is wanted."""
    rest, name = pop_course_option(words)
    given = _parser().parse_args(rest)
    settings = read_settings()
    folder = course_folder(settings, name)
    courses = folders(settings.content)
    course = next(n for n, place in courses.items() if place == folder)
    question = _question(courses, course, given.question)
    with database(settings) as engine:
        with Session(engine) as db:
            regrading = regrading_of(db, course, question, reworded=given.reworded)
        written = _write(engine, course, regrading) if given.yes else 0
    if given.json:
        print(json.dumps(_as_json(regrading, written), ensure_ascii=False))
    else:
        print("\n".join(_lines(regrading, written, wanted=given.yes)))
    return 0


def _parser() -> argparse.ArgumentParser:
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


def _question(courses: Mapping[str, Path], course: str, item: str) -> Question:
    library = load(courses[course])
    found = library.questions.get(item)
    if found is not None:
        return found
    if item in library.as_authored().questions:
        raise CommandError(f"the question “{item}” is not live; only a live key can count.")
    where = f"the course “{course}”" if course else str(courses[course])
    others = [n for n in courses if n != course and item in load(courses[n]).questions]
    if others:
        raise CommandError(
            f"there is no question “{item}” in {where}; there is one in "
            f"{', '.join(others)}: name it with --course."
        )
    raise CommandError(
        f"there is no question “{item}” in {where}; `headroom check` names what is "
        "left out of the course."
    )


def _write(engine: Engine, course: str, regrading: RegradePreview) -> int:
    with Session(engine) as db:
        db.connection(execution_options=WRITING)
        written = confirm(db, course, regrading, COMMAND_LINE, utc_now())
        db.commit()
    return written


def _lines(regrading: RegradePreview, written: int, *, wanted: bool) -> list[str]:
    place = regrading.question.place
    lines = [f"{regrading.question.id}, {place.path}:{place.line}"]
    given = _count(regrading.asked, "answer")
    lines.append(f"{given} graded by another wording than that of now.")
    rows = [
        (f"{_score(e.before)} to {_score(e.after)}", *_cells(e.reach)) for e in regrading.effects
    ]
    if len(rows) > 1:
        rows.append(("in all", *_cells(regrading.reach)))
    if rows:
        lines += ["", table([_HEADS, *rows])]
    if regrading.same:
        lines.append(f"{_count(regrading.same, 'answer')} would keep the score.")
    lines += [
        f"{_count(count, 'answer')} cannot be graded again: {why}"
        f"{'; see --reworded' if why is RegradeRefusal.WORDS else ''}."
        for why, count in regrading.refused
    ]
    return [*lines, _outcome(regrading, written, wanted=wanted)]


def _outcome(regrading: RegradePreview, written: int, *, wanted: bool) -> str:
    if not regrading.rows:
        return "No score changes, so there is nothing to write."
    if wanted:
        return f"{_count(written, 'answer')} graded again."
    return "Nothing was written; --yes grades them again."


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _cells(reach: RegradeImpact) -> tuple[str, ...]:
    return tuple(f"{number}" for number in dataclasses.astuple(reach))


def _score(score: float) -> str:
    return f"{score:.2f}".rstrip("0").rstrip(".")


def _as_json(regrading: RegradePreview, written: int) -> dict[str, Any]:
    return {
        "question": regrading.question.id,
        "revision": regrading.question.revision,
        "answers": regrading.asked,
        "changed": dataclasses.asdict(regrading.reach),
        "effects": [
            {"before": e.before, "after": e.after, **dataclasses.asdict(e.reach)}
            for e in regrading.effects
        ],
        "same": regrading.same,
        "refused": [{"why": why, "answers": count} for why, count in regrading.refused],
        "written": written,
    }
