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

from app.questions.question_type import NINE_IN_TEN, compute_wilson_interval

MIN_RESPONSES = 10  # with fewer first attempts, no index is shown
_MIN_CHOOSERS = 3  # of an option, before its choosers are compared with others
_IDLE_SHARE = 0.05  # share of the answers below which a distractor does not work
_Z_95 = statistics.NormalDist().inv_cdf(0.975)


@dataclasses.dataclass(frozen=True, slots=True)
class ItemResponse:
    """One learner's first attempt at one item; `earned_marks` is 0..`max_marks`.

    `chosen_option_keys` are keys, none for typed answers.
    """

    learner_id: int
    item_id: str
    earned_marks: float
    max_marks: float = 1.0
    chosen_option_keys: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class OptionStatistics:
    """How often an option was chosen, and how its choosers did on the other items.

    `mean_score_on_other_items` is their mean share of marks there, 0..1; None if nobody chose it.
    `other_items_score_error` is the standard error of that mean; None for fewer than two choosers.
    """

    option_key: str
    chooser_count: int
    chooser_share: float
    mean_score_on_other_items: float | None
    other_items_score_error: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ItemStatistics:
    """The indices of one item in percent; None = undefined.

    `facility` is the mean mark. `discrimination` is the correlation of the mark with the learner's
    mean mark on the other items, with its 95% interval.
    """

    item_id: str
    count: int
    facility: float | None = None
    discrimination: float | None = None
    discrimination_interval: tuple[float, float] | None = None
    option_statistics: tuple[OptionStatistics, ...] = ()

    @property
    def has_enough_responses(self) -> bool:
        return self.count >= MIN_RESPONSES


@dataclasses.dataclass(frozen=True, slots=True)
class TestStatistics:
    """The indices of a set of items taken together, in percent.

    `cronbach_alpha_percent` is Cronbach's, with its 95% interval.
    """

    __test__ = False  # not a test class for pytest; the name is the field's term

    learner_count: int
    mean_percent: float | None = None
    standard_deviation_percent: float | None = None
    cronbach_alpha_percent: float | None = None
    cronbach_alpha_interval: tuple[float, float] | None = None

    @property
    def has_enough_responses(self) -> bool:
        return self.learner_count >= MIN_RESPONSES


def compute_item_statistics(responses: Iterable[ItemResponse]) -> dict[str, ItemStatistics]:
    responses = list(responses)
    by_item: dict[str, list[ItemResponse]] = defaultdict(list)
    for response in responses:
        by_item[response.item_id].append(response)
    totals = {
        learner: (math.fsum(marks.values()), len(marks))
        for learner, marks in _collect_first_marks_by_learner(responses).items()
    }
    return {
        item: _compute_one_item_statistics(item, rows, totals) for item, rows in by_item.items()
    }


def compute_test_statistics_of_complete_learners(
    responses: Iterable[ItemResponse],
) -> TestStatistics:
    """Return the statistics of the set, from learners who answered every item of it."""
    responses = list(responses)
    maxima = {r.item_id: r.max_marks for r in responses}
    highest_total = sum(maxima.values())
    rows = [m for m in _collect_first_marks_by_learner(responses).values() if len(m) == len(maxima)]
    totals = [math.fsum(marks.values()) for marks in rows]
    if len(totals) < 2 or not highest_total:
        return TestStatistics(len(totals))
    alpha = _compute_cronbach_alpha([[row[item] for row in rows] for item in maxima], totals)
    return TestStatistics(
        learner_count=len(totals),
        mean_percent=100 * statistics.mean(totals) / highest_total,
        standard_deviation_percent=100 * statistics.stdev(totals) / highest_total,
        cronbach_alpha_percent=alpha,
        cronbach_alpha_interval=None
        if alpha is None
        else compute_alpha_interval(alpha, len(rows), len(maxima)),
    )


def compute_alpha_interval(
    alpha_percent: float, learner_count: int, item_count: int
) -> tuple[float, float] | None:
    """Return Bonett's 95% interval of an alpha in percent.

    None for fewer than three learners or two items, and for an alpha of 100.

    >>> low, high = compute_alpha_interval(80.0, 30, 10)
    >>> round(low, 1), round(high, 1)
    (65.3, 88.5)
    """
    if learner_count < 3 or item_count < 2 or alpha_percent >= 100:
        return None
    margin = _Z_95 * math.sqrt(2 * item_count / ((item_count - 1) * (learner_count - 2)))
    error = 100 - alpha_percent
    return 100 - error * math.exp(margin), 100 - error * math.exp(-margin)


def compute_correlation_interval(correlation: float, pair_count: int) -> tuple[float, float] | None:
    """Return Fisher's 95% interval of a correlation, −1..1; None for fewer than four pairs.

    >>> low, high = compute_correlation_interval(0.5, 30)
    >>> round(low, 3), round(high, 3)
    (0.17, 0.729)
    """
    if pair_count < 4 or abs(correlation) >= 1:
        return None
    middle, margin = math.atanh(correlation), _Z_95 / math.sqrt(pair_count - 3)
    return math.tanh(middle - margin), math.tanh(middle + margin)


def find_probably_right_distractor(
    item_statistics: ItemStatistics, right_keys: Sequence[str]
) -> str | None:
    """Return an option whose choosers are stronger than those of the key, or None.

    The 90% interval of the difference of their means (Welch) must lie above zero, so that chance
    alone names one in 20 equal pairs, and fewer where the key is the better one.
    """
    if not item_statistics.has_enough_responses:
        return None
    means = {
        o.option_key: (o.mean_score_on_other_items, o.other_items_score_error)
        for o in item_statistics.option_statistics
        if o.mean_score_on_other_items is not None
        and o.other_items_score_error is not None
        and o.chooser_count >= _MIN_CHOOSERS
    }
    right_means = [means[key] for key in right_keys if key in means]
    if not right_means:
        return None
    best_mean, best_error = max(right_means)
    lower_bounds = {
        key: mean - best_mean - NINE_IN_TEN * math.hypot(error, best_error)
        for key, (mean, error) in means.items()
        if key not in right_keys
    }
    strongest = max(lower_bounds, key=lambda name: lower_bounds[name], default=None)
    return strongest if strongest is not None and lower_bounds[strongest] > 0 else None


def find_never_chosen_options(
    item_statistics: ItemStatistics, wrong_keys: Sequence[str]
) -> tuple[str, ...]:
    """Return the distractors that nobody chose, once fewer than 5% can be expected to."""
    if compute_wilson_interval(0, item_statistics.count, NINE_IN_TEN)[1] >= _IDLE_SHARE:
        return ()
    chosen = {o.option_key for o in item_statistics.option_statistics if o.chooser_count}
    return tuple(key for key in wrong_keys if key not in chosen)


def _collect_first_marks_by_learner(
    responses: Iterable[ItemResponse],
) -> dict[int, dict[str, float]]:
    """Return {learner: {item: mark}}; only the first mark for each item counts."""
    marks: dict[int, dict[str, float]] = defaultdict(dict)
    for r in responses:
        marks[r.learner_id].setdefault(r.item_id, r.earned_marks)
    return marks


def _compute_one_item_statistics(
    item_id: str,
    responses: Sequence[ItemResponse],
    total_by_learner: Mapping[int, tuple[float, int]],
) -> ItemStatistics:
    if not responses[0].max_marks:
        return ItemStatistics(item_id, len(responses))
    marks, rest_scores = [], []
    rest_scores_by_option: dict[str, list[float | None]] = defaultdict(list)
    for row in responses:
        mark_sum, item_count = total_by_learner[row.learner_id]
        other_items = item_count - 1
        rest_score = (mark_sum - row.earned_marks) / other_items if other_items else None
        for key in row.chosen_option_keys:
            rest_scores_by_option[key].append(rest_score)
        if rest_score is not None:
            marks.append(row.earned_marks)
            rest_scores.append(rest_score)
    discrimination = interval = None
    try:
        discrimination = statistics.correlation(marks, rest_scores)
        interval = compute_correlation_interval(discrimination, len(marks))
    except statistics.StatisticsError:
        pass  # fewer than two learners, or all with the same mark
    return ItemStatistics(
        item_id=item_id,
        count=len(responses),
        facility=100
        * statistics.fmean(row.earned_marks for row in responses)
        / responses[0].max_marks,
        discrimination=None if discrimination is None else 100 * discrimination,
        discrimination_interval=interval and (100 * interval[0], 100 * interval[1]),
        option_statistics=tuple(
            _compute_option_statistics(key, option_rest_scores, len(responses))
            for key, option_rest_scores in sorted(rest_scores_by_option.items())
        ),
    )


def _compute_cronbach_alpha(
    marks_by_item: Sequence[Sequence[float]], total_by_learner: Sequence[float]
) -> float | None:
    """Cronbach's alpha in percent; equal to KR-20 when marks are 0 or 1."""
    items, spread = len(marks_by_item), statistics.variance(total_by_learner)
    if items < 2 or not spread:
        return None
    within = math.fsum(statistics.variance(marks) for marks in marks_by_item)
    return 100 * items / (items - 1) * (1 - within / spread)


def _compute_option_statistics(
    option_key: str, other_item_scores: Sequence[float | None], answer_count: int
) -> OptionStatistics:
    known = [score for score in other_item_scores if score is not None]
    return OptionStatistics(
        option_key,
        chooser_count=len(other_item_scores),
        chooser_share=len(other_item_scores) / answer_count,
        mean_score_on_other_items=statistics.fmean(known) if known else None,
        other_items_score_error=statistics.stdev(known) / math.sqrt(len(known))
        if len(known) > 1
        else None,
    )
