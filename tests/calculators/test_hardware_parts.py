"""The parts of the catalog: every value with convention, source, day, or a reason."""

import dataclasses

import pytest

from app.estimator.hardware.catalog import find_accelerator
from app.estimator.hardware.part_values import find_part, list_parts, row_anchor_of_field
from app.markup.expressions import FigureError, read_catalog_field

PARTS = list_parts()


def test_every_value_has_a_source_and_a_day_or_a_reason(subtests: pytest.Subtests):
    for part in PARTS:
        with subtests.test(part.id):
            for value in part.values:
                if value.state == "known":
                    assert value.formatted_value
                    assert value.sources
                    assert all(s.startswith("https://") for s in value.sources)
                    assert value.read_on.year >= 2025
                else:
                    assert value.missing_reason.endswith(".")
                    assert value.number is None


def test_every_field_that_an_author_can_link_has_its_row(subtests: pytest.Subtests):
    for part in PARTS:
        with subtests.test(part.id):
            rows = {value.name for value in part.values}
            given = [
                field.name
                for field in dataclasses.fields(part.catalog_entry)
                if getattr(part.catalog_entry, field.name) != field.default
            ]
            names = [*given, "capacity", "nvlink_both_ways", "pcie"]

            for name in names:
                try:
                    found, _ = read_catalog_field("hw", part.id, name)
                except FigureError:
                    continue
                if not isinstance(found, str | bool):
                    assert row_anchor_of_field(name) in rows, name


def test_one_way_stands_beside_both_ways_and_dense_beside_sparse():
    h100 = find_part("h100-sxm5-80")

    assert h100["nvlink"].formatted_value == "450\u00a0GB/s"
    assert h100["nvlink"].other_convention == "900\u00a0GB/s both ways"
    assert h100["fp8"].formatted_value == "1,978.9\u00a0TFLOP/s"
    assert h100["fp8"].other_convention == "3,957.8\u00a0TFLOP/s sparse"
    assert h100["int8"].formatted_value.endswith("TOP/s")
    assert find_part("tpu-v6e")["bf16"].other_convention == "no sparse rate"


def test_bytes_of_the_driver_stand_beside_the_label():
    h100 = find_part("h100-sxm5-80")

    assert h100["memory"].formatted_value == "80\u00a0GB"
    assert h100["driver_memory"].formatted_value == "85.5\u00a0GB"
    assert h100["driver_memory"].other_convention == "81,559\u00a0MiB"


def test_what_a_part_has_none_of_is_told_from_what_nobody_knows():
    l40s, v6e = find_part("l40s"), find_part("tpu-v6e")

    assert (l40s["nvlink"].state, l40s["nvlink"].formatted_value) == ("absent", "none")
    assert find_part("a100-sxm4-80")["fp8"].formatted_value == "not supported"
    assert (v6e["tdp"].state, v6e["tdp"].formatted_value) == ("unknown", "unknown")
    assert find_part("nvlink-5").get("power") is None


def test_a_sparse_rate_that_a_source_states_is_taken_as_stated():
    """Blackwell Ultra computes dense FP4 at three quarters of its sparse rate."""
    gb300 = find_part("gb300-gpu")

    assert gb300["fp4"].formatted_value == "15,000\u00a0TFLOP/s"
    assert gb300["fp4"].other_convention == "20,000\u00a0TFLOP/s sparse"


def test_a_part_is_what_the_calculators_compute_with():
    assert find_part("b200-sxm")["capacity"].number == find_accelerator("B200").capacity


def test_the_catalogue_has_the_hardware_of_late_2026(subtests: pytest.Subtests):
    for name in [
        "gb300-gpu",
        "rubin-gpu",
        "vera-rubin-nvl72",
        "rtx-pro-6000-bw-server",
        "bluefield-4",
        "connectx-9",
        "q3400-ra",
        "sn5610",
        "sn6600",
        "mi350x",
        "mi355x",
        "mi455x",
        "tpu-v6e",
        "tpu-v7x",
        "trainium2",
        "trainium3",
        "gaudi3",
        "groq-3-lpu",
        "cerebras-wse3",
    ]:
        with subtests.test(name=name):
            assert find_part(name)


def test_a_rate_that_a_maker_prints_only_sparse_stays_unknown_and_says_so():
    value = find_part("cerebras-wse3")["fp16"]

    assert value.state == "unknown"
    assert "with sparsity" in value.missing_reason


def test_a_value_with_a_source_of_its_own_names_that_alone():
    value = find_part("trainium2")["memory"]

    assert value.has_own_source
    (source,) = value.sources
    assert source.startswith("https://awsdocs-neuron.readthedocs-hosted.com/")
