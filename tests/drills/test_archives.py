"""Four learners take all their pictures along at once: memory stays, pages are served.

The peak of a process is what /proc calls VmHWM; a server that was started anew has no
room left over from the imports, in which an archive could hide.
"""

import contextlib
import io
import json
import random
import re
import sys
import zipfile
from collections.abc import Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from app.import_export.anki.package_format import import_zstd_or_none
from tests.browser.server import Server
from tests.conftest import TINY
from tests.import_export.package import Made, database

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
PICTURES, BYTES = 10, 1_900_000  # of a file, which may have 20 MB
FILES = (3, 1, 1, 1)  # that each learner imports
HELD = sum(FILES) * PICTURES * BYTES
MOST_GROWTH = 60_000_000
PATHS = ["/settings/export", "/settings/cards.apkg"]
PATHS += ["/settings/cards.colpkg"] if import_zstd_or_none() else []


def package(number: int) -> bytes:
    """A package of cards with a large picture each."""
    names = [f"p{number}-{n}.png" for n in range(PICTURES)]
    notes = [Made(name, (f"<img src='{name}'>", "Back")) for name in names]
    chance = random.Random(number)  # noqa: S311 - repeatable, not secret
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("collection.anki21", database(*notes))
        archive.writestr("media", json.dumps(dict(enumerate(names))))
        for n in range(PICTURES):
            content = chance.randbytes(BYTES - 8)
            archive.writestr(str(n), b"\x89PNG\r\n\x1a\n" + content)
    return out.getvalue()


@contextlib.contextmanager
def browser(server: Server, number: int) -> Iterator[httpx.Client]:
    """A browser with an address of its own."""
    transport = httpx.HTTPTransport(local_address=f"127.0.0.{10 + number}")
    with httpx.Client(base_url=server.url, timeout=120, transport=transport) as client:
        yield client


def bring(server: Server, number: int, files: int) -> str:
    """Import so many files as a new learner; returns their cookie."""
    with browser(server, number) as client:
        client.get("/settings")
        for file in range(files):
            content = package(10 * number + file)
            sent = {"file": ("deck.apkg", content)}
            assert client.post("/settings/cards", files=sent).status_code == 303
            while "Look again" in (said := client.get("/settings/cards/import").text):
                pass
            assert f"{PICTURES} new cards" in said.replace("\u00a0", " ")
        return client.cookies["headroom"]


def memory(server: Server, name: str) -> int:
    """Bytes of a line of /proc/PID/status."""
    status = Path(f"/proc/{server.pid}/status").read_text()
    found = re.search(rf"{name}:\s+(\d+) kB", status)
    assert found
    return int(found[1]) * 1024


def take(server: Server, number: int, cookie: str, path: str) -> bytes:
    with browser(server, number) as client:
        client.cookies.set("headroom", cookie)
        answer = client.get(path)
        assert answer.status_code == 200
        return answer.content


def answered_until(visitor: httpx.Client, tasks: Collection[Future[bytes]]) -> int:
    """How many pages somebody else gets until all tasks are done; each is made anew."""
    tokens = set()
    while not all(task.done() for task in tasks):
        page = visitor.get("/flashcards/own")
        assert page.status_code == 200
        tokens.add(re.findall(r'name="token" value="([^"]+)"', page.text)[0])
    return len(tokens)


def test_four_archives_at_once_take_little_memory_and_hold_up_nobody(tmp_path: Path):
    server = Server(tmp_path / "data", TINY, rate_imports="off", backups="off")
    with server:
        cookies = [bring(server, n, files) for n, files in enumerate(FILES)]
    with server, browser(server, 9) as visitor, ThreadPoolExecutor() as pool:
        for path in ("/", "/glossary", "/settings/cards"):
            assert visitor.get(path).status_code == 200
        for path in PATHS:
            Path(f"/proc/{server.pid}/clear_refs").write_text("5")  # the peak
            before = memory(server, "VmRSS")
            tasks = [pool.submit(take, server, n, cookie, path) for n, cookie in enumerate(cookies)]
            pages = answered_until(visitor, tasks)
            growth = memory(server, "VmHWM") - before
            contents = [task.result() for task in tasks]

            assert sum(map(len, contents)) > HELD
            found = [pictures_in(content) for content in contents]
            assert found == [PICTURES * files for files in FILES]
            assert growth < MOST_GROWTH < HELD / 1.5, (path, growth)
            assert pages > 10, path


def pictures_in(content: bytes) -> int:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return sum(entry.file_size > BYTES / 2 for entry in archive.infolist())
