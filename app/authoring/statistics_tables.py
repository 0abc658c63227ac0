"""Bank and exam statistics as tables."""

import csv
import dataclasses
import datetime as dt
import hashlib
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from app.authoring.item_statistics import (
    ItemResponse,
    ItemStatistics,
    Standings,
    TestStatistics,
    choices_by_fifth,
    describe_items,
    describe_test,
    discrimination_interval,
    facility_change,
)
from app.authoring.store import CardLapses, FirstAttempt, FirstSitting, LearnerReport, SeenWording
from app.authoring.to_do import (
    LETTERS,
    FixReason,
    ItemToFix,
    blind_guess_percent,
    card_reasons,
    item_to_fix,
    option_letters,
    report_reason,
    sort_by_severity,
    statistics_reasons,
    unregraded_reason,
)
from app.content.library import Library
from app.questions import types
from app.questions.model import Question, Variant
from app.quiz.store import QUESTION
from app.widgets.line_charts import OptionCurve, option_curves

COLUMNS = {
    "facility": "Facility",
    "sd": "SD",
    "discrimination": "Discrimination",
    "efficiency": "Efficiency",
    "intended": "Intended weight",
    "effective": "Effective weight",
    "guess": "Guess score",
    "count": "Answers",
}
SORTS = ("item", *COLUMNS)
_NAMED = ("item", "type", "topic", "file", "line", "revision")
_BESIDE = ("facility_low", "facility_high", "answers_before", "reports", "options")

_EXAMS = (
    *("exam", "title", "learners", "mean", "sd", "alpha", "alpha_low", "alpha_high"),
    *("error_ratio", "standard_error"),
)


@dataclasses.dataclass(frozen=True, slots=True)
class OptionShare:
    """One option in the chart of a row; `share` is 0..1 of the answers."""

    letter: str
    right: bool
    share: float


@dataclasses.dataclass(frozen=True, slots=True)
class QuestionStatisticsRow:
    """A question with its statistics; these are None before the first answer.

    `found` covers the current revision; `before` counts answers to earlier ones. `why` is what the
    statistics say against the question, `reports` counts learner reports, `mended` the answers that
    its corrected key would score differently.
    """

    question: Question
    found: ItemStatistics | None
    guess: float | None
    before: int
    why: tuple[FixReason, ...] = ()
    reports: int = 0
    mended: int = 0

    def value(self, name: str) -> float | None:
        """Return a column of the table; None if there is nothing to show yet."""
        if name == "count":
            return self.found.count if self.found else 0
        if name == "guess":
            return self.guess
        if self.found is None or not self.found.enough:
            return None
        number: float | None = getattr(self.found, name)
        return number

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval of the facility, if there are few answers."""
        return self.found.interval if self.found else None

    @property
    def shares(self) -> tuple[OptionShare, ...]:
        """How the answers are spread over the options, if there are enough."""
        if self.found is None or not self.found.enough:
            return ()
        letters = option_letters(self.question)
        taken = {o.key: o.share for o in self.found.options}
        return tuple(
            OptionShare(letters[o.key], o.right, taken.get(o.key, 0.0))
            for o in types.type_of(self.question).options(self.question.answer)
            if o.key in letters
        )


@dataclasses.dataclass(frozen=True, slots=True)
class ExamStatisticsRow:
    """A mock exam and the statistics of its first sittings."""

    slug: str
    title: str
    found: TestStatistics


def compute_item_statistics(
    answers: Sequence[FirstAttempt], pause: Callable[[], object]
) -> dict[tuple[str, str], ItemStatistics]:
    """Return the statistics of every revision, by (question, revision).

    An answer to an earlier revision counts for the learner's total, but each revision is an item of
    its own, so that the effect of an edit shows. `pause` is called from time to time.
    """
    names = {_wording_column(a.item, a.revision): (a.item, a.revision) for a in answers}
    found = describe_items(item_responses(answers), pause=pause)
    return {names[name]: one for name, one in found.items()}


def item_responses(answers: Iterable[FirstAttempt]) -> list[ItemResponse]:
    """Return first answers as item responses, each revision as an item of its own."""
    return [
        ItemResponse(a.learner, _wording_column(a.item, a.revision), a.score, 1.0, a.chosen)
        for a in answers
    ]


def add_detailed_statistics(
    question: Question, answers: Iterable[FirstAttempt], earned: Standings
) -> tuple[tuple[float, float] | None, list[OptionCurve]]:
    """Return the interval of the discrimination, and who chose what.

    `answers` are those to the question, `earned` is what their learners earned in all.
    """
    rows = item_responses(a for a in answers if a.revision == question.revision)
    options = types.type_of(question).options(question.answer)
    letters = option_letters(question)
    named = [(o.key, letters[o.key], o.right) for o in options if o.key in letters]
    curves = option_curves(named, choices_by_fifth(rows, earned)) if named else []
    return discrimination_interval(rows, earned), curves


def _wording_column(item: str, revision: str) -> str:
    return f"{item}\0{revision}"


def build_question_rows(
    library: Library,
    found: Mapping[tuple[str, str], ItemStatistics],
    mended: Mapping[str, int],
) -> list[QuestionStatisticsRow]:
    """Return one row for every question of the course, in authored order."""
    counts: Counter[str] = Counter()
    for (item, _), one in found.items():
        counts[item] += one.count
    rows = []
    for question in library.questions.values():
        now = found.get((question.id, question.revision))
        before = counts[question.id] - (now.count if now else 0)
        late = mended.get(question.id, 0)
        rows.append(
            QuestionStatisticsRow(question, now, blind_guess_percent(question), before, mended=late)
        )
    return [
        dataclasses.replace(row, why=tuple(statistics_reasons(row.question, row.found)))
        for row in _with_weight_shares(rows)
    ]


def add_report_counts(
    rows: Iterable[QuestionStatisticsRow], said: Iterable[LearnerReport]
) -> list[QuestionStatisticsRow]:
    """Return the rows with the number of open reports about each question."""
    reports = Counter(one.item for one in said)
    return [
        dataclasses.replace(row, reports=number) if (number := reports[row.question.id]) else row
        for row in rows
    ]


def _with_weight_shares(rows: Sequence[QuestionStatisticsRow]) -> list[QuestionStatisticsRow]:
    """Return the rows with weights as shares of the rows shown; removed items count 0."""
    wholes = {
        name: sum(getattr(r.found, name) or 0.0 for r in rows if r.found)
        for name in ("intended", "effective")
    }
    return [
        dataclasses.replace(row, found=_scale_statistics(row.found, wholes)) if row.found else row
        for row in rows
    ]


def _scale_statistics(found: ItemStatistics, wholes: Mapping[str, float]) -> ItemStatistics:
    changes = {
        name: 100 * value / whole
        for name, whole in wholes.items()
        if (value := getattr(found, name)) is not None and whole
    }
    return dataclasses.replace(found, **changes)


def sort_rows(
    rows: Iterable[QuestionStatisticsRow], by: str, *, falling: bool
) -> list[QuestionStatisticsRow]:
    """Return the rows sorted by a column of `SORTS`; those without a value come last."""
    if by == "item":
        return sorted(rows, key=lambda row: row.question.id, reverse=falling)
    known = [(row.value(by), row) for row in rows]
    full = [(value, row) for value, row in known if value is not None]
    full.sort(key=lambda pair: pair[0], reverse=falling)
    return [row for _, row in full] + [row for value, row in known if value is None]


def items_to_fix(
    library: Library, rows: Iterable[QuestionStatisticsRow], cards: Iterable[CardLapses]
) -> list[ItemToFix]:
    """Return the questions and cards to fix, worst first."""
    found = []
    for row in rows:
        why = [*row.why, *([report_reason(row.reports)] if row.reports else ())]
        why += [unregraded_reason(row.mended)] if row.mended else []
        if why:
            found.append(item_to_fix(row.question.id, "question", row.question.place, why))
    for one in cards:
        card = library.cards.get(one.card)
        if card is not None:
            why = card_reasons(one.reviews, one.lapses, one.leeches)
            found.append(item_to_fix(card.id, "card", card.place, why))
    return sort_by_severity(m for m in found if m.reasons)


def exam_statistics(
    library: Library, papers: Sequence[FirstSitting], pause: Callable[[], object]
) -> list[ExamStatisticsRow]:
    """Return the test statistics of every mock exam of the course.

    Each learner has a paper of different questions, so a position on the paper is treated as an
    item, as Moodle does for randomly drawn questions.
    """
    rows = []
    for slug, exam in library.exams.items():
        responses = [
            ItemResponse(number, f"{place:03}", points)
            for number, paper in enumerate(papers)
            if paper.exam == slug and len(paper.points) == exam.questions
            for place, points in enumerate(paper.points)
        ]
        pause()
        rows.append(ExamStatisticsRow(slug, exam.title, describe_test(responses)))
    return rows


def format_csv(rows: Iterable[QuestionStatisticsRow]) -> str:
    """Return the table as CSV: one line per question, percentages as plain numbers."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([*_NAMED, *COLUMNS, *_BESIDE])
    for row in rows:
        writer.writerow(_row_cells(row))
    return out.getvalue()


def exams_as_csv(exams: Iterable[ExamStatisticsRow]) -> str:
    """Return the indices of the mock exams as CSV; empty below ten learners."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(_EXAMS)
    for exam in exams:
        found = exam.found
        numbers = (
            *(
                found.mean,
                found.sd,
                found.consistency,
                *(found.interval or (None,) * 2),
            ),
            *(found.error_ratio, found.standard_error),
        )
        shown = [_format_plain_value(n) if found.enough else "" for n in numbers]
        writer.writerow([exam.slug, exam.title, str(found.learners), *shown])
    return out.getvalue()


def _row_cells(row: QuestionStatisticsRow) -> list[str]:
    question, place = row.question, row.question.place
    numbers = [_format_plain_value(row.value(name)) for name in COLUMNS]
    low, high = row.interval or (None, None)
    spread = " ".join(f"{s.letter}{'*' if s.right else ''}={100 * s.share:.1f}" for s in row.shares)
    return [
        *(question.id, question.type, question.topic, place.path, str(place.line)),
        *(question.revision, *numbers, _format_plain_value(low), _format_plain_value(high)),
        *(str(row.before), str(row.reports), spread),
    ]


def _format_plain_value(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")


# What a learner sees and answers. Reasons, hints, sources and difficulty do not count.
_ASKED = ("type", "stem", "answer", "partial", "computed")
_IGNORED_FOR_DIGEST = frozenset({"feedback", "why", "pinned", "html"})
Stands = Mapping[tuple[str, str], str]  # (question, revision) to the revision it counts as


def content_digest(question: Question) -> str:
    """Return a digest of stem, options and key only."""
    whole = QUESTION.dump_python(question, mode="json")
    asked = _strip_pins({name: whole[name] for name in _ASKED})
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]


def digest_stored_wording(body: str, revision: str) -> str:
    """Return the digest of a stored revision; an unreadable one gets its own id."""
    try:
        return content_digest(QUESTION.validate_json(body))
    except ValueError:
        return revision


def _strip_pins(value: Any) -> Any:
    if isinstance(value, dict):
        return {n: _strip_pins(v) for n, v in value.items() if n not in _IGNORED_FOR_DIGEST}
    return [_strip_pins(v) for v in value] if isinstance(value, list) else value


def canonical_revisions(
    questions: Mapping[str, Question],
    known: Iterable[tuple[str, str, str]],
) -> Stands:
    """Return the revision each answered one counts as: the newest with that digest.

    `known` are (question, revision, digest), oldest first.
    """
    found: dict[tuple[str, str], str] = {}
    groups: dict[tuple[str, str], list[str]] = {}
    for item, revision, what in known:
        groups.setdefault((item, what), []).append(revision)
    for question in questions.values():
        groups.setdefault((question.id, content_digest(question)), []).append(question.revision)
    for (item, _), revisions in groups.items():
        for revision in revisions:
            found[item, revision] = revisions[-1]
    # The current revision counts as itself, whatever is stored.
    for question in questions.values():
        found[question.id, question.revision] = question.revision
    return found


@dataclasses.dataclass(frozen=True, slots=True)
class WordingStatistics:
    """One revision with its statistics.

    `step` is (difference, low, high) in points of facility from the revision before it, None if
    either has too few answers.
    """

    revision: str
    since: dt.datetime | None
    now: bool
    found: ItemStatistics | None
    step: tuple[float, float, float] | None


@dataclasses.dataclass(frozen=True, slots=True)
class OptionRow:
    """An option and its choosers: how many, what share, and how they do on other items."""

    key: str
    letter: str
    words: str
    right: bool
    count: int
    share: float
    rest: float | None
    credit: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class VariantRow:
    """A variant of a computed question: its numbers, right and foreseen answers."""

    seed: int
    values: tuple[tuple[str, str], ...]
    right: tuple[str, ...]
    wrong: tuple[str, ...]


def wording_statistics(
    question: Question,
    known: Sequence[SeenWording],
    answers: Sequence[FirstAttempt],
    found: Mapping[tuple[str, str], ItemStatistics],
) -> list[WordingStatistics]:
    """Return the revisions of a question, oldest first; the current one is always included.

    `answers` are those to the question, in any revision.
    """
    since = {w.revision: w.since for w in known}
    answered = [revision for item, revision in found if item == question.id]
    order = list(dict.fromkeys([*since, *answered, question.revision]))
    marks = {revision: [a.score for a in answers if a.revision == revision] for revision in order}
    made = []
    for place, revision in enumerate(order):
        before = marks[order[place - 1]] if place else []
        made.append(
            WordingStatistics(
                revision,
                since.get(revision),
                revision == question.revision,
                found.get((question.id, revision)),
                facility_change(before, marks[revision]),
            )
        )
    return made


def unique_wordings(
    question: Question, known: Iterable[SeenWording], same: Stands
) -> list[SeenWording]:
    """Return the revisions with different content, each with the date it was first shown."""
    found: dict[str, SeenWording] = {}
    for one in known:
        revision = same.get((question.id, one.revision), one.revision)
        found.setdefault(revision, dataclasses.replace(one, revision=revision))
    return list(found.values())


def option_rows(question: Question, found: ItemStatistics | None) -> list[OptionRow]:
    """Return every option of a choice question in authored order; none for other types."""
    kind = types.type_of(question)
    if not kind.chosen:
        return []
    letters = option_letters(question)
    taken = {o.key: o for o in found.options} if found else {}
    return [
        OptionRow(
            option.key,
            letters.get(option.key, ""),
            option.words,
            option.right,
            taken[option.key].count if option.key in taken else 0,
            taken[option.key].share if option.key in taken else 0.0,
            taken[option.key].rest if option.key in taken else None,
            option.credit,
        )
        for option in kind.options(question.answer)
    ]


def displayed_letters(variant: Variant) -> dict[str, str]:
    """Return the letter of each option as learners with this variant see it."""
    kind = types.type_of(variant)
    keys = [option.key for option in kind.options(variant.answer)]
    return dict(zip(keys, LETTERS, strict=False)) if kind.chosen else {}


def variant_row(variant: Variant) -> VariantRow:
    """Return a variant as a row of the variant table."""
    right, wrong = _pair_sides(variant)
    values = tuple((name, _format_shown_value(value)) for name, value in variant.values.items())
    return VariantRow(variant.seed, values, right, wrong)


def _pair_sides(variant: Variant) -> tuple[tuple[str, ...], tuple[str, ...]]:
    options = types.type_of(variant).options(variant.answer)
    return (
        tuple(o.words for o in options if o.right),
        tuple(o.words for o in options if not o.right),
    )


def _format_shown_value(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.10g}"
