"""Visitors: signed session cookies and browser preferences."""

import dataclasses
import hashlib
import re
import secrets
from collections.abc import Iterable, Mapping

from itsdangerous import BadSignature, Signer

SESSION_COOKIE = "headroom"
"""Cookie of the learner's session key, unless the server configures another name."""
AUTHOR_COOKIE = f"{SESSION_COOKIE}-author"
"""Cookie of a browser that may open the author pages."""
PREFERENCE_COOKIES = frozenset({"theme", "zone", "keys", "course"})
"""Cookies of browser preferences; none of them contains a key."""

YEAR_SECONDS = 365 * 24 * 3600
"""Lifetime of preference cookies in seconds."""
_KEY_AGE = 400 * 24 * 3600  # browsers keep no cookie longer; every write renews it


def format_set_cookie(name: str, value: str, max_age: int) -> bytes:
    # The middleware adds the server's path prefix, and Secure over TLS.
    line = f"{name}={value}; Max-Age={max_age}; Path=/; HttpOnly; SameSite=Lax"
    return line.encode()


CLEAR_SITE_DATA = {"clear-site-data": '"cache", "storage"'}
"""Header that also deletes the pages and reviews a browser stored for offline use."""
_THEME_NAMES = {"light", "dark"}
_TIME_ZONE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{0,63}")
_MAX_COOKIE_VALUE_LENGTH = 128  # characters of a cookie value; this server never sets longer ones
HOST_PREFIX = "__Host-"
"""Prefix of a cookie name that only the host itself can set, over HTTPS."""


@dataclasses.dataclass(frozen=True, slots=True)
class Visitor:
    """A browser: its session key and its preferences.

    `session_key_digest` is the hash of the key that the database stores. `new_session_cookie` is the
    Set-Cookie line with the key of a new browser, empty if the browser sent a valid cookie.
    `renewal_cookie` is the same line for a known browser. `author_token` is that of its author
    session, not yet checked. `cookie_name_prefix` begins the names of its key cookies.
    `obsolete_cookie_names` are those that it has from before the server moved to HTTPS, which a
    new one replaces.
    """

    session_key: str
    session_key_digest: str = ""
    renewal_cookie: bytes = b""
    new_session_cookie: bytes = b""
    theme: str = ""
    time_zone: str = ""
    author_token: str = ""
    cookie_name_prefix: str = ""
    obsolete_cookie_names: tuple[str, ...] = ()

    @property
    def sent_key_digest(self) -> str:
        """The digest of a key that the browser sent; empty for a newly created key."""
        return "" if self.new_session_cookie else self.session_key_digest


class SessionCookies:
    """Recognizes visitors by their cookies and creates keys for new ones.

    `name` is the name of the session cookie. Browsers send a cookie to every port of a
    host, so two servers on one host need two names. Hosts in one domain can set cookies
    for each other, so over HTTPS the names begin with `__Host-`, which browsers accept
    only from the host itself, with the path “/”. If that form is missing, the other one
    is accepted: it was set before the server moved.
    """

    def __init__(self, signer: Signer, name: str = SESSION_COOKIE) -> None:
        self._signer = signer
        self._name = name
        self._author = name + AUTHOR_COOKIE.removeprefix(SESSION_COOKIE)

    def recognize_visitor(
        self, cookies: Mapping[str, str], *, use_host_prefix: bool = False
    ) -> Visitor:
        """Return the visitor with these cookies. Invalid or missing ones get a new key.

        `use_host_prefix` selects the names that begin with `__Host-`.
        """
        prefix, other = (HOST_PREFIX, "") if use_host_prefix else ("", HOST_PREFIX)

        def read(name: str) -> str:
            value = cookies.get(prefix + name) or cookies.get(other + name, "")
            return value if len(value) <= _MAX_COOKIE_VALUE_LENGTH else ""

        signed = read(self._name)
        try:
            key = self._signer.unsign(signed).decode()
        except (BadSignature, UnicodeError):
            key = ""
        theme, zone = cookies.get("theme", ""), cookies.get("zone", "").replace("%2F", "/")
        names = (self._name, self._author) if use_host_prefix else ()
        visitor = Visitor(
            key,
            hash_session_key(key),
            self._format_signed_cookie(signed, prefix),
            theme=theme if theme in _THEME_NAMES else "",
            time_zone=zone if _TIME_ZONE_NAME.fullmatch(zone) else "",
            author_token=read(self._author),
            cookie_name_prefix=prefix,
            obsolete_cookie_names=tuple(name for name in names if name in cookies),
        )
        return visitor if key else self.copy_with_new_session_key(visitor)

    def copy_with_new_session_key(self, visitor: Visitor) -> Visitor:
        key = create_session_key()
        line = self.format_session_cookie(visitor, key)
        return dataclasses.replace(
            visitor,
            session_key=key,
            session_key_digest=hash_session_key(key),
            renewal_cookie=line,
            new_session_cookie=line,
        )

    def format_session_cookie(self, visitor: Visitor, key: str) -> bytes:
        return self._format_signed_cookie(
            self._signer.sign(key).decode(), visitor.cookie_name_prefix
        )

    def format_session_cookie_deletion(self, visitor: Visitor) -> bytes:
        return format_set_cookie(visitor.cookie_name_prefix + self._name, "", 0)

    def author_cookie_name(self, visitor: Visitor) -> str:
        return visitor.cookie_name_prefix + self._author

    def hash_short_code(self, code: str) -> str:
        """Hash a short code for storage. Useless without the secret key."""
        return hashlib.sha256(self._signer.get_signature(code)).hexdigest()

    def _format_signed_cookie(self, signed: str, prefix: str) -> bytes:
        return format_set_cookie(prefix + self._name, signed, _KEY_AGE)


def parse_cookies(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the cookies of a request. Of several with one name the first counts."""
    cookies: dict[str, str] = {}
    for line in (value for name, value in headers if name == b"cookie"):
        for cookie in line.decode("latin-1").split(";"):
            name, _, value = cookie.partition("=")
            cookies.setdefault(name.strip(), value.strip())
    return cookies


def create_session_key() -> str:
    return secrets.token_urlsafe(24)


def hash_session_key(key: str) -> str:
    """Return the hash of a key for the database, which cannot be used to sign in."""
    return hashlib.sha256(key.encode()).hexdigest()


# The first match wins: most browsers also name those that they descend from.
_BROWSER_BY_USER_AGENT_PART = (
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
_SYSTEM_BY_USER_AGENT_PART = (
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
    browser = next(
        (name for mark, name in _BROWSER_BY_USER_AGENT_PART if mark in user_agent), UNKNOWN
    )
    system = next((name for mark, name in _SYSTEM_BY_USER_AGENT_PART if mark in user_agent), "")
    return f"{browser} on {system}" if system else browser
