"""Who visits: the signed cookie, read once per browser and kept in mind."""

import dataclasses
import functools
import hashlib
import re
import secrets

from itsdangerous import BadSignature, Signer

COOKIE = "headroom"
_AGE = 400 * 24 * 3600  # browsers keep no cookie longer; every write renews it
FORGET_KEPT = {"clear-site-data": '"cache", "storage"'}
"""The pages and grades that a browser holds for use without a network go as well."""
_THEMES = {"light", "dark"}
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{0,63}")


@dataclasses.dataclass(frozen=True, slots=True)
class Visitor:
    """A browser: the key of its learner, and what it chose for itself.

    `cookie` is the Set-Cookie line that gives a new browser its key, empty for one
    that came with a valid cookie; `renewal` is the same line for a known one.
    """

    key: str
    renewal: bytes
    cookie: bytes = b""
    theme: str = ""
    zone: str = ""


class Doorkeeper:
    """Recognises visitors by their cookies and gives new ones a key."""

    def __init__(self, signer: Signer, *, secure: bool) -> None:
        self._signer = signer
        self._secure = secure
        # Checking a signature costs more than a lookup, and browsers send the same
        # cookies with every request.
        self._known = functools.lru_cache(maxsize=4096)(self._read)

    def recognise(self, cookies: bytes) -> Visitor:
        """The visitor of a Cookie header; forged or missing ones get a new key."""
        visitor = self._known(cookies)
        if visitor.key:
            return visitor
        line = self.line(secrets.token_urlsafe(24))
        key = line.split(b"=", 1)[1].split(b".", 1)[0].decode()
        return dataclasses.replace(visitor, key=key, renewal=line, cookie=line)

    def line(self, key: str) -> bytes:
        """The Set-Cookie line that makes a browser the learner of `key`."""
        value = self._signer.sign(key).decode()
        secure = "; Secure" if self._secure else ""
        return (
            f"{COOKIE}={value}; Max-Age={_AGE}; Path=/; HttpOnly; SameSite=Lax{secure}"
        ).encode()

    def digest(self, word: str) -> str:
        """A word as it may be kept: worthless without the secret of this server."""
        return hashlib.sha256(self._signer.get_signature(word)).hexdigest()

    def _read(self, cookies: bytes) -> Visitor:
        given = dict(_pairs(cookies.decode("latin-1")))
        theme, zone = given.get("theme", ""), given.get("zone", "").replace("%2F", "/")
        try:
            key = self._signer.unsign(given.get(COOKIE, "")).decode()
        except BadSignature:
            key = ""
        return Visitor(
            key=key,
            renewal=self.line(key) if key else b"",
            theme=theme if theme in _THEMES else "",
            zone=zone if _ZONE.fullmatch(zone) else "",
        )


def forget_line() -> bytes:
    """The Set-Cookie line that takes the key out of a browser."""
    return f"{COOKIE}=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax".encode()


def _pairs(cookies: str) -> list[tuple[str, str]]:
    parts = (part.strip().partition("=") for part in cookies.split(";"))
    return [(name, value) for name, _, value in parts if name]
