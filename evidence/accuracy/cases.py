"""Parse files of reference cases: models, hardware, cases."""

import dataclasses
import functools
import json
import pathlib
from collections.abc import Mapping
from typing import Any

from app.estimator.hardware.catalog import accelerator_id
from app.estimator.models.architecture import Architecture
from app.estimator.models.hf_config import UnreadableConfigError
from app.estimator.models.lookup import find_model, normalize_model_name


class UnsupportedCaseError(Exception):
    """The estimator cannot express a case; the text names the unsupported key or value."""


@dataclasses.dataclass(frozen=True, slots=True)
class ReferenceCase:
    """One published or computed value with its inputs.

    `tolerance` is the relative half-width that the source supports; `calibration` marks
    a case that a constant was fitted to, which does not count as evidence.
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
    """Reference cases, and the configurations of the models that they name.

    Hardware described in a file is ignored: calculators use the catalog.
    """

    cases: tuple[ReferenceCase, ...]
    configs: Mapping[str, Mapping[str, Any]]


class CaseFileError(ValueError):
    """A file is not in the format of reference cases."""


def read_cases(path: pathlib.Path) -> CaseFile:
    """Read a file of reference cases; raises CaseFileError with the reason."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return CaseFile(
            cases=tuple(_case(row) for row in content["cases"]),
            configs={
                name: row.get("config", {}) for name, row in content.get("models", {}).items()
            },
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CaseFileError(f"{path} cannot be read: {error!r}") from error


def _case(row: Mapping[str, Any]) -> ReferenceCase:
    return ReferenceCase(
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


class CaseInputs:
    """The inputs of one case. Every key must be read, so that none is ignored by mistake."""

    def __init__(self, case: ReferenceCase, file: CaseFile) -> None:
        self.case = case
        self.file = file
        self._left = dict(case.inputs)

    def has(self, key: str) -> bool:
        """Return whether the case has an unread value for `key`."""
        return self._left.get(key) is not None

    def any(self, key: str, default: Any = None) -> Any:
        """Read a value of any type."""
        value = self._left.pop(key, None)
        return default if value is None else value

    def number(self, key: str, default: float | None = None) -> float:
        """Read a number; raises UnsupportedCaseError if it is missing and has no default."""
        value = self.any(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UnsupportedCaseError(f"{key} is “{value}”, not a number")
        return float(value)

    def whole(self, key: str, default: int | None = None) -> int:
        """Read a whole number."""
        value = self.any(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UnsupportedCaseError(f"{key} is “{value}”, not a whole number")
        if value != int(value):
            raise UnsupportedCaseError(f"{key} is {value}, not a whole number")
        return int(value)

    def flag(self, key: str, default: bool = False) -> bool:
        """Read a boolean."""
        value = self.any(key, default)
        if not isinstance(value, bool):
            raise UnsupportedCaseError(f"{key} is “{value}”, neither true nor false")
        return value

    def word(self, key: str, meanings: Mapping[str, Any], default: str = "") -> Any:
        """Read a word and return its meaning; raises UnsupportedCaseError for an unknown word."""
        word = self.any(key, default)
        if word not in meanings:
            raise UnsupportedCaseError(f"{key} “{word}” is not known")
        return meanings[word]

    def note(self, *keys: str) -> None:
        """Mark keys as read that only explain the case."""
        for key in keys:
            self._left.pop(key, None)

    def model(self, key: str = "model", default: str = "") -> str:
        """Read the model of the case, as text for a calculator input."""
        name = str(self.any(key, default))
        overrides = {
            "num_hidden_layers": self._left.pop("layers_override", None),
            "num_key_value_heads": self._left.pop("kv_heads_override", None),
            "first_k_dense_replace": self._left.pop("dense_layers_override", None),
        }
        given = tuple((k, v) for k, v in overrides.items() if v is not None)
        return typed_model(self.file, name, given)

    def architecture(self) -> Architecture:
        """Read the model of the case as an Architecture, for a formula."""
        return find_model(self.model())

    def card(self) -> str:
        """Read the accelerator and return its catalog id."""
        return card_id(str(self.any("gpu", "")))

    def done(self) -> None:
        """Raise UnsupportedCaseError if a key was not read."""
        for key in self._left:
            raise UnsupportedCaseError(f"{key} is not read for {self.case.kind}")


@functools.lru_cache(maxsize=4096)
def typed_model(file: CaseFile, name: str, overrides: tuple[tuple[str, int], ...] = ()) -> str:
    """Return a model of the file as text for a calculator input.

    This is its name if the catalog has a model of the same shape, else its configuration.
    """
    config = file.configs.get(name)
    if config is None:
        return _catalogued(name, overrides)
    text = as_config({**config, **dict(overrides)}, name)
    return name if not overrides and _is_known(name, text) else text


def _catalogued(name: str, overrides: tuple[tuple[str, int], ...]) -> str:
    """Return a catalog model that the file does not describe."""
    try:
        known = normalize_model_name(name)
    except LookupError:
        known = ""
    if not known or overrides:
        raise UnsupportedCaseError(f"model “{name}” is not among the models of the file")
    return known


def as_config(config: Mapping[str, Any], name: str = "") -> str:
    """Return a configuration as input text; raises UnsupportedCaseError if it is invalid."""
    text = json.dumps(config, separators=(",", ":"))
    try:
        find_model(text)
    except UnreadableConfigError as error:
        where = f"model “{name}”: " if name else ""
        raise UnsupportedCaseError(f"{where}{error}") from error
    return text


def _is_known(name: str, text: str) -> bool:
    """Return whether the catalog has a model of this name and shape."""
    try:
        return _shape(find_model(name)) == _shape(find_model(text))
    except LookupError:
        return False


_LAYERED = frozenset({"name", "decoder_layers", "encoder_layers", "runs"})


def _shape(model: Architecture) -> tuple[Any, ...]:
    """Return everything that is counted of a model, so that equal models compare equal."""
    sizes = [
        getattr(model, field.name)
        for field in dataclasses.fields(model)
        if field.name not in _LAYERED
    ]
    # Layers are compared by identity: list each kind once, then its positions.
    kinds = {layer: number for number, (layer, _) in enumerate(model.runs)}
    layers = [
        tuple(getattr(layer, field.name) for field in dataclasses.fields(layer)) for layer in kinds
    ]
    places = [kinds[layer] for layer in (*model.decoder_layers, *model.encoder_layers)]
    return (*sizes, *layers, *places)


def card_id(name: str) -> str:
    """Return the catalog id of an accelerator."""
    try:
        return accelerator_id(name)
    except LookupError as error:
        raise UnsupportedCaseError(str(error.args[0])) from error
