"""Practice questions."""

from fastapi import APIRouter

from app.quiz import practice_pages, question_page

router = APIRouter(include_in_schema=False)
# Routes with fixed paths come before those with a topic in the path.
router.include_router(practice_pages.router, prefix="/quiz")
router.include_router(practice_pages.runs_router, prefix="/quiz")
router.include_router(question_page.router, prefix="/quiz")
