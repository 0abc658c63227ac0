"""Layers of a model and their weight matrices."""

import dataclasses
from collections.abc import Iterator
from typing import Literal, NamedTuple

Part = Literal["attention", "linear attention", "mlp", "router", "experts", "shared"]
Split = Literal["columns", "rows", "heads", "whole"]


@dataclasses.dataclass(frozen=True, slots=True)
class WeightMatrix:
    """A weight matrix of a layer; `copies` of it, `active_copies` used by each token.

    `tensor_parallel_split` is how tensor parallelism divides it: `columns` and `rows` are divided,
    `heads` (keys and values) down to one head, `whole` stays on every rank.
    """

    name: str
    input_width: int
    output_width: int
    part: Part
    tensor_parallel_split: Split = "columns"
    copies: int = 1
    active_copies: float = 1.0

    @property
    def parameters(self) -> int:
        return self.input_width * self.output_width * self.copies

    @property
    def active_parameters(self) -> float:
        return self.input_width * self.output_width * self.active_copies


@dataclasses.dataclass(frozen=True, slots=True)
class TokenMixer:
    """Attention or a recurrent state, which combines information across tokens.

    `cache_elements_per_token` counts elements stored per token and `window_tokens` the tokens stored (None:
    all); `state_elements` and `convolution_state_elements` count elements stored per sequence, independent of its
    length. `indexer_cache_elements_per_token` is the cache of a sparse-attention indexer, in elements per token
    of `indexer_bytes_per_cache_element` bytes; it has `indexer_heads` heads `indexer_head_dim` wide and selects
    `indexer_selected_tokens` tokens.
    One entry of the cache stands for `compression_rate` tokens; `extra_cache_elements_per_near_token` more elements are
    stored for each of the last `near_tokens`. `residual_streams` are mixed around it (0: there
    is one).
    """

    kind: str
    matrices: tuple[WeightMatrix, ...] = ()
    vector_parameters: int = 0
    heads: int = 0
    kv_heads: int = 0
    head_dim: int = 0
    value_dim: int = 0
    window_tokens: int | None = None
    cache_elements_per_token: int = 0
    state_elements: int = 0
    convolution_state_elements: int = 0
    indexer_cache_elements_per_token: int = 0
    # FP8 with one FP32 scale per 128, whatever the format of the cache: vLLM, deepseek_v2.py
    # (DeepseekV32IndexerCache).
    indexer_bytes_per_cache_element: float = 1 + 4 / 128
    indexer_heads: int = 0
    indexer_head_dim: int = 0
    indexer_selected_tokens: int | None = None
    compression_rate: int = 1
    extra_cache_elements_per_near_token: int = 0
    near_tokens: int = 0
    scan_flops_per_state_element: float = 0.0
    latent_width: int = 0
    query_rank: int = 0
    rope_dim: int = 0
    residual_streams: int = 0

    @property
    def indexer_cache_bytes_per_token(self) -> float:
        return self.indexer_cache_elements_per_token * self.indexer_bytes_per_cache_element


@dataclasses.dataclass(frozen=True, slots=True)
class Mlp:
    """The feed-forward part: dense, or routed experts with an optional shared one."""

    matrices: tuple[WeightMatrix, ...] = ()
    vector_parameters: int = 0
    routed_vector_parameters: int = 0
    width: int = 0
    gated: bool = True
    experts: int = 0
    experts_per_token: float = 0.0
    shared_width: int = 0

    @property
    def is_routed(self) -> bool:
        return self.experts > 0

    @property
    def expert_input_width(self) -> int:
        """Return the width of a token that an expert is sent: that of the model, or latent."""
        return next(m.input_width for m in self.matrices if (m.part, m.name) == ("experts", "up"))


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """One layer: its mixer, its MLP, its norms.

    `second_mixer` is a state space in parallel with attention, or attention to an
    encoder. Layers compare by identity: equal ones are one object.
    """

    mixer: TokenMixer
    mlp: Mlp
    norm_parameters: int
    second_mixer: TokenMixer | None = None

    @property
    def mixers(self) -> tuple[TokenMixer, ...]:
        return (self.mixer, self.second_mixer) if self.second_mixer else (self.mixer,)

    @property
    def matrices(self) -> tuple[WeightMatrix, ...]:
        second_matrices = self.second_mixer.matrices if self.second_mixer else ()
        return self.mixer.matrices + second_matrices + self.mlp.matrices

    @property
    def vector_parameters(self) -> int:
        """Return the parameters outside of matrices: norms, biases, convolutions."""
        second_vectors = self.second_mixer.vector_parameters if self.second_mixer else 0
        layer_vectors = (
            self.mixer.vector_parameters
            + self.mlp.vector_parameters
            + self.mlp.routed_vector_parameters
        )
        return layer_vectors + second_vectors + self.norm_parameters

    @property
    def state_elements(self) -> int:
        """Return the elements of recurrent state per sequence."""
        return self.mixer.state_elements + (
            self.second_mixer.state_elements if self.second_mixer else 0
        )

    @property
    def convolution_state_elements(self) -> int:
        """Return the elements of convolution state per sequence."""
        mixer_state = self.mixer.convolution_state_elements
        return mixer_state + (
            self.second_mixer.convolution_state_elements if self.second_mixer else 0
        )

    @property
    def parameters(self) -> int:
        return sum(m.parameters for m in self.matrices) + self.vector_parameters

    @property
    def routed_parameters(self) -> int:
        """Return the parameters of routed experts, including their biases."""
        routed = (m.parameters for m in self.mlp.matrices if m.part == "experts")
        return sum(routed) + self.mlp.routed_vector_parameters

    @property
    def active_parameters(self) -> float:
        routed = self.routed_parameters
        if not routed:
            return self.parameters
        share = self.mlp.experts_per_token / self.mlp.experts
        return self.parameters - routed * (1 - share)


class LayerCount(NamedTuple):
    """A kind of layer, and how many layers of a model are of it."""

    layer: Layer
    layer_count: int


@dataclasses.dataclass(frozen=True, slots=True)
class AttentionShape:
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int = 0
    qkv_bias: bool = False
    out_bias: bool = False
    query_key_norm: Literal["", "head", "heads"] = ""
    parameters_per_norm_weight: int = 1
    has_sinks: bool = False
    has_output_gate: bool = False
    has_head_gate: bool = False
    keys_are_values: bool = False


def build_attention_mixer(
    shape: AttentionShape, window_tokens: int | None = None, *, reuses_earlier_cache: bool = False
) -> TokenMixer:
    """Build multi-head attention with any number of KV heads.

    Parameters: h·a·d + h·g·d_k + h·g·d_v + a·d_v·h and, where the family has them,
    biases, query and key norms (per head, or over all heads), sinks, and an output
    gate. Cache: g·(d_k + d_v) elements per token.
    """
    value_dim = shape.value_dim or shape.head_dim
    query_width, key_width = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    value_width = shape.kv_heads * value_dim
    output_width = shape.heads * value_dim
    matrices = [WeightMatrix("q", shape.hidden, query_width, "attention")]
    if not reuses_earlier_cache:
        matrices.append(WeightMatrix("k", shape.hidden, key_width, "attention", "heads"))
        if not shape.keys_are_values:
            matrices.append(WeightMatrix("v", shape.hidden, value_width, "attention", "heads"))
    matrices.append(WeightMatrix("o", output_width, shape.hidden, "attention", "rows"))
    if shape.has_output_gate or shape.has_head_gate:
        gates = output_width if shape.has_output_gate else shape.heads
        matrices.append(WeightMatrix("gate", shape.hidden, gates, "attention"))
    return TokenMixer(
        kind="attention",
        matrices=tuple(matrices),
        vector_parameters=_attention_vector_parameters(
            shape, query_width, key_width, value_width, reuses_earlier_cache
        ),
        heads=shape.heads,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        value_dim=value_dim,
        window_tokens=window_tokens,
        cache_elements_per_token=0 if reuses_earlier_cache else key_width + value_width,
    )


def _attention_vector_parameters(
    shape: AttentionShape,
    query_width: int,
    key_width: int,
    value_width: int,
    reuses_earlier_cache: bool,
) -> int:
    biases = (query_width + key_width + value_width) if shape.qkv_bias else 0
    if shape.out_bias:
        biases += shape.hidden
    norms = 0
    if shape.query_key_norm:
        is_by_head = shape.query_key_norm == "head"
        norms = shape.head_dim if is_by_head else query_width
        if not reuses_earlier_cache:
            norms += shape.head_dim if is_by_head else key_width
    return (
        biases + norms * shape.parameters_per_norm_weight + (shape.heads if shape.has_sinks else 0)
    )


def build_dense_mlp(hidden: int, width: int, *, gated: bool, bias: bool) -> Mlp:
    """Build a dense MLP: 2·h·f, or 3·h·f with a gate."""
    up = (WeightMatrix("up", hidden, width, "mlp"),)
    gate = (WeightMatrix("gate", hidden, width, "mlp"),) if gated else ()
    down = (WeightMatrix("down", width, hidden, "mlp", "rows"),)
    biases = (len(gate) + 1) * width + hidden if bias else 0
    return Mlp(matrices=gate + up + down, vector_parameters=biases, width=width, gated=gated)


@dataclasses.dataclass(frozen=True, slots=True)
class MoeShape:
    hidden: int
    experts: int
    experts_per_token: float
    expert_width: int
    shared_width: int = 0
    is_gated: bool = True
    has_shared_gate: bool = False
    has_expert_bias: bool = False
    has_router_bias: bool = False
    latent_width: int = 0
    has_latent_norm: bool = False
    scale_parameters: int = 0
    zero_expert_count: int = 0


def build_routed_mlp(shape: MoeShape) -> Mlp:
    """Build routed experts: h·E for the router, E·3·h·f_e for gated experts.

    A shared expert of width f_s adds 3·h·f_s. With `latent_width` the experts work on a
    vector of that width, reached by two projections.
    """
    expert_input_width = shape.latent_width or shape.hidden
    up_names = ("gate", "up") if shape.is_gated else ("up",)
    expert_bias = (
        len(up_names) * shape.expert_width + expert_input_width if shape.has_expert_bias else 0
    )
    vectors = shape.scale_parameters + (shape.latent_width if shape.has_latent_norm else 0)
    vectors += shape.hidden if shape.has_shared_gate else 0
    vectors += shape.experts if shape.has_router_bias else 0
    return Mlp(
        matrices=tuple(_routed_mlp_matrices(shape, up_names, expert_input_width)),
        vector_parameters=vectors,
        routed_vector_parameters=shape.experts * expert_bias,
        width=shape.expert_width,
        gated=shape.is_gated,
        experts=shape.experts,
        experts_per_token=shape.experts_per_token,
        shared_width=shape.shared_width,
    )


def _routed_mlp_matrices(
    shape: MoeShape, up_names: tuple[str, ...], expert_input_width: int
) -> Iterator[WeightMatrix]:
    """Yield the router, all experts, the projections of a latent width, and the shared expert."""
    hidden, width, shared = shape.hidden, shape.expert_width, shape.shared_width
    count, active = shape.experts, shape.experts_per_token
    yield WeightMatrix("router", hidden, count + shape.zero_expert_count, "router", "whole")
    for name in up_names:
        yield WeightMatrix(name, expert_input_width, width, "experts", "columns", count, active)
    yield WeightMatrix("down", width, expert_input_width, "experts", "rows", count, active)
    if shape.latent_width:
        yield WeightMatrix("latent_in", hidden, shape.latent_width, "shared", "whole")
        yield WeightMatrix("latent_out", shape.latent_width, hidden, "shared", "whole")
    if shared:
        yield from (WeightMatrix(name, hidden, shared, "shared") for name in up_names)
        yield WeightMatrix("down", shared, hidden, "shared", "rows")
