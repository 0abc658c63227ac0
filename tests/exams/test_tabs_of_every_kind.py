"""Every kind of question in two tabs: a form changes only what was changed in it."""

import dataclasses
import json
from html.parser import HTMLParser

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session

from tests.amounts import sample
from tests.conftest import Clock
from tests.exams.sitting import begin, kept, save
from tests.exams.test_place import OF_THREE, SHORT
from tests.quiz.bank import EVERY_TYPE
from tests.quiz.course import EditableLiveCourse

KINDS = {name: q for name, q in EVERY_TYPE.items() if name != "design"}
KINDS["place"] = OF_THREE
RESPONSES = {
    "single": ({"answer": "bcdf"}, {"answer": "lmnp"}),
    "multiple": ({"answer": "bcdf|ghjk"}, {"answer": "bcdf|lmnp"}),
    "true-false": ({"answer": "bcdf"}, {"answer": "ghjk"}),
    "numeric": ({"answer": "1,120", "unit": "GB"}, {"answer": "2", "unit": "TB"}),
    "short": ({"answer": "all-reduce"}, {"answer": "broadcast"}),
    "order": (
        {f"place.{key * 4}": str(n) for n, key in enumerate("zyxwv", 1)},
        {f"place.{key * 4}": str(n) for n, key in enumerate("vzyxw", 1)},
    ),
    "match": (
        {"pair.lbcd": "rfgh", "pair.lfgh": "rbcd"},
        {"pair.lbcd": "rbcd", "pair.lfgh": "rjkl"},
    ),
    "cloze": (
        {"blank.bcdf": "RoCE", "blank.ghjk": "lossless"},
        {"blank.bcdf": "RDMA", "blank.ghjk": "lossy"},
    ),
    "place": ({"answer": "bcdf"}, {"answer": "ghjk"}),
}
MINUTE = 60_000
pytestmark = pytest.mark.drawn
Form = dict[str, list[str]]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Three kinds for each test, for each others; `make drills`: all."""
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", sample(KINDS, 3, metafunc.function.__name__))


@pytest.fixture
def live_course(name: str) -> EditableLiveCourse:
    held = EditableLiveCourse(dataclasses.replace(KINDS[name], id=name))
    held.held = dataclasses.replace(held.held, exams={"short": SHORT})
    return held


@pytest.fixture
def sitting(rosa: TestClient, clock: Clock) -> str:
    address = begin(rosa)
    clock.tick(seconds=5)
    return address


@pytest.fixture
def answers(name: str) -> tuple[Form, Form]:
    """Two responses to the only question, that differ in all of their fields."""
    first, second = RESPONSES[name]
    return listed(first), listed(second)


def listed(fields: dict[str, str]) -> Form:
    return {field: words.split("|") for field, words in fields.items()}


class Parsed(HTMLParser):
    """What a browser sends of the form of an exam: all that is chosen there."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[str, str]] = []
        self.inside = self.open = False
        self.select = ""
        self.options: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value or "" for key, value in attrs}
        self.inside |= tag == "form" and "/answers/" in given.get("action", "")
        if not self.inside:
            return
        if tag == "select":
            self.select, self.options = given["name"], []
        if tag == "option":
            self.options.append((given.get("value", "\0"), "selected" in given))
        if tag == "input" and given.get("name"):
            boxes = given.get("type") in {"radio", "checkbox"}
            if not boxes or "checked" in given:
                self.sent.append((given["name"], given.get("value", "")))

    def handle_data(self, data: str) -> None:
        if self.select and self.options and self.options[-1][0] == "\0":
            self.options[-1] = (data.strip(), self.options[-1][1])

    def handle_endtag(self, tag: str) -> None:
        self.inside &= tag != "form"
        if tag == "select" and self.select:
            chosen = [value for value, picked in self.options if picked]
            self.sent.append((self.select, (chosen or [self.options[0][0]])[0]))
            self.select = ""


def opened(client: TestClient, sitting: str) -> Form:
    """The form of the first question as a tab shows it."""
    parsed = Parsed()
    parsed.feed(client.get(f"{sitting}/questions/1").text)
    form: Form = {}
    for name, value in parsed.sent:
        form.setdefault(name, []).append(value)
    return form


def changed(form: Form, response: Form) -> Form:
    """The form after somebody has entered a response."""
    others = {n: v for n, v in form.items() if n in {"shown", "since", "flag", "strike"}}
    ticked = {"settled": ["yes"]} if any(n.startswith("place.") for n in form) else {}
    return {**others, **ticked, **response}


def response(session: Session) -> dict[str, list[str]]:
    """What is saved of the only question."""
    raw: Form = json.loads(kept(session).raw)
    return plain(raw)


def plain(form: Form) -> dict[str, list[str]]:
    return {n: sorted(v) for n, v in form.items() if any(v)}


@pytest.fixture(params=["nothing", "an answer"])
def older(
    request: pytest.FixtureRequest,
    rosa: TestClient,
    sitting: str,
    answers: tuple[Form, Form],
    clock: Clock,
) -> Form:
    """A tab that was opened before another one gave the second answer."""
    if request.param == "an answer":
        save(rosa, sitting, 1, **changed(opened(rosa, sitting), answers[0]))
    form = opened(rosa, sitting)
    clock.tick(seconds=5)
    save(rosa, sitting, 1, **changed(opened(rosa, sitting), answers[1]))
    clock.tick(seconds=5)
    return form


@pytest.mark.parametrize("extra", [{}, {"flag": ["yes"], "strike": ["bcdf"]}])
def test_an_older_tab_in_which_nothing_was_entered_takes_no_answer_away(
    rosa: TestClient,
    sitting: str,
    answers: tuple[Form, Form],
    older: Form,
    session: Session,
    extra: Form,
) -> None:
    second = answers[1]

    onward = save(rosa, sitting, 1, **{**older, **extra}, go="next")

    assert response(session) == plain(second)
    assert kept(session).flagged == ("flag" in extra)
    assert json.loads(kept(session).struck) == extra.get("strike", [])
    assert onward.headers["location"] == f"{sitting}/review"


def test_what_both_have_entered_is_the_newer_and_the_sender_is_told(
    rosa: TestClient,
    sitting: str,
    answers: tuple[Form, Form],
    session: Session,
    clock: Clock,
) -> None:
    first, second = answers
    older = opened(rosa, sitting)
    clock.tick(seconds=5)
    save(rosa, sitting, 1, **changed(opened(rosa, sitting), first))
    clock.tick(seconds=5)

    onward = save(rosa, sitting, 1, **changed(older, second), go="next")

    assert response(session) == plain(second)
    assert onward.headers["location"] == f"{sitting}/questions/1?told=replaced"
    page = rosa.get(onward.headers["location"]).text
    assert "your answer took the place of another one" in page


def test_with_htmx_it_is_told_at_once(
    rosa: TestClient, sitting: str, answers: tuple[Form, Form], clock: Clock
) -> None:
    first, second = answers
    older = opened(rosa, sitting)
    save(rosa, sitting, 1, **changed(opened(rosa, sitting), first))
    clock.tick(seconds=5)
    rosa.headers["HX-Request"] = "true"

    told = save(rosa, sitting, 1, **changed(older, second))
    again = save(rosa, sitting, 1, **changed(older, second))

    assert told.status_code == again.status_code == 200
    assert "your answer took the place of another one" in told.text
    assert "took the place" not in again.text


def test_the_newer_stays_where_the_older_waited_and_its_flag_still_counts(
    rosa: TestClient,
    sitting: str,
    answers: tuple[Form, Form],
    session: Session,
    clock: Clock,
) -> None:
    first, second = answers
    older = {**changed(opened(rosa, sitting), first), "flag": ["yes"]}
    clock.tick(minutes=2)
    save(rosa, sitting, 1, **changed(opened(rosa, sitting), second))
    clock.tick(minutes=1)
    rosa.headers["HX-Request"] = "true"

    late = save(rosa, sitting, 1, **older, age=2 * MINUTE)

    assert late.status_code == 409
    assert "a newer answer was saved at 12:02\N{NO-BREAK SPACE}PM UTC from elsewhere" in late.text
    assert response(session) == plain(second)
    assert kept(session).flagged


def test_of_two_that_waited_the_one_given_last_counts_whichever_comes_first(
    rosa: TestClient,
    sitting: str,
    answers: tuple[Form, Form],
    session: Session,
    clock: Clock,
) -> None:
    first, second = answers
    form = opened(rosa, sitting)
    clock.tick(minutes=4)
    rosa.headers["HX-Request"] = "true"

    save(rosa, sitting, 1, **changed(form, first), age=2 * MINUTE)
    save(rosa, sitting, 1, **changed(form, second), age=1 * MINUTE)
    late = save(rosa, sitting, 1, **changed(form, first), age=3 * MINUTE)

    assert late.status_code == 409
    assert response(session) == plain(second)


def test_what_was_entered_can_be_taken_back_on_the_same_page(
    rosa: TestClient,
    sitting: str,
    answers: tuple[Form, Form],
    session: Session,
    clock: Clock,
) -> None:
    save(rosa, sitting, 1, **changed(opened(rosa, sitting), answers[0]))
    clock.tick(seconds=5)
    form = opened(rosa, sitting)
    keep = {"shown", "since", "settled"}
    empty = {n: ["no"] if n == "settled" else v if n in keep else [""] for n, v in form.items()}

    save(rosa, sitting, 1, **empty)

    assert response(session) == {}


def test_a_form_that_is_sent_again_as_it_was_says_nothing(
    rosa: TestClient, sitting: str, answers: tuple[Form, Form], clock: Clock
) -> None:
    form = changed(opened(rosa, sitting), answers[0])
    for _ in range(2):
        clock.tick(seconds=5)
        onward = save(rosa, sitting, 1, **form, go="next")

        assert onward.headers["location"] == f"{sitting}/review"
