"""Builds questions and cards from the items of a file."""

import dataclasses
import itertools
import re
import textwrap
from typing import Any

from markdown_it.token import Token

from app.content.front_matter import (
    ITEM_TYPES,
    PARTIAL_CREDIT_RULES,
    FileKind,
    FrontMatter,
    ItemMetadata,
    PartialCreditRule,
    parse_question_parameters,
    read_item_metadata,
)
from app.content.item_rules import report_markup_typos
from app.content.misread_markup import report_foreign_markup, report_misread_answer_lines
from app.markup import expressions
from app.markup.html_renderer import RenderContext, check_and_unlink_figure_links, render_tokens
from app.markup.markdown_tokens import find_closing_index, get_first_line_number
from app.markup.model import Flashcard, QuestionParameters, RichText, SourceLocation
from app.markup.problems import MOST_HINTS, MOST_OPTIONS, ParseContext
from app.markup.text import content_hash, reduce_to_words, write_hint_for_unknown_word
from app.questions.model import Question
from app.questions.option_parsing import (
    ParsedOption,
    is_task_list,
    read_task_list_options,
    render_optional_rich_text,
    report_unsupported_partial_credit,
)
from app.questions.question_type import AuthoredItem, ItemParts, ItemSource, QuestionType
from app.questions.types import QUESTION_TYPES
from app.questions.types.choice import infer_choice_kind
from app.questions.types.cloze import find_block_with_blank, render_cloze_card_faces

_LAB_BLOCK = re.compile(r"console\s+\S")
_ROLE_BY_ALERT = {
    "TIP": "hint",
    "NOTE": "explanation",
    "IMPORTANT": "explanation",
    "CAUTION": "mistake",
    "WARNING": "mistake",
}


@dataclasses.dataclass(slots=True)
class ParsedItem:
    """A parsed item, with the authored form that the rules check."""

    item: Question | Flashcard
    authored: AuthoredItem


def build_item(
    source: ItemSource, file_kind: FileKind, front_matter: FrontMatter, context: RenderContext
) -> ParsedItem | None:
    """Build one item; None if its comment or type is invalid."""
    parse_context = context.parse_context
    parse_context.current_item = source.comment.id
    if not source.comment.id:
        return None
    context.first_line, context.last_line = source.line, source.line + source.text.count("\n")
    report_foreign_markup(source.heading, parse_context)
    report_markup_typos(source.body, parse_context)
    if not source.heading.content.strip():
        hint = "Write the question, or the front of the card, behind the ###."
        parse_context.report("E32", source.line, 1, "The item has no words to ask with.", hint)
    computed = parse_question_parameters(source.comment, parse_context)
    if computed:
        expressions.protect_placeholders_in_math([source.heading, *source.body], computed)
    parts = _split_body_into_parts(source, parse_context)
    item_type = _find_declared_or_inferred_type(source, parts, file_kind, parse_context)
    # A question must not link to its answer; its explanation keeps the links.
    explanation_blocks = [parts.explanation, parts.mistake, *(o.feedback for o in parts.options)]
    kept_ids = {id(t) for tokens in explanation_blocks for t in tokens if item_type != "card"}
    tokens = (source.heading, *source.body, *(o.text_token for o in parts.options))
    check_and_unlink_figure_links([t for t in tokens if id(t) not in kept_ids], context)
    report_misread_answer_lines(source, parts, item_type, parse_context)
    _drop_parts_beyond_limit(source, parts, parse_context)
    if not item_type:
        return None
    if file_kind == "cards" and item_type != "card":
        location = source.comment.field_location("type")
        message = f"A question of the type “{item_type}” stands among the cards."
        hint = "Move it into quiz.md; or write a card: ### A sentence with its [[gap]]., or "
        hint += "a heading and its answer as text, without type: and boxes."
        parse_context.report("E13", *location, message, hint)
    _report_unsupported_options(source, parts, item_type, parse_context)
    metadata = read_item_metadata(
        source.comment, item_type, front_matter, parse_context, is_page=file_kind == "page"
    )
    authored = AuthoredItem(
        source, parts, context, computed is not None, is_file_open_to_exams=file_kind == "quiz"
    )
    if item_type == "card":
        _report_options_on_card(source, parse_context)
        return ParsedItem(_build_flashcard(authored, metadata), authored)
    question = _build_question(authored, QUESTION_TYPES[item_type], computed, metadata)
    # Other formats carry no links.
    check_and_unlink_figure_links(itertools.chain.from_iterable(explanation_blocks))
    return ParsedItem(question, authored)


def _report_unsupported_options(
    source: ItemSource, parts: ItemParts, type_name: str, parse_context: ParseContext
) -> None:
    """Report E24: options in a question type that takes none."""
    if (
        parts.options
        and type_name in QUESTION_TYPES
        and not QUESTION_TYPES[type_name].has_option_boxes
    ):
        message = f"A question of the type “{type_name}” reads no options in boxes."
        option_text = parts.options[0].plain_text
        hint = {
            "match": f"Write a wrong answer as a row with an empty left cell: | | {option_text} |",
            "cloze": f"Write a wrong answer into its gap: [[right ~ {option_text}]].",
        }.get(type_name, "Take them out, or change the type.")
        parse_context.report("E24", parts.answer_line or source.line, 1, message, hint)


def _report_options_on_card(source: ItemSource, parse_context: ParseContext) -> None:
    """Report E24: options on a card, which would be shown with their boxes."""
    for at, token in enumerate(source.body):
        if token.type == "bullet_list_open" and is_task_list(source.body[at:]):
            message = "A card reads no options in boxes."
            hint = "Take the boxes out; or make it a question: take type: card out, in quiz.md."
            parse_context.report("E24", get_first_line_number(token), 1, message, hint)
            return


def _report_misplaced_card_gaps(source: ItemSource, parse_context: ParseContext) -> None:
    """Report E12, E54: a gap on the back, on a front with a back, or on a card with a reverse."""
    gap = find_block_with_blank([source.heading])
    reverse = source.comment.fields.keys.get("reverse")
    token = find_block_with_blank(source.body)
    if token or (gap and any(t.type != "hr" for t in source.body)):
        message = "A card with a gap is its heading alone: the back is the same, filled."
        hint = "Write ### A sentence with its [[gap]]. and nothing below it, "
        hint += "or take the brackets out."
        line = get_first_line_number(token) if token else source.line
        parse_context.report_at_text("E54", "[[", line, line + 20, message, hint)
    elif gap and reverse:
        message = "A card with a gap cannot be asked the other way round."
        parse_context.report("E12", reverse.line, reverse.column, message, "Leave the line out.")


def _split_body_into_parts(source: ItemSource, parse_context: ParseContext) -> ItemParts:
    """Split the body into stem, answer blocks and alerts."""
    parts = ItemParts([], [], [], [], [], [])
    declared_type = source.comment.field_text("type") or (
        "console" if _is_marked_as_lab(source) else ""
    )
    body = source.body
    at = 0
    has_answer = False
    while at < len(body):
        end = find_closing_index(body, at) + 1
        block = body[at:end]
        role = _ROLE_BY_ALERT.get(body[at].meta.get("alert", ""))
        if role and declared_type != "card":
            if role == "hint":
                parts.hints.append(block[1:-1])
            else:
                (parts.explanation if role == "explanation" else parts.mistake).extend(block[1:-1])
        elif _store_if_answer_block(block, declared_type, parts, parse_context):
            has_answer = True
        elif _store_if_quote_below_answer(
            block, body[at - 1] if at else None, parts, parse_context
        ):
            pass
        else:
            (parts.explanation if has_answer else parts.stem).extend(block)
        at = end
    return parts


def _is_marked_as_lab(source: ItemSource) -> bool:
    """Return whether keys of the comment or a `console` block mark the item as a lab."""
    keys = QUESTION_TYPES["console"].comment_keys
    return any(key in source.comment.fields.values for key in keys) or any(
        t.type == "fence" and _LAB_BLOCK.match(t.info) for t in source.body
    )


def _drop_parts_beyond_limit(
    source: ItemSource, parts: ItemParts, parse_context: ParseContext
) -> None:
    for label, limit, entries in (
        ("options", MOST_OPTIONS, parts.options),
        ("hints", MOST_HINTS, parts.hints),
    ):
        if len(entries) > limit:
            message = f"The question has {len(entries):,} {label}."
            parse_context.report("E88", source.line, 1, message, f"Use at most {limit}.")
            del entries[limit:]


def _store_if_answer_block(
    block: list[Token], type_name: str, parts: ItemParts, parse_context: ParseContext
) -> bool:
    """Store a block if it is part of the answer. Returns whether it was."""
    kind = block[0].type
    if kind == "fence":
        kind = f"fence {block[0].info.partition(' ')[0]}"
    if type_name == "card":
        return False
    if kind == "bullet_list_open" and is_task_list(block):
        parts.answer_line = parts.answer_line or (block[0].map or [0])[0] + 1
        parts.options.extend(read_task_list_options(block, parse_context))
        return True
    is_answer_form = (
        type_name in QUESTION_TYPES and QUESTION_TYPES[type_name].answer_block_type == kind
    )
    if is_answer_form and QUESTION_TYPES[type_name].may_have_several_answer_blocks:
        parts.answer_block.extend(block)
        return True
    if kind == "ordered_list_open" and not is_answer_form and is_task_list(block):
        if not parts.options:
            message = "The options are numbered."
            hint = "Write - [ ] text for each of them."
            parse_context.report("E24", get_first_line_number(block[0]), 1, message, hint)
        parts.options.extend(read_task_list_options(block, parse_context))
        return True
    if is_answer_form and not parts.answer_block:
        parts.answer_block = block
        return True
    return False


def _store_if_quote_below_answer(
    block: list[Token], previous_token: Token | None, parts: ItemParts, parse_context: ParseContext
) -> bool:
    """Store a quote below a block of the answer, or unindented below an option (W25), with it.

    Returns whether it was stored.
    """
    is_below_option = previous_token is not None and previous_token.type == "bullet_list_close"
    is_plain_quote = block[0].type == "blockquote_open" and not block[0].meta.get("alert")
    if (
        is_plain_quote
        and parts.answer_block
        and parts.answer_block[-1] is previous_token
        and previous_token.type == "fence"
    ):
        parts.answer_block.extend(block)
        return True
    if not (is_below_option and is_plain_quote and parts.options) or parts.options[-1].feedback:
        return False
    parts.options[-1].feedback = block[1:-1]
    message = "This reason is not indented, so that it stands below no option."
    option = textwrap.shorten(parts.options[-1].plain_text, 40, placeholder="…")
    hint = f"Write two spaces before its >; it is taken for “{option}”."
    parse_context.report("W25", get_first_line_number(block[0]), 1, message, hint)
    return True


def _infer_non_choice_type(source: ItemSource, options: list[ParsedOption]) -> str:
    """Infer the type of an untyped item from its form; empty for a choice question.

    Keys that only one type has come first, then the blocks of the body, then the options.
    """
    keys = source.comment.fields.values
    blocks = [] if any(option.ticked for option in options) else source.body
    kinds = QUESTION_TYPES.values()
    by_form = [kind for kind in kinds if kind.is_implied_by_options(options)]
    matching_types = itertools.chain(
        (kind.name for kind in by_form if kind.key_implying_type in keys),
        (kind.name for t in blocks for kind in kinds if kind.is_implied_by_block(t, options)),
        (kind.name for kind in by_form if not kind.key_implying_type),
    )
    return next(matching_types, "")


def _extract_answer_block(parts: ItemParts, opening_token_type: str) -> None:
    """Move the list or table with the answer from the stem or explanation to `answer_block`.

    The text after it becomes explanation, as in an item with a declared type.
    """
    if not opening_token_type:
        return
    for tokens in (parts.stem, parts.explanation):
        at = next(
            (i for i, t in enumerate(tokens) if t.type == opening_token_type and not t.level), None
        )
        if at is None:
            continue
        end = find_closing_index(tokens, at) + 1
        parts.answer_block, after = tokens[at:end], tokens[end:]
        del tokens[at:]
        if tokens is parts.stem:
            parts.explanation[:0] = after
        else:
            parts.explanation.extend(after)
        return


# The types by their names in other programs.
_TYPE_BY_OTHER_NAME = {
    other: name
    for name, others in {
        "single, or multiple if several are right": "choice, multiple choice, multichoice, mc, mcq",
        "single": "one, one right answer, single choice, radio, best answer",
        "multiple": "several, multiple answers, multiple response, multiple select, checkbox, mr",
        "true-false": "tf, t/f, true or false, true false, truefalse, boolean, yes no",
        "numeric": "number, numerical, calculated, computed, calculation",
        "short": "word, text, short answer, shortanswer, typed, identification, open, input",
        "order": "sort, sorting, ordering, sequence, steps, ranking, rank",
        "match": "pairs, pair, matching, connect, association, table",
        "cloze": "blank, blanks, gap, gaps, gap fill, fill in, fill in the blank, missing word",
        "place": "hotspot, drag and drop, label, labels, drawing, image, diagram, ddmarker",
        "console": "lab, terminal, shell, command, commands, simulation",
        "card": "flashcard, flash card, basic",
        "short, with every wording that counts: no program judges an essay": "essay, long answer",
    }.items()
    for other in others.split(", ")
}


def _find_declared_or_inferred_type(
    source: ItemSource, parts: ItemParts, file_kind: FileKind, parse_context: ParseContext
) -> str:
    """Return the declared or inferred type; reports a missing one and returns ""."""
    declared_type = source.comment.field_text("type")
    if declared_type and declared_type not in ITEM_TYPES:
        location = source.comment.field_location("type")
        hint = write_hint_for_unknown_word(declared_type, ITEM_TYPES)
        if known_type := _TYPE_BY_OTHER_NAME.get(re.sub(r"[\s_-]+", " ", declared_type.lower())):
            hint = f"Write type: {known_type}."
        parse_context.report("E13", *location, f"“{declared_type}” is not a type.", hint)
        return ""
    return declared_type or _infer_missing_type(source, parts, file_kind, parse_context)


def _infer_missing_type(
    source: ItemSource, parts: ItemParts, file_kind: FileKind, parse_context: ParseContext
) -> str:
    if file_kind == "cards" and not parts.options:
        return "card"
    if _is_marked_as_lab(source):
        return "console"
    inferred_type = _infer_non_choice_type(source, parts.options)
    is_unticked = bool(parts.options) and not any(o.ticked for o in parts.options)
    if inferred_type and QUESTION_TYPES[inferred_type].answer_block_type and is_unticked:
        message = "Is this a list of steps with distractors, or a choice without a tick?"
        hint = f"Write type: {inferred_type} into its comment, or tick the right option."
        location = source.comment.first_line, source.comment.column
        parse_context.report("E13", *location, message, hint, is_consequence=True)
        return ""
    if inferred_type:
        _extract_answer_block(parts, QUESTION_TYPES[inferred_type].answer_block_type)
        return inferred_type
    if parts.options:
        return infer_choice_kind(parts.options)
    message = "This question has no answers."
    hint = "Write options as - [ ] and - [x], a numbered list, a table, or a blank: [[answer]]."
    location = source.comment.first_line, source.comment.column
    parse_context.report("E13", *location, message, hint, is_consequence=True)
    return ""


def _build_flashcard(authored: AuthoredItem, metadata: ItemMetadata) -> Flashcard:
    """Build a card. A front with blanks and no back becomes a cloze card."""
    source, context = authored.source, authored.context
    body = [t for t in source.body if t.type != "hr"]
    has_gap = find_block_with_blank([source.heading]) is not None
    _report_misplaced_card_gaps(source, context.parse_context)
    if has_gap and not body:
        front, back = render_cloze_card_faces(authored)
    else:
        front, back = render_tokens([source.heading], context), render_tokens(body, context)
    if back.plain.strip() and reduce_to_words(back.plain) == reduce_to_words(front.plain):
        hint = "Write the answer, or what the term means."
        message = f"The back of “{front.plain[:60]}” says the same as its front."
        context.parse_context.report("E57", source.line, 1, message, hint)
    if not back.html:
        hint = "Write the answer as text below the comment."
        message = f"The card “{front.plain[:60]}” has no back."
        context.parse_context.report("E57", source.line, 1, message, hint)
    return Flashcard(
        source.comment.id,
        context.topic_folder,
        front,
        back,
        metadata.objectives,
        SourceLocation(context.parse_context.path, source.line),
        content_hash(source.text),
        metadata.sources,
        metadata.tags,
        level=metadata.level,
        status=metadata.status,
    )


def _build_question(
    authored: AuthoredItem,
    question_type: QuestionType[Any],
    parameters: QuestionParameters | None,
    metadata: ItemMetadata,
) -> Question:
    source, parts, context = authored.source, authored.parts, authored.context
    outer_citations = list(context.cited_source_keys)
    context.cited_source_keys.clear()
    answer = question_type.parse_answer(authored)
    if not question_type.supports_weighted_options:
        report_unsupported_partial_credit(parts.options, question_type.name, context.parse_context)
    stem = _build_stem(authored, question_type)
    question = Question(
        source.comment.id,
        context.topic_folder,
        question_type.name,
        stem,
        answer,
        metadata.objectives,
        SourceLocation(context.parse_context.path, source.line),
        content_hash(source.text),
        _read_difficulty(source, context.parse_context),
        metadata.sources,
        metadata.tags,
        tuple(render_tokens(hint, context) for hint in parts.hints),
        render_optional_rich_text(parts.explanation, context),
        render_optional_rich_text(parts.mistake, context),
        _read_partial_credit_rule(source, question_type, context.parse_context),
        parameters,
        level=metadata.level,
        use=metadata.use,
        status=metadata.status,
    )
    sources = tuple(dict.fromkeys((*metadata.sources, *context.cited_source_keys)))
    context.cited_source_keys[:] = outer_citations
    question = dataclasses.replace(question, sources=sources)
    return (
        expressions.restore_placeholders_in_math(question, parameters) if parameters else question
    )


def _build_stem(authored: AuthoredItem, question_type: QuestionType[Any]) -> RichText:
    """Return the heading, followed by everything before the answers."""
    context = authored.context
    heading = render_tokens([authored.source.heading], context)
    body = [] if question_type.gap_pattern else [t for t in authored.parts.stem if t.type != "hr"]
    if not body:
        return heading
    body_text = render_tokens(body, context)
    if not body_text.html:
        return heading
    body_html = body_text.html if body_text.html.startswith("<") else f"<p>{body_text.html}</p>"
    return RichText(f"<p>{heading.html}</p>\n{body_html}", f"{heading.plain}\n{body_text.plain}")


def _read_difficulty(source: ItemSource, parse_context: ParseContext) -> int:
    value = source.comment.field_text("difficulty")
    if "difficulty" not in source.comment.fields.values:
        return 3
    if re.fullmatch(r"[1-5]", value):
        return int(value)
    location = source.comment.field_location("difficulty")
    message = f"Difficulty “{value[:20]}” is not a whole number from 1 to 5."
    parse_context.report("E15", *location, message, "Write difficulty: 3.")
    return 3


_PARTIAL_MEANING = {
    "off": "all or nothing",
    "net": "what is right less what is wrong",
    "each": "each part that is right counts",
    "lcs": "the longest run in the right order counts",
}


def _build_partial_credit_hint(question_type: QuestionType[Any]) -> str:
    known_rules = (
        question_type.credit_rules
        if question_type.supports_partial_credit
        else PARTIAL_CREDIT_RULES
    )
    rules = ", or ".join(f"{rule} ({_PARTIAL_MEANING[rule]})" for rule in known_rules if rule)
    return f"Write partial: {rules}."


def _read_partial_credit_rule(
    source: ItemSource, question_type: QuestionType[Any], parse_context: ParseContext
) -> PartialCreditRule:
    rule_name = source.comment.field_text("partial")
    partial = PARTIAL_CREDIT_RULES.get(rule_name)
    location = source.comment.field_location("partial")
    if (
        partial
        and question_type.supports_partial_credit
        and partial not in question_type.credit_rules
    ):
        message = f"“{rule_name}” is no way of partial credit for the type “{question_type.name}”."
        parse_context.report("E13", *location, message, _build_partial_credit_hint(question_type))
    if partial is not None:
        return partial
    hint = _build_partial_credit_hint(question_type)
    if rule_name == "coverage":
        hint = "This rule was removed. Write partial: net, which counts hits less wrong ticks."
    parse_context.report("E13", *location, f"“{rule_name}” is not a way of partial credit.", hint)
    return ""
