"""A ranking of layouts in words: what each is, and why it loses to the best."""

from app.estimator.estimate import ResultTable
from app.estimator.estimates.parallelism_plan.search import LayoutCandidate
from app.estimator.units import format_value

PARTS = (
    ("matmul", "matrix products"),
    ("attention", "attention"),
    ("head", "the output head"),
    ("traffic", "memory traffic"),
    ("launch", "launches"),
    ("tensor", "tensor-parallel traffic"),
    ("expert", "expert traffic"),
    ("context", "context traffic"),
    ("gather", "gathering weights"),
    ("bubble", "the pipeline bubble"),
    ("data", "gradients and weights"),
    ("optimizer", "the optimizer"),
)


def described(candidate: LayoutCandidate) -> str:
    """A layout in one line, degrees of one left out.

    Tensor 8 × pipeline 16 (8 chunks a stage) × data 128.
    """
    plan = candidate.plan
    degrees = (
        ("tensor", plan.tensor),
        ("pipeline", plan.pipeline),
        ("context", plan.context),
        ("data", plan.data),
    )
    chunks = f" ({plan.pieces} chunks a stage)" if plan.pieces > 1 else ""
    named = [
        f"{name} {degree}{chunks if name == 'pipeline' else ''}"
        for name, degree in degrees
        if degree > 1
    ]
    text = " × ".join(named) or "one GPU"
    if plan.expert > 1:
        text += f", experts over {plan.expert}"
    if plan.recompute == "full":
        text += ", full recomputation"
    elif plan.recompute == "selective":
        text += ", selective recomputation"
    return text[0].upper() + text[1:]


def ranking(ranked: tuple[LayoutCandidate, ...]) -> ResultTable:
    """The layouts in order, each with what it loses to the first."""
    first = ranked[0]
    rows = []
    for rank, candidate in enumerate(ranked, 1):
        plan = candidate.plan
        rows.append(
            (
                str(rank),
                _in_full(candidate),
                (float(plan.gpus), "GPU"),
                (candidate.step.total, "s"),
                (candidate.tokens_per_second / plan.gpus, "token/s"),
                (candidate.memory, "B"),
                reason(first, candidate) if rank > 1 else "the best",
            )
        )
    columns = ("Rank", "Layout", "GPUs", "One step", "Per GPU", "Memory", "Why")
    return ResultTable("Layouts that fit, best first", columns, tuple(rows))


def _in_full(candidate: LayoutCandidate) -> str:
    plan = candidate.plan
    batch = f", micro-batch {plan.micro_batch}, ZeRO {plan.zero}"
    return described(candidate) + batch


def reason(first: LayoutCandidate, other: LayoutCandidate) -> str:
    """What a layout loses to the best one: the part that grew most."""
    grown = {label: _spent(other, name) - _spent(first, name) for name, label in PARTS}
    label = max(grown, key=lambda part: grown[part])
    scale = other.plan.tokens / other.plan.gpus
    lost = grown[label] * scale
    if lost <= 0.001 * other.step.total:
        return "about as fast"
    won = min(grown, key=lambda part: grown[part])
    text = f"loses {format_value(lost, 's')} to {label}"
    gained = -grown[won] * scale
    if gained > 0.3 * lost:
        text += f", gains {format_value(gained, 's')} in {won}"
    return text


def _spent(candidate: LayoutCandidate, part: str) -> float:
    """GPU-seconds per token that go to a part of the step."""
    seconds: float = getattr(candidate.step, part)
    return seconds * candidate.plan.gpus / candidate.plan.tokens
