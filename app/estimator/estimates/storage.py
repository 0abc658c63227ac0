"""`storage`: inputs, result, and the input values where the verdict changes."""

import dataclasses
import math
from collections.abc import Callable
from typing import NamedTuple

from app.estimator.common_inputs import gpus_input, impossible_input_error, model_input
from app.estimator.inputs import InputGroup, input_field
from app.estimator.models.lookup import find_model
from app.estimator.result import InputChange, Status, VerdictChange
from app.estimator.training.run_costs import (
    GPU_MTBF,
    GPU_MTBF_RANGE,
    WRITE_BANDWIDTH,
    bandwidth_to_write_in_time,
    checkpoint_bytes,
    daly_checkpoint_interval,
    daly_goodput,
    data_read_rate,
    dataset_bytes,
    job_mtbf,
    lost_work_seconds_per_failure,
    restart_time_per_failure,
    young_checkpoint_interval,
)
from app.estimator.units import format_number, format_value
from app.estimator.verdict_changes import (
    TIGHT_FIT,
    build_number_change,
    find_root_by_secants,
    format_rounded_past_limit,
    is_allowed_after_rounding,
)

_DATA = InputGroup("Data", "cluster-components")
_CHECKPOINTS = InputGroup("Checkpoints", "training-memory")
_STORAGE = InputGroup("Storage", "cluster-components")


class CheckpointPart(NamedTuple):
    label: str
    bytes_per_parameter: float


class CheckpointContent(NamedTuple):
    label: str
    parts: tuple[CheckpointPart, ...]
    source_id: str

    @property
    def bytes_per_parameter(self) -> float:
        return sum(part.bytes_per_parameter for part in self.parts)


_WEIGHTS, _COPY = CheckpointPart("16-bit weights", 2.0), CheckpointPart("32-bit copy", 4.0)
_MOMENTS = CheckpointPart("first moment", 4.0), CheckpointPart("second moment", 4.0)
_MOMENTUM = CheckpointPart("momentum", 4.0)
CONTENTS = {
    "adamw": CheckpointContent("Everything of AdamW, 14 B", (_WEIGHTS, _COPY, *_MOMENTS), "zero"),
    "adamw-12": CheckpointContent(
        "AdamW without the 16-bit copy, 12 B", (_COPY, *_MOMENTS), "zero"
    ),
    "muon": CheckpointContent("Everything of Muon, 10 B", (_WEIGHTS, _COPY, _MOMENTUM), "muon"),
    "weights": CheckpointContent("16-bit weights alone, 2 B", (_WEIGHTS,), "zero"),
}

SAVING = (("wait", "Training waits"), ("beside", "Training goes on"))


def _checkpoint_size(inputs: "StorageInputs") -> float:
    """Return the bytes of a checkpoint."""
    each = CONTENTS[inputs.content].bytes_per_parameter
    return checkpoint_bytes(find_model(inputs.model).parameters, each)


def _usual_write_bandwidth(inputs: "StorageInputs") -> float:
    """Return the write bandwidth that counts if none is given, in bytes/s."""
    if inputs.save_within is None:
        return WRITE_BANDWIDTH
    return bandwidth_to_write_in_time(_checkpoint_size(inputs), inputs.save_within)


@dataclasses.dataclass(frozen=True, slots=True)
class StorageInputs:
    model: str = model_input()
    gpus: int = gpus_input(default=1024, topic="training-memory")
    gpu_rate: float = input_field(
        900.0,
        "Tokens per second of a GPU",
        unit="token/s",
        limits=(0.001, 1e9),
        help="What one GPU trains on; an H100 at 40% of its peak does about 900 of a 70B model.",
        group="Job",
        topic="training-memory",
    )
    duration: float | None = input_field(
        None,
        "Running time",
        unit="days",
        limits=(60.0, 100 * 365.25 * 86400.0),
        help="How long the job runs, for the failures to expect and the hours lost; left empty: "
        "only shares of the time.",
        group="Job",
        topic="cluster-components",
    )
    tokens: float = _DATA.declare_input_field(
        15e12,
        "Tokens of the data set",
        unit="token",
        limits=(1.0, 1e18),
        help="Once each, as stored for training.",
        term="token",
    )
    bytes_per_token: float = _DATA.declare_input_field(
        4.0,
        "Bytes per token",
        unit="B",
        limits=(0.01, 1e9),
        help="4 for numbers of tokens from 65,537 on, 2 below; for images or video "
        "the bytes of a file over the tokens it becomes.",
    )
    copies: int = _DATA.declare_advanced_input_field(
        2,
        "Copies of the data set",
        limits=(1, 100),
        help="Raw and prepared ones together; one is on the fast tier.",
    )
    content: str = _CHECKPOINTS.declare_input_field(
        "adamw",
        "Checkpoint",
        choices=tuple((key, content.label) for key, content in CONTENTS.items()),
        help="Resuming needs weights and optimizer states; serving only weights.",
        term="checkpoint",
    )
    saving: str = _CHECKPOINTS.declare_input_field(
        "wait",
        "While saving",
        choices=SAVING,
        help="Training waits for the write, or copies to host memory and goes on.",
    )
    write_bandwidth: float = _STORAGE.declare_input_field(
        None,
        "Write bandwidth",
        unit="GB/s",
        limits=(1e6, 1e15),
        help="What the storage takes from all nodes together. Left empty, it's the rate that saves "
        "within the time a save may take; without such a time, 100 GB/s.",
        compute_usual_value=lambda inputs: float(f"{_usual_write_bandwidth(inputs):.3g}"),
        term="parallel-file-system",
    )
    read_bandwidth: float = _STORAGE.declare_input_field(
        200e9,
        "Read bandwidth",
        unit="GB/s",
        limits=(1e6, 1e15),
        help="What the storage gives to all nodes together.",
        term="parallel-file-system",
    )
    acceptable: float = _CHECKPOINTS.declare_input_field(
        0.05,
        "Acceptable loss",
        unit="%",
        limits=(0.001, 0.9),
        help="Share of the time that waiting for saves and failures together may cost; the "
        "bandwidth that keeps waiting alone within it is a result of its own.",
    )
    save_within: float | None = _CHECKPOINTS.declare_input_field(
        None,
        "Time a save may take",
        unit="s",
        typed_unit="s",
        limits=(0.001, 7 * 86400.0),
        help="A deadline for a save, from which the write bandwidth follows; left empty: none.",
        term="checkpoint",
    )
    save_every: float | None = _CHECKPOINTS.declare_advanced_input_field(
        None,
        "Time between saves",
        unit="min",
        limits=(1.0, 7 * 86400.0),
        help="Work between two saves, for example 30 min; left empty: the time with which the "
        "least is lost.",
        term="checkpoint",
    )
    kept: int = _CHECKPOINTS.declare_advanced_input_field(
        5,
        "Checkpoints kept",
        limits=(1, 100_000),
        help="On the fast tier at the same time.",
        topic="cluster-components",
    )
    stall: float | None = _CHECKPOINTS.declare_advanced_input_field(
        None,
        "Stall of a save",
        unit="s",
        typed_unit="s",
        limits=(0.001, 86400.0),
        help="How long training stands; left empty: the whole write, or a second and "
        "the copy to host memory at 20 GB/s a GPU.",
    )
    mtbf: float | None = input_field(
        None,
        "Hours between failures of a GPU",
        unit="h",
        limits=(3600.0, 3.6e9),
        help="All causes, its share of the node included; left empty: 30,000 h, as on a "
        "research cluster of 16,000 GPUs over eleven months.",
        group="Failures",
        topic="cluster-components",
        advanced=True,
    )
    restart: float = input_field(
        600.0,
        "Restart",
        unit="min",
        limits=(0.0, 604800.0),
        help="From the failure to training again, without reading the checkpoint.",
        group="Failures",
        topic="training-memory",
        advanced=True,
    )
    replicas: int = input_field(
        1,
        "Readers of the checkpoint",
        limits=(1, 100_000),
        quantity="readers of a checkpoint",
        help="Data-parallel copies that each read all of it; 1 where it is read once "
        "and passed on.",
        term="data-parallelism",
        group="Failures",
        topic="parallelism",
        advanced=True,
    )
    fill: float = _STORAGE.declare_advanced_input_field(
        0.8,
        "Fill level",
        unit="%",
        limits=(0.1, 1.0),
        help="Share of the capacity that is filled at most.",
    )


@dataclasses.dataclass(frozen=True, slots=True)
class GoodputLosses:
    """Lost time from checkpoints and failures; seconds, and shares of the time.

    `background_write_time` passes after the stall until a save is written and can be used, 0 if
    training waits for it. `goodput` is the productive share at the interval, the best one if none
    is given.
    """

    save_stall: float
    background_write_time: float
    mtbf: float
    restart_and_read_time: float
    young_checkpoint_interval: float
    checkpoint_interval: float
    goodput: float

    @property
    def lost_share(self) -> float:
        return 1 - self.goodput

    @property
    def share_lost_to_saving(self) -> float:
        """Return the share of time that waits for saves which are kept."""
        return self.goodput * self.save_stall / self.checkpoint_interval

    @property
    def share_lost_to_failures(self) -> float:
        """Return the share of time lost to failures: work done twice, and restarts."""
        return self.lost_share - self.share_lost_to_saving

    @property
    def share_lost_to_restarts_alone(self) -> float:
        """Return the share of time lost to restarts if nothing else were lost."""
        return self.restart_time_per_failure / self.mtbf

    @property
    def restart_time_per_failure(self) -> float:
        """Return the time of a restart, which another failure may end [s]."""
        return restart_time_per_failure(self.restart_and_read_time, self.mtbf)

    @property
    def work_lost_by_failure(self) -> float:
        """Return the work that a failure makes in vain, on average [s]."""
        return lost_work_seconds_per_failure(
            self.checkpoint_interval,
            self.save_stall,
            self.restart_and_read_time,
            self.mtbf,
            self.background_write_time,
        )

    def goodput_at_interval(self, interval: float) -> float:
        return daly_goodput(
            interval,
            self.save_stall,
            self.restart_and_read_time,
            self.mtbf,
            self.background_write_time,
        )

    @property
    def saves_per_day(self) -> float:
        return 86400 / (self.checkpoint_interval + self.save_stall)


@dataclasses.dataclass(frozen=True, slots=True)
class StorageResult:
    """All sizes [B], rates [B/s] and times [s] of one job.

    `inputs` have the write bandwidth that counts; `typed_write_bandwidth` is None if it follows from
    others. `losses_at_published_failure_rates` are the losses with the lowest and the highest published failure rate;
    none if the failure rate is typed.
    """

    inputs: StorageInputs
    typed_write_bandwidth: float | None
    model_parameters: float
    dataset: float
    needed_data_read_bandwidth: float
    checkpoint: float
    write_time: float
    checkpoint_read_time: float
    losses: GoodputLosses
    write_bandwidth_for_acceptable_loss: float | None
    write_bandwidth_for_acceptable_wait: float | None
    losses_at_published_failure_rates: tuple[GoodputLosses, ...]

    def writing_time_share(self, losses: GoodputLosses) -> float:
        """Return the share of time in which a checkpoint is being written."""
        return min(1.0, self.write_time / (losses.checkpoint_interval + losses.save_stall))

    @property
    def has_acceptable_loss(self) -> bool:
        return self.losses.lost_share <= self.inputs.acceptable

    @property
    def reads_data_fast_enough(self) -> bool:
        return self.needed_data_read_bandwidth <= self.inputs.read_bandwidth

    @property
    def fast_tier_capacity(self) -> float:
        return (self.dataset + self.inputs.kept * self.checkpoint) / self.inputs.fill

    @property
    def bulk_tier_capacity(self) -> float:
        return ((self.inputs.copies - 1) * self.dataset + self.checkpoint) / self.inputs.fill

    @property
    def write_bandwidth_for_save_in_time(self) -> float | None:
        """Return the write bandwidth for a save in the time that it may take [B/s]."""
        within = self.inputs.save_within
        return None if within is None else bandwidth_to_write_in_time(self.checkpoint, within)

    @property
    def write_bandwidth_for_typed_interval(self) -> float | None:
        """Return the write bandwidth for a write as long as the typed time between saves [B/s].

        None if none is typed, or if training waits for a save and so any time can be kept.
        """
        every = self.inputs.save_every
        if every is None or self.inputs.saving != "beside":
            return None
        return bandwidth_to_write_in_time(self.checkpoint, every)

    @property
    def write_bandwidth_for_allowed_write_times(self) -> float:
        """Return the write bandwidth with which saves are fast enough [B/s]; 0 if any is."""
        needed = self.write_bandwidth_for_save_in_time, self.write_bandwidth_for_typed_interval
        return max(rate or 0.0 for rate in needed)

    @property
    def keeps_typed_interval(self) -> bool:
        """Return whether each save is written before the next one is to start."""
        return _is_enough(self.inputs.write_bandwidth, self.write_bandwidth_for_typed_interval)

    @property
    def saves_in_time(self) -> bool:
        return _is_enough(self.inputs.write_bandwidth, self.write_bandwidth_for_save_in_time)

    @property
    def saves_fast_enough(self) -> bool:
        return self.keeps_typed_interval and self.saves_in_time

    @property
    def is_interval_set_by_write(self) -> bool:
        """Return whether saves would be more frequent if the write beside the training allowed it."""
        return self.losses.checkpoint_interval == self.losses.background_write_time

    @property
    def _save_time_to_allowed_ratio(self) -> float:
        """Return the time of a save over what it may take; a bandwidth chosen for it is enough."""
        typed, within = self.typed_write_bandwidth, self.write_bandwidth_for_save_in_time
        needed = max(self.write_bandwidth_for_typed_interval or 0.0, (typed and within) or 0.0)
        return needed / self.inputs.write_bandwidth

    @property
    def status(self) -> Status:
        """Return `no` if reading or a save is too slow or too much is lost, `tight` if nearly so."""
        if not self.saves_fast_enough:
            return "no"
        reads = self.needed_data_read_bandwidth / self.inputs.read_bandwidth
        loses = self.losses.lost_share / self.inputs.acceptable
        worst = max(reads, loses)
        if worst > 1:
            return "no"
        return "tight" if max(worst, self._save_time_to_allowed_ratio) > _TIGHT_RATIO else "fits"


# Asynchronous checkpoints: rate of the copy from each GPU to host memory over its PCIe
# lanes [B/s], and the time of all ranks to synchronize [s].
HOST_COPY = 20e9

BARRIER_SECONDS = 1.0

_TIGHT_RATIO = 0.8


def _is_enough(bandwidth: float, needed: float | None) -> bool:
    """Return whether a bandwidth is what is needed or more, but for rounding; True if nothing is."""
    return needed is None or bandwidth >= needed * (1 - 1e-9)


def compute_storage(inputs: StorageInputs) -> StorageResult:
    typed, size = inputs.write_bandwidth, _checkpoint_size(inputs)
    inputs = dataclasses.replace(inputs, write_bandwidth=typed or _usual_write_bandwidth(inputs))
    losses = compute_losses(inputs, size)
    if not math.isfinite(losses.goodput) or losses.goodput <= 0:
        save_time = losses.save_stall + losses.background_write_time
        message = (
            f"With {format_value(losses.mtbf, 's')} between failures a job that takes "
            f"{format_value(save_time + losses.restart_and_read_time, 's')} to save and restart "
            "makes no progress."
        )
        raise impossible_input_error("gpus", inputs.gpus, message)
    rates = GPU_MTBF_RANGE if inputs.mtbf is None else ()
    return StorageResult(
        inputs=inputs,
        typed_write_bandwidth=typed,
        model_parameters=find_model(inputs.model).parameters,
        dataset=dataset_bytes(inputs.tokens, inputs.bytes_per_token),
        needed_data_read_bandwidth=data_read_rate(
            inputs.gpus * inputs.gpu_rate, inputs.bytes_per_token
        ),
        checkpoint=size,
        write_time=size / inputs.write_bandwidth,
        checkpoint_read_time=size * inputs.replicas / inputs.read_bandwidth,
        losses=losses,
        write_bandwidth_for_acceptable_loss=write_bandwidth_for_acceptable_loss(
            inputs, size, losses
        ),
        write_bandwidth_for_acceptable_wait=write_bandwidth_for_acceptable_wait(
            inputs, size, losses
        ),
        losses_at_published_failure_rates=tuple(
            compute_losses(inputs, size, gpu_mtbf=each) for each in rates
        ),
    )


def compute_losses(
    inputs: StorageInputs,
    checkpoint_size: float,
    *,
    gpus: float = 0.0,
    write_bandwidth: float = 0.0,
    gpu_mtbf: float = 0.0,
) -> GoodputLosses:
    """Return the losses; optionally for other GPUs, bandwidth or failure rate.

    An asynchronous checkpoint stops training only for the copy to host memory, but until it is
    written, a failure goes back to the one before it, and the next one cannot start.
    """
    count, bandwidth = gpus or inputs.gpus, write_bandwidth or inputs.write_bandwidth
    written = checkpoint_size / bandwidth
    beside = inputs.saving == "beside"
    stall = inputs.stall or (
        BARRIER_SECONDS + checkpoint_size / count / HOST_COPY if beside else written
    )
    mtbf = job_mtbf(gpu_mtbf or inputs.mtbf or GPU_MTBF, count)
    restart = inputs.restart + checkpoint_size * inputs.replicas / inputs.read_bandwidth
    interval = inputs.save_every or daly_checkpoint_interval(stall, mtbf)
    if beside:
        interval = max(interval, written)
    young = young_checkpoint_interval(stall, mtbf)
    background = written if beside else 0.0
    share = daly_goodput(interval, stall, restart, mtbf, background)
    return GoodputLosses(stall, background, mtbf, restart, young, interval, share)


def longest_acceptable_restart(inputs: StorageInputs, losses: GoodputLosses) -> float | None:
    """Return the longest restart that keeps the loss acceptable [s].

    Goodput falls by e^(−restart ÷ time between failures), so there is a closed form; the
    time to read the checkpoint is subtracted. None if checkpoints alone cost too much.
    """
    if losses.goodput <= 0:
        return None
    without = losses.goodput * math.exp(losses.restart_and_read_time / losses.mtbf)
    longest = losses.mtbf * math.log(without / (1 - inputs.acceptable))
    rest = longest - (losses.restart_and_read_time - inputs.restart)
    return rest if rest > 0 else None


def write_bandwidth_for_acceptable_loss(
    inputs: StorageInputs, checkpoint_size: float, losses: GoodputLosses
) -> float | None:
    """Return the write bandwidth that keeps the loss acceptable [B/s], and a typed interval possible.

    None if bandwidth does not decide: failures alone cost more, or the typed stall does
    not depend on it. Found from the first-order loss √(2C/M) + R/M and a few secant
    steps on the exact one.
    """
    allowed = inputs.acceptable / (1 - inputs.acceptable)
    rest = allowed - losses.restart_and_read_time / losses.mtbf
    if rest <= 0:
        return None
    if inputs.saving == "beside":
        longest = _longest_acceptable_background_write(inputs, losses)
        if longest is None:
            return None
        if inputs.save_every is not None:
            longest = min(longest, inputs.save_every)
            return bandwidth_to_write_in_time(checkpoint_size, longest)
        seconds = longest
    elif inputs.stall is not None:
        return None
    else:
        seconds = losses.mtbf * rest * rest / 2

    return _write_bandwidth_at_acceptable_share(
        inputs, checkpoint_size, seconds, lambda each: each.lost_share
    )


def _longest_acceptable_background_write(
    inputs: StorageInputs, losses: GoodputLosses
) -> float | None:
    """Return about the longest write beside the training that keeps the loss acceptable [s].

    Goodput falls by e^(−write ÷ time between failures) while the write is shorter than the interval,
    which is exact. Beyond that it sets the interval, and its first-order loss C/W + 3W/2M + R/M
    gives it. None if too much is lost however short it is.
    """
    stall, restart, mtbf = losses.save_stall, losses.restart_and_read_time, losses.mtbf
    interval = inputs.save_every or daly_checkpoint_interval(stall, mtbf)
    longest = mtbf * math.log(
        daly_goodput(interval, stall, restart, mtbf) / (1 - inputs.acceptable)
    )
    if longest <= 0:
        return None
    if longest <= interval:
        return longest
    rest = inputs.acceptable / (1 - inputs.acceptable) - restart / mtbf
    return mtbf / 3 * (rest + math.sqrt(max(0.0, rest * rest - 6 * stall / mtbf)))


def write_bandwidth_for_acceptable_wait(
    inputs: StorageInputs, checkpoint_size: float, losses: GoodputLosses
) -> float | None:
    """Return the write bandwidth with which waiting for saves alone costs the acceptable share.

    In B/s; None if it costs less at any bandwidth or does not depend on it. Found from C/τ, or √(C/2M) at the
    best interval, and secant steps.
    """
    if inputs.saving == "beside" or inputs.stall is not None:
        return None
    best = 2 * losses.mtbf * inputs.acceptable**2
    seconds = inputs.save_every * inputs.acceptable if inputs.save_every else best
    return _write_bandwidth_at_acceptable_share(
        inputs, checkpoint_size, seconds, lambda each: each.share_lost_to_saving
    )


def _write_bandwidth_at_acceptable_share(
    inputs: StorageInputs,
    checkpoint_size: float,
    first_write_time: float,
    compute_share: Callable[[GoodputLosses], float],
) -> float | None:
    """Return the write bandwidth at which a share is the acceptable one; None if not found.

    The search starts at the bandwidth of a write time [s].
    """

    def excess(log_rate: float) -> float:
        other = compute_losses(inputs, checkpoint_size, write_bandwidth=math.exp(log_rate))
        return compute_share(other) - inputs.acceptable

    start = bandwidth_to_write_in_time(checkpoint_size, first_write_time)
    root = find_root_by_secants(excess, math.log(start), math.log(start * 1.2))
    return None if root is None else math.exp(root)


def find_verdict_changes(result: StorageResult) -> tuple[VerdictChange, ...]:
    """Return the nearest input values at which storage becomes sufficient or insufficient.

    If both reading and checkpoints are insufficient, no single input helps.
    """
    good, fed = result.has_acceptable_loss, result.reads_data_fast_enough
    if not result.saves_fast_enough:
        return _save_time_changes(result) if fed else ()
    saving_changes = _acceptable_loss_changes(result) if fed else ()
    reading_changes = _bytes_per_token_change(result) if good else ()
    return (*saving_changes, *reading_changes)


def _save_time_changes(result: StorageResult) -> tuple[VerdictChange, ...]:
    """Return the time between saves and the write bandwidth with which saves are fast enough."""
    inputs = result.inputs
    interval = dataclasses.replace(inputs, save_every=result.write_time * 1.01)
    is_enough = compute_losses(interval, result.checkpoint).lost_share <= inputs.acceptable
    changes: list[VerdictChange] = []
    if result.saves_in_time and is_enough:
        changes += _build_save_interval_change(inputs, result.write_time, TIGHT_FIT, rounds_up=True)
    rate = result.write_bandwidth_for_allowed_write_times
    losses = compute_losses(inputs, result.checkpoint, write_bandwidth=rate)
    if losses.lost_share > inputs.acceptable:
        if result.write_bandwidth_for_acceptable_loss is None:
            return tuple(changes)
        rate = max(rate, result.write_bandwidth_for_acceptable_loss)
    changes += _build_write_bandwidth_change(inputs, rate, TIGHT_FIT, rounds_up=True)
    return tuple(changes)


def _build_write_bandwidth_change(
    inputs: StorageInputs, rate: float, verdict_after: str, *, rounds_up: bool
) -> tuple[VerdictChange, ...]:
    return build_number_change(
        inputs,
        "write_bandwidth",
        rate,
        verdict_after,
        unit=" GB/s",
        unit_factor=1e9,
        rounds_up=rounds_up,
    )


def _build_save_interval_change(
    inputs: StorageInputs, interval: float, verdict_after: str, *, rounds_up: bool
) -> tuple[VerdictChange, ...]:
    return build_number_change(
        inputs,
        "save_every",
        interval,
        verdict_after,
        unit=" min",
        unit_factor=60,
        rounds_up=rounds_up,
    )


def describe_restart_loss_and_remedy(result: StorageResult) -> str:
    """Return what restarts cost and what would do, if they cost most or too much; or nothing."""
    inputs = result.inputs
    restarting = result.losses.share_lost_to_restarts_alone
    share, limit = format_value(restarting, "%"), format_value(inputs.acceptable, "%")
    if restarting * 2 <= result.losses.lost_share and restarting <= inputs.acceptable:
        return ""
    text = f"Restarts alone cost {share}"
    if restarting > inputs.acceptable:
        text += f", more than the {limit} that are acceptable"
    beside = dataclasses.replace(inputs, saving="beside", stall=None)
    longest = longest_acceptable_restart(inputs, result.losses)
    if longest is not None:
        return f"{text}: a restart within {format_value(longest, 's')} would do."
    longest = longest_acceptable_restart(beside, compute_losses(beside, result.checkpoint))
    if longest is None or _does_write_exceed_typed_interval(result):
        return f"{text}."
    return (
        f"{text}: with saves beside the training, a restart within "
        f"{format_value(longest, 's')} would do."
    )


def _acceptable_loss_changes(result: StorageResult) -> tuple[VerdictChange, ...]:
    """Return changes for what costs most first, restarts or checkpoints; fewer GPUs last."""
    inputs = result.inputs
    becomes = "Too much is lost." if result.has_acceptable_loss else TIGHT_FIT
    changes = [*_asynchronous_checkpoint_change(result), *_write_bandwidth_change(result, becomes)]
    restart = _restart_time_change(result, becomes)
    decides = result.losses.share_lost_to_restarts_alone * 2 > result.losses.lost_share
    changes = [*restart, *changes] if decides else [*changes, *restart]
    interval = _save_interval_change(result, becomes)
    is_wrong = inputs.save_every is not None and not result.has_acceptable_loss
    changes = [*interval, *changes] if is_wrong else [*changes, *interval]
    gpus = _gpu_count_at_loss_limit(result)
    if gpus:
        now, then = format_number(result.inputs.gpus), format_number(gpus)
        changes.append(VerdictChange("gpus", "GPUs", now, then, becomes))
    return tuple(changes)


def _write_bandwidth_change(result: StorageResult, verdict_after: str) -> tuple[VerdictChange, ...]:
    """Return the write bandwidth below which too much is lost or saves take too long."""
    rate, good = result.write_bandwidth_for_acceptable_loss or 0.0, result.has_acceptable_loss
    if good and rate <= result.write_bandwidth_for_allowed_write_times:
        rate, verdict_after = result.write_bandwidth_for_allowed_write_times, _TOO_SLOW
    return _build_write_bandwidth_change(result.inputs, rate, verdict_after, rounds_up=not good)


_TOO_SLOW = "Saves take too long."


def _does_write_exceed_typed_interval(result: StorageResult) -> bool:
    """Return whether a write beside the training takes longer than the typed time between saves."""
    every = result.inputs.save_every
    return every is not None and result.write_time > every


def _asynchronous_checkpoint_change(result: StorageResult) -> tuple[VerdictChange, ...]:
    """Return asynchronous checkpoints if they are sufficient, or with a faster restart."""
    inputs = result.inputs
    if result.has_acceptable_loss or inputs.saving == "beside" or inputs.stall is not None:
        return ()
    if _does_write_exceed_typed_interval(result):
        return ()
    labels = dict(SAVING)
    beside = dataclasses.replace(inputs, saving="beside")
    losses = compute_losses(beside, result.checkpoint)
    becomes = "Fits." if losses.lost_share <= _TIGHT_RATIO * inputs.acceptable else TIGHT_FIT
    change = VerdictChange("saving", "While saving", labels["wait"], labels["beside"], becomes)
    if losses.lost_share <= inputs.acceptable:
        return (change,)
    longest = longest_acceptable_restart(beside, losses)
    if longest is None or not is_allowed_after_rounding(StorageInputs, "restart", longest):
        return ()
    minutes = f"{format_rounded_past_limit(longest / 60, rounds_up=False)} min"
    restart = InputChange("restart", "Restart", minutes)
    return (dataclasses.replace(change, other_changes=(restart,)),)


def _restart_time_change(result: StorageResult, verdict_after: str) -> tuple[VerdictChange, ...]:
    inputs, up = result.inputs, result.has_acceptable_loss
    longest = longest_acceptable_restart(inputs, result.losses)
    if longest is None:
        return ()
    return build_number_change(
        inputs, "restart", longest, verdict_after, unit=" min", unit_factor=60, rounds_up=up
    )


def _save_interval_change(result: StorageResult, verdict_after: str) -> tuple[VerdictChange, ...]:
    """Return the limit of the time between saves on the side of the best one where it is.

    Found from the first-order loss C/τ + (τ/2 + W + R)/M and secant steps on the exact one. None if no
    interval keeps the loss acceptable, or none is so short that the save before it is written.
    """
    inputs, losses, good = result.inputs, result.losses, result.has_acceptable_loss
    best = daly_checkpoint_interval(losses.save_stall, losses.mtbf)
    is_late = losses.checkpoint_interval >= best
    allowed = inputs.acceptable / (1 - inputs.acceptable)
    rest = allowed - (losses.restart_and_read_time + losses.background_write_time) / losses.mtbf
    under = rest * rest - 2 * losses.save_stall / losses.mtbf
    if rest <= 0 or under <= 0:
        return ()
    start = math.log(losses.mtbf * (rest + (1 if is_late else -1) * math.sqrt(under)))
    root = find_root_by_secants(
        lambda log_interval: (
            1 - losses.goodput_at_interval(math.exp(log_interval)) - inputs.acceptable
        ),
        start,
        start + 0.02,
    )
    limit = math.exp(root) if root is not None else best
    if (limit > best) != is_late:
        return ()
    if limit < losses.background_write_time:
        if is_late or not good:
            return ()
        limit, verdict_after = losses.background_write_time, _TOO_SLOW
    typed = dataclasses.replace(inputs, save_every=inputs.save_every or losses.checkpoint_interval)
    return _build_save_interval_change(typed, limit, verdict_after, rounds_up=good == is_late)


def _bytes_per_token_change(result: StorageResult) -> tuple[VerdictChange, ...]:
    inputs, fed = result.inputs, result.reads_data_fast_enough
    limit = inputs.read_bandwidth / (inputs.gpus * inputs.gpu_rate)
    becomes = "The GPUs starve." if fed else "The GPUs are fed."
    return build_number_change(inputs, "bytes_per_token", limit, becomes, unit=" B", rounds_up=fed)


# Memory of an H100, whose rate is the default, and model states of a parameter [B].
_H100_MEMORY_BYTES, _STATE_BYTES = 80e9, 16.0


def _gpu_count_at_loss_limit(result: StorageResult) -> int | None:
    """Return the number of GPUs where the loss crosses its limit, if the model fits on them."""
    inputs = result.inputs

    def excess(log_gpus: float) -> float:
        other = compute_losses(inputs, result.checkpoint, gpus=math.exp(log_gpus))
        return other.lost_share - inputs.acceptable

    # The loss grows with about the square root of the number of GPUs.
    near = inputs.gpus * (inputs.acceptable / max(result.losses.lost_share, 1e-9)) ** 1.5
    near = min(max(near, 1.0), 1e6)
    crossing = find_root_by_secants(excess, math.log(inputs.gpus), math.log(near * 1.01))
    if crossing is None or not 0 <= crossing < math.log(1e6):
        return None
    gpus = math.floor(math.exp(crossing)) + result.has_acceptable_loss
    return gpus if gpus * _H100_MEMORY_BYTES >= _STATE_BYTES * result.model_parameters else None
