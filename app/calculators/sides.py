"""Which scenarios an address holds, and the shortest address for some scenarios."""

from collections.abc import Mapping
from urllib.parse import urlencode

LETTERS = ("a", "b", "c")
_PREFIXES = frozenset(f"{letter}." for letter in LETTERS)
_COUNT = "scenarios"

Typed = Mapping[str, str]


def scenarios_in(typed: Typed) -> dict[str, dict[str, str]]:
    """The scenarios of an address: `gpu=` holds for all, `b.gpu=` for B alone.

    There are two; `scenarios=3` or anything said of C makes a third.

    >>> scenarios_in({"model": "70B", "b.gpu": "b200-sxm"})
    {'a': {'model': '70B'}, 'b': {'model': '70B', 'gpu': 'b200-sxm'}}
    """
    shared = {n: v for n, v in typed.items() if n[:2] not in _PREFIXES and n != _COUNT}
    three = typed.get(_COUNT) == "3" or any(n.startswith("c.") for n in typed)
    return {
        letter: {
            **shared,
            **{n[2:]: v for n, v in typed.items() if n.startswith(f"{letter}.")},
        }
        for letter in (LETTERS if three else LETTERS[:2])
    }


def query_of_sides(sides: Mapping[str, Typed]) -> str:
    """The address of some scenarios; what all of them share is said once.

    >>> query_of_sides({"a": {"model": "70B"}, "b": {"model": "70B", "gpus": "8"}})
    'model=70B&b.gpus=8'
    """
    filled = {s: {n: v for n, v in typed.items() if v} for s, typed in sides.items()}
    first, *others = filled.values()
    shared = {n: v for n, v in first.items() if all(o.get(n) == v for o in others)}
    pairs = dict(shared)
    for letter, typed in filled.items():
        pairs |= {f"{letter}.{n}": v for n, v in typed.items() if n not in shared}
    if len(sides) == len(LETTERS) and not any(n.startswith("c.") for n in pairs):
        pairs[_COUNT] = "3"
    return urlencode(pairs)


def swapped(sides: Mapping[str, Typed]) -> dict[str, Typed]:
    """The scenarios with A and B in each other's place."""
    return {**sides, "a": sides["b"], "b": sides["a"]}


def with_third(sides: Mapping[str, Typed]) -> dict[str, Typed]:
    """The scenarios with a third that begins as B."""
    return {**sides, "c": sides["b"]}


def without_third(sides: Mapping[str, Typed]) -> dict[str, Typed]:
    """A and B alone."""
    return {letter: sides[letter] for letter in LETTERS[:2]}
