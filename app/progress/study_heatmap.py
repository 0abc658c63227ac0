"""The study heat map: answers and reviews of each day, one column per week."""

import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from app.web.formatting import format_date, format_date_with_weekday, format_short_date
from app.widgets.svg import build_svg_element, draw_rect_in_pixels, draw_text_in_pixels

WEEKS = 13
STEP = 19
SIDE = 17
LEFT = 32
TOP = 20
_LEVELS = (1, 10, 30, 60)  # answers and reviews in a day, by level
_LOOKS = ("h0", "h1", "h2", "h3", "h4")
_NAMES = ((0, "Mon"), (2, "Wed"), (4, "Fri"), (6, "Sun"))
_FEW_WEEKS = 2


@dataclasses.dataclass(frozen=True, slots=True)
class HeatmapWeek:
    """The counts of a week from Monday on; the current week ends today."""

    monday: dt.date
    counts: tuple[int, ...]

    @property
    def name(self) -> str:
        """The week's Monday, e.g. “Mar 16”."""
        return format_short_date(self.monday)


@dataclasses.dataclass(frozen=True, slots=True)
class StudyHeatmap:
    """The last weeks; on `studied` of the `days` from `since` on the learner studied.

    `since` is the learner's first study day as text, empty if it is before the heat map. `key` is
    the legend of the colors in `svg`.
    """

    svg: Markup
    key: Markup
    rows: tuple[HeatmapWeek, ...]
    studied: int
    days: int
    since: str


def first_heatmap_day(today: dt.date) -> dt.date:
    """Return the Monday with which the heat map starts."""
    return today - dt.timedelta(days=today.weekday(), weeks=WEEKS - 1)


def build_study_heatmap(
    counts: Mapping[str, int], today: dt.date, counted_from: dt.date | None = None
) -> StudyHeatmap:
    """Return the heat map up to `today`; `counts` are answers and reviews by ISO date.

    Days before `counted_from`, the first study day, are drawn but not counted.
    """
    first = first_heatmap_day(today)
    start = max(first, min(counted_from or first, today))
    skipped = (start - first).days // 7 * 7
    days = [first + dt.timedelta(days=n) for n in range((today - first).days + 1)]
    daily_counts = [counts.get(day.isoformat(), 0) for day in days]
    studied = sum(count > 0 for count in daily_counts)
    counted_days = (today - start).days + 1
    caption = f"Days with answers or reviews since {format_date_with_weekday(start)}"
    return StudyHeatmap(
        svg=_draw_heatmap(first, daily_counts, f"{caption}: {studied} of {counted_days}."),
        key=_heatmap_legend(),
        rows=tuple(
            HeatmapWeek(days[n], tuple(daily_counts[n : n + 7]))
            for n in range(skipped, len(days), 7)
        ),
        studied=studied,
        days=counted_days,
        since=format_date(start) if start > first else "",
    )


def _draw_heatmap(first: dt.date, daily_counts: Sequence[int], alt_text: str) -> Markup:
    """Draw one column per week; the last square is today."""
    marks = [draw_text_in_pixels(label, x, 12) for x, label in _month_labels(first)]
    marks += [draw_text_in_pixels(name, 0, TOP + n * STEP + 13) for n, name in _NAMES]
    for index, count in enumerate(daily_counts):
        week, weekday = divmod(index, 7)
        level = sum(count >= minimum for minimum in _LEVELS)
        edge = " edge" if index == len(daily_counts) - 1 else ""
        css_class = f"{_LOOKS[level]}{edge}"
        marks.append(
            draw_rect_in_pixels(css_class, LEFT + week * STEP, TOP + weekday * STEP, SIDE, SIDE)
        )
    width, height = LEFT + WEEKS * STEP, TOP + 7 * STEP
    return build_svg_element(marks, height, alt_text, "heat g", width)


def _heatmap_legend() -> Markup:
    marks = [
        draw_rect_in_pixels(css_class, 17 * n, 0, 15, 13) for n, css_class in enumerate(_LOOKS)
    ]
    return build_svg_element(marks, 13, "", "g heat", 17 * len(_LOOKS))


def _month_labels(first: dt.date) -> list[tuple[int, str]]:
    """Return each month with the x position of its first week in pixels."""
    mondays = [first + dt.timedelta(weeks=n) for n in range(WEEKS)]
    starts = [n for n, day in enumerate(mondays) if n == 0 or day.month != mondays[n - 1].month]
    # A first month of few weeks has no label, which would overlap the next one.
    if len(starts) > 1 and starts[1] - starts[0] < _FEW_WEEKS:
        starts = starts[1:]
    return [(LEFT + n * STEP, f"{mondays[n]:%b}") for n in starts]
