"""What is made of the code and of the course, kept for other processes and runs."""

import contextlib
import functools
import hashlib
import os
import shutil
import sys
import time
from pathlib import Path

from jinja2 import Environment, FileSystemBytecodeCache

ROOT = Path(__file__).resolve().parents[1]
_FOLDER = ROOT / ".pytest_cache" / "kept"
_DAY = 24 * 60 * 60


@functools.cache
def kept(what: str) -> Path:
    """A folder for `what` that begins empty where any module of the app changed."""
    digest = hashlib.sha256(sys.version.encode())
    for file in sorted((ROOT / "app").rglob("*.py")):
        digest.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    name = digest.hexdigest()[:20]
    folder = _FOLDER / name / what
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder.parent)
    for other in _FOLDER.iterdir():
        with contextlib.suppress(FileNotFoundError):  # another process was quicker
            if other.stat().st_mtime < time.time() - _DAY:
                shutil.rmtree(other, ignore_errors=True)
    return folder


def keep_compiled(templates: Environment) -> None:
    """Have each template compiled once: that of all takes longer than the whole app."""
    templates.bytecode_cache = FileSystemBytecodeCache(str(kept("templates")))
