"""Pre-rendered lesson pages; cheat sheets."""

import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar, get_args

from jinja2 import Environment
from markupsafe import Markup

from app.content.course import Course
from app.content.reading_routes import (
    ReadingRoute,
    has_course_short_route,
    list_sections_on_route,
    sum_reading_minutes_on_route,
)
from app.estimator import registry
from app.markup.html_renderer import HOOK_LABEL
from app.markup.model import (
    CalculatorBlock,
    Domain,
    HtmlBlock,
    Piece,
    QuestionBlock,
    Section,
    Topic,
)
from app.markup.text import ENDS, UNSPACED_ENDS
from app.web.dependencies import collect_course_link_targets
from app.web.render import create_language_variables
from app.widgets.calculator_form import build_calculator_form

RenderedPart = Markup | QuestionBlock
_TERM_LINK = re.compile(r'<a class="term" href="/glossary#([\w-]+)"')


@dataclasses.dataclass(frozen=True, slots=True)
class RenderedSection:
    """A section with rendered parts; its questions are rendered per learner.

    `is_skipped_on_route` is whether the route of the page skips it.
    """

    anchor: str
    title: str
    number: int
    minutes: float
    parts: tuple[RenderedPart, ...]
    is_skipped_on_route: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class RenderedPage:
    """One page on one route, rendered except for what depends on the learner."""

    topic: Topic
    route: ReadingRoute
    head_html: Markup
    sections: tuple[RenderedSection, ...]
    foot_html: Markup
    calculator_count: int

    @property
    def embedded_question_ids(self) -> tuple[str, ...]:
        parts = (part for section in self.sections for part in section.parts)
        return tuple(p.question for p in parts if isinstance(p, QuestionBlock))

    @property
    def titled_sections(self) -> tuple[RenderedSection, ...]:
        return tuple(s for s in self.sections if s.anchor)

    @property
    def minutes(self) -> float:
        return sum_reading_minutes_on_route(self.topic, self.route)


class RenderedPageCache:
    """The rendered pages of the newest course version, each rendered on first use."""

    def __init__(self, templates: Environment) -> None:
        self._templates = templates
        self._version = ""
        self._made: dict[tuple[str, ReadingRoute], RenderedPage] = {}

    def get_if_rendered(
        self, course: Course, topic: Topic, reading_route: ReadingRoute
    ) -> RenderedPage | None:
        """Return the page of a topic for this course version, if it is already rendered."""
        if course.version != self._version:
            return None
        return self._made.get((topic.slug, reading_route))

    def get_or_render(
        self, course: Course, topic: Topic, reading_route: ReadingRoute
    ) -> RenderedPage:
        """Return the page of a topic for this course version."""
        if course.version != self._version:
            self._made = {}
            self._version = course.version
        pages = self._made
        page = pages.get((topic.slug, reading_route))
        if page is None:
            page = pages[topic.slug, reading_route] = self._render_page(
                course, topic, reading_route
            )
        return page

    def _render_page(
        self, course: Course, topic: Topic, reading_route: ReadingRoute
    ) -> RenderedPage:
        head_context, foot_context = (
            _build_head_context(course, topic, reading_route),
            _build_sources_and_navigation_context(course, topic, reading_route),
        )
        sections = tuple(
            self._render_section(course, section, index)
            for index, section in enumerate(topic.sections)
        )
        if reading_route == "short":
            sections = tuple(
                dataclasses.replace(
                    rendered, is_skipped_on_route=bool(s.anchor) and not s.essential
                )
                for rendered, s in zip(sections, topic.sections, strict=True)
            )
        return RenderedPage(
            topic=topic,
            route=reading_route,
            head_html=self._render(course, "lessons/_head.html", **head_context),
            sections=sections,
            foot_html=self._render(course, "lessons/_foot.html", **foot_context),
            calculator_count=sum(
                isinstance(piece, CalculatorBlock)
                for section in topic.sections
                for piece in section.pieces
            ),
        )

    def _render_section(self, course: Course, section: Section, index: int) -> RenderedSection:
        return RenderedSection(
            anchor=section.anchor,
            title=section.title,
            number=section.number,
            minutes=section.minutes,
            parts=_join_adjacent_html_parts(
                [
                    self._render_piece(course, piece, f"c{index}-{number}")
                    for number, piece in enumerate(section.pieces)
                ]
            ),
        )

    def _render_piece(self, course: Course, piece: Piece, form_id: str) -> RenderedPart:
        if isinstance(piece, QuestionBlock):
            return piece
        if not isinstance(piece, CalculatorBlock):
            english = create_language_variables(course.syllabus.language)["english"]
            label_in_english = HOOK_LABEL.replace("<p", f"<p{english}", 1)
            html = piece.html.replace(HOOK_LABEL, label_in_english)
            return Markup(_TERM_LINK.sub(_add_definition_popover_to_link, html))  # noqa: S704 - app.content sanitized it
        entry = registry.find_estimate(piece.estimate)
        if entry is None:  # the course check reports it; the rest of the page is still shown
            return Markup()
        block = build_calculator_form(
            entry,
            piece.starting_inputs,
            link_targets=collect_course_link_targets(course),
            element_id=form_id,
            is_short_block=True,
        )
        return self._render(course, "calculators/_form.html", instrument=block)

    def _render(self, course: Course, template: str, **context: Any) -> Markup:
        variables = {**create_language_variables(course.syllabus.language), **context}
        html = self._templates.get_template(template).render(variables)
        return Markup(html)  # noqa: S704 - a template escaped it


def _add_definition_popover_to_link(link: re.Match[str]) -> str:
    """Return a term link that shows its meaning on hover."""
    return f'{link[0]} interestfor="g-{link[1]}"'


def _join_adjacent_html_parts(parts: Sequence[RenderedPart]) -> tuple[RenderedPart, ...]:
    joined: list[RenderedPart] = []
    for part in parts:
        last = joined[-1] if joined else None
        if isinstance(part, Markup) and isinstance(last, Markup):
            joined[-1] = last + "\n" + part
        else:
            joined.append(part)
    return tuple(joined)


def _build_head_context(
    course: Course, topic: Topic, reading_route: ReadingRoute
) -> dict[str, Any]:
    domain_by_objective = {
        objective.number: domain
        for domain in course.syllabus.domains
        for objective in domain.objectives
    }
    domains = {
        domain_by_objective[n].number: domain_by_objective[n]
        for n in topic.objectives
        if n in domain_by_objective
    }
    return {
        "topic": topic,
        "domains": list(domains.values()),
        "route": reading_route,
        "minutes": {r: sum_reading_minutes_on_route(topic, r) for r in get_args(ReadingRoute)},
        "has_routes": has_course_short_route([topic]),
    }


def list_topics_by_objective(course: Course) -> list[Topic]:
    """Return the pages as the course lists them: by first objective, those beyond the exam last."""
    objectives = [o.number for domain in course.syllabus.domains for o in domain.objectives]
    order = dict.fromkeys([*course.syllabus.topics, *course.topics])
    topics = [course.topics[slug] for slug in order if slug in course.topics]
    listed = [topic for o in objectives for topic in topics if o in topic.objectives[:1]]
    return sorted(listed, key=lambda topic: bool(topic.level))


def _build_sources_and_navigation_context(
    course: Course, topic: Topic, reading_route: ReadingRoute
) -> dict[str, Any]:
    order = [
        page
        for page in list_topics_by_objective(course)
        if page is topic or list_sections_on_route(page, reading_route)
    ]
    index = order.index(topic) if topic in order else len(order)
    previous = order[index - 1] if 0 < index < len(order) else None
    following = order[index + 1] if index + 1 < len(order) else None
    return {
        "topic": topic,
        "sources": [course.sources[k] for k in topic.sources if k in course.sources],
        "terms": [course.glossary[a] for a in topic.terms if a in course.glossary],
        "query": "?route=short" if reading_route == "short" else "",
        "previous": previous,
        "following": following,
    }


SHEET_LETTER_LIMIT = 6_200
"""The letters that fit on one printed page, in three columns."""
_MAX_TERMS_PER_LESSON = 4  # key terms per lesson at most
_MAX_OWN_NOTE_LINES = 4  # lines from the learner's notes at most
_MAX_SENTENCE_LENGTH = 140  # letters of a term, an error or an own line
_HEADING_SPACE_LETTERS = 60  # the space of a heading, counted in letters
_REFERENCE_SPACE_LETTERS = 30  # the space of a reference to another sheet, in addition to its name

T = TypeVar("T")
_EXAM_BOX = re.compile(
    r'<div class="msg exam-box" role="note">.*?<div>\n(.*?)</div></div>', re.DOTALL
)
_MEMORY_HOOK = re.compile(r'<div class="hook">\n(.*?)<p class="small quiet">', re.DOTALL)
_COMMON_ERROR_BOX = re.compile(
    r'<div class="msg warn" role="note">.*?<div>\n(.*?)</div></div>', re.DOTALL
)
_CITATION_LINK = re.compile(r'<a class="cite".*?</a>', re.DOTALL)
_LINK_TAG = re.compile(r"</?a\b[^>]*>")
_BOX_LEAD = re.compile(
    r"<(b|strong)>(What the exam tests|What to know for the exam|Common error)\.</\1>"
    r"\s*",
    re.IGNORECASE,
)
_HTML_TAG = re.compile(r"<[^>]+>")
_WHOLE_SENTENCE = re.compile(rf".+?(?:[{ENDS}](?=\s|$)|[{UNSPACED_ENDS}])", re.DOTALL)


class TermSentence(NamedTuple):
    """A term and the first sentence of its definition."""

    name: str
    sentence: str


@dataclasses.dataclass(frozen=True, slots=True)
class CheatSheetEntry:
    """A lesson in short; the texts are HTML, without links and sources."""

    slug: str
    title: str
    objectives_text: str
    hooks_html: tuple[Markup, ...]
    tested_html: tuple[Markup, ...]
    common_errors: tuple[str, ...] = ()
    terms: tuple[TermSentence, ...] = ()


class CoveringDomain(NamedTuple):
    """Another domain whose sheet has pages for this one, and the objectives that they cover."""

    domain: Domain
    objectives_text: str


@dataclasses.dataclass(frozen=True, slots=True)
class CheatSheet:
    """A domain with its pages; `note_lines` are first lines of the learner's notes.

    `domains_covering_it_too` are other domains whose sheets contain pages for this one.
    """

    domain: Domain
    entries: tuple[CheatSheetEntry, ...]
    note_lines: tuple[str, ...] = ()
    domains_covering_it_too: tuple[CoveringDomain, ...] = ()

    @property
    def letter_count(self) -> int:
        """The length in letters, headings included."""
        reference_letters = sum(
            _REFERENCE_SPACE_LETTERS + len(domain.title) + len(objective_numbers)
            for domain, objective_numbers in self.domains_covering_it_too
        )
        return (
            sum(map(_count_letters_of_entry, self.entries))
            + sum(map(len, self.note_lines))
            + reference_letters
        )


def build_cheat_sheet(
    course: Course,
    domain: Domain,
    note_texts: Sequence[str] = (),
    letter_limit: int = SHEET_LETTER_LIMIT,
) -> CheatSheet:
    """Return the sheet of a domain. Hooks and what is tested come first.

    If that alone is too long, what is tested is cut to whole sentences. Then come one-sentence
    errors and key terms, one from each page in turn, up to `letter_limit` letters.
    """
    own_lines = tuple(_shorten_first_line(line) for line in note_texts if line.strip())[
        :_MAX_OWN_NOTE_LINES
    ]
    topics = list_pages_with_home_domain(course, domain)
    entries = [_build_entry_without_errors_and_terms(topic) for topic in topics]
    elsewhere = tuple(_yield_other_domains_covering(course, domain))
    letters_left = (
        letter_limit - CheatSheet(domain, tuple(entries), own_lines, elsewhere).letter_count
    )
    if letters_left < 0:
        entries, letters_left = _keep_tested_sentences_that_fit(entries, letters_left)
    errors, letters_left = _take_fitting_items_in_turn(
        [_list_common_error_sentences(topic) for topic in topics], letters_left
    )
    terms, _ = _take_fitting_items_in_turn(
        [_list_introduced_terms(course, topic) for topic in topics], letters_left
    )
    filled = (
        dataclasses.replace(entry, common_errors=error_sentences, terms=term_pairs)
        for entry, error_sentences, term_pairs in zip(entries, errors, terms, strict=True)
    )
    return CheatSheet(domain, tuple(filled), own_lines, elsewhere)


def list_pages_with_home_domain(course: Course, domain: Domain) -> list[Topic]:
    """Return the pages of a domain; each page of the course is in one domain only.

    Pages beyond the exam are in none. A page is in the domain of most of its objectives, and in the
    later one if two tie, because an introduction comes before what it leads to.
    """
    order = [course.topics[s] for s in course.syllabus.topics if s in course.topics]
    return [
        topic
        for topic in order
        if not topic.level
        and _find_home_domain_number(course.syllabus.domains, topic) == domain.number
    ]


def _yield_other_domains_covering(course: Course, domain: Domain) -> Iterator[CoveringDomain]:
    """Yield the other domains whose pages cover objectives of this one, and which."""
    for other in course.syllabus.domains:
        covered_numbers = {
            o for topic in list_pages_with_home_domain(course, other) for o in topic.objectives
        }
        shared_numbers = [o.number for o in domain.objectives if o.number in covered_numbers]
        if shared_numbers and other is not domain:
            yield CoveringDomain(other, ", ".join(shared_numbers))


def _find_home_domain_number(domains: Iterable[Domain], topic: Topic) -> str:
    best_number, best_count = "", 0
    for domain in domains:
        shared_objectives = {o.number for o in domain.objectives}.intersection(topic.objectives)
        if shared_objectives and len(shared_objectives) >= best_count:
            best_number, best_count = domain.number, len(shared_objectives)
    return best_number


def _build_entry_without_errors_and_terms(topic: Topic) -> CheatSheetEntry:
    html = _join_html_blocks_of_topic(topic)
    return CheatSheetEntry(
        slug=topic.slug,
        title=topic.title,
        objectives_text=", ".join(topic.objectives),
        hooks_html=tuple(
            _strip_lead_links_and_sources(match) for match in _MEMORY_HOOK.findall(html)
        ),
        tested_html=tuple(
            _strip_lead_links_and_sources(match) for match in _EXAM_BOX.findall(html)
        ),
    )


def _list_common_error_sentences(topic: Topic) -> list[str]:
    """Return the first sentence of each common error, as text."""
    texts = (
        _text_of_html(_strip_lead_links_and_sources(match))
        for match in _COMMON_ERROR_BOX.findall(_join_html_blocks_of_topic(topic))
    )
    return [sentence for text in texts if (sentence := _extract_first_sentence_if_short(text))]


def _list_introduced_terms(course: Course, topic: Topic) -> list[TermSentence]:
    """Return the terms that this page introduces, with the first sentence of each definition."""
    earlier: set[str] = set()
    for slug in course.syllabus.topics:
        if slug == topic.slug:
            break
        if slug in course.topics:
            earlier.update(course.topics[slug].terms)
    new_terms = [a for a in topic.terms if a in course.glossary and a not in earlier]
    terms_and_sentences = [
        TermSentence(
            course.glossary[a].name,
            _extract_first_sentence_if_short(course.glossary[a].meaning.plain),
        )
        for a in new_terms
    ]
    return [term for term in terms_and_sentences if term.sentence][:_MAX_TERMS_PER_LESSON]


def _keep_tested_sentences_that_fit(
    entries: Sequence[CheatSheetEntry], letters_left: int
) -> tuple[list[CheatSheetEntry], int]:
    """Return entries with as many sentences on what is tested as fit, one from each in turn."""
    texts = [" ".join(map(_text_of_html, entry.tested_html)) for entry in entries]
    matches = [_WHOLE_SENTENCE.findall(text) for text in texts]
    fitting_sentences, letters_left = _take_fitting_items_in_turn(
        matches, letters_left + sum(map(len, texts))
    )
    cut_texts = [
        tuple(Markup.escape(s) for s in (" ".join(map(str.strip, k)),)) for k in fitting_sentences
    ]
    pairs = zip(entries, cut_texts, strict=True)
    return [
        dataclasses.replace(entry, tested_html=cut_text) for entry, cut_text in pairs
    ], letters_left


def _take_fitting_items_in_turn(
    lists: Sequence[Sequence[T]], letters_left: int
) -> tuple[list[tuple[T, ...]], int]:
    """Return what fits of `lists`, one from each page in turn, and the space left.

    Short ones come first in each round, so that as many pages as possible have one.
    """
    taken_items: list[list[T]] = [[] for _ in lists]
    for item_index in range(max(map(len, lists), default=0)):
        lists_with_item = [
            list_index for list_index, items in enumerate(lists) if item_index < len(items)
        ]
        for list_index in sorted(
            lists_with_item, key=lambda at: _count_letters(lists[at][item_index])
        ):
            size = _count_letters(lists[list_index][item_index])
            if size and size <= letters_left:
                taken_items[list_index].append(lists[list_index][item_index])
                letters_left -= size
    return [tuple(items) for items in taken_items], letters_left


def _count_letters(value: object) -> int:
    return sum(map(len, value)) if isinstance(value, tuple) else len(str(value))


def _count_letters_of_entry(entry: CheatSheetEntry) -> int:
    texts = (*entry.hooks_html, *entry.tested_html, *entry.common_errors)
    letter_count = sum(len(_text_of_html(text)) for text in texts) + sum(
        map(_count_letters, entry.terms)
    )
    return _HEADING_SPACE_LETTERS + len(entry.title) + letter_count


def _join_html_blocks_of_topic(topic: Topic) -> str:
    pieces = (piece for section in topic.sections for piece in section.pieces)
    return "".join(piece.html for piece in pieces if isinstance(piece, HtmlBlock))


def _strip_lead_links_and_sources(html: str) -> Markup:
    """Return authored HTML without its lead, links and sources; it stays safe."""
    stripped = _BOX_LEAD.sub("", _LINK_TAG.sub("", _CITATION_LINK.sub("", html)), count=1)
    return Markup(stripped.strip())  # noqa: S704 - app.content sanitized it


def _text_of_html(html: str) -> str:
    return " ".join(Markup(_HTML_TAG.sub("", html)).unescape().split())  # noqa: S704 - as above


def _extract_first_sentence_if_short(text: str) -> str:
    """Return the first sentence, if it is short enough for a sheet."""
    match = _WHOLE_SENTENCE.match(" ".join(text.split()))
    sentence = match[0] if match else ""
    return sentence if len(sentence) <= _MAX_SENTENCE_LENGTH else ""


def _shorten_first_line(line: str) -> str:
    first = line.strip().splitlines()[0]
    return first if len(first) <= _MAX_SENTENCE_LENGTH else f"{first[: _MAX_SENTENCE_LENGTH - 1]}…"
