"""Memory of one GPU in a training step, stage by stage of the pipeline."""

import dataclasses

from app.estimator.activations import kept_by, logits_bytes
from app.estimator.architecture import Architecture
from app.estimator.layout import Layout, Stage, in_flight, stage_share, stages
from app.estimator.states import Recipe, state_bytes


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """One training step as the memory sees it.

    `sequence` [token] and `micro_batch` [sequence] of one forward pass;
    `micro_batches` of one optimizer step; `logit_bytes` per logit at the loss.
    """

    sequence: int
    micro_batch: int = 1
    micro_batches: int = 1
    recompute: str = "none"
    flash: bool = True
    logit_bytes: float = 10.0


@dataclasses.dataclass(frozen=True, slots=True)
class Load:
    """Bytes on one GPU of one pipeline stage."""

    stage: int
    weights: float
    gradients: float
    optimizer: float
    activations: float
    logits: float
    gathered: float = 0.0
    overhead: float = 0.0

    @property
    def total(self) -> float:
        """Their sum."""
        states = self.weights + self.gradients + self.optimizer
        moving = self.activations + self.logits
        return states + moving + self.gathered + self.overhead


def stage_loads(
    model: Architecture, layout: Layout, step: Step, recipe: Recipe, overhead: float
) -> tuple[Load, ...]:
    """The load of a GPU on each different stage of the pipeline."""
    return tuple(
        stage_load(model, stage, layout, step, recipe, overhead)
        for stage in stages(model, layout.pipeline, layout.virtual)
    )


def stage_load(
    model: Architecture,
    stage: Stage,
    layout: Layout,
    step: Step,
    recipe: Recipe,
    overhead: float,
) -> Load:
    """The load of a GPU on one stage."""
    share = stage_share(model, stage, layout)
    weights, gradients, optimizer = state_bytes(share, recipe, layout)
    tokens = step.sequence * step.micro_batch / layout.context
    logits = 0.0
    if stage.last:
        logits = logits_bytes(tokens, model.vocabulary, layout.tensor, step.logit_bytes)
    return Load(
        stage=stage.index,
        weights=weights,
        gradients=gradients,
        optimizer=optimizer,
        activations=stage_activations(model, stage, layout, step),
        logits=logits,
        gathered=gathered_bytes(stage, layout, recipe),
        overhead=overhead,
    )


def stage_activations(
    model: Architecture, stage: Stage, layout: Layout, step: Step
) -> float:
    """Activations that a stage keeps at its fullest.

    Micro-batches in flight times bytes of its layers; with full recomputation one
    layer is opened again on top.
    """
    tokens = step.sequence * step.micro_batch / layout.context
    kept = opened = 0.0
    for layer, number in stage.runs:
        bytes_kept = kept_by(layer, model.hidden, flash=step.flash)
        each = bytes_kept.per_token(layout, step.sequence, step.recompute)
        kept += number * each
        if step.recompute == "full":
            again = bytes_kept.per_token(layout, step.sequence, "none")
            opened = max(opened, again)
    return tokens * (kept * in_flight(stage.index, layout, step.micro_batches) + opened)


def gathered_bytes(stage: Stage, layout: Layout, recipe: Recipe) -> float:
    """Weights that ZeRO-3 gathers while they are used: two layers at once.

    Source: Zhao (2023), section 3.3: the unit in use and the one fetched ahead.
    """
    if layout.zero < 3 or layout.shards == 1:
        return 0.0
    largest = max((a.parameters for a, _ in stage.runs), default=0)
    return 2 * min(recipe.weights, 2.0) * largest / layout.tensor


def worst(loads: tuple[Load, ...]) -> Load:
    """The fullest stage, which decides whether the plan fits."""
    return max(loads, key=lambda load: load.total)
