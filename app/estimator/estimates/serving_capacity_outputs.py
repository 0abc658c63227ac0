"""`serving-capacity`: the figures of a result, with their ranges."""

import dataclasses
from collections.abc import Callable

from app.estimator.data_files import modeled_rate, modeled_time
from app.estimator.estimates.serving_capacity import SHARES, CapacityResult
from app.estimator.hardware.prices import UNKNOWN, typed_or_list_price
from app.estimator.result import OutputSpec, OutputValue
from app.estimator.training.run_costs import usd_per_million_tokens
from app.estimator.units import format_number

_HOURS = 730.5


def _value_if_served(value: float | None) -> OutputValue:
    """Return a value that exists only if the load can be served."""
    if value is None:
        return OutputValue(None, note="No load settles.", applies=False)
    return OutputValue(value)


def _count_output(
    name: str, label: str, unit: str, *, primary: bool = False
) -> OutputSpec[CapacityResult]:
    """Declare a count or cost that grows with the replicas, with the range of these."""

    def read(result: CapacityResult) -> OutputValue:
        value, bounds = getattr(result, name), result.replica_bounds
        if value is None:
            return _value_if_served(None)
        if bounds is None:
            return OutputValue(value)
        if None in bounds:
            note = "No number does if times are at the high end of their range."
            return OutputValue(value, note=note)
        low, high = (getattr(dataclasses.replace(result, replicas=n), name) for n in bounds)
        return OutputValue(value, low, high)

    return OutputSpec(name, label, unit, "less", read, modeled=True, primary=primary)


def _rate_output(
    name: str,
    label: str,
    unit: str,
    read: Callable[[CapacityResult], float | None],
    interval_name: str = "throughput",
) -> OutputSpec[CapacityResult]:
    """Declare a modeled rate; `interval_name` is the error interval of the time behind it."""

    def read_rate(result: CapacityResult) -> OutputValue:
        value = read(result)
        if value is None:
            return _value_if_served(None)
        if interval_name == "throughput" and result.inputs.requests_per_second:
            return OutputValue(value, note="As it arrives.")
        return modeled_rate(result.measurements.error_interval_name(interval_name), value)

    return OutputSpec(name, label, unit, "more", read_rate, modeled=True)


def _latency_output(
    latency: str, label: str, percentile: str, share: float
) -> OutputSpec[CapacityResult]:
    """Declare a percentile of a latency [s]; `latency` is ttft or tpot."""

    def read(result: CapacityResult) -> OutputValue:
        if result.settled is None:
            return _value_if_served(None)
        value = getattr(result.settled, latency)[share]
        return modeled_time(result.measurements.error_interval_name(latency), value)

    return OutputSpec(
        f"{latency}_{percentile}", f"{percentile} {label}", "s", "less", read, modeled=True
    )


_TOGETHER = "Prefill and decode are on the same GPUs."


def _prefill_replicas(result: CapacityResult) -> OutputValue:
    if result.profile.prefill is None:
        return OutputValue(None, note=_TOGETHER, applies=False)
    return _value_if_served(result.prefill_replicas)


def _transfer(result: CapacityResult) -> OutputValue:
    if result.profile.prefill is None:
        return OutputValue(None, note=_TOGETHER, applies=False)
    return modeled_time("collective", result.profile.prefill.transfer_seconds)


def _met(result: CapacityResult) -> OutputValue:
    if result.refusal:
        return OutputValue(False, note="The engine does not load it.")
    if result.has_targets:
        return OutputValue(result.targets_met, note=f"It {_MET[result.targets_met]} the targets.")
    waits = "no request waits" if result.targets_met else "requests wait"
    return OutputValue(result.targets_met, note=f"No targets are set; {waits} for memory.")


_MET = {True: "meets", False: "misses"}


def _max_rate(result: CapacityResult) -> OutputValue:
    """Return the most requests per second of the replicas that are counted, as a figure."""
    if result.max_request_rate is None:
        return _value_if_served(None)
    name = result.measurements.error_interval_name("throughput")
    rate = modeled_rate(name, result.max_request_rate)
    note = "Within the targets." if result.has_targets else ""
    if result.has_targets and not result.targets_met:
        note = "Within the targets, which this load misses."
    if result.prefill_bound:
        note = "As many as the prefill replicas read."
    return dataclasses.replace(rate, note=note)


def _saturated_throughput(result: CapacityResult) -> OutputValue:
    """Return the output when requests always wait, with what sets it apart from the load's."""
    value = result.saturated_token_rate
    if value is None:
        return _value_if_served(None)
    rate = modeled_rate(result.measurements.error_interval_name("saturated"), value)
    note = "Whatever the targets." if result.has_targets else ""
    if int(result.profile.max_reserved_batch) < int(result.profile.most):
        note = f"{note} Room for whole answers is kept, so fewer run at once.".strip()
    return dataclasses.replace(rate, note=note)


def _utilization(result: CapacityResult) -> OutputValue:
    note = "Of the most within the targets." if result.has_targets else "Of the most."
    value = _value_if_served(result.utilization)
    return dataclasses.replace(value, note=note) if value.applies else value


def _monthly_cost(result: CapacityResult) -> OutputValue:
    price = typed_or_list_price(result.profile.placed.gpu, result.inputs.cost_per_gpu_hour)
    if price is None:
        return OutputValue(None, note=UNKNOWN)
    if result.gpus is None:
        return _value_if_served(None)
    cost = price * _HOURS
    low, high = _gpu_bounds(result)
    return OutputValue(result.gpus * cost, low and low * cost, high and high * cost)


def _gpu_bounds(result: CapacityResult) -> tuple[int | None, int | None]:
    """Return the GPUs of the fewest and the most replicas; None without a range."""
    bounds = result.replica_bounds
    if bounds is None or None in bounds:
        return None, None
    low, high = (dataclasses.replace(result, replicas=count).gpus for count in bounds)
    return low, high


def _read_requests_per_replica(result: CapacityResult) -> OutputValue:
    if result.settled is None:
        return _value_if_served(None)
    most = int(result.profile.most)  # A part of a request fits on average, not at a time.
    return OutputValue(min(round(result.settled.batch, 1), max(1, most)))


def _most_requests(result: CapacityResult) -> OutputValue:
    """Return the requests that fit at their mean length, and at their whole one in a note."""
    profile, requests = result.profile, result.profile.traffic.requests
    most, full = (max(0, int(n)) for n in (profile.most, profile.max_reserved_batch))
    if most == full:
        return OutputValue(most)
    mean = format_number(round(profile.traffic.mean_context))
    whole = format_number(requests.prompt + requests.answer)
    note = f"Of {mean} tokens on average; {format_number(full)} of {whole}."
    return OutputValue(most, note=note)


def _million_tokens_cost(result: CapacityResult, with_prompts: bool = False) -> OutputValue:
    """Return the cost of a million output tokens, or of all tokens, prompts included."""
    price = typed_or_list_price(result.profile.placed.gpu, result.inputs.cost_per_gpu_hour)
    if price is None:
        return OutputValue(None, note=UNKNOWN)
    if result.gpus is None or not result.output_token_rate:
        return _value_if_served(None)
    rate = result.output_token_rate
    if with_prompts:
        rate *= 1 + result.inputs.prompt_tokens / result.inputs.output_tokens
    cost = usd_per_million_tokens(rate, result.gpus, price)
    if result.inputs.requests_per_second:
        low, high = (n and cost * n / result.gpus for n in _gpu_bounds(result))
        return OutputValue(cost, low, high)
    return modeled_time(result.measurements.error_interval_name("throughput"), cost)


OUTPUTS: tuple[OutputSpec[CapacityResult], ...] = (
    OutputSpec("fits", "Keeps up", better="more", read=_met),
    _count_output("replicas", "Replicas", ""),
    OutputSpec("prefill_replicas", "Prefill replicas", better="less", read=_prefill_replicas),
    _count_output("gpus", "GPUs", "GPU", primary=True),
    _count_output("nodes", "Nodes", "node"),
    *(
        _latency_output("ttft", "time to first token", name, share)
        for name, share in SHARES.items()
    ),
    *(
        _latency_output("tpot", "time per output token", name, share)
        for name, share in SHARES.items()
    ),
    _rate_output(
        "throughput", "Output tokens per second", "token/s", lambda r: r.output_token_rate
    ),
    _rate_output(
        "requests_per_second", "Requests per second", "request/s", lambda r: r.request_rate
    ),
    OutputSpec(
        "max_rate", "Most requests per second", "request/s", "more", _max_rate, modeled=True
    ),
    OutputSpec(
        "saturated_throughput",
        "Output tokens per second, saturated",
        "token/s",
        "more",
        _saturated_throughput,
        modeled=True,
    ),
    OutputSpec(
        "utilisation",
        "Load",
        "%",
        read=_utilization,
    ),
    OutputSpec(
        "concurrent",
        "Requests at once on a replica",
        read=_read_requests_per_replica,
    ),
    OutputSpec(
        "max_concurrent",
        "Most requests in memory of a replica",
        better="more",
        read=_most_requests,
    ),
    OutputSpec("transfer", "Transfer of a prompt's cache", "s", "less", _transfer, modeled=True),
    OutputSpec(
        "cost_per_month", "Cost per month", "USD/month", "less", _monthly_cost, modeled=True
    ),
    OutputSpec(
        "cost_per_million_tokens",
        "Cost per million output tokens",
        "USD/Mtoken",
        "less",
        _million_tokens_cost,
        modeled=True,
    ),
    OutputSpec(
        "cost_per_million_tokens_of_both",
        "Cost per million tokens of prompts and answers",
        "USD/Mtoken",
        "less",
        lambda r: _million_tokens_cost(r, with_prompts=True),
        modeled=True,
    ),
)
