"""The estimate `latency`: time to the first token and per token, and what bounds it."""

import dataclasses
import math

from app.estimator.estimate import Estimate
from app.estimator.estimates.latency import words
from app.estimator.estimates.latency.words import Timed, bound_of
from app.estimator.hardware.accelerators import Accelerator, find_accelerator
from app.estimator.hardware.networks import fabric_of
from app.estimator.inputs import ask
from app.estimator.job_inputs import (
    ask_domain,
    ask_engine,
    ask_network_rate,
    ask_tokens,
)
from app.estimator.memory.sharding import tensor_parallel_problem
from app.estimator.models.architecture import Architecture, find_model
from app.estimator.models.formats import FORMATS
from app.estimator.registry import Entry
from app.estimator.serving.engine import Serving
from app.estimator.serving.load import room, sequence_bytes
from app.estimator.serving.step import (
    TILE,
    Batch,
    InferenceStep,
    Placed,
    decode_time,
    place,
    prefill_time,
    step_time,
)
from app.estimator.shared_inputs import (
    ask_cache,
    ask_gpu,
    ask_model,
    ask_tensor_parallel,
    ask_weights,
    refuse,
)
from app.estimator.timing.speculative import tokens_per_step


@dataclasses.dataclass(frozen=True, slots=True)
class Latency:
    """One engine step after another for one batch of requests."""

    model: str = ask_model("llama-3.1-8b")
    weights: str = ask_weights()
    cache: str = ask_cache()
    gpu: str = ask_gpu(count_field="tensor_parallel")
    tensor_parallel: int = ask_tensor_parallel()
    prompt: int = ask_tokens(1024, "Prompt", "Tokens of the prompt.")
    answer: int = ask_tokens(256, "Answer", "Tokens of the answer.")
    batch: int = ask(
        1,
        "Sequences at once",
        kind="count",
        unit="sequence",
        minimum=1,
        maximum=1_000_000,
        help="Sequences that are answered in the same step.",
        term="batch-size",
        group="Load",
        topic="batching-and-latency",
    )
    chunk: int | None = ask(
        None,
        "Prompt chunk",
        kind="count",
        unit="token",
        minimum=16,
        maximum=10_000_000,
        help="Tokens of a prompt computed in one step beside the answers of others; "
        "left empty: the whole prompt at once.",
        term="chunked-prefill",
        group="Engine",
        topic="batching-and-latency",
        advanced=True,
    )
    cached_share: float = ask(
        0.0,
        "Prompt already cached",
        typed_unit="%",
        minimum=0.0,
        maximum=0.99,
        help="Share of the prompt whose cache is there from earlier requests.",
        term="prefix-caching",
        group="Engine",
        topic="batching-and-latency",
        advanced=True,
    )
    draft_tokens: int = ask(
        0,
        "Draft tokens",
        kind="count",
        unit="token",
        minimum=0,
        maximum=32,
        help="Tokens a small model proposes per step; 0: no speculation.",
        term="speculative-decoding",
        group="Engine",
        topic="batching-and-latency",
        advanced=True,
    )
    acceptance: float = ask(
        0.8,
        "Acceptance",
        typed_unit="%",
        minimum=0.0,
        maximum=1.0,
        help="Probability that a proposed token is kept.",
        term="speculative-decoding",
        group="Engine",
        topic="batching-and-latency",
        advanced=True,
    )
    draft_cost: float = ask(
        0.05,
        "Draft step",
        typed_unit="%",
        minimum=0.0,
        maximum=1.0,
        help="Time of one step of the small model as a share of the large one's.",
        group="Engine",
        topic="batching-and-latency",
        advanced=True,
    )
    engine: str = ask_engine()
    network_rate: float = ask_network_rate()
    domain: int | None = ask_domain()


def compute(asked: Latency) -> Estimate:
    """Time prompt and answer, and say what bounds each."""
    model, gpu = find_model(asked.model), find_accelerator(asked.gpu)
    check(model, gpu, asked.weights, asked.tensor_parallel)
    fabric = fabric_of(gpu, asked.network_rate, domain=asked.domain or 0)
    serving = Serving(
        weights=asked.weights,
        cache=asked.cache,
        tensor=asked.tensor_parallel,
        expert_tensor=asked.tensor_parallel,
        software=asked.engine,
    )
    placed = place(model, gpu, fabric, serving)
    return words.answer(asked, placed, timed(asked, placed))


def check(model: Architecture, gpu: Accelerator, weights: str, tensor: int) -> None:
    """Refuse a card whose rates are unknown, a format or a split that cannot be."""
    if gpu.peak("bf16") is None or gpu.memory_bandwidth is None or not gpu.memory:
        message = f"Rates and memory of the {gpu.name} are not all known."
        raise refuse("gpu", gpu.id, message)
    if FORMATS[weights].math == "fp8" and gpu.lacks("fp8"):
        message = f"The {gpu.name} cannot compute in {FORMATS[weights].label}."
        raise refuse("weights", weights, message)
    problem = tensor_parallel_problem(model, tensor)
    if problem:
        raise refuse("tensor_parallel", tensor, problem)


def timed(asked: Latency, placed: Placed) -> Timed:
    """Everything the answer says, in seconds."""
    new = max(1.0, asked.prompt * (1 - asked.cached_share))
    context = asked.prompt + asked.answer / 2
    decode = decode_time(placed, asked.batch, context)
    prefill = prefill_time(placed, new)
    chunks, first = 1, placed.engine.front + prefill.total
    if asked.chunk and asked.chunk < new:
        chunks, first = _in_chunks(asked, placed, asked.chunk, new)
    tokens = tokens_per_step(asked.acceptance, asked.draft_tokens)
    verified = _verified(asked, placed, context, decode.total)
    per_token = verified / tokens
    turns = flips = None
    if decode.weights > decode.compute:
        turns = turning_point(placed, context, asked.batch, decode)
        flips = flipping_point(placed, context, asked.batch, turns)
    each = sequence_bytes(placed, asked.prompt + asked.answer)
    if flips is not None and flips * each > room(placed):
        flips = None
    return Timed(
        prefill=prefill,
        decode=decode,
        first=first,
        chunks=chunks,
        per_token=per_token,
        accepted=tokens,
        turns=turns,
        flips=flips,
        fits=asked.batch * each <= room(placed),
    )


def _in_chunks(
    asked: Latency, placed: Placed, chunk: int, new: float
) -> tuple[int, float]:
    """Steps a prompt takes, and the time until its first token [s]."""
    chunks = math.ceil(new / chunk)
    context = asked.prompt + asked.answer / 2
    others = asked.batch - 1.0
    total, done = 0.0, asked.prompt - new
    for _ in range(min(chunks, _MOST_CHUNKS)):
        size = min(chunk, asked.prompt - done)
        done += size
        batch = Batch(size, done, others, context, others + 1)
        total += step_time(placed, batch).total
    scale = chunks / min(chunks, _MOST_CHUNKS)
    return chunks, placed.engine.front + total * scale


# Chunks that are timed one by one; more are taken in proportion.
_MOST_CHUNKS = 64


def _verified(asked: Latency, placed: Placed, context: float, alone: float) -> float:
    """One step of the large model with what the small one adds [s]."""
    if not asked.draft_tokens:
        return alone
    rows = asked.batch * (asked.draft_tokens + 1.0)
    wide = decode_time(placed, rows, context / (asked.draft_tokens + 1))
    return max(alone, wide.total) + asked.draft_tokens * asked.draft_cost * alone


def turning_point(
    placed: Placed, context: float, start: int, step: InferenceStep
) -> int | None:
    """The batch from which computing takes longer than reading the weights.

    For a dense model at once, since computing grows with the tiles of rows; with
    experts by doubling from `start`, whose step is `step`. None when no batch up
    to 65,536 does it.
    """
    if not placed.model.is_routed:
        tiles = math.ceil(start / TILE) * step.weights / step.compute
        turn = int(TILE) * math.floor(tiles) + 1
        return turn if turn <= _MOST_ROWS else None
    batch = start
    while step.compute <= step.weights and batch <= _MOST_ROWS:
        batch *= 2
        step = decode_time(placed, batch, context)
    return batch if batch <= _MOST_ROWS else None


def flipping_point(
    placed: Placed, context: float, start: int, turn: int | None
) -> int | None:
    """The fewest sequences with which reading is no longer the longest part.

    None where the cache, which grows with every sequence, is always longer.
    """
    below, batch = start, turn or _MOST_ROWS + 1
    while batch <= _MOST_ROWS:
        step = decode_time(placed, batch, context)
        if bound_of(step) != "memory":
            return _nearest(placed, context, below, batch)
        if step.attention >= step.compute:
            return None
        below, batch = batch, 2 * batch
    return None


def _nearest(placed: Placed, context: float, below: int, above: int) -> int:
    """The first batch above `below` that memory does not bound, as `above` is."""
    while above - below > 1:
        middle = (below + above) // 2
        if bound_of(decode_time(placed, middle, context)) == "memory":
            below = middle
        else:
            above = middle
    return above


_MOST_ROWS = 65536


ENTRY = Entry(
    name="latency",
    title="Latency",
    summary="Time to the first token and per token, and what each is bound by.",
    group="Serving",
    inputs=Latency,
    compute=compute,
    outputs=words.OUTPUTS,
    topic="batching-and-latency",
)
