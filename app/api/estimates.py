"""/api/v1/estimates and /api/v1/catalogue."""

import dataclasses
import functools
import importlib.metadata
import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from app.accounts.current_learner import ReadContext
from app.api.openapi import CATALOGUES, build_estimate_list_entry, build_openapi_document
from app.calculators.exports import build_estimate_json, dump_json
from app.calculators.pages import run_in_thread_if_slow
from app.errors import InvalidInputError, NotFoundError
from app.estimator import registry
from app.estimator.hardware import catalog
from app.estimator.hardware.part_values import UNITS
from app.estimator.inputs import parse_inputs
from app.estimator.models import lookup
from app.estimator.models.architecture import Architecture
from app.estimator.models.weight_formats import PUBLISHED, find_weight_format
from app.web.dependencies import public_base_url
from app.widgets.calculator_form import parse_query_inputs

# Leave out the layers, which are internal to the estimator; their sums are included.
_INTERNAL_FIELDS = frozenset(
    {
        "decoder_layers",
        "encoder_layers",
        "layer_counts",
        "tower",
        "quantization",
        "prediction_module_layers",
    }
)
# The API's names of fields that are called otherwise in the code.
_API_NAMES = {
    "learned_positions": "positions",
    "per_layer_embedding_parameters": "side_tables",
    "embedding_width": "table_width",
    "prediction_module_count": "predictors",
    "unread_size_fields": "unread_sizes",
    "defaulted_fields": "assumed",
    "sliding_window": "window",
}


def build_catalog_dict(catalog_name: str) -> dict[str, Any]:
    """Return one catalog with its units; raises KeyError for an unknown kind."""
    rows = _ROWS_BY_CATALOG[catalog_name]()
    used_fields = {name for row in rows for name in row}
    return {"units": {n: u for n, u in UNITS.items() if n in used_fields}, catalog_name: rows}


def _list_models() -> list[dict[str, Any]]:
    models = lookup.list_models()
    return [{"id": model.id, **_model_to_dict(lookup.find_model(model.id))} for model in models]


def _model_to_dict(model: Architecture) -> dict[str, Any]:
    names = [f.name for f in dataclasses.fields(model) if f.name not in _INTERNAL_FIELDS]
    fields = {_API_NAMES.get(name, name): getattr(model, name) for name in names}
    return fields | {
        "tower_parameters": model.tower_parameters,
        "published_weights": find_weight_format(model, PUBLISHED).label,
    }


def _catalog_entry_to_dict(entry: Any) -> dict[str, Any]:
    return {
        f.name: _tuple_or_mapping_to_plain(getattr(entry, f.name))
        for f in dataclasses.fields(entry)
    }


def _tuple_or_mapping_to_plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if hasattr(value, "items") else value


_ROWS_BY_CATALOG: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "models": _list_models,
    "accelerators": lambda: [_catalog_entry_to_dict(a) for a in catalog.list_accelerators()],
    "systems": lambda: [_catalog_entry_to_dict(s) for s in catalog.list_systems()],
    "networks": lambda: [_catalog_entry_to_dict(n) for n in catalog.list_network_parts()],
}

router = APIRouter(include_in_schema=False)


async def _read_json_body(request: Request) -> dict[str, Any]:
    try:
        body = json.loads(await request.body() or b"{}")
    except (ValueError, RecursionError):
        raise InvalidInputError("The body is not JSON.") from None
    if not isinstance(body, dict):
        raise InvalidInputError('The body is not a JSON object such as {"model": "70B"}.')
    return body


JsonBody = Annotated[dict[str, Any], Depends(_read_json_body)]


@router.get("/api")
def show_api_page(ctx: ReadContext) -> Response:
    return ctx.render_page(
        "api/index.html",
        entries=registry.list_estimates(),
        catalogues=CATALOGUES,
        origin=public_base_url(ctx.request),
    )


@functools.cache
def _build_openapi_document() -> dict[str, Any]:
    return build_openapi_document(registry.list_estimates(), importlib.metadata.version("headroom"))


@router.get("/api/v1/openapi.json")
def show_openapi_document() -> Response:
    return _json_response(_build_openapi_document())


@router.get("/api/v1/estimates")
def list_estimates() -> Response:
    return _json_response(
        {"estimates": [build_estimate_list_entry(entry) for entry in registry.list_estimates()]}
    )


@router.get("/api/v1/estimates/{name}")
@run_in_thread_if_slow
def compute_estimate_from_query(request: Request, name: str) -> Response:
    return _estimate_response(name, parse_query_inputs(request.url.query))


@router.post("/api/v1/estimates/{name}")
@run_in_thread_if_slow
def compute_estimate_from_json_body(name: str, body: JsonBody) -> Response:
    return _estimate_response(name, body)


@router.get("/api/v1/catalogue/{kind}")
def show_catalog(kind: str) -> Response:
    if kind not in CATALOGUES:
        raise NotFoundError(f"There is no catalog “{kind}”.", ", ".join(CATALOGUES))
    return _json_response(build_catalog_dict(kind))


def _estimate_response(name: str, typed_inputs: Mapping[str, Any]) -> Response:
    entry = registry.find_estimate(name)
    if entry is None:
        raise NotFoundError(f"There is no estimate “{name}”.", "See /api/v1/estimates.")
    inputs = parse_inputs(entry.inputs_type, typed_inputs)
    return _json_response(build_estimate_json(entry, inputs, entry.compute(inputs)))


def _json_response(value: Any) -> Response:
    return Response(dump_json(value), media_type="application/json")
