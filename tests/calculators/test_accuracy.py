"""/calculators/accuracy: predicted against measured, with every case and source."""

from markupsafe import escape

from app.calculators.accuracy_report import build_accuracy_summary, build_kind_accuracy
from app.widgets.bar_charts import ErrorStrip, PredictionErrorPoint, draw_error_strips


def test_the_page_counts_every_case_and_names_every_kind(client):
    page = client.get("/calculators/accuracy").text
    assert f"{build_accuracy_summary().case_count:,} published measurements" in page
    for row in build_accuracy_summary().rows:
        assert f'href="/calculators/accuracy/{row.kind}"' in page


def test_a_kind_shows_every_case_with_its_source(client):
    page = client.get("/calculators/accuracy/kv_bytes_per_token").text
    cases = build_kind_accuracy("kv_bytes_per_token").cases
    assert len(cases) == build_kind_accuracy("kv_bytes_per_token").row.case_count
    for case in cases:
        assert case.id in page
    assert 'role="img"' in page


def test_a_case_shows_the_command_and_the_address_of_its_question(client):
    page = client.get("/calculators/accuracy/kv_bytes_per_token").text
    for case in build_kind_accuracy("kv_bytes_per_token").cases:
        assert f'href="{escape(case.calculator_url)}"' in page
        assert str(escape(case.command)) in page


def test_a_case_of_a_bare_formula_names_its_function(client):
    page = client.get("/calculators/accuracy/activation_pct").text
    assert "formula: <code>memory.activations.gpt_layer_bytes, here alone" in page
    page = client.get("/calculators/accuracy/pp_bubble").text
    assert "formula: <code>training.step_time.pipeline_bubble</code>" in page


def test_the_address_of_a_case_with_a_model_of_its_own_shows_its_number(client):
    cases = build_kind_accuracy("train_step_time").cases
    own = next(case for case in cases if "model=%7B" in case.calculator_url)
    page = client.get(own.calculator_url)
    assert page.status_code == 200
    assert 'data-figure="step_time"' in page.text
    assert "From config.json" in page.text  # in the field of the model


def test_a_kind_that_is_none_has_no_page(client):
    assert client.get("/calculators/accuracy/nothing").status_code == 404


def test_an_error_beyond_the_axis_sits_at_its_end_and_a_fitted_one_is_a_ring():
    cases = ((0.02, False), (3.0, False), (-0.1, True))
    strips = (ErrorStrip("Some kind", tuple(PredictionErrorPoint(*case) for case in cases)),)
    svg = str(draw_error_strips(strips))
    assert svg.count('class="seen"') == 1
    assert 'class="bad-f" cx="99%"' in svg
    assert 'class="hole" cx="40.2%"' in svg
    assert "Some kind, 3 cases, 2 within 10%" in svg
