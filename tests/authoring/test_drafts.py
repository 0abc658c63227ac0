"""Drafts: tried on the bench, met nowhere else."""


def told(client) -> str:
    """The address of the course for programs."""
    (course,) = client.get("/api/v1/courses").json()["courses"]
    return f"/api/v1/courses/{course['course']}"


def test_a_draft_question_is_tried_on_the_bench_and_404_elsewhere(client, folder):
    quiz = folder / "topics/weights/quiz.md"
    quiz.write_text(quiz.read_text().replace("q: w-grow", "q: w-grow\nstatus: draft"))

    bench = client.get("/authoring/questions/w-grow")

    assert bench.status_code == 200
    assert "draft: learners do not see it" in bench.text
    assert client.get("/quiz/questions/w-grow").status_code == 404
    assert "w-grow" not in client.get("/authoring/questions?show=all").text
    assert "w-grow" not in client.get(f"{told(client)}/questions").text


def test_a_draft_page_is_read_on_the_bench_and_404_elsewhere(client, folder):
    page = folder / "topics/weights/concept.md"
    page.write_text(page.read_text().replace("\n---\n", "\nstatus: review\n---\n", 1))

    bench = client.get("/authoring/pages/weights").text

    assert "<h1>Weights in memory</h1>" in bench
    assert "Review:</b>" in bench
    assert client.get("/concepts/weights").status_code == 404
    assert "/concepts/weights" not in client.get("/concepts").text
    assert "/concepts/weights" not in client.get("/search?q=weights").text
    assert client.get(f"{told(client)}/topics/weights").status_code == 404
    for part in ("", "/cards", "/questions"):
        assert '"topic":"weights"' not in client.get(told(client) + part).text
    assert client.get("/concepts/kv-cache").status_code == 200
