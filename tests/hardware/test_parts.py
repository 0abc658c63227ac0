"""The parts of the catalogue: every value with convention, source, day, or a reason."""

import dataclasses

import pytest

from app.content.numbers.estimates import Unanswerable, catalogue_value
from app.estimator.hardware.accelerators import find_accelerator
from app.estimator.hardware.fields import row_of
from app.estimator.hardware.parts import Part, find_part, parts

PARTS = parts()


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.id)
def test_every_value_has_a_source_and_a_day_or_a_reason(part: Part):
    for value in part.values:
        if value.state == "known":
            assert value.words
            assert value.sources
            assert all(s.startswith("https://") for s in value.sources)
            assert value.read_on.year >= 2025
        else:
            assert value.reason.endswith(".")
            assert value.number is None


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.id)
def test_every_field_that_an_author_can_link_has_its_row(part: Part):
    rows = {value.name for value in part.values}
    given = [
        field.name
        for field in dataclasses.fields(part.entry)
        if getattr(part.entry, field.name) != field.default
    ]
    names = [*given, "capacity", "nvlink_both_ways", "pcie"]

    for name in names:
        try:
            found = catalogue_value("hw", part.id, name)[0]
        except Unanswerable:
            continue
        if not isinstance(found, str | bool):
            assert row_of(name) in rows, name


def test_one_way_stands_beside_both_ways_and_dense_beside_sparse():
    h100 = find_part("h100-sxm5-80")

    assert h100["nvlink"].words == "450\u00a0GB/s"
    assert h100["nvlink"].beside == "900\u00a0GB/s both ways"
    assert h100["fp8"].words == "1,978.9\u00a0TFLOP/s"
    assert h100["fp8"].beside == "3,957.8\u00a0TFLOP/s sparse"
    assert h100["int8"].words.endswith("TOP/s")
    assert find_part("tpu-v6e")["bf16"].beside == "no sparse rate"


def test_bytes_of_the_driver_stand_beside_the_label():
    h100 = find_part("h100-sxm5-80")

    assert h100["memory"].words == "80\u00a0GB"
    assert h100["driver_memory"].words == "85.5\u00a0GB"
    assert h100["driver_memory"].beside == "81,559\u00a0MiB"


def test_what_a_part_has_none_of_is_told_from_what_nobody_knows():
    l40s, v6e = find_part("l40s"), find_part("tpu-v6e")

    assert (l40s["nvlink"].state, l40s["nvlink"].words) == ("absent", "none")
    assert find_part("a100-sxm4-80")["fp8"].words == "not supported"
    assert (v6e["tdp"].state, v6e["tdp"].words) == ("unknown", "unknown")
    assert find_part("nvlink-5").get("power") is None


def test_a_sparse_rate_that_a_source_states_is_taken_as_stated():
    """Blackwell Ultra computes dense FP4 at three quarters of its sparse rate."""
    gb300 = find_part("gb300-gpu")

    assert gb300["fp4"].words == "15,000\u00a0TFLOP/s"
    assert gb300["fp4"].beside == "20,000\u00a0TFLOP/s sparse"


def test_a_part_is_what_the_calculators_compute_with():
    assert find_part("b200-sxm")["capacity"].number == find_accelerator("B200").capacity
