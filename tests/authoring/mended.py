"""An author at work on the key of a question, and learners who answered before."""

import dataclasses
import datetime as dt
import re
from pathlib import Path

from fastapi.testclient import TestClient
from sqlalchemy import Engine
from sqlmodel import Session, select

from app.authoring.regrading import preview_regrade, write_regrades_of_preview
from app.content.live_courses import LiveCourse
from app.database.engine import WRITE_OPTIONS
from app.database.tables import Attempt
from app.questions.model import Question

NOW = dt.datetime(2026, 6, 9, 12, tzinfo=dt.UTC)
ITEM = "k-trade"
AT = f"/authoring/questions/{ITEM}/regrading"
ACCURACY, MEMORY, BANDWIDTH = (
    "Accuracy for speed",
    "Memory for compute",
    "Bandwidth for latency",
)


@dataclasses.dataclass
class Author:
    """`author.mends(words)` marks another option of the question right."""

    folder: Path
    live: LiveCourse

    @property
    def question(self) -> Question:
        return self.live.get_current_course().questions[ITEM]

    def key_of(self, words: str) -> str:
        options = self.question.answer.options
        return next(o.key for o in options if o.text.plain == words)

    def mends(self, words: str) -> Question:
        file = self.folder / "topics/kv-cache/quiz.md"
        begun, mark, rest = file.read_text().partition("\n### Which of these shrink")
        assert mark
        begun = begun.replace("- [x]", "- [ ]")
        file.write_text(begun.replace(f"[ ] {words}", f"[x] {words}") + mark + rest)
        return self.question

    def writes(self, old: str, new: str) -> None:
        file = self.folder / "topics/kv-cache/quiz.md"
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))


def answer(client: TestClient, key: str, **more: object) -> str:
    """Answer the question as a browser does; returns the address of the verdict."""
    page = client.get(f"/quiz/kv-cache/{ITEM}").text
    token = re.search(r'name="token" value="([^"]+)"', page)
    assert token
    body = {"answer": key, "token": token[1], **more}
    sent = client.post(f"/quiz/kv-cache/{ITEM}/attempts", data=body)
    assert sent.status_code == 303, sent.text
    return str(sent.headers["location"])


def attempts(session: Session) -> list[dict[str, object]]:
    """The log as it lies there, whatever was read before."""
    session.rollback()
    session.expire_all()
    return [row.model_dump() for row in session.exec(select(Attempt))]


def regrade(engine: Engine, author: Author, *, reworded: bool = False) -> int:
    """Let the key of now count, as the command does; returns how many it graded."""
    with Session(engine) as db:
        regrading = preview_regrade(db, "", author.question, accept_rewording=reworded)
    with Session(engine) as db:
        db.connection(execution_options=WRITE_OPTIONS)
        count = write_regrades_of_preview(db, "", regrading, 0, NOW)
        db.commit()
    return count
