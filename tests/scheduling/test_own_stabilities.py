"""What `benchmarks.own_stabilities` compares differs in nothing but what is told."""

from benchmarks.own_stabilities import learner


def test_what_is_told_after_the_last_look_changes_nothing() -> None:
    known = learner(7, 5, 0, 0, 1.0)  # far fewer looks than a fit needs

    assert known.later == known.never
    assert known.at_once != known.never
