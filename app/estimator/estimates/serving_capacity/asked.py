"""What `serving-capacity` asks for."""

import dataclasses
from typing import Any

from app.estimator import shared_inputs
from app.estimator.inputs import InputGroup
from app.estimator.models.formats import PUBLISHED_OR_FP8
from app.estimator.shared_inputs import ENGINE, HARDWARE, LOAD

_TARGETS = InputGroup("Targets", "batching-and-latency")


def _target(default: float, label: str, help_text: str) -> Any:
    return _TARGETS.ask(
        default,
        label,
        unit="s",
        typed_unit="ms",
        minimum=1e-4,
        maximum=3600.0,
        help=help_text,
    )


MOST_REPLICAS = 100_000


def _variation(label: str) -> Any:
    return LOAD.ask(
        0.5,
        label,
        minimum=0.0,
        maximum=10.0,
        help="Squared coefficient of variation of the lengths: 0 all alike, 1 as "
        "spread out as random, more for a few very long ones.",
        advanced=True,
    )


@dataclasses.dataclass(frozen=True, slots=True)
class ServingCapacityInputs:
    """A service: the model, its users, and the latencies that they are to see."""

    model: str = shared_inputs.ask_model()
    weights: str = shared_inputs.ask_weights(
        PUBLISHED_OR_FP8, (PUBLISHED_OR_FP8, "As published, or FP8")
    )
    cache: str = shared_inputs.ask_cache("fp8")
    gpu: str = shared_inputs.ask_gpu(count_field="tensor_parallel")
    tensor_parallel: int = shared_inputs.ask_tensor_parallel(4, "GPUs that share the model")
    attention_parallel: int = HARDWARE.ask(
        1,
        "Attention data parallel",
        minimum=1,
        maximum=1024,
        help="Groups of GPUs in a replica that run attention on different requests "
        "and share the experts.",
        term="data-parallelism",
        advanced=True,
    )
    expert_parallel: int = HARDWARE.ask(
        1,
        "Expert parallel",
        minimum=1,
        maximum=1024,
        help="Parts that the experts of a layer are divided into.",
        term="expert-parallelism",
        advanced=True,
    )
    expert_tensor_parallel: int | None = HARDWARE.ask(
        None,
        "GPUs that share an expert",
        kind="count",
        unit="GPU",
        minimum=1,
        maximum=1024,
        help="Left empty: as many as share the model.",
        term="tensor-parallelism",
        advanced=True,
    )
    replicas: int | None = HARDWARE.ask(
        None,
        "Replicas",
        kind="count",
        minimum=1,
        maximum=MOST_REPLICAS,
        help="Copies of the model; left empty: as few as keep the targets.",
        topic="batching-and-latency",
    )
    prompt_tokens: int = shared_inputs.ask_tokens(1000, "Prompt", "Tokens of a prompt on average.")
    output_tokens: int = shared_inputs.ask_tokens(300, "Answer", "Tokens of an answer on average.")
    concurrent: int = LOAD.ask(
        100,
        "Users at once",
        minimum=1,
        maximum=10_000_000,
        help="Requests that are being answered at the same time.",
    )
    requests_per_second: float | None = LOAD.ask(
        None,
        "Requests per second",
        unit="request/s",
        minimum=1e-6,
        maximum=1e7,
        help="Instead of the users at once: how many requests arrive, on average.",
    )
    run_requests: int | None = LOAD.ask(
        None,
        "Requests of a run",
        kind="count",
        minimum=1,
        maximum=1_000_000_000,
        help="Left empty: requests are never missing. A run that ends has a last "
        "round that is not full, which lowers the saturated rate.",
        advanced=True,
    )
    peak: float = LOAD.ask(
        1.0,
        "Peak over mean",
        minimum=1.0,
        maximum=100.0,
        help="The load to plan for as a multiple of the one given.",
        advanced=True,
    )
    prompt_variation: float = _variation("Variation of prompts")
    answer_variation: float = _variation("Variation of answers")
    ttft_target: float | None = _target(
        2.0, "Target: first token", "The longest wait for the first token."
    )
    tpot_target: float | None = _target(
        0.05, "Target: per token", "The longest pause between tokens."
    )
    percentile: str = _TARGETS.ask(
        "p95",
        "Targets hold for",
        choices=(("p50", "half"), ("p95", "95 of 100"), ("p99", "99 of 100")),
        help="For how many requests the targets have to hold.",
    )
    spare: int = HARDWARE.ask(
        1,
        "Spare replicas",
        minimum=0,
        maximum=1000,
        help="Copies that may fail while the targets are still met.",
        topic="cluster-components",
    )
    gpus_per_node: int = HARDWARE.ask(
        8,
        "GPUs per node",
        unit="GPU",
        minimum=1,
        maximum=72,
        help="GPUs of one server.",
        topic="cluster-components",
        advanced=True,
    )
    memory_utilization: float = shared_inputs.ask_usable_share(advanced=True)
    engine: str = shared_inputs.ask_engine()
    polling: int = ENGINE.ask(
        1,
        "Steps between looks at the queue",
        minimum=1,
        maximum=1000,
        help="An engine that looks for new requests at every step has 1; SGLang calls "
        "it scheduler-recv-interval.",
        advanced=True,
    )
    cost_per_gpu_hour: float | None = shared_inputs.ask_price()
    network_rate: float = shared_inputs.ask_network_rate()
    domain: int | None = shared_inputs.ask_domain()
    simulate: bool = ENGINE.ask(
        default=False,
        label="Simulate",
        kind="flag",
        help="Serve 1,500 random requests step by step beside the formula.",
        advanced=True,
    )
    seed: int = ENGINE.ask(
        1,
        "Random seed",
        minimum=0,
        maximum=2**31,
        help="Another number draws other random requests.",
        advanced=True,
    )
