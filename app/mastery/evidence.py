"""Answers weighted by order, age and guess rate.

A first answer to an unseen question counts in full. A later answer to the same question counts if
enough time has passed, and takes over half of its weight. So a question weighs as much as one
answer however often it is answered, and mastery can recover when no unseen questions are left.
"""

import dataclasses
import datetime as dt
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from app.questions import types
from app.questions.model import Question
from app.spaced_repetition.fsrs import AT_STABILITY
from app.spaced_repetition.scheduler import SchedulerPolicy

_PARAMETERS = SchedulerPolicy().parameters
_DECAY = -_PARAMETERS[20]
_FACTOR = math.pow(AT_STABILITY, 1 / _DECAY) - 1
# Without cards, course knowledge is treated like a card that passed three scheduled reviews (2.3,
# 11, then 46 days). What is taught and understood fades more slowly than what is memorized, and
# recognition among choices lasts longest (Semb and Ellis, Knowledge Taught in School: What Is
# Remembered?, Review of Educational Research 64(2), 1994). Seven eighths last four weeks.
TAUGHT = 46.0
# The mean recall of a card between two reviews at 90%: ∫₀¹ (1 + F·x)^D dx.
_ON_SCHEDULE = (AT_STABILITY * (1 + _FACTOR) - 1) / (_FACTOR * (1 + _DECAY))


@functools.lru_cache(maxsize=16384)
def recall_chance(days: float, stability: float) -> float:
    """Return the chance (0..1) of knowing a card `days` after its last answer.

    R = (1 + F·t/S)^(−w20) with F = 0.9^(−1/w20) − 1 (FSRS-6): the closed form of
    `spaced_repetition.fsrs`. `stability` S in days.

    >>> round(recall_chance(10, 10), 6)
    0.9
    """
    return math.pow(1 + _FACTOR * max(0.0, days) / stability, _DECAY)


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectiveCards:
    """The cards of an objective taken together: `begun` of `all`.

    `days` is the mean time since their last answers and `stability` their harmonic mean, both in
    days. The harmonic mean leans toward the cards that are forgotten first.
    """

    begun: int = 0
    all: int = 0
    days: float = 0.0
    stability: float = TAUGHT

    def earlier(self, days: int) -> "ObjectiveCards":
        """The same cards `days` ago; a card answered since then counts as known then."""
        return dataclasses.replace(self, days=max(0.0, self.days - days))


def retention_curve(cards: ObjectiveCards) -> Callable[[int], float]:
    """Return a function from age in days to the share (0..1) of knowledge that is left.

    The part of the objective covered by its begun cards fades by their recall today divided by
    their recall on that day. For cards answered since then, the latter is the recall of a deck on
    schedule, so reviews on time preserve old evidence. The rest fades on its own curve. The share
    is 1 today and never rises with age.
    """
    if not cards.begun:
        return _recall_alone
    days, stability = cards.days, cards.stability
    today = recall_chance(days, stability)
    covered = min(1.0, cards.begun / max(cards.all, 1))
    on_schedule = covered * min(1.0, today / _ON_SCHEDULE)
    left = 1 - covered

    def share(age: int) -> float:
        if age <= 0:
            return 1.0
        if age >= days:  # answered since
            return on_schedule + left * _recall_alone(age)
        then = min(_ON_SCHEDULE, recall_chance(days - age, stability))
        return covered * min(1.0, today / then) + left * _recall_alone(age)

    return share


@functools.lru_cache(maxsize=4096)
def _recall_alone(age: int) -> float:
    return recall_chance(max(0, age), TAUGHT)


ENOUGH = 5  # an objective with fewer first answers gets no share
# The newest answers that count. One more answer moves a share by less than seven points. Answers
# from before the learner knew the topic drop out after this many newer ones.
WINDOW = 15.0
# The share of a question's weight that a later answer takes over.
AGAIN = 0.5
# A later answer counts only after this many study days. By then the learner no longer remembers the
# answer itself, or the question has new numbers.
WEEK, NEXT_DAY = 7, 1
_WHOLE = 1 - 1e-9
_HINTED = 0.5  # a right answer after a hint counts half


@dataclasses.dataclass(frozen=True, slots=True)
class RepeatAnswer:
    """A later answer, `wait` days after the previous answer to the question."""

    score: float
    day: dt.date
    wait: int
    hints: int = 0

    @property
    def value(self) -> float:
        """The knowledge it shows, 0..1."""
        return self.score * _HINTED if self.hints else self.score


@dataclasses.dataclass(frozen=True, slots=True)
class AnswerHistory:
    """The first answer to a question: its score 0..1, study day, hints taken.

    `certainty` is the learner's confidence, 1 to 3; 0 if not given. `later` holds the answers after
    it, newest last.
    """

    score: float
    day: dt.date
    hints: int = 0
    certainty: int = 0
    later: tuple[RepeatAnswer, ...] = ()

    @property
    def value(self) -> float:
        """The knowledge that the first answer shows, 0..1."""
        return self.score * _HINTED if self.hints else self.score

    @property
    def seen(self) -> dt.date:
        return max([self.day, *(one.day for one in self.later)])

    @property
    def missed(self) -> bool:
        """Whether the newest answer was not fully right."""
        newest = self.later[-1].score if self.later else self.score
        return newest < _WHOLE

    def again(self, score: float, day: dt.date, hints: int = 0) -> "AnswerHistory":
        """Return a copy with one more answer to the question."""
        wait = max(0, (day - self.seen).days)
        later = (*self.later, RepeatAnswer(score, day, wait, hints))
        return dataclasses.replace(self, later=later)

    def ready(self, day: dt.date, *, varied: bool) -> bool:
        """Return whether an answer on `day` would count; `varied` questions draw new numbers."""
        return (day - self.seen).days >= (NEXT_DAY if varied else WEEK)

    def counting(self, *, varied: bool, until: dt.date | None = None) -> "AnswerHistory":
        """Return a copy with only the later answers that count, given by `until`."""
        if not self.later:
            return self
        least = NEXT_DAY if varied else WEEK
        later = tuple(
            one for one in self.later if one.wait >= least and (until is None or one.day <= until)
        )
        return dataclasses.replace(self, later=later)

    def shares(self) -> Iterator[tuple[float, "AnswerHistory | RepeatAnswer"]]:
        """Yield every answer with its share of the weight, newest first.

        Each takes half of what the answers after it left; the first takes the rest.
        """
        left = 1.0
        for one in reversed(self.later):
            left *= AGAIN
            yield left, one
        yield left, self


@dataclasses.dataclass(frozen=True, slots=True)
class Evidence:
    """The answers of one or more objectives, added up.

    `answers` counts first answers, and `score` adds up all points that count. `weight` is in
    answers as hard to guess as the mean question of the objective. Of it, `right` is still right
    today and `fresh` was right when answered. `force` is the weight that age leaves.
    """

    answers: int = 0
    score: float = 0.0
    weight: float = 0.0
    right: float = 0.0
    fresh: float = 0.0
    force: float = 0.0

    def __add__(self, other: "Evidence") -> "Evidence":
        return Evidence(
            self.answers + other.answers,
            self.score + other.score,
            self.weight + other.weight,
            self.right + other.right,
            self.fresh + other.fresh,
            self.force + other.force,
        )

    def __sub__(self, other: "Evidence") -> "Evidence":
        return Evidence(
            self.answers - other.answers,
            self.score - other.score,
            self.weight - other.weight,
            self.right - other.right,
            self.fresh - other.fresh,
            self.force - other.force,
        )

    @property
    def enough(self) -> bool:
        """Whether there are enough answers to show a share."""
        return self.answers >= ENOUGH


@dataclasses.dataclass(frozen=True, slots=True)
class DayAnswers:
    """The first answers to an objective on one study day.

    `weight` is in answers as hard to guess as the mean question of the objective, of which `fresh`
    was right. `answers` and `score` include the days before as well: only the newest are weighed,
    but all are counted.
    """

    day: dt.date
    answers: int
    score: float
    weight: float
    fresh: float


def answers_by_day(
    firsts: Iterable[tuple[AnswerHistory, float]], guess: float
) -> tuple[DayAnswers, ...]:
    """Return the first answers to an objective by day, newest day first.

    Each comes with the guess rate of its question; `guess` is that of the objective. An answer
    weighs (1 − its rate) ÷ (1 − the objective's), so a numeric question says more than a true/false
    one. A learner who does not know a number might still have guessed a choice, and a wrong
    true/false answer was partly bad luck. So a wrong answer counts (the objective's rate − its own)
    ÷ (1 − its own). This makes the mean independent of the question types answered: right with g +
    (1 − g)·κ, all give G + (1 − G)·κ.
    """
    days: dict[dt.date, list[float]] = {}
    scale = 1 / (1 - guess) if guess < 1 else 0.0
    for first, rate in firsts:
        luck = (guess - rate) / (1 - rate) if rate < 1 else 0.0
        for share, one in first.shares():
            sums = days.setdefault(one.day, [0, 0.0, 0.0, 0.0])
            weight = share * (1 - rate) * scale
            sums[0] += one is first
            sums[1] += one.score
            sums[2] += weight
            sums[3] += weight * (one.value + (1 - one.value) * luck)
    made = []
    answers, score = 0.0, 0.0
    for day, (count, scored, weight, fresh) in sorted(days.items()):
        answers, score = answers + count, score + scored
        made.append(DayAnswers(day, int(answers), score, weight, fresh))
    return tuple(reversed(made))


def weigh_evidence(
    by_day: Sequence[DayAnswers], guess: float, cards: ObjectiveCards, day: dt.date
) -> Evidence:
    """Add up the answers of one objective as of study day `day`.

    The newest answers count, up to a total weight of WINDOW; the answers of one day are taken
    together, in any order. With k from `retention_curve`, a right answer in the past is partly a
    guess today: it is worth k + (1 − k)·guess, and its force is k. What was not right stays so.
    """
    answers = 0
    score = weight = right = fresh = force = 0.0
    share_of = retention_curve(cards)
    for lot in by_day:
        if lot.day > day:
            continue
        if not answers:
            answers, score = lot.answers, lot.score
        if not lot.weight:
            continue
        room = WINDOW - weight
        if room <= 0:
            break
        share = 1.0 if room >= lot.weight else room / lot.weight
        left = share_of((day - lot.day).days)
        weight += share * lot.weight
        fresh += share * lot.fresh
        right += share * lot.fresh * (left + (1 - left) * guess)
        force += share * lot.weight * left
    # With only wrong true/false guesses the sum would be negative.
    return Evidence(answers, score, weight, max(0.0, right), max(0.0, fresh), force)


UNKNOWN = 0.25  # one of four choices, for an objective that has no question yet


def guess_rate(question: Question) -> float:
    """Return the mean score (0..1) of a random answer.

    One of k choices is right once in k times; match rows likewise. Check boxes are ticked at random
    and steps shuffled, and both are graded by the question's own rule. Typed or planned answers
    (numbers, words, designs) cannot be guessed.
    """
    return types.type_of(question).guess_rate(question.answer, question.partial)


NINE_IN_TEN, NINETEEN_IN_TWENTY = 1.645, 1.96
"""Values of z in `wilson` for ranges that hold the true value in 90% and 95% of cases."""


def wilson_interval(right: float, of: int, z: float = NINE_IN_TEN) -> tuple[float, float]:
    """Return the 90% Wilson interval (0..1) of the share `right` ÷ `of`.

    It keeps a width at 0 and 1.

    (p + z²/2n ± z·√(p(1−p)/n + z²/4n²)) ÷ (1 + z²/n).

    >>> tuple(round(x, 2) for x in wilson_interval(7, 10))
    (0.44, 0.87)
    """
    if not of:
        return 0.0, 1.0
    share, spread = right / of, z**2 / of
    middle = (share + spread / 2) / (1 + spread)
    noise = share * (1 - share) / of + spread / (4 * of)
    half = z * math.sqrt(noise) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)
