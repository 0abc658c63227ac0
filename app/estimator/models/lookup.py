"""Find a model by catalog name, by a size such as 70B, or by a pasted configuration."""

import base64
import dataclasses
import functools
import json
import math
import re
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from app.estimator import data_files
from app.estimator.models.architecture import Architecture, fill_in_counts
from app.estimator.models.hf_architecture import build_architecture
from app.estimator.models.hf_config import UnreadableConfigError, is_irrelevant_key, is_known_family
from app.estimator.models.weight_formats import (
    PUBLISHED,
    PUBLISHED_OR_FP8,
    find_weight_format,
    weight_bytes_by_split,
)
from app.estimator.units import format_number, format_value, reject_decimal_comma

_TYPED_MODEL_SIZE = re.compile(
    r"^\s*(?P<number>\d[\d,]*(?:\.\d+)?)\s*(?P<unit>[kKmMbBGtT]|bn|million|billion|trillion)?"
    r"\s*(?:params?|parameters)?\s*$"
)
_FACTOR_BY_SUFFIX = {"k": 10**3, "M": 10**6, "B": 10**9, "G": 10**9, "T": 10**12}
_SUFFIX_BY_SPELLING = {"K": "k", "bn": "B", "million": "M", "billion": "B", "trillion": "T"}
SMALLEST, LARGEST = 10**7, 10**14


class DenseShape(NamedTuple):
    parameters: float
    layers: int
    hidden: int
    heads: int


# Shapes of public models, from Pythia to Llama 3 (405B), extrapolated by the same proportions.
_TYPICAL_DENSE_SHAPES = (
    DenseShape(1.0e7, 6, 192, 6),
    DenseShape(2.0e7, 6, 256, 4),
    DenseShape(1.6e8, 12, 768, 12),
    DenseShape(4.1e8, 24, 1024, 16),
    DenseShape(1.2e9, 16, 2048, 32),
    DenseShape(3.2e9, 28, 3072, 24),
    DenseShape(8.0e9, 32, 4096, 32),
    DenseShape(1.3e10, 40, 5120, 40),
    DenseShape(3.4e10, 60, 7168, 56),
    DenseShape(7.0e10, 80, 8192, 64),
    DenseShape(1.75e11, 96, 12288, 96),
    DenseShape(4.05e11, 126, 16384, 128),
    DenseShape(1.0e12, 128, 25600, 200),
    DenseShape(5.0e12, 180, 49152, 384),
    DenseShape(2.5e13, 240, 96000, 750),
    DenseShape(1.0e14, 300, 180224, 1408),
)


def is_parameter_count(model_text: str) -> bool:
    """Return whether a model is given as a number of parameters.

    >>> is_parameter_count("70B"), is_parameter_count("llama-2-7b")
    (True, False)
    """
    return _TYPED_MODEL_SIZE.match(model_text) is not None


def parse_parameter_count(text: str) -> int:
    """Return the parameters of a size; raises LookupError outside of 10M to 100T.

    >>> parse_parameter_count("1.5T"), parse_parameter_count("8b")
    (1500000000000, 8000000000)
    """
    match = _TYPED_MODEL_SIZE.match(text)
    if match is None:
        raise LookupError(f"“{text}” is not a size such as 70B.")
    unit = match["unit"] or ""
    unit = _SUFFIX_BY_SPELLING.get(unit, unit)
    factor = _FACTOR_BY_SUFFIX.get(unit) or _FACTOR_BY_SUFFIX.get(unit.upper(), 1)
    try:
        reject_decimal_comma(match["number"])
    except ValueError as error:
        raise LookupError(f"{error}.") from None
    number = float(match["number"].replace(",", "")) * factor
    if not SMALLEST <= number <= LARGEST:  # A number with too many digits is infinite.
        raise LookupError(f"“{text}” is outside of 10M to 100T parameters.")
    return round(number)


def format_parameter_count(parameters: int) -> str:
    """Format a size with its usual suffix.

    >>> format_parameter_count(70 * 10**9), format_parameter_count(494032768)
    ('70B', '494.032768M')
    """
    for unit in ("T", "B", "M"):
        text = f"{parameters / _FACTOR_BY_SUFFIX[unit]:.6f}".rstrip("0").rstrip(".")
        if (
            parameters >= _FACTOR_BY_SUFFIX[unit]
            and round(float(text) * _FACTOR_BY_SUFFIX[unit]) == parameters
        ):
            return text + unit
    return str(parameters)


def llama_config_of_size(parameters: int) -> dict[str, Any]:
    """Return a configuration with at most `parameters` parameters, and nearly as many.

    The MLP width is solved for; the remainder is less than one step of it.
    """
    nearest_first = sorted(
        _TYPICAL_DENSE_SHAPES, key=lambda s: abs(math.log(s.parameters / parameters))
    )
    for _, layers, hidden, heads in nearest_first:
        vocabulary = 128256 if parameters >= 10**9 else 32000
        tied = parameters < 4 * 10**9
        kv_heads = 8 if heads % 8 == 0 else heads
        tables = vocabulary * hidden * (1 if tied else 2)
        head = hidden // heads
        attention = 2 * hidden * hidden + 2 * hidden * kv_heads * head
        left = parameters - tables - hidden - layers * (attention + 2 * hidden)
        width = left // (3 * hidden * layers)
        if width >= hidden:
            return {
                "model_type": "llama",
                "hidden_size": hidden,
                "intermediate_size": width,
                "num_hidden_layers": layers,
                "num_attention_heads": heads,
                "num_key_value_heads": kv_heads,
                "vocab_size": vocabulary,
                "tie_word_embeddings": tied,
                "max_position_embeddings": 131072,
            }
    raise LookupError(f"No dense shape has {parameters} parameters.")


# What arithmetic on values of the wrong type can raise.
_CONTRADICTION_ERRORS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


def is_config_text(model_text: str) -> bool:
    """Return whether a model is given as a configuration instead of by name or size.

    >>> is_config_text('{"model_type": "llama"}'), is_config_text("llama-2-7b")
    (True, False)
    """
    return model_text.lstrip().startswith("{")


def _parse_config_object(text: str) -> dict[str, Any]:
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        message = "The text of config.json is not JSON; paste the whole file."
        raise UnreadableConfigError(message) from None
    if not isinstance(config, dict):
        message = "config.json holds a list or a word; paste the whole file."
        raise UnreadableConfigError(message)
    return config


# A configuration of 200,000 characters creates a model of 0.5 MB, so few are cached.
@functools.lru_cache(maxsize=32)
def _build_model_from_config_text(text: str) -> Architecture:
    try:
        return build_architecture(_parse_config_object(text))
    except UnreadableConfigError:
        raise
    except _CONTRADICTION_ERRORS as error:
        message = f"This config.json contradicts itself: {error}."
        raise UnreadableConfigError(message) from error


def build_model_from_pasted_config(text: str) -> Architecture:
    """Build the architecture that a pasted configuration describes.

    Raises UnreadableConfigError with a sentence if it is not a JSON object, lacks a size
    or contradicts itself.
    """
    return _build_model_from_config_text(drop_irrelevant_config_fields(text))


LONGEST_CONFIG = 200_000
"""Maximum length of a config.json, without what no count needs [character]."""
_KEY_PREFIX = "config:"
_READ_ANYWHERE = frozenset({"model_type", "dtype", "torch_dtype", "_name_or_path"})
_QUANTIZATION_KEYS = frozenset({"quantization_config", "compression_config", "quantization"})
_LONGEST_STRING = 200


def drop_irrelevant_config_fields(text: str) -> str:
    """Return a configuration without white space and without fields that no count needs.

    Raises UnreadableConfigError if it is no JSON object.
    """
    return json.dumps(_drop_irrelevant_fields(_parse_config_object(text)), separators=(",", ":"))


def _drop_irrelevant_fields(config: Mapping[str, Any]) -> dict[str, Any]:
    reduced: dict[str, Any] = {}
    for key, value in config.items():
        if key not in _READ_ANYWHERE and is_irrelevant_key(key, is_known_family=False):
            continue
        if key in _QUANTIZATION_KEYS:
            reduced[key] = _drop_repeated_experts(value)
        elif isinstance(value, dict):
            reduced[key] = _drop_irrelevant_fields(value)
        else:
            reduced[key] = value[:_LONGEST_STRING] if isinstance(value, str) else value
    return reduced


_EXPERT_INDEX = re.compile(r"\.experts\.\d+(?=\.|$)")


def _drop_repeated_experts(value: Any, levels: int = 3) -> Any:
    """Return a quantization without the experts that are listed like the first of their layer.

    Counts ask for the first alone. Checkpoints that name every expert have 20,000 modules.
    """
    if not levels:
        return value
    if isinstance(value, dict):
        return {
            name: _drop_repeated_experts(inner, levels - 1)
            for name, inner in value.items()
            if (first := _name_first_expert(name)) == name or value.get(first) != inner
        }
    if isinstance(value, list):
        listed = {name for name in value if isinstance(name, str)}
        repeated = {
            name
            for name in listed
            if name != (first := _name_first_expert(name)) and first in listed
        }
        return [each for each in value if not isinstance(each, str) or each not in repeated]
    return value


def _name_first_expert(module: str) -> str:
    """Return the name of a module of an expert as that of the first one.

    >>> _name_first_expert("layers.3.mlp.experts.17.up_proj")
    'layers.3.mlp.experts.0.up_proj'
    """
    return _EXPERT_INDEX.sub(".experts.0", module)


def shorten_config(text: str) -> str:
    """Return a configuration that is too long without what no count needs; others unchanged."""
    if len(text) <= LONGEST_CONFIG or not is_config_text(text):
        return text
    try:
        return drop_irrelevant_config_fields(text)
    except UnreadableConfigError:
        return text


def describe_longest_field(text: str) -> str:
    """Return the path of the longest field of a configuration, such as `a.b`; empty if none."""
    try:
        value: Any = _parse_config_object(text)
    except UnreadableConfigError:
        return ""
    path: list[str] = []
    while isinstance(value, dict) and value:
        sizes = {key: len(json.dumps(inner)) for key, inner in value.items()}
        longest = max(sizes, key=sizes.__getitem__)
        if path and 2 * sizes[longest] < sum(sizes.values()):
            break
        path.append(longest)
        value = value[longest]
    return ".".join(path)


def compress_config_to_key(text: str) -> str:
    """Return a configuration as a short text for a URL; `expand_config_key` is the inverse.

    >>> expand_config_key(compress_config_to_key('{"hidden_size":64}'))
    '{"hidden_size":64}'
    """
    packed = base64.urlsafe_b64encode(zlib.compress(text.encode(), 9))
    return _KEY_PREFIX + packed.decode().rstrip("=")


def expand_config_key(key: str) -> str:
    """Return the configuration of a key; raises LookupError if it is damaged."""
    packed = key.removeprefix(_KEY_PREFIX)
    unpack = zlib.decompressobj()
    try:
        data = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
        text = unpack.decompress(data, LONGEST_CONFIG).decode()
    except (ValueError, zlib.error):
        text = ""
    if not text or not unpack.eof:
        raise LookupError("The key of this configuration is damaged; paste config.json again.")
    return text


def is_config_key(name: str) -> bool:
    return name.startswith(_KEY_PREFIX)


def _validate_and_reduce_config(text: str) -> str:
    """Return the normal form of a pasted configuration.

    Raises LookupError, as an unknown name does.
    """
    try:
        reduced = drop_irrelevant_config_fields(text)
        _build_model_from_config_text(reduced)
    except UnreadableConfigError as error:
        raise LookupError(str(error)) from error
    return reduced


_MODEL_TABLE = data_files.CatalogTable("models.toml", "model")
_HUB_NAME_TABLES = data_files.load_toml("hub_names.toml")
_VARIANT_SUFFIXES = frozenset(_HUB_NAME_TABLES["variants"])
_QUANTIZED_SUFFIXES: dict[str, dict[str, Any]] = _HUB_NAME_TABLES["quantized"]
_WITHOUT_BLOCKS = tuple(_HUB_NAME_TABLES["without_blocks"])
_DATE_OR_LENGTH = re.compile(r"\d{4,6}|\d+k|v\d+(\.\d+)*")
# Maker of the repository, such as `Qwen/`, and makers that are repeated in names.
_ORGANIZATION_PREFIX = re.compile(r"^[\w.-]+/(?:Meta-)?|^Meta-(?=Llama)", re.IGNORECASE)


def normalize_model_name(name_size_or_config: str) -> str:
    """Return the normal form of a model's name.

    A name of the catalog, a Hub id such as `Qwen/Qwen3-8B-FP8` (the format stays part of the
    name), a size such as `70B`, a config.json or its key. Raises LookupError with the
    closest models, or with what the configuration lacks.
    """
    if is_config_key(name_size_or_config):
        name_size_or_config = expand_config_key(name_size_or_config)
    if is_config_text(name_size_or_config):
        return _validate_and_reduce_config(name_size_or_config)
    if is_parameter_count(name_size_or_config):
        return format_parameter_count(parse_parameter_count(name_size_or_config))
    published = data_files.load_ids_by_alias(*_MODEL_TABLE).get(
        data_files.normalize_catalog_name(name_size_or_config.strip())
    )
    if published:
        return published
    bare = _ORGANIZATION_PREFIX.sub("", name_size_or_config.strip())
    match = _match_hub_name(data_files.normalize_catalog_name(bare))
    ending = match.format_in_ending
    if ending == "fp8" and name_size_or_config.strip().lower().startswith(_WITHOUT_BLOCKS):
        ending = "fp8-dynamic"
    if match.model_id:
        return f"{match.model_id}-{ending}".removesuffix("-")
    return data_files.find_id_by_alias(*_MODEL_TABLE, bare, "a model")


class CatalogMatch(NamedTuple):
    """The catalog id that a Hub name means, and the format in its ending; may be empty."""

    model_id: str
    format_in_ending: str


def _match_hub_name(name: str) -> CatalogMatch:
    known = data_files.load_ids_by_alias(*_MODEL_TABLE)
    if name in known:
        return CatalogMatch(known[name], "")
    quantized = ""
    for ending in _QUANTIZED_SUFFIXES:
        if name.endswith(f"-{ending}"):
            name, quantized = name.removesuffix(f"-{ending}"), ending
            break
    parts = [part for part in name.split("-") if part not in _VARIANT_SUFFIXES]
    undated = [part for part in parts if not _DATE_OR_LENGTH.fullmatch(part)]
    for words in (name, "-".join(parts), "-".join(undated)):
        if words in known:
            return CatalogMatch(known[words], quantized)
    return CatalogMatch("", "")


def find_model(name_size_or_config: str) -> Architecture:
    """Return the architecture for a catalog name, a size such as `70B`, or a config.json.

    A size returns a dense, Llama-shaped model with exactly that many parameters.

    >>> find_model("70B").parameters
    70000000000
    """
    if name_size_or_config.startswith("{"):
        return _build_model_from_config_text(name_size_or_config)
    return _load_named_model(name_size_or_config)


@functools.lru_cache(maxsize=2048)
def _load_named_model(name: str) -> Architecture:
    if is_parameter_count(name):
        return llama_model_of_size(parse_parameter_count(name))
    match = _match_hub_name(normalize_model_name(name))
    row = data_files.load_table_entries_by_id(*_MODEL_TABLE)[match.model_id]
    if not match.format_in_ending:
        return build_architecture(row["config"], name=row["name"])
    table = _QUANTIZED_SUFFIXES[match.format_in_ending]
    config = {**row["config"], "quantization_config": table}
    return build_architecture(config, name=f"{row['name']} {table['label']}")


class ListedModel(NamedTuple):
    id: str
    name: str


def list_models() -> tuple[ListedModel, ...]:
    rows = data_files.load_table_entries_by_id(*_MODEL_TABLE)
    return tuple(ListedModel(key, row["name"]) for key, row in rows.items())


def llama_model_of_size(parameters: int) -> Architecture:
    """Return a dense, Llama-shaped model with exactly `parameters` parameters."""
    config = llama_config_of_size(parameters)
    model = build_architecture(config, name=f"{format_parameter_count(parameters)} dense")
    other = model.other + parameters - model.parameters
    return fill_in_counts(dataclasses.replace(model, other=other))


_MOST_NAMES = 12


def describe_how_weights_are_counted(
    model: Architecture, format_name: str, format_label: str
) -> str:
    """Describe in a sentence how weights are counted if the checkpoint is quantized.

    `format_name` and `format_label` are the chosen format; empty if there is nothing to say.
    """
    how = model.quantization
    if how is None and format_name == PUBLISHED_OR_FP8:
        return f"Weights in FP8, as chosen for {model.name}, which is published in BF16."
    if how is None:
        return ""
    published = find_weight_format(model, PUBLISHED)
    if format_name not in (PUBLISHED, PUBLISHED_OR_FP8, published.id):
        text = f"Weights in {format_label}, as chosen; "
        if how.unsupported_reason:
            return f"{text}how they are published, {how.unsupported_reason}, cannot be read."
        return f"{text}published in {published.label}."
    if how.unsupported_reason:
        return (
            f"Its quantization, {how.unsupported_reason}, cannot be read: counted in BF16. "
            "Choose the format of the weights."
        )
    return f"Weights as published: {published.label}."


def unread_size_fields_warning(model: Architecture) -> str:
    """Return a sentence for the beginning of a verdict if sizes were not understood."""
    if not model.unread_size_fields:
        return ""
    return f"Counted without {_join_names_up_to_limit(model.unread_size_fields)}, which may change it much."


def wide_weights_warning(model: Architecture, format_name: str) -> str:
    """Return a sentence for the beginning of a verdict if a quantization is hardly counted.

    Its configuration cannot be read, has fields that are not understood, or names few of the
    modules it quantizes.
    """
    how = model.quantization
    if how is None or format_name not in (PUBLISHED, PUBLISHED_OR_FP8):
        return ""
    if how.unread_fields:
        names = _join_names_up_to_limit(how.unread_fields)
        return f"Counted without {names} of its quantization, which may change it much."
    if how.unsupported_reason:
        return "Counted in BF16 although it is quantized, which may change it much."
    if how.main_scheme is not None:
        return ""
    quantized = weight_bytes_by_split(model, PUBLISHED).quantized_weight_count
    if quantized > model.parameters / 2:
        return ""
    share = format_value(quantized / model.parameters, "%")
    return (
        f"Counted with {share} of the weights quantized, because its configuration lists no other "
        "modules, which may change it much."
    )


def shape_assumed_from_size_notes(inputs: Any, model: Architecture) -> tuple[str, ...]:
    """Return what is assumed of a model of which only the size is given; empty for others."""
    typed, pasted = (str(getattr(inputs, name, "")) for name in ("model", "config"))
    if pasted or not is_parameter_count(typed):
        return ()
    ((layer, layers),) = model.layer_counts
    heads, kv_heads = layer.mixer.heads, layer.mixer.kv_heads
    note = (
        f"{typed} is a size, not a model: a dense one like Llama 3 is counted, with "
        f"{layers} layers, {kv_heads} KV heads and a vocabulary of "
        f"{format_number(model.vocabulary)}. Others of this size differ: choose yours by its name."
    )
    if heads > kv_heads and hasattr(inputs, "cache"):
        note += (
            f" With {format_number(heads)} KV heads, one for each head as in Llama 2 7B, the KV "
            f"cache is {format_number(heads / kv_heads)}× as large."
        )
    return (note,)


def list_model_caveats(model: Architecture) -> tuple[str, ...]:
    """Return what the counts of `model` leave out or assume; empty if nothing."""
    found = []
    if model.family and not is_known_family(model.family):
        found.append(f"The family “{model.family}” is not known; it was read as Llama-shaped.")
    if model.unread:
        found.append(f"Not understood, and not counted: {_join_names_up_to_limit(model.unread)}.")
    if model.defaulted_fields:
        found.append(
            f"Not given, and taken from the defaults of its class: {_join_names_up_to_limit(model.defaulted_fields)}."
        )
    if model.family == "deepseek_v4":
        found.append(
            "Its cache is that of its paper, which engines do not reach: vLLM 0.22 took 6.66 GiB "
            "per GPU for 30,000 tokens of the Flash model (vllm#44376)."
        )
    if model.family == "deepseek_v41_text":
        found.append(
            "Its keys and values are trained to be kept in FP4, 890 bytes of each token with those "
            "of the indexer (vLLM's recipe). Its prompt runs in the first half of its layers, "
            "which is not counted: times of prompts are too long. Layers that share a cache "
            "count no reads of it."
        )
    if model.tower:
        found.append(
            f"Its vision tower has {format_number(model.tower_parameters)} parameters: "
            "loaded with the weights to answer, left out of training, operations and "
            "GGUF files."
        )
    return tuple(found)


def _join_names_up_to_limit(names: tuple[str, ...]) -> str:
    """Join field names in one line.

    >>> _join_names_up_to_limit(("a", "b"))
    'a, b'
    """
    shown = ", ".join(names[:_MOST_NAMES])
    more = len(names) - _MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown
