"""Whatever root does to an installation, it still belongs to who runs the server."""

import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cli import main
from app.cli.database import give_new_root_files_to_owner
from app.database import file_guards as files
from app.database.file_guards import give_root_files_to_folder_owner, make_private_folder
from app.database.installation import Installation
from app.settings import Settings
from tests.conftest import TINY
from tests.databases import ABOUT_SQLITE

OWNER = 54_321  # nobody's number
ONLY_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture(autouse=True)
def _modes() -> Iterator[None]:
    """What a command does to the modes of new files ends with its test."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def served(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder of a server that runs as another user."""
    for name in list(os.environ):
        if name.startswith("HEADROOM_"):
            monkeypatch.delenv(name)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HEADROOM_PORT", str(free.getsockname()[1]))
    monkeypatch.setenv("HEADROOM_DATA", str(installation.data_folder))
    monkeypatch.setenv("HEADROOM_DATABASE_URL", installation.database_url)
    monkeypatch.setenv("HEADROOM_CONTENT", str(TINY))
    hand_over(installation.data_folder)
    return installation.data_folder


def hand_over(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, OWNER, OWNER)


def strangers(folder: Path) -> list[str]:
    """What in a folder belongs to somebody else than its owner."""
    owner = folder.stat().st_uid
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.lstat().st_uid != owner
    )


@ONLY_ROOT
@ABOUT_SQLITE
@pytest.mark.parametrize(
    "words",
    [
        ["db", "upgrade"],
        ["db", "vacuum"],
        ["doctor"],
        ["author", "link"],
        ["author", "list"],
        ["learners", "list"],
        ["backup", "FOLDER/copy.zip"],
        ["export", "attempts-csv", "FOLDER/../attempts.csv"],
    ],
    ids=" ".join,
)
def test_a_command_of_root_leaves_nothing_of_roots(served: Path, words: list[str]):
    (served / "secret").unlink()  # so that it is made anew
    (served / "headroom.db-shm").unlink(missing_ok=True)

    main([word.replace("FOLDER", str(served)) for word in words])

    assert strangers(served) == []
    assert served.stat().st_uid == OWNER


@ONLY_ROOT
@ABOUT_SQLITE
@pytest.mark.parametrize("lost", [False, True])
def test_what_root_restores_belongs_to_who_runs_the_server(
    served: Path, tmp_path: Path, lost: bool
):
    copy = tmp_path / "copy.zip"
    assert main(["backup", str(copy)]) == 0
    if lost:  # after a disaster nothing is there but the empty folder
        shutil.rmtree(served)
        served.mkdir()
        os.chown(served, OWNER, OWNER)

    assert main(["restore", str(copy)]) == 0

    assert strangers(served) == []
    names = {path.name for path in served.iterdir()}
    assert {"headroom.db", "secret"} <= names
    assert any(name.startswith("before-restore-") for name in names) is not lost
    assert copy.stat().st_uid == 0  # it lies elsewhere, and is root's


@ONLY_ROOT
@ABOUT_SQLITE
def test_a_database_elsewhere_belongs_to_the_owner_of_its_folder(
    served: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    hand_over(elsewhere)
    (elsewhere / "of root").touch()
    copy = tmp_path / "copy.zip"
    main(["backup", str(copy)])
    address = f"sqlite:///{elsewhere / 'headroom.db'}"
    monkeypatch.setenv("HEADROOM_DATABASE_URL", address)

    for _ in range(2):
        assert main(["restore", str(copy)]) == 0

    assert strangers(elsewhere) == ["of root"]
    assert len(list(elsewhere.glob("before-restore-*"))) == 1
    assert strangers(served) == []


@ONLY_ROOT
def test_a_new_folder_belongs_to_the_owner_of_the_one_above(tmp_path: Path):
    home = tmp_path / "home"
    home.mkdir()
    hand_over(home)

    make_private_folder(home / "study" / "data")

    assert strangers(home) == []
    assert (home / "study" / "data").stat().st_mode & 0o777 == 0o700


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[set[str]]:
    """What is given away where the user of the tests counts as root."""
    names: set[str] = set()

    def note(handle: int, *owner: int) -> None:
        assert owner == (OWNER, OWNER)
        path = Path(f"/proc/self/fd/{handle}").readlink()
        names.add(str(path.relative_to(tmp_path)))

    monkeypatch.setattr(files, "_ROOT_USER_ID", os.geteuid())
    monkeypatch.setattr(files, "_folder_owner", lambda _folder: files.FileOwner(OWNER, OWNER))
    monkeypatch.setattr(files.os, "fchown", note)
    return names


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A folder with files, a folder, links, and a pipe that nobody reads."""
    folder = tmp_path / "data"
    (folder / "cache").mkdir(parents=True)
    for name in ("headroom.db", "headroom.db-wal", "secret", "cache/one.json"):
        (folder / name).touch()
    (tmp_path / "shadow").touch()
    (folder / "second-name").hardlink_to(tmp_path / "shadow")
    (folder / "link").symlink_to(tmp_path / "shadow")
    (folder / "folder-link").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    return folder


linux = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="reads /proc")


@linux
def test_neither_links_nor_second_names_are_given_away(mixed: Path, given: set[str]):
    give_root_files_to_folder_owner(mixed)

    assert given == {
        "data/cache",
        "data/cache/one.json",
        "data/headroom.db",
        "data/headroom.db-wal",
        "data/secret",
    }


@linux
def test_of_a_folder_for_other_things_only_what_is_ours(mixed: Path, given: set[str]):
    give_root_files_to_folder_owner(mixed, "headroom.db", "before-restore-")

    assert given == {"data/headroom.db", "data/headroom.db-wal"}


@linux
def test_who_is_not_root_gives_nothing_away(
    mixed: Path, given: set[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(files, "_ROOT_USER_ID", os.geteuid() + 1)

    give_root_files_to_folder_owner(mixed)

    assert given == set()


@linux
def test_it_is_done_also_where_the_command_fails(mixed: Path, given: set[str]):
    settings = Settings(data=mixed)

    with pytest.raises(RuntimeError), give_new_root_files_to_owner(settings):
        raise RuntimeError("a fault")

    assert "data/headroom.db" in given
