"""Reading of reference cases: the file, its models, its hardware, its cases."""

import dataclasses
import functools
import json
import pathlib
from collections.abc import Mapping
from typing import Any

from app.estimator.hardware import accelerators
from app.estimator.hardware.accelerators import Accelerator
from app.estimator.models.architecture import (
    Architecture,
    UnreadableConfig,
    from_config,
)


class Inexpressible(Exception):  # noqa: N818 - reads as what it is at the raise
    """A case that the estimator cannot express; its text says which word."""


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """One published or computed value with the inputs it belongs to.

    `tolerance` is the relative half-width that the source supports; `calibration`
    marks a case that a constant was fitted on, which is no evidence.
    """

    id: str
    kind: str
    inputs: Mapping[str, Any]
    expected: float
    unit: str
    tolerance: float
    source: str = ""
    note: str = ""
    calibration: bool = False


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class CaseFile:
    """Cases with the configurations and the hardware that they name."""

    cases: tuple[Case, ...]
    configs: Mapping[str, Mapping[str, Any]]
    cards: Mapping[str, Mapping[str, Any]]


class UnreadableCases(ValueError):  # noqa: N818 - reads as what it is at the raise
    """A file that is not in the format of reference cases."""


def read_cases(path: pathlib.Path) -> CaseFile:
    """Read a file of reference cases; UnreadableCases says what is wrong with it."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return CaseFile(
            cases=tuple(_case(row) for row in content["cases"]),
            configs={
                name: row.get("config", {})
                for name, row in content.get("models", {}).items()
            },
            cards={
                name: row
                for name, row in content.get("hardware", {}).items()
                if isinstance(row, dict) and not name.startswith("_")
            },
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableCases(f"{path} cannot be read: {error!r}") from error


def _case(row: Mapping[str, Any]) -> Case:
    return Case(
        id=str(row["id"]),
        kind=str(row["kind"]),
        inputs=row.get("inputs", {}),
        expected=float(row["expected"]["value"]),
        unit=str(row["expected"].get("unit", "")),
        tolerance=float(row.get("tolerance", {}).get("rel", 0.0)),
        source=str(row.get("source", "")),
        note=str(row.get("note", "")),
        calibration=bool(row.get("calibration", False)),
    )


class Asked:
    """The inputs of one case; every key must be read before it is answered."""

    def __init__(self, case: Case, file: CaseFile) -> None:
        self.case = case
        self.file = file
        self._left = dict(case.inputs)

    def has(self, key: str) -> bool:
        """Whether the case gives a value for `key` that was not read yet."""
        return self._left.get(key) is not None

    def any(self, key: str, default: Any = None) -> Any:
        """Read a value as it stands."""
        value = self._left.pop(key, None)
        return default if value is None else value

    def number(self, key: str, default: float | None = None) -> float:
        """Read a number; a case without it is inexpressible unless defaulted."""
        value = self.any(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Inexpressible(f"{key} is “{value}”, not a number")
        return float(value)

    def whole(self, key: str, default: int | None = None) -> int:
        """Read a whole number."""
        value = self.any(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Inexpressible(f"{key} is “{value}”, not a whole number")
        if value != int(value):
            raise Inexpressible(f"{key} is {value}, not a whole number")
        return int(value)

    def flag(self, key: str, default: bool = False) -> bool:
        """Read a yes or no."""
        value = self.any(key, default)
        if not isinstance(value, bool):
            raise Inexpressible(f"{key} is “{value}”, neither true nor false")
        return value

    def word(self, key: str, meanings: Mapping[str, Any], default: str = "") -> Any:
        """Read a word and return its meaning; an unknown word is inexpressible."""
        word = self.any(key, default)
        if word not in meanings:
            raise Inexpressible(f"{key} “{word}” is not known")
        return meanings[word]

    def note(self, *keys: str) -> None:
        """Read keys that only explain the case."""
        for key in keys:
            self._left.pop(key, None)

    def model(self, key: str = "model", default: str = "") -> Architecture:
        """Read the model that the case names, from the file's own configuration."""
        name = str(self.any(key, default))
        overrides = {
            "num_hidden_layers": self._left.pop("layers_override", None),
            "num_key_value_heads": self._left.pop("kv_heads_override", None),
            "first_k_dense_replace": self._left.pop("dense_layers_override", None),
        }
        given = tuple((k, v) for k, v in overrides.items() if v is not None)
        return model_of(self.file, name, given)

    def card(self, key: str = "gpu", default: str = "") -> Accelerator:
        """Read the accelerator: the file's own values over the catalogue's."""
        return card_of(self.file, str(self.any(key, default)))

    def done(self) -> None:
        """Refuse the case if a key was left unread."""
        for key in self._left:
            raise Inexpressible(f"{key} is not read for {self.case.kind}")


@functools.lru_cache(maxsize=4096)
def model_of(
    file: CaseFile, name: str, overrides: tuple[tuple[str, int], ...] = ()
) -> Architecture:
    """The architecture of a model of the file, with some sizes replaced."""
    config = file.configs.get(name)
    if config is None:
        raise Inexpressible(f"model “{name}” is not among the models of the file")
    changed = {**config, **dict(overrides)}
    try:
        return from_config(changed, name)
    except UnreadableConfig as error:
        raise Inexpressible(f"model “{name}”: {error}") from error


# Keys of a hardware entry, the field of the accelerator, and the factor to base units.
_CARD_KEYS: dict[str, tuple[str, float]] = {
    "bf16": ("bf16", 1e12),
    "fp16": ("fp16", 1e12),
    "fp8": ("fp8", 1e12),
    "int8": ("int8", 1e12),
    "fp4": ("fp4", 1e12),
    "hbm": ("memory_bandwidth", 1e12),
    "mem": ("memory", 1e9),
    "nvlink": ("nvlink", 1e9),
    "tdp": ("tdp", 1.0),
}


@functools.lru_cache(maxsize=1024)
def card_of(file: CaseFile, name: str) -> Accelerator:
    """The accelerator called `name` in the file, else in the catalogue."""
    row = file.cards.get(name)
    try:
        known = accelerators.find_accelerator(name)
    except LookupError:
        known = None
    if row is None and known is None:
        raise Inexpressible(f"hardware “{name}” is in neither file nor catalogue")
    base = known or Accelerator(id=name, name=name)
    given = {
        field: row[key] * factor
        for key, (field, factor) in _CARD_KEYS.items()
        if row is not None and isinstance(row.get(key), int | float)
    }
    if "bf16" in given and "fp16" not in given and not base.fp16:
        given["fp16"] = given["bf16"]
    return dataclasses.replace(base, **given)
