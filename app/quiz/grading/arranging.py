"""Grading of arrangements: steps in order, and things matched with things."""

from collections.abc import Sequence

from app.content.model import NO_TEXT, Text
from app.questions.model import Match, Order, Pair
from app.questions.verdict import Mark, Raw, Unreadable, Verdict, only, share, written


def grade_order(answer: Order, raw: Raw, partial: str) -> Verdict | Unreadable:
    """Judge an order; `place.KEY` in the response holds the place of each item.

    A place is a number from 1; an empty one leaves the item out.
    """
    places = _places(answer, raw)
    if isinstance(places, Unreadable):
        return places
    given = sorted(places, key=lambda key: places[key])
    right = [step.key for step in answer.steps]
    return Verdict(
        score=order_credit(right, given, partial),
        parsed={"order": given},
        marks=_order_marks(answer, given),
        said=f"{_in_place(right, given)} of {len(right)} steps in their place",
        wanted="",
    )


def order_credit(right: Sequence[str], given: Sequence[str], rule: str) -> float:
    """The score 0..1 of an order `given` where `right` is wanted.

    - `lcs`: the longest run of steps in the right order, less one for each item
      that is no step. One step alone is always in order, so it earns nothing:
      (length − 1 − foreign items) ÷ (steps − 1), never below 0.
    - `each`: the share of steps that stand in their place.
    - otherwise all or nothing.
    """
    if rule == "lcs" and len(right) > 1:
        foreign = len(set(given) - set(right))
        return share(_longest_common(right, given) - 1 - foreign, len(right) - 1)
    if rule == "each":
        return share(_in_place(right, given), max(len(right), len(given)))
    return float(list(right) == list(given))


def grade_match(answer: Match, raw: Raw, partial: str) -> Verdict | Unreadable:
    """Judge a matching; `pair.KEY` in the response holds the answer to each left cell.

    Each row counts the same unless the item wants all or nothing; under `net` a wrong
    row takes away what a right one gives, an empty one nothing.
    """
    rows = [pair for pair in answer.pairs if pair.left.plain or pair.left.html]
    rows = _shown(answer, rows)
    known = {pair.answer: pair.right for pair in answer.pairs}
    given = {r.key: only(raw, f"pair.{r.key}") for r in rows}
    given = {key: value if value in known else "" for key, value in given.items()}
    if not any(given.values()):
        return Unreadable("Nothing is matched.", "Choose a match for each row.")
    good = sum(given[row.key] == row.answer for row in rows)
    wrong = sum(1 for row in rows if given[row.key] not in {"", row.answer})
    return Verdict(
        score=_match_credit(good, wrong, len(rows), partial),
        parsed={"pairs": given},
        marks=tuple(_row(row, given[row.key], known) for row in rows),
        said=f"{good} of {len(rows)} rows right",
        wanted="",
    )


def _match_credit(good: int, wrong: int, rows: int, rule: str) -> float:
    if rule == "off":
        return float(good == rows)
    if rule == "coverage":
        return share(good * good, rows * (good + wrong))
    return share(good - wrong if rule == "net" else good, rows)


def _shown(answer: Match, rows: list[Pair]) -> list[Pair]:
    place = {key: index for index, key in enumerate(answer.shown_left)}
    return sorted(rows, key=lambda row: place.get(row.key, len(place)))


def _row(row: Pair, given: str, known: dict[str, Text]) -> Mark:
    return Mark(
        key=row.key,
        label=row.left.plain,
        text=row.left,
        chosen=bool(given),
        wanted_chosen=True,
        good=given == row.answer,
        given=known.get(given, NO_TEXT),
        wanted=row.right,
        feedback=row.why,
    )


def _places(answer: Order, raw: Raw) -> dict[str, int] | Unreadable:
    items = {item.key: item for item in (*answer.steps, *answer.distractors)}
    places: dict[str, int] = {}
    for key, item in items.items():
        typed = only(raw, f"place.{key}")
        if not typed:
            continue
        if not (typed.isascii() and typed.isdigit()) or len(typed) > 3:
            return Unreadable(f"“{typed}” is not a place; write a number from 1.")
        taken = [k for k, place in places.items() if place == int(typed)]
        if taken:
            both = f"“{items[taken[0]].text.plain}” and “{item.text.plain}”"
            return Unreadable(
                f"{both} both stand at place {typed}.", "Move one of them."
            )
        places[key] = int(typed)
    if not places:
        return Unreadable("No step has a place.", "Give each step its place.")
    return places


def _order_marks(answer: Order, given: list[str]) -> tuple[Mark, ...]:
    """The steps in the right order, then the items that are no steps."""
    place = {key: number for number, key in enumerate(given, 1)}
    steps = [
        _step(s.key, s.text, s.feedback, str(n), place.get(s.key))
        for n, s in enumerate(answer.steps, 1)
    ]
    foreign = [
        _step(d.key, d.text, d.feedback, "", place.get(d.key))
        for d in answer.distractors
    ]
    return (*steps, *foreign)


def _step(key: str, text: Text, why: Text, wanted: str, given: int | None) -> Mark:
    return Mark(
        key=key,
        label=wanted,
        text=text,
        chosen=given is not None,
        wanted_chosen=bool(wanted),
        good=(str(given) if given else "") == wanted,
        given=written(str(given) if given else ""),
        wanted=written(wanted),
        feedback=why,
    )


def _in_place(right: Sequence[str], given: Sequence[str]) -> int:
    return sum(a == b for a, b in zip(right, given, strict=False))


def _longest_common(one: Sequence[str], other: Sequence[str]) -> int:
    lengths = [0] * (len(other) + 1)
    for a in one:
        diagonal = 0
        for index, b in enumerate(other, 1):
            above = lengths[index]
            same = diagonal + 1 if a == b else max(above, lengths[index - 1])
            lengths[index], diagonal = same, above
    return lengths[-1]
