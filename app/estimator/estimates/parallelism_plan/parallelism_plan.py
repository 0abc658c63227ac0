"""The estimate `parallelism-plan`: the best layouts of a model on a cluster."""

import dataclasses

from app.estimator.estimate import Estimate
from app.estimator.estimates.parallelism_plan import words
from app.estimator.estimates.parallelism_plan.search import (
    STEPS,
    Job,
    Search,
    best,
    fewest,
    look,
    search,
)
from app.estimator.estimates.parallelism_plan.words import Found
from app.estimator.hardware.accelerators import Accelerator, find_accelerator
from app.estimator.hardware.networks import Fabric, fabric_of
from app.estimator.inputs import ask
from app.estimator.job_inputs import (
    ask_domain,
    ask_gpus,
    ask_network,
    ask_network_rate,
    ask_number_format,
    ask_price,
    ask_training_software,
)
from app.estimator.models.architecture import Architecture, find_model
from app.estimator.registry import Entry
from app.estimator.shared_inputs import ask_gpu, ask_model, refuse

__all__ = ["ENTRY", "ParallelismPlan", "best", "search"]

# Clusters beside the asked one that are tried when money decides: half, a quarter.
_HALVINGS = 4
_MOST = 10  # layouts that are ranked
_MOST_OF_PARTS = 3
_STEPS_OF_FEWEST = 10_000  # see STEPS


@dataclasses.dataclass(frozen=True, slots=True)
class ParallelismPlan:
    """A training job and the cluster it should be laid out on."""

    model: str = ask_model("llama-3.1-70b")
    gpu: str = ask_gpu(count_field="gpus")
    gpus: int = ask_gpus(256)
    sequence: int = ask(
        8192,
        "Sequence",
        kind="count",
        unit="token",
        minimum=16,
        maximum=10_000_000,
        help="Tokens of one training sequence.",
        group="Batch",
        topic="training-memory",
    )
    global_batch: int | None = ask(
        None,
        "Global batch",
        kind="count",
        unit="sequence",
        minimum=1,
        maximum=10**7,
        help="Sequences per optimizer step; left empty: about eight million tokens.",
        term="batch-size",
        group="Batch",
        topic="parallelism",
    )
    tokens: float = ask(
        1e12,
        "Training tokens",
        unit="token",
        minimum=1,
        maximum=1e18,
        help="Tokens of the whole run, for time and cost.",
        group="Model",
        topic="training-versus-inference",
    )
    number_format: str = ask_number_format()
    objective: str = ask(
        "time",
        "Rank by",
        kind="choice",
        choices=(("time", "time of the run"), ("cost", "cost of the run")),
        help="By cost, half, a quarter and fewer of the GPUs are tried as well.",
        group="Recipe",
        topic="parallelism",
    )
    usable_memory: float = ask(
        0.95,
        "Usable share of memory",
        typed_unit="%",
        minimum=0.1,
        maximum=1.0,
        help="A plan may fill this share of each GPU.",
        group="Hardware",
        topic="training-memory",
        advanced=True,
    )
    software: str = ask_training_software()
    network_rate: float = ask_network_rate()
    network: str = ask_network()
    domain: int | None = ask_domain()
    usd_per_gpu_hour: float = ask_price()


def compute(asked: ParallelismPlan) -> Estimate:
    """Search all layouts, and put the best into words."""
    model, gpu = find_model(asked.model), find_accelerator(asked.gpu)
    check(asked, gpu)
    return words.answer(asked, model, gpu, find_plans(asked, model, gpu))


def check(asked: ParallelismPlan, gpu: Accelerator) -> None:
    """Refuse a card without the rates, memory or format that a search needs."""
    if gpu.peak("bf16") is None or gpu.memory_bandwidth is None or not gpu.memory:
        message = f"Rates and memory of the {gpu.name} are not all known."
        raise refuse("gpu", asked.gpu, message)
    if gpu.peak(asked.number_format) is None:
        message = f"The {gpu.name} does not compute in {asked.number_format.upper()}."
        raise refuse("number_format", asked.number_format, message)


def job_of(asked: ParallelismPlan) -> Job:
    """The job that the inputs describe."""
    usual = max(1, round(8e6 / asked.sequence))
    return Job(
        gpus=asked.gpus,
        sequence=asked.sequence,
        global_batch=asked.global_batch or _rounded(usual, asked.gpus),
        number_format=asked.number_format,
        software=asked.software,
        usable=asked.usable_memory,
    )


def _rounded(batch: int, gpus: int) -> int:
    """A batch that the whole cluster divides, or a power of two below it."""
    if batch >= gpus:
        return batch // gpus * gpus
    power = 1
    while 2 * power <= batch:
        power *= 2
    return power


def find_plans(asked: ParallelismPlan, model: Architecture, gpu: Accelerator) -> Found:
    """The best layouts, the smallest cluster, and how many were tried."""
    fabric = fabric_of(gpu, asked.network_rate, asked.network, asked.domain or 0)
    job = job_of(asked)
    searches = _searches(asked, model, gpu, job, fabric)
    ranked = [c for found in searches for c in found.ranked]
    if asked.objective == "cost":
        ranked.sort(key=lambda c: c.plan.gpus / c.tokens_per_second)
    return Found(
        job=job,
        fabric=fabric,
        ranked=tuple(ranked[:10]),
        fewest=fewest(model, gpu, job, fabric, _STEPS_OF_FEWEST),
        count=searches[0].fitting,
        seen=sum(found.seen for found in searches),
        legal=sum(found.legal for found in searches),
    )


def _searches(
    asked: ParallelismPlan,
    model: Architecture,
    gpu: Accelerator,
    job: Job,
    fabric: Fabric,
) -> list[Search]:
    """The search on the whole cluster, and behind it those on its parts.

    The smallest is searched first, and what it leaves of the work goes to the others.
    """
    halvings = _HALVINGS if asked.objective == "cost" else 0
    sizes = [n for n in range(halvings + 1) if job.gpus >> n]
    found: list[Search] = []
    left = STEPS
    while sizes:
        steps = left // len(sizes)
        halving = sizes.pop()
        part = dataclasses.replace(job, gpus=job.gpus >> halving)
        most = _MOST_OF_PARTS if halving else _MOST
        found.insert(0, look(model, gpu, part, fabric, most, steps))
        left -= found[0].steps
    return found


ENTRY = Entry(
    name="parallelism-plan",
    title="Parallelism plan",
    summary="The best layouts of a model on a cluster, with the reason for each.",
    group="Training",
    inputs=ParallelismPlan,
    compute=compute,
    outputs=words.OUTPUTS,
    topic="parallelism",
)
