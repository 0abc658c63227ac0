"""What the errors of one learner have in common widens the range, and nothing else."""

import math

import pytest

from app.content.library import Library
from app.mastery import readiness
from app.mastery.belief import NODES, SPREAD, Belief, spread_belief
from tests.mastery.test_readiness import ahead


def test_the_nodes_stand_for_a_normal_distribution() -> None:
    moments = [math.fsum(w * x**k for x, w in NODES) for k in range(10)]

    assert moments == pytest.approx([1, 0, 1, 0, 3, 0, 15, 0, 105, 0], abs=1e-9)


def test_what_is_believed_on_average_stays(subtests: pytest.Subtests) -> None:
    for mean in [0.26, 0.4, 0.7, 0.97, 0.999]:
        with subtests.test(mean=mean):
            under = spread_belief(Belief(mean, 8.0), 0.25)

            assert math.fsum(
                b.mean * w for b, (_, w) in zip(under, NODES, strict=True)
            ) == pytest.approx(mean, abs=1e-4)
            assert [b.mean for b in under] == sorted(b.mean for b in under)
            assert all(0.24 < b.mean <= 1 and b.weight == 8.0 for b in under)


def test_guesses_and_certainty_are_not_moved() -> None:
    for mean in (0.1, 0.25, 1.0):
        assert spread_belief(Belief(mean, 3.0), 0.25) == (Belief(mean, 3.0),) * len(NODES)
    assert spread_belief(Belief(0.5), 1.0) == (Belief(0.5),) * len(NODES)


def test_the_range_grows_and_the_expected_score_stays(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = ahead(library, 100, 0.6, 0.7)
    monkeypatch.setattr(readiness, "spread_belief", lambda b, g: spread_belief(b, g, 0.0))
    narrow = ahead(library, 100, 0.6, 0.7)

    assert SPREAD > 0
    assert wide.high - wide.low > narrow.high - narrow.low
    assert wide.mean == narrow.mean
    right = math.fsum(k * p for k, p in enumerate(wide.scores))
    assert right == pytest.approx(wide.mean, abs=0.02)
    assert math.fsum(wide.scores) == pytest.approx(1)
