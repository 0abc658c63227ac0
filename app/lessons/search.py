"""Full-text search."""

import dataclasses
import difflib
import functools
import itertools
import re
import sqlite3
import threading
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from app.accounts.current_learner import ReadContext, RequestContext
from app.content.course import Course
from app.estimator import registry
from app.estimator.hardware.part_values import CatalogPart, list_parts, part_url
from app.estimator.registry import EstimateSpec
from app.lessons.notes import group_notes_by_page
from app.lessons.store import load_saved_notes
from app.markup.mathml import latex_to_plain_characters
from app.markup.model import Flashcard, Topic
from app.markup.text import BOUNDARY, add_boundaries_in_unspaced_scripts
from app.questions.question_form import excerpt_for_title
from app.questions.question_type import (
    normalize_search_text,
    remove_invisible_characters,
    split_search_query,
)
from app.spaced_repetition import added_cards
from app.spaced_repetition.added_card_ids_and_faces import build_own_card
from app.widgets.estimate_view import EXAMPLE_QUESTIONS

Kind = Literal["page", "term", "card", "calculator", "part", "place", "note", "own card"]


@dataclasses.dataclass(frozen=True, slots=True)
class SearchDocument:
    """One searchable document: title, text, and URL.

    `page_title` names the page it belongs to, or is empty.
    """

    kind: Kind
    title: str
    body: str
    url: str
    page_title: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class HighlightPiece:
    """A run of text; `is_match` if it matched the query."""

    text: str
    is_match: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class SearchHit:
    """A matching document, with its title and an excerpt in pieces."""

    kind: Kind
    url: str
    page_title: str
    title: tuple[HighlightPiece, ...]
    excerpt: tuple[HighlightPiece, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class SearchResults:
    """The best hits, best first; `hit_count` is the number of all hits.

    `corrected_query` is the corrected query, if nothing matched the words as typed.
    `match_only_some_words` says that the hits match only some of the words.
    """

    hits: tuple[SearchHit, ...] = ()
    hit_count: int = 0
    corrected_query: str = ""
    match_only_some_words: bool = False


_SITE_PAGE_DOCUMENTS = (
    SearchDocument(
        "place",
        "Mock exams",
        "A mock exam, practice exam or practice test: questions against the clock.",
        "/exams",
    ),
    SearchDocument(
        "place",
        "Pass mark and target",
        "No pass mark, passing score or cut score is assumed; set your own target.",
        "/settings",
    ),
    SearchDocument(
        "place",
        "Settings",
        "Change exam day, minutes a day, days off, target, cards and shortcuts.",
        "/settings",
    ),
    SearchDocument("place", "Practice questions", "Quiz by topic and objective.", "/quiz"),
    SearchDocument("place", "Flashcards", "Cards that come back when due.", "/flashcards"),
    SearchDocument(
        "place",
        "Change a card",
        "Skip it until tomorrow (Anki: bury), put it aside (suspend), reset it, or set "
        "its due date: open “More” below a card.",
        "/flashcards/deck",
    ),
    SearchDocument("place", "Study plan", "The days until the exam date.", "/plan"),
    SearchDocument("place", "Progress", "Mastery and readiness by objective.", "/progress"),
    SearchDocument("place", "Hardware", "GPUs, servers, links: each value sourced.", "/hardware"),
)
_BEFORE_A_STOP = re.compile(r"\s+(?=[.,;:!?)])")
_PAGE_POINTER_SENTENCE = re.compile(r"(?:\s*More in [^.]+\.)?(?:\s*Source: .+)?$")
_ASKED_FOR = (
    "gpus",
    "memory",
    "memory_bandwidth",
    "nvlink",
    "bandwidth",
    "port_rate",
    "tdp",
    "power",
)
_LABEL_BY_FIELD = {"gpus": "GPUs"}


def list_search_documents(
    course: Course, calculators: Iterable[EstimateSpec]
) -> list[SearchDocument]:
    """Return page sections, terms, card fronts, calculators, hardware, and app pages.

    Questions are left out, because their options and explanations give away the answer. Reversed
    cards are left out, because their front is the answer of the other card.
    """
    documents = [
        *_yield_section_documents(course),
        *_yield_term_documents(course),
        *_yield_card_documents(course),
    ]
    if not course.syllabus.offers_calculators:
        return [*(p for p in _SITE_PAGE_DOCUMENTS if p.url != "/hardware"), *documents]
    return [
        *_SITE_PAGE_DOCUMENTS,
        *documents,
        *_yield_calculator_documents(calculators),
        *map(_build_hardware_document, list_parts()),
    ]


def _yield_section_documents(course: Course) -> Iterator[SearchDocument]:
    for topic in course.topics.values():
        cards = [course.cards[c] for c in topic.cards if c in course.cards]
        for section in topic.sections:
            body = _to_one_line(_remove_card_backs(section.plain, cards))
            if section.anchor:
                address = f"/concepts/{topic.slug}#{section.anchor}"
                yield SearchDocument("page", section.title, body, address, topic.title)
            else:
                yield _build_page_opening_document(topic, body)


def _build_page_opening_document(topic: Topic, body: str) -> SearchDocument:
    text = f"{topic.summary} {body}".strip()
    return SearchDocument("page", topic.title, text, f"/concepts/{topic.slug}")


def _remove_card_backs(plain: str, cards: Sequence[Flashcard]) -> str:
    """Return the text of a section without the answers of the cards in it."""
    for card in cards:
        front_and_back = f"{card.front.plain} {card.back.plain}"
        if not card.is_reverse:
            plain = plain.replace(front_and_back, card.front.plain)
    return plain


def _yield_term_documents(course: Course) -> Iterator[SearchDocument]:
    for term in course.glossary.values():
        body = _PAGE_POINTER_SENTENCE.sub("", _to_one_line(term.meaning.plain))
        yield SearchDocument("term", term.name, body, f"/glossary#{term.anchor}")


def _yield_card_documents(course: Course) -> Iterator[SearchDocument]:
    for card in course.cards.values():
        if card.is_reverse:
            continue
        topic = course.topics.get(card.topic)
        front, where = _to_one_line(card.front.plain), topic.title if topic else ""
        yield SearchDocument("card", front, "", f"/flashcards?card={card.id}", where)


def _yield_calculator_documents(calculators: Iterable[EstimateSpec]) -> Iterator[SearchDocument]:
    for entry in calculators:
        figures = ", ".join(output.label for output in entry.outputs)
        body = f"{entry.summary} {figures}"
        address = f"/calculators/{entry.name}"
        yield SearchDocument("calculator", entry.title, body, address)
    for question in EXAMPLE_QUESTIONS:
        yield SearchDocument(
            "calculator", question.question, question.example, question.calculator_url
        )


def _build_hardware_document(part: CatalogPart) -> SearchDocument:
    """Return a part with its maker, its other names, and the values people search for."""
    values = [v for name in _ASKED_FOR if (v := part.get(name)) and v.state == "known"]
    value_texts = ", ".join(
        f"{_LABEL_BY_FIELD.get(v.field.name, v.field.label)} {v.formatted_value}"
        f"{' one way' * (v.field.convention == 'one way')}"
        for v in values
    )
    aliases = f"Also {', '.join(part.aliases)}" if part.aliases else ""
    body = _to_one_line(". ".join(filter(None, (part.vendor, value_texts, aliases, part.note))))
    return SearchDocument("part", part.name, body, part_url(part.id))


def _to_one_line(text: str) -> str:
    return _BEFORE_A_STOP.sub("", " ".join(latex_to_plain_characters(text).split()))


# British and American spellings, as parts of words. A form that matches nothing costs nothing.
_ENDING_PAIRS = (
    ("centre", "center"),
    ("isation", "ization"),
    ("ising", "izing"),
    ("ised", "ized"),
    ("ise", "ize"),
    ("yse", "yze"),
    ("colour", "color"),
    ("behaviour", "behavior"),
    ("elling", "eling"),
    ("programme", "program"),
)
_MIN_TYPO_LETTERS = 5  # of a word that may be a typo; shorter ones are often acronyms
_SHORTEST_PART = 3  # letters of each of two words that were typed as one
_QUERY_WORD = re.compile(r"\w+(?:[-./+'\u2019:]\w+)*")
# Words of a question that say nothing about its topic.
_FILLER_WORDS = frozenset(
    [
        "a",
        "an",
        "the",
        "is",
        "are",
        "do",
        "does",
        "what",
        "which",
        "who",
        "why",
        "how",
        "when",
        "of",
        "for",
        "to",
        "in",
        "on",
        "with",
        "and",
        "or",
        "vs",
        "versus",
        "between",
        "difference",
        "many",
        "much",
        "there",
        "has",
        "have",
        "mean",
        "means",
        "stand",
    ]
)
_MAX_QUERY_WORDS = 8
_MAX_QUERY_LENGTH = 100


def split_query_without_fillers(query: str) -> tuple[str, ...]:
    """Return the words of a query in lower case, at most eight.

    Filler words are left out if other words remain.

    >>> split_query_without_fillers("What is the difference between GPU and CPU?"), split_query_without_fillers("What is")
    (('gpu', 'cpu'), ('what', 'is'))
    """
    visible_text = remove_invisible_characters(query[:_MAX_QUERY_LENGTH])
    terms = [w.casefold() for w in _QUERY_WORD.findall(visible_text)]
    content_words = [word for word in terms if word not in _FILLER_WORDS]
    return tuple(content_words or terms)[:_MAX_QUERY_WORDS]


def count_word_occurrences(texts: Iterable[str]) -> dict[str, int]:
    known: dict[str, int] = {}
    for text in texts:
        for word in re.findall(r"\w+", add_boundaries_in_unspaced_scripts(text.casefold())):
            known[word] = known.get(word, 0) + 1
    return known


def list_singular_and_spelling_variants(word: str) -> tuple[str, ...]:
    """Return a word and other forms whose beginning it may match.

    Plurals also match the singular, and each spelling of English the other.

    >>> list_singular_and_spelling_variants("centres")
    ('centres', 'centre', 'centers', 'center')
    """
    forms = [word]
    if len(word) > 4 and word.endswith("ies"):
        forms.append(word[:-3] + "y")
    elif len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        forms.append(word[:-1])
    for spelling, other_spelling in (*_ENDING_PAIRS, *((b, a) for a, b in _ENDING_PAIRS)):
        forms += [
            form.replace(spelling, other_spelling) for form in tuple(forms) if spelling in form
        ]
    return tuple(dict.fromkeys(forms))


def list_bigrams_of_unspaced_scripts(words: Iterable[str]) -> list[str]:
    """Return all pairs of neighboring letters, where a word may be several without spaces.

    >>> list_bigrams_of_unspaced_scripts(["缓存大", "gpu"])
    ['缓存', '存大']
    """
    parts = [
        add_boundaries_in_unspaced_scripts(word).split(BOUNDARY)
        for word in words
        if add_boundaries_in_unspaced_scripts(word) != word
    ]
    return [a + b for part in parts for a, b in itertools.pairwise(filter(None, part))]


def build_fts_match_expression(words: Sequence[str], operator: str = "AND") -> str:
    """Return an FTS expression: every word as a prefix, in any order."""
    return f" {operator} ".join(
        "("
        + " OR ".join(
            f'"{add_boundaries_in_unspaced_scripts(form)}"*'
            for form in list_singular_and_spelling_variants(word)
        )
        + ")"
        for word in words
    )


def is_beginning_of_known_word(word: str, known_words: Collection[str]) -> bool:
    """Return whether a known word starts with this word or its singular."""
    starts = [
        re.split(r"\W", add_boundaries_in_unspaced_scripts(form).lstrip(BOUNDARY))[0]
        for form in list_singular_and_spelling_variants(word)
    ]
    return any(k.startswith(start) for start in starts for k in known_words)


def correct_spelling(
    words: Sequence[str], occurrences_by_word: Mapping[str, int]
) -> tuple[str, ...]:
    """Replace each unknown word by the likeliest known one.

    A word that begins a known one, or is similar to none, stays as it is. So does one of fewer than
    five letters, which may be an acronym. Two words typed as one are split.

    >>> correct_spelling(["datacenter", "colling"], {"data": 9, "center": 4, "cooling": 7})
    ('data', 'center', 'cooling')
    """
    return tuple(
        part for word in words for part in _correct_word(word, occurrences_by_word).split()
    )


def _correct_word(word: str, occurrences_by_word: Mapping[str, int]) -> str:
    if len(word) < _MIN_TYPO_LETTERS or is_beginning_of_known_word(word, occurrences_by_word):
        return word
    splits = _split_into_known_words(word, occurrences_by_word)
    if splits:
        return splits
    nearby = [k for k in occurrences_by_word if abs(len(k) - len(word)) <= 2 and not k.isdigit()]
    similar_words = [
        similar
        for similar in difflib.get_close_matches(word, nearby, n=5, cutoff=0.7)
        if _count_edits(word, similar) <= max(2, len(word) // 4)
    ]
    if not similar_words:
        return word
    best_similarity = _compute_word_similarity(word, similar_words[0])
    closest_words = [
        c for c in similar_words if best_similarity - _compute_word_similarity(word, c) < 0.02
    ]
    return max(closest_words, key=lambda rival: occurrences_by_word[rival])


def _split_into_known_words(word: str, occurrences_by_word: Mapping[str, int]) -> str:
    """Split a word into the two most common known words; empty if impossible."""

    def count_commonest_spelling(part: str) -> int:
        return max(occurrences_by_word.get(f, 0) for f in list_singular_and_spelling_variants(part))

    split_points = range(_SHORTEST_PART, len(word) - _SHORTEST_PART + 1)
    pairs = [(word[:split_at], word[split_at:]) for split_at in split_points]
    best_pair = max(pairs, key=lambda pair: min(map(count_commonest_spelling, pair)), default=())
    return " ".join(best_pair) if all(map(count_commonest_spelling, best_pair)) else ""


def _compute_word_similarity(word: str, other: str) -> float:
    return difflib.SequenceMatcher(None, other, word).ratio()


def _count_edits(word: str, other: str) -> int:
    """Return how many letters to change, add or leave out; two swapped letters are two.

    >>> _count_edits("colling", "cooling"), _count_edits("kuberentes", "kubernetes")
    (1, 2)
    """
    changes = difflib.SequenceMatcher(None, other, word).get_opcodes()
    return sum(max(i2 - i1, j2 - j1) for tag, i1, i2, j1, j2 in changes if tag != "equal")


OPEN, CLOSE = "\x02", "\x03"
"""Markers before and after a matched word."""
_MARKED_MATCH = re.compile(f"{OPEN}([^{CLOSE}]*)")


def split_highlights(marked_text: str) -> tuple[HighlightPiece, ...]:
    pieces = []
    for part in marked_text.replace(BOUNDARY, "").split(OPEN):
        hit, closing_mark, rest = part.partition(CLOSE)
        pieces += (
            [HighlightPiece(hit, is_match=True), HighlightPiece(rest)]
            if closing_mark
            else [HighlightPiece(part)]
        )
    return tuple(piece for piece in pieces if piece.text)


_MOST_OF_A_KIND = 10
EVERY = 1000
"""More than the number of hits of any kind."""
_CREATE_DOCUMENT_TABLE = """
CREATE VIRTUAL TABLE document USING fts5(
  title, body, place UNINDEXED, kind UNINDEXED, tokenize = 'unicode61 remove_diacritics 2'
)
"""
# A word in a title counts as much as eight in the text. A term shows all of its meaning.
_SELECT_MATCHING_DOCUMENTS = """
SELECT place, highlight(document, 0, char(2), char(3)),
       snippet(document, 1, char(2), char(3), '…', iif(kind = 'term', 64, 26))
FROM document WHERE document MATCH ? ORDER BY bm25(document, 8.0, 1.0)
"""


def search_course(
    course: Course, query: str, limit_per_kind: int = _MOST_OF_A_KIND
) -> SearchResults:
    """Search the course for all of the words, as prefixes.

    If nothing matches, unknown words are corrected; if that does not help, documents with some of
    the words are returned. At most `limit` are listed of each kind.
    """
    search_words = split_query_without_fillers(query)
    if not search_words:
        return SearchResults()
    return _build_index(_CourseVersionKey(course)).search(search_words, limit_per_kind)


@dataclasses.dataclass(frozen=True, slots=True)
class _CourseVersionKey:
    """A version of the course, compared and hashed by its version only."""

    course: Course

    def __hash__(self) -> int:
        return hash(self.course.version)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _CourseVersionKey) and other.course.version == self.course.version


class _SearchIndex:
    """The full-text index of one course version."""

    def __init__(self, documents: Sequence[SearchDocument]) -> None:
        cleaned = [_strip_invisible_characters(document) for document in documents]
        self._documents = cleaned
        self._known = count_word_occurrences(f"{d.title} {d.body}" for d in cleaned)
        self._lock = threading.Lock()
        self._rows = sqlite3.connect(":memory:", check_same_thread=False)
        weakref.finalize(self, self._rows.close)
        self._rows.execute(_CREATE_DOCUMENT_TABLE)
        self._rows.executemany(
            "INSERT INTO document VALUES (?, ?, ?, ?)",
            (
                (
                    add_boundaries_in_unspaced_scripts(d.title),
                    add_boundaries_in_unspaced_scripts(d.body),
                    index,
                    d.kind,
                )
                for index, d in enumerate(cleaned)
            ),
        )

    def search(self, words: Sequence[str], limit_per_kind: int) -> SearchResults:
        """Return the results for words in lower case."""
        rows = self._query_rows(build_fts_match_expression(words))
        if rows:
            return self._build_ranked_results(rows, words, limit_per_kind)
        corrected_words = [
            w
            for w in correct_spelling(words, self._known)
            if is_beginning_of_known_word(w, self._known)
        ]
        for operator, query_words in (
            ("AND", corrected_words),
            ("OR", corrected_words),
            ("OR", list_bigrams_of_unspaced_scripts(words)),
        ):
            rows = (
                self._query_rows(build_fts_match_expression(query_words, operator))
                if query_words
                else []
            )
            if rows:
                results = self._build_ranked_results(rows, query_words, limit_per_kind)
                corrected_query = (
                    " ".join(corrected_words) if query_words is corrected_words else ""
                )
                return dataclasses.replace(
                    results, corrected_query=corrected_query, match_only_some_words=operator == "OR"
                )
        return SearchResults()

    def _query_rows(self, match_expression: str) -> list[Any]:
        with self._lock:
            return self._rows.execute(_SELECT_MATCHING_DOCUMENTS, (match_expression,)).fetchall()

    def _build_ranked_results(
        self, rows: Sequence[Any], words: Sequence[str], limit_per_kind: int
    ) -> SearchResults:
        name = " ".join(words)
        ordered = sorted(rows, key=lambda row: self._rank_key(row[0], row[1], name))
        count_by_kind: dict[str, int] = {}
        hits = []
        for document_index, title, excerpt in ordered:
            document = self._documents[document_index]
            count_by_kind[document.kind] = count_by_kind.get(document.kind, 0) + 1
            if count_by_kind[document.kind] <= limit_per_kind:
                hits.append(_build_search_hit(document, title, excerpt))
        return SearchResults(tuple(hits), len(rows))

    def _rank_key(
        self, document_index: int, marked_title: str, query: str
    ) -> tuple[int, int, bool]:
        """Return a sort key: documents of this name first, then by how many words the title has.

        Hardware comes after pages, unless the query names it, and cards after what explains them.
        """
        document = self._documents[document_index]
        title = document.title.casefold()
        matches = len(set(_MARKED_MATCH.findall(marked_title.casefold())))
        if document.kind == "card":
            group = 6
        elif document.kind == "place" or query in _list_title_variants(title):
            group = 0
        elif document.kind == "part" and set(query.split()) >= set(title.split()):
            group = 1
        elif document.kind == "part":
            group = 3 if matches else 5
        else:
            group = 2 if matches else 4
        return group, -matches, not title.startswith(query)


def _list_title_variants(title: str) -> set[str]:
    """Return what a title calls its subject.

    >>> sorted(_list_title_variants("Multi-Instance GPU (MIG)"))
    ['mig', 'multi-instance gpu', 'multi-instance gpu (mig)']
    """
    whole = title.casefold()
    name, _, short = whole.partition(" (")
    return {whole, name, short.rstrip(")")} - {""}


def _strip_invisible_characters(document: SearchDocument) -> SearchDocument:
    title, body = (
        remove_invisible_characters(document.title),
        remove_invisible_characters(document.body),
    )
    return dataclasses.replace(document, title=title, body=body)


def _build_search_hit(
    document: SearchDocument, marked_title: str, marked_excerpt: str
) -> SearchHit:
    return SearchHit(
        document.kind,
        document.url,
        document.page_title,
        split_highlights(marked_title),
        split_highlights(marked_excerpt),
    )


@functools.lru_cache(maxsize=6)  # courses, or versions of one
def _build_index(course_version: _CourseVersionKey) -> _SearchIndex:
    return _SearchIndex(list_search_documents(course_version.course, registry.list_estimates()))


_MOST_OWN_OF_A_KIND = 5


def search_notes_and_own_cards(ctx: RequestContext, query: str) -> list[SearchHit]:
    """Return the learner's notes and own cards that contain all words, at most five of each."""
    words = split_search_query(query[:_MAX_QUERY_LENGTH])
    if not (words and ctx.learner.id):
        return []
    notes, cards = _yield_note_hits(ctx, words), _yield_own_card_hits(ctx, words)
    return [
        *itertools.islice(notes, _MOST_OWN_OF_A_KIND),
        *itertools.islice(cards, _MOST_OWN_OF_A_KIND),
    ]


def _yield_note_hits(ctx: RequestContext, words: Sequence[str]) -> Iterator[SearchHit]:
    for page in group_notes_by_page(ctx.course, load_saved_notes(ctx.db, ctx.learner.id)):
        for section in page.sections:
            folded = normalize_search_text(section.note.text)
            if all(word in folded for word in words):
                title = (HighlightPiece(section.title),)
                excerpt = _cut_around_first_match(_mark_words(section.note.text, words))
                yield SearchHit("note", section.url, page.title, title, split_highlights(excerpt))


def _yield_own_card_hits(ctx: RequestContext, words: Sequence[str]) -> Iterator[SearchHit]:
    """Yield the newest own and edited cards by their front, because the back is the answer."""
    found = added_cards.search_own_card_ids(ctx.db, ctx.learner.id, words)
    cards = list(itertools.islice(found, 2 * _MOST_OWN_OF_A_KIND))  # some may have been removed
    records = added_cards.load_added_card_records(ctx.db, ctx.learner.id, cards)
    details = added_cards.load_added_card_contents(ctx.db, ctx.learner.id, cards, ctx.now)
    of_course = [c for c in cards if c in ctx.course.cards and not ctx.course.cards[c].is_reverse]
    edited = added_cards.load_own_texts_of_course_cards(ctx.db, ctx.learner.id, of_course)
    for card in cards:
        faces = edited.get(card)
        if card in records and not records[card].is_declined:
            faces = details[card].own_faces
        if faces:
            front = excerpt_for_title(build_own_card(card, faces).front)
            title = split_highlights(_mark_words(front, words))
            yield SearchHit("own card", f"/flashcards?card={quote(card)}", "", title, ())


def search_course_without_edited_cards(
    ctx: RequestContext, query: str, limit_per_kind: int = _MOST_OF_A_KIND
) -> SearchResults:
    """Search the course; cards that the learner edited are found among the own ones instead."""
    results = search_course(ctx.course, query, limit_per_kind)
    card_by_url = {hit.url: hit.url.partition("=")[2] for hit in results.hits if hit.kind == "card"}
    edited = added_cards.load_own_texts_of_course_cards(
        ctx.db, ctx.learner.id, [*card_by_url.values()]
    )
    hits = tuple(hit for hit in results.hits if card_by_url.get(hit.url) not in edited)
    left_out_count = len(results.hits) - len(hits)
    return dataclasses.replace(results, hits=hits, hit_count=results.hit_count - left_out_count)


def _mark_words(text: str, words: Sequence[str]) -> str:
    """Return the text on one line, with marks around the words."""
    line = " ".join(remove_invisible_characters(text).split())
    longest_first = sorted(words, key=len, reverse=True)
    return re.sub(
        "|".join(map(re.escape, longest_first)), rf"{OPEN}\g<0>{CLOSE}", line, flags=re.IGNORECASE
    )


_NOTE_EXCERPT_LENGTH = 160
_LENGTH_BEFORE_MATCH = 60


def _cut_around_first_match(marked_text: str) -> str:
    match_start = marked_text.find(OPEN)
    begin = max(0, match_start - _LENGTH_BEFORE_MATCH)
    begin = begin and (marked_text.find(" ", begin, match_start) + 1 or begin)
    shown = marked_text[begin : begin + _NOTE_EXCERPT_LENGTH]
    is_whole = len(shown) < _NOTE_EXCERPT_LENGTH
    leading_ellipsis = "…" if begin else ""
    return leading_ellipsis + (shown if is_whole else f"{shown.rpartition(' ')[0] or shown}…")


router = APIRouter(include_in_schema=False)
SearchText = Annotated[str, Query(max_length=400)]


@router.get("/search")
def show_search_page(ctx: ReadContext, q: SearchText = "", *, whole: bool = False) -> HTMLResponse:
    return ctx.render_page(
        "lessons/search.html",
        query=q,
        results=search_course_without_edited_cards(ctx, q, EVERY if whole else _MOST_OF_A_KIND),
        own_hits=search_notes_and_own_cards(ctx, q),
    )


@router.get("/search/results")
def show_search_results(ctx: ReadContext, q: SearchText = "") -> HTMLResponse:
    """The results fragment. It has its own URL, so that no cache serves it as the whole page."""
    return ctx.render_page(
        "lessons/_search_results.html",
        query=q,
        results=search_course_without_edited_cards(ctx, q),
        own_hits=search_notes_and_own_cards(ctx, q),
    )
