"""GET /authoring/questions/{item}: every state, options, wordings, variants."""

import re

import pytest
from sqlmodel import select

from app.authoring.preview import grade_sample_responses
from app.content.file_reader import parse_file
from app.database.tables import Attempt
from app.questions.model import draw_variant
from app.questions.types import question_type_of
from tests.amounts import sample

AT = "/authoring/questions"


def every_item(course) -> list[str]:
    return list(course.questions)


def test_an_unknown_item_is_404(client):
    for path in ("none", "none/form"):
        assert client.get(f"{AT}/{path}").status_code == 404
    assert client.post(f"{AT}/none/attempts").status_code == 404


def test_the_open_question_shows_file_and_line_and_gives_nothing_away(client):
    html = client.get(f"{AT}/k-trade").text
    asked = html.split('id="seen"')[1].split("</form>")[0]

    assert "topics/kv-cache/quiz.md:7" in html
    assert "Accuracy for speed" in asked
    assert "What is kept need not be computed again." not in asked


@pytest.mark.drawn
def test_every_state_of_every_question_can_be_seen(client, course):
    seen = {}
    for item in sample(every_item(course), 5, "states"):
        html = client.get(f"{AT}/{item}").text
        links = re.findall(rf'href="({AT}/{item}[^"]*)#seen"', html)
        seen[item] = len(links)
        for link in links:
            assert client.get(link.replace("&amp;", "&")).status_code == 200, link

    assert min(seen.values()) >= 3, seen


def test_the_states_hold_the_right_answer_and_wrong_ones(course):
    for question in course.questions.values():
        if question.type == "design":
            continue
        results = {state.result_name for state in grade_sample_responses(draw_variant(question, 3))}
        assert "right" in results, question.id
        assert results & {"wrong", "partly"}, question.id


def test_a_number_in_the_wrong_unit_is_a_state_of_its_own(course):
    states = grade_sample_responses(draw_variant(course.questions["k-size"], 0))

    assert {"right", "wrong", "near", "refused"} <= {s.result_name for s in states}


def test_a_number_says_from_where_to_where_it_counts():
    text = "### What share?\n<!-- q: a -->\n\n- [x] `78 % ± 2 %`\n- [ ] `50%`\n  > Half.\n"
    [question] = parse_file(text, "topics/kv-cache/quiz.md").questions

    labels = [label for label, _ in question_type_of(question).sample_responses(question.answer)]

    assert labels[:2] == ["78 % (from 76.44 to 79.56%)", "50% (from 49 to 51%)"]


def test_a_verdict_is_what_a_learner_would_read(client, course):
    right = next(o.key for o in course.questions["k-trade"].answer.options if o.right)

    html = client.get(f"{AT}/k-trade?answer={right}").text

    assert "Right." in html
    assert "Keys and values of past tokens are kept." in html


def test_an_answer_that_cannot_be_read_is_refused_as_for_a_learner(client):
    html = client.get(f"{AT}/k-size?answer=many").text

    assert 'role="alert"' in html
    assert 'name="answer" value="many"' in html


def test_an_answer_in_the_preview_that_cannot_be_read_is_refused_in_place(htmx):
    refused = htmx.post(f"{AT}/k-size/attempts", data={"answer": "many", "seed": "5"})

    assert refused.status_code == 422
    assert 'role="alert"' in refused.text


def test_what_an_author_tries_is_not_recorded(client, htmx, session, course):
    right = next(o.key for o in course.questions["k-trade"].answer.options if o.right)
    body = {"answer": right, "seed": "5"}

    plain = client.post(f"{AT}/k-trade/attempts", data=body)
    quick = htmx.post(f"{AT}/k-trade/attempts", data=body)

    assert plain.headers["location"] == f"{AT}/k-trade?answer={right}&seed=5"
    assert "Right." in client.get(plain.headers["location"]).text
    assert 'id="q-k-trade"' in quick.text
    assert session.exec(select(Attempt.id)).all() == []


def test_hints_and_moves_work_on_the_bench(client):
    hinted = client.get(f"{AT}/k-size/form?more=1").text
    order = client.get(f"{AT}/k-order/form").text
    names = re.findall(r'name="(place\.\w+)"', order)
    places = "&".join(f"{name}={n}" for n, name in enumerate(names, 1))
    key = names[1].removeprefix("place.")

    moved = client.get(f"{AT}/k-order/form?{places}&move={key}:up").text

    assert "Bytes per token first." in hinted
    assert re.findall(r'name="(place\.\w+)"', moved)[0] == names[1]


def test_options_have_counts_and_the_rest_of_those_who_chose_them(client, crowd, course):
    crowd.all_answer(course.questions.values(), crowd.join(40))

    table = client.get(f"{AT}/k-trade").text.split("Mean of the rest")[1]
    cells = re.findall(r'<td class="n">([^<]*)</td>', table.split("</table>")[0])

    counts = [int(cells[i]) for i in (0, 3, 6)]
    assert sum(counts) == 40
    assert counts[2] == 0
    assert cells[8] == "–"
    wrong, right = int(cells[2].rstrip("%")), int(cells[5].rstrip("%"))
    assert wrong < right


def test_each_wording_has_statistics_of_its_own(client, crowd, course):
    question = course.questions["k-trade"]
    crowd.worded("k-trade", "old", 1_780_000_000_000)
    crowd.worded("k-trade", question.revision, 1_780_900_000_000)
    for number, learner in enumerate(crowd.join(40)):
        old = number < 20
        score = float(number % 4 == 0) if old else float(number % 4 != 0)
        crowd.answer(question, learner, score, revision="old" if old else "")
    crowd.session.commit()

    rows = client.get(f"{AT}/k-trade").text.split('aria-label="Statistics by wording')[1]
    before, now = rows.split("</tr>")[1:3]

    assert "Before" in before
    assert re.findall(r'<td class="n">\s*(\d+)', before) == ["20", "25"]
    assert "Now" in now
    assert re.findall(r'<td class="n">\s*(\d+)', now) == ["20", "75"]


def test_a_computed_question_lists_all_its_variants(client):
    html = client.get(f"{AT}/k-size?seed=1").text
    table = html.split('id="variants"')[1]

    assert table.count('<th scope="row">') == 2 * 3 * 4
    assert "llama-3.1-70b" in table
    assert re.search(r"[\d.]+ GB ± 3%", table)
    assert 'aria-current="true"' in table


def test_a_seed_shows_its_numbers(client):
    one, other = (client.get(f"{AT}/k-size?seed={n}").text for n in (0, 1))

    assert "on llama-3.1-8b?" in one.split('id="seen"')[1]
    assert "on llama-3.1-70b?" in other.split('id="seen"')[1]


@pytest.mark.parametrize("query", ["seed=-1", "seed=x", "hints=99", "certainty=7"])
def test_an_address_that_says_nonsense_is_refused(client, query):
    assert client.get(f"{AT}/k-trade?{query}").status_code == 422
