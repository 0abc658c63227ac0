"""Cases of training computed from FLOPs: count, utilization and time."""

from collections.abc import Callable

from app.estimator.hardware.catalog import find_accelerator
from app.estimator.models.architecture import Architecture
from app.estimator.models.lookup import llama_model_of_size
from app.estimator.training import flops
from app.estimator.training import step_time as pipeline
from evidence.accuracy.cases import CaseInputs, UnsupportedCaseError
from evidence.accuracy.kinds import Translator
from evidence.accuracy.question import CalculatorQuery, FormulaValue, formula, query_calculator

_HOUR = 3600.0

_SIX = {
    "6*N*D": False,
    "6*N*D, no attention term": False,
    "6ND + 12 L H Q T attention": True,
}
# PaLM 540B, whose convention includes attention: layers, heads × width, context.
_PALM = (118, 48 * 256, 2048)


def train_total_flops(asked: CaseInputs) -> FormulaValue:
    """FLOPs of a training run."""
    parameters, tokens = asked.number("params"), asked.number("tokens")
    total = flops.training_flops(parameters, tokens)
    if not asked.word("convention", _SIX, "6*N*D"):
        return formula(flops.training_flops, total, alone=True)
    if abs(parameters / 540.35e9 - 1) < 0.01:
        layers, width, context = _PALM
    else:
        model = llama_model_of_size(round(parameters))
        layers, width, context = model.layers, model.hidden, 2048
    total += flops.attention_flops_per_token(width, layers, context) * tokens
    return formula(flops.attention_flops_per_token, total, alone=True)


_CAUSAL = "forward+backward, causal attention counted half"
_MEGATRON = (
    "Megatron: causal attention counted half, logits counted, input embedding not; "
    "sliding layers at their window"
)
_LORA = "Megatron-Bridge LoRA accounting"


def train_flops_per_token(asked: CaseInputs) -> CalculatorQuery:
    """FLOPs per token in a named convention."""
    model, context = asked.model(), asked.whole("seq")
    convention = asked.word("convention", {_CAUSAL: "causal", _MEGATRON: "causal", _LORA: "lora"})
    asked.note("method")
    if convention == "lora":
        # Two passes, because frozen weights need no gradient. The published tables count
        # attention over packed samples, which are short.
        return query_calculator("model", "forward_flops", 2.0, model=model, sequence=1)
    return query_calculator("model", "training_flops", model=model, sequence=context)


_FULL = "model FLOPs, full (not causal-halved) attention"
_PALM_MFU = "6N + 12 L H Q T (full attention), no recompute"
_HARDWARE = "hardware FLOPs with selective recompute"
_MOSAIC = "6*N + 12*L*d*s per token (full attention, N includes tied embedding and positions)"


def train_mfu(asked: CaseInputs) -> FormulaValue:
    """Model FLOPs utilization from a measured step time or rate, in percent."""
    peak = asked.number("peak_tflops", 0) * 1e12
    card = str(asked.any("gpu", ""))
    if not peak and card:
        peak = find_accelerator(card).peak_rate("bf16") or 0.0
    if asked.has("achieved_tflops_per_gpu"):
        asked.note("gpus", "seq", "model", "attention", "convention")
        reached = asked.number("achieved_tflops_per_gpu") * 1e12
        return formula(flops.flops_utilization, 100 * flops.flops_utilization(reached, 1.0, peak))
    function, each, rate = _flops_and_rate(asked)
    share = 100 * flops.flops_utilization(each, rate, peak)
    return formula(function, share, alone=function is not flops.training_flops_per_token)


_Counted = tuple[Callable[..., float], float, float]


def _flops_and_rate(asked: CaseInputs) -> _Counted:
    """Return what is counted, the FLOPs per token, and the tokens per second of a GPU."""
    if asked.has("model"):
        return _of_model(asked)
    convention = asked.word("convention", {_FULL: 1, _PALM_MFU: 2, _HARDWARE: 3, _MOSAIC: 2})
    layers, context = asked.whole("layers"), asked.whole("seq")
    if convention == 2:
        width = asked.whole("heads") * asked.whole("head_dim")
        each = 6 * asked.number("params")
        each += flops.attention_flops_per_token(width, layers, context)
        rate = asked.number("tokens_per_s") / asked.number("chips")
        return flops.attention_flops_per_token, each, rate
    hidden = asked.whole("hidden")
    asked.note("heads")
    shape = (layers, hidden, asked.whole("vocab"))
    each = flops.narayanan_flops_per_token(shape, context)
    if convention == 3:
        # Scores are computed twice more: in the recomputed forward pass, and in the backward.
        each += flops.attention_flops_per_token(hidden, layers, context)
    tokens = asked.whole("global_batch") * context
    rate = tokens / asked.number("step_time_s") / asked.whole("gpus")
    return flops.narayanan_flops_per_token, each, rate


def _of_model(asked: CaseInputs) -> _Counted:
    model, context = asked.architecture(), asked.whole("seq")
    convention = asked.any("convention", "")
    attention = asked.any("attention", "")
    asked.note("gpus", "global_batch")
    rate = asked.number("tokens_per_s_per_gpu")
    if convention == _MOSAIC:
        return flops.attention_flops_per_token, _mosaic(model, context), rate
    if convention not in ("", _FULL):
        raise UnsupportedCaseError(f"convention “{convention}” is not known for a model")
    causal = convention != _FULL and "non-causal" not in str(attention)
    each = flops.training_flops_per_token(model, context, causal=causal)
    return flops.training_flops_per_token, each, rate


def _mosaic(model: Architecture, context: int) -> float:
    parameters = model.parameters + (context - model.learned_positions) * model.hidden
    width = model.heads * model.head_dim
    return 6 * parameters + flops.attention_flops_per_token(width, model.layers, context)


_WALL = {"8TP/(nX)": 8, "8TP/(nX) (full recompute)": 8, "": 0}


def train_time(asked: CaseInputs) -> FormulaValue:
    """Training time from given rates [s]."""
    tokens, gpus = asked.number("tokens"), asked.number("gpus", 1)
    passes = asked.word("formula", _WALL)
    if asked.has("gpu_hours_per_trillion_tokens"):
        asked.note("params")
        hours = asked.number("gpu_hours_per_trillion_tokens") * tokens / 1e12
        seconds = wall_time(hours * _HOUR, 1.0, gpus)
    elif asked.has("tokens_per_s_per_gpu"):
        asked.note("params")
        seconds = wall_time(tokens, asked.number("tokens_per_s_per_gpu"), gpus)
    else:
        work = (passes or 6) * tokens * asked.number("params")
        seconds = wall_time(work, asked.number("achieved_tflops") * 1e12, gpus)
    return formula(wall_time, seconds, alone=True)


def wall_time(work: float, rate: float, gpus: float) -> float:
    """Return the time of `gpus` GPUs that each do `rate` of the work per second [s].

    >>> wall_time(1.4e12, 380, 2048)
    1798930.9210526317
    """
    return work / (rate * gpus)


def pp_bubble(asked: CaseInputs) -> FormulaValue:
    """Pipeline bubble: idle over ideal time."""
    asked.note("definition")
    asked.word("schedule", dict.fromkeys(("1F1B", "GPipe/1F1B", "interleaved"), True))
    stages, batches = asked.whole("stages"), asked.whole("microbatches")
    value = pipeline.pipeline_bubble(stages, batches, asked.whole("virtual_stages", 1))
    return formula(pipeline.pipeline_bubble, value)


KINDS: dict[str, Translator] = {
    "train_total_flops": train_total_flops,
    "train_flops_per_token": train_flops_per_token,
    "train_mfu": train_mfu,
    "train_time": train_time,
    "pp_bubble": pp_bubble,
}
