"""Read and write course items as Markdown."""

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from markdown_it.token import Token

from app.content.front_matter import FileKind, FrontMatter, front_matter
from app.content.item_reader import ParsedItem, Region, build, split_into_items
from app.import_export.converted_text import span_around
from app.import_export.html_to_markdown import one_line
from app.import_export.items import (
    BLANK,
    ImportResult,
    Item,
    ItemBlank,
    ItemOption,
    ItemPair,
    ItemRemark,
    ItemSkippedError,
    Kind,
    NumberRange,
    shown,
)
from app.import_export.markdown_text import code_span, escaped, line_escaped
from app.import_export.markdown_to_html import markdown_of
from app.markup import expressions
from app.markup.expressions import ExpressionError, Value
from app.markup.html_renderer import RenderContext
from app.markup.ids import slug
from app.markup.markdown_tokens import closing_index
from app.markup.model import Flashcard
from app.markup.problems import SourceFile
from app.markup.quantities import UNITS
from app.markup.strict_yaml import YamlMapping
from app.questions import types, variants
from app.questions.model import Question
from app.questions.options import ParsedOption, box_of, code_of
from app.questions.question_type import ItemComment, ItemDraft, ItemParts
from app.questions.types.hotspot import label_of
from app.questions.types.matching import rows_of
from app.questions.types.number_parsing import AcceptedRange, NumericAnswer
from app.questions.types.numeric import ranged

_KINDS: dict[str, FileKind] = {
    "concept.md": "page",
    "quiz.md": "quiz",
    "cards.md": "cards",
}
Fields = dict[str, Any]
_COMPUTED = ("params", "let")
# The type that other formats use instead, and what is lost.
_INSTEAD: dict[str, tuple[Kind, str]] = {
    "place": ("single", "its drawing is not carried; it asks for the label of a part"),
}
_ONE_DRAW = "its numbers were drawn once; the parameters are not carried"


def read_authored(text: str, path: str, seed: int = 0) -> ImportResult:
    """Return the items of one file; computed ones as the variant that `seed` draws.

    `path` is relative to the content folder. Items that the course check refuses are refused here
    too, and so are design exercises, because no other program can grade them.
    """
    sheet = SourceFile(path, text.replace("\r\n", "\n").removeprefix("\ufeff"))
    front, body = front_matter(sheet)
    items: list[Item] = []
    refused: list[ItemRemark] = []
    drafts = split_into_items(body, sheet)
    # Building an item consumes its tokens, and a computed one is built twice.
    others = split_into_items(body, sheet) if any(map(_computed, drafts)) else drafts
    for first, second in zip(drafts, others, strict=True):
        if not isinstance(first, ItemDraft) or not isinstance(second, ItemDraft):
            continue
        name, line = first.comment.id or "(no id)", first.line
        try:
            item = _item((first, second), front, sheet, seed)
        except ItemSkippedError as error:
            refused.append(ItemRemark(name, line, str(error)))
            continue
        lost: tuple[str, ...] = (_ONE_DRAW,) if _computed(first) else ()
        instead = _INSTEAD.get(first.comment.word("type"))
        lost += (instead[1],) if instead else ()
        items.append(dataclasses.replace(item, lost=lost))
    return ImportResult(tuple(items), tuple(refused))


def _item(
    drafts: tuple[ItemDraft, ItemDraft], front: FrontMatter, sheet: SourceFile, seed: int
) -> Item:
    first, second = drafts
    parts = sheet.path.split("/")
    kind = _KINDS.get(parts[-1], "quiz")
    scope = RenderContext(sheet, folder=parts[-2] if len(parts) > 1 else "")
    built = build(first, kind, front, scope)
    if built is None:
        raise ItemSkippedError("the check refuses it")
    values: Mapping[str, Value] = {}
    question = built.item
    if isinstance(question, Question) and question.computed:
        values = _drawn(question, seed)
        plain = dataclasses.replace(second, comment=_uncomputed(second))
        built = build(plain, kind, front, scope) or built
    made = _converted(built, question, values)
    return _filled(made, values) if values else made


def _computed(region: Region) -> bool:
    """Return whether a region of a file is a computed item."""
    if not isinstance(region, ItemDraft):
        return False
    return bool(set(_COMPUTED) & set(region.comment.fields.values))


def _drawn(question: Question, seed: int) -> Mapping[str, Value]:
    computed = question.computed
    if computed is None:
        return {}
    try:
        return variants.resolve(computed, variants.combination(computed, seed))
    except (ExpressionError, ArithmeticError) as error:
        raise ItemSkippedError(f"its numbers cannot be drawn: {error}") from None


def _uncomputed(draft: ItemDraft) -> ItemComment:
    fields = draft.comment.fields
    kept = {k: v for k, v in fields.values.items() if k not in _COMPUTED}
    keys = {k: v for k, v in fields.keys.items() if k not in _COMPUTED}
    mapped = YamlMapping(kept, keys, fields.line, fields.column)
    return dataclasses.replace(draft.comment, fields=mapped)


# --- from a parsed item to a neutral one ---


def _converted(
    built: ParsedItem, question: Question | Flashcard, values: Mapping[str, Value]
) -> Item:
    draft, parts = built.written.draft, built.written.parts
    front = markdown_of([draft.heading])
    common = _common(question, front, draft.line)
    if isinstance(question, Flashcard):
        back = markdown_of([t for t in draft.body if t.type != "hr"])
        twice = draft.comment.word("reverse").lower() in {"yes", "true"}
        return dataclasses.replace(common, text=back, reverse=twice)
    answer = _ANSWERS.get(question.type)
    if answer is None:
        raise ItemSkippedError("no other program can judge a design exercise")
    return dataclasses.replace(
        common,
        kind=_kind_of(question),
        stem="\n\n".join(p for p in (front, _below(parts, question)) if p),
        hints=tuple(markdown_of(h) for h in parts.hints),
        explanation=markdown_of(parts.explanation),
        mistake=markdown_of(parts.mistake),
        partial=question.partial,
        difficulty=question.difficulty,
        use=question.use,
        **answer(parts, question, values),
    )


def _common(item: Question | Flashcard, front: str, line: int) -> Item:
    """Return the fields shared by questions and cards."""
    return Item(
        item.id,
        "card",
        front,
        objectives=item.objectives,
        sources=item.sources,
        tags=item.tags,
        level=item.level,
        line=line,
    )


def _below(parts: ItemParts, question: Question) -> str:
    """Return the text between the heading and the answers, unless it is the answer."""
    if types.type_of(question).blank:
        return ""
    return markdown_of([t for t in parts.stem if t.type != "hr"])


def _kind_of(question: Question) -> Kind:
    instead = _INSTEAD.get(question.type)
    return instead[0] if instead else cast(Kind, question.type)


# The answer fields of an item, by type.


def _typed_numbers(parts: ItemParts, question: Question, values: Mapping[str, Value]) -> Fields:
    return {"options": _numbers(parts.options, question.answer, values)}


def _words(parts: ItemParts, question: Question, _: Mapping[str, Value]) -> Fields:
    case = bool(getattr(question.answer, "case_sensitive", False))
    return {"options": tuple(map(_word, parts.options)), "case": case}


def _ordered(parts: ItemParts, _: Question, __: Mapping[str, Value]) -> Fields:
    wrong = tuple(map(_choice, parts.options))
    return {"steps": _steps(parts.block), "options": wrong}


def _matched(parts: ItemParts, _: Question, __: Mapping[str, Value]) -> Fields:
    titles, pairs = _pairs(parts.block)
    return {"titles": titles, "pairs": pairs}


def _gapped(parts: ItemParts, question: Question, _: Mapping[str, Value]) -> Fields:
    blanks = getattr(question.answer, "blanks", ())
    gaps = tuple(ItemBlank(b.answers, b.hint, b.wrong) for b in blanks)
    return {"text": markdown_of(parts.stem), "blanks": gaps}


def _chosen(parts: ItemParts, question: Question, _: Mapping[str, Value]) -> Fields:
    shuffle = bool(getattr(question.answer, "shuffle", True))
    return {"options": tuple(map(_choice, parts.options)), "shuffle": shuffle}


def _pointed(parts: ItemParts, _: Question, __: Mapping[str, Value]) -> Fields:
    options = tuple(
        ItemOption(markdown_of([label_of(o)[1]]), o.ticked, markdown_of(o.feedback))
        for o in parts.options
    )
    return {"options": options, "shuffle": False}


def _choice(option: ParsedOption) -> ItemOption:
    text, why = markdown_of([option.inline]), markdown_of(option.feedback)
    return ItemOption(text, option.ticked, why, credit=option.credit)


def _word(option: ParsedOption) -> ItemOption:
    word = (code_of(option) or option.words).strip()
    why = markdown_of(option.feedback)
    return ItemOption(word, option.ticked, why, credit=option.credit)


def _numbers(
    options: Sequence[ParsedOption], answer: object, values: Mapping[str, Value]
) -> tuple[ItemOption, ...]:
    """Return the numeric options in authored order."""
    if not isinstance(answer, NumericAnswer):
        return ()
    if values:
        try:
            answer = ranged(answer, values)
        except ExpressionError as error:
            raise ItemSkippedError(f"its numbers cannot be drawn: {error}") from None
    ordered = sorted(options, key=lambda o: not o.ticked)
    if len(ordered) != len(answer.options):
        raise ItemSkippedError("one of its numbers cannot be read")
    return tuple(
        ItemOption("", w.ticked, markdown_of(w.feedback), _span(o.range), w.credit)
        for w, o in zip(ordered, answer.options, strict=True)
        if o.range is not None
    )


def _span(found: AcceptedRange) -> NumberRange:
    factor = UNITS[found.unit][1]
    center, low, high = (
        float(f"{bound / factor:.12g}") for bound in (found.center, found.low, found.high)
    )
    span = NumberRange(center, low, high, found.unit)
    # Bounds this close come from rounding, so the range has no tolerance.
    return span if span.tolerance else span_around(center, 0.0, found.unit)


def _steps(tokens: Sequence[Token]) -> tuple[ItemOption, ...]:
    made = []
    at = 1
    while at < len(tokens) - 1:
        end = closing_index(tokens, at)
        inside = list(tokens[at + 1 : end])
        quote = next(
            (i for i, t in enumerate(inside) if t.type == "blockquote_open"),
            len(inside),
        )
        why = markdown_of(inside[quote + 1 : -1])
        made.append(ItemOption(markdown_of(inside[:quote]), True, why))
        at = end + 1
    return tuple(made)


def _pairs(table: list[Token]) -> tuple[tuple[str, str], tuple[ItemPair, ...]]:
    cells = [[markdown_of(c) for c in row] + [""] * 3 for row in rows_of(table)]
    if not cells:
        raise ItemSkippedError("it has no table")
    head, *rows = cells
    return (head[0], head[1]), tuple(ItemPair(r[0], r[1], r[2]) for r in rows)


def _filled(item: Item, values: Mapping[str, Value]) -> Item:
    """Return the item with the drawn numbers in all of its texts."""

    def fill(text: str) -> str:
        return expressions.fill(text, values)

    def fill_all(options: tuple[ItemOption, ...]) -> tuple[ItemOption, ...]:
        return tuple(
            dataclasses.replace(o, text=fill(o.text), feedback=fill(o.feedback)) for o in options
        )

    pairs = tuple(ItemPair(fill(p.left), fill(p.right), fill(p.why)) for p in item.pairs)
    return dataclasses.replace(
        item,
        stem=fill(item.stem),
        options=fill_all(item.options),
        steps=fill_all(item.steps),
        pairs=pairs,
        text=fill(item.text),
        hints=tuple(map(fill, item.hints)),
        explanation=fill(item.explanation),
        mistake=fill(item.mistake),
    )


_ANSWERS: dict[str, Callable[[ItemParts, Question, Mapping[str, Value]], Fields]] = {
    "single": _chosen,
    "multiple": _chosen,
    "true-false": _chosen,
    "numeric": _typed_numbers,
    "short": _words,
    "order": _ordered,
    "match": _matched,
    "cloze": _gapped,
    "place": _pointed,
}

_LONGEST_ID = 48
_OPTION = re.compile(r"^- \[", re.MULTILINE)
_STRUCTURED = re.compile(r"(?:`{3}|\| |> |- |\d+\. |\$\$)")


def block(item: Item, name: str) -> str:
    """Return one item as Markdown with the id `name`: heading, comment, answers, alerts."""
    heading, rest = _heading(item)
    comment = "\n".join([f"<!-- q: {name}", *_metadata(item)])
    comment += "\n-->" if "\n" in comment else " -->"
    parts = [f"### {heading}\n{comment}", rest, *_apart(rest, _answers(item))]
    parts += [_alert("TIP", hint) for hint in item.hints]
    parts += [_alert("NOTE", item.explanation), _alert("CAUTION", item.mistake)]
    return "\n\n".join(p for p in parts if p) + "\n"


def headed(item: Item) -> Item:
    """Return the item with a first paragraph that can be a heading: its name, if needed."""
    if item.stem and not _STRUCTURED.match(item.stem):
        return item
    name = " ".join(item.name.split()) or "Question"
    stem = f"{line_escaped(escaped(name))}\n\n{item.stem}".strip()
    return dataclasses.replace(item, stem=stem)


def new_id(item: Item, taken: Iterable[str]) -> str:
    """Return an unused id from the item's name or its first words."""
    words = slug(item.name) or slug(item.stem) or "question"
    if len(words) > _LONGEST_ID:
        words = words[:_LONGEST_ID].rpartition("-")[0] or words[:_LONGEST_ID]
    used, found, count = set(taken), words, 1
    while found in used:
        count += 1
        found = f"{words}-{count}"
    return found


def _heading(item: Item) -> tuple[str, str]:
    """Return the first paragraph as a heading, and the rest below it."""
    first, _, rest = headed(item).stem.partition("\n\n")
    line = one_line(first)
    return re.sub(r"(?:(?<=\s)|^)(#+)$", r"\\\1", line), rest


def _metadata(item: Item) -> list[str]:
    """Return the lines of the comment below the id, without default values."""
    told = {"numeric", "short", "order", "match", "cloze", "card"}
    lone = item.kind == "multiple" and sum(o.right for o in item.options) == 1
    named = lone or (item.kind == "single" and _says_true_or_false(item))
    rows = (
        ("type", item.kind if item.kind in told or named else ""),
        ("objective", _listed(item.objectives)),
        ("source", _listed(item.sources)),
        ("tags", _listed(item.tags)),
        ("difficulty", str(item.difficulty) if item.difficulty != 3 else ""),
        ("level", item.level),
        ("use", item.use),
        ("partial", item.partial),
        ("shuffle", "" if item.shuffle or item.kind == "true-false" else "no"),
        ("case", "yes" if item.case else ""),
        ("reverse", "yes" if item.reverse else ""),
    )
    return [f"{key}: {value}" for key, value in rows if value]


def _says_true_or_false(item: Item) -> bool:
    return {o.text.strip(" .").lower() for o in item.options} == {"true", "false"}


def _listed(words: tuple[str, ...]) -> str:
    quoted = [w if re.fullmatch(r"[\w.][\w. /+-]*", w) else '"' + _unquoted(w) + '"' for w in words]
    if len(quoted) < 2:
        return "".join(quoted)
    return f"[{', '.join(quoted)}]"


def _unquoted(word: str) -> str:
    return re.sub(r"[\"\\\s]+|--+>?", " ", word).strip()


def _answers(item: Item) -> list[str]:
    if item.kind == "order":
        steps = [_entry(f"{n}. ", s) for n, s in enumerate(item.steps, 1)]
        return ["\n".join(steps), "\n".join(map(_quiz_file_choice, item.options))]
    if item.kind == "match":
        return [_table(item.titles, item.pairs)]
    if item.kind == "cloze":
        return [_quiz_file_filled(item.text, item.blanks)]
    if item.kind == "card":
        return [item.text]
    written = _quiz_file_word if item.kind == "short" else _quiz_file_choice
    return ["\n".join(map(written, item.options))]


def _apart(stem: str, answers: list[str]) -> list[str]:
    """Separate options with stars from a stem that ends in a list, which would absorb them."""
    lines = [line for line in stem.split("\n") if line and not line.startswith(" ")]
    if not answers or not lines or not lines[-1].startswith("- "):
        return answers
    return [_OPTION.sub("* [", answers[0]), *answers[1:]]


def _quiz_file_choice(option: ItemOption) -> str:
    box = "[x]" if option.right else box_of(option.credit)
    return _entry(f"- {box} ", option)


def _quiz_file_word(option: ItemOption) -> str:
    bare = dataclasses.replace(option, text=code_span(option.text))
    return _quiz_file_choice(bare)


def _entry(mark: str, option: ItemOption) -> str:
    text = code_span(_number(option.span)) if option.span is not None else one_line(option.text)
    lines = [mark + text]
    indent = "  " if mark.startswith("-") else " " * len(mark)
    said = option.feedback.split("\n") if option.feedback else ()
    lines += [f"{indent}> {line}".rstrip() for line in said]
    return "\n".join(lines)


def _number(span: NumberRange) -> str:
    """Return the range as it is authored: `140 GB ± 4.2`."""
    unit = f" {span.unit}" if span.unit else ""
    whole = span.center == int(span.center)
    if not span.tolerance and whole:
        return f"{shown(span.center)}{unit}"
    return f"{shown(span.center)}{unit} ± {shown(span.tolerance)}"


def _table(titles: tuple[str, str], pairs: tuple[ItemPair, ...]) -> str:
    why = any(p.why for p in pairs)
    left, right = titles[0] or "Item", titles[1] or "Match"
    rows = [[left, right, "Why"], ["---"] * 3]
    rows += [[one_line(p.left), one_line(p.right), one_line(p.why)] for p in pairs]
    kept = 3 if why else 2
    return "\n".join("| " + " | ".join(row[:kept]) + " |" for row in rows)


def _quiz_file_filled(text: str, blanks: tuple[ItemBlank, ...]) -> str:
    pieces = text.split(BLANK)
    out = pieces[0]
    for blank, piece in zip(blanks, pieces[1:], strict=False):
        hint = f" ?{escaped(blank.hint)}" if blank.hint else ""
        words = "|".join(map(escaped, blank.answers))
        wrong = "".join(f" ~ {escaped(word)}" for word in blank.wrong)
        out += f"[[{words}{wrong}{hint}]]{piece}"
    return out


def _alert(kind: str, text: str) -> str:
    if not text:
        return ""
    lines = [f"> [!{kind}]", *(f"> {line}".rstrip() for line in text.split("\n"))]
    return "\n".join(lines)
