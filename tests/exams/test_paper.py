"""A paper is drawn by blueprint, unseen first, and the same seed repeats it."""

import dataclasses
from collections import Counter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from app.exams.assembly import (
    ExamPaper,
    assemble_paper,
    compute_exam_minutes,
    keep_choice_questions,
)
from app.markup.model import NO_TEXT, ExamBlueprint, RichText, SourceLocation
from app.questions.model import Question
from app.questions.option_parsing import Choice
from app.questions.types.choice import ChoiceSpec

PLACE = SourceLocation(str(Path("quiz.md")), 1)
DOMAINS = {"1.1": "1", "1.2": "1", "2.1": "2", "2.2": "2"}


def question(name: str, objective: str) -> Question:
    options = tuple(Choice(k, RichText(k, k), k == "a") for k in "abc")
    return Question(
        id=name,
        topic="t",
        type="single",
        stem=NO_TEXT,
        answer=ChoiceSpec("single", options),
        objectives=(objective,),
        place=PLACE,
        revision="r1",
    )


BANK = [question(f"q{o}-{i}", o) for o in DOMAINS for i in range(10)]


def blueprint(first: int = 6, second: int = 4) -> ExamBlueprint:
    return ExamBlueprint(
        slug="mock",
        title="Mock",
        question_count=first + second,
        minutes=10,
        question_count_by_domain={"1": first, "2": second},
        place=PLACE,
    )


def items(paper: ExamPaper) -> list[str]:
    return [slot.question_id for slot in paper.items]


@given(st.integers(0, 2**32))
def test_each_domain_gets_its_share_and_no_item_comes_twice(seed: int) -> None:
    paper = assemble_paper(blueprint(), DOMAINS, BANK, {}, seed)

    assert Counter(s.domain_number for s in paper.items) == {"1": 6, "2": 4}
    assert len(set(items(paper))) == 10
    assert [s.question_number for s in paper.items] == list(range(1, 11))


def test_the_same_seed_draws_the_same_paper() -> None:
    first = assemble_paper(blueprint(), DOMAINS, BANK, {}, 7)

    assert assemble_paper(blueprint(), DOMAINS, reversed(BANK), {}, 7) == first
    assert assemble_paper(blueprint(), DOMAINS, BANK, {}, 8) != first


def test_what_was_not_seen_comes_first() -> None:
    seen = {q.id: 1 for q in BANK if not q.id.endswith(("-0", "-1", "-2"))}

    paper = assemble_paper(blueprint(), DOMAINS, BANK, seen, 3)

    assert not set(items(paper)) & set(seen)


def test_objectives_of_a_domain_take_turns() -> None:
    paper = assemble_paper(blueprint(), DOMAINS, BANK, {}, 3)

    assert Counter(item.split("-")[0] for item in items(paper)) == {
        "q1.1": 3,
        "q1.2": 3,
        "q2.1": 2,
        "q2.2": 2,
    }


def test_what_lies_beyond_the_exam_is_never_drawn() -> None:
    bank = [dataclasses.replace(q, level="deeper") for q in BANK[:6]] + BANK[6:]

    paper = assemble_paper(blueprint(30, 30), DOMAINS, bank, {}, 3)

    assert set(items(paper)) == {q.id for q in BANK[6:]}


def test_two_papers_in_a_row_share_nothing_while_the_bank_allows() -> None:
    first = items(assemble_paper(blueprint(), DOMAINS, BANK, {}, 3))
    often = dict.fromkeys((q.id for q in BANK if q.id not in first), 5)

    second = items(
        assemble_paper(blueprint(), DOMAINS, BANK, often, 4, previous_question_ids=first)
    )
    whole = items(
        assemble_paper(blueprint(20, 20), DOMAINS, BANK, often, 4, previous_question_ids=first)
    )

    assert not set(first) & set(second)
    assert len(whole) == 40


def test_what_is_kept_for_exams_comes_before_what_is_as_new() -> None:
    kept = {f"q{o}-{i}" for o in DOMAINS for i in (7, 8, 9)}
    bank = [dataclasses.replace(q, use="exam") if q.id in kept else q for q in BANK]

    fresh = items(assemble_paper(blueprint(6, 6), DOMAINS, bank, {}, 3))
    met = items(assemble_paper(blueprint(6, 6), DOMAINS, bank, dict.fromkeys(kept, 1), 3))

    assert set(fresh) == kept
    assert not set(met) & kept


def test_papers_of_choices_hold_no_other_kind_even_where_they_are_short() -> None:
    true = ChoiceSpec("true-false", BANK[0].answer.options[:2])  # type: ignore[union-attr]
    bank = [
        dataclasses.replace(q, answer=true, type="true-false") if n % 2 else q
        for n, q in enumerate(BANK)
    ]

    choices = keep_choice_questions(bank)
    paper = assemble_paper(blueprint(len(bank), 0), DOMAINS, choices, {}, 3)

    assert {q.type for q in choices} == {"single"}
    assert choices == bank[::2]
    assert len(paper.items) == sum(q.objectives[0] < "2" for q in choices)


def test_a_bank_too_small_gives_what_it_has_and_says_what_lacks() -> None:
    paper = assemble_paper(blueprint(), DOMAINS, BANK[:25], {}, 3)
    short = assemble_paper(blueprint(second=30), DOMAINS, BANK, {}, 3)

    assert paper.missing_by_domain == {}
    assert short.missing_by_domain == {"2": 10}
    assert len(short.items) == 26


def test_a_short_paper_keeps_the_pace_and_a_factor_stretches_it() -> None:
    whole = assemble_paper(blueprint(), DOMAINS, BANK, {}, 3)
    half = ExamPaper(whole.items[:5], {})

    assert compute_exam_minutes(blueprint(), whole, 1.0) == 10
    assert compute_exam_minutes(blueprint(), half, 1.0) == 5
    assert compute_exam_minutes(blueprint(), whole, 1.5) == 15


def test_a_choice_between_two_is_left_to_practice() -> None:
    three = question("three", "1.1")
    two = dataclasses.replace(three, answer=ChoiceSpec("single", three.answer.options[:2]))

    assert three.may_be_asked_in_exams
    assert not two.may_be_asked_in_exams
