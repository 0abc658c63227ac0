"""The estimate `mig`: which instances fit together on one GPU."""

from app.estimator.estimate import Estimate
from app.estimator.estimates.mig.asked import MigInputs
from app.estimator.estimates.mig.compute import read_instances
from app.estimator.estimates.mig.words import (
    OUTPUTS,
    bar,
    figures,
    notes,
    steps,
    table,
    verdict,
)
from app.estimator.hardware.accelerators import find_accelerator
from app.estimator.hardware.partitions import cards, find_card, place
from app.estimator.registry import EstimateSpec
from app.estimator.shared_inputs import input_error


def estimate(asked: MigInputs) -> Estimate:
    """Place the instances on the slices of the GPU, or say why they do not fit."""
    gpu = find_accelerator(asked.gpu)
    card = find_card(gpu.id)
    if card is None:
        why = "cannot be partitioned"
        if gpu.mig_instances:
            why = f"has {gpu.mig_instances} instances, whose profiles are not published"
        message = f"The {gpu.name} {why}; GPUs that can: {', '.join(cards())}."
        raise input_error("gpu", asked.gpu, message)
    wanted = read_instances(card, asked.instances)
    starts = place(card, wanted)
    return Estimate(
        name="mig",
        verdict=verdict(card, gpu, wanted, starts),
        figures=figures(card, wanted, starts),
        steps=steps(card, wanted),
        pictures=(bar(card, wanted),),
        tables=(table(card, wanted, starts),),
        notes=notes(card, gpu, wanted, starts),
    )


ENTRY = EstimateSpec(
    name="mig",
    title="MIG partitions",
    summary="Which instances fit together on one GPU, and what each gets.",
    group="Hardware",
    inputs=MigInputs,
    answer=estimate,
    outputs=OUTPUTS,
    first=("instances", "memory", "more"),
    topic="mig",
)
