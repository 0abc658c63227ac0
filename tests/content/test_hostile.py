"""Whatever stands in a content file is a problem with a line, never a failure."""

import shutil
from pathlib import Path

import pytest

from app.content.check import check_course
from app.content.course import load_course
from app.content.file_reader import parse_file
from app.content.parsed_file import ParsedFile
from app.markup.expressions import ExpressionError, compile_expression, evaluate_expression
from app.markup.problems import ContentProblem
from app.markup.quantities import Quantity, format_with_spec
from app.questions.types.number_parsing import AnswerRangeError, parse_answer_range
from tests.amounts import each_of_sample

TINY = Path(__file__).parents[1] / "courses" / "tiny"
QUIZ = "topics/weights/quiz.md"
SOUND = """\
### Which of these is stored twice?
<!-- q: sound -->

- [x] Nothing
- [ ] Weights
  > They are stored once.
- [ ] Biases
  > They are stored once.
"""
FRONT = "---\ntitle: Weights\nobjective: 1.1\nsource: herd\n---\n\n"
COMPUTED = """\
### How large for {{n}}?
<!-- q: hostile
type: numeric
params:
  n: {n}
let:
  right: {right}
-->

- [x] `{{right}}`

"""


def computed(n: str = "[1, 2]", right: str = "n * 2") -> str:
    return FRONT + COMPUTED.format(n=n, right=right) + SOUND


def item(kind: str, answer: str) -> str:
    heading = f"### Which is it?\n<!-- q: hostile\ntype: {kind} -->\n\n"
    return f"{FRONT}{heading}{answer}\n\n{SOUND}"


# What once stopped the whole server, or could: the text of a quiz.
ITEMS = {
    "a value beyond all numbers": computed(n="[1e400]"),
    "a constant of 400 digits": computed(right="9" * 400),
    "a list nested 5,000 deep": computed(n="\n" + "  " + "- " * 5_000 + "1"),
    "brackets nested deep": computed(n="[" * 150 + "1" + "]" * 150),
    "keys nested deep": computed(n="\n" + "".join(" " * (at + 4) + "a:\n" for at in range(150))),
    "a range from minus to plus infinity": computed(n=f"-{'9' * 400}..{'9' * 400}"),
    "whole numbers that grow without end": computed(
        n="[99999999]\nlet:".removesuffix("\nlet:"),
        right="n*n*n*n*n*n*n*n*n\n"
        + "".join(
            f"  s{at}: {'*'.join([f's{at - 1}' if at else 'right'] * 60)}\n" for at in range(9)
        ),
    ),
    "a range whose unit makes it endless": item("numeric", "- [x] `1e300 YB`"),
    "an endless tolerance": item("numeric", "- [x] `1e300 ± 1e300%`"),
    "an answer of 50,000 blanks": item("numeric", f"- [x] `1{' ' * 50_000}x`"),
    "a box of 19,000 blanks": item("single", f"- [{' ' * 19_000}a"),
    "three hundred times the same step": item("order", "1. Again\n" * 300),
    "three hundred times the same option": item("single", "- [ ] Again\n" * 300),
    "more parameters than letters": computed(
        n="[1]\n" + "".join(f"  n{at}: 1..9999\n" for at in range(60))
    ),
    "quotes in quotes": item("single", ">" * 3_000 + " a\n\n- [x] A\n- [ ] B"),
    "lists in lists": item("single", "- " * 3_000 + " a\n\n- [x] A\n- [ ] B"),
    "brackets without end": item("single", "[" * 10_000 + "\n\n- [x] A\n- [ ] B"),
    "pictures in pictures": item("single", "![" * 5_000 + "\n\n- [x] A\n- [ ] B"),
    "tags without end": item("single", "a<b>" * 5_000 + "\n\n- [x] A\n- [ ] B"),
    "a paragraph of 100,000 letters": item("single", "a " * 50_000),
    "a table of 2,000 columns": item(
        "match", f"{'|a' * 2_000}|\n{'|-' * 2_000}|\n" + "|b|c|\n" * 20
    ),
    "a bar of infinite length": item(
        "single", "```figure bar\nrows:\n  a: 1e308\n  b: 9e307 KiB\n```"
    ),
    "a bar times infinity": item("single", f"```figure bar\nrows:\n  a: {'9' * 400} x 3\n```"),
    "a bar below zero": item("single", "```figure bar\nlimit: -5\nrows:\n  a: -1\n```"),
    "a bar of almost nothing": item("single", "```figure bar\nrows:\n  a: 1e-320\n```"),
    "a figure of 400 digits": item(
        "single", f"[{'9' * 400} GB](calc:inference-memory?model=70B#weights)"
    ),
}


@pytest.fixture
def course_folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TINY, tmp_path / "course"))


def errors_of(reading: ParsedFile) -> list[ContentProblem]:
    return [p for p in reading.problems if p.severity == "error"]


def test_a_hostile_item_is_left_out_with_its_problem(subtests: pytest.Subtests) -> None:
    for name, text in ITEMS.items():
        with subtests.test(name=name):
            reading = parse_file(text, QUIZ)

            assert [q.id for q in reading.questions] == ["sound"]
            problems = errors_of(reading)
            assert {p.item for p in problems} == {"hostile"}
            last = text.removesuffix(SOUND).count("\n")
            assert all(7 <= p.line <= last for p in problems)
            assert all("Headroom failed" not in p.message for p in problems)


@pytest.mark.usefixtures("read_once")
@each_of_sample("name", ITEMS, 6)
def test_the_check_names_a_hostile_item(name: str, course_folder: Path) -> None:
    (course_folder / QUIZ).write_text(ITEMS[name], encoding="utf-8")

    found = check_course(course_folder)

    errors = [p for p in found if p.severity == "error" and p.path == QUIZ]
    assert {p.item for p in errors} == {"hostile"}
    assert set(load_course(course_folder).topics) == {"weights", "kv-cache"}


REGISTERS = {
    "a weight that is no number": "[[domains]]\nnumber = '1'\nweight = nan\n",
    "an infinite weight": "[[domains]]\nnumber = '1'\nweight = inf\n",
    "a weight of 400 digits": f"[[domains]]\nweight = {'9' * 400}\n",
    "a title of 5,000 digits": f"title = 0x{'f' * 5_000}\n",
    "a title that is a list": "title = [[[]]]\n",
    "an order of tables": f"order = [{{ {'a.' * 2_000}b = 1 }}]\n",
    "lists nested deep": f"order = {'[' * 5_000}\n",
    "a key of a thousand parts": f"{'a.' * 1_000}b = 1\n",
    "tables nested deep": f"order = {'{a=' * 5_000}\n",
    "domains that are a number": "domains = 5\n",
    "objectives that are a word": "[[domains]]\nobjectives = 'many'\n",
}


@pytest.mark.usefixtures("read_once")
@each_of_sample("name", REGISTERS, 4)
def test_a_hostile_register_is_named(name: str, course_folder: Path) -> None:
    (course_folder / "syllabus.toml").write_text(REGISTERS[name], encoding="utf-8")

    found = [p for p in check_course(course_folder) if p.path == "syllabus.toml"]

    assert "error" in {p.severity for p in found}
    assert all("Headroom failed" not in p.message for p in found)


EXAMS = {
    "true": "questions = true\nminutes = true\n[domains]\n1 = true\n",
    "nothing": "questions = 0\nminutes = 0\n[domains]\n1 = 1\n",
    "digits": f"questions = 0x{'f' * 90}\nminutes = 6\n[domains]\n1 = 0x{'f' * 90}\n",
    "negative": "questions = -3\nminutes = 6\n[domains]\n1 = -3\n",
    "years": "questions = 1\nminutes = 999999999\n[domains]\n1 = 1\n",
}


def test_an_exam_that_nobody_could_sit_is_named(subtests: pytest.Subtests) -> None:
    for name, text in EXAMS.items():
        with subtests.test(name=name):
            reading = parse_file(text, "exams/short.toml")

            assert reading.exam is None
            assert {p.code for p in errors_of(reading)} == {"E10", "E13"}


@pytest.mark.parametrize(
    "line",
    [
        f"an-id single 2026-01-01 - {'z' * 4_000} -",
        "an-id single 2026-01-01 - -1.2 -",
        f"an-id single 2026-01-01 - {'.'.join(['1'] * 99)} -",
        f"an-id single 2026-01-01 - - {','.join(['k:d'] * 999)}",
    ],
)
def test_a_line_of_the_lock_that_nobody_wrote_is_named(line: str) -> None:
    reading = parse_file(f"# A comment.\n{line}\n", "ids.lock")

    assert [(p.code, p.line) for p in reading.problems] == [("E10", 2)]


def test_a_picture_with_an_endless_name_is_only_not_there(course_folder: Path) -> None:
    page = course_folder / "topics/weights/concept.md"
    text = page.read_text(encoding="utf-8")
    page.write_text(f"{text}\n![A picture]({'a' * 5_000}.svg)\n", encoding="utf-8")

    assert [p.code for p in check_course(course_folder)] == ["E61"]


def test_a_folder_whose_name_is_no_text_is_named(course_folder: Path) -> None:
    folder = course_folder / "topics" / b"\xff".decode("utf-8", "surrogateescape")
    shutil.copytree(course_folder / "topics/weights", folder)

    found = check_course(course_folder)

    assert [(p.code, p.path) for p in found] == [("E00", "topics/\N{REPLACEMENT CHARACTER}")]
    assert set(load_course(course_folder).topics) == {"weights", "kv-cache"}


@pytest.mark.parametrize("text", ["9" * 400, "1e400", "1e300 * 1e300", "10 / 1e-320"])
def test_an_expression_without_a_finite_value_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError, match=r"no value|finite number"):
        evaluate_expression(compile_expression(text), {})


def test_a_name_that_holds_a_number_of_any_length_is_refused() -> None:
    with pytest.raises(ExpressionError):
        evaluate_expression(compile_expression("n"), {"n": Quantity(10**400)})


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), 10**400])
def test_a_number_that_is_none_can_be_shown(value: float) -> None:
    for spec in ("", ",", "d", ",d", ".2f", ".3g"):
        assert format_with_spec(value, spec) in {"infinity", "\N{MINUS SIGN}infinity", "no number"}


@pytest.mark.parametrize("text", ["1e300 YB", "1 ± 1e300 YB", "5 .. 1e300 YB", "1" * 999])
def test_a_range_without_an_end_is_refused(text: str) -> None:
    with pytest.raises(AnswerRangeError):
        parse_answer_range(text)


LARGE = {
    "ids.lock": ("x\n" * 25_000, "too many problems, formulas and figures"),
    "glossary.md": ("## {}\n\nA meaning.\n\n", "more than 1,000 terms"),
    "syllabus.toml": ("# \n" * 100_001, "100,002 lines; the limit is 100,000"),
    QUIZ: ("\n" * 100_001, "100,002 lines; the limit is 100,000"),
    "topics/weights/concept.md": ("* * *\n" * 100_001, "100,002 lines"),
    "sources.toml": ("[s-{}]\ntitle = 'A'\n", "“sources” has 1,500 entries"),
}


@each_of_sample("path", LARGE, 2)
def test_a_file_that_asks_too_much_of_its_reader_is_named(path: str) -> None:
    text, message = LARGE[path]
    if "{}" in text:
        text = "".join(text.format(number) for number in range(1_500))

    found = [p for p in parse_file(text, path).problems if p.code == "E88"]

    assert [message in p.message for p in found] == [True]
    assert 1 <= found[0].line <= text.count("\n") + 1
    assert found[0].hint


def test_what_stands_before_the_limit_is_served() -> None:
    figures = "".join(f"[1 GB](calc:nothing?n={number}#weights)\n\n" for number in range(4_100))
    text = f"{FRONT}{SOUND}\n### Too much?\n<!-- q: much\ntype: card -->\n\n{figures}"

    reading = parse_file(text, QUIZ)

    assert [q.id for q in reading.questions] == ["sound"]
    assert "E88" in {p.code for p in reading.problems}
