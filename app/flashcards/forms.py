"""What may be sent about a card."""

from typing import Annotated, Literal

from fastapi import Form, Query
from pydantic import BaseModel, Field

from app.web.addresses import LAST_ROW, Address

Topic = Annotated[str, Field(max_length=80)]
More = Annotated[int, Field(ge=0, le=200)]


class ReviewFilterForm(BaseModel):
    """Which cards: one topic or all, and how many new ones beyond the day's share.

    `card` asks for one card, `show` for its answer, and `token` says which showing of
    it asks; `graded` is the grade that a showing had when it was graded once more.
    `leech` names a card that does not stick, to be said before the next one. `own` is
    a page of the cards added, `q` are words to be looked for on all cards.
    """

    topic: Topic = ""
    more: More = 0
    card: str = Field("", max_length=120)
    leech: str = Field("", max_length=120)
    show: bool = False
    token: str = Field("", max_length=140)
    graded: int = Field(0, ge=0, le=4)
    own: int = Field(1, ge=1, le=10**6)
    q: str = Field("", max_length=200)
    since: int = Field(0, ge=0, lt=2**53)


class GradeForm(BaseModel):
    """A grade: 1 again, 2 hard, 3 good, 4 easy.

    One that waited in the browser says when it was `given` (milliseconds since 1970,
    by the clock of the browser) and by `who`: the mark of the learner it belongs to.
    """

    rating: int = Field(ge=1, le=4)
    token: str = Field(min_length=1, max_length=140)
    topic: Topic = ""
    more: More = 0
    since: int = Field(0, ge=0, lt=2**53)
    given: int = Field(0, ge=0, lt=2**43)
    who: str = Field("", max_length=64)


class UndoForm(BaseModel):
    """The grade to be undone, by its number."""

    review: int = Field(ge=1, le=LAST_ROW)
    topic: Topic = ""
    more: More = 0


class SuspensionForm(BaseModel):
    """Whether a card is put aside."""

    aside: bool
    topic: Topic = ""
    more: More = 0
    deck: bool = False


class ManualEditForm(BaseModel):
    """What is set by hand to a card; `day` is an ISO date for a due date.

    `page` says that the page about the card asked, not the desk.
    """

    act: Literal["bury", "due", "forget"]
    token: str = Field(min_length=1, max_length=140)
    day: str = Field("", max_length=20)
    topic: Topic = ""
    more: More = 0
    page: bool = False


class AddCardForm(BaseModel):
    """Whether a card beside the decks is wanted, and the page that asked."""

    wanted: bool
    back: Address = ""


Wished = Annotated[ReviewFilterForm, Query()]
Undone = Annotated[UndoForm, Form()]
Suspended = Annotated[SuspensionForm, Form()]
Acted = Annotated[ManualEditForm, Form()]
Chosen = Annotated[AddCardForm, Form()]
