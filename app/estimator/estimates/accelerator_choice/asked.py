"""What `accelerator-choice` asks for."""

import dataclasses

from app.estimator.inputs import InputGroup, input_field
from app.estimator.shared_inputs import (
    LOAD,
    ask_cache,
    ask_context,
    ask_model,
    ask_number_format,
    ask_training_software,
    ask_weights,
)
from app.estimator.timing.hours import LOST, USUAL

_TRAINING = InputGroup("Training", "training-memory")
_ACCELERATOR = InputGroup("Accelerator", "cluster-components")
_MONEY = InputGroup("Money", "on-premises-and-cloud")

RANKS = (
    ("gpus", "Fewest GPUs"),
    ("power", "Least power"),
    ("speed", "Fastest"),
    ("cost", "Cheapest"),
)

JOBS = (("serving", "Serving"), ("training", "Training"))

VENDORS = (("any", "Any"), ("NVIDIA", "NVIDIA"), ("AMD", "AMD"))

TOPIC = "cluster-components"

FORMS = (("any", "Any"), ("card", "PCIe cards"), ("module", "SXM and OAM modules"))

COOLING = (("any", "Any"), ("air", "Air only"))


@dataclasses.dataclass(frozen=True, slots=True)
class AcceleratorChoiceInputs:
    """The job, what an accelerator must and must not be, and what counts most."""

    job: str = input_field(
        "serving",
        "Job",
        choices=JOBS,
        help="Answering requests, or training all parameters.",
        group="Job",
        topic="training-versus-inference",
    )
    model: str = ask_model()
    rank: str = input_field(
        "gpus",
        "Best is",
        choices=RANKS,
        help="What the ranking looks at first.",
        group="Job",
        topic=TOPIC,
    )
    weights: str = ask_weights()
    cache: str = ask_cache()
    context: int = ask_context()
    concurrent: int = LOAD.ask(
        16,
        "Concurrent sequences",
        unit="sequence",
        minimum=1,
        maximum=1_000_000,
        help="Sequences that one copy of the model answers at the same time.",
        term="batch-size",
    )
    slowest: float = LOAD.ask(
        0.05,
        "Slowest token",
        unit="s",
        typed_unit="ms",
        minimum=1e-4,
        maximum=100.0,
        help="Time per output token that is still good enough.",
        term="time-per-output-token-tpot",
    )
    tokens: float = _TRAINING.ask(
        1e12,
        "Tokens to train on",
        unit="token",
        minimum=1.0,
        maximum=1e18,
        help="For training.",
        advanced=True,
    )
    days: float = _TRAINING.ask(
        30 * 86400.0,
        "Time for the training",
        unit="s",
        typed_unit="days",
        minimum=3600.0,
        maximum=1e9,
        help="Within which the tokens have to be done.",
        advanced=True,
    )
    number_format: str = ask_number_format(_TRAINING, advanced=True)
    software: str = ask_training_software(_TRAINING, (USUAL, "Usual for the model"), default=USUAL)
    lost: float = _TRAINING.ask(
        LOST,
        "Time lost",
        typed_unit="%",
        minimum=0.0,
        maximum=0.9,
        help="Share of the booked time that is no progress: restarts, checkpoints, "
        "evaluation, slower steps.",
        topic="cluster-components",
        advanced=True,
    )
    only: str | None = _ACCELERATOR.ask(
        None,
        "Only this one",
        kind="gpu",
        help="What one GPU would take, rare ones too; left empty: all are ranked.",
        advanced=True,
    )
    vendor: str = _ACCELERATOR.ask(
        "any",
        "Vendor",
        choices=VENDORS,
        help="Whose GPUs are ranked.",
    )
    form: str = _ACCELERATOR.ask(
        "any",
        "Form",
        choices=FORMS,
        help="Cards fit into common servers; modules sit on boards of four or eight.",
        term="sxm",
    )
    cooling: str = _ACCELERATOR.ask(
        "any",
        "Cooling",
        choices=COOLING,
        help="What the building can cool.",
        term="air-cooling",
        topic="power-and-cooling",
    )
    most_power: float | None = _ACCELERATOR.ask(
        None,
        "Power of one, at most",
        unit="W",
        minimum=10.0,
        maximum=1e5,
        help="Left empty: any.",
        term="tdp",
        topic="power-and-cooling",
        advanced=True,
    )
    total_power: float | None = _ACCELERATOR.ask(
        None,
        "Power of all, at most",
        unit="W",
        typed_unit="kW",
        minimum=10.0,
        maximum=1e9,
        help="Of the accelerators together, for example what a rack has left.",
        topic="power-and-cooling",
        advanced=True,
    )
    least_memory: float | None = _ACCELERATOR.ask(
        None,
        "Memory of one, at least",
        unit="B",
        typed_unit="GB",
        minimum=1e6,
        maximum=1e13,
        help="Left empty: whatever the job needs.",
        advanced=True,
    )
    rare: bool = _ACCELERATOR.ask(
        False,
        "Also rare, workstation and consumer cards",
        help="Export versions, cards of one cloud, cards whose license keeps them out "
        "of data centers.",
        advanced=True,
    )
    prices: str = _MONEY.ask(
        "",
        "Prices of a GPU-hour",
        kind="text",
        maximum=600,
        help="Your offers, for example: h100 4, h200 5.2, l40s 1.1; none is built in.",
        advanced=True,
    )
    budget: float | None = _MONEY.ask(
        None,
        "Budget",
        unit="USD/h",
        minimum=0.001,
        maximum=1e9,
        help="For all GPUs together; needs prices.",
        advanced=True,
    )
