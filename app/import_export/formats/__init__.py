"""The formats that can be read and written."""

import time
from collections.abc import Callable, Mapping

from app.import_export.anki.package_writer import write_cards_as_apkg
from app.import_export.formats.csv_json import read_csv, read_json, write_csv, write_json
from app.import_export.formats.gift import read_gift, write_gift
from app.import_export.formats.moodle_xml import read_moodle, write_moodle
from app.import_export.formats.qti_reader import read_qti
from app.import_export.formats.qti_writer import write_qti
from app.import_export.formats.spreadsheet_reader import read_spreadsheet
from app.import_export.formats.text_lists import read_aiken, write_aiken
from app.import_export.formats.xlsx_table import write_xlsx
from app.import_export.items import CourseInfo, ExportResult, ImportResult, Item
from app.import_export.xml_files import decode_unicode

Reader = Callable[[bytes], ImportResult]
Writer = Callable[[tuple[Item, ...], CourseInfo], ExportResult]

READERS: Mapping[str, Reader] = {
    "csv": lambda data: read_csv(decode_unicode(data)),
    "json": lambda data: read_json(decode_unicode(data)),
    "aiken": lambda data: read_aiken(decode_unicode(data)),
    "gift": lambda data: read_gift(decode_unicode(data)),
    "moodle": read_moodle,
    "qti": read_qti,
    "spreadsheet": read_spreadsheet,
}
WRITERS: Mapping[str, Writer] = {
    "apkg": lambda items, about: write_cards_as_apkg(items, about.title, int(time.time())),
    "csv": lambda items, _about: write_csv(items),
    "json": lambda items, about: write_json(items, about.language),
    "aiken": lambda items, _about: write_aiken(items),
    "gift": lambda items, _about: write_gift(items),
    "moodle": lambda items, about: write_moodle(items, about.title),
    "qti": lambda items, about: write_qti(items, "3.0", about.language),
    "qti21": lambda items, about: write_qti(items, "2.1", about.language),
    "xlsx": lambda items, _about: write_xlsx(items),
}
EXPECTED_FILE_BY_FORMAT: Mapping[str, str] = {
    "csv": "a table with the columns that “headroom export csv” writes",
    "json": "a file as “headroom export json” writes it",
    "aiken": "a text file in Aiken, in UTF-8",
    "gift": "a text file in GIFT, in UTF-8",
    "moodle": "an XML file with the questions of Moodle",
    "qti": "a quiz of QTI 1.2 or an item of 2.1 to 3.0, as XML or as a zip package",
    "spreadsheet": "a table with the columns question, A, B, C, D, answer and feedback "
    "as CSV, XLSX or ODS",
}
"""What a reader accepts, for error messages."""
CARD_ONLY_FORMATS = frozenset({"apkg"})  # formats for cards instead of questions
FORMATS_WITH_ALL_FIELDS = frozenset({"csv", "json"})  # formats for both
ATTEMPT_FORMATS = frozenset({"attempts-csv", "attempts-json"})
