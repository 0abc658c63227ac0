"""The command `headroom catalogue`: the hardware at the prompt."""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from app.estimator.hardware.fields import FIELDS
from app.estimator.hardware.parts import CatalogPart, PartValue, parts


def catalogue_command(arguments: Sequence[str]) -> int:
    """Answer `headroom catalogue ...`; 0, or 1 when nothing is like that."""
    given = _parser().parse_args(arguments)
    chosen = [part for part in parts() if _matches(part, given)]
    if not chosen:
        sys.stderr.write(f"headroom catalogue: nothing is like that; {_offered()}\n")
        return 1
    if given.json:
        told = [_as_json(part, missing=given.missing) for part in chosen]
        sys.stdout.write(json.dumps(told, ensure_ascii=False, indent=1) + "\n")
    elif given.missing:
        sys.stdout.write("\n".join(_gaps(chosen)) + "\n")
    elif given.part:
        sys.stdout.write("\n\n".join(_whole(part) for part in chosen) + "\n")
    else:
        sys.stdout.write("\n".join(_lines(chosen)) + "\n")
    return 0


def _parser() -> argparse.ArgumentParser:
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


def _matches(part: CatalogPart, given: argparse.Namespace) -> bool:
    maker = (given.vendor or "").casefold()
    return (
        (not given.part or part.id in given.part)
        and (not given.kind or part.kind == given.kind)
        and part.vendor.casefold().startswith(maker)
        and not (given.missing and not part.missing)
    )


def _offered() -> str:
    makers = ", ".join(dict.fromkeys(part.vendor for part in parts()))
    return f"makers are {makers}."


def _lines(chosen: Sequence[CatalogPart]) -> list[str]:
    """A line for each part, and how many of its values are unknown."""
    wide = max(len(part.id) for part in chosen)
    kinds = max(len(part.kind) for part in chosen)
    lines = [
        f"{part.id:{wide}}  {part.kind:{kinds}}  {part.vendor}, {part.name}{_short(part)}"
        for part in chosen
    ]
    return [*lines, f"{len(chosen)} parts"]


def _short(part: CatalogPart) -> str:
    count = len(part.missing)
    return f" ({count} unknown)" if count else ""


def _gaps(chosen: Iterable[CatalogPart]) -> list[str]:
    lines = []
    for part in chosen:
        lines.append(f"{part.id}")
        lines += [f"    {v.name}: {v.reason}" for v in part.missing]
    return lines


def _whole(part: CatalogPart) -> str:
    """Every value of a part with its convention, its source and the day."""
    lines = [f"{part.id}: {part.vendor}, {part.name}"]
    for group, values in part.groups.items():
        lines.append(f"  {group}")
        lines += [f"    {_line(value)}" for value in values]
    return "\n".join(lines).replace("\u00a0", " ")


def _line(value: PartValue) -> str:
    told = ", ".join(t for t in (value.words, value.field.says, value.beside) if t)
    if value.state != "known":
        return f"{value.field.label}: {value.words}. {value.reason}"
    doubt = " (unverified)" if value.unverified else ""
    cited = value.sources[0] if value.own else f"{len(value.sources)} sources"
    return f"{value.field.label}: {told}{doubt} [{cited}, {value.read_on}]"


def _as_json(part: CatalogPart, *, missing: bool) -> dict[str, Any]:
    """A part in base units; with `missing` only what is unknown of it."""
    values = part.missing if missing else part.values
    return {
        "id": part.id,
        "name": part.name,
        "kind": part.kind,
        "vendor": part.vendor,
        "note": part.note,
        "values": {value.name: _value(value) for value in values},
    }


def _value(value: PartValue) -> dict[str, Any]:
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
