"""Cases of measured training memory: Megatron, torchtitan and published bars."""

from app.estimator.accuracy.cases import Asked, Inexpressible
from app.estimator.accuracy.kinds import Predictor
from app.estimator.accuracy.prediction import Prediction, between
from app.estimator.memory.activations import gpt_layer_bytes
from app.estimator.memory.frameworks import FRAMEWORKS
from app.estimator.memory.layouts import Layout, in_flight
from app.estimator.memory.states import Recipe, recipe
from app.estimator.memory.training import Step, stage_loads, worst

_MEGATRON = (
    "Megatron-LM 0.14, bf16, fp32 main grads, distributed optimizer (ZeRO-1), "
    "sequence parallel, flash attention, fused cross-entropy, no recompute"
)
_TITAN = "torchtitan FSDP2, bf16 mixed precision (fp32 master shards), AdamW"
# Words for torchtitan: (loss compiled, asynchronous tensor parallel).
_TITANS = {
    "torchtitan": (True, False),
    _TITAN: (False, False),
    f"{_TITAN}, async TP": (False, True),
    f"{_TITAN}, async TP, 1F1B": (False, True),
    f"{_TITAN}, async TP, interleaved 1F1B": (False, True),
}


def train_mem_per_gpu(asked: Asked) -> Prediction:
    """Memory of one GPU, or the part of it that the case names."""
    if not asked.has("model"):
        return _published_bar(asked)
    framework = str(asked.any("framework", ""))
    if framework == _MEGATRON:
        return _megatron(asked)
    if framework in _TITANS:
        return _titan(asked, framework)
    raise Inexpressible(f"framework “{framework}” is not known")


_PARTS = {
    "parameters+gradients+optimizer, first stage": "states",
    "activations, tensor parallel only, no recompute": "tp",
    "activations, sequence parallel + selective recompute": "tp+sp+selective",
}


def _published_bar(asked: Asked) -> Prediction:
    """A bar of Korthikanti (2022), figure 1: the layers of the first stage alone."""
    layers, hidden = asked.whole("layers"), asked.number("hidden")
    asked.note("vocab", "global_batch", "dp")
    asked.word("precision", {"fp16, fp32 master/grads Adam": True})
    part = str(asked.word("part", _PARTS))
    tensor, pipeline = asked.whole("tp", 1), asked.whole("pp", 1)
    layout = Layout(
        gpus=tensor * pipeline,
        tensor=tensor,
        pipeline=pipeline,
        virtual=asked.whole("interleave", 1),
    )
    heads, sequence = asked.number("heads"), asked.number("seq")
    batch = asked.number("microbatch", 1)
    share = layers / layout.pipeline
    if part == "states":
        each = recipe("adamw", "bf16-mixed-fp32-grads").total
        return Prediction(12 * hidden**2 * share / layout.tensor * each)
    one = gpt_layer_bytes(sequence, batch, hidden, heads, layout.tensor, technique=part)
    return Prediction(one * share * in_flight(0, layout, 10**6))


_MEGATRON_PART = {"peak torch allocated, worst rank": True}


def _megatron(asked: Asked) -> Prediction:
    """Peak that PyTorch allocates on the fullest rank."""
    asked.word("part", _MEGATRON_PART)
    asked.note("gpu", "dp")
    model = asked.model()
    layout = Layout(
        gpus=asked.whole("gpus"),
        tensor=asked.whole("tp", 1),
        pipeline=asked.whole("pp", 1),
        context=asked.whole("cp", 1),
        expert=asked.whole("ep", 1),
        virtual=asked.whole("interleave", 1),
        zero=1,
    )
    step = Step(
        sequence=asked.whole("seq"),
        micro_batch=asked.whole("microbatch", 1),
        micro_batches=asked.whole("num_microbatches", 1),
        framework=FRAMEWORKS["megatron"],
        fused_loss=True,
    )
    each = recipe("adamw", "bf16-mixed-fp32-grads")
    load = worst(stage_loads(model, layout, step, each, 0.0))
    return between(load.total, 0.98, 1.02)


_CHECKPOINTING = {"full": "full", "selective op": "operators", "none": "none"}
_RESERVED = {"peak reserved (torchtitan log)": True, "peak reserved": True}
# Reserved over allocated memory where stages of a pipeline alternate.
_PIPELINE_FRAGMENTS = 1.14


def _titan(asked: Asked, framework: str) -> Prediction:
    """Peak that PyTorch reserves on the fullest rank of an FSDP2 run."""
    asked.word("part", _RESERVED)
    asked.note("gpu", "float8")
    model = asked.model()
    fused, overlapped = _TITANS[framework]
    layout = Layout(
        gpus=asked.whole("gpus"),
        tensor=asked.whole("tp", 1),
        pipeline=asked.whole("pp", 1),
        context=asked.whole("cp", 1),
        virtual=2 if "interleaved" in framework else 1,
        zero=3,
    )
    asked.note("fsdp")
    batch = asked.whole("local_batch", 1)
    micro_batches = layout.pipeline
    compiled = asked.flag("compile")
    step = Step(
        sequence=asked.whole("seq"),
        micro_batch=batch / micro_batches,
        micro_batches=micro_batches,
        recompute=str(asked.word("activation_checkpointing", _CHECKPOINTING)),
        framework=FRAMEWORKS["torch" if compiled else "torch-eager"],
        fused_loss=fused,
        overlapped=overlapped,
    )
    # FP32 shards of weights, gradients and two moments; 16-bit copies are gathered.
    loads = stage_loads(model, layout, step, Recipe(4, 4, 0, 8), 0.0)
    factor = _PIPELINE_FRAGMENTS if layout.pipeline > 1 else 1.0
    return between(worst(loads).total * factor, 0.92, 1.08)


KINDS: dict[str, Predictor] = {"train_mem_per_gpu": train_mem_per_gpu}
# Bytes per logit and the work of eager operations were read from these rows.
CALIBRATION = frozenset(
    {
        "train_mem_per_gpu/llama-3-8b/032",
        "train_mem_per_gpu/llama-3-8b/033",
    }
)
