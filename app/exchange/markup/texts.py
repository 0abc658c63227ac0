"""Texts of other formats turned into Markdown, with a list of what was lost."""

import dataclasses
import re

from app.content.markdown.syntax import tokens
from app.content.numbers.quantities import known_unit
from app.exchange.items import Item, NotCarried, Span
from app.exchange.markup.hypertext import from_plain, to_markdown
from app.exchange.markup.pictures import Album
from app.exchange.markup.rendering import html_of, to_html

_TAG = re.compile(r"<[a-zA-Z/!]")
_UNIT = re.compile(r"\n\nAnswer in (\S+)\.$")


@dataclasses.dataclass(slots=True)
class Losses:
    """What could not be said in Markdown, in the order it was met.

    `album` are the pictures that can be carried.
    """

    album: Album = dataclasses.field(default_factory=Album)
    noted: dict[str, None] = dataclasses.field(default_factory=dict)

    @property
    def found(self) -> list[str]:
        """Everything that was noted."""
        return list(self.noted)

    def add(self, what: str) -> None:
        """Note one thing, once."""
        self.noted[what] = None


def read_text(text: str, form: str, losses: Losses) -> str:
    """Markdown of a text in one of the forms html, plain, moodle, markdown.

    `moodle` is plain text in which tags count when there are any.
    """
    if form == "markdown":
        return read_html(html_of(tokens(text.strip())), losses)
    if form == "html" or (form == "moodle" and _TAG.search(text)):
        return read_html(text, losses)
    return from_plain(text)


def read_html(html: str, losses: Losses) -> str:
    """Markdown of an HTML fragment."""
    turned = to_markdown(html, losses.album.take)
    for what in turned.lost:
        losses.add(what)
    return turned.text


def plain_of(markdown: str) -> str | None:
    """The words of Markdown that holds nothing but words in one line, else None."""
    html = to_html(markdown)
    if "<" in html or "\n" in html or "\\(" in html or "\\[" in html:
        return None
    words = (
        html.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", '"')
        .replace("&amp;", "&")
    )
    return words if from_plain(words) == markdown else None


def with_unit(stem: str, unit: str) -> str:
    """A stem that says in which unit to answer, for formats without units."""
    return f"{stem}\n\nAnswer in {unit}." if unit else stem


def without_unit(stem: str) -> tuple[str, str]:
    """The stem and the unit that `with_unit` put behind it."""
    found = _UNIT.search(stem)
    if found is None or not known_unit(found[1]):
        return stem, ""
    return stem[: found.start()], known_unit(found[1]) or ""


def any_other(item: Item, said: str, losses: Losses) -> Item:
    """The item with what is said to any other answer as its common mistake."""
    if said and not item.mistake:
        return dataclasses.replace(item, mistake=said)
    if said:
        losses.add("what is said to any other answer is left out")
    return item


def read_number(text: str) -> float:
    """A number with a point, or a comma, for decimals; raises NotCarried."""
    word = text.strip().replace("\u2212", "-").replace(" ", "")
    if re.fullmatch(r"[-+]?\d+,\d+", word):
        word = word.replace(",", ".")
    if not re.fullmatch(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?", word):
        raise NotCarried(f"“{text.strip()[:30]}” is not a number")
    return float(word)


def span_around(center: float, tolerance: float, unit: str = "") -> Span:
    """A range by its middle and half of its width."""
    half = max(abs(tolerance), abs(center) * 1e-9)
    low, high = (float(f"{b:.12g}") for b in (center - half, center + half))
    return Span(float(f"{center:.12g}"), low, high, unit)


def span_between(low: float, high: float, unit: str = "") -> Span:
    """A range by its ends."""
    first, last = sorted((low, high))
    return span_around((first + last) / 2, (last - first) / 2, unit)
