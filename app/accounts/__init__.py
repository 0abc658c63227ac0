"""Learners, devices, author access, and the export and erasure of personal data."""

from fastapi import APIRouter

from app.accounts import devices_page, settings_page

router = APIRouter(include_in_schema=False)
router.include_router(settings_page.router)
router.include_router(devices_page.router)
