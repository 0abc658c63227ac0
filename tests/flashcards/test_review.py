"""The desk: GET /flashcards, answers, POST /flashcards/{card}/reviews"""

import collections
import datetime as dt
import re

import pytest
from sqlmodel import Session, select

from app.database.tables import CardStateRow, Learner, Review
from app.spaced_repetition.review_log import count_recalled_cards
from tests.conftest import Clock
from tests.flashcards.conftest import count_left, fields, shown
from tests.flashcards.course import EditableLiveCourse, cards_of

FIRST = "weights-1"


def reviews(session) -> list[Review]:
    return list(session.exec(select(Review).order_by(Review.id)))


def test_the_answer_is_not_on_the_page_before_it_is_asked_for(client) -> None:
    html = client.get("/flashcards").text

    assert "Front of weights-1" in html
    assert "Back of" not in html

    assert "Back of weights-1" in client.get("/flashcards?show=1").text


def test_the_grades_say_when_the_card_would_come_back(client) -> None:
    html = client.get("/flashcards?show=1").text.replace("\xa0", " ")

    assert re.findall(r"<small>([^<]+)</small>", html) == [
        "≤ 1 min",
        "≤ 6 min",
        "≤ 10 min",
        "8 days",
    ]


def test_the_answer_names_its_page_and_its_source(client) -> None:
    html = client.get("/flashcards?show=1").text

    assert 'href="/concepts/weights"' in html
    assert "The herd" in html


def test_with_htmx_the_answer_is_a_fragment_that_keeps_the_look_time(htmx) -> None:
    html = htmx.get(f"/flashcards/{FIRST}/answer?since=123").text

    assert 'id="turn"' in html
    assert "<html" not in html
    assert 'name="since" value="123"' in html
    assert html.count('name="rating"') == 4


def test_a_grade_is_logged_and_the_next_card_comes(hands, session) -> None:
    assert hands.card() == FIRST

    assert hands.grade(3) == FIRST

    assert hands.card() == "weights-2"
    (kept,) = reviews(session)
    assert (kept.card, kept.rating, kept.study_day) == (FIRST, 3, "2026-06-09")
    assert kept.retention == 0.9


def test_with_htmx_the_next_card_takes_the_place_of_the_desk(htmx) -> None:
    page = htmx.get(f"/flashcards/{FIRST}/answer").text
    body = {**fields(page, f"/flashcards/{FIRST}/reviews"), "rating": "4"}

    answer = htmx.post(f"/flashcards/{FIRST}/reviews", data=body)

    assert answer.status_code == 200
    assert shown(answer.text) == "weights-2"
    assert "<html" not in answer.text


def test_the_time_that_the_card_was_looked_at_is_kept(client, session, clock) -> None:
    front = fields(client.get("/flashcards").text, "/flashcards#answer")
    clock.tick(seconds=7)
    page = client.get("/flashcards", params=front).text
    clock.tick(seconds=2)
    body = {**fields(page, f"/flashcards/{FIRST}/reviews"), "rating": "3"}
    client.post(f"/flashcards/{FIRST}/reviews", data=body)

    assert [r.milliseconds for r in reviews(session)] == [9000]


def test_a_double_click_counts_once(client, session) -> None:
    page = client.get("/flashcards?show=1").text
    body = fields(page, f"/flashcards/{FIRST}/reviews")

    for rating in (3, 1):
        client.post(f"/flashcards/{FIRST}/reviews", data={**body, "rating": rating})

    assert [r.rating for r in reviews(session)] == [3]
    assert [m.reviews for m in session.exec(select(CardStateRow))] == [1]


def test_two_tabs_with_the_same_card_count_once(client, session) -> None:
    tabs = [client.get("/flashcards?show=1").text for _ in range(2)]

    for page in tabs:
        body = fields(page, f"/flashcards/{FIRST}/reviews")
        client.post(f"/flashcards/{FIRST}/reviews", data={**body, "rating": 3})

    assert len(reviews(session)) == 1


def test_two_learners_do_not_share_their_cards(rosa, milo) -> None:
    body = fields(rosa.get("/flashcards?show=1").text, f"/flashcards/{FIRST}/reviews")
    rosa.post(f"/flashcards/{FIRST}/reviews", data={**body, "rating": 4})

    assert shown(rosa.get("/flashcards").text) == "weights-2"
    assert shown(milo.get("/flashcards").text) == FIRST


@pytest.mark.parametrize("rating", ["0", "5", "good", ""])
def test_any_other_grade_is_422(client, session, rating: str) -> None:
    answer = client.post(f"/flashcards/{FIRST}/reviews", data={"rating": rating, "token": "t"})

    assert answer.status_code == 422
    assert reviews(session) == []


def test_an_unknown_card_or_topic_is_404(client) -> None:
    assert client.get("/flashcards?card=nope").status_code == 404
    assert client.get("/flashcards?topic=nope").status_code == 404
    assert client.get("/flashcards/nope/answer").status_code == 404
    body = {"rating": 3, "token": "t"}
    assert client.post("/flashcards/nope/reviews", data=body).status_code == 404


def test_learning_steps_come_back_after_their_minutes(hands, clock: Clock) -> None:
    for card in ("weights-1", "weights-2"):
        assert hands.grade(1) == card  # again: one minute

    clock.tick(seconds=61)

    assert hands.card() == "weights-1"


def test_what_is_due_comes_before_what_is_new(hands, clock: Clock) -> None:
    hands.grade(4)  # eight days

    clock.tick(days=8)

    assert hands.card() == "weights-1"


def test_the_most_forgotten_card_comes_first(hands, clock: Clock) -> None:
    hands.grade(4)  # weights-1, stability of eight days
    hands.grade(3)
    clock.tick(minutes=10)
    assert hands.grade(3) == "weights-2"  # stability of two days

    clock.tick(days=9)

    assert hands.card() == "weights-2"


def test_a_learning_step_is_not_waited_for_when_nothing_else_is_due(
    hands, live_course: EditableLiveCourse
) -> None:
    live_course.remove(*(c for c in live_course.get_current_course().cards if c != "weights-1"))
    hands.grade(3)  # ten minutes

    assert hands.card() == "weights-1"


def test_the_reverse_of_todays_card_waits_until_tomorrow(hands, clock: Clock) -> None:
    seen = []
    while (card := hands.card()) and len(seen) < 14:
        seen.append(card)
        hands.grade(4)

    assert "weights-pair" in seen
    assert "weights-pair~r" not in seen

    clock.tick(days=1)
    assert hands.card() == "weights-pair~r"


@pytest.mark.parametrize("card", ["weights-pair", "weights-pair~r"])
def test_a_reversed_card_says_that_a_name_is_asked_for(hands, card) -> None:
    page = hands.client.get(f"/flashcards?card={card}").text

    assert ("Name the term." in page) == card.endswith("~r")


def test_the_reverse_of_todays_card_is_buried_when_it_is_due_too(hands, clock: Clock) -> None:
    for card in ("weights-pair", "weights-pair~r"):
        hands.grade(4, f"/flashcards?card={card}")
    clock.tick(days=8)
    due = {hands.card()}
    hands.grade(4)
    while (card := hands.card()) and card.startswith("weights-pair"):
        due.add(card)
        hands.grade(4)

    assert len(due) == 1


def test_new_cards_of_a_day_are_limited_by_the_minutes(hands, session) -> None:
    hands.grade(4)
    session.exec(select(Learner)).one().minutes_a_day = 5  # two new cards
    session.commit()
    hands.grade(4)

    assert hands.card() == ""
    html = hands.client.get("/flashcards").text.replace("\xa0", " ")
    assert "You could learn 3 new cards from Weights" in html

    assert hands.card("/flashcards?more=5") == "weights-3"


def test_no_new_cards_are_offered_after_the_list_when_the_exam_is_near(hands) -> None:
    for slug in ("weights", "cache"):
        hands.client.post(f"/concepts/{slug}/readings")
    days = {"far": "2026-12-30", "near": "2026-06-12"}
    pages = {}
    for name, day in days.items():
        hands.client.post("/plan", data={"exam_day": day, "minutes_a_day": "10"})
        hands.client.get("/")
        while hands.card():
            assert ">Stop</a>" in hands.client.get("/flashcards").text
            hands.grade(4)
        pages[name] = hands.client.get("/flashcards").text
        assert "cards are done" in pages[name]
        assert ">Stop</a>" not in pages[name]

    assert "More, if you like" in pages["far"]
    assert "More, if you like" not in pages["near"]


def test_a_card_is_recalled_by_its_first_rating_of_a_later_day(
    hands, session: Session, clock: Clock
) -> None:
    learner, address = None, "/flashcards?card=weights-1"
    for days, rating, recalled in ((0, 3, 0), (0, 3, 0), (1, 1, 0), (0, 3, 0), (1, 3, 1)):
        clock.tick(days=days, minutes=11)
        hands.grade(rating, address)
        learner = learner or session.exec(select(Learner.id)).one()
        session.rollback()
        assert count_recalled_cards(session, learner) == recalled, (days, rating)


def test_grades_whose_intervals_the_exam_shortens_are_named(hands, clock: Clock) -> None:
    hands.grade(4)
    clock.tick(days=12)
    texts = {}
    for name, exam_day in (("near", 22), ("far", 400)):
        day = clock.now.date() + dt.timedelta(days=exam_day)
        hands.client.post("/plan", data={"exam_day": day.isoformat(), "minutes_a_day": "10"})
        texts[name] = hands.client.get("/flashcards?card=weights-1&show=1").text

    near = " ".join(texts["near"].replace("\xa0", " ").split())
    said = re.search(r"Hard, Good, Easy: at most (\d+ days), so that you see it once more", near)
    assert said
    assert near.count(f"<small>{said[1]}</small>") == 3
    assert "at most" not in texts["far"]


def test_more_cards_after_the_list_are_as_many_as_are_offered_and_of_that_page(hands) -> None:
    hands.client.post("/concepts/weights/readings")
    hands.client.post("/plan", data={"exam_day": "2026-12-30", "minutes_a_day": "10"})
    hands.client.get("/")
    while hands.card():
        hands.grade(4)
    for _ in range(2):  # the second offer opens cards too, though the first ones count for the day
        page = hands.client.get("/flashcards").text.replace("\xa0", " ")
        offer = re.search(r"More, if you like: (\d+) new cards? from ([^.<]+)\.", page)
        address = re.search(r'href="(/flashcards\?more=\d+)">Learn', page)
        assert offer
        assert address
        opened = hands.client.get(address[1]).text
        assert f"New <b>{offer[1]}</b>" in opened
        assert "Due <b>0</b>" in opened
        for _ in range(int(offer[1])):
            assert hands.card(address[1]).split("-")[0] == {"Weights": "weights"}.get(
                offer[2], "cache"
            )
            hands.grade(4, address[1])
        assert hands.card(address[1]) == ""


def test_the_cards_of_one_topic_can_be_reviewed_alone(hands) -> None:
    assert hands.card("/flashcards?topic=cache") == "cache-1"
    hands.grade(4, "/flashcards?topic=cache")
    assert hands.card("/flashcards?topic=cache") == "cache-2"
    assert hands.card() == "weights-1"


def test_the_wish_is_carried_along(client) -> None:
    page = client.get("/flashcards?topic=cache&more=3&show=1").text
    body = {**fields(page, "/flashcards/cache-1/reviews"), "rating": 3}

    answer = client.post("/flashcards/cache-1/reviews", data=body)

    assert answer.headers["location"] == "/flashcards?topic=cache&more=3"


def test_the_day_counts_down_and_a_failed_card_is_still_being_learned(hands) -> None:
    def left() -> str:
        html = " ".join(hands.client.get("/flashcards").text.split())
        kinds = re.findall(r"(New|Learning|Due) <b>(\d+)</b>", html)
        return ", ".join(f"{number} {name}" for name, number in kinds)

    assert left() == "12 New, 0 Learning, 0 Due"
    hands.grade(4)
    assert left() == "11 New, 0 Learning, 0 Due"
    hands.grade(1)
    assert left() == "10 New, 1 Learning, 0 Due"


class TestTheDayIsFull:
    @pytest.fixture
    def live_course(self) -> EditableLiveCourse:
        return EditableLiveCourse(*cards_of("weights", 40))

    def test_beginning_a_card_takes_no_other_new_card_away(self, hands, clock) -> None:
        """Half of 30 minutes hold 15 new cards, whatever their first grades are."""
        places = []
        for rating in (3, 1, 2, 3, 4, 3):
            hands.grade(rating)
            clock.tick(seconds=20)
            html = hands.client.get("/flashcards").text
            places.append(count_left(html))

        assert places == [15, 15, 15, 15, 14, 14]


def test_a_card_that_left_the_course_is_not_asked(
    hands, live_course: EditableLiveCourse, clock: Clock
) -> None:
    hands.grade(4)
    hands.grade(4)
    clock.tick(days=9)
    live_course.remove("weights-1")

    assert hands.card() == "weights-2"
    hands.grade(4)
    assert hands.card() == "weights-3"


def test_a_card_that_moved_to_another_topic_is_not_new_again(
    hands, live_course: EditableLiveCourse
) -> None:
    hands.grade(4)
    live_course.move("weights-1", "cache")

    assert hands.card("/flashcards?topic=cache") == "cache-1"
    html = hands.client.get("/flashcards?topic=cache").text
    assert count_left(html) == 6


def test_when_nothing_is_left_the_desk_says_until_when(hands, session) -> None:
    while hands.card():
        hands.grade(4)

    # Eight days, spread by up to two, so that not all come back at once.
    dues = collections.Counter(session.exec(select(CardStateRow.due_day)))
    first = min(dues)
    assert set(dues) <= {f"2026-06-{day}" for day in range(15, 20)}
    assert len(dues) > 1
    html = hands.client.get("/flashcards").text.replace("\xa0", " ")
    day = dt.date.fromisoformat(first)
    assert f"No cards are due until {day:%A}, June {day.day}" in html
    assert f"{dues[first]} come back then" in html
    assert "Back to Today" in html


def test_a_course_without_cards_says_so(client, live_course: EditableLiveCourse) -> None:
    live_course.remove(*live_course.get_current_course().cards)

    assert "This course has no cards yet" in client.get("/flashcards").text


def test_a_review_moves_the_learners_kept_pages(hands, session) -> None:
    hands.grade(3)
    before = session.exec(select(Learner.changes)).one()
    session.rollback()
    hands.grade(3)

    assert session.exec(select(Learner.changes)).one() > before


def test_the_name_of_the_page_stands_only_beside_the_answer(client) -> None:
    card = re.search(r'name="card" value="([^"]+)"', client.get("/flashcards").text)
    assert card
    question = client.get(f"/flashcards?card={card[1]}").text.partition('id="desk"')[2]
    answer = client.get(f"/flashcards?card={card[1]}&show=yes").text.partition('id="desk"')[2]

    assert "Weights" not in question.partition("</article>")[0]
    assert "Read: Weights" in answer


def test_without_scripts_the_answer_is_brought_onto_the_screen(client) -> None:
    assert 'action="/flashcards#answer"' in client.get("/flashcards").text
    assert 'id="answer"' in client.get("/flashcards?show=yes").text


def test_no_button_promises_a_day_after_the_exam(client) -> None:
    client.post("/plan", data={"exam_day": "2026-06-20", "minutes_a_day": "30"})

    html = client.get("/flashcards?show=yes").text.replace("\xa0", " ")

    easy = re.findall(r"<small>([^<]+)</small>", html)[-1]
    assert easy == "3 days"  # so that two reviews on later days still fit before June 20


def test_an_interval_that_the_exam_shortens_says_how_often_the_card_comes_again(
    hands, clock: Clock
) -> None:
    exam = (clock.now.date() + dt.timedelta(days=14)).isoformat()
    plan = {"exam_day": exam, "minutes_a_day": "30", "retention": "80"}
    assert hands.client.post("/settings", data=plan).status_code == 303
    address, said = "/flashcards?card=weights-1", []

    for days, rating in ((0, 4), (1, 1), (0, 3), (1, 1)):
        clock.tick(days=days, minutes=11)
        page = " ".join(hands.client.get(f"{address}&show=1").text.replace("\xa0", " ").split())
        said += re.findall(r">([^<>]*: at most [^<>]* before your exam)\.<", page)
        hands.grade(rating, address)

    assert said == [
        "Easy: at most 4 days, so that you see it twice more before your exam",
        "Hard, Good, Easy: at most 6 days, so that you see it once more before your exam",
        "Easy: at most 6 days, so that you see it once more before your exam",
        # It was seen on two later days, but would be weak on the exam day.
        "Easy: at most 10 days, so that you see it once more before your exam",
    ]
