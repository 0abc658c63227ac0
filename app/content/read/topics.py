"""The files of a topic: its page, its questions, its cards."""

import dataclasses
import re
from collections.abc import Collection, Sequence
from pathlib import PurePosixPath

from app.content.identity import bottom_k_sketch, content_hash, normalize_text, words_hash
from app.content.limits import MOST_ITEMS, LimitExceededError
from app.content.markdown.writer import RenderContext
from app.content.model import REVERSE, Flashcard, QuestionBlock, SourceLocation, Topic
from app.content.parsed import ItemFingerprint, ParsedFile
from app.content.read.items import ParsedItem, build
from app.content.read.metadata import FileKind, FrontMatter, front_matter
from app.content.read.pages import PageLayout, lay_out_page
from app.content.read.regions import ProseRegion, Region, read_regions
from app.content.rules.items import check_balance, check_item
from app.content.rules.prose import check_prose
from app.content.source_file import SourceFile, Unidentified
from app.content.strict_yaml import YamlText
from app.content.terms import FirstMentionLinker, GlossaryNames
from app.questions import kinds
from app.questions.kind import CountedOption
from app.questions.model import Question
from app.questions.written import ItemDraft

_KINDS: dict[str, FileKind] = {
    "concept.md": "page",
    "quiz.md": "quiz",
    "cards.md": "cards",
}
Items = dict[tuple[str, int], Question | Flashcard]
_EMPTY_KEY = re.compile(r"q[ \t]*:[ \t]*")
_FIGURE = re.compile(r"\d[\d.,]*")


def read_topic_file(sheet: SourceFile, where: PurePosixPath, names: GlossaryNames) -> ParsedFile:
    """A page, a quiz or cards; the file's name says which."""
    kind = _KINDS.get(where.name, "quiz")
    slug = where.parts[1] if len(where.parts) > 2 else where.stem
    front, text = front_matter(sheet, page=kind == "page")
    regions = read_regions(text, sheet, kind)
    scope = RenderContext(sheet, folder=slug)
    items, facts = _items(regions, kind, front, scope)
    check_balance(items.values(), sheet)
    parsed = ParsedFile(sheet.path, facts=tuple(facts))
    if kind == "page":
        return _with_page(parsed, (regions, items, front, slug), sheet, names)
    return dataclasses.replace(
        parsed,
        questions=tuple(i for i in items.values() if isinstance(i, Question)),
        cards=_cards(items),
    )


def _items(
    regions: Sequence[Region], kind: FileKind, front: FrontMatter, scope: RenderContext
) -> tuple[Items, list[ItemFingerprint]]:
    """The sound items by id and line, and the facts of all, sound or broken."""
    items: Items = {}
    facts: list[ItemFingerprint] = []
    sheet = scope.sheet
    for draft in _few([r for r in regions if isinstance(r, ItemDraft)], sheet):
        before = sheet.mark = len(sheet.problems)
        built, stopped = _built(draft, kind, front, scope)
        errors = any(p.severity == "error" for p in sheet.problems[before:])
        broken = draft.broken or errors or built is None
        if draft.comment.id:
            facts.append(_fact(draft, built, sheet, broken=broken))
        elif _lacks_id(draft):
            sheet.unidentified.append(_unidentified(draft, sheet))
        if built is not None and not broken:
            items[built.item.id, draft.line] = built.item
            _add_reverse(built, items)
        if stopped:
            break
    sheet.item = ""
    return items, facts


def _lacks_id(draft: ItemDraft) -> bool:
    """Whether the comment of an item says `q:` and nothing behind it."""
    node = draft.comment.fields.values.get("q")
    return isinstance(node, YamlText) and not node.text


def _unidentified(draft: ItemDraft, sheet: SourceFile) -> Unidentified:
    key = draft.comment.fields.keys["q"]
    rest = sheet.lines[key.line - 1][key.column - 1 :]
    old = (_EMPTY_KEY.match(rest) or [""])[0]
    title = draft.heading.content
    return Unidentified(
        key.line,
        key.column,
        old,
        "q: ",
        "" if old == rest else " ",
        title,
        (),
        bottom_k_sketch(f"{title}\n{draft.below}"),
        words_hash(title),
        words_hash(draft.below),
    )


def _few(drafts: list[ItemDraft], sheet: SourceFile) -> list[ItemDraft]:
    """As many items as are read of one file; the first beyond them is named."""
    if len(drafts) > MOST_ITEMS:
        sheet.item = ""
        message = f"The file has {len(drafts):,} items; the limit is {MOST_ITEMS:,}."
        hint = "Split it into several topics."
        sheet.report("E88", drafts[MOST_ITEMS].line, 1, message, hint)
    return drafts[:MOST_ITEMS]


def _built(
    draft: ItemDraft, kind: FileKind, front: FrontMatter, scope: RenderContext
) -> tuple[ParsedItem | None, bool]:
    """An item, None where it cannot be read; and whether to stop reading here.

    What fails at one item is said of it, so that the others are served.
    """
    sheet = scope.sheet
    sheet.line = draft.line
    try:
        built = build(draft, kind, front, scope)
        if built is not None:
            check_item(built.item, built.written, sheet, exam=kind == "quiz")
    except LimitExceededError as error:
        sheet.give_up(error, "", draft.line)
        return None, True
    except Exception as error:  # noqa: BLE001 - one item may not take the others away
        sheet.give_up(error, "This item", draft.line)
        return None, False
    return built, False


def _add_reverse(built: ParsedItem, items: Items) -> None:
    """A card with `reverse: yes` has a sibling that asks the other way round."""
    card = built.item
    wanted = built.written.comment.word("reverse").lower() in {"yes", "true"}
    if not isinstance(card, Flashcard) or not wanted:
        return
    other = f"{card.id}{REVERSE}"
    line = card.place.line
    items[card.id, line] = dataclasses.replace(card, sibling=other)
    items[other, line] = dataclasses.replace(
        card, id=other, front=card.back, back=card.front, sibling=card.id
    )


def _fact(
    draft: ItemDraft, built: ParsedItem | None, sheet: SourceFile, *, broken: bool
) -> ItemFingerprint:
    item = built.item if built is not None else None
    kind = draft.comment.word("type") or "unknown"
    stem = key = ""
    options: tuple[CountedOption, ...] = ()
    if isinstance(item, Question):
        kind, stem = item.type, item.stem.plain
        options = kinds.type_of(item).options(item.answer)
        right = kinds.type_of(item).key_words(item.answer)
        right += [f"{o.credit:g} {o.words}" for o in options if o.credit]
        words = f"{' '.join(right)} {item.computed or ''}"
        # A key may be signs alone, such as `{}`, which are no words.
        key = content_hash(normalize_text(words) or words)[:6]
    elif isinstance(item, Flashcard):
        kind = "card"
        key = content_hash(" ".join(_FIGURE.findall(item.back.plain)))[:6]
    return ItemFingerprint(
        draft.comment.id,
        kind,
        draft.line,
        1,
        bottom_k_sketch(f"{draft.heading.content}\n{draft.below}"),
        bool(normalize_text(stem)),
        tuple((o.key, content_hash(normalize_text(o.words))[:6]) for o in options),
        broken,
        key,
        words_hash(draft.heading.content),
        words_hash(draft.below),
        bottom_k_sketch(draft.text),
        _id_at(draft, sheet),
    )


def _id_at(draft: ItemDraft, sheet: SourceFile) -> tuple[int, int]:
    """Where the id stands, behind a quotation mark if there is one."""
    line, column = draft.comment.place("q")
    at = sheet.lines[line - 1].find(draft.comment.id, column - 1)
    return line, max(at + 1, column)


def _with_page(
    parsed: ParsedFile,
    read: tuple[Sequence[Region], Items, FrontMatter, str],
    sheet: SourceFile,
    names: GlossaryNames,
) -> ParsedFile:
    """The file with its page, and its questions placed in their sections."""
    regions, items, front, slug = read
    linker = FirstMentionLinker(names)
    scope = RenderContext(sheet, page=True, folder=slug)
    # A card is part of the page's text: one that is not as far as its page waits.
    shown = {
        name: item
        for name, item in items.items()
        if isinstance(item, Question) or item.status == front.status
    }
    page = lay_out_page(regions, shown, scope, linker)
    check_prose([r.tokens for r in regions if isinstance(r, ProseRegion)], scope)
    topic = _topic(page, front, scope, tuple(linker.linked))
    sections = _sections_of(page)
    questions = tuple(
        dataclasses.replace(item, section=sections.get(item.id, ""))
        for item in items.values()
        if isinstance(item, Question)
    )
    return dataclasses.replace(
        parsed,
        topic=topic,
        questions=questions,
        cards=_cards(items),
        anchors=tuple(scope.anchors),
        alerts=page.alerts,
    )


def _topic(
    page: PageLayout, front: FrontMatter, scope: RenderContext, linked: tuple[str, ...]
) -> Topic:
    sheet = scope.sheet
    unread = any(p.code == "E10" and not p.item for p in sheet.problems)
    if not front.title and not unread:
        hint = "Begin the file with --- and a line “title: …”."
        sheet.report("E10", 1, 1, "The page has no title in its front matter.", hint)
    cited = tuple(dict.fromkeys((*scope.cited, *front.sources)))
    if not cited:
        hint = "Name sources in the front matter, and where they are used: [^key]."
        sheet.report("E16", 1, 1, "The page names no source.", hint)
    _check_notes(page, cited, sheet)
    return Topic(
        scope.folder,
        front.title or scope.folder,
        front.summary,
        front.objectives,
        page.sections,
        cited,
        front.requires,
        front.reviewed,
        round(sum(s.minutes for s in page.sections), 1),
        (),
        (),
        SourceLocation(sheet.path, 1),
        content_hash(sheet.text),
        linked,
        page.notes,
        front.level,
        front.status,
    )


def _check_notes(page: PageLayout, cited: Collection[str], sheet: SourceFile) -> None:
    """W96: a footnote is explained on a page that has it."""
    for key in page.notes:
        if key not in cited:
            place = sheet.find(f"[^{key}]:", 1, len(sheet.lines))
            message = f"“[^{key}]:” explains a footnote that the page does not have."
            hint = f"Write [^{key}] behind the sentence that rests on it, or delete it."
            sheet.report("W96", *place, message, hint)


def _sections_of(page: PageLayout) -> dict[str, str]:
    """The anchor of the section in which each embedded question stands."""
    return {
        piece.question: section.anchor
        for section in page.sections
        for piece in section.pieces
        if isinstance(piece, QuestionBlock)
    }


def _cards(items: Items) -> tuple[Flashcard, ...]:
    return tuple(i for i in items.values() if isinstance(i, Flashcard))
