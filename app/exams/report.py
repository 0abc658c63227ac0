"""Score report, charts, trend."""

import collections
import dataclasses
import datetime as dt
import itertools
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from app.content.course import Course
from app.content.course_facts import cached_course_facts, is_paper_answered_enough_to_compare
from app.content.reading_routes import ReadingRoute, build_page_url
from app.markup.model import Topic
from app.questions.question_type import NINETEEN_IN_TWENTY, compute_wilson_interval
from app.study_plan.day_list import PageToRead
from app.web.formatting import format_percent, format_points_rounded, format_short_date
from app.widgets.bar_charts import ScoreRange, draw_score_range
from app.widgets.svg import (
    SHARE_AXIS,
    Box,
    PlotArea,
    build_svg_element,
    draw_dot,
    draw_line,
    draw_rect_in_percent,
    draw_text,
)


@dataclasses.dataclass(frozen=True, slots=True)
class GradedItem:
    """One question after the end: `score` 0..1, `is_answered` false if left unanswered.

    `score_of_first_answer` is what the first answer would have scored, if it was changed later.
    `score_before_regrade` is what the answer scored before it was regraded with a corrected
    key. An unreadable answer could not be parsed and scores 0.
    """

    question_number: int
    question_id: str
    domain_number: str
    objective_number: str
    score: float
    is_answered: bool
    seconds_spent: float
    score_of_first_answer: float | None = None
    score_before_regrade: float | None = None
    is_unreadable: bool = False

    @property
    def result_text(self) -> str:
        if self.is_unreadable:
            return "could not be read"
        if not self.is_answered:
            return "unanswered"
        if self.score >= 1:
            return "right"
        return "partly right" if self.score > 0 else "not right"

    @property
    def was_regraded(self) -> bool:
        """Whether regrading with a corrected key changed the score."""
        return self.score_before_regrade is not None and self.score_before_regrade != self.score

    @property
    def change_text(self) -> str:
        """How changing the first answer changed the result, in words; empty if unchanged."""
        if self.score_of_first_answer is None:
            return ""
        return f"{_say_right_or_wrong(self.score_of_first_answer)} to {_say_right_or_wrong(self.score)}"


def _say_right_or_wrong(score: float) -> str:
    return "right" if score >= 1 else "wrong"


@dataclasses.dataclass(frozen=True, slots=True)
class PartScore:
    """The score of a part of the paper: `score` of `question_count` questions."""

    number_or_title: str
    score: float
    question_count: int

    @property
    def points_lost(self) -> float:
        return self.question_count - self.score


class AnswerChanges(NamedTuple):
    """A result of changing an answer, such as “wrong to right”, and the questions that had it."""

    change_text: str
    question_numbers: tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class ScoreReport:
    """The score report. `low_points` and `high_points` are the score range of a similar paper.

    `missed_items` were answered wrong or partly right. `weakest_objective` lost more points in
    answered questions than any other. `answer_changes` are the questions with a changed answer,
    by result. A regraded question has another score by a corrected key.
    """

    score: float
    question_count: int
    low_points: float
    high_points: float
    answered_count: int
    domain_scores: tuple[PartScore, ...]
    objective_scores: tuple[PartScore, ...]
    missed_items: tuple[GradedItem, ...]
    unanswered_items: tuple[GradedItem, ...] = ()
    weakest_objective: PartScore | None = None
    answer_changes: tuple[AnswerChanges, ...] = ()
    regraded_count: int = 0
    score_before_regrade: float = 0.0

    @property
    def is_conclusive(self) -> bool:
        """Whether enough was answered to estimate a similar paper."""
        return is_paper_answered_enough_to_compare(self.answered_count, self.question_count)

    @property
    def questions_to_repeat(self) -> tuple[GradedItem, ...]:
        """The questions to review, in the order of the paper."""
        return tuple(
            sorted((*self.missed_items, *self.unanswered_items), key=lambda m: m.question_number)
        )


def describe_missed_questions_in_cards(
    report: ScoreReport, numbers_with_card: Collection[int], last_reached_number: int
) -> str:
    """Return which missed and blank questions are among the learner's cards, in sentences.

    Blank ones after `last_reached_number` became no cards for that reason. They may have been seen:
    a question is stored only once it is changed or left for another.
    """
    missed, blank = (
        [item.question_number for item in items]
        for items in (report.missed_items, report.unanswered_items)
    )
    missed_cards = sum(number in numbers_with_card for number in missed)
    blank_cards = sum(number in numbers_with_card for number in blank)
    at_end = sum(n > last_reached_number for n in blank if n not in numbers_with_card)
    sentences = []
    if missed and blank and missed_cards + blank_cards == len(missed) + len(blank):
        return f"All {len(missed) + len(blank)} are in your cards now."
    if missed:
        sentences.append(_describe_missed_cards(missed_cards, len(missed)))
    if blank:
        sentence = _describe_blank_cards(
            blank_cards, len(blank), at_end, missed_cards if missed else None
        )
        sentences.append(sentence)
    return " ".join(sentences)


_CONTRACTED_NOT = "n\N{RIGHT SINGLE QUOTATION MARK}t"


def _describe_missed_cards(card_count: int, count: int) -> str:
    if count == 1:
        return f"The one you missed {'is in your cards now' if card_count else f'is{_CONTRACTED_NOT} in your cards'}."
    if card_count == count:
        return f"The {count} you missed are in your cards now."
    if not card_count:
        return f"None of the {count} you missed is in your cards."
    verb = "is" if card_count == 1 else "are"
    return f"Of the {count} you missed, {card_count} {verb} in your cards now, marked below."


def _describe_blank_cards(
    card_count: int, count: int, blank_at_end_count: int, missed_cards: int | None
) -> str:
    """Return the sentence after that about the missed ones; `missed_cards` is None without any."""
    adverb = "too" if missed_cards else "now"
    left = count - card_count
    reason = ""
    if blank_at_end_count:
        which = (
            f"{blank_at_end_count} of them"
            if blank_at_end_count < left
            else "it"
            if left == 1
            else "they"
        )
        reason = f": {which} {'was' if blank_at_end_count == 1 else 'were'} left blank at the end"
    if 0 < card_count < count:
        verb = "is" if card_count == 1 else "are"
        other = (
            f"the other one is{_CONTRACTED_NOT}"
            if left == 1
            else f"the other {left} are{_CONTRACTED_NOT}"
        )
        return f"Of the {count} blank ones, {card_count} {verb} in your cards {adverb}, marked below; {other}{reason}."
    subject = "The blank one" if count == 1 else f"The {count} blank ones"
    verb = "is" if count == 1 else "are"
    if card_count:
        return f"{subject} {verb} in your cards {adverb}."
    rest = "" if missed_cards else " in your cards" if missed_cards is None else " either"
    return f"{subject} {verb}{_CONTRACTED_NOT}{rest}{reason}."


ANSWER_CHANGE_KINDS = ("wrong to right", "right to wrong", "wrong to wrong")


def build_score_report(graded: Sequence[GradedItem]) -> ScoreReport:
    """Return the score report of a paper; partial credit counts as part of a point."""
    score = sum(m.score for m in graded)
    low, high = compute_score_range_of_similar_exam(score, len(graded))
    answered = [m for m in graded if m.is_answered]
    return ScoreReport(
        score=score,
        question_count=len(graded),
        low_points=low,
        high_points=high,
        answered_count=len(answered),
        domain_scores=_sum_scores_by_part((m.domain_number, m.score) for m in graded),
        objective_scores=_sum_scores_by_part((m.objective_number, m.score) for m in graded),
        missed_items=tuple(m for m in answered if m.score < 1),
        unanswered_items=tuple(m for m in graded if not m.is_answered),
        weakest_objective=_find_weakest_objective(answered),
        answer_changes=tuple(
            AnswerChanges(way, tuple(m.question_number for m in graded if m.change_text == way))
            for way in ANSWER_CHANGE_KINDS
        ),
        regraded_count=sum(m.was_regraded for m in graded),
        score_before_regrade=sum(
            m.score if m.score_before_regrade is None else m.score_before_regrade for m in graded
        ),
    )


def find_clearly_weakest_part(part_scores: Iterable[PartScore]) -> PartScore | None:
    """Return the part that lost more points than each other one; None on a tie.

    One answer says nothing about a part.
    """
    first, second = sorted(
        [*part_scores, *[PartScore("", 0, 0)] * 2], key=lambda s: -s.points_lost
    )[:2]
    return first if first.points_lost > second.points_lost and first.question_count > 1 else None


def _find_weakest_objective(answered: Iterable[GradedItem]) -> PartScore | None:
    return find_clearly_weakest_part(
        _sum_scores_by_part((m.objective_number, m.score) for m in answered)
    )


def list_missed_objectives(graded: Iterable[GradedItem]) -> list[PartScore]:
    """Return the objectives with a missed question of those answered, most points lost first."""
    parts = _sum_scores_by_part((m.objective_number, m.score) for m in graded if m.is_answered)
    return sorted((part for part in parts if part.points_lost), key=lambda p: -p.points_lost)


class PageToReadNext(NamedTuple):
    """A page of an objective with missed questions, or one that it requires.

    Then it is `needed_for` that page. `place` is today or next if it is on that list, read if it was
    read already, else empty. It is read as its list says, or else as the plan does.
    """

    topic: Topic
    objective: PartScore
    route: ReadingRoute
    place: str = ""
    needed_for: Topic | None = None

    @property
    def url(self) -> str:
        return build_page_url(self.topic, self.route)


def choose_page_to_read_next(
    course: Course,
    graded: Sequence[GradedItem],
    read: Collection[str],
    listed: Sequence[tuple[str, PageToRead]],
    planned_route: ReadingRoute,
) -> PageToReadNext | None:
    """Return an unread exam page of the objective that cost most points of those that have one.

    One of the `listed` comes first, which are on the list of today or the next one; then one with
    questions missed. If all are read, it is a page of the objective that cost most. Objectives that
    cost as much are taken together.
    """
    exam_pages, missed = cached_course_facts(course).pages, collections.Counter[tuple[str, str]]()
    topics = {slug: topic for slug, topic in course.topics.items() if slug in exam_pages}
    for item in graded:
        if item.is_answered and item.score < 1 and item.question_id in course.questions:
            missed[item.objective_number, course.questions[item.question_id].topic] += 1
    by_loss = itertools.groupby(list_missed_objectives(graded), lambda part: part.points_lost)
    tied = [list(parts) for _, parts in by_loss]
    for objectives, is_read in (*((o, False) for o in tied), *((o, True) for o in tied)):
        of_them: dict[str, PartScore] = {}
        for objective, (slug, topic) in itertools.product(objectives, topics.items()):
            number = objective.number_or_title
            is_of_it = number in topic.objectives or missed[number, slug]
            if is_of_it and (slug in read) is is_read:
                of_them.setdefault(slug, objective)
        for name, page in listed:
            if (wanted := page.required_by or page.slug) in of_them:
                needed_for = topics[wanted] if page.required_by else None
                route: ReadingRoute = "short" if page.short else "full"
                return PageToReadNext(topics[page.slug], of_them[wanted], route, name, needed_for)
        if of_them:
            slug = max(of_them, key=lambda slug: missed[of_them[slug].number_or_title, slug])
            place = "read" if is_read else ""
            return PageToReadNext(topics[slug], of_them[slug], planned_route, place)
    return None


def compute_score_range_of_similar_exam(score: float, question_count: int) -> tuple[float, float]:
    """Return the score range that a similar paper would give, in points.

    The range holds it in 95% of cases.

    >>> [round(x, 1) for x in compute_score_range_of_similar_exam(37, 50)]
    [30.2, 42.1]
    """
    if question_count == 0:
        return 0.0, 0.0
    low, high = compute_wilson_interval(score, question_count, NINETEEN_IN_TWENTY)
    return low * question_count, high * question_count


def _sum_scores_by_part(parts: Iterable[tuple[str, float]]) -> tuple[PartScore, ...]:
    scores: dict[str, list[float]] = collections.defaultdict(list)
    for name, score in parts:
        scores[name].append(score)
    names = sorted(scores, key=_objective_sort_key)
    return tuple(PartScore(name, sum(scores[name]), len(scores[name])) for name in names)


def _objective_sort_key(name: str) -> tuple[float | str, ...]:
    """Return a sort key that puts 2.10 after 2.9: objective numbers are not decimals."""
    try:
        return tuple(float(part) for part in name.split("."))
    except ValueError:
        return (math.inf, name)


def build_page_url_by_objective(course: Course, planned_route: ReadingRoute) -> dict[str, str]:
    """Return the address of the first page on each objective."""
    urls: dict[str, str] = {}
    for topic in course.topics.values():
        for objective in topic.objectives:
            urls.setdefault(objective, build_page_url(topic, planned_route))
    return urls


def list_short_names_by_objective(course: Course) -> dict[str, str]:
    """Return the short name of each objective by its number."""
    domains = course.syllabus.domains
    return {goal.number: goal.name for domain in domains for goal in domain.objectives}


_BARS_BASE_Y, _BARS_HEIGHT = 66.0, 62.0


@dataclasses.dataclass(frozen=True, slots=True)
class ReportCharts:
    """The charts, and two times per question: the longest, and that of an even pace.

    `time_chart` is None if no time is known: the browser sent none, or all were 0.
    """

    score_chart: Markup
    time_chart: Markup | None
    longest_seconds: float
    even_pace_seconds: float


def draw_report_charts(
    report: ScoreReport,
    graded_items: Sequence[GradedItem],
    target_points: int | None,
    time_limit_seconds: float,
) -> ReportCharts:
    """Return all charts of a report; `time_limit_seconds` is the time limit of the whole paper."""
    longest = max((m.seconds_spent for m in graded_items), default=0.0)
    even = time_limit_seconds / max(len(graded_items), 1)
    return ReportCharts(
        score_chart=draw_score_range_chart(report, target_points),
        time_chart=draw_question_time_chart(graded_items, longest, even) if longest else None,
        longest_seconds=longest,
        even_pace_seconds=even,
    )


def draw_score_range_chart(report: ScoreReport, target_points: int | None) -> Markup:
    """Return the chart of the score with its range; `target_points` is in points."""
    target_text = f"your target {target_points}" if target_points else ""
    score = ScoreRange(
        score=report.score,
        low=report.low_points if report.is_conclusive else report.score,
        high=report.high_points if report.is_conclusive else report.score,
        max_score=report.question_count,
        target=target_points or 0,
        target_text=target_text,
    )
    alt_text = f"{format_points_rounded(report.score)} of {report.question_count}"
    if report.is_conclusive:
        alt_text += (
            f"; on a similar exam probably {report.low_points:.0f} to {report.high_points:.0f}"
            f" of {report.question_count}"
        )
    return draw_score_range(
        score, f"{alt_text}; {target_text}" if target_text else alt_text, (0, report.question_count)
    )


def draw_question_time_chart(
    graded_items: Sequence[GradedItem], longest_seconds: float, even_pace_seconds: float
) -> Markup:
    """Return the chart of seconds per question; × marks wrong ones, a line marks the even pace."""
    slot_width = 100 / (len(graded_items) or 1)
    marks: list[str] = []
    for index, item in enumerate(graded_items):
        bar_height = _BARS_HEIGHT * item.seconds_spent / longest_seconds
        css_class = "fill" if item.score >= 1 else "bad-f"
        marks.append(
            draw_rect_in_percent(
                css_class,
                slot_width * (index + 0.15),
                _BARS_BASE_Y - bar_height,
                slot_width * 0.7,
                bar_height,
            )
        )
        if item.score < 1:
            marks.append(draw_text("×", slot_width * (index + 0.5), 81, "m bad-f"))
    if even_pace_seconds <= longest_seconds:
        even_y = _BARS_BASE_Y - _BARS_HEIGHT * even_pace_seconds / longest_seconds
        marks.append(draw_line("dash", 0, even_y, 100, even_y))
    marks += [draw_text("1", 0, 100), draw_text(str(len(graded_items)), 100, 100, "e")]
    alt_text = f"Seconds per question, {len(graded_items)} questions; the longest took {longest_seconds:.0f} seconds"
    return build_svg_element(marks, 108, alt_text)


MAX_TREND_EXAMS = 12
_SCORE_PLOT_AREA = PlotArea(Box(0, 6.0, 87, 120.0), SHARE_AXIS)


@dataclasses.dataclass(frozen=True, slots=True)
class PastSitting:
    sitting_id: int
    title: str
    is_full_exam: bool
    started_at: dt.datetime
    score: float
    question_count: int
    answered_count: int
    minutes: float
    ended_by_clock: bool

    @property
    def score_share(self) -> float:
        """The score as a share, 0..1."""
        return self.score / self.question_count if self.question_count else 0.0

    @property
    def similar_score_range(self) -> tuple[float, float] | None:
        """The score range of a similar paper, as shares.

        None if too few of its questions were answered.
        """
        if not is_paper_answered_enough_to_compare(self.answered_count, self.question_count):
            return None
        low, high = compute_score_range_of_similar_exam(self.score, self.question_count)
        return low / self.question_count, high / self.question_count


@dataclasses.dataclass(frozen=True, slots=True)
class ExamScoreTrend:
    """The chart, and a sentence about the last two full exams."""

    svg: Markup
    sentence: str


def build_exam_score_trend(
    sittings: Sequence[PastSitting],
    target_percent: int | None,
    study_day_of: Callable[[dt.datetime], dt.date],
) -> ExamScoreTrend | None:
    """Return the trend of the last sittings, given newest first; None without any."""
    if not sittings:
        return None
    last = list(reversed(sittings[:MAX_TREND_EXAMS]))
    sentence = _describe_last_two_exams(sittings)
    return ExamScoreTrend(
        _draw_trend(last, target_percent, study_day_of, f"{sentence} The table has each."), sentence
    )


def _describe_last_two_exams(finished: Sequence[PastSitting]) -> str:
    full_exams = [past for past in finished if past.is_full_exam and past.similar_score_range]
    if len(full_exams) < 2:
        has_range = any(past.similar_score_range for past in finished)
        line = "; the line through it is the likely range" if has_range else ""
        return f"Each point is one exam{line}."
    latest, previous = full_exams[:2]
    previous_percent, latest_percent = (
        format_percent(past.score_share) for past in (previous, latest)
    )
    if _ranges_overlap(latest.similar_score_range, previous.similar_score_range):
        return (
            f"Your last two full exams: {previous_percent}, then {latest_percent}. "
            "Their ranges overlap, so the difference may be chance."
        )
    comparison = "better" if latest.score_share > previous.score_share else "worse"
    return (
        f"Your last full exam, {latest_percent}, was clearly {comparison} than the one before, "
        f"{previous_percent}."
    )


def _ranges_overlap(one: tuple[float, float] | None, other: tuple[float, float] | None) -> bool:
    return bool(one and other and one[0] <= other[1] and other[0] <= one[1])


def _draw_trend(
    last: Sequence[PastSitting],
    target_percent: int | None,
    day_of: Callable[[dt.datetime], dt.date],
    alt_text: str,
) -> Markup:
    marks = _SCORE_PLOT_AREA.draw_gridlines_with_labels(format_percent)
    if target_percent:
        target_y = _SCORE_PLOT_AREA.y_pixels(target_percent / 100)
        marks.append(draw_line("dash", 0, target_y, _SCORE_PLOT_AREA.box.width, target_y))
    for index, past in enumerate(last):
        x = _SCORE_PLOT_AREA.box.width * (index + 0.5) / len(last)
        if past.similar_score_range:
            low, high = (_SCORE_PLOT_AREA.y_pixels(share) for share in past.similar_score_range)
            marks.append(draw_line("thin", x, high, x, low))
        marks.append(
            draw_dot(
                "ink" if past.is_full_exam else "hole",
                x,
                _SCORE_PLOT_AREA.y_pixels(past.score_share),
                5,
            )
        )
        if past in (last[0], last[-1]):
            day = day_of(past.started_at)
            marks.append(draw_text(format_short_date(day), x, 146, "m"))
    return build_svg_element(marks, 150, alt_text)
