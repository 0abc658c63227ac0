"""`serving-capacity`: the nearest input values at which its verdict changes."""

import dataclasses
import itertools
import math
from typing import Any, NamedTuple

from app.estimator.estimates.serving_capacity import (
    SHARES,
    CapacityResult,
    ServingCapacityInputs,
    build_latency_targets,
    build_replica_profile,
    compute_capacity,
    compute_capacity_with_best_split,
    count_fewest_replicas,
    fill_in_formats_and_gpus,
    find_highest_load,
    find_loadable_split,
    has_room_for_request,
    operating_point_of_each_replica,
    place_replica_model,
)
from app.estimator.estimates.serving_capacity_outputs import (
    compute_capacity_relaxing_preset_tpot,
)
from app.estimator.inputs import InvalidInputsError, non_default_inputs_to_query, parse_inputs
from app.estimator.memory.engine_memory import MaxNumSeqsRefusal
from app.estimator.memory.parallel_layout import (
    find_whole_experts_problem,
    list_tensor_parallel_sizes,
)
from app.estimator.models.architecture import Architecture
from app.estimator.models.weight_formats import (
    CACHE_BITS,
    CACHE_CHOICES,
    FORMATS,
    GGUF_FORMATS,
    WEIGHT_CHOICES,
)
from app.estimator.result import (
    InputChange,
    VerdictChange,
)
from app.estimator.serving.engine_speed import find_fp8_problem
from app.estimator.serving.replica import (
    PREFILL_LOAD,
    OperatingPoint,
    ReplicaProfile,
    operating_point_at_rate,
)
from app.estimator.serving.replica_memory import (
    find_max_num_seqs_refusal_of_replica,
)
from app.estimator.units import (
    NBSP,
    format_count,
    format_number,
    format_value,
    round_estimate_to_three_digits,
)
from app.estimator.verdict_changes import (
    MOST_SEQUENCES,
    add_max_num_seqs_change,
    build_max_num_seqs_changes,
    format_rounded_past_limit,
)


def find_verdict_changes(result: CapacityResult) -> tuple[VerdictChange, ...]:
    """Return the input values at which the verdict changes, with those that vLLM starts with.

    A change with which it would refuse to start is worked out with fewer sequences, and named
    with them.
    """
    refused = result.start_refusal
    if (
        refused is None
        or not refused.advised_sequences
        or result.replica_profile.placed.load_refusal
    ):
        return _find_verdict_changes_without_start_changes(result)
    limited = dataclasses.replace(
        result.inputs_with_unrelaxed_targets, max_sequences=refused.advised_sequences
    )
    limited_result = compute_capacity_relaxing_preset_tpot(limited)
    started = _find_verdict_changes_without_start_changes(limited_result)
    alone = {
        change.field: change
        for change in _find_verdict_changes_without_start_changes(result)
        if change.verdict_after in _MORE_LOAD
        or not _find_start_refusal_after_change(result, change)
    }
    combined = (
        alone.get(change.field) or add_max_num_seqs_change(change, refused)
        for change in started
        if change.field in alone or change.verdict_after not in _MORE_LOAD
    )
    starts = build_max_num_seqs_changes(refused)
    gpus = limited_result.gpus if limited_result.meets_targets_of_inputs else None
    if gpus and gpus < (result.gpus or math.inf):
        enough = _describe_enough_gpus(gpus, limited_result, has_targets=result.has_targets)
        starts = tuple(
            dataclasses.replace(change, verdict_after=f"vLLM starts, and {enough}")
            for change in starts
        )
    return tuple(dict.fromkeys((*starts, *combined)))  # Two may be of one field.


def add_chosen_split_to_changes(
    typed: ServingCapacityInputs, chosen: ServingCapacityInputs, changes: tuple[VerdictChange, ...]
) -> tuple[VerdictChange, ...]:
    """Return the changes, with the split that was chosen where another would be chosen after them.

    What they say is so with that split; `typed` may leave it open.
    """
    if typed.tensor_parallel or typed.decode_gpus:
        return changes
    return tuple(_add_chosen_split_to_change(typed, chosen, change) for change in changes)


def _add_chosen_split_to_change(
    typed: ServingCapacityInputs, chosen: ServingCapacityInputs, change: VerdictChange
) -> VerdictChange:
    values = change.typed_values_by_field
    if "tensor_parallel" in values:
        return change
    if "prefill_gpus" in values:  # Instead of the split that is left open.
        also_typed = tuple(c for c in change.other_changes if c.field not in _LABEL_BY_SPREAD_FIELD)
        return dataclasses.replace(change, other_changes=also_typed)
    changed = parse_inputs(ServingCapacityInputs, {**non_default_inputs_to_query(typed), **values})
    try:
        after = fill_in_formats_and_gpus(changed)
    except InvalidInputsError:
        return change
    also: list[InputChange] = []
    if (after.tensor_parallel, after.attention_parallel) != (
        chosen.tensor_parallel,
        chosen.attention_parallel,
    ):
        also.append(InputChange(*_SHARED_GPUS, str(chosen.tensor_parallel)))
        also += _spread_changes(changed, chosen)
    return dataclasses.replace(change, other_changes=(*change.other_changes, *also))


_SHARED_GPUS = ("tensor_parallel", "GPUs that share the model")


def _find_start_refusal_after_change(
    result: CapacityResult, change: VerdictChange
) -> MaxNumSeqsRefusal | None:
    """Return with how many sequences vLLM does not start after a change by itself."""
    typed = {
        **non_default_inputs_to_query(result.inputs_with_unrelaxed_targets),
        **change.typed_values_by_field,
    }
    changed = parse_inputs(ServingCapacityInputs, typed)
    return find_max_num_seqs_refusal_of_replica(
        place_replica_model(changed), changed.memory_utilization
    )


def _find_verdict_changes_without_start_changes(
    result: CapacityResult,
) -> tuple[VerdictChange, ...]:
    if not result.fits_memory:
        settings = _engine_settings_changes(result)
        lighter = _fp8_weights_changes(result)
        return settings + _more_gpus_changes(result) + lighter + _prefill_decode_changes(result)
    other = (
        _gpus_per_replica_changes(result)
        + _fp8_weights_changes(result)
        + _prefill_decode_changes(result)
    )
    if result.replica_profile.placed.load_refusal:
        return _expert_parallel_changes(result) + other
    if result.highest_load_point is None or result.replicas is None:
        return _tightest_single_request_target_changes(result) + other
    changes = _load_and_replica_changes(result, result.highest_load_point, result.replicas)
    targets = _relaxed_preset_tpot_change(result) or _target_for_one_replica_fewer_change(result)
    most = (*changes.replica_changes, *_full_rack_changes(result))
    return (*_fp8_cache_changes(result), *changes.load_changes, *targets, *other, *most)


def _fp8_cache_changes(result: CapacityResult) -> tuple[VerdictChange, ...]:
    """Return a cache in FP8 if requests wait for memory and fewer would with it."""
    inputs, profile = result.inputs, result.replica_profile
    if (
        not result.requests_waiting_for_memory_per_replica
        or CACHE_BITS[inputs.cache] < CACHE_BITS["bf16"]
    ):
        return ()
    if profile.placed.gpu.lacks_format("fp8"):
        return ()
    changed = dataclasses.replace(inputs, cache="fp8", replicas=result.replicas)
    other = compute_capacity(changed, build_replica_profile(changed))
    users = result.users_per_replica
    held = int(other.replica_profile.batch_of_users(users))
    if not other.meets_targets_of_inputs and held <= int(profile.batch_of_users(users)):
        return ()
    becomes = _verdict_text_of_served_load(other)
    if not other.meets_targets_of_inputs:
        slow = _describe_missed_targets(other)
        becomes = f"{format_number(held)} of {format_number(users)} requests are answered at a time{slow}."
    labels = dict(CACHE_CHOICES)
    return (VerdictChange("cache", "KV cache", labels[inputs.cache], labels["fp8"], becomes),)


def _fp8_weights_changes(result: CapacityResult) -> tuple[VerdictChange, ...]:
    """Return weights in FP8 instead of 16 bit, if fewer GPUs keep the targets with them."""
    inputs, placed = result.inputs_with_unrelaxed_targets, result.replica_profile.placed
    is_wide = inputs.weights not in GGUF_FORMATS and placed.weight_format.bits_with_scales == 16
    has_experts = placed.model.is_routed
    if not is_wide or inputs.simulate:
        return ()
    if find_fp8_problem(placed.gpu, FORMATS["fp8"], inputs.engine, has_experts=has_experts):
        return ()
    if inputs.replicas and result.keeps_unrelaxed_targets:
        return ()
    lighter = dataclasses.replace(inputs, weights="fp8", replicas=None)
    if inputs.decode_gpus:
        best = compute_capacity(lighter, build_replica_profile(lighter))
    else:
        best = compute_capacity_with_best_split(lighter)
    most = result.gpus if result.keeps_unrelaxed_targets else None
    if (
        not best.meets_targets_of_inputs
        or not best.gpus
        or (most is not None and best.gpus >= most)
    ):
        return ()
    also = _expert_and_replica_changes_of_split(inputs, best)
    if best.inputs.tensor_parallel != inputs.tensor_parallel:
        width = str(best.inputs.tensor_parallel)
        also = (InputChange(*_SHARED_GPUS, width), *also)
    labels = dict(WEIGHT_CHOICES)
    becomes = _describe_enough_gpus(best.gpus, best, has_targets=result.has_targets)
    now = placed.weight_format.label
    return (VerdictChange("weights", "Weights", now, labels["fp8"], becomes, also),)


def _expert_and_replica_changes_of_split(
    inputs: ServingCapacityInputs, best: CapacityResult
) -> tuple[InputChange, ...]:
    """Return the changes to experts and to given replicas with which another split is best."""
    also = _spread_changes(inputs, best.inputs)
    if inputs.replicas and best.replicas != inputs.replicas:
        also = (*also, InputChange("replicas", "Replicas", str(best.replicas)))
    return also


def _verdict_text_of_served_load(served: CapacityResult) -> str:
    """Return what a page says of a load that is served, with the requests that surely fit."""
    text = "Meets the targets" if served.has_targets else "Nobody waits for memory"
    unsure = served.unsure_memory_fit
    if unsure is None or not served.may_exceed_memory:
        return f"{text}."
    if not unsure.surely_fitting_requests:
        return f"{text}, but the model may not fit."
    held, asked = (format_number(n) for n in (unsure.surely_fitting_requests, unsure.requests))
    each = " on each replica" if (served.replicas or 1) > 1 else ""
    return f"{text}; {held} of {asked} surely fit{each}."


def _describe_missed_targets(result: CapacityResult) -> str:
    """Return how much too late answers are, to follow what a change brings; empty if in time."""
    missed = [
        f"{format_value(late.reached_seconds, 's')} {_TIMES_TO[late.target]}, not "
        f"{format_value(late.limit_seconds, 's')}"
        for late in result.missed_targets
    ]
    return f", but too slow: {', and '.join(missed)}" if missed else ""


_TIMES_TO = {"ttft": "to the first token", "tpot": "per token"}


RACK_GPUS = 32
"""GPUs of a link domain from which experts are spread widely [1]."""
# GPUs of replicas that decode or read prompts, as they are tried in a rack.
_DECODE_GPUS, _PREFILL_GPUS = (16, 32, 40, 48, 64), (4, 8, 16)


def _prefill_decode_changes(result: CapacityResult) -> tuple[VerdictChange, ...]:
    """Return prefill and decode apart in a rack, if that takes fewer GPUs to keep the targets."""
    inputs, placed = result.inputs_with_unrelaxed_targets, result.replica_profile.placed
    tried = inputs.prefill_gpus or inputs.replicas or inputs.simulate
    if tried or inputs.pipeline_parallel > 1 or placed.fabric.gpus_per_domain < RACK_GPUS:
        return ()
    if not placed.model.is_routed:
        return ()
    together = dataclasses.replace(inputs, attention_parallel=1, expert_parallel=1)
    best = result.gpus if result.keeps_unrelaxed_targets else None
    change: tuple[VerdictChange, ...] = ()
    for prefill, decode in _list_rack_splits(placed.model, inputs.engine):
        apart = dataclasses.replace(together, prefill_gpus=prefill, decode_gpus=decode)
        try:
            other = compute_capacity(apart, build_replica_profile(apart))
        except InvalidInputsError:
            continue
        if (
            not other.meets_targets_of_inputs
            or other.gpus is None
            or (best is not None and other.gpus >= best)
        ):
            continue
        best = other.gpus
        field = "GPUs of a decode replica"
        change = (
            VerdictChange(
                "prefill_gpus",
                "GPUs of a prefill replica",
                "together",
                str(prefill),
                _describe_enough_gpus(best, other, has_targets=True),
                (
                    InputChange("decode_gpus", field, str(decode)),
                    *_spread_changes(inputs, together),
                ),
            ),
        )
    return change


def _full_rack_changes(result: CapacityResult) -> tuple[VerdictChange, ...]:
    """Return the most users that one rack serves, with this split and with the best one tried."""
    inputs, rack = result.inputs, result.replica_profile.placed.fabric.gpus_per_domain
    if (
        rack < RACK_GPUS
        or inputs.requests_per_second
        or inputs.simulate
        or inputs.pipeline_parallel > 1
    ):
        return ()
    if result.unrelaxed_preset_tpot is not None or result.start_refusal is not None:
        return ()
    full = _fill_rack_with_split(result, rack)
    best = _find_best_split_of_rack(result, rack)
    changes: tuple[VerdictChange, ...] = ()
    if full and full.inputs.concurrent != inputs.concurrent:
        unsure = ", but the requests may not fit" if full.unsure_memory_fit else ""
        becomes = (
            f"Takes {full.gpus} of the {rack} GPUs of one rack, with "
            f"{_format_output_rate(full)} of output{unsure}."
        )
        now, then = format_number(inputs.concurrent), format_number(full.inputs.concurrent)
        changes = (VerdictChange("concurrent", "Users at once", now, then, becomes),)
    surely_full = full if full and full.unsure_memory_fit is None else None
    if best and (
        surely_full is None or _output_rate(best) > _MORE_OUTPUT * _output_rate(surely_full)
    ):
        changes += _best_rack_split_changes(result, best, rack)
    return changes


# How much more output of a rack is worth naming another split.
_MORE_OUTPUT = 1.01


def _output_rate(result: CapacityResult) -> float:
    return result.output_token_rate or 0.0


def _format_output_rate(result: CapacityResult) -> str:
    return format_value(round_estimate_to_three_digits(_output_rate(result), "token/s"), "token/s")


def _best_rack_split_changes(
    result: CapacityResult, best: CapacityResult, rack: int
) -> tuple[VerdictChange, ...]:
    """Return the split with which one rack answers most, and its users."""
    now, then = result.inputs, best.inputs
    within = " within the targets" if result.has_targets else ""
    spares = f" and {now.spare} spare of each" if now.spare else ""
    becomes = (
        "Yields the most of one rack among the splits tried, "
        f"{_format_output_rate(best)}{within}, from "
        f"{format_count(best.prefill_replicas or 0, 'prefill replica')} and "
        f"{format_count(best.replicas or 0, 'decode replica')}{spares}, on {best.gpus} of its "
        f"{rack} GPUs; the requests surely fit."
    )
    changes = [
        InputChange("prefill_gpus", "GPUs of a prefill replica", str(then.prefill_gpus)),
        InputChange("decode_gpus", "GPUs of a decode replica", str(then.decode_gpus)),
        InputChange("concurrent", "Users at once", format_number(then.concurrent)),
    ]
    if now.replicas and now.replicas != best.replicas:
        changes.append(InputChange("replicas", "Replicas", str(best.replicas)))
    changes += _spread_changes(now, then)
    changes = [c for c in changes if getattr(now, c.field) != getattr(then, c.field)]
    if not changes:
        return ()
    first, *others = changes
    before = getattr(now, first.field)
    current = format_number(before) if before else "together"
    return (VerdictChange(*first[:2], current, first.value, becomes, tuple(others)),)


def _fill_rack_with_split(result: CapacityResult, rack: int) -> CapacityResult | None:
    """Return the capacity with as many users as one rack serves with this split; None if none."""
    users = _find_load_of_rack(result.inputs, result.replica_profile, rack).users
    if not users:
        return None
    inputs = dataclasses.replace(result.inputs, concurrent=users)
    full = compute_capacity(inputs, result.replica_profile)
    if not full.meets_targets_of_inputs or (full.gpus or math.inf) > rack:
        return None
    return full


def _find_best_split_of_rack(result: CapacityResult, rack: int) -> CapacityResult | None:
    """Return the capacity of the split with which one rack surely answers most tokens per second."""
    model = result.replica_profile.placed.model
    if not model.is_routed:
        return None
    apart = dataclasses.replace(
        result.inputs, attention_parallel=1, expert_parallel=1, replicas=None
    )
    loads = []
    for prefill, decode in _list_rack_splits(model, apart.engine):
        if (prefill + decode) * (1 + apart.spare) > rack:
            continue
        inputs = dataclasses.replace(apart, prefill_gpus=prefill, decode_gpus=decode)
        try:
            profile = build_replica_profile(inputs)
        except InvalidInputsError:
            continue
        load = _find_load_of_rack(inputs, profile, rack)
        if load.users:
            filled = dataclasses.replace(inputs, concurrent=load.users)
            loads.append((load.requests_per_second, filled, profile))
    best: CapacityResult | None = None
    for rate, inputs, profile in sorted(loads, key=lambda load: load[0], reverse=True):
        if best and _output_rate(best) >= rate * inputs.output_tokens:
            break
        full = _compute_capacity_for_users_that_surely_fit(inputs, profile)
        if (
            full.meets_targets_of_inputs
            and (full.gpus or math.inf) <= rack
            and full.unsure_memory_fit is None
            and (best is None or _output_rate(full) > _output_rate(best))
        ):
            best = full
    return best


def _compute_capacity_for_users_that_surely_fit(
    inputs: ServingCapacityInputs, profile: ReplicaProfile
) -> CapacityResult:
    """Return the capacity with the users of the inputs, or with as many of them as surely fit."""
    full = compute_capacity(inputs, profile)
    if (unsure := full.unsure_memory_fit) is None or not unsure.surely_fitting_requests:
        return full
    users = math.floor(unsure.surely_fitting_requests * (full.replicas or 1) / inputs.peak)
    return compute_capacity(dataclasses.replace(inputs, concurrent=max(1, users)), profile)


def _list_rack_splits(model: Architecture, engine: str) -> list[tuple[int, int]]:
    """Return the GPUs of prefill and of decode replicas that are tried in a rack."""
    return [
        (prefill, decode)
        for prefill, decode in itertools.product(_PREFILL_GPUS, _DECODE_GPUS)
        if not any(find_whole_experts_problem(model, gpus, engine) for gpus in (prefill, decode))
    ]


class RackLoad(NamedTuple):
    """Users of a rack, and the requests per second that they make of its decode replicas."""

    users: int
    requests_per_second: float


def _find_load_of_rack(
    inputs: ServingCapacityInputs, profile: ReplicaProfile, rack: int
) -> RackLoad:
    """Return the load at which the replicas of a rack are full; 0 if none fit."""
    top, prefill = find_highest_load(inputs, profile), profile.prefill_replica
    if top is None:
        return RackLoad(0, 0.0)
    if prefill is None:
        replicas = rack // profile.placed.setup.gpus - inputs.spare
        if inputs.replicas:
            replicas = min(replicas, inputs.replicas)
        users = max(0, math.floor(top.batch * replicas / inputs.peak))
        return RackLoad(users, top.requests_per_second * replicas)
    decode_gpus, prefill_gpus = profile.placed.setup.gpus, prefill.placed.setup.gpus
    most = RackLoad(0, 0.0)
    for replicas in [inputs.replicas] if inputs.replicas else range(1, rack // decode_gpus + 1):
        left = (rack - (replicas + inputs.spare) * decode_gpus) // prefill_gpus - inputs.spare
        rate = PREFILL_LOAD * prefill.max_prompts_per_second * left / replicas
        full: OperatingPoint | None = top
        if rate < top.requests_per_second:
            full = operating_point_at_rate(profile, rate) if rate > 0 else None
        if full is None or replicas * full.batch <= most.users * inputs.peak:
            break  # Fewer decode replicas serve as many.
        users = math.floor(replicas * full.batch / inputs.peak)
        most = RackLoad(users, replicas * full.requests_per_second)
    return most


def _describe_enough_gpus(gpus: int, best: CapacityResult, *, has_targets: bool) -> str:
    """Say that so many GPUs are enough; that they may be, if they may not fit the requests."""
    keep, are = ("keeps", "is") if gpus == 1 else ("keep", "are")
    if best.unsure_memory_fit:
        keep, are = "may keep", "may be"
    enough = f"{keep} the targets" if has_targets else f"{are} enough"
    return f"{format_count(gpus, 'GPU')} in all {enough}."


def _gpus_per_replica_changes(result: CapacityResult) -> tuple[VerdictChange, ...]:
    """Return the GPUs per replica that need fewest in all, if those are fewer than now.

    Where too few replicas are given: than with as many of them as the load takes.
    """
    inputs = result.inputs_with_unrelaxed_targets
    spread = inputs.attention_parallel * inputs.expert_parallel * inputs.pipeline_parallel
    if inputs.decode_gpus or inputs.simulate or spread > 1 or inputs.expert_tensor_parallel:
        return ()
    if inputs.replicas and result.keeps_unrelaxed_targets:
        return ()
    most = result.gpus if result.keeps_unrelaxed_targets else None
    if inputs.replicas and (needed := count_fewest_replicas(inputs, result.highest_load_point)):
        most = (needed + inputs.spare) * inputs.tensor_parallel
    if most == 1 + inputs.spare:
        return ()
    best = compute_capacity_with_best_split(dataclasses.replace(inputs, replicas=None))
    if (
        not best.meets_targets_of_inputs
        or not best.gpus
        or (most is not None and best.gpus >= most)
    ):
        return ()
    also = _expert_and_replica_changes_of_split(inputs, best)
    becomes = _describe_enough_gpus(best.gpus, best, has_targets=result.has_targets)
    return (_build_gpus_per_replica_change(inputs, best.inputs.tensor_parallel, becomes, also),)


_LABEL_BY_SPREAD_FIELD = {
    "attention_parallel": "Attention data parallel",
    "expert_parallel": "Expert parallel",
}


def _spread_changes(
    inputs: ServingCapacityInputs, split: ServingCapacityInputs
) -> tuple[InputChange, ...]:
    """Return the changes to groups of attention and to experts with which a split has them."""
    return tuple(
        InputChange(field, label, str(getattr(split, field)))
        for field, label in _LABEL_BY_SPREAD_FIELD.items()
        if getattr(split, field) != getattr(inputs, field)
    )


def _build_gpus_per_replica_change(
    inputs: ServingCapacityInputs,
    gpus: int,
    verdict_after: str,
    other_changes: tuple[InputChange, ...],
) -> VerdictChange:
    now = str(inputs.tensor_parallel)
    return VerdictChange(*_SHARED_GPUS, now, str(gpus), verdict_after, other_changes)


_FEWER_SEQUENCES, _LARGER_SHARE = 128, 0.95


def _engine_settings_changes(result: CapacityResult) -> tuple[VerdictChange, ...]:
    """Return the settings of the engine that make room for a request, before more GPUs do."""
    inputs = result.inputs
    larger = max(_LARGER_SHARE, inputs.memory_utilization)
    fewer = min(_FEWER_SEQUENCES, inputs.max_sequences or _FEWER_SEQUENCES)
    asked = format_number(inputs.max_sequences) if inputs.max_sequences else "its default"
    now, then = (format_value(share, "%") for share in (inputs.memory_utilization, larger))
    field, label = "memory_utilization", "Usable share of memory"
    most = (*MOST_SEQUENCES, asked, str(fewer))
    for surely, becomes in (
        (True, "There is room for a request."),
        (False, "There may be room for a request."),
    ):
        changes = []
        if has_room_for_request(inputs, surely=surely, max_sequences=fewer):
            changes.append(VerdictChange(*most, becomes))
        if has_room_for_request(inputs, surely=surely, memory_utilization=larger):
            changes.append(VerdictChange(field, label, now, then, becomes))
        both = {"max_sequences": fewer, "memory_utilization": larger}
        if not changes and has_room_for_request(inputs, surely=surely, **both):
            changes.append(VerdictChange(*most, becomes, (InputChange(field, label, then),)))
        if changes:
            return tuple(changes)
    return ()


def _more_gpus_changes(result: CapacityResult) -> tuple[VerdictChange, ...]:
    """Return the fewest GPUs per replica on which weights and a request surely fit.

    If there are none, the fewest on which they may.
    """
    inputs, profile = result.inputs, result.replica_profile
    if profile.prefill_replica:
        return ()
    wider = (
        dataclasses.replace(inputs, tensor_parallel=gpus)
        for gpus in list_tensor_parallel_sizes(profile.placed.model)
        if gpus > inputs.tensor_parallel
    )
    fitting = [s for s in filter(None, map(find_loadable_split, wider)) if has_room_for_request(s)]
    if not fitting:
        return ()
    sure = next((split for split in fitting if has_room_for_request(split, surely=True)), None)
    best = sure or fitting[0]
    becomes = "The weights fit." if sure else "The weights may fit."
    return (
        _build_gpus_per_replica_change(
            inputs, best.tensor_parallel, becomes, _spread_changes(inputs, best)
        ),
    )


def _expert_parallel_changes(result: CapacityResult) -> tuple[VerdictChange, ...]:
    """Return experts divided whole, for an engine that does not load their parts."""
    inputs = result.inputs
    split = find_loadable_split(inputs)
    if split is None:
        return ()
    now, then = str(inputs.expert_parallel), str(split.expert_parallel)
    shared = inputs.expert_tensor_parallel
    also = (
        (InputChange("expert_tensor_parallel", "GPUs that share an expert", ""),) if shared else ()
    )
    becomes = "The engine loads it, on the same GPUs."
    return (VerdictChange("expert_parallel", "Expert parallel", now, then, becomes, also),)


def _tightest_single_request_target_changes(result: CapacityResult) -> tuple[VerdictChange, ...]:
    """Return the tightest latency targets that a single request meets."""
    point = result.point_of_single_request
    if point is None:
        return ()
    changes = (
        _tightest_met_target_change(result.inputs, kind, point, "One request alone keeps it.")
        for kind in _TARGET_LABELS
    )
    return tuple(change for change in changes if change is not None)


def _relaxed_preset_tpot_change(result: CapacityResult) -> tuple[VerdictChange, ...]:
    """Return the target that counts instead of the preset one."""
    if result.unrelaxed_preset_tpot is None:
        return ()
    now, then = (
        format_value(seconds, "s")
        for seconds in (result.unrelaxed_preset_tpot, result.inputs.tpot_target or 0.0)
    )
    label = f"Target: {_TARGET_LABELS['tpot']}"
    return (VerdictChange("tpot_target", label, now, then, "Met with this hardware."),)


def _target_for_one_replica_fewer_change(result: CapacityResult) -> tuple[VerdictChange, ...]:
    """Return the deciding target's value with which one replica fewer is enough."""
    inputs, kind = result.inputs, result.target_setting_replica_count
    if kind is None:
        return ()
    fewer = (result.replicas or 0) - 1
    point = operating_point_of_each_replica(inputs, result.replica_profile, fewer)
    if point is None or result.is_overfilled_at(point, fewer):
        return ()
    targets = build_latency_targets(inputs)
    if kind == "ttft":
        other_targets = dataclasses.replace(targets, ttft=None)
    else:
        other_targets = dataclasses.replace(targets, tpot=None)
    if not other_targets.are_met_at(point):
        return ()
    change = _tightest_met_target_change(inputs, kind, point, "Takes one replica fewer.")
    return () if change is None else (change,)


_TARGET_LABELS = {"ttft": "first token", "tpot": "per token"}


def _tightest_met_target_change(
    inputs: ServingCapacityInputs, target: str, point: OperatingPoint, verdict_after: str
) -> VerdictChange | None:
    """Return the tightest target of a kind that a load meets; None if it meets the one set."""
    limit = getattr(inputs, f"{target}_target")
    value = getattr(point, f"{target}_by_share")[SHARES[inputs.percentile]]
    if limit is None or value <= limit:
        return None
    unit, size = ("s", 1.0) if value >= 1 else ("ms", 1e-3)
    now = format_value(limit, "s")
    then = f"{format_rounded_past_limit(value / size, rounds_up=True)}{NBSP}{unit}"
    return VerdictChange(
        f"{target}_target", f"Target: {_TARGET_LABELS[target]}", now, then, verdict_after
    )


_VERDICT_IF_WAITING, _VERDICT_IF_SLOW = "Others wait for memory.", "Too slow."
_ONE_MORE, _ONE_MORE_PREFILL = "Takes one more replica.", "Takes one more prefill replica."
# What becomes of a load that is met, at a larger one.
_MORE_LOAD = frozenset({_VERDICT_IF_WAITING, _VERDICT_IF_SLOW, _ONE_MORE, _ONE_MORE_PREFILL})


def _verdict_text_at_load(result: CapacityResult, **changes: Any) -> str:
    changed = dataclasses.replace(result.inputs, simulate=False, **changes)
    return _verdict_text_of_served_load(compute_capacity(changed, result.replica_profile))


class LoadAndReplicaChanges(NamedTuple):
    load_changes: tuple[VerdictChange, ...]
    replica_changes: tuple[VerdictChange, ...]


def _load_and_replica_changes(
    result: CapacityResult, highest_point: OperatingPoint, replicas: int
) -> LoadAndReplicaChanges:
    """Return the load at which the verdict changes, and the replicas if too few are given."""
    inputs = result.inputs
    if inputs.requests_per_second is not None:
        most = highest_point.requests_per_second * replicas / inputs.peak
        field, label = "requests_per_second", "Requests per second"
        now, then = (
            inputs.requests_per_second,
            format_rounded_past_limit(most, rounds_up=result.meets_targets_of_inputs),
        )
    else:
        most = math.floor(highest_point.batch * replicas / inputs.peak)
        field, label, now = "concurrent", "Users at once", float(inputs.concurrent)
        then = format_number(most + (1 if result.meets_targets_of_inputs else 0))
    becomes = _verdict_text_at_load(result, **{field: most})
    if result.meets_targets_of_inputs and not result.has_targets:
        becomes = _VERDICT_IF_WAITING
    elif result.meets_targets_of_inputs:
        becomes = _VERDICT_IF_SLOW
    if result.is_prefill_bound:
        becomes = _ONE_MORE_PREFILL
    elif result.meets_targets_of_inputs and not inputs.replicas:
        becomes = _ONE_MORE
    load = VerdictChange(field, label, format_number(now), then, becomes)
    loads = (load,) if then != "0" else ()  # At a high peak, even one user may be too many.
    needed = count_fewest_replicas(inputs, highest_point)
    if result.meets_targets_of_inputs or not inputs.replicas or needed is None:
        return LoadAndReplicaChanges(loads, ())
    if not result.is_prefill_bound:
        becomes = _verdict_text_at_load(result, replicas=needed)
    more = VerdictChange("replicas", "Replicas", str(inputs.replicas), str(needed), becomes)
    return LoadAndReplicaChanges(loads, (more,))
