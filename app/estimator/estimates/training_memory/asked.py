"""What `training-memory` asks for."""

import dataclasses

from app.estimator import shared_inputs
from app.estimator.memory.frameworks import FRAMEWORK_CHOICES, USUAL
from app.estimator.memory.states import OPTIMIZERS, PRECISIONS
from app.estimator.shared_inputs import (
    BATCH,
    HARDWARE,
    LAYOUT,
    RECIPE,
)


@dataclasses.dataclass(frozen=True, slots=True)
class TrainingMemoryInputs:
    """What is to be trained, how, and on what."""

    model: str = shared_inputs.ask_model()
    optimizer: str = RECIPE.ask(
        "adamw",
        "Optimizer",
        choices=OPTIMIZERS,
        help="How many moments it keeps for each parameter.",
        term="optimizer-state",
    )
    precision: str = RECIPE.ask(
        "bf16-mixed",
        "Precision",
        choices=PRECISIONS,
        help="Formats of weights, gradients and master copy.",
        term="mixed-precision",
        topic="number-formats",
    )
    gpu: str = shared_inputs.ask_gpu(count_field="gpus")
    gpus: int = shared_inputs.ask_gpus(32, "training-memory")
    zero: str = LAYOUT.ask(
        "3",
        "ZeRO stage",
        choices=(
            ("0", "0: nothing divided"),
            ("1", "1: optimizer divided"),
            ("2", "2: and gradients"),
            ("3", "3: and weights (FSDP)"),
        ),
        help="What data-parallel GPUs divide among themselves.",
        term="zero",
    )
    tensor_parallel: int = shared_inputs.ask_tensor_parallel()
    pipeline_parallel: int = shared_inputs.ask_pipeline(1024)
    context_parallel: int = shared_inputs.ask_context_parallel(1024)
    expert_parallel: int = shared_inputs.ask_experts(1024)
    interleave: int = LAYOUT.ask(
        1,
        "Interleaving",
        minimum=1,
        maximum=64,
        help="Chunks of layers on each pipeline stage.",
        advanced=True,
    )
    sequence: int = shared_inputs.ask_sequence()
    micro_batch: int = BATCH.ask(
        1,
        "Micro-batch",
        unit="sequence",
        minimum=1,
        maximum=100_000,
        help="Sequences in one forward pass.",
        term="micro-batch",
    )
    micro_batches: int | None = BATCH.ask(
        None,
        "Micro-batches per step",
        kind="count",
        minimum=1,
        maximum=1_000_000,
        help="Left empty: about four million tokens, at least one for each stage.",
        topic="parallelism",
        advanced=True,
    )
    recompute: str = shared_inputs.ask_recompute("full")
    framework: str = RECIPE.ask(
        USUAL,
        "Framework",
        choices=FRAMEWORK_CHOICES,
        help="Decides which tensors are kept beside the formula.",
    )
    flash_attention: bool = RECIPE.ask(
        True,
        "Flash attention",
        help="Without it the attention scores are kept as well.",
        advanced=True,
    )
    sequence_parallel: bool = shared_inputs.ask_sequence_parallel()
    overlapped: bool = RECIPE.ask(
        True,
        "Overlapped tensor parallelism",
        help="Transfers run inside the products, so that no whole sequence is "
        "gathered; in PyTorch.",
        topic="parallelism",
        advanced=True,
    )
    fused_loss: bool = RECIPE.ask(
        False,
        "Fused loss",
        help="A loss that never makes FP32 copies of the logits.",
        advanced=True,
    )
    method: str = RECIPE.ask(
        "full",
        "Method",
        choices=(
            ("full", "All weights"),
            ("lora", "LoRA: adapters of a frozen model"),
            ("qlora", "QLoRA: adapters of a 4-bit model"),
        ),
        help="Adapters train a small part and keep the rest frozen.",
        term="lora",
    )
    rank: int = RECIPE.ask(
        16,
        "Adapter rank",
        minimum=1,
        maximum=4096,
        help="Rank of the adapters, for LoRA and QLoRA.",
        advanced=True,
    )
    targets: str = RECIPE.ask(
        "all-linear",
        "Adapted matrices",
        choices=(
            ("all-linear", "All linear layers"),
            ("attention", "Attention"),
            ("qv", "Queries and values"),
            ("mlp", "MLP"),
        ),
        help="Which matrices get an adapter.",
        advanced=True,
    )
    offload: str = LAYOUT.ask(
        "none",
        "Offload to the host",
        choices=(
            ("none", "Nothing"),
            ("optimizer", "Optimizer"),
            ("all", "Optimizer and weights"),
        ),
        help="What waits in the memory of the server until it is needed.",
        topic="training-memory",
        advanced=True,
    )
    overhead: float | None = HARDWARE.ask(
        None,
        "Overhead per GPU",
        unit="B",
        typed_unit="GB",
        minimum=0.0,
        maximum=1e12,
        help="CUDA context, communication buffers, workspaces, fragmentation; left "
        "empty: 4 GB, or 1 GB for a GPU by itself.",
        topic="training-memory",
    )
