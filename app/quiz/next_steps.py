"""What to do next: after an answer, after a run, and on the list of the day."""

import collections
import dataclasses
import itertools
import math
import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from app.clock import round_minutes
from app.content.course import Course
from app.content.course_facts import map_objectives_to_domains
from app.content.reading_routes import sum_reading_minutes_on_route
from app.markup.model import Topic
from app.markup.text import BOUNDARY, ENDS, UNSPACED_ENDS, add_boundaries_in_unspaced_scripts
from app.spaced_repetition.added_card_ids_and_faces import is_own_card_id
from app.study_plan.day_list import PageToRead, TaskProgress
from app.study_plan.loader import StudyPlan
from app.web.formatting import NBSP, format_count_with_noun


@dataclasses.dataclass(frozen=True, slots=True)
class FullyRightTopic:
    """A topic of which `question_count` questions were asked, and all were fully right."""

    title: str
    question_count: int


@dataclasses.dataclass(frozen=True, slots=True)
class DomainResult:
    """How a domain went; `weight` is its share of the exam."""

    title: str
    weight: float
    right_count: int
    question_count: int

    @property
    def exam_share_at_risk(self) -> float:
        """The share of the exam that is lost if all of the domain goes like this."""
        return self.weight * (self.question_count - self.right_count) / self.question_count


@dataclasses.dataclass(frozen=True, slots=True)
class MissedQuestion:
    """A question that was not fully right, with its place in the run or paper, from 1."""

    place_in_run: int
    topic_title: str


@dataclasses.dataclass(frozen=True, slots=True)
class RunSummary:
    """How a run went; `missed_questions` is in its order.

    `costliest_domain` is that whose misses cost most in the exam, None if nothing was missed.
    """

    topics_without_miss: tuple[FullyRightTopic, ...]
    missed_questions: tuple[MissedQuestion, ...]
    costliest_domain: DomainResult | None = None


def summarize_run(
    course: Course,
    scores_by_question: Mapping[str, float],
    questions_in_order: list[str],
) -> RunSummary:
    """Return the summary.

    `scores_by_question` has the answered questions, `questions_in_order` all in their order.
    """
    scores_by_topic: dict[str, list[float]] = collections.defaultdict(list)
    for item in sort_in_course_order(course, scores_by_question):
        scores_by_topic[course.questions[item].topic].append(scores_by_question[item])
    return RunSummary(
        topics_without_miss=tuple(
            FullyRightTopic(course.topics[slug].title, len(topic_scores))
            for slug, topic_scores in scores_by_topic.items()
            if min(topic_scores) >= 1
        ),
        missed_questions=tuple(
            MissedQuestion(place, course.topics[course.questions[item].topic].title)
            for place, item in enumerate(questions_in_order, 1)
            if scores_by_question.get(item, 1) < 1
        ),
        costliest_domain=_find_costliest_domain(course, scores_by_question),
    )


def _find_costliest_domain(
    course: Course, scores_by_question: Mapping[str, float]
) -> DomainResult | None:
    domain_of = map_objectives_to_domains(course)
    results = []
    for domain in course.syllabus.domains:
        domain_scores = [
            score
            for item, score in scores_by_question.items()
            if course.questions[item].find_domain(domain_of) == domain.number
        ]
        if domain_scores:
            right = sum(score >= 1 for score in domain_scores)
            results.append(DomainResult(domain.title, domain.weight, right, len(domain_scores)))
    costliest = max(results, key=lambda result: result.exam_share_at_risk, default=None)
    return costliest if costliest and costliest.exam_share_at_risk else None


def sort_in_course_order(course: Course, questions: Iterable[str]) -> list[str]:
    known = [item for item in questions if item in course.questions]
    return sorted(known, key=lambda item: _make_course_order_key(course, item))


def _make_course_order_key(course: Course, item: str) -> tuple[int, str, int]:
    """Return a key that sorts questions in the order in which the course asks them."""
    topics, slug = course.syllabus.topics, course.questions[item].topic
    questions = course.topics[slug].questions
    topic_index = topics.index(slug) if slug in topics else len(topics)
    question_index = questions.index(item) if item in questions else len(questions)
    return topic_index, slug, question_index


_LONG_WORD = re.compile(r"[^\W_]{2,}")
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
    def url_fragment(self) -> str:
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


def find_sentence_sharing_rarest_words(topic: Topic, stem: str, answer: str) -> PageSentence | None:
    """Return the sentence that shares the rarest words with a question; None if none does.

    The words of the right `answer` and its explanation count twice as much as those of the stem.
    """
    passages = [
        PageSentence(section.anchor, _BEFORE_A_STOP.sub("", " ".join(sentence.split())))
        for section in topic.sections
        if section.anchor
        for sentence in _SENTENCE_END.split(section.plain)
    ]
    stems_by_sentence = [_list_distinct_word_stems(passage.text) for passage in passages]
    sentences_with = collections.Counter(
        word for sentence in stems_by_sentence for word in sentence
    )
    weights = dict.fromkeys(_list_distinct_word_stems(stem), 1) | dict.fromkeys(
        _list_distinct_word_stems(answer), 2
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


def _list_distinct_word_stems(text: str) -> frozenset[str]:
    """Return the words of a text without the endings of plurals, or pairs of letters."""
    parts = add_boundaries_in_unspaced_scripts(text.lower()).split(BOUNDARY)
    pairs = (a + b for a, b in itertools.pairwise(filter(None, parts)) if len(a + b) == 2)
    words = (word.rstrip("s") for part in parts for word in _LONG_WORD.findall(part))
    return frozenset((*words, *pairs))


@dataclasses.dataclass(frozen=True, slots=True)
class TaskView:
    """A task of the list in words. `course_titles` are titles of the course.

    They follow the title, except of several pages, which are named below it. `url` is empty
    for practice, which a form starts. The title and `minutes` are about what is left, or about the
    whole task once it is done. `report_url` is that of a mock exam's report, if `detail` is its score.
    `needed_for` is the title of the page that requires the next one, if `detail` begins with why
    that matters.
    """

    kind: str
    title: str
    button_text: str
    minutes: int
    is_done: bool
    course_titles: tuple[str, ...] = ()
    detail: str = ""
    url: str = ""
    report_url: str = ""
    needed_for: str = ""


_TEXT_BY_READ_REASON = {
    "begun": "You started it",
    "missed in the mock exam": "Its topic cost you points in the mock exam",
    "missed in the placement test": "Missed in the placement test",
    "weak": "",
}


def _find_title_of_requiring_page(page: PageToRead, course: Course) -> str:
    """Return the title of the page for which the reason holds; empty if the page is its own."""
    is_required = (
        _TEXT_BY_READ_REASON[page.reason] and not page.is_rest and page.required_by in course.topics
    )
    return course.topics[page.required_by].title if is_required else ""


def _describe_reading(task: TaskProgress, page: PageToRead, course: Course) -> str:
    reason = _TEXT_BY_READ_REASON[page.reason]
    if _find_title_of_requiring_page(page, course):
        reason = {
            "begun": "which you started",
            "missed in the mock exam": "whose topic cost you points",
        }.get(page.reason, "where you missed a question")
    topic = course.topics[page.slug]
    is_shortened = page.short and sum_reading_minutes_on_route(topic, "short") < topic.minutes
    parts = ["" if page.is_rest else reason, "Essentials only" if is_shortened else ""]
    parts += [f"{task.done_count} of {task.total_count} pages read"] if task.done_count else []
    return f"{NBSP}· ".join(filter(None, parts))


def build_task_views(plan: StudyPlan | None, course: Course) -> list[TaskView]:
    """Return the tasks of the day; a placement test that was taken before them leads."""
    if plan is None:
        return []
    tasks = [build_task_view(task, course) for task in plan.tasks]
    if minutes := round_minutes(plan.placement_minutes):
        tasks.insert(0, TaskView("placement", "Placement test taken", "", minutes, is_done=True))
    return tasks


def build_task_view(task: TaskProgress, course: Course) -> TaskView:
    """Return a task as the page shows it; until it is done, with its unread pages."""
    is_done = task.is_done
    minutes = round_minutes(task.task.minutes if is_done else task.minutes_left)
    if task.kind == "read":
        pages = [
            page for page in task.unread_pages or task.task.pages if page.slug in course.topics
        ]
        short = bool(pages) and pages[0].short
        verb = "Read the rest of" if pages and pages[0].is_rest else "Read"
        if is_done and task.total_count > 1:
            title = f"{format_count_with_noun(task.total_count, 'page')} read"
            return TaskView("read", title, "", minutes, is_done)
        return TaskView(
            "read",
            f"{verb} {format_count_with_noun(len(pages), 'page')}" if len(pages) > 1 else verb,
            "Read",
            minutes,
            is_done,
            tuple(course.topics[page.slug].title for page in pages),
            "" if is_done or not pages else _describe_reading(task, pages[0], course),
            f"/concepts/{pages[0].slug}{'?route=short' if short else ''}" if pages else "/course",
            needed_for=""
            if is_done or not pages
            else _find_title_of_requiring_page(pages[0], course),
        )
    if task.kind == "mock":
        exam = course.exams.get(task.task.exam)
        names = (exam.title,) if exam else ("Mock exam",)
        detail = (
            f"{format_count_with_noun(exam.question_count, 'question')}, as on the day"
            if exam and not is_done
            else ""
        )
        title = "Took" if is_done else "Take"
        return TaskView(
            "mock", title, "Take", minutes, is_done, names, detail, f"/exams/{task.task.exam}"
        )
    done_text = f"{task.done_count} of {task.total_count} done"
    if task.on_page_count == task.done_count:  # practice itself was not begun
        done_text = f"{task.done_count} of these {task.total_count} answered while reading"
    progress_text = ", ".join(
        [done_text] * (task.done_count > 0)
        + [f"{task.begun_count} to repeat"] * (task.begun_count > 0)
    )
    noun = "question" if task.kind == "practice" else "card"
    rated_count = task.total_count - task.left_out_count
    left_text = format_count_with_noun(task.total_count - task.done_count, noun)
    title, done_title, detail = {
        "practice": (
            "Answer {}",
            "{} answered",
            "About recent pages, past mistakes and other topics",
        ),
        "new": (
            "Learn {}",
            "{} learned",
            "From pages you read, or where you missed a question"
            + (", or that you wrote" if any(map(is_own_card_id, task.task.cards)) else ""),
        ),
        "review": ("Review {}", "{} reviewed", "Due today"),
    }[task.kind]
    if not rated_count:
        done_title = "{} put aside or skipped"
    count_text = format_count_with_noun(rated_count or task.total_count, noun)
    return TaskView(
        kind=task.kind,
        title=done_title.format(count_text) if is_done else title.format(left_text),
        button_text=title.format(left_text),
        minutes=minutes,
        is_done=is_done,
        detail="" if is_done else progress_text or detail,
        url="" if task.kind == "practice" else f"/flashcards?task={task.kind}",
    )
