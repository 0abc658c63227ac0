"""Rules for a single item or file."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from markdown_it.token import Token

from app.content.misread_markup import report_foreign_markup
from app.markup.expressions import (
    PLACEHOLDER_PATTERN,
    ExpressionError,
    compile_expression,
    find_malformed_placeholders,
    function_name_or_empty,
    replace_rich_texts_within,
)
from app.markup.html_renderer import ALERT_KINDS, RenderContext, can_highlight_language
from app.markup.markdown_tokens import (
    BROKEN_COMMENT_START,
    get_first_line_number,
    get_last_line_number,
)
from app.markup.model import Flashcard, QuestionParameters, RichText
from app.markup.problems import (
    COMBINATION_EFFORT,
    ParseContext,
    TextPosition,
    parsing_effort_of_estimate,
)
from app.markup.quantities import (
    FORMAT_SPEC_PATTERN,
    UNIT_SPELLINGS,
    UNITS,
    format_unit_dimension,
    format_with_spec,
)
from app.markup.text import (
    ENDS,
    UNSPACED_ENDS,
    count_words,
    find_closest_word_or_empty,
    reduce_to_words,
    shorten_with_ellipsis,
    write_hint_for_unknown_word,
)
from app.questions import model, types
from app.questions.model import Question
from app.questions.question_type import AuthoredItem, ItemSource, VariantFault

_QUOTED_WORD = re.compile(r"“(\w+)”")
_ANY_WORD = re.compile(r"\w+")
_MAX_ITEM_LINES = 1_000  # maximum lines of an item


class _ComputedQuestionChecker:
    """The check of a question with parameters: E46, E47, W48, W49, and its type's own rules."""

    def __init__(
        self, question: Question, parameters: QuestionParameters, authored: AuthoredItem
    ) -> None:
        self.question = question
        self.computed = parameters
        self.kind = types.question_type_of(question)
        self.comment, self.parse_context = authored.comment, authored.parse_context
        self.expressions = [text for _, text in parameters.named_expressions]
        self.seeds = model.list_seeds_up_to_variant_limit(question)
        self.templates: list[str] = []
        replace_rich_texts_within(question, self._collect_template)
        self.templates += self.kind.list_templates_outside_rich_texts(question.answer)

    def _collect_template(self, text: RichText) -> RichText:
        self.templates.append(text.plain)
        return text

    def check_and_report(self) -> None:
        if not self._check_placeholders_and_parameter_use():
            return
        self.parse_context.spend_parsing_effort(self._estimate_microseconds())
        if self._check_all_combinations():
            self._report_unvarying_answer()

    def _report_unvarying_answer(self) -> None:
        """Report W49: the same answer whatever the parameters are."""
        right_answers = (self._computed_right_answers(seed) for seed in self.seeds)
        first = next(right_answers, ())
        if first and len(self.seeds) > 1 and all(answers == first for answers in right_answers):
            message = f"Whatever the parameters, the answer is {', '.join(first)[:60]}."
            hint = "Correct the expression, or ask without parameters."
            self.parse_context.report("W49", *self.comment.field_location("let"), message, hint)

    def _check_all_combinations(self) -> bool:
        """Return whether every combination has an answer. Stops after three kinds of faults."""
        reported_codes: set[str] = set()
        for seed in self.seeds:
            chosen = model.build_nth_combination(self.computed, seed)
            for code, message, hint in self._find_faults(chosen):
                if code in reported_codes:
                    continue
                reported_codes.add(code)
                values = {
                    n: v if isinstance(v, str) else format_with_spec(v) for n, v in chosen.items()
                }
                values_text = ", ".join(f"{name} = {value}" for name, value in values.items())
                location = self.comment.field_location("params")
                if code != "W48":  # it is caused by a parameter, not an answer
                    location = self._locate_quoted_expression(message)
                self.parse_context.report(code, *location, f"With {values_text}: {message}", hint)
            if len(reported_codes) >= 3:
                break
        return not reported_codes

    def _find_faults(self, chosen: Mapping[str, str | float]) -> list[VariantFault]:
        try:
            values = model.evaluate_combination(self.computed, chosen)
            return self.kind.find_variant_faults(self.question.answer, self.question.stem, values)
        except ExpressionError as error:
            code = error.code if error.code in {"E41", "E42", "E44"} else "E47"
            return [VariantFault(code, error.message, error.hint)]

    def _locate_quoted_expression(self, message: str) -> TextPosition:
        """Return the position of the expression that a message quotes, or of a computed answer."""
        quoted = [text for text in self.expressions if f"“{text}”" in message]
        names = set(_QUOTED_WORD.findall(message)) if not quoted else set()
        quoted += [text for text in self.expressions if names & set(_ANY_WORD.findall(text))]
        answer, first = self.question.answer, self.question.place.line
        answers = [option.text for option in self.kind.options_for_statistics(answer)]
        answers += self.kind.list_templates_outside_rich_texts(answer)
        computed_answers = [text for text in answers if PLACEHOLDER_PATTERN.search(text)]
        for text in (*quoted, *reversed(computed_answers)):
            location = self.parse_context.locate_text(text, first, first + _MAX_ITEM_LINES)
            if location != TextPosition(first, 1):
                return location
        return self.comment.field_location("params")

    def _computed_right_answers(self, seed: int) -> tuple[str, ...]:
        """Return the correct answers of one combination; empty if they are not computed."""
        answer = self.question.answer
        if not any(map(PLACEHOLDER_PATTERN.search, self.kind.right_answer_texts(answer))):
            return ()
        chosen = model.build_nth_combination(self.computed, seed)
        try:
            values = model.evaluate_combination(self.computed, chosen)
            return tuple(
                self.kind.right_answer_texts(self.kind.fill_answer_placeholders(answer, values))
            )
        except ExpressionError:
            return ()

    def _estimate_microseconds(self) -> float:
        per_combination = COMBINATION_EFFORT + 0.05 * sum(map(len, self.templates))
        per_combination += self.kind.option_comparison_microseconds(self.question.answer)
        for text in self.expressions:
            names = map(function_name_or_empty, compile_expression(text).estimate_calls)
            per_combination += len(text) + sum(map(parsing_effort_of_estimate, names))
        return per_combination * len(self.seeds)

    def _check_placeholders_and_parameter_use(self) -> bool:
        """Report E46: placeholders that are malformed or undefined, and unused parameters."""
        problem_count = len(self.parse_context.problems)
        known_names = {
            *self.computed.possible_values_by_name,
            *(name for name, _ in self.computed.named_expressions),
        }
        used_names = {
            match[1] for text in self.templates for match in PLACEHOLDER_PATTERN.finditer(text)
        }
        for text in self.templates:
            for malformed in find_malformed_placeholders(text, known_names):
                message = f"“{malformed[:40]}” is not a placeholder, and is shown as it is."
                hint = "Write {name} or {name:.3g}, and compute in let."
                self._report_invalid_placeholder(malformed, message, hint)
            for name, spec in dict.fromkeys(PLACEHOLDER_PATTERN.findall(text)):
                if name not in known_names:
                    self._report_undefined_placeholder(name, known_names)
                elif not FORMAT_SPEC_PATTERN.match(spec):
                    message = f"“{spec}” is not a number format."
                    hint = "Use , or .2f or .3g."
                    self._report_invalid_placeholder(f"{{{name}:{spec}", message, hint)
        mentioned_names = set(_ANY_WORD.findall(" ".join(self.expressions)))
        for name in self.computed.possible_values_by_name:
            if name not in used_names | mentioned_names:
                message = f"The parameter “{name}” is never used."
                location = self.comment.field_location("params")
                self.parse_context.report("E46", *location, message, "Use or delete it.")
        return len(self.parse_context.problems) == problem_count

    def _report_undefined_placeholder(self, name: str, known_names: Collection[str]) -> None:
        line = self.parse_context.locate_text(f"{{{name}", self.question.place.line, 10**6).line
        hint = f"Known: {', '.join(sorted(known_names))}."
        if re.search(rf"[\\_^}}]\w*\{{{name}", self.parse_context.lines[line - 1]):
            hint += f" For a brace of a formula leave spaces: {{ {name} }}"
        self._report_invalid_placeholder(
            f"{{{name}", f"The placeholder {{{name}}} is not defined.", hint
        )

    def _report_invalid_placeholder(self, placeholder_text: str, message: str, hint: str) -> None:
        first = self.question.place.line
        self.parse_context.report_at_text("E46", placeholder_text, first, 10**6, message, hint)


_MOST_WORDS = 120
# minimum single choices of a file, and maximum share of one position
_MIN_SINGLE_CHOICES, _MAX_SHARE_OF_ONE_POSITION = 8, 0.6
_EFFORT_PER_SEARCHED_CHARACTER = 0.001  # microseconds for each character searched
_QUESTION_WORD = re.compile(r"\b(?:which|what|who|when|where)\b", re.IGNORECASE)
_NEGATIVE_WORD = re.compile(r"\b(?:not|except|never)\b", re.IGNORECASE)


def report_item_problems(item: Question | Flashcard, authored: AuthoredItem) -> None:
    parse_context = authored.parse_context
    _report_footnotes_in_item(authored.source, parse_context)
    if isinstance(item, Flashcard):
        _report_placeholders_without_parameters(authored.source, parse_context, is_card=True)
        return
    types.question_type_of(item).report_answer_problems(item.answer, authored)
    has_errors = authored.source.has_invalid_comment or any(
        p.severity == "error" and p.item == item.id
        for p in parse_context.problems[parse_context.problem_count_before_item :]
    )
    if item.computed and not has_errors:
        _ComputedQuestionChecker(item, item.computed, authored).check_and_report()
    elif not item.computed:
        _report_placeholders_without_parameters(authored.source, parse_context)
    _report_wording_problems(item, authored.source.heading, parse_context)


def _report_wording_problems(
    question: Question, heading: Token, parse_context: ParseContext
) -> None:
    """Report W29, W65, W67: negation, length, hints; and the type's own wording rules."""
    line = get_first_line_number(heading)
    _report_unemphasized_negation(heading, line, parse_context)
    types.question_type_of(question).report_wording_problems(
        question.answer, question.stem, line, parse_context
    )
    count = count_words(question.stem.plain)
    if count > _MOST_WORDS:
        message = f"The stem has {count} words; more than {_MOST_WORDS} are too many."
        parse_context.report("W65", line, 1, message, "Shorten it.")
    _report_hint_containing_answer(question, line, parse_context)


def _report_footnotes_in_item(source: ItemSource, parse_context: ParseContext) -> None:
    """Report W96: a footnote's explanation inside an item, where it is not shown."""
    for token in source.body:
        if token.type == "note_open":
            message = f"“[^{token.content}]:” stands in an item, where nothing shows it."
            hint = f"Move it to the page, or write source: {token.content} in the item."
            parse_context.report("W96", get_first_line_number(token), 1, message, hint)


def _report_placeholders_without_parameters(
    source: ItemSource, parse_context: ParseContext, *, is_card: bool = False
) -> None:
    """Report E46: a placeholder in an item without parameters."""
    for token in (source.heading, *source.body):
        first = get_first_line_number(token) if token.type == "inline" else 0
        for child in (token.children or ()) if first else ():
            match = PLACEHOLDER_PATTERN.search(child.content) if child.type == "text" else None
            if match is None or f"\\{match[0]}" in token.content:
                continue
            location = parse_context.locate_text(match[0], first, first + token.content.count("\n"))
            noun = "card" if is_card else "item"
            escape_hint = f"as code, `{match[0]}`, or \\{match[0]}."
            message = f"“{match[0]}” is shown as it stands: the {noun} has no params."
            hint = f"Define {match[1]} in params, or write it {escape_hint}"
            hint = f"Write it {escape_hint}" if is_card else hint
            parse_context.report("E46", *location, message, hint, is_consequence=True)
            return


def _report_unemphasized_negation(heading: Token, line: int, parse_context: ParseContext) -> None:
    """Report W29: an unemphasized "not", which readers easily miss."""
    emphasis_depth = 0
    plain = ""
    for child in heading.children or []:
        if child.type in {"strong_open", "em_open"}:
            emphasis_depth += 1
        elif child.type in {"strong_close", "em_close"}:
            emphasis_depth -= 1
        elif not emphasis_depth and child.type == "text":
            plain += child.content
    question_word = _QUESTION_WORD.search(plain)
    negations = _NEGATIVE_WORD.findall(plain, question_word.end()) if question_word else []
    if negations and negations[-1].islower():
        message = f"The question turns on “{negations[-1]}”, which has no emphasis."
        hint = f"Ask for what is so, or write **{negations[-1]}**."
        parse_context.report("W29", line, 1, message, hint)


def _report_hint_containing_answer(
    question: Question, line: int, parse_context: ParseContext
) -> None:
    hints = [f" {reduce_to_words(hint.plain)} " for hint in question.hints]
    texts = types.question_type_of(question).right_answer_texts(question.answer)
    words = (reduce_to_words(text) for text in texts if not PLACEHOLDER_PATTERN.search(text))
    answers = [answer for answer in words if len(answer) >= 3]
    parse_context.spend_parsing_effort(
        len(answers) * sum(map(len, hints)) * _EFFORT_PER_SEARCHED_CHARACTER
    )
    for answer in answers:
        for number, hint in enumerate(hints, 1):
            if f" {answer} " in hint:
                message = f"Hint {number} contains the answer “{answer}”."
                parse_context.report("W67", line, 1, message, "Point the way; do not arrive.")
                return


def report_unbalanced_right_positions(
    items: Iterable[Question | Flashcard], parse_context: ParseContext
) -> None:
    """Report W30: one position has most of the correct options of eight or more questions."""
    positions_and_lines = [
        (position, item.place.line)
        for item in items
        if isinstance(item, Question)
        and (
            position := types.question_type_of(item).guessable_position_of_only_right_option(
                item.answer
            )
        )
        is not None
    ]
    if len(positions_and_lines) < _MIN_SINGLE_CHOICES:
        return
    positions = [position for position, _ in positions_and_lines]
    commonest_position = max(set(positions), key=positions.count)
    share = positions.count(commonest_position) / len(positions)
    if share > _MAX_SHARE_OF_ONE_POSITION:
        parse_context.current_item = ""
        number = commonest_position + 1
        message = f"The right option is number {number} in {share:.0%} of the questions."
        parse_context.report("W30", positions_and_lines[0][1], 1, message, "Vary its position.")


# “8B” counts parameters and “16 bits” is the width of a format: neither is an amount.
_NO_AMOUNTS = frozenset({"B", "bits"})
_CURRENCY_SIGNS = "€£¥₹"  # before a number; a dollar sign may belong to a shell command
_AMOUNT_UNITS = sorted(
    {
        *(u for u in UNITS if format_unit_dimension(u) and u not in _NO_AMOUNTS),
        *UNIT_SPELLINGS,
        *(f"{letter}FLOPS" for letter in "GTPE"),
    },
    key=len,
    reverse=True,
)
# “The 1970s”, “4K” and “2N” are not amounts, but “5g” is.
_SPACED_UNIT = re.compile(r"[A-Zs]")
_PROSE_WORDS = "|".join(re.escape(u) for u in _AMOUNT_UNITS if not _SPACED_UNIT.fullmatch(u))
_LETTER_UNITS = "".join(u for u in _AMOUNT_UNITS if _SPACED_UNIT.fullmatch(u))
_NUMBER_PATTERN = r"\d(?:[\d,.]*\d)?"
_ANY_SPACE = "[ \u00a0\u202f]"
_AMOUNT_PATTERN = re.compile(
    rf"(?<![\w.,]){_NUMBER_PATTERN}(?:{_ANY_SPACE}?(?:{_PROSE_WORDS})|{_ANY_SPACE}[{_LETTER_UNITS}])(?![\w/²³^])"
    rf"|[{_CURRENCY_SIGNS}]{_ANY_SPACE}?{_NUMBER_PATTERN}"
)
_SENTENCE_BREAK = re.compile(rf"(?<=[{ENDS}])\s+|(?<=[{UNSPACED_ENDS}])")
_TOKENS_WITHOUT_AMOUNTS = frozenset({"link_open", "code_inline", "math_inline", "cite"})


# Headings and tables are exempt: the text repeats their numbers, with sources.
_EXEMPT_PARTS = ("heading", "note", "table")


def report_unsourced_numbers_of_passages(
    passages: Iterable[Sequence[Token]], context: RenderContext
) -> None:
    """Report W85: a number with a unit that is neither computed (a link) nor sourced."""
    context.parse_context.current_item = ""
    for passage in passages:
        open_blocks: set[str] = set()
        for token in passage:
            name, _, edge = token.type.rpartition("_")
            if name in _EXEMPT_PARTS:
                (open_blocks.add if edge == "open" else open_blocks.discard)(name)
            elif token.type == "inline" and not open_blocks:
                _report_unsourced_numbers(token, context)


def _report_unsourced_numbers(inline: Token, context: RenderContext) -> None:
    for sentence in _split_sentences_marking_footnotes(inline.children or []):
        if "\0" in sentence:
            continue
        for match in _AMOUNT_PATTERN.finditer(sentence):
            first, last = get_first_line_number(inline), get_last_line_number(inline)
            message = f"“{match[0]}” is neither computed nor sourced."
            hint = "End its sentence with the [^key] of a source; in a course with "
            hint += f"calculators one can compute it: [{match[0]}](calc:…#output)."
            context.parse_context.report_at_text("W85", match[0], first, last, message, hint)


def _split_sentences_marking_footnotes(children: Sequence[Token]) -> list[str]:
    """Return the sentences as plain text; NUL marks a footnote in or right after one."""
    text = ""
    link_depth = 0
    for child in children:
        if child.type == "link_open":
            link_depth += 1
        elif child.type == "link_close":
            link_depth -= 1
        elif child.type == "cite":
            text = f"{text.rstrip()}\0"
        elif link_depth or child.type in _TOKENS_WITHOUT_AMOUNTS:
            text += " … "
        elif child.type in {"softbreak", "hardbreak"}:
            text += " "
        else:
            text += child.content
    # A footnote after the full stop belongs to the sentence before.
    return _SENTENCE_BREAK.split(re.sub(r"([.!?])(\0+)", r"\2\1", text))


_COMPUTED_BLOCKS = ("calculator", "figure")
_CODE_HINT = (
    "Write a language, calculator or figure bar there. Any other drawing is an SVG file "
    "beside the page: ![what it shows](name.svg)"
)
CONFLICT_MARKER = re.compile(r"^(?:<{7} |>{7} |={7}$|\|{7} )")
# Invisible characters that change the direction of the following text.
_TEXT_DIRECTION_CONTROL = re.compile("[\u202a-\u202e\u2066-\u2069]")
# How the texts that `headroom new` writes begin.
_UNCHANGED_SCAFFOLD_TEXT = re.compile(
    r"^#+ (?:Starting point \d+: |Card \d+: what to recall about )"
    r"|^Begin with the number that matters, and why it does\."
    r"|^\s*<title>Two parts and a line</title>"
)
_BROKEN_ALERT_LINE = re.compile(
    rf"^[\s>]*>\s*(?P<box>\[?!? ?(?P<name>{'|'.join(ALERT_KINDS)})!?\]?:?)\s*$", re.IGNORECASE
)
# An alert without its >, or in the syntax of another program.
_FOREIGN_BOX = re.compile(
    rf"^(?:\[!(?:{'|'.join(ALERT_KINDS)})\]|(?:!!!|\?\?\?\+?) ?(\w+)|:::+ ?\{{?\.?([a-z-]+)).*",
    re.IGNORECASE,
)
# The start of a quote that other editors show as a box.
_BOX_NAMES = {
    **dict.fromkeys(("abstract", "summary", "example", "question", "quote", "todo"), "NOTE"),
    **dict.fromkeys(("note", "info", "remark", "\u2139", "\U0001f4dd", "\U0001f4d8"), "NOTE"),
    **dict.fromkeys(("tip", "hint", "success", "\U0001f4a1"), "TIP"),
    **dict.fromkeys(("important", "key point", "\u2757"), "IMPORTANT"),
    **dict.fromkeys(("warning", "caution", "danger", "attention", "error", "bug"), "WARNING"),
    **dict.fromkeys(("\u26a0", "\U0001f6a7", "\U0001f6d1"), "WARNING"),
}
_BOX_SIGNS = "".join(name for name in _BOX_NAMES if not name.isascii())
_ALERT_WORDS = "note|info|remark|tip|hint|important|key point|warning|caution|danger|attention"
_BOX_BEGIN = re.compile(
    rf"(?P<sign>[{_BOX_SIGNS}])|\*\*(?P<bold>{_ALERT_WORDS})[!:]?\*\*:?(?=\s|$)|(?P<plain>{_ALERT_WORDS}):(?=\s|$)",
    re.IGNORECASE,
)
_CODED_BOX = re.compile(r"^\s*[-*+] \[[ \txX]\] ")
# A check box that Markdown reads as text.
_LOST_BOX = re.compile(r"^(?:[-*+]\[[ \txX]?\]|\[[ \txX]\][ \t])")
_SECOND_BOX = re.compile(r"^(?:\[[ \txX]\]\s+.*\s[-*+]\s+|\[[ \txX]\]\s+)\[[ \txX]\]\s")
_BROKEN_FOOTNOTE = re.compile(r"\[\^[^\]]*\s[^\]]*\]")
_MISWRITTEN_FOOTNOTE = re.compile(r"\(\^(?P<key>[\w-]+)\)|\^\[(?P<other>[\w-]+)\]")
_LINK_WITH_SPACE = re.compile(r"\[[^\[\]]+\]\((?:\.{1,2}/|https?://|#)[^()\"]*\s[^()\"]*\)")
_PICTURE_MARKUP = re.compile(r"!\[[^\[\]]*\]\([^\n]*")
_ALERT_MARKER = re.compile(r"^\[!([A-Za-z][\w-]*)\]([-+]?)[ \t]*(.*)$")
_MAX_SHOWN = 60
_UNCLOSED_MATH_DOLLAR = re.compile(r"(?<![\\$\w])\$(?=[A-Za-z\\])")


def report_source_text_problems(parse_context: ParseContext) -> None:
    """Report E75, E76, W77: conflict markers, invisible characters, scaffold text."""
    in_conflict = False
    for number, line in enumerate(parse_context.lines, 1):
        if CONFLICT_MARKER.match(line) and (line[0] == "<" or in_conflict):
            if not in_conflict:
                message = "An unfinished merge left its marks here."
                hint = "Decide for one of the two texts, and delete the three marks."
                if parse_context.path == "ids.lock":
                    hint = "Keep the lines of both sides, and delete the three marks."
                parse_context.report("E75", number, 1, message, hint)
            in_conflict = line[0] != ">"
        if "\0" in line or "\ufffd" in line:
            at = max(line.find("\0"), line.find("\ufffd"))
            message = "A character stands here that is no text."
            parse_context.report("E76", number, at + 1, message, "Delete it, or type it anew.")
        elif match := _TEXT_DIRECTION_CONTROL.search(line):
            message = f"A character (U+{ord(match[0]):04X}) turns what follows around."
            hint = "Delete it; it is not seen."
            parse_context.report("E76", number, match.start() + 1, message, hint)
        if _UNCHANGED_SCAFFOLD_TEXT.match(line):
            message = f"“{line.strip('# ')[:50]}” is text to begin with."
            parse_context.report("W77", number, 1, message, "Write what is meant here.")


def report_markup_typos(tokens: Sequence[Token], parse_context: ParseContext) -> None:
    """Report E10, E24, E61, E74, E86, W68, W69: typos that turn markup into text or cut it."""
    blocks = list(tokens)
    for at, token in enumerate(blocks):
        if token.type == "fence":
            _report_fence_problems(token, parse_context)
        elif token.type == "blockquote_open":
            _report_unknown_alert_kind(token, parse_context)
            _report_alert_marker_problems(blocks, at, parse_context)
            _report_quote_named_like_alert(blocks, at, parse_context)
        elif token.type == "table_open":
            _report_uneven_table_rows(token, parse_context)
        elif token.type == "code_block":
            _report_options_in_code(token, parse_context)
        elif token.type == "inline":
            if token.level == 1:
                _report_stray_comment_or_alert(token, parse_context)
            _report_unpaired_dollars(token, parse_context)
            _report_misplaced_checkboxes(token, parse_context)
            _report_unrecognized_markup(token, parse_context)
            _report_unclosed_picture_or_formula(token, parse_context)
            report_foreign_markup(token, parse_context)


def _report_fence_problems(token: Token, parse_context: ParseContext) -> None:
    name = (token.info.split() or [""])[0]
    if not _is_fence_closed(token, parse_context):
        message = "The block that begins here is never closed: it takes all that follows."
        hint = f"Write {token.markup} on a line of its own behind it."
        parse_context.report(
            "E10", get_first_line_number(token), 1, message, hint, hides_rest_of_file=True
        )
        return
    if name in _COMPUTED_BLOCKS or can_highlight_language(name):
        return
    line = get_first_line_number(token)
    message = f"Nothing reads a block named “{name[:40]}”."
    suggestion = find_closest_word_or_empty(name.strip("{.}"), _COMPUTED_BLOCKS)
    hint = f"Did you mean “{suggestion}”?" if suggestion else _CODE_HINT
    if name.lower() in {"math", "latex", "tex", "katex", "asciimath"}:
        hint = "Write $$ on a line before the formula and on one behind it."
    parse_context.report("E74", line, 1, message, hint)


def _report_options_in_code(token: Token, parse_context: ParseContext) -> None:
    """Report E24: options indented so far that they are code."""
    for number, line in enumerate(token.content.split("\n")):
        if _CODED_BOX.match(line):
            message = f"“{line.strip()[:40]}” is indented so far that it is code."
            hint = "Take the spaces before it away."
            parse_context.report("E24", get_first_line_number(token) + number, 1, message, hint)
            return


def _report_stray_comment_or_alert(inline: Token, parse_context: ParseContext) -> None:
    """Report E10, E74: a comment's end or an alert that is read as text."""
    for number, line in enumerate(inline.content.split("\n")):
        location = (get_first_line_number(inline) + number, 1)
        if BROKEN_COMMENT_START.match(line):
            message = f"“{line[:40]}” does not begin a comment."
            hint = f"Write <!-- {line[line.index('q') :].removesuffix('-->').strip()}"
            parse_context.report("E10", *location, message, hint)
            return
        if line.strip() == "-->":
            message = "The end of a comment stands here, and none is open."
            parse_context.report("E10", *location, message, "Delete it, or the one above it.")
        elif match := _FOREIGN_BOX.match(line):
            kind = (match[1] or match[2] or "").upper()
            kind = kind if kind in ALERT_KINDS else "NOTE"
            message = f"“{line[:40]}” is read as text, not as a box."
            hint = f"Write > [!{kind}], and > before each line of its text."
            if line.startswith("[!"):
                hint = f"Write > {shorten_with_ellipsis(line)}, and > before each line of its text."
            parse_context.report("E74", *location, message, hint)


def _is_fence_closed(fence: Token, parse_context: ParseContext) -> bool:
    first, last = fence.map or (0, 0)
    closing_line = parse_context.lines[min(last, len(parse_context.lines)) - 1].rstrip()
    return last - first > 1 and closing_line.endswith(fence.markup)


def _report_unknown_alert_kind(token: Token, parse_context: ParseContext) -> None:
    name = token.meta.get("alert", "")
    if not name and (
        match := _BROKEN_ALERT_LINE.match(parse_context.lines[get_first_line_number(token) - 1])
    ):
        message = f"“{match['box']}” is not a kind of box."
        hint = f"Write > [!{match['name'].upper()}]"
        parse_context.report("E74", get_first_line_number(token), 1, message, hint)
        return
    if name and name not in ALERT_KINDS:
        message = f"“[!{name[:40]}]” is not a kind of box."
        kind = _BOX_NAMES.get(name.lower())
        hint = f"Write > [!{kind}]" if kind else write_hint_for_unknown_word(name, ALERT_KINDS)
        parse_context.report("E74", get_first_line_number(token), 1, message, hint)


def _report_unrecognized_markup(inline: Token, parse_context: ParseContext) -> None:
    """Report E61, E86, W68: links, footnotes and tables that are read as text."""
    first = get_first_line_number(inline)
    last = first + inline.content.count("\n")
    for child in inline.children or ():
        if child.type != "text":
            continue
        for note in filter(
            None, (p.search(child.content) for p in (_BROKEN_FOOTNOTE, _MISWRITTEN_FOOTNOTE))
        ):
            message = f"“{note[0][:40]}” is read as text, not as a footnote."
            hint = "Write the key of a source without spaces: [^key]."
            if note.re is _MISWRITTEN_FOOTNOTE:
                hint = f"Write [^{note['key'] or note['other']}]"
            parse_context.report_at_text("E86", note[0], first, last, message, hint)
        if match := _LINK_WITH_SPACE.search(child.content):
            message = f"“{match[0][:60]}” is read as text, not as a link."
            hint = "Take the spaces out of its address."
            parse_context.report_at_text("E61", match[0], first, last, message, hint)
    rows = [line.strip() for line in inline.content.split("\n")]
    if len(rows) > 1 and all(r[:1] == "|" and r[-1:] == "|" for r in rows):
        message = "These lines are read as text, not as a table."
        hint = "Write a line such as |---|---| below the first one, of as many cells."
        parse_context.report("W68", first, 1, message, hint, is_consequence=True)


def _report_misplaced_checkboxes(inline: Token, parse_context: ParseContext) -> None:
    """Report E24: a check box that starts no option."""
    for number, line in enumerate(inline.content.split("\n")):
        misplaced_box = _LOST_BOX.match(line) if number or not inline.level > 1 else None
        if misplaced_box or (not number and _SECOND_BOX.match(line)):
            location = (get_first_line_number(inline) + number, 1)
            message = f"“{line[:40]}” is read as text, not as an option."
            if not misplaced_box:
                message = f"“{line[:40]}” holds two boxes."
            hint = "Write each option on a line of its own, as - [ ] text."
            parse_context.report("E24", *location, message, hint)


def _report_uneven_table_rows(token: Token, parse_context: ParseContext) -> None:
    first, last = token.map or (0, 0)
    expected_cells = 0
    for number in range(first, last):
        cells = _count_cells(parse_context.lines[number])
        expected_cells = expected_cells or cells
        if cells != expected_cells:
            count_text = f"{cells} cell{'s' * (cells != 1)}"
            message = f"The row has {count_text}, the head of the table {expected_cells}."
            hint = "Give each row as many cells as the head; write \\| for a bar."
            parse_context.report("W68", number + 1, 1, message, hint)


def _count_cells(line: str) -> int:
    row = line.strip().lstrip("> ").removeprefix("|")
    row = re.sub(r"\\\\|\\\|", "", row)
    return row.removesuffix("|").count("|") + 1


def _report_unpaired_dollars(inline: Token, parse_context: ParseContext) -> None:
    for child in inline.children or ():
        match = _UNCLOSED_MATH_DOLLAR.search(child.content) if child.type == "text" else None
        if match:
            excerpt = child.content[match.start() : match.start() + 20]
            first, last = (
                get_first_line_number(inline),
                get_first_line_number(inline) + inline.content.count("\n"),
            )
            message = "A dollar sign begins a formula here, and none ends it."
            hint = "Write the second one, or \\$ for the sign itself."
            parse_context.report_at_text("W69", excerpt, first, last, message, hint)


def _report_alert_marker_problems(
    tokens: list[Token], token_index: int, parse_context: ParseContext
) -> None:
    """Report E74: an alert without text, or whose marker is not on its own line."""
    quote, inline = (
        tokens[token_index],
        tokens[token_index + 2] if token_index + 2 < len(tokens) else None,
    )
    if inline is None or inline.type != "inline":
        return
    line = get_first_line_number(quote)
    if parse_context.lines[line - 1].startswith(">>>>>>>"):
        return  # a conflict marker, which is reported as such
    is_closed_next = (
        token_index + 4 >= len(tokens) or tokens[token_index + 4].type == "blockquote_close"
    )
    is_empty = is_closed_next and not inline.content.strip()
    if quote.meta.get("alert") in ALERT_KINDS and is_empty:
        message = f"The box [!{quote.meta['alert']}] is empty."
        hint = "Begin each of its lines with >, and leave no line empty before them."
        parse_context.report("E74", line, 1, message, hint)
    if quote.meta.get("alert"):
        line += 1
    for number, text in enumerate(inline.content.split("\n")):
        if marker := _ALERT_MARKER.match(text):
            is_inside = number > 0 or bool(quote.meta.get("alert"))
            _report_misplaced_alert_marker(marker, line + number, is_inside, parse_context)
            return


def _report_quote_named_like_alert(
    tokens: list[Token], token_index: int, parse_context: ParseContext
) -> None:
    """Report W74: a quote that begins like a box. Below an option, a quote is its feedback."""
    inline = tokens[token_index + 2] if token_index + 2 < len(tokens) else tokens[token_index]
    match = _BOX_BEGIN.match(inline.content) if inline.type == "inline" else None
    # A quote below a block may explain what the block of a lab shows.
    is_lab_note = token_index > 0 and tokens[token_index - 1].type == "fence"
    if (
        not match
        or is_lab_note
        or tokens[token_index].meta.get("alert")
        or tokens[token_index].level
    ):
        return
    name = match["sign"] or match["bold"] or match["plain"]
    message = f"“> {match[0]}” begins a plain quote here, and no box."
    hint = f"Write > [!{_BOX_NAMES[name.lower()]}] on a line above it."
    parse_context.report("W74", get_first_line_number(inline), 1, message, hint)


def _report_misplaced_alert_marker(
    marker: re.Match[str], line: int, is_inside_quote: bool, parse_context: ParseContext
) -> None:
    name, text = marker[1].upper(), marker[3].strip()[:_MAX_SHOWN]
    if name not in ALERT_KINDS:
        message = f"“[!{marker[1][:_MAX_SHOWN]}]” is not a kind of box."
        kind = _BOX_NAMES.get(name.lower())
        hint = (
            f"Write > [!{kind}]." if kind else write_hint_for_unknown_word(name, ALERT_KINDS, 0.8)
        )
        if text:
            hint += f" Its title is the first line of its text: > **{text}**"
    elif not is_inside_quote and not text:
        message = f"“{marker[2]}” stands behind [!{name}]: boxes are not folded here."
        hint = f"Write > [!{name}]"
    elif not is_inside_quote:
        message = f"Words stand behind [!{name}] on its line, so that it is no box."
        hint = f"Write them on the next line: > {text}"
    else:
        message = f"[!{name}] stands inside of the box above it."
        hint = f"Leave a line empty before > [!{name}]"
    parse_context.report("E74", line, 1, message, hint, is_consequence=is_inside_quote)


def _report_unclosed_picture_or_formula(inline: Token, parse_context: ParseContext) -> None:
    """Report E61, W69: an unclosed picture or display formula."""
    first = get_first_line_number(inline)
    last = first + inline.content.count("\n")
    for child in inline.children or ():
        if child.type != "text":
            continue
        match = _PICTURE_MARKUP.search(child.content)
        if match and match[0] in inline.content:
            message = f"“{match[0][:_MAX_SHOWN]}” is read as text, not as a picture."
            hint = "Write ![what it shows](file.svg), with no space in the name."
            if match[0].count('"') % 2:
                hint = 'The quotation mark of its caption is not closed: write ") there.'
            parse_context.report_at_text("E61", match[0], first, last, message, hint)
        if "$$" in child.content and "$$" in inline.content:
            message = "“$$” begins a formula of its own here, and none ends it."
            hint = "Write $$ before and behind the formula, on lines of their own."
            parse_context.report_at_text("W69", "$$", first, last, message, hint)
            return
