"""A backup as one zip file: written whole or not at all, checked to the last bit."""

import contextlib
import hashlib
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO

from app.upkeep.files import open_private, sync
from app.upkeep.installation import InstallationError
from app.upkeep.manifest import MANIFEST, BackupManifest, BackupMember, read_manifest

_PART = 1 << 20
_LONGEST = 1 << 20  # bytes of a manifest
# What the zip reader raises for bytes that are none or were changed.
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    KeyError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)
Breath = Callable[[], object]


class BackupArchive:
    """An open backup."""

    def __init__(self, zipped: zipfile.ZipFile, path: Path) -> None:
        self._zipped = zipped
        self._path = path
        self.manifest: BackupManifest = self._read_manifest()

    def check(self) -> None:
        """Compare every member with its checksum."""
        for name in self.manifest.files:
            self._copy(name, None)

    def take_out(self, name: str, place: Path) -> None:
        """Write a member to a new private file; Unusable where it is damaged."""
        with os.fdopen(open_private(place), "wb") as stream:
            self._copy(name, stream)
        sync(place)

    def _copy(self, name: str, target: IO[bytes] | None) -> None:
        told = self.manifest.files[name]
        digest, size = hashlib.sha256(), 0
        with _readable(self._path), self._zipped.open(name) as source:
            # One byte more than was told is enough to know that it is another file.
            while size <= told.size and (part := source.read(_PART)):
                size += len(part)
                digest.update(part)
                if target is not None:
                    target.write(part)
        if (size, digest.hexdigest()) != (told.size, told.sha256):
            raise _damaged(self._path, f"{name} is not what the manifest says")

    def _read_manifest(self) -> BackupManifest:
        with _readable(self._path), self._zipped.open(MANIFEST) as source:
            content = source.read(_LONGEST)
        try:
            return read_manifest(content)
        except InstallationError as error:
            raise InstallationError(f"{self._path} cannot be used: {error}.") from None


@contextlib.contextmanager
def open_backup(path: Path) -> Iterator[BackupArchive]:
    """A backup to read; Unusable, in one sentence, where it is none."""
    with contextlib.ExitStack() as stack:
        with _readable(path):
            zipped = stack.enter_context(zipfile.ZipFile(path))
        yield BackupArchive(zipped, path)


def write(target: Path, members: Mapping[str, Path], breath: Breath) -> None:
    """Put files into an archive at `target`; `breath` is called again and again."""
    with (
        os.fdopen(open_private(target), "wb") as stream,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as zipped,
    ):
        for name, path in members.items():
            with (
                path.open("rb") as source,
                zipped.open(name, "w", force_zip64=True) as into,
            ):
                while part := source.read(_PART):
                    into.write(part)
                    breath()
    sync(target)


def member(path: Path, breath: Breath) -> BackupMember:
    """What a manifest says about a file."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as source:
        while part := source.read(_PART):
            size += len(part)
            digest.update(part)
            breath()
    return BackupMember(size=size, sha256=digest.hexdigest())


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        words = error.strerror or "it ends too early"
        raise InstallationError(f"{path} cannot be read ({words}).") from None
    except _BROKEN as error:
        raise _damaged(path, str(error).rstrip(".") or "it ends too early") from None


def _damaged(path: Path, words: str) -> InstallationError:
    return InstallationError(
        f"{path} is not a sound backup of Headroom ({words}); nothing was changed: "
        "use another copy."
    )
