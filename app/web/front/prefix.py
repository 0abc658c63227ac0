"""A server below a path of somebody's site: addresses leave under that path.

Every room writes its addresses as if the server had a host of its own. Here, on the way
out, they are put below the prefix: in one place, so that none is forgotten.
"""

import re

from app.web.front.headers import Headers

# Whatever a person wrote reaches a page escaped, so no text can look like this.
_ADDRESS = re.compile(
    rb'(\s(?:href|src|action|formaction|hx-get|hx-post|data-(?:changes|over|stuck|to))=")'
    rb"/(?!/)"
)
_PATH = re.compile(rb"(;\s*Path=)/(?=;|$)", re.IGNORECASE)
_HEADERS = {
    *(b"location", b"content-location"),
    *(b"hx-redirect", b"hx-location", b"hx-push-url", b"hx-replace-url"),
}


def body_below(root: str, body: bytes) -> bytes:
    """A page whose addresses begin with `root`, e.g. “/study”."""
    return _ADDRESS.sub(rb"\g<1>" + root.encode() + b"/", body) if root else body


def headers_below(root: str, site: str, words: Headers) -> Headers:
    """Headers whose addresses begin with `root`, and paths of cookies with `site`."""
    return [(name, _below(root, site, name, value)) for name, value in words]


def _below(root: str, site: str, name: bytes, value: bytes) -> bytes:
    if name in _HEADERS and value.startswith(b"/") and not value.startswith(b"//"):
        return root.encode() + value
    if name == b"set-cookie":
        return _PATH.sub(rb"\g<1>" + site.encode() + b"/", value)
    return value
