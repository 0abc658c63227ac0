"""Latency and throughput of one replica over its batch size."""

import bisect
import dataclasses
import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from app.estimator.hardware.collectives import send_time
from app.estimator.memory.inference_memory import (
    ENGINES,
    compute_usable_engine_bytes,
    hybrid_blocks,
    kv_cache_elements_per_sequence,
    kv_cache_elements_per_token,
    profiled_peak_bytes,
    recurrent_state_bytes,
)
from app.estimator.memory.parallel_layout import split_into_serving_stages
from app.estimator.models.architecture import Architecture
from app.estimator.models.number_formats import mxfp4_expert_padding_bytes, weight_bytes_by_split
from app.estimator.serving.queueing import DEVIATIONS, PromptQueue, wait_quantile
from app.estimator.serving.step_time import (
    PlacedModel,
    SpeculativeDecoding,
    StepBatch,
    decode_time,
    draft_and_verify_step_time,
    prefill_time,
    step_time,
)
from app.estimator.units import format_value

# Memory that the engine may use; its memory besides weights and cache is read from
# startup logs of this engine, unless it has a memory of its own kind.
_USABLE = 0.9
_LOGGED = ENGINES["vllm-0.9"]
_DEALING = ENGINES["llama.cpp"]


@dataclasses.dataclass(frozen=True, slots=True)
class RequestLengths:
    """Mean length of prompt and answer, in tokens; `cached` of the prompt need not be read."""

    prompt: float
    answer: float
    cached_prompt: float = 0.0

    @property
    def uncached_prompt(self) -> float:
        """Return the tokens of the prompt that are read, at least 1."""
        return max(1.0, self.prompt - self.cached_prompt)


def weight_bytes_per_gpu(placed: PlacedModel, stage: Architecture | None = None) -> float:
    """Bytes of weights on one GPU, of a pipeline stage if given [B]; experts have their own split."""
    serving, model = placed.serving, stage or placed.model
    table = weight_bytes_by_split(model, serving.weights)
    if not model.is_routed:
        return table.bytes_per_gpu(serving.tensor)
    dense = table.bytes_per_gpu(serving.tensor) - table.expert_bytes / serving.tensor
    experts = table.expert_bytes / (serving.expert * serving.expert_tensor)
    return dense + experts + expert_padding_bytes_per_gpu(placed, stage)


def expert_padding_bytes_per_gpu(placed: PlacedModel, stage: Architecture | None = None) -> float:
    """Bytes that repacking adds to the experts of one GPU without 4-bit math [B]."""
    serving, model = placed.serving, stage or placed.model
    if not placed.narrow or placed.engine.assigns_whole_layers:
        return 0.0
    added = mxfp4_expert_padding_bytes(model, placed.form, serving.expert_tensor)
    return added / (serving.expert * serving.expert_tensor)


# Inputs of an EAGLE-3 head, each as wide as the model, and tokens of its own vocabulary: the
# configuration of yuhuili/EAGLE3-LLaMA3.1-Instruct-8B.
_HEAD_INPUTS, _HEAD_TOKENS = 3, 32_000


def draft_weight_bytes(model: Architecture, weights: str) -> float:
    """Bytes of what proposes tokens [B]: the modules for multi-token prediction, or a head.

    The modules are in the format of the model; an EAGLE head is about one dense layer in 16 bit.
    """
    if model.prediction_module_count:
        each = weight_bytes_by_split(model, weights).total / model.loaded_parameters
        return each * model.prediction_module_parameters
    joining = _HEAD_INPUTS * model.hidden**2 + _HEAD_TOKENS * model.hidden
    return 2.0 * (model.decoder_layers[-1].active_parameters + joining)


def describe_draft_model(placed: PlacedModel) -> str:
    """Return what proposes tokens for a model, and its memory, as a sentence."""
    model = placed.model
    memory = format_value(draft_weight_bytes(model, placed.serving.weights), "B")
    counted = f"{memory} of weights and one more layer of cache are counted"
    if model.prediction_module_count:
        return (
            f"{model.name} is published with a module for multi-token prediction (MTP); {counted}."
        )
    return (
        f"{model.name} has no module for multi-token prediction (MTP): speculation needs an EAGLE "
        f"head or a small draft model that was trained for it. Of a head, {counted}."
    )


def sequence_bytes_per_gpu(
    placed: PlacedModel, context: float, stage: Architecture | None = None
) -> float:
    """Bytes of cache and state of one sequence on one GPU, of a pipeline stage if given [B]."""
    tensor, model = placed.serving.tensor, stage or placed.model
    if placed.engine.caches_beyond_window:
        elements = context * kv_cache_elements_per_token(model, tensor, placed.element)
    else:
        elements = kv_cache_elements_per_sequence(model, context, tensor, placed.element)
    cached = elements * placed.element
    if placed.serving.has_draft_head:  # One layer more.
        cached *= 1 + 1 / model.layers
    return cached + recurrent_state_bytes(model) / tensor


class EngineMemoryParts(NamedTuple):
    """Bytes that the engine may use on one GPU, and what it takes besides the cache [B].

    `outside`: CUDA, libraries, and tensors of its largest step or of sampling at start-up.
    """

    usable: float
    weights: float
    outside: float

    @property
    def cache(self) -> float:
        """Return the bytes that are left for the cache; negative if there are none [B]."""
        return self.usable - self.weights - self.outside


def engine_memory_parts(
    placed: PlacedModel, usable_share: float = _USABLE, stage: Architecture | None = None
) -> EngineMemoryParts:
    """Return the memory of one GPU without the cache, of a pipeline stage if given."""
    tensor, model = placed.serving.tensor, stage or placed.model
    memory = placed.gpu.engine_visible_memory
    engine = _DEALING if placed.engine.assigns_whole_layers else _LOGGED
    engine = engine.with_defaults_for_gpu(placed.gpu.name, memory)
    peak = profiled_peak_bytes(model, engine, tensor, sequences=placed.serving.sequences)
    drafting = 0.0
    if placed.serving.has_draft_head:
        drafting = draft_weight_bytes(placed.model, placed.serving.weights) / placed.serving.gpus
    return EngineMemoryParts(
        usable=compute_usable_engine_bytes(engine, memory, usable_share, tensor),
        weights=weight_bytes_per_gpu(placed, model) + drafting,
        outside=engine.bytes_outside_framework(tensor) + peak,
    )


def max_sequences(placed: PlacedModel, context: float, usable_share: float = _USABLE) -> float:
    """Sequences of mean context whose cache fits in one replica [1].

    Every pipeline stage caches all sequences; the fullest one decides.
    """
    stages = split_into_serving_stages(placed.model, placed.serving.pipeline)
    return min(_stage_sequences(placed, context, usable_share, stage) for stage, _ in stages)


def _stage_sequences(
    placed: PlacedModel, context: float, usable_share: float, stage: Architecture
) -> float:
    room = engine_memory_parts(placed, usable_share, stage).cache
    each = sequence_bytes_per_gpu(placed, context, stage)
    if placed.engine.caches_hybrids_in_blocks:
        tensor = placed.serving.tensor
        if blocks := hybrid_blocks(stage, placed.element, tensor):
            each = blocks.size * blocks.blocks_of_sequence(context)
    if each <= 0:
        return math.inf if room >= 0 else 0.0
    return max(0.0, room / each) * placed.serving.replicas


# Concurrent requests of an engine, if memory is sufficient: the maximum in NVIDIA's
# benchmark (tensorrt_llm/bench/build/tuning.py).
_ACCEPTED = 4096.0
# Batch sizes at which steps are timed; times between them are interpolated linearly.
_BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
_SEARCH = 18
# Steps towards the prompts per step that agree with the rate, each of which shrinks the rest
# to the share that reads prompts; and the larger batch that shows how far requests slow others.
_ROUNDS, _MORE = 5, 1.05


@dataclasses.dataclass(frozen=True, slots=True)
class RequestPattern:
    """Request lengths with their squared coefficients of variation.

    `open_arrivals`: requests arrive when they like, not when another one ends.
    """

    requests: RequestLengths
    prompt_cv_squared: float = 0.0
    answer_cv_squared: float = 0.0
    open_arrivals: bool = False

    @property
    def mean_context(self) -> float:
        """Return the tokens in the cache of a sequence, averaged over what runs at a time.

        p + a·(1 + v)/2: a long answer is met more often than a short one, because it
        takes longer (the inspection paradox of renewal theory).

        >>> RequestPattern(RequestLengths(1000, 300)).mean_context
        1150.0
        >>> RequestPattern(RequestLengths(1000, 300), answer_cv_squared=1.0).mean_context
        1300.0
        """
        return self.requests.prompt + self.requests.answer * (1 + self.answer_cv_squared) / 2

    def synchrony(self, spread: float) -> float:
        """Return how far requests start together: 1 in waves, 0 each on its own.

        Users who ask again as soon as they are answered stay together if all lengths are
        alike; e^(−√v/spread) of the variation v of both lengths.

        >>> RequestPattern(RequestLengths(1000, 300)).synchrony(0.18)
        1.0
        >>> RequestPattern(RequestLengths(1000, 300), 0.5, 0.5).synchrony(0.18) < 0.01
        True
        """
        if self.open_arrivals:
            return 0.0
        return math.exp(-math.sqrt(self.prompt_cv_squared + self.answer_cv_squared) / spread)


PREFILL_TOKENS = 8192.0
"""Tokens of prompts in a step, for each group of attention: the default of a vLLM server on a
large GPU (get_batch_defaults in vllm/engine/arg_utils.py)."""
# Share of its time that a prefill replica works, so that prompts rarely wait for more than
# the step that is under way: an assumption.
PREFILL_LOAD = 0.7


@dataclasses.dataclass(frozen=True, slots=True)
class PrefillReplica:
    """A replica that only reads prompts, and hands their cache to one that answers.

    A step of full size takes `seconds`; `rate` prompts are read per second at full load.
    The cache of a prompt takes `transfer` to send [s].
    """

    placed: PlacedModel
    seconds: float
    prompts_per_second: float
    transfer_seconds: float

    def cache_arrival_time(self, share: float) -> float:
        """Return the time until a prompt's cache has arrived, by share of requests [s].

        A prompt waits for the rest of the step that is under way, which is equally likely to
        be anything up to the whole, and then for its own.
        """
        return self.placed.time_before_prompt + (1 + share) * self.seconds + self.transfer_seconds


def build_prefill_replica(
    placed: PlacedModel, traffic: RequestPattern, answers_outside_domain: bool
) -> PrefillReplica:
    """Return a prefill replica; `outside`: answers are in another domain of links.

    Each GPU sends its part of the cache over a link or adapter of its own, after the prompt
    is read.
    """
    requests = traffic.requests
    tokens = max(requests.uncached_prompt, PREFILL_TOKENS)
    reach = (2 * requests.prompt - requests.uncached_prompt + tokens) / 2
    step = StepBatch(tokens, reach, 0.0, 0.0, tokens / requests.uncached_prompt)
    slower = 1.0 if placed.serving.dispatches_tokens else placed.engine.prefill_time_factor
    seconds = step_time(placed, step).total * slower
    rate = placed.serving.concurrent_batches * tokens / requests.uncached_prompt / seconds
    sent = sequence_bytes_per_gpu(placed, requests.prompt)
    return PrefillReplica(
        placed, seconds, rate, send_time(sent, placed.fabric, outside=answers_outside_domain)
    )


def added_prompt_time(
    placed: PlacedModel, traffic: RequestPattern, batch: float, decode_seconds: float
) -> float:
    """Time that a prompt adds to a step of `decode_seconds` seconds for `batch` answers [s].

    A step of its own if the engine reads prompts in separate steps.
    """
    requests = traffic.requests
    if placed.engine.has_separate_prefill_steps:
        own = StepBatch(requests.uncached_prompt, requests.prompt, 0.0, 0.0, 1.0)
        return step_time(placed, own).total * placed.engine.prefill_time_factor
    mean = traffic.mean_context
    both = StepBatch(requests.uncached_prompt, requests.prompt, batch, mean, batch + 1)
    added = step_time(placed, both).total - decode_seconds
    return max(0.0, added) * placed.engine.prefill_time_factor


@dataclasses.dataclass(frozen=True, slots=True)
class OperatingPoint:
    """A replica at one load: batch, rate [1/s], latencies by share of requests [s]."""

    batch: float
    requests_per_second: float
    ttft: dict[float, float]
    tpot: dict[float, float]


class BatchTiming(NamedTuple):
    """Timing of a group of GPUs at one batch size.

    `step` continues `batch` answers [s], and `cost` is what a prompt adds to it [s].
    `recorded`: a step without prompts, padded to a recorded batch size [s];
    `launching`: the minimum of a step with prompts, limited by launches [s].
    """

    step: float
    cost: float
    batch: float
    recorded: float
    launching: float


@dataclasses.dataclass(frozen=True, slots=True)
class ReplicaProfile:
    """Time of a decode step and of a prompt over the batch size of one replica.

    A replica divides its batch among groups: those that run attention in parallel, and one
    for each pipeline stage, so that all stages work at any time;
    `decode` and `prompt` are over the batch of a group, and `own` is the part of `decode`
    that depends on requests instead of rows. `most` sequences fit in memory on average,
    `full` if memory for each whole answer is reserved from the start; at 0 the weights do
    not fit. A step yields `kept` tokens of each answer. `idle` is the median time to first token
    without load [s]. `prefill` reads the prompts apart.
    """

    placed: PlacedModel
    traffic: RequestPattern
    decode: tuple[float, ...]
    prompt: tuple[float, ...]
    own: tuple[float, ...]
    most: float
    max_reserved_batch: float
    kept: float
    idle_median_ttft: float = 0.0
    prefill: PrefillReplica | None = None

    @property
    def steps_per_answer(self) -> float:
        """Return the steps of an answer; speculation takes fewer than it has tokens."""
        return self.traffic.requests.answer / self.kept

    def prompts_per_step(self, timing: BatchTiming) -> float:
        """Return the prompts of other requests that a step of an answer reads on average [1].

        Of a fixed number of users, each of the others asks once in the meantime. Where requests
        arrive at random, as many come per second as Little's law says of the batch.
        """
        answer = max(1.0, self.steps_per_answer)
        if self.prefill:
            return 0.0
        if not self.traffic.open_arrivals:
            return (timing.batch - 1) / answer
        first, prompts = self._ttft_of_timing(timing), timing.batch / answer
        for _ in range(_ROUNDS):
            decoding = answer * mean_step_time(timing, prompts)
            prompts = timing.batch / answer * decoding / (first + decoding)
        return prompts

    def time_per_token(self, timing: BatchTiming) -> float:
        """Return the time per token [s]."""
        return mean_step_time(timing, self.prompts_per_step(timing)) / self.kept

    @property
    def concurrent_batches(self) -> int:
        """Return the groups of requests that are under way at the same time [1]."""
        return self.placed.serving.concurrent_batches

    def timing_at(self, batch: float) -> BatchTiming:
        """Return the timing of a group with `batch` requests in the replica."""
        there = batch / self.concurrent_batches
        if not self.traffic.open_arrivals:
            there = max(1.0, there)
        above, part = at = _next_timed_batch_and_fraction(there)
        low, few = self.decode[above - 1], self.prompt[above - 1]
        step = recorded = low + part * (self.decode[above] - low)
        cost = few + part * (self.prompt[above] - few)
        if self.placed.engine.cuda_graph_batches:
            full = _next_timed_batch_and_fraction(self.placed.engine.padded_batch(there))
            empty = _interpolate_timing(self.own, full) - _interpolate_timing(self.own, at)
            recorded = _interpolate_timing(self.decode, full) - empty
        return BatchTiming(step, cost, there, recorded, min_mixed_step_time(self.placed, step))

    def tpot_at(self, batch: float) -> float:
        """Return the time per token with `batch` requests in the replica [s]."""
        return self.time_per_token(self.timing_at(batch))

    def ttft_at(self, batch: float) -> float:
        """Return the median time to first token with `batch` requests [s]."""
        return self._ttft_of_timing(self.timing_at(batch))

    def _ttft_of_timing(self, timed: BatchTiming) -> float:
        if self.prefill:
            return (
                self.prefill.cache_arrival_time(0.5)
                + self.placed.steps.steps_before_first_token * timed.step
            )
        return median_ttft(self.placed, timed, self.traffic, self.idle_median_ttft)

    def rate_at(self, batch: float) -> float:
        """Return the request rate with `batch` requests in the replica, by Little's law [1/s]."""
        return self.rate_ttft_and_timing(batch)[0]

    def rate_ttft_and_timing(self, batch: float) -> tuple[float, float, BatchTiming]:
        """Return the rate, the median time to first token, and the timing behind both."""
        timed = self.timing_at(batch)
        answer = self.traffic.requests.answer
        first = self._ttft_of_timing(timed)
        return batch / (first + answer * self.time_per_token(timed)), first, timed


def mean_step_time(timing: BatchTiming, prompts: float) -> float:
    """Mean time of the steps of an answer, which read `prompts` of other requests each [s].

    s·t_mixed + (1 − s)·t_recorded of a share s of steps that read prompts.

    >>> round(mean_step_time(BatchTiming(0.01, 0.1, 11, 0.01, 0.0), 0.1), 3)
    0.02
    """
    step, cost, _, recorded, launching = timing
    if recorded == step and launching <= step + cost:  # The sum does not depend on s.
        return step + prompts * cost
    share, mixed = prefill_step_share_and_time(timing, prompts)
    return recorded + share * (mixed - recorded)


def prefill_step_share_and_time(timing: BatchTiming, prompts: float) -> tuple[float, float]:
    """Share of steps that process prompts [1], and how long each of them takes [s].

    s = 1 − e^(−x) of x prompts per step that arrive at random, and
    t_mixed = max(t_step + x/s·t_prompt, t_launching): such a step is launched kernel by
    kernel, which can take longer than its work.

    >>> [round(value, 3) for value in prefill_step_share_and_time(BatchTiming(0.01, 0.1, 11, 0.01, 0.2), 2)]
    [0.865, 0.241]
    """
    share = -math.expm1(-prompts)
    at_once = prompts / share if share else 1.0
    return share, max(timing.step + at_once * timing.cost, timing.launching)


def min_mixed_step_time(placed: PlacedModel, decode_seconds: float) -> float:
    """Return the minimum of a step with prompts, limited by launches [s]."""
    return placed.launching + (decode_seconds if placed.engine.has_separate_prefill_steps else 0.0)


def idle_ttft(placed: PlacedModel, traffic: RequestPattern) -> float:
    """Time to the first token of the median prompt if no other request is there [s].

    Lengths are distributed log-normally, with a median of the mean ÷ √(1 + v).
    """
    median = traffic.requests.uncached_prompt / math.sqrt(1 + traffic.prompt_cv_squared)
    return placed.time_before_prompt + prefill_time(placed, max(1.0, median)).total


def median_ttft(
    placed: PlacedModel, timing: BatchTiming, traffic: RequestPattern, idle: float
) -> float:
    """Median time to the first token under load [s].

    idle + (waits + (p − 1)/2)·t_step + others·s·b·t_prompt: the time on an idle replica, the
    steps of other answers until the engine checks for requests and emits the token, and the
    prompts before it. The engine checks every p steps, and s is how far requests start
    together. The constants are in data/engines.toml.
    """
    common = placed.steps
    others = common.other_prompts_factor * traffic.synchrony(common.synchrony_spread) * timing.batch
    steps = common.steps_before_first_token * timing.step + _polling_wait(placed, timing)
    return idle + steps + others * timing.cost


def _polling_wait(placed: PlacedModel, timing: BatchTiming) -> float:
    """Return the mean wait until the engine checks for requests, beyond its next step [s]."""
    return (placed.serving.polling_interval_steps - 1) / 2 * timing.step


def profile_replica(
    placed: PlacedModel,
    traffic: RequestPattern,
    usable_share: float = 0.9,
    draft: SpeculativeDecoding | None = None,
    prefill: PrefillReplica | None = None,
) -> ReplicaProfile:
    """Time a replica at about a dozen batch sizes; with `prefill` it reads no prompts."""
    requests, draft = traffic.requests, draft or SpeculativeDecoding()
    mean = traffic.mean_context
    steps = tuple(decode_time(placed, b, mean) for b in _BATCHES)
    decode = tuple(
        draft_and_verify_step_time(placed, draft, b, mean, step.total)
        for b, step in zip(_BATCHES, steps, strict=True)
    )
    both = zip(_BATCHES, steps, strict=True)
    return ReplicaProfile(
        placed=placed,
        traffic=traffic,
        decode=decode,
        prompt=tuple(
            0.0 if prefill else added_prompt_time(placed, traffic, b, step.total)
            for b, step in both
        ),
        own=tuple(step.request_dependent_time for step in steps),
        most=_max_accepted_sequences(placed, mean, usable_share),
        max_reserved_batch=_max_accepted_sequences(
            placed, requests.prompt + requests.answer, usable_share
        ),
        kept=draft.tokens_per_step,
        idle_median_ttft=0.0 if prefill else idle_ttft(placed, traffic),
        prefill=prefill,
    )


def _max_accepted_sequences(placed: PlacedModel, context: float, usable_share: float) -> float:
    """Sequences that fit in memory and that an engine accepts [1]."""
    accepted = (placed.serving.sequences or _ACCEPTED) * placed.serving.replicas
    return min(accepted, max_sequences(placed, context, usable_share))


def _next_timed_batch_and_fraction(batch: float) -> tuple[int, float]:
    """Return the index of the next timed batch size, and the fraction from the one below."""
    above = min(bisect.bisect_left(_BATCHES, batch), len(_BATCHES) - 1) or 1
    low, high = _BATCHES[above - 1], _BATCHES[above]
    return above, (batch - low) / (high - low)


def _interpolate_timing(values: tuple[float, ...], position: tuple[int, float]) -> float:
    above, part = position
    return values[above - 1] + part * (values[above] - values[above - 1])


class ValueBracket(NamedTuple):
    """The values at the timed batch sizes below and above, and the fraction between [1]."""

    below: float
    above: float
    fraction: float


def bracket_values_at_batch(values: tuple[float, ...], batch: float) -> ValueBracket:
    above, part = _next_timed_batch_and_fraction(batch)
    return ValueBracket(values[above - 1], values[above], part)


def operating_point_at_batch(
    profile: ReplicaProfile, batch: float, quantiles: Iterable[float] = tuple(DEVIATIONS)
) -> OperatingPoint:
    """Return a replica with a mean of `batch` requests, for shares of the requests.

    The time per token differs with the prompts that interrupt an answer. Of a fixed number of
    users, a request finds only the others before it, which is none if it is alone, and those
    beyond the memory wait until as many have left. Requests that arrive when they like queue
    for the steps that read them, and wait for memory as for servers in Erlang's formula.
    """
    if profile.traffic.open_arrivals:
        return _operating_point_of_open_arrivals(profile, min(batch, profile.most), quantiles)
    users, batch = batch, max(1.0, min(batch, profile.most))
    rate, first, timed = profile.rate_ttft_and_timing(batch)
    queued = max(0.0, users - batch)
    waiting = _prompt_wait_beyond_median(profile, timed, rate, batch)
    memory_wait = _departure_wait_by_quantile(queued, rate)
    queue = _prompt_queue(profile, timed, rate)
    each = profile.time_per_token(timed)
    pause = queue.pause(each * profile.kept, *_interruptions(profile, timed)).deviation
    return OperatingPoint(
        batch=batch,
        requests_per_second=rate,
        ttft={q: first + waiting(q) + memory_wait(q) for q in quantiles},
        tpot={q: each * math.exp(DEVIATIONS[q] * pause) for q in quantiles},
    )


def _operating_point_of_open_arrivals(
    profile: ReplicaProfile, batch: float, quantiles: Iterable[float]
) -> OperatingPoint:
    rate, first, timed = profile.rate_ttft_and_timing(batch)
    queue = _prompt_queue(profile, timed, rate)
    # The answers at a time vary more than Poisson's, since each slows the others down.
    more = profile.rate_at(batch * _MORE) - rate
    variance = rate * batch * (_MORE - 1) / more if more > 0 else batch
    memory_wait = _memory_wait_beyond_median(profile, batch, rate, variance)
    crowded = profile.timing_at(min(profile.most, batch + math.sqrt(variance))).step
    feedback = 1 / (1 - queue.busy)
    each = profile.time_per_token(timed)
    pause = queue.pause(each * profile.kept, *_interruptions(profile, timed), feedback)
    pause = pause._replace(variance=pause.variance + ((crowded - timed.step) * feedback) ** 2)
    if profile.prefill:
        reading = _prefill_wait_beyond_median(profile.prefill)
        ttft = {q: first + reading(q) + memory_wait(q) for q in quantiles}
    else:
        front = profile.placed.time_before_prompt + _polling_wait(profile.placed, timed)
        ttft = {q: front + queue.first_token.quantile(q) + memory_wait(q) for q in quantiles}
    return OperatingPoint(
        batch=batch,
        requests_per_second=rate,
        ttft=ttft,
        tpot={q: each * math.exp(DEVIATIONS[q] * pause.deviation) for q in quantiles},
    )


def _prompt_queue(profile: ReplicaProfile, timing: BatchTiming, rate: float) -> PromptQueue:
    """Return the prompts that one group of a replica reads, of `rate` in all of it [1/s]."""
    traffic = profile.traffic
    return PromptQueue(
        step=timing.step,
        prompt=timing.cost,
        variation=traffic.prompt_cv_squared,
        rate=rate / profile.concurrent_batches,
        together=max(1.0, PREFILL_TOKENS / traffic.requests.uncached_prompt),
    )


def _interruptions(profile: ReplicaProfile, timing: BatchTiming) -> tuple[float, float]:
    """Return the prompts per step, and the mean of 1 ÷ steps of answers of log-normal lengths."""
    inverse = (1 + profile.traffic.answer_cv_squared) / max(1.0, profile.steps_per_answer)
    return profile.prompts_per_step(timing), inverse


def _prompt_wait_beyond_median(
    profile: ReplicaProfile, timing: BatchTiming, rate: float, batch: float
) -> Callable[[float], float]:
    """Return the wait for prompts beyond the median, by share of a fixed number of users [s].

    Those who wait ask nothing more, so that no queue builds up.
    """
    if profile.prefill:
        return _prefill_wait_beyond_median(profile.prefill)
    variation, cost = profile.traffic.prompt_cv_squared, timing.cost
    busy = min(0.98, rate / profile.concurrent_batches * cost)
    busy *= max(0.0, 1 - profile.concurrent_batches / batch)
    spread, tail = math.sqrt(variation) * cost, cost * (1 + variation) / 2
    return lambda share: (
        DEVIATIONS[share] * spread
        + tail * (_wait_quantile_in_means(busy, share) - _wait_quantile_in_means(busy, 0.5))
    )


def _prefill_wait_beyond_median(prefill: PrefillReplica) -> Callable[[float], float]:
    """Return the wait for prompts read apart beyond the median, by share of requests [s]."""
    return lambda share: prefill.cache_arrival_time(share) - prefill.cache_arrival_time(0.5)


def _departure_wait_by_quantile(queued: float, rate: float) -> Callable[[float], float]:
    """Return the time until `queued` requests have left, by share of requests [s].

    They leave one by one at random, so that the time varies by the root of their number.
    """
    return lambda share: max(0.0, queued + DEVIATIONS[share] * math.sqrt(queued)) / rate


def _memory_wait_beyond_median(
    profile: ReplicaProfile, batch: float, rate: float, variance: float
) -> Callable[[float], float]:
    """Return the wait for memory, by share [s]; 0 if memory is sufficient.

    Erlang's formula with servers and load divided by the ratio of the variance of the batch to
    its mean, as Hayward does.
    """
    ratio = max(1.0, variance / max(1.0, batch))
    slots = max(1, int(profile.most))
    if batch + 4 * math.sqrt(variance) <= slots:
        return lambda _: 0.0
    life, servers = batch / rate, max(1, round(slots / ratio))
    return wait_quantile(servers, min(rate / ratio, 0.98 * servers / life), life)


def _wait_quantile_in_means(busy: float, share: float) -> float:
    """ln(u / (1 − q)), at least 0: the quantile of a wait in units of its mean."""
    return max(0.0, math.log(max(busy, 1e-9) / (1 - share)))


def operating_point_at_rate(profile: ReplicaProfile, rate: float) -> OperatingPoint | None:
    """Return the operating point at a request rate; None if the replica cannot keep up."""
    top = max_rate_batch(profile)
    if rate > profile.rate_at(top):
        return None
    low, high = 1e-3, top
    for _ in range(_SEARCH):
        middle = (low + high) / 2
        if profile.rate_at(middle) < rate:
            low = middle
        else:
            high = middle
    settled = operating_point_at_batch(profile, high)
    return dataclasses.replace(settled, batch=high, requests_per_second=rate)


def saturated_rate(profile: ReplicaProfile, run_requests: float | None = None) -> float:
    """Request rate when requests are always waiting, or of a run [1/s].

    Engines that never evict start only as many as can store their whole answers.
    """
    full = max(1.0, profile.max_reserved_batch)
    if run_requests is None:
        return profile.rate_at(full)
    return run_requests / sum(
        rounds.number * rounds.requests_per_round / profile.rate_at(rounds.requests_per_round)
        for rounds in rounds_of_run(run_requests, full)
    )


class EqualRounds(NamedTuple):
    number: float
    requests_per_round: float


def rounds_of_run(run_requests: float, requests_per_round: float) -> list[EqualRounds]:
    """Return the rounds of a run: full ones, and the rest.

    >>> rounds_of_run(3000, 1300)
    [EqualRounds(number=2, requests_per_round=1300), EqualRounds(number=1, requests_per_round=400)]
    """
    count, rest = divmod(run_requests, requests_per_round)
    rounds = EqualRounds(count, requests_per_round), EqualRounds(1, rest)
    return [one for one in rounds if one.number * one.requests_per_round > 0]


def max_rate_batch(profile: ReplicaProfile) -> float:
    """Return the batch with the highest rate, within memory."""
    most = max(1.0, profile.most)
    timed = [float(b) for b in _BATCHES if b < most] + [most]
    return max(timed, key=profile.rate_at)


@dataclasses.dataclass(frozen=True, slots=True)
class LatencyTargets:
    """Latency limits that a share of the requests must meet [s]; None: no limit."""

    share: float
    ttft: float | None
    tpot: float | None

    def are_met_with_batch(self, profile: ReplicaProfile, batch: float) -> bool:
        """Return whether a replica meets both limits with `batch` requests."""
        return self.are_met_at(operating_point_at_batch(profile, batch, (self.share,)))

    def are_met_at(self, operating_point: OperatingPoint) -> bool:
        """Return whether an operating point meets both limits."""
        slow = self.tpot is not None and operating_point.tpot[self.share] > self.tpot
        late = self.ttft is not None and operating_point.ttft[self.share] > self.ttft
        return not (slow or late)


def highest_load_within_targets(
    profile: ReplicaProfile, targets: LatencyTargets, max_batch: float
) -> OperatingPoint | None:
    """Return the highest load, of at most `max_batch` requests, that meets the targets.

    None if not even one request does.
    """
    if profile.most < 1 or not targets.are_met_with_batch(profile, 1.0):
        return None
    if targets.are_met_with_batch(profile, max_batch):
        return operating_point_at_batch(profile, max_batch)
    low, high = 1.0, max_batch
    for _ in range(_SEARCH):
        middle = (low + high) / 2
        if targets.are_met_with_batch(profile, middle):
            low = middle
        else:
            high = middle
    return operating_point_at_batch(profile, low)
