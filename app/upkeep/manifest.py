"""What a backup says about itself, so that it can be checked before it is used."""

import datetime as dt
from importlib.metadata import version
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.upkeep.installation import InstallationError

FORMAT = 1
MANIFEST = "manifest.json"
SECRET = "secret"  # noqa: S105 - the name of a file
DATABASE = {"sqlite": "database.sqlite3", "postgresql": "database.pgdump"}
"""The name of the database inside of a backup, by its kind."""
Kind = Literal["sqlite", "postgresql"]
KeySource = Literal["data folder", "HEADROOM_SECRET", "none"]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Strict = ConfigDict(frozen=True, strict=True)


class BackupMember(BaseModel):
    """A file inside of a backup."""

    model_config = _Strict
    size: int = Field(ge=0)
    sha256: Digest


class BackupManifest(BaseModel):
    """Everything that is told about a backup; `rows` counts by table.

    `secret` says where the key came from. It is inside in either case: without it
    every browser would have lost its learner.
    """

    model_config = _Strict
    format: int
    headroom: str
    schema_revision: str
    made_at: str
    database: Kind
    rows: dict[str, int]
    secret: KeySource
    files: dict[str, BackupMember]

    def written(self) -> bytes:
        """The manifest as it lies in the file."""
        return self.model_dump_json(indent=1).encode() + b"\n"

    @property
    def day(self) -> str:
        """When it was made, as a person reads it."""
        return f"{self.made_at[:10]} {self.made_at[11:16]} UTC"


class _ManifestFormat(BaseModel):
    format: int


def read_manifest(content: bytes) -> BackupManifest:
    """A manifest as it was written; Unusable where this version cannot read it."""
    try:
        found = _ManifestFormat.model_validate_json(content).format
        if found > FORMAT:
            raise InstallationError(
                f"it was written by a newer Headroom (format {found}; this version "
                f"reads format {FORMAT}): install the newer version first"
            )
        manifest = BackupManifest.model_validate_json(content)
    except ValidationError:
        raise InstallationError("its manifest is damaged or of another program") from None
    if DATABASE[manifest.database] not in manifest.files:
        raise InstallationError("it holds no database")
    if foreign := manifest.files.keys() - {*DATABASE.values(), SECRET}:
        raise InstallationError(f"it holds “{min(foreign)}”, which no backup does")
    return manifest


def program() -> str:
    """The version of this program."""
    return version("headroom")


def stamp(now: dt.datetime) -> str:
    """A moment as it is written into a manifest."""
    return now.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
