"""What `training-memory` asks for."""

import dataclasses

from app.estimator import job_inputs
from app.estimator.inputs import ask
from app.estimator.memory.frameworks import FRAMEWORK_CHOICES, USUAL
from app.estimator.memory.states import OPTIMIZERS, PRECISIONS
from app.estimator.shared_inputs import ask_gpu, ask_model, ask_tensor_parallel


@dataclasses.dataclass(frozen=True, slots=True)
class TrainingMemory:
    """What is to be trained, how, and on what."""

    model: str = ask_model()
    optimizer: str = ask(
        "adamw",
        "Optimizer",
        choices=OPTIMIZERS,
        help="How many moments it keeps for each parameter.",
        term="optimizer-state",
        group="Recipe",
        topic="training-memory",
    )
    precision: str = ask(
        "bf16-mixed",
        "Precision",
        choices=PRECISIONS,
        help="Formats of weights, gradients and master copy.",
        term="mixed-precision",
        group="Recipe",
        topic="number-formats",
    )
    gpu: str = ask_gpu(count_field="gpus")
    gpus: int = job_inputs.ask_gpus(32, "training-memory")
    zero: str = ask(
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
        group="Layout",
        topic="parallelism",
    )
    tensor_parallel: int = ask_tensor_parallel()
    pipeline_parallel: int = job_inputs.ask_pipeline(1024)
    context_parallel: int = job_inputs.ask_context_parallel(1024)
    expert_parallel: int = job_inputs.ask_experts(1024)
    interleave: int = ask(
        1,
        "Interleaving",
        minimum=1,
        maximum=64,
        help="Chunks of layers on each pipeline stage.",
        group="Layout",
        topic="parallelism",
        advanced=True,
    )
    sequence: int = job_inputs.ask_sequence()
    micro_batch: int = ask(
        1,
        "Micro-batch",
        unit="sequence",
        minimum=1,
        maximum=100_000,
        help="Sequences in one forward pass.",
        term="micro-batch",
        group="Batch",
        topic="training-memory",
    )
    micro_batches: int | None = ask(
        None,
        "Micro-batches per step",
        kind="count",
        minimum=1,
        maximum=1_000_000,
        help="Left empty: about four million tokens, at least one for each stage.",
        group="Batch",
        topic="parallelism",
        advanced=True,
    )
    recompute: str = job_inputs.ask_recompute("full")
    framework: str = ask(
        USUAL,
        "Framework",
        choices=FRAMEWORK_CHOICES,
        help="Decides which tensors are kept beside the formula.",
        group="Recipe",
        topic="training-memory",
    )
    flash_attention: bool = ask(
        True,
        "Flash attention",
        help="Without it the attention scores are kept as well.",
        group="Recipe",
        topic="training-memory",
        advanced=True,
    )
    sequence_parallel: bool = job_inputs.ask_sequence_parallel()
    overlapped: bool = ask(
        True,
        "Overlapped tensor parallelism",
        help="Transfers run inside the products, so that no whole sequence is "
        "gathered; in PyTorch.",
        group="Recipe",
        topic="parallelism",
        advanced=True,
    )
    fused_loss: bool = ask(
        False,
        "Fused loss",
        help="A loss that never makes FP32 copies of the logits.",
        group="Recipe",
        topic="training-memory",
        advanced=True,
    )
    method: str = ask(
        "full",
        "Method",
        choices=(
            ("full", "All weights"),
            ("lora", "LoRA: adapters of a frozen model"),
            ("qlora", "QLoRA: adapters of a 4-bit model"),
        ),
        help="Adapters train a small part and keep the rest frozen.",
        term="lora",
        group="Recipe",
        topic="training-memory",
    )
    rank: int = ask(
        16,
        "Adapter rank",
        minimum=1,
        maximum=4096,
        help="Rank of the adapters, for LoRA and QLoRA.",
        group="Recipe",
        topic="training-memory",
        advanced=True,
    )
    targets: str = ask(
        "all-linear",
        "Adapted matrices",
        choices=(
            ("all-linear", "All linear layers"),
            ("attention", "Attention"),
            ("qv", "Queries and values"),
            ("mlp", "MLP"),
        ),
        help="Which matrices get an adapter.",
        group="Recipe",
        topic="training-memory",
        advanced=True,
    )
    offload: str = ask(
        "none",
        "Offload to the host",
        choices=(
            ("none", "Nothing"),
            ("optimizer", "Optimizer"),
            ("all", "Optimizer and weights"),
        ),
        help="What waits in the memory of the server until it is needed.",
        group="Layout",
        topic="training-memory",
        advanced=True,
    )
    overhead: float | None = ask(
        None,
        "Overhead per GPU",
        unit="B",
        typed_unit="GB",
        minimum=0.0,
        maximum=1e12,
        help="CUDA context, communication buffers, workspaces, fragmentation; left "
        "empty: 4 GB, or 1 GB for a GPU by itself.",
        group="Hardware",
        topic="training-memory",
    )
