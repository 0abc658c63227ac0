"""Parse files of reference cases: models, hardware, cases."""

import dataclasses
import functools
import json
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from app.estimator.hardware.catalog import find_accelerator_id
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
    """ReferenceKind cases, and the configurations of the models that they name.

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
            cases=tuple(_parse_case(row) for row in content["cases"]),
            configs={
                name: row.get("config", {}) for name, row in content.get("models", {}).items()
            },
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CaseFileError(f"{path} cannot be read: {error!r}") from error


def _parse_case(row: Mapping[str, Any]) -> ReferenceCase:
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
        self._unread = dict(case.inputs)

    def has(self, key: str) -> bool:
        return self._unread.get(key) is not None

    def read_any(self, key: str, default: Any = None) -> Any:
        value = self._unread.pop(key, None)
        return default if value is None else value

    def read_number(self, key: str, default: float | None = None, noun: str = "a number") -> float:
        """Read a number; raises UnsupportedCaseError if it is missing and has no default."""
        value = self.read_any(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UnsupportedCaseError(f"{key} is “{value}”, not {noun}")
        return float(value)

    def read_int(self, key: str, default: int | None = None) -> int:
        value = self.read_number(key, default, "a whole number")
        if not value.is_integer():
            raise UnsupportedCaseError(f"{key} is {value}, not a whole number")
        return int(value)

    def read_bool(self, key: str, default: bool = False) -> bool:
        value = self.read_any(key, default)
        if not isinstance(value, bool):
            raise UnsupportedCaseError(f"{key} is “{value}”, neither true nor false")
        return value

    def read_meaning(self, key: str, meanings: Mapping[str, Any], default: str = "") -> Any:
        """Read a word and return its meaning; raises UnsupportedCaseError for an unknown word."""
        word = self.read_any(key, default)
        if word not in meanings:
            raise UnsupportedCaseError(f"{key} “{word}” is not known")
        return meanings[word]

    def ignore(self, *keys: str) -> None:
        """Mark keys as read that only explain the case."""
        for key in keys:
            self._unread.pop(key, None)

    def read_model(self, key: str = "model", default: str = "") -> str:
        """Read the model of the case, as text for a calculator input."""
        name = str(self.read_any(key, default))
        overrides = (
            ConfigOverride("num_hidden_layers", self._unread.pop("layers_override", None)),
            ConfigOverride("num_key_value_heads", self._unread.pop("kv_heads_override", None)),
            ConfigOverride(
                "first_k_dense_replace", self._unread.pop("dense_layers_override", None)
            ),
        )
        return model_as_input(self.file, name, tuple(o for o in overrides if o.value is not None))

    def read_architecture(self) -> Architecture:
        """Read the model of the case as an Architecture, for a formula."""
        return find_model(self.read_model())

    def read_gpu_id(self) -> str:
        return find_gpu_id(str(self.read_any("gpu", "")))

    def require_all_read(self) -> None:
        """Raise UnsupportedCaseError if a key was not read."""
        for key in self._unread:
            raise UnsupportedCaseError(f"{key} is not read for {self.case.kind}")


class ConfigOverride(NamedTuple):
    """A key of config.json, and the value that a case gives it; None: as in the file."""

    key: str
    value: int | None


@functools.lru_cache(maxsize=4096)
def model_as_input(file: CaseFile, name: str, overrides: tuple[ConfigOverride, ...] = ()) -> str:
    """Return a model of the file as text for a calculator input.

    This is its name if the catalog has a model of the same shape, else its configuration.
    """
    config = file.configs.get(name)
    if config is None:
        return _find_model_outside_file(name, overrides)
    text = config_as_input({**config, **dict(overrides)}, name)
    return name if not overrides and _is_in_catalog(name, text) else text


def _find_model_outside_file(name: str, overrides: tuple[ConfigOverride, ...]) -> str:
    """Return a catalog model that the file does not describe."""
    try:
        known = normalize_model_name(name)
    except LookupError:
        known = ""
    if not known or overrides:
        raise UnsupportedCaseError(f"model “{name}” is not among the models of the file")
    return known


def config_as_input(config: Mapping[str, Any], name: str = "") -> str:
    """Return a configuration as input text; raises UnsupportedCaseError if it is invalid."""
    text = json.dumps(config, separators=(",", ":"))
    try:
        find_model(text)
    except UnreadableConfigError as error:
        where = f"model “{name}”: " if name else ""
        raise UnsupportedCaseError(f"{where}{error}") from error
    return text


def _is_in_catalog(name: str, text: str) -> bool:
    """Return whether the catalog has a model of this name and shape."""
    try:
        return _comparable_shape(find_model(name)) == _comparable_shape(find_model(text))
    except LookupError:
        return False


# Nothing is counted by how long a context a model takes, which the files seldom say.
_NOT_COMPARED = frozenset(
    {"name", "max_context", "decoder_layers", "encoder_layers", "layer_counts"}
)


def _comparable_shape(model: Architecture) -> object:
    """Return everything that is counted of a model, so that equal models compare equal."""
    sizes = [
        getattr(model, field.name)
        for field in dataclasses.fields(model)
        if field.name not in _NOT_COMPARED
    ]
    # Layers are compared by identity: list each kind once, then its positions.
    kinds = {layer: number for number, (layer, _) in enumerate(model.layer_counts)}
    layers = [
        tuple(getattr(layer, field.name) for field in dataclasses.fields(layer)) for layer in kinds
    ]
    places = [kinds[layer] for layer in (*model.decoder_layers, *model.encoder_layers)]
    return (*sizes, *layers, *places)


def find_gpu_id(name: str) -> str:
    try:
        return find_accelerator_id(name)
    except LookupError as error:
        raise UnsupportedCaseError(str(error.args[0])) from error
