"""What learners answered to a question, grouped by how the current key grades it.

“Accept this one” writes a typed answer into the key of the question's file.
"""

import dataclasses
import enum
import functools
import json
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from app.authoring.store import LoggedAnswer
from app.errors import ConflictError, InvalidInputError
from app.markup.expressions import ExpressionError
from app.questions import types
from app.questions.grading import grade_response
from app.questions.model import Question, count_combinations, draw_variant
from app.questions.question_type import (
    CONFIDENCE_LEVELS,
    GradeResult,
    PartResult,
    Result,
    StatisticsOption,
    SubmittedFields,
    UnreadableResponse,
    is_same_phrase,
    normalize_search_text,
)
from app.questions.types.cloze import ClozeSpec
from app.questions.types.numeric import format_tolerance_of_first_right_option

_MOST_RESPONSES = 50  # distinct responses shown for each group


class ResponseOutcome(enum.StrEnum):
    ACCEPTED = "accepted"
    PARTLY = "partly"
    FORESEEN = "foreseen"
    OTHER = "other"


@dataclasses.dataclass(frozen=True, slots=True)
class ResponseCount:
    """A distinct response as text, and how many learners gave it.

    `drawn_right_answer` is set where a computed question drew other numbers. `acceptable_text` is
    what “Accept this one” sends; empty if the response cannot be accepted.
    """

    text: str
    count: int
    drawn_right_answer: str = ""
    acceptable_text: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ResponseGroup:
    """Responses that are graded alike. `option_text` is the option they match, if any."""

    outcome: ResponseOutcome
    option_text: str
    score: float
    responses: tuple[ResponseCount, ...]
    learner_count: int
    distinct_response_count: int


@dataclasses.dataclass(frozen=True, slots=True)
class PartResponseCount:
    """What was entered in one part: the text, how often, and whether it is right there."""

    text: str
    count: int
    right: bool
    acceptable_text: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class PartResponseTable:
    """The responses to one row, step, gap or condition; `key` is its key in the answer."""

    key: str
    label: str
    right_answer: str
    right_count: int
    count: int
    responses: tuple[PartResponseCount, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class CertaintyRow:
    """Answers with a confidence level, and the mean of their scores (0..1)."""

    label: str
    count: int
    mean_score: float


@dataclasses.dataclass(frozen=True, slots=True)
class TimeRow:
    """How long answers took, in seconds: the median and the middle half."""

    label: str
    count: int
    median_seconds: float
    lower_quartile_seconds: float
    upper_quartile_seconds: float


@dataclasses.dataclass(frozen=True, slots=True)
class QuestionResponses:
    """The responses to a question.

    `unreadable_count` counts what the current key cannot read, such as answers from a time when the
    question was of another type.
    """

    answer_count: int
    dont_know_count: int
    unreadable_count: int
    response_groups: tuple[ResponseGroup, ...]
    part_tables: tuple[PartResponseTable, ...]
    certainty_rows: tuple[CertaintyRow, ...]
    time_rows: tuple[TimeRow, ...]

    @property
    def has_acceptable_response(self) -> bool:
        group_texts = (r.acceptable_text for group in self.response_groups for r in group.responses)
        part_texts = (r.acceptable_text for part in self.part_tables for r in part.responses)
        return any(group_texts) or any(part_texts)


class _GradedResponse(NamedTuple):
    result: GradeResult
    submitted_fields: SubmittedFields


class _EnteredText(NamedTuple):
    """A response as text, and the right answer if a computed question drew it."""

    text: str
    drawn_right_answer: str = ""


class _CountedText(NamedTuple):
    entered: _EnteredText
    response_count: int


def build_response_table(question: Question, answers: Sequence[LoggedAnswer]) -> QuestionResponses:
    """Return the table of these answers, graded by the current key of `question`."""
    combination_count = count_combinations(question.computed) if question.computed else 1
    grade_once = functools.cache(functools.partial(_grade_unless_dont_know, question))
    graded: list[_GradedResponse] = []
    dont_know = unreadable = 0
    for answer in answers:
        result = grade_once(answer.seed % combination_count, answer.response_json)
        if result is None:
            dont_know += 1
        elif isinstance(result, UnreadableResponse):
            unreadable += 1
        else:
            graded.append(_GradedResponse(result, json.loads(answer.response_json)))
    kind = types.question_type_of(question)
    in_parts = kind.supports_partial_credit and not kind.responses_are_option_keys
    return QuestionResponses(
        answer_count=len(answers),
        dont_know_count=dont_know,
        unreadable_count=unreadable,
        response_groups=() if in_parts else _group_by_option_and_score(question, graded),
        part_tables=_tabulate_responses_by_part(question, [response.result for response in graded])
        if in_parts
        else (),
        certainty_rows=_build_certainty_rows(answers),
        time_rows=_build_time_rows(answers),
    )


def _grade_unless_dont_know(
    question: Question, seed: int, response_json: str
) -> GradeResult | UnreadableResponse | None:
    """Return the result of a JSON response; None for “I don't know”."""
    response = json.loads(response_json)
    if not response:
        return None
    try:
        return grade_response(draw_variant(question, seed), response)
    except ExpressionError as error:
        return UnreadableResponse(str(error))


def _group_by_option_and_score(
    question: Question, graded: Iterable[_GradedResponse]
) -> tuple[ResponseGroup, ...]:
    """Group whole responses by the option they match, or by their score."""
    kind = types.question_type_of(question)
    options = {option.key: option for option in kind.options_for_statistics(question.answer)}
    is_typed = not kind.responses_are_option_keys
    texts_by_group: dict[tuple[ResponseOutcome, str, float], list[_EnteredText]] = defaultdict(list)
    for result, raw in graded:
        option = options.get(result.parsed_response.get("option", "")) if is_typed else None
        name = option.text if option else ""
        outcome = _classify_response(result.result, option)
        right_answer = result.right_answer if is_typed and question.computed else ""
        text = _EnteredText(_describe_response(result, raw, options), right_answer)
        texts_by_group[outcome, name, round(result.score, 4)].append(text)
    groups = []
    for (outcome, name, score), texts in texts_by_group.items():
        can_accept = is_typed and outcome is not ResponseOutcome.ACCEPTED and not question.computed
        counts = _count_equal_texts(texts)
        responses = tuple(
            ResponseCount(text, count, right_answer, text if can_accept else "")
            for (text, right_answer), count in counts[:_MOST_RESPONSES]
        )
        groups.append(ResponseGroup(outcome, name, score, responses, len(texts), len(counts)))
    order = list(ResponseOutcome)
    return tuple(sorted(groups, key=lambda g: (order.index(g.outcome), -g.score, -g.learner_count)))


def _classify_response(result: Result, option: StatisticsOption | None) -> ResponseOutcome:
    if result == "right":
        return ResponseOutcome.ACCEPTED
    if result == "partly":
        return ResponseOutcome.PARTLY
    return ResponseOutcome.FORESEEN if option else ResponseOutcome.OTHER


def _describe_response(
    result: GradeResult, raw: SubmittedFields, options: Mapping[str, StatisticsOption]
) -> str:
    chosen_keys = result.parsed_response.get("chosen")
    if chosen_keys is None:
        field_values = (value for name in ("answer", "unit") for value in raw.get(name, ()))
        return " ".join(" ".join(field_values).split())
    return "; ".join(sorted(options[key].text for key in chosen_keys if key in options))


def _count_equal_texts(texts: Iterable[_EnteredText]) -> list[_CountedText]:
    """Count texts, ignoring capitals; each is shown in its most frequent spelling."""
    spellings: dict[tuple[str, str], Counter[_EnteredText]] = defaultdict(Counter)
    for entered in texts:
        normalized = normalize_search_text(entered.text)
        spellings[normalized, entered.drawn_right_answer][entered] += 1
    counts = [
        _CountedText(spelling_counts.most_common(1)[0][0], spelling_counts.total())
        for spelling_counts in spellings.values()
    ]
    return sorted(counts, key=lambda counted: (-counted.response_count, counted.entered))


def _tabulate_responses_by_part(
    question: Question, results: Sequence[GradeResult]
) -> tuple[PartResponseTable, ...]:
    typed_keys = {blank.key for blank in getattr(question.answer, "blanks", ()) if not blank.wrong}
    marks_by_key: dict[str, list[PartResult]] = defaultdict(list)
    for result in results:
        for mark in result.part_results:
            marks_by_key[mark.key].append(mark)
    tables = []
    for key, marks in marks_by_key.items():
        right_texts = {
            normalize_search_text(mark.given_answer.plain) for mark in marks if mark.is_right
        }
        responses = []
        for (text, _), count in _count_equal_texts(
            _EnteredText(m.given_answer.plain) for m in marks
        ):
            is_right = normalize_search_text(text) in right_texts
            can_accept = key in typed_keys and not is_right
            responses.append(PartResponseCount(text, count, is_right, text if can_accept else ""))
        first = marks[0]
        tables.append(
            PartResponseTable(
                key=key,
                label=_make_part_name(first.label, first.text.plain),
                right_answer=first.right_answer.plain,
                right_count=sum(mark.is_right for mark in marks),
                count=len(marks),
                responses=tuple(responses[:_MOST_RESPONSES]),
            )
        )
    return tuple(tables)


def _make_part_name(part_label: str, part_text: str) -> str:
    """Name a part: the step or the left cell; a gap by its number and its clue."""
    if part_label.startswith("Gap "):
        return f"{part_label} ({part_text})" if part_text else part_label
    return part_text or part_label


def _build_certainty_rows(answers: Iterable[LoggedAnswer]) -> tuple[CertaintyRow, ...]:
    scores: dict[int, list[float]] = defaultdict(list)
    for answer in answers:
        scores[answer.certainty or 0].append(answer.score)
    labels = {
        0: "Not said",
        **{number: level.label for number, level in enumerate(CONFIDENCE_LEVELS, 1)},
    }
    rows = [
        CertaintyRow(
            labels.get(level, "Not said"), len(level_scores), statistics.fmean(level_scores)
        )
        for level, level_scores in sorted(scores.items(), reverse=True)
    ]
    return tuple(rows) if set(scores) - {0} else ()


def _build_time_rows(answers: Iterable[LoggedAnswer]) -> tuple[TimeRow, ...]:
    groups: dict[str, list[float]] = {"Right": [], "Not right": []}
    for answer in answers:
        if answer.milliseconds:
            label = "Right" if answer.score >= 1 - 1e-9 else "Not right"
            groups[label].append(answer.milliseconds / 1000)
    rows = []
    for label, seconds in groups.items():
        if seconds:
            # One value alone has no quartiles.
            pair = seconds if len(seconds) > 1 else seconds * 2
            low, median, high = statistics.quantiles(pair, n=4, method="inclusive")
            rows.append(TimeRow(label, len(seconds), median, low, high))
    return tuple(rows)


_OPTION_LINE = re.compile(r"^(?P<box>\s*[-*+] \[)(?P<tick>[^\]]*)(?P<end>\] )(?P<text>.*?)\s*$")
_BLANK_MARKUP = re.compile(r"\[\[(.*?)\]\]", re.DOTALL)
_CODE_FENCE = re.compile(r"^\s*(```|~~~)")
_HEADING_START = re.compile(r"^#{1,6} ")


@dataclasses.dataclass(frozen=True, slots=True)
class TextToAccept:
    """What is to be accepted: a whole answer, or that of the gap with the key `gap_key`."""

    text: str
    gap_key: str = ""


def add_text_to_key_in_source(
    file_text: str, question: Question, text_to_accept: TextToAccept
) -> str:
    """Return the text of the question's file with one more accepted answer.

    Raises InvalidInputError for a text that cannot be an answer, and ConflictError if the key is
    not found where the question says it is.
    """
    if question.computed:
        raise ConflictError(
            "A computed question has other numbers in every attempt.",
            "Widen its tolerance, or add the answer as an expression in the file.",
        )
    if isinstance(question.answer, ClozeSpec):
        return _add_text_to_gap(file_text, question, text_to_accept)
    if types.question_type_of(question).responses_are_option_keys:
        raise ConflictError("Only typed answers can be accepted.", "Tick the option in the file.")
    return _tick_or_add_option(file_text, question, text_to_accept.text)


def does_key_accept(question: Question, text_to_accept: TextToAccept) -> bool:
    answer = question.answer
    if isinstance(answer, ClozeSpec):
        return any(
            b.accepts_answer(text_to_accept.text)
            for b in answer.blanks
            if b.key == text_to_accept.gap_key
        )
    result = grade_response(draw_variant(question, 0), {"answer": [text_to_accept.text]})
    return isinstance(result, GradeResult) and result.result == "right"


def _tick_or_add_option(file_text: str, question: Question, text: str) -> str:
    if "`" in text or "|" in text:
        raise InvalidInputError(f"“{text}” has a character that an option cannot have.", "answer")
    lines = file_text.splitlines(keepends=True)
    last_ticked: int | None = None
    for line_index in _iterate_line_indices_of_question(lines, question):
        option = _OPTION_LINE.match(lines[line_index])
        if option is None:
            continue
        if option["tick"].strip().lower() == "x":
            last_ticked = line_index
        elif is_same_phrase(option["text"].strip("`"), text):
            lines[line_index] = (
                f"{option['box']}x{option['end']}{option['text']}{_find_line_ending(lines[line_index])}"
            )
            return "".join(lines)
    ticked = None if last_ticked is None else _OPTION_LINE.match(lines[last_ticked])
    if last_ticked is None or ticked is None:
        raise _build_key_not_found_error(question)
    option_text = text + format_tolerance_of_first_right_option(question.answer)
    line = f"{ticked['box']}x{ticked['end']}`{option_text}`{_find_line_ending(lines[last_ticked])}"
    insert_index = _find_line_index_after_option(lines, last_ticked)
    if not _find_line_ending(lines[insert_index - 1]):
        lines[insert_index - 1] += "\n"
    lines.insert(insert_index, line)
    return "".join(lines)


def _add_text_to_gap(file_text: str, question: Question, text_to_accept: TextToAccept) -> str:
    answer = question.answer
    assert isinstance(answer, ClozeSpec)  # noqa: S101 - only for the type checker
    keys = [blank.key for blank in answer.blanks]
    if text_to_accept.gap_key not in keys:
        raise _build_key_not_found_error(question)
    if re.search(r"[\[\]|?~]", text_to_accept.text):
        raise InvalidInputError(
            f"“{text_to_accept.text}” has a character that a gap cannot have.", "answer"
        )
    lines = file_text.splitlines(keepends=True)
    line_indices = list(_iterate_line_indices_of_question(lines, question))
    body = "".join(lines[line_index] for line_index in line_indices)
    blanks = list(_BLANK_MARKUP.finditer(body))
    if len(blanks) != len(keys):
        raise _build_key_not_found_error(question)
    gap_match = blanks[keys.index(text_to_accept.gap_key)]
    content_match = re.match(
        r"(?P<answers>[^?\uff1f~]*?)(?P<rest>\s*[?\uff1f~].*)?$", gap_match[1], re.DOTALL
    )
    if content_match is None:
        raise _build_key_not_found_error(question)
    blank = f"[[{content_match['answers']}|{text_to_accept.text}{content_match['rest'] or ''}]]"
    body = body[: gap_match.start()] + blank + body[gap_match.end() :]
    return "".join(lines[: line_indices[0]]) + body + "".join(lines[line_indices[-1] + 1 :])


def _iterate_line_indices_of_question(lines: Sequence[str], question: Question) -> Iterator[int]:
    """Yield the indices of the lines below the question's heading, up to the next heading."""
    fenced = False
    for index in range(question.place.line, len(lines)):
        if _CODE_FENCE.match(lines[index]):
            fenced = not fenced
        elif not fenced and _HEADING_START.match(lines[index]):
            return
        yield index


def _find_line_index_after_option(lines: Sequence[str], option_index: int) -> int:
    """Return the index behind an option and its indented reason."""
    index = option_index + 1
    while index < len(lines) and re.match(r"\s+\S", lines[index]):
        index += 1
    return index


def _find_line_ending(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]


def _build_key_not_found_error(question: Question) -> ConflictError:
    location = f"{question.place.path}:{question.place.line}"
    return ConflictError(
        "The key of this question was not found in its file.",
        f"Add the answer by hand at {location}.",
    )
