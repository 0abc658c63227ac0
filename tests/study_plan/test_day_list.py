"""The list of a day: what is on it, in which order, and how it is ticked."""

import dataclasses
import datetime as dt

import pytest

from app.accounts.learner import PageLength, PlanCalendar, plan_mock_exam_days
from app.clock import round_minutes
from app.content.course_facts import CourseFacts
from app.content.reading_routes import ESSENTIAL_SHARE
from app.study_plan.cards import (
    choose_new_cards,
    compute_planned_review_day,
    count_new_cards_to_begin,
)
from app.study_plan.day_list import (
    DayActivity,
    DayList,
    PageToRead,
    Task,
    choose_route,
    count_unfinished_in_a_row,
    list_unread_pages,
    make_day_list,
    measure_task_progress,
    sum_points_lost_in_last_mock_exam,
)
from app.study_plan.facts import CardFact, FirstAnswerFact, LearnerFacts, ReadingFact
from app.study_plan.score import estimate_score

DAY = dt.date(2026, 3, 1)
EXAM = DAY + dt.timedelta(days=24)
CALENDAR = PlanCalendar(DAY, EXAM, plan_mock_exam_days(DAY, EXAM))
OPEN = PlanCalendar(DAY)


def a_learner(course_facts: CourseFacts, day: dt.date = DAY, pages: int = 6) -> LearnerFacts:
    """A learner who has read some pages and answered a question of each."""
    slugs = list(course_facts.pages)[:: max(1, len(course_facts.pages) // pages)][:pages]
    first = {q.page: q.id for q in reversed(course_facts.questions.values())}
    return LearnerFacts(
        day=day,
        readings=[ReadingFact(slug, 1.0, DAY, n, 1.0) for n, slug in enumerate(slugs)],
        first_answers=[
            FirstAnswerFact(first[slug], 1.0, DAY, 100 + n) for n, slug in enumerate(slugs)
        ],
    )


def a_list(
    course_facts: CourseFacts,
    learner: LearnerFacts,
    calendar: PlanCalendar = CALENDAR,
    minutes: float = 30,
    length: PageLength = "auto",
) -> DayList:
    estimate = estimate_score(course_facts, learner)
    return make_day_list(
        course_facts, learner, calendar, estimate, day_minutes=minutes, length=length, seed="rosa"
    )


def task_of(made: DayList, kind: str) -> Task:
    return next(task for task in made.tasks if task.kind == kind)


def a_card(card: str, last: dt.date, due: dt.date, later: int = 0, page: str = "") -> CardFact:
    return CardFact(card, card, page, 3.0, last, last, due, later)


def test_the_same_facts_make_the_same_list(course_facts: CourseFacts) -> None:
    learner = a_learner(course_facts)

    assert a_list(course_facts, learner) == a_list(course_facts, learner)


def test_a_list_has_reviews_first_and_at_most_four_tasks(course_facts: CourseFacts) -> None:
    learner = dataclasses.replace(
        a_learner(course_facts), started_cards=[a_card("own:1", DAY, DAY)]
    )

    kinds = [task.kind for task in a_list(course_facts, learner).tasks]

    assert kinds[0] == "review"
    assert sorted(kinds) == ["new", "practice", "read", "review"]


@pytest.mark.parametrize("minutes", [10, 30, 60, 120])
def test_a_list_takes_about_the_minutes_of_the_day(course_facts: CourseFacts, minutes: int) -> None:
    made = a_list(course_facts, a_learner(course_facts), minutes=minutes)

    assert 0.75 * minutes <= sum(task.minutes for task in made.tasks) <= 1.25 * minutes


def shown_minutes(made: DayList) -> int:
    return sum(round_minutes(task.minutes) for task in made.tasks)


def test_a_list_never_shows_more_minutes_than_were_set(course_facts: CourseFacts) -> None:
    for pages in (1, 4, 12):
        learner = a_learner(course_facts, pages=pages)
        cards = [a_card(f"own:{n}", DAY, DAY) for n in range(40)]
        for calendar in (CALENDAR, OPEN):
            for minutes in range(5, 95, 5):
                for one in (learner, dataclasses.replace(learner, started_cards=cards)):
                    made = a_list(course_facts, one, calendar, minutes)
                    longest = max((page.minutes for page in pages_on(made)), default=0)
                    assert shown_minutes(made) <= minutes or longest > minutes


def test_a_page_longer_than_the_day_is_taken_alone(course_facts: CourseFacts) -> None:
    longest = max(course_facts.pages.values(), key=lambda page: page.reading_minutes)
    readings = [ReadingFact(slug, 1.0, DAY, n, 1.0) for n, slug in enumerate(course_facts.pages)]
    learner = LearnerFacts(DAY, readings=[one for one in readings if one.page != longest.slug])

    made = a_list(course_facts, learner, OPEN, minutes=longest.reading_minutes - 1)

    assert [page.slug for page in pages_on(made)] == [longest.slug]
    assert [task.kind for task in made.tasks] == ["read"]


def test_a_placement_test_is_part_of_the_minutes_of_its_day(course_facts: CourseFacts) -> None:
    items = list(course_facts.questions)[:15]
    answers = [FirstAnswerFact(q, 1.0, DAY, n, "placement") for n, q in enumerate(items)]

    made = a_list(course_facts, LearnerFacts(DAY, first_answers=answers), minutes=30)
    short = a_list(course_facts, LearnerFacts(DAY, first_answers=answers), minutes=10)
    later = a_list(
        course_facts, LearnerFacts(DAY + dt.timedelta(days=1), first_answers=answers), minutes=30
    )

    assert made.placement_minutes == 15
    assert 10 <= shown_minutes(made) <= 15
    assert short.tasks == ()
    assert later.placement_minutes == 0
    assert shown_minutes(later) > 20


def test_practice_after_reading_begins_with_the_pages_of_the_day(course_facts: CourseFacts) -> None:
    items = list(course_facts.questions)[:15]
    answers = [FirstAnswerFact(q, 0.0, DAY, n, "placement") for n, q in enumerate(items)]
    missed = dict.fromkeys(items, DAY - dt.timedelta(days=1))
    learner = LearnerFacts(DAY, first_answers=answers, miss_day_by_question=missed)

    made = a_list(course_facts, learner, minutes=60)
    listed = {page.slug for page in pages_on(made)}
    asked = task_of(made, "practice").questions
    half = round(len(asked) / 2)
    assert {course_facts.questions[q].page for q in asked[:half]} <= listed
    assert asked[half] in missed

    first = dataclasses.replace(learner, unfinished_by_kind={"practice": 1})
    made = a_list(course_facts, first, minutes=60)
    assert next(task.kind for task in made.tasks) == "practice"
    assert asked != task_of(made, "practice").questions


def test_a_long_page_takes_the_time_of_new_cards(course_facts: CourseFacts) -> None:
    longest = max(course_facts.pages.values(), key=lambda page: page.reading_minutes)
    read = [ReadingFact(slug, 1.0, DAY, n, 1.0) for n, slug in enumerate(course_facts.pages)]
    learner = LearnerFacts(DAY, readings=[one for one in read if one.page != longest.slug])
    exam = DAY + dt.timedelta(days=60)

    made = a_list(course_facts, learner, PlanCalendar(DAY, exam), minutes=20, length="full")

    assert [page.slug for page in pages_on(made)] == [longest.slug]
    assert len(task_of(made, "new").cards) < 5
    assert sum(task.minutes for task in made.tasks) <= 22


def test_on_the_day_of_a_mock_exam_there_are_only_reviews_beside_it(
    course_facts: CourseFacts,
) -> None:
    day = CALENDAR.mock_exam_days[0]
    learner = dataclasses.replace(
        a_learner(course_facts, day), started_cards=[a_card("own:1", DAY, DAY)]
    )

    made = a_list(course_facts, learner)

    assert [task.kind for task in made.tasks] == ["review", "mock"]
    assert made.exam == course_facts.main_exam_slug


def test_a_day_off_has_no_list_and_the_exam_day_only_reviews(course_facts: CourseFacts) -> None:
    off = dataclasses.replace(CALENDAR, weekdays_off=frozenset({DAY.weekday()}))
    assert a_list(course_facts, a_learner(course_facts), off).tasks == ()

    learner = dataclasses.replace(
        a_learner(course_facts, EXAM), started_cards=[a_card("own:1", DAY, DAY)]
    )
    assert [task.kind for task in a_list(course_facts, learner).tasks] == ["review"]


def test_without_an_exam_day_the_list_has_the_same_shape(course_facts: CourseFacts) -> None:
    kinds = {task.kind for task in a_list(course_facts, a_learner(course_facts), OPEN).tasks}

    assert kinds == {"read", "practice", "new"}


def pages_on(made: DayList) -> tuple[PageToRead, ...]:
    return next((task.pages for task in made.tasks if task.kind == "read"), ())


def test_pages_are_short_where_the_full_ones_do_not_fit_or_by_choice(
    course_facts: CourseFacts,
) -> None:
    learner = a_learner(course_facts)
    soon = DAY + dt.timedelta(days=7)
    week = PlanCalendar(DAY, soon, plan_mock_exam_days(DAY, soon))

    def routes(calendar: PlanCalendar, length: PageLength, minutes: float) -> set[bool]:
        made = make_day_list(
            course_facts, learner, calendar, None, day_minutes=minutes, length=length
        )
        return {page.short for page in pages_on(made)}

    assert routes(week, "auto", 30) == {True}
    assert routes(week, "full", 30) == {False}
    assert routes(CALENDAR, "auto", 90) == {False}
    assert routes(OPEN, "auto", 30) == {False}
    assert routes(OPEN, "short", 30) == {True}


def test_what_is_read_on_a_day_does_not_change_its_route(course_facts: CourseFacts) -> None:
    readings = [ReadingFact(slug, 1.0, DAY, n, 1.0) for n, slug in enumerate(course_facts.pages)][
        1:
    ]
    today = LearnerFacts(DAY, readings=readings)
    tomorrow = dataclasses.replace(today, day=DAY + dt.timedelta(days=1))

    assert choose_route(course_facts, LearnerFacts(DAY), CALENDAR, 15, "auto") == "short"
    assert choose_route(course_facts, today, CALENDAR, 15, "auto") == "short"
    assert choose_route(course_facts, tomorrow, CALENDAR, 15, "auto") == "full"


def test_once_all_essentials_are_read_the_rest_of_the_pages_follows(
    course_facts: CourseFacts,
) -> None:
    readings = [
        ReadingFact(slug, ESSENTIAL_SHARE, DAY, n, 1.0) for n, slug in enumerate(course_facts.pages)
    ]
    learner = dataclasses.replace(a_learner(course_facts), readings=readings)

    page = pages_on(a_list(course_facts, learner))[0]

    facts = course_facts.pages[page.slug]
    assert not page.short
    assert page.minutes == round_minutes(facts.reading_minutes - facts.essential_reading_minutes)
    assert page.is_rest


def test_the_rest_of_a_page_waits_until_all_essentials_are_read(course_facts: CourseFacts) -> None:
    slugs = list(course_facts.pages)
    readings = [ReadingFact(slug, ESSENTIAL_SHARE, DAY, n, 1.0) for n, slug in enumerate(slugs)]
    learner = LearnerFacts(DAY + dt.timedelta(days=1), readings=readings[:13])

    made = a_list(course_facts, learner, CALENDAR, minutes=90)
    unread = list_unread_pages(course_facts, learner, "full")

    assert made.route == "full"
    assert not {page.slug for page in pages_on(made)} & set(slugs[:13])
    assert {page.slug for page in unread if page.is_rest} == set(slugs[:13])


def test_a_short_page_is_ticked_once_its_essentials_are_read() -> None:
    pages = PageToRead("a", 3, "weak", short=True), PageToRead("b", 7, "weak")
    ticked = measure_task_progress(
        [Task("read", 10, pages=pages)], DayActivity(essentials_read={"a", "b"})
    )[0]

    assert ticked.done_count == 1
    assert ticked.unread_pages == pages[1:]


def test_on_the_eve_of_the_exam_no_page_is_listed(course_facts: CourseFacts) -> None:
    learner = a_learner(course_facts, EXAM - dt.timedelta(days=1))

    made = a_list(
        course_facts, dataclasses.replace(learner, last_exam_day=CALENDAR.mock_exam_days[-1])
    )

    assert {task.kind for task in made.tasks} == {"practice"}


def test_what_was_left_undone_longest_comes_first(course_facts: CourseFacts) -> None:
    learner = dataclasses.replace(
        a_learner(course_facts), unfinished_by_kind={"new": 3, "practice": 1}
    )

    assert [task.kind for task in a_list(course_facts, learner).tasks] == [
        "new",
        "practice",
        "read",
    ]


def test_new_cards_are_from_pages_read_or_missed(course_facts: CourseFacts) -> None:
    learner = a_learner(course_facts)
    missed = next(
        q
        for q in course_facts.questions.values()
        if q.page not in {reading.page for reading in learner.readings}
    )
    answers = [*learner.first_answers, FirstAnswerFact(missed.id, 0.0, DAY, 999)]
    learner = dataclasses.replace(learner, first_answers=answers)

    chosen = choose_new_cards(course_facts, learner, {}, 40)

    page_of = {card: page.slug for page in course_facts.pages.values() for card in page.card_ids}
    assert {page_of[card] for card in chosen} <= {
        *{reading.page for reading in learner.readings},
        missed.page,
    }
    assert missed.page in {page_of[card] for card in chosen}


def test_a_card_and_its_reverse_never_begin_on_one_day(course_facts: CourseFacts) -> None:
    learner = dataclasses.replace(
        a_learner(course_facts),
        readings=[ReadingFact(slug, 1.0, DAY, 0, 1.0) for slug in course_facts.pages],
    )

    chosen = choose_new_cards(course_facts, learner, {}, 200)

    notes = [course_facts.note_by_card.get(card, card) for card in chosen]
    assert len(notes) == len(set(notes)) == 200

    note = next(note for card, note in course_facts.note_by_card.items() if card != note)
    twins = {card for card, other in course_facts.note_by_card.items() if other == note}
    early, late = DAY - dt.timedelta(days=9), DAY - dt.timedelta(days=2)
    reviewed = CardFact(min(twins), note, "", 3.0, early, late, DAY)
    learner = dataclasses.replace(learner, started_cards=[reviewed])
    every = len(course_facts.note_by_card) + 999
    assert twins & {*choose_new_cards(course_facts, learner, {}, every)} == twins - {reviewed.card}
    assert not twins & {*choose_new_cards(course_facts, learner, {}, every, [reviewed.card])}


def test_added_cards_come_first_and_missed_questions_take_half_at_most(
    course_facts: CourseFacts,
) -> None:
    added = ["own:1", *(f"q:{n}" for n in range(9))]
    learner = dataclasses.replace(a_learner(course_facts), due_added_cards=added)

    chosen = choose_new_cards(course_facts, learner, {}, 7)

    assert chosen[:4] == ["own:1", "q:0", "q:1", "q:2"]
    assert not any(":" in card for card in chosen[4:])


def test_no_card_begins_in_the_last_days(course_facts: CourseFacts) -> None:
    late = a_learner(course_facts, EXAM - dt.timedelta(days=5))

    assert count_new_cards_to_begin(late, CALENDAR, 30, "more") == 0
    early = a_learner(course_facts)
    counts = [count_new_cards_to_begin(early, CALENDAR, 30, a) for a in ("fewer", "normal", "more")]
    assert counts == sorted(set(counts))


def test_with_many_cards_that_still_need_reviews_none_begins(course_facts: CourseFacts) -> None:
    cards = [a_card(f"own:{n}", DAY, EXAM) for n in range(400)]
    learner = dataclasses.replace(a_learner(course_facts), started_cards=cards)

    assert count_new_cards_to_begin(learner, CALENDAR, 30, "more") == 0


def test_a_card_comes_back_early_enough_for_two_later_reviews() -> None:
    far = EXAM + dt.timedelta(days=90)

    assert compute_planned_review_day(a_card("c", DAY, far), CALENDAR) == DAY + dt.timedelta(days=7)
    assert compute_planned_review_day(
        a_card("c", DAY, far, later=1), CALENDAR
    ) == DAY + dt.timedelta(days=11)
    known = dataclasses.replace(a_card("c", DAY, far, later=2), stability=90.0)
    assert compute_planned_review_day(known, CALENDAR) == far
    assert compute_planned_review_day(a_card("c", DAY, far), OPEN) == far


def test_a_card_that_would_be_weak_on_the_exam_day_comes_back_in_the_last_days() -> None:
    weak = a_card("c", DAY, EXAM, later=2)
    after = dataclasses.replace(weak, last_day=EXAM - 2 * dt.timedelta(days=1))

    assert compute_planned_review_day(weak, CALENDAR) == EXAM - 3 * dt.timedelta(days=1)
    assert compute_planned_review_day(after, CALENDAR) == EXAM
    unknown = dataclasses.replace(after, stability=1.0)
    assert compute_planned_review_day(unknown, CALENDAR) == EXAM - dt.timedelta(days=1)


def test_a_list_is_only_ticked(course_facts: CourseFacts) -> None:
    made = a_list(course_facts, a_learner(course_facts))
    read, practice = (task_of(made, kind) for kind in ("read", "practice"))
    pages = frozenset(page.slug for page in read.pages)
    done = DayActivity(pages_read=pages, answered_questions=frozenset(practice.questions[:2]))
    done = dataclasses.replace(done, answered_only_on_pages={practice.questions[1], "elsewhere"})
    ticked = {task.kind: task for task in measure_task_progress(made.tasks, done)}

    assert ticked["read"].is_done
    assert (ticked["practice"].done_count, ticked["practice"].is_done) == (2, False)
    assert ticked["practice"].on_page_count == 1
    assert not ticked["new"].done_count
    assert [task.task for task in ticked.values()] == list(made.tasks)


def test_lists_that_were_left_are_counted_by_task() -> None:
    tasks = (Task("read", 9, questions=("a",)), Task("practice", 9, questions=("b",)))
    ticked = measure_task_progress(tasks, DayActivity(answered_questions={"a"}))

    assert count_unfinished_in_a_row({"read": 2, "practice": 1, "new": 4}, ticked) == {
        "read": 0,
        "practice": 2,
        "new": 4,
    }


def test_questions_are_unseen_but_for_missed_ones_and_none_is_kept_for_exams(
    course_facts: CourseFacts,
) -> None:
    learner = a_learner(course_facts)
    missed = learner.first_answers[0].question
    yesterday = DAY - dt.timedelta(days=1)
    learner = dataclasses.replace(learner, miss_day_by_question={missed: yesterday})

    practice = task_of(a_list(course_facts, learner, minutes=60), "practice")

    seen = {answer.question for answer in learner.first_answers}
    assert seen & set(practice.questions) == {missed}
    assert not any(course_facts.questions[q].is_exam_only for q in practice.questions)
    assert len(set(practice.questions)) == len(practice.questions)


@pytest.mark.parametrize("minutes", [30, 400])
def test_a_page_comes_after_the_unread_pages_that_it_requires(
    course_facts: CourseFacts, minutes: float
) -> None:
    learner = LearnerFacts(DAY)
    pages = [page.slug for page in pages_on(a_list(course_facts, learner, minutes=minutes))]

    required = [
        (slug, other) for slug in pages for other in course_facts.pages[slug].required_pages
    ]
    assert all(other in pages[: pages.index(slug)] for slug, other in required)
    assert len(required) > 5 or minutes == 30


def test_only_the_introductions_of_the_shipped_course_require_no_page(
    course_facts: CourseFacts,
) -> None:
    assert {slug for slug, page in course_facts.pages.items() if not page.required_pages} == {
        "ai-ml-deep-learning",
        "gpu-and-cpu",
        "about-the-exam",
    }


def test_pages_missed_in_the_placement_test_come_before_others(course_facts: CourseFacts) -> None:
    free = [slug for slug, page in course_facts.pages.items() if not page.required_pages]
    first = {q.page: q.id for q in reversed(course_facts.questions.values())}
    missed = [slug for slug in free if slug in first][-2:]
    answers = [FirstAnswerFact(first[slug], 0, DAY, 1, "placement") for slug in missed]

    pages = pages_on(a_list(course_facts, LearnerFacts(DAY, first_answers=answers), minutes=60))

    assert {page.slug for page in pages[:2]} == set(missed)
    assert {page.reason for page in pages[:2]} == {"missed in the placement test"}


def test_a_page_that_a_missed_one_requires_says_so(course_facts: CourseFacts) -> None:
    missed = next(q for q in course_facts.questions.values() if q.page == "cooling")
    answers = [FirstAnswerFact(missed.id, 0, DAY, 1, "placement")]

    pages = pages_on(a_list(course_facts, LearnerFacts(DAY, first_answers=answers), minutes=90))

    goal = [page.slug for page in pages].index("cooling")
    assert goal > 0
    assert {(page.reason, page.required_by) for page in pages[:goal]} == {
        ("missed in the placement test", "cooling")
    }
    assert (pages[goal].reason, pages[goal].required_by) == ("missed in the placement test", "")


def test_pages_after_a_mock_exam_begin_with_the_objective_that_lost_most(
    course_facts: CourseFacts,
) -> None:
    asked = list(course_facts.questions.values())
    costly = asked[-1].objectives[0]
    answers = [
        FirstAnswerFact(q.id, q.objectives[0] != costly, DAY, n, "exam")
        for n, q in enumerate(asked)
    ]
    learner = day_after(answers)

    first = pages_on(a_list(course_facts, learner))[0]

    assert course_facts.pages[first.required_by or first.slug].objectives[0] == costly
    assert first.reason == "missed in the mock exam"
    repaired = dataclasses.replace(learner, miss_day_by_question={})
    assert sum_points_lost_in_last_mock_exam(course_facts, learner)[costly] > 0
    assert not any(sum_points_lost_in_last_mock_exam(course_facts, repaired).values())


def day_after(answers: list[FirstAnswerFact]) -> LearnerFacts:
    """Return the facts of the day after answers, of which those that were wrong still are."""
    missed = {answer.question: answer.day for answer in answers if answer.score < 1}
    day = DAY + dt.timedelta(days=1)
    return LearnerFacts(day, first_answers=answers, miss_day_by_question=missed)


def test_of_an_objective_the_page_that_was_missed_in_the_mock_exam_comes_first(
    course_facts: CourseFacts,
) -> None:
    asked = list(course_facts.questions.values())
    for missed in ("fast-network-options", "dcgm"):
        answers = [
            FirstAnswerFact(q.id, q.page != missed, DAY, n, "exam") for n, q in enumerate(asked)
        ]
        first = pages_on(a_list(course_facts, day_after(answers)))[0]

        assert (first.required_by or first.slug) == missed
        assert first.reason == "missed in the mock exam"
