"""Parse inputs and scenarios from a URL or form, and write them to a URL."""

from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, urlencode

from app.errors import InvalidInputError

MOST_FIELDS = 200


def inputs_from_query(query: str) -> dict[str, str]:
    """Return the inputs in a query string. The first non-empty value of a name counts.

    So a list takes precedence over the free text field next to it, and a ticked box over the hidden
    “no” after it.
    """
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise InvalidInputError(f"There are more than {MOST_FIELDS} inputs.") from None
    return keep_first_filled(pairs)


def keep_first_filled(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return one value for each name: the first that is not empty."""
    typed: dict[str, str] = {}
    for name, value in pairs:
        if not typed.get(name):
            typed[name] = value
    return typed


def build_query(typed: Mapping[str, str]) -> str:
    """Return the inputs as a query string, without empty fields."""
    return urlencode({name: value for name, value in typed.items() if value})


LETTERS = ("a", "b", "c")
_PREFIXES = frozenset(f"{letter}." for letter in LETTERS)
_COUNT = "scenarios"

Typed = Mapping[str, str]


def split_scenarios(typed: Typed) -> dict[str, dict[str, str]]:
    """Return the scenarios in a URL: `gpu=` applies to all, `b.gpu=` to B alone.

    There are two; `scenarios=3` or any value for C adds a third.

    >>> split_scenarios({"model": "70B", "b.gpu": "b200-sxm"})
    {'a': {'model': '70B'}, 'b': {'model': '70B', 'gpu': 'b200-sxm'}}
    """
    shared = {n: v for n, v in typed.items() if n[:2] not in _PREFIXES and n != _COUNT}
    three = typed.get(_COUNT) == "3" or any(n.startswith("c.") for n in typed)
    return {
        letter: {**shared, **{n[2:]: v for n, v in typed.items() if n.startswith(f"{letter}.")}}
        for letter in (LETTERS if three else LETTERS[:2])
    }


def build_scenarios_query(sides: Mapping[str, Typed]) -> str:
    """Return scenarios as a query string; values shared by all are written once.

    >>> build_scenarios_query({"a": {"model": "70B"}, "b": {"model": "70B", "gpus": "8"}})
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
