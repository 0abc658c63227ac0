"""Simulate the days until the exam, and compare scenarios."""

import dataclasses
import datetime as dt
import itertools
import math
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from app.spaced_repetition.fsrs import FsrsFormulas, Trace, fsrs_formulas
from app.spaced_repetition.review_pace import NEW_SECONDS, CardPace
from app.study_plan.card_plan import (
    FIRST_GRADES,
    CardDayPlan,
    CardPlanInputs,
    CardsLeft,
    PlanOutline,
    StartedCard,
    again_words,
    day_plan,
    plain_day,
)
from app.web.formatting import format_count, format_weekday

HORIZON = 180
"""Days ahead beyond which nothing is simulated, because too much will change."""
WHOLE = 400
"""Up to this many cards, all are simulated. Of more, an even sample is, with its minutes scaled
down in proportion; the result is usually within one or two percent."""
SAMPLE = 250
"""How many cards a sample has."""

_NEGLIGIBLE = 1e-6
_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53)
_STEPS = tuple(math.sqrt(prime) for prime in _PRIMES)

Rule = Callable[[Sequence[StartedCard], int, CardPlanInputs, FsrsFormulas], CardDayPlan]


@dataclasses.dataclass(frozen=True, slots=True)
class ForecastDay:
    """One simulated study day: cards due, new ones, final reviews, and the time.

    `added` of the new cards are added cards. `short` says that not every card gets a final review.
    A new card takes `first` seconds of the time.
    """

    day: int
    due: int
    fresh: int
    final: int
    seconds: float
    short: bool = False
    first: float = NEW_SECONDS
    added: int = 0

    @property
    def cards(self) -> int:
        return self.due + self.fresh + self.final


@dataclasses.dataclass(frozen=True, slots=True)
class PlanForecast:
    """The result of a simulation: its days, and the expected recall on the exam day.

    `recall` is the mean (0..1) over all `cards`; cards never started count as 0. `before` were
    started before the first day. `passed` of these are reviewed on no day, and `passed_due` of the
    ones due on the first day.
    """

    days: tuple[ForecastDay, ...]
    recall: float
    before: int
    cards: int
    passed: int = 0
    passed_due: int = 0

    @property
    def begun(self) -> int:
        """How many cards are started by the exam."""
        return self.before + sum(day.fresh for day in self.days)

    @property
    def most(self) -> ForecastDay | None:
        return max(self.days, key=lambda d: d.seconds, default=None)


class OutcomeModel(Protocol):
    """Decides how a simulated review is rated: 1 again, 2 hard, 3 good, 4 easy."""

    def begin(self, card: int, day: int) -> int:
        """Return the rating of the first review of card number `card`."""

    def look(self, card: int, day: int, recall: float) -> int:
        """Return the rating of a later review; `recall` is the retrievability by the model."""


class ExpectedOutcomes:
    """Expected outcomes, without randomness.

    The first reviews of the cards are spread evenly over the probabilities, and the second ones
    evenly and independently of the first, and so on (multiples of the square roots of primes). Of
    reviews with a retrievability of 0.9, nine in ten pass, whatever came before.
    """

    def __init__(self) -> None:
        self._looks: dict[int, int] = {}

    def begin(self, card: int, day: int) -> int:  # noqa: ARG002 - all days are alike
        """Return the ratings of FIRST_GRADES in their shares."""
        place, share = self._place(card), 0.0
        for rating, part in enumerate(FIRST_GRADES, 1):
            share += part
            if place < share:
                return rating
        return len(FIRST_GRADES)

    def look(self, card: int, day: int, recall: float) -> int:  # noqa: ARG002
        """Return good as often as the retrievability says, otherwise again."""
        return 3 if self._place(card) < recall else 1

    def _place(self, card: int) -> float:
        turn = self._looks.get(card, 0)
        self._looks[card] = turn + 1
        return (0.5 + (card + 1) * _STEPS[turn % len(_STEPS)]) % 1.0


class DaySimulation:
    """Simulates the cards day by day under a planning rule."""

    def __init__(
        self, begun: Sequence[StartedCard], unseen: int, curve: FsrsFormulas, fate: OutcomeModel
    ) -> None:
        self.cards = list(begun)
        self.unseen = unseen
        self.asked: set[str] = set()
        self._curve = curve
        self._fate = fate
        self._place = {card.card: place for place, card in enumerate(begun)}

    def day(self, asked: CardPlanInputs, rule: Rule, fresh: int | None = None) -> ForecastDay:
        """Simulate one day by the rule, with exactly `fresh` new cards if given."""
        plan = rule(self.cards, self.unseen, asked, self._curve)
        if fresh is not None:
            plan = dataclasses.replace(plan, fresh=min(fresh, self.unseen))
        seconds = sum(self._look(card, asked) for card in plan.looks)
        added = sum(card.fresh for card in plan.looks)
        looks = len(plan.looks) - added
        for _ in range(plan.fresh):
            self._begin(asked)
        return ForecastDay(
            day=asked.day,
            due=0 if plan.final else looks,
            fresh=plan.fresh + added,
            final=looks if plan.final else 0,
            seconds=seconds + plan.fresh * asked.pace.first,
            first=asked.pace.first,
            short=plan.short,
            added=added,
        )

    def recall(self, exam: int) -> float:
        """Return the mean recall (0..1) of all cards on the exam day."""
        whole = len(self.cards) + self.unseen
        known = (self._curve.recall(exam - c.last, c.stability) for c in self.cards)
        return sum(known) / whole if whole else 0.0

    def _look(self, card: StartedCard, asked: CardPlanInputs) -> float:
        curve, place = self._curve, self._place[card.card]
        chance = curve.recall(asked.day - card.last, card.stability)
        rating = self._fate.look(place, asked.day, chance)
        trace = card.stability, card.difficulty
        trace = curve.lapsed(trace, chance) if rating == 1 else curve.known(trace, chance, rating)
        self.cards[place] = self._simulate_card(card.card, trace, asked)
        self.asked.add(card.card)
        if card.fresh:
            return asked.pace.first
        return asked.pace.look * (2 if rating == 1 else 1)

    def _begin(self, asked: CardPlanInputs) -> None:
        place = len(self.cards)
        name = f"+{place}"
        trace = self._curve.begun(self._fate.begin(place, asked.day))
        self._place[name] = place
        self.cards.append(self._simulate_card(name, trace, asked))
        self.unseen -= 1

    def _simulate_card(self, name: str, trace: Trace, asked: CardPlanInputs) -> StartedCard:
        # In a simulation a card's reverse may be due on the same day.
        due = asked.day + self._curve.interval(trace[0], asked.retention)
        return StartedCard(name, *trace, asked.day, due)


def simulate_until_exam(
    begun: Sequence[StartedCard],
    unseen: int,
    asked: CardPlanInputs,
    curve: FsrsFormulas,
    rule: Rule = day_plan,
    *,
    skipping: int = 0,
) -> PlanForecast:
    """Simulate a rule from today to the day before the exam, with expected outcomes.

    The first `skipping` days are left out. Raises ValueError beyond the HORIZON.
    """
    days = asked.exam - asked.day
    if days > HORIZON:
        raise ValueError(f"{days} days ahead; at most {HORIZON} are run")
    whole = len(begun) + unseen
    part = SAMPLE / whole if whole > WHOLE else 1.0
    cards = sorted(begun, key=lambda c: c.card)
    old = [card for card in cards if not card.fresh]
    new = [card for card in cards if card.fresh]
    of_old = _sample_cards(old, round(len(old) * part))
    of_new = _sample_cards(new, math.ceil(len(new) * part - _NEGLIGIBLE))
    unseen_of_sample = math.ceil(unseen * part - _NEGLIGIBLE)
    run = DaySimulation([*of_old, *of_new], unseen_of_sample, curve, ExpectedOutcomes())
    ahead = _forecast_days(run, asked, rule, part, skipping)
    fresh = (unseen, unseen_of_sample), (len(new), len(of_new))
    due = {c.card: c for c in old if c.due <= asked.day and c.card not in asked.looks}
    return PlanForecast(
        days=_scale_forecast(ahead, fresh, asked, part),
        recall=run.recall(asked.exam),
        before=len(old),
        cards=whole,
        passed=_count_passed(old, of_old, run.asked | asked.looks),
        passed_due=_count_passed(due, [c for c in of_old if c.card in due], run.asked),
    )


def _forecast_days(
    run: DaySimulation, asked: CardPlanInputs, rule: Rule, part: float, skipping: int
) -> list[ForecastDay]:
    """Return the simulated days, for all cards or for a `part` of them."""
    first = _scaled_part(asked.begins, part)
    ahead: list[ForecastDay] = []
    saved = 0.0
    for day in range(asked.day + skipping, asked.exam):
        time = asked.seconds * part + saved
        over = asked.spent * part if day == asked.day else 0.0
        now = dataclasses.replace(asked, day=day, seconds=time, spent=over)
        done = run.day(now, rule, None if ahead else first)
        # Time too short for one card of the sample carries over to the next day.
        over = max(0.0, now.room - done.seconds)
        saved = min(over, asked.pace.first) if part < 1 else 0.0
        ahead.append(done)
    return ahead


def _scaled_part(count: int | None, part: float) -> int | None:
    return None if count is None else math.floor(count * part)


def _count_passed(
    cards: Collection[object], sample: Sequence[StartedCard], asked: Collection[str]
) -> int:
    """Return how many of the cards are never reviewed, extrapolated from the sample."""
    never = sum(card.card not in asked for card in sample)
    return round(never * len(cards) / len(sample)) if sample else 0


def _spread_new_cards(
    fresh: Sequence[int],
    unseen: tuple[int, int],
    today: tuple[int | None, int | None],
) -> list[int]:
    """Return the new cards of each day, scaled up from a sample; the sums stay exact.

    `unseen` is the number in all cards and in the sample, and so is `today`, which is fixed.
    """
    whole, part = unseen
    given: list[int] = []
    if today[0] is not None and today[1] is not None:
        given, fresh = [today[0]], fresh[1:]
        whole, part = max(0, whole - today[0]), part - today[1]
    sums = [round(n * whole / part) if part else 0 for n in itertools.accumulate(fresh)]
    return given + [sum_ - before for before, sum_ in itertools.pairwise([0, *sums])]


def _sample_cards(begun: Sequence[StartedCard], count: int) -> list[StartedCard]:
    return [begun[math.floor(n * len(begun) / count)] for n in range(count)]


def _scale_forecast(
    ahead: Sequence[ForecastDay],
    fresh: tuple[tuple[int, int], tuple[int, int]],
    asked: CardPlanInputs,
    part: float,
) -> tuple[ForecastDay, ...]:
    """Scale the days of a sample up to all cards.

    `fresh` are the new course cards (all, and those of the sample), and the added ones.
    """
    begins = [day.fresh - day.added for day in ahead]
    if part < 1:
        today = asked.begins, _scaled_part(asked.begins, part)
        begins = _spread_new_cards(begins, fresh[0], today)
    adds = [day.added for day in ahead]
    adds = _spread_new_cards(adds, fresh[1], (asked.adds, sum(adds[:1])))
    return tuple(map(_scale_sample_day, ahead, begins, adds, itertools.repeat(part)))


def _scale_sample_day(day: ForecastDay, begun: int, added: int, part: float) -> ForecastDay:
    """Scale one day up to all cards, with the given numbers of new course and added cards."""
    fresh = begun + added
    looks = day.seconds - day.fresh * day.first
    return dataclasses.replace(
        day,
        due=round(day.due / part),
        fresh=fresh,
        added=added,
        final=round(day.final / part),
        seconds=looks / part + fresh * day.first,
    )


SKIPPED = 3
"""How many of the next days the scenario “skip days” leaves out."""
_AGAIN = again_words(short=False)


@dataclasses.dataclass(frozen=True, slots=True)
class DeckCounts:
    """The cards of a learner: those started, and how many course cards were not.

    `added` of the started ones were added and never reviewed; the plan treats them as no better
    known than after a first “again”. `answered` cards were reviewed on the study day, of which
    `fresh` were started on it. Suspended cards and cards that left the course are not counted.
    """

    begun: tuple[StartedCard, ...] = ()
    unseen: int = 0
    added: int = 0
    answered: int = 0
    fresh: int = 0

    @property
    def started(self) -> int:
        """How many cards were reviewed at least once."""
        return len(self.begun) - self.added

    @property
    def cards(self) -> int:
        return len(self.begun) + self.unseen


@dataclasses.dataclass(frozen=True, slots=True)
class StudyScenario:
    """The result of one way to study until the exam, in the same minutes.

    `known` of all cards are expected to be recalled on the exam day, and `begun` were started.
    `most` and `mean` are the minutes of the longest day and of an average day from now on.
    """

    known: int
    begun: int
    most: float
    mean: float


@dataclasses.dataclass(frozen=True, slots=True)
class ScenarioComparison:
    """The simulated plan, compared with plain intervals and with skipped days.

    The last scenario leaves out `skipped` of the next days; it is None if too few days are left.
    """

    outlook: PlanForecast
    plan: StudyScenario
    plain: StudyScenario
    without: StudyScenario | None
    skipped: int

    @property
    def ways(self) -> tuple[tuple[str, StudyScenario], ...]:
        """The scenarios by name, as rows of a table."""
        two = ("as planned", self.plan), ("without the exam day", self.plain)
        if self.without is None:
            return two
        return *two, (f"planned, {format_count(self.skipped, 'day')} skipped", self.without)

    @property
    def compared(self) -> str:
        """What the other scenarios would cost, in sentences."""
        other = self.plain.known - self.plan.known
        said = [f"Without planning for the exam day it would be {_fewer_text(other)}."]
        if self.without is not None:
            lost = self.without.known - self.plan.known
            change = self.without.mean - self.plan.mean
            said.append(
                f"If you skip {_days_text(self.skipped)}, it would be {_fewer_text(lost)}, {_minutes_text(change)}."
            )
        return " ".join(said)


def plan_inputs(
    held: DeckCounts,
    exam: dt.date,
    seconds: float,
    day: dt.date,
    retention: float,
    pace: CardPace,
) -> CardPlanInputs:
    """Return the inputs of a card plan now; the time spent today is subtracted."""
    spent = pace.look * (held.answered - held.fresh) + pace.first * held.fresh
    days = day.toordinal(), exam.toordinal()
    return CardPlanInputs(*days, seconds, retention, spent, pace=pace)


def compare_scenarios(
    held: DeckCounts, asked: CardPlanInputs, left: CardsLeft
) -> ScenarioComparison | None:
    """Simulate the scenarios; None beyond the horizon, on the exam day, and after it.

    The first day is shown with the cards `left` in the review queue.
    """
    days = asked.exam - asked.day
    if not 0 < days <= HORIZON:
        return None
    curve, cards = fsrs_formulas(), (held.begun, held.unseen)
    begins = left.fresh - left.added
    known = dataclasses.replace(asked, begins=begins, adds=left.added)
    outlook = _begun_with(left, simulate_until_exam(*cards, known, curve, day_plan))
    plain = simulate_until_exam(*cards, asked, curve, plain_day)
    skipped = min(SKIPPED, days - 1)
    less = simulate_until_exam(*cards, asked, curve, day_plan, skipping=skipped)
    return ScenarioComparison(
        outlook=outlook,
        plan=_build_scenario(outlook),
        plain=_build_scenario(plain),
        without=_build_scenario(less) if skipped else None,
        skipped=skipped,
    )


def plan_summary(short: PlanOutline, asked: CardPlanInputs, left: CardsLeft) -> str:
    """Return the plan in one sentence, from counts alone; `left` is in the queue today."""
    until = format_weekday(dt.date.fromordinal(asked.exam))
    if short.final <= asked.day:
        said = _last_days(left)
    elif short.short:
        # Counts alone cannot tell whether a final review gains more than a new card. The full plan
        # decides that.
        said = pace_words(short) or "what is due"
    elif short.fresh:
        said = f"{pace_words(short)} until {_weekday_name(short.until)}, {_describe_final_review(short)}"
    else:
        said = f"what is due, and from {_weekday_name(short.final)} on {_AGAIN}"
    return f"Until {until}: {said}."


def pace_words(short: PlanOutline) -> str:
    """Return how many new cards a day, in the wording used on every page."""
    if not short.fresh:
        return ""
    return f"about {format_count(short.fresh, 'new card')} a day"


def _describe_final_review(short: PlanOutline) -> str:
    if short.until == short.final - 1:
        return f"then {_AGAIN}"
    return f"and from {_weekday_name(short.final)} on {_AGAIN}"


def _last_days(left: CardsLeft) -> str:
    if not left.due:
        return "nothing more to review today"
    return f"the cards you started once more, {left.due:,} of them today"


def _weekday_name(ordinal: int) -> str:
    return format_weekday(dt.date.fromordinal(ordinal))


def _begun_with(left: CardsLeft, outlook: PlanForecast) -> PlanForecast:
    """Return the forecast with the first day taken from the queue, planned this morning."""
    today = dataclasses.replace(
        outlook.days[0],
        due=0 if left.final else left.returning,
        fresh=left.fresh,
        final=left.returning if left.final else 0,
        seconds=left.seconds,
    )
    return dataclasses.replace(outlook, days=(today, *outlook.days[1:]))


def _build_scenario(outlook: PlanForecast) -> StudyScenario:
    minutes = [day.seconds / 60 for day in outlook.days]
    return StudyScenario(
        known=round(outlook.recall * outlook.cards),
        begun=outlook.begun,
        most=max(minutes, default=0.0),
        mean=sum(minutes) / len(minutes) if minutes else 0.0,
    )


def _fewer_text(cards: int) -> str:
    """Return a difference in cards: “12 fewer”, “1 more”, “as many”."""
    if not cards:
        return "as many"
    return f"{abs(cards):,} {'more' if cards > 0 else 'fewer'}"


def _minutes_text(change: float) -> str:
    whole = round(change)
    if not whole:
        return "with the same minutes on the days after"
    minutes = f"{format_count(abs(whole), 'minute')} {'more' if whole > 0 else 'less'}"
    return f"with {minutes} a day after that"


def _days_text(days: int) -> str:
    return "the next day" if days == 1 else f"the next {days} days"
