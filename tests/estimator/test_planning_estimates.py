"""What every planning estimate keeps: lines are sourced, and inputs explained."""

import dataclasses
import math

import pytest

from app.estimator import registry, units
from app.estimator.data_files import SOURCES
from app.estimator.inputs import format_value_as_typed, input_specs, parse_inputs
from app.estimator.result import Chart

NAMES = ["fabric", "storage", "power-cooling", "cost", "accelerator-choice"]


def test_every_line_names_a_source_and_a_figure_that_exist(subtests: pytest.Subtests):
    for name in NAMES:
        with subtests.test(name=name):
            entry = registry.find_estimate(name)
            answer = entry.compute(entry.inputs_type())
            figures = {f.name for f in answer.figures}
            for step in answer.steps:
                assert step.source in SOURCES, step.label
                assert step.output_name in figures, step.label
                assert step.topic, step.label
                assert math.isfinite(step.value)


def test_the_outputs_are_promised_with_their_units(subtests: pytest.Subtests):
    for name in NAMES:
        with subtests.test(name=name):
            entry = registry.find_estimate(name)
            answer = entry.compute(entry.inputs_type())
            promised = {(o.name, o.unit) for o in entry.outputs}
            assert promised == {(f.name, f.unit) for f in answer.figures}
            known = {*units.UNITS, *(base for base, _ in units.UNITS.values())}
            assert {unit for _, unit in promised} <= known


def test_one_figure_leads_and_intervals_hold_their_value(subtests: pytest.Subtests):
    for name in NAMES:
        with subtests.test(name=name):
            entry = registry.find_estimate(name)
            answer = entry.compute(entry.inputs_type())
            assert sum(f.primary for f in answer.figures) == 1
            for figure in answer.figures:
                if figure.low is not None:
                    assert figure.low <= figure.value <= figure.high, figure.name


def test_pictures_have_points_to_draw(subtests: pytest.Subtests):
    for name in NAMES:
        with subtests.test(name=name):
            entry = registry.find_estimate(name)
            answer = entry.compute(entry.inputs_type())
            assert answer.pictures
            for picture in answer.pictures:
                if isinstance(picture, Chart):
                    assert all(line.points for line in picture.lines)
                else:
                    assert all(s.value >= 0 for s in picture.segments)


def test_every_input_is_explained_and_teaches(subtests: pytest.Subtests):
    for name in NAMES:
        with subtests.test(name=name):
            for key, field in input_specs(registry.find_estimate(name).inputs_type).items():
                assert field.help.endswith("."), key
                assert field.topic, key
                assert field.group, key


def test_defaults_survive_being_written_and_read(subtests: pytest.Subtests):
    for name in NAMES:
        with subtests.test(name=name):
            entry = registry.find_estimate(name)
            fields = input_specs(entry.inputs_type)
            default = entry.inputs_type()
            words = {
                f.name: format_value_as_typed(fields[f.name], getattr(default, f.name))
                for f in dataclasses.fields(default)
                if getattr(default, f.name) not in (None, "")
            }
            assert parse_inputs(entry.inputs_type, words) == default
