"""Calculator pages: the list, a calculator, its result, comparison, downloads.

Slow estimates run in threads, a few at a time.
"""

import dataclasses
import datetime as dt
import functools
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Annotated, Any, Literal, TypeVar

import anyio
from anyio.lowlevel import RunVar
from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import UploadFile
from starlette.routing import Route

from app.accounts.current_learner import ReadContext, RequestContext
from app.calculators import accuracy_report, comparison, exports
from app.calculators.comparison import is_number, split_scenarios
from app.content.course import Course
from app.errors import HelpLink, InvalidInputError, NotFoundError
from app.estimator import registry
from app.estimator.estimates.accelerator_choice import list_rankable_gpus
from app.estimator.hardware.part_values import find_part
from app.estimator.hardware.prices import BillingPeriod, PartPrice, PriceList
from app.estimator.inputs import (
    InputProblem,
    InvalidInputsError,
    input_specs,
    non_default_inputs_to_query,
    parse_inputs,
)
from app.estimator.registry import EstimateSpec
from app.estimator.result import Figure
from app.estimator.units import inflect_unit
from app.web.dependencies import (
    CurrentCourse,
    collect_course_link_targets,
    current_course,
    public_request_url,
)
from app.web.render import render_page
from app.widgets.calculator_form import (
    MOST_FIELDS,
    NO_COURSE,
    CourseLinkTargets,
    build_calculator_form,
    build_form_fields,
    catalog_options,
    comparison_url,
    encode_typed_query,
    first_nonempty_values,
    list_hints_for_unfilled_fields,
    parse_query_inputs,
)
from app.widgets.estimate_view import (
    EXAMPLE_QUESTIONS,
    LONGEST_LINK,
    build_estimate_view,
    calculator_url,
    draw_estimate_chart,
    encode_inputs_query,
)
from app.widgets.svg import build_standalone_svg

Result = TypeVar("Result")

# A switch to a thread costs more than most estimates, but a slow search must not block the event
# loop.
_QUICK_SECONDS = 0.01
# Costly work has its own threads, so that it never takes all those that pages need. Python runs one
# thread at a time: more threads would finish nothing sooner, and pages would wait for each of them
# in turn.
MAX_WORKERS = 2
# How fast a slow run is forgotten. Inputs decide the time, so a slow one can follow at any time.
_DECAY_PER_RUN = 0.9

_limiter_of_loop: RunVar[anyio.CapacityLimiter] = RunVar("room of costly estimates")


class EstimateRunner:
    """Runs estimates, those in a thread that recently took long.

    It remembers the longest recent duration of each, in CPU time of the thread: on a busy machine
    the wait for a processor would make every estimate look slow, and using threads for all of them
    would make it wait even longer.
    """

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        self._seconds: dict[str, float] = {}

    @property
    def names_of_measured_estimates(self) -> tuple[str, ...]:
        return tuple(self._seconds)

    async def run_in_thread_unless_quick(
        self, name: str, work: Callable[[], Result], *, is_search: bool = False
    ) -> Result:
        """Run the estimate `name`, in a thread unless it is usually quick.

        A search always runs in a thread: its inputs decide how long it takes, so quick runs say
        nothing about the next one. If all threads for costly work are busy, the caller waits on the
        event loop.
        """

        def run_timed() -> Result:
            start = self._clock()
            try:
                return work()
            finally:
                decayed_seconds = self._seconds.get(name, 0.0) * _DECAY_PER_RUN
                self._seconds[name] = max(decayed_seconds, self._clock() - start)

        if not is_search and self._seconds.get(name, 1.0) < _QUICK_SECONDS:
            return run_timed()
        return await run_sync(run_timed, limiter=_limiter_of_costly_threads())


def _limiter_of_costly_threads() -> anyio.CapacityLimiter:
    """Return the limiter of threads for costly work, one per event loop."""
    limiter = _limiter_of_loop.get(None)
    if limiter is None:
        limiter = anyio.CapacityLimiter(MAX_WORKERS)
        _limiter_of_loop.set(limiter)
    return limiter


ESTIMATE_RUNNER = EstimateRunner()
"""Shared by the web pages and the API of this process."""


def run_in_thread_if_slow(route: Callable[..., Result]) -> Callable[..., Awaitable[Result]]:
    """Wrap a route with the parameter `name`, so that slow estimates run in threads."""

    @functools.wraps(route)
    async def run(**arguments: Any) -> Result:
        entry = registry.find_estimate(arguments["name"])
        # Unknown calculator names share one key. Otherwise made-up URLs would grow the table
        # without limit.
        name = f"{route.__name__} {entry.name if entry else ''}"
        is_search = entry is not None and entry.is_search
        work = functools.partial(route, **arguments)
        return await ESTIMATE_RUNNER.run_in_thread_unless_quick(name, work, is_search=is_search)

    return run


@dataclasses.dataclass(frozen=True, slots=True)
class CalculatorListItem:
    """A calculator in the list, with its result for the default inputs."""

    number: int
    entry: EstimateSpec
    default_inputs_text: str
    figure_label: str
    figure_value: str


def group_estimates_for_list() -> dict[str, list[EstimateSpec]]:
    groups: dict[str, list[EstimateSpec]] = {}
    for entry in registry.list_estimates():
        groups.setdefault(entry.group, []).append(entry)
    return groups


def find_lesson_titles_by_slug(
    entry: EstimateSpec, link_targets: CourseLinkTargets
) -> dict[str, str]:
    slugs = [entry.topic, *(i.topic for i in input_specs(entry.inputs_type).values())]
    return {
        s: link_targets.topic_titles_by_slug[s]
        for s in slugs
        if s in link_targets.topic_titles_by_slug
    }


def find_quiz_labels_by_url(entry: EstimateSpec, course: Course) -> dict[str, str]:
    """Return links to course questions on this calculator's topic: URL and label."""
    topic = course.topics.get(entry.topic)
    if topic is None or not topic.questions:
        return {}
    return {f"/quiz/{topic.slug}": f"{len(topic.questions)} questions, {topic.title}"}


def calculator_numbers_by_name() -> dict[str, int]:
    """Return the number of each calculator by name, in the order of the list."""
    names = (entry.name for group in group_estimates_for_list().values() for entry in group)
    return {name: number for number, name in enumerate(names, 1)}


@functools.cache
def _calculator_list_item(entry: EstimateSpec, number: int) -> CalculatorListItem:
    figures = [f for f in entry.compute(entry.inputs_type()).figures if is_number(f.value)]
    first = next((f for f in figures if f.primary), figures[0] if figures else None)
    return CalculatorListItem(
        number=number,
        entry=entry,
        default_inputs_text=_format_default_models_and_hardware(entry),
        figure_label=_figure_label_unless_it_repeats_unit(first) if first else "",
        figure_value=_format_figure_shortening_parameters(first) if first else "",
    )


def _figure_label_unless_it_repeats_unit(figure: Figure) -> str:
    """Return the label of a figure; “Needed” if the label only repeats its unit."""
    repeats_unit = inflect_unit(2, figure.unit) == figure.label
    return "Needed" if repeats_unit else figure.label


def _format_figure_shortening_parameters(figure: Figure) -> str:
    """Return a figure in short form: `70.6 B` parameters instead of all digits."""
    if figure.unit == "parameter" and isinstance(figure.value, int | float):
        return f"{figure.value / 1e9:,.1f}\u00a0B"
    return figure.formatted_value


def _format_default_models_and_hardware(entry: EstimateSpec) -> str:
    """Return the catalog names among the default inputs of a calculator."""
    inputs = entry.inputs_type()
    shown_names = []
    for name, field in input_specs(entry.inputs_type).items():
        if field.kind in {"model", "gpu", "system", "network"} and not field.advanced:
            value = getattr(inputs, name)
            names_by_id = dict(c for group in catalog_options(field.kind) for c in group.options)
            shown_names.append(names_by_id.get(value, value))
    return ", ".join(filter(None, shown_names))


# The inputs that take a price of one accelerator, by billing unit.
_BILLING_PERIOD_BY_FIELD: Mapping[str, BillingPeriod] = {
    "rent": "hour",
    "usd_per_gpu_hour": "hour",
    "cost_per_gpu_hour": "hour",
    "price": "buy",
}
_DEFAULT_CURRENCY = "USD"


@dataclasses.dataclass(frozen=True, slots=True)
class PriceLink:
    """The prices of a part, as a link that fills them into the form."""

    url: str
    part_name: str
    label: str
    day: dt.date
    is_already_typed: bool


def build_price_links(
    entry: EstimateSpec, typed_by_field: Mapping[str, str], prices: PriceList
) -> tuple[PriceLink, ...]:
    """Return the prices that fit a calculator's inputs, keeping everything already typed."""
    inputs = {field.name for field in dataclasses.fields(entry.inputs_type)}
    fields = {name: period for name, period in _BILLING_PERIOD_BY_FIELD.items() if name in inputs}
    usd_prices = [p for p in prices.prices if p.currency == _DEFAULT_CURRENCY]
    if "prices" in inputs:
        return _gpu_ranking_price_links(entry, typed_by_field, usd_prices)
    links = []
    for part in dict.fromkeys(p.part_id for p in usd_prices):
        catalog_part = find_part(part)
        if catalog_part is None or catalog_part.kind != "accelerator":
            continue
        prices_by_period = {p.billing_period: p for p in usd_prices if p.part_id == part}
        prices_by_field = {
            name: prices_by_period[period]
            for name, period in fields.items()
            if period in prices_by_period
        }
        if prices_by_field:
            form_values = _build_price_gpu_and_year_values(prices_by_field, inputs)
            links.append(
                _price_link(entry, typed_by_field, form_values, list(prices_by_field.values()))
            )
    return tuple(links)


def _build_price_gpu_and_year_values(
    prices_by_field: Mapping[str, PartPrice], input_names: Collection[str]
) -> dict[str, str]:
    """Return the form values for these prices, with the part and the year."""
    first = next(iter(prices_by_field.values()))
    oldest = min(price.day for price in prices_by_field.values())
    extra_values = {"gpu": first.part_id, "priced_in": str(oldest.year)}
    form_values = {name: f"{price.amount:.12g}" for name, price in prices_by_field.items()}
    return form_values | {
        name: value for name, value in extra_values.items() if name in input_names
    }


def _gpu_ranking_price_links(
    entry: EstimateSpec, typed_by_field: Mapping[str, str], prices: list[PartPrice]
) -> tuple[PriceLink, ...]:
    """Return all hourly prices at once, for the calculator that ranks GPUs."""
    ranked_ids = {gpu.id for gpu in list_rankable_gpus()}
    hourly_prices = [p for p in prices if p.billing_period == "hour" and p.part_id in ranked_ids]
    if not hourly_prices:
        return ()
    text = ", ".join(f"{p.part_id} {p.amount:.12g}" for p in hourly_prices)
    return (_price_link(entry, typed_by_field, {"prices": text}, hourly_prices),)


def _price_link(
    entry: EstimateSpec,
    typed_by_field: Mapping[str, str],
    form_values: Mapping[str, str],
    prices: list[PartPrice],
) -> PriceLink:
    part_ids = dict.fromkeys(price.part_id for price in prices)
    return PriceLink(
        url=calculator_url(entry.name, encode_typed_query({**typed_by_field, **form_values})),
        part_name=", ".join(part.name if (part := find_part(name)) else name for name in part_ids),
        label=", ".join(price.formatted_price for price in prices),
        day=min(price.day for price in prices),
        is_already_typed=all(
            typed_by_field.get(name) == value for name, value in form_values.items()
        ),
    )


router = APIRouter(prefix="/calculators", include_in_schema=False)

_MEDIA_TYPES = {
    "md": "text/markdown",
    "csv": "text/csv",
    "json": "application/json",
    "svg": "image/svg+xml",
}


def _require_calculator(name: str) -> EstimateSpec:
    """Return the calculator in the URL; raises NotFoundError."""
    entry = registry.find_estimate(name)
    if entry is None or entry.name != name:
        help_link = HelpLink("/calculators", "See all calculators")
        raise NotFoundError(f"There is no calculator “{name}”.", help_link=help_link)
    return entry


def _read_query_string_inputs(request: Request) -> dict[str, str]:
    # `request.url` would first build the whole URL.
    text: bytes = request.scope["query_string"]
    return parse_query_inputs(text.decode(errors="replace"))


QueriedInputs = Annotated[dict[str, str], Depends(_read_query_string_inputs)]


async def _read_form_or_file_inputs(request: Request) -> dict[str, str]:
    """Return the inputs of a posted form; an uploaded file replaces the text of its field."""
    async with request.form(max_files=4, max_fields=MOST_FIELDS) as form:
        items = form.multi_items()
        files = [(n, await _read_text_file(n, v)) for n, v in items if isinstance(v, UploadFile)]
    texts = [(n, v) for n, v in items if isinstance(v, str)]
    return first_nonempty_values([*files, *texts])


async def _read_text_file(field: str, upload: UploadFile) -> str:
    try:
        return (await upload.read()).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInputError("The file is not text.", field=field) from None


PostedInputs = Annotated[dict[str, str], Depends(_read_form_or_file_inputs)]


async def show_result(request: Request) -> Response:
    return await _render_result_fragment_from_query(request, short=False)


async def show_short_result(request: Request) -> Response:
    return await _render_result_fragment_from_query(request, short=True)


quick = (
    Route("/calculators/{name}/result", show_result, methods=["GET"]),
    Route("/calculators/{name}/reading", show_short_result, methods=["GET"]),
)
"""Requested at every keystroke, so they are matched before all other routes, without dependencies.
"""


async def _render_result_fragment_from_query(request: Request, *, short: bool) -> Response:
    entry = _require_calculator(request.path_params["name"])
    typed = _read_query_string_inputs(request)
    course = await current_course(request)

    def work() -> Response:
        if hints := list_hints_for_unfilled_fields(entry, typed):
            return render_page(request, "calculators/_unfilled.html", hints=hints)
        return _render_result_or_problems(request, entry, typed, course, short=short)

    return await ESTIMATE_RUNNER.run_in_thread_unless_quick(
        entry.name, work, is_search=entry.is_search
    )


@router.get("")
def list_calculators(ctx: ReadContext) -> Response:
    numbers = calculator_numbers_by_name()
    return ctx.render_page(
        "calculators/index.html",
        groups={
            title: [_calculator_list_item(entry, numbers[entry.name]) for entry in entries]
            for title, entries in group_estimates_for_list().items()
        },
        starts=EXAMPLE_QUESTIONS,
    )


@router.get("/accuracy")
def show_accuracy(ctx: ReadContext) -> Response:
    return ctx.render_page(
        "calculators/accuracy.html", summary=accuracy_report.build_accuracy_summary()
    )


@router.get("/accuracy/{kind}")
def show_kind_accuracy(ctx: ReadContext, kind: str) -> Response:
    accuracy = accuracy_report.build_kind_accuracy(kind)
    if accuracy is None:
        raise NotFoundError(f"There are no cases of kind “{kind}”.")
    return ctx.render_page("calculators/accuracy_kind.html", accuracy=accuracy)


@router.get("/{name}")
@run_in_thread_if_slow
def show_calculator(ctx: ReadContext, name: str, typed: QueriedInputs) -> Response:
    return _render_calculator_page(ctx, _require_calculator(name), typed)


@router.post("/{name}")
@run_in_thread_if_slow
def show_posted_calculator(ctx: ReadContext, name: str, typed: PostedInputs) -> Response:
    entry = _require_calculator(name)
    query = encode_typed_query(typed)
    if len(query) > LONGEST_LINK:
        query = _normalized_query_or_empty(entry, typed)
    if query and len(query) <= LONGEST_LINK:
        return RedirectResponse(calculator_url(name, query), status_code=303)
    return _render_calculator_page(ctx, entry, typed)


def _normalized_query_or_empty(entry: EstimateSpec, typed_by_field: Mapping[str, str]) -> str:
    """Return the inputs in their normal form, with the key of a config.json; empty if invalid."""
    try:
        return encode_inputs_query(
            non_default_inputs_to_query(parse_inputs(entry.inputs_type, typed_by_field))
        )
    except InvalidInputsError:
        return ""


@router.post("/{name}/result")
@run_in_thread_if_slow
def show_posted_result(
    request: Request, name: str, typed: PostedInputs, course: CurrentCourse
) -> Response:
    return _render_result_or_problems(request, _require_calculator(name), typed, course)


@router.post("/{name}/reading")
@run_in_thread_if_slow
def show_posted_short_result(
    request: Request, name: str, typed: PostedInputs, course: CurrentCourse
) -> Response:
    return _render_result_or_problems(request, _require_calculator(name), typed, course, short=True)


@router.get("/{name}/result.svg")
@run_in_thread_if_slow
def download_chart(request: Request, name: str, typed: QueriedInputs) -> Response:
    entry = _require_calculator(name)
    pictures = entry.compute(parse_inputs(entry.inputs_type, typed)).pictures
    if not pictures:
        raise NotFoundError("This calculator draws no picture.")
    files = request.app.state.static.files
    stylesheets = [files[f"css/{f}.css"].body.decode() for f in ("tokens", "instruments")]
    return _download_response(
        name, "svg", build_standalone_svg(draw_estimate_chart(pictures[0]), *stylesheets)
    )


@router.get("/{name}/result.{kind}")
@run_in_thread_if_slow
def download_estimate(
    request: Request, name: str, typed: QueriedInputs, kind: Literal["md", "csv", "json"]
) -> Response:
    entry = _require_calculator(name)
    inputs = parse_inputs(entry.inputs_type, typed)
    estimate = entry.compute(inputs)
    link = public_request_url(request).replace(f"/result.{kind}", "", 1)
    if kind == "csv":
        body = exports.format_estimate_csv(estimate)
    elif kind == "json":
        body = exports.dump_json(exports.build_estimate_json(entry, inputs, estimate))
    else:
        body = exports.format_estimate_markdown(entry, inputs, estimate, link)
    return _download_response(name, kind, body)


@router.get("/{name}/compare")
@run_in_thread_if_slow
def show_comparison(ctx: ReadContext, name: str, typed: QueriedInputs) -> Response:
    entry, link_targets = _require_calculator(name), collect_course_link_targets(ctx.course)
    if not typed:
        # Two equal scenarios would show nothing, so B starts with the change that affects A most.
        proposed_url = build_calculator_form(entry, typed, link_targets=link_targets).compare_url
        if "?" in proposed_url:
            return RedirectResponse(proposed_url, status_code=303)
    typed_by_letter = split_scenarios(typed)
    scenarios = comparison.compute_scenarios(entry, typed_by_letter)
    rows = comparison.build_input_rows(entry, scenarios, link_targets)
    main_rows = [r for r in rows if r.differs] or [r for r in rows if not r.is_advanced]
    problems = comparison.list_scenario_problems(scenarios)
    return ctx.render_page(
        "calculators/compare.html",
        status=422 if problems else 200,
        calculator=entry,
        name=name,
        letters=[letter.upper() for letter in typed_by_letter],
        main_rows=main_rows,
        other_rows=[r for r in rows if r not in main_rows],
        links=comparison.build_comparison_links_and_query(entry, scenarios),
        compared=comparison.compare_scenarios_if_all_computed(entry, scenarios),
        problems=problems,
    )


@router.get("/{name}/compare/result")
@run_in_thread_if_slow
def show_comparison_result(request: Request, name: str, typed: QueriedInputs) -> Response:
    entry = _require_calculator(name)
    typed_by_letter = split_scenarios(typed)
    scenarios = comparison.compute_scenarios(entry, typed_by_letter)
    problems = comparison.list_scenario_problems(scenarios)
    if problems:
        return _render_input_problems(request, problems)
    return render_page(
        request,
        "calculators/_comparison.html",
        name=name,
        compared=comparison.compare_scenarios_if_all_computed(entry, scenarios),
        links=comparison.build_comparison_links_and_query(entry, scenarios),
        fields=[
            field
            for row in comparison.build_input_rows(entry, scenarios, NO_COURSE)
            for field in row.fields
        ],
    )


@router.get("/{name}/compare/result.{kind}")
@run_in_thread_if_slow
def download_comparison(
    request: Request, name: str, typed: QueriedInputs, kind: Literal["md", "csv", "json"]
) -> Response:
    entry = _require_calculator(name)
    scenarios = comparison.compute_scenarios(entry, split_scenarios(typed))
    compared = comparison.compare_scenarios_if_all_computed(entry, scenarios)
    if compared is None:
        raise InvalidInputsError(comparison.list_scenario_problems(scenarios))
    if kind == "csv":
        body = exports.format_comparison_csv(scenarios)
    elif kind == "json":
        body = exports.dump_json(exports.build_comparison_json(entry, scenarios))
    else:
        link = public_request_url(request).replace(f"/result.{kind}", "", 1)
        body = exports.format_comparison_markdown(entry, compared, link)
    return _download_response(f"{name}-side-by-side", kind, body)


def _download_response(name: str, extension: str, body: str) -> Response:
    disposition = f'attachment; filename="{name}.{extension}"'
    return Response(
        body, media_type=_MEDIA_TYPES[extension], headers={"content-disposition": disposition}
    )


def _render_calculator_page(
    ctx: RequestContext, entry: EstimateSpec, typed_by_field: Mapping[str, str]
) -> Response:
    """Return the page of one calculator; status 422 with the input as typed if it has problems."""
    link_targets = collect_course_link_targets(ctx.course)
    form = build_calculator_form(entry, typed_by_field, link_targets=link_targets)
    numbers = calculator_numbers_by_name()
    return ctx.render_page(
        "calculators/show.html",
        status=422 if form.problems else 200,
        instrument=form,
        summary=entry.summary,
        price_links=build_price_links(entry, typed_by_field, ctx.request.app.state.prices),
        number=numbers[entry.name],
        total=len(numbers),
        lessons=find_lesson_titles_by_slug(entry, link_targets),
        quizzes=find_quiz_labels_by_url(entry, ctx.course),
    )


def _render_result_or_problems(
    request: Request,
    entry: EstimateSpec,
    typed_by_field: Mapping[str, str],
    course: Course,
    *,
    short: bool = False,
) -> Response:
    """Return the result fragment, or why there is no result."""
    try:
        inputs = parse_inputs(entry.inputs_type, typed_by_field)
        estimate = entry.compute_with_k_suffix_notes(inputs, typed_by_field)
    except InvalidInputsError as error:
        return _render_input_problems(request, error.problems)
    view = build_estimate_view(entry, inputs, estimate, linkable_topics=course.topics)
    compare = comparison_url(entry, inputs, estimate, view.query)
    return render_page(
        request,
        "calculators/_result.html",
        estimate=view,
        short=short,
        compare=compare,
        fields=build_form_fields(entry, typed_by_field, inputs, (), element_id=""),
    )


def _render_input_problems(request: Request, problems: tuple[InputProblem, ...]) -> Response:
    return render_page(
        request,
        "calculators/_refusal.html",
        status=422,
        problems=problems,
        unplaced_problems=problems,
    )
