"""GET /authoring/pages/{topic}: as readers see it, with its problems beside."""

AT = "/authoring/pages"


def test_an_unknown_topic_is_404(client):
    assert client.get(f"{AT}/none").status_code == 404


def test_the_page_is_what_readers_see(client):
    html = client.get(f"{AT}/weights").text

    assert "<h1>Weights in memory</h1>" in html
    assert 'action="/calculators/' in html
    assert "Nothing to fix." in html


def test_its_questions_answer_to_the_bench_and_not_to_the_records(client):
    html = client.get(f"{AT}/weights").text

    assert 'action="/authoring/questions/w-page-half/attempts"' in html
    assert 'action="/quiz/' not in html


def test_an_edit_is_seen_at_the_next_look(client, folder):
    page = folder / "topics/weights/concept.md"
    page.write_text(page.read_text().replace("[140 GB]", "[150 GB]"))

    html = client.get(f"{AT}/weights").text

    assert "“150 GB” is not the computed value, which is 140 GB." in html
    assert "weights/concept.md:9:" in html


def test_a_page_that_breaks_stays_on_show_with_its_problems(client, folder):
    client.get(f"{AT}/weights")
    page = folder / "topics/weights/concept.md"
    page.write_text(page.read_text().replace("title: Weights", "title: : Weights"))

    html = client.get(f"{AT}/weights").text

    assert "<h1>Weights in memory</h1>" in html
    assert "E10" in html


def test_a_topic_that_has_no_page_yet_has_its_problems(client, folder):
    (folder / "topics/new").mkdir()
    (folder / "topics/new/quiz.md").write_text("### Which?\n\n- [x] A\n- [ ] B\n")

    answer = client.get(f"{AT}/new")

    assert answer.status_code == 200
    assert "E01" in answer.text
