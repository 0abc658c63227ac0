"""Parts of a bar beside each other can be told apart."""

import itertools

import pytest

from app.estimator.inputs import parse_inputs
from app.estimator.registry import list_estimates, run_estimate
from app.estimator.result import StackedBar
from app.widgets.bar_charts import choose_segment_styles


def test_no_two_neighbors_have_one_color(subtests: pytest.Subtests) -> None:
    for entry in list_estimates():
        with subtests.test(entry.name):
            for picture in entry.compute(parse_inputs(entry.inputs_type, {})).pictures:
                if isinstance(picture, StackedBar):
                    looks = zip(picture.segments, choose_segment_styles(picture), strict=True)
                    colors = [look.legend_class for part, look in looks if part.value]
                    assert all(a != b for a, b in itertools.pairwise(colors)), colors


def test_instances_of_a_partitioned_gpu_are_told_apart_without_color() -> None:
    (bar,) = (
        picture
        for picture in run_estimate("mig", {"instances": "7x 1g.10gb"}).pictures
        if isinstance(picture, StackedBar)
    )
    letters = [look.letter for look in choose_segment_styles(bar)]
    assert letters == ["a", "b", "c", "d", "e", "f", "g"]
