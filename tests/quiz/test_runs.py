"""Practice runs: /quiz, /quiz/{topic}, /quiz/runs/…"""

import re

import pytest
from sqlmodel import select

from app.database.tables import Attempt, Learner, PracticeRun, Sitting
from app.questions.grading import grade_response
from app.quiz import question_page as outcomes
from app.quiz import question_page as questions
from app.quiz import store
from tests.conftest import Clock
from tests.quiz.course import EditableLiveCourse

RIGHT = {
    "single": {"answer": "ghjk"},
    "multiple": {"answer": ["bcdf", "ghjk"]},
    "true-false": {"answer": "ghjk"},
    "numeric": {"answer": "1120 GB"},
    "short": {"answer": "all-reduce"},
    "order": {"place.zzzz": 1, "place.yyyy": 2, "place.xxxx": 3, "place.wwww": 4}
    | {"place.vvvv": ""},
    "match": {"pair.lbcd": "rfgh", "pair.lfgh": "rbcd"},
    "cloze": {"blank.bcdf": "RoCE", "blank.ghjk": "lossless"},
    "design": {"choose.gpu": "h100-sxm5-80", "choose.tensor_parallel": "4"},
}


def begin(client, pick: str = "mixed", count: int = 5, token: str = "") -> str:
    """Start a run and return its address."""
    body = {"pick": pick, "count": count, "token": token}
    started = client.post("/quiz/runs", data=body)
    assert started.status_code == 303, started.text
    return started.headers["location"]


@pytest.mark.parametrize("address", ["/quiz/kv-cache", "result"])
def test_the_title_of_a_computed_question_has_no_holes(client, address: str) -> None:
    if address == "result":
        address = f"{begin(client, count=20)}/result"

    html = client.get(address).text

    assert re.search(r"How large is \d+ times 10 GB\?", html)
    assert "How large is …" not in html


def item_at(form, html: str) -> str:
    return form(html).action.split("/")[3]


def linked(html: str, words: str) -> str:
    """Where the link leads whose words begin so."""
    found = re.search(rf'<a[^>]* href="([^"]*)"[^>]*>(?:<[^>]+>)*{words}', html)
    assert found, words
    return found[1].replace("&amp;", "&")


def right_for(item: str, html: str) -> dict:
    if item != "computed":
        return RIGHT[item]
    number = int(html.split("How large is ")[1].split(" ", maxsplit=1)[0])
    return {"answer": f"{number * 10} GB"}


def answer(client, form, run: str, place: int, *, right: bool) -> str:
    html = client.get(f"{run}/{place}").text
    item = item_at(form, html)
    sent = form(html)
    fields = right_for(item, html)
    if not right:
        fields = {k: "0.0123 GB" if k == "answer" else "" for k in fields}
        fields |= {"answer": "bcdf"} if item in {"single", "true-false"} else {}
        fields |= {"answer": "lmnp"} if item == "multiple" else {}
        fields |= {"place.vvvv": "1"} if item == "order" else {}
        fields |= {"pair.lbcd": "rjkl", "pair.lfgh": "rjkl"} if item == "match" else {}
        fields |= {"blank.bcdf": "x"} if item == "cloze" else {}
        fields |= {"choose.gpu": "l4"} if item == "design" else {}
    sent_ = client.post(sent.action, data={**sent.values, **fields})
    assert sent_.status_code == 303, sent_.text
    return item


def test_the_page_lists_every_way_to_practice(client) -> None:
    html = client.get("/quiz").text

    assert "Mixed" in html
    assert "Kv Cache" in html
    assert "2.1" in html
    assert "Missed before" not in html, "nothing was missed yet"


def test_practice_says_that_a_question_on_two_objectives_is_in_both_rows(
    client, live_course
) -> None:
    said = "A question on two objectives is in both rows."
    assert said not in client.get("/quiz").text

    live_course.edit("multiple", objectives=("2.1", "2.2"))

    assert said in client.get("/quiz").text


def test_a_run_goes_question_by_question_and_remembers_where(client, form) -> None:
    run = begin(client, count=3)
    first = client.get(run)
    assert first.headers["location"] == f"{run}/1"
    html = client.get(f"{run}/1").text
    assert "Question <b>1</b> of 3" in html

    answer(client, form, run, 1, right=True)

    assert client.get(run).headers["location"] == f"{run}/2"
    again = client.get(f"{run}/1").text
    assert "Next question" in again, "the verdict is what stands there now"


def test_another_try_in_a_run_leads_back_to_it(client, form) -> None:
    run = begin(client, count=3, pick="topic:kv-cache")
    answer(client, form, run, 1, right=True)

    again = linked(client.get(f"{run}/1").text, "Answer it again")
    html = client.get(again).text
    assert linked(html, "Back to your practice") == run
    item = item_at(form, html)
    sent = form(html)
    verdict = client.post(
        sent.action,
        data={**sent.values, **right_for(item, html)},
        follow_redirects=True,
    )
    assert verdict.status_code == 200
    assert "All questions of this topic" not in verdict.text
    assert linked(verdict.text, "Back to your practice") == run
    assert client.get(run).headers["location"] == f"{run}/2"


def test_a_question_of_a_run_is_answered_once(client, form, session) -> None:
    run = begin(client, count=2)
    sent = form(client.get(f"{run}/1").text)
    html = client.get(f"{run}/1").text
    fields = right_for(item_at(form, html), html)
    for _ in range(2):
        client.post(sent.action, data={**sent.values, **fields})

    assert len(session.exec(select(Attempt)).all()) == 1


def test_the_result_sums_up_and_offers_the_missed_again(client, form) -> None:
    run = begin(client, count=3, pick="topic:kv-cache")
    missed = answer(client, form, run, 1, right=False)
    answer(client, form, run, 2, right=True)

    html = client.get(f"{run}/result").text
    assert "1 question of this run is not answered yet" in html.replace("\xa0", " ")
    assert "1 question you missed" in html.replace("\xa0", " ")
    assert html.count('class="btn main"') == 1

    answer(client, form, run, 3, right=True)
    retry = begin(client, pick=f"retry:{run.rsplit('/', 1)[1]}")
    assert item_at(form, client.get(f"{retry}/1").text) == missed
    assert client.get(f"{retry}/2").status_code == 404


def test_from_the_result_one_goes_from_one_missed_question_to_the_next(client, form) -> None:
    run = begin(client, count=4, pick="topic:kv-cache")
    for place in (1, 2, 3, 4):
        answer(client, form, run, place, right=place == 2)

    html = client.get(f"{run}/result").text
    rows = re.findall(rf'<span class="no">Q(\d)</span><a href="({run}/\d\?review=yes)"', html)
    assert rows == [(place, f"{run}/{place}?review=yes") for place in "134"]
    queue = [address for _, address in rows]
    assert linked(html, "See the answers") == queue[0]
    assert linked(client.get(queue[0]).text, "Next missed") == queue[1]
    assert linked(client.get(queue[2]).text, "See the result") == f"{run}/result"
    assert linked(html, "Back to Today") == "/"


def test_a_question_answered_with_i_dont_know_has_no_cross(client, form) -> None:
    run = begin(client, count=2)
    sent = form(client.get(f"{run}/1").text)
    client.post(sent.action, data={**sent.values, "unknown": "yes"})
    answer(client, form, run, 2, right=False)

    dots = client.get(f"{run}/result").text.partition('class="dots"')[2].partition("</ol>")[0]
    assert ["not known" in dot for dot in dots.split("<li")[1:]] == [True, False]
    _, first, second = dots.split("<li")
    assert ("#i-minus" in first, "#i-cross" in first) == (True, False)
    assert "#i-minus" not in second  # wrong, or partly right as its order is drawn


def test_the_result_of_the_days_questions_shows_the_list_with_its_tick(client, form) -> None:
    answer(client, form, begin(client, count=1), 1, right=True)
    client.get("/")
    run = begin(client, pick="today")
    place = 0
    while client.get(f"{run}/{(place := place + 1)}").status_code == 200:
        answer(client, form, run, place, right=False)

    html = client.get(f"{run}/result").text
    assert re.search(r'<li class="did">.*?Done: .*? answered', html, re.DOTALL)
    assert 'class="next"' in html


def test_the_days_run_begins_after_what_was_answered_elsewhere_today(client, form) -> None:
    answer(client, form, begin(client, count=1), 1, right=True)
    client.get("/")
    first = item_at(form, client.get(f"{begin(client, pick='today')}/1").text)
    client.post("/quiz/kv-cache/" + first + "/attempts", data={"unknown": "yes", "context": "page"})

    run = begin(client, pick="today")

    assert client.get(run).headers["location"] == f"{run}/2"
    dots = client.get(f"{run}/2").text.partition('class="dots"')[2].partition("</ol>")[0]
    assert "1, not known" in dots
    assert "You did not know it." in client.get(f"{run}/1").text


def test_what_was_missed_before_and_is_right_now_is_counted(client, form) -> None:
    run = begin(client, count=2, pick="topic:kv-cache")
    for place in (1, 2):
        answer(client, form, run, place, right=False)
    again = begin(client, pick="missed", count=2)
    answer(client, form, again, 1, right=True)

    learned = r"Right, including 1 that you had missed</span><b>1</b>"
    assert re.search(learned, client.get(f"{again}/result").text)
    first = client.get(f"{run}/result").text
    assert not re.search(learned, first)
    assert re.search(r"Missed[^<]*</span><b>2</b>", first)


def test_a_run_without_misses_has_nothing_to_retry(client, form) -> None:
    run = begin(client, count=1, pick="topic:kv-cache")
    answer(client, form, run, 1, right=True)

    nothing = client.post("/quiz/runs", data={"pick": f"retry:{run.rsplit('/', 1)[1]}"})

    assert nothing.status_code == 409
    assert "every question of that run right" in nothing.text


def test_unseen_questions_come_first(client, form) -> None:
    seen = set()
    for _ in range(3):
        run = begin(client, count=3)
        for place in (1, 2, 3):
            seen.add(answer(client, form, run, place, right=False))

    assert len(seen) == 9, "nine of the ten questions, none of them twice"


def test_missed_before_asks_only_what_was_missed(client, form) -> None:
    run = begin(client, count=4)
    missed = {answer(client, form, run, place, right=False) for place in (1, 2)}
    answer(client, form, run, 3, right=True)

    retry = begin(client, pick="missed", count=20)
    asked = {item_at(form, client.get(f"{retry}/{place}").text) for place in (1, 2)}

    assert missed >= asked
    assert "Missed before" in client.get("/quiz").text


def test_starting_twice_from_one_page_starts_once(client, session) -> None:
    assert begin(client, token="x") == begin(client, token="x")
    assert len(session.exec(select(PracticeRun)).all()) == 1


def test_who_goes_back_and_chooses_another_way_gets_another_run(client) -> None:
    first = begin(client, token="x")

    assert begin(client, "topic:kv-cache", token="x") != first
    assert begin(client, count=2, token="x") != first


@pytest.mark.parametrize("pick", ["topic:nope", "objective:9.9", "missed"])
def test_nothing_to_practice_is_said_and_not_an_error_page(client, pick: str) -> None:
    refused = client.post("/quiz/runs", data={"pick": pick})

    assert refused.status_code == 409
    assert "Choose another way to practice." in refused.text


@pytest.mark.parametrize("pick", ["nope", "retry:x", "retry:99"])
def test_a_forged_wish_is_refused(client, pick: str) -> None:
    assert client.post("/quiz/runs", data={"pick": pick}).status_code in {404, 422}


def test_the_run_of_another_learner_is_404(rosa, milo) -> None:
    run = begin(rosa)

    for address in (run, f"{run}/1", f"{run}/result"):
        assert milo.get(address).status_code == 404


def test_a_question_that_was_removed_leaves_the_run(
    client, form, live_course: EditableLiveCourse
) -> None:
    run = begin(client, count=3, pick="topic:kv-cache")
    live_course.remove(item_at(form, client.get(f"{run}/1").text))

    assert "Question <b>1</b> of 2" in client.get(f"{run}/1").text


def test_questions_of_a_running_exam_are_not_practiced(client, form, session, clock: Clock) -> None:
    begin(client)  # makes the learner
    learner = session.exec(select(Learner.id)).one()
    now = int(clock().timestamp() * 1000)
    paper = '[[1, "single", "r1", 7, "2"], [2, "order", "r1", 7, "2"]]'
    session.add(
        Sitting(
            learner_id=learner,
            token="s",
            exam="x",
            seed=1,
            paper=paper,
            started_at=now,
            deadline_at=now + 3_600_000,
        )
    )
    session.commit()

    run = begin(client, count=100)
    asked = set()
    for place in range(1, 9):
        asked.add(item_at(form, client.get(f"{run}/{place}").text))
    assert asked & {"single", "order"} == set()
    assert client.get(f"{run}/9").status_code == 404
    assert client.get("/quiz/kv-cache/single").status_code == 409

    clock.tick(hours=1, seconds=1)
    assert client.get("/quiz/kv-cache/single").status_code == 200


def test_the_topic_page_shows_how_each_question_went(client, form) -> None:
    assert " answered, " not in client.get("/quiz/kv-cache").text
    sent = form(client.get("/quiz/kv-cache/single").text)
    client.post(sent.action, data={**sent.values, "answer": "bcdf"})

    html = client.get("/quiz/kv-cache").text
    assert re.search(r"1 answered, 0 of them right", html)
    assert "not right" in html


def test_the_topic_page_offers_as_many_questions_as_were_promised(client) -> None:
    page = client.get("/quiz/kv-cache?count=2").text.replace("\xa0", " ")

    assert "Start\n2 questions" in page
    assert 'name="count" value="2"' in page
    assert client.get("/quiz/kv-cache?count=none").status_code == 422


def test_before_the_first_answer_practice_proposes_the_placement_test(client) -> None:
    page = client.get("/quiz").text
    first, _, others = page.partition("Or choose")

    assert 'name="pick" value="placement"' in first
    assert 'name="pick" value="placement"' not in others
    assert 'name="pick" value="mixed"' in others


def test_a_refused_form_says_in_a_sentence_what_is_wrong(client) -> None:
    sent = {"pick": "nothing", "count": "0"}
    said = client.post("/quiz/runs", data=sent).text
    short = client.post("/quiz/runs", data={"count": "ten"}).text
    missing = client.post("/concepts/kv-cache/notes", data={}).text

    assert "What to practice: choose one of mixed," in said
    assert "Questions: enter 1 to 100 (given: “0”)" in said
    assert "Questions: enter a whole number (given: “ten”)" in short
    assert "Value error" not in said
    assert "Section: this field is required, and was not sent." in missing


def test_an_unknown_topic_is_404(client) -> None:
    assert client.get("/quiz/nope").status_code == 404


def test_an_answer_is_graded_once_and_its_run_looked_up_once(
    htmx, form, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begin(htmx, count=2)
    html = htmx.get(f"{run}/1").text
    sent = form(html)
    calls: list[str] = []

    def counting(name: str, work):
        return lambda *args: (calls.append(name), work(*args))[1]

    for route in (questions, outcomes):
        monkeypatch.setattr(route, "grade_response", counting("grade", grade_response))
    monkeypatch.setattr(store, "find_run", counting("run", store.find_run))
    fields = right_for(item_at(form, html), html)
    answered = htmx.post(sent.action, data={**sent.values, **fields})

    assert '<span class="sr">1, right</span>' in answered.text
    assert sorted(calls) == ["grade", "run"]
