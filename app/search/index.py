"""`find`, answered by an FTS5 index in memory that follows the course."""

import dataclasses
import functools
import sqlite3
import threading
import weakref
from collections.abc import Sequence
from typing import Any

from app.content.live.library import Library
from app.estimator import registry
from app.questions.phrases import remove_invisible
from app.search.documents import documents
from app.search.excerpts import excerpt, split_highlights
from app.search.findings import SearchDocument, SearchHit, SearchResults
from app.search.words import correct_spelling, expression, is_known, vocabulary, words_of

_MOST_OF_A_KIND = 10
EVERY = 1000
"""More than there is of any kind."""
_LAYOUT = """
CREATE VIRTUAL TABLE document USING fts5(
  title, body, place UNINDEXED, tokenize = 'unicode61 remove_diacritics 2'
)
"""
# A word in a title weighs as much as eight in the text.
_ASK = """
SELECT place, highlight(document, 0, char(2), char(3)),
       highlight(document, 1, char(2), char(3))
FROM document WHERE document MATCH ? ORDER BY bm25(document, 8.0, 1.0)
"""


def find(library: Library, words: str, most: int = _MOST_OF_A_KIND) -> SearchResults:
    """What of the course has all of the words, or words that begin like them.

    When nothing has, words that nothing knows are mended; when that does not help,
    whatever has some of the words is given. `most` are listed of each kind.
    """
    wanted = words_of(words)
    if not wanted:
        return SearchResults()
    return _index_of(_CourseVersion(library)).find(wanted, most)


@dataclasses.dataclass(frozen=True, slots=True)
class _CourseVersion:
    """A state of the course, known by its version."""

    library: Library

    def __hash__(self) -> int:
        return hash(self.library.version)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _CourseVersion) and other.library.version == self.library.version


class _SearchIndex:
    """The documents of one state of the course, ready to be asked."""

    def __init__(self, documents: Sequence[SearchDocument]) -> None:
        found = [_without_invisible(document) for document in documents]
        self._documents = found
        self._known = vocabulary(f"{d.title} {d.body}" for d in found)
        self._lock = threading.Lock()
        self._rows = sqlite3.connect(":memory:", check_same_thread=False)
        weakref.finalize(self, self._rows.close)
        self._rows.execute(_LAYOUT)
        self._rows.executemany(
            "INSERT INTO document VALUES (?, ?, ?)",
            ((d.title, d.body, place) for place, d in enumerate(found)),
        )

    def find(self, words: Sequence[str], most: int) -> SearchResults:
        """The findings for words in small letters."""
        rows = self._ask(expression(words))
        if rows:
            return self._findings(rows, words, most)
        better = [w for w in correct_spelling(words, self._known) if is_known(w, self._known)]
        for joint in ("AND", "OR"):
            rows = self._ask(expression(better, joint)) if better else []
            if rows:
                found = self._findings(rows, better, most)
                meant, some = " ".join(better), joint == "OR"
                return dataclasses.replace(found, meant=meant, some=some)
        return SearchResults()

    def _ask(self, wanted: str) -> list[Any]:
        with self._lock:
            return self._rows.execute(_ASK, (wanted,)).fetchall()

    def _findings(self, rows: Sequence[Any], words: Sequence[str], most: int) -> SearchResults:
        name = " ".join(words)
        ordered = sorted(rows, key=lambda row: self._distance(row[0], name))
        taken: dict[str, int] = {}
        hits = []
        for place, title, body in ordered:
            document = self._documents[place]
            taken[document.kind] = taken.get(document.kind, 0) + 1
            if taken[document.kind] <= most:
                hits.append(_hit(document, title, body))
        return SearchResults(tuple(hits), len(rows))

    def _distance(self, place: int, name: str) -> int:
        """What is called exactly so comes first, cards after what explains them."""
        document = self._documents[place]
        title = document.title.casefold()
        if title == name or document.kind == "place":
            return 0
        if document.kind == "card":
            return 3
        return 1 if title.startswith(name) else 2


def _without_invisible(document: SearchDocument) -> SearchDocument:
    title, body = remove_invisible(document.title), remove_invisible(document.body)
    return dataclasses.replace(document, title=title, body=body)


def _hit(document: SearchDocument, title: str, body: str) -> SearchHit:
    return SearchHit(
        document.kind,
        document.address,
        document.where,
        split_highlights(title),
        split_highlights(excerpt(body)),
    )


@functools.lru_cache(maxsize=6)  # courses, or states of one
def _index_of(state: _CourseVersion) -> _SearchIndex:
    return _SearchIndex(documents(state.library, registry.entries()))
