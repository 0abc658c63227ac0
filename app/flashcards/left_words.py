"""The cards that a day still holds in words: the same on every page."""

from app.scheduling import Left
from app.web.words import count_of


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
