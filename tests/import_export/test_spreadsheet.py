"""Plain tables of choices, as text and as spreadsheets."""

import io
import shutil
import zipfile
from html import escape
from pathlib import Path

import pytest

from app.cli.import_export import import_file
from app.import_export import UnusableFileError
from app.import_export.formats.spreadsheet_reader import read_spreadsheet
from app.import_export.items import ImportResult, Item
from tests.conftest import TINY

TABLE = [
    ["Question", "A", "B", "C", "D", "Answer", "Feedback", "Feedback B", "Topic"],
    ["What forwards packets?", "A switch", "A pump", "A rack", "", "A", "So.", "No."],
    [
        "Which two hold data?",
        "A disk",
        "A fan",
        "A tape",
        "A belt",
        "a and c",
        "",
        "",
        "x",
    ],
    ["A GPU has memory.", "True", "False", "", "", "True", ""],
    ["How many bits has a byte?", "", "", "", "", "8", ""],
    ["What cools by air?", "", "", "", "", "fan | a fan", ""],
    [],
    ["Which is it?", "This", "That", "", "", "E", ""],
    ["And this?", "This", "That", "", "", "", ""],
]


def workbook(rows: list[list[str | float]]) -> bytes:
    """A spreadsheet with nothing but cells."""

    def cell(value: str | float) -> str:
        if isinstance(value, str):
            return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'
        return f"<c><v>{value}</v></c>"

    lines = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    files = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        '<Default Extension="rels" ContentType="application/'
        'vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships">'
        f'<Relationship Id="r1" Type="{office}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>'
        '<sheet name="Bank" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">'
        f'<Relationship Id="r1" Type="{office}/worksheet" '
        'Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{lines}'
        "</sheetData></worksheet>",
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, f'<?xml version="1.0"?>{text}')
    return packed.getvalue()


def written(sign: str) -> bytes:
    return "\n".join(sign.join(row) for row in TABLE).encode()


@pytest.mark.parametrize(
    "data",
    [
        written(";"),
        written("\t"),
        written(",").replace(b"a and c", b"a & c"),
        workbook(TABLE),
    ],
    ids=["semicolons", "tabs", "commas", "workbook"],
)
def test_each_row_is_a_question(data: bytes) -> None:
    found = read_spreadsheet(data)

    kinds = [(item.kind, [o.right for o in item.options]) for item in found.items]
    assert kinds == [
        ("single", [True, False, False]),
        ("multiple", [True, False, True, False]),
        ("true-false", [True, False]),
        ("numeric", [True]),
        ("short", [True, True]),
    ]
    first = found.items[0]
    assert (first.explanation, first.options[1].feedback) == ("So.", "No.")
    assert found.items[3].options[0].span.center == 8
    assert [(r.line_number, r.sentence) for r in found.refused_items] == [
        (8, "its answer “E” names none of its choices"),
        (9, "it has no answer"),
    ]
    assert [(r.line_number, r.sentence) for r in found.losses] == [
        (3, "the column “Topic” is not read: copy it by hand if it is needed")
    ]


def test_numbers_of_a_workbook_are_read_as_they_are_shown() -> None:
    data = workbook([["question", "answer"], ["How many?", 8.0], ["How much?", 0.5]])

    centers = [i.options[0].span.center for i in read_spreadsheet(data).items]

    assert centers == [8, 0.5]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b"question,A,B\nx,y,z\n", "no “answer”"),
        (b"PK\x03\x04 broken", "cannot be read"),
        (b"\xd0\xcf\x11\xe0 broken", "cannot be read"),
    ],
)
def test_what_is_no_table_is_refused_with_a_sentence(data: bytes, said: str) -> None:
    with pytest.raises(UnusableFileError, match=said):
        read_spreadsheet(data)


def test_a_dry_run_reports_and_writes_nothing(tmp_path: Path) -> None:
    course_folder = Path(shutil.copytree(TINY, tmp_path / "course"))
    table = tmp_path / "bank.xlsx"
    table.write_bytes(workbook(TABLE))
    before = {p: p.read_bytes() for p in course_folder.rglob("*") if p.is_file()}

    said = import_file("spreadsheet", table, course_folder, "kv-cache", dry_run=True)

    assert said.startswith("5 items would be imported into topics/kv-cache/quiz.md.")
    assert {p: p.read_bytes() for p in course_folder.rglob("*") if p.is_file()} == before
    said = import_file("spreadsheet", table, course_folder, "kv-cache")
    assert said.startswith("5 items imported into topics/kv-cache/quiz.md.")


def test_a_table_that_takes_all_memory_is_refused() -> None:
    far = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'

    with pytest.raises(UnusableFileError, match="needs more memory or time than it may have"):
        read_spreadsheet(replaced(workbook(TABLE), "</sheetData>", far))


def test_a_table_with_cells_without_number_is_refused() -> None:
    far = '<row r="20000"><c r="ZZ20000"><v>1</v></c></row></sheetData>'

    with pytest.raises(UnusableFileError, match="has more than 2,000,000 cells"):
        read_spreadsheet(replaced(workbook(TABLE), "</sheetData>", far))


def replaced(book: bytes, old: str, new: str) -> bytes:
    """A workbook whose files hold other words."""
    packed = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(book)) as before,
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as after,
    ):
        for name in before.namelist():
            after.writestr(name, before.read(name).replace(old.encode(), new.encode()))
    return packed.getvalue()


def read(text: str) -> ImportResult:
    return read_spreadsheet(text.encode())


def said(item: Item) -> list[tuple[str, bool]]:
    return [(option.text, option.right) for option in item.options]


def test_a_grouping_comma_is_no_decimal_point() -> None:
    found = read('question,A,B,answer\nHow many bytes?,,,"1,024"\nAnd now?,,,"12,288"\n')

    assert [i.options[0].span.center for i in found.items] == [1024, 12288]


def test_a_table_cut_by_semicolons_may_have_decimal_commas() -> None:
    found = read("question;answer\nWie viel?;1,024\nUnd hier?;1,5\n")

    assert [i.options[0].span.center for i in found.items] == [1.5]
    assert "can be 1024 or 1.024" in found.refused_items[0].sentence


TEMPLATES = {
    "quizizz": "Question Text,Question Type,Option 1,Option 2,Option 3,Correct Answer\n"
    'One?,Multiple Choice,a,b,c,2\nTwo?,Checkbox,a,b,c,"1,3"\n',
    "kahoot": "My quiz,,,,,\n,Question - max 120 characters,"
    "Answer 1 - max 75 characters,Answer 2 - max 75 characters,"
    "Answer 3 - max 75 characters,Correct answer(s) - choose at least one\n"
    '1,One?,a,b,c,2\n2,Two?,a,b,c,"1,3"\n',
    "blooket": 'Import Template,,,,\nQuestion Text,Answer 1,Answer 2,"Answer 3\n'
    '(Optional)","Correct Answer(s)\n(Only include Answer #)"\n'
    'One?,a,b,c,2\nTwo?,a,b,c,"1,3"\n',
    "words": "Question,choice_1,choice_2,choice_3,Correct Answer\n"
    'One?,a,b,c,Choice 2\nTwo?,a,b,c,"a, c"\n',
    "letters": "Stem,OptionA,Opt. B,Choice-C,Key\nOne?,a,b,c,B\nTwo?,a,b,c,AC\n",
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_usual_templates_are_read(name: str) -> None:
    found = read(TEMPLATES[name])

    assert found.refused_items == ()
    assert [[right for _, right in said(item)] for item in found.items] == [
        [False, True, False],
        [True, False, True],
    ]


@pytest.mark.parametrize("name", ["ans", "Right", "Solution", "Correct ans", "Key"])
def test_the_column_of_the_answer_has_many_names(name: str) -> None:
    table = f"question,Answer 1,Answer 2,{name}\nWhat?,one,two,A\n"
    (item,) = read_spreadsheet(table.encode()).items

    assert [(o.text, o.right) for o in item.options] == [("one", True), ("two", False)]


def test_wrong_answers_stand_beside_the_right_one() -> None:
    heads = "Question,Correct Answer,Incorrect Answer 1,Incorrect Answer 2 (Optional)"
    (item,) = read(f"{heads}\nQ?,r,w,v\n").items

    assert said(item) == [("r", True), ("w", False), ("v", False)]


def test_a_column_that_is_not_read_changes_no_question(
    subtests: pytest.Subtests,
) -> None:
    for text, why in [
        ("question,Possibility 1,Possibility 2,answer\nQ?,x,y,2\n", "“Possibility 1”"),
        ("question,Options,,answer\nQ?,x,y,2\n", "“Options”"),
        ("question,x,,answer\nQ?,,y,2\n", "column C, which"),
        ("question,A,B,answer,2nd answer\nQ?,x,y,A,B\n", "“2nd answer”"),
        ("question,A,B,answer,correct answer\nQ?,x,y,A,B\n", "“correct answer”"),
        ("question,A,B,Option 3,answer\nQ?,x,y,z,A\n", "“Option 3”"),
        ("question,A,B,answer\nWhich, then?,x,y,A\n", "between quotation marks"),
        ("question,Image 1,Image 2,answer\nQ?,a.png,b.png,2\n", "“Image 1”"),
        ("question,type,answer\nQ?,Multiple Choice,2\n", "“Multiple Choice”"),
        ("question,type,A,B,answer\nQ?,Fill-in,x,y,A\n", "“Fill-in”"),
    ]:
        with subtests.test(text=text):
            found = read(text)

            assert found.items == ()
            assert why in found.refused_items[0].sentence


def test_a_column_of_numbers_is_no_choice() -> None:
    for head in ("N", "", "#", "Nr"):
        found = read(f"{head},question,A,B,answer\n1,Q?,x,y,A\n2,R?,x,y,B\n")

        assert [said(item) for item in found.items] == [
            [("x", True), ("y", False)],
            [("x", False), ("y", True)],
        ]


def test_each_cell_that_is_not_read_is_told_of_its_item() -> None:
    found = read("question,A,B,answer,seconds,topic\nQ?,x,y,A,30,\nR?,x,y,B,20,t\n")

    assert [(r.line_number, r.sentence.partition(":")[0]) for r in found.losses] == [
        (2, "the column “seconds” is not read"),
        (3, "the column “seconds” is not read"),
        (3, "the column “topic” is not read"),
    ]


def test_several_boxes_of_which_one_is_right_are_a_single_choice() -> None:
    found = read("question,type,A,B,C,answer\nQ?,Checkbox,x,y,z,B\n")

    assert found.items[0].kind == "single"
    assert "several boxes could be ticked there" in found.losses[0].sentence


def test_letters_are_letters_where_other_rows_say_so() -> None:
    table = "question,A,B,C,D,answer\nWhich vitamin?,C,A,D,B12,C\n"

    assert "is both the label of a choice" in read(table).refused_items[0].sentence
    found = read(f"{table}Which port?,80,443,22,,B\n")
    assert [o.text for o in found.items[0].options if o.right] == ["D"]


@pytest.mark.parametrize(
    "text",
    [
        "sep=;\r\nquestion;A;B;answer\r\nWhich?;x, y;z;B\r\n",
        "\ufeffquestion;A;B;answer\nWhich?;x, y;z;B\n",
        'Quiz of week 3;;;\n;;;\nquestion;A;B;answer\nWhich?;"x, y";z;B\n',
        "question|A|B|answer\nWhich?|x, y|z|B\n",
    ],
)
def test_what_excel_leaves_in_a_text_is_passed_over(text: str) -> None:
    (item,) = read(text).items

    assert said(item) == [("x, y", False), ("z", True)]


def test_windows_1252_is_read_and_told() -> None:
    found = read_spreadsheet("question;answer\nWas ist größer?;ein Würfel\n".encode("cp1252"))

    assert found.items[0].stem == "Was ist größer?"
    assert "was read as Windows-1252" in found.remarks_on_file[0]


@pytest.mark.parametrize("encoding", ["cp1250", "cp1251", "mac_roman", "cp932"])
def test_the_letters_of_another_encoding_are_not_guessed(encoding: str) -> None:
    words = {
        "cp1250": "mają",
        "cp1251": "ответ",
        "cp932": "はい",
        "mac_roman": "größer",
    }

    with pytest.raises(UnusableFileError, match="not UTF-8 text; save it with that encoding"):
        read_spreadsheet(f"question;answer\nQ?;{words[encoding]}\n".encode(encoding))


def test_an_error_of_a_spreadsheet_is_no_choice() -> None:
    found = read("question,A,B,answer\nQ?,#N/A,y,B\nR?,x,y,########\nS?,,,1.23457E+16\n")

    assert [r.sentence.partition(":")[0] for r in found.refused_items] == [
        "its cell under “A” shows the error #N/A",
        "its cell under “answer” shows the error ########",
        "its cell under “answer” is “1.23457E+16”, which a spreadsheet shortened",
    ]


def test_names_of_columns_that_stand_again_are_no_question() -> None:
    found = read("question,answer\nQ?,5\nquestion,answer\nR?,6\n")

    assert [item.stem for item in found.items] == ["Q?", "R?"]
    assert found.refused_items == ()


def test_a_quotation_mark_that_is_not_closed_takes_no_rows_along() -> None:
    with pytest.raises(UnusableFileError, match="line 3 cannot be split into cells"):
        read('question,A,B,answer\n"Q?,x,y,A\n"R?,x,y,B\n')


@pytest.mark.parametrize("answer", ["B", "b)", "2", "(3)", "Option 2"])
def test_a_label_beside_wrong_answers_in_words_is_no_answer(answer: str) -> None:
    text = f"question,answer,wrong answer 1,wrong answer 2\nWhat?,{answer},fan,pump\n"
    reading = read_spreadsheet(text.encode())

    assert not reading.items
    assert "may be a label of the wrong ones" in reading.refused_items[0].sentence


@pytest.mark.parametrize(("answer", "wrong"), [("2", "3"), ("B", "C"), ("fan", "2")])
def test_an_answer_that_is_like_the_wrong_ones_is_one(answer: str, wrong: str) -> None:
    text = f"question,answer,wrong answer 1,wrong answer 2\nWhat?,{answer},{wrong},x y\n"

    assert read_spreadsheet(text.encode()).items[0].options[0].text == answer


@pytest.mark.parametrize(
    "answer",
    ["5 to 7", "5-7", "about 5", "1½", "5 or 6", "(5)", "3M", "1e400", "1 1/2", "0x10"],
)
def test_a_number_that_becomes_words_is_told(answer: str) -> None:
    reading = read_spreadsheet(f"question,answer\nHow many?,{answer}\n".encode())

    assert reading.items[0].kind == "short"
    assert f"its answer “{answer}” is words" in reading.losses[0].sentence
