"""Placeholders in authored text: `{ctx:,}` becomes the number of one attempt."""

import dataclasses
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from markdown_it.common.utils import escapeHtml
from markdown_it.token import Token

from app.content.model import ComputedParameters, RichText
from app.content.numbers.expressions import Value
from app.content.numbers.quantities import Quantity, show
from app.estimator.units import format_value

T = TypeVar("T")
PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)(?::([^{}\s]{0,8}))?\}")
_BEGUN = re.compile(r"\{([A-Za-z_]\w*)(?:[^{}\s]*\}| *[-+*/] *[^{}]*\}|:[^{}\s]*)?")
# In math a pair of braces groups, and \text{batch} is not a placeholder.
_IN_MATH = re.compile(r"(\\[A-Za-z]+)?\{([A-Za-z_]\w*)(?::([^{}\s]{0,8}))?\}")
_FIRST = 0xE100  # a private character stands for a placeholder while math is converted


def broken(text: str, known: Collection[str]) -> list[str]:
    """What begins like a placeholder of a known name and is none.

    >>> broken("{size:.3g GB and {size + 1} of {size}", {"size"})
    ['{size:.3g', '{size + 1}']
    """
    return [
        match[0]
        for match in _BEGUN.finditer(text)
        if match[1] in known and not PLACEHOLDER.fullmatch(match[0])
    ]


def protect(tokens: Sequence[Token], computed: ComputedParameters) -> None:
    """Put private characters for the placeholders in math, until `restored`."""
    known = _names(computed)
    for token in tokens:
        for child in (token, *(token.children or [])):
            if child.type.startswith("math"):
                child.content = _IN_MATH.sub(_protecting(known), child.content)


def _names(computed: ComputedParameters) -> list[str]:
    return [*computed.params, *(name for name, _ in computed.lets)]


_SPECS = ["", ",", ".0f", ".1f", ".2f", ".3f", ".1g", ".2g", ".3g", ".4g", ".5g", ",d"]


def _protecting(known: list[str]) -> Callable[[re.Match[str]], str]:
    def replace(match: re.Match[str]) -> str:
        spec = match[3] or ""
        if match[1] or match[2] not in known or spec not in _SPECS:
            return match[0]
        code = known.index(match[2]) * len(_SPECS) + _SPECS.index(spec)
        return chr(_FIRST + code)

    return replace


def restored(question: T, computed: ComputedParameters) -> T:
    """The question with its placeholders back in the math."""
    known = _names(computed)

    def back(match: re.Match[str]) -> str:
        name, spec = divmod(ord(match[1]) - _FIRST, len(_SPECS))
        if name >= len(known):
            return ""
        written = f"{known[name]}:{_SPECS[spec]}".rstrip(":")
        return f"<mn>{{{written}}}</mn>"

    def fix(text: RichText) -> RichText:
        html = re.sub("<mi>([\ue100-\uf8ff])</mi>", back, text.html)
        words = re.sub("([\ue100-\uf8ff])", lambda m: re.sub("</?mn>", "", back(m)), text.plain)
        return RichText(html, words)

    changed: T = map_texts(question, fix)
    return changed


def map_texts(value: Any, change: Callable[[RichText], RichText]) -> Any:
    """A copy of a value with every text in it changed."""
    if isinstance(value, RichText):
        return change(value) if value.html or value.plain else value
    if isinstance(value, tuple):
        return tuple(map_texts(v, change) for v in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            f.name: map_texts(getattr(value, f.name), change)
            for f in dataclasses.fields(value)
            if isinstance(getattr(value, f.name), tuple | RichText)
            or dataclasses.is_dataclass(getattr(value, f.name))
        }
        return dataclasses.replace(value, **fields)
    return value


def placeholders(text: str) -> Iterator[tuple[str, str]]:
    """The placeholders of a template as (name, format)."""
    for match in PLACEHOLDER.finditer(text):
        yield match[1], match[2] or ""


def format_placeholder(value: Value, spec: str = "") -> str:
    """One value as text, without its unit; raises ValueError for a bad format."""
    if isinstance(value, Quantity):
        return show(value.value, spec)
    if isinstance(value, bool):
        return format_value(value)
    return value


def fill(template: str, values: Mapping[str, Value]) -> str:
    """A template with its placeholders filled; unknown ones stay as they are."""

    def replace(match: re.Match[str]) -> str:
        if match[1] not in values:
            return match[0]
        try:
            return format_placeholder(values[match[1]], match[2] or "")
        except (ValueError, OverflowError):
            return match[0]

    return PLACEHOLDER.sub(replace, template)


def fill_text(text: RichText, values: Mapping[str, Value]) -> RichText:
    """Both forms of a text, filled; words are escaped in the HTML."""
    if "{" not in text.html:
        return text
    escaped: dict[str, Value] = {
        n: escapeHtml(v) if isinstance(v, str) else v for n, v in values.items()
    }
    return RichText(fill(text.html, escaped), fill(text.plain, values))
