"""Failures, checkpoints and the share of time that is useful work."""

import math


def job_mtbf(mtbf_per_part: float, parts: float) -> float:
    """Mean time between failures of a job that any of its parts can stop [s].

    M = m / N for independent parts.

    Where:
        mtbf_per_part: mean time between failures of one part [s], positive.
        parts: parts the job needs at once [1], positive.

    >>> job_mtbf(100_000.0, 1000)
    100.0
    """
    _positive(mtbf_per_part, "the time between failures of a part")
    _positive(parts, "the number of parts")
    return mtbf_per_part / parts


def observed_mtbf(duration: float, failures: float) -> float:
    """Mean time between failures seen over a run: duration / failures [s].

    >>> round(observed_mtbf(54 * 86400.0, 419) / 3600, 2)
    3.09
    """
    _positive(failures, "the number of failures")
    return duration / failures


def young_interval(checkpoint: float, mtbf: float) -> float:
    """Time of work between checkpoints that loses least: τ = √(2CM) [s].

    Where:
        checkpoint: time C for which saving stops the work [s].
        mtbf: mean time M between failures of the job [s].

    Source: young-1974.

    >>> young_interval(60.0, 7500.0)
    948.6832980505138
    """
    _positive(checkpoint, "the time of a checkpoint")
    _positive(mtbf, "the time between failures")
    return math.sqrt(2 * checkpoint * mtbf)


def daly_interval(checkpoint: float, mtbf: float) -> float:
    """Young's interval with Daly's higher-order terms [s].

    τ = √(2CM)·(1 + ⅓√(C/2M) + C/18M) − C while C < 2M, otherwise τ = M.

    Source: daly-2006.

    >>> daly_interval(60.0, 7500.0) < young_interval(60.0, 7500.0)
    True
    """
    if checkpoint >= 2 * mtbf:
        return mtbf
    ratio = checkpoint / (2 * mtbf)
    first = young_interval(checkpoint, mtbf)
    return first * (1 + math.sqrt(ratio) / 3 + ratio / 9) - checkpoint


def goodput(interval: float, checkpoint: float, restart: float, mtbf: float) -> float:
    """Share of wall time that is useful work, to first order [1].

    G = 1 / (1 + C/τ + (τ/2 + R)/M): the checkpoint in each interval, and per
    failure half an interval of lost work and the restart.

    >>> round(goodput(950.0, 60.0, 600.0, 11135.0), 3)
    0.862
    """
    _positive(interval, "the time between checkpoints")
    _positive(mtbf, "the time between failures")
    return 1 / (1 + checkpoint / interval + (interval / 2 + restart) / mtbf)


def exact_goodput(interval: float, checkpoint: float, restart: float, mtbf: float) -> float:
    """Share of useful time with failures at any moment, also during recovery [1].

    G = τ / (M·e^{R/M}·(e^{(τ+C)/M} − 1)), for exponential times between failures.

    Source: daly-2006.

    >>> exact_goodput(950.0, 60.0, 600.0, 11135.0) < 1
    True
    """
    _positive(interval, "the time between checkpoints")
    _positive(mtbf, "the time between failures")
    span = (interval + checkpoint) / mtbf
    if span > 700 or restart / mtbf > 700:
        return 0.0
    return interval / (mtbf * math.exp(restart / mtbf) * math.expm1(span))


def _positive(value: float, what: str) -> None:
    if value <= 0:
        raise ValueError(f"{what} must be positive, not {value}")
