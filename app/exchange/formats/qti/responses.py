"""What QTI says is right: response declarations and the conditions on them."""

import dataclasses
from xml.etree import ElementTree as ET

from app.exchange.formats.qti.names import first, given, name_of, within, words
from app.exchange.items import ItemOption, NumberRange, credit_of_score
from app.exchange.markup.texts import read_number, span_around, span_between


@dataclasses.dataclass(frozen=True, slots=True)
class ResponseDeclaration:
    """One response declaration: right values, and what values are worth."""

    base: str
    correct: tuple[str, ...]
    worth: tuple[tuple[str, float], ...]
    case: bool

    @property
    def right(self) -> tuple[str, ...]:
        """The values that bring a full mark, by the mapping or as declared."""
        best = max((w for _, w in self.worth), default=0.0)
        full = [v for v, w in self.worth if w == best > 0]
        return tuple(dict.fromkeys((*self.correct, *full)))

    @property
    def credits(self) -> dict[str, float]:
        """The values that bring a part of the mark, with that part."""
        best = max((w for _, w in self.worth), default=0.0)
        found = {v: credit_of_score(w, best)[1] for v, w in self.worth}
        return {v: part for v, part in found.items() if part and v not in self.right}


def responses(root: ET.Element) -> dict[str, ResponseDeclaration]:
    """The response declarations of an item by identifier."""
    return {
        given(node, "identifier"): _response(node) for node in within(root, "response-declaration")
    }


def _response(node: ET.Element) -> ResponseDeclaration:
    declared = first(node, "correct-response")
    correct = () if declared is None else tuple(words(v) for v in within(declared, "value"))
    entries = list(within(node, "map-entry"))
    worth = tuple((given(e, "map-key"), read_number(given(e, "mapped-value"))) for e in entries)
    case = any(given(e, "case-sensitive") == "true" for e in entries)
    base = given(node, "base-type")
    return ResponseDeclaration(base, tuple(c for c in correct if c), worth, case)


def weigh_choices(
    root: ET.Element, response: ResponseDeclaration, *, single: bool
) -> dict[str, float]:
    """What each choice brings or costs, in percent of the mark.

    Where a mapping is what counts, its values do; elsewhere the declared answer is all
    or nothing.
    """
    right = dict.fromkeys(response.correct or response.right, 100.0)
    if single:
        return {name: 100 * part for name, part in response.credits.items()} | right
    gains = [worth for _, worth in response.worth if worth > 0]
    if gains and _is_mapped(root):
        return {name: 100 * worth / sum(gains) for name, worth in response.worth}
    names = (given(n, "identifier") for n in within(root, "simple-choice"))
    return dict.fromkeys(names, -100.0) | dict.fromkeys(right, 100 / len(right))


def _is_mapped(root: ET.Element) -> bool:
    """Whether the mark is the sum of what a mapping says."""
    processing = first(root, "response-processing")
    template = "" if processing is None else given(processing, "template")
    return "map_response" in template or first(root, "map-response") is not None


def typed(
    root: ET.Element,
    response: ResponseDeclaration,
    notes: dict[str, str],
    unit: str,
) -> tuple[ItemOption, ...]:
    """The accepted and foreseen values of a text entry.

    Conditions that compare with a value come first, as this room writes them; then the
    mapping and the declared answer.
    """
    options = _conditioned(root, response, notes, unit)
    if options:
        return tuple(sorted(options, key=lambda o: not o.right))
    test = first(root, "equal")
    right = response.correct[:1] if response.base != "string" else response.right
    made = [_option(v, (True, 0.0), "", response, (test, unit)) for v in right]
    part = response.credits
    for value, _ in response.worth:
        if value not in right and (value in part or response.base == "string"):
            worth_ = False, part.get(value, 0.0)
            made.append(_option(value, worth_, "", response, (test, unit)))
    return tuple(made)


def _conditioned(
    root: ET.Element, response: ResponseDeclaration, notes: dict[str, str], unit: str
) -> list[ItemOption]:
    found = []
    for branch in within(root, "response-if", "response-else-if"):
        test = branch[0] if len(branch) else None
        if test is None or name_of(test) not in {"equal", "string-match"}:
            continue
        value = words(first(test, "base-value"))
        if not value:
            continue
        score, note = 0.0, ""
        for outcome in within(branch, "set-outcome-value"):
            said = words(first(outcome, "base-value"))
            if given(outcome, "identifier") == "SCORE":
                score = read_number(said)
            elif said in notes:
                note = notes[said]
        found.append((value, score, note, test))
    best = max((score for _, score, _, _ in found), default=0.0)
    return [
        _option(value, credit_of_score(score, best), note, response, (test, unit))
        for value, score, note, test in found
    ]


def _option(
    value: str,
    worth_: tuple[bool, float],
    note: str,
    response: ResponseDeclaration,
    around: tuple[ET.Element | None, str],
) -> ItemOption:
    right, credit = worth_
    if response.base not in {"float", "integer"}:
        return ItemOption(value, right, note, credit=credit)
    return ItemOption("", right, note, _span(read_number(value), *around), credit)


def _span(center: float, test: ET.Element | None, unit: str) -> NumberRange:
    """The numbers that a test takes for `center`; without tolerance that alone."""
    mode = "" if test is None else given(test, "tolerance-mode")
    if test is None or mode not in {"absolute", "relative"}:
        return span_around(center, 0.0, unit)
    parts = [read_number(part) for part in given(test, "tolerance").split()] or [0.0]
    share = abs(center) / 100 if mode == "relative" else 1.0
    below, above = parts[0] * share, parts[-1] * share
    return span_between(center - below, center + above, unit)
