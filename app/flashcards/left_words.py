"""The cards that a day still holds in words, the same on every page; one of them."""

import dataclasses
import datetime as dt

from app.flashcards.store import Held
from app.scheduling import Left, recall
from app.web.words import count_of


@dataclasses.dataclass(frozen=True, slots=True)
class Counter:
    """How many cards of a kind are left; `here` says that the one shown is of it."""

    name: str
    count: int
    here: bool = False


def counters_of(left: Left, kind: str = "") -> tuple[Counter, ...]:
    """New, learning and due cards left, as the card before the learner is of `kind`.

    The same counts as in `made_of`, and together all that is left.

    >>> [c.count for c in counters_of(Left(due=7, waiting=2, fresh=15, learning=1))]
    [15, 3, 6]
    """
    due = "Once more" if left.final else "Due"
    return (
        Counter("New", left.fresh, kind == "new"),
        Counter("Learning", left.steps, kind == "learning"),
        Counter(due, left.reviews, kind == "due"),
    )


def made_of(left: Left) -> str:
    r"""What the cards left are; empty where none are.

    >>> made_of(Left(due=7, waiting=2, fresh=15, learning=1))
    '6\xa0reviews, 15\xa0new\xa0cards, 3\xa0still being learned'
    """
    said = []
    if left.reviews and left.final:
        said.append(f"{left.reviews:,}\N{NO-BREAK SPACE}to see once more")
    elif left.reviews:
        said.append(count_of(left.reviews, "review"))
    if left.fresh:
        said.append(count_of(left.fresh, "new card"))
    if left.steps:
        said.append(f"{left.steps:,}\N{NO-BREAK SPACE}still being learned")
    return ", ".join(said)


def asking_words(held: Held, day: dt.date, origin: str) -> str:
    """What is said below a card that is asked: where it is from, how it stands."""
    standing = held.standing
    if standing is None:
        return f"{origin or 'A new card.'} Say the answer aloud or write it down first."
    if standing.state != "review":
        origin = origin or "You are learning this card."
        return f"{origin} Say the answer aloud first."
    days = max(0, (day - standing.last_day).days)
    ago = "today" if not days else "yesterday" if days == 1 else f"{days} days ago"
    chance = round(recall(standing, day) * 100)
    return (
        f"{origin} Say it aloud or write it down first. "
        f"Last seen {ago}; about {chance}% likely you still know it."
    ).lstrip()
