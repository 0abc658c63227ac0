"""The study log: thirteen weeks, from a Monday to today."""

import datetime as dt
import itertools
import xml.etree.ElementTree as ET

import pytest

from app.progress.study_record import StudyHeatmap, build_study_heatmap

TUESDAY = dt.date(2026, 6, 9)


def squares(log: StudyHeatmap) -> list[str]:
    drawn = ET.fromstring(str(log.svg))  # noqa: S314 - our own drawing
    return [rect.attrib["class"] for rect in drawn.iter("rect")]


def months(log: StudyHeatmap) -> list[tuple[float, str | None]]:
    drawn = ET.fromstring(str(log.svg))  # noqa: S314 - our own drawing
    above = [text for text in drawn.iter("text") if text.attrib["y"] == "12"]
    return [(float(text.attrib["x"]), text.text) for text in above]


def test_it_begins_on_a_monday_twelve_weeks_back_and_ends_today():
    log = build_study_heatmap({}, TUESDAY)

    assert log.weeks[0].monday == dt.date(2026, 3, 16)
    assert log.weeks[0].monday_text == "Mar\N{NO-BREAK SPACE}16"
    assert log.days_counted == len(squares(log)) == 12 * 7 + 2
    assert [s for s in squares(log) if "edge" in s] == [squares(log)[-1]]


def test_days_with_work_are_counted_and_others_before_the_log_are_not():
    log = build_study_heatmap({"2026-06-09": 3, "2026-06-01": 70, "2025-01-01": 9}, TUESDAY)

    assert log.days_studied == 2


def test_a_younger_learner_is_counted_from_the_first_day():
    log = build_study_heatmap({"2026-05-17": 3, "2026-06-09": 1}, TUESDAY, dt.date(2026, 5, 17))

    assert (log.days_studied, log.days_counted) == (2, 24)
    assert log.since_text == "May\N{NO-BREAK SPACE}17"
    assert log.weeks[0].monday == dt.date(2026, 5, 11)
    assert len(squares(log)) == 12 * 7 + 2


def test_a_first_day_before_the_log_is_not_named():
    log = build_study_heatmap({}, TUESDAY, dt.date(2025, 1, 1))

    assert (log.days_counted, log.since_text) == (12 * 7 + 2, "")


def test_more_work_is_darker(subtests: pytest.Subtests):
    for count, look in [
        (0, "h0"),
        (1, "h1"),
        (9, "h1"),
        (10, "h2"),
        (30, "h3"),
        (60, "h4"),
        (999, "h4"),
    ]:
        with subtests.test(count=count, look=look):
            assert (
                squares(build_study_heatmap({"2026-06-09": count}, TUESDAY))[-1] == f"{look} edge"
            )


def test_months_stand_above_their_first_week_and_not_on_each_other():
    log = build_study_heatmap({}, TUESDAY)

    assert [words for _, words in months(log)] == ["Mar", "Apr", "May", "Jun"]
    places = [x for x, _ in months(log)]
    assert all(later - earlier > 30 for earlier, later in itertools.pairwise(places))


def test_month_names_never_touch(subtests: pytest.Subtests):
    for offset in range(0, 370, 7):
        with subtests.test(offset=offset):
            log = build_study_heatmap({}, TUESDAY + dt.timedelta(days=offset))
            places = [x for x, _ in months(log)]

            assert all(later - earlier > 30 for earlier, later in itertools.pairwise(places))
