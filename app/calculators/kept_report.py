"""The accuracy report on disk: one for each version of the code.

To answer its cases is to ask some thousand questions, seconds of a processor.
"""

import contextlib
import dataclasses
import functools
import json
import threading
from pathlib import Path
from typing import Any

from app.content.live.cache import code_version, make_below, replace_file
from app.estimator.accuracy.report import Report, Result, gathered, own_report

_FIELDS = tuple(field.name for field in dataclasses.fields(Result))
# Whoever asks while the cases are being answered waits for them.
_ONE = threading.Lock()


def kept_report(folder: Path) -> Report:
    """What the code of today answers to the project's own cases.

    `folder`, in a data folder, keeps it for the next start. Its name is a hash of the
    code and of the cases, so that an older report is never read.
    """
    with _ONE:
        return _read(folder, code_version()[:40])


@functools.cache
def _read(folder: Path, version: str) -> Report:
    file = folder / f"accuracy-{version}.json"
    try:
        rows = json.loads(file.read_bytes())
        if rows:
            return gathered(map(_result, rows), refitted=True)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        pass  # there is none, or a damaged one
    found = own_report()
    _keep(file, found)
    return found


def _result(row: list[Any]) -> Result:
    values = dict(zip(_FIELDS, row, strict=True))
    model, chip, source = values.pop("groups")
    return Result(**values, groups=(model, chip, source))


def _keep(file: Path, found: Report) -> None:
    """Write a report; a folder that cannot be written is no misfortune."""
    rows = [[getattr(result, name) for name in _FIELDS] for result in found.results]
    with contextlib.suppress(OSError):
        make_below(file.parent.parent, file.parent)
        replace_file(file, json.dumps(rows, ensure_ascii=False).encode())
        for other in file.parent.glob("accuracy-*"):
            if other != file:
                other.unlink(missing_ok=True)
