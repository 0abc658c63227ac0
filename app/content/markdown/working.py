"""The working of a figure, printed beside its paragraph."""

import math

from markdown_it.common.utils import escapeHtml

from app.content.markdown.checked_numbers import ComputedFigure, unbroken
from app.content.numbers.quantities import Quantity
from app.estimator.estimate import FormulaStep
from app.estimator.units import format_value

_MOST_STEPS = 4


def figure_steps_html(text: str, output: str, answer: ComputedFigure) -> str:
    """The steps that lead to one output, or nothing when none is told."""
    steps = _steps_of(output.replace("-", "_"), answer)
    if not steps:
        return ""
    shown = escapeHtml(unbroken(text))
    lines = "".join(map(_line, steps))
    address = escapeHtml(answer.address)
    link = f'<p class="on-screen"><a href="{address}">Change the inputs</a></p>'
    return (
        f'<aside class="side" aria-label="Working for {shown}">'
        f"<p><b>{shown}</b>, the working</p>{lines}{link}</aside>\n"
    )


def _steps_of(output: str, answer: ComputedFigure) -> list[FormulaStep]:
    """The last steps that are told for an output, if they arrive at its value."""
    if answer.estimate is None or not isinstance(answer.value, Quantity):
        return []
    steps = [s for s in answer.estimate.steps if s.figure == output][-_MOST_STEPS:]
    if not steps or not math.isclose(steps[-1].value, answer.value.value, rel_tol=1e-6):
        return []
    return steps


def _line(step: FormulaStep) -> str:
    result = f"{step.substituted} = {format_value(step.value, step.unit)}"
    return f"<code>{escapeHtml(step.formula)}</code><code>{escapeHtml(result)}</code>"
