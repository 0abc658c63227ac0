"""A calculator anywhere: the form from its declarations, and its reading."""

import dataclasses
import re

import pytest
from markupsafe import escape

from app.estimator.inputs import input_specs, parse_inputs
from app.estimator.registry import find_estimate, list_estimates, require_estimate
from app.settings import ROOT
from app.web.render import StaticAssets, create_template_env
from app.widgets.calculator_form import (
    CourseLinkTargets,
    build_calculator_form,
    build_form_fields,
    catalog_options,
)
from app.widgets.estimate_view import build_estimate_view, format_interval_or_exact
from tests.calculators.sample import ENTRY, SampleInputs, compute

COURSE = CourseLinkTargets({"weights": "Weights"}, {"kv-cache"})


@pytest.fixture(scope="session")
def templates():
    return create_template_env(ROOT / "templates", StaticAssets(ROOT / "static"))


def html_of(templates, shown):
    template = templates.get_template("calculators/_form.html")
    return template.render(instrument=shown)


def reading_of(**inputs):
    given = SampleInputs(**inputs)
    return build_estimate_view(
        ENTRY, given, compute(given), linkable_topics=COURSE.topic_titles_by_slug
    )


def fields_by_name(shown):
    return {f.name: f for g in (*shown.shown_groups, *shown.folded_groups) for f in g.fields}


def test_every_declared_input_has_its_field_in_the_form():
    shown = build_calculator_form(ENTRY, {})
    widgets = {name: f.widget for name, f in fields_by_name(shown).items()}
    assert widgets == {
        "model": "size",
        "weights": "select",
        "gpu": "size",
        "gpus": "step",
        "overhead": "number",
        "context": "number",
        "paged": "tick",
        "note": "text",
    }


def test_fields_stand_under_their_groups_and_advanced_ones_are_folded():
    shown = build_calculator_form(ENTRY, {})
    assert [g.title for g in shown.shown_groups] == ["Model", "Hardware", ""]
    assert [g.title for g in shown.folded_groups] == ["More"]
    assert not shown.folded_groups[0].is_unfolded


def test_an_advanced_field_that_was_typed_into_is_unfolded():
    assert build_calculator_form(ENTRY, {"note": "{}"}).folded_groups[0].is_unfolded


def test_three_inputs_show_and_the_rest_says_in_its_fold_what_it_holds():
    entry = dataclasses.replace(ENTRY, main_inputs=("model", "gpus", "weights"))
    shown = build_calculator_form(entry, {})
    assert [f.name for group in shown.shown_groups for f in group.fields] == [
        "model",
        "weights",
        "gpus",
    ]
    assert [g.title for g in shown.folded_groups] == ["Hardware", "", "More"]
    assert shown.folded_groups[0].first_values_text.startswith("GPU: H100 SXM5 80GB")


def test_an_empty_field_shows_what_counts_instead():
    training = find_estimate("training-memory")
    assert training is not None

    def usual(**typed: str) -> str:
        return fields_by_name(build_calculator_form(training, typed))["gpus"].value_if_empty

    assert (usual(), usual(method="lora")) == ("32", "1")


@pytest.mark.parametrize(("typed", "usual"), [("dgx-h100", "40"), ("gb200-nvl72", "132")])
def test_a_rack_shows_the_power_that_it_is_assumed_to_have(typed: str, usual: str):
    form = build_calculator_form(require_estimate("power-cooling"), {"system": typed})
    field = fields_by_name(form)["rack_limit"]
    assert (field.value, field.value_if_empty, field.unit) == ("", usual, "kW")


def test_the_write_bandwidth_that_counts_while_none_is_typed_is_shown():
    storage = require_estimate("storage")

    def usual(**typed: str) -> str:
        return fields_by_name(build_calculator_form(storage, typed))[
            "write_bandwidth"
        ].value_if_empty

    assert usual() == "100"
    assert usual(save_within="60 s") == "16.5"  # 70.55 billion parameters of 14 bytes in a minute


def test_a_new_result_tells_the_form_what_its_empty_fields_stand_for(client, subtests):
    for address, typed, told in (
        ("serving-capacity/result", "model=llama-3.1-8b", 'tensor_parallel" data-usual="1"'),
        ("serving-capacity/result", "gpu=2x+H100", 'tensor_parallel" data-usual="2"'),
        ("latency/reading", "model=llama-3.1-70b", 'tensor_parallel" data-usual="2"'),
        ("cost/result", "gpus=8", 'staff" data-usual="88,388"'),
        ("training-memory/result", "gpu=8x+H100", 'gpus" data-usual="8"'),
        ("cost/compare/result", "b.gpus=8", 'b.staff" data-usual="88,388"'),
    ):
        with subtests.test(address=address, typed=typed):
            shown = client.get(f"/calculators/{address}?{typed}").text
            assert f'data-depends="{told}' in shown
            assert "data-depends" not in client.get(f"/calculators/{address.split('/')[0]}").text


def test_an_untouched_form_shows_its_defaults_as_people_write_them():
    values = {n: f.value for n, f in fields_by_name(build_calculator_form(ENTRY, {})).items()}
    assert values["overhead"] == "4"
    assert values["context"] == "8,192"
    cost = fields_by_name(build_calculator_form(require_estimate("cost"), {"priced_in": "2026"}))
    assert cost["priced_in"].value == "2026"
    assert values["paged"] == "yes"


def test_words_stay_as_they_were_typed_and_names_become_those_of_the_list():
    typed = {"overhead": "4000 MB", "context": "128k", "gpu": "4x H100"}
    values = {n: f.value for n, f in fields_by_name(build_calculator_form(ENTRY, typed)).items()}
    assert values["overhead"] == "4000 MB"
    assert values["context"] == "128k"
    assert values["gpu"] == "h100-sxm5-80"
    assert values["gpus"] == "4"


def test_thousands_of_tokens_are_said_as_they_were_read(client, subtests):
    """As vLLM reads --max-model-len: k is 1,000 and K is 1,024."""
    page = "/calculators/inference-memory"
    for typed, said in (
        ("128k", "Context: 128k is 128,000 tokens; 128K would be 131,072."),
        ("128K", "Context: 128K is 131,072 tokens; 128k would be 128,000."),
        ("32 k tokens", "Context: 32 k is 32,000 tokens; 32K would be 32,768."),
        ("131072", ""),
        ("128Ki", ""),
    ):
        for address in (page, f"{page}/result"):
            with subtests.test(typed=typed, address=address):
                text = client.get(f"{address}?context={typed}").text
                assert (said in text) if said else ("would be" not in text)


def test_the_unit_that_stands_beside_a_field_is_not_in_it_as_well():
    typed = {"overhead": "4 GB", "context": "2,368 tokens"}
    values = {n: f.value for n, f in fields_by_name(build_calculator_form(ENTRY, typed)).items()}
    assert (values["overhead"], values["context"]) == ("4", "2,368")


def test_a_wrong_input_keeps_every_word_and_is_named_at_its_field(templates):
    typed = {"gpus": "0", "overhead": "lots", "weights": "int4", "gpu": "H9000"}
    shown = build_calculator_form(ENTRY, typed)
    fields = fields_by_name(shown)
    assert shown.estimate is None
    assert {n: f.value for n, f in fields.items() if n in typed} == typed
    assert fields["gpus"].error == "“0” for GPUs is too small: 1 to 1,024 GPUs."
    html = html_of(templates, shown)
    assert html.count('aria-invalid="true"') == 3
    assert re.search(r'id="calc-gpu-own" name="gpu" value="H9000"', html)
    assert "No result until these are corrected." in html


def test_what_is_wrong_in_a_folded_field_is_said_with_the_refusal_too(templates):
    shown = build_calculator_form(
        require_estimate("inference-memory"), {"model": "8B", "weights": "gguf-q8-0"}
    )
    html = html_of(templates, shown)
    refusal = html[html.index("No result until this is corrected.") :]
    assert '<a href="#calc-weights">Weights</a>: This format is of llama.cpp' in refusal
    assert 'id="calc-weights"' in html


def test_a_combination_that_cannot_be_is_named_at_its_field():
    shown = build_calculator_form(ENTRY, {"gpus": "3"})
    assert fields_by_name(shown)["gpus"].error.startswith("“3” GPUs cannot share")


def test_a_size_that_no_list_has_stands_in_the_field_for_sizes(templates):
    html = html_of(templates, build_calculator_form(ENTRY, {"model": "33B"}))
    assert re.search(r'<option[^>]* value="" selected>', html)
    assert re.search(r'id="calc-model-own" name="model" value="33B"', html)


def test_a_block_has_the_fields_it_names_and_the_short_reading(templates):
    shown = build_calculator_form(ENTRY, {"gpus": "4"}, is_short_block=True, element_id="c2")
    assert list(fields_by_name(shown)) == ["gpus"]
    html = html_of(templates, shown)
    assert 'hx-get="/calculators/sample/reading"' in html
    assert 'id="c2-gpus"' in html
    assert 'href="/calculators/sample?gpus=4" data-follow="one">Full calculator' in html
    assert "calc-link" not in html


def test_the_form_works_without_and_with_htmx(templates):
    html = html_of(templates, build_calculator_form(ENTRY, {}))
    assert 'action="/calculators/sample#reading"' in html
    assert 'hx-post="/calculators/sample/result"' in html
    assert 'hx-target="next .out"' in html
    assert re.search(r"<noscript><button[^>]*>Calculate</button></noscript>", html)


def test_fields_point_to_pages_and_terms_that_the_course_has(templates):
    html = html_of(templates, build_calculator_form(ENTRY, {}, link_targets=COURSE))
    assert 'href="/concepts/weights">Explain it to me' in html
    assert 'href="/glossary#kv-cache"' in html
    bare = html_of(templates, build_calculator_form(ENTRY, {}))
    assert "/concepts/" not in bare
    assert "/glossary#" not in bare


def test_ids_are_unique_on_a_page_with_two_instruments(templates):
    html = "".join(
        html_of(
            templates,
            build_calculator_form(ENTRY, {"gpus": "4"}, is_short_block=True, element_id=f"c{i}"),
        )
        for i in (1, 2)
    )
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))


def test_the_verdict_marks_the_numbers_that_it_computed():
    reading = reading_of()
    assert re.search("<span[^>]*>6.1\u00a0GB</span>", str(reading.verdict_text))
    assert "of its 80\u00a0GB" in reading.verdict_text
    assert str(escape("<really>")) in reading.verdict_text


def test_a_modeled_figure_has_its_interval_and_an_exact_one_says_so():
    spans = {f.name: format_interval_or_exact(f) for f in compute(SampleInputs()).figures}
    assert spans["rate"] == "800 to 1,300\u00a0tokens/s"
    assert spans["per_gpu"] == "exact"
    assert spans["fits"] == spans["unknown"] == ""


def test_a_figure_that_cannot_be_known_says_why():
    unknown = next(f for f in compute(SampleInputs()).figures if f.name == "unknown")
    assert (unknown.formatted_value, unknown.note) == ("unknown", "No price was given.")


def test_the_working_cites_its_source_and_the_page_that_explains_it():
    step = reading_of().steps[0]
    assert step.source_url == "https://arxiv.org/abs/2305.13245"
    assert step.topic == "weights"


def test_what_would_change_the_verdict_leads_there():
    change = reading_of(weights="int4").changes[0]
    assert change.url == "/calculators/sample?weights=int4&gpus=1"


def test_the_link_holds_every_input_that_is_not_a_default():
    assert reading_of().url == "/calculators/sample"
    reading = reading_of(context=128000, paged=False)
    assert reading.url == "/calculators/sample?context=128000&paged=no"


def test_inputs_too_long_for_an_address_have_no_link():
    assert reading_of(note="x" * 7000).url == ""


def test_nothing_in_an_instrument_needs_a_looser_content_policy(templates):
    html = html_of(templates, build_calculator_form(ENTRY, {}, link_targets=COURSE))
    assert not re.search(r'\sstyle="|\son\w+="|<script', html)


def test_a_fold_says_the_numbers_that_count_in_it():
    run = find_estimate("training-run")
    assert run is not None
    typed = {"deadline": "30"}
    briefs = {g.title: g.first_values_text for g in build_calculator_form(run, typed).folded_groups}

    assert briefs["Run"] == "Deadline: 30 days, Method: All weights"
    assert briefs["Network"] == "Oversubscription: 1"
    assert briefs["Hardware"] == ""


def test_a_field_that_another_one_replaces_is_said_not_to_count() -> None:
    entry = require_estimate("serving-capacity")

    def beside(typed: dict[str, str], name: str) -> str:
        inputs = parse_inputs(entry.inputs_type, typed)
        fields = {f.name: f for f in build_form_fields(entry, typed, inputs, (), element_id="x")}
        return fields[name].unit

    assert beside({}, "concurrent") == ""
    assert beside({"requests_per_second": "20"}, "concurrent") == "not used"
    apart = {"model": "deepseek-v3", "prefill_gpus": "8", "decode_gpus": "32"}
    for name in (
        "tensor_parallel",
        "attention_parallel",
        "expert_parallel",
        "expert_tensor_parallel",
        "pipeline_parallel",
    ):
        assert beside(apart, name) == "not used" != beside({}, name), name


def test_the_page_of_prefill_apart_says_which_gpus_do_not_count(client):
    apart = "model=deepseek-v3&gpu=gb200&prefill_gpus=8&decode_gpus=32"
    address = "/calculators/serving-capacity"
    assert "Not used: “GPUs of a decode replica” is given." in client.get(f"{address}?{apart}").text
    assert "Not used" not in client.get(address).text


def test_a_model_that_is_still_to_be_written_has_no_result(htmx):
    # The list sends nothing for “Another”, and neither does the empty field beside it.
    address = "/calculators/inference-memory/result?model=&model=&context=4096"
    empty = htmx.get(address)
    assert empty.status_code == 200
    assert "Model: write a size such as 33B" in empty.text
    assert "err" not in empty.text  # Nothing was written that could be wrong.
    assert "Fits" not in empty.text
    for written, status in (("8B", 200), ("nonsense", 422)):
        said = htmx.get(address.replace("model=&model=", f"model=&model={written}"))
        assert said.status_code == status


def test_a_number_typed_with_a_unit_has_none_beside_it() -> None:
    entry = require_estimate("inference-memory")
    typed = {"shown_memory": "16303 MiB"}
    inputs = parse_inputs(entry.inputs_type, typed)
    fields = {f.name: f for f in build_form_fields(entry, typed, inputs, (), element_id="x")}
    assert (fields["shown_memory"].value, fields["shown_memory"].unit) == ("16303 MiB", "")


def test_one_of_something_is_never_several(subtests: pytest.Subtests) -> None:
    for entry in list_estimates():
        typed = {
            name: "1"
            for name, spec in input_specs(entry.inputs_type).items()
            if spec.unit and not spec.typed_unit and spec.kind in {"count", "number"}
        }
        form = build_calculator_form(entry, typed)
        for group in (*form.shown_groups, *form.folded_groups):
            for field in group.fields:
                with subtests.test(entry.name, field=field.name):
                    assert not re.search(r"\b1 (?!ms)[A-Za-z]+s$", field.effective_value_with_label)
    plan = require_estimate("parallelism-plan")
    one = plan.compute(
        parse_inputs(plan.inputs_type, {"gpus": "8", "model": "8B", "global_batch": "1"})
    )
    assert "1 sequence with 4,096 tokens per step." in one.notes


def test_forms_offer_no_chip_whose_memory_is_all_on_it() -> None:
    offered = {option.value for group in catalog_options("gpu") for option in group.options}
    assert "h100-sxm5-80" in offered
    assert not offered & {"groq-lpu-v1", "groq-3-lpu", "cerebras-wse3"}
