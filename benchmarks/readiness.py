"""Whether readiness keeps its word: simulated learners whose true ability is known.

Run: python -m benchmarks.readiness [LEARNERS] [--quick] [--seed=N ...]. Learners of
many kinds study the objectives of the shipped course for some weeks: they answer
questions that are new to them, review cards, learn and forget. At several evenings each
is told an expected score, a range and the chance of a target by the very functions of
the app, and then sits a true exam by blueprint. The questions of the bank have each a
difficulty of their own, the same for all learners; those of the exam have others, and
every learner's exam as a whole is harder or easier than the bank.

One number of the app is chosen with this, the spread of what a learner's errors have in
common (`app/mastery/learner_effect.py`), on other seeds than the published ones. The
others stand where they are reasoned, and the learners here follow another model (a
three-parameter one with difficulty, not a Beta distribution).
"""

import dataclasses
import datetime as dt
import itertools
import math
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from app.content.library import Library, load_library
from app.mastery.evidence import AnswerHistory, guess_rate
from app.mastery.objectives import LearnerEvidence, TopicCards, build_standings, course_by_objective
from app.mastery.readiness import ScoreForecast, forecast_score

CONTENT = Path(__file__).resolve().parents[1] / "content"
LEARNERS = 400
QUICK = 6
SEEDS = (20261211, 20261212, 20261213)
"""Those published; the spread was chosen on 1, 2 and 3."""
GAP = 0.2
"""How much harder or easier than the bank an exam is: standard deviation, in logits."""
WEEKS = 8
TARGETS = (0.5, 0.6, 0.7, 0.8)
BINS = 10
MOCKS = (20, 41)
FIRST_DAY = dt.date(2026, 3, 2)


@dataclasses.dataclass(frozen=True, slots=True)
class Said:
    """One prediction and what came: the score, and each target with its chance.

    `after_mock` when it was made the day after a mock exam of new questions.
    """

    learner: int
    answers: int
    mean: float
    low: int
    high: int
    score: int
    chances: tuple[tuple[float, bool], ...]
    after_mock: bool


@dataclasses.dataclass(slots=True)
class Ability:
    """The truth about one objective, in logits of a question of middle difficulty.

    `level` is what it was on the day `touched`; from there it decays with `half_life`
    (days) toward `ground`, what the learner knew before the course.
    """

    level: float
    ground: float
    half_life: float
    touched: int = 0
    sessions: int = 0

    def on(self, day: int) -> float:
        """The ability on a day, after forgetting."""
        left = math.exp2((self.touched - day) / self.half_life)
        return self.ground + (self.level - self.ground) * left

    def refresh(self, day: int, gain: float, longer: float) -> None:
        """Learn more, or only again (`gain` 0); either is forgotten more slowly."""
        self.level, self.touched = self.on(day) + gain, day
        self.half_life *= longer


@dataclasses.dataclass(slots=True)
class Deck:
    """The cards of a topic: begun on its first page, answered when they are due."""

    cards: int
    last: int
    stability: float = 2.3


class Bank:
    """The questions of the course: how sharp and how hard each is, for everybody."""

    def __init__(self, library: Library, seed: int) -> None:
        self.seed = seed
        lot = random.Random(f"{seed} bank")
        self.items = {item: item_of(lot) for item in library.questions}


def item_of(lot: random.Random) -> tuple[float, float]:
    """Discrimination and difficulty (logits) of a question drawn anew."""
    return lot.uniform(0.7, 1.6), lot.gauss(-0.4, 0.8)


class Learner:
    """A simulated learner: uneven from domain to domain, studying some days a week.

    What was never studied is known a little (about one question in five beyond
    guessing); the first reading of a topic teaches most, later ones less.
    """

    def __init__(self, library: Library, bank: "Bank", number: int) -> None:
        self.library, self.bank, self.number = library, bank, number
        self.lot = lot = random.Random(f"{bank.seed} {number}")
        self.firsts: dict[str, AnswerHistory] = {}
        self.decks: dict[str, Deck] = {}
        self.abilities = {}
        general = lot.gauss(-1.8, 0.7)
        for domain in library.syllabus.domains:
            of_domain = general + lot.gauss(0.0, 0.5)
            for objective in domain.objectives:
                start = of_domain + lot.gauss(0.0, 0.5)
                self.abilities[objective.number] = Ability(start, start, lot.uniform(20, 120))
        self.gain = lot.uniform(1.0, 2.5)  # logits of a first reading
        self.frequency = lot.uniform(0.3, 0.9)  # days of study among all days
        self.round = lot.randint(5, 14)  # questions at a time
        self.with_cards = lot.random() < 0.7
        self.with_mocks = lot.random() < 0.5
        self.order = [s for s in library.syllabus.topics if s in library.topics]
        if lot.random() < 0.3:
            lot.shuffle(self.order)
        self.gap = lot.gauss(0.0, GAP)

    def study(self, day: int) -> None:
        """A day of study, or none: cards due, a topic, and its new questions."""
        if self.lot.random() > self.frequency:
            return
        for slug, deck in self.decks.items():
            if day - deck.last >= deck.stability:
                deck.last, deck.stability = day, deck.stability * 3
                for number in self.library.topics[slug].objectives:
                    self.abilities[number].refresh(day, 0.0, 1.2)
        # The next page of the course most of the time, else one again.
        again = self.order[: len(self.decks)]
        slug = self.order[len(self.decks) % len(self.order)]
        if again and (len(again) == len(self.order) or self.lot.random() < 0.3):
            slug = self.lot.choice(again)
        self.read(slug, day)
        bank = [q for q in self.library.topics[slug].questions if q not in self.firsts]
        for item in self.lot.sample(bank, min(self.round, len(bank))):
            self.meet(item, day)

    def read(self, slug: str, day: int) -> None:
        """Read a page: each session teaches half of what the one before did."""
        topic = self.library.topics[slug]
        for number in topic.objectives:
            ability = self.abilities[number]
            gain = self.gain * 0.5**ability.sessions / len(topic.objectives) ** 0.5
            ability.sessions += 1
            ability.refresh(day, gain, 1.3)
        cards = len(topic.cards) if self.with_cards else 0
        self.decks.setdefault(slug, Deck(cards, day))

    def meet(self, item: str, day: int) -> None:
        """Answer a question of the bank for the first time."""
        question = self.library.questions[item]
        if question.type != "design":
            rate = guess_rate(question)
            hard = self.bank.items[item]
            right = self.answers(question.objectives, rate, hard, day)
            self.firsts[item] = AnswerHistory(float(right), the_day(day))

    def mock(self, day: int) -> None:
        """Sit a mock of the app: as many new questions of each domain as it asks."""
        exam = next(iter(self.library.exams.values()))
        for domain in self.library.syllabus.domains:
            numbers = {o.number for o in domain.objectives}
            bank = [
                question.id
                for question in self.library.questions.values()
                if question.objectives[0] in numbers and question.id not in self.firsts
            ]
            wanted = min(exam.domains.get(domain.number, 0), len(bank))
            for item in self.lot.sample(bank, wanted):
                self.meet(item, day)

    def answers(
        self,
        objectives: Sequence[str],
        guess: float,
        item: tuple[float, float],
        day: int,
    ) -> bool:
        """Whether a question never seen before is answered right.

        P = g + (1 − g) ÷ (1 + e^(−a·(θ − b))): guess rate g, discrimination a and
        difficulty b of the `item`.
        """
        theta = math.fsum(self.abilities[o].on(day) for o in objectives)
        theta /= len(objectives)
        a, b = item
        known = 1 / (1 + math.exp(-a * (theta - b)))
        return self.lot.random() < guess + (1 - guess) * known

    def sit(self, day: int) -> int:
        """The score in a true exam: other questions, spread as a paper spreads them."""
        exam = next(iter(self.library.exams.values()))
        score = 0
        for domain in self.library.syllabus.domains:
            numbers = [o.number for o in domain.objectives]
            self.lot.shuffle(numbers)
            for place in range(exam.domains.get(domain.number, 0)):
                number = numbers[place % len(numbers)]
                course = course_by_objective(self.library)
                rates = [r for _, r in course.asked[number].rates]
                a, b = item_of(self.lot)
                item = a, b + self.gap
                score += self.answers((number,), self.lot.choice(rates), item, day)
        return score

    def record(self, day: int) -> LearnerEvidence:
        """What the app would have kept of all this."""
        cards = {
            slug: TopicCards(
                deck.cards,
                deck.cards,
                deck.cards * float(day - deck.last),
                deck.cards / deck.stability,
            )
            for slug, deck in self.decks.items()
            if deck.cards
        }
        return LearnerEvidence(dict(self.firsts), cards, {})


def main() -> int:
    quick = "--quick" in sys.argv
    counts = [int(word) for word in sys.argv[1:] if word.isdigit()]
    learners = QUICK if quick else (counts or [LEARNERS])[0]
    asked = [word.partition("=")[2] for word in sys.argv if word.startswith("--seed=")]
    seeds = [int(word) for word in asked] or SEEDS[: 1 if quick else None]
    library = load_library(CONTENT)
    for seed in seeds:
        said, refused = simulate(library, learners, seed)
        print(f"Seed {seed}: ", end="")
        print("\n".join(report(said, refused, learners)), end="\n\n", flush=True)
    return 0


def simulate(library: Library, learners: int, seed: int) -> tuple[list[Said], int]:
    """Every prediction of every learner with what came, and how many were refused."""
    said: list[Said] = []
    refused = 0
    bank = Bank(library, seed)
    for number in range(learners):
        for one in told(Learner(library, bank, number)):
            if one is None:
                refused += 1
            else:
                said.append(one)
    return said, refused


def told(learner: Learner) -> Iterator[Said | None]:
    """What a learner is told at the end of each week or after a pause, and gets."""
    return (one_exam(learner, day) for day in studied(learner))


def studied(learner: Learner) -> Iterator[int]:
    """Let a learner study; yields the last day of each week, after its work."""
    pauses = {learner.lot.randrange(2, WEEKS) for _ in range(2)}
    for day in range(1, WEEKS * 7 + 1):
        if day // 7 not in pauses:
            learner.study(day)
        if learner.with_mocks and day in MOCKS:
            learner.mock(day)
        if day % 7 == 0:
            yield day


def one_exam(learner: Learner, day: int) -> Said | None:
    exam = next(iter(learner.library.exams.values()))
    domains = build_standings(learner.library, learner.record(day), the_day(day))
    made = forecast_score(domains, exam)
    if not isinstance(made, ScoreForecast):
        return None
    score = learner.sit(day)
    chances = tuple(
        (made.chance(target), score >= math.ceil(target * made.questions - 1e-9))
        for target in TARGETS
    )
    after_mock = learner.with_mocks and day - 1 in MOCKS
    return Said(
        learner=learner.number,
        answers=made.answers,
        mean=made.mean,
        low=made.low,
        high=made.high,
        score=score,
        chances=chances,
        after_mock=after_mock,
    )


def the_day(number: int) -> dt.date:
    return FIRST_DAY + dt.timedelta(days=number)


def report(said: Sequence[Said], refused: int, learners: int) -> list[str]:
    """The result as lines of text."""
    if not said:
        return [f"{learners} learners, {refused} predictions refused, none made"]
    chances = [pair for one in said for pair in one.chances]
    lines = [
        f"{learners} learners, {len(said)} predictions, {refused} refused",
        "",
        "chance said   times   mean said   came true",
        *bins(chances),
        "",
        *scores(said),
        "",
        "first answers  times          bias           MAE   inside the range   width",
    ]
    limits = (0, 60, 100, 200, 10**9)
    for least, most in itertools.pairwise(limits):
        some = [one for one in said if least <= one.answers < most]
        name = f"{least} to {most - 1}" if most < 10**9 else f"{least} and more"
        lines += [errors(name, some)] if some else []
    fresh = [one for one in said if one.after_mock]
    lines += [errors("after a mock", fresh)] if fresh else []
    return [*lines, errors("all", said)]


def bins(chances: Sequence[tuple[float, bool]]) -> Iterator[str]:
    """The reliability diagram as rows: a bin of chances, how often it came true."""
    for place in range(BINS):
        low, high = place / BINS, (place + 1) / BINS
        mine = [(p, hit) for p, hit in chances if low <= p < high or (p == high == 1.0)]
        if mine:
            mean = sum(p for p, _ in mine) / len(mine)
            came = sum(hit for _, hit in mine) / len(mine)
            bar = "#" * round(came * 40)
            name = f"{low * 100:.0f} to {high * 100:.0f}%"
            yield f"{name:12} {len(mine):6} {mean:11.0%} {came:11.0%}   {bar}"


def scores(said: Sequence[Said]) -> Iterator[str]:
    """Brier scores: the app's, and that of saying how often each target comes true."""
    brier = always = 0.0
    for place in range(len(TARGETS)):
        pairs = [one.chances[place] for one in said]
        base = sum(hit for _, hit in pairs) / len(pairs)
        brier += sum((p - hit) ** 2 for p, hit in pairs) / len(pairs)
        always += base * (1 - base)
    brier, always = brier / len(TARGETS), always / len(TARGETS)
    yield f"Brier score {brier:.3f}; saying each target's base rate {always:.3f}"


def errors(name: str, said: Sequence[Said]) -> str:
    """Bias and mean error of the expected score in questions, and the range's share.

    Each with its standard error, by learner: the predictions of one go together.
    """
    whose = [one.learner for one in said]
    bias = clustered(whose, [one.mean - one.score for one in said])
    error = clustered(whose, [abs(one.mean - one.score) for one in said])
    inside = clustered(whose, [one.low <= one.score <= one.high for one in said])
    width = sum(one.high - one.low for one in said) / len(said)
    told = f"{bias[0]:+6.2f} ± {bias[1]:.2f} {error[0]:6.2f} ± {error[1]:.2f}"
    share = f"{inside[0]:11.1%} ± {inside[1]:.1%}"
    return f"{name:13} {len(said):6} {told} {share} {width:7.1f}"


def clustered(whose: Sequence[int], values: Sequence[float]) -> tuple[float, float]:
    """The mean of the values and its standard error, learners as clusters."""
    mean = sum(values) / len(values)
    sums: dict[int, float] = {}
    for learner, value in zip(whose, values, strict=True):
        sums[learner] = sums.get(learner, 0.0) + value - mean
    return mean, math.sqrt(math.fsum(s * s for s in sums.values())) / len(values)


if __name__ == "__main__":
    raise SystemExit(main())
