"""The ranking, the reasons against, and what is no GPU, as tables."""

import math

from app.estimator.estimate import ResultTable
from app.estimator.estimates.accelerator_choice.asked import AcceleratorChoiceInputs
from app.estimator.estimates.accelerator_choice.search import STATES, GpuCandidate, GpuRanking
from app.estimator.estimates.accelerator_choice.terms import bought, others
from app.estimator.hardware.accelerators import Accelerator
from app.estimator.models.formats import weight_table
from app.estimator.units import format_number, format_value

_ROWS = 12


_Cell = str | tuple[float, str]


def ranking(asked: AcceleratorChoiceInputs, found: GpuRanking) -> ResultTable:
    """The best candidates, each with what sets it off from the first."""
    best = found.found[0]
    training = asked.job == "training"
    work = "GPU-hours" if training else "Time per token"
    money = "USD" if training else "USD/h"
    priced = any(one.price for one in found.found)
    rows = tuple(
        (
            format_number(place),
            one.gpu.name,
            (float(one.count), ""),
            (float(bought(one.gpu, one.count)[0]), ""),
            (one.need, "B"),
            _work(one),
            _known(one.power, "W"),
            *((_known(one.bill, money),) if priced else ()),
            _against_best(asked, best, one),
        )
        for place, one in enumerate(found.found[:_ROWS], 1)
    )
    cost = (("Training" if training else "Hour"),) if priced else ()
    first = ("Place", "GPU", "Number", "Bought")
    columns = (*first, "Each holds", work, "Power", *cost, "Why")
    return ResultTable("Ranking", columns, rows)


def _work(one: GpuCandidate) -> _Cell:
    if one.hours is not None:
        return (one.hours, "GPU-h")
    return _known(one.seconds, "s")


def _known(value: float | None, unit: str) -> _Cell:
    return "unknown" if value is None else (value, unit)


def _against_best(asked: AcceleratorChoiceInputs, best: GpuCandidate, one: GpuCandidate) -> str:
    """Why a candidate stands where it stands."""
    if one is best:
        if asked.job == "training":
            return {**_FIRST, **_FIRST_TRAINING}[asked.rank]
        return _FIRST[asked.rank]
    if asked.rank == "cost" and one.cost is None:
        return "No price given."
    reasons = []
    if one.count != best.count:
        more = one.count > best.count
        number = format_number(abs(one.count - best.count))
        reasons.append(f"{number} {'more' if more else 'fewer'}")
    if one.power is not None and best.power is not None and one.power != best.power:
        gap = format_value(abs(one.power - best.power), "W")
        reasons.append(f"{gap} {'more' if one.power > best.power else 'less'}")
    ratio = _slower(best, one)
    if ratio and abs(ratio - 1) > 0.02:
        share = format_value(abs(ratio - 1), "%")
        reasons.append(f"{share} {'more' if ratio > 1 else 'less'} time")
    return f"{', '.join(reasons) or 'as good'}."


_FIRST = {
    "gpus": "The fewest that do it.",
    "power": "The least power.",
    "speed": "The fastest.",
    "cost": "The cheapest hour.",
}
_FIRST_TRAINING = {"speed": "The fewest GPU-hours.", "cost": "The cheapest training."}


def _slower(best: GpuCandidate, one: GpuCandidate) -> float | None:
    mine = one.seconds if one.hours is None else one.hours
    first = best.seconds if best.hours is None else best.hours
    return mine / first if mine and first else None


def against_table(found: GpuRanking) -> ResultTable:
    """Every GPU that is left out, and why."""
    rows = tuple((gpu.name, why) for gpu, why in found.against)
    return ResultTable("Left out", ("GPU", "Why not"), rows or (("None", ""),))


def context_table(asked: AcceleratorChoiceInputs, found: GpuRanking) -> ResultTable:
    """Accelerators that are no GPUs: chips for the memory alone, and what is known."""
    if asked.job == "training":
        need = found.model.parameters * STATES
    else:
        need = weight_table(found.model, asked.weights).total
    rows = tuple(_beside(chip, need) for chip in others())
    columns = ("Not a GPU", "For the memory alone", "Memory", "Bandwidth", "Power")
    return ResultTable("Beside the ranking", (*columns, "Not known"), rows)


def _beside(chip: Accelerator, need: float) -> tuple[_Cell, ...]:
    chips: _Cell = "unknown"
    if chip.capacity:
        chips = (float(math.ceil(need / chip.capacity)), "")
    maker = "" if chip.vendor.split()[0] in chip.name else f" ({chip.vendor})"
    return (
        f"{chip.name}{maker}",
        chips,
        _known(chip.capacity or None, "B"),
        _known(chip.memory_bandwidth, "B/s"),
        _known(chip.tdp, "W"),
        _missing(chip),
    )


def _missing(chip: Accelerator) -> str:
    known = {
        "16-bit rate": chip.peak("bf16"),
        "8-bit rate": chip.peak("fp8") or chip.peak("int8"),
        "power": chip.tdp,
    }
    return ", ".join(name for name, value in known.items() if value is None) or "–"
