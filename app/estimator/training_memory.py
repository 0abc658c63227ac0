"""The estimate `training-memory`: what training takes on each GPU and stage."""

import dataclasses
import math

from app.estimator import training_answer
from app.estimator.architecture import Architecture, find_model
from app.estimator.estimate import Estimate
from app.estimator.frameworks import FRAMEWORK_CHOICES, FRAMEWORKS
from app.estimator.hardware import Accelerator, find_accelerator
from app.estimator.inputs import ask
from app.estimator.layout import Layout
from app.estimator.questions import ask_gpu, ask_model, ask_tensor_parallel, refuse
from app.estimator.registry import Entry
from app.estimator.sharding import tensor_parallel_problem
from app.estimator.states import OPTIMIZERS, PRECISIONS, recipe
from app.estimator.training_load import Load, Step, stage_loads


@dataclasses.dataclass(frozen=True, slots=True)
class TrainingMemory:
    """What is to be trained, how, and on what."""

    model: str = ask_model()
    optimizer: str = ask(
        "adamw",
        "Optimizer",
        kind="choice",
        choices=OPTIMIZERS,
        help="How many moments it keeps for each parameter.",
        term="optimizer-state",
        group="Recipe",
        topic="training-memory",
    )
    precision: str = ask(
        "bf16-mixed",
        "Precision",
        kind="choice",
        choices=PRECISIONS,
        help="Formats of weights, gradients and master copy.",
        term="mixed-precision",
        group="Recipe",
        topic="number-formats",
    )
    gpu: str = ask_gpu(count_field="gpus")
    gpus: int = ask(
        16,
        "GPUs",
        kind="count",
        unit="GPU",
        minimum=1,
        maximum=1_000_000,
        help="All GPUs of the job.",
        group="Hardware",
        topic="training-memory",
    )
    zero: str = ask(
        "3",
        "ZeRO stage",
        kind="choice",
        choices=(
            ("0", "0: nothing divided"),
            ("1", "1: optimizer divided"),
            ("2", "2: and gradients"),
            ("3", "3: and weights (FSDP)"),
        ),
        help="What data-parallel GPUs divide among themselves.",
        term="zero",
        group="Layout",
        topic="parallelism",
    )
    tensor_parallel: int = ask_tensor_parallel()
    pipeline_parallel: int = ask(
        1,
        "Pipeline parallel",
        kind="count",
        unit="",
        minimum=1,
        maximum=1024,
        help="Stages that the layers are divided into.",
        term="pipeline-parallelism",
        group="Layout",
        topic="parallelism",
    )
    context_parallel: int = ask(
        1,
        "Context parallel",
        kind="count",
        minimum=1,
        maximum=1024,
        help="GPUs that divide each sequence.",
        term="context-parallelism",
        group="Layout",
        topic="parallelism",
        advanced=True,
    )
    expert_parallel: int = ask(
        1,
        "Expert parallel",
        kind="count",
        minimum=1,
        maximum=1024,
        help="GPUs that divide the experts of a layer.",
        term="expert-parallelism",
        group="Layout",
        topic="parallelism",
        advanced=True,
    )
    interleave: int = ask(
        1,
        "Interleaving",
        kind="count",
        minimum=1,
        maximum=64,
        help="Chunks of layers on each pipeline stage.",
        group="Layout",
        topic="parallelism",
        advanced=True,
    )
    sequence: int = ask(
        4096,
        "Sequence",
        kind="count",
        unit="token",
        minimum=1,
        maximum=10_000_000,
        help="Tokens of one training sequence.",
        group="Batch",
        topic="training-memory",
    )
    micro_batch: int = ask(
        1,
        "Micro-batch",
        kind="count",
        unit="sequence",
        minimum=1,
        maximum=100_000,
        help="Sequences in one forward pass.",
        term="micro-batch",
        group="Batch",
        topic="training-memory",
    )
    micro_batches: int | None = ask(
        None,
        "Micro-batches per step",
        kind="count",
        minimum=1,
        maximum=1_000_000,
        help="Left empty: enough to fill the pipeline.",
        group="Batch",
        topic="parallelism",
        advanced=True,
    )
    recompute: str = ask(
        "full",
        "Recomputation",
        kind="choice",
        choices=(
            ("none", "None"),
            ("selective", "Selective: the core of attention"),
            ("operators", "Every second product"),
            ("full", "Full: every layer from its input"),
        ),
        help="What is computed again in the backward pass instead of kept.",
        term="activation-recomputation",
        group="Recipe",
        topic="training-memory",
    )
    framework: str = ask(
        "torch",
        "Framework",
        kind="choice",
        choices=FRAMEWORK_CHOICES,
        help="Decides which tensors are kept beside the formula.",
        group="Recipe",
        topic="training-memory",
    )
    flash_attention: bool = ask(
        True,
        "Flash attention",
        kind="flag",
        help="Without it the attention scores are kept as well.",
        term="flash-attention",
        group="Recipe",
        topic="training-memory",
        advanced=True,
    )
    sequence_parallel: bool = ask(
        True,
        "Sequence parallel",
        kind="flag",
        help="Divides norms as well when tensor parallel is above 1.",
        group="Layout",
        topic="parallelism",
        advanced=True,
    )
    fused_loss: bool = ask(
        False,
        "Fused loss",
        kind="flag",
        help="A loss that never makes FP32 copies of the logits.",
        group="Recipe",
        topic="training-memory",
        advanced=True,
    )
    overhead: float = ask(
        4e9,
        "Overhead per GPU",
        unit="B",
        typed_unit="GB",
        minimum=0.0,
        maximum=1e12,
        help="CUDA context, communication buffers, workspaces, fragmentation.",
        group="Hardware",
        topic="training-memory",
    )


def compute(asked: TrainingMemory) -> Estimate:
    """Weigh states, activations, logits and overhead against one GPU's memory."""
    model = find_model(asked.model)
    gpu = find_accelerator(asked.gpu)
    layout = layout_of(asked)
    check(model, asked, layout, gpu)
    each = recipe(asked.optimizer, asked.precision)
    step = step_of(asked)
    loads = stage_loads(model, layout, step, each, asked.overhead)
    fewest = fewest_gpus(layout, loads, gpu.memory or 0.0)
    return training_answer.answer(
        training_answer.Case(model, asked, gpu, layout, each, loads, fewest)
    )


def layout_of(asked: TrainingMemory) -> Layout:
    """The degrees of parallelism that were asked for."""
    return Layout(
        gpus=asked.gpus,
        tensor=asked.tensor_parallel,
        pipeline=asked.pipeline_parallel,
        context=asked.context_parallel,
        expert=asked.expert_parallel,
        virtual=asked.interleave,
        zero=int(asked.zero),
        sequence_parallel=asked.sequence_parallel,
    )


def step_of(asked: TrainingMemory) -> Step:
    """The step that was asked for; the pipeline is full unless said otherwise."""
    return Step(
        sequence=asked.sequence,
        micro_batch=asked.micro_batch,
        micro_batches=asked.micro_batches or 10**6,
        recompute=asked.recompute,
        flash=asked.flash_attention,
        framework=FRAMEWORKS[asked.framework],
        fused_loss=asked.fused_loss,
    )


def check(
    model: Architecture, asked: TrainingMemory, layout: Layout, gpu: Accelerator
) -> None:
    """Refuse layouts that cannot be, with what is possible."""
    ranks = layout.tensor * layout.pipeline * layout.context
    if asked.gpus % ranks:
        raise refuse(
            "gpus",
            asked.gpus,
            f"{asked.gpus} GPUs cannot be divided into groups of {ranks} (tensor × "
            f"pipeline × context parallel); use a multiple of {ranks}.",
        )
    problem = tensor_parallel_problem(model, layout.tensor)
    if problem:
        raise refuse("tensor_parallel", layout.tensor, problem)
    _check_pipeline(model, layout)
    _check_experts(model, layout)
    _check_card(asked, gpu)


def _check_pipeline(model: Architecture, layout: Layout) -> None:
    chunks = layout.pipeline * layout.virtual
    if chunks > model.layers:
        field = "interleave" if layout.virtual > 1 else "pipeline_parallel"
        value = layout.virtual if layout.virtual > 1 else layout.pipeline
        raise refuse(
            field,
            value,
            f"{model.layers} layers cannot fill {chunks} parts of a pipeline; at most "
            f"{model.layers}.",
        )
    if layout.virtual > 1 and layout.pipeline == 1:
        raise refuse(
            "interleave",
            layout.virtual,
            f"Interleaving {layout.virtual} chunks needs a pipeline of at least 2.",
        )


def _check_experts(model: Architecture, layout: Layout) -> None:
    expert = layout.expert
    if expert == 1:
        return
    if not model.experts:
        raise refuse(
            "expert_parallel", expert, f"{model.name} has no experts to divide; use 1."
        )
    if model.experts % expert:
        raise refuse(
            "expert_parallel",
            expert,
            f"{model.experts} experts cannot be divided over {expert} GPUs; use a "
            f"divisor of {model.experts}.",
        )
    group = layout.gpus // layout.pipeline
    if group % expert:
        raise refuse(
            "expert_parallel",
            expert,
            f"Expert parallel {expert} does not divide the {group} GPUs of a stage.",
        )


def _check_card(asked: TrainingMemory, gpu: Accelerator) -> None:
    if gpu.memory is None:
        raise refuse("gpu", asked.gpu, f"The memory of the {gpu.name} is not known.")
    if asked.precision.startswith("bf16") and gpu.lacks("bf16"):
        raise refuse(
            "precision", asked.precision, f"The {gpu.name} cannot compute in BF16."
        )


def fewest_gpus(layout: Layout, loads: tuple[Load, ...], limit: float) -> int | None:
    """The fewest GPUs of this layout, by changing the number of its copies.

    Only what ZeRO divides shrinks with more copies; the rest must fit by itself.
    """
    ranks = layout.tensor * layout.pipeline * layout.context
    copies = 1
    for load in loads:
        divided = sum(
            value
            for stage, value in (
                (3, load.weights),
                (2, load.gradients),
                (1, load.optimizer),
            )
            if layout.zero >= stage
        )
        room = limit - (load.total - divided)
        if room <= 0:
            return None
        copies = max(copies, math.ceil(divided * layout.data / room - 1e-9))
    each = layout.tensor * layout.context
    step = layout.expert // math.gcd(layout.expert, each)
    copies = -(-copies // step) * step
    return ranks * copies if ranks * copies <= _MOST_GPUS else None


_MOST_GPUS = 1_000_000


ENTRY = Entry(
    name="training-memory",
    title="Training memory",
    summary="Whether training fits, part by part and stage by stage.",
    group="Memory",
    inputs=TrainingMemory,
    compute=compute,
    outputs=training_answer.OUTPUTS,
    topic="training-memory",
)
