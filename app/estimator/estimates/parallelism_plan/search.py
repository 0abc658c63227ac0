"""Search over layouts of a training job: what fits, ranked by what it costs in time."""

import bisect
import dataclasses

from app.estimator.estimates.parallelism_plan.fitting import MemoryFit
from app.estimator.estimates.parallelism_plan.layouts import LayoutFamily, TrainingJob, splits
from app.estimator.hardware.accelerators import Accelerator
from app.estimator.hardware.networks import Interconnect, fabric_of
from app.estimator.hardware.rates import engine_of
from app.estimator.memory.training import StageMemory
from app.estimator.models.architecture import Architecture
from app.estimator.timing.room import load_of
from app.estimator.timing.step import LayerTimes, StepTime, layer_times, step_of
from app.estimator.timing.training_plan import (
    SOFTWARE,
    Recompute,
    TrainingPlan,
    layers_per_stage,
)


@dataclasses.dataclass(frozen=True, slots=True)
class LayoutCandidate:
    """A layout that fits: its plan, its step and what fills a GPU."""

    plan: TrainingPlan
    step: StepTime
    load: StageMemory

    @property
    def memory(self) -> float:
        """Bytes on a GPU of the fullest stage [B]."""
        return self.load.total

    @property
    def tokens_per_second(self) -> float:
        """Tokens per second of the whole cluster [token/s]."""
        return self.plan.tokens / self.step.total


@dataclasses.dataclass(frozen=True, slots=True)
class LayoutSearchResult:
    """The best layouts that fit, and how many fit, were looked at and are legal.

    `steps` is the work that it was.
    """

    ranked: tuple[LayoutCandidate, ...]
    fitting: int
    seen: int
    legal: int
    steps: int


@dataclasses.dataclass(frozen=True, slots=True)
class FewestGpus:
    """The fewest GPUs on which a layout fits; not `sure` where the search ended."""

    gpus: int | None
    sure: bool = True


_TIMED = 5


_LAYER = 12


class _LayoutSearch:
    """A search under way: the best so far, and how much work it was."""

    def __init__(
        self,
        model: Architecture,
        gpu: Accelerator,
        job: TrainingJob,
        fabric: Interconnect,
        most: int,
    ) -> None:
        older = SOFTWARE[job.software].older_attention
        self.fitting = 0
        self._timed = 0
        self._model, self._job, self._fabric, self._most = model, job, fabric, most
        self._engine = engine_of(gpu, job.number_format, older_kernels=older)
        self._fits = MemoryFit(model, job, gpu.capacity * job.usable)
        self._times: dict[tuple[object, ...], LayerTimes] = {}
        self._stages: dict[tuple[int, int], float] = {}
        self._ranked: list[tuple[float, float, int, TrainingPlan, StepTime]] = []

    @property
    def steps(self) -> int:
        """The work done so far."""
        return self._fits.steps + self._timed

    def best(self) -> tuple[LayoutCandidate, ...]:
        """The fastest of those that fit, the best first."""
        return tuple(
            LayoutCandidate(plan, step, load_of(self._model, plan))
            for _, _, _, plan, step in self._ranked
        )

    def look_at(self, family: LayoutFamily) -> None:
        """Rank what fits of a family, each micro-batch with the least recomputation."""
        fill = (family.pipeline - 1) / family.pieces
        stage = self._stage(family)
        for size, recompute, memory in self._fits.lightest(family):
            self.fitting += 1
            times = self._layer_times(family, size, recompute)
            if self._is_beaten((size[1] + fill) * times.busy * stage):
                continue
            plan = family.plan(self._job, size, recompute)
            self._timed += _TIMED
            step = step_of(self._model, self._engine, self._fabric, plan, times)
            entry = (step.total, memory, self.fitting, plan, step)
            bisect.insort(self._ranked, entry)
            del self._ranked[self._most :]

    def _stage(self, family: LayoutFamily) -> float:
        """The share of the layers that the fullest stage has."""
        key = family.pipeline, family.pieces
        if key not in self._stages:
            plan = family.plan(self._job, family.sizes[0])
            self._stages[key] = layers_per_stage(self._model, plan) / self._model.layers
        return self._stages[key]

    def _is_beaten(self, least: float) -> bool:
        """Whether a step that takes at least so long is not among the best."""
        return len(self._ranked) >= self._most and least > self._ranked[-1][0]

    def _layer_times(
        self, family: LayoutFamily, size: tuple[int, int], recompute: Recompute
    ) -> LayerTimes:
        key = (family.tensor, family.context, family.expert, size[0], recompute)
        times = self._times.get(key)
        if times is None:
            plan = family.plan(self._job, size, recompute)
            times = layer_times(self._model, self._engine, self._fabric, plan)
            self._times[key] = times
            self._timed += _LAYER * len(self._model.runs)
        return times


# Work in units of about three microseconds, so that a limit of it is a limit of time.
# It is counted and not timed, so that every machine comes to the same answer.
STEPS = 45_000


def search(
    model: Architecture,
    gpu: Accelerator,
    job: TrainingJob,
    fabric: Interconnect | None = None,
    most: int = 10,
) -> tuple[LayoutCandidate, ...]:
    """The fastest layouts that fit, the best first; see `look`.

    >>> from app.estimator.models.lookup import find_model
    >>> from app.estimator.hardware.accelerators import find_accelerator
    >>> job = TrainingJob(gpus=64, sequence=4096, global_batch=512)
    >>> search(find_model("llama-3.1-8b"), find_accelerator("H100"), job)[0].plan.tensor
    1
    """
    return look(model, gpu, job, fabric or fabric_of(gpu), most).ranked


def look(
    model: Architecture,
    gpu: Accelerator,
    job: TrainingJob,
    fabric: Interconnect,
    most: int = 10,
    steps: int = STEPS,
) -> LayoutSearchResult:
    """The best of all layouts that fit, or of as many as can be looked at.

    Every combination of tensor, pipeline, context and expert parallelism that
    divides the cluster and the model, with micro-batch, interleaving, recomputation
    and ZeRO stage. Of layouts that differ in recomputation alone the lightest
    that fits is kept.

    Where:
        model: what is trained.
        gpu: the accelerator.
        job: cluster and batch.
        fabric: the links.
        most: how many layouts to rank [1].
        steps: how much work may be done [1]; see `STEPS`.
    """
    every = tuple(splits(model, fabric, job))
    looking = _LayoutSearch(model, gpu, job, fabric, most)
    seen = 0
    for split in every:
        for family in split.families():
            if looking.steps >= steps:
                break
            looking.look_at(family)
            seen += len(family.sizes)
    legal = sum(split.layouts for split in every)
    return LayoutSearchResult(looking.best(), looking.fitting, seen, legal, looking.steps)


def fewest(
    model: Architecture, gpu: Accelerator, job: TrainingJob, fabric: Interconnect, steps: int
) -> FewestGpus:
    """The fewest GPUs on which some layout fits, by powers of two up to the job's."""
    limit = gpu.capacity * job.usable
    gpus, done = 1, 0
    while gpus <= job.gpus:
        batch = max(1, job.global_batch // gpus) * gpus
        smaller = dataclasses.replace(job, gpus=gpus, global_batch=batch)
        fits = MemoryFit(model, smaller, limit)
        if fits.holds_states:
            for split in splits(model, fabric, smaller):
                if any(map(fits.has_room, split.families())):
                    return FewestGpus(gpus)
                if done + fits.steps >= steps:
                    return FewestGpus(None, sure=False)
        done += fits.steps
        gpus *= 2
    return FewestGpus(None)
