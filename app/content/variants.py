"""From an authored question and a seed to what one attempt shows and grades."""

from app.content.model import Question, Variant


def draw(question: Question, seed: int) -> Variant:
    """Draw the variant of `question` that belongs to `seed`; pure and repeatable."""
    raise NotImplementedError
