"""`serving-capacity`: verdict, figures, charts and formula steps of a result."""

import dataclasses
import math
from typing import Any, NamedTuple

from app.estimator.common_inputs import LLAMA_CPP
from app.estimator.estimates.serving_capacity import (
    PRESET_TPOT,
    SHARES,
    CapacityResult,
    ServingCapacityInputs,
    build_replica_profile,
    build_serving_setup,
    compute_capacity,
    fill_in_formats_and_gpus,
    operating_point_of_each_replica,
)
from app.estimator.estimates.serving_capacity_changes import (
    RACK_GPUS,
    add_chosen_split_to_changes,
    find_verdict_changes,
)
from app.estimator.estimates.serving_capacity_outputs import (
    MANY_MORE,
    OUTPUTS,
    add_split_if_times_are_high,
    add_uncertainty_bounds,
    compute_capacity_relaxing_preset_tpot,
)
from app.estimator.formula_steps import StepBuilder, format_term
from app.estimator.hardware.prices import rental_price_source_notes
from app.estimator.memory.parallel_layout import (
    redundant_experts_note,
    split_into_serving_stages,
)
from app.estimator.memory_verdict import (
    memory_lacking_at_upper_bound_text,
    real_capacity_note,
    replace_verdict_if_context_exceeds_max,
)
from app.estimator.models.architecture import Architecture
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    Chart,
    ChartLine,
    Estimate,
    FormulaStep,
    ResultTable,
    Status,
    TableCell,
    Verdict,
    read_figures,
)
from app.estimator.serving.engine_speed import fp8_weight_only_notes
from app.estimator.serving.replica import (
    PREFILL_LOAD,
    BatchTiming,
    OperatingPoint,
    ReplicaProfile,
    RequestPattern,
    bracket_values_at_batch,
    compute_mixed_steps,
    operating_point_at_batch,
)
from app.estimator.serving.replica_memory import (
    compute_memory_besides_cache,
    count_whole_requests_in_memory,
    describe_draft_model,
    expert_padding_bytes_per_gpu,
)
from app.estimator.serving.simulation import SimulationResult, quantile
from app.estimator.serving.step_time import (
    describe_acceptance,
    model_kind_for_engine,
    typed_or_usual_acceptance,
)
from app.estimator.units import (
    format_count,
    format_number,
    format_value,
    round_estimate_to_three_digits,
)


def build_load_and_simulation_tables(result: CapacityResult) -> tuple[ResultTable, ...]:
    """Return a replica by load, with a simulation next to it if requested."""
    if not result.fits_memory:
        return ()
    percentile, rows = result.inputs.percentile, dict[str, tuple[TableCell, ...]]()
    share, batch = SHARES[percentile], 1.0
    most = result.max_rate_batch
    while batch < 2 * most:
        point = operating_point_at_batch(result.replica_profile, min(batch, most), (share,))
        at_once = format_number(min(round(point.batch), int(result.replica_profile.max_batch)))
        rows[at_once] = (
            at_once,
            (point.requests_per_second, "request/s"),
            (point.ttft_by_share[share], "s"),
            (point.tpot_by_share[share], "s"),
        )
        batch *= 2
    latencies = (f"First token, {percentile}", f"Per token, {percentile}")
    columns = ("Requests at once", "Rate", *latencies)
    tables = [ResultTable("One replica by load", columns, tuple(rows.values()))]
    if result.simulation is not None and result.operating_point is not None:
        tables.append(_simulation_table(result.simulation, result.operating_point))
    return tuple(tables)


def _simulation_table(simulation: SimulationResult, operating_point: OperatingPoint) -> ResultTable:
    rows = []
    for name, share in SHARES.items():
        first, pace = quantile(simulation.ttft, share), quantile(simulation.tpot, share)
        rows.append(
            (
                name,
                (operating_point.ttft_by_share[share], "s"),
                (first or 0.0, "s"),
                (operating_point.tpot_by_share[share], "s"),
                (pace or 0.0, "s"),
            )
        )
    columns = (
        "Share",
        "First token, formula",
        "First token, simulated",
        "Per token, formula",
        "Per token, simulated",
    )
    return ResultTable("Formula and simulation", columns, tuple(rows))


_TOPIC = "batching-and-latency"
_STEPS = StepBuilder(OUTPUTS, _TOPIC)


def estimate(inputs: ServingCapacityInputs) -> Estimate:
    given, inputs = inputs, fill_in_formats_and_gpus(inputs)
    result = add_split_if_times_are_high(
        add_uncertainty_bounds(compute_capacity_relaxing_preset_tpot(inputs)),
        is_open=not given.tensor_parallel,
    )
    profile = result.replica_profile
    is_late = result.has_targets and not result.keeps_unrelaxed_targets
    return Estimate(
        name="serving-capacity",
        verdict=replace_verdict_if_context_exceeds_max(
            _build_verdict(result),
            inputs.prompt_tokens + inputs.output_tokens,
            profile.placed.model.max_context,
        ),
        figures=read_figures(OUTPUTS, result),
        steps=_build_steps(result),
        pictures=_build_latency_charts(result),
        tables=build_load_and_simulation_tables(result),
        notes=(
            *fp8_weight_only_notes(profile.placed.gpu, profile.placed.weight_format),
            *_build_notes(result),
            *(no_split_meets_targets_notes(given, profile.placed.setup.gpus) if is_late else ()),
            *split_chosen_notes(given, inputs),
            *requests_beyond_max_context_note(profile.placed.model, profile.request_pattern),
            *(() if result.fits_memory or inputs.engine != LLAMA_CPP else (_HOST_LAYERS,)),
            *rental_price_source_notes(profile.placed.gpu, inputs.cost_per_gpu_hour),
            real_capacity_note(profile.placed.gpu),
        ),
        changes=add_chosen_split_to_changes(given, inputs, find_verdict_changes(result)),
    )


_HOST_LAYERS = (
    "llama.cpp can keep layers in the memory of the host (-ngl), which is far slower: latency and "
    "inference-memory estimate that."
)


def no_split_meets_targets_notes(typed_inputs: Any, gpus: int) -> tuple[str, ...]:
    """Say which split is reported if none keeps the targets; `typed_inputs` may leave it open."""
    if typed_inputs.tensor_parallel or typed_inputs.decode_gpus:
        return ()
    closest = "1 GPU comes" if gpus == 1 else f"{gpus} GPUs come"
    return (f"No number of GPUs that share the model keeps the targets; {closest} closest.",)


def _describe_targets_missed_by_one_user(result: CapacityResult) -> str:
    """Say that one user alone misses the targets, and what would be met instead."""
    percentile = result.inputs.percentile
    preset = {f"{target.target}_target" for target in result.missed_targets if target.is_preset}
    late = [
        f"{change.label.removeprefix('Target: ')} {change.new_value}, not "
        f"{'the preset ' if change.field in preset else ''}{change.current_value}"
        for change in find_verdict_changes(result)
        if change.field.endswith("_target")
    ]
    text = "Even one user at a time gets answers later than the targets on this hardware"
    if not late:
        return f"{text}."
    return f"{text}: {', '.join(late)}, for {_REQUEST_SHARE_TEXT_BY_PERCENTILE[percentile]}."


_SHARE_LABELS = {"p50": "half of the", "p95": "95 of 100", "p99": "99 of 100"}
_REQUEST_SHARE_TEXT_BY_PERCENTILE = {
    "p50": "half of the requests",
    "p95": "95 of 100 requests, whose prompts vary in length",
    "p99": "99 of 100 requests, whose prompts vary in length",
}


def _build_verdict(result: CapacityResult) -> Verdict:
    if not result.fits_memory:
        return Verdict("no", "Does not fit.", _describe_what_fills_memory(result))
    if refusal := result.replica_profile.placed.load_refusal:
        return Verdict("no", "The engine refuses this layout.", refusal)
    if result.replicas is None:
        return Verdict("no", "Targets cannot be met.", _describe_targets_missed_by_one_user(result))
    copies = _describe_replicas_with_gpus(result)
    if result.operating_point is None:
        return Verdict("no", "Overloaded.", f"{copies} cannot keep up: queues grow.")
    decides = _describe_target_setting_replica_count(result)
    times = _describe_latencies(result, result.operating_point)
    counted = f"{_describe_relaxed_target(result)}{_describe_saturated_token_rate(result)}"
    slow = _describe_replicas_if_times_high(result)
    size = _describe_gpus_beyond_rack(result)
    text = f"{counted}{copies}{size}. {times}{decides}{slow}{_describe_tpot_at_other_acceptances(result)}"
    text = f"{text} {result.replica_profile.placed.published_fp8_warning}".strip()
    return _replace_verdict_if_vllm_refuses_start(
        _qualify_verdict_for_unsure_fit(_build_load_verdict(result, text), result), result
    )


def _qualify_verdict_for_unsure_fit(verdict: Verdict, result: CapacityResult) -> Verdict:
    """Return the verdict, or that the load may not fit, as inference-memory says of it."""
    unsure = result.unsure_memory_fit
    if unsure is None or not result.may_exceed_memory:
        return verdict
    said = memory_lacking_at_upper_bound_text(unsure.lacking_bytes)
    if unsure.surely_fitting_requests:
        held, asked = (
            format_number(count) for count in (unsure.surely_fitting_requests, unsure.requests)
        )
        said += f" A replica then holds {held} of {asked} requests; the others wait."
    text = f"{verdict.text} {said}"
    if not verdict.lead.startswith(("Meets", "Keeps")):
        return dataclasses.replace(verdict, text=text)
    what = "its requests" if unsure.surely_fitting_requests else "the model"
    met = "Meets the targets" if result.has_targets else "Keeps up; no targets are set"
    return Verdict("tight", f"{met}, but {what} may not fit.", text)


def _replace_verdict_if_vllm_refuses_start(verdict: Verdict, result: CapacityResult) -> Verdict:
    """Return the verdict, or that vLLM does not start the replicas that would serve the load."""
    refused = result.start_refusal
    if refused is None:
        return verdict
    text = f"{verdict.text} {refused.reason}"
    if verdict.status == "no":
        return dataclasses.replace(verdict, text=text)
    return Verdict("tight", "The model fits, but vLLM refuses to start.", text)


def _describe_relaxed_target(result: CapacityResult) -> str:
    """Say what counts instead of the preset target; empty if it counts."""
    if result.unrelaxed_preset_tpot is None:
        return ""
    preset, counted = (
        format_value(seconds, "s")
        for seconds in (result.unrelaxed_preset_tpot, result.inputs.tpot_target or 0.0)
    )
    return (
        f"Even one user at a time waits longer than the preset {preset} for each token; {counted} "
        "counts instead, 1.5 times what one request takes. "
    )


def _missed_preset_lead(result: CapacityResult) -> str:
    """Return that the preset target is missed, with what is reached."""
    (missed,) = result.missed_targets
    reached, limit = (
        format_value(seconds, "s") for seconds in (missed.reached_seconds, missed.limit_seconds)
    )
    return f"Slower than the preset target: {reached} per token, not {limit}."


def _describe_saturated_token_rate(result: CapacityResult) -> str:
    """Return the output of given replicas, saturated and at this load; empty with targets."""
    saturated, loaded = result.saturated_token_rate or 0.0, result.output_token_rate or 0.0
    if result.has_targets or not result.inputs.replicas or not 0 < loaded < saturated:
        return ""
    most, now = (
        format_value(round_estimate_to_three_digits(rate, "token/s"), "token/s")
        for rate in (saturated, loaded)
    )
    split = " with this split" if result.replica_profile.prefill_replica else ""
    return f"At most {most} of output{split}, when requests always wait; {now} at this load. "


def _describe_what_fills_memory(result: CapacityResult) -> str:
    """Return what takes the memory if nothing is left for a request."""
    placed, share = result.replica_profile.placed, result.inputs.memory_utilization
    stages = split_into_serving_stages(placed.model, placed.setup.pipeline_stages)
    parts = min(
        (compute_memory_besides_cache(placed, share, stage) for stage, _ in stages),
        key=lambda p: p.bytes_left_for_cache,
    )
    weights, outside, usable = (
        format_value(size, "B")
        for size in (parts.weight_bytes, parts.other_bytes, parts.usable_bytes)
    )
    padding = expert_padding_bytes_per_gpu(placed)
    padded = f", {format_value(padding, 'B')} of it padding" if padding else ""
    return (
        f"No room for a request is left on {placed.setup.gpus} {placed.gpu.name}: of the {usable} "
        f"that the engine may use on each, weights take {weights}{padded}, and its start-up and "
        f"libraries {outside}."
    )


def _describe_tpot_at_other_acceptances(result: CapacityResult) -> str:
    """Return the pace at other acceptances than the assumed one; empty without drafts."""
    inputs = result.inputs
    if not inputs.draft_tokens:
        return ""
    acceptance = typed_or_usual_acceptance(
        inputs.acceptance, result.replica_profile.placed.model, inputs.draft_tokens
    )
    paces = []
    for other in (acceptance.low, acceptance.high):
        changed = dataclasses.replace(inputs, acceptance=other)
        settled = operating_point_of_each_replica(
            changed, build_replica_profile(changed), result.replicas or 1
        )
        if settled is None:
            return ""
        paces.append(settled.tpot_by_share[SHARES[inputs.percentile]])
    return describe_acceptance(acceptance, inputs.draft_tokens, paces)


def _build_load_verdict(result: CapacityResult, text: str) -> Verdict:
    requests = _count_requests_if_some_wait(result)
    most_wait = (
        2 * (requests.concurrent_if_some_wait - requests.in_memory_if_some_wait)
        > requests.concurrent_if_some_wait
    )
    if not result.has_targets and result.meets_targets_of_inputs:
        return Verdict("fits", "Keeps up; no targets are set.", text)
    waits = bool(requests.concurrent_if_some_wait) and result.inputs.ttft_target is None
    if not result.keeps_unrelaxed_targets:
        if waits and not result.missed_targets:
            who = "most" if most_wait else "some"
            status: Status = "no" if most_wait else "tight"
            return Verdict(status, f"Too little memory: {who} requests wait.", text)
        if result.misses_only_preset_targets and not most_wait:
            return Verdict("tight", _missed_preset_lead(result), text)
        lead = "Too slow: most requests wait for memory." if most_wait else "Too slow."
        return Verdict("no", lead, text)
    is_close = (result.share_of_highest_load or 0.0) > 0.9
    status = "tight" if is_close else "fits"
    return Verdict(status, f"Meets the targets{', close to their limit' * is_close}.", text)


class ReplicaRequests(NamedTuple):
    """The requests of a replica, and those that its memory holds at a time; 0 if none wait."""

    concurrent_if_some_wait: int
    in_memory_if_some_wait: int


def _count_requests_if_some_wait(result: CapacityResult) -> ReplicaRequests:
    if not result.requests_waiting_for_memory_per_replica:
        return ReplicaRequests(0, 0)
    profile = result.replica_profile
    return ReplicaRequests(
        round(result.users_per_replica),
        count_whole_requests_in_memory(
            profile.placed, profile.batch_of_users(result.users_per_replica)
        ),
    )


def _describe_replicas_with_gpus(result: CapacityResult) -> str:
    """Return the replicas with their GPUs, spare ones included."""
    inputs = result.inputs
    noun = "decode replica" if result.replica_profile.prefill_replica else "replica"
    gpu = result.replica_profile.placed.gpu.name
    text = f"{format_count(result.replicas or 0, noun)} of {build_serving_setup(inputs).gpus} {gpu}"
    if result.prefill_replicas and result.replica_profile.prefill_replica:
        of_each = result.replica_profile.prefill_replica.placed.setup.gpus
        text += f" and {format_count(result.prefill_replicas, 'prefill replica')} of {of_each}"
    if inputs.spare:
        whole = format_value(result.gpus, "GPU")
        kinds = " of both" if result.replica_profile.prefill_replica else ""
        text += f" and {format_number(inputs.spare)} spare{kinds}, {whole} in all"
    return text


def _describe_gpus_beyond_rack(result: CapacityResult) -> str:
    """Return that prefill and decode apart do not fit in one rack, if they do not."""
    rack = result.replica_profile.placed.fabric.gpus_per_domain
    if not result.replica_profile.prefill_replica or not (result.gpus or 0) > rack >= RACK_GPUS:
        return ""
    whole = "" if result.inputs.spare else f" {format_value(result.gpus, 'GPU')} in all,"
    return f",{whole} more than the {rack} of one rack"


def _describe_target_setting_replica_count(result: CapacityResult) -> str:
    """Return a sentence on the target that the replicas follow from; empty if from none."""
    inputs, kind = result.inputs, result.target_setting_replica_count
    if kind is None:
        return ""
    limit = format_value(getattr(inputs, f"{kind}_target"), "s")
    target = f"{limit} per token" if kind == "tpot" else f"{limit} for the first token"
    is_preset = kind == "tpot" and inputs.tpot_target == PRESET_TPOT
    preset = "preset " if is_preset else ""
    fewer = _count_fewer_replicas_without_tpot_target(result) if is_preset else None
    if fewer:
        return f" Without the preset target of {target}, {format_count(fewer, 'replica')} would do."
    return f" The {preset}target of {target} decides how many replicas it takes."


def _count_fewer_replicas_without_tpot_target(result: CapacityResult) -> int | None:
    """Return the replicas without a target per token; None if as many, or if none are enough."""
    inputs = dataclasses.replace(result.inputs, tpot_target=None, simulate=False)
    free = compute_capacity(inputs, result.replica_profile)
    is_fewer = free.replicas and free.replicas < (result.replicas or 0)
    return free.replicas if is_fewer else None


def _describe_replicas_if_times_high(result: CapacityResult) -> str:
    """Return how many replicas it takes at the slow end of all times, if that is many more."""
    bounds, replicas = result.replica_bounds, result.replicas or 0
    if bounds is None or not result.meets_targets_of_inputs:
        return ""
    most = bounds.if_times_are_high
    if most is not None and most < MANY_MORE * replicas:
        return ""
    needed = "no number of replicas keeps the targets"
    if most is not None:
        needed = f"it takes {format_count(most, 'replica')}"
    if split := result.split_if_times_are_high:
        needed += (
            f", but {_describe_replicas_and_model_split(split)} would do, "
            f"{format_value(split.gpus, 'GPU')} in all"
        )
    without = _count_replicas_without_preset_if_times_high(result)
    if without is not None and (most is None or without < most):
        enough = format_count(without, "replica")
        would_do = f"still {enough}" if without == replicas else f"{enough} would do"
        needed += f"; without the preset target per token, {would_do}"
    return f" At the slow end of the range of times, {needed}."


def _describe_replicas_and_model_split(split: CapacityResult) -> str:
    setup = build_serving_setup(split.inputs)
    how = ""
    if setup.gpus > 1 and model_kind_for_engine(split.replica_profile.placed.model) == "latent":
        is_spread = setup.attention_replicas > 1
        how = f" with {'attention data parallel' if is_spread else 'tensor parallelism'}"
    return f"{format_count(split.replicas or 0, 'replica')} of {setup.gpus}{how}"


def _count_replicas_without_preset_if_times_high(result: CapacityResult) -> int | None:
    """Return the replicas at the slow end without a target per token; None if none is preset."""
    if result.inputs.tpot_target != PRESET_TPOT:
        return None
    inputs = dataclasses.replace(result.inputs, tpot_target=None, simulate=False)
    free = add_uncertainty_bounds(compute_capacity(inputs, result.replica_profile))
    return free.replica_bounds.if_times_are_high if free.replica_bounds else None


def _describe_latencies(result: CapacityResult, operating_point: OperatingPoint) -> str:
    """Return what users see: the first token, the pace, and whether requests wait for memory."""
    percentile = result.inputs.percentile
    first, each = (
        format_value(seconds_by_share[SHARES[percentile]], "s")
        for seconds_by_share in (operating_point.ttft_by_share, operating_point.tpot_by_share)
    )
    who = f"{_SHARE_LABELS[percentile]} requests".capitalize()
    text = f"{who} get their first token within {first}, then one every {each} on average."
    if result.requests_waiting_for_memory_per_replica:
        requests = _count_requests_if_some_wait(result)
        text += (
            f" The memory of a replica holds {format_number(requests.in_memory_if_some_wait)} of "
            f"{format_number(requests.concurrent_if_some_wait)} "
            f"requests with a cache in {result.inputs.cache.upper()}; the others wait until one "
            "leaves."
        )
    return text


def _build_steps(result: CapacityResult) -> tuple[FormulaStep, ...]:
    profile = result.replica_profile
    batch = result.operating_point.batch if result.operating_point else 1.0
    timed = profile.timing_at_batch(batch)
    queued = profile.request_pattern.has_open_arrivals and profile.prefill_replica is None
    first = "first token without a queue" if queued else "time to first token"
    steps = [
        FormulaStep(
            "One decoding step",
            "computed for some numbers of requests; interpolated between the two nearest",
            _interpolation_formula(profile.decode_step_seconds_by_batch, timed.batch_per_group),
            timed.step_seconds,
            "s",
            "pope-2022",
            _TOPIC,
        ),
        *_prompt_time_formula_steps(profile, timed, batch),
        *_time_per_token_steps(profile, timed),
        FormulaStep(
            "Requests per second of a replica",
            f"requests at once ÷ ({first} + tokens of an answer × time per token)",
            f"{format_term(batch)} ÷ ({format_term(profile.median_ttft_at_batch(batch), 's')} + "
            f"{format_term(result.inputs.output_tokens)} × "
            f"{format_term(profile.tpot_at_batch(batch), 's')})",
            profile.request_rate_at_batch(batch),
            "request/s",
            "little-1961",
            _TOPIC,
        ),
    ]
    if result.highest_load_point is not None and result.replicas is not None:
        steps.append(_replica_count_step(result, result.highest_load_point))
    return tuple(steps)


def _prompt_time_formula_steps(
    profile: ReplicaProfile, timing: BatchTiming, batch: float
) -> tuple[FormulaStep, ...]:
    """Return the step for what a prompt adds, or for the first token of prompts read apart."""
    prefill = profile.prefill_replica
    if prefill is None:
        return (
            FormulaStep(
                "What a prompt adds",
                "step with a prompt − step without one; interpolated in the same way",
                _interpolation_formula(
                    profile.added_prompt_seconds_by_batch, timing.batch_per_group
                ),
                timing.added_prompt_seconds,
                "s",
                "inferencex",
                _TOPIC,
            ),
        )
    arrivals = profile.other_prefill_prompts_per_second(batch, profile.request_rate_at_batch(batch))
    wait = prefill.prefill_wait_quantile(0.5, arrivals)
    rest, own = (format_term(seconds, "s") for seconds in wait)
    front = format_term(prefill.placed.seconds_before_prompt, "s")
    waits = profile.placed.shared_constants.extra_steps_before_first_token
    formula = "time to reach the engine + rest of a step + own step + transfer + decoding steps"
    numbers = (
        f"{front} + {rest} + {own} + {format_term(prefill.transfer_seconds, 's')} + "
        f"{format_term(waits)} × {format_term(timing.step_seconds, 's')}"
    )
    value = prefill.cache_arrival_time_quantile(0.5, arrivals) + waits * timing.step_seconds
    return (FormulaStep("First token", formula, numbers, value, "s", "lmsys-split", _TOPIC),)


def _time_per_token_steps(profile: ReplicaProfile, timing: BatchTiming) -> tuple[FormulaStep, ...]:
    """Return the steps for engine steps with and without prompts, and the time per token."""
    step, cost = (
        format_term(timing.step_seconds, "s"),
        format_term(timing.added_prompt_seconds, "s"),
    )
    prompts, kept = profile.mean_other_prompts_per_step(timing), profile.tokens_per_step
    each = format_term(prompts)
    share, mixed = compute_mixed_steps(timing, prompts)
    value = profile.time_per_token(timing)
    if profile.prefill_replica:
        return (
            _time_per_token_step(
                "step", format_term(timing.cuda_graph_step_seconds, "s"), value, kept
            ),
        )
    if timing.cuda_graph_step_seconds == timing.step_seconds and (
        timing.batch_per_group == 1 or mixed > timing.min_mixed_step_seconds
    ):
        simple = f"{step} + {each} × {cost}"
        formula = "step + prompts of others per step × what a prompt adds"
        return (
            _prompts_per_step_formula_step(profile, timing, prompts),
            _time_per_token_step(formula, simple, value, kept),
        )
    at_once = f"{each} ÷ {format_term(share)}"
    filled = profile.placed.engine.pad_to_cuda_graph_batch(timing.batch_per_group)
    full = profile.timing_at_batch(filled * profile.concurrent_batches).step_seconds
    rows = (
        (
            "Steps that read prompts too",
            "1 − e^(−prompts of others per step)",
            f"1 − exp(−{each})",
            share,
            "",
        ),
        (
            "Such a step",
            "step + prompts ÷ share of steps × prompt, or longer launches",
            f"max({step} + {at_once} × {cost}, {format_term(timing.min_mixed_step_seconds, 's')})",
            mixed,
            "s",
        ),
        (
            "Another step",
            f"step of {format_number(filled)} requests − those that are not there",
            f"{format_term(full, 's')} − {format_term(full - timing.cuda_graph_step_seconds, 's')}",
            timing.cuda_graph_step_seconds,
            "s",
        ),
    )
    lines = [FormulaStep(*row, "inferencex", _TOPIC) for row in rows]
    part, alone = format_term(share), format_term(timing.cuda_graph_step_seconds, "s")
    both = f"{part} × {format_term(mixed, 's')} + (1 − {part}) × {alone}"
    formula = "share × such a step + (1 − share) × another step"
    first = _prompts_per_step_formula_step(profile, timing, prompts)
    return first, *lines, _time_per_token_step(formula, both, value, kept)


def _prompts_per_step_formula_step(
    profile: ReplicaProfile, timing: BatchTiming, prompts: float
) -> FormulaStep:
    formula = "(requests − 1) ÷ steps of an answer"
    numbers = f"{format_term(timing.batch_per_group - 1)} ÷ {format_term(profile.steps_per_answer)}"
    if profile.request_pattern.has_open_arrivals:
        rate = profile.request_rate_at_batch(timing.batch_per_group * profile.concurrent_batches)
        step = format_term(profile.time_per_token(timing) * profile.tokens_per_step, "s")
        formula = "requests per second × mean time of a step"
        numbers = f"{format_term(rate / profile.concurrent_batches, 'request/s')} × {step}"
    return FormulaStep(
        "Prompts of others per step", formula, numbers, prompts, "", "little-1961", _TOPIC
    )


def _time_per_token_step(
    formula: str, numbers: str, value: float, tokens_per_step: float
) -> FormulaStep:
    """Return the line of the time per token; with speculation a step yields several."""
    if tokens_per_step > 1:
        formula, numbers = (
            f"({formula}) ÷ tokens kept",
            f"({numbers}) ÷ {format_term(tokens_per_step)}",
        )
    return _STEPS.build_step("tpot_p50", formula, numbers, value, "inferencex")


def _interpolation_formula(values: tuple[float, ...], batch: float) -> str:
    bracket = bracket_values_at_batch(values, batch)
    low, high = format_term(bracket.below, "s"), format_term(bracket.above, "s")
    return f"{low} + {format_term(bracket.fraction)} × ({high} − {low})"


def _replica_count_step(result: CapacityResult, highest_point: OperatingPoint) -> FormulaStep:
    inputs = result.inputs
    if inputs.requests_per_second is not None:
        formula = "rate × peak factor ÷ highest rate of one replica, rounded up"
        load, most = inputs.requests_per_second, highest_point.requests_per_second
    else:
        formula = "users × peak factor ÷ users that one replica can serve, rounded up"
        load, most = float(inputs.concurrent), highest_point.batch
    numbers = f"⌈{format_term(load)} × {format_term(inputs.peak)} ÷ "
    return _STEPS.build_step(
        "replicas",
        "as you set it" if inputs.replicas else formula,
        format_term(inputs.replicas) if inputs.replicas else f"{numbers}{format_term(most)}⌉",
        result.replicas or 0,
        "little-1961",
    )


def _build_latency_charts(result: CapacityResult) -> tuple[Chart, ...]:
    inputs = result.inputs
    if not result.fits_memory:
        return ()
    share, top = SHARES[inputs.percentile], result.max_rate_batch
    first, each = [], []
    batches = [max(1.0, top * (part / 20) ** 2) for part in range(1, 21)]
    if result.requests_waiting_for_memory_per_replica:  # The wait grows up to this load.
        users = result.users_per_replica
        batches += [top + (users - top) * part / 5 for part in range(1, 6)]
    for batch in batches:
        settled = operating_point_at_batch(result.replica_profile, batch, (share,))
        first.append((settled.requests_per_second, settled.ttft_by_share[share]))
        whole = settled.ttft_by_share[share] + settled.tpot_by_share[share] * inputs.output_tokens
        each.append((settled.requests_per_second, whole))
    lines = [ChartLine("First token", tuple(first)), ChartLine("Whole answer", tuple(each), "dash")]
    if result.operating_point is not None:
        here = (
            result.operating_point.requests_per_second,
            result.operating_point.ttft_by_share[share],
        )
        lines.append(ChartLine("First token at this load", (here,), "mark"))
    return (
        Chart(
            "Latency against load of one replica",
            "Requests per second",
            f"Time, {inputs.percentile}",
            "request/s",
            "s",
            tuple(lines),
            y_log=True,
        ),
    )


def _replicas_behind_ranges_notes(result: CapacityResult) -> list[str]:
    """Return with how many replicas each range holds, if times decide how many it takes."""
    bounds = result.replica_bounds
    if bounds is None or not result.plausible_loads:
        return []
    low, high = (
        format_number(count or 0) for count in (bounds.if_times_are_low, bounds.if_times_are_high)
    )
    replicas = format_count(result.replicas or 0, "replica")
    if (split := result.split_if_times_are_high) and result.is_split_open:
        high = _describe_replicas_and_model_split(split)
    note = (
        f"The ranges of latency and of the highest rates assume {replicas}. Those of GPUs, "
        f"throughput and cost assume as many as the targets then take, from {low} to {high}."
    )
    return [note]


# docs.vllm.ai/en/latest/serving/expert_parallel_deployment and
# docs.sglang.io/advanced_features/expert_parallelism.html. DECISIONS.md, 57, says what the rates of
# products rest on.
_ALL_GATHER_NOTE = (
    "Each GPU gets all tokens, as by default in vLLM (--all2all-backend allgather_reducescatter) and "
    "SGLang (--moe-a2a-backend none), and products of experts are as fast as in the measured runs of "
    "such servers. With prefill and decode apart, DeepEP is assumed, with faster products: a part of "
    "the difference is due to these kernels, not to the split."
)
_DEEPEP_NOTE = (
    "That is DeepEP (--all2all-backend deepep_high_throughput and deepep_low_latency in vLLM), with "
    "products of experts as fast as one product. Together on the same GPUs the engines' defaults "
    "are assumed, which send all tokens to each GPU and have slower products: a part of the "
    "difference is due to these kernels, not to the split."
)


def _prefill_decode_notes(result: CapacityResult) -> list[str]:
    """Return how prefill and decode apart are computed, or where they usually are apart."""
    profile = result.replica_profile
    prefill, placed = profile.prefill_replica, profile.placed
    routed = placed.model.is_routed
    if prefill is None:
        together = []
        if routed and placed.fabric.gpus_per_domain >= RACK_GPUS:
            together.append(
                f"In a rack of {placed.fabric.gpus_per_domain} linked GPUs, mixtures of experts are usually "
                "served with prefill and decode apart, for example on 8 and on 48 GPUs."
            )
        if routed and placed.setup.attention_replicas > 1:
            together.append(_ALL_GATHER_NOTE)
        if routed:
            parts = placed.setup.expert_parallel
            together += redundant_experts_note(placed.model, parts, placed.engine.id)
        return together
    share = format_value(PREFILL_LOAD, "%")
    notes = [
        (
            f"A prefill replica reads at most {share} of what full steps would. A prompt waits for "
            "the step under way, if there is one, for its own, which reads all that arrived in the "
            "meantime, and for the transfer of its cache, which starts after that."
        )
    ]
    if result.prefill_replicas:
        read = format_value(result.max_prefill_request_rate, "request/s")
        count = format_number(result.prefill_replicas)
        replicas = "replica reads" if result.prefill_replicas == 1 else "replicas read"
        notes.append(
            f"The {count} prefill {replicas} at most {read}; more requests need more of them, "
            f"each of {format_count(prefill.placed.setup.gpus, 'GPU')}."
        )
    if routed:
        notes.append(
            "Each GPU has the whole of attention, its own requests and a part of the experts. "
            "Tokens go to their experts in FP8 and back in BF16, and nothing overlaps."
        )
        notes.append(_DEEPEP_NOTE)
        for gpus in sorted({prefill.placed.setup.gpus, placed.setup.gpus}):
            notes += redundant_experts_note(placed.model, gpus, placed.engine.id)
    return notes


def _build_notes(result: CapacityResult) -> list[str]:
    inputs, placed = result.inputs, result.replica_profile.placed
    label, front = placed.engine.label, format_value(placed.seconds_before_prompt, "s")
    notes = [
        result.measurements.note,
        f"{label}: {front} pass until a request reaches the engine and its prompt is launched.",
        (
            "Requests arrive at random, and the users at once do not count; bursts beyond that "
            "need the peak factor."
            if inputs.requests_per_second is not None
            else "Each user asks again once answered; bursts beyond that need the peak factor."
        ),
    ]
    if result.replica_profile.prefill_replica is None:
        median = inputs.prompt_tokens / math.sqrt(1 + inputs.prompt_variation)
        idle = format_value(result.replica_profile.idle_median_ttft, "s")
        notes.append(
            f"Half of the prompts have at most {format_count(round(median), 'token')}; without "
            f"load, the first token takes {idle} for such a prompt."
            if inputs.prompt_variation
            else f"Without load, the first token takes {idle}."
        )
    if inputs.spare:
        copies = "replica is" if inputs.spare == 1 else "replicas are"
        notes.append(f"{inputs.spare} spare {copies} counted in GPUs, nodes and cost.")
    if inputs.pipeline_parallel > 1:
        notes.append(
            f"Requests are divided into {inputs.pipeline_parallel} batches, one for each stage, "
            "so that all stages work; a stage that waits for another is not counted."
        )
    notes += _replicas_behind_ranges_notes(result) + _prefill_decode_notes(result)
    if inputs.draft_tokens:
        kept = format_count(result.replica_profile.tokens_per_step, "token")
        notes.append(f"Each step keeps {kept}; an answer takes fewer steps by that.")
        notes.append(describe_draft_model(placed))
    if inputs.cached_share:
        notes.append("Prompts that are cached save reading; their memory is counted whole.")
    if any(
        layer.state_elements and layer.mixer.kind != "attention"
        for layer, _ in placed.model.layer_counts
    ):
        notes.append(
            "Attention and recurrent layers cache in blocks of one size, and a request keeps one "
            "state of each recurrent layer, and one more for each drafted token. vLLM frees "
            "states that prefix caching stored when requests need their blocks; the concurrency "
            "in its log at startup counts one more for each request."
            if placed.engine.caches_hybrids_in_blocks
            else "One state of each recurrent layer is counted for a request. Prefix caching may "
            "keep more, so that fewer requests fit."
        )
    if result.requests_waiting_for_memory_per_replica:
        requests = _count_requests_if_some_wait(result)
        waiting = format_number(requests.concurrent_if_some_wait - requests.in_memory_if_some_wait)
        notes.append(f"{waiting} requests of a replica wait until others leave the memory.")
    if not (inputs.prompt_variation or inputs.answer_variation or inputs.requests_per_second):
        notes.append(
            "Lengths that are all alike keep the requests in step, as in a benchmark: they come "
            "at the same time and wait for each other. Where lengths vary, they soon do not."
        )
    if result.simulation is not None:
        served = format_number(result.simulation.requests_per_second)
        notes.append(f"The simulated replica served {served} requests/s.")
    return notes


def requests_beyond_max_context_note(
    model: Architecture, pattern: RequestPattern
) -> tuple[str, ...]:
    """Return a note on requests that are longer than the model takes, if the mean one is not."""
    lengths, most = pattern.mean_lengths, model.max_context
    if most is None or lengths.prompt_tokens + lengths.answer_tokens > most:
        return ()
    share = pattern.share_longer_than(most)
    note = (
        f"With this variation, {round(100 * share)}% of the requests are longer than the model's "
        f"{format_value(most, 'token')}; an engine refuses those."
    )
    return (note,) if share >= 0.01 else ()


def split_chosen_notes(typed: Any, chosen: ServingCapacityInputs) -> tuple[str, ...]:
    """Return a note on how attention and experts are divided, if that was left open."""
    gpus = chosen.attention_parallel
    if gpus != typed.attention_parallel:
        note = (
            f"Attention is data parallel over the {gpus} GPUs of a replica, which divide the experts "
            f"(--data-parallel-size {gpus} --enable-expert-parallel in vLLM): tensor parallelism keeps "
            "the whole latent cache on each GPU."
        )
        return (note,)
    return expert_parallel_required_note(typed.expert_parallel, chosen.expert_parallel)


def expert_parallel_required_note(typed_parts: int, counted_parts: int) -> tuple[str, ...]:
    """Return a note on experts that are divided whole because engines load them only so."""
    if counted_parts == typed_parts:
        return ()
    note = (
        f"Experts are divided whole over {counted_parts} GPUs (--enable-expert-parallel in vLLM): engines "
        "do not load parts of these as they are published."
    )
    return (note,)


ENTRY = EstimateSpec(
    name="serving-capacity",
    title="Serving capacity",
    summary="From users and latency targets to replicas, GPUs, nodes and cost.",
    group="Serving",
    inputs_type=ServingCapacityInputs,
    compute_estimate=estimate,
    outputs=OUTPUTS,
    most_important_outputs=("gpus", "throughput", "cost_per_million_tokens"),
    main_inputs=("model", "gpu", "concurrent"),
    topic=_TOPIC,
    is_search=True,
)
