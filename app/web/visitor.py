"""Visitors: signed session cookies and browser preferences."""

import dataclasses
import hashlib
import re
import secrets
from typing import NamedTuple

from cachetools import LRUCache
from itsdangerous import BadSignature, Signer

COOKIE = "headroom"
"""Cookie of the learner's session key, unless the server configures another name."""
AUTHOR = f"{COOKIE}-author"
"""Cookie of a browser that may open the author pages."""
CHOICES = frozenset({"theme", "zone", "keys", "course"})
"""Cookies of browser preferences; none of them contains a key."""

YEAR = 365 * 24 * 3600
"""Lifetime of preference cookies in seconds."""
_KEY_AGE = 400 * 24 * 3600  # browsers keep no cookie longer; every write renews it


def set_cookie_line(name: str, value: str, age: int) -> bytes:
    """Return a Set-Cookie line for the whole site, HttpOnly."""
    # The middleware adds the server's path prefix, and Secure over TLS.
    line = f"{name}={value}; Max-Age={age}; Path=/; HttpOnly; SameSite=Lax"
    return line.encode()


def key_line(signed: str) -> bytes:
    """Return the Set-Cookie line for a signed key."""
    return set_cookie_line(COOKIE, signed, _KEY_AGE)


def forget_line() -> bytes:
    """Return the Set-Cookie line that deletes the key."""
    return set_cookie_line(COOKIE, "", 0)


CLEAR_SITE_DATA = {"clear-site-data": '"cache", "storage"'}
"""Header that also deletes the pages and reviews a browser stored for offline use."""
_THEMES = {"light", "dark"}
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{0,63}")
# Maximum length of our cookies' values. This server never sets longer ones.
_LONGEST = {COOKIE: 128, AUTHOR: 64, "theme": 8, "zone": 128}
_OURS = re.compile(rf"(?:^|;)\s*({'|'.join(_LONGEST)})=([^;]*)".encode())
_BYTES = 4 * 1024 * 1024  # memory for known browsers, some 2,000
_OVERHEAD_BYTES = 1500  # bytes of Python objects around the cookie values


@dataclasses.dataclass(frozen=True, slots=True)
class Visitor:
    """A browser: its session key and its preferences.

    `digest` is the hash of the key that the database stores. `cookie` is the Set-Cookie
    line with the key of a new browser, empty if the browser sent a valid cookie.
    `renewal` is the same line for a known browser. `author` means that it sent an
    author cookie, not that the cookie is valid.
    """

    key: str
    digest: str = ""
    renewal: bytes = b""
    cookie: bytes = b""
    theme: str = ""
    zone: str = ""
    author: bool = False

    @property
    def known_digest(self) -> str:
        """The digest of a key that the browser sent; empty for a newly created key."""
        return "" if self.cookie else self.digest

    @property
    def look(self) -> str:
        """The part of a page cache key for what pages show of the browser itself."""
        return f"{self.theme}+author" if self.author else self.theme


class _CookieValues(NamedTuple):
    """The values of our cookies in a request. `author` only tells if that cookie exists."""

    signed: str = ""
    theme: str = ""
    zone: str = ""
    author: bool = False


class SessionCookies:
    """Recognizes visitors by their cookies and creates keys for new ones."""

    def __init__(self, signer: Signer) -> None:
        self._signer = signer
        # Verifying a signature costs more than a lookup, and browsers send the same
        # cookies with every request. Invalid cookies are not cached.
        self._known: LRUCache[_CookieValues, Visitor] = LRUCache(_BYTES, getsizeof=_visitor_size)

    def recognize_visitor(self, cookies: bytes) -> Visitor:
        """Return the visitor of a Cookie header. Invalid or missing cookies get a new key."""
        given = _parse_cookies(cookies)
        visitor = self._known.get(given)
        if visitor is None:
            visitor = self._read(given)
            if visitor.key:
                self._known[given] = visitor
        return visitor if visitor.key else self.newcomer(visitor)

    def newcomer(self, visitor: Visitor) -> Visitor:
        """Return the visitor with a new session key."""
        key = create_session_key()
        line = self.line(key)
        return dataclasses.replace(
            visitor, key=key, digest=hash_session_key(key), renewal=line, cookie=line
        )

    def line(self, key: str) -> bytes:
        """Return the Set-Cookie line that signs a browser in with `key`."""
        return key_line(self._signer.sign(key).decode())

    def digest(self, word: str) -> str:
        """Hash a short code for storage. Useless without the secret key."""
        return hashlib.sha256(self._signer.get_signature(word)).hexdigest()

    def _read(self, given: _CookieValues) -> Visitor:
        zone = given.zone.replace("%2F", "/")
        try:
            key = self._signer.unsign(given.signed).decode()
        except (BadSignature, UnicodeError):
            key = ""
        return Visitor(
            key=key,
            digest=hash_session_key(key),
            renewal=key_line(given.signed) if key else b"",
            theme=given.theme if given.theme in _THEMES else "",
            zone=zone if _ZONE.fullmatch(zone) else "",
            author=given.author,
        )


def create_session_key() -> str:
    """Return a random session key."""
    return secrets.token_urlsafe(24)


def hash_session_key(key: str) -> str:
    """Return the hash of a key for the database, which cannot be used to sign in."""
    return hashlib.sha256(key.encode()).hexdigest()


def _parse_cookies(cookies: bytes) -> _CookieValues:
    found = {
        name.decode(): value.strip().decode("latin-1")
        for name, value in _OURS.findall(cookies)
        if len(value) <= _LONGEST[name.decode()]
    }
    return _CookieValues(
        found.get(COOKIE, ""),
        found.get("theme", ""),
        found.get("zone", ""),
        bool(found.get(AUTHOR)),
    )


def _visitor_size(visitor: Visitor) -> int:
    """Return the bytes that a known browser takes, including its cookies as the cache key."""
    words = len(visitor.renewal) + len(visitor.key) + len(visitor.digest)
    return _OVERHEAD_BYTES + 2 * words + 2 * (_LONGEST["theme"] + _LONGEST["zone"])


# The first match wins: most browsers also name those that they descend from.
_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser", "Samsung Internet"),
    ("Vivaldi", "Vivaldi"),
    ("Firefox", "Firefox"),
    ("FxiOS", "Firefox"),
    ("CriOS", "Chrome"),
    ("Chrome", "Chrome"),
    ("Safari", "Safari"),
    ("curl", "curl"),
)
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Macintosh", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)
UNKNOWN = "Unknown browser"


def describe_user_agent(user_agent: str) -> str:
    """Return a description, e.g. “Firefox on Linux”, with no text of the header itself."""
    browser = next((name for mark, name in _BROWSERS if mark in user_agent), UNKNOWN)
    system = next((name for mark, name in _SYSTEMS if mark in user_agent), "")
    return f"{browser} on {system}" if system else browser
