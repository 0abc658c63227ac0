"""`latency`: verdict, figures, charts and formula steps of a result."""

from app.estimator.data_files import around_rate, error_range
from app.estimator.estimates.latency import (
    LatencyInputs,
    LatencyResult,
    compute_latency,
    find_flips,
    validate_inputs,
)
from app.estimator.fits import capacity_note
from app.estimator.formula_steps import StepBuilder, format_sum, format_term
from app.estimator.hardware.catalog import find_accelerator
from app.estimator.hardware.collectives import gpu_interconnect
from app.estimator.hardware.throughput import critical_batch, roofline, routed_critical_batch
from app.estimator.models.lookup import find_model
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    Chart,
    ChartLine,
    Estimate,
    Figure,
    FormulaStep,
    Output,
    ResultTable,
    Verdict,
    outputs_by_name,
)
from app.estimator.serving.engine import ServingSetup, math_width
from app.estimator.serving.replica import weights_per_gpu
from app.estimator.serving.step_time import InferenceStep, PlacedModel, place_model
from app.estimator.training.flops import score_flops
from app.estimator.units import format_number, format_value

OUTPUTS = (
    Output("ttft", "Time to first token", "s", better="less", modeled=True),
    Output("tpot", "Time per output token", "s", better="less", modeled=True),
    Output("total", "Whole answer", "s", better="less", modeled=True),
    Output("prefill_time", "Computing the prompt", "s", better="less", modeled=True),
    Output("decode_time", "One decoding step", "s", better="less", modeled=True),
    Output("memory_time", "Reading weights and cache", "s", better="less", modeled=True),
    Output("compute_time", "Computing", "s", better="less", modeled=True),
    Output(
        "communication_time",
        "Exchanging between GPUs",
        "s",
        better="less",
        modeled=True,
    ),
    Output("overhead_time", "Launches and host", "s", better="less", modeled=True),
    Output(
        "tokens_per_second",
        "Tokens per second and sequence",
        "token/s",
        better="more",
        modeled=True,
    ),
    Output(
        "throughput",
        "Tokens per second of the batch",
        "token/s",
        better="more",
        modeled=True,
    ),
    Output("bound", "Decoding is bound by"),
    Output("critical_batch", "Critical batch", "sequence"),
    Output("fits", "Fits in memory", better="more"),
)
_OUT = outputs_by_name(OUTPUTS)
_WORKING = StepBuilder(_OUT, "batching-and-latency")


def build_report(asked: LatencyInputs, placed: PlacedModel, timed: LatencyResult) -> Estimate:
    """Build the estimate: latencies, figures, roofline and steps."""
    return Estimate(
        name="latency",
        verdict=_build_verdict(asked, placed, timed),
        figures=_build_figures(asked, placed, timed),
        steps=_build_steps(asked, placed, timed),
        pictures=(_build_roofline(asked, placed),),
        tables=(_build_table(timed),),
        notes=(*_build_notes(asked, placed, timed), capacity_note(placed.gpu)),
        changes=find_flips(asked, timed),
    )


_LEADS = {
    "memory": "Bound by memory.",
    "compute": "Bound by compute.",
    "communication": "Bound by communication.",
    "overhead": "Bound by overhead.",
}


def _build_verdict(asked: LatencyInputs, placed: PlacedModel, timed: LatencyResult) -> Verdict:
    first = format_value(timed.first, "s")
    then = (
        f"after {first}, then one every {format_value(timed.per_token, 's')} "
        f"({format_number(1 / timed.per_token)} tokens/s for each sequence)."
    )
    if not timed.fits:
        where = f"{asked.tensor_parallel} {placed.gpu.name}"
        text = f"Too large for {where}. With enough memory: first token {then}"
        return Verdict("no", "Does not fit.", text)
    return Verdict("info", _LEADS[timed.bound], f"First token {then}")


def _build_figures(
    asked: LatencyInputs, placed: PlacedModel, timed: LatencyResult
) -> tuple[Figure, ...]:
    rate = 1 / timed.per_token
    whole = timed.first + (asked.answer - 1) * timed.per_token
    return (
        _time_figure("ttft", timed.first, "prefill", primary=True),
        _time_figure("tpot", timed.per_token, primary=True),
        _time_figure("total", whole),
        _time_figure("prefill_time", timed.prefill.total, "prefill"),
        _time_figure("decode_time", timed.decode.total),
        _time_figure("memory_time", timed.reading),
        _time_figure("compute_time", timed.decode.compute),
        _time_figure("communication_time", timed.decode.communication),
        _time_figure("overhead_time", timed.overhead),
        _rate_figure("tokens_per_second", rate),
        _rate_figure("throughput", rate * asked.batch),
        Figure(_OUT["bound"], timed.bound),
        Figure(_OUT["critical_batch"], _critical_sequences(placed)),
        Figure(_OUT["fits"], timed.fits),
    )


def _time_figure(name: str, value: float, kind: str = "decode", *, primary: bool = False) -> Figure:
    low, high = error_range(kind, value)
    return Figure(_OUT[name], value, low, high, primary=primary)


def _rate_figure(name: str, value: float) -> Figure:
    low, high = around_rate("decode", value)
    return Figure(_OUT[name], value, low, high)


def _critical_sequences(placed: PlacedModel) -> float:
    """Return the sequences from which weights no longer bound the time, by the data sheet."""
    gpu, form = placed.gpu, placed.form
    kind = {"16": "bf16", "8": "fp8", "4": "fp4"}[math_width(gpu, form)]
    peak = gpu.peak(kind) or gpu.peak("int8") or gpu.peak("bf16") or 0.0
    dense = critical_batch(peak, gpu.memory_bandwidth or 1.0, form.bits / 8)
    if not placed.model.is_routed:
        return dense
    per_token = placed.model.experts_per_token
    return routed_critical_batch(dense, placed.model.experts, per_token)


def _build_steps(
    asked: LatencyInputs, placed: PlacedModel, timed: LatencyResult
) -> tuple[FormulaStep, ...]:
    exchanges = 2 * placed.model.layers
    each = timed.decode.communication / exchanges if exchanges else 0.0
    return (
        _WORKING.line(
            "memory_time",
            "time for the weights + time for the cache, at the reached bandwidth",
            format_sum((timed.decode.weights, timed.decode.attention), "s"),
            timed.reading,
            "pope-2022",
        ),
        _WORKING.line(
            "communication_time",
            "exchanges, two for each layer × time of one",
            f"{exchanges} × {format_term(each, 's')}",
            timed.decode.communication,
            "aiconfigurator",
            topic="interconnects",
        ),
        _WORKING.line(
            "overhead_time",
            "launches of all kernels + host and sampling",
            format_sum((timed.decode.launch, timed.decode.host), "s"),
            timed.overhead,
            "inferencex",
        ),
        *_token_steps(asked, placed, timed),
    )


def _token_steps(
    asked: LatencyInputs, placed: PlacedModel, timed: LatencyResult
) -> tuple[FormulaStep, ...]:
    tokens = format_term(timed.accepted)
    return (
        _step_parts_line("decode_time", timed.decode),
        _WORKING.line(
            "tpot",
            "one step ÷ tokens kept per step",
            f"{format_term(timed.per_token * timed.accepted, 's')} ÷ {tokens}",
            timed.per_token,
            "leviathan-2023" if asked.draft_tokens else "pope-2022",
        ),
        _step_parts_line("prefill_time", timed.prefill),
        _WORKING.line(
            "ttft",
            "way to the engine and launches + prompt in its chunks",
            format_sum((placed.front, timed.first - placed.front), "s"),
            timed.first,
            "inferencex",
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


def _step_parts_line(figure: str, step: InferenceStep) -> FormulaStep:
    """Return the sum of a step's parts that take time, in their order."""
    seconds = {name: getattr(step, part) for part, name in _PARTS.items()}
    named = [name for name, value in seconds.items() if value]
    numbers = format_sum(seconds.values(), "s")
    return _WORKING.line(figure, " + ".join(named), numbers, step.total, "pope-2022")


def _build_roofline(asked: LatencyInputs, placed: PlacedModel) -> Chart:
    """Return the roofline of the GPU, with prompt and answer marked."""
    gpu = placed.gpu
    kind = {"16": "bf16", "8": "fp8", "4": "fp4"}[math_width(gpu, placed.form)]
    peak = gpu.peak(kind) or gpu.peak("int8") or gpu.peak("bf16") or 1.0
    band = gpu.memory_bandwidth or 1.0
    turn = peak / band
    lowest, highest = turn / 4096, turn * 16
    roof = tuple((x, roofline(x, peak, band)) for x in (lowest, turn, highest))
    marks = []
    for label, rows, context in (
        ("Answer", float(asked.batch), asked.prompt + asked.answer / 2),
        ("Prompt", float(asked.prompt), asked.prompt / 2),
    ):
        each = min(max(_step_intensity(placed, rows, context, label), lowest), highest)
        point = (each, roofline(each, peak, band))
        marks.append(ChartLine(label, (point,), "mark"))
    return Chart(
        f"Roofline of {gpu.name} in {placed.form.label}",
        "Operations per byte",
        "Rate",
        "",
        "FLOP/s",
        (ChartLine("Highest rate", roof), *marks),
        x_log=True,
        y_log=True,
    )


def _step_intensity(placed: PlacedModel, rows: float, context: float, part: str) -> float:
    """Return the FLOPs per byte of one step on one GPU [FLOP/B]."""
    model, tensor = placed.model, placed.serving.tensor
    work = 2.0 * (model.active_parameters - model.embedding_parameters)
    scores = sum(number * score_flops(layer.mixer, 2 * context) for layer, number in model.runs)
    read = weights_per_gpu(placed)
    if part == "Answer":
        each = model.sequence_elements(max(1, round(context)))
        read += rows * each * placed.element / tensor
    return rows * (work + scores) / tensor / read


def _build_table(timed: LatencyResult) -> ResultTable:
    names = (
        ("Weights", "weights"),
        ("Computing", "compute"),
        ("Attention and cache", "attention"),
        ("Exchange", "communication"),
        ("Launches", "launch"),
        ("Host", "host"),
        ("Sum", "total"),
    )
    rows = tuple(
        (label, (getattr(timed.prefill, name), "s"), (getattr(timed.decode, name), "s"))
        for label, name in names
    )
    return ResultTable("Parts of a step", ("Part", "Prompt", "Answer"), rows)


def _build_notes(
    asked: LatencyInputs, placed: PlacedModel, timed: LatencyResult
) -> tuple[str, ...]:
    notes = [
        "Time per output token is the pause between tokens of one sequence.",
        "No other request waits; serving-capacity adds the queue.",
    ]
    if placed.narrow:
        label = placed.form.label
        notes.append(f"{label} is unpacked to 16 bit here: it saves reading, not math.")
    if timed.turns is not None:
        turns = format_number(timed.turns)
        notes.append(f"From {turns} sequences on, computing outweighs the weights.")
    if asked.beyond_heads:
        notes.append("Layers may be divided over more chips than there are heads.")
    if asked.draft_tokens:
        kept = format_number(timed.accepted)
        notes.append(f"{kept} tokens are kept of each step on average.")
    if placed.model.is_routed:
        notes.append("Tokens choose experts unevenly, so fewer are read than could be.")
    return tuple(notes)


def estimate(asked: LatencyInputs) -> Estimate:
    """Compute the times of prompt and answer, and what bounds each."""
    model, gpu = find_model(asked.model), find_accelerator(asked.gpu)
    tensor = 1 if asked.beyond_heads else asked.tensor_parallel
    validate_inputs(model, gpu, asked.weights, tensor)
    fabric = gpu_interconnect(gpu, asked.network_rate, domain=asked.domain or 0)
    serving = ServingSetup(
        weights=asked.weights,
        cache=asked.cache,
        tensor=asked.tensor_parallel,
        expert_tensor=asked.tensor_parallel,
        software=asked.engine,
    )
    placed = place_model(model, gpu, fabric, serving)
    return build_report(asked, placed, compute_latency(asked, placed))


ENTRY = EstimateSpec(
    name="latency",
    title="Latency",
    summary="Time to the first token and per token, and what each is bound by.",
    group="Serving",
    inputs=LatencyInputs,
    answer=estimate,
    outputs=OUTPUTS,
    first=("ttft", "tpot", "throughput"),
    topic="batching-and-latency",
)
