"""Writes come from our own pages: asked of the browser, without tokens in forms."""

from collections.abc import Mapping
from urllib.parse import urlsplit

_READS = {"GET", "HEAD", "OPTIONS"}


def comes_from_here(method: str, headers: Mapping[bytes, bytes], public: str) -> bool:
    """Whether a request may write, by Sec-Fetch-Site or else by Origin.

    `public` is the origin under which a proxy offers this server, where it is known.

    Browsers send one of the two with every write and pages cannot change them.
    Without both the request comes from a program, which has no cookie to abuse.
    """
    if method in _READS:
        return True
    site = headers.get(b"sec-fetch-site")
    if site is not None:
        return site in (b"same-origin", b"none")
    origin = headers.get(b"origin")
    if origin is None or (public and origin.decode("latin-1") == public):
        return True
    return urlsplit(origin.decode("latin-1")).netloc.encode() == headers.get(b"host")
