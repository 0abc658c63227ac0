"""The author's bench over HTTP; it is mounted only where it is switched on."""

from fastapi import APIRouter

from app.authoring.routes import pages, problems, questions

router = APIRouter(include_in_schema=False)
router.include_router(problems.router, prefix="/authoring")
router.include_router(questions.router, prefix="/authoring")
router.include_router(pages.router, prefix="/authoring")
