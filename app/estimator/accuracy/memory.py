"""Cases of weights, caches, states and activations that follow from formulas."""

from app.estimator.accuracy.cases import Asked, Inexpressible, card_of
from app.estimator.accuracy.kinds import Predictor
from app.estimator.memory import module_activations
from app.estimator.memory.activations import gpt_layer_bytes, logits_bytes
from app.estimator.memory.states import Recipe, zero_bytes
from app.estimator.models import gguf
from app.estimator.models.architecture import Architecture
from app.estimator.models.formats import FORMATS, weight_table

_QUANT = {
    "bf16": "bf16",
    "fp16": "fp16",
    "fp32": "fp32",
    "bnb_nf4_double_quant_linear_layers_rest_bf16": "nf4-double",
    "fp8_block128_embed_head_norm_router_bf16": "fp8-block",
    "int8_w8a8_per_channel_lm_head_bf16": "int8",
    "mxfp4_moe_experts_rest_bf16": "mxfp4-experts",
}
# A kernel that repacks 4-bit experts for weight-only use on Hopper pads and keeps
# them 8.5 % larger than the file, as its start-up log shows.
_REPACKED = 1.085
_WHERE = {
    "": 1.0,
    "on GPU in vLLM, Hopper, Marlin weight-only repack": _REPACKED,
    "vLLM log": 1.0,
    "vLLM log (DeepSeek-R1, 16 x H20)": 1.0,
    "vLLM log (DeepSeek-R1-Distill-Qwen-14B)": 1.0,
}


def weights_bytes(asked: Asked) -> float:
    """Stored or loaded weights, in all or on one GPU."""
    asked.note("model_note")
    model = asked.model()
    quant = str(asked.any("quant", "bf16"))
    tensor, pipeline = asked.whole("tp", 1), asked.whole("pp", 1)
    per_gpu = asked.word("per", {"gpu": True, "": False})
    loaded = float(asked.word("where", _WHERE))
    if quant.startswith("gguf_"):
        return _gguf(model, quant.removeprefix("gguf_"))
    if quant not in _QUANT:
        raise Inexpressible(f"quant “{quant}” is not known")
    table = weight_table(model, _QUANT[quant])
    if not per_gpu:
        return table.total * loaded
    return table.per_gpu(tensor) / pipeline * loaded


def _gguf(model: Architecture, mixture: str) -> float:
    if mixture not in gguf.MIXTURES:
        raise Inexpressible(f"quant “gguf_{mixture}” is not known")
    return gguf.file_bytes(model, mixture)


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


def quant_bits_per_weight(asked: Asked) -> float:
    """Bits per quantised weight with scales and zero points."""
    form = str(asked.any("format", ""))
    if form in _BITS:
        return FORMATS[_BITS[form]].bits
    block = form.removeprefix("gguf_")
    if form.startswith("gguf_") and block in gguf.BLOCK_BITS:
        return gguf.BLOCK_BITS[block]
    raise Inexpressible(f"format “{form}” is not known")


_ZERO_PAPER = Recipe(2, 2, 4, 8)
_RECIPES = {
    "2 weight + 2 grad + 12 optimizer (fp32 master, m, v)": _ZERO_PAPER,
    "2+2+12": _ZERO_PAPER,
    "adamw fp32 states, bf16 weights, bf16 grads (ZeRO paper)": _ZERO_PAPER,
    "16-bit fine-tuning: bf16 weights 2 + bf16 grads 2 + fp32 Adam m,v 8, "
    "no master copy": Recipe(2, 2, 0, 8),
    "8-bit AdamW, bf16 weights, fp32 master, bf16 grads": Recipe(2, 2, 4, 2),
    "Adafactor (no momentum, factored), bf16 weights, fp32 master, bf16 grads": (
        Recipe(2, 2, 4, 0)
    ),
    "AnyPrecision AdamW all bf16": Recipe(2, 2, 0, 4),
    "Megatron distributed optimizer: bf16 weights 2 + fp32 main grad 4 + "
    "(4+4+4)/dp": Recipe(2, 4, 4, 8),
    "Muon/Lion one fp32 state, bf16 weights, fp32 master, fp32 grads": (
        Recipe(2, 4, 4, 4)
    ),
    "SGD momentum fp32, bf16 weights, fp32 master, bf16 grads": Recipe(2, 2, 4, 4),
    "adamw fp32 states, bf16 weights, fp32 grads (Megatron)": Recipe(2, 4, 4, 8),
    "pure fp32 AdamW": Recipe(4, 4, 0, 8),
}
_DEEPSPEED = (
    "DeepSpeed estimator: stage 2 = 4P + 16P/n, stage 3 = 4*largest + 18P/n, "
    "offload = 2P (or 4*largest + 2P/n)"
)
_OFFLOAD = {"": "none", "none": "none", "cpu": "all", "optimizer cpu": "optimizer"}


def zero_model_states(asked: Asked) -> float:
    """Weights, gradients and optimizer on one GPU."""
    parameters, shards = asked.number("params"), asked.whole("dp", 1)
    stage = asked.whole("zero_stage", 0)
    offload = asked.word("offload", _OFFLOAD)
    if asked.word("convention", {_DEEPSPEED: True, "": False}):
        largest = asked.number("largest_layer_params", 0)
        asked.note("bytes_per_param", "recipe")
        return _deepspeed(parameters, largest, shards, stage, offload != "none")
    asked.note("largest_layer_params")
    key = "recipe" if asked.has("recipe") else "bytes_per_param"
    recipe = asked.word(key, _RECIPES, "2+2+12")
    weights, gradients, optimizer = zero_bytes(parameters, recipe, shards, stage)
    if offload == "all":
        return weights
    return weights + gradients + (0 if offload == "optimizer" else optimizer)


def _deepspeed(
    parameters: float, largest: float, shards: int, stage: int, offload: bool
) -> float:
    """The planning bounds of DeepSpeed's own estimator."""
    if stage == 3:
        return 4 * largest + (2 if offload else 18) * parameters / shards
    if stage == 2:
        return 2 * parameters if offload else 4 * parameters + 16 * parameters / shards
    raise Inexpressible(f"zero_stage {stage} is not in this convention")


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


def activation_pct(asked: Asked) -> float:
    """Activations as percent of tensor parallelism alone."""
    asked.word("baseline", {"tensor parallel only, no recompute": True}, *_BASELINE)
    layer = _gpt_layer(asked)
    technique = asked.word("technique", _TECHNIQUES)
    base = gpt_layer_bytes(*layer, technique="tp")
    return 100 * gpt_layer_bytes(*layer, technique=technique) / base


_BASELINE = ("tensor parallel only, no recompute",)


def _gpt_layer(asked: Asked) -> tuple[float, float, float, float, int]:
    asked.note("layers")
    return (
        asked.number("seq"),
        asked.number("microbatch", 1),
        asked.number("hidden"),
        asked.number("heads"),
        asked.whole("tp", 1),
    )


_BLOCK = "GPT: LayerNorm, GELU 4h MLP, dropout, fp16, no flash attention"


def activation_bytes_layer(asked: Asked) -> float:
    """What one layer keeps for its backward pass on one GPU."""
    if asked.has("model"):
        return _module_layer(asked)
    asked.word("block", {_BLOCK: True}, _BLOCK)
    layer = _gpt_layer(asked)
    technique = asked.word("technique", _TECHNIQUES)
    return gpt_layer_bytes(*layer, technique=technique)


_ATTENTION = {
    "eager": True,
    "eager (materialised scores)": True,
    "flash-style (torch sdpa)": False,
    "sdpa": False,
}
_MODULES = {
    "HF transformers, no checkpointing": True,
    "HF transformers, no checkpointing, dropout 0": True,
}


def _module_layer(asked: Asked) -> float:
    """A layer of unfused modules, counted as autograd saves it."""
    model = asked.model()
    asked.word("framework", _MODULES)
    asked.word("dtype", {"bf16": True}, "bf16")
    eager = bool(asked.word("attention", _ATTENTION, "sdpa"))
    dropout = asked.number("dropout", 0.0) > 0
    sequence, batch = asked.number("seq"), asked.number("microbatch", 1)
    layer = model.stack[-1]
    each = module_activations.layer_bytes(
        model, layer, sequence, eager=eager, dropout=dropout
    )
    return each * sequence * batch


_LOSS = {
    "HF causal LM loss (upcast to fp32)": 4.0,
    "peak while the loss runs: bf16 logits + fp32 copy + fp32 log-softmax "
    "(10 B/element)": 10.0,
}


def logits_saved_bytes(asked: Asked) -> float:
    """What the loss keeps of the logits."""
    tokens = asked.number("seq") * asked.number("microbatch", 1)
    each = float(asked.word("framework", _LOSS))
    return logits_bytes(tokens, asked.number("vocab"), 1, each)


_CONTENT = {
    "14 bytes/param, gated MLP": 14.0,
    "bf16 + fp32 master + optimizer (14 bytes/param)": 14.0,
    "bf16 weights + fp32 master, m, v (14 bytes/param)": 14.0,
    "bf16 weights only": 2.0,
    "weights + optimizer as stored by NVIDIA blog example": 12.0,
}


def checkpoint_bytes(asked: Asked) -> float:
    """A checkpoint: parameters times the bytes that are stored for each."""
    each = float(asked.word("content", _CONTENT))
    config = asked.any("config")
    if config is None:
        return asked.model().parameters * each
    from app.estimator.accuracy.shapes import inline_model  # noqa: PLC0415 - a sibling

    asked.note("model")
    return inline_model(config).parameters * each


_CROSSOVER = (
    "tokens in flight at which a weight-stationary GEMM turns compute bound: "
    "peak*bytes/(2*bw)"
)
_ROUTED = "routed experts only, uniform routing"


def critical_batch(asked: Asked) -> float:
    """Tokens at which a product by the weights turns compute-bound."""
    width = asked.number("weight_bytes", 2)
    name = str(asked.case.inputs.get("gpu", ""))
    peak, bandwidth = asked.any("peak_flops"), asked.any("hbm_Bps")
    asked.note("gpu")
    if peak is None or bandwidth is None:
        card = card_of(asked.file, name)
        peak = peak or card.peak("fp8" if width == 1 else "bf16")
        bandwidth = bandwidth or card.memory_bandwidth
    if not peak or not bandwidth:
        raise Inexpressible(f"peak and bandwidth of “{name}” are not known")
    tokens = float(peak) * width / (2 * float(bandwidth))
    routed = asked.word("definition", {_CROSSOVER: False, _ROUTED: True}, _CROSSOVER)
    if asked.has("model"):
        model = asked.model()
        if routed and model.experts:
            tokens *= model.experts / model.experts_per_token
    return tokens


KINDS: dict[str, Predictor] = {
    "weights_bytes": weights_bytes,
    "quant_bits_per_weight": quant_bits_per_weight,
    "zero_model_states": zero_model_states,
    "activation_pct": activation_pct,
    "activation_bytes_layer": activation_bytes_layer,
    "logits_saved_bytes": logits_saved_bytes,
    "checkpoint_bytes": checkpoint_bytes,
    "critical_batch": critical_batch,
}
