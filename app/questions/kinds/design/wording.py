"""The conditions of a design exercise in words, before and after it is answered."""

from app.content.numbers.estimates import FigureError, require_estimate
from app.content.numbers.expressions import ExpressionError
from app.questions.kinds.design.conditions import Condition, read_condition
from app.questions.kinds.design.model import DesignAnswer

_WORDS = {"<=": "at most", ">=": "at least", "<": "less than", ">": "more than"}


def conditions_of(design: DesignAnswer) -> tuple[tuple[str, str], ...]:
    """Each condition as (what is looked at, what it has to be).

    Raises Unanswerable or BadExpression; the check lets no such exercise pass.
    """
    labels = {o.name: o.label for o in require_estimate(design.estimate).outputs}
    return tuple(
        (subject_of(condition, labels), limit_of(condition, labels))
        for condition in map(read_condition, design.accept)
    )


def described(design: DesignAnswer) -> tuple[tuple[str, str], ...]:
    """`conditions_of`, or the conditions as they were written."""
    try:
        return conditions_of(design)
    except (FigureError, ExpressionError):
        return tuple((text, "") for text in design.accept)


def subject_of(condition: Condition, labels: dict[str, str]) -> str:
    """What a condition looks at, e.g. “Time to first token, 95th percentile”."""
    text = condition.left.text.strip()
    return labels.get(text, text)


def limit_of(condition: Condition, labels: dict[str, str]) -> str:
    """What it has to be, e.g. “at most 1 s” or “at most 1.2 × the best possible”."""
    if condition.right is None:
        return "yes"
    words = condition.right.text.strip()
    for name in condition.bests:
        words = words.replace(f"best_of_{name}", "the best that is possible")
    words = words.replace("*", "×")
    for name, label in labels.items():
        words = words.replace(f" {name} ", f" {label} ")
    return f"{_WORDS.get(condition.operator, 'exactly')} {words}"
