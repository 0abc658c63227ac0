"""/calculators: the list, one calculator, its fragments, and what is taken along."""

import codecs
import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from html import unescape

import pytest

from app.estimator import registry
from app.estimator.inputs import input_specs
from app.widgets.estimate_view import EXAMPLE_QUESTIONS
from tests.amounts import each_of_sample, sample

PATH = "/calculators/inference-memory"
NAMES = [entry.name for entry in registry.list_estimates()]


def test_the_list_names_every_calculator_with_its_answer(client):
    page = client.get("/calculators")
    assert page.status_code == 200
    for entry in registry.list_estimates():
        assert f'href="/calculators/{entry.name}"' in page.text
        assert entry.summary.replace("'", "&#39;") in page.text


def test_a_number_of_gpus_is_said_to_be_needed(client):
    page = client.get("/calculators").text

    assert "12\u00a0GPUs</b>Needed</p>" in page
    assert "GPUs</b>GPUs" not in page


@each_of_sample("start", EXAMPLE_QUESTIONS, 4, ids=lambda s: s.question)
def test_a_question_on_the_list_leads_to_an_answer(client, start):
    assert start.question in client.get("/calculators").text
    assert client.get(start.calculator_url).status_code == 200


@each_of_sample("name", NAMES, 5)
def test_every_calculator_has_a_page_with_form_verdict_and_working(client, name):
    page = client.get(f"/calculators/{name}")
    assert page.status_code == 200
    assert f'action="/calculators/{name}#reading"' in page.text
    assert "The working" in page.text
    entry = registry.find_estimate(name)
    words = unescape(re.sub("<[^>]+>", "", page.text))
    assert entry.compute(entry.inputs_type()).verdict.lead in words


@each_of_sample("name", NAMES, 5)
def test_every_figure_is_a_place_that_a_link_can_name(client, name):
    page = client.get(f"/calculators/{name}").text
    ids = re.findall(r'\sid="([^"]+)"', page)
    assert sorted(ids) == sorted(set(ids))
    assert {output.name for output in registry.find_estimate(name).outputs} <= set(ids)


def test_a_range_is_told_unless_it_is_too_wide_to_be_met(client):
    told = re.findall(r"Takes ([^<]+)\.</p>", client.get("/calculators/training-time").text)

    assert "1 to 4,096" in told
    assert not [words for words in told if "×10" in words or "0.0" in words]


def test_the_query_is_the_state_of_the_page(client):
    page = client.get(f"{PATH}?model=llama-3.1-8b&context=32k&gpu=l40s")
    assert '<option value="llama-3.1-8b" selected>' in page.text
    assert 'value="32k"' in page.text
    assert '<option value="l40s" selected>' in page.text


def test_a_form_with_every_field_and_an_empty_second_one_is_understood(client):
    query = "model=&model=13B&weights=bf16&context=8%2C192&concurrent="
    assert client.get(f"{PATH}?{query}").status_code == 200


def test_a_wrong_input_is_a_page_that_keeps_what_was_typed(client):
    page = client.get(f"{PATH}?context=5x&concurrent=77")
    assert page.status_code == 422
    assert 'value="5x"' in page.text
    assert 'value="77"' in page.text
    assert "“5x” for context cannot be read" in page.text
    assert "<h1>" in page.text


def test_a_wrong_input_in_a_fragment_is_a_fragment(htmx):
    answer = htmx.get(f"{PATH}/result?context=5x")
    assert answer.status_code == 422
    assert "“5x” for context cannot be read" in answer.text
    assert "<html" not in answer.text


def test_an_input_that_is_none_is_refused_by_name(client):
    page = client.get(f"{PATH}?contxt=8k")
    assert page.status_code == 422
    assert "Did you mean “context”?" in page.text


def test_a_calculator_that_is_none_is_not_found(client):
    assert client.get("/calculators/nothing").status_code == 404
    assert client.get("/calculators/inference_memory").status_code == 404


def test_the_fragment_holds_what_the_page_shows(client):
    fragment = client.get(f"{PATH}/result?concurrent=8").text
    page = client.get(f"{PATH}?concurrent=8").text
    told = [line for line in fragment.splitlines() if "GB" in line]
    assert told
    assert all(line in page for line in told)
    assert "<html" not in fragment


def test_the_short_reading_has_no_tables_and_no_links_to_take(client):
    fragment = client.get(f"{PATH}/reading?concurrent=8").text
    assert "Fits." in fragment
    assert "<table" not in fragment
    assert "calc-link" not in fragment


def test_a_fragment_is_the_same_for_everybody_and_unchanged_is_not_sent_again(client):
    first = client.get(f"{PATH}/result?concurrent=8")
    again = client.get(
        f"{PATH}/result?concurrent=8", headers={"If-None-Match": first.headers["etag"]}
    )
    assert again.status_code == 304


def test_figures_are_taken_along_as_csv(client):
    answer = client.get(f"{PATH}/result.csv?concurrent=8")
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.content.startswith(codecs.BOM_UTF8)  # or Excel shows × as two signs
    rows = list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))
    estimate = registry.run_estimate("inference-memory", {"concurrent": "8"})
    assert {r["name"] for r in rows} == {f.name for f in estimate.figures}
    weights = next(r for r in rows if r["name"] == "weights")
    assert float(weights["value"]) == estimate["weights"].value


def test_an_answer_is_taken_along_as_markdown_with_its_link(client):
    answer = client.get(f"{PATH}/result.md?concurrent=8")
    assert answer.text.startswith("## Inference memory\n\n**Fits.**")
    assert "| Figure | Value | Likely range |" in answer.text
    assert f"http://testserver{PATH}?concurrent=8" in answer.text


def test_an_answer_is_taken_along_as_json(client):
    answer = client.get(f"{PATH}/result.json?concurrent=8")
    assert "attachment" in answer.headers["content-disposition"]
    assert json.loads(answer.text)["inputs"]["concurrent"] == 8


def test_words_in_a_csv_are_no_formula_of_a_spreadsheet(client):
    text = client.get(f"{PATH}/result.csv").text
    assert not re.search(r"(^|,)[=+@]", text, re.MULTILINE)


def test_a_posted_form_that_fits_an_address_leads_there(client):
    answer = client.post(PATH, data={"concurrent": "8", "context": ""})
    assert answer.status_code == 303
    assert answer.headers["location"] == f"{PATH}?concurrent=8"


def test_a_comparison_shows_two_scenarios_and_marks_what_differs(client):
    page = client.get(f"{PATH}/compare?context=16k&b.weights=fp8")
    assert page.status_code == 200
    assert "B has more room" in page.text
    assert "What differs: Weights." in page.text
    link = "/calculators/inference-memory/compare?context=16000&amp;b.weights=fp8"
    assert f'value="{link}"' in page.text


def test_a_comparison_of_nothing_opens_with_two_sides_that_differ(client):
    page = client.get(f"{PATH}/compare", follow_redirects=True)
    assert str(page.url).partition("/compare?")[2].startswith("b.")
    assert "What differs: Context" in page.text


def test_a_comparison_can_be_swapped_and_gets_a_third(client):
    page = client.get(f"{PATH}/compare?b.weights=fp8").text
    assert 'href="/calculators/inference-memory/compare?a.weights=fp8"' in page
    third = "/calculators/inference-memory/compare?b.weights=fp8&amp;c.weights=fp8"
    assert f'href="{third}"' in page
    assert "C against A" in client.get(third.replace("&amp;", "&")).text


def test_a_wrong_scenario_is_named_and_the_others_are_kept(client):
    page = client.get(f"{PATH}/compare?a.context=16k&b.context=5x")
    assert page.status_code == 422
    assert 'value="5x"' in page.text
    assert 'value="16k"' in page.text
    fragment = client.get(f"{PATH}/compare/result?b.context=5x")
    assert fragment.status_code == 422
    assert 'data-problem="b.context"' in fragment.text


def test_a_comparison_is_itself_a_fragment(client):
    fragment = client.get(f"{PATH}/compare/result?b.weights=fp8")
    assert "B has more room" in fragment.text
    assert "<html" not in fragment.text


CONFIG = json.dumps(
    {
        "model_type": "llama",
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "intermediate_size": 11008,
        "vocab_size": 32000,
    }
)


def test_a_pasted_configuration_is_posted_and_short_ones_become_a_link(client):
    answer = client.post("/calculators/model", data={"config": CONFIG})
    assert answer.status_code == 303
    page = client.get(answer.headers["location"])
    assert "6,738,415,616" in page.text


def test_a_long_configuration_is_answered_without_a_link(client):
    long = CONFIG[:-1] + ', "note": "' + "x" * 7000 + '"}'
    page = client.post("/calculators/model", data={"config": long})
    assert page.status_code == 200
    assert "6,738,415,616" in page.text
    assert "too long for a link" in page.text
    assert "hidden_size" in page.text


def test_a_configuration_that_is_too_large_to_send_says_what_to_take_out(client):
    for address in ("/calculators/weights", "/api/v1/estimates/weights"):
        answer = client.post(address, content=b"x" * 300_000)
        assert answer.status_code == 413
        assert "quantization_config.quantized_layers" in answer.text


def test_an_uploaded_configuration_wins_over_the_text_beside_it(client):
    files = {"config": ("config.json", CONFIG, "application/json")}
    answer = client.post("/calculators/model/result", files=files)
    assert "6,738,415,616" in answer.text


def test_an_uploaded_file_that_is_no_text_is_refused(client):
    files = {"config": ("config.bin", b"\xff\xfe\x00\x81", "application/octet-stream")}
    answer = client.post("/calculators/model", files=files)
    assert answer.status_code == 422
    assert "The file is not text." in answer.text


def test_a_configuration_that_cannot_be_read_is_refused_at_its_field(client):
    answer = client.post("/calculators/model/result", data={"config": "{"})
    assert answer.status_code == 422
    assert 'data-problem="config"' in answer.text


def test_a_comparison_is_taken_along_in_three_forms(client):
    path, query = f"{PATH}/compare/result", "?b.weights=fp8"
    text = client.get(f"{path}.md{query}").text
    assert text.startswith("## Inference memory, side by side\n\n**B has more room")
    assert "| Figure | A | B | B against A |" in text
    assert f"http://testserver{PATH}/compare?b.weights=fp8" in text
    table = client.get(f"{path}.csv{query}").content.decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(table)))
    weights = next(r for r in rows if r["name"] == "weights")
    assert float(weights["a"]) > float(weights["b"])
    both = client.get(f"{path}.json{query}").json()
    assert both["b"]["inputs"]["weights"] == "fp8"
    assert client.get(f"{path}.csv?b.weights=none").status_code == 422


def test_a_picture_is_taken_along_as_a_file_that_needs_no_style_sheet(client):
    answer = client.get(f"{PATH}/result.svg?concurrent=8")
    assert answer.headers["content-type"] == "image/svg+xml"
    root = ET.fromstring(answer.text)  # noqa: S314 - our own drawing
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "var(" not in answer.text
    assert "light-dark" not in answer.text
    assert client.get("/calculators/model/result.svg").status_code == 404


def test_the_list_of_mig_offers_only_what_can_be_parted(client):
    page = client.get("/calculators/mig").text

    assert 'value="h100-sxm5-80"' in page
    assert 'value="t4"' not in page
    assert 'value="t4"' in client.get("/calculators/inference-memory").text


@pytest.mark.drawn
def test_a_pasted_model_is_handed_on_to_every_calculator_that_asks_for_one(client):
    page = client.post("/calculators/model", data={"config": CONFIG}, follow_redirects=True)
    links = re.findall(r'href="(/calculators/[\w-]+\?model=config[^"]+)"', page.text)

    asking = [e for e in registry.list_estimates() if "model" in input_specs(e.inputs_type)]
    asking = [e for e in asking if e.name != "model"]
    assert len(links) == len(asking)
    for link in sample(links, 4, "handed on"):
        other = client.get(unescape(link))
        assert other.status_code == 200, link
        assert "From config.json" in other.text


def test_a_whole_configuration_is_posted_to_any_calculator_and_becomes_a_link(client):
    long = CONFIG[:-1] + ', "id2label": {"0": "' + "x" * 20_000 + '"}}'

    answer = client.post("/calculators/latency", data={"model": long, "batch": "4"})
    fragment = client.post("/calculators/latency/result", data={"model": long, "batch": "4"})

    assert answer.status_code == 303
    assert client.get(answer.headers["location"]).status_code == 200
    assert "batch=4" in fragment.text


def test_a_mig_instance_links_to_inference_memory_on_it(client) -> None:
    page = client.get("/calculators/mig?gpu=h100-sxm5-80").text
    address = (
        "/calculators/inference-memory?gpu=h100-sxm5-80&amp;tensor_parallel=1"
        "&amp;shown_memory=9.75+GiB"
    )
    # The calculator of partitions asks for no model.
    text = "Inference memory of a model of your choice on 1g.10gb"
    assert f'<a href="{address}">{text}</a>' in page


def test_the_load_goes_along_from_inference_memory_to_latency(client) -> None:
    page = client.get("/calculators/inference-memory?context=32768&concurrent=12").text
    (address,) = re.findall(r'"(/calculators/latency\?[^"]*)"', page)
    assert "prompt=32512" in address  # With an answer of 256 tokens.
    assert "batch=12" in address
    page = client.get(f"/calculators/latency?{address.partition('?')[2].replace('&amp;', '&')}")
    assert page.status_code == 200
