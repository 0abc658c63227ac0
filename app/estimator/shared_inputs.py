"""Inputs that several estimates ask for, declared once in the same words."""

from typing import Any

from app.estimator.inputs import BadInputs, InputProblem, ask
from app.estimator.models.formats import CACHE_CHOICES, WEIGHT_CHOICES


def ask_model(default: str = "llama-3.1-70b") -> Any:
    """Ask for a model: a catalog name, a size such as 70B, or a config.json."""
    return ask(
        default,
        "Model",
        kind="model",
        help="A model of the catalog, a size such as 70B, or a short config.json.",
        term="parameter",
        group="Model",
        topic="training-versus-inference",
    )


def ask_gpu(
    default: str = "h100-sxm5-80",
    count_field: str = "",
    offered: tuple[tuple[str, str], ...] = (),
) -> Any:
    """Ask for an accelerator of the catalog; `8x H100` gives the count too.

    `offered` are ids with names, where a list shall not offer the whole catalog.
    """
    return ask(
        default,
        "GPU",
        kind="gpu",
        help="An accelerator of the catalog, for example H100 or 8x H100.",
        group="Hardware",
        topic="cluster-components",
        count_field=count_field,
        choices=offered,
    )


def ask_weights(default: str = "bf16") -> Any:
    """Ask for the number format of the weights."""
    return ask(
        default,
        "Weights",
        choices=WEIGHT_CHOICES,
        help="Quantized formats leave embeddings, output head and norms in 16 bit.",
        term="quantisation",
        group="Model",
        topic="number-formats",
    )


def ask_cache(default: str = "bf16") -> Any:
    """Ask for the number format of the KV cache."""
    return ask(
        default,
        "KV cache",
        choices=CACHE_CHOICES,
        help="Format of the cached keys and values.",
        term="kv-cache",
        group="Load",
        topic="number-formats",
    )


def ask_context() -> Any:
    """Ask for the tokens of one sequence, prompt and answer together."""
    return ask(
        8192,
        "Context",
        unit="token",
        minimum=1,
        maximum=100_000_000,
        help="Tokens of one sequence, prompt and answer together.",
        term="context-length",
        group="Load",
        topic="inference-memory",
    )


def ask_tensor_parallel(default: int = 1, label: str = "Tensor parallel") -> Any:
    """Ask for the number of GPUs that share each layer."""
    return ask(
        default,
        label,
        unit="GPU",
        minimum=1,
        maximum=1024,
        help="GPUs that share every layer.",
        term="tensor-parallelism",
        group="Hardware",
        topic="parallelism",
    )


def refuse(field: str, value: object, message: str) -> BadInputs:
    """The refusal of one field whose value is impossible beside the others."""
    return BadInputs((InputProblem(field, str(value), message),))
