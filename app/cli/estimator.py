"""The commands `estimate`, `catalogue` and `accuracy`."""

import argparse
import dataclasses
import difflib
import json
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from app.calculators.exports import build_estimate_json, dump_json, replace_no_break_spaces
from app.cli import CommandError, align_columns
from app.estimator import data_files, registry
from app.estimator.hardware.part_values import CatalogPart, PartValue, list_parts
from app.estimator.inputs import (
    InputSpec,
    InvalidInputsError,
    describe_valid_values,
    format_value_as_typed,
    input_specs,
    parse_inputs,
)
from app.estimator.models.lookup import shorten_config
from app.estimator.registry import EstimateSpec
from app.estimator.result import Estimate, Figure, FormulaStep, SubEstimate
from app.estimator.units import format_value
from app.widgets.estimate_view import format_interval_or_exact, format_verdict_within_sentence

_LINE_WIDTH = 88
_OWN_CASES = (
    "To answer cases of your own, run python -m evidence.accuracy FILE --json "
    "in a copy of the project's repository."
)


def run_estimate_command(arguments: Sequence[str]) -> int:
    """Run `headroom estimate …`. Returns 0, or 2 with one message per mistake."""
    try:
        print(_build_estimate_command_output(arguments), end="")
    except InvalidInputsError as error:
        for problem in error.problems:
            message = f"--{problem.field.replace('_', '-')}: {problem.message}"
            print(f"headroom estimate: {message}", file=sys.stderr)
        return 2
    except CommandError as error:
        print(f"headroom estimate: {error}", file=sys.stderr)
        return 2
    return 0


def run_accuracy_command(options: argparse.Namespace) -> int:
    """Print the accuracy of each kind of estimate. Returns 2 if arguments are given."""
    from app.calculators.accuracy_report import build_accuracy_summary

    if options.arguments:
        print(f"headroom accuracy: it takes no arguments. {_OWN_CASES}", file=sys.stderr)
        return 2
    for row in build_accuracy_summary().rows:
        error = f", median error {row.median_error}" if row.median_error else ""
        print(
            f"{row.label}: {row.within_tolerance_count} of {row.case_count} within tolerance{error}"
        )
    print(f"The page /calculators/accuracy has every case. {_OWN_CASES}")
    return 0


def _build_estimate_command_output(arguments: Sequence[str]) -> str:
    as_json = "--json" in arguments
    if not arguments or arguments[0] in {"--list", "--help", "-h", "--json"}:
        entries = registry.list_estimates()
        if not as_json:
            return _format_list_of_estimates(entries)
        listed = [{"name": e.name, "title": e.title, "summary": e.summary} for e in entries]
        return f"{dump_json(listed, indent=2)}\n"
    entry = _require_named_estimate(arguments[0])
    if "--help" in arguments or "-h" in arguments:
        return _format_help_of_estimate(entry)
    typed = _parse_field_arguments(entry, arguments[1:])
    values = parse_inputs(entry.inputs_type, typed)
    estimate = entry.compute_with_k_suffix_notes(values, {} if as_json else typed)
    if as_json:
        return f"{dump_json(build_estimate_json(entry, values, estimate), indent=2)}\n"
    return _format_estimate(estimate)


def _require_named_estimate(name: str) -> EstimateSpec:
    entry = registry.find_estimate(name)
    if entry is not None:
        return entry
    names = [e.name for e in registry.list_estimates()]
    close_matches = difflib.get_close_matches(name.replace("_", "-"), names, n=1, cutoff=0.5)
    hint = f"Did you mean “{close_matches[0]}”?" if close_matches else f"Known: {', '.join(names)}."
    raise CommandError(f"There is no estimate “{name}”. {hint}")


def _parse_field_arguments(entry: EstimateSpec, arguments: Sequence[str]) -> dict[str, str]:
    """Parse `--field value`, `--field=value` and, for a boolean, a bare `--flag`."""
    specs = input_specs(entry.inputs_type)
    defaults = {field.name: field.default for field in dataclasses.fields(entry.inputs_type)}
    values: dict[str, str] = {}
    remaining = [argument for argument in arguments if argument != "--json"]
    while remaining:
        option, equals, value = remaining.pop(0).partition("=")
        name = option.removeprefix("--").replace("-", "_")
        if not option.startswith("--") or name not in specs:
            raise CommandError(_unknown_field_message(entry, option))
        if not equals and remaining and not remaining[0].startswith("--"):
            value = remaining.pop(0)
        elif not equals and specs[name].kind == "flag":
            value = "yes"
        needs_value = not value and not specs[name].clearable and defaults[name] is not None
        if needs_value:  # In a form, an empty field takes its default; here, somebody lost a value.
            raise CommandError(f"{option} needs a value: {_describe_accepted_values(specs[name])}.")
        values[name] = _argument_or_content_of_file(option, value)
    return values


def _unknown_field_message(entry: EstimateSpec, option: str) -> str:
    names = [f"--{n.replace('_', '-')}" for n in input_specs(entry.inputs_type)]
    close_matches = difflib.get_close_matches(option.replace("_", "-"), names, n=1, cutoff=0.4)
    hint = f"Did you mean {close_matches[0]}?" if close_matches else f"Known: {', '.join(names)}."
    return f"{option} is not an input of {entry.name}. {hint}"


def _argument_or_content_of_file(option: str, value: str) -> str:
    """Return the content of the file for an argument `@config.json`; others unchanged.

    A configuration may be as long as published ones are, since its reader sent it.
    """
    if not value.startswith("@"):
        return value
    try:
        content = Path(value[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise CommandError(f"{value[1:]} cannot be read: {reason}.") from None
    if not content.strip():
        raise CommandError(f"{option}: {value[1:]} is empty.")
    return shorten_config(content)


def _format_list_of_estimates(entries: Sequence[EstimateSpec]) -> str:
    name_width = max((len(e.name) for e in entries), default=0)
    lines = [
        "usage: headroom estimate NAME [--FIELD VALUE ...] [--json]",
        "       headroom estimate NAME --help",
        "",
        *(f"  {e.name:{name_width}}  {e.summary}" for e in entries),
    ]
    return "\n".join(lines) + "\n"


def _format_help_of_estimate(entry: EstimateSpec) -> str:
    specs = input_specs(entry.inputs_type)
    defaults = {f.name: f.default for f in dataclasses.fields(entry.inputs_type)}
    parts = [
        f"usage: headroom estimate {entry.name} [--FIELD VALUE ...] [--json]",
        textwrap.fill(entry.summary, _LINE_WIDTH),
    ]
    for group in dict.fromkeys(spec.group for spec in specs.values()):
        lines = [group or "Inputs"]
        for name, spec in specs.items():
            if spec.group == group:
                lines += _format_help_of_input(name, spec, defaults[name])
        parts.append("\n".join(lines))
    parts.append("Answers: " + ", ".join(o.name for o in entry.outputs) + ".")
    return "\n\n".join(parts) + "\n"


def _format_help_of_input(name: str, spec: InputSpec, default: Any) -> list[str]:
    sentences = [spec.help or f"{spec.label}.", f"Takes {_describe_accepted_values(spec)}."]
    if default not in {None, ""} and (default_text := format_value_as_typed(spec, default)):
        sentences.append(f"Default: {default_text}.")
    indent = " " * 6
    text = " ".join(sentences)
    return [
        f"  --{name.replace('_', '-')}",
        textwrap.fill(text, _LINE_WIDTH, initial_indent=indent, subsequent_indent=indent),
    ]


_VALUE_BY_KIND = {
    "model": "a model of the catalog, a size such as 70B, or @FILE",
    "gpu": "an accelerator of the catalog",
    "system": "a system of the catalog",
    "network": "a network part of the catalog",
    "text": "text, or @FILE",
}


def _describe_accepted_values(spec: InputSpec) -> str:
    return _VALUE_BY_KIND.get(spec.kind) or describe_valid_values(spec)


def _format_estimate(estimate: Estimate) -> str:
    verdict = estimate.verdict
    changes = [
        f"{c.label}: now {c.current_value}; at {c.new_values_text}: {format_verdict_within_sentence(c.verdict_after)}"
        for c in estimate.changes
    ]
    parts = [
        textwrap.fill(replace_no_break_spaces(f"{verdict.lead} {verdict.text}"), _LINE_WIDTH),
        _format_figures(estimate.figures),
        *(_format_section(section) for section in estimate.sections),
        _format_formula_steps(estimate.steps),
        _format_bullet_list("What would change the verdict", changes),
        _format_bullet_list("What this assumes", estimate.notes),
    ]
    return "\n\n".join(p for p in parts if p) + "\n"


def _format_section(section: SubEstimate) -> str:
    """Return a section of a larger estimate: its heading, its verdict, its first figures."""
    entry, result = registry.require_estimate(section.estimate_name), section.estimate
    verdict = replace_no_break_spaces(f"{result.verdict.lead} {result.verdict.text}")
    figures = [
        f for name in entry.most_important_outputs if (f := result.find_figure(name)) and f.applies
    ]
    return "\n".join(
        (
            f"{section.full_heading} ({entry.name})",
            textwrap.fill(verdict, _LINE_WIDTH, initial_indent="  ", subsequent_indent="  "),
            _format_figures(figures),
        )
    )


def _format_figures(figures: Sequence[Figure]) -> str:
    label_width = max((len(f.label) for f in figures), default=0)
    return "\n".join(f"  {f.label:{label_width}}  {_format_figure(f)}" for f in figures)


def _format_figure(figure: Figure) -> str:
    text = replace_no_break_spaces(figure.formatted_value)
    if figure.low is not None:
        text += f"  ({replace_no_break_spaces(format_interval_or_exact(figure))})"
    return f"{text}  {figure.note}" if figure.note else text


def _format_formula_steps(steps: Sequence[FormulaStep]) -> str:
    if not steps:
        return ""
    lines = ["The working"]
    for step in steps:
        lines.append(
            f"  {step.label}: {replace_no_break_spaces(format_value(step.value, step.unit))}"
        )
        lines.append(f"      {step.formula}")
        if step.substituted:
            lines.append(f"      {step.substituted}")
        source = data_files.SOURCES.get(step.source)
        if source:
            lines.append(f"      from {source.publisher}, {source.title}")
    return "\n".join(lines)


def _format_bullet_list(title: str, lines: Sequence[str]) -> str:
    """Return lines as a list below a title; empty without lines."""
    items = (
        textwrap.fill(
            replace_no_break_spaces(line),
            _LINE_WIDTH,
            initial_indent="  - ",
            subsequent_indent="    ",
        )
        for line in lines
    )
    return "\n".join((title, *items)) if lines else ""


def run_catalogue_command(options: argparse.Namespace) -> int:
    """Run `headroom catalogue …`. Returns 1 if nothing matches."""
    vendor_prefix = (options.vendor or "").casefold()
    parts = [
        part
        for part in list_parts()
        if (not options.part or part.id in options.part)
        and (not options.kind or part.kind == options.kind)
        and part.vendor.casefold().startswith(vendor_prefix)
        and not (options.missing and not part.missing_values)
    ]
    if not parts:
        vendors = ", ".join(dict.fromkeys(part.vendor for part in list_parts()))
        print(f"headroom catalogue: no part matches; makers are {vendors}.", file=sys.stderr)
        return 1
    if options.json:
        rows = [_part_as_json_dict(part, only_missing_values=options.missing) for part in parts]
        print(json.dumps(rows, ensure_ascii=False, indent=1))
    elif options.missing:
        for part in parts:
            print(part.id)
            for value in part.missing_values:
                print(f"    {value.name}: {value.missing_reason}")
    elif options.part:
        print("\n\n".join(map(_format_part_with_sources, parts)))
    else:
        print(_format_part_list(parts))
    return 0


def _format_part_list(parts: Sequence[CatalogPart]) -> str:
    """Return one line per part, with the number of its unknown values."""
    rows = []
    for part in parts:
        unknown = f" ({len(part.missing_values)} unknown)" if part.missing_values else ""
        rows.append((part.id, part.kind, f"{part.vendor}, {part.name}{unknown}"))
    return f"{align_columns(rows)}\n{len(parts)} parts"


def _format_part_with_sources(part: CatalogPart) -> str:
    """Return every value of a part with its convention, source and date."""
    lines = [f"{part.id}: {part.vendor}, {part.name}"]
    for group, values in part.values_by_group.items():
        lines.append(f"  {group}")
        lines += [f"    {_format_part_value_with_source(value)}" for value in values]
    return replace_no_break_spaces("\n".join(lines))


def _format_part_value_with_source(value: PartValue) -> str:
    if value.state != "known":
        return f"{value.field.label}: {value.formatted_value}. {value.missing_reason}"
    text = ", ".join(
        t for t in (value.formatted_value, value.field.convention, value.other_convention) if t
    )
    unverified_mark = " (unverified)" if value.unverified else ""
    citation = value.sources[0] if value.has_own_source else f"{len(value.sources)} sources"
    return f"{value.field.label}: {text}{unverified_mark} [{citation}, {value.read_on}]"


def _part_as_json_dict(part: CatalogPart, *, only_missing_values: bool) -> dict[str, Any]:
    """Return a part in base units. With `only_missing_values`, only its unknown values."""
    values = part.missing_values if only_missing_values else part.values
    return {
        "id": part.id,
        "name": part.name,
        "kind": part.kind,
        "vendor": part.vendor,
        "note": part.note,
        "values": {value.name: _part_value_as_json_dict(value) for value in values},
    }


def _part_value_as_json_dict(value: PartValue) -> dict[str, Any]:
    if value.state != "known":
        return {"state": value.state, "reason": value.missing_reason}
    return {
        "value": value.number,
        "unit": value.field.unit,
        "convention": value.field.convention,
        "words": replace_no_break_spaces(value.formatted_value),
        "beside": replace_no_break_spaces(value.other_convention),
        "sources": list(value.sources),
        "read_on": str(value.read_on),
        "unverified": value.unverified,
    }


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "estimate": lambda options: run_estimate_command(options.arguments),
    "accuracy": run_accuracy_command,
    "catalogue": run_catalogue_command,
}
