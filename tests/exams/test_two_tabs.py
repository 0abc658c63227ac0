"""One sitting in two tabs, sent twice, sent late, sent at once."""

import asyncio

import httpx
import pytest
from fastapi import FastAPI
from sqlmodel import Session, select

from app.database.tables import Attempt, Sitting, SittingAnswer, StudyDayActivity
from app.exams.answer_merge import AnswerState, merge_answers
from tests.conftest import Clock
from tests.exams.sitting import answer, begin, finish, kept, save, shown
from tests.loops import outcome


def test_a_flag_from_an_older_tab_does_not_take_the_answer_away(
    rosa, clock: Clock, session: Session
) -> None:
    sitting = begin(rosa)
    older = shown(rosa, sitting)
    clock.tick(seconds=5)
    newer = shown(rosa, sitting)
    clock.tick(seconds=5)

    save(rosa, sitting, 1, **{**newer, "answer": "x"})
    clock.tick(seconds=5)
    save(rosa, sitting, 1, **{**older, "flag": "yes"})

    assert answer(session) == ["x"]
    assert kept(session).flagged


def test_an_answer_from_an_older_tab_is_the_answer(rosa, clock: Clock, session: Session) -> None:
    sitting = begin(rosa)
    older = shown(rosa, sitting)
    clock.tick(seconds=5)

    save(rosa, sitting, 1, **{**shown(rosa, sitting), "answer": "x"})
    clock.tick(seconds=5)
    save(rosa, sitting, 1, **{**older, "answer": "y"})

    assert answer(session) == ["y"]


def state(*, flagged: bool = False, struck: str = "", **fields: str) -> AnswerState:
    """A form: each letter of `struck` is an option that was struck out."""
    return AnswerState({n: [v] for n, v in fields.items()}, flagged, tuple(struck))


def test_gaps_that_were_filled_in_two_tabs_are_both_filled() -> None:
    saved = state(one="x", two="")
    merged = merge_answers(
        saved, state(), state(one="", two="y"), form_is_newer=True, merge_each_field=True
    )

    assert merged.state.raw_response == {"one": ["x"], "two": ["y"]}
    assert merged.message_key == "stale"


@pytest.mark.parametrize("newer", [True, False])
def test_of_a_gap_that_was_filled_in_two_tabs_one_answer_stays(newer: bool) -> None:
    saved, shown = state(one="x", two="a"), state(one="", two="a")
    merged = merge_answers(
        saved, shown, state(one="y", two="b"), form_is_newer=newer, merge_each_field=True
    )

    assert merged.state.raw_response == {"one": ["y" if newer else "x"], "two": ["b"]}
    assert merged.message_key == ("replaced" if newer else "refused")


def test_a_unit_that_a_form_proposes_is_no_change() -> None:
    saved, sent = state(answer="5", unit="MB"), state(answer="", unit="GB")

    assert (
        merge_answers(saved, state(), sent, form_is_newer=True, merge_each_field=False).state
        == saved
    )
    alone = state(answer="5")
    proposed = state(answer="5", unit="GB")
    assert not merge_answers(
        alone, alone, proposed, form_is_newer=True, merge_each_field=False
    ).answer_changed


@pytest.mark.parametrize(
    ("saved", "shown", "sent", "kept"),
    [
        ("ab", "a", "a", "ab"),  # one more elsewhere
        ("a", "ab", "ab", "a"),  # one less elsewhere
        ("ab", "a", "ac", "abc"),
        ("ab", "ab", "b", "b"),
        ("abc", "ab", "b", "bc"),
        ("", "", "", ""),
    ],
)
def test_each_strike_is_a_change_of_its_own(saved: str, shown: str, sent: str, kept: str) -> None:
    states = [state(struck=keys) for keys in (saved, shown, sent)]

    merged = merge_answers(*states, form_is_newer=False, merge_each_field=False)

    assert sorted(merged.state.struck_options) == sorted(kept)


@pytest.mark.parametrize("one", [True, False])
def test_a_flag_of_another_tab_stays_where_it_was_not_touched(one: bool) -> None:
    saved, shown = state(flagged=one), state(flagged=not one)

    merged = merge_answers(saved, shown, shown, form_is_newer=True, merge_each_field=False)

    assert merged.state.flagged is one


def test_an_answer_can_be_taken_back_where_it_was_given(
    rosa, clock: Clock, session: Session
) -> None:
    sitting = begin(rosa)
    save(rosa, sitting, 1, **{**shown(rosa, sitting), "answer": "x"})
    clock.tick(seconds=5)

    save(rosa, sitting, 1, **{**shown(rosa, sitting), "answer": ""})

    assert answer(session) in ([], [""])


def test_a_request_sent_twice_is_one_answer_and_its_time_counts_once(
    rosa, clock: Clock, session: Session
) -> None:
    sitting = begin(rosa)
    sent = {**shown(rosa, sitting), "answer": "x"}
    clock.tick(seconds=30)

    for _ in range(2):
        assert save(rosa, sitting, 1, **sent).status_code == 303

    assert kept(session).milliseconds == 30_000


def test_the_time_of_an_exam_is_in_the_day_beside_its_answers(
    rosa, clock: Clock, session: Session, right
) -> None:
    sitting = begin(rosa)
    number, fields = next(iter(right().items()))
    sent = {**shown(rosa, sitting, number), **fields}
    clock.tick(minutes=2)
    save(rosa, sitting, number, **sent)

    finish(rosa, sitting)

    session.rollback()
    day = session.exec(select(StudyDayActivity)).one()
    assert (day.answers, day.milliseconds) == (1, 120_000)


def test_without_javascript_a_late_answer_is_told_so(rosa, clock: Clock, session: Session) -> None:
    sitting = begin(rosa)
    clock.tick(minutes=6, seconds=1)

    late = save(rosa, sitting, 1, answer="x")

    assert late.status_code == 303
    assert late.headers["location"] == f"{sitting}/report?late=1"
    assert "had ended already" in rosa.get(late.headers["location"]).text
    assert session.exec(select(SittingAnswer)).all() == []


@pytest.mark.parametrize("page", ["questions/1", "review", "report", "questions/1?show=all"])
def test_anothers_pages_are_not_there_after_the_end_either(rosa, milo, page: str) -> None:
    sitting = begin(rosa)
    finish(rosa, sitting)

    assert milo.get(f"{sitting}/{page}").status_code == 404
    assert rosa.get(f"{sitting}/{page}").status_code in {200, 303}


def test_a_finish_pressed_in_two_tabs_at_once_counts_once(
    app: FastAPI, rosa, session: Session
) -> None:
    sitting = begin(rosa)
    for number in (1, 2, 3):
        save(rosa, sitting, number, answer="x", **{f"blank.{number}": "x"})

    cookies = {cookie.name: cookie.value for cookie in rosa.cookies.jar}
    ends = outcome(together(app, f"{sitting}/submission", cookies))

    assert {end.status_code for end in ends} == {303}
    late = [end for end in ends if end.headers["location"].endswith("?late=1")]
    assert len(late) == len(ends) - 1
    assert len(session.exec(select(Attempt)).all()) == 3
    assert session.exec(select(Sitting)).one().closed_by == "learner"


async def together(app: FastAPI, address: str, cookies: dict[str, str]) -> list[httpx.Response]:
    """The same request eight times at once."""
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://testserver", cookies=cookies
    ) as browser:
        return await asyncio.gather(*(browser.post(address) for _ in range(8)))
