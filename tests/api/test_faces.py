"""Every estimate of the registry stands on all its faces with the same numbers."""

import html
import json
import re

import pytest

from app.cli.estimator import run_estimate_command
from app.estimator import registry
from app.estimator.inputs import input_specs, parse_inputs
from app.markup.expressions import compile_expression, compute_estimate_figure, evaluate_expression
from app.widgets.calculator_form import build_calculator_form
from tests.amounts import sample

pytestmark = pytest.mark.drawn
NAMES = [entry.name for entry in registry.list_estimates()]


def plain(text):
    words = html.unescape(re.sub(r"<[^>]+>", "", text)).replace("\u00a0", " ")
    return re.sub(r"\s+", " ", words)


def shown_figures(fragment):
    found = re.findall(r'data-figure="([^"]+)">(.*?)</span>', fragment, re.DOTALL)
    return {name: plain(value) for name, value in found}


def pytest_generate_tests(metafunc):
    """Of pages and answers a few estimates for each test; `make drills`: all."""
    if "name" in metafunc.fixturenames:
        asks = "client" in metafunc.fixturenames
        most = 5 if asks else len(NAMES)
        metafunc.parametrize("name", sample(NAMES, most, metafunc.function.__name__))


@pytest.fixture
def answer(client, name):
    """What the API says of the inputs that the estimate starts with."""
    return client.get(f"/api/v1/estimates/{name}").json()


def test_the_registry_promises_what_it_answers(name):
    entry = registry.find_estimate(name)
    figures = {f.name: f for f in entry.compute(entry.inputs_type()).figures}
    for output in entry.outputs:
        assert figures[output.name].unit == output.unit, output.name


def test_the_result_shows_the_figures_of_the_api(client, name, answer):
    fragment = client.get(f"/calculators/{name}/result").text
    expected = {f["name"]: f["text"] for f in answer["figures"]}
    assert shown_figures(fragment) == expected
    verdict = f"{answer['verdict']['lead']} {answer['verdict']['text']}"
    assert re.sub(r"\s+", " ", verdict) in plain(fragment)


def test_the_form_has_a_field_for_every_input_of_the_api(client, name, answer):
    page = client.get(f"/calculators/{name}").text
    form = page[page.index("<form") : page.index("</form>")]
    assert set(re.findall(r'data-field="(\w+)"', form)) == set(answer["inputs"])


def test_the_command_says_what_the_api_says(name, answer, capsys):
    assert run_estimate_command([name, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == answer


def test_a_block_in_a_text_reads_what_the_api_reads(client, name, answer):
    first = next(iter(input_specs(registry.find_estimate(name).inputs_type)))
    block = build_calculator_form(
        registry.find_estimate(name), {first: ""}, is_short_block=True, element_id="c1"
    )
    view = block.estimate
    figures = (
        *view.main_figures,
        *(f for group in view.other_figure_groups for f in group.figures),
        *view.inapplicable_figures,
    )
    texts = {f.name: f.formatted_value.replace("\u00a0", " ") for f in figures}
    assert texts == {f["name"]: f["text"] for f in answer["figures"]}
    assert client.get(f"/calculators/{name}/reading").status_code == 200


def numbers_of(answer):
    """The numeric figures of an API answer, by name."""
    return {
        f["name"]: f["value"]
        for f in answer["figures"]
        if isinstance(f["value"], int | float) and not isinstance(f["value"], bool)
    }


def test_a_checked_figure_is_the_number_of_the_api(name, answer):
    for output, number in numbers_of(answer).items():
        assert compute_estimate_figure(name, {}, output).value == number, output
        assert compute_estimate_figure(name.replace("-", "_"), {}, output).value == number, output


def test_a_computed_question_gets_the_number_of_the_api(name, answer):
    for output, number in numbers_of(answer).items():
        call = compile_expression(f"{name.replace('-', '_')}().{output}")
        assert evaluate_expression(call, {}).value == number, output


def test_a_comparison_with_itself_finds_no_difference(client, name):
    page = client.get(f"/calculators/{name}/compare?scenarios=2")
    assert page.status_code == 200
    assert "There is no difference." in page.text


def test_every_line_of_the_working_has_its_source(answer):
    assert answer["steps"]
    for step in answer["steps"]:
        assert step["source"], step["label"]


def test_every_input_says_what_it_means_and_what_it_takes(name):
    for field in input_specs(registry.find_estimate(name).inputs_type).values():
        assert field.label
        assert field.help or field.kind in {"choice", "flag"}, field.label
        if field.kind in {"number", "count"}:
            assert field.minimum is not None, field.label
        if field.kind in {"number", "count", "text"}:
            assert field.maximum is not None, field.label


def test_an_untouched_form_sends_the_inputs_that_the_estimate_starts_with(name):
    entry = registry.find_estimate(name)
    shown = build_calculator_form(entry, {})
    groups = (*shown.shown_groups, *shown.folded_groups)
    typed = {f.name: f.value for group in groups for f in group.fields}
    assert parse_inputs(entry.inputs_type, typed) == entry.inputs_type()
