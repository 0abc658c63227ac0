"""The estimate `kv-cache`: what the cache of a model takes, per token and in all."""

import dataclasses
import functools

from app.estimator.estimate import (
    Chart,
    Estimate,
    Figure,
    Line,
    Segment,
    StackedBar,
    Step,
    Table,
    Verdict,
)
from app.estimator.inputs import ask
from app.estimator.memory.cache import (
    elements_per_sequence,
    elements_per_token,
    whole_blocks,
)
from app.estimator.memory.sharding import tensor_parallel_problem
from app.estimator.models.architecture import Architecture, find_model
from app.estimator.models.formats import CACHE_BITS
from app.estimator.registry import Entry, Output
from app.estimator.shared_inputs import (
    ask_cache,
    ask_context,
    ask_model,
    ask_tensor_parallel,
    refuse,
)
from app.estimator.units import format_number, format_value


@dataclasses.dataclass(frozen=True, slots=True)
class KvCache:
    """What the cache is asked for."""

    model: str = ask_model()
    cache: str = ask_cache()
    context: int = ask_context()
    sequences: int = ask(
        1,
        "Sequences",
        kind="count",
        unit="sequence",
        minimum=1,
        maximum=1_000_000,
        help="Sequences that are in the cache at the same time.",
        group="Load",
        topic="batching-and-latency",
    )
    tensor_parallel: int = ask_tensor_parallel()
    block: int = ask(
        1,
        "Block",
        kind="count",
        unit="token",
        minimum=1,
        maximum=4096,
        help="Tokens of one block of a paged cache; 1 counts exact tokens.",
        term="paged-attention",
        group="Engine",
        topic="inference-memory",
        advanced=True,
    )


def compute(asked: KvCache) -> Estimate:
    """Bytes of the cache per token, per sequence, in all and on one GPU."""
    model = find_model(asked.model)
    gpus = asked.tensor_parallel
    problem = tensor_parallel_problem(model, gpus)
    if problem:
        raise refuse("tensor_parallel", gpus, problem)
    width = CACHE_BITS[asked.cache] / 8
    tokens = whole_blocks(asked.context, asked.block)
    state = state_bytes(model)
    per_token = elements_per_token(model) * width
    per_sequence = elements_per_sequence(model, tokens) * width + state
    on_one = elements_per_sequence(model, tokens, gpus) * width + state / gpus
    per_gpu = on_one * asked.sequences
    found = _Found(
        per_token, per_sequence, per_sequence * asked.sequences, per_gpu, state
    )
    return Estimate(
        name="kv-cache",
        verdict=_verdict(model, asked, found),
        figures=_figures(found),
        steps=_steps(model, asked, found, tokens),
        pictures=(_picture(model, asked, found, width),),
        tables=(_table(model, asked, width),),
        notes=_notes(model, asked, found),
    )


@functools.lru_cache(maxsize=2048)
def state_bytes(model: Architecture) -> float:
    """Recurrent state of one sequence: FP32 state and 16-bit convolutions [B]."""
    return 4 * model.state_elements + 2 * model.convolution_elements


@dataclasses.dataclass(frozen=True, slots=True)
class _Found:
    per_token: float
    per_sequence: float
    total: float
    per_gpu: float
    state: float


def _figures(found: _Found) -> tuple[Figure, ...]:
    return (
        Figure("per_token", "Per token", found.per_token, "B"),
        Figure("per_sequence", "Per sequence", found.per_sequence, "B"),
        Figure("total", "All sequences", found.total, "B", primary=True),
        Figure("per_gpu", "On one GPU", found.per_gpu, "B"),
    )


def _verdict(model: Architecture, asked: KvCache, found: _Found) -> Verdict:
    tokens = format_number(asked.context)
    count = format_value(asked.sequences, "sequence")
    return Verdict(
        "info",
        f"{format_value(found.total, 'B')}.",
        f"{model.name} keeps {format_value(found.per_token, 'B')} for each token; "
        f"{count} of {tokens} tokens.",
    )


def _steps(
    model: Architecture, asked: KvCache, found: _Found, tokens: int
) -> tuple[Step, ...]:
    width = f"{format_number(CACHE_BITS[asked.cache] / 8)} B"
    each = format_value(found.per_token, "B")
    one = format_value(found.per_sequence, "B")
    total = format_value(found.total, "B")
    windowed = bool(model.window)
    sequence = _step(
        "One sequence",
        "Σ min(context, window) × bytes" if windowed else "bytes per token × context",
        f"{each} × {format_number(tokens)}",
        found.per_sequence,
        "per_sequence",
    )
    all_of_them = _step(
        "All sequences",
        "sequence × sequences",
        f"{one} × {format_number(asked.sequences)}",
        found.total,
        "total",
    )
    share = _step(
        "On one GPU",
        "total ÷ t, at least one KV head on each",
        f"{total} over {asked.tensor_parallel}",
        found.per_gpu,
        "per_gpu",
    )
    return (
        _per_token_step(model, width, found.per_token),
        sequence,
        all_of_them,
        share,
    )


# The figure of a line of the working: its source and the page that teaches it.
_TAUGHT = {
    "per_sequence": ("mistral-7b", "inference-memory"),
    "total": ("paged-attention", "batching-and-latency"),
    "per_gpu": ("gqa-2023", "parallelism"),
}


def _step(
    label: str, formula: str, substituted: str, value: float, figure: str
) -> Step:
    source, topic = _TAUGHT[figure]
    return Step(label, formula, substituted, value, "B", source, topic, figure)


def _per_token_step(model: Architecture, width: str, value: float) -> Step:
    mixer = next((a.mixer for a, _ in model.runs if a.mixer.cache), None)
    caching = sum(n for a, n in model.runs if a.mixer.cache)
    if mixer is None:
        formula, numbers, source = "no cache that grows", "state only", "mamba"
    elif mixer.kind == "latent":
        formula, source = "L × (r_kv + d_r) × W", "deepseek-v2"
        numbers = f"{caching} × ({mixer.latent} + {mixer.rope_dim}) × {width}"
    else:
        formula, source = "2 × L × g × d × W", "shazeer-2019"
        numbers = f"2 × {caching} × {mixer.kv_heads} × {mixer.head_dim} × {width}"
    return Step(
        "One token",
        formula,
        numbers,
        value,
        "B",
        source,
        "inference-memory",
        "per_token",
    )


def _picture(
    model: Architecture, asked: KvCache, found: _Found, width: float
) -> StackedBar | Chart:
    if asked.tensor_parallel > 1 or model.cache_elements == 0:
        segment = Segment("kv", "KV cache", found.per_gpu)
        return StackedBar("Cache on one GPU", (segment,), None, "")

    def size(context: int) -> float:
        one = elements_per_sequence(model, context) * width + found.state
        return one * asked.sequences

    ends = (0, asked.context // 4, asked.context // 2, asked.context, 2 * asked.context)
    points = tuple((float(context), size(context)) for context in ends)
    now = ((float(asked.context), found.total),)
    lines = (Line("KV cache", points), Line("Asked for", now, "mark"))
    return Chart("Cache by context", "Context", "KV cache", "token", "B", lines)


def _table(model: Architecture, asked: KvCache, width: float) -> Table:
    rows = tuple(
        (
            format_number(context),
            (elements_per_sequence(model, context) * width, "B"),
            (elements_per_sequence(model, context) * width * asked.sequences, "B"),
        )
        for context in (1024, 8192, 32768, 131072)
    )
    return Table("By context", ("Context", "One sequence", "All sequences"), rows)


def _notes(model: Architecture, asked: KvCache, found: _Found) -> tuple[str, ...]:
    notes = []
    if model.window:
        notes.append(
            f"Sliding layers keep at most {format_number(model.window)} tokens."
        )
    if found.state:
        notes.append(
            f"Recurrent layers keep {format_value(found.state, 'B')} per sequence, "
            "whatever its length."
        )
    heads = {a.mixer.kv_heads for a, _ in model.runs if a.mixer.cache}
    if heads and asked.tensor_parallel > min(heads):
        notes.append(
            f"There are fewer KV heads than GPUs, so each of the {min(heads)} is "
            "kept more than once."
        )
    if model.max_context and asked.context > model.max_context:
        notes.append(
            f"The model is configured for {format_number(model.max_context)} tokens."
        )
    return tuple(notes)


ENTRY = Entry(
    name="kv-cache",
    title="KV cache",
    summary="What cached keys and values take, per token, sequence and GPU.",
    group="Memory",
    inputs=KvCache,
    compute=compute,
    outputs=(
        Output("per_token", "Per token", "B"),
        Output("per_sequence", "Per sequence", "B"),
        Output("total", "All sequences", "B"),
        Output("per_gpu", "On one GPU", "B"),
    ),
    topic="inference-memory",
)
