"""Weights, gradients and optimizer states per parameter; ZeRO, LoRA, offload, frameworks."""

import dataclasses
from typing import Any, NamedTuple

from app.estimator import data_files
from app.estimator.memory.parallel_layout import ParallelLayout, ParametersPerGpu
from app.estimator.models.architecture import Architecture
from app.estimator.models.weight_formats import adapter_parameters, weight_bytes_by_split


@dataclasses.dataclass(frozen=True, slots=True)
class BytesPerParameter:
    """Bytes per parameter of a training recipe.

    `optimizer_step_copy` is made of all tensors by an optimizer step on all at once (foreach).
    """

    weights: float
    gradients: float
    master_weights: float
    moment_bytes: float
    optimizer_step_copy: float = 0.0

    @property
    def optimizer(self) -> float:
        return self.master_weights + self.moment_bytes

    @property
    def total(self) -> float:
        return self.weights + self.gradients + self.optimizer


class TrainingPrecision(NamedTuple):
    """Bytes of weights, gradients, master copy and each moment of a parameter."""

    label: str
    weights: float
    gradients: float
    master: float
    moment: float


class Optimizer(NamedTuple):
    label: str
    moment_count: int


PRECISIONS = {
    "bf16-mixed": TrainingPrecision("BF16 with FP32 master", 2, 2, 4, 4),
    "bf16-mixed-fp32-grads": TrainingPrecision("BF16 with FP32 master and gradients", 2, 4, 4, 4),
    "bf16": TrainingPrecision("BF16 alone", 2, 2, 0, 2),
    "fp32": TrainingPrecision("FP32", 4, 4, 0, 4),
}
# 8-bit moments take one byte each.
OPTIMIZERS = {
    "adamw": Optimizer("AdamW", 2),
    "adamw-8bit": Optimizer("AdamW, 8-bit moments", 2),
    "sgd": Optimizer("SGD", 0),
    "sgd-momentum": Optimizer("SGD with momentum", 1),
    "adafactor": Optimizer("Adafactor", 0),
    "muon": Optimizer("Muon", 1),
    "lion": Optimizer("Lion", 1),
}


def state_bytes_per_parameter(
    optimizer: str = "adamw", precision: str = "bf16-mixed"
) -> BytesPerParameter:
    """Bytes per parameter for an optimizer and a precision.

    Adafactor's factored moments (a row and a column per matrix) round to nothing.
    From Rajbhandari (2020); Dettmers (2021); Shazeer and Stern (2018).

    >>> state_bytes_per_parameter("adamw", "bf16-mixed").total
    16
    >>> state_bytes_per_parameter("adamw", "bf16-mixed-fp32-grads").total
    18
    """
    _, weights, gradients, master, width = PRECISIONS[precision]
    moment_count = OPTIMIZERS[optimizer].moment_count
    if optimizer == "adamw-8bit":
        return BytesPerParameter(weights, gradients, master, moment_count)
    return BytesPerParameter(weights, gradients, master, moment_count * width, width)


class ModelStateBytes(NamedTuple):
    weights: float
    gradients: float
    optimizer: float


def state_bytes_under_zero_stage(
    parameters: float, state_bytes: BytesPerParameter, shards: int, zero_stage: int
) -> ModelStateBytes:
    """Return the bytes of one GPU under a ZeRO stage.

    Stage 1 divides the optimizer by the shards, stage 2 the gradients as well,
    stage 3 the weights as well. From Rajbhandari (2020), section 5.

    >>> sum(state_bytes_under_zero_stage(7.5e9, state_bytes_per_parameter(), 64, 3))
    1875000000.0
    """
    weights = parameters * state_bytes.weights / (shards if zero_stage >= 3 else 1)
    gradients = parameters * state_bytes.gradients / (shards if zero_stage >= 2 else 1)
    optimizer = parameters * state_bytes.optimizer / (shards if zero_stage >= 1 else 1)
    return ModelStateBytes(weights, gradients, optimizer)


def model_state_bytes_per_gpu(
    parameter_share: ParametersPerGpu, state_bytes: BytesPerParameter, layout: ParallelLayout
) -> ModelStateBytes:
    """Return the bytes of a share; experts have a shard count of their own."""
    dense = state_bytes_under_zero_stage(
        parameter_share.dense_parameters, state_bytes, layout.zero_shards, layout.zero
    )
    if not parameter_share.expert_parameters:
        return dense
    routed = state_bytes_under_zero_stage(
        parameter_share.expert_parameters, state_bytes, layout.expert_zero_shards, layout.zero
    )
    return ModelStateBytes(
        dense.weights + routed.weights,
        dense.gradients + routed.gradients,
        dense.optimizer + routed.optimizer,
    )


class BytesPerTokenByParallelism(NamedTuple):
    """Bytes per token, and those of them that tensor parallelism divides."""

    sequence_parallel_part: float
    tensor_parallel_part: float


@dataclasses.dataclass(frozen=True, slots=True)
class TrainedWeights:
    """What is trained: all weights, or with `adapter_parameters` those of adapters alone.

    `offloaded_to_host` says what is offloaded to the host: none, optimizer or all.
    """

    adapter_parameters: float = 0.0
    frozen_bytes_per_parameter: float = 0.0
    adapted_matrices: frozenset[str] = frozenset()
    offloaded_to_host: str = "none"

    @property
    def are_adapters(self) -> bool:
        return self.adapter_parameters > 0

    def trained_parameters(self, model: Architecture) -> float:
        return self.adapter_parameters if self.are_adapters else float(model.parameters)

    def unsaved_activation_bytes_per_token(
        self, hidden: int, width: float
    ) -> BytesPerTokenByParallelism:
        """Return what a layer need not save.

        The input of a frozen matrix is saved only for the gradient of its weights:
        without an adapter on them, 2h for each half of the layer and 2f for the
        last product are not saved.
        """
        if not self.are_adapters:
            return BytesPerTokenByParallelism(0.0, 0.0)
        whole = 0.0 if {"q", "k", "v"} & self.adapted_matrices else 2.0 * hidden
        whole += 0.0 if {"gate", "up"} & self.adapted_matrices else 2.0 * hidden
        return BytesPerTokenByParallelism(
            whole, 0.0 if "down" in self.adapted_matrices else 2.0 * width
        )


_ADAPTER_TARGETS_BY_CHOICE: dict[str, tuple[str, ...]] = {
    "all-linear": ("q", "k", "v", "o", "gate", "up", "down"),
    "attention": ("q", "k", "v", "o"),
    "qv": ("q", "v"),
    "mlp": ("gate", "up", "down"),
}


def build_trained_weights(
    inputs: Any, model: Architecture, offload: str = "none", qlora_embeddings: str = "bf16"
) -> TrainedWeights:
    """Return what the method of the inputs trains.

    All weights, or adapters on a frozen model in 16 bit (LoRA) or in NF4 (QLoRA), whose embeddings
    and output head are in 16 bit, or in FP32 with `qlora_embeddings`. From Hu (2021); Dettmers (2023).
    """
    if inputs.method == "full":
        return TrainedWeights(offloaded_to_host=offload)
    names = _ADAPTER_TARGETS_BY_CHOICE[inputs.targets]
    frozen_bytes = 2.0
    if inputs.method == "qlora":
        table_bytes = 4.0 if qlora_embeddings == "fp32" else 2.0
        split = weight_bytes_by_split(model, "nf4-double")
        widened = (table_bytes - 2.0) * (model.embedding_parameters + model.head_parameters)
        frozen_bytes = (split.total_bytes - split.tower_bytes + widened) / model.parameters
    return TrainedWeights(
        adapter_parameters=adapter_parameters(model, inputs.rank, names),
        frozen_bytes_per_parameter=frozen_bytes,
        adapted_matrices=frozenset(names),
        offloaded_to_host=offload,
    )


@dataclasses.dataclass(frozen=True, slots=True)
class TrainingFramework:
    """Memory behavior of one training framework.

    The losses are at their peak: an unfused one, the same when the vocabulary is divided, and
    that of a fused kernel. A dummy gradient is one in 16 bit of every weight shape.
    `backward_temporaries_factor`: temporary bytes in the backward pass of one layer, as a multiple
    of what unfused modules save of it.
    `frees_gradients`: gradients are freed after each step and allocated in the last
    backward pass, so that its peaks are separate moments; otherwise they are always there.
    An optimizer that steps on all tensors at once copies them.
    """

    id: str
    label: str
    unfused_loss_bytes_per_logit: float
    split_loss_bytes_per_logit: float
    fused_loss_bytes_per_logit: float
    preallocates_dummy_gradients: bool = False
    saves_inputs_of_every_operation: bool = False
    backward_temporaries_factor: float = 0.0
    frees_gradients: bool = False
    steps_on_all_tensors_at_once: bool = False
    can_recompute_every_second_product: bool = False


FRAMEWORKS: dict[str, TrainingFramework] = {
    row["id"]: TrainingFramework(**row)
    for row in data_files.load_toml("training_software.toml")["framework"]
}
USUAL = "usual"
FRAMEWORK_CHOICES: tuple[tuple[str, str], ...] = (
    (USUAL, "Usual for the model"),
    *((framework.id, framework.label) for framework in FRAMEWORKS.values()),
)


class LossKernel(NamedTuple):
    """A kernel of the loss; None: it has the bytes per logit of the framework.

    With `chunk_tokens` only the logits of so many tokens are in memory, beside an FP32 copy of
    the output head.
    """

    label: str
    bytes_per_logit: float | None
    chunk_tokens: int | None = None

    def compute_bytes_per_logit(
        self, tokens: float, hidden: int, *, is_head_fp32: bool
    ) -> float | None:
        """Return the bytes at the peak of the loss of `tokens`, divided by all their logits.

        >>> LOSS_KERNELS["chunked"].compute_bytes_per_logit(2560, 640, is_head_fp32=False)
        2.3
        """
        if self.bytes_per_logit is None or self.chunk_tokens is None:
            return self.bytes_per_logit
        head_copy = 0.0 if is_head_fp32 else 4.0 * hidden
        return (self.bytes_per_logit * min(self.chunk_tokens, tokens) + head_copy) / tokens


# By id, with the bytes per logit at the peak of the loss. In chunks is TRL's: `_chunk` of
# trl/trainer/sft_trainer.py multiplies 256 tokens by a head that it casts to FP32, and a chunk
# takes 13 B per logit (torchtitan, pull request 4514). Both together are 3.6 GB of gemma-3-4b in
# 4 bit; with LoRA it took 3.7 GB more than a fused loss (unsloth, pull request 8261).
LOSS_KERNELS = {
    USUAL: LossKernel("As in the framework", None),
    "eager": LossKernel("PyTorch, eager", 14.0),
    "transformers": LossKernel("Transformers", 12.0),
    "fused": LossKernel("Fused, in place", 4.0),
    "chunked": LossKernel("In chunks of 256 tokens (TRL)", 13.0, chunk_tokens=256),
    "linear": LossKernel("Fused with the output head (Liger, CCE)", 1.0),
}


def find_training_framework(choice: str, method: str) -> TrainingFramework:
    """Return the chosen framework, or the usual one for a fine-tuning method."""
    if choice == USUAL:
        choice = "torch" if method == "full" else "torchtune"
    return FRAMEWORKS[choice]
