"""A report adds up what was marked and says how sure the sum is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.exams.report import Marked, interval, summarize


def marked(number: int, objective: str, score: float) -> Marked:
    return Marked(
        number,
        f"q{number}",
        objective.split(".", maxsplit=1)[0],
        objective,
        score,
        True,
        60.0,
    )


def test_points_add_up_by_domain_and_objective() -> None:
    report = summarize(
        [marked(1, "2.10", 1), marked(2, "2.9", 0.5), marked(3, "1.1", 0)]
    )

    assert (report.score, report.count) == (1.5, 3)
    assert [(s.name, s.score, s.count) for s in report.domains] == [
        ("1", 0, 1),
        ("2", 1.5, 2),
    ]
    assert [s.name for s in report.objectives] == ["1.1", "2.9", "2.10"]
    assert [m.number for m in report.missed] == [2, 3]


def test_an_empty_paper_has_no_score_and_no_interval() -> None:
    assert (summarize([]).low, summarize([]).high) == (0, 0)


@given(st.integers(1, 200), st.floats(0, 1))
def test_the_interval_holds_the_score_and_stays_on_the_scale(
    count: int, share: float
) -> None:
    low, high = interval(share * count, count)

    assert 0 <= low <= share * count + 1e-9
    assert share * count - 1e-9 <= high <= count


def test_the_interval_is_wilsons() -> None:
    # With no hit in n the closed form of the upper end is z²/(n + z²).
    low, high = interval(0, 10)

    assert low == 0
    assert high / 10 == pytest.approx(1.96**2 / (10 + 1.96**2))
