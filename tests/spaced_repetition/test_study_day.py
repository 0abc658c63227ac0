"""A study day turns at four in the morning where the learner is."""

import datetime as dt

import pytest

from app.accounts.current_learner import LearnerProfile
from app.clock import study_day_start


def at(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).astimezone(dt.UTC)


def test_the_day_of_a_moment(subtests: pytest.Subtests):
    for zone, moment, day in [
        ("UTC", "2026-06-09T03:59:00+00:00", "2026-06-08"),
        ("UTC", "2026-06-09T04:00:00+00:00", "2026-06-09"),
        ("Asia/Tokyo", "2026-06-08T19:00:00+00:00", "2026-06-09"),
        ("America/New_York", "2026-06-09T07:59:00+00:00", "2026-06-08"),
        ("Nowhere/Land", "2026-06-09T04:00:00+00:00", "2026-06-09"),
    ]:
        with subtests.test(zone=zone, moment=moment, day=day):
            learner = LearnerProfile(key="k", zone=zone)

            assert learner.study_day(at(moment)).isoformat() == day


def test_the_next_day_begins_at_four(clock):
    learner = LearnerProfile(key="k", zone="Europe/Berlin")

    tomorrow = learner.study_day(clock.now) + dt.timedelta(1)
    begins = study_day_start(tomorrow, learner.zone)

    assert begins == at("2026-06-10T04:00:00+02:00")
    assert learner.study_day(begins) == tomorrow
