"""What Progress shows of mastery and readiness."""

from typing import Any

from sqlmodel import Session

from app.mastery.readiness import ScoreForecast, forecast
from app.mastery.standing import counted, standings
from app.mastery.turnout import turnouts
from app.progress.objectives import AGO, groups
from app.progress.snapshot import LearnerSnapshot, main_exam
from app.progress.store import predictions
from app.progress.turnouts import PredictionChart, turnouts_drawn
from app.web.clock import from_milliseconds

_SITTINGS = 40


def mastery_of(snapshot: LearnerSnapshot) -> dict[str, Any]:
    """The rows by objective, now and four weeks ago, and the estimate."""
    before = standings(snapshot.library, snapshot.record, snapshot.day, AGO)
    return {
        "groups": groups(snapshot.domains, before, snapshot.learner.target),
        "ahead": snapshot.ahead,
        "ahead_drawn": snapshot.ahead_drawn,
        "lacking": snapshot.lacking,
        "chance": snapshot.chance,
        "others": _others(snapshot),
    }


def turnouts_of(snapshot: LearnerSnapshot, db: Session) -> PredictionChart:
    """Each mock exam beside what was predicted before it."""
    learner = snapshot.learner
    results = predictions.results(db, learner.id, _SITTINGS) if learner.id else ()
    # Where no exam was sat there is nothing to hold a prediction against.
    told = predictions.told(db, learner.id) if results else ()
    # A paper of one domain or of what was missed is no exam that was foretold.
    foretold = {one.exam for one in told} | snapshot.library.exams.keys()
    results = tuple(one for one in results if one.exam in foretold)
    return turnouts_drawn(
        turnouts(told, results), lambda at: learner.study_day(from_milliseconds(at))
    )


def _others(snapshot: LearnerSnapshot) -> list[tuple[str, ScoreForecast]]:
    """What the other mock exams of the course would bring, by title."""
    main = main_exam(snapshot.library)
    answers = counted(snapshot.library, snapshot.record.firsts)
    made = [
        (exam.title, forecast(snapshot.domains, exam, answers))
        for exam in snapshot.library.exams.values()
        if exam is not main
    ]
    return [(title, ahead) for title, ahead in made if isinstance(ahead, ScoreForecast)]
