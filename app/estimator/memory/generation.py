"""Memory of plain generation: a model in Transformers that answers one batch."""

from app.estimator.models.architecture import Architecture
from app.estimator.models.formats import bytes_of, weight_table

# What stays beside tensors on each GPU: workspaces of the libraries.
WORKSPACE = 24e6


def prefill_bytes(tokens: float, hidden: float, width: float) -> float:
    """Temporary tensors while a prompt runs through one unfused layer, 16 bit [B].

    T · (6f + 8h): gate, up and their product, beside residual, norm and its FP32
    copy. Checked against the memory columns of the Qwen2.5 speed benchmark.

    >>> prefill_bytes(30720, 896, 4864)
    1116733440
    """
    return tokens * (6 * width + 8 * hidden)


def prompt_bytes(model: Architecture, tokens: float) -> float:
    """Temporary tensors of `tokens` of prompts in the widest layer of a model [B]."""
    width = model.mlp_width
    if model.is_routed:
        width = int(model.experts_per_token * model.expert_width) + model.shared_width
    return prefill_bytes(tokens, model.hidden, width)


def loading_bytes(model: Architecture, weights: str) -> float:
    """The whole model while it is loaded, before anything is answered [B].

    AWQ files of tied models make a copy of the table.
    """
    stored = weight_table(model, weights).total
    if weights.startswith("awq") and model.tied:
        return stored + bytes_of(model.embedding_parameters, 16)
    return stored
