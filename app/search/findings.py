"""What a search gives back: hits with the words marked that led to them."""

import dataclasses
from typing import Literal

Kind = Literal["page", "term", "card", "calculator", "part", "place"]


@dataclasses.dataclass(frozen=True, slots=True)
class SearchDocument:
    """A thing that can be found: what it is called, what it says, where it lies.

    `where` names the page it belongs to, or is empty.
    """

    kind: Kind
    title: str
    body: str
    address: str
    where: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class HighlightPiece:
    """A run of text; `hit` where it is what was looked for."""

    text: str
    hit: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class SearchHit:
    """A document that was found, with its title and an excerpt in pieces."""

    kind: Kind
    address: str
    where: str
    title: tuple[HighlightPiece, ...]
    excerpt: tuple[HighlightPiece, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class SearchResults:
    """The best hits, the best first; `count` tells how many there are in all.

    `meant` is what was looked for instead when nothing has the words as typed; `some`
    says that the hits hold only some of them.
    """

    hits: tuple[SearchHit, ...] = ()
    count: int = 0
    meant: str = ""
    some: bool = False
