"""Which of two answers is better, and the sentence that says so."""

from collections.abc import Mapping, Sequence

from app.estimator.estimate import Estimate, Figure
from app.estimator.units import format_value


def is_better(one: Figure, other: Figure) -> bool:
    """Whether `one` is the better of two figures of the same name.

    Their output declares which direction is; where it does not, neither figure is
    better.

    >>> room = Output("free", "Free", "B", better="more")
    >>> is_better(Figure(room, 2e9), Figure(room, 1e9))
    True
    """
    a, b, better = _measure(one), _measure(other), one.output.better
    if a is None or b is None or a == b or not better:
        return False
    return (a > b) == (better == "more")


def lead_of(estimates: Mapping[str, Estimate]) -> str:
    """The comparison in one sentence: what fits, has more room, or takes less."""
    rest = [s for s, e in estimates.items() if e.verdict.status == "no"]
    doubtful = [s for s, e in estimates.items() if _is_doubtful(e)]
    fit = [s for s in estimates if s not in {*rest, *doubtful}]
    if max(len(fit), len(doubtful), len(rest)) < len(estimates):
        return _by_fit(fit, doubtful, rest)
    return _by_room(estimates) or _by_figure(estimates) or "There is no difference."


def _is_doubtful(estimate: Estimate) -> bool:
    """Whether it is neither sure to fit nor sure not to."""
    fits = _figure(estimate, "fits")
    return estimate.verdict.status == "tight" and fits is not None and not fits.value


def _by_fit(fit: Sequence[str], doubtful: Sequence[str], rest: Sequence[str]) -> str:
    """What fits, what may not and what does not.

    >>> _by_fit(["a"], ["b"], ["c"]), _by_fit([], ["a"], ["b"])
    ('A fits, B may not, C does not.', 'A may fit, B does not.')
    """
    said = []
    if fit:
        said.append(f"{_all(fit)} {'fits' if len(fit) == 1 else 'fit'}")
    if doubtful:
        said.append(f"{_all(doubtful)} {'may not' if fit else 'may fit'}")
    if rest:
        said.append(f"{_all(rest)} {'does' if len(rest) == 1 else 'do'} not")
    return f"{', '.join(said)}."


def _by_room(estimates: Mapping[str, Estimate]) -> str:
    free = {s.upper(): _figure(e, "free") for s, e in estimates.items()}
    found = {s: f for s, f in free.items() if f and _measure(f) is not None}
    values = {s: _measure(f) or 0.0 for s, f in found.items()}
    if len(values) < len(estimates) or len(set(values.values())) == 1:
        return ""
    best = max(values, key=lambda s: values[s])
    word = "the most" if len(values) > 2 else "more"
    rest = ", ".join(
        f"{format_value(f.value, f.unit)} in {s}" for s, f in found.items() if s != best
    )
    first = found[best]
    return f"{best} has {word} room: {format_value(first.value, first.unit)} free, against {rest}."


def _by_figure(estimates: Mapping[str, Estimate]) -> str:
    """The first figure that differs, those that matter most before all others."""
    for leading in _leading(estimates):
        found = {s.upper(): _figure(e, leading.name) for s, e in estimates.items()}
        words = {s: format_value(f.value, f.unit) for s, f in found.items() if f}
        if len(set(words.values())) > 1:
            told = ", ".join(f"{value} with {s}" for s, value in words.items())
            return f"{leading.label}: {told}."
    return ""


def _leading(estimates: Mapping[str, Estimate]) -> list[Figure]:
    first = next(iter(estimates.values()))
    return sorted(first.figures, key=lambda figure: not figure.primary)


def _figure(estimate: Estimate, name: str) -> Figure | None:
    return next((f for f in estimate.figures if f.name == name), None)


def _measure(figure: Figure) -> float | None:
    """A figure as a number to compare; None for words and what is not known."""
    value = figure.value
    return None if value is None or isinstance(value, str) else float(value)


def _all(letters: Sequence[str]) -> str:
    return " and ".join(letter.upper() for letter in letters)
