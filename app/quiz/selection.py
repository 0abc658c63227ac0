"""Choose the questions of a practice run."""

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from app.accounts.current_learner import RequestContext
from app.content.course_facts import CourseFacts, apportion_by_weight, cached_course_facts
from app.markup.model import Domain
from app.questions import types
from app.questions.model import Question
from app.questions.question_type import classify_score
from app.study_plan.day_list import sum_points_lost_in_last_mock_exam
from app.study_plan.facts import LearnerFacts
from app.study_plan.loader import load_study_plan
from app.study_plan.store import load_learner_facts

Mode = Literal[
    "mixed", "topic", "objective", "weakest", "missed", "retry", "placement", "flagged", "today"
]
MODES: tuple[Mode, ...] = get_args(Mode)


@dataclasses.dataclass(frozen=True, slots=True)
class PastAttempts:
    """A learner's attempts at one question: count, last score, moment in ms."""

    attempt_count: int
    last_score: float
    last_at_ms: int

    @property
    def was_last_missed(self) -> bool:
        """Whether the last answer was not fully right."""
        return classify_score(self.last_score) != "right"


@dataclasses.dataclass(frozen=True, slots=True)
class PracticeRequest:
    """What to practice: `topic_or_objective_or_run` is a topic's slug or an objective's number."""

    mode: Mode
    topic_or_objective_or_run: str = ""
    max_questions: int = 10


def choose_practice_questions(
    questions: Sequence[Question],
    past_by_question: Mapping[str, PastAttempts],
    practice_request: PracticeRequest,
    seed: str,
    objectives_weakest_first: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return the question ids of a run in order; empty if none match the request.

    Questions beyond the exam come last. Unseen questions come first, then those whose last answer
    was not right, oldest first, then the least practiced. Within a group `seed` sets the order. The
    mode `objectives_weakest_first` goes through the objectives in the order of
    `objectives_weakest_first` (their numbers). The mode `missed` takes only questions last missed.
    In a run on an objective, or on the weakest ones, up to half are questions missed on it, because
    they show what is weak about it.
    """
    pool = [q for q in questions if _is_in_scope(q, past_by_question, practice_request)]
    rank = _make_practice_sort_key(past_by_question, seed)
    pool.sort(key=rank)
    if practice_request.mode == "weakest":
        places = {objective: place for place, objective in enumerate(objectives_weakest_first)}
        pool.sort(key=lambda q: (q.level, _rank_by_weakness(q, places)))
        first = objectives_weakest_first[0] if objectives_weakest_first else ""
        pool = _put_missed_first(pool, past_by_question, first, practice_request.max_questions // 2)
    elif practice_request.mode == "objective":
        pool = _put_missed_first(
            pool,
            past_by_question,
            practice_request.topic_or_objective_or_run,
            practice_request.max_questions // 2,
        )
    return tuple(q.id for q in sorted(pool[: practice_request.max_questions], key=rank))


def _put_missed_first(
    pool: Sequence[Question],
    past_by_question: Mapping[str, PastAttempts],
    objective: str,
    max_missed: int,
) -> list[Question]:
    """Return the pool with up to `max_missed` of the questions missed on an objective first."""
    missed = [
        q
        for q in pool
        if objective in q.objectives
        and not q.level
        and q.id in past_by_question
        and past_by_question[q.id].was_last_missed
    ][:max_missed]
    return [*missed, *(q for q in pool if q not in missed)]


def _is_in_scope(
    question: Question,
    past_by_question: Mapping[str, PastAttempts],
    practice_request: PracticeRequest,
) -> bool:
    if practice_request.mode == "missed":
        seen = past_by_question.get(question.id)
        return seen is not None and seen.was_last_missed
    if practice_request.mode == "topic":
        return question.topic == practice_request.topic_or_objective_or_run
    if practice_request.mode == "objective":
        return practice_request.topic_or_objective_or_run in question.objectives
    return True


def _rank_by_weakness(question: Question, rank_by_objective: Mapping[str, int]) -> int:
    last = len(rank_by_objective)
    return min((rank_by_objective.get(o, last) for o in question.objectives), default=last)


class PracticeRank(NamedTuple):
    """A sort key: questions beyond the exam last, then unseen, missed and right ones."""

    level: str
    group: int
    rank_in_group: int
    shuffle_key: str


def _make_practice_sort_key(
    past_by_question: Mapping[str, PastAttempts], seed: str
) -> Callable[[Question], PracticeRank]:
    def rank(question: Question) -> PracticeRank:
        seen = past_by_question.get(question.id)
        group, rank_in_group = 0, 0
        if seen is not None:
            group, rank_in_group = (
                (1, seen.last_at_ms) if seen.was_last_missed else (2, seen.attempt_count)
            )
        shuffle_key = _hash_shuffle_key(seed, question.id)
        return PracticeRank(question.level, group, rank_in_group, shuffle_key)

    return rank


_PRIOR_ANSWERS = 6  # as many answers as in all objectives count beside an objective's own
PLACEMENT_QUESTIONS = 15
"""Length of a placement test. Choosing one answer takes about a minute."""
PLACEMENT_HELPS_BELOW = 30
"""Answers from which on a placement test is no longer offered."""


def draw_placement_test(
    questions: Sequence[Question],
    domains: Sequence[Domain],
    past_by_question: Mapping[str, PastAttempts],
    seed: str,
) -> tuple[str, ...]:
    """Return the question ids of a placement test in order, at most PLACEMENT_QUESTIONS.

    Each domain has its share of the blueprint, and no objective is repeated before all of its
    domain were used. Choice questions come first, then unseen ones: the test is short, and a seen
    question says less.
    """
    counts = apportion_by_weight({d.number: d.weight for d in domains}, PLACEMENT_QUESTIONS)
    order = sorted(
        (q for q in questions if q.may_be_asked_in_exams),
        key=lambda q: (
            not types.question_type_of(q).responses_are_option_keys,
            q.id in past_by_question,
            _hash_shuffle_key(seed, q.id),
        ),
    )
    there = {o.number: d.number for d in domains for o in d.objectives}
    taken: dict[str, None] = {}
    for domain in domains:
        mine = [q for q in order if q.find_domain(there) == domain.number]
        numbers = [o.number for o in domain.objectives]
        numbers.sort(key=lambda number: _hash_shuffle_key(seed, number))
        taken |= dict.fromkeys(
            _pick_one_of_each_objective_in_turn(mine, numbers, counts[domain.number])
        )
    return tuple(taken)


def _pick_one_of_each_objective_in_turn(
    order: Sequence[Question], objectives: Sequence[str], count: int
) -> list[str]:
    piles = [[q.id for q in order if number in q.objectives] for number in objectives]
    picked: dict[str, None] = {}
    while len(picked) < count and any(piles):
        for pile in piles:
            free = [item for item in pile if item not in picked]
            pile[:] = free[1:]
            if free and len(picked) < count:
                picked[free[0]] = None
    return list(picked)


def _hash_shuffle_key(seed: str, word: str) -> str:
    return hashlib.sha256(f"{seed}:{word}".encode()).hexdigest()


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectiveRank:
    """An objective to practice: its first answers, how many are right, and the share of the exam.

    `has_mock_exam_losses` if it leads because it lost more than a point in the last mock exam.
    """

    number: str
    answered_count: int
    right_count: int
    exam_share: float
    has_mock_exam_losses: bool


def rank_objectives_by_exam_gain(
    course_facts: CourseFacts, learner_facts: LearnerFacts
) -> list[ObjectiveRank]:
    """Return the objectives that have questions, the one with most to gain in the exam first.

    Those that lost more than a point in the last mock exam lead, until they are read or practiced.
    The others follow by what is not right of their share of the exam.
    """
    lost = sum_points_lost_in_last_mock_exam(course_facts, learner_facts)
    answered, right = Counter[str](), Counter[str]()
    for answer in learner_facts.first_answers:
        if (question := course_facts.questions.get(answer.question)) is not None:
            answered.update(question.objectives)
            right.update(question.objectives if answer.score >= 1 else ())
    overall = right.total() / max(1, answered.total())

    def gain(rank: ObjectiveRank) -> tuple[float, float]:
        expected_right = rank.right_count + _PRIOR_ANSWERS * overall
        share = expected_right / (rank.answered_count + _PRIOR_ANSWERS)
        points_lost = lost[rank.number] if rank.has_mock_exam_losses else 0.0
        return points_lost, rank.exam_share * (1 - share)

    ranks = [
        ObjectiveRank(n, answered[n], right[n], facts.exam_share, lost[n] > 1)
        for n, facts in course_facts.objectives.items()
        if facts.question_ids
    ]
    return sorted(ranks, key=gain, reverse=True)


def load_objectives_by_exam_gain(ctx: RequestContext) -> list[ObjectiveRank]:
    course_facts, learner_facts = cached_course_facts(ctx.course), LearnerFacts(ctx.study_day)
    if ctx.learner.id:
        learner_facts = load_learner_facts(ctx.db, ctx.learner, ctx.course, ctx.study_day)
    return rank_objectives_by_exam_gain(course_facts, learner_facts)


def load_questions_on_day_list(ctx: RequestContext) -> tuple[str, ...]:
    """Return the questions on the list of the study day that the course still has."""
    plan = load_study_plan(ctx)
    listed = (q for task in (plan.tasks if plan else ()) for q in task.task.questions)
    return tuple(q for q in listed if q in ctx.course.questions)
