"""Read the `quantization_config` of a checkpoint: method, groups, excluded modules."""

import dataclasses
import fnmatch
import functools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from app.estimator import data_files
from app.estimator.models.hf_config import Config, TrackedConfig
from app.estimator.models.layers import Layer, WeightMatrix

_MOST_WILDCARDS = 64
_IN_LAYER = "layers.N."
_MODULE_NAME_TABLES = data_files.load_toml("module_names.toml")

# Prefixes of `layers.0` for the language model in checkpoints.
_BEFORE_LAYERS = frozenset(_MODULE_NAME_TABLES["before_layers"])
_CONTAINER_NAMES: dict[str, list[str]] = _MODULE_NAME_TABLES["containers"]
_MODULE_NAMES_BY_PART: dict[str, dict[str, list[str]]] = _MODULE_NAME_TABLES["names"]
EMBEDDING: tuple[str, ...] = tuple(_MODULE_NAME_TABLES["embedding"])
HEAD: tuple[str, ...] = tuple(_MODULE_NAME_TABLES["head"])


@functools.lru_cache(maxsize=4096)
def _dotted_subpaths(names: tuple[str, ...]) -> frozenset[str]:
    """Return every run of whole components of these dotted names."""
    subpaths: set[str] = set()
    for name in names:
        parts = name.split(".")
        subpaths.update(
            ".".join(parts[a:b]) for a in range(len(parts)) for b in range(a + 1, len(parts) + 1)
        )
    return frozenset(subpaths)


@functools.lru_cache(maxsize=4096)
def _dotted_prefixes_in_layer(names: tuple[str, ...]) -> frozenset[str]:
    """Return every prefix of whole components of these names within their layer."""
    parts = [name.partition(_IN_LAYER)[2].split(".") for name in names]
    return frozenset(".".join(p[:end]) for p in parts for end in range(len(p) + 1))


@functools.lru_cache(maxsize=16384)
def _any_matches_glob(names: tuple[str, ...], glob: str) -> bool:
    return any(fnmatch.fnmatchcase(name, glob) for name in names)


def list_checkpoint_names_of_matrix(layer: Layer, matrix: WeightMatrix) -> tuple[str, ...]:
    """Return the names of a matrix across families: full checkpoint names in a layer N."""
    part: str = matrix.part
    recurrent = layer.mixer.state_elements and layer.mixer.kind != "attention"
    if part == "linear attention" or (part == "attention" and recurrent):
        part = "linear"
    table = _MODULE_NAMES_BY_PART.get(part, _MODULE_NAMES_BY_PART["mlp"])
    published_names = table.get(matrix.name, [matrix.name])
    return tuple(
        f"model.{_IN_LAYER}{block}.{name}"
        for block in _CONTAINER_NAMES[part]
        for name in published_names
    )


class ModulePatterns:
    """Modules that a list names: by name, with wildcards, or by an ordinary `re:`.

    A plain entry names every module whose dotted name contains it as whole parts.
    Regular expressions are converted to wildcards and never run, because untrusted ones
    can take very long. `unreadable` is the first that cannot be converted, or is one too many.
    """

    def __init__(self, entries: Iterable[str]) -> None:
        plain: set[str] = set()
        wild: dict[str, None] = {}
        self._of_layer: dict[str, set[str]] = {}
        self._of_layers: dict[tuple[str, str], None] = {}
        self._index_patterns: dict[tuple[str, ...], re.Pattern[str]] = {}
        self.unreadable = ""
        alternatives_left = _MOST_ALTERNATIVES
        for entry in entries:
            globs = _convert_entry_to_globs(entry)
            alternatives_left -= len(globs) - 1 if globs else 0
            if globs is None or alternatives_left < 0:
                self.unreadable = self.unreadable or entry
                break
            for glob in filter(None, map(_normalize_layer_glob_or_empty, globs)):
                index, name = _split_into_layer_index_and_name(glob)
                if index and not _has_wildcard(index + name):
                    self._of_layer.setdefault(index, set()).add(name)
                elif index:
                    self._of_layers[index, name] = None
                elif _has_wildcard(glob):
                    wild[glob] = None
                else:
                    plain.add(glob)
        if len(wild) + len(self._of_layers) > _MOST_WILDCARDS:
            self.unreadable = next(iter((*wild, *(name for _, name in self._of_layers))))
        self._plain, self._wild = frozenset(plain), tuple(wild)

    @property
    def names_single_layers(self) -> bool:
        """Return whether it names some layers and not others."""
        return bool(self._of_layer or self._of_layers)

    def matches(self, names: tuple[str, ...], layer_index: str = "") -> bool:
        """Return whether a pattern names one of these full names, in this layer if given."""
        if not self._plain.isdisjoint(_dotted_subpaths(names)):
            return True
        if any(_any_matches_glob(names, glob) for glob in self._wild):
            return True
        if not layer_index:
            return False
        if not self._of_layer.get(layer_index, _NO_NAMES).isdisjoint(
            _dotted_prefixes_in_layer(names)
        ):
            return True
        return bool(self._compile_index_pattern(names).match(layer_index))

    def _compile_index_pattern(self, names: tuple[str, ...]) -> re.Pattern[str]:
        """Return what matches the index of each layer in which wildcards name one of `names`."""
        if names not in self._index_patterns:
            globs = [i for i, name in self._of_layers if _any_matches_glob(names, name)]
            regexes = map(fnmatch.translate, dict.fromkeys(globs))
            self._index_patterns[names] = re.compile("|".join(regexes) or _NEVER_MATCHING_PATTERN)
        return self._index_patterns[names]


def _split_into_layer_index_and_name(glob: str) -> tuple[str, str]:
    """Return the layer index that a pattern names, empty for none or all, and the name within it."""
    match = _LAYER_PATTERN.match(glob)
    if match is None or match["index"] == "*":
        return "", ""
    pattern = match["name"] or "*"
    name = pattern.removesuffix("*").removesuffix(".")
    if _has_wildcard(match["index"] + name):
        name = f"model.{_IN_LAYER}{pattern}"
    return match["index"], name


_LAYER_PATTERN = re.compile(
    r"(?:\*\.?)?(?:layers\.)?(?<![^.*])(?P<index>[\d*\[\]\-]*[\d\]][\d*\[\]\-]*|\*)"
    r"(?:\.(?P<name>.*))?$"
)
_NO_NAMES: frozenset[str] = frozenset()
_NEVER_MATCHING_PATTERN = "(?!)"


def _has_wildcard(glob: str) -> bool:
    return any(sign in glob for sign in "*?[")


def _normalize_layer_glob_or_empty(glob: str) -> str:
    """Return a pattern without the prefix of the layers; empty if it names other parts."""
    normalized = glob.replace("transformer.h.", "layers.")
    prefix, separator, suffix = normalized.partition("layers.")
    if not separator:
        return glob.removeprefix("model.") or glob
    prefix_parts = [part for part in prefix.lstrip("*").split(".") if part]
    if not all(part in _BEFORE_LAYERS for part in prefix_parts):
        return ""
    name = separator + suffix
    return f"*.{name}" if _has_wildcard(name) else name


def _convert_entry_to_globs(entry: str) -> list[str] | None:
    """Return the wildcards that an entry means; None if it cannot be converted."""
    text = entry.strip()
    if text.startswith("re:"):
        return _convert_regex_to_globs(text[3:])
    if any(sign in text for sign in "\\^$(|+"):
        return _convert_regex_to_globs(text)
    # A star at either end matches the components before or after.
    pattern = text.removesuffix("*").removesuffix(".")
    pattern = pattern.removeprefix("*.") or text
    if not _has_wildcard(pattern):
        return [pattern]
    ending = "*" if text.endswith("*") else ""
    return [f"*{pattern}{ending}", f"*{pattern}.*"]


_SIMPLE_MODULE_PATTERN = re.compile(r"[\w.*\[\]\-]*")
_MOST_STARS, _MOST_ALTERNATIVES, _MOST_CHARACTERS = 8, 512, 2000
# What stands for any characters, where numbers of digits or letters are not told apart.
_ANY_CHARACTERS = re.compile(r"(?:\.|\\[dw]|\[0-9\]|\[\^\\?\.\])(?:[*+]\??|\{\d+(?:,\d*)?\})")
_ESCAPED_SIGN = re.compile(r"\\([^a-zA-Z0-9])")
_OPTIONAL_CHARACTER = re.compile(r"(\[[\w\-]+\]|[\w.])\?")


def _convert_regex_to_globs(regex: str) -> list[str] | None:
    """Convert an expression of names, wildcards, digits and alternatives to wildcards."""
    if len(regex) > _MOST_CHARACTERS:
        return None
    body = _ANY_CHARACTERS.sub("*", regex.replace("\\b", ""))
    # An unescaped dot also means a literal dot.
    body = body.replace("\\d", "[0-9]").replace("\\.", ".").replace("(?:", "(")
    bodies = _expand_alternatives(_OPTIONAL_CHARACTER.sub(r"(\1|)", body))
    if bodies is None:
        return None
    globs = dict[str, None]()
    for alternative in bodies:
        name = _ESCAPED_SIGN.sub(r"\1", alternative.removeprefix("^").removesuffix("$"))
        if not _SIMPLE_MODULE_PATTERN.fullmatch(name) or name.count("*") > _MOST_STARS:
            return None
        ending = "" if alternative.endswith("$") else "*"
        globs[re.sub(r"\*+", "*", f"*{name}{ending}")] = None
    return list(globs)


def _expand_alternatives(regex: str) -> list[str] | None:
    """Expand every `(a|b)` and `(a|b)?`, also nested ones; None if too many or repeated.

    >>> _expand_alternatives("x(a(b|c)?|d)$")
    ['xab$', 'xac$', 'xa$', 'xd$']
    >>> _expand_alternatives("(a|b)+")
    """
    earlier, current = list[str](), [""]
    outer: list[tuple[list[str], list[str]]] = []
    for piece in re.findall(r"[(|]|\)[?*+{]?|[^()|]+", regex):
        choices = [piece]
        if piece == "(":
            outer.append((earlier, current))
            earlier, current = [], [""]
            continue
        if piece == "|":
            earlier += current
            current = [""]
            continue
        if piece.startswith(")"):
            if not outer or piece not in (")", ")?"):
                return None
            choices = [*earlier, *current, *([""] if piece == ")?" else [])]
            earlier, current = outer.pop()
        if len(earlier) + len(current) * len(choices) > _MOST_ALTERNATIVES:
            return None
        current = [start + choice for start in current for choice in choices]
    return None if outer else earlier + current


_EXPERT_PATTERNS = ModulePatterns(("experts",))
Scope = Literal["linear", "experts", "everything"]


@dataclasses.dataclass(frozen=True, slots=True)
class QuantizationScheme:
    """A weight format: bits per weight with its scales and zero points.

    `math` is the format of the products, `nearest_format_id` the nearest catalog format. `outputs_per_scale_block`: outputs
    that share a scale in blocks of outputs and inputs (0: no such blocks).
    """

    nearest_format_id: str
    label: str
    bits_per_weight: float
    math_format: str = "bf16"
    scale_description: str = ""
    outputs_per_scale_block: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class ModuleOverride:
    """Modules with a format of their own; None: they stay in 16 bit."""

    modules: ModulePatterns
    scheme: QuantizationScheme | None


@dataclasses.dataclass(frozen=True, slots=True)
class Quantization:
    """How a checkpoint is quantized.

    `main_scheme` applies to the modules of `quantized_scope` that no override names; the first override
    that names a module decides. `cache_format` is the format of keys and values that the checkpoint
    asks for, empty if none. `unread_fields` are not understood and may change the format of weights.
    `unsupported_reason` says why it is not supported; then nothing else is set.
    """

    main_scheme: QuantizationScheme | None = None
    quantized_scope: Scope = "linear"
    overrides: tuple[ModuleOverride, ...] = ()
    cache_format: str = ""
    unread_fields: tuple[str, ...] = ()
    unsupported_reason: str = ""


class ModuleScheme(NamedTuple):
    """A pattern of module names with their format; None: they stay in 16 bit."""

    pattern: str
    scheme: QuantizationScheme | None


class UnsupportedQuantizationError(ValueError):
    """A quantization is not supported; the text names it."""


def describe_quantization_method(quantization_config: Config) -> str:
    name = quantization_config.get("quant_method") or quantization_config.get("quant_algo")
    return f"“{str(name)[:40]}”" if name else "one without a name"


def _unquantized_modules(
    quantization_config: Config, *more_keys: str
) -> tuple[ModuleOverride, ...]:
    """Return the modules that stay in 16 bit, from any known key for that list."""
    names: list[str] = []
    for key in (*_UNQUANTIZED_LIST_KEYS, *more_keys):
        value = quantization_config.get(key)
        if isinstance(value, str):
            names.append(value)
        elif isinstance(value, list | tuple):
            names += [str(each) for each in value if each is not None]
    if not names:
        return ()
    return (ModuleOverride(_parse_module_patterns(tuple(names)), None),)


_UNQUANTIZED_LIST_KEYS = (
    "modules_to_not_convert",
    "ignored_layers",
    "ignore",
    "exclude_modules",
    "exclude",
    "llm_int8_skip_modules",
    "skip_modules",
)


_MOST_SHOWN = 60


def _parse_module_patterns(names: tuple[str, ...]) -> ModulePatterns:
    module_patterns = ModulePatterns(names)
    if pattern := module_patterns.unreadable:
        shown = pattern if len(pattern) <= _MOST_SHOWN else f"{pattern[:_MOST_SHOWN]}…"
        raise UnsupportedQuantizationError(f"one with modules named by “{shown}”")
    return module_patterns


def _integer_scheme(
    bits: int, group_size: int, *, has_zero_points: bool, math_format: str = "bf16"
) -> QuantizationScheme:
    """Return integers with a 16-bit scale per group, or per channel without groups."""
    if not 1 <= bits <= 8:
        raise UnsupportedQuantizationError(f"one of {bits} bits")
    label = f"INT{bits}"
    if group_size <= 0:
        return QuantizationScheme(
            f"int{bits}", f"{label}, scales by channel", float(bits), math_format
        )
    width = bits + (16 + (bits if has_zero_points else 0)) / group_size
    scale_description = "16-bit scale"
    if has_zero_points:
        scale_description += f" and {bits}-bit zero"
    return QuantizationScheme(
        f"int{bits}",
        f"{label}, groups of {group_size}",
        width,
        math_format,
        f"{scale_description} per {group_size}",
    )


FP8 = QuantizationScheme("fp8", "FP8", 8.0, "fp8")
MXFP4 = QuantizationScheme("mxfp4", "MXFP4", 4.25, "mxfp4", "8-bit scale per 32")
MXFP8 = QuantizationScheme("mxfp8", "MXFP8", 8.25, "fp8", "8-bit scale per 32")
_NVFP4_SCHEME = QuantizationScheme("nvfp4", "NVFP4", 4.5, "nvfp4", "8-bit scale per 16")


def _fp8_scheme(block: Any) -> QuantizationScheme:
    """Return FP8 with a 32-bit scale per block, per channel or per tensor."""
    if not block:
        return FP8
    rows, columns = (int(side) for side in block)
    if rows < 1 or columns < 1:
        raise UnsupportedQuantizationError(f"FP8 in blocks of {rows}×{columns}")
    label = f"FP8 in blocks of {rows}×{columns}"
    scale = f"FP32 scale per block of {rows}×{columns}"
    return QuantizationScheme("fp8-block", label, 8 + 32 / (rows * columns), "fp8", scale, rows)


def _read_fp8(quantization_config: Config) -> Quantization:
    scheme = _fp8_scheme(quantization_config.get("weight_block_size"))
    algorithm = quantization_config.get("moe_quant_algo")
    if not algorithm:
        return Quantization(scheme, overrides=_unquantized_modules(quantization_config))
    # Experts of DeepSeek-V4 that were quantized again (sgl-project/sglang#25820): what is
    # ignored then keeps the format of its source, FP8.
    table = {key: value for key, value in quantization_config.items() if key != "ignore"}
    experts = ModuleOverride(_EXPERT_PATTERNS, _modelopt_scheme(str(algorithm), table))
    return Quantization(scheme, overrides=(*_unquantized_modules(table), experts))


def _read_gptq_or_awq(quantization_config: Config) -> Quantization:
    """Read GPTQ and AWQ, which store zero points even if symmetric."""
    bits, group = (
        int(quantization_config.get("bits") or quantization_config["w_bit"]),
        _read_group_size(quantization_config),
    )
    zeros = quantization_config.get("zero_point", True) is not False
    overrides = [
        *_read_gptqmodel_overrides(quantization_config, bits, group),
        *_unquantized_modules(quantization_config),
    ]
    if quantization_config.get("lm_head") is True:
        head_scheme = _integer_scheme(bits, group, has_zero_points=zeros, math_format="fp16")
        overrides.append(ModuleOverride(ModulePatterns(("lm_head",)), head_scheme))
    scheme = _integer_scheme(bits, group, has_zero_points=zeros, math_format="fp16")
    return Quantization(scheme, overrides=tuple(overrides))


def _read_group_size(quantization_config: Config) -> int:
    value = quantization_config.get("group_size", quantization_config.get("q_group_size", 128))
    return -1 if value is None else int(value)


def _read_gptqmodel_overrides(
    quantization_config: Config, bits: int, group_size: int
) -> tuple[ModuleOverride, ...]:
    """Read exceptions of GPTQModel: `-:` excludes modules, `+:` sets other bits."""
    module_schemes = []
    for key, settings in (quantization_config.get("dynamic") or {}).items():
        sign, pattern = (key[0], key[2:]) if key[1:2] == ":" else ("+", key)
        values = settings or {}
        bits_and_group = int(values.get("bits", bits)), int(values.get("group_size", group_size))
        scheme = (
            None
            if sign == "-"
            else _integer_scheme(*bits_and_group, has_zero_points=True, math_format="fp16")
        )
        module_schemes.append(ModuleScheme(f"re:{pattern}", scheme))
    return _overrides_by_scheme(module_schemes)


# Published checkpoints mix two to four formats.
_MOST_FORMATS = 8


def _overrides_by_scheme(module_schemes: Iterable[ModuleScheme]) -> tuple[ModuleOverride, ...]:
    names_by_scheme: dict[QuantizationScheme | None, list[str]] = {}
    for pattern, scheme in module_schemes:
        names_by_scheme.setdefault(scheme, []).append(pattern)
        if len(names_by_scheme) > _MOST_FORMATS:
            raise UnsupportedQuantizationError(f"one of more than {_MOST_FORMATS} formats")
    return tuple(
        ModuleOverride(_parse_module_patterns(tuple(names)), scheme)
        for scheme, names in names_by_scheme.items()
    )


def _read_auto_round(quantization_config: Config) -> Quantization:
    module_schemes = [
        ModuleScheme(str(name), _auto_round_scheme({**quantization_config, **(settings or {})}))
        for name, settings in (quantization_config.get("extra_config") or {}).items()
    ]
    return Quantization(
        _auto_round_scheme(quantization_config),
        overrides=(
            *_overrides_by_scheme(module_schemes),
            *_unquantized_modules(quantization_config),
        ),
    )


def _auto_round_scheme(values: Config) -> QuantizationScheme | None:
    kind = str(values.get("data_type") or "int").lower()
    bits, group = int(values["bits"]), _read_group_size(values)
    if bits >= 16:
        return None
    for start, size in {"mx": 32, "nv": 16, "fp": 0}.items():
        if kind.startswith(start):
            return _float_scheme(bits, size)
    return _integer_scheme(bits, group or -1, has_zero_points=True, math_format="fp16")


def _float_scheme(bits: int, group_size: int) -> QuantizationScheme:
    """Return a floating-point format by bits and group, as in the microscaling formats."""
    if bits == 4 and group_size in (16, 32):
        return _NVFP4_SCHEME if group_size == 16 else MXFP4
    if bits == 8:
        return MXFP8 if group_size == 32 else FP8
    raise UnsupportedQuantizationError(f"FP{bits} in groups of {group_size}")


def _read_bitsandbytes(quantization_config: Config) -> Quantization:
    def has(key: str) -> bool:
        return bool(quantization_config.get(key, quantization_config.get(f"_{key}")))

    if has("load_in_8bit"):
        scheme = QuantizationScheme("int8", "INT8, scales by row", 8.0, "int8")
    elif has("load_in_4bit"):
        kind = str(quantization_config.get("bnb_4bit_quant_type") or "fp4").upper()
        scheme = QuantizationScheme("nf4", kind, 4.5, scale_description="FP32 scale per 64")
        if quantization_config.get("bnb_4bit_use_double_quant"):
            label, bits = f"{kind}, double quantized", 4 + 8 / 64 + 32 / (64 * 256)
            scale = "8-bit scale per 64, FP32 per 256 scales"
            scheme = QuantizationScheme("nf4-double", label, bits, scale_description=scale)
    else:
        raise UnsupportedQuantizationError("“bitsandbytes” with neither 4 nor 8 bits")
    return Quantization(scheme, overrides=_unquantized_modules(quantization_config))


def _read_compressed_tensors(quantization_config: Config) -> Quantization:
    """Read compressed-tensors: groups of modules with a format each, and an ignore list."""
    sparsity = quantization_config.get("sparsity_config") or {}
    packing = f"{quantization_config.get('format') or ''} {sparsity.get('format') or ''}".strip()
    if "sparse" in packing or "marlin-24" in packing:
        raise UnsupportedQuantizationError(f"“{packing[:40]}”")
    default_scheme = None
    module_schemes: list[ModuleScheme] = []
    for group in (quantization_config.get("config_groups") or {}).values():
        scheme = _compressed_tensors_scheme(group) if group.get("weights") else None
        targets = [str(target) for target in group.get("targets") or ("Linear",)]
        if "Linear" in targets:
            default_scheme = default_scheme or scheme
        module_schemes += [ModuleScheme(t, scheme) for t in targets if t != "Linear"]
    overrides = (*_unquantized_modules(quantization_config), *_overrides_by_scheme(module_schemes))
    if default_scheme is None and not any(o.scheme for o in overrides):
        raise UnsupportedQuantizationError(
            f"{describe_quantization_method(quantization_config)} without any format of weights"
        )
    return Quantization(default_scheme, overrides=overrides)


def _compressed_tensors_scheme(group: Config) -> QuantizationScheme:
    weights = group["weights"]
    bits, size = int(weights["num_bits"]), int(weights.get("group_size") or -1)
    if weights.get("type") == "float":
        if weights.get("strategy") == "block":
            return _fp8_scheme(weights.get("block_structure"))
        return _float_scheme(bits, max(size, 0))
    acts = group.get("input_activations") or {}
    math = "int8" if bits == 8 and acts else "bf16"
    return _integer_scheme(
        bits, size, has_zero_points=weights.get("symmetric") is False, math_format=math
    )


def _read_modelopt(quantization_config: Config) -> Quantization:
    """Read NVIDIA ModelOpt: one algorithm, groups of modules, or one per module."""
    unquantized = _unquantized_modules(quantization_config)
    layers = quantization_config.get("quantized_layers")
    if isinstance(layers, Mapping) and layers:
        module_schemes = (
            ModuleScheme(
                str(name),
                _modelopt_scheme(str((values or {}).get("quant_algo")), quantization_config),
            )
            for name, values in layers.items()
        )
        return Quantization(None, overrides=(*unquantized, *_overrides_by_scheme(module_schemes)))
    algorithm = quantization_config.get("quant_algo")
    if algorithm in (None, "", "MIXED_PRECISION") and quantization_config.get("config_groups"):
        return _read_compressed_tensors(quantization_config)
    return Quantization(
        _modelopt_scheme(str(algorithm), quantization_config), overrides=unquantized
    )


def _modelopt_scheme(algorithm: str, quantization_config: Config) -> QuantizationScheme:
    name = algorithm.upper()
    start = next((start for start in _SCHEMES_BY_START if name.startswith(start)), None)
    if start is None:
        raise UnsupportedQuantizationError(f"“{algorithm[:40]}”")
    return _SCHEMES_BY_START[start](quantization_config)


# The first start of an algorithm's name that fits counts.
_SCHEMES_BY_START: dict[str, Callable[[Config], QuantizationScheme]] = {
    "NVFP4": lambda _: _NVFP4_SCHEME,
    "W4A16_NVFP4": lambda _: _NVFP4_SCHEME,
    "MXFP4": lambda _: MXFP4,
    "W4A8_MXFP4": lambda _: MXFP4,
    "MXFP8": lambda _: MXFP8,
    "FP8_PB": lambda _: _fp8_scheme((128, 128)),
    "FP8_BLOCK": lambda _: _fp8_scheme((128, 128)),
    "FP8": lambda _: FP8,
    "W4A": lambda table: _integer_scheme(4, _read_group_size(table), has_zero_points=False),
    "INT4": lambda table: _integer_scheme(4, _read_group_size(table), has_zero_points=False),
    "W8A16": lambda _: _integer_scheme(8, -1, has_zero_points=False),
    "W8A8": lambda _: _integer_scheme(8, -1, has_zero_points=False, math_format="int8"),
    "INT8": lambda _: _integer_scheme(8, -1, has_zero_points=False, math_format="int8"),
}


def _read_mxfp4(quantization_config: Config) -> Quantization:
    return Quantization(MXFP4, "experts", _unquantized_modules(quantization_config))


def _read_quark(quantization_config: Config) -> Quantization:
    """Read AMD Quark: a format for all modules, and others for named ones."""
    default_scheme = _quark_weight_scheme(quantization_config["global_quant_config"])
    overrides = _overrides_by_scheme(
        ModuleScheme(str(name), _quark_weight_scheme(values))
        for name, values in (quantization_config.get("layer_quant_config") or {}).items()
    )
    return Quantization(
        default_scheme, overrides=(*_unquantized_modules(quantization_config), *overrides)
    )


def _quark_weight_scheme(layer_quant_config: Config) -> QuantizationScheme | None:
    weight = layer_quant_config.get("weight")
    if isinstance(weight, list):
        weight = weight[0] if weight else None
    if not weight:
        return None
    kind, group = str(weight.get("dtype") or ""), int(weight.get("group_size") or 0)
    if kind.startswith("fp8"):
        return _float_scheme(8, group)
    if kind.startswith(("fp4", "mxfp4")):
        return _float_scheme(4, group or 32)
    digits = kind.removeprefix("u").removeprefix("int")
    if not digits.isdigit():
        raise UnsupportedQuantizationError(f"Quark's “{kind[:40]}”")
    return _integer_scheme(int(digits), group or -1, has_zero_points=kind.startswith("u"))


def _read_hqq(quantization_config: Config) -> Quantization:
    values = quantization_config.get("quant_config") or quantization_config
    values = values.get("weight_quant_params") or values
    bits, group = int(values["nbits"]), int(values.get("group_size") or -1)
    scale_bits = 32 / group if group > 0 else 0.0
    label = f"HQQ INT{bits}, groups of {group}"
    scale = f"16-bit scale and zero per {group}"
    scheme = QuantizationScheme(f"int{bits}", label, bits + scale_bits, "bf16", scale)
    return Quantization(scheme, overrides=_unquantized_modules(quantization_config))


def _read_quanto(quantization_config: Config) -> Quantization:
    weight_type = str(quantization_config.get("weights"))
    if weight_type.startswith("float8"):
        return Quantization(FP8, overrides=_unquantized_modules(quantization_config))
    digits = weight_type.removeprefix("qint").removeprefix("int")
    if not digits.isdigit():
        raise UnsupportedQuantizationError(f"Quanto's “{weight_type[:40]}”")
    group = 128 if int(digits) < 8 else -1
    scheme = _integer_scheme(int(digits), group, has_zero_points=group > 0)
    return Quantization(scheme, overrides=_unquantized_modules(quantization_config))


def _read_mlx(quantization_config: Config) -> Quantization:
    """Read MLX, which also quantizes tables; groups have a 16-bit scale and bias."""
    module_schemes = []
    for name, values in quantization_config.items():
        if values is False:
            module_schemes.append(ModuleScheme(str(name), None))
        elif isinstance(values, Mapping):
            module_schemes.append(ModuleScheme(str(name), _mlx_scheme(values)))
    overrides = _overrides_by_scheme(module_schemes)
    return Quantization(_mlx_scheme(quantization_config), "everything", overrides)


def _mlx_scheme(values: Config) -> QuantizationScheme:
    """Return the format of a checkpoint or a module; without a mode, integers with a bias."""
    bits, group = int(values["bits"]), int(values["group_size"])
    if str(values.get("mode") or "affine") != "affine":
        return _float_scheme(bits, group)
    if not 1 <= bits <= 8 or group < 1:
        raise UnsupportedQuantizationError(f"MLX with {bits} bits in groups of {group}")
    label, scale = f"INT{bits}, groups of {group}", f"16-bit scale and bias per {group}"
    return QuantizationScheme(f"int{bits}", label, bits + 32 / group, scale_description=scale)


def _read_int8(quantization_config: Config) -> Quantization:
    scheme = _integer_scheme(8, -1, has_zero_points=False, math_format="int8")
    return Quantization(scheme, overrides=_unquantized_modules(quantization_config))


_READER_BY_METHOD: dict[str, Callable[[Config], Quantization]] = {
    **dict.fromkeys(("fp8", "finegrained-fp8", "fbgemm-fp8", "w8a8-fp8"), _read_fp8),
    **dict.fromkeys(("mxfp4", "gpt-oss-mxfp4"), _read_mxfp4),
    **dict.fromkeys(("gptq", "gptq-marlin", "gptqmodel", "awq", "awq-marlin"), _read_gptq_or_awq),
    **dict.fromkeys(("auto-round", "intel/auto-round", "inc"), _read_auto_round),
    **dict.fromkeys(("bitsandbytes", "bnb"), _read_bitsandbytes),
    "compressed-tensors": _read_compressed_tensors,
    **dict.fromkeys(
        ("modelopt", "modelopt-fp4", "modelopt-fp8", "modelopt-mixed", "nvfp4"), _read_modelopt
    ),
    "quark": _read_quark,
    "hqq": _read_hqq,
    "quanto": _read_quanto,
    "mlx": _read_mlx,
    **dict.fromkeys(("w8a8-int8", "eetq"), _read_int8),
}


def read_quantization(config: Config, language_config: Config) -> Quantization | None:
    """Return how the checkpoint of a `config.json` is quantized; None if it is not.

    `language_config` is the part for the language model.
    """
    language_table = _find_quantization_config(language_config)
    found = _find_quantization_config(config) or language_table
    table = TrackedConfig(found or {})
    try:
        if found is None:
            return _read_scaleless_8_bit_dtype(config, language_config)
        quantization = dataclasses.replace(
            _parse_quantization_by_its_method(table), cache_format=_read_cache_format(table)
        )
        quantization = _add_expert_override(
            quantization, language_config.get("expert_dtype") or table.get("expert_dtype")
        )
        return dataclasses.replace(quantization, unread_fields=table.list_unread_format_fields())
    except UnsupportedQuantizationError as error:
        return Quantization(unsupported_reason=str(error))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return Quantization(
            unsupported_reason=describe_quantization_method(table) + ", with unusable values"
        )


def _read_cache_format(quantization_config: Config) -> str:
    """Return the catalog id of the cache format that a quantization asks for."""
    inner = quantization_config.get("quantization")
    quantization_config = inner if isinstance(inner, Mapping) else quantization_config
    scheme = quantization_config.get("kv_cache_scheme")
    if isinstance(scheme, Mapping) and scheme.get("num_bits") == 8:
        return "fp8" if scheme.get("type") == "float" else "int8"
    algorithm = str(quantization_config.get("kv_cache_quant_algo") or "").lower()
    return algorithm if algorithm in {"fp8", "int8"} else ""


def _find_quantization_config(config: Config) -> Config | None:
    for key in ("quantization_config", "compression_config", "quantization"):
        value = config.get(key)
        if isinstance(value, Mapping):
            if value:
                return value
        elif value:
            return {"quant_method": str(value)}
    return None


def _read_scaleless_8_bit_dtype(config: Config, language_config: Config) -> Quantization | None:
    """Return the format of weights stored in 8 bits without scales."""
    for part in (language_config, config):
        label = str(part.get("dtype") or part.get("torch_dtype") or "")
        if "float8" in label:
            return Quantization(FP8)
        if any(name in label for name in ("int8", "int4", "float4", "float6")):
            return Quantization(unsupported_reason=f"weights of type {label[:40]}")
    return None


def _add_expert_override(quantization: Quantization, expert_dtype: Any) -> Quantization:
    """Add the format of routed experts that DeepSeek-V4 names beside the table, V4.1 in it."""
    if not expert_dtype or quantization.unsupported_reason:
        return quantization
    if expert_dtype not in ("fp4", "fp8"):
        raise UnsupportedQuantizationError(f"experts of type {str(expert_dtype)[:40]}")
    if expert_dtype == "fp8":
        return quantization
    experts = ModuleOverride(_EXPERT_PATTERNS, MXFP4)
    return dataclasses.replace(quantization, overrides=(*quantization.overrides, experts))


def _parse_quantization_by_its_method(quantization_config: Config) -> Quantization:
    inner = quantization_config.get("quantization")
    if isinstance(inner, Mapping):  # hf_quant_config.json, which is wrapped by its producer.
        quantization_config = {"quant_method": "modelopt", **inner}
    method = str(quantization_config.get("quant_method") or "").lower().replace("_", "-")
    if not method:
        method = _guess_method_from_keys(quantization_config)
    reader = _READER_BY_METHOD.get(method)
    if reader is None:
        raise UnsupportedQuantizationError(describe_quantization_method(quantization_config))
    return reader(quantization_config)


def _guess_method_from_keys(quantization_config: Config) -> str:
    if "quant_algo" in quantization_config:
        return "modelopt"
    if "config_groups" in quantization_config:
        return "compressed-tensors"
    if any(str(key).lstrip("_").startswith("load_in_") for key in quantization_config):
        return "bitsandbytes"
    if "bits" in quantization_config and "group_size" in quantization_config:
        return "mlx"
    return ""
