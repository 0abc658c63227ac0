"""Estimates that are made of others: sections, their inputs, and figures read from them."""

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from app.estimator.common_inputs import HARDWARE, impossible_input_error
from app.estimator.estimates.cost import EXAMPLE_GPU, EXAMPLE_PRICE
from app.estimator.estimates.power_cooling import PowerCoolingInputs
from app.estimator.hardware.catalog import (
    Accelerator,
    System,
    find_accelerator,
    find_system,
    list_systems,
)
from app.estimator.hardware.prices import typed_or_list_price_per_hour
from app.estimator.inputs import InvalidInputsError, input_specs, parse_inputs
from app.estimator.registry import require_estimate
from app.estimator.result import (
    Better,
    Figure,
    OutputSpec,
    OutputValue,
    Status,
    SubEstimate,
)
from app.estimator.units import format_count, format_value

NOTE = (
    "Every section is a calculator's result: its link opens the calculator with the same "
    "inputs, where its working and its assumptions are."
)

system_input = partial(
    HARDWARE.declare_advanced_input_field,
    None,
    "System",
    kind="system",
    help="What the cluster is made of, with this GPU; left empty: the first of the catalog.",
)


class WorstSectionVerdicts(NamedTuple):
    """The worst status of the sections, and the headings and verdicts that have it."""

    status: Status
    headings_and_leads: str


@dataclasses.dataclass(frozen=True, slots=True)
class ComposedResult:
    """What each calculator says, and the sections that are left out, with the reason."""

    sections: tuple[SubEstimate, ...]
    omission_reason_by_section: Mapping[str, str]

    def find_section(self, estimate_name: str) -> SubEstimate | None:
        """Return the section that an estimate computed; None if it is left out."""
        return next(
            (section for section in self.sections if section.estimate_name == estimate_name), None
        )

    def find_figure(self, estimate_name: str, figure_name: str) -> Figure | None:
        section = self.find_section(estimate_name)
        return section.estimate.find_figure(figure_name) if section else None

    @property
    def omission_notes(self) -> tuple[str, ...]:
        """Return one note for each reason why sections are left out."""
        headings: dict[str, list[str]] = {}
        for heading, reason in self.omission_reason_by_section.items():
            headings.setdefault(reason, []).append(heading)
        return tuple(
            f"Left out: {', '.join(names)}. {reason}" for reason, names in headings.items()
        )

    def summarize_worst_sections(self, heading_allowed_tight: str = "") -> WorstSectionVerdicts:
        """Return what the sections object; a tight verdict under `heading_allowed_tight` is none."""
        for status in ("no", "tight"):
            verdicts = [(s.heading, s.estimate.verdict) for s in self.sections]
            if status == "tight":
                verdicts = [(name, v) for name, v in verdicts if name != heading_allowed_tight]
            objections = [f"{name}: {v.lead}" for name, v in verdicts if v.status == status]
            if objections:
                return WorstSectionVerdicts(status, " ".join(objections))
        return WorstSectionVerdicts("fits", "")


LEFT_OUT = OutputValue(None, note="This section is left out.", applies=False)


def declare_section_output(
    name: str,
    label: str,
    unit: str,
    better: Better,
    section_estimate: str,
    section_figure: str = "",
    *,
    is_modeled: bool = False,
    is_primary: bool = False,
) -> OutputSpec[Any]:
    """Declare an output that repeats a figure of a section, the one of its own name by default."""

    def read(result: ComposedResult) -> OutputValue:
        repeated = result.find_figure(section_estimate, section_figure or name)
        if repeated is None:
            return LEFT_OUT
        return OutputValue(
            repeated.value,
            repeated.low,
            repeated.high,
            repeated.note,
            repeated.applies,
            repeated.unbounded,
        )

    return OutputSpec(name, label, unit, better, read, modeled=is_modeled, primary=is_primary)


class SectionComposer:
    """Asks the calculators one after another, each with what those before it found."""

    def __init__(self, inputs: Any) -> None:
        self.inputs = inputs
        self._values = {f.name: getattr(inputs, f.name) for f in dataclasses.fields(inputs)}
        self.sections: list[SubEstimate] = []
        self.omission_reason_by_section: dict[str, str] = {}

    def add_section(
        self, heading: str, estimate_name: str, typed_values: Mapping[str, Any]
    ) -> SubEstimate:
        """Add a section; raises InvalidInputsError that names an input of the composed estimate."""
        section = self.compute_section(heading, estimate_name, typed_values)
        self.sections.append(section)
        return section

    def add_section_or_note_omission(
        self, heading: str, estimate_name: str, typed_values: Mapping[str, Any]
    ) -> SubEstimate | None:
        try:
            return self.add_section(heading, estimate_name, typed_values)
        except InvalidInputsError as error:
            self.omission_reason_by_section[heading] = error.problems[0].message
            return None

    def compute_section(
        self, heading: str, estimate_name: str, typed_values: Mapping[str, Any]
    ) -> SubEstimate:
        """Return a section without adding it.

        Inputs that it has under the same name as the composed estimate are those of the latter;
        `typed_values` are the others, and those that differ.
        """
        entry = require_estimate(estimate_name)
        with self.map_section_errors_to_own_inputs():
            inputs = self.merge_section_inputs_with_own(estimate_name, typed_values)
            return SubEstimate(heading, estimate_name, inputs, entry.compute(inputs))

    def merge_section_inputs_with_own(self, estimate_name: str, values: Mapping[str, Any]) -> Any:
        inputs_type = require_estimate(estimate_name).inputs_type
        own_type: type = type(self.inputs)
        specs, own = input_specs(inputs_type), input_specs(own_type)
        shared = {
            name: value
            for name, value in self._values.items()
            if name in specs and specs[name].quantity == own[name].quantity
        }
        # An emptied input is no value, where a missing one is the default.
        emptied = {name: "" for name in shared if shared[name] is None and specs[name].clearable}
        return parse_inputs(inputs_type, {**shared, **emptied, **values})

    @contextlib.contextmanager
    def map_section_errors_to_own_inputs(self) -> Iterator[None]:
        """Raise the errors of a section anew, with an input of the composed estimate."""
        try:
            yield
        except InvalidInputsError as error:
            problem = error.problems[0]
            field = problem.field if problem.field in self._values else "gpu"
            raise impossible_input_error(field, problem.value, problem.message) from None


def find_typed_or_first_system(gpu: Accelerator, typed_system: str | None) -> System | None:
    """Return the system `typed_system`, the first with the GPU without one; None if none has the GPU.

    Raises InvalidInputsError if the GPUs of the named system are others.
    """
    if not typed_system:
        return first_system_with_gpu(gpu)
    system = find_system(typed_system)
    if not _contains_gpu(system, gpu):
        own = find_accelerator(system.accelerator).name
        usable = [s.name for s in list_systems() if _contains_gpu(s, gpu)]
        choice = f"{', '.join(usable)}, or none" if usable else "none, as no system here has it"
        message = f"The {system.name} has the {own}, not the {gpu.name}: choose {choice}."
        raise impossible_input_error("system", typed_system, message)
    return system


def _contains_gpu(system: System, gpu: Accelerator) -> bool:
    return gpu.id in {system.accelerator, *system.other_accelerators}


def first_system_with_gpu(gpu: Accelerator) -> System | None:
    return next((s for s in list_systems() if s.accelerator == gpu.id), None)


def find_reason_for_no_cluster(gpu: Accelerator, system: System | None, gpus: int) -> str:
    """Return why no cluster is planned: the job fits one system, or none is known; else empty."""
    if system is None:
        unknown = f"No system of the catalog has the {gpu.name}, so its servers are not known."
        return f"{unknown} {_describe_power_of_gpus(gpu, gpus)}".strip()
    if gpus < system.gpus:
        return f"It takes {gpus} of the {system.gpus} GPUs of one {system.name}."
    return ""


def _describe_power_of_gpus(gpu: Accelerator, gpus: int) -> str:
    if gpu.tdp is None:
        return ""
    power = format_value(gpus * gpu.tdp, "W")
    return f"{format_count(gpus, 'GPU')} alone: at most {power}, by their TDP."


def add_network_section(
    composer: SectionComposer, system: System, nodes: int
) -> SubEstimate | None:
    values = {"system": system.id, "nodes": nodes}
    return composer.add_section_or_note_omission("Network", "fabric", values)


def add_power_section(
    composer: SectionComposer,
    system: System,
    nodes: int,
    network: SubEstimate | None,
    **changed_inputs: Any,
) -> SubEstimate | None:
    """Add power and racks of whole systems, with the switches of their network if those draw more.

    The usual share of network and storage is too little for a small cluster's switches.
    """
    if system.power is None:
        gpu = find_accelerator(composer.inputs.gpu)
        alone = _describe_power_of_gpus(gpu, nodes * system.gpus)
        reason = f"The highest power of the {system.name} is not known. {alone}"
        composer.omission_reason_by_section["Power"] = reason.strip()
        return None
    values = {"system": system.id, "nodes": nodes, **changed_inputs}
    if network:
        switches, storage_switches, power = (
            float(network.estimate[name].value or 0)
            for name in ("switches", "storage_switches", "power")
        )
        all_power = power * (1 + storage_switches / switches) if switches else 0.0
        share = math.ceil(100 * all_power / (nodes * system.power)) / 100
        values["other"] = max(PowerCoolingInputs().other, share)
    return composer.add_section_or_note_omission("Power", "power-cooling", values)


def add_cost_section(
    composer: SectionComposer, system: System, gpus: int, workload_inputs: Mapping[str, Any]
) -> None:
    """Add renting and owning; `workload_inputs`: the run or the rate that is paid for.

    A rented hour costs its price, as it does in the other sections: no data is moved out.
    """
    gpu = find_accelerator(composer.inputs.gpu)
    rent = typed_or_list_price_per_hour(gpu, composer.inputs.usd_per_gpu_hour)
    if rent is None:
        composer.omission_reason_by_section["Cost"] = (
            f"No list price of the {gpu.name} is known: write a price."
        )
        return
    if composer.inputs.price == EXAMPLE_PRICE and gpu.id != EXAMPLE_GPU:
        composer.omission_reason_by_section["Cost"] = (
            f"No price to buy the {gpu.name} is known: write one to compare owning with renting."
        )
        return
    values = {**workload_inputs, "gpus": gpus, "rent": rent, "egress": 0.0}
    if system.power:
        values["power"] = system.power / system.gpus
    composer.add_section_or_note_omission("Cost", "cost", values)
