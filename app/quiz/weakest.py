"""Which objective is weakest, by the order that Today goes by too."""

from app.learners.desk import RequestContext
from app.mastery.standing import DomainMastery, standings
from app.mastery.store import load_mastery_data
from app.mastery.weakest import WeakObjective, weakest_first


def weakest_of(desk: RequestContext) -> tuple[WeakObjective, ...]:
    """The objectives with questions in the order to practice them."""
    return standing_of(desk)[1]


def standing_of(
    desk: RequestContext,
) -> tuple[tuple[DomainMastery, ...], tuple[WeakObjective, ...]]:
    """Where the learner stands in each objective, and the order to practice them."""
    record = load_mastery_data(desk.db, desk.learner, desk.now).record
    day = desk.learner.study_day(desk.now)
    domains = standings(desk.library, record, day)
    return domains, weakest_first(desk.library, record, domains)
