"""The glossary as a page shows it: under letters, with links that lead somewhere."""

import dataclasses
from collections.abc import Mapping

from app.content.live.library import Library
from app.content.model import Term


@dataclasses.dataclass(frozen=True, slots=True)
class Link:
    """Where a “see” leads."""

    words: str
    address: str


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """A term under its letter; everything that is no letter stands under “#”."""

    term: Term
    initial: str
    see: tuple[Link, ...]


def entries(library: Library) -> list[Entry]:
    """Every term in alphabetical order."""
    terms = sorted(library.glossary.values(), key=lambda t: t.name.casefold())
    pages = {slug: topic.title for slug, topic in library.topics.items()}
    return [Entry(t, _initial(t.name), _links(t, library.glossary, pages)) for t in terms]


def _initial(name: str) -> str:
    first = name[:1].upper()
    return first if first.isalpha() else "#"


def _links(term: Term, glossary: Mapping[str, Term], pages: Mapping[str, str]) -> tuple[Link, ...]:
    links = (_link(see, glossary, pages) for see in term.see)
    return tuple(x for x in links if f'href="{x.address}' not in term.meaning.html)


def _link(see: str, glossary: Mapping[str, Term], pages: Mapping[str, str]) -> Link:
    if see in glossary:
        return Link(glossary[see].name, f"#{see}")
    slug = see.removeprefix("/concepts/").split("#")[0]
    if slug in pages:
        return Link(pages[slug], f"/concepts/{slug}")
    return Link(see.removeprefix("https://"), see)
