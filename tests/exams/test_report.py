"""A report adds up what was marked and says how sure the sum is."""

import dataclasses
import datetime as dt
import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from sqlmodel import Session, select

from app.content.course import Course
from app.content.course_facts import cached_course_facts
from app.database.tables import Sitting
from app.exams.report import (
    GradedItem,
    PartScore,
    build_score_report,
    choose_page_to_read_next,
    compute_score_range_of_similar_exam,
    describe_missed_questions_in_cards,
    find_clearly_weakest_part,
    list_missed_objectives,
)
from app.questions.model import draw_variant
from app.questions.types.choice import ChoiceSpec
from app.study_plan.day_list import PageToRead
from tests.conftest import Clock
from tests.exams.sitting import begin, finish, kept, save


def marked(number: int, objective: str, score: float) -> GradedItem:
    return GradedItem(
        number,
        f"q{number}",
        objective.split(".", maxsplit=1)[0],
        objective,
        score,
        True,
        60.0,
    )


def test_points_add_up_by_domain_and_objective() -> None:
    report = build_score_report([marked(1, "2.10", 1), marked(2, "2.9", 0.5), marked(3, "1.1", 0)])

    assert (report.score, report.question_count) == (1.5, 3)
    assert [(s.number_or_title, s.score, s.question_count) for s in report.domain_scores] == [
        ("1", 0, 1),
        ("2", 1.5, 2),
    ]
    assert [s.number_or_title for s in report.objective_scores] == ["1.1", "2.9", "2.10"]
    assert [m.question_number for m in report.missed_items] == [2, 3]


def test_missed_objectives_begin_with_the_one_that_cost_most() -> None:
    scores = (("2.3", 1), ("2.3", 0), ("2.2", 0), ("2.2", 0), ("3.2", 1))
    paper = [marked(n, objective, score) for n, (objective, score) in enumerate(scores, 1)]
    blank = dataclasses.replace(marked(6, "1.1", 0), is_answered=False)

    missed = list_missed_objectives([*paper, blank])

    assert [part.number_or_title for part in missed] == ["2.2", "2.3"]


def test_the_page_to_read_is_unread_and_of_the_objective_that_cost_most(shipped: Course) -> None:
    scores = (("3.2", 0), ("3.2", 0), ("3.2", 0), ("2.2", 0), ("2.2", 0), ("2.3", 1), ("2.3", 0))
    paper = [marked(n, objective, score) for n, (objective, score) in enumerate(scores, 1)]
    topics = shipped.topics.items()
    of_worst = {slug for slug, topic in topics if "3.2" in topic.objectives}
    todays = [("today", PageToRead(slug, 5.0, "weak")) for slug, t in topics if t.objectives]

    def choose(read: Collection[str], listed: list[tuple[str, PageToRead]]) -> tuple[str, str]:
        chosen = choose_page_to_read_next(shipped, paper, read, listed, "short")
        assert chosen
        assert chosen.url.endswith("?route=short") is (chosen.place != "today")
        assert chosen.objective.number_or_title in chosen.topic.objectives
        return chosen.objective.number_or_title, chosen.place

    assert choose(set(), []) == ("3.2", "")
    assert choose(set(), todays) == ("3.2", "today")
    assert choose(of_worst, []) == ("2.2", "")
    assert choose(shipped.topics.keys(), []) == ("3.2", "read")

    paper = [marked(1, "2.2", 0), marked(2, "3.2", 0)]  # of what cost as much, what is listed
    assert choose(set(), [("next", PageToRead(min(of_worst), 5.0, "weak", short=True))]) == (
        "3.2",
        "next",
    )

    exam_pages = cached_course_facts(shipped).pages
    beyond = {number for slug, t in topics if slug not in exam_pages for number in t.objectives}
    assert beyond
    paper = [marked(1, min(beyond), 0), marked(2, "3.2", 0)]
    assert choose(exam_pages.keys() - of_worst, []) == ("3.2", "")


def test_open_questions_were_not_missed_and_tell_nothing_of_the_next_paper() -> None:
    paper = [marked(n, f"1.{n}", 1) for n in range(1, 9)]
    paper.append(marked(9, "2.1", 0))
    paper.append(marked(11, "2.1", 1))
    paper.append(marked(12, "2.3", 0))
    paper.append(dataclasses.replace(marked(10, "2.2", 0), is_answered=False))

    report = build_score_report(paper)
    half = build_score_report(
        [dataclasses.replace(m, is_answered=m.question_number < 6) for m in paper]
    )

    assert [m.question_number for m in report.missed_items] == [9, 12]
    assert [m.question_number for m in report.unanswered_items] == [10]
    assert [m.question_number for m in report.questions_to_repeat] == [9, 10, 12]
    assert report.weakest_objective is None  # 2.1 and 2.3 lost as much
    assert (report.is_conclusive, half.is_conclusive) == (True, False)


def test_a_report_says_which_questions_became_cards(subtests: pytest.Subtests) -> None:
    # (missed, cards of them, blank, cards of them, blank ones without a card at the end)
    for counts, words in {
        (1, 1, 0, 0, 0): "The one you missed is in your cards now.",
        (2, 2, 0, 0, 0): "The 2 you missed are in your cards now.",
        (1, 0, 0, 0, 0): "The one you missed isn't in your cards.",
        (2, 0, 0, 0, 0): "None of the 2 you missed is in your cards.",
        (3, 1, 0, 0, 0): "Of the 3 you missed, 1 is in your cards now, marked below.",
        (3, 2, 0, 0, 0): "Of the 3 you missed, 2 are in your cards now, marked below.",
        (1, 1, 40, 0, 40): "The one you missed is in your cards now. The 40 blank ones aren't: "
        "they were left blank at the end.",
        (1, 1, 1, 0, 1): "The one you missed is in your cards now. The blank one isn't: "
        "it was left blank at the end.",
        (2, 2, 3, 3, 0): "All 5 are in your cards now.",
        (1, 1, 5, 2, 3): "The one you missed is in your cards now. Of the 5 blank ones, 2 are in "
        "your cards too, marked below; the other 3 aren't: they were left blank at the end.",
        (1, 0, 4, 0, 4): "The one you missed isn't in your cards. The 4 blank ones aren't either: "
        "they were left blank at the end.",
        (1, 0, 4, 0, 0): "The one you missed isn't in your cards. The 4 blank ones aren't either.",
        (0, 0, 1, 0, 1): "The blank one isn't in your cards: it was left blank at the end.",
        (0, 0, 1, 1, 0): "The blank one is in your cards now.",
        (
            0,
            0,
            4,
            0,
            3,
        ): "The 4 blank ones aren't in your cards: 3 of them were left blank at the end.",
        (
            0,
            0,
            4,
            0,
            1,
        ): "The 4 blank ones aren't in your cards: 1 of them was left blank at the end.",
        (0, 0, 4, 3, 1): "Of the 4 blank ones, 3 are in your cards now, marked below; "
        "the other one isn't: it was left blank at the end.",
        (0, 0, 4, 1, 2): "Of the 4 blank ones, 1 is in your cards now, marked below; "
        "the other 3 aren't: 2 of them were left blank at the end.",
        (0, 0, 0, 0, 0): "",
    }.items():
        missed, missed_cards, blank, blank_cards, unreached = counts
        with subtests.test(counts):
            rows = [marked(n, "1.1", 0) for n in range(1, missed + blank + 1)]
            rows = [dataclasses.replace(m, is_answered=m.question_number <= missed) for m in rows]
            with_card = {*range(1, missed_cards + 1), *range(missed + 1, missed + blank_cards + 1)}
            last_reached = missed + blank - unreached
            told = describe_missed_questions_in_cards(
                build_score_report(rows), with_card, last_reached
            )
            assert told.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'") == words


def test_the_part_that_lost_most_is_named_unless_another_lost_as_much() -> None:
    def name(*shares: tuple[float, int]) -> str:
        parts = (PartScore(f"{n}", count - lost, count) for n, (lost, count) in enumerate(shares))
        largest = find_clearly_weakest_part(parts)
        return largest.number_or_title if largest else ""

    assert name((1, 5), (3, 5), (2, 5)) == "1"
    assert name((2, 4), (2, 5), (1, 2)) == ""
    assert name((1, 2), (1, 1), (1, 1), (1, 1)) == ""  # one miss in each
    assert name((1, 2), (0, 1)) == "0"
    assert name((1, 1), (0, 2)) == ""
    assert name((0, 5)) == name() == ""


def test_a_report_names_the_page_of_a_missed_question_that_the_next_list_begins_with(
    rosa: TestClient, course: Course, session: Session, clock: Clock
) -> None:
    sitting = begin(rosa)
    _, bad = _single(course, session)
    question = course.questions[json.loads(session.exec(select(Sitting)).one().paper)[0][1]]
    save(rosa, sitting, 1, answer=bad)
    report = rosa.get(finish(rosa, sitting).headers["location"]).text

    assert "cost you the most" not in report
    named = re.search(r'<a class="btn" href="/concepts/([^"?]+)[^"]*">Read</a>', report)
    assert named
    assert course.topics[question.topic].requires == (named[1],)
    title = course.topics[question.topic].title
    needed_for = f"Needed for “{title}”"
    text = " ".join(report.replace("\xa0", " ").split())
    assert re.search(
        rf"On your next list · {needed_for} · [^<]*: 0 of 1 point in what you answered</p>", text
    )
    clock.tick(days=1)
    today = rosa.get("/").text
    assert f"{needed_for}, whose topic cost you points" in today
    listed = re.search(r'href="/concepts/([^"?]+)[^"]*" data-key="c"', today)
    assert listed
    assert listed[1] == named[1]

    for slug in (named[1], question.topic):  # then no list names a page that was missed
        rosa.post(f"/concepts/{slug}/readings")
        report = rosa.get(f"{sitting}/report").text
        assert f'href="/concepts/{question.topic}">Read</a>' in report
        assert "0 of 1 point in what you answered" in report.replace("\xa0", " ")


def test_a_report_on_the_eve_of_the_exam_names_no_page(
    rosa: TestClient, course: Course, session: Session, clock: Clock
) -> None:
    exam = clock.now.date() + dt.timedelta(days=2)
    rosa.post("/plan", data={"exam_day": exam.isoformat(), "minutes_a_day": "30"})
    sitting = begin(rosa)
    save(rosa, sitting, 1, answer=_single(course, session)[1])
    finish(rosa, sitting)

    assert ">Read</a>" in rosa.get(f"{sitting}/report").text
    clock.tick(days=1)
    assert ">Read</a>" not in rosa.get(f"{sitting}/report").text


def test_a_report_names_the_page_with_most_missed_once_all_are_read(
    rosa: TestClient,
    course: Course,
    session: Session,
    right: Callable[[], Mapping[int, Mapping[str, object]]],
) -> None:
    for slug in course.topics:
        rosa.post(f"/concepts/{slug}/readings")
    sitting, numbers = begin(rosa), defaultdict[str, list[int]](list)
    for number, item, *_ in json.loads(session.exec(select(Sitting)).one().paper):
        numbers[course.questions[item].topic].append(number)
    page = max(numbers, key=lambda slug: len(numbers[slug]))
    known, *missed = sorted(numbers.pop(page), key=lambda number: number not in right())
    other = next(iter(numbers.values()))[0]

    save(rosa, sitting, known, **right()[known])
    for number in (other, *missed):
        save(rosa, sitting, number, answer="-")
    report = rosa.get(finish(rosa, sitting).headers["location"]).text

    assert f'href="/concepts/{page}">Read</a>' in report


def test_an_empty_paper_has_no_score_and_no_interval() -> None:
    assert (build_score_report([]).low_points, build_score_report([]).high_points) == (0, 0)


@given(st.integers(1, 200), st.floats(0, 1))
def test_the_interval_holds_the_score_and_stays_on_the_scale(count: int, share: float) -> None:
    low, high = compute_score_range_of_similar_exam(share * count, count)

    assert 0 <= low <= share * count + 1e-9
    assert share * count - 1e-9 <= high <= count


def test_the_interval_is_wilsons() -> None:
    # With no hit in n the closed form of the upper end is z²/(n + z²).
    low, high = compute_score_range_of_similar_exam(0, 10)

    assert low == 0
    assert high / 10 == pytest.approx(1.96**2 / (10 + 1.96**2))


def changed(number: int, before: float | None, score: float) -> GradedItem:
    return dataclasses.replace(marked(number, "1.1", score), score_of_first_answer=before)


def test_changed_answers_are_told_by_what_came_of_them() -> None:
    paper = [
        changed(1, 0.0, 1.0),
        changed(2, 1.0, 0.0),
        changed(3, 0.0, 0.0),
        changed(4, None, 1.0),
        changed(5, 0.0, 1.0),
    ]

    assert build_score_report(paper).answer_changes == (
        ("wrong to right", (1, 5)),
        ("right to wrong", (2,)),
        ("wrong to wrong", (3,)),
    )
    assert [m.change_text for m in paper][3] == ""


def _single(course: Course, session: Session) -> tuple[str, str]:
    """Let a single choice be question 1 of the paper: a right and a wrong option.

    Where the paper had it elsewhere, the former question 1 takes that place.
    """
    question = next(q for q in course.questions.values() if q.type == "single")
    sitting = session.exec(select(Sitting)).one()
    first, *others = json.loads(sitting.paper)
    slot = [1, question.id, question.revision, 7, others[0][4]]
    rest = [[o[0], *first[1:]] if o[1] == question.id else o for o in others]
    sitting.paper = json.dumps([slot, *rest])
    session.commit()
    answer = draw_variant(question, 7).answer
    assert isinstance(answer, ChoiceSpec)
    good = next(o.key for o in answer.options if o.right)
    return good, next(o.key for o in answer.options if not o.right)


def test_a_report_names_the_questions_whose_answer_was_changed(
    rosa: TestClient, course: Course, session: Session
) -> None:
    sitting = begin(rosa)
    good, bad = _single(course, session)
    for chosen in (good, bad, good, bad):
        save(rosa, sitting, 1, answer=chosen)
    report = rosa.get(finish(rosa, sitting).headers["location"]).text

    assert "Right to wrong" in report
    assert "Changing answers lost 1\u00a0point" in report


def test_an_answer_that_came_back_to_the_first_was_not_changed(
    rosa: TestClient, course: Course, session: Session
) -> None:
    sitting = begin(rosa)
    good, bad = _single(course, session)
    for chosen in (good, bad, good):
        save(rosa, sitting, 1, answer=chosen)
    report = rosa.get(finish(rosa, sitting).headers["location"]).text

    assert "Changed answers" not in report


def test_a_report_names_as_earlier_only_what_was_sat_before(rosa: TestClient, clock: Clock) -> None:
    first, second = "", ""
    for _ in range(2):
        first, second = second, begin(rosa)
        finish(rosa, second)
        clock.tick(days=1)

    assert " Before: " not in rosa.get(f"{first}/report").text
    assert " Before: " in rosa.get(f"{second}/report").text


def test_a_paper_of_which_no_time_is_known_has_no_chart_of_it(
    rosa: TestClient, session: Session
) -> None:
    sitting = begin(rosa)
    save(rosa, sitting, 1, answer="a")
    finish(rosa, sitting)
    unknown = rosa.get(f"{sitting}/report").text
    row = kept(session)
    row.milliseconds = 42_000
    session.add(row)
    session.commit()
    known = rosa.get(f"{sitting}/report").text

    assert "Time per question" not in unknown
    assert "an even pace" not in unknown.casefold()
    assert ">Seconds</th>" not in unknown
    assert "the longest took 42 seconds" in known
    assert ">Seconds</th>" in known


@pytest.mark.parametrize(
    ("pick", "words", "count"),
    [("missed", "Retry the 1 you missed", 1), ("open", "Answer the 4 you left blank", 4)],
)
def test_what_was_missed_and_what_was_left_open_are_each_answered_again(
    rosa: TestClient, course: Course, session: Session, pick: str, words: str, count: int
) -> None:
    sitting = begin(rosa)
    _, bad = _single(course, session)
    save(rosa, sitting, 1, answer=bad)
    early = rosa.post(f"{sitting}/practice", data={"pick": pick})
    report = rosa.get(finish(rosa, sitting).headers["location"]).text

    body = {"pick": pick, "token": "t"}
    runs = {rosa.post(f"{sitting}/practice", data=body).headers["location"] for _ in range(2)}
    other = rosa.post(f"{sitting}/practice", data={**body, "pick": "openmissed".replace(pick, "")})

    assert early.status_code == 409
    assert words in report
    (run,) = runs
    assert f"</b> of {count}<" in rosa.get(f"{run}/1").text
    assert other.headers["location"] != run


def test_j_leads_from_one_missed_question_to_the_next(rosa: TestClient, right) -> None:
    sitting = begin(rosa)
    number, fields = next(iter(right().items()))
    save(rosa, sitting, number, **fields)
    finish(rosa, sitting)
    shown, seen = rosa.get(f"{sitting}/report").text, []
    assert "the 4 you left blank" in shown
    rows = re.findall(r'class="no">Q(\d)</span><a href="[^"]+/questions/(\d)"', shown)
    assert len(rows) == 4
    assert all(name == place for name, place in rows)
    key = re.compile(r'href="([^"]+)"\s+data-key="j"')

    while (address := key.search(shown)) and not address[1].endswith("/report"):
        seen.append(int(address[1].rpartition("/")[2]))
        shown = rosa.get(address[1]).text
        assert f"{len(seen)} of 4 to go over" in shown

    assert sorted(seen) == [n for n in range(1, 6) if n != number]
