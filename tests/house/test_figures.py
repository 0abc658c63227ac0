"""The figures of the house (`python -m benchmarks.house`) are counted as they say."""

from pathlib import Path

import pytest

from app.content.read import parse
from benchmarks import house, reading_way
from benchmarks.reading_way import Step


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A house of two rooms, with something wrong of each sort."""
    files = {
        "app/__init__.py": "",
        "app/low/__init__.py": "",
        "app/low/one.py": "from app.low import two\nRETENTION = 0.9\n",
        "app/low/two.py": (
            "def f():\n    from app.low.one import RETENTION\n"
            "    return 'Write it as <path d=\"M0 0\"/>.'\n"
        ),
        "app/high/__init__.py": "",
        "app/high/page.py": (
            "import json\nfrom typing import TYPE_CHECKING\n"
            "from json import _default_decoder\nfrom app.low.one import RETENTION\n\n"
            "if TYPE_CHECKING:\n    from app.low import two\n\n\n"
            "def g(retention: float = 0.9, share: float = 0.9) -> str:\n"
            '    """Draw."""\n    json.loads = None\n    return "<rect x=1>"\n'
        ),
        "templates/a.html": f"<p>{'x' * 120}</p>\n<p>short</p>\n",
        "static/a.css": "p { }\n",
        "pyproject.toml": (
            '[[tool.importlinter.contracts]]\nname = "n"\ntype = "layers"\n'
            'exhaustive = true\ncontainers = ["app.low"]\nlayers = ["one", "two"]\n'
        ),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_circle_is_found_behind_an_import_that_waits(root: Path) -> None:
    assert house.circles(house.imports(root)) == [("app.low.one", "app.low.two")]


def test_a_guard_is_found(root: Path) -> None:
    assert house.guards(root) == ["app/high/page.py:6"]


def test_rooms_import_rooms(root: Path) -> None:
    assert house.rooms(root) == {"high": frozenset({"low"}), "low": frozenset()}


def test_a_room_of_one_module_needs_no_contract(root: Path) -> None:
    assert house.contracted(root) == (["app.low"], [])


def test_a_retention_is_told_from_another_share(root: Path) -> None:
    assert house.retentions(root) == ["app/high/page.py:10", "app/low/one.py:2"]


def test_a_private_name_and_a_replaced_function_are_patches(root: Path) -> None:
    assert house.patched(root) == [
        "app/high/page.py:3 json._default_decoder",
        "app/high/page.py:12 json.loads",
    ]


def test_shapes_and_wide_lines_and_code_are_counted(root: Path) -> None:
    assert house.engines(root) == ["app/high"]
    assert house.wide(root) == (["templates/a.html:1"], 3)
    assert house.code_lines(root) == 14


def test_one_kind_of_question_is_named_where_it_lives_and_where_it_looks() -> None:
    assert house.naming("cloze") == [
        "app/questions/kinds/__init__.py",
        "app/questions/kinds/cloze.py",
        "templates/questions/cloze.html",
        "static/css/quiz.css",
    ]


def test_a_way_that_goes_back_is_longer_than_one_that_goes_on() -> None:
    back = reading_way.stays([Step("a", "b", "f"), Step("a", "c", "g")])
    assert (back, reading_way.returns(back)) == (("a", "b", "a", "c"), 1)
    on = reading_way.stays([Step("a", "b", "f"), Step("b", "c", "g")])
    assert (on, reading_way.returns(on)) == (("a", "b", "c"), 0)


def test_the_page_whose_way_is_followed_is_sound_and_followed_to_its_end() -> None:
    read = parse(reading_way.PAGE, reading_way.PATH)
    assert (read.problems, len(read.questions)) == ((), 1)
    assert read.topic is not None
    way = reading_way.steps()
    assert way[0].caller == "app.content.read"
    assert "lay_out" in [step.function for step in way]
    assert way == reading_way.steps()


def test_every_row_has_a_figure_for_this_house() -> None:
    for row in house.rows():
        assert row.today
        assert row.aim
