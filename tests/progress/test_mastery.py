"""What is known: shares with their counts, ranges, and when nothing may be said."""

import dataclasses

import pytest

from app.content.library import Library
from app.progress.mastery.evidence import Evidence
from app.progress.mastery.forecast import chance_words, forecast
from app.progress.mastery.standing import Record, standings

NOTHING = Record({}, frozenset(), {})


def answered(library: Library, right: dict[str, int], wrong: dict[str, int]) -> Record:
    """First answers: so many right and wrong ones for each topic."""
    firsts = {}
    for slug, topic in library.topics.items():
        marks = [1.0] * right.get(slug, 0) + [0.0] * wrong.get(slug, 0)
        firsts |= dict(zip(topic.questions, marks, strict=False))
    return dataclasses.replace(NOTHING, firsts=firsts)


def test_no_share_is_named_below_five_answers():
    assert not Evidence(4, 4.0).enough
    assert Evidence(5, 4.0).enough
    assert Evidence(5, 4.0).share == 0.8


def test_without_answers_everything_is_possible():
    assert Evidence().range() == (0.0, 1.0)


@pytest.mark.parametrize("answers", [1, 5, 20, 200])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_range_holds_the_share_and_narrows(answers: int, share: float):
    low, high = Evidence(answers, answers * share).range()
    later = Evidence(answers * 4, answers * 4 * share).range()

    assert 0 <= low <= share <= high <= 1
    assert later[1] - later[0] < high - low


def test_every_objective_is_listed_even_if_untouched(library: Library):
    domains = standings(library, NOTHING)

    numbers = [s.objective.number for d in domains for s in d.standings]
    assert numbers == ["1.1", "2.1"]
    assert not any(s.started for d in domains for s in d.standings)


def test_answers_cards_and_pages_are_counted_for_their_objective(library: Library):
    weights = library.topics["weights"]
    record = Record(
        firsts={weights.questions[0]: 1.0, weights.questions[1]: 0.5},
        known=frozenset(weights.cards[:1]),
        read={"weights": {"try-it"}},
    )

    (first, second) = (d.standings[0] for d in standings(library, record))

    assert first.evidence == Evidence(2, 1.5)
    assert (first.cards_known, first.pages.read) == (1, 1)
    assert first.questions == len(weights.questions)
    assert not second.started


def test_what_left_the_course_counts_no_more(library: Library):
    record = dataclasses.replace(NOTHING, firsts={"gone": 1.0})

    assert all(d.evidence == Evidence() for d in standings(library, record))


def test_no_forecast_before_fifteen_first_answers(library: Library):
    record = answered(library, {"weights": 7, "kv-cache": 7}, {})

    assert forecast(standings(library, record), 50) is None


def test_no_forecast_while_a_domain_is_untested(library: Library):
    domains = standings(library, answered(library, {"weights": 8}, {}))
    many = [with_evidence(domains[0], 30, 20.0), domains[1]]

    assert forecast(many, 50) is None


def test_the_forecast_weighs_domains_as_the_exam_does(library: Library):
    strong, weak = standings(library, NOTHING)
    domains = [with_evidence(strong, 100, 100.0), with_evidence(weak, 100, 0.0)]

    ahead = forecast(domains, 50)

    assert ahead is not None
    assert ahead.expected == 30  # 60% of 50, a little pulled towards guessing
    assert ahead.low < ahead.expected < ahead.high
    assert ahead.answers == 200


def test_more_answers_make_the_forecast_surer(library: Library):
    first, second = standings(library, NOTHING)

    def width(answers: int) -> int:
        half = answers / 2
        pair = [with_evidence(d, answers, half) for d in (first, second)]
        ahead = forecast(pair, 50)
        assert ahead
        return ahead.high - ahead.low

    assert width(200) < width(20)


def test_a_higher_target_is_less_likely(library: Library):
    pair = [with_evidence(d, 20, 14.0) for d in standings(library, NOTHING)]
    ahead = forecast(pair, 50)

    assert ahead
    assert 0 < ahead.chance(0.9) < ahead.chance(0.7) < ahead.chance(0.5) < 1


@pytest.mark.parametrize(
    ("chance", "words"),
    [
        (0.01, "hardly any chance"),
        (0.33, "about one chance in three"),
        (0.5, "an even chance"),
        (0.8, "about four chances in five"),
        (0.99, "almost certainly"),
    ],
)
def test_a_chance_is_said_as_people_say_it(chance: float, words: str):
    assert chance_words(chance) == words


def with_evidence(domain, answers: int, score: float):
    standing = dataclasses.replace(
        domain.standings[0], evidence=Evidence(answers, score)
    )
    return dataclasses.replace(domain, standings=(standing,))
