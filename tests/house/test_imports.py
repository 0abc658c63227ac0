"""A module that speaks of tables needs no other one to be imported before it."""

import ast
import functools
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLES = "app.database.tables"
_SPEAK_SQL = {"sqlmodel", "sqlalchemy", TABLES}
# Each module begins in a process of its own that has imported what others wrote.
_IMPORT_EACH = """
import importlib, os, sys

third, modules = (line.split() for line in sys.stdin)
for name in third:
    importlib.import_module(name)
for name in modules:
    if child := os.fork():
        os.waitpid(child, 0)
        continue
    try:
        importlib.import_module(name)
    except BaseException as error:
        print(name, type(error).__name__, error, flush=True)
    os._exit(0)
"""


def names_in(node: ast.stmt) -> list[str]:
    """What a statement at the top of a module imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [node.module, *(f"{node.module}.{a.name}" for a in node.names)]
    return []


@functools.cache
def imports() -> dict[str, set[str]]:
    """What each module of the app imports when it is imported."""
    found = {}
    for path in sorted((ROOT / "app").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts).removesuffix(".__init__")
        nodes = ast.parse(path.read_bytes()).body
        found[name] = {n for node in nodes for n in names_in(node)}
        found[name] |= {name.rpartition(".")[0]} - {""}
    return found


def reached(name: str) -> set[str]:
    """What is imported with a module, at any remove."""
    seen, todo = set(), {name}
    while todo:
        seen |= todo
        todo = {n for module in todo for n in imports().get(module, ())} - seen
    return seen


def is_imported_with_its_package(name: str) -> bool:
    """Whether to import a module first is to import its package first."""
    package = name.rpartition(".")[0]
    return bool(package) and name in reached(package)


def speaks_of_tables(name: str) -> bool:
    """Whether the import contracts let a module import the tables."""
    return name.startswith(("app.database.", "app.spaced_repetition.")) or "store" in name


def test_a_module_that_speaks_of_tables_can_be_imported_first() -> None:
    modules = {
        name.rpartition(".")[0] if is_imported_with_its_package(name) else name
        for name, wanted in imports().items()
        if speaks_of_tables(name) and wanted & _SPEAK_SQL
    }
    assert modules >= {"app.spaced_repetition.queue", "app.database.engine"}
    third = {
        name
        for name in set().union(*imports().values()) & set(sys.modules)
        if name.split(".")[0] != "app"
    }
    lines = [third, modules]
    run = subprocess.run(
        [sys.executable, "-c", _IMPORT_EACH],
        input="\n".join(" ".join(sorted(line)) for line in lines),
        text=True,
        capture_output=True,
        check=False,
        cwd=ROOT,
    )
    assert (run.stdout, run.stderr) == ("", "")
