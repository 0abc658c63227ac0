"""Quick estimates are answered at once, slow ones in a thread."""

import threading

import anyio
from anyio.to_thread import run_sync
from fastapi.testclient import TestClient

from app.calculators.concurrency import AT_ONCE, PACE, Pace
from tests.loops import outcome


class Clock:
    """Seconds that pass only while work is done."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def is_answered_at_once(pace: Pace, clock: Clock, name: str, seconds: float) -> bool:
    def work() -> int:
        clock.now += seconds
        return threading.get_ident()

    async def run() -> bool:
        return await pace.run(name, work) == threading.get_ident()

    return outcome(run())


def test_an_estimate_is_tried_in_a_thread_before_it_is_known_to_be_quick() -> None:
    clock = Clock()
    pace = Pace(clock)

    assert not is_answered_at_once(pace, clock, "kv-cache", 0.001)
    assert is_answered_at_once(pace, clock, "kv-cache", 0.001)


def test_an_estimate_that_was_slow_stays_beside_the_other_requests() -> None:
    clock = Clock()
    pace = Pace(clock)

    assert not is_answered_at_once(pace, clock, "parallelism-plan", 0.02)
    assert not is_answered_at_once(pace, clock, "parallelism-plan", 0.001)
    assert not is_answered_at_once(pace, clock, "parallelism-plan", 0.001)


def test_an_estimate_that_was_slow_long_ago_is_answered_at_once_again() -> None:
    clock = Clock()
    pace = Pace(clock)
    is_answered_at_once(pace, clock, "parallelism-plan", 0.02)

    for _ in range(10):
        is_answered_at_once(pace, clock, "parallelism-plan", 0.001)

    assert is_answered_at_once(pace, clock, "parallelism-plan", 0.001)


def test_costly_estimates_wait_for_each_other_and_nobody_waits_for_them() -> None:
    pace = Pace()
    seen: list[str] = []
    at_work, end = threading.Semaphore(0), threading.Event()

    def costly() -> None:
        seen.append("costly")
        at_work.release()
        end.wait()

    async def twelve_and_one() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(12):
                group.start_soon(pace.run, "parallelism-plan", costly)
            for _ in range(AT_ONCE):
                await run_sync(at_work.acquire)
            # All worker threads of the pages are free, and so is the loop.
            await run_sync(seen.append, "a page")
            end.set()

    outcome(twelve_and_one())

    assert seen == ["costly"] * AT_ONCE + ["a page"] + ["costly"] * (12 - AT_ONCE)


def test_addresses_of_no_calculator_are_not_remembered(
    client: TestClient,
) -> None:
    before = set(PACE.known)

    for number in range(5):
        assert client.get(f"/calculators/nothing-{number}").status_code == 404

    assert len(set(PACE.known) - before) <= 1
