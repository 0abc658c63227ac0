"""The days until the exam as the plan fills them, and what other ways would bring."""

import dataclasses
import datetime as dt

from app.scheduling import CardPace, CardsLeft
from app.scheduling.curve import fsrs_formulas
from app.scheduling.exam import StartedCard
from app.scheduling.exam_plan import (
    CardPlanInputs,
    PlanOutline,
    again_words,
    day_plan,
    plain_day,
)
from app.scheduling.outlook import HORIZON, PlanForecast, simulate_until_exam
from app.web.words import format_count, format_weekday

SKIPPED = 3
"""How many of the next days the question “what if I skip them” leaves out."""
_AGAIN = again_words(short=False)


@dataclasses.dataclass(frozen=True, slots=True)
class DeckCounts:
    """The cards of a learner: those begun, and how many of the course never were.

    Of those begun, `added` were added and never graded: the plan has to ask them, as
    little known as after a first “again”. `answered` cards were answered on the study
    day, of which `fresh` were begun on it. Cards put aside and cards that left the
    course are in none of these.
    """

    begun: tuple[StartedCard, ...] = ()
    unseen: int = 0
    added: int = 0
    answered: int = 0
    fresh: int = 0

    @property
    def started(self) -> int:
        """How many cards were graded at least once."""
        return len(self.begun) - self.added

    @property
    def cards(self) -> int:
        """All cards there are to learn."""
        return len(self.begun) + self.unseen


@dataclasses.dataclass(frozen=True, slots=True)
class StudyScenario:
    """One way to study until the exam, in the same minutes.

    `known` of all cards are expected to be known on the day, `begun` were begun;
    `most` and `mean` are the minutes of the longest day and of all days from now on.
    """

    known: int
    begun: int
    most: float
    mean: float


@dataclasses.dataclass(frozen=True, slots=True)
class ScenarioComparison:
    """The plan run forward, beside plain intervals and days that are skipped.

    `skipped` of the next days are left out in the last way; None where so few are
    left that nothing would remain.
    """

    outlook: PlanForecast
    plan: StudyScenario
    plain: StudyScenario
    without: StudyScenario | None
    skipped: int

    @property
    def ways(self) -> tuple[tuple[str, StudyScenario], ...]:
        """The ways by name, as a table shows them."""
        two = ("as planned", self.plan), ("without the exam day", self.plain)
        if self.without is None:
            return two
        return *two, (f"planned, {format_count(self.skipped, 'day')} skipped", self.without)

    @property
    def compared(self) -> str:
        """What the other ways would cost, in sentences."""
        other = self.plain.known - self.plan.known
        said = [f"Without planning for the exam day it would be {_less(other)}."]
        if self.without is not None:
            lost = self.without.known - self.plan.known
            change = self.without.mean - self.plan.mean
            said.append(
                f"If you skip {_next(self.skipped)}, it would be {_less(lost)}, {_minutes(change)}."
            )
        return " ".join(said)


def asked_of(
    held: DeckCounts,
    exam: dt.date,
    seconds: float,
    day: dt.date,
    retention: float,
    pace: CardPace,
) -> CardPlanInputs:
    """What is asked of the plan now; what was done today takes its time."""
    spent = pace.look * (held.answered - held.fresh) + pace.first * held.fresh
    days = day.toordinal(), exam.toordinal()
    return CardPlanInputs(*days, seconds, retention, spent, pace=pace)


def compare_scenarios(
    held: DeckCounts, asked: CardPlanInputs, left: CardsLeft
) -> ScenarioComparison | None:
    """Run the days forward; None beyond the horizon, on the exam day, and after it.

    The first day is shown with the cards that are `left` of it on the desk.
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
        plan=_way(outlook),
        plain=_way(plain),
        without=_way(less) if skipped else None,
        skipped=skipped,
    )


def plan_summary(short: PlanOutline, asked: CardPlanInputs, left: CardsLeft) -> str:
    """The plan in one sentence, from counts alone; `left` is on the desk today."""
    until = format_weekday(dt.date.fromordinal(asked.exam))
    if short.final <= asked.day:
        said = _last_days(left)
    elif short.short:
        # From counts alone nobody can tell whether a last look gains more than a new
        # card: that is left to the plan.
        said = pace_words(short) or "what is due"
    elif short.fresh:
        said = f"{pace_words(short)} until {_weekday(short.until)}, {_once_more(short)}"
    else:
        said = f"what is due, and from {_weekday(short.final)} on {_AGAIN}"
    return f"Until {until}: {said}."


def pace_words(short: PlanOutline) -> str:
    """How many new cards a day, in the words of every page that says so."""
    if not short.fresh:
        return ""
    return f"about {format_count(short.fresh, 'new card')} a day"


def _once_more(short: PlanOutline) -> str:
    if short.until == short.final - 1:
        return f"then {_AGAIN}"
    return f"and from {_weekday(short.final)} on {_AGAIN}"


def _last_days(left: CardsLeft) -> str:
    if not left.due:
        return "nothing more to review today"
    return f"the cards you started once more, {left.due:,} of them today"


def _weekday(ordinal: int) -> str:
    return format_weekday(dt.date.fromordinal(ordinal))


def _begun_with(left: CardsLeft, outlook: PlanForecast) -> PlanForecast:
    """The days ahead, the first as the desk has it: its plan is of this morning."""
    today = dataclasses.replace(
        outlook.days[0],
        due=0 if left.final else left.returning,
        fresh=left.fresh,
        final=left.returning if left.final else 0,
        seconds=left.seconds,
    )
    return dataclasses.replace(outlook, days=(today, *outlook.days[1:]))


def _way(outlook: PlanForecast) -> StudyScenario:
    minutes = [day.seconds / 60 for day in outlook.days]
    return StudyScenario(
        known=round(outlook.recall * outlook.cards),
        begun=outlook.begun,
        most=max(minutes, default=0.0),
        mean=sum(minutes) / len(minutes) if minutes else 0.0,
    )


def _less(cards: int) -> str:
    """A difference in cards: “12 fewer”, “1 more”, “as many”."""
    if not cards:
        return "as many"
    return f"{abs(cards):,} {'more' if cards > 0 else 'fewer'}"


def _minutes(change: float) -> str:
    whole = round(change)
    if not whole:
        return "with the same minutes on the days after"
    minutes = f"{format_count(abs(whole), 'minute')} {'more' if whole > 0 else 'less'}"
    return f"with {minutes} a day after that"


def _next(days: int) -> str:
    return "the next day" if days == 1 else f"the next {days} days"
