"""The figures of Progress: what they say, and where they put it."""

import datetime as dt
import itertools
import xml.etree.ElementTree as ET

import pytest

from app.progress.charts import (
    calibration_chart,
    due_chart,
    last_day,
    last_weeks,
    recall_by_week,
    study_summary,
    time_chart,
)
from app.progress.history_store import StudyHistory
from app.spaced_repetition.review_log import DayTotals

TUESDAY = dt.date(2026, 6, 9)
MONDAY = dt.date(2026, 6, 8)


def days_of(**weeks_back: DayTotals) -> dict[str, DayTotals]:
    """Sums on the Monday of the week so many weeks ago: `ago_2=…`."""
    return {
        (MONDAY - dt.timedelta(weeks=int(name.removeprefix("ago_")))).isoformat(): sums
        for name, sums in weeks_back.items()
    }


def asked(count: int, known: int, chance: float = 0.9) -> DayTotals:
    return DayTotals(reviews=count, asked=count, recalled=known, expected=count * chance)


def said(**levels: tuple[int, int]) -> dict[tuple[int, bool], int]:
    """Answers by level, as `sure_3=(all, right)`."""
    found = {}
    for name, (count, right) in levels.items():
        level = int(name[-1])
        found |= {(level, True): right, (level, False): count - right}
    return found


def elements(figure, tag: str) -> list[ET.Element]:
    return list(ET.fromstring(str(figure.svg)).iter(tag))  # noqa: S314 - our own


def texts(figure) -> list[ET.Element]:
    return elements(figure, "text")


def words_of(figure) -> list[str]:
    return ["".join(text.itertext()) for text in texts(figure)]


def place(element: ET.Element, name: str) -> float:
    return float(element.attrib[name].rstrip("%"))


def recall_of(wanted: float = 0.9, **weeks_back: DayTotals):
    return recall_by_week(last_weeks(days_of(**weeks_back), TUESDAY), wanted)


# --- the sentence at the top ----------------------------------------------------------


def test_the_head_says_how_long_how_often_and_how_much():
    recent = {"2026-06-09": DayTotals(12, 80), "2026-06-01": DayTotals(answers=600)}
    days = StudyHistory(recent, DayTotals(0, 1400), 68, dt.date(2026, 3, 20))

    words = study_summary(days, 488, TUESDAY).replace("\u00a0", " ")

    assert words == (
        "Since March 20: 70 days of study, 612 answers (488 to new questions), 1,480 reviews."
    )


def test_before_anything_is_done_the_head_says_so():
    assert (
        study_summary(StudyHistory(), 0, TUESDAY)
        == "You have not answered or reviewed anything yet."
    )


def test_the_summary_bears_a_clock_that_was_set_back_behind_the_first_day():
    days = StudyHistory(recent={}, first=TUESDAY + dt.timedelta(weeks=1000))

    assert study_summary(days, 0, TUESDAY).startswith("Since August")


def test_one_of_each_is_one_of_each():
    days = StudyHistory({"2026-06-09": DayTotals(1, 1)}, first=TUESDAY)

    words = study_summary(days, 1, TUESDAY).replace("\u00a0", " ")

    assert words == ("Since June 9: 1 day of study, 1 answer (1 to new questions), 1 review.")


def test_a_first_day_of_another_year_has_its_year():
    days = StudyHistory({}, DayTotals(1, 1), 1, TUESDAY - dt.timedelta(weeks=30))

    words = study_summary(days, 1, TUESDAY).replace("\u00a0", " ")
    assert words.startswith("Since November 11, 2025: ")


# --- weeks ----------------------------------------------------------------------------


def test_twelve_weeks_end_with_this_one_and_begin_on_mondays():
    found = last_weeks({"2026-06-09": DayTotals(1), "2026-06-08": DayTotals(2)}, TUESDAY)

    assert len(found) == 12
    assert {week.monday.weekday() for week in found} == {0}
    assert found[-1].monday == MONDAY
    assert found[-1].sums.answers == 3


# --- recall ---------------------------------------------------------------------------


def test_a_week_with_few_reviews_is_not_told():
    recall = recall_of(ago_0=asked(9, 9))

    assert recall.svg == ""
    assert recall.sentence == ""
    assert (recall.weeks[-1].asked, recall.weeks[-1].share) == (9, "")


def test_a_gap_breaks_the_line_and_a_week_alone_is_a_spot():
    enough = asked(20, 18)
    recall = recall_of(ago_5=enough, ago_3=enough, ago_2=enough, ago_0=asked(3, 3))

    lines = [line.attrib for line in elements(recall, "polyline")]
    assert [line["class"] for line in lines] == ["ln ln2", "ln"]
    assert {len(line["points"].split()) for line in lines} == {2}
    assert [dot.attrib["r"] for dot in elements(recall, "circle")] == ["3", "4.5"]


def test_knowing_clearly_more_than_wanted_says_longer():
    words = recall_of(ago_0=asked(200, 196)).sentence

    assert "you knew 98% of 200\u00a0cards" in words
    assert "the schedule expected 90%" in words
    assert words.endswith(
        "You want 90%, so fewer reviews would do: lower the target recall in the settings."
    )


def test_knowing_clearly_less_than_wanted_says_shorter():
    assert recall_of(ago_0=asked(200, 150)).sentence.endswith(
        "You want 90%. Raise the target recall in the settings, and cards come back "
        "sooner, which takes more of your minutes."
    )


def test_what_luck_may_explain_is_left_alone():
    words = recall_of(ago_0=asked(20, 19)).sentence

    assert words.endswith("That is about the 90% you want.")


def test_the_axis_reaches_down_to_the_lowest_share():
    recall = recall_of(ago_1=asked(20, 13), ago_0=asked(20, 19))

    assert words_of(recall)[:2] == ["100%", "60%"]


def test_the_line_aimed_at_is_named_where_there_is_room():
    assert "90%" in words_of(recall_of(0.9, ago_0=asked(20, 19)))
    assert "97%" not in words_of(recall_of(0.97, ago_0=asked(20, 13)))


# --- cards due ------------------------------------------------------------------------


def test_the_forecast_ends_with_the_exam_or_after_thirty_days():
    assert last_day(TUESDAY, dt.date(2026, 7, 3)) == dt.date(2026, 7, 3)
    thirtieth = TUESDAY + dt.timedelta(days=29)
    assert last_day(TUESDAY, None) == thirtieth
    assert last_day(TUESDAY, dt.date(2027, 7, 3)) == thirtieth
    assert last_day(TUESDAY, TUESDAY) == thirtieth
    assert last_day(TUESDAY, MONDAY) == thirtieth


def test_what_is_overdue_is_counted_today_and_named():
    due = due_chart({"2026-06-01": 3, "2026-06-09": 4, "2026-06-12": 9}, TUESDAY)

    assert (due.overdue, due.bars[0].cards, due.total) == (3, 7, 16)
    words = due.sentence.replace("\u00a0", " ")
    assert words == "7 cards today, 3 of them overdue; at most 9, on Friday, June 12."


def test_without_cards_nothing_is_drawn():
    assert due_chart({}, TUESDAY).sentence == ""


def test_bars_stay_inside_and_names_apart(subtests: pytest.Subtests):
    for ahead in [1, 2, 5, 12, 24, 45, 60]:
        with subtests.test(ahead=ahead):
            exam = TUESDAY + dt.timedelta(days=ahead)
            due = due_chart({exam.isoformat(): 7}, TUESDAY, exam)

            assert len(due.bars) == ahead + 1
            (bar,) = elements(due, "rect")
            assert place(bar, "x") + place(bar, "width") <= 93.1
            names = [place(text, "x") for text in texts(due) if text.attrib["y"] == "142"]
            assert names == sorted(names)
            assert all(later - earlier >= 17 for earlier, later in itertools.pairwise(names))


# --- calibration ----------------------------------------------------------------------


def test_levels_with_few_answers_are_counted_and_not_drawn():
    found = calibration_chart(said(sure_3=(4, 4)))

    assert found.svg == ""
    assert found.answers == 4
    assert found.sentences == ()


def test_sure_and_wrong_are_answers_nobody_would_check():
    (words,) = calibration_chart(said(sure_3=(118, 93))).sentences

    assert words == (
        "When you were sure, you were right 79% of the time. In 25\u00a0answers you "
        "were sure and not right."
    )


def test_each_level_is_held_against_what_its_word_stands_for():
    guess, thought, sure = calibration_chart(
        said(sure_1=(60, 52), sure_2=(50, 36), sure_3=(90, 50))
    ).levels

    assert [level.look for level in (guess, thought, sure)] == [
        "above",
        "within",
        "below",
    ]


def test_good_guesses_are_worth_more_trust():
    words = calibration_chart(said(sure_1=(60, 52))).sentences[-1]

    assert "you know more than you think" in words


def test_a_range_lies_around_its_point_and_inside_the_drawing():
    drawn = calibration_chart(said(sure_2=(12, 12)))

    (dot,) = elements(drawn, "circle")
    (line,) = [e for e in elements(drawn, "line") if e.attrib["class"] == "edge"]
    top, foot = float(line.attrib["y1"]), float(line.attrib["y2"])
    assert 16 <= top <= float(dot.attrib["cy"]) < foot <= 236


# --- time -----------------------------------------------------------------------------


def test_time_is_told_in_minutes_until_a_week_has_two_hours():
    short = time_chart(
        last_weeks(days_of(ago_0=DayTotals(3, 9, milliseconds=20 * 60_000)), TUESDAY)
    )
    assert "20 min" in words_of(short)

    long = time_chart(
        last_weeks(days_of(ago_0=DayTotals(3, 9, milliseconds=5 * 3600_000)), TUESDAY)
    )

    assert "5 h" in words_of(long)
    assert long.sentence.replace("\u00a0", " ") == (
        "5 h in twelve weeks, for 3 answers and 9 reviews."
    )


def test_less_than_a_minute_is_not_none():
    weeks_of = days_of(ago_0=DayTotals(5, 0, milliseconds=20_000))
    told = time_chart(last_weeks(weeks_of, TUESDAY))

    assert told.sentence.replace("\u00a0", " ") == (
        "Less than a minute in twelve weeks, for 5 answers and 0 reviews."
    )
    assert "This week less than a minute." in told.svg


def test_short_times_add_up_before_they_are_rounded():
    short = {f"ago_{n}": DayTotals(1, 0, milliseconds=25_000) for n in range(3)}

    told = time_chart(last_weeks(days_of(**short), TUESDAY))

    assert told.sentence.replace("\u00a0", " ").startswith("1 min in twelve weeks")


def test_the_time_of_all_weeks_is_what_its_table_adds_up_to():
    # 2.6 and 3.6 minutes are 3 and 4 in the table, and 6.2 in all.
    worked = {f"ago_{n}": DayTotals(1, 0, milliseconds=156_000 + 60_000 * n) for n in (0, 1)}

    told = time_chart(last_weeks(days_of(**worked), TUESDAY))

    assert told.sentence.replace("\u00a0", " ").startswith("7 min in twelve weeks")


def test_time_of_a_learner_who_began_in_these_weeks_names_the_day():
    worked = days_of(ago_0=DayTotals(3, 9, milliseconds=20 * 60_000))

    told = time_chart(last_weeks(worked, TUESDAY), dt.date(2026, 5, 17))

    assert told.sentence.replace("\u00a0", " ").startswith("20 min since May 17, for")


def test_without_work_no_time_is_drawn():
    assert time_chart(last_weeks({}, TUESDAY)).sentence == ""
