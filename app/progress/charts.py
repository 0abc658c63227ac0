"""Charts of the Progress page."""

import dataclasses
import datetime as dt
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from markupsafe import Markup

from app.progress.history_store import StudyHistory
from app.questions.intervals import wilson_interval
from app.questions.result import LEVELS
from app.spaced_repetition.review_log import DayTotals
from app.web.formatting import (
    format_count,
    format_date,
    format_date_with_year,
    format_duration,
    format_percent,
    format_short_date,
    format_weekday,
)
from app.widgets.column_charts import HEIGHT, TOP, ColumnChart, ColumnLabel, draw_columns
from app.widgets.scales import SHARES, Axis, PlotArea, count_axis, format_in_percent
from app.widgets.svg import (
    Box,
    draw_dot,
    draw_line,
    draw_nested,
    draw_polyline,
    draw_rect,
    draw_text,
    svg_root,
)

_PLANE = PlotArea(Box(0, 16.0, 100, 220.0), SHARES)
_NAMES = 254.0
ENOUGH = 5  # with fewer answers, a confidence level has no share
_SMALL, _LARGE = 4.0, 10.0
_MANY = 150

Look = Literal["below", "within", "above"]


@dataclasses.dataclass(frozen=True, slots=True)
class CalibrationRow:
    """A confidence level: the share it should have (`least` to `most`, 0..1), and what it has."""

    word: str
    stands_for: str
    least: float
    most: float
    answers: int
    right: int

    @property
    def told(self) -> bool:
        """Whether there are enough answers to show a share."""
        return self.answers >= ENOUGH

    @property
    def share(self) -> float:
        """The share of right answers, 0..1."""
        return self.right / (self.answers or 1)

    @property
    def range(self) -> tuple[float, float]:
        """The 90% interval of the share."""
        return wilson_interval(self.right, self.answers)

    @property
    def words(self) -> str:
        return format_percent(self.share)

    @property
    def look(self) -> Look:
        """Whether the share is below, within or above what the level should have."""
        low, high = self.range
        if self.told and high < self.least:
            return "below"
        return "above" if self.told and low > self.most else "within"


@dataclasses.dataclass(frozen=True, slots=True)
class CalibrationChart:
    """All confidence levels; `answers` counts those given with a confidence.

    `svg` is empty if no level has enough answers.
    """

    levels: tuple[CalibrationRow, ...]
    answers: int
    sentences: tuple[str, ...]
    svg: Markup


def calibration_chart(counts: Mapping[tuple[int, bool], int]) -> CalibrationChart:
    """Return the calibration chart; `counts` are answers by level (1 to 3) and by being right."""
    levels = tuple(
        _calibration_row(n, counts.get((n, True), 0), counts.get((n, False), 0)) for n in (1, 2, 3)
    )
    told = [level for level in levels if level.told]
    return CalibrationChart(
        levels=levels,
        answers=sum(level.answers for level in levels),
        sentences=_calibration_sentences(levels),
        svg=_draw_calibration(levels, told) if told else Markup(),
    )


def _calibration_row(number: int, right: int, wrong: int) -> CalibrationRow:
    said = LEVELS[number - 1]
    return CalibrationRow(said.word, said.means, said.least, said.most, right + wrong, right)


def _draw_calibration(levels: Sequence[CalibrationRow], told: Sequence[CalibrationRow]) -> Markup:
    marks = [*_PLANE.scale(format_in_percent, "left"), *map(_target_box, levels)]
    marks.append(draw_line("dash", 0, _PLANE.down(0), 100, _PLANE.down(1)))
    for level in told:
        marks += _share_point(level)
    marks += [
        draw_text("guess", 46, _NAMES, "m"),
        draw_text("think so", 72, _NAMES, "m"),
        draw_text("sure", 100, _NAMES, "e"),
    ]
    said = "; ".join(f"{level.word}: right {level.words}" for level in told)
    return svg_root(marks, _NAMES + 10, f"How sure you were. {said}.")


def _target_box(level: CalibrationRow) -> str:
    """Return the box of the shares that a level should have."""
    top, foot = _PLANE.down(level.most), _PLANE.down(level.least)
    left, right = level.least * 100, level.most * 100
    return draw_rect("band", left, top, right - left, foot - top)


def _share_point(level: CalibrationRow) -> list[str]:
    """Return the share with its range; the dot is larger with more answers."""
    x, at = (level.least + level.most) / 2 * 100, _PLANE.down(level.share)
    low, high = level.range
    grown = min(1.0, math.sqrt(level.answers / _MANY))
    return [
        draw_line("edge", x, _PLANE.down(high), x, _PLANE.down(low)),
        draw_dot("ink", x, at, _SMALL + (_LARGE - _SMALL) * grown),
        draw_text(level.words, x - 4, at + 4, "b e halo"),
    ]


def _calibration_sentences(levels: Sequence[CalibrationRow]) -> tuple[str, ...]:
    guess, thought, sure = levels
    said = []
    if sure.told:
        wrong = sure.answers - sure.right
        found = f"When you were sure, you were right {sure.words} of the time"
        them = format_count(wrong, "answer")
        said.append(
            f"{found}. In {them} you were sure and not right."
            if wrong
            else f"{found}, in {format_count(sure.answers, 'answer')}."
        )
    said += [
        f"“{level.word}” was right {level.words} of the time."
        for level in (thought, guess)
        if level.told and level.look == "below"
    ]
    if guess.told and guess.look == "above":
        said.append(
            f"Your guesses were right {guess.words} of the time: you know more than you think."
        )
    return tuple(said)


WEEKS = 12


@dataclasses.dataclass(frozen=True, slots=True)
class WeekTotals:
    monday: dt.date
    sums: DayTotals

    @property
    def name(self) -> str:
        """The week's Monday, e.g. “Mar 16”."""
        return format_short_date(self.monday)


def last_weeks(recent: Mapping[str, DayTotals], today: dt.date) -> tuple[WeekTotals, ...]:
    """Return the last twelve weeks, this one included, Monday to Sunday."""
    last = today - dt.timedelta(days=today.weekday())
    mondays = [last - dt.timedelta(weeks=n) for n in reversed(range(WEEKS))]
    return tuple(WeekTotals(monday, _sum_week(recent, monday)) for monday in mondays)


def study_summary(days: StudyHistory, firsts: int, today: dt.date) -> str:
    """Return one sentence: since when, on how many days, and how much the learner studied.

    `firsts` counts the first answers to different questions among all answers.
    """
    if days.first is None:
        return "You have not answered or reviewed anything yet."
    since = (
        format_date(days.first)
        if days.first.year == today.year
        else format_date_with_year(days.first)
    )
    total = days.total
    new = f" ({firsts:,} to new questions)" if total.answers else ""
    parts = (
        f"{format_count(days.count, 'day')} of study",
        format_count(total.answers, "answer") + new,
        format_count(total.reviews, "review"),
    )
    return f"Since {since}: {', '.join(parts)}."


def _sum_week(recent: Mapping[str, DayTotals], monday: dt.date) -> DayTotals:
    days: Iterable[dt.date] = (monday + dt.timedelta(days=n) for n in range(7))
    found = (recent.get(day.isoformat(), DayTotals()) for day in days)
    return sum(found, DayTotals())


WIDTH = 93.0
"""Width of the columns in percent of the chart."""
_NAME = 18.0  # percent of a narrow chart that a day label takes


def day_names(days: Sequence[dt.date]) -> tuple[ColumnLabel, ...]:
    """Return labels for today, some Mondays, and the last day, without overlaps."""
    first = ColumnLabel(0, "Today")
    if len(days) == 1:
        return (first,)
    slot = WIDTH / len(days)
    mondays = [n for n, day in enumerate(days) if day.weekday() == 0]
    every = math.ceil(_NAME / (7 * slot))
    free = [n for n in mondays if _NAME < n * slot < WIDTH - 1.6 * _NAME]
    middle = (ColumnLabel(slot * (n + 0.5), format_short_date(days[n]), "m") for n in free[::every])
    return (first, *middle, ColumnLabel(WIDTH, format_short_date(days[-1]), "e"))


DAYS = 30
FARTHEST = 60  # more days would make the bars too thin to read


@dataclasses.dataclass(frozen=True, slots=True)
class DueDay:
    day: dt.date
    cards: int


@dataclasses.dataclass(frozen=True, slots=True)
class DueChart:
    """The coming days; `overdue` of today's cards were due earlier."""

    bars: tuple[DueDay, ...]
    svg: Markup
    overdue: int
    exam: bool
    sentence: str

    @property
    def total(self) -> int:
        """Cards due on all of these days."""
        return sum(bar.cards for bar in self.bars)


def last_day(today: dt.date, exam: dt.date | None) -> dt.date:
    """Return the last day of the chart: the exam day, or thirty days from now.

    The exam day is used if it is within the next sixty days.
    """
    if exam is not None and today < exam <= today + dt.timedelta(days=FARTHEST):
        return exam
    return today + dt.timedelta(days=DAYS - 1)


def due_chart(due: Mapping[str, int], today: dt.date, exam: dt.date | None = None) -> DueChart:
    """Return the chart of due cards; `due` counts cards by ISO date, past days included.

    Each card counts once, on its next due day. Repeated reviews until the last day are not
    included.
    """
    last = last_day(today, exam)
    days = [today + dt.timedelta(days=n) for n in range((last - today).days + 1)]
    overdue = sum(count for day, count in due.items() if day < today.isoformat())
    counts = [due.get(day.isoformat(), 0) for day in days]
    counts[0] += overdue
    bars = tuple(DueDay(*pair) for pair in zip(days, counts, strict=True))
    by_exam = last == exam
    return DueChart(
        bars=bars,
        svg=draw_columns(due_columns(bars), _describe_due(bars, overdue, by_exam=by_exam)),
        overdue=overdue,
        exam=by_exam,
        sentence=_due_sentence(bars, overdue),
    )


def due_columns(bars: Sequence[DueDay]) -> ColumnChart:
    """Return one column per day, with today highlighted."""
    looks = ["mark edge", *["fill"] * (len(bars) - 1)]
    return ColumnChart(
        columns=[[(look, bar.cards)] for look, bar in zip(looks, bars, strict=True)],
        axis=count_axis(max(bar.cards for bar in bars)),
        names=day_names([bar.day for bar in bars]),
        width=WIDTH,
    )


def _due_sentence(bars: Sequence[DueDay], overdue: int) -> str:
    most = max(bars, key=lambda bar: bar.cards)
    if not most.cards:
        return ""
    today = f"{format_count(bars[0].cards, 'card')} today"
    if overdue:
        today += f", {overdue:,} of them overdue"
    if most is bars[0]:
        return f"{today}; no later day has more."
    return f"{today}; at most {most.cards:,}, on {format_weekday(most.day)}."


def _describe_due(bars: Sequence[DueDay], overdue: int, *, by_exam: bool) -> str:
    until = "until the exam" if by_exam else f"in the next {len(bars)} days"
    said = _due_sentence(bars, overdue) or "none."
    return f"Cards due per day {until}: {said}"


_WIDTH = 86.0
_HOUR = 60


@dataclasses.dataclass(frozen=True, slots=True)
class WeekMinutes:
    """One week: its minutes, and what was done."""

    name: str
    minutes: float
    sums: DayTotals


@dataclasses.dataclass(frozen=True, slots=True)
class TimeChart:
    """The last weeks; `total` is the sum of the minutes shown in the table."""

    weeks: tuple[WeekMinutes, ...]
    svg: Markup
    total: float
    sentence: str


def time_chart(weeks: Sequence[WeekTotals], begun: dt.date | None = None) -> TimeChart:
    """Return the chart of study minutes by week.

    If `begun`, the first day with work, is within these weeks, the sentence names it.
    """
    minutes = [week.sums.minutes for week in weeks]
    # Add up whole minutes, so that the total matches the table.
    total = sum(round(m) if m >= 1 else m for m in minutes)
    young = begun if begun and begun > weeks[0].monday else None
    span = f"since {format_date(young)}" if young else "in twelve weeks"
    done = sum((week.sums for week in weeks), DayTotals())
    time = format_duration(total)
    words = (
        f"{time[:1].upper()}{time[1:]} {span}, for "
        f"{format_count(done.answers, 'answer')} and {format_count(done.reviews, 'review')}."
    )
    now = format_duration(minutes[-1]) if weeks[-1].sums.work else "none"
    says = f"Time by week: {words} This week {now}."
    return TimeChart(
        weeks=tuple(WeekMinutes(w.name, w.sums.minutes, w.sums) for w in weeks),
        svg=draw_columns(_time_columns(weeks, minutes), says),
        total=total,
        sentence=words if done.work else "",
    )


def _time_columns(weeks: Sequence[WeekTotals], minutes: Sequence[float]) -> ColumnChart:
    in_hours = max(minutes) >= 2 * _HOUR
    unit = _HOUR if in_hours else 1
    looks = [*["fill"] * (len(weeks) - 1), "mark edge"]
    slot = _WIDTH / len(weeks)
    return ColumnChart(
        columns=[[(look, m / unit)] for look, m in zip(looks, minutes, strict=True)],
        axis=count_axis(max(minutes) / unit, "h" if in_hours else "min"),
        names=(
            ColumnLabel(0, weeks[0].name),
            ColumnLabel(slot * 6.5, weeks[6].name, "m"),
            ColumnLabel(_WIDTH, "this week", "e"),
        ),
        width=_WIDTH,
    )


MIN_REVIEWS = 10  # with fewer cards in a week, its share would mostly be luck
LATELY = 4  # the weeks that the sentence covers
_RECALL_WIDTH = 80.0  # the rest is for the axis labels
_BOX = Box(0, TOP, _RECALL_WIDTH, HEIGHT)
_RECALL_NAMES = TOP + HEIGHT + 18
_LOWEST = 0.8
_TENTH = 0.1
_LINE = 14.0  # height of an axis label in pixels
Told = Sequence[tuple[int, DayTotals]]
"""Weeks with enough reviews, by position."""


@dataclasses.dataclass(frozen=True, slots=True)
class WeekRetention:
    """One week: `asked` cards, of which `known` were recalled; shares are empty if too few."""

    name: str
    asked: int
    known: int
    share: str
    expected: str


@dataclasses.dataclass(frozen=True, slots=True)
class RetentionChart:
    """The retention by week as a table and a chart, with a sentence about it.

    `svg` is empty if no week had enough reviews.
    """

    weeks: tuple[WeekRetention, ...]
    svg: Markup
    sentence: str


def recall_by_week(weeks: Sequence[WeekTotals], wanted: float) -> RetentionChart:
    """Return true retention by week; `wanted` is the desired retention (0..1)."""
    told = [(n, w.sums) for n, w in enumerate(weeks) if w.sums.asked >= MIN_REVIEWS]
    return RetentionChart(
        weeks=tuple(map(_retention_row, weeks)),
        svg=_draw_recall(weeks, told, wanted) if told else Markup(),
        sentence=_recall_sentence([w.sums for w in weeks[-LATELY:]], wanted),
    )


def _draw_recall(weeks: Sequence[WeekTotals], told: Told, wanted: float) -> Markup:
    plane = PlotArea(_BOX, recall_axis(told, wanted))
    step = 100 / max(1, len(weeks) - 1)
    runs = [run for run in _unbroken_runs(told) if len(run) > 1]
    lines = [
        draw_polyline(look, [(n * step, _share_from_top(plane, value(sums))) for n, sums in run])
        for look, value in (("ln ln2", _predicted_share), ("ln", _recalled_share))
        for run in runs
    ]
    marks = [*plane.scale(format_percent), *_target_line(plane, wanted), draw_nested(lines, _BOX)]
    slot = step * _RECALL_WIDTH / 100
    for n, sums in _lone_weeks(told):
        marks.append(draw_dot("ink", n * slot, plane.down(_recalled_share(sums)), 3))
    marks += _last_point(plane, told[-1][0] * slot, _recalled_share(told[-1][1]))
    marks += [
        draw_text(weeks[0].name, 0, _RECALL_NAMES),
        draw_text(weeks[6].name, _RECALL_WIDTH / 2, _RECALL_NAMES, "m"),
        draw_text("this week", _RECALL_WIDTH, _RECALL_NAMES, "m"),
    ]
    return svg_root(marks, _RECALL_NAMES + 6, _describe_recall(weeks, told, wanted))


def recall_axis(told: Told, wanted: float) -> Axis:
    """Return an axis from 100% down to 80%, or to the tenth below the lowest share."""
    shares = [s for _, sums in told for s in (_recalled_share(sums), _predicted_share(sums))]
    low = min([_LOWEST, *(int(s / _TENTH) * _TENTH for s in (*shares, wanted))])
    return Axis(low, 1.0, (1.0, low), "%", 0.01)


def _share_from_top(plane: PlotArea, share: float) -> float:
    """Return the y position of a share in the nested SVG, where 0 is at the top."""
    return 100 - plane.axis.place(share)


def _target_line(plane: PlotArea, wanted: float) -> list[str]:
    """Return the line of the desired retention; without a label if an axis label is too near."""
    at = plane.down(wanted)
    marks = [draw_line("dash", 0, at, _RECALL_WIDTH, at)]
    if _LINE <= at - _BOX.y <= _BOX.height - _LINE:
        marks.append(draw_text(format_percent(wanted), 100, at + 4, "e"))
    return marks


def _last_point(plane: PlotArea, x: float, share: float) -> list[str]:
    at = plane.down(share)
    words = draw_text("", x, at - 10, "m", bold=format_percent(share))
    return [draw_dot("ink", x, at, 4.5), words]


def _unbroken_runs(told: Told) -> list[list[tuple[int, DayTotals]]]:
    """Group weeks that follow each other without a gap."""
    places = enumerate(told)
    groups = itertools.groupby(places, lambda pair: pair[1][0] - pair[0])
    return [[week for _, week in group] for _, group in groups]


def _lone_weeks(told: Told) -> list[tuple[int, DayTotals]]:
    return [run[0] for run in _unbroken_runs(told) if len(run) == 1]


def _recalled_share(sums: DayTotals) -> float:
    return sums.recalled / sums.asked


def _predicted_share(sums: DayTotals) -> float:
    return sums.expected / sums.asked


def _retention_row(week: WeekTotals) -> WeekRetention:
    sums = week.sums
    told = sums.asked >= MIN_REVIEWS
    return WeekRetention(
        name=week.name,
        asked=sums.asked,
        known=sums.recalled,
        share=format_percent(_recalled_share(sums)) if told else "",
        expected=format_percent(_predicted_share(sums)) if told else "",
    )


def _recall_sentence(lately: Sequence[DayTotals], wanted: float) -> str:
    """Return what the last weeks say about the intervals; empty with too few reviews."""
    sums = sum(lately, DayTotals())
    if sums.asked < MIN_REVIEWS:
        return ""
    low, high = wilson_interval(sums.recalled, sums.asked)
    of = f"{format_percent(_recalled_share(sums))} of {format_count(sums.asked, 'card')}"
    known = (
        f"In the last four weeks you knew {of} when they came back; the schedule "
        f"expected {format_percent(_predicted_share(sums))}."
    )
    if low > wanted:
        return (
            f"{known} You want {format_percent(wanted)}, so fewer reviews would do: lower "
            "the target recall in the settings."
        )
    if high < wanted:
        return (
            f"{known} You want {format_percent(wanted)}. Raise the target recall in the "
            "settings, and cards come back sooner, which takes more of your minutes."
        )
    return f"{known} That is about the {format_percent(wanted)} you want."


def _describe_recall(weeks: Sequence[WeekTotals], told: Told, wanted: float) -> str:
    (first, then), (last, now) = told[0], told[-1]
    since = f"from {format_percent(_recalled_share(then))} in the week of {weeks[first].name}"
    until = "this week" if last == len(weeks) - 1 else f"in that of {weeks[last].name}"
    return (
        f"Recall at review by week: {since} to {format_percent(_recalled_share(now))} {until}; "
        f"you want {format_percent(wanted)}."
    )
