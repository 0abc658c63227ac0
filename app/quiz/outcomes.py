"""An answer and all that is shown after it."""

import dataclasses
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from sqlmodel import Session

from app.cards.comeback import Comeback
from app.content.live.library import Library
from app.content.model import Source
from app.estimator import registry
from app.instruments.forms import instrument
from app.instruments.readings import Reading
from app.questions import kinds
from app.questions.grading import grade, unanswered, unread
from app.questions.kind import Kind
from app.questions.model import Question, Variant
from app.questions.variants import draw
from app.questions.verdict import Unreadable, Verdict
from app.quiz import store
from app.quiz.store import Given
from app.web.course import course_of
from app.web.words import count_of


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What `quiz/_verdict.html` shows: the judgment, why, and where to go on.

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
        if not self.given.raw:
            return "You said that you do not know."
        sure = ("", ", as a guess", ", and thought so", ", and were sure")
        words = f"You {self.kind.verb} {self.verdict.said or 'this'}"
        words += sure[self.given.certainty or 0]
        if self.given.hints:
            words += f", with {count_of(self.given.hints, 'hint')}"
        return f"{words}."

    @property
    def kind(self) -> Kind[Any]:
        """What kind of question it is."""
        return kinds.of(self.variant)

    @property
    def columns(self) -> tuple[str, str]:
        """The heads of the rows: what was asked, what belongs there."""
        return self.kind.columns(self.variant.answer)

    @property
    def calculator(self) -> str:
        """The calculator with the numbers of this attempt, or with the plan chosen."""
        return _address(self.variant, self.verdict)


@dataclasses.dataclass(frozen=True, slots=True)
class Judged:
    """What was asked, and the judgment of what was answered."""

    variant: Variant
    verdict: Verdict


@dataclasses.dataclass(frozen=True, slots=True)
class Way:
    """Where the learner came from and goes on to."""

    back: str = ""
    onward: str = ""
    words: str = ""
    here: str = ""
    token: str = ""


def outcome_of(
    db: Session,
    library: Library,
    given: Given,
    way: Way,
    judged: Judged | None = None,
) -> Outcome:
    """The outcome of an answer: `judged` just now, or graded as it was then."""
    seen = judged or _as_it_was(db, library, given)
    variant, verdict = seen.variant, seen.verdict
    question = variant.question
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


def _as_it_was(db: Session, library: Library, given: Given) -> Judged:
    variant = draw(_as_answered(db, library, given), given.seed)
    if not given.raw:
        return Judged(variant, unanswered(variant))
    verdict = grade(variant, given.raw)
    if isinstance(verdict, Unreadable) and given.score:  # the rules have changed since
        verdict = Verdict(score=given.score, parsed={})
    elif isinstance(verdict, Unreadable):  # in an exam, where nobody was there to ask
        verdict = unread(variant, given.raw, verdict)
    return Judged(variant, verdict)


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
    planned = kinds.of(variant).calculator(variant.answer, verdict.parsed)
    return planned or variant.calculator


def _reading(calculator: str, library: Library) -> Reading | None:
    """The estimate behind a question, with the numbers of the attempt."""
    address = urlsplit(calculator)
    entry = registry.find(address.path.rpartition("/")[2]) if address.path else None
    if entry is None:
        return None
    inputs = dict(parse_qsl(address.query))
    return instrument(entry, inputs, course=course_of(library), block=True).reading
