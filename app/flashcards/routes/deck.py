"""The deck: every card of a topic and how it stands, and the cards put aside."""

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from app.content.model import Topic
from app.flashcards import store
from app.flashcards.forms import Wished
from app.flashcards.own_cards import ListedCard, own_cards, standing_words
from app.flashcards.searching import search_cards
from app.learners.desk import Reader, RequestContext
from app.questions.asking import excerpt
from app.scheduling import LEECH
from app.web.course import find_topic

router = APIRouter()


@router.get("/deck")
def deck(desk: Reader, wished: Wished) -> HTMLResponse:
    """The cards of one topic, the first with cards where none is named.

    With words to look for those that have them, whatever they belong to.
    """
    topics = [t for t in desk.library.topics.values() if t.cards]
    chosen = find_topic(desk.library, wished.topic) if wished.topic else None
    topic = chosen or (topics[0] if topics else None)
    aside = store.suspended(desk.db, desk.learner.id) if desk.learner.id else ()
    return desk.page(
        "flashcards/deck.html",
        topics=topics,
        topic=topic,
        rows=_rows(desk, topic) if topic else [],
        own=own_cards(desk, wished.own),
        matches=search_cards(desk, wished.q),
        aside=[desk.library.cards[c] for c in aside if c in desk.library.cards],
    )


def _rows(desk: RequestContext, topic: Topic) -> list[ListedCard]:
    held = store.standings(desk.db, desk.learner.id, topic.slug)
    rows = []
    for card in topic.cards:
        standing, aside = held.get(card, (None, False))
        rows.append(
            ListedCard(
                card=card,
                words=excerpt(desk.library.cards[card].front),
                state=standing_words(standing, desk),
                aside=aside,
                leech=standing is not None and standing.lapses >= LEECH,
            )
        )
    return rows
