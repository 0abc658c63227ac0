"""Quick estimates are answered at once, slow ones in a thread."""

import threading
import time

import anyio

from app.calculators.pace import Pace


def thread_of(pace, name, seconds=0.0):
    def work():
        time.sleep(seconds)
        return threading.get_ident()

    return anyio.run(pace.run, name, work) == threading.get_ident()


def test_an_estimate_is_tried_in_a_thread_before_it_is_known_to_be_quick():
    pace = Pace()
    assert not thread_of(pace, "kv-cache")
    assert thread_of(pace, "kv-cache")


def test_an_estimate_that_was_slow_stays_beside_the_other_requests():
    pace = Pace()
    assert not thread_of(pace, "parallelism-plan", 0.02)
    assert not thread_of(pace, "parallelism-plan")
    assert thread_of(pace, "parallelism-plan")
