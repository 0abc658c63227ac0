"""What `latency` asks for."""

import dataclasses

from app.estimator import shared_inputs
from app.estimator.shared_inputs import ENGINE, HARDWARE, LOAD


@dataclasses.dataclass(frozen=True, slots=True)
class LatencyInputs:
    """One engine step after another for one batch of requests."""

    model: str = shared_inputs.ask_model("llama-3.1-8b")
    weights: str = shared_inputs.ask_weights()
    cache: str = shared_inputs.ask_cache()
    gpu: str = shared_inputs.ask_gpu(count_field="tensor_parallel")
    tensor_parallel: int = shared_inputs.ask_tensor_parallel()
    beyond_heads: bool = HARDWARE.ask(
        default=False,
        label="Divided beyond the heads",
        kind="flag",
        help="A layer is divided over more chips than its heads divide into, as "
        "compilers for TPUs do.",
        advanced=True,
    )
    prompt: int = shared_inputs.ask_tokens(1024, "Prompt", "Tokens of the prompt.")
    answer: int = shared_inputs.ask_tokens(256, "Answer", "Tokens of the answer.")
    batch: int = LOAD.ask(
        1,
        "Sequences at once",
        unit="sequence",
        minimum=1,
        maximum=1_000_000,
        help="Sequences that are answered in the same step.",
        term="batch-size",
    )
    chunk: int | None = ENGINE.ask(
        None,
        "Prompt chunk",
        kind="count",
        unit="token",
        minimum=16,
        maximum=10_000_000,
        help="Tokens of a prompt computed in one step beside the answers of others; "
        "left empty: the whole prompt at once.",
        term="chunked-prefill",
        advanced=True,
    )
    cached_share: float = ENGINE.ask(
        0.0,
        "Prompt already cached",
        typed_unit="%",
        minimum=0.0,
        maximum=0.99,
        help="Share of the prompt whose cache is there from earlier requests.",
        advanced=True,
    )
    draft_tokens: int = ENGINE.ask(
        0,
        "Draft tokens",
        unit="token",
        minimum=0,
        maximum=32,
        help="Tokens a small model proposes per step; 0: no speculation.",
        term="speculative-decoding",
        advanced=True,
    )
    acceptance: float = ENGINE.ask(
        0.8,
        "Acceptance",
        typed_unit="%",
        minimum=0.0,
        maximum=1.0,
        help="Probability that a proposed token is kept.",
        term="speculative-decoding",
        advanced=True,
    )
    draft_cost: float = ENGINE.ask(
        0.05,
        "Draft step",
        typed_unit="%",
        minimum=0.0,
        maximum=1.0,
        help="Time of one step of the small model as a share of the large one's.",
        advanced=True,
    )
    engine: str = shared_inputs.ask_engine()
    network_rate: float = shared_inputs.ask_network_rate()
    domain: int | None = shared_inputs.ask_domain()
