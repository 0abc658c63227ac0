"""Today and Progress over HTTP."""

from fastapi import APIRouter

from app.progress.routes import calendar, plan, progress, today

router = APIRouter(include_in_schema=False)
router.include_router(today.router)
router.include_router(progress.router)
router.include_router(plan.router)
router.include_router(calendar.router)
