"""Latency and throughput of one replica over its batch size."""

import bisect
import dataclasses
import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from app.estimator.hardware.collectives import point_to_point_send_time
from app.estimator.result import Bounds
from app.estimator.serving.queueing import DEVIATIONS, PromptQueue, RandomTime, build_wait_quantile
from app.estimator.serving.replica_memory import (
    max_accepted_sequences,
    sequence_cache_bytes_per_gpu,
)
from app.estimator.serving.step_time import (
    PlacedModel,
    SpeculativeDecoding,
    StepBatch,
    decode_step_time,
    draft_and_verify_step_time,
    engine_step_time,
    prefill_step_time,
)


@dataclasses.dataclass(frozen=True, slots=True)
class RequestLengths:
    """Mean tokens of prompt and answer; `cached_prompt_tokens` of them need not be read."""

    prompt_tokens: float
    answer_tokens: float
    cached_prompt_tokens: float = 0.0

    @property
    def uncached_prompt_tokens(self) -> float:
        """Return the tokens of the prompt that are read, at least 1."""
        return max(1.0, self.prompt_tokens - self.cached_prompt_tokens)


# Batch sizes at which steps are timed; times between them are interpolated linearly.
_TIMED_BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
_SEARCH_STEPS = 18
# Steps towards the prompts per step that agree with the rate, each of which shrinks the rest
# to the share that reads prompts; and the larger batch that shows how far requests slow others.
_BALANCE_STEPS, _LARGER_BATCH_FACTOR = 5, 1.05
# Steps towards the length of a prefill step that agrees with what arrives in it, and towards the
# wait for prefill that agrees with the rate.
_STEP_ROUNDS, _WAIT_ROUNDS = 20, 12


@dataclasses.dataclass(frozen=True, slots=True)
class RequestPattern:
    """Request lengths with their squared coefficients of variation.

    `has_open_arrivals`: requests arrive when they like, not when another one ends.
    """

    mean_lengths: RequestLengths
    prompt_cv_squared: float = 0.0
    answer_cv_squared: float = 0.0
    has_open_arrivals: bool = False

    @property
    def mean_context_of_running_sequence(self) -> float:
        """Return the tokens in the cache of a sequence, averaged over what runs at a time.

        p + a·(1 + v)/2: a long answer is met more often than a short one, because it
        takes longer (the inspection paradox of renewal theory).

        >>> RequestPattern(RequestLengths(1000, 300)).mean_context_of_running_sequence
        1150.0
        >>> RequestPattern(RequestLengths(1000, 300), answer_cv_squared=1.0).mean_context_of_running_sequence
        1300.0
        """
        return (
            self.mean_lengths.prompt_tokens
            + self.mean_lengths.answer_tokens * (1 + self.answer_cv_squared) / 2
        )

    def share_longer_than(self, tokens: float) -> float:
        """Return the share of requests with more tokens of prompt and answer, as if log-normal.

        >>> RequestPattern(RequestLengths(1000, 300)).share_longer_than(1300)
        0.0
        >>> pattern = RequestPattern(RequestLengths(1000, 300), 0.5, 0.5)
        >>> round(pattern.share_longer_than(1300), 3), round(pattern.share_longer_than(2600), 3)
        (0.396, 0.058)
        """
        prompt, answer = self.mean_lengths.prompt_tokens, self.mean_lengths.answer_tokens
        variance = self.prompt_cv_squared * prompt**2 + self.answer_cv_squared * answer**2
        length = RandomTime(prompt + answer, variance)
        spread = length.log_standard_deviation
        if not spread:
            return float(length.mean > tokens)
        deviations = math.log(tokens / length.mean) / spread + spread / 2
        return math.erfc(deviations / math.sqrt(2)) / 2

    def arrival_synchrony(self, decay_scale: float) -> float:
        """Return how far requests start together: 1 in waves, 0 each on its own.

        Users who ask again as soon as they are answered stay together if all lengths are
        alike; e^(−√v/decay_scale) of the variation v of both lengths.

        >>> RequestPattern(RequestLengths(1000, 300)).arrival_synchrony(0.18)
        1.0
        >>> RequestPattern(RequestLengths(1000, 300), 0.5, 0.5).arrival_synchrony(0.18) < 0.01
        True
        """
        if self.has_open_arrivals:
            return 0.0
        return math.exp(-math.sqrt(self.prompt_cv_squared + self.answer_cv_squared) / decay_scale)


PREFILL_TOKENS = 8192.0
"""Tokens of prompts in a step, for each group of attention: the default of a vLLM server on a
large GPU (get_batch_defaults in vllm/engine/arg_utils.py)."""
# Share of its rate in full steps that a prefill replica is asked for, so that prompts rarely wait
# for more than the step that is under way: an assumption.
PREFILL_LOAD = 0.7


@dataclasses.dataclass(frozen=True, slots=True)
class PrefillReplica:
    """A replica that only reads prompts, and hands their cache to one that answers.

    A step reads the prompts that arrived during the one before. `single_prompt_step_seconds` is a step in
    which each group of attention reads one prompt at most; a full one reads `prompts_per_full_step`
    in all `groups`, of which each takes `step_seconds_per_further_prompt` longer for one more, and
    `max_prompts_per_second` are read in full steps. Each GPU sends its part of a
    prompt's cache, `sent_bytes_per_gpu`, after the prompt is read, over the link that joins all
    `gpus_on_shared_link`: those of the replica that answers, and of the prefill replicas for it. The prompts
    are those of `decode_replicas`.
    """

    placed: PlacedModel
    groups: int
    single_prompt_step_seconds: float
    step_seconds_per_further_prompt: float
    full_step_seconds: float
    prompts_per_full_step: float
    sent_bytes_per_gpu: float
    gpus_on_shared_link: int
    decode_replicas: int = 1

    @property
    def max_prompts_per_second(self) -> float:
        return self.prompts_per_full_step / self.full_step_seconds

    @property
    def transfer_seconds(self) -> float:
        """Return the time to send a prompt's cache, over an adapter beyond a domain of links [s]."""
        fabric, gpus = self.placed.fabric, self.gpus_on_shared_link
        return point_to_point_send_time(
            self.sent_bytes_per_gpu,
            fabric,
            crosses_domains=gpus > fabric.gpus_per_domain,
            uses_bridge=gpus <= fabric.bridged_gpus,
        )

    def step_seconds(self, prompts: float) -> float:
        """Return the time of a step that reads so many prompts, divided evenly over groups [s]."""
        more = max(0.0, prompts / self.groups - 1)
        longer = self.single_prompt_step_seconds + more * self.step_seconds_per_further_prompt
        return min(longer, self.full_step_seconds)

    def mean_step_seconds(self, arrivals_per_second: float) -> float:
        """Return the mean time of a step if so many prompts arrive per second [s].

        C = T(λ·C + e^(−λ·C)): a step reads what arrived in the one before, or the next prompt.
        """
        seconds = self.single_prompt_step_seconds
        for _ in range(_STEP_ROUNDS):
            before, arrived = seconds, arrivals_per_second * seconds
            seconds = self.step_seconds(arrived + math.exp(-arrived))
            if seconds == before:
                break
        return seconds

    def prefill_wait_quantile(
        self, share: float, arrivals_per_second: float
    ) -> tuple[float, float]:
        """Return the wait of a prompt that a share of requests does not exceed [s].

        It is what is left of the step under way, and the step that reads the prompt.

        `arrivals_per_second` are the other prompts per second. Some find no step under way; the others wait
        for the rest of it, which is equally likely to be anything up to the whole, and are read
        with what arrived in it.
        """
        step = self.mean_step_seconds(arrivals_per_second)
        arrived = arrivals_per_second * step
        idle = 1 / (1 + arrived * math.exp(arrived))
        if share <= idle:
            return 0.0, self.single_prompt_step_seconds
        rest = (share - idle) / (1 - idle) * step
        return rest, self.step_seconds(1 + arrived)

    def cache_arrival_time_quantile(self, share: float, arrivals_per_second: float) -> float:
        """Return the time until a prompt's cache has arrived, by share of requests [s]."""
        wait = self.prefill_wait_quantile(share, arrivals_per_second)
        return self.placed.seconds_before_prompt + sum(wait) + self.transfer_seconds


def build_prefill_replica(
    placed: PlacedModel, request_pattern: RequestPattern, gpus_on_shared_link: int
) -> PrefillReplica:
    requests = request_pattern.mean_lengths
    full = max(requests.uncached_prompt_tokens, PREFILL_TOKENS)
    slower = 1.0 if placed.setup.dispatches_tokens else placed.engine.prefill_time_factor

    def seconds(tokens: float) -> float:
        reach = (2 * requests.prompt_tokens - requests.uncached_prompt_tokens + tokens) / 2
        step = StepBatch(tokens, reach, 0.0, 0.0, tokens / requests.uncached_prompt_tokens)
        return engine_step_time(placed, step).total * slower

    groups = placed.setup.concurrent_batches
    single_step, full_step = seconds(requests.uncached_prompt_tokens), seconds(full)
    more = full / requests.uncached_prompt_tokens - 1
    return PrefillReplica(
        placed=placed,
        groups=groups,
        single_prompt_step_seconds=single_step,
        step_seconds_per_further_prompt=(full_step - single_step) / more
        if more > 0
        else single_step,
        full_step_seconds=full_step,
        prompts_per_full_step=groups * full / requests.uncached_prompt_tokens,
        sent_bytes_per_gpu=sequence_cache_bytes_per_gpu(placed, requests.prompt_tokens),
        gpus_on_shared_link=gpus_on_shared_link,
    )


def step_time_added_by_prompt(
    placed: PlacedModel, request_pattern: RequestPattern, batch: float, decode_step_seconds: float
) -> float:
    """Time that a prompt adds to a step of `decode_step_seconds` seconds for `batch` answers [s].

    A step of its own if the engine reads prompts in separate steps.
    """
    requests = request_pattern.mean_lengths
    if placed.engine.has_separate_prefill_steps:
        own = StepBatch(requests.uncached_prompt_tokens, requests.prompt_tokens, 0.0, 0.0, 1.0)
        return engine_step_time(placed, own).total * placed.engine.prefill_time_factor
    mean = request_pattern.mean_context_of_running_sequence
    both = StepBatch(
        requests.uncached_prompt_tokens, requests.prompt_tokens, batch, mean, batch + 1
    )
    added = engine_step_time(placed, both).total - decode_step_seconds
    return max(0.0, added) * placed.engine.prefill_time_factor


@dataclasses.dataclass(frozen=True, slots=True)
class OperatingPoint:
    """A replica at one load: batch, rate [1/s], latencies by share of requests [s].

    `synchronized_prompts_seconds` of the TTFT is only waited if requests start together [s].
    """

    batch: float
    requests_per_second: float
    ttft_by_share: dict[float, float]
    tpot_by_share: dict[float, float]
    synchronized_prompts_seconds: float = 0.0


class BatchTiming(NamedTuple):
    """Timing of a group of GPUs at one batch size.

    `step_seconds` continues `batch_per_group` answers [s], and a prompt adds `added_prompt_seconds` to it [s].
    `cuda_graph_step_seconds`: a step without prompts, padded to a recorded batch size [s];
    `min_mixed_step_seconds`: the minimum of a step with prompts, limited by launches [s].
    """

    step_seconds: float
    added_prompt_seconds: float
    batch_per_group: float
    cuda_graph_step_seconds: float
    min_mixed_step_seconds: float


class ReplicaLoad(NamedTuple):
    """The rate of a replica [1/s], the median time to first token [s], and what both rest on."""

    requests_per_second: float
    median_ttft: float
    timing: BatchTiming


@dataclasses.dataclass(frozen=True, slots=True)
class ReplicaProfile:
    """Time of a decode step and of a prompt over the batch size of one replica.

    A replica divides its batch among groups: those that run attention in parallel, and one
    for each pipeline stage, so that all stages work at any time;
    the times are over the batch of a group, and a part of that of a decode step depends on
    requests instead of rows. `max_batch` sequences fit in memory on average, `max_reserved_batch`
    if memory for each whole answer is reserved from the start; at 0 the weights do not fit. A step
    yields `tokens_per_step` of each answer. `idle_median_ttft` is without load [s]. `prefill_replica` reads
    the prompts apart.
    """

    placed: PlacedModel
    request_pattern: RequestPattern
    decode_step_seconds_by_batch: tuple[float, ...]
    added_prompt_seconds_by_batch: tuple[float, ...]
    request_dependent_seconds_by_batch: tuple[float, ...]
    max_batch: float
    max_reserved_batch: float
    tokens_per_step: float
    idle_median_ttft: float = 0.0
    prefill_replica: PrefillReplica | None = None

    @property
    def steps_per_answer(self) -> float:
        """Return the steps of an answer; speculation takes fewer than it has tokens."""
        return self.request_pattern.mean_lengths.answer_tokens / self.tokens_per_step

    def mean_other_prompts_per_step(self, timing: BatchTiming) -> float:
        """Return the prompts of other requests that a step of an answer reads on average [1].

        Of a fixed number of users, each of the others asks once in the meantime. Where requests
        arrive at random, as many come per second as Little's law says of the batch.
        """
        answer = max(1.0, self.steps_per_answer)
        if self.prefill_replica:
            return 0.0
        if not self.request_pattern.has_open_arrivals:
            return (timing.batch_per_group - 1) / answer
        first, prompts = self._median_ttft_of_timing(timing), timing.batch_per_group / answer
        for _ in range(_BALANCE_STEPS):
            decoding = answer * mean_step_time(timing, prompts)
            prompts = timing.batch_per_group / answer * decoding / (first + decoding)
        return prompts

    def time_per_token(self, timing: BatchTiming) -> float:
        return (
            mean_step_time(timing, self.mean_other_prompts_per_step(timing)) / self.tokens_per_step
        )

    @property
    def concurrent_batches(self) -> int:
        """Return the groups of requests that are under way at the same time [1]."""
        return self.placed.setup.concurrent_batches

    def timing_at_batch(self, batch: float) -> BatchTiming:
        """Return the timing of a group with `batch` requests in the replica."""
        there = batch / self.concurrent_batches
        if not self.request_pattern.has_open_arrivals:
            there = max(1.0, there)
        step = recorded = interpolate_at_batch(self.decode_step_seconds_by_batch, there)
        prompt_cost = interpolate_at_batch(self.added_prompt_seconds_by_batch, there)
        if self.placed.engine.cuda_graph_batches:
            padded, own = (
                self.placed.engine.pad_to_cuda_graph_batch(there),
                self.request_dependent_seconds_by_batch,
            )
            empty = interpolate_at_batch(own, padded) - interpolate_at_batch(own, there)
            recorded = interpolate_at_batch(self.decode_step_seconds_by_batch, padded) - empty
        least = min_mixed_step_time(self.placed, step)
        return BatchTiming(step, prompt_cost, there, recorded, least)

    def tpot_at_batch(self, batch: float) -> float:
        """Return the time per token with `batch` requests in the replica [s]."""
        return self.time_per_token(self.timing_at_batch(batch))

    def batch_of_users(self, users: float) -> float:
        """Return the requests of a fixed number of users that the memory holds at a time [1].

        While others wait, engines keep room for each whole answer, as if saturated.
        """
        if users <= self.max_batch:
            return users
        return max(1.0, min(self.max_batch, self.max_reserved_batch))

    def median_ttft_at_batch(self, batch: float) -> float:
        """Return the median time to first token with `batch` requests [s]."""
        return self.compute_load_at_batch(batch).median_ttft

    def _median_ttft_of_timing(self, timing: BatchTiming) -> float:
        return median_ttft_under_load(
            self.placed, timing, self.request_pattern, self.idle_median_ttft
        )

    def request_rate_at_batch(self, batch: float) -> float:
        """Return the request rate with `batch` requests in the replica, by Little's law [1/s]."""
        return self.compute_load_at_batch(batch).requests_per_second

    def compute_load_at_batch(self, batch: float) -> ReplicaLoad:
        timing = self.timing_at_batch(batch)
        answering = self.request_pattern.mean_lengths.answer_tokens * self.time_per_token(timing)
        if self.prefill_replica is None:
            ttft = self._median_ttft_of_timing(timing)
            return ReplicaLoad(batch / (ttft + answering), ttft, timing)
        decoding = self.placed.shared_constants.extra_steps_before_first_token * timing.step_seconds
        ttft = self.prefill_replica.cache_arrival_time_quantile(0.5, 0.0) + decoding
        for _ in range(_WAIT_ROUNDS):
            arrivals = self.other_prefill_prompts_per_second(batch, batch / (ttft + answering))
            ttft = (
                ttft + self.prefill_replica.cache_arrival_time_quantile(0.5, arrivals) + decoding
            ) / 2
        return ReplicaLoad(batch / (ttft + answering), ttft, timing)

    def other_prefill_prompts_per_second(self, batch: float, rate: float) -> float:
        """Return the prompts per second that a prompt finds at a prefill replica [1/s].

        `batch` requests are in each decode replica, `rate` come to it per second. Of a fixed number
        of users, one finds only the others. More prompts than are a prefill replica's usual load go
        to further ones.
        """
        if self.prefill_replica is None:
            return 0.0
        replicas = self.prefill_replica.decode_replicas
        users = max(1.0, replicas * batch)
        others = 1.0 if self.request_pattern.has_open_arrivals else (users - 1) / users
        most = PREFILL_LOAD * self.prefill_replica.max_prompts_per_second
        return min(replicas * rate * others, most)


def mean_step_time(timing: BatchTiming, prompts_per_step: float) -> float:
    """Mean time of the steps of an answer, which read `prompts_per_step` of other requests each [s].

    s·t_mixed + (1 − s)·t_recorded of a share s of steps that read prompts.

    >>> round(mean_step_time(BatchTiming(0.01, 0.1, 11, 0.01, 0.0), 0.1), 3)
    0.02
    """
    step, cost, _, recorded, min_mixed_step = timing
    if recorded == step and min_mixed_step <= step + cost:  # The sum does not depend on s.
        return step + prompts_per_step * cost
    share_of_steps, seconds_per_step = compute_mixed_steps(timing, prompts_per_step)
    return recorded + share_of_steps * (seconds_per_step - recorded)


def compute_mixed_steps(timing: BatchTiming, prompts_per_step: float) -> tuple[float, float]:
    """Return the share of steps that read prompts, and how long each of them takes [s].

    s = 1 − e^(−x) of x prompts per step that arrive at random, and
    t_mixed = max(t_step + x/s·t_prompt, t_launching): such a step is launched kernel by
    kernel, which can take longer than its work.

    >>> [round(value, 3) for value in compute_mixed_steps(BatchTiming(0.01, 0.1, 11, 0.01, 0.2), 2)]
    [0.865, 0.241]
    """
    share = -math.expm1(-prompts_per_step)
    at_once = prompts_per_step / share if share else 1.0
    seconds = max(
        timing.step_seconds + at_once * timing.added_prompt_seconds, timing.min_mixed_step_seconds
    )
    return share, seconds


def min_mixed_step_time(placed: PlacedModel, decode_step_seconds: float) -> float:
    """Return the minimum of a step with prompts, limited by launches [s]."""
    return placed.prompt_launch_seconds + (
        decode_step_seconds if placed.engine.has_separate_prefill_steps else 0.0
    )


def median_ttft_on_idle_replica(placed: PlacedModel, request_pattern: RequestPattern) -> float:
    """Time to the first token of the median prompt if no other request is there [s].

    Lengths are distributed log-normally, with a median of the mean ÷ √(1 + v).
    """
    median = request_pattern.mean_lengths.uncached_prompt_tokens / math.sqrt(
        1 + request_pattern.prompt_cv_squared
    )
    return placed.seconds_before_prompt + prefill_step_time(placed, max(1.0, median)).total


def median_ttft_under_load(
    placed: PlacedModel,
    timing: BatchTiming,
    request_pattern: RequestPattern,
    idle_median_ttft: float,
) -> float:
    """Median time to the first token under load [s].

    idle + (waits + (p − 1)/2)·t_step + others·s·b·t_prompt: `idle_median_ttft`, the
    steps of other answers until the engine checks for requests and emits the token, and the
    prompts before it. The engine checks every p steps. The constants are in data/engines.toml.
    """
    steps = (
        placed.shared_constants.extra_steps_before_first_token * timing.step_seconds
        + _mean_wait_until_poll(placed, timing)
    )
    return idle_median_ttft + steps + wait_for_synchronized_prompts(placed, timing, request_pattern)


def wait_for_synchronized_prompts(
    placed: PlacedModel, timing: BatchTiming, request_pattern: RequestPattern
) -> float:
    """Return others·s·b·t_prompt, where s is how far requests start together [s]."""
    common = placed.shared_constants
    others = (
        common.other_prompts_factor
        * request_pattern.arrival_synchrony(common.synchrony_decay_scale)
        * timing.batch_per_group
    )
    return others * timing.added_prompt_seconds


def _mean_wait_until_poll(placed: PlacedModel, timing: BatchTiming) -> float:
    """Return the mean wait until the engine checks for requests, beyond its next step [s]."""
    return (placed.setup.polling_interval_steps - 1) / 2 * timing.step_seconds


def profile_replica_by_batch(
    placed: PlacedModel,
    request_pattern: RequestPattern,
    usable_memory_share: float = 0.9,
    draft: SpeculativeDecoding | None = None,
    prefill_replica: PrefillReplica | None = None,
) -> ReplicaProfile:
    """Time a replica at about a dozen batch sizes; with `prefill_replica` it reads no prompts."""
    mean, requests, draft = (
        request_pattern.mean_context_of_running_sequence,
        request_pattern.mean_lengths,
        draft or SpeculativeDecoding(),
    )
    steps = [(batch, decode_step_time(placed, batch, mean)) for batch in _TIMED_BATCH_SIZES]
    whole_context = requests.prompt_tokens + requests.answer_tokens
    return ReplicaProfile(
        placed=placed,
        request_pattern=request_pattern,
        decode_step_seconds_by_batch=tuple(
            draft_and_verify_step_time(placed, draft, b, mean, step.total) for b, step in steps
        ),
        added_prompt_seconds_by_batch=tuple(
            0.0
            if prefill_replica
            else step_time_added_by_prompt(placed, request_pattern, b, step.total)
            for b, step in steps
        ),
        request_dependent_seconds_by_batch=tuple(step.request_dependent_time for _, step in steps),
        max_batch=max_accepted_sequences(placed, mean, usable_memory_share),
        max_reserved_batch=max_accepted_sequences(placed, whole_context, usable_memory_share),
        tokens_per_step=draft.tokens_per_step,
        idle_median_ttft=0.0
        if prefill_replica
        else median_ttft_on_idle_replica(placed, request_pattern),
        prefill_replica=prefill_replica,
    )


class ValueBracket(NamedTuple):
    """The values at the timed batch sizes below and above, and the fraction between [1]."""

    below: float
    above: float
    fraction: float


def bracket_values_at_batch(values: tuple[float, ...], batch: float) -> ValueBracket:
    above = min(bisect.bisect_left(_TIMED_BATCH_SIZES, batch), len(_TIMED_BATCH_SIZES) - 1) or 1
    low, high = _TIMED_BATCH_SIZES[above - 1], _TIMED_BATCH_SIZES[above]
    return ValueBracket(values[above - 1], values[above], (batch - low) / (high - low))


def interpolate_at_batch(values: tuple[float, ...], batch: float) -> float:
    below, above, fraction = bracket_values_at_batch(values, batch)
    return below + fraction * (above - below)


def operating_point_at_batch(
    profile: ReplicaProfile, batch: float, quantiles: Iterable[float] = tuple(DEVIATIONS)
) -> OperatingPoint:
    """Return a replica with a mean of `batch` requests, for shares of the requests.

    The time per token differs with the prompts that interrupt an answer. Of a fixed number of
    users, a request finds only the others before it, which is none if it is alone, and those
    that the memory does not hold wait until as many have left. Requests that arrive when they like queue
    for the steps that read them, and wait for memory as for servers in Erlang's formula.
    """
    if profile.request_pattern.has_open_arrivals:
        return _operating_point_of_open_arrivals(profile, min(batch, profile.max_batch), quantiles)
    users, batch = batch, max(1.0, profile.batch_of_users(batch))
    rate, first, timing = profile.compute_load_at_batch(batch)
    waiting = _fixed_users_prompt_wait_beyond_median(profile, timing, rate, batch)
    queued = max(0.0, users - batch)
    # Those who leave do so at random, so that the time until all of these have varies by the
    # root of their number.
    memory_wait = {
        q: max(0.0, queued + DEVIATIONS[q] * math.sqrt(queued)) / rate for q in quantiles
    }
    pause = _step_time_of_answer(
        profile, timing, _prompt_queue(profile, timing, rate)
    ).log_standard_deviation
    each = profile.time_per_token(timing)
    return OperatingPoint(
        batch=batch,
        requests_per_second=rate,
        ttft_by_share={q: first + waiting(q) + memory_wait[q] for q in quantiles},
        tpot_by_share={q: each * math.exp(DEVIATIONS[q] * pause) for q in quantiles},
        synchronized_prompts_seconds=wait_for_synchronized_prompts(
            profile.placed, timing, profile.request_pattern
        ),
    )


def _operating_point_of_open_arrivals(
    profile: ReplicaProfile, batch: float, quantiles: Iterable[float]
) -> OperatingPoint:
    rate, first, timing = profile.compute_load_at_batch(batch)
    queue = _prompt_queue(profile, timing, rate)
    # The answers at a time vary more than Poisson's, since each slows the others down.
    more = profile.request_rate_at_batch(batch * _LARGER_BATCH_FACTOR) - rate
    variance = rate * batch * (_LARGER_BATCH_FACTOR - 1) / more if more > 0 else batch
    memory_wait = _memory_wait_quantile(profile, batch, rate, variance)
    crowded = profile.timing_at_batch(
        min(profile.max_batch, batch + math.sqrt(variance))
    ).step_seconds
    feedback = 1 / (1 - queue.prompt_reading_share)
    pause = _step_time_of_answer(profile, timing, queue, feedback)
    pause = pause._replace(
        variance=pause.variance + ((crowded - timing.step_seconds) * feedback) ** 2
    )
    each = profile.time_per_token(timing)
    if profile.prefill_replica:
        reading = _prefill_wait_beyond_median(profile, profile.prefill_replica, batch, rate)
        ttft = {q: first + reading(q) + memory_wait(q) for q in quantiles}
    else:
        front = profile.placed.seconds_before_prompt + _mean_wait_until_poll(profile.placed, timing)
        ttft = {
            q: front + queue.time_to_first_token.quantile_if_log_normal(q) + memory_wait(q)
            for q in quantiles
        }
    return OperatingPoint(
        batch=batch,
        requests_per_second=rate,
        ttft_by_share=ttft,
        tpot_by_share={
            q: each * math.exp(DEVIATIONS[q] * pause.log_standard_deviation) for q in quantiles
        },
    )


def _prompt_queue(profile: ReplicaProfile, timing: BatchTiming, rate: float) -> PromptQueue:
    """Return the prompts that one group of a replica reads, of `rate` in all of it [1/s]."""
    traffic = profile.request_pattern
    return PromptQueue(
        decode_step_seconds=timing.step_seconds,
        added_prompt_seconds=timing.added_prompt_seconds,
        prompt_cv_squared=traffic.prompt_cv_squared,
        prompts_per_second=rate / profile.concurrent_batches,
        max_prompts_per_step=max(1.0, PREFILL_TOKENS / traffic.mean_lengths.uncached_prompt_tokens),
    )


def _step_time_of_answer(
    profile: ReplicaProfile, timing: BatchTiming, queue: PromptQueue, feedback: float = 1.0
) -> RandomTime:
    """Return the time of the steps of an answer, of log-normal lengths."""
    mean = profile.time_per_token(timing) * profile.tokens_per_step
    inverse = (1 + profile.request_pattern.answer_cv_squared) / max(1.0, profile.steps_per_answer)
    return queue.step_time_of_interrupted_answer(
        mean, profile.mean_other_prompts_per_step(timing), inverse, feedback
    )


def _fixed_users_prompt_wait_beyond_median(
    profile: ReplicaProfile, timing: BatchTiming, rate: float, batch: float
) -> Callable[[float], float]:
    """Return the wait for prompts beyond the median, by share of a fixed number of users [s].

    Those who wait ask nothing more, so that no queue builds up.
    """
    if profile.prefill_replica:
        return _prefill_wait_beyond_median(profile, profile.prefill_replica, batch, rate)
    variation, cost = profile.request_pattern.prompt_cv_squared, timing.added_prompt_seconds
    busy = min(0.98, rate / profile.concurrent_batches * cost)
    busy *= max(0.0, 1 - profile.concurrent_batches / batch)
    spread, tail = math.sqrt(variation) * cost, cost * (1 + variation) / 2
    return lambda share: (
        DEVIATIONS[share] * spread
        + tail * (_wait_quantile_in_means(busy, share) - _wait_quantile_in_means(busy, 0.5))
    )


def _prefill_wait_beyond_median(
    profile: ReplicaProfile, prefill: PrefillReplica, batch: float, rate: float
) -> Callable[[float], float]:
    """Return the wait for prompts read apart beyond the median, by share of requests [s]."""
    arrivals = profile.other_prefill_prompts_per_second(batch, rate)
    median = sum(prefill.prefill_wait_quantile(0.5, arrivals))
    spread = (
        math.sqrt(profile.request_pattern.prompt_cv_squared)
        * prefill.step_seconds_per_further_prompt
    )
    return lambda share: (
        sum(prefill.prefill_wait_quantile(share, arrivals)) - median + DEVIATIONS[share] * spread
    )


def _memory_wait_quantile(
    profile: ReplicaProfile, batch: float, rate: float, variance: float
) -> Callable[[float], float]:
    """Return the wait for memory, by share [s]; 0 if memory is sufficient.

    Erlang's formula with servers and load divided by the ratio of the variance of the batch to
    its mean, as Hayward does.
    """
    ratio = max(1.0, variance / max(1.0, batch))
    slots = max(1, int(profile.max_batch))
    if batch + 4 * math.sqrt(variance) <= slots:
        return lambda _: 0.0
    life, servers = batch / rate, max(1, round(slots / ratio))
    return build_wait_quantile(servers, min(rate / ratio, 0.98 * servers / life), life)


def _wait_quantile_in_means(busy: float, share: float) -> float:
    """ln(u / (1 − q)), at least 0: the quantile of a wait in units of its mean."""
    return max(0.0, math.log(max(busy, 1e-9) / (1 - share)))


def operating_point_at_rate(profile: ReplicaProfile, rate: float) -> OperatingPoint | None:
    """Return the operating point at a request rate; None if the replica cannot keep up."""
    top = find_max_rate_batch(profile)
    if rate > profile.request_rate_at_batch(top):
        return None
    batch = _bisect_bounds(
        1e-3, top, lambda batch: profile.request_rate_at_batch(batch) < rate
    ).high
    settled = operating_point_at_batch(profile, batch)
    return dataclasses.replace(settled, batch=batch, requests_per_second=rate)


def _bisect_bounds(low: float, high: float, is_below: Callable[[float], bool]) -> Bounds:
    """Return close bounds of the number up to which `is_below` holds."""
    for _ in range(_SEARCH_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return Bounds(low, high)


def saturated_request_rate(profile: ReplicaProfile, run_requests: float | None = None) -> float:
    """Request rate when requests are always waiting, or of a run [1/s].

    Engines that never evict start only as many as can store their whole answers.
    """
    full = max(1.0, profile.max_reserved_batch)
    if run_requests is None:
        return profile.request_rate_at_batch(full)
    return run_requests / sum(
        number * requests / profile.request_rate_at_batch(requests)
        for number, requests in split_run_into_rounds(run_requests, full)
    )


class EqualRounds(NamedTuple):
    round_count: float
    requests_per_round: float


def split_run_into_rounds(run_requests: float, requests_per_round: float) -> list[EqualRounds]:
    """Return the rounds of a run: full ones, and the rest.

    >>> split_run_into_rounds(3000, 1300)
    [EqualRounds(round_count=2, requests_per_round=1300), EqualRounds(round_count=1, requests_per_round=400)]
    """
    count, rest = divmod(run_requests, requests_per_round)
    rounds = EqualRounds(count, requests_per_round), EqualRounds(1, rest)
    return [one for one in rounds if one.round_count * one.requests_per_round > 0]


def find_max_rate_batch(profile: ReplicaProfile) -> float:
    """Return the batch with the highest rate, within memory."""
    most = max(1.0, profile.max_batch)
    timed = [float(b) for b in _TIMED_BATCH_SIZES if b < most] + [most]
    return max(timed, key=profile.request_rate_at_batch)


@dataclasses.dataclass(frozen=True, slots=True)
class LatencyTargets:
    """Latency limits that a share of the requests must meet [s]; None: no limit."""

    request_share: float
    ttft: float | None
    tpot: float | None

    def are_met_with_batch(self, profile: ReplicaProfile, batch: float) -> bool:
        return self.are_met_at(operating_point_at_batch(profile, batch, (self.request_share,)))

    def are_met_at(self, operating_point: OperatingPoint) -> bool:
        slow = (
            self.tpot is not None and operating_point.tpot_by_share[self.request_share] > self.tpot
        )
        late = (
            self.ttft is not None and operating_point.ttft_by_share[self.request_share] > self.ttft
        )
        return not (slow or late)


def highest_load_within_targets(
    profile: ReplicaProfile, targets: LatencyTargets, max_batch: float
) -> OperatingPoint | None:
    """Return the highest load, of at most `max_batch` requests, that meets the targets.

    None if not even one request does.
    """
    if profile.max_batch < 1 or not targets.are_met_with_batch(profile, 1.0):
        return None
    if targets.are_met_with_batch(profile, max_batch):
        return operating_point_at_batch(profile, max_batch)
    most = _bisect_bounds(
        1.0, max_batch, lambda batch: targets.are_met_with_batch(profile, batch)
    ).low
    return operating_point_at_batch(profile, most)


_RELAXED_TARGET_FACTOR = 1.5


def relaxed_target_seconds(reached_seconds: float) -> float:
    """Return the target instead of one that a single request misses by taking `reached_seconds` [s].

    >>> relaxed_target_seconds(0.0624)
    0.094
    """
    return float(f"{_RELAXED_TARGET_FACTOR * reached_seconds:.2g}")
