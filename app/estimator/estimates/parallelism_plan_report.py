"""`parallelism-plan`: verdict, figures, charts and formula steps of a result."""

import dataclasses
import math
from typing import Any, cast

from app.estimator.common_inputs import reject_gpu_without_rates_or_memory
from app.estimator.estimates import training_time_report
from app.estimator.estimates.layout_search import LayoutCandidate
from app.estimator.estimates.parallelism_plan import (
    ParallelismPlanInputs,
    ParallelismPlanResult,
    build_layout_memory_verdict,
    choose_default_batch_before_rounding,
    compute_parallelism_plan,
    find_verdict_changes,
)
from app.estimator.estimates.training_memory_report import build_memory_bar
from app.estimator.estimates.training_time_report import (
    build_mfu_step,
    build_run_time_step,
    build_step_time_formula_step,
    build_step_timeline,
    describe_measurements_behind_ranges,
)
from app.estimator.formula_steps import StepBuilder, format_term, format_terms_of_exact_sum
from app.estimator.hardware.catalog import Accelerator, find_accelerator, find_reference_design
from app.estimator.hardware.prices import rental_price_source_notes
from app.estimator.memory_verdict import UNSURE_LEAD, real_capacity_note
from app.estimator.models.lookup import find_model
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    Better,
    Estimate,
    FormulaStep,
    OutputSpec,
    OutputValue,
    ResultTable,
    Verdict,
    read_figures,
)
from app.estimator.training.training_plan import RECOMPUTE_TEXTS
from app.estimator.units import format_count, format_number, format_value

PARTS = {
    "matmul": "matrix products",
    "attention": "attention",
    "head": "the output head",
    "traffic": "memory traffic",
    "launch": "launches",
    "tensor": "tensor-parallel traffic",
    "expert": "expert traffic",
    "context": "context traffic",
    "gather": "gathering weights",
    "bubble": "the pipeline bubble",
    "data": "gradients and weights",
    "optimizer": "the optimizer",
}


def describe_layout(candidate: LayoutCandidate) -> str:
    """Describe a layout in one line, without degrees of one.

    Example: Tensor 8 × pipeline 16 (8 chunks a stage) × data 128.
    """
    plan = candidate.plan
    degrees = (
        ("tensor", plan.tensor),
        ("pipeline", plan.pipeline),
        ("context", plan.context),
        ("data", plan.data),
    )
    chunks = f" ({plan.chunks_per_stage} chunks a stage)" if plan.chunks_per_stage > 1 else ""
    named = [
        f"{name} {degree}{chunks if name == 'pipeline' else ''}"
        for name, degree in degrees
        if degree > 1
    ]
    text = " × ".join(named) or "one GPU"
    if plan.expert > 1:
        text += f", experts over {plan.expert}"
    if plan.recompute != "none":
        text += f", {RECOMPUTE_TEXTS[plan.recompute]}"
    return text[0].upper() + text[1:]


def build_ranking_table(result: ParallelismPlanResult) -> ResultTable:
    first = result.candidates_best_first[0]
    rows = []
    for rank, candidate in enumerate(result.candidates_best_first, 1):
        plan = candidate.plan
        rows.append(
            (
                str(rank),
                f"{describe_layout(candidate)}, micro-batch {plan.micro_batch}, ZeRO {plan.zero}",
                (float(plan.gpus), "GPU"),
                (candidate.step_time.total, "s"),
                (candidate.tokens_per_second / plan.gpus, "token/s"),
                (candidate.memory_per_gpu, "B"),
                describe_largest_time_loss(first, candidate) if rank > 1 else "the best",
            )
        )
    columns = ("Rank", "Layout", "GPUs", "One step", "Per GPU", "Memory", "Why")
    return ResultTable(f"{_build_fitting_layouts_label(result)}, best first", columns, tuple(rows))


def _build_fitting_layouts_label(result: ParallelismPlanResult) -> str:
    surely = "surely " if result.job.usable_memory_share is None else ""
    return f"Layouts that {surely}fit"


def describe_largest_time_loss(best: LayoutCandidate, other: LayoutCandidate) -> str:
    """Return the part of the step in which a layout loses most against the best one."""
    grown = {
        label: _gpu_seconds_per_token(other, name) - _gpu_seconds_per_token(best, name)
        for name, label in PARTS.items()
    }
    label = max(grown, key=lambda part: grown[part])
    scale = other.plan.tokens_per_step / other.plan.gpus
    lost = grown[label] * scale
    if lost <= 0.001 * other.step_time.total:
        return "about as fast"
    won = min(grown, key=lambda part: grown[part])
    text = f"loses {format_value(lost, 's')} to {label}"
    gained = -grown[won] * scale
    if gained > 0.3 * lost:
        text += f", gains {format_value(gained, 's')} in {won}"
    return text


def _gpu_seconds_per_token(candidate: LayoutCandidate, step_part: str) -> float:
    seconds: float = getattr(candidate.step_time, step_part)
    return seconds * candidate.plan.gpus / candidate.plan.tokens_per_step


_PlanResult = ParallelismPlanResult
_NO_LAYOUT_VALUE = OutputValue(None, note="No layout fits.", applies=False)


def _plan_property_output(
    name: str, label: str, field: str = "", unit: str = ""
) -> OutputSpec[_PlanResult]:

    def read(result: _PlanResult) -> Any:
        return (
            getattr(result.best_layout.plan, field or name)
            if result.best_layout
            else _NO_LAYOUT_VALUE
        )

    better: Better = "less" if name == "gpus" else ""
    return OutputSpec(name, label, unit, better, read)


def _training_time_output_of_best_layout(name: str) -> OutputSpec[_PlanResult]:
    """Declare an output of training-time, for the run in the best layout."""
    output = next(output for output in training_time_report.OUTPUTS if output.name == name)

    def read(result: _PlanResult) -> Any:
        return (
            output.read(result.run_in_best_layout)
            if output.read and result.run_in_best_layout
            else _NO_LAYOUT_VALUE
        )

    return dataclasses.replace(cast("OutputSpec[_PlanResult]", output), read=read)


def _fewest_gpus_value(result: _PlanResult) -> OutputValue:
    note = "The search ended before it found a size on which a layout fits."
    if result.fewest_gpus.is_exact:
        note = "In any layout; powers of two up to the cluster were tried."
    return OutputValue(result.fewest_gpus.gpus, note=note)


OUTPUTS: tuple[OutputSpec[_PlanResult], ...] = (
    OutputSpec("fits", "A layout fits", better="more", read=lambda r: r.best_layout is not None),
    _plan_property_output("tensor_parallel", "Tensor parallel", "tensor"),
    _plan_property_output("pipeline_parallel", "Pipeline parallel", "pipeline"),
    _plan_property_output("data_parallel", "Data parallel", "data"),
    _plan_property_output("context_parallel", "Context parallel", "context"),
    _plan_property_output("expert_parallel", "Expert parallel", "expert"),
    _plan_property_output("micro_batch", "Micro-batch", unit="sequence"),
    _plan_property_output("global_batch", "Global batch", unit="sequence"),
    _plan_property_output("interleave", "Interleaving", "chunks_per_stage"),
    _plan_property_output("recompute", "Recomputation"),
    _plan_property_output("zero", "ZeRO stage"),
    _plan_property_output("gpus", "GPUs", unit="GPU"),
    *map(
        _training_time_output_of_best_layout,
        ("step_time", "tokens_per_second_per_gpu", "mfu", "memory", "time", "gpu_hours", "cost"),
    ),
    OutputSpec("fewest_gpus", "Fewest GPUs", "GPU", "less", _fewest_gpus_value),
    OutputSpec(
        "reference_design",
        "Reference design",
        read=lambda r: format_reference_design_cell(r.gpu, r.inputs.gpus),
    ),
)
_STEPS = StepBuilder(OUTPUTS, "training-memory")

# The reference architecture for clusters of hundreds of each GPU.
_REFERENCE_DESIGN_BY_GPU = {
    "a100-sxm4-80": "dgx-superpod-a100",
    "a100-sxm4-40": "dgx-superpod-a100",
    "h100-sxm5-80": "dgx-superpod-h100",
    "h200-sxm5-141": "dgx-superpod-h100",
    "b200-sxm": "dgx-superpod-b200",
    "b300-sxm": "dgx-superpod-b300",
    "gb200-gpu": "dgx-superpod-gb200",
    "gb300-gpu": "dgx-superpod-gb200",
}


def estimate(inputs: ParallelismPlanInputs) -> Estimate:
    model, gpu = find_model(inputs.model), find_accelerator(inputs.gpu)
    reject_gpu_without_rates_or_memory(gpu, inputs.number_format)
    result = compute_parallelism_plan(inputs, model, gpu)
    first = result.best_layout
    return Estimate(
        name="parallelism-plan",
        verdict=_build_verdict(result),
        figures=read_figures(OUTPUTS, result),
        steps=_build_steps(result),
        pictures=(build_step_timeline(first.step_time), build_memory_bar(first.stage_memory, gpu))
        if first
        else (),
        tables=(build_ranking_table(result),) if first else (),
        notes=(
            *_build_notes(result),
            *rental_price_source_notes(gpu, inputs.usd_per_gpu_hour),
            real_capacity_note(gpu),
        ),
        changes=find_verdict_changes(result),
    )


def _build_verdict(result: ParallelismPlanResult) -> Verdict:
    gpu = result.gpu
    first = result.best_layout
    where = f"{format_number(result.inputs.gpus)} {gpu.name}"
    if first is None:
        return _no_layout_verdict(where, result)
    plan = first.plan
    rate = format_value(first.tokens_per_second / plan.gpus, "token/s")
    count = format_number(plan.gpus)
    text = f"{describe_layout(first)}, ZeRO {plan.zero}, on {count} {gpu.name}: {rate} each."
    text += _search_limit_text(result)
    memory = build_layout_memory_verdict(first, gpu)
    if memory.lead == UNSURE_LEAD:
        text += f" {memory.text}"
    return Verdict(memory.status, memory.lead, text)


UNDIVIDED_LEAD = "The batch cannot be divided."


def _no_layout_verdict(gpus_text: str, result: ParallelismPlanResult) -> Verdict:
    if not result.legal_count:
        batch = format_count(result.job.global_batch, "sequence")
        text = f"{batch} cannot be divided over {gpus_text} in any layout"
        if counts := result.nearest_gpu_counts_that_divide_batch:
            text += f"; {' or '.join(map(format_number, counts))} GPUs can share them"
        return Verdict("no", UNDIVIDED_LEAD, f"{text}.")
    if result.tried_count == result.legal_count:
        text = f"No layout of the model fits on {gpus_text} with this batch."
        return Verdict("no", "Does not fit.", text)
    text = f"No layout that was looked at fits on {gpus_text} with this batch."
    return Verdict("no", "No layout was found.", text + _search_limit_text(result))


def _search_limit_text(result: ParallelismPlanResult) -> str:
    """Return a note if the search reached its work limit; else empty."""
    if result.tried_count == result.legal_count:
        return ""
    tried, legal = format_number(result.tried_count), format_number(result.legal_count)
    return f" The search looked at {tried} of {legal} layouts; a better one may exist."


def format_reference_design_cell(gpu: Accelerator, gpus: int) -> str:
    known = _REFERENCE_DESIGN_BY_GPU.get(gpu.id)
    if known is None:
        return "none for this card"
    if gpus <= 8:
        return "one server"
    if gpus <= 64 and "gb" not in gpu.id:
        return find_reference_design("dgx-basepod").name
    design = find_reference_design(known)
    units = math.ceil(gpus / (design.gpus_per_unit or 256))
    return f"{design.name}, {format_count(units, 'scalable unit')}"


def _build_steps(result: ParallelismPlanResult) -> tuple[FormulaStep, ...]:
    first, run = result.best_layout, result.run_in_best_layout
    if first is None or run is None:
        return (_fitting_layouts_step(result),)
    return (
        _fitting_layouts_step(result),
        _STEPS.build_step(
            "memory",
            "states + activations in flight + logits + overhead and buffers",
            format_terms_of_exact_sum(
                (
                    first.stage_memory.weights
                    + first.stage_memory.gradients
                    + first.stage_memory.optimizer,
                    first.stage_memory.activations,
                    first.stage_memory.logits,
                    first.stage_memory.overhead + first.stage_memory.buffers,
                ),
                "B",
            ),
            first.memory_per_gpu,
            "korthikanti-2022",
        ),
        build_step_time_formula_step(run.plan, run.step_time),
        build_run_time_step(run),
        build_mfu_step(run),
    )


def _fitting_layouts_step(result: ParallelismPlanResult) -> FormulaStep:
    return FormulaStep(
        _build_fitting_layouts_label(result),
        "counted: degrees whose product is the GPUs, dividing heads, layers, experts and the batch",
        format_term(result.fitting_count),
        result.fitting_count,
        "",
        "megatron-2021",
        "parallelism",
    )


def describe_batch(inputs: ParallelismPlanInputs, global_batch: int) -> str:
    """Return the sequences and tokens of a step, and where they are from if nobody typed them."""
    sequences = format_count(global_batch, "sequence")
    tokens = format_count(global_batch * inputs.sequence, "token")
    note = f"{sequences} with {tokens} per step"
    if inputs.global_batch:
        return f"{note}."
    wanted = format_count(
        float(f"{choose_default_batch_before_rounding(inputs) * inputs.sequence:.2g}"), "token"
    )
    gpus = format_count(inputs.gpus, "GPU")
    return f"{note}, by default: about {wanted}, in as many sequences as {gpus} can share."


def _build_notes(result: ParallelismPlanResult) -> tuple[str, ...]:
    notes = [
        describe_measurements_behind_ranges(result.model, result.gpu),
        describe_batch(result.inputs, result.job.global_batch),
        "Failures, checkpoints and evaluation cost as much time as in training-time.",
        "Tensor parallelism stays within the inner links.",
    ]
    if result.inputs.objective == "cost":
        notes.append("Fewer GPUs take longer and lose less to communication.")
    return tuple(notes)


ENTRY = EstimateSpec(
    name="parallelism-plan",
    title="Parallelism plan",
    summary="The best layouts of a model on a cluster, with the reason for each.",
    group="Training",
    inputs_type=ParallelismPlanInputs,
    compute_estimate=estimate,
    outputs=OUTPUTS,
    most_important_outputs=("time", "tokens_per_second_per_gpu", "mfu"),
    main_inputs=("model", "gpu", "gpus"),
    topic="parallelism",
    is_search=True,
)
