"""Inputs that several estimates share: model, GPU, formats, parallelism degrees.

Each function declares one input; keyword arguments override its defaults.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

from app.estimator.hardware.catalog import Accelerator
from app.estimator.inputs import InputGroup, InputProblem, InvalidInputsError
from app.estimator.memory.model_states import TrainingFramework
from app.estimator.memory.parallel_layout import find_tensor_parallel_problem
from app.estimator.memory.training_memory import StageMemory, plausible_bytes_range
from app.estimator.models.architecture import Architecture
from app.estimator.models.lookup import find_model
from app.estimator.models.weight_formats import (
    CACHE_CHOICES,
    GGUF_CHOICES,
    GGUF_FORMATS,
    PUBLISHED,
    PUBLISHED_CHOICES,
    PUBLISHED_OR_FP8,
    usual_gguf_format_id,
)
from app.estimator.serving.engine_speed import list_engine_choices
from app.estimator.training.flops import recomputed_flops_per_token
from app.estimator.training.training_plan import SOFTWARE, USUAL_SOFTWARE

MODEL = InputGroup("Model", "training-versus-inference")
HARDWARE = InputGroup("Hardware", "parallelism")
NETWORK = InputGroup("Network", "interconnects")
LAYOUT = InputGroup("Layout", "parallelism")
LOAD = InputGroup("Load", "batching-and-latency")
BATCH = InputGroup("Batch", "training-memory")
RECIPE = InputGroup("Recipe", "training-memory")
ENGINE = InputGroup("Engine", "batching-and-latency")
COST = InputGroup("Cost", "cluster-components")

LEAST_RECOMPUTE, USUAL_ZERO = "least", "usual"
NETWORKS = (("infiniband", "InfiniBand or RoCE"), ("efa", "AWS EFA"))
NUMBER_FORMATS = (("bf16", "BF16"), ("fp8", "FP8"), ("mxfp8", "MXFP8"), ("nvfp4", "NVFP4"))


model_input = partial(
    MODEL.declare_input_field,
    default="llama-3.1-70b",
    label="Model",
    kind="model",
    help="A model of the catalog, a name of the Hugging Face Hub, a size such as 70B, or a "
    "whole config.json.",
    term="parameter",
)
gpu_input = partial(
    HARDWARE.declare_input_field,
    default="h100-sxm5-80",
    label="GPU",
    kind="gpu",
    help="An accelerator of the catalog, such as H100, or the values of your own card: 24 GB "
    "or 24564 MiB, 936 GB/s, 71 TFLOPS, FP8 142 TFLOPS. Peaks are dense, and of BF16 without "
    "a format; cards are joined by PCIe 4 without NVLink.",
    topic="cluster-components",
)
# With a count: `8x H100` also sets the field of the count.
counted_gpu_input = partial(
    gpu_input,
    help="An accelerator of the catalog, such as H100 or 8x H100, or the values of your own "
    "card: 24 GB or 24564 MiB, 936 GB/s, 71 TFLOPS. Peaks are dense, and of BF16 without a "
    "format; cards are joined by PCIe 4 without NVLink.",
)
weights_input = partial(
    MODEL.declare_input_field,
    default=PUBLISHED,
    label="Weights",
    choices=PUBLISHED_CHOICES,
    help="As published: as the checkpoint is quantized, BF16 where it is not. "
    "Quantized formats leave embeddings, output head and norms in 16 bit.",
    term="quantisation",
    topic="number-formats",
)
# With the files of llama.cpp, where the engine is an input too.
engine_weights_input = partial(
    weights_input,
    choices=(*PUBLISHED_CHOICES, *GGUF_CHOICES),
    help="As published: as the checkpoint is quantized, BF16 where it is not; in llama.cpp its "
    "usual GGUF file. Quantized formats leave embeddings, output head and norms in 16 bit. GGUF "
    "is for llama.cpp.",
)
cache_input = partial(
    LOAD.declare_input_field,
    default=PUBLISHED,
    label="KV cache",
    choices=CACHE_CHOICES,
    help="Format of the cached keys and values. As published: FP8 where the checkpoint "
    "asks for it, BF16 otherwise; in llama.cpp F16.",
    term="kv-cache",
    topic="number-formats",
)
context_input = partial(
    LOAD.declare_input_field,
    default=8192,
    label="Context",
    unit="token",
    limits=(1, 100_000_000),
    help="Tokens of one sequence, prompt and answer together.",
    term="context-length",
    topic="inference-memory",
)
tokens_input = partial(LOAD.declare_input_field, unit="token", limits=(1, 100_000_000))
sequences_at_once_input = partial(
    LOAD.declare_input_field,
    default=16,
    label="Concurrent sequences",
    unit="sequence",
    limits=(1, 1_000_000),
    help="Sequences that are answered at the same time.",
    term="batch-size",
)
tensor_parallel_input = partial(
    HARDWARE.declare_input_field,
    default=1,
    label="Tensor parallel",
    unit="GPU",
    limits=(1, 1024),
    help="GPUs that share every layer.",
    term="tensor-parallelism",
)


def declare_gpus_per_replica_input(
    count_usual_gpus: Callable[[Any], int], help_text: str, **spec: Any
) -> Any:
    """Declare the GPUs that share a served model; the estimate fills in an empty field."""
    label = "GPUs that share the model"
    help_text = f"GPUs of one replica. Left empty: {help_text}"
    return tensor_parallel_input(
        default=None,
        kind="count",
        label=label,
        help=help_text,
        compute_usual_value=count_usual_gpus,
        **spec,
    )


gpus_input = partial(
    HARDWARE.declare_input_field,
    label="GPUs",
    unit="GPU",
    limits=(1, 1_000_000),
    help="All GPUs of the job.",
)


def declare_training_gpus_input(default_gpus: int, **spec: Any) -> Any:
    """Declare the GPUs of a training job: `default_gpus`, or one with adapters, if left empty.

    The estimate fills in the number (`fill_in_default_gpu_count`), so that it is never None afterwards.
    """
    help_text = f"All GPUs of the job; left empty: {default_gpus}, or 1 with adapters."
    default_of_method = partial(_default_gpus_for_method, default_gpus=default_gpus)
    return gpus_input(
        default=None, kind="count", help=help_text, compute_usual_value=default_of_method, **spec
    )


def _default_gpus_for_method(inputs: Any, default_gpus: int) -> int:
    return default_gpus if inputs.method == "full" else 1


def fill_in_zero_stage_and_recompute(
    inputs: Any,
    framework: TrainingFramework,
    compute_stage_memory: Callable[[Any], StageMemory],
    gpu_capacity: float,
) -> Any:
    """Return the inputs with the usual ZeRO stage and recomputation where they leave these open.

    Dividing weights is slower, as they are gathered for every micro-batch. So the stage is 1 if the
    job surely fits with no more recomputation than stage 3 needs, by the memory of the fullest
    stage and a capacity [B]. It is 1 as well in a pipeline and in Megatron, and 3 with adapters.
    """

    def surely_fits(changed: Any) -> bool:
        return (
            plausible_bytes_range(compute_stage_memory(changed), framework.id).high <= gpu_capacity
        )

    def fill_in_recompute(zero: str) -> Any:
        return _fill_in_least_fitting_recompute(
            dataclasses.replace(inputs, zero=zero), framework, surely_fits
        )

    if inputs.zero != USUAL_ZERO:
        return fill_in_recompute(inputs.zero)
    if inputs.pipeline_parallel > 1 or framework.id == "megatron":
        return fill_in_recompute("1")
    sharded = fill_in_recompute("3")
    if inputs.method != "full":
        return sharded
    undivided = dataclasses.replace(sharded, zero="1")
    return undivided if surely_fits(undivided) else sharded


def _fill_in_least_fitting_recompute(
    inputs: Any, framework: TrainingFramework, surely_fits: Callable[[Any], bool]
) -> Any:
    """Return the inputs with the least recomputation that surely fits where they leave it open.

    If none does, everything is recomputed, which may still fit. So whether inputs surely fit never
    depends on the choice. Which kind recomputes less depends on the length of the sequence: the
    longer it is, the more of the work is the core of attention.
    """
    if inputs.recompute != LEAST_RECOMPUTE:
        return inputs
    model = find_model(inputs.model)
    kinds = ["none", "selective"] + ["operators"] * framework.can_recompute_every_second_product
    for recompute in sorted(
        kinds, key=lambda kind: recomputed_flops_per_token(model, inputs.sequence, kind)
    ):
        changed = dataclasses.replace(inputs, recompute=recompute)
        if surely_fits(changed):
            return changed
    return dataclasses.replace(inputs, recompute="full")


def chosen_recompute_note(typed_inputs: Any, resolved_inputs: Any) -> tuple[str, ...]:
    if typed_inputs.recompute != LEAST_RECOMPUTE:
        return ()
    if resolved_inputs.recompute == "full":
        return ("Recomputation: full, as with less it may not fit.",)
    recompute = {"operators": "every second matrix product"}.get(
        resolved_inputs.recompute, resolved_inputs.recompute
    )
    return (f"Recomputation: {recompute}, as little as surely fits.",)


def fill_in_default_gpu_count(inputs: Any, default_gpus: int) -> Any:
    if inputs.gpus is not None:
        return inputs
    return dataclasses.replace(inputs, gpus=_default_gpus_for_method(inputs, default_gpus))


method_input = partial(
    RECIPE.declare_input_field,
    default="full",
    label="Method",
    choices=(
        ("full", "All weights"),
        ("lora", "LoRA: adapters of a frozen model"),
        ("qlora", "QLoRA: adapters of a 4-bit model"),
    ),
    help="Adapters train a small part and keep the rest frozen.",
    term="lora",
)
rank_input = partial(
    RECIPE.declare_advanced_input_field,
    default=16,
    label="Adapter rank",
    limits=(1, 4096),
    help="Rank of the adapters, for LoRA and QLoRA.",
)
targets_input = partial(
    RECIPE.declare_advanced_input_field,
    default="all-linear",
    label="Adapted matrices",
    choices=(
        ("all-linear", "All linear layers"),
        ("attention", "Attention"),
        ("qv", "Queries and values"),
        ("mlp", "MLP"),
    ),
    help="Which matrices get an adapter.",
)
network_rate_input = partial(
    NETWORK.declare_input_field,
    default=50e9,
    label="Network per GPU",
    unit="Gbit/s",
    limits=(1e8, 1e12),
    help="Rate of one GPU's adapter in one direction: 400 Gbit/s is NDR.",
)
network_input = partial(
    NETWORK.declare_advanced_input_field,
    default="infiniband",
    label="Network",
    choices=NETWORKS,
    help="What joins the nodes; it decides the latency.",
)
domain_input = partial(
    NETWORK.declare_advanced_input_field,
    default=None,
    label="GPUs per link domain",
    kind="count",
    unit="GPU",
    limits=(1, 576),
    help="GPUs joined by NVLink or its like; left empty: 8, or 72 in NVL72.",
)
pipeline_input = partial(
    LAYOUT.declare_input_field,
    default=1,
    label="Pipeline parallel",
    limits=(1, 4096),
    help="Stages that the layers are divided into.",
    term="pipeline-parallelism",
)
serving_pipeline_input = partial(
    HARDWARE.declare_advanced_input_field,
    default=1,
    label="Pipeline stages",
    limits=(1, 64),
    help="Groups of GPUs that each hold a part of the layers; those that share the model "
    "share a stage.",
    term="pipeline-parallelism",
)
zero_input = partial(
    LAYOUT.declare_input_field,
    default=USUAL_ZERO,
    label="ZeRO stage",
    choices=(
        (USUAL_ZERO, "Usual, by framework and memory"),
        ("0", "0: nothing divided"),
        ("1", "1: optimizer divided"),
        ("2", "2: and gradients"),
        ("3", "3: and weights (FSDP)"),
    ),
    help="What data-parallel GPUs divide among themselves. In a pipeline and in Megatron 1 is "
    "usual, with adapters 3, else 1, or 3 where 1 may not fit.",
    term="zero",
)
context_parallel_input = partial(
    LAYOUT.declare_advanced_input_field,
    default=1,
    label="Context parallel",
    limits=(1, 4096),
    help="GPUs that divide each sequence.",
    term="context-parallelism",
)
experts_input = partial(
    LAYOUT.declare_advanced_input_field,
    default=1,
    label="Expert parallel",
    limits=(1, 4096),
    help="GPUs that divide the experts of a layer.",
    term="expert-parallelism",
)
sequence_parallel_input = partial(
    LAYOUT.declare_advanced_input_field,
    default=True,
    label="Sequence parallel",
    help="Divides norms as well when tensor parallel is above 1.",
)
sequence_input = partial(
    BATCH.declare_input_field,
    default=4096,
    label="Sequence",
    unit="token",
    limits=(1, 10_000_000),
    help="Tokens of one training sequence.",
)
number_format_input = partial(
    RECIPE.declare_input_field,
    default="bf16",
    label="Number format",
    choices=NUMBER_FORMATS,
    help="Format of the matrix products; attention and the head stay in 16 bit.",
    term="mixed-precision",
    topic="number-formats",
)
recompute_input = partial(
    RECIPE.declare_input_field,
    default=LEAST_RECOMPUTE,
    label="Recomputation",
    choices=(
        (LEAST_RECOMPUTE, "As little as fits"),
        ("none", "None"),
        ("selective", "Selective: the core of attention"),
        ("operators", "Every second matrix product"),
        ("full", "Full: every layer from its input"),
    ),
    help="What is computed again in the backward pass instead of kept. With every "
    "second matrix product, the results of the others and of attention are kept.",
    term="activation-checkpointing",
)
training_software_input = partial(
    RECIPE.declare_advanced_input_field,
    default=USUAL_SOFTWARE,
    label="Software",
    choices=(
        (USUAL_SOFTWARE, "Usual for the model"),
        *((key, software.label) for key, software in SOFTWARE.items()),
    ),
    help="Which measured runs the speed is modeled on; usual are compiled PyTorch for a "
    "dense model and tuned software for a mixture of experts.",
    topic="parallelism",
)
TRANSFORMERS, LLAMA_CPP = "transformers", "llama.cpp"
engine_input = partial(
    ENGINE.declare_advanced_input_field,
    default="vllm",
    label="Engine",
    choices=(*list_engine_choices(), (TRANSFORMERS, "Transformers: not estimated")),
    aliases=(
        ("vllm-0.17", "vllm"),
        ("vllm-0.9", "vllm"),
        ("vllm-0.7", "vllm-2024"),
        ("vllm-0.6", "vllm-2024"),
    ),
    help="Which measured engine the overheads are modeled on.",
)
gpu_layers_input = partial(
    ENGINE.declare_advanced_input_field,
    default=None,
    label="Layers on the GPUs",
    kind="count",
    unit="layer",
    limits=(1, 1000),
    help="In llama.cpp, -ngl: the output layer counts as one, and the layers before stay in the "
    "memory of the host. Left empty: all.",
)
# Two channels of DDR5-5600, each 8 B wide.
host_bandwidth_input = partial(
    ENGINE.declare_advanced_input_field,
    default=2 * 8 * 5.6e9,
    label="Memory bandwidth of the host",
    unit="GB/s",
    limits=(1e9, 1e13),
    help="By the data sheet, for layers that llama.cpp keeps there: 89.6 GB/s are two channels of "
    "DDR5-5600.",
)
cached_share_input = partial(
    ENGINE.declare_advanced_input_field,
    default=0.0,
    label="Prompt already cached",
    unit="%",
    limits=(0.0, 0.99),
    help="Share of the prompt whose cache is there from earlier requests.",
)
draft_tokens_input = partial(
    ENGINE.declare_advanced_input_field,
    default=0,
    label="Draft tokens",
    unit="token",
    limits=(0, 32),
    help="Tokens that a small model, an EAGLE head or a layer for multi-token prediction (MTP) "
    "proposes per step; 0: no speculation.",
    term="speculative-decoding",
)
acceptance_input = partial(
    ENGINE.declare_advanced_input_field,
    default=None,
    label="Acceptance",
    unit="%",
    limits=(0.0, 1.0),
    help="Probability that a proposed token is kept if those before it are. The average acceptance "
    "rate in vLLM's logs is of all drafts, and lower: 60% of 3 drafts, 2.8 tokens a step, are 77% "
    "here. Left empty: of a model's own MTP module 87.5% for the first token (85 to 90% by the "
    "DeepSeek-V3 report) and 65% for each after it (2.8 tokens a step of 3 drafts, as SGLang's test "
    "of DeepSeek-V3 requires), else 65%, as with public EAGLE-3 heads of Llama on MT-bench.",
    term="speculative-decoding",
)
draft_cost_input = partial(
    ENGINE.declare_advanced_input_field,
    default=0.05,
    label="Draft step",
    unit="%",
    limits=(0.0, 1.0),
    help="Time of one step of the small model as a share of the large one's.",
)
price_input = partial(
    COST.declare_input_field,
    default=None,
    label="Price",
    unit="USD/h",
    typed_unit="USD/h",
    limits=(0.0, 1e4),
    help="Of one GPU for an hour; left empty: a provider's list price, where one "
    "is known. Write what you pay.",
)
training_tokens_input = partial(
    MODEL.declare_input_field, default=1e12, label="Training tokens", unit="token", limits=(1, 1e18)
)
pue_input = partial(
    COST.declare_advanced_input_field,
    default=1.3,
    label="PUE",
    limits=(1.0, 5.0),
    help="Power of the site over that of its machines.",
    term="pue",
)
usable_share_input = partial(
    ENGINE.declare_input_field,
    default=0.9,
    label="Usable share of memory",
    unit="%",
    limits=(0.1, 1.0),
    help="The share of GPU memory that the engine may take.",
    topic="inference-memory",
)


def replace_as_published_formats(inputs: Any) -> Any:
    """Return the inputs with the formats that “as published” means for their model and engine."""
    changes, is_llama_cpp = {}, getattr(inputs, "engine", "") == LLAMA_CPP
    if getattr(inputs, "cache", "") == PUBLISHED:
        quantization = find_model(inputs.model).quantization
        published_cache = (quantization.cache_format if quantization else "") or "bf16"
        changes["cache"] = "fp16" if is_llama_cpp else published_cache
    published = getattr(inputs, "weights", "") in (PUBLISHED, PUBLISHED_OR_FP8)
    if published and is_llama_cpp:
        changes["weights"] = usual_gguf_format_id(find_model(inputs.model))
    return dataclasses.replace(inputs, **changes) if changes else inputs


def reject_gguf_without_llama_cpp(weights: str, engine_id: str) -> None:
    if weights in GGUF_FORMATS and engine_id != LLAMA_CPP:
        message = "This format is of llama.cpp and Ollama: choose them as the engine."
        raise impossible_input_error("weights", weights, message)


def reject_host_layers_without_llama_cpp(gpu_layers: int | None, engine_id: str) -> None:
    if gpu_layers is not None and engine_id != LLAMA_CPP:
        message = (
            "Layers in the memory of the host are those of llama.cpp and Ollama: choose them as the "
            "engine, or leave this empty."
        )
        raise impossible_input_error("gpu_layers", gpu_layers, message)


def reject_transformers_engine(engine_id: str) -> None:
    if engine_id == TRANSFORMERS:
        message = (
            "Not estimated: Transformers answers one fixed batch and has no queue, so it has no "
            "speed under load. inference-memory has its memory."
        )
        raise impossible_input_error("engine", engine_id, message)


def impossible_input_error(field: str, value: object, message: str) -> InvalidInputsError:
    """Build the error for a field whose value is impossible together with the others."""
    return InvalidInputsError((InputProblem(field, str(value), message),))


def reject_impossible_tensor_parallel(model: Architecture, gpus: int) -> None:
    if problem := find_tensor_parallel_problem(model, gpus):
        raise impossible_input_error("tensor_parallel", gpus, problem)


def reject_gpu_without_rates_or_memory(gpu: Accelerator, number_format: str = "bf16") -> None:
    rates = (gpu.dense_peak_rate("bf16"), gpu.memory_bandwidth)
    if None in rates or not gpu.engine_visible_memory:
        message = f"Rates and memory of the {gpu.name} are not all known."
        raise impossible_input_error("gpu", gpu.id, message)
    if gpu.dense_peak_rate(number_format) is None:
        message = f"The {gpu.name} does not compute in {number_format.upper()}."
        raise impossible_input_error("number_format", number_format, message)
