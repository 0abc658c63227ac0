"""Practice questions."""

from fastapi import APIRouter

from app.quiz import practice_pages, question_page

router = APIRouter(include_in_schema=False)
# Fixed words stand before the routes that take a topic in their place.
router.include_router(practice_pages.router, prefix="/quiz")
router.include_router(practice_pages.runs_router, prefix="/quiz")
router.include_router(question_page.router, prefix="/quiz")
