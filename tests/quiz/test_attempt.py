"""POST /quiz/{topic}/{question}/attempts"""

import itertools
import json

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.content.course import Course
from app.database.tables import Attempt, ItemRevision, Learner
from app.questions.grading import grade_response, render_question_card_faces
from app.questions.model import draw_variant
from app.questions.question_type import GradeResult
from app.questions.types import question_type_of
from tests.conftest import Clock
from tests.quiz.course import EditableLiveCourse

SINGLE = "/quiz/kv-cache/single"
COMPUTED = "/quiz/kv-cache/computed"


def answer(client: TestClient, form, address: str, **fields):
    """Open a question, fill the form, send it."""
    sent = form(client.get(address).text)
    return client.post(sent.action, data={**sent.values, **fields})


def attempts(session: Session) -> list[Attempt]:
    return list(session.exec(select(Attempt).order_by(Attempt.id)))


def test_a_right_answer_is_confirmed_and_counted(client, form, session) -> None:
    answered = answer(client, form, SINGLE, answer="ghjk")

    assert answered.status_code == 303
    shown = client.get(answered.headers["location"]).text
    assert "Right." in shown
    assert "your answer, right" in shown
    assert [(a.item, a.score, a.first) for a in attempts(session)] == [("single", 1.0, True)]


def test_a_wrong_answer_says_why_names_the_right_one_and_cites(client, form) -> None:
    answered = answer(client, form, SINGLE, answer="bcdf")

    shown = client.get(answered.headers["location"]).text

    assert "Not right." in shown
    assert "Why bcdf" in shown
    assert "right answer" in shown
    assert "The explanation." in shown
    assert "The common mistake." in shown
    assert "Paged attention" in shown
    assert 'href="/concepts/kv-cache"' in shown


def test_with_htmx_the_verdict_takes_the_place_of_the_form(htmx, form) -> None:
    answered = answer(htmx, form, SINGLE, answer="bcdf")

    assert answered.status_code == 200
    assert "Paged attention" in answered.text
    assert "<h1" not in answered.text
    assert "<html" not in answered.text


def test_all_that_a_replay_needs_is_kept(client, form, session, clock: Clock) -> None:
    sent = form(client.get(SINGLE).text)
    clock.tick(seconds=12)

    client.post(sent.action, data={**sent.values, "answer": "bcdf", "certainty": "2"})

    (kept,) = attempts(session)
    assert json.loads(kept.raw) == {"answer": ["bcdf"]}
    assert json.loads(kept.parsed) == {"chosen": ["bcdf"]}
    assert (kept.revision, kept.certainty, kept.hints) == ("r1", 2, 0)
    assert kept.milliseconds == 12_000
    assert (kept.study_day, kept.context, kept.topic) == (
        "2026-06-09",
        "quiz",
        "kv-cache",
    )
    assert kept.seed == int(sent.values["seed"])


def test_a_double_click_counts_once(client, form, session) -> None:
    sent = form(client.get(SINGLE).text)
    body = {**sent.values, "answer": "ghjk"}

    first = client.post(sent.action, data=body)
    second = client.post(sent.action, data=body)

    assert first.headers["location"] == second.headers["location"]
    assert len(attempts(session)) == 1


def test_two_tabs_are_two_attempts_and_only_one_is_the_first(client, form, session) -> None:
    one = form(client.get(SINGLE).text)
    other = form(client.get(SINGLE).text)

    client.post(one.action, data={**one.values, "answer": "bcdf"})
    client.post(other.action, data={**other.values, "answer": "ghjk"})

    assert [a.first for a in attempts(session)] == [True, False]


def test_another_answer_from_the_same_page_is_another_attempt(client, form, session) -> None:
    """The back button shows the old form; what is sent from it then counts."""
    sent = form(client.get(SINGLE).text)

    for choice in ("bcdf", "ghjk"):
        client.post(sent.action, data={**sent.values, "answer": choice})

    assert [(a.score, a.first) for a in attempts(session)] == [(0, True), (1, False)]


def test_one_token_of_two_learners_does_not_collide(rosa, milo, form, session) -> None:
    sent = form(rosa.get(SINGLE).text)
    for learner in (rosa, milo):
        learner.post(sent.action, data={**sent.values, "answer": "ghjk"})

    assert len(attempts(session)) == 2


def test_choosing_nothing_is_refused_and_costs_no_attempt(client, form, session) -> None:
    refused = answer(client, form, SINGLE)

    assert refused.status_code == 422
    assert "No answer is chosen. Choose one." in refused.text
    assert attempts(session) == []


def test_a_number_that_cannot_be_read_stays_in_its_field(client, form, session) -> None:
    refused = answer(client, form, "/quiz/kv-cache/numeric", answer="a lot")

    assert refused.status_code == 422
    assert "“a lot” is not a number." in refused.text
    assert form(refused.text).values["answer"] == "a lot"
    assert attempts(session) == []


def test_the_right_amount_in_the_wrong_unit_is_asked_again_and_counts_once(
    client, form, session
) -> None:
    sent = form(client.get("/quiz/kv-cache/numeric").text)
    body = {**sent.values, "answer": "1120", "unit": "TB"}

    for _ in range(2):  # a double click, or a reload
        near = client.post(sent.action, data=body).text
        assert "Right amount, wrong unit." in near
        assert "The explanation." not in near
        assert attempts(session) == []
        session.rollback()

    again = form(near)
    right = client.post(again.action, data={**again.values, "unit": "GB"})

    assert "Right." in client.get(right.headers["location"]).text
    (kept,) = attempts(session)
    assert (kept.score, kept.first, kept.seed) == (1, True, int(sent.values["seed"]))


def test_who_stays_with_the_wrong_unit_gets_the_answer_and_misses_once(
    client, form, session
) -> None:
    first = answer(client, form, "/quiz/kv-cache/numeric", answer="1120", unit="TB")
    again = form(first.text)
    hinted = client.get(f"{again.action.removesuffix('/attempts')}/form", params=again.values)
    assert form(hinted.text).values["asked_again"] == "yes"

    body = {**again.values, "unit": "TB"}
    kept = {client.post(again.action, data=body).headers["location"] for _ in range(2)}

    shown = client.get(kept.pop()).text
    assert "Not right." in shown
    assert "1,120 is the answer in GB, and you gave it in TB." in shown
    assert not kept
    assert [a.score for a in attempts(session)] == [0]


def test_in_a_run_a_number_in_the_wrong_unit_leaves_the_question_open(
    client, form, session
) -> None:
    begun = client.post("/quiz/runs", data={"pick": "topic:kv-cache", "count": "50", "token": "t"})
    run = begun.headers["location"]
    pages = (client.get(f"{run}/{place}").text for place in itertools.count(1))
    sent = form(next(page for page in pages if "/kv-cache/numeric/attempts" in page))

    body = {**sent.values, "answer": "1120", "unit": "TB"}
    near = client.post(sent.action, data=body, headers={"HX-Request": "true"}).text

    assert "Nothing was counted yet." in near
    assert 'id="desk"' in near
    assert form(near).values["run"] == run.rpartition("/")[2]
    assert attempts(session) == []


@pytest.mark.parametrize(
    ("places", "said", "shown"),
    [
        ("1 2 3 5", "You left place 4 empty, so what stands behind moves up.", "5, counts as 4"),
        ("2 1 3 ", "You left place 4 empty.", "doesn\u2019t belong"),
        ("5 1 3 ", "You left places 2 and 4 empty, so what stands behind moves up.", "5, counts"),
    ],
)
def test_an_order_names_the_places_that_were_left_empty(
    client, form, places: str, said: str, shown: str
) -> None:
    keys = [f"place.{key}" for key in ("zzzz", "yyyy", "xxxx", "wwww")]
    raw = {**dict(zip(keys, places.split(" "), strict=True)), "place.vvvv": ""}

    answered = answer(client, form, "/quiz/kv-cache/order", **raw)

    html = client.get(answered.headers["location"]).text
    assert said in html
    assert shown in html


def test_an_unknown_question_is_404(client) -> None:
    for address in ("/quiz/kv-cache/nope", "/quiz/nope/single"):
        assert client.get(address).status_code == 404
        assert client.post(f"{address}/attempts", data={}).status_code == 404


def test_the_verdict_of_another_learner_is_404(rosa, milo, form) -> None:
    verdict = answer(rosa, form, SINGLE, answer="ghjk").headers["location"]

    assert rosa.get(verdict).status_code == 200
    assert milo.get(verdict).status_code == 404


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("seed", "-1"),
        ("certainty", "7"),
        ("context", "exam"),
        ("back", "//evil.example"),
    ],
)
def test_a_forged_field_is_422(client, form, session, field: str, value: str) -> None:
    refused = answer(client, form, SINGLE, answer="ghjk", **{field: value})

    assert refused.status_code == 422
    assert attempts(session) == []


def test_an_answer_to_an_older_wording_is_not_counted(
    client, form, session, live_course: EditableLiveCourse
) -> None:
    sent = form(client.get(SINGLE).text)
    live_course.edit("single", revision="r2")

    refused = client.post(sent.action, data={**sent.values, "answer": "ghjk"})

    assert refused.status_code == 409
    assert "edited while it was open" in refused.text
    assert attempts(session) == []
    again = form(refused.text)
    assert again.values["revision"] == "r2"


def test_a_verdict_is_shown_as_it_was_after_an_edit(
    client, form, live_course: EditableLiveCourse
) -> None:
    verdict = answer(client, form, SINGLE, answer="ghjk").headers["location"]
    stem = live_course.get_current_course().questions["single"].stem
    live_course.edit("single", revision="r2", stem=type(stem)("New words", "New words"))

    shown = client.get(verdict).text

    assert "What is asked?" in shown
    assert "New words" not in shown
    assert "edited after this answer" in shown


def test_each_wording_is_kept_once(client, form, session, live_course: EditableLiveCourse) -> None:
    for _ in range(2):
        answer(client, form, SINGLE, answer="ghjk")
    live_course.edit("single", revision="r2")
    answer(client, form, SINGLE, answer="ghjk")

    kept = session.exec(select(ItemRevision.item, ItemRevision.revision)).all()
    assert sorted(kept) == [("single", "r1"), ("single", "r2")]


def test_every_write_is_noted_for_kept_pages(client, form, session) -> None:
    answer(client, form, SINGLE, answer="ghjk")
    before = session.exec(select(Learner.changes)).one()
    session.rollback()
    answer(client, form, SINGLE, answer="ghjk")

    assert session.exec(select(Learner.changes)).one() > before


def test_regrading_is_a_replay(client, form, session, live_course: EditableLiveCourse) -> None:
    sent = {
        "multiple": {"answer": ["bcdf", "lmnp"]},
        "numeric": {"answer": "1.12 TB"},
        "short": {"answer": "all reduce"},
        "order": {f"place.{k}": n for n, k in enumerate(["zzzz", "yyyy", "vvvv", "xxxx"])}
        | {"place.wwww": ""},
        "match": {"pair.lbcd": "rfgh", "pair.lfgh": "rfgh"},
        "cloze": {"blank.bcdf": "RoCE", "blank.ghjk": "lossy"},
        "computed": {"answer": "30 GB"},
        "design": {"choose.gpu": "h100-sxm5-80", "choose.tensor_parallel": "4"},
    }
    for item, fields in sent.items():
        answer(client, form, f"/quiz/kv-cache/{item}", **fields)

    for kept in attempts(session):
        variant = draw_variant(live_course.get_current_course().questions[kept.item], kept.seed)
        verdict = grade_response(variant, json.loads(kept.raw))
        assert isinstance(verdict, GradeResult)
        assert (verdict.score, dict(verdict.parsed_response)) == (
            kept.score,
            json.loads(kept.parsed),
        )
    assert len(attempts(session)) == len(sent)


# --- computed questions -------------------------------------------------------------


def test_a_computed_question_grades_what_it_displayed(client, form) -> None:
    html = client.get(COMPUTED).text
    shown = int(html.split("How large is ")[1].split(" ")[0])
    sent = form(html)

    verdict = client.post(
        sent.action, data={**sent.values, "answer": f"{shown * 10}", "unit": "GB"}
    )

    assert "Right." in client.get(verdict.headers["location"]).text


def test_a_computed_question_never_repeats_its_numbers(client, form) -> None:
    def numbers() -> str:
        return client.get(COMPUTED).text.split("How large is ")[1].split(" ")[0]

    seen = []
    for _ in range(6):
        seen.append(numbers())
        assert numbers() == seen[-1], "a reload shows the same numbers"
        answer(client, form, COMPUTED, answer="1 GB")

    assert all(a != b for a, b in itertools.pairwise(seen))
    assert len(set(seen[:4])) == 4


def test_a_foreseen_mistake_is_named(client, form) -> None:
    html = client.get(COMPUTED).text
    shown = int(html.split("How large is ")[1].split(" ")[0])
    sent = form(html)

    verdict = client.post(sent.action, data={**sent.values, "answer": f"{shown * 5} GB"})

    assert "You counted K but not V." in client.get(verdict.headers["location"]).text


# --- hints --------------------------------------------------------------------------


def test_hints_come_one_by_one_and_are_counted(client, form, session) -> None:
    first = client.get(SINGLE).text
    assert "First hint." not in first

    sent = form(first)
    one = client.get(SINGLE, params={**sent.values, "more": "1", "answer": "bcdf"}).text
    assert "First hint." in one
    assert "Second hint." not in one
    assert form(one).values["answer"] == "bcdf", "what was chosen stays chosen"

    both = client.get(SINGLE, params={**form(one).values, "more": "1"}).text
    assert "Second hint." in both

    sent = form(both)
    client.post(sent.action, data={**sent.values, "answer": "ghjk"})
    assert [a.hints for a in attempts(session)] == [2]


def test_a_hint_keeps_the_numbers_of_a_computed_question(htmx, form) -> None:
    sent = form(htmx.get(COMPUTED).text)

    hinted = form(htmx.get(f"{COMPUTED}/form", params={**sent.values, "more": "1"}).text)

    assert hinted.values["seed"] == sent.values["seed"]


# --- moving steps -------------------------------------------------------------------


def test_a_step_moves_up_without_javascript(client, form) -> None:
    address = "/quiz/kv-cache/order"
    sent = form(client.get(address).text)
    order = [name for name in sent.values if name.startswith("place.")]
    second = order[1].removeprefix("place.")

    moved = form(client.get(address, params={**sent.values, "move": f"{second}:up"}).text)

    now = [name for name in moved.values if name.startswith("place.")]
    assert now == [order[1], order[0], *order[2:]]
    assert [moved.values[name] for name in now] == ["1", "2", "3", "4", "5"]


def test_a_step_at_the_edge_stays_where_it_is(client, form) -> None:
    address = "/quiz/kv-cache/order"
    sent = form(client.get(address).text)
    first = next(n for n in sent.values if n.startswith("place."))

    moved = form(client.get(address, params={**sent.values, "move": f"{first[6:]}:up"}).text)

    assert moved.values == sent.values


def test_an_answer_that_is_too_long_is_refused_and_not_kept(client, form, session) -> None:
    sent = form(client.get("/quiz/kv-cache/single").text)
    blanks = {f"blank.{n}": ["x" * 400] * 2 for n in range(30)}

    refused = client.post(sent.action, data={**sent.values, **blanks})

    assert refused.status_code == 422
    assert "20,000 characters in all; this has 24,000." in refused.text
    assert session.exec(select(Attempt)).all() == []


@pytest.mark.parametrize(
    ("item", "response", "says"),
    [
        ("match", {"pair.lbcd": "rfgh"}, "Choose a match for each row; 1 of 2 have none."),
        ("order", None, "This is the order in which they were shown. Move them first."),
    ],
)
def test_practice_takes_no_response_that_is_not_finished(
    client, form, session, item: str, response: dict[str, str] | None, says: str
) -> None:
    answered = answer(client, form, f"/quiz/kv-cache/{item}", **(response or {}))

    assert answered.status_code == 422
    assert says in answered.text
    assert attempts(session) == []


def test_a_card_says_once_that_several_options_are_right(shipped: Course) -> None:
    several = [q for q in shipped.questions.values() if q.type == "multiple"]
    fronts = [render_question_card_faces(draw_variant(q, 0), str).front for q in several]

    counted = {front.count("(Choose") for front in fronts}
    both = [f for f in fronts if "(Choose" in f and "More than one" in f]
    assert (counted, both) == ({0, 1}, [])
    assert sum("More than one may be right." in front for front in fronts) > 0


@pytest.mark.parametrize("words", ["(Choose three.)", "Which three"])
def test_a_question_for_three_takes_three(shipped: Course, words: str) -> None:
    questions = (q for q in shipped.questions.values() if q.type == "multiple")
    question = next(q for q in questions if words in q.stem.plain)
    variant = draw_variant(question, 1)
    kind, options = question_type_of(variant), [option.key for option in variant.answer.options]

    def said(count: int) -> str:
        return kind.describe_missing_input(
            variant.answer, {"answer": options[:count]}, variant.stem
        )

    assert [said(n) for n in (1, 2, 3)] == [
        "Choose 3; 1 is chosen.",
        "Choose 3; 2 are chosen.",
        "",
    ]
