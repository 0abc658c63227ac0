"""What to mend first: check, statistics, reports and reviews due as one list. Pure."""

import dataclasses
from collections.abc import Iterable
from urllib.parse import quote, urlencode

from app.authoring.course.reviews import OverdueReview
from app.authoring.listing import name_of
from app.authoring.mending import ItemToFix
from app.content.live.library import Library
from app.content.problems import ContentProblem

# How bad it is: an item that is left out, then a wrong key (100), then the rest.
_ERROR, _WARNING, _REVIEW = 95, 20, 30


@dataclasses.dataclass(frozen=True, slots=True)
class AuthorTask:
    """One thing to mend: its name and address, why, and who says so."""

    weight: int
    name: str
    address: str
    why: str
    known_from: str


def tasks_of(
    problems: Iterable[ContentProblem], mends: Iterable[ItemToFix], due: Iterable[OverdueReview]
) -> list[AuthorTask]:
    """Everything to mend in one order, the worst first."""
    found = [_of_problem(p) for p in problems]
    found += [_of_mend(m) for m in mends]
    found += [_of_review(d) for d in due]
    return sorted(found, key=lambda task: (-task.weight, task.name, task.why))


def _of_problem(found: ContentProblem) -> AuthorTask:
    weight = _ERROR if found.severity == "error" else _WARNING
    address = f"/authoring?{urlencode({'at': name_of(found)})}"
    name = found.item or f"{found.path}:{found.line}"
    return AuthorTask(weight, name, address, f"{found.code} {found.message}", "check")


def _of_mend(mend: ItemToFix) -> AuthorTask:
    path, line = mend.place.path, mend.place.line
    address = f"/authoring/questions/{quote(mend.item)}"
    if mend.kind != "question":
        address = f"/authoring/pages/{path.split('/')[1]}"
    why = " ".join(reason.words for reason in mend.reasons)
    return AuthorTask(mend.reasons[0].weight, mend.item, address, why, f"learners, {path}:{line}")


def _of_review(due: OverdueReview) -> AuthorTask:
    address = f"/authoring/pages/{due.topic}" if due.topic else "/authoring/coverage"
    return AuthorTask(_REVIEW, due.name, address, f"It {due.why}.", f"review, {due.path}")


def unfinished(library: Library) -> list[tuple[str, str, str]]:
    """(address, name, status) of what is not live; items of such pages go with them."""
    authored = library.as_authored()
    waiting = {s: t for s, t in authored.topics.items() if t.status != "live"}
    found = [(f"/authoring/pages/{s}", t.title, t.status) for s, t in waiting.items()]
    found += [
        (f"/authoring/questions/{q.id}", q.id, q.status)
        for q in authored.questions.values()
        if q.status != "live" and q.topic not in waiting
    ]
    found += [
        (f"/authoring/pages/{c.topic}", c.id, c.status)
        for c in authored.cards.values()
        if c.status != "live" and c.topic not in waiting and not c.is_reverse
    ]
    return [(address, name, str(status)) for address, name, status in found]
