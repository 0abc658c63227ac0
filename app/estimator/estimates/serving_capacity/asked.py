"""What `serving-capacity` asks for."""

import dataclasses

from app.estimator import job_inputs, shared_inputs
from app.estimator.inputs import ask


def _target(default: float, label: str, help_text: str) -> float | None:
    field: float | None = ask(
        default,
        label,
        unit="s",
        typed_unit="ms",
        minimum=1e-4,
        maximum=3600.0,
        help=help_text,
        group="Targets",
        topic="batching-and-latency",
    )
    return field


MOST_REPLICAS = 100_000


def _variation(label: str) -> float:
    field: float = ask(
        0.5,
        label,
        minimum=0.0,
        maximum=10.0,
        help="Squared coefficient of variation of the lengths: 0 all alike, 1 as "
        "spread out as random, more for a few very long ones.",
        group="Load",
        topic="batching-and-latency",
        advanced=True,
    )
    return field


@dataclasses.dataclass(frozen=True, slots=True)
class ServingCapacity:
    """A service: the model, its users, and the latencies that they are to see."""

    model: str = shared_inputs.ask_model()
    weights: str = shared_inputs.ask_weights("fp8")
    cache: str = shared_inputs.ask_cache("fp8")
    gpu: str = shared_inputs.ask_gpu(count_field="tensor_parallel")
    tensor_parallel: int = shared_inputs.ask_tensor_parallel(
        4, "GPUs that share the model"
    )
    attention_parallel: int = ask(
        1,
        "Attention data parallel",
        minimum=1,
        maximum=1024,
        help="Groups of GPUs in a replica that run attention on different requests "
        "and share the experts.",
        term="data-parallelism",
        group="Hardware",
        topic="parallelism",
        advanced=True,
    )
    expert_parallel: int = ask(
        1,
        "Expert parallel",
        minimum=1,
        maximum=1024,
        help="Parts that the experts of a layer are divided into.",
        term="expert-parallelism",
        group="Hardware",
        topic="parallelism",
        advanced=True,
    )
    expert_tensor_parallel: int | None = ask(
        None,
        "GPUs that share an expert",
        kind="count",
        unit="GPU",
        minimum=1,
        maximum=1024,
        help="Left empty: as many as share the model.",
        term="tensor-parallelism",
        group="Hardware",
        topic="parallelism",
        advanced=True,
    )
    replicas: int | None = ask(
        None,
        "Replicas",
        kind="count",
        minimum=1,
        maximum=MOST_REPLICAS,
        help="Copies of the model; left empty: as few as keep the targets.",
        group="Hardware",
        topic="batching-and-latency",
    )
    prompt_tokens: int = job_inputs.ask_tokens(
        1000, "Prompt", "Tokens of a prompt on average."
    )
    output_tokens: int = job_inputs.ask_tokens(
        300, "Answer", "Tokens of an answer on average."
    )
    concurrent: int = ask(
        100,
        "Users at once",
        minimum=1,
        maximum=10_000_000,
        help="Requests that are being answered at the same time.",
        group="Load",
        topic="batching-and-latency",
    )
    requests_per_second: float | None = ask(
        None,
        "Requests per second",
        unit="request/s",
        minimum=1e-6,
        maximum=1e7,
        help="Instead of the users at once: how many requests arrive, on average.",
        group="Load",
        topic="batching-and-latency",
    )
    run_requests: int | None = ask(
        None,
        "Requests of a run",
        kind="count",
        minimum=1,
        maximum=1_000_000_000,
        help="Left empty: requests are never missing. A run that ends has a last "
        "round that is not full, which lowers the saturated rate.",
        group="Load",
        topic="batching-and-latency",
        advanced=True,
    )
    peak: float = ask(
        1.0,
        "Peak over mean",
        minimum=1.0,
        maximum=100.0,
        help="The load to plan for as a multiple of the one given.",
        group="Load",
        topic="batching-and-latency",
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
    percentile: str = ask(
        "p95",
        "Targets hold for",
        choices=(("p50", "half"), ("p95", "95 of 100"), ("p99", "99 of 100")),
        help="For how many requests the targets have to hold.",
        group="Targets",
        topic="batching-and-latency",
    )
    spare: int = ask(
        1,
        "Spare replicas",
        minimum=0,
        maximum=1000,
        help="Copies that may fail while the targets are still met.",
        group="Hardware",
        topic="cluster-components",
    )
    gpus_per_node: int = ask(
        8,
        "GPUs per node",
        unit="GPU",
        minimum=1,
        maximum=72,
        help="GPUs of one server.",
        group="Hardware",
        topic="cluster-components",
        advanced=True,
    )
    memory_utilization: float = job_inputs.ask_usable_share(advanced=True)
    engine: str = job_inputs.ask_engine()
    polling: int = ask(
        1,
        "Steps between looks at the queue",
        minimum=1,
        maximum=1000,
        help="An engine that looks for new requests at every step has 1; SGLang calls "
        "it scheduler-recv-interval.",
        group="Engine",
        topic="batching-and-latency",
        advanced=True,
    )
    cost_per_gpu_hour: float = job_inputs.ask_price()
    network_rate: float = job_inputs.ask_network_rate()
    domain: int | None = job_inputs.ask_domain()
    simulate: bool = ask(
        default=False,
        label="Simulate",
        kind="flag",
        help="Serve 1,500 random requests step by step beside the formula.",
        group="Engine",
        topic="batching-and-latency",
        advanced=True,
    )
    seed: int = ask(
        1,
        "Random seed",
        minimum=0,
        maximum=2**31,
        help="Another number draws other random requests.",
        group="Engine",
        topic="batching-and-latency",
        advanced=True,
    )
