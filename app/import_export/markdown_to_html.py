"""Convert our Markdown to portable HTML."""

import functools
import html
import re
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from app.import_export.html_to_markdown import convert_html_to_markdown
from app.import_export.items import Item, keep_url_inside_topic_folder_or_empty, map_item_texts
from app.markup.markdown_tokens import find_closing_index, parse_markdown

_WEB_OR_MAIL_URL = re.compile(r"^(?:https?:|mailto:)", re.IGNORECASE)
_ALLOWED_HTML_TAG = re.compile(r"^</?(?:br|sub|sup|kbd|b) ?/?>$")
_HTML_MARKUP = re.compile(r"<[a-zA-Z/!]|&#?\w+;")
_RENDERER_OPTIONS: OptionsDict = OptionsDict(
    {
        "maxNesting": 40,
        "html": True,
        "linkify": False,
        "typographer": False,
        "quotes": "",
        "xhtmlOut": True,
        "breaks": False,
        "langPrefix": "language-",
        "highlight": None,
    }
)


_NAMES_AS_URLS: Mapping[str, str] = {}  # each picture has its name in the topic folder as URL


@functools.lru_cache(maxsize=4096)
def convert_markdown_to_html(markdown: str) -> str:
    """Return Markdown as HTML; a single paragraph has no `<p>`.

    Links into the course become their text, pictures their alt text.
    """
    return convert_tokens_to_html(parse_markdown(markdown))


def convert_markdown_to_html_with_pictures(
    markdown: str, url_by_picture_name: Mapping[str, str] = _NAMES_AS_URLS
) -> str:
    """Return HTML like `convert_markdown_to_html`, with pictures; one without a URL in `url_by_picture_name` has its name."""
    return convert_tokens_to_html(parse_markdown(markdown), url_by_picture_name)


def convert_markdown_to_plain_text_or_html(markdown: str) -> str:
    r"""Return plain text, or HTML with a tag in it if markup is needed.

    Moodle accepts the right sides of pairs and the steps of a GIFT file in this form, for which it
    has no format mark.

    >>> texts = ("A & B", "`x`", r"\<b> is a tag")
    >>> [convert_markdown_to_plain_text_or_html(text) for text in texts]
    ['A & B', '<code>x</code>', '<span>&lt;b&gt; is a tag</span>']
    """
    text = convert_markdown_to_html(markdown)
    plain = html.unescape(text)
    if "<" in text:
        return text
    return f"<span>{text}</span>" if _HTML_MARKUP.search(plain) else plain


def convert_tokens_to_html(
    tokens: Sequence[Token], url_by_picture_name: Mapping[str, str] | None = None
) -> str:
    """Return tokens as HTML; pictures become their alt text without `url_by_picture_name`."""
    content_tokens = [t for t in tokens if t.type not in {"paragraph_open", "paragraph_close"}]
    if len(content_tokens) == 1 and content_tokens[0].type == "inline":
        tokens = content_tokens
    return _HTML_RENDERER.render(
        tokens, _RENDERER_OPTIONS, {"picture_urls": url_by_picture_name}
    ).strip()


def convert_tokens_to_markdown(tokens: Sequence[Token]) -> str:
    return convert_html_to_markdown(
        convert_tokens_to_html(tokens, _NAMES_AS_URLS), keep_url_inside_topic_folder_or_empty
    ).markdown


class _PortableHtmlRenderer(RendererHTML):
    """Renders the tokens that differ from plain CommonMark, one method each."""

    def math_inline(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        return escapeHtml(f"\\({tokens[index].content}\\)")

    def math_block(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        formula = escapeHtml(f"\\[{tokens[index].content.strip()}\\]")
        return f"<p>{formula}</p>\n"

    def cite(self, *_: Any) -> str:
        return ""

    def note_open(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        tokens[index + 1].children, tokens[index + 1].content = [], ""
        return ""

    def note_close(self, *_: Any) -> str:
        return ""

    def html_block(self, *_: Any) -> str:
        return ""

    def html_inline(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        tag = tokens[index].content
        return tag if _ALLOWED_HTML_TAG.match(tag) else ""

    def image(
        self,
        tokens: Sequence[Token],
        index: int,
        _options: OptionsDict,
        env: MutableMapping[str, Any],
    ) -> str:
        alt = self.renderInlineAsText(tokens[index].children or [], _RENDERER_OPTIONS, {})
        name = keep_url_inside_topic_folder_or_empty(str(tokens[index].attrs.get("src", "")))
        urls: Mapping[str, str] | None = env["picture_urls"]
        if not name or urls is None:
            return alt
        return f'<img src="{escapeHtml(urls.get(name, name))}" alt="{escapeHtml(alt)}" />'

    def link_open(
        self,
        tokens: Sequence[Token],
        index: int,
        options: OptionsDict,
        env: MutableMapping[str, Any],
    ) -> str:
        if _WEB_OR_MAIL_URL.match(str(tokens[index].attrs.get("href", ""))):
            return self.renderToken(tokens, index, options, env)
        tokens[find_closing_index(tokens, index)].meta["gone"] = True
        return ""

    def link_close(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        return "" if tokens[index].meta.get("gone") else "</a>"


_HTML_RENDERER = _PortableHtmlRenderer()

# Braces in code and formulas stay: they are not placeholders.
_CODE_OR_MATH_PATTERN = r"(?P<kept>(?P<tick>`+)(?:.|\n)*?(?P=tick)|(?<!\\)\$[^$\n]+\$)"
_PLACEHOLDER_BRACE = re.compile(_CODE_OR_MATH_PATTERN + r"|(?<!\\)\{(?=[A-Za-z_])")


def escape_placeholder_braces_in_item(item: Item) -> Item:
    r"""Return the item with braces escaped, for formats in which they mean nothing.

    >>> escape_placeholder_braces_in_item(Item("n", "card", "What is {name}?", text="`{x}`")).stem
    'What is \\{name}?'
    """
    parameter_names = {name for name, _ in (*item.params, *item.lets)}

    def escape(match: re.Match[str]) -> str:
        name = re.match(r"\w+", match.string[match.end() :])
        return match["kept"] or ("{" if name and name[0] in parameter_names else r"\{")

    return map_item_texts(
        item, lambda text: _PLACEHOLDER_BRACE.sub(escape, text) if "{" in text else text
    )
