"""Speed of inference engines: overheads, kernel rates, math width of quantized weights."""

import bisect
import dataclasses
import functools
import math
from typing import NamedTuple

from app.estimator import data_files
from app.estimator.hardware.catalog import Accelerator
from app.estimator.memory.parallel_layout import ServingSetup
from app.estimator.models.layers import Layer
from app.estimator.models.weight_formats import WeightFormat

# Rate of unpacking 4-bit weights, relative to 8-bit ones.
_NIBBLE_UNPACK_RATE = 0.88


@dataclasses.dataclass(frozen=True, slots=True)
class EngineSpeed:
    """Overheads of an engine in addition to its kernels.

    Of a kernel its launch and the gap after it count. `prefill_time_factor` multiplies the compute
    time of a prompt. `grouped_matmul_factor`: rate of expert products, as a share of the geometric
    mean of the rates of one product in its format and in 16 bit, because a narrower format speeds
    up only a part of them. `seconds_before_queue`: tokenizing and transfer to the engine. The
    kernels of a prompt are eager: launched one by one. With `has_separate_prefill_steps` no answer
    continues while prompts are read. The limits are the highest rates at which its kernels read
    GPU memory [B/s], on other architectures than those with a limit of their own, and multiply
    [FLOP/s]. With `assigns_whole_layers` the GPUs work one after the
    other. Up to `max_unpadded_rows` are multiplied as vectors. `cuda_graph_batches` are recorded,
    and launched as a whole.
    """

    id: str
    label: str
    host_seconds_per_step: float
    launch_seconds_per_kernel: float
    prefill_time_factor: float
    grouped_matmul_factor: float
    seconds_before_queue: float = 0.0
    launch_seconds_per_eager_kernel: float = 0.0
    host_seconds_per_sequence: float = 0.0
    uses_library_all_reduce: bool = False
    caches_beyond_window: bool = False
    has_separate_prefill_steps: bool = False
    bandwidth_limit: float = math.inf
    bandwidth_limit_by_architecture: tuple[tuple[str, float], ...] = ()
    compute_limit: float = math.inf
    assigns_whole_layers: bool = False
    max_unpadded_rows: int = 0
    cuda_graph_batches: tuple[int, ...] = ()
    caches_hybrids_in_blocks: bool = False

    def bandwidth_limit_on(self, gpu: Accelerator) -> float:
        """Return the highest rate at which its kernels read the memory of a GPU [B/s]."""
        return dict(self.bandwidth_limit_by_architecture).get(
            gpu.architecture, self.bandwidth_limit
        )

    def use_whole_layer_split_if_required(self, setup: "ServingSetup") -> "ServingSetup":
        """Return how the engine divides a model over the GPUs that share it."""
        if not self.assigns_whole_layers or setup.gpus == 1:
            return setup
        stages = setup.gpus
        return dataclasses.replace(
            setup,
            tensor_parallel=1,
            expert_parallel=1,
            gpus_per_expert=1,
            pipeline_stages=stages,
            stages_take_turns=True,
        )

    def pad_to_cuda_graph_batch(self, sequences: float) -> float:
        """Return the recorded batch size to which a step without prompts is padded [1].

        >>> find_engine_speed("trtllm").pad_to_cuda_graph_batch(155), find_engine_speed("vllm").pad_to_cuda_graph_batch(155)
        (256.0, 155)
        """
        index = bisect.bisect_left(self.cuda_graph_batches, sequences)
        recorded = self.cuda_graph_batches[index : index + 1]
        return float(recorded[0]) if recorded else sequences


@dataclasses.dataclass(frozen=True, slots=True)
class SharedEngineConstants:
    """Constants of a step and of the first token that all engines share.

    A decode kernel of attention takes `extra_seconds_per_attention_kernel`, and a layer with experts
    `extra_seconds_per_routed_layer`, in addition to reading their bytes. The tiles of an expert are padded by
    `padding_rows_per_expert`. T tokens choose as many experts as T^`routing_skew` tokens would with
    even routing. In addition to the time on an idle replica, the first token of a request takes
    `extra_steps_before_first_token`, and `other_prompts_factor` of the prompt time of every other
    sequence if all requests start together. The more their lengths vary, relative to
    `synchrony_decay_scale`, the less they do.
    """

    extra_seconds_per_attention_kernel: float
    extra_seconds_per_routed_layer: float
    padding_rows_per_expert: float
    routing_skew: float
    extra_steps_before_first_token: float
    other_prompts_factor: float
    synchrony_decay_scale: float


class EngineConstants(NamedTuple):
    """The constants of one engine, and those that all engines share."""

    engine: EngineSpeed
    shared: SharedEngineConstants


@dataclasses.dataclass(frozen=True, slots=True)
class KernelRates:
    """Sustained rates of a GPU in the kernels of an engine.

    Products are in the format of the weights or in 16 bit [FLOP/s]; `bandwidth` is that of reading
    weights, `unpacking_bandwidth` of those that are unpacked [B/s]; `collective_base_latency` of an all-reduce
    for each rank [s]; `group_scaling_seconds` of a product whose weights have scales of groups, in
    addition to its bytes. `rates_table_id` is the table that the rates come from.
    """

    matmul: float
    matmul_16bit: float
    attention: float
    bandwidth: float
    unpacking_bandwidth: float
    cache_bandwidth: float
    collective_base_latency: float
    group_scaling_seconds: float
    rates_table_id: str


@functools.cache
def find_engine_speed(name: str) -> EngineSpeed:
    """Return the overheads of an engine by its id; raises KeyError if there is none.

    >>> find_engine_speed("vllm").label
    'vLLM'
    """
    row = data_files.load_table_entries_by_id("engines.toml", "engine")[name]
    return EngineSpeed(
        id=name,
        label=row["name"],
        host_seconds_per_step=row["host_ms"] * 1e-3,
        launch_seconds_per_kernel=row["kernel_us"] * 1e-6,
        prefill_time_factor=row["prefill"],
        grouped_matmul_factor=row["grouped"],
        seconds_before_queue=row["front_ms"] * 1e-3,
        launch_seconds_per_eager_kernel=row.get("eager_us", 0.0) * 1e-6,
        host_seconds_per_sequence=row["sequence_us"] * 1e-6,
        uses_library_all_reduce=row.get("library_reduce", False),
        caches_beyond_window=row.get("whole_windows", False),
        has_separate_prefill_steps=row.get("separate", False),
        bandwidth_limit=row.get("bandwidth_limit_gb_per_s", math.inf) * 1e9,
        bandwidth_limit_by_architecture=tuple(
            (name, limit * 1e9) for name, limit in row.get("bandwidth_limits_gb_per_s", {}).items()
        ),
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
    row = data_files.load_table_entries_by_id("engines.toml", "steps")["all"]
    return SharedEngineConstants(
        extra_seconds_per_attention_kernel=row["attention_us"] * 1e-6,
        extra_seconds_per_routed_layer=row["routed_us"] * 1e-6,
        padding_rows_per_expert=row["padding"],
        routing_skew=row["skew"],
        extra_steps_before_first_token=row["waits"],
        other_prompts_factor=row["others"],
        synchrony_decay_scale=row["spread"],
    )


def list_engine_choices() -> tuple[tuple[str, str], ...]:
    rows = data_files.load_table_entries_by_id("engines.toml", "engine")
    return tuple((key, row["name"]) for key, row in rows.items())


def find_kernel_rates(gpu: Accelerator, form: WeightFormat) -> KernelRates:
    """Return the rates of `gpu` with weights in a format.

    Raises ValueError if the data sheet lacks a needed value.

    >>> from app.estimator.hardware.catalog import find_accelerator
    >>> from app.estimator.models.weight_formats import FORMATS
    >>> find_kernel_rates(find_accelerator("H100"), FORMATS["fp8"]).matmul > 1e15
    True
    """
    rows = data_files.load_table_entries_by_id("engines.toml", "kernels")
    row = next((r for r in rows.values() if gpu.architecture in r["architectures"]), rows["other"])
    peak16, bandwidth = gpu.dense_peak_rate("bf16"), gpu.memory_bandwidth
    if peak16 is None or bandwidth is None:
        raise ValueError(f"16-bit rate and bandwidth of the {gpu.name} are not known")
    bits = find_math_bits(gpu, form)
    peak = peak16
    if bits != "16":  # Integers have a peak of their own.
        is_integer = bits == "8" and form.math == "int8"
        peak = gpu.dense_peak_rate("int8" if is_integer else f"fp{bits}") or peak16
    has_scaled_groups = bits == "8" and form.bits_with_scales > 8
    return KernelRates(
        matmul=peak * row[f"product_{bits}"],
        matmul_16bit=peak16 * row["product_16"],
        attention=peak16 * row["attention"],
        bandwidth=bandwidth * row["memory"],
        unpacking_bandwidth=(
            bandwidth
            * row["memory"]
            * row["unpacking"]
            * (_NIBBLE_UNPACK_RATE if form.bits_with_scales < 6 else 1.0)
        ),
        cache_bandwidth=bandwidth * row["cache"],
        collective_base_latency=row["reduce_us"] * 1e-6,
        group_scaling_seconds=row.get("scaling_us", 0.0) * 1e-6 if has_scaled_groups else 0.0,
        rates_table_id=row["id"],
    )


def find_math_bits(gpu: Accelerator, form: WeightFormat) -> str:
    """Return the math format, as bits, of products with weights of a format.

    Weights that the GPU cannot multiply are unpacked to 16 bit first.
    """
    if form.math in ("nvfp4", "mxfp4"):
        return "4" if gpu.fp4 else "16"
    can_multiply = (form.math == "fp8" and gpu.fp8) or (form.math == "int8" and gpu.int8)
    return "8" if can_multiply else "16"


# GPUs without FP8 math on which engines unpack FP8 weights to 16 bit by Marlin (weight-only,
# W8A16): compute capability 8.0 and 8.6, since vLLM 0.5.1 (vllm-project/vllm, pull request 5975),
# 7.5 in versions of 2026 (docs/features/quantization/llm_compressor/fp8.md). Experts so only since
# vLLM 0.9 (issue 17579), not in SGLang (sgl-project/sglang, issue 12887). TensorRT-LLM lists no FP8
# for Ampere (its support matrix).
_UNPACKING_ARCHITECTURES = ("Ampere",)
_UNPACKING_ENGINES = ("vllm", "vllm-0.9", "vllm-0.17", "general")
_UNPACKING_ENGINES_WITHOUT_EXPERTS = ("sglang", "vllm-2024", "vllm-0.6", "vllm-0.7")


def is_fp8_weight_only(gpu: Accelerator, form: WeightFormat) -> bool:
    """Return whether a GPU can take FP8 weights only unpacked, because it has no FP8 math."""
    return form.math == "fp8" and gpu.lacks_format("fp8")


def find_fp8_problem(
    gpu: Accelerator, form: WeightFormat, engine: str, *, has_experts: bool
) -> str | None:
    """Return why an engine does not run FP8 weights on a GPU; None if it does.

    `engine` is an id of an engine of speed or of memory.

    >>> from app.estimator.hardware.catalog import find_accelerator
    >>> from app.estimator.models.weight_formats import FORMATS
    >>> t4, a100 = find_accelerator("T4"), find_accelerator("A100")
    >>> find_fp8_problem(a100, FORMATS["fp8"], "vllm", has_experts=True)
    >>> find_fp8_problem(a100, FORMATS["fp8"], "sglang", has_experts=True)
    'Weight-only FP8 of experts needs vLLM 0.9 or later.'
    >>> find_fp8_problem(t4, FORMATS["fp8"], "vllm", has_experts=False)
    'In vLLM 0.9, weight-only FP8 needs an NVIDIA GPU of compute capability 8.0 or higher.'
    """
    if not is_fp8_weight_only(gpu, form):
        return None
    if gpu.architecture not in _UNPACKING_ARCHITECTURES:
        return (
            "In vLLM 0.9, weight-only FP8 needs an NVIDIA GPU of compute capability 8.0 or higher."
        )
    if engine in _UNPACKING_ENGINES:
        return None
    if engine not in _UNPACKING_ENGINES_WITHOUT_EXPERTS:
        return "Weight-only FP8 needs vLLM."
    return "Weight-only FP8 of experts needs vLLM 0.9 or later." if has_experts else None


def fp8_weight_only_notes(gpu: Accelerator, form: WeightFormat) -> tuple[str, ...]:
    """Return a note that FP8 weights are unpacked; none on a GPU with FP8 math."""
    if not is_fp8_weight_only(gpu, form):
        return ()
    note = (
        f"The {gpu.name} has no FP8 math: FP8 is weight-only there (W8A16, by Marlin in vLLM). "
        "Weights take the memory of FP8 and are unpacked, and products run at the rate of BF16."
    )
    return (note,)


def does_gpu_unpack_weights(gpu: Accelerator, form: WeightFormat) -> bool:
    return form.bits_with_scales < 16 and find_math_bits(gpu, form) == "16"


class MarlinPaddingShares(NamedTuple):
    """What an engine adds to MXFP4 experts, as shares of the padding of vLLM's Marlin kernels."""

    usual: float
    least: float
    most: float


# Kernels for MXFP4 experts in vLLM (fused_moe/oracle/mxfp4.py): those of FlashInfer or Triton on
# compute capability 10.x, Triton's on 9.0, Marlin on others: issues 31085 and 41477 of 12.0 and 12.1.
# Up to 0.11 Marlin ran on 9.0, too: gpt-oss 120B, whose file has 60.77 GiB, took 65.97 GiB of an
# H100 (issue 23278). Triton's took 64.38 GiB in 0.14 (issue 33155), because the scales were kept
# twice; since pull request 46549 of June 2026 they are not, and 0.25 took 61.29 GiB.
_NO_PADDING, _MARLIN_PADDING = MarlinPaddingShares(0, 0, 0), MarlinPaddingShares(1, 1, 1)
_KEPT_SCALES = (64.38 - 60.77) / (65.97 - 60.77)
_MARLIN_OR_TRITON = MarlinPaddingShares(1, _KEPT_SCALES, 1)
_TRITON_PADDING = MarlinPaddingShares(0, 0, _KEPT_SCALES)
_MARLIN_ON_HOPPER = ("vllm-0.9",)


def expert_marlin_padding_shares(
    gpu: Accelerator, form: WeightFormat, engine: str
) -> MarlinPaddingShares:
    """Return what an engine adds to experts in a format on a GPU.

    `engine` is an id of an engine of memory. llama.cpp multiplies experts as they are in the file.

    >>> from app.estimator.hardware.catalog import find_accelerator
    >>> from app.estimator.models.weight_formats import FORMATS
    >>> form, (a100, b200) = FORMATS["mxfp4-experts"], map(find_accelerator, ("A100", "B200"))
    >>> [expert_marlin_padding_shares(gpu, form, "vllm-0.17").usual for gpu in (a100, b200)]
    [1, 0]
    """
    if form.math != "mxfp4" or engine == "llama.cpp":
        return _NO_PADDING
    if gpu.architecture == "Hopper":
        return _MARLIN_OR_TRITON if engine in _MARLIN_ON_HOPPER else _TRITON_PADDING
    is_small_blackwell = gpu.architecture == "Blackwell" and "HBM" not in gpu.memory_type
    return (
        _MARLIN_PADDING if is_small_blackwell or does_gpu_unpack_weights(gpu, form) else _NO_PADDING
    )


def expected_distinct_experts(
    experts: float, experts_per_token: float, tokens: float, routing_skew: float = 1.0
) -> float:
    """Number of `experts` that at least one of `tokens` is routed to [1].

    E·(1 − (1 − k/E)^T) for even routing. Real routing is uneven: T tokens reach as many
    experts as T^skew evenly routed ones.

    >>> round(expected_distinct_experts(256, 8, 32, 0.77)), round(expected_distinct_experts(256, 8, 1))
    (94, 8)
    """
    if experts <= experts_per_token:
        return experts
    draws = max(1.0, tokens) ** routing_skew
    miss_probability: float = (1 - experts_per_token / experts) ** draws
    return experts * (1 - miss_probability)


def expected_experts_on_fullest_gpu(
    mean_chosen_experts: float, experts: float, gpus: float
) -> float:
    """Number of chosen experts on the GPU with most of them, where `mean_chosen_experts` is the mean.

    The largest of p nearly normal numbers is about √(2·ln p) deviations above their
    mean; the number of chosen experts has a variance of h·(1 − h/E).

    >>> expected_experts_on_fullest_gpu(10.0, 16.0, 1), round(expected_experts_on_fullest_gpu(10.0, 16.0, 8), 1)
    (10.0, 13.9)
    """
    variance = mean_chosen_experts * max(0.0, 1 - mean_chosen_experts / experts)
    return min(experts, mean_chosen_experts + math.sqrt(2 * math.log(gpus) * variance))


def count_launched_matmuls(layer: Layer) -> int:
    """Return the products of a layer that engines launch; those with one input are fused."""
    return len({(m.part, m.input_width, m.tensor_parallel_split == "rows") for m in layer.matrices})
