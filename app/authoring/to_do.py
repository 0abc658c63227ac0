"""What to fix first: problems of the files with their lines, and what the answers show."""

import dataclasses
import functools
import itertools
import math
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlencode

from markdown_it.token import Token

from app import ROOT
from app.authoring.course_report import DueContentReview
from app.authoring.item_statistics import (
    MIN_RESPONSES,
    ItemStatistics,
    find_never_chosen_options,
    find_probably_right_distractor,
)
from app.authoring.store import CardLapses
from app.content.course import Course
from app.content.file_watcher import locate_course_file
from app.markup.html_renderer import RenderContext, render_tokens
from app.markup.markdown_tokens import find_closing_index, parse_markdown, plain_text
from app.markup.model import SourceLocation
from app.markup.problems import ContentProblem, ParseContext
from app.markup.text import slugify
from app.questions import types
from app.questions.model import Question, Variant
from app.questions.question_type import NINETEEN_IN_TWENTY, compute_wilson_interval
from app.spaced_repetition.scheduler import LEECH_LAPSES

_CONTEXT_LINES = 8


@dataclasses.dataclass(frozen=True, slots=True)
class SourceLine:
    number: int
    text: str
    has_problem: bool


class FileProblemCount(NamedTuple):
    path: str
    problem_count: int


@dataclasses.dataclass(frozen=True, slots=True)
class ProblemList:
    """Problems that pass a filter, worst first, and counts of all."""

    problems: tuple[ContentProblem, ...]
    selected_problem: ContentProblem | None
    total_counts_by_file: tuple[FileProblemCount, ...]
    total_error_count: int
    total_warning_count: int


def build_problem_list(
    course: Course, severity: str, file_path: str, selected_problem_key: str
) -> ProblemList:
    """Return the problems of a severity in a file, both empty for all.

    The first one is selected if none has the key.
    """
    all_problems = sorted(course.problems, key=lambda p: (p.severity, p))
    matching = tuple(
        p for p in all_problems if p.severity.startswith(severity) and file_path in {"", p.path}
    )
    errors = sum(p.severity == "error" for p in all_problems)
    return ProblemList(
        matching,
        next(
            (p for p in matching if make_problem_key_for_url(p) == selected_problem_key),
            next(iter(matching), None),
        ),
        tuple(
            FileProblemCount(*counted)
            for counted in sorted(Counter(p.path for p in all_problems).items())
        ),
        errors,
        len(all_problems) - errors,
    )


def make_problem_key_for_url(problem: ContentProblem) -> str:
    """Return a problem's name in URLs: file, line, column and code."""
    return f"{problem.path}:{problem.line}:{problem.column}:{problem.code}"


def find_topic_slug_of_path(path: str) -> str:
    """Return the slug of the topic that a file belongs to; empty for course-wide files."""
    parts = path.split("/")
    return parts[1] if parts[0] == "topics" and len(parts) > 2 else ""


def read_lines_around(
    folder: Path, path: str, line: int, context_lines: int = _CONTEXT_LINES
) -> list[SourceLine]:
    """Return the lines of a file around `line`; empty if it cannot be read."""
    try:
        file = locate_course_file(folder, path)
        text = file.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return []
    lines = text.splitlines()
    first = max(1, line - context_lines)
    excerpt = lines[first - 1 : line + context_lines]
    return [SourceLine(n, line_text, n == line) for n, line_text in enumerate(excerpt, first)]


def list_problems_of_topic(problems: Sequence[ContentProblem], topic: str) -> list[ContentProblem]:
    """Return the problems in the files of one topic, worst first."""
    matching = [p for p in problems if find_topic_slug_of_path(p.path) == topic]
    return sorted(matching, key=lambda p: (p.severity, p))


GUIDE_PATH = ROOT / "docs" / "authoring.md"


@dataclasses.dataclass(frozen=True, slots=True)
class GuideSection:
    anchor: str
    title: str
    html: str


@dataclasses.dataclass(frozen=True, slots=True)
class AuthoringGuide:
    """The guide in sections; the first is the text before all headings."""

    title: str
    sections: tuple[GuideSection, ...]
    problems: tuple[ContentProblem, ...]


@functools.lru_cache(maxsize=1)
def read_authoring_guide(path: Path = GUIDE_PATH) -> AuthoringGuide:
    """Read the guide; raises OSError if it is not installed."""
    parse_context = ParseContext(path.name, path.read_text(encoding="utf-8"))
    title, *chapters = _split_title_and_chapters(parse_markdown(parse_context.text))
    scope = RenderContext(parse_context, is_concept_page=True)
    sections = tuple(_build_guide_section(chapter, scope) for chapter in chapters)
    return AuthoringGuide(plain_text(title), sections, tuple(parse_context.problems))


def _split_title_and_chapters(tokens: list[Token]) -> list[list[Token]]:
    """Return the title, the text after it, and each chapter from its heading on."""
    starts = [i for i, t in enumerate(tokens) if t.type == "heading_open"]
    starts = [i for i in starts if tokens[i].tag == "h2" and not tokens[i].level]
    text_start = find_closing_index(tokens, 0) + 1
    cuts = [0, text_start, *starts, len(tokens)]
    return [tokens[a:b] for a, b in itertools.pairwise(cuts)]


def _build_guide_section(chapter: list[Token], scope: RenderContext) -> GuideSection:
    has_heading = chapter[0].type == "heading_open"
    title = plain_text(chapter[1:2]) if has_heading else ""
    return GuideSection(slugify(title), title, render_tokens(chapter, scope).html)


_TOO_EASY_SHARE = 0.95  # share of the marks
_FORGETFUL_SHARE = 0.3  # lapses per review
_LONGEST_OPTION = 60


@dataclasses.dataclass(frozen=True, slots=True)
class FixReason:
    """A sign that something is wrong; `severity_weight` 0..100 says how sure and how bad."""

    severity_weight: int
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class ItemToFix:
    """An item to fix: its place in the source, and every reason, worst first."""

    item_id: str
    item_kind: str
    location: SourceLocation
    reasons: tuple[FixReason, ...]

    @property
    def sort_weight(self) -> int:
        """The weight of its worst reason, plus a little for each other one."""
        return self.reasons[0].severity_weight * 10 + len(self.reasons)


def compute_blind_guess_percent(question: Question) -> float | None:
    """Return the percentage that random guessing scores; None if undefined."""
    return types.question_type_of(question).compute_guess_percent(question.answer)


def assign_option_letters(question: Question | Variant) -> dict[str, str]:
    """Return a letter for each option key: as authored, or as learners see the variant."""
    kind = types.question_type_of(question)
    if not kind.responses_are_option_keys:
        return {}
    keys = [option.key for option in kind.options_for_statistics(question.answer)]
    return dict(zip(keys, string.ascii_uppercase, strict=False))


def find_fix_reasons_in_statistics(
    question: Question, statistics: ItemStatistics | None
) -> list[FixReason]:
    """Return what the first answers say against a question; nothing below ten of them."""
    if statistics is None or not statistics.has_enough_responses:
        return []
    return [
        *_find_option_reasons(question, statistics),
        *_find_facility_and_discrimination_reasons(question, statistics),
    ]


def build_item_to_fix(
    item_id: str, item_kind: str, location: SourceLocation, reasons: Iterable[FixReason]
) -> ItemToFix:
    return ItemToFix(
        item_id, item_kind, location, tuple(sorted(reasons, key=lambda r: -r.severity_weight))
    )


def list_report_and_regrade_fix_reasons(
    report_count: int, unregraded_count: int
) -> list[FixReason]:
    """Return the reasons for learner reports, and for answers that keep a wrong score."""
    reasons = []
    if report_count:  # few reports are false alarms, so the weight is high
        subject = "A learner reports" if report_count == 1 else f"{report_count} reports of"
        reasons.append(FixReason(75, f"{subject} a problem."))
    if unregraded_count:
        subject = "one answer" if unregraded_count == 1 else f"{unregraded_count:,} answers"
        text = f"Its key was corrected: {subject} would score differently."
        reasons.append(FixReason(90, text))
    return reasons


def list_card_fix_reasons(card: CardLapses) -> list[FixReason]:
    reasons = []
    if card.leech_learner_count:
        subject = (
            "One learner"
            if card.leech_learner_count == 1
            else f"{card.leech_learner_count} learners"
        )
        reasons.append(
            FixReason(
                60, f"{subject} forgot it {LEECH_LAPSES} times or more: check it against its page."
            )
        )
    if (
        card.review_count >= MIN_RESPONSES
        and card.lapse_count > _FORGETFUL_SHARE * card.review_count
    ):
        text = (
            f"Forgotten in {card.lapse_count} of {card.review_count} reviews: split or reword it."
        )
        reasons.append(FixReason(40, text))
    return reasons


def _find_option_reasons(question: Question, statistics: ItemStatistics) -> list[FixReason]:
    kind = types.question_type_of(question)
    if not kind.responses_are_option_keys:
        return []
    options = kind.options_for_statistics(question.answer)
    names = {o.key: _quote_option(o.text) for o in options}
    right = [o.key for o in options if o.right]
    wrong = [o.key for o in options if not o.right]
    reasons = []
    better_option = find_probably_right_distractor(statistics, right)
    if better_option in names:
        text = f"Probably a wrong key: strong learners choose {names[better_option]}."
        reasons.append(FixReason(100, text))
    unchosen = [names[key] for key in find_never_chosen_options(statistics, wrong)]
    if unchosen:
        reasons.append(FixReason(25, f"Nobody chooses {_join_names(unchosen)}."))
    if kind.has_several_right_options:  # several keys have no order among them
        return reasons
    counts = {
        o.option_key: o.chooser_count for o in statistics.option_statistics if o.option_key in names
    }
    most_right = max((counts.get(key, 0) for key in right), default=0)
    popular = [
        names[k]
        for k, n in counts.items()
        if k not in right and _is_significantly_more(n, most_right)
    ]
    if popular:
        verb = "is" if len(popular) == 1 else "are"
        text = f"{_join_names(popular)} {verb} chosen more often than the key."
        reasons.append(FixReason(45, text))
    return reasons


def _is_significantly_more(count: int, other_count: int) -> bool:
    """Return whether a count is larger than another one beyond chance (McNemar, 95%)."""
    return count - other_count > NINETEEN_IN_TWENTY * math.sqrt(count + other_count)


def _quote_option(text: str) -> str:
    shortened = text if len(text) <= _LONGEST_OPTION else f"{text[: _LONGEST_OPTION - 1].rstrip()}…"
    return f"“{shortened}”"


def _find_facility_and_discrimination_reasons(
    question: Question, statistics: ItemStatistics
) -> list[FixReason]:
    """Judge an index by its 95% interval: what chance can explain is no reason to fix anything."""
    facility, guess = statistics.facility, compute_blind_guess_percent(question)
    reasons = []
    interval = statistics.discrimination_interval
    if interval is not None and interval[1] < 0:
        range_text = f"discrimination −{-interval[0]:.0f} to −{-interval[1]:.0f}"
        text = f"Weak learners do better at it than strong ones ({range_text})."
        reasons.append(FixReason(80, text))
    if facility is None:
        return reasons
    share = facility / 100
    low, high = compute_wilson_interval(
        share * statistics.count, statistics.count, NINETEEN_IN_TWENTY
    )
    if guess and high < guess / 100:
        text = f"Learners get {facility:.0f}%, blind guessing would give {guess:.0f}%."
        reasons.append(FixReason(55, text))
    elif facility == 0:
        reasons.append(FixReason(55, "Nobody got any of it right."))
    if low >= _TOO_EASY_SHARE:
        reasons.append(FixReason(15, f"Learners get {facility:.0f}%: too easy to tell them apart."))
    return reasons


def _join_names(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"


# Severity: an item that is left out, then a wrong key (100), then the rest.
_ERROR_URGENCY, _WARNING_URGENCY, _DUE_REVIEW_URGENCY = 95, 20, 30


@dataclasses.dataclass(frozen=True, slots=True)
class AuthorTask:
    """One thing to fix: its name and URL, the reason, and what brought it to light."""

    severity_weight: int
    name: str
    url: str
    reason: str
    found_by: str


def build_author_tasks(
    problems: Iterable[ContentProblem],
    items: Iterable[ItemToFix],
    due_reviews: Iterable[DueContentReview],
) -> list[AuthorTask]:
    """Return everything to fix in one list, worst first."""
    tasks = [_build_task_for_problem(p) for p in problems]
    tasks += [_build_task_for_item(item) for item in items]
    for review in due_reviews:
        url = (
            f"/authoring/pages/{review.topic_slug}" if review.topic_slug else "/authoring/coverage"
        )
        reason, known_from = f"It {review.reason}.", f"review, {review.file_path}"
        tasks.append(AuthorTask(_DUE_REVIEW_URGENCY, review.name, url, reason, known_from))
    return sorted(tasks, key=lambda task: (-task.severity_weight, task.name, task.reason))


def _build_task_for_problem(problem: ContentProblem) -> AuthorTask:
    weight = _ERROR_URGENCY if problem.severity == "error" else _WARNING_URGENCY
    url = f"/authoring?{urlencode({'at': make_problem_key_for_url(problem)})}"
    name = problem.item or f"{problem.path}:{problem.line}"
    return AuthorTask(weight, name, url, f"{problem.code} {problem.message}", "check")


def _build_task_for_item(item: ItemToFix) -> AuthorTask:
    path, line = item.location.path, item.location.line
    url = f"/authoring/questions/{quote(item.item_id)}"
    if item.item_kind != "question":
        url = f"/authoring/pages/{path.split('/')[1]}"
    reason = " ".join(reason.text for reason in item.reasons)
    return AuthorTask(
        item.reasons[0].severity_weight, item.item_id, url, reason, f"learners, {path}:{line}"
    )


class UnpublishedContent(NamedTuple):
    url: str
    name: str
    status: str


def list_unpublished_content(course: Course) -> list[UnpublishedContent]:
    """Return the pages that are not live, and the items that are not live on live pages."""
    course_with_drafts = course.with_drafts()
    pages = {
        slug: topic for slug, topic in course_with_drafts.topics.items() if topic.status != "live"
    }
    entries = [
        UnpublishedContent(f"/authoring/pages/{slug}", topic.title, str(topic.status))
        for slug, topic in pages.items()
    ]
    entries += [
        UnpublishedContent(f"/authoring/questions/{q.id}", q.id, str(q.status))
        for q in course_with_drafts.questions.values()
        if q.status != "live" and q.topic not in pages
    ]
    entries += [
        UnpublishedContent(f"/authoring/pages/{c.topic}", c.id, str(c.status))
        for c in course_with_drafts.cards.values()
        if c.status != "live" and c.topic not in pages and not c.is_reverse
    ]
    return entries
