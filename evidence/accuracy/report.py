"""Compute all cases and summarize them by kind, with errors and stated intervals."""

import dataclasses
import functools
import math
import pathlib
import re
import statistics
from collections.abc import Iterable
from typing import Any

from app.estimator.inputs import InvalidInputsError
from evidence import DATA
from evidence.accuracy import kinds
from evidence.accuracy.cases import (
    CaseFile,
    CaseInputs,
    ReferenceCase,
    UnsupportedCaseError,
    read_cases,
)
from evidence.accuracy.held_out import (
    CaseGroups,
    ErrorOfCase,
    HeldOutErrors,
    cross_validate,
    load_refit_errors,
)
from evidence.accuracy.question import (
    CalculatorQuery,
    FormulaValue,
    NoPredictionError,
    PredictedValue,
    compute_figures,
)

# Absorbs floating-point error where the tolerance is zero.
_ROUNDING = 1e-9


@dataclasses.dataclass(frozen=True, slots=True)
class CaseResult:
    """One case with its prediction, or `why_not` if there is none.

    Computed by a calculator: its name in `estimate`, with `command` and `address` of the
    same query. Computed by a formula: the function in `formula`; `report_alone` is
    whether no calculator calls it.
    """

    id: str
    kind: str
    expected: float
    predicted: float | None
    unit: str
    relative_error: float | None
    within_tolerance: bool | None
    low: float | None
    high: float | None
    why_not: str | None
    tolerance: float = 0.0
    calibration: bool = False
    source: str = ""
    estimate: str = ""
    figure: str = ""
    command: str = ""
    address: str = ""
    formula: str = ""
    report_alone: bool = False
    groups: CaseGroups = dataclasses.field(default_factory=CaseGroups)

    @property
    def inside_interval(self) -> bool | None:
        """Return whether the expected value is in the stated interval; None if there is none."""
        if self.low is None or self.high is None:
            return None
        return self.low <= self.expected <= self.high


@dataclasses.dataclass(frozen=True, slots=True)
class KindSummary:
    """Summary of one kind: number of cases and errors.

    Errors and shares cover the evidence only: cases that no constant was fitted to.
    They are None if there is none.
    """

    kind: str
    cases: int
    expressible: int
    calibration: int
    within_tolerance: int
    median: float | None
    p90: float | None
    largest: float | None
    inside_interval: float | None
    by_calculator: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class AccuracyReport:
    """All results, and their summaries by kind in order of first appearance."""

    results: tuple[CaseResult, ...]
    summaries: tuple[KindSummary, ...]
    held_out: tuple[HeldOutErrors, ...] = ()


def list_project_case_files() -> list[pathlib.Path]:
    """Return the project's own case files: data/cases*.json."""
    return sorted(DATA.glob("cases*.json"))


@functools.cache
def compute_project_report() -> AccuracyReport:
    """Compute every case of the project, once per process: the cases do not change."""
    return compute_report(list_project_case_files())


def compute_report(paths: Iterable[pathlib.Path]) -> AccuracyReport:
    """Compute every case of the files; an error in one case does not stop the others."""
    results: list[CaseResult] = []
    names = set()
    for path in paths:
        names.add(pathlib.Path(path).resolve())
        file = read_cases(pathlib.Path(path))
        results += [compute_case(case, file) for case in file.cases]
    compute_figures.cache_clear()
    return summarize_results(results, refitted=_FITTED in names)


def summarize_results(results: Iterable[CaseResult], *, refitted: bool) -> AccuracyReport:
    """Build the report from results; `refitted` is whether engine constants were fitted again."""
    results, by_kind = tuple(results), dict[str, list[CaseResult]]()
    for result in results:
        by_kind.setdefault(result.kind, []).append(result)
    return AccuracyReport(
        results=results,
        summaries=tuple(summarize(kind, found) for kind, found in by_kind.items()),
        held_out=_cross_validation_errors(by_kind, refitted=refitted),
    )


_FITTED = (DATA / "cases-serving.json").resolve()


def _cross_validation_errors(
    by_kind: dict[str, list[CaseResult]], *, refitted: bool
) -> tuple[HeldOutErrors, ...]:
    """Return cross-validation errors, with refitted constants where they are available."""
    found = load_refit_errors() if refitted else ()
    known = {errors.kind for errors in found}
    for kind, results in by_kind.items():
        if kind not in known and any(r.low is not None for r in results):
            found += cross_validate(kind, list_errors_of_evidence(results))
    return found


def list_errors_of_evidence(results: Iterable[CaseResult]) -> list[ErrorOfCase]:
    """Return the errors of predicted cases to which no constant was fitted."""
    return [
        ErrorOfCase(math.log(r.expected / r.predicted), r.groups)
        for r in results
        if r.predicted and r.predicted > 0 and r.expected > 0 and not r.calibration
    ]


def compute_case(case: ReferenceCase, file: CaseFile) -> CaseResult:
    """Compute one case, or record why it is not supported."""
    result = plain = CaseResult(
        id=case.id,
        kind=case.kind,
        expected=case.expected,
        predicted=None,
        unit=case.unit,
        relative_error=None,
        within_tolerance=None,
        low=None,
        high=None,
        why_not=None,
        tolerance=case.tolerance,
        calibration=kinds.was_used_for_fitting(case),
        source=case.source,
        groups=groups_of(case),
    )
    try:
        method = translate(case, file)
        if isinstance(method, FormulaValue):
            result = dataclasses.replace(
                plain, formula=method.name, report_alone=method.report_alone
            )
            prediction = PredictedValue(method.value)
        else:
            result = dataclasses.replace(
                plain,
                estimate=method.estimate,
                figure=method.figure,
                command=method.command,
                address=method.address,
            )
            prediction = method.compute()
    except (UnsupportedCaseError, NoPredictionError) as error:
        return dataclasses.replace(result, why_not=str(error))
    except InvalidInputsError as error:
        return dataclasses.replace(result, why_not=f"{result.estimate}: {error}")
    except (ArithmeticError, LookupError, ValueError, TypeError) as error:
        why_not = f"{type(error).__name__}: {error}"
        return dataclasses.replace(result, why_not=why_not)
    if not math.isfinite(prediction.value):
        return dataclasses.replace(plain, why_not="the answer is not a finite number")
    off_by = abs(prediction.value - case.expected)
    relative_error = off_by / abs(case.expected) if case.expected else off_by
    return dataclasses.replace(
        result,
        predicted=prediction.value,
        relative_error=relative_error,
        within_tolerance=relative_error <= case.tolerance + _ROUNDING,
        low=prediction.low,
        high=prediction.high,
    )


def groups_of(case: ReferenceCase) -> CaseGroups:
    names = ("system", "hardware", "gpu", "accelerator")
    accelerator = next((str(case.inputs[n]) for n in names if case.inputs.get(n)), "")
    place = re.split(r"[,;(:#]| in | id | README| docs", case.source, maxsplit=1)[0]
    return CaseGroups(str(case.inputs.get("model") or ""), accelerator, place.strip())


def translate(case: ReferenceCase, file: CaseFile) -> CalculatorQuery | FormulaValue:
    """Translate a case; raises UnsupportedCaseError for an unknown word."""
    translator = kinds.find_translator(case.kind)
    if translator is None:
        raise UnsupportedCaseError(f"kind “{case.kind}” is not known")
    inputs = CaseInputs(case, file)
    method = translator(inputs)
    inputs.require_all_read()
    return method


def summarize(kind: str, results: list[CaseResult]) -> KindSummary:
    """Summarize one kind; errors cover the evidence only."""
    answered = [r for r in results if r.relative_error is not None]
    evidence = [r for r in answered if not r.calibration]
    errors = sorted(r.relative_error or 0.0 for r in evidence)
    stated = [r.inside_interval for r in evidence if r.inside_interval is not None]
    return KindSummary(
        kind=kind,
        cases=len(results),
        expressible=len(answered),
        calibration=sum(r.calibration for r in results),
        within_tolerance=sum(bool(r.within_tolerance) for r in answered),
        median=statistics.median(errors) if errors else None,
        p90=_percentile(errors, 0.9),
        largest=errors[-1] if errors else None,
        inside_interval=sum(stated) / len(stated) if stated else None,
        by_calculator=sum(bool(r.estimate) for r in results),
    )


def _percentile(ordered: list[float], share: float) -> float | None:
    if not ordered:
        return None
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def report_as_json(found: AccuracyReport) -> dict[str, Any]:
    """Return the report as plain data for `--json`."""
    return {
        "cases": [
            {**dataclasses.asdict(r), "inside_interval": r.inside_interval} for r in found.results
        ],
        "kinds": {
            s.kind: {k: v for k, v in dataclasses.asdict(s).items() if k != "kind"}
            for s in found.summaries
        },
        "held_out": [dataclasses.asdict(h) for h in found.held_out],
    }


_KIND_COLUMNS = (
    "kind",
    "cases",
    "answered",
    "within",
    "median",
    "p90",
    "largest",
    "in range",
    "asked",
)


def format_report(found: AccuracyReport, *, verbose: bool = False) -> str:
    """Return the report as a terminal table, with each case if verbose."""
    lines = _format_table([_KIND_COLUMNS, *(_kind_row(summary) for summary in found.summaries)])
    lines.append(_format_totals(found))
    if found.held_out:
        lines += ["", *_format_table([_HELD_OUT_COLUMNS, *map(_held_out_row, found.held_out)])]
    if verbose:
        lines += [_format_case(r) for r in found.results]
    return "\n".join(lines)


# One factor for a kind, fitted to all cases and to the other groups. “refit”: all
# constants of the engines are fitted again.
_HELD_OUT_COLUMNS = (
    "kind",
    "left out",
    "groups",
    "fitted",
    "held out",
    "p90",
    "worst",
    "range",
)


def _held_out_row(held: HeldOutErrors) -> tuple[str, ...]:
    return (
        held.kind,
        f"{held.group}, refit" if held.refitted else held.group,
        str(held.groups),
        _format_percent(held.fitted),
        _format_percent(held.held_out),
        _format_percent(held.p90),
        _format_percent(held.worst),
        f"{held.low:.2f} to {held.high:.2f}",
    )


def _format_table(rows: list[tuple[str, ...]]) -> list[str]:
    """Format rows as aligned lines, with the first column to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _kind_row(summary: KindSummary) -> tuple[str, ...]:
    return (
        summary.kind,
        str(summary.cases),
        str(summary.expressible),
        str(summary.within_tolerance),
        _format_percent(summary.median),
        _format_percent(summary.p90),
        _format_percent(summary.largest),
        _format_percent(summary.inside_interval),
        f"{summary.by_calculator}" if summary.by_calculator else "formula",
    )


def _format_totals(found: AccuracyReport) -> str:
    answered = sum(s.expressible for s in found.summaries)
    within = sum(s.within_tolerance for s in found.summaries)
    fitted = sum(s.calibration for s in found.summaries)
    asked = sum(bool(r.estimate) for r in found.results)
    formulas = sum(bool(r.formula) for r in found.results)
    alone = sum(r.report_alone for r in found.results)
    return (
        f"{len(found.results)} cases, {answered} answered, {within} within the "
        f"source's tolerance; {fitted} used for fitting are not counted in errors.\n"
        f"{asked} were asked of a calculator, {formulas} are bare formulas, "
        f"{alone} of them computed by no calculator."
    )


def _format_case(result: CaseResult) -> str:
    if result.predicted is None:
        return f"{result.id}: not expressible: {result.why_not}"
    sign = "within" if result.within_tolerance else "OUTSIDE"
    fitted = ", fitted" if result.calibration else ""
    alone = ", in this report alone" if result.report_alone else ""
    return (
        f"{result.id}: expected {result.expected:.6g}, predicted "
        f"{result.predicted:.6g} {result.unit}, off by "
        f"{_format_percent(result.relative_error)}, {sign} {_format_percent(result.tolerance)}"
        f"{fitted}; {result.command or f'formula {result.formula}{alone}'}"
    )


def _format_percent(share: float | None) -> str:
    if share is None:
        return "-"
    return f"{share:.0%}" if share >= 0.1 else f"{share:.2%}"
