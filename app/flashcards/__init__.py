"""Flashcard pages."""

from fastapi import APIRouter
from starlette.routing import Route

from app.flashcards import deck_pages, own_cards_page, review_page

router = APIRouter(include_in_schema=False)
# Routes with fixed paths come before those with a card in the path.
router.include_router(own_cards_page.router, prefix="/flashcards")
router.include_router(review_page.router, prefix="/flashcards")
router.include_router(deck_pages.router, prefix="/flashcards")

quick = (Route("/flashcards/{card}/reviews", review_page.grade_review, methods=["POST"]),)
"""Posted for every rating, so it is matched before all other routes, without dependencies."""
