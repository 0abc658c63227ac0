"""Cards over HTTP."""

from fastapi import APIRouter

from app.flashcards.routes import additions, deck, offline, review

router = APIRouter(include_in_schema=False)
router.include_router(deck.router, prefix="/flashcards")
router.include_router(offline.router, prefix="/flashcards")
router.include_router(review.router, prefix="/flashcards")
router.include_router(additions.router, prefix="/flashcards")
