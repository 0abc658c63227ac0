"""What an accelerator is asked to be, and why one is left out before it is tried."""

import functools
from collections.abc import Mapping

from app.estimator.estimates.accelerator_choice.asked import AcceleratorChoiceInputs
from app.estimator.hardware.accelerators import (
    Accelerator,
    accelerator_id,
    accelerators,
    find_accelerator,
    systems,
)
from app.estimator.models.formats import FORMATS, format_of
from app.estimator.models.lookup import find_model
from app.estimator.shared_inputs import input_error
from app.estimator.units import format_number, format_value, split_number

# What is planned by other rules than GPUs, and so shown beside the ranking.
_OTHER_KINDS = frozenset({"TPU", "TSP / LPU", "LPU", "wafer-scale", "Gaudi", "Trainium"})


_RARE = {
    "a10g": "Sold only inside the instances of one cloud.",
    "h800-sxm-80": "An export version.",
    "h100-sxm-96-hbm2e": "A power-capped version that is hardly sold.",
    "b100-sxm": "Announced, but hardly seen.",
    "rtx-4090": "A consumer card; its license keeps it out of data centers.",
    "rtx-6000-ada": "A workstation card.",
    "rtx-pro-6000-bw-ws": "A workstation card.",
}


@functools.cache
def gpus() -> tuple[Accelerator, ...]:
    """The GPUs of the catalog, which are ranked."""
    return tuple(a for a in accelerators() if a.architecture not in _OTHER_KINDS)


@functools.cache
def others() -> tuple[Accelerator, ...]:
    """Accelerators that are not GPUs, which are shown as context."""
    return tuple(a for a in accelerators() if a.architecture in _OTHER_KINDS)


@functools.cache
def cooling_of(name: str) -> str:
    """`air`, `liquid`, or nothing where the catalog does not know.

    Cards are cooled by air; a module is as the systems that have it.

    >>> cooling_of("h100-sxm5-80"), cooling_of("gb200-gpu"), cooling_of("mi300x")
    ('air', 'liquid', '')
    """
    if is_card(find_accelerator(name)):
        return "air"
    ways = {s.cooling.split()[0] for s in systems() if s.accelerator == name and s.cooling}
    return "air" if "air" in ways else "liquid" if ways else ""


def is_card(gpu: Accelerator) -> bool:
    """Whether it plugs into the PCIe slot of a common server."""
    return gpu.form_factor.startswith("PCIe")


# Modules of which NVIDIA also makes boards of four.
_BOARDS_OF_FOUR = {
    "v100-sxm2-32",
    "a100-sxm4-40",
    "a100-sxm4-80",
    "h100-sxm5-80",
    "h200-sxm5-141",
}


def sold_by(gpu: Accelerator) -> tuple[tuple[int, str], ...]:
    """The units that can be bought, small ones first: cards, boards or racks.

    >>> sold_by(find_accelerator("H200"))
    ((4, 'board'), (8, 'board'))
    >>> [sold_by(find_accelerator(n))[0] for n in ("b300-sxm", "gb200-gpu", "l40s")]
    [(8, 'board'), (72, 'rack'), (1, 'card')]
    """
    if "72-GPU" in gpu.interconnect:
        return ((72, "rack"),)
    if is_card(gpu):
        return ((1, "card"),)
    if gpu.form_factor.startswith("Superchip"):
        return ((1, "module"),)
    four = ((4, "board"),) if gpu.id in _BOARDS_OF_FOUR else ()
    return (*four, (8, "board"))


def bought(gpu: Accelerator, count: int) -> tuple[int, str]:
    """How many come along when so many are needed, and as what.

    >>> bought(find_accelerator("b300-sxm"), 4)
    (8, 'board')
    >>> bought(find_accelerator("gb200-gpu"), 73)
    (144, 'rack')
    """
    units = sold_by(gpu)
    size, word = next((u for u in units if u[0] >= count), units[-1])
    return -(-count // size) * size, word


def named(gpu: Accelerator, count: int) -> str:
    """A number of GPUs as words, with the unit of which they are a part.

    >>> named(find_accelerator("b300-sxm"), 4)
    '4x B300 SXM (Blackwell Ultra), of a board of 8'
    """
    words = f"{format_number(count)}x {gpu.name}"
    whole, unit = bought(gpu, count)
    return words if whole == count else f"{words}, of a {unit} of {whole}"


def objection(asked: AcceleratorChoiceInputs, gpu: Accelerator) -> str:
    """Why a GPU is left out before it is tried; empty if it is not."""
    if asked.only not in {None, gpu.id}:
        return "Another one was asked for."
    checks = (_kind_objection, _limit_objection, _format_objection)
    return next((why for check in checks if (why := check(asked, gpu))), "")


def _kind_objection(asked: AcceleratorChoiceInputs, gpu: Accelerator) -> str:
    if asked.vendor not in {"any", gpu.vendor}:
        return f"Made by {gpu.vendor}."
    rare = "Announced, not sold yet." if gpu.announced else _RARE.get(gpu.id, "")
    if rare and not (asked.rare or asked.only):
        return rare
    if asked.form != "any" and (asked.form == "card") != is_card(gpu):
        return "A module." if asked.form == "card" else "A card."
    if asked.cooling == "air":
        way = cooling_of(gpu.id)
        if way != "air":
            return "Cooled by liquid." if way else "Its cooling is not known here."
    return ""


def _limit_objection(asked: AcceleratorChoiceInputs, gpu: Accelerator) -> str:
    if asked.most_power is not None:
        if gpu.tdp is None:
            return "Its power is not known."
        if gpu.tdp > asked.most_power:
            return f"Draws {format_value(gpu.tdp, 'W')}."
    if not gpu.capacity:
        return "Its memory is not known."
    if asked.least_memory is not None and gpu.capacity < asked.least_memory:
        return f"Has {format_value(gpu.capacity, 'B')}."
    return ""


def _format_objection(asked: AcceleratorChoiceInputs, gpu: Accelerator) -> str:
    form = FORMATS["bf16"]
    if asked.job != "training":
        form = format_of(find_model(asked.model), asked.weights)
    needed = "fp8" if form.math == "fp8" else form.id
    return f"Cannot compute in {form.label}." if gpu.lacks(needed) else ""


def read_prices(asked: AcceleratorChoiceInputs) -> Mapping[str, float]:
    """The prices that were typed [USD/h] by id; BadInputs names what cannot be read.

    Ranking by cost and a budget need at least one.
    """
    prices: dict[str, float] = {}
    for part in filter(None, (p.strip() for p in _parts(asked.prices))):
        name, _, price = part.rpartition(" ") if " " in part else part.rpartition("=")
        try:
            key = accelerator_id(name.strip(" =:"))
            prices[key] = split_number(price.strip(" =:$"))[0]
        except (LookupError, ValueError) as error:
            message = f"“{part}” is not an accelerator and its price: {error.args[0]}"
            raise input_error("prices", part, f"{message.rstrip('.')}.") from None
        if not 0 < prices[key] < 1e6:
            raise input_error("prices", part, f"The price in “{part}” must lie above 0.")
    if not prices and (asked.budget is not None or asked.rank == "cost"):
        what = "Ranking by cost" if asked.rank == "cost" else "A budget"
        raise input_error("prices", asked.prices, f"{what} needs prices, such as h100 4.")
    return prices


def _parts(text: str) -> list[str]:
    return text.replace(";", ",").replace("\n", ",").split(",")
