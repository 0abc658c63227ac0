"""`inference-memory`: the input values where the verdict changes."""

import bisect
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from app.estimator.common_inputs import LLAMA_CPP, TRANSFORMERS
from app.estimator.estimates.inference_memory import (
    DATA_PARALLEL,
    DIVIDED,
    ENGINE_CHOICES,
    CacheLimits,
    InferenceMemoryInputs,
    InferenceMemoryResult,
    compute_gpu_memory_use,
    compute_inference_limits,
    engine_sequence_limit,
    fewest_fitting_gpus,
    find_fullest_stage,
    find_published_fp8_split_problem,
    find_scale_block_problem,
    find_start_refusal_of_inputs,
    fits_by_central_estimate_with_changes,
    is_mig_instance,
    plausible_memory_range,
    search_cache_limits,
    solve_cache_limits,
    usable_memory_per_gpu,
    validate_inputs,
)
from app.estimator.hardware.catalog import (
    Accelerator,
    find_accelerator,
    list_larger_gpus_of_form,
)
from app.estimator.inputs import InvalidInputsError, non_default_inputs_to_query, parse_inputs
from app.estimator.memory.engine_memory import ENGINES
from app.estimator.memory.parallel_layout import (
    build_model_of_gpu_layers,
    filter_gpu_counts_by_quantization_blocks,
)
from app.estimator.memory_verdict import memory_status
from app.estimator.models.architecture import Architecture
from app.estimator.models.lookup import find_model
from app.estimator.models.weight_formats import (
    CACHE_BITS,
    CACHE_CHOICES,
    FORMATS,
    GGUF_FORMATS,
    find_weight_format,
    usual_gguf_format_id,
)
from app.estimator.result import InputChange, VerdictChange
from app.estimator.serving.engine_speed import find_fp8_problem
from app.estimator.units import format_number, format_value
from app.estimator.verdict_changes import (
    MOST_SEQUENCES,
    TIGHT_FIT,
    add_max_num_seqs_change,
    build_max_num_seqs_changes,
    round_up_to_usual_gpu_count,
)

VerdictChanges = list[VerdictChange]
MemoryBound = Literal["low", "high"]


def find_verdict_changes(result: InferenceMemoryResult) -> tuple[VerdictChange, ...]:
    """Return what would make a load fit that is too large, and where one that fits ends.

    What may not fit gets values that surely do.
    """
    changes: VerdictChanges = []
    starts = build_max_num_seqs_changes(
        find_start_refusal_of_inputs(result.model, result.inputs, result.gpu)
    )
    if not result.exceeds_usable_memory:
        changes += starts
    elif starts and (found := _find_first_fitting_change(result, [{}])):
        # Sampling for fewer sequences takes less memory, so that the load may fit.
        changes += [dataclasses.replace(change, verdict_after=found[1]) for change in starts]
    if not result.surely_fits:
        changes += _engine_settings_changes(result) + _cache_format_changes(result)
    changes += _context_and_sequence_changes(result)
    if not result.surely_fits:
        changes += _gguf_changes(result)
    changes += _larger_gpu_changes(result) + _gpu_count_changes(result)
    if not result.surely_fits:
        changes += _weight_format_changes(result) + _data_parallel_changes(result)
        changes += _gpu_layer_changes(result)
    started = (_add_sequence_change_to_start_vllm(result, change) for change in changes)
    corrected = (_correct_verdict_text_of_change(result, change) for change in started)
    return tuple(_add_load_condition_to_change(result, change) for change in corrected)


def _correct_verdict_text_of_change(
    result: InferenceMemoryResult, change: VerdictChange
) -> VerdictChange:
    """Return the change with the words of the verdict that its values lead to."""
    said = change.verdict_after
    if not said.startswith(("Fits", "Surely fits", "No longer fits")):
        return change
    typed = {**non_default_inputs_to_query(result.inputs), **change.typed_values_by_field}
    changed = parse_inputs(InferenceMemoryInputs, typed)
    model = result.model
    kept = (result.inputs.engine, result.inputs.gpu_layers)
    if (changed.engine, changed.gpu_layers) != kept:
        model = find_fullest_stage(find_model(changed.model), changed)
    use = compute_gpu_memory_use(model, changed, changed.tensor_parallel)
    gpu = _gpu_after_change(result, changed)
    limit = usable_memory_per_gpu(changed, gpu, use, changed.tensor_parallel)
    if said == "No longer fits.":
        may_fit = plausible_memory_range(changed, use).low <= limit
        return dataclasses.replace(change, verdict_after="May not fit.") if may_fit else change
    if memory_status(use.total, limit) == "tight":
        condition = said.removeprefix("Surely fits").removeprefix("Fits")
        said = TIGHT_FIT.removesuffix(".") + condition
    return dataclasses.replace(change, verdict_after=said)


def _add_load_condition_to_change(
    result: InferenceMemoryResult, change: VerdictChange
) -> VerdictChange:
    """Return the change with how engines load the weights divided so, if it says that they fit."""
    said = change.verdict_after
    if not said.startswith(("Fits", "Surely fits", "May fit", "The fewest", "Tight")):
        return change
    typed = {**non_default_inputs_to_query(result.inputs), **change.typed_values_by_field}
    condition = find_load_condition(parse_inputs(InferenceMemoryInputs, typed))
    said = f"{said.removesuffix('.')}{LOAD_CONDITION_TEXTS[condition]}"
    return dataclasses.replace(change, verdict_after=said)


LoadCondition = Literal["none", "expert parallelism", "refused"]
LOAD_CONDITION_TEXTS: Mapping[LoadCondition, str] = {
    "none": ".",
    "expert parallelism": ", with expert parallelism.",
    "refused": ", but the engine refuses to load it.",
}
"""What follows the word that a model fits."""


def find_load_condition(inputs: InferenceMemoryInputs) -> LoadCondition:
    """Return how engines load the weights if these cut blocks that have one scale each.

    Experts that are divided whole take about as much memory.
    """
    gpus = inputs.tensor_parallel
    if find_scale_block_problem(inputs, gpus) is None:
        return "none"
    if filter_gpu_counts_by_quantization_blocks(find_model(inputs.model), inputs.weights, (gpus,)):
        return "expert parallelism"
    return "refused"


def _find_first_fitting_change(
    result: InferenceMemoryResult, changes: Sequence[Mapping[str, Any]]
) -> tuple[Mapping[str, Any], str] | None:
    """Return the first change that surely fits, or else that may fit, and the word for that.

    Where it may fit already, only one that surely does. It has the sequences with which vLLM
    starts.
    """
    tried: tuple[tuple[Callable[..., bool], str], ...] = ((_fits_surely, "Fits."),)
    if result.exceeds_usable_memory:
        tried += ((fits_by_central_estimate_with_changes, "May fit."),)
    for fits, becomes in tried:
        for change in changes:
            started = {**change, **_sequence_change_to_start_vllm(result, change)}
            if fits(result.model, result.inputs, result.gpu, **started):
                return change, becomes
    return None


def _fits_surely(
    model: Architecture, inputs: InferenceMemoryInputs, gpu: Accelerator, **changes: Any
) -> bool:
    """Return whether the most that each GPU may need is usable, so that the verdict is sure."""
    return _fits_at_bound(model, inputs, gpu, "high", **changes)


def _fits_at_bound(
    model: Architecture,
    inputs: InferenceMemoryInputs,
    gpu: Accelerator,
    bound: MemoryBound,
    **changes: Any,
) -> bool:
    changed = dataclasses.replace(inputs, **changes)
    memory_use = compute_gpu_memory_use(model, changed, changed.tensor_parallel)
    needed: float = getattr(plausible_memory_range(changed, memory_use), bound)
    return needed <= usable_memory_per_gpu(changed, gpu, memory_use, changed.tensor_parallel)


def _sequence_change_to_start_vllm(
    result: InferenceMemoryResult, change: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the most sequences with which vLLM starts after a change; empty if it does so anyway."""
    changed = dataclasses.replace(result.inputs, **change)
    refused = find_start_refusal_of_inputs(result.model, changed, result.gpu)
    return (
        {MOST_SEQUENCES[0]: refused.advised_sequences}
        if refused and refused.advised_sequences
        else {}
    )


def _add_sequence_change_to_start_vllm(
    result: InferenceMemoryResult, change: VerdictChange
) -> VerdictChange:
    if not change.verdict_after.startswith(("Fits", "Surely fits", "May fit", "The fewest")):
        return change
    typed = {**non_default_inputs_to_query(result.inputs), **change.typed_values_by_field}
    changed = parse_inputs(InferenceMemoryInputs, typed)
    gpu = _gpu_after_change(result, changed)
    return add_max_num_seqs_change(change, find_start_refusal_of_inputs(result.model, changed, gpu))


def _gpu_after_change(result: InferenceMemoryResult, changed: InferenceMemoryInputs) -> Accelerator:
    return result.gpu if changed.gpu == result.inputs.gpu else find_accelerator(changed.gpu)


# What people set first where an engine runs out of memory.
_FEWER_SEQUENCES, _LARGER_SHARE = 256, 0.95
_USABLE_SHARE_FIELD = ("memory_utilization", "Usable share of memory")


def _engine_settings_changes(result: InferenceMemoryResult) -> VerdictChanges:
    """Return the settings of an engine with which its load fits, as one change."""
    inputs = result.inputs
    if inputs.engine not in ENGINES or ENGINES[inputs.engine].has_no_fraction:
        return []
    now = engine_sequence_limit(inputs)
    share = inputs.memory_utilization
    fewer = min(now, max(_FEWER_SEQUENCES, inputs.concurrent))
    larger = max(share, _LARGER_SHARE)
    field, label = _USABLE_SHARE_FIELD
    tried = [
        {"max_sequences": sequences, field: part}
        for sequences, part in ((fewer, share), (now, larger), (fewer, larger))
        if sequences
    ]
    if (found := _find_first_fitting_change(result, tried)) is None:
        return []
    sequences, part = found[0].values()
    used, then = (format_value(value, "%") for value in (share, part))
    if sequences == now:
        return [VerdictChange(field, label, used, then, found[1])]
    also = (InputChange(field, label, then),) if part != share else ()
    return [
        VerdictChange(*MOST_SEQUENCES, format_number(now), format_number(sequences), found[1], also)
    ]


_WIDE_CACHE = 16


def _cache_format_changes(result: InferenceMemoryResult) -> VerdictChanges:
    """Return the 8-bit cache of the engine, if the load fits with it and not with its own.

    With a larger share of the memory if that is needed as well.
    """
    inputs, labels = result.inputs, dict(CACHE_CHOICES)
    narrow = "q8-0" if inputs.engine == LLAMA_CPP else "fp8"
    wide = CACHE_BITS[inputs.cache] >= _WIDE_CACHE
    if not wide or inputs.engine == TRANSFORMERS or result.gpu.lacks_format(narrow):
        return []
    tried: list[dict[str, Any]] = [{"cache": narrow}]
    if inputs.engine in ENGINES and not ENGINES[inputs.engine].has_no_fraction:
        tried.append(
            {"cache": narrow, _USABLE_SHARE_FIELD[0]: max(inputs.memory_utilization, _LARGER_SHARE)}
        )
    if (found := _find_first_fitting_change(result, tried)) is None:
        return []
    change, becomes = found
    share = change.get(_USABLE_SHARE_FIELD[0])
    also = (InputChange(*_USABLE_SHARE_FIELD, format_value(share, "%")),) if share else ()
    return [VerdictChange("cache", "KV cache", labels[inputs.cache], labels[narrow], becomes, also)]


def _context_and_sequence_changes(result: InferenceMemoryResult) -> VerdictChanges:
    """Return the longest context and the most sequences, or the first that may not fit."""
    if not result.surely_fits:
        result = _limit_sequences_to_start_vllm(result)
        if result.surely_fits:  # A smaller load is not needed.
            return []
    inputs, counted = result.inputs, result.limits.cache_limits
    sure, step = find_sure_cache_limits(result), int(result.surely_fits)
    limits = sure if result.surely_fits or any(sure) else counted
    if not result.surely_fits and not any(sure) and not result.exceeds_usable_memory:
        return []

    def verdict_after(sure_limit: int | None, counted_limit: int | None) -> str:
        if not result.surely_fits:
            return "Surely fits." if any(sure) else "May fit."
        return "No longer fits." if sure_limit == counted_limit else "May not fit."

    changes, longest = [], find_model(inputs.model).max_context
    now = format_value(inputs.context, "token")
    if longest and inputs.context > longest:
        then = format_value(longest, "token")
        changes.append(
            VerdictChange("context", "Context", now, then, "As long as the model takes.")
        )
    elif limits.longest_context and (longest is None or limits.longest_context < longest):
        then = format_value(limits.longest_context + step, "token")
        becomes = verdict_after(sure.longest_context, counted.longest_context)
        changes.append(VerdictChange("context", "Context", now, then, becomes))
    if limits.most_sequences:
        now, then = (format_number(n) for n in (inputs.concurrent, limits.most_sequences + step))
        becomes = verdict_after(sure.most_sequences, counted.most_sequences)
        changes.append(VerdictChange("concurrent", "Concurrent sequences", now, then, becomes))
    return changes


def _limit_sequences_to_start_vllm(result: InferenceMemoryResult) -> InferenceMemoryResult:
    """Return the result with the most sequences with which vLLM starts, if it does not with these."""
    change = _sequence_change_to_start_vllm(result, {})
    if not change:
        return result
    model, inputs = result.model, dataclasses.replace(result.inputs, **change)
    use = compute_gpu_memory_use(model, inputs, inputs.tensor_parallel)
    limits = compute_inference_limits(model, inputs, result.gpu, use)
    return dataclasses.replace(result, inputs=inputs, memory_per_gpu=use, limits=limits)


def find_sure_cache_limits(result: InferenceMemoryResult) -> CacheLimits:
    """Return the longest context and the most sequences that fit by the high end, too."""
    return find_cache_limits_at_bound(result, "high")


def find_cache_limits_at_bound(result: InferenceMemoryResult, bound: MemoryBound) -> CacheLimits:
    """Return the longest context and the most sequences if memory is right at its bound."""
    model, inputs, memory_use = result.model, result.inputs, result.memory_per_gpu
    if inputs.engine == TRANSFORMERS:
        return search_cache_limits(
            model, inputs, result.gpu, functools.partial(_fits_at_bound, bound=bound)
        )
    needed = getattr(plausible_memory_range(inputs, memory_use), bound)
    room = result.limits.usable_bytes_per_gpu - needed + memory_use.cache
    return solve_cache_limits(model, inputs, memory_use, room)


_LIGHTER_WEIGHT_FORMATS = ("fp8", "int8", "int4")
# Nobody quantizes weights again to save less than this.
_WORTH_IT = 0.9
_LIGHTER_GGUF = ("gguf-q8-0", "gguf-q6-k", "gguf-q4-k-m")


def _list_lighter_gguf_mixtures(model: Architecture) -> tuple[str, ...]:
    """Return the files to try, widest first; experts that are published in MXFP4 stay in it."""
    usual = usual_gguf_format_id(model)
    return _LIGHTER_GGUF if usual in _LIGHTER_GGUF else (usual,)


def _gguf_changes(result: InferenceMemoryResult) -> VerdictChanges:
    """Return the widest usual GGUF file with which the load fits one GPU in llama.cpp."""
    inputs = result.inputs
    if inputs.engine in (LLAMA_CPP, TRANSFORMERS) or inputs.weights in GGUF_FORMATS:
        return []
    if inputs.tensor_parallel > 1 or inputs.pipeline_parallel > 1:
        return []
    files = _list_lighter_gguf_mixtures(result.model)
    on_gpus = build_model_of_gpu_layers(result.model, LLAMA_CPP)
    found = _find_first_fitting_change(
        dataclasses.replace(result, model=on_gpus),
        [{"engine": LLAMA_CPP, "weights": name} for name in files],
    )
    if found is None:
        return []
    now, then = (dict(ENGINE_CHOICES)[engine] for engine in (inputs.engine, LLAMA_CPP))
    also = (InputChange("weights", "Weights", f"GGUF {GGUF_FORMATS[found[0]['weights']]}"),)
    return [VerdictChange("engine", "Engine", now, then, found[1], also)]


def _gpu_count_changes(result: InferenceMemoryResult) -> VerdictChanges:
    inputs, sizes = result.inputs, result.limits.memory_at_gpu_counts
    sure = fewest_fitting_gpus(sizes, lambda use: plausible_memory_range(inputs, use).high)
    fewest, becomes = (sure, "Fits.") if sure else (result.limits.fewest_gpus, "May fit.")
    if not fewest or fewest == inputs.tensor_parallel or is_mig_instance(inputs, result.gpu):
        return []
    if not sure and not result.exceeds_usable_memory:
        return []
    becomes = "The fewest that fit." if result.surely_fits else becomes
    if inputs.attention == DATA_PARALLEL and fewest > inputs.tensor_parallel:
        fewest = round_up_to_usual_gpu_count(fewest)
    if find_published_fp8_split_problem(dataclasses.replace(inputs, tensor_parallel=fewest)):
        becomes = (
            f"{becomes.removesuffix('.')}, the published FP8 checkpoint with expert parallelism."
        )
    now = str(inputs.tensor_parallel)
    return [VerdictChange("tensor_parallel", "GPUs", now, str(fewest), becomes)]


def _larger_gpu_changes(result: InferenceMemoryResult) -> VerdictChanges:
    """Return the next larger GPU of the same kind on as many of which the load surely fits."""
    inputs, model = result.inputs, result.model
    if result.surely_fits or inputs.shown_memory is not None:
        return []
    for gpu in list_larger_gpus_of_form(result.gpu):
        changed = dataclasses.replace(inputs, gpu=gpu.id)
        try:
            validate_inputs(find_model(inputs.model), changed, gpu)
        except InvalidInputsError:  # It lacks a format.
            continue
        if _fits_surely(model, changed, gpu):
            return [VerdictChange("gpu", "GPU", result.gpu.name, gpu.name, "Fits.")]
    return []


def _weight_format_changes(result: InferenceMemoryResult) -> VerdictChanges:
    """Return the widest common weight format for which the load fits."""
    inputs, needed = result.inputs, result.memory_per_gpu
    if needed.cache + needed.overhead > result.limits.usable_bytes_per_gpu:
        return []  # It would not fit even without weights.
    is_gguf = inputs.engine == LLAMA_CPP
    lighter = []
    for name in _list_lighter_gguf_mixtures(result.model) if is_gguf else _LIGHTER_WEIGHT_FORMATS:
        form, has_experts = FORMATS.get(name), result.model.is_routed
        if form is None or not find_fp8_problem(
            result.gpu, form, inputs.engine, has_experts=has_experts
        ):
            changed = dataclasses.replace(inputs, weights=name)
            use = compute_gpu_memory_use(result.model, changed, inputs.tensor_parallel)
            lighter += [{"weights": name}] * (use.weights < _WORTH_IT * needed.weights)
    if (found := _find_first_fitting_change(result, lighter)) is None:
        return []
    model, names = find_model(inputs.model), (inputs.weights, found[0]["weights"])
    now, then = (find_weight_format(model, each).label for each in names)
    return [VerdictChange("weights", "Weights", now, then, found[1])]


def _gpu_layer_changes(result: InferenceMemoryResult) -> VerdictChanges:
    """Return the most layers that surely fit on the GPUs if llama.cpp keeps the rest on the host."""
    inputs, model = result.inputs, find_model(result.inputs.model)
    if inputs.engine != LLAMA_CPP:
        return []

    def is_too_large(layers: int) -> bool:
        on_gpus = build_model_of_gpu_layers(model, LLAMA_CPP, layers)
        return not _fits_surely(on_gpus, inputs, result.gpu, gpu_layers=layers)

    most = bisect.bisect_left(range(1, model.layers + 1), True, key=is_too_large)
    if not most:
        return []
    now = "all" if inputs.gpu_layers is None else str(inputs.gpu_layers)
    becomes = "Fits, the other layers in the memory of the host."
    return [VerdictChange("gpu_layers", "Layers on the GPUs", now, str(most), becomes)]


def _data_parallel_changes(result: InferenceMemoryResult) -> VerdictChanges:
    """Return data-parallel attention if the load fits with it.

    A latent cache has no heads to divide: every GPU that shares attention stores all
    of it. From DeepSeek-V3 (2024), section 3.4.2.
    """
    inputs = result.inputs
    divided = inputs.attention == DIVIDED and inputs.tensor_parallel > 1
    if not divided or inputs.engine == TRANSFORMERS:
        return []
    if (found := _find_first_fitting_change(result, [{"attention": DATA_PARALLEL}])) is None:
        return []
    return [VerdictChange("attention", "Attention", "Divided", "Data parallel", found[1])]
