"""A full server takes no more files and cards, and goes on saving everything else."""

import datetime as dt
import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import event
from sqlmodel import Session, select

from app.content.live_courses import LiveCourse
from app.database.quotas import LEAST_FREE, DailyByteQuota, StorageLimit
from app.database.tables import Attempt, OwnCard, Review
from app.errors import QuotaExceededError
from app.import_export.card_import_store import ImportedCard, estimate_stored_bytes
from app.main import create_app
from app.settings import Settings
from tests.conftest import Clock, visit
from tests.databases import ABOUT_SQLITE
from tests.import_export.package import Made, package
from tests.import_export.test_cards_out import review


@pytest.fixture
def full(settings: Settings, clock, live_course: LiveCourse) -> FastAPI:
    """A server whose database has reached its limit."""
    return create_app(settings.model_copy(update={"max_data_gb": 1e-6}), clock, live_course)


@pytest.fixture
def learner(full: FastAPI) -> Iterator[TestClient]:
    with visit(full) as client:
        client.get("/unreachable")
        yield client


def bring(client: TestClient):
    files = {"file": ("deck.apkg", package(Made("g1", ("Front", "Back"))))}
    return client.post("/settings/cards", files=files)


def write(client: TestClient):
    return client.post("/flashcards/own", data={"front": "Front", "back": "Back"})


@pytest.mark.parametrize("bring_cards", [bring, write])
def test_a_full_server_takes_no_more_cards_and_says_what_the_host_can_do(
    learner: TestClient, session: Session, bring_cards
):
    answer = bring_cards(learner)

    assert answer.status_code == 507
    assert "This server is full: its database has reached the limit" in answer.text
    assert "Its host can raise the limit (HEADROOM_MAX_DATA_GB)." in answer.text
    assert "Something is broken" not in answer.text
    assert session.exec(select(OwnCard)).all() == []


def test_answers_grades_and_settings_are_saved_on_a_full_server(
    learner: TestClient, session: Session
):
    review(learner, "w-c-bf16", 3)
    question = "/quiz/weights/w-bf16-70b"
    option = re.search(r'name="answer" value="(\w+)"', learner.get(question).text)
    form = {"token": uuid.uuid4().hex, "answer": option[1]}
    answered = learner.post(f"{question}/attempts", data=form)
    saved = learner.post("/settings", data={"name": "Rosa"})

    assert (answered.status_code, saved.status_code) == (303, 303)
    assert "Rosa" in learner.get("/settings").text
    assert len(session.exec(select(Attempt)).all()) == 1
    assert len(session.exec(select(Review)).all()) == 1
    assert learner.get("/settings/export").status_code == 200


@pytest.fixture
def nearly_full(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> FastAPI:
    """A server whose database has nine tenths of its limit."""
    monkeypatch.setattr(app.state.storage, "_max_gb", 10)
    monkeypatch.setattr(app.state.storage, "read_database_bytes", lambda: 9_000_000_000)
    return app


@pytest.mark.parametrize("bring_cards", [bring, write])
def test_the_last_tenth_is_kept_for_learners_who_began_a_day_ago(
    nearly_full: FastAPI, clock: Clock, bring_cards
):
    with visit(nearly_full) as rosa, visit(nearly_full) as newcomer:
        rosa.get("/settings")
        rosa.post("/settings", data={"name": "Rosa"})
        clock.now += dt.timedelta(hours=25)
        newcomer.get("/settings")
        newcomer.post("/settings", data={"name": "Milo"})
        old, new = bring_cards(rosa), bring_cards(newcomer)

    assert old.status_code == 303
    assert new.status_code == 507
    assert "kept for learners who began more than a day ago" in new.text
    assert "Front" in new.text or bring_cards is bring  # the form comes back


def test_an_address_adds_so_much_in_a_day(settings: Settings, clock, live_course: LiveCourse):
    few = settings.model_copy(update={"client_data_mb": 0.0001})
    app = create_app(few, clock, live_course)
    now = 10 * 86_400.0
    app.state.daily_quota._clock = lambda: now
    statuses, answer = [], None
    for bring_cards in (bring, write, bring):
        with visit(app) as client:
            client.get("/settings")
            answer = bring_cards(client)
            statuses.append(answer.status_code)
            assert client.post("/settings", data={"name": "A"}).status_code == 303
    now += 86_400
    with visit(app) as client:
        assert write(client).status_code == 303

    assert statuses == [303, 429, 429]
    assert answer.headers["retry-after"] == "86400"
    assert "Add the rest tomorrow." in answer.text


def test_an_address_is_counted_for_itself_and_day_by_day():
    now = 0.0
    quota = DailyByteQuota(1000, lambda: now)
    quota.add_stored_bytes("a", 600)
    quota.raise_if_used_up("a")
    quota.add_stored_bytes("a", 600)
    with pytest.raises(QuotaExceededError):
        quota.raise_if_used_up("a")
    quota.raise_if_used_up("b")
    now = 86_400.0
    quota.raise_if_used_up("a")


def test_two_classes_behind_one_address_send_the_largest_files(settings: Settings):
    quota = DailyByteQuota(settings.client_data_mb * 1e6)
    pictures = {"a.png": bytes(20_000_000)}
    largest = ImportedCard("own:1", "", "", "", picture_by_name=pictures)
    for _ in range(60):
        quota.raise_if_used_up("a")
        quota.add_stored_bytes("a", estimate_stored_bytes([largest]))


def test_without_a_limit_the_size_is_not_asked(app: FastAPI, monkeypatch):
    limit = StorageLimit(app.state.engine, Path(), 0)
    monkeypatch.setattr(limit, "read_database_bytes", lambda: 1 / 0)

    limit.raise_if_full_for_cards()


@ABOUT_SQLITE
def test_the_log_beside_a_file_counts(app: FastAPI):
    file = Path(app.state.engine.url.database)
    before = app.state.storage.read_database_bytes()

    with Path(f"{file}-wal").open("ab") as log:
        log.truncate(5_000_000)

    assert app.state.storage.read_database_bytes() >= before + 4_000_000


@pytest.mark.parametrize(("free", "refused"), [(LEAST_FREE - 1, True), (LEAST_FREE, False)])
def test_a_disk_with_little_room_is_left_to_answers(
    rosa: TestClient, monkeypatch, free: int, refused: bool
):
    usage = shutil.disk_usage("/")._replace(free=free)
    monkeypatch.setattr("app.database.quotas.shutil.disk_usage", lambda _: usage)

    brought, written, archive = bring(rosa), write(rosa), rosa.get("/settings/export")
    saved = rosa.post("/settings", data={"name": "Rosa"})

    assert saved.status_code == 303
    taken = [answer.status_code == 507 for answer in (brought, written, archive)]
    assert taken == [refused] * 3
    if refused:
        assert "its disk has too little room" in brought.text


def test_asking_costs_nothing_of_the_database(app: FastAPI):
    """With SQLite no question at all, with a server one in half a minute."""
    asked = []
    event.listen(app.state.engine, "before_cursor_execute", lambda *_: asked.append(1))

    for _ in range(20):
        app.state.storage.raise_if_full_for_cards()

    assert len(asked) <= 1


def test_who_watches_is_told(app: FastAPI, full: FastAPI):
    with visit(full) as client:
        ready = client.get("/readyz")
    with visit(app) as client:
        assert "full for imports" not in client.get("/readyz").text

    assert ready.status_code == 200
    assert "full for imports" in ready.text
