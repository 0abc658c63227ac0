"""What the families of models have that their configuration does not say."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

Config = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Traits:
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
    full_first: bool = False


_GPT = Traits(
    gated=False, norm_terms=2, qkv_bias=True, out_bias=True, mlp_bias=True, tied=True
)
_QWEN3 = Traits(query_norm="head")
_GEMMA = Traits(tied=True)
_GEMMA2 = Traits(tied=True, norms=4, full_every=2)
_GEMMA3 = Traits(tied=True, norms=4, query_norm="head", full_every=6)
_OLMO2 = Traits(query_norm="heads")
_GLM = Traits(qkv_bias=True)
_COHERE = Traits(norms=1, tied=True)

FAMILIES: dict[str, Traits] = {
    "llama": Traits(),
    "qwen2": Traits(qkv_bias=True),
    "qwen2_moe": Traits(qkv_bias=True, shared_gate=True),
    "qwen3": _QWEN3,
    "qwen3_moe": _QWEN3,
    **dict.fromkeys(
        ("qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"),
        Traits(query_norm="head", query_gate=True, shared_gate=True),
    ),
    **dict.fromkeys(("ernie4_5", "minicpm3", "vaultgemma", "youtu"), _GEMMA),
    "gemma": _GEMMA,
    "gemma2": _GEMMA2,
    "gemma3": _GEMMA3,
    "gemma3_text": _GEMMA3,
    "gemma4": _GEMMA3,
    "gemma4_text": _GEMMA3,
    "gemma3n": dataclasses.replace(_GEMMA3, full_every=5),
    "gemma3n_text": dataclasses.replace(_GEMMA3, full_every=5),
    "mimo_v2_flash": Traits(sliding_sinks=True, full_every=6),
    "gpt2": dataclasses.replace(_GPT, learned_positions=True),
    "gpt_bigcode": dataclasses.replace(_GPT, learned_positions=True),
    "opt": dataclasses.replace(_GPT, learned_positions=True, extra_positions=2),
    "xglm": dataclasses.replace(_GPT),
    "bloom": dataclasses.replace(_GPT, embedding_norm=True),
    "gpt_neox": dataclasses.replace(_GPT, tied=False),
    "gptj": dataclasses.replace(
        _GPT, tied=False, norms=1, qkv_bias=False, out_bias=False, head_bias=True
    ),
    "codegen": dataclasses.replace(
        _GPT, tied=False, norms=1, qkv_bias=False, out_bias=False, head_bias=True
    ),
    "gpt_neo": dataclasses.replace(_GPT, qkv_bias=False, learned_positions=True),
    "starcoder2": _GPT,
    "phi": dataclasses.replace(_GPT, tied=False, norms=1, head_bias=True),
    "phi3": Traits(),
    "phimoe": Traits(norm_terms=2, qkv_bias=True, out_bias=True, head_bias=True),
    "falcon": dataclasses.replace(_GPT, qkv_bias=False, out_bias=False, mlp_bias=False),
    "mpt": dataclasses.replace(
        _GPT, norm_terms=1, qkv_bias=False, out_bias=False, mlp_bias=False
    ),
    "stablelm": Traits(norm_terms=2),
    "persimmon": dataclasses.replace(
        _GPT, tied=False, query_norm="head", query_norm_terms=2
    ),
    "nemotron": Traits(gated=False, norm_terms=2),
    "arcee": Traits(gated=False),
    "apertus": Traits(gated=False, query_norm="head", layer_scalars=2),
    "jais2": Traits(gated=False, norm_terms=2),
    "nanochat": Traits(gated=False, norm_terms=0),
    "afmoe": Traits(
        norms=4, query_norm="head", query_gate=True, router_bias=True, full_every=4
    ),
    "axk1": Traits(routed_norms=1),
    "cohere2_moe": dataclasses.replace(_COHERE, full_every=4),
    "flint": Traits(query_norm="head", sinks=True),
    "granite_swa": Traits(sinks=True, tied=True),
    "granitemoe_swa": Traits(sinks=True),
    "kolibri1": Traits(norms=4, query_norm="head"),
    "laguna": Traits(query_norm="head", head_gate=True, router_bias=True),
    "lfm3": Traits(query_norm="head", norms=4, tied=True, head_gate=True),
    "mellum": _QWEN3,
    "minimax_m3_vl_text": _QWEN3,
    "olmo_hybrid": _OLMO2,
    "bailing_hybrid": Traits(head_gate=True),
    "glm4v_text": dataclasses.replace(_GLM, norms=4),
    "glm4v_moe_text": _GLM,
    "cohere": _COHERE,
    "cohere2": dataclasses.replace(_COHERE, full_every=4),
    "olmo": Traits(norm_terms=0),
    "olmo2": _OLMO2,
    "olmo3": dataclasses.replace(_OLMO2, full_every=4),
    "olmoe": _OLMO2,
    "glm": _GLM,
    "glm4": dataclasses.replace(_GLM, norms=4),
    "glm4_moe": Traits(),
    "chatglm": _GLM,
    "minimax_m2": _OLMO2,
    "gpt_oss": Traits(
        qkv_bias=True,
        out_bias=True,
        sinks=True,
        router_bias=True,
        expert_bias=True,
        full_every=2,
    ),
    "llama4_text": Traits(full_every=4),
    "granite": Traits(),
    "smollm3": Traits(tied=True),
    "exaone4": Traits(query_norm="head", full_every=4),
    "exaone_moe": Traits(query_norm="head", full_every=4),
    "hy_v3": _QWEN3,
    "hunyuan_v1_dense": _QWEN3,
    "hunyuan_v1_moe": _QWEN3,
    "dots1": _QWEN3,
    "ernie4_5_moe": Traits(router_bias=True, tied=True),
    "falcon_h1": Traits(),
    "minimax": Traits(),
    "lfm2": Traits(query_norm="head", tied=True),
    "lfm2_moe": Traits(query_norm="head", tied=True),
    "kimi_linear": Traits(),
    "flex_olmo": _OLMO2,
    "seed_oss": Traits(qkv_bias=True),
    "jamba": Traits(),
    "mamba": Traits(tied=True, norms=1),
    "falcon_mamba": Traits(tied=True, norms=1),
    "mamba2": Traits(norms=1),
    "nemotron_h": Traits(norms=1, gated=False),
    "bamba": Traits(),
}


# Families that are Llama in everything that is counted.
_LIKE_LLAMA = frozenset(
    {"mistral", "mixtral", "ministral", "ministral3", "mistral3", "yi", "internlm2"}
    | {"internlm3", "solar_open", "cwm", "helium"}
    | {"deepseek_v2", "deepseek_v3", "deepseek_v32", "deepseek_v4", "kimi_k2"}
    | {"glm_moe_dsa", "glm4_moe_lite", "granitemoe", "granitemoehybrid"}
    | {"granitemoeshared", "hyperclovax", "iquestcoder", "emu3", "emu3_text_model"}
    | {"aria_text", "longcat_flash", "mistral4"}
)


def is_known(family: str) -> bool:
    """Whether the rules of a family are known rather than taken from Llama.

    >>> is_known("mistral"), is_known("unheard_of")
    (True, False)
    """
    return family in FAMILIES or family in _LIKE_LLAMA or is_encoder_decoder(family)


def is_encoder_decoder(family: str) -> bool:
    """Whether a family has an encoder beside its decoder."""
    return family in {
        "t5",
        "mt5",
        "umt5",
        "bart",
        "mbart",
        "pegasus",
        "marian",
        "m2m_100",
        "whisper",
    }


def traits_of(config: Config) -> Traits:
    """The habits of the family that `config` belongs to, with its own switches."""
    family = str(config.get("model_type", "llama"))
    traits = FAMILIES.get(family, FAMILIES["llama"])
    changes: dict[str, Any] = {}
    for key, names in _SWITCHES.items():
        if isinstance(config.get(key), bool):
            changes.update(dict.fromkeys(names, config[key]))
    changes.update(_special(family, config))
    return dataclasses.replace(traits, **changes) if changes else traits


# Switches of a configuration and the traits they turn on or off.
_SWITCHES: dict[str, tuple[str, ...]] = {
    "attention_bias": ("qkv_bias", "out_bias"),
    "attention_bias_qkv": ("qkv_bias",),
    "qkv_bias": ("qkv_bias",),
    "use_qkv_bias": ("qkv_bias",),
    "add_qkv_bias": ("qkv_bias",),
    "attention_out_bias": ("out_bias",),
    "mlp_bias": ("mlp_bias",),
    "use_bias": ("qkv_bias", "out_bias", "mlp_bias"),
    "bias": ("qkv_bias", "out_bias", "mlp_bias"),
    "lm_head_bias": ("head_bias",),
    "tie_word_embeddings": ("tied",),
    "learned_pos_emb": ("learned_positions",),
}
# Families whose output projection has no bias whatever `attention_bias` says.
_NO_OUT_BIAS = frozenset({"glm", "glm4", "glm4_moe", "qwen2", "chatglm"})


def _special(family: str, config: Config) -> dict[str, Any]:
    """Read the switches that mean something else in one family."""
    reader = _SPECIAL.get(family)
    changes = reader(config) if reader else {}
    if family in _NO_OUT_BIAS:
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
