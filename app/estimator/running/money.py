"""What compute costs: by the hour, by the token, bought."""

import math


def rent(gpu_hours: float, usd_per_gpu_hour: float) -> float:
    """Cost of rented accelerators [USD].

    >>> rent(2.788e6, 2.0)
    5576000.0
    """
    return gpu_hours * usd_per_gpu_hour


def usd_per_million_tokens(
    tokens_per_second: float,
    gpus: int,
    usd_per_gpu_hour: float,
    utilization: float = 1.0,
) -> float:
    """Cost of a million tokens from a server of `gpus` [USD/Mtoken].

    price·GPUs / (3600·rate·utilization)·10⁶.

    Where:
        tokens_per_second: rate of the whole server when busy [token/s].
        gpus: accelerators of the server [GPU].
        usd_per_gpu_hour: price [USD/h].
        utilization: share of the hours with full load [1], above 0.

    >>> round(usd_per_million_tokens(2919, 8, 3.0), 4)
    2.2839
    """
    if tokens_per_second <= 0 or not 0 < utilization <= 1:
        raise ValueError("the token rate and the utilization must be positive")
    rate = tokens_per_second * 3600 * utilization
    return gpus * usd_per_gpu_hour / rate * 1e6


def annuity(rate: float, years: float) -> float:
    """Share of a price that falls due each year over its life [1/year].

    i(1+i)ⁿ/((1+i)ⁿ − 1), and 1/n without interest.

    >>> annuity(0.0, 4)
    0.25
    """
    if years <= 0:
        raise ValueError(f"the life must be positive, not {years} years")
    if rate == 0:
        return 1 / years
    return rate / -math.expm1(-years * math.log1p(rate))
