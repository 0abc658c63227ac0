"""Rules for options, of several kinds: counts, doubles, feedback."""

from collections.abc import Sequence

from app.content.source_file import SourceFile
from app.questions.options import ParsedOption


def check_any_right(options: Sequence[ParsedOption], line: int, sheet: SourceFile) -> None:
    """E20: at least one option is ticked."""
    if not any(o.ticked for o in options):
        first = options[0].line if options else line
        hint = "Mark the right one with [x]."
        sheet.report("E20", first, 1, "No answer is marked right.", hint)


def check_credits(options: Sequence[ParsedOption], kind: str, sheet: SourceFile) -> None:
    """E24: no option of this kind is worth a part of the mark by itself."""
    for option in options:
        if option.credit:
            column = sheet.find(option.box, option.line, option.line)[1]
            message = f"“{option.box}” cannot stand in a question of type “{kind}”."
            hint = "Write [x] or [ ]. Only single, short and numeric answers have parts."
            if kind == "multiple":
                hint = "Write [x] or [ ], and in the comment partial: net."
            sheet.report("E24", option.line, column, message, hint)


def check_count(
    count: int, least: int, line: int, sheet: SourceFile, *, exam: str, hint: str = ""
) -> None:
    """E22 and W22: there are enough options to choose from.

    Two will do for practice; `exam` is “maybe” where the question would be drawn into
    mock exams with `least` of them, “only” where it is written for them, or empty.
    """
    wanted = "Add an option that is wrong and likely."
    if count < 2:
        message = f"The question has {count} option{'s' * (count != 1)}."
        sheet.report("E22", line, 1, message, wanted)
    elif count < least and exam == "only":
        message = f"The question has {count} options; an exam question needs {least}."
        sheet.report("E22", line, 1, message, wanted)
    elif count < least and exam:
        message = f"The question has {count} options, so mock exams leave it out."
        sheet.report("W22", line, 1, message, f"{wanted} {hint}".rstrip())


def check_doubles(options: Sequence[ParsedOption], sheet: SourceFile) -> None:
    """E23: no two options say the same."""
    seen: dict[str, int] = {}
    for option in options:
        words = " ".join(option.words.lower().split()).rstrip(".")
        if words in seen:
            message = f"This option says the same as the one in line {seen[words]}."
            sheet.report("E23", option.line, 1, message, "Change or delete one of them.")
        seen.setdefault(words, option.line)


def check_feedback(options: Sequence[ParsedOption], sheet: SourceFile) -> None:
    """W25: a wrong option says why it is wrong."""
    for option in options:
        if not option.ticked and not option.feedback:
            what = "not wholly right" if option.credit else "wrong"
            message = f"“{option.words[:50]}” does not say why it is {what}."
            hint = "Write a quote below it: two spaces, > and a sentence."
            sheet.report("W25", option.line, 1, message, hint)
