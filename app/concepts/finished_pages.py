"""Pages as finished pieces: rendered once for each state of the course."""

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from app.content.live.library import Library
from app.content.markdown.alerts import HOOK_LABEL
from app.content.model import CalculatorBlock, Piece, QuestionBlock, Section, Topic
from app.estimator import registry
from app.instruments.forms import build_calculator_form
from app.web.course import course_links
from app.web.render import language_marks

Part = Markup | QuestionBlock
_TERM = re.compile(r'<a class="term" href="/glossary#([\w-]+)"')


@dataclasses.dataclass(frozen=True, slots=True)
class RenderedSection:
    """A section with finished parts; its questions wait for the learner's marks."""

    anchor: str
    title: str
    number: int
    minutes: float
    parts: tuple[Part, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class RenderedPage:
    """One page, finished but for what the learner did on it."""

    topic: Topic
    head: Markup
    sections: tuple[RenderedSection, ...]
    foot: Markup
    calculators: int

    @property
    def asked(self) -> tuple[str, ...]:
        """The ids of the questions asked in the text."""
        parts = (part for section in self.sections for part in section.parts)
        return tuple(p.question for p in parts if isinstance(p, QuestionBlock))

    @property
    def named(self) -> tuple[RenderedSection, ...]:
        """The sections that have a heading."""
        return tuple(s for s in self.sections if s.anchor)


class RenderedPageCache:
    """The sheets of the newest course state, each made when first asked for."""

    def __init__(self, templates: Environment) -> None:
        self._templates = templates
        self._version = ""
        self._made: dict[str, RenderedPage] = {}

    def find(self, library: Library, topic: Topic) -> RenderedPage | None:
        """The sheet of a topic of this state of the course, if it is made already."""
        if library.version != self._version:
            return None
        return self._made.get(topic.slug)

    def of(self, library: Library, topic: Topic) -> RenderedPage:
        """The sheet of a topic of this state of the course."""
        if library.version != self._version:
            self._made = {}
            self._version = library.version
        made = self._made
        sheet = made.get(topic.slug)
        if sheet is None:
            sheet = made[topic.slug] = self._make(library, topic)
        return sheet

    def _make(self, library: Library, topic: Topic) -> RenderedPage:
        return RenderedPage(
            topic=topic,
            head=self._render(library, "concepts/_head.html", **_head(library, topic)),
            sections=tuple(
                self._section(library, section, index)
                for index, section in enumerate(topic.sections)
            ),
            foot=self._render(library, "concepts/_foot.html", **_foot(library, topic)),
            calculators=sum(
                isinstance(piece, CalculatorBlock)
                for section in topic.sections
                for piece in section.pieces
            ),
        )

    def _section(self, library: Library, section: Section, index: int) -> RenderedSection:
        return RenderedSection(
            anchor=section.anchor,
            title=section.title,
            number=section.number,
            minutes=section.minutes,
            parts=_joined(
                [
                    self._piece(library, piece, f"c{index}-{number}")
                    for number, piece in enumerate(section.pieces)
                ]
            ),
        )

    def _piece(self, library: Library, piece: Piece, name: str) -> Part:
        if isinstance(piece, QuestionBlock):
            return piece
        if not isinstance(piece, CalculatorBlock):
            english = language_marks(library.syllabus.language)["english"]
            ours = HOOK_LABEL.replace("<p", f"<p{english}", 1)
            html = piece.html.replace(HOOK_LABEL, ours)
            return Markup(_TERM.sub(_explained, html))  # noqa: S704 - the content room made it safe
        entry = registry.find_estimate(piece.estimate)
        if entry is None:  # the check reports it; the rest of the page stands
            return Markup()
        block = build_calculator_form(
            entry, piece.inputs, course=course_links(library), id=name, block=True
        )
        return self._render(library, "calculators/_instrument.html", instrument=block)

    def _render(self, library: Library, template: str, **context: Any) -> Markup:
        whole = {**language_marks(library.syllabus.language), **context}
        html = self._templates.get_template(template).render(whole)
        return Markup(html)  # noqa: S704 - a template has escaped it


def _explained(link: re.Match[str]) -> str:
    """A term that shows its meaning while the reader dwells on it."""
    return f'{link[0]} interestfor="g-{link[1]}"'


def _joined(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Neighboring finished parts as one."""
    joined: list[Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        if isinstance(part, Markup) and isinstance(last, Markup):
            joined[-1] = last + "\n" + part
        else:
            joined.append(part)
    return tuple(joined)


def _head(library: Library, topic: Topic) -> dict[str, Any]:
    wanted = {
        objective.number: domain
        for domain in library.syllabus.domains
        for objective in domain.objectives
    }
    domains = {wanted[n].number: wanted[n] for n in topic.objectives if n in wanted}
    before = [library.topics[s] for s in topic.requires if s in library.topics]
    return {"topic": topic, "domains": list(domains.values()), "before": before}


def _foot(library: Library, topic: Topic) -> dict[str, Any]:
    order = [s for s in library.syllabus.topics if s in library.topics]
    place = order.index(topic.slug) if topic.slug in order else len(order)
    previous = library.topics[order[place - 1]] if 0 < place < len(order) else None
    following = library.topics[order[place + 1]] if place + 1 < len(order) else None
    return {
        "topic": topic,
        "number": sum(bool(s.anchor) for s in topic.sections) + 1,
        "sources": [library.sources[k] for k in topic.sources if k in library.sources],
        "terms": [library.glossary[a] for a in topic.terms if a in library.glossary],
        "previous": previous,
        "following": following,
    }
