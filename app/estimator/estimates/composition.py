"""Estimates that are made of others: sections, their inputs, and figures read from them."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from app.estimator.common_inputs import input_error
from app.estimator.estimates.cost import EXAMPLE_GPU, EXAMPLE_PRICE
from app.estimator.estimates.power_cooling import PowerCoolingInputs
from app.estimator.hardware.catalog import Accelerator, System, find_accelerator, list_systems
from app.estimator.hardware.prices import typed_or_list_price
from app.estimator.inputs import InvalidInputsError, parse_inputs
from app.estimator.registry import require_estimate
from app.estimator.result import (
    Better,
    Estimate,
    Figure,
    OutputSpec,
    OutputValue,
    Status,
    SubEstimate,
)

NOTE = (
    "Every section is a calculator's result: its link opens the calculator with the same "
    "inputs, where its working and its assumptions are."
)


@dataclasses.dataclass(frozen=True, slots=True)
class ComposedResult:
    """What each calculator says, and the sections that are left out, with the reason."""

    sections: tuple[SubEstimate, ...]
    missing: Mapping[str, str]

    def find_figure(self, estimate: str, figure: str) -> Figure | None:
        """Return a figure of a section; None if the section is left out."""
        figures = (s.estimate.find_figure(figure) for s in self.sections if s.name == estimate)
        return next(figures, None)

    @property
    def missing_notes(self) -> tuple[str, ...]:
        """Return one note for each reason why sections are left out."""
        headings: dict[str, list[str]] = {}
        for heading, reason in self.missing.items():
            headings.setdefault(reason, []).append(heading)
        return tuple(
            f"Left out: {', '.join(names)}. {reason}" for reason, names in headings.items()
        )

    def worst_status_and_objections(self, ignored_heading: str = "") -> tuple[Status, str]:
        """Return the worst status of the sections, and the headings and verdicts that have it.

        `ignored_heading`: a heading whose tight verdict is no objection.
        """
        for status in ("no", "tight"):
            verdicts = [(s.heading, s.estimate.verdict) for s in self.sections]
            if status == "tight":
                verdicts = [(name, v) for name, v in verdicts if name != ignored_heading]
            objections = [f"{name}: {v.lead}" for name, v in verdicts if v.status == status]
            if objections:
                return status, " ".join(objections)
        return "fits", ""


def section_output(
    name: str,
    label: str,
    unit: str,
    better: Better,
    source: tuple[str, str],
    *,
    modeled: bool = False,
    primary: bool = False,
) -> OutputSpec[Any]:
    """Declare an output that repeats a figure of a section; `source`: estimate and figure."""
    read = _section_figure_reader(*source)
    return OutputSpec(name, label, unit, better, read, modeled=modeled, primary=primary)


def _section_figure_reader(estimate: str, figure: str) -> Callable[[ComposedResult], OutputValue]:
    def read(result: ComposedResult) -> OutputValue:
        section_figure = result.find_figure(estimate, figure)
        if section_figure is None:
            return OutputValue(None, note="This section is left out.", applies=False)
        return OutputValue(
            section_figure.value,
            section_figure.low,
            section_figure.high,
            section_figure.note,
            section_figure.applies,
        )

    return read


class SectionComposer:
    """Asks the calculators one after another, each with what those before it found."""

    def __init__(self, inputs: Any) -> None:
        self.inputs = inputs
        self.sections: list[SubEstimate] = []
        self.missing: dict[str, str] = {}

    def select_inputs(self, *names: str) -> dict[str, Any]:
        """Return inputs of the composed estimate that a section has under the same names."""
        return {name: getattr(self.inputs, name) for name in names}

    def add(self, heading: str, name: str, values: Mapping[str, Any]) -> Estimate:
        """Add a section; raises InvalidInputsError that names an input of the composed estimate."""
        section = self.compute_section(heading, name, values)
        self.sections.append(section)
        return section.estimate

    def try_to_add(self, heading: str, name: str, values: Mapping[str, Any]) -> Estimate | None:
        """Add a section, or note why it is left out."""
        try:
            return self.add(heading, name, values)
        except InvalidInputsError as error:
            self.missing[heading] = error.problems[0].message
            return None

    def compute_section(self, heading: str, name: str, values: Mapping[str, Any]) -> SubEstimate:
        """Return a section without adding it."""
        entry = require_estimate(name)
        try:
            inputs = parse_inputs(entry.inputs, values)
            return SubEstimate(heading, name, inputs, entry.compute(inputs))
        except InvalidInputsError as error:
            problem = error.problems[0]
            input_names = {field.name for field in dataclasses.fields(self.inputs)}
            field = problem.field if problem.field in input_names else "gpu"
            raise input_error(field, problem.value, problem.message) from None

    def find_section(self, heading: str) -> SubEstimate:
        """Return the section under a heading."""
        return next(section for section in self.sections if section.heading == heading)


def first_system_with_gpu(gpu: Accelerator) -> System | None:
    """Return the first system of the catalog with this GPU."""
    return next((s for s in list_systems() if s.accelerator == gpu.id), None)


def no_cluster_reason(gpu: Accelerator, system: System | None, gpus: int) -> str:
    """Return why no cluster is planned: the job fits one system, or none is known; else empty."""
    if system is None:
        return f"No system of the catalog has the {gpu.name}: choose a system."
    if gpus < system.gpus:
        return f"It takes {gpus} of the {system.gpus} GPUs of one {system.name}."
    return ""


def add_power_section(composer: SectionComposer, system: System, nodes: int) -> Estimate | None:
    """Add power and racks of whole systems.

    A rack-sized system raises the default limit of a rack to its own power.
    """
    values = composer.select_inputs("rack_limit", "site_limit", "pue")
    default_limit = PowerCoolingInputs().rack_limit
    if values["rack_limit"] == default_limit and system.power and system.power > default_limit:
        values["rack_limit"] = system.power
    return composer.try_to_add(
        "Power", "power-cooling", {**values, "system": system.id, "nodes": nodes}
    )


def add_cost_section(
    composer: SectionComposer, system: System, gpus: int, workload_inputs: Mapping[str, Any]
) -> None:
    """Add renting and owning; `workload_inputs`: the run or the rate that is paid for."""
    gpu = find_accelerator(composer.inputs.gpu)
    rent = typed_or_list_price(gpu, composer.inputs.usd_per_gpu_hour)
    if rent is None:
        composer.missing["Cost"] = f"No list price of the {gpu.name} is known: write a price."
        return
    if composer.inputs.price == EXAMPLE_PRICE and gpu.id != EXAMPLE_GPU:
        composer.missing["Cost"] = (
            f"No price to buy the {gpu.name} is known: write one to compare owning with renting."
        )
        return
    values = {
        **composer.select_inputs("utilisation", "price", "electricity", "pue"),
        **workload_inputs,
    }
    if system.power:
        values["power"] = system.power / system.gpus
    composer.try_to_add("Cost", "cost", {**values, "gpus": gpus, "rent": rent})
