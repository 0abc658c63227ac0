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

from app.authoring.store import LoggedAnswer
from app.errors import ConflictError, InvalidInputError
from app.markup.expressions import ExpressionError
from app.questions import types
from app.questions.grading import grade
from app.questions.model import Question, count_combinations, draw_variant
from app.questions.question_type import (
    LEVELS,
    GradeResult,
    Result,
    StatisticsOption,
    SubmittedFields,
    UnreadableResponse,
    normalize_search_text,
    same_words,
)
from app.questions.types.cloze import ClozeSpec
from app.questions.types.numeric import format_numeric_tolerance

_MOST_RESPONSES = 50  # distinct responses shown for each group


class ResponseOutcome(enum.StrEnum):
    """How a group of responses is graded."""

    ACCEPTED = "accepted"
    PARTLY = "partly"
    FORESEEN = "foreseen"
    OTHER = "other"


@dataclasses.dataclass(frozen=True, slots=True)
class ResponseCount:
    """A distinct response as text, and how many learners gave it.

    `wanted` is the right answer where a computed question drew other numbers. `value` is what
    “Accept this one” sends; empty if the response cannot be accepted.
    """

    text: str
    count: int
    wanted: str = ""
    value: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ResponseGroup:
    """Responses that are graded alike. `option` is the option they match, if any."""

    outcome: ResponseOutcome
    option: str
    score: float
    responses: tuple[ResponseCount, ...]
    count: int
    distinct: int


@dataclasses.dataclass(frozen=True, slots=True)
class PartResponse:
    """What was entered in one part: the text, how often, and whether it is right there."""

    text: str
    count: int
    right: bool
    value: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class PartResponseTable:
    """The responses to one row, step, gap or condition; `key` is its key in the answer."""

    key: str
    label: str
    wanted: str
    right: int
    count: int
    responses: tuple[PartResponse, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class CertaintyRow:
    """Answers with a confidence level, and the mean of their scores (0..1)."""

    word: str
    count: int
    score: float


@dataclasses.dataclass(frozen=True, slots=True)
class TimeRow:
    """How long answers took, in seconds: the median and the middle half."""

    label: str
    count: int
    median: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True, slots=True)
class QuestionResponses:
    """The responses to a question.

    `unknown` counts “I don't know”, `unreadable` what the current key cannot read, such as
    answers from a time when the question was of another type.
    """

    count: int
    unknown: int
    unreadable: int
    groups: tuple[ResponseGroup, ...]
    parts: tuple[PartResponseTable, ...]
    certainty: tuple[CertaintyRow, ...]
    times: tuple[TimeRow, ...]

    @property
    def can_accept(self) -> bool:
        """Whether there is a response that the author may accept."""
        group_values = (response.value for group in self.groups for response in group.responses)
        return any(group_values) or any(r.value for part in self.parts for r in part.responses)


def build_response_table(question: Question, answers: Sequence[LoggedAnswer]) -> QuestionResponses:
    """Return the table of these answers, graded by the current key of `question`."""
    regrader = _Grader(question)
    graded: list[tuple[GradeResult, SubmittedFields, int]] = []
    dont_know = unreadable = 0
    for answer in answers:
        result = regrader.grade_unless_dont_know(answer)
        if result is None:
            dont_know += 1
        elif isinstance(result, UnreadableResponse):
            unreadable += 1
        else:
            graded.append((result, json.loads(answer.raw), answer.seed))
    kind = types.type_of(question)
    in_parts = kind.in_parts and not kind.chosen
    return QuestionResponses(
        count=len(answers),
        unknown=dont_know,
        unreadable=unreadable,
        groups=() if in_parts else _group_by_option_and_score(question, graded),
        parts=_part_tables(question, [result for result, _, _ in graded]) if in_parts else (),
        certainty=_certainty_rows(answers),
        times=_time_rows(answers),
    )


class _Grader:
    """Grades logged answers by the current key, each distinct one once."""

    def __init__(self, question: Question) -> None:
        self._question = question
        computed = question.computed
        self._combinations = count_combinations(computed) if computed else 1
        self._grade = functools.cache(self._grade_raw_unless_dont_know)

    def grade_unless_dont_know(
        self, answer: LoggedAnswer
    ) -> GradeResult | UnreadableResponse | None:
        """Return the result; None for “I don't know”."""
        return self._grade(answer.seed % self._combinations, answer.raw)

    def _grade_raw_unless_dont_know(
        self, seed: int, raw: str
    ) -> GradeResult | UnreadableResponse | None:
        response = json.loads(raw)
        if not response:
            return None
        try:
            return grade(draw_variant(self._question, seed), response)
        except ExpressionError as error:
            return UnreadableResponse(str(error))


def _group_by_option_and_score(
    question: Question, graded: Iterable[tuple[GradeResult, SubmittedFields, int]]
) -> tuple[ResponseGroup, ...]:
    """Group whole responses by the option they match, or by their score."""
    kind = types.type_of(question)
    options = {option.key: option for option in kind.options_for_statistics(question.answer)}
    is_typed = not kind.chosen
    texts_by_group: dict[tuple[ResponseOutcome, str, float], list[tuple[str, str]]] = defaultdict(
        list
    )
    for result, raw, _ in graded:
        option = options.get(result.parsed.get("option", "")) if is_typed else None
        name = option.words if option else ""
        outcome = _classify_response(result.result, option)
        text = _response_text(result, raw, options)
        right_answer = result.wanted if is_typed and question.computed else ""
        texts_by_group[outcome, name, round(result.score, 4)].append((text, right_answer))
    groups = []
    for (outcome, name, score), texts in texts_by_group.items():
        can_accept = is_typed and outcome is not ResponseOutcome.ACCEPTED and not question.computed
        groups.append(
            ResponseGroup(
                outcome=outcome,
                option=name,
                score=score,
                responses=tuple(
                    ResponseCount(text, count, right_answer, text if can_accept else "")
                    for (text, right_answer), count in _count_equal_texts(texts)[:_MOST_RESPONSES]
                ),
                count=len(texts),
                distinct=len(_count_equal_texts(texts)),
            )
        )
    order = list(ResponseOutcome)
    return tuple(sorted(groups, key=lambda g: (order.index(g.outcome), -g.score, -g.count)))


def _classify_response(result: Result, option: StatisticsOption | None) -> ResponseOutcome:
    if result == "right":
        return ResponseOutcome.ACCEPTED
    if result == "partly":
        return ResponseOutcome.PARTLY
    return ResponseOutcome.FORESEEN if option else ResponseOutcome.OTHER


def _response_text(
    result: GradeResult, raw: SubmittedFields, options: Mapping[str, StatisticsOption]
) -> str:
    chosen_keys = result.parsed.get("chosen")
    if chosen_keys is None:
        field_values = (value for name in ("answer", "unit") for value in raw.get(name, ()))
        return " ".join(" ".join(field_values).split())
    return "; ".join(sorted(options[key].words for key in chosen_keys if key in options))


def _count_equal_texts(texts: Iterable[tuple[str, str]]) -> list[tuple[tuple[str, str], int]]:
    """Count texts, ignoring capitals; each is shown in its most frequent spelling."""
    spellings: dict[tuple[str, str], Counter[tuple[str, str]]] = defaultdict(Counter)
    for text, right_answer in texts:
        spellings[normalize_search_text(text), right_answer][text, right_answer] += 1
    counts = [
        (spelling_counts.most_common(1)[0][0], spelling_counts.total())
        for spelling_counts in spellings.values()
    ]
    return sorted(counts, key=lambda pair: (-pair[1], pair[0]))


def _part_tables(
    question: Question, results: Sequence[GradeResult]
) -> tuple[PartResponseTable, ...]:
    """Return one table for each part, in the order of the file."""
    typed_keys = {blank.key for blank in getattr(question.answer, "blanks", ()) if not blank.wrong}
    entries_by_key: dict[str, list[tuple[str, bool]]] = {}
    labels: dict[str, tuple[str, str]] = {}
    for result in results:
        for mark in result.marks:
            labels.setdefault(
                mark.key, (_part_label(mark.label, mark.text.plain), mark.wanted.plain)
            )
            entries_by_key.setdefault(mark.key, []).append((mark.given.plain, mark.good))
    tables = []
    for key, entries in entries_by_key.items():
        right_texts = {normalize_search_text(text) for text, is_right in entries if is_right}
        responses = tuple(
            PartResponse(
                text,
                count,
                normalize_search_text(text) in right_texts,
                text
                if key in typed_keys and text and normalize_search_text(text) not in right_texts
                else "",
            )
            for (text, _), count in _count_equal_texts((text, "") for text, _ in entries)
        )
        tables.append(
            PartResponseTable(
                key=key,
                label=labels[key][0],
                wanted=labels[key][1],
                right=sum(is_right for _, is_right in entries),
                count=len(entries),
                responses=responses[:_MOST_RESPONSES],
            )
        )
    return tuple(tables)


def _part_label(label: str, text: str) -> str:
    """Name a part: the step or the left cell; a gap by its number and its clue."""
    if label.startswith("Gap "):
        return f"{label} ({text})" if text else label
    return text or label


def _certainty_rows(answers: Iterable[LoggedAnswer]) -> tuple[CertaintyRow, ...]:
    scores: dict[int, list[float]] = defaultdict(list)
    for answer in answers:
        scores[answer.certainty or 0].append(answer.score)
    labels = {0: "Not said", **{number: level.word for number, level in enumerate(LEVELS, 1)}}
    rows = [
        CertaintyRow(
            labels.get(level, "Not said"), len(level_scores), statistics.fmean(level_scores)
        )
        for level, level_scores in sorted(scores.items(), reverse=True)
    ]
    return tuple(rows) if set(scores) - {0} else ()


def _time_rows(answers: Iterable[LoggedAnswer]) -> tuple[TimeRow, ...]:
    timed = [(a.milliseconds / 1000, a.score) for a in answers if a.milliseconds]
    groups = {
        "Right": [seconds for seconds, score in timed if score >= 1 - 1e-9],
        "Not right": [seconds for seconds, score in timed if score < 1 - 1e-9],
    }
    return tuple(
        _time_row(label, group_seconds) for label, group_seconds in groups.items() if group_seconds
    )


def _time_row(label: str, seconds: Sequence[float]) -> TimeRow:
    low, high = min(seconds), max(seconds)
    if len(seconds) > 1:
        low, _, high = statistics.quantiles(seconds, n=4, method="inclusive")
    return TimeRow(label, len(seconds), statistics.median(seconds), low, high)


_OPTION = re.compile(r"^(?P<box>\s*[-*+] \[)(?P<tick>[^\]]*)(?P<end>\] )(?P<text>.*?)\s*$")
_BLANK = re.compile(r"\[\[(.*?)\]\]", re.DOTALL)
_FENCE = re.compile(r"^\s*(```|~~~)")
_HEADING = re.compile(r"^#{1,6} ")


@dataclasses.dataclass(frozen=True, slots=True)
class AcceptedText:
    """What is to be accepted: a whole answer, or that of the gap with the key `gap`."""

    text: str
    gap: str = ""


def accept_in_source(source: str, question: Question, accepted: AcceptedText) -> str:
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
        return _accept_in_gap(source, question, accepted)
    if types.type_of(question).chosen:
        raise ConflictError("Only typed answers can be accepted.", "Tick the option in the file.")
    return _accept_option(source, question, accepted.text)


def accepts_text(question: Question, accepted: AcceptedText) -> bool:
    """Return whether the key of the question accepts the text."""
    answer = question.answer
    if isinstance(answer, ClozeSpec):
        return any(
            b.accepts_response(accepted.text) for b in answer.blanks if b.key == accepted.gap
        )
    result = grade(draw_variant(question, 0), {"answer": [accepted.text]})
    return isinstance(result, GradeResult) and result.result == "right"


def _accept_option(source: str, question: Question, text: str) -> str:
    if "`" in text or "|" in text:
        raise InvalidInputError(f"“{text}” has a character that an option cannot have.", "answer")
    lines = source.splitlines(keepends=True)
    options = [
        (line_index, m)
        for line_index in _line_indices_of_question(lines, question)
        if (m := _OPTION.match(lines[line_index]))
    ]
    for line_index, option in options:
        is_same = same_words(option["text"].strip("`"), text)
        if is_same and option["tick"].strip().lower() != "x":
            lines[line_index] = (
                f"{option['box']}x{option['end']}{option['text']}{_line_ending(lines[line_index])}"
            )
            return "".join(lines)
    ticked = [
        (line_index, option)
        for line_index, option in options
        if option["tick"].strip().lower() == "x"
    ]
    if not ticked:
        raise _source_changed_error(question)
    line_index, option = ticked[-1]
    option_text = text + format_numeric_tolerance(question.answer)
    line = f"{option['box']}x{option['end']}`{option_text}`{_line_ending(lines[line_index])}"
    insert_index = _index_behind_option(lines, line_index)
    if not _line_ending(lines[insert_index - 1]):
        lines[insert_index - 1] += "\n"
    lines.insert(insert_index, line)
    return "".join(lines)


def _accept_in_gap(source: str, question: Question, accepted: AcceptedText) -> str:
    answer = question.answer
    assert isinstance(answer, ClozeSpec)  # noqa: S101 - only for the type checker
    keys = [blank.key for blank in answer.blanks]
    if accepted.gap not in keys:
        raise _source_changed_error(question)
    if re.search(r"[\[\]|?~]", accepted.text):
        raise InvalidInputError(
            f"“{accepted.text}” has a character that a gap cannot have.", "answer"
        )
    lines = source.splitlines(keepends=True)
    line_indices = list(_line_indices_of_question(lines, question))
    body = "".join(lines[line_index] for line_index in line_indices)
    blanks = list(_BLANK.finditer(body))
    if len(blanks) != len(keys):
        raise _source_changed_error(question)
    gap_match = blanks[keys.index(accepted.gap)]
    content_match = re.match(
        r"(?P<answers>[^?\uff1f~]*?)(?P<rest>\s*[?\uff1f~].*)?$", gap_match[1], re.DOTALL
    )
    if content_match is None:
        raise _source_changed_error(question)
    blank = f"[[{content_match['answers']}|{accepted.text}{content_match['rest'] or ''}]]"
    body = body[: gap_match.start()] + blank + body[gap_match.end() :]
    return "".join(lines[: line_indices[0]]) + body + "".join(lines[line_indices[-1] + 1 :])


def _line_indices_of_question(lines: Sequence[str], question: Question) -> Iterator[int]:
    """Yield the indices of the lines below the question's heading, up to the next heading."""
    fenced = False
    for index in range(question.place.line, len(lines)):
        if _FENCE.match(lines[index]):
            fenced = not fenced
        elif not fenced and _HEADING.match(lines[index]):
            return
        yield index


def _index_behind_option(lines: Sequence[str], option_index: int) -> int:
    """Return the index behind an option and its indented reason."""
    index = option_index + 1
    while index < len(lines) and re.match(r"\s+\S", lines[index]):
        index += 1
    return index


def _line_ending(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]


def _source_changed_error(question: Question) -> ConflictError:
    location = f"{question.place.path}:{question.place.line}"
    return ConflictError(
        "The key of this question was not found in its file.",
        f"Add the answer by hand at {location}.",
    )
