"""The API's document: its tables are those of today, and its examples run."""

import json
import re
import shlex
from typing import Any
from urllib.parse import urlsplit

import pytest
from fastapi.testclient import TestClient

from app.content.live_courses import LiveCourse
from app.estimator.units import NBSP
from app.main import create_app
from app.settings import Settings
from docs.reference import api
from docs.reference.parts import DOCS
from tests.conftest import Clock, visit

TEXT = api.PATH.read_text(encoding="utf-8")
_EXAMPLE = re.compile(r"```sh\n(curl .*?)```\n\n```json\n(.*?)```", re.DOTALL)
EXAMPLES = _EXAMPLE.findall(TEXT)
_STARTED = re.compile(r"^curl .*$", re.MULTILINE)


@pytest.fixture
def shipped_client(settings: Settings, clock: Clock, live_shipped: LiveCourse) -> TestClient:
    """A browser at the course that is shipped: the examples name it."""
    return visit(create_app(settings, clock, live_shipped))


def asked(client: TestClient, line: str) -> Any:
    """What the app answers to a line of curl with -H and -d."""
    _, *words = shlex.split(line.replace("\\\n", " "))
    headers: dict[str, str] = {}
    body, address = None, ""
    while words:
        word = words.pop(0)
        if word == "-H":
            name, _, value = words.pop(0).partition(": ")
            headers[name] = value
        elif word == "-d":
            body = words.pop(0)
        else:
            address = word
    parts = urlsplit(address)
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    if body is None:
        return client.get(path, headers=headers)
    return client.post(path, content=body, headers=headers)


def holds(answer: Any, shown: Any) -> bool:
    """Whether everything that an example shows is in the answer."""
    if isinstance(shown, dict):
        return isinstance(answer, dict) and all(
            key in answer and holds(answer[key], value) for key, value in shown.items()
        )
    if isinstance(shown, list):
        return all(any(holds(one, part) for one in answer) for part in shown)
    if isinstance(answer, str):
        answer = answer.replace(NBSP, " ")
    return bool(answer == shown)


def test_the_document_is_up_to_date() -> None:
    assert api.document() == TEXT, "run: make docs"


def test_every_example_shows_its_answer() -> None:
    assert len(EXAMPLES) == len(_STARTED.findall(TEXT)) >= 5


@pytest.mark.parametrize(("line", "shown"), EXAMPLES)
def test_an_example_is_answered_as_it_shows(
    shipped_client: TestClient, line: str, shown: str
) -> None:
    assert holds(asked(shipped_client, line).json(), json.loads(shown))


def test_the_example_of_the_readme_is_answered(client: TestClient) -> None:
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")

    for line in _STARTED.findall(readme):
        assert asked(client, line).status_code == 200


def test_an_example_that_shows_something_else_would_be_noticed() -> None:
    assert holds({"a": [{"b": 1, "c": 2}]}, {"a": [{"b": 1}]})
    assert not holds({"a": [{"b": 1, "c": 2}]}, {"a": [{"b": 2}]})
    assert not holds({"a": 1}, {"b": 1})
