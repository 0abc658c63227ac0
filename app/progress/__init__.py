"""Today, progress and plan pages."""

from fastapi import APIRouter

from app.progress import plan_page, progress_page, today_page, weekly_mail

router = APIRouter(include_in_schema=False)
router.include_router(today_page.router)
router.include_router(progress_page.router)
router.include_router(plan_page.router)
router.include_router(plan_page.calendar_router)
router.include_router(weekly_mail.router)
