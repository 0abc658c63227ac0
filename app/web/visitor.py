"""Signed cookie, browser preferences."""

import dataclasses
import hashlib
import re
import secrets
from typing import NamedTuple

from cachetools import LRUCache
from itsdangerous import BadSignature, Signer

COOKIE = "headroom"
"""The cookie of a learner's key, unless a server is given another name for it."""
AUTHOR = f"{COOKIE}-author"
"""The cookie of a browser that has been let onto the author's bench."""
CHOICES = frozenset({"theme", "zone", "keys", "score", "course"})
"""Cookies of what a browser chose for itself; none of them carries a key."""

YEAR = 365 * 24 * 3600
"""Seconds for which a browser keeps what it chose."""
_KEY_AGE = 400 * 24 * 3600  # browsers keep no cookie longer; every write renews it


def written(name: str, value: str, age: int) -> bytes:
    """A Set-Cookie line for the whole site that no script can read."""
    # On its way out it is put under the prefix of the server, and on TLS it stays.
    line = f"{name}={value}; Max-Age={age}; Path=/; HttpOnly; SameSite=Lax"
    return line.encode()


def key_line(signed: str) -> bytes:
    """The Set-Cookie line that gives a browser a signed key."""
    return written(COOKIE, signed, _KEY_AGE)


def forget_line() -> bytes:
    """The Set-Cookie line that takes the key out of a browser."""
    return written(COOKIE, "", 0)


FORGET_KEPT = {"clear-site-data": '"cache", "storage"'}
"""The pages and grades that a browser holds for use without a network go as well."""
_THEMES = {"light", "dark"}
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{0,63}")
# What a value of ours may have at most: longer ones were never given by this server.
_LONGEST = {COOKIE: 128, AUTHOR: 64, "theme": 8, "zone": 128}
_OURS = re.compile(rf"(?:^|;)\s*({'|'.join(_LONGEST)})=([^;]*)".encode())
_BYTES = 4 * 1024 * 1024  # of the browsers kept in mind, some 2,000
_BESIDE = 1500  # bytes of the objects around what a browser sends


@dataclasses.dataclass(frozen=True, slots=True)
class Visitor:
    """A browser: the key of its session, and what it chose for itself.

    `digest` is what the database knows of the key. `cookie` is the Set-Cookie line
    that gives a new browser its key, empty for one that came with a valid cookie;
    `renewal` is the same line for a known one. `author` says that it carries a cookie
    of the author's bench, not that the bench will accept it.
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
        """The digest of a key that the browser brought; empty for one made just now."""
        return "" if self.cookie else self.digest

    @property
    def look(self) -> str:
        """What pages show of the browser itself: two looks are two pages."""
        return f"{self.theme}+author" if self.author else self.theme


class _CookieValues(NamedTuple):
    """The cookies of ours that a browser sends; the author's says only that it is."""

    signed: str = ""
    theme: str = ""
    zone: str = ""
    author: bool = False


class SessionCookies:
    """Recognizes visitors by their cookies and gives new ones a key."""

    def __init__(self, signer: Signer) -> None:
        self._signer = signer
        # Checking a signature costs more than a lookup, and browsers send the same
        # cookies with every request. What is not valid is not kept.
        self._known: LRUCache[_CookieValues, Visitor] = LRUCache(_BYTES, getsizeof=_size)

    def recognize(self, cookies: bytes) -> Visitor:
        """The visitor of a Cookie header; forged or missing ones get a new key."""
        given = _given(cookies)
        visitor = self._known.get(given)
        if visitor is None:
            visitor = self._read(given)
            if visitor.key:
                self._known[given] = visitor
        return visitor if visitor.key else self.newcomer(visitor)

    def newcomer(self, visitor: Visitor) -> Visitor:
        """The same browser with a new key, as one that was never here."""
        key = create_session_key()
        line = self.line(key)
        return dataclasses.replace(
            visitor, key=key, digest=hash_session_key(key), renewal=line, cookie=line
        )

    def line(self, key: str) -> bytes:
        """The Set-Cookie line that gives a browser the session of `key`."""
        return key_line(self._signer.sign(key).decode())

    def digest(self, word: str) -> str:
        """A short word as it may be kept: worthless without the secret."""
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
    """A key of a session that nobody can guess."""
    return secrets.token_urlsafe(24)


def hash_session_key(key: str) -> str:
    """A key as the database keeps it: who reads it there cannot come in with it."""
    return hashlib.sha256(key.encode()).hexdigest()


def _given(cookies: bytes) -> _CookieValues:
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


def _size(visitor: Visitor) -> int:
    """Bytes that a known browser takes; its cookies stand beside it as the key."""
    words = len(visitor.renewal) + len(visitor.key) + len(visitor.digest)
    return _BESIDE + 2 * words + 2 * (_LONGEST["theme"] + _LONGEST["zone"])


# The first that is named wins: most browsers name those that they descend from.
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
    """“Firefox on Linux”: nothing of the header itself, which anybody may write."""
    browser = next((name for mark, name in _BROWSERS if mark in user_agent), UNKNOWN)
    system = next((name for mark, name in _SYSTEMS if mark in user_agent), "")
    return f"{browser} on {system}" if system else browser
