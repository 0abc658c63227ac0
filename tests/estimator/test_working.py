"""Every line of working is an expression that comes to the result beside it."""

import contextlib
import functools
import itertools
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

from app.estimator.hardware.catalog import list_accelerators, list_systems
from app.estimator.inputs import InputSpec, InvalidInputsError, input_specs
from app.estimator.models.lookup import list_models
from app.estimator.registry import EstimateSpec, find_estimate, list_estimates, run_estimate
from app.estimator.result import FormulaStep
from app.estimator.units import format_value
from tests.amounts import FACTOR, sample
from tests.estimator.arithmetic import as_typed, compute

SEED = 20261122
# Answers asked of each estimate; a search or a simulation takes longer than a sum.
MOST = {"parallelism-plan": 8, "serving-capacity": 16, "accelerator-choice": 10}
MOST |= {"deployment": 10, "training-run": 10}  # which run others of these
USUAL = 160
SOME = sample(list_estimates(), 6, "working")
"""The estimates that are asked; `make drills`: all."""
_CARDS = [card.id for card in list_accelerators()]
_SYSTEMS = [system.id for system in list_systems()]
_MODELS = [key for key, _ in list_models()]


def drawn(meaning: InputSpec, default: Any, luck: random.Random) -> Any:
    """A value of an input that somebody may well give."""
    if meaning.kind == "choice":
        return luck.choice(meaning.choices)[0]
    if meaning.kind == "flag":
        return luck.choice(["yes", "no"])
    if meaning.kind in {"number", "count"}:
        least = meaning.minimum if meaning.minimum is not None else 1.0
        most = meaning.maximum if meaning.maximum is not None else 1e12
        start = default if default is not None else max(least, 1.0)
        value = (start or 1.0) * luck.choice([0.25, 0.5, 2, 3, 4, 8, 16, 1.37])
        value = min(max(value, least), most)
        return round(value) if meaning.kind == "count" else value
    return None


def asked(entry: EstimateSpec, most: int) -> Iterator[dict[str, Any]]:
    """Random inputs, with every model and every card of the catalog among them."""
    luck = random.Random(f"{SEED} {entry.name}")  # noqa: S311 - a draw, no secret
    names = {"model": _MODELS, "gpu": _CARDS, "system": _SYSTEMS}
    turns = {
        kind: itertools.cycle(luck.sample(values, len(values))) for kind, values in names.items()
    }
    fields = input_specs(entry.inputs_type)
    defaults = entry.inputs_type()
    yield {}
    for _ in range(6 * most):
        words = {}
        for name, meaning in fields.items():
            if meaning.kind in turns and luck.random() < 0.8:
                words[name] = next(turns[meaning.kind])
            elif luck.random() < 0.25:
                value = drawn(meaning, getattr(defaults, name), luck)
                if value is not None:
                    words[name] = value
        yield words


@functools.cache
def answered(name: str) -> tuple[tuple[dict[str, Any], tuple[FormulaStep, ...]], ...]:
    """The working of as many random questions as are asked of an estimate."""
    entry = find_estimate(name)
    assert entry
    most = MOST.get(name, USUAL) * FACTOR
    found = []
    for words in asked(entry, most):
        with contextlib.suppress(InvalidInputsError):
            found.append((words, run_estimate(name, words).steps))
        if len(found) == most:
            break
    return tuple(found)


def fault(step: FormulaStep) -> str:
    """Why a line does not compute; empty where it does."""
    try:
        low, high = compute(step.substituted, step.unit)
    except ValueError as error:
        return str(error)
    slack = 1e-6 * abs(step.value) + 1e-12
    if low - slack <= step.value <= high + slack:
        return ""
    return f"“{step.substituted}” is {low:g} to {high:g}, shown is {step.value:g}"


# A letter that stands for nothing but itself: units and the base of logarithms.
_KNOWN = frozenset({"a", "J", "C"})
_LETTER = re.compile(r"(?<![\w·°])[A-Za-zτφΔ](?![\w·])")


def undefined(formula: str) -> list[str]:
    """Letters of a formula that nothing beside it explains."""
    plain = re.sub(r"\d B\b|\be\^|Σ", "", formula)
    return [letter for letter in _LETTER.findall(plain) if letter not in _KNOWN]


@pytest.mark.drawn
@pytest.mark.parametrize("entry", SOME, ids=lambda entry: entry.name)
def test_every_line_computes_and_says_it_in_words(entry: EstimateSpec) -> None:
    seen: dict[str, str] = {}
    for words, steps in answered(entry.name):
        for step in steps:
            why = fault(step)
            letters = undefined(step.formula)
            if letters:
                why = f"{letters} of “{step.formula}” are not defined"
            if why:
                seen.setdefault(step.label, f"{step.label}: {why} for {words}")
    assert not seen, "\n".join(seen.values())


@pytest.mark.drill  # asks every estimate; the others ask some
def test_every_model_and_every_card_is_asked_for() -> None:
    given: dict[str, set[str]] = {"model": set(), "gpu": set()}
    count = 0
    for entry in list_estimates():
        fields = input_specs(entry.inputs_type)
        for words, _ in answered(entry.name):
            count += 1
            for name, kind in ((n, fields[n].kind) for n in words):
                if kind in given:
                    given[kind].add(words[name])
    assert count >= 2000
    assert given["model"] == set(_MODELS)
    known = {card.id for card in list_accelerators() if card.capacity}
    assert known <= given["gpu"]


# A whole number steps, and an exponential of a hopeless job has no digits left.
_STEEP = re.compile(r"[⌈⌊]|exp\(")
_SUM = re.compile(r"[^×÷√^()⌈⌊]+")


@pytest.mark.drawn
@pytest.mark.parametrize("entry", SOME, ids=lambda entry: entry.name)
def test_what_rounding_leaves_open_is_little(entry: EstimateSpec) -> None:
    for words, steps in answered(entry.name):
        for step in steps:
            typed = as_typed(step.substituted, step.unit)
            line = step.substituted
            if not _STEEP.search(line) and not _SUM.fullmatch(line):
                close = pytest.approx(step.value, rel=2e-4, abs=1e-12)
                assert typed == close, (step.substituted, words)


@pytest.mark.drawn
def test_a_printed_sum_comes_to_what_is_printed(subtests: pytest.Subtests) -> None:
    for entry in SOME:
        with subtests.test(entry.name):
            for words, steps in answered(entry.name):
                for step in steps:
                    if _SUM.fullmatch(step.substituted):
                        typed = as_typed(step.substituted, step.unit)
                        # Half of the last place may be rounded either way.
                        near = (step.value * one for one in (1 - 1e-9, 1, 1 + 1e-9))
                        shown = {format_value(value, step.unit) for value in near}
                        assert format_value(typed, step.unit) in shown, (step, words)


@pytest.mark.drawn
@pytest.mark.parametrize("name", ["inference-memory", "training-memory"])
def test_what_is_free_is_what_the_sentence_leaves(name: str) -> None:
    sentence = re.compile(r"needs (.+?) and (?:may use|has) (.+?)(?: of .+| \(.+)?: (.+) free")
    for words in asked(find_estimate(name), 20 * FACTOR):
        with contextlib.suppress(InvalidInputsError):
            found = sentence.search(run_estimate(name, words).verdict.text)
            if found:
                need, limit, free = found.groups()
                typed = as_typed(f"{limit} − {need}", "B")
                close = pytest.approx(typed, rel=1e-6)
                assert format_value(typed, "B") == free or as_typed(free, "B") == close


def test_lines_are_read_as_people_read_them(subtests: pytest.Subtests) -> None:
    for line, unit, value in [
        ("85.5\u00a0GB × 90%", "B", 76.95e9),
        ("(2 + 3) × 4 ÷ 10", "", 2),
        ("max(8,192 × 2\u00a0B, 4\u00a0kB)", "B", 16384),
        ("√(2 × 30\u00a0s × 2\u00a0h)", "s", 657.3),
        ("(4\u00a0ms^1.5 + 0\u00a0s^1.5)^(1 ÷ 1.5)", "s", 4e-3),
        ("2 × ⌈44.8\u00a0A ÷ 48\u00a0A⌉", "", 2),
        ("3\u00a0GWh × 480\u00a0g/kWh", "kg", 1.44e6),
        ("64 × 8,766\u00a0h × 4.00\u00a0USD/h", "USD", 2244096),
        ("2.52×10²⁴\u00a0FLOP ÷ 2", "FLOP", 1.26e24),
    ]:
        with subtests.test(line=line, unit=unit, value=value):
            low, high = compute(line, unit)
            assert low <= value <= high
            assert high - low < 0.2 * value


@pytest.mark.parametrize(
    "line",
    ["70.3\u00a0kB × 32,768 × 64 over 8", "n = 8, S = 1\u00a0GB", "2 × (3", "4 5"],
)
def test_what_is_no_expression_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="“"):
        compute(line, "B")


# What was printed beside 147.4, 7.7 and 4.3 GB once.
@pytest.mark.parametrize(
    ("name", "given"),
    [
        (
            "inference-memory",
            {
                "model": "deepseek-v3",
                "context": 32768,
                "concurrent": 64,
                "tensor_parallel": 8,
                "gpu": "h200",
            },
        ),
        ("kv-cache", {"model": "llama-4-scout", "context": 131072}),
        ("kv-cache", {"model": "gpt-oss-120b", "context": 131072}),
        (
            "training-memory",
            {
                "model": "deepseek-v3",
                "gpus": 2048,
                "expert_parallel": 64,
                "pipeline_parallel": 16,
            },
        ),
    ],
)
def test_lines_that_once_did_not_compute(name: str, given: dict[str, Any]) -> None:
    assert not [why for step in run_estimate(name, given).steps if (why := fault(step))]


def test_the_line_of_a_whole_cache_starts_from_one_token() -> None:
    steps = run_estimate("kv-cache", {"model": "llama-3.1-8b", "context": 2048}).steps
    line = next(step for step in steps if step.output_name == "total")
    assert line.formula == "bytes per token × tokens kept × sequences"
    assert line.substituted.replace("\u00a0", " ").startswith("131.07 kB × 2,048 × ")
