"""The moment of a grade that was given without a network."""

import datetime as dt

import pytest

from app.spaced_repetition.scheduler import OLDEST_REVIEW_AGE, clamp_review_time, is_rating_too_old

NOW = dt.datetime(2026, 6, 9, 12, 0, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)


@pytest.mark.parametrize(
    ("given", "last", "kept"),
    [
        pytest.param(NOW - HOUR, None, NOW - HOUR, id="of a new card, as given"),
        pytest.param(NOW - HOUR, NOW - 3 * HOUR, NOW - HOUR, id="after the last one"),
        pytest.param(NOW + HOUR, None, NOW, id="a clock that is fast does no harm"),
        pytest.param(NOW - 3 * HOUR, NOW - HOUR, NOW - HOUR, id="never before it"),
        pytest.param(NOW, NOW + HOUR, NOW + HOUR, id="nor where that is in the future"),
    ],
)
def test_the_moment_that_is_kept(
    given: dt.datetime, last: dt.datetime | None, kept: dt.datetime
) -> None:
    assert clamp_review_time(given, NOW, last) == kept


def test_thirty_days_are_waited_for_and_no_more() -> None:
    assert not is_rating_too_old(NOW - OLDEST_REVIEW_AGE, NOW)
    assert is_rating_too_old(NOW - OLDEST_REVIEW_AGE - dt.timedelta(milliseconds=1), NOW)
