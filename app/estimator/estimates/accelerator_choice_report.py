"""`accelerator-choice`: verdict, figures, charts and formula steps of a result."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from app.estimator.data_files import time_with_error_range
from app.estimator.estimates.accelerator_choice import (
    MEMORY_SHARE_FOR_STATES,
    STATE_BYTES,
    TOPIC,
    USABLE_MEMORY_SHARE,
    AcceleratorChoiceInputs,
    GpuCandidate,
    GpuRanking,
    find_verdict_changes,
    gpus_of_system,
    lacking_bytes_of_best_at_upper_bound,
    list_non_gpu_accelerators,
    parse_hourly_prices_by_gpu,
    place_on_gpus,
    rank_gpus,
    say_that_no_gpu_does_it,
)
from app.estimator.estimates.inference_memory import GpuMemoryUse
from app.estimator.estimates.inference_memory_report import MEMORY_PARTS
from app.estimator.estimates.serving_capacity import ServingCapacityInputs
from app.estimator.estimates.training_time_report import (
    value_with_run_error_range,
)
from app.estimator.formula_steps import StepBuilder, format_term, format_terms_of_exact_sum
from app.estimator.hardware.catalog import (
    Accelerator,
    describe_gpu_count_with_sales_unit,
    field_of_toml_key,
    round_up_to_sales_unit,
)
from app.estimator.hardware.part_values import FIELDS, RATES
from app.estimator.hardware.prices import UNKNOWN, rental_price_source_notes
from app.estimator.inputs import format_value_as_typed, input_specs
from app.estimator.memory_verdict import memory_lacking_at_upper_bound_text, real_capacity_note
from app.estimator.models.lookup import find_model
from app.estimator.models.weight_formats import find_weight_format, weight_bytes_by_split
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    BarSegment,
    Estimate,
    EstimateLink,
    FormulaStep,
    ModeledOutput,
    OutputSpec,
    OutputValue,
    ResultTable,
    StackedBar,
    Status,
    TableCell,
    Verdict,
    read_figures,
)
from app.estimator.serving.engine_speed import fp8_weight_only_notes
from app.estimator.serving.step_time import MeasurementCoverage, find_measurement_coverage
from app.estimator.units import format_count, format_number, format_value


def build_ranking_table(result: GpuRanking) -> ResultTable:
    best = result.candidates_best_first[0]
    training = result.inputs.job == "training"
    work_column = "GPU-hours" if training else "Time per token"
    cost_unit = "USD" if training else "USD/h"
    has_prices = any(candidate.hourly_price_per_gpu for candidate in result.candidates_best_first)
    rows = tuple(
        (
            format_number(rank),
            candidate.gpu.name,
            (float(candidate.gpu_count), ""),
            (float(round_up_to_sales_unit(candidate.gpu, candidate.gpu_count).gpus), ""),
            (candidate.needed_bytes_per_gpu, "B"),
            _cell_or_unknown(
                candidate.gpu_hours_or_seconds_per_token, "GPU-h" if training else "s"
            ),
            _cell_or_unknown(candidate.power_of_all_gpus, "W"),
            *(
                (_cell_or_unknown(candidate.training_or_hourly_cost, cost_unit),)
                if has_prices
                else ()
            ),
            _rank_reason(result.inputs, best, candidate),
        )
        for rank, candidate in enumerate(result.candidates_best_first, 1)
    )
    cost_column = (("Training" if training else "Hour"),) if has_prices else ()
    first_columns = ("Place", "GPU", "Number", "Bought")
    columns = (*first_columns, "Each holds", work_column, "Power", *cost_column, "Why")
    return ResultTable("Ranking", columns, rows)


def _cell_or_unknown(value: float | None, unit: str) -> TableCell:
    return "unknown" if value is None else (value, unit)


def _rank_reason(
    inputs: AcceleratorChoiceInputs, best: GpuCandidate, candidate: GpuCandidate
) -> str:
    if candidate is best:
        if inputs.job == "training":
            return {**_BEST_NOTE_BY_RANKING, **_FIRST_TRAINING}[inputs.rank]
        return _BEST_NOTE_BY_RANKING[inputs.rank]
    if inputs.rank == "cost" and candidate.hourly_cost is None:
        return "No price given."
    reasons = []
    if candidate.gpu_count != best.gpu_count:
        needs_more = candidate.gpu_count > best.gpu_count
        number = format_number(abs(candidate.gpu_count - best.gpu_count))
        reasons.append(f"{number} {'more' if needs_more else 'fewer'}")
    if (
        candidate.power_of_all_gpus is not None
        and best.power_of_all_gpus is not None
        and candidate.power_of_all_gpus != best.power_of_all_gpus
    ):
        gap = format_value(abs(candidate.power_of_all_gpus - best.power_of_all_gpus), "W")
        reasons.append(
            f"{gap} {'more' if candidate.power_of_all_gpus > best.power_of_all_gpus else 'less'}"
        )
    ratio = (
        candidate.gpu_hours_or_seconds_per_token / best.gpu_hours_or_seconds_per_token
        if candidate.gpu_hours_or_seconds_per_token and best.gpu_hours_or_seconds_per_token
        else 1.0
    )
    if abs(ratio - 1) > 0.02:
        share = format_value(abs(ratio - 1), "%")
        reasons.append(f"{share} {'more' if ratio > 1 else 'less'} time")
    return f"{', '.join(reasons) or 'as good'}."


_BEST_NOTE_BY_RANKING = {
    "gpus": "The fewest that do it.",
    "power": "The least power.",
    "speed": "The fastest.",
    "cost": "The cheapest hour.",
}
_FIRST_TRAINING = {"speed": "The fewest GPU-hours.", "cost": "The cheapest training."}


def build_exclusion_table(result: GpuRanking) -> ResultTable:
    rows = tuple((exclusion.gpu.name, exclusion.reason) for exclusion in result.excluded)
    return ResultTable("Left out", ("GPU", "Why not"), rows or (("None", ""),))


def build_non_gpu_table(result: GpuRanking) -> ResultTable:
    if result.inputs.job == "training":
        needed_bytes = result.model.parameters * STATE_BYTES
    else:
        needed_bytes = weight_bytes_by_split(result.model, result.inputs.weights).total_bytes
    rows = tuple(
        _build_table_row_of_non_gpu(chip, needed_bytes) for chip in list_non_gpu_accelerators()
    )
    columns = ("Not a GPU", "For the memory alone", "Memory", "Bandwidth", "Power")
    return ResultTable("Beside the ranking", (*columns, "Not known"), rows)


def _build_table_row_of_non_gpu(chip: Accelerator, needed_bytes: float) -> tuple[TableCell, ...]:
    chips: TableCell = "unknown"
    if chip.capacity:
        chips = (float(math.ceil(needed_bytes / chip.capacity)), "")
    vendor_suffix = "" if chip.vendor.split()[0] in chip.name else f" ({chip.vendor})"
    return (
        f"{chip.name}{vendor_suffix}",
        chips,
        _cell_or_unknown(chip.capacity or None, "B"),
        _cell_or_unknown(chip.memory_bandwidth, "B/s"),
        _cell_or_unknown(chip.tdp, "W"),
        _format_missing_values_cell(chip),
    )


def _format_missing_values_cell(chip: Accelerator) -> str:
    values = {
        "16-bit rate": chip.dense_peak_rate("bf16"),
        "8-bit rate": chip.dense_peak_rate("fp8") or chip.dense_peak_rate("int8"),
        "power": chip.tdp,
    }
    return ", ".join(name for name, value in values.items() if value is None) or "–"


def _make_best_gpu_reader(
    read: Callable[[AcceleratorChoiceInputs, GpuCandidate], Any],
) -> Callable[[GpuRanking], OutputValue]:

    def read_best(result: GpuRanking) -> OutputValue:
        if result.best is None:
            return OutputValue(None, note=say_that_no_gpu_does_it(result.inputs), applies=False)
        value = read(result.inputs, result.best)
        if not isinstance(value, OutputValue):
            value = OutputValue(value)
        # Which GPUs and how many follows from modeled memory and times.
        return dataclasses.replace(value, unbounded=not isinstance(value.value, str))

    return read_best


def _purchased_gpu_count(_: AcceleratorChoiceInputs, best: GpuCandidate) -> OutputValue:
    bought = round_up_to_sales_unit(best.gpu, best.gpu_count)
    return OutputValue(bought.gpus, note=f"Sold by the {bought.unit_kind}; clouds rent fewer.")


def _power_of_best(_: AcceleratorChoiceInputs, best: GpuCandidate) -> OutputValue:
    return OutputValue(
        best.power_of_all_gpus,
        note="At most, without their servers." if best.power_of_all_gpus else "Not known.",
    )


def _token_time_of_best(inputs: AcceleratorChoiceInputs, best: GpuCandidate) -> OutputValue:
    if best.gpu_hours is not None:
        return OutputValue(None, note="For serving.", applies=False)
    measurements = _find_measurements(inputs, best)
    interval = measurements.error_interval_name("tpot") if measurements else "tpot-unmeasured"
    return time_with_error_range(interval, best.seconds_per_token or 0.0)


def _find_measurements(
    inputs: AcceleratorChoiceInputs, best: GpuCandidate
) -> MeasurementCoverage | None:
    """Return the measurements of servers like the best one; None if its rates are unknown."""
    placed = place_on_gpus(inputs, find_model(inputs.model), best.gpu, best.gpu_count)
    return find_measurement_coverage(placed) if placed else None


def _token_rate_of_best(inputs: AcceleratorChoiceInputs, best: GpuCandidate) -> OutputValue:
    seconds = _token_time_of_best(inputs, best)
    if not (best.seconds_per_token and seconds.low and seconds.high):
        return seconds
    sequences = inputs.concurrent
    return OutputValue(
        sequences / best.seconds_per_token, sequences / seconds.high, sequences / seconds.low
    )


def _gpu_hours_of_best(inputs: AcceleratorChoiceInputs, best: GpuCandidate) -> OutputValue:
    if best.gpu_hours is None:
        return OutputValue(None, note="For training.", applies=False)
    return value_with_run_error_range(find_model(inputs.model), best.gpu, best.hfu, best.gpu_hours)


def _run_duration_of_best(inputs: AcceleratorChoiceInputs, best: GpuCandidate) -> OutputValue:
    hours, seconds_per_gpu_hour = _gpu_hours_of_best(inputs, best), 3600 / best.gpu_count
    if best.gpu_hours is None or hours.low is None or hours.high is None:
        return hours
    return OutputValue(
        best.gpu_hours * seconds_per_gpu_hour,
        hours.low * seconds_per_gpu_hour,
        hours.high * seconds_per_gpu_hour,
    )


def _hourly_cost(inputs: AcceleratorChoiceInputs, best: GpuCandidate) -> OutputValue:
    note = _describe_price_of_best(inputs, best)
    return OutputValue(best.hourly_cost, note=note, applies=note != UNKNOWN)


def _describe_price_of_best(inputs: AcceleratorChoiceInputs, best: GpuCandidate) -> str:
    """Say that the price is a list price, or why there is none; empty if it was typed."""
    if parse_hourly_prices_by_gpu(inputs):
        return "" if best.hourly_price_per_gpu else "No price was given for it."
    return "By the list price of a GPU-hour." if best.hourly_price_per_gpu else UNKNOWN


def _run_cost(inputs: AcceleratorChoiceInputs, best: GpuCandidate) -> OutputValue:
    if best.gpu_hours is None:
        return OutputValue(None, note="For training.", applies=False)
    if best.hourly_price_per_gpu is None:
        return _hourly_cost(inputs, best)
    value = best.gpu_hours * best.hourly_price_per_gpu
    cost = value_with_run_error_range(find_model(inputs.model), best.gpu, best.hfu, value)
    return dataclasses.replace(cost, note=_describe_price_of_best(inputs, best))


OUTPUTS: tuple[OutputSpec[GpuRanking], ...] = (
    OutputSpec(
        "choice", "Best", read=_make_best_gpu_reader(lambda _, best: best.gpu.name), primary=True
    ),
    ModeledOutput(
        "gpus", "GPUs", "GPU", "less", _make_best_gpu_reader(lambda _, best: best.gpu_count)
    ),
    ModeledOutput(
        "bought", "GPUs bought", "GPU", "less", _make_best_gpu_reader(_purchased_gpu_count)
    ),
    ModeledOutput(
        "memory",
        "Memory of all",
        "B",
        read=_make_best_gpu_reader(lambda _, best: best.gpu_count * best.gpu.capacity),
    ),
    ModeledOutput(
        "need",
        "Needed on each",
        "B",
        "less",
        _make_best_gpu_reader(lambda _, best: best.needed_bytes_per_gpu),
    ),
    ModeledOutput("power", "Power of all", "W", "less", _make_best_gpu_reader(_power_of_best)),
    ModeledOutput(
        "token_time", "Time per token", "s", "less", _make_best_gpu_reader(_token_time_of_best)
    ),
    ModeledOutput(
        "rate", "Tokens per second", "token/s", "more", _make_best_gpu_reader(_token_rate_of_best)
    ),
    ModeledOutput(
        "gpu_hours", "GPU-hours", "GPU-h", "less", _make_best_gpu_reader(_gpu_hours_of_best)
    ),
    ModeledOutput(
        "duration", "Duration", "s", "less", _make_best_gpu_reader(_run_duration_of_best)
    ),
    ModeledOutput("cost", "Cost of an hour", "USD/h", "less", _make_best_gpu_reader(_hourly_cost)),
    ModeledOutput(
        "run_cost", "Cost of the training", "USD", "less", _make_best_gpu_reader(_run_cost)
    ),
    OutputSpec("candidates", "That do it", read=lambda r: len(r.candidates_best_first)),
    OutputSpec("excluded", "That do not", read=lambda r: len(r.excluded)),
)
_STEPS = StepBuilder(OUTPUTS, "parallelism")


def estimate(inputs: AcceleratorChoiceInputs) -> Estimate:
    result = rank_gpus(inputs)
    best = result.best
    tables = (build_ranking_table(result),) if best else ()
    return Estimate(
        name="accelerator-choice",
        verdict=_build_verdict(result),
        figures=read_figures(OUTPUTS, result),
        steps=_build_steps(result, best) if best else _build_exclusion_count_steps(result),
        pictures=(_build_memory_bar_of_best_gpu(result, best),) if best else (),
        tables=(*tables, build_exclusion_table(result), build_non_gpu_table(result)),
        notes=_build_notes(inputs, best),
        changes=find_verdict_changes(result),
        links=_link_to_serving_capacity(inputs, best),
    )


def _link_to_serving_capacity(
    inputs: AcceleratorChoiceInputs, best: GpuCandidate | None
) -> tuple[EstimateLink, ...]:
    """Return the link to a service on the best GPU; none without one, or for training."""
    if best is None or inputs.job == "training":
        return ()
    answer = ServingCapacityInputs().output_tokens
    values = {
        "model": inputs.model,
        "weights": inputs.weights,
        "cache": inputs.cache,
        "gpu": best.gpu.id,
        "concurrent": inputs.concurrent,
        "prompt_tokens": max(1, inputs.context - answer),
        "output_tokens": min(answer, max(1, inputs.context - 1)),
        "tpot_target": inputs.slowest,
    }
    specs = input_specs(ServingCapacityInputs)
    typed = {name: format_value_as_typed(specs[name], value) for name, value in values.items()}
    text = f"a service on the {best.gpu.name} for {format_count(inputs.concurrent, 'user')}"
    return (EstimateLink("serving-capacity", text, typed),)


def _build_verdict(result: GpuRanking) -> Verdict:
    gpu_count = len(result.candidates_best_first) + len(result.excluded)
    if not result.candidates_best_first:
        why = f"All {gpu_count} are left out; the table says why each."
        return Verdict("no", say_that_no_gpu_does_it(result.inputs), why)
    best, *runners_up = result.candidates_best_first
    job = "train" if result.inputs.job == "training" else "serve"
    text = f"It can {job} {result.model.name}"
    if runners_up:
        text = (
            f"Of the {len(result.candidates_best_first)} GPUs of the catalog that can {job} "
            f"{result.model.name}, it comes first by {_ranking_criterion(result.inputs)}; next comes "
            f"{describe_gpu_count_with_sales_unit(runners_up[0].gpu, runners_up[0].gpu_count)}"
        )
    lacking = memory_lacking_at_upper_bound_text(lacking_bytes_of_best_at_upper_bound(result))
    status: Status = "tight" if lacking or result.all_miss_preset_token_time else "fits"
    lead = f"{describe_gpu_count_with_sales_unit(best.gpu, best.gpu_count)}."
    text = f"{text}. {lacking}".strip()
    if result.inputs.job == "serving":
        text = f"{text} {_describe_what_a_service_adds(result.inputs)}"
    if result.all_miss_preset_token_time and best.seconds_per_token:
        reached, limit = (
            format_value(seconds, "s")
            for seconds in (best.seconds_per_token, result.inputs.slowest)
        )
        text = f"Slower than the preset target: {reached} per token, not {limit}. {text}"
        lead = f"{lead.removesuffix('.')}, slower than the preset target."
    return Verdict(status, lead, text)


def _describe_what_a_service_adds(inputs: AcceleratorChoiceInputs) -> str:
    """Return why calculators of a whole service name other numbers and times."""
    return (
        "That is one copy of the model while it only answers, with "
        f"{format_value(inputs.context, 'token')} of each sequence in memory. serving-capacity and "
        "deployment also count prompts read in between, further copies and a spare."
    )


def _ranking_criterion(inputs: AcceleratorChoiceInputs) -> str:
    training = inputs.job == "training"
    return {
        "gpus": "fewest GPUs, then NVIDIA's, then least power",
        "power": "least power",
        "speed": "fewest GPU-hours" if training else "shortest time per token",
        "cost": "lowest cost of the training" if training else "lowest cost of an hour",
    }[inputs.rank]


def _build_steps(result: GpuRanking, best: GpuCandidate) -> tuple[FormulaStep, ...]:
    inputs = result.inputs
    if best.gpu_hours is None:
        return _serving_steps(inputs, best, result.memory_on_best_gpu_by_count[best.gpu_count])
    least = result.model.parameters * STATE_BYTES / (best.gpu.capacity * MEMORY_SHARE_FOR_STATES)
    system_gpus = gpus_of_system(best.gpu)
    states = (
        f"⌈{format_term(result.model.parameters)} × {format_term(STATE_BYTES)} B ÷ "
        f"({format_term(best.gpu.capacity, 'B')} × {format_term(MEMORY_SHARE_FOR_STATES, '%')}) ÷ "
        f"{system_gpus}⌉ × {system_gpus}"
    )
    return (
        FormulaStep(
            "Fewest GPUs tried",
            "⌈parameters × 16 B ÷ (memory × share for states) ÷ GPUs of a system⌉ × GPUs of a "
            "system; fewer are not tried in any layout",
            states,
            math.ceil(least / system_gpus) * system_gpus,
            "GPU",
            "zero",
            "training-memory",
            "need",
        ),
        _STEPS.build_step_from_template(
            "gpu_hours",
            "[tokens] ÷ ([tokens per second of a GPU] × (1 − [time lost])) ÷ 3,600",
            (
                inputs.tokens,
                inputs.tokens / (best.gpu_hours * 3600 * best.productive_time_share),
                (1 - best.productive_time_share, "%"),
            ),
            best.gpu_hours,
            "megatron-2021",
        ),
        _STEPS.build_step_from_template(
            "duration",
            "[GPU-hours] ÷ [GPUs, the fewest whole systems found to be in time] × 3,600",
            (best.gpu_hours, best.gpu_count),
            best.gpu_hours / best.gpu_count * 3600,
            "megatron-2021",
        ),
        *_power_steps(best),
    )


def _serving_steps(
    inputs: AcceleratorChoiceInputs, best: GpuCandidate, memory_use: GpuMemoryUse
) -> tuple[FormulaStep, ...]:
    return (
        _STEPS.build_step(
            "need",
            "weights + KV cache + activations + overhead"
            + (" + padding of repacked experts" if memory_use.padding else ""),
            format_terms_of_exact_sum(
                [getattr(memory_use, part.field) for part in MEMORY_PARTS], "B"
            ),
            best.needed_bytes_per_gpu,
            "vllm-memory",
            topic="inference-memory",
        ),
        _STEPS.build_step_from_template(
            "need",
            "[memory] × [usable share]",
            ((best.gpu.capacity, "B"), (USABLE_MEMORY_SHARE, "%")),
            best.gpu.capacity * USABLE_MEMORY_SHARE,
            "catalogue",
            label="Usable on each",
            topic="cluster-components",
        ),
        _STEPS.build_step_from_template(
            "token_time",
            "[sequences at once] ÷ [tokens per second of all]",
            (inputs.concurrent, inputs.concurrent / (best.seconds_per_token or 1.0)),
            best.seconds_per_token or 0.0,
            "pope-2022",
            topic="batching-and-latency",
        ),
        *_power_steps(best),
    )


def _power_steps(best: GpuCandidate) -> tuple[FormulaStep, ...]:
    if best.power_of_all_gpus is None:
        return ()
    return (
        _STEPS.build_step_from_template(
            "power",
            "[GPUs] × [TDP]",
            (best.gpu_count, (best.gpu.tdp or 0.0, "W")),
            best.power_of_all_gpus,
            "catalogue",
            topic="power-and-cooling",
        ),
    )


def _build_exclusion_count_steps(result: GpuRanking) -> tuple[FormulaStep, ...]:
    return (
        _STEPS.build_step(
            "excluded",
            "GPUs of the catalog left out",
            format_term(len(result.excluded)),
            len(result.excluded),
            "catalogue",
            topic="cluster-components",
        ),
    )


def _build_memory_bar_of_best_gpu(result: GpuRanking, best: GpuCandidate) -> StackedBar:
    memory = best.gpu.capacity
    if result.inputs.job == "training":
        limit, text = best.gpu.engine_visible_memory, "visible"
        parts: tuple[BarSegment, ...] = (
            BarSegment("optimizer", "States and activations", best.needed_bytes_per_gpu),
        )
    else:
        memory_use = result.memory_on_best_gpu_by_count[best.gpu_count]
        limit, text = memory * USABLE_MEMORY_SHARE, "usable"
        padded = dataclasses.replace(memory_use, overhead=memory_use.overhead + memory_use.padding)
        parts = tuple(
            BarSegment(part.component, part.label, getattr(padded, part.field))
            for part in MEMORY_PARTS[:-1]
        )
    label = f"Memory of each {best.gpu.name}"
    return StackedBar(label, parts, limit, f"{format_value(limit, 'B')} {text}")


_RANKING_NOTE_BY_RANKING = {
    "gpus": (
        "Fewest GPUs come first, then NVIDIA's, then least power, then speed. A GPU whose 16-bit "
        "rate is not published fits by its memory, and comes after all whose speed is known."
    ),
    "power": "Least power of the accelerators comes first, then fewest of them.",
    "speed": "The fastest comes first, each with the fewest GPUs that do the job.",
    "cost": "The cheapest comes first; those without a price come last.",
}


def _build_notes(inputs: AcceleratorChoiceInputs, best: GpuCandidate | None) -> tuple[str, ...]:
    notes = [_RANKING_NOTE_BY_RANKING[inputs.rank], _OTHER_ARCHITECTURES_NOTE]
    if inputs.job == "training" and inputs.rank == "speed":
        notes[0] = "Fewest GPU-hours come first, whatever the number of GPUs."
    if inputs.job == "training":
        notes.append(
            "Training is mixed-precision AdamW in the fastest layout that surely fits, which "
            "parallelism-plan finds and training-run takes: for the same number of GPUs they say "
            "the same GPU-hours."
        )
    else:
        notes.append(
            "One copy of the model on one server, or on one rack-wide domain, without pipeline "
            "stages; the speed is that of a good engine with this many sequences."
        )
    if best is not None and inputs.job == "training" and best.gpu.vendor != "NVIDIA":
        notes.append(
            f"No measured engine on the {best.gpu.name} went into the model of speed: "
            "it rests on the shares that other GPUs reach."
        )
    if best is not None and inputs.job == "serving":
        measurements = _find_measurements(inputs, best)
        notes += [measurements.note] if measurements else []
        form = find_weight_format(find_model(inputs.model), inputs.weights)
        notes += fp8_weight_only_notes(best.gpu, form)
    if best is not None:
        notes += _list_price_notes(inputs, best)
        notes.append(real_capacity_note(best.gpu))
    if best is not None and (doubtful := _format_unverified_field_labels(best.gpu)):
        notes.append(
            f"The catalog has no primary source for these values of the "
            f"{best.gpu.name}: {doubtful}."
        )
    return tuple(notes)


def _list_price_notes(inputs: AcceleratorChoiceInputs, best: GpuCandidate) -> tuple[str, ...]:
    """Return which prices the costs are counted with, if none were typed."""
    if parse_hourly_prices_by_gpu(inputs):
        return ()
    note = (
        "No prices were written: costs are by on-demand list prices, where one is known, and the "
        "ranking does not count them."
    )
    return (note, *rental_price_source_notes(best.gpu, None))


def _format_unverified_field_labels(gpu: Accelerator) -> str:
    names = {field_of_toml_key(key) for key in gpu.unverified} & _FIELDS_USED_BY_RANKING
    return ", ".join(f.label for f in FIELDS["accelerator"] if f.name in names)


_FIELDS_USED_BY_RANKING = {"memory", "memory_bandwidth", "nvlink", "tdp", *RATES} - {"fp32", "tf32"}

_OTHER_ARCHITECTURES_NOTE = (
    "TPUs, LPUs, wafers and others are shown beside the ranking: their speed follows "
    "other rules than those fitted on GPUs."
)


ENTRY = EstimateSpec(
    name="accelerator-choice",
    title="Accelerator choice",
    summary="Which accelerators do a job, best first, and why the others do not.",
    group="Hardware",
    inputs_type=AcceleratorChoiceInputs,
    compute_estimate=estimate,
    outputs=OUTPUTS,
    most_important_outputs=("gpus", "need", "token_time", "gpu_hours"),
    main_inputs=("job", "model", "rank"),
    topic=TOPIC,
    is_search=True,
)
