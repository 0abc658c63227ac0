"""Cases of weights, caches, model states and activations computed by formulas."""

from typing import Any

from app.estimator.memory.activations import (
    gpt_layer_bytes,
    saved_logits_bytes,
    unfused_layer_saved_bytes_per_token,
)
from app.estimator.memory.model_states import BytesPerParameter, state_bytes_under_zero_stage
from app.estimator.models import weight_formats as gguf
from evidence.accuracy.cases import CaseInputs, UnsupportedCaseError
from evidence.accuracy.kinds import Translator
from evidence.accuracy.question import CalculatorQuery, FormulaValue, build_query, formula_value
from evidence.accuracy.shapes import config_of_case_as_input

_QUANT = {
    "bf16": "bf16",
    "fp16": "fp16",
    "fp32": "fp32",
    "bnb_nf4_double_quant_linear_layers_rest_bf16": "nf4-double",
    "fp8_block128_embed_head_norm_router_bf16": "fp8-block",
    "int8_w8a8_per_channel_lm_head_bf16": "int8",
    "mxfp4_moe_experts_rest_bf16": "mxfp4-experts",
}
# Whether a kernel had repacked the weights when they were measured.
_WHERE = {
    "": None,
    "on GPU in vLLM, Hopper, Marlin weight-only repack": True,
    "on GPU in vLLM 0.14, Hopper, Triton with the scales kept": True,
    "on GPU in vLLM 0.25, Hopper, Triton": None,
    "vLLM log": None,
    "vLLM log (DeepSeek-R1, 16 x H20)": None,
    "vLLM log (DeepSeek-R1-Distill-Qwen-14B)": None,
}


def weights_bytes(inputs: CaseInputs) -> CalculatorQuery:
    """Bytes of stored or loaded weights, in total or on one GPU."""
    inputs.ignore("model_note")
    model = inputs.read_model()
    form = _weight_format(str(inputs.read_any("quant", "bf16")))
    tensor, pipeline = inputs.read_int("tp", 1), inputs.read_int("pp", 1)
    per_gpu = inputs.read_meaning("per", {"gpu": True, "": False})
    repacked = inputs.read_meaning("where", _WHERE)
    if not per_gpu:
        return build_query("weights", "total", model=model, weights=form, repacked=repacked)
    return build_query(
        "weights",
        "per_gpu",
        model=model,
        weights=form,
        tensor_parallel=tensor,
        pipeline_parallel=pipeline if pipeline > 1 else None,
        repacked=repacked,
    )


def _weight_format(quant: str) -> str:
    """Return the calculator's format for a case's format name."""
    mixture = quant.removeprefix("gguf_")
    if mixture != quant and mixture in gguf.MIXTURES:
        return f"gguf-{mixture.lower().replace('_', '-')}"
    if quant not in _QUANT:
        raise UnsupportedCaseError(f"quant “{quant}” is not known")
    return _QUANT[quant]


_BITS = {
    "awq_int4_g128": "awq-int4",
    "gptq_int4_g128_asym": "gptq-int4",
    "gptq_int4_g32_asym": "gptq-int4-g32",
    "gptq_int8_g128_asym": "gptq-int8",
    "fp8_block_128x128": "fp8-block",
    "mxfp4": "mxfp4",
    "mxfp8": "mxfp8",
    "nf4_block64": "nf4",
    "nf4_block64_double_quant": "nf4-double",
    "nvfp4": "nvfp4",
}


def quant_bits_per_weight(inputs: CaseInputs) -> CalculatorQuery | FormulaValue:
    """Bits per quantized weight with scales and zero points."""
    form = str(inputs.read_any("format", ""))
    if form in _BITS:
        return build_query("weights", "bits_per_weight", weights=_BITS[form])
    block = form.removeprefix("gguf_")
    if form.startswith("gguf_") and block in gguf.BLOCK_BITS:
        return FormulaValue(gguf.BLOCK_BITS[block], f"{gguf.__name__}.BLOCK_BITS")
    raise UnsupportedCaseError(f"format “{form}” is not known")


_ZERO_PAPER = BytesPerParameter(2, 2, 4, 8)
_RECIPES = {
    "2 weight + 2 grad + 12 optimizer (fp32 master, m, v)": _ZERO_PAPER,
    "2+2+12": _ZERO_PAPER,
    "adamw fp32 states, bf16 weights, bf16 grads (ZeRO paper)": _ZERO_PAPER,
    "16-bit fine-tuning: bf16 weights 2 + bf16 grads 2 + fp32 Adam m,v 8, no master copy": BytesPerParameter(
        2, 2, 0, 8
    ),
    "8-bit AdamW, bf16 weights, fp32 master, bf16 grads": BytesPerParameter(2, 2, 4, 2),
    "Adafactor (no momentum, factored), bf16 weights, fp32 master, bf16 grads": (
        BytesPerParameter(2, 2, 4, 0)
    ),
    "AnyPrecision AdamW all bf16": BytesPerParameter(2, 2, 0, 4),
    "Megatron distributed optimizer: bf16 weights 2 + fp32 main grad 4 + (4+4+4)/dp": BytesPerParameter(
        2, 4, 4, 8
    ),
    "Muon/Lion one fp32 state, bf16 weights, fp32 master, fp32 grads": (
        BytesPerParameter(2, 4, 4, 4)
    ),
    "SGD momentum fp32, bf16 weights, fp32 master, bf16 grads": BytesPerParameter(2, 2, 4, 4),
    "adamw fp32 states, bf16 weights, fp32 grads (Megatron)": BytesPerParameter(2, 4, 4, 8),
    "pure fp32 AdamW": BytesPerParameter(4, 4, 0, 8),
}
_DEEPSPEED = (
    "DeepSpeed estimator: stage 2 = 4P + 16P/n, stage 3 = 4*largest + 18P/n, "
    "offload = 2P (or 4*largest + 2P/n)"
)
_OFFLOAD = {"": "none", "none": "none", "cpu": "all", "optimizer cpu": "optimizer"}


def zero_model_states(inputs: CaseInputs) -> FormulaValue:
    """Weights, gradients and optimizer states on one GPU."""
    parameters, shards = inputs.read_number("params"), inputs.read_int("dp", 1)
    stage = inputs.read_int("zero_stage", 0)
    offload = inputs.read_meaning("offload", _OFFLOAD)
    if inputs.read_meaning("convention", {_DEEPSPEED: True, "": False}):
        largest = inputs.read_number("largest_layer_params", 0)
        inputs.ignore("bytes_per_param", "recipe")
        value = deepspeed_bytes(parameters, largest, shards, stage, offload != "none")
        return formula_value(deepspeed_bytes, value, report_alone=True)
    inputs.ignore("largest_layer_params")
    key = "recipe" if inputs.has("recipe") else "bytes_per_param"
    recipe = inputs.read_meaning(key, _RECIPES, "2+2+12")
    weights, gradients, optimizer = state_bytes_under_zero_stage(parameters, recipe, shards, stage)
    if offload == "all":
        return formula_value(state_bytes_under_zero_stage, weights)
    kept = 0 if offload == "optimizer" else optimizer
    return formula_value(state_bytes_under_zero_stage, weights + gradients + kept)


def deepspeed_bytes(
    parameters: float, largest: float, shards: int, stage: int, offload: bool
) -> float:
    """Return the memory bounds of DeepSpeed's own estimator, stages 2 and 3 [B]."""
    if stage == 3:
        return 4 * largest + (2 if offload else 18) * parameters / shards
    if stage == 2:
        return 2 * parameters if offload else 4 * parameters + 16 * parameters / shards
    raise UnsupportedCaseError(f"zero_stage {stage} is not in this convention")


_TECHNIQUES = {
    "none, tp=1": "none",
    "tp": "tp",
    "tp+sp": "tp+sp",
    "tp+selective": "tp+selective",
    "tp+sp+selective": "tp+sp+selective",
    "full": "full",
    "full recompute": "full",
    "selective recompute": "tp+selective",
    "sequence parallel": "tp+sp",
    "sequence parallel + selective": "tp+sp+selective",
}


_BASELINE = "tensor parallel only, no recompute"


def activation_pct(inputs: CaseInputs) -> FormulaValue:
    """Activations as percent of those with tensor parallelism alone."""
    inputs.read_meaning("baseline", {_BASELINE: True}, _BASELINE)
    layer = _read_gpt_layer(inputs)
    technique = inputs.read_meaning("technique", _TECHNIQUES)
    base = gpt_layer_bytes(**layer, technique="tp")
    share = gpt_layer_bytes(**layer, technique=technique) / base
    return formula_value(gpt_layer_bytes, 100 * share, report_alone=True)


def _read_gpt_layer(inputs: CaseInputs) -> dict[str, Any]:
    """Return the sizes of `gpt_layer_bytes`."""
    inputs.ignore("layers")
    return {
        "sequence": inputs.read_number("seq"),
        "micro_batch": inputs.read_number("microbatch", 1),
        "hidden": inputs.read_number("hidden"),
        "heads": inputs.read_number("heads"),
        "tensor": inputs.read_int("tp", 1),
    }


_BLOCK = "GPT: LayerNorm, GELU 4h MLP, dropout, fp16, no flash attention"


def activation_bytes_layer(inputs: CaseInputs) -> FormulaValue:
    """Activation bytes that one layer saves for the backward pass on one GPU."""
    if inputs.has("model"):
        return _unfused_layer(inputs)
    inputs.read_meaning("block", {_BLOCK: True}, _BLOCK)
    layer = _read_gpt_layer(inputs)
    value = gpt_layer_bytes(**layer, technique=inputs.read_meaning("technique", _TECHNIQUES))
    return formula_value(gpt_layer_bytes, value, report_alone=True)


_ATTENTION = {
    "eager": True,
    "eager (materialized scores)": True,
    "flash-style (torch sdpa)": False,
    "sdpa": False,
}
_MODULES = {
    "HF transformers, no checkpointing": True,
    "HF transformers, no checkpointing, dropout 0": True,
}


def _unfused_layer(inputs: CaseInputs) -> FormulaValue:
    """A layer of unfused modules, counted as autograd saves it."""
    model = inputs.read_architecture()
    inputs.read_meaning("framework", _MODULES)
    inputs.read_meaning("dtype", {"bf16": True}, "bf16")
    eager = bool(inputs.read_meaning("attention", _ATTENTION, "sdpa"))
    dropout = inputs.read_number("dropout", 0.0) > 0
    sequence, batch = inputs.read_number("seq"), inputs.read_number("microbatch", 1)
    layer = model.decoder_layers[-1]
    each = unfused_layer_saved_bytes_per_token(
        model, layer, sequence, saves_attention_scores=eager, dropout=dropout
    )
    return formula_value(unfused_layer_saved_bytes_per_token, each * sequence * batch)


_LOSS = {
    "HF causal LM loss (upcast to fp32)": 4.0,
    "peak while the loss runs: bf16 logits + fp32 copy + fp32 log-softmax (10 B/element)": 10.0,
}


def logits_saved_bytes(inputs: CaseInputs) -> FormulaValue:
    """Bytes of logits that the loss saves."""
    tokens = inputs.read_number("seq") * inputs.read_number("microbatch", 1)
    each = float(inputs.read_meaning("framework", _LOSS))
    value = saved_logits_bytes(tokens, inputs.read_number("vocab"), 1, each)
    return formula_value(saved_logits_bytes, value)


_CONTENT = {
    "14 bytes/param, gated MLP": "adamw",
    "bf16 + fp32 master + optimizer (14 bytes/param)": "adamw",
    "bf16 weights + fp32 master, m, v (14 bytes/param)": "adamw",
    "bf16 weights only": "weights",
    "weights + optimizer as stored by NVIDIA blog example": "adamw-12",
}


def checkpoint_bytes(inputs: CaseInputs) -> CalculatorQuery:
    """Checkpoint size: parameters times the bytes stored for each."""
    content = inputs.read_meaning("content", _CONTENT)
    config = inputs.read_any("config")
    model = inputs.read_model() if config is None else config_of_case_as_input(config)
    inputs.ignore("model")
    return build_query("storage", "checkpoint", model=model, content=content)


KINDS: dict[str, Translator] = {
    "weights_bytes": weights_bytes,
    "quant_bits_per_weight": quant_bits_per_weight,
    "zero_model_states": zero_model_states,
    "activation_pct": activation_pct,
    "activation_bytes_layer": activation_bytes_layer,
    "logits_saved_bytes": logits_saved_bytes,
    "checkpoint_bytes": checkpoint_bytes,
}
