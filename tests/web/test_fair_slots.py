"""How many requests of one client are worked on at a time."""

import asyncio
import contextlib

import pytest

from app.web.request_limits import FairSlots, TransferSlots
from tests.loops import outcome


def test_requests_of_one_client_wait_for_each_other_and_not_for_those_of_others():
    async def act() -> tuple[int, list[str]]:
        slots = FairSlots(8, 2)
        inside = most = 0
        order: list[str] = []

        async def work(client: str, name: str) -> None:
            nonlocal inside, most
            async with slots.hold_slot(client):
                if client == "greedy":
                    inside += 1
                    most = max(most, inside)
                await asyncio.sleep(0.01)
                order.append(name)
                inside -= client == "greedy"

        greedy = [work("greedy", f"greedy {n}") for n in range(6)]
        await asyncio.gather(*greedy, work("other", "other"))
        return most, order

    most, order = outcome(act())
    assert most == 2
    assert order.index("other") < order.index("greedy 2")
    assert [name for name in order if name != "other"] == [f"greedy {n}" for n in range(6)]


def test_a_slot_is_free_again_when_the_request_fails():
    async def act() -> str:
        slots = FairSlots(8, 1)
        for _ in range(3):
            with contextlib.suppress(ZeroDivisionError):
                async with slots.hold_slot("a"):
                    _ = 1 / 0
        async with slots.hold_slot("a"):
            return "served"

    assert outcome(act()) == "served"


def test_a_free_slot_goes_to_the_client_that_has_the_fewest():
    async def act() -> list[str]:
        slots = FairSlots(2, 2)
        order: list[str] = []
        begin = asyncio.Event()

        async def work(client: str, name: str) -> None:
            async with slots.hold_slot(client):
                order.append(name)
                await begin.wait()

        tasks = []
        for client, name in (("a", "a 1"), ("a", "a 2"), ("a", "a 3"), ("b", "b")):
            tasks.append(asyncio.ensure_future(work(client, name)))
            await asyncio.sleep(0)
        begin.set()
        await asyncio.gather(*tasks)
        return order

    assert outcome(act()) == ["a 1", "a 2", "b", "a 3"]


def test_who_gives_up_waiting_takes_no_slot():
    async def act() -> bool:
        slots = FairSlots(1, 1)
        async with slots.hold_slot("a"):
            with contextlib.suppress(TimeoutError):
                async with slots.hold_slot("b", max_wait_seconds=0.01):
                    return False
        async with slots.hold_slot("b", max_wait_seconds=1):
            return True

    assert outcome(act())


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.web.request_limits._SLOW_TRANSFER_SECONDS", 0.01)


class Downloads:
    """Clients that hold a slot for a transfer until it is displaced."""

    def __init__(self, total: int, of_one_client: int) -> None:
        self.slots = TransferSlots(total, of_one_client)
        self.displaced: list[str] = []

    async def read(self, client: str, size: int) -> None:
        """Take so many bytes, and then nothing more."""
        async with self.slots.hold_slot(client, max_wait_seconds=30):
            try:
                async with self.slots.register_transfer() as transfer:
                    transfer.bytes = size
                    await asyncio.Event().wait()
            except TimeoutError:
                self.displaced.append(client)

    async def begin(self, **sizes: int) -> None:
        """Begin a transfer for each client."""
        tasks = [asyncio.ensure_future(self.read(name, sizes[name])) for name in sizes]
        await asyncio.sleep(0.05)
        self._tasks = tasks


@pytest.mark.usefixtures("impatient")
def test_where_somebody_waits_the_slowest_transfer_gives_way():
    async def act() -> list[str]:
        downloads = Downloads(3, 2)
        await downloads.begin(a=3_000_000, b=1_000, c=2_000_000)
        async with downloads.slots.hold_slot("new", max_wait_seconds=30):
            return downloads.displaced

    assert outcome(act()) == ["b"]


@pytest.mark.usefixtures("impatient")
def test_no_transfer_gives_way_where_nobody_waits_or_only_for_slots_of_their_own():
    async def act() -> list[str]:
        downloads = Downloads(3, 1)
        await downloads.begin(a=1_000, b=2_000)
        with contextlib.suppress(TimeoutError):
            async with downloads.slots.hold_slot("a", max_wait_seconds=0.1):
                pass
        return downloads.displaced

    assert outcome(act()) == []


def test_a_transfer_expires_and_one_that_was_displaced_gets_no_more_time():
    async def act() -> list[str]:
        slots, ended = TransferSlots(1, 1), []
        for name in ("expired", "displaced"):
            try:
                async with slots.register_transfer() as transfer:
                    if name == "displaced":
                        transfer.end_for_waiting_client()
                    now = asyncio.get_running_loop().time()
                    transfer.set_deadline(now + (0.01 if name == "expired" else 60))
                    await asyncio.Event().wait()
            except TimeoutError:
                ended.append(name)
            transfer.end_for_waiting_client()  # too late, which is no fault
        return ended

    assert outcome(act()) == ["expired", "displaced"]
