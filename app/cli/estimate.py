"""The commands `estimate`, `catalogue` and `accuracy`."""

import argparse
import dataclasses
import difflib
import json
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from app.calculators import exports
from app.calculators.accuracy_page import accuracy_summary
from app.estimator import data_files, registry
from app.estimator import inputs as given_inputs
from app.estimator.hardware.part_values import FIELDS, CatalogPart, PartValue, list_parts
from app.estimator.inputs import InputSpec, InvalidInputsError
from app.estimator.registry import EstimateSpec
from app.estimator.result import Estimate, Figure, FormulaStep
from app.estimator.units import NBSP, format_value
from app.widgets.estimate_view import interval_text, verdict_phrase

_WIDTH = 88
_OWN_CASES = (
    "To answer cases of your own, run python -m evidence.accuracy FILE --json "
    "in a copy of the project's repository."
)


class _EstimateCommandError(Exception):
    """The command cannot be answered. The message says why."""


def estimate_command(arguments: Sequence[str]) -> int:
    """Run `headroom estimate …`. Returns 0, or 2 with one message per mistake."""
    try:
        sys.stdout.write(_answer_arguments(list(arguments)))
    except (_EstimateCommandError, InvalidInputsError) as refusal:
        for sentence in _problem_sentences(refusal):
            sys.stderr.write(f"headroom estimate: {sentence}\n")
        return 2
    return 0


def accuracy_command(arguments: Sequence[str]) -> int:
    """Print the accuracy of each kind of estimate. Returns 2 if arguments are given."""
    if arguments:
        sys.stderr.write(f"headroom accuracy: it takes no arguments. {_OWN_CASES}\n")
        return 2
    for row in accuracy_summary().kinds:
        error = f", median error {row.median}" if row.median else ""
        within = f"{row.within} of {row.cases} within tolerance"
        sys.stdout.write(f"{row.label}: {within}{error}\n")
    sys.stdout.write(f"The page /calculators/accuracy has every case. {_OWN_CASES}\n")
    return 0


def _answer_arguments(words: list[str]) -> str:
    as_json = "--json" in words
    if not words or words[0] in {"--list", "--help", "-h", "--json"}:
        listed = registry.entries()
        return _json_list(listed) if as_json else _list_estimates_text(listed)
    entry = _require_named_estimate(words[0])
    if "--help" in words or "-h" in words:
        return _estimate_help(entry)
    inputs = given_inputs.parse_inputs(entry.inputs, _parse_field_arguments(entry, words[1:]))
    estimate = entry.compute(inputs)
    if as_json:
        return _dump_json(exports.estimate_json(entry, inputs, estimate))
    return _estimate_report(estimate)


def _problem_sentences(refusal: Exception) -> list[str]:
    if isinstance(refusal, InvalidInputsError):
        return [f"--{p.field.replace('_', '-')}: {p.message}" for p in refusal.problems]
    return [str(refusal)]


def _require_named_estimate(name: str) -> EstimateSpec:
    entry = registry.find_estimate(name)
    if entry is not None:
        return entry
    names = [e.name for e in registry.entries()]
    near = difflib.get_close_matches(name.replace("_", "-"), names, n=1, cutoff=0.5)
    hint = f"Did you mean “{near[0]}”?" if near else f"Known: {', '.join(names)}."
    raise _EstimateCommandError(f"There is no estimate “{name}”. {hint}")


# --- reading the arguments ---------------------------------------------------------


def _parse_field_arguments(entry: EstimateSpec, words: list[str]) -> dict[str, str]:
    """Parse `--field value`, `--field=value` and, for a boolean, a bare `--flag`."""
    declared = given_inputs.input_specs(entry.inputs)
    typed: dict[str, str] = {}
    left = [word for word in words if word != "--json"]
    while left:
        option, equals, value = left.pop(0).partition("=")
        name = option.removeprefix("--").replace("-", "_")
        if not option.startswith("--") or name not in declared:
            raise _EstimateCommandError(_unknown_field_message(entry, option))
        if not equals:
            value = _next_value(option, declared[name], left)
        typed[name] = _from_file(value)
    return typed


def _next_value(option: str, declared: InputSpec, left: list[str]) -> str:
    if left and not left[0].startswith("--"):
        return left.pop(0)
    if declared.kind == "flag":
        return "yes"
    raise _EstimateCommandError(f"{option} wants a value: {_describe_accepted(declared)}.")


def _unknown_field_message(entry: EstimateSpec, word: str) -> str:
    names = [f"--{n.replace('_', '-')}" for n in given_inputs.input_specs(entry.inputs)]
    plain = word.partition("=")[0].replace("_", "-")
    near = difflib.get_close_matches(plain, names, n=1, cutoff=0.4)
    hint = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(names)}."
    return f"{word} is not an input of {entry.name}. {hint}"


def _from_file(word: str) -> str:
    """Return the content of the file for an argument `@config.json`; others unchanged."""
    if not word.startswith("@"):
        return word
    try:
        return Path(word[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise _EstimateCommandError(f"{word[1:]} cannot be read: {reason}.") from None


# --- writing the result ------------------------------------------------------------


def _list_estimates_text(entries: Sequence[EstimateSpec]) -> str:
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


def _estimate_help(entry: EstimateSpec) -> str:
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
    told = [declared.help or f"{declared.label}.", f"Takes {_describe_accepted(declared)}."]
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


def _describe_accepted(declared: InputSpec) -> str:
    return _NAMES.get(declared.kind) or given_inputs.describe_range(declared)


def _json_list(entries: Sequence[EstimateSpec]) -> str:
    return _dump_json([{"name": e.name, "title": e.title, "summary": e.summary} for e in entries])


def _dump_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _estimate_report(estimate: Estimate) -> str:
    verdict = estimate.verdict
    parts = [
        textwrap.fill(_with_plain_spaces(f"{verdict.lead} {verdict.text}"), _WIDTH),
        _figure_lines(estimate.figures),
        _step_lines(estimate.steps),
        *("\n".join(_bullet_lines(title, lines)) for title, lines in _other_sections(estimate)),
    ]
    return "\n\n".join(p for p in parts if p) + "\n"


def _figure_lines(figures: Sequence[Figure]) -> str:
    wide = max((len(f.label) for f in figures), default=0)
    return "\n".join(f"  {f.label:{wide}}  {_format_figure(f)}" for f in figures)


def _format_figure(figure: Figure) -> str:
    text = _with_plain_spaces(figure.words)
    if not figure.exact:
        text += f"  ({_with_plain_spaces(interval_text(figure))})"
    return f"{text}  {figure.note}" if figure.note else text


def _step_lines(steps: Sequence[FormulaStep]) -> str:
    if not steps:
        return ""
    lines = ["The working"]
    for step in steps:
        lines.append(f"  {step.label}: {_with_plain_spaces(format_value(step.value, step.unit))}")
        lines.append(f"      {step.formula}")
        if step.substituted:
            lines.append(f"      {step.substituted}")
        source = data_files.SOURCES.get(step.source)
        if source:
            lines.append(f"      from {source.publisher}, {source.title}")
    return "\n".join(lines)


def _other_sections(estimate: Estimate) -> list[tuple[str, list[str]]]:
    changes = [
        f"{c.label}: now {c.now}; at {c.at}: {verdict_phrase(c.becomes)}" for c in estimate.changes
    ]
    found = (
        ("What would change the verdict", changes),
        ("What this assumes", list(estimate.notes)),
    )
    return [(title, lines) for title, lines in found if lines]


def _bullet_lines(title: str, lines: Sequence[str]) -> list[str]:
    return [
        title,
        *(
            textwrap.fill(
                _with_plain_spaces(line), _WIDTH, initial_indent="  - ", subsequent_indent="    "
            )
            for line in lines
        ),
    ]


def _with_plain_spaces(text: str) -> str:
    return text.replace(NBSP, " ")


def catalogue_command(arguments: Sequence[str]) -> int:
    """Run `headroom catalogue …`. Returns 0, or 1 if nothing matches."""
    given = _build_parser().parse_args(arguments)
    chosen = [part for part in list_parts() if _matches_name(part, given)]
    if not chosen:
        sys.stderr.write(f"headroom catalogue: nothing is like that; {_list_offered_makers()}\n")
        return 1
    if given.json:
        told = [_part_json(part, missing=given.missing) for part in chosen]
        sys.stdout.write(json.dumps(told, ensure_ascii=False, indent=1) + "\n")
    elif given.missing:
        sys.stdout.write("\n".join(_unknown_value_lines(chosen)) + "\n")
    elif given.part:
        sys.stdout.write("\n\n".join(_full_part_text(part) for part in chosen) + "\n")
    else:
        sys.stdout.write("\n".join(_part_lines(chosen)) + "\n")
    return 0


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="headroom catalogue", description="List the hardware of the catalog."
    )
    parser.add_argument("part", nargs="*", help="ids; all values of these parts")
    parser.add_argument("--kind", choices=tuple(FIELDS))
    parser.add_argument("--vendor", help="the maker, or the beginning of its name")
    parser.add_argument(
        "--missing", action="store_true", help="say which values are unknown, and why"
    )
    parser.add_argument("--json", action="store_true")
    return parser


def _matches_name(part: CatalogPart, given: argparse.Namespace) -> bool:
    maker = (given.vendor or "").casefold()
    return (
        (not given.part or part.id in given.part)
        and (not given.kind or part.kind == given.kind)
        and part.vendor.casefold().startswith(maker)
        and not (given.missing and not part.missing)
    )


def _list_offered_makers() -> str:
    makers = ", ".join(dict.fromkeys(part.vendor for part in list_parts()))
    return f"makers are {makers}."


def _part_lines(chosen: Sequence[CatalogPart]) -> list[str]:
    """Return one line per part, with the number of its unknown values."""
    wide = max(len(part.id) for part in chosen)
    kinds = max(len(part.kind) for part in chosen)
    lines = [
        f"{part.id:{wide}}  {part.kind:{kinds}}  {part.vendor}, {part.name}{_unknown_count_suffix(part)}"
        for part in chosen
    ]
    return [*lines, f"{len(chosen)} parts"]


def _unknown_count_suffix(part: CatalogPart) -> str:
    count = len(part.missing)
    return f" ({count} unknown)" if count else ""


def _unknown_value_lines(chosen: Iterable[CatalogPart]) -> list[str]:
    lines = []
    for part in chosen:
        lines.append(f"{part.id}")
        lines += [f"    {v.name}: {v.reason}" for v in part.missing]
    return lines


def _full_part_text(part: CatalogPart) -> str:
    """Return every value of a part with its convention, source and date."""
    lines = [f"{part.id}: {part.vendor}, {part.name}"]
    for group, values in part.groups.items():
        lines.append(f"  {group}")
        lines += [f"    {_value_line(value)}" for value in values]
    return "\n".join(lines).replace("\u00a0", " ")


def _value_line(value: PartValue) -> str:
    told = ", ".join(t for t in (value.words, value.field.says, value.beside) if t)
    if value.state != "known":
        return f"{value.field.label}: {value.words}. {value.reason}"
    doubt = " (unverified)" if value.unverified else ""
    cited = value.sources[0] if value.own else f"{len(value.sources)} sources"
    return f"{value.field.label}: {told}{doubt} [{cited}, {value.read_on}]"


def _part_json(part: CatalogPart, *, missing: bool) -> dict[str, Any]:
    """Return a part in base units. With `missing`, only its unknown values."""
    values = part.missing if missing else part.values
    return {
        "id": part.id,
        "name": part.name,
        "kind": part.kind,
        "vendor": part.vendor,
        "note": part.note,
        "values": {value.name: _catalogue_value(value) for value in values},
    }


def _catalogue_value(value: PartValue) -> dict[str, Any]:
    if value.state != "known":
        return {"state": value.state, "reason": value.reason}
    return {
        "value": value.number,
        "unit": value.field.unit,
        "convention": value.field.says,
        "words": value.words.replace("\u00a0", " "),
        "beside": value.beside.replace("\u00a0", " "),
        "sources": list(value.sources),
        "read_on": str(value.read_on),
        "unverified": value.unverified,
    }
