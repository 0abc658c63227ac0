"""The key that signs cookies: long enough, private, and never an empty one."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.database.installation import (
    InstallationError,
    load_or_create_secret_key,
    read_secret_key_file,
)

GIVEN = "thirty-two characters are enough"


def test_a_key_is_made_once_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "data" / "secret"

    key = load_or_create_secret_key("", path)

    assert len(key) == 64
    assert load_or_create_secret_key("", path) == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [p.name for p in path.parent.iterdir()] == ["secret"]


def test_who_starts_at_once_gets_the_same(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        keys = set(
            pool.map(lambda _n: load_or_create_secret_key("", tmp_path / "secret"), range(8))
        )

    assert len(keys) == 1


def test_a_given_key_wins_and_writes_nothing(tmp_path: Path) -> None:
    assert load_or_create_secret_key(GIVEN, tmp_path / "secret") == GIVEN
    assert list(tmp_path.iterdir()) == []


def test_a_key_may_hold_letters_of_any_language(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text(GIVEN.replace("a", "ä"), encoding="utf-8")

    assert load_or_create_secret_key("", path) == GIVEN.replace("a", "ä")


@pytest.mark.parametrize("given", ["a", " ", GIVEN[:-1], f"{GIVEN[:20]}{' ' * 40}"])
def test_a_short_key_is_refused(given: str, tmp_path: Path) -> None:
    with pytest.raises(InstallationError, match=r"HEADROOM_SECRET has \d+ characters") as said:
        load_or_create_secret_key(given, tmp_path / "secret")

    assert given.strip() not in str(said.value) or len(given.strip()) < 2


@pytest.mark.parametrize("content", [b"", b"\n", b"short", b"\xff" * 64])
def test_a_file_without_a_key_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(content)

    with pytest.raises(InstallationError, match="holds no usable key") as said:
        load_or_create_secret_key("", path)

    assert "`headroom restore FILE`" in str(said.value)
    assert path.read_bytes() == content


def test_a_key_that_others_could_read_is_made_private(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text(GIVEN)
    path.chmod(0o644)

    assert load_or_create_secret_key("", path) == GIVEN
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_root_follows_no_link_in_place_of_the_key(tmp_path: Path, monkeypatch):
    hidden = tmp_path / "hidden"
    hidden.write_text("of somebody else, and long enough to be a key")
    (tmp_path / "secret").symlink_to(hidden)
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    with pytest.raises(InstallationError, match="root does not follow"):
        read_secret_key_file(tmp_path / "secret")
