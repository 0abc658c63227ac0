"""Render Markdown tokens to safe HTML."""

import dataclasses
import functools
import posixpath
import re
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from typing import Any

from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from app.markup import checked_figures, figure_blocks
from app.markup.expressions import FigureError
from app.markup.markdown_tokens import (
    find_closing_index,
    get_first_line_number,
    get_last_line_number,
    get_unmarked_text_or_none,
    plain_text,
    pop_pinned_key,
)
from app.markup.mathml import MathError, latex_to_mathml
from app.markup.model import RichText
from app.markup.problems import (
    FORMULA_CHARACTER_EFFORT,
    FORMULA_EFFORT,
    MOST_COLORED,
    MOST_ENTRIES,
    ParseContext,
    parsing_effort_of_estimate,
)
from app.markup.text import is_inside_its_folder, slugify
from app.widgets.bar_charts import STYLES_BY_LETTER

HOOK_LABEL = '<p class="small quiet">Memory hook</p>'
"""The label below a memory hook. It is the app's text, so it stays in the app's language."""
ALERT_KINDS = ("IMPORTANT", "TIP", "WARNING", "NOTE", "CAUTION")
_STYLE_LETTER_PATTERN = f"[{''.join(STYLES_BY_LETTER)}]"
_STYLE_LETTERS = re.compile(f"{_STYLE_LETTER_PATTERN}(?: {_STYLE_LETTER_PATTERN})+")


def render_alert_opening(alert_type: str, content_tokens: Sequence[Token]) -> str:
    """Return the opening tags of an alert; a quote without an `alert_type` stays a quote.

    Adds the title to its first paragraph, and colors the letters of a memory hook.
    """
    if alert_type == "IMPORTANT":
        _prepend_alert_title("What the exam tests.", content_tokens)
        return _render_message_box_opening("exam-box", "i-flag")
    if alert_type in {"WARNING", "CAUTION"}:
        _prepend_alert_title("Common error.", content_tokens)
        return _render_message_box_opening("warn", "i-alert")
    if alert_type == "TIP":
        _mark_letters_of_memory_hook(content_tokens)
        return '<div class="hook">\n'
    if alert_type == "NOTE":
        return '<aside class="side" aria-label="Aside">\n'
    return "<blockquote>\n"


def render_alert_closing(alert_type: str) -> str:
    if alert_type in {"IMPORTANT", "WARNING", "CAUTION"}:
        return "</div></div>\n"
    if alert_type == "TIP":
        return f"{HOOK_LABEL}</div>\n"
    return "</aside>\n" if alert_type == "NOTE" else "</blockquote>\n"


def _render_message_box_opening(css_class: str, icon: str) -> str:
    drawing = f'<svg class="i" aria-hidden="true"><use href="#{icon}"/></svg>'
    return f'<div class="msg {css_class}" role="note">{drawing}<div>\n'


def _prepend_alert_title(title: str, inside: Sequence[Token]) -> None:
    """Add the alert's title to its first paragraph, unless that starts with bold text."""
    for token in inside:
        if token.type == "inline":
            if not token.content.startswith("**"):
                lead = Token("lead", "", 0, content=f"{title} ")
                token.children = [lead, *(token.children or [])]
            return


def _mark_letters_of_memory_hook(inside: Sequence[Token]) -> None:
    """Mark the component letters of a hook (**W K**), so that they are colored."""
    for token in inside:
        children = token.children or []
        for before, word, after in zip(children, children[1:], children[2:], strict=False):
            bold = before.type == "strong_open" and after.type == "strong_close"
            if bold and _STYLE_LETTERS.fullmatch(word.content):
                before.type = after.type = "nothing"
                word.type = "hook_letters"


Report = Callable[
    [str, str, str, str], None
]  # The arguments of a report: code, needle, message, hint.

_HTML_TAG = re.compile(r"^<(/?)([a-z0-9]+)((?:\s+[a-z-]+=\"[^\"<>]*\")*)\s*/?>$", re.IGNORECASE)
_TAG_ATTRIBUTE = re.compile(r"([a-z-]+)=\"([^\"]*)\"", re.IGNORECASE)
_TAGS_WITHOUT_END = frozenset({"br"})
_PAIRED_TAGS = frozenset({"sub", "sup", "kbd", "abbr", "b", "span"})
_LEGEND_CLASSES = {style.legend_class for style in STYLES_BY_LETTER.values()}
_ALLOWED_CLASSES = frozenset({"key", "k-f", "small", "quiet"} | _LEGEND_CLASSES)
_ALLOWED_TAGS_HINT = "Allowed are br, sub, sup, kbd, abbr, and b or span with a component class."


def _normalize_allowed_tag_or_none(tag: str) -> str | None:
    """Return a tag in its normal form; None if its name or any of its attributes isn't allowed."""
    match = _HTML_TAG.match(tag)
    if match is None:
        return None
    slash, name, rest = match[1], match[2].lower(), match[3]
    if name in _TAGS_WITHOUT_END:
        return f"<{name}>" if not slash and not rest else None
    if name not in _PAIRED_TAGS or (slash and rest):
        return None
    attributes = ""
    for key, value in _TAG_ATTRIBUTE.findall(rest):
        if not _is_allowed_raw_html_attribute(name, key.lower(), value):
            return None
        attributes += f' {key.lower()}="{escapeHtml(value)}"'
    return f"<{slash}{name}{attributes}>"


def _is_allowed_raw_html_attribute(tag_name: str, key: str, value: str) -> bool:
    if key == "title":
        return tag_name == "abbr"
    return key == "class" and set(value.split()) <= _ALLOWED_CLASSES


def sanitize_html_tag(tag: str, report: Report) -> str:
    """Return an allowed tag unchanged, a comment as nothing, anything else escaped."""
    if tag.startswith("<!--"):
        return ""
    allowed_tag = _normalize_allowed_tag_or_none(tag)
    if allowed_tag is None:
        report("E62", tag, f"The tag {tag[:40]} is not allowed.", _ALLOWED_TAGS_HINT)
        return escapeHtml(tag)
    return allowed_tag


def escape_unbalanced_tags(inline: Token, report: Report) -> None:
    """Escape tags that are not closed, or not opened, within their block."""
    open_tags: list[Token] = []
    for token in inline.children or []:
        match = _HTML_TAG.match(token.content) if token.type == "html_inline" else None
        if match is None or match[2].lower() not in _PAIRED_TAGS:
            continue
        if not match[1]:
            open_tags.append(token)
        elif open_tags and _raw_html_tag_name(open_tags[-1]) == match[2].lower():
            if _normalize_allowed_tag_or_none(open_tags.pop().content) is None:
                token.type = "text"  # The matching tag was rejected and is reported there.
        else:
            _report_and_escape_unbalanced_tag(token, report)
    for token in open_tags:
        _report_and_escape_unbalanced_tag(token, report)


def _raw_html_tag_name(token: Token) -> str:
    match = _HTML_TAG.match(token.content)
    return match[2].lower() if match else ""


def _report_and_escape_unbalanced_tag(token: Token, report: Report) -> None:
    message = f"The tag {token.content[:40]} has no partner in its paragraph."
    report("E62", token.content, message, "Open and close a tag in one paragraph.")
    token.type = "text"


def report_forbidden_html_block(content: str, report: Report) -> None:
    content_left = _drop_comments(content).strip()
    if content_left:
        first = content_left.split("\n", maxsplit=1)[0]
        tag = first[: first.find(">") + 1] or first
        report("E62", first[:40], f"The HTML {tag[:40]} is not allowed.", _ALLOWED_TAGS_HINT)


def _drop_comments(content: str) -> str:
    """Remove comments from a text; an unclosed comment stays."""
    parts = []
    at = 0
    while (comment_start := content.find("<!--", at)) >= 0:
        comment_end = content.find("-->", comment_start + 4)
        if comment_end < 0:
            break
        parts.append(content[at:comment_start])
        at = comment_end + 3
    return "".join([*parts, content[at:]])


_COURSE_PAGE_FILES = frozenset({"", "concept.md", "quiz.md", "cards.md"})


def resolve_relative_link(href: str, topic_folder: str) -> str:
    """Return the app's URL for a relative link: `../kv-cache/concept.md#x` is a topic.

    >>> resolve_relative_link("../kv-cache/concept.md#why", "weights")
    '/concepts/kv-cache#why'
    """
    if href.startswith(("#", "/")):
        return href
    path, hash_, anchor = href.partition("#")
    parts = posixpath.normpath(posixpath.join("topics", topic_folder, path)).split("/")
    if parts[0] == "topics" and len(parts) > 1:
        path_in_topic = "/".join(parts[2:])  # A file that is not a page has no URL.
        rest = "" if path_in_topic in _COURSE_PAGE_FILES else f"/{path_in_topic}"
        return f"/concepts/{parts[1]}{rest}{hash_}{anchor}"
    if parts[0] == "glossary.md" or parts == ["..", "shared", "glossary.md"]:
        return f"/glossary{hash_}{anchor}"
    return f"/concepts/{path}{hash_}{anchor}"


_PLAIN_TEXT_LANGUAGES = frozenset({"", "text", "txt", "plain"})


@functools.cache
def _code_formatter() -> "HtmlFormatter[str]":
    return HtmlFormatter(nowrap=True, classprefix="hl-")


def can_highlight_language(name: str) -> bool:
    """Return whether code of this language can be highlighted; plain text counts."""
    if name in _PLAIN_TEXT_LANGUAGES:
        return True
    try:
        get_lexer_by_name(name)
    except ClassNotFound:
        return False
    return True


@functools.lru_cache(maxsize=1024)
def render_code_block(text: str, language: str) -> str:
    """Highlight a code block; very long code or an unknown language stays plain."""
    inner, name = escapeHtml(text), "Code"
    if (
        language not in _PLAIN_TEXT_LANGUAGES
        and len(text) <= MOST_COLORED
        and can_highlight_language(language)
    ):
        inner = highlight(text, get_lexer_by_name(language), _code_formatter())
        name = f"Code, {language}"
    label = f'role="region" tabindex="0" aria-label="{escapeHtml(name)}"'
    return f'<pre class="hl" {label}><code>{inner}</code></pre>\n'


_COMMAND_OPTION, _UNBREAKABLE_OPTION_HTML = (
    re.compile(r"(?<!\S)-\S{1,30}(?!\S)"),
    r'<span class="option">\g<0></span>',
)
_SAFE_URL = re.compile(r"^(?:https?:|mailto:|[#/]|[\w.][^:]*$)", re.IGNORECASE)
_TOO_MANY_SOURCES_MESSAGE = f"The page cites more than {MOST_ENTRIES:,} sources."
Env = MutableMapping[str, Any]


@dataclasses.dataclass(slots=True)
class RenderContext:
    """State of one page or text while it is rendered.

    `is_concept_page` is whether it is a concept page, where alerts, figures and headings have special
    markup; `topic_folder` the topic folder that image paths are relative to; `cited_source_keys` the
    source keys in order of first mention; `use_count_by_anchor` the heading anchors used so far.
    """

    parse_context: ParseContext
    is_concept_page: bool = False
    topic_folder: str = ""
    cited_source_keys: list[str] = dataclasses.field(default_factory=list)
    use_count_by_anchor: dict[str, int] = dataclasses.field(default_factory=dict)
    pending_asides: list[str] = dataclasses.field(default_factory=list)
    has_steps_aside: bool = False
    is_in_top_level_block: bool = True
    section_title: str = ""
    first_line: int = 1
    last_line: int = 1

    def remember_block_lines(self, token: Token) -> None:
        """Remember the block being rendered, for problem locations."""
        if token.map:
            self.first_line, self.last_line = (
                get_first_line_number(token),
                get_last_line_number(token),
            )
            self.parse_context.current_line = self.first_line
        if token.type == "inline":
            self.is_in_top_level_block = token.level == 1

    def report(
        self,
        problem_code: str,
        searched_text: str,
        message: str,
        hint: str = "",
        *,
        is_consequence: bool = False,
    ) -> None:
        line, column = self.parse_context.locate_text(
            searched_text, self.first_line, self.last_line
        )
        self.parse_context.report(
            problem_code, line, column, message, hint, is_consequence=is_consequence
        )


def render_tokens(tokens: Sequence[Token], context: RenderContext) -> RichText:
    """Render blocks to HTML and plain text; a single paragraph loses its `<p>`."""
    content_tokens = [t for t in tokens if t.type not in {"paragraph_open", "paragraph_close"}]
    if len(content_tokens) == 1 and content_tokens[0].type == "inline":
        tokens = content_tokens
        unmarked_text = (
            None if content_tokens[0].meta else get_unmarked_text_or_none(content_tokens[0])
        )
        if unmarked_text is not None:  # Same output as the renderer's, without its overhead.
            context.remember_block_lines(content_tokens[0])
            html = escapeHtml(unmarked_text).strip()
            return RichText(html, plain_text(tokens)) if html else RichText("", "")
    html = _RENDERER.render(tokens, _RENDERER_OPTIONS, {"context": context}).strip()
    return RichText(html, plain_text(tokens)) if html else RichText("", "")


def assign_heading_anchor(heading: Token, context: RenderContext) -> str:
    """Return a heading's anchor: its pin or slug, numbered if the page uses it already."""
    name = anchor = pop_pinned_key(heading) or slugify(plain_text([heading])) or "section"
    while anchor in context.use_count_by_anchor:
        context.use_count_by_anchor[name] += 1
        anchor = f"{name}-{context.use_count_by_anchor[name]}"
    context.use_count_by_anchor[anchor] = 1
    return anchor


class _HtmlRenderer(RendererHTML):
    """Renderer with one method per token type, as markdown-it looks them up."""

    def render(self, tokens: Sequence[Token], options: OptionsDict, env: Env) -> str:
        context: RenderContext = env["context"]
        result = ""
        for index, token in enumerate(tokens):
            context.remember_block_lines(token)
            if token.meta and "refused" in token.meta:
                context.report("E88", "", token.meta["refused"], "Split it into shorter pieces.")
            if token.type == "inline":
                escape_unbalanced_tags(token, context.report)
                result += self.renderInline(token.children or [], options, env)
            elif token.type in self.rules:
                result += self.rules[token.type](tokens, index, options, env)
            else:
                result += self.renderToken(tokens, index, options, env)
        return result

    # --- text and links ---

    def code_inline(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        """Options of a command stay in one line: a dash that ends it would be read as a hyphen."""
        code = escapeHtml(tokens[index].content)
        return f"<code>{_COMMAND_OPTION.sub(_UNBREAKABLE_OPTION_HTML, code)}</code>"

    def math_inline(self, tokens: Sequence[Token], index: int, *rest: Any) -> str:
        return _render_math(tokens[index].content, False, rest[-1]["context"])

    def math_block(self, tokens: Sequence[Token], index: int, *rest: Any) -> str:
        html = _render_math(tokens[index].content.strip(), True, rest[-1]["context"])
        label = 'role="region" tabindex="0" aria-label="Formula, scrolls sideways"'
        return f'<div class="scroll math" {label}>{html}</div>\n'

    def cite(self, tokens: Sequence[Token], index: int, *rest: Any) -> str:
        context: RenderContext = rest[-1]["context"]
        key = tokens[index].content
        line, column = context.parse_context.locate_text(
            f"[^{key}]", context.first_line, context.last_line
        )
        context.parse_context.add_reference("source", key, line, column)
        if key not in context.cited_source_keys:
            if len(context.cited_source_keys) >= MOST_ENTRIES:
                context.report("E88", f"[^{key}]", _TOO_MANY_SOURCES_MESSAGE, "Cite fewer.")
                return ""
            context.cited_source_keys.append(key)
        if not context.is_concept_page:
            message = f"“[^{key}]” is shown on pages only, and stands in an item or a term."
            hint = f"Write the source into its comment or front matter, source: {key}, or "
            hint += "delete it."
            context.report("W96", f"[^{key}]", message, hint, is_consequence=True)
            return ""
        number = context.cited_source_keys.index(key) + 1
        attributes = f'href="#src-{escapeHtml(key)}" aria-label="Source {number}"'
        return f'<a class="cite" {attributes}>&#8288;[{number}]</a>'  # No space before it: the mark belongs to the word.

    def link_open(self, tokens: Sequence[Token], index: int, *rest: Any) -> str:
        context: RenderContext = rest[-1]["context"]
        token = tokens[index]
        href = str(token.attrs.get("href", ""))
        target = checked_figures.parse_figure_link(href)
        if target is not None:
            return _render_checked_figure_opening(tokens, index, target, context)
        if not _SAFE_URL.match(href):
            hint = "Write https://…, #heading or a path such as ../other-topic."
            context.report("E62", href, f"The address “{href[:60]}” is not allowed.", hint)
            return _render_link_as_span(tokens, index)
        if not href.startswith(("http", "mailto:")):
            file = href.partition("#")[0].rpartition("/")[2]
            if file in {"quiz.md", "cards.md"}:
                hint = "Write concept.md in its place, or https://… for another page."
                context.report(
                    "W74", href, f"The link to {file} leads to the page of its topic.", hint
                )
            href = resolve_relative_link(href, context.topic_folder)
            if href.startswith(("/concepts/", "#", "/glossary#")):
                text = "\n".join(
                    context.parse_context.lines[context.first_line - 1 : context.last_line]
                )
                link_target = f"]({token.attrs['href']}"
                link_target = link_target if link_target in text else "]("
                line, column = context.parse_context.locate_text(
                    link_target, context.first_line, context.last_line
                )
                context.parse_context.add_reference("page", href, line, column)
        return f'<a href="{escapeHtml(href)}">'

    def link_close(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        return "</span>" if tokens[index].meta.get("span") else "</a>"

    def image(self, tokens: Sequence[Token], index: int, *rest: Any) -> str:
        context: RenderContext = rest[-1]["context"]
        token = tokens[index]
        source = str(token.attrs.get("src", ""))
        alt = plain_text(token.children or [])
        if not alt:
            hint = "Say what the picture shows: ![four networks of a cluster](file.svg)."
            context.report("E60", f"]({source}", f"The image {source} has no text.", hint)
        if not is_inside_its_folder(source):
            hint = "Put the picture into the folder of the topic and name it here."
            if "\\" in source:
                hint = f"Write / between folder and file: {source.replace(chr(92), '/')}"
            context.report("E62", source, f"The image {source} is not a local file.", hint)
            return ""
        if caption := str(token.attrs.get("title", "")):
            hint = "Write it as text below the picture. Only on a page, and with the picture on a "
            hint += "line of its own, is it shown."
            context.report("W74", source, f"The caption “{caption[:40]}” is not shown here.", hint)
        line, column = context.parse_context.locate_text(
            source, context.first_line, context.last_line
        )
        context.parse_context.add_reference("file", source, line, column)
        address = escapeHtml(f"/concepts/{context.topic_folder}/files/{source}")
        return f'<img src="{address}" alt="{escapeHtml(alt)}" loading="lazy">'

    def html_inline(self, tokens: Sequence[Token], index: int, *rest: Any) -> str:
        context: RenderContext = rest[-1]["context"]
        return sanitize_html_tag(tokens[index].content, context.report)

    def html_block(self, tokens: Sequence[Token], index: int, *rest: Any) -> str:
        context: RenderContext = rest[-1]["context"]
        report_forbidden_html_block(tokens[index].content, context.report)
        return ""

    def hook_letters(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        return "".join(
            f'<b class="{STYLES_BY_LETTER[letter].legend_class}">{letter}</b>'
            for letter in tokens[index].content.split()
        )

    def lead(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        return f"<b>{tokens[index].content.strip()}</b> "

    def nothing(self, *_: Any) -> str:
        return ""

    # --- blocks ---

    def fence(self, tokens: Sequence[Token], index: int, *rest: Any) -> str:
        context: RenderContext = rest[-1]["context"]
        token = tokens[index]
        word, _, kind = token.info.strip().partition(" ")
        if word == "figure":
            return figure_blocks.render_figure_block(kind.strip(), token, context.parse_context)
        return render_code_block(token.content, word)

    def code_block(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        return render_code_block(tokens[index].content, "")

    def paragraph_close(self, tokens: Sequence[Token], index: int, *rest: Any) -> str:
        context: RenderContext = rest[-1]["context"]
        if tokens[index].hidden:
            return "\n" if index + 1 < len(tokens) else ""
        if tokens[index].level or not context.pending_asides:
            return "</p>\n"
        asides = "".join(context.pending_asides)
        context.pending_asides.clear()
        return f"</p>\n{asides}"

    def heading_open(self, tokens: Sequence[Token], index: int, *rest: Any) -> str:
        context: RenderContext = rest[-1]["context"]
        if not context.is_concept_page:
            return f"<{tokens[index].tag}>"
        return f'<{tokens[index].tag} id="{assign_heading_anchor(tokens[index + 1], context)}">'

    def blockquote_open(self, tokens: Sequence[Token], index: int, *rest: Any) -> str:
        context: RenderContext = rest[-1]["context"]
        opening = tokens[index]
        kind = opening.meta.get("alert", "") if context.is_concept_page else ""
        tokens[find_closing_index(tokens, index)].meta["alert"] = kind
        if kind and kind not in ALERT_KINDS:
            known = ", ".join(f"[!{k}]" for k in ALERT_KINDS)
            message, hint = f"[!{kind}] is not an alert.", f"Known: {known}."
            context.report("E13", "[!", message, hint, is_consequence=True)
            return "<blockquote>\n"
        return render_alert_opening(kind, tokens[index + 1 : find_closing_index(tokens, index)])

    def blockquote_close(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        return render_alert_closing(tokens[index].meta.get("alert", ""))

    def note_open(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        inline = tokens[index + 1]
        inline.children, inline.content = [], ""
        return ""

    def note_close(self, *_: Any) -> str:
        return ""

    # --- tables ---

    def table_open(self, tokens: Sequence[Token], index: int, *rest: Any) -> str:
        context: RenderContext = rest[-1]["context"]
        section = f" in “{context.section_title}”" if context.section_title else ""
        head = plain_text(tokens[index : find_closing_index(tokens, index)][:12]).split(
            "\n", maxsplit=1
        )
        title = head[0].strip()[:60].strip(" ,")
        label = escapeHtml(f"Table{section}: {title}, scrolls sideways")
        mark_row_headers_and_sums(tokens, index)
        return (
            f'<div class="scroll" role="region" tabindex="0" aria-label="{label}">'
            '<table class="t">\n'
        )

    def table_close(self, *_: Any) -> str:
        return "</table></div>\n"

    def tr_open(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        return '<tr class="sum">' if tokens[index].meta.get("sum") else "<tr>"

    def th_open(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        if not tokens[index + 1].content:
            tokens[index + 2].tag = "td"
            return "<td>"
        return f'<th scope="col"{_alignment_class(tokens[index])}>'

    def td_open(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        if tokens[index].meta.get("row"):
            return '<th scope="row">'
        return f"<td{_alignment_class(tokens[index])}>"


def mark_row_headers_and_sums(tokens: Sequence[Token], table_index: int) -> None:
    """Mark the first cell of each row as its header, and a row with a bold header as a sum."""
    for at in range(table_index, find_closing_index(tokens, table_index)):
        if tokens[at].type != "tr_open" or tokens[at + 1].type != "td_open":
            continue
        cell, inline, closing = tokens[at + 1 : at + 4]
        if _alignment_class(cell) or not inline.content:
            continue
        cell.meta["row"] = True
        closing.tag = "th"
        if re.fullmatch(r"\*\*[^*]+\*\*", inline.content):
            tokens[at].meta["sum"] = True


def _alignment_class(token: Token) -> str:
    return ' class="n"' if "right" in str(token.attrs.get("style", "")) else ""


def _render_math(latex: str, block: bool, context: RenderContext) -> str:
    effort = FORMULA_EFFORT + FORMULA_CHARACTER_EFFORT * len(latex)
    context.parse_context.spend_parsing_effort(effort, f"${latex}")
    try:
        return latex_to_mathml(latex, block)
    except MathError as error:
        message = f"The formula “{latex[:40]}” cannot be converted: {error}."
        context.report("E63", latex[:20], message, "Write plain LaTeX math.")
        return f"<code>{escapeHtml(latex)}</code>"


def _render_checked_figure_opening(
    tokens: Sequence[Token], index: int, target: checked_figures.FigureLink, context: RenderContext
) -> str:
    """Open a checked figure: compare its text with the value and keep it on one line."""
    inner = tokens[index + 1]
    text = plain_text(tokens[index + 1 : _index_of_link_close(tokens, index)])
    computed_figure = _compute_and_check_figure(tokens, index, target, context)
    if computed_figure is None:
        return _render_link_as_span(tokens, index)
    if inner.type == "text":
        inner.content = checked_figures.prevent_breaks_before_units(inner.content)
    is_requested = tokens[index].attrs.get("title") == "working"
    shows_steps = is_requested or (context.is_in_top_level_block and not context.has_steps_aside)
    if context.is_concept_page and computed_figure.estimate is not None and shows_steps:
        aside = checked_figures.render_figure_steps(
            text, target.output_or_field_name, computed_figure
        )
        if aside:
            context.pending_asides.append(aside)
            context.has_steps_aside = True
    if not computed_figure.url:
        return _render_link_as_span(
            tokens, index, f' class="num" title="{escapeHtml(computed_figure.title)}"'
        )
    title = f' title="{escapeHtml(computed_figure.title)}"' if computed_figure.title else ""
    return f'<a class="num" href="{escapeHtml(computed_figure.url)}"{title}>'


def _compute_and_check_figure(
    tokens: Sequence[Token], index: int, target: checked_figures.FigureLink, context: RenderContext
) -> checked_figures.ComputedFigure | None:
    """Compute a figure and report it if its text is not the value; None if it has none."""
    href = str(tokens[index].attrs["href"])
    inner = tokens[index + 1]
    text = plain_text(tokens[index + 1 : _index_of_link_close(tokens, index)])
    context.parse_context.spend_parsing_effort(
        parsing_effort_of_estimate(target.estimate_or_entry_name), href
    )
    try:
        computed_figure = checked_figures.compute_linked_figure(target)
    except FigureError as error:
        context.report(error.code, href[:60], error.message, error.hint)
        return None
    comparison = checked_figures.compare_figure_with_value(text, computed_figure.value)
    if not comparison.is_equal:
        mark = "`" if inner.type == "code_inline" else ""
        source = f"[{mark}{text}{mark}]({href}"
        lines = context.first_line, context.last_line
        checked_figures.report_wrong_figure_with_edit(
            comparison, text, source, context.parse_context, lines
        )
    return computed_figure


def check_and_unlink_figure_links(
    blocks: Iterable[Token], context: RenderContext | None = None
) -> None:
    """Leave the text of checked figures without their links.

    With a `context`, each figure is compared with its value first.
    """
    for block in blocks:
        if block.type != "inline" or not (
            "](" in block.content or checked_figures.KEEP_PLAIN in block.content
        ):
            continue
        if context is not None:
            context.remember_block_lines(block)
        children = block.children or []
        kept_tokens: list[Token] = []
        is_inside_figure = False
        for index, child in enumerate(children):
            href = str(child.attrs.get("href", "")) if child.type == "link_open" else ""
            target = checked_figures.parse_figure_link(href) if href else None
            if target is not None:
                is_inside_figure = True
                if context is not None:
                    _compute_and_check_figure(children, index, target, context)
            elif child.type == "link_close" and is_inside_figure:
                is_inside_figure = False
            elif child.content == checked_figures.KEEP_PLAIN:
                continue
            elif child.type == "text" and kept_tokens and kept_tokens[-1].type == "text":
                kept_tokens[-1].content += child.content
            else:
                kept_tokens.append(child)
        block.children = kept_tokens
        block.content = checked_figures.replace_figure_links_by_text(block.content)


def _index_of_link_close(tokens: Sequence[Token], index: int) -> int:
    for at in range(index + 1, len(tokens)):
        if tokens[at].type == "link_close":
            return at
    return len(tokens)


def _render_link_as_span(tokens: Sequence[Token], index: int, attributes: str = "") -> str:
    end = _index_of_link_close(tokens, index)
    if end < len(tokens):
        tokens[end].meta["span"] = True
    return f"<span{attributes}>"


_RENDERER = _HtmlRenderer()
_RENDERER_OPTIONS: OptionsDict = OptionsDict(
    {
        "maxNesting": 40,
        "html": True,
        "linkify": False,
        "typographer": False,
        "quotes": "",
        "xhtmlOut": False,
        "breaks": False,
        "langPrefix": "",
        "highlight": None,
    }
)
