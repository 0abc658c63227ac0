"""Cases of measured training memory: Megatron, torchtitan, Transformers, a published bar chart."""

import functools
from typing import Any

from app.estimator.memory.activations import gpt_layer_bytes
from app.estimator.memory.model_states import bytes_per_parameter, zero_bytes
from app.estimator.memory.parallel_layout import ParallelLayout, micro_batches_in_flight
from evidence.accuracy.cases import CaseInputs, UnsupportedCaseError
from evidence.accuracy.kinds import Translator
from evidence.accuracy.question import CalculatorQuery, FormulaValue, formula, query_calculator

_MEGATRON = (
    "Megatron-LM 0.14, bf16, fp32 main grads, distributed optimizer (ZeRO-1), "
    "sequence parallel, flash attention, fused cross-entropy, no recompute"
)
_TITAN = "torchtitan FSDP2, bf16 mixed precision (fp32 master shards), AdamW"
# Words for torchtitan runs: (loss compiled, asynchronous tensor parallelism).
_TITANS = {
    "torchtitan": (True, False),
    _TITAN: (False, False),
    f"{_TITAN}, async TP": (False, True),
    f"{_TITAN}, async TP, 1F1B": (False, True),
    f"{_TITAN}, async TP, interleaved 1F1B": (False, True),
}


def train_mem_per_gpu(asked: CaseInputs) -> CalculatorQuery | FormulaValue:
    """Memory of one GPU, or of the part that the case names."""
    if not asked.has("model"):
        return _published_bar(asked)
    framework = str(asked.any("framework", ""))
    if framework == _MEGATRON:
        return _megatron(asked)
    if framework in _TITANS:
        return _titan(asked, framework)
    raise UnsupportedCaseError(f"framework “{framework}” is not known")


_PARTS = {
    "parameters+gradients+optimizer, first stage": "states",
    "activations, tensor parallel only, no recompute": "tp",
    "activations, sequence parallel + selective recompute": "tp+sp+selective",
}


def _published_bar(asked: CaseInputs) -> FormulaValue:
    """A bar of Korthikanti (2022), figure 1: only the layers of the first stage."""
    layers, hidden = asked.whole("layers"), asked.number("hidden")
    asked.note("vocab", "global_batch", "dp")
    asked.word("precision", {"fp16, fp32 master/grads Adam": True})
    part = str(asked.word("part", _PARTS))
    tensor, pipeline = asked.whole("tp", 1), asked.whole("pp", 1)
    layout = ParallelLayout(
        gpus=tensor * pipeline,
        tensor=tensor,
        pipeline=pipeline,
        chunks_per_stage=asked.whole("interleave", 1),
    )
    heads, sequence = asked.number("heads"), asked.number("seq")
    batch = asked.number("microbatch", 1)
    share = layers / layout.pipeline
    if part == "states":
        parameters = 12 * hidden**2 * share / layout.tensor
        each = bytes_per_parameter("adamw", "bf16-mixed-fp32-grads")
        return formula(zero_bytes, sum(zero_bytes(parameters, each, 1, 0)))
    one = gpt_layer_bytes(sequence, batch, hidden, heads, layout.tensor, technique=part)
    value = one * share * micro_batches_in_flight(0, layout, 10**6)
    return formula(gpt_layer_bytes, value, alone=True)


_MEGATRON_PART = {"peak torch allocated, worst rank": True}


def _megatron(asked: CaseInputs) -> CalculatorQuery:
    """Peak allocated memory in PyTorch on the fullest rank."""
    asked.word("part", _MEGATRON_PART)
    asked.note("dp")
    return query_calculator(
        "training-memory",
        "allocated",
        **_layout(asked),
        expert_parallel=asked.whole("ep", 1),
        interleave=asked.whole("interleave", 1),
        zero="1",
        micro_batch=asked.whole("microbatch", 1),
        micro_batches=asked.whole("num_microbatches", 1),
        precision="bf16-mixed-fp32-grads",
        recompute="none",
        framework="megatron",
        fused_loss=True,
    )


def _layout(asked: CaseInputs) -> dict[str, Any]:
    return {
        "model": asked.model(),
        "gpu": asked.card(),
        "gpus": asked.whole("gpus"),
        "tensor_parallel": asked.whole("tp", 1),
        "pipeline_parallel": asked.whole("pp", 1),
        "context_parallel": asked.whole("cp", 1),
        "sequence": asked.whole("seq"),
    }


_CHECKPOINTING = {"full": "full", "selective op": "operators", "none": "none"}
_RESERVED = {"peak reserved (torchtitan log)": True, "peak reserved": True}


def _titan(asked: CaseInputs, framework: str) -> CalculatorQuery:
    """Peak reserved memory in PyTorch on the fullest rank of an FSDP2 run.

    FSDP2 shards weights, gradients and moments in FP32 and gathers 16-bit copies.
    """
    asked.word("part", _RESERVED)
    asked.note("float8", "fsdp")
    fused, overlapped = _TITANS[framework]
    layout = _layout(asked)
    stages = layout["pipeline_parallel"]
    batch, rest = divmod(asked.whole("local_batch", 1), stages)
    if rest:
        raise UnsupportedCaseError(f"local_batch is no multiple of {stages} stages")
    return query_calculator(
        "training-memory",
        "reserved",
        **layout,
        interleave=2 if "interleaved" in framework else 1,
        zero="3",
        micro_batch=batch,
        micro_batches=stages,
        precision="fp32",
        recompute=asked.word("activation_checkpointing", _CHECKPOINTING),
        framework="torch" if asked.flag("compile") else "torch-eager",
        fused_loss=fused,
        overlapped=overlapped,
    )


def _fine_tuning(method: str, asked: CaseInputs) -> CalculatorQuery:
    """Peak allocated memory of the Transformers Trainer, with FSDP on several GPUs."""
    layout = _layout(asked)
    kernels = str(asked.any("kernels", ""))
    adapters: dict[str, Any] = {}
    if method != "full":
        adapters = {"rank": asked.whole("rank"), "targets": str(asked.any("targets"))}
    return query_calculator(
        "training-memory",
        "allocated",
        **layout,
        zero="0" if layout["gpus"] == 1 else "3",
        micro_batch=asked.whole("microbatch", 1),
        precision=str(asked.any("precision", "bf16")),
        recompute="full",
        framework="transformers",
        fused_loss="liger" in kernels,
        method=method,
        **adapters,
    )


KINDS: dict[str, Translator] = {
    "train_mem_per_gpu": train_mem_per_gpu,
    "train_mem_full": functools.partial(_fine_tuning, "full"),
    "train_mem_lora": functools.partial(_fine_tuning, "lora"),
    "train_mem_qlora": functools.partial(_fine_tuning, "qlora"),
}
# Bytes per logit and the working memory of eager operations were read from these rows.
CALIBRATION = frozenset(
    {
        "train_mem_per_gpu/llama-3-8b/032",
        "train_mem_per_gpu/llama-3-8b/033",
    }
)
