"""Code in colors: Pygments classes, no inline style."""

import functools

from markdown_it.common.utils import escapeHtml
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from app.content.limits import MOST_COLORED

_PLAIN = frozenset({"", "text", "txt", "plain"})


@functools.cache
def _formatter() -> "HtmlFormatter[str]":
    return HtmlFormatter(nowrap=True, classprefix="hl-")


@functools.lru_cache(maxsize=256)
def is_language(name: str) -> bool:
    """Whether code of this name can be shown as such; plain text is one."""
    if name in _PLAIN:
        return True
    try:
        get_lexer_by_name(name)
    except ClassNotFound:
        return False
    return True


@functools.lru_cache(maxsize=1024)
def to_html(text: str, language: str) -> str:
    """A block of code; a very long one, or an unknown language, stays plain."""
    inner = escapeHtml(text)
    if len(text) > MOST_COLORED:
        language = ""
    if not is_language(language):
        language = ""
    if language not in _PLAIN:
        inner = highlight(text, get_lexer_by_name(language), _formatter())
    name = f"Code, {language}" if language not in _PLAIN else "Code"
    label = f'role="region" tabindex="0" aria-label="{escapeHtml(name)}"'
    return f'<pre class="hl" {label}><code>{inner}</code></pre>\n'
