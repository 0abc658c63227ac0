"""Notes and bookmarks."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, Field

from app.accounts.current_learner import CurrentLearner, ReadContext, WriteContext
from app.content.course import Course
from app.content.reading_routes import ReadingRoute
from app.database.engine import DbSession
from app.errors import InvalidInputError
from app.lessons import store
from app.lessons.store import SavedNote
from app.markup.model import Topic
from app.questions.question_type import normalize_search_text, split_search_query
from app.web.dependencies import CurrentCourse, public_base_url, require_topic
from app.web.render import render_fragment_or_redirect, render_page


@dataclasses.dataclass(frozen=True, slots=True)
class NotedSection:
    """A section with the learner's note; `url` is the URL of the section."""

    title: str
    url: str
    note: SavedNote


@dataclasses.dataclass(frozen=True, slots=True)
class PageWithNotes:
    slug: str
    title: str
    sections: tuple[NotedSection, ...]


def pair_sections_with_notes(
    topic: Topic, saved_notes: Sequence[SavedNote], reading_route: ReadingRoute = "full"
) -> tuple[NotedSection, ...]:
    """Return every section of a page, then the notes whose section was removed.

    Their addresses are on `reading_route`.
    """
    by_section = {note.section_anchor: note for note in saved_notes}
    titled_sections = [s for s in topic.sections if s.anchor]
    current_sections = [
        _build_noted_section(
            topic, s.anchor, s.title, by_section.pop(s.anchor, None), reading_route
        )
        for s in titled_sections
    ]
    removed_sections = [
        _build_noted_section(topic, anchor, anchor, note, reading_route)
        for anchor, note in by_section.items()
    ]
    return tuple(current_sections + removed_sections)


def group_notes_by_page(
    course: Course, saved_notes: Sequence[SavedNote]
) -> tuple[PageWithNotes, ...]:
    """Return all notes by page in course order; those of removed pages come last."""
    by_topic: dict[str, list[SavedNote]] = {}
    for note in saved_notes:
        by_topic.setdefault(note.topic, []).append(note)
    order = [s for s in (*course.syllabus.topics, *course.topics) if s in by_topic]
    ordered = dict.fromkeys([*order, *by_topic])
    return tuple(
        _build_notes_of_course_page(course.topics, slug, by_topic[slug]) for slug in ordered
    )


def filter_notes(pages: Sequence[PageWithNotes], query: str) -> tuple[PageWithNotes, ...]:
    """Return the notes that contain every word of the query, titles included."""
    words = split_search_query(query)
    matching_pages = []
    for page in pages:
        matching_sections = tuple(
            section
            for section in page.sections
            if _contains_all_words(f"{page.title} {section.title} {section.note.text}", words)
        )
        if matching_sections:
            matching_pages.append(dataclasses.replace(page, sections=matching_sections))
    return tuple(matching_pages)


def _contains_all_words(text: str, words: Sequence[str]) -> bool:
    folded = normalize_search_text(text)
    return all(word in folded for word in words)


def format_notes_as_markdown(pages: Sequence[PageWithNotes], base_url: str) -> str:
    """Return the notes as a Markdown file; `base_url` is that of this server."""
    parts = ["# Notes"]
    for page in pages:
        parts.append(f"## {page.title}")
        for section in page.sections:
            bookmark_label = " (bookmark)" if section.note.is_bookmarked else ""
            parts.append(f"### [{section.title}]({base_url}{section.url}){bookmark_label}")
            parts += [section.note.text] if section.note.text else []
    return "\n\n".join(parts) + "\n"


def _build_notes_of_course_page(
    topics: Mapping[str, Topic], slug: str, notes_of_page: Sequence[SavedNote]
) -> PageWithNotes:
    topic = topics.get(slug)
    if topic is None:
        sections = tuple(
            NotedSection(n.section_anchor, f"/concepts/{slug}", n) for n in notes_of_page
        )
        return PageWithNotes(slug, slug, sections)
    noted_anchors = {note.section_anchor for note in notes_of_page}
    all_sections = pair_sections_with_notes(topic, notes_of_page)
    return PageWithNotes(
        slug, topic.title, tuple(p for p in all_sections if p.note.section_anchor in noted_anchors)
    )


def _build_noted_section(
    topic: Topic, anchor: str, title: str, note: SavedNote | None, reading_route: ReadingRoute
) -> NotedSection:
    address = f"/concepts/{topic.slug}{_format_route_query(reading_route)}#{anchor}"
    return NotedSection(title, address, note or SavedNote(topic.slug, anchor))


def _format_route_query(reading_route: ReadingRoute) -> str:
    return "?route=short" if reading_route == "short" else ""


MAX_NOTE_LENGTH = 10_000


class NoteForm(BaseModel):
    """A note as typed; an empty one without a bookmark deletes the note.

    It was written `beside` its section, or on the notes page; `route` is that on which the page is
    read. `shown` is the text that was in the field at first, after a “=”; empty if not sent.
    """

    section: str = Field(max_length=120)
    words: str = ""
    marked: bool = False
    beside: bool = False
    route: ReadingRoute = "full"
    shown: str = ""

    def merge_with_saved_text(self, topic: str, saved_text: str = "") -> SavedNote:
        """Return the note with normalized line ends, trimmed.

        Text in `saved_text` that another tab saved in the meantime is preserved: alone if this tab
        changed nothing, above its own text if it did.
        """
        text, shown_text = (
            _normalize_line_ends_and_trim(self.words),
            _normalize_line_ends_and_trim(self.shown[1:]),
        )
        if self.shown and saved_text not in {shown_text, text}:
            text = (
                saved_text
                if text == shown_text
                else "\n\n".join(part for part in (saved_text, text) if part)
            )
        return SavedNote(topic, self.section, text, self.marked)


def _normalize_line_ends_and_trim(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


router = APIRouter(include_in_schema=False)


async def require_topic_in_url(topic: str, course: CurrentCourse) -> Topic:
    """Return the topic in the URL; raises NotFoundError."""
    return require_topic(course, topic)


@router.get("/notes")
def show_all_notes(ctx: ReadContext, q: Annotated[str, Query(max_length=200)] = "") -> HTMLResponse:
    pages = group_notes_by_page(ctx.course, store.load_saved_notes(ctx.db, ctx.learner.id))
    return ctx.render_page(
        "lessons/notes.html", leaves=filter_notes(pages, q), written=bool(pages), q=q
    )


@router.get("/notes.md")
def download_notes(ctx: ReadContext) -> Response:
    pages = group_notes_by_page(ctx.course, store.load_saved_notes(ctx.db, ctx.learner.id))
    return Response(
        format_notes_as_markdown(pages, public_base_url(ctx.request)),
        media_type="text/markdown; charset=utf-8",
        headers={"content-disposition": 'attachment; filename="headroom-notes.md"'},
    )


def _render_section_note(
    request: Request, topic: Topic, noted_section: NotedSection, reading_route: ReadingRoute
) -> Response:
    return render_fragment_or_redirect(
        request,
        "lessons/_section_notes.html",
        redirect_url=f"{noted_section.url.partition('#')[0]}#n-{noted_section.note.section_anchor}",
        slug=topic.slug,
        anchor=noted_section.note.section_anchor,
        title=noted_section.title,
        note=noted_section.note,
        route=reading_route,
        saved=True,
    )


@router.get("/concepts/{topic}/notes")
def show_topic_notes(
    request: Request,
    page_topic: Annotated[Topic, Depends(require_topic_in_url)],
    learner: CurrentLearner,
    db: DbSession,
    reading_route: Annotated[ReadingRoute, Query(alias="route")] = "full",
) -> HTMLResponse:
    return render_page(
        request,
        "lessons/topic_notes.html",
        learner=learner,
        topic=page_topic,
        longest=MAX_NOTE_LENGTH,
        saved=False,
        route=reading_route,
        places=pair_sections_with_notes(
            page_topic, store.load_saved_notes(db, learner.id, page_topic.slug), reading_route
        ),
    )


@router.post("/concepts/{topic}/notes")
def save_section_note(
    form: Annotated[NoteForm, Form()],
    page_topic: Annotated[Topic, Depends(require_topic_in_url)],
    ctx: WriteContext,
) -> Response:
    saved_texts = {
        n.section_anchor: n.text
        for n in store.load_saved_notes(ctx.db, ctx.learner.id, page_topic.slug)
    }
    note = form.merge_with_saved_text(page_topic.slug, saved_texts.get(form.section, ""))
    known_anchors = {*saved_texts}
    known_anchors |= {s.anchor for s in page_topic.sections if s.anchor}
    if note.section_anchor not in known_anchors:
        raise InvalidInputError(f"This page has no section “{note.section_anchor}”.", "section")
    if len(note.text) > MAX_NOTE_LENGTH:
        message = f"A note has at most {MAX_NOTE_LENGTH:,} characters; this has {{}}."
        raise InvalidInputError(message.format(f"{len(note.text):,}"), "words")
    store.replace_or_delete_note(ctx.db, ctx.learner.id, note, ctx.now)
    sections = pair_sections_with_notes(page_topic, [note], form.route)
    if form.beside:
        return _render_section_note(
            ctx.request, page_topic, next(p for p in sections if p.note == note), form.route
        )
    return render_fragment_or_redirect(
        ctx.request,
        "lessons/_note.html",
        redirect_url=f"/concepts/{page_topic.slug}/notes{_format_route_query(form.route)}#n-{note.section_anchor}",
        topic=page_topic,
        route=form.route,
        longest=MAX_NOTE_LENGTH,
        place=next(p for p in sections if p.note.section_anchor == note.section_anchor),
        saved=True,
    )
