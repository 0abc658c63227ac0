"""Reads the TOML files of a course: syllabus, sources, exams."""

import datetime as dt
import re
import tomllib
from collections.abc import Mapping
from typing import Any, NamedTuple

from app.markup.model import CitedSource, Domain, ExamBlueprint, Objective, SourceLocation, Syllabus
from app.markup.problems import (
    MOST_ENTRIES,
    MOST_MINUTES,
    ParseContext,
    ProblemText,
    TextPosition,
    locate_toml_value,
)
from app.markup.text import (
    canonicalize_language_tag_or_empty,
    is_isbn,
    is_slug,
    write_hint_for_unknown_word,
)

_SETTING_LINE = re.compile(r"^\s*(?P<key>[\w-]+)\s*=\s*(?P<value>[^#]*?)\s*(?:#.*)?$")
_QUOTE_CHARACTERS = "\"'\u201c\u201d\u201e\u2018\u2019"
_MOST_SHOWN = 60
_UNPADDED_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}$")
_TURNED_DATE = re.compile(r"\d{1,2}[-./]\d{1,2}[-./]\d{4}$")
_PERCENT_VALUE = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_BOOLEAN_BY_WORD = {"yes": "true", "on": "true", "no": "false", "off": "false"}
_BOOLEAN_BY_WORD |= {"true": "true", "false": "false"}
_PROBLEM_BY_PARSER_MESSAGE = {
    "Illegal character '\\n'": ProblemText(
        "A quotation mark is not closed in this line.", 'Write " at its end.'
    ),
    "Expected '=' after a key": ProblemText(
        "This line has no “=” behind its key.", 'Write key = "text".'
    ),
    "Expected ']' at the end of a table": ProblemText(
        "This [heading] is not closed, or holds a space.", "Write [one-word] on a line of its own."
    ),
    "Unclosed array": ProblemText(
        "A list is not closed, or a comma is missing in it.", 'Write ["one", "two"].'
    ),
}


def describe_toml_error(error_message: str, toml_line: str) -> ProblemText:
    """Return what to say of a TOML error in a line; empty if unknown."""
    for prefix, explanation in _PROBLEM_BY_PARSER_MESSAGE.items():
        if error_message.startswith(prefix):
            return explanation
    if match := _SETTING_LINE.match(toml_line):
        if error_message == "Invalid value":
            return _explain_unquoted_value(match["key"], match["value"])
        if error_message.startswith("Expected newline"):
            return _explain_trailing_text(match["key"], match["value"])
    return ProblemText("", "")


def _explain_unquoted_value(key: str, value: str) -> ProblemText:
    """Return what to say of a value that is neither a quoted text nor otherwise valid."""
    if value.startswith("["):
        message = "A text of this list does not stand in straight quotation marks."
        return ProblemText(message, f'Write {key} = ["one", "two"]')
    if value.casefold() in _BOOLEAN_BY_WORD:
        hint = f"Write {key} = {_BOOLEAN_BY_WORD[value.casefold()]}"
        return ProblemText(f"“{value}” is not known here.", hint)
    text = value.strip(_QUOTE_CHARACTERS)[:_MOST_SHOWN]
    message = f"“{text}” does not stand in straight quotation marks."
    return ProblemText(message, f'Write {key} = "{text}"')


def _explain_trailing_text(key: str, value: str) -> ProblemText:
    """Return what to say of something after a value on its line."""
    if number := _PERCENT_VALUE.match(value):
        return ProblemText("A number has a percent sign.", f"Write {key} = {number[1]}")
    if _TURNED_DATE.match(value):
        message = f"“{value}” is not a date as it is written here."
        return ProblemText(message, f"Write year, month and day: {key} = 2026-11-20")
    if _UNPADDED_DATE.match(value):
        message = f"“{value}” is not a day of the calendar."
        return ProblemText(message, f"Write {key} = 2026-11-20")
    message = f"Something stands behind the value of “{key}”."
    return ProblemText(message, 'Write one key = value to a line, and a text in "…".')


_SOURCE_KEYS = ("title", "publisher", "address", "isbn", "read", "year", "note")
_SYLLABUS_KEYS = (
    "exam",
    "title",
    "order",
    "notes",
    "license",
    "calculators",
    "language",
    "domains",
)
_ENGLISH_LANGUAGE = "en"
_SHORT_WORDS, _SHORT_LETTERS = 4, 28
_DOMAIN_KEYS = ("number", "title", "weight", "objectives")
_OBJECTIVE_KEYS = ("number", "short", "title")
_EXAM_KEYS = ("title", "questions", "minutes", "notes", "domains")


def parse_toml_or_report(parse_context: ParseContext) -> dict[str, Any]:
    """Parse a TOML file. Reports E10 if it is invalid, and returns no tables."""
    try:
        is_too_deep = _DEEPLY_DOTTED_KEY.search(parse_context.text) is not None
        tables = {} if is_too_deep else tomllib.loads(parse_context.text)
    except RecursionError:
        is_too_deep, tables = True, {}
    except (tomllib.TOMLDecodeError, ValueError) as error:
        message = str(error)
        position = re.search(r"at line (\d+), column (\d+)", message)
        line, column = map(int, position.groups()) if position else (len(parse_context.lines), 1)
        reason = _DECLARED_TWICE_MESSAGE.sub(
            r"“\1” is written twice", message.partition(" (at ")[0]
        )
        is_duplicate = re.search(r"overwrite|twice", reason, re.IGNORECASE)
        hint = 'Write key = "text", one to a line, below a [heading].'
        if is_duplicate:
            hint = "Keep one; of what may stand several times, write [[two brackets]]."
        code = "E11" if is_duplicate else "E10"
        explanation, remedy = describe_toml_error(reason, parse_context.lines[line - 1])
        message = explanation or f"The file cannot be read: {reason}."
        parse_context.report(code, line, column, message, remedy or hint)
        return {}
    if is_too_deep:
        message = "The keys, lists or tables of this file are nested too deeply."
        parse_context.report("E88", 1, 1, message, "Write plain values, or lists of them.")
    return tables


# Parsing a key takes time quadratic in its number of parts.
_DEEPLY_DOTTED_KEY = re.compile(r"""(?<![\w"'-])(?:[\w"'-]++[ \t]*+\.[ \t]*+){50}""")
_DECLARED_TWICE_MESSAGE = re.compile(r"Cannot declare \('(.*)',\) twice")
_MAX_WHOLE_NUMBER = 10**15
_OBJECTIVE_OR_SECTION_LINE = re.compile(r"^\s*(?:number\s*=\s*\"([^\"]+)\"|\[([\w-]+)\])\s*$")


class RegisterEntry(NamedTuple):
    """A domain or an objective by its number, or a source by its key."""

    name: str
    line: int


def map_register_entries_to_lines(parse_context: ParseContext) -> dict[str, int]:
    """Return the line of each number and key in a register."""
    return {entry.name: entry.line for entry in _find_register_entries(parse_context)}


def _find_register_entries(parse_context: ParseContext) -> list[RegisterEntry]:
    matches = enumerate(map(_OBJECTIVE_OR_SECTION_LINE.match, parse_context.lines), 1)
    return [RegisterEntry(match[1] or match[2], line) for line, match in matches if match]


def _report_unknown_keys(
    table: Mapping[str, Any], known_keys: tuple[str, ...], parse_context: ParseContext
) -> None:
    for name in table:
        if name not in known_keys:
            hint = write_hint_for_unknown_word(name, known_keys)
            parse_context.report_at_text(
                "E12", name, 1, len(parse_context.lines), f"“{name}” is not a key here.", hint
            )


def _read_texts(table: Mapping[str, Any], key: str, parse_context: ParseContext) -> tuple[str, ...]:
    """Return a list of texts. Other values are reported and left out."""
    values = table.get(key, [])
    if not isinstance(values, list):
        _report_bad_value(key, "a list of texts in quotes", parse_context)
        return ()
    texts = [text for value in values if (text := _text_number_or_date_as_text(value)) is not None]
    if len(texts) < len(values):
        _report_bad_value(key, "a list of texts in quotes", parse_context)
    return tuple(_drop_rows_beyond_limit(texts, key, parse_context))


def _read_text(
    table: Mapping[str, Any], key: str, parse_context: ParseContext, default: str = ""
) -> str:
    """Return the text of a key. Other values are reported."""
    text = _text_number_or_date_as_text(table.get(key, default))
    if text is None:
        _report_bad_value(key, "a text in quotes", parse_context)
        return default
    return text


def _text_number_or_date_as_text(value: Any) -> str | None:
    """Return a text, or a short number or date as text; None for everything else."""
    if isinstance(value, int | float) and not abs(value) < _MAX_WHOLE_NUMBER:
        return None
    return str(value) if isinstance(value, str | int | float | dt.date) else None


def _read_table_array(table: Mapping[str, Any], key: str, parse_context: ParseContext) -> list[Any]:
    value = table.get(key, [])
    rows = [r for r in value if isinstance(r, dict)] if isinstance(value, list) else []
    if not isinstance(value, list) or len(rows) < len(value):
        _report_bad_value(key, f"written as [[{key}]]", parse_context)
    return _drop_rows_beyond_limit(rows, key, parse_context)


def _drop_rows_beyond_limit(rows: list[Any], key: str, parse_context: ParseContext) -> list[Any]:
    if len(rows) > MOST_ENTRIES:
        location = locate_toml_value(key, parse_context)
        message = f"“{key}” has {len(rows):,} entries."
        parse_context.report("E88", *location, message, f"Write at most {MOST_ENTRIES:,}.")
    return rows[:MOST_ENTRIES]


_EXAMPLE_BY_TYPE_NAME = {
    "a list of texts in quotes": '["one", "two"]',
    "a text in quotes": '"words"',
    "true or false": "true",
}


def _report_bad_value(key: str, requirement: str, parse_context: ParseContext) -> None:
    location = locate_toml_value(key, parse_context)
    example = _EXAMPLE_BY_TYPE_NAME.get(requirement, "")
    if requirement.startswith("a whole number"):
        example = "60"
    hint = f"Write {key} = {example}" if example else ""
    parse_context.report("E13", *location, f"“{key}” has to be {requirement}.", hint)


def parse_sources(parse_context: ParseContext) -> tuple[CitedSource, ...]:
    """Return the sources. An entry without a title is reported and left out."""
    sources = []
    lines = map_register_entries_to_lines(parse_context)
    tables = parse_toml_or_report(parse_context)
    for key in _drop_rows_beyond_limit(list(tables), "sources", parse_context):
        table, location = tables[key], TextPosition(lines.get(key, 1), 1)
        if not isinstance(table, dict):
            message = f"“{key}” stands outside of an entry."
            hint = "Write it below the [key] of a source."
            if isinstance(table, list):
                message, hint = f"“{key}” has two brackets.", f"Write [{key}]."
            parse_context.report_at_text("E10", key, 1, len(parse_context.lines), message, hint)
            continue
        if not is_slug(key):
            hint = "Use lower-case letters, digits and hyphens."
            parse_context.report("E03", *location, f"“{key}” is not a key of a source.", hint)
            continue
        _report_unknown_keys(table, _SOURCE_KEYS, parse_context)
        if not table.get("title"):
            message = f"The source “{key}” has no title."
            parse_context.report("E10", *location, message, 'Write title = "…" below it.')
            continue
        sources.append(_read_source(key, table, location, parse_context))
    return tuple(sources)


def _read_source(
    key: str, table: Mapping[str, Any], position: TextPosition, parse_context: ParseContext
) -> CitedSource:
    address = _read_text(table, "address", parse_context)
    isbn = _read_text(table, "isbn", parse_context)
    if isbn and not is_isbn(isbn):
        value_location = locate_toml_value("isbn", parse_context, position.line)
        message = f"“{isbn}” is not an ISBN: its check digit does not fit."
        hint = "Copy it from the book, 10 or 13 digits."
        parse_context.report("E13", *value_location, message, hint)
    if not address.startswith("https://") and (address or not isbn):
        message = f"The source “{key}” has no https address."
        hint = 'Write address = "https://…", or isbn = "978…" for a book.'
        parse_context.report("W17", *position, message, hint)
    read_date = table.get("read")
    value_location = locate_toml_value("read", parse_context, position.line)
    if isinstance(read_date, dt.date):
        parse_context.add_reference("day", str(read_date)[:10], *value_location)
    elif read_date is not None:
        message = f"“{read_date}” is not a date."
        hint = "Write it without quotes: read = 2026-11-20."
        parse_context.report("E13", *value_location, message, hint)
    return CitedSource(
        key,
        _read_text(table, "title", parse_context, key),
        _read_text(table, "publisher", parse_context),
        address if address.startswith(("https://", "http://")) else "",
        read_date if isinstance(read_date, dt.date) else None,
        _read_text(table, "year", parse_context),
        _read_text(table, "note", parse_context),
        parse_context.path,
        isbn,
    )


def parse_syllabus(parse_context: ParseContext) -> Syllabus:
    """Return the exam's domains and objectives, and the order of the topics."""
    tables = parse_toml_or_report(parse_context)
    _report_unknown_keys(tables, _SYLLABUS_KEYS, parse_context)
    rows = _read_table_array(tables, "domains", parse_context)
    weight_sum = _infer_expected_weight_sum(rows)
    domains = tuple(_read_domain(r, weight_sum, parse_context) for r in rows)
    _report_duplicate_numbers(domains, parse_context)
    if not domains and not parse_context.problems:
        hint = "Name each domain of the exam below a line [[domains]]."
        parse_context.report("E10", 1, 1, "The syllabus has no domains.", hint)
    if tables and not any("weight" in p.message for p in parse_context.problems):
        _report_wrong_weight_sum(domains, weight_sum, parse_context)
    _report_missing_course_title(tables, domains, parse_context)
    order = _read_texts(tables, "order", parse_context)
    for name in order:
        location = parse_context.locate_text(f'"{name}"', 1, len(parse_context.lines))
        parse_context.add_reference("topic", name, *location)
    return Syllabus(
        _read_text(tables, "exam", parse_context),
        _read_text(tables, "title", parse_context),
        domains,
        order,
        _read_texts(tables, "notes", parse_context),
        _read_text(tables, "license", parse_context) if "license" in tables else "",
        _read_boolean_or_true(tables, "calculators", parse_context),
        _read_language(tables, parse_context),
    )


def _report_missing_course_title(
    tables: Mapping[str, Any], domains: tuple[Domain, ...], parse_context: ParseContext
) -> None:
    if domains and not tables.get("title") and not tables.get("exam"):
        hint = 'Write title = "…" and exam = "…" above the first domain.'
        parse_context.report("E10", 1, 1, "The course has no title.", hint)


def _read_boolean_or_true(table: Mapping[str, Any], key: str, parse_context: ParseContext) -> bool:
    value = table.get(key, True)
    if not isinstance(value, bool):
        _report_bad_value(key, "true or false", parse_context)
        return True
    return value


def _read_language(table: Mapping[str, Any], parse_context: ParseContext) -> str:
    """Return the course's language tag, English by default."""
    language = _read_text(table, "language", parse_context, _ENGLISH_LANGUAGE)
    tag = canonicalize_language_tag_or_empty(language)
    if not tag:
        location = locate_toml_value("language", parse_context)
        message = f"“{language}” is not the tag of a language."
        hint = "Write a tag of BCP 47, such as “de”, “pt-BR” or “zh-Hant”."
        parse_context.report("E13", *location, message, hint)
    return tag or _ENGLISH_LANGUAGE


def _infer_expected_weight_sum(rows: list[Any]) -> int:
    """Return the sum of all weights: 100, or 1 if they are written as fractions."""
    weights = [r.get("weight") for r in rows]
    return 100 if any(isinstance(w, int | float) and w > 1 for w in weights) else 1


def _report_wrong_weight_sum(
    domains: tuple[Domain, ...], expected_sum: int, parse_context: ParseContext
) -> None:
    """Report E70: weights that do not add up to 100%."""
    total = sum(d.weight for d in domains)
    if abs(total - 1) <= 0.005 or not domains:  # without any, something else is reported
        return
    message = f"The weights of the domains add up to {total:.0%}, not to 100%."
    parts = " + ".join(f"{expected_sum * d.weight:.3g}" for d in domains)
    hint = f"They are {parts}. Correct one of them."
    parse_context.report("E70", *locate_toml_value("weight", parse_context), message, hint)


_CUT_NUMBER = re.compile(r"\s*number\s*=\s*\d+\.\d*0\s*(?:#|$)")


def _report_duplicate_numbers(domains: tuple[Domain, ...], parse_context: ParseContext) -> None:
    """Report E11: a number of two domains or objectives, or one that TOML shortens."""
    cut_lines = [n for n, row in enumerate(parse_context.lines, 1) if _CUT_NUMBER.match(row)]
    for line in cut_lines:
        hint = 'Write number = "1.10".'
        parse_context.report("E11", line, 1, "Without quotes 1.10 is the number 1.1.", hint)
    numbers = [n for d in domains for n in (d.number, *(o.number for o in d.objectives))]
    for number in dict.fromkeys(n for n in numbers if n and numbers.count(n) > 1):
        lines = [e.line for e in _find_register_entries(parse_context) if e.name == number]
        message = f"“{number}” is the number of two domains or objectives."
        hint = "Give the second one a number of its own."
        if not cut_lines:
            parse_context.report("E11", lines[1] if lines[1:] else 1, 1, message, hint)


def _read_domain(
    table: Mapping[str, Any], expected_sum: int, parse_context: ParseContext
) -> Domain:
    number = _read_text(table, "number", parse_context)
    _report_unknown_keys(table, _DOMAIN_KEYS, parse_context)
    _report_missing_number_or_title("domain", table, parse_context)
    if number and "weight" not in table:
        number_location = parse_context.locate_text(f'"{number}"', 1, len(parse_context.lines))
        message = f"The domain “{number}” has no weight."
        parse_context.report("E10", *number_location, message, "Write weight = 40 below it.")
    for row in _read_table_array(table, "objectives", parse_context):
        _report_unknown_keys(row, _OBJECTIVE_KEYS, parse_context)
        _report_missing_number_or_title("objective", row, parse_context)
    objectives = tuple(
        Objective(
            _read_text(r, "number", parse_context),
            title := _read_text(r, "title", parse_context),
            number,
            _read_objective_short_name(r, parse_context) or title,
        )
        for r in _read_table_array(table, "objectives", parse_context)
    )
    if not objectives:
        number_location = parse_context.locate_text(f'"{number}"', 1, len(parse_context.lines))
        hint = "Write its objectives below it, each after [[domains.objectives]]."
        parse_context.report("E10", *number_location, f"Domain {number} has no objectives.", hint)
    weight = table.get("weight", 0)
    if not isinstance(weight, int | float) or not 0 <= weight <= 100:  # also rejects nan
        domain_line = map_register_entries_to_lines(parse_context).get(number, 1)
        weight_location = locate_toml_value("weight", parse_context, domain_line)
        message = "“weight” has to be a number from 0 to 100."
        parse_context.report(
            "E13", *weight_location, message, "Write it without quotes: weight = 40"
        )
        weight = 0
    title = _read_text(table, "title", parse_context)
    return Domain(number, title, weight / expected_sum, objectives)


def _report_missing_number_or_title(
    label: str, table: Mapping[str, Any], parse_context: ParseContext
) -> None:
    """Report E10: a domain or an objective without a number or a title."""
    for key, other_key in (("number", "title"), ("title", "number")):
        if not table.get(key):
            known_value, location = str(table.get(other_key, "")), TextPosition(1, 1)
            if known_value:
                location = parse_context.locate_text(
                    f'"{known_value}"', 1, len(parse_context.lines)
                )
            message = f"The {label} “{known_value[:60]}” has no {key}."
            parse_context.report("E10", *location, message, f'Write {key} = "…" below it.')


def _read_objective_short_name(table: Mapping[str, Any], parse_context: ParseContext) -> str:
    """Return the short name of an objective. One as long as a sentence is reported."""
    short_name = _read_text(table, "short", parse_context)
    if len(short_name.split()) > _SHORT_WORDS or len(short_name) > _SHORT_LETTERS:
        requirement = f"at most {_SHORT_WORDS} words of {_SHORT_LETTERS} letters together"
        _report_bad_value("short", requirement, parse_context)
    return short_name


def parse_exam_blueprint(parse_context: ParseContext, slug: str) -> ExamBlueprint | None:
    """Return a mock exam; None if it is incomplete."""
    tables = parse_toml_or_report(parse_context)
    _report_unknown_keys(tables, _EXAM_KEYS, parse_context)
    counts = _read_question_counts_by_domain(tables, parse_context)
    questions = _read_positive_number_or_zero(tables, "questions", MOST_ENTRIES, parse_context)
    minutes = _read_positive_number_or_zero(tables, "minutes", MOST_MINUTES, parse_context)
    if not questions or not minutes or not counts:
        if tables:
            hint = "Write questions = 50, minutes = 60 and [domains] with a count each."
            parse_context.report(
                "E10", 1, 1, "The mock exam is incomplete.", hint, is_consequence=True
            )
        return None
    if sum(counts.values()) != questions and not parse_context.problems:
        questions_location = locate_toml_value("questions", parse_context)
        total = sum(counts.values())
        message = f"The domains hold {total} questions, the exam says {questions}."
        parse_context.report("E70", *questions_location, message, "Make them equal.")
    title = _read_text(tables, "title", parse_context, slug)
    if "title" not in tables:
        message = f"The mock exam has no title, and is called “{slug}”."
        parse_context.report("W38", 1, 1, message, 'Write title = "…" above its questions.')
    notes = _read_texts(tables, "notes", parse_context)
    source_location = SourceLocation(parse_context.path, 1)
    return ExamBlueprint(slug, title, questions, minutes, counts, source_location, notes)


def _read_question_counts_by_domain(
    tables: Mapping[str, Any], parse_context: ParseContext
) -> dict[str, int]:
    """Return the number of questions per domain, without domains that have none."""
    domains = tables.get("domains")
    if not isinstance(domains, dict):
        return {}
    for name, count in domains.items():
        if isinstance(count, dict):  # “1.1 = 5” is a table in TOML
            objective, number = next(iter(count.items()), ("1", 1))
            message = f"Exams count by domain, and “{name}.{objective}” is an objective."
            location = locate_toml_value(name, parse_context)
            parse_context.report("E13", *location, message, f"Write {name} = {number}")
    names = [n for n, count in domains.items() if count != 0 and not isinstance(count, dict)]
    counts = {
        n: _read_positive_number_or_zero(domains, n, MOST_ENTRIES, parse_context)
        for n in _drop_rows_beyond_limit(names, "domains", parse_context)
    }
    return {name: count for name, count in counts.items() if count}


def _read_positive_number_or_zero(
    table: Mapping[str, Any], key: str, limit: int, parse_context: ParseContext
) -> int:
    """Return a positive whole number. Anything else is reported and returns 0."""
    value = table.get(key, 0)
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= limit:
        return value
    if key in table:
        _report_bad_value(key, f"a whole number from 1 to {limit:,}", parse_context)
    return 0
