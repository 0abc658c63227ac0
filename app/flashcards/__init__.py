"""Flashcard pages."""

from fastapi import APIRouter
from starlette.routing import Route

from app.flashcards import card_page, deck_page, offline_page, own_cards_page, review_page

router = APIRouter(include_in_schema=False)
router.include_router(deck_page.router, prefix="/flashcards")
router.include_router(own_cards_page.router, prefix="/flashcards")
router.include_router(offline_page.router, prefix="/flashcards")
router.include_router(review_page.router, prefix="/flashcards")
router.include_router(card_page.router, prefix="/flashcards")
router.include_router(deck_page.additions_router, prefix="/flashcards")

quick = (Route("/flashcards/{card}/reviews", review_page.grade_review, methods=["POST"]),)
"""Posted for every rating, so it is matched before all other routes, without dependencies."""
