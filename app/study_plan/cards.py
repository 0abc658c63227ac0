"""The cards of a day: which are reviewed, how many new ones begin, and which."""

import datetime as dt
import math
from collections import Counter
from collections.abc import Collection, Mapping

from app.accounts.learner import CardAmount, PlanCalendar
from app.content.course_facts import CourseFacts
from app.spaced_repetition.scheduler import compute_retrievability_after
from app.study_plan.facts import CardFact, LearnerFacts

_REVIEW_SHARE = 0.4  # of a day's minutes, at most
NEW_SHARE: Mapping[CardAmount, float] = {"fewer": 0.15, "normal": 0.25, "more": 0.35}
LATER_REVIEWS = 2  # on later days, which every new card must still get before the exam
_REVIEW_ROOM = 0.22  # of the minutes ahead, for reviews: not all days are used, not all cards due
_OWED = 1.25  # reviews that a planned review takes, because some cards are forgotten
_PER_CARD = LATER_REVIEWS * _OWED
_FRONT_LOAD = 1.3  # more new cards at first than later
_LAST_DAYS, _LAST_SHARE = 2, 0.12  # of the plan, in which cards are reviewed for the exam
_WEAK_RECALL = 0.85
_NO_NEW_DAYS, _NO_NEW_SHARE = 4, 0.2  # of the plan, before the exam, without new cards
_A_PAGE = 4  # new cards of one page on one day


def compute_planned_review_day(card: CardFact, calendar: PlanCalendar) -> dt.date:
    """Return when a card is due: FSRS's day, or earlier for the exam.

    Two later reviews must still fit. A card that would be weak on the exam day is due in the last
    days, and again each day while it is.
    """
    exam, day = calendar.exam_day, card.due_day
    if exam is None:
        return day
    missing, left = LATER_REVIEWS - card.later_reviews, (exam - card.last_day).days
    if missing > 0 and left > 2:
        latest = card.last_day + dt.timedelta(days=max(1, (left - 1) // (missing + 1)))
        day = min(day, latest)
    if compute_retrievability_after(left, card.stability) < _WEAK_RECALL:
        last_days = max(_LAST_DAYS, round(_LAST_SHARE * calendar.total_days))
        begin = exam - dt.timedelta(days=last_days)
        day = min(day, max(begin, card.last_day + dt.timedelta(days=1)))
    return day


def choose_cards_to_review(
    learner: LearnerFacts, calendar: PlanCalendar, day_minutes: float
) -> list[CardFact]:
    """Return the cards to review, most likely forgotten first, in at most 40% of the minutes.

    A card whose reverse is among them waits for another day, except on the last day.
    """
    day, left = learner.day, calendar.days_until_exam(learner.day)
    when = max(day, calendar.exam_day) if calendar.exam_day and left <= 3 else day

    def recall(card: CardFact) -> float:
        return compute_retrievability_after((when - card.last_day).days, card.stability)

    due = [c for c in learner.started_cards if compute_planned_review_day(c, calendar) <= day]
    due.sort(key=lambda card: (recall(card), card.card))
    if left > 1:
        due = list({card.note: card for card in reversed(due)}.values())[::-1]
    return due[: int(_REVIEW_SHARE * day_minutes / learner.paces.review_minutes)]


def compute_last_day_for_new_cards(calendar: PlanCalendar) -> dt.date | None:
    """Return the last day on which new cards begin; None without an exam day."""
    if calendar.exam_day is None:
        return None
    days = max(_NO_NEW_DAYS, round(_NO_NEW_SHARE * calendar.total_days))
    return calendar.exam_day - dt.timedelta(days=days + 1)


def count_cards_fitting_before_exam(
    learner: LearnerFacts, calendar: PlanCalendar, day_minutes: float
) -> float:
    """Return how many more new cards can still be reviewed twice before the exam."""
    ahead = calendar.count_study_days_after(learner.day)
    room = _REVIEW_ROOM * day_minutes / learner.paces.review_minutes * ahead
    owed = sum(max(0, LATER_REVIEWS - card.later_reviews) for card in learner.started_cards)
    return max(0.0, room - _OWED * owed) / _PER_CARD


def count_new_cards_to_begin(
    learner: LearnerFacts, calendar: PlanCalendar, day_minutes: float, amount: CardAmount
) -> int:
    """Return how many new cards may begin today."""
    last = compute_last_day_for_new_cards(calendar)
    if last is not None and learner.day > last:
        return 0
    days = (last - learner.day).days + 1 if last else calendar.total_days
    spare = count_cards_fitting_before_exam(learner, calendar, day_minutes)
    most = int(NEW_SHARE[amount] * day_minutes / learner.paces.new_card_minutes)
    return min(most, math.ceil(_FRONT_LOAD * spare / days), int(spare))


def choose_new_cards(
    course: CourseFacts,
    learner: LearnerFacts,
    chance_known_by_page: Mapping[str, float],
    max_cards: int,
    reviewed_cards: Collection[str] = (),
) -> list[str]:
    """Return the new cards to begin, none of a note that is reviewed; chances are 0 to 1.

    Cards that the learner added come first: all own ones, and missed questions in at most half of
    the places. The rest are of pages read, or with a question missed at first. The domain furthest
    below its share of the exam gives the next card, from the page where it helps most.
    """
    missed = Counter(
        course.questions[answer.question].page
        for answer in learner.first_answers
        if answer.score < 1 and answer.question in course.questions
    )
    own = [card for card in learner.due_added_cards if not card.startswith("q:")]
    questions = [card for card in learner.due_added_cards if card.startswith("q:")]
    chosen = [*own[:max_cards], *questions[: max(0, max_cards - len(own)) // 2]]
    started = {card.card for card in learner.started_cards} | learner.unavailable_cards
    notes = {
        card.note
        for card in learner.started_cards
        if card.last_day >= learner.day or card.card in reviewed_cards
    }
    read = {reading.page for reading in learner.readings}
    left = {
        slug: cards
        for slug, page in course.pages.items()
        if (slug in read or missed[slug])
        and (cards := [card for card in page.card_ids if card not in started])
    }
    weights = {domain.number: domain.exam_share for domain in course.domains}
    begun_pages = (course.pages.get(card.page) for card in learner.started_cards)
    begun, today = Counter(page.domain for page in begun_pages if page), Counter[str]()

    def gain(slug: str) -> tuple[bool, float]:
        page = course.pages[slug]
        weight = course.objectives[page.objectives[0]].exam_share
        value = 0.3 * (missed[slug] > 0) + 5 * weight * (1 - chance_known_by_page.get(slug, 0.3))
        used = len(page.card_ids) - len(left[slug])
        return today[slug] < _A_PAGE, value - 0.12 * used

    while left and len(chosen) < max_cards:
        domains = sorted({course.pages[slug].domain for slug in left})
        domain = max(domains, key=lambda d: weights[d] * (begun.total() + 1) - begun[d])
        slug = max((slug for slug in left if course.pages[slug].domain == domain), key=gain)
        card = left[slug].pop(0)
        if not left[slug]:
            del left[slug]
        note = course.note_by_card.get(card, card)
        if note not in notes:
            notes.add(note)
            chosen.append(card)
            today[slug] += 1
            begun[domain] += 1
    return chosen
