"""Memory of plain generation: a model in Transformers that answers one batch."""

from app.estimator.models.architecture import Architecture
from app.estimator.models.formats import bytes_of, weight_table

# What stays beside tensors on each GPU: workspaces of the libraries.
WORKSPACE = 24e6


def prefill_bytes(tokens: float, hidden: float, width: float) -> float:
    """Temporary tensors while a prompt runs through one unfused layer, 16 bit.

    T · (6f + 8h): gate, up and their product, beside residual, norm and its FP32
    copy. Checked against the memory columns of the Qwen2.5 speed benchmark.

    >>> prefill_bytes(30720, 896, 4864)
    1116733440
    """
    return tokens * (6 * width + 8 * hidden)


def generation_bytes(
    model: Architecture,
    weights: str,
    prompt: int,
    answer: int,
    batch: int = 1,
    gpus: int = 1,
) -> float:
    """Peak over all GPUs while `batch` prompts are answered.

    Layers are dealt to the GPUs in turn, and each of them holds its own temporary
    tensors. AWQ files of tied models make a copy of the table while they load.
    """
    stored = weight_table(model, weights).total
    cache = batch * bytes_of(model.sequence_elements(prompt + answer), 16)
    width = model.mlp_width
    if model.is_routed:
        width = int(model.experts_per_token * model.expert_width) + model.shared_width
    moving = prefill_bytes(batch * prompt, model.hidden, width)
    running = stored + cache + gpus * (moving + WORKSPACE)
    if weights.startswith("awq") and model.tied:
        loading = stored + bytes_of(model.embedding_parameters, 16)
        return max(running, loading)
    return running
