"""What the mended key of a question changes, and the rows that make it count.

An author who marked the wrong option right has graded learners wrongly. Their answers
stay in the log as they were written; each gets a row beside it with the score by the
key of now. Answers whose score stays get one too: the statistics of the new wording
would otherwise be made of those alone whom the old key wronged.
"""

import collections
import dataclasses
import datetime as dt
import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence

from sqlmodel import Session

from app.authoring import store
from app.authoring.store import Again, Answered
from app.authors.store import Deed, record
from app.learners.store import count_change
from app.questions.model import Question
from app.questions.regrading import Refusal, is_key_alone, regrade
from app.quiz.store import keep_revision, wording

_SAME = 1e-9


@dataclasses.dataclass(frozen=True, slots=True)
class Reach:
    """How far a change goes: answers, whose, how many first ones, mock exams."""

    answers: int
    learners: int
    firsts: int
    sittings: int


@dataclasses.dataclass(frozen=True, slots=True)
class Effect:
    """Answers whose score changes in the same way."""

    before: float
    after: float
    reach: Reach


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """What would change where the answers to a question are graded by its key of now.

    `asked` counts those that another wording graded; `reach` is of the ones whose score
    changes; `same` keep theirs, `refused` says how many cannot be graded again, and
    why. `rows` are to be written; there are none where no score changes.
    """

    question: Question
    asked: int
    reach: Reach
    effects: tuple[Effect, ...]
    same: int
    refused: tuple[tuple[Refusal, int], ...]
    rows: tuple[Again, ...]


def plan_of(db: Session, course: str, question: Question, *, reworded: bool) -> Plan:
    """What the key of `question` would change; nothing is written.

    `reworded` lets answers to other words count as answers to these.
    """
    answers = store.answered(db, course, question.id, question.revision)
    wordings = {
        revision: _wording(db, question.id, revision)
        for revision in {answer.revision for answer in answers}
    }
    return weigh(question, answers, wordings, reworded=reworded)


def is_mended(db: Session, question: Question, revision: str) -> bool:
    """Whether only the key changed since a wording, so that a plan is worth making."""
    asked = _wording(db, question.id, revision)
    return asked is not None and is_key_alone(asked, question)


def confirm(db: Session, course: str, plan: Plan, by: int, now: dt.datetime) -> int:
    """Write what a plan says; returns how many answers it graded again.

    Others may write between plan and confirmation: of two who confirm the same, one
    writes, and who was erased is left out. `by` is the session of the author.
    """
    there = store.hold(db, course, plan.question.id)
    keep_revision(db, plan.question, now)
    rows = [row for row in plan.rows if row.answer.learner in there]
    learners = store.add(db, rows, now)
    for learner in sorted(set(learners)):
        count_change(db, learner)
    if learners:
        subject = f"{len(learners)} of {plan.question.id}"[:120]
        record(db, Deed(now, by, "answers graded again", subject))
    return len(learners)


def weigh(
    question: Question,
    answers: Iterable[Answered],
    wordings: Mapping[str, Question | None],
    *,
    reworded: bool,
) -> Plan:
    """The plan of these answers; `wordings` are by revision, None for unreadable."""
    mark = _marker(question, wordings, reworded=reworded)
    found = [(answer, mark(answer)) for answer in answers]
    rows = [
        Again(answer, question.revision, score)
        for answer, score in found
        if not isinstance(score, Refusal)
    ]
    changed = [row for row in rows if abs(row.score - row.answer.score) > _SAME]
    refused = collections.Counter(s for _, s in found if isinstance(s, Refusal))
    return Plan(
        question=question,
        asked=len(found),
        reach=_reach(changed),
        effects=_effects(changed),
        same=len(rows) - len(changed),
        refused=tuple(sorted(refused.items())),
        rows=tuple(rows) if changed else (),
    )


def _marker(
    question: Question, wordings: Mapping[str, Question | None], *, reworded: bool
) -> Callable[[Answered], float | Refusal]:
    """Grades an answer again; the same answer to the same wording only once."""

    @functools.cache
    def mark(revision: str, seed: int, raw: str) -> float | Refusal:
        asked = wordings[revision]
        if asked is None:
            return Refusal.LOST
        return regrade(asked, question, seed, json.loads(raw), reworded=reworded)

    def marked(answer: Answered) -> float | Refusal:
        # Without numbers to draw, a seed says in which order the parts are shown.
        asked = wordings[answer.revision]
        drawn = question.computed or (asked is not None and asked.computed)
        return mark(answer.revision, answer.seed if drawn else 0, answer.raw)

    return marked


def _effects(changed: Iterable[Again]) -> tuple[Effect, ...]:
    """The changes by the scores they lead from and to, the largest gain first."""
    groups: dict[tuple[float, float], list[Again]] = collections.defaultdict(list)
    for row in changed:
        groups[round(row.answer.score, 4), round(row.score, 4)].append(row)
    made = [Effect(*scores, _reach(rows)) for scores, rows in groups.items()]
    return tuple(sorted(made, key=lambda e: (e.before - e.after, e.before)))


def _reach(rows: Sequence[Again]) -> Reach:
    answers = [row.answer for row in rows]
    return Reach(
        answers=len(answers),
        learners=len({answer.learner for answer in answers}),
        firsts=sum(answer.first for answer in answers),
        sittings=len({answer.sitting for answer in answers} - {0}),
    )


def _wording(db: Session, item: str, revision: str) -> Question | None:
    try:
        return wording(db, item, revision)
    except ValueError:  # as an older version kept it
        return None
