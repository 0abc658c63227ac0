"""The learner's own part of the deck: missed questions, terms, cards of their own."""

import dataclasses
import datetime as dt

from app.cards.names import QUESTION, TERM, parse_card_id
from app.cards.store import AddedCardRecord, added_count, added_page
from app.flashcards.finding import ResolvedCard
from app.flashcards.review_table import find_cards_once, todays_plan
from app.flashcards.toward_exam import aim_of
from app.learners.desk import RequestContext
from app.questions.asking import excerpt
from app.scheduling import LEECH, CardState, before_exam
from app.web.words import format_date_with_year

_PAGE = 30
_KINDS = {QUESTION: "question", TERM: "term"}


@dataclasses.dataclass(frozen=True, slots=True)
class ListedCard:
    """A card in a list: its front in short, and how it stands in words.

    `kind` says what an added card is of; `aside` that it was put aside, `declined`
    that it was left out, `gone` that the course no longer holds what it rests on.
    """

    card: str
    words: str
    state: str
    aside: bool
    leech: bool
    kind: str = ""
    declined: bool = False
    gone: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class OwnCardsPage:
    """One page of the added cards, the newest first, of `count` in all."""

    rows: tuple[ListedCard, ...]
    page: int
    pages: int
    count: int


def own_cards(desk: RequestContext, wanted: int) -> OwnCardsPage:
    """The page `wanted` of the added cards, or the last where there are fewer."""
    db, learner = desk.db, desk.learner.id
    count = added_count(db, learner)
    pages = max(1, -(-count // _PAGE))
    number = min(max(wanted, 1), pages)
    added = added_page(db, learner, most=_PAGE, after=(number - 1) * _PAGE)
    found = find_cards_once(desk, [one.card for one in added])
    rows = tuple(row_of(desk, one, found.get(one.card)) for one in added)
    return OwnCardsPage(rows, number, pages, count)


def row_of(desk: RequestContext, added: AddedCardRecord, found: ResolvedCard | None) -> ListedCard:
    """An added card as a list shows it."""
    kind, name = parse_card_id(added.card)
    return ListedCard(
        card=added.card,
        words=excerpt(found.card.front) if found else name,
        state=state_words(added.state, added.due, desk.day),
        aside=added.aside and not added.declined,
        leech=added.lapses >= LEECH,
        kind=_KINDS.get(kind, "own card"),
        declined=added.declined,
        gone=found is None,
    )


def state_words(state: str, due: dt.date | None, day: dt.date) -> str:
    """How a card stands: being learned, or the study day it is due on.

    What was left in its steps on an earlier day is due, and an added card that was
    never graded is new, as the desk counts them.
    """
    if due is None:
        return "new"
    days = (due - day).days
    if state not in {"review", "new"} and days >= 0:
        return "being learned"
    if days <= 0 and state == "new":
        return "new"
    if days <= 0:
        return "due"
    return "due tomorrow" if days == 1 else f"due {format_date_with_year(due)}"


def standing_words(standing: CardState | None, desk: RequestContext) -> str:
    """How a card of the course stands, an exam ahead reckoned in."""
    if standing is None:
        return "new"
    aim = aim_of(desk.learner, desk.day)
    if aim and before_exam(standing, aim.exam) != standing:
        plan = todays_plan(desk)
        short = plan is not None and plan.outline.short
        return "due after your exam" if short else "once more before your exam"
    return state_words(standing.state, standing.due_day, desk.day)
