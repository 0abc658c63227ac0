"""Read the keys of a Hugging Face config.json, with defaults per model family."""

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from app.estimator import data_files

Config = Mapping[str, Any]


class UnreadableConfigError(ValueError):
    """A configuration lacks a size or contradicts itself."""


_FIELD_TABLES = data_files.load_toml("config_fields.toml")
_KEYS_BY_FIELD: dict[str, list[str]] = _FIELD_TABLES["keys"]
_FAMILY_TABLES = data_files.load_toml("families.toml")


def read_config_int(
    config: Config, quantity: str, default: int | None = None, *, layer: int | None = None
) -> int:
    """Return an integer field by its meaning, under any of its known keys.

    A list has one value for each layer; without `layer` all of them must be equal.
    """
    for key in _KEYS_BY_FIELD[quantity]:
        value = config.get(key)
        if isinstance(value, list) and value:
            value = _pick_layer_or_common_value(key, value, layer)
        if value is not None and not isinstance(value, bool):
            return _require_whole_number(key, value)
    if default is None:
        raise UnreadableConfigError(f"The configuration has no {_KEYS_BY_FIELD[quantity][0]}.")
    return default


def _pick_layer_or_common_value(key: str, values: list[Any], layer: int | None) -> Any:
    if layer is None:
        if any(value != values[0] for value in values):
            raise UnreadableConfigError(f"{key} differs between layers, which cannot be read.")
        return values[0]
    if layer >= len(values):
        message = f"{key} has {len(values)} values and no one for layer {layer + 1}."
        raise UnreadableConfigError(message)
    return values[layer]


def _require_whole_number(key: str, value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise UnreadableConfigError(f"{key} is “{value}”, not a whole number.") from None
    if number < 0 or number > 10**9:
        raise UnreadableConfigError(f"{key} is {value}; 0 to 1,000,000,000 can be read.")
    return number


def extract_language_model_config(config: Config) -> Config:
    """Return the part for the language model, with its family's name normalized."""
    text = _flatten_minimax_sparse_attention(_find_nested_language_config(config))
    family = text.get("model_type")
    if config.get("model_type") == "minimax_m3_vl":  # Its text is named minimax_m2, or not at all.
        family = "minimax_m3"
    if isinstance(family, str) and family in _FAMILY_TABLES["aliases"]:
        return {**text, "model_type": _FAMILY_TABLES["aliases"][family]}
    return text


def _find_nested_language_config(config: Config) -> Config:
    for key in ("text_config", "llm_config", "language_config", "thinker_config"):
        inner = config.get(key)
        if isinstance(inner, Mapping):
            outer = {key: config[key] for key in _INHERITED_KEYS if key in config}
            return _find_nested_language_config({**outer, **inner})
    return config


# Fields of a nested `sparse_attention_config`, and those that current releases use.
_SPARSE_FIELDS = {
    "sparse_num_index_heads": "index_n_heads",
    "sparse_index_dim": "index_head_dim",
    "sparse_block_size": "index_block_size",
    "sparse_topk_blocks": "index_topk_blocks",
    "sparse_local_block": "index_local_blocks",
}


def _flatten_minimax_sparse_attention(config: Config) -> Config:
    """Return a configuration of MiniMax-M3 with the fields that its current release has."""
    sparse = config.get("sparse_attention_config")
    if not isinstance(sparse, Mapping):
        return config
    flat = {new: sparse[old] for old, new in _SPARSE_FIELDS.items() if old in sparse}
    layers = sparse.get("sparse_attention_freq")
    if isinstance(layers, list):
        kinds = ("full_attention", "minimax_m3_sparse")
        flat["layer_types"] = [kinds[bool(on)] for on in layers]
    other_fields = {key: value for key, value in config.items() if key != "sparse_attention_config"}
    return {**flat, **other_fields}


def count_prediction_modules(config: Config) -> int:
    """Return the modules for multi-token prediction that are published with a model."""
    names = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")
    count = max(config.get(name) or 0 for name in (*names, "num_mtp_layers"))
    count = _FAMILY_TABLES["prediction_modules"].get(config.get("model_type"), count)
    if not isinstance(count, int) or not 0 <= count <= _MOST_PREDICTORS:
        raise UnreadableConfigError(f"{count} modules of multi-token prediction cannot be.")
    return count


_MOST_PREDICTORS = 64


def has_windowed_dense_prediction_modules(config: Config) -> bool:
    """Return whether such modules have a dense MLP and a sliding window."""
    return config.get("model_type") in _FAMILY_TABLES["windowed_dense_prediction_modules"]


def reject_unsupported_family(config: Config) -> None:
    """Reject families that would be counted incorrectly."""
    family = str(config.get("model_type", "llama"))
    if family in _FAMILY_TABLES["unread"]:
        raise UnreadableConfigError(f"Models of the family “{family}” cannot be read yet.")
    if family in _FAMILY_TABLES["encoders"]:
        message = f"“{family}” is an encoder without a decoder, which cannot be read."
        raise UnreadableConfigError(message)


_INHERITED_KEYS = ("tie_word_embeddings", "vocab_size", "expert_dtype")


def list_attention_kind_of_each_layer(
    config: Config, layers: int, full_attention_every: int
) -> list[str]:
    """Return `full`, `sliding` or `linear` for each layer.

    Uses the list `layer_types` if there is one, else a pattern in words or a period, else
    the period of the family.
    """
    listed = config.get("layer_types")
    if isinstance(listed, list) and len(listed) >= layers:
        return [_parse_attention_kind(str(word)) for word in listed[:layers]]
    pattern = config.get("layer_pattern")
    if isinstance(pattern, str):
        return _parse_attention_pattern(pattern, layers)
    return _infer_kinds_from_window_fields(config, layers, full_attention_every)


def _infer_kinds_from_window_fields(
    config: Config, layers: int, full_attention_every: int
) -> list[str]:
    """Return layer kinds by period, by a pattern of letters, or by the first windowed layer."""
    first = config.get("max_window_layers")
    if config.get("model_type") in _UNUSED_WINDOW and first and read_sliding_window_tokens(config):
        return ["sliding" if i >= first else "full" for i in range(layers)]
    period = config.get("sliding_window_pattern") or full_attention_every
    period = config.get("global_attn_every_n_layers") or period
    if isinstance(period, str):
        return ["full" if period[i % len(period)] == "G" else "sliding" for i in range(layers)]
    if not period or not read_sliding_window_tokens(config):
        return [("sliding" if read_sliding_window_tokens(config) else "full")] * layers
    return ["sliding" if (i + 1) % period else "full" for i in range(layers)]


def _parse_attention_kind(word: str) -> str:
    lowercase_word = word.lower()
    if any(part in lowercase_word for part in _RECURRENT_LAYER_WORDS):
        return "linear"
    return "sliding" if any(part in lowercase_word for part in _LOCAL_ATTENTION_WORDS) else "full"


_RECURRENT_LAYER_WORDS = ("linear", "mamba", "recurrent", "conv", "delta", "ssm", "lightning")
_LOCAL_ATTENTION_WORDS = ("sliding", "chunked", "local", "swa", "window")


def _parse_attention_pattern(pattern: str, layers: int) -> list[str]:
    """Parse `alternate sliding/full, sliding first` or `5 sliding : 1 full`."""
    match = re.search(r"(\d+)\s*(\w+)\s*:\s*(\d+)\s*(\w+)", pattern)
    if match:
        first = [_parse_attention_kind(match[2])] * int(match[1])
        period = first + [_parse_attention_kind(match[4])] * int(match[3])
    elif "full first" in pattern:
        period = ["full", "sliding"]
    elif "alternate" in pattern:
        period = ["sliding", "full"]
    else:
        raise UnreadableConfigError(f"layer_pattern “{pattern}” cannot be read.")
    return [period[i % len(period)] for i in range(layers)]


_UNUSED_WINDOW = frozenset({"qwen2", "qwen2_moe", "qwen3", "qwen3_moe"})


def read_sliding_window_tokens(config: Config) -> int | None:
    """Return the tokens that a sliding (or chunked) layer sees; None if there is no window."""
    uses_window = config.get("use_sliding_window")
    if uses_window is False or (uses_window is None and config.get("model_type") in _UNUSED_WINDOW):
        return None
    for key in ("sliding_window", "attention_chunk_size", "sliding_window_size"):
        value = config.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


@dataclasses.dataclass(frozen=True, slots=True)
class MoeRouting:
    """Which layers have experts, and the number and width of the experts."""

    routed_layer_indexes: frozenset[int]
    experts: int
    experts_per_token: float
    expert_width: int
    shared_width: int
    zero_expert_count: int = 0


# Each layer of LongCat-Flash has attention and a dense MLP twice, the first with routed
# experts in parallel. It is counted as two layers.
_DOUBLE_LAYER_FAMILY = "longcat_flash"


def read_moe_routing(config: Config, layers: int) -> MoeRouting | None:
    """Return how tokens are routed to experts; None for a dense model."""
    experts = read_config_int(config, "experts", 0)
    if experts < 2:
        return None
    width = read_config_int(config, "expert_width", 0) or read_config_int(config, "width")
    chosen_experts = float(min(read_config_int(config, "experts_per_token", 1), experts))
    # Experts without weights are chosen as often as any other.
    idle = int(config.get("zero_expert_num") or 0)
    return MoeRouting(
        routed_layer_indexes=frozenset(_list_routed_layers(config, layers)),
        experts=experts,
        experts_per_token=chosen_experts * experts / (experts + idle),
        expert_width=width,
        shared_width=_shared_expert_width(config, width),
        zero_expert_count=idle,
    )


def _list_routed_layers(config: Config, layers: int) -> list[int]:
    listed = config.get("mlp_layer_types")
    if isinstance(listed, list):
        return [i for i, word in enumerate(listed[:layers]) if word != "dense"]
    listed = config.get("moe_layers")
    if isinstance(listed, list):
        return [i for i in listed if i < layers]
    frequency = config.get("moe_layer_freq", 1)
    if isinstance(frequency, list):
        return [i for i, routed in enumerate(frequency[:layers]) if routed]
    if "expert_layer_period" in config:
        period, offset = config["expert_layer_period"], config["expert_layer_offset"]
        return [i for i in range(layers) if i % period == offset]
    return _routed_layers_by_step(config, layers, int(frequency))


def _routed_layers_by_step(config: Config, layers: int, frequency: int) -> list[int]:
    if config.get("model_type") == _DOUBLE_LAYER_FAMILY:
        return list(range(0, layers, 2))
    first = config.get("first_k_dense_replace") or config.get("num_dense_layers") or 0
    first = max(first, config.get("moe_layer_start_index") or 0)
    step = config.get("decoder_sparse_step") or config.get("interleave_moe_layer_step")
    step = step or config.get("moe_layer_interval") or 1
    dense = set(config.get("mlp_only_layers") or ())
    last = config.get("moe_layer_end_index")
    if isinstance(last, int) and last >= 0:
        layers = min(layers, last + 1)
    return [
        i
        for i in range(first, layers)
        if (i + 1) % step == 0 and i % frequency == 0 and i not in dense
    ]


def _shared_expert_width(config: Config, expert_width: int) -> int:
    if config.get("model_type") == _DOUBLE_LAYER_FAMILY:
        return read_config_int(config, "width")
    for key in (
        "share_expert_dim",
        "shared_expert_intermediate_size",
        "moe_shared_expert_intermediate_size",
        "shared_intermediate_size",
    ):
        if config.get(key):
            return _require_whole_number(key, config[key])
    for key in ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts"):
        if config.get(key):
            return _require_whole_number(key, config[key]) * expert_width
    if config.get("model_type") == "llama4_text":
        return read_config_int(config, "width")
    return 0


@dataclasses.dataclass(frozen=True, slots=True)
class FamilyTraits:
    """Properties of a model family; the defaults are those of Llama.

    `norm_terms` is 1 for a norm with a weight, 2 with a weight and a bias, 0 for one
    without parameters; `norms` counts them per layer.
    """

    gated: bool = True
    norm_terms: int = 1
    norms: int = 2
    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    query_norm: Literal["", "head", "heads"] = ""
    query_norm_terms: int = 1
    tied: bool = False
    learned_positions: bool = False
    extra_positions: int = 0
    final_norm: bool = True
    embedding_norm: bool = False
    head_bias: bool = False
    sinks: bool = False
    sliding_sinks: bool = False
    query_gate: bool = False
    head_gate: bool = False
    router_bias: bool = False
    expert_bias: bool = False
    shared_gate: bool = False
    routed_norms: int = 0
    layer_scalars: int = 0
    full_every: int = 0


_TRAITS_BY_FAMILY = {name: FamilyTraits(**row) for name, row in _FAMILY_TABLES["traits"].items()}


def is_known_family(family: str) -> bool:
    """Return whether the family is known; unknown families are read as Llama.

    >>> is_known_family("mistral"), is_known_family("unheard_of")
    (True, False)
    """
    others = (*_FAMILY_TABLES["like_llama"], *_FAMILY_TABLES["encoder_decoder"])
    return family in _TRAITS_BY_FAMILY or family in others


def read_family_traits(config: Config) -> FamilyTraits:
    family = str(config.get("model_type", "llama"))
    traits = _TRAITS_BY_FAMILY.get(family, _TRAITS_BY_FAMILY["llama"])
    changes: dict[str, Any] = {}
    for key, names in _FAMILY_TABLES["switches"].items():
        if isinstance(config.get(key), bool):
            changes.update(dict.fromkeys(names, config[key]))
    if family in _SWITCHES_OF_FAMILY:
        changes.update(_SWITCHES_OF_FAMILY[family](config))
    if family in _FAMILY_TABLES["no_out_bias"]:
        changes["out_bias"] = False
    return dataclasses.replace(traits, **changes) if changes else traits


def _falcon_trait_changes(config: Config) -> dict[str, Any]:
    is_new_architecture = bool(config.get("new_decoder_architecture"))
    parallel = bool(config.get("parallel_attn", True))
    has_two_norms = (
        config.get("num_ln_in_parallel_attn", 2) == 2 if is_new_architecture else not parallel
    )
    return {"norms": 2 if has_two_norms else 1}


def _mpt_trait_changes(config: Config) -> dict[str, Any]:
    inner = config.get("attn_config")
    alibi = isinstance(inner, Mapping) and inner.get("alibi", True)
    bias = bool(config.get("bias")) or config.get("no_bias") is False
    return {
        "norm_terms": 2 if bias else 1,
        "qkv_bias": bias,
        "out_bias": bias,
        "mlp_bias": bias,
        **({"learned_positions": False} if alibi else {}),
    }


def _nemotron_h_trait_changes(config: Config) -> dict[str, Any]:
    attention = bool(config.get("attention_bias"))
    mlp = bool(config.get("mlp_bias"))  # `use_bias` refers to the state space only.
    return {"qkv_bias": attention, "out_bias": attention, "mlp_bias": mlp}


# Switches that have another meaning in one family.
_SWITCHES_OF_FAMILY: dict[str, Callable[[Config], dict[str, Any]]] = {
    "phi": lambda config: {
        "query_norm": "head" if config.get("qk_layernorm") else "",
        "query_norm_terms": 2,
    },
    "falcon": _falcon_trait_changes,
    "mpt": _mpt_trait_changes,
    "cohere": lambda config: {"query_norm": "heads" if config.get("use_qk_norm") else ""},
    "stablelm": lambda config: {
        "norms": 1 if config.get("use_parallel_residual") else 2,
        "query_norm": "heads" if config.get("qk_layernorm") else "",
    },
    "glm4_moe": lambda config: {"query_norm": "head" if config.get("use_qk_norm") else ""},
    "hyperclovax": lambda config: {"norms": 4 if config.get("use_post_norm") else 2},
    "laguna": lambda config: {"head_gate": bool(config.get("gating", True))},
    "lfm3": lambda config: {
        "head_gate": bool(config.get("use_attention_gate", True)),
        "norms": 4 if config.get("use_sandwich_norm") else 2,
    },
    "mimo_v2_flash": lambda config: {
        "sliding_sinks": bool(config.get("add_swa_attention_sink_bias", True)),
        "sinks": bool(config.get("add_full_attention_sink_bias", False)),
    },
    "nemotron_h": _nemotron_h_trait_changes,
}
_IGNORED_KEY_ENDINGS = tuple(_FIELD_TABLES["endings"])
_KEYS_OF_ANY_FAMILY = frozenset(_FIELD_TABLES["everywhere"])
_OF_FAMILIES = frozenset(_FIELD_TABLES["of_families"])
_SIZE_WORDS = re.compile(
    "hidden|size|dim|width|rank|expert|layer|head|latent|block|ffn|inner|state|embed|attn|attention|pattern"
)
# Latent attention has heads of other sizes, and one vector instead of keys and values.
_UNUSED_BY_LATENT_ATTENTION = frozenset({"head_dim", "num_key_value_heads", "qk_head_dim"})
# Fields of a whole model that are about what it sees and hears.
_TOWER_WORDS = re.compile(
    "image|img|vision|video|audio|media|projector|multi_?modal|patch|select_layer|^(mm|vit)_"
)
_OF_QUANTIZATIONS = frozenset(_FIELD_TABLES["of_quantizations"])
_FORMAT_WORDS = re.compile(
    "algo|bit|block|dtype|exclude|expert|format|group|ignore|include|layer|modul|moe|scheme|skip|target"
)


class TrackedConfig(Mapping[str, Any]):
    """A `config.json` that records which of its fields are read.

    >>> fields = TrackedConfig({"hidden_size": 64, "odd_blocks": 3})
    >>> fields["hidden_size"], fields.list_unread_relevant_fields()
    (64, ('odd_blocks',))
    """

    def __init__(self, config: Config) -> None:
        self._given = dict(config)
        self._read: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        self._read.add(key)
        return self._given[key]

    def get(self, key: str, default: Any = None) -> Any:
        """Read one field, which may be missing; much faster than catching KeyError."""
        self._read.add(key)
        return self._given.get(key, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)

    def list_unread_size_fields(self) -> tuple[str, ...]:
        """Return unread fields whose name and value are those of a size."""
        return tuple(
            key
            for key in self.list_unread_relevant_fields()
            if _SIZE_WORDS.search(key) and not isinstance(self._given[key], bool | str | float)
        )

    def list_unread_relevant_fields(self) -> tuple[str, ...]:
        """Return unread fields that may affect the counts."""
        known_family = is_known_family(str(self._given.get("model_type", "llama")))
        unused = _UNUSED_BY_LATENT_ATTENTION if self._given.get("kv_lora_rank") else ()
        return tuple(
            key
            for key, value in self._given.items()
            if value is not None
            and value != _FIELD_TABLES["neutral"].get(key)
            and key not in self._read
            and key not in unused
            and not is_irrelevant_key(key, is_known_family=known_family)
        )

    def list_unread_fields_beside(self, language_config: Config) -> tuple[str, ...]:
        """Return unread fields of a whole model that may change what is counted.

        Those are sizes, formats and whole parts that its language model does not repeat.
        """
        return tuple(
            key
            for key in self.list_unread_relevant_fields()
            if (value := self._given[key])
            and value != language_config.get(key)
            and not _TOWER_WORDS.search(key)
            and (isinstance(value, Mapping) or _SIZE_WORDS.search(key) or _FORMAT_WORDS.search(key))
        )

    def list_unread_format_fields(self) -> tuple[str, ...]:
        """Return unread fields of a quantization that may change the format of weights."""
        return tuple(
            key
            for key, value in self._given.items()
            if value
            and key not in self._read
            and key not in _OF_QUANTIZATIONS
            and _FORMAT_WORDS.search(key)
        )


def add_config_defaults(config: Config) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return a configuration with defaults, and the keys of those added that are not off."""
    defaults = data_files.load_table_entries_by_id("defaults.toml", "family")
    row = defaults.get(str(config.get("model_type")), {}).get("config", {})
    missing_defaults = {key: value for key, value in row.items() if key not in config}
    defaulted = tuple(key for key, value in missing_defaults.items() if value)
    return {**missing_defaults, **config}, defaulted


def is_irrelevant_key(key: str, *, is_known_family: bool) -> bool:
    """Return whether a field affects no count; `is_known_family` families have more of them."""
    if key.startswith("_") or key.endswith(_IGNORED_KEY_ENDINGS) or key in _KEYS_OF_ANY_FAMILY:
        return True
    return is_known_family and key in _OF_FAMILIES


ATTENTION_FREE = frozenset({"mamba", "mamba2", "falcon_mamba"})


class LayerKinds(NamedTuple):
    mixer_kind: str
    mlp_kind: str


# Letters and words of block patterns.
_LAYER_KINDS_BY_BLOCK_LETTER = {
    "M": LayerKinds("linear", "none"),
    "*": LayerKinds("full", "none"),
    "-": LayerKinds("none", "dense"),
    "E": LayerKinds("none", "routed"),
    "mamba": LayerKinds("linear", "none"),
    "linear_attention": LayerKinds("linear", "none"),
    "attention": LayerKinds("full", "none"),
    "full_attention": LayerKinds("full", "none"),
    "mlp": LayerKinds("none", "dense"),
    "moe": LayerKinds("none", "routed"),
}


def read_layer_count(config: Config) -> int:
    """Return the number of layers, which may follow from a list or pattern of blocks."""
    blocks = _list_mixer_or_mlp_blocks(config)
    count = len(blocks) if blocks is not None else read_config_int(config, "layers")
    if config.get("model_type") == _DOUBLE_LAYER_FAMILY:
        count *= 2
    if not 1 <= count <= 2000:
        raise UnreadableConfigError(f"{count} layers; 1 to 2,000 can be read.")
    return count


def list_kinds_of_each_layer(
    config: Config, traits: FamilyTraits, routing: MoeRouting | None
) -> list[LayerKinds]:
    blocks = _list_mixer_or_mlp_blocks(config)
    if blocks is not None:
        if unknown := next(
            (word for word in blocks if word not in _LAYER_KINDS_BY_BLOCK_LETTER), None
        ):
            raise UnreadableConfigError(f"The block “{unknown}” cannot be read.")
        return [_LAYER_KINDS_BY_BLOCK_LETTER[word] for word in blocks]
    count = read_layer_count(config)
    routed = routing.routed_layer_indexes if routing else frozenset[int]()
    mlp = "none" if config.get("model_type") in ATTENTION_FREE else "dense"
    mixers = _list_mixer_kind_of_each_layer(config, traits, count)
    return [LayerKinds(m, "routed" if i in routed else mlp) for i, m in enumerate(mixers)]


def _list_mixer_or_mlp_blocks(config: Config) -> list[str] | None:
    """Return the blocks of a model whose layers are either a mixer or an MLP."""
    pattern = config.get("hybrid_override_pattern")
    if isinstance(pattern, str):
        return list(pattern)
    if config.get("model_type") == "nemotron_h":
        listed = config.get("layers_block_type") or config.get("layer_types")
        return [str(word) for word in listed] if isinstance(listed, list) else None
    return None


def _list_mixer_kind_of_each_layer(config: Config, traits: FamilyTraits, count: int) -> list[str]:
    family = str(config.get("model_type"))
    if family in _MIXER_BY_UNIFORM_FAMILY:
        return [_MIXER_BY_UNIFORM_FAMILY[family]] * count
    if family == "deepseek_v4":
        return _list_deepseek_v4_attention_kinds(config, count)
    full_layers = _indexes_of_full_attention_layers(config, count)
    if full_layers is not None:
        return ["full" if i in full_layers else "linear" for i in range(count)]
    switches = config.get("hybrid_layer_pattern")
    if isinstance(switches, list) and read_sliding_window_tokens(config):
        return ["sliding" if on else "full" for on in switches[:count]]
    return list_attention_kind_of_each_layer(config, count, traits.full_every)


_MIXER_BY_UNIFORM_FAMILY = {**dict.fromkeys(ATTENTION_FREE, "linear"), "falcon_h1": "both"}

_EVERY_FOURTH = ("qwen3_next", "qwen3_5")


def _indexes_of_full_attention_layers(config: Config, count: int) -> set[int] | None:
    """Return the layers with attention in a hybrid that lists them; else None."""
    if isinstance(config.get("layer_types"), list):
        return None
    if "attn_layer_period" in config:
        period, offset = config["attn_layer_period"], config["attn_layer_offset"]
        return {i for i in range(count) if i % period == offset}
    listed = config.get("attn_layer_indices")
    if isinstance(listed, list) or config.get("model_type") == "bamba":
        return set(listed or ())
    interval = config.get("full_attention_interval") or config.get("layer_group_size")
    if not interval and str(config.get("model_type")).startswith(_EVERY_FOURTH):
        interval = 4
    if interval:
        return {i for i in range(count) if (i + 1) % interval == 0}
    return _attention_layer_indexes_as_listed(config)


def _attention_layer_indexes_as_listed(config: Config) -> set[int] | None:
    """Return the attention layers that a nested linear-attention configuration lists."""
    switches = config.get("attn_type_list")
    if isinstance(switches, list):
        return {i for i, full in enumerate(switches) if full}
    linear = config.get("linear_attn_config")
    if isinstance(linear, dict) and isinstance(linear.get("full_attn_layers"), list):
        return {int(i) - 1 for i in linear["full_attn_layers"]}
    listed = config.get("full_attn_idxs")
    return {int(i) for i in listed} if isinstance(listed, list) else None


_ATTENTION_BY_COMPRESSION_RATIO = {0: "sliding", 4: "compressed", 128: "heavy"}
_ATTENTION_BY_LAYER_TYPE = {
    "sliding_attention": "sliding",
    "compressed_sparse_attention": "compressed",
    "heavily_compressed_attention": "heavy",
}


def _list_deepseek_v4_attention_kinds(config: Config, count: int) -> list[str]:
    """Return the attention kinds of DeepSeek-V4, by word or by compression ratio."""
    listed = config.get("layer_types")
    if isinstance(listed, list):
        return [_ATTENTION_BY_LAYER_TYPE.get(str(word), "sliding") for word in listed[:count]]
    ratios = config.get("compress_ratios")
    if isinstance(ratios, list):
        return [_ATTENTION_BY_COMPRESSION_RATIO.get(ratio, "sliding") for ratio in ratios[:count]]
    return ["heavy" if i < 3 or i % 2 == 0 else "compressed" for i in range(count)]
