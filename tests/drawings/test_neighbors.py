"""Parts of a bar beside each other can be told apart."""

import itertools

import pytest

from app.drawings.components import looks_of
from app.estimator.estimate import StackedBar
from app.estimator.inputs import read
from app.estimator.registry import Entry, entries

# Instances of a partitioned GPU are all of one kind; each bears its name.
_OF_ONE_KIND = {"mig"}


@pytest.mark.parametrize(
    "entry",
    [entry for entry in entries() if entry.name not in _OF_ONE_KIND],
    ids=lambda entry: entry.name,
)
def test_no_two_neighbors_have_one_color(entry: Entry) -> None:
    for picture in entry.compute(read(entry.inputs, {})).pictures:
        if isinstance(picture, StackedBar):
            looks = zip(picture.segments, looks_of(picture), strict=True)
            colors = [look.key for part, look in looks if part.value]
            assert all(a != b for a, b in itertools.pairwise(colors)), colors
