"""How a body is taken in: whole, in time, and not too much of it."""

import asyncio
from collections.abc import Iterable

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Message

from app.web.front.body import Intake, Patience
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


async def taken(intake: Intake, receive, headers=FORM, room: int = 100) -> bytes:
    """What the app reads."""
    body = b""
    async with intake.whole(receive, headers, room, "someone") as whole:
        while True:
            message = await whole()
            body += message["body"]
            if not message["more_body"]:
                return body


def test_a_body_in_pieces_arrives_as_one():
    received = taken(Intake(Patience()), sender([b"a=", b"1&", b"b="]))

    assert outcome(received) == b"a=1&b="


def test_a_large_body_arrives_unchanged():
    pieces = [bytes([n % 251]) * 100_000 for n in range(20)]
    headers = {b"content-length": b"2000000"}

    received = taken(Intake(Patience()), sender(pieces), headers, FILE)

    assert outcome(received) == b"".join(pieces)


def test_who_stops_in_the_middle_is_told_so():
    intake = Intake(Patience(seconds=0.01))

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

    intake = Intake(Patience(seconds=30, bytes_a_second=10))

    assert len(outcome(taken(intake, receive, FORM, 10_000))) == 5000


def test_who_goes_away_is_waited_for_no_longer():
    with pytest.raises(ClientDisconnect):
        outcome(taken(Intake(Patience()), sender([b"a="], leaves=True)))


@pytest.mark.parametrize("length", [b"101", b"9" * 40, b"-1", b"1e3", b"\xb2"])
def test_an_announced_length_has_to_fit(length: bytes):
    with pytest.raises(HTTPException) as refused:
        outcome(taken(Intake(Patience()), sender([b""]), {b"content-length": length}))

    assert refused.value.status_code == 413


def test_a_body_that_grows_past_its_room_is_refused():
    headers = {b"transfer-encoding": b"chunked"}

    with pytest.raises(HTTPException) as refused:
        outcome(taken(Intake(Patience()), sender([b"x" * 60] * 2), headers))

    assert refused.value.status_code == 413


def test_one_client_sends_few_files_at_a_time():
    intake = Intake(Patience(of_one_client=1))
    headers = {b"content-length": b"1000000"}

    async def both() -> bytes:
        async with intake.whole(sender([b"x"]), headers, FILE, "someone"):
            async with intake.whole(sender([b"x"]), headers, FILE, "another"):
                pass
            with pytest.raises(HTTPException) as refused:
                await taken(intake, sender([b"x"]), headers, FILE)
            assert refused.value.status_code == 503
        return await taken(intake, sender([b"y"]), headers, FILE)

    assert outcome(both()) == b"y"
