"""The few HTML tags that authors may write, and what happens to all others."""

import posixpath
import re
from collections.abc import Callable

from markdown_it.common.utils import escapeHtml
from markdown_it.token import Token

from app.drawings.components import LETTERS

Report = Callable[[str, str, str, str], None]  # code, needle, message, hint

_TAG = re.compile(r"^<(/?)([a-z0-9]+)((?:\s+[a-z-]+=\"[^\"<>]*\")*)\s*/?>$", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"([a-z-]+)=\"([^\"]*)\"", re.IGNORECASE)
_ALONE = frozenset({"br"})
_PAIRED = frozenset({"sub", "sup", "kbd", "abbr", "b", "span"})
_KEYS = {look.key for look in LETTERS.values()}
_CLASSES = frozenset({"key", "k-f", "small", "quiet"} | _KEYS)
_HINT = "Allowed are br, sub, sup, kbd, abbr, and b or span with a component class."


def _opened(tag: str) -> str | None:
    """The tag as it may be written, or None."""
    match = _TAG.match(tag)
    if match is None:
        return None
    slash, name, rest = match[1], match[2].lower(), match[3]
    if name in _ALONE:
        return f"<{name}>" if not slash and not rest else None
    if name not in _PAIRED or (slash and rest):
        return None
    attributes = ""
    for key, value in _ATTRIBUTE.findall(rest):
        if not _is_allowed(name, key.lower(), value):
            return None
        attributes += f' {key.lower()}="{escapeHtml(value)}"'
    return f"<{slash}{name}{attributes}>"


def _is_allowed(name: str, key: str, value: str) -> bool:
    if key == "title":
        return name == "abbr"
    return key == "class" and set(value.split()) <= _CLASSES


def written(tag: str, report: Report) -> str:
    """A tag of the list as it is, a comment as nothing, anything else as text."""
    if tag.startswith("<!--"):
        return ""
    opened = _opened(tag)
    if opened is None:
        report("E62", tag, f"The tag {tag[:40]} is not allowed.", _HINT)
        return escapeHtml(tag)
    return opened


def check_balance(inline: Token, report: Report) -> None:
    """Turn tags that are not closed, or not opened, within their block into text."""
    opened: list[Token] = []
    for token in inline.children or []:
        match = _TAG.match(token.content) if token.type == "html_inline" else None
        if match is None or match[2].lower() not in _PAIRED:
            continue
        if not match[1]:
            opened.append(token)
        elif opened and _name(opened[-1]) == match[2].lower():
            if _opened(opened.pop().content) is None:
                token.type = "text"  # its partner is refused, and reported there
        else:
            _unbalanced(token, report)
    for token in opened:
        _unbalanced(token, report)


def _name(token: Token) -> str:
    match = _TAG.match(token.content)
    return match[2].lower() if match else ""


def _unbalanced(token: Token, report: Report) -> None:
    message = f"The tag {token.content[:40]} has no partner in its paragraph."
    report("E62", token.content, message, "Open and close a tag in one paragraph.")
    token.type = "text"


def refuse_block(content: str, report: Report) -> None:
    """Report a block of HTML that is not a comment."""
    rest = _without_comments(content).strip()
    if rest:
        first = rest.split("\n", maxsplit=1)[0]
        tag = first[: first.find(">") + 1] or first
        report("E62", first[:40], f"The HTML {tag[:40]} is not allowed.", _HINT)


def _without_comments(content: str) -> str:
    """A text without its comments; one that is never closed stays."""
    kept = []
    at = 0
    while (opened := content.find("<!--", at)) >= 0:
        closed = content.find("-->", opened + 4)
        if closed < 0:
            break
        kept.append(content[at:opened])
        at = closed + 3
    return "".join([*kept, content[at:]])


_PAGES = frozenset({"", "concept.md", "quiz.md", "cards.md"})


def local_address(href: str, folder: str) -> str:
    """Where a relative link leads in the app: `../kv-cache/concept.md#x` is a topic.

    >>> local_address("../kv-cache/concept.md#why", "weights")
    '/concepts/kv-cache#why'
    """
    if href.startswith(("#", "/")):
        return href
    path, hash_, anchor = href.partition("#")
    parts = posixpath.normpath(posixpath.join("topics", folder, path)).split("/")
    if parts[0] == "topics" and len(parts) > 1:
        beyond = "/".join(parts[2:])  # a file that is no page leads nowhere
        rest = "" if beyond in _PAGES else f"/{beyond}"
        return f"/concepts/{parts[1]}{rest}{hash_}{anchor}"
    if parts[0] == "glossary.md" or parts == ["..", "shared", "glossary.md"]:
        return f"/glossary{hash_}{anchor}"
    return f"/concepts/{path}{hash_}{anchor}"
