"""The paths and the database of an installation, and its secret key."""

import contextlib
import dataclasses
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from app.database.engine import make_engine, parse_database_url, redact_passwords_in_message
from app.database.file_guards import (
    LockHeldError,
    hold_file_lock,
    make_file_private,
    make_private_folder,
    sync_to_disk,
)


class InstallationError(Exception):
    """An operation is not possible. The message says why and what to do."""


@dataclasses.dataclass(frozen=True, slots=True)
class Installation:
    """The paths and database URL of one installation.

    `configured_key` is the key from the environment, or empty. `backup_folder` is None if daily
    backups are disabled.
    """

    data_folder: Path
    database_url: str
    configured_key: str
    backup_folder: Path | None

    @property
    def secret_file(self) -> Path:
        """The file of the key that was generated for this installation."""
        return self.data_folder / "secret"

    @property
    def sqlite_path_or_none(self) -> Path | None:
        """The file of a SQLite database; None for other databases or an invalid URL."""
        url = parse_database_url(self.database_url)
        if url is None or url.get_backend_name() != "sqlite" or not url.database:
            return None
        return Path(url.database)

    @property
    def lock_file(self) -> Path:
        """The lock file that every process using the data folder shares."""
        return self.data_folder / ".lock"

    def read_secret_key(self) -> str:
        """Return the configured key or that of the file; raises InstallationError for no key."""
        if self.configured_key:
            return load_or_create_secret_key(self.configured_key, self.secret_file)
        return read_secret_key_file(self.secret_file)

    def make_engine(self) -> Engine:
        """Return an engine for the database. Raises InstallationError if the URL is invalid."""
        try:
            return make_engine(self.database_url)
        except (ModuleNotFoundError, SQLAlchemyError, ValueError) as error:
            reason = redact_passwords_in_message(error, self.database_url)
            raise InstallationError(
                f"the database address cannot be used ({reason}); for PostgreSQL write "
                "postgresql+psycopg://user@host/name."
            ) from None

    def hold_shared_lock(self) -> AbstractContextManager[None]:
        """Share the data folder with other processes; no restore can replace it in the meantime."""
        return self._hold_lock(shared=True, refusal="a restore is going on there")

    def hold_exclusive_lock(self) -> AbstractContextManager[None]:
        """Lock the data folder exclusively, to replace its contents."""
        return self._hold_lock(shared=False, refusal="a server uses it")

    @contextlib.contextmanager
    def _hold_lock(self, *, shared: bool, refusal: str) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(hold_file_lock(self.lock_file, shared=shared, wait=False))
            except LockHeldError:
                raise InstallationError(
                    f"the data folder {self.data_folder} cannot be used now, for {refusal}: "
                    "stop it or wait for its end, then try again."
                ) from None
            yield


MIN_SECRET_LENGTH = 32
"""Minimum length of a key in characters; a shorter one could be guessed."""
_MAKE_ONE = "python3 -c 'import secrets; print(secrets.token_urlsafe(48))' prints a good one"


def load_or_create_secret_key(configured_key: str, key_file: Path) -> str:
    """Return the signing key: `configured_key` from a setting, or the one in the file at `key_file`.

    Creates the file if it is missing. Raises InstallationError for a key that is too
    short.
    """
    if configured_key:
        if len(configured_key.strip()) < MIN_SECRET_LENGTH:
            raise InstallationError(
                f"HEADROOM_SECRET has {len(configured_key.strip())} characters and needs at "
                f"least {MIN_SECRET_LENGTH}: set a longer one ({_MAKE_ONE}), or leave it out to "
                "use the key in the data folder."
            )
        return configured_key
    if not key_file.exists():
        make_private_folder(key_file.parent)
        _write_new_secret_key(key_file)
    make_file_private(key_file)
    return read_secret_key_file(key_file)


def read_secret_key_file(path: Path) -> str:
    """Return the key in a file. Raises InstallationError if there is no usable one."""
    if os.geteuid() == 0 and path.is_symlink():
        # A backup includes the key and is readable for the folder's owner, who could
        # use a link to make root copy any file.
        raise InstallationError(f"the key {path} is a link, which root does not follow.")
    try:
        key = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        key = ""
    except OSError as error:
        raise InstallationError(
            f"the key {path} cannot be read ({error.strerror}): let the user who runs "
            "Headroom own the file."
        ) from None
    if len(key.strip()) < MIN_SECRET_LENGTH:
        raise InstallationError(
            f"the file {path} holds no usable key (at least {MIN_SECRET_LENGTH} characters are "
            "needed): get it back with `headroom restore FILE`, or delete it for a new "
            "key, with which every browser begins as a new learner."
        )
    return key


def _write_new_secret_key(path: Path) -> None:
    # Several server processes may start at once: the first link wins, and all read it.
    handle, name = tempfile.mkstemp(prefix="secret.", dir=path.parent)
    temporary_file = Path(name)
    with os.fdopen(handle, "w", encoding="ascii") as stream:
        stream.write(secrets.token_urlsafe(48))
    sync_to_disk(temporary_file)
    with contextlib.suppress(FileExistsError):
        path.hardlink_to(temporary_file)
    temporary_file.unlink()
    sync_to_disk(path.parent)
