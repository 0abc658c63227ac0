"""Calculator routes: list, page, result fragment, comparison, downloads."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response
from starlette.routing import Route

from app.accounts.current_learner import CurrentLearner, LearnerProfile
from app.calculators import accuracy_page, calculator_list, comparison, exports
from app.calculators.url_inputs import (
    inputs_from_query,
    posted_inputs,
    query_of,
    query_of_sides,
    scenarios_in,
    swapped,
    with_third,
    without_third,
)
from app.calculators.worker_pool import PACE, limit_concurrency
from app.content.library import Library
from app.errors import NotFoundError
from app.estimator import registry
from app.estimator.inputs import InputProblem, InvalidInputsError, parse_inputs
from app.estimator.registry import EstimateSpec
from app.web.dependencies import CurrentLibrary, course_links, current_library, public_address_of
from app.web.page_cache import allow_caching
from app.web.render import render_page
from app.widgets import draw
from app.widgets.calculator_form import build_calculator_form, comparison_of
from app.widgets.estimate_view import LONGEST_LINK, build_estimate_view, calculator_url
from app.widgets.svg import standalone

router = APIRouter(prefix="/calculators", include_in_schema=False)

_KINDS = {
    "md": "text/markdown",
    "csv": "text/csv",
    "json": "application/json",
    "svg": "image/svg+xml",
}


def _entry(name: str) -> EstimateSpec:
    """Return the calculator in the URL; raises NotFoundError."""
    entry = registry.find_estimate(name)
    if entry is None or entry.name != name:
        onward = "/calculators", "See all calculators"
        raise NotFoundError(f"There is no calculator “{name}”.", onward=onward)
    return entry


def _query(request: Request) -> str:
    # `request.url` would first build the whole URL.
    words: bytes = request.scope["query_string"]
    return words.decode(errors="replace")


def _typed(request: Request) -> dict[str, str]:
    return inputs_from_query(_query(request))


Typed = Annotated[dict[str, str], Depends(_typed)]
Posted = Annotated[dict[str, str], Depends(posted_inputs)]


async def result(request: Request) -> Response:
    return await _kept_fragment(request, short=False)


async def reading(request: Request) -> Response:
    return await _kept_fragment(request, short=True)


quick = (
    Route("/calculators/{name}/result", result, methods=["GET"]),
    Route("/calculators/{name}/reading", reading, methods=["GET"]),
)
"""Requested at every keystroke, so they are matched before all other routes, without dependencies.
"""


async def _kept_fragment(request: Request, *, short: bool) -> Response:
    allow_caching(request, shared=True)
    entry = _entry(request.path_params["name"])
    typed = inputs_from_query(_query(request))
    library = await current_library(request)

    def work() -> Response:
        return _fragment(request, entry, typed, library, short=short)

    return await PACE.run(entry.name, work, is_search=entry.is_search)


@router.get("")
def index(request: Request, learner: CurrentLearner) -> Response:
    allow_caching(request)
    return render_page(
        request,
        "calculators/index.html",
        learner=learner,
        groups=calculator_list.groups(),
        starts=calculator_list.STARTS,
    )


@router.get("/accuracy")
def accuracy_of_all(request: Request, learner: CurrentLearner) -> Response:
    allow_caching(request)
    standing = accuracy_page.standing()
    return render_page(request, "calculators/accuracy.html", learner=learner, standing=standing)


@router.get("/accuracy/{kind}")
def accuracy_of_kind(request: Request, kind: str, learner: CurrentLearner) -> Response:
    standing = accuracy_page.standing_of(kind)
    if standing is None:
        raise NotFoundError(f"There are no cases of kind “{kind}”.")
    allow_caching(request)
    return render_page(
        request, "calculators/accuracy_kind.html", learner=learner, standing=standing
    )


@router.get("/{name}")
@limit_concurrency
def show(
    request: Request,
    name: str,
    typed: Typed,
    learner: CurrentLearner,
    library: CurrentLibrary,
) -> Response:
    allow_caching(request)
    return _whole(request, _entry(name), typed, learner, library)


@router.post("/{name}")
@limit_concurrency
def show_posted(
    request: Request,
    name: str,
    typed: Posted,
    learner: CurrentLearner,
    library: CurrentLibrary,
) -> Response:
    query = query_of(typed)
    if len(query) <= LONGEST_LINK:
        return RedirectResponse(calculator_url(name, query), status_code=303)
    return _whole(request, _entry(name), typed, learner, library)


@router.post("/{name}/result")
@limit_concurrency
def result_posted(request: Request, name: str, typed: Posted, library: CurrentLibrary) -> Response:
    return _fragment(request, _entry(name), typed, library)


@router.post("/{name}/reading")
@limit_concurrency
def reading_posted(request: Request, name: str, typed: Posted, library: CurrentLibrary) -> Response:
    return _fragment(request, _entry(name), typed, library, short=True)


@router.get("/{name}/result.svg")
@limit_concurrency
def take_picture_along(request: Request, name: str, typed: Typed) -> Response:
    entry = _entry(name)
    pictures = entry.compute(parse_inputs(entry.inputs, typed)).pictures
    if not pictures:
        raise NotFoundError("This calculator draws no picture.")
    files = request.app.state.static.files
    sheets = [files[f"css/{f}.css"].body.decode() for f in ("tokens", "instruments")]
    return _file(name, "svg", standalone(draw(pictures[0]), *sheets))


@router.get("/{name}/result.{kind}")
@limit_concurrency
def take_along(
    request: Request, name: str, typed: Typed, kind: Literal["md", "csv", "json"]
) -> Response:
    entry = _entry(name)
    inputs = parse_inputs(entry.inputs, typed)
    estimate = entry.compute(inputs)
    link = public_address_of(request).replace(f"/result.{kind}", "", 1)
    if kind == "csv":
        body = exports.as_csv(estimate)
    elif kind == "json":
        body = _dumped(exports.answer(entry, inputs, estimate))
    else:
        body = exports.as_markdown(entry, inputs, estimate, link)
    return _file(name, kind, body)


@router.get("/{name}/compare")
@limit_concurrency
def compare(
    request: Request,
    name: str,
    typed: Typed,
    learner: CurrentLearner,
    library: CurrentLibrary,
) -> Response:
    allow_caching(request)
    entry = _entry(name)
    if not typed:
        # Two equal scenarios would show nothing, so B starts with the change that affects A most.
        proposed = build_calculator_form(entry, typed, course=course_links(library)).compare
        if "?" in proposed:
            return RedirectResponse(proposed, status_code=303)
    sides = scenarios_in(typed)
    scenarios = comparison.answer_all(entry, sides)
    rows = comparison.rows_of(entry, scenarios, course_links(library))
    near = [r for r in rows if r.differs] or [r for r in rows if not r.advanced]
    problems = comparison.problems_of(scenarios)
    return render_page(
        request,
        "calculators/compare.html",
        status=422 if problems else 200,
        learner=learner,
        calculator=entry,
        name=name,
        letters=[letter.upper() for letter in sides],
        near=near,
        far=[r for r in rows if r not in near],
        links=_side_links(entry, scenarios),
        compared=comparison.compare(entry, scenarios),
        problems=problems,
    )


@router.get("/{name}/compare/result")
@limit_concurrency
def compare_result(request: Request, name: str, typed: Typed) -> Response:
    allow_caching(request, shared=True)
    entry = _entry(name)
    sides = scenarios_in(typed)
    scenarios = comparison.answer_all(entry, sides)
    problems = comparison.problems_of(scenarios)
    if problems:
        return _refused(request, problems)
    return render_page(
        request,
        "calculators/_sides.html",
        name=name,
        compared=comparison.compare(entry, scenarios),
        links=_side_links(entry, scenarios),
    )


@router.get("/{name}/compare/result.{kind}")
@limit_concurrency
def take_sides_along(
    request: Request, name: str, typed: Typed, kind: Literal["md", "csv", "json"]
) -> Response:
    entry = _entry(name)
    scenarios = comparison.answer_all(entry, scenarios_in(typed))
    compared = comparison.compare(entry, scenarios)
    if compared is None:
        raise InvalidInputsError(comparison.problems_of(scenarios))
    if kind == "csv":
        body = exports.sides_as_csv(scenarios)
    elif kind == "json":
        body = _dumped(exports.sides_as_json(entry, scenarios))
    else:
        link = public_address_of(request).replace(f"/result.{kind}", "", 1)
        body = exports.sides_as_markdown(entry, compared, link)
    return _file(f"{name}-side-by-side", kind, body)


def _file(name: str, kind: str, body: str) -> Response:
    named = f'attachment; filename="{name}.{kind}"'
    return Response(body, media_type=_KINDS[kind], headers={"content-disposition": named})


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _side_links(
    entry: EstimateSpec, scenarios: Mapping[str, comparison.Scenario]
) -> dict[str, str]:
    """Return the URLs of a comparison: itself, swapped, with a third, and each one alone."""
    sides = {letter: comparison.words_of(s) for letter, s in scenarios.items()}
    third = without_third(sides) if "c" in sides else with_third(sides)
    views = {"here": sides, "swap": swapped(sides), "third": third}
    part = "compare"
    links = {
        view: calculator_url(entry.name, query_of_sides(shown), part=part)
        for view, shown in views.items()
    }
    return {
        **links,
        "one": calculator_url(entry.name, query_of(sides["a"])),
        "query": query_of_sides(sides),
    }


def _whole(
    request: Request,
    entry: EstimateSpec,
    typed: Mapping[str, str],
    learner: LearnerProfile,
    library: Library,
) -> Response:
    """Return the page of one calculator; status 422 with the input as typed if it has problems."""
    course = course_links(library)
    shown = build_calculator_form(entry, typed, course=course)
    number, total = calculator_list.number_of(entry)
    return render_page(
        request,
        "calculators/show.html",
        status=422 if shown.problems else 200,
        learner=learner,
        instrument=shown,
        summary=entry.summary,
        offers=calculator_list.offers(entry, typed, request.app.state.prices),
        number=number,
        total=total,
        explained=calculator_list.teaching_pages(entry, course),
        asked=calculator_list.starting_inputs(entry, library),
    )


def _fragment(
    request: Request,
    entry: EstimateSpec,
    typed: Mapping[str, str],
    library: Library,
    *,
    short: bool = False,
) -> Response:
    """Return the result fragment, or why there is no result."""
    try:
        inputs = parse_inputs(entry.inputs, typed)
        estimate = entry.compute(inputs)
    except InvalidInputsError as bad:
        return _refused(request, bad.problems)
    shown = build_estimate_view(entry, inputs, estimate, topics=library.topics)
    compare = comparison_of(entry, inputs, estimate, shown.query)
    name = "calculators/_result.html"
    return render_page(request, name, reading=shown, short=short, compare=compare)


def _refused(request: Request, problems: tuple[InputProblem, ...]) -> Response:
    return render_page(
        request,
        "calculators/_refusal.html",
        status=422,
        problems=problems,
        stray=problems,
    )
