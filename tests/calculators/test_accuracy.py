"""/calculators/accuracy: predicted against measured, with every case and source."""

from app.calculators.accuracy import label_of, standing, standing_of
from app.drawings.strips import Strip, draw_strips


def test_the_page_counts_every_case_and_names_every_kind(client):
    page = client.get("/calculators/accuracy").text
    assert f"{standing().cases} published measurements" in page
    for row in standing().kinds:
        assert f'href="/calculators/accuracy/{row.kind}"' in page


def test_a_kind_shows_every_case_with_its_source(client):
    page = client.get("/calculators/accuracy/kv_bytes_per_token").text
    cases = standing_of("kv_bytes_per_token").cases
    assert len(cases) == standing_of("kv_bytes_per_token").row.cases
    for case in cases:
        assert case.id in page
    assert 'role="img"' in page


def test_every_kind_has_its_page_and_other_kinds_are_not_found(client):
    for row in standing().kinds:
        assert client.get(f"/calculators/accuracy/{row.kind}").status_code == 200
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
    assert "Some kind, 3 cases, 2 within 10 %" in svg
