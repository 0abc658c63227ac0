"""`latency`: verdict, figures, charts and formula steps of a result."""

import math
from collections.abc import Callable

from app.estimator.data_files import modeled_rate, modeled_time
from app.estimator.estimates.latency import (
    LatencyInputs,
    LatencyResult,
    compute_latency,
    find_flips,
    place_requested_model,
    resolve_inputs,
)
from app.estimator.formula_steps import (
    FormulaTexts,
    StepBuilder,
    Term,
    format_exact_sum,
    format_term,
)
from app.estimator.hardware.throughput import critical_batch, roofline, routed_critical_batch
from app.estimator.memory_verdict import capacity_note, lacking_memory_text
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    Chart,
    ChartLine,
    Estimate,
    FormulaStep,
    ModeledOutput,
    OutputSpec,
    OutputValue,
    ResultTable,
    TableCell,
    Verdict,
    read_figures,
)
from app.estimator.serving.engine import math_bits, weight_only_notes
from app.estimator.serving.replica_memory import describe_draft_model, weight_bytes_read_per_gpu
from app.estimator.serving.step_time import (
    InferenceStepTime,
    PlacedModel,
    SpeculativeDecoding,
    decode_time,
    find_acceptance,
    pipeline_time,
    tokens_per_step,
    verify_step,
)
from app.estimator.training.flops import mixer_flops_outside_matrices
from app.estimator.units import format_count, format_number, format_value

_Read = Callable[[LatencyResult], float]


def _time_output(
    name: str, label: str, read: _Read, phase: str = "decode", *, primary: bool = False
) -> OutputSpec[LatencyResult]:
    return ModeledOutput(
        name,
        label,
        "s",
        "less",
        lambda r: modeled_time(r.error_interval_name(phase), read(r)),
        primary=primary,
    )


def _rate_output(name: str, label: str, read: _Read) -> OutputSpec[LatencyResult]:
    """Declare a modeled rate [token/s]."""
    return ModeledOutput(
        name,
        label,
        "token/s",
        "more",
        lambda r: modeled_rate(r.error_interval_name("decode"), read(r)),
    )


OUTPUTS: tuple[OutputSpec[LatencyResult], ...] = (
    _time_output("ttft", "Time to first token", lambda r: r.ttft, "prefill", primary=True),
    _time_output("tpot", "Time per output token", lambda r: r.time_per_output_token, primary=True),
    _time_output(
        "total", "Whole answer", lambda r: r.ttft + (r.inputs.answer - 1) * r.time_per_output_token
    ),
    _time_output("prefill_time", "Computing the prompt", lambda r: r.prefill.total, "prefill"),
    _time_output("decode_time", "One decoding step", lambda r: r.decode_seconds),
    _time_output("memory_time", "Waiting for weights and cache", lambda r: r.memory_time),
    _time_output("compute_time", "Computing", lambda r: r.decode.compute),
    _time_output("communication_time", "Exchanging between GPUs", lambda r: r.decode.communication),
    _time_output("overhead_time", "Launches and host", lambda r: r.overhead_time),
    _rate_output(
        "tokens_per_second", "Tokens per second and sequence", lambda r: 1 / r.time_per_output_token
    ),
    _rate_output(
        "throughput",
        "Tokens per second of the batch",
        lambda r: 1 / r.time_per_output_token * r.inputs.batch,
    ),
    OutputSpec("bound", "Decoding is bound by"),
    OutputSpec(
        "critical_batch",
        "Critical batch",
        "sequence",
        read=lambda r: OutputValue(
            _datasheet_critical_batch(r.placed), note="By peak rates, not those that kernels reach."
        ),
    ),
    OutputSpec("fits", "Fits in memory", better="more"),
)
_STEPS = StepBuilder(OUTPUTS, "batching-and-latency")


def estimate(inputs: LatencyInputs) -> Estimate:
    inputs = resolve_inputs(inputs)
    placed = place_requested_model(inputs)
    result = compute_latency(inputs, placed)
    return Estimate(
        name="latency",
        verdict=_build_verdict(result),
        figures=read_figures(OUTPUTS, result),
        steps=_build_steps(result),
        pictures=(_build_roofline(inputs, placed),),
        tables=(_build_step_parts_table(result),),
        notes=(
            *weight_only_notes(placed.gpu, placed.weight_format),
            *_build_notes(result),
            capacity_note(placed.gpu),
        ),
        changes=find_flips(result),
    )


_LEADS = {
    "memory": "Decoding is bound by memory.",
    "compute": "Decoding is bound by compute.",
    "communication": "Decoding is bound by communication.",
    "overhead": "Decoding is bound by overhead.",
}


def _build_verdict(result: LatencyResult) -> Verdict:
    first = format_value(result.ttft, "s")
    then = (
        f"after {first}, then one every {format_value(result.time_per_output_token, 's')} "
        f"({format_number(1 / result.time_per_output_token)} tokens/s for each sequence)."
    )
    where = f"{result.placed.serving.gpus} {result.placed.gpu.name}"
    if not result.fits:
        text = f"Too large for {where}. With enough memory: first token {then}"
        return Verdict("no", "Does not fit.", text)
    lacking = lacking_memory_text(result.most_lacking_bytes)
    fits = lacking or f"It fits in the memory of {where}."
    text = (
        f"First token {then} {fits}{_describe_other_acceptances(result)} "
        f"{result.placed.refusal or result.placed.published_fp8_warning}".strip()
    )
    if refused := result.refused_start:
        return Verdict("tight", "It fits, but vLLM refuses to start.", f"{text} {refused.text}")
    return Verdict("tight" if lacking else "info", _LEADS[result.bound], text)


def _describe_other_acceptances(result: LatencyResult) -> str:
    """Return the pace at other acceptances than the assumed one; empty without drafts."""
    inputs = result.inputs
    if not inputs.draft_tokens:
        return ""
    acceptance = find_acceptance(inputs.acceptance, result.placed.model, inputs.draft_tokens)
    step = result.decode_seconds
    paces = [
        f"one every {format_value(step / tokens_per_step(other, inputs.draft_tokens), 's')} "
        f"at {format_value(other, '%')}"
        for other in (acceptance.low, acceptance.high)
    ]
    assumed = format_value(acceptance.assumed, "%")
    return f" That assumes that {assumed} of the drafts are kept: {' and '.join(paces)}."


def _datasheet_peak(placed: PlacedModel) -> float:
    """Return the peak rate in the format that the weights are multiplied in [FLOP/s]."""
    gpu = placed.gpu
    kind = {"16": "bf16", "8": "fp8", "4": "fp4"}[math_bits(gpu, placed.weight_format)]
    return gpu.peak_rate(kind) or gpu.peak_rate("int8") or gpu.peak_rate("bf16") or 1.0


def _datasheet_critical_batch(placed: PlacedModel) -> float:
    """Return the sequences from which weights no longer bound the time.

    By the peaks of the data sheet, or what the engine reaches at most if that is less.
    """
    peak = min(_datasheet_peak(placed), placed.engine.compute_limit)
    bandwidth = min(placed.gpu.memory_bandwidth or 1.0, placed.engine.bandwidth_limit)
    dense = critical_batch(peak, bandwidth, placed.weight_format.bits / 8)
    if not placed.model.is_routed:
        return dense
    per_token = placed.model.experts_per_token
    return routed_critical_batch(dense, placed.model.experts, per_token)


def _build_steps(result: LatencyResult) -> tuple[FormulaStep, ...]:
    placed = result.placed
    handing = 0.0
    if placed.serving.pipeline > 1:
        rows = result.inputs.batch * (result.inputs.draft_tokens + 1)
        handing = pipeline_time(placed, float(rows))
    exchanges = 2 * placed.model.layers
    each = (result.decode.communication - handing) / exchanges if exchanges else 0.0
    template = "[exchanges, two for each layer] × [time of one]"
    terms: tuple[Term, ...] = (str(exchanges), (each, "s"))
    if handing:
        template, terms = f"{template} + [from stage to stage]", (*terms, (handing, "s"))
    return (
        _STEPS.line(
            "memory_time",
            "reading the weights, without what is hidden behind computing + reading the cache",
            format_exact_sum((result.decode.weights, result.decode.attention), "s"),
            result.memory_time,
            "pope-2022",
        ),
        _STEPS.line_from_template(
            "communication_time",
            template,
            terms,
            result.decode.communication,
            "aiconfigurator",
            topic="interconnects",
        ),
        _STEPS.line(
            "overhead_time",
            "launches of all kernels + host and sampling",
            format_exact_sum((result.decode.launch, result.decode.host), "s"),
            result.overhead_time,
            "inferencex",
        ),
        *_token_time_steps(result),
    )


def _token_time_steps(result: LatencyResult) -> tuple[FormulaStep, ...]:
    tokens = format_term(result.tokens_per_step)
    return (
        *_decode_steps(result),
        _STEPS.line_from_template(
            "tpot",
            "[one step] ÷ [tokens kept per step]",
            ((result.decode_seconds, "s"), tokens),
            result.time_per_output_token,
            "leviathan-2023" if result.inputs.draft_tokens else "pope-2022",
        ),
        _sum_of_parts_step("prefill_time", result.prefill),
        _STEPS.line(
            "ttft",
            "time to reach the engine and launch kernels + time to compute the prompt",
            format_exact_sum(
                (result.placed.time_before_prompt, result.ttft - result.placed.time_before_prompt),
                "s",
            ),
            result.ttft,
            "inferencex",
        ),
    )


def _decode_steps(result: LatencyResult) -> tuple[FormulaStep, ...]:
    """Return how the time of one step comes about; with drafts also what it is made of."""
    inputs = result.inputs
    drafts = inputs.draft_tokens
    if not drafts:
        return (_sum_of_parts_step("decode_time", result.decode),)
    context = inputs.prompt + inputs.answer / 2
    tokens = format_number(inputs.batch * (drafts + 1))
    plain = result.plain_step_seconds
    parts = {
        "A step without drafts": decode_time(result.placed, inputs.batch, context),
        f"The step that checks the drafts, with {tokens} tokens": verify_step(
            result.placed, SpeculativeDecoding(drafts), inputs.batch, context
        ),
    }
    return (
        *(
            FormulaStep(
                label,
                *_format_sum_of_parts(step),
                step.total,
                "s",
                "leviathan-2023",
                "batching-and-latency",
            )
            for label, step in parts.items()
        ),
        _STEPS.line(
            "decode_time",
            "step that checks the drafts (at least one without drafts) + drafts × cost of a draft "
            "× one without drafts",
            f"{format_term(result.decode.total, 's')} + {drafts} × "
            f"{format_term(inputs.draft_cost, '%')} × {format_term(plain, 's')}",
            result.decode_seconds,
            "leviathan-2023",
        ),
    )


_PARTS = {
    "weights": "waiting for weights",
    "compute": "matrix products",
    "attention": "attention",
    "communication": "exchange",
    "launch": "launches",
    "host": "host and sampling",
}


def _sum_of_parts_step(output_name: str, step: InferenceStepTime) -> FormulaStep:
    formula, numbers = _format_sum_of_parts(step)
    return _STEPS.line(output_name, formula, numbers, step.total, "pope-2022")


def _format_sum_of_parts(step: InferenceStepTime) -> FormulaTexts:
    """Return the names and the numbers of a step's parts that take time, each as a sum."""
    seconds = {name: getattr(step, part) for part, name in _PARTS.items()}
    named = [name for name, value in seconds.items() if value]
    return FormulaTexts(" + ".join(named), format_exact_sum(seconds.values(), "s"))


def _build_roofline(inputs: LatencyInputs, placed: PlacedModel) -> Chart:
    peak, band = _datasheet_peak(placed), placed.gpu.memory_bandwidth or 1.0
    turn = peak / band
    lowest, highest = turn / 4096, turn * 16
    roof = tuple((x, roofline(x, peak, band)) for x in (lowest, turn, highest))
    marks = []
    for label, rows, context in (
        ("Answer", float(inputs.batch), inputs.prompt + inputs.answer / 2),
        ("Prompt", float(inputs.prompt), inputs.prompt / 2),
    ):
        each = min(max(_arithmetic_intensity(placed, rows, context, label), lowest), highest)
        point = (each, roofline(each, peak, band))
        marks.append(ChartLine(label, (point,), "mark"))
    return Chart(
        f"Roofline of {placed.gpu.name} in {placed.weight_format.label}",
        "Operations per byte",
        "Rate",
        "",
        "FLOP/s",
        (ChartLine("Highest rate", roof), *marks),
        x_log=True,
        y_log=True,
    )


def _arithmetic_intensity(
    placed: PlacedModel, rows: float, context: float, phase_label: str
) -> float:
    """Return the FLOPs per byte that one step reads on one GPU [FLOP/B]."""
    model, tensor = placed.model, placed.serving.tensor
    work = 2.0 * (model.active_parameters - model.head_parameters)  # As large as the table.
    scores = sum(
        number * mixer_flops_outside_matrices(layer.mixer, 2 * context)
        for layer, number in model.layer_counts
    )
    read = weight_bytes_read_per_gpu(placed, rows)
    if phase_label == "Answer":
        each = model.cache_elements_of_sequence(max(1, round(context)))
        read += rows * each * placed.cache_element_bytes / tensor
    return rows * (work + scores) / tensor / read


def _build_step_parts_table(result: LatencyResult) -> ResultTable:
    names = (
        ("Waiting for weights", "weights"),
        ("Computing", "compute"),
        ("Attention and cache", "attention"),
        ("Exchange", "communication"),
        ("Launches", "launch"),
        ("Host", "host"),
    )
    rows: list[tuple[TableCell, ...]] = [
        (label, (getattr(result.prefill, name), "s"), (getattr(result.decode, name), "s"))
        for label, name in names
    ]
    answer = "Answer"
    if drafts := result.inputs.draft_tokens:
        answer = f"Answer, checking {format_count(drafts, 'draft')} of each sequence"
        rows.append(("Proposing drafts", (0.0, "s"), (result.drafting_seconds, "s")))
    rows.append(("Sum", (result.prefill.total, "s"), (result.decode_seconds, "s")))
    return ResultTable("Parts of a step", ("Part", "Prompt", answer), tuple(rows))


def _build_notes(result: LatencyResult) -> tuple[str, ...]:
    placed = result.placed
    notes = [
        result.measurements.note,
        "Time per output token is the mean pause between tokens of one sequence.",
        (
            "Reading the prompts of other requests is left out, which slows tokens as well as the "
            "first one; serving-capacity counts it, and the queue."
        ),
        (
            "“Waiting for weights” is the time for which a step stands still for them; the rest of "
            "reading them happens while it computes. Their bytes divided by this time are not a "
            "bandwidth."
        ),
    ]
    if placed.serving.stages_take_turns:
        notes.append(
            f"{placed.engine.label} deal out whole layers: each token passes one GPU after the "
            "other, so that more GPUs give more memory, but an answer no more speed."
        )
    elif placed.serving.pipeline > 1:
        notes.append(
            "One batch passes all stages; as many batches can be under way as there are stages."
        )
    if math.isfinite(placed.engine.compute_limit):
        limit = format_value(placed.engine.compute_limit, "FLOP/s")
        notes.append(
            f"Prompts are computed at no more than {limit}, as measured with builds of May 2024, "
            "however fast the card; later builds can be faster."
        )
    elif placed.unpacks_weights:
        label = placed.weight_format.label
        notes.append(
            f"{label} is unpacked to 16 bit on this card: its weights are read faster, and computed "
            "no faster."
        )
    if result.compute_bound_batch is not None:
        turns = format_number(result.compute_bound_batch)
        notes.append(f"From {turns} sequences on, computing outweighs the weights.")
    if result.bound == "memory":
        notes.append(
            "Do not confuse three limits. At the critical batch, computing takes as long as reading "
            "all weights, both at the peaks of the data sheet. Computing outweighs the weights once "
            "it takes longer than waiting for them, at the rates that kernels reach. Memory no longer "
            "bounds decoding once computing takes longer than weights and cache together."
        )
    if result.inputs.beyond_heads:
        notes.append("Layers may be divided over more chips than there are heads.")
    if result.inputs.draft_tokens:
        kept = format_count(result.tokens_per_step, "token")
        notes.append(f"Each step keeps {kept} on average.")
        notes.append(describe_draft_model(placed))
    if placed.model.is_routed:
        notes.append("Tokens choose experts unevenly, so fewer are read than could be.")
    return tuple(notes)


ENTRY = EstimateSpec(
    name="latency",
    title="Latency",
    summary="Time to the first token and per token, and what each is bound by.",
    group="Serving",
    inputs=LatencyInputs,
    answer=estimate,
    outputs=OUTPUTS,
    first=("ttft", "tpot", "throughput"),
    main=("model", "gpu", "tensor_parallel"),
    topic="batching-and-latency",
)
