"""What training stores and loses: sizes, the best interval, what it costs."""

import dataclasses
import math

from app.estimator.estimates.storage.asked import CONTENTS, StorageInputs
from app.estimator.models.lookup import find_model
from app.estimator.running.checkpoints import (
    checkpoint_bytes,
    dataset_bytes,
    read_rate,
    write_rate,
)
from app.estimator.running.reliability import (
    daly_interval,
    exact_goodput,
    job_mtbf,
    young_interval,
)
from app.estimator.shared_inputs import input_error
from app.estimator.thresholds import find_root
from app.estimator.units import format_value


@dataclasses.dataclass(frozen=True, slots=True)
class GoodputLosses:
    """How saving and failing trade; seconds, and shares of the time.

    `goodput` is the share that is progress at the best interval.
    """

    stall: float
    mtbf: float
    restart: float
    young: float
    interval: float
    goodput: float

    @property
    def lost(self) -> float:
        """Share of the time that saving and failures cost."""
        return 1 - self.goodput

    @property
    def restarting(self) -> float:
        """Share of the time that restarts cost, were there nothing else to lose."""
        return -math.expm1(-self.restart / self.mtbf)

    def goodput_at(self, interval: float) -> float:
        """Share of progress with another time between checkpoints."""
        return exact_goodput(interval, self.stall, self.restart, self.mtbf)


@dataclasses.dataclass(frozen=True, slots=True)
class StorageResult:
    """All sizes [B], rates [B/s] and times [s] of one job."""

    parameters: float
    dataset: float
    needed_read: float
    checkpoint: float
    write_time: float
    restart_read: float
    losses: GoodputLosses
    needed_write: float | None

    def writing(self, losses: GoodputLosses) -> float:
        """Share of the time in which a checkpoint is being written."""
        return min(1.0, self.write_time / (losses.interval + losses.stall))


# A save beside the training: the copy of each GPU's part to host memory over its PCIe
# lanes [B/s], and the wait of all ranks for each other [s].
HOST_COPY = 20e9


BARRIER = 1.0


GPU_MTBF = 50_000 * 3600.0


def find(asked: StorageInputs) -> StorageResult:
    """Size and time the storage of a job."""
    parameters = find_model(asked.model).parameters
    each = CONTENTS[asked.content].each
    size = checkpoint_bytes(parameters, each)
    losses = losses_of(asked, size)
    if not math.isfinite(losses.goodput) or losses.goodput <= 0:
        message = (
            f"With {format_value(losses.mtbf, 's')} between failures a job that takes "
            f"{format_value(losses.stall + losses.restart, 's')} to save and restart "
            "makes no progress."
        )
        raise input_error("gpus", asked.gpus, message)
    return StorageResult(
        parameters=parameters,
        dataset=dataset_bytes(asked.tokens, asked.bytes_per_token),
        needed_read=read_rate(asked.gpus * asked.gpu_rate, asked.bytes_per_token),
        checkpoint=size,
        write_time=size / asked.write_bandwidth,
        restart_read=size * asked.replicas / asked.read_bandwidth,
        losses=losses,
        needed_write=needed_write(asked, size, losses),
    )


def losses_of(
    asked: StorageInputs,
    size: float,
    *,
    gpus: float = 0.0,
    write: float = 0.0,
    each: float = 0.0,
) -> GoodputLosses:
    """What saving and failures cost; with other GPUs, bandwidth or failure rate.

    A save beside the training stalls it only for the copy to host memory, but the
    next one cannot begin before it is written.
    """
    count, bandwidth = gpus or asked.gpus, write or asked.write_bandwidth
    written = size / bandwidth
    beside = asked.saving == "beside"
    stall = asked.stall or (BARRIER + size / count / HOST_COPY if beside else written)
    mtbf = job_mtbf(each or asked.mtbf or GPU_MTBF, count)
    restart = asked.restart + size * asked.replicas / asked.read_bandwidth
    interval = daly_interval(stall, mtbf)
    if beside:
        interval = max(interval, written)
    young = young_interval(stall, mtbf)
    share = exact_goodput(interval, stall, restart, mtbf)
    return GoodputLosses(stall, mtbf, restart, young, interval, share)


def restart_within(asked: StorageInputs, losses: GoodputLosses) -> float | None:
    """Longest restart with which no more than the acceptable share is lost [s].

    Goodput falls by e^(−restart ÷ time between failures), so it has a closed form;
    reading the checkpoint comes off. None where saving alone costs too much.
    """
    without = losses.goodput * math.exp(losses.restart / losses.mtbf)
    longest = losses.mtbf * math.log(without / (1 - asked.acceptable))
    rest = longest - (losses.restart - asked.restart)
    return rest if rest > 0 else None


def needed_write(asked: StorageInputs, size: float, losses: GoodputLosses) -> float | None:
    """Write bandwidth with which no more than the acceptable share is lost [B/s].

    None where the bandwidth does not decide: failures cost more, or a stall is given
    that no bandwidth shortens. Found from the first-order loss √(2C/M) + R/M and a
    few secant steps on the exact one.
    """
    allowed = asked.acceptable / (1 - asked.acceptable)
    rest = allowed - losses.restart / losses.mtbf
    if rest <= 0:
        return None
    if asked.saving == "beside":
        under = rest * rest - 2 * losses.stall / losses.mtbf
        if under <= 0:
            return None
        seconds = losses.mtbf * (rest + math.sqrt(under))
    elif asked.stall is not None:
        return None
    else:
        seconds = losses.mtbf * rest * rest / 2

    def excess(log_rate: float) -> float:
        other = losses_of(asked, size, write=math.exp(log_rate))
        return other.lost - asked.acceptable

    start = write_rate(size, seconds)
    found = find_root(excess, math.log(start), math.log(start * 1.2))
    return None if found is None else math.exp(found)
