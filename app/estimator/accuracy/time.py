"""Cases of time in training: steps, rates, accelerator-hours and collectives."""

import dataclasses
import math

from app.estimator.accuracy.cases import Asked, Inexpressible
from app.estimator.accuracy.kinds import Predictor
from app.estimator.accuracy.prediction import Prediction, between
from app.estimator.confidence import interval
from app.estimator.hardware.accelerators import Accelerator, find_accelerator
from app.estimator.hardware.networks import Fabric, collective_time, fabric_of
from app.estimator.hardware.traffic import Collective
from app.estimator.models.architecture import (
    Architecture,
    UnreadableConfig,
    from_config,
)
from app.estimator.timing.hours import gpu_hours
from app.estimator.timing.plan import SOFTWARE, Plan, Recompute, Software
from app.estimator.timing.step import step_time

# Adapter rates of the systems that the published runs were made on, per GPU.
_NICS = {"Ampere": 25e9, "Hopper": 50e9, "Blackwell": 50e9}
# ZeRO-3 of 2021 gathered weights rank by rank, without sharing them in a node.
_UNSHARED = 8

_MEGATRON_2025 = (
    "Megatron-LM 0.14, bf16, fp32 main grads, distributed optimizer (ZeRO-1), "
    "sequence parallel, flash attention, fused cross-entropy, no recompute"
)
_MEGATRON_2021 = "Megatron-LM 2021, fp16, interleaved 1F1B where pp>1"
_TITAN = "torchtitan FSDP2, bf16 mixed precision (fp32 master shards), AdamW"
_INTERLEAVED = f"{_TITAN}, async TP, interleaved 1F1B"
_ZERO_2021 = "DeepSpeed ZeRO-3 2021"
_MOSAIC = "MosaicML Composer FSDP + flash attention"

_FRAMEWORKS: dict[str, str] = {
    _MEGATRON_2025: "megatron",
    "Megatron-DeepSpeed": "megatron-2022",
    "Megatron-LM 2022, fp16": "megatron-2022",
    _MEGATRON_2021: "megatron-2022",
    "Megatron-LM PTD-P": "megatron-2022",
    _ZERO_2021: "megatron-2022",
    "Megatron-Bridge / NeMo 26.04.01": "tuned-2025",
    "Megatron-Bridge / NeMo 26.06": "tuned",
    "Megatron-Bridge / NeMo 26.08": "tuned",
    _MOSAIC: "eager",
    "torchtitan": "compiled",
    "torchtitan 2025-06, vanilla TP": "compiled",
    _TITAN: "compiled",
    f"{_TITAN}, async TP": "compiled",
    f"{_TITAN}, async TP, 1F1B": "compiled",
    _INTERLEAVED: "compiled",
}
_SHARDED = frozenset({_MOSAIC, _ZERO_2021}) | {
    f for f in _FRAMEWORKS if f.startswith("torchtitan")
}
_PRECISIONS = {
    "": "bf16",
    "BF16": "bf16",
    "bf16": "bf16",
    "amp_bf16": "bf16",
    "FP8": "fp8",
    "MXFP8": "mxfp8",
    "NVFP4": "nvfp4",
}
_RECOMPUTE: dict[str, Recompute] = {
    "": "none",
    "none": "none",
    "full": "full",
    "selective": "selective",
}
_CHECKPOINTING: dict[str, Recompute] = {
    "full": "full",
    "selective op": "operators",
    "": "none",
}


def train_step_time(asked: Asked) -> Prediction:
    """One optimizer step [s]."""
    model, gpu, fabric, plan = _setting(asked)
    seconds = step_time(model, gpu, fabric, plan).total
    return between(seconds, *interval(_interval_of(model)))


def train_throughput(asked: Asked) -> Prediction:
    """Tokens per second and GPU."""
    model, gpu, fabric, plan = _setting(asked)
    seconds = step_time(model, gpu, fabric, plan).total
    low, high = interval(_interval_of(model))
    return between(plan.tokens / seconds / plan.gpus, 1 / high, 1 / low)


def _interval_of(model: Architecture) -> str:
    return "training-routed" if model.is_routed else "training"


def _setting(asked: Asked) -> tuple[Architecture, Accelerator, Fabric, Plan]:
    framework = str(asked.any("framework", ""))
    if framework not in _FRAMEWORKS:
        raise Inexpressible(f"framework “{framework}” is not known")
    model, gpu = _model(asked), asked.card()
    software = SOFTWARE[_FRAMEWORKS[framework]]
    if not asked.flag("compile", True) and software.id == "compiled":
        software = SOFTWARE["eager"]
    nic = _NICS.get(gpu.architecture, 50e9)
    if framework == _ZERO_2021:
        nic /= _UNSHARED
    plan = _plan(asked, framework, software)
    return model, gpu, fabric_of(gpu, nic_rate=nic), plan


def _model(asked: Asked) -> Architecture:
    """A model of the file, or a GPT given by its sizes in the case."""
    asked.note("params_b", "sharding", "kv_heads")
    if not asked.has("layers"):
        return asked.model()
    asked.note("model")
    sizes = {
        "model_type": "gpt2",
        "n_layer": asked.whole("layers"),
        "n_embd": asked.whole("hidden"),
        "n_head": asked.whole("heads"),
        "vocab_size": asked.whole("vocab", 51200),
        "n_positions": 2048,
    }
    try:
        return from_config(sizes)
    except UnreadableConfig as error:
        raise Inexpressible(str(error)) from error


def _plan(asked: Asked, framework: str, software: Software) -> Plan:
    tensor, pipeline = asked.whole("tp", 1), asked.whole("pp", 1)
    context, gpus = asked.whole("cp", 1), asked.whole("gpus")
    data = asked.whole("dp", max(1, gpus // (tensor * pipeline * context)))
    batch, batches = _batches(asked, pipeline, data)
    return Plan(
        tensor=tensor,
        pipeline=pipeline,
        data=data,
        context=context,
        expert=asked.whole("ep", 1),
        pieces=_pieces(asked, framework, pipeline),
        sequence=asked.whole("seq"),
        micro_batch=batch,
        micro_batches=batches,
        number_format=_number_format(asked),
        recompute=_recompute(asked),
        zero=_zero(asked, framework),
        sequence_parallel=asked.flag("sequence_parallel", software.id != _OLDEST),
        software=software,
        gradient_bytes=4 if framework == _MEGATRON_2025 else 2,
    )


_OLDEST = "megatron-2022"


def _pieces(asked: Asked, framework: str, pipeline: int) -> int:
    known = asked.whole("vp", 0) or asked.whole("interleave", 0)
    if known:
        return known
    interleaved = framework in (_INTERLEAVED, _MEGATRON_2021) and pipeline > 1
    return 2 if interleaved else 1


def _batches(asked: Asked, pipeline: int, data: int) -> tuple[int, int]:
    """Sequences of a micro-batch, and micro-batches per step and replica."""
    if asked.has("local_batch"):
        local = asked.whole("local_batch")
        asked.note("global_batch")
        return (1, local) if pipeline > 1 else (local, 1)
    whole = asked.whole("global_batch", 0)
    per_replica = max(1, whole // data)
    usual = min(4, per_replica)
    batch = asked.whole("microbatch", usual)
    given = asked.whole("grad_accum", 0) or asked.whole("num_microbatches", 0)
    return batch, given or max(1, math.ceil(per_replica / batch))


def _number_format(asked: Asked) -> str:
    precision = str(asked.word("precision", _PRECISIONS))
    quantised = asked.flag("float8", False)
    words = {"": False, "bf16": False, "float8 tensorwise": True}
    quantised |= bool(asked.word("quant", words))
    return "fp8" if quantised else precision


def _recompute(asked: Asked) -> Recompute:
    whole = asked.any("activation_checkpointing", "")
    if isinstance(whole, bool):
        whole = "full" if whole else ""
    if whole not in _CHECKPOINTING:
        raise Inexpressible(f"activation_checkpointing “{whole}” is not known")
    named: Recompute = asked.word("recompute", _RECOMPUTE)
    return _CHECKPOINTING[whole] if named == "none" else named


def _zero(asked: Asked, framework: str) -> int:
    shards = str(asked.any("fsdp", "0"))
    stage = asked.whole("zero_stage", 0)
    if framework in _SHARDED or stage == 3:
        return 3
    if not shards.isdigit():
        raise Inexpressible(f"fsdp “{shards}” is not known")
    if int(shards) > 0:
        return 3
    return 0 if _FRAMEWORKS[framework] == _OLDEST else 1


def train_gpu_hours(asked: Asked) -> Prediction:
    """Accelerator-hours of a published run, restarts included."""
    model, gpu = asked.model(), asked.card()
    hours = gpu_hours(model, gpu, asked.number("tokens"))
    return between(hours, *interval("gpu-hours"))


_SYSTEMS = {
    "a100_sxm": "a100-sxm4-80",
    "h100_sxm": "h100-sxm5-80",
    "h200_sxm": "h200-sxm5-141",
    "b200_sxm": "b200-sxm",
    "gb200": "gb200-gpu",
    "l40s": "l40s",
    "AWS P6-B200 (NVLink5 900 GB/s/GPU one way)": "b200-sxm",
    "AWS P6-B200 (NVLink5 900 GB/s + 50 GB/s EFA per GPU)": "b200-sxm",
    "MI300X (Infinity Fabric 64 GB/s x 7 links)": "mi300x",
}
_OPERATIONS: dict[str, Collective] = {
    "all_reduce": "all_reduce",
    "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "alltoall": "alltoall",
}


def collective(asked: Asked) -> Prediction:
    """One collective [s]."""
    asked.note("library", "size_convention", "topology")
    name = str(asked.any("system", ""))
    if name not in _SYSTEMS:
        raise Inexpressible(f"system “{name}” is not known")
    gpu = find_accelerator(_SYSTEMS[name])
    nodes = asked.whole("nodes", 1)
    fabric = fabric_of(gpu, nic="efa" if name.startswith("AWS") else "infiniband")
    if nodes == 1:
        fabric = dataclasses.replace(fabric, domain=max(8, fabric.domain))
    operation = asked.word("op", _OPERATIONS)
    ranks, size = asked.whole("gpus"), asked.number("message_bytes")
    seconds = collective_time(operation, ranks, size, fabric)
    return between(seconds, *interval("collective"))


# Rows of Megatron-LM on A100 among the cases that constants were fitted on; the
# other rows of that fit are not cases.
CALIBRATION = frozenset(
    f"{kind}/a100-sxm-80gb/{number}"
    for kind, numbers in (
        ("train_step_time", ("024", "026", "029")),
        ("train_throughput", ("036", "037", "041")),
    )
    for number in numbers
)

KINDS: dict[str, Predictor] = {
    "train_step_time": train_step_time,
    "train_throughput": train_throughput,
    "train_gpu_hours": train_gpu_hours,
    "collective_time": collective,
}
