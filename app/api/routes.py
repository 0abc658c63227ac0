"""JSON for programs: estimates, their inputs, the catalog, the description."""

import functools
import importlib.metadata
import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from app.api import catalogue
from app.api.document import CATALOGUES, openapi
from app.api.schemas import described
from app.calculators.concurrency import limit_concurrency
from app.calculators.exports import answer
from app.calculators.forms import inputs_from_query
from app.errors import InvalidInputError, NotFoundError
from app.estimator import registry
from app.estimator.inputs import parse_inputs
from app.estimator.registry import EstimateSpec
from app.learners.current import CurrentLearner
from app.web.addresses import public_base_url
from app.web.page_cache import allow_caching
from app.web.render import render_page

router = APIRouter(include_in_schema=False)


async def _sent(request: Request) -> dict[str, Any]:
    """The JSON object in the body of a request."""
    try:
        sent = json.loads(await request.body() or b"{}")
    except (ValueError, RecursionError):
        raise InvalidInputError("The body is not JSON.") from None
    if not isinstance(sent, dict):
        raise InvalidInputError('The body is not a JSON object such as {"model": "70B"}.')
    return sent


Sent = Annotated[dict[str, Any], Depends(_sent)]


@router.get("/api")
def index(request: Request, learner: CurrentLearner) -> Response:
    allow_caching(request)
    entries = registry.entries()
    return render_page(
        request,
        "api/index.html",
        learner=learner,
        entries=entries,
        catalogues=CATALOGUES,
        origin=public_base_url(request),
    )


@router.get("/api/v1/openapi.json")
def description(request: Request) -> Response:
    allow_caching(request, shared=True)
    return _json(_document())


@router.get("/api/v1/estimates")
def estimates(request: Request) -> Response:
    allow_caching(request, shared=True)
    return _json({"estimates": [described(entry) for entry in registry.entries()]})


@router.get("/api/v1/estimates/{name}")
@limit_concurrency
def ask(request: Request, name: str) -> Response:
    allow_caching(request, shared=True)
    return _answered(_entry(name), dict(inputs_from_query(request.url.query)))


@router.post("/api/v1/estimates/{name}")
@limit_concurrency
def ask_by_body(name: str, sent: Sent) -> Response:
    return _answered(_entry(name), sent)


@router.get("/api/v1/catalogue/{kind}")
def listing(request: Request, kind: str) -> Response:
    if kind not in CATALOGUES:
        raise NotFoundError(f"There is no catalog “{kind}”.", ", ".join(CATALOGUES))
    allow_caching(request, shared=True)
    return _json(catalogue.catalog_json(kind))


def _entry(name: str) -> EstimateSpec:
    entry = registry.find_estimate(name)
    if entry is None:
        raise NotFoundError(f"There is no estimate “{name}”.", "See /api/v1/estimates.")
    return entry


def _answered(entry: EstimateSpec, typed: dict[str, Any]) -> Response:
    inputs = parse_inputs(entry.inputs, typed)
    return _json(answer(entry, inputs, entry.compute(inputs)))


def _json(value: Any) -> Response:
    body = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return Response(body, media_type="application/json")


@functools.cache
def _document() -> dict[str, Any]:
    return openapi(registry.entries(), importlib.metadata.version("headroom"))
