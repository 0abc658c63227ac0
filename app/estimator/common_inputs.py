"""Inputs that several estimates share: model, GPU, formats, parallelism degrees."""

from typing import Any

from app.estimator.inputs import InputGroup, InputProblem, InvalidInputsError
from app.estimator.models.number_formats import CACHE_CHOICES, PUBLISHED, PUBLISHED_CHOICES
from app.estimator.serving import engine
from app.estimator.training.training_plan import SOFTWARE

MODEL = InputGroup("Model", "training-versus-inference")
HARDWARE = InputGroup("Hardware", "parallelism")
NETWORK = InputGroup("Network", "interconnects")
LAYOUT = InputGroup("Layout", "parallelism")
LOAD = InputGroup("Load", "batching-and-latency")
BATCH = InputGroup("Batch", "training-memory")
RECIPE = InputGroup("Recipe", "training-memory")
ENGINE = InputGroup("Engine", "batching-and-latency")
COST = InputGroup("Cost", "cluster-components")

NETWORKS = (("infiniband", "InfiniBand or RoCE"), ("efa", "AWS EFA"))
NUMBER_FORMATS = (("bf16", "BF16"), ("fp8", "FP8"), ("mxfp8", "MXFP8"), ("nvfp4", "NVFP4"))


def ask_model(default: str = "llama-3.1-70b") -> Any:
    """Declare a model input: a catalog name, a size such as 70B, or a config.json."""
    return MODEL.ask(
        default,
        "Model",
        kind="model",
        help="A model of the catalog, a size such as 70B, or a short config.json.",
        term="parameter",
    )


def ask_gpu(
    default: str = "h100-sxm5-80",
    count_field: str = "",
    offered: tuple[tuple[str, str], ...] = (),
    help: str = "An accelerator of the catalog, for example H100.",  # noqa: A002 - as in `input_field`
    topic: str = "cluster-components",
) -> Any:
    """Declare an accelerator input.

    `8x H100` also sets the count, if `count_field` names the field of the count. `offered`
    limits the list to these ids, with names; by default it is the whole catalog.
    """
    if count_field:
        help = "An accelerator of the catalog, for example H100 or 8x H100."  # noqa: A001
    return HARDWARE.ask(
        default, "GPU", kind="gpu", help=help, topic=topic, count_field=count_field, choices=offered
    )


def ask_weights(default: str = PUBLISHED, *first: tuple[str, str]) -> Any:
    """Declare the number format of the weights; `first` are additional choices."""
    return MODEL.ask(
        default,
        "Weights",
        choices=(*first, *PUBLISHED_CHOICES),
        help="As published: as the checkpoint is quantized, BF16 where it is not. "
        "Quantized formats leave embeddings, output head and norms in 16 bit.",
        term="quantisation",
        topic="number-formats",
    )


def ask_cache(default: str = "bf16") -> Any:
    """Declare the number format of the KV cache."""
    return LOAD.ask(
        default,
        "KV cache",
        choices=CACHE_CHOICES,
        help="Format of the cached keys and values.",
        term="kv-cache",
        topic="number-formats",
    )


def ask_context() -> Any:
    """Declare the tokens of one sequence, prompt and answer together."""
    return LOAD.ask(
        8192,
        "Context",
        unit="token",
        limits=(1, 100_000_000),
        help="Tokens of one sequence, prompt and answer together.",
        term="context-length",
        topic="inference-memory",
    )


def ask_tensor_parallel(default: int = 1, label: str = "Tensor parallel") -> Any:
    """Declare the number of GPUs that share each layer."""
    return HARDWARE.ask(
        default,
        label,
        unit="GPU",
        limits=(1, 1024),
        help="GPUs that share every layer.",
        term="tensor-parallelism",
    )


def ask_gpus(default: int, topic: str = "parallelism") -> Any:
    """Declare the number of all GPUs of a job."""
    return HARDWARE.ask(
        default, "GPUs", unit="GPU", limits=(1, 1_000_000), help="All GPUs of the job.", topic=topic
    )


def ask_network_rate() -> Any:
    """Declare the network rate of one GPU in one direction."""
    return NETWORK.ask(
        50e9,
        "Network per GPU",
        unit="Gbit/s",
        limits=(1e8, 1e12),
        help="Rate of one GPU's adapter in one direction: 400 Gbit/s is NDR.",
    )


def ask_network() -> Any:
    """Declare the kind of network between nodes."""
    return NETWORK.ask_more(
        "infiniband",
        "Network",
        choices=NETWORKS,
        help="What joins the nodes; it decides the latency.",
    )


def ask_domain() -> Any:
    """Declare the number of GPUs that the inner links connect."""
    return NETWORK.ask_more(
        None,
        "GPUs per link domain",
        kind="count",
        unit="GPU",
        limits=(1, 576),
        help="GPUs joined by NVLink or its like; left empty: 8, or 72 in NVL72.",
    )


def ask_degree(
    label: str, help_text: str, term: str, maximum: int = 4096, *, advanced: bool = False
) -> Any:
    """Declare a degree of parallelism."""
    return LAYOUT.ask(1, label, limits=(1, maximum), help=help_text, term=term, advanced=advanced)


def ask_pipeline(maximum: int = 4096) -> Any:
    """Declare the number of pipeline stages."""
    text = "Stages that the layers are divided into."
    return ask_degree("Pipeline parallel", text, "pipeline-parallelism", maximum)


def ask_context_parallel(maximum: int = 4096) -> Any:
    """Declare the number of GPUs that divide a sequence."""
    text = "GPUs that divide each sequence."
    term = "context-parallelism"
    return ask_degree("Context parallel", text, term, maximum, advanced=True)


def ask_experts(maximum: int = 4096) -> Any:
    """Declare the number of GPUs that divide the experts."""
    text = "GPUs that divide the experts of a layer."
    term = "expert-parallelism"
    return ask_degree("Expert parallel", text, term, maximum, advanced=True)


def ask_sequence_parallel() -> Any:
    """Declare whether norms are sharded as well."""
    return LAYOUT.ask_more(
        True, "Sequence parallel", help="Divides norms as well when tensor parallel is above 1."
    )


def ask_number_format(group: InputGroup = RECIPE, *, advanced: bool = False) -> Any:
    """Declare the number format of matrix products in training."""
    return group.ask(
        "bf16",
        "Number format",
        choices=NUMBER_FORMATS,
        help="Format of the matrix products; attention and the head stay in 16 bit.",
        term="mixed-precision",
        topic="number-formats",
        advanced=advanced,
    )


def ask_recompute(default: str = "selective") -> Any:
    """Declare what is recomputed in the backward pass."""
    return RECIPE.ask(
        default,
        "Recomputation",
        choices=(
            ("none", "None"),
            ("selective", "Selective: the core of attention"),
            ("operators", "Every second matrix product"),
            ("full", "Full: every layer from its input"),
        ),
        help="What is computed again in the backward pass instead of kept. With every "
        "second matrix product, the results of the others and of attention are kept.",
        term="activation-checkpointing",
    )


def ask_training_software(
    group: InputGroup = RECIPE, *first: tuple[str, str], default: str = "tuned"
) -> Any:
    """Declare the training software, which determines what is fused and overlapped."""
    named = tuple((key, value.label) for key, value in SOFTWARE.items())
    return group.ask_more(
        default,
        "Software",
        choices=(*first, *named),
        help="Which measured runs the speed is modeled on.",
        topic="parallelism",
    )


def ask_engine() -> Any:
    """Declare the inference engine."""
    return ENGINE.ask_more(
        "vllm",
        "Engine",
        choices=engine.list_engines(),
        help="Which measured engine the overheads are modeled on.",
    )


def ask_tokens(default: int, label: str, help_text: str, **declared: Any) -> Any:
    """Declare the number of tokens of a request."""
    return LOAD.ask(
        default, label, unit="token", limits=(1, 100_000_000), help=help_text, **declared
    )


def ask_sequence() -> Any:
    """Declare the length of a training sequence."""
    return BATCH.ask(
        4096,
        "Sequence",
        unit="token",
        limits=(1, 10_000_000),
        help="Tokens of one training sequence.",
    )


def ask_price() -> Any:
    """Declare the price of a GPU."""
    return COST.ask(
        None,
        "Price",
        unit="USD/h",
        typed_unit="USD/h",
        limits=(0.0, 1e4),
        help="Of one GPU for an hour; left empty: a provider's list price, where one "
        "is known. Write what you pay.",
    )


def ask_training_tokens(help_text: str) -> Any:
    """Declare the tokens of a training run."""
    return MODEL.ask(1e12, "Training tokens", unit="token", limits=(1, 1e18), help=help_text)


def ask_pue(group: InputGroup, **declared: Any) -> Any:
    """Declare the power usage effectiveness of the site."""
    return group.ask_more(
        1.3,
        "PUE",
        limits=(1.0, 5.0),
        help="Power of the site over that of its machines.",
        term="pue",
        **declared,
    )


def ask_usable_share(*, advanced: bool = False) -> Any:
    """Declare the share of memory that an engine may use."""
    return ENGINE.ask(
        0.9,
        "Usable share of memory",
        unit="%",
        limits=(0.1, 1.0),
        help="The share of GPU memory that the engine may take.",
        topic="inference-memory",
        advanced=advanced,
    )


def input_error(field: str, value: object, message: str) -> InvalidInputsError:
    """Build the error for a field whose value is impossible together with the others."""
    return InvalidInputsError((InputProblem(field, str(value), message),))
