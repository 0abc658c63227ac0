"""`serving-capacity`: its outputs, with the ranges of what they rest on."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from app.estimator.data_files import (
    error_bounds_around,
    rate_with_error_range,
    time_with_error_range,
)
from app.estimator.estimates.serving_capacity import (
    SHARES,
    CapacityResult,
    CountBounds,
    ServedLoad,
    ServingCapacityInputs,
    build_latency_targets,
    build_replica_profile,
    compute_capacity,
    count_fewest_replicas,
    list_splits_to_try,
    operating_point_of_each_replica,
)
from app.estimator.hardware.prices import UNKNOWN, typed_or_list_price_per_hour
from app.estimator.result import (
    Better,
    Bounds,
    ModeledOutput,
    OutputSpec,
    OutputValue,
    value_with_range_over,
)
from app.estimator.serving.replica import (
    LatencyTargets,
    OperatingPoint,
    highest_load_within_targets,
    relaxed_target_seconds,
)
from app.estimator.serving.replica_memory import (
    count_whole_requests_in_memory,
    max_sequences_that_surely_fit,
)
from app.estimator.training.run_costs import usd_per_million_tokens
from app.estimator.units import format_number, format_value

_HOURS_PER_MONTH = 730.5


def compute_capacity_relaxing_preset_tpot(inputs: ServingCapacityInputs) -> CapacityResult:
    """Return the capacity; with a preset target that even one request misses, relaxed.

    A target that nobody set refuses no hardware. Instead of it counts 1.5 times what one request
    takes: at just that time, each replica would answer one at a time.
    """
    profile = build_replica_profile(inputs)
    result = compute_capacity(inputs, profile)
    if inputs.replicas or not (
        result.point_of_single_request and result.misses_only_preset_targets
    ):
        return result
    (missed,) = result.missed_targets
    relaxed = dataclasses.replace(
        inputs, tpot_target=relaxed_target_seconds(missed.reached_seconds)
    )
    return dataclasses.replace(
        compute_capacity(relaxed, profile), unrelaxed_preset_tpot=missed.limit_seconds
    )


def add_uncertainty_bounds(result: CapacityResult) -> CapacityResult:
    """Return a result with its bounds: all times are at the low or the high end of their range.

    One uncertainty counts, that of times. Near the time of a step that only reads weights, a
    few percent of it are many requests, so that a range of replicas is wider than one of times.
    """
    inputs, profile = result.inputs, result.replica_profile
    if result.replicas is None or profile.prefill_replica or not result.fits_memory:
        return result
    shortest, longest = error_bounds_around(result.measurements.error_interval_name("tpot"), 1.0)
    least, most = (
        _highest_load_if_times_scale(result, longer, result.max_rate_batch)
        for longer in (shortest, longest)
    )
    few_longest = error_bounds_around(tpot_error_interval_name(result, 1.0), 1.0)[1]
    if few_longest < longest and (most is None or most.batch < FEW_REQUESTS):
        longest = few_longest
        most = _highest_load_if_times_scale(
            result, longest, min(FEW_REQUESTS, result.max_rate_batch)
        )
    counts = CountBounds(count_fewest_replicas(inputs, least), count_fewest_replicas(inputs, most))
    loads = None
    if result.operating_point and least and most:
        rate, is_given = result.operating_point.requests_per_second, inputs.requests_per_second
        low, high = (rate, rate) if is_given else (rate / shortest, rate / longest)
        loads = Bounds(low / least.requests_per_second, high / most.requests_per_second)
    if inputs.replicas:
        return dataclasses.replace(result, load_bounds=loads)
    return dataclasses.replace(
        result,
        replica_bounds=counts,
        load_bounds=loads,
        plausible_loads=_find_plausible_loads(result, counts, Bounds(shortest, longest)),
    )


MANY_MORE = 2
"""Times the replicas, from which more of them belong in the verdict."""


def add_split_if_times_are_high(result: CapacityResult, *, is_open: bool) -> CapacityResult:
    """Return a result with the split that is better if all times are long, and take many replicas.

    Where the split was left open, nobody would keep the other one then: the loads are with it.
    """
    bounds, replicas = result.replica_bounds, result.replicas or 0
    if bounds is None or not result.meets_targets_of_inputs:
        return result
    most = bounds.if_times_are_high
    if most is not None and most < MANY_MORE * replicas:
        return result
    split = _find_best_split_if_times_are_high(result)
    if split is None:
        return result
    result = dataclasses.replace(result, split_if_times_are_high=split, is_split_open=is_open)
    loads = [load for load in result.plausible_loads if load.gpus != result.gpus_if_times_are_high]
    if not is_open or not loads:
        return result
    loads += _find_loads_if_times_are_high(split)
    return dataclasses.replace(result, plausible_loads=tuple(loads))


def _find_loads_if_times_are_high(split: CapacityResult) -> list[ServedLoad]:
    """Return the loads with all GPUs of a split whose replicas are those of the slow end."""
    loads = [load for load in split.plausible_loads if load.gpus == split.gpus]
    if loads or not split.request_rate:
        return loads
    longest = error_bounds_around(split.measurements.error_interval_name("tpot"), 1.0)[1]
    return [ServedLoad(split.gpus or 0, split.request_rate / longest)]


def _find_best_split_if_times_are_high(result: CapacityResult) -> CapacityResult | None:
    """Return the result with as many GPUs per replica as take fewest if all times are long.

    Its replicas are those of the slow end. None if this split takes no more, or none is enough.
    """
    inputs = result.inputs
    groups = inputs.attention_parallel
    if inputs.tensor_parallel == 1 and groups == inputs.expert_parallel > 1:
        inputs = dataclasses.replace(inputs, attention_parallel=1, expert_parallel=1)
    if inputs.decode_gpus or inputs.expert_tensor_parallel or inputs.expert_parallel > 1:
        return None
    tried = []
    for split in list_splits_to_try(inputs):
        other = add_uncertainty_bounds(compute_capacity(split, build_replica_profile(split)))
        if other.meets_targets_of_inputs and other.replica_bounds:
            most = other.replica_bounds.if_times_are_high
            tried.append(dataclasses.replace(other, replicas=most))
    enough = [other for other in tried if other.gpus is not None]
    best = min(enough, key=lambda other: other.gpus or 0, default=None)
    if best is None or (best.gpus or 0) >= (result.gpus_if_times_are_high or math.inf):
        return None
    return best


def _find_plausible_loads(
    result: CapacityResult, counts: CountBounds, time_factors: Bounds
) -> tuple[ServedLoad, ...]:
    """Return what is served by as many replicas as it takes if all times are longer or shorter.

    Each number of replicas is the one for times between those for which one replica fewer would do,
    and the longest with which these do: its ends, where the fewest, the counted and the most
    replicas serve.
    """
    if (
        counts.if_times_are_low is None
        or counts.if_times_are_high is None
        or counts.if_times_are_low == counts.if_times_are_high
    ):
        return ()
    loads = []
    for replicas in sorted(
        {
            counts.if_times_are_low,
            result.replicas or counts.if_times_are_low,
            counts.if_times_are_high,
        }
    ):
        point = operating_point_of_each_replica(result.inputs, result.replica_profile, replicas)
        if point is None:
            continue
        shortest, longest = time_factors
        if replicas > counts.if_times_are_low:
            shortest = _max_time_factor_within_targets(result, replicas - 1, time_factors)
        if replicas < counts.if_times_are_high:
            longest = _max_time_factor_within_targets(result, replicas, time_factors)
        rate = point.requests_per_second * replicas
        gpus = dataclasses.replace(result, replicas=replicas).gpus or 0
        loads += [ServedLoad(gpus, rate / factor) for factor in (shortest, longest)]
    return tuple(loads)


def _max_time_factor_within_targets(
    result: CapacityResult, replicas: int, time_factors: Bounds
) -> float:
    """Return how many times as long all times may be for `replicas` to keep the targets."""
    point = operating_point_of_each_replica(result.inputs, result.replica_profile, replicas)
    if point is None or result.is_overfilled_at(point, replicas):
        return time_factors.low
    targets = build_latency_targets(result.inputs)
    factors = [
        limit / times[targets.request_share]
        for limit, times in (
            (targets.ttft, point.ttft_by_share),
            (targets.tpot, point.tpot_by_share),
        )
        if limit is not None
    ]
    return min(max(min(factors, default=time_factors.high), time_factors.low), time_factors.high)


def _highest_load_if_times_scale(
    result: CapacityResult, time_factor: float, max_batch: float
) -> OperatingPoint | None:
    """Return the highest load within the targets if all times are `time_factor` times the estimate."""
    targets = build_latency_targets(result.inputs)
    scaled = LatencyTargets(
        targets.request_share,
        targets.ttft and targets.ttft / time_factor,
        targets.tpot and targets.tpot / time_factor,
    )
    top = highest_load_within_targets(result.replica_profile, scaled, max_batch)
    return top and dataclasses.replace(
        top, requests_per_second=top.requests_per_second / time_factor
    )


FEW_REQUESTS = 8.0
"""Requests of a replica below which its time per token is known better."""


def tpot_error_interval_name(result: CapacityResult, batch: float) -> str:
    """Return the error interval of the time per token with `batch` requests in a replica.

    Most of the error comes from how prompts and many sequences slow a step down, so that 97% of
    the measurements with fewer than 8 requests lie within the narrower one. Nothing is known
    of that where nothing like it was measured.
    """
    name = result.measurements.error_interval_name("tpot")
    return f"{name}-few" if name == "tpot" and batch < FEW_REQUESTS else name


def _value_if_served(value: float | None) -> OutputValue:
    """Return a value that exists only if the load can be served."""
    if value is None:
        return OutputValue(None, note="No load settles.", applies=False)
    return OutputValue(value)


def _replica_dependent_output(
    name: str, label: str, unit: str = "", better: Better = ""
) -> OutputSpec[CapacityResult]:
    """Declare a count or cost that grows with the replicas, with the range of these."""

    def read(result: CapacityResult) -> OutputValue:
        return _count_value_with_bounds(result, name)

    return ModeledOutput(name, label, unit, better, read)


def _rate_at_load_output(
    name: str,
    label: str,
    unit: str,
    read: Callable[[CapacityResult], float | None],
) -> OutputSpec[CapacityResult]:

    def read_rate(result: CapacityResult) -> OutputValue:
        value = read(result)
        if value is None:
            return _value_if_served(None)
        if result.inputs.requests_per_second:
            return OutputValue(value, note="As it arrives.")
        if result.plausible_loads and result.request_rate:
            each = value / result.request_rate
            loads = result.plausible_loads
            return value_with_range_over(value, (each * load.requests_per_second for load in loads))
        return rate_with_error_range(result.measurements.error_interval_name("throughput"), value)

    return ModeledOutput(name, label, unit, "more", read_rate)


def _latency_output(
    ttft_or_tpot: str, label: str, percentile: str, request_share: float
) -> OutputSpec[CapacityResult]:
    """Declare a percentile of a latency [s]; `ttft_or_tpot` is ttft or tpot."""

    def read(result: CapacityResult) -> OutputValue:
        if result.operating_point is None:
            return _value_if_served(None)
        value = getattr(result.operating_point, f"{ttft_or_tpot}_by_share")[request_share]
        name = result.measurements.error_interval_name(ttft_or_tpot)
        if ttft_or_tpot == "tpot":
            name = tpot_error_interval_name(result, result.operating_point.batch)
            return time_with_error_range(name, value)
        ranged = time_with_error_range(name, value)
        apart = value - result.operating_point.synchronized_prompts_seconds
        if ranged.low is None or ranged.low <= apart:
            return ranged
        note = "At the low end, requests of equal lengths do not start together."
        return dataclasses.replace(ranged, low=apart, note=note if percentile == "p50" else "")

    return ModeledOutput(f"{ttft_or_tpot}_{percentile}", f"{percentile} {label}", "s", "less", read)


_SHARED_GPUS_NOTE = "Prefill and decode are on the same GPUs."


def _prefill_replicas(result: CapacityResult) -> OutputValue:
    if result.replica_profile.prefill_replica is None:
        return OutputValue(None, note=_SHARED_GPUS_NOTE, applies=False)
    return dataclasses.replace(_value_if_served(result.prefill_replicas), unbounded=True)


def _cache_transfer_time(result: CapacityResult) -> OutputValue:
    if result.replica_profile.prefill_replica is None:
        return OutputValue(None, note=_SHARED_GPUS_NOTE, applies=False)
    return time_with_error_range(
        "collective", result.replica_profile.prefill_replica.transfer_seconds
    )


_WAITING_REQUESTS_NOTE = "Requests wait for memory."


def _meets_targets(result: CapacityResult) -> OutputValue:
    if result.replica_profile.placed.load_refusal:
        return OutputValue(False, note="The engine does not load it.")
    if result.has_targets and result.only_waits_for_memory:
        return OutputValue(False, note=_WAITING_REQUESTS_NOTE)
    if result.has_targets:
        verb = "meets" if result.keeps_unrelaxed_targets else "misses"
        which = "preset target" if result.misses_only_preset_targets else "targets"
        condition = ", if the requests fit" * (verb == "meets" and result.may_exceed_memory)
        note = f"It {verb} the {which}{condition}."
        return OutputValue(result.keeps_unrelaxed_targets, note=note)
    waits = "no request waits" if result.meets_targets_of_inputs else "requests wait"
    if result.meets_targets_of_inputs and result.may_exceed_memory:
        waits = "if the requests fit, none waits"
    return OutputValue(
        result.meets_targets_of_inputs, note=f"No targets are set; {waits} for memory."
    )


def _max_request_rate(result: CapacityResult) -> OutputValue:
    """Return the most requests per second of the replicas that are counted, as a figure."""
    if result.max_request_rate_within_targets is None:
        return _value_if_served(None)
    name = result.measurements.error_interval_name("throughput")
    rate = rate_with_error_range(name, result.max_request_rate_within_targets)
    note = "Within the targets." if result.has_targets else ""
    if result.has_targets and not result.meets_targets_of_inputs:
        note = "Within the targets, which this load misses."
        if result.only_waits_for_memory:
            note = "Within the targets, while no request waits for memory."
    if result.is_prefill_bound:
        note = "As many as the prefill replicas read."
    return dataclasses.replace(rate, note=note)


def _saturated_throughput(result: CapacityResult) -> OutputValue:
    """Return the output when requests always wait, with what sets it apart from the load's."""
    value = result.saturated_token_rate
    if value is None:
        return _value_if_served(None)
    rate = rate_with_error_range(result.measurements.error_interval_name("saturated"), value)
    note = "Whatever the targets." if result.has_targets else ""
    if int(result.replica_profile.max_reserved_batch) < int(result.replica_profile.max_batch):
        note = f"{note} While requests wait, engines keep room for each whole answer, so fewer run at once.".strip()
    return dataclasses.replace(rate, note=note)


def _load_share_of_maximum(result: CapacityResult) -> OutputValue:
    note = "Of the most within the targets." if result.has_targets else "Of the most."
    if result.share_of_highest_load is None:
        return _value_if_served(None)
    if result.only_waits_for_memory:
        return OutputValue(
            result.share_of_highest_load, note=f"{note} {_WAITING_REQUESTS_NOTE}", unbounded=True
        )
    bounds = result.load_bounds
    if bounds is None or bounds.low >= bounds.high:
        return OutputValue(result.share_of_highest_load, note=note, unbounded=True)
    if bounds.high > 1:
        note = f"{note} Too much if the times are at the high end of their range."
        return OutputValue(result.share_of_highest_load, note=note, unbounded=True)
    return OutputValue(result.share_of_highest_load, *bounds, note)


def _count_value_with_bounds(
    result: CapacityResult, count_name: str, factor: float = 1
) -> OutputValue:
    """Return a count times a factor, with the range of the replicas."""

    def count(replicas: int | None) -> Any:
        changed = dataclasses.replace(result, replicas=replicas)
        return factor * getattr(changed, count_name)

    bounds = result.replica_bounds
    if getattr(result, count_name) is None:
        return _value_if_served(None)
    if bounds is None:
        return OutputValue(count(result.replicas), unbounded=not result.inputs.replicas)
    other = result.split_if_times_are_high
    split = other if result.is_split_open else None
    if split and count_name != "replicas":  # One would change to it.
        most = max(count(result.replicas), factor * getattr(split, count_name))
        return OutputValue(count(result.replicas), count(bounds.if_times_are_low), most)
    if None in bounds:
        note = (
            "If the times are at the high end of their range, the targets are missed with any "
            f"number of {'these replicas' if split else 'GPUs'}."
        )
        return OutputValue(count(result.replicas), note=note, unbounded=True)
    note = ""
    if other and count_name == "gpus":
        in_replica = other.replica_profile.placed.setup.gpus
        note = f"At the high end, {format_value(other.gpus, 'GPU')} would do, {in_replica} in a replica."
    low, high = map(count, bounds)
    return OutputValue(count(result.replicas), low, high, note)


def _gpus(result: CapacityResult) -> OutputValue:
    """Return the GPUs of all replicas, with those of spare ones in a note."""
    counted, spare = _count_value_with_bounds(result, "gpus"), _count_spare_gpus(result)
    if result.gpus is None or counted.value is None or not spare:
        return counted
    parts = f"{format_number(result.gpus - spare)} in use and {format_number(spare)} spare."
    return dataclasses.replace(counted, note=f"{parts} {counted.note}".strip())


def _count_spare_gpus(result: CapacityResult) -> int:
    pools = result.replica_pools_with_spares
    return result.inputs.spare * sum(pool.gpus_per_replica for pool in pools)


def _gpus_in_use(result: CapacityResult) -> OutputValue:
    counted, spare = _count_value_with_bounds(result, "gpus"), _count_spare_gpus(result)
    if counted.value is None:
        return counted
    spare_at_high_end = spare
    if (other := result.split_if_times_are_high) and counted.high == other.gpus:
        spare_at_high_end = _count_spare_gpus(other)

    def without(gpus: Any, spare_gpus: int) -> Any:
        return None if gpus is None else gpus - spare_gpus

    return dataclasses.replace(
        counted,
        value=without(counted.value, spare),
        low=without(counted.low, spare),
        high=without(counted.high, spare_at_high_end),
        note="",
    )


def _monthly_cost(result: CapacityResult) -> OutputValue:
    price = typed_or_list_price_per_hour(
        result.replica_profile.placed.gpu, result.inputs.cost_per_gpu_hour
    )
    if price is None:
        return OutputValue(None, note=UNKNOWN)
    return _count_value_with_bounds(result, "gpus", price * _HOURS_PER_MONTH)


def _concurrent_requests_on_replica(result: CapacityResult) -> OutputValue:
    if result.operating_point is None:
        return _value_if_served(None)
    profile = result.replica_profile
    held = profile.max_batch
    if result.requests_waiting_for_memory_per_replica:
        held = profile.batch_of_users(result.users_per_replica)
    most = count_whole_requests_in_memory(profile.placed, held)
    requests = min(round(result.operating_point.batch, 1), max(1, most))
    if result.inputs.requests_per_second:  # By Little's law they grow with the time of an answer.
        name = tpot_error_interval_name(result, result.operating_point.batch)
        return time_with_error_range(name, requests)
    bounds = result.replica_bounds
    if bounds is None or bounds.if_times_are_low is None or bounds.if_times_are_high is None:
        return OutputValue(requests, unbounded=not result.inputs.replicas)
    users = result.inputs.concurrent * result.inputs.peak
    low, high = (
        min(users / n, float(most)) for n in (bounds.if_times_are_high, bounds.if_times_are_low)
    )
    return OutputValue(requests, min(low, requests), max(high, requests))


def _max_requests_in_memory_of_replica(result: CapacityResult) -> OutputValue:
    """Return the requests that fit at their mean length, and at their whole one in a note."""
    profile, requests = result.replica_profile, result.replica_profile.request_pattern.mean_lengths
    most, full = (
        count_whole_requests_in_memory(profile.placed, n)
        for n in (profile.max_batch, profile.max_reserved_batch)
    )
    notes = []
    if most != full:
        mean = format_number(round(profile.request_pattern.mean_context_of_running_sequence))
        whole = format_number(requests.prompt_tokens + requests.answer_tokens)
        notes.append(
            f"At {mean} tokens each, the mean while answering; {format_number(full)} at {whole}."
        )
    if (sure := count_surely_fitting_requests_per_replica(result)) < most:
        notes.append(f"{format_number(sure)} surely fit.")
    return OutputValue(most, note=" ".join(notes), unbounded=True)


def count_surely_fitting_requests_per_replica(result: CapacityResult) -> int:
    """Return the requests of a replica that fit by the upper end of the memory's range, too."""
    profile, share = result.replica_profile, result.inputs.memory_utilization
    return max_sequences_that_surely_fit(
        profile.placed, profile.request_pattern.mean_context_of_running_sequence, share
    )


def _million_tokens_cost(result: CapacityResult, with_prompts: bool = False) -> OutputValue:
    """Return the cost of a million output tokens, or of all tokens, prompts included."""
    price = typed_or_list_price_per_hour(
        result.replica_profile.placed.gpu, result.inputs.cost_per_gpu_hour
    )
    if price is None:
        return OutputValue(None, note=UNKNOWN)
    if result.gpus is None or not result.output_token_rate:
        return _value_if_served(None)
    rate = result.output_token_rate
    if with_prompts:
        rate *= 1 + result.inputs.prompt_tokens / result.inputs.output_tokens
    cost = usd_per_million_tokens(rate, result.gpus, price)
    if result.inputs.requests_per_second:
        return _count_value_with_bounds(result, "gpus", cost / result.gpus)
    if result.plausible_loads:
        return value_with_range_over(
            cost,
            (_million_tokens_cost_at_load(result, cost, load) for load in result.plausible_loads),
        )
    counted = _count_value_with_bounds(result, "replicas")
    if counted.unbounded:
        return dataclasses.replace(counted, value=cost)
    return time_with_error_range(result.measurements.error_interval_name("throughput"), cost)


def _million_tokens_cost_at_load(result: CapacityResult, cost: float, load: ServedLoad) -> float:
    """Return the cost of a million tokens with the GPUs and at the rate of another load."""
    rate = load.requests_per_second / (result.request_rate or 1.0)
    return cost * load.gpus / (result.gpus or 1) / rate


OUTPUTS: tuple[OutputSpec[CapacityResult], ...] = (
    OutputSpec("fits", "Keeps up", better="more", read=_meets_targets),
    # Fewer replicas are no better where they are larger.
    _replica_dependent_output("replicas", "Replicas"),
    ModeledOutput("prefill_replicas", "Prefill replicas", read=_prefill_replicas),
    ModeledOutput("gpus", "GPUs", "GPU", "less", _gpus, primary=True),
    ModeledOutput("gpus_in_use", "GPUs in use", "GPU", "less", _gpus_in_use),
    _replica_dependent_output("nodes", "Nodes", "node", "less"),
    *(
        _latency_output("ttft", "time to first token", name, share)
        for name, share in SHARES.items()
    ),
    *(
        _latency_output("tpot", "time per output token", name, share)
        for name, share in SHARES.items()
    ),
    _rate_at_load_output(
        "throughput", "Output tokens per second", "token/s", lambda r: r.output_token_rate
    ),
    _rate_at_load_output(
        "requests_per_second", "Requests per second", "request/s", lambda r: r.request_rate
    ),
    ModeledOutput("max_rate", "Most requests per second", "request/s", "more", _max_request_rate),
    ModeledOutput(
        "saturated_throughput",
        "Output tokens per second, saturated",
        "token/s",
        "more",
        _saturated_throughput,
    ),
    ModeledOutput("utilisation", "Load", "%", read=_load_share_of_maximum),
    ModeledOutput(
        "concurrent", "Requests at once on a replica", read=_concurrent_requests_on_replica
    ),
    ModeledOutput(
        "max_concurrent",
        "Most requests in memory of a replica",
        better="more",
        read=_max_requests_in_memory_of_replica,
    ),
    ModeledOutput("transfer", "Transfer of a prompt's cache", "s", "less", _cache_transfer_time),
    ModeledOutput("cost_per_month", "Cost per month", "USD/month", "less", _monthly_cost),
    ModeledOutput(
        "cost_per_million_tokens",
        "Cost per million output tokens",
        "USD/Mtoken",
        "less",
        _million_tokens_cost,
    ),
    ModeledOutput(
        "cost_per_million_tokens_of_both",
        "Cost per million tokens of prompts and answers",
        "USD/Mtoken",
        "less",
        lambda r: _million_tokens_cost(r, with_prompts=True),
    ),
)
