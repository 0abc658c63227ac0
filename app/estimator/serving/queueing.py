"""Waits at random arrivals: for servers, and for the prompts of other requests."""

import math
from collections.abc import Callable
from typing import NamedTuple

# Standard deviations above the median by share of requests.
DEVIATIONS = {0.5: 0.0, 0.95: 1.645, 0.99: 2.326}


class RandomTime(NamedTuple):
    """Mean [s] and variance [s²] of a time that differs between requests."""

    mean: float
    variance: float

    @property
    def log_standard_deviation(self) -> float:
        """Return the standard deviation of its logarithm, as if it were log-normal [1]."""
        return math.sqrt(math.log1p(self.variance / self.mean**2))

    def quantile_if_log_normal(self, share: float) -> float:
        """Return the time that a share of requests does not exceed, as if log-normal [s].

        >>> round(RandomTime(1.0, 0.5).quantile_if_log_normal(0.95), 2)
        2.33
        """
        spread = self.log_standard_deviation
        return self.mean * math.exp((DEVIATIONS[share] - spread / 2) * spread)


class PromptQueue(NamedTuple):
    """Prompts that arrive at random at an engine and are read in its steps.

    A step continues the answers in `decode_step_seconds`, and takes `added_prompt_seconds` longer for a prompt
    of mean length.
    """

    decode_step_seconds: float
    added_prompt_seconds: float
    prompt_cv_squared: float
    prompts_per_second: float
    max_prompts_per_step: float

    @property
    def prompt_reading_share(self) -> float:
        """Return the share of time that reads prompts [1]."""
        return min(0.98, self.prompts_per_second * self.added_prompt_seconds)

    @property
    def _mean_square_prompt_seconds(self) -> float:
        """Return the mean square of the time of a prompt [s²]."""
        return self.added_prompt_seconds**2 * (1 + self.prompt_cv_squared)

    @property
    def mean_step_seconds_at_arrival(self) -> float:
        """Return the mean length of the step during which a prompt arrives [s].

        E[C²] ÷ E[C] of steps C that read what arrived during the step before: d/(1 − ρ)
        + λ·E[c²]/(1 − ρ²), with fewer such steps where only some prompts share one.
        """
        own = self.decode_step_seconds / self.max_prompts_per_step
        full = min(0.98, self.prompts_per_second * (self.added_prompt_seconds + own))
        return self.decode_step_seconds / (
            1 - full
        ) + self.prompts_per_second * self._mean_square_prompt_seconds / (
            1 - self.prompt_reading_share**2
        )

    @property
    def time_to_first_token(self) -> RandomTime:
        """Return the time from the arrival of a prompt to the end of the step that reads it.

        Half of the step that is under way is left; then come the prompts that arrived in it,
        those behind this one only as far as they share its step, and the prompt itself.
        """
        busy, behind = self.prompt_reading_share, 1 - 1 / self.max_prompts_per_step
        wait = self.mean_step_seconds_at_arrival * (1 + busy * (1 + behind)) / 2
        cube = self.added_prompt_seconds**3 * (1 + self.prompt_cv_squared) ** 3
        spread = (
            busy * wait**2
            + self.prompts_per_second * cube / (3 * (1 - busy))
            + self.decode_step_seconds**2 / 12
        )
        own = self.prompt_cv_squared * self.added_prompt_seconds**2
        return RandomTime(wait + self.decode_step_seconds + self.added_prompt_seconds, spread + own)

    def step_time_of_interrupted_answer(
        self,
        mean_step_seconds: float,
        prompts_per_step: float,
        mean_inverse_steps: float,
        feedback: float = 1.0,
    ) -> RandomTime:
        """Return the time per step of an answer, which the prompts of others interrupt.

        The number of prompts varies as Poisson's law says, and each of them differs; in few
        steps, one is a larger part. `mean_step_seconds`: of all steps [s]; `prompts_per_step` in a step;
        `mean_inverse_steps`: of 1 ÷ the steps of an answer; `feedback`: 1 ÷ (1 − ρ) if further
        requests come in the time that prompts take.
        """
        return RandomTime(
            mean_step_seconds,
            prompts_per_step * self._mean_square_prompt_seconds * mean_inverse_steps * feedback**2,
        )


# A term that is this much smaller than the sum does not change it.
_NEGLIGIBLE_TERM_SHARE = 1e-18


# Charts, tables and figures ask for the same full replica: a fifth of an estimate's time.
def erlang_b_blocking_probability(servers: int, offered_load: float) -> float:
    """Probability that all `servers` are busy in a system without a queue.

    1/B = Σₖ c·(c−1)···(c−k+1) / aᵏ for k from 0 to c, with the offered load a = λ·S: arrival rate
    times mean service time. From erlang-1917.

    >>> round(erlang_b_blocking_probability(4, 3.0), 6)
    0.206107
    """
    _require_valid_queue(servers, offered_load)
    if offered_load == 0:
        return 0.0
    inverse = term = 1.0
    for busy in range(servers, 0, -1):
        term *= busy / offered_load
        inverse += term
        if (
            busy < offered_load and term < _NEGLIGIBLE_TERM_SHARE * inverse
        ):  # All further terms are even smaller.
            break
    return 1 / inverse


def erlang_c_waiting_probability(servers: int, offered_load: float) -> float:
    """Probability that a request has to wait in an M/M/c queue.

    C = B / (1 − ρ(1 − B)) with ρ = a/c; 1 when the load reaches the servers. From erlang-1917.

    >>> round(erlang_c_waiting_probability(4, 3.0), 6)
    0.509434
    """
    _require_valid_queue(servers, offered_load)
    busy = offered_load / servers
    if busy >= 1:
        return 1.0
    blocked = erlang_b_blocking_probability(servers, offered_load)
    return blocked / (1 - busy * (1 - blocked))


def mean_queue_wait(servers: int, arrival_rate: float, service_time: float) -> float:
    """Mean time in the queue before service [s]; infinite from full load on.

    W = C·S / (c − a), by Erlang's formula for Poisson arrivals and exponential service times.

    >>> round(mean_queue_wait(4, 3.0, 1.0), 6)
    0.509434
    """
    load = arrival_rate * service_time
    if load >= servers:
        return math.inf
    return erlang_c_waiting_probability(servers, load) * service_time / (servers - load)


def build_wait_quantile(
    servers: int, arrival_rate: float, service_time: float
) -> Callable[[float], float]:
    """Return a function from a share of requests to the wait that they do not exceed [s].

    P(W > t) = C·e^{−(c−a)t/S}, so t = S·ln(C/(1−share)) / (c−a), at least 0.

    >>> quantile = build_wait_quantile(4, 3.0, 1.0)
    >>> quantile(0.5) < quantile(0.99)
    True
    """
    load = arrival_rate * service_time
    waiting = erlang_c_waiting_probability(servers, load)

    def quantile(share: float) -> float:
        if not 0 <= share < 1:
            raise ValueError(f"the share must lie in [0, 1), not {share}")
        if load >= servers:
            return math.inf
        if waiting <= 1 - share:
            return 0.0
        return service_time * math.log(waiting / (1 - share)) / (servers - load)

    return quantile


def _require_valid_queue(servers: int, offered_load: float) -> None:
    if servers < 1:
        raise ValueError(f"there must be at least one server, not {servers}")
    if offered_load < 0:
        raise ValueError(f"the offered load cannot be negative: {offered_load}")
