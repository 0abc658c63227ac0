"""An answer and all that is shown after it."""

import dataclasses
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from sqlmodel import Session

from app.cards.comeback import MissedQuestionCard
from app.content.live.library import Library
from app.content.model import CitedSource
from app.estimator import registry
from app.instruments.forms import build_calculator_form
from app.instruments.readings import EstimateView
from app.questions import kinds
from app.questions.grading import grade, grade_blank, unread
from app.questions.kind import QuestionType
from app.questions.model import Question, Variant
from app.questions.variants import draw_variant
from app.questions.verdict import GradeResult, UnreadableResponse
from app.quiz import store
from app.quiz.store import RecordedAttempt
from app.web.course import course_links
from app.web.words import format_count


@dataclasses.dataclass(frozen=True, slots=True)
class AnswerFeedback:
    """What `quiz/_verdict.html` shows: the judgment, why, and where to go on.

    `reading` is the calculator with the numbers of this attempt, None for questions
    without one; `old` says that the question was edited since; `again` leads to
    another try, `onward` to what comes next with its words, `here` to this verdict;
    `comeback` is None where the question is not among the cards of the learner.
    """

    variant: Variant
    verdict: GradeResult
    given: RecordedAttempt
    sources: tuple[CitedSource, ...]
    page: str
    page_title: str
    reading: EstimateView | None
    back: str
    again: str
    onward: str
    onward_words: str
    here: str
    token: str
    old: bool = False
    comeback: MissedQuestionCard | None = None

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
            words += f", with {format_count(self.given.hints, 'hint')}"
        return f"{words}."

    @property
    def kind(self) -> QuestionType[Any]:
        """What kind of question it is."""
        return kinds.type_of(self.variant)

    @property
    def columns(self) -> tuple[str, str]:
        """The heads of the rows: what was asked, what belongs there."""
        return self.kind.columns(self.variant.answer)

    @property
    def calculator(self) -> str:
        """The calculator with the numbers of this attempt, or with the plan chosen."""
        return _address(self.variant, self.verdict)


@dataclasses.dataclass(frozen=True, slots=True)
class GradedVariant:
    """What was asked, and the judgment of what was answered."""

    variant: Variant
    verdict: GradeResult


@dataclasses.dataclass(frozen=True, slots=True)
class NextLinks:
    """Where the learner came from and goes on to."""

    back: str = ""
    onward: str = ""
    words: str = ""
    here: str = ""
    token: str = ""


def build_feedback(
    db: Session,
    library: Library,
    given: RecordedAttempt,
    way: NextLinks,
    judged: GradedVariant | None = None,
) -> AnswerFeedback:
    """The outcome of an answer: `judged` just now, or graded as it was then."""
    seen = judged or _as_it_was(db, library, given)
    variant, verdict = seen.variant, seen.verdict
    question = variant.question
    topic = library.topics.get(question.topic)
    anchor = f"#{question.section}" if question.section else ""
    current = library.questions.get(question.id)
    return AnswerFeedback(
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


def _as_it_was(db: Session, library: Library, given: RecordedAttempt) -> GradedVariant:
    variant = draw_variant(_as_answered(db, library, given), given.seed)
    if not given.raw:
        return GradedVariant(variant, grade_blank(variant))
    verdict = grade(variant, given.raw)
    if isinstance(verdict, UnreadableResponse) and given.score:  # the rules have changed since
        verdict = GradeResult(score=given.score, parsed={})
    elif isinstance(verdict, UnreadableResponse):  # in an exam, where nobody was there to ask
        verdict = unread(variant, given.raw, verdict)
    return GradedVariant(variant, verdict)


def _as_answered(db: Session, library: Library, given: RecordedAttempt) -> Question:
    current = library.questions.get(given.item)
    if current is not None and current.revision == given.revision:
        return current
    kept = store.load_wording(db, given.item, given.revision)
    assert kept is not None  # noqa: S101 - written with the first answer to it
    return kept


def _sources(library: Library, question: Question) -> tuple[CitedSource, ...]:
    return tuple(library.sources[k] for k in question.sources if k in library.sources)


def _address(variant: Variant, verdict: GradeResult) -> str:
    planned = kinds.type_of(variant).calculator(variant.answer, verdict.parsed)
    return planned or variant.calculator


def _reading(calculator: str, library: Library) -> EstimateView | None:
    """The estimate behind a question, with the numbers of the attempt."""
    address = urlsplit(calculator)
    entry = registry.find_estimate(address.path.rpartition("/")[2]) if address.path else None
    if entry is None:
        return None
    inputs = dict(parse_qsl(address.query))
    return build_calculator_form(entry, inputs, course=course_links(library), block=True).reading
