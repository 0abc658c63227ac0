"""The glossary as a page shows it: under letters, with links that lead somewhere."""

import dataclasses
from collections.abc import Mapping

from app.content.live.library import Library
from app.content.model import GlossaryTerm


@dataclasses.dataclass(frozen=True, slots=True)
class SeeAlsoLink:
    """Where a “see” leads."""

    words: str
    address: str


@dataclasses.dataclass(frozen=True, slots=True)
class GlossaryEntry:
    """A term under its letter; everything that is no letter stands under “#”."""

    term: GlossaryTerm
    initial: str
    see: tuple[SeeAlsoLink, ...]


def entries(library: Library) -> list[GlossaryEntry]:
    """Every term in alphabetical order."""
    terms = sorted(library.glossary.values(), key=lambda t: t.name.casefold())
    pages = {slug: topic.title for slug, topic in library.topics.items()}
    return [GlossaryEntry(t, _initial(t.name), _links(t, library.glossary, pages)) for t in terms]


def _initial(name: str) -> str:
    first = name[:1].upper()
    return first if first.isalpha() else "#"


def _links(
    term: GlossaryTerm, glossary: Mapping[str, GlossaryTerm], pages: Mapping[str, str]
) -> tuple[SeeAlsoLink, ...]:
    links = (_link(see, glossary, pages) for see in term.see)
    return tuple(x for x in links if f'href="{x.address}' not in term.meaning.html)


def _link(see: str, glossary: Mapping[str, GlossaryTerm], pages: Mapping[str, str]) -> SeeAlsoLink:
    if see in glossary:
        return SeeAlsoLink(glossary[see].name, f"#{see}")
    slug = see.removeprefix("/concepts/").split("#")[0]
    if slug in pages:
        return SeeAlsoLink(pages[slug], f"/concepts/{slug}")
    return SeeAlsoLink(see.removeprefix("https://"), see)
