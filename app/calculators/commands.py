"""The commands `headroom estimate` and `headroom accuracy`."""

import dataclasses
import difflib
import json
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.calculators import exports
from app.calculators.accuracy import standing
from app.estimator import inputs as given_inputs
from app.estimator import registry, sources
from app.estimator.estimate import Estimate, Figure, FormulaStep
from app.estimator.inputs import InputSpec, InvalidInputsError
from app.estimator.registry import EstimateSpec
from app.estimator.units import NBSP, format_value
from app.instruments.readings import interval, within

_WIDTH = 88
_OWN_CASES = (
    "To answer cases of your own, run python -m evidence.accuracy FILE --json "
    "in a copy of the project's repository."
)


class _EstimateCommandError(Exception):
    """The command cannot be answered; the sentences say why."""


def estimate_command(arguments: Sequence[str]) -> int:
    """Answer `headroom estimate ...`; 0, or 2 with a sentence for each mistake."""
    try:
        sys.stdout.write(_answer(list(arguments)))
    except (_EstimateCommandError, InvalidInputsError) as refusal:
        for sentence in _sentences(refusal):
            sys.stderr.write(f"headroom estimate: {sentence}\n")
        return 2
    return 0


def accuracy_command(arguments: Sequence[str]) -> int:
    """Print how near each kind of estimate comes; 2 where a file of cases is given."""
    if arguments:
        sys.stderr.write(f"headroom accuracy: it takes no arguments. {_OWN_CASES}\n")
        return 2
    for row in standing().kinds:
        error = f", median error {row.median}" if row.median else ""
        within = f"{row.within} of {row.cases} within tolerance"
        sys.stdout.write(f"{row.label}: {within}{error}\n")
    sys.stdout.write(f"The page /calculators/accuracy has every case. {_OWN_CASES}\n")
    return 0


def _answer(words: list[str]) -> str:
    as_json = "--json" in words
    if not words or words[0] in {"--list", "--help", "-h", "--json"}:
        listed = registry.entries()
        return _json_list(listed) if as_json else _list(listed)
    entry = _entry(words[0])
    if "--help" in words or "-h" in words:
        return _help(entry)
    inputs = given_inputs.parse_inputs(entry.inputs, _typed(entry, words[1:]))
    estimate = entry.compute(inputs)
    if as_json:
        return _dump(exports.answer(entry, inputs, estimate))
    return _report(estimate)


def _sentences(refusal: Exception) -> list[str]:
    if isinstance(refusal, InvalidInputsError):
        return [f"--{p.field.replace('_', '-')}: {p.message}" for p in refusal.problems]
    return [str(refusal)]


def _entry(name: str) -> EstimateSpec:
    entry = registry.find_estimate(name)
    if entry is not None:
        return entry
    names = [e.name for e in registry.entries()]
    near = difflib.get_close_matches(name.replace("_", "-"), names, n=1, cutoff=0.5)
    hint = f"Did you mean “{near[0]}”?" if near else f"Known: {', '.join(names)}."
    raise _EstimateCommandError(f"There is no estimate “{name}”. {hint}")


# --- reading the arguments ---------------------------------------------------------


def _typed(entry: EstimateSpec, words: list[str]) -> dict[str, str]:
    """Read `--field value`, `--field=value` and, for a yes, a bare `--flag`."""
    declared = given_inputs.input_specs(entry.inputs)
    typed: dict[str, str] = {}
    left = [word for word in words if word != "--json"]
    while left:
        option, equals, value = left.pop(0).partition("=")
        name = option.removeprefix("--").replace("-", "_")
        if not option.startswith("--") or name not in declared:
            raise _EstimateCommandError(_unknown(entry, option))
        if not equals:
            value = _next_value(option, declared[name], left)
        typed[name] = _from_file(value)
    return typed


def _next_value(option: str, declared: InputSpec, left: list[str]) -> str:
    if left and not left[0].startswith("--"):
        return left.pop(0)
    if declared.kind == "flag":
        return "yes"
    raise _EstimateCommandError(f"{option} wants a value: {_takes(declared)}.")


def _unknown(entry: EstimateSpec, word: str) -> str:
    names = [f"--{n.replace('_', '-')}" for n in given_inputs.input_specs(entry.inputs)]
    plain = word.partition("=")[0].replace("_", "-")
    near = difflib.get_close_matches(plain, names, n=1, cutoff=0.4)
    hint = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(names)}."
    return f"{word} is not an input of {entry.name}. {hint}"


def _from_file(word: str) -> str:
    """`@config.json` stands for what is in that file."""
    if not word.startswith("@"):
        return word
    try:
        return Path(word[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise _EstimateCommandError(f"{word[1:]} cannot be read: {reason}.") from None


# --- writing the answer ------------------------------------------------------------


def _list(entries: Sequence[EstimateSpec]) -> str:
    wide = max((len(e.name) for e in entries), default=0)
    lines = [f"  {e.name:{wide}}  {e.summary}" for e in entries]
    return "\n".join(
        (
            "usage: headroom estimate NAME [--FIELD VALUE ...] [--json]",
            "       headroom estimate NAME --help",
            "",
            *lines,
            "",
        )
    )


def _help(entry: EstimateSpec) -> str:
    declared = given_inputs.input_specs(entry.inputs)
    defaults = {f.name: f.default for f in dataclasses.fields(entry.inputs)}
    parts = [
        f"usage: headroom estimate {entry.name} [--FIELD VALUE ...] [--json]",
        textwrap.fill(entry.summary, _WIDTH),
    ]
    for group in dict.fromkeys(d.group for d in declared.values()):
        lines = [group or "Inputs"]
        for name, one in declared.items():
            if one.group == group:
                lines += _help_lines(name, one, defaults[name])
        parts.append("\n".join(lines))
    parts.append("Answers: " + ", ".join(o.name for o in entry.outputs) + ".")
    return "\n\n".join(parts) + "\n"


def _help_lines(name: str, declared: InputSpec, default: Any) -> list[str]:
    shown = "" if default in {None, ""} else given_inputs.format_input(declared, default)
    told = [declared.help or f"{declared.label}.", f"Takes {_takes(declared)}."]
    if shown:
        told.append(f"Otherwise {shown}.")
    indent = " " * 6
    text = textwrap.fill(" ".join(told), _WIDTH, initial_indent=indent, subsequent_indent=indent)
    return [f"  --{name.replace('_', '-')}", text]


_NAMES = {
    "model": "a model of the catalog, a size such as 70B, or @FILE",
    "gpu": "an accelerator of the catalog",
    "system": "a system of the catalog",
    "network": "a network part of the catalog",
    "text": "text, or @FILE",
}


def _takes(declared: InputSpec) -> str:
    return _NAMES.get(declared.kind) or given_inputs.describe_range(declared)


def _json_list(entries: Sequence[EstimateSpec]) -> str:
    return _dump([{"name": e.name, "title": e.title, "summary": e.summary} for e in entries])


def _dump(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _report(estimate: Estimate) -> str:
    verdict = estimate.verdict
    parts = [
        textwrap.fill(_plain(f"{verdict.lead} {verdict.text}"), _WIDTH),
        _figures(estimate.figures),
        _working(estimate.steps),
        *("\n".join(_bullets(title, lines)) for title, lines in _rest(estimate)),
    ]
    return "\n\n".join(p for p in parts if p) + "\n"


def _figures(figures: Sequence[Figure]) -> str:
    wide = max((len(f.label) for f in figures), default=0)
    return "\n".join(f"  {f.label:{wide}}  {_value(f)}" for f in figures)


def _value(figure: Figure) -> str:
    text = _plain(figure.words)
    if not figure.exact:
        text += f"  ({_plain(interval(figure))})"
    return f"{text}  {figure.note}" if figure.note else text


def _working(steps: Sequence[FormulaStep]) -> str:
    if not steps:
        return ""
    lines = ["The working"]
    for step in steps:
        lines.append(f"  {step.label}: {_plain(format_value(step.value, step.unit))}")
        lines.append(f"      {step.formula}")
        if step.substituted:
            lines.append(f"      {step.substituted}")
        source = sources.SOURCES.get(step.source)
        if source:
            lines.append(f"      from {source.publisher}, {source.title}")
    return "\n".join(lines)


def _rest(estimate: Estimate) -> list[tuple[str, list[str]]]:
    changes = [f"{c.label}: now {c.now}; at {c.at}: {within(c.becomes)}" for c in estimate.changes]
    found = (
        ("What would change the verdict", changes),
        ("What this assumes", list(estimate.notes)),
    )
    return [(title, lines) for title, lines in found if lines]


def _bullets(title: str, lines: Sequence[str]) -> list[str]:
    return [
        title,
        *(
            textwrap.fill(_plain(line), _WIDTH, initial_indent="  - ", subsequent_indent="    ")
            for line in lines
        ),
    ]


def _plain(text: str) -> str:
    return text.replace(NBSP, " ")
