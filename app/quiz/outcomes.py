"""An answer and all that is shown after it."""

import dataclasses
from urllib.parse import parse_qsl, urlsplit

from sqlmodel import Session

from app.cards.comeback import Comeback
from app.content import estimates
from app.content.library import Library
from app.content.model import (
    Choices,
    Cloze,
    Design,
    Match,
    Order,
    Question,
    Source,
    Variant,
)
from app.content.variants import draw
from app.estimator import registry
from app.instruments.forms import instrument
from app.instruments.readings import Reading
from app.quiz import store
from app.quiz.grading import Unreadable, Verdict, grade
from app.quiz.store import Given
from app.web.course import course_of
from app.web.words import count_of

_KINDS = {
    Choices: "options",
    Cloze: "gaps",
    Order: "rows",
    Match: "rows",
    Design: "rows",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What `quiz/_verdict.html` shows: the judgement, why, and where to go on.

    `reading` is the calculator with the numbers of this attempt, None for questions
    without one; `old` says that the question was edited since; `again` leads to
    another try, `onward` to what comes next with its words, `here` to this verdict;
    `comeback` is None where the question is not among the cards of the learner.
    """

    variant: Variant
    verdict: Verdict
    given: Given
    sources: tuple[Source, ...]
    page: str
    page_title: str
    reading: Reading | None
    back: str
    again: str
    onward: str
    onward_words: str
    here: str
    token: str
    old: bool = False
    comeback: Comeback | None = None

    @property
    def question(self) -> Question:
        """The item as it was answered."""
        return self.variant.question

    @property
    def summary(self) -> str:
        """What was answered, how surely, and with how much help, in one sentence."""
        sure = ("", " and guessed", " and thought so", " and were sure")
        verb = (
            "had"
            if isinstance(self.variant.answer, Order | Match | Design)
            else "answered"
        )
        words = f"You {verb} {self.verdict.said or 'this'}"
        words += sure[self.given.certainty or 0]
        if self.given.hints:
            words += f", with {count_of(self.given.hints, 'hint')}"
        return f"{words}."

    @property
    def marks_kind(self) -> str:
        """How the parts of the answer are shown: options, gaps, rows, or not at all."""
        return _KINDS.get(type(self.variant.answer), "") if self.verdict.marks else ""

    @property
    def columns(self) -> tuple[str, str]:
        """The heads of the rows: what was asked, what belongs there."""
        answer = self.variant.answer
        if isinstance(answer, Match):
            return answer.left_title or "Item", answer.right_title or "Belongs to it"
        if isinstance(answer, Design):
            return "Condition", "Limit"
        return "Step", "Its place"

    @property
    def calculator(self) -> str:
        """The calculator with the numbers of this attempt, or with the plan chosen."""
        return _address(self.variant, self.verdict)


@dataclasses.dataclass(frozen=True, slots=True)
class Way:
    """Where the learner came from and goes on to."""

    back: str = ""
    onward: str = ""
    words: str = ""
    here: str = ""
    token: str = ""


def outcome_of(db: Session, library: Library, given: Given, way: Way) -> Outcome:
    """The outcome of a recorded answer: it is graded again, as it was then."""
    question = _as_answered(db, library, given)
    variant = draw(question, given.seed)
    verdict = grade(variant, given.raw)
    if isinstance(verdict, Unreadable):  # the rules have changed since
        verdict = Verdict(score=given.score, parsed={})
    topic = library.topics.get(question.topic)
    anchor = f"#{question.section}" if question.section else ""
    current = library.questions.get(question.id)
    return Outcome(
        variant=variant,
        verdict=verdict,
        given=given,
        sources=_sources(library, question),
        page=f"/concepts/{question.topic}{anchor}" if topic else "",
        page_title=topic.title if topic else "",
        reading=_reading(_address(variant, verdict), library),
        back=way.back,
        again=f"/quiz/{question.topic}/{question.id}" if current else "",
        onward=way.onward,
        onward_words=way.words,
        here=way.here,
        token=way.token,
        old=current is None or current.revision != given.revision,
    )


def _as_answered(db: Session, library: Library, given: Given) -> Question:
    current = library.questions.get(given.item)
    if current is not None and current.revision == given.revision:
        return current
    kept = store.wording(db, given.item, given.revision)
    assert kept is not None  # noqa: S101 - written with the first answer to it
    return kept


def _sources(library: Library, question: Question) -> tuple[Source, ...]:
    return tuple(library.sources[k] for k in question.sources if k in library.sources)


def _address(variant: Variant, verdict: Verdict) -> str:
    design = variant.answer
    if isinstance(design, Design) and verdict.parsed.get("plan"):
        inputs = {**design.given, **verdict.parsed["plan"]}
        return estimates.address(design.estimate, inputs)
    return variant.calculator


def _reading(calculator: str, library: Library) -> Reading | None:
    """The estimate behind a question, with the numbers of the attempt."""
    address = urlsplit(calculator)
    entry = registry.find(address.path.rpartition("/")[2]) if address.path else None
    if entry is None:
        return None
    inputs = dict(parse_qsl(address.query))
    return instrument(entry, inputs, course=course_of(library), block=True).reading
