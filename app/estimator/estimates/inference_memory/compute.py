"""The numbers of `inference-memory`."""

import dataclasses
import functools

from app.estimator.estimates.inference_memory.asked import InferenceMemory
from app.estimator.estimates.kv_cache.compute import state_bytes
from app.estimator.hardware.accelerators import Accelerator, find_accelerator
from app.estimator.memory.cache import (
    elements_per_sequence,
    elements_per_token,
    longest_context,
    whole_blocks,
)
from app.estimator.memory.sharding import (
    tensor_parallel_choices,
    tensor_parallel_problem,
)
from app.estimator.models.architecture import Architecture
from app.estimator.models.formats import CACHE_BITS, FORMATS, gpu_weights
from app.estimator.shared_inputs import refuse


@dataclasses.dataclass(frozen=True, slots=True)
class Load:
    """Bytes on one GPU."""

    weights: float
    cache: float
    activations: float
    overhead: float

    @property
    def total(self) -> float:
        """Their sum."""
        return self.weights + self.cache + self.activations + self.overhead


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """How far each input can go before the GPU is full; None where it never is."""

    context: int | None
    concurrent: int | None
    gpus: int | None
    weights: str | None
    room: float = 0.0
    tokens: int | None = None


# Memory outside of weights, cache and activations: the CUDA context and libraries;
# with several GPUs the buffers of the communication library as well. Start-up logs
# of vLLM show 0.25 to 1.8 GiB on one GPU and up to 3.6 GiB on two.
CONTEXT = 1e9


COMMUNICATION = 1e9


OVERHEAD_RANGE = (0.4, 2.0)


def activation_bytes(
    model: Architecture, tokens: int, sequences: int, gpus: int
) -> float:
    """Peak of temporary tensors in one engine step on one GPU.

    T · 2 B · (3f/t + 4h) while a layer runs, or the logits of the sampled tokens in
    16 and 32 bit, n · V · 6 B / t, whichever is larger.
    """
    running = tokens * 2 * (3 * _widest(model) / gpus + 4 * model.hidden)
    return max(running, sequences * model.vocabulary * 6 / gpus)


@functools.lru_cache(maxsize=2048)
def _widest(model: Architecture) -> float:
    """The widest MLP that a token runs through."""
    layer = next((a for a, _ in model.runs if a.mlp.is_routed), None)
    width = float(model.mlp_width)
    if layer is None:
        return width
    return max(
        width if model.dense_layers else 0.0,
        layer.mlp.experts_per_token * layer.mlp.width + layer.mlp.shared_width,
    )


def load_of(model: Architecture, asked: InferenceMemory, gpus: int) -> Load:
    """What one of `gpus` GPUs has to hold."""
    width = CACHE_BITS[asked.cache] / 8
    tokens = whole_blocks(asked.context, asked.block)
    sequence = elements_per_sequence(model, tokens, gpus) * width
    sequence += state_bytes(model) / gpus
    default = CONTEXT + (COMMUNICATION if gpus > 1 else 0.0)
    return Load(
        weights=gpu_weights(model, asked.weights, gpus),
        cache=sequence * asked.concurrent,
        activations=activation_bytes(
            model,
            min(asked.step_tokens, asked.context * asked.concurrent),
            asked.concurrent,
            gpus,
        ),
        overhead=default if asked.overhead is None else asked.overhead,
    )


def check(model: Architecture, asked: InferenceMemory, gpu: Accelerator) -> None:
    """Refuse what cannot be: a format the card lacks, heads that do not divide."""
    form = FORMATS[asked.weights]
    needed = "fp8" if form.math == "fp8" else form.id
    if gpu.lacks(needed):
        raise refuse(
            "weights",
            asked.weights,
            f"The {gpu.name} cannot compute in {form.label}; it has {rates(gpu)}.",
        )
    problem = tensor_parallel_problem(model, asked.tensor_parallel)
    if problem:
        raise refuse("tensor_parallel", asked.tensor_parallel, problem)
    if gpu.memory is None:
        raise refuse("gpu", asked.gpu, f"The memory of the {gpu.name} is not known.")


def rates(gpu: Accelerator) -> str:
    """The formats that a card has dense rates for, as words."""
    names = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4")
    known = [n.upper() for n in names if getattr(gpu, n)]
    return ", ".join(known) if known else "no published rates"


def limits_of(
    model: Architecture, asked: InferenceMemory, load: Load, limit: float
) -> Limits:
    """The furthest context, sequences, GPUs and format."""
    room = limit - load.weights - load.activations - load.overhead
    width = CACHE_BITS[asked.cache] / 8
    state = state_bytes(model) / asked.tensor_parallel
    per_sequence = load.cache / asked.concurrent
    elements = (room / asked.concurrent - state) / width
    longest = longest_context(model, elements, asked.tensor_parallel, asked.block)
    most = int(room // per_sequence) if per_sequence else None
    per_token = elements_per_token(model, asked.tensor_parallel) * width
    held = int(max(room, 0.0) // (per_token * asked.block)) if per_token else None
    return Limits(
        room=max(room, 0.0),
        tokens=None if held is None else held * asked.block,
        context=longest,
        concurrent=most if most is None else max(0, most),
        gpus=fewest_gpus(model, asked, limit),
        weights=_lighter(model, asked, load, limit),
    )


def fewest_gpus(
    model: Architecture, asked: InferenceMemory, limit: float
) -> int | None:
    """The fewest GPUs, up to 64, over which the load fits."""
    for gpus in tensor_parallel_choices(model):
        if load_of(model, asked, gpus).total <= limit:
            return gpus
    return None


_LIGHTER = ("fp8", "int8", "int4")


def _lighter(
    model: Architecture, asked: InferenceMemory, load: Load, limit: float
) -> str | None:
    """The widest common format with which a load that is too large fits."""
    if load.total <= limit:
        return None
    gpu = find_accelerator(asked.gpu)
    for name in _LIGHTER:
        table = gpu_weights(model, name, asked.tensor_parallel)
        fits = load.total - load.weights + table <= limit
        if fits and table < load.weights and not gpu.lacks(name):
            return name
    return None
