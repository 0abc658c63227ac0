"""The tasks of today's list in words, for Today, the plan and the end of a run."""

import dataclasses

from app.clock import round_minutes
from app.content.library import Library
from app.study_plan.day_list import PageToRead, TickedTask
from app.web.formatting import format_count


@dataclasses.dataclass(frozen=True, slots=True)
class TaskView:
    """A task of the list in words. `names` are titles of the course that follow the title.

    `address` is empty for practice, which a form starts. `minutes` are those of the whole task.
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
    "begun": "You have begun it",
    "missed in the mock exam": "You missed questions on it in the mock exam",
    "missed in the placement test": "You missed questions on it in the placement test",
    "weak": "Most to gain here",
}


def _read_detail(task: TickedTask, page: PageToRead) -> str:
    parts = [f"{task.done} of {task.total} read"] if task.done else []
    parts += [_REASONS[page.reason]] + (["essentials only"] if page.short else [])
    return " · ".join(parts)


def view_task(task: TickedTask, library: Library) -> TaskView:
    """Return a task for the page; until it is done, with those of its pages that are not read."""
    minutes, done = round_minutes(task.task.minutes), task.is_done
    if task.kind == "read":
        pages = [page for page in task.unread or task.task.pages if page.slug in library.topics]
        short = bool(pages) and pages[0].short
        if done and task.total > 1:
            return TaskView("read", f"{format_count(task.total, 'page')} read", "", minutes, done)
        return TaskView(
            "read",
            "Read",
            "Read",
            minutes,
            done,
            tuple(library.topics[page.slug].title for page in pages),
            "" if done or not pages else _read_detail(task, pages[0]),
            f"/concepts/{pages[0].slug}{'?route=short' if short else ''}" if pages else "/course",
        )
    if task.kind == "mock":
        exam = library.exams.get(task.task.exam)
        names = (exam.title,) if exam else ("Mock exam",)
        detail = f"{format_count(exam.questions, 'question')}, as on the day" if exam else ""
        title = "Took" if done else "Take"
        return TaskView(
            "mock", title, "Take", minutes, done, names, detail, f"/exams/{task.task.exam}"
        )
    begun = f"{task.done} of {task.total} done" if task.done else ""
    noun = "question" if task.kind == "practice" else "card"
    count, left = format_count(task.total, noun), format_count(task.total - task.done, noun)
    title, past, detail = {
        "practice": ("Answer {}", "{} answered", "What you read, missed or were rarely asked"),
        "new": ("Learn {}", "{} learned", "New, from what you read and what weighs most"),
        "review": ("Review {}", "{} reviewed", "Those you would forget otherwise"),
    }[task.kind]
    return TaskView(
        kind=task.kind,
        title=past.format(count) if done else title.format(count),
        button=title.format(left),
        minutes=minutes,
        is_done=done,
        detail="" if done else begun or detail,
        address="" if task.kind == "practice" else f"/flashcards?task={task.kind}",
    )
