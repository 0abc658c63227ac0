"""Calculator routes: list, page, result fragment, comparison, downloads."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import UploadFile
from starlette.routing import Route

from app.accounts.current_learner import CurrentLearner, LearnerProfile
from app.calculators import accuracy_page, calculator_list, comparison, exports
from app.calculators.url_inputs import (
    MOST_FIELDS,
    build_query,
    inputs_from_query,
    keep_first_filled,
    split_scenarios,
)
from app.calculators.worker_pool import PACE, limit_concurrency
from app.content.library import Library
from app.errors import InvalidInputError, NotFoundError
from app.estimator import registry
from app.estimator.inputs import InputProblem, InvalidInputsError, parse_inputs, to_query
from app.estimator.registry import EstimateSpec
from app.web.dependencies import CurrentLibrary, course_links, current_library, requested_url
from app.web.render import render_page
from app.widgets import draw_picture
from app.widgets.calculator_form import build_calculator_form, comparison_url
from app.widgets.estimate_view import (
    LONGEST_LINK,
    build_estimate_view,
    calculator_url,
    inputs_query,
)
from app.widgets.svg import standalone_svg

router = APIRouter(prefix="/calculators", include_in_schema=False)

_KINDS = {
    "md": "text/markdown",
    "csv": "text/csv",
    "json": "application/json",
    "svg": "image/svg+xml",
}


def _require_calculator(name: str) -> EstimateSpec:
    """Return the calculator in the URL; raises NotFoundError."""
    entry = registry.find_estimate(name)
    if entry is None or entry.name != name:
        onward = "/calculators", "See all calculators"
        raise NotFoundError(f"There is no calculator “{name}”.", onward=onward)
    return entry


def _raw_query(request: Request) -> str:
    # `request.url` would first build the whole URL.
    text: bytes = request.scope["query_string"]
    return text.decode(errors="replace")


def _typed_inputs(request: Request) -> dict[str, str]:
    return inputs_from_query(_raw_query(request))


Typed = Annotated[dict[str, str], Depends(_typed_inputs)]


async def _read_posted_inputs(request: Request) -> dict[str, str]:
    """Return the inputs of a posted form; an uploaded file replaces the text of its field."""
    async with request.form(max_files=4, max_fields=MOST_FIELDS) as form:
        items = form.multi_items()
        files = [(n, await _clean_text(n, v)) for n, v in items if isinstance(v, UploadFile)]
    texts = [(n, v) for n, v in items if isinstance(v, str)]
    return keep_first_filled([*files, *texts])


async def _clean_text(name: str, value: UploadFile) -> str:
    try:
        return (await value.read()).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInputError("The file is not text.", field=name) from None


Posted = Annotated[dict[str, str], Depends(_read_posted_inputs)]


async def show_result(request: Request) -> Response:
    return await _render_fragment(request, short=False)


async def show_reading(request: Request) -> Response:
    return await _render_fragment(request, short=True)


quick = (
    Route("/calculators/{name}/result", show_result, methods=["GET"]),
    Route("/calculators/{name}/reading", show_reading, methods=["GET"]),
)
"""Requested at every keystroke, so they are matched before all other routes, without dependencies.
"""


async def _render_fragment(request: Request, *, short: bool) -> Response:
    entry = _require_calculator(request.path_params["name"])
    typed = inputs_from_query(_raw_query(request))
    library = await current_library(request)

    def work() -> Response:
        return _render_reading(request, entry, typed, library, short=short)

    return await PACE.run(entry.name, work, is_search=entry.is_search)


@router.get("")
def list_calculators(request: Request, learner: CurrentLearner) -> Response:
    return render_page(
        request,
        "calculators/index.html",
        learner=learner,
        groups=calculator_list.list_calculator_groups(),
        starts=calculator_list.STARTS,
    )


@router.get("/accuracy")
def show_accuracy(request: Request, learner: CurrentLearner) -> Response:
    summary = accuracy_page.accuracy_summary()
    return render_page(request, "calculators/accuracy.html", learner=learner, summary=summary)


@router.get("/accuracy/{kind}")
def show_kind_accuracy(request: Request, kind: str, learner: CurrentLearner) -> Response:
    accuracy = accuracy_page.accuracy_of_kind(kind)
    if accuracy is None:
        raise NotFoundError(f"There are no cases of kind “{kind}”.")
    return render_page(
        request, "calculators/accuracy_kind.html", learner=learner, accuracy=accuracy
    )


@router.get("/{name}")
@limit_concurrency
def show_calculator(
    request: Request, name: str, typed: Typed, learner: CurrentLearner, library: CurrentLibrary
) -> Response:
    return _render_calculator_page(request, _require_calculator(name), typed, learner, library)


@router.post("/{name}")
@limit_concurrency
def show_posted(
    request: Request, name: str, typed: Posted, learner: CurrentLearner, library: CurrentLibrary
) -> Response:
    entry = _require_calculator(name)
    query = build_query(typed)
    if len(query) > LONGEST_LINK:
        query = _short_query(entry, typed)
    if query and len(query) <= LONGEST_LINK:
        return RedirectResponse(calculator_url(name, query), status_code=303)
    return _render_calculator_page(request, entry, typed, learner, library)


def _short_query(entry: EstimateSpec, typed: Mapping[str, str]) -> str:
    """Return the inputs in their normal form, with the key of a config.json; empty if invalid."""
    try:
        return inputs_query(to_query(parse_inputs(entry.inputs, typed)))
    except InvalidInputsError:
        return ""


@router.post("/{name}/result")
@limit_concurrency
def result_posted(request: Request, name: str, typed: Posted, library: CurrentLibrary) -> Response:
    return _render_reading(request, _require_calculator(name), typed, library)


@router.post("/{name}/reading")
@limit_concurrency
def show_posted_reading(
    request: Request, name: str, typed: Posted, library: CurrentLibrary
) -> Response:
    return _render_reading(request, _require_calculator(name), typed, library, short=True)


@router.get("/{name}/result.svg")
@limit_concurrency
def download_chart(request: Request, name: str, typed: Typed) -> Response:
    entry = _require_calculator(name)
    pictures = entry.compute(parse_inputs(entry.inputs, typed)).pictures
    if not pictures:
        raise NotFoundError("This calculator draws no picture.")
    files = request.app.state.static.files
    sheets = [files[f"css/{f}.css"].body.decode() for f in ("tokens", "instruments")]
    return _file_response(name, "svg", standalone_svg(draw_picture(pictures[0]), *sheets))


@router.get("/{name}/result.{kind}")
@limit_concurrency
def download_estimate(
    request: Request, name: str, typed: Typed, kind: Literal["md", "csv", "json"]
) -> Response:
    entry = _require_calculator(name)
    inputs = parse_inputs(entry.inputs, typed)
    estimate = entry.compute(inputs)
    link = requested_url(request).replace(f"/result.{kind}", "", 1)
    if kind == "csv":
        body = exports.format_csv(estimate)
    elif kind == "json":
        body = _dump_json(exports.estimate_json(entry, inputs, estimate))
    else:
        body = exports.format_markdown(entry, inputs, estimate, link)
    return _file_response(name, kind, body)


@router.get("/{name}/compare")
@limit_concurrency
def compare_calculators(
    request: Request, name: str, typed: Typed, learner: CurrentLearner, library: CurrentLibrary
) -> Response:
    entry = _require_calculator(name)
    if not typed:
        # Two equal scenarios would show nothing, so B starts with the change that affects A most.
        proposed = build_calculator_form(entry, typed, course=course_links(library)).compare
        if "?" in proposed:
            return RedirectResponse(proposed, status_code=303)
    sides = split_scenarios(typed)
    scenarios = comparison.answer_all(entry, sides)
    rows = comparison.input_rows(entry, scenarios, course_links(library))
    near = [r for r in rows if r.differs] or [r for r in rows if not r.advanced]
    problems = comparison.scenario_problems(scenarios)
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
        links=comparison.comparison_links(entry, scenarios),
        compared=comparison.compare_scenarios(entry, scenarios),
        problems=problems,
    )


@router.get("/{name}/compare/result")
@limit_concurrency
def compare_result(request: Request, name: str, typed: Typed) -> Response:
    entry = _require_calculator(name)
    sides = split_scenarios(typed)
    scenarios = comparison.answer_all(entry, sides)
    problems = comparison.scenario_problems(scenarios)
    if problems:
        return _render_input_problems(request, problems)
    return render_page(
        request,
        "calculators/_sides.html",
        name=name,
        compared=comparison.compare_scenarios(entry, scenarios),
        links=comparison.comparison_links(entry, scenarios),
    )


@router.get("/{name}/compare/result.{kind}")
@limit_concurrency
def download_comparison(
    request: Request, name: str, typed: Typed, kind: Literal["md", "csv", "json"]
) -> Response:
    entry = _require_calculator(name)
    scenarios = comparison.answer_all(entry, split_scenarios(typed))
    compared = comparison.compare_scenarios(entry, scenarios)
    if compared is None:
        raise InvalidInputsError(comparison.scenario_problems(scenarios))
    if kind == "csv":
        body = exports.sides_as_csv(scenarios)
    elif kind == "json":
        body = _dump_json(exports.sides_as_json(entry, scenarios))
    else:
        link = requested_url(request).replace(f"/result.{kind}", "", 1)
        body = exports.sides_as_markdown(entry, compared, link)
    return _file_response(f"{name}-side-by-side", kind, body)


def _file_response(name: str, kind: str, body: str) -> Response:
    named = f'attachment; filename="{name}.{kind}"'
    return Response(body, media_type=_KINDS[kind], headers={"content-disposition": named})


def _dump_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _render_calculator_page(
    request: Request,
    entry: EstimateSpec,
    typed: Mapping[str, str],
    learner: LearnerProfile,
    library: Library,
) -> Response:
    """Return the page of one calculator; status 422 with the input as typed if it has problems."""
    course = course_links(library)
    form = build_calculator_form(entry, typed, course=course)
    number, total = calculator_list.calculator_position(entry)
    return render_page(
        request,
        "calculators/show.html",
        status=422 if form.problems else 200,
        learner=learner,
        instrument=form,
        summary=entry.summary,
        price_links=calculator_list.list_price_links(entry, typed, request.app.state.prices),
        number=number,
        total=total,
        lessons=calculator_list.find_teaching_pages(entry, course),
        quizzes=calculator_list.find_quizzes(entry, library),
    )


def _render_reading(
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
        return _render_input_problems(request, bad.problems)
    view = build_estimate_view(entry, inputs, estimate, topics=library.topics)
    compare = comparison_url(entry, inputs, estimate, view.query)
    name = "calculators/_result.html"
    return render_page(request, name, estimate=view, short=short, compare=compare)


def _render_input_problems(request: Request, problems: tuple[InputProblem, ...]) -> Response:
    return render_page(
        request, "calculators/_refusal.html", status=422, problems=problems, stray=problems
    )
