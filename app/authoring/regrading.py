"""Effect of a corrected key.

If an author marked the wrong option as right, learners were graded wrong. Their answers stay in the
log as they were written; each gets a regrade row with the score by the current key. Answers with an
unchanged score get one too. Otherwise the statistics of the new revision would include only answers
with a changed score.
"""

import collections
import dataclasses
import datetime as dt
import enum
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sqlmodel import Session

from app.accounts.author_store import AuditRecord, record_audit_entry
from app.accounts.learner_store import increment_change_counter
from app.authoring import store
from app.authoring.store import NewScore, RegradableAttempt
from app.questions.grading import (
    RegradeRefusal,
    VariantPair,
    is_only_key_changed,
    pair_seen_and_current_variants,
)
from app.questions.model import Question, find_combination_index
from app.quiz.store import load_question_if_stored, save_revision_once

_SCORE_TOLERANCE = 1e-9


class RegradePolicy(enum.StrEnum):
    KEY = "key"
    BOTH = "both"
    NEVER_LOWER = "never-lower"
    DROP = "drop"
    UNDO = "undo"

    @property
    def includes_current_revision(self) -> bool:
        """Whether it also concerns answers that the current key has graded."""
        return self in {RegradePolicy.BOTH, RegradePolicy.DROP, RegradePolicy.UNDO}


@dataclasses.dataclass(frozen=True, slots=True)
class RegradeImpact:
    """How many answers, learners, first answers and mock exams a change affects."""

    answers: int
    learners: int
    first_answers: int
    sittings: int


@dataclasses.dataclass(frozen=True, slots=True)
class ScoreChange:
    """Answers whose score changes in the same way."""

    old_score: float
    new_score: float
    impact: RegradeImpact


class RefusalCount(NamedTuple):
    reason: RegradeRefusal
    answer_count: int


@dataclasses.dataclass(frozen=True, slots=True)
class RegradePreview:
    """What would change if the answers to a question were graded by its current key.

    `answer_count` counts those graded by another revision. `impact` covers those whose score
    changes; `unchanged_count` keep theirs. `scores_to_write` are to be written; empty if no score
    changes.
    """

    question: Question
    answer_count: int
    impact: RegradeImpact
    score_changes: tuple[ScoreChange, ...]
    unchanged_count: int
    refusals: tuple[RefusalCount, ...]
    scores_to_write: tuple[NewScore, ...]


def preview_regrade(
    db: Session,
    course_name: str,
    question: Question,
    *,
    accept_rewording: bool = False,
    policy: RegradePolicy = RegradePolicy.KEY,
) -> RegradePreview:
    """Return what the key of `question` would change; nothing is written.

    With `accept_rewording`, answers to a different wording are regraded too. `policy` says which score
    counts: that of the current key, the better one of it and every earlier key (both), never
    less than now (never-lower), or full marks for everyone who answered (drop). Undo returns to
    the current key after such a decision.
    """
    revision = "" if policy.includes_current_revision else question.revision
    answers = store.load_regradable_attempts(db, course_name, question.id, revision)
    seen_revisions = {wording.revision for wording in store.list_seen_wordings(db, question.id)}
    wordings = {
        name: _load_question_revision_or_none(db, question.id, name)
        for name in seen_revisions | {answer.graded_by_revision for answer in answers}
    } | {question.revision: question}
    versions = [question]
    if policy is RegradePolicy.BOTH:
        earlier = [w for name, w in wordings.items() if w is not None and name != question.revision]
        versions += [wording for wording in earlier if is_only_key_changed(wording, question)]
    regraders = [
        _CachedRegrader(version, wordings, accept_rewording=accept_rewording)
        for version in versions
    ]
    scored = [(answer, _score_by_policy(answer, regraders, policy)) for answer in answers]
    rows = [
        NewScore(answer, question.revision, score)
        for answer, score in scored
        if not isinstance(score, RegradeRefusal)
    ]
    changed = [row for row in rows if abs(row.score - row.attempt.score) > _SCORE_TOLERANCE]
    refusals = collections.Counter(s for _, s in scored if isinstance(s, RegradeRefusal))
    new_scores = [
        row for row in rows if row.attempt.graded_by_revision != question.revision or row in changed
    ]
    return RegradePreview(
        question=question,
        answer_count=len(scored),
        impact=_count_regrade_impact(changed),
        score_changes=_group_score_changes(changed),
        unchanged_count=len(rows) - len(changed),
        refusals=tuple(RefusalCount(*counted) for counted in sorted(refusals.items())),
        scores_to_write=tuple(new_scores) if changed else (),
    )


def _score_by_policy(
    attempt: RegradableAttempt, regraders: Sequence["_CachedRegrader"], policy: RegradePolicy
) -> float | RegradeRefusal:
    """Return the score of an answer; `regraders` are that of the current key, then earlier ones."""
    if policy is RegradePolicy.DROP:
        return 1.0
    current = regraders[0].regrade(attempt)
    if isinstance(current, RegradeRefusal):
        return current
    if policy is RegradePolicy.NEVER_LOWER:
        return max(current, attempt.score)
    scores = [regrader.regrade(attempt) for regrader in regraders[1:]]
    return max([current, *(score for score in scores if not isinstance(score, RegradeRefusal))])


def has_only_key_changed_since(db: Session, question: Question, revision: str) -> bool:
    """Return whether only the key changed since a revision, so that regrading makes sense."""
    answered_wording = _load_question_revision_or_none(db, question.id, revision)
    return answered_wording is not None and is_only_key_changed(answered_wording, question)


def write_regrades_of_preview(
    db: Session, course_name: str, preview: RegradePreview, author_session_id: int, now: dt.datetime
) -> int:
    """Write the regrades of a preview; returns how many answers were regraded.

    Other writers may have changed the log since. If two authors confirm the same preview, only one
    writes, and erased learners are left out. `author_session_id` is the session of the author.
    """
    locked_learners = store.lock_learners_who_answered(db, course_name, preview.question.id)
    rows = [row for row in preview.scores_to_write if row.attempt.learner_id in locked_learners]
    learners = store.write_regrades_returning_learner_ids(db, rows, now)
    if learners:
        save_revision_once(db, preview.question, now)
        for learner in sorted(set(learners)):
            increment_change_counter(db, learner)
        subject = f"{len(learners)} of {preview.question.id}"[:120]
        record_audit_entry(db, AuditRecord(now, author_session_id, "answers graded again", subject))
    return len(learners)


class _CachedRegrader:
    """Regrades answers to a question, each distinct one only once.

    `question_by_revision` has the revisions that were answered; None for unreadable ones.
    """

    def __init__(
        self,
        question: Question,
        question_by_revision: Mapping[str, Question | None],
        *,
        accept_rewording: bool,
    ) -> None:
        self._question = question
        self._wordings = question_by_revision
        self._reworded = accept_rewording
        self._pairs: dict[tuple[object, ...], VariantPair | RegradeRefusal] = {}
        self._scores: dict[tuple[object, ...], float | RegradeRefusal] = {}

    def regrade(self, attempt: RegradableAttempt) -> float | RegradeRefusal:
        """Return the score of an answer by the current key, or why there is none."""
        answered_wording = self._wordings[attempt.graded_by_revision]
        if answered_wording is None:
            return RegradeRefusal.LOST
        variants = (
            find_combination_index(q, attempt.seed) for q in (answered_wording, self._question)
        )
        pair_key = (attempt.graded_by_revision, *variants)
        if pair_key not in self._pairs:
            self._pairs[pair_key] = pair_seen_and_current_variants(
                answered_wording, self._question, attempt.seed
            )
        pair, score_key = self._pairs[pair_key], (*pair_key, attempt.response_json)
        if isinstance(pair, RegradeRefusal):
            return pair
        if score_key not in self._scores:
            raw = json.loads(attempt.response_json)
            self._scores[score_key] = pair.regrade(raw, accept_rewording=self._reworded)
        return self._scores[score_key]


def _group_score_changes(changed_scores: Iterable[NewScore]) -> tuple[ScoreChange, ...]:
    """Return the changes by old and new score, the largest gain first."""
    groups: dict[tuple[float, float], list[NewScore]] = collections.defaultdict(list)
    for row in changed_scores:
        groups[round(row.attempt.score, 4), round(row.score, 4)].append(row)
    changes = [ScoreChange(*scores, _count_regrade_impact(rows)) for scores, rows in groups.items()]
    return tuple(
        sorted(changes, key=lambda change: (change.old_score - change.new_score, change.old_score))
    )


def _count_regrade_impact(changed_scores: Sequence[NewScore]) -> RegradeImpact:
    answers = [row.attempt for row in changed_scores]
    return RegradeImpact(
        answers=len(answers),
        learners=len({answer.learner_id for answer in answers}),
        first_answers=sum(answer.is_first for answer in answers),
        sittings=len({answer.sitting_id for answer in answers} - {0}),
    )


def _load_question_revision_or_none(
    db: Session, question_id: str, revision: str
) -> Question | None:
    try:
        return load_question_if_stored(db, question_id, revision)
    except ValueError:  # stored in the format of an older version
        return None
