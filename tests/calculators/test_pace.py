"""Quick estimates are answered at once, slow ones in a thread."""

import threading
from concurrent.futures import ThreadPoolExecutor

import anyio

from app.calculators.pace import Pace


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

    def run() -> bool:
        return anyio.run(pace.run, name, work) == threading.get_ident()

    # In a thread of its own: a browser test may have left a loop in this one.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result()


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
    assert is_answered_at_once(pace, clock, "parallelism-plan", 0.001)
