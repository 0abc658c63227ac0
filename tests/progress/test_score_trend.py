"""The change of the expected score in words."""

import datetime as dt

import pytest

from app.progress.predictions import ScorePrediction, ScoreTrend

MONDAY = dt.date(2026, 6, 8)


@pytest.mark.parametrize(
    ("expected", "change"),
    [
        ([20], (0, "")),
        ([20, 22], (2, "since Monday")),
        ([22, 21], (-1, "since Monday")),
        ([20, 22, 21], (-1, "since Tuesday")),
        ([20, 21, 21], (1, "since Monday")),
        ([25, *[20] * 6, 22], (-3, "in a week")),
        ([18, *[20] * 6, 23, 22], (-1, "since Monday")),
    ],
)
def test_a_fall_since_the_last_list_is_said_rather_than_the_rise_before(expected, change) -> None:
    scores = tuple(
        ScorePrediction("exam", MONDAY + dt.timedelta(days=n), 0, 50, score, score - 3, score + 3)
        for n, score in enumerate(expected)
    )
    assert ScoreTrend(scores).change_since_last_week(scores[-1].day) == change
