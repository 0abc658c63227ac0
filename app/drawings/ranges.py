"""A score on its scale: what is sure, what is likely, the mark, the target."""

import dataclasses

from markupsafe import Markup

from app.drawings.svg import line, rect, svg_root, text

_TOP, _HEIGHT = 20, 18
_MARK = 1.8


@dataclasses.dataclass(frozen=True, slots=True)
class ScoreRange:
    """A score of `of`, most likely between `low` and `high`; `target` 0 for none."""

    score: float
    low: float
    high: float
    of: float
    target: float = 0.0
    target_words: str = ""


def draw_score(score: ScoreRange, says: str, ticks: tuple[float, ...]) -> Markup:
    """Draw it; `ticks` are named below, the first at the left, the last at the end."""
    low, high = _at(score.low, score), _at(score.high, score)
    left = min(max(_at(score.score, score) - _MARK / 2, 0.0), 100 - _MARK)
    marks = [
        rect("bg", 0, _TOP, 100, _HEIGHT),
        rect("fill", 0, _TOP, low, _HEIGHT),
        rect("none", low, _TOP, high - low, _HEIGHT),
        line("edge", high, _TOP, high, _TOP + _HEIGHT),
        rect("mark edge", left, _TOP - 3, _MARK, _HEIGHT + 6),
    ]
    if 0 < score.target <= score.of:
        marks += _target(score)
    for tick in ticks:
        anchor = "e" if tick == ticks[-1] else "m" if tick else ""
        marks.append(text(f"{tick:g}", _at(tick, score), 59, anchor))
    return svg_root(marks, 64, says)


def _target(score: ScoreRange) -> list[str]:
    at = _at(score.target, score)
    anchor, beside = ("e b", -6) if at > 50 else ("b", 6)
    return [
        line("cap", at, 6, at, 43),
        text(score.target_words, at, 13, anchor, dx=beside),
    ]


def _at(value: float, score: ScoreRange) -> float:
    return 100 * min(max(value / (score.of or 1), 0.0), 1.0)
