"""The author's bench over HTTP: every route asks who is there (`AuthorRoute`)."""

from fastapi import APIRouter

from app.authoring.routes import (
    access,
    pages,
    problems,
    questions,
    reference,
    regrading,
)

router = APIRouter(include_in_schema=False)
router.include_router(problems.router, prefix="/authoring")
router.include_router(questions.router, prefix="/authoring")
router.include_router(regrading.router, prefix="/authoring")
router.include_router(pages.router, prefix="/authoring")
router.include_router(reference.router, prefix="/authoring")
router.include_router(access.router, prefix="/authoring")  # the last: it has the rest
