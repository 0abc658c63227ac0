"""Whether this process answers and reaches its database."""

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse
from sqlmodel import text

from app.db.engine import DbSession

router = APIRouter()


@router.get("/healthz", include_in_schema=False)
def health(request: Request, db: DbSession) -> PlainTextResponse:
    """One word when all is well; anything else is an error answer."""
    db.connection().execute(text("SELECT 1"))
    request.app.state.library.current()
    return PlainTextResponse("well")
