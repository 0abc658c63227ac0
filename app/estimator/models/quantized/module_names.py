"""Names of modules in checkpoints, and the patterns by which lists name them."""

import fnmatch
import functools
import re
from collections.abc import Iterable

from app.estimator import catalogue
from app.estimator.models.layers import Layer, WeightMatrix

_MOST_WILDCARDS = 16
_IN_LAYER = "layers.N."
_WORDS = catalogue.load_toml("module_names.toml")

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
            ".".join(parts[a:b]) for a in range(len(parts)) for b in range(a + 1, len(parts) + 1)
        )
    return frozenset(found)


@functools.lru_cache(maxsize=4096)
def _beginnings(names: tuple[str, ...]) -> frozenset[str]:
    """Every beginning of whole components of these names in their layer."""
    parts = [name.partition(_IN_LAYER)[2].split(".") for name in names]
    return frozenset(".".join(p[:end]) for p in parts for end in range(len(p) + 1))


@functools.lru_cache(maxsize=16384)
def _is_matched(names: tuple[str, ...], glob: str) -> bool:
    return any(fnmatch.fnmatchcase(name, glob) for name in names)


def names_of_matrix(layer: Layer, matrix: WeightMatrix) -> tuple[str, ...]:
    """What families call a matrix: full names in a checkpoint, in a layer N."""
    part: str = matrix.part
    if part == "attention" and layer.mixer.state and layer.mixer.kind != "attention":
        part = "linear" if matrix in layer.mixer.matrices else part
    table = _NAMES.get(part, _NAMES["mlp"])
    words = table.get(matrix.name, [matrix.name])
    return tuple(
        f"model.{_IN_LAYER}{block}.{word}" for block in _CONTAINERS[part] for word in words
    )


class ModulePatterns:
    """Modules that a list names: by name, with wildcards, or by a simple `re:`.

    A plain entry names every module whose dotted name contains it as whole parts.
    Expressions are read as wildcards, never run, so that none can take long;
    `unreadable` are those for which that is not possible.
    """

    def __init__(self, entries: Iterable[str]) -> None:
        """Read the entries of one list."""
        plain: set[str] = set()
        wild: dict[str, None] = {}
        self._of_layer: dict[str, set[str]] = {}
        self._of_layers: dict[tuple[str, str], None] = {}
        unreadable = []
        for entry in entries:
            globs = _globs(entry)
            if globs is None:
                unreadable.append(entry)
                continue
            for glob in filter(None, map(_of_language_model, globs)):
                index, name = _in_layer(glob)
                if index and not _has_wildcard(index + name):
                    self._of_layer.setdefault(index, set()).add(name)
                elif index:
                    self._of_layers[index, name] = None
                elif _has_wildcard(glob):
                    wild[glob] = None
                else:
                    plain.add(glob)
        if len(wild) + len(self._of_layers) > _MOST_WILDCARDS:
            unreadable.append(next(iter((*wild, *(n for _, n in self._of_layers)))))
        self._plain, self._wild = frozenset(plain), tuple(wild)
        self.unreadable = tuple(unreadable)

    @property
    def names_layers(self) -> bool:
        """Whether it names some layers and not others."""
        return bool(self._of_layer or self._of_layers)

    def match(self, names: tuple[str, ...], layer: str = "") -> bool:
        """Whether one of these full names, of the layer of this index, is named."""
        if not self._plain.isdisjoint(_paths(names)):
            return True
        if any(_is_matched(names, glob) for glob in self._wild):
            return True
        if not layer:
            return False
        if not self._of_layer.get(layer, _NONE).isdisjoint(_beginnings(names)):
            return True
        return any(
            fnmatch.fnmatchcase(layer, index) and _is_matched(names, name)
            for index, name in self._of_layers
        )


def _in_layer(glob: str) -> tuple[str, str]:
    """The index of the layer that a pattern names, and the name in it.

    The index is empty where the pattern names no layer or every one.
    """
    found = _LAYER.match(glob)
    if found is None or found["index"] == "*":
        return "", ""
    name = (found["name"] or "").removesuffix("*").removesuffix(".")
    if _has_wildcard(found["index"] + name):
        return found["index"], f"model.{_IN_LAYER}{name}*"
    return found["index"], name


_LAYER = re.compile(
    r"(?:\*\.?)?(?:layers\.)?(?<![^.*])(?P<index>[\d*\[\]\-]*[\d\]][\d*\[\]\-]*|\*)"
    r"(?:\.(?P<name>.*))?$"
)
_NONE: frozenset[str] = frozenset()


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
