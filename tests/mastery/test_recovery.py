"""Mastery can fall and recover where every question of an objective was answered."""

import dataclasses
import datetime as dt

import pytest
from sqlmodel import Session

from app.content.library import Library
from app.database.tables import Learner
from app.database.write_queue import WRITING
from app.mastery.belief import update_belief
from app.mastery.evidence import (
    AnswerHistory,
    Evidence,
    ObjectiveCards,
    answers_by_day,
    weigh_evidence,
)
from app.mastery.objectives import NOTHING, AnswerHistories, build_standings
from app.mastery.store import load_first_answers
from app.questions.result import GradeResult
from app.quiz import store as quiz

BEGIN = dt.date(2026, 6, 1)
GUESS = 0.25


def on(day: int) -> dt.date:
    return BEGIN + dt.timedelta(days=day)


def mean(firsts: list[AnswerHistory], day: int, *, varied: bool = False) -> float:
    told = ((first.counting(varied=varied), GUESS) for first in firsts)
    evidence = weigh_evidence(answers_by_day(told, GUESS), GUESS, ObjectiveCards(), on(day))
    return update_belief(evidence, GUESS, Evidence(), GUESS).mean


def test_five_questions_missed_and_then_known_are_believed_again() -> None:
    """All wrong at first, then all right on eleven later days."""
    missed = [AnswerHistory(0.0, BEGIN)] * 5
    low = mean(missed, 1)
    known = missed
    for day in range(2, 24, 2):
        known = [first.again(1.0, on(day)) for first in known]

    assert low < 0.1
    assert mean(known, 24) < 0.5, "every other day says nothing new"

    weekly = missed
    found = []
    for day in (7, 14, 21, 28):
        weekly = [first.again(1.0, on(day)) for first in weekly]
        found.append(mean(weekly, day))

    assert found == sorted(found)
    assert found[0] > 0.4
    assert found[-1] > 0.65


def test_what_is_missed_again_later_is_believed_less() -> None:
    known = [AnswerHistory(1.0, BEGIN)] * 5
    lost = [first.again(0.0, on(9)) for first in known]

    assert mean(lost, 9) < mean(known, 9) - 0.2


def test_a_later_answer_with_new_numbers_counts_from_the_next_day() -> None:
    first = AnswerHistory(0.0, BEGIN).again(1.0, BEGIN)
    assert mean([first], 1, varied=True) == mean([AnswerHistory(0.0, BEGIN)], 1, varied=True)

    later = AnswerHistory(0.0, BEGIN).again(1.0, on(1))

    assert mean([later], 1, varied=True) > mean([later], 1)
    assert mean([later], 1) == mean([AnswerHistory(0.0, BEGIN)], 1)


@pytest.mark.parametrize("times", [1, 2, 5])
def test_a_question_weighs_one_answer_however_often_it_is_asked(times: int) -> None:
    first = AnswerHistory(0.0, BEGIN)
    for turn in range(1, times + 1):
        first = first.again(1.0, on(7 * turn))

    shares = [share for share, _ in first.shares()]

    assert sum(shares) == pytest.approx(1.0)
    assert shares[0] == 0.5
    made = answers_by_day([(first, GUESS)], GUESS)
    assert sum(lot.weight for lot in made) == pytest.approx(1.0)
    assert made[0].answers == 1


def test_four_weeks_ago_nothing_of_what_came_later_counts(library: Library) -> None:
    ids = library.topics["kv-cache"].questions
    firsts = {item: AnswerHistory(0.0, BEGIN).again(1.0, on(40)) for item in ids}
    only = {item: AnswerHistory(0.0, BEGIN) for item in ids}

    def beliefs(record: dict[str, AnswerHistory], ago: int) -> list[float]:
        known = dataclasses.replace(NOTHING, firsts=AnswerHistories(record))
        found = build_standings(library, known, on(45), ago)
        return [s.belief.mean for domain in found for s in domain.standings]

    assert beliefs(firsts, 28) == beliefs(only, 28)
    assert beliefs(firsts, 0) != beliefs(only, 0)


def test_the_log_says_what_a_fresh_process_reads_from_it(
    library: Library, session: Session
) -> None:
    """Answers are caught up with row by row, and come out as if read at once."""
    session.connection(execution_options=WRITING)
    session.add(row := Learner(key="k" * 30, created_at=1))
    session.flush()
    learner, item = row.id or 0, next(iter(library.questions.values()))
    for turn, day in enumerate((0, 3, 11, 12)):
        given = quiz.NewAttempt(
            question=item,
            seed=turn,
            raw={"answer": ["a"]},
            verdict=GradeResult(score=float(turn > 0), parsed={}),
            token=str(turn),
            context="quiz",
        )
        now = dt.datetime.combine(on(day), dt.time(12), dt.UTC)
        quiz.record_attempt(session, learner, given, on(day), now)
        session.flush()
        known = load_first_answers(session, learner)[item.id]

    assert [(one.wait, one.score) for one in known.later] == [(3, 1), (8, 1), (1, 1)]
    assert [one.wait for one in known.counting(varied=False).later] == [8]
    assert not known.missed
    assert known.seen == on(12)
