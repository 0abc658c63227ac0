"""A commit that the disk may have lost is told as a failure, each time it is tried."""

import errno
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from app.database.engine import OpenWriteSession, create_write_session_opener, make_engine
from app.database.file_guards import FileSystemJournalProbe
from app.database.schema import upgrade_schema
from tests.databases import ABOUT_SQLITE
from tests.loops import outcome

pytestmark = ABOUT_SQLITE


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = make_engine(f"sqlite:///{tmp_path / 'headroom.db'}")
    upgrade_schema(engine)
    yield engine
    engine.dispose()


def refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a file system does that has given up its journal."""

    def refused(_descriptor: int, _size: int) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "ftruncate", refused)


def write(turn: OpenWriteSession, words: str) -> None:
    async def once() -> None:
        async with turn() as session:
            session.execute(text(words))

    outcome(once())


def test_each_proof_changes_the_size_of_a_file_that_nobody_sees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    change = os.ftruncate

    def changed(descriptor: int, size: int) -> None:
        assert os.fstat(descriptor).st_dev == tmp_path.stat().st_dev
        change(descriptor, size)
        sizes.append(os.fstat(descriptor).st_size)

    monkeypatch.setattr(os, "ftruncate", changed)
    disk = FileSystemJournalProbe(tmp_path)
    for _ in range(5000):
        disk.raise_if_journal_lost()

    assert all(one != other for one, other in itertools.pairwise(sizes))
    assert not list(tmp_path.iterdir())


def test_a_commit_on_a_disk_that_keeps_nothing_fails(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = create_write_session_opener(engine)
    write(turn, "UPDATE learner SET name = 'x'")

    with monkeypatch.context() as patched:
        refuse(patched)
        with pytest.raises(OSError, match="Read-only file system"):
            write(turn, "UPDATE learner SET name = 'x'")
        with pytest.raises(OSError, match="Read-only file system"):
            write(turn, "SELECT 1")  # as of somebody who comes again

    write(turn, "UPDATE learner SET name = 'x'")
