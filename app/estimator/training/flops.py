"""FLOPs of training by convention, and utilization."""

from app.estimator.models.architecture import Architecture
from app.estimator.models.layers import Layer, TokenMixer


def training_flops_without_attention(parameters: float, tokens: float) -> float:
    """FLOPs to train on `tokens` [FLOP]: 6·N·D, without attention.

    From kaplan-2020.

    >>> training_flops_without_attention(1e9, 2e10)
    1.2e+20
    """
    return 6 * parameters * tokens


def unmasked_attention_training_flops_per_token(
    width: float, layers: float, context: float
) -> float:
    """FLOPs of attention scores per token, forward and backward [FLOP].

    12·L·w·s: the causal mask, which needs only half, is ignored. w is heads times head width.
    From palm, appendix B.

    >>> unmasked_attention_training_flops_per_token(4096, 32, 2048)
    3221225472.0
    """
    return 12.0 * layers * width * context


def mean_visible_tokens(context: float, window: int | None) -> float:
    """Mean number of tokens that a token attends to under a causal mask [token].

    s/2, and w(1 − w/2s) with a window w shorter than the sequence.

    >>> mean_visible_tokens(4096, None), mean_visible_tokens(4096, 1024)
    (2048.0, 896.0)
    """
    if window is None or window >= context:
        return context / 2
    return window * (1 - window / (2 * context))


def mixer_forward_flops_outside_matrices(
    mixer: TokenMixer, context: float, *, causal: bool = True
) -> float:
    """FLOPs of a mixer outside of its matrices, one token, forward [FLOP].

    Attention: 2·a·(d_k + d_v) for each token attended to on average in a sequence of `context`,
    of which an indexer chooses some at 2·a_i·d_i for each it scores. Recurrence: its FLOPs per
    element of state, and 2 for each of its convolution. From megatron-lm.
    """
    if not mixer.heads:
        return (
            mixer.scan_flops_per_state_element * mixer.state_elements
            + 2.0 * mixer.convolution_state_elements
        )
    mask_factor = 1 if causal else 2
    entries = context / mixer.compression_rate
    attends_beyond_window = mixer.cache_elements_per_token or mixer.indexer_selected_tokens
    is_window_only = mixer.near_tokens and not attends_beyond_window
    attended = (
        0.0
        if is_window_only
        else mean_visible_tokens(entries, mixer.indexer_selected_tokens or mixer.window_tokens)
    )
    attended_in_window = (
        mean_visible_tokens(context, mixer.near_tokens) if mixer.near_tokens else 0.0
    )
    scored_products = (
        mean_visible_tokens(entries, None) * mixer.indexer_heads * mixer.indexer_head_dim
    )
    flops_per_entry = 2.0 * mixer.heads * (mixer.head_dim + mixer.value_dim)
    return mask_factor * (flops_per_entry * (attended + attended_in_window) + 2.0 * scored_products)


def layer_forward_flops_outside_matrices(
    layer: Layer, context: float, *, causal: bool = True
) -> float:
    """FLOPs of both mixers of a layer outside of their matrices, one token, forward [FLOP]."""
    return sum(
        mixer_forward_flops_outside_matrices(m, context, causal=causal) for m in layer.mixers
    )


def layer_forward_flops_per_token(layer: Layer, context: float, *, causal: bool = True) -> float:
    """FLOPs of one layer for one token in a sequence, forward [FLOP].

    Two per active weight, and those of its mixers outside of their matrices.
    """
    products = 2 * sum(m.active_parameters for m in layer.matrices)
    return products + layer_forward_flops_outside_matrices(layer, context, causal=causal)


def training_flops_per_token(model: Architecture, context: float, *, causal: bool = True) -> float:
    """FLOPs to train on one token, forward and backward [FLOP].

    3·(2 per active weight outside of the input table, with the output head, and the attention
    scores): the convention of Megatron, with the causal half of the scores and with windows.
    From megatron-2021; megatron-bridge.

    >>> from app.estimator.models.lookup import find_model
    >>> round(training_flops_per_token(find_model("llama-3.1-405b"), 8192) / 1e12, 3)
    2.524
    """
    layers = sum(
        layer_forward_flops_per_token(layer, context, causal=causal) * number
        for layer, number in model.layer_counts
    )
    return 3 * (layers + 2 * model.embedding_parameters)


def adapter_training_flops_per_token(
    model: Architecture, context: float, adapter_parameters: float
) -> float:
    """FLOPs to train adapters of a frozen model on one token [FLOP].

    Frozen weights take part in the forward pass and pass gradients on, 4 for each instead
    of 6; attention takes as much as in full training, and every weight of the adapters 6.
    From lora.
    """
    full_training = training_flops_per_token(model, context)
    scores = sum(
        layer_forward_flops_outside_matrices(layer, context) * n for layer, n in model.layer_counts
    )
    return full_training - (full_training / 3 - scores) + 6 * adapter_parameters


def prediction_module_training_flops_per_token(model: Architecture, context: float) -> float:
    """FLOPs that multi-token prediction adds to training on a token [FLOP].

    For each module its layer, the projection of two inputs and the output head. From
    megatron-bridge, which counts DeepSeek-V3 so.
    """
    layers = sum(
        layer_forward_flops_per_token(layer, context) for layer in model.prediction_module_layers
    )
    heads = 2 * model.embedding_parameters + 4 * model.hidden**2
    return 3 * (layers + model.prediction_module_count * heads)


def recomputed_flops_per_token(model: Architecture, context: float, recompute: str) -> float:
    """FLOPs recomputed for one token in the backward pass [FLOP].

    One more forward pass of the layers with full recomputation, of the attention scores alone
    with selective, of every second product with `operators`; the output head is never
    recomputed. From korthikanti-2022.

    >>> from app.estimator.models.lookup import find_model
    >>> model = find_model("gpt3-175b")
    >>> again = recomputed_flops_per_token(model, 2048, "full")
    >>> round(again / training_flops_per_token(model, 2048), 3)
    0.332
    """
    recomputed = 0.0
    for layer, number in model.layer_counts:
        scores = layer_forward_flops_outside_matrices(layer, context)
        forward = layer_forward_flops_per_token(layer, context)
        flops_by_mode = {"full": forward, "selective": scores, "operators": (forward - scores) / 2}
        recomputed += number * flops_by_mode.get(recompute, 0.0)
    return recomputed


def flops_utilization(flops_per_token: float, tokens_per_second: float, peak: float) -> float:
    """Achieved share of a peak [1]: FLOPs per token · rate / peak.

    With model FLOPs this is MFU; with recomputed FLOPs included it is HFU.

    >>> flops_utilization(5e10, 8000, 1e15)
    0.4
    """
    if peak <= 0:
        raise ValueError("the peak must be positive")
    return flops_per_token * tokens_per_second / peak


def narayanan_training_flops_per_token(
    layers: int, hidden: int, vocabulary: int, context: int
) -> float:
    """FLOPs of a GPT per token with full attention and its head [FLOP].

    3·L·(24·h² + 4·h·s) + 6·h·V: forward is one pass over the layers, backward two;
    nothing is recomputed.

    From megatron-2021, equation 3.

    >>> round(narayanan_training_flops_per_token(96, 12288, 51200, 2048) / 1e12, 3)
    1.076
    """
    blocks = layers * (24 * hidden**2 + 4 * hidden * context)
    return float(3 * blocks + 6 * hidden * vocabulary)
