"""The estimate `serving-capacity`: from traffic and targets to GPUs and nodes."""

import dataclasses
import math

from app.estimator.estimate import Estimate
from app.estimator.estimates.latency.latency import check
from app.estimator.estimates.serving_capacity import words
from app.estimator.hardware.accelerators import find_accelerator
from app.estimator.hardware.networks import fabric_of
from app.estimator.inputs import ask
from app.estimator.job_inputs import (
    ask_domain,
    ask_engine,
    ask_network_rate,
    ask_price,
    ask_tokens,
)
from app.estimator.memory.sharding import tensor_parallel_choices
from app.estimator.models.architecture import find_model
from app.estimator.registry import Entry
from app.estimator.serving.capacity import Capacity
from app.estimator.serving.engine import Serving
from app.estimator.serving.load import Requests, most_sequences
from app.estimator.serving.profile import (
    Profile,
    Settled,
    Targets,
    Traffic,
    highest,
    profile_of,
    settle,
    settle_rate,
)
from app.estimator.serving.simulation import Outcome, simulate
from app.estimator.serving.step import place
from app.estimator.shared_inputs import (
    ask_cache,
    ask_gpu,
    ask_model,
    ask_tensor_parallel,
    ask_weights,
)

_MOST_REPLICAS = 100_000


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


def _target(default: float, label: str, help_text: str) -> float | None:
    field: float | None = ask(
        default,
        label,
        unit="s",
        typed_unit="ms",
        minimum=1e-4,
        maximum=3600.0,
        help=help_text,
        term="service-level-objective",
        group="Targets",
        topic="batching-and-latency",
    )
    return field


@dataclasses.dataclass(frozen=True, slots=True)
class ServingCapacity:
    """A service: the model, its users, and what it promises them."""

    model: str = ask_model()
    weights: str = ask_weights("fp8")
    cache: str = ask_cache("fp8")
    gpu: str = ask_gpu(count_field="tensor_parallel")
    tensor_parallel: int = ask_tensor_parallel(4, "GPUs that share the model")
    replicas: int | None = ask(
        None,
        "Replicas",
        kind="count",
        minimum=1,
        maximum=_MOST_REPLICAS,
        help="Copies of the model; left empty: as few as keep the targets.",
        group="Hardware",
        topic="batching-and-latency",
    )
    prompt_tokens: int = ask_tokens(1000, "Prompt", "Tokens of a prompt on average.")
    output_tokens: int = ask_tokens(300, "Answer", "Tokens of an answer on average.")
    concurrent: int = ask(
        100,
        "Users at once",
        kind="count",
        minimum=1,
        maximum=10_000_000,
        help="Requests that are being answered at the same time.",
        term="concurrency",
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
        2.0, "Target: first token", "The time to the first token that is promised."
    )
    tpot_target: float | None = _target(
        0.05, "Target: per token", "The pause between tokens that is promised."
    )
    percentile: str = ask(
        "p95",
        "Kept for",
        kind="choice",
        choices=(("p50", "half"), ("p95", "95 of 100"), ("p99", "99 of 100")),
        help="For how many requests the targets have to hold.",
        term="percentile",
        group="Targets",
        topic="batching-and-latency",
    )
    spare: int = ask(
        1,
        "Spare replicas",
        kind="count",
        minimum=0,
        maximum=1000,
        help="Copies that may fail without breaking the promise.",
        group="Hardware",
        topic="cluster-components",
    )
    gpus_per_node: int = ask(
        8,
        "GPUs per node",
        kind="count",
        unit="GPU",
        minimum=1,
        maximum=72,
        help="GPUs of one server.",
        group="Hardware",
        topic="cluster-components",
        advanced=True,
    )
    memory_utilization: float = ask(
        0.9,
        "Usable share of memory",
        typed_unit="%",
        minimum=0.1,
        maximum=1.0,
        help="The share of GPU memory that the engine may take.",
        group="Engine",
        topic="inference-memory",
        advanced=True,
    )
    engine: str = ask_engine()
    cost_per_gpu_hour: float = ask_price()
    network_rate: float = ask_network_rate()
    domain: int | None = ask_domain()
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
        kind="count",
        minimum=0,
        maximum=2**31,
        help="Another number draws other random requests.",
        group="Engine",
        topic="batching-and-latency",
        advanced=True,
    )


def compute(asked: ServingCapacity) -> Estimate:
    """Find the replicas that keep the promise, and what they do."""
    model, gpu = find_model(asked.model), find_accelerator(asked.gpu)
    check(model, gpu, asked.weights, asked.tensor_parallel)
    profile = profile_for(asked)
    return words.answer(asked, profile, size(asked, profile))


def profile_for(asked: ServingCapacity) -> Profile:
    """The curves of one replica."""
    gpu = find_accelerator(asked.gpu)
    serving = Serving(
        weights=asked.weights,
        cache=asked.cache,
        tensor=asked.tensor_parallel,
        expert_tensor=asked.tensor_parallel,
        software=asked.engine,
    )
    fabric = fabric_of(gpu, asked.network_rate, domain=asked.domain or 0)
    placed = place(find_model(asked.model), gpu, fabric, serving)
    requests = Requests(asked.prompt_tokens, asked.output_tokens)
    traffic = Traffic(requests, asked.prompt_variation, asked.answer_variation)
    return profile_of(placed, traffic, asked.memory_utilization)


def targets_of(asked: ServingCapacity) -> Targets:
    """The promise as numbers."""
    share = {"p50": 0.5, "p95": 0.95, "p99": 0.99}[asked.percentile]
    return Targets(share, asked.ttft_target, asked.tpot_target)


def size(asked: ServingCapacity, profile: Profile) -> Capacity:
    """Replicas, and how each of them settles."""
    targets = targets_of(asked)
    top = highest(profile, targets)
    replicas = asked.replicas or _fewest(asked, top)
    settled = settled_at(asked, profile, replicas or 1)
    return Capacity(
        replicas=replicas,
        settled=settled,
        top=top,
        met=bool(replicas) and settled is not None and targets.met(settled),
        memory=profile.most >= 1,
        simulated=_simulated(asked, profile, settled),
        alone=settle(profile, 1.0) if profile.most >= 1 and top is None else None,
        enough=_enough(asked, profile) if profile.most < 1 else None,
    )


def _enough(asked: ServingCapacity, profile: Profile) -> int | None:
    """The fewest GPUs per replica that hold the weights and one request."""
    model, gpu = profile.placed.model, profile.placed.gpu
    for tensor in tensor_parallel_choices(model):
        if tensor <= asked.tensor_parallel:
            continue
        serving = dataclasses.replace(
            profile.placed.serving, tensor=tensor, expert_tensor=tensor
        )
        wider = place(model, gpu, profile.placed.fabric, serving)
        context = profile.traffic.requests.mean_context
        if most_sequences(wider, context, asked.memory_utilization) >= 1:
            return tensor
    return None


def _fewest(asked: ServingCapacity, top: Settled | None) -> int | None:
    """The fewest replicas that each stay within the highest load; None: no number."""
    if top is None:
        return None
    if asked.requests_per_second is not None:
        needed = asked.requests_per_second * asked.peak / top.rate
    else:
        needed = asked.concurrent * asked.peak / top.batch
    count = max(1, math.ceil(needed - 1e-9))
    return count if count <= _MOST_REPLICAS else None


def settled_at(
    asked: ServingCapacity, profile: Profile, replicas: int
) -> Settled | None:
    """How one of `replicas` settles; None when it cannot keep up."""
    if profile.most < 1:
        return None
    if asked.requests_per_second is not None:
        return settle_rate(profile, asked.requests_per_second * asked.peak / replicas)
    batch = asked.concurrent * asked.peak / replicas
    return settle(profile, batch) if batch <= profile.most else None


def _simulated(
    asked: ServingCapacity, profile: Profile, settled: Settled | None
) -> Outcome | None:
    if not asked.simulate or settled is None:
        return None
    return simulate(profile, settled.rate, seed=asked.seed)


ENTRY = Entry(
    name="serving-capacity",
    title="Serving capacity",
    summary="From users and promised latencies to replicas, GPUs, nodes and cost.",
    group="Serving",
    inputs=ServingCapacity,
    compute=compute,
    outputs=words.OUTPUTS,
    topic="batching-and-latency",
)
