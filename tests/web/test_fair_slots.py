"""How many requests of one client are worked on at a time."""

import asyncio
import contextlib

from app.web.front.fair_slots import FairSlots
from tests.loops import outcome


def test_requests_of_one_client_wait_for_each_other_and_not_for_those_of_others():
    async def act() -> tuple[int, list[str]]:
        slots = FairSlots(8, 2)
        inside = most = 0
        order: list[str] = []

        async def work(client: str, name: str) -> None:
            nonlocal inside, most
            async with slots.occupy(client):
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
    assert [name for name in order if name != "other"] == [
        f"greedy {n}" for n in range(6)
    ]


def test_a_slot_is_free_again_when_the_request_fails():
    async def act() -> str:
        slots = FairSlots(8, 1)
        for _ in range(3):
            with contextlib.suppress(ZeroDivisionError):
                async with slots.occupy("a"):
                    _ = 1 / 0
        async with slots.occupy("a"):
            return "served"

    assert outcome(act()) == "served"


def test_a_free_slot_goes_to_the_client_that_has_the_fewest():
    async def act() -> list[str]:
        slots = FairSlots(2, 2)
        order: list[str] = []
        begin = asyncio.Event()

        async def work(client: str, name: str) -> None:
            async with slots.occupy(client):
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
        async with slots.occupy("a"):
            with contextlib.suppress(TimeoutError):
                async with slots.occupy("b", seconds=0.01):
                    return False
        async with slots.occupy("b", seconds=1):
            return True

    assert outcome(act())
