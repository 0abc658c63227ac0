"""Parses one file of the course: lesson page, quiz, cards, glossary or TOML."""

import dataclasses
import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from markdown_it.token import Token

from app.content.front_matter import FileKind, FrontMatter, parse_front_matter
from app.content.item_reader import ParsedItem, build_item
from app.content.item_rules import (
    report_item_problems,
    report_markup_typos,
    report_source_text_problems,
    report_unbalanced_right_positions,
    report_unsourced_numbers_of_passages,
)
from app.content.item_splitter import (
    ProseRegion,
    Region,
    find_next_heading_index,
    find_token_ranges_of_stray_answers,
    match_unspaced_heading,
    replace_checkboxes_by_symbols,
    report_unspaced_heading,
    split_and_check_regions,
)
from app.content.lock_file import parse_lock_file
from app.content.misread_markup import report_misread_term_and_meaning, report_term_heading_problems
from app.content.parsed_file import (
    AlertLine,
    FirstMentionLinker,
    GlossaryNames,
    HashedOption,
    ItemIdentityFingerprint,
    ParsedFile,
    compile_glossary_names,
)
from app.content.toml_reader import (
    map_register_entries_to_lines,
    parse_exam_blueprint,
    parse_sources,
    parse_syllabus,
)
from app.content.uncomputed_amounts import NO_AMOUNTS, find_amounts_in_source
from app.markup import lenient_yaml
from app.markup.checked_figures import (
    FIGURE_LINK,
    SVG_FIGURE,
    check_and_unlink_figures,
    replace_figure_links_by_text,
)
from app.markup.expressions import FigureError, compute_estimate
from app.markup.html_renderer import RenderContext, assign_heading_anchor, render_tokens
from app.markup.images import sanitize_svg
from app.markup.lenient_yaml import YamlText
from app.markup.markdown_tokens import (
    find_closing_index,
    get_first_line_number,
    get_last_line_number,
    parse_markdown,
    plain_text,
    pop_pinned_key,
)
from app.markup.model import (
    NO_TEXT,
    REVERSE,
    CalculatorBlock,
    Flashcard,
    GlossaryTerm,
    HtmlBlock,
    ImageBlock,
    Piece,
    QuestionBlock,
    RichText,
    Section,
    SourceLocation,
    Topic,
)
from app.markup.problems import (
    MOST_ITEMS,
    MOST_LINES,
    MOST_TERMS,
    IdInsertion,
    LimitExceededError,
    ParseContext,
    TextPosition,
    UnidentifiedItem,
    parsing_effort_of_estimate,
)
from app.markup.text import (
    bottom_k_sketch,
    content_hash,
    count_words,
    hash_words,
    is_inside_its_folder,
    reduce_to_words,
    repr_for_content_hash,
    slugify,
    write_hint_for_unknown_word,
)
from app.questions import types
from app.questions.model import Question
from app.questions.question_type import ItemSource, StatisticsOption

_BLOCK_TAG = re.compile(r"<(?:p|ul|ol|div|figure|h[1-6]|aside|pre|blockquote)\b")
_WORDS_PER_MINUTE = 200
_QUESTION_MINUTES = 1.0
_CALCULATOR_MINUTES = 1.5


class ItemKey(NamedTuple):
    """An id may belong to several items of a file."""

    id: str
    line: int


ItemByKey = dict[ItemKey, Question | Flashcard]


@dataclasses.dataclass(slots=True)
class _OpenSection:
    anchor: str
    title: str
    number: int
    pieces: list[Piece] = dataclasses.field(default_factory=list)
    words: list[str] = dataclasses.field(default_factory=list)
    minutes: float = 0.0


@dataclasses.dataclass(slots=True)
class PageLayout:
    sections: tuple[Section, ...]
    footnote_by_key: dict[str, RichText]
    alert_lines: tuple[AlertLine, ...]


def lay_out_page(
    regions: Sequence[Region],
    item_by_key: Mapping[ItemKey, Question | Flashcard],
    context: RenderContext,
    linker: FirstMentionLinker,
) -> PageLayout:
    """Lay out a page. Broken items are left out; failing blocks are reported."""
    context.parse_context.current_item = ""
    builder = _PageBuilder(context, linker)
    for region in regions:
        if isinstance(region, ItemSource):
            builder.embed_item(item_by_key.get(ItemKey(region.comment.id, region.line)))
        else:
            hidden_indices = {
                i for block in find_token_ranges_of_stray_answers(region.tokens) for i in block
            }
            shown = [t for i, t in enumerate(region.tokens) if i not in hidden_indices]
            builder.add_prose(shown)
            # Hidden blocks are read as well, so that all problems are reported at once.
            hidden_builder = _PageBuilder(context, FirstMentionLinker(_NO_NAMES))
            hidden_builder.add_prose([region.tokens[index] for index in sorted(hidden_indices)])
    builder.close_section()
    return PageLayout(tuple(builder.sections), builder.notes, tuple(builder.alert_lines))


class _PageBuilder:
    def __init__(self, context: RenderContext, linker: FirstMentionLinker) -> None:
        self.context = context
        self.linker = linker
        self.sections: list[Section] = []
        self.notes: dict[str, RichText] = {}
        self.alert_lines: list[AlertLine] = []
        self.level = 1
        self.numbered = 0
        self.open = _OpenSection("", "", 0)

    def close_section(self) -> None:
        section = self.open
        if section.pieces or section.anchor:
            text = "\n".join(section.words)
            minutes = round(section.minutes + count_words(text) / _WORDS_PER_MINUTE, 2)
            anchor, title, number = section.anchor, section.title, section.number
            pieces = tuple(section.pieces)
            self.sections.append(Section(anchor, title, pieces, text, minutes, number))

    def embed_item(self, item: Question | Flashcard | None) -> None:
        """Insert a question, or a card as a disclosure, at the current position."""
        if isinstance(item, Question):
            self.open.pieces.append(QuestionBlock(item.id))
            self.open.minutes += _QUESTION_MINUTES
        elif isinstance(item, Flashcard):
            html = f"<details><summary>{item.front.html}</summary>{_wrap_in_paragraph(item.back)}</details>"
            self.open.pieces.append(HtmlBlock(html))
            self.open.words.append(f"{item.front.plain} {item.back.plain}")

    def add_prose(self, tokens: list[Token]) -> None:
        """Add prose. Headings start sections; calculators and pictures are separate pieces."""
        index = 0
        start = 0
        while index < len(tokens):
            end = find_closing_index(tokens, index) + 1
            block = tokens[index:end]
            if self._starts_new_piece_reporting_bad_headings(
                tokens[index]
            ) or find_standalone_picture(block):
                self._render_tokens_as_html_block(tokens[start:index])
                self._add_standalone_block(block)
                start = end
            index = end
        self._render_tokens_as_html_block(tokens[start:])

    def _starts_new_piece_reporting_bad_headings(self, token: Token) -> bool:
        if token.type == "heading_open":
            self._report_and_track_heading_level(token)
            return token.tag in {"h1", "h2"}
        if token.type == "note_open":
            return True
        return token.type == "fence" and token.info.split(" ")[0] == "calculator"

    def _report_and_track_heading_level(self, token: Token) -> None:
        level = int(token.tag[1])
        line = get_first_line_number(token)
        if level == 1:
            hint = "The title comes from the front matter; begin with ##."
            message = "A page has no heading of the first level."
            self.context.parse_context.report("W64", line, 1, message, hint)
        elif level > self.level + 1:
            hint = f"Write {'#' * (self.level + 1)} here."
            message = f"The heading skips from level {self.level} to {level}."
            self.context.parse_context.report("W64", line, 1, message, hint)
        self.level = level

    def _add_standalone_block(self, block: list[Token]) -> None:
        if block[0].type == "heading_open":
            self.close_section()
            self.numbered += 1
            anchor = assign_heading_anchor(block[1], self.context)
            title = plain_text(block[1:2])
            if not title:
                message, hint = ("The heading has no words.", "Write its title behind it.")
                self.context.parse_context.report(
                    "W64", get_first_line_number(block[0]), 1, message, hint
                )
            self.open = _OpenSection(anchor, title, self.numbered)
            self.context.section_title = title
            self.context.has_steps_aside = False
        elif block[0].type == "note_open":
            self._add_footnote(block)
        elif image := find_standalone_picture(block):
            self._add_picture(image, block)
        else:
            self._add_calculator(block[0])

    def _add_footnote(self, block: list[Token]) -> None:
        key = block[0].content
        if key in self.notes:
            message = f"“[^{key}]:” stands on this page a second time."
            hint = "Keep one of the two; the text may cite it more than once."
            self.context.parse_context.report(
                "E11", get_first_line_number(block[0]), 1, message, hint
            )
        self.notes[key] = render_tokens(block[1:2], self.context)

    def _add_picture(self, image: Token, block: list[Token]) -> None:
        """Add an SVG file. Whether it is a drawing or a picture is decided on assembly."""
        caption = str(image.attrs.pop("title", ""))
        text = render_tokens(_prevent_paragraph_unwrapping(block), self.context)
        file = str(image.attrs.get("src", ""))
        lines = get_first_line_number(block[0]), get_last_line_number(block[0])
        caption = check_and_unlink_figures(caption, FIGURE_LINK, self.context.parse_context, *lines)
        self.open.pieces.append(ImageBlock(file, caption, text.html))
        self.open.words.append(f"{text.plain}\n{caption}".strip())
        parse_context = self.context.parse_context
        location = parse_context.locate_text(file, *lines)
        parse_context.add_reference("picture", file, *location)

    def _render_tokens_as_html_block(self, tokens: list[Token]) -> None:
        if not tokens:
            return
        replace_checkboxes_by_symbols(tokens)
        boxes = [t for t in tokens if t.meta.get("alert")]
        self.alert_lines += [
            AlertLine(str(t.meta["alert"]), get_first_line_number(t)) for t in boxes
        ]
        text = render_tokens(_prevent_paragraph_unwrapping(tokens), self.context)
        if text.html:
            self.open.pieces.append(HtmlBlock(self.linker.link_first_mentions(text.html)))
            self.open.words.append(text.plain)

    def _add_calculator(self, token: Token) -> None:
        parse_context = self.context.parse_context
        name = token.info.strip().partition(" ")[2].strip()
        line = get_first_line_number(token)
        fields = lenient_yaml.parse_mapping(token.content, parse_context.report, line + 1)
        inputs = {n: v.text for n, v in fields.values.items() if isinstance(v, YamlText)}
        effort = parsing_effort_of_estimate(name)
        parse_context.spend_parsing_effort(effort, token.info + token.content)
        try:
            compute_estimate(name, inputs)
        except FigureError as error:
            location = _locate_quoted_input(error.message, fields, line)
            parse_context.report(error.code, *location, error.message, error.hint)
            return
        parse_context.add_reference("calculator", name.replace("_", "-"), line, 1)
        self.open.pieces.append(CalculatorBlock(name.replace("_", "-"), inputs))
        self.open.minutes += _CALCULATOR_MINUTES


def _locate_quoted_input(message: str, fields: lenient_yaml.YamlMapping, line: int) -> TextPosition:
    """Return the position of the input that a message quotes, or of the block."""
    for name, key in fields.keys.items():
        value = fields.values[name]
        text = value.text if isinstance(value, YamlText) else ""
        if f"“{name}”" in message or (text and f"“{text}”" in message):
            return TextPosition(key.line, key.column)
    return TextPosition(line, 1)


def find_standalone_picture(block: Sequence[Token]) -> Token | None:
    """Return the image of a paragraph that is only an SVG, or a picture with a caption."""
    if len(block) != 3 or block[0].type != "paragraph_open" or block[0].level:
        return None
    children = block[1].children or []
    if len(children) != 1 or children[0].type != "image":
        return None
    file, caption = (str(children[0].attrs.get(name, "")) for name in ("src", "title"))
    is_local = (file.endswith(".svg") or caption) and is_inside_its_folder(file)
    return children[0] if is_local else None


def _prevent_paragraph_unwrapping(tokens: list[Token]) -> list[Token]:
    """Append a token, so that a single paragraph keeps its `<p>`."""
    return tokens if len(tokens) != 3 else [*tokens, Token("nothing", "", 0)]


def _wrap_in_paragraph(text: RichText) -> str:
    """Wrap inline text in a paragraph. Longer texts are blocks already."""
    return text.html if _BLOCK_TAG.match(text.html) else f"<p>{text.html}</p>"


_KIND_BY_FILE_NAME: dict[str, FileKind] = {
    "concept.md": "page",
    "quiz.md": "quiz",
    "cards.md": "cards",
}
_EMPTY_KEY = re.compile(r"q[ \t]*:[ \t]*")
_ANY_NUMBER = re.compile(r"\d[\d.,]*")


def parse_topic_file(
    parse_context: ParseContext, path: PurePosixPath, glossary_names: GlossaryNames
) -> ParsedFile:
    """Parse a page, a quiz or cards, depending on the file name."""
    kind = _KIND_BY_FILE_NAME.get(path.name, "quiz")
    slug = path.parts[1] if len(path.parts) > 2 else path.stem
    front, text = parse_front_matter(parse_context, is_page=kind == "page")
    regions = split_and_check_regions(text, parse_context, kind)
    context = RenderContext(parse_context, topic_folder=slug)
    items, fingerprints = _build_items(regions, kind, front, context)
    report_unbalanced_right_positions(items.values(), parse_context)
    parsed = ParsedFile(parse_context.path, fingerprints=tuple(fingerprints))
    if kind == "page":
        return _add_page_to_file(parsed, regions, items, front, context, glossary_names)
    return dataclasses.replace(
        parsed,
        questions=tuple(i for i in items.values() if isinstance(i, Question)),
        cards=_select_flashcards(items),
    )


def _build_items(
    regions: Sequence[Region],
    file_kind: FileKind,
    front_matter: FrontMatter,
    context: RenderContext,
) -> tuple[ItemByKey, list[ItemIdentityFingerprint]]:
    """Return the valid items of a file, and the fingerprints of all."""
    items: ItemByKey = {}
    fingerprints: list[ItemIdentityFingerprint] = []
    parse_context = context.parse_context
    for source in _drop_items_beyond_limit(
        [r for r in regions if isinstance(r, ItemSource)], parse_context
    ):
        first_problem = parse_context.problem_count_before_item = len(parse_context.problems)
        parsed_item, is_over_limit = _build_and_check_item(source, file_kind, front_matter, context)
        errors = any(p.severity == "error" for p in parse_context.problems[first_problem:])
        broken = source.has_invalid_comment or errors or parsed_item is None
        if source.comment.id:
            fingerprints.append(
                _build_item_identity_fingerprint(
                    source, parsed_item, parse_context, is_broken=broken
                )
            )
        elif isinstance(node := source.comment.fields.values.get("q"), YamlText) and not node.text:
            parse_context.unidentified_items.append(_build_unidentified_item(source, parse_context))
        if parsed_item is not None and not broken:
            items[ItemKey(parsed_item.item.id, source.line)] = parsed_item.item
            _add_reverse_card_if_requested(parsed_item, items)
        if is_over_limit:
            break
    parse_context.current_item = ""
    return items, fingerprints


def _build_unidentified_item(source: ItemSource, parse_context: ParseContext) -> UnidentifiedItem:
    key = source.comment.fields.keys["q"]
    rest_of_line = parse_context.lines[key.line - 1][key.column - 1 :]
    old_text = (_EMPTY_KEY.match(rest_of_line) or [""])[0]
    title = replace_figure_links_by_text(source.heading.content)
    after = "" if old_text == rest_of_line else " "
    return UnidentifiedItem(
        IdInsertion(TextPosition(key.line, key.column), old_text, "q: ", after),
        title,
        (),
        bottom_k_sketch(f"{title}\n{source.text_after_comment}"),
        hash_words(title),
        hash_words(source.text_after_comment),
    )


def _drop_items_beyond_limit(
    sources: list[ItemSource], parse_context: ParseContext
) -> list[ItemSource]:
    if len(sources) > MOST_ITEMS:
        parse_context.current_item = ""
        message = f"The file has {len(sources):,} items; the limit is {MOST_ITEMS:,}."
        hint = "Split it into several topics."
        parse_context.report("E88", sources[MOST_ITEMS].line, 1, message, hint)
    return sources[:MOST_ITEMS]


class ItemBuildResult(NamedTuple):
    """An item, None if it is unreadable, and whether its file exceeds a limit."""

    item: ParsedItem | None
    is_file_over_limit: bool = False


def _build_and_check_item(
    source: ItemSource, file_kind: FileKind, front_matter: FrontMatter, context: RenderContext
) -> ItemBuildResult:
    """Build an item. Exceptions are reported as its problems, so that the others are served."""
    parse_context = context.parse_context
    parse_context.current_line = source.line
    try:
        parsed_item = build_item(source, file_kind, front_matter, context)
        if parsed_item is not None:
            report_item_problems(parsed_item.item, parsed_item.authored)
    except LimitExceededError as error:
        parse_context.report_parsing_failure(error, "", source.line)
        return ItemBuildResult(None, is_file_over_limit=True)
    except Exception as error:  # noqa: BLE001 - one item must not break the others
        parse_context.report_parsing_failure(error, "This item", source.line)
        return ItemBuildResult(None)
    return ItemBuildResult(parsed_item)


def _add_reverse_card_if_requested(parsed_item: ParsedItem, item_by_key: ItemByKey) -> None:
    card = parsed_item.item
    has_reverse = parsed_item.authored.comment.field_text("reverse").lower() in {"yes", "true"}
    if not isinstance(card, Flashcard) or not has_reverse:
        return
    reverse_id = f"{card.id}{REVERSE}"
    line = card.place.line
    item_by_key[ItemKey(card.id, line)] = dataclasses.replace(card, sibling=reverse_id)
    item_by_key[ItemKey(reverse_id, line)] = dataclasses.replace(
        card, id=reverse_id, front=card.back, back=card.front, sibling=card.id
    )


def _build_item_identity_fingerprint(
    source: ItemSource,
    parsed_item: ParsedItem | None,
    parse_context: ParseContext,
    *,
    is_broken: bool,
) -> ItemIdentityFingerprint:
    item = parsed_item.item if parsed_item is not None else None
    kind = source.comment.field_text("type") or "unknown"
    heading = replace_figure_links_by_text(source.heading.content)
    stem = key = ""
    options: tuple[StatisticsOption, ...] = ()
    if isinstance(item, Question):
        kind, stem = item.type, item.stem.plain
        options = types.question_type_of(item).options_for_statistics(item.answer)
        key_texts = types.question_type_of(item).answer_key_fingerprint_texts(item.answer)
        key_texts += [f"{o.credit:g} {o.text}" for o in options if o.credit]
        computed = repr_for_content_hash(item.computed) if item.computed else ""
        key_words = f"{' '.join(key_texts)} {computed}"
        # A key may consist of symbols alone, such as `{}`, which normalize to nothing.
        key = content_hash(reduce_to_words(key_words) or key_words)[:6]
    elif isinstance(item, Flashcard):
        kind = "card"
        key = content_hash(" ".join(_ANY_NUMBER.findall(item.back.plain)))[:6]
    return ItemIdentityFingerprint(
        source.comment.id,
        kind,
        source.line,
        1,
        bottom_k_sketch(f"{heading}\n{source.text_after_comment}"),
        bool(reduce_to_words(stem)),
        tuple(HashedOption(o.key, content_hash(reduce_to_words(o.text))[:6]) for o in options),
        is_broken,
        key,
        hash_words(heading),
        hash_words(source.text_after_comment),
        bottom_k_sketch(source.text),
        _locate_id(source, parse_context),
    )


def _locate_id(source: ItemSource, parse_context: ParseContext) -> TextPosition:
    """Return the position of the id, after a quotation mark if there is one."""
    line, column = source.comment.field_location("q")
    id_start = parse_context.lines[line - 1].find(source.comment.id, column - 1)
    return TextPosition(line, max(id_start + 1, column))


def _add_page_to_file(
    parsed: ParsedFile,
    regions: Sequence[Region],
    item_by_key: ItemByKey,
    front_matter: FrontMatter,
    item_context: RenderContext,
    glossary_names: GlossaryNames,
) -> ParsedFile:
    """Return the file with its page, and with each question's section set."""
    linker = FirstMentionLinker(glossary_names)
    context = RenderContext(
        item_context.parse_context, is_concept_page=True, topic_folder=item_context.topic_folder
    )
    # A card is part of the page's text. It is shown only with the same status as the
    # page.
    shown_items = {
        name: item
        for name, item in item_by_key.items()
        if isinstance(item, Question) or item.status == front_matter.status
    }
    page = lay_out_page(regions, shown_items, context, linker)
    report_unsourced_numbers_of_passages(
        [r.tokens for r in regions if isinstance(r, ProseRegion)], context
    )
    topic = _build_topic(page, front_matter, context, tuple(linker.linked))
    sections = {
        piece.question: section.anchor
        for section in page.sections
        for piece in section.pieces
        if isinstance(piece, QuestionBlock)
    }
    questions = tuple(
        dataclasses.replace(item, section=sections.get(item.id, ""))
        for item in item_by_key.values()
        if isinstance(item, Question)
    )
    return dataclasses.replace(
        parsed,
        topic=topic,
        questions=questions,
        cards=_select_flashcards(item_by_key),
        anchors=tuple(context.use_count_by_anchor),
        alert_lines=page.alert_lines,
    )


def _build_topic(
    page: PageLayout,
    front_matter: FrontMatter,
    context: RenderContext,
    linked_terms: tuple[str, ...],
) -> Topic:
    parse_context = context.parse_context
    is_unreadable = any(p.code in {"E10", "E12"} and not p.item for p in parse_context.problems)
    if not front_matter.title and not is_unreadable:
        hint = "Begin the file with --- and a line “title: …”."
        parse_context.report("E10", 1, 1, "The page has no title in its front matter.", hint)
    cited = tuple(dict.fromkeys((*context.cited_source_keys, *front_matter.sources)))
    if not cited:
        hint = "Name sources in the front matter, and where they are used: [^key]."
        parse_context.report("E16", 1, 1, "The page names no source.", hint, is_consequence=True)
    _report_uncited_footnotes(page, cited, parse_context)
    return Topic(
        context.topic_folder,
        front_matter.title or context.topic_folder,
        front_matter.summary,
        front_matter.objectives,
        _mark_essential_sections(page.sections, front_matter, parse_context),
        cited,
        front_matter.required_topics,
        front_matter.reviewed_on,
        round(sum(s.minutes for s in page.sections), 1),
        (),
        (),
        SourceLocation(parse_context.path, 1),
        content_hash(parse_context.text),
        linked_terms,
        page.footnote_by_key,
        front_matter.level,
        front_matter.status,
        front_matter.aliases,
    )


def _mark_essential_sections(
    sections: Sequence[Section], front_matter: FrontMatter, parse_context: ParseContext
) -> tuple[Section, ...]:
    """Return the sections, marked for the short route. Reports E61: unknown anchors.

    The opening and sections that hold only questions are essential on each page that has
    an essential section. A page that names none is essential as a whole, or not at all if
    it is beyond the exam.
    """
    if front_matter.essential_sections is None:
        return tuple(dataclasses.replace(s, essential=not front_matter.level) for s in sections)
    anchors = {s.anchor for s in sections if s.anchor}
    for anchor in front_matter.essential_sections:
        if anchor not in anchors:
            message = f"“{anchor}” is no section of this page."
            line, _ = parse_context.locate_text("essential:", 1, len(parse_context.lines))
            hint = write_hint_for_unknown_word(anchor, anchors)
            parse_context.report_at_text(
                "E61", anchor, line, len(parse_context.lines), message, hint
            )
    return tuple(
        dataclasses.replace(
            s, essential=s.anchor in front_matter.essential_sections or not (s.anchor and s.plain)
        )
        for s in sections
    )


def _report_uncited_footnotes(
    page: PageLayout, cited_footnotes: Collection[str], parse_context: ParseContext
) -> None:
    """Report W96: explanations of footnotes that the page does not use."""
    for key in page.footnote_by_key:
        if key not in cited_footnotes:
            message = f"“[^{key}]:” explains a footnote that the page does not have."
            hint = f"Write [^{key}] behind the sentence that rests on it, or delete it."
            parse_context.report_at_text(
                "W96", f"[^{key}]:", 1, len(parse_context.lines), message, hint
            )


def _select_flashcards(item_by_key: ItemByKey) -> tuple[Flashcard, ...]:
    return tuple(i for i in item_by_key.values() if isinstance(i, Flashcard))


_MAX_TERM_LENGTH = 200  # characters of a term
_COMMA_OF_ANY_SCRIPT = re.compile("[,\u060c\u3001\uff0c]")  # also Arabic, Japanese and Chinese
_SEE_ALSO_LINE = re.compile(r"^\*{0,2}See(?: also)?\*{0,2}[:\uff1a]\*{0,2}\s*(.+)$", re.DOTALL)


def parse_glossary(parse_context: ParseContext) -> tuple[GlossaryTerm, ...]:
    """Return the glossary terms in file order. Terms without a meaning are left out."""
    _, text = parse_front_matter(parse_context)
    tokens = parse_markdown(text)
    report_markup_typos(tokens, parse_context)
    context = RenderContext(parse_context, topic_folder="..")
    terms: list[GlossaryTerm] = []
    index = 0
    while index < len(tokens):
        end = find_next_heading_index(tokens, index)
        if tokens[index].type == "heading_open" and tokens[index].tag != "h1":
            if len(terms) == MOST_TERMS:
                message = f"The glossary has more than {MOST_TERMS:,} terms."
                parse_context.report(
                    "E88", get_first_line_number(tokens[index]), 1, message, "Keep fewer."
                )
                break
            terms.append(_build_term(tokens[index:end], context))
            line = get_first_line_number(tokens[index])
            report_term_heading_problems(terms[-1].name, tokens[index].tag, line, parse_context)
        elif tokens[index].type == "heading_open" and index and tokens[index].tag == "h1":
            title = plain_text(tokens[index + 1 : index + 2])[:60]
            message = f"“{title}” is a title, and no term."
            parse_context.report(
                "W64", get_first_line_number(tokens[index]), 1, message, f"Write ## {title}"
            )
        else:
            report_misread_term_and_meaning("", 1, tokens[index:end], parse_context)
        index = end
    return _drop_duplicate_terms([t for t in terms if t.meaning.html], parse_context)


def _build_term(block: list[Token], context: RenderContext) -> GlossaryTerm:
    pinned = pop_pinned_key(block[1])
    name = plain_text(block[1:2])[:_MAX_TERM_LENGTH]
    line = get_first_line_number(block[0])
    body, related = _split_see_also(block[3:])
    report_misread_term_and_meaning(name, line, body, context.parse_context)
    locate_text = context.parse_context.locate_text
    for related_name in related:
        see_line = locate_text("See:", line, line + _MAX_TERM_LENGTH).line
        location = locate_text(related_name, see_line, see_line + _MAX_TERM_LENGTH)
        context.parse_context.add_reference("term", related_name, *location)
    if not name:
        hint = "Write the term behind the ##."
        context.parse_context.report("E10", line, 1, "A term has no name.", hint)
    for token in body:
        if token.type == "inline" and (no_heading := match_unspaced_heading(token)):
            report_unspaced_heading(
                "E10", get_first_line_number(token), no_heading, context.parse_context
            )
    meaning = render_tokens(body, context) if body else NO_TEXT
    if not meaning.html:
        hint = "Write one paragraph below the heading."
        context.parse_context.report("E10", line, 1, f"“{name}” has no meaning.", hint)
    see = [slugify(related_name) for related_name in related]
    see += re.findall(r'<a href="(/[^"]+)"', meaning.html)
    place = SourceLocation(context.parse_context.path, line)
    return GlossaryTerm(pinned or slugify(name), name, meaning, tuple(dict.fromkeys(see)), place)


def _split_see_also(body: list[Token]) -> tuple[list[Token], list[str]]:
    """Split a last paragraph `See: KV cache, Weights` off the meaning; return both."""
    index = 0
    while index < len(body):
        end = find_closing_index(body, index) + 1
        match = _SEE_ALSO_LINE.match(body[index + 1].content) if end - index == 3 else None
        if match:
            names = [" ".join(n.split()) for n in _COMMA_OF_ANY_SCRIPT.split(match[1])]
            related_names = [n for n in names if slugify(n)]
            return body[:index] + body[end:], related_names
        index = end
    return body, []


def _drop_duplicate_terms(
    terms: list[GlossaryTerm], parse_context: ParseContext
) -> tuple[GlossaryTerm, ...]:
    glossary_terms: dict[str, GlossaryTerm] = {}
    for term in terms:
        first = glossary_terms.get(term.anchor)
        if first is None:
            glossary_terms[term.anchor] = term
        else:
            message = f"“{term.name}” is defined in line {first.place.line} already."
            parse_context.report("W66", term.place.line, 1, message, "Keep one meaning.")
    return tuple(glossary_terms.values())


_NO_NAMES = compile_glossary_names(())


def parse_file(text: str, path: str, glossary_names: GlossaryNames = _NO_NAMES) -> ParsedFile:
    """Parse one file. `path` is relative to the content folder and determines the type.

    `glossary_names` are the glossary names to link on pages. Broken items are left out.
    """
    clean = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    valid = clean.replace("\0", "\ufffd").encode(errors="replace").decode()
    parse_context = ParseContext(path, valid)
    try:
        parsed = _parse_by_file_type(parse_context, glossary_names)
    except Exception as error:  # noqa: BLE001 - no file may stop the server
        parse_context.current_item = ""
        parse_context.report_parsing_failure(error, "This file")
        parse_context.references.clear()
        parse_context.edits.clear()
        parse_context.unidentified_items.clear()
        parsed = ParsedFile(path)
    return _add_problems_edits_and_references(parse_context, parsed)


def _parse_by_file_type(parse_context: ParseContext, glossary_names: GlossaryNames) -> ParsedFile:
    path = PurePosixPath(parse_context.path)
    if path.suffix == ".svg":
        report_source_text_problems(parse_context)
        lines = 1, len(parse_context.lines)
        text = check_and_unlink_figures(parse_context.text, SVG_FIGURE, parse_context, *lines)
        return ParsedFile(parse_context.path, drawing=sanitize_svg(text))
    if len(parse_context.lines) > MOST_LINES:
        message = f"The file has {len(parse_context.lines):,} lines; the limit is {MOST_LINES:,}."
        raise LimitExceededError(message, "Split it into several topics.", MOST_LINES)
    if path.parts[:1] == ("exams",):
        exam, entry_lines = (
            parse_exam_blueprint(parse_context, path.stem),
            _map_domains_to_lines(parse_context),
        )
        return ParsedFile(parse_context.path, exam=exam, line_by_register_entry=entry_lines)
    report_source_text_problems(parse_context)
    reader = _READER_BY_FILE_NAME.get(parse_context.path.removeprefix("shared/"))
    return (
        reader(parse_context) if reader else parse_topic_file(parse_context, path, glossary_names)
    )


_TOML_KEY_LINE = re.compile(r"""^\s*["']?([\w.-]+)["']?\s*=""")


def _map_domains_to_lines(parse_context: ParseContext) -> dict[str, int]:
    """Return the lines of a mock exam's [domains] table, by number of the domain."""
    lines = [text.strip() for text in parse_context.lines]
    first = lines.index("[domains]") + 1 if "[domains]" in lines else len(lines)
    matches = enumerate(map(_TOML_KEY_LINE.match, lines[first:]), first + 1)
    return {match[1]: line for line, match in matches if match}


_READER_BY_FILE_NAME: dict[str, Callable[[ParseContext], ParsedFile]] = {
    "syllabus.toml": lambda s: ParsedFile(
        s.path, syllabus=parse_syllabus(s), line_by_register_entry=map_register_entries_to_lines(s)
    ),
    "sources.toml": lambda s: ParsedFile(
        s.path,
        cited_sources=parse_sources(s),
        line_by_register_entry=map_register_entries_to_lines(s),
    ),
    "glossary.md": lambda s: ParsedFile(s.path, glossary_terms=parse_glossary(s)),
    "ids.lock": lambda s: ParsedFile(s.path, lock_entries=parse_lock_file(s)),
}


def _add_problems_edits_and_references(
    parse_context: ParseContext, parsed: ParsedFile
) -> ParsedFile:
    """Add what was collected while reading: problems, edits, references."""
    has_prose = parse_context.path.endswith((".md", ".svg"))
    return dataclasses.replace(
        parsed,
        amounts=find_amounts_in_source(parse_context.text) if has_prose else NO_AMOUNTS,
        text_digest=hashlib.sha256(parse_context.text.encode()).hexdigest()[:16],
        cross_references=tuple(parse_context.references),
        text_edits=tuple(parse_context.edits),
        broken_comment_ids=tuple(dict.fromkeys(parse_context.broken_comment_ids)),
        unidentified_items=tuple(parse_context.unidentified_items),
        problems=tuple(sorted(set(parse_context.problems))),
    )
