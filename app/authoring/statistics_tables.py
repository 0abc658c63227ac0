"""Bank and exam statistics as tables, computed when an author looks and something changed."""

import csv
import dataclasses
import datetime as dt
import hashlib
import io
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, Request
from sqlalchemy import Engine
from sqlmodel import Session

from app.authoring import store
from app.authoring.item_statistics import (
    ItemResponse,
    ItemStatistics,
    OptionStatistics,
    TestStatistics,
    compute_item_statistics,
    compute_test_statistics_of_complete_learners,
)
from app.authoring.regrading import has_only_key_changed_since, preview_regrade
from app.authoring.store import (
    AnswerLogVersion,
    CardLapses,
    FirstAttempt,
    FirstFinishedSitting,
    LearnerReport,
    SeenWording,
)
from app.authoring.to_do import (
    FixReason,
    ItemToFix,
    assign_option_letters,
    build_item_to_fix,
    compute_blind_guess_percent,
    find_fix_reasons_in_statistics,
    list_card_fix_reasons,
    list_report_and_regrade_fix_reasons,
)
from app.content.course import Course
from app.content.live_courses import SINGLE_COURSE, LiveCourse
from app.database.engine import open_snapshot_session
from app.questions import types
from app.questions.model import Question, Variant
from app.questions.question_type import StatisticsOption
from app.quiz.store import QUESTION

COLUMNS = {
    "facility": "Facility",
    "discrimination": "Discrimination",
    "guess": "Guess score",
    "count": "Answers",
}
SORT_COLUMNS = ("item", *COLUMNS)


class QuestionRevision(NamedTuple):
    question_id: str
    revision: str


StatisticsByRevision = Mapping[QuestionRevision, ItemStatistics]
CanonicalRevisionByRevision = Mapping[QuestionRevision, str]
"""The revision that each revision of a question counts as."""


@dataclasses.dataclass(frozen=True, slots=True)
class OptionShare:
    """One option in the chart of a row; `share` is 0..1 of the answers."""

    letter: str
    right: bool
    share: float


@dataclasses.dataclass(frozen=True, slots=True)
class QuestionStatisticsRow:
    """A question with its statistics; these are None before the first answer.

    `statistics` covers the current revision. `fix_reasons` is what the statistics say against the
    question, `unregraded_count` counts the answers that its corrected key would score differently.
    """

    question: Question
    statistics: ItemStatistics | None
    guess_percent: float | None
    answer_count_of_other_revisions: int
    fix_reasons: tuple[FixReason, ...] = ()
    report_count: int = 0
    unregraded_count: int = 0

    @property
    def statistics_if_enough_responses(self) -> ItemStatistics | None:
        """The statistics if there are enough answers to show an index, otherwise None."""
        has_enough = self.statistics is not None and self.statistics.has_enough_responses
        return self.statistics if has_enough else None

    def find_column_value(self, column: str) -> float | None:
        """Return a column of the table; None if there is nothing to show yet."""
        if column == "count":
            return self.statistics.count if self.statistics else 0
        if column == "guess":
            return self.guess_percent
        number: float | None = getattr(self.statistics_if_enough_responses, column, None)
        return number

    @property
    def discrimination_interval(self) -> tuple[float, float] | None:
        """The interval of the discrimination; None if there is nothing to show yet."""
        statistics = self.statistics_if_enough_responses
        return statistics.discrimination_interval if statistics else None

    @property
    def option_shares(self) -> tuple[OptionShare, ...]:
        """How the answers are spread over the options, if there are enough."""
        statistics = self.statistics_if_enough_responses
        if statistics is None:
            return ()
        letters = assign_option_letters(self.question)
        shares = {o.option_key: o.chooser_share for o in statistics.option_statistics}
        return tuple(
            OptionShare(letters[o.key], o.right, shares.get(o.key, 0.0))
            for o in types.question_type_of(self.question).options_for_statistics(
                self.question.answer
            )
            if o.key in letters
        )


@dataclasses.dataclass(frozen=True, slots=True)
class ExamStatisticsRow:
    slug: str
    title: str
    statistics: TestStatistics


def compute_item_statistics_by_revision(
    answers: Iterable[FirstAttempt], canonical_revisions: CanonicalRevisionByRevision
) -> dict[QuestionRevision, ItemStatistics]:
    """Return the statistics of every answered revision.

    An answer to an earlier revision counts for the learner's total, but each revision is an item of
    its own, so that the effect of an edit shows.
    """
    keys: dict[str, QuestionRevision] = {}
    responses = []
    for a in answers:
        revision = canonical_revisions.get(
            QuestionRevision(a.question_id, a.graded_by_revision), a.graded_by_revision
        )
        name = f"{a.question_id} {revision}"
        keys[name] = QuestionRevision(a.question_id, revision)
        responses.append(
            ItemResponse(a.learner_id, name, a.score, chosen_option_keys=a.chosen_option_keys)
        )
    return {
        keys[name]: statistics for name, statistics in compute_item_statistics(responses).items()
    }


def build_question_rows(
    course: Course,
    statistics_by_revision: StatisticsByRevision,
    unregraded_count_by_question: Mapping[str, int],
) -> list[QuestionStatisticsRow]:
    """Return one row for every question of the course, in authored order."""
    counts: Counter[str] = Counter()
    for (item, _), statistics in statistics_by_revision.items():
        counts[item] += statistics.count
    rows = []
    for question in course.questions.values():
        current = statistics_by_revision.get(QuestionRevision(question.id, question.revision))
        rows.append(
            QuestionStatisticsRow(
                question,
                current,
                compute_blind_guess_percent(question),
                answer_count_of_other_revisions=counts[question.id]
                - (current.count if current else 0),
                fix_reasons=tuple(find_fix_reasons_in_statistics(question, current)),
                unregraded_count=unregraded_count_by_question.get(question.id, 0),
            )
        )
    return rows


def add_report_counts(
    rows: Iterable[QuestionStatisticsRow], reports: Iterable[LearnerReport]
) -> list[QuestionStatisticsRow]:
    counts = Counter(report.question_id for report in reports)
    return [dataclasses.replace(row, report_count=counts[row.question.id]) for row in rows]


def sort_question_rows(
    rows: Iterable[QuestionStatisticsRow], column: str, *, descending: bool
) -> list[QuestionStatisticsRow]:
    """Return the rows sorted by a column of `SORT_COLUMNS`; those without a value come last."""
    if column == "item":
        return sorted(rows, key=lambda row: row.question.id, reverse=descending)
    sign = -1 if descending else 1

    def sort_key(row: QuestionStatisticsRow) -> tuple[bool, float]:
        value = row.find_column_value(column)
        return value is None, sign * (value or 0.0)

    return sorted(rows, key=sort_key)


def list_items_to_fix(
    course: Course, rows: Iterable[QuestionStatisticsRow], cards: Iterable[CardLapses]
) -> list[ItemToFix]:
    """Return the questions and cards to fix, worst first."""
    items = []
    for row in rows:
        reasons = list_report_and_regrade_fix_reasons(row.report_count, row.unregraded_count)
        reasons = [*row.fix_reasons, *reasons]
        items.append(build_item_to_fix(row.question.id, "question", row.question.place, reasons))
    for lapses in cards:
        card = course.cards.get(lapses.card_id)
        if card is not None:
            items.append(
                build_item_to_fix(card.id, "card", card.place, list_card_fix_reasons(lapses))
            )
    return sorted((i for i in items if i.reasons), key=lambda i: (-i.sort_weight, i.item_id))


def compute_exam_statistics(
    course: Course, first_sittings: Sequence[FirstFinishedSitting]
) -> list[ExamStatisticsRow]:
    """Return the test statistics of every mock exam of the course.

    Each learner has a paper of different questions, so a position on the paper is treated as an
    item, as Moodle does for randomly drawn questions.
    """
    rows = []
    for slug, exam in course.exams.items():
        responses = [
            ItemResponse(number, str(position), points)
            for number, paper in enumerate(first_sittings)
            if paper.exam_slug == slug and len(paper.score_by_position) == exam.question_count
            for position, points in enumerate(paper.score_by_position)
        ]
        rows.append(
            ExamStatisticsRow(
                slug, exam.title, compute_test_statistics_of_complete_learners(responses)
            )
        )
    return rows


def write_questions_as_csv(rows: Iterable[QuestionStatisticsRow]) -> str:
    """Return the table as CSV: one line per question, percentages as plain numbers."""
    identity = ("item", "type", "topic", "file", "line", "revision")
    others = ("discrimination_low", "discrimination_high", "answers_before", "reports", "options")
    return _write_csv((*identity, *COLUMNS, *others), map(_build_csv_row, rows))


def write_exams_as_csv(exams: Iterable[ExamStatisticsRow]) -> str:
    """Return the indices of the mock exams as CSV; empty below ten learners."""
    rows = []
    for exam in exams:
        test = exam.statistics
        numbers = (
            test.mean_percent,
            test.standard_deviation_percent,
            test.cronbach_alpha_percent,
            *(test.cronbach_alpha_interval or (None, None)),
        )
        cells = [_format_plain_value(n) if test.has_enough_responses else "" for n in numbers]
        rows.append([exam.slug, exam.title, test.learner_count, *cells])
    return _write_csv(
        ("exam", "title", "learners", "mean", "sd", "alpha", "alpha_low", "alpha_high"), rows
    )


def _write_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(header)
    writer.writerows(rows)
    return buffer.getvalue()


def _build_csv_row(row: QuestionStatisticsRow) -> list[object]:
    question = row.question
    interval = row.discrimination_interval or (None, None)
    return [
        *(question.id, question.type, question.topic, question.place.path, question.place.line),
        question.revision,
        *(_format_plain_value(row.find_column_value(name)) for name in COLUMNS),
        *(_format_plain_value(end) for end in interval),
        row.answer_count_of_other_revisions,
        row.report_count,
        " ".join(
            f"{s.letter}{'*' if s.right else ''}={100 * s.share:.1f}" for s in row.option_shares
        ),
    ]


def _format_plain_value(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")


# What a learner sees and answers. Reasons, hints, sources and difficulty do not count.
_DIGEST_FIELDS = ("type", "stem", "answer", "partial", "computed")
_IGNORED_FOR_DIGEST = frozenset({"feedback", "why", "pinned", "html"})


def hash_statistically_relevant_content(question: Question) -> str:
    fields = QUESTION.dump_python(question, mode="json")
    content = _drop_ignored_fields({name: fields[name] for name in _DIGEST_FIELDS})
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def hash_stored_content_or_use_revision(body: str, revision: str) -> str:
    """Return the digest of a stored revision; an unreadable one gets its own id."""
    try:
        return hash_statistically_relevant_content(QUESTION.validate_json(body))
    except ValueError:
        return revision


def _drop_ignored_fields(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _drop_ignored_fields(v)
            for name, v in value.items()
            if name not in _IGNORED_FOR_DIGEST
        }
    return [_drop_ignored_fields(v) for v in value] if isinstance(value, list) else value


class RevisionDigest(NamedTuple):
    question_id: str
    revision: str
    digest: str


def map_to_newest_equal_revisions(
    questions: Mapping[str, Question], stored_revisions: Iterable[RevisionDigest]
) -> CanonicalRevisionByRevision:
    """Return the revision each answered one counts as: the newest with that digest.

    `stored_revisions` has the oldest first.
    """
    current = [
        RevisionDigest(
            question.id, question.revision, hash_statistically_relevant_content(question)
        )
        for question in questions.values()
    ]
    groups: dict[tuple[str, str], list[str]] = {}
    for item, revision, digest in (*stored_revisions, *current):
        groups.setdefault((item, digest), []).append(revision)
    canonical = {
        QuestionRevision(item, revision): revisions[-1]
        for (item, _), revisions in groups.items()
        for revision in revisions
    }
    # The current revision counts as itself, whatever is stored.
    return canonical | {QuestionRevision(c.question_id, c.revision): c.revision for c in current}


@dataclasses.dataclass(frozen=True, slots=True)
class WordingStatistics:
    revision: str
    first_shown: dt.datetime | None
    is_current: bool
    statistics: ItemStatistics | None


@dataclasses.dataclass(frozen=True, slots=True)
class OptionRow:
    """An option and its choosers: how many, what share, and how they do on other items."""

    letter: str
    option: StatisticsOption
    chooser_statistics: OptionStatistics


class VariantParameter(NamedTuple):
    name: str
    value: str


@dataclasses.dataclass(frozen=True, slots=True)
class VariantRow:
    """A variant of a computed question: its numbers, right and foreseen answers."""

    seed: int
    parameters: tuple[VariantParameter, ...]
    right_answers: tuple[str, ...]
    foreseen_wrong_answers: tuple[str, ...]


def list_wording_statistics(
    question: Question,
    wordings: Sequence[SeenWording],
    statistics_by_revision: StatisticsByRevision,
) -> list[WordingStatistics]:
    """Return the revisions of a question, oldest first; the current one is always included."""
    first_shown = {wording.revision: wording.first_shown for wording in wordings}
    answered_revisions = [
        revision for item, revision in statistics_by_revision if item == question.id
    ]
    return [
        WordingStatistics(
            revision,
            first_shown.get(revision),
            revision == question.revision,
            statistics_by_revision.get(QuestionRevision(question.id, revision)),
        )
        for revision in dict.fromkeys([*first_shown, *answered_revisions, question.revision])
    ]


def merge_equal_wordings(
    question: Question,
    wordings: Iterable[SeenWording],
    canonical_revisions: CanonicalRevisionByRevision,
) -> list[SeenWording]:
    """Merge revisions of equal content: the first one's date, the newest one's revision."""
    unique: dict[str, SeenWording] = {}
    for wording in wordings:
        key = QuestionRevision(question.id, wording.revision)
        revision = canonical_revisions.get(key, wording.revision)
        unique.setdefault(revision, dataclasses.replace(wording, revision=revision))
    return list(unique.values())


def build_option_rows(question: Question, statistics: ItemStatistics | None) -> list[OptionRow]:
    """Return every option of a choice question in authored order; none for other types."""
    kind = types.question_type_of(question)
    if not kind.responses_are_option_keys:
        return []
    letters = assign_option_letters(question)
    by_key = {o.option_key: o for o in statistics.option_statistics} if statistics else {}
    rows = []
    for option in kind.options_for_statistics(question.answer):
        never_chosen = OptionStatistics(
            option.key, chooser_count=0, chooser_share=0.0, mean_score_on_other_items=None
        )
        rows.append(
            OptionRow(letters.get(option.key, ""), option, by_key.get(option.key, never_chosen))
        )
    return rows


def build_variant_row(variant: Variant) -> VariantRow:
    options = types.question_type_of(variant).options_for_statistics(variant.answer)
    return VariantRow(
        variant.seed,
        tuple(
            VariantParameter(name, value if isinstance(value, str) else f"{value:,.10g}")
            for name, value in variant.parameter_values.items()
        ),
        tuple(o.text for o in options if o.right),
        tuple(o.text for o in options if not o.right),
    )


# Where a computation takes seconds, results stay valid for minutes; elsewhere an author
# sees what was answered, or erased, a moment ago.
_SLOW_COMPUTATION_SECONDS = 1.0  # s
_REUSE_PER_COMPUTATION_TIME = 30  # times as long as they took to compute


@dataclasses.dataclass(frozen=True, slots=True)
class BankStatistics:
    """The statistics of all questions and exams as of one moment.

    In `statistics_by_revision`, revisions with the same content are merged. `question_rows` has every question of the course.
    `unregraded_count_by_question` says how many answers to a question the current key would score differently.
    """

    computed_at: dt.datetime
    statistics_by_revision: StatisticsByRevision
    question_rows: Sequence[QuestionStatisticsRow]
    exam_rows: Sequence[ExamStatisticsRow]
    lapsed_cards: Sequence[CardLapses]
    canonical_revision_by_revision: CanonicalRevisionByRevision
    unregraded_count_by_question: Mapping[str, int]


class StatisticsCache:
    """The newest bank statistics of a course in one process."""

    def __init__(
        self,
        engine: Engine,
        live_course: LiveCourse,
        clock: Callable[[], dt.datetime],
        course_name: str = SINGLE_COURSE,
    ) -> None:
        self._engine = engine
        self._live_course = live_course
        self._clock = clock
        self._course_name = course_name
        self._lock = threading.Lock()
        self._statistics: BankStatistics | None = None
        self._live_course_version = ""
        self._log_version: AnswerLogVersion | None = None
        self._valid_until = 0.0  # by the monotonic clock

    def get_recent_statistics(self) -> BankStatistics:
        """Return the statistics of now, or of a moment ago if computing them takes long."""
        with self._lock:
            course = self._live_course.get_current_course()
            newest = self._statistics if course.version == self._live_course_version else None
            if newest is not None and time.monotonic() < self._valid_until:
                return newest
            start = time.monotonic()
            with open_snapshot_session(self._engine) as db:
                log_version = store.read_answer_log_version(db, self._course_name)
                if newest is None or log_version != self._log_version:
                    newest = _compute_statistics(db, self._course_name, course, self._clock())
                else:
                    lapsed = store.list_lapsed_cards(db, self._course_name)
                    newest = dataclasses.replace(
                        newest, computed_at=self._clock(), lapsed_cards=lapsed
                    )
            self._statistics, self._log_version = newest, log_version
            self._live_course_version = course.version
            end = time.monotonic()
            duration = end - start
            self._valid_until = end + (
                _REUSE_PER_COMPUTATION_TIME * duration
                if duration >= _SLOW_COMPUTATION_SECONDS
                else 0
            )
            return newest


def _compute_statistics(
    db: Session, course_name: str, course: Course, now: dt.datetime
) -> BankStatistics:
    canonical = map_to_newest_equal_revisions(
        course.with_drafts().questions,
        (
            RevisionDigest(item, revision, hash_stored_content_or_use_revision(body, revision))
            for item, revision, body in store.load_stored_revisions(db)
        ),
    )
    answers = store.load_first_attempts(db, course_name)
    items = compute_item_statistics_by_revision(answers, canonical)
    unregraded: dict[str, int] = {}
    for item, revision in items:
        question = course.questions.get(item)
        if question is None or revision == question.revision or item in unregraded:
            continue
        if has_only_key_changed_since(db, question, revision):
            unregraded[item] = preview_regrade(db, course_name, question).impact.answers
    return BankStatistics(
        computed_at=now,
        statistics_by_revision=items,
        question_rows=build_question_rows(course, items, unregraded),
        exam_rows=compute_exam_statistics(
            course, store.load_first_finished_sittings(db, course_name)
        ),
        lapsed_cards=store.list_lapsed_cards(db, course_name),
        canonical_revision_by_revision=canonical,
        unregraded_count_by_question=unregraded,
    )


def _get_statistics_of_request(request: Request) -> BankStatistics:
    cache: StatisticsCache = request.app.state.statistics[request.state.course_name]
    return cache.get_recent_statistics()


CurrentStatistics = Annotated[BankStatistics, Depends(_get_statistics_of_request)]
