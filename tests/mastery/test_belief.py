"""The laws of what is believed of an objective: evidence, order, time, bounds."""

import datetime as dt
import itertools
import random
from collections.abc import Callable

import pytest

from app.mastery.belief import PRIOR, Belief, update_belief
from app.mastery.evidence import (
    TAUGHT,
    WINDOW,
    AnswerHistory,
    Evidence,
    ObjectiveCards,
    answers_by_day,
    recall_chance,
    retention_curve,
    weigh_evidence,
)
from app.spaced_repetition.scheduler import ReviewEvent, apply_review
from app.spaced_repetition.scheduler import retrievability as reference

TODAY = dt.date(2026, 6, 9)
GUESS = 0.25
NO_CARDS = ObjectiveCards()
Answers = list[tuple[AnswerHistory, float]]


def day(ago: int) -> dt.date:
    return TODAY - dt.timedelta(days=ago)


def chance(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - repeatable, not secret


def some(seed: int, count: int = 12) -> Answers:
    """Answers of a made-up learner over the last hundred days."""
    draw = chance(seed)
    return [
        (
            AnswerHistory(draw.choice([0.0, 0.0, 0.5, 1.0, 1.0]), day(draw.randrange(100))),
            draw.choice([0.0, 0.25, 0.5]),
        )
        for _ in range(draw.randrange(1, count))
    ]


def belief(
    answers: Answers,
    others: Evidence | None = None,
    on: dt.date = TODAY,
    cards: ObjectiveCards = NO_CARDS,
) -> Belief:
    own = weigh_evidence(answers_by_day(answers, GUESS), GUESS, cards, on)
    return update_belief(own, GUESS, others or Evidence(), GUESS)


def right(count: int, ago: int = 0) -> Answers:
    return [(AnswerHistory(1.0, day(ago)), GUESS)] * count


def wrong(count: int, ago: int = 0) -> Answers:
    return [(AnswerHistory(0.0, day(ago)), GUESS)] * count


def mean_over(height: Callable[[float], float], strips: int = 2000) -> float:
    """The mean of a function over 0..1, by Simpson's rule."""
    ends = height(0) + height(1)
    inner = sum((4 if n % 2 else 2) * height(n / strips) for n in range(1, strips))
    return (ends + inner) / (3 * strips)


SEEDS = range(60)
STRONG = Evidence(20, 18.0, 20.0, 18.0, 18.0, 20.0)


def test_untested_is_the_rate_of_guessing_with_the_weight_of_two_answers():
    assert belief([]) == Belief(GUESS, PRIOR)
    assert belief([], STRONG) == Belief(GUESS, PRIOR)


def test_a_right_answer_never_lowers_a_belief(subtests: pytest.Subtests):
    for name, others in zip(["alone", "in a domain"], [Evidence(), STRONG], strict=True):
        for seed in SEEDS:
            with subtests.test(name, seed=seed):
                answers = some(seed, 40)
                before = belief(answers, others).mean

                assert belief([*answers, *right(1)], others).mean >= before - 1e-12


def test_a_wrong_answer_never_raises_a_belief(subtests: pytest.Subtests):
    for name, others in zip(["alone", "in a domain"], [Evidence(), STRONG], strict=True):
        for seed in SEEDS:
            with subtests.test(name, seed=seed):
                answers = [(first, GUESS) for first, _ in some(seed, 40)]
                before = belief(answers, others).mean

                assert belief([*answers, *wrong(1)], others).mean <= before + 1e-12


def test_a_number_not_known_never_raises_what_is_above_guessing(
    subtests: pytest.Subtests,
):
    """It counts as the guess that a choice would have been, so it pulls there."""
    for seed in SEEDS:
        with subtests.test(seed=seed):
            answers = some(seed, 9)
            before = belief(answers).mean

            after_wrong = belief([*answers, (AnswerHistory(0.0, TODAY), 0.0)]).mean

            assert after_wrong <= max(before, GUESS) + 1e-12


def test_had_an_answer_been_right_more_would_be_believed(subtests: pytest.Subtests):
    for seed in SEEDS:
        with subtests.test(seed=seed):
            answers = some(seed)
            place = chance(seed).randrange(len(answers))
            first, rate = answers[place]
            better = [*answers]
            better[place] = (AnswerHistory(1.0, first.day), rate)

            assert belief(better).mean >= belief(answers).mean


def test_what_neighbors_know_never_lowers_a_belief(subtests: pytest.Subtests):
    for seed in SEEDS:
        with subtests.test(seed=seed):
            answers = some(seed)
            more = STRONG + Evidence(1, 1.0, 1.0, 1.0, 1.0, 1.0)

            assert belief(answers, more).mean >= belief(answers, STRONG).mean


@pytest.mark.parametrize("count", [1, 3, 6, 12])
def test_more_evidence_narrows_the_range(count: int):
    fewer = belief(right(count) + wrong(count)).range
    more = belief(right(2 * count) + wrong(2 * count)).range

    assert more[1] - more[0] <= fewer[1] - fewer[0]


def test_time_without_review_lowers_and_takes_weight(subtests: pytest.Subtests):
    for seed in SEEDS:
        with subtests.test(seed=seed):
            answers = some(seed)
            days = [TODAY + dt.timedelta(days=n) for n in (0, 1, 7, 30, 365)]
            beliefs = [belief(answers, STRONG, on) for on in days]

            for earlier, later in itertools.pairwise(beliefs):
                assert later.mean <= earlier.mean + 1e-12
                assert later.weight <= earlier.weight


def test_time_widens_the_range_of_what_was_known():
    answers = right(9) + wrong(3)
    widths = []
    for days in (0, 7, 30, 365):
        low, high = belief(answers, on=TODAY + dt.timedelta(days=days)).range
        widths.append(high - low)

    assert widths == sorted(widths)


def test_time_alone_never_takes_a_belief_below_guessing():
    answers = right(5) + wrong(5)

    assert belief(answers, on=TODAY + dt.timedelta(days=9000)).mean >= GUESS


def test_the_order_of_the_answers_of_a_day_does_not_matter(subtests: pytest.Subtests):
    for seed in SEEDS:
        with subtests.test(seed=seed):
            answers = some(seed)
            shuffled = chance(seed).sample(answers, len(answers))

            assert belief(shuffled).mean == pytest.approx(belief(answers).mean)


def test_everything_stays_within_its_bounds(subtests: pytest.Subtests):
    for seed in SEEDS:
        with subtests.test(seed=seed):
            made = belief(some(seed, 60), STRONG)

            assert 0 <= made.range[0] <= made.mean <= made.range[1] <= 1
            assert made.weight >= PRIOR


def test_a_computed_number_says_more_than_true_or_false():
    typed = belief([(AnswerHistory(1.0, TODAY), 0.0)]).mean
    ticked = belief([(AnswerHistory(1.0, TODAY), 0.5)]).mean

    assert typed > belief(right(1)).mean > ticked


@pytest.mark.parametrize("rates", [[0.0], [0.5], [0.0, 0.25], [0.0, 0.25, 0.5]])
def test_the_belief_does_not_depend_on_the_kinds_that_were_answered(rates):
    """Half of everything is known, and the other half is guessed."""
    answers: Answers = []
    for rate in rates:
        right = round(80 * (rate + (1 - rate) / 2))
        scores = [1.0] * right + [0.0] * (80 - right)
        answers += [(AnswerHistory(score, TODAY), rate) for score in scores]

    made = weigh_evidence(answers_by_day(answers, GUESS), GUESS, NO_CARDS, TODAY)

    assert made.fresh / made.weight == pytest.approx(GUESS + (1 - GUESS) / 2)


def test_a_right_answer_after_a_hint_counts_half():
    helped = belief([(AnswerHistory(1.0, TODAY, hints=1), GUESS)]).mean

    assert GUESS < helped < belief(right(1)).mean


def test_the_newest_fifteen_answers_count():
    before, learned = wrong(15, ago=2), right(15)
    half = weigh_evidence(answers_by_day(before + right(7), GUESS), GUESS, NO_CARDS, TODAY)

    assert belief(before + learned) == belief(learned)
    assert (half.answers, half.weight, half.fresh) == (22, WINDOW, 7)


def test_an_objective_leans_on_its_domain_from_its_first_right_answer():
    assert belief(right(1), STRONG).mean > belief(right(1)).mean
    assert belief(wrong(1), STRONG) == belief(wrong(1))


def test_recall_is_that_of_the_scheduler(subtests: pytest.Subtests):
    for days in [0, 1, 9, 60, 400]:
        with subtests.test(days=days):
            at = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
            standing = apply_review(None, ReviewEvent(4, at, at.date()))
            then = at.date() + dt.timedelta(days=days)

            assert recall_chance(days, standing.stability) == pytest.approx(
                reference(standing, then)
            )


def test_a_reviewed_objective_keeps_its_evidence():
    reviewed = ObjectiveCards(begun=10, all=10, days=2, stability=40)
    left_alone = ObjectiveCards(begun=10, all=10, days=60, stability=40)

    assert (
        retention_curve(reviewed)(60)
        > retention_curve(left_alone)(60)
        > retention_curve(NO_CARDS)(60)
    )


def test_cards_that_were_not_begun_keep_nothing():
    few = ObjectiveCards(begun=1, all=10, days=0, stability=40)

    assert (
        retention_curve(NO_CARDS)(30)
        < retention_curve(few)(30)
        < retention_curve(ObjectiveCards(10, 10, 0, 40))(30)
    )


def test_a_deck_that_is_reviewed_on_time_loses_nothing():
    on_time = ObjectiveCards(begun=10, all=10, days=15, stability=40)

    assert retention_curve(on_time)(200) == 1


def test_without_cards_an_answer_fades_by_itself():
    assert retention_curve(NO_CARDS)(28) == pytest.approx(recall_chance(28, TAUGHT))
    assert retention_curve(NO_CARDS)(0) == 1


@pytest.mark.parametrize("days", [0, 5, 50])
def test_older_evidence_is_never_fresher(days: int):
    cards = ObjectiveCards(begun=5, all=10, days=days, stability=20)
    shares = [retention_curve(cards)(age) for age in range(120)]

    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 1


@pytest.mark.parametrize(
    ("made", "low", "high"),
    [
        (Belief(0.5, 2.0), 0.05, 0.95),  # even
        (Belief(0.75, 4.0), 0.05 ** (1 / 3), 0.95 ** (1 / 3)),  # Beta(3, 1): x³
    ],
)
def test_the_range_leaves_a_twentieth_on_each_side(made, low: float, high: float):
    assert made.range == pytest.approx((low, high), abs=0.01)


def test_what_is_kept_is_the_recall_of_now_by_that_of_then(subtests: pytest.Subtests):
    """The same to a billionth, whatever of it is computed once for many ages."""
    for seed in SEEDS:
        with subtests.test(seed=seed):
            draw = chance(seed)
            cards = ObjectiveCards(
                begun=draw.randrange(12),
                all=10,
                days=draw.random() * 60,
                stability=1 + draw.random() * 80,
            )
            covered = min(1.0, cards.begun / 10)
            on_schedule = mean_over(lambda share: recall_chance(share, 1.0))

            for age in range(1, 120, 7):
                alone = recall_chance(age, TAUGHT)
                then = min(on_schedule, recall_chance(cards.days - age, cards.stability))
                now = min(1.0, recall_chance(cards.days, cards.stability) / then)
                expected = covered * now + (1 - covered) * alone
                assert retention_curve(cards)(age) == pytest.approx(expected, rel=1e-9)


def test_all_answers_are_counted_and_only_the_newest_weighed(subtests: pytest.Subtests):
    for seed in SEEDS:
        with subtests.test(seed=seed):
            answers = some(seed, 60)
            until = day(20)

            made = weigh_evidence(answers_by_day(answers, GUESS), GUESS, NO_CARDS, until)

            before = [first for first, _ in answers if first.day <= until]
            assert made.answers == len(before)
            assert made.score == pytest.approx(sum(first.score for first in before))
            assert made.weight <= WINDOW + 1e-9
