"""What to do next: after an answer, after a run, and on the list of the day."""

import collections
import dataclasses
import itertools
import math
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import quote

from app.clock import round_minutes
from app.content.course_facts import map_objectives_to_domains
from app.content.library import Library
from app.markup.model import Topic
from app.markup.text import BOUNDARY, ENDS, UNSPACED_ENDS, mark_unspaced_letters
from app.study_plan.day_list import PageToRead, TaskProgress
from app.study_plan.loader import StudyPlan
from app.web.formatting import NBSP, format_count_with_noun


@dataclasses.dataclass(frozen=True, slots=True)
class TopicResult:
    """A topic of which `count` questions were asked, and all were fully right."""

    title: str
    count: int


@dataclasses.dataclass(frozen=True, slots=True)
class DomainResult:
    """How a domain went; `weight` is its share of the exam."""

    title: str
    weight: float
    right: int
    count: int

    @property
    def exam_share_at_risk(self) -> float:
        """The share of the exam that is lost if all of the domain goes like this."""
        return self.weight * (self.count - self.right) / self.count


@dataclasses.dataclass(frozen=True, slots=True)
class MissedQuestion:
    """A question that was not fully right, with its place in the run or paper, from 1."""

    place: int
    topic: str


@dataclasses.dataclass(frozen=True, slots=True)
class RunSummary:
    """How a run went; `missed` is in its order.

    `costliest_domain` is that whose misses cost most in the exam, None if nothing was missed.
    """

    topics_without_miss: tuple[TopicResult, ...]
    missed: tuple[MissedQuestion, ...]
    costliest_domain: DomainResult | None = None


def summarize_run(
    library: Library,
    scores: Mapping[str, float],
    items: list[str],
) -> RunSummary:
    """Return the summary; `scores` has the answered questions, `items` all in their order."""
    scores_by_topic: dict[str, list[float]] = collections.defaultdict(list)
    for item in sort_in_course_order(library, scores):
        scores_by_topic[library.questions[item].topic].append(scores[item])
    return RunSummary(
        topics_without_miss=tuple(
            TopicResult(library.topics[slug].title, len(topic_scores))
            for slug, topic_scores in scores_by_topic.items()
            if min(topic_scores) >= 1
        ),
        missed=tuple(
            MissedQuestion(place, library.topics[library.questions[item].topic].title)
            for place, item in enumerate(items, 1)
            if scores.get(item, 1) < 1
        ),
        costliest_domain=_costliest_domain(library, scores),
    )


def _costliest_domain(library: Library, scores: Mapping[str, float]) -> DomainResult | None:
    domain_of = map_objectives_to_domains(library)
    results = []
    for domain in library.syllabus.domains:
        domain_scores = [
            score
            for item, score in scores.items()
            if library.questions[item].find_domain(domain_of) == domain.number
        ]
        if domain_scores:
            right = sum(score >= 1 for score in domain_scores)
            results.append(DomainResult(domain.title, domain.weight, right, len(domain_scores)))
    costliest = max(results, key=lambda result: result.exam_share_at_risk, default=None)
    return costliest if costliest and costliest.exam_share_at_risk else None


def sort_in_course_order(library: Library, items: Iterable[str]) -> list[str]:
    """Return the questions in the order in which the course teaches their topics."""
    known = [item for item in items if item in library.questions]
    return sorted(known, key=lambda item: _learning_position(library, item))


class LearningPosition(NamedTuple):
    """Where the course asks a question: a sort key."""

    topic_index: int
    topic: str
    question_index: int


def _learning_position(library: Library, item: str) -> LearningPosition:
    topics, slug = library.syllabus.topics, library.questions[item].topic
    questions = library.topics[slug].questions
    topic_index = topics.index(slug) if slug in topics else len(topics)
    question_index = questions.index(item) if item in questions else len(questions)
    return LearningPosition(topic_index, slug, question_index)


_WORD = re.compile(r"[^\W_]{2,}")
_SENTENCE_END = re.compile(rf"(?<=[{ENDS};:])\s+|(?<=[{UNSPACED_ENDS}])|\n(?=[^\W\d_a-z]|“)")
_BEFORE_A_STOP = re.compile(r"\s+(?=[,.;:!?)])")
_PLAIN_WORD = re.compile("[\\w,.'\u2019%/-]+")
_MOST_WORDS = 6  # that a browser has to find on the page
_LEAST_WORDS = 2


@dataclasses.dataclass(frozen=True, slots=True)
class PageSentence:
    """A sentence of a page, and the anchor of its section."""

    anchor: str
    text: str

    @property
    def fragment(self) -> str:
        """The end of a URL: a browser marks the sentence, or else goes to its section."""
        text = self.text
        if text.endswith(";"):  # the row of a table: a browser finds only text within one cell
            text = max(text.rstrip(";").split(", "), key=len)
        # A formula reads differently on the page.
        words = list(itertools.takewhile(_PLAIN_WORD.fullmatch, text.split()[:_MOST_WORDS]))
        if len(words) < _LEAST_WORDS:
            return f"#{self.anchor}"
        # A hyphen has a meaning of its own in a text fragment.
        return f"#{self.anchor}:~:text={quote(' '.join(words), safe='').replace('-', '%2D')}"


def find_most_related_sentence(topic: Topic, stem: str, answer: str) -> PageSentence | None:
    """Return the sentence that shares the rarest words with a question; None if none does.

    The words of the right `answer` and its explanation count twice as much as those of the stem.
    """
    passages = [
        PageSentence(section.anchor, _BEFORE_A_STOP.sub("", " ".join(sentence.split())))
        for section in topic.sections
        if section.anchor
        for sentence in _SENTENCE_END.split(section.plain)
    ]
    stems_by_sentence = [_distinct_word_stems(passage.text) for passage in passages]
    sentences_with = collections.Counter(
        word for sentence in stems_by_sentence for word in sentence
    )
    weights = dict.fromkeys(_distinct_word_stems(stem), 1) | dict.fromkeys(
        _distinct_word_stems(answer), 2
    )
    best, closest = 0.0, None
    for passage, sentence in zip(passages, stems_by_sentence, strict=True):
        shared = sentence & weights.keys()
        rarity = sum(
            weights[w] * math.log(len(stems_by_sentence) / sentences_with[w]) for w in shared
        )
        score = rarity / math.sqrt(8 + len(sentence))  # a long sentence has more words by chance
        if score > best:
            best, closest = score, passage
    return closest


def _distinct_word_stems(text: str) -> frozenset[str]:
    """Return the words of a text without the endings of plurals, or pairs of letters."""
    parts = mark_unspaced_letters(text.lower()).split(BOUNDARY)
    pairs = (a + b for a, b in itertools.pairwise(filter(None, parts)) if len(a + b) == 2)
    words = (word.rstrip("s") for part in parts for word in _WORD.findall(part))
    return frozenset((*words, *pairs))


@dataclasses.dataclass(frozen=True, slots=True)
class TaskView:
    """A task of the list in words. `names` are titles of the course.

    They follow the title, except of several pages, which are named below it. `address` is empty
    for practice, which a form starts. The title and `minutes` are about what is left, or about the
    whole task once it is done.
    """

    kind: str
    title: str
    button: str
    minutes: int
    is_done: bool
    names: tuple[str, ...] = ()
    detail: str = ""
    address: str = ""


_REASONS = {
    "begun": "You started it",
    "missed in the mock exam": "Missed in the mock exam",
    "missed in the placement test": "Missed in the placement test",
    "weak": "",
}


def _describe_reading(task: TaskProgress, page: PageToRead, library: Library) -> str:
    reason = _REASONS[page.reason]
    if reason and page.required_by in library.topics:
        title = library.topics[page.required_by].title
        missed = f"where you missed a question {page.reason.removeprefix('missed ')}"
        why = "which you started" if page.reason == "begun" else missed
        reason = f"Needed for “{title}”, {why}"
    parts = [reason, "Essentials only" if page.short else ""]
    parts += [f"{task.done} of {task.total} pages read"] if task.done else []
    return f"{NBSP}· ".join(filter(None, parts))


def _describe_where(task: TaskProgress) -> str:
    """Return what to add to the count of questions that are done, if some were met on pages."""
    if not task.on_pages:
        return ""
    counted = f"{task.on_pages} of them " if task.on_pages < task.done else ""
    return f", {counted}{'on its page' if task.on_pages == 1 else 'on their pages'}"


def view_plan(plan: StudyPlan | None, library: Library) -> list[TaskView]:
    """Return the tasks of the day; a placement test that was taken before them leads."""
    if plan is None:
        return []
    tasks = [build_task_view(task, library) for task in plan.tasks]
    if minutes := round_minutes(plan.placement_minutes):
        tasks.insert(0, TaskView("placement", "Placement test taken", "", minutes, is_done=True))
    return tasks


def build_task_view(task: TaskProgress, library: Library) -> TaskView:
    """Return a task as the page shows it; until it is done, with its unread pages."""
    is_done = task.is_done
    minutes = round_minutes(task.task.minutes if is_done else task.minutes_left)
    if task.kind == "read":
        pages = [page for page in task.unread or task.task.pages if page.slug in library.topics]
        short = bool(pages) and pages[0].short
        if is_done and task.total > 1:
            title = f"{format_count_with_noun(task.total, 'page')} read"
            return TaskView("read", title, "", minutes, is_done)
        return TaskView(
            "read",
            f"Read {format_count_with_noun(len(pages), 'page')}" if len(pages) > 1 else "Read",
            "Read",
            minutes,
            is_done,
            tuple(library.topics[page.slug].title for page in pages),
            "" if is_done or not pages else _describe_reading(task, pages[0], library),
            f"/concepts/{pages[0].slug}{'?route=short' if short else ''}" if pages else "/course",
        )
    if task.kind == "mock":
        exam = library.exams.get(task.task.exam)
        names = (exam.title,) if exam else ("Mock exam",)
        detail = (
            f"{format_count_with_noun(exam.questions, 'question')}, as on the day" if exam else ""
        )
        title = "Took" if is_done else "Take"
        return TaskView(
            "mock", title, "Take", minutes, is_done, names, detail, f"/exams/{task.task.exam}"
        )
    progress_text = ", ".join(
        [f"{task.done} of {task.total} done{_describe_where(task)}"] * (task.done > 0)
        + [f"{task.begun} of {task.total} started"] * (task.begun > 0)
    )
    noun = "question" if task.kind == "practice" else "card"
    count_text = format_count_with_noun(task.total, noun)
    left_text = format_count_with_noun(task.total - task.done, noun)
    title, done_title, detail = {
        "practice": (
            "Answer {}",
            "{} answered",
            "About recent pages, past mistakes and other topics",
        ),
        "new": (
            "Learn {}",
            "{} learned",
            "From pages you read and questions you missed",
        ),
        "review": ("Review {}", "{} reviewed", "Due today"),
    }[task.kind]
    return TaskView(
        kind=task.kind,
        title=done_title.format(count_text) if is_done else title.format(left_text),
        button=title.format(left_text),
        minutes=minutes,
        is_done=is_done,
        detail="" if is_done else progress_text or detail,
        address="" if task.kind == "practice" else f"/flashcards?task={task.kind}",
    )
