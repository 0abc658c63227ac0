"""How a body is taken in: whole, in time, and not too much of it."""

import asyncio
import contextlib
import tracemalloc
from collections.abc import Iterable

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Message

from app.web.request_limits import BodyLimits, BodyReceiver
from tests.loops import outcome

FORM = {b"content-length": b"6"}
FILE = 2 * 1024 * 1024


def sender(pieces: Iterable[bytes], *, stops: bool = False, leaves: bool = False):
    """What a client sends; `stops` in the middle, or `leaves`."""
    messages: list[Message] = [
        {"type": "http.request", "body": piece, "more_body": True} for piece in pieces
    ]
    if leaves:
        messages.append({"type": "http.disconnect"})
    elif not stops:
        messages[-1]["more_body"] = False

    async def receive() -> Message:
        if not messages:
            await asyncio.Event().wait()
        return messages.pop(0)

    return receive


async def taken(
    intake: BodyReceiver, receive, headers=FORM, room: int = 100, client: str = "someone"
) -> bytes:
    """What the app reads."""
    body = b""
    async with intake.buffer_whole_body(receive, headers, room, client) as whole:
        while True:
            message = await whole()
            body += message["body"]
            if not message["more_body"]:
                return body


def test_a_body_in_pieces_arrives_as_one():
    received = taken(BodyReceiver(BodyLimits()), sender([b"a=", b"1&", b"b="]))

    assert outcome(received) == b"a=1&b="


def test_a_large_body_arrives_unchanged():
    pieces = [bytes([n % 251]) * 100_000 for n in range(20)]
    headers = {b"content-length": b"2000000"}

    received = taken(BodyReceiver(BodyLimits()), sender(pieces), headers, FILE)

    assert outcome(received) == b"".join(pieces)


def test_who_stops_in_the_middle_is_told_so():
    intake = BodyReceiver(BodyLimits(base_seconds=0.01))

    with pytest.raises(HTTPException) as refused:
        outcome(taken(intake, sender([b"a="], stops=True)))

    assert refused.value.status_code == 408
    assert "Send it again." in refused.value.detail


def test_what_has_come_earns_time_for_the_rest():
    async def slowly():
        for _ in range(5):
            await asyncio.sleep(0.02)
            yield b"x" * 1000

    stream = slowly()

    async def receive() -> Message:
        try:
            piece = await anext(stream)
        except StopAsyncIteration:
            return {"type": "http.request", "body": b"", "more_body": False}
        return {"type": "http.request", "body": piece, "more_body": True}

    intake = BodyReceiver(BodyLimits(base_seconds=30, min_bytes_a_second=10))

    assert len(outcome(taken(intake, receive, FORM, 10_000))) == 5000


def test_who_goes_away_is_waited_for_no_longer():
    with pytest.raises(ClientDisconnect):
        outcome(taken(BodyReceiver(BodyLimits()), sender([b"a="], leaves=True)))


@pytest.mark.parametrize("length", [b"101", b"9" * 40, b"-1", b"1e3", b"\xb2"])
def test_an_announced_length_has_to_fit(length: bytes):
    with pytest.raises(HTTPException) as refused:
        outcome(taken(BodyReceiver(BodyLimits()), sender([b""]), {b"content-length": length}))

    assert refused.value.status_code == 413


def test_a_body_that_grows_past_its_room_is_refused():
    headers = {b"transfer-encoding": b"chunked"}

    with pytest.raises(HTTPException) as refused:
        outcome(taken(BodyReceiver(BodyLimits()), sender([b"x" * 60] * 2), headers))

    assert refused.value.status_code == 413


LARGE = {b"content-length": b"1000000"}


async def settle() -> None:
    """Let everything happen that waits for nothing else."""
    for _ in range(10):
        await asyncio.sleep(0)


class Senders:
    """Clients that send a file each, and hold their place until they are told."""

    def __init__(self, intake: BodyReceiver) -> None:
        self._intake = intake
        self.inside: list[str] = []

    async def send(self, client: str, done: asyncio.Event) -> None:
        receive = sender([b"x"])
        async with self._intake.buffer_whole_body(receive, LARGE, FILE, client):
            self.inside.append(client)
            await done.wait()


def test_one_client_sends_few_files_at_a_time_and_the_next_waits():
    async def run() -> None:
        senders, done = (
            Senders(BodyReceiver(BodyLimits(max_large_bodies_per_client=1))),
            asyncio.Event(),
        )
        tasks = [
            asyncio.create_task(senders.send(client, done))
            for client in ("someone", "someone", "another")
        ]
        await settle()
        assert senders.inside == ["someone", "another"]

        done.set()
        await asyncio.gather(*tasks)
        assert senders.inside == ["someone", "another", "someone"]

    outcome(run())


def test_a_client_without_a_place_comes_before_one_that_has_some():
    async def run() -> None:
        senders = Senders(
            BodyReceiver(BodyLimits(max_large_bodies=3, max_large_bodies_per_client=2))
        )
        ends = [asyncio.Event() for _ in range(6)]
        clients = ["a", "a", "b", "a", "b", "late"]
        tasks = [
            asyncio.create_task(senders.send(client, end))
            for client, end in zip(clients, ends, strict=True)
        ]
        await settle()
        assert senders.inside == ["a", "a", "b"]

        ends[0].set()
        await settle()
        assert senders.inside == ["a", "a", "b", "late"]

        for end in ends:
            end.set()
        await asyncio.gather(*tasks)

    outcome(run())


def test_who_waits_in_vain_for_a_place_is_told_so():
    intake = BodyReceiver(
        BodyLimits(base_seconds=0.01, min_bytes_a_second=10**9, max_large_bodies=0)
    )

    with pytest.raises(HTTPException) as refused:
        outcome(taken(intake, sender([b"x"]), LARGE, FILE))

    assert refused.value.status_code == 503
    assert refused.value.headers
    assert refused.value.headers["retry-after"] == "60"


def test_a_place_is_waited_for_as_long_as_the_largest_file_may_take():
    asked: list[int] = []

    class Noted(BodyLimits):
        def max_seconds_for_size(self, size: int) -> float:
            asked.append(size)
            return 0.01

    with pytest.raises(HTTPException, match="503"):
        outcome(taken(BodyReceiver(Noted(max_large_bodies=0)), sender([b"x"]), LARGE, FILE))

    assert asked == [FILE]


def test_the_place_of_somebody_who_gave_up_goes_to_the_next():
    async def run() -> bytes:
        intake = BodyReceiver(BodyLimits(max_large_bodies=1))
        senders, done = Senders(intake), asyncio.Event()
        first = asyncio.create_task(senders.send("a", done))
        await settle()
        gone = asyncio.create_task(senders.send("b", done))
        last = asyncio.create_task(taken(intake, sender([b"x"]), LARGE, FILE))
        await settle()

        done.set()
        await asyncio.wait({first})  # b has been given the place, and not been told
        gone.cancel()
        body = await last
        with contextlib.suppress(asyncio.CancelledError):
            await gone
        return body

    assert outcome(run()) == b"x"


def test_the_slowest_upload_gives_way_to_who_waits(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("app.web.request_limits._SLOW_TRANSFER_SECONDS", 0.01)

    async def run() -> tuple[int, str, bytes]:
        intake = BodyReceiver(BodyLimits(max_large_bodies=2))
        slow = [
            asyncio.create_task(taken(intake, sender([b"x"], stops=True), LARGE, FILE)),
            asyncio.create_task(taken(intake, sender([b"x" * 9000], stops=True), LARGE, FILE)),
        ]
        await asyncio.sleep(0.05)
        body = await taken(intake, sender([b"new"]), LARGE, FILE, "another")
        assert not slow[1].done()
        slow[1].cancel()
        with pytest.raises(HTTPException) as refused:
            await slow[0]
        return refused.value.status_code, refused.value.detail, body

    status, said, body = outcome(run())
    assert (status, body) == (503, b"new")
    assert "Send it in some minutes." in said


def test_a_form_gives_way_to_nobody(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("app.web.request_limits._SLOW_TRANSFER_SECONDS", 0.01)

    async def run() -> bool:
        intake = BodyReceiver(BodyLimits(max_large_bodies=0))
        form = asyncio.create_task(taken(intake, sender([b"a="], stops=True)))
        upload = asyncio.create_task(taken(intake, sender([b"x"]), LARGE, FILE))
        await asyncio.sleep(0.1)
        for task in (form, upload):
            task.cancel()
        await asyncio.wait([form, upload])
        return form.cancelled()

    assert outcome(run())


def test_a_small_file_needs_no_place():
    intake, headers = BodyReceiver(BodyLimits(max_large_bodies=0)), {b"content-length": b"200000"}

    received = taken(intake, sender([b"x" * 200_000]), headers, FILE)

    assert len(outcome(received)) == 200_000


def test_a_file_of_unknown_length_needs_a_place():
    intake = BodyReceiver(
        BodyLimits(base_seconds=0.01, min_bytes_a_second=10**9, max_large_bodies=0)
    )
    headers = {b"transfer-encoding": b"chunked"}

    with pytest.raises(HTTPException, match="503"):
        outcome(taken(intake, sender([b"x"]), headers, FILE))


def test_forms_that_wait_for_the_rest_take_no_memory():
    piece, forms = b"x" * 200_000, 50
    headers = {b"content-length": b"256000"}

    async def run() -> int:
        intake = BodyReceiver(BodyLimits())
        tracemalloc.start()
        tasks = [
            asyncio.create_task(taken(intake, sender([piece], stops=True), headers, 256_000))
            for _ in range(forms)
        ]
        await settle()
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        return held

    assert outcome(run()) < forms * len(piece) / 4
