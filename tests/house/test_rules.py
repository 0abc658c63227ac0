"""The rules of the house that a linter cannot say."""

import ast
import collections
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "app").rglob("*.py"))


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


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
