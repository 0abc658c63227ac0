"""Files that many courses of these tests have alike are read once."""

from collections.abc import Sequence

import pytest

from app.content.live import watched_files
from app.content.live.parsing_processes import Job, read_all
from app.content.parsed import ParsedFile

_Known = dict[tuple[str, str, str], ParsedFile]


@pytest.fixture(scope="session")
def known_readings() -> _Known:
    return {}


@pytest.fixture
def read_once(monkeypatch: pytest.MonkeyPatch, known_readings: _Known) -> None:
    """What a file says depends on its words, its path and the names it may link.

    Six hundred courses differ from the tiny one in a file or two, whose reading is
    tested in each; all that is said of the files together is found in each course anew.
    """

    def read(jobs: Sequence[Job]) -> list[ParsedFile]:
        keys = [(text, path, names.fingerprint) for text, path, names in jobs]
        new = {
            key: job
            for key, job in zip(keys, jobs, strict=True)
            if key not in known_readings
        }
        known_readings.update(zip(new, read_all([*new.values()]), strict=True))
        return [known_readings[key] for key in keys]

    monkeypatch.setattr(watched_files, "read_all", read)
