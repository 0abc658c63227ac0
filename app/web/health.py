"""What those who run the server ask: is it alive, can it serve, what did it count.

The front passes these addresses on before it asks for course, learner or database, so
that they are answered whatever is wrong with those.
"""

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse

from app.web import metrics
from app.web.probes import Readiness

router = APIRouter(include_in_schema=False)
router.include_router(metrics.router)
ADDRESSES = frozenset({"/healthz", "/readyz", metrics.ADDRESS})
_FRESH = {"cache-control": "no-store"}


@router.api_route("/healthz", methods=["GET", "HEAD"])
async def healthz() -> PlainTextResponse:
    """One word, as long as the process answers at all."""
    return PlainTextResponse("well", headers=_FRESH)


@router.api_route("/readyz", methods=["GET", "HEAD"])
async def readyz(request: Request) -> PlainTextResponse:
    """One line for each check; 503 where learners cannot be served."""
    readiness: Readiness = request.app.state.readiness
    checks = await readiness.report()
    words = "".join(f"{check.line}\n" for check in checks)
    status = 503 if any(check.problem for check in checks) else 200
    return PlainTextResponse(words, status, headers=_FRESH)
