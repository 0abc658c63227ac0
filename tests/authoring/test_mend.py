"""GET /authoring/mend: everything to mend in one order; and what is due for review."""

import datetime as dt
import re

from app.authoring.course_report import list_due_content_reviews
from app.authoring.to_do import build_author_tasks
from app.content.course import load_course
from app.markup.problems import make_problem

AT = "/authoring/mend"


def change(folder, path, old, new):
    file = folder / path
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def names(html):
    return re.findall(r'<th scope="row"><a class="mono" href="[^"]+">([^<]+)</a>', html)


def test_an_error_comes_before_a_report_and_a_report_before_a_warning(
    client, folder, crowd, course
):
    crowd.all_answer([*course.questions.values()], crowd.join(60), wrong_key="w-grow")
    change(folder, "topics/kv-cache/quiz.md", "[x]", "[y]")
    change(folder, "topics/weights/concept.md", "\nsummary:", "\ntags: a\n#")

    html = client.get(AT).text

    found = re.findall(r"<td>(?:Prob|E\d\d|W\d\d)", html)
    assert found[0] == "<td>Prob"
    assert found.index("<td>E24") < found.index("<td>W38")
    assert "w-grow" in names(html)


def test_a_broken_file_is_named_with_what_learners_see(client, folder):
    client.get("/concepts/weights")
    change(folder, "topics/weights/quiz.md", "[x]", "[y]")

    assert "topics/weights/quiz.md</span> is broken" in client.get(AT).text
    assert "its last good version" in client.get("/authoring/questions/w-grow").text
    change(folder, "topics/weights/concept.md", "---\ntitle", "---\ntitel")
    assert "its last good version" in client.get("/authoring/pages/weights").text


def test_a_sound_file_has_no_banner(client):
    assert "last good" not in client.get("/authoring/questions/w-grow").text
    assert "last good" not in client.get("/authoring/pages/weights").text


def test_what_is_not_live_is_listed(client, folder):
    change(folder, "topics/weights/quiz.md", "q: w-grow", "q: w-grow\nstatus: draft")

    html = client.get(AT).text.partition("<h2>Not live</h2>")[2]

    assert 'href="/authoring/questions/w-grow">w-grow</a> draft' in html


def test_options_are_named_as_the_preview_shows_them(client):
    seen = {}
    for seed in range(6):
        html = client.get(f"/authoring/questions/w-bf16-70b?seed={seed}").text
        table = html.partition('<th scope="col">Above</th>')[2].partition("</table>")[0]
        letters = re.findall(r"</th><td>([A-C])</td>", table)
        assert sorted(letters) == ["A", "B", "C"]
        first = html.partition("As learners see it")[2]
        shown = [first.index(words) for words in ("About 140", "About 70", "About 280")]
        order = sorted(range(3), key=lambda at: shown[at])
        assert [letters[at] for at in order] == ["A", "B", "C"]
        seen[tuple(letters)] = seed

    assert len(seen) > 1


def test_pages_are_due_a_month_before_their_year_ends(folder):
    made = load_course(folder)
    day = min(t.reviewed for t in made.topics.values())
    year = dt.timedelta(days=365)

    assert list_due_content_reviews(made, day) == []
    early = list_due_content_reviews(made, day + year - dt.timedelta(days=29))
    assert {d.reason for d in early if d.last_reviewed == day} == {f"is due by {day + year}"}
    late = list_due_content_reviews(made, day + year + dt.timedelta(days=1))
    assert {d.reason for d in late if d.last_reviewed == day} == {f"was due on {day + year}"}


def test_a_page_that_waits_for_a_reader_is_due(folder):
    change(folder, "topics/kv-cache/concept.md", "\n---\n", "\nstatus: review\n---\n")
    made = load_course(folder)

    found = list_due_content_reviews(made, min(t.reviewed for t in made.topics.values()))

    assert [(d.topic_slug, d.reason) for d in found] == [("kv-cache", "waits for a second reader")]


def test_the_bench_lists_what_is_due(client, folder):
    change(folder, "topics/kv-cache/concept.md", "\n---\n", "\nstatus: review\n---\n")

    html = client.get("/authoring/coverage").text.partition('id="due"')[2]

    assert "waits for a second reader" in html


def test_problems_lead_to_their_lines():
    found = make_problem(("topics/a/quiz.md", 3, 7), "E24", "A box, malformed.", "Mend it.")

    (task,) = build_author_tasks([found], [], [])

    assert task.url == "/authoring?at=topics%2Fa%2Fquiz.md%3A3%3A7%3AE24"
    assert task.reason == "E24 A box, malformed."
