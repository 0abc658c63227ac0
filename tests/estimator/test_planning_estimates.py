"""What every planning estimate keeps: inputs matter and lines are sourced."""

import dataclasses
import math

import pytest

from app.estimator import registry, units
from app.estimator.data_files import SOURCES
from app.estimator.inputs import InvalidInputsError, format_typed_value, input_specs, parse_inputs
from app.estimator.result import Chart

NAMES = ["fabric", "storage", "power-cooling", "cost", "accelerator-choice"]

# Inputs that act only together with another one: the words to start from.
BESIDE = {
    ("power-cooling", "liquid_rise"): {"liquid": "50"},
    ("power-cooling", "node_units"): {"rack_limit": "60"},
    ("power-cooling", "rack_units"): {"rack_limit": "60"},
    ("accelerator-choice", "tokens"): {"job": "training"},
    ("accelerator-choice", "days"): {"job": "training"},
    ("accelerator-choice", "lost"): {"job": "training"},
    ("accelerator-choice", "sequence"): {"job": "training"},
    ("accelerator-choice", "number_format"): {"job": "training"},
    ("accelerator-choice", "software"): {"job": "training"},
    ("accelerator-choice", "cooling"): {"rank": "speed"},
    ("accelerator-choice", "rare"): {"model": "7B", "rank": "power"},
    ("accelerator-choice", "budget"): {"prices": "h100 4, h200 5"},
}
OTHERS = {
    "text": ["h200 5, l40s 1"],
    "model": ["7B", "llama-3.1-405b"],
    "gpu": ["a100-sxm4-80"],
    "system": ["dgx-b200", "gb200-nvl72"],
    "network": ["q3400-ra", "sn5600"],
}


def others(field, current):
    """Other words that may be typed for a field."""
    if field.kind == "choice":
        return [value for value, _ in field.choices if value != current]
    if field.kind == "flag":
        return ["no" if current else "yes"]
    if field.kind in OTHERS:
        return OTHERS[field.kind]
    start = current or field.maximum / 1e3
    tried = [start * factor for factor in (0.5, 2, 0.1, 10, 1e-3, 1e3)]
    inside = [min(max(v, field.minimum), field.maximum) for v in tried]
    if field.kind == "count":
        inside = [round(v) for v in inside]
    inside.append(field.minimum)
    return [format_typed_value(field, v) for v in inside]


def told(entry, words):
    """Everything an answer says, or nothing for a refusal."""
    try:
        return repr(entry.compute(parse_inputs(entry.inputs, words)))
    except InvalidInputsError:
        return ""


@pytest.mark.parametrize("name", NAMES)
def test_every_input_moves_something(name):
    entry = registry.find_estimate(name)
    for key, field in input_specs(entry.inputs).items():
        words = BESIDE.get((name, key), {})
        before = parse_inputs(entry.inputs, words)
        first = told(entry, words)
        later = {
            told(entry, {**words, key: other}) for other in others(field, getattr(before, key))
        }
        assert later - {"", first}, key


def test_every_line_names_a_source_and_a_figure_that_exist(subtests: pytest.Subtests):
    for name in NAMES:
        with subtests.test(name=name):
            entry = registry.find_estimate(name)
            answer = entry.compute(entry.inputs())
            figures = {f.name for f in answer.figures}
            for step in answer.steps:
                assert step.source in SOURCES, step.label
                assert step.figure in figures, step.label
                assert step.topic, step.label
                assert math.isfinite(step.value)


def test_the_outputs_are_promised_with_their_units(subtests: pytest.Subtests):
    for name in NAMES:
        with subtests.test(name=name):
            entry = registry.find_estimate(name)
            answer = entry.compute(entry.inputs())
            promised = {(o.name, o.unit) for o in entry.outputs}
            assert promised == {(f.name, f.unit) for f in answer.figures}
            known = {*units.UNITS, *(base for base, _ in units.UNITS.values())}
            assert {unit for _, unit in promised} <= known


def test_one_figure_leads_and_intervals_hold_their_value(subtests: pytest.Subtests):
    for name in NAMES:
        with subtests.test(name=name):
            entry = registry.find_estimate(name)
            answer = entry.compute(entry.inputs())
            assert sum(f.primary for f in answer.figures) == 1
            for figure in answer.figures:
                if figure.low is not None:
                    assert figure.low <= figure.value <= figure.high, figure.name


def test_pictures_have_points_to_draw(subtests: pytest.Subtests):
    for name in NAMES:
        with subtests.test(name=name):
            entry = registry.find_estimate(name)
            answer = entry.compute(entry.inputs())
            assert answer.pictures
            for picture in answer.pictures:
                if isinstance(picture, Chart):
                    assert all(line.points for line in picture.lines)
                else:
                    assert all(s.value >= 0 for s in picture.segments)


def test_every_input_is_explained_and_teaches(subtests: pytest.Subtests):
    for name in NAMES:
        with subtests.test(name=name):
            for key, field in input_specs(registry.find_estimate(name).inputs).items():
                assert field.help.endswith("."), key
                assert field.topic, key
                assert field.group, key


def test_defaults_survive_being_written_and_read(subtests: pytest.Subtests):
    for name in NAMES:
        with subtests.test(name=name):
            entry = registry.find_estimate(name)
            fields = input_specs(entry.inputs)
            default = entry.inputs()
            words = {
                f.name: format_typed_value(fields[f.name], getattr(default, f.name))
                for f in dataclasses.fields(default)
                if getattr(default, f.name) not in (None, "")
            }
            assert parse_inputs(entry.inputs, words) == default
