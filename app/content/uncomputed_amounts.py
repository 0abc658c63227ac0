"""Finds amounts in plain text that the catalog or an estimate computes."""

import dataclasses
import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import unescape
from typing import NamedTuple

from app.estimator.hardware.part_values import find_part, list_parts
from app.estimator.models.lookup import list_models
from app.markup.checked_figures import (
    FIGURE_LINK,
    KEEP_PLAIN,
    SVG_FIGURE,
    compare_figure_with_value,
    compute_linked_figure,
    parse_figure_link,
)
from app.markup.expressions import FigureError
from app.markup.problems import ContentProblem, ProblemLocation, TextPosition, make_problem
from app.markup.quantities import UNITS, format_unit_dimension, parse_quantity

_MOST_AMOUNTS = 1_000  # per file
_MOST_COUNTS = 6  # numbers of a sentence that may be the number of parts
_MOST_PARTS = 12  # named parts that an amount is compared with
_CHECKED_BASE_UNITS = ("B", "B/s", "FLOP", "FLOP/s", "W", "Wh", "USD", "USD/h", "USD/month", "s")
_AMOUNT_UNITS = sorted(
    {
        *(
            u
            for u in UNITS
            if format_unit_dimension(u) in _CHECKED_BASE_UNITS and u not in {"B", "s", "h"}
        ),
        *(f"{letter}FLOPS" for letter in "GTPE"),
    },
    key=len,
    reverse=True,
)
_AMOUNT_PATTERN = re.compile(
    r"(?<![\w.,/-])(?P<amount>\d(?:[\d,]*\d)?(?:\.\d+)?[ \u00a0]"
    rf"(?:{'|'.join(map(re.escape, _AMOUNT_UNITS))}))"
    rf"(?![\w/²³^-])(?P<plain>[^\S\n]?{re.escape(KEEP_PLAIN)})?"
)
_TITLE_TEXT = re.compile(r"^title: *(.*)$|<title[^<>]*>([^<]*)<", re.MULTILINE)
_SECTION_START = re.compile(r"^(?=#{1,6} )", re.MULTILINE)
_SENTENCE_BREAK = re.compile(
    r"(?<=[.!?:;])\s+(?=[\w\[(“\"*])|\n\s*\n|\n(?=\s*(?:[-*|>#]|\d+\. ))"
    r"|(?=<(?:text|desc|title)\b)"
)
_NUMBER_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBER_BY_WORD = {word: number for number, word in enumerate(_NUMBER_WORDS, 2)}
_NUMBER_BY_WORD |= {"twelve": 12, "sixteen": 16}
_NUMBER_BY_WORD |= {f"{ten}ty": 10 * n for n, ten in enumerate(("twen", "thir", "for", "fif"), 2)}
_COUNT_WORD = re.compile(
    r"(?<![\w.,])(?:[1-9]\d{0,4}(?![\w.,%])|[a-z]{3,7}\b)(?! (?:times|A|V)\b)", re.IGNORECASE
)
_DOUBLING_WORD = re.compile(r"\bboth\b|\bsparsity\b")
# not added up in texts
_FIELDS_OF_ONE_PART = frozenset({"capacity", "driver_memory", "engine_memory"})
_FORMAT_PATTERNS = {
    "bf16": re.compile(r"\bBF16|\bFP16|\b16[- ]bit"),
    "fp8": re.compile(r"\bFP8|\bINT8|\b8[- ]bit"),
    "int4": re.compile(r"\bINT4|\b4[- ]bit"),
}


@dataclasses.dataclass(frozen=True, slots=True)
class PlainAmount:
    """An amount in authored text that no figure computes.

    `equal_figure_target` is the figure with this value, of a part or model that is named beside it;
    empty if there is none.
    """

    text: str
    line: int
    column: int
    equal_figure_target: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class EstimatedAmount:
    """An amount that is shown as a figure, and the estimate that it is computed by."""

    amount: str
    estimate_target: str


@dataclasses.dataclass(frozen=True, slots=True)
class FileAmounts:
    """The amounts of one file: plain ones, and estimates."""

    plain_amounts: tuple[PlainAmount, ...] = ()
    shown_estimates: tuple[EstimatedAmount, ...] = ()


NO_AMOUNTS = FileAmounts()


def check_plain_amounts(amounts_by_path: Mapping[str, FileAmounts]) -> Iterator[ContentProblem]:
    """Report W98: plain amounts that could be computed.

    An amount is also compared with the estimates that its topic shows as figures.
    """
    estimates: dict[str, dict[str, str]] = {}
    for path, amounts in amounts_by_path.items():
        topic_estimates = estimates.setdefault(_find_topic_folder(path), {})
        for estimate in amounts.shown_estimates:
            topic_estimates.setdefault(estimate.amount, estimate.estimate_target)
    for path, amounts in amounts_by_path.items():
        topic_estimates = estimates[_find_topic_folder(path)]
        for amount in amounts.plain_amounts:
            target = amount.equal_figure_target or topic_estimates.get(
                _normalize_amount(amount.text), ""
            )
            if target:
                yield _build_plain_amount_problem(path, amount, target)


def _find_topic_folder(path: str) -> str:
    return path.rpartition("/")[0]


def _build_plain_amount_problem(
    path: str, amount: PlainAmount, equal_target: str
) -> ContentProblem:
    message = f"“{amount.text}” is the value of {equal_target} and would stay when that changes."
    hint = f"Write [{amount.text}]({equal_target}); if it is history or a quotation, "
    if path.endswith(".svg"):
        figure = f'<tspan data-figure="{equal_target.replace("&", "&amp;")}">{amount.text}</tspan>'
        hint = f"Write {figure}; if it is history or a quotation, "
    hint += f"{amount.text}{KEEP_PLAIN}."
    return make_problem(ProblemLocation(path, amount.line, amount.column), "W98", message, hint)


def find_amounts_in_source(text: str) -> FileAmounts:
    """Return the amounts in the source of a page, of items, of a glossary or a drawing.

    >>> find_amounts_in_source("An H100 draws 700 W.").plain_amounts
    (PlainAmount(text='700 W', line=1, column=15, equal_figure_target='hw:h100-sxm5-80#tdp'),)
    """
    title = _TITLE_TEXT.search(text)
    title_hardware = (
        _find_mentioned_hardware_ids(" ".join(filter(None, title.groups()))) if title else ()
    )
    prose = _mask_front_matter_fences_and_comments(text)
    unlinked = SVG_FIGURE.sub(
        _replace_match_by_spaces, FIGURE_LINK.sub(_replace_match_by_spaces, prose)
    )
    plain_amounts: list[PlainAmount] = []
    for start, end in _iterate_spans_between_matches(_SECTION_START, unlinked, 0, len(unlinked)):
        section = _Section(unlinked[start:end], title_hardware)
        for first, last in _iterate_spans_between_matches(_SENTENCE_BREAK, unlinked, start, end):
            plain_amounts += _find_plain_amounts(section, text, first, unlinked[first:last])
            if len(plain_amounts) > _MOST_AMOUNTS:
                return NO_AMOUNTS
    return FileAmounts(tuple(plain_amounts), tuple(_find_estimated_amounts(prose)))


@dataclasses.dataclass
class _Section:
    """A section or item: its text, the parts of the title, and the parts it names."""

    source_text: str
    hardware_ids_in_title: tuple[str, ...]

    @functools.cached_property
    def mentioned_hardware_ids(self) -> tuple[str, ...]:
        return _find_mentioned_hardware_ids(self.source_text)


def _mask_front_matter_fences_and_comments(text: str) -> str:
    """Return the text with spaces in place of front matter, code and comments."""
    lines = text.split("\n")
    closing_mark = "---" if lines[0] == "---" else ""
    for number, line in enumerate(lines):
        start = line.lstrip(" ")[:3]
        if closing_mark:
            closing_mark = "" if number and line.strip() == closing_mark else closing_mark
            lines[number] = " " * len(line)
        elif start in {"```", "~~~"} and "figure" not in line:
            closing_mark = start
            lines[number] = " " * len(line)
    text = "\n".join(lines)
    pieces, at = [], 0
    while (comment_start := text.find("<!--", at)) >= 0 and (
        comment_end := text.find("-->", comment_start + 4)
    ) >= 0:
        comment = text[comment_start : comment_end + 3]
        shown_comment = comment if comment == KEEP_PLAIN else _replace_by_spaces(comment)
        pieces += [text[at:comment_start], shown_comment]
        at = comment_end + 3
    return "".join([*pieces, text[at:]])


def _replace_match_by_spaces(match: re.Match[str]) -> str:
    return _replace_by_spaces(match[0])


def _replace_by_spaces(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _iterate_spans_between_matches(
    pattern: re.Pattern[str], text: str, start: int, end: int
) -> Iterator[tuple[int, int]]:
    for match in pattern.finditer(text, start, end):
        if match.start() > start:
            yield start, match.start()
        start = match.end()
    yield start, end


def _locate_offset(text: str, offset: int) -> TextPosition:
    line = text.count("\n", 0, offset) + 1
    return TextPosition(line, offset - text.rfind("\n", 0, offset))


def _find_estimated_amounts(prose: str) -> Iterator[EstimatedAmount]:
    for match in itertools.chain(FIGURE_LINK.finditer(prose), SVG_FIGURE.finditer(prose)):
        amount = _AMOUNT_PATTERN.search(match["text"])
        if amount and match["target"].startswith("calc:"):
            yield EstimatedAmount(_normalize_amount(amount["amount"]), unescape(match["target"]))


def _normalize_amount(amount: str) -> str:
    return amount.replace("\u00a0", " ").replace(",", "")


def _find_plain_amounts(
    section: _Section, text: str, start: int, sentence: str
) -> Iterator[PlainAmount]:
    matches = [m for m in _AMOUNT_PATTERN.finditer(sentence) if not m["plain"]]
    if not matches:
        return
    contexts = (
        _find_mentioned_hardware_ids(sentence),
        section.mentioned_hardware_ids,
        section.hardware_ids_in_title,
    )
    counts = _list_possible_multipliers(sentence)
    for match in matches:
        amount = match["amount"]
        target = _find_target_of_equal_catalog_value(amount, contexts, counts)
        target = target or _find_target_of_equal_weights_estimate(amount, section.source_text)
        yield PlainAmount(amount, *_locate_offset(text, start + match.start()), target)


def _list_possible_multipliers(sentence: str) -> list[int]:
    """Return 1 and the numbers that a sentence names besides its amounts."""
    number_words = _COUNT_WORD.findall(_AMOUNT_PATTERN.sub(" ", sentence))
    numbers = [int(w) if w.isdigit() else _NUMBER_BY_WORD.get(w.lower(), 1) for w in number_words]
    doubled = [2] if _DOUBLING_WORD.search(sentence) else []
    return list(dict.fromkeys([1, *doubled, *numbers]))[:_MOST_COUNTS]


def _find_target_of_equal_catalog_value(
    amount: str, hardware_ids_by_context: Iterable[Sequence[str]], multipliers: Sequence[int]
) -> str:
    """Return the catalog value that equals an amount, of a part that the nearest context names.

    Empty if there is none.
    """
    quantity = parse_quantity(amount.replace("\u00a0", " "))
    if quantity is None or not quantity.unit or not quantity.value:
        return ""
    factor, kind = UNITS[quantity.unit].base_units_per_unit, format_unit_dimension(quantity.unit)
    digits = re.match(r"[\d,.]+", amount)
    decimals = len(digits[0].partition(".")[2]) if digits else 0
    low = (quantity.value - 0.5000001 * 10.0**-decimals) * factor
    high = (quantity.value + 0.5000001 * 10.0**-decimals) * factor
    for parts in hardware_ids_by_context:
        for count in multipliers:
            for part in parts[:_MOST_PARTS]:
                for field, value in _list_part_values(part, kind):
                    if low <= count * value <= high and (
                        count == 1 or field not in _FIELDS_OF_ONE_PART
                    ):
                        count_query = f"?count={count}" if count > 1 else ""
                        return f"hw:{part}{count_query}#{field}"
    return ""


def _find_target_of_equal_weights_estimate(amount: str, section: str) -> str:
    """Return the estimate of a named model's weights in a named format, if it equals the amount."""
    if not amount.endswith("GB"):
        return ""
    for name in (model.id for model in list_models() if model.name in section):
        for weights, pattern in _FORMAT_PATTERNS.items():
            target = f"calc:weights?model={name}&weights={weights}#total"
            if pattern.search(section) and _equals_target_value(amount, target):
                return target
    return ""


@functools.lru_cache(maxsize=4096)
def _equals_target_value(amount: str, target: str) -> bool:
    link = parse_figure_link(target)
    try:
        value = compute_linked_figure(link).value if link else None
    except FigureError:
        return False
    return value is not None and compare_figure_with_value(amount, value).is_equal


@functools.cache
def _load_hardware_ids_by_name() -> Mapping[str, tuple[str, ...]]:
    """Return the parts by the names that texts use for them."""
    ids: dict[str, list[str]] = {}
    for part in list_parts():
        full_name = re.sub(r" \([^)]*\)", "", part.name)
        short_name = re.sub(r" \d+ ?GB\b.*$| (?:DPU|SuperNIC|8-GPU|4x|x16)\b.*$", "", full_name)
        names = {full_name, short_name, *part.aliases}
        makers = r"^(?:InfiniBand|GeForce|Instinct|Quantum\S*|Spectrum\S*|PCIe) "
        names |= {re.sub(makers, "", name) for name in names}
        names |= {re.sub(r"SXM[45]", "SXM", name) for name in names}
        for name in names:
            if re.match(r"[A-Z].", name):
                ids.setdefault(name, []).append(part.id)
    return {name: tuple(parts) for name, parts in ids.items()}


@functools.cache
def _compile_part_name_pattern() -> re.Pattern[str]:
    names = sorted(_load_hardware_ids_by_name(), key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, names))})(?=s?(?![\w-]))")


def _find_mentioned_hardware_ids(text: str) -> tuple[str, ...]:
    """Return the parts that a text names, and last what the named servers consist of."""
    names = dict.fromkeys(_compile_part_name_pattern().findall(text))
    parts = [id_ for name in names for id_ in _load_hardware_ids_by_name()[name]]
    entries = [part.catalog_entry for id_ in parts if (part := find_part(id_))]
    accelerators = [getattr(entry, "accelerator", "") for entry in entries]
    return tuple(dict.fromkeys(filter(None, [*parts, *accelerators])))


class ValueInBaseUnit(NamedTuple):
    field: str
    value: float


@functools.cache
def _list_part_values(part_id: str, quantity_kind: str) -> tuple[ValueInBaseUnit, ...]:
    """Return the numeric values of a part that measure the same."""
    entry = find_part(part_id)
    if entry is None:
        return ()
    values = [
        ValueInBaseUnit(v.name, float(v.number))
        for v in entry.values
        if v.field.unit
        and format_unit_dimension(v.field.unit) == quantity_kind
        and isinstance(v.number, int | float)
    ]
    both_ways = (
        getattr(entry.catalog_entry, "nvlink_both_ways", None) if quantity_kind == "B/s" else None
    )
    if both_ways:
        values.append(ValueInBaseUnit("nvlink_both_ways", both_ways))
    return tuple(values)
