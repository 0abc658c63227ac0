"""Reading of what stands in a configuration beside its language model."""

import dataclasses
from collections.abc import Mapping

from app.estimator.models.config import Config, UnreadableConfigError
from app.estimator.models.fields import TrackedConfig, with_defaults
from app.estimator.models.towers.kinds import KINDS, TowerKind
from app.estimator.models.towers.tower import VisionTower

# What a model has to see, to hear and to speak with, beside its language model.
BESIDE = (
    "vision_config",
    "audio_config",
    "vq_config",
    "mm_vision_tower",
    "talker_config",
    "token2wav_config",
    "code2wav_config",
)
_VISION = "vision_config"


@dataclasses.dataclass(frozen=True, slots=True)
class VisionTowerInfo:
    """The tower of a model, what nobody understood and what was taken as usual."""

    tower: VisionTower | None = None
    unread: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()


def read_beside(config: Config, text: int) -> VisionTowerInfo:
    """Read the vision tower of a model whose language model is `text` wide.

    What is of no known kind, or lacks a size, is named and not counted.

    >>> read_beside({"model_type": "new", "vision_config": {"depth": 2}}, 64).unread
    ('vision_config',)
    """
    named = tuple(key for key in BESIDE if config.get(key))
    family, vision = str(config.get("model_type")), config.get(_VISION)
    kind = KINDS.get(family)
    if kind is None or not isinstance(vision, Mapping) or _VISION not in named:
        return VisionTowerInfo(unread=named)
    if vision.get("model_type") not in {None, "", family, *kind.names}:
        return VisionTowerInfo(unread=named)
    rest = tuple(key for key in named if key != _VISION)
    found = _read(kind, vision, config, text)
    return dataclasses.replace(found, unread=(*found.unread, *rest))


def _read(kind: TowerKind, vision: Config, outer: Config, text: int) -> VisionTowerInfo:
    given, added = with_defaults({**vision, "model_type": kind.defaults})
    fields = TrackedConfig(given)
    try:
        encoder, projector = kind.count(fields, outer, text)
    except UnreadableConfigError:
        return VisionTowerInfo(unread=(_VISION,))
    unread = (key for key in fields.unread() if key not in _HARMLESS)
    return VisionTowerInfo(
        VisionTower(kind.defaults, encoder, projector),
        tuple(f"{_VISION}.{key}" for key in unread),
        tuple(f"{_VISION}.{key}" for key in added),
    )


# Fields of towers that change no number of parameters: how patches are attended to,
# scaled, positioned and pooled, and sizes that stand a second time elsewhere.
_HARMLESS = frozenset(
    """
    attention_bias default_output_length drop_path_rate fullatt_block_indexes
    global_head_dim head_dim hidden_dropout_prob image_size in_channels in_chans
    init_pos_emb_time is_composition layer_scale_init_value max_position_embeddings
    merge_type mm_hidden_size mm_projector_type multi_modal_projector_bias
    num_attention_heads num_channels num_heads num_key_value_heads pixel_shuffle_ratio
    pooling_kernel_size pos_emb_time pos_emb_type projection_dim projection_dropout
    projector_hidden_act projector_ln_eps rope_theta spatial_patch_size standardize
    text_hidden_size tie_word_embeddings tokens_per_second use_clipped_linears
    use_mask_token video_attn_type vision_feature_layer
    vision_feature_select_strategy vocab_size vt_num_attention_heads window_size
    """.split()  # noqa: SIM905 - a list of words, easier to read and to add to
)
