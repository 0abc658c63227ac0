"""What a page says of a question that was missed: whether it comes back, and when."""

import dataclasses
import datetime as dt

from sqlmodel import Session

from app.cards.names import parse_card_id, question_card_id
from app.cards.store import added_cards
from app.web.words import format_date_with_year


@dataclasses.dataclass(frozen=True, slots=True)
class MissedQuestionCard:
    """A question among the learner's cards; `due` is a study day, `day` today's.

    `declined` says that it was left out, `aside` that its card was put aside.
    """

    card: str
    due: dt.date
    day: dt.date
    declined: bool
    aside: bool

    @property
    def item(self) -> str:
        """The question."""
        return parse_card_id(self.card)[1]

    @property
    def when(self) -> str:
        """The day in words."""
        days = (self.due - self.day).days
        if days <= 0:
            return "today"
        return "tomorrow" if days == 1 else f"on {format_date_with_year(self.due)}"


def comeback_of(db: Session, learner_id: int, item: str, day: dt.date) -> MissedQuestionCard | None:
    """Whether a question comes back to a learner; None where it was never missed."""
    card = question_card_id(item)
    added = added_cards(db, learner_id, [card]).get(card)
    if added is None:
        return None
    aside = added.aside and not added.declined
    return MissedQuestionCard(card, added.due or day, day, added.declined, aside)
