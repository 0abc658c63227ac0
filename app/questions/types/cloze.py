"""Cloze questions: fill in the blanks."""

import dataclasses
import math
import re
from collections.abc import Iterator, Sequence
from html import escape

from markdown_it.token import Token

from app.markup.html_renderer import render_tokens
from app.markup.markdown_tokens import find_closing_index, get_first_line_number
from app.markup.model import NO_TEXT, RichText
from app.markup.problems import MOST_OPTIONS, ParseContext, TextPosition
from app.markup.text import hash_to_four_letters, reduce_to_words, shorten_with_ellipsis
from app.questions.option_parsing import (
    TWO_ANSWERS_PATTERN,
    ParsedOption,
    report_if_max_parts_reached,
)
from app.questions.question_type import (
    MAX_RESPONSE_LENGTH,
    AuthoredItem,
    CardFacesHtml,
    GradeResult,
    LabeledResponse,
    PartResult,
    QuestionType,
    RenderGap,
    SubmittedFields,
    UnreadableResponse,
    escape_typed_text,
    first_field_value_or_empty,
    is_same_phrase,
    score_by_right_parts,
)

_BLANK_MARKUP = re.compile(r"\[\[(.*?)\]\]", re.DOTALL)
_SINGLE_BRACKET_BLANK = re.compile(r"(?<!\[)\[[^\[\]|]+\|[^\[\]]+\](?![\](])")
_ALTERNATIVE_SEPARATOR = re.compile(r"(?:^|(?<=\s))~(?=\s|$)")
_BLANK_PLACEHOLDER = "\ue0ff"
_EFFORT_PER_SEARCHED_CHARACTER = 0.001  # Cost in microseconds per character that is searched.


@dataclasses.dataclass(frozen=True, slots=True)
class ClozeBlank:
    """A blank with all accepted answers, and a hint.

    If it has `wrong` answers, the learner chooses one; otherwise types it.
    """

    key: str
    answers: tuple[str, ...]
    hint: str = ""
    wrong: tuple[str, ...] = ()

    @property
    def selectable_words(self) -> tuple[str, ...]:
        """Return the words to choose from, in an order independent of the key; empty if typed."""
        words = (self.answers[0], *self.wrong) if self.wrong else ()
        return tuple(sorted(words, key=lambda word: (reduce_to_words(word), word)))

    def accepts_answer(self, given: str) -> bool:
        if self.wrong:
            return given == self.answers[0]
        return any(is_same_phrase(right, given) for right in self.answers)


@dataclasses.dataclass(frozen=True, slots=True)
class ClozeSpec:
    """Text with blanks: `pieces` has one more element than `blanks`."""

    pieces: tuple[RichText, ...]
    blanks: tuple[ClozeBlank, ...]


_OTHER_BLANK_MARKUP = re.compile(
    r"\{\{([^{}\n]{1,40})\}\}|\[([^\[\]\n]{1,40})\](?!\()|_{3,}|\.{4,}"
)
_BLANK_LINE = re.compile(r"_{3,}|\.{5,}")
_TILDE_WITHOUT_SPACES = re.compile(r"(?<=\w)~(?=\w)")


class ClozeType(QuestionType[ClozeSpec]):
    """Blanks in a text, each graded separately."""

    name = "cloze"
    answer_classes = (ClozeSpec, ClozeBlank)
    template = "questions/cloze.html"
    has_option_boxes = False
    is_each_field_an_answer = True
    supports_partial_credit = True
    form_fields = ("blank.",)
    gap_pattern = re.compile(r"\[\[[^\[\]\n]+\]\]")
    is_in_scaffolded_topics = True

    def is_implied_by_block(self, block: Token, options: Sequence[ParsedOption]) -> bool:
        return block.type == "inline" and "[[" in block.content and not options

    def parse_answer(self, authored: AuthoredItem) -> ClozeSpec:
        blocks = authored.parts.stem
        cloze = _parse_cloze(blocks, authored)
        if "[[" in authored.source.heading.content:
            message = "A blank stands in the heading, where nobody can fill it."
            hint = "Put it into the text below."
            authored.parse_context.report("E54", authored.source.line, 1, message, hint)
        if not cloze.blanks and not any("[[" in t.content for t in blocks):
            message = "The text has no blank."
            hint = "Write [[answer]] in it."
            text = "\n".join(t.content for t in blocks)
            if match := _OTHER_BLANK_MARKUP.search(text):
                hint = f"Write [[{match[1] or match[2] or 'answer'}]] for {match[0]}."
            authored.parse_context.report("E54", authored.source.line, 1, message, hint)
        return cloze

    def report_answer_problems(self, answer: ClozeSpec, authored: AuthoredItem) -> None:
        """Report blanks in a table, where its bars would be read as columns (E55)."""
        del answer
        body = authored.source.body
        for at, token in enumerate(body):
            if token.type != "table_open":
                continue
            inside = body[at : find_closing_index(body, at)]
            if any(re.search(r"\[\[", t.content) for t in inside if t.type == "inline"):
                message = "A blank stands inside a table, where its bars part columns."
                hint = "Put it into a sentence."
                authored.parse_context.report("E55", get_first_line_number(token), 1, message, hint)

    def report_wording_problems(
        self, answer: ClozeSpec, stem: RichText, line: int, parse_context: ParseContext
    ) -> None:
        """Report answers that occur elsewhere in the text (W56)."""
        del stem
        text = f" {reduce_to_words(' '.join(p.plain for p in answer.pieces))} "
        count = sum(len(blank.answers) for blank in answer.blanks)
        parse_context.spend_parsing_effort(count * len(text) * _EFFORT_PER_SEARCHED_CHARACTER)
        for words in (words for blank in answer.blanks for words in blank.answers):
            if len(words) > 2 and f" {reduce_to_words(words)} " in text:
                message = f"“{words}” is a blank and stands elsewhere in the text."
                parse_context.report("W56", line, 1, message, "Reword the text.")

    def right_answer_texts(self, answer: ClozeSpec) -> list[str]:
        return [words for blank in answer.blanks for words in blank.answers]

    def grade(
        self, answer: ClozeSpec, raw: SubmittedFields, credit_rule: str
    ) -> GradeResult | UnreadableResponse:
        """Grade the blanks; `blank.KEY` in the response contains the text of each.

        Each blank counts the same unless the item is all or nothing.
        """
        typed = {b.key: first_field_value_or_empty(raw, f"blank.{b.key}") for b in answer.blanks}
        if not any(typed.values()):
            return UnreadableResponse("No gap is filled.", "Type what is missing.")
        if any(len(words) > MAX_RESPONSE_LENGTH for words in typed.values()):
            return UnreadableResponse(f"An answer is longer than {MAX_RESPONSE_LENGTH} characters.")
        marks = tuple(
            _grade_blank(number, blank, typed[blank.key])
            for number, blank in enumerate(answer.blanks, 1)
        )
        good, all_ = sum(mark.is_right for mark in marks), len(marks)
        return GradeResult(
            score=score_by_right_parts(good, all_, credit_rule),
            score_basis=f"{good} of {all_} gaps right",
            parsed_response={"blanks": typed},
            part_results=marks,
            given_answer=", ".join(
                f"“{words}”" if words else "nothing" for words in typed.values()
            ),
            right_answer=", ".join(f"“{b.answers[0]}”" for b in answer.blanks),
        )

    def build_some_valid_response(self, answer: ClozeSpec) -> SubmittedFields:
        return {f"blank.{blank.key}": ["?"] for blank in answer.blanks}

    def render_card_faces_below_stem(
        self, answer: ClozeSpec, render_gap: RenderGap
    ) -> CardFacesHtml:
        gaps = [render_gap(escape(b.hint or " / ".join(b.selectable_words))) for b in answer.blanks]
        words = [f"<b>{escape(' or '.join(b.answers))}</b>" for b in answer.blanks]
        return CardFacesHtml(
            _insert_html_into_blanks(answer, gaps), _insert_html_into_blanks(answer, words)
        )

    def sample_responses(self, answer: ClozeSpec) -> Iterator[LabeledResponse]:
        right = {f"blank.{b.key}": [b.answers[0]] for b in answer.blanks if b.answers}
        yield LabeledResponse("Every gap right", right)
        wrong = {
            f"blank.{b.key}": [b.wrong[0] if b.wrong else "something else"]
            for b in answer.blanks
            if b.answers
        }
        for number, name in enumerate(right, 1):
            if len(right) > 1:
                response = {**right, name: wrong[name]}
                yield LabeledResponse(f"Gap {number} not right", response)
        yield LabeledResponse("No gap right", wrong)

    def compute_guess_score(self, answer: ClozeSpec, credit_rule: str) -> float:
        """Return the guess rate: 1/n for a blank with n choices, 0 for a typed one."""
        odds = [1 / len(b.selectable_words) if b.selectable_words else 0.0 for b in answer.blanks]
        if not odds:
            return 0.0
        return math.prod(odds) if credit_rule == "off" else sum(odds) / len(odds)


def _parse_cloze(blocks: list[Token], authored: AuthoredItem) -> ClozeSpec:
    blanks: list[ClozeBlank] = []
    for token in blocks:
        for child in token.children or []:
            if child.type in {"text", "text_special"}:
                _replace_blanks_by_marks(child, get_first_line_number(token), blanks, authored)
    if len(blanks) > MOST_OPTIONS:
        report_if_max_parts_reached(
            blanks, "blanks", get_first_line_number(blocks[0]), authored.parse_context
        )
        return ClozeSpec((NO_TEXT,), ())
    text = render_tokens(blocks, authored.context)
    html, words = text.html.split(_BLANK_PLACEHOLDER), text.plain.split(_BLANK_PLACEHOLDER)
    words += [""] * (len(html) - len(words))
    pieces = tuple(RichText(h, w) for h, w in zip(html, words, strict=False))
    return ClozeSpec(pieces, tuple(blanks))


def _replace_blanks_by_marks(
    child: Token, line: int, blanks: list[ClozeBlank], authored: AuthoredItem
) -> None:
    """Replace each blank of a text by a mark, and record the blank."""
    nested: list[str] = []

    def cut(match: re.Match[str]) -> str:
        nested.append(match[1])
        blanks.append(_parse_blank(match[1], line, len(blanks), authored))
        return _BLANK_PLACEHOLDER

    def locate(text: str) -> TextPosition:
        return parse_context.locate_text(text, line, line + 20)

    parse_context = authored.parse_context
    child.content = _BLANK_MARKUP.sub(cut, child.content)
    if "[[" in child.content or any("[[" in inner for inner in nested):
        message = "A blank is opened and not closed."
        parse_context.report("E54", *locate("[["), message, "Close it with ]].")
    elif "]]" in child.content:
        near = child.content[: child.content.index("]]") + 2].split(_BLANK_PLACEHOLDER)[-1]
        row, column = locate(near)
        at = TextPosition(row, column + len(near) - 2)
        message = "A blank is closed that was not opened."
        parse_context.report("E54", *at, message, "Write [[answer]].")
    elif half := _SINGLE_BRACKET_BLANK.search(child.content):
        message = f"“{half[0][:40]}” has one bracket on each side and is no blank."
        parse_context.report(
            "E54", *locate(half[0]), message, f"Write [{shorten_with_ellipsis(half[0])}]."
        )
    elif line_ := _BLANK_LINE.search(child.content):
        message = f"“{line_[0][:20]}” is shown as it stands and is no blank."
        hint = "Write [[answer]] in its place."
        parse_context.report("E54", *locate(line_[0]), message, hint)


def _parse_blank(blank_markup: str, line: int, number: int, authored: AuthoredItem) -> ClozeBlank:
    def report(code: str, message: str, hint: str, needle: str = f"[[{blank_markup[:40]}") -> None:
        parse_context.report_at_text(code, needle, line, line + 20, message, hint)

    parse_context = authored.parse_context
    body, _, hint = blank_markup.replace("\uff5c", "|").replace("\uff1f", "?").partition("?")
    accepted, *others = _ALTERNATIVE_SEPARATOR.split(body)
    answers = tuple(a.strip() for a in accepted.split("|") if a.strip())
    wrong = tuple(word.strip() for word in others if word.strip())
    if answers and any(not a.strip() for a in accepted.split("|")):
        message = f"“{blank_markup.strip()[:40]}” has nothing beside its bar."
        report("E54", message, f"Write [[{'|'.join(answers)}]].")
    if two := next(filter(None, map(TWO_ANSWERS_PATTERN.match, answers)), None):
        message = f"“{two[0]}” has to be typed as a whole."
        report("W40", message, f"Write [[{two[1]}|{two[2]}]].")
    if not answers:
        message = "A blank has no answer."
        report("E54", message, "Write [[answer]].", "[[")
    offered = [*map(reduce_to_words, (*answers, *wrong))]
    if others and (len(wrong) < len(others) or len({*offered}) < len(offered)):
        message = f"“{blank_markup.strip()[:40]}” offers a word twice, or an empty one."
        report("E54", message, "Write [[right ~ wrong ~ wrong]].")
    if _TILDE_WITHOUT_SPACES.search(body):
        message = f"“{blank_markup.strip()[:40]}” has no spaces around its tilde."
        apart = _TILDE_WITHOUT_SPACES.sub(" ~ ", body).strip()
        report("E54", message, f"Write [[{shorten_with_ellipsis(apart)}]].")
    name = hash_to_four_letters(authored.comment.id, "blank", str(number))
    return ClozeBlank(name, answers, hint.strip(), wrong)


def _grade_blank(number: int, blank: ClozeBlank, typed: str) -> PartResult:
    good = blank.accepts_answer(typed)
    return PartResult(
        key=blank.key,
        label=f"Gap {number}",
        text=escape_typed_text(blank.hint),
        chosen=bool(typed),
        should_be_chosen=True,
        is_right=good,
        given_answer=escape_typed_text(typed),
        right_answer=escape_typed_text(blank.answers[0]),
    )


def _insert_html_into_blanks(answer: ClozeSpec, fillings: list[str]) -> str:
    pieces = [piece.html for piece in answer.pieces]
    words = [a + b for a, b in zip(pieces, [*fillings, ""], strict=True)]
    return f'<div class="cloze">{"".join(words)}</div>'


def find_block_with_blank(tokens: Sequence[Token]) -> Token | None:
    """Return the first block with a blank outside of code and formulas; None if there is none."""
    texts = ((t, c) for t in tokens for c in t.children or () if c.type == "text")
    return next((t for t, c in texts if ClozeType.gap_pattern.search(c.content)), None)


def render_cloze_card_faces(authored: AuthoredItem) -> tuple[RichText, RichText]:
    """Return the faces of a card whose heading has blanks: with gaps, and filled."""
    answer = _parse_cloze([authored.source.heading], authored)
    gaps = [f"[{b.hint or ' / '.join(b.selectable_words) or '…'}]" for b in answer.blanks]
    answers = [" or ".join(b.answers) for b in answer.blanks]
    return _insert_text_into_blanks(answer, gaps), _insert_text_into_blanks(answer, answers)


def _insert_text_into_blanks(answer: ClozeSpec, blank_texts: Sequence[str]) -> RichText:
    pieces = list(zip(answer.pieces, [*blank_texts, ""], strict=True))
    html = "".join(p.html + escape(text) for p, text in pieces)
    return RichText(html, "".join(p.plain + text for p, text in pieces))
