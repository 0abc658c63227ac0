"""Vision towers: the image encoder and projector of a multimodal model.

Each function counts the parameters of the Transformers 5.23 class of that name:
`vision` has the fields of its `vision_config`, `outer` those of the whole model,
and `text_width` is the width of the language model.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from app.estimator.models.hf_config import (
    Config,
    TrackedConfig,
    UnreadableConfigError,
    add_config_defaults,
)

_MAX_DIMENSION = 10**7
_COLOR_CHANNELS = 3


class VisionTower(NamedTuple):
    """The parameters that process patches, and those that map them to the width of the text."""

    encoder_parameters: int
    projector_parameters: int

    @property
    def parameters(self) -> int:
        return self.encoder_parameters + self.projector_parameters


@dataclasses.dataclass(frozen=True, slots=True)
class TowerKind:
    """A kind of tower: the class of its defaults, and how it is counted.

    A `vision_config` must have the model type of that class, or `accepted_vision_model_type` if given; none,
    or that of the whole model, is accepted as well.
    """

    default_model_type: str
    count_parameters: Callable[[Config, Config, int], VisionTower]
    accepted_vision_model_type: str = ""


def require_first_given_int(fields: Config, *names: str) -> int:
    """Return the first of these fields that is given; UnreadableConfigError if none is."""
    for name in names:
        value = fields.get(name)
        if value is not None:
            if isinstance(value, bool) or not isinstance(value, int):
                raise UnreadableConfigError(f"{name} is “{value}”, not a whole number.")
            if not 0 < value <= _MAX_DIMENSION:
                raise UnreadableConfigError(
                    f"{name} is {value}; 1 to {_MAX_DIMENSION} can be read."
                )
            return value
    raise UnreadableConfigError(f"The configuration has no {names[0]}.")


def _read_height_and_width(fields: Config, name: str) -> tuple[int, int]:
    """Return height and width, given as one number or as two."""
    value = fields.get(name)
    pair = value if isinstance(value, list | tuple) and len(value) == 2 else [value] * 2
    height, width = (require_first_given_int({name: side}, name) for side in pair)
    return height, width


def _count_matrix_parameters(inputs: int, outputs: int, *, bias: bool = True) -> int:
    return inputs * outputs + (outputs if bias else 0)


def _patch_embedding_parameters(
    vision: Config, hidden: int, *, frames: int = 1, bias: bool = True
) -> int:
    """Return the patch embedding: pixels of a patch to the width of the tower."""
    height, width = _read_height_and_width(vision, "patch_size")
    return _count_matrix_parameters(_COLOR_CHANNELS * height * width * frames, hidden, bias=bias)


def _patches_per_image(vision: Config) -> int:
    """Return the number of patches in an image of the training size."""
    height, width = _read_height_and_width(vision, "image_size")
    patch_height, patch_width = _read_height_and_width(vision, "patch_size")
    return (height // patch_height) * (width // patch_width)


@dataclasses.dataclass(frozen=True, slots=True)
class _TowerLayers:
    """Layers of an encoder; `extra` parameters are added to each."""

    hidden: int
    mlp_width: int
    count: int
    gated: bool = False
    has_qkv_bias: bool = True
    has_mlp_bias: bool = True
    vectors_per_norm: int = 2
    extra_parameters_per_layer: int = 0

    @property
    def parameters(self) -> int:
        hidden, width = self.hidden, self.mlp_width
        attention = 3 * _count_matrix_parameters(hidden, hidden, bias=self.has_qkv_bias)
        attention += _count_matrix_parameters(hidden, hidden, bias=self.has_mlp_bias)
        up = _count_matrix_parameters(hidden, width, bias=self.has_mlp_bias) * (
            2 if self.gated else 1
        )
        mlp = up + _count_matrix_parameters(width, hidden, bias=self.has_mlp_bias)
        norms = 2 * self.vectors_per_norm * hidden
        return self.count * (attention + mlp + norms + self.extra_parameters_per_layer)


def _read_tower_layers(vision: Config, **traits: Any) -> _TowerLayers:
    return _TowerLayers(
        hidden=require_first_given_int(vision, "hidden_size", "vt_hidden_size"),
        mlp_width=require_first_given_int(vision, "intermediate_size", "vt_intermediate_size"),
        count=require_first_given_int(vision, "num_hidden_layers", "vt_num_hidden_layers", "depth"),
        **traits,
    )


def _count_siglip_parameters(vision: Config, _: Config, text_width: int) -> VisionTower:
    """SigLIP for Gemma 3: pooling without parameters, a norm and one matrix."""
    layers = _read_tower_layers(vision)
    hidden, width = layers.hidden, layers.mlp_width
    encoder = _patch_embedding_parameters(vision, hidden) + _patches_per_image(vision) * hidden
    encoder += layers.parameters + 2 * hidden
    if vision.get("vision_use_head", True):  # An attention-pooling probe, and an MLP.
        encoder += 3 * hidden + 4 * _count_matrix_parameters(hidden, hidden)
        encoder += _count_matrix_parameters(hidden, width) + _count_matrix_parameters(width, hidden)
    return VisionTower(encoder, projector_parameters=hidden + hidden * text_width)


def _read_pixtral_layers(vision: Config) -> _TowerLayers:
    """Return the layers of Pixtral's tower: rotary positions, no biases."""
    return _read_tower_layers(
        vision, gated=True, has_qkv_bias=False, has_mlp_bias=False, vectors_per_norm=1
    )


def _pixtral_encoder_parameters(vision: Config, layers: _TowerLayers) -> int:
    patch_embedding = _patch_embedding_parameters(vision, layers.hidden, bias=False)
    return patch_embedding + layers.hidden + layers.parameters


def _two_matrix_projector_parameters(
    outer: Config, inputs: int, text_width: int, *, bias: bool
) -> int:
    """Return a projector of two matrices over the features of one or more layers."""
    feature_layers = outer.get("vision_feature_layer")
    layer_count = len(feature_layers) if isinstance(feature_layers, list) and feature_layers else 1
    bias = bool(outer.get("multimodal_projector_bias", bias))
    return _count_matrix_parameters(
        inputs * layer_count, text_width, bias=bias
    ) + _count_matrix_parameters(text_width, text_width, bias=bias)


def _count_pixtral_parameters(vision: Config, outer: Config, text_width: int) -> VisionTower:
    """Pixtral 12B: the tower and two matrices."""
    layers = _read_pixtral_layers(vision)
    projector = _two_matrix_projector_parameters(outer, layers.hidden, text_width, bias=True)
    return VisionTower(_pixtral_encoder_parameters(vision, layers), projector)


def _count_mistral3_parameters(vision: Config, outer: Config, text_width: int) -> VisionTower:
    """Mistral Small 3.1 and later: neighboring patches are merged first."""
    layers = _read_pixtral_layers(vision)
    hidden = layers.hidden
    projector = hidden + _patches_per_merge({"spatial_merge_size": 2, **outer}) * hidden * hidden
    projector += _two_matrix_projector_parameters(outer, hidden, text_width, bias=False)
    return VisionTower(_pixtral_encoder_parameters(vision, layers), projector)


def _patches_per_merge(config: Config) -> int:
    return require_first_given_int(config, "spatial_merge_size") ** 2


def _patch_merger_parameters(
    hidden: int, patches_per_merge: int, output_width: int, *, norm_parameters: int
) -> int:
    """Return a merger: a norm and two matrices over neighboring patches."""
    inner = hidden * patches_per_merge
    return (
        norm_parameters
        + _count_matrix_parameters(inner, inner)
        + _count_matrix_parameters(inner, output_width)
    )


def _qwen_patch_embedding_parameters(vision: Config, hidden: int, *, bias: bool) -> int:
    frames = require_first_given_int(vision, "temporal_patch_size")
    return _patch_embedding_parameters(vision, hidden, frames=frames, bias=bias)


def _count_qwen2_vl_parameters(vision: Config, _: Config, __: int) -> VisionTower:
    """Qwen2-VL: the MLP width is a multiple of the tower's width."""
    hidden = require_first_given_int(vision, "embed_dim")
    layer_count = require_first_given_int(vision, "depth")
    layers = _TowerLayers(
        hidden, hidden * require_first_given_int(vision, "mlp_ratio"), layer_count
    )
    encoder = _qwen_patch_embedding_parameters(vision, hidden, bias=False)
    output_width = require_first_given_int(vision, "hidden_size")
    merger = _patch_merger_parameters(
        hidden, _patches_per_merge(vision), output_width, norm_parameters=2 * hidden
    )
    return VisionTower(encoder + layers.parameters, projector_parameters=merger)


def _count_qwen25_vl_parameters(vision: Config, _: Config, __: int) -> VisionTower:
    """Qwen2.5-VL: gated MLPs with biases, RMS norms."""
    layers = _read_tower_layers(vision, gated=True, vectors_per_norm=1)
    hidden, output_width = layers.hidden, require_first_given_int(vision, "out_hidden_size")
    encoder = _qwen_patch_embedding_parameters(vision, hidden, bias=False)
    merger = _patch_merger_parameters(
        hidden, _patches_per_merge(vision), output_width, norm_parameters=hidden
    )
    return VisionTower(encoder + layers.parameters, projector_parameters=merger)


def _count_qwen3_vl_parameters(vision: Config, _: Config, __: int) -> VisionTower:
    """Qwen3-VL and Qwen3.5: an additional merger for each intermediate layer that is used."""
    layers = _read_tower_layers(vision)
    hidden, output_width = layers.hidden, require_first_given_int(vision, "out_hidden_size")
    patches_per_merge = _patches_per_merge(vision)
    encoder = _qwen_patch_embedding_parameters(vision, hidden, bias=True) + layers.parameters
    encoder += require_first_given_int(vision, "num_position_embeddings") * hidden
    deepstack_layers = vision.get("deepstack_visual_indexes") or ()
    if not isinstance(deepstack_layers, list | tuple):
        raise UnreadableConfigError("deepstack_visual_indexes is not a list.")
    merger = _patch_merger_parameters(
        hidden, patches_per_merge, output_width, norm_parameters=2 * hidden
    )
    deepstack_merger = _patch_merger_parameters(
        hidden, patches_per_merge, output_width, norm_parameters=2 * patches_per_merge * hidden
    )
    return VisionTower(
        encoder, projector_parameters=merger + len(deepstack_layers) * deepstack_merger
    )


def _count_glm5_next_parameters(vision: Config, _: Config, __: int) -> VisionTower:
    """GLM-5.3-Flash: gated MLPs, a norm of query and key, a convolution before a gated merger."""
    head_dim = require_first_given_int(vision, "hidden_size") // require_first_given_int(
        vision, "num_heads"
    )
    layers = _read_tower_layers(
        vision, gated=True, vectors_per_norm=1, extra_parameters_per_layer=2 * head_dim
    )
    hidden, output_width = layers.hidden, require_first_given_int(vision, "out_hidden_size")
    encoder = _qwen_patch_embedding_parameters(vision, hidden, bias=True)
    encoder += layers.parameters + hidden
    downsampling = _count_matrix_parameters(_patches_per_merge(vision) * hidden, output_width)
    width = require_first_given_int(vision, "projection_intermediate_size")
    merger = output_width**2 + 2 * output_width + 3 * output_width * width
    return VisionTower(encoder, projector_parameters=downsampling + merger)


def _count_deepseek_v41_parameters(vision: Config, _: Config, text_width: int) -> VisionTower:
    """DeepSeek-V4.1: gated MLPs, two matrices over neighboring patches, three marks."""
    hidden = require_first_given_int(vision, "hidden_size")
    layers = _read_tower_layers(
        vision,
        gated=True,
        has_mlp_bias=False,
        vectors_per_norm=1,
        extra_parameters_per_layer=hidden,  # The bias of attention's output.
    )
    encoder = _patch_embedding_parameters(vision, hidden) + layers.parameters + hidden
    inner = hidden * require_first_given_int(vision, "downsample_ratio") ** 2
    aligner = _count_matrix_parameters(inner, text_width)
    aligner += _count_matrix_parameters(text_width, text_width) + 3 * text_width
    return VisionTower(encoder, projector_parameters=aligner)


def _count_llama4_parameters(vision: Config, _: Config, text_width: int) -> VisionTower:
    """Llama 4: a class token, patches shuffled into fewer, two matrices and one."""
    layers = _read_tower_layers(vision)
    hidden = layers.hidden
    encoder = _patch_embedding_parameters(vision, hidden, bias=False) + layers.parameters
    encoder += hidden + (_patches_per_image(vision) + 1) * hidden + 2 * 2 * hidden
    adapter = layers.mlp_width * require_first_given_int(vision, "projector_input_dim")
    adapter += require_first_given_int(vision, "projector_output_dim") ** 2
    adapter += require_first_given_int(vision, "vision_output_dim") * text_width
    return VisionTower(encoder, projector_parameters=adapter)


def _count_internvit_parameters(vision: Config, outer: Config, text_width: int) -> VisionTower:
    """InternViT: a class token, scaled residuals; query norms in the 6B."""
    hidden = require_first_given_int(vision, "hidden_size")
    scales = 2 * hidden
    has_query_key_norms = vision.get("use_qk_norm") or vision.get("qk_normalization")
    layers = _read_tower_layers(
        vision,
        has_qkv_bias=bool(vision.get("attention_bias") or vision.get("qkv_bias")),
        vectors_per_norm=1 if vision.get("norm_type") == "rms_norm" else 2,
        extra_parameters_per_layer=scales + (2 * hidden if has_query_key_norms else 0),
    )
    encoder = _patch_embedding_parameters(vision, hidden) + layers.parameters
    encoder += hidden + (_patches_per_image(vision) + 1) * hidden
    if vision.get("use_mean_pooling") is False:
        encoder += 2 * hidden
    ratio = outer.get("downsample_ratio", 0.5)
    if not isinstance(ratio, float | int) or not 0 < ratio <= 1:
        raise UnreadableConfigError(f"downsample_ratio is “{ratio}”, not a share.")
    inner = hidden * int(1 / ratio) ** 2
    projector = 2 * inner + _count_matrix_parameters(inner, text_width)
    projector += _count_matrix_parameters(text_width, text_width)
    return VisionTower(encoder, projector)


def _count_moonvit_parameters(vision: Config, _: Config, text_width: int) -> VisionTower:
    """MoonViT of Kimi: a position grid that is interpolated to the image size."""
    layers = _read_tower_layers(vision)
    hidden = layers.hidden
    rows = require_first_given_int(vision, "init_pos_emb_height", "pos_emb_height")
    columns = require_first_given_int(vision, "init_pos_emb_width", "pos_emb_width")
    encoder = _patch_embedding_parameters(vision, hidden) + rows * columns * hidden
    encoder += layers.parameters + 2 * hidden
    patches_per_merge = math.prod(_read_height_and_width(vision, "merge_kernel_size"))
    projector = _patch_merger_parameters(
        hidden, patches_per_merge, text_width, norm_parameters=2 * hidden
    )
    return VisionTower(encoder, projector)


def _count_kimi_k3_parameters(vision: Config, _: Config, text_width: int) -> VisionTower:
    """MoonViT of Kimi K3: heads wider than the tower, no biases, RMS norms.

    As in AMD's ATOM, which names its parameters like the checkpoint.
    """
    hidden = require_first_given_int(vision, "vt_hidden_size")
    queries = require_first_given_int(vision, "qkv_hidden_size")
    width = require_first_given_int(vision, "vt_intermediate_size")
    rows = require_first_given_int(vision, "init_pos_emb_height")
    columns = require_first_given_int(vision, "init_pos_emb_width")
    layer = 4 * hidden * queries + 2 * hidden * width + 2 * hidden
    encoder = _patch_embedding_parameters(vision, hidden, bias=False) + rows * columns * hidden
    encoder += require_first_given_int(vision, "vt_num_hidden_layers") * layer + hidden
    merged = hidden * math.prod(_read_height_and_width(vision, "merge_kernel_size"))
    return VisionTower(encoder, merged * merged + merged * text_width + text_width)


def _count_step3p7_parameters(vision: Config, outer: Config, text_width: int) -> VisionTower:
    """Step 3.7: scaled residuals, two convolutions that halve the grid, and one matrix."""
    hidden = require_first_given_int(vision, "width", "hidden_size")
    ratio = vision.get("mlp_ratio")
    if (
        isinstance(ratio, bool)
        or not isinstance(ratio, float | int)
        or not 0 < ratio < _MAX_DIMENSION
    ):
        raise UnreadableConfigError(f"mlp_ratio is “{ratio}”, not a number.")
    layers = _TowerLayers(
        hidden,
        round(hidden * ratio),
        require_first_given_int(vision, "layers", "num_hidden_layers"),
        extra_parameters_per_layer=2 * hidden,
    )
    encoder = _patch_embedding_parameters(vision, hidden, bias=False) + 2 * hidden
    encoder += _patches_per_image(vision) * hidden + layers.parameters
    kernel = 3 * 3
    for width in (hidden, 2 * hidden):
        encoder += _count_matrix_parameters(kernel * width, 2 * width)
    bias = bool(outer.get("projector_bias"))
    projector = _count_matrix_parameters(4 * hidden, text_width, bias=bias)
    return VisionTower(encoder, projector)


def _count_minimax_m3_parameters(vision: Config, outer: Config, text_width: int) -> VisionTower:
    """MiniMax-M3: CLIP without positions; patches are mapped to the text, then merged.

    As in minimax_m3_vl.vision_encoder of NVIDIA's NeMo AutoModel.
    """
    layers = _read_tower_layers(vision)
    merging = vision.get("img_token_compression_config") or {}
    frames = merging.get("temporal_patch_size", 2)
    encoder = _patch_embedding_parameters(vision, layers.hidden, frames=frames, bias=False)
    encoder += 2 * layers.hidden + layers.parameters
    width = outer.get("projector_hidden_size") or text_width
    merged_width = merging.get("spatial_merge_size", 2) ** 2 * text_width
    projector = _count_matrix_parameters(layers.hidden, width)
    projector += _count_matrix_parameters(merged_width, width)
    projector += 2 * _count_matrix_parameters(width, text_width)
    return VisionTower(encoder, projector)


def _count_gemma4_parameters(vision: Config, _: Config, text_width: int) -> VisionTower:
    """Gemma 4: positions by row and by column, four norms, normalized heads."""
    hidden = require_first_given_int(vision, "hidden_size")
    width = require_first_given_int(vision, "intermediate_size")
    head_dim = require_first_given_int(vision, "head_dim")
    queries = head_dim * require_first_given_int(vision, "num_attention_heads")
    keys = head_dim * require_first_given_int(vision, "num_key_value_heads")
    layer = 2 * hidden * (queries + keys) + 3 * hidden * width + 4 * hidden + 2 * head_dim
    encoder = _patch_embedding_parameters(vision, hidden, bias=False)
    encoder += 2 * require_first_given_int(vision, "position_embedding_size") * hidden
    encoder += require_first_given_int(vision, "num_hidden_layers") * layer
    return VisionTower(encoder, projector_parameters=hidden * text_width)


KINDS: dict[str, TowerKind] = {
    "gemma3": TowerKind("siglip_vision_model", _count_siglip_parameters),
    "gemma4": TowerKind("gemma4_vision", _count_gemma4_parameters),
    "llava": TowerKind("pixtral", _count_pixtral_parameters),
    "mistral3": TowerKind("pixtral", _count_mistral3_parameters),
    "qwen2_vl": TowerKind("qwen2_vl_vision", _count_qwen2_vl_parameters),
    "qwen2_5_vl": TowerKind("qwen2_5_vl_vision", _count_qwen25_vl_parameters),
    "qwen3_vl": TowerKind("qwen3_vl_vision", _count_qwen3_vl_parameters),
    "qwen3_vl_moe": TowerKind("qwen3_vl_vision", _count_qwen3_vl_parameters, "qwen3_vl_moe_vision"),
    "qwen3_5": TowerKind("qwen3_5_vision", _count_qwen3_vl_parameters),
    "qwen3_5_moe": TowerKind("qwen3_5_vision", _count_qwen3_vl_parameters, "qwen3_5_moe_vision"),
    "llama4": TowerKind("llama4_vision_model", _count_llama4_parameters),
    "internvl": TowerKind("internvl_vision", _count_internvit_parameters),
    "internvl_chat": TowerKind("intern_vit_6b", _count_internvit_parameters),
    "kimi_k25": TowerKind("kimi_k25_vision", _count_moonvit_parameters),
    "minimax_m3_vl": TowerKind(
        "minimax_m3_vl_vision", _count_minimax_m3_parameters, "clip_vision_model"
    ),
    "deepseek_v41": TowerKind("deepseek_v41_vision", _count_deepseek_v41_parameters),
    "glm5_next": TowerKind("glm5_next_vision", _count_glm5_next_parameters),
    "kimi_k3": TowerKind("kimi_k3_vision", _count_kimi_k3_parameters),
    "step3p7": TowerKind("step3p5_vision", _count_step3p7_parameters, "perception_encoder"),
    "kimi_vl": TowerKind("kimi_k25_vision", _count_moonvit_parameters, "moonvit"),
}
"""Tower kinds by the `model_type` of the whole model, which determines the projector."""


# Configuration keys of parts for vision, audio and speech.
SIDE_CONFIGS = (
    "vision_config",
    "audio_config",
    "vq_config",
    "mm_vision_tower",
    "talker_config",
    "token2wav_config",
    "code2wav_config",
)
_VISION_CONFIG_KEY = "vision_config"


@dataclasses.dataclass(frozen=True, slots=True)
class VisionTowerReading:
    """The tower of a model, and the fields not understood or taken from defaults."""

    tower: VisionTower | None = None
    unread_fields: tuple[str, ...] = ()
    defaulted_fields: tuple[str, ...] = ()


def read_vision_tower(config: Config, text_width: int) -> VisionTowerReading:
    """Read the vision tower of a model whose language model is `text_width` wide.

    Parts of unknown kind, or without a size, are listed in `unread_fields` and not counted.
    """
    side_configs = tuple(key for key in SIDE_CONFIGS if config.get(key))
    family, vision = str(config.get("model_type")), config.get(_VISION_CONFIG_KEY)
    kind = KINDS.get(family)
    if kind is None or not isinstance(vision, Mapping) or _VISION_CONFIG_KEY not in side_configs:
        return VisionTowerReading(unread_fields=side_configs)
    if str(vision.get("model_type") or "") not in {
        "",
        family,
        kind.accepted_vision_model_type or kind.default_model_type,
    }:
        return VisionTowerReading(unread_fields=side_configs)
    uncounted = tuple(key for key in side_configs if key != _VISION_CONFIG_KEY)
    info = _read_tower(kind, vision, config, text_width)
    return dataclasses.replace(info, unread_fields=(*info.unread_fields, *uncounted))


def _read_tower(
    kind: TowerKind, vision: Config, outer: Config, text_width: int
) -> VisionTowerReading:
    completed, defaulted_keys = add_config_defaults(
        {**vision, "model_type": kind.default_model_type}
    )
    fields = TrackedConfig(completed)
    try:
        tower = kind.count_parameters(fields, outer, text_width)
    except UnreadableConfigError:
        return VisionTowerReading(unread_fields=(_VISION_CONFIG_KEY,))
    unread = (
        key for key in fields.list_unread_relevant_fields() if key not in _KEYS_WITHOUT_EFFECT
    )
    return VisionTowerReading(
        tower,
        tuple(f"{_VISION_CONFIG_KEY}.{key}" for key in unread),
        tuple(f"{_VISION_CONFIG_KEY}.{key}" for key in defaulted_keys),
    )


# Fields of towers that do not affect the number of parameters: how patches are attended
# to, scaled, positioned and pooled, and sizes repeated from elsewhere.
_KEYS_WITHOUT_EFFECT = frozenset(
    """
    activation_func attention_bias attn_bias default_output_length drop_path_rate fullatt_block_indexes
    global_head_dim head_dim heads hidden_dropout_prob image_seq_length image_size in_channels
    in_chans init_pos_emb_time is_composition layer_scale_init_value linear_bias ls_init_value
    max_image_tokens max_position_embeddings max_wh_ratio merge_type min_pixels mlp_type
    mm_hidden_size mm_projector_type multi_modal_projector_bias norm_type patch_embed_proj_bias pos_emb_interpolation_mode
    num_attention_heads num_channels num_heads num_key_value_heads pixel_shuffle_ratio
    pooling_kernel_size pos_emb_time pos_emb_type projection_dim projection_dropout
    projector_hidden_act projector_ln_eps rope_theta spatial_patch_size standardize
    swiglu_limit text_hidden_size tie_word_embeddings tokens_per_second use_clipped_linears
    use_mask_token video_attn_type video_seq_length vision_feature_layer
    vision_feature_select_strategy vocab_size vt_num_attention_heads window_size
    """.split()  # noqa: SIM905 - a list of words, easier to read and to add to
)
