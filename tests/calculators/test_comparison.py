"""Scenarios side by side: their address, what differs, which is better."""

from urllib.parse import parse_qsl, urlencode

import pytest

from app.calculators.comparison import (
    build_comparison_links_and_query,
    build_input_rows,
    build_scenarios_query,
    compare_scenarios_if_all_computed,
    compute_scenarios,
    describe_difference_from_first,
    is_better,
    list_scenario_problems,
    split_scenarios,
)
from app.estimator import registry
from app.estimator.inputs import parse_inputs
from app.estimator.result import Figure, OutputSpec
from app.widgets.calculator_form import NO_COURSE, comparison_url
from app.widgets.estimate_view import EXAMPLE_QUESTIONS
from tests.calculators.sample import ENTRY


def answered(**sides):
    return compute_scenarios(ENTRY, sides)


@pytest.mark.parametrize(
    "typed",
    [
        {"a": {"gpus": "8"}, "b": {"gpus": "4"}},
        {"a": {"gpus": "8"}, "b": {}},
        {"a": {"gpus": "8", "weights": "int4"}, "b": {"gpus": "8"}, "c": {"gpus": "2"}},
        {"a": {"gpus": "8"}, "b": {"gpus": "8"}, "c": {"gpus": "8"}},
    ],
)
def test_an_address_gives_back_the_scenarios_it_was_made_of(typed):
    query = build_scenarios_query(typed)
    pairs = dict(part.split("=") for part in query.split("&"))
    assert split_scenarios(pairs) == typed


def test_what_is_shared_is_said_once():
    sides = {"a": {"model": "70B"}, "b": {"model": "70B", "gpus": "4"}}
    assert build_scenarios_query(sides) == "model=70B&b.gpus=4"


def test_links_swap_scenarios_and_add_or_drop_the_third():
    two = build_comparison_links_and_query(ENTRY, answered(a={"gpus": "1"}, b={"gpus": "2"}))
    three = build_comparison_links_and_query(
        ENTRY, answered(a={"gpus": "1"}, b={"gpus": "2"}, c={"gpus": "4"})
    )

    assert two["swap"].endswith("?a.gpus=2&b.gpus=1")
    assert two["third"].endswith("?a.gpus=1&b.gpus=2&c.gpus=2")
    assert three["third"] == two["here"]


def test_the_one_that_fits_is_named_first():
    scenarios = answered(a={"gpus": "1", "context": "1M"}, b={"gpus": "8", "context": "1M"})
    assert compare_scenarios_if_all_computed(ENTRY, scenarios).lead == "B fits, A does not."


def test_what_fits_tightly_fits_and_what_may_not_is_told_apart():
    entry = registry.find_estimate("training-memory")
    sides = {"a": {"gpus": "32"}, "b": {"gpus": "19"}, "c": {"gpus": "16"}}
    assert (
        compare_scenarios_if_all_computed(entry, compute_scenarios(entry, sides)).lead
        == "A and B fit, C may not."
    )
    del sides["a"]
    sides["b"] = {"gpus": "8"}
    assert (
        compare_scenarios_if_all_computed(entry, compute_scenarios(entry, sides)).lead
        == "C may fit, B does not."
    )


def test_a_comparison_opens_with_a_difference(subtests: pytest.Subtests):
    for entry in registry.list_estimates():
        with subtests.test(entry.name):
            inputs = parse_inputs(entry.inputs_type, {})
            link = comparison_url(entry, inputs, entry.compute(inputs), "")
            sides = split_scenarios(dict(parse_qsl(link.partition("?")[2])))
            assert sides["a"] != sides["b"]
            lead = compare_scenarios_if_all_computed(entry, compute_scenarios(entry, sides)).lead
            assert lead != "There is no difference."


def test_a_comparison_proposes_an_alternative_that_fits():
    entry = registry.find_estimate("latency")
    typed = {
        "model": "mixtral-8x7b",
        "gpu": "a100-sxm4-80",
        "tensor_parallel": "2",
        "weights": "bf16",
        "batch": "128",
    }
    inputs = parse_inputs(entry.inputs_type, typed)
    link = comparison_url(entry, inputs, entry.compute(inputs), urlencode(typed))
    other = split_scenarios(dict(parse_qsl(link.partition("?")[2])))["b"]
    assert other != typed
    assert entry.compute(parse_inputs(entry.inputs_type, {**typed, **other}))["fits"].value is True


def test_of_two_that_fit_the_one_with_more_room_is_named():
    lead = compare_scenarios_if_all_computed(ENTRY, answered(a={}, b={"gpus": "4"})).lead
    assert lead.replace("\u00a0", " ") == ("A has more room: 73.9 GB free, against 71.7 GB in B.")


def test_equal_scenarios_have_no_difference():
    comparison = compare_scenarios_if_all_computed(ENTRY, answered(a={}, b={}))
    assert comparison.lead == "There is no difference."
    assert comparison.differing_inputs == ()


def test_what_differs_is_told_by_meaning_and_not_by_spelling():
    scenarios = answered(a={"context": "8k", "gpus": "8"}, b={"context": "8000"})
    rows = build_input_rows(ENTRY, scenarios, NO_COURSE)
    assert [r.name for r in rows if r.differs] == []
    scenarios = answered(a={"gpus": "4"}, b={})
    rows = build_input_rows(ENTRY, scenarios, NO_COURSE)
    assert [r.name for r in rows if r.differs] == ["gpus"]
    assert [f.name for f in rows[3].fields] == ["a.gpus", "b.gpus"]


def test_bars_share_one_axis_and_only_the_last_shows_it():
    comparison = compare_scenarios_if_all_computed(
        ENTRY, answered(a={"gpus": "1"}, b={"gpus": "8"})
    )
    first, last = (side.bar for side in comparison.columns)
    assert 'class="ax"' not in first
    assert 'class="ax"' in last
    assert first.count('x1="80%"') == last.count('class="cap" x1="80%"') == 1


def test_figures_show_the_better_value_and_the_distance_from_a():
    comparison = compare_scenarios_if_all_computed(
        ENTRY, answered(a={"gpus": "8"}, b={"gpus": "4"})
    )
    rows = {row.label: row.values for row in comparison.figure_rows}
    needed = rows["Needed per GPU"]
    assert [v.is_best for v in needed] == [True, False]
    assert needed[1].difference_from_first == "+2.2\u00a0GB"
    assert rows["Tokens a second"][1].difference_from_first == "the same"
    assert not any(v.is_best for v in rows["Tokens a second"])


def test_a_distance_is_that_of_the_numbers_that_are_shown(subtests: pytest.Subtests):
    for one, other, unit, told in [
        (83.96e9, 59.84e9, "B", "+24.2 GB"),  # of 24.12: 84 stands beside 59.8
        (59.84e9, 83.96e9, "B", "−24.2 GB"),
        (5.61e9, 5.59e9, "B", "+20 MB"),  # both are shown as 5.6 GB
        (12e12, 59.8e9, "B", "+11.9 TB"),
        (9, 8, "GPU", "+1 GPU"),
        (1, 8, "GPU", "−7 GPUs"),
        (0.4149, 0.4051, "%", "+1 point"),
        (0.414, 0.402, "%", "+1.2 points"),
        (2.5, 12.3, "USD", "−9.80 USD"),
        (0.0457, 0.045, "", "+0.0007"),
        (1.5, 1.5, "s", "the same"),
        (None, 8, "GPU", ""),
    ]:
        with subtests.test(one=one, other=other, unit=unit):
            output = OutputSpec("x", "X", unit)
            said = describe_difference_from_first(Figure(output, one), Figure(output, other))
            assert said.replace("\u00a0", " ") == told


def test_a_scenario_that_cannot_be_is_named_with_its_letter():
    scenarios = answered(a={}, b={"gpus": "3"})
    assert compare_scenarios_if_all_computed(ENTRY, scenarios) is None
    problem = list_scenario_problems(scenarios)[0]
    assert problem.field == "b.gpus"
    assert problem.message.startswith("B: “3” GPUs cannot share")
    rows = build_input_rows(ENTRY, scenarios, NO_COURSE)
    assert rows[3].fields[1].error.startswith("“3” GPUs cannot share")


@pytest.mark.parametrize(
    ("direction", "better", "worse"),
    [("less", 1.0, 2.0), ("more", 2.0, 1.0), ("more", 9, 8), ("more", True, False)],
)
def test_better_is_what_the_output_declares(direction, better, worse):
    output = OutputSpec("room", "Room", "B", better=direction)
    assert is_better(Figure(output, better), Figure(output, worse))
    assert not is_better(Figure(output, worse), Figure(output, better))


def test_nothing_is_better_than_what_cannot_be_measured():
    price = OutputSpec("price", "Price", "USD", better="less")
    assert not is_better(Figure(price, 1.0), Figure(price, None))
    layers = OutputSpec("layers", "Layers", "layer")
    assert not is_better(Figure(layers, 1), Figure(layers, 2))
    assert not is_better(Figure(layers, 2), Figure(layers, 1))


def test_without_a_limit_the_leading_figure_is_told():
    entry = registry.find_estimate("kv-cache")
    sides = {"a": {"context": "8192"}, "b": {"context": "16384"}}
    lead = compare_scenarios_if_all_computed(entry, compute_scenarios(entry, sides)).lead
    assert lead.replace("\u00a0", " ") == ("All sequences: 2.7 GB with A, 5.4 GB with B.")


def test_a_comparison_leads_with_the_main_figure_that_differs_most():
    entry = registry.require_estimate("serving-capacity")
    shared = {"model": "llama-3.3-70b", "weights": "fp8", "concurrent": "50"}
    shared["tensor_parallel"] = "1"
    sides = {
        letter: {**shared, "gpu": g} for letter, g in (("a", "h200-sxm5-141"), ("b", "mi300x"))
    }
    scenarios = compute_scenarios(entry, sides)
    lead = compare_scenarios_if_all_computed(entry, scenarios).lead.replace("\u00a0", " ")
    a, b = (
        scenarios[letter].estimate["cost_per_million_tokens"].formatted_value for letter in "ab"
    )
    assert lead == f"Cost per million output tokens: {a} with A, {b} with B.".replace("\u00a0", " ")


def compared(question, **changed):
    """Return the comparison that an example question leads to, with some inputs changed."""
    start = next(q for q in EXAMPLE_QUESTIONS if q.question == question)
    entry = registry.require_estimate(start.estimate)
    return compare_scenarios_if_all_computed(
        entry, compute_scenarios(entry, split_scenarios(start.typed | changed))
    )


def test_ranges_and_few_measurements_are_said_of_two_gpus(client):
    start = next(q for q in EXAMPLE_QUESTIONS if q.question == "Which of two GPUs?")
    found = compared(start.question, weights="fp8", tensor_parallel="1")
    assert "p95 time per output token" in found.overlapping_figure_labels
    assert any(letter == "B" and "Only 2 measurements" in note for letter, note in found.notes)
    figures = {row.label: row.values for row in found.figure_rows}
    assert all(" to " in value.likely_range for value in figures["p95 time per output token"])
    assert all(" to " in value.likely_range for value in figures["GPUs"])
    page = client.get(start.calculator_url).text
    assert "The likely ranges overlap" in page
    assert "What only one assumes" in page


def test_speculation_is_compared_by_the_time_per_token():
    found = compared("What does speculation bring?")
    assert found.lead.startswith("p50 time per output token: ")
    assert not found.overlapping_figure_labels  # On one GPU and engine, an error moves both alike.
