"""A mock exam as a browser sits it: begun, seen, saved, ended, found in the rows."""

import json
import re

from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.database.tables import SittingAnswer
from tests.quiz.conftest import Fields

START = "/exams/short"


def begin(client: TestClient, **fields: str) -> str:
    """Start the exam with all kinds; returns the address of the sitting."""
    html = client.get(START).text
    token = re.search(r'name="token" value="([^"]+)"', html)
    assert token
    answer = client.post(f"{START}/sittings", data={"token": token[1], "kinds": "all", **fields})
    assert answer.status_code == 303
    return answer.headers["location"].rpartition("/questions/")[0]


def save(client: TestClient, sitting: str, number: int, **fields: object):
    return client.post(f"{sitting}/answers/{number}", data=fields)


def finish(client: TestClient, sitting: str):
    return client.post(f"{sitting}/submission")


def shown(client: TestClient, sitting: str, number: int = 1) -> dict[str, str]:
    """The fields of a question as a tab holds them."""
    fields = Fields(f"/answers/{number}")
    fields.feed(client.get(f"{sitting}/questions/{number}").text)
    return dict(fields.values)


def kept(session: Session) -> SittingAnswer:
    """The only row of answers."""
    session.expire_all()
    return session.exec(select(SittingAnswer)).one()


def answer(session: Session) -> list[str]:
    """What stands in the field “answer” of the only row."""
    found: list[str] = json.loads(kept(session).raw).get("answer", [])
    return found
