"""What the card pages accept: filter, grade, undo, manual edit."""

from typing import Annotated, Literal, TypeVar
from urllib.parse import parse_qsl

from fastapi import Form as fastapi_Form
from fastapi import Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field, ValidationError

from app.errors import InvalidInputError
from app.web.dependencies import LAST_ROW, Address

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
Undone = Annotated[UndoForm, fastapi_Form()]
Suspended = Annotated[SuspensionForm, fastapi_Form()]
Acted = Annotated[ManualEditForm, fastapi_Form()]
Chosen = Annotated[AddCardForm, fastapi_Form()]

Form = TypeVar("Form", bound=BaseModel)
_MOST_FIELDS = 200
_PLAIN = "application/x-www-form-urlencoded"


async def parse_form(request: Request, form: type[Form]) -> Form:
    """The fields of a posted form as a route gets them that declares `Form`.

    A field left empty is one that was not sent. Raises RequestValidationError.
    """
    fields = await _fields(request)
    try:
        return form.model_validate({n: v for n, v in fields.items() if v != ""})
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from None


async def _fields(request: Request) -> dict[str, str]:
    if not request.headers.get("content-type", "").startswith(_PLAIN):
        async with request.form(max_files=0, max_fields=_MOST_FIELDS) as parts:
            return {n: v for n, v in parts.items() if isinstance(v, str)}
    body = (await request.body()).decode(errors="replace")
    try:
        pairs = parse_qsl(body, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise InvalidInputError(f"There are more than {_MOST_FIELDS} fields.") from None
    return dict(pairs)
