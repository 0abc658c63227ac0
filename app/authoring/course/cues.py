"""Whether choices give themselves away: each cue beside chance, and all of them fitted.

Somebody who knows nothing and follows a cue is right more often than chance where the
authors let it slip. A regression over all cues, tried on questions that it was not
fitted to, says how far all of them together lead.
"""

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from app.content.identity import normalize_text
from app.questions import kinds
from app.questions.model import Question

_FOLDS = 5
_ROUNDS = 200
_STEP = 0.5
_SHRINK = 0.01  # keeps weights small where few questions speak for them
_SPECIFIC = re.compile(r"\d|[A-Z]{2,}|\b(?:only|each|per|because|while|which)\b")


@dataclasses.dataclass(frozen=True, slots=True)
class AnswerCue:
    """How often a rule without knowledge is right, and how often chance is (0..1)."""

    name: str
    right: float
    chance: float
    questions: int

    @property
    def noise(self) -> float:
        """How far from chance the share may lie by chance, twice the standard error."""
        spread = self.chance * (1 - self.chance) / max(1, self.questions)
        return 2 * math.sqrt(spread)

    @property
    def tells(self) -> bool:
        """Whether the cue leads further than chance explains."""
        return self.right - self.chance > self.noise


@dataclasses.dataclass(frozen=True, slots=True)
class _ChoiceItem:
    stem: frozenset[str]
    options: tuple[str, ...]
    right: int


_Measure = Callable[[_ChoiceItem, int], float]


def _shared(item: _ChoiceItem, at: int) -> float:
    return float(len(item.stem & _words(item.options[at])))


def _specific(item: _ChoiceItem, at: int) -> float:
    return float(len(_SPECIFIC.findall(item.options[at])))


_CUES: Mapping[str, _Measure] = {
    "the longest": lambda item, at: float(len(item.options[at])),
    "the shortest": lambda item, at: -float(len(item.options[at])),
    "the first": lambda _, at: -float(at),
    "the most specific": _specific,
    "most words of the stem": _shared,
}


def cues(questions: Iterable[Question]) -> tuple[AnswerCue, ...]:
    """Each cue over the questions of a bank; empty for a bank without choices."""
    bank = list(questions)
    items = [_item(q) for q in bank if q.type == "single" and not q.computed]
    chosen = [item for item in items if item is not None]
    found = []
    if chosen:
        chance = sum(1 / len(i.options) for i in chosen) / len(chosen)
        for name, measure in _CUES.items():
            right = sum(_luck(item, _scores(item, measure)) for item in chosen)
            found.append(AnswerCue(name, right / len(chosen), chance, len(chosen)))
        fitted = _cross_validated(chosen)
        found.append(AnswerCue("all of these, fitted", fitted, chance, len(chosen)))
    judged = [_item(q) for q in bank if q.type == "true-false"]
    pairs = [item for item in judged if item is not None]
    if pairs:
        false = sum(i.options[i.right].casefold().startswith("false") for i in pairs)
        found.append(AnswerCue("always False", false / len(pairs), 0.5, len(pairs)))
    return tuple(found)


def _item(question: Question) -> _ChoiceItem | None:
    options = kinds.type_of(question).options(question.answer)
    right = [place for place, option in enumerate(options) if option.right]
    if len(right) != 1 or len(options) < 2:
        return None
    words = tuple(option.words for option in options)
    return _ChoiceItem(_words(question.stem.plain), words, right[0])


def _words(text: str) -> frozenset[str]:
    return frozenset(w for w in normalize_text(text).split() if len(w) > 3)


def _scores(item: _ChoiceItem, measure: _Measure) -> list[float]:
    return [measure(item, at) for at in range(len(item.options))]


def _luck(item: _ChoiceItem, scores: Sequence[float]) -> float:
    """The chance of a right choice among those that score highest."""
    best = [at for at, score in enumerate(scores) if score == max(scores)]
    return (item.right in best) / len(best)


def _features(item: _ChoiceItem) -> list[list[float]]:
    """Each option's cues, as distances from the mean of its question."""
    rows = [_scores(item, measure) for measure in _CUES.values()]
    made = []
    for row in rows:
        mean = sum(row) / len(row)
        spread = math.sqrt(sum((x - mean) ** 2 for x in row) / len(row)) or 1.0
        made.append([(x - mean) / spread for x in row])
    return [list(option) for option in zip(*made, strict=True)]


def _cross_validated(items: Sequence[_ChoiceItem]) -> float:
    """The share of right choices on questions that the weights were not fitted to."""
    read = [(_features(item), item) for item in items]
    right = 0.0
    for fold in range(_FOLDS):
        known = [pair for n, pair in enumerate(read) if n % _FOLDS != fold]
        weights = _learned(known)
        for n, (rows, item) in enumerate(read):
            if n % _FOLDS == fold:
                right += _luck(item, [_dot(weights, row) for row in rows])
    return right / len(items)


def _learned(known: Sequence[tuple[list[list[float]], _ChoiceItem]]) -> list[float]:
    """Weights of a choice among options, by steps along the gradient."""
    weights = [0.0] * len(_CUES)
    for _ in range(_ROUNDS if known else 0):
        slope = [-_SHRINK * w for w in weights]
        for rows, item in known:
            shares = _softmax([_dot(weights, row) for row in rows])
            for at, row in enumerate(rows):
                error = ((at == item.right) - shares[at]) / len(known)
                slope = [s + error * x for s, x in zip(slope, row, strict=True)]
        weights = [w + _STEP * s for w, s in zip(weights, slope, strict=True)]
    return weights


def _softmax(scores: Sequence[float]) -> list[float]:
    powers = [math.exp(score - max(scores)) for score in scores]
    return [power / sum(powers) for power in powers]


def _dot(weights: Sequence[float], row: Sequence[float]) -> float:
    return sum(w * x for w, x in zip(weights, row, strict=True))
