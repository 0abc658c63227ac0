"""`kv-cache`: inputs, result, and the input values where the verdict changes."""

import dataclasses

from app.estimator import common_inputs
from app.estimator.common_inputs import ENGINE, LOAD
from app.estimator.memory.kv_cache import (
    elements_per_sequence,
    elements_per_token,
    recurrent_bytes,
    round_up_to_blocks,
)
from app.estimator.models.architecture import Architecture
from app.estimator.models.number_formats import CACHE_BITS


@dataclasses.dataclass(frozen=True, slots=True)
class KvCacheInputs:
    """The model, the sequences and the format of the cache."""

    model: str = common_inputs.ask_model()
    cache: str = common_inputs.ask_cache()
    context: int = common_inputs.ask_context()
    sequences: int = LOAD.ask(
        1,
        "Sequences",
        unit="sequence",
        limits=(1, 1_000_000),
        help="Sequences that are in the cache at the same time.",
    )
    tensor_parallel: int = common_inputs.ask_tensor_parallel()
    state: str = LOAD.ask_more(
        "fp32",
        "Recurrent state",
        choices=(("fp32", "FP32"), ("bf16", "BF16")),
        help="Format of the state that recurrent layers keep; their convolutions are in 16 bit.",
        topic="number-formats",
    )
    block: int = ENGINE.ask_more(
        1,
        "Block",
        unit="token",
        limits=(1, 4096),
        help="Tokens of one block of a paged cache; 1 counts exact tokens.",
        term="paged-kv-cache",
        topic="inference-memory",
    )


@dataclasses.dataclass(frozen=True, slots=True)
class KvCacheResult:
    """Bytes of the cache of one token and one sequence, in total and on one GPU.

    A sequence has keys and values, `attention`, and the `state` of recurrent layers;
    `recurrent` is that state without convolutions. `tokens` are in whole blocks.
    """

    tokens: int
    per_token: float
    token_per_gpu: float
    attention: float
    state: float
    recurrent: float
    total: float
    per_gpu: float

    @property
    def per_sequence(self) -> float:
        """Return keys, values and state of one sequence [B]."""
        return self.attention + self.state


def compute_kv_cache(model: Architecture, inputs: KvCacheInputs) -> KvCacheResult:
    """Compute all results, in bytes."""
    width, gpus = CACHE_BITS[inputs.cache] / 8, inputs.tensor_parallel
    tokens = round_up_to_blocks(inputs.context, inputs.block)
    each = CACHE_BITS[inputs.state] / 8
    state = recurrent_bytes(model, each)
    attention = elements_per_sequence(model, tokens, 1, width) * width
    on_one = elements_per_sequence(model, tokens, gpus, width) * width + state / gpus
    return KvCacheResult(
        tokens=tokens,
        per_token=elements_per_token(model, 1, width) * width,
        token_per_gpu=elements_per_token(model, gpus, width) * width,
        attention=attention,
        state=state,
        recurrent=each * model.state_elements,
        total=(attention + state) * inputs.sequences,
        per_gpu=on_one * inputs.sequences,
    )
