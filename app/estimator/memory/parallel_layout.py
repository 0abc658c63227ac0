"""How training and serving divide a model over GPUs, and which degrees are legal."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from app.estimator.models.architecture import Architecture, fill_in_counts, group_equal_layers
from app.estimator.models.layers import Layer, LayerCount, TokenMixer, WeightMatrix
from app.estimator.models.weight_formats import (
    count_redundant_experts,
    find_weight_format,
    quantized_share,
)
from app.estimator.units import format_count, format_number


@dataclasses.dataclass(frozen=True, slots=True)
class ParallelLayout:
    """Degrees of parallelism on `gpus` GPUs.

    `zero` is the ZeRO stage (3 is FSDP); `sequence_parallel` is whether norms are divided too.
    """

    gpus: int = 1
    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    expert: int = 1
    chunks_per_stage: int = 1
    zero: int = 1
    sequence_parallel: bool = True

    @property
    def data_parallel_replicas(self) -> int:
        """Return the data-parallel replicas: n / (t·p·c)."""
        return self.gpus // (self.tensor * self.pipeline * self.context)

    @property
    def zero_shards(self) -> int:
        """Return the GPUs over which ZeRO shards: data and context parallel ones."""
        return self.data_parallel_replicas * self.context

    @property
    def gpus_sharing_experts(self) -> int:
        """Return the GPUs over which the experts of a layer are divided.

        Expert parallelism divides them whole; without it tensor parallelism
        divides each of them.
        """
        return self.expert if self.expert > 1 else self.tensor

    @property
    def expert_zero_shards(self) -> int:
        """Return the GPUs over which ZeRO shards the states of one expert: n / (p·e)."""
        return max(1, self.gpus // (self.pipeline * self.gpus_sharing_experts))


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class PipelineStage:
    index: int
    layer_counts: tuple[LayerCount, ...]
    layer_total: int
    is_first: bool
    is_last: bool


@functools.lru_cache(maxsize=4096)
def list_distinct_pipeline_stages(
    model: Architecture, pipeline: int, chunks_per_stage: int = 1
) -> tuple[PipelineStage, ...]:
    """Return the pipeline stages of `model`, one for each different composition.

    Equal stages are returned once, at their lowest index, because earlier stages store
    more micro-batches. Uneven layers go to the middle stages.
    """
    bounds = _layer_bounds_of_chunks(model.layers, pipeline * chunks_per_stage)
    stages: dict[tuple[object, ...], PipelineStage] = {}
    for index in range(pipeline):
        layers: list[Layer] = []
        for chunk in range(index, pipeline * chunks_per_stage, pipeline):
            layers += model.decoder_layers[bounds[chunk] : bounds[chunk + 1]]
        first, last = index == 0, index == pipeline - 1
        layer_counts = group_equal_layers(layers)
        stage = PipelineStage(index, layer_counts, len(layers), first, last)
        stages.setdefault((layer_counts, first, last), stage)
    return tuple(stages.values())


def _layer_bounds_of_chunks(layers: int, chunks: int) -> list[int]:
    """Return where each chunk of layers starts and ends; the first and last get fewer layers."""
    base, more = divmod(layers, chunks)
    start = (chunks - more) // 2
    sizes = (base + (start <= i < start + more) for i in range(chunks))
    return [0, *itertools.accumulate(sizes)]


class ServingStage(NamedTuple):
    """A pipeline stage as a model of its own, and how many stages are equal to it."""

    stage_model: Architecture
    equal_stages: int


def split_into_serving_stages(model: Architecture, stages: int) -> tuple[ServingStage, ...]:
    """Return the pipeline stages of an engine; equal ones once.

    Layers that are left over go to the stages before the last. The first stage has the
    input table and the vision tower, the last one the output table, even if both are the
    same. From get_pp_indices in vLLM, vllm/distributed/utils.py.

    >>> from app.estimator.models.lookup import find_model
    >>> [(s.layers, n) for s, n in split_into_serving_stages(find_model("deepseek-v3"), 4)]
    [(15, 1), (15, 1), (16, 1), (15, 1)]
    """
    if stages == 1:
        return (ServingStage(model, 1),)
    base, more = divmod(model.layers, stages)
    sizes = [base + (stages - 1 - more <= i < stages - 1) for i in range(stages)]
    start, found = 0, dict[tuple[object, ...], ServingStage]()
    for index, size in enumerate(sizes):
        layers, start = model.decoder_layers[start : start + size], start + size
        first, last = index == 0, index == stages - 1
        key = (layers, first, last)
        stage = found.get(key) or ServingStage(_stage_as_model(model, *key), 0)
        found[key] = ServingStage(stage.stage_model, stage.equal_stages + 1)
    return tuple(found.values())


@functools.lru_cache(maxsize=1024)
def build_model_of_gpu_layers(
    model: Architecture, engine: str, gpu_layers: int | None = None
) -> Architecture:
    """Return what an engine keeps on GPUs, as a model of its own: all but in llama.cpp.

    With `-ngl gpu_layers`, the output layer counts as the first of them, then the last layers of
    the model; None, or more than there are: all. The input table always stays in host memory; if
    it is the output table as well, the GPUs have a copy. From llama_model::load_tensors in
    llama.cpp, src/llama-model.cpp.

    >>> from app.estimator.models.lookup import find_model
    >>> build_model_of_gpu_layers(find_model("llama-3-8b"), "llama.cpp", 20).layers
    19
    """
    if engine != "llama.cpp":
        return model
    on_host = 0 if gpu_layers is None else max(0, model.layers + 1 - gpu_layers)
    stage = _stage_as_model(model, model.decoder_layers[on_host:], False, True)
    return fill_in_counts(dataclasses.replace(stage, encoder_layers=model.encoder_layers))


def build_model_of_host_layers(model: Architecture, gpu_layers: int | None) -> Architecture | None:
    """Return the layers that llama.cpp keeps in host memory, as a model without tables; or None."""
    if gpu_layers is None or gpu_layers > model.layers:
        return None
    on_host = model.layers + 1 - gpu_layers
    return _stage_as_model(model, model.decoder_layers[:on_host], False, False)


def _stage_as_model(
    model: Architecture, layers: tuple[Layer, ...], is_first: bool, is_last: bool
) -> Architecture:
    tables = model.per_layer_embedding_parameters
    stage = dataclasses.replace(
        model,
        decoder_layers=layers,
        tied=True,
        vocabulary=model.vocabulary if is_first or is_last else 0,
        encoder_layers=model.encoder_layers if is_first else (),
        learned_positions=model.learned_positions if is_first else 0,
        per_layer_embedding_parameters=tables if is_first else 0,
        ngram_table_parameters=model.ngram_table_parameters if is_first else 0,
        tower=model.tower if is_first else None,
        other=model.other if is_last else 0,
    )
    return fill_in_counts(stage)


def find_serving_pipeline_problem(model: Architecture, stages: int, engine: str = "") -> str | None:
    """Return why a model cannot be served in `stages` pipeline stages; None if it can.

    >>> from app.estimator.models.lookup import find_model
    >>> find_serving_pipeline_problem(find_model("llama-3-8b"), 64)
    'Llama 3 8B has 32 layers, too few for 64 stages.'
    """
    if stages > model.layers:
        return (
            f"{model.name} has {format_count(model.layers, 'layer')}, too few for {stages} stages."
        )
    if stages > 1 and engine in _WITHOUT_STAGES:
        return "Pipeline stages are those of vLLM, SGLang and TensorRT-LLM: use 1."
    return None


# Engines that deal out whole layers by themselves, or run on one group of GPUs.
_WITHOUT_STAGES = frozenset({"llama.cpp", "compiled"})


def micro_batches_in_flight(stage: int, layout: ParallelLayout, micro_batch_count: int) -> float:
    """Micro-batches whose activations a stage stores at once.

    min(m, p − i) for one forward, one backward; interleaving adds
    (p − 1 − 2i)/(p·v), at least nothing. From Narayanan (2021), Korthikanti (2022).

    >>> micro_batches_in_flight(0, ParallelLayout(pipeline=8, chunks_per_stage=3), 64)
    10.333333333333334
    """
    p, v = layout.pipeline, layout.chunks_per_stage
    if v == 1:
        return min(micro_batch_count, p - stage)
    chunks = (p - stage - 1) * 2 + (v - 1) * p + 1
    return min(micro_batch_count, chunks / v)


# Default tokens of a step, typical of published runs, and the fewest of them for a GPU: Llama 3
# 405B on 16,384 GPUs, table 4 of its paper. With fewer, pipelines idle and gradients wait.
_USUAL_TOKENS, _TOKENS_PER_GPU = 8e6, 1024


def default_batch_tokens(gpus: int, run_tokens: float = math.inf) -> float:
    """Return the default tokens of an optimizer step in a run on `run_tokens`.

    Eight million, as in pretraining, or 1,024 for each GPU if that is more; a thousandth of a
    shorter run: fine-tuning takes hundreds of steps at least.

    >>> default_batch_tokens(64, 1e12), default_batch_tokens(64, 100e6)
    (8000000.0, 100000.0)
    >>> default_batch_tokens(16384)
    16777216
    """
    return min(max(_USUAL_TOKENS, _TOKENS_PER_GPU * gpus), run_tokens / 1000)


def default_micro_batch_count(
    layout: ParallelLayout, sequence: int, micro_batch: int, run_tokens: float = math.inf
) -> int:
    """Return the default number of micro-batches per step of a run on `run_tokens`.

    The default tokens of a step together, and at least one for every pipeline stage.
    """
    each = sequence * micro_batch * layout.data_parallel_replicas
    return max(layout.pipeline, round(default_batch_tokens(layout.gpus, run_tokens) / each))


@dataclasses.dataclass(frozen=True, slots=True)
class ParametersPerGpu:
    """Parameters of one layer on one GPU: dense ones and routed experts."""

    dense_parameters: float
    expert_parameters: float


@functools.lru_cache(maxsize=8192)
def layer_parameters_per_gpu(
    layer: Layer, tensor: int, gpus_sharing_experts: int
) -> ParametersPerGpu:
    dense, experts = float(layer.vector_parameters - layer.mlp.routed_vector_parameters), 0.0
    for matrix in layer.matrices:
        if matrix.part == "experts":
            experts += matrix.parameters / gpus_sharing_experts
        elif matrix.tensor_parallel_split == "whole":
            dense += matrix.parameters
        elif matrix.tensor_parallel_split == "heads":
            dense += matrix.parameters / min(tensor, max(1, layer.mixer.kv_heads))
        else:
            dense += matrix.parameters / tensor
    return ParametersPerGpu(
        dense, experts + layer.mlp.routed_vector_parameters / gpus_sharing_experts
    )


def stage_parameters_per_gpu(
    model: Architecture, stage: PipelineStage, layout: ParallelLayout
) -> ParametersPerGpu:
    """Return the parameters of a whole stage on one GPU, with embedding tables.

    A tied output head on another stage than the input table is stored a second time.
    """
    dense = experts = 0.0
    for layer, number in stage.layer_counts:
        part = layer_parameters_per_gpu(layer, layout.tensor, layout.gpus_sharing_experts)
        dense += part.dense_parameters * number
        experts += part.expert_parameters * number
    table = model.vocabulary * model.hidden / layout.tensor
    if stage.is_first:
        dense += table + model.learned_positions * model.hidden
    if stage.is_last:
        twice = stage.is_first and model.tied
        dense += (0 if twice else table) + model.other
    return ParametersPerGpu(dense, experts)


@functools.lru_cache(maxsize=2048)
def find_tensor_parallel_problem(model: Architecture, gpus: int) -> str | None:
    """Return why `gpus` cannot share each layer of `model`; None if they can.

    Query heads must divide evenly; KV heads must divide evenly or be copied evenly.
    """
    if gpus == 1:
        return None
    for layer, _ in model.layer_counts:
        mixer = layer.mixer
        if mixer.heads and mixer.heads % gpus:
            return (
                f"{format_count(mixer.heads, 'attention head')} cannot be divided over {gpus} GPUs; "
                f"possible: {_describe_possible_gpu_counts(model)}."
            )
        kv = mixer.kv_heads
        if mixer.kind == "attention" and kv % gpus and gpus % kv:
            return (
                f"{format_count(kv, 'KV head')} cannot be divided over {gpus} GPUs; "
                f"possible: {_describe_possible_gpu_counts(model)}."
            )
    return None


def find_engine_split_problem(model: Architecture, gpus: int, engine: str) -> str | None:
    """Return why `gpus` cannot share a model in an engine; None if they can.

    llama.cpp gives each GPU whole layers, the others a part of each layer.

    >>> from app.estimator.models.lookup import find_model
    >>> find_engine_split_problem(find_model("llama-3-8b"), 3, "llama.cpp")
    >>> find_engine_split_problem(find_model("llama-3-8b"), 3, "vllm")
    '32 attention heads cannot be divided over 3 GPUs; possible: 1, 2, 4, 8, 16 or 32.'
    """
    if engine != "llama.cpp":
        return find_tensor_parallel_problem(model, gpus)
    if gpus > model.layers:
        return f"{model.name} has {format_count(model.layers, 'layer')}, too few for {gpus} GPUs."
    return None


MOST_GPUS_TRIED = 64


def list_default_gpu_counts_per_replica(
    model: Architecture,
    engine: str,
    max_gpus: int,
    is_loadable_and_holds_load: Callable[[int], bool],
) -> tuple[int, ...]:
    """Return the numbers of GPUs to share a model that are tried if none is given.

    The fewest that `is_loadable_and_holds_load` says the engine loads and that hold the load, and twice as many
    up to `max_gpus`; 1 if there are none up to `MOST_GPUS_TRIED`.
    """
    counts = [
        n
        for n in range(1, MOST_GPUS_TRIED + 1)
        if find_engine_split_problem(model, n, engine) is None
    ]
    fewest = next(filter(is_loadable_and_holds_load, counts), 1)
    doubled = (fewest * 2**step for step in range(1, 7))
    return fewest, *(
        n for n in doubled if n <= max_gpus and n in counts and is_loadable_and_holds_load(n)
    )


def find_quantization_block_problem(
    model: Architecture, weight_format: str, tensor: int, expert_tensor: int
) -> str | None:
    """Return why engines do not load blocks of weights divided so; None if they do.

    Each GPU's part of a matrix has to be whole blocks with one scale each: vLLM issue 17569,
    SGLang issue 3345. Heads wider than a block are loaded one by one: vLLM pull request 30836.
    Of several reasons, it is one that experts divided whole do not remove.

    >>> from app.estimator.models.lookup import find_model
    >>> qwen = find_model("Qwen/Qwen3-235B-A22B-FP8")
    >>> find_quantization_block_problem(qwen, "published", 8, 8)[:70]
    'The experts are 1,536 wide and quantized in blocks of 128: over 8 GPUs'
    >>> find_quantization_block_problem(qwen, "published", 8, 1) is None
    True
    """
    form = find_weight_format(model, weight_format)
    if not form.scale_block_width:
        return None
    problem = None
    for layer, _ in model.layer_counts:
        for matrix in layer.matrices:
            gpus = expert_tensor if matrix.part == "experts" else tensor
            width = (
                matrix.input_width
                if matrix.tensor_parallel_split == "rows"
                else matrix.output_width
            )
            if matrix.tensor_parallel_split == "heads":
                heads = max(1, layer.mixer.kv_heads)
                gpus = min(gpus, heads) if width // heads <= form.scale_block_width else 1
            divided = (
                gpus > 1
                and matrix.tensor_parallel_split != "whole"
                and quantized_share(form, matrix)
            )
            # Files in blocks keep the decays of linear attention, 0.1% of the weights, in 16 bit.
            if divided and matrix.name != "decay" and width % (gpus * form.scale_block_width):
                described = _describe_block_problem(matrix, width, form.scale_block_width, gpus)
                if matrix.part != "experts":
                    return described
                problem = problem or described
    return problem


# Qwen publishes them in BF16, and in FP8 in blocks of 128: vLLM issues 17569 and 25292 are of
# Qwen3-235B-A22B-FP8 over 8 GPUs and of Qwen3-30B-A3B-FP8 over 4.
_FAMILIES_WITH_FP8_BLOCKS = ("qwen3_moe",)


def describe_fp8_checkpoint_split_problem(
    model: Architecture, weight_format: str, tensor: int, expert_tensor: int
) -> str:
    """Return why the publisher's FP8 checkpoint of a model cannot be divided over so many GPUs.

    It is another checkpoint than the model's own, which is not quantized. Empty if engines
    load it, or if other weights than FP8 with one scale per tensor are counted.

    >>> from app.estimator.models.lookup import find_model
    >>> describe_fp8_checkpoint_split_problem(find_model("qwen3-235b-a22b"), "fp8", 8, 8)[:43]
    'This loads: one scale per matrix is counted'
    >>> describe_fp8_checkpoint_split_problem(find_model("qwen3-235b-a22b"), "fp8", 8, 1)
    ''
    """
    if model.family not in _FAMILIES_WITH_FP8_BLOCKS:
        return ""
    if find_weight_format(model, weight_format).id != "fp8":
        return ""
    problem = find_quantization_block_problem(model, "fp8-block", tensor, expert_tensor)
    if problem is None:
        return ""
    return (
        "This loads: one scale per matrix is counted, as --quantization fp8 of vLLM makes it of the "
        "BF16 weights. The published FP8 checkpoint has a scale per block and does not load so: "
        f"{problem[0].lower()}{problem[1:]}"
    )


_BLOCK_PARTS = {"experts": "The experts are", "shared": "The shared experts are"}


def _describe_block_problem(matrix: WeightMatrix, width: int, block: int, gpus: int) -> str:
    part = _BLOCK_PARTS.get(matrix.part, f"The {matrix.name} projections are")
    if matrix.part == "mlp":
        part = "The MLP is"
    remedy = "use fewer GPUs for a layer"
    if matrix.part == "experts":
        remedy = "divide them whole, by expert parallelism (--enable-expert-parallel in vLLM)"
    each = format_number(round(width / gpus, 1))
    return (
        f"{part} {format_number(width)} wide and quantized in blocks of {block}: over {gpus} "
        f"GPUs each has {each}, which is not whole blocks, and vLLM and SGLang refuse to load "
        f"that; {remedy}."
    )


# DeepEP asserts `num_experts % num_ranks == 0` (csrc/kernels/intranode.cu). Settings with which it
# is so, and which assert that they make it so: those of EPLBConfig in vLLM (config/parallel.py and
# fused_moe/layer.py), of ExpertLocationMetadata in SGLang (srt/eplb/expert_location.py), and of
# MoeLoadBalancerConfig in TensorRT-LLM (examples/wide_ep), whose slots are experts and copies. By
# default vLLM has one expert more on some GPUs instead (determine_expert_map in its layer.py).
_REDUNDANT_EXPERTS_SETTINGS = {
    "vllm": "--enable-eplb --eplb-config '{{\"num_redundant_experts\": {copies}}}' in vLLM",
    "sglang": "--ep-num-redundant-experts {copies} in SGLang",
    "trtllm": "num_slots: {slots} of moe_config.load_balancer in TensorRT-LLM",
}


def find_whole_experts_problem(model: Architecture, gpus: int, engine: str) -> str | None:
    """Return why an engine of speed cannot give each of `gpus` GPUs as many whole experts, if so.

    >>> from app.estimator.models.lookup import find_model
    >>> find_whole_experts_problem(find_model("deepseek-v3"), 48, "sglang")
    >>> find_whole_experts_problem(find_model("deepseek-v3"), 48, "vllm-2024")
    '256 experts are not divisible by 48, and this engine has no redundant experts.'
    """
    if gpus > max(1, model.experts):
        return f"{model.experts} experts cannot be divided over {gpus} GPUs."
    if count_redundant_experts(model, gpus) and engine not in _REDUNDANT_EXPERTS_SETTINGS:
        return (
            f"{model.experts} experts are not divisible by {gpus}, and this engine has no "
            "redundant experts."
        )
    return None


def redundant_experts_note(model: Architecture, gpus: int, engine: str) -> tuple[str, ...]:
    """Return a note on the copies of experts that `gpus` GPUs have, if whole experts need any.

    The setting is that of the engine, or of SGLang for one without.
    """
    copies = count_redundant_experts(model, gpus)
    if not copies:
        return ()
    slots = model.experts + copies
    setting = _REDUNDANT_EXPERTS_SETTINGS.get(engine, _REDUNDANT_EXPERTS_SETTINGS["sglang"])
    note = (
        f"{model.experts} experts are not divisible by {gpus}: {slots // gpus} on each of {gpus} "
        f"GPUs are counted, with {format_count(copies, 'redundant expert')} "
        f"({setting.format(copies=copies, slots=slots)})."
    )
    return (note,)


def filter_gpu_counts_by_quantization_blocks(
    model: Architecture, weight_format: str, counts: Iterable[int]
) -> tuple[int, ...]:
    """Return those of `counts` GPUs on which engines load the weights, if experts stay whole."""
    return tuple(
        n for n in counts if find_quantization_block_problem(model, weight_format, n, 1) is None
    )


def list_tensor_parallel_sizes(model: Architecture, max_gpus: int = 64) -> tuple[int, ...]:
    """Return the numbers of GPUs up to `max_gpus` that can share each layer."""
    return tuple(
        n for n in range(1, max_gpus + 1) if find_tensor_parallel_problem(model, n) is None
    )


def _describe_possible_gpu_counts(model: Architecture) -> str:
    counts = [
        n
        for n in range(2, 129)
        if all(_can_divide_mixer(layer.mixer, n) for layer, _ in model.layer_counts)
    ]
    text = [str(n) for n in (1, *counts)]
    return " or ".join((", ".join(text[:-1]), text[-1])) if counts else "1"


def _can_divide_mixer(mixer: TokenMixer, gpus: int) -> bool:
    kv = mixer.kv_heads if mixer.kind == "attention" else 0
    return mixer.heads % gpus == 0 and (not kv or kv % gpus == 0 or gpus % kv == 0)


class ReplicaPool(NamedTuple):
    """Replicas of one kind, spare ones included, and the GPUs of each."""

    replicas: int
    gpus_per_replica: int


def count_nodes(pools: Sequence[ReplicaPool], gpus_per_node: int) -> int:
    """Return the servers of replicas; one is split only if it is larger than a server.

    What is left of servers that larger replicas share has room for smaller ones.

    >>> count_nodes([ReplicaPool(1, 80), ReplicaPool(4, 8)], 72)
    2
    """
    nodes = sum(pool.replicas * (pool.gpus_per_replica // gpus_per_node) for pool in pools)
    parts = [(pool.gpus_per_replica % gpus_per_node, pool.replicas) for pool in pools]
    free: list[tuple[int, int]] = []  # GPUs that are free in each of so many servers.
    for gpus, copies in sorted((part for part in parts if part[0]), reverse=True):
        rest = max(0, copies - sum(room // gpus * servers for room, servers in free))
        each = gpus_per_node // gpus
        more = math.ceil(rest / each)
        last = rest - (more - 1) * each
        free = [(gpus_per_node % gpus, more - 1), (gpus_per_node - last * gpus, 1)]
        nodes += more
    return nodes


@dataclasses.dataclass(frozen=True, slots=True)
class ServingSetup:
    """A model on its GPUs: formats and splits.

    `tensor_parallel` GPUs share each layer; `attention_replicas` of attention process different requests in
    parallel; experts are split over `expert_parallel` GPUs, each expert over `gpus_per_expert`. The layers
    are divided among `pipeline_stages` stages, each of that many GPUs. With `dispatches_tokens` these are
    sent to the GPUs of their experts only, instead of to all. A head proposes `draft_tokens` per
    step. The engine answers at most `max_sequences` at once, for which it keeps memory (None: its default).
    """

    weight_format: str = "bf16"
    cache_format: str = "bf16"
    tensor_parallel: int = 1
    attention_replicas: int = 1
    expert_parallel: int = 1
    gpus_per_expert: int = 1
    engine_id: str = "vllm"
    polling_interval_steps: int = 1
    pipeline_stages: int = 1
    dispatches_tokens: bool = False
    stages_take_turns: bool = False
    draft_tokens: int = 0
    max_sequences: int | None = None

    @property
    def gpus(self) -> int:
        return self.gpus_per_stage * self.pipeline_stages

    @property
    def gpus_per_stage(self) -> int:
        return max(
            self.tensor_parallel * self.attention_replicas,
            self.expert_parallel * self.gpus_per_expert,
        )

    @property
    def concurrent_batches(self) -> int:
        """Return the number of batches that run at the same time, on different GPUs."""
        return (
            self.attention_replicas
            if self.stages_take_turns
            else self.attention_replicas * self.pipeline_stages
        )
