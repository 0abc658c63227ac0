"""What `inference-memory` asks for."""

import dataclasses

from app.estimator import shared_inputs
from app.estimator.memory.engines import ENGINES
from app.estimator.shared_inputs import ENGINE, HARDWARE, LOAD

GENERAL, TRANSFORMERS = "general", "transformers"
DIVIDED, DATA_PARALLEL = "divided", "data-parallel"
_ATTENTION = (
    (DIVIDED, "Divided over the GPUs"),
    (DATA_PARALLEL, "Data parallel"),
)
_ENGINES = (
    (GENERAL, "Any: the general formula"),
    (TRANSFORMERS, "Transformers, generate"),
    *((engine.id, engine.label) for engine in ENGINES.values()),
)


@dataclasses.dataclass(frozen=True, slots=True)
class InferenceMemoryInputs:
    """What is to be served, and on what."""

    model: str = shared_inputs.ask_model()
    weights: str = shared_inputs.ask_weights()
    cache: str = shared_inputs.ask_cache()
    context: int = shared_inputs.ask_context()
    concurrent: int = LOAD.ask(
        16,
        "Concurrent sequences",
        unit="sequence",
        minimum=1,
        maximum=1_000_000,
        help="Sequences that are answered at the same time.",
        term="batch-size",
    )
    gpu: str = shared_inputs.ask_gpu(count_field="tensor_parallel")
    tensor_parallel: int = shared_inputs.ask_tensor_parallel(4, "GPUs that share the model")
    attention: str = HARDWARE.ask(
        DIVIDED,
        "Attention",
        choices=_ATTENTION,
        help="Data parallel: each GPU holds all of attention and caches its own "
        "sequences; experts stay divided. A latent cache cannot be divided.",
        advanced=True,
    )
    memory_utilization: float = shared_inputs.ask_usable_share()
    engine: str = ENGINE.ask(
        GENERAL,
        "Engine",
        choices=_ENGINES,
        help="Whose measured overheads are taken; plain generation in Transformers "
        "deals whole layers to the GPUs.",
        topic="inference-memory",
        advanced=True,
    )
    prompt: int | None = LOAD.ask(
        None,
        "Prompt",
        kind="count",
        unit="token",
        minimum=1,
        maximum=100_000_000,
        help="Tokens of the context that are read at once, in Transformers; left "
        "empty: all of them.",
        topic="inference-memory",
        advanced=True,
    )
    shown_memory: float | None = HARDWARE.ask(
        None,
        "Memory as the driver shows it",
        unit="B",
        typed_unit="GB",
        minimum=1e6,
        maximum=1e13,
        help="Of one GPU, for example 79.22 GiB; left empty: that of the data sheet, "
        "or what drivers show of it where an engine is chosen.",
        topic="inference-memory",
        advanced=True,
    )
    cache_memory: float | None = ENGINE.ask(
        None,
        "Memory for the cache",
        unit="B",
        typed_unit="GB",
        minimum=1e6,
        maximum=1e13,
        help="On each GPU, as a start-up log says it; left empty: what is left over.",
        topic="inference-memory",
        advanced=True,
    )
    step_tokens: int | None = ENGINE.ask(
        None,
        "Tokens per engine step",
        kind="count",
        unit="token",
        minimum=1,
        maximum=10_000_000,
        help="The most tokens that the engine computes at once; left empty: the "
        "engine's own number, 8,192 where none is chosen.",
        advanced=True,
    )
    overhead: float | None = ENGINE.ask(
        None,
        "Overhead per GPU",
        unit="B",
        typed_unit="GB",
        minimum=0.0,
        maximum=1e12,
        help="CUDA context, libraries and buffers; left empty: 1 GB, 2 GB from two GPUs on.",
        topic="inference-memory",
        advanced=True,
    )
    block: int = ENGINE.ask(
        16,
        "Cache block",
        unit="token",
        minimum=1,
        maximum=4096,
        help="Tokens of one block of the paged cache.",
        topic="inference-memory",
        advanced=True,
    )
