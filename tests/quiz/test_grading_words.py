"""Short answers and gaps."""

# ruff: noqa: RUF001 - characters that are mistaken for others are what is tested

import dataclasses

import pytest

from app.content.file_reader import parse_file
from app.questions import types
from app.questions.grading import grade_response
from app.questions.model import draw_variant
from app.questions.question_type import GradeResult, UnreadableResponse, is_same_phrase
from app.questions.types.cloze import ClozeBlank, ClozeSpec
from tests.quiz.bank import CLOZE, SHORT, drawn, text, with_rule


def test_spelling_habits_do_not_matter(subtests: pytest.Subtests) -> None:
    for typed in [
        "all-reduce",
        "All-Reduce",
        "all reduce",
        " allreduce. ",
        "“all\u2010reduce”",
    ]:
        with subtests.test(typed=typed):
            verdict = grade_response(drawn(SHORT), {"answer": [typed]})

            assert isinstance(verdict, GradeResult)
            assert verdict.score == 1


@pytest.mark.parametrize(
    "typed",
    [
        *("„all-reduce“", "»all-reduce«", "« all-reduce »", "‹all-reduce›"),
        *(
            "‚all-reduce‘",
            "”all-reduce”",
            "「all-reduce」",
            "『all-reduce』",
            "《all-reduce》",
        ),
        *(
            "´all-reduce`",
            "`all-reduce`",
            "all-reduce。",
            "all-reduce．",
            "all-reduce！",
        ),
        *("all-reduce？", "all-reduce…", "all-reduce؟", "all-reduce।", "¿all-reduce?"),
        *("all\u2012reduce", "all\u2015reduce", "all\u00a0reduce", "all\u2009reduce"),
        *("all\u00adreduce", "all-\u200breduce", "all\u200dreduce", "all\u2060reduce"),
        *("\ufeffall-reduce", "\u200eall-reduce\u200f", "\u2067all-reduce\u2069"),
        *("ａｌｌ－ｒｅｄｕｃｅ", "all-reduce\u3000", "all-reduce\ufe0f"),
        *("⟨all-reduce⟩", "⟪all-reduce⟫", "❮all-reduce❯", "′all-reduce′"),
        *("″all-reduce″", "״all-reduce״", "׳all-reduce׳", "❟all-reduce❞"),
        *("all-reduce᙮", "all-reduce᠃", "all-reduce꓿", "all-reduce⸮", "᠁all-reduce"),
        *("all-reduce·", "all-reduce՞", "all-reduce۔", "all-reduce⁈", "all-reduce⸼"),
        *("all⁃reduce", "all\ufff9reduce"),
    ],
)
def test_quotes_and_end_marks_of_others_and_what_is_invisible_do_not_matter(
    typed: str,
) -> None:
    verdict = grade_response(drawn(SHORT), {"answer": [typed]})

    assert isinstance(verdict, GradeResult)
    assert verdict.score == 1


@pytest.mark.parametrize(
    ("typed", "right"),
    [
        ("„RoCE“", True),
        ("Ro\u00adCE。", True),
        ("cafe\u0301", False),
    ],
)
def test_they_do_not_matter_in_gaps_either(typed: str, right: bool) -> None:
    verdict = grade_response(drawn(CLOZE), {"blank.bcdf": [typed]})

    assert isinstance(verdict, GradeResult)
    assert verdict.part_results[0].is_right is right


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("GPU内存（HBM）", "GPU 内存 (HBM)"),
        ("A，B", "A, B"),
        ("k：v", "k: v"),
        ("caf\u00e9", "cafe\u0301"),
        ("caf\u00e9", "CAFE\u0301"),
        ("کتاب\u200cها", "کتاب ها"),
        ("की-बोर्ड", "कीबोर्ड"),
        ("the «prefill» phase", 'the "prefill" phase'),
        ("don\u02bct", "don\u2019t"),
        ("ﬁne", "fine"),
    ],
)
def test_two_ways_to_write_the_same_are_the_same(one: str, other: str) -> None:
    assert is_same_phrase(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("C#", "C"), ("50%", "50"), ("-5", "5"), ("prefill", "préfill"), ("f(x)", "fx")],
)
def test_what_says_something_else_stays_another_answer(one: str, other: str) -> None:
    assert not is_same_phrase(one, other)


def test_a_foreseen_wrong_word_says_why() -> None:
    verdict = grade_response(drawn(SHORT), {"answer": ["all gather"]})

    assert isinstance(verdict, GradeResult)
    assert (verdict.score, verdict.feedback.plain) == (0, "It adds nothing up.")
    assert verdict.right_answer == "“all-reduce”"


def test_a_word_that_is_nearly_right_brings_its_part_of_the_mark() -> None:
    options = SHORT.answer.options
    nearly = dataclasses.replace(options[1], credit=0.25)
    asked = dataclasses.replace(
        SHORT, answer=dataclasses.replace(SHORT.answer, options=(options[0], nearly))
    )
    verdict = grade_response(drawn(asked), {"answer": ["all gather"]})

    assert isinstance(verdict, GradeResult)
    assert (verdict.score, verdict.result) == (0.25, "partly")
    assert verdict.feedback.plain == "It adds nothing up."


@pytest.mark.parametrize("typed", ["", "   ", "x" * 201])
def test_nothing_and_too_much_are_refused(typed: str) -> None:
    assert isinstance(grade_response(drawn(SHORT), {"answer": [typed]}), UnreadableResponse)


def test_each_gap_counts() -> None:
    raw = {"blank.bcdf": ["rocev2"], "blank.ghjk": ["lossy"]}

    verdict = grade_response(drawn(CLOZE), raw)

    assert isinstance(verdict, GradeResult)
    assert (verdict.score, verdict.result) == (0.5, "partly")
    assert [mark.is_right for mark in verdict.part_results] == [True, False]
    assert verdict.part_results[1].right_answer.plain == "lossless"


def test_a_gap_to_choose_for_takes_its_own_words_alone() -> None:
    blank = ClozeBlank("bcdf", ("NVLink",), wrong=("PCIe", "InfiniBand"))
    answer = ClozeSpec((text("Inside: "), text(".")), (blank,))
    asked = dataclasses.replace(CLOZE, answer=answer)

    right, near, wrong = (
        grade_response(drawn(asked), {"blank.bcdf": [word]})
        for word in ("NVLink", "nvlinks", "PCIe")
    )

    assert [v.score for v in (right, near, wrong)] == [1, 0, 0]
    assert blank.selectable_words == ("InfiniBand", "NVLink", "PCIe")
    assert types.question_type_of(asked).compute_guess_score(
        asked.answer, asked.partial
    ) == pytest.approx(1 / 3)
    assert types.question_type_of(CLOZE).compute_guess_score(CLOZE.answer, CLOZE.partial) == 0


def test_an_empty_gap_is_wrong_but_no_gap_at_all_is_refused() -> None:
    one = grade_response(drawn(CLOZE), {"blank.bcdf": ["RoCE"]})

    assert isinstance(one, GradeResult)
    assert one.score == 0.5
    assert isinstance(grade_response(drawn(CLOZE), {}), UnreadableResponse)


def test_all_or_nothing_can_be_asked_for() -> None:
    raw = {"blank.bcdf": ["RoCE"], "blank.ghjk": ["lossy"]}

    verdict = grade_response(drawn(with_rule(CLOZE, "off")), raw)

    assert isinstance(verdict, GradeResult)
    assert verdict.score == 0


def test_what_was_typed_is_escaped_on_the_page() -> None:
    verdict = grade_response(drawn(CLOZE), {"blank.bcdf": ["<b>x</b>"]})

    assert isinstance(verdict, GradeResult)
    assert verdict.part_results[0].given_answer.html == "&lt;b&gt;x&lt;/b&gt;"


def test_full_width_signs_part_the_answers_and_the_hint_of_a_gap() -> None:
    text = "---\nobjective: 1.1\nsource: paged\n---\n\n### 水？\n<!-- q: one -->\n\n"
    parsed = parse_file(f"{text}水是[[H2O（水）｜冰？一种物质]]。\n", "topics/a/quiz.md")

    answer = parsed.questions[0].answer
    assert isinstance(answer, ClozeSpec)
    (blank,) = answer.blanks
    assert (blank.answers, blank.hint) == (("H2O（水）", "冰"), "一种物质")


def test_full_width_digits_and_percent_signs_are_a_number() -> None:
    text = "---\nobjective: 1.1\nsource: paged\n---\n\n### 多少？\n<!-- q: one -->\n\n"
    parsed = parse_file(f"{text}- [x] `２００ g ± ２％`\n", "topics/a/quiz.md")

    (question,) = parsed.questions
    verdict = grade_response(draw_variant(question, 0), {"answer": ["２０３　ｇ"]})
    assert isinstance(verdict, GradeResult)
    assert (question.type, verdict.result) == ("numeric", "right")
