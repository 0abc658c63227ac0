"""`training-time`: inputs, result, and the input values where the verdict changes."""

import dataclasses
import math
from typing import Any, NamedTuple, cast

from app.estimator import common_inputs
from app.estimator.common_inputs import (
    BATCH,
    COST,
    LAYOUT,
    MODEL,
    RECIPE,
    impossible_input_error,
    reject_gpu_without_rates_or_memory,
)
from app.estimator.estimates.composition import first_system_with_gpu
from app.estimator.estimates.training_memory import (
    MemoryRemedy,
    build_requested_layout,
    reject_impossible_layout,
)
from app.estimator.hardware.catalog import Accelerator
from app.estimator.hardware.collectives import build_gpu_interconnect
from app.estimator.inputs import InputGroup, InvalidInputsError, input_specs
from app.estimator.memory.model_states import (
    FRAMEWORKS,
    TrainingFramework,
    build_trained_weights,
    state_bytes_per_parameter,
)
from app.estimator.memory.parallel_layout import default_micro_batch_count
from app.estimator.memory.training_memory import StageMemory
from app.estimator.models.architecture import Architecture
from app.estimator.models.lookup import find_model
from app.estimator.result import Bounds, VerdictChange
from app.estimator.training.flops import (
    adapter_training_flops_per_token,
    flops_utilization,
    recomputed_flops_per_token,
    training_flops_per_token,
)
from app.estimator.training.run_costs import (
    GPU_MTBF,
    GPU_MTBF_RANGE,
    WRITE_BANDWIDTH,
    checkpoint_bytes,
    daly_checkpoint_interval,
    daly_goodput,
    expected_failures,
    job_mtbf,
    lost_work_seconds_per_failure,
    restart_time_per_failure,
    site_energy_watt_seconds,
)
from app.estimator.training.step_time import OptimizerStepTime, optimizer_step_time
from app.estimator.training.training_plan import (
    FREE_PLACES,
    Recompute,
    TrainingPlan,
    find_training_software,
    fullest_stage_memory,
    parallel_layout_of_plan,
)
from app.estimator.units import format_number, format_value

_LOSSES = InputGroup("Losses", "cluster-components")

_YEAR_SECONDS = 365.25 * 86400.0


def _batch_field(default: int | None, label: str, help_text: str, maximum: int) -> Any:
    return BATCH.declare_input_field(
        default,
        label,
        kind="count",
        unit="sequence",
        limits=(1, maximum),
        help=help_text,
        term="micro-batch",
        topic="parallelism",
    )


USUAL_GPUS = 64


@dataclasses.dataclass(frozen=True, slots=True)
class TrainingTimeInputs:
    model: str = common_inputs.model_input(default="llama-3.1-8b")
    tokens: float = common_inputs.training_tokens_input(help="Tokens of the whole run.")
    gpu: str = common_inputs.counted_gpu_input(count_field="gpus")
    gpus: int = common_inputs.declare_training_gpus_input(USUAL_GPUS)
    method: str = common_inputs.method_input()
    rank: int = common_inputs.rank_input()
    targets: str = common_inputs.targets_input()
    tensor_parallel: int = common_inputs.tensor_parallel_input()
    pipeline_parallel: int = common_inputs.pipeline_input()
    context_parallel: int = common_inputs.context_parallel_input()
    expert_parallel: int = common_inputs.experts_input()
    interleave: int = LAYOUT.declare_advanced_input_field(
        1,
        "Interleaving",
        limits=(1, 4096),
        help="Chunks of layers on each pipeline stage.",
        term="pipeline-parallelism",
    )
    sequence: int = common_inputs.sequence_input()
    micro_batch: int = _batch_field(1, "Micro-batch", "Sequences in one forward pass.", 10**5)
    global_batch: int | None = _batch_field(
        None,
        "Global batch",
        "Sequences per optimizer step; left empty: about eight million tokens, or 1,024 for each "
        "GPU if that is more, less in a run shorter than a thousand such steps, and at least a "
        "micro-batch for each stage; with adapters only the latter.",
        10**7,
    )
    number_format: str = common_inputs.number_format_input()
    recompute: str = common_inputs.recompute_input()
    zero: str = common_inputs.zero_input()
    sequence_parallel: bool = common_inputs.sequence_parallel_input()
    gradients: str = RECIPE.declare_advanced_input_field(
        "bf16",
        "Gradients",
        choices=(("bf16", "BF16"), ("fp32", "FP32")),
        help="Format in which replicas add them up.",
        topic="number-formats",
    )
    software: str = common_inputs.training_software_input()
    network_rate: float = common_inputs.network_rate_input()
    network: str = common_inputs.network_input()
    domain: int | None = common_inputs.domain_input()
    mtbf_per_gpu: float = _LOSSES.declare_advanced_input_field(
        GPU_MTBF,
        "Hours between failures of a GPU",
        unit="h",
        limits=(3600.0, 1000 * _YEAR_SECONDS),
        help="Mean time until one GPU's share of the machine stops the job: 30,000 h on a "
        "research cluster of 16,000 GPUs, 51,000 h in the training of Llama 3.",
    )
    checkpoint_time: float | None = _LOSSES.declare_advanced_input_field(
        None,
        "Stall of a save",
        unit="s",
        typed_unit="s",
        limits=(0.001, 86400.0),
        help="How long one checkpoint stops the training; left empty: as long as 14 B for each "
        "trained parameter take at 100 GB/s, as in storage.",
        term="checkpoint",
    )
    restart_time: float = _LOSSES.declare_advanced_input_field(
        600.0,
        "Restart",
        unit="min",
        limits=(0.0, 864000.0),
        help="From a failure until training goes on.",
    )
    other_time: float = _LOSSES.declare_advanced_input_field(
        0.14,
        "Evaluation, repeats, slower steps",
        unit="%",
        limits=(0.0, 0.9),
        help="Share of the time between saves and failures for validation, for work done twice, "
        "and for steps slower than in a benchmark. On 1,024 GPUs it makes 16% with failures and checkpoints, the "
        "median of published runs.",
        topic="training-versus-inference",
    )
    deadline: float | None = MODEL.declare_input_field(
        None,
        "Deadline",
        unit="days",
        limits=(60.0, 100 * _YEAR_SECONDS),
        help="The run should be over by then; left empty: no limit.",
    )
    usd_per_gpu_hour: float | None = common_inputs.price_input()
    watts_per_gpu: float | None = COST.declare_advanced_input_field(
        None,
        "Power per GPU",
        unit="W",
        typed_unit="W",
        limits=(1.0, 1e5),
        help="With its share of the server; left empty: 1.7 times the card's limit. A training "
        "run counts the typical load of its servers instead.",
    )
    pue: float = common_inputs.pue_input()


class BubbleReduction(NamedTuple):
    """An input value that reduces the pipeline bubble, and the MFU that it gives."""

    field: str
    value: int
    mfu: float


@dataclasses.dataclass(frozen=True, slots=True)
class TrainingTimeResult:
    """A run: plan, step, losses and time [s].

    `memory_remedy` is what makes a plan that is too large fit, `gpus_for_deadline` the number
    that meets a missed deadline. `bubble_reductions` are best first.
    `chooses_least_recompute`: the recomputation is the least that fits, not a given one.
    """

    inputs: TrainingTimeInputs
    model: Architecture
    gpu: Accelerator
    plan: TrainingPlan
    step_time: OptimizerStepTime
    flops_per_token: float
    mfu: float
    hfu: float
    checkpoint_stall: float
    mtbf: float
    checkpoint_interval: float
    productive_time_share: float
    run_seconds: float
    run_seconds_without_losses: float
    watts_per_gpu: float
    stage_memory: StageMemory
    memory_remedy: MemoryRemedy | None = None
    gpus_for_deadline: int | None = None
    chooses_least_recompute: bool = False
    bubble_reductions: tuple[BubbleReduction, ...] = ()

    @property
    def memory_per_gpu(self) -> float:
        """Return the bytes on a GPU of the fullest stage [B]."""
        return self.stage_memory.total

    @property
    def tokens_per_second(self) -> float:
        return self.plan.tokens_per_step / self.step_time.total

    @property
    def gpu_hours(self) -> float:
        return self.run_seconds * self.inputs.gpus / 3600

    @property
    def expected_failures(self) -> float:
        return expected_failures(self.run_seconds, self.mtbf)

    @property
    def mtbf_bounds(self) -> Bounds:
        """Return the shortest and longest time between failures of the job [s].

        Published clusters differ; both are the typed time if one was typed.
        """
        if self.inputs.mtbf_per_gpu != GPU_MTBF:
            return Bounds(self.mtbf, self.mtbf)
        return Bounds(*(job_mtbf(bound, self.inputs.gpus) for bound in GPU_MTBF_RANGE))

    @property
    def work_lost_by_failure(self) -> float:
        """Return the work that a failure makes in vain, on average [s]."""
        return lost_work_seconds_per_failure(
            self.checkpoint_interval, self.checkpoint_stall, self.inputs.restart_time, self.mtbf
        )

    @property
    def restart_time_per_failure(self) -> float:
        """Return the time of a restart, which another failure may end [s]."""
        return restart_time_per_failure(self.inputs.restart_time, self.mtbf)

    @property
    def run_seconds_before_saves_and_failures(self) -> float:
        """Return the time for computing, evaluation, repeats and slower steps [s]."""
        return self.run_seconds_without_losses / (1 - self.inputs.other_time)

    @property
    def lost_seconds_by_label(self) -> dict[str, float]:
        """Return the parts of the run that bring no progress, with their time [s].

        Checkpoints are saved and failures happen during evaluation as well.
        """
        return {
            "Evaluation, repeats, slower steps": self.run_seconds_before_saves_and_failures
            - self.run_seconds_without_losses,
            "Saving checkpoints": self.run_seconds_before_saves_and_failures
            * self.checkpoint_stall
            / self.checkpoint_interval,
            "Lost work": self.expected_failures * self.work_lost_by_failure,
            "Restarts": self.expected_failures * self.restart_time_per_failure,
        }

    @property
    def site_energy_wh(self) -> float:
        return (
            site_energy_watt_seconds(
                self.run_seconds * self.inputs.gpus, self.watts_per_gpu, self.inputs.pue
            )
            / 3600
        )


MAX_GPUS = 1_000_000


def build_requested_plan(inputs: TrainingTimeInputs) -> TrainingPlan:
    """Return the layout of the inputs, with the usual micro-batches by default."""
    group = inputs.tensor_parallel * inputs.pipeline_parallel * inputs.context_parallel
    data = inputs.gpus // group
    model = find_model(inputs.model)
    plan = TrainingPlan(
        tensor=inputs.tensor_parallel,
        pipeline=inputs.pipeline_parallel,
        data=data,
        context=inputs.context_parallel,
        expert=inputs.expert_parallel,
        chunks_per_stage=inputs.interleave,
        sequence=inputs.sequence,
        micro_batch=inputs.micro_batch,
        number_format=inputs.number_format,
        recompute=cast("Recompute", inputs.recompute),
        zero=int(inputs.zero),
        sequence_parallel=inputs.sequence_parallel,
        software=find_training_software(inputs.software, model),
        gradient_bytes=4 if inputs.gradients == "fp32" else 2,
        trained_weights=build_trained_weights(inputs, model),
    )
    micro_batch_count = plan.pipeline
    if not plan.trained_weights.are_adapters:
        micro_batch_count = default_micro_batch_count(
            parallel_layout_of_plan(plan), inputs.sequence, inputs.micro_batch, inputs.tokens
        )
    if inputs.global_batch:
        micro_batch_count = max(1, round(inputs.global_batch / (data * inputs.micro_batch)))
    return dataclasses.replace(plan, micro_batches=micro_batch_count)


def find_requested_framework(inputs: TrainingTimeInputs, model: Architecture) -> TrainingFramework:
    if inputs.method != "full":
        return FRAMEWORKS["torchtune"]
    return FRAMEWORKS[find_training_software(inputs.software, model).framework_id]


def compute_fullest_stage_memory_of_plan(
    model: Architecture, inputs: TrainingTimeInputs, plan: TrainingPlan
) -> StageMemory:
    precision = "bf16-mixed-fp32-grads" if inputs.gradients == "fp32" else "bf16-mixed"
    return fullest_stage_memory(model, plan, state_bytes_per_parameter("adamw", precision))


def fill_in_usual_zero_and_recompute(
    model: Architecture, gpu: Accelerator, inputs: TrainingTimeInputs
) -> TrainingTimeInputs:
    """Return the inputs with the usual ZeRO stage and recomputation, if they leave these open."""
    changed: TrainingTimeInputs = common_inputs.fill_in_zero_stage_and_recompute(
        inputs,
        find_requested_framework(inputs, model),
        lambda tried: compute_fullest_stage_memory_of_plan(
            model, tried, build_requested_plan(tried)
        ),
        gpu.engine_visible_memory,
    )
    return changed


def compute_requested_step_time(
    model: Architecture, gpu: Accelerator, inputs: TrainingTimeInputs, plan: TrainingPlan
) -> OptimizerStepTime:
    fabric = build_gpu_interconnect(gpu, inputs.network_rate, inputs.network, inputs.domain or 0)
    return optimizer_step_time(model, gpu, fabric, plan)


def compute_mfu(
    flops_per_token: float, plan: TrainingPlan, step: OptimizerStepTime, gpu: Accelerator
) -> float:
    rate = plan.tokens_per_step / step.total / plan.gpus
    return flops_utilization(flops_per_token, rate, gpu.dense_peak_rate(plan.number_format) or 1.0)


def compute_checkpoint_stall(
    model: Architecture, inputs: TrainingTimeInputs, plan: TrainingPlan
) -> float:
    """Return the time for which a save stops the training [s]: typed, or the whole write."""
    if inputs.checkpoint_time is not None:
        return inputs.checkpoint_time
    return checkpoint_bytes(plan.trained_weights.trained_parameters(model)) / WRITE_BANDWIDTH


def compute_productive_time_share(
    inputs: TrainingTimeInputs, checkpoint_stall: float, job_mtbf: float
) -> float:
    """Return the share of progress, with the best interval at a time between failures [1]."""
    goodput = daly_goodput(
        daly_checkpoint_interval(checkpoint_stall, job_mtbf),
        checkpoint_stall,
        inputs.restart_time,
        job_mtbf,
    )
    return goodput * (1 - inputs.other_time)


def compute_training_time_result(
    model: Architecture,
    gpu: Accelerator,
    inputs: TrainingTimeInputs,
    plan: TrainingPlan,
    step: OptimizerStepTime,
) -> TrainingTimeResult:
    mtbf = job_mtbf(inputs.mtbf_per_gpu, inputs.gpus)
    stall = compute_checkpoint_stall(model, inputs, plan)
    useful_share = compute_productive_time_share(inputs, stall, mtbf)
    if useful_share <= 0:
        message = (
            f"With {format_value(mtbf, 's')} between failures a job that takes "
            f"{format_value(stall + inputs.restart_time, 's')} to save and restart "
            "makes no progress."
        )
        raise impossible_input_error("gpus", inputs.gpus, message)
    computing = inputs.tokens / plan.tokens_per_step * step.total
    watts = inputs.watts_per_gpu or 1.7 * (gpu.tdp or 0.0)
    flops = training_flops_per_token(model, plan.sequence)
    if plan.trained_weights.are_adapters:
        flops = adapter_training_flops_per_token(
            model, plan.sequence, plan.trained_weights.adapter_parameters
        )
    recomputed_flops = recomputed_flops_per_token(model, plan.sequence, plan.recompute)
    mfu = compute_mfu(flops, plan, step, gpu)
    return TrainingTimeResult(
        inputs=inputs,
        model=model,
        gpu=gpu,
        plan=plan,
        step_time=step,
        flops_per_token=flops,
        mfu=mfu,
        hfu=mfu * (1 + recomputed_flops / flops),
        checkpoint_stall=stall,
        mtbf=mtbf,
        checkpoint_interval=daly_checkpoint_interval(stall, mtbf),
        productive_time_share=useful_share,
        run_seconds=computing / useful_share,
        run_seconds_without_losses=computing,
        watts_per_gpu=watts,
        stage_memory=compute_fullest_stage_memory_of_plan(model, inputs, plan),
    )


def find_first_remedy_that_fits(
    model: Architecture, gpu: Accelerator, inputs: TrainingTimeInputs
) -> MemoryRemedy | None:
    for remedy in _MEMORY_REMEDIES:
        if not remedy.is_offered_by(find_requested_framework(inputs, model)):
            continue
        changed = dataclasses.replace(inputs, **{remedy.field: remedy.value})
        try:
            validate_inputs(model, changed, gpu)
        except InvalidInputsError:
            continue
        memory = compute_fullest_stage_memory_of_plan(model, changed, build_requested_plan(changed))
        if memory.total <= gpu.engine_visible_memory:
            return remedy
    return None


_MEMORY_REMEDIES = (
    MemoryRemedy("recompute", "selective"),
    MemoryRemedy("zero", "1"),
    MemoryRemedy("zero", "2"),
    MemoryRemedy("recompute", "operators"),
    MemoryRemedy("recompute", "full"),
    MemoryRemedy("zero", "3"),
    MemoryRemedy("tensor_parallel", 2),
    MemoryRemedy("tensor_parallel", 4),
    MemoryRemedy("tensor_parallel", 8),
)

# A larger pipeline bubble, as a share of the step, is mentioned in the report.
_NOTABLE_BUBBLE = 0.1


def find_bubble_reductions(result: TrainingTimeResult) -> tuple[BubbleReduction, ...]:
    """Return inputs that reduce the pipeline bubble and raise the MFU, best first.

    Tries more micro-batches, until the bubble is a tenth, and twice the chunks per stage.
    """
    model, gpu, plan = result.model, result.gpu, result.plan
    if result.step_time.bubble <= _NOTABLE_BUBBLE * result.step_time.total:
        return ()
    micro_batch_count = math.ceil((plan.pipeline - 1) / (plan.chunks_per_stage * _NOTABLE_BUBBLE))
    candidates = {"global_batch": plan.data * plan.micro_batch * micro_batch_count}
    if plan.pipeline * 2 * plan.chunks_per_stage <= model.layers + FREE_PLACES:
        candidates["interleave"] = 2 * plan.chunks_per_stage
    reductions = []
    for field, value in candidates.items():
        change: dict[str, Any] = {field: value}
        changed = dataclasses.replace(result.inputs, **change)
        if result.chooses_least_recompute:
            changed = dataclasses.replace(changed, recompute=common_inputs.LEAST_RECOMPUTE)
            changed = fill_in_usual_zero_and_recompute(model, gpu, changed)
        changed_plan = build_requested_plan(changed)
        memory = compute_fullest_stage_memory_of_plan(model, changed, changed_plan).total
        if memory > max(gpu.engine_visible_memory, result.memory_per_gpu):
            continue
        step = compute_requested_step_time(model, gpu, changed, changed_plan)
        mfu = compute_mfu(result.flops_per_token, changed_plan, step, gpu)
        if mfu > result.mfu:
            reductions.append(BubbleReduction(field, value, mfu))
    return tuple(sorted(reductions, key=lambda reduction: -reduction.mfu))


def find_gpus_for_deadline(
    model: Architecture, gpu: Accelerator, inputs: TrainingTimeInputs
) -> int | None:
    """Return approximately the fewest GPUs with which a run meets its deadline.

    They are whole systems, as many as a job can be divided over, and as divide the batch that was
    typed.
    """
    limit = inputs.deadline or math.inf
    group = inputs.tensor_parallel * inputs.pipeline_parallel * inputs.context_parallel
    system = first_system_with_gpu(gpu)
    gpus_step = math.lcm(group, system.gpus if system and inputs.gpus >= system.gpus else 1)
    of_batch = sorted(
        group * n for n in list_divisors((inputs.global_batch or 0) // inputs.micro_batch)
    )
    gpus = inputs.gpus
    for _ in range(12):
        changed = dataclasses.replace(inputs, gpus=gpus)
        plan = build_requested_plan(changed)
        step = compute_requested_step_time(model, gpu, changed, plan)
        try:
            run = compute_training_time_result(model, gpu, changed, plan, step)
        except InvalidInputsError:  # So many GPUs that failures leave no time to work.
            break
        if run.run_seconds <= limit:
            return gpus
        needed = max(gpus + 1, gpus * run.run_seconds / limit)
        gpus = round_up_to_divisible_gpu_count(needed, gpus_step)
        if of_batch:
            dividing = (n for n in of_batch if n >= needed and n % gpus_step == 0)
            gpus = next(dividing, MAX_GPUS)
        if gpus >= MAX_GPUS:
            break
    return None


def list_divisors(number: int) -> set[int]:
    """Return all divisors of a number; none of zero.

    >>> sorted(list_divisors(12)), list_divisors(0)
    ([1, 2, 3, 4, 6, 12], set())
    """
    small = (n for n in range(1, math.isqrt(number) + 1) if number % n == 0)
    return {divisor for n in small for divisor in (n, number // n)}


def round_up_to_divisible_gpu_count(gpus: float, system_gpus: int) -> int:
    """Round up to whole systems that a job can be divided over, at most an eighth more.

    >>> round_up_to_divisible_gpu_count(60, 8), round_up_to_divisible_gpu_count(4344, 8)
    (64, 4608)
    """
    systems = math.ceil(gpus / system_gpus)
    step = 1 << max(0, (systems // 8).bit_length() - 1)
    max_gpus = MAX_GPUS // system_gpus * system_gpus
    return max(system_gpus, min(math.ceil(systems / step) * step * system_gpus, max_gpus))


def validate_inputs(model: Architecture, inputs: TrainingTimeInputs, gpu: Accelerator) -> None:
    reject_gpu_without_rates_or_memory(gpu, inputs.number_format)
    reject_impossible_layout(model, build_requested_layout(dataclasses.replace(inputs, zero="1")))


def find_verdict_changes(result: TrainingTimeResult) -> tuple[VerdictChange, ...]:
    inputs, labels = result.inputs, {n: s.label for n, s in input_specs(TrainingTimeInputs).items()}
    changes = []
    if result.gpus_for_deadline is not None:
        now, then = format_number(inputs.gpus), format_number(result.gpus_for_deadline)
        changes.append(VerdictChange("gpus", "GPUs", now, then, "In time."))
    if result.memory_remedy is not None:
        field = result.memory_remedy.field
        now, then = str(getattr(inputs, field)), str(result.memory_remedy.value)
        changes.append(VerdictChange(field, labels[field], now, then, "Fits in memory."))
    current_values = {
        "global_batch": result.plan.global_batch,
        "interleave": result.plan.chunks_per_stage,
    }
    for reduction in result.bubble_reductions:
        field = reduction.field
        now, then = format_number(current_values[field]), format_number(reduction.value)
        text = f"{reduction.mfu:.0%} of the peak."
        changes.append(VerdictChange(field, labels[field], now, then, text))
    return tuple(changes)
