"""The way of a page through the modules that read it, as a person follows it.

A step is a call, from one module of the course's reader into another, of a function
that is given the file: a `Manuscript`, or what has one as its `sheet`. Each module's
first call of a function counts. A stay is a module in which the way goes on, be it to
call or to be called; a return is a stay in a module that was left before. Functions
that get other values need not be followed: they report nothing.
"""

import itertools
import sys
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import NamedTuple

from app.content.read import parse
from app.content.source_file import Manuscript

READER = ("app.content.", "app.questions.")
PATH = "topics/memory/concept.md"
PAGE = """---
title: Memory
objective: "1.1"
source: paper
---

## Weights

In FP16, each weight takes two bytes.[^paper]

### How many bytes does a weight take in FP16?

<!-- q: bytes-of-fp16 -->

- [x] Two
- [ ] Four
  > Four bytes are FP32.
- [ ] One
  > One byte is FP8.
"""


class Step(NamedTuple):
    """A call between two modules: the one that calls, the one called, the function."""

    caller: str
    called: str
    function: str


def steps(page: str = PAGE) -> tuple[Step, ...]:
    """The way of a page from its text to what is served, each step once."""
    parse(page, PATH)  # what is made once for all pages belongs to none
    found: dict[Step, None] = {}

    def follow(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and (step := _step(frame)):
            found[step] = None

    before = sys.getprofile()
    sys.setprofile(follow)
    try:
        parse(page, PATH)
    finally:
        sys.setprofile(before)
    return tuple(found)


def _step(frame: FrameType) -> Step | None:
    called = _module(frame)
    if not called.startswith(READER) or not any(map(_has_file, _given(frame))):
        return None
    above = frame.f_back
    while above and not _module(above).startswith(READER):
        above = above.f_back
    if above is None or _module(above) == called:
        return None
    return Step(_module(above), called, frame.f_code.co_qualname)


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _given(frame: FrameType) -> Iterator[object]:
    """What a function is given besides the object that it belongs to."""
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    names = (name for name in code.co_varnames[:count] if name != "self")
    return (frame.f_locals[name] for name in names if name in frame.f_locals)


def _has_file(value: object) -> bool:
    return isinstance(value, Manuscript) or isinstance(
        getattr(value, "sheet", None), Manuscript
    )


def stays(way: Iterable[Step]) -> tuple[str, ...]:
    """The modules in the order in which they are visited."""
    both = itertools.chain.from_iterable((s.caller, s.called) for s in way)
    return tuple(module for module, _ in itertools.groupby(both))


def returns(visited: Iterable[str]) -> int:
    """How many of the stays are in a module that was left before."""
    names = tuple(visited)
    return len(names) - len(set(names))
