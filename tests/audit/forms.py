"""A fuzzer for every form: thousands of requests, none of which may be our fault.

Every route that takes a POST gets every kind of hostile value in every field that it
is known to have, in random company. An answer of 500 or more is a finding.
"""

import collections
import dataclasses
import random
import re
import tempfile
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.database.engine import make_engine
from app.database.schema import upgrade_schema
from app.main import create_app
from app.settings import Settings
from tests.conftest import TINY, let_in, two_courses
from tests.web.addresses import SANE_PARTS, routes

HOSTILE = (
    *("", " ", "0", "-1", "1", "yes", "no", "on", "null", "[]", "{}", "1e400", "NaN"),
    *("9" * 19, "9" * 40, "9" * 5000, "-" + "9" * 25, "0x10", "१२३", "1_000", "+1"),
    *("\0", "a\0b", "\ud7ff", "\uffff", "e\u0301" * 200, "\u202e" * 50, "\r\nX: y"),
    *("x" * 300, "x" * 70_000, "../../etc/passwd", "%2e%2e%2f", "//evil.example"),
    *("<script>alert(1)</script>", "' OR 1=1 --", "${7*7}", "{{7*7}}", "\\", '"'),
    *("2026-02-30", "0000-00-00", "9999-12-31", "2026-11-22", "UTC", "Mars/Olympus"),
    *("weights", "weights-1", "kv-cache", "mixed", "topic:weights", "missed:", "1.5"),
)
NAMES = (
    *("answer", "unit", "token", "revision", "context", "back", "run", "hints", "more"),
    *("since", "certainty", "attempt", "move", "reported", "pick", "count"),
    *("words", "seed", "name", "exam_day", "minutes_a_day", "zone", "retention"),
    *("target", "calendar", "missed", "theme", "keys", "code", "leave", "confirm"),
    *("rating", "topic", "given", "who", "review", "aside", "deck", "what", "section"),
    *("marked", "end", "flag", "settled", "place.a", "pair.a", "blank.1", "strike"),
    *("choose.gpu", "model", "gpu", "context", "weights", "batch", "age", "card"),
    *("declined", "term", "question", "minutes", "factor", "exam", "to", "next"),
)
PLAUSIBLE = {
    "answer": "a",
    "attempt": "1",
    "certainty": "2",
    "code": "7KQ2-M9TD",
    "count": "5",
    "end": "yes",
    "exam_day": "2026-12-20",
    "given": "1780000000000",
    "minutes_a_day": "30",
    "more": "1",
    "name": "Rosa",
    "pick": "mixed",
    "rating": "3",
    "retention": "90",
    "review": "1",
    "run": "1",
    "section": "end",
    "seed": "1",
    "since": "1780000000000",
    "token": "abc",
    "topic": "weights",
    "what": "deck",
    "words": "The unit is missing.",
}
IDS = (
    *("1", "0", "-1", "2147483648", "9223372036854775808", "9" * 400, "x", "%00"),
    *("weights", "w-computed", "w-c-size", "kv-cache", "short", "training-memory"),
    *("..%2f..", "%ff", "%F0%9F%92%A9", "x" * 2000, "a%0d%0ab", "q:w-fp32"),
)


@dataclasses.dataclass
class Tally:
    """How many answers had which status, and what was found."""

    statuses: collections.Counter[int] = dataclasses.field(default_factory=collections.Counter)
    found: list[str] = dataclasses.field(default_factory=list)

    @property
    def sent(self) -> int:
        """How many requests were sent."""
        return self.statuses.total()


def fuzz(requests: int, below: str = "", seed: int = 1) -> Tally:
    """Send so many forms, spread over all routes, to an app on an empty database.

    One of the three browsers that send them is an author's, and what is for authors is
    sent by it alone. `below` stands before each address: the course, beside others.
    """
    chance, tally = random.Random(seed), Tally()  # noqa: S311 - to be repeated
    with tempfile.TemporaryDirectory() as folder:
        app = _app(Path(folder), two_courses(Path(folder) / "c") if below else TINY)
        paths = sorted({path for method, path in routes(app) if method == "POST"})
        clients = [_browser(app, below) for _ in range(3)]
        for number in range(requests):
            path = paths[number % len(paths)]
            bench = path.startswith("/authoring")
            client = clients[0] if bench else chance.choice(clients)
            if bench and client.get("/authoring").status_code == 403:
                let_in(client)  # a form ended the session
            _send(client, chance, path, tally)
        app.state.engine.dispose()
    return tally


def _browser(app: FastAPI, below: str) -> TestClient:
    return TestClient(
        app,
        base_url=f"http://testserver{below}",
        raise_server_exceptions=False,
        follow_redirects=False,
    )


def _app(folder: Path, content: Path) -> FastAPI:
    rates = (name for name in Settings.model_fields if name.startswith("rate_"))
    unlimited: dict[str, Any] = dict.fromkeys(rates, "off")
    settings = Settings(data=folder, content=content, secret="s" * 40, **unlimited)
    engine = make_engine(settings.database_url_or_default)
    upgrade_schema(engine)
    engine.dispose()
    return create_app(settings)


def _send(client: TestClient, chance: random.Random, route: str, tally: Tally) -> None:
    path = re.sub(r"{(\w+)[^}]*}", lambda found: _id(chance, found[1]), route)
    request = _body(chance)
    headers = {"HX-Request": "true"} if chance.random() < 0.5 else {}
    answer = client.post(path, headers=headers, **request)
    tally.statuses[answer.status_code] += 1
    if answer.status_code >= 500:
        tally.found.append(f"{answer.status_code} POST {path[:80]} {str(request)[:200]}")


def _id(chance: random.Random, name: str) -> str:
    """A value for a part of the address, every second time one that exists."""
    return SANE_PARTS.get(name, "1") if chance.random() < 0.5 else chance.choice(IDS)


def _body(chance: random.Random) -> dict[str, Any]:
    fields = dict(PLAUSIBLE) if chance.random() < 0.6 else {}
    for name in chance.choices(NAMES, k=chance.randrange(8)):
        fields[name] = chance.choice(HOSTILE)
    kind = chance.random()
    if kind < 0.8:
        return {"data": _sendable(fields)}
    if kind < 0.9:
        file = ("a\nb.apkg", chance.randbytes(chance.randrange(3000)))
        return {"data": _sendable(fields), "files": {"file": file}}
    if kind < 0.95:
        return {"content": chance.randbytes(chance.randrange(2000))}
    return {"json": fields}


def _sendable(fields: dict[str, str]) -> dict[str, str]:
    return {n: v.encode("utf-8", "replace").decode() for n, v in fields.items()}
