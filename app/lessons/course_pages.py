"""Course outline with the state of each objective, lesson, glossary, sources."""

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, Literal, get_args

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from app.accounts.current_learner import (
    CurrentLearner,
    ReadContext,
    RequestContext,
    WriteContext,
)
from app.clock import round_minutes
from app.content.course import Course
from app.content.course_facts import cached_course_facts
from app.content.link_and_picture_rules import PICTURE_SUFFIXES
from app.content.reading_routes import (
    ReadingRoute,
    are_essential_sections_read,
    build_page_url,
    has_course_short_route,
    list_sections_on_route,
    sum_reading_minutes_on_route,
)
from app.errors import InvalidInputError, NotFoundError
from app.lessons import store
from app.lessons.page_renderer import (
    RenderedPage,
    RenderedPageCache,
    build_cheat_sheet,
    list_pages_with_home_domain,
)
from app.markup.model import Domain, GlossaryTerm, Objective, Topic
from app.questions.question_form import OpenQuestion, build_open_question, excerpt_first_line
from app.spaced_repetition.added_card_ids_and_faces import TERM, parse_card_id
from app.spaced_repetition.added_cards import list_undeclined_cards_of_kind
from app.study_plan.day_list import DayList
from app.study_plan.loader import (
    DayListEnsured,
    build_next_day_list,
    find_planned_route,
    load_stored_day_list,
)
from app.study_plan.score import ScoreEstimate
from app.web.dependencies import CurrentCourse, require_topic
from app.web.render import render_fragment_or_redirect, render_page

ObjectiveState = Literal["ready", "begun", "new"]


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectiveProgress:
    """An objective with its state.

    `page_url` is the address of the first of its unread pages, which are counted without those
    beyond the exam, or of its first page if all are read.
    """

    objective: Objective
    state: ObjectiveState
    page_url: str
    unread_page_count: int


@dataclasses.dataclass(frozen=True, slots=True)
class DomainProgress:
    """A domain and its objectives, in the order of the syllabus."""

    domain: Domain
    objectives: tuple[ObjectiveProgress, ...]

    def count_objectives_in_state(self, state: ObjectiveState) -> int:
        return sum(objective.state == state for objective in self.objectives)

    @property
    def bar_width_percent(self) -> int:
        """The share of the exam in steps of 5%, which the style sheet turns into a width."""
        return max(5, round(self.domain.weight * 20) * 5)


def build_domain_progress(
    course: Course,
    ready_objectives: Collection[str],
    estimate: ScoreEstimate | None,
    opened_pages: Collection[str],
    read_pages: Collection[str],
    answered_questions: Collection[str],
    reading_route: ReadingRoute = "full",
) -> tuple[DomainProgress, ...]:
    """Return all domains with their objectives; the addresses of pages are on the route.

    `ready_objectives` are the objectives that were ready once, `opened_pages` and `read_pages` the pages that
    are begun and those read to the end, `answered_questions` at least the questions answered since the
    estimate.
    """
    answered_objectives = {
        number
        for item in answered_questions
        if item in course.questions
        for number in course.questions[item].objectives
    }
    topics = [course.topics[slug] for slug in course.syllabus.topics if slug in course.topics]

    def measure(objective: Objective) -> ObjectiveProgress:
        pages = [topic.slug for topic in topics if objective.number in topic.objectives]
        estimated = estimate.objectives.get(objective.number) if estimate else None
        state: ObjectiveState = "new"
        if objective.number in ready_objectives:
            state = "ready"
        elif (
            (estimated and estimated.answers)
            or objective.number in answered_objectives
            or any(page in opened_pages for page in pages)
        ):
            state = "begun"
        unread = [
            page for page in pages if page not in read_pages and not course.topics[page].level
        ]
        page = (unread or pages or [""])[0]
        return ObjectiveProgress(
            objective=objective,
            state=state,
            page_url=build_page_url(course.topics[page], reading_route) if page else "",
            unread_page_count=len(unread),
        )

    return tuple(
        DomainProgress(domain, tuple(map(measure, domain.objectives)))
        for domain in course.syllabus.domains
    )


@dataclasses.dataclass(frozen=True, slots=True)
class OutlineObjective:
    """An objective and its pages, in reading order.

    Each page is listed at one objective, the first that it names; at others it is in
    `topics_listed_elsewhere`.
    """

    objective: Objective
    topics_listed_here: tuple[Topic, ...]
    topics_listed_elsewhere: tuple[Topic, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class OutlineDomain:
    domain: Domain
    objectives: tuple[OutlineObjective, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class PageProgressOnRoute:
    """One page as far as a route covers it: minutes, sections, and how many of them were read."""

    minutes: float
    section_count: int
    read_section_count: int


def measure_progress_if_on_route(
    topic: Topic, reading_route: ReadingRoute, read_anchors: Collection[str]
) -> PageProgressOnRoute | None:
    """Return the progress on a page from the anchors that were read; None if skipped.

    A page without headings is one section with an empty anchor.
    """
    sections = list_sections_on_route(topic, reading_route)
    if not sections:
        return None
    anchors = {s.anchor for s in sections if s.anchor} or {""}
    return PageProgressOnRoute(
        sum_reading_minutes_on_route(topic, reading_route),
        len(anchors),
        len(anchors.intersection(read_anchors)),
    )


def build_outline(course: Course) -> tuple[OutlineDomain, ...]:
    """Return every objective of the syllabus with its pages."""
    ordered = [course.topics[s] for s in course.syllabus.topics if s in course.topics]
    ordered += [t for s, t in course.topics.items() if t not in ordered]
    return tuple(
        OutlineDomain(
            domain,
            tuple(
                OutlineObjective(
                    o,
                    tuple(t for t in ordered if o.number in t.objectives[:1]),
                    tuple(t for t in ordered if o.number in t.objectives[1:]),
                )
                for o in domain.objectives
            ),
        )
        for domain in course.syllabus.domains
    )


@dataclasses.dataclass(frozen=True, slots=True)
class SeeAlsoLink:
    """The target of a “see” reference."""

    text: str
    url: str


@dataclasses.dataclass(frozen=True, slots=True)
class GlossaryEntry:
    """A term under its initial; terms that start with no letter are under “#”."""

    term: GlossaryTerm
    initial: str
    see_also_links: tuple[SeeAlsoLink, ...]


def build_sorted_glossary_entries(course: Course) -> list[GlossaryEntry]:
    """Return every term in alphabetical order."""
    terms = sorted(course.glossary.values(), key=lambda t: t.name.casefold())
    pages = {slug: topic.title for slug, topic in course.topics.items()}
    return [
        GlossaryEntry(t, _initial_letter(t.name), _build_see_also_links(t, course.glossary, pages))
        for t in terms
    ]


def _initial_letter(name: str) -> str:
    first = name[:1].upper()
    return first if first.isalpha() else "#"


def _build_see_also_links(
    term: GlossaryTerm, glossary: Mapping[str, GlossaryTerm], pages: Mapping[str, str]
) -> tuple[SeeAlsoLink, ...]:
    links = (_build_see_also_link(see, glossary, pages) for see in term.see_also_anchors_or_urls)
    return tuple(x for x in links if f'href="{x.url}' not in term.meaning.html)


def _build_see_also_link(
    reference: str, glossary: Mapping[str, GlossaryTerm], pages: Mapping[str, str]
) -> SeeAlsoLink:
    if reference in glossary:
        return SeeAlsoLink(glossary[reference].name, f"#{reference}")
    slug = reference.removeprefix("/concepts/").split("#")[0]
    if slug in pages:
        return SeeAlsoLink(pages[slug], f"/concepts/{slug}")
    return SeeAlsoLink(reference.removeprefix("https://"), reference)


router = APIRouter(include_in_schema=False)
# An author's SVG file opened on its own is a document. This policy keeps it from running scripts.
_SOURCES_ON_A_PAGE = 400
_PICTURE_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'"


async def require_rendered_page(
    request: Request,
    topic: str,
    course: CurrentCourse,
    reading_route: Annotated[ReadingRoute, Query(alias="route")] = "full",
) -> RenderedPage:
    """Return the page in the URL on the route in the query; raises NotFoundError.

    `async`, because finding a cached page costs less than a thread.
    """
    page_cache: RenderedPageCache = request.app.state.sheets[request.state.course_name]
    page_topic = require_topic(course, topic)
    page = page_cache.get_if_rendered(course, page_topic, reading_route)
    if page is None:
        page = await run_in_threadpool(page_cache.get_or_render, course, page_topic, reading_route)
    return page


@dataclasses.dataclass(frozen=True, slots=True)
class NextPage:
    """The page to read next; `topic` is None if none is left.

    `is_on_day_list` says that the list of the day names pages, so that no other page comes next.
    """

    topic: Topic | None
    route: ReadingRoute
    is_on_day_list: bool

    @property
    def url(self) -> str:
        """The address of the page, or of Today if none is left."""
        return build_page_url(self.topic, self.route) if self.topic else "/"


def find_first_unread_page(
    course: Course,
    todays: DayList | None,
    sections_read: Mapping[str, Collection[str]],
    reading_route: ReadingRoute,
    left_page: str = "",
) -> NextPage:
    """Return the first unread page of today's list, or of the course if it names none.

    The `left_page` counts as read. A listed page is read once all is that the list asks for, a page
    of the course once its essential sections are.
    """
    pages = [page for task in todays.tasks for page in task.pages] if todays else []
    routes: dict[str, ReadingRoute] = {
        page.slug: "short" if page.short else "full" for page in pages
    }
    listed = [slug for slug in routes if slug in course.topics]
    for slug in listed or cached_course_facts(course).pages:
        topic, anchors = course.topics[slug], sections_read.get(slug, ())
        is_read = are_essential_sections_read(topic, anchors)
        if routes.get(slug) == "full":
            is_read = all(not s.anchor or s.anchor in anchors for s in topic.sections)
        page_route = routes.get(slug, reading_route)
        if not is_read and slug != left_page and list_sections_on_route(topic, page_route):
            return NextPage(topic, page_route, bool(listed))
    return NextPage(None, reading_route, bool(listed))


def find_next_page_across_day_lists(
    ctx: RequestContext,
    reading_route: ReadingRoute,
    sections_read: Mapping[str, Collection[str]] | None = None,
) -> NextPage:
    """Return the page to read next, on this day or the next one with pages.

    It is the first unread page of today's list, then the first one of the next list if that were
    made now, with or without an exam day. If neither has pages, it is the first unread page of the
    course, but none once no day before the exam has pages.
    """
    course, todays = ctx.course, load_stored_day_list(ctx)
    if sections_read is None:
        sections_read = store.load_anchors_read_by_topic(ctx.db, ctx.learner.id)
    if todays is not None:
        listed = find_first_unread_page(course, todays.day_list, sections_read, reading_route)
        if listed.is_on_day_list and listed.topic:
            return listed
        coming = build_next_day_list(ctx)
        if coming is None:
            return NextPage(None, reading_route, is_on_day_list=False)
        following = find_first_unread_page(course, coming, sections_read, reading_route)
        if following.is_on_day_list:
            return following
    return find_first_unread_page(course, None, sections_read, reading_route)


def _find_next_page_after_reading(
    ctx: RequestContext,
    slug: str,
    sections_read: Mapping[str, Collection[str]],
    reading_route: ReadingRoute,
) -> NextPage:
    """Return the page that follows on today's list; none before the list is made, or at its end."""
    none_follows = NextPage(None, reading_route, is_on_day_list=False)
    if (todays := load_stored_day_list(ctx)) is None:
        return none_follows
    following = find_first_unread_page(
        ctx.course, todays.day_list, sections_read, reading_route, left_page=slug
    )
    return following if following.is_on_day_list else none_follows


def _list_pages_with_essentials_read(
    course: Course, sections_read: Mapping[str, Collection[str]]
) -> set[str]:
    return {
        slug
        for slug, anchors in sections_read.items()
        if slug in course.topics and are_essential_sections_read(course.topics[slug], anchors)
    }


@router.get("/concepts")
def redirect_to_course() -> RedirectResponse:
    return RedirectResponse("/course", 308)


@router.get("/course")
def show_course(
    ctx: ReadContext,
    _ensured: DayListEnsured,
    reading_route: Annotated[ReadingRoute | None, Query(alias="route")] = None,
) -> HTMLResponse:
    """The objectives and their pages; on the short route without the pages that it skips.

    A page counts as read once its essential sections are.
    """
    course = ctx.course
    todays_list, estimate, *_ = load_stored_day_list(ctx) or (None, None)
    sections_read = store.load_anchors_read_by_topic(ctx.db, ctx.learner.id)
    reading_route = reading_route or find_planned_route(ctx)
    pages = {
        slug: page
        for slug, topic in course.topics.items()
        if (page := measure_progress_if_on_route(topic, reading_route, sections_read.get(slug, ())))
    }
    every_read = _list_pages_with_essentials_read(course, sections_read)
    read = every_read & pages.keys()
    progress = build_domain_progress(
        course,
        todays_list.ready if todays_list else (),
        estimate,
        sections_read,
        read,
        store.load_answered_questions(ctx.db, ctx.learner.id),
    )
    return ctx.render_page(
        "lessons/index.html",
        syllabus=course.syllabus,
        outline=build_outline(course),
        states={
            objective.objective.number: objective.state
            for domain in progress
            for objective in domain.objectives
        },
        ready={
            domain.domain.number: domain.count_objectives_in_state("ready") for domain in progress
        },
        progress=pages,
        read=read,
        next=find_next_page_across_day_lists(ctx, reading_route, sections_read),
        pages=[slug for slug in cached_course_facts(course).pages if slug in pages],
        route=reading_route,
        minutes={
            r: sum(
                round_minutes(sum_reading_minutes_on_route(course.topics[s], r))
                for s in cached_course_facts(course).pages
            )
            for r in get_args(ReadingRoute)
        },
        has_routes=has_course_short_route(course.topics.values()),
    )


@router.get("/concepts/{topic}")
def show_lesson(
    page: Annotated[RenderedPage, Depends(require_rendered_page)], ctx: ReadContext
) -> HTMLResponse:
    earlier_seeds = store.load_attempt_seeds_by_question(
        ctx.db, ctx.learner.id, page.embedded_question_ids
    )
    course, slug = ctx.course, page.topic.slug
    sections_read = store.load_anchors_read_by_topic(ctx.db, ctx.learner.id)
    read = _list_pages_with_essentials_read(course, sections_read)
    return ctx.render_page(
        "lessons/show.html",
        open_questions=_build_open_questions_by_id(
            ctx.course, page, ctx.learner.key, earlier_seeds
        ),
        labs=_map_lab_urls_to_headings(ctx.course, page),
        past=earlier_seeds,
        missed_questions=store.list_questions_missed_last_time(
            ctx.db, ctx.learner.id, page.embedded_question_ids
        ),
        flagged=store.filter_flagged_questions(ctx.db, ctx.learner.id, page.embedded_question_ids),
        notes=store.load_notes_by_section(ctx.db, ctx.learner.id, page.topic.slug),
        before=[
            course.topics[slug_before]
            for slug_before in page.topic.requires
            if slug_before in course.topics and slug_before not in read
        ],
        next=_find_next_page_after_reading(ctx, slug, sections_read, page.route),
        **_section_list_context(page, frozenset(sections_read.get(slug, ()))),
    )


@router.post("/concepts/{topic}/readings")
def record_sections_read(
    page: Annotated[RenderedPage, Depends(require_rendered_page)],
    ctx: WriteContext,
    section: Annotated[str, Form()] = "",
    then: Annotated[Literal["", "today", "next"], Form()] = "",
) -> Response:
    """Mark one section as read, or all; `then` says where to go on without htmx.

    The `next` page is the one that the page named.
    """
    slug = page.topic.slug
    anchors = [s.anchor for s in page.titled_sections] or [""]
    short = page.route == "short"
    if section and section not in anchors:
        raise InvalidInputError(f"This page has no section “{section}”.", "section")
    anchors_on_route = [s.anchor for s in page.titled_sections if not s.is_skipped_on_route] or [""]
    sections_to_mark = [section] if section else anchors_on_route
    store.mark_sections_read(ctx.db, ctx.learner.id, slug, sections_to_mark, ctx.now)
    ctx.db.flush()
    address = "/" if then else f"/concepts/{slug}{'?route=short' if short else ''}#end"
    if then == "next":
        sections_read = store.load_anchors_read_by_topic(ctx.db, ctx.learner.id)
        address = _find_next_page_after_reading(ctx, slug, sections_read, page.route).url
    return render_fragment_or_redirect(
        ctx.request,
        "lessons/_toc.html",
        redirect_url=address,
        **_section_list_context(page, store.load_anchors_read(ctx.db, ctx.learner.id, slug)),
    )


@router.get("/concepts/{topic}/files/{name:path}")
def serve_lesson_picture(
    request: Request, topic: str, name: str, course: CurrentCourse
) -> FileResponse:
    slug = require_topic(course, topic).slug
    folder = (request.state.live.folder / "topics" / slug).resolve()
    # Search among the existing files. Never build a path from the URL.
    files_in_folder = folder.rglob("*") if folder.is_dir() else ()
    file = next((f for f in files_in_folder if f.relative_to(folder).as_posix() == name), folder)
    is_own = file.resolve() == file  # no symbolic link to another file
    if not is_own or file.suffix not in PICTURE_SUFFIXES or not file.is_file():
        raise NotFoundError("There is no picture of this name beside the page.")
    return FileResponse(file, headers={"content-security-policy": _PICTURE_POLICY})


@router.get("/cheatsheets")
def list_cheat_sheets(
    request: Request, course: CurrentCourse, learner: CurrentLearner
) -> HTMLResponse:
    domains = course.syllabus.domains
    return render_page(request, "lessons/cheatsheets.html", learner=learner, domains=domains)


@router.get("/cheatsheets/{number}")
def show_cheat_sheet(ctx: ReadContext, number: str) -> HTMLResponse:
    domains = ctx.course.syllabus.domains
    domain = next((d for d in domains if d.number == number), None)
    if domain is None:
        raise NotFoundError(f"There is no domain “{number}” in this course.")
    slugs = [topic.slug for topic in list_pages_with_home_domain(ctx.course, domain)]
    notes = store.list_note_texts(ctx.db, ctx.learner.id, slugs)
    return ctx.render_page(
        "lessons/cheatsheet.html",
        syllabus=ctx.course.syllabus,
        exam=max(ctx.course.exams.values(), key=lambda e: e.question_count, default=None),
        cheat_sheet=build_cheat_sheet(ctx.course, domain, notes),
    )


@router.get("/glossary")
def show_glossary(
    ctx: ReadContext, choosing: Annotated[bool, Query(alias="cards")] = False
) -> HTMLResponse:
    """Every term; with `cards`, each with a button that makes it a card."""
    return ctx.render_page(
        "lessons/glossary.html",
        terms=build_sorted_glossary_entries(ctx.course),
        choosing=choosing,
        cards={
            parse_card_id(card).source_id
            for card in list_undeclined_cards_of_kind(ctx.db, ctx.learner.id, TERM)
        },
    )


@router.get("/sources")
def show_sources(
    request: Request,
    course: CurrentCourse,
    learner: CurrentLearner,
    show_pages: Annotated[bool, Query(alias="used")] = False,
    page: Annotated[int, Query(ge=1)] = 1,
) -> HTMLResponse:
    """A part of the bibliography, by title; with `used`, each source with the pages that cite it."""
    sources = sorted(course.sources.values(), key=lambda s: s.title.casefold())
    page_count = max(1, math.ceil(len(sources) / _SOURCES_ON_A_PAGE))
    page = min(page, page_count)
    first = (page - 1) * _SOURCES_ON_A_PAGE
    topics_by_source = {
        key: [t for t in course.topics.values() if key in t.sources] for key in course.sources
    }
    return render_page(
        request,
        "lessons/sources.html",
        learner=learner,
        sources=sources[first : first + _SOURCES_ON_A_PAGE],
        page=page,
        page_count=page_count,
        topics_by_source=topics_by_source,
        show_pages=show_pages,
    )


def _build_open_questions_by_id(
    course: Course,
    page: RenderedPage,
    learner_key: str,
    seeds_by_question: Mapping[str, Sequence[int]],
) -> dict[str, OpenQuestion]:
    """Return the questions of the page as this learner sees them."""
    return {
        item: build_open_question(
            course.questions[item],
            learner_key=learner_key,
            earlier_seeds=seeds_by_question.get(item, ()),
            context="page",
            back_url=f"/concepts/{page.topic.slug}{'?route=short' if page.route == 'short' else ''}#q-{item}",
        )
        for item in page.embedded_question_ids
        if item in course.questions
    }


def _map_lab_urls_to_headings(course: Course, page: RenderedPage) -> dict[str, str]:
    """Return the headings of the labs of the page's topic, by URL."""
    questions = (
        course.questions[item] for item in page.topic.questions if item in course.questions
    )
    labs = (question for question in questions if question.type == "console")
    return {f"/quiz/{lab.topic}/{lab.id}": excerpt_first_line(lab) for lab in labs}


def _section_list_context(page: RenderedPage, read_anchors: frozenset[str]) -> dict[str, Any]:
    """Return the template variables of the section list: what the learner has read."""
    return {
        "page": page,
        "topic": page.topic,
        "read": read_anchors,
        "minutes": _sum_minutes_of_read_sections(page, read_anchors),
    }


def _sum_minutes_of_read_sections(page: RenderedPage, read_anchors: frozenset[str]) -> int:
    """Return the minutes of the page already read, rounded; those of the page once all is read."""
    on_route = [s for s in page.titled_sections if not s.is_skipped_on_route]
    if read_anchors and all(s.anchor in read_anchors for s in on_route):
        return round_minutes(page.minutes)
    minutes_of_opening = sum(s.minutes for s in page.sections if not s.anchor)
    minutes_of_titled = sum(s.minutes for s in on_route if s.anchor in read_anchors)
    return round(minutes_of_titled + (minutes_of_opening if read_anchors else 0))
