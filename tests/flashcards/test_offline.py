"""GET /flashcards/offline, and grades that were given there"""

import datetime as dt
import re

import pytest
from sqlmodel import select

from app.database.tables import Learner, Review
from tests.conftest import Clock
from tests.flashcards.conftest import Hands, count_left
from tests.flashcards.course import EditableLiveCourse, a_course, cards_of

PAGE = "/flashcards/offline"
FIRST = "weights-1"


def listed(client) -> list[str]:
    """The showings on the page, in its order."""
    return re.findall(r'data-showing="([^"]+)"', client.get(PAGE).text)


def who(client) -> str:
    found = re.search(r'data-who="([^"]+)"', client.get(PAGE).text)
    assert found
    return found[1]


def ms(moment: dt.datetime) -> int:
    return int(moment.timestamp() * 1000)


def send(client, given: dt.datetime, card: str = FIRST, **fields):
    """Send a grade as the outbox does."""
    body = {"rating": 3, "token": "act-1", "given": ms(given), **fields}
    return client.post(f"/flashcards/{card}/reviews", data=body)


def log(session) -> list[tuple[str, int, int, str]]:
    rows = session.exec(select(Review).order_by(Review.id))
    return [(r.card, r.rating, r.at, r.study_day) for r in rows]


class TestThePage:
    def test_it_reads_as_a_list_with_the_answers_folded(self, client) -> None:
        html = client.get(PAGE).text

        assert "Front of weights-1</div><details><summary>Answer</summary>" in html
        assert "Back of weights-1" in html
        assert "To grade them you need JavaScript" in html

    def test_new_cards_come_as_the_day_has_room_none_beside_its_reverse(self, client) -> None:
        shown = listed(client)

        assert shown[:5] == [f"weights-{n}.0" for n in (1, 2, 3, 4)] + ["weights-pair.0"]
        assert "weights-pair~r.0" not in shown

    def test_due_cards_come_first_in_the_order_of_the_desk(
        self, hands: Hands, clock: Clock
    ) -> None:
        for _ in range(3):
            hands.grade(1)
        clock.tick(days=1)

        shown = listed(hands.client)

        assert shown[0] == f"{hands.card()}.1"
        assert {s for s in shown if s.endswith(".1")} == set(shown[:3])

    def test_cards_of_tomorrow_come_along(self, hands: Hands, clock: Clock) -> None:
        card = hands.grade(4)  # comes back in eight days
        clock.tick(days=6)
        assert f"{card}.1" not in listed(hands.client)

        clock.tick(days=1)

        assert f"{card}.1" in listed(hands.client)
        assert hands.card() != card
        assert "more that can come up by tomorrow" in " ".join(hands.client.get(PAGE).text.split())

    def test_today_s_cards_come_first_as_on_the_desk_and_the_rest_is_told(
        self, hands: Hands, session, clock: Clock, live_course: EditableLiveCourse
    ) -> None:
        live_course.held = a_course(*cards_of("weights", 60))
        for _ in range(15):
            hands.grade(4)  # back in about eight days
        clock.tick(days=9)
        learner = session.exec(select(Learner)).one()
        learner.minutes_a_day = 10
        learner.exam_day = (clock.now.date() + dt.timedelta(days=6)).isoformat()
        session.commit()
        hands.grade(1)  # a step of a minute, which waits until it is over

        page = hands.client.get(PAGE).text.replace("\xa0", " ")
        shown = listed(hands.client)
        later = re.findall(r'data-showing="([^"]+)" data-later', page)
        left = count_left(hands.client.get("/flashcards").text)

        today = len(shown) - len(later)
        assert today == left
        assert shown[today:] == later
        assert later
        assert shown[0].rpartition(".")[0] == hands.card()
        assert f"{len(shown)} cards</span>" in page
        assert re.search(rf"today\u2019s {today}, then\s+{len(later)} more", page)

    def test_at_most_a_hundred(self, client, live_course: EditableLiveCourse) -> None:
        live_course.held = a_course(*cards_of("weights", 150))
        client.post("/settings", data={"minutes_a_day": "480"})

        assert len(listed(client)) == 100

    def test_a_learner_cannot_be_guessed_from_the_mark(self, rosa, milo) -> None:
        assert who(rosa) != who(milo)
        assert who(rosa) not in rosa.cookies["headroom"]


class TestALateGrade:
    def test_it_is_logged_with_its_own_moment_and_study_day(
        self, client, session, clock: Clock
    ) -> None:
        given = clock.now - dt.timedelta(days=2, hours=3)

        answer = send(client, given)

        assert answer.status_code == 204
        assert log(session) == [(FIRST, 3, ms(given), "2026-06-07")]

    def test_before_four_in_the_morning_it_is_still_yesterday(
        self, client, session, clock: Clock
    ) -> None:
        send(client, clock.now.replace(hour=3, minute=59))

        assert log(session)[0][3] == "2026-06-08"

    def test_sent_again_it_is_answered_as_the_first_time_and_counted_once(
        self, client, session, clock: Clock
    ) -> None:
        given = clock.now - dt.timedelta(hours=1)
        first = send(client, given)
        clock.tick(minutes=5)

        again = send(client, given)

        assert (again.status_code, again.content) == (first.status_code, first.content)
        assert len(log(session)) == 1

    def test_two_grades_of_one_card_are_two_reviews(self, client, session, clock: Clock) -> None:
        hour = dt.timedelta(hours=1)
        send(client, clock.now - 2 * hour, rating=1, token="act-1")
        send(client, clock.now - hour, rating=3, token="act-2")

        assert [(rating, at) for _, rating, at, _ in log(session)] == [
            (1, ms(clock.now - 2 * hour)),
            (3, ms(clock.now - hour)),
        ]

    def test_a_review_on_another_device_meanwhile_is_a_review_of_its_own(
        self, hands: Hands, session, clock: Clock
    ) -> None:
        offline = clock.now - dt.timedelta(hours=1)
        hands.grade(4)

        send(hands.client, offline)

        # Sent after a later review it cannot have been before it in the log.
        assert log(session) == [
            (FIRST, 4, ms(clock.now), "2026-06-09"),
            (FIRST, 3, ms(clock.now), "2026-06-09"),
        ]

    def test_a_clock_that_is_fast_gives_no_grade_in_the_future(
        self, client, session, clock: Clock
    ) -> None:
        send(client, clock.now + dt.timedelta(days=400))

        assert log(session)[0][2:] == (ms(clock.now), "2026-06-09")

    def test_after_thirty_days_it_is_refused_with_the_day_in_words(
        self, client, session, clock: Clock
    ) -> None:
        answer = send(client, clock.now - dt.timedelta(days=31))

        assert answer.status_code == 422
        assert "May 9, 2026 is more than 30 days ago" in answer.text
        assert log(session) == []

    def test_a_card_that_left_the_course_is_404(
        self, client, clock: Clock, live_course: EditableLiveCourse
    ) -> None:
        live_course.remove(FIRST)

        answer = send(client, clock.now)

        assert answer.status_code == 404
        assert FIRST in answer.text

    def test_the_grade_of_another_learner_of_the_browser_is_409(
        self, rosa, milo, session, clock: Clock
    ) -> None:
        answer = send(milo, clock.now, who=who(rosa))

        assert answer.status_code == 409
        assert "somebody else" in answer.text
        assert log(session) == []
        assert send(rosa, clock.now, who=who(rosa)).status_code == 204

    @pytest.mark.parametrize(("looked", "kept"), [(7, 7000), (0, None), (3600, None)])
    def test_the_time_to_the_grade_is_kept_where_it_says_anything(
        self, client, session, clock: Clock, looked: int, kept: int | None
    ) -> None:
        since = ms(clock.now) - looked * 1000 if looked else 0

        send(client, clock.now, since=since)

        assert session.exec(select(Review)).one().milliseconds == kept

    def test_the_page_shows_the_card_anew_only_when_it_is_due(self, client, clock: Clock) -> None:
        assert f"{FIRST}.0" in listed(client)

        send(client, clock.now, rating=4)

        assert f"{FIRST}.1" not in listed(client)


class TestTheDayAfterwards:
    @pytest.fixture
    def live_course(self) -> EditableLiveCourse:
        return EditableLiveCourse(*cards_of("weights", 40))

    @pytest.mark.parametrize(("rating", "left"), [(3, 15), (4, 13)])
    def test_the_desk_counts_grades_that_were_given_offline(
        self, client, clock: Clock, rating: int, left: int
    ) -> None:
        """Of the 15 cards of the day those are done that come back another day."""
        for number in (1, 2):
            clock.tick(minutes=1)
            card, token = f"weights-{number}", f"act-{number}"
            send(client, clock(), card, rating=rating, token=token)

        desk = client.get("/flashcards").text

        assert count_left(desk) == left
