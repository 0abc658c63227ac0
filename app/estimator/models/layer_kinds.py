"""Which kind of mixer and of MLP each layer has, from the words of a configuration."""

from app.estimator.models.config import (
    Config,
    MoeRouting,
    UnreadableConfigError,
    config_int,
    layer_kinds,
    window_of,
)
from app.estimator.models.families import FamilyTraits

ATTENTION_FREE = frozenset({"mamba", "mamba2", "falcon_mamba"})
Words = list[tuple[str, str]]

# Letters and words of block patterns, as (mixer, MLP).
_BLOCKS: dict[str, tuple[str, str]] = {
    "M": ("linear", "none"),
    "*": ("full", "none"),
    "-": ("none", "dense"),
    "E": ("none", "routed"),
    "mamba": ("linear", "none"),
    "linear_attention": ("linear", "none"),
    "attention": ("full", "none"),
    "full_attention": ("full", "none"),
    "mlp": ("none", "dense"),
    "moe": ("none", "routed"),
}


# Each layer of LongCat-Flash has attention and a dense MLP twice, the first of them
# with routed experts beside it: two layers as they are counted here.
_DOUBLE = "longcat_flash"


def layer_count(config: Config) -> int:
    """The number of layers; a list or pattern of blocks says it too."""
    blocks = _blocks(config)
    count = len(blocks) if blocks is not None else config_int(config, "layers")
    if config.get("model_type") == _DOUBLE:
        count *= 2
    if not 1 <= count <= 2000:
        raise UnreadableConfigError(f"{count} layers; 1 to 2,000 can be read.")
    return count


def layer_words(config: Config, traits: FamilyTraits, routing: MoeRouting | None) -> Words:
    """For each layer its mixer and its MLP in one word each."""
    blocks = _blocks(config)
    if blocks is not None:
        return [_block(word) for word in blocks]
    count = layer_count(config)
    routed = routing.layers if routing else frozenset[int]()
    mlp = "none" if config.get("model_type") in ATTENTION_FREE else "dense"
    mixers = _mixer_words(config, traits, count)
    return [(m, "routed" if i in routed else mlp) for i, m in enumerate(mixers)]


def _block(word: str) -> tuple[str, str]:
    if word not in _BLOCKS:
        raise UnreadableConfigError(f"The block “{word}” cannot be read.")
    return _BLOCKS[word]


def _blocks(config: Config) -> list[str] | None:
    """The blocks of a model whose layers are either a mixer or an MLP."""
    pattern = config.get("hybrid_override_pattern")
    if isinstance(pattern, str):
        return list(pattern)
    if config.get("model_type") == "nemotron_h":
        listed = config.get("layers_block_type") or config.get("layer_types")
        return [str(word) for word in listed] if isinstance(listed, list) else None
    return None


def _mixer_words(config: Config, traits: FamilyTraits, count: int) -> list[str]:
    family = str(config.get("model_type"))
    if family in _UNIFORM:
        return [_UNIFORM[family]] * count
    if family == "deepseek_v4":
        return _compressed(config, count)
    full = _full_layers(config, count)
    if full is not None:
        return ["full" if i in full else "linear" for i in range(count)]
    switches = config.get("hybrid_layer_pattern")
    if isinstance(switches, list) and window_of(config):
        return ["sliding" if on else "full" for on in switches[:count]]
    return layer_kinds(config, count, traits.full_every)


_UNIFORM = {**dict.fromkeys(ATTENTION_FREE, "linear"), "falcon_h1": "both"}


_EVERY_FOURTH = ("qwen3_next", "qwen3_5")


def _full_layers(config: Config, count: int) -> set[int] | None:
    """The layers with attention in a hybrid that says which; None otherwise."""
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
    return _listed_layers(config)


def _listed_layers(config: Config) -> set[int] | None:
    """Layers that a nested description of linear attention leaves to attention."""
    switches = config.get("attn_type_list")
    if isinstance(switches, list):
        return {i for i, full in enumerate(switches) if full}
    linear = config.get("linear_attn_config")
    if isinstance(linear, dict) and isinstance(linear.get("full_attn_layers"), list):
        return {int(i) - 1 for i in linear["full_attn_layers"]}
    listed = config.get("full_attn_idxs")
    return {int(i) for i in listed} if isinstance(listed, list) else None


_RATIOS = {0: "sliding", 4: "compressed", 128: "heavy"}
_COMPRESSED = {
    "sliding_attention": "sliding",
    "compressed_sparse_attention": "compressed",
    "heavily_compressed_attention": "heavy",
}


def _compressed(config: Config, count: int) -> list[str]:
    """The kinds of attention of DeepSeek-V4, by word or by compression ratio."""
    listed = config.get("layer_types")
    if isinstance(listed, list):
        return [_COMPRESSED.get(str(word), "sliding") for word in listed[:count]]
    ratios = config.get("compress_ratios")
    if isinstance(ratios, list):
        return [_RATIOS.get(ratio, "sliding") for ratio in ratios[:count]]
    return ["heavy" if i < 3 or i % 2 == 0 else "compressed" for i in range(count)]
