"""Somebody at the app: asks, sends forms, walks; and what is recorded of answers."""

import collections
import contextlib
import hashlib
import io
import os
import random
import re
import runpy
import shutil
import sqlite3
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import httpx

from tests.net import repeatable
from tests.net.pages import Form, Page

ROOT = Path(__file__).resolve().parents[2]
Texts = dict[str, str]
_ASSET = re.compile(r"(?<=\?v=)[0-9a-f]{10}\b")
# The version of a course is another with each change of the code that reads it.
_VERSION = re.compile(r'(?<=version":")[0-9a-f]{16}|(?<=ersion=")[0-9a-f]{16}')
_WORKER = re.compile(r'(?<=VERSION = ")[0-9a-f]{16}')
_ROOM = re.compile(r"[\d,]+ MB free")
_MASKS = {_ASSET: "<asset>", _VERSION: "<version>", _WORKER: "<version>"}
_UNRECORDED = {"etag", "content-length", "x-request-id"}
# Alike are addresses that differ in the last part or in the query. Below a topic,
# a calculator or an exam a few of them are walked, elsewhere all.
_ALIKE, _QUERIES = 3, 3


def served_course(source: Path, folder: Path) -> None:
    """Copy a course, with times before the clock of the run: it is read once."""
    shutil.copytree(source, folder)
    for path in [folder, *folder.rglob("*")]:
        os.utime(path, (1.7e9, 1.7e9))


@contextlib.contextmanager
def installation(content: Path, data: Path) -> Iterator[None]:
    """Set the environment to a new database, without limits on how often one asks."""
    for name in [n for n in os.environ if n.startswith("HEADROOM_")]:
        del os.environ[name]
    rates = "WRITES WRITES_BROWSER EXPORTS CALENDARS ESTIMATES COMPARISONS SEARCHES"
    rates += " IMPORTS IMPORTS_BROWSER CODES CODES_BROWSER LEARNERS"
    os.environ |= {f"HEADROOM_RATE_{name}": "off" for name in rates.split()}
    os.environ |= {"HEADROOM_CONTENT": str(content), "HEADROOM_DATA": str(data)}
    os.environ |= {"HEADROOM_SECRET": "of the net" * 4, "HEADROOM_BACKUPS": "off"}
    os.environ |= {"HEADROOM_PORT": "9", "COLUMNS": "88", "NO_COLOR": "1"}
    data.mkdir(parents=True, exist_ok=True)
    headroom("db", "upgrade")
    yield


def headroom(*words: str) -> str:
    """What `python -m app` writes and its status, without the folders of the run."""
    written = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    before, sys.argv = sys.argv, ["headroom", *words]
    repeatable.seed(" ".join(words))
    try:
        with contextlib.redirect_stdout(written), contextlib.redirect_stderr(written):
            runpy.run_module("app", run_name="__main__")
    except SystemExit as end:
        print(f"status {end.code}", file=written)
    finally:
        sys.argv = before
    return masked(_readable(written.buffer.getvalue()))


def masked(text: str) -> str:
    """A text without the folders of this run and the room on its disk."""
    for name in ("HEADROOM_DATA", "HEADROOM_CONTENT"):
        text = text.replace(os.environ.get(name) or "//none", f"<{name}>")
    return _ROOM.sub("<room> MB free", text.replace(str(ROOT), "<root>"))


def dump(database: Path) -> str:
    """Every table in the order of names, its rows in the order of their words."""
    with contextlib.closing(sqlite3.connect(database)) as db:
        tables = db.execute("SELECT name, sql FROM sqlite_master ORDER BY type, name")
        lines = []
        for name, made in tables.fetchall():
            # SQLAlchemy writes the constraints of a changed table in no fixed order.
            parts = sorted(part.strip(" \t,") for part in (made or "").splitlines())
            lines += [f"== {name}", *parts]
            if made and made.startswith("CREATE TABLE"):
                rows = db.execute(f'SELECT * FROM "{name}"')  # noqa: S608 - own tables
                columns = [column[0] for column in rows.description]
                lines += [repr(columns), *sorted(map(repr, rows))]
    return "\n".join(lines)


def _readable(content: bytes) -> str:
    """Text as it is, an archive by its parts, anything else by its hash."""
    if content[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = [f"{n}: {_readable(archive.read(n))}" for n in archive.namelist()]
        return "\n".join(parts)
    if content[:6] == b"SQLite":
        with tempfile.NamedTemporaryFile() as file:
            Path(file.name).write_bytes(content)
            return dump(Path(file.name))
    try:
        return content.decode()
    except UnicodeDecodeError:
        return f"{len(content)} bytes, {hashlib.sha256(content).hexdigest()}"


class Visitor:
    """One browser, with a chance of its own, which notes what it is told."""

    def __init__(self, name: str, client: httpx.Client) -> None:
        self.name, self.client = name, client
        self.chance, self.texts = random.Random(name), Texts()
        self._asked: collections.Counter[str] = collections.Counter()

    def ask(self, method: str, address: str, **sent: object) -> httpx.Response:
        """Send a request; chance depends on nothing that was asked elsewhere."""
        what = f"{method} {address}"
        self._asked[what] += 1
        repeatable.seed(f"{self.name} {what} {self._asked[what]}")
        return self.client.request(method, address, **sent)

    def note(self, name: str, answer: httpx.Response) -> None:
        """Record an answer: its status, what its head says, its content."""
        head = sorted(f"{k}: {v}" for k, v in answer.headers.items() if k not in _UNRECORDED)
        text = "\n".join([str(answer.status_code), *head, "", _readable(answer.content)])
        for pattern, words in _MASKS.items():
            text = pattern.sub(words, text)
        self.texts[f"{self.name}/{name}"] = masked(text)

    def page(self, address: str) -> Page:
        """The page at an address, after what it sends on to."""
        answer = self.ask("GET", address)
        for _ in range(5):
            if "location" in answer.headers:
                address = answer.headers["location"]
                answer = self.ask("GET", address)
        return Page(answer.text, address)

    def send(self, form: Form | None, **given: str) -> Page:
        """Fill a form by chance, press a button, follow; note both answers."""
        assert form, f"{self.name}: the form is not there after {[*self.texts][-1:]}"
        repeatable.advance(seconds=20)
        fields = form.filled(self.chance, **given)
        named = dict(form.buttons).keys() - given.keys()
        if form.buttons and "" not in named:
            name, value = self.chance.choice(form.buttons)
            fields |= {name: [value]} if name in named else {}
        place = f"{len(self.texts):04}"
        if form.method == "get":
            return self.page(f"{form.action}?{urlencode(fields, doseq=True)}")
        answer = self.ask("POST", form.action, data=fields)
        self.note(f"{place} POST {form.action}", answer)
        address = answer.headers.get("location", "")
        if not address:
            return Page(answer.text, form.action)
        after = self.ask("GET", address)
        self.note(f"{place} then {address}", after)
        return Page(after.text, address)

    def walk(self, *starts: str, apart: tuple[str, ...] = ()) -> None:
        """Ask for every page within reach, by links and by forms that only look.

        What begins with one of `apart` is left out.
        """
        waiting, seen = (
            collections.deque((start, False) for start in starts),
            set(starts),
        )
        alike: collections.Counter[str] = collections.Counter()
        while waiting:
            address, partial = waiting.popleft()
            path, _, query = address.partition("?")
            family = path if query else path.rpartition("/")[0]
            most = _QUERIES if query else _ALIKE if family.count("/") > 1 else 999
            alike[f"{family}?{bool(query)}"] += 1
            if alike[f"{family}?{bool(query)}"] > most:
                continue
            head = {"HX-Request": "true"} if partial else {}
            answer = self.ask("GET", address, headers=head)
            self.note(f"GET {address}", answer)
            found = [(answer.headers.get("location", ""), False)]
            if answer.headers.get("content-type", "").startswith("text/html"):
                page = Page(answer.text, address)
                found += [(link, False) for link in page.links]
                found += [(link, True) for link in page.partial]
                found += [
                    (f"{f.action}?{urlencode(f.untouched())}", False)
                    for f in page.forms
                    if f.method == "get"
                ]
            for link in found:
                inside = link[0].startswith("/") and not urlsplit(link[0]).netloc
                outside = link[0].startswith(apart) or "/static/" in link[0]
                if inside and not outside and link[0] not in seen:
                    seen.add(link[0])
                    waiting.append(link)
