"""How a question comes onto a page: open, refused, or judged; alone or in a run."""

import dataclasses
from urllib.parse import urlencode

from fastapi.responses import HTMLResponse

from app.cards.comeback import comeback_of
from app.content.live.library import Library
from app.content.model import QuestionBlock
from app.errors import ConflictError
from app.learners.desk import RequestContext
from app.learners.store.under_exam import in_past_exams, in_running_exam
from app.mastery.bank import reserved_for_exams
from app.questions import kinds
from app.questions.asking import OpenQuestion, new_token, seed_for
from app.questions.model import Question
from app.questions.variants import draw_variant
from app.quiz import store
from app.quiz.forms import Submission
from app.quiz.outcomes import AnswerFeedback, GradedVariant, NextLinks, build_feedback
from app.quiz.store import PracticeRunState, RecordedAttempt
from app.web.clock import to_milliseconds
from app.web.render import is_htmx_request

_PAGE, _PRACTICE = "the page", "your practice"
_HOMES = {"/flashcards": "your cards", "/quiz/runs/": _PRACTICE}


@dataclasses.dataclass(frozen=True, slots=True)
class FlagButton:
    """What the button of a question says; `back` is the page it stands on."""

    topic: str
    item: str
    on: bool
    back: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class RunFrame:
    """The run around a question: where in it, and how it went so far.

    `scores` has one entry per question, None for those not answered. `placing` is a
    placement test.
    """

    id: int
    place: int
    scores: tuple[float | None, ...]
    hidden: bool
    placing: bool = False

    @property
    def count(self) -> int:
        """The number of questions."""
        return len(self.scores)

    @property
    def answered(self) -> int:
        """How many are answered."""
        return sum(score is not None for score in self.scores)

    @property
    def right(self) -> int:
        """How many are wholly right."""
        return sum(score is not None and score >= 1 for score in self.scores)

    @property
    def address(self) -> str:
        """Where the run goes on, whichever of its questions are open by then."""
        return f"/quiz/runs/{self.id}"

    @property
    def onward(self) -> str:
        """The next question that is open, after this one first; else the result."""
        for place in (*range(self.place + 1, self.count + 1), *range(1, self.place)):
            if self.scores[place - 1] is None:
                return f"{self.address}/{place}"
        return f"{self.address}/result"


@dataclasses.dataclass(frozen=True, slots=True)
class PageQuestionCount:
    """What a page says of its own questions: `tries` of one, `answered` of `count`."""

    item: str
    tries: int
    answered: int
    count: int


def tally_of(desk: RequestContext, question: Question) -> PageQuestionCount | None:
    """The tally of the page in whose text a question stands; None if it does not."""
    topic = desk.library.topics.get(question.topic)
    asked = [
        piece.question
        for section in (topic.sections if topic else ())
        for piece in section.pieces
        if isinstance(piece, QuestionBlock)
    ]
    if question.id not in asked:
        return None
    past = store.history(desk.db, desk.learner.id)
    tries = past[question.id].tries if question.id in past else 0
    return PageQuestionCount(question.id, tries, sum(item in past for item in asked), len(asked))


def frame_of(desk: RequestContext, run: PracticeRunState, place: int) -> RunFrame:
    """The frame of question `place` of a run."""
    scores = tuple(run.answers[item][1] if item in run.answers else None for item in run.items)
    hidden = desk.request.cookies.get("score") == "hidden"
    placing = run.mode == "placement"
    return RunFrame(run.id, place, scores, hidden, placing=placing)


def refuse_during_exam(desk: RequestContext, question: Question) -> None:
    """Refuse a question of the mock exam that is being sat; raises Conflict."""
    if question.id in in_running_exam(desk.db, desk.learner.id, desk.now):
        raise ConflictError(
            "This question is in the mock exam that you are sitting.",
            "Finish the exam first; then it can be practiced.",
        )
    if question.id in excluded_questions(desk):
        raise ConflictError(
            "This question is kept for mock exams.",
            "Once a mock exam has asked it, it can be practiced.",
        )


def excluded_questions(desk: RequestContext) -> frozenset[str]:
    """The questions that practice does not ask now.

    Those of the mock exam that is being sat, and those kept for one to come.
    """
    db, learner = desk.db, desk.learner.id
    kept = reserved_for_exams(desk.library, in_past_exams(db, learner, desk.now))
    return kept | in_running_exam(db, learner, desk.now)


def open_question(desk: RequestContext, question: Question, sent: Submission) -> OpenQuestion:
    """The question as the request wants it: its seed, and what is typed so far."""
    form, raw = sent.form, sent.raw
    seed = form.seed
    if seed is None:
        before = store.seeds(desk.db, desk.learner.id, question.id)
        seed = seed_for(question, desk.learner.key, before)
    variant = draw_variant(question, seed)
    if form.move:
        raw = kinds.type_of(variant).moved(raw, form.move)
    return OpenQuestion(
        variant=variant,
        token=form.token or new_token(),
        context=form.context,
        back=form.back,
        run=form.run,
        hints=min(form.hints + form.more, len(variant.hints)),
        since=form.since or to_milliseconds(desk.now),
        certainty=form.certainty,
        typed=raw,
    )


def recorded_feedback(
    desk: RequestContext,
    given: RecordedAttempt,
    frame: RunFrame | None,
    sent: Submission,
    seen: GradedVariant | None = None,
) -> AnswerFeedback:
    """The outcome of a recorded answer, with the ways on from it."""
    if frame is not None:
        last = frame.onward.endswith("result")
        words = "See the result" if last else "Next question"
        way = NextLinks(frame.address, frame.onward, words)
    elif sent.form.context == "page":
        way = NextLinks(sent.form.back)
    elif _home(sent.form.back) == _PRACTICE:
        way = NextLinks(sent.form.back, sent.form.back, f"Back to {_PRACTICE}")
    else:
        topic = desk.library.questions.get(given.item)
        onward = f"/quiz/{topic.topic}" if topic else "/quiz"
        way = NextLinks(sent.form.back, onward, "All questions of this topic")
    here = verdict_page(given, frame, sent)
    way = dataclasses.replace(way, here=here, token=new_token())
    outcome = build_feedback(desk.db, desk.library, given, way, seen)
    return with_comeback(desk, outcome)


def with_comeback(desk: RequestContext, outcome: AnswerFeedback) -> AnswerFeedback:
    """The outcome with whether its question comes back as a card."""
    day = desk.learner.study_day(desk.now)
    item = outcome.question.id
    found = None
    if item in desk.library.questions:
        found = comeback_of(desk.db, desk.learner.id, item, day)
    return dataclasses.replace(outcome, comeback=found)


def _home(back: str) -> str:
    """What a question was opened from, in words: `back` is its address."""
    return next((name for at, name in _HOMES.items() if back.startswith(at)), _PAGE)


def verdict_page(given: RecordedAttempt, frame: RunFrame | None, sent: Submission) -> str:
    """Where a browser without htmx sees the verdict."""
    if frame is not None:
        return f"/quiz/runs/{frame.id}/{frame.place}"
    query: dict[str, object] = {"attempt": given.id, "context": sent.form.context}
    if sent.form.back:
        query["back"] = sent.form.back
    return f"/quiz/{given.topic}/{given.item}?{urlencode(query)}"


def once_more(
    desk: RequestContext, outcome: AnswerFeedback, sent: Submission
) -> OpenQuestion | None:
    """The same numbers asked again, where only the unit was wrong; else None."""
    near = outcome.verdict.near
    if not near or outcome.old:
        return None
    asked = open_question(desk, outcome.question, Submission(sent.form, outcome.given.raw))
    return dataclasses.replace(asked, variant=outcome.variant, token=new_token(), near=near)


def question_page(
    desk: RequestContext,
    shown: OpenQuestion | AnswerFeedback,
    frame: RunFrame | None = None,
    *,
    status: int = 200,
    reported: bool = False,
    tally: PageQuestionCount | None = None,
) -> HTMLResponse:
    """A page with one question; where htmx sent a form, the part that it replaces.

    With a `tally` that part brings what the page around the question says of it.
    """
    asked = shown if isinstance(shown, OpenQuestion) else None
    outcome = shown if isinstance(shown, AnswerFeedback) else None
    template = "quiz/show.html"
    if desk.request.method == "POST" and is_htmx_request(desk.request):
        alone = "quiz/_verdict.html" if outcome else "quiz/_question.html"
        template = "quiz/_desk.html" if frame else alone
        template = "quiz/_judged.html" if tally else template
    question = shown.question
    return desk.page(
        template,
        home=_home(shown.back),
        status=status,
        topic=desk.library.topics.get(question.topic),
        objectives=titles(desk.library, question),
        asked=asked,
        outcome=outcome,
        run=frame,
        reported=reported,
        tally=tally,
        flag=_flag(desk, shown, frame),
    )


def _flag(
    desk: RequestContext, shown: OpenQuestion | AnswerFeedback, frame: RunFrame | None
) -> FlagButton | None:
    """The flag of a question; in the text of a page that page shows it itself."""
    if shown.question.id not in desk.library.questions:
        return None
    question = shown.question
    alone = f"/quiz/{question.topic}/{question.id}"
    back = f"/quiz/runs/{frame.id}/{frame.place}" if frame else alone
    if isinstance(shown, AnswerFeedback) and frame is None:
        back = f"{alone}?attempt={shown.given.id}"
    on = question.id in store.flagged(desk.db, desk.learner.id)
    return FlagButton(question.topic, question.id, on, back)


def titles(library: Library, question: Question) -> list[str]:
    """The objectives of a question with their numbers, for the line above it."""
    return [
        f"{objective.number} {objective.name}"
        for domain in library.syllabus.domains
        for objective in domain.objectives
        if objective.number in question.objectives
    ]
