"""Learners over HTTP: their settings, and the browsers that they use."""

from fastapi import APIRouter

from app.learners.routes import devices, settings

router = APIRouter(include_in_schema=False)
router.include_router(settings.router)
router.include_router(devices.router)
