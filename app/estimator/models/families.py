"""What the families of models have that their configuration does not say."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

from app.estimator import catalogue

Config = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class FamilyTraits:
    """The habits of a family; the defaults are those of Llama.

    `norm_terms` is 1 for a norm with a weight, 2 with a weight and a bias, 0 for
    one without parameters; `norms` counts them per layer.
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
    shared_bias: bool = False
    routed_norms: int = 0
    layer_scalars: int = 0
    full_every: int = 0


_WORDS = catalogue.load_toml("families.toml")
_FAMILIES = {name: FamilyTraits(**row) for name, row in _WORDS["traits"].items()}


def is_known(family: str) -> bool:
    """Whether the rules of a family are known rather than taken from Llama.

    >>> is_known("mistral"), is_known("unheard_of")
    (True, False)
    """
    known = family in _FAMILIES or family in _WORDS["like_llama"]
    return known or is_encoder_decoder(family)


def is_encoder_decoder(family: str) -> bool:
    """Whether a family has an encoder beside its decoder."""
    return family in _WORDS["encoder_decoder"]


def traits_of(config: Config) -> FamilyTraits:
    """The habits of the family that `config` belongs to, with its own switches."""
    family = str(config.get("model_type", "llama"))
    traits = _FAMILIES.get(family, _FAMILIES["llama"])
    changes: dict[str, Any] = {}
    for key, names in _WORDS["switches"].items():
        if isinstance(config.get(key), bool):
            changes.update(dict.fromkeys(names, config[key]))
    changes.update(_special(family, config))
    return dataclasses.replace(traits, **changes) if changes else traits


def _special(family: str, config: Config) -> dict[str, Any]:
    """Read the switches that mean something else in one family."""
    reader = _SPECIAL.get(family)
    changes = reader(config) if reader else {}
    if family in _WORDS["no_out_bias"]:
        changes["out_bias"] = False
    return changes


def _falcon(config: Config) -> dict[str, Any]:
    new = bool(config.get("new_decoder_architecture"))
    parallel = bool(config.get("parallel_attn", True))
    two = config.get("num_ln_in_parallel_attn", 2) == 2 if new else not parallel
    return {"norms": 2 if two else 1}


def _mpt(config: Config) -> dict[str, Any]:
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


def _cohere(config: Config) -> dict[str, Any]:
    return {"query_norm": "heads" if config.get("use_qk_norm") else ""}


def _stablelm(config: Config) -> dict[str, Any]:
    parallel = bool(config.get("use_parallel_residual"))
    heads = bool(config.get("qk_layernorm"))
    return {"norms": 1 if parallel else 2, "query_norm": "heads" if heads else ""}


def _glm_moe(config: Config) -> dict[str, Any]:
    return {"query_norm": "head" if config.get("use_qk_norm") else ""}


def _hyperclovax(config: Config) -> dict[str, Any]:
    return {"norms": 4 if config.get("use_post_norm") else 2}


def _laguna(config: Config) -> dict[str, Any]:
    return {"head_gate": bool(config.get("gating", True))}


def _nemotron_h(config: Config) -> dict[str, Any]:
    attention = bool(config.get("attention_bias"))
    mlp = bool(config.get("mlp_bias"))  # `use_bias` speaks of the state space alone
    return {"qkv_bias": attention, "out_bias": attention, "mlp_bias": mlp}


def _mimo(config: Config) -> dict[str, Any]:
    return {
        "sliding_sinks": bool(config.get("add_swa_attention_sink_bias", True)),
        "sinks": bool(config.get("add_full_attention_sink_bias", False)),
    }


def _lfm3(config: Config) -> dict[str, Any]:
    gate = bool(config.get("use_attention_gate", True))
    return {"head_gate": gate, "norms": 4 if config.get("use_sandwich_norm") else 2}


def _phi(config: Config) -> dict[str, Any]:
    norm = "head" if config.get("qk_layernorm") else ""
    return {"query_norm": norm, "query_norm_terms": 2}


_SPECIAL = {
    "phi": _phi,
    "falcon": _falcon,
    "mpt": _mpt,
    "cohere": _cohere,
    "stablelm": _stablelm,
    "glm4_moe": _glm_moe,
    "hyperclovax": _hyperclovax,
    "laguna": _laguna,
    "lfm3": _lfm3,
    "mimo_v2_flash": _mimo,
    "nemotron_h": _nemotron_h,
}
