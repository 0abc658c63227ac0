"""Inputs about clusters and runs that several estimates ask for in the same words."""

from typing import Any

from app.estimator.inputs import ask
from app.estimator.serving import engine
from app.estimator.timing.plan import SOFTWARE

NETWORKS = (("infiniband", "InfiniBand or RoCE"), ("efa", "AWS EFA"))
NUMBER_FORMATS = (
    ("bf16", "BF16"),
    ("fp8", "FP8"),
    ("mxfp8", "MXFP8"),
    ("nvfp4", "NVFP4"),
)


def ask_gpus(default: int, topic: str = "parallelism") -> Any:
    """Ask for all GPUs of a job."""
    return ask(
        default,
        "GPUs",
        unit="GPU",
        minimum=1,
        maximum=1_000_000,
        help="All GPUs of the job.",
        group="Hardware",
        topic=topic,
    )


def ask_network_rate() -> Any:
    """Ask for the network of one GPU in one direction."""
    return ask(
        50e9,
        "Network per GPU",
        unit="B/s",
        typed_unit="Gbit/s",
        minimum=1e8,
        maximum=1e12,
        help="Rate of one GPU's adapter in one direction: 400 Gbit/s is NDR.",
        group="Network",
        topic="interconnects",
    )


def ask_network() -> Any:
    """Ask for the kind of network between nodes."""
    return ask(
        "infiniband",
        "Network",
        choices=NETWORKS,
        help="What joins the nodes; it decides the latency.",
        group="Network",
        topic="interconnects",
        advanced=True,
    )


def ask_domain() -> Any:
    """Ask for the GPUs that the inner link joins."""
    return ask(
        None,
        "GPUs per link domain",
        kind="count",
        unit="GPU",
        minimum=1,
        maximum=576,
        help="GPUs joined by NVLink or its like; left empty: 8, or 72 in NVL72.",
        group="Network",
        topic="interconnects",
        advanced=True,
    )


def ask_degree(
    label: str,
    help_text: str,
    term: str,
    maximum: int = 4096,
    *,
    advanced: bool = False,
) -> Any:
    """Ask for a degree of parallelism."""
    return ask(
        1,
        label,
        minimum=1,
        maximum=maximum,
        help=help_text,
        term=term,
        group="Layout",
        topic="parallelism",
        advanced=advanced,
    )


def ask_pipeline(maximum: int = 4096) -> Any:
    """Ask for the stages of a pipeline."""
    words = "Stages that the layers are divided into."
    return ask_degree("Pipeline parallel", words, "pipeline-parallelism", maximum)


def ask_context_parallel(maximum: int = 4096) -> Any:
    """Ask for the GPUs that divide a sequence."""
    words = "GPUs that divide each sequence."
    term = "context-parallelism"
    return ask_degree("Context parallel", words, term, maximum, advanced=True)


def ask_experts(maximum: int = 4096) -> Any:
    """Ask for the GPUs that divide the experts."""
    words = "GPUs that divide the experts of a layer."
    term = "expert-parallelism"
    return ask_degree("Expert parallel", words, term, maximum, advanced=True)


def ask_sequence_parallel() -> Any:
    """Ask whether the norms are divided as well."""
    return ask(
        True,
        "Sequence parallel",
        help="Divides norms as well when tensor parallel is above 1.",
        group="Layout",
        topic="parallelism",
        advanced=True,
    )


def ask_number_format(*, group: str = "Recipe", advanced: bool = False) -> Any:
    """Ask for the format of the products in training."""
    return ask(
        "bf16",
        "Number format",
        choices=NUMBER_FORMATS,
        help="Format of the matrix products; attention and the head stay in 16 bit.",
        term="mixed-precision",
        group=group,
        topic="number-formats",
        advanced=advanced,
    )


def ask_recompute(default: str = "selective") -> Any:
    """Ask for what is computed again in the backward pass."""
    return ask(
        default,
        "Recomputation",
        choices=(
            ("none", "None"),
            ("selective", "Selective: the core of attention"),
            ("operators", "Every second product"),
            ("full", "Full: every layer from its input"),
        ),
        help="What is computed again in the backward pass instead of kept.",
        term="activation-checkpointing",
        group="Recipe",
        topic="training-memory",
    )


def ask_training_software() -> Any:
    """Ask for the training software, which decides what is fused and hidden."""
    return ask(
        "tuned",
        "Software",
        choices=tuple((key, value.label) for key, value in SOFTWARE.items()),
        help="Which measured runs the speed is modeled on.",
        group="Recipe",
        topic="parallelism",
        advanced=True,
    )


def ask_engine() -> Any:
    """Ask for the inference engine."""
    return ask(
        "vllm",
        "Engine",
        choices=engine.engines(),
        help="Which measured engine the overheads are modeled on.",
        group="Engine",
        topic="batching-and-latency",
        advanced=True,
    )


def ask_tokens(default: int, label: str, help_text: str, **declared: Any) -> Any:
    """Ask for a number of tokens of a request."""
    return ask(
        default,
        label,
        unit="token",
        minimum=1,
        maximum=100_000_000,
        help=help_text,
        group="Load",
        topic="batching-and-latency",
        **declared,
    )


def ask_sequence() -> Any:
    """Ask for the length of a training sequence."""
    return ask(
        4096,
        "Sequence",
        unit="token",
        minimum=1,
        maximum=10_000_000,
        help="Tokens of one training sequence.",
        group="Batch",
        topic="training-memory",
    )


def ask_price() -> Any:
    """Ask for the price of a GPU."""
    return ask(
        2.5,
        "Price",
        unit="USD/h",
        typed_unit="USD/h",
        minimum=0.0,
        maximum=1e4,
        help="Of one GPU for an hour. An example of 2024; write what you pay.",
        group="Cost",
        topic="cluster-components",
    )


def ask_training_tokens(help_text: str) -> Any:
    """Ask for the tokens of a training run."""
    return ask(
        1e12,
        "Training tokens",
        unit="token",
        minimum=1,
        maximum=1e18,
        help=help_text,
        group="Model",
        topic="training-versus-inference",
    )


def ask_pue(group: str, topic: str) -> Any:
    """Ask what the site draws for each watt of its machines."""
    return ask(
        1.3,
        "PUE",
        minimum=1.0,
        maximum=5.0,
        help="Power of the site over that of its machines.",
        term="pue",
        group=group,
        topic=topic,
        advanced=True,
    )


def ask_usable_share(*, advanced: bool = False) -> Any:
    """Ask for the share of memory that an engine may take."""
    return ask(
        0.9,
        "Usable share of memory",
        typed_unit="%",
        minimum=0.1,
        maximum=1.0,
        help="The share of GPU memory that the engine may take.",
        group="Engine",
        topic="inference-memory",
        advanced=advanced,
    )
