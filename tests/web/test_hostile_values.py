"""No value that can be sent is a fault of ours: every route, on both databases."""

from collections.abc import Iterable, Iterator
from urllib.parse import urlencode

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import BaseModel
from sqlmodel import Session, select

from app.accounts.settings_page import SettingsForm
from app.authoring.pages import ProblemFilterForm, StatisticsTableForm
from app.content.live_courses import LiveCourse
from app.database.tables import Learner
from app.errors import InvalidInputError
from app.flashcards.forms import (
    CardPagesQuery,
    CardWantedForm,
    RatingForm,
    SuspensionForm,
    UndoForm,
)
from app.lessons.notes import NoteForm
from app.main import create_app
from app.quiz.forms import HiddenQuestionFields, PracticeForm, ReportForm
from app.settings import Settings
from tests.amounts import FACTOR, sample
from tests.conftest import Clock, let_in, two_courses, visit
from tests.databases import SERVER
from tests.web.addresses import ALONE_OR_NOT, SANE_PARTS, addressed, routes

pytestmark = pytest.mark.drawn
# What no column, no file system and no number can hold.
NUL, BEYOND_64_BITS, BEYOND_32_BITS = "a\0b.png", str(2**63), str(2**31)
DIGITS, LONG, LINES = "9" * 5000, "x" * 5000 + ".png", "a\nforged line"
BIG = (BEYOND_64_BITS, BEYOND_32_BITS, DIGITS)
VALUES = (NUL, *BIG)
# A value that each name takes, so that one bad value among good ones is what is read.
SANE = {
    **SANE_PARTS,
    "rating": "3",
    "token": "t",
    "since": "0",
    "given": "0",
    "seed": "1",
    "aside": "yes",
    "wanted": "yes",
    "review": "1",
    "words": "odd",
    "word": "no",
    "pick": "mixed",
    "count": "3",
    "hidden": "yes",
    "code": "abc",
    "leave": "yes",
    "what": "deck",
    "deck": "mine",
    "q": "memory",
    "section": "",
    "theme": "dark",
    "exam_day": "",
    "minutes_a_day": "30",
    "retention": "90",
    "target": "70",
    "zone": "UTC",
    "answer": "1",
    "unit": "GB",
    "place.a": "1",
    "age": "0",
    "go": "next",
    "move": "",
    "factor": "1",
    "strike": "a",
    "model": "70B",
    "context": "quiz",
    "start": "0",
    "revision": "r",
    "calendar": "yes",
}


def sent_names(form: type[BaseModel]) -> set[str]:
    """The names of the fields as they are sent."""
    return {field.alias or name for name, field in form.model_fields.items()}


ANSWERED = {*HiddenQuestionFields.model_fields, "answer", "unit", "place.a"}
FIELDS = {
    "quiz": {*ANSWERED, *PracticeForm.model_fields, "words"},
    "authoring": {*ANSWERED, *ProblemFilterForm.model_fields, *StatisticsTableForm.model_fields},
    "concepts": {*NoteForm.model_fields},
    "flashcards": {
        *(*sent_names(CardPagesQuery), *sent_names(RatingForm), *UndoForm.model_fields),
        *(*SuspensionForm.model_fields, *CardWantedForm.model_fields),
    },
    "settings": {*SettingsForm.model_fields, "what", "deck", "word", "leave", "theme"},
    "exams": {"answer", "place.a", "since", "age", "go", "move", "factor", "target"},
    "calculators": {"model", "context_length", "batch"},
    "api": {"model", "context_length", "topic"},
}
ANY = {"q", "code", "topic", "kept"}
assert ReportForm.model_fields.keys() <= {*ANSWERED, "words"}
ELSEWHERE = "elsewhere"
each_room = pytest.mark.parametrize("room", [*FIELDS, ELSEWHERE])


def room_of(template: str) -> str:
    room = template.split("/")[1]
    return room if room in FIELDS else ELSEWHERE


def fields_of(template: str) -> list[str]:
    return sorted(FIELDS.get(room_of(template), ANY))


@pytest.fixture(params=ALONE_OR_NOT)
def below(request: pytest.FixtureRequest) -> str:
    """What stands before every address: nothing, or the name of the course."""
    return str(request.param)


@pytest.fixture
def app(below: str, settings: Settings, clock: Clock, live_course: LiveCourse) -> Iterator[FastAPI]:
    """The tiny course on a server of its own, or one of two on a server."""
    if below:
        content = two_courses(settings.data / "content")
        settings = settings.model_copy(update={"content": content})
    app = create_app(settings, clock, None if below else live_course)
    yield app
    app.state.engine.dispose()


@pytest.fixture
def rosa(app: FastAPI, below: str) -> Iterator[TestClient]:
    """A learner whose addresses are all of this course."""
    with visit(app, f"http://testserver{below}") as client:
        client.get("/unreachable")
        yield client


@pytest.fixture
def known(rosa: TestClient) -> TestClient:
    """A learner who has begun everything that can be begun."""
    let_in(rosa)
    rosa.post("/quiz/runs", data={"pick": "mixed", "count": "3"})
    rosa.post("/exams/short/sittings", data={"factor": "1", "token": "s"})
    rosa.post("/quiz/weights/w-bf16-70b/reports", data={"words": "odd"})
    rosa.post("/flashcards/w-c-bf16/reviews", data={"rating": "3", "token": "t"})
    return rosa


Asked = tuple[str, str, dict[str, str]]


def as_one(client: TestClient) -> TestClient:
    """The same learner at every request, whatever an answer says."""
    cookies = "; ".join(f"{k}={v}" for k, v in client.cookies.items())
    client.cookies.clear()
    client.headers["cookie"] = cookies
    return client


def faults(client: TestClient, asked: Iterable[Asked]) -> list[Asked]:
    """What was answered with a fault, each asked by the same learner."""
    one = as_one(client)
    return [
        (method, address[:80], fields)
        for method, address, fields in asked
        if one.request(method, address, data=fields or None).status_code >= 500
    ]


def tried(nth: int, names: list[str], *values: str) -> list[tuple[str, str]]:
    """What the nth route is sent: each name with a value in turn; `make drills`: all.

    NUL, refused under any name, comes with the first.
    """
    first = [(name, NUL) for name in names[:1]]
    every = [(name, value) for name in names for value in values]
    return first + (every if FACTOR > 1 else every[nth % len(values) :: len(values)])


def test_no_part_of_an_address_is_a_fault(app: FastAPI, known: TestClient):
    """Some parts with NUL or some of the other values in turn; `make drills`: all."""
    hostile, step = (*BIG, "-1", LONG, LINES), 1 if FACTOR > 1 else 3
    asked = [
        (method, addressed(template, **{name: value}), {})
        for nth, (method, template) in enumerate(routes(app))
        for name in SANE
        if f"{{{name}}}" in template
        for value in (NUL, *hostile[nth % step :: step])
    ]

    assert len(asked) > (150 if FACTOR == 1 else 300)
    assert faults(known, sample(asked, 60, "parts")) == []


def queries(app: FastAPI, room: str) -> list[tuple[int, str, list[str]]]:
    """Every route of a room that is read, by its number, with what it may be asked."""
    return [
        (nth, addressed(template), fields_of(template))
        for nth, (method, template) in enumerate(routes(app))
        if method == "GET" and room_of(template) == room
    ]


def faults_of_query(
    client: TestClient, address: str, names: list[str], value: str, plain: int
) -> list[Asked]:
    """The faults of a query with one bad value under many names, all at once.

    Where it is answered, or as an address is that is nowhere (`plain`), none of the
    names was minded; where it is refused, one may hide another, and each half is asked
    on its own.
    """
    fields = dict.fromkeys(names, value)
    status = client.get(f"{address}?{urlencode(fields)}").status_code
    if status >= 500:
        return [("GET", address, fields)]
    if status < 400 or status == plain or len(names) == 1:
        return []
    half = len(names) // 2
    return [
        *faults_of_query(client, address, names[:half], value, plain),
        *faults_of_query(client, address, names[half:], value, plain),
    ]


def sent(app: FastAPI, room: str) -> list[Asked]:
    """Every route of a room that takes a form, with one bad value among good ones."""
    return [
        ("POST", addressed(template), {**SANE, name: value})
        for nth, (method, template) in enumerate(routes(app))
        if method == "POST" and room_of(template) == room
        for name, value in tried(nth, fields_of(template), *BIG)
    ]


def test_every_room_is_asked_a_lot(app: FastAPI):
    rooms = (*FIELDS, ELSEWHERE)

    assert sum(len(names) for r in rooms for _, _, names in queries(app, r)) > 500
    assert sum(len(sent(app, room)) for room in rooms) > (400 if FACTOR == 1 else 1000)


@each_room
def test_no_query_is_a_fault(app: FastAPI, known: TestClient, room: str):
    """Of some routes all names at once where no query is refused.

    Where it is, and in `make drills` of all routes, each is tried alone.
    """
    one, found = as_one(known), []
    asked = queries(app, room)
    for nth, address, names in sample(asked, 2 + len(asked) // 8, room):
        plain = one.get(address).status_code if FACTOR == 1 else 422
        if plain != 422:
            bad = [(names[:1], NUL), (names, BEYOND_64_BITS)]
            # No query is read that is longer than 16 KiB; of what is, a third in turn.
            some = [(names[i : i + 3], DIGITS) for i in range(0, len(names), 3)]
            bad += some[nth % min(3, len(some)) :: 3]
        else:
            each = tried(nth, names, BEYOND_64_BITS, DIGITS)
            bad = [([name], value) for name, value in each]
        for some, value in bad:
            found += faults_of_query(one, address, some, value, plain)

    assert found == []


@each_room
def test_no_field_is_a_fault(app: FastAPI, known: TestClient, room: str):
    every = sent(app, room)

    assert faults(known, sample(every, 4 + len(every) // 8, room)) == []


@pytest.mark.parametrize("number", [BEYOND_32_BITS, BEYOND_64_BITS, DIGITS, "0", "-1"])
def test_a_number_that_no_row_has_is_not_found(rosa: TestClient, number: str):
    for address in (f"/exams/sittings/{number}/report", f"/quiz/runs/{number}"):
        assert rosa.get(address).status_code == 404, address


def test_nul_in_an_address_is_not_found(rosa: TestClient):
    assert rosa.get("/concepts/weights/files/a%00b.png").status_code == 404


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"name=a%00b", "application/x-www-form-urlencoded"),
        (b"name=a\0b", "application/x-www-form-urlencoded; charset=utf-8"),
    ],
)
def test_nul_in_a_form_is_refused_in_words(
    rosa: TestClient, session: Session, body: bytes, kind: str
):
    answer = rosa.post("/settings", content=body, headers={"content-type": kind})

    assert answer.status_code == 422
    assert "holds the character NUL" in answer.text
    assert session.exec(select(Learner.name)).all() == []


def test_nul_between_two_pieces_of_a_form_is_refused(rosa: TestClient):
    def pieces():
        yield b"name=a%0"
        yield b"0b"

    kind = {"content-type": "application/x-www-form-urlencoded"}

    assert rosa.post("/settings", content=pieces(), headers=kind).status_code == 422


def test_nul_in_a_query_is_refused_in_words(rosa: TestClient):
    answer = rosa.get("/search?q=a%00b")

    assert answer.status_code == 422
    assert "holds the character NUL" in answer.text


def test_nul_that_only_the_database_sees_is_refused_by_it(rosa: TestClient):
    answer = rosa.post("/settings", files={"name": (None, "a\0b")})

    assert answer.status_code == (422 if SERVER else 303)  # SQLite can hold it


def test_half_a_character_is_refused_in_words(rosa: TestClient):
    kind = {"content-type": "multipart/form-data; boundary=x; charset=unicode_escape"}
    part = b'--x\r\nContent-Disposition: form-data; name="name"\r\n\r\n\\ud800\r\n--x--'

    answer = rosa.post("/settings", content=part, headers=kind)

    assert answer.status_code == 422
    assert "half a character" in answer.text or "cannot be saved" in answer.text


def test_what_the_database_has_no_room_for_is_refused_by_it(session: Session):
    session.add(Learner(key="k", created_at=2**63))

    with pytest.raises(InvalidInputError, match="cannot be saved"):
        session.flush()


def test_a_number_of_thousands_of_digits_is_named_in_short(rosa: TestClient):
    answer = rosa.post("/settings", data={**SANE, "minutes_a_day": DIGITS})

    assert answer.status_code == 422
    assert f"you entered “{'9' * 40}…”." in answer.text


@pytest.mark.parametrize("years", [-20, 20])
def test_no_page_minds_a_clock_that_was_set(known: TestClient, clock, years: int):
    clock.now = clock.now.replace(year=clock.now.year + years)

    for page in ("/", "/progress", "/plan", "/flashcards", "/quiz", "/settings/export"):
        assert known.get(page).status_code == 200, page
