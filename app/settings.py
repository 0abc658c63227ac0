"""Settings, read from HEADROOM_… environment variables."""

import difflib
import ipaddress
import os
import re
from pathlib import Path
from typing import Annotated, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from app import IN_WHEEL, ROOT
from app.web.request_limits import parse_rate_limits
from app.web.visitor import AUTHOR_COOKIE, PREFERENCE_COOKIES, SESSION_COOKIE

Networks = tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]
_SECRET_SETTINGS = {"secret", "metrics_token", "smtp"}
ENVIRONMENT_PREFIX = "HEADROOM_"
# Kubernetes sets these in containers if a service is named headroom; the tests read the
# last.
_NOT_OURS = re.compile(r"HEADROOM_(SERVICE_|PORT_\d|TEST_)")


def _choose_default_data_folder() -> Path:
    """Return the folder of a clone, or that of the user for programs that are installed."""
    if not IN_WHEEL:
        return ROOT / "data"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "headroom"


_PREFIX_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)*/?")
_COOKIE_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")


def _validate_rate_limits(words: str) -> str:
    parse_rate_limits(words)
    return words


def _parse_networks(words: str) -> Networks:
    names = [name.strip() for name in words.split(",") if name.strip()]
    return tuple(ipaddress.ip_network(name, strict=False) for name in names)


def _validate_proxies(words: str) -> str:
    try:
        _parse_networks(words)
    except ValueError:
        raise ValueError("write addresses or networks, e.g. 127.0.0.1,10.0.0.0/8") from None
    return words


def _validate_cookie_name(name: str) -> str:
    if not _COOKIE_NAME.fullmatch(name) or name in {AUTHOR_COOKIE, *PREFERENCE_COOKIES}:
        raise ValueError(
            "write letters, digits, - and _, at most 40; theme, zone, keys, score, "
            "course and headroom-author are taken"
        )
    return name


def _validate_public_url(address: str) -> str:
    parts = urlsplit(address)
    sound = parts.scheme in {"http", "https"} and parts.netloc
    if address and not (sound and _PREFIX_PATH.fullmatch(parts.path)):
        raise ValueError("write the whole address, e.g. https://study.example/nca/")
    return address


RateWords = Annotated[str, AfterValidator(_validate_rate_limits)]


class Settings(BaseSettings):
    """All settings. Each is the environment variable HEADROOM_<NAME>."""

    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX, extra="ignore", env_ignore_empty=True
    )

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=1, le=65535, description="Port to listen on.")
    data: Path = Field(
        _choose_default_data_folder(),
        description="Folder for the database, the secret key and the content cache.",
    )
    content: Path = Field(
        ROOT / "content",
        description="Folder of the course, or of several courses, each in its own folder.",
    )
    database_url: str = Field(
        "", description="Database URL; empty means SQLite in the data folder."
    )
    secret: str = Field(
        "", description="Key that signs cookies; empty means a key generated in the data folder."
    )
    backups: str = Field(
        "",
        description="Folder for daily backups; empty means “backups” in the data folder, “off” "
        "disables them.",
    )
    prices: str = Field(
        "",
        description="TOML file with your own hardware prices, shown on the hardware pages and "
        "offered to calculators; empty means none.",
    )
    workers: int = Field(
        1,
        ge=1,
        le=64,
        description="Number of server processes. Each counts rates and connections separately, "
        "so a client can reach every limit once per process.",
    )
    url: Annotated[str, AfterValidator(_validate_public_url)] = Field(
        "",
        description="Public URL, e.g. https://study.example/nca/, used for links that are sent "
        "or printed. Its path is the prefix of every URL.",
    )
    smtp: str = Field(
        "",
        description="Mail server for weekly summaries, e.g. smtp://user:password@mail.example:587, "
        "or smtps:// for TLS from the start; empty means no mails. It needs HEADROOM_URL.",
    )
    mail_from: str = Field("headroom@localhost", description="Sender of these mails.")
    hosts: str = Field(
        "", description="Host names that the server accepts, separated by commas; empty means any."
    )
    proxies: Annotated[str, AfterValidator(_validate_proxies)] = Field(
        "",
        description="Addresses or networks of trusted proxies, separated by commas. Their "
        "X-Forwarded-For and -Proto headers are used.",
    )
    secure_cookies: bool = Field(
        False,
        description="Send cookies over HTTPS only. Not needed if HEADROOM_URL or a trusted "
        "proxy says that the connection is HTTPS.",
    )
    cookie: Annotated[str, AfterValidator(_validate_cookie_name)] = Field(
        SESSION_COOKIE,
        description="Name of the cookie with a learner's key. Servers that share a host need "
        "different names. Over HTTPS without a path, the name gets the prefix "
        "__Host-.",
    )
    log: Literal["text", "json"] = Field(
        "text", description="Log format on standard error: text or json."
    )
    metrics_token: str = Field(
        "",
        description="Token for /metrics (Prometheus), sent as “Authorization: Bearer …”; empty "
        "disables /metrics.",
    )
    authoring: bool = Field(
        True,
        description="Offer the author pages under /authoring to browsers that opened an author "
        "link (`headroom author link`); 0 removes them.",
    )
    max_data_gb: float = Field(
        10.0,
        ge=0,
        description="Maximum size of the database in GB. When it is reached, learners cannot "
        "import or write cards, but everything else is still saved. The last tenth "
        "is reserved for learners who started more than a day ago. 0 means no "
        "limit.",
    )
    client_data_mb: float = Field(
        2000.0,  # sixty learners, each uploading the largest file allowed
        ge=0,
        description="MB of cards and pictures that one address can add per day (UTC). 0 means "
        "no limit.",
    )
    connections: int = Field(
        1000, ge=10, description="Maximum number of open connections per process."
    )
    client_connections: int = Field(
        400,  # 30 browsers behind one address open 6 each, and more during navigation
        ge=5,
        description="Maximum number of connections per client; trusted proxies are exempt.",
    )
    request_seconds: float = Field(
        20.0,
        ge=1,
        description="Seconds within which a form must arrive; larger uploads get more time.",
    )
    client_requests: int = Field(
        4,
        ge=1,
        description="Requests of one client that a process works on at a time; further ones wait.",
    )
    rate_writes: RateWords = Field(
        "1200/minute;20000/hour", description="Forms that one client can send, or off."
    )
    rate_writes_browser: RateWords = Field(
        "300/minute;5000/hour", description="Forms that one browser can send, or off."
    )
    rate_exports: RateWords = Field(
        "30/minute", description="Archives and packages that one client can download, or off."
    )
    rate_calendars: RateWords = Field(
        "120/minute", description="Calendar requests of one client, or off."
    )
    rate_estimates: RateWords = Field(
        "900/minute", description="Estimates that one client can request, or off."
    )
    rate_comparisons: RateWords = Field(
        "180/minute", description="Comparisons that one client can request, or off."
    )
    rate_searches: RateWords = Field(
        "300/minute", description="Searches that one client can run, or off."
    )
    rate_imports: RateWords = Field(
        "60/minute", description="Card files that one address can upload, or off."
    )
    rate_imports_browser: RateWords = Field(
        "6/minute", description="Card files that one browser can upload, or off."
    )
    # There are 30^8 codes, 6.6 * 10^11. At most 600 tries a minute with a cookie and as
    # many without give 12,000 tries in the ten minutes of a code, so one code in 55
    # million is guessed. With 30 codes in use at any time of day, one is guessed in 35
    # years.
    rate_codes: RateWords = Field(
        "600/minute", description="Wrong device codes that one address can enter, or off."
    )
    rate_codes_browser: RateWords = Field(
        "10/minute", description="Wrong device codes that one browser can enter, or off."
    )
    # A learner with one page read takes 610 bytes on disk, so one address can add at
    # most 106 MB a day, with and without a cookie. A visitor who only reads pages has
    # no row.
    rate_learners: RateWords = Field(
        "120/minute;3600/hour", description="New learners from one address, or off."
    )

    @property
    def database_url_or_default(self) -> str:
        return self.database_url or f"sqlite:///{self.data / 'headroom.db'}"

    @property
    def backups_folder(self) -> Path | None:
        """The folder of the daily backups; None if they are off."""
        if self.backups == "off":
            return None
        return Path(self.backups) if self.backups else self.data / "backups"

    @property
    def has_https_url(self) -> bool:
        return self.secure_cookies or self.url.startswith("https:")

    @property
    def public_origin(self) -> str:
        """Scheme and host of the public URL; empty if it is not set."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}" if self.url else ""

    @property
    def path_prefix(self) -> str:
        """The path of the public URL without a trailing slash."""
        return urlsplit(self.url).path.rstrip("/")

    @property
    def accepted_host_names(self) -> frozenset[str] | None:
        """The host names that the server accepts; None for any."""
        names = (name.strip().lower() for name in self.hosts.split(","))
        return frozenset(name for name in names if name) or None

    @property
    def trusted_proxies(self) -> Networks:
        return _parse_networks(self.proxies)

    @property
    def rate_settings_by_kind(self) -> dict[str, str]:
        """Limits by rate limit kind, the setting's name without `rate_`."""
        names = [name for name in type(self).model_fields if name.startswith("rate_")]
        return {name.removeprefix("rate_"): getattr(self, name) for name in names}


class SettingRow(NamedTuple):
    variable: str
    value: str
    default: str
    meaning: str


def list_settings_masking_secrets(settings: Settings) -> list[SettingRow]:
    """Return each setting; a secret that is set has the value “(set)”."""
    rows = []
    for name, field in Settings.model_fields.items():
        value = getattr(settings, name)
        shown = "(set)" if name in _SECRET_SETTINGS and value else str(value)
        variable = f"{ENVIRONMENT_PREFIX}{name.upper()}"
        rows.append(SettingRow(variable, shown, str(field.default), field.description or ""))
    return rows


def unknown_variable_messages() -> list[str]:
    known = {f"{ENVIRONMENT_PREFIX}{name.upper()}" for name in Settings.model_fields}
    return [
        _unknown_variable_message(name, known)
        for name in sorted(os.environ)
        if name.startswith(ENVIRONMENT_PREFIX) and name not in known and not _NOT_OURS.match(name)
    ]


def _unknown_variable_message(name: str, known: set[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    hint = f"Did you mean {near[0]}?" if near else "`headroom settings` lists all."
    return f"There is no setting {name}. {hint}"
