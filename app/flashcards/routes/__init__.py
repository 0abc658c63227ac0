"""Cards over HTTP."""

from fastapi import APIRouter
from starlette.routing import Route

from app.flashcards.routes import acts, additions, deck, offline, own, review

router = APIRouter(include_in_schema=False)
router.include_router(deck.router, prefix="/flashcards")
router.include_router(own.router, prefix="/flashcards")
router.include_router(offline.router, prefix="/flashcards")
router.include_router(review.router, prefix="/flashcards")
router.include_router(acts.router, prefix="/flashcards")
router.include_router(additions.router, prefix="/flashcards")

quick = (Route("/flashcards/{card}/reviews", review.review, methods=["POST"]),)
"""Asked at every grade: tried before all others, without resolving dependencies."""
