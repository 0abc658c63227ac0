"""Items as the course's own files hold them, with the author's Markdown."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from markdown_it.token import Token

from app.content.markdown.syntax import closing_index
from app.content.markdown.writer import RenderContext
from app.content.model import Flashcard
from app.content.numbers import templates
from app.content.numbers.expressions import ExpressionError, Value
from app.content.numbers.units import UNITS
from app.content.read.items import ParsedItem, build
from app.content.read.metadata import FileKind, FrontMatter, front_matter
from app.content.read.regions import Region, split_into_items
from app.content.source_file import SourceFile
from app.content.strict_yaml import YamlMapping
from app.exchange.items import (
    ImportResult,
    Item,
    ItemBlank,
    ItemOption,
    ItemPair,
    ItemRemark,
    ItemSkippedError,
    NumberRange,
)
from app.exchange.items import Kind as ItemKind
from app.exchange.markup.rendering import markdown_of
from app.exchange.markup.texts import span_around
from app.questions import kinds, variants
from app.questions.kinds.match import rows_of
from app.questions.kinds.numeric.model import AcceptedRange, NumericAnswer
from app.questions.kinds.numeric.parse import ranged
from app.questions.kinds.place import label_of
from app.questions.model import Question
from app.questions.options import ParsedOption as Written
from app.questions.options import code_of
from app.questions.written import ItemComment, ItemDraft, ItemParts

_KINDS: dict[str, FileKind] = {
    "concept.md": "page",
    "quiz.md": "quiz",
    "cards.md": "cards",
}
Fields = dict[str, Any]
_COMPUTED = ("params", "let")
# What another program has instead, and what of it is lost on the way.
_INSTEAD: dict[str, tuple[ItemKind, str]] = {
    "place": ("single", "its drawing is not carried; it asks for the label of a part"),
}
_ONE_DRAW = "its numbers were drawn once; the parameters are not carried"


def read_authored(text: str, path: str, seed: int = 0) -> ImportResult:
    """The items of one file; computed ones as the variant that `seed` draws.

    `path` is relative to the content folder. Items that the check refuses are refused
    here too; design exercises are, because nobody else can judge them.
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
    """Whether a part of a file is an item with numbers of its own."""
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


# --- from a built item to a neutral one ---


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
    """What questions and cards have alike."""
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
    """What stands between the heading and the answers, unless it is the answer."""
    if kinds.type_of(question).blank:
        return ""
    return markdown_of([t for t in parts.stem if t.type != "hr"])


def _kind_of(question: Question) -> ItemKind:
    instead = _INSTEAD.get(question.type)
    return instead[0] if instead else cast(ItemKind, question.type)


# The answer fields of an item, by its kind.


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


def _choice(option: Written) -> ItemOption:
    text, why = markdown_of([option.inline]), markdown_of(option.feedback)
    return ItemOption(text, option.ticked, why, credit=option.credit)


def _word(option: Written) -> ItemOption:
    word = (code_of(option) or option.words).strip()
    why = markdown_of(option.feedback)
    return ItemOption(word, option.ticked, why, credit=option.credit)


def _numbers(
    options: Sequence[Written], answer: object, values: Mapping[str, Value]
) -> tuple[ItemOption, ...]:
    """The numeric options in the order in which their ranges were read."""
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
    # Bounds so close were made from the number: their last digits are dust.
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
    """The item with the drawn numbers in all of its texts."""

    def fill(text: str) -> str:
        return templates.fill(text, values)

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
