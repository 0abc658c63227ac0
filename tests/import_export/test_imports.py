"""An import in slices: beside others, to be canceled, and to be taken up again."""

import asyncio
import dataclasses
import datetime as dt
import io
from collections.abc import Callable

import httpx
import pytest
from fastapi import FastAPI
from sqlmodel import Session, select
from starlette.exceptions import HTTPException

from app.accounts.current_learner import LearnerProfile
from app.accounts.learner_store import erase_person_in_all_courses, update_learner_columns
from app.content.live_courses import LiveCourse
from app.database.engine import WRITE_OPTIONS, create_write_session_opener, make_engine
from app.database.quotas import CARD_LOG, OWN_CARDS
from app.database.tables import CardImport, CardStateRow, OwnCard, Review
from app.import_export.anki.package_reader import read_package
from app.import_export.anki_package_import import (
    MAX_FILES_AT_ONCE,
    BackgroundCardImports,
    match_package_with_course,
)
from app.import_export.card_import_job_store import NewImport, save_import_start_unless_running
from app.import_export.card_import_store import (
    ImportedCard,
    ImportedLogEntry,
    batch_cards_by_write_cost,
    import_cards,
)
from app.main import create_app
from app.settings import Settings
from tests.conftest import Clock
from tests.databases import ABOUT_SQLITE
from tests.import_export.package import Made, package
from tests.import_export.test_cards_in import (
    DAY,
    NOON,
    bring,
    everything,
    learners,
    words,
)
from tests.import_export.test_cards_out import review
from tests.loops import outcome
from tests.spaced_repetition.rebuilding import rebuild_days

CARDS, GRADES = 120, 9
EVERY = CARDS * GRADES


def deck(cards: int = CARDS) -> bytes:
    """A package whose every card has some grades."""
    notes = [
        Made(
            f"g{number}",
            (f"Front {number}", "Back"),
            log=tuple(
                (0, NOON - (40 - 3 * day) * DAY + number * 2000, 1 + day % 4, 0, 4000)
                for day in range(GRADES)
            ),
        )
        for number in range(cards)
    ]
    return package(*notes)


class Desk:
    """A learner whose import is written by hand, slice by slice."""

    def __init__(self, app: FastAPI, session: Session, course, clock: Clock) -> None:
        self.app, self.clock = app, clock
        self.learner = LearnerProfile("", id=learners(session)[0])
        self.arrivals = match_package_with_course(
            read_package(io.BytesIO(deck())), course
        ).cards_to_import

    def begin(self) -> int:
        with Session(self.app.state.engine) as db:
            db.connection(execution_options=WRITE_OPTIONS)
            batch = NewImport("deck.apkg", len(self.arrivals), {}, {}, 0)
            begun = save_import_start_unless_running(db, self.learner.id, batch, self.clock())
            db.commit()
        assert begun is not None
        return begun

    def write(self, at_slice: Callable[[int], None]) -> None:
        """Import everything; `at_slice` is called before each slice."""
        begun, before = self.begin(), iter(range(1000))

        def clock() -> dt.datetime:
            at_slice(next(before))
            return self.clock()

        async def run() -> None:
            imports = BackgroundCardImports(
                create_write_session_opener(self.app.state.engine), clock
            )
            async with imports.lifespan(), imports.reserve_file_slot() as room:
                work = self.learner, begun, self.arrivals, room.pop_all()
                await (await imports.start_and_wait_briefly(*work))

        outcome(run())


@pytest.fixture
def desk(app, rosa, session, course, clock) -> Desk:
    review(rosa, "w-c-bf16", 3)
    return Desk(app, session, course, clock)


def test_an_import_ends_where_cards_that_were_typed_meanwhile_took_its_room(
    desk: Desk, rosa, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = dataclasses.replace(OWN_CARDS, max_rows=CARDS)
    for module in ("import_export.card_import_store", "spaced_repetition.added_cards"):
        monkeypatch.setattr(f"app.{module}.OWN_CARDS", few)

    def type_one(number: int) -> None:
        if number == 1:
            card = {"card": "own:0", "front": "F", "back": "B", "at": 0}
            with Session(desk.app.state.engine) as db:
                db.connection(execution_options=WRITE_OPTIONS)
                db.add(OwnCard(learner_id=desk.learner.id, **card))
                db.commit()

    desk.write(type_one)

    session.rollback()
    assert session.exec(select(CardImport)).one().state == "full"
    assert counted(session)[0] <= CARDS
    shown = words(rosa.get("/settings/cards/import").text)
    assert "you have as many cards of your own as are kept" in shown


def test_files_do_not_fill_the_log_of_a_card_without_end(
    rosa, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = dataclasses.replace(CARD_LOG, max_rows=12)
    monkeypatch.setattr("app.import_export.card_import_store.CARD_LOG", few)

    def log(first: int) -> tuple[tuple[int, int, int, int, int], ...]:
        days = range(first, first + 8)
        return tuple((0, NOON - day * DAY, 3, 0, 4000) for day in days)

    bring(rosa, package(Made("g", ("F", "B"), log=log(20))))
    said = bring(rosa, package(Made("g", ("F", "B"), log=log(40))))

    assert "4 grades carried" in said
    assert "4 beyond 1,000 entries in the log of one card" in said
    assert counted(session) == (1, 12)


def counted(session: Session) -> tuple[int, int]:
    session.rollback()  # to see what was written meanwhile
    own = session.exec(select(OwnCard)).all()
    brought = session.exec(select(Review).where(Review.card.like("own:%"))).all()
    return len(own), len(brought)


def test_pictures_make_slices_short_as_well() -> None:
    cards = [
        ImportedCard(f"own:{n}", f"own:{n}", "", str(n), picture_by_name={f"{n}.png": bytes(10**6)})
        for n in range(9)
    ]

    assert [len(part) for part in batch_cards_by_write_cost(cards)] == [2, 2, 2, 2, 1]


def test_a_file_is_written_in_slices_that_are_short() -> None:
    cards = [
        ImportedCard(
            f"own:{n}", f"own:{n}", "", str(n), tuple(ImportedLogEntry(m, 3, 0) for m in range(n))
        )
        for n in range(400)
    ]

    parts = list(batch_cards_by_write_cost(cards))

    assert [card for part in parts for card in part] == cards
    assert all(
        sum(len(card.log_entries) for card in part) <= 300 or len(part) == 1 for part in parts
    )
    assert all(len(part) <= 100 for part in parts)


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=ABOUT_SQLITE)])
def test_others_write_between_two_slices(app, settings, desk, session, processes: int) -> None:
    seen: list[tuple[int, int]] = []
    engine = app.state.engine if processes == 1 else make_engine(settings.database_url_or_default)

    def somebody_writes(_number: int) -> None:
        with Session(engine) as db:
            db.connection(execution_options=WRITE_OPTIONS)
            update_learner_columns(db, desk.learner.id, {"name": f"after {len(seen)}"})
            db.commit()
        seen.append(counted(session))

    desk.write(somebody_writes)

    assert seen[0] == (0, 0)
    assert len(seen) > 3
    assert [own for own, _ in seen] == sorted({own for own, _ in seen})
    assert counted(session) == (CARDS, EVERY)


def test_every_slice_leaves_memory_and_days_as_the_log_has_them(desk, session) -> None:
    for part in batch_cards_by_write_cost(desk.arrivals):
        import_cards(session, desk.learner, part, desk.clock())
        session.commit()
        before = everything(session, desk.learner.id)
        rebuild_days(session, desk.learner.id)
        session.commit()

        assert everything(session, desk.learner.id) == before
        cards = {card.card_id for card in part}
        held = session.exec(select(CardStateRow).where(CardStateRow.card.in_(cards))).all()
        assert {row.reviews for row in held} == {GRADES}


def test_what_was_broken_off_is_completed_by_the_same_file(rosa, desk, session) -> None:
    for part in list(batch_cards_by_write_cost(desk.arrivals))[:2]:
        import_cards(session, desk.learner, part, desk.clock())
    session.commit()
    own, grades = counted(session)
    assert 0 < own < CARDS

    said = bring(rosa, deck())

    assert f"{CARDS - own} new cards, 0 cards changed" in said
    assert f"{EVERY - grades:,} grades carried." in said
    assert counted(session) == (CARDS, EVERY)
    before = everything(session, desk.learner.id)
    assert "0 new cards, 0 cards changed, 0 grades carried." in bring(rosa, deck())
    assert everything(session, desk.learner.id) == before


def test_a_canceled_import_stops_after_its_slice_and_says_how_far_it_came(
    rosa, desk, session
) -> None:
    def cancel(number: int) -> None:
        if number == 2:
            answer = rosa.post("/settings/cards/import/cancellation")
            assert answer.headers["location"] == "/settings/cards/import"

    desk.write(cancel)

    own, _ = counted(session)
    assert 0 < own < CARDS
    said = words(rosa.get("/settings/cards/import").text)
    assert f"You canceled the import of “deck.apkg” after {own} of 120 cards." in said
    assert "Import the same file again to get the rest, nothing comes twice" in said
    assert f"Networks::RDMA {own}" in words(rosa.get("/settings/cards").text)


def test_nothing_is_written_for_a_learner_who_was_erased(app, desk, session) -> None:
    def erase_them(number: int) -> None:
        if number == 2:
            with Session(app.state.engine) as db:
                db.connection(execution_options=WRITE_OPTIONS)
                erase_person_in_all_courses(db, desk.learner.id)
                db.commit()

    desk.write(erase_them)

    assert counted(session) == (0, 0)
    assert session.exec(select(CardImport)).all() == []


def test_the_end_of_the_server_waits_for_a_slice_and_not_for_the_file(rosa, desk, session) -> None:
    async def run() -> None:
        begun, at_work = desk.begin(), asyncio.Event()

        def clock() -> dt.datetime:
            at_work.set()
            return desk.clock()

        imports = BackgroundCardImports(create_write_session_opener(desk.app.state.engine), clock)
        async with imports.lifespan(), imports.reserve_file_slot() as room:
            job = imports.start_and_wait_briefly(desk.learner, begun, desk.arrivals, room.pop_all())
            writing = asyncio.create_task(job)
            await at_work.wait()
        await writing

    outcome(run())

    own, grades = counted(session)
    assert 0 < own < CARDS
    assert grades == own * GRADES
    said = words(rosa.get("/settings/cards/import").text)
    assert f"The server was stopped while it imported “deck.apkg”, after {own} of" in said


def test_a_page_says_how_far_an_import_is_and_how_to_stop_it(rosa, desk) -> None:
    desk.begin()

    shown = rosa.get("/settings/cards/import").text
    said = words(shown)

    assert "Importing 0 of 120 cards of “deck.apkg” are written." in said
    assert "Look again" in said
    assert 'action="/settings/cards/import/cancellation"' in shown
    assert rosa.get("/settings/cards/import/progress").status_code == 200


def test_an_import_that_went_down_with_its_server_says_so(rosa, desk, clock) -> None:
    desk.begin()
    clock.tick(minutes=2)

    said = words(rosa.get("/settings/cards/import").text)

    assert "The server was stopped while it imported “deck.apkg”, after 0 of" in said
    assert f"{CARDS} new cards" in bring(rosa, deck())


def test_a_second_file_waits_for_the_first(rosa, desk) -> None:
    desk.begin()

    answer = rosa.post("/settings/cards", files={"file": ("d.apkg", deck(1))})

    assert answer.status_code == 409
    assert "Your last file is still being imported." in words(answer.text)
    rosa.post("/settings/cards/import/cancellation")
    assert "1 new card" in bring(rosa, deck(1))


def test_more_files_than_can_be_read_at_once_are_sent_away(app) -> None:
    async def run() -> None:
        imports = BackgroundCardImports(
            create_write_session_opener(app.state.engine), app.state.clock, max_wait_seconds=0.05
        )
        rooms = [imports.reserve_file_slot() for _ in range(MAX_FILES_AT_ONCE)]
        for room in rooms:
            await room.__aenter__()
        with pytest.raises(HTTPException, match="Other files") as refused:
            async with imports.reserve_file_slot():
                pass
        assert refused.value.status_code == 503
        assert refused.value.headers == {"retry-after": "60"}
        for room in rooms:
            await room.__aexit__(None, None, None)
        async with imports.reserve_file_slot():
            pass

    outcome(run())


def test_a_class_behind_one_address_imports_its_files_at_once(
    settings: Settings, clock: Clock, live_course: LiveCourse, session: Session
) -> None:
    app = create_app(settings.model_copy(update={"rate_imports": "off"}), clock, live_course)
    content = deck(1)

    async def send() -> int:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://testserver", timeout=60
        ) as learner:
            file = ("deck.apkg", content)
            return (await learner.post("/settings/cards", files={"file": file})).status_code

    async def all_at_once() -> list[int]:
        return await asyncio.gather(*(send() for _ in range(30)))

    assert outcome(all_at_once()) == [303] * 30
    assert counted(session)[0] == 30


def test_nobody_sees_the_import_of_another(rosa, milo, desk) -> None:
    desk.begin()

    assert milo.get("/settings/cards/import").headers["location"] == "/settings/cards"
    assert milo.get("/settings/cards/import/progress").status_code == 404
    milo.post("/settings/cards/import/cancellation")
    assert "Look again" in rosa.get("/settings/cards/import").text


def test_a_deck_of_many_slices_goes_as_a_whole(rosa, desk, session) -> None:
    before = everything(session, desk.learner.id)
    bring(rosa, deck())

    rosa.post("/settings/cards/removal", data={"what": "deck", "deck": "Networks::RDMA"})

    assert everything(session, desk.learner.id) == before


def test_new_cards_of_all_slices_begin_a_few_on_each_day(rosa, session) -> None:
    notes = [Made(f"n{n}", (f"Front {n}", "Back")) for n in range(250)]

    bring(rosa, package(*notes))

    days = sorted(row.due_day for row in session.exec(select(CardStateRow)))
    most = max(days.count(day) for day in set(days))
    assert len(set(days)) > 10
    assert all(days.count(day) == most for day in sorted(set(days))[1:-1])
