"""Read and write course items as Markdown."""

import dataclasses
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from markdown_it.token import Token

from app.content.front_matter import FileKind, FrontMatter, parse_front_matter
from app.content.item_reader import ParsedItem, build_item
from app.content.item_splitter import Region, split_into_regions
from app.import_export.html_to_markdown import join_into_one_line
from app.import_export.items import (
    BLANK_CHARACTER,
    ImportResult,
    Item,
    ItemBlank,
    ItemOption,
    ItemPair,
    ItemRemark,
    ItemSkippedError,
    Kind,
    NumberRange,
    append_number_until_unused,
    are_options_true_and_false,
    format_significant_digits,
    map_item_texts,
)
from app.import_export.markdown_text import escape_line_start, escape_markdown, write_code_span
from app.import_export.markdown_to_html import convert_tokens_to_markdown
from app.import_export.text_conversion import make_range_around
from app.markup import expressions
from app.markup.expressions import ExpressionError, Value
from app.markup.html_renderer import RenderContext
from app.markup.lenient_yaml import YamlMapping
from app.markup.markdown_tokens import find_closing_index
from app.markup.model import Flashcard
from app.markup.problems import ParseContext
from app.markup.quantities import UNITS
from app.markup.text import slugify
from app.questions import model, types
from app.questions.lab_session import Lab, find_shortest_solution
from app.questions.model import Question
from app.questions.option_parsing import (
    ParsedOption,
    format_checkbox_of_wrong_option,
    sole_code_span_or_none,
)
from app.questions.question_type import ItemComment, ItemParts, ItemSource
from app.questions.types.lab import LabSpec
from app.questions.types.matching import read_table_cells
from app.questions.types.number_parsing import AnswerRange, NumericSpec
from app.questions.types.numeric import fill_in_computed_ranges
from app.questions.types.place import split_region_id_and_label

_KIND_BY_FILE_NAME: dict[str, FileKind] = {
    "concept.md": "page",
    "quiz.md": "quiz",
    "cards.md": "cards",
}
_COMPUTED_KEYS = ("params", "let")
# What other formats show of these types, as single choices.
_LOSS_OF_TYPE = {
    "place": "its drawing is not exported; it asks for the label of a part",
    "console": "its terminal is not exported; the transcript of the way to the goal is",
}
_ONE_DRAW = "its numbers were drawn once; the parameters are not exported"


def read_items_of_course_file(text: str, path: str, seed: int = 0) -> ImportResult:
    """Return the items of one file; computed ones as the variant that `seed` draws.

    `path` is relative to the content folder. Items that the course check refuses are refused here
    too, and so are design exercises, because no other program can grade them.
    """
    source = ParseContext(path, text.replace("\r\n", "\n").removeprefix("\ufeff"))
    front, body = parse_front_matter(source)
    items: list[Item] = []
    refused: list[ItemRemark] = []
    drafts = split_into_regions(body, source)
    # Building an item consumes its tokens, and a computed one is built twice.
    draft_copies = (
        split_into_regions(body, source) if any(map(_is_computed_item, drafts)) else drafts
    )
    for draft, draft_copy in zip(drafts, draft_copies, strict=True):
        if not isinstance(draft, ItemSource) or not isinstance(draft_copy, ItemSource):
            continue
        name, line = draft.comment.id or "(no id)", draft.line
        try:
            item = _convert_item_source(draft, draft_copy, front, source, seed)
        except ItemSkippedError as error:
            refused.append(ItemRemark(name, line, str(error), path))
            continue
        lost = (_ONE_DRAW,) if _is_computed_item(draft) else ()
        items.append(dataclasses.replace(item, lost=(*lost, *item.lost), path=path))
    return ImportResult(tuple(items), tuple(refused))


def _convert_item_source(
    item_source: ItemSource,
    item_source_copy: ItemSource,
    front_matter: FrontMatter,
    parse_context: ParseContext,
    seed: int,
) -> Item:
    parts = parse_context.path.split("/")
    kind = _KIND_BY_FILE_NAME.get(parts[-1], "quiz")
    scope = RenderContext(parse_context, topic_folder=parts[-2] if len(parts) > 1 else "")
    built = build_item(item_source, kind, front_matter, scope)
    if built is None:
        raise ItemSkippedError("the check refuses it")
    values: Mapping[str, Value] = {}
    question = built.item
    if isinstance(question, Question) and question.computed:
        values = _draw_values_for_seed(question, seed)
        plain = dataclasses.replace(
            item_source_copy, comment=_remove_computed_keys_of_comment(item_source_copy)
        )
        built = build_item(plain, kind, front_matter, scope) or built
    item = _convert_parsed_item(built, question, values)
    if not values:
        return item
    return map_item_texts(
        item, lambda text: expressions.fill_placeholders(text, values), include_answers=True
    )


def _is_computed_item(region: Region) -> bool:
    if not isinstance(region, ItemSource):
        return False
    return bool(set(_COMPUTED_KEYS) & set(region.comment.fields.values))


def _draw_values_for_seed(question: Question, seed: int) -> Mapping[str, Value]:
    computed = question.computed
    if computed is None:
        return {}
    try:
        return model.evaluate_combination(computed, model.build_nth_combination(computed, seed))
    except (ExpressionError, ArithmeticError) as error:
        raise ItemSkippedError(f"its numbers cannot be drawn: {error}") from None


def _remove_computed_keys_of_comment(item_source: ItemSource) -> ItemComment:
    fields = item_source.comment.fields
    values = {k: v for k, v in fields.values.items() if k not in _COMPUTED_KEYS}
    keys = {k: v for k, v in fields.keys.items() if k not in _COMPUTED_KEYS}
    mapped = YamlMapping(values, keys, fields.line, fields.column)
    return dataclasses.replace(item_source.comment, fields=mapped)


# --- from a parsed item to a neutral one ---


def _convert_parsed_item(
    parsed_item: ParsedItem, question: Question | Flashcard, drawn_values: Mapping[str, Value]
) -> Item:
    draft, parts = parsed_item.authored.source, parsed_item.authored.parts
    heading = convert_tokens_to_markdown([draft.heading])
    item = Item(
        question.id,
        "card",
        heading,
        objectives=question.objectives,
        sources=question.sources,
        tags=question.tags,
        level=question.level,
        line=draft.line,
    )
    if isinstance(question, Flashcard):
        back = convert_tokens_to_markdown([t for t in draft.body if t.type != "hr"])
        reverse = draft.comment.field_text("reverse").lower() in {"yes", "true"}
        return dataclasses.replace(item, text=back, reverse=reverse)
    # The text between the heading and the answers, unless it is the answer.
    is_answer = types.question_type_of(question).gap_pattern
    body = (
        "" if is_answer else convert_tokens_to_markdown([t for t in parts.stem if t.type != "hr"])
    )
    if isinstance(question.answer, LabSpec):
        body = f"{body}\n\n{_write_solution_transcript(question.answer.lab)}".strip()
    loss = _LOSS_OF_TYPE.get(question.type)
    return dataclasses.replace(
        item,
        kind="single" if loss else cast(Kind, question.type),
        stem="\n\n".join(p for p in (heading, body) if p),
        hints=tuple(convert_tokens_to_markdown(h) for h in parts.hints),
        explanation=convert_tokens_to_markdown(parts.explanation),
        mistake=convert_tokens_to_markdown(parts.mistake),
        partial=question.partial,
        difficulty=question.difficulty,
        use=question.use,
        lost=(loss,) if loss else (),
        **_read_answer_fields(parts, question, drawn_values),
    )


def _read_answer_fields(  # noqa: PLR0911 - one return per type
    parts: ItemParts, question: Question, drawn_values: Mapping[str, Value]
) -> dict[str, Any]:
    """Return the fields of an item that hold its answer; raises ItemSkippedError."""
    answer = question.answer
    match question.type:
        case "single" | "multiple" | "true-false":
            shuffle = bool(getattr(answer, "shuffle", True))
            return {"options": _read_choice_options(parts), "shuffle": shuffle}
        case "numeric":
            return {"options": _read_number_options(parts.options, answer, drawn_values)}
        case "short":
            texts = [(sole_code_span_or_none(o) or o.plain_text).strip() for o in parts.options]
            case = bool(getattr(answer, "case_sensitive", False))
            return {"options": _read_choice_options(parts, texts), "case": case}
        case "order":
            return {
                "steps": _read_step_options(parts.answer_block),
                "options": _read_choice_options(parts),
            }
        case "match":
            return _read_pair_table(parts.answer_block)
        case "cloze":
            blanks = getattr(answer, "blanks", ())
            gaps = tuple(ItemBlank(b.answers, b.hint, b.wrong) for b in blanks)
            return {"text": convert_tokens_to_markdown(parts.stem), "blanks": gaps}
        case "console":
            return {"options": _read_choice_options(parts)}
        case "place":
            labels = [
                convert_tokens_to_markdown([split_region_id_and_label(o)[1]]) for o in parts.options
            ]
            return {"options": _read_choice_options(parts, labels), "shuffle": False}
    raise ItemSkippedError("no other program can judge a design exercise")


def _write_solution_transcript(lab: Lab) -> str:
    """Return the shortest way to the goal of a lab as a code block."""
    commands = [lab.commands[index] for index in find_shortest_solution(lab) or ()]
    lines = [f"$ {c.sample_line_without_prompt}\n{c.output.plain}".rstrip() for c in commands]
    return "\n".join(["```", *lines, "```"])


def _read_choice_options(parts: ItemParts, texts: Sequence[str] = ()) -> tuple[ItemOption, ...]:
    """Return the options with their own texts, or with `texts`."""
    texts = texts or [convert_tokens_to_markdown([o.text_token]) for o in parts.options]
    return tuple(
        ItemOption(text, o.ticked, convert_tokens_to_markdown(o.feedback), credit=o.credit)
        for text, o in zip(texts, parts.options, strict=True)
    )


def _read_number_options(
    options: Sequence[ParsedOption], answer: object, drawn_values: Mapping[str, Value]
) -> tuple[ItemOption, ...]:
    if not isinstance(answer, NumericSpec):
        return ()
    if drawn_values:
        try:
            answer = fill_in_computed_ranges(answer, drawn_values)
        except ExpressionError as error:
            raise ItemSkippedError(f"its numbers cannot be drawn: {error}") from None
    ordered = sorted(options, key=lambda o: not o.ticked)
    if len(ordered) != len(answer.options):
        raise ItemSkippedError("one of its numbers cannot be read")
    return tuple(
        ItemOption(
            "",
            w.ticked,
            convert_tokens_to_markdown(w.feedback),
            _convert_range_from_base_units(o.range),
            w.credit,
        )
        for w, o in zip(ordered, answer.options, strict=True)
        if o.range is not None
    )


def _convert_range_from_base_units(accepted: AnswerRange) -> NumberRange:
    factor = UNITS[accepted.unit].base_units_per_unit
    center, low, high = (
        float(f"{bound / factor:.12g}") for bound in (accepted.center, accepted.low, accepted.high)
    )
    span = NumberRange(center, low, high, accepted.unit)
    # Bounds this close come from rounding, so the range has no tolerance.
    return span if span.tolerance else make_range_around(center, 0.0, accepted.unit)


def _read_step_options(tokens: Sequence[Token]) -> tuple[ItemOption, ...]:
    steps = []
    position = 1
    while position < len(tokens) - 1:
        end = find_closing_index(tokens, position)
        step_tokens = list(tokens[position + 1 : end])
        quote = next(
            (i for i, t in enumerate(step_tokens) if t.type == "blockquote_open"), len(step_tokens)
        )
        feedback = convert_tokens_to_markdown(step_tokens[quote + 1 : -1])
        steps.append(ItemOption(convert_tokens_to_markdown(step_tokens[:quote]), True, feedback))
        position = end + 1
    return tuple(steps)


def _read_pair_table(table: list[Token]) -> dict[str, Any]:
    cells = [
        [convert_tokens_to_markdown(c) for c in row] + [""] * 3 for row in read_table_cells(table)
    ]
    if not cells:
        raise ItemSkippedError("it has no table")
    header, *rows = cells
    return {"titles": (header[0], header[1]), "pairs": tuple(ItemPair(*r[:3]) for r in rows)}


_LONGEST_ID = 48
_UNQUOTABLE_CHARACTERS = re.compile(r"[\"\\\s]+|--+>?")
_OPTION_LINE_START = re.compile(r"^- \[", re.MULTILINE)
_LIKE_TYPED = re.compile(r"`|[-+−]?\s?[\d.$€£¥]")  # without a type, it might be typed
_BLOCK_START = re.compile(r"(?:`{3}|\| |> |- |\d+\. |\$\$)")


def write_item_as_markdown(item: Item, item_id: str) -> str:
    """Return one item as Markdown with this id: heading, comment, answers, alerts."""
    heading, _, rest = ensure_heading_paragraph(item).stem.partition("\n\n")
    heading = re.sub(r"(?:(?<=\s)|^)(#+)$", r"\\\1", join_into_one_line(heading))
    comment = "\n".join([f"<!-- q: {item_id}", *_write_item_fields(item)])
    comment += "\n-->" if "\n" in comment else " -->"
    parts = [
        f"### {heading}\n{comment}",
        rest,
        *_mark_options_with_stars_after_list(rest, _write_answers(item)),
    ]
    parts += [_write_alert("TIP", hint) for hint in item.hints]
    parts += [_write_alert("NOTE", item.explanation), _write_alert("CAUTION", item.mistake)]
    return "\n\n".join(p for p in parts if p) + "\n"


def ensure_heading_paragraph(item: Item) -> Item:
    """Return the item with a first paragraph that can be a heading: its name, if needed."""
    if item.stem and not _BLOCK_START.match(item.stem):
        return item
    name = " ".join(item.name.split()) or "Question"
    stem = f"{escape_line_start(escape_markdown(name))}\n\n{item.stem}".strip()
    return dataclasses.replace(item, stem=stem)


def choose_unused_item_id(item: Item, taken_ids: Collection[str]) -> str:
    """Return an unused id from the item's name or its first words."""
    base = slugify(item.name) or slugify(item.stem) or "question"
    if len(base) > _LONGEST_ID:
        base = base[:_LONGEST_ID].rpartition("-")[0] or base[:_LONGEST_ID]
    return append_number_until_unused(base, taken_ids)


def _write_item_fields(item: Item) -> list[str]:
    """Return the lines of the comment below the id, without default values."""
    rows = (
        ("type", item.kind if _needs_explicit_type(item) else ""),
        ("objective", _write_yaml_list(item.objectives)),
        ("source", _write_yaml_list(item.sources)),
        ("tags", _write_yaml_list(item.tags)),
        ("difficulty", str(item.difficulty) if item.difficulty != 3 else ""),
        ("level", item.level),
        ("use", item.use),
        ("partial", item.partial),
        ("shuffle", "" if item.shuffle or item.kind == "true-false" else "no"),
        ("case", "yes" if item.case else ""),
        ("reverse", "yes" if item.reverse else ""),
    )
    lines = [f"{key}: {value}" for key, value in rows if value]
    if item.params:
        lines += ["params:", *(f"  {name}: [{', '.join(v)}]" for name, v in item.params)]
    if item.lets:
        lines += ["let:", *(f"  {name}: {text}" for name, text in item.lets)]
    return lines


def _needs_explicit_type(item: Item) -> bool:
    """Return whether the answers of an item would be read as another type without its own."""
    if item.kind not in {"single", "multiple", "true-false"}:
        return True
    if item.kind == "multiple" and sum(o.right for o in item.options) == 1:
        return True
    if item.kind == "single" and are_options_true_and_false(item.options):
        return True
    look_typed = bool(item.options) and all(_LIKE_TYPED.match(o.text) for o in item.options)
    return look_typed and item.kind != "true-false"


def _write_yaml_list(values: tuple[str, ...]) -> str:
    quoted = [
        v
        if re.fullmatch(r"[\w.][\w. /+-]*", v)
        else f'"{_UNQUOTABLE_CHARACTERS.sub(" ", v).strip()}"'
        for v in values
    ]
    if len(quoted) < 2:
        return "".join(quoted)
    return f"[{', '.join(quoted)}]"


def _write_answers(item: Item) -> list[str]:
    if item.kind == "order":
        steps = [_write_option_after_prefix(f"{n}. ", s) for n, s in enumerate(item.steps, 1)]
        return ["\n".join(steps), "\n".join(map(_write_option_with_checkbox, item.options))]
    if item.kind == "match":
        return [_write_pair_table(item.titles, item.pairs)]
    if item.kind == "cloze":
        return [write_blanks_into_text(item.text, item.blanks)]
    if item.kind == "card":
        return [item.text]
    options = item.options
    if item.kind == "short":
        options = tuple(dataclasses.replace(o, text=write_code_span(o.text)) for o in options)
    return ["\n".join(map(_write_option_with_checkbox, options))]


def _mark_options_with_stars_after_list(stem: str, answers: list[str]) -> list[str]:
    """Separate options with stars from a stem that ends in a list, which would absorb them."""
    lines = [line for line in stem.split("\n") if line and not line.startswith(" ")]
    if not answers or not lines or not lines[-1].startswith("- "):
        return answers
    return [_OPTION_LINE_START.sub("* [", answers[0]), *answers[1:]]


def _write_option_with_checkbox(option: ItemOption) -> str:
    box = "[x]" if option.right else format_checkbox_of_wrong_option(option.credit)
    return _write_option_after_prefix(f"- {box} ", option)


def _write_option_after_prefix(prefix: str, option: ItemOption) -> str:
    text = (
        write_code_span(format_range_as_authored(option.span))
        if option.span is not None
        else join_into_one_line(option.text)
    )
    lines = [prefix + text]
    indent = "  " if prefix.startswith("-") else " " * len(prefix)
    feedback = option.feedback.split("\n") if option.feedback else ()
    lines += [f"{indent}> {line}".rstrip() for line in feedback]
    return "\n".join(lines)


def format_range_as_authored(number_range: NumberRange) -> str:
    """Return the range as it is authored: `140 GB ± 4.2`."""
    unit = f" {number_range.unit}" if number_range.unit else ""
    center = f"{format_significant_digits(number_range.center)}{unit}"
    if not number_range.tolerance and number_range.center == int(number_range.center):
        return center
    return f"{center} ± {format_significant_digits(number_range.tolerance)}"


def _write_pair_table(column_titles: tuple[str, str], pairs: tuple[ItemPair, ...]) -> str:
    rows = [[column_titles[0] or "Item", column_titles[1] or "Match", "Why"], ["---"] * 3]
    rows += [list(map(join_into_one_line, (p.left, p.right, p.why))) for p in pairs]
    columns = 3 if any(p.why for p in pairs) else 2
    return "\n".join("| " + " | ".join(row[:columns]) + " |" for row in rows)


def write_blanks_into_text(text: str, blanks: tuple[ItemBlank, ...]) -> str:
    """Return the text of a cloze with its blanks as they are authored."""
    pieces = text.split(BLANK_CHARACTER)
    out = pieces[0]
    for blank, piece in zip(blanks, pieces[1:], strict=False):
        hint = f" ?{escape_markdown(blank.hint)}" if blank.hint else ""
        answers = "|".join(map(escape_markdown, blank.answers))
        wrong = "".join(f" ~ {escape_markdown(word)}" for word in blank.wrong)
        out += f"[[{answers}{wrong}{hint}]]{piece}"
    return out


def _write_alert(alert_type: str, text: str) -> str:
    if not text:
        return ""
    lines = [f"> [!{alert_type}]", *(f"> {line}".rstrip() for line in text.split("\n"))]
    return "\n".join(lines)
