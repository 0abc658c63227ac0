"""Exam score forecast and its calibration."""

import dataclasses
import datetime as dt
import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

from app.markup.model import ExamBlueprint
from app.mastery.belief import NODES, TAIL, Belief, spread_belief
from app.mastery.objectives import DomainMastery
from app.mastery.question_counts import apportion

RULE = "beta-3"  # identifies this computation in the log; a changed computation gets a new name
# With fewer answers in all, most objectives of an exam have one or none, and the score would mostly
# be the prior. With fewer in a domain, the domain's score would be.
ANSWERS = 30
IN_DOMAIN = 5
# If a larger share of a domain's objectives is untested, its score would mostly be guesses.
UNTESTED = 1 / 3
_EVEN = 100  # exam length for a course that defines no exam


@dataclasses.dataclass(frozen=True, slots=True)
class DomainForecast:
    """The questions of one domain, and how many are expected to be right."""

    questions: int
    expected: float


@dataclasses.dataclass(frozen=True, slots=True)
class ScoreForecast:
    """Expected right answers of `questions`, with the 90% range.

    `scores` has the chance of each number of right answers, 0 to `questions`. `answers` counts the
    first answers it is based on, and `parts` are by domain.
    """

    exam: str
    questions: int
    answers: int
    mean: float
    low: int
    high: int
    scores: tuple[float, ...]
    parts: Mapping[str, DomainForecast]

    @property
    def expected(self) -> int:
        return round(self.mean)

    def chance(self, target: float) -> float:
        """Return the probability of reaching `target` (a share 0..1) or more."""
        # 0.7 × 50 is slightly more than 35 in binary floating point, and 35 is meant.
        least = math.ceil(target * self.questions - 1e-9)
        return min(1.0, math.fsum(self.scores[least:]))


@dataclasses.dataclass(frozen=True, slots=True)
class MissingEvidence:
    """What a forecast still needs: first answers in all, and by domain title.

    `untested` are the unanswered objectives of domains in which too many are unanswered.
    """

    answers: int
    domains: tuple[tuple[str, int], ...]
    untested: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """What is missing, e.g. “answers to 12 more questions: at least 3 in Ops”."""
        within = sum(count for _, count in self.domains)
        most = max(self.answers, within)
        more = f"answers to {most} more questions"
        more = more if most != 1 else "an answer to one more question"
        if not self.domains:
            return more
        (title, count), *rest = self.domains
        others = [f"{n} in {name}" for name, n in rest]
        told = "".join(f", {other}" for other in others[:-1])
        told += "".join(f" and {other}" for other in others[-1:])
        if within < most:
            return f"{more}: at least {count} in {title}{told}"
        return f"{more}: {count} in {title}{told}" if rest else f"{more} in {title}"


def forecast_score(
    domains: Sequence[DomainMastery],
    exam: ExamBlueprint | None = None,
    answers: int | None = None,
) -> ScoreForecast | MissingEvidence:
    """Return the score forecast for `exam`, or the evidence missing for one.

    Exact, without sampling. The right answers of each objective follow a beta-binomial distribution
    (uncertainty about the learner and luck of the draw in one). These are convolved to the domain,
    and the domains to the exam. The questions of a domain are spread evenly over its objectives;
    the remainder goes to any of them with equal chance. All of this is computed under each value of
    the learner's shared error, and weighted. Without `exam`, it is a hundred questions by the
    syllabus weights. `answers` counts the different questions answered, because a question of two
    objectives is in the evidence of both; without it, the evidence is added up.
    """
    counts = _questions_per_domain(domains, exam)
    if answers is None:
        answers = sum(d.evidence.answers for d in domains)
    missing = missing_evidence(domains, counts, answers)
    if missing is not None:
        return missing
    asked = [d for d in domains if counts.get(d.domain.number) and d.standings]
    parts = {}
    for domain in asked:
        count = counts[domain.domain.number]
        parts[domain.domain.number] = DomainForecast(count, count * domain.mean)
    scores = _score_distribution(asked, counts)
    low, high = _score_range(scores)
    return ScoreForecast(
        exam=exam.slug if exam else "",
        questions=len(scores) - 1,
        answers=answers,
        mean=math.fsum(part.expected for part in parts.values()),
        low=low,
        high=high,
        scores=scores,
        parts=parts,
    )


def missing_evidence(
    domains: Sequence[DomainMastery], counts: Mapping[str, int], answers: int
) -> MissingEvidence | None:
    """Return what is missing in addition to `answers`, or None if there is enough.

    An exam needs ANSWERS in all, IN_DOMAIN in each domain, and at most the share UNTESTED of a
    domain's objectives untested. A course with fewer questions needs all that it has.
    """
    asked = [d for d in domains if counts.get(d.domain.number)]
    short: list[tuple[str, int]] = []
    untested: list[str] = []
    for domain in asked:
        askable = [s for s in domain.standings if s.questions]
        blank = [s.objective.number for s in askable if not s.evidence.answers]
        few = min(IN_DOMAIN, sum(s.questions for s in askable))
        few -= domain.evidence.answers
        unseen = len(blank) - math.floor(len(askable) * UNTESTED)
        if max(few, unseen) > 0:
            short.append((domain.domain.title, max(few, unseen)))
        if unseen > 0:
            untested += blank
    bank = sum(s.questions for d in asked for s in d.standings)
    whole = sum(d.evidence.answers for d in asked) >= bank
    more = 0 if whole else min(ANSWERS, bank) - answers
    if more <= 0 and not short:
        return None
    return MissingEvidence(max(0, more), tuple(short), tuple(untested))


def _score_distribution(
    domains: Sequence[DomainMastery], counts: Mapping[str, int]
) -> tuple[float, ...]:
    """Return the chance of each number of right answers to all questions."""
    under: list[tuple[float, ...]] = [(1.0,)] * len(NODES)
    for domain in domains:
        count = counts[domain.domain.number]
        beliefs = [spread_belief(s.belief, s.guess) for s in domain.standings]
        under = [
            _sum_distribution(scores, domain_scores(mine, count))
            for scores, mine in zip(under, zip(*beliefs, strict=True), strict=True)
        ]
    return tuple(
        math.fsum(w * p for p, (_, w) in zip(chances, NODES, strict=True))
        for chances in zip(*under, strict=True)
    )


@functools.lru_cache(maxsize=2560)
def domain_scores(beliefs: tuple[Belief, ...], questions: int) -> tuple[float, ...]:
    """Return the chance of each number of right answers to the questions of a domain.

    Every objective gets the whole part of questions ÷ objectives. Each remaining question goes to a
    different objective, all choices equally likely. `ways` holds, for each number of remaining
    questions given away so far, the sum over all choices.

    >>> [round(p, 3) for p in domain_scores((Belief(0.5, 1e9),), 2)]
    [0.25, 0.5, 0.25]
    """
    each, extra = divmod(questions, len(beliefs))
    ways: list[list[float]] = [[1.0]] + [[] for _ in range(extra)]
    for belief in beliefs:
        fewer, more = right_answer_chances(belief, each), right_answer_chances(belief, each + 1)
        for given in range(extra, -1, -1):
            stay = _convolve_distributions(ways[given], fewer)
            take = _convolve_distributions(ways[given - 1], more) if given else []
            ways[given] = _add_distributions(stay, take)
    all_ = math.comb(len(beliefs), extra)
    return tuple(way / all_ for way in ways[extra])


def right_answer_chances(belief: Belief, questions: int) -> list[float]:
    """Return the beta-binomial chances of 0 to `questions` right answers.

    P(k) = C(n, k)·B(k + α, n − k + β) ÷ B(α, β), by the recursion over k in terms that stay finite
    when α or β is 0.
    """
    mean, spread = belief.mean, 1 / belief.weight
    chances = [1.0]
    # One question after another (Pólya's urn): a right answer makes the next one likelier.
    for asked in range(questions):
        following = [0.0] * (len(chances) + 1)
        for right, chance in enumerate(chances):
            next_right = (mean + right * spread) / (1 + asked * spread)
            following[right] += chance * (1 - next_right)
            following[right + 1] += chance * next_right
        chances = following
    return chances


def _questions_per_domain(
    domains: Sequence[DomainMastery], exam: ExamBlueprint | None
) -> Mapping[str, int]:
    if exam is not None:
        return exam.domains
    return {d.domain.number: round(d.domain.weight * _EVEN) for d in domains}


@functools.lru_cache(maxsize=2560)
def _sum_distribution(one: tuple[float, ...], other: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(_convolve_distributions(one, other))


def _convolve_distributions(one: Sequence[float], other: Sequence[float]) -> list[float]:
    """Return the distribution of a sum; empty if one of the two is empty."""
    if not one or not other:
        return []
    total = [0.0] * (len(one) + len(other) - 1)
    for n, chance in enumerate(one):
        for m, second in enumerate(other, n):
            total[m] += chance * second
    return total


def _add_distributions(one: Sequence[float], other: Sequence[float]) -> list[float]:
    return [a + b for a, b in itertools.zip_longest(one, other, fillvalue=0.0)]


def _score_range(scores: Sequence[float]) -> tuple[int, int]:
    """Return the fewest and the most right answers, leaving out TAIL on each side."""
    low, high = 0, len(scores) - 1
    below = list(itertools.accumulate(scores))
    while below[low] < TAIL:
        low += 1
    above = 0.0
    while above + scores[high] < TAIL and high > low:
        above += scores[high]
        high -= 1
    return low, high


_TENTHS = (
    "hardly any chance",
    "about one chance in ten",
    "about two chances in ten",
    "about three chances in ten",
    "about four chances in ten",
    "an even chance",
    "about six chances in ten",
    "about seven chances in ten",
    "about eight chances in ten",
    "about nine chances in ten",
    "more than nine chances in ten",
)


def chance_words(chance: float) -> str:
    """Return a probability in words, to the nearest tenth.

    >>> chance_words(0.04), chance_words(0.31), chance_words(0.5)
    ('hardly any chance', 'about three chances in ten', 'an even chance')
    """
    return _TENTHS[round(10 * min(max(chance, 0.0), 1.0))]


WHOLE = 30
"""Exams with fewer questions get no short version."""
SHORT = 0.4
"""Length of a short paper as a share of the full one: 20 questions of 50."""


def is_long(exam: ExamBlueprint) -> bool:
    """Return whether shorter papers can be made from an exam."""
    return exam.questions >= WHOLE


def short_count(exam: ExamBlueprint) -> int:
    """Return the number of questions of a short paper."""
    return round(exam.questions * SHORT)


def short_exam(exam: ExamBlueprint) -> ExamBlueprint:
    """Return the short version of an exam, with the same domain weights."""
    domains = apportion(exam.domains, short_count(exam))
    return derive_exam(exam, "short", "Short mock exam", domains)


def derive_exam(
    exam: ExamBlueprint, way: str, title: str, domains: Mapping[str, int]
) -> ExamBlueprint:
    """Return an exam with the given questions per domain and a proportional time limit."""
    count = sum(domains.values())
    return dataclasses.replace(
        exam,
        slug=f"{exam.slug}~{way}",
        title=title,
        questions=count,
        minutes=max(1, round(exam.minutes * count / exam.questions)),
        domains=domains,
    )


# A paper with many unanswered questions says little about what the learner knows.
ANSWERED = 0.9


def says_enough(answered: int, questions: int) -> bool:
    """Return whether enough of a paper was answered to compare its score with a forecast.

    >>> says_enough(45, 50), says_enough(44, 50), says_enough(0, 0)
    (True, False, False)
    """
    return questions > 0 and answered >= ANSWERED * questions


@dataclasses.dataclass(frozen=True, slots=True)
class ScorePrediction:
    """The forecast shown to a learner on a study day for an exam; `at` in ms."""

    exam: str
    day: dt.date
    at: int
    questions: int
    expected: float
    low: int
    high: int


@dataclasses.dataclass(frozen=True, slots=True)
class ExamResult:
    """The result of a closed sitting: score out of `questions`, of which `answered` were answered."""

    number: int
    exam: str
    started: int
    score: float
    questions: int
    answered: int


@dataclasses.dataclass(frozen=True, slots=True)
class PredictionOutcome:
    """A result and the last prediction before it, None if there was none.

    `score` is scaled to the number of questions in the prediction, if the bank was too small to
    fill the paper.
    """

    result: ExamResult
    predicted: ScorePrediction | None

    @property
    def counts(self) -> bool:
        """Whether it says anything about the prediction."""
        enough = says_enough(self.result.answered, self.result.questions)
        return self.predicted is not None and enough

    @property
    def score(self) -> float:
        """Right answers, scaled to the number of questions in the prediction."""
        if self.predicted is None or not self.result.questions:
            return self.result.score
        return self.result.score * self.predicted.questions / self.result.questions

    @property
    def inside(self) -> bool:
        """Whether the result is within the predicted range. Partial points are rounded."""
        if self.predicted is None:
            return False
        return self.predicted.low <= round(self.score) <= self.predicted.high


def match_predictions(
    predictions: Sequence[ScorePrediction], results: Iterable[ExamResult]
) -> tuple[PredictionOutcome, ...]:
    """Return every result, oldest first, with the newest prediction made before it."""
    return tuple(
        PredictionOutcome(result, _last_prediction_before(predictions, result))
        for result in sorted(results, key=lambda r: r.started)
    )


def _last_prediction_before(
    predictions: Iterable[ScorePrediction], result: ExamResult
) -> ScorePrediction | None:
    made = [p for p in predictions if p.exam == result.exam and p.at <= result.started]
    return max(made, key=lambda p: p.at, default=None)


def inside_words(found: Iterable[PredictionOutcome]) -> str:
    """Return a sentence with the share of results inside the range; empty if none counts yet.

    The range is meant to cover nine results of ten, so the sentence names that number too.
    """
    counted = [turnout for turnout in found if turnout.counts]
    if not counted:
        return ""
    inside = sum(turnout.inside for turnout in counted)
    said = f"{inside} of {len(counted)} results lay inside the range"
    if len(counted) == 1:
        where = "inside" if inside else "outside"
        said = f"The one full mock exam to compare so far lay {where} its range"
    return f"{said}; nine of ten should lie inside, if the predictions are sound."
