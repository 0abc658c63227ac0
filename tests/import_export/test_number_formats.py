"""Numbers of a spreadsheet as their cells show them."""

import pytest

from app.import_export.workbook_reader import format_number_like_cell

MONEY = '_("$"* #,##0.00_);_("$"* \\(#,##0.00\\);_("$"* "-"??_);_(@_)'


def test_a_number_is_shown_by_its_format(subtests: pytest.Subtests) -> None:
    for value, code, shown in [
        (0.5, "0%", "50%"),
        (0.505, "0.0 %", "50.5 %"),
        (5, '"$"#,##0.00', "$5.00"),
        (-5, '"$"#,##0.00_);[Red]\\("$"#,##0.00\\)', "($5.00)"),
        (5, MONEY, "$5.00"),
        (5, "#,##0.00 [$€-407]", "5.00 €"),
        (1024, "#,##0", "1,024"),
        (1.005, "0.00", "1.01"),
        (2.5, "0", "3"),
        (-1.5, "0.0", "-1.5"),
        (7, "000", "007"),
        (0.25, "#.##", ".25"),
        (0.1 + 0.2, "General", "0.3"),
        (3.0, "", "3"),
        (5, "@", "5"),
        (3, '"Yes";"Yes";"No"', "Yes"),
    ]:
        with subtests.test(value=value, code=code):
            assert format_number_like_cell(value, code) == shown


def test_a_format_that_is_not_known_for_sure_shows_nothing(
    subtests: pytest.Subtests,
) -> None:
    for value, code in [
        (0.5, "# ?/?"),
        (5_551_234, "000-0000"),
        (3, "[>2]0;0.0"),
        (0, "0;-0;;@"),  # it hides what it holds
        (45_445, "[$-407]d. mmmm yyyy"),
        (45_445, "yyyy-mm-dd"),
        (0.75, "h:mm AM/PM"),
        (13 / 12, "[h]:mm"),
        (1_500_000, '0.0,,"M"'),
        (12_345, "0.00E+00"),
        (1e300, "0.00"),
    ]:
        with subtests.test(value=value, code=code):
            assert format_number_like_cell(value, code) is None
