"""Items as hypothesis draws them, for round trips through every format."""

import dataclasses
from collections.abc import Callable
from typing import get_args

from hypothesis import strategies as st

from app.import_export.html_to_markdown import (
    convert_html_to_markdown,
    convert_plain_text_to_markdown,
)
from app.import_export.items import BLANK_CHARACTER, Item, ItemBlank, ItemOption, ItemPair, Kind
from app.import_export.text_conversion import make_range_around

QUESTIONS = tuple(kind for kind in get_args(Kind) if kind != "card")
"""The types of questions that every format but the simplest can carry."""
SIGNS = "abcXYZ 019 .,;:!?'\"()[]{}<>#=~*_`$%&+-/\\|^@äßλ→"
WORDS = st.text(SIGNS, min_size=1, max_size=24).map(lambda s: " ".join(s.split()))
NAMES = st.from_regex(r"[a-z]{2,8}(-[a-z0-9]{1,6}){0,3}", fullmatch=True)
PIECES = st.sampled_from(
    [
        "<p>{}</p><p>second</p>",
        "a <b>{}</b> b",
        "<em>{}</em>",
        "<code>x &lt; 1</code> {}",
        "\\(x^2 &lt; 3\\) {}",
        "<p>{}</p><pre>if x:\n    y</pre>",
        "<p>{}</p><ul><li>one</li><li>two</li></ul>",
        "<p>{}</p><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>|</td></tr></table>",
        "{} <a href='https://example.org/a?b=c&amp;d'>there</a> H<sub>2</sub>O",
    ]
)
PLAIN = WORDS.map(convert_plain_text_to_markdown).filter(bool)


@st.composite
def rich(draw: Callable) -> str:
    words = draw(st.from_regex(r"[a-z]{1,9}( [a-z<>&]{1,5}){0,3}", fullmatch=True))
    html = words.replace("&", "&amp;").replace("<", "&lt;")
    return convert_html_to_markdown(draw(PIECES).format(html)).markdown


STEMS = st.one_of(PLAIN, rich()).filter(lambda t: not t.startswith(("`", "|")))
LINES = st.one_of(
    PLAIN,
    st.sampled_from(["**bold** word", "`code`", "$a+b$ units", "E = mc<sup>2</sup>"]),
)
NOTES = st.one_of(st.just(""), STEMS)
UNITS = st.sampled_from(["", "GB", "s", "TB/s", "%"])
NUMBERS = st.integers(-(10**6), 10**6).map(lambda n: n / 1000)


def distinct(texts: st.SearchStrategy, least: int, most: int) -> st.SearchStrategy:
    """Texts that differ in more than case and signs."""
    return st.lists(
        texts,
        min_size=least,
        max_size=most,
        unique_by=lambda t: "".join(c for c in t.lower() if c.isalnum()) or t,
    )


@st.composite
def options(draw: Callable, rights: st.SearchStrategy) -> tuple[ItemOption, ...]:
    texts = draw(distinct(LINES, 3, 5))
    right = draw(rights)
    return tuple(ItemOption(text, n < right, draw(NOTES)) for n, text in enumerate(texts))


@st.composite
def weighed(draw: Callable, found: st.SearchStrategy) -> tuple[ItemOption, ...]:
    """Options of which those that are not right may be worth a part of the mark."""
    parts = st.sampled_from([0.0, 0.0, 0.5, 0.25, 1 / 3])
    return tuple(
        o if o.right else dataclasses.replace(o, credit=round(draw(parts), 7)) for o in draw(found)
    )


@st.composite
def numbers(draw: Callable) -> tuple[ItemOption, ...]:
    unit = draw(UNITS)
    centers = draw(st.lists(NUMBERS, min_size=1, max_size=3, unique=True))
    half = draw(st.sampled_from([0, 0.25, 2]))
    return tuple(
        ItemOption("", n == 0, draw(NOTES), make_range_around(c, half, unit))
        for n, c in enumerate(centers)
    )


BARE = st.from_regex(r"[a-zA-Z][a-z]{0,8}( [a-z]{1,6}){0,2}", fullmatch=True)


@st.composite
def words(draw: Callable) -> tuple[ItemOption, ...]:
    texts = draw(distinct(BARE, 1, 4))
    return tuple(ItemOption(t, n == 0, draw(NOTES)) for n, t in enumerate(texts))


@st.composite
def items(draw: Callable, *kinds: str) -> Item:
    kind = draw(st.sampled_from(kinds))
    tags = draw(st.lists(BARE, max_size=2, unique=True).map(tuple))
    common = Item(
        draw(NAMES),
        kind,
        draw(STEMS),
        explanation=draw(NOTES),
        tags=tags,
        level=draw(st.sampled_from(["", "deeper"])) if kind != "card" else "",
        use=draw(st.sampled_from(["", "exam"])) if kind != "card" else "",
    )
    return dataclasses.replace(common, **draw(FIELDS[kind]))


def fields(**given: st.SearchStrategy) -> st.SearchStrategy:
    return st.fixed_dictionaries(given)


TRUTH = st.booleans().flatmap(
    lambda good: st.tuples(NOTES, NOTES).map(
        lambda notes: (
            ItemOption("True", good, notes[0]),
            ItemOption("False", not good, notes[1]),
        )
    )
)
STEPS = distinct(LINES, 3, 5).map(lambda ts: tuple(ItemOption(t, True) for t in ts))
PAIRS = st.tuples(distinct(LINES, 2, 4), distinct(LINES, 4, 4)).map(
    lambda both: tuple(ItemPair(a, b) for a, b in zip(*both, strict=False))
)
FIELDS = {
    "single": fields(options=weighed(options(st.just(1)))),
    "multiple": fields(
        options=options(st.integers(2, 3)),
        partial=st.sampled_from(["", "off", "net", "each"]),
    ),
    "true-false": fields(options=TRUTH),
    "numeric": fields(options=weighed(numbers())),
    "short": fields(options=weighed(words()), case=st.booleans()),
    "order": fields(steps=STEPS, partial=st.sampled_from(["", "off", "lcs"])),
    "match": fields(pairs=PAIRS),
    "cloze": fields(
        stem=PLAIN,
        text=st.just(f"It is {BLANK_CHARACTER} and {BLANK_CHARACTER}."),
        blanks=st.tuples(
            BARE.map(lambda w: ItemBlank((w,))),
            st.one_of(
                distinct(BARE, 2, 2).map(lambda ws: ItemBlank(tuple(ws))),
                distinct(BARE, 2, 3).map(lambda ws: ItemBlank((ws[0],), wrong=tuple(ws[1:]))),
            ),
        ),
    ),
    "card": fields(text=STEMS, reverse=st.booleans(), explanation=st.just("")),
}


TITLES = st.one_of(st.just(""), BARE, st.sampled_from(["Part of $a$", "a, b", "c; d", "x" * 45]))


@st.composite
def told(draw: Callable, *kinds: str) -> Item:
    """Items with all that may be said beside the question: hints, reasons, decoys."""
    item = draw(items(*kinds))
    changes: dict[str, object] = {
        "hints": tuple(draw(st.lists(STEMS, max_size=2))),
        "mistake": draw(NOTES),
    }
    if item.kind == "match":
        whys = draw(st.lists(st.one_of(st.just(""), BARE), min_size=4, max_size=4))
        pairs = [dataclasses.replace(p, why=why) for p, why in zip(item.pairs, whys, strict=False)]
        spare = draw(st.sampled_from([(), ("nobody has it",), ("one spare", "two spare")]))
        changes["pairs"] = (*pairs, *(ItemPair("", word) for word in spare))
        changes["titles"] = draw(st.tuples(TITLES, TITLES))
    elif item.kind == "order":
        changes["steps"] = tuple(dataclasses.replace(s, feedback=draw(NOTES)) for s in item.steps)
        changes["options"] = draw(
            st.sampled_from([(), (ItemOption("never done", False, "It is not."),)])
        )
    elif item.kind == "cloze":
        hint = draw(st.one_of(st.just(""), BARE))
        first, *rest = item.blanks
        changes["blanks"] = (dataclasses.replace(first, hint=hint), *rest)
    return dataclasses.replace(item, **changes)


def bare(item: Item) -> Item:
    """An item without what no format can know: its line."""
    return dataclasses.replace(item, line=0)
