"""The expected exam score: a Bayesian logistic model of one learner.

The chance that a learner knows what a page teaches, in logits, is the level of its objectives, plus
what reading, cards and answered questions add:

    level + r·read + c·recall + a·ln(1 + answers)

These numbers are one Gaussian. Each first answer moves it by one rank-one step (Laplace's
approximation); repeated answers never count. Reading and cards count as terms of the model, so the
expected score rises with them before any question is answered, and the range is there from the
beginning. Only the order of time matters, so the score can be computed again from the logs.
"""

import collections
import dataclasses
import datetime as dt
import math
from collections.abc import Callable, Mapping

from app.content.course_facts import CourseFacts, PageFacts
from app.spaced_repetition.scheduler import compute_retrievability_after
from app.study_plan.facts import LearnerFacts


@dataclasses.dataclass(frozen=True, slots=True)
class ScorePriors:
    """What is assumed of a learner before the first answer, in logits: means and deviations.

    `level_sd_parts` are common to all objectives, to a domain, and to one objective.
    """

    level_mean: float = -1.35
    reading_gain_mean: float = 1.2
    recall_gain_mean: float = 0.9
    answering_gain_mean: float = 0.35
    level_sd_parts: tuple[float, float, float] = (0.9, 0.4, 0.45)
    reading_gain_sd: float = 0.45
    recall_gain_sd: float = 0.4
    answering_gain_sd: float = 0.3


PRIORS = ScorePriors()
_READING_HALVES = 75.0  # days after which half of what was read is left
_PEER_READING = 0.3  # part of a page's reading that counts for the others of its objective
_PEER_ANSWERS = 0.25
_DAMPING = 0.6  # questions differ in difficulty, so one answer says less
_DRIFT = 0.003  # variance that the level gains each day
_PAGE_VARIANCE = 0.3  # of a page around its objective, in logits²
_PAGE_SCALE = 1 / math.sqrt(1 + math.pi * _PAGE_VARIANCE / 8)  # averages the chance over pages
_MODEL_SD = 1.3  # points by which the model itself is off
_NINE_IN_TEN = 1.645
_REVIEWED = 0.95  # mean recall of a card between its reviews
READY = 0.8  # chance of a right answer, from which an objective counts as ready
_DAILY_FALL = 0.5  # points that the shown score may fall in a day


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectiveEstimate:
    """An objective: the chance (0 to 1) that it is known, and that a question is answered right."""

    number: str
    known: float
    chance: float
    answers: int

    @property
    def is_ready(self) -> bool:
        return self.chance >= READY


@dataclasses.dataclass(frozen=True, slots=True)
class ScoreEstimate:
    """The expected right answers of `questions`, with the range that holds 90% of exams.

    `mean` is what the model says, `shown` what the learner sees, which falls slowly. `sd` is the
    deviation of an exam's result. `domains` has the expected right answers by domain. `pages` has
    the chance that each page is known. `answers` counts the first answers it is based on.
    """

    questions: int
    mean: float
    shown: float
    sd: float
    answers: int
    domains: Mapping[str, float]
    objectives: Mapping[str, ObjectiveEstimate]
    pages: Mapping[str, float]

    @property
    def shown_score(self) -> int:
        return round(self.shown)

    @property
    def low(self) -> int:
        return max(0, round(self.shown - _NINE_IN_TEN * self.sd))

    @property
    def high(self) -> int:
        return min(self.questions, round(self.shown + _NINE_IN_TEN * self.sd))

    def chance_of_scoring_at_least(self, share: float) -> float:
        """Return the probability (0 to 1) that an exam has `share` (0 to 1) or more right."""
        least = math.ceil(share * self.questions - 1e-9) - 0.5
        return 0.5 * math.erfc((least - self.shown) / (self.sd * math.sqrt(2)))


def limit_score_drop(new_score: float, earlier_score: float, days_between: int) -> float:
    """Return the score to show: it falls by at most half a point a day."""
    return max(new_score, earlier_score - _DAILY_FALL * days_between)


_Terms = list[tuple[int, float]]


class ScoreModel:
    """The Gaussian over the levels of all objectives and the three gains, for one learner."""

    def __init__(self, course: CourseFacts, learner: LearnerFacts, priors: ScorePriors) -> None:
        self._course = course
        self._index = {number: n for n, number in enumerate(course.objectives)}
        count = len(self._index)
        self._reading, self._recall, self._answering = range(count, count + 3)
        self._size = count + 3
        gains = priors.reading_gain_mean, priors.recall_gain_mean, priors.answering_gain_mean
        self._mean = [priors.level_mean] * count + list(gains)
        self._cov = [[0.0] * self._size for _ in range(self._size)]
        everyone, domain, own = (sd**2 for sd in priors.level_sd_parts)
        facts = list(course.objectives.values())
        for i, one in enumerate(facts):
            for j, other in enumerate(facts):
                shared = everyone + domain * (one.domain == other.domain)
                self._cov[i][j] = shared + own * (i == j)
        sds = priors.reading_gain_sd, priors.recall_gain_sd, priors.answering_gain_sd
        for n, sd in zip(range(count, self._size), sds, strict=True):
            self._cov[n][n] = sd**2
        self._read: dict[str, tuple[float, dt.date]] = {}
        self._answers: collections.Counter[str] = collections.Counter()
        self._asked: collections.Counter[str] = collections.Counter()
        self._cards = {card.card: card for card in learner.started_cards}
        self._learn_from_facts_in_time_order(learner)

    def _learn_from_facts_in_time_order(self, learner: LearnerFacts) -> None:
        """Go through readings and first answers in the order of time, to the learner's day."""
        events: list[tuple[dt.date, int, str, float, Callable[[str, float], None]]] = [
            (one.day, one.read_at_ms, one.page, one.page_share, self._learn_from_reading)
            for one in learner.readings
            if one.page in self._course.pages
        ]
        events += [
            (one.day, one.answered_at_ms, one.question, one.score, self._learn_from_first_answer)
            for one in learner.first_answers
            if one.question in self._course.questions
        ]
        events.sort(key=lambda event: event[:4])
        self._day = events[0][0] if events else learner.day
        for day, _, name, amount, add in events:
            self._advance_to_day(day)
            add(name, amount)
        self._advance_to_day(learner.day)

    def _advance_to_day(self, day: dt.date) -> None:
        """Move to a study day. Levels become a little less certain each day."""
        if day <= self._day:
            return
        for n in range(len(self._index)):
            self._cov[n][n] += _DRIFT * (day - self._day).days
        self._day = day

    def _learn_from_reading(self, page: str, share: float) -> None:
        """Add a part of a page that was read on the present day."""
        before = self._read[page][0] if page in self._read else 0.0
        self._read[page] = min(1.0, before + share), self._day

    def _learn_from_first_answer(self, question: str, score: float) -> None:
        facts = self._course.questions[question]
        page = self._course.pages[facts.page]
        terms = self._list_parameter_weights_of_page(page)
        known = _sigmoid(_PAGE_SCALE * sum(value * self._mean[n] for n, value in terms))
        chance = min(0.995, facts.guess_score + (1 - facts.guess_score) * known)
        slope = (1 - facts.guess_score) * known * (1 - known) * _PAGE_SCALE
        spread = chance * (1 - chance)
        information, gradient = slope * slope / spread, slope * (score - chance) / spread
        damping = 1 / (1 + information * _DAMPING)
        self._update_gaussian(terms, information * damping, gradient * damping)
        self._answers[page.slug] += 1
        self._asked.update(facts.objectives)

    def _update_gaussian(self, terms: _Terms, information: float, gradient: float) -> None:
        projected = [sum(value * row[n] for n, value in terms) for row in self._cov]
        variance = sum(value * projected[n] for n, value in terms)
        share = 1 / (1 + information * variance)
        for n, row in enumerate(self._cov):
            if not projected[n]:
                continue
            self._mean[n] += projected[n] * gradient * share
            factor = projected[n] * information * share
            self._cov[n] = [value - factor * p for value, p in zip(row, projected, strict=True)]

    def _list_parameter_weights_of_page(self, page: PageFacts) -> _Terms:
        """Return the numbers of the model that a page depends on, each with its factor."""
        terms = [(self._index[o], 1 / len(page.objectives)) for o in page.objectives]
        share, day = self._read.get(page.slug, (0.0, self._day))
        read = share * 2 ** (-(self._day - day).days / _READING_HALVES)
        if page.same_objective_pages:
            others = sum(self._read[p][0] for p in page.same_objective_pages if p in self._read)
            read += _PEER_READING * others / len(page.same_objective_pages)
        if read:
            terms.append((self._reading, read))
        if recall := self._compute_mean_recall(page):
            terms.append((self._recall, recall))
        near = sum(self._answers[peer] for peer in page.same_objective_pages)
        if answers := self._answers[page.slug] + _PEER_ANSWERS * near:
            terms.append((self._answering, math.log1p(answers)))
        return terms

    def _compute_mean_recall(self, page: PageFacts) -> float:
        """Return the mean recall (0 to 1) of a page's cards, those not started being 0."""
        total, today = 0.0, self._day
        for card in (self._cards[name] for name in page.card_ids if name in self._cards):
            if card.last_day < today:
                total += compute_retrievability_after((today - card.last_day).days, card.stability)
            elif card.first_day < today:
                total += _REVIEWED
        return total / len(page.card_ids) if total else 0.0

    def estimate(self) -> ScoreEstimate:
        """Return the expected score as of the present day."""
        pages = {slug: self._compute_page_chance(page) for slug, page in self._course.pages.items()}
        gradient = [0.0] * self._size
        domains, objectives, luck = {}, {}, 0.0
        for domain in self._course.domains:
            each = domain.exam_question_count / max(1, len(domain.objective_numbers))
            expected = 0.0
            for number in domain.objective_numbers:
                facts = self._course.objectives[number]
                share_by_page = facts.question_share_by_page
                known = sum(share * pages[slug][0] for slug, share in share_by_page.items())
                for slug, share in share_by_page.items():
                    chance, terms = pages[slug]
                    slope = each * share * (1 - facts.guess_score) * chance * (1 - chance)
                    for n, value in terms:
                        gradient[n] += slope * value
                if not share_by_page:
                    known = _sigmoid(self._mean[self._index[number]])
                right = facts.guess_score + (1 - facts.guess_score) * known
                objectives[number] = ObjectiveEstimate(number, known, right, self._asked[number])
                expected += each * right
                luck += each * right * (1 - right)
            domains[domain.number] = expected
        belief = sum(
            g * sum(h * c for h, c in zip(gradient, row, strict=True))
            for g, row in zip(gradient, self._cov, strict=True)
        )
        mean = sum(domains.values())
        return ScoreEstimate(
            questions=self._course.main_exam_question_count,
            mean=mean,
            shown=mean,
            sd=math.sqrt(belief + luck + _MODEL_SD**2),
            answers=self._answers.total(),
            domains=domains,
            objectives=objectives,
            pages={slug: chance for slug, (chance, _) in pages.items()},
        )

    def _compute_page_chance(self, page: PageFacts) -> tuple[float, _Terms]:
        """Return the chance that a page is known, averaged over what is uncertain, and its terms."""
        terms = self._list_parameter_weights_of_page(page)
        variance = sum(a * b * self._cov[m][n] for m, a in terms for n, b in terms)
        mean = sum(value * self._mean[n] for n, value in terms)
        return _sigmoid(mean / math.sqrt(1 + math.pi * (variance + _PAGE_VARIANCE) / 8)), terms


def estimate_score(
    course: CourseFacts, learner: LearnerFacts, priors: ScorePriors = PRIORS
) -> ScoreEstimate | None:
    """Return the expected score on the morning of the learner's day; None without exam questions."""
    has_exam = course.main_exam_question_count > 0
    return ScoreModel(course, learner, priors).estimate() if has_exam else None


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -30 else 0.0
