"""Names of modules in checkpoints, and the patterns by which lists name them."""

import fnmatch
import functools
import re
from collections.abc import Iterable

from app.estimator import catalogue
from app.estimator.models.layers import Layer, Matrix

_MOST_WILDCARDS = 64
_WORDS = catalogue.words("module_names.toml")

# What precedes `layers.0` in the language model of checkpoints.
_BEFORE_LAYERS = frozenset(_WORDS["before_layers"])
_CONTAINERS: dict[str, list[str]] = _WORDS["containers"]
_NAMES: dict[str, dict[str, list[str]]] = _WORDS["names"]
EMBEDDING: tuple[str, ...] = tuple(_WORDS["embedding"])
HEAD: tuple[str, ...] = tuple(_WORDS["head"])


@functools.lru_cache(maxsize=4096)
def _paths(names: tuple[str, ...]) -> frozenset[str]:
    """Every run of whole components of these dotted names."""
    found: set[str] = set()
    for name in names:
        parts = name.split(".")
        found.update(
            ".".join(parts[a:b])
            for a in range(len(parts))
            for b in range(a + 1, len(parts) + 1)
        )
    return frozenset(found)


def names_of_matrix(layer: Layer, matrix: Matrix, index: int | str) -> tuple[str, ...]:
    """What families call a matrix of the layer `index`: full names in a checkpoint.

    An index of `N` is for lists that name no layer.
    """
    part: str = matrix.part
    if part == "attention" and layer.mixer.state and layer.mixer.kind != "attention":
        part = "linear" if matrix in layer.mixer.matrices else part
    table = _NAMES.get(part, _NAMES["mlp"])
    words = table.get(matrix.name, [matrix.name])
    return tuple(
        f"model.layers.{index}.{block}.{word}"
        for block in _CONTAINERS[part]
        for word in words
    )


class ModulePatterns:
    """Modules that a list names: by name, with wildcards, or by a simple `re:`.

    A plain entry names every module whose dotted name contains it as whole parts.
    Expressions are read as wildcards, never run, so that none can take long;
    `unreadable` are those for which that is not possible.
    """

    def __init__(self, entries: Iterable[str]) -> None:
        """Read the entries of one list."""
        plain, wild, unreadable = set(), [], []
        for entry in entries:
            globs = _globs(entry)
            if globs is None:
                unreadable.append(entry)
                continue
            for glob in filter(None, map(_of_language_model, globs)):
                if _has_wildcard(glob):
                    wild.append(glob)
                else:
                    plain.add(glob)
        if len(wild) > _MOST_WILDCARDS:
            unreadable.append(wild[_MOST_WILDCARDS])
        self._plain = frozenset(plain)
        self._wild = tuple(dict.fromkeys(wild))[:_MOST_WILDCARDS]
        self.unreadable = tuple(unreadable)
        named = (*self._plain, *self._wild)
        self.names_layers = any("layers." in name for name in named) or any(
            part.isdigit() for name in named for part in name.split(".")
        )

    def match(self, names: tuple[str, ...]) -> bool:
        """Whether one of these full names is named by the list."""
        if not self._plain.isdisjoint(_paths(names)):
            return True
        return any(
            fnmatch.fnmatchcase(name, glob) for glob in self._wild for name in names
        )


def _has_wildcard(text: str) -> bool:
    return any(sign in text for sign in "*?[")


def _of_language_model(glob: str) -> str:
    """A pattern without what precedes the layers; empty for those of other parts."""
    known = glob.replace("transformer.h.", "layers.")
    head, found, tail = known.partition("layers.")
    if not found:
        return glob.removeprefix("model.") or glob
    before = [part for part in head.lstrip("*").split(".") if part]
    if not all(part in _BEFORE_LAYERS for part in before):
        return ""
    name = found + tail
    return f"*.{name}" if _has_wildcard(name) else name


def _globs(entry: str) -> list[str] | None:
    """The wildcards that an entry means; None where they cannot be told."""
    text = entry.strip()
    if text.startswith("re:"):
        return _of_expression(text[3:])
    if any(sign in text for sign in "\\^$(|+"):
        return _of_expression(text)
    # A star at an end stands for the parts before or after.
    bare = text.removesuffix("*").removesuffix(".")
    bare = bare.removeprefix("*.") or text
    if not _has_wildcard(bare):
        return [bare]
    ending = "*" if text.endswith("*") else ""
    return [f"*{bare}{ending}", f"*{bare}.*"]


_SIMPLE = re.compile(r"[\w.*\[\]\-]*")
_MOST_STARS = 8


def _of_expression(text: str) -> list[str] | None:
    """Wildcards for an expression of names, wildcards, digits and alternatives."""
    ends = text.endswith("$") and not text.endswith("\\$")
    body = text.removeprefix("^").removesuffix("$").replace("\\b", "")
    for many in ("[0-9]+", "\\d+", ".*?", ".*", ".+", "[^.]+", "\\w+"):
        body = body.replace(many, "*")
    # A dot that was not escaped is meant as a dot, too.
    body = body.replace("\\d", "[0-9]").replace("\\.", ".").replace("(?:", "(")
    bodies = _alternatives(body)
    if bodies is None:
        return None
    found = []
    for each in bodies:
        name = each.replace("\\", "")
        if not _SIMPLE.fullmatch(name) or name.count("*") > _MOST_STARS:
            return None
        found.append(f"*{name}" if ends else f"*{name}*")
    return [re.sub(r"\*+", "*", glob) for glob in found]


def _alternatives(text: str) -> list[str] | None:
    """Every choice of `(a|b)` written out; None where that is too many or nested."""
    done = [""]
    rest = text
    while (start := rest.find("(")) >= 0:
        end = rest.find(")", start)
        inner = rest[start + 1 : end]
        if end < 0 or "(" in inner or inner.startswith("?"):
            return None
        if rest[end + 1 : end + 2] in ("*", "+", "?"):
            return None
        before = rest[:start]
        done = [f"{d}{before}{choice}" for d in done for choice in inner.split("|")]
        if len(done) > _MOST_WILDCARDS:
            return None
        rest = rest[end + 1 :]
    whole = [f"{d}{rest}" for d in done]
    return [part for each in whole for part in each.split("|")]
