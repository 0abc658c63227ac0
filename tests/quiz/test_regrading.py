"""A stored answer graded by a mended key: what it earns, or why it cannot be."""

import dataclasses
import shutil
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.content.course import Course, load_course
from app.markup.model import QuestionParameters
from app.questions import types as kinds
from app.questions.grading import (
    RegradeRefusal,
    VariantPair,
    grade_response,
    is_only_key_changed,
    pair_seen_and_current_variants,
)
from app.questions.model import Question, draw_variant, find_combination_index
from app.questions.option_parsing import Choice
from app.questions.question_type import SubmittedFields, UnreadableResponse
from app.quiz.store import QUESTION
from tests.amounts import FACTOR, each_of_sample
from tests.conftest import TINY
from tests.quiz.bank import (
    CLOZE,
    DESIGN,
    EVERY_TYPE,
    GIGABYTES,
    MATCH,
    MULTIPLE,
    ORDER,
    SHORT,
    SINGLE,
    TRUE_FALSE,
    choices,
    number,
    numeric,
    text,
)
from tests.quiz.course import COMPUTED

RESPONSES = {
    kind: [
        dict(raw)
        for _, raw in kinds.question_type_of(asked).sample_responses(draw_variant(asked, 3).answer)
    ]
    for kind, asked in EVERY_TYPE.items()
}
SEEDS = st.integers(0, 2**31 - 1)


def regrade(
    asked: Question, now: Question, seed: int, raw: SubmittedFields, *, reworded: bool = False
) -> float | RegradeRefusal:
    pair = pair_seen_and_current_variants(asked, now, seed)
    return pair.regrade(raw, accept_rewording=reworded) if isinstance(pair, VariantPair) else pair


def of(asked: Question, **changes: object) -> Question:
    """The question with another answer part."""
    answer = dataclasses.replace(asked.answer, **changes)  # type: ignore[type-var]
    return dataclasses.replace(asked, answer=answer, revision="r2")


@each_of_sample("kind", EVERY_TYPE, 3)
@given(seed=SEEDS)
def test_by_the_same_key_every_answer_earns_what_it_earned(kind: str, seed: int):
    asked = EVERY_TYPE[kind]
    for raw in RESPONSES[kind]:
        verdict = grade_response(draw_variant(asked, seed), raw)
        again = regrade(asked, asked, seed, raw)
        if isinstance(verdict, UnreadableResponse):
            assert again is RegradeRefusal.UNREADABLE
        else:
            assert again == verdict.score


@given(seed=SEEDS, chosen=st.sampled_from(["bcdf", "ghjk", "lmnp"]))
def test_another_option_is_right(seed: int, chosen: str):
    mended = of(SINGLE, options=choices("single", bcdf=True, ghjk=False, lmnp=False).options)

    assert regrade(SINGLE, mended, seed, {"answer": [chosen]}) == (chosen == "bcdf")


def test_a_mended_key_gives_its_score(subtests: pytest.Subtests):
    for asked, mended, raw, score in [
        (
            TRUE_FALSE,
            of(TRUE_FALSE, options=choices("true-false", bcdf=1, ghjk=0).options),
            {"answer": ["bcdf"]},
            1,
        ),
        (
            MULTIPLE,
            of(
                MULTIPLE,
                options=choices("multiple", bcdf=1, ghjk=0, lmnp=1, qrst=0).options,
            ),
            {"answer": ["lmnp", "bcdf"]},
            1,
        ),
        (GIGABYTES, numeric(number(560, "GB", factor=1e9)), {"answer": ["560"]}, 1),
        (
            SHORT,
            of(
                SHORT,
                options=tuple(dataclasses.replace(o, right=True) for o in SHORT.answer.options),
            ),
            {"answer": ["all-gather"]},
            1,
        ),
        (
            CLOZE,
            of(
                CLOZE,
                blanks=(
                    dataclasses.replace(CLOZE.answer.blanks[0], answers=("iWARP",)),
                    CLOZE.answer.blanks[1],
                ),
            ),
            {"blank.bcdf": ["iWARP"], "blank.ghjk": ["lossy"]},
            0.5,
        ),
    ]:
        with subtests.test(asked=asked, mended=mended, raw=raw):
            assert regrade(asked, mended, 5, raw) == score


def test_steps_that_changed_places_are_the_same_steps():
    steps = tuple(reversed(ORDER.answer.steps))
    raw = {f"place.{s.key}": [str(n)] for n, s in enumerate(steps, 1)}

    assert regrade(ORDER, of(ORDER, steps=steps), 9, raw) == 1


def test_pairs_that_changed_partners_are_the_same_cells():
    one, other, decoy = MATCH.answer.pairs
    mended = of(
        MATCH,
        pairs=(
            dataclasses.replace(one, right=other.right, answer=other.answer),
            dataclasses.replace(other, right=one.right, answer=one.answer),
            decoy,
        ),
    )
    raw = {f"pair.{one.key}": [other.answer], f"pair.{other.key}": [one.answer]}

    assert regrade(MATCH, mended, 9, raw) == 1


def test_who_did_not_know_earns_nothing_by_any_key():
    assert regrade(SINGLE, SINGLE, 1, {}) == 0


def test_another_kind_is_another_question():
    assert regrade(SINGLE, MULTIPLE, 1, {"answer": ["ghjk"]}) is RegradeRefusal.KIND


def with_parameters(**params: tuple[float, ...]) -> Question:
    lets = COMPUTED.computed.named_expressions if COMPUTED.computed else ()
    return dataclasses.replace(COMPUTED, computed=QuestionParameters(params, lets))


def test_other_numbers_are_another_question():
    seen = draw_variant(COMPUTED, 2).parameter_values["n"]
    raw = {"answer": [f"{float(seen) * 10:g} GB"]}

    assert regrade(COMPUTED, COMPUTED, 2, raw) == 1
    others = with_parameters(n=(3.0, 5.0, 8.0, 11.0))
    assert regrade(COMPUTED, others, 2, raw) is RegradeRefusal.NUMBERS
    assert regrade(COMPUTED, others, 0, {"answer": ["30 GB"]}) == 1


def test_a_formula_may_be_mended_where_the_numbers_stay():
    assert COMPUTED.computed
    mended = dataclasses.replace(
        COMPUTED,
        computed=QuestionParameters(
            COMPUTED.computed.possible_values_by_name,
            (("right", "n * 20 GB"), ("half", "n * 10 GB")),
        ),
    )

    assert regrade(COMPUTED, mended, 0, {"answer": ["60 GB"]}) == 1
    assert regrade(COMPUTED, mended, 0, {"answer": ["30 GB"]}) == 0


def test_an_option_that_is_gone_or_new_makes_another_question():
    gone = of(SINGLE, options=SINGLE.answer.options[1:])
    new = of(SINGLE, options=(*SINGLE.answer.options, Choice("qrst", text("New"), False)))

    assert regrade(SINGLE, gone, 1, {"answer": ["bcdf"]}) is RegradeRefusal.UNREADABLE
    assert regrade(SINGLE, gone, 1, {"answer": ["ghjk"]}) is RegradeRefusal.PARTS
    for reworded in (False, True):
        raw = {"answer": ["ghjk"]}
        assert regrade(SINGLE, new, 1, raw, reworded=reworded) is RegradeRefusal.PARTS


def test_a_unit_that_was_left_out_is_not_read_as_another():
    other = numeric(number(1120, "GiB", within=0.02, factor=2**30))

    for reworded in (False, True):
        found = regrade(GIGABYTES, other, 1, {"answer": ["1120"]}, reworded=reworded)
        assert found is RegradeRefusal.PARTS


@pytest.mark.parametrize("asked", [SINGLE, ORDER, CLOZE, MATCH])
def test_other_words_count_only_where_the_author_says_so(asked: Question):
    mended = dataclasses.replace(asked, stem=text("What is not asked?"))
    raw = RESPONSES[asked.type][0]

    assert regrade(asked, mended, 1, raw) is RegradeRefusal.WORDS
    assert regrade(asked, mended, 1, raw, reworded=True) == 1


def test_marks_and_capitals_are_no_other_words():
    mended = dataclasses.replace(SINGLE, stem=text("what is asked"))

    assert regrade(SINGLE, mended, 1, {"answer": ["ghjk"]}) == 1


def test_the_conditions_of_a_plan_are_read_before_it_is_chosen():
    raw = RESPONSES["design"][0]
    stricter = of(DESIGN, accept=("fits", "free >= 11 GB", "free <= 3 * best(free)"))
    larger = of(DESIGN, given={**DESIGN.answer.given, "context": "16384"})

    assert regrade(DESIGN, stricter, 1, raw) is RegradeRefusal.WORDS
    assert regrade(DESIGN, larger, 1, raw) is RegradeRefusal.WORDS


def test_what_cannot_be_read_by_the_key_of_now_is_not_graded():
    assert regrade(SINGLE, SINGLE, 1, {"answer": ["none"]}) is RegradeRefusal.UNREADABLE
    assert regrade(SHORT, SHORT, 1, {"answer": [" "]}) is RegradeRefusal.UNREADABLE


def test_what_differs_in_the_key_alone_is_told_from_what_does_not():
    mended = of(SINGLE, options=choices("single", bcdf=1, ghjk=0, lmnp=0).options)
    reworded = dataclasses.replace(mended, stem=text("What is not asked?"))

    assert is_only_key_changed(SINGLE, mended)
    assert not is_only_key_changed(SINGLE, reworded)
    assert not is_only_key_changed(SINGLE, MULTIPLE)


@given(seed=SEEDS, more=st.integers(0, 1000))
def test_seeds_that_draw_the_same_numbers_grade_alike(seed: int, more: int):
    raw = {"answer": ["30 GB"]}
    other = seed + more * len(COMPUTED.computed.possible_values_by_name["n"])

    assert find_combination_index(COMPUTED, seed) == find_combination_index(COMPUTED, other)
    assert regrade(COMPUTED, COMPUTED, seed, raw) == regrade(COMPUTED, COMPUTED, other, raw)


@pytest.mark.drawn
def test_every_question_of_the_course_is_itself_after_it_was_kept(shipped: Course):
    """Wordings are kept as JSON; by the same key every answer earns the same.

    Of each type two questions; `make drills`: all.
    """
    of_type: dict[str, list[Question]] = defaultdict(list)
    for question in shipped.with_drafts().questions.values():
        of_type[kinds.question_type_of(question).name].append(question)
    most = 2 if FACTOR == 1 else None
    for asked in (question for many in of_type.values() for question in many[:most]):
        kept = QUESTION.validate_json(QUESTION.dump_json(asked))
        variant = draw_variant(asked, 7)
        assert is_only_key_changed(kept, asked) or kinds.question_type_of(asked).name == "design", (
            asked.id
        )
        for _, raw in kinds.question_type_of(asked).sample_responses(variant.answer):
            verdict, again = grade_response(variant, raw), regrade(kept, asked, 7, raw)
            if isinstance(verdict, UnreadableResponse):
                assert again is RegradeRefusal.UNREADABLE, asked.id
            else:
                assert again == verdict.score, asked.id


@pytest.mark.parametrize(
    ("item", "old", "new", "raw_of"),
    [
        (
            "k-order",
            "1. The prompt is read\n2. The first token is written",
            "1. The first token is written\n2. The prompt is read",
            {
                "The first token is written": "1",
                "The prompt is read": "2",
                "The last token is written": "3",
                "The cache is freed": "4",
            },
        ),
        ("k-cloze", "[[keys|key]]", "[[queries]]", {}),
        ("k-stay", "- [ ] True", "- [x] True", {}),
    ],
)
def test_a_key_that_is_mended_in_the_file_changes_nothing_else(
    tmp_path: Path, item: str, old: str, new: str, raw_of: dict[str, str]
):
    folder = Path(shutil.copytree(TINY, tmp_path / "course"))
    before = load_course(folder).questions[item]
    file = folder / "topics/kv-cache/quiz.md"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new).replace("- [x] False", "- [ ] False"))
    now = load_course(folder).questions[item]

    assert before.revision != now.revision
    pair = pair_seen_and_current_variants(before, now, 3)
    assert isinstance(pair, VariantPair)
    assert pair.has_same_wording
    if raw_of:
        places = {s.text.plain: s.key for s in before.answer.steps}
        raw = {f"place.{places[words]}": [at] for words, at in raw_of.items()}
        assert pair.regrade(raw) == 1
