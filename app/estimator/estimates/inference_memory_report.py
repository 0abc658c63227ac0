"""`inference-memory`: verdict, figures, charts and formula steps of a result."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import NamedTuple

from app.estimator.common_inputs import LLAMA_CPP, TRANSFORMERS
from app.estimator.estimates.inference_memory import (
    CONTEXT_BYTES,
    DATA_PARALLEL,
    GENERAL,
    NCCL_BYTES,
    STEP_TOKENS,
    CacheLimits,
    GpuMemoryUse,
    InferenceMemoryInputs,
    InferenceMemoryResult,
    activation_range_factors,
    attention_tensor_parallel_size,
    compute_active_mlp_width,
    compute_gpu_memory_use,
    compute_host_bytes,
    compute_inference_limits,
    compute_memory_use_of_all_gpus,
    fewest_fitting_gpus,
    find_engine_memory_on_gpu,
    find_fullest_stage,
    find_published_fp8_split_problem,
    find_scale_block_problem,
    find_start_refusal_of_inputs,
    is_mig_instance,
    overhead_range_factors,
    plausible_memory_range,
    program_visible_memory,
    sequences_per_gpu,
    shared_hybrid_blocks,
    validate_inputs,
)
from app.estimator.estimates.inference_memory_changes import (
    LOAD_CONDITION_TEXTS,
    find_cache_limits_at_bound,
    find_load_condition,
    find_sure_cache_limits,
    find_verdict_changes,
)
from app.estimator.estimates.mig import (
    find_mig_gpu,
    find_profiles_with_memory,
    list_mig_gpu_ids,
)
from app.estimator.formula_steps import (
    StepBuilder,
    format_sum_in_formula,
    format_term,
    format_terms_of_exact_sum,
    kv_cache_publication_id,
    multiply_or_divide_formula,
    sequence_kv_cache_per_gpu_formula,
    share_per_gpu_formula,
)
from app.estimator.hardware.catalog import Accelerator, find_accelerator
from app.estimator.memory.engine_memory import (
    DEFAULT_ENGINE,
    ENGINES,
    LOGGED_ENGINES,
    compute_weight_bytes_while_loading,
    profiled_mlp_width,
    widest_layer_prefill_bytes,
)
from app.estimator.memory.kv_cache import recurrent_state_bytes_per_sequence, round_up_to_blocks
from app.estimator.memory.parallel_layout import redundant_experts_note
from app.estimator.memory_verdict import (
    MemoryLimit,
    build_memory_verdict,
    real_capacity_note,
    replace_verdict_if_context_exceeds_max,
    uncertain_fit_note,
)
from app.estimator.models.architecture import Architecture
from app.estimator.models.lookup import find_model
from app.estimator.models.weight_formats import (
    CACHE_BITS,
    GGUF_FORMATS,
    count_redundant_experts,
    find_weight_format,
    weight_bytes_by_split,
)
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    BarSegment,
    Bounds,
    Component,
    Estimate,
    EstimateLink,
    FormulaStep,
    ModeledOutput,
    OutputSpec,
    OutputValue,
    ResultTable,
    StackedBar,
    Status,
    Verdict,
    label_in_sentence,
    read_figures,
    value_with_range_factors,
)
from app.estimator.serving.engine_speed import fp8_weight_only_notes
from app.estimator.units import format_count, format_number, format_value
from app.estimator.verdict_changes import (
    MAX_NUM_SEQS,
    describe_fewest_gpus,
    round_up_to_usual_gpu_count,
)


class MemoryPart(NamedTuple):
    component: Component
    label: str
    field: str


MEMORY_PARTS = (
    MemoryPart("weights", "Weights", "weights"),
    MemoryPart("kv", "KV cache", "cache"),
    MemoryPart("activations", "Activations", "activations"),
    MemoryPart("overhead", "Overhead", "overhead"),
    MemoryPart("other", "Padding", "padding"),
)


def _parts_without_zero_padding(memory_use: GpuMemoryUse) -> tuple[MemoryPart, ...]:
    return MEMORY_PARTS if memory_use.padding else MEMORY_PARTS[:-1]


def build_memory_bar(
    gpu: Accelerator, memory_use: GpuMemoryUse, usable_bytes: float, instance: str = ""
) -> StackedBar:
    segments = tuple(
        BarSegment(part.component, part.label, getattr(memory_use, part.field))
        for part in _parts_without_zero_padding(memory_use)
    )
    part = "an instance of " if instance else ""
    usable = f"{format_value(usable_bytes, 'B')} usable of {part}{gpu.name}"
    title = "Memory of each instance" if instance else "Memory of each GPU"
    return StackedBar(title, segments, usable_bytes, usable)


def build_memory_parts_table(
    memory_use: GpuMemoryUse, memory_of_all_gpus: GpuMemoryUse
) -> ResultTable:
    labels = {part.label: part.field for part in _parts_without_zero_padding(memory_use)} | {
        "Sum": "total"
    }
    rows = tuple(
        (label, (getattr(memory_use, name), "B"), (getattr(memory_of_all_gpus, name), "B"))
        for label, name in labels.items()
    )
    return ResultTable("Parts", ("Part", "Each GPU", "All GPUs"), rows)


def build_notes(
    model: Architecture, inputs: InferenceMemoryInputs, memory_use: GpuMemoryUse
) -> tuple[str, ...]:
    notes = [*_weight_notes(model, inputs, memory_use)]
    notes += _engine_notes(model, inputs, memory_use)
    if inputs.overhead is None:
        notes.append(_overhead_note(inputs, memory_use))
    if memory_use.default_engine_startup > memory_use.activations + memory_use.overhead:
        startup = format_value(memory_use.default_engine_startup, "B")
        notes.append(
            f"{ENGINES[DEFAULT_ENGINE].label} keeps {startup} beside weights and cache at its start, for "
            "sampling many sequences; the upper end counts that."
        )
    if any(a.mixer.latent_width for a, _ in model.layer_counts) and inputs.tensor_parallel > 1:
        notes.append("A latent cache is divided by data-parallel attention alone.")
    if model.is_routed:
        notes.append("All experts are in memory, although few work on one token.")
        if _count_redundant_experts_of_whole_split(model, inputs):
            engine = "vllm" if inputs.engine == DEFAULT_ENGINE else inputs.engine
            notes += redundant_experts_note(model, inputs.tensor_parallel, engine)
    if model.sliding_window:
        notes.append(
            f"Sliding layers keep at most {format_number(model.sliding_window)} tokens; an "
            "engine without support for it keeps all."
        )
    return tuple(notes)


def _count_redundant_experts_of_whole_split(
    model: Architecture, inputs: InferenceMemoryInputs
) -> int:
    """Return the redundant experts that GPUs with whole experts of their own need."""
    is_dealt_whole = inputs.engine == TRANSFORMERS or inputs.weights in GGUF_FORMATS
    if is_dealt_whole or inputs.attention != DATA_PARALLEL:
        return 0
    return count_redundant_experts(model, inputs.tensor_parallel)


def _engine_notes(
    model: Architecture, inputs: InferenceMemoryInputs, memory_use: GpuMemoryUse
) -> Iterator[str]:
    if inputs.pipeline_parallel > 1:
        yield (
            f"The figures of one GPU are those of the stage with most memory, of "
            f"{format_count(model.layers, 'layer')}; all stages cache as many tokens as that one."
        )
    if shared := shared_hybrid_blocks(model, inputs, inputs.tensor_parallel):
        yield (
            "vLLM divides the cache into blocks of one size. A block holds the attention of "
            f"{format_number(shared.tokens_per_block)} tokens, or one state of the recurrent layers. "
            "A running sequence of this context takes "
            f"{format_number(shared.count_blocks_of_running_sequence(inputs.context))} blocks. vLLM "
            f"starts with at least {format_number(shared.count_startup_blocks_per_sequence(inputs.context))}, "
            "and its log divides by them: with prefix caching, on for such models since 0.27 (pull "
            "request 50991), it reserves two states for each group of layers, else one."
        )
        if ENGINES[inputs.engine].refuses_sequences_beyond_blocks:
            yield (
                f"Each sequence of {MAX_NUM_SEQS} needs a block for its state; vLLM does not start "
                "with more of them than the cache has blocks."
            )
        if graphs := memory_use.possible_graph_bytes:
            yield (
                f"vLLM 0.26 and later may count {format_value(graphs, 'B')} more for CUDA graphs of "
                "such a model (issue 50780); the range includes it."
            )
    if inputs.graphs:
        graph_memory = format_value(inputs.graphs, "B")
        yield f"CUDA graphs take {graph_memory} of each GPU beside the usable share."
    if inputs.engine == TRANSFORMERS:
        yield (
            "Transformers answers one batch until its longest answer ends, without a paged "
            "cache; its speed under load is not estimated."
        )
    if inputs.engine in ENGINES and ENGINES[inputs.engine].has_no_fraction:
        label = ENGINES[inputs.engine].label
        yield f"{label} take what they need of the whole memory: the usable share does not count."
    if inputs.engine in (TRANSFORMERS, LLAMA_CPP) and inputs.tensor_parallel > 1:
        yield "Each GPU holds whole layers; no layer is divided among GPUs."


def _weight_notes(
    model: Architecture, inputs: InferenceMemoryInputs, memory_use: GpuMemoryUse
) -> Iterator[str]:
    form = find_weight_format(model, inputs.weights)
    if form.checkpoint_bit_widths is not None:
        tensors = "norms, and modules that the checkpoint leaves out,"
        yield f"{form.label}: {tensors} stay in 16 bit."
    elif form.covers != "all":
        tensors = "embeddings, output head, norms and routers"
        if form.covers == "calibrated" and "linear attention" in model.parameters_by_part():
            tensors = "embeddings, output head, norms, routers and linear attention"
        yield f"{form.label}: {tensors} stay in 16 bit."
    if memory_use.padding:
        padding_text = format_value(memory_use.padding, "B")
        yield (
            "The Marlin kernels of the engine repack the experts and pad their widths: "
            f"{padding_text} more on each GPU than the file has."
        )
    elif memory_use.most_padding and inputs.engine in (DEFAULT_ENGINE, GENERAL):
        most = format_value(memory_use.most_padding, "B")
        yield (
            f"Versions of vLLM before July 2026 (pull request 46549) keep the scales of the experts "
            f"twice: up to {most} more on each GPU. The upper end counts that."
        )


def _overhead_note(inputs: InferenceMemoryInputs, memory_use: GpuMemoryUse) -> str:
    factors = overhead_range_factors(inputs)
    low, high = (format_value(memory_use.overhead * factor, "B") for factor in factors)
    note = (
        f"Overhead is taken as {format_value(memory_use.overhead, 'B')} per GPU ({low} to {high})"
    )
    if inputs.engine in LOGGED_ENGINES:
        logged_gpus = ENGINES[inputs.engine].max_gpus_in_startup_logs
        return f"{note}, as start-up logs of up to {logged_gpus} GPUs show it."
    return f"{note}." if inputs.engine != GENERAL else f"{note}; start-up logs show 0.3 to 4 GB."


_MemoryResult = InferenceMemoryResult


def _overhead_of_all_gpus(result: _MemoryResult) -> OutputValue:
    overhead, factors = result.memory_of_all_gpus.overhead, overhead_range_factors(result.inputs)
    return (
        OutputValue(overhead)
        if factors == Bounds(1.0, 1.0)
        else value_with_range_factors(overhead, factors)
    )


def _padding_of_all_gpus(result: _MemoryResult) -> OutputValue:
    use = result.memory_of_all_gpus
    if not use.most_padding:
        return OutputValue(None, note="None is added.", applies=False)
    if use.least_padding == use.most_padding:
        return OutputValue(use.padding, note="Of the Marlin kernels of vLLM.")
    note = "Of the Marlin kernels of vLLM; Triton's add less." if use.padding else ""
    return OutputValue(use.padding, use.least_padding, use.most_padding, note)


def _total_with_range(inputs: InferenceMemoryInputs, memory_use: GpuMemoryUse) -> OutputValue:
    return OutputValue(memory_use.total, *plausible_memory_range(inputs, memory_use))


def _host_memory(result: _MemoryResult) -> OutputValue:
    if result.inputs.engine != LLAMA_CPP:
        return OutputValue(None, note="llama.cpp alone keeps weights there.", applies=False)
    held = "The input table"
    if result.inputs.gpu_layers is not None:
        held += ", and weights and cache of the layers there"
    return OutputValue(result.host_bytes, note=f"{held}.")


def _free_memory(result: _MemoryResult) -> OutputValue:
    limit, needed = result.limits.usable_bytes_per_gpu, result.memory_per_gpu
    low, high = plausible_memory_range(result.inputs, needed)
    return OutputValue(limit - needed.total, limit - high, limit - low)


def _fits_memory(result: _MemoryResult) -> OutputValue:
    limit, needed = result.limits.usable_bytes_per_gpu, result.memory_per_gpu
    note = uncertain_fit_note(limit, *plausible_memory_range(result.inputs, needed))
    return OutputValue(needed.total <= limit, note=note)


def _cache_limit_value(value: int | None) -> OutputValue:
    return OutputValue(value, note="" if value is not None else "The cache does not grow with it.")


def _longest_context(result: _MemoryResult) -> OutputValue:
    held, most = result.limits.cache_limits.longest_context, result.model.max_context
    if most is None or (held is not None and held <= most):
        longest = _cache_limit_with_range(result, lambda limits: limits.longest_context)
        if most is None or longest.high is None:
            return longest
        return dataclasses.replace(longest, high=min(longest.high, most))
    note = "As long as the model takes."
    if held is not None:
        note += f" Memory holds {format_value(held, 'token')}."
    return OutputValue(most, note=note)


def _most_sequences(result: _MemoryResult) -> OutputValue:
    held = _cache_limit_with_range(result, lambda limits: limits.most_sequences)
    most = result.limits.cache_limits.most_sequences
    sure = find_sure_cache_limits(result).most_sequences
    if most is None or sure is None or sure >= most:
        return held
    return dataclasses.replace(held, note=f"{format_number(sure)} surely fit.")


def _cache_limit_with_range(
    result: _MemoryResult, read: Callable[[CacheLimits], int | None]
) -> OutputValue:
    """Return a limit with those at both ends of the memory's range; the low end surely fits."""
    value = read(result.limits.cache_limits)
    if value is None or result.inputs.cache_memory is not None:
        return _cache_limit_value(value)
    low = read(find_cache_limits_at_bound(result, "high"))
    high = read(find_cache_limits_at_bound(result, "low"))
    return OutputValue(value, low, high)


def _room_for_cache(result: _MemoryResult) -> OutputValue:
    cache_bytes, memory_use = result.limits.bytes_left_for_cache_per_gpu, result.memory_per_gpu
    if result.inputs.cache_memory is not None:
        return OutputValue(cache_bytes)
    low, high = (
        bound - memory_use.cache for bound in plausible_memory_range(result.inputs, memory_use)
    )
    limit = result.limits.usable_bytes_per_gpu
    return OutputValue(cache_bytes, max(0.0, limit - high), max(0.0, limit - low))


def _cache_capacity(result: _MemoryResult, count: int | None) -> OutputValue:
    """Return the tokens or blocks that the cache holds, with the range of its room."""
    cache_value = _room_for_cache(result)
    if count is None:
        return _cache_limit_value(None)
    note = "On each GPU." if result.inputs.attention == DATA_PARALLEL else ""
    cache_bytes = result.limits.bytes_left_for_cache_per_gpu
    if not cache_bytes or cache_value.low is None or cache_value.high is None:
        return OutputValue(count, note=note)
    return value_with_range_factors(
        count, (cache_value.low / cache_bytes, cache_value.high / cache_bytes), note
    )


def _fewest_gpus(result: _MemoryResult) -> OutputValue:
    inputs, limits = result.inputs, result.limits
    stages = inputs.pipeline_parallel
    if is_mig_instance(inputs, result.gpu):
        return OutputValue(None, note="No link joins MIG instances.", applies=False)
    if limits.fewest_gpus is None:
        return OutputValue(None, note="More than 64 GPUs, or not at all.")
    if inputs.cache_memory is not None:
        return OutputValue(limits.fewest_gpus * stages, note="With the memory given for the cache.")
    sizes = limits.memory_at_gpu_counts
    low = fewest_fitting_gpus(sizes, lambda use: plausible_memory_range(inputs, use).low)
    high = fewest_fitting_gpus(sizes, lambda use: plausible_memory_range(inputs, use).high)
    if low is None or high is None:
        note = "May not fit: more than 64 with the most that activations and overhead may take."
        return OutputValue(limits.fewest_gpus * stages, note=note)
    note = describe_fewest_gpus(high * stages, limits.fewest_gpus * stages)
    usual = round_up_to_usual_gpu_count(high)
    if inputs.attention == DATA_PARALLEL and usual > high:  # It takes any number.
        note = f"{note} The next usual number is {usual}.".strip()
    return OutputValue(high * stages, low * stages, high * stages, note)


OUTPUTS: tuple[OutputSpec[_MemoryResult], ...] = (
    OutputSpec("weights", "Weights", "B", "less", lambda r: r.memory_of_all_gpus.weights),
    OutputSpec("kv_cache", "KV cache", "B", "less", lambda r: r.memory_of_all_gpus.cache),
    ModeledOutput(
        "activations",
        "Activations",
        "B",
        "less",
        lambda r: value_with_range_factors(
            r.memory_of_all_gpus.activations, activation_range_factors(r.inputs)
        ),
    ),
    ModeledOutput("overhead", "Overhead", "B", "less", _overhead_of_all_gpus),
    ModeledOutput("padding", "Padding of repacked experts", "B", "less", _padding_of_all_gpus),
    ModeledOutput(
        "total", "In all", "B", "less", lambda r: _total_with_range(r.inputs, r.memory_of_all_gpus)
    ),
    ModeledOutput(
        "per_gpu",
        "On each GPU",
        "B",
        "less",
        lambda r: _total_with_range(r.inputs, r.memory_per_gpu),
        primary=True,
    ),
    OutputSpec("host", "In the memory of the host", "B", "less", _host_memory),
    ModeledOutput("free", "Free on each GPU", "B", "more", _free_memory),
    OutputSpec("fits", "Fits", better="more", read=_fits_memory),
    ModeledOutput("max_context", "Longest context", "token", "more", _longest_context),
    ModeledOutput(
        "max_concurrent",
        "Most sequences",
        "sequence",
        "more",
        _most_sequences,
    ),
    ModeledOutput("fewest_gpus", "Fewest GPUs", "GPU", "less", _fewest_gpus),
    ModeledOutput("cache_room", "Room for the cache on each GPU", "B", "more", _room_for_cache),
    ModeledOutput(
        "cache_tokens",
        "Tokens that the cache holds",
        "token",
        "more",
        lambda r: _cache_capacity(r, r.limits.cache_token_capacity),
    ),
    ModeledOutput(
        "cache_blocks",
        "Blocks of the cache",
        read=lambda r: _cache_capacity(r, r.limits.cache_block_capacity),
    ),
)
_STEPS = StepBuilder(OUTPUTS, "inference-memory")


def estimate(inputs: InferenceMemoryInputs) -> Estimate:
    model = find_model(inputs.model)
    gpu = find_accelerator(inputs.gpu)
    validate_inputs(model, inputs, gpu)
    whole = compute_memory_use_of_all_gpus(model, inputs)
    model = find_fullest_stage(model, inputs)
    memory_use = compute_gpu_memory_use(model, inputs, inputs.tensor_parallel)
    limits = compute_inference_limits(model, inputs, gpu, memory_use)
    host_bytes = compute_host_bytes(find_model(inputs.model), inputs)
    result = InferenceMemoryResult(model, inputs, gpu, memory_use, whole, limits, host_bytes)
    limit = limits.usable_bytes_per_gpu
    memory = MemoryLimit(
        limit,
        program_visible_memory(inputs, gpu),
        None if is_mig_instance(inputs, gpu) else gpu.memory,
    )
    bounds = plausible_memory_range(inputs, memory_use)
    gpus = inputs.tensor_parallel * inputs.pipeline_parallel
    subject = _name_mig_instance(inputs, gpu)
    verdict = build_memory_verdict(memory_use.total, memory, gpus, *bounds, subject=subject)
    verdict = dataclasses.replace(
        verdict, text=f"{verdict.text} {_describe_host_layers(result)}".strip()
    )
    verdict = _add_load_condition_to_verdict(verdict, result)
    verdict = _replace_verdict_if_vllm_refuses_start(verdict, result)
    verdict = replace_verdict_if_context_exceeds_max(verdict, inputs.context, model.max_context)
    return Estimate(
        name="inference-memory",
        verdict=verdict,
        figures=read_figures(OUTPUTS, result),
        steps=_build_steps(result),
        pictures=(build_memory_bar(gpu, memory_use, limit, subject),),
        tables=(build_memory_parts_table(memory_use, whole),),
        notes=(
            *fp8_weight_only_notes(gpu, find_weight_format(model, inputs.weights)),
            *build_notes(result.model, inputs, memory_use),
            _mig_instance_note(inputs, gpu) or real_capacity_note(gpu),
        ),
        changes=find_verdict_changes(result),
        links=_link_to_mig(gpu, inputs.tensor_parallel),
    )


def _describe_host_layers(result: InferenceMemoryResult) -> str:
    layers = result.inputs.gpu_layers
    if layers is None or not result.host_bytes:
        return ""
    whole = find_model(result.inputs.model).layers + 1
    host = format_value(result.host_bytes, "B")
    return f"With {layers} of {whole} layers on GPUs, {host} stay in the memory of the host."


def _name_mig_instance(inputs: InferenceMemoryInputs, gpu: Accelerator) -> str:
    """Return the MIG instance that has this memory, as a subject; empty for a whole GPU.

    Two profiles of a GPU can have the same memory.
    """
    if inputs.shown_memory is None or not is_mig_instance(inputs, gpu):
        return ""
    card = find_mig_gpu(gpu.id)
    profiles = find_profiles_with_memory(card, inputs.shown_memory) if card else ()
    names = " or ".join(profile.name for profile in profiles)
    article = "Each" if inputs.tensor_parallel * inputs.pipeline_parallel > 1 else "The"
    return f"{article} MIG instance ({names})" if names else f"{article} MIG instance"


def _mig_instance_note(inputs: InferenceMemoryInputs, gpu: Accelerator) -> str:
    """Return which part of a GPU's memory a MIG instance has; empty for a whole GPU."""
    instance = _name_mig_instance(inputs, gpu)
    if not instance:
        return ""
    part, whole = program_visible_memory(inputs, gpu), gpu.engine_visible_memory
    return (
        f"{instance} has {format_value(part, 'B')} of the {format_value(whole, 'B')} that programs "
        f"get of the {gpu.name}, {format_value(part / whole, '%')}."
    )


def _link_to_mig(gpu: Accelerator, gpus: int) -> tuple[EstimateLink, ...]:
    """Return the link to the instances of a GPU; none for several, which no instance spans."""
    if gpus > 1 or gpu.id not in list_mig_gpu_ids():
        return ()
    return (EstimateLink("mig", f"MIG partitions of the {gpu.name}", {"gpu": gpu.id}),)


def _add_load_condition_to_verdict(verdict: Verdict, result: InferenceMemoryResult) -> Verdict:
    """Return the verdict with whether engines load weights that are divided so."""
    condition = find_load_condition(result.inputs)
    problem = find_scale_block_problem(result.inputs, result.inputs.tensor_parallel)
    text = problem or find_published_fp8_split_problem(result.inputs)
    if condition == "expert parallelism":
        text += " That takes about as much memory."
    verdict = dataclasses.replace(verdict, text=f"{verdict.text} {text}".strip())
    if condition == "none" or not result.surely_fits:
        return verdict
    status: Status = "tight" if condition == "refused" else verdict.status
    return dataclasses.replace(
        verdict,
        status=status,
        lead=verdict.lead.removesuffix(".") + LOAD_CONDITION_TEXTS[condition],
    )


def _replace_verdict_if_vllm_refuses_start(
    verdict: Verdict, result: InferenceMemoryResult
) -> Verdict:
    """Return the verdict, or that vLLM refuses to start if it has more sequences than blocks."""
    refused = find_start_refusal_of_inputs(result.model, result.inputs, result.gpu)
    if refused is None or result.exceeds_usable_memory:
        return verdict
    text = f"{verdict.text} {refused.reason}"
    return Verdict("tight", "It fits, but vLLM refuses to start.", text)


def _build_steps(result: _MemoryResult) -> tuple[FormulaStep, ...]:
    model, inputs, memory_use = result.model, result.inputs, result.memory_per_gpu
    return (
        _weights_step(model, inputs, memory_use),
        _cache_step(model, inputs, memory_use),
        _activations_step(model, inputs, memory_use),
        _overhead_step(inputs, memory_use),
        *_padding_steps(model, inputs, memory_use),
        _memory_per_gpu_step(memory_use),
        _usable_memory_step(result),
    )


def _cache_step(
    model: Architecture, inputs: InferenceMemoryInputs, memory_use: GpuMemoryUse
) -> FormulaStep:
    width, state = CACHE_BITS[inputs.cache] / 8, recurrent_state_bytes_per_sequence(model)
    gpus, tokens = inputs.tensor_parallel, round_up_to_blocks(inputs.context, inputs.block)
    formula = "bytes per token × tokens ÷ GPUs that share the KV heads × sequences"
    sequences = sequences_per_gpu(inputs, gpus)
    numbers = multiply_or_divide_formula(
        sequence_kv_cache_per_gpu_formula(
            model, tokens, width, state, attention_tensor_parallel_size(inputs, gpus)
        ),
        sequences,
    )
    if sequences != inputs.concurrent:
        formula = "bytes per token × tokens × the sequences of one GPU"
    if inputs.engine == TRANSFORMERS:
        formula = "bytes per token × tokens × sequences ÷ GPUs"
        whole_cache = sequence_kv_cache_per_gpu_formula(model, inputs.context, width, state)
        numbers = f"{multiply_or_divide_formula(whole_cache, inputs.concurrent)} ÷ {gpus}"
    source = kv_cache_publication_id(model, "shazeer-2019")
    if shared := shared_hybrid_blocks(model, inputs, gpus):
        formula = "(⌈tokens ÷ tokens of a block⌉ × groups + states) × bytes of a block × sequences"
        states = shared.count_blocks_to_start_and_run(0, sequences) // sequences
        numbers = (
            f"(⌈{format_term(inputs.context)} ÷ {format_term(shared.tokens_per_block)}⌉ × "
            f"{shared.attention_groups} + {states}) × {format_term(shared.block_bytes, 'B')} × {sequences}"
        )
        source = "vllm-hybrid"
    return _STEPS.build_step("kv_cache", formula, numbers, memory_use.cache, source)


def _activations_step(
    model: Architecture, inputs: InferenceMemoryInputs, memory_use: GpuMemoryUse
) -> FormulaStep:
    """Return temporary tensors as an engine measures them, or as a prompt creates them."""
    gpus = attention_tensor_parallel_size(inputs, inputs.tensor_parallel)
    if inputs.engine == TRANSFORMERS:
        prompt_tokens = min(inputs.prompt or inputs.context, inputs.context)
        running_bytes = widest_layer_prefill_bytes(model, inputs.concurrent * prompt_tokens)
        loading_bytes = (
            compute_weight_bytes_while_loading(model, inputs.weights) / inputs.tensor_parallel
        )
        parts = (memory_use.weights, memory_use.cache, memory_use.overhead)
        formula = "tokens × (6 × MLP width + 8 × hidden size), and what loading adds"
        numbers = f"{format_term(running_bytes, 'B')}, {format_term(loading_bytes, 'B')}"
        numbers += "".join(f" − {format_term(part, 'B')}" for part in parts)
    else:
        if inputs.engine == GENERAL:
            sequences: float = sequences_per_gpu(inputs, inputs.tensor_parallel)
            tokens = min(inputs.step_tokens or STEP_TOKENS, inputs.context * sequences)
            width, each, sampled = compute_active_mlp_width(model), "6 B ÷ GPUs", f"6 B ÷ {gpus}"
        else:
            engine = find_engine_memory_on_gpu(inputs, inputs.engine)
            sequences = inputs.max_sequences or engine.profiled_sequences
            tokens = inputs.step_tokens or engine.step_tokens
            width, each = profiled_mlp_width(model), "bytes of the sampler"
            sampled = f"{format_term(engine.sampler_bytes_per_logit)} B"
        is_whole = inputs.engine == LLAMA_CPP
        formula = (
            f"tokens × 2 B × (3 × MLP width{'' if is_whole else ' ÷ GPUs'} + 4 × hidden size), and "
            f"sequences × vocabulary × {each}"
        )
        divisor = "" if is_whole else f" ÷ {gpus}"
        numbers = (
            f"{format_term(tokens)} × 2 B × (3 × {format_term(width)}{divisor} + 4 × "
            f"{format_term(model.hidden)}), {format_term(sequences)} × "
            f"{format_term(model.vocabulary)} × {sampled}"
        )
    return _STEPS.build_step(
        "activations",
        f"the larger of {formula}",
        f"max({numbers})",
        memory_use.activations,
        "vllm-memory",
    )


def _overhead_step(inputs: InferenceMemoryInputs, memory_use: GpuMemoryUse) -> FormulaStep:
    formula = "CUDA context + communication buffers"
    numbers = format_term(memory_use.overhead, "B")
    if inputs.overhead is not None:
        formula = "as you set it"
    elif inputs.engine == TRANSFORMERS:
        formula = "workspaces of the libraries"
    elif inputs.engine != GENERAL:
        engine = ENGINES[inputs.engine]
        outside = "buffers" if inputs.engine == LLAMA_CPP else "PyTorch"
        basis = "from logs" if inputs.engine in LOGGED_ENGINES else "assumed"
        formula = f"memory outside {outside} + memory for each further GPU, both {basis}"
        per_gpu = format_term(engine.outside_framework_bytes_per_further_gpu, "B")
        further_gpus = attention_tensor_parallel_size(inputs, inputs.tensor_parallel) - 1
        if further_gpus >= engine.max_gpus_in_startup_logs:
            formula += f", which are of at most {engine.max_gpus_in_startup_logs} GPUs"
            further_gpus = engine.max_gpus_in_startup_logs - 1
        numbers = f"{format_term(engine.outside_framework_bytes_on_first_gpu, 'B')} + {per_gpu} × {further_gpus}"
    elif inputs.tensor_parallel > 1:
        numbers = format_terms_of_exact_sum((CONTEXT_BYTES, NCCL_BYTES), "B")
    return _STEPS.build_step("overhead", formula, numbers, memory_use.overhead, "vllm-memory")


def _padding_steps(
    model: Architecture, inputs: InferenceMemoryInputs, memory_use: GpuMemoryUse
) -> tuple[FormulaStep, ...]:
    """Return the steps for what repacking adds to the experts, if it adds anything."""
    if not memory_use.padding:
        return ()
    experts = weight_bytes_by_split(model, inputs.weights).expert_bytes / inputs.tensor_parallel
    formula = "experts × (padded widths ÷ widths − 1)"
    numbers = f"{format_term(experts, 'B')} × ({format_term(1 + memory_use.padding / experts)} − 1)"
    return (_STEPS.build_step("padding", formula, numbers, memory_use.padding, "vllm-memory"),)


def _memory_per_gpu_step(memory_use: GpuMemoryUse) -> FormulaStep:
    parts = _parts_without_zero_padding(memory_use)
    numbers = format_terms_of_exact_sum([getattr(memory_use, part.field) for part in parts], "B")
    formula = " + ".join(label_in_sentence(part.label) for part in parts)
    return _STEPS.build_step("per_gpu", formula, numbers, memory_use.total, "vllm-memory")


def _usable_memory_step(result: _MemoryResult) -> FormulaStep:
    inputs, memory_use, engine = (
        result.inputs,
        result.memory_per_gpu,
        ENGINES.get(result.inputs.engine),
    )
    share = format_term(inputs.memory_utilization, "%")
    memory = format_term(program_visible_memory(inputs, result.gpu), "B")
    formula = "memory × usable share"
    numbers = f"{memory} × {share}"
    if engine and engine.has_no_fraction:
        formula, numbers = "memory", memory
    elif engine and engine.has_free_memory_fraction:
        formula = "memory − the share not used × what all but the cache leaves"
        fixed, unused = (
            format_term(memory_use.bytes_without_cache, "B"),
            1 - inputs.memory_utilization,
        )
        numbers = f"{memory} − {format_term(unused, '%')} × max({memory} − {fixed}, 0 B)"
    elif engine and engine.has_static_fraction:
        formula = "(memory − outside) × usable share + outside"
        sharing = attention_tensor_parallel_size(inputs, inputs.tensor_parallel)
        outside = format_term(engine.bytes_outside_framework(sharing), "B")
        numbers = f"({memory} − {outside}) × {share} + {outside}"
    if inputs.graphs:
        formula = f"less of {formula} and memory − CUDA graphs"
        numbers = f"min({numbers}, {memory} − {format_term(inputs.graphs, 'B')})"
    if inputs.cache_memory is not None:
        formula = f"less of {formula} and all but the cache + memory given for it"
        parts = (memory_use.total - memory_use.cache, inputs.cache_memory)
        numbers = f"min({numbers}, {format_sum_in_formula(parts, 'B')})"
    line = ("Usable", formula, numbers, result.limits.usable_bytes_per_gpu, "B")
    return FormulaStep(*line, "catalogue", "cluster-components")


def _weights_step(
    model: Architecture, inputs: InferenceMemoryInputs, memory_use: GpuMemoryUse
) -> FormulaStep:
    form = find_weight_format(model, inputs.weights)
    table, gpus = weight_bytes_by_split(model, inputs.weights), inputs.tensor_parallel
    covered = model.parameters if form.covers == "all" else table.quantized_weight_count
    formula = "parameters × bits ÷ 8"
    numbers = f"{format_term(covered)} × {format_term(form.bits_with_scales)} ÷ 8"
    if covered < model.parameters:
        formula = "parameters in the format × bits ÷ 8 + the others × their bytes"
        numbers += f" + {format_term(model.parameters - covered)} × {format_term(form.rest / 8)} B"
    if table.tower_bytes:
        formula += " + the vision tower × its bytes"
        numbers += f" + {format_term(model.tower_parameters)} × {format_term(form.rest / 8)} B"
    size = table.total_bytes
    if copies := _count_redundant_experts_of_whole_split(model, inputs):
        expert = table.expert_bytes / model.experts
        formula += " + redundant experts × their bytes"
        numbers += f" + {copies} × {format_term(expert, 'B')}"
        size += copies * expert
    if gpus > 1:
        formula = f"({formula} − what each GPU copies) ÷ GPUs + the copy"
    numbers = share_per_gpu_formula(numbers, size, memory_use.weights, gpus)
    source = "gguf" if inputs.weights in GGUF_FORMATS else "shape"
    return _STEPS.build_step(
        "weights", formula, numbers, memory_use.weights, source, topic="number-formats"
    )


ENTRY = EstimateSpec(
    name="inference-memory",
    title="Inference memory",
    summary="Whether a model fits for serving, and how far context and load can go.",
    group="Memory",
    inputs_type=InferenceMemoryInputs,
    compute_estimate=estimate,
    outputs=OUTPUTS,
    most_important_outputs=("per_gpu", "max_concurrent", "fewest_gpus"),
    main_inputs=("model", "gpu", "tensor_parallel"),
    topic="inference-memory",
)
