"""`latency`: verdict, figures, charts and formula steps of a result."""

import math
from collections.abc import Callable

from app.estimator.data_files import rate_with_error_range, time_with_error_range
from app.estimator.estimates.latency import (
    HOST_BANDWIDTH_SHARES,
    PROMPT_BATCH,
    SENDING_RATES,
    HostLayerTimes,
    LatencyInputs,
    LatencyResult,
    TimeRange,
    compute_latency,
    datasheet_peak_rate,
    fill_in_formats_and_gpus,
    find_verdict_changes,
    place_requested_model,
)
from app.estimator.estimates.serving_capacity import ServingCapacityInputs
from app.estimator.formula_steps import (
    FormulaTexts,
    StepBuilder,
    Term,
    format_term,
    format_terms_of_exact_sum,
)
from app.estimator.hardware.throughput import critical_batch, moe_critical_batch, roofline_rate
from app.estimator.inputs import format_value_as_typed, input_specs
from app.estimator.memory_verdict import (
    UNCERTAIN_FIT,
    memory_lacking_at_upper_bound_text,
    real_capacity_note,
    replace_verdict_if_context_exceeds_max,
)
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    Chart,
    ChartLine,
    Estimate,
    EstimateLink,
    FormulaStep,
    ModeledOutput,
    OutputSpec,
    OutputValue,
    ResultTable,
    TableCell,
    Verdict,
    read_figures,
)
from app.estimator.serving.engine_speed import fp8_weight_only_notes
from app.estimator.serving.replica_memory import describe_draft_model, weight_bytes_read_per_gpu
from app.estimator.serving.step_time import (
    InferenceStepTime,
    PlacedModel,
    SpeculativeDecoding,
    decode_step_time,
    describe_acceptance,
    draft_verification_step_time,
    pipeline_handover_time,
    tokens_per_step,
    typed_or_usual_acceptance,
)
from app.estimator.training.flops import mixer_forward_flops_outside_matrices
from app.estimator.units import format_count, format_number, format_value

_Read = Callable[[LatencyResult], float]
_ReadHost = Callable[[LatencyResult], TimeRange]


def _host_time_of_answer(result: LatencyResult) -> TimeRange:
    times, more = result.host_layers, result.inputs.answer - 1
    pairs = zip(times.prompt, times.token, strict=True)
    return TimeRange(*(prompt + more * token for prompt, token in pairs))


def _time_with_range(
    result: LatencyResult, phase: str, seconds: float, floor: float, host: TimeRange
) -> OutputValue:
    """Return a time with its range, of which layers on the host have one of their own."""
    on_gpus = time_with_error_range(
        result.error_interval_name(phase), seconds - host.usual, floor - host.least
    )
    if not host.usual:
        return on_gpus
    low, high = (on_gpus.low or 0.0) + host.least, (on_gpus.high or seconds) + host.most
    return OutputValue(seconds, low, high)


def _time_output(
    name: str,
    label: str,
    read: _Read,
    phase: str = "decode",
    *,
    primary: bool = False,
    read_floor: _Read = lambda _: 0.0,
    read_host: _ReadHost = lambda _: TimeRange(),
) -> OutputSpec[LatencyResult]:
    return ModeledOutput(
        name,
        label,
        "s",
        "less",
        lambda r: _time_with_range(r, phase, read(r), read_floor(r), read_host(r)),
        primary=primary,
    )


def _token_rate_output(
    name: str, label: str, count_tokens: Callable[[LatencyResult], int]
) -> OutputSpec[LatencyResult]:
    """Declare a modeled rate [token/s] of tokens that are decoded together."""

    def rate(result: LatencyResult) -> OutputValue:
        tokens, seconds = count_tokens(result), result.time_per_output_token
        floor, host = result.least_time_per_output_token, result.host_layers.token
        if host.usual:
            pace = _time_with_range(result, "decode", seconds, floor, host)
            low, high = (tokens / (bound or seconds) for bound in (pace.high, pace.low))
            return OutputValue(tokens / seconds, low, high)
        interval = result.error_interval_name("decode")
        return rate_with_error_range(interval, tokens / seconds, tokens / floor)

    return ModeledOutput(name, label, "token/s", "more", rate)


OUTPUTS: tuple[OutputSpec[LatencyResult], ...] = (
    _time_output(
        "ttft",
        "Time to first token",
        lambda r: r.ttft,
        "prefill",
        primary=True,
        read_floor=lambda r: r.least_prefill_time,
        read_host=lambda r: r.host_layers.prompt,
    ),
    _time_output(
        "tpot",
        "Time per output token",
        lambda r: r.time_per_output_token,
        primary=True,
        read_floor=lambda r: r.least_time_per_output_token,
        read_host=lambda r: r.host_layers.token,
    ),
    _time_output(
        "total",
        "Whole answer",
        lambda r: r.ttft + (r.inputs.answer - 1) * r.time_per_output_token,
        read_floor=lambda r: (
            r.least_prefill_time + (r.inputs.answer - 1) * r.least_time_per_output_token
        ),
        read_host=_host_time_of_answer,
    ),
    _time_output(
        "prefill_time",
        "Computing the prompt",
        lambda r: r.prefill_step.total,
        "prefill",
        read_floor=lambda r: r.least_prefill_time,
        read_host=lambda r: r.host_layers.prompt,
    ),
    _time_output(
        "decode_time",
        "One decoding step",
        lambda r: r.decode_step_seconds,
        read_floor=lambda r: r.least_decode_step_seconds,
        read_host=lambda r: r.host_layers.token,
    ),
    _time_output(
        "memory_time", "Waiting for weights and cache", lambda r: r.decode_step_memory_seconds
    ),
    _time_output("compute_time", "Computing", lambda r: r.decode_step.compute),
    _time_output(
        "communication_time", "Exchanging between GPUs", lambda r: r.decode_step.communication
    ),
    _time_output("overhead_time", "Launches and host", lambda r: r.decode_step_overhead_seconds),
    _token_rate_output("tokens_per_second", "Tokens per second and sequence", lambda _: 1),
    _token_rate_output("throughput", "Tokens per second of the batch", lambda r: r.inputs.batch),
    OutputSpec("bound", "Decoding is bound by"),
    OutputSpec(
        "critical_batch",
        "Critical batch",
        "sequence",
        read=lambda r: OutputValue(
            _datasheet_critical_batch(r.placed_model),
            note="By peak rates, not those that kernels reach.",
        ),
    ),
    OutputSpec(
        "fits",
        "Fits in memory",
        better="more",
        read=lambda r: OutputValue(r.fits, note=UNCERTAIN_FIT if r.is_fit_unsure else ""),
    ),
)
_STEPS = StepBuilder(OUTPUTS, "batching-and-latency")


def estimate(inputs: LatencyInputs) -> Estimate:
    inputs = fill_in_formats_and_gpus(inputs)
    placed = place_requested_model(inputs)
    result = compute_latency(inputs, placed)
    return Estimate(
        name="latency",
        verdict=replace_verdict_if_context_exceeds_max(
            _build_verdict(result), inputs.prompt + inputs.answer, placed.model.max_context
        ),
        figures=read_figures(OUTPUTS, result),
        steps=_build_steps(result),
        pictures=(_build_roofline(inputs, placed),),
        tables=(_build_step_parts_table(result),),
        notes=(
            *fp8_weight_only_notes(placed.gpu, placed.weight_format),
            *_build_notes(result),
            *_describe_host_layers(result.host_layers),
            real_capacity_note(placed.gpu),
        ),
        changes=find_verdict_changes(result),
        links=_link_to_service_with_drafts(result),
    )


def _link_to_service_with_drafts(result: LatencyResult) -> tuple[EstimateLink, ...]:
    """Return the link to a service of one replica with these drafts; none without drafts."""
    inputs = result.inputs
    if not inputs.draft_tokens:
        return ()
    names = {"prompt": "prompt_tokens", "answer": "output_tokens", "batch": "concurrent"}
    specs = input_specs(ServingCapacityInputs)
    typed = {"replicas": "1", "spare": "0", "ttft_target": "", "tpot_target": ""}
    for own_name in input_specs(LatencyInputs):
        name, value = names.get(own_name, own_name), getattr(inputs, own_name)
        if name in specs and value is not None:
            typed[name] = format_value_as_typed(specs[name], value)
    text = f"the same drafts in a service for {format_count(inputs.batch, 'user')}"
    return (EstimateLink("serving-capacity", text, typed),)


_LEAD_BY_BOUND = {
    "memory": "Decoding is bound by memory.",
    "compute": "Decoding is bound by compute.",
    "communication": "Decoding is bound by communication.",
    "overhead": "Decoding is bound by overhead.",
    "host memory": "Decoding is bound by the memory of the host.",
}


def _build_verdict(result: LatencyResult) -> Verdict:
    first = format_value(result.ttft, "s")
    then = (
        f"after {first}, then one every {format_value(result.time_per_output_token, 's')} "
        f"({format_number(1 / result.time_per_output_token)} tokens/s for each sequence)."
    )
    where = f"{result.placed_model.setup.gpus} {result.placed_model.gpu.name}"
    if not result.fits:
        text = f"Too large for {where}. With enough memory: first token {then}"
        if result.is_fit_unsure:
            text = text.replace("With", "It fits by the lower end of the range. With", 1)
            return Verdict("tight", "May not fit.", text)
        return Verdict("no", "Does not fit.", text)
    lacking = memory_lacking_at_upper_bound_text(result.lacking_bytes.high)
    fits = lacking or f"It fits in the memory of {where}."
    text = (
        f"First token {then} {fits}{_describe_speed_at_other_acceptances(result)} "
        f"{result.placed_model.load_refusal or result.placed_model.published_fp8_warning}".strip()
    )
    if refused := result.start_refusal:
        return Verdict("tight", "It fits, but vLLM refuses to start.", f"{text} {refused.reason}")
    return Verdict("tight" if lacking else "info", _LEAD_BY_BOUND[result.bound], text)


def _describe_speed_at_other_acceptances(result: LatencyResult) -> str:
    """Return the pace at other acceptances than the assumed one; empty without drafts."""
    inputs = result.inputs
    if not inputs.draft_tokens:
        return ""
    acceptance = typed_or_usual_acceptance(
        inputs.acceptance, result.placed_model.model, inputs.draft_tokens
    )
    step = result.decode_step_seconds
    paces = [
        step / tokens_per_step(a, inputs.draft_tokens) for a in (acceptance.low, acceptance.high)
    ]
    said = describe_acceptance(acceptance, inputs.draft_tokens, paces)
    gain = format_number(
        round(result.step_seconds_without_drafts / result.time_per_output_token, 2)
    )
    said += f" Without drafts, a token takes {gain} times as long."
    if inputs.batch > 1:
        said += (
            " In a service, prompts of others are read in between, which drafts do not speed up: "
            "serving-capacity counts them."
        )
    return said


def _datasheet_critical_batch(placed: PlacedModel) -> float:
    """Return the sequences from which weights no longer bound the time.

    By the peaks of the data sheet, or what the engine reaches at most if that is less.
    """
    peak = min(datasheet_peak_rate(placed), placed.engine.compute_limit)
    limit = placed.engine.bandwidth_limit_on(placed.gpu)
    bandwidth = min(placed.gpu.memory_bandwidth or 1.0, limit)
    dense = critical_batch(peak, bandwidth, placed.weight_format.bits_with_scales / 8)
    model = placed.model
    if not model.is_routed:
        return dense
    # One of two tables, as large as the head, is looked up and not multiplied.
    looked_up = model.head_parameters
    return moe_critical_batch(
        dense, model.parameters - looked_up, model.active_parameters - looked_up
    )


def _build_steps(result: LatencyResult) -> tuple[FormulaStep, ...]:
    placed = result.placed_model
    handing = 0.0
    if placed.setup.pipeline_stages > 1:
        rows = result.inputs.batch * (result.inputs.draft_tokens + 1)
        handing = pipeline_handover_time(placed, float(rows))
    exchanges = 2 * placed.model.layers
    each = (result.decode_step.communication - handing) / exchanges if exchanges else 0.0
    template = "[exchanges, two for each layer] × [time of one]"
    terms: tuple[Term, ...] = (str(exchanges), (each, "s"))
    if handing:
        template, terms = f"{template} + [from stage to stage]", (*terms, (handing, "s"))
    return (
        _STEPS.build_step(
            "memory_time",
            "reading the weights, without what is hidden behind computing + reading the cache",
            format_terms_of_exact_sum(
                (result.decode_step.weights, result.decode_step.attention), "s"
            ),
            result.decode_step_memory_seconds,
            "pope-2022",
        ),
        _STEPS.build_step_from_template(
            "communication_time",
            template,
            terms,
            result.decode_step.communication,
            "aiconfigurator",
            topic="interconnects",
        ),
        _STEPS.build_step(
            "overhead_time",
            "launches of all kernels + host and sampling",
            format_terms_of_exact_sum((result.decode_step.launch, result.decode_step.host), "s"),
            result.decode_step_overhead_seconds,
            "inferencex",
        ),
        *_decode_prefill_and_ttft_steps(result),
    )


def _decode_prefill_and_ttft_steps(result: LatencyResult) -> tuple[FormulaStep, ...]:
    tokens = format_term(result.tokens_per_step)
    return (
        *_decode_time_formula_steps(result),
        _STEPS.build_step_from_template(
            "tpot",
            "[one step] ÷ [tokens kept per step]",
            ((result.decode_step_seconds, "s"), tokens),
            result.time_per_output_token,
            "leviathan-2023" if result.inputs.draft_tokens else "pope-2022",
        ),
        _sum_of_parts_step("prefill_time", result.prefill_step),
        _STEPS.build_step(
            "ttft",
            "time to reach the engine and launch kernels + time to compute the prompt",
            format_terms_of_exact_sum(
                (
                    result.placed_model.seconds_before_prompt,
                    result.ttft - result.placed_model.seconds_before_prompt,
                ),
                "s",
            ),
            result.ttft,
            "inferencex",
        ),
    )


def _decode_time_formula_steps(result: LatencyResult) -> tuple[FormulaStep, ...]:
    """Return how the time of one step comes about; with drafts also what it is made of."""
    inputs = result.inputs
    drafts = inputs.draft_tokens
    if not drafts:
        return (_sum_of_parts_step("decode_time", result.decode_step),)
    context = inputs.prompt + inputs.answer / 2
    tokens = format_number(inputs.batch * (drafts + 1))
    plain = result.step_seconds_without_drafts
    parts = {
        "A step without drafts": decode_step_time(result.placed_model, inputs.batch, context),
        f"The step that checks the drafts, with {tokens} tokens": draft_verification_step_time(
            result.placed_model, SpeculativeDecoding(drafts), inputs.batch, context
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
        _STEPS.build_step(
            "decode_time",
            "step that checks the drafts (at least one without drafts) + drafts × cost of a draft "
            "× one without drafts",
            f"{format_term(result.decode_step.total, 's')} + {drafts} × "
            f"{format_term(inputs.draft_cost, '%')} × {format_term(plain, 's')}",
            result.decode_step_seconds,
            "leviathan-2023",
        ),
    )


_LABEL_BY_STEP_PART = {
    "weights": "waiting for weights",
    "compute": "matrix products",
    "attention": "attention",
    "communication": "exchange",
    "launch": "launches",
    "host": "host and sampling",
    "host_layers": "layers in host memory",
}


def _sum_of_parts_step(output_name: str, step: InferenceStepTime) -> FormulaStep:
    formula, numbers = _format_sum_of_parts(step)
    return _STEPS.build_step(output_name, formula, numbers, step.total, "pope-2022")


def _format_sum_of_parts(step: InferenceStepTime) -> FormulaTexts:
    """Return the names and the numbers of a step's parts that take time, each as a sum."""
    seconds = {name: getattr(step, part) for part, name in _LABEL_BY_STEP_PART.items()}
    named = [name for name, value in seconds.items() if value]
    return FormulaTexts(" + ".join(named), format_terms_of_exact_sum(seconds.values(), "s"))


def _build_roofline(inputs: LatencyInputs, placed: PlacedModel) -> Chart:
    peak, band = datasheet_peak_rate(placed), placed.gpu.memory_bandwidth or 1.0
    turn = peak / band
    lowest, highest = turn / 4096, turn * 16
    roof = tuple((x, roofline_rate(x, peak, band)) for x in (lowest, turn, highest))
    marks = []
    for label, rows, context in (
        ("Answer", float(inputs.batch), inputs.prompt + inputs.answer / 2),
        ("Prompt", float(inputs.prompt), inputs.prompt / 2),
    ):
        each = min(max(_arithmetic_intensity(placed, rows, context, label), lowest), highest)
        point = (each, roofline_rate(each, peak, band))
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
    model, tensor = placed.model, placed.setup.tensor_parallel
    work = 2.0 * (model.active_parameters - model.head_parameters)  # As large as the table.
    scores = sum(
        number * mixer_forward_flops_outside_matrices(layer.mixer, 2 * context)
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
        *((("Layers in host memory", "host_layers"),) if result.host_layers.token.usual else ()),
    )
    rows: list[tuple[TableCell, ...]] = [
        (label, (getattr(result.prefill_step, name), "s"), (getattr(result.decode_step, name), "s"))
        for label, name in names
    ]
    answer = "Answer"
    if drafts := result.inputs.draft_tokens:
        answer = f"Answer, checking {format_count(drafts, 'draft')} of each sequence"
        rows.append(("Proposing drafts", (0.0, "s"), (result.drafting_seconds_per_step, "s")))
    rows.append(("Sum", (result.prefill_step.total, "s"), (result.decode_step_seconds, "s")))
    return ResultTable("Parts of a step", ("Part", "Prompt", answer), tuple(rows))


def _build_notes(result: LatencyResult) -> tuple[str, ...]:
    placed = result.placed_model
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
    if placed.setup.stages_take_turns:
        notes.append(
            f"{placed.engine.label} deal out whole layers: each token passes one GPU after the "
            "other, so more GPUs give more memory, but an answer no more speed. llama.cpp can also "
            "divide each layer (--split-mode tensor, experimental); that is not counted."
        )
    elif placed.setup.pipeline_stages > 1:
        notes.append(
            "One batch passes all stages; as many batches can be under way as there are stages."
        )
    if math.isfinite(placed.engine.compute_limit):
        limit = format_value(placed.engine.compute_limit, "FLOP/s")
        reads = format_value(placed.engine.bandwidth_limit_on(placed.gpu), "B/s")
        notes.append(
            f"Answers are those of llama.cpp builds of August 2025 to June 2026, whose kernels read "
            f"no more than {reads} for one sequence on this architecture. Prompts are computed at no "
            f"more than {limit}, as measured with builds of May 2024, however fast the card; later "
            "builds can be faster."
        )
    elif placed.unpacks_weights:
        label = placed.weight_format.label
        notes.append(
            f"{label} is unpacked to 16 bit on this card: its weights are read faster, and computed "
            "no faster."
        )
    if result.batch_where_compute_exceeds_weights is not None:
        turns = format_number(result.batch_where_compute_exceeds_weights)
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


def _describe_host_layers(host: HostLayerTimes) -> tuple[str, ...]:
    if not host.token.usual:
        return ()
    read = format_value(host.bytes_per_token, "B")
    share, most, least = (format_value(share, "%") for share in HOST_BANDWIDTH_SHARES)
    rate, fastest, slowest = (format_value(rate, "B/s") for rate in SENDING_RATES)
    note = (
        f"The processor computes the layers in host memory: each token reads {read} there, at "
        f"{share} of the data sheet's bandwidth ({least} to {most}). For each {PROMPT_BATCH} tokens "
        f"of a prompt the weights there are sent to the GPU, at {rate} ({slowest} to {fastest})."
    )
    return (note,)


ENTRY = EstimateSpec(
    name="latency",
    title="Latency",
    summary="Time to the first token and per token, and what each is bound by.",
    group="Serving",
    inputs_type=LatencyInputs,
    compute_estimate=estimate,
    outputs=OUTPUTS,
    most_important_outputs=("ttft", "tpot", "throughput"),
    main_inputs=("model", "gpu", "tensor_parallel"),
    topic="batching-and-latency",
)
