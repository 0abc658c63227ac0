"""Memory of one replica: its weights, what the engine takes, and the sequences that fit."""

import math
from typing import NamedTuple

from app.estimator.memory.engine_memory import (
    ACTIVE,
    DEFAULT_ENGINE,
    ENGINES,
    LOGGED_ACTIVE,
    LOGGED_ENGINES,
    LOGGED_OVERHEAD,
    OVERHEAD,
    EngineMemory,
    MaxNumSeqsRefusal,
    compute_engine_memory_limit,
    find_max_num_seqs_refusal,
    profiled_temporary_peak_bytes,
)
from app.estimator.memory.kv_cache import (
    HybridCacheBlocks,
    build_hybrid_cache_blocks,
    cache_elements_per_token_ignoring_windows,
    kv_cache_elements_per_sequence,
    recurrent_state_bytes_per_sequence,
)
from app.estimator.memory.parallel_layout import split_into_serving_stages
from app.estimator.models.architecture import Architecture
from app.estimator.models.weight_formats import (
    mxfp4_expert_padding_bytes,
    share_of_whole_experts,
    weight_bytes_by_split,
)
from app.estimator.result import Bounds
from app.estimator.serving.engine_speed import MarlinPaddingShares, expert_marlin_padding_shares
from app.estimator.serving.step_time import (
    PlacedModel,
    bytes_of_unchosen_experts,
)
from app.estimator.units import format_value

# Share of the memory that the engine may use.
_DEFAULT_USABLE_SHARE = 0.9


def find_engine_id_with_memory_data(engine: str) -> str:
    """Return the engine whose memory besides weights and cache counts for an engine of speed.

    That of vLLM, from its start-up logs, unless there are logs of the engine. The constants of
    TensorRT-LLM are assumed: with them, the errors of published offline throughputs are a third
    larger in 90% of the cases (33% instead of 24%). Those of vLLM 0.17 make them larger, too
    (29% instead of 27%), so it has those of 0.9.
    """
    return _MEMORY_ENGINES.get(engine, DEFAULT_ENGINE)


_MEMORY_ENGINES = {
    "llama.cpp": "llama.cpp",
    "sglang": "sglang",
    "trtllm": "vllm-0.9",
    "vllm-2024": "vllm-0.6",
}


# Concurrent requests of an engine, if memory is sufficient: the maximum in NVIDIA's
# benchmark (tensorrt_llm/bench/build/tuning.py).
_MAX_CONCURRENT_REQUESTS = 4096.0


def weight_bytes_per_gpu(placed: PlacedModel, stage: Architecture | None = None) -> float:
    """Bytes of weights on one GPU, of a pipeline stage if given [B]; experts have their own split."""
    serving, model = placed.setup, stage or placed.model
    table = weight_bytes_by_split(model, serving.weight_format)
    if not model.is_routed:
        return table.bytes_per_gpu(serving.tensor_parallel)
    dense = (
        table.bytes_per_gpu(serving.tensor_parallel) - table.expert_bytes / serving.tensor_parallel
    )
    experts = table.expert_bytes * share_of_whole_experts(model, serving.expert_parallel)
    experts /= serving.gpus_per_expert
    return dense + experts + expert_padding_bytes_per_gpu(placed, stage)


def weight_bytes_read_per_gpu(placed: PlacedModel, rows: float) -> float:
    """Bytes of weights on one GPU that a step of `rows` tokens reads [B].

    All but the experts that no token chooses, and an input table that is no output head.
    """
    unread = bytes_of_unchosen_experts(placed, rows) + expert_padding_bytes_per_gpu(placed)
    table = 0 if placed.model.tied else placed.model.embedding_parameters
    unread += table * placed.weight_format.rest / 8 / placed.setup.tensor_parallel
    return weight_bytes_per_gpu(placed) - unread


def expert_padding_bytes_per_gpu(placed: PlacedModel, stage: Architecture | None = None) -> float:
    """Bytes that repacking adds to the experts of one GPU [B]."""
    shares, padding = _marlin_padding_and_shares_per_gpu(placed, stage or placed.model)
    return shares.usual * padding


def _marlin_padding_and_shares_per_gpu(
    placed: PlacedModel, model: Architecture
) -> tuple[MarlinPaddingShares, float]:
    """Return the padding of Marlin on one GPU [B], and which shares of it the engine adds."""
    serving, form = placed.setup, placed.weight_format
    shares = expert_marlin_padding_shares(
        placed.gpu, form, find_engine_id_with_memory_data(placed.engine.id)
    )
    padding = mxfp4_expert_padding_bytes(model, form, serving.gpus_per_expert)
    share = share_of_whole_experts(model, serving.expert_parallel) / serving.gpus_per_expert
    return shares, padding * share


# Inputs of an EAGLE-3 head, each as wide as the model, and tokens of its own vocabulary: the
# configuration of yuhuili/EAGLE3-LLaMA3.1-Instruct-8B.
_HEAD_INPUTS, _HEAD_TOKENS = 3, 32_000


def draft_weight_bytes(model: Architecture, weight_format: str) -> float:
    """Bytes of what proposes tokens [B]: the modules for multi-token prediction, or a head.

    The modules are in the format of the model; an EAGLE head is about one dense layer in 16 bit.
    """
    if model.prediction_module_count:
        each = weight_bytes_by_split(model, weight_format).total_bytes / model.loaded_parameters
        return each * model.prediction_module_parameters
    joining = _HEAD_INPUTS * model.hidden**2 + _HEAD_TOKENS * model.hidden
    return 2.0 * (model.decoder_layers[-1].active_parameters + joining)


def describe_draft_model(placed: PlacedModel) -> str:
    """Return what proposes tokens for a model, and its memory, as a sentence."""
    model = placed.model
    memory = format_value(draft_weight_bytes(model, placed.setup.weight_format), "B")
    counted = f"{memory} of weights and one more layer of cache are counted"
    if count := model.prediction_module_count:
        modules = "a module" if count == 1 else f"{count} modules"
        return (
            f"{model.name} is published with {modules} for multi-token prediction (MTP); {counted}."
        )
    return (
        f"No module for multi-token prediction (MTP) is counted for {model.name}: speculation "
        f"needs an EAGLE head or a small draft model that was trained for it. Of a head, {counted}."
    )


def sequence_cache_bytes_per_gpu(
    placed: PlacedModel, context: float, stage: Architecture | None = None
) -> float:
    """Bytes of cache and state of one sequence on one GPU, of a pipeline stage if given [B]."""
    tensor, model = placed.setup.tensor_parallel, stage or placed.model
    if placed.engine.caches_beyond_window:
        elements = context * cache_elements_per_token_ignoring_windows(
            model, tensor, placed.cache_element_bytes
        )
    else:
        elements = kv_cache_elements_per_sequence(
            model, context, tensor, placed.cache_element_bytes
        )
    cached = elements * placed.cache_element_bytes
    if placed.setup.draft_tokens:  # One layer more.
        cached *= 1 + 1 / model.layers
    return cached + recurrent_state_bytes_per_sequence(model) / tensor


class MemoryBesidesCache(NamedTuple):
    """Bytes that the engine may use on one GPU, and what it takes besides the cache [B].

    `other_bytes`: CUDA, libraries, and tensors of its largest step or of sampling at start-up;
    `min_other_bytes` and `max_other_bytes`: the ends of its range.
    """

    usable_bytes: float
    weight_bytes: float
    other_bytes: float
    min_other_bytes: float
    max_other_bytes: float

    @property
    def bytes_left_for_cache(self) -> float:
        """Return the bytes that are left for the cache; negative if there are none [B]."""
        return self.usable_bytes - self.weight_bytes - self.other_bytes

    @property
    def bounds_of_bytes_left_for_cache(self) -> Bounds:
        """Return the least and the usual bytes that are left for the cache [B]."""
        least = self.usable_bytes - self.weight_bytes - self.max_other_bytes
        return Bounds(least, self.bytes_left_for_cache)


def compute_memory_besides_cache(
    placed: PlacedModel,
    usable_share: float = _DEFAULT_USABLE_SHARE,
    stage: Architecture | None = None,
) -> MemoryBesidesCache:
    """Return the memory of one GPU without the cache, of a pipeline stage if given."""
    tensor, model = placed.setup.tensor_parallel, stage or placed.model
    memory, engine = placed.gpu.engine_visible_memory, _find_engine_memory(placed)
    peak = profiled_temporary_peak_bytes(
        model, engine, tensor, sequences=placed.setup.max_sequences
    )
    drafting = 0.0
    if placed.setup.draft_tokens:
        drafting = draft_weight_bytes(placed.model, placed.setup.weight_format) / placed.setup.gpus
    overhead = engine.bytes_outside_framework(tensor)
    is_logged = engine.id in LOGGED_ENGINES
    overheads = LOGGED_OVERHEAD if is_logged else OVERHEAD
    active = LOGGED_ACTIVE if is_logged else ACTIVE
    shares, padding = _marlin_padding_and_shares_per_gpu(placed, model)
    unsure = (shares.most - shares.usual) * padding
    if engine.caches_hybrids_in_blocks and _build_hybrid_cache_blocks(placed, model):
        unsure += engine.hybrid_graph_bytes_per_token * engine.step_tokens
    return MemoryBesidesCache(
        usable_bytes=compute_engine_memory_limit(engine, memory, usable_share, tensor),
        weight_bytes=weight_bytes_per_gpu(placed, model) + drafting,
        other_bytes=overhead + peak,
        min_other_bytes=overheads.low * overhead
        + active.low * peak
        - (shares.usual - shares.least) * padding,
        max_other_bytes=overheads.high * overhead + active.high * peak + unsure,
    )


def _build_hybrid_cache_blocks(
    placed: PlacedModel, stage: Architecture
) -> HybridCacheBlocks | None:
    serving = placed.setup
    width = placed.cache_element_bytes
    return build_hybrid_cache_blocks(stage, width, serving.tensor_parallel, serving.draft_tokens)


def _find_engine_memory(placed: PlacedModel) -> EngineMemory:
    """Return what the engine uses besides weights and cache, with its defaults on this GPU."""
    engine = ENGINES[find_engine_id_with_memory_data(placed.engine.id)]
    return engine.with_defaults_for_gpu(placed.gpu.name, placed.gpu.engine_visible_memory)


def max_sequences_in_memory(
    placed: PlacedModel, context: float, usable_share: float = _DEFAULT_USABLE_SHARE
) -> float:
    """Sequences of mean context whose cache fits in one replica [1].

    Every pipeline stage caches all sequences; the fullest one decides.
    """
    stages = split_into_serving_stages(placed.model, placed.setup.pipeline_stages)
    return min(
        _max_sequences_of_stage(placed, context, usable_share, s.stage_model) for s in stages
    )


def _max_sequences_of_stage(
    placed: PlacedModel, context: float, usable_share: float, stage: Architecture
) -> float:
    room = compute_memory_besides_cache(placed, usable_share, stage).bytes_left_for_cache
    each = _sequence_cache_bytes_with_block_rounding(placed, context, stage)
    if each <= 0:
        return math.inf if room >= 0 else 0.0
    in_a_group = room / each  # Of a sequence no part can be in another group.
    return in_a_group * placed.setup.attention_replicas if in_a_group >= 1 else 0.0


def _sequence_cache_bytes_with_block_rounding(
    placed: PlacedModel, context: float, stage: Architecture
) -> float:
    """Bytes of a sequence on one GPU, in whole blocks where the engine caches hybrids so [B]."""
    if placed.engine.caches_hybrids_in_blocks and (
        blocks := _build_hybrid_cache_blocks(placed, stage)
    ):
        return blocks.block_bytes * blocks.count_blocks_of_running_sequence(context)
    return sequence_cache_bytes_per_gpu(placed, context, stage)


def find_max_num_seqs_refusal_of_replica(
    placed: PlacedModel, usable_share: float = _DEFAULT_USABLE_SHARE
) -> MaxNumSeqsRefusal | None:
    """Return with how many sequences vLLM does not start; None if it does with those it has.

    The pipeline stage with the fewest blocks decides.
    """
    engine = _find_engine_memory(placed)
    if not (placed.engine.caches_hybrids_in_blocks and engine.refuses_sequences_beyond_blocks):
        return None
    serving, default = placed.setup, engine.profiled_sequences
    refused = [
        find_max_num_seqs_refusal(
            _build_hybrid_cache_blocks(placed, stage.stage_model),
            compute_memory_besides_cache(
                placed, usable_share, stage.stage_model
            ).bounds_of_bytes_left_for_cache,
            serving.max_sequences,
            default,
        )
        for stage in split_into_serving_stages(placed.model, serving.pipeline_stages)
    ]
    return min(filter(None, refused), key=lambda start: start.advised_sequences, default=None)


def max_sequences_that_surely_fit(
    placed: PlacedModel, context: float, usable_share: float = _DEFAULT_USABLE_SHARE
) -> int:
    """Return the sequences of a replica that fit by the upper end of the estimate, too."""

    def fitting(stage: Architecture) -> float:
        each = _sequence_cache_bytes_with_block_rounding(placed, context, stage)
        room = -lacking_bytes_at_upper_bound(placed, 0.0, context, usable_share)
        return math.inf if each <= 0 <= room else max(0.0, room / max(each, 1e-9))

    stages = split_into_serving_stages(placed.model, placed.setup.pipeline_stages)
    least = min(fitting(stage.stage_model) for stage in stages)
    return int(min(_MAX_CONCURRENT_REQUESTS, least)) * placed.setup.attention_replicas


def lacking_bytes_at_upper_bound(
    placed: PlacedModel,
    sequences: float,
    context: float,
    usable_share: float = _DEFAULT_USABLE_SHARE,
) -> float:
    """Bytes that a GPU lacks for `sequences` by the upper end of the estimate; negative if none [B]."""
    return bounds_of_lacking_bytes(placed, sequences, context, usable_share).high


def bounds_of_lacking_bytes(
    placed: PlacedModel,
    sequences: float,
    context: float,
    usable_share: float = _DEFAULT_USABLE_SHARE,
) -> Bounds:
    """Bytes that a GPU lacks for `sequences` by both ends of the estimate; negative if none [B]."""

    def lacking_on(stage: Architecture) -> Bounds:
        parts = compute_memory_besides_cache(placed, usable_share, stage)
        cached = _sequence_cache_bytes_with_block_rounding(placed, context, stage) * sequences
        besides = parts.weight_bytes + cached - parts.usable_bytes
        return Bounds(besides + parts.min_other_bytes, besides + parts.max_other_bytes)

    stages = split_into_serving_stages(placed.model, placed.setup.pipeline_stages)
    lacking = [lacking_on(stage.stage_model) for stage in stages]
    return Bounds(max(each.low for each in lacking), max(each.high for each in lacking))


def max_accepted_sequences(placed: PlacedModel, context: float, usable_share: float) -> float:
    """Sequences that fit in memory and that an engine accepts [1]."""
    accepted = (
        placed.setup.max_sequences or _MAX_CONCURRENT_REQUESTS
    ) * placed.setup.attention_replicas
    return min(accepted, max_sequences_in_memory(placed, context, usable_share))


def requests_in_memory_per_group(
    concurrent_requests: float, max_in_memory: float, groups: int
) -> int:
    """Return the requests that each of the groups of a replica has in memory at a time, at least 1.

    Of `concurrent_requests` requests of the replica; those beyond the `max_in_memory` in memory wait outside.

    >>> requests_in_memory_per_group(90.0, 107.0, 1), requests_in_memory_per_group(90.0, 107.0, 8)
    (90, 12)
    """
    return max(1, min(math.ceil(concurrent_requests / groups), int(max_in_memory) // groups))


def count_whole_requests_in_memory(placed: PlacedModel, max_in_memory: float) -> int:
    """Return the requests that a replica has room for at a time, as many in each of its groups.

    A part of a request fits on average, not at a time.
    """
    groups = placed.setup.attention_replicas
    return int(max_in_memory / groups) * groups


class UnsureFit(NamedTuple):
    """What a GPU lacks by the upper end of the memory's range [B], and for how many requests.

    Of the `requests` that a replica has at a time, `surely_fitting_requests` fit by the upper end, too.
    """

    lacking_bytes: float
    requests: int
    surely_fitting_requests: int


def find_unsure_fit(
    placed: PlacedModel,
    concurrent_requests: float,
    max_in_memory: float,
    context_tokens: float,
    usable_share: float = _DEFAULT_USABLE_SHARE,
) -> UnsureFit | None:
    """Return what a GPU lacks for the requests in its memory; None if they surely fit."""
    each = requests_in_memory_per_group(
        concurrent_requests, max_in_memory, placed.setup.attention_replicas
    )
    lacking = lacking_bytes_at_upper_bound(placed, each, context_tokens, usable_share)
    if lacking <= 0:
        return None
    sure = max_sequences_that_surely_fit(placed, context_tokens, usable_share)
    return UnsureFit(lacking, math.ceil(concurrent_requests), sure)
