"""Discrete-event simulation of a replica."""

import collections
import dataclasses
import heapq
import math
import random
from typing import NamedTuple

from app.estimator.serving.replica import PREFILL_TOKENS, ReplicaProfile

# Requests that are ignored at the start, until the replica has filled up.
_WARM_UP = 0.2


@dataclasses.dataclass(frozen=True, slots=True)
class SimulationResult:
    """Latencies of the requests of a simulated replica, sorted [s].

    `mean_batch` is the mean number of concurrent answers.
    """

    ttft: tuple[float, ...]
    tpot: tuple[float, ...]
    requests_per_second: float
    mean_batch: float


@dataclasses.dataclass(slots=True)
class _SimulatedRequest:
    number: int
    arrival: float
    prompt_tokens: float
    answer_tokens: int
    first_token_time: float = 0.0
    last_token_time: float = 0.0


class _RunningAnswer(NamedTuple):
    """An answer with the step that ends it, first; of one step the lower number first."""

    last_step: int
    number: int
    request: _SimulatedRequest


def simulate_replica(
    profile: ReplicaProfile,
    request_rate: float,
    request_count: int = 1500,
    seed: int = 1,
    fixed_users: int | None = None,
) -> SimulationResult:
    """Simulate random requests, one engine step after another, in one group of the replica.

    Requests arrive at random (Poisson), or each of `fixed_users` asks again once answered. A step
    continues every answer and processes as many waiting prompts as fit in 8,192 tokens, of which
    those in the cache need none.
    Consecutive steps without arrivals or ends take equally long and are simulated
    together, so the effort depends on the number of requests, not on answer lengths.
    """
    rng = random.Random(seed)  # noqa: S311 - not cryptographic
    groups = profile.concurrent_batches
    held = profile.max_batch
    if fixed_users is not None and fixed_users > held:
        held = profile.batch_of_users(fixed_users)
    fixed_users = None if fixed_users is None else max(1, round(fixed_users / groups))
    line = _draw_requests_in_reverse_order(
        profile, request_rate / groups, request_count + (fixed_users or 0), rng
    )
    coming = line if fixed_users is None else _pop_first_request_of_each_user(line, fixed_users)
    waiting: collections.deque[_SimulatedRequest] = collections.deque()
    running: list[_RunningAnswer] = []
    done: list[_SimulatedRequest] = []
    now, step, occupied, weight = 0.0, 0, 0.0, 0.0
    most, each = max(1, int(held / groups)), profile.tokens_per_step
    while len(done) < request_count:
        if not running and not waiting and coming:
            now = max(now, coming[-1].arrival)
        while coming and coming[-1].arrival <= now:
            waiting.append(coming.pop())
        admitted = _admit_prompts(waiting, most - len(running))
        length = _simulated_step_time(profile, len(running), admitted)
        alike = 1 if admitted else _count_steps_until_next_event(running, step, coming, now, length)
        now += length * alike
        occupied += length * alike * len(running)
        weight += length * alike
        for request in admitted:
            request.first_token_time = now
            steps = max(1, round(request.answer_tokens / each))
            heapq.heappush(running, _RunningAnswer(step + steps, request.number, request))
        step += alike
        while running and running[0].last_step <= step:
            request = heapq.heappop(running).request
            request.last_token_time = now
            done.append(request)
            if fixed_users is not None and line:
                line[-1].arrival = now
                waiting.append(line.pop())
    return _summarize_requests(done, occupied / max(weight, 1e-12), profile)


def _count_steps_until_next_event(
    running: list[_RunningAnswer],
    step: int,
    arrivals: list[_SimulatedRequest],
    current_time: float,
    step_seconds: float,
) -> int:
    """Return the number of equal steps until an answer ends or a request arrives."""
    ends = running[0].last_step - step
    if not arrivals or ends <= 1:
        return max(1, ends)
    return max(1, min(ends, math.ceil((arrivals[-1].arrival - current_time) / step_seconds)))


def _draw_requests_in_reverse_order(
    profile: ReplicaProfile, rate: float, requests: int, rng: random.Random
) -> list[_SimulatedRequest]:
    traffic, now, requests_drawn = profile.request_pattern, 0.0, []
    for number in range(requests):
        now += rng.expovariate(rate)
        prompt = _draw_length(
            traffic.mean_lengths.uncached_prompt_tokens, traffic.prompt_cv_squared, rng
        )
        answer = _draw_length(traffic.mean_lengths.answer_tokens, traffic.answer_cv_squared, rng)
        requests_drawn.append(_SimulatedRequest(number, now, prompt, max(1, round(answer))))
    requests_drawn.reverse()
    return requests_drawn


def _pop_first_request_of_each_user(
    reversed_requests: list[_SimulatedRequest], users: int
) -> list[_SimulatedRequest]:
    """Take the first request of each user off the line, as if all arrived at 0; reversed again."""
    first = [reversed_requests.pop() for _ in range(users)]
    for request in first:
        request.arrival = 0.0
    return first[::-1]


def _draw_length(mean: float, cv_squared: float, rng: random.Random) -> float:
    """Draw a length from a log-normal distribution of the given variation."""
    if cv_squared <= 0:
        return max(1.0, mean)
    spread = math.log(1 + cv_squared)
    drawn = rng.lognormvariate(math.log(mean) - spread / 2, math.sqrt(spread))
    return max(1.0, min(drawn, 50 * mean))


def _admit_prompts(
    waiting: collections.deque[_SimulatedRequest], max_prompts: int
) -> list[_SimulatedRequest]:
    """Return the prompts that the next step processes, in order of arrival."""
    admitted: list[_SimulatedRequest] = []
    tokens = 0.0
    while waiting and len(admitted) < max_prompts:
        if admitted and tokens + waiting[0].prompt_tokens > PREFILL_TOKENS:
            break
        tokens += waiting[0].prompt_tokens
        admitted.append(waiting.popleft())
    return admitted


def _simulated_step_time(
    profile: ReplicaProfile, running: int, admitted: list[_SimulatedRequest]
) -> float:
    """Return the time of one step, with all running answers and the prompts taken."""
    timed = profile.timing_at_batch(max(1, running) * profile.concurrent_batches)
    if not admitted:
        return timed.cuda_graph_step_seconds
    cost = timed.added_prompt_seconds / profile.request_pattern.mean_lengths.uncached_prompt_tokens
    added = cost * sum(request.prompt_tokens for request in admitted)
    return max(timed.step_seconds + added, timed.min_mixed_step_seconds)


def _summarize_requests(
    requests: list[_SimulatedRequest], mean_batch: float, profile: ReplicaProfile
) -> SimulationResult:
    counted = requests[int(len(requests) * _WARM_UP) :] or requests
    front, groups = profile.placed.seconds_before_prompt, profile.concurrent_batches
    first = sorted(front + r.first_token_time - r.arrival for r in counted)
    span = counted[-1].last_token_time - counted[0].last_token_time if counted else 0.0
    tpot = sorted(
        (r.last_token_time - r.first_token_time) / (r.answer_tokens - 1)
        for r in counted
        if r.answer_tokens > 1
    )
    return SimulationResult(
        ttft=tuple(first),
        tpot=tuple(tpot),
        requests_per_second=(len(counted) - 1) / span * groups if span > 0 else 0.0,
        mean_batch=mean_batch * groups,
    )


def quantile(sorted_values: tuple[float, ...], share: float) -> float | None:
    """Return the value that `share` of sorted values do not exceed; None if there are none.

    >>> quantile((1.0, 2.0, 3.0, 4.0), 0.5)
    2.0
    """
    if not sorted_values:
        return None
    return sorted_values[max(0, math.ceil(share * len(sorted_values)) - 1)]
