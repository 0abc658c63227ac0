"""Which layouts of a training job fit in memory, worked out part by part."""

from collections.abc import Iterator

from app.estimator.estimates.parallelism_plan.layouts import LayoutFamily, TrainingJob
from app.estimator.memory.frameworks import FRAMEWORKS
from app.estimator.memory.layouts import ParallelLayout, in_flight
from app.estimator.memory.training import (
    TransientMemory,
    moving_by_stage,
    resident_memory,
    usual_overhead,
)
from app.estimator.models.architecture import Architecture
from app.estimator.timing.room import layout_of, step_of, usual_states
from app.estimator.timing.training_plan import Recompute

_Stages = tuple[float, ...]


_STAGE = 3  # steps for working out one stage of a layout


_RECOMPUTES: tuple[Recompute, ...] = ("none", "selective", "full")


class MemoryFit:
    """What fits of one job.

    States depend on how experts and parameters are divided, activations on how
    sequences are; each is worked out once and added up for every layout that has
    both. What a token keeps is worked out once for all micro-batches. `steps` counts
    this work.
    """

    def __init__(self, model: Architecture, job: TrainingJob, limit: float) -> None:
        self.steps = 0
        self._model, self._job, self._limit = model, job, limit
        self._standing: dict[tuple[int, ...], _Stages] = {}
        self._moving: dict[tuple[object, ...], _Stages] = {}
        self._each: dict[
            tuple[object, ...], tuple[ParallelLayout, tuple[TransientMemory, ...]]
        ] = {}

    @property
    def holds_states(self) -> bool:
        """Whether the states alone fit where nothing of them is kept twice."""
        alone = resident_memory(self._model, ParallelLayout(), FRAMEWORKS["torch"], usual_states())[
            0
        ]
        states = alone.weights + alone.gradients + alone.optimizer
        return states / self._job.gpus <= self._limit

    def lightest(self, family: LayoutFamily) -> Iterator[tuple[tuple[int, int], Recompute, float]]:
        """Every size that fits, with the least recomputation and its memory [B]."""
        self.steps += 1
        stays = self._stays(family)
        if max(stays) > self._limit:
            return
        start = 0
        for size in family.sizes:
            self.steps += 1
            for number in range(start, len(_RECOMPUTES)):
                moves = self._moves(family, size, _RECOMPUTES[number])
                memory = max(map(float.__add__, stays, moves))
                if memory <= self._limit:
                    yield size, _RECOMPUTES[number], memory
                    break
            else:
                return  # a larger micro-batch keeps more still
            start = number

    def has_room(self, family: LayoutFamily) -> bool:
        """Whether anything of a family fits; the smallest micro-batch needs least."""
        return next(self.lightest(family), None) is not None

    def _stays(self, family: LayoutFamily) -> _Stages:
        shared = (family.tensor, family.pipeline, family.pieces)
        key = (*shared, family.expert, family.zero)
        found = self._standing.get(key)
        if found is None:
            plan = family.plan(self._job, family.sizes[0])
            framework = step_of(plan).framework
            stages = resident_memory(self._model, layout_of(plan), framework, usual_states())
            beside = usual_overhead(plan.gpus)
            found = tuple(stage.total + beside for stage in stages)
            self._standing[key] = found
            self.steps += _STAGE * len(found)
        return found

    def _moves(self, family: LayoutFamily, size: tuple[int, int], recompute: Recompute) -> _Stages:
        shared = (family.tensor, family.pipeline, family.pieces, family.context)
        key = (*shared, size, recompute)
        found = self._moving.get(key)
        if found is None:
            layout, each = self._per_token(family, (*shared, recompute), recompute)
            micro_batch, batches = size
            tokens = self._job.sequence * micro_batch / family.context
            found = tuple(
                sum(moves.both(tokens, in_flight(moves.stage, layout, batches))) for moves in each
            )
            self._moving[key] = found
            self.steps += _STAGE * len(found)
        return found

    def _per_token(
        self, family: LayoutFamily, key: tuple[object, ...], recompute: Recompute
    ) -> tuple[ParallelLayout, tuple[TransientMemory, ...]]:
        found = self._each.get(key)
        if found is None:
            plan = family.plan(self._job, family.sizes[0], recompute)
            layout = layout_of(plan)
            each = moving_by_stage(self._model, layout, step_of(plan))
            found = self._each[key] = layout, each
        return found
