"""Calculated questions of Moodle come in as computed ones, and are graded."""

from pathlib import Path

import pytest

from app.cli.import_export import import_file
from app.content.check import check_course
from app.content.file_reader import parse_file
from app.import_export.formats.moodle_calculated import (
    CalculatedParameters,
    add_used_parameters_and_expressions,
)
from app.import_export.formats.moodle_xml import read_moodle
from app.import_export.items import Item, ItemOption
from app.import_export.text_conversion import PicturesAndLosses
from app.questions.grading import grade_response
from app.questions.model import draw_variant
from app.questions.question_type import GradeResult
from tests.content.test_cases import DAY, lay_out


def dataset(name: str, *values: str) -> str:
    """A data set in the structure that Moodle writes."""
    items = "".join(
        f"<dataset_item><number>{n}</number><value>{v}</value></dataset_item>"
        for n, v in enumerate(values, 1)
    )
    return f"""<dataset_definition><status><text>private</text></status>
    <name><text>{name}</text></name><type>calculated</type>
    <distribution><text>uniform</text></distribution><minimum><text>1</text></minimum>
    <maximum><text>10</text></maximum><decimals><text>1</text></decimals>
    <itemcount>{len(values)}</itemcount><dataset_items>{items}</dataset_items>
    <number_of_items>{len(values)}</number_of_items></dataset_definition>"""


def question(
    formula: str, *datasets: str, kind: str = "calculated", text: str = "Of {a} and {b}?"
) -> str:
    return f"""<?xml version="1.0" encoding="UTF-8"?><quiz><question type="{kind}">
    <name><text>Power</text></name>
    <questiontext format="html"><text><![CDATA[<p>{text}</p>]]></text></questiontext>
    <generalfeedback format="html"><text>It is {{={{a}}*{{b}}}}.</text></generalfeedback>
    <single>1</single><answernumbering>abc</answernumbering>
    <answer fraction="100"><text>{formula}</text><tolerance>0.01</tolerance>
    <tolerancetype>1</tolerancetype><correctanswerformat>1</correctanswerformat>
    <correctanswerlength>1</correctanswerlength><feedback format="html"><text></text></feedback>
    </answer>
    <answer fraction="0"><text>{formula.replace("*", "+")}</text><tolerance>0.5</tolerance>
    <tolerancetype>2</tolerancetype><correctanswerformat>1</correctanswerformat>
    <correctanswerlength>1</correctanswerlength>
    <feedback format="html"><text>That is the sum of {{a}}.</text></feedback></answer>
    <units><unit><multiplier>1</multiplier><unit_name>kW</unit_name></unit></units>
    <dataset_definitions>{"".join(datasets)}</dataset_definitions></question></quiz>"""


A, B = dataset("a", "2.5", "3"), dataset("b", "4", "5.25", "4.0")


@pytest.fixture
def course_folder(tmp_path: Path) -> Path:
    lay_out(tmp_path / "course")
    return tmp_path / "course"


def imported(course_folder: Path, xml: str) -> str:
    file = course_folder.parent / "calculated.xml"
    file.write_text(xml, encoding="utf-8")
    report = import_file("moodle", file, course_folder, "case")
    assert "1 item imported" in report or "already" in report, report
    return (course_folder / "topics/case/quiz.md").read_text("utf-8")


@pytest.mark.parametrize("kind", ["calculated", "calculatedsimple"])
def test_data_sets_are_params_and_the_formula_is_let(course_folder: Path, kind: str) -> None:
    text = imported(course_folder, question("{a}*{b}", A, B, kind=kind))

    assert "params:\n  a: [2.5, 3]\n  b: [4, 5.25]\nlet:\n  answer_1: a * b\n" in text
    assert "- [x] `{answer_1:.9g} kW ± 1%`" in text
    assert "- [ ] `{answer_2:.9g} kW ± 0.5`\n  > That is the sum of {a}." in text
    assert "> It is {answer_1:.9g}." in text
    assert [p for p in check_course(course_folder, today=DAY) if p.severity == "error"] == []
    (asked,) = parse_file(text, "topics/case/quiz.md").questions
    for seed in range(8):
        drawn = draw_variant(asked, seed)
        a, b = (float(drawn.parameter_values[n]) for n in "ab")
        right = grade_response(drawn, {"answer": [f"{a * b * 1.005} kW"]})
        wrong = grade_response(drawn, {"answer": [f"{a + b} kW"]})
        assert isinstance(right, GradeResult)
        assert isinstance(wrong, GradeResult)
        assert (right.score, wrong.score) == (1.0, 0.0)


def test_a_second_import_adds_nothing(course_folder: Path) -> None:
    first = imported(course_folder, question("{a}*{b}", A, B))

    assert imported(course_folder, question("{a}*{b}", A, B)) == first


def test_choices_are_computed_with_their_decimals(course_folder: Path) -> None:
    text = imported(course_folder, question("{={a}*{b}} kW", A, B, kind="calculatedmulti"))

    assert "- [x] {value_1:.1f} kW" in text
    assert "- [ ] {value_2:.1f} kW\n  > That is the sum of {a}." in text
    assert [p for p in check_course(course_folder, today=DAY) if p.severity == "error"] == []


@pytest.mark.parametrize(
    ("formula", "expression"),
    [
        ("pow({a},2)*{b}", "a * a * b"),
        ("{a}**3*{b}", "a * a * a * b"),
        ("round({a}*{b}, 1)", "round(a * b, 1)"),
        ("abs({a}*{b})", "max(a * b, -(a * b))"),
        ("pi()*{a}*{b}", "3.14159265358979 * a * b"),
    ],
)
def test_what_a_formula_has_is_written_as_it_is_computed_here(
    formula: str, expression: str
) -> None:
    (item,) = read_moodle(question(formula, A, B).encode()).items

    assert item.lets[0] == ("answer_1", expression)


@pytest.mark.parametrize(
    ("formula", "reason"),
    [
        ("sqrt({a})*{b}", "its formula uses sqrt, which is unknown here"),
        ("{a}*{c}", "its wildcard {c} has no data set"),
        ("pow({a},{b})", "its formula has a power that is no whole number from 1 to 6"),
        ("{a}*({b}", "its formula “{a}*({b}” cannot be read"),
        ("{a}", "its answer {a} is a data set of its own, which goes with the others"),
    ],
)
def test_what_cannot_be_computed_is_refused_with_its_reason(formula: str, reason: str) -> None:
    result = read_moodle(question(formula, A, B).encode())

    assert result.items == ()
    assert reason in result.refused_items[0].sentence


def test_what_is_drawn_otherwise_than_in_moodle_is_said() -> None:
    many = [dataset(n, *map(str, range(1, 101))) for n in "ab"]
    result = read_moodle(question("{a}*{b}", *many).encode())

    assert [r.sentence for r in result.losses] == [
        "the values of its wildcards are drawn independently of each other",
        "of up to 100 values of a wildcard the first 14 are drawn",
    ]


def test_other_braces_of_the_text_are_no_placeholders(course_folder: Path) -> None:
    text = imported(course_folder, question("{a}*{b}", A, B, text="Of {a}, {b} and {name}?"))

    assert "Of {a}, {b} and { name }?" in text


def test_a_parameter_is_kept_whose_name_ends_the_last_expression() -> None:
    item = Item("power", "single", "Of {a}?", (ItemOption("twice as much", True),))
    parameters = CalculatedParameters(
        {"a": ["2"], "b": ["4"]}, expression_by_name={"answer_1": "a * b"}
    )

    computed = add_used_parameters_and_expressions(item, parameters, PicturesAndLosses())

    assert [parameter.name for parameter in computed.params] == ["a", "b"]
