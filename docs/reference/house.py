"""docs/architecture.md: the rooms of the house and who imports whom, as a picture."""

import ast
import itertools
import tomllib
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.house import ROOT, Graph, circles, modules, rooms, tree
from docs.reference.parts import DOCS, code, codes, filled, table

PATH = DOCS / "architecture.md"
PICTURES = DOCS / "pictures"
Rows = tuple[tuple[str, ...], ...]
Places = dict[str, tuple[float, float]]
Segments = set[tuple[str, str]]

_WIDTH, _STEP, _HEIGHT, _TOP = 960.0, 78.0, 30.0, 84.0
_LETTER, _PAD, _WIDEST_GAP = 7.6, 18.0, 44.0
_PASSING, _SWEEPS = "~", 5
_MOST = 30  # parts that a picture can show
_SAID = "Rooms in rows; lines lead down to what a room imports"
_SPACE = 'xmlns="http://www.w3.org/2000/svg"'
_STYLE = """
text { font: 13px system-ui, sans-serif; text-anchor: middle; fill: #1b232b }
rect { fill: #fff; stroke: #48545f }
path { fill: none; stroke: #7d8a96; stroke-width: 1.1; opacity: .75 }
.roof { stroke: #48545f; stroke-width: 2; opacity: 1 }
@media (prefers-color-scheme: dark) {
  text { fill: #e8ecef } rect { fill: #20272e; stroke: #9aa7b3 }
  path { stroke: #8794a0 } .roof { stroke: #9aa7b3 }
}
"""


def document() -> str:
    """The document as it has to be."""
    parts = {
        "rooms": _table("app", rooms()),
        "estimator": _inner("app.estimator"),
    }
    return filled(PATH.read_text(encoding="utf-8"), parts)


def pictures() -> dict[str, str]:
    """The drawings beside the document by their names."""
    inner = rooms(package="app.estimator")
    found = {"house.svg": svg(_inside(rooms()))}
    if len(inner) <= _MOST:
        found["estimator.svg"] = svg(inner)
    return found


def _inside(graph: Graph) -> Graph:
    """The house without the door mat: `__main__` only calls the command line."""
    return {name: others for name, others in graph.items() if name != "__main__"}


def contract_rows() -> Rows:
    """The rows of the house from top to bottom, as the import contract orders them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = next(
        contract["layers"]
        for contract in settings["tool"]["importlinter"]["contracts"]
        if contract.get("containers") == ["app"]
    )
    return tuple(
        tuple(name.strip(" ()") for name in layer.replace(":", "|").split("|"))
        for layer in layers
    )


def levels(graph: Graph) -> Rows:
    """Rows so that every import points down; who is imported by nobody is on top.

    Parts that import each other share a row.
    """
    one = {name: name for name in graph}
    for ring in circles(graph):
        one |= dict.fromkeys(ring, ring[0])
    depth: dict[str, int] = {}

    def down(name: str) -> int:
        if name not in depth:
            members = [n for n in graph if one[n] == name]
            below = {one[o] for m in members for o in graph[m]} - {name}
            depth[name] = 1 + max(map(down, below), default=-1)
        return depth[name]

    rows: dict[int, list[str]] = {}
    for name in sorted(graph):
        rows.setdefault(down(one[name]), []).append(name)
    return tuple(tuple(rows[level]) for level in sorted(rows, reverse=True))


def needed(graph: Graph) -> Graph:
    """The imports that no chain of other imports implies: what a picture can show."""

    def reach(name: str, seen: set[str]) -> set[str]:
        for other in graph.get(name, ()):
            if other not in seen:
                seen.add(other)
                reach(other, seen)
        return seen

    far = {name: reach(name, set()) for name in graph}
    return {
        name: frozenset(
            other
            for other in others
            if not any(
                other in far[via] and name not in far[via]
                for via in others
                if via != other
            )
        )
        for name, others in graph.items()
    }


def svg(graph: Graph) -> str:
    """The rooms in rows, and a line for each import that is not implied by others."""
    rows, segments = _routed(levels(graph), needed(graph))
    places = _places(_untangled(rows, segments))
    middle, eaves, height = _WIDTH / 2, _TOP - 24, _TOP + _STEP * len(rows) - 36
    roof = f"M20 {eaves:.0f}L{middle:.0f} 12L{_WIDTH - 20:.0f} {eaves:.0f}"
    box = f"0 0 {_WIDTH:.0f} {height:.0f}"
    drawn = [
        f'<svg {_SPACE} role="img" aria-label="{_SAID}" viewBox="{box}">',
        f"<style>{_STYLE}</style>",
        f'<path class="roof" d="{roof}"/>',
        *(_line(a, b, places) for a, b in sorted(segments)),
        *itertools.chain.from_iterable(_box(n, *places[n]) for n in places),
        "</svg>",
    ]
    return "\n".join(drawn) + "\n"


def _routed(rows: Rows, graph: Graph) -> tuple[list[list[str]], Segments]:
    """The rows with a gap for each line that passes them, and lines in pieces.

    All lines to one room go through the same gaps.
    """
    row_of = {name: number for number, row in enumerate(rows) for name in row}
    wider = [list(row) for row in rows]
    pieces: Segments = set()
    for name, others in graph.items():
        for other in others:
            between = range(row_of[name] + 1, row_of[other])
            way = [name, *(f"{other}{_PASSING}{n}" for n in between), other]
            if row_of[name] < row_of[other]:
                pieces |= set(itertools.pairwise(way))
            for number, gap in zip(between, way[1:], strict=False):
                if gap not in wider[number]:
                    wider[number].append(gap)
    return wider, pieces


def _untangled(rows: Sequence[Sequence[str]], segments: Segments) -> Rows:
    """Each row ordered by its neighbors, down and up, so that few lines cross."""
    found = [sorted(row) for row in rows]
    for turn in range(_SWEEPS):
        down = turn % 2 == 0
        order = range(1, len(found)) if down else range(len(found) - 2, -1, -1)
        for number in order:
            beside = found[number - 1 if down else number + 1]
            middle = {
                name: [
                    (at + 0.5) / len(beside)
                    for at, other in enumerate(beside)
                    if ((other, name) if down else (name, other)) in segments
                ]
                for name in found[number]
            }
            found[number].sort(key=lambda n: _mean(middle[n]))
    return tuple(map(tuple, found))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.5


def _places(rows: Rows) -> Places:
    """The middle of each room's box, and of each gap."""
    places: Places = {}
    for number, row in enumerate(rows):
        widths = [_width(name) for name in row]
        gap = min(_WIDEST_GAP, (_WIDTH - 40 - sum(widths)) / (len(row) + 1))
        x = (_WIDTH - sum(widths) - gap * (len(row) - 1)) / 2
        for name, width in zip(row, widths, strict=True):
            places[name] = (x + width / 2, _TOP + _STEP * number)
            x += width + gap
    return places


def _width(name: str) -> float:
    return 2.0 if _PASSING in name else _LETTER * len(name) + _PAD


def _box(name: str, x: float, y: float) -> Iterator[str]:
    if _PASSING in name:
        return
    width = _width(name)
    yield (
        f'<rect x="{x - width / 2:.1f}" y="{y - _HEIGHT / 2:.1f}" '
        f'width="{width:.1f}" height="{_HEIGHT:.0f}" rx="4"/>'
    )
    yield f'<text x="{x:.1f}" y="{y + 4.5:.1f}">{name}</text>'


def _line(name: str, other: str, places: Places) -> str:
    """From the foot of one box to the head of another; through a gap, straight."""
    (x, y), (to, end) = places[name], places[other]
    start, y = y, y + _HEIGHT / 2
    goal, end = end, end - _HEIGHT / 2
    bend = (end - y) / 2
    above = f"M{x:.1f} {start:.1f}V{y:.1f}" if _PASSING in name else f"M{x:.1f} {y:.1f}"
    below = f"V{goal:.1f}" if _PASSING in other else ""
    curve = f"C{x:.1f} {y + bend:.1f} {to:.1f} {end - bend:.1f} {to:.1f} {end:.1f}"
    return f'<path d="{above}{curve}{below}"/>'


def _inner(package: str) -> str:
    """The table of a room's parts, and its picture where it can show them."""
    graph = rooms(package=package)
    if len(graph) > _MOST:
        return f"It has {len(graph)} parts, which is too many for a picture."
    name = package.rpartition(".")[2]
    picture = f"![The parts of the {name} in rows](pictures/{name}.svg)"
    return f"{picture}\n\n{_table(package, graph)}"


def _table(package: str, graph: Graph) -> str:
    order = contract_rows() if package == "app" else levels(graph)
    names = [name for row in order for name in row if name in graph]
    said = _meanings(package)
    rows = (
        (code(name), said.get(name, ""), codes(sorted(graph[name]))) for name in names
    )
    return table(("room", "what it is for", "imports"), rows)


def _meanings(package: str) -> Mapping[str, str]:
    """The first line that each part says of itself."""
    return {
        name.rpartition(".")[2]: (ast.get_docstring(tree(path)) or "").partition("\n")[
            0
        ]
        for name, path in modules().items()
        if name.rpartition(".")[0] == package
    }
