"""Glossary terms in text: the first mention of each on a page becomes a link."""

import dataclasses
import re
from collections.abc import Sequence
from html import unescape

from app.content.model import GlossaryTerm

_TAG = re.compile(r"(<[^>]*>)")
# Inside these nothing is linked.
_CLOSED = frozenset(
    {"a", "b", "button", "code", "figcaption", "h1", "h2", "h3", "h4", "h5", "h6"}
    | {"kbd", "math", "pre", "summary", "svg", "th"}
)


@dataclasses.dataclass(frozen=True, slots=True)
class GlossaryNames:
    """The names of a glossary: pattern for all, anchor of each in lower case.

    Names with a capital inside are abbreviations or brands: "zero" is not ZeRO.
    """

    pattern: re.Pattern[str] | None
    anchors: dict[str, str]
    fingerprint: str
    capitals: frozenset[str] = frozenset()


def names_of(terms: Sequence[tuple[str, str]]) -> GlossaryNames:
    """Prepare (name, anchor) pairs for linking; longer names come first.

    "Time to first token (TTFT)" is also found as either of its two forms.
    """
    forms = [(form, anchor) for name, anchor in terms for form in _forms(name)]
    anchors: dict[str, str] = {}
    for form, anchor in forms:
        anchors.setdefault(form.lower(), anchor)
    if not anchors:
        return GlossaryNames(None, {}, "")
    ordered = sorted(anchors, key=lambda n: (-len(n), n))
    words = "|".join(re.escape(n).replace(r"\ ", r"\s+") for n in ordered)
    pattern = re.compile(rf"(?<![\w-])({words})(?:(?:e?s)?(?![\w-]))")
    capitals = frozenset(f.lower() for f, _ in forms if f[1:].lower() != f[1:])
    return GlossaryNames(
        pattern,
        anchors,
        "\n".join(f"{n}={a}" for n, a in sorted(anchors.items())),
        capitals,
    )


def _forms(name: str) -> list[str]:
    match = re.match(r"^(.*?)\s*\(([^()]+)\)$", name)
    return [match[1], match[2]] if match else [name]


class FirstMentionLinker:
    """Links the first mention of each term over all pieces of one page."""

    def __init__(self, names: GlossaryNames) -> None:
        self.names = names
        self.linked: dict[str, None] = {}

    def link(self, html: str) -> str:
        """The HTML with first mentions linked to the glossary."""
        pattern = self.names.pattern
        if pattern is None:
            return html
        closed: list[str] = []
        out: list[str] = []
        for part in _TAG.split(html):
            if part.startswith("<"):
                _follow(part, closed)
                out.append(part)
            elif closed or not part.strip():
                out.append(part)
            else:
                out.append(self._with_links(part, pattern))
        return "".join(out)

    def _with_links(self, text: str, pattern: re.Pattern[str]) -> str:
        """Search in lower case: a pattern that ignores case is five times slower."""
        lower = text.lower()
        if len(lower) != len(text):
            return text
        out: list[str] = []
        done = 0
        for match in pattern.finditer(lower):
            written = text[match.start() : match.end()]
            name = " ".join(unescape(match[1]).split())
            anchor = self.names.anchors.get(name)
            if anchor is None or anchor in self.linked:
                continue
            if written.islower() and (len(name) <= 3 or name in self.names.capitals):
                continue  # an ordinary word: "it" is not IT
            self.linked[anchor] = None
            link = f'<a class="term" href="/glossary#{anchor}">{written}</a>'
            out += [text[done : match.start()], link]
            done = match.end()
        return "".join([*out, text[done:]])


def _follow(tag: str, closed: list[str]) -> None:
    match = re.match(r"</?([a-zA-Z0-9]+)", tag)
    if match is None or match[1].lower() not in _CLOSED:
        return
    if tag.startswith("</"):
        if closed:
            closed.pop()
    elif not tag.endswith("/>"):
        closed.append(match[1])


def anchors_of(terms: Sequence[GlossaryTerm]) -> list[tuple[str, str]]:
    """The pairs that `names_of` takes."""
    return [(term.name, term.anchor) for term in terms]
