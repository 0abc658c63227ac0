"""A database address as it may be shown: without its password, wherever that stands."""

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

_HIDDEN = "***"
_SECRETS = ("password", "sslpassword")
_UNREADABLE = "(an address that cannot be read)"


def redact_url(address: str) -> str:
    """The address with every password replaced by stars."""
    url = _parsed(address)
    if url is None:
        return _UNREADABLE
    # A password with an “@” that was not escaped continues in the host.
    rest, _at, host = (url.host or "").rpartition("@")
    if rest:
        url = url.set(host=host)
    url = url.update_query_dict({n: _HIDDEN for n in _SECRETS if n in url.query})
    return url.render_as_string(hide_password=True).replace("%2A", "*")


def without_password(words: object, address: str) -> str:
    """What somebody said about a database, with the passwords of `address` hidden."""
    said = str(words)
    url = _parsed(address)
    if url is None:
        return said.replace(address, _UNREADABLE) if address else said
    for secret in sorted(_passwords(url), key=len, reverse=True):
        said = said.replace(secret, _HIDDEN)
    return said


def _parsed(address: str) -> URL | None:
    try:
        return make_url(address)
    except (ArgumentError, ValueError):
        return None


def _passwords(url: URL) -> set[str]:
    rest, _at, _host = (url.host or "").rpartition("@")
    given = (url.password, rest, *(url.query.get(name) for name in _SECRETS))
    return {g for g in given if isinstance(g, str) and g}
