"""Grades that waited in a browser without a network and come late."""

from fastapi.responses import Response

from app.content.model import Flashcard
from app.errors import ConflictError, InvalidInputError
from app.flashcards import store
from app.flashcards.forms import GradeForm
from app.flashcards.review_table import GRADES, learner_marker
from app.learners.desk import RequestContext
from app.scheduling import OLDEST, ReviewEvent, is_too_old, settled
from app.web.clock import from_milliseconds

_LONGEST_LOOK = 10 * 60 * 1000


def require_same_learner(desk: RequestContext, who: str) -> None:
    """Raises Conflict where a grade was given by another learner of the browser."""
    if who and who != learner_marker(desk.learner):
        raise ConflictError(
            "This grade was given before somebody else came to this browser, so it was not counted."
        )


def record_late_grade(desk: RequestContext, card: Flashcard, graded: GradeForm) -> Response:
    """Write down a grade that waited in the browser; nobody waits for the next card.

    Raises Problem for one that is too old, Conflict where the same showing of the card
    has another grade already.
    """
    given = from_milliseconds(graded.given)
    if is_too_old(given, desk.now):
        raise InvalidInputError(
            f"Given: {given:%B %-d, %Y} is more than {OLDEST.days} days ago, "
            "so the grade was not counted.",
            "given",
        )
    held = store.load_card(desk.db, desk.learner.id, card.id)
    at = settled(given, desk.now, held.standing.last_at if held.standing else None)
    grade = ReviewEvent(graded.rating, at, desk.learner.study_day(at), desk.learner.retention)
    sent = store.GradeSubmission(graded.token, _looked(graded))
    if store.record_review(desk.db, desk.learner.id, card, grade, sent) is None:
        learner = desk.learner.id
        earlier = store.find_rating(desk.db, learner, card.id, graded.token)
        if earlier != graded.rating:
            raise ConflictError(
                f"A card was graded {GRADES[earlier - 1]} on another page already, so "
                "the later grade was not counted: each showing of a card counts once."
            )
    return Response(status_code=204)


def _looked(graded: GradeForm) -> int | None:
    """Milliseconds from showing the card to its grade, both by the browser's clock."""
    passed = graded.given - graded.since
    return passed if graded.since and 0 <= passed <= _LONGEST_LOOK else None
