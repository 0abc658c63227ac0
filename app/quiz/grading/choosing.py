"""Grading of options: single, multiple, true or false."""

from collections.abc import Collection

from app.questions.model import Choice, Choices
from app.questions.verdict import Mark, Raw, Unreadable, Verdict, share

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def grade_choices(answer: Choices, raw: Raw, partial: str) -> Verdict | Unreadable:
    """Judge the ticked options; `answer` in the response holds their keys."""
    sent = set(raw.get("answer", ()))
    chosen = [o for o in answer.options if o.key in sent]
    if not chosen:
        return Unreadable(_nothing(answer), "Nothing was counted.")
    if len(chosen) > 1 and answer.kind != "multiple":
        return Unreadable("Choose one answer only.", "Nothing was counted.")
    return Verdict(
        score=_score(answer, {o.key for o in chosen}, partial),
        parsed={"chosen": [o.key for o in chosen]},
        marks=tuple(_mark(i, o, o.key in sent) for i, o in enumerate(answer.options)),
        said=_letters(answer, chosen),
        wanted=_letters(answer, [o for o in answer.options if o.right]),
    )


def credit(
    key: Collection[str], chosen: Collection[str], all_: int, rule: str
) -> float:
    """The score 0..1 for choosing `chosen` where `key` is right, of `all_` options.

    - `off` (and nothing): all or nothing
    - `net`: (hits − misses) ÷ number of right options, never below 0
    - `coverage`: the share of the right ones found × the share of the chosen ones
      that are right
    - `each`: the share of boxes, ticked or not, that are as they should be
    """
    key, chosen = set(key), set(chosen)
    hits, misses = len(key & chosen), len(chosen - key)
    if rule == "net":
        return share(hits - misses, len(key))
    if rule == "coverage":
        return share(hits * hits, len(key) * len(chosen))
    if rule == "each":
        return share(all_ - len(key ^ chosen), all_)
    return float(key == chosen)


def _score(answer: Choices, chosen: set[str], partial: str) -> float:
    right = {o.key for o in answer.options if o.right}
    if answer.kind != "multiple":
        return float(chosen <= right)
    return credit(right, chosen, len(answer.options), partial)


def _mark(index: int, option: Choice, chosen: bool) -> Mark:
    return Mark(
        key=option.key,
        label=LETTERS[index % len(LETTERS)],
        text=option.text,
        chosen=chosen,
        wanted_chosen=option.right,
        good=chosen == option.right,
        feedback=option.feedback,
    )


def _letters(answer: Choices, options: list[Choice]) -> str:
    places = [answer.options.index(option) for option in options]
    return ", ".join(LETTERS[p % len(LETTERS)] for p in places)


def _nothing(answer: Choices) -> str:
    if answer.kind == "multiple":
        return "No answer is ticked. Tick all that are right."
    return "No answer is chosen. Choose one."
