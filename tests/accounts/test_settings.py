"""GET and POST /settings: what a learner may set, and what is said otherwise."""

import datetime as dt

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.accounts.learner_store import load_learner_by_id
from app.accounts.settings_page import SettingsForm, build_settings_form
from app.database.tables import Learner
from tests.conftest import Clock

FINE = {
    "name": "Rosa Meyer",
    "exam_day": "2026-07-03",
    "minutes_a_day": "45",
    "zone": "Europe/Berlin",
    "retention": "92",
    "target": "75",
}


def test_everything_works_before_a_name_is_set(client: TestClient):
    answer = client.get("/settings")

    assert answer.status_code == 200
    assert "There is no account" in answer.text


def test_what_was_set_is_shown_again(client: TestClient):
    answer = client.post("/settings", data=FINE)

    assert answer.headers["location"] == "/settings?kept=yes"
    page = client.get("/settings?kept=yes").text
    assert "Saved." in page
    for value in ('value="Rosa Meyer"', 'value="2026-07-03"', 'value="45"'):
        assert value in page
    assert '<option value="Europe/Berlin" selected>' in page


def test_hours_are_chosen_on_the_12_hour_clock(client: TestClient):
    page = client.get("/settings").text.replace("\xa0", " ")

    for hour, shown in ((0, "12:00 AM"), (7, "7:00 AM"), (12, "12:00 PM"), (23, "11:00 PM")):
        assert f'<option value="{hour}">{shown}</option>' in page
    assert "A study day begins at 4:00 AM." in page


def test_looking_writes_nothing(client: TestClient, session: Session):
    client.get("/settings")

    assert session.exec(select(Learner)).all() == []


@pytest.mark.parametrize(
    ("field", "typed", "message"),
    [
        ("minutes_a_day", "often", "from 5 to 480 minutes a day; you entered “often”"),
        ("minutes_a_day", "4", "from 5 to 480"),
        ("retention", "99", "from 70 to 97 percent"),
        ("target", "101", "from 1 to 100 percent"),
        ("zone", "Mars/Olympus", "such as Europe/Berlin; “Mars/Olympus”"),
        ("exam_day", "soon", "a day such as 2026-07-03; “soon”"),
        ("exam_day", "2026-06-08", "between today and three years from now"),
        ("minutes_a_day", "9" * 5000, f"you entered “{'9' * 40}…”"),
        ("retention", "1" * 100_000, "from 70 to 97 percent"),
        ("target", "0" * 5000, "from 1 to 100 percent"),
        ("exam_day", "2" * 5000, "a day such as 2026-07-03; “222"),
        ("zone", "x" * 5000, "such as Europe/Berlin; “xxx"),
        ("name", "x" * 81, "At most 80 characters; this has 81"),
    ],
)
def test_what_cannot_be_used_is_named_and_kept(
    client: TestClient, field: str, typed: str, message: str
):
    answer = client.post("/settings", data={**FINE, field: typed})

    assert answer.status_code == 422
    assert message in answer.text
    assert 'value="Rosa Meyer"' in answer.text or field == "name"
    assert 'aria-invalid="true"' in answer.text


def test_after_the_exam_day_everything_else_can_still_be_set(
    client: TestClient, clock: Clock, session: Session
):
    client.post("/settings", data=FINE)
    clock.tick(days=30)
    assert "This day is over" in client.get("/settings").text

    answer = client.post("/settings", data={**FINE, "minutes_a_day": "20"})

    assert answer.status_code == 303
    assert session.exec(select(Learner.minutes_a_day)).one() == 20
    assert session.exec(select(Learner.exam_day)).one() == "2026-07-03"
    another = client.post("/settings", data={**FINE, "exam_day": "2026-07-02"})
    assert another.status_code == 422


def test_a_script_in_a_name_is_only_text(client: TestClient):
    client.post("/settings", data={**FINE, "name": "<script>alert(1)</script>"})

    page = client.get("/settings").text

    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_the_zone_of_the_browser_is_taken_until_one_is_set(client: TestClient):
    client.cookies.set("zone", "Asia/Tokyo")

    page = client.get("/settings").text

    assert '<option value="Asia/Tokyo" selected>' in page


def test_a_browser_is_dated_by_the_study_day(client: TestClient, clock: Clock):
    clock.tick(hours=14)  # from noon to 2 at night
    client.post("/settings", data={**FINE, "zone": "UTC"})

    assert "Added on June\xa09, 2026" in client.get("/settings").text


def test_colors_and_keys_stay_with_the_browser(client: TestClient, session: Session):
    answer = client.post("/settings/appearance", data={"theme": "dark", "keys": "off"})

    lines = answer.headers.get_list("set-cookie")
    assert any(line.startswith("theme=dark") for line in lines)
    assert any(line.startswith("keys=off") for line in lines)
    assert session.exec(select(Learner)).all() == []


def test_one_save_button_saves_the_colors_with_the_rest(client: TestClient):
    answer = client.post("/settings", data={**FINE, "theme": "dark", "keys": "off"})

    assert {"theme=dark", "keys=off"} == {
        line.partition(";")[0] for line in answer.headers.get_list("set-cookie") if "=" in line
    } & {"theme=dark", "keys=off"}
    page = client.get("/settings").text
    assert page.count('action="/settings/appearance"') == 0
    assert 'value="Rosa Meyer"' in page


def test_colors_alone_are_kept_when_keys_stay_on(client: TestClient) -> None:
    client.post("/settings", data={**FINE, "theme": "dark", "keys": "on"})
    assert 'data-theme="dark"' in client.get("/settings").text

    client.post("/settings", data={**FINE, "theme": "system", "keys": "on"})
    assert "data-theme=" not in client.get("/settings").text


def test_the_system_decides_again(client: TestClient):
    client.post("/settings/appearance", data={"theme": "dark"})
    client.post("/settings/appearance", data={"theme": ""})

    assert "data-theme=" not in client.get("/settings").text


def test_how_minutes_are_spread_is_kept_and_shown_again(client: TestClient, session: Session):
    habits = {"card_amount": "fewer", "double_last_week": "yes", "days_off": ["6", "2"]}

    answer = client.post("/settings", data=FINE | habits)

    assert answer.headers["location"] == "/settings?kept=yes"
    learner = session.exec(select(Learner)).one()
    assert (learner.card_amount, learner.double_last_week) == ("fewer", True)
    assert learner.days_off == "26"
    page = client.get("/settings").text
    assert page.count(" checked") == 2
    assert '<option value="fewer" selected>Fewer</option>' in page
    assert '<option value="yes" selected>Twice the minutes</option>' in page

    client.post("/plan", data={"exam_day": "2026-07-04", "minutes_a_day": "30"})
    session.expire_all()
    assert session.exec(select(Learner)).one().days_off == "26"


@pytest.mark.parametrize(
    ("days", "message"),
    [
        (["7"], "Choose days from Monday to Sunday."),
        (list("0123456"), "Leave at least one day a week to study."),
    ],
)
def test_days_off_are_some_of_the_week(client: TestClient, days: list[str], message: str):
    answer = client.post("/settings", data=FINE | {"days_off": days})

    assert answer.status_code == 422
    assert message in answer.text


def test_what_few_change_is_folded_until_it_is_wrong(client: TestClient):
    folded = client.get("/settings").text
    opened = client.post("/settings", data={**FINE, "retention": "99"}).text

    advanced = folded.partition("<summary>Advanced</summary>")[2].partition("</details>")[0]
    for name in ("retention", "double_last_week"):
        assert f'name="{name}"' in advanced
    assert '<details class="stack"><summary>Advanced' in folded
    assert '<details class="stack" open><summary>Advanced' in opened


def test_every_setting_of_the_form_is_a_column_and_comes_back_as_it_was_shown(
    client: TestClient, session: Session
):
    client.post("/settings", data={**FINE, "days_off": ["5"], "calendar": "no"})
    before = session.exec(select(Learner)).one().model_dump()

    learner = load_learner_by_id(session, before["id"])
    assert learner
    shown = build_settings_form(learner)
    values, problems = shown.parse_values_and_plan_mock_exams(dt.date(2026, 6, 9), learner)

    assert not problems
    assert set(values) == set(SettingsForm.model_fields)
    assert {name: before[name] for name in values} == values
