"""Cases of training computed from FLOPs: count, utilization and time."""

from collections.abc import Callable
from typing import NamedTuple

from app.estimator.hardware.catalog import find_accelerator
from app.estimator.models.architecture import Architecture
from app.estimator.models.lookup import llama_model_of_size
from app.estimator.training import flops
from app.estimator.training import step_time as pipeline
from evidence.accuracy.cases import CaseInputs, UnsupportedCaseError
from evidence.accuracy.kinds import Translator
from evidence.accuracy.question import CalculatorQuery, FormulaValue, build_query, formula_value

_HOUR = 3600.0

# Whether attention is counted besides six FLOPs per parameter.
_COUNTS_ATTENTION = {
    "6*N*D": False,
    "6*N*D, no attention term": False,
    "6ND + 12 L H Q T attention": True,
}
# PaLM 540B, whose convention includes attention: layers, heads × width, context.
_PALM_LAYERS, _PALM_WIDTH, _PALM_CONTEXT = 118, 48 * 256, 2048


def train_total_flops(inputs: CaseInputs) -> FormulaValue:
    """FLOPs of a training run."""
    parameters, tokens = inputs.read_number("params"), inputs.read_number("tokens")
    total = flops.training_flops_without_attention(parameters, tokens)
    if not inputs.read_meaning("convention", _COUNTS_ATTENTION, "6*N*D"):
        return formula_value(flops.training_flops_without_attention, total, report_alone=True)
    if abs(parameters / 540.35e9 - 1) < 0.01:
        layers, width, context = _PALM_LAYERS, _PALM_WIDTH, _PALM_CONTEXT
    else:
        model = llama_model_of_size(round(parameters))
        layers, width, context = model.layers, model.hidden, 2048
    total += flops.unmasked_attention_training_flops_per_token(width, layers, context) * tokens
    return formula_value(
        flops.unmasked_attention_training_flops_per_token, total, report_alone=True
    )


_CAUSAL = "forward+backward, causal attention counted half"
_MEGATRON = (
    "Megatron: causal attention counted half, logits counted, input embedding not; "
    "sliding layers at their window"
)
_LORA = "Megatron-Bridge LoRA accounting"


def train_flops_per_token(inputs: CaseInputs) -> CalculatorQuery:
    """FLOPs per token in a named convention."""
    model, context = inputs.read_model(), inputs.read_int("seq")
    convention = inputs.read_meaning(
        "convention", {_CAUSAL: "causal", _MEGATRON: "causal", _LORA: "lora"}
    )
    inputs.ignore("method")
    if convention == "lora":
        # Two passes, because frozen weights need no gradient. The published tables count
        # attention over packed samples, which are short.
        return build_query("model", "forward_flops", 2.0, model=model, sequence=1)
    return build_query("model", "training_flops", model=model, sequence=context)


_FULL = "model FLOPs, full (not causal-halved) attention"
_PALM_MFU = "6N + 12 L H Q T (full attention), no recompute"
_HARDWARE = "hardware FLOPs with selective recompute"
_MOSAIC = "6*N + 12*L*d*s per token (full attention, N includes tied embedding and positions)"


def train_mfu(inputs: CaseInputs) -> FormulaValue:
    """Model FLOPs utilization from a measured step time or rate, in percent."""
    peak = inputs.read_number("peak_tflops", 0) * 1e12
    card = str(inputs.read_any("gpu", ""))
    if not peak and card:
        peak = find_accelerator(card).dense_peak_rate("bf16") or 0.0
    if inputs.has("achieved_tflops_per_gpu"):
        inputs.ignore("gpus", "seq", "model", "attention", "convention")
        reached = inputs.read_number("achieved_tflops_per_gpu") * 1e12
        return formula_value(
            flops.flops_utilization, 100 * flops.flops_utilization(reached, 1.0, peak)
        )
    speed = _read_training_speed(inputs)
    share = 100 * flops.flops_utilization(speed.flops_per_token, speed.tokens_per_second, peak)
    is_report_alone = speed.formula is not flops.training_flops_per_token
    return formula_value(speed.formula, share, report_alone=is_report_alone)


class TrainingSpeed(NamedTuple):
    """FLOPs per token by a formula, and the tokens per second of one GPU."""

    formula: Callable[..., float]
    flops_per_token: float
    tokens_per_second: float


def _read_training_speed(inputs: CaseInputs) -> TrainingSpeed:
    if inputs.has("model"):
        return _read_speed_of_model(inputs)
    convention = inputs.read_meaning(
        "convention", {_FULL: 1, _PALM_MFU: 2, _HARDWARE: 3, _MOSAIC: 2}
    )
    layers, context = inputs.read_int("layers"), inputs.read_int("seq")
    if convention == 2:
        width = inputs.read_int("heads") * inputs.read_int("head_dim")
        each = 6 * inputs.read_number("params")
        each += flops.unmasked_attention_training_flops_per_token(width, layers, context)
        rate = inputs.read_number("tokens_per_s") / inputs.read_number("chips")
        return TrainingSpeed(flops.unmasked_attention_training_flops_per_token, each, rate)
    hidden = inputs.read_int("hidden")
    inputs.ignore("heads")
    each = flops.narayanan_training_flops_per_token(
        layers, hidden, inputs.read_int("vocab"), context
    )
    if convention == 3:
        # Scores are computed twice more: in the recomputed forward pass, and in the backward.
        each += flops.unmasked_attention_training_flops_per_token(hidden, layers, context)
    tokens = inputs.read_int("global_batch") * context
    rate = tokens / inputs.read_number("step_time_s") / inputs.read_int("gpus")
    return TrainingSpeed(flops.narayanan_training_flops_per_token, each, rate)


def _read_speed_of_model(inputs: CaseInputs) -> TrainingSpeed:
    model, context = inputs.read_architecture(), inputs.read_int("seq")
    convention = inputs.read_any("convention", "")
    attention = inputs.read_any("attention", "")
    inputs.ignore("gpus", "global_batch")
    rate = inputs.read_number("tokens_per_s_per_gpu")
    if convention == _MOSAIC:
        return TrainingSpeed(
            flops.unmasked_attention_training_flops_per_token,
            _mosaic_flops_per_token(model, context),
            rate,
        )
    if convention not in ("", _FULL):
        raise UnsupportedCaseError(f"convention “{convention}” is not known for a model")
    causal = convention != _FULL and "non-causal" not in str(attention)
    each = flops.training_flops_per_token(model, context, causal=causal)
    return TrainingSpeed(flops.training_flops_per_token, each, rate)


def _mosaic_flops_per_token(model: Architecture, context: int) -> float:
    parameters = model.parameters + (context - model.learned_positions) * model.hidden
    width = model.heads * model.head_dim
    return 6 * parameters + flops.unmasked_attention_training_flops_per_token(
        width, model.layers, context
    )


_WALL = {"8TP/(nX)": 8, "8TP/(nX) (full recompute)": 8, "": 0}


def train_time(inputs: CaseInputs) -> FormulaValue:
    """Training time from given rates [s]."""
    tokens, gpus = inputs.read_number("tokens"), inputs.read_number("gpus", 1)
    passes = inputs.read_meaning("formula", _WALL)
    if inputs.has("gpu_hours_per_trillion_tokens"):
        inputs.ignore("params")
        hours = inputs.read_number("gpu_hours_per_trillion_tokens") * tokens / 1e12
        seconds = wall_time(hours * _HOUR, 1.0, gpus)
    elif inputs.has("tokens_per_s_per_gpu"):
        inputs.ignore("params")
        seconds = wall_time(tokens, inputs.read_number("tokens_per_s_per_gpu"), gpus)
    else:
        work = (passes or 6) * tokens * inputs.read_number("params")
        seconds = wall_time(work, inputs.read_number("achieved_tflops") * 1e12, gpus)
    return formula_value(wall_time, seconds, report_alone=True)


def wall_time(work: float, rate: float, gpus: float) -> float:
    """Return the time of `gpus` GPUs that each do `rate` of the work per second [s].

    >>> wall_time(1.4e12, 380, 2048)
    1798930.9210526317
    """
    return work / (rate * gpus)


def pp_bubble(inputs: CaseInputs) -> FormulaValue:
    """Pipeline bubble: idle over ideal time."""
    inputs.ignore("definition")
    inputs.read_meaning("schedule", dict.fromkeys(("1F1B", "GPipe/1F1B", "interleaved"), True))
    stages, batches = inputs.read_int("stages"), inputs.read_int("microbatches")
    value = pipeline.pipeline_bubble(stages, batches, inputs.read_int("virtual_stages", 1))
    return formula_value(pipeline.pipeline_bubble, value)


KINDS: dict[str, Translator] = {
    "train_total_flops": train_total_flops,
    "train_flops_per_token": train_flops_per_token,
    "train_mfu": train_mfu,
    "train_time": train_time,
    "pp_bubble": pp_bubble,
}
