"""The shape of the house in numbers: each row measured from the tree, beside its aim.

Run: python -m benchmarks.house. A row says how it was counted where its words leave
that open; a figure that the tree does not tell is “unknown”. The functions take the
root of the repository, so that a test can hold one of them.
"""

import ast
import collections
import dataclasses
import functools
import importlib
import itertools
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks import reading_way
from evidence.accuracy.report import own_report

ROOT = Path(__file__).resolve().parents[1]
WIDEST = 120
_FILES = frozenset({"entry.py", "asked.py", "words.py"})
# What a library offers to be replaced, says so, and is no private part of it.
_OFFERED = frozenset({"metadata", "validateLink"})
# A shape behind a word is spoken of, as in a hint, not drawn.
_SHAPE = re.compile(r"(?<!\w )<(?:rect|polyline|path|line|circle)\s")
_FACES = (("templates", "*.html"), ("static", "*.css"), ("static", "*.js"))
Graph = Mapping[str, frozenset[str]]


@dataclasses.dataclass(frozen=True)
class Row:
    """One row: what is counted, today's figure, the aim, and where it stands."""

    what: str
    today: str
    aim: str
    where: tuple[str, ...] = ()


# --- the tree ---


@functools.cache
def tree(path: Path) -> ast.Module:
    """A module, parsed once however many rows and rules look at it."""
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Everything in a module, walked once."""
    return tuple(ast.walk(tree(path)))


def _statements(path: Path) -> Iterator[ast.AST]:
    """The statements of a module at any depth: a twentieth of its nodes."""
    waiting: list[ast.AST] = [tree(path)]
    while waiting:
        node = waiting.pop()
        yield node
        for inside in ("body", "orelse", "handlers", "finalbody", "cases"):
            waiting += getattr(node, inside, ())


def modules(root: Path = ROOT) -> dict[str, Path]:
    """Every module of the app by its dotted name."""
    found = {}
    for path in sorted((root / "app").rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@functools.cache
def imports(root: Path = ROOT) -> Graph:
    """Which modules of the app each module imports, wherever the import stands."""
    known = modules(root)
    return {
        name: frozenset(_imported(_statements(path), known) - {name})
        for name, path in known.items()
    }


def _imported(inside: Iterable[ast.AST], known: Mapping[str, Path]) -> set[str]:
    found: set[str] = set()
    for node in inside:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in known else node.module)
    return found & set(known)


def rooms(root: Path = ROOT, package: str = "app") -> Graph:
    """Which neighbors each direct part of a package imports."""
    depth = package.count(".") + 2
    found: dict[str, set[str]] = {}
    for name, others in imports(root).items():
        room = _room(name, package, depth)
        if room:
            targets = {_room(other, package, depth) for other in others}
            found.setdefault(room, set()).update(targets - {room, ""})
    return {room: frozenset(others) for room, others in found.items()}


def _room(name: str, package: str, depth: int) -> str:
    parts = name.split(".")
    inside = name.startswith(f"{package}.") and len(parts) >= depth
    return parts[depth - 1] if inside else ""


def circles(graph: Graph) -> list[tuple[str, ...]]:
    """Groups of modules that reach each other: the strongly connected ones."""
    order: list[str] = []
    seen: set[str] = set()
    for start in graph:
        _finish(start, graph, seen, order)
    turned: dict[str, set[str]] = collections.defaultdict(set)
    for name, others in graph.items():
        for other in others:
            turned[other].add(name)
    seen = set()
    groups = []
    for start in reversed(order):
        group: list[str] = []
        _finish(start, turned, seen, group)
        if len(group) > 1:
            groups.append(tuple(sorted(group)))
    return sorted(groups)


def _finish(
    start: str,
    graph: Mapping[str, Iterable[str]],
    seen: set[str],
    order: list[str],
) -> None:
    """Walk depth first from `start`; append each module when it is left."""
    stack = [(start, iter(sorted(graph.get(start, ()))))] if start not in seen else []
    seen.add(start)
    while stack:
        name, rest = stack[-1]
        fresh = next((other for other in rest if other not in seen), None)
        if fresh is None:
            order.append(name)
            stack.pop()
        else:
            seen.add(fresh)
            stack.append((fresh, iter(sorted(graph.get(fresh, ())))))


# --- the rows ---


def guards(root: Path = ROOT) -> list[str]:
    """Where `if TYPE_CHECKING:` stands."""
    return [
        f"{_named(path, root)}:{node.lineno}"
        for path in modules(root).values()
        for node in nodes(path)
        if isinstance(node, ast.If) and _says(node.test, "TYPE_CHECKING")
    ]


def _says(test: ast.expr, name: str) -> bool:
    return any(
        name in (getattr(node, "id", ""), getattr(node, "attr", ""))
        for node in ast.walk(test)
    )


def largest_folder(root: Path = ROOT) -> tuple[str, int]:
    """The folder of the app with the most modules directly in it."""
    counts = collections.Counter(
        _named(path.parent, root)
        for path in modules(root).values()
        if path.stem != "__init__"
    )
    return counts.most_common(1)[0]


def contracted(root: Path = ROOT) -> tuple[list[str], list[str]]:
    """The rooms whose inner layers name every module, and those without."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    held = {
        container
        for contract in settings["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers" and contract.get("exhaustive")
        for container in contract["containers"]
    }
    known = modules(root)
    several = [
        name
        for name, path in known.items()
        if name.count(".") == 1
        and path.stem == "__init__"
        and sum(other.startswith(f"{name}.") for other in known) > 1
    ]
    return [n for n in several if n in held], [n for n in several if n not in held]


def naming(kind: str, root: Path = ROOT) -> list[str]:
    """Files that name a kind of question, without those of import and export."""
    return [
        _named(path, root)
        for folder, files in (("app", "*.py"), *_FACES)
        for path in sorted((root / folder).rglob(files))
        if "exchange" not in path.parts
        and kind in path.read_text(encoding="utf-8").lower()
    ]


def estimates_in_folders(root: Path = ROOT) -> tuple[int, int]:
    """How many estimates are a folder with the same files, of how many."""
    folders = [p for p in (root / "app/estimator/estimates").glob("*") if p.is_dir()]
    whole = [p for p in folders if {f.name for f in p.glob("*.py")} >= _FILES]
    registry = importlib.import_module("app.estimator.registry")
    return len(whole), len(registry.NAMES)


def retentions(root: Path = ROOT) -> list[str]:
    """Where a retention of 0.9 is written: defaults, assignments and arguments."""
    return [
        f"{_named(path, root)}:{value.lineno}"
        for path in modules(root).values()
        for name, value in _given(nodes(path))
        if _holds(value, 0.9) and "retention" in _written(name).lower()
    ]


def _written(name: ast.expr | str) -> str:
    return name if isinstance(name, str) else ast.unparse(name)


def _given(inside: Iterable[ast.AST]) -> Iterator[tuple[ast.expr | str, ast.expr]]:
    """Every name that is given a value, with the value."""
    for node in inside:
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            yield node.target, node.value
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                yield target, node.value
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg, node.value
        elif isinstance(node, ast.arguments):
            late = node.args[len(node.args) - len(node.defaults) :]
            yield from zip((a.arg for a in late), node.defaults, strict=True)
            both = zip(node.kwonlyargs, node.kw_defaults, strict=True)
            yield from ((a.arg, value) for a, value in both if value is not None)


def _holds(value: ast.expr, number: float) -> bool:
    return any(
        isinstance(node, ast.Constant) and node.value == number
        for node in ast.walk(value)
    )


def engines(root: Path = ROOT) -> list[str]:
    """Folders whose modules write shapes of SVG."""
    return sorted(
        {
            _named(path.parent, root)
            for path in modules(root).values()
            for node in nodes(path)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and _SHAPE.search(node.value)
        }
    )


def answered_by_the_registry() -> str:
    """How many accuracy cases a calculator answers; the others are named formulas."""
    results = own_report().results
    answered = sum(bool(result.estimate) for result in results)
    formulas = sum(bool(result.formula) for result in results)
    return f"{answered} of {len(results)}, {formulas} named formulas"


def patched(root: Path = ROOT) -> list[str]:
    """Private names taken from libraries, and parts of libraries replaced."""
    return [
        f"{_named(path, root)}:{line} {name}"
        for path in modules(root).values()
        for line, name in _patches(nodes(path))
    ]


def _patches(inside: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    foreign = set(_taken(inside))
    for node in inside:
        if isinstance(node, ast.ImportFrom) and not _is_ours(node.module):
            for alias in node.names:
                if re.match(r"_[a-z]", alias.name):
                    yield node.lineno, f"{node.module}.{alias.name}"
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if _is_patch(target, foreign):
                    yield node.lineno, ast.unparse(target)


def _taken(inside: Iterable[ast.AST]) -> Iterator[str]:
    """The names that a module has from libraries."""
    for node in inside:
        if isinstance(node, ast.ImportFrom) and not _is_ours(node.module):
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Import):
            names = (a for a in node.names if not _is_ours(a.name))
            yield from (a.asname or a.name for a in names)


def _is_ours(module: str | None) -> bool:
    return (module or "app").split(".")[0] in {"app", "__future__"}


def _is_patch(target: ast.expr, foreign: set[str]) -> bool:
    """Whether an assignment replaces something that belongs to a library."""
    if isinstance(target, ast.Subscript):
        return "__globals__" in ast.unparse(target)
    if not isinstance(target, ast.Attribute) or target.attr in _OFFERED:
        return False
    methods = {"getRules", "renderInline", "parse", "render"}
    return ast.unparse(target).split(".")[0] in foreign or target.attr in methods


def wide(root: Path = ROOT) -> tuple[list[str], int]:
    """Lines of templates, stylesheets and scripts over the width, of how many."""
    lines = {
        f"{_named(path, root)}:{number}": line
        for folder, files in _FACES
        for path in sorted((root / folder).rglob(files))
        if "vendor" not in path.parts
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    }
    return [where for where, line in lines.items() if len(line) > WIDEST], len(lines)


def code_lines(root: Path = ROOT) -> int:
    """Lines of Python in the app that are not empty, comment or docstring."""
    return sum(map(_code_lines, modules(root).values()))


def _code_lines(path: Path) -> int:
    words = {
        line
        for node in nodes(path)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = path.read_text(encoding="utf-8").splitlines()
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#")
        for number, line in enumerate(lines, 1)
        if number not in words
    )


def gradings(root: Path = ROOT) -> list[str]:
    """Calls of `grade` by the routes of the quiz; a kept answer is judged elsewhere."""
    return [
        f"{_named(path, root)}:{node.lineno}"
        for name, path in modules(root).items()
        if name.startswith("app.quiz.routes.")
        for node in nodes(path)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] == "grade"
    ]


def returns(
    path: str = "app/quiz/routes/questions.py", name: str = "attempt"
) -> int | None:
    """Ways out of the route that takes an answer; None where it has moved."""
    file = ROOT / path
    found = nodes(file) if file.exists() else ()
    for node in found:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and (
            node.name == name
        ):
            return sum(isinstance(n, ast.Return) for n in ast.walk(node))
    return None


def _named(path: Path, root: Path) -> str:
    return str(path.relative_to(root))


# --- the table ---


def rows() -> list[Row]:
    """Every row of the plan, in its order."""
    return [*_structure(), *_declarations(), *_lines()]


def _structure() -> list[Row]:
    rings, guarded = circles(imports()), guards()
    folder, files = largest_folder()
    held, open_ = contracted()
    whole, estimates = estimates_in_folders()
    cloze = naming("cloze")
    return [
        Row(
            "import circles (groups of modules)",
            str(len(rings)),
            "0",
            tuple(", ".join(ring) for ring in rings),
        ),
        Row("TYPE_CHECKING guards", str(len(guarded)), "0", tuple(guarded)),
        Row("modules in the largest flat folder", f"{files} ({folder})", "20"),
        Row(
            "rooms whose inner contract is exhaustive",
            f"{len(held)} of {len(held) + len(open_)}",
            "all",
            tuple(open_),
        ),
        Row(
            "files that name one kind of question (“cloze”)",
            str(len(cloze)),
            "5",
            tuple(cloze),
        ),
        Row("estimates in a folder of their own", f"{whole} of {estimates}", "all"),
    ]


def _declarations() -> list[Row]:
    said, drawn, names = retentions(), engines(), patched()
    return [
        Row("places that say retention 0.9", str(len(said)), "1", tuple(said)),
        Row("folders that draw SVG", str(len(drawn)), "1", tuple(drawn)),
        Row(
            "accuracy cases answered by the registry",
            answered_by_the_registry(),
            "all but named formulas",
        ),
        Row("names patched in libraries", str(len(names)), "0", tuple(names)),
    ]


def _lines() -> list[Row]:
    over, lines = wide()
    calls, ways = gradings(), returns()
    visited = reading_way.stays(reading_way.steps())
    return [
        Row(
            f"template, style and script lines over {WIDEST}",
            f"{len(over)} of {lines} ({len(over) / lines:.0%})",
            "0",
            tuple(over),
        ),
        Row("lines of Python code", f"{code_lines():,}", "fewer"),
        Row("calls of grade() for one answer", str(len(calls)), "1", tuple(calls)),
        Row(
            "returns of the route that takes an answer",
            "unknown" if ways is None else str(ways),
            "2",
        ),
        Row(
            "a line of Markdown to the page: stays, returns",
            f"{len(visited)}, {reading_way.returns(visited)}",
            "20, 14",
        ),
    ]


def table(found: Iterable[Row], details: Callable[[Row], int] = lambda _: 6) -> str:
    """The rows as text, each with the first places where it stands."""
    lines = [f"{'':48} {'today':>26}  aim", ""]
    for row in found:
        lines.append(f"{row.what:48} {row.today:>26}  {row.aim}")
        most = details(row)
        lines += [f"    {place[:110]}" for place in itertools.islice(row.where, most)]
        if len(row.where) > most:
            lines.append(f"    and {len(row.where) - most} more")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(rows()))
