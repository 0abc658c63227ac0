"""Simulated learners with known true knowledge, who follow the real planner.

They know more after reading a page, reviewing its cards and answering its questions, and forget in
between. How much is drawn for each learner and is not what the score model assumes: it works with
one mean for everybody. The planner and the score see only what the app would see.
"""

import collections
import dataclasses
import datetime as dt
import math
import random
import statistics
from collections.abc import Callable

from fsrs.scheduler import DEFAULT_PARAMETERS

from app.accounts.learner import CardAmount, PageLength, PlanCalendar, plan_mock_exam_days
from app.content.course_facts import CourseFacts
from app.content.reading_routes import ESSENTIAL_SHARE, PageFraction
from app.study_plan.day_list import (
    DayActivity,
    DayList,
    compute_reading_minutes_after_today,
    count_unfinished_in_a_row,
    list_unread_pages,
    make_day_list,
    measure_task_progress,
)
from app.study_plan.facts import (
    CardFact,
    FirstAnswerFact,
    LearnerFacts,
    Paces,
    ReadingFact,
    sum_readings_by_page,
)
from app.study_plan.score import (
    PRIORS,
    ScoreEstimate,
    ScorePriors,
    estimate_score,
    limit_score_drop,
)
from tests.study_plan.fsrs_formulas import USUAL_FORMULAS, FsrsFormulas

BEGIN = dt.date(2026, 1, 1)
_FIRST_RATINGS = (0.24, 0.094, 0.495, 0.171)
_PROFILES = (
    (-2.2, (0.0, 0.0, 0.0)),
    (-1.5, (-0.2, 0.5, 0.4)),
    (-1.3, (1.0, -0.5, -0.5)),
    (-0.4, (0.3, 0.0, 0.0)),
)


@dataclasses.dataclass
class Card:
    """A card in the learner's true memory, and as FSRS sees it with its usual parameters."""

    true: tuple[float, float]
    seen: tuple[float, float]
    first: int
    last: int
    due: int
    later: int = 0


@dataclasses.dataclass
class Day:
    """What one day held: minutes planned, used, of a placement test; tasks; scores; unread pages."""

    planned: float = 0.0
    used: float = 0.0
    listed: dict[str, int] = dataclasses.field(default_factory=dict)
    done: dict[str, int] = dataclasses.field(default_factory=dict)
    finished: int = 0
    tasks: int = 0
    true: float = 0.0
    shown: float = 0.0
    mean: float = 0.0
    inside: bool = True
    skipped: bool = False
    mock: bool = False
    placement: float = 0.0
    unread_pages: int = 0
    pages_fit: bool = False


class SimulatedLearner:
    """A learner of `course`; `number` chooses a profile, `seed` and it draw everything else."""

    def __init__(self, course_facts: CourseFacts, seed: int, number: int, days: int) -> None:
        self.course_facts, self.days, self.day = course_facts, days, 0
        self.name = f"{seed} {number}"
        rng = random.Random(self.name)  # noqa: S311
        level, shifts = _PROFILES[number % len(_PROFILES)]
        general = level + rng.gauss(0, 0.5)
        ground, half = {}, {}
        for shift, domain in zip(shifts, course_facts.domains, strict=True):
            mean = general + shift + rng.gauss(0, 0.35)
            for o in domain.objective_numbers:
                ground[o], half[o] = mean + rng.gauss(0, 0.5), rng.uniform(20, 120)
        pages = course_facts.pages.values()
        self.ground = {
            p.slug: statistics.fmean(ground[o] for o in p.objectives) + rng.gauss(0, 0.4)
            for p in pages
        }
        self.half = {p.slug: statistics.fmean(half[o] for o in p.objectives) for p in pages}
        self.level, self.touched = dict(self.ground), dict.fromkeys(self.ground, 0)
        self.answered: collections.Counter[str] = collections.Counter()
        self.gain, self.asking = rng.uniform(1.0, 2.5), 0.25 * rng.lognormvariate(0, 0.3)
        self.pace = tuple(rng.lognormvariate(0, s) for s in (0.2, 0.2, 0.15))
        usual = DEFAULT_PARAMETERS
        own = (
            v * rng.lognormvariate(0, 0.125 if i in (5, 20) else 0.25) for i, v in enumerate(usual)
        )
        self.memory = FsrsFormulas(tuple(own))
        skip = rng.uniform(0.05, 0.25)
        self.skips = [n > 0 and rng.random() < skip for n in range(days)]
        self.willing = [rng.random() < 0.85 for _ in range(days)]
        bank = random.Random(f"bank {seed}")  # noqa: S311
        self.bank = {
            q: (bank.uniform(0.7, 1.6), bank.gauss(-0.4, 0.8)) for q in course_facts.questions
        }
        self.rng = random.Random(f"acts {self.name}")  # noqa: S311
        self.cards: dict[str, Card] = {}
        self.page_of = {card: p.slug for p in pages for card in p.card_ids}
        self.recall = dict.fromkeys(self.ground, 0.0)
        self.readings: list[ReadingFact] = []
        self.answers: list[FirstAnswerFact] = []
        self.last: dict[str, int] = {}
        self.missed: dict[str, dt.date] = {}
        self.seconds = {"review": [225.0, 20], "new": [1200.0, 20], "question": [1080.0, 15]}
        self.clock = 0
        self.last_sat: dt.date | None = None

    @property
    def today(self) -> dt.date:
        return BEGIN + dt.timedelta(days=self.day)

    def wake(self, day: int) -> None:
        self.day = day
        recall: collections.Counter[str] = collections.Counter()
        for name, card in self.cards.items():
            recall[self.page_of[name]] += self.memory.recall_probability(
                day - card.last, card.true[0]
            )  # type: ignore[assignment]
        for slug, page in self.course_facts.pages.items():
            self.recall[slug] = recall[slug] / len(page.card_ids) if page.card_ids else 0.0

    def strength(self, page: str) -> float:
        fading = 2 ** (-(self.day - self.touched[page]) / self.half[page])
        return self.ground[page] + (self.level[page] - self.ground[page]) * fading

    def knows(self, page: str, slope: float = 1.0, difficulty: float = -0.4) -> float:
        known = _sigmoid(slope * (self.strength(page) - difficulty))
        return known + (1 - known) * 0.5 * self.recall[page]

    def _lift(self, page: str, gain: float, longer: float) -> None:
        strength = self.strength(page)
        self.level[page] = strength + gain * _sigmoid(1.5 - strength)
        self.touched[page] = self.day
        self.half[page] *= longer

    def read(self, page: str, short: bool = False) -> float:
        """Read what is left of a page; the essential sections of a short one teach a part of it."""
        before = sum_readings_by_page(self.readings)[page]
        after = PageFraction(ESSENTIAL_SHARE, 1.0) if short else PageFraction(1.0, 1.0)
        gain = self.gain * (after.share - before.share)
        self._lift(page, gain, 1.3)
        peers = self.course_facts.pages[page].same_objective_pages
        for peer in peers:
            self.level[peer] += 0.3 * gain / len(peers)
        self.clock += 1
        share, essential = (
            after.share - before.share,
            after.essential_share - before.essential_share,
        )
        self.readings.append(ReadingFact(page, share, self.today, self.clock, essential))
        facts = self.course_facts.pages[page]
        minutes = facts.compute_reading_minutes_of_fraction(
            after
        ) - facts.compute_reading_minutes_of_fraction(before)
        return minutes * self.pace[2] * self.rng.lognormvariate(0, 0.1)

    def answer(self, question: str, context: str = "practice") -> float:
        facts = self.course_facts.questions[question]
        slope, difficulty = self.bank[question]
        known = self.knows(facts.page, slope, difficulty)
        if question in self.last:
            known += (1 - known) * 0.7 * math.exp(-(self.day - self.last[question]) / 6)
        right = self.rng.random() < facts.guess_score + (1 - facts.guess_score) * known
        gain = self.asking * (0.35 if right else 1.0) * 0.9 ** self.answered[facts.page]
        gain *= 0.7 if context == "exam" else 1.0
        self.answered[facts.page] += 1
        self._lift(facts.page, gain, 1.05)
        for peer in self.course_facts.pages[facts.page].same_objective_pages:
            self.level[peer] += 0.2 * gain
        self.clock += 1
        if question not in self.last:
            fact = FirstAnswerFact(question, float(right), self.today, self.clock, context)
            self.answers.append(fact)
        self.last[question] = self.day
        self.missed.pop(question, None)
        if not right:
            self.missed[question] = self.today
        return self._spend("question", (55 if right else 85) * self.pace[1])

    def _spend(self, kind: str, seconds: float) -> float:
        self.seconds[kind][0] += seconds
        self.seconds[kind][1] += 1
        return seconds / 60

    def begin(self, name: str) -> float:
        rating = self.rng.choices((1, 2, 3, 4), _FIRST_RATINGS)[0]
        true, seen = self.memory.after_first_day(rating), USUAL_FORMULAS.after_first_day(rating)
        ease = self.rng.lognormvariate(0, 0.3)
        due = self.day + USUAL_FORMULAS.interval_days(seen[0])
        self.cards[name] = Card((true[0] * ease, true[1]), seen, self.day, self.day, due)
        return self._spend("new", 60 * self.pace[0])

    def review(self, name: str) -> float:
        card, usual = self.cards[name], USUAL_FORMULAS
        passed = self.day - card.last
        true, seen = (
            self.memory.recall_probability(passed, card.true[0]),
            usual.recall_probability(passed, card.seen[0]),
        )
        if self.rng.random() >= true:
            card.true = self.memory.after_lapse_and_relearning(card.true, true)
            card.seen = usual.after_lapse_and_relearning(card.seen, seen)
            seconds = 20
        else:
            rating = self.rng.choices((2, 3, 4), (0.15, 0.7, 0.15))[0]
            card.true = self.memory.after_success(card.true, true, rating)
            card.seen = usual.after_success(card.seen, seen, rating)
            seconds = 10
        card.later += passed > 0
        card.last, card.due = self.day, self.day + usual.interval_days(card.seen[0])
        return self._spend("review", seconds * self.pace[0])

    def paper(self) -> list[str]:
        """Unseen questions of a mock exam, by blueprint."""
        chosen: dict[str, None] = {}
        for domain in self.course_facts.domains:
            numbers = list(domain.objective_numbers)
            self.rng.shuffle(numbers)
            for n in range(domain.exam_question_count):
                number = numbers[n % len(numbers)]
                bank = self.course_facts.objectives[number].question_ids
                free = [q for q in bank if q not in self.last and q not in chosen]
                if free:
                    chosen[self.rng.choice(free)] = None
        return list(chosen)

    def score(self) -> float:
        """The true expected score of an exam today."""
        total = 0.0
        for domain in self.course_facts.domains:
            for number in domain.objective_numbers:
                facts = self.course_facts.objectives[number]
                known = sum(
                    share * self.knows(page) for page, share in facts.question_share_by_page.items()
                )
                right = facts.guess_score + (1 - facts.guess_score) * known
                total += domain.exam_question_count * right / len(domain.objective_numbers)
        return total

    def sit(self) -> int:
        """The result of one exam today, whose questions are all new."""
        right = 0
        for domain in self.course_facts.domains:
            for n in range(domain.exam_question_count):
                number = domain.objective_numbers[n % len(domain.objective_numbers)]
                question = self.rng.choice(self.course_facts.objectives[number].question_ids)
                facts = self.course_facts.questions[question]
                known = self.knows(
                    facts.page, self.rng.uniform(0.7, 1.6), self.rng.gauss(-0.4, 0.8)
                )
                right += self.rng.random() < facts.guess_score + (1 - facts.guess_score) * known
        return right

    def facts(self, undone: dict[str, int]) -> LearnerFacts:
        """What the app would know this morning."""
        review, new, question = (
            self.seconds[kind][0] / self.seconds[kind][1] / 60
            for kind in ("review", "new", "question")
        )
        return LearnerFacts(
            day=self.today,
            readings=self.readings,
            first_answers=self.answers,
            miss_day_by_question=dict(self.missed),
            started_cards=[
                CardFact(
                    name,
                    self.course_facts.note_by_card.get(name, name),
                    self.page_of[name],
                    card.seen[0],
                    BEGIN + dt.timedelta(days=card.first),
                    BEGIN + dt.timedelta(days=card.last),
                    BEGIN + dt.timedelta(days=card.due),
                    card.later,
                )
                for name, card in self.cards.items()
            ],
            paces=Paces(review, new, question),
            unfinished_by_kind=undone,
            last_exam_day=self.last_sat,
        )


@dataclasses.dataclass
class StudyRun:
    """One learner's way to the exam, day by day, and the learner at its end."""

    learner: SimulatedLearner
    days: list[Day]

    @property
    def score(self) -> float:
        return self.learner.score()

    def share_of_cards(self) -> dict[str, float]:
        """Return the share of the started cards by domain."""
        pages = self.learner.course_facts.pages
        counts = collections.Counter(
            pages[self.learner.page_of[card]].domain for card in self.learner.cards
        )
        return {d: count / counts.total() for d, count in counts.items()}


@dataclasses.dataclass(frozen=True)
class Way:
    """How a learner studies: until the exam, `done` of each list's minutes, and the assumptions.

    Without `skips`, no day and no mock exam is left out.
    """

    days: int = 24
    minutes: float = 30.0
    done: float = 1.0
    amount: CardAmount = "normal"
    length: PageLength = "auto"
    priors: ScorePriors = PRIORS
    skips: bool = True


def study(course_facts: CourseFacts, seed: int, number: int, way: Way = Way()) -> StudyRun:
    """Let a learner follow the planner until the exam."""
    learner = SimulatedLearner(course_facts, seed, number, way.days)
    if not way.skips:
        learner.skips, learner.willing = [False] * way.days, [True] * way.days
    exam = BEGIN + dt.timedelta(days=way.days)
    calendar = PlanCalendar(BEGIN, exam, plan_mock_exam_days(BEGIN, exam))
    undone, length = dict[str, int](), way.length
    log: list[Day] = []
    before: ScoreEstimate | None = None
    for n in range(way.days):
        learner.wake(n)
        if n == 0:
            for question in learner.paper()[::3][:15]:
                learner.answer(question, "placement")
        facts = learner.facts(undone)
        estimate = estimate_score(course_facts, facts, way.priors)
        assert estimate
        if before is not None and "mock" not in log[-1].done:
            shown = limit_score_drop(estimate.mean, before.shown, 1)
            estimate = dataclasses.replace(estimate, shown=shown)
        day, before = Day(skipped=learner.skips[n]), estimate
        log.append(day)
        day.true, day.shown, day.mean = learner.score(), estimate.shown, estimate.mean
        if n % 7 == 0 or n == way.days - 1:
            day.inside = estimate.low <= learner.sit() <= estimate.high
        if day.skipped:
            continue
        made = make_day_list(
            course_facts,
            facts,
            calendar,
            estimate,
            day_minutes=way.minutes,
            amount=way.amount,
            length=length,
            seed=learner.name,
        )
        unread = list_unread_pages(course_facts, facts, made.route)
        day.unread_pages = sum(not page.is_rest for page in unread)
        later = compute_reading_minutes_after_today(facts, calendar, way.minutes, way.amount)
        today = sum(page.minutes for task in made.tasks for page in task.pages)
        day.pages_fit = sum(page.minutes for page in unread) <= today + later
        undone = follow(learner, made, day, way.done)
        length = "short" if made.route == "short" else way.length
    learner.wake(way.days)
    return StudyRun(learner, log)


def follow(learner: SimulatedLearner, made: DayList, day: Day, share: float) -> dict[str, int]:
    """Do the tasks of a list in order, until `share` of its minutes are used; returns `undone`."""
    limit = sum(task.minutes for task in made.tasks) * share if share < 1 else math.inf
    day.planned, day.tasks = sum(task.minutes for task in made.tasks), len(made.tasks)
    day.placement = made.placement_minutes
    done: collections.defaultdict[str, set[str]] = collections.defaultdict(set)
    for task in made.tasks:
        day.listed[task.kind] = len(task.cards) + len(task.pages) + len(task.questions) or 1
        if task.kind == "mock":
            day.mock = True
            if learner.willing[learner.day] and day.used < limit:
                for question in learner.paper():
                    learner.answer(question, "exam")
                day.used += task.minutes
                learner.last_sat = learner.today
                done["mock"].add(task.exam)
            continue
        short = {page.slug for page in task.pages if page.short}
        act: Callable[[str], float] = {
            "review": learner.review,
            "new": learner.begin,
            "read": lambda page, short=short: learner.read(page, page in short),
            "practice": learner.answer,
        }[task.kind]
        for item in (*task.cards, *(page.slug for page in task.pages), *task.questions):
            if day.used >= limit:
                break
            day.used += act(item)
            done[task.kind].add(item)
    day.done = {kind: len(items) for kind, items in done.items()}
    cards = done["review"] | done["new"]
    ticked = measure_task_progress(
        made.tasks,
        DayActivity(
            cards, done["read"], done["read"], done["practice"], has_sat_exam="mock" in done
        ),
    )
    day.finished = sum(task.is_done for task in ticked)
    return count_unfinished_in_a_row(made.undone, ticked)


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -30 else 0.0
