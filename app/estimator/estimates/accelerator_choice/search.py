"""Trying the GPUs of the catalog on a job, one after the other."""

import dataclasses
import functools
import math
from collections.abc import Mapping

from app.estimator.estimates.accelerator_choice.asked import AcceleratorChoiceInputs
from app.estimator.estimates.accelerator_choice.terms import (
    gpus,
    objection,
    read_prices,
    sold_by,
)
from app.estimator.estimates.inference_memory.asked import InferenceMemoryInputs
from app.estimator.estimates.inference_memory.compute import GpuMemoryUse, load_of
from app.estimator.hardware.accelerators import Accelerator, find_accelerator
from app.estimator.hardware.networks import fabric_of
from app.estimator.memory.sharding import tensor_parallel_choices
from app.estimator.models.architecture import Architecture
from app.estimator.models.formats import format_of
from app.estimator.models.lookup import find_model
from app.estimator.serving.engine import ServingSetup, unpacked
from app.estimator.serving.step import decode_time, place_model
from app.estimator.timing.hours import hours_per_token
from app.estimator.units import format_value


@dataclasses.dataclass(frozen=True, slots=True)
class GpuCandidate:
    """An accelerator that does the job.

    `need` is memory on each [B]; `seconds` the time per output token in serving
    [s] and `hours` all GPU-hours in training [h]; `power` all of them [W].
    """

    gpu: Accelerator
    count: int
    need: float
    seconds: float | None
    hours: float | None
    power: float | None
    price: float | None

    @property
    def cost(self) -> float | None:
        """Price of an hour of all of them [USD/h]."""
        return None if self.price is None else self.price * self.count

    @property
    def bill(self) -> float | None:
        """What is compared by cost: the training [USD], or an hour of serving [USD/h].

        An hour of few slow GPUs is cheap, but the training takes more of them.
        """
        if self.price is None or self.hours is None:
            return self.cost
        return self.price * self.hours


@dataclasses.dataclass(frozen=True, slots=True)
class GpuRanking:
    """Candidates, best first, and all others with the reason against them."""

    model: Architecture
    found: tuple[GpuCandidate, ...]
    against: tuple[tuple[Accelerator, str], ...]
    loads: Mapping[int, GpuMemoryUse]


USABLE = 0.9  # of the memory may an engine take


# Training states of mixed-precision AdamW [B per parameter], and the share of the
# memory for them; the rest holds activations.
STATES = 16.0


FOR_STATES = 0.6


_SERVER = 8


def search(asked: AcceleratorChoiceInputs) -> GpuRanking:
    """Try every GPU; BadInputs for prices that cannot be read or are missing."""
    model = find_model(asked.model)
    prices = read_prices(asked)
    loads = _loads_by_repacking(asked, model) if asked.job == "serving" else {}
    form = format_of(model, asked.weights)
    found: list[GpuCandidate] = []
    against: list[tuple[Accelerator, str]] = []
    for gpu in gpus():
        why = objection(asked, gpu)
        load = loads.get(unpacked(gpu, form), {})
        tried = why or _tried(asked, model, gpu, load, prices.get(gpu.id))
        if isinstance(tried, str):
            against.append((gpu, tried))
        else:
            found.append(tried)
    found.sort(key=lambda c: _order(asked.rank, c))
    best = loads.get(unpacked(found[0].gpu, form), {}) if found else {}
    return GpuRanking(model, tuple(found), tuple(against), best)


def _loads_by_repacking(
    asked: AcceleratorChoiceInputs, model: Architecture
) -> dict[bool, dict[int, GpuMemoryUse]]:
    """Loads of cards that unpack the weights to 16 bit, and of those that do not."""
    form = format_of(model, asked.weights)
    examples = {unpacked(gpu, form): gpu for gpu in gpus()}
    return {wide: _loads(asked, model, gpu) for wide, gpu in examples.items()}


def _loads(
    asked: AcceleratorChoiceInputs, model: Architecture, gpu: Accelerator
) -> dict[int, GpuMemoryUse]:
    """What each GPU has to hold, by the number that share the model."""
    memory = InferenceMemoryInputs(
        model=asked.model,
        gpu=gpu.id,
        weights=asked.weights,
        cache=asked.cache,
        context=asked.context,
        concurrent=asked.concurrent,
    )
    return {n: load_of(model, memory, n) for n in tensor_parallel_choices(model, 72)}


def _order(rank: str, one: GpuCandidate) -> tuple[float, ...]:
    """What the ranking compares, unknown values last."""
    power = math.inf if one.power is None else one.power
    work = one.seconds if one.hours is None else one.hours
    time = math.inf if work is None else work
    cost = math.inf if one.bill is None else one.bill
    first = {"gpus": one.count, "power": power, "speed": time, "cost": cost}[rank]
    return (first, one.count, power, time, -(one.gpu.launch_year or 0))


def _tried(
    asked: AcceleratorChoiceInputs,
    model: Architecture,
    gpu: Accelerator,
    loads: Mapping[int, GpuMemoryUse],
    price: float | None,
) -> GpuCandidate | str:
    """The smallest number of GPUs that does the job, or why none does."""
    if asked.budget is not None and price is None:
        return "No price was given for it."
    if asked.job == "training":
        tried = _trained(asked, model, gpu, price)
    else:
        tried = _served(asked, model, gpu, loads, price)
    if isinstance(tried, str):
        return tried
    return _over(asked, tried) or tried


def _over(asked: AcceleratorChoiceInputs, one: GpuCandidate) -> str:
    """Whether all GPUs together are over the power or the budget."""
    count = format_value(one.count, "GPU")
    if asked.total_power is not None:
        if one.power is None:
            return "Its power is not known."
        if one.power > asked.total_power:
            return f"{count} draw {format_value(one.power, 'W')}."
    cost = one.cost
    if asked.budget is not None and cost is not None and cost > asked.budget:
        return f"{count} cost {format_value(cost, 'USD/h')}."
    return ""


def domain_of(gpu: Accelerator) -> int:
    """GPUs that share fast links: 72 in a rack-wide domain, otherwise a server."""
    return 72 if "72" in gpu.interconnect else _SERVER


def board_of(gpu: Accelerator) -> int:
    """How many are bought at once for a large job: a card, a board or a rack."""
    return sold_by(gpu)[-1][0]


def _served(
    asked: AcceleratorChoiceInputs,
    model: Architecture,
    gpu: Accelerator,
    loads: Mapping[int, GpuMemoryUse],
    price: float | None,
) -> GpuCandidate | str:
    limit, most = gpu.capacity * USABLE, domain_of(gpu)
    why = ""
    for count, load in loads.items():
        if count > most:
            break
        if load.total > limit:
            continue
        seconds = token_time(asked, model, gpu, count)
        if seconds is None:
            return "Its 16-bit rate is not published, so its speed is not known."
        if seconds > asked.slowest:
            why = f"{format_value(seconds, 's')} for a token on {count}."
            continue
        power = None if gpu.tdp is None else gpu.tdp * count
        return GpuCandidate(gpu, count, load.total, seconds, None, power, price)
    if why:
        return why
    return f"Does not fit on {most} in one domain."


def token_time(
    asked: AcceleratorChoiceInputs, model: Architecture, gpu: Accelerator, count: int
) -> float | None:
    """Time for one token of every sequence [s]; None where rates are unknown."""
    serving = ServingSetup(
        weights=asked.weights, cache=asked.cache, tensor=count, expert_tensor=count
    )
    try:
        placed = place_model(model, gpu, fabric_of(_joined(gpu.id, count)), serving)
    except ValueError:
        return None
    return decode_time(placed, asked.concurrent, asked.context).total


@functools.lru_cache(maxsize=512)
def _joined(name: str, count: int) -> Accelerator:
    """A GPU with the link that really joins so many: bridges join only pairs."""
    gpu = find_accelerator(name)
    if count > 2 and "bridge" in gpu.interconnect:
        return dataclasses.replace(gpu, nvlink=None)
    return gpu


@functools.lru_cache(maxsize=2048)
def _hours_per_token(model: str, gpu: str, number_format: str, software: str) -> float | None:
    """GPU-hours for one token of a run that loses nothing [h]; None if unknown."""
    try:
        on = _joined(gpu, _SERVER)
        return hours_per_token(find_model(model), on, number_format, software)
    except (ValueError, TypeError):
        return None


def _trained(
    asked: AcceleratorChoiceInputs, model: Architecture, gpu: Accelerator, price: float | None
) -> GpuCandidate | str:
    if gpu.peak(asked.number_format) is None and asked.number_format != "bf16":
        return f"It does not compute in {asked.number_format.upper()}."
    each = _hours_per_token(asked.model, gpu.id, asked.number_format, asked.software)
    if each is None or not math.isfinite(each):
        return "Its 16-bit rate is not published, so its speed is not known."
    hours = each * asked.tokens / (1 - asked.lost)
    room = gpu.capacity * FOR_STATES
    states = model.parameters * STATES
    count = max(1, math.ceil(states / room), math.ceil(hours * 3600 / asked.days))
    board = board_of(gpu)
    count = -(-count // board) * board
    power = None if gpu.tdp is None else gpu.tdp * count
    return GpuCandidate(gpu, count, states / count, None, hours, power, price)
