"""Facility, discrimination, reliability.

The formulas are those of Moodle's quiz statistics (docs.moodle.org, “Quiz statistics
calculations”), with sample variances (n − 1). Learners need not have answered the same items: a
learner's total is the mean over what they answered. For complete data this changes no index,
because all of them are independent of scale.

Fisher, R. A. (1921): the inverse hyperbolic tangent of a correlation of n pairs is nearly normal
with standard error 1 ÷ √(n − 3). Bonett, D. G. (2002), “Sample size requirements for testing and
estimating coefficient alpha”, Journal of Educational and Behavioral Statistics 27, 335-340: with n
learners and k items ln(1 − alpha) is nearly normal with variance 2k ÷ ((k − 1)(n − 2)).
"""

import dataclasses
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from app.questions.question_type import NINE_IN_TEN, compute_wilson_interval

MIN_RESPONSES = 10  # with fewer first attempts, no index is shown
_MIN_CHOOSERS = 3  # of an option, before its choosers are compared with others
_IDLE_SHARE = 0.05  # share of the answers below which a distractor does not work
_Z_95 = statistics.NormalDist().inv_cdf(0.975)


@dataclasses.dataclass(frozen=True, slots=True)
class ItemResponse:
    """One learner's first attempt at one item; `mark` is 0..`maximum`.

    `chosen_options` are keys, none for typed answers.
    """

    learner_id: int
    item: str
    mark: float
    maximum: float = 1.0
    chosen_options: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class OptionStatistics:
    """How often an option was chosen, and how its choosers did on the other items.

    `rest_score` is their mean share of marks there, 0..1; None if nobody chose it.
    `rest_score_error` is the standard error of that mean; None for fewer than two choosers.
    """

    key: str
    count: int
    share: float
    rest_score: float | None
    rest_score_error: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ItemStatistics:
    """The indices of one item in percent; None = undefined.

    `facility` is the mean mark. `discrimination` is the correlation of the mark with the learner's
    mean mark on the other items, with its 95% interval.
    """

    item: str
    count: int
    facility: float | None = None
    discrimination: float | None = None
    discrimination_interval: tuple[float, float] | None = None
    options: tuple[OptionStatistics, ...] = ()

    @property
    def has_enough_responses(self) -> bool:
        return self.count >= MIN_RESPONSES


@dataclasses.dataclass(frozen=True, slots=True)
class TestStatistics:
    """The indices of a set of items taken together, in percent.

    `alpha` is Cronbach's, with its 95% interval.
    """

    __test__ = False  # not a test class for pytest; the name is the field's term

    learner_count: int
    mean: float | None = None
    sd: float | None = None
    alpha: float | None = None
    alpha_interval: tuple[float, float] | None = None

    @property
    def has_enough_responses(self) -> bool:
        return self.learner_count >= MIN_RESPONSES


def compute_item_statistics(responses: Iterable[ItemResponse]) -> dict[str, ItemStatistics]:
    """Return the statistics of every item that was answered."""
    responses = list(responses)
    by_item: dict[str, list[ItemResponse]] = defaultdict(list)
    for response in responses:
        by_item[response.item].append(response)
    totals = {
        learner: _MarkTotal(math.fsum(marks.values()), len(marks))
        for learner, marks in _first_marks_by_learner(responses).items()
    }
    return {
        item: _compute_one_item_statistics(item, rows, totals) for item, rows in by_item.items()
    }


def compute_test_statistics(responses: Iterable[ItemResponse]) -> TestStatistics:
    """Return the statistics of the set, from learners who answered every item of it."""
    responses = list(responses)
    maxima = {r.item: r.maximum for r in responses}
    highest_total = sum(maxima.values())
    rows = [m for m in _first_marks_by_learner(responses).values() if len(m) == len(maxima)]
    totals = [math.fsum(marks.values()) for marks in rows]
    if len(totals) < 2 or not highest_total:
        return TestStatistics(len(totals))
    alpha = _cronbach_alpha([[row[item] for row in rows] for item in maxima], totals)
    return TestStatistics(
        learner_count=len(totals),
        mean=100 * statistics.mean(totals) / highest_total,
        sd=100 * statistics.stdev(totals) / highest_total,
        alpha=alpha,
        alpha_interval=None
        if alpha is None
        else compute_alpha_interval(alpha, len(rows), len(maxima)),
    )


def compute_alpha_interval(alpha: float, learners: int, items: int) -> tuple[float, float] | None:
    """Return Bonett's 95% interval of an alpha in percent.

    None for fewer than three learners or two items, and for an alpha of 100.

    >>> low, high = compute_alpha_interval(80.0, 30, 10)
    >>> round(low, 1), round(high, 1)
    (65.3, 88.5)
    """
    if learners < 3 or items < 2 or alpha >= 100:
        return None
    margin = _Z_95 * math.sqrt(2 * items / ((items - 1) * (learners - 2)))
    error = 100 - alpha
    return 100 - error * math.exp(margin), 100 - error * math.exp(-margin)


def compute_correlation_interval(correlation: float, pairs: int) -> tuple[float, float] | None:
    """Return Fisher's 95% interval of a correlation, −1..1; None for fewer than four pairs.

    >>> low, high = compute_correlation_interval(0.5, 30)
    >>> round(low, 3), round(high, 3)
    (0.17, 0.729)
    """
    if pairs < 4 or abs(correlation) >= 1:
        return None
    middle, margin = math.atanh(correlation), _Z_95 / math.sqrt(pairs - 3)
    return math.tanh(middle - margin), math.tanh(middle + margin)


def find_probably_right_distractor(item: ItemStatistics, right_keys: Sequence[str]) -> str | None:
    """Return an option whose choosers are stronger than those of the key, or None.

    The 90% interval of the difference of their means (Welch) must lie above zero, so that chance
    alone names one in 20 equal pairs, and fewer where the key is the better one.
    """
    if not item.has_enough_responses:
        return None
    means = {
        o.key: _MeanWithError(o.rest_score, o.rest_score_error)
        for o in item.options
        if o.rest_score is not None and o.rest_score_error is not None and o.count >= _MIN_CHOOSERS
    }
    right_means = [means[key] for key in right_keys if key in means]
    if not right_means:
        return None
    best = max(right_means)
    lower_bounds = {
        key: other.mean - best.mean - NINE_IN_TEN * math.hypot(other.error, best.error)
        for key, other in means.items()
        if key not in right_keys
    }
    strongest = max(lower_bounds, key=lambda name: lower_bounds[name], default=None)
    return strongest if strongest is not None and lower_bounds[strongest] > 0 else None


def find_never_chosen_options(item: ItemStatistics, wrong_keys: Sequence[str]) -> tuple[str, ...]:
    """Return the distractors that nobody chose, once fewer than 5% can be expected to."""
    if compute_wilson_interval(0, item.count, NINE_IN_TEN)[1] >= _IDLE_SHARE:
        return ()
    chosen = {o.key for o in item.options if o.count}
    return tuple(key for key in wrong_keys if key not in chosen)


class _MarkTotal(NamedTuple):
    """The sum of a learner's marks over all items, and the number of items."""

    mark_sum: float
    item_count: int


class _MeanWithError(NamedTuple):
    mean: float
    error: float


def _first_marks_by_learner(responses: Iterable[ItemResponse]) -> dict[int, dict[str, float]]:
    """Return {learner: {item: mark}}; only the first mark for each item counts."""
    marks: dict[int, dict[str, float]] = defaultdict(dict)
    for r in responses:
        marks[r.learner_id].setdefault(r.item, r.mark)
    return marks


def _compute_one_item_statistics(
    item: str, rows: Sequence[ItemResponse], totals: Mapping[int, _MarkTotal]
) -> ItemStatistics:
    if not rows[0].maximum:
        return ItemStatistics(item, len(rows))
    marks, rest_scores = [], []
    rest_scores_by_option: dict[str, list[float | None]] = defaultdict(list)
    for row in rows:
        total = totals[row.learner_id]
        other_items = total.item_count - 1
        rest_score = (total.mark_sum - row.mark) / other_items if other_items else None
        for key in row.chosen_options:
            rest_scores_by_option[key].append(rest_score)
        if rest_score is not None:
            marks.append(row.mark)
            rest_scores.append(rest_score)
    discrimination = interval = None
    try:
        discrimination = statistics.correlation(marks, rest_scores)
        interval = compute_correlation_interval(discrimination, len(marks))
    except statistics.StatisticsError:
        pass  # fewer than two learners, or all with the same mark
    return ItemStatistics(
        item=item,
        count=len(rows),
        facility=100 * statistics.fmean(row.mark for row in rows) / rows[0].maximum,
        discrimination=None if discrimination is None else 100 * discrimination,
        discrimination_interval=interval and (100 * interval[0], 100 * interval[1]),
        options=tuple(
            _compute_option_statistics(key, option_rest_scores, len(rows))
            for key, option_rest_scores in sorted(rest_scores_by_option.items())
        ),
    )


def _cronbach_alpha(
    marks_by_item: Sequence[Sequence[float]], totals: Sequence[float]
) -> float | None:
    """Cronbach's alpha in percent; equal to KR-20 when marks are 0 or 1."""
    items, spread = len(marks_by_item), statistics.variance(totals)
    if items < 2 or not spread:
        return None
    within = math.fsum(statistics.variance(marks) for marks in marks_by_item)
    return 100 * items / (items - 1) * (1 - within / spread)


def _compute_option_statistics(
    key: str, rest_scores: Sequence[float | None], answer_count: int
) -> OptionStatistics:
    known = [score for score in rest_scores if score is not None]
    return OptionStatistics(
        key,
        count=len(rest_scores),
        share=len(rest_scores) / answer_count,
        rest_score=statistics.fmean(known) if known else None,
        rest_score_error=statistics.stdev(known) / math.sqrt(len(known))
        if len(known) > 1
        else None,
    )
