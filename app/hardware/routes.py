"""GET the list of parts, some of them side by side, and the page of one."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from app.errors import NotFoundError
from app.estimator.hardware.parts import CatalogPart, find_part, parts
from app.hardware import comparing, listing, pictures, uses
from app.hardware.listing import KIND_WORDS, LEAST, SHELVES
from app.learners.current import CurrentLearner
from app.web.course import CurrentLibrary
from app.web.page_cache import allow_caching
from app.web.render import render_page

router = APIRouter(prefix="/hardware", include_in_schema=False)
Chosen = Annotated[list[str], Query(alias="part", max_length=20)]

# The values with which the page of a part begins, for each kind of shelf.
_FACTS = {
    "accelerators": ("capacity", "memory_bandwidth", "bf16", "nvlink", "tdp"),
    "systems": ("gpus", "capacity", "nvlink", "nic", "power"),
    "network": ("bandwidth", "port_rate", "ports", "switching_capacity", "power"),
}


@router.get("")
def index(request: Request, learner: CurrentLearner) -> Response:
    allow_caching(request)
    asked = listing.parse_part_query(request.query_params)
    return render_page(
        request,
        "hardware/index.html",
        learner=learner,
        asked=asked,
        shelves=SHELVES.values(),
        vendors=[(name, name) for name in listing.vendors(asked.shelf)],
        columns=[(title, title) for title, _ in asked.shelf.groups],
        least=LEAST,
        listed=listing.listing(asked),
        ticked=request.query_params.getlist("part"),
    )


@router.get("/compare")
def compare(
    request: Request,
    learner: CurrentLearner,
    part: Chosen = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    allow_caching(request)
    asked = {name: find_part(name) for name in dict.fromkeys(part)}
    found = [known for known in asked.values() if known]
    chosen = found[: comparing.MOST]
    return render_page(
        request,
        "hardware/compare.html",
        learner=learner,
        chosen=chosen,
        left_out=found[comparing.MOST :],
        unknown=[name for name, known in asked.items() if known is None],
        most=comparing.MOST,
        groups=comparing.compared(chosen),
        prices=[request.app.state.prices.of(part.id) for part in chosen],
        shelf=listing.shelf_of(chosen[0]) if chosen else None,
    )


@router.get("/{name}")
def show(request: Request, name: str, learner: CurrentLearner, library: CurrentLibrary) -> Response:
    part = _part(name)
    allow_caching(request)
    shelf = listing.shelf_of(part)
    facts = [part.get(field) for field in _FACTS[shelf.name]]
    return render_page(
        request,
        "hardware/show.html",
        learner=learner,
        part=part,
        kind=KIND_WORDS[part.kind],
        shelf=shelf,
        prices=request.app.state.prices.of(part.id),
        facts=[value for value in facts if value and value.state == "known"],
        memory=pictures.memory_of(part),
        rates=pictures.rates_of(part),
        sparse=pictures.has_sparse_rates(part),
        calculators=uses.calculators_of(part),
        pages=uses.pages_of(part, library),
        kin=uses.kin_of(part, parts()),
        others=[p for p in listing.on_shelf(shelf) if p.id != part.id],
    )


def _part(name: str) -> CatalogPart:
    """The part of the address; raises NotFound."""
    part = find_part(name)
    if part is None:
        onward = "/hardware", "See all parts"
        raise NotFoundError(f"There is no part “{name}”.", onward=onward)
    return part
