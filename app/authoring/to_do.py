"""What to fix first."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote, urlencode

from app.authoring.course_report import OverdueReview
from app.authoring.item_statistics import (
    MIN_RESPONSES,
    ItemStatistics,
    never_chosen,
    probable_wrong_key,
)
from app.authoring.problem_list import problem_key
from app.content.library import Library
from app.markup.model import SourceLocation
from app.markup.problems import ContentProblem
from app.questions import types
from app.questions.model import Question

_NEAR_GUESSING = 5.0  # points of facility above the guess score
_TOO_EASY = 95.0
_BACKWARDS = -10.0  # closer to zero, the sign is mostly chance
_FORGETFUL = 0.3  # lapses per review
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclasses.dataclass(frozen=True, slots=True)
class FixReason:
    """A sign that something is wrong; `weight` 0..100 says how sure and how bad."""

    weight: int
    words: str


@dataclasses.dataclass(frozen=True, slots=True)
class ItemToFix:
    """An item to fix: its place in the source, and every reason, worst first."""

    item: str
    kind: str
    place: SourceLocation
    reasons: tuple[FixReason, ...]

    @property
    def weight(self) -> int:
        """The weight of its worst reason, plus a little for each other one."""
        return self.reasons[0].weight * 10 + len(self.reasons)


def blind_guess_percent(question: Question) -> float | None:
    """Return the percentage that random guessing scores; None if undefined."""
    return types.type_of(question).guess_score(question.answer)


def option_letters(question: Question) -> dict[str, str]:
    """Return a letter for each option key, in authored order."""
    kind = types.type_of(question)
    if not kind.chosen:
        return {}
    keys = [option.key for option in kind.options(question.answer)]
    return dict(zip(keys, LETTERS, strict=False))


def statistics_reasons(question: Question, found: ItemStatistics | None) -> list[FixReason]:
    """Return what the first answers say against a question; nothing below ten of them."""
    if found is None or not found.enough:
        return []
    return [*_option_reasons(question, found), *_mark_reasons(question, found)]


def sort_by_severity(mends: Iterable[ItemToFix]) -> list[ItemToFix]:
    """Return the items with a reason, worst first."""
    wanted = [m for m in mends if m.reasons]
    return sorted(wanted, key=lambda m: (-m.weight, m.item))


def item_to_fix(item: str, kind: str, place: SourceLocation, why: Sequence[FixReason]) -> ItemToFix:
    """Return an item with its reasons in order."""
    ordered = sorted(why, key=lambda reason: -reason.weight)
    return ItemToFix(item, kind, place, tuple(ordered))


def report_reason(count: int) -> FixReason:
    """Return the reason for learner reports. Few reports are false alarms, so its weight is high."""
    who = "A learner reports" if count == 1 else f"{count} reports of"
    return FixReason(75, f"{who} a problem.")


def unregraded_reason(count: int) -> FixReason:
    """Return the reason for answers that keep a wrong score until an author decides."""
    who = "one answer" if count == 1 else f"{count:,} answers"
    return FixReason(90, f"Its key was mended: {who} would score otherwise by it.")


def card_reasons(reviews: int, lapses: int, leeches: int) -> list[FixReason]:
    """Return what reviews say against a card."""
    found = []
    if leeches:
        who = "One learner" if leeches == 1 else f"{leeches} learners"
        found.append(FixReason(60, f"{who} forgot it eight times: read it against its page."))
    if reviews >= MIN_RESPONSES and lapses > _FORGETFUL * reviews:
        words = f"Forgotten in {lapses} of {reviews} reviews: part or reword it."
        found.append(FixReason(40, words))
    return found


def _option_reasons(question: Question, found: ItemStatistics) -> list[FixReason]:
    kind = types.type_of(question)
    if not kind.chosen:
        return []
    letters = option_letters(question)
    options = kind.options(question.answer)
    right = [o.key for o in options if o.right]
    wrong = [o.key for o in options if not o.right]
    made = []
    better = probable_wrong_key(found, right)
    if better is not None and better in letters:
        words = f"Probably a wrong key: stronger learners choose {letters[better]}."
        made.append(FixReason(100, words))
    idle = [letters[key] for key in never_chosen(found, wrong)]
    if idle:
        verb = "draws" if len(idle) == 1 else "draw"
        made.append(FixReason(25, f"{_join_names(idle)} {verb} no one."))
    # Several keys have no order among them.
    return made if kind.several else made + _reasons_of_popular_options(found, right, letters)


def _reasons_of_popular_options(
    found: ItemStatistics, right: Sequence[str], letters: Mapping[str, str]
) -> list[FixReason]:
    """Return the reason if an option was chosen more often than the key."""
    counts = {o.key: o.count for o in found.options if o.key in letters}
    keyed = max((counts.get(key, 0) for key in right), default=0)
    more = [letters[k] for k, n in counts.items() if k not in right and n > keyed]
    if not more:
        return []
    verb = "is" if len(more) == 1 else "are"
    return [FixReason(45, f"{_join_names(more)} {verb} chosen more often than the key.")]


def _mark_reasons(question: Question, found: ItemStatistics) -> list[FixReason]:
    made = []
    facility = found.facility
    guess = blind_guess_percent(question)
    made += _discrimination_reasons(found.discrimination)
    if facility is None:
        return made
    if guess is not None and facility <= guess + _NEAR_GUESSING:
        words = f"Facility {facility:.0f}%, guessing alone gives {guess:.0f}%."
        made.append(FixReason(55, words))
    elif facility == 0:
        made.append(FixReason(55, "Nobody got any of it right."))
    if facility >= _TOO_EASY:
        made.append(FixReason(15, f"Facility {facility:.0f}%: tells nobody apart."))
    return made


def _discrimination_reasons(index: float | None) -> list[FixReason]:
    if index is None or index >= 0:
        return []
    shown = f"Discrimination −{abs(index):.0f}"
    if index < _BACKWARDS:
        return [FixReason(80, f"{shown}: weaker learners do better at it.")]
    return [FixReason(50, f"{shown}: it does not tell strong learners from weak.")]


def _join_names(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"


# Severity: an item that is left out, then a wrong key (100), then the rest.
_ERROR, _WARNING, _REVIEW = 95, 20, 30


@dataclasses.dataclass(frozen=True, slots=True)
class AuthorTask:
    """One thing to fix: its name and URL, the reason, and where it is known from."""

    weight: int
    name: str
    address: str
    why: str
    known_from: str


def build_author_tasks(
    problems: Iterable[ContentProblem], mends: Iterable[ItemToFix], due: Iterable[OverdueReview]
) -> list[AuthorTask]:
    """Return everything to fix in one list, worst first."""
    found = [_task_for_problem(p) for p in problems]
    found += [_task_for_item(m) for m in mends]
    found += [_task_for_review(d) for d in due]
    return sorted(found, key=lambda task: (-task.weight, task.name, task.why))


def _task_for_problem(found: ContentProblem) -> AuthorTask:
    weight = _ERROR if found.severity == "error" else _WARNING
    address = f"/authoring?{urlencode({'at': problem_key(found)})}"
    name = found.item or f"{found.path}:{found.line}"
    return AuthorTask(weight, name, address, f"{found.code} {found.message}", "check")


def _task_for_item(mend: ItemToFix) -> AuthorTask:
    path, line = mend.place.path, mend.place.line
    address = f"/authoring/questions/{quote(mend.item)}"
    if mend.kind != "question":
        address = f"/authoring/pages/{path.split('/')[1]}"
    why = " ".join(reason.words for reason in mend.reasons)
    return AuthorTask(mend.reasons[0].weight, mend.item, address, why, f"learners, {path}:{line}")


def _task_for_review(due: OverdueReview) -> AuthorTask:
    address = f"/authoring/pages/{due.topic}" if due.topic else "/authoring/coverage"
    return AuthorTask(_REVIEW, due.name, address, f"It {due.why}.", f"review, {due.path}")


def list_unfinished(library: Library) -> list[tuple[str, str, str]]:
    """Return (URL, name, status) of content that is not live; items go with their page."""
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
