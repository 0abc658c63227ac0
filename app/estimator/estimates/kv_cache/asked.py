"""What `kv-cache` asks for."""

import dataclasses

from app.estimator import shared_inputs
from app.estimator.shared_inputs import ENGINE, LOAD


@dataclasses.dataclass(frozen=True, slots=True)
class KvCacheInputs:
    """What the cache is asked for."""

    model: str = shared_inputs.ask_model()
    cache: str = shared_inputs.ask_cache()
    context: int = shared_inputs.ask_context()
    sequences: int = LOAD.ask(
        1,
        "Sequences",
        unit="sequence",
        minimum=1,
        maximum=1_000_000,
        help="Sequences that are in the cache at the same time.",
    )
    tensor_parallel: int = shared_inputs.ask_tensor_parallel()
    state: str = LOAD.ask(
        "fp32",
        "Recurrent state",
        choices=(("fp32", "FP32"), ("bf16", "BF16")),
        help="Format of the state that recurrent layers keep; their convolutions are in 16 bit.",
        topic="number-formats",
        advanced=True,
    )
    block: int = ENGINE.ask(
        1,
        "Block",
        unit="token",
        minimum=1,
        maximum=4096,
        help="Tokens of one block of a paged cache; 1 counts exact tokens.",
        term="paged-kv-cache",
        topic="inference-memory",
        advanced=True,
    )
