"""Words looked for on all cards: the course's, missed questions, terms, one's own."""

import dataclasses
import itertools
from collections.abc import Iterator

from app.cards.names import OWN, QUESTION, TERM, is_added_card, parse_card_id
from app.cards.store import added_cards, studied
from app.content.live.library import Library
from app.flashcards import store
from app.flashcards.own_cards import ListedCard, row_of, standing_words
from app.flashcards.review_table import find_cards_once
from app.flashcards.store import own
from app.learners.desk import RequestContext
from app.questions.asking import excerpt
from app.questions.phrases import fold_text, split_query
from app.scheduling import LEECH

MOST = 50
"""So many cards are shown; more words find fewer."""
_MOST_WORDS = 8


@dataclasses.dataclass(frozen=True, slots=True)
class CardSearchResult:
    """The cards with all the words of `query`; `more` says that others have them."""

    query: str
    rows: tuple[ListedCard, ...]
    more: bool


def search_cards(desk: RequestContext, query: str) -> CardSearchResult:
    """The first cards with every word, in any order: added ones, then the course's."""
    words = split_query(query)[:_MOST_WORDS]
    if not words:
        return CardSearchResult("", (), more=False)
    names = list(itertools.islice(_names(desk, words), MOST + 1))
    rows = tuple(_rows(desk, names[:MOST]))
    return CardSearchResult(" ".join(query.split()), rows, more=len(names) > MOST)


def _names(desk: RequestContext, words: list[str]) -> Iterator[str]:
    db, learner, library = desk.db, desk.learner.id, desk.library
    if learner:
        yield from own.search_own(db, learner, words)
        for kind in (QUESTION, TERM):
            for card in sorted(studied(db, learner, kind)):
                if _has(_text(library, card), words):
                    yield card
    for card in library.cards:
        if _has(_text(library, card), words):
            yield card


def _text(library: Library, card: str) -> str:
    """What can be found of a card that the course holds."""
    kind, name = parse_card_id(card)
    if kind == QUESTION:
        question = library.questions.get(name)
        parts = [question.stem.plain, question.explanation.plain] if question else []
    elif kind == TERM:
        term = library.glossary.get(name)
        parts = [term.name, term.meaning.plain] if term else []
    else:
        course = library.cards[card]
        title = library.topics[course.topic].title
        parts = [course.front.plain, course.back.plain, title, *course.tags]
    return fold_text(" ".join(parts))


def _has(text: str, words: list[str]) -> bool:
    return all(word in text for word in words)


def _rows(desk: RequestContext, names: list[str]) -> Iterator[ListedCard]:
    mine = [name for name in names if is_added_card(name)]
    added = added_cards(desk.db, desk.learner.id, mine)
    course = [name for name in names if not is_added_card(name)]
    held = store.standings_of(desk.db, desk.learner.id, course)
    found = find_cards_once(desk, mine)
    for name in names:
        if name in added:
            yield row_of(desk, added[name], found.get(name))
        elif parse_card_id(name)[0] != OWN:
            standing, aside = held.get(name, (None, False))
            card = desk.library.cards[name]
            yield ListedCard(
                card=name,
                words=excerpt(card.front),
                state=standing_words(standing, desk),
                aside=aside,
                leech=standing is not None and standing.lapses >= LEECH,
                kind=desk.library.topics[card.topic].title,
            )
