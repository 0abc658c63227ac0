"""Everything about one card: how it stands, its log, and what can be set by hand."""

import dataclasses
import datetime as dt

from app.cards.names import OWN, is_added_card, parse_card_id
from app.cards.store import ReviewHistoryRow, added_cards, last_undoable, log_of
from app.content.model import Flashcard
from app.flashcards import store
from app.flashcards.own_cards import standing_words, state_words
from app.flashcards.review_table import find_card, showing_token
from app.learners.desk import RequestContext
from app.scheduling import last_day, retrievability
from app.scheduling.waits import days_label
from app.web.clock import from_milliseconds
from app.web.words import format_date_with_year

_GRADES = ("", "Again", "Hard", "Good", "Easy")


@dataclasses.dataclass(frozen=True, slots=True)
class HistoryLine:
    """A row of the log in words: the study day, and what was done."""

    day: str
    words: str
    undone: bool


@dataclasses.dataclass(frozen=True, slots=True)
class CardDetails:
    """A card as its own page shows it; it can be set due from `day` to `last`.

    `facts` are names and values; `undo` is the number of the last thing done, where
    that was done to this card.
    """

    card: Flashcard
    title: str
    links: tuple[tuple[str, str], ...]
    facts: tuple[tuple[str, str], ...]
    log: tuple[HistoryLine, ...]
    token: str
    aside: bool
    own: bool
    undo: int
    day: dt.date
    last: dt.date


def about(desk: RequestContext, name: str) -> CardDetails:
    """The card `name`; raises NotFound, or Conflict during an exam that asks it."""
    found = find_card(desk, name)
    db, learner = desk.db, desk.learner.id
    held = store.load_card(db, learner, name)
    done = last_undoable(db, learner, desk.day) if learner else None
    return CardDetails(
        card=found.card,
        title=found.title,
        links=found.links,
        facts=tuple(_facts(desk, held)),
        log=tuple(_line(desk, row) for row in log_of(db, learner, name)),
        token=showing_token(name, held.turns),
        aside=held.suspended,
        own=parse_card_id(name)[0] == OWN,
        undo=done[0] if done and done[1] == name else 0,
        day=desk.day,
        last=last_day(desk.day, desk.learner.exam_day),
    )


def _facts(desk: RequestContext, held: store.CardRecord) -> list[tuple[str, str]]:
    standing = held.standing
    facts = [("State", "put aside" if held.suspended else _state(desk, held))]
    if standing is not None:
        stability = days_label(max(1, round(standing.stability)))
        known = f"{round(retrievability(standing, desk.day) * 100)}%"
        # Of a card in its steps the model of memory knows too little yet.
        settled = standing.state == "review"
        facts += [("Likely to be known today", known)] if settled else []
        facts += [
            ("Falls to 90% after", stability),
            ("Last review", format_date_with_year(standing.last_day)),
            ("Reviews", f"{standing.reviews:,}"),
            ("Forgotten after learning", f"{standing.lapses:,}"),
        ]
    return facts


def _state(desk: RequestContext, held: store.CardRecord) -> str:
    if held.standing is None and is_added_card(held.card):
        added = added_cards(desk.db, desk.learner.id, [held.card]).get(held.card)
        return state_words("new", added.due if added else None, desk.day)
    return standing_words(held.standing, desk)


def _line(desk: RequestContext, row: ReviewHistoryRow) -> HistoryLine:
    day = format_date_with_year(desk.learner.study_day(from_milliseconds(row.at)))
    until = format_date_with_year(dt.date.fromisoformat(row.until_day)) if row.until_day else ""
    said = {
        "bury": f"Skipped until {until}",
        "due": f"Due date set to {until}",
        "forget": "Reset to new",
    }
    return HistoryLine(day, said.get(row.act) or _GRADES[row.rating], bool(row.undone))
