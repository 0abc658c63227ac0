"""What is looked after: where an installation keeps what must not be lost."""

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from app.db.database_url import without_password
from app.db.engine import make_engine
from app.db.locks import LockHeldError, file_lock


class InstallationError(Exception):
    """It cannot be done; the sentence says why and what to do."""


@dataclasses.dataclass(frozen=True, slots=True)
class Installation:
    """The places and addresses of one installation.

    `secret` is the key given by the environment, if one is; `backups` is the folder of
    the daily copies, None where there are none.
    """

    data: Path
    database: str
    secret: str
    backups: Path | None

    @property
    def secret_file(self) -> Path:
        """Where the key lies that was made for this installation."""
        return self.data / "secret"

    @property
    def lock(self) -> Path:
        """The file whose lock everybody shares who uses the data folder."""
        return self.data / ".lock"

    def engine(self) -> Engine:
        """An engine for the database; Unusable where the address is none."""
        try:
            return make_engine(self.database)
        except (ModuleNotFoundError, SQLAlchemyError, ValueError) as error:
            said = without_password(error, self.database)
            raise InstallationError(
                f"the database address cannot be used ({said}); for PostgreSQL write "
                "postgresql+psycopg://user@host/name."
            ) from None

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Use the data folder beside others; nobody can replace it meanwhile."""
        with self._held(shared=True, otherwise="a restore is going on there"):
            yield

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Use the data folder alone, to replace what lies in it."""
        with self._held(shared=False, otherwise="a server uses it"):
            yield

    @contextlib.contextmanager
    def _held(self, *, shared: bool, otherwise: str) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(file_lock(self.lock, shared=shared, wait=False))
            except LockHeldError:
                raise InstallationError(
                    f"the data folder {self.data} cannot be used now, for {otherwise}: "
                    "stop it or wait for its end, then try again."
                ) from None
            yield
