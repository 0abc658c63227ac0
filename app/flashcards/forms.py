"""Forms of the card pages: filter, rating, undo, manual edit."""

from typing import Annotated, Literal
from urllib.parse import parse_qsl

from fastapi import Query, Request
from pydantic import BaseModel, Field

from app.errors import InvalidInputError
from app.web.dependencies import LAST_ROW, Address, validate_form

CardTask = Literal["", "review", "new"]


class ReviewScopeForm(BaseModel):
    """Which cards: one topic or all, how many new ones more, or those of one task of the list."""

    topic: str = Field("", max_length=80)
    more: int = Field(0, ge=0, le=200)
    task: CardTask = ""


class CardPagesQuery(ReviewScopeForm):
    """Which cards to show.

    `card` requests one card, `show` its answer; `token` identifies the showing. `saved_rating` is
    that of a showing that was rated twice. `leech` names a card to warn about before the next one.
    `q` is a search query over all cards.
    """

    card: str = Field("", max_length=120)
    leech: str = Field("", max_length=120)
    show: bool = False
    token: str = Field("", max_length=140)
    saved_rating: int = Field(0, alias="graded", ge=0, le=4)
    added_cards_page: int = Field(1, alias="own", ge=1, le=10**6)
    q: str = Field("", max_length=200)
    shown_at_ms: int = Field(0, alias="since", ge=0, lt=2**53)


class RatingForm(ReviewScopeForm):
    """A rating: 1 again, 2 hard, 3 good, 4 easy.

    A rating sent later has `given`, its moment (milliseconds since 1970, by the browser's clock),
    and `who`, the marker of its learner.
    """

    rating: int = Field(ge=1, le=4)
    token: str = Field(min_length=1, max_length=140)
    shown_at_ms: int = Field(0, alias="since", ge=0, lt=2**53)
    given: int = Field(0, ge=0, lt=2**43)
    who: str = Field("", max_length=64)


class UndoForm(ReviewScopeForm):
    """The log id of the review to undo."""

    review: int = Field(ge=1, le=LAST_ROW)


class SuspensionForm(ReviewScopeForm):
    aside: bool
    deck: bool = False


class ManualEditForm(ReviewScopeForm):
    """A manual edit, from the card's own page if `page`; `day` is an ISO date for a due date."""

    act: Literal["bury", "due", "forget"]
    token: str = Field(min_length=1, max_length=140)
    day: str = Field("", max_length=20)
    page: bool = False


class CardWantedForm(BaseModel):
    """Whether to add a card to the learner's cards, and the page to return to."""

    wanted: bool
    back: Address = ""


ReviewFilterQuery = Annotated[CardPagesQuery, Query()]

_MOST_FIELDS = 200
_FORM_CONTENT_TYPE = "application/x-www-form-urlencoded"


async def parse_rating_form(request: Request) -> RatingForm:
    """Return a rating as FastAPI would for a declared `Form`: an empty field was not sent."""
    fields = await _form_fields(request)
    return validate_form(RatingForm, {name: value for name, value in fields.items() if value != ""})


async def _form_fields(request: Request) -> dict[str, str]:
    if not request.headers.get("content-type", "").startswith(_FORM_CONTENT_TYPE):
        async with request.form(max_files=0, max_fields=_MOST_FIELDS) as parts:
            return {n: v for n, v in parts.items() if isinstance(v, str)}
    body = (await request.body()).decode(errors="replace")
    try:
        pairs = parse_qsl(body, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise InvalidInputError(f"There are more than {_MOST_FIELDS} fields.") from None
    return dict(pairs)
