"""The course for programs: whole, the same for everybody, and never with a key."""

import json
import re

import pytest
from httpx2 import Response

from app.content.course import Course
from app.content.item_splitter import reduce_page_source_to_prose
from app.main import create_app
from app.questions import types as kinds
from app.questions.model import Question
from tests.amounts import FACTOR
from tests.conftest import visit

BASE = "/api/v1/courses"


@pytest.fixture
def name(client) -> str:
    (course,) = client.get(BASE).json()["courses"]
    return course["course"]


def test_a_course_says_what_it_is(client, name, course) -> None:
    told = client.get(f"{BASE}/{name}").json()

    assert told["exam"] == course.syllabus.exam
    assert told["version"] == course.version
    assert [t["topic"] for t in told["topics"]] == list(course.topics)
    assert [d["weight"] for d in told["domains"]] == [d.weight for d in course.syllabus.domains]


def test_a_page_is_told_in_markdown_and_in_html(client, name, course) -> None:
    for topic in course.topics.values():
        told = client.get(f"{BASE}/{name}/topics/{topic.slug}").json()

        assert [s["title"] for s in told["sections"]] == [s.title for s in topic.sections]
        for section in topic.sections[1:]:
            assert f"## {section.title}" in told["markdown"]
        assert not told["markdown"].startswith("---")


def test_terms_and_cards_are_all_there(client, name, course) -> None:
    terms = client.get(f"{BASE}/{name}/glossary").json()["terms"]
    cards = client.get(f"{BASE}/{name}/cards").json()["cards"]

    assert {t["term"] for t in terms} == set(course.glossary)
    assert {c["card"] for c in cards} == set(course.cards)


def test_of_one_topic_only_what_belongs_to_it(client, name, course) -> None:
    slug = next(q.topic for q in course.questions.values())
    told = client.get(f"{BASE}/{name}/questions?topic={slug}").json()

    assert {q["topic"] for q in told["questions"]} == {slug}


def topics_of_every_type(course: Course) -> list[str]:
    """The slugs of a few topics with questions of each type and use; `make drills`: of all."""
    types = {
        topic: {(q.type, q.use) for q in course.questions.values() if q.topic == topic}
        for topic in sorted(course.topics)
    }
    if FACTOR > 1:
        return [*types]
    found: list[str] = []
    seen: set[str] = set()
    while missing := set().union(*types.values()) - seen:
        found.append(max(types, key=lambda topic: len(types[topic] & missing)))
        seen |= types[found[-1]]
    return found


@pytest.mark.drawn
def test_no_answer_tells_a_key(live_shipped, shipped, settings, clock) -> None:
    topics = topics_of_every_type(shipped)
    app = create_app(settings, clock, live_shipped)
    client = visit(app)
    (course,) = client.get(BASE).json()["courses"]
    for topic in topics:
        answered = client.get(f"{BASE}/{course['course']}/questions?topic={topic}")
        check_keys([q for q in shipped.questions.values() if q.topic == topic], answered)


def test_no_answer_about_a_whole_course_tells_a_key(client, name, course) -> None:
    answered = client.get(f"{BASE}/{name}/questions")

    check_keys([*course.questions.values()], answered)


def check_keys(questions: list[Question], answered: Response) -> None:
    told = {q["question"]: q for q in answered.json()["questions"]}

    practiced = {q.id: q for q in questions if q.use != "exam"}
    assert told.keys() == practiced.keys()
    for item, question in practiced.items():
        html = told[item]["html"]
        for said in (question.explanation, question.mistake):
            assert not said.html or said.html not in html, item
        for option in getattr(
            question.answer, kinds.question_type_of(question).options_attribute or "_", ()
        ):
            why = getattr(option, "feedback", None)
            assert not (why and why.html) or why.html not in html, item
    assert not re.search(r'"(?:right|key|feedback|explanation)":', answered.text)


def test_the_markdown_of_a_page_holds_no_item() -> None:
    page = """---
title: A page
---

Words before.

## One

```
## not a heading
<!-- nor a comment -->


```

### Which is right?
<!-- q: x-right -->

- [x] This
  > Because.
- [ ] That

## Two

Words behind.
"""
    told = reduce_page_source_to_prose(page)

    assert told.startswith("Words before.")
    assert "Words behind." in told
    assert "## Two" in told
    assert "nor a comment -->\n\n\n```" in told
    for key in ("Which is right?", "[x]", "Because", "q: x-right"):
        assert key not in told


def test_the_markdown_of_a_page_holds_no_comment() -> None:
    page = """---
title: A page
---

Words <!-- the key is b --> go on, `<!-- kept -->` too.

<!-- TODO: the key of w-one is c -->

> A quotation <!-- the key
> is d --> ends.

- An item
  <!-- the key is e -->

## Two <!-- the key is f -->
"""
    told = reduce_page_source_to_prose(page)

    assert "key" not in told
    assert "Words  go on, `<!-- kept -->` too." in told
    assert "> A quotation" in told
    assert "ends." in told
    assert "## Two" in told


def test_what_has_not_changed_is_not_sent_again(client, name) -> None:
    address = f"{BASE}/{name}/glossary"
    tag = client.get(address).headers["etag"]
    again = client.get(address, headers={"If-None-Match": tag})

    assert again.status_code == 304
    assert not again.content


@pytest.mark.parametrize("address", ["/nowhere", "/{}/topics/nowhere", "/{}/cards?topic=nowhere"])
def test_what_is_not_there_is_404_in_json(client, name, address) -> None:
    answer = client.get(BASE + address.format(name))

    assert answer.status_code == 404
    assert json.loads(answer.text)["problems"]


def test_a_name_that_is_too_long_is_422(client, name) -> None:
    answer = client.get(f"{BASE}/{name}/cards?topic={'x' * 101}")

    assert answer.status_code == 422
    assert "topic" in answer.text
