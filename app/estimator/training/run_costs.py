"""Checkpoints, failures, goodput, energy, and the cost of renting and owning."""

import math

from app.estimator.result import Bounds


def dataset_bytes(tokens: float, bytes_per_token: float) -> float:
    """Bytes of a tokenized data set on disk [B].

    >>> dataset_bytes(15.6e12, 4)
    62400000000000.0
    """
    return tokens * bytes_per_token


def data_read_rate(tokens_per_second: float, bytes_per_token: float) -> float:
    """Rate at which training reads its data [B/s].

    >>> data_read_rate(2e6, 4)
    8000000.0
    """
    return tokens_per_second * bytes_per_token


def checkpoint_bytes(parameters: float, bytes_per_parameter: float = 14.0) -> float:
    """Size of a checkpoint [B].

    14 bytes per parameter store 16-bit weights, their 32-bit copy and both moments of Adam; 12
    without the 16-bit copy; 2 are weights alone. From zero, whose 16 bytes include gradients,
    which are not saved. Checkpoints of mlperf-storage have the same size.

    >>> checkpoint_bytes(70e9)
    980000000000.0
    """
    return parameters * bytes_per_parameter


def bandwidth_to_write_in_time(size: float, seconds: float) -> float:
    """Bandwidth that writes `size` bytes in `seconds` [B/s].

    >>> bandwidth_to_write_in_time(9.8e11, 98.0)
    10000000000.0
    """
    if seconds <= 0:
        raise ValueError("the time to write must be positive")
    return size / seconds


WRITE_BANDWIDTH = 100e9
"""Default rate at which storage takes checkpoints from all nodes together [B/s]."""

GPU_MTBF = 30_000 * 3600.0
"""Default mean time between failures of one GPU with its share of the node [s].

6.5 failures in a thousand days of a node with eight GPUs, over eleven months on a research
cluster of 16,000. From kokolis-2025.
"""
GPU_MTBF_RANGE = Bounds(8_000 * 3600.0, 51_000 * 3600.0)
"""From jobs on 1,024 GPUs of that research cluster to the training of Llama 3 (419 failures in
54 days on 16,384 GPUs). From kokolis-2025; llama-3."""


def job_mtbf(mtbf_per_part: float, parts: float) -> float:
    """Mean time between failures of a job that fails if any of its parts does [s].

    M = m / N for independent parts.

    >>> job_mtbf(100_000.0, 1000)
    100.0
    """
    _require_positive(mtbf_per_part, "the time between failures of a part")
    _require_positive(parts, "the number of parts")
    return mtbf_per_part / parts


def observed_mtbf(duration: float, failures: float) -> float:
    """Mean time between failures observed over a run: duration / failures [s].

    >>> round(observed_mtbf(54 * 86400.0, 419) / 3600, 2)
    3.09
    """
    _require_positive(failures, "the number of failures")
    return duration / failures


def young_checkpoint_interval(checkpoint_stall: float, mtbf: float) -> float:
    """Optimal time of work between checkpoints: τ = √(2CM) [s].

    `checkpoint_stall` is the time C for which saving stops the work [s]. From young-1974.

    >>> young_checkpoint_interval(60.0, 7500.0)
    948.6832980505138
    """
    _require_positive(checkpoint_stall, "the time of a checkpoint")
    _require_positive(mtbf, "the time between failures")
    return math.sqrt(2 * checkpoint_stall * mtbf)


def daly_checkpoint_interval(checkpoint_stall: float, mtbf: float) -> float:
    """Young's interval with Daly's higher-order terms [s].

    τ = √(2CM)·(1 + ⅓√(C/2M) + C/18M) − C while C < 2M, otherwise τ = M. From daly-2006.

    >>> daly_checkpoint_interval(60.0, 7500.0) < young_checkpoint_interval(60.0, 7500.0)
    True
    """
    if checkpoint_stall >= 2 * mtbf:
        return mtbf
    ratio = checkpoint_stall / (2 * mtbf)
    young = young_checkpoint_interval(checkpoint_stall, mtbf)
    return young * (1 + math.sqrt(ratio) / 3 + ratio / 9) - checkpoint_stall


def first_order_goodput(
    interval: float, checkpoint_stall: float, restart_time: float, mtbf: float
) -> float:
    """Share of wall time that is useful work, to first order [1].

    G = 1 / (1 + C/τ + (τ/2 + R)/M): the checkpoint in each interval, and per
    failure half an interval of lost work and the restart.

    >>> round(first_order_goodput(950.0, 60.0, 600.0, 11135.0), 3)
    0.862
    """
    _require_positive(interval, "the time between checkpoints")
    _require_positive(mtbf, "the time between failures")
    return 1 / (1 + checkpoint_stall / interval + (interval / 2 + restart_time) / mtbf)


def daly_goodput(
    interval: float,
    checkpoint_stall: float,
    restart_time: float,
    mtbf: float,
    background_write_time: float = 0.0,
) -> float:
    """Share of useful time with failures at any time, also during recovery [1].

    G = τ / (M·e^{(R+W)/M}·(e^{(τ+C)/M} − 1)), for exponential times between failures. From
    daly-2006 without W, the time after the stall until a checkpoint is written: a failure before
    its end goes back one checkpoint further. So k checkpoints are kept if the time T from a
    restart to the next failure is W + k·(τ + C) or more, and their mean number is
    e^{−W/M} / (e^{(τ+C)/M} − 1). The best interval doesn't depend on W.

    >>> daly_goodput(950.0, 60.0, 600.0, 11135.0) < 1
    True
    >>> daly_goodput(950.0, 60.0, 0.0, 11135.0, 600.0) == daly_goodput(950.0, 60.0, 600.0, 11135.0)
    True
    """
    _require_positive(interval, "the time between checkpoints")
    _require_positive(mtbf, "the time between failures")
    span = (interval + checkpoint_stall) / mtbf
    set_back = (restart_time + background_write_time) / mtbf
    if span > 700 or set_back > 700:
        return 0.0
    return interval / (mtbf * math.exp(set_back) * math.expm1(span))


def expected_failures(duration: float, mtbf: float) -> float:
    """Mean number of failures of a job in a time [1]: duration / mtbf.

    >>> expected_failures(60 * 86400.0, 5 * 86400.0)
    12.0
    """
    _require_positive(mtbf, "the time between failures")
    return duration / mtbf


def probability_of_no_failure(failures: float) -> float:
    """Chance that none of the expected failures happens [1]: e^−n, for exponential times between.

    >>> round(probability_of_no_failure(1.0), 3)
    0.368
    """
    return math.exp(-failures)


def lost_work_seconds_per_failure(
    interval: float,
    checkpoint_stall: float,
    restart_time: float,
    mtbf: float,
    background_write_time: float = 0.0,
) -> float:
    """Mean time since the last written checkpoint that a failure makes in vain [s].

    Of the mean time M between two failures, e^{−R/M} is outside of restarts, and e^{−W/M} of x /
    (e^x − 1) of that is kept, with x = (τ + C)/M and the time W after the stall until a
    checkpoint is written. About half of τ + C, and W, while both are short. From daly-2006,
    with W as in `daly_goodput`.

    >>> round(lost_work_seconds_per_failure(950.0, 60.0, 0.0, 1e6))
    505
    >>> round(lost_work_seconds_per_failure(950.0, 60.0, 0.0, 1e7, 900.0))
    1405
    """
    _require_positive(mtbf, "the time between failures")
    span = (interval + checkpoint_stall) / mtbf
    without_failure = math.exp(-background_write_time / mtbf)
    kept_share = without_failure * span / math.expm1(span)
    return mtbf * math.exp(-restart_time / mtbf) * (1 - kept_share)


def restart_time_per_failure(restart_time: float, mtbf: float) -> float:
    """Mean time of a restart [s]: M·(1 − e^{−R/M}), as another failure may end it.

    >>> round(restart_time_per_failure(600.0, 1e6))
    600
    """
    _require_positive(mtbf, "the time between failures")
    return -mtbf * math.expm1(-restart_time / mtbf)


def _require_positive(value: float, noun: str) -> None:
    if value <= 0:
        raise ValueError(f"{noun} must be positive, not {value}")


def rental_cost(gpu_hours: float, usd_per_gpu_hour: float) -> float:
    """Cost of rented accelerators [USD].

    >>> rental_cost(2.788e6, 2.0)
    5576000.0
    """
    return gpu_hours * usd_per_gpu_hour


def usd_per_million_tokens(
    tokens_per_second: float, gpus: int, usd_per_gpu_hour: float, utilization: float = 1.0
) -> float:
    """Cost of a million tokens from a server of `gpus` [USD/Mtoken].

    price·GPUs / (3600·rate·utilization)·10⁶, of the rate of the whole server when busy, and the
    share of the hours with full load.

    >>> round(usd_per_million_tokens(2919, 8, 3.0), 4)
    2.2839
    """
    if tokens_per_second <= 0 or not 0 < utilization <= 1:
        raise ValueError("the token rate and the utilization must be positive")
    rate = tokens_per_second * 3600 * utilization
    return gpus * usd_per_gpu_hour / rate * 1e6


def annuity_factor(rate: float, years: float) -> float:
    """Share of a price that is due each year over its life [1/year].

    i(1+i)ⁿ/((1+i)ⁿ − 1), and 1/n without interest.

    >>> annuity_factor(0.0, 4)
    0.25
    """
    if years <= 0:
        raise ValueError(f"the life must be positive, not {years} years")
    if rate == 0:
        return 1 / years
    return rate / -math.expm1(-years * math.log1p(rate))


HOURS_PER_YEAR = 8766.0


def capital_cost_per_year(price: float, resale: float, rate: float, years: float) -> float:
    """Yearly cost of a purchase with interest, minus its resale value [USD/year].

    (P − S/(1+i)ⁿ) · CRF(i, n), of the yearly interest rate i. From barroso-2018.

    >>> round(capital_cost_per_year(100_000.0, 0.0, 0.08, 4.0))
    30192
    >>> capital_cost_per_year(100_000.0, 20_000.0, 0.0, 4.0)
    20000.0
    """
    present_resale: float = resale / (1 + rate) ** years
    return (price - present_resale) * annuity_factor(rate, years)


def average_power(loaded_watts: float, idle_power_ratio: float, utilization: float) -> float:
    """Mean power of machines that work part of the time [W]: P · (q + (1 − q) · u).

    >>> average_power(1000.0, 0.5, 0.5)
    750.0
    """
    return loaded_watts * (idle_power_ratio + (1 - idle_power_ratio) * utilization)


def electricity_cost_per_year(watts: float, pue: float, usd_per_kwh: float) -> float:
    """Yearly cost of a constant power, including the site's overhead [USD/year].

    >>> round(electricity_cost_per_year(1000.0, 1.0, 0.1), 1)
    876.6
    """
    return watts / 1000 * HOURS_PER_YEAR * pue * usd_per_kwh


def break_even_utilization(
    extra_fixed_cost_of_owning: float,
    owned_cost_per_utilization: float,
    rented_cost_per_utilization: float,
) -> float | None:
    """Utilization at which owning and renting cost the same; None if there is none.

    u = F / (r − e): what owning costs more than renting when idle, over what each
    further share of use saves. All are costs of a year, the slopes per share of use [USD/year].
    From barroso-2018.

    >>> break_even_utilization(600.0, 100.0, 1100.0)
    0.6
    >>> break_even_utilization(600.0, 100.0, 50.0) is None
    True
    """
    if rented_cost_per_utilization <= owned_cost_per_utilization or extra_fixed_cost_of_owning < 0:
        return None
    return extra_fixed_cost_of_owning / (rented_cost_per_utilization - owned_cost_per_utilization)


def site_energy_watt_seconds(gpu_seconds: float, watts: float, pue: float = 1.0) -> float:
    """Energy drawn from the grid [W·s]: E = GPU-time·P·PUE. From llama-1, table 15.

    >>> round(site_energy_watt_seconds(82432 * 3600.0, 400.0, 1.1) / 3.6e9, 3)
    36.27
    """
    if pue < 1:
        raise ValueError(f"a PUE below 1 is impossible: {pue}")
    return gpu_seconds * watts * pue


def carbon_emitted_kg(energy_watt_seconds: float, kg_per_kwh: float) -> float:
    """Carbon dioxide emitted for energy from a grid [kg]. From llama-2, table 2.

    >>> carbon_emitted_kg(3.6e6, 0.385)
    0.385
    """
    return energy_watt_seconds / 3.6e6 * kg_per_kwh
