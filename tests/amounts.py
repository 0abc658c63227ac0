"""How much is tried: a little in `make test`, much in `make drills`."""

import os
import random
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import hypothesis
import pytest

Value = TypeVar("Value")

FACTOR = int(os.environ.get("HEADROOM_TEST_DRILLS", "1"))
"""How many times as much is tried as in `make test`."""
EXAMPLES = hypothesis.settings(
    max_examples=10 if FACTOR == 1 else 40 * FACTOR,
    # `make test` says the same of the same code; `make drills` draws new examples.
    derandomize=FACTOR == 1,
    # No test asks how long something takes: a busy machine would fail it.
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
OF_EACH = hypothesis.settings(EXAMPLES, max_examples=5 if FACTOR == 1 else 40 * FACTOR)
"""For what is drawn anew of each of many, such as of each calculator."""


def sample(values: Iterable[Value], most: int, key: str) -> list[Value]:
    """So many of the values in their order, by `key` the same each time; drills: all."""
    every = [*values]
    if FACTOR > 1 or len(every) <= most:
        return every
    luck = random.Random(key)  # noqa: S311 - a draw, no secret
    return [every[number] for number in sorted(luck.sample(range(len(every)), most))]


def each_of_sample(
    name: str, values: Iterable[Any], most: int, ids: Callable[[Any], str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a test some values of an argument, to each test others; drills: all."""

    def mark(test: Callable[..., None]) -> Callable[..., None]:
        chosen = sample(values, most, test.__name__)
        return pytest.mark.drawn(pytest.mark.parametrize(name, chosen, ids=ids)(test))

    return mark
