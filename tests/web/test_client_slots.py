"""How many requests of one client are worked on at a time."""

import asyncio
import contextlib

from app.web.front.client_slots import ClientSlots
from tests.loops import outcome


def test_requests_of_one_client_wait_for_each_other_and_not_for_those_of_others():
    async def act() -> tuple[int, list[str]]:
        slots = ClientSlots(2)
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
        slots = ClientSlots(1)
        for _ in range(3):
            with contextlib.suppress(ZeroDivisionError):
                async with slots.occupy("a"):
                    _ = 1 / 0
        async with slots.occupy("a"):
            return "served"

    assert outcome(act()) == "served"
