"""Pages to write and edit an own card, and to edit a course card."""

import dataclasses
import hashlib
import json
import re
from html import escape
from typing import Annotated, Any, NamedTuple
from urllib.parse import quote

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, table

from app.accounts.current_learner import (
    ReadContext,
    RequestContext,
    WriteContext,
    count_bytes_toward_quota,
    refuse_cards_when_storage_or_quota_full,
    run_in_read_session,
    run_in_write_transaction,
)
from app.errors import ConflictError, NotFoundError
from app.questions.question_form import make_submission_token
from app.questions.question_type import CardFacesHtml
from app.spaced_repetition import added_cards
from app.spaced_repetition.added_card_ids_and_faces import (
    LONGEST_FACE,
    OWN,
    build_own_card,
    sanitize_card_html,
)
from app.spaced_repetition.added_cards import CardToAdd, OwnCardContent, add_cards

MAX_SIDE_LENGTH = 4_000
"""Maximum length of one side in characters."""
MOST_CELLS = 500
"""Maximum number of table cells of one side, with the cells that a short row leaves out."""
_CLOZE_GAP = re.compile(r"\{\{(?:c\d+::)?(?P<word>[^{}]+?)(?:::(?P<hint>[^{}:]+))?\}\}")
_GAP_PLACEHOLDER = re.compile("\ue000(\\d+)\ue001")
Problems = list[dict[str, str]]


def _parse_table_within_cell_limit(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Run the table rule of markdown-it, and count the cells in `state.env`.

    The rule fills short rows: 4,000 characters can make 65,536 cells, which take seconds. So it
    gets only as many rows as are needed to exceed the limit.
    """
    if not table(state, start, end, True):
        return False
    if silent:
        return True
    rule_start = state.bMarks[start + 1] + state.tShift[start + 1]
    delimiter_row = state.src[rule_start : state.eMarks[start + 1]]
    columns = sum(bool(mark.strip()) for mark in delimiter_row.split("|"))
    cells_left = max(0, MOST_CELLS - state.env["cells"])
    table(state, start, min(end, start + 2 + cells_left // columns), False)
    if (state.line - start - 1) * columns > cells_left:
        while state.line < end and not state.isEmpty(state.line):
            state.line += 1  # count the row for the error message, but do not render it
    state.env["cells"] += (state.line - start - 1) * columns
    return True


_markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
_markdown.block.ruler.at(
    "table", _parse_table_within_cell_limit, {"alt": ["paragraph", "reference"]}
)


@dataclasses.dataclass(frozen=True, slots=True)
class OwnCardDraft:
    """The two sides as typed. A front with gaps needs no back."""

    front: str
    back: str = ""

    @property
    def problems(self) -> Problems:
        """The problems by field that can be found without rendering."""
        messages = []
        for field, text in (("front", self.front), ("back", self.back)):
            if len(text) > MAX_SIDE_LENGTH:
                message = f"At most {MAX_SIDE_LENGTH:,} characters; this has {len(text):,}."
                messages.append({"field": field, "message": message})
        if not self.front.strip():
            messages.append({"field": "front", "message": "Write what the card asks."})
        elif not self.back.strip() and not _CLOZE_GAP.search(self.front):
            message = "Write the answer, or hide a word of the front in {{double braces}}."
            messages.append({"field": "back", "message": message})
        return messages


@dataclasses.dataclass(frozen=True, slots=True)
class RenderedCard:
    """A card as typed, its two sides as sanitized HTML, and the problems by field."""

    typed: OwnCardDraft
    faces: CardFacesHtml
    problems: Problems

    @property
    def content_to_store(self) -> OwnCardContent:
        """The card as it is stored; `restore_typed_draft` parses its JSON."""
        typed_source_json = json.dumps([self.typed.front, self.typed.back], ensure_ascii=False)
        return OwnCardContent(self.faces, typed_source_json)

    @property
    def stored_bytes(self) -> int:
        texts = (self.faces.front, self.faces.back, self.content_to_store.typed_source_json)
        return sum(len(text.encode()) for text in texts)


def render_card(typed: OwnCardDraft) -> RenderedCard:
    """Render both sides, in up to 0.1 s: gaps are open on the front and filled on the back."""
    if typed.problems:
        return RenderedCard(typed, CardFacesHtml("", ""), typed.problems)
    answers: list[str] = []
    hints: list[str] = []

    def mark_gap(gap: re.Match[str]) -> str:
        answers.append(gap["word"])
        hints.append(gap["hint"] or "…")
        return f"\ue000{len(answers) - 1}\ue001"

    front_source = typed.front.replace("\ue000", "").replace("\ue001", "")
    sides = {
        "front": _render_side(_CLOZE_GAP.sub(mark_gap, front_source)),
        "back": _render_side(typed.back),
    }
    problems = [
        {
            "field": field,
            "message": f"The {field} has {side.cell_count:,} table cells, empty ones included, and "
            f"at most {MOST_CELLS} are taken. Write fewer rows or columns.",
        }
        for field, side in sides.items()
        if side.cell_count > MOST_CELLS
    ]
    if problems:
        return RenderedCard(typed, CardFacesHtml("", ""), problems)
    front = _fill_cloze(sides["front"].html, [f"[{hint}]" for hint in hints])
    back = sides["back"].html
    if answers:
        back = _fill_cloze(sides["front"].html, answers) + back
    # Anki trims fields, so untrimmed sides would count as changed on import.
    faces = CardFacesHtml(sanitize_card_html(front).strip(), sanitize_card_html(back).strip())
    problems = [
        {
            "field": field,
            "message": f"The {field} has {len(face):,} characters once it is made "
            f"into HTML, and at most {LONGEST_FACE:,} are taken. Write less, or split "
            "the card.",
        }
        for field, face in faces._asdict().items()
        if len(face) > LONGEST_FACE
    ]
    return RenderedCard(typed, faces, problems)


class RenderedSide(NamedTuple):
    html: str
    cell_count: int


def _render_side(text: str) -> RenderedSide:
    env: dict[str, Any] = {"cells": 0}
    return RenderedSide(_markdown.render(text, env), env["cells"])


def restore_typed_draft(typed_source_json: str, faces: CardFacesHtml) -> OwnCardDraft | None:
    """Return what was typed for a card; None if its sides were changed in another way since."""
    if not typed_source_json:
        return None
    typed = OwnCardDraft(*json.loads(typed_source_json))
    rendered = render_card(typed)
    # Cards saved before trimming was introduced end with a newline. Those saved before the size
    # limit existed have problems.
    trimmed = CardFacesHtml(faces.front.strip(), faces.back.strip())
    return typed if rendered.problems or rendered.faces == trimmed else None


def _fill_cloze(html: str, gap_texts: list[str]) -> str:
    return _GAP_PLACEHOLDER.sub(lambda gap: f"<b>{escape(gap_texts[int(gap[1])])}</b>", html)


router = APIRouter()
_Words = Annotated[str, Form()]
_MEDIA_TYPE_BY_SUFFIX = {"jpg": "image/jpeg"}
_A_YEAR = 31_536_000


@router.get("/pictures/{name}")
def show_own_picture(ctx: ReadContext, name: str) -> Response:
    """A picture of an own card. The content of a name never changes."""
    content = added_cards.load_own_card_picture(ctx.db, ctx.learner.id, name)
    if content is None:
        raise NotFoundError("There is no such picture on a card of yours.")
    extension = name.rpartition(".")[2]
    return Response(
        content,
        media_type=_MEDIA_TYPE_BY_SUFFIX.get(extension, f"image/{extension}"),
        headers={"cache-control": f"private, max-age={_A_YEAR}, immutable"},
    )


@router.get("/own")
def show_new_card_form(ctx: ReadContext) -> HTMLResponse:
    return _render_card_form(ctx, OwnCardDraft(""))


def render_posted_card(front: _Words = "", back: _Words = "") -> RenderedCard:
    """Return the card that was sent, with its problems. FastAPI runs this in a thread."""
    sides = (text.replace("\r\n", "\n").strip() for text in (front, back))
    return render_card(OwnCardDraft(*sides))


SentCard = Annotated[RenderedCard, Depends(render_posted_card)]


@router.post("/own", dependencies=[Depends(refuse_cards_when_storage_or_quota_full)])
async def add_own_card(request: Request, form: SentCard, token: _Words = "") -> Response:
    """Save a new card, due from today on."""
    if form.problems:
        return await run_in_read_session(
            request, lambda ctx: _render_refused_draft(ctx, form, token=token)
        )
    try:
        await run_in_write_transaction(request, lambda ctx: _save_new_own_card(ctx, form, token))
    except ConflictError as error:
        conflict = f"{error.message} {error.hint}"
        return await run_in_read_session(
            request, lambda ctx: _render_refused_draft(ctx, form, token=token, conflict=conflict)
        )
    count_bytes_toward_quota(request, form.stored_bytes)
    return RedirectResponse("/flashcards/own?kept=yes", 303)


def _save_new_own_card(ctx: RequestContext, rendered: RenderedCard, token: str) -> None:
    identity = f"{ctx.learner.key}:{token or make_submission_token()}"
    card = f"{OWN}:{hashlib.sha256(identity.encode()).hexdigest()[:32]}"
    added_cards.insert_own_card(ctx.db, ctx.learner.id, card, rendered.content_to_store, ctx.now)
    add_cards(ctx.db, ctx.learner.id, [CardToAdd(card)], ctx.study_day, ctx.now)


@router.get("/own/{card}")
def show_own_card_form(ctx: ReadContext, card: str) -> HTMLResponse:
    """The card as it was typed, or the text of an imported or a course card."""
    own_card = _load_text_of_editable_card(ctx, card)
    typed = own_card and restore_typed_draft(own_card.typed_source_json, own_card.faces)
    if typed:
        return _render_card_form(ctx, typed, card)
    shown = build_own_card(card, own_card.faces) if own_card else ctx.course.cards[card]
    tags = (
        side.html.removeprefix("<p>").removesuffix("</p>") for side in (shown.front, shown.back)
    )
    return _render_card_form(
        ctx,
        OwnCardDraft(shown.front.plain, shown.back.plain),
        card,
        lacks_formatting=any("<" in html for html in tags),
    )


@router.post("/own/{card}", dependencies=[Depends(refuse_cards_when_storage_or_quota_full)])
async def change_own_card(request: Request, card: str, form: SentCard) -> Response:
    if form.problems:
        return await run_in_read_session(
            request, lambda ctx: _render_refused_draft(ctx, form, card)
        )
    try:
        await run_in_write_transaction(request, lambda ctx: _save_changed_card(ctx, card, form))
    except ConflictError as error:
        conflict = f"{error.message} {error.hint}"
        return await run_in_read_session(
            request, lambda ctx: _render_refused_draft(ctx, form, card, conflict=conflict)
        )
    count_bytes_toward_quota(request, form.stored_bytes)
    return RedirectResponse(f"/flashcards/own/{card}?kept=yes", 303)


def _save_changed_card(ctx: RequestContext, card: str, rendered: RenderedCard) -> None:
    db, learner, content = ctx.db, ctx.learner.id, rendered.content_to_store
    is_edited = _load_text_of_editable_card(ctx, card) is not None
    if is_edited or not added_cards.insert_own_card(db, learner, card, content, ctx.now, deck=""):
        added_cards.update_own_card_text(db, learner, card, content)


@router.post("/own/{card}/original")
def restore_course_text(ctx: WriteContext, card: str) -> Response:
    """Show a course card with the course's text again; what was learned stays."""
    if card not in ctx.course.cards:
        raise NotFoundError(f"There is no card “{card}” in the course.")
    added_cards.delete_own_text_of_course_card(ctx.db, ctx.learner.id, card)
    return RedirectResponse(f"/flashcards?card={quote(card)}", 303)


def _load_text_of_editable_card(ctx: RequestContext, card: str) -> OwnCardContent | None:
    """Return the learner's text of a card; None for a course card that they did not edit."""
    own_card = added_cards.load_own_card(ctx.db, ctx.learner.id, card) if ctx.learner.id else None
    if own_card is None and card not in ctx.course.cards:
        raise NotFoundError(f"There is no card “{card}” of yours.")
    return own_card


def _render_refused_draft(
    ctx: RequestContext,
    rendered: RenderedCard,
    card: str = "",
    *,
    token: str = "",
    conflict: str = "",
) -> HTMLResponse:
    """Return the form with everything that was typed, and its problems or the conflict."""
    if card:
        _load_text_of_editable_card(ctx, card)
    problems = [{"field": "front", "message": conflict}] if conflict else rendered.problems
    status = 409 if conflict else 422
    return _render_card_form(
        ctx, rendered.typed, card, token=token, status=status, problems=problems
    )


def _render_card_form(
    ctx: RequestContext, draft: OwnCardDraft, card: str = "", *, token: str = "", **more: Any
) -> HTMLResponse:
    defaults = {"lacks_formatting": False, "problems": []}
    learner_id, course_cards = ctx.learner.id, [card] if card in ctx.course.cards else []
    return ctx.render_page(
        "flashcards/own.html",
        draft=draft,
        card=card,
        token=token or make_submission_token(),
        is_edited=bool(
            added_cards.load_own_texts_of_course_cards(ctx.db, learner_id, course_cards)
        ),
        saved=ctx.request.query_params.get("kept") == "yes",
        **{**defaults, **more},
    )
