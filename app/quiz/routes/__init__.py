"""Questions and practice over HTTP."""

from fastapi import APIRouter

from app.quiz.routes import practice, questions, runs

router = APIRouter(include_in_schema=False)
# Fixed words stand before the routes that take a topic in their place.
router.include_router(practice.router, prefix="/quiz")
router.include_router(runs.router, prefix="/quiz")
router.include_router(questions.router, prefix="/quiz")
