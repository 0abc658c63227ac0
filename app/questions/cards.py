"""A question as the two faces of a card: what is asked, and what is right and why.

The desk shows them, and a package for another program carries them along.
"""

from app.questions import kinds
from app.questions.faces import CardFaces, block
from app.questions.kind import Gap
from app.questions.model import Variant


def question_faces(variant: Variant, gap: Gap) -> CardFaces:
    """The stem with its options, then the right answer and the explanation."""
    asked, told = kinds.type_of(variant).faces(variant.answer, gap)
    below = f'<div class="given">{asked}</div>' if asked else ""
    return CardFaces(block(variant.stem) + below, told + _explained(variant))


def _explained(variant: Variant) -> str:
    words = block(variant.explanation)
    if variant.mistake.html:
        words += f"<div><b>Common mistake.</b> {variant.mistake.html}</div>"
    return words
