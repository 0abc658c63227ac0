"""The cards that a day still holds in words: the same on every page."""

import dataclasses

from app.scheduling import CardsLeft
from app.web.words import format_count

_MOST = 0.5
_ALL = 0.95  # the count is of a sample: so nearly all are all


@dataclasses.dataclass(frozen=True, slots=True)
class QueueCounter:
    """How many cards of a kind are left; `here` says that the one shown is of it."""

    name: str
    count: int
    here: bool = False


def counters_of(left: CardsLeft, kind: str = "") -> tuple[QueueCounter, ...]:
    """New, learning and due cards left, as the card before the learner is of `kind`.

    The same counts as in `made_of`, and together all that is left.

    >>> [c.count for c in counters_of(CardsLeft(due=7, waiting=2, fresh=15, learning=1))]
    [15, 3, 6]
    """
    due = "Once more" if left.final else "Due"
    return (
        QueueCounter("New", left.fresh, kind == "new"),
        QueueCounter("Learning", left.steps, kind == "learning"),
        QueueCounter(due, left.reviews, kind == "due"),
    )


def describe_cards_left(left: CardsLeft) -> str:
    r"""What the cards left are; empty where none are.

    >>> describe_cards_left(CardsLeft(due=7, waiting=2, fresh=15, learning=1))
    '6\xa0reviews, 15\xa0new cards, 3\xa0still being learned'
    """
    said = []
    if left.reviews and left.final:
        said.append(f"{left.reviews:,}\N{NO-BREAK SPACE}to see once more")
    elif left.reviews:
        said.append(format_count(left.reviews, "review"))
    if left.fresh:
        said.append(format_count(left.fresh, "new card"))
    if left.steps:
        said.append(f"{left.steps:,}\N{NO-BREAK SPACE}still being learned")
    return ", ".join(said)


def over_words(over: int, passed: int) -> str:
    r"""What is said of cards that are due and wait; empty where none are.

    Of the `over` the plan asks about `passed` on no day before the exam.

    >>> over_words(3, 0).replace("\xa0", " ")
    '3 more cards are due and wait for another day'
    >>> over_words(3, 1).replace("\xa0", " ")
    '3 more cards are due; the plan has no time for about 1 of them before your exam'
    >>> over_words(138, 126).replace("\xa0", " ")
    '138 more cards are due; the plan has no time for most of them before your exam'
    >>> over_words(1, 1).replace("\xa0", " ")
    '1 more card is due; the plan has no time for it before your exam'
    """
    if not over:
        return ""
    one = over == 1
    due = f"{format_count(over, 'more card')} {'is' if one else 'are'} due"
    if not passed:
        return f"{due} and {'waits' if one else 'wait'} for another day"
    if passed >= _ALL * over:
        whom = "it" if one else "them"
    elif passed > _MOST * over:
        whom = "most of them"
    else:
        whom = f"about {passed:,} of them"
    return f"{due}; the plan has no time for {whom} before your exam"
