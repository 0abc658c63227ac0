"""Cases of training time: steps, rates, GPU-hours and collectives."""

import math
from typing import Any

from app.estimator.hardware.catalog import find_accelerator
from app.estimator.training.step_time import LOST
from evidence.accuracy.cases import CaseInputs, UnsupportedCaseError, as_config
from evidence.accuracy.kinds import Translator
from evidence.accuracy.question import CalculatorQuery, query_calculator

_YEAR = 365.25 * 86400.0
# Network rates per GPU of the systems used for the published runs.
_NICS = {"Ampere": 25e9, "Hopper": 50e9, "Blackwell": 50e9}
# ZeRO-3 of 2021 gathered weights rank by rank, without sharing within a node.
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

# Names of training software in cases of GPU-hours.
_LLAMA_3 = "PyTorch with FSDP, tensor and pipeline parallelism, 2024"
_HAI_LLM_2023 = "HAI-LLM, 2023"
_HAI_LLM_2024 = "HAI-LLM, 2024"
_HAI_LLM = "HAI-LLM, DualPipe"
_XFORMERS = "PyTorch with xformers, 2023"
_STARCODER = "Megatron-LM with FlashAttention, 2023"
_GRANITE = "Megatron with FlashAttention 2, 2024"
_NANOTRON = "nanotron with FlashAttention 2, 2025"
_OLMO_CORE = "OLMo-core, FSDP, compiled, FlashAttention"
_NEOX = "GPT-NeoX, 2023"
_NEOX_FLASH = "GPT-NeoX with FlashAttention, 2023"
_SAGEMAKER = "SageMaker, ZeRO-3, 2022"
_UNSTATED = "not stated"

_FRAMEWORKS: dict[str, str] = {
    _LLAMA_3: "compiled",
    _HAI_LLM: "tuned",
    _HAI_LLM_2024: "tuned",
    _UNSTATED: "compiled",
    # Fused kernels, and attention kernels from before FlashAttention 3.
    _HAI_LLM_2023: "compiled",
    _GRANITE: "compiled",
    _NANOTRON: "compiled",
    _OLMO_CORE: "compiled",
    # From before PyTorch had a compiler: each operation is a separate kernel.
    _XFORMERS: "eager",
    _NEOX_FLASH: "eager",
    _STARCODER: "megatron",
    # From before FlashAttention, or with heads too wide for it.
    _NEOX: "megatron-2022",
    _SAGEMAKER: "megatron-2022",
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
_SHARDED = frozenset({_MOSAIC, _ZERO_2021, _OLMO_CORE, _SAGEMAKER}) | {
    f for f in _FRAMEWORKS if f.startswith("torchtitan")
}
_FP32_GRADIENTS = frozenset({_MEGATRON_2025, _STARCODER})
_NETWORKS: dict[str, str | None] = {"": None, "efa": "efa"}
_PRECISIONS = {
    "": "bf16",
    "BF16": "bf16",
    "bf16": "bf16",
    "amp_bf16": "bf16",
    "FP8": "fp8",
    "fp8": "fp8",
    "MXFP8": "mxfp8",
    "NVFP4": "nvfp4",
}
_RECOMPUTE: dict[str, str] = {
    "": "none",
    "none": "none",
    "full": "full",
    "selective": "selective",
}
_CHECKPOINTING: dict[str, str] = {
    "full": "full",
    "selective op": "operators",
    "": "none",
}


def train_step_time(asked: CaseInputs) -> CalculatorQuery:
    """Time of one optimizer step [s]."""
    return query_calculator("training-time", "step_time", **_setting(asked))


def train_throughput(asked: CaseInputs) -> CalculatorQuery:
    """Tokens per second and GPU."""
    return query_calculator("training-time", "tokens_per_second_per_gpu", **_setting(asked))


def _setting(asked: CaseInputs) -> dict[str, Any]:
    framework = str(asked.any("framework", ""))
    if framework not in _FRAMEWORKS:
        raise UnsupportedCaseError(f"framework “{framework}” is not known")
    model, gpu = _model(asked), asked.card()
    software = _FRAMEWORKS[framework]
    if not asked.flag("compile", True) and software == "compiled":
        software = "eager"
    nic = _NICS.get(find_accelerator(gpu).architecture, 50e9)
    nic = asked.number("network_gbps", nic * 8 / 1e9) * 1e9 / 8
    if framework == _ZERO_2021:
        nic /= _UNSHARED
    return {
        "model": model,
        "gpu": gpu,
        **_plan(asked, framework),
        "sequence_parallel": asked.flag("sequence_parallel", software != _OLDEST),
        "gradients": "fp32" if framework in _FP32_GRADIENTS else None,
        "software": software,
        "network_rate": nic,
        "network": asked.word("network", _NETWORKS),
    }


def _model(asked: CaseInputs) -> str:
    """Return a model of the file, or a GPT given by its sizes in the case."""
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
    return as_config(sizes)


def _plan(asked: CaseInputs, framework: str) -> dict[str, Any]:
    tensor, pipeline = asked.whole("tp", 1), asked.whole("pp", 1)
    context, gpus = asked.whole("cp", 1), asked.whole("gpus")
    data = asked.whole("dp", max(1, gpus // (tensor * pipeline * context)))
    batch, batches = _batches(asked, pipeline, data)
    return {
        "gpus": gpus,
        "tensor_parallel": tensor,
        "pipeline_parallel": pipeline,
        "context_parallel": context,
        "expert_parallel": asked.whole("ep", 1),
        "interleave": _pieces(asked, framework, pipeline),
        "sequence": asked.whole("seq"),
        "micro_batch": batch,
        "global_batch": data * batch * batches,
        "number_format": _number_format(asked),
        "recompute": _recompute(asked),
        "zero": _zero(asked, framework),
    }


_OLDEST = "megatron-2022"


def _pieces(asked: CaseInputs, framework: str, pipeline: int) -> int:
    known = asked.whole("vp", 0) or asked.whole("interleave", 0)
    if known:
        return known
    interleaved = framework in (_INTERLEAVED, _MEGATRON_2021) and pipeline > 1
    return 2 if interleaved else 1


def _batches(asked: CaseInputs, pipeline: int, data: int) -> tuple[int, int]:
    """Return the sequences per micro-batch, and the micro-batches per step and replica."""
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


def _number_format(asked: CaseInputs) -> str:
    precision = str(asked.word("precision", _PRECISIONS))
    quantized = asked.flag("float8", False)
    words = {"": False, "bf16": False, "float8 tensorwise": True}
    quantized |= bool(asked.word("quant", words))
    return "fp8" if quantized else precision


def _recompute(asked: CaseInputs) -> str:
    whole = asked.any("activation_checkpointing", "")
    if isinstance(whole, bool):
        whole = "full" if whole else ""
    if whole not in _CHECKPOINTING:
        raise UnsupportedCaseError(f"activation_checkpointing “{whole}” is not known")
    named = str(asked.word("recompute", _RECOMPUTE))
    return _CHECKPOINTING[whole] if named == "none" else named


def _zero(asked: CaseInputs, framework: str) -> str:
    shards = str(asked.any("fsdp", "0"))
    stage = asked.whole("zero_stage", 0)
    if framework in _SHARDED or stage == 3:
        return "3"
    if not shards.isdigit():
        raise UnsupportedCaseError(f"fsdp “{shards}” is not known")
    if int(shards) > 0:
        return "3"
    return "0" if _FRAMEWORKS[framework] == _OLDEST and not stage else "1"


def train_gpu_hours(asked: CaseInputs) -> CalculatorQuery:
    """GPU-hours of a published run, restarts included.

    If the source gives a layout, it is used. Lost time is the usual share of booked time,
    unless the case states it.
    """
    share = asked.number("lost", LOST)
    if asked.has("gpus"):
        tokens = asked.number("tokens")
        lost = {"other_time": share, **_NEVER_FAILS}
        setting = _setting(asked)
        return query_calculator("training-time", "gpu_hours", tokens=tokens, **lost, **setting)
    framework = asked.any("framework")
    return query_calculator(
        "accelerator-choice",
        "gpu_hours",
        job="training",
        model=asked.model(),
        only=asked.card(),
        tokens=asked.number("tokens"),
        number_format=_number_format(asked),
        software=framework and _FRAMEWORKS[framework],
        lost=share,
    )


# One share covers all lost time, in place of failures and checkpoints.
_NEVER_FAILS = {
    "mtbf_per_gpu": 1000 * _YEAR,
    "checkpoint_time": 0.1,
    "restart_time": 0.0,
}


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
_OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "alltoall")


def collective(asked: CaseInputs) -> CalculatorQuery:
    """Time of one collective [s]."""
    asked.note("library", "size_convention", "topology")
    name = str(asked.any("system", ""))
    if name not in _SYSTEMS:
        raise UnsupportedCaseError(f"system “{name}” is not known")
    gpus, nodes = asked.whole("gpus"), asked.whole("nodes", 1)
    return query_calculator(
        "collectives",
        "time",
        operation=asked.word("op", {op: op for op in _OPERATIONS}),
        message=asked.number("message_bytes"),
        gpu=_SYSTEMS[name],
        gpus=gpus,
        network="efa" if name.startswith("AWS") and nodes > 1 else None,
    )


# Cases among the Megatron-LM rows on A100 that constants were fitted to; the other
# rows of that fit are not cases.
CALIBRATION = frozenset(
    f"{kind}/a100-sxm-80gb/{number}"
    for kind, numbers in (
        ("train_step_time", ("024", "026", "029")),
        ("train_throughput", ("036", "037", "041")),
    )
    for number in numbers
)

KINDS: dict[str, Translator] = {
    "train_step_time": train_step_time,
    "train_throughput": train_throughput,
    "train_gpu_hours": train_gpu_hours,
    "collective_time": collective,
}
