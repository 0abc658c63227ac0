"""What is kept beside the two logs, made again from them alone."""

import collections
import itertools
from collections.abc import Mapping

from sqlalchemy import delete, func, insert, select
from sqlmodel import Session

from app.markup.model import Flashcard
from app.spaced_repetition.card_rows import CARD_STATES, save_card_state_row
from app.spaced_repetition.review_log import (
    ANSWERS,
    BY_TIME,
    DAYS,
    LOG,
    LOGGED,
    DayTotals,
    build_columns_of_replayed_card,
    list_suspended_cards,
    load_added_card_initial_states,
    replay_card,
    yield_day_contributions,
)


def rebuild(db: Session, learner_id: int, cards: Mapping[str, Flashcard]) -> None:
    """Make the whole memory of a learner again from the log and the added cards.

    `cards` are those of the course and, to keep their topics, those added.
    """
    connection = db.connection()
    connection.execute(delete(CARD_STATES).where(CARD_STATES.c.learner_id == learner_id))
    aside = set(list_suspended_cards(db, learner_id))
    graded = connection.execute(
        select(*LOGGED).where(LOG.c.learner_id == learner_id).order_by(LOG.c.card, *BY_TIME)
    )
    log = {card: list(group) for card, group in itertools.groupby(graded, lambda r: r.card)}
    added = load_added_card_initial_states(db, learner_id)
    for card in {**log, **dict.fromkeys(aside), **added}:
        rows = log.get(card, [])
        begin = added.get(card)
        now = replay_card(card, rows, begin)
        values = build_columns_of_replayed_card(now, len(rows), begin, suspended=card in aside)
        if values is not None:
            # A card that left the course keeps what was learned of it.
            save_card_state_row(db, learner_id, cards.get(card, card), values, has_row=False)


def rebuild_days(db: Session, learner_id: int) -> None:
    """Make every sum of a learner again from the log of answers and that of grades."""
    connection = db.connection()
    days = collections.defaultdict[str, DayTotals](DayTotals)
    of_answers = (
        select(ANSWERS.c.study_day, func.count(), func.sum(ANSWERS.c.milliseconds))
        .where(ANSWERS.c.learner_id == learner_id)
        .group_by(ANSWERS.c.study_day)
    )
    for day, answers, took in connection.execute(of_answers):
        days[day] += DayTotals(answers=answers, milliseconds=took or 0)
    columns = ("id", "card", "rating", "voids", "recall", "milliseconds", "study_day")
    of_grades = (
        select(*(LOG.c[name] for name in columns))
        .where(LOG.c.learner_id == learner_id)
        .order_by(LOG.c.at, LOG.c.id)
    )
    for one in yield_day_contributions(connection.execute(of_grades).all()):
        days[one.day] += one.totals
    connection.execute(delete(DAYS).where(DAYS.c.learner_id == learner_id))
    for day, work in days.items():
        row = {"learner_id": learner_id, "day": day, **work.columns()}
        connection.execute(insert(DAYS), row)
