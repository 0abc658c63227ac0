"""Queueing formulas: Erlang B and C, waiting times."""

import math
from collections.abc import Callable

# A term that is this much smaller than the sum does not change it.
_NEGLIGIBLE = 1e-18


def erlang_b(servers: int, load: float) -> float:
    """Probability that all `servers` are busy in a system without a queue.

    1/B = Σₖ c·(c−1)···(c−k+1) / aᵏ for k from 0 to c, with the offered load a = λ·S.

    `servers`: parallel servers c, at least 1; `load`: arrival rate times mean service time, not
    negative. From erlang-1917.

    >>> round(erlang_b(4, 3.0), 6)
    0.206107
    """
    _check_queue(servers, load)
    if load == 0:
        return 0.0
    inverse = term = 1.0
    for busy in range(servers, 0, -1):
        term *= busy / load
        inverse += term
        if busy < load and term < _NEGLIGIBLE * inverse:  # All further terms are even smaller.
            break
    return 1 / inverse


def erlang_c(servers: int, load: float) -> float:
    """Probability that a request has to wait in an M/M/c queue.

    C = B / (1 − ρ(1 − B)) with ρ = a/c; 1 when the load reaches the servers. From erlang-1917.

    >>> round(erlang_c(4, 3.0), 6)
    0.509434
    """
    busy = utilization(servers, load)
    if busy >= 1:
        return 1.0
    blocked = erlang_b(servers, load)
    return blocked / (1 - busy * (1 - blocked))


def utilization(servers: int, load: float) -> float:
    """Share of time that a server is busy: ρ = a/c [1]; at 1 the queue grows without limit."""
    _check_queue(servers, load)
    return load / servers


def mean_wait(servers: int, arrival_rate: float, service_time: float) -> float:
    """Mean time in the queue before service [s]; infinite from full load on.

    W = C·S / (c − a), by Erlang's formula for Poisson arrivals and exponential
    service times.

    `servers`: parallel servers c; `arrival_rate`: requests per second λ [1/s]; `service_time`:
    mean time S one server needs for one request [s].

    >>> round(mean_wait(4, 3.0, 1.0), 6)
    0.509434
    """
    load = arrival_rate * service_time
    if load >= servers:
        return math.inf
    return erlang_c(servers, load) * service_time / (servers - load)


def wait_quantile(
    servers: int, arrival_rate: float, service_time: float
) -> Callable[[float], float]:
    """Return a function from a share of requests to the wait that they do not exceed [s].

    P(W > t) = C·e^{−(c−a)t/S}, so t = S·ln(C/(1−share)) / (c−a), at least 0.

    >>> quantile = wait_quantile(4, 3.0, 1.0)
    >>> quantile(0.5) < quantile(0.99)
    True
    """
    load = arrival_rate * service_time
    waiting = erlang_c(servers, load)

    def quantile(share: float) -> float:
        if not 0 <= share < 1:
            raise ValueError(f"the share must lie in [0, 1), not {share}")
        if load >= servers:
            return math.inf
        if waiting <= 1 - share:
            return 0.0
        return service_time * math.log(waiting / (1 - share)) / (servers - load)

    return quantile


def _check_queue(servers: int, load: float) -> None:
    if servers < 1:
        raise ValueError(f"there must be at least one server, not {servers}")
    if load < 0:
        raise ValueError(f"the offered load cannot be negative: {load}")
