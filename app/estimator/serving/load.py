"""A served model: what a prompt adds to a step, and the sequences that fit."""

import dataclasses
import math

from app.estimator.memory.engines import ENGINES, peak_bytes
from app.estimator.memory.kv_cache import (
    elements_per_sequence,
    elements_per_token,
    recurrent_bytes,
)
from app.estimator.models.formats import weight_table
from app.estimator.models.quantized.repacking import padding_bytes
from app.estimator.serving.step import PlacedModel, StepBatch, step_time

# Memory that the engine may take; what it keeps beside weights and cache is read
# from the start-up logs of this one.
_USABLE = 0.9
_LOGGED = ENGINES["vllm-0.9"]


@dataclasses.dataclass(frozen=True, slots=True)
class RequestShape:
    """What is asked for: tokens of a prompt and of its answer, on average."""

    prompt: float
    answer: float

    @property
    def mean_context(self) -> float:
        """Tokens in the cache of a sequence, averaged over its answer."""
        return self.prompt + self.answer / 2


def prompt_cost(placed: PlacedModel, requests: RequestShape, batch: float, alone: float) -> float:
    """What a prompt adds to a step of `alone` seconds for `batch` answers [s]."""
    mean = requests.mean_context
    both = StepBatch(requests.prompt, requests.prompt, batch, mean, batch + 1)
    added = step_time(placed, both).total - alone
    return max(0.0, added) * placed.engine.prefill


def weights_per_gpu(placed: PlacedModel) -> float:
    """Bytes of weights on one GPU [B]; experts are split their own way."""
    serving = placed.serving
    table = weight_table(placed.model, serving.weights)
    if not placed.model.is_routed:
        return table.per_gpu(serving.tensor)
    dense = table.per_gpu(serving.tensor) - table.experts / serving.tensor
    experts, parts = table.experts, serving.expert_tensor
    if placed.narrow:
        experts += padding_bytes(placed.model, placed.form, parts)
    return dense + experts / (serving.expert * parts)


def sequence_bytes(placed: PlacedModel, context: float) -> float:
    """Bytes of cache and state of one sequence on one GPU [B]."""
    tensor, model = placed.serving.tensor, placed.model
    if placed.engine.whole_windows:
        elements = context * elements_per_token(model, tensor, placed.element)
    else:
        elements = elements_per_sequence(model, context, tensor, placed.element)
    return elements * placed.element + recurrent_bytes(model) / tensor


def cache_capacity(placed: PlacedModel, usable: float = _USABLE) -> float:
    """Bytes for the cache on one GPU [B]; negative when weights do not fit."""
    tensor = placed.serving.tensor
    kept = _LOGGED.outside_of(tensor) + peak_bytes(placed.model, _LOGGED, tensor)
    return placed.gpu.shown * usable - weights_per_gpu(placed) - kept


def most_sequences(placed: PlacedModel, context: float, usable: float = _USABLE) -> float:
    """Sequences of a mean context whose cache fits in one copy [1]."""
    each = sequence_bytes(placed, context)
    if each <= 0:
        return math.inf
    return max(0.0, cache_capacity(placed, usable) / each) * placed.serving.replicas
