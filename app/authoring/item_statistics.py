"""Facility, discrimination, alpha.

Every formula is the one of Moodle's quiz statistics (docs.moodle.org, “Quiz statistics
calculations”), with sample variances (n − 1). Learners need not have answered the same items: a
learner's total is the mean over what they answered. For complete data this changes no index,
because all of them are independent of scale.

Feldt, L. S. (1965), “The approximate sampling distribution of Kuder-Richardson reliability
coefficient twenty”, Psychometrika 30, 357-370: with n learners and k items (1 − alpha) ÷ (1 −
estimate) is distributed as F with n − 1 and (n − 1)(k − 1) degrees of freedom, exactly for normal
marks and approximately for marks of 0 and 1.
"""

import dataclasses
import functools
import itertools
import math
import random
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

_TAIL = 0.025
_STEPS = 300
_TINY = 1e-300
_TOLERANCE = 1e-15


def alpha_interval(alpha: float, learners: int, items: int) -> tuple[float, float] | None:
    """Return the 95% interval of an alpha (in percent, at most 100).

    None for fewer than two learners or items.

    >>> low, high = alpha_interval(80.0, 30, 10)
    >>> round(low, 1), round(high, 1)
    (67.3, 89.2)
    """
    if learners < 2 or items < 2:
        return None
    above, below = learners - 1, (learners - 1) * (items - 1)
    error = 1 - alpha / 100
    low = 1 - error * f_quantile(1 - _TAIL, above, below)
    high = 1 - error * f_quantile(_TAIL, above, below)
    return 100 * low, 100 * high


def f_quantile(share: float, above: float, below: float) -> float:
    """Return the value that F stays below with probability `share`, 0 < share < 1.

    `above` and `below` are the degrees of freedom of numerator and denominator. Found by bisection:
    F = below · x ÷ (above · (1 − x)), where x has a beta distribution.
    """
    low, high = 0.0, 1.0
    while high - low > _TOLERANCE * high:
        middle = (low + high) / 2
        if middle in {low, high}:
            break
        if beta_share(middle, above / 2, below / 2) < share:
            low = middle
        else:
            high = middle
    return below * high / (above * (1 - high)) if high < 1 else math.inf


def beta_share(x: float, a: float, b: float) -> float:
    """Return the regularized incomplete beta function I_x(a, b), 0 <= x <= 1; a, b > 0.

    By its continued fraction (Abramowitz and Stegun 26.5.8), evaluated from the side on which it
    converges.

    >>> round(beta_share(0.5, 3, 3), 12)
    0.5
    """
    if x in {0.0, 1.0}:
        return x
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_share(1 - x, b, a)
    log = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    log += a * math.log(x) + b * math.log1p(-x)
    return math.exp(log) / a * _beta_continued_fraction(x, a, b)


def _beta_continued_fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction of `beta_share`, by Lentz's method, starting at 1."""
    above, below, value = 1.0, 0.0, 1.0
    for step in range(_STEPS):
        half = step // 2
        if step == 0:
            term = 1.0
        elif step % 2:
            term = -(a + half) * (a + b + half) * x / ((a + 2 * half) * (a + step))
        else:
            term = half * (b - half) * x / ((a + step - 1) * (a + step))
        below = 1 / ((1 + term * below) or _TINY)
        above = (1 + term / above) or _TINY
        value *= above * below
        if step and abs(above * below - 1) < _TOLERANCE:
            break
    return value - 1


MIN_RESPONSES = 10  # with fewer first attempts, no index is shown
RELIABLE_RESPONSES = 50  # with fewer, an interval is shown with the index
RESAMPLES = 400


def facility_change(
    before: Sequence[float], after: Sequence[float], seed: int = 0
) -> tuple[float, float, float] | None:
    """Return the difference of two facilities (after − before, in points, 0..100).

    Returns (difference, low, high) with a 95 % bootstrap interval, or None if either side has fewer
    than `LEAST` first attempts. Marks are shares 0..1.
    """
    if min(len(before), len(after)) < MIN_RESPONSES:
        return None
    chance = random.Random(seed)  # noqa: S311 - repeatable, not secret
    differences = sorted(
        statistics.fmean(chance.choices(after, k=len(after)))
        - statistics.fmean(chance.choices(before, k=len(before)))
        for _ in range(RESAMPLES)
    )
    middle = statistics.fmean(after) - statistics.fmean(before)
    low, high = middle_interval(differences)
    return 100 * middle, 100 * low, 100 * high


# A few answers give few different sets of marks, and resampling each is slow.
@functools.lru_cache(maxsize=4096)
def facility_interval(marks: tuple[float, ...], maximum: float) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean of sorted `marks` in percent of `maximum`."""
    if not MIN_RESPONSES <= len(marks) < RELIABLE_RESPONSES:
        return None
    chance = random.Random(0)  # noqa: S311 - repeatable, not secret
    means = sorted(statistics.fmean(chance.choices(marks, k=len(marks))) for _ in range(RESAMPLES))
    low, high = middle_interval(means)
    return 100 * low / maximum, 100 * high / maximum


def middle_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of the middle 95 % of sorted values."""
    cut = round(len(values) * 0.025)
    return values[cut], values[-1 - cut]


Value = TypeVar("Value")
Standings = Mapping[int, tuple[float, int]]
"""By learner: the sum of the marks over all items, and the number of items."""


@dataclasses.dataclass(frozen=True, slots=True)
class ItemResponse:
    """One learner's first attempt at one item; `mark` is 0..`maximum`.

    `options` are the keys of the options chosen, empty for typed answers.
    """

    learner: int
    item: str
    mark: float
    maximum: float = 1.0
    options: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class OptionStatistics:
    """How often an option was chosen, and how its choosers did on the other items.

    `rest` is their mean share of marks there, 0..1; None if nobody chose it.
    """

    key: str
    count: int
    share: float
    rest: float | None


@dataclasses.dataclass(frozen=True, slots=True)
class ItemStatistics:
    """The indices of one item, percentages except where stated; None = undefined.

    `facility` is the mean mark, `sd` that of the mark. `discrimination` is the correlation of the
    mark with the rest, corrected for the item itself; `efficiency` is its share of the best that
    these marks allow. `intended` and `effective` are the item's planned and actual weight.
    `interval` bounds the facility by resampling learners, if there are few.
    """

    item: str
    count: int
    facility: float | None = None
    sd: float | None = None
    discrimination: float | None = None
    efficiency: float | None = None
    intended: float | None = None
    effective: float | None = None
    interval: tuple[float, float] | None = None
    options: tuple[OptionStatistics, ...] = ()

    @property
    def enough(self) -> bool:
        """Whether there are enough first attempts to show an index."""
        return self.count >= MIN_RESPONSES


@dataclasses.dataclass(frozen=True, slots=True)
class TestStatistics:
    """The indices of a set of items taken together, in percent.

    `interval` is the 95% interval of the consistency, from `LEAST` learners on.
    """

    __test__ = False  # not a test class for pytest; the name is the field's term

    learners: int
    mean: float | None
    sd: float | None
    consistency: float | None
    error_ratio: float | None
    standard_error: float | None
    interval: tuple[float, float] | None = None

    @property
    def enough(self) -> bool:
        """Whether there are enough learners to show an index."""
        return self.learners >= MIN_RESPONSES


@dataclasses.dataclass(frozen=True, slots=True)
class _ItemMarks:
    """Marks of one item, and the other marks of the same learners, in the same order.

    `rests` has an entry for every row, None for learners who answered nothing else.
    """

    marks: tuple[float, ...]
    others: tuple[float, ...]
    totals: tuple[float, ...]
    rests: tuple[float | None, ...]


def describe_items(
    responses: Iterable[ItemResponse], pause: Callable[[], object] = bool
) -> dict[str, ItemStatistics]:
    """Return the statistics of every item that was answered.

    `pause` is called after each item, so that a long computation lets other threads run.
    """
    given = list(responses)
    earned = learner_standings(given)
    by_item: dict[str, list[ItemResponse]] = defaultdict(list)
    for response in given:
        by_item[response.item].append(response)
    maxima = {item: rows[0].maximum for item, rows in by_item.items()}
    columns = {
        item: _pause_between(_item_marks(rows, earned), pause) for item, rows in by_item.items()
    }
    weights = _effective_weights(columns)
    return {
        item: _pause_between(
            _item_statistics(item, rows, columns[item], maxima, weights[item]), pause
        )
        for item, rows in by_item.items()
    }


def learner_standings(responses: Iterable[ItemResponse]) -> Standings:
    """Return what each learner earned; only the first mark for each item counts."""
    return {
        learner: (math.fsum(marks.values()), len(marks))
        for learner, marks in _marks_by_learner(responses).items()
    }


def describe_test(responses: Iterable[ItemResponse]) -> TestStatistics:
    """Return the statistics of the set, from learners who answered every item of it."""
    given = list(responses)
    items = sorted({r.item for r in given})
    whole = sum({r.item: r.maximum for r in given}.values())
    rows = [m for m in _marks_by_learner(given).values() if len(m) == len(items)]
    totals = [math.fsum(marks.values()) for marks in rows]
    if len(totals) < 2 or not whole:
        return TestStatistics(len(totals), None, None, None, None, None)
    sd = statistics.stdev(totals)
    consistency = _cronbach_alpha([[row[i] for row in rows] for i in items], sd)
    ratio = None if consistency is None else 100 * math.sqrt(1 - consistency / 100)
    return TestStatistics(
        learners=len(totals),
        mean=100 * statistics.mean(totals) / whole,
        sd=100 * sd / whole,
        consistency=consistency,
        error_ratio=ratio,
        standard_error=None if ratio is None else ratio * sd / whole,
        interval=None
        if consistency is None or len(totals) < MIN_RESPONSES
        else alpha_interval(consistency, len(totals), len(items)),
    )


def probable_wrong_key(item: ItemStatistics, right: Sequence[str]) -> str | None:
    """Return an option that stronger learners prefer to the key, or None.

    Both must have been chosen by at least five learners. The margin of a tenth of the marks avoids
    false alarms.
    """
    if not item.enough:
        return None
    rest = {o.key: o.rest for o in item.options if o.rest is not None and o.count >= 5}
    keyed = [rest[key] for key in right if key in rest]
    wrong = {key: r for key, r in rest.items() if key not in right}
    if not wrong or not keyed:
        return None
    best = max(wrong, key=lambda key: wrong[key])
    return best if wrong[best] > max(keyed) + 0.1 else None


def discrimination_interval(
    rows: Sequence[ItemResponse], earned: Standings
) -> tuple[float, float] | None:
    """Return the 95% bootstrap interval of an item's discrimination, −100..100.

    `rows` are the responses to the item. Learners are resampled with their marks. None below
    `LEAST` first attempts, and from `SURE` on, where no interval is needed.
    """
    column = _item_marks(rows, earned)
    if not MIN_RESPONSES <= len(column.marks) < RELIABLE_RESPONSES:
        return None
    chance = random.Random(0)  # noqa: S311 - repeatable, not secret
    pairs = list(zip(column.marks, column.others, column.totals, strict=True))
    found = []
    for _ in range(RESAMPLES):
        marks, others, totals = zip(*chance.choices(pairs, k=len(pairs)), strict=True)
        index = _discrimination_index(_ItemMarks(marks, others, totals, ()))
        if index is not None:
            found.append(index)
    return middle_interval(sorted(found)) if len(found) > RESAMPLES / 2 else None


def choices_by_fifth(
    rows: Sequence[ItemResponse], earned: Standings
) -> tuple[tuple[int, dict[str, float]], ...]:
    """Return for each fifth of learners, weakest first, who chose which option.

    `rows` are the responses to one item. Learners are ordered by their marks on everything else.
    Returns five times (learners, {option: share 0..1}), or nothing below `SURE` learners.
    """
    column = _item_marks(rows, earned)
    ranked = [(x, r) for x, r in zip(column.rests, rows, strict=True) if x is not None]
    if len(ranked) < RELIABLE_RESPONSES:
        return ()
    ranked.sort(key=lambda pair: pair[0])
    cuts = [len(ranked) * place // 5 for place in range(6)]
    parts = [ranked[a:b] for a, b in itertools.pairwise(cuts)]
    return tuple((len(part), _choice_shares([r for _, r in part])) for part in parts)


def _choice_shares(rows: Sequence[ItemResponse]) -> dict[str, float]:
    counts = Counter(key for row in rows for key in row.options)
    return {key: count / len(rows) for key, count in counts.items()}


def never_chosen(item: ItemStatistics, wrong: Sequence[str]) -> tuple[str, ...]:
    """Return the distractors that nobody chose."""
    taken = {o.key for o in item.options if o.count}
    return tuple(k for k in wrong if k not in taken) if item.enough else ()


def sample_covariance(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Return the sample covariance (n − 1) of two equally long series."""
    mx, my = statistics.fmean(xs), statistics.fmean(ys)
    products = ((x - mx) * (y - my) for x, y in zip(xs, ys, strict=True))
    return math.fsum(products) / (len(xs) - 1)


def _marks_by_learner(responses: Iterable[ItemResponse]) -> dict[int, dict[str, float]]:
    marks: dict[int, dict[str, float]] = defaultdict(dict)
    for r in responses:
        marks[r.learner].setdefault(r.item, r.mark)
    return marks


def _pause_between(value: Value, pause: Callable[[], object]) -> Value:
    pause()
    return value


def _item_marks(rows: Sequence[ItemResponse], earned: Standings) -> _ItemMarks:
    marks, others, totals = [], [], []
    rests: list[float | None] = []
    for row in rows:
        total, answered = earned[row.learner]
        if answered < 2:
            rests.append(None)
            continue  # no other mark to compare with
        marks.append(row.mark)
        others.append((total - row.mark) / (answered - 1))
        totals.append(total / answered)
        rests.append(others[-1])
    return _ItemMarks(tuple(marks), tuple(others), tuple(totals), tuple(rests))


def _item_statistics(
    item: str,
    rows: Sequence[ItemResponse],
    column: _ItemMarks,
    maxima: Mapping[str, float],
    effective: float | None,
) -> ItemStatistics:
    maximum = maxima[item]
    marks = [row.mark for row in rows]
    if not maximum:
        return ItemStatistics(item, len(rows), effective=effective)
    return ItemStatistics(
        item=item,
        count=len(rows),
        facility=100 * statistics.fmean(marks) / maximum,
        sd=100 * statistics.stdev(marks) / maximum if len(marks) > 1 else None,
        discrimination=_discrimination_index(column),
        efficiency=_discriminative_efficiency(column),
        intended=100 * maximum / sum(maxima.values()),
        effective=effective,
        interval=facility_interval(tuple(sorted(marks)), maximum),
        options=_option_statistics(rows, column),
    )


def _discrimination_index(column: _ItemMarks) -> float | None:
    if len(column.marks) < 2:
        return None
    spread = sample_covariance(column.marks, column.marks)
    spread *= sample_covariance(column.others, column.others)
    if spread <= 0:
        return None
    return 100 * sample_covariance(column.marks, column.others) / math.sqrt(spread)


def _discriminative_efficiency(column: _ItemMarks) -> float | None:
    if len(column.marks) < 2:
        return None
    best = sample_covariance(sorted(column.marks), sorted(column.others))
    if abs(best) < 1e-12:
        return None
    return 100 * sample_covariance(column.marks, column.others) / best


def _effective_weights(columns: Mapping[str, _ItemMarks]) -> dict[str, float | None]:
    shares: dict[str, float | None] = {}
    for item, column in columns.items():
        if len(column.marks) < 2:
            shares[item] = None
            continue
        together = sample_covariance(column.marks, column.totals)
        # A negative covariance gives no meaningful weight.
        shares[item] = math.sqrt(together) if together >= 0 else None
    whole = math.fsum(s for s in shares.values() if s is not None)
    return {
        item: None if share is None or not whole else 100 * share / whole
        for item, share in shares.items()
    }


def _cronbach_alpha(columns: Sequence[Sequence[float]], sd: float) -> float | None:
    """Cronbach's alpha in percent; equal to KR-20 when marks are 0 or 1."""
    p = len(columns)
    if p < 2 or not sd:
        return None
    within = math.fsum(statistics.variance(column) for column in columns)
    return 100 * p / (p - 1) * (1 - within / sd**2)


def _option_statistics(
    rows: Sequence[ItemResponse], column: _ItemMarks
) -> tuple[OptionStatistics, ...]:
    choosers: dict[str, list[float | None]] = defaultdict(list)
    for row, rest in zip(rows, column.rests, strict=True):
        for key in row.options:
            choosers[key].append(rest)
    return tuple(
        OptionStatistics(key, len(found), len(found) / len(rows), _mean_or_none(found))
        for key, found in sorted(choosers.items())
    )


def _mean_or_none(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return statistics.fmean(known) if known else None
