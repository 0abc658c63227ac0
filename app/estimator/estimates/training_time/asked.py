"""What `training-time` asks for."""

import dataclasses
from typing import Any

from app.estimator import shared_inputs
from app.estimator.inputs import InputGroup
from app.estimator.shared_inputs import (
    BATCH,
    COST,
    LAYOUT,
    MODEL,
    RECIPE,
)

_LOSSES = InputGroup("Losses", "cluster-components")

_YEAR = 365.25 * 86400.0


def _batch(default: int | None, label: str, help_text: str, maximum: int) -> Any:
    return BATCH.ask(
        default,
        label,
        kind="count",
        unit="sequence",
        minimum=1,
        maximum=maximum,
        help=help_text,
        term="micro-batch",
        topic="parallelism",
    )


@dataclasses.dataclass(frozen=True, slots=True)
class TrainingTimeInputs:
    """A training run: what, on what, how it is laid out, and what it may lose."""

    model: str = shared_inputs.ask_model("llama-3.1-8b")
    tokens: float = shared_inputs.ask_training_tokens("Tokens of the whole run.")
    gpu: str = shared_inputs.ask_gpu(count_field="gpus")
    gpus: int = shared_inputs.ask_gpus(64)
    tensor_parallel: int = shared_inputs.ask_tensor_parallel()
    pipeline_parallel: int = shared_inputs.ask_pipeline()
    context_parallel: int = shared_inputs.ask_context_parallel()
    expert_parallel: int = shared_inputs.ask_experts()
    interleave: int = shared_inputs.ask_degree(
        "Interleaving",
        "Chunks of layers on each pipeline stage.",
        "pipeline-parallelism",
        advanced=True,
    )
    sequence: int = shared_inputs.ask_sequence()
    micro_batch: int = _batch(1, "Micro-batch", "Sequences in one forward pass.", 10**5)
    global_batch: int | None = _batch(
        None,
        "Global batch",
        "Sequences per optimizer step; left empty: about four million tokens, and a "
        "micro-batch for each stage.",
        10**7,
    )
    number_format: str = shared_inputs.ask_number_format()
    recompute: str = shared_inputs.ask_recompute()
    zero: str = LAYOUT.ask(
        "1",
        "ZeRO stage",
        choices=(
            ("0", "0: nothing divided"),
            ("1", "1: optimizer divided"),
            ("3", "3: weights too (FSDP)"),
        ),
        help="What data-parallel GPUs divide among themselves.",
        term="zero",
    )
    sequence_parallel: bool = shared_inputs.ask_sequence_parallel()
    gradients: str = RECIPE.ask(
        "bf16",
        "Gradients",
        choices=(("bf16", "BF16"), ("fp32", "FP32")),
        help="Format in which replicas add them up.",
        topic="number-formats",
        advanced=True,
    )
    software: str = shared_inputs.ask_training_software()
    network_rate: float = shared_inputs.ask_network_rate()
    network: str = shared_inputs.ask_network()
    domain: int | None = shared_inputs.ask_domain()
    mtbf_per_gpu: float = _LOSSES.ask(
        5.8 * _YEAR,
        "Time between failures of a GPU",
        unit="s",
        typed_unit="years",
        minimum=3600.0,
        maximum=1000 * _YEAR,
        help="Mean time until one GPU's share of the machine stops the job; Llama 3 saw 5.8 years.",
        advanced=True,
    )
    checkpoint_time: float = _LOSSES.ask(
        30.0,
        "Checkpoint stall",
        unit="s",
        typed_unit="s",
        minimum=0.1,
        maximum=86400.0,
        help="How long one checkpoint stops the training.",
        term="checkpoint",
        advanced=True,
    )
    restart_time: float = _LOSSES.ask(
        600.0,
        "Restart",
        unit="s",
        typed_unit="min",
        minimum=0.0,
        maximum=864000.0,
        help="From a failure until training goes on.",
        advanced=True,
    )
    other_time: float = _LOSSES.ask(
        0.05,
        "Evaluation and repeats",
        typed_unit="%",
        minimum=0.0,
        maximum=0.9,
        help="Share of the time for validation and for work done twice.",
        topic="training-versus-inference",
        advanced=True,
    )
    deadline: float | None = MODEL.ask(
        None,
        "Deadline",
        unit="s",
        typed_unit="days",
        minimum=60.0,
        maximum=100 * _YEAR,
        help="The run should be over by then; left empty: no limit.",
    )
    usd_per_gpu_hour: float | None = shared_inputs.ask_price()
    watts_per_gpu: float | None = COST.ask(
        None,
        "Power per GPU",
        unit="W",
        typed_unit="W",
        minimum=1.0,
        maximum=1e5,
        help="With its share of the server; left empty: 1.7 times the card's limit.",
        advanced=True,
    )
    pue: float = shared_inputs.ask_pue(COST)
