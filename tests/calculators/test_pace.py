"""Quick estimates are answered at once, slow ones in a thread."""

import dataclasses
import sys
import threading
from typing import Any

import anyio
import pytest
from anyio.to_thread import run_sync
from fastapi.testclient import TestClient

from app.calculators.pages import ESTIMATE_RUNNER, MAX_WORKERS, EstimateRunner
from app.estimator import registry
from tests.amounts import each_of_sample
from tests.loops import is_on_event_loop, outcome


class Clock:
    """Seconds that pass only while work is done."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def is_answered_at_once(pace: EstimateRunner, clock: Clock, name: str, seconds: float) -> bool:
    def work() -> int:
        clock.now += seconds
        return threading.get_ident()

    async def run() -> bool:
        return await pace.run_in_thread_unless_quick(name, work) == threading.get_ident()

    return outcome(run())


def test_an_estimate_is_tried_in_a_thread_before_it_is_known_to_be_quick() -> None:
    clock = Clock()
    pace = EstimateRunner(clock)

    assert not is_answered_at_once(pace, clock, "kv-cache", 0.001)
    assert is_answered_at_once(pace, clock, "kv-cache", 0.001)


def test_an_estimate_that_was_slow_stays_beside_the_other_requests() -> None:
    clock = Clock()
    pace = EstimateRunner(clock)

    assert not is_answered_at_once(pace, clock, "parallelism-plan", 0.02)
    assert not is_answered_at_once(pace, clock, "parallelism-plan", 0.001)
    assert not is_answered_at_once(pace, clock, "parallelism-plan", 0.001)


def test_an_estimate_that_was_slow_long_ago_is_answered_at_once_again() -> None:
    clock = Clock()
    pace = EstimateRunner(clock)
    is_answered_at_once(pace, clock, "parallelism-plan", 0.02)

    for _ in range(10):
        is_answered_at_once(pace, clock, "parallelism-plan", 0.001)

    assert is_answered_at_once(pace, clock, "parallelism-plan", 0.001)


def test_a_search_is_never_answered_on_the_event_loop() -> None:
    clock = Clock()
    pace = EstimateRunner(clock)

    async def run() -> bool:
        return await pace.run_in_thread_unless_quick("x", threading.get_ident, is_search=True) == (
            threading.get_ident()
        )

    assert not any(outcome(run()) for _ in range(3))


@each_of_sample(
    "name, address",
    [
        ("parallelism-plan", "/calculators/parallelism-plan/result?gpus={}"),
        ("accelerator-choice", "/calculators/accelerator-choice/result?concurrent={}"),
        ("serving-capacity", "/calculators/serving-capacity?concurrent={}"),
        ("parallelism-plan", "/api/v1/estimates/parallelism-plan?gpus={}"),
    ],
    2,
)
def test_no_inputs_bring_a_search_onto_the_event_loop(
    client: TestClient, name: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loops: list[bool] = []
    entry = registry.find_estimate(name)
    assert entry
    answer = entry.compute_estimate

    def note(inputs: Any) -> Any:
        loops.append(is_on_event_loop())
        return answer(inputs)

    changed = dataclasses.replace(entry, compute_estimate=note)
    monkeypatch.setattr(sys.modules[_module_of(entry)], "ENTRY", changed)
    registry.find_estimate.cache_clear()
    try:
        for number in (8, 16, 32):
            assert client.get(address.format(number)).status_code == 200
    finally:
        monkeypatch.undo()
        registry.find_estimate.cache_clear()

    assert set(loops) == {False}


def _module_of(entry: registry.EstimateSpec) -> str:
    return f"app.estimator.estimates.{entry.name.replace('-', '_')}_report"


def test_costly_estimates_wait_for_each_other_and_nobody_waits_for_them() -> None:
    pace = EstimateRunner()
    seen: list[str] = []
    at_work, end = threading.Semaphore(0), threading.Event()

    def costly() -> None:
        seen.append("costly")
        at_work.release()
        end.wait()

    async def twelve_and_one() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(12):
                group.start_soon(pace.run_in_thread_unless_quick, "parallelism-plan", costly)
            for _ in range(MAX_WORKERS):
                await run_sync(at_work.acquire)
            # All worker threads of the pages are free, and so is the loop.
            await run_sync(seen.append, "a page")
            end.set()

    outcome(twelve_and_one())

    assert seen == ["costly"] * MAX_WORKERS + ["a page"] + ["costly"] * (12 - MAX_WORKERS)


def test_addresses_of_no_calculator_are_not_remembered(
    client: TestClient,
) -> None:
    before = set(ESTIMATE_RUNNER.names_of_measured_estimates)

    for number in range(5):
        assert client.get(f"/calculators/nothing-{number}").status_code == 404

    assert len(set(ESTIMATE_RUNNER.names_of_measured_estimates) - before) <= 1
