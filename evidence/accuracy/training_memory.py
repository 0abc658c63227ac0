"""Cases of measured training memory: Megatron, torchtitan, Transformers, a published bar chart."""

import functools
from typing import Any, NamedTuple

from app.estimator.memory.activations import gpt_layer_bytes
from app.estimator.memory.model_states import (
    state_bytes_per_parameter,
    state_bytes_under_zero_stage,
)
from app.estimator.memory.parallel_layout import ParallelLayout, micro_batches_in_flight
from evidence.accuracy.cases import CaseInputs, UnsupportedCaseError
from evidence.accuracy.kinds import Translator
from evidence.accuracy.question import CalculatorQuery, FormulaValue, build_query, formula_value

MEGATRON_2025 = (
    "Megatron-LM 0.14, bf16, fp32 main grads, distributed optimizer (ZeRO-1), "
    "sequence parallel, flash attention, fused cross-entropy, no recompute"
)
TORCHTITAN = "torchtitan FSDP2, bf16 mixed precision (fp32 master shards), AdamW"


class TorchtitanRun(NamedTuple):
    """Whether the loss was compiled, and tensor parallelism was asynchronous."""

    has_fused_loss: bool
    is_overlapped: bool


_TORCHTITAN_RUNS = {
    "torchtitan": TorchtitanRun(True, False),
    TORCHTITAN: TorchtitanRun(False, False),
    f"{TORCHTITAN}, async TP": TorchtitanRun(False, True),
    f"{TORCHTITAN}, async TP, 1F1B": TorchtitanRun(False, True),
    f"{TORCHTITAN}, async TP, interleaved 1F1B": TorchtitanRun(False, True),
}


def train_mem_per_gpu(inputs: CaseInputs) -> CalculatorQuery | FormulaValue:
    """Memory of one GPU, or of the part that the case names."""
    if not inputs.has("model"):
        return _korthikanti_bar(inputs)
    framework = str(inputs.read_any("framework", ""))
    if framework == MEGATRON_2025:
        return _megatron_query(inputs)
    if framework in _TORCHTITAN_RUNS:
        return _torchtitan_query(inputs, framework)
    raise UnsupportedCaseError(f"framework “{framework}” is not known")


_PARTS_OF_BAR = {
    "parameters+gradients+optimizer, first stage": "states",
    "activations, tensor parallel only, no recompute": "tp",
    "activations, sequence parallel + selective recompute": "tp+sp+selective",
}


def _korthikanti_bar(inputs: CaseInputs) -> FormulaValue:
    """A bar of Korthikanti (2022), figure 1: only the layers of the first stage."""
    layers, hidden = inputs.read_int("layers"), inputs.read_number("hidden")
    inputs.ignore("vocab", "global_batch", "dp")
    inputs.read_meaning("precision", {"fp16, fp32 master/grads Adam": True})
    part = str(inputs.read_meaning("part", _PARTS_OF_BAR))
    tensor, pipeline = inputs.read_int("tp", 1), inputs.read_int("pp", 1)
    layout = ParallelLayout(
        gpus=tensor * pipeline,
        tensor=tensor,
        pipeline=pipeline,
        chunks_per_stage=inputs.read_int("interleave", 1),
    )
    heads, sequence = inputs.read_number("heads"), inputs.read_number("seq")
    batch = inputs.read_number("microbatch", 1)
    share = layers / layout.pipeline
    if part == "states":
        parameters = 12 * hidden**2 * share / layout.tensor
        each = state_bytes_per_parameter("adamw", "bf16-mixed-fp32-grads")
        return formula_value(
            state_bytes_under_zero_stage, sum(state_bytes_under_zero_stage(parameters, each, 1, 0))
        )
    one = gpt_layer_bytes(sequence, batch, hidden, heads, layout.tensor, technique=part)
    value = one * share * micro_batches_in_flight(0, layout, 10**6)
    return formula_value(gpt_layer_bytes, value, report_alone=True)


_MEGATRON_PART = {"peak torch allocated, worst rank": True}


def _megatron_query(inputs: CaseInputs) -> CalculatorQuery:
    """Peak allocated memory in PyTorch on the fullest rank."""
    inputs.read_meaning("part", _MEGATRON_PART)
    inputs.ignore("dp")
    return build_query(
        "training-memory",
        "allocated",
        **_read_layout(inputs),
        expert_parallel=inputs.read_int("ep", 1),
        interleave=inputs.read_int("interleave", 1),
        zero="1",
        micro_batch=inputs.read_int("microbatch", 1),
        micro_batches=inputs.read_int("num_microbatches", 1),
        precision="bf16-mixed-fp32-grads",
        recompute="none",
        framework="megatron",
        fused_loss=True,
    )


def _read_layout(inputs: CaseInputs) -> dict[str, Any]:
    return {
        "model": inputs.read_model(),
        "gpu": inputs.read_gpu_id(),
        "gpus": inputs.read_int("gpus"),
        "tensor_parallel": inputs.read_int("tp", 1),
        "pipeline_parallel": inputs.read_int("pp", 1),
        "context_parallel": inputs.read_int("cp", 1),
        "sequence": inputs.read_int("seq"),
    }


_CHECKPOINTING = {"full": "full", "selective op": "operators", "none": "none"}
_RESERVED = {"peak reserved (torchtitan log)": True, "peak reserved": True}


def _torchtitan_query(inputs: CaseInputs, framework: str) -> CalculatorQuery:
    """Peak reserved memory in PyTorch on the fullest rank of an FSDP2 run.

    FSDP2 shards weights, gradients and moments in FP32 and gathers 16-bit copies.
    """
    inputs.read_meaning("part", _RESERVED)
    inputs.ignore("float8", "fsdp")
    run = _TORCHTITAN_RUNS[framework]
    layout = _read_layout(inputs)
    stages = layout["pipeline_parallel"]
    batch, rest = divmod(inputs.read_int("local_batch", 1), stages)
    if rest:
        raise UnsupportedCaseError(f"local_batch is no multiple of {stages} stages")
    return build_query(
        "training-memory",
        "reserved",
        **layout,
        interleave=2 if "interleaved" in framework else 1,
        zero="3",
        micro_batch=batch,
        micro_batches=stages,
        precision="fp32",
        recompute=inputs.read_meaning("activation_checkpointing", _CHECKPOINTING),
        framework="torch" if inputs.read_bool("compile") else "torch-eager",
        fused_loss=run.has_fused_loss,
        overlapped=run.is_overlapped,
    )


def _fine_tuning_query(method: str, inputs: CaseInputs) -> CalculatorQuery:
    """Peak allocated memory of the Transformers Trainer, with FSDP on several GPUs."""
    layout = _read_layout(inputs)
    kernels = str(inputs.read_any("kernels", ""))
    adapters: dict[str, Any] = {}
    if method != "full":
        adapters = {"rank": inputs.read_int("rank"), "targets": str(inputs.read_any("targets"))}
    return build_query(
        "training-memory",
        "allocated",
        **layout,
        zero="0" if layout["gpus"] == 1 else "3",
        micro_batch=inputs.read_int("microbatch", 1),
        precision=str(inputs.read_any("precision", "bf16")),
        recompute="full",
        framework="transformers",
        fused_loss="liger" in kernels,
        method=method,
        **adapters,
    )


KINDS: dict[str, Translator] = {
    "train_mem_per_gpu": train_mem_per_gpu,
    "train_mem_full": functools.partial(_fine_tuning_query, "full"),
    "train_mem_lora": functools.partial(_fine_tuning_query, "lora"),
    "train_mem_qlora": functools.partial(_fine_tuning_query, "qlora"),
}
# Bytes per logit and the working memory of eager operations were read from these rows.
CALIBRATION = frozenset(
    {
        "train_mem_per_gpu/llama-3-8b/032",
        "train_mem_per_gpu/llama-3-8b/033",
    }
)
