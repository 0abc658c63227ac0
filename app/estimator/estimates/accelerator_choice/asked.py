"""What `accelerator-choice` asks for."""

import dataclasses

from app.estimator.inputs import ask
from app.estimator.job_inputs import ask_number_format
from app.estimator.shared_inputs import ask_cache, ask_context, ask_model, ask_weights
from app.estimator.timing.hours import LOST

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
class AcceleratorChoice:
    """The job, what an accelerator must and must not be, and what counts most."""

    job: str = ask(
        "serving",
        "Job",
        choices=JOBS,
        help="Answering requests, or training all parameters.",
        group="Job",
        topic="training-versus-inference",
    )
    model: str = ask_model()
    rank: str = ask(
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
    concurrent: int = ask(
        16,
        "Concurrent sequences",
        unit="sequence",
        minimum=1,
        maximum=1_000_000,
        help="Sequences that one copy of the model answers at the same time.",
        term="batch-size",
        group="Load",
        topic="batching-and-latency",
    )
    slowest: float = ask(
        0.05,
        "Slowest token",
        unit="s",
        typed_unit="ms",
        minimum=1e-4,
        maximum=100.0,
        help="Time per output token that is still good enough.",
        term="time-per-output-token-tpot",
        group="Load",
        topic="batching-and-latency",
    )
    tokens: float = ask(
        1e12,
        "Tokens to train on",
        unit="token",
        minimum=1.0,
        maximum=1e18,
        help="For training.",
        group="Training",
        topic="training-memory",
        advanced=True,
    )
    days: float = ask(
        30 * 86400.0,
        "Time for the training",
        unit="s",
        typed_unit="days",
        minimum=3600.0,
        maximum=1e9,
        help="Within which the tokens have to be done.",
        group="Training",
        topic="training-memory",
        advanced=True,
    )
    number_format: str = ask_number_format(group="Training", advanced=True)
    lost: float = ask(
        LOST,
        "Time lost",
        typed_unit="%",
        minimum=0.0,
        maximum=0.9,
        help="Share of the booked time that is no progress: restarts, checkpoints, "
        "evaluation, slower steps.",
        group="Training",
        topic="cluster-components",
        advanced=True,
    )
    only: str | None = ask(
        None,
        "Only this one",
        kind="gpu",
        help="What one GPU would take, rare ones too; left empty: all are ranked.",
        group="Accelerator",
        topic=TOPIC,
        advanced=True,
    )
    vendor: str = ask(
        "any",
        "Vendor",
        choices=VENDORS,
        help="Whose GPUs are ranked.",
        group="Accelerator",
        topic=TOPIC,
    )
    form: str = ask(
        "any",
        "Form",
        choices=FORMS,
        help="Cards fit into common servers; modules sit on boards of four or eight.",
        term="sxm",
        group="Accelerator",
        topic=TOPIC,
    )
    cooling: str = ask(
        "any",
        "Cooling",
        choices=COOLING,
        help="What the building can cool.",
        term="air-cooling",
        group="Accelerator",
        topic="power-and-cooling",
    )
    most_power: float | None = ask(
        None,
        "Power of one, at most",
        unit="W",
        minimum=10.0,
        maximum=1e5,
        help="Left empty: any.",
        term="tdp",
        group="Accelerator",
        topic="power-and-cooling",
        advanced=True,
    )
    total_power: float | None = ask(
        None,
        "Power of all, at most",
        unit="W",
        typed_unit="kW",
        minimum=10.0,
        maximum=1e9,
        help="Of the accelerators together, for example what a rack has left.",
        group="Accelerator",
        topic="power-and-cooling",
        advanced=True,
    )
    least_memory: float | None = ask(
        None,
        "Memory of one, at least",
        unit="B",
        typed_unit="GB",
        minimum=1e6,
        maximum=1e13,
        help="Left empty: whatever the job needs.",
        group="Accelerator",
        topic=TOPIC,
        advanced=True,
    )
    rare: bool = ask(
        False,
        "Also rare, workstation and consumer cards",
        help="Export versions, cards of one cloud, cards whose license keeps them out "
        "of data centers.",
        group="Accelerator",
        topic=TOPIC,
        advanced=True,
    )
    prices: str = ask(
        "",
        "Prices of a GPU-hour",
        kind="text",
        maximum=600,
        help="Your offers, for example: h100 4, h200 5.2, l40s 1.1; none is built in.",
        group="Money",
        topic="on-premises-and-cloud",
        advanced=True,
    )
    budget: float | None = ask(
        None,
        "Budget",
        unit="USD/h",
        minimum=0.001,
        maximum=1e9,
        help="For all GPUs together; needs prices.",
        group="Money",
        topic="on-premises-and-cloud",
        advanced=True,
    )
