"""The rules of the house that a linter cannot say."""

import ast
import collections
import functools
import re
import sys
from pathlib import Path

from benchmarks import house

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "app").rglob("*.py"))
NAMELESS = {"utils", "helpers", "common", "core", "base", "manager", "service"}
PURE = [
    "app/estimator",
    "app/content/model.py",
    "app/content/problems.py",
    "app/questions",
    "app/scheduling",
    "app/drawings",
    "app/instruments",
    "app/exams/paper",
    *(f"app/mastery/{p.name}" for p in (ROOT / "app/mastery").glob("*.py")),
    "app/progress/steps.py",
]
SPEECHLESS = ("fastapi", "starlette", "jinja2", "sqlmodel", "sqlalchemy", "httpx")


@functools.cache
def imports(path: Path) -> set[str]:
    found = set()
    for node in house.nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_a_module_fits_in_the_head() -> None:
    long = {
        named(path): lines
        for path in MODULES
        if (lines := len(path.read_text().splitlines()))
        > 800  # a subject is not cut in two for a number of lines
    }
    assert long == {}


def test_a_folder_fits_in_a_list_that_is_read_at_once() -> None:
    counts = collections.Counter(named(path.parent) for path in MODULES)
    assert {folder: n for folder, n in counts.items() if n > 20} == {}


def test_every_room_has_its_layers_and_no_module_waits_for_itself() -> None:
    assert house.contracted()[1] == []
    assert house.circles(house.imports()) == []


def test_a_function_fits_on_a_screen() -> None:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    long = [
        f"{named(path)} {node.name}: {body_lines(node)} lines"
        for path in MODULES
        for node in house.nodes(path)
        if isinstance(node, kinds) and body_lines(node) > ceiling(node)
    ]
    assert long == []


def ceiling(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """A list with at most one branch and no loop is a table, and may be longer."""
    inside = list(ast.walk(node))
    loops = (ast.For, ast.While, ast.Try, ast.With, ast.Match)
    branches = sum(isinstance(n, ast.If) for n in inside)
    table = branches <= 1 and not any(isinstance(n, loops) for n in inside)
    return 60 if table else 30


def body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = node.body
    first = body[0]
    if ast.get_docstring(node) and len(body) > 1:
        first = body[1]
    return (node.end_lineno or 0) - first.lineno + 1


def test_a_module_says_what_it_is_for() -> None:
    silent = [named(p) for p in MODULES if not ast.get_docstring(house.tree(p))]
    assert silent == []


def test_no_room_without_a_name() -> None:
    assert [named(p) for p in MODULES if p.stem in NAMELESS] == []


def test_the_estimator_needs_only_the_standard_library() -> None:
    allowed = sys.stdlib_module_names | {"app"}
    foreign = {
        f"{named(path)} imports {name}"
        for path in (ROOT / "app/estimator").rglob("*.py")
        for name in imports(path)
        if name.split(".")[0] not in allowed
        or (name.startswith("app") and not name.startswith("app.estimator"))
    }
    assert foreign == set()


def test_pure_rooms_touch_no_input_or_output() -> None:
    touched = {
        f"{named(path)} imports {name}"
        for path in MODULES
        if any(named(path).startswith(room) for room in PURE)
        for name in imports(path)
        if name.startswith((*SPEECHLESS, "app.db", "app.web", "app.config"))
    }
    assert touched == set()


def test_only_stores_and_the_database_room_know_tables() -> None:
    wrong = {
        named(path)
        for path in MODULES
        if any(n.startswith("app.db.tables") for n in imports(path))
        and path.name != "store.py"
        and "store" not in path.parts
        and "db" not in path.parts
    }
    assert wrong == set()


def test_colors_live_in_the_tokens() -> None:
    color = re.compile(r"#[0-9a-fA-F]{3,8}\b|rgba?\(|hsla?\(")
    wrong = {
        f"{named(path)}:{number}"
        for path in (ROOT / "static/css").rglob("*.css")
        if path.name != "tokens.css"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if color.search(re.sub(r"url\([^)]*\)", "", line.split("/*")[0]))
    }
    assert wrong == set()


def test_a_stylesheet_is_short() -> None:
    lengths = {
        named(p): len(p.read_text().splitlines())
        for p in (ROOT / "static/css").rglob("*.css")
    }
    assert {k: v for k, v in lengths.items() if v > 250} == {}


def test_no_line_of_a_template_stylesheet_or_script_is_wide() -> None:
    over, _ = house.wide(ROOT)
    assert over == []


def test_templates_carry_no_inline_style_or_script() -> None:
    inline = re.compile(r"<style|<script(?![^>]*\bsrc=)|\sstyle=|\son[a-z]+=")
    wrong = {
        f"{named(path)}:{number}"
        for path in (ROOT / "templates").rglob("*.html")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if inline.search(line)
    }
    assert wrong == set()


def test_a_caption_is_the_first_or_last_thing_in_its_figure() -> None:
    wrong = []
    for path in (ROOT / "templates").rglob("*.html"):
        text = re.sub(r"{%.*?%}|{#.*?#}", "", path.read_text(), flags=re.DOTALL)
        for figure in re.findall(r"<figure[^>]*>(.*?)</figure>", text, re.DOTALL):
            before, caption, after = figure.partition("<figcaption")
            rest = after.partition("</figcaption>")[2]
            if caption and before.strip() and rest.strip():
                wrong.append(named(path))
    assert wrong == []


def test_every_fragment_is_used() -> None:
    everything = "".join(
        p.read_text()
        for folder, kind in (("templates", "*.html"), ("app", "*.py"))
        for p in (ROOT / folder).rglob(kind)
    )
    unused = [
        named(p)
        for p in (ROOT / "templates").rglob("_*.html")
        if str(p.relative_to(ROOT / "templates")) not in everything
    ]
    assert unused == []


def test_our_own_scripts_stay_tiny() -> None:
    lines = {
        p.name: len(p.read_text().splitlines())
        for p in (ROOT / "static/js").glob("*.js")
    }
    # What HTML and htmx cannot do at all, because there is no server to do it. Several
    # tabs that keep answers of one question, and what the server says of a grade that
    # it cannot take now, have a part of it.
    offline = sum(lines.pop(n) for n in ("worker.js", "outbox.js", "offline.js"))
    assert offline <= 350
    # A clock that goes on in a machine that sleeps, keys that are held, and forms that
    # know what was changed in them take 80.
    assert sum(lines.values()) <= 480


def test_what_a_comment_refers_to_is_there() -> None:
    """`module.name` in a comment, and `module.Class` at the head of a template."""
    known: dict[str, set[str]] = collections.defaultdict(set)
    for path in MODULES:
        name = path.parent.name if path.name == "__init__.py" else path.stem
        for place in {name, *path.relative_to(ROOT).parts[1:-1]}:
            known[place] |= {name, *re.findall(r"\w+", path.read_text("utf-8"))}
    stale = []
    for path in MODULES:
        said = re.findall(r"[Ss]ee `(\w+)\.(\w+)`", path.read_text("utf-8"))
        stale += [f"{named(path)} {a}.{b}" for a, b in said if b not in known[a]]
    for path in (ROOT / "templates").rglob("*.html"):
        heads = "".join(re.findall(r"(?s)\{#.*?#\}", path.read_text("utf-8")))
        said = re.findall(r"\ban? (\w+)\.([A-Z]\w+)", heads)
        stale += [f"{path.name} {a}.{b}" for a, b in said if b not in known[a]]

    assert stale == []
