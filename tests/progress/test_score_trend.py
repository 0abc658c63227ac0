"""The change of the expected score in words."""

import datetime as dt

import pytest

from app.progress.predictions import ScorePrediction, ScoreTrend, draw_score_trend

MONDAY = dt.date(2026, 6, 8)


@pytest.mark.parametrize(
    ("expected", "change"),
    [
        ([20], (0, "")),
        ([20, 22], (2, "Jun 8")),
        ([22, 21], (-1, "Jun 8")),
        ([20, 22, 21], (1, "Jun 8")),
        ([20, 22, 22], (2, "Jun 8")),
        ([20, 21, 20], (0, "Jun 8")),
        ([25, *[20] * 6, 22], (-3, "Jun 8")),
        ([18, *[20] * 6, 23, 22], (4, "Jun 8")),
    ],
)
def test_the_change_counts_from_the_day_on_which_the_line_begins(expected, change) -> None:
    scores = tuple(
        ScorePrediction("exam", MONDAY + dt.timedelta(days=n), 0, 50, score, score - 3, score + 3)
        for n, score in enumerate(expected)
    )
    trend = ScoreTrend(scores)

    points, first_day = trend.change_since_first()

    assert (points, first_day.replace("\xa0", " ")) == change
    if first_day:
        assert f">{first_day}: {expected[0]}<" in draw_score_trend(trend, None)
