"""Hardware routes: part list, part page, comparison."""

import dataclasses
import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response
from markupsafe import Markup

from app.accounts.current_learner import ReadContext
from app.content.course import Course
from app.errors import HelpLink, NotFoundError
from app.estimator import data_files, registry
from app.estimator.hardware.catalog import Accelerator, System, sparse_peak_rate
from app.estimator.hardware.part_values import (
    RATES,
    CatalogField,
    CatalogPart,
    Kind,
    PartValue,
    find_part,
    list_parts,
    part_url,
)
from app.estimator.inputs import input_specs
from app.estimator.units import NBSP
from app.markup.model import HtmlBlock
from app.widgets.bar_charts import DoubleBar, draw_double_bars
from app.widgets.estimate_view import TextLink, calculator_url

MAX_COMPARED_PARTS = 4
"""The most parts that fit side by side."""
_LESS_IS_BETTER = frozenset({"tdp", "power", "rack_units"})
_NOT_RANKED = frozenset({"launch_year", "gpus", "nics", "power_supplies", "power_supplies_needed"})


@dataclasses.dataclass(frozen=True, slots=True)
class ComparedField:
    """One value of all chosen parts; `best_value_positions` are the positions of the best ones."""

    field: CatalogField
    values: tuple[PartValue | None, ...]
    differs: bool
    best_value_positions: frozenset[int]


def compare_fields(parts: Sequence[CatalogPart]) -> dict[str, list[ComparedField]]:
    """Return the values of the parts by group, in the order of the first part."""
    fields = dict.fromkeys(v.field for part in parts for v in part.values)
    groups: dict[str, list[ComparedField]] = {}
    for field in fields:
        values = tuple(part.get(field.name) for part in parts)
        texts = {value.formatted_value if value else "" for value in values}
        compared = ComparedField(
            field, values, len(texts) > 1, _positions_of_best_values(field, values)
        )
        groups.setdefault(field.group, []).append(compared)
    return groups


def _positions_of_best_values(
    field: CatalogField, values: Sequence[PartValue | None]
) -> frozenset[int]:
    """Return the positions of the best numbers; none if all are equal or the field has no order."""
    numbers = {
        index: float(value.number)
        for index, value in enumerate(values)
        if value and isinstance(value.number, int | float)
    }
    if len(set(numbers.values())) < 2 or field.name in _NOT_RANKED:
        return frozenset()
    choose = min if field.name in _LESS_IS_BETTER else max
    best_number = choose(numbers.values())
    return frozenset(index for index, number in numbers.items() if number == best_number)


def draw_sold_and_reported_memory(part: CatalogPart) -> Markup | None:
    """Return the chart of memory as sold and as the driver reports it; None if one is unknown."""
    sold, reported = part.get("memory"), part.get("driver_memory")
    if sold is None or reported is None or reported.state != "known" or sold.state != "known":
        return None
    description = f"As sold {sold.formatted_value}; as the driver reports {reported.formatted_value}, {reported.other_convention}"
    bars = (
        DoubleBar("As sold", _number_or_zero(sold.number), sold.formatted_value),
        DoubleBar(
            "As the driver reports",
            _number_or_zero(reported.number),
            reported.formatted_value,
            css_class="mark",
        ),
    )
    return draw_double_bars(bars, description)


def draw_dense_and_sparse_rates(part: CatalogPart) -> Markup | None:
    """Return the chart of dense and sparse peak rates; None if none is known."""
    if not isinstance(part.catalog_entry, Accelerator):
        return None
    sparse_rates = _stated_sparse_rates(part)
    bars, descriptions = [], []
    for label, names in _group_formats_with_equal_rates(part).items():
        value = part[names[0]]
        sparse = sparse_peak_rate(part.catalog_entry, names[0], sparse_rates)
        sparse_text = f", {value.other_convention}" if sparse else ""
        dense = f"{value.formatted_value} dense"
        bars.append(DoubleBar(label, _number_or_zero(value.number), dense, sparse or 0.0))
        descriptions.append(f"{label} {dense}{sparse_text}")
    return draw_double_bars(bars, f"Peak rates: {'; '.join(descriptions)}") if bars else None


def has_sparse_rates(part: CatalogPart) -> bool:
    return isinstance(part.catalog_entry, Accelerator) and any(
        sparse_peak_rate(part.catalog_entry, name, _stated_sparse_rates(part)) for name in RATES
    )


def _group_formats_with_equal_rates(part: CatalogPart) -> dict[str, list[str]]:
    """Return the formats with a known peak; formats with the same rate are grouped."""
    formats: dict[str, list[str]] = {}
    for name in RATES:
        if part[name].state == "known":
            formats.setdefault(part[name].formatted_value, []).append(name)
    return {", ".join(n.upper() for n in names): names for names in formats.values()}


def _stated_sparse_rates(part: CatalogPart) -> Mapping[str, float]:
    row = data_files.load_table_entries_by_id("accelerators.toml", "accelerator")[part.id]
    stated: Mapping[str, float] = row.get("sparse", {})
    return stated


def _number_or_zero(value: float | str | None) -> float:
    return float(value or 0)


_INPUT_KINDS = {"accelerator": "gpu", "system": "system"}


def list_calculator_links(part: CatalogPart) -> tuple[TextLink, ...]:
    input_kind = _INPUT_KINDS.get(part.kind, "network")
    links = []
    for entry in registry.list_estimates():
        field_names = [
            n for n, spec in input_specs(entry.inputs_type).items() if spec.kind == input_kind
        ]
        if field_names and _can_compute_for_part(entry.name, field_names[0], part.id):
            url = calculator_url(entry.name, f"{field_names[0]}={part.id}")
            links.append(TextLink(url, entry.title))
    return tuple(links)


@functools.cache
def _can_compute_for_part(estimate_name: str, field: str, part_id: str) -> bool:
    """Return whether a calculator has a result for this part, whose rate may be unknown."""
    try:
        registry.run_estimate(estimate_name, {field: part_id})
    except (ValueError, LookupError, ArithmeticError):
        return False
    return True


def list_topic_links(part: CatalogPart, course: Course) -> tuple[TextLink, ...]:
    link = f'href="{part_url(part.id)}#'
    return tuple(
        TextLink(f"/concepts/{topic.slug}", topic.title)
        for topic in course.topics.values()
        if any(
            isinstance(piece, HtmlBlock) and link in piece.html
            for section in topic.sections
            for piece in section.pieces
        )
    )


def list_related_part_links(part: CatalogPart) -> tuple[TextLink, ...]:
    """Return links to the parts built from this one, or to the one it is built from."""
    if isinstance(part.catalog_entry, System):
        return (
            TextLink(part_url(part.catalog_entry.accelerator), part["accelerator"].formatted_value),
        )
    return tuple(
        TextLink(part_url(other.id), other.name)
        for other in list_parts()
        if isinstance(other.catalog_entry, System) and other.catalog_entry.accelerator == part.id
    )


@dataclasses.dataclass(frozen=True, slots=True)
class PartColumn:
    """A column of the part list: the field that it shows, its title, its unit."""

    field: str
    title: str
    unit: str = ""


PartColumnGroups = Mapping[str, tuple[PartColumn, ...]]
"""The columns below each heading."""
_ACCELERATOR_COLUMNS: PartColumnGroups = {
    "Memory": (
        PartColumn("memory", "As sold", "GB"),
        PartColumn("driver_memory", "As the driver reports", "GB"),
        PartColumn("memory_bandwidth", "Bandwidth", "GB/s"),
    ),
    "Dense compute": (
        PartColumn("bf16", "BF16", "TFLOP/s"),
        PartColumn("fp8", "FP8", "TFLOP/s"),
        PartColumn("fp4", "FP4", "TFLOP/s"),
    ),
    "Link and power": (
        PartColumn("nvlink", "Link, one way", "GB/s"),
        PartColumn("tdp", "Power", "W"),
    ),
}
_SYSTEM_COLUMNS: PartColumnGroups = {
    "Accelerators": (PartColumn("gpus", "Number"), PartColumn("accelerator", "Kind")),
    "Memory of all accelerators": (
        PartColumn("gpu_memory", "As sold", "GB"),
        PartColumn("capacity", "That can be filled", "GB"),
    ),
    "Links": (
        PartColumn("nvlink", "Link, one way", "GB/s"),
        PartColumn("nic", "Adapter, one way", "Gbit/s"),
    ),
    "Power": (
        PartColumn("power", "Highest planned", "kW"),
        PartColumn("rack_units", "Rack units"),
    ),
}
_NETWORK_COLUMNS: PartColumnGroups = {
    "Rates": (
        PartColumn("ports", "Ports"),
        PartColumn("port_rate", "Port, one way", "Gbit/s"),
        PartColumn("bandwidth", "Bandwidth, one way", "GB/s"),
        PartColumn("switching_capacity", "Switching capacity", "Tbit/s"),
    ),
    "Build": (
        PartColumn("pcie_generation", "PCIe generation"),
        PartColumn("power", "Power", "W"),
    ),
}


@dataclasses.dataclass(frozen=True, slots=True)
class PartCategory:
    name: str
    title: str
    singular_title: str
    part_kinds: tuple[Kind, ...]
    columns_by_group: PartColumnGroups
    default_sort: str

    @property
    def columns(self) -> list[PartColumn]:
        return [column for columns in self.columns_by_group.values() for column in columns]


CATEGORIES: Mapping[str, PartCategory] = {
    category.name: category
    for category in (
        PartCategory(
            "accelerators",
            "Accelerators",
            "Accelerator",
            ("accelerator",),
            _ACCELERATOR_COLUMNS,
            "memory",
        ),
        PartCategory(
            "systems", "Servers and racks", "System", ("system",), _SYSTEM_COLUMNS, "gpu_memory"
        ),
        PartCategory(
            "network",
            "Links, adapters and switches",
            "Part",
            ("link", "adapter", "dpu", "switch"),
            _NETWORK_COLUMNS,
            "bandwidth",
        ),
    )
}
MIN_MEMORY_CHOICES = (("", "Any"), ("48", "48 GB"), ("80", "80 GB"), ("141", "141 GB"))
"""The memory filter: GB as sold, and its label."""


@dataclasses.dataclass(frozen=True, slots=True)
class PartListOptions:
    """The query of the part list; every field has a valid value."""

    category: PartCategory
    vendor: str = ""
    min_memory_gb: str = ""
    shown_column_group: str = ""
    sorted_by: str = ""
    is_ascending: bool = False

    def build_url(self, **changes: str) -> str:
        """Return the URL of the list with some parameters changed."""
        text = {
            "kind": self.category.name,
            "vendor": self.vendor,
            "memory": self.min_memory_gb,
            "columns": self.shown_column_group,
            "sort": self.sorted_by,
            "order": "rising" if self.is_ascending else "",
        } | changes
        first = next(iter(CATEGORIES))
        query = {k: v for k, v in text.items() if v and (k, v) != ("kind", first)}
        return f"/hardware?{urlencode(query)}" if query else "/hardware"


@dataclasses.dataclass(frozen=True, slots=True)
class ColumnHeader:
    """A column title: its text, the URL that sorts by it, and the current sort order."""

    name: str
    title: str
    unit: str
    sorting_url: str
    sort_direction: str


@dataclasses.dataclass(frozen=True, slots=True)
class PartCell:
    """A value in the list; if there is none, `reason_letter` is the letter of the reason."""

    formatted_value: str
    other_convention: str
    reason_letter: str
    unverified: bool


@dataclasses.dataclass(frozen=True, slots=True)
class PartRow:
    id: str
    name: str
    description: str
    cells: tuple[PartCell, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class PartTable:
    """The template data of the list; `reasons_by_letter` explains the letters in it."""

    column_headers: tuple[ColumnHeader, ...]
    columns_by_group: PartColumnGroups
    rows: tuple[PartRow, ...]
    reasons_by_letter: Mapping[str, str]
    category_part_count: int
    sorted_by: str


def parse_part_list_options(query: Mapping[str, str]) -> PartListOptions:
    """Parse a query; unknown values are ignored."""
    category = CATEGORIES.get(query.get("kind", ""), next(iter(CATEGORIES.values())))

    def read(parameter: str, allowed: Collection[str]) -> str:
        value = query.get(parameter, "")
        return value if value in allowed else ""

    return PartListOptions(
        category=category,
        vendor=read("vendor", list_vendors(category)),
        min_memory_gb=read("memory", dict(MIN_MEMORY_CHOICES)),
        shown_column_group=read("columns", category.columns_by_group),
        sorted_by=read("sort", {"name", *(column.field for column in category.columns)}),
        is_ascending=query.get("order") == "rising",
    )


def list_vendors(category: PartCategory) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.vendor for part in list_parts_in_category(category)))


def list_parts_in_category(category: PartCategory) -> tuple[CatalogPart, ...]:
    return tuple(part for part in list_parts() if part.kind in category.part_kinds)


def find_category_of_part(part: CatalogPart) -> PartCategory:
    return next(category for category in CATEGORIES.values() if part.kind in category.part_kinds)


def build_part_table(options: PartListOptions) -> PartTable:
    all_parts = list_parts_in_category(options.category)
    matching_parts = _sort_parts(
        [part for part in all_parts if _passes_filters(part, options)], options
    )
    groups = {
        t: c
        for t, c in options.category.columns_by_group.items()
        if options.shown_column_group in ("", t)
    }
    columns = [column for group in groups.values() for column in group]
    letters = _footnote_letters_by_reason(matching_parts, [column.field for column in columns])
    heads = tuple(_build_column_header(column, options) for column in columns)
    return PartTable(
        column_headers=(
            _build_column_header(PartColumn("name", options.category.singular_title), options),
            *heads,
        ),
        columns_by_group=groups,
        rows=tuple(_part_row(part, columns, letters) for part in matching_parts),
        reasons_by_letter={letter: reason for reason, letter in letters.items()},
        category_part_count=len(all_parts),
        sorted_by=_describe_sort_order(options),
    )


def _passes_filters(part: CatalogPart, options: PartListOptions) -> bool:
    if options.vendor and part.vendor != options.vendor:
        return False
    if not options.min_memory_gb:
        return True
    memory = part.get("memory") or part.get("gpu_memory")
    number = memory.number if memory else None
    return isinstance(number, int | float) and number >= float(options.min_memory_gb) * 1e9


def _sort_parts(parts: Sequence[CatalogPart], options: PartListOptions) -> list[CatalogPart]:
    """Sort by a value, largest first by default; parts without a value come last."""
    name = options.sorted_by or options.category.default_sort
    if name == "name":
        ordered = sorted(parts, key=lambda part: part.name.casefold())
        return ordered[::-1] if options.is_ascending else ordered
    values: dict[str, Any] = {part.id: value.number for part in parts if (value := part.get(name))}
    known = [part for part in parts if values.get(part.id) is not None]
    known.sort(
        key=lambda part: (isinstance(values[part.id], str), values[part.id]),
        reverse=not options.is_ascending,
    )
    return [*known, *(part for part in parts if values.get(part.id) is None)]


def _describe_sort_order(options: PartListOptions) -> str:
    name = options.sorted_by or options.category.default_sort
    if name == "name":
        return "name, backward" if options.is_ascending else "name"
    text = next(column.title for column in options.category.columns if column.field == name)
    return f"“{text}”, {'smallest' if options.is_ascending else 'largest'} first"


def _build_column_header(column: PartColumn, options: PartListOptions) -> ColumnHeader:
    name = column.field
    is_sort_column = (options.sorted_by or options.category.default_sort) == name
    is_descending = is_sort_column and not options.is_ascending
    sorts_numbers = name != "name"  # the first click sorts names ascending, numbers descending
    state = (
        ""
        if not is_sort_column
        else ("descending" if is_descending == sorts_numbers else "ascending")
    )
    order = "rising" if is_descending else ""
    return ColumnHeader(
        name, column.title, column.unit, options.build_url(sort=name, order=order), state
    )


def _footnote_letters_by_reason(
    parts: Iterable[CatalogPart], fields: Sequence[str]
) -> dict[str, str]:
    """Return a letter for each reason why a value is missing."""
    values = (part.get(name) for part in parts for name in fields)
    reasons = dict.fromkeys(v.missing_reason for v in values if v is not None and v.missing_reason)
    return {reason: _footnote_letter(index) for index, reason in enumerate(reasons)}


def _footnote_letter(index: int) -> str:
    tens, ones = divmod(index, 26)
    return f"{chr(96 + tens) if tens else ''}{chr(97 + ones)}"


def _kind_label(part: CatalogPart) -> str:
    return "DPU" if part.kind == "dpu" else part.kind


def _part_row(
    part: CatalogPart, columns: Iterable[PartColumn], letters_by_reason: Mapping[str, str]
) -> PartRow:
    vendor_and_year = f"{part.vendor}, {part.year}" if part.year else part.vendor
    kind = "" if part.kind in ("accelerator", "system") else _kind_label(part)
    cells = tuple(_part_cell(part.get(c.field), c.unit, letters_by_reason) for c in columns)
    return PartRow(
        part.id, part.name, f"{vendor_and_year}, {kind}" if kind else vendor_and_year, cells
    )


def _part_cell(
    value: PartValue | None, unit: str, letters_by_reason: Mapping[str, str]
) -> PartCell:
    """Return a value without the unit that its column title shows."""
    if value is None:
        return PartCell("–", "", "", unverified=False)
    label, side_note = (
        text.replace(f"{NBSP}{unit}", "") if unit else text
        for text in (value.formatted_value, value.other_convention)
    )
    letter = letters_by_reason.get(value.missing_reason, "")
    return PartCell(label, side_note, letter, unverified=value.unverified)


router = APIRouter(prefix="/hardware", include_in_schema=False)
QueriedParts = Annotated[list[str], Query(alias="part", max_length=20)]

# The values at the top of a part's page, by category.
_FACTS_BY_CATEGORY = {
    "accelerators": ("capacity", "memory_bandwidth", "bf16", "nvlink", "tdp"),
    "systems": ("gpus", "capacity", "nvlink", "nic", "power"),
    "network": ("bandwidth", "port_rate", "ports", "switching_capacity", "power"),
}


@router.get("")
def list_hardware(ctx: ReadContext) -> Response:
    parameters = ctx.request.query_params
    query = parse_part_list_options(parameters)
    return ctx.render_page(
        "calculators/hardware.html",
        query=query,
        categories=CATEGORIES.values(),
        vendors=[(name, name) for name in list_vendors(query.category)],
        columns=[(title, title) for title in query.category.columns_by_group],
        least=MIN_MEMORY_CHOICES,
        table=build_part_table(query),
        ticked=parameters.getlist("part"),
    )


@router.get("/compare")
def compare_parts(
    ctx: ReadContext,
    part: QueriedParts = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    parts = {name: find_part(name) for name in dict.fromkeys(part)}
    known_parts = [known_part for known_part in parts.values() if known_part]
    compared_parts = known_parts[:MAX_COMPARED_PARTS]
    prices = ctx.request.app.state.prices
    return ctx.render_page(
        "calculators/hardware_comparison.html",
        compared_parts=compared_parts,
        left_out=known_parts[MAX_COMPARED_PARTS:],
        unknown=[name for name, known_part in parts.items() if known_part is None],
        max_parts=MAX_COMPARED_PARTS,
        groups=compare_fields(compared_parts),
        prices=[prices.prices_of_part_by_period(part.id) for part in compared_parts],
        category=find_category_of_part(compared_parts[0]) if compared_parts else None,
    )


@router.get("/{name}")
def show_part(ctx: ReadContext, name: str) -> Response:
    part = find_part(name)
    if part is None:
        help_link = HelpLink("/hardware", "See all parts")
        raise NotFoundError(f"There is no part “{name}”.", help_link=help_link)
    category = find_category_of_part(part)
    facts = [part.get(field) for field in _FACTS_BY_CATEGORY[category.name]]
    return ctx.render_page(
        "calculators/hardware_item.html",
        part=part,
        kind=_kind_label(part),
        category=category,
        prices=ctx.request.app.state.prices.prices_of_part_by_period(part.id),
        facts=[value for value in facts if value and value.state == "known"],
        memory=draw_sold_and_reported_memory(part),
        rates=draw_dense_and_sparse_rates(part),
        sparse=has_sparse_rates(part),
        calculators=list_calculator_links(part),
        pages=list_topic_links(part, ctx.course),
        related_parts=list_related_part_links(part),
        others=[p for p in list_parts_in_category(category) if p.id != part.id],
    )
