"""From a cut-out item to a question or a card."""

import dataclasses
import itertools
import re
from typing import Any

from markdown_it.token import Token

from app.content.identity import content_hash, did_you_mean, normalize_text
from app.content.limits import MOST_HINTS, MOST_OPTIONS
from app.content.markdown.syntax import closing_index, first_line
from app.content.markdown.writer import RenderContext, render_tokens
from app.content.model import NO_TEXT, ComputedParameters, Flashcard, RichText, SourceLocation
from app.content.numbers import templates
from app.content.read.metadata import (
    PARTIAL,
    TYPES,
    FileKind,
    FrontMatter,
    ItemMetadata,
    Partial,
    said_of,
)
from app.content.read.parameters import read_computed
from app.content.rules.answer_lines import check_answer_lines
from app.content.rules.source_text import check_blocks
from app.content.source_file import SourceFile
from app.questions.choosing import choice_type
from app.questions.kind import QuestionType
from app.questions.kinds import KINDS
from app.questions.model import Question
from app.questions.option_rules import check_credits
from app.questions.options import ParsedOption, is_task_list, read_options
from app.questions.written import AuthoredItem, ItemDraft, ItemParts

_ROLES = {
    "TIP": "hint",
    "NOTE": "explanation",
    "IMPORTANT": "explanation",
    "CAUTION": "mistake",
    "WARNING": "mistake",
}


@dataclasses.dataclass(slots=True)
class ParsedItem:
    """An item with what the rules need to know of its writing."""

    item: Question | Flashcard
    written: AuthoredItem


def build(
    draft: ItemDraft, kind: FileKind, front: FrontMatter, scope: RenderContext
) -> ParsedItem | None:
    """Read one item; None when its comment or its type cannot be used."""
    sheet = scope.sheet
    sheet.item = draft.comment.id
    if not draft.comment.id:
        return None
    scope.first, scope.last = draft.line, draft.line + draft.text.count("\n")
    check_blocks(draft.body, sheet)
    if not draft.heading.content.strip():
        hint = "Write the question, or the front of the card, behind the ###."
        sheet.report("E32", draft.line, 1, "The item has no words to ask with.", hint)
    computed = read_computed(draft.comment, sheet)
    if computed:
        templates.protect([draft.heading, *draft.body], computed)
    parts = _sort(draft, sheet)
    kind_of = _type(draft, parts, kind, sheet)
    check_answer_lines(draft, parts, kind_of, sheet)
    _limit(draft, parts, sheet)
    if not kind_of:
        return None
    _check_taken(draft, parts, kind_of, sheet)
    said = said_of(draft.comment, kind_of, front, sheet, page=kind == "page")
    written = AuthoredItem(draft, parts, scope, computed is not None)
    if kind_of == "card":
        return ParsedItem(_card(draft, said, scope), written)
    return ParsedItem(_question(written, KINDS[kind_of], computed, said), written)


def _check_taken(draft: ItemDraft, parts: ItemParts, kind: str, sheet: SourceFile) -> None:
    """E24: options that its type does not take."""
    if parts.options and kind in KINDS and not KINDS[kind].boxed:
        message = f"A question of the type “{kind}” reads no options in boxes."
        hint = "Take them out, or change the type."
        sheet.report("E24", parts.list_line or draft.line, 1, message, hint)


def _sort(draft: ItemDraft, sheet: SourceFile) -> ItemParts:
    """Part the body into stem, answer blocks and alerts."""
    parts = ItemParts([], [], [], [], [], [])
    wanted = draft.comment.word("type")
    body = draft.body
    at = 0
    answered = False
    while at < len(body):
        end = closing_index(body, at) + 1
        block = body[at:end]
        role = _ROLES.get(body[at].meta.get("alert", ""))
        if role and wanted != "card":
            _add_alert(role, block[1:-1], parts)
        elif _take_answer(block, wanted, parts, sheet):
            answered = True
        elif _take_reason(block, body[at - 1] if at else None, parts, sheet):
            pass
        else:
            (parts.explanation if answered else parts.stem).extend(block)
        at = end
    return parts


def _limit(draft: ItemDraft, parts: ItemParts, sheet: SourceFile) -> None:
    """Report more options or hints than a question can have, and drop them."""
    for what, most, found in (
        ("options", MOST_OPTIONS, parts.options),
        ("hints", MOST_HINTS, parts.hints),
    ):
        if len(found) > most:
            message = f"The question has {len(found):,} {what}."
            sheet.report("E88", draft.line, 1, message, f"Use at most {most}.")
            del found[most:]


def _add_alert(role: str, inside: list[Token], parts: ItemParts) -> None:
    if role == "hint":
        parts.hints.append(inside)
    elif role == "explanation":
        parts.explanation.extend(inside)
    else:
        parts.mistake.extend(inside)


def _take_answer(block: list[Token], wanted: str, parts: ItemParts, sheet: SourceFile) -> bool:
    """Whether a block is (part of) the answer; if so it is taken."""
    kind = block[0].type
    if wanted == "card":
        return False
    if kind == "bullet_list_open" and is_task_list(block):
        parts.list_line = parts.list_line or (block[0].map or [0])[0] + 1
        parts.options.extend(read_options(block, sheet))
        return True
    takes = wanted in KINDS and KINDS[wanted].block == kind
    if kind == "ordered_list_open" and not takes and is_task_list(block):
        if not parts.options:
            message = "The options are numbered."
            hint = "Write - [ ] text for each of them."
            sheet.report("E24", first_line(block[0]), 1, message, hint)
        parts.options.extend(read_options(block, sheet))
        return True
    if takes and not parts.block:
        parts.block = block
        return True
    return False


def _take_reason(
    block: list[Token], before: Token | None, parts: ItemParts, sheet: SourceFile
) -> bool:
    """W25: a quote right below an option is its reason, though nothing indents it."""
    below = before is not None and before.type == "bullet_list_close"
    lone = block[0].type == "blockquote_open" and not block[0].meta.get("alert")
    if not (below and lone and parts.options) or parts.options[-1].feedback:
        return False
    parts.options[-1].feedback = block[1:-1]
    message = "This reason is not indented, so that it stands below no option."
    hint = f"Write two spaces before its >; it is taken for “{_short(parts)}”."
    sheet.report("W25", first_line(block[0]), 1, message, hint)
    return True


def _short(parts: ItemParts) -> str:
    words = parts.options[-1].words
    return words if len(words) <= _MOST_SHOWN else f"{words[:_MOST_SHOWN]}…"


_MOST_SHOWN = 40


def _told(body: list[Token], options: list[ParsedOption]) -> tuple[str, str]:
    """The type that an item without one may have, and what tells it."""
    blocks = [] if any(option.ticked for option in options) else body
    told = itertools.chain(
        ((k.name, k.told_by(t, options)) for t in blocks for k in KINDS.values()),
        ((k.name, k.told_by_options(options)) for k in KINDS.values()),
    )
    return next((found for found in told if found[1]), ("", ""))


def _type(draft: ItemDraft, parts: ItemParts, kind: FileKind, sheet: SourceFile) -> str:
    """The type said or inferred; empty, and reported, when there is none."""
    said = draft.comment.word("type")
    if said and said not in TYPES:
        place = draft.comment.place("type")
        hint = did_you_mean(said, TYPES)
        sheet.report("E13", *place, f"“{said}” is not a type.", hint)
        return ""
    if said:
        return said
    return _untyped(draft, parts, kind, sheet)


def _untyped(draft: ItemDraft, parts: ItemParts, kind: FileKind, sheet: SourceFile) -> str:
    """The type inferred of an item that says none."""
    if kind == "cards" and not parts.options:
        return "card"
    meant, shows = _told(draft.body, parts.options)
    if parts.options and (kind == "cards" or not meant):
        return choice_type(parts.options)
    message = "This question has no answers and no type."
    hint = "Write options as - [ ] and - [x], or say type: card, order, match, …"
    if meant:
        message = f"The item has no type, and {shows}."
        hint = f"Write a line type: {meant} into its comment."
    if meant and parts.options and not any(o.ticked for o in parts.options):
        hint = f"Write type: {meant} into its comment, or tick the right option."
    sheet.report("E13", draft.comment.line, draft.comment.column, message, hint)
    return ""


def _card(draft: ItemDraft, said: ItemMetadata, scope: RenderContext) -> Flashcard:
    front = render_tokens([draft.heading], scope)
    back = render_tokens([t for t in draft.body if t.type != "hr"], scope)
    if back.plain.strip() and normalize_text(back.plain) == normalize_text(front.plain):
        hint = "Write the answer, or what the term means."
        message = f"The back of “{front.plain[:60]}” says the same as its front."
        scope.sheet.report("E57", draft.line, 1, message, hint)
    if not back.html:
        hint = "Write the answer as text below the comment."
        message = f"The card “{front.plain[:60]}” has no back."
        scope.sheet.report("E57", draft.line, 1, message, hint)
    return Flashcard(
        draft.comment.id,
        scope.folder,
        front,
        back,
        said.objectives,
        SourceLocation(scope.sheet.path, draft.line),
        content_hash(draft.text),
        said.sources,
        said.tags,
        level=said.level,
        status=said.status,
    )


def _question(
    written: AuthoredItem,
    kind: QuestionType[Any],
    computed: ComputedParameters | None,
    said: ItemMetadata,
) -> Question:
    draft, parts, scope = written.draft, written.parts, written.scope
    cited = list(scope.cited)
    scope.cited.clear()
    answer = kind.parse(written)
    if not kind.weighed:
        check_credits(parts.options, kind.name, scope.sheet)
    stem = _stem(written, kind)
    question = Question(
        draft.comment.id,
        scope.folder,
        kind.name,
        stem,
        answer,
        said.objectives,
        SourceLocation(scope.sheet.path, draft.line),
        content_hash(draft.text),
        _difficulty(draft, scope.sheet),
        said.sources,
        said.tags,
        tuple(render_tokens(hint, scope) for hint in parts.hints),
        _text(parts.explanation, scope),
        _text(parts.mistake, scope),
        _partial(draft, kind, scope.sheet),
        computed,
        level=said.level,
        use=said.use,
        status=said.status,
    )
    sources = tuple(dict.fromkeys((*said.sources, *scope.cited)))
    scope.cited[:] = cited
    question = dataclasses.replace(question, sources=sources)
    return templates.restored(question, computed) if computed else question


def _text(tokens: list[Token], scope: RenderContext) -> RichText:
    return render_tokens(tokens, scope) if tokens else NO_TEXT


def _stem(written: AuthoredItem, kind: QuestionType[Any]) -> RichText:
    """The heading, and below it whatever stands before the answers."""
    scope = written.scope
    heading = render_tokens([written.draft.heading], scope)
    body = [] if kind.blank else [t for t in written.parts.stem if t.type != "hr"]
    if not body:
        return heading
    rest = render_tokens(body, scope)
    if not rest.html:
        return heading
    more = rest.html if rest.html.startswith("<") else f"<p>{rest.html}</p>"
    return RichText(f"<p>{heading.html}</p>\n{more}", f"{heading.plain}\n{rest.plain}")


def _difficulty(draft: ItemDraft, sheet: SourceFile) -> int:
    said = draft.comment.word("difficulty")
    if "difficulty" not in draft.comment.fields.values:
        return 3
    if re.fullmatch(r"[1-5]", said):
        return int(said)
    place = draft.comment.place("difficulty")
    message = f"Difficulty “{said[:20]}” is not a whole number from 1 to 5."
    sheet.report("E15", *place, message, "Write difficulty: 3.")
    return 3


def _partial(draft: ItemDraft, kind: QuestionType[Any], sheet: SourceFile) -> Partial:
    said = draft.comment.word("partial")
    found = PARTIAL.get(said)
    place = draft.comment.place("partial")
    if found and kind.in_parts and found not in kind.credits:
        message = f"“{said}” is no way of partial credit for the type “{kind.name}”."
        hint = f"Known: {', '.join(kind.credits)}."
        sheet.report("E13", *place, message, hint)
    if found is not None:
        return found
    hint = did_you_mean(said, [p for p in PARTIAL if p])
    sheet.report("E13", *place, f"“{said}” is not a way of partial credit.", hint)
    return ""
