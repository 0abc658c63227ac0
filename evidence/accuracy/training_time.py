"""Cases of training time: steps, rates, GPU-hours and collectives."""

import math
from typing import Any, NamedTuple

from app.estimator.hardware.catalog import find_accelerator
from app.estimator.models.lookup import find_model
from app.estimator.training.step_time import LOST_TIME_SHARE, find_fastest_usual_plan
from app.estimator.training.training_plan import (
    USUAL_SOFTWARE,
    TrainingPlan,
    find_training_software,
)
from evidence.accuracy.cases import CaseInputs, UnsupportedCaseError, config_as_input
from evidence.accuracy.kinds import Translator
from evidence.accuracy.question import CalculatorQuery, build_query
from evidence.accuracy.training_memory import MEGATRON_2025, TORCHTITAN

_YEAR = 365.25 * 86400.0
# Network rates per GPU of the systems used for the published runs.
_NIC_RATES = {"Ampere": 25e9, "Hopper": 50e9, "Blackwell": 50e9}
# ZeRO-3 of 2021 summarize_results weights rank by rank, without sharing within a node.
_RANKS_PER_NODE = 8

_MEGATRON_2021 = "Megatron-LM 2021, fp16, interleaved 1F1B where pp>1"
_INTERLEAVED = f"{TORCHTITAN}, async TP, interleaved 1F1B"
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
    MEGATRON_2025: "megatron",
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
    TORCHTITAN: "compiled",
    f"{TORCHTITAN}, async TP": "compiled",
    f"{TORCHTITAN}, async TP, 1F1B": "compiled",
    _INTERLEAVED: "compiled",
}
_FULLY_SHARDED = frozenset({_MOSAIC, _ZERO_2021, _OLMO_CORE, _SAGEMAKER}) | {
    f for f in _FRAMEWORKS if f.startswith("torchtitan")
}
_FP32_GRADIENTS = frozenset({MEGATRON_2025, _STARCODER})
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


def train_step_time(inputs: CaseInputs) -> CalculatorQuery:
    """Time of one optimizer step [s]."""
    return build_query("training-time", "step_time", **_read_run(inputs))


def train_throughput(inputs: CaseInputs) -> CalculatorQuery:
    """Tokens per second and GPU."""
    return build_query("training-time", "tokens_per_second_per_gpu", **_read_run(inputs))


def _read_run(inputs: CaseInputs) -> dict[str, Any]:
    framework = str(inputs.read_any("framework", ""))
    if framework not in _FRAMEWORKS:
        raise UnsupportedCaseError(f"framework “{framework}” is not known")
    model, gpu = _read_model(inputs), inputs.read_gpu_id()
    software = _FRAMEWORKS[framework]
    if not inputs.read_bool("compile", True) and software == "compiled":
        software = "eager"
    nic = _NIC_RATES.get(find_accelerator(gpu).architecture, 50e9)
    nic = inputs.read_number("network_gbps", nic * 8 / 1e9) * 1e9 / 8
    if framework == _ZERO_2021:
        nic /= _RANKS_PER_NODE
    return {
        "model": model,
        "gpu": gpu,
        **_read_plan(inputs, framework),
        "sequence_parallel": inputs.read_bool("sequence_parallel", software != _OLDEST),
        "gradients": "fp32" if framework in _FP32_GRADIENTS else None,
        "software": software,
        "network_rate": nic,
        "network": inputs.read_meaning("network", _NETWORKS),
    }


def _read_model(inputs: CaseInputs) -> str:
    """Return a model of the file, or a GPT given by its sizes in the case."""
    inputs.ignore("params_b", "sharding", "kv_heads")
    if not inputs.has("layers"):
        return inputs.read_model()
    inputs.ignore("model")
    gpt = {
        "model_type": "gpt2",
        "n_layer": inputs.read_int("layers"),
        "n_embd": inputs.read_int("hidden"),
        "n_head": inputs.read_int("heads"),
        "vocab_size": inputs.read_int("vocab", 51200),
        "n_positions": 2048,
    }
    return config_as_input(gpt)


def _read_plan(inputs: CaseInputs, framework: str) -> dict[str, Any]:
    tensor, pipeline = inputs.read_int("tp", 1), inputs.read_int("pp", 1)
    context, gpus = inputs.read_int("cp", 1), inputs.read_int("gpus")
    data = inputs.read_int("dp", max(1, gpus // (tensor * pipeline * context)))
    micro_batches = _read_micro_batches(inputs, pipeline, data)
    return {
        "gpus": gpus,
        "tensor_parallel": tensor,
        "pipeline_parallel": pipeline,
        "context_parallel": context,
        "expert_parallel": inputs.read_int("ep", 1),
        "interleave": _read_chunks_per_stage(inputs, framework, pipeline),
        "sequence": inputs.read_int("seq"),
        "micro_batch": micro_batches.sequences,
        "global_batch": data * micro_batches.sequences * micro_batches.per_step,
        "number_format": _read_number_format(inputs),
        "recompute": _read_recomputation(inputs),
        "zero": _read_zero_stage(inputs, framework),
    }


_OLDEST = "megatron-2022"


def _read_chunks_per_stage(inputs: CaseInputs, framework: str, pipeline: int) -> int:
    known = inputs.read_int("vp", 0) or inputs.read_int("interleave", 0)
    if known:
        return known
    interleaved = framework in (_INTERLEAVED, _MEGATRON_2021) and pipeline > 1
    return 2 if interleaved else 1


class MicroBatches(NamedTuple):
    """The sequences of a micro-batch, and the micro-batches of a step on a replica."""

    sequences: int
    per_step: int


def _read_micro_batches(inputs: CaseInputs, pipeline: int, data: int) -> MicroBatches:
    if inputs.has("local_batch"):
        local = inputs.read_int("local_batch")
        inputs.ignore("global_batch")
        return MicroBatches(1, local) if pipeline > 1 else MicroBatches(local, 1)
    whole = inputs.read_int("global_batch", 0)
    per_replica = max(1, whole // data)
    usual = min(4, per_replica)
    batch = inputs.read_int("microbatch", usual)
    given = inputs.read_int("grad_accum", 0) or inputs.read_int("num_microbatches", 0)
    return MicroBatches(batch, given or max(1, math.ceil(per_replica / batch)))


def _read_number_format(inputs: CaseInputs) -> str:
    precision = str(inputs.read_meaning("precision", _PRECISIONS))
    quantized = inputs.read_bool("float8", False)
    words = {"": False, "bf16": False, "float8 tensorwise": True}
    quantized |= bool(inputs.read_meaning("quant", words))
    return "fp8" if quantized else precision


def _read_recomputation(inputs: CaseInputs) -> str:
    whole = inputs.read_any("activation_checkpointing", "")
    if isinstance(whole, bool):
        whole = "full" if whole else ""
    if whole not in _CHECKPOINTING:
        raise UnsupportedCaseError(f"activation_checkpointing “{whole}” is not known")
    named = str(inputs.read_meaning("recompute", _RECOMPUTE))
    return _CHECKPOINTING[whole] if named == "none" else named


def _read_zero_stage(inputs: CaseInputs, framework: str) -> str:
    shards = str(inputs.read_any("fsdp", "0"))
    stage = inputs.read_int("zero_stage", 0)
    if framework in _FULLY_SHARDED or stage == 3:
        return "3"
    if not shards.isdigit():
        raise UnsupportedCaseError(f"fsdp “{shards}” is not known")
    if int(shards) > 0:
        return "3"
    return "0" if _FRAMEWORKS[framework] == _OLDEST and not stage else "1"


def train_gpu_hours(inputs: CaseInputs) -> CalculatorQuery:
    """GPU-hours of a published run, restarts included.

    If the source gives a layout, it is used; else the usual one of such runs. Lost time is the
    usual share of booked time, unless the case states it.
    """
    lost = {"other_time": inputs.read_number("lost", LOST_TIME_SHARE), **_NEVER_FAILS}
    tokens = inputs.read_number("tokens")
    setting = _read_run(inputs) if inputs.has("gpus") else _read_usual_run(inputs)
    return build_query("training-time", "gpu_hours", tokens=tokens, **lost, **setting)


def _read_usual_run(inputs: CaseInputs) -> dict[str, Any]:
    """Return the fastest of the usual layouts on a usual cluster."""
    name, gpu = inputs.read_model(), inputs.read_gpu_id()
    model, framework = find_model(name), inputs.read_any("framework")
    software = find_training_software(
        _FRAMEWORKS[framework] if framework else USUAL_SOFTWARE, model
    )
    sequence = min(model.max_context or 4096, 8192)
    plan = TrainingPlan(
        sequence=sequence,
        micro_batch=8192 // sequence,
        number_format=_read_number_format(inputs),
        recompute="selective",
        software=software,
    )
    plan = find_fastest_usual_plan(model, find_accelerator(gpu), plan, _USUAL_GPUS, _USUAL_BATCH)
    return {
        "model": name,
        "gpu": gpu,
        "gpus": plan.gpus,
        "tensor_parallel": plan.tensor,
        "pipeline_parallel": plan.pipeline,
        "expert_parallel": plan.expert,
        "interleave": plan.chunks_per_stage,
        "sequence": plan.sequence,
        "micro_batch": plan.micro_batch,
        "global_batch": plan.global_batch,
        "number_format": plan.number_format,
        "recompute": plan.recompute,
        "zero": str(plan.zero),
        "sequence_parallel": plan.sequence_parallel,
        "software": software.id,
    }


_USUAL_GPUS, _USUAL_BATCH = 1024, 4e6  # The batch is in tokens.


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


def collective(inputs: CaseInputs) -> CalculatorQuery:
    """Time of one collective [s]."""
    inputs.ignore("library", "size_convention", "topology")
    name = str(inputs.read_any("system", ""))
    if name not in _SYSTEMS:
        raise UnsupportedCaseError(f"system “{name}” is not known")
    gpus, nodes = inputs.read_int("gpus"), inputs.read_int("nodes", 1)
    return build_query(
        "collectives",
        "time",
        operation=inputs.read_meaning("op", {op: op for op in _OPERATIONS}),
        message=inputs.read_number("message_bytes"),
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
