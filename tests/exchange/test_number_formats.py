"""Numbers of a spreadsheet as their cells show them."""

import pytest

from app.import_export.formats.spreadsheet_numbers import format_number

MONEY = '_("$"* #,##0.00_);_("$"* \\(#,##0.00\\);_("$"* "-"??_);_(@_)'


def test_a_number_is_shown_by_its_format(subtests: pytest.Subtests) -> None:
    for value, code, shown in [
        (0.5, "0%", "50%"),
        (0.505, "0.0 %", "50.5 %"),
        (5, '"$"#,##0.00', "$5.00"),
        (-5, '"$"#,##0.00_);[Red]\\("$"#,##0.00\\)', "($5.00)"),
        (5, MONEY, "$5.00"),
        (0, MONEY, "$-"),
        (5, "#,##0.00 [$€-407]", "5.00 €"),
        (1024, "#,##0", "1,024"),
        (1_500_000, '0.0,,"M"', "1.5M"),
        (1.005, "0.00", "1.01"),
        (2.5, "0", "3"),
        (-1.5, "0.0", "-1.5"),
        (7, "000", "007"),
        (12_345, "0.00E+00", "1.23E+04"),
        (0.1 + 0.2, "General", "0.3"),
        (3.0, "", "3"),
        (5, "@", "5"),
        (13 / 12, "[hh]:mm:ss", "26:00:00"),
        (0.3958333333333333, "hh:mm", "09:30"),
        (0.3958333333333333, "h:mm:ss", "9:30:00"),
        (0.75, "h:mm AM/PM", "6:00 PM"),
        (0.0423611, "mm:ss", "01:00"),
        (45_445, "yyyy-mm-dd", "2024-06-02"),
        (45_445, "[$-409]mmmm d, yyyy;@", "June 2, 2024"),
        (45_445.5, "m/d/yyyy h:mm", "6/2/2024 12:00"),
        (3, '"Yes";"Yes";"No"', "Yes"),
    ]:
        with subtests.test(value=value, code=code):
            assert format_number(value, code) == shown


def test_a_format_that_is_not_known_for_sure_shows_nothing(
    subtests: pytest.Subtests,
) -> None:
    for value, code in [
        (0.5, "# ?/?"),
        (5_551_234, "000-0000"),
        (3, "[>2]0;0.0"),
        (0, "0;-0;;@"),  # it hides what it holds
        (45_445, "[$-407]d. mmmm yyyy"),
        (-1, "h:mm"),
        (1e300, "0.00"),
    ]:
        with subtests.test(value=value, code=code):
            assert format_number(value, code) is None


def test_days_are_counted_from_1904_where_a_workbook_says_so() -> None:
    assert format_number(0, "yyyy-mm-dd", since_1904=True) == "1904-01-01"
