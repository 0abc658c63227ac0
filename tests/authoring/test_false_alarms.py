"""What to fix first doesn't cry wolf: good questions in simulated classes aren't flagged."""

import math
import random

import pytest

from app.authoring.item_statistics import ItemResponse, compute_item_statistics
from app.authoring.to_do import find_fix_reasons_in_statistics
from app.content.course import Course
from app.questions.model import Question
from tests.amounts import each_of_sample

ITEMS, GUESSING, SLOPE = 40, 0.25, 1.2
CLASSES = {10: 60, 15: 60, 30: 40}  # simulated classes of each size


@pytest.fixture
def question(course: Course) -> Question:
    """A single choice of three options."""
    return course.questions["k-trade"]


def simulated_class(
    size: int, question: Question, seed: int, *, misgraded: int = 0
) -> list[ItemResponse]:
    """Play a class at good items: a three-parameter logistic model, distractors of unequal pull.

    The key of the first `misgraded` items is wrong: a distractor counts as right.
    """
    mix = random.Random(seed)  # noqa: S311 - repeatable, not secret
    right, *wrong = sorted(question.answer.options, key=lambda option: not option.right)
    items = [(mix.uniform(-1.5, 1.5), mix.uniform(0.3, 0.7)) for _ in range(ITEMS)]
    responses = []
    for learner in range(size):
        ability = mix.gauss(0, 1)
        for number, (difficulty, pull) in enumerate(items):
            knows = 1 / (1 + math.exp(-1.7 * SLOPE * (ability - difficulty)))
            is_right = mix.random() < GUESSING + (1 - GUESSING) * knows
            chosen = right if is_right else wrong[mix.random() < pull]
            if number < misgraded:  # what is true stands at a distractor
                chosen = {right: wrong[0], wrong[0]: right}.get(chosen, chosen)
            mark = float(chosen.key == right.key)
            responses.append(
                ItemResponse(learner, str(number), mark, chosen_option_keys=(chosen.key,))
            )
    return responses


@each_of_sample("size", CLASSES, 1)
def test_at_most_two_percent_of_good_questions_are_flagged(size: int, question: Question) -> None:
    flagged = 0
    for seed in range(CLASSES[size]):
        statistics = compute_item_statistics(simulated_class(size, question, seed))
        flagged += sum(
            bool(find_fix_reasons_in_statistics(question, s)) for s in statistics.values()
        )

    assert flagged <= 0.02 * ITEMS * CLASSES[size]


def test_a_wrong_key_is_flagged_in_three_of_four_classes_of_thirty(question: Question) -> None:
    flagged = 0
    for seed in range(40):
        statistics = compute_item_statistics(simulated_class(30, question, seed, misgraded=1))["0"]
        flagged += bool(find_fix_reasons_in_statistics(question, statistics))

    assert flagged >= 30
