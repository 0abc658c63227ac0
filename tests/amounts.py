"""How much is tried: a little in `make test`, much in `make drills`."""

import os

import hypothesis

FACTOR = int(os.environ.get("HEADROOM_TEST_DRILLS", "1"))
"""How many times as much is tried as in `make test`."""
EXAMPLES = hypothesis.settings(
    max_examples=25 if FACTOR == 1 else 40 * FACTOR,
    # `make test` says the same of the same code; `make drills` draws new examples.
    derandomize=FACTOR == 1,
    # No test asks how long something takes: a busy machine would fail it.
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
OF_EACH = hypothesis.settings(EXAMPLES, max_examples=10 if FACTOR == 1 else 40 * FACTOR)
"""For what is drawn anew of each of many, such as of each calculator."""
