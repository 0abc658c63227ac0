"""What to do today: one next thing, with its reason and its minutes."""

import dataclasses

from app.content.library import Library
from app.progress.mastery.plan import Deck, plan
from app.progress.mastery.standing import Record, anchors, standings

NOTHING = Record({}, frozenset(), {})
NO_CARDS = Deck(0, 0, 0)


def steps(library: Library, record: Record = NOTHING, deck=NO_CARDS, last: str = ""):
    return plan(library, record, standings(library, record), deck, last)


def read(library: Library, *slugs: str) -> Record:
    pages = {slug: anchors(library.topics[slug]) for slug in slugs}
    return dataclasses.replace(NOTHING, read=pages)


def test_cards_due_come_first(library: Library):
    first, *_ = steps(library, deck=Deck(due=14, later=0, new=4))

    assert first.title == "Review 14 cards"
    assert first.reason == "due now, 4 not begun"
    assert first.minutes > 2


def test_without_due_cards_some_new_ones_are_offered_last(library: Library):
    *_, last = steps(library, read(library, "weights"), Deck(0, 0, 40))

    assert last.title == "Learn 5 new cards"


def test_new_cards_wait_until_something_was_read(library: Library):
    assert [s.kind for s in steps(library, deck=Deck(0, 0, 40))] == ["read", "practise"]


def test_one_card_is_one_card(library: Library):
    first, *_ = steps(library, deck=Deck(1, 0, 0))

    assert first.title == "Review 1 card"


def test_reading_begins_at_the_beginning(library: Library):
    reading = steps(library)[0]

    assert reading.address == "/concepts/weights"
    assert reading.reason == "objective 1.1, not read yet"


def test_reading_goes_on_where_it_stopped(library: Library):
    topic = library.topics["kv-cache"]
    first, second, *_ = anchors(topic)
    record = dataclasses.replace(NOTHING, read={"kv-cache": [first]})

    reading = steps(library, record, last="kv-cache")[0]

    assert reading.address == f"/concepts/kv-cache#{second}"
    assert reading.reason.startswith("continue at section 2, ")
    assert 0 < reading.minutes < topic.minutes


def test_after_a_page_the_next_one_follows(library: Library):
    reading = steps(library, read(library, "weights"), last="weights")[0]

    assert reading.address == "/concepts/kv-cache"


def test_the_weakest_tested_objective_is_practised(library: Library):
    firsts = dict.fromkeys(library.topics["weights"].questions, 1.0)
    firsts |= dict.fromkeys(library.topics["kv-cache"].questions, 0.0)
    record = dataclasses.replace(NOTHING, firsts=firsts)

    practice = steps(library, record)[-1]

    assert practice.address == "/quiz/kv-cache"
    assert "your lowest tested: 0%" in practice.reason


def test_before_any_answer_what_was_read_is_asked(library: Library):
    practice = steps(library, read(library, "kv-cache"))[-1]

    assert practice.address == "/quiz/kv-cache"
    assert practice.reason == "objective 2.1, not tested yet"


def test_few_answers_are_not_called_a_weakness(library: Library):
    question = library.topics["weights"].questions[0]
    record = dataclasses.replace(NOTHING, firsts={question: 0.0})

    practice = steps(library, record)[-1]

    assert "lowest" not in practice.reason


def test_when_all_is_done_nothing_is_invented(library: Library):
    record = dataclasses.replace(
        read(library, *library.topics), firsts=dict.fromkeys(library.questions, 1.0)
    )

    assert steps(library, record) == ()
