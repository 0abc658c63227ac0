"""Design exercises: what is fixed, what is chosen, what has to hold."""

from collections.abc import Mapping

from app.content import strict_yaml
from app.content.identity import did_you_mean
from app.content.numbers.estimates import FigureError, require_estimate
from app.content.numbers.expressions import ExpressionError, Value
from app.content.numbers.quantities import Quantity
from app.content.source_file import SourceFile
from app.content.strict_yaml import YamlMapping
from app.estimator.inputs import input_specs
from app.estimator.registry import EstimateSpec
from app.questions.kinds.design.conditions import judge, read_condition
from app.questions.kinds.design.model import DesignAnswer
from app.questions.written import ItemComment

_NONE = YamlMapping({}, {}, 1, 1)
_EXAMPLES = {
    "estimate": "estimate: and the name of one, such as inference-memory",
    "choose": "choose: and the inputs that are left open, such as [gpu]",
    "accept": "accept: and what has to hold, such as [fits]",
}


def design(comment: ItemComment) -> DesignAnswer:
    """A plan to be judged by an estimate."""
    values = comment.fields.values
    given = values.get("given")
    fixed: Mapping[str, str] = (
        {n: strict_yaml.single_text(v) for n, v in given.values.items()}
        if isinstance(given, YamlMapping)
        else {}
    )
    chosen = tuple(w.text for w in strict_yaml.text_list(values.get("choose")))
    accept = tuple(w.text for w in strict_yaml.text_list(values.get("accept")))
    return DesignAnswer(comment.word("estimate"), fixed, chosen, accept)


def check_design(made: DesignAnswer, comment: ItemComment, sheet: SourceFile) -> None:
    """E80, E81, E11, E13: unknown and doubled names; notes the estimate."""
    for name in ("estimate", "choose", "accept"):
        node = comment.fields.values.get(name)
        if not node or not any(word.text for word in strict_yaml.text_list(node)):
            message = f"A design exercise needs “{name}”."
            place = comment.place(name) if node else (comment.line, comment.column)
            sheet.report("E13", *place, message, f"Write {_EXAMPLES[name]}.")
            return
    if not isinstance(comment.fields.values.get("given", _NONE), YamlMapping):
        message = "“given” is not a list of inputs with their values."
        hint = "Write given: {model: 70B, context: 8192}."
        sheet.report("E13", *comment.place("given"), message, hint)
    try:
        entry = require_estimate(made.estimate)
    except FigureError as error:
        place = comment.place("estimate")
        sheet.report(error.code, *place, error.message, error.hint)
        return
    sheet.mention("calculator", entry.name, *comment.place("estimate"))
    _check_inputs(made, entry, comment, sheet)
    for text in made.accept:
        _check_condition(text, entry, comment, sheet)


def _check_inputs(
    made: DesignAnswer, entry: EstimateSpec, comment: ItemComment, sheet: SourceFile
) -> None:
    fields = input_specs(entry.inputs)
    named = [(n, "given") for n in made.given] + [(n, "choose") for n in made.choose]
    for name, where in named:
        if name not in fields:
            message = f"“{name}” is not an input of {entry.name}."
            hint = did_you_mean(name, fields)
            sheet.report("E81", *comment.place(where), message, hint)
        elif where == "choose" and name in made.given:
            message = f"“{name}” is given and to be chosen."
            hint = "Take it out of one of the two."
            sheet.report("E11", *comment.place(where), message, hint)
    for name in dict.fromkeys(n for n in made.choose if made.choose.count(n) > 1):
        message = f"“{name}” is to be chosen twice."
        sheet.report("E11", *comment.place("choose"), message, "Name it once.")


def _check_condition(
    text: str, entry: EstimateSpec, comment: ItemComment, sheet: SourceFile
) -> None:
    """Read a condition and try it on outputs of one unit each."""
    place = comment.place("accept")
    sample: dict[str, Value] = {
        o.name: Quantity(1.0, o.unit) if o.unit else Quantity(1.0, None) for o in entry.outputs
    }
    try:
        condition = read_condition(text)
        unknown = sorted(condition.names - set(sample))
        if unknown:
            message = f"“{unknown[0]}” is not an output of {entry.name}."
            hint = did_you_mean(unknown[0], sample)
            sheet.report("E81", *place, message, hint)
            return
        best = {n: v for n, v in sample.items() if isinstance(v, Quantity)}
        judge(condition, sample, {n: best[n] for n in condition.bests})
    except ExpressionError as error:
        sheet.report(error.code, *place, error.message, error.hint)
