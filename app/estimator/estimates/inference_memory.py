"""`inference-memory`: inputs and result."""

import bisect
import dataclasses
import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from app.estimator import common_inputs
from app.estimator.common_inputs import (
    ENGINE,
    HARDWARE,
    LLAMA_CPP,
    LOAD,
    TRANSFORMERS,
    impossible_input_error,
    reject_host_layers_without_llama_cpp,
)
from app.estimator.hardware.catalog import Accelerator, find_accelerator
from app.estimator.memory.engine_memory import (
    ACTIVE,
    DEFAULT_ENGINE,
    ENGINES,
    LOGGED_ACTIVE,
    LOGGED_ENGINES,
    LOGGED_OVERHEAD,
    OVERHEAD,
    WORKSPACE_BYTES,
    EngineMemory,
    MaxNumSeqsRefusal,
    compute_engine_memory_limit,
    compute_weight_bytes_while_loading,
    find_max_num_seqs_refusal,
    profiled_temporary_peak_bytes,
    widest_layer_prefill_bytes,
)
from app.estimator.memory.kv_cache import (
    HybridCacheBlocks,
    build_hybrid_cache_blocks,
    cache_elements_per_token_ignoring_windows,
    kv_cache_elements_per_sequence,
    longest_context,
    recurrent_state_bytes_per_sequence,
    round_up_to_blocks,
)
from app.estimator.memory.parallel_layout import (
    build_model_of_gpu_layers,
    describe_fp8_checkpoint_split_problem,
    filter_gpu_counts_by_quantization_blocks,
    find_engine_split_problem,
    find_quantization_block_problem,
    find_serving_pipeline_problem,
    list_tensor_parallel_sizes,
    split_into_serving_stages,
)
from app.estimator.models.architecture import Architecture
from app.estimator.models.lookup import find_model
from app.estimator.models.weight_formats import (
    CACHE_BITS,
    GGUF_CACHES,
    GGUF_FORMATS,
    build_published_format_clause,
    find_weight_format,
    mxfp4_expert_padding_bytes,
    weight_bytes_by_split,
    weight_bytes_per_gpu,
)
from app.estimator.result import Bounds
from app.estimator.serving.engine_speed import (
    MarlinPaddingShares,
    expert_marlin_padding_shares,
    find_fp8_problem,
)

GENERAL = "general"
DIVIDED, DATA_PARALLEL = "divided", "data-parallel"
_ATTENTION_CHOICES = ((DIVIDED, "Divided over the GPUs"), (DATA_PARALLEL, "Data parallel"))
ENGINE_CHOICES = (
    *((engine.id, engine.label) for engine in ENGINES.values()),
    (TRANSFORMERS, "Transformers, generate"),
    (GENERAL, "Any: the general formula"),
)


@dataclasses.dataclass(frozen=True, slots=True)
class InferenceMemoryInputs:
    model: str = common_inputs.model_input()
    weights: str = common_inputs.engine_weights_input()
    cache: str = common_inputs.cache_input()
    context: int = common_inputs.context_input()
    concurrent: int = common_inputs.sequences_at_once_input()
    gpu: str = common_inputs.counted_gpu_input(count_field="tensor_parallel")
    tensor_parallel: int = common_inputs.tensor_parallel_input(
        default=4, label="GPUs that share the model"
    )
    pipeline_parallel: int = common_inputs.serving_pipeline_input()
    attention: str = HARDWARE.declare_advanced_input_field(
        DIVIDED,
        "Attention",
        choices=_ATTENTION_CHOICES,
        help="Data parallel: each GPU holds all of attention and caches its own "
        "sequences; experts stay divided. A latent cache cannot be divided.",
    )
    memory_utilization: float = common_inputs.usable_share_input()
    engine: str = ENGINE.declare_advanced_input_field(
        DEFAULT_ENGINE,
        "Engine",
        choices=ENGINE_CHOICES,
        aliases=(("vllm", DEFAULT_ENGINE), ("vllm-2024", "vllm-0.6"), ("compiled", GENERAL)),
        help="Whose measured overheads are taken; plain generation in Transformers "
        "deals whole layers to the GPUs.",
        topic="inference-memory",
    )
    prompt: int | None = LOAD.declare_advanced_input_field(
        None,
        "Prompt",
        kind="count",
        unit="token",
        limits=(1, 100_000_000),
        help="Tokens of the context that are read at once, in Transformers; left "
        "empty: all of them.",
        topic="inference-memory",
    )
    shown_memory: float | None = HARDWARE.declare_advanced_input_field(
        None,
        "Memory as the driver shows it",
        unit="GB",
        limits=(1e6, 1e13),
        help="Of one GPU, for example 79.22 GiB; left empty: that of the data sheet, "
        "or what drivers show of it where an engine is chosen. A MIG instance is described so, "
        "as one GPU: 9.75 GiB for 1g.10gb of an H100.",
        topic="inference-memory",
    )
    cache_memory: float | None = ENGINE.declare_advanced_input_field(
        None,
        "Memory for the cache",
        unit="GB",
        limits=(1e6, 1e13),
        help="On each GPU, as a start-up log says it; left empty: what is left over.",
        topic="inference-memory",
    )
    step_tokens: int | None = ENGINE.declare_advanced_input_field(
        None,
        "Tokens per engine step",
        kind="count",
        unit="token",
        limits=(1, 10_000_000),
        help="The most tokens that the engine computes at once; left empty: the "
        "engine's own number, 8,192 where none is chosen.",
    )
    max_sequences: int | None = ENGINE.declare_advanced_input_field(
        None,
        "Most sequences of the engine",
        kind="count",
        unit="sequence",
        limits=(1, 1_000_000),
        help="For which the engine keeps memory to sample; vLLM calls it max-num-seqs. "
        "Left empty: the engine's own number.",
        topic="inference-memory",
    )
    graphs: float = ENGINE.declare_advanced_input_field(
        0.0,
        "CUDA graphs",
        unit="GB",
        limits=(0.0, 1e12),
        help="What a start-up log says that capturing them took on each GPU, if the engine "
        "takes it from the memory beside the usable share. vLLM 0.21 and later count it within "
        "the share: 0.",
        topic="inference-memory",
    )
    overhead: float | None = ENGINE.declare_advanced_input_field(
        None,
        "Overhead per GPU",
        unit="GB",
        limits=(0.0, 1e12),
        help="CUDA context, libraries and buffers; left empty: 1 GB, 2 GB from two GPUs on.",
        topic="inference-memory",
    )
    gpu_layers: int | None = common_inputs.gpu_layers_input(topic="inference-memory")
    block: int = ENGINE.declare_advanced_input_field(
        16,
        "Cache block",
        unit="token",
        limits=(1, 4096),
        help="Tokens of one block of the paged cache.",
        topic="inference-memory",
    )


@dataclasses.dataclass(frozen=True, slots=True)
class GpuMemoryUse:
    """Bytes on one GPU.

    `padding` is what repacking adds to the weights, between `least_padding` and `most_padding`.
    If no engine is chosen, `default_engine_startup` is what a typical engine uses from startup besides weights
    and cache. `possible_graph_bytes` is what some versions of an engine count for CUDA graphs besides.
    """

    weights: float
    cache: float
    activations: float
    overhead: float
    padding: float = 0.0
    default_engine_startup: float = 0.0
    least_padding: float = 0.0
    most_padding: float = 0.0
    possible_graph_bytes: float = 0.0

    @property
    def bytes_without_cache(self) -> float:
        return self.weights + self.padding + self.activations + self.overhead

    @property
    def total(self) -> float:
        return self.bytes_without_cache + self.cache


class MemoryAtGpuCount(NamedTuple):
    """A number of GPUs, the memory use of each, and its limit [B]."""

    gpus: int
    memory_use: GpuMemoryUse
    usable_bytes: float


class CacheLimits(NamedTuple):
    """The longest context and the most sequences that memory holds; None if it holds any."""

    longest_context: int | None
    most_sequences: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class InferenceLimits:
    """How far each input can go before the GPU is full.

    Of the usable bytes, `bytes_left_for_cache_per_gpu` are left for the cache, enough for `cache_token_capacity` in
    `cache_block_capacity`; None if it holds any number.
    """

    cache_limits: CacheLimits
    fewest_gpus: int | None
    usable_bytes_per_gpu: float
    bytes_left_for_cache_per_gpu: float
    cache_token_capacity: int | None
    cache_block_capacity: int | None
    memory_at_gpu_counts: tuple[MemoryAtGpuCount, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class InferenceMemoryResult:
    """The memory use of one GPU, and how far each input can go.

    With several pipeline stages, `model` is the stage that takes most memory, and
    `memory_per_gpu` is that of one of its GPUs. Where llama.cpp keeps layers in the memory of the
    host, it is the part on the GPUs, and `host_bytes` are the weights and the cache of the rest.
    """

    model: Architecture
    inputs: InferenceMemoryInputs
    gpu: Accelerator
    memory_per_gpu: GpuMemoryUse
    memory_of_all_gpus: GpuMemoryUse
    limits: InferenceLimits
    host_bytes: float = 0.0

    @property
    def exceeds_usable_memory(self) -> bool:
        return self.memory_per_gpu.total > self.limits.usable_bytes_per_gpu

    @property
    def surely_fits(self) -> bool:
        """Return whether it fits by the upper end of the range, too."""
        most = plausible_memory_range(self.inputs, self.memory_per_gpu).high
        return most <= self.limits.usable_bytes_per_gpu


# Memory outside of weights, cache and activations: CUDA context and libraries, and
# with several GPUs the buffers of the communication library. Startup logs of vLLM
# show 0.25 to 1.8 GiB on one GPU and up to 3.6 GiB on two.
CONTEXT_BYTES = 1e9

NCCL_BYTES = 1e9

# Tokens of a step if neither they nor an engine is given.
STEP_TOKENS = 8192


def peak_activation_bytes_per_gpu(
    model: Architecture, tokens: int, sequences: int, gpus: int
) -> float:
    """Return the peak of temporary tensors in one engine step on one GPU.

    T · 2 B · (3f/t + 4h) while a layer runs, or the logits of the sampled tokens in
    16 and 32 bit, n · V · 6 B / t, whichever is larger.
    """
    running = tokens * 2 * (3 * compute_active_mlp_width(model) / gpus + 4 * model.hidden)
    return max(running, sequences * model.vocabulary * 6 / gpus)


def compute_active_mlp_width(model: Architecture) -> float:
    """Return the width of the widest MLP that a token passes through."""
    layer = next((a for a, _ in model.layer_counts if a.mlp.is_routed), None)
    width = float(model.mlp_width)
    if layer is None:
        return width
    return max(
        width if model.dense_layers else 0.0,
        layer.mlp.experts_per_token * layer.mlp.width + layer.mlp.shared_width,
    )


def compute_gpu_memory_use(
    model: Architecture, inputs: InferenceMemoryInputs, gpus: int
) -> GpuMemoryUse:
    if inputs.engine == TRANSFORMERS:
        return _transformers_memory_use(model, inputs, gpus)
    width, sharing = CACHE_BITS[inputs.cache] / 8, attention_tensor_parallel_size(inputs, gpus)
    own = sequences_per_gpu(inputs, gpus)
    tokens = round_up_to_blocks(inputs.context, inputs.block)
    sequence = kv_cache_elements_per_sequence(model, tokens, sharing, width) * width
    cache = (sequence + recurrent_state_bytes_per_sequence(model) / sharing) * own
    unsure_graphs = 0.0
    if shared := shared_hybrid_blocks(model, inputs, gpus):
        cache = shared.count_blocks_to_start_and_run(inputs.context, own) * shared.block_bytes
        engine = find_engine_memory_on_gpu(inputs, inputs.engine)
        step_tokens = inputs.step_tokens or engine.step_tokens
        unsure_graphs = engine.hybrid_graph_bytes_per_token * step_tokens
    temporary, overhead = _temporary_and_overhead_bytes(model, inputs, gpus, own)
    shares, padding = _repacking_padding_per_gpu(model, inputs, gpus)
    return GpuMemoryUse(
        weights=weight_bytes_per_gpu(model, inputs.weights, sharing, gpus),
        cache=cache,
        activations=temporary,
        overhead=overhead if inputs.overhead is None else inputs.overhead,
        padding=shares.usual * padding,
        default_engine_startup=_compute_default_engine_startup_bytes(model, inputs, gpus),
        least_padding=shares.least * padding,
        most_padding=shares.most * padding,
        possible_graph_bytes=unsure_graphs,
    )


_GENERATION_MEMORY_RANGE = Bounds(0.965, 1.04)  # Measured over computed memory of plain generation.


def overhead_range_factors(inputs: InferenceMemoryInputs) -> Bounds:
    """Return the range of the overhead; a typed overhead has none."""
    if inputs.overhead is not None:
        return Bounds(1.0, 1.0)
    return LOGGED_OVERHEAD if inputs.engine in LOGGED_ENGINES else OVERHEAD


def activation_range_factors(inputs: InferenceMemoryInputs) -> Bounds:
    return LOGGED_ACTIVE if inputs.engine in LOGGED_ENGINES else ACTIVE


def plausible_memory_range(inputs: InferenceMemoryInputs, memory_use: GpuMemoryUse) -> Bounds:
    """Return the least and the most memory that one GPU may need [B]."""
    if inputs.engine == TRANSFORMERS:
        return Bounds(*(memory_use.total * factor for factor in _GENERATION_MEMORY_RANGE))
    fixed = memory_use.weights + memory_use.padding + memory_use.cache
    lowest, highest = (
        fixed + memory_use.overhead * overhead_factor + memory_use.activations * activation_factor
        for overhead_factor, activation_factor in zip(
            overhead_range_factors(inputs), activation_range_factors(inputs), strict=True
        )
    )
    unsure = memory_use.most_padding - memory_use.padding + memory_use.possible_graph_bytes
    return Bounds(lowest, max(highest, fixed + memory_use.default_engine_startup) + unsure)


def find_fullest_stage(model: Architecture, inputs: InferenceMemoryInputs) -> Architecture:
    """Return the pipeline stage that takes most memory, or what is on GPUs, as a model of its own."""
    model = build_model_of_gpu_layers(model, inputs.engine, inputs.gpu_layers)
    stages = split_into_serving_stages(model, inputs.pipeline_parallel)
    return max(
        (stage for stage, _ in stages),
        key=lambda stage: compute_gpu_memory_use(stage, inputs, inputs.tensor_parallel).total,
    )


def compute_memory_use_of_all_gpus(
    model: Architecture, inputs: InferenceMemoryInputs
) -> GpuMemoryUse:
    gpus = inputs.tensor_parallel
    model = build_model_of_gpu_layers(model, inputs.engine, inputs.gpu_layers)
    uses = [
        (compute_gpu_memory_use(stage, inputs, gpus), number * gpus)
        for stage, number in split_into_serving_stages(model, inputs.pipeline_parallel)
    ]
    names = [field.name for field in dataclasses.fields(GpuMemoryUse)]
    return GpuMemoryUse(**{n: sum(getattr(use, n) * times for use, times in uses) for n in names})


def compute_host_bytes(model: Architecture, inputs: InferenceMemoryInputs) -> float:
    """Return what llama.cpp keeps in host memory: the input table, weights and cache of layers [B]."""
    if inputs.engine != LLAMA_CPP:
        return 0.0
    gpus = inputs.tensor_parallel
    whole = compute_gpu_memory_use(model, inputs, gpus)
    on_gpus = compute_memory_use_of_all_gpus(model, inputs)
    host_bytes = gpus * (whole.weights + whole.cache) - on_gpus.weights - on_gpus.cache
    if model.tied:  # The output layer on the GPUs is a copy of the input table.
        output_layer = build_model_of_gpu_layers(model, inputs.engine, 1)
        host_bytes += compute_gpu_memory_use(output_layer, inputs, gpus).weights * gpus
    return host_bytes


def shared_hybrid_blocks(
    model: Architecture, inputs: InferenceMemoryInputs, gpus: int
) -> HybridCacheBlocks | None:
    """Return the blocks that attention and recurrent layers share, as in vLLM 0.9 and later."""
    if inputs.engine not in ENGINES or not ENGINES[inputs.engine].caches_hybrids_in_blocks:
        return None
    sharing = attention_tensor_parallel_size(inputs, gpus)
    return build_hybrid_cache_blocks(model, CACHE_BITS[inputs.cache] / 8, sharing)


def find_start_refusal_of_inputs(
    model: Architecture, inputs: InferenceMemoryInputs, gpu: Accelerator
) -> MaxNumSeqsRefusal | None:
    """Return with how many sequences vLLM does not start; None if it does with those it has."""
    gpus = inputs.tensor_parallel
    shared = shared_hybrid_blocks(model, inputs, gpus)
    if shared is None or not ENGINES[inputs.engine].refuses_sequences_beyond_blocks:
        return None
    memory_use = compute_gpu_memory_use(model, inputs, gpus)
    usable = usable_memory_per_gpu(inputs, gpu, memory_use, gpus)
    most_without_cache = plausible_memory_range(inputs, memory_use).high - memory_use.cache
    free = Bounds(usable - most_without_cache, usable - memory_use.bytes_without_cache)
    if inputs.cache_memory is not None:
        free = Bounds(inputs.cache_memory, inputs.cache_memory)
    default = find_engine_memory_on_gpu(inputs, inputs.engine).profiled_sequences
    return find_max_num_seqs_refusal(shared, free, inputs.max_sequences, default)


def engine_sequence_limit(inputs: InferenceMemoryInputs) -> int:
    """Return the most sequences of the engine, its own number where none is given."""
    return (
        inputs.max_sequences or find_engine_memory_on_gpu(inputs, inputs.engine).profiled_sequences
    )


def _compute_default_engine_startup_bytes(
    model: Architecture, inputs: InferenceMemoryInputs, gpus: int
) -> float:
    """Return what the default engine uses, by the general formula [B].

    At startup it samples for the maximum number of concurrent sequences.
    """
    if inputs.engine != GENERAL or inputs.overhead is not None:
        return 0.0
    engine = find_engine_memory_on_gpu(inputs, DEFAULT_ENGINE)
    sharing = attention_tensor_parallel_size(inputs, gpus)
    return profiled_temporary_peak_bytes(
        model, engine, sharing, inputs.step_tokens
    ) + engine.bytes_outside_framework(gpus)


def _repacking_padding_per_gpu(
    model: Architecture, inputs: InferenceMemoryInputs, gpus: int
) -> tuple[MarlinPaddingShares, float]:
    """Return the padding of Marlin on one GPU [B], and which shares of it the engine adds."""
    form = find_weight_format(model, inputs.weights)
    shares = expert_marlin_padding_shares(find_accelerator(inputs.gpu), form, inputs.engine)
    return shares, mxfp4_expert_padding_bytes(model, form, gpus) / gpus


def attention_tensor_parallel_size(inputs: InferenceMemoryInputs, gpus: int) -> int:
    """Return the GPUs that share attention and the cache of one sequence."""
    return 1 if inputs.attention == DATA_PARALLEL else gpus


def sequences_per_gpu(inputs: InferenceMemoryInputs, gpus: int) -> int:
    """Return the sequences whose cache, or a part of it, is on one GPU."""
    return math.ceil(inputs.concurrent * attention_tensor_parallel_size(inputs, gpus) / gpus)


def _temporary_and_overhead_bytes(
    model: Architecture, inputs: InferenceMemoryInputs, gpus: int, sequences: int
) -> tuple[float, float]:
    """Return the bytes of temporary tensors, and those outside of the framework."""
    sharing = attention_tensor_parallel_size(inputs, gpus)
    if inputs.engine == GENERAL:
        tokens = min(inputs.step_tokens or STEP_TOKENS, inputs.context * sequences)
        active = peak_activation_bytes_per_gpu(model, tokens, sequences, sharing)
        return active, CONTEXT_BYTES + (NCCL_BYTES if gpus > 1 else 0.0)
    engine = find_engine_memory_on_gpu(inputs, inputs.engine)
    # The logs behind it are of tensor parallelism. With as much for GPUs that share experts alone,
    # fewer measured throughputs (offline_throughput) were in their range.
    overhead = engine.bytes_outside_framework(sharing)
    sharing = 1 if inputs.engine == LLAMA_CPP else sharing  # Its layers are on one GPU each.
    active = profiled_temporary_peak_bytes(
        model, engine, sharing, inputs.step_tokens, inputs.max_sequences
    )
    return active, overhead


def _transformers_memory_use(
    model: Architecture, inputs: InferenceMemoryInputs, gpus: int
) -> GpuMemoryUse:
    """Return the memory use in Transformers, which assigns whole layers to the GPUs.

    Each GPU has its own temporary tensors; the peak may occur while loading.
    """
    stored = weight_bytes_by_split(model, inputs.weights).total_bytes / gpus
    width = CACHE_BITS[inputs.cache] / 8
    sequence = kv_cache_elements_per_sequence(model, inputs.context, 1, width) * width
    sequence += recurrent_state_bytes_per_sequence(model)
    cache = inputs.concurrent * sequence / gpus
    prompt = min(inputs.prompt or inputs.context, inputs.context)
    overhead = WORKSPACE_BYTES if inputs.overhead is None else inputs.overhead
    running = widest_layer_prefill_bytes(model, inputs.concurrent * prompt)
    loading = compute_weight_bytes_while_loading(model, inputs.weights) / gpus
    return GpuMemoryUse(
        weights=stored,
        cache=cache,
        activations=max(running, loading - stored - cache - overhead),
        overhead=overhead,
    )


def find_engine_memory_on_gpu(inputs: InferenceMemoryInputs, engine_id: str) -> EngineMemory:
    """Return what the engine called `engine_id` uses, with its defaults on this GPU."""
    gpu = find_accelerator(inputs.gpu)
    return ENGINES[engine_id].with_defaults_for_gpu(
        gpu.name, inputs.shown_memory or gpu.engine_visible_memory
    )


def program_visible_memory(inputs: InferenceMemoryInputs, gpu: Accelerator) -> float:
    """Return the memory of one GPU that programs get [B].

    The general formula counts with what the driver shows, as one does by hand.
    """
    if inputs.engine == GENERAL:
        return inputs.shown_memory or gpu.capacity
    return inputs.shown_memory or gpu.engine_visible_memory


def is_mig_instance(inputs: InferenceMemoryInputs, gpu: Accelerator) -> bool:
    """Return whether the memory is that of a MIG instance, which no link joins with others."""
    shown = inputs.shown_memory
    return shown is not None and gpu.mig_instances > 0 and shown < _WHOLE_GPU_SHARE * gpu.capacity


_WHOLE_GPU_SHARE = 0.9  # Of its memory; below it, a driver shows that of an instance.


def usable_memory_per_gpu(
    inputs: InferenceMemoryInputs, gpu: Accelerator, memory_use: GpuMemoryUse, gpus: int
) -> float:
    """Return the bytes that the engine may use on one of `gpus` GPUs [B]."""
    memory, share = program_visible_memory(inputs, gpu), inputs.memory_utilization
    limit = memory * share
    if inputs.engine in ENGINES:
        engine, sharing = ENGINES[inputs.engine], attention_tensor_parallel_size(inputs, gpus)
        fixed_bytes = memory_use.bytes_without_cache
        limit = compute_engine_memory_limit(engine, memory, share, sharing, fixed_bytes)
    limit = min(limit, memory - inputs.graphs)
    if inputs.cache_memory is None:
        return limit
    return min(limit, memory_use.total - memory_use.cache + inputs.cache_memory)


def validate_inputs(model: Architecture, inputs: InferenceMemoryInputs, gpu: Accelerator) -> None:
    """Reject formats that the GPU lacks, and heads that cannot be divided."""
    form = find_weight_format(model, inputs.weights)
    reason = find_fp8_problem(gpu, form, inputs.engine, has_experts=model.is_routed)
    if reason or (form.math != "fp8" and gpu.lacks_format(form.id)):
        raise impossible_input_error(
            "weights",
            inputs.weights,
            f"The {gpu.name} cannot compute in {form.label}"
            f"{build_published_format_clause(model, inputs.weights)}; it has "
            f"{describe_formats_with_dense_rate(gpu)}. {reason or ''}".strip(),
        )
    for field, value, owner in (
        ("weights", inputs.weights, inputs.weights in GGUF_FORMATS),
        ("cache", inputs.cache, inputs.cache in GGUF_CACHES),
    ):
        if owner and inputs.engine not in (LLAMA_CPP, GENERAL):
            message = "This format is of llama.cpp and Ollama: choose them as the engine."
            raise impossible_input_error(field, value, message)
    reject_host_layers_without_llama_cpp(inputs.gpu_layers, inputs.engine)
    problem = find_engine_split_problem(model, inputs.tensor_parallel, inputs.engine)
    whole = inputs.engine == TRANSFORMERS or inputs.attention == DATA_PARALLEL
    if problem and not whole:
        raise impossible_input_error("tensor_parallel", inputs.tensor_parallel, problem)
    if inputs.pipeline_parallel > 1:
        _validate_pipeline(model, inputs)
    if inputs.graphs >= program_visible_memory(inputs, gpu):
        message = f"CUDA graphs leave no memory of the {gpu.name}."
        raise impossible_input_error("graphs", inputs.graphs, message)
    if inputs.prompt is not None and inputs.prompt > inputs.context:
        message = f"The context has {inputs.context} tokens, its prompt among them."
        raise impossible_input_error("prompt", inputs.prompt, message)
    if not gpu.engine_visible_memory:
        raise impossible_input_error(
            "gpu", inputs.gpu, f"The memory of the {gpu.name} is not known."
        )


def _validate_pipeline(model: Architecture, inputs: InferenceMemoryInputs) -> None:
    stages = inputs.pipeline_parallel
    problem = find_serving_pipeline_problem(model, stages)
    if inputs.engine in (TRANSFORMERS, LLAMA_CPP) or inputs.weights in GGUF_FORMATS:
        problem = (
            "Transformers and llama.cpp deal out whole layers by themselves: use 1, and count "
            "all GPUs as those that share the model."
        )
    elif inputs.attention == DATA_PARALLEL:
        problem = "Stages are not computed together with data-parallel attention: use 1."
    if problem:
        raise impossible_input_error("pipeline_parallel", stages, problem)


def describe_formats_with_dense_rate(gpu: Accelerator) -> str:
    names = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4")
    known = [n.upper() for n in names if getattr(gpu, n)]
    return ", ".join(known) if known else "no published rates"


def compute_inference_limits(
    model: Architecture, inputs: InferenceMemoryInputs, gpu: Accelerator, memory_use: GpuMemoryUse
) -> InferenceLimits:
    limit = usable_memory_per_gpu(inputs, gpu, memory_use, inputs.tensor_parallel)
    sizes = _memory_and_limit_by_gpu_count(model, inputs, gpu, memory_use)
    free = limit - memory_use.bytes_without_cache
    if inputs.engine == TRANSFORMERS:
        cache_limits = search_cache_limits(model, inputs, gpu)
    else:
        cache_limits = solve_cache_limits(model, inputs, memory_use, free)
    cache_bytes = max(free, 0.0) if inputs.cache_memory is None else inputs.cache_memory
    return InferenceLimits(
        cache_limits=cache_limits,
        fewest_gpus=fewest_fitting_gpus(sizes, lambda memory_use: memory_use.total),
        usable_bytes_per_gpu=limit,
        bytes_left_for_cache_per_gpu=cache_bytes,
        cache_token_capacity=(tokens := _cache_token_capacity(model, inputs, cache_bytes)),
        cache_block_capacity=_cache_block_capacity(model, inputs, cache_bytes, tokens),
        memory_at_gpu_counts=sizes,
    )


def fits_by_central_estimate_with_changes(
    model: Architecture, inputs: InferenceMemoryInputs, gpu: Accelerator, **changes: Any
) -> bool:
    changed = dataclasses.replace(inputs, **changes)
    memory_use = compute_gpu_memory_use(model, changed, changed.tensor_parallel)
    return memory_use.total <= usable_memory_per_gpu(
        changed, gpu, memory_use, changed.tensor_parallel
    )


def _cache_token_capacity(
    model: Architecture, inputs: InferenceMemoryInputs, cache_bytes: float
) -> int | None:
    """Return the tokens that the cache has room for, in sequences of the given context."""
    gpus = inputs.tensor_parallel
    if shared := shared_hybrid_blocks(model, inputs, gpus):
        blocks = int(cache_bytes // shared.block_bytes)
        reserved = shared.count_startup_blocks_per_sequence(inputs.context)
        return int(blocks / reserved * inputs.context)
    each = _mean_bytes_per_cached_token(model, inputs, attention_tensor_parallel_size(inputs, gpus))
    return int(cache_bytes // (each * inputs.block)) * inputs.block if each else None


def _cache_block_capacity(
    model: Architecture, inputs: InferenceMemoryInputs, cache_bytes: float, tokens: int | None
) -> int | None:
    if shared := shared_hybrid_blocks(model, inputs, inputs.tensor_parallel):
        return int(cache_bytes // shared.block_bytes)
    return None if tokens is None else tokens // inputs.block


def _mean_bytes_per_cached_token(
    model: Architecture, inputs: InferenceMemoryInputs, attention_gpus: int
) -> float:
    """Return the bytes of a cached token on one GPU; 0 if no layer keeps one for each token.

    Windows and recurrent states take a fixed amount for each sequence, so that a token of a
    longer sequence takes less: with them it is the mean of a sequence of the given context.
    """
    width = CACHE_BITS[inputs.cache] / 8
    state, windows = (
        recurrent_state_bytes_per_sequence(model),
        any(a.mixer.window_tokens for a, _ in model.layer_counts),
    )
    each = cache_elements_per_token_ignoring_windows(model, attention_gpus, width) * width
    if not each or not (state or windows):
        return each
    tokens = round_up_to_blocks(inputs.context, inputs.block)
    elements = kv_cache_elements_per_sequence(model, tokens, attention_gpus, width)
    return (elements * width + state / attention_gpus) / tokens


def solve_cache_limits(
    model: Architecture, inputs: InferenceMemoryInputs, memory_use: GpuMemoryUse, free_bytes: float
) -> CacheLimits:
    """Solve for context and sequences if only the cache grows with them."""
    width = CACHE_BITS[inputs.cache] / 8
    gpus = inputs.tensor_parallel
    sharing, own = attention_tensor_parallel_size(inputs, gpus), sequences_per_gpu(inputs, gpus)
    if shared := shared_hybrid_blocks(model, inputs, gpus):
        blocks = int(max(0.0, free_bytes) // shared.block_bytes)
        sequences = shared.max_sequences(blocks, inputs.context) * (gpus // sharing)
        return CacheLimits(shared.longest_context(blocks, own), sequences)
    state = recurrent_state_bytes_per_sequence(model) / sharing
    per_sequence = memory_use.cache / own
    elements = (free_bytes / own - state) / width
    longest = longest_context(model, elements, sharing, inputs.block, width)
    if not per_sequence:
        return CacheLimits(longest, None)
    return CacheLimits(longest, max(0, int(free_bytes // per_sequence) * (gpus // sharing)))


def search_cache_limits(
    model: Architecture,
    inputs: InferenceMemoryInputs,
    gpu: Accelerator,
    fits: Callable[..., bool] = fits_by_central_estimate_with_changes,
) -> CacheLimits:
    """Search for context and sequences if temporary tensors grow with them, too."""
    return CacheLimits(
        _largest_fit_unless_unlimited(lambda n: fits(model, inputs, gpu, context=n)),
        _largest_fit_unless_unlimited(lambda n: fits(model, inputs, gpu, concurrent=n)),
    )


def _largest_fit_unless_unlimited(fits: Callable[[int], bool]) -> int | None:
    """Return the largest number that fits; None if every number does."""
    low, high = 0, 1
    while fits(high):
        low, high = high, 2 * high
        if high > _MAX_SEARCHED_COUNT:
            return None
    return bisect.bisect_left(range(high), True, low + 1, key=lambda number: not fits(number)) - 1


_MAX_SEARCHED_COUNT = 2**40


def _memory_and_limit_by_gpu_count(
    model: Architecture, inputs: InferenceMemoryInputs, gpu: Accelerator, memory_use: GpuMemoryUse
) -> tuple[MemoryAtGpuCount, ...]:
    """Return the memory use and its limit for every number of GPUs up to 64.

    `memory_use` is that of the typed number.
    """
    whole = inputs.engine == TRANSFORMERS or inputs.attention == DATA_PARALLEL
    counts: Iterable[int] = range(1, 65) if whole else list_tensor_parallel_sizes(model)
    if not whole and inputs.engine != LLAMA_CPP:
        counts = filter_gpu_counts_by_quantization_blocks(model, inputs.weights, counts)
    loads = (
        (n, memory_use if n == inputs.tensor_parallel else compute_gpu_memory_use(model, inputs, n))
        for n in counts
    )
    return tuple(
        MemoryAtGpuCount(n, memory_use, usable_memory_per_gpu(inputs, gpu, memory_use, n))
        for n, memory_use in loads
    )


def fewest_fitting_gpus(
    memory_at_gpu_counts: tuple[MemoryAtGpuCount, ...],
    compute_needed_bytes: Callable[[GpuMemoryUse], float],
) -> int | None:
    """Return the fewest GPUs of those that have the memory that is needed on each."""
    return next(
        (
            size.gpus
            for size in memory_at_gpu_counts
            if compute_needed_bytes(size.memory_use) <= size.usable_bytes
        ),
        None,
    )


def find_scale_block_problem(inputs: InferenceMemoryInputs, gpus: int) -> str | None:
    """Return why the engine does not load blocks of scales divided over `gpus`, if it does not."""
    if inputs.engine in (TRANSFORMERS, LLAMA_CPP):
        return None
    sharing = attention_tensor_parallel_size(inputs, gpus)  # 1: experts are not divided either
    model = find_model(inputs.model)
    return find_quantization_block_problem(model, inputs.weights, sharing, sharing)


def find_published_fp8_split_problem(inputs: InferenceMemoryInputs) -> str:
    """Return why the publisher's FP8 checkpoint cannot be divided over so many GPUs, or ""."""
    if inputs.engine in (TRANSFORMERS, LLAMA_CPP):
        return ""
    sharing = attention_tensor_parallel_size(inputs, inputs.tensor_parallel)
    model = find_model(inputs.model)
    return describe_fp8_checkpoint_split_problem(model, inputs.weights, sharing, sharing)
