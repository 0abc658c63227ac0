"""What to do today: one next thing, with its reason and its minutes."""

import dataclasses
import datetime as dt
import random
from typing import Any

import pytest

from app.content.library import Library
from app.mastery.evidence import AnswerHistory
from app.mastery.objectives import (
    NOTHING,
    LearnerEvidence,
    build_standings,
    readable_anchors,
    weakest_prerequisite,
)
from app.mastery.question_counts import weakest_first
from app.study_plan.calendar import (
    MockExamOption,
    OpenPracticeRun,
    OpenSitting,
    TodayInputs,
    TodayPlan,
)
from app.study_plan.card_plan import CardsLeft
from app.study_plan.today import plan_today, practice_step, reading_order

NO_CARDS = CardsLeft()
TODAY = dt.date(2026, 6, 9)


def planned(library: Library, record: LearnerEvidence = NOTHING, **more: Any) -> TodayPlan:
    domains = build_standings(library, record, TODAY)
    return plan_today(TodayInputs(library, record, domains, **{"left": NO_CARDS, **more}))


def steps(library: Library, record: LearnerEvidence = NOTHING, left=NO_CARDS, last: str = ""):
    made = planned(library, record, left=left, last_topic=last, minutes=240)
    return made.steps


def answered(score: float, *questions: str) -> dict[str, AnswerHistory]:
    return dict.fromkeys(questions, AnswerHistory(score, TODAY - dt.timedelta(days=8)))


def read(library: Library, *slugs: str) -> LearnerEvidence:
    pages = {slug: readable_anchors(library.topics[slug]) for slug in slugs}
    return dataclasses.replace(NOTHING, read=pages)


def test_cards_due_come_first(library: Library):
    first, *_ = steps(library, left=CardsLeft(due=14))

    assert first.title == "Review 14 cards"
    assert first.reason == "14\N{NO-BREAK SPACE}reviews"
    assert first.minutes > 2


def test_the_mock_of_a_day_is_offered_however_long_the_cards_take(library: Library):
    mock = MockExamOption("Mock exam", 60, "cb")
    due = planned(library, left=CardsLeft(due=200), mock=mock, minutes=30)
    begun = read(library, "weights")
    fresh = planned(library, begun, left=CardsLeft(fresh=5), mock=mock, minutes=30)

    assert [step.kind for step in due.steps] == ["review", "mock"]
    assert [step.kind for step in fresh.steps] == ["learn", "mock"]
    assert due.steps[1].address == "/exams/cb"


def test_without_due_cards_some_new_ones_are_offered_last(library: Library):
    *_, last = steps(library, read(library, "weights"), CardsLeft(fresh=5))

    assert last.title == "Learn 5 new cards"


def test_new_cards_wait_until_something_was_read(library: Library):
    assert [s.kind for s in steps(library, left=CardsLeft(fresh=5))] == [
        "read",
        "practice",
    ]


def test_new_cards_are_cut_to_the_minutes_beside_their_number(library: Library):
    record, deck = read(library, "weights"), CardsLeft(fresh=12)
    whole = planned(library, record, left=deck, minutes=240)
    assert whole.steps[-1].title == "Learn 12 new cards"
    page = whole.steps[0].minutes

    made = planned(library, record, left=deck, minutes=page + 5.5)

    assert made.steps[-1].title == "Learn 5 of 12 new cards"
    assert made.steps[-1].minutes == 5


def test_new_cards_have_their_minutes_before_questions(library: Library):
    record, deck = read(library, "weights"), CardsLeft(fresh=12)
    whole = planned(library, record, left=deck, minutes=240)
    read_, asked, learn = whole.steps

    made = planned(library, record, left=deck, minutes=read_.minutes + 12)

    assert made.steps == (read_, learn)
    assert made.beyond == (asked,)


def test_as_many_pages_as_the_plan_wants_leave_a_round_of_questions(library: Library):
    one = planned(library, minutes=60)
    two = planned(library, minutes=60, reading=60)
    assert [s.kind for s in one.steps] == ["read", "practice"]
    assert [s.kind for s in two.steps] == ["read", "read", "practice"]

    pages = sum(s.minutes for s in two.steps if s.kind == "read")
    tight = planned(library, minutes=pages + 3, reading=60)
    assert [s.kind for s in tight.steps] == ["read", "practice"]


def test_a_wrong_answer_is_no_ground_to_build_on(library: Library):
    question = library.topics["weights"].questions[0]
    firsts = {question: AnswerHistory(0.0, TODAY)}
    record = dataclasses.replace(NOTHING, firsts=firsts)
    assert weakest_prerequisite(library, record, library.topics["kv-cache"])

    right = dataclasses.replace(NOTHING, firsts={question: AnswerHistory(1.0, TODAY)})
    assert weakest_prerequisite(library, right, library.topics["kv-cache"]) is None


def test_the_page_on_the_weakest_objective_leads_if_nothing_on_it_was_read(
    library: Library,
):
    firsts = answered(0.55, *library.topics["weights"].questions)
    firsts |= answered(0.0, *library.topics["kv-cache"].questions)
    record = dataclasses.replace(NOTHING, firsts=firsts)
    begun = dataclasses.replace(record, read=read(library, "kv-cache").read)

    led, usual = (
        reading_order(library, one, build_standings(library, one, TODAY)) for one in (record, begun)
    )

    assert led[0].slug == "kv-cache"
    assert usual[0].slug == "weights"


def test_practice_begins_with_the_page_of_the_day_where_nothing_was_read(
    shipped: Library, subtests: pytest.Subtests
):
    """As after a placement test: a few answers all over the course."""
    for seed in range(12):
        with subtests.test(seed=seed):
            dice = random.Random(seed)  # noqa: S311 - luck, not a secret
            items = dice.sample(sorted(shipped.questions), 15)
            firsts = {item: AnswerHistory(dice.choice((0.0, 1.0)), TODAY) for item in items}
            record = dataclasses.replace(NOTHING, firsts=firsts)

            page = planned(shipped, record, minutes=240).steps[0]
            weakest = weakest_first(shipped, record, build_standings(shipped, record, TODAY))[0]

            assert page.kind == "read"
            if weakest.tested and weakest.ground is not None:
                assert page.topic == weakest.ground.topic.slug
            else:
                number = weakest.standing.objective.number
                assert number in shipped.topics[page.topic].objectives


def test_a_weak_page_that_was_read_does_not_lead_every_day(shipped: Library):
    """The weakest rests on it; reading it again would open no page and ask nothing."""
    base, rest = shipped.topics["gpu-and-cpu"], shipped.topics["software-stack"]
    firsts = answered(0.4, *list(base.questions)[:8])
    firsts |= answered(0.0, *rest.questions)
    fresh = dataclasses.replace(NOTHING, firsts=firsts)
    again = dataclasses.replace(fresh, read=read(shipped, base.slug).read)

    for record in (fresh, again):
        weakest = weakest_first(shipped, record, build_standings(shipped, record, TODAY))[0]
        assert weakest.topic == rest
        assert weakest.ground is not None
        assert weakest.ground.topic == base

    assert planned(shipped, fresh, minutes=240).steps[0].topic == base.slug
    assert planned(shipped, again, minutes=240).steps[0].topic != base.slug


@pytest.mark.parametrize("minutes", [-27.0, 0.0, 0.4])
def test_when_the_minutes_are_used_no_new_card_fits(library: Library, minutes: float):
    record = read(library, *library.topics)

    made = planned(library, record, left=CardsLeft(fresh=2), minutes=minutes)

    titles = [step.title for step in (*made.steps, *made.beyond)]
    assert "Learn 2 new cards" in titles
    assert all("-" not in title and " 0 " not in title for title in titles)


def test_due_waiting_and_new_cards_are_one_number(library: Library):
    deck = CardsLeft(due=18, waiting=2, fresh=6, learning=1)

    first, *_ = steps(library, left=deck)

    assert first.title == "Study 26 cards"
    words = first.reason.replace("\N{NO-BREAK SPACE}", " ")
    assert words == "17 reviews, 6 new cards, 3 still being learned"
    assert first.minutes == deck.seconds / 60


def test_cards_that_wait_are_not_part_of_the_step(library: Library):
    deck = CardsLeft(due=33, fresh=12, over=3, passed=1)

    first, *_ = steps(library, left=deck)

    assert first.title == "Study 45 cards"
    words = first.reason.replace("\N{NO-BREAK SPACE}", " ")
    assert words == "33 reviews, 12 new cards"


def test_cards_that_were_added_are_new_ones_and_come_before_pages(library: Library):
    first, *rest = steps(library, left=CardsLeft(fresh=8, added=3))

    assert first.title == "Study 8 cards"
    assert first.reason.replace("\N{NO-BREAK SPACE}", " ") == "8 new cards"
    assert rest[0].kind == "read"


def test_cards_that_all_wait_are_no_step(library: Library):
    assert steps(library, left=CardsLeft(waiting=3))[0].kind == "read"


def test_one_card_is_one_card(library: Library):
    first, *_ = steps(library, left=CardsLeft(due=1))

    assert first.title == "Review 1 card"


def test_reading_begins_at_the_beginning(library: Library):
    reading = steps(library)[0]

    assert reading.address == "/concepts/weights"
    assert reading.reason == "objective 1.1, not read yet"


def test_a_page_on_what_is_known_well_is_not_the_next(library: Library):
    firsts = answered(1.0, *library.topics["weights"].questions)
    record = dataclasses.replace(NOTHING, firsts=firsts)

    assert steps(library, record)[0].address == "/concepts/kv-cache"

    read_too = dataclasses.replace(record, read=read(library, "kv-cache").read)
    assert steps(library, read_too)[0].address == "/concepts/weights"


def test_reading_goes_on_where_it_stopped(library: Library):
    topic = library.topics["kv-cache"]
    first, second, *_ = readable_anchors(topic)
    record = dataclasses.replace(NOTHING, read={"kv-cache": [first]})

    reading = steps(library, record, last="kv-cache")[0]

    assert reading.address == f"/concepts/kv-cache#{second}"
    assert reading.reason.startswith("continue at section 2, ")
    assert 0 < reading.minutes < topic.minutes


def test_after_a_page_the_next_one_follows(library: Library):
    reading = steps(library, read(library, "weights"), last="weights")[0]

    assert reading.address == "/concepts/kv-cache"


def test_the_weakest_tested_objective_is_practiced(library: Library):
    firsts = answered(1.0, *library.topics["weights"].questions)
    firsts |= answered(0.0, *library.topics["kv-cache"].questions)
    record = dataclasses.replace(NOTHING, firsts=firsts)

    practice = steps(library, record)[-1]

    goal = "2.1"
    assert practice.address == f"/quiz/objectives/{goal}"
    names = {o.number: o.name for d in library.syllabus.domains for o in d.objectives}
    assert practice.title.endswith(f" questions: {names[goal]}")
    assert "your weakest so far: " in practice.reason
    assert practice.reason.endswith("% expected")


def test_before_any_answer_what_was_read_is_asked(library: Library):
    practice = steps(library, read(library, "kv-cache"))[-1]

    assert practice.address == "/quiz/kv-cache"
    assert practice.reason == "objective 2.1, not tested yet"


def test_few_answers_are_not_called_a_weakness(library: Library):
    question = library.topics["weights"].questions[0]
    record = dataclasses.replace(NOTHING, firsts=answered(0.0, question))

    practice = steps(library, record)[-1]

    assert "lowest" not in practice.reason


def test_when_all_is_done_nothing_is_invented(library: Library):
    record = dataclasses.replace(
        read(library, *library.topics), firsts=answered(1.0, *library.questions)
    )

    assert steps(library, record) == ()


def test_a_running_exam_comes_before_everything(library: Library):
    running = OpenSitting(7, "Short mock", 4.0)
    first, *_ = planned(library, left=CardsLeft(due=14), running=running).steps

    assert (first.title, first.address) == ("Short mock", "/exams/sittings/7/review")
    assert first.reason == "the clock is running"


def test_no_step_of_the_day_is_gone_while_an_exam_runs(library: Library):
    run, record = OpenPracticeRun(run=4, left=2, count=5), read(library, "weights")
    made = planned(library, record, left_run=run, running=OpenSitting(7, "Mock", 55), minutes=40)

    assert [step.kind for step in made.steps] == ["exam"]
    assert [step.kind for step in made.beyond] == ["read", "run", "practice"]


def test_the_next_thing_is_offered_however_long_it_takes(library: Library):
    made = planned(library, left=CardsLeft(due=400), minutes=30)

    (first,) = made.steps
    assert first.title == "Review 400 cards"
    assert made.minutes > 30


def test_what_the_minutes_do_not_hold_is_named_apart(library: Library):
    all_ = planned(library, left=CardsLeft(due=40), minutes=240)
    some = planned(library, left=CardsLeft(due=40), minutes=8)

    assert some.steps == all_.steps[:1]
    assert some.beyond == all_.steps[1:]


def test_a_round_of_questions_is_cut_to_the_minutes(library: Library):
    whole = planned(library, left=CardsLeft(due=40), minutes=240)
    practice = whole.steps[-1]
    made = planned(library, left=CardsLeft(due=40), minutes=whole.minutes - 4)

    last = made.steps[-1]
    cut = f"{practice.address}?count={last.questions}"
    assert (last.kind, last.address) == ("practice", cut)
    assert last.minutes < practice.minutes
    assert made.minutes <= whole.minutes - 4
    assert made.beyond == ()


def test_what_a_run_that_was_left_does_not_take_is_a_round(library: Library):
    run, record = OpenPracticeRun(run=4, left=2, count=5), read(library, "weights")
    ample, cards = planned(library, record, left_run=run, minutes=240), CardsLeft(due=40)
    *_, left, round_ = ample.steps
    few = planned(library, record, left=cards, left_run=run, minutes=8)

    assert (left.kind, left.questions) == ("run", 2)
    assert (round_.kind, round_.questions > 2) == ("practice", True)
    assert [step.kind for step in few.steps] == ["review"]
    assert [step.kind for step in few.beyond] == ["read", "run"]


def test_before_anything_is_known_practice_begins_at_the_foundations(library: Library):
    assert steps(library)[-1].address == "/quiz/weights"


def test_a_page_on_weak_ground_waits_for_what_it_rests_on(library: Library):
    weak = answered(0.0, *library.topics["weights"].questions)
    record = dataclasses.replace(read(library, "weights"), firsts=weak)

    reading = steps(library, record)[0]

    assert reading.address == "/concepts/weights"
    assert reading.reason.startswith("first this: The cache of a conversation builds")
    assert "0 of" in reading.reason


def test_practice_on_weak_ground_begins_below_it(library: Library):
    low = answered(0.0, *library.topics["kv-cache"].questions)
    record = dataclasses.replace(NOTHING, firsts=low)

    step = practice_step(library, record, build_standings(library, record, TODAY))

    assert step
    assert step.address == "/concepts/weights"
    assert step.reason.startswith("first this: ")
    assert "it is neither read nor tested" in step.reason


def test_on_steady_ground_the_page_itself_is_offered(library: Library):
    firm = answered(1.0, *library.topics["weights"].questions)
    record = dataclasses.replace(read(library, "weights"), firsts=firm)

    assert steps(library, record)[0].address == "/concepts/kv-cache"


def test_where_time_is_short_every_objective_has_a_page_before_any_has_two(
    shipped: Library,
):
    dpu = answered(1.0, *shipped.topics["dpu"].questions[:3])
    # Three right answers are too few to leave a whole objective out.
    record = dataclasses.replace(NOTHING, firsts=dpu)
    domains = build_standings(shipped, record, TODAY)

    usual = reading_order(shipped, record, domains)
    short = reading_order(shipped, record, domains, is_short=True)

    objectives = len({topic.objectives[0] for topic in usual if not topic.level})
    begun = [topic.objectives[0] for topic in short[:objectives]]
    assert sorted(begun) == sorted(set(begun))
    assert {topic.slug for topic in short} == {topic.slug for topic in usual}
