"""Rows as one zip: a JSON and a CSV file for each table, and a page about them."""

import csv
import datetime as dt
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

from app.belongings.store import Belongings
from app.web.clock import moment

# Columns that hold JSON as text; in the JSON files it is JSON again.
_NESTED = {"raw", "parsed", "items", "paper", "struck", "refused"}
_ABOUT = """Everything that Headroom keeps about you, of {day}.

Each table is here twice with the same rows: NAME.json as a list of objects,
NAME.csv for a spreadsheet (UTF-8 with a byte order mark, a line of column names
first). about.json counts the rows.

learner          your settings; one row for each course that you study
attempt          every answer to a question; score 0 to 1, certainty 1 to 3
regrade          answers that were graded again, after the key of their question
                 was mended; the newest of an attempt is the score that counts
review           every grade of a card: 1 again, 2 hard, 3 good, 4 easy. A row
                 with voids undoes the review of that id; one with an act
                 says what was set by hand
memory           what the reviews of each card amount to
suspension       cards put aside
added_card       missed questions and terms that you study as cards
own_card         cards of your own
own_picture      pictures on them, in base64
card_import      the last file of cards that you imported
study_day        what each day held, added up
prediction       what you were told about your score, day by day
question_flag    questions that you flagged
reading          sections of pages that you have read
calendar_feed    that a calendar program may read your plan
note             what you wrote beside sections, and your bookmarks
practice_run     sets of questions that you worked through
sitting          mock exams; paper is the list of questions drawn for it
sitting_answer   what you answered in them, by number
item_report      what you reported as wrong

Times are UTC; a study day begins at four in the morning in your time zone.
Questions, cards and topics are named as in the files of the course.
"""


def archive(tables: Sequence[Belongings], now: dt.datetime) -> bytes:
    """The zip file of these tables."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("README.txt", _ABOUT.format(day=now.date().isoformat()))
        packed.writestr("about.json", _json(_about(tables, now)))
        for table in tables:
            rows = [_readable(row) for row in table.rows]
            packed.writestr(f"{table.name}.csv", _csv(table.columns, rows))
            packed.writestr(f"{table.name}.json", _json([_nested(r) for r in rows]))
    return file.getvalue()


def _about(tables: Sequence[Belongings], now: dt.datetime) -> dict[str, Any]:
    counts = {table.name: len(table.rows) for table in tables}
    return {"app": "headroom", "format": 1, "at": _time(now), "rows": counts}


def _readable(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with times that people can read."""
    return {name: _value(name, value) for name, value in row.items()}


def _value(name: str, value: Any) -> Any:
    is_time = name == "at" or name.endswith("_at") or name == "first_seen"
    return _time(moment(value)) if is_time and value is not None else value


def _nested(row: Mapping[str, Any]) -> dict[str, Any]:
    return {n: _parsed(v) if n in _NESTED else v for n, v in row.items()}


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _time(at: dt.datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def _csv(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, columns)
    writer.writeheader()
    writer.writerows(rows)
    return "\ufeff" + file.getvalue()  # or Excel takes it for something else
