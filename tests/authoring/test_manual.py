"""GET /authoring/help: the reference of the documents, written by our own Markdown."""

from app.authoring.to_do import read_authoring_guide
from app.markup.problems import PROBLEM_CODES
from tests.conftest import visit


def test_the_reference_is_sound_markdown_of_ours():
    assert read_authoring_guide().problems == ()


def test_the_reference_is_a_page_of_the_bench(client):
    html = client.get("/authoring/help").text

    assert html.count("<h1>") == 1
    assert "<h1>Writing a course</h1>" in html
    for part in read_authoring_guide().sections:
        assert part.anchor == "" or f'<h2 id="{part.anchor}">' in html
        assert f'href="#{part.anchor}"' in html or not part.anchor


def test_every_problem_stands_in_it(client):
    html = client.get("/authoring/help").text

    assert [code for code in PROBLEM_CODES if f">{code}<" not in html] == []


def test_the_bench_links_to_it(client):
    assert 'href="/authoring/help"' in client.get("/authoring").text


def test_it_opens_to_authors_only(app):
    with visit(app) as stranger:
        assert stranger.get("/authoring/help").status_code == 403


def test_an_installation_without_it_says_so(client, monkeypatch, tmp_path):
    monkeypatch.setattr(
        "app.authoring.pages.read_authoring_guide",
        lambda: read_authoring_guide(tmp_path / "none.md"),
    )

    answer = client.get("/authoring/help")

    assert answer.status_code == 404
    assert "docs/authoring.md" in answer.text
