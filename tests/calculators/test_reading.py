"""What a reader sees of an answer: what matters first, all else folded by group."""

import itertools
import re
from html import unescape
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest

from app.estimator import registry
from app.estimator.estimates.serving_capacity import ServingCapacityInputs
from app.estimator.inputs import input_specs
from app.estimator.result import BarSegment, StackedBar
from app.widgets.bar_charts import build_bar_legend, choose_segment_styles
from app.widgets.calculator_form import build_calculator_form
from app.widgets.estimate_view import (
    _SAME_OF_TRAINING,
    _SIMILAR_FIELD_NAMES,
    _translate_inputs_for_other_estimate,
)
from tests.amounts import each_of_sample

NAMES = [entry.name for entry in registry.list_estimates()]


def facts(page: str) -> list[str]:
    """The names of the figures that stand first."""
    (first,) = re.findall(r'<dl class="facts">.*?</dl>', page, re.DOTALL)
    return re.findall(r'data-figure="(\w+)"', first)


@each_of_sample("name", NAMES, 5)
def test_verdict_bar_and_three_figures_come_before_all_else(client, name):
    page = client.get(f"/calculators/{name}").text
    out = page[page.index('class="out"') :]

    assert len(facts(out)) == 3
    order = [out.index('class="verdict big"'), out.index('class="facts"')]
    if '<svg class="g' in out[: out.index('class="facts"')]:
        order.insert(1, out.index('<svg class="g'))
    order += [out.index("more figure"), out.index("The working")]
    assert order == sorted(order)


@each_of_sample("name", NAMES, 5)
def test_all_other_figures_are_folded_in_groups_and_none_stands_twice(client, name):
    page = client.get(f"/calculators/{name}").text
    folded = re.search(r'<details class="more-figures">.*?</details>', page, re.DOTALL)

    assert re.search(r'<th scope="rowgroup" colspan="3">\w', folded[0])
    shown = re.findall(r'data-figure="(\w+)"', page)
    assert len(shown) == len(set(shown))
    inside = re.findall(r'data-figure="(\w+)"', folded[0])
    assert {*facts(page), *inside} == set(shown)


def test_the_figures_that_matter_first_are_outputs():
    for entry in registry.list_estimates():
        assert len(entry.most_important_outputs) >= 3
        asked = dict(entry.outputs_of_typed_inputs)
        names = {*entry.most_important_outputs, *asked.values()}
        assert names <= {output.name for output in entry.outputs}
        assert set(asked) <= set(input_specs(entry.inputs_type))


def test_the_bandwidth_for_waiting_alone_is_shown_first_if_a_loss_is_typed(client):
    typed, preset, beside = (
        facts(client.get(f"/calculators/storage?{query}").text)
        for query in ("acceptable=1", "gpus=512", "acceptable=1&saving=beside")
    )
    assert typed == ["needed_wait", "interval", "lost"]
    assert preset == beside == ["interval", "lost", "waiting"]


def test_what_does_not_apply_is_not_called_unknown(client):
    path = "/calculators/accelerator-choice"
    serving, training = client.get(path).text, client.get(f"{path}?job=training").text

    for page in (serving, training):
        assert "does not apply" in page
        for name in ("gpu_hours", "duration", "token_time", "rate"):
            words = re.search(rf'data-figure="{name}">([^<]*)<', page)
            assert words[1] != "unknown"
    assert 'data-figure="duration">does not apply<' in serving
    assert 'data-figure="duration">does not apply<' not in training


def test_what_does_not_apply_says_why(client):
    page = client.get("/calculators/cost?rent=1").text
    text = " ".join(re.sub(r"<[^>]+>", "", page).split())
    assert "“Break-even utilization” does not apply: Renting is cheaper at any utilization." in text


def test_neighbors_in_a_bar_are_told_apart_without_their_color(
    subtests: pytest.Subtests,
):
    for name in NAMES:
        with subtests.test(name=name):
            entry = registry.find_estimate(name)
            for picture in entry.compute(entry.inputs_type()).pictures:
                if isinstance(picture, StackedBar):
                    looks = choose_segment_styles(picture)
                    letters = [look.letter for look in looks]
                    assert all(letters)
                    assert len(letters) == len(set(letters))
                    fills = [look.fill_class for look in looks]
                    assert all(a != b for a, b in itertools.pairwise(fills))


def test_the_second_part_of_a_color_has_a_letter_and_a_key_of_its_own():
    parts = (
        BarSegment("activations", "Activations", 5e9),
        BarSegment("activations", "Logits", 7e9),
        BarSegment("overhead", "Overhead", 1e9),
    )
    bar = StackedBar("Per GPU", parts, None, "")

    assert [look.letter for look in choose_segment_styles(bar)] == ["A", "L", "R"]
    assert build_bar_legend(bar) == (
        ("k-a", "Activations"),
        ("k-a k-pale", "Logits"),
        ("k-r", "Overhead (R)"),
    )


@each_of_sample("name", NAMES, 5)
def test_compare_opens_with_a_difference(client, name):
    page = client.get(f"/calculators/{name}").text
    link = unescape(re.search(r'href="(/calculators/[\w-]+/compare[^"]*)"[^>]*>Compare', page)[1])
    opened = client.get(link)

    assert opened.status_code == 200
    assert "What differs: " in opened.text
    assert "the same" in opened.text


def test_an_answer_leads_to_the_hardware_that_it_was_asked_of(client):
    page = client.get("/calculators/inference-memory?gpu=l40s").text

    assert re.search(r'<a href="/hardware/l40s">L40S</a>', page)


def test_a_text_shows_what_matters_first_and_folds_nothing(client):
    fragment = client.get("/calculators/inference-memory/reading").text

    assert len(facts(fragment)) == 3
    assert "more figure" not in fragment
    assert 'id="per_gpu"' not in fragment


def test_a_share_of_a_link_names_the_link_beside_its_likely_range(client):
    address = "/calculators/collectives/reading?gpus="
    inside, across = (
        unescape(client.get(f"{address}{n}").text).replace("\u00a0", " ") for n in (8, 64)
    )

    assert "Of the 450 GB/s of NVLink 4 with NVSwitch." in inside
    assert "GB/s between nodes, of the network adapter's 50 GB/s." in across


def test_a_long_choice_stands_below_its_label():
    shown = build_calculator_form(registry.find_estimate("training-memory"), {})
    groups = (*shown.shown_groups, *shown.folded_groups)
    fields = {f.name: f for group in groups for f in group.fields}

    assert fields["precision"].has_wide_choices
    assert not fields["sequence"].has_wide_choices


def test_links_to_other_calculators_take_the_load_along(client):
    def links_of(asked: str, other: str) -> dict[str, str]:
        page = unescape(client.get(f"/calculators/{asked}").text)
        line = re.search(r"<p class=\"small\">Other calculators.*?</p>", page, re.DOTALL)
        found = re.search(rf'href="/calculators/{other}\?([^"]*)"', line[0])
        return dict(parse_qsl(found[1], keep_blank_values=True))

    # One conversation of 7,000 + 1,000 tokens at home stays one of 8,000.
    cards = "gpu=rtx-3090&tensor_parallel=2&engine=llama.cpp&weights=gguf-q4-k-m"
    asked = f"latency?model=llama-3.3-70b&{cards}&prompt=7000&answer=1000"
    memory = links_of(asked, "inference-memory")
    assert (memory["context"], memory["concurrent"]) == ("8000", "1")
    answer = registry.run_estimate("inference-memory", memory)
    assert answer.verdict.status != "no"
    served = links_of(asked, "serving-capacity")
    assert [served[n] for n in ("prompt_tokens", "output_tokens", "concurrent")] == [
        "7000",
        "1000",
        "1",
    ]
    assert served["tpot_target"] == ""  # Nobody asked for one.
    # Users are those of all replicas, so that memory is not asked to hold them in one.
    users = "serving-capacity?model=8B&gpu=l40s&concurrent=500&prompt_tokens=3000&output_tokens=500"
    memory = links_of(users, "inference-memory")
    assert memory["context"] == "3500"
    assert "concurrent" not in memory
    assert "prompt" not in memory
    assert links_of(users, "latency")["prompt"] == "3000"
    # Those of one replica are its sequences.
    assert links_of(f"{users}&replicas=1", "inference-memory")["concurrent"] == "500"
    # All of them are the load of a choice of accelerators, with the same target.
    choice = links_of(f"{users}&tpot_target=40", "accelerator-choice")
    assert [choice[n] for n in ("context", "concurrent", "slowest")] == ["3500", "500", "40"]
    assert "concurrent" not in links_of(f"{users}&requests_per_second=5", "accelerator-choice")
    chosen = "accelerator-choice?model=8B&concurrent=50&slowest=40"
    assert links_of(chosen, "deployment")["tpot_target"] == "40"
    # A context is that of prompt and answer.
    served = links_of("inference-memory?context=32768&concurrent=8", "serving-capacity")
    assert int(served["prompt_tokens"]) + ServingCapacityInputs().output_tokens == 32768


# Inputs that mean the same under another label: the label of the one and of the other.
SAME_UNDER_OTHER_LABELS = {
    # A copy of the model answers its sequences for as many users; see `_SIMILAR_FIELD_NAMES` in estimate_view.
    frozenset({"Concurrent sequences", "Users at once"}),
    frozenset({"Concurrent sequences", "Sequences at once"}),
    frozenset({"Concurrent sequences", "Sequences"}),
    frozenset({"Sequences at once", "Users at once"}),
    frozenset({"Sequences at once", "Sequences"}),
    frozenset({"Sequences", "Users at once"}),
    frozenset({"Context", "Prompt"}),
    frozenset({"Slowest token", "Target: per token"}),
    frozenset({"Block", "Cache block"}),
    # Degrees of parallelism, which serving names by what the GPUs do.
    frozenset({"GPUs that share the model", "Tensor parallel"}),
    frozenset({"Pipeline stages", "Pipeline parallel"}),
    # The format of the weights that are stored, served, or changed to.
    frozenset({"Weights", "Format"}),
    frozenset({"Weights", "To"}),
    frozenset({"Format", "To"}),
    # Of a run that reads its data once.
    frozenset({"Training tokens", "Tokens of the data set"}),
    frozenset({"Training tokens", "Tokens to train on"}),
    frozenset({"Tokens to train on", "Tokens of the data set"}),
    frozenset({"Deadline", "Time for the training"}),
    frozenset({"GPU", "Only this one"}),
}
COUNTED_IN = {frozenset({"sequence", ""})}  # Users, of whom each has one sequence.


def test_inputs_of_one_name_mean_the_same_or_say_that_they_do_not():
    by_name = {}
    for entry in registry.list_estimates():
        for name, spec in input_specs(entry.inputs_type).items():
            by_name.setdefault((name, spec.quantity), []).append((entry.name, spec))
    for (name, _), specs in by_name.items():
        for (one, spec), (other, its) in itertools.combinations(specs, 2):
            both = f"{name} of {one} and {other}"
            labels, units = frozenset({spec.label, its.label}), frozenset({spec.unit, its.unit})
            assert len(labels) == 1 or labels in SAME_UNDER_OTHER_LABELS, both
            assert len(units) == 1 or units in COUNTED_IN, both
            assert {spec.kind, its.kind} in ({spec.kind}, {"count", "number"}), both


def test_every_link_passes_on_only_what_means_the_same(subtests: pytest.Subtests):
    """With a value in every field: what is carried has the label and unit of where it is from."""
    examples = {
        "count": 8,
        "number": 8.0,
        "system": "dgx-h100",
        "model": "8B",
        "gpu": "h100-sxm5-80",
    }
    for entry in registry.list_estimates():
        specs = input_specs(entry.inputs_type)
        if "model" not in specs:
            continue
        values = {name: getattr(entry.inputs_type(), name) for name in specs}
        values |= {n: examples[specs[n].kind] for n, value in values.items() if value is None}
        for other in registry.list_estimates():
            targets = input_specs(other.inputs_type)
            if other.name == entry.name or "model" not in targets:
                continue
            with subtests.test(link=f"{entry.name} to {other.name}"):
                for name in _translate_inputs_for_other_estimate(other, specs, values):
                    spec, names = (
                        targets[name],
                        (name, *(_SIMILAR_FIELD_NAMES | _SAME_OF_TRAINING).get(name, ())),
                    )
                    sources = [specs[n] for n in names if n in specs]
                    if spec.clearable or name == "job" or (name == "context" and not sources):
                        continue  # Emptied, or the sum of prompt and answer.
                    assert sources, name
                    labels = frozenset({sources[0].label, spec.label})
                    assert len(labels) == 1 or labels in SAME_UNDER_OTHER_LABELS, name
                    assert sources[0].quantity == spec.quantity, name


def test_tokens_of_a_micro_batch_are_not_those_of_a_training(client):
    for path in (
        "collectives?tokens=4096",
        "serving-capacity?replicas=3",
        "inference-memory?overhead=3",
    ):
        page = unescape(client.get(f"/calculators/{path}").text)
        line = re.search(r"<p class=\"small\">Other calculators.*?</p>", page, re.DOTALL)
        for link in re.findall(r'href="/calculators/([^"]*)"', line[0]):
            carried = dict(parse_qsl(urlsplit(link).query))
            assert "tokens" not in carried, link
            if "storage" in link or "training" in link:
                assert not {"replicas", "overhead"} & set(carried), link


def test_links_to_other_calculators_take_the_weights_along_and_repeat_no_section(client):
    # Serving in FP8 of a model that isn't quantized: memory must not go back to BF16.
    asked = "model=llama-3.3-70b&gpu=h200-sxm5-141&weights=published-or-fp8"
    page = client.get(f"/calculators/serving-capacity?{asked}").text
    assert "Weights in FP8, as chosen for Llama 3.3 70B" in unescape(page)
    links = re.findall(r'href="(/calculators/inference-memory\?[^"]*)"', page)
    assert links
    assert all("weights=fp8" in unescape(link) for link in links)
    # Each section of a composed estimate has a link with all its inputs, and only that one.
    run = client.get("/calculators/training-run").text
    onward = re.search(r"<p class=\"small\">Other calculators.*?</p>", run, re.DOTALL)
    assert onward
    assert "/calculators/training-time" not in onward[0]
    assert "/calculators/kv-cache" in onward[0]


def test_a_training_run_leads_on_to_the_choice_for_the_same_training(client):
    run = "/calculators/training-run?model=llama-3.1-8b&tokens=2T&gpu=h100-sxm5-80&deadline=20"
    found = re.search(r'href="(/calculators/accelerator-choice\?[^"]*)"', client.get(run).text)
    assert found
    typed = parse_qs(urlsplit(unescape(found[1])).query)
    carried = {"job": "training", "tokens": "2000000000000", "days": "20", "only": "h100-sxm5-80"}
    assert {name: typed[name][0] for name in carried} == carried
    assert typed["model"] == ["llama-3.1-8b"]
    # The choice counts training of all parameters only.
    assert "/calculators/accelerator-choice" not in client.get(f"{run}&method=lora").text
