"""Reading of a Hugging Face `config.json`: keys of many families, one meaning."""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from app.estimator import catalogue

Config = Mapping[str, Any]


class UnreadableConfigError(ValueError):
    """A configuration that names no size or that contradicts itself."""


_KEYS: dict[str, list[str]] = catalogue.load_toml("config_fields.toml")["keys"]
_FAMILIES = catalogue.load_toml("families.toml")


def config_int(config: Config, meaning: str, default: int | None = None) -> int:
    """The whole number that `config` gives for a meaning, under any of its keys."""
    for key in _KEYS[meaning]:
        value = config.get(key)
        if isinstance(value, list) and value:
            value = value[0]
        if value is not None and not isinstance(value, bool):
            return _positive(key, value)
    if default is None:
        raise UnreadableConfigError(f"The configuration has no {_KEYS[meaning][0]}.")
    return default


def _positive(key: str, value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise UnreadableConfigError(f"{key} is “{value}”, not a whole number.") from None
    if number < 0 or number > 10**9:
        raise UnreadableConfigError(f"{key} is {value}; 0 to 1,000,000,000 can be read.")
    return number


def text_part(config: Config) -> Config:
    """The part that describes the language model, its family under one name."""
    text = _inner(config)
    family = text.get("model_type")
    if isinstance(family, str) and family in _FAMILIES["aliases"]:
        return {**text, "model_type": _FAMILIES["aliases"][family]}
    return text


def _inner(config: Config) -> Config:
    for key in ("text_config", "llm_config", "language_config", "thinker_config"):
        inner = config.get(key)
        if isinstance(inner, Mapping):
            outer = {k: v for k, v in config.items() if k in _INHERITED}
            return _inner({**outer, **inner})
    return config


def check_family(config: Config) -> None:
    """Refuse families that would be counted wrongly."""
    family = str(config.get("model_type", "llama"))
    if family in _FAMILIES["unread"]:
        raise UnreadableConfigError(f"Models of the family “{family}” cannot be read yet.")
    if family in _FAMILIES["encoders"]:
        message = f"“{family}” is an encoder without a decoder, which cannot be read."
        raise UnreadableConfigError(message)


_INHERITED = frozenset({"tie_word_embeddings", "vocab_size"})


def layer_kinds(config: Config, layers: int, full_every: int) -> list[str]:
    """Say for each layer `full`, `sliding` or `linear`.

    The list `layer_types` decides where it is given; else a pattern in words or a
    period; else the period of the family.
    """
    listed = config.get("layer_types")
    if isinstance(listed, list) and len(listed) >= layers:
        return [_kind_of(str(word)) for word in listed[:layers]]
    pattern = config.get("layer_pattern")
    if isinstance(pattern, str):
        return _kinds_in_words(pattern, layers)
    return _kinds_by_period(config, layers, full_every)


def _kinds_by_period(config: Config, layers: int, full_every: int) -> list[str]:
    """Full layers at every so many, at the letters G, or before the first window."""
    first = config.get("max_window_layers")
    if config.get("model_type") in _UNUSED_WINDOW and first and window_of(config):
        return ["sliding" if i >= first else "full" for i in range(layers)]
    period = config.get("sliding_window_pattern") or full_every
    period = config.get("global_attn_every_n_layers") or period
    if isinstance(period, str):
        return ["full" if period[i % len(period)] == "G" else "sliding" for i in range(layers)]
    if not period or not window_of(config):
        return [("sliding" if window_of(config) else "full")] * layers
    return ["sliding" if (i + 1) % period else "full" for i in range(layers)]


def _kind_of(word: str) -> str:
    plain = word.lower()
    if any(part in plain for part in _RECURRENT):
        return "linear"
    return "sliding" if any(part in plain for part in _LOCAL) else "full"


_RECURRENT = ("linear", "mamba", "recurrent", "conv", "delta", "ssm", "lightning")
_LOCAL = ("sliding", "chunked", "local", "swa", "window")


def _kinds_in_words(pattern: str, layers: int) -> list[str]:
    """Read `alternate sliding/full, sliding first` or `5 sliding : 1 full`."""
    counted = re.search(r"(\d+)\s*(\w+)\s*:\s*(\d+)\s*(\w+)", pattern)
    if counted:
        first = [_kind_of(counted[2])] * int(counted[1])
        unit = first + [_kind_of(counted[4])] * int(counted[3])
    elif "full first" in pattern:
        unit = ["full", "sliding"]
    elif "alternate" in pattern:
        unit = ["sliding", "full"]
    else:
        raise UnreadableConfigError(f"layer_pattern “{pattern}” cannot be read.")
    return [unit[i % len(unit)] for i in range(layers)]


_UNUSED_WINDOW = frozenset({"qwen2", "qwen2_moe", "qwen3", "qwen3_moe"})


def window_of(config: Config) -> int | None:
    """Tokens that a sliding (or chunked) layer sees; None where there is none."""
    used = config.get("use_sliding_window")
    if used is False or (used is None and config.get("model_type") in _UNUSED_WINDOW):
        return None
    for key in ("sliding_window", "attention_chunk_size", "sliding_window_size"):
        value = config.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


@dataclasses.dataclass(frozen=True, slots=True)
class MoeRouting:
    """Which layers have experts, and their number and width."""

    layers: frozenset[int]
    experts: int
    per_token: float
    width: int
    shared_width: int
    idle: int = 0


def _is_shortcut(config: Config) -> bool:
    """Whether experts run beside a dense MLP, in every other layer (LongCat-Flash)."""
    return config.get("model_type") == "longcat_flash"


def routing_of(config: Config, layers: int) -> MoeRouting | None:
    """How tokens are routed to experts; None for a dense model."""
    experts = config_int(config, "experts", 0)
    if experts < 2:
        return None
    width = config_int(config, "expert_width", 0) or config_int(config, "width")
    chosen = float(min(config_int(config, "experts_per_token", 1), experts))
    # Experts that do nothing are chosen as often as any other.
    idle = int(config.get("zero_expert_num") or 0)
    return MoeRouting(
        layers=frozenset(_routed_layers(config, layers)),
        experts=experts,
        per_token=chosen * experts / (experts + idle),
        width=width,
        shared_width=_shared_width(config, width),
        idle=idle,
    )


def _routed_layers(config: Config, layers: int) -> list[int]:
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
    return _by_step(config, layers, int(frequency))


def _by_step(config: Config, layers: int, frequency: int) -> list[int]:
    if _is_shortcut(config):
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


def _shared_width(config: Config, width: int) -> int:
    if _is_shortcut(config):
        return config_int(config, "width")
    for key in (
        "shared_expert_intermediate_size",
        "moe_shared_expert_intermediate_size",
        "shared_intermediate_size",
    ):
        if config.get(key):
            return _positive(key, config[key])
    for key in ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts"):
        if config.get(key):
            return _positive(key, config[key]) * width
    if config.get("model_type") == "llama4_text":
        return config_int(config, "width")
    return 0
