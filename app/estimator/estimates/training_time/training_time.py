"""The estimate `training-time`: a step, a run, and what the run costs."""

import dataclasses
import math
from typing import Any

from app.estimator.estimate import Estimate
from app.estimator.estimates.training_time import words
from app.estimator.estimates.training_time.checks import check
from app.estimator.estimates.training_time.words import Run
from app.estimator.hardware.accelerators import Accelerator, find_accelerator
from app.estimator.hardware.networks import fabric_of
from app.estimator.inputs import BadInputs, ask
from app.estimator.job_inputs import (
    ask_degree,
    ask_domain,
    ask_gpus,
    ask_network,
    ask_network_rate,
    ask_number_format,
    ask_price,
    ask_recompute,
    ask_sequence,
    ask_training_software,
)
from app.estimator.models.architecture import Architecture, find_model
from app.estimator.registry import Entry
from app.estimator.running.reliability import goodput, job_mtbf, young_interval
from app.estimator.shared_inputs import ask_gpu, ask_model, ask_tensor_parallel
from app.estimator.timing.fit import memory_per_gpu
from app.estimator.timing.flops import flops_per_token, recomputed_flops, utilisation
from app.estimator.timing.plan import SOFTWARE, Plan, Recompute
from app.estimator.timing.step import StepTime, step_time

_YEAR = 365.25 * 86400.0
_MOST_GPUS = 1_000_000


def _batch(default: int | None, label: str, help_text: str, maximum: int) -> int:
    field: int = ask(
        default,
        label,
        kind="count",
        unit="sequence",
        minimum=1,
        maximum=maximum,
        help=help_text,
        term="micro-batch",
        group="Batch",
        topic="parallelism",
    )
    return field


@dataclasses.dataclass(frozen=True, slots=True)
class TrainingTime:
    """A training run: what, on what, how it is laid out, and what it may lose."""

    model: str = ask_model("llama-3.1-8b")
    tokens: float = ask(
        1e12,
        "Training tokens",
        unit="token",
        minimum=1,
        maximum=1e18,
        help="Tokens of the whole run.",
        group="Model",
        topic="training-versus-inference",
    )
    gpu: str = ask_gpu(count_field="gpus")
    gpus: int = ask_gpus(64)
    tensor_parallel: int = ask_tensor_parallel()
    pipeline_parallel: int = ask_degree(
        "Pipeline parallel",
        "Stages that the layers are divided into.",
        "pipeline-parallelism",
    )
    context_parallel: int = ask_degree(
        "Context parallel",
        "GPUs that divide each sequence.",
        "context-parallelism",
        advanced=True,
    )
    expert_parallel: int = ask_degree(
        "Expert parallel",
        "GPUs that divide the experts of a layer.",
        "expert-parallelism",
        advanced=True,
    )
    interleave: int = ask_degree(
        "Interleaving",
        "Chunks of layers on each pipeline stage.",
        "pipeline-parallelism",
        advanced=True,
    )
    sequence: int = ask_sequence()
    micro_batch: int = _batch(1, "Micro-batch", "Sequences in one forward pass.", 10**5)
    global_batch: int | None = _batch(
        None,
        "Global batch",
        "Sequences per optimizer step; left empty: about four million tokens.",
        10**7,
    )
    number_format: str = ask_number_format()
    recompute: str = ask_recompute()
    zero: str = ask(
        "1",
        "ZeRO stage",
        kind="choice",
        choices=(
            ("0", "0: nothing divided"),
            ("1", "1: optimizer divided"),
            ("3", "3: weights too (FSDP)"),
        ),
        help="What data-parallel GPUs divide among themselves.",
        term="zero",
        group="Layout",
        topic="parallelism",
    )
    software: str = ask_training_software()
    network_rate: float = ask_network_rate()
    network: str = ask_network()
    domain: int | None = ask_domain()
    mtbf_per_gpu: float = ask(
        5.8 * _YEAR,
        "Time between failures of a GPU",
        unit="s",
        typed_unit="years",
        minimum=3600.0,
        maximum=1000 * _YEAR,
        help="Mean time until one GPU's share of the machine stops the job; "
        "Llama 3 saw 5.8 years.",
        group="Losses",
        topic="cluster-components",
        advanced=True,
    )
    checkpoint_time: float = ask(
        30.0,
        "Checkpoint stall",
        unit="s",
        typed_unit="s",
        minimum=0.1,
        maximum=86400.0,
        help="How long one checkpoint stops the training.",
        term="checkpoint",
        group="Losses",
        topic="cluster-components",
        advanced=True,
    )
    restart_time: float = ask(
        600.0,
        "Restart",
        unit="s",
        typed_unit="min",
        minimum=0.0,
        maximum=864000.0,
        help="From a failure until training goes on.",
        group="Losses",
        topic="cluster-components",
        advanced=True,
    )
    other_time: float = ask(
        0.05,
        "Evaluation and repeats",
        typed_unit="%",
        minimum=0.0,
        maximum=0.9,
        help="Share of the time for validation and for work done twice.",
        group="Losses",
        topic="training-versus-inference",
        advanced=True,
    )
    deadline: float | None = ask(
        None,
        "Deadline",
        unit="s",
        typed_unit="days",
        minimum=60.0,
        maximum=100 * _YEAR,
        help="The run should be over by then; left empty: no limit.",
        group="Model",
        topic="training-versus-inference",
    )
    usd_per_gpu_hour: float = ask_price()
    watts_per_gpu: float | None = ask(
        None,
        "Power per GPU",
        unit="W",
        typed_unit="W",
        minimum=1.0,
        maximum=1e5,
        help="With its share of the server; left empty: 1.7 times the card's limit.",
        group="Cost",
        topic="cluster-components",
        advanced=True,
    )
    pue: float = ask(
        1.3,
        "PUE",
        minimum=1.0,
        maximum=5.0,
        help="Power of the site over that of its machines.",
        term="pue",
        group="Cost",
        topic="cluster-components",
        advanced=True,
    )


def compute(asked: TrainingTime) -> Estimate:
    """Time a step of the plan and carry it through the whole run."""
    model, gpu = find_model(asked.model), find_accelerator(asked.gpu)
    check(model, asked, gpu)
    plan = plan_of(asked)
    step = timed(model, gpu, asked, plan)
    run = run_of(model, gpu, asked, plan, step)
    if run.memory > (gpu.memory or 0.0):
        run = dataclasses.replace(run, lighter=lighter(model, gpu, asked))
    elif asked.deadline is not None and run.seconds > asked.deadline:
        run = dataclasses.replace(run, enough=enough(model, gpu, asked))
    return words.answer(asked, model, gpu, run)


def plan_of(asked: TrainingTime) -> Plan:
    """The layout that the inputs describe."""
    group = asked.tensor_parallel * asked.pipeline_parallel * asked.context_parallel
    data = asked.gpus // group
    usual = max(1, round(4e6 / asked.sequence / (data * asked.micro_batch)))
    batches = usual
    if asked.global_batch:
        batches = max(1, round(asked.global_batch / (data * asked.micro_batch)))
    return Plan(
        tensor=asked.tensor_parallel,
        pipeline=asked.pipeline_parallel,
        data=data,
        context=asked.context_parallel,
        expert=asked.expert_parallel,
        pieces=asked.interleave,
        sequence=asked.sequence,
        micro_batch=asked.micro_batch,
        micro_batches=batches,
        number_format=asked.number_format,
        recompute="full" if asked.recompute == "full" else _kept(asked.recompute),
        zero=int(asked.zero),
        software=SOFTWARE[asked.software],
    )


def _kept(recompute: str) -> Recompute:
    return "selective" if recompute == "selective" else "none"


def timed(
    model: Architecture, gpu: Accelerator, asked: TrainingTime, plan: Plan
) -> StepTime:
    """The step of a plan on the asked links."""
    fabric = fabric_of(gpu, asked.network_rate, asked.network, asked.domain or 0)
    return step_time(model, gpu, fabric, plan)


def run_of(
    model: Architecture,
    gpu: Accelerator,
    asked: TrainingTime,
    plan: Plan,
    step: StepTime,
) -> Run:
    """The whole run: steps, losses, hours, money and energy."""
    mtbf = job_mtbf(asked.mtbf_per_gpu, asked.gpus)
    interval = max(young_interval(asked.checkpoint_time, mtbf), asked.checkpoint_time)
    kept = goodput(interval, asked.checkpoint_time, asked.restart_time, mtbf)
    useful = kept * (1 - asked.other_time)
    computing = asked.tokens / plan.tokens * step.total
    memory = memory_per_gpu(model, plan)
    watts = asked.watts_per_gpu or 1.7 * (gpu.tdp or 0.0)
    flops = flops_per_token(model, plan.sequence)
    again = recomputed_flops(model, plan.sequence, plan.recompute)
    rate = plan.tokens / step.total / plan.gpus
    mfu = utilisation(flops, rate, gpu.peak(plan.number_format) or 1.0)
    return Run(
        plan=plan,
        step=step,
        flops=flops,
        mfu=mfu,
        hfu=mfu * (1 + again / flops),
        mtbf=mtbf,
        interval=interval,
        useful=useful,
        computing=computing,
        seconds=computing / useful,
        watts=watts,
        memory=memory,
        layers=model.layers,
    )


def lighter(
    model: Architecture, gpu: Accelerator, asked: TrainingTime
) -> tuple[str, str] | None:
    """The one input, with its value, that makes a plan fit in memory."""
    limit = gpu.memory or 0.0
    for field, value in _LIGHTER:
        changed = dataclasses.replace(asked, **{field: value})
        try:
            check(model, changed, gpu)
        except BadInputs:
            continue
        if memory_per_gpu(model, plan_of(changed)) <= limit:
            return field, str(value)
    return None


_LIGHTER: tuple[tuple[str, Any], ...] = (
    ("recompute", "selective"),
    ("zero", "1"),
    ("recompute", "full"),
    ("zero", "3"),
    ("tensor_parallel", 2),
    ("tensor_parallel", 4),
    ("tensor_parallel", 8),
)


def enough(model: Architecture, gpu: Accelerator, asked: TrainingTime) -> int | None:
    """The fewest GPUs, near enough, with which a run keeps its deadline."""
    limit = asked.deadline or math.inf
    group = asked.tensor_parallel * asked.pipeline_parallel * asked.context_parallel
    gpus = asked.gpus
    for _ in range(12):
        changed = dataclasses.replace(asked, gpus=gpus)
        plan = plan_of(changed)
        run = run_of(model, gpu, changed, plan, timed(model, gpu, changed, plan))
        if run.seconds <= limit:
            return gpus
        gpus = group * math.ceil(gpus * 1.002 * run.seconds / limit / group)
        if gpus > _MOST_GPUS:
            break
    return None


ENTRY = Entry(
    name="training-time",
    title="Training time",
    summary="How long a run takes, where each step goes, and what it costs.",
    group="Training",
    inputs=TrainingTime,
    compute=compute,
    outputs=words.OUTPUTS,
    topic="parallelism",
)
