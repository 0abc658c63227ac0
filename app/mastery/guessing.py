"""What blind guessing earns: the floor under every share of right answers."""

from app.questions import kinds
from app.questions.model import Question

UNKNOWN = 0.25  # one of four choices, for an objective that has no question yet


def guess_rate(question: Question) -> float:
    """The mean score (0..1) of an answer that is chosen blindly.

    One of k choices is right once in k times; rows of a match likewise. Boxes are
    ticked by a coin, steps shuffled, and both marked by the question's own rule.
    What has to be typed or planned (numbers, words, designs) cannot be guessed.
    """
    return kinds.type_of(question).guess_rate(question.answer, question.partial)
