"""What blind guessing earns: the floor under every share of right answers."""

import functools
import itertools
import math

from app.questions.model import Choices, Match, Order, Question

UNKNOWN = 0.25  # one of four choices, for an objective that has no question yet
_LONGEST = 6  # the mean run of more shuffled steps is taken from this many


def guess_rate(question: Question) -> float:
    """The mean score (0..1) of an answer that is chosen blindly.

    One of k choices is right once in k times; rows of a match likewise. Boxes are
    ticked by a coin, steps shuffled, and both marked by the question's own rule.
    What has to be typed or planned (numbers, words, designs) cannot be guessed.
    """
    answer = question.answer
    if isinstance(answer, Choices):
        right = sum(option.right for option in answer.options)
        return _choices(answer.kind, right, len(answer.options), question.partial)
    if isinstance(answer, Match):
        rows = sum(bool(pair.left.plain or pair.left.html) for pair in answer.pairs)
        cells = len({pair.answer for pair in answer.pairs})
        return _match(rows, cells, question.partial)
    if isinstance(answer, Order):
        if answer.distractors or question.partial == "":
            return 1 / math.factorial(len(answer.steps) + len(answer.distractors))
        return _order(len(answer.steps), question.partial)
    return 0.0


def _choices(kind: str, right: int, all_: int, rule: str) -> float:
    if kind != "multiple":
        return 1 / max(1, all_)
    return _boxes(right, all_ - right, rule)


@functools.cache
def _boxes(right: int, wrong: int, rule: str) -> float:
    """The mean credit of ticking boxes by a coin, at least one of them."""
    total = 0.0
    for hits, misses in itertools.product(range(right + 1), range(wrong + 1)):
        ways = math.comb(right, hits) * math.comb(wrong, misses)
        if hits or misses:
            total += ways * _credit(hits, misses, (right, wrong), rule)
    return total / (math.pow(2, right + wrong) - 1)


def _credit(hits: int, misses: int, boxes: tuple[int, int], rule: str) -> float:
    right, wrong = boxes
    if rule == "each":
        return (hits + wrong - misses) / (right + wrong)
    if rule == "net":
        return max(0.0, (hits - misses) / right) if right else 0.0
    if rule == "coverage":
        return hits * hits / (right * (hits + misses)) if right else 0.0
    return float(hits == right and not misses)


def _match(rows: int, cells: int, rule: str) -> float:
    # Under `net` a wrong row takes away what a right one gives: guessing earns
    # little, and nothing is a fair name for it.
    if not rows or rule == "net":
        return 0.0
    one = 1 / max(1, cells)
    return one if rule in {"", "each"} else math.pow(one, rows)


@functools.cache
def _order(steps: int, rule: str) -> float:
    """The mean credit of a shuffled order: by the longest run, or by places."""
    if steps < 2:
        return 1.0
    if rule == "each":
        return 1 / steps
    if rule != "lcs":
        return 1 / math.factorial(steps)
    count = min(steps, _LONGEST)
    runs = [_longest_run(order) for order in itertools.permutations(range(count))]
    return (sum(runs) / len(runs) - 1) / (count - 1)


def _longest_run(order: tuple[int, ...]) -> int:
    best: list[int] = []
    for place, step in enumerate(order):
        below = [best[n] for n in range(place) if order[n] < step]
        best.append(max(below, default=0) + 1)
    return max(best)
