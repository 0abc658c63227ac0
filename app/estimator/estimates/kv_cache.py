"""The estimate `kv-cache`: inputs, result, verdict, charts, and formula steps."""

import dataclasses

from app.estimator import common_inputs
from app.estimator.common_inputs import ENGINE, LOAD, reject_impossible_tensor_parallel
from app.estimator.formula_steps import (
    StepBuilder,
    format_term,
    kv_cache_publication_id,
    multiply_or_divide_formula,
    sequence_kv_cache_per_gpu_formula,
)
from app.estimator.memory.kv_cache import (
    cache_elements_per_token_ignoring_windows,
    kv_cache_elements_per_sequence,
    recurrent_state_bytes_per_sequence,
    round_up_to_blocks,
)
from app.estimator.models.architecture import Architecture
from app.estimator.models.lookup import find_model
from app.estimator.models.weight_formats import CACHE_BITS
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    BarSegment,
    Chart,
    ChartLine,
    Estimate,
    FormulaStep,
    OutputSpec,
    ResultTable,
    StackedBar,
    Verdict,
    read_figures,
)
from app.estimator.units import format_count, format_number, format_value


@dataclasses.dataclass(frozen=True, slots=True)
class KvCacheInputs:
    model: str = common_inputs.model_input()
    cache: str = common_inputs.cache_input()
    context: int = common_inputs.context_input()
    sequences: int = LOAD.declare_input_field(
        1,
        "Sequences",
        unit="sequence",
        limits=(1, 1_000_000),
        help="Sequences that are in the cache at the same time.",
    )
    tensor_parallel: int = common_inputs.tensor_parallel_input()
    state: str = LOAD.declare_advanced_input_field(
        "fp32",
        "Recurrent state",
        choices=(("fp32", "FP32"), ("bf16", "BF16")),
        help="Format of the state that recurrent layers keep; their convolutions are in 16 bit.",
        topic="number-formats",
    )
    block: int = ENGINE.declare_advanced_input_field(
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

    A sequence has keys and values, and the `state` of recurrent layers, of which convolutions are
    a part. `context_tokens_in_whole_blocks` are in whole blocks.
    """

    context_tokens_in_whole_blocks: int
    per_token: float
    token_per_gpu: float
    keys_and_values_per_sequence: float
    state: float
    sequence_state_without_convolutions: float
    total: float
    per_gpu: float

    @property
    def per_sequence(self) -> float:
        """Return keys, values and state of one sequence [B]."""
        return self.keys_and_values_per_sequence + self.state


def compute_kv_cache(model: Architecture, inputs: KvCacheInputs) -> KvCacheResult:
    width, gpus = CACHE_BITS[inputs.cache] / 8, inputs.tensor_parallel
    tokens = round_up_to_blocks(inputs.context, inputs.block)
    state_element_bytes = CACHE_BITS[inputs.state] / 8
    state = recurrent_state_bytes_per_sequence(model, state_element_bytes)
    attention = kv_cache_elements_per_sequence(model, tokens, 1, width) * width
    sequence_per_gpu = (
        kv_cache_elements_per_sequence(model, tokens, gpus, width) * width + state / gpus
    )
    return KvCacheResult(
        context_tokens_in_whole_blocks=tokens,
        per_token=cache_elements_per_token_ignoring_windows(model, 1, width) * width,
        token_per_gpu=cache_elements_per_token_ignoring_windows(model, gpus, width) * width,
        keys_and_values_per_sequence=attention,
        state=state,
        sequence_state_without_convolutions=state_element_bytes * model.state_elements,
        total=(attention + state) * inputs.sequences,
        per_gpu=sequence_per_gpu * inputs.sequences,
    )


OUTPUTS: tuple[OutputSpec[KvCacheResult], ...] = (
    OutputSpec("per_token", "Per token", "B", "less"),
    OutputSpec("per_sequence", "Per sequence", "B", "less"),
    OutputSpec("total", "All sequences", "B", "less", primary=True),
    OutputSpec("per_gpu", "On one GPU", "B", "less"),
    OutputSpec("token_per_gpu", "Per token on one GPU", "B", "less"),
    OutputSpec(
        "attention",
        "Keys and values of a sequence",
        "B",
        "less",
        lambda r: r.keys_and_values_per_sequence,
    ),
    OutputSpec("state", "State of a sequence", "B", "less"),
    OutputSpec(
        "recurrent",
        "State without convolutions",
        "B",
        "less",
        lambda r: r.sequence_state_without_convolutions,
    ),
)
_STEPS = StepBuilder(OUTPUTS, "inference-memory")


def build_verdict(model: Architecture, inputs: KvCacheInputs, result: KvCacheResult) -> Verdict:
    tokens = format_count(inputs.context, "token")
    count = format_value(inputs.sequences, "sequence")
    cache_text = f"{_format_size_and_exact_kib(result.per_token)} for each token"
    if not result.per_token:
        cache_text = (
            f"{_format_size_and_exact_kib(result.state)} for each sequence, whatever its length"
        )
    text = f"{model.name} keeps {cache_text}; {count} of {tokens}."
    if inputs.tensor_parallel > 1:
        each = format_value(result.per_gpu, "B")
        text += f" Each of the {inputs.tensor_parallel} GPUs holds {each}."
    return Verdict("info", f"{format_value(result.total, 'B')}.", text)


def _format_size_and_exact_kib(size: float) -> str:
    """Format a size in decimal units, and in KiB if it is a whole number of them.

    >>> _format_size_and_exact_kib(327680.0).replace("\u00a0", " ")
    '327.7 kB (320 KiB)'
    """
    text = format_value(size, "B")
    if size and size % 1024 == 0:
        text += f" ({format_number(size / 1024)}\u00a0KiB)"
    return text


def build_steps(
    model: Architecture, inputs: KvCacheInputs, result: KvCacheResult
) -> tuple[FormulaStep, ...]:
    bytes_each = CACHE_BITS[inputs.cache] / 8
    formula = "bytes per token × tokens kept" + ", by window" * bool(model.sliding_window)
    numbers = sequence_kv_cache_per_gpu_formula(
        model, result.context_tokens_in_whole_blocks, bytes_each, result.state
    )
    sequence = _STEPS.build_step(
        "per_sequence",
        formula + " + state" * bool(result.state),
        numbers,
        result.per_sequence,
        kv_cache_publication_id(model, "shazeer-2019"),
        label="One sequence",
    )
    # Starts with one token: a page shows this line alone.
    all_sequences = _STEPS.build_step(
        "total",
        f"({formula} + state) × sequences" if result.state else f"{formula} × sequences",
        multiply_or_divide_formula(numbers, inputs.sequences),
        result.total,
        "paged-attention",
        topic="batching-and-latency",
    )
    per_gpu = _STEPS.build_step(
        "per_gpu",
        "bytes of one sequence ÷ GPUs that share the KV heads × sequences",
        multiply_or_divide_formula(
            sequence_kv_cache_per_gpu_formula(
                model,
                result.context_tokens_in_whole_blocks,
                bytes_each,
                result.state,
                inputs.tensor_parallel,
            ),
            inputs.sequences,
        ),
        result.per_gpu,
        "gqa-2023" if model.sliding_window else kv_cache_publication_id(model, "gqa-2023"),
        topic="parallelism",
    )
    return (
        _per_token_step(model, inputs.cache, result.per_token),
        sequence,
        all_sequences,
        per_gpu,
    )


def _per_token_step(model: Architecture, cache_format: str, bytes_per_token: float) -> FormulaStep:
    width = f"{format_term(CACHE_BITS[cache_format] / 8)} B"
    mixer = next((a.mixer for a, _ in model.layer_counts if a.mixer.cache_elements_per_token), None)
    layers_by_size: dict[int, int] = {}
    for layer, number in model.layer_counts:
        if layer.mixer.cache_elements_per_token:
            size = layer.mixer.cache_elements_per_token
            layers_by_size[size] = layers_by_size.get(size, 0) + number
    layers, source = sum(layers_by_size.values()), "shazeer-2019"
    if mixer is None:
        formula, numbers, source = "no cache that grows", "0 B", "mamba"
    elif mixer.kind == "latent" and len(layers_by_size) == 1:
        formula, source = "layers × (latent + rotary) × bytes per value", "deepseek-v2"
        numbers = f"{layers} × ({mixer.latent_width} + {mixer.rope_dim}) × {width}"
    elif layers_by_size == {2 * mixer.kv_heads * mixer.head_dim: layers}:
        formula = "2 × layers × KV heads × head size × bytes per value"
        numbers = f"2 × {layers} × {mixer.kv_heads} × {mixer.head_dim} × {width}"
    else:
        formula = "layers of each kind × values of a token × bytes per value"
        parts = (f"{n} × {format_term(size)}" for size, n in layers_by_size.items())
        numbers = f"({' + '.join(parts)}) × {width}"
    indexer_bytes = bytes_per_token - model.cache_elements * CACHE_BITS[cache_format] / 8
    if indexer_bytes > 1e-6 * bytes_per_token:
        formula += f" + keys of the indexer in {_name_format_of_indexer_keys(model)}"
        numbers += f" + {format_term(indexer_bytes, 'B')}"
    return _STEPS.build_step(
        "per_token", formula, numbers, bytes_per_token, source, label="One token"
    )


def _name_format_of_indexer_keys(model: Architecture) -> str:
    mixers = (layer.mixer for layer, _ in model.layer_counts)
    sizes = {m.indexer_bytes_per_cache_element for m in mixers if m.indexer_heads}
    if sizes == {2.0}:
        return "BF16"
    return "FP4, with scales" if max(sizes, default=1.0) < 1 else "FP8, with scales"


def build_cache_chart_or_bar(
    model: Architecture, inputs: KvCacheInputs, result: KvCacheResult, element_bytes: float
) -> StackedBar | Chart:
    """Return the cache over the context length; a bar if GPUs share it."""
    if inputs.tensor_parallel > 1 or model.cache_elements == 0:
        segment = BarSegment("kv", "KV cache", result.per_gpu)
        return StackedBar("Cache on one GPU", (segment,), None, "")

    def size(context: int) -> float:
        keys_and_values = (
            kv_cache_elements_per_sequence(model, context, 1, element_bytes) * element_bytes
        )
        return (keys_and_values + result.state) * inputs.sequences

    contexts = (0, inputs.context // 4, inputs.context // 2, inputs.context, 2 * inputs.context)
    points = tuple((float(context), size(context)) for context in contexts)
    requested_point = ((float(inputs.context), result.total),)
    lines = (ChartLine("KV cache", points), ChartLine("Asked for", requested_point, "mark"))
    return Chart("Cache by context", "Context", "KV cache", "token", "B", lines)


def build_context_length_table(
    model: Architecture, inputs: KvCacheInputs, element_bytes: float
) -> ResultTable:
    rows = []
    for context in (1024, 8192, 32768, 131072):
        sequence = kv_cache_elements_per_sequence(model, context, 1, element_bytes) * element_bytes
        rows.append((format_number(context), (sequence, "B"), (sequence * inputs.sequences, "B")))
    return ResultTable("By context", ("Context", "One sequence", "All sequences"), tuple(rows))


def build_notes(
    model: Architecture, inputs: KvCacheInputs, result: KvCacheResult
) -> tuple[str, ...]:
    notes = []
    if model.sliding_window:
        notes.append(f"Sliding layers keep at most {format_number(model.sliding_window)} tokens.")
    if result.state:
        notes.append(
            f"Recurrent layers keep {format_value(result.state, 'B')} per sequence, "
            "whatever its length."
        )
    heads = {a.mixer.kv_heads for a, _ in model.layer_counts if a.mixer.cache_elements_per_token}
    if heads and inputs.tensor_parallel > min(heads):
        notes.append(
            f"There are fewer KV heads than GPUs, so each of the {min(heads)} is "
            "kept more than once."
        )
    if model.max_context and inputs.context > model.max_context:
        notes.append(f"The model is configured for {format_number(model.max_context)} tokens.")
    return tuple(notes)


def estimate(inputs: KvCacheInputs) -> Estimate:
    model = find_model(inputs.model)
    reject_impossible_tensor_parallel(model, inputs.tensor_parallel)
    result, width = compute_kv_cache(model, inputs), CACHE_BITS[inputs.cache] / 8
    return Estimate(
        name="kv-cache",
        verdict=build_verdict(model, inputs, result),
        figures=read_figures(OUTPUTS, result),
        steps=build_steps(model, inputs, result),
        pictures=(build_cache_chart_or_bar(model, inputs, result, width),),
        tables=(build_context_length_table(model, inputs, width),),
        notes=build_notes(model, inputs, result),
    )


ENTRY = EstimateSpec(
    name="kv-cache",
    title="KV cache",
    summary="What cached keys and values take, per token, sequence and GPU.",
    group="Memory",
    inputs_type=KvCacheInputs,
    compute_estimate=estimate,
    outputs=OUTPUTS,
    most_important_outputs=("total", "per_token", "per_gpu"),
    main_inputs=("model", "context", "sequences"),
    topic="inference-memory",
)
