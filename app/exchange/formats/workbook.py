"""Spreadsheets of strangers, read by a process of its own that may take only so much.

The library makes a table as large as its farthest cell says, and ends its process when
there is no memory for it: a thousand bytes can say a billion cells.
"""

import json
import resource
import subprocess
import sys
from io import BytesIO
from pathlib import Path

from python_calamine import CalamineError, CalamineWorkbook

from app.exchange.items import Unusable

_ROOT = Path(__file__).resolve().parents[3]
_MEMORY = 1 << 30
_SECONDS = 60
_MOST_CELLS = 2_000_000


def rows_of(data: bytes, refusal: str) -> list[list[str]]:
    """The rows of the first sheet that has any; raises Unusable with `refusal`."""
    try:
        done = subprocess.run(  # noqa: S603 - of ourselves; the file is its input
            [sys.executable, "-m", __name__],
            cwd=_ROOT,
            input=data,
            capture_output=True,
            check=False,
            timeout=_SECONDS,
        )
        told = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        why = "its table needs more memory or time than it may have"
        raise Unusable(f"{refusal}: {why}.") from None
    if "fault" in told:
        raise Unusable(f"{refusal}: {told['fault']}.")
    rows: list[list[str]] = told["rows"]
    return rows


def _tell() -> None:
    """Read a workbook from standard input; write its rows, or why there are none."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    data = sys.stdin.buffer.read()
    try:
        json.dump({"rows": _rows(data)}, sys.stdout)
    except (CalamineError, Unusable) as error:
        json.dump({"fault": str(error)[:80]}, sys.stdout)


def _rows(data: bytes) -> list[list[str]]:
    book = CalamineWorkbook.from_filelike(BytesIO(data))
    sheets = (book.get_sheet_by_name(name) for name in book.sheet_names)
    sheet = next((s for s in sheets if s.total_height), None)
    if sheet is None:
        return []
    if sheet.total_height * sheet.total_width > _MOST_CELLS:
        raise Unusable(f"its table has more than {_MOST_CELLS:,} cells")
    found = sheet.to_python(skip_empty_area=False)
    return [[_words(cell) for cell in row] for row in found]


def _words(cell: object) -> str:
    """A cell as it is shown: whole numbers without a point."""
    if isinstance(cell, bool):
        return str(cell)
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell).strip()


if __name__ == "__main__":
    _tell()
