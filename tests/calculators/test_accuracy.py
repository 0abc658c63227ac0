"""/calculators/accuracy: predicted against measured, with every case and source."""

import dataclasses
import json

import pytest
from markupsafe import escape

from app.calculators import kept_report as kept
from app.calculators.accuracy import label_of, standing, standing_of
from app.drawings.strips import Strip, draw_strips


@pytest.fixture
def cache(client):
    return client.app.state.settings.data / "cache"


def test_the_page_counts_every_case_and_names_every_kind(client, cache):
    page = client.get("/calculators/accuracy").text
    assert f"{standing(cache).cases:,} published measurements" in page
    for row in standing(cache).kinds:
        assert f'href="/calculators/accuracy/{row.kind}"' in page


def test_a_kind_shows_every_case_with_its_source(client, cache):
    page = client.get("/calculators/accuracy/kv_bytes_per_token").text
    cases = standing_of("kv_bytes_per_token", cache).cases
    assert len(cases) == standing_of("kv_bytes_per_token", cache).row.cases
    for case in cases:
        assert case.id in page
    assert 'role="img"' in page


def test_a_case_shows_the_command_and_the_address_of_its_question(client, cache):
    page = client.get("/calculators/accuracy/kv_bytes_per_token").text
    for case in standing_of("kv_bytes_per_token", cache).cases:
        assert f'href="{escape(case.address)}"' in page
        assert str(escape(case.command)) in page


def test_a_case_of_a_bare_formula_names_its_function(client):
    page = client.get("/calculators/accuracy/activation_pct").text
    assert "formula: <code>memory.activations.gpt_layer_bytes, here alone" in page
    page = client.get("/calculators/accuracy/pp_bubble").text
    assert "formula: <code>timing.pipeline.bubble</code>" in page


def test_the_address_of_a_case_with_a_model_of_its_own_shows_its_number(client, cache):
    cases = standing_of("train_step_time", cache).cases
    own = next(case for case in cases if "model=%7B" in case.address)
    page = client.get(own.address)
    assert page.status_code == 200
    assert 'data-figure="step_time"' in page.text
    assert "num_hidden_layers" in page.text  # in the field of another model


def test_a_kind_that_is_none_has_no_page(client):
    assert client.get("/calculators/accuracy/nothing").status_code == 404


def test_kinds_are_told_in_words():
    assert label_of("train_mem_per_gpu") == "Training memory per GPU"
    assert label_of("some_new_kind") == "Some new kind"


def test_an_error_beyond_the_axis_sits_at_its_end_and_a_fitted_one_is_a_ring():
    strips = (Strip("Some kind", ((0.02, False), (3.0, False), (-0.1, True))),)
    svg = str(draw_strips(strips))
    assert svg.count('class="seen"') == 1
    assert 'class="bad-f" cx="99%"' in svg
    assert 'class="hole" cx="40.2%"' in svg
    assert "Some kind, 3 cases, 2 within 10%" in svg


def test_the_cases_are_answered_once_for_each_version_of_the_code(
    tmp_path, monkeypatch
):
    first = kept.kept_report(tmp_path)
    (file,) = tmp_path.iterdir()
    assert kept.code_version()[:40] in file.name
    kept._read.cache_clear()  # as at the next start
    with monkeypatch.context() as patch:
        patch.setattr(kept, "own_report", lambda: pytest.fail("answered again"))
        assert kept.kept_report(tmp_path) == first
    kept._read.cache_clear()
    monkeypatch.setattr(kept, "code_version", lambda: "f" * 64)
    few = dataclasses.replace(first, results=first.results[:2])
    monkeypatch.setattr(kept, "own_report", lambda: few)
    assert kept.kept_report(tmp_path) == few
    assert [path.name for path in tmp_path.iterdir()] == [f"accuracy-{'f' * 40}.json"]


@pytest.mark.parametrize("text", ["", "{}", "[[1]]", "[" * 100_000, "nothing", "[[]]"])
def test_a_damaged_report_is_answered_again(tmp_path, text):
    whole = kept.kept_report(tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_text(text)
    kept._read.cache_clear()
    assert kept.kept_report(tmp_path) == whole
    assert len(json.loads(file.read_text())) == len(whole.results)


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path):
    place = tmp_path / "file"
    place.write_text("in the way")
    assert kept.kept_report(place / "cache").results
    assert place.read_text() == "in the way"
