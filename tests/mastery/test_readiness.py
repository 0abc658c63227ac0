"""What an exam would bring: exact, refused without evidence, in words."""

import dataclasses
import itertools
import math
import random

import pytest

from app.content.library import Library
from app.markup.model import ExamBlueprint, SourceLocation
from app.mastery.belief import Belief
from app.mastery.evidence import Evidence
from app.mastery.objectives import NOTHING, DomainMastery, build_standings
from app.mastery.readiness import (
    MissingEvidence,
    ScoreForecast,
    chance_words,
    domain_scores,
    forecast_score,
    right_answer_chances,
)
from tests.mastery.test_mastery import TODAY, answered

MOCK = ExamBlueprint("mock", "Mock", 50, 60, {"1": 30, "2": 20}, SourceLocation("mock.toml", 1))


def known(library: Library, answers: int, *means: float) -> list[DomainMastery]:
    """The two domains with so many answers each, and these beliefs."""
    return [
        dataclasses.replace(
            domain,
            standings=(
                dataclasses.replace(
                    domain.standings[0],
                    evidence=Evidence(answers, answers * mean),
                    belief=Belief(mean, 2.0 + answers),
                    questions=100,
                ),
            ),
        )
        for domain, mean in zip(build_standings(library, NOTHING, TODAY), means, strict=True)
    ]


def ahead(library: Library, answers: int, *means: float) -> ScoreForecast:
    made = forecast_score(known(library, answers, *means), MOCK)
    assert isinstance(made, ScoreForecast)
    return made


def test_a_newcomer_is_told_what_is_missing(library: Library):
    domains = build_standings(library, NOTHING, TODAY)
    bank = sum(s.questions for d in domains for s in d.standings)

    made = forecast_score(domains, MOCK)

    assert isinstance(made, MissingEvidence)
    assert made.answers == min(30, bank)
    assert made.domains == (("Holding a model", 5), ("Serving a model", 5))


def test_thirty_answers_and_five_in_each_domain_are_enough(library: Library):
    enough = known(library, 25, 0.5, 0.5)
    few = dataclasses.replace(enough[1].standings[0], evidence=Evidence(4, 2.0))
    thin = [enough[0], dataclasses.replace(enough[1], standings=(few,))]

    assert isinstance(forecast_score(enough, MOCK), ScoreForecast)
    made = forecast_score(thin, MOCK)
    assert isinstance(made, MissingEvidence)
    assert made.words == "an answer to one more question in Serving a model"


def test_a_third_of_the_objectives_of_a_domain_may_be_untested(library: Library):
    first, second = known(library, 40, 0.6, 0.6)
    tested = first.standings[0]
    blank = dataclasses.replace(tested, evidence=Evidence())

    def made(*objectives) -> ScoreForecast | MissingEvidence:
        return forecast_score([dataclasses.replace(first, standings=objectives), second], MOCK)

    assert isinstance(made(tested, tested, blank), ScoreForecast)
    refused = made(tested, blank, blank)
    assert isinstance(refused, MissingEvidence)
    assert refused.words == "an answer to one more question in Holding a model"
    assert refused.untested == ("1.1", "1.1")


def test_a_question_of_two_objectives_is_one_answer(library: Library):
    domains = known(library, 20, 0.5, 0.5)

    made = forecast_score(domains, MOCK, 27)

    assert isinstance(forecast_score(domains, MOCK), ScoreForecast)
    assert isinstance(made, MissingEvidence)
    assert made.answers == 3


def test_a_small_course_wants_all_that_it_has(library: Library):
    everything = dict.fromkeys(library.topics, 99)
    domains = build_standings(library, answered(library, everything), TODAY)

    assert isinstance(forecast_score(domains, MOCK), ScoreForecast)


def test_what_is_missing_is_said_exactly(subtests: pytest.Subtests):
    for answers, domains, words in [
        (12, (), "answers to 12 more questions"),
        (1, (), "an answer to one more question"),
        (12, (("Ops", 3),), "answers to 12 more questions: at least 3 in Ops"),
        (
            12,
            (("A", 3), ("B", 5)),
            "answers to 12 more questions: at least 3 in A and 5 in B",
        ),
        (0, (("Ops", 3),), "answers to 3 more questions in Ops"),
        (
            9,
            (("A", 1), ("B", 2), ("C", 3)),
            "answers to 9 more questions: at least 1 in A, 2 in B and 3 in C",
        ),
        (5, (("A", 3), ("B", 2)), "answers to 5 more questions: 3 in A and 2 in B"),
    ]:
        with subtests.test(answers=answers, domains=domains, words=words):
            assert MissingEvidence(answers, domains).words == words


def test_the_forecast_weighs_domains_as_the_blueprint_does(library: Library):
    made = ahead(library, 1000, 1.0, 0.0)

    assert made.questions == 50
    assert made.mean == pytest.approx(30)
    assert made.parts["1"].questions == 30


def test_another_blueprint_gives_another_forecast(library: Library):
    other = dataclasses.replace(MOCK, slug="other", domains={"2": 10})
    made = forecast_score(known(library, 30, 1.0, 0.5), other)

    assert isinstance(made, ScoreForecast)
    assert (made.exam, made.questions, made.mean) == ("other", 10, pytest.approx(5))


def test_a_course_without_a_mock_goes_by_the_weights_of_its_syllabus(library: Library):
    made = forecast_score(known(library, 30, 1.0, 0.0))

    assert isinstance(made, ScoreForecast)
    assert (made.questions, made.mean) == (100, pytest.approx(60))


def test_more_answers_make_the_forecast_surer(library: Library):
    def width(answers: int) -> int:
        made = ahead(library, answers, 0.5, 0.5)
        return made.high - made.low

    assert width(400) < width(15)


def test_a_higher_target_is_less_likely(library: Library):
    made = ahead(library, 20, 0.7, 0.7)

    assert 0 < made.chance(0.9) < made.chance(0.7) < made.chance(0.5) < 1
    assert made.chance(0) == pytest.approx(1)


def test_the_target_itself_is_reached_by_its_share_of_questions(library: Library):
    made = ahead(library, 20, 0.7, 0.7)

    assert made.chance(0.7) == pytest.approx(math.fsum(made.scores[35:]))


def test_the_range_holds_nine_tenths_and_no_more_than_needed(library: Library):
    made = ahead(library, 20, 0.6, 0.8)
    inside = math.fsum(made.scores[made.low : made.high + 1])

    assert inside >= 0.9
    assert inside - made.scores[made.low] < 0.95
    assert made.low < made.mean < made.high


def test_the_scores_of_a_domain_are_those_of_drawing_lots():
    """Every choice of the objectives that get one more question, counted out."""
    beliefs = (Belief(0.3, 4.0), Belief(0.6, 9.0), Belief(0.9, 3.0))
    exact = domain_scores(beliefs, 5)

    by_hand = [0.0] * 6
    choices = list(itertools.combinations(range(3), 2))
    for more in choices:
        parts = [right_answer_chances(b, 1 + (n in more)) for n, b in enumerate(beliefs)]
        for rights in itertools.product(*(range(len(p)) for p in parts)):
            chance = math.prod(p[r] for p, r in zip(parts, rights, strict=True))
            by_hand[sum(rights)] += chance / len(choices)

    assert exact == pytest.approx(by_hand)
    assert math.fsum(exact) == pytest.approx(1)


@pytest.mark.parametrize("questions", [1, 2, 7])
def test_right_answers_follow_the_beta_binomial(questions: int):
    belief = Belief(0.4, 5.0)
    a, b, n = belief.alpha, belief.beta, questions

    def beta(x: float, y: float) -> float:
        return math.gamma(x) * math.gamma(y) / math.gamma(x + y)

    known = [math.comb(n, k) * beta(k + a, n - k + b) / beta(a, b) for k in range(n + 1)]
    assert right_answer_chances(belief, questions) == pytest.approx(known)


def test_simulated_exams_agree_with_the_exact_scores():
    beliefs = (Belief(0.5, 6.0), Belief(0.8, 10.0))
    draw = random.Random(7)  # noqa: S311 - repeatable, not secret
    sittings = 20_000

    total = 0
    for _ in range(sittings):
        chances = [draw.betavariate(b.alpha, b.beta) for b in beliefs]
        total += sum(draw.random() < chance for chance in chances * 3) >= 5

    reached = math.fsum(domain_scores(beliefs, 6)[5:])
    assert total / sittings == pytest.approx(reached, abs=0.015)


def test_a_chance_is_said_as_people_say_it(subtests: pytest.Subtests):
    for chance, words in [
        (0.01, "hardly any chance"),
        (0.33, "about three chances in ten"),
        (0.14, "about one chance in ten"),
        (0.16, "about two chances in ten"),
        (0.5, "an even chance"),
        (0.8, "about eight chances in ten"),
        (0.99, "more than nine chances in ten"),
    ]:
        with subtests.test(chance=chance, words=words):
            assert chance_words(chance) == words
