"""What the course holds for each objective, counted from its files."""

import dataclasses
import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from app.content.live.library import Library
from app.content.model import CalculatorBlock, HtmlBlock, Topic
from app.mastery.bank import domain_of, of_objective
from app.mastery.course import course_by_objective

_NAMES = {
    "pages": "pages",
    "words": "words",
    "pictures": "pictures",
    "calculators": "calculators",
    "questions": "questions",
    "kinds": "by kind",
    "deeper": "deeper",
    "reserve": "reserve",
    "computed": "computed",
    "cards": "cards",
    "terms": "terms",
    "sources": "sources",
    "publishers": "by publisher",
    "oldest": "oldest review",
}


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectiveCoverage:
    """What serves one objective; `publishers` tells its sources apart."""

    number: str
    name: str
    pages: int
    words: int
    pictures: int
    calculators: int
    questions: int
    kinds: Mapping[str, int]
    deeper: int
    reserve: int
    computed: int
    cards: int
    terms: int
    sources: int
    publishers: Mapping[str, int]
    oldest: dt.date | None

    @property
    def cells(self) -> tuple[str, ...]:
        """Its values as words, in the order of `heads`."""
        return tuple(_said(getattr(self, field)) for field in _NAMES)


def heads() -> tuple[str, ...]:
    """What the cells of an objective are."""
    return tuple(_NAMES.values())


def compute_coverage(library: Library) -> tuple[ObjectiveCoverage, ...]:
    """Every objective in the order of the syllabus, with what serves it."""
    topics = course_by_objective(library).topics
    return tuple(
        _covered(library, objective.number, objective.name, topics)
        for domain in library.syllabus.domains
        for objective in domain.objectives
    )


def _covered(
    library: Library, number: str, name: str, topics: Mapping[str, Sequence[Topic]]
) -> ObjectiveCoverage:
    pages = topics.get(number, ())
    asked = of_objective(library, number)
    cards = [c for c in library.cards.values() if number in c.objectives]
    keys = {k for p in pages for k in p.sources} | {k for q in asked for k in q.sources}
    sources = [library.sources[k] for k in keys if k in library.sources]
    reviewed = [page.reviewed for page in pages if page.reviewed]
    sections = [section for page in pages for section in page.sections]
    pieces = [piece for section in sections for piece in section.pieces]
    return ObjectiveCoverage(
        number=number,
        name=name,
        pages=len(pages),
        words=sum(len(section.plain.split()) for section in sections),
        pictures=sum(_pictures(p.html) for p in pieces if isinstance(p, HtmlBlock)),
        calculators=sum(isinstance(p, CalculatorBlock) for p in pieces),
        questions=len(asked),
        kinds=dict(sorted(Counter(q.type for q in asked).items())),
        deeper=sum(q.level == "deeper" for q in asked),
        reserve=sum(q.reserved for q in asked),
        computed=sum(q.computed is not None for q in asked),
        cards=len(cards),
        terms=len({term for page in pages for term in page.terms}),
        sources=len(sources),
        publishers=_by_number(s.publisher for s in sources),
        oldest=min(reviewed, default=None),
    )


def _by_number(names: Iterable[str]) -> dict[str, int]:
    """How often each stands there, the most frequent first, then by name."""
    return dict(Counter(sorted(names)).most_common())


def _pictures(html: str) -> int:
    """Figures, and pictures outside of any."""
    return html.count("<figure") or html.count("<img ")


def fresh_papers(library: Library) -> dict[str, int]:
    """How many whole papers of each mock exam share no question with another."""
    domains = domain_of(library)
    held = Counter(q.home(domains) for q in library.questions.values() if q.drawable)
    return {
        exam.title: min((held[d] // n for d, n in exam.domains.items() if n), default=0)
        for exam in library.exams.values()
    }


def _said(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{n} {what}" for what, n in value.items()) or "–"
    return "–" if value is None else str(value)
