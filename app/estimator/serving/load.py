"""A served model under load: batch, latencies and rate that settle."""

import dataclasses
import math

from app.estimator.estimates.kv_cache.compute import state_bytes
from app.estimator.memory.cache import elements_per_sequence
from app.estimator.models.formats import weight_table
from app.estimator.serving.step import Batch, Placed, decode_time, step_time

# Time to the first token: front + OWN of the step that holds the prompt + OTHERS
# of the work of each other sequence's prompt, because requests that start together
# stay together. Fitted with the engines of data/engines.toml.
OWN = 0.69
OTHERS = 0.08
# Memory that the engine may take, and what it keeps beside weights and cache.
_USABLE = 0.9
_KEPT = 3e9


@dataclasses.dataclass(frozen=True, slots=True)
class Requests:
    """What is asked for: tokens of a prompt and of its answer, on average."""

    prompt: float
    answer: float

    @property
    def mean_context(self) -> float:
        """Tokens in the cache of a sequence, averaged over its answer."""
        return self.prompt + self.answer / 2


@dataclasses.dataclass(frozen=True, slots=True)
class Load:
    """What one copy of a model does under a load.

    `decode`: a step that only continues answers [s]; `tpot`, `ttft`: medians of
    time per output token and to the first token [s]; `rate`: requests per second;
    `batch`: sequences that are being answered [1]; `prefill_share`: share of time
    that goes to prompts [1].
    """

    decode: float
    tpot: float
    ttft: float
    rate: float
    batch: float
    prefill_share: float

    def tokens_per_second(self, answer: float) -> float:
        """Output tokens per second of the copy [token/s]."""
        return self.rate * answer


def prompt_cost(placed: Placed, requests: Requests, batch: float) -> float:
    """What a prompt adds to a step that continues `batch` answers [s]."""
    mean = requests.mean_context
    both = Batch(requests.prompt, requests.prompt, batch, mean, batch + 1)
    added = step_time(placed, both).total - decode_time(placed, batch, mean).total
    return max(0.0, added) * placed.engine.prefill


def closed_loop(placed: Placed, requests: Requests, concurrent: float) -> Load:
    """The load when `concurrent` requests are always in the system.

    Each answer of n tokens is interrupted by one prompt of each other request:
    TPOT = t_decode(b) + (C − 1)·t_prompt / n, and C = rate·(TTFT + n·TPOT).

    Where:
        placed: model, GPUs and engine; a copy with several attention replicas
            divides the requests among them.
        requests: mean tokens.
        concurrent: requests in the system C, of the whole copy [1].
    """
    own = max(1.0, concurrent / placed.serving.replicas)
    mean = requests.mean_context
    decode = decode_time(placed, own, mean).total
    added = prompt_cost(placed, requests, own)
    tpot = decode + (own - 1) * added / max(1.0, requests.answer)
    ttft = placed.engine.front + OWN * (decode + added) + OTHERS * own * added
    life = ttft + requests.answer * tpot
    rate = own / life
    return Load(
        decode=decode,
        tpot=tpot,
        ttft=ttft,
        rate=rate * placed.serving.replicas,
        batch=concurrent,
        prefill_share=min(1.0, rate * added),
    )


def weights_per_gpu(placed: Placed) -> float:
    """Bytes of weights on one GPU [B]; experts are split their own way."""
    serving = placed.serving
    table = weight_table(placed.model, serving.weights)
    if not placed.model.is_routed:
        return table.per_gpu(serving.tensor)
    dense = table.per_gpu(serving.tensor) - table.experts / serving.tensor
    return dense + table.experts / (serving.expert * serving.expert_tensor)


def sequence_bytes(placed: Placed, context: float) -> float:
    """Bytes of cache and state of one sequence on one GPU [B]."""
    tensor = placed.serving.tensor
    elements = elements_per_sequence(placed.model, context, tensor)
    return elements * placed.element + state_bytes(placed.model) / tensor


def room(placed: Placed, usable: float = _USABLE) -> float:
    """Bytes for the cache on one GPU [B]; negative when weights do not fit."""
    memory = placed.gpu.memory or 0.0
    return memory * usable - weights_per_gpu(placed) - _KEPT


def most_sequences(placed: Placed, context: float, usable: float = _USABLE) -> float:
    """Sequences of a mean context whose cache fits in one copy [1]."""
    each = sequence_bytes(placed, context)
    if each <= 0:
        return math.inf
    return max(0.0, room(placed, usable) / each) * placed.serving.replicas


def saturated(placed: Placed, requests: Requests, most: float = 2048.0) -> Load:
    """The load when requests are never missing: the batch that memory allows.

    Engines that never evict keep room for the whole answer from the start.

    Where:
        placed: model, GPUs and engine.
        requests: mean tokens.
        most: sequences per attention replica that the engine accepts [1].
    """
    limit = most_sequences(placed, requests.prompt + requests.answer, 0.95)
    batch = min(most * placed.serving.replicas, limit)
    return closed_loop(placed, requests, max(1.0, batch))
