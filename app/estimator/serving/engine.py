"""Inference engines: overheads, math width of quantized weights, parallel splits."""

import bisect
import dataclasses
import functools
import math
from typing import Any, NamedTuple

from app.estimator import data_files
from app.estimator.hardware.catalog import Accelerator
from app.estimator.models.layers import Layer, WeightMatrix
from app.estimator.models.number_formats import CACHE_BITS, WeightFormat, mean_matrix_bits

# Rate of unpacking 4-bit weights, relative to 8-bit ones.
_NIBBLE = 0.88


@dataclasses.dataclass(frozen=True, slots=True)
class InferenceEngine:
    """Overheads of an engine in addition to its kernels.

    `host`: per step, what scheduling and sampling add [s]; `kernel`: per kernel,
    launch and gap [s]; `prefill`: factor of the compute time of a prompt [1]; `grouped`:
    rate of expert products, as a share of the geometric mean of the rates of one product in its
    format and in 16 bit, because a narrower format speeds up only a part of them [1];
    `front`: tokenizing and transfer to the engine, before a prompt is queued [s];
    `eager`: per kernel of a prompt, because these are launched one by one [s];
    `sequence`: per sequence and step, for sampling and streaming [s];
    `uses_library_all_reduce`: all-reduce is that of the communication library;
    `caches_beyond_window`: layers with a sliding window cache every token; `separate`: prompts
    are processed in steps of their own, during which no answer continues; `bandwidth_limit`: the
    highest rate at which its kernels read GPU memory [B/s]; `compute_limit`: the highest rate of
    its products [FLOP/s]; `assigns_whole_layers`: each GPU has whole layers, and the GPUs work one after
    the other; `max_unpadded_rows`: up to so many rows are multiplied as vectors
    and not padded to a tile [1];
    `graphs`: batch sizes with a recorded CUDA graph, which is launched as a whole;
    `caches_hybrids_in_blocks`: attention and recurrent layers cache in blocks of one size.
    """

    id: str
    label: str
    host: float
    seconds_per_kernel: float
    prefill_time_factor: float
    grouped_matmul_factor: float
    front: float = 0.0
    seconds_per_eager_kernel: float = 0.0
    sequence: float = 0.0
    uses_library_all_reduce: bool = False
    caches_beyond_window: bool = False
    has_separate_prefill_steps: bool = False
    bandwidth_limit: float = math.inf
    compute_limit: float = math.inf
    assigns_whole_layers: bool = False
    max_unpadded_rows: int = 0
    cuda_graph_batches: tuple[int, ...] = ()
    caches_hybrids_in_blocks: bool = False

    def split(self, serving: "ServingSetup") -> "ServingSetup":
        """Return how the engine divides a model over the GPUs that share it."""
        if not self.assigns_whole_layers or serving.gpus == 1:
            return serving
        stages = serving.gpus
        return dataclasses.replace(
            serving, tensor=1, expert=1, expert_tensor=1, pipeline=stages, stages_take_turns=True
        )

    def padded_batch(self, sequences: float) -> float:
        """Return the recorded batch size to which a step without prompts is padded [1].

        >>> find_engine("trtllm").padded_batch(155), find_engine("vllm").padded_batch(155)
        (256.0, 155)
        """
        index = bisect.bisect_left(self.cuda_graph_batches, sequences)
        return (
            float(self.cuda_graph_batches[index])
            if index < len(self.cuda_graph_batches)
            else sequences
        )


@dataclasses.dataclass(frozen=True, slots=True)
class SharedEngineConstants:
    """Constants of a step and of the first token that all engines share.

    `attention`: of a decode kernel in addition to reading its bytes [s]; `routed`: of a layer with
    experts in addition to its bytes, for routing and sorting [s]; `padding`: rows by which
    the tiles of an expert are padded [1]; `skew`: T tokens choose as many experts as
    T^skew tokens would with even routing [1]. In addition to the time on an idle replica, the
    first token of a request takes `waits` decoding steps [1], and the share `others` of the
    prompt time of every other sequence [1] if all requests start together. The more their
    lengths vary, relative to `spread` [1], the less they do.
    """

    attention: float
    routing_seconds: float
    padding_rows_per_expert: float
    routing_skew: float
    steps_before_first_token: float
    other_prompts_factor: float
    synchrony_spread: float


class EngineConstants(NamedTuple):
    """The constants of one engine, and those that all engines share."""

    engine: InferenceEngine
    shared: SharedEngineConstants


@dataclasses.dataclass(frozen=True, slots=True)
class ServingSetup:
    """A model on its GPUs: formats and splits.

    `weights` is a weight format, `cache` the format of keys and values. `tensor` GPUs share
    each layer; `replicas` of attention process different requests in parallel; experts are
    split over `expert` GPUs, each expert over `expert_tensor`. The layers are divided among
    `pipeline` stages, each of that many GPUs. With `dispatch`, tokens are sent to the GPUs of their
    experts only, instead of to all. With `stages_take_turns` the stages never work at the same time.
    The engine checks for new requests every `polling`
    steps, and answers at most `sequences` at once, for which it keeps memory (None: its
    default). With `drafts`, a head that proposes tokens is in memory too.
    """

    weights: str = "bf16"
    cache: str = "bf16"
    tensor: int = 1
    replicas: int = 1
    expert: int = 1
    expert_tensor: int = 1
    software: str = "vllm"
    polling_interval_steps: int = 1
    pipeline: int = 1
    dispatches_tokens: bool = False
    stages_take_turns: bool = False
    has_draft_head: bool = False
    sequences: int | None = None

    @property
    def gpus(self) -> int:
        return self.stage_gpus * self.pipeline

    @property
    def stage_gpus(self) -> int:
        """Return the GPUs of one pipeline stage."""
        return max(self.tensor * self.replicas, self.expert * self.expert_tensor)

    @property
    def concurrent_batches(self) -> int:
        """Return the number of batches that run at the same time, on different GPUs."""
        return self.replicas if self.stages_take_turns else self.replicas * self.pipeline


@dataclasses.dataclass(frozen=True, slots=True)
class KernelRates:
    """Sustained rates of a GPU in the kernels of an engine.

    `matmul` in the format of the weights, `matmul16` and `attention` [FLOP/s];
    `bandwidth` of reading weights, `narrow` of reading weights that are unpacked, `cache` of
    reading the cache [B/s]; `rank_latency` of an all-reduce for each rank [s]; `scaling` of
    a product whose weights have scales of groups, in addition to its bytes [s]. `kernels`
    is the table that the rates come from.
    """

    matmul: float
    matmul16: float
    attention: float
    bandwidth: float
    narrow: float
    cache: float
    rank_latency: float
    group_scaling_seconds: float
    rates_table_id: str


@functools.cache
def find_engine(name: str) -> InferenceEngine:
    """Return the overheads of an engine by its id; raises KeyError if there is none.

    >>> find_engine("vllm").label
    'vLLM'
    """
    row = data_files.load_table("engines.toml", "engine")[name]
    return InferenceEngine(
        id=name,
        label=row["name"],
        host=row["host_ms"] * 1e-3,
        seconds_per_kernel=row["kernel_us"] * 1e-6,
        prefill_time_factor=row["prefill"],
        grouped_matmul_factor=row["grouped"],
        front=row["front_ms"] * 1e-3,
        seconds_per_eager_kernel=row.get("eager_us", 0.0) * 1e-6,
        sequence=row["sequence_us"] * 1e-6,
        uses_library_all_reduce=row.get("library_reduce", False),
        caches_beyond_window=row.get("whole_windows", False),
        has_separate_prefill_steps=row.get("separate", False),
        bandwidth_limit=row.get("bandwidth_limit_gb_per_s", math.inf) * 1e9,
        compute_limit=row.get("compute_limit_tflops", math.inf) * 1e12,
        assigns_whole_layers=row.get("deals_layers", False),
        max_unpadded_rows=row.get("vector_rows", 0),
        cuda_graph_batches=tuple(row.get("graphs", ())),
        caches_hybrids_in_blocks=row.get("hybrid_blocks", False),
    )


@functools.cache
def load_shared_engine_constants() -> SharedEngineConstants:
    """Return the fitted constants that all engines share.

    >>> 0 < load_shared_engine_constants().routing_skew <= 1
    True
    """
    row = data_files.load_table("engines.toml", "steps")["all"]
    return SharedEngineConstants(
        attention=row["attention_us"] * 1e-6,
        routing_seconds=row["routed_us"] * 1e-6,
        padding_rows_per_expert=row["padding"],
        routing_skew=row["skew"],
        steps_before_first_token=row["waits"],
        other_prompts_factor=row["others"],
        synchrony_spread=row["spread"],
    )


def list_engines() -> tuple[tuple[str, str], ...]:
    """Return ids and names of the engines, in catalog order."""
    rows = data_files.load_table("engines.toml", "engine")
    return tuple((key, row["name"]) for key, row in rows.items())


def _kernel_rates_row(architecture: str) -> dict[str, Any]:
    rows = data_files.load_table("engines.toml", "kernels")
    matching = (r for r in rows.values() if architecture in r["architectures"])
    return next(matching, rows["other"])


def kernel_rates(gpu: Accelerator, form: WeightFormat) -> KernelRates:
    """Return the rates of `gpu` with weights in a format.

    Raises ValueError if the data sheet lacks a needed value.

    >>> from app.estimator.hardware.catalog import find_accelerator
    >>> from app.estimator.models.number_formats import FORMATS
    >>> kernel_rates(find_accelerator("H100"), FORMATS["fp8"]).matmul > 1e15
    True
    """
    row = _kernel_rates_row(gpu.architecture)
    peak16, bandwidth = gpu.peak_rate("bf16"), gpu.memory_bandwidth
    if peak16 is None or bandwidth is None:
        raise ValueError(f"16-bit rate and bandwidth of the {gpu.name} are not known")
    width = math_bits(gpu, form)
    share = row["product_16"]
    unpack_factor = _NIBBLE if form.bits < 6 else 1.0
    peak = peak16
    if width != "16":
        share = row[f"product_{width}"]
        peak = gpu.peak_rate(_peak_rate_format(width, form)) or peak16
    return KernelRates(
        matmul=peak * share,
        matmul16=peak16 * row["product_16"],
        attention=peak16 * row["attention"],
        bandwidth=bandwidth * row["memory"],
        narrow=bandwidth * row["memory"] * row["unpacking"] * unpack_factor,
        cache=bandwidth * row["cache"],
        rank_latency=row["reduce_us"] * 1e-6,
        group_scaling_seconds=row.get("scaling_us", 0.0) * 1e-6
        if width == "8" and form.bits > 8
        else 0.0,
        rates_table_id=row["id"],
    )


def _peak_rate_format(math_bits: str, form: WeightFormat) -> str:
    """Return the format whose peak bounds products of a width; integers have their own."""
    if math_bits == "8" and form.math == "int8":
        return "int8"
    return {"8": "fp8", "4": "fp4"}[math_bits]


def math_bits(gpu: Accelerator, form: WeightFormat) -> str:
    """Return the math format, as bits, of products with weights of a format.

    Weights that the GPU cannot multiply are unpacked to 16 bit first.
    """
    if form.math in ("nvfp4", "mxfp4"):
        return "4" if gpu.fp4 else "16"
    if form.math == "fp8":
        return "8" if gpu.fp8 else "16"
    if form.math == "int8":
        return "8" if gpu.int8 else "16"
    return "16"


def is_unpacked(gpu: Accelerator, form: WeightFormat) -> bool:
    """Return whether weights are unpacked before they reach the tensor cores."""
    return form.bits < 16 and math_bits(gpu, form) == "16"


def matrix_copy_bytes(matrix: WeightMatrix, form: WeightFormat) -> float:
    """Return the bytes of one copy of a matrix in a format [B]."""
    return matrix.inputs * matrix.outputs * mean_matrix_bits(form, matrix) / 8


def cache_element_bytes(cache_format: str) -> float:
    """Return the bytes of one element of the cache [B]."""
    return CACHE_BITS[cache_format] / 8


def expected_experts_hit(
    experts: float, per_token: float, tokens: float, skew: float = 1.0
) -> float:
    """Number of `experts` that at least one of `tokens` is routed to [1].

    E·(1 − (1 − k/E)^T) for even routing. Real routing is uneven: T tokens reach as many
    experts as T^skew evenly routed ones.

    >>> round(expected_experts_hit(256, 8, 32, 0.77)), round(expected_experts_hit(256, 8, 1))
    (94, 8)
    """
    if experts <= per_token:
        return experts
    draws = max(1.0, tokens) ** skew
    miss_probability: float = (1 - per_token / experts) ** draws
    return experts * (1 - miss_probability)


def max_experts_per_gpu(mean_hit: float, experts: float, gpus: float) -> float:
    """Number of chosen experts on the GPU with most of them, where `mean_hit` is the mean.

    The largest of p nearly normal numbers is about √(2·ln p) deviations above their
    mean; the number of chosen experts has a variance of h·(1 − h/E).

    >>> max_experts_per_gpu(10.0, 16.0, 1), round(max_experts_per_gpu(10.0, 16.0, 8), 1)
    (10.0, 13.9)
    """
    variance = mean_hit * max(0.0, 1 - mean_hit / experts)
    return min(experts, mean_hit + math.sqrt(2 * math.log(gpus) * variance))


def count_matmul_launches(layer: Layer) -> int:
    """Return the products of a layer that engines launch; those with one input are fused."""
    return len({(m.part, m.inputs, m.split == "rows") for m in layer.matrices})
