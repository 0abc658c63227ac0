"""Settings from the environment (was config.py)."""

import difflib
import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.web.proxies import Network, networks, prefix_in, sound
from app.web.rate_limits import read_rates
from app.web.visitor import COOKIE

_HIDDEN = {"secret", "metrics_token"}
ROOT = Path(__file__).resolve().parent.parent
PREFIX = "HEADROOM_"
# What Kubernetes puts into every container beside a service of this name, and what
# the tests read.
_NOT_OURS = re.compile(r"HEADROOM_(SERVICE_|PORT_\d|TEST_)")


def _rate(words: str) -> str:
    read_rates(words)
    return words


def _proxies(words: str) -> str:
    try:
        networks(words)
    except ValueError:
        raise ValueError("write addresses or networks, e.g. 127.0.0.1,10.0.0.0/8") from None
    return words


def _cookie(name: str) -> str:
    if not sound(name):
        raise ValueError(
            "write letters, digits, - and _, at most 40; theme, zone, keys, score, "
            "course and headroom-author are taken"
        )
    return name


def _public(address: str) -> str:
    parts = urlsplit(address)
    sound = parts.scheme in {"http", "https"} and parts.netloc
    if address and (not sound or (parts.path.strip("/") and not prefix_in(parts.path))):
        raise ValueError("write the whole address, e.g. https://study.example/nca/")
    return address


RateWords = Annotated[str, AfterValidator(_rate)]


class Settings(BaseSettings):
    """Everything that can be set, each as HEADROOM_<NAME> in the environment."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", env_ignore_empty=True)

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=1, le=65535, description="Port to listen on.")
    data: Path = Field(
        ROOT / "data",
        description="Folder of the database, the secret and the content cache.",
    )
    content: Path = Field(
        ROOT / "content",
        description="Folder of the course, or of several, each in a folder of its own.",
    )
    database_url: str = Field(
        "",
        description="Database address; empty means SQLite in the data folder.",
    )
    secret: str = Field(
        "",
        description="Key that signs cookies; empty means one made in the data folder.",
    )
    backups: str = Field(
        "",
        description="Folder of the daily copies; empty means “backups” in the data "
        "folder, “off” makes none.",
    )
    prices: str = Field(
        "",
        description="File of your own prices of parts (TOML), shown on the pages of "
        "hardware and offered to calculators; empty means none.",
    )
    workers: int = Field(
        1,
        ge=1,
        le=64,
        description="Server processes; each counts rates and connections by itself, so "
        "a client may reach every limit once in each.",
    )
    url: Annotated[str, AfterValidator(_public)] = Field(
        "",
        description="Public address, e.g. https://study.example/nca/, for links that "
        "are sent or printed; its path is the prefix of every address.",
    )
    hosts: str = Field(
        "",
        description="Names under which the server answers, parted by commas; empty means any.",
    )
    proxies: Annotated[str, AfterValidator(_proxies)] = Field(
        "",
        description="Addresses or networks of proxies, parted by commas, whose "
        "X-Forwarded-For and -Proto are believed; without HEADROOM_URL -Prefix too.",
    )
    secure_cookies: bool = Field(
        False,
        description="Send cookies over HTTPS only; not needed where HEADROOM_URL or a "
        "named proxy says that it is HTTPS.",
    )
    cookie: Annotated[str, AfterValidator(_cookie)] = Field(
        COOKIE,
        description="Name of the cookie with a learner's key; servers that share a "
        "host need one each. Over HTTPS and without a path it begins with __Host-.",
    )
    log: Literal["text", "json"] = Field(
        "text", description="How the log is written to standard error: text or json."
    )
    metrics_token: str = Field(
        "",
        description="Token that opens /metrics for Prometheus, sent as "
        "“Authorization: Bearer …”; empty means that there is no such address.",
    )
    authoring: bool = Field(
        True,
        description="Offer the author's bench under /authoring, to browsers that "
        "`headroom author link` has let in; 0 removes it.",
    )
    max_data_gb: float = Field(
        10.0,
        ge=0,
        description="GB that the database may have; from then on learners import and "
        "write no cards, but go on saving all else. The last tenth is for those who "
        "began more than a day ago. 0 means no limit.",
    )
    client_data_mb: float = Field(
        2000.0,  # sixty learners, each with the largest file that may be sent
        ge=0,
        description="MB of cards and pictures that may be added from one address in a "
        "day (UTC). 0 means no limit.",
    )
    connections: int = Field(1000, ge=10, description="Connections that one process holds open.")
    client_connections: int = Field(
        400,  # 30 browsers behind one address open 6 each, and more while pages change
        ge=5,
        description="Connections of one client, proxies that are named aside.",
    )
    request_seconds: float = Field(
        20.0, ge=1, description="Seconds in which a form has to arrive; files get more."
    )
    client_requests: int = Field(
        4,
        ge=1,
        description="Requests of one client that a process works on at a time; its others wait.",
    )
    rate_writes: RateWords = Field(
        "1200/minute;20000/hour",
        description="Forms that one client may send, or off.",
    )
    rate_writes_browser: RateWords = Field(
        "300/minute;5000/hour",
        description="Forms that one browser may send, or off.",
    )
    rate_exports: RateWords = Field(
        "30/minute",
        description="Archives and packages that one client may take along, or off.",
    )
    rate_calendars: RateWords = Field(
        "120/minute",
        description="Times that one client may ask for a calendar, or off.",
    )
    rate_estimates: RateWords = Field(
        "900/minute", description="Estimates that one client may ask for, or off."
    )
    rate_comparisons: RateWords = Field(
        "180/minute", description="Comparisons that one client may ask for, or off."
    )
    rate_searches: RateWords = Field(
        "300/minute", description="Searches that one client may ask for, or off."
    )
    rate_imports: RateWords = Field(
        "60/minute",
        description="Files of cards that may come from one address, or off.",
    )
    rate_imports_browser: RateWords = Field(
        "6/minute", description="Files of cards that one browser may send, or off."
    )
    # There are 30^8 codes, 6.6 * 10^11. 600 tries a minute with a cookie and as many
    # without are 12,000 in the ten minutes of a code, so one code in 55 million is
    # guessed. With 30 codes in use at any time of the day, one is guessed in 35 years.
    rate_codes: RateWords = Field(
        "600/minute",
        description="Wrong device codes that may come from one address, or off.",
    )
    rate_codes_browser: RateWords = Field(
        "10/minute", description="Wrong device codes that one browser may try, or off."
    )
    # A learner with a first page read takes 610 bytes on the disk: at most 106 MB a day
    # from one address, with and without a cookie. Who only reads pages has no row.
    rate_learners: RateWords = Field(
        "120/minute;3600/hour",
        description="Learners that may begin from one address, or off.",
    )

    @property
    def database(self) -> str:
        """The database address in force."""
        return self.database_url or f"sqlite:///{self.data / 'headroom.db'}"

    @property
    def backups_folder(self) -> Path | None:
        """Where daily copies go; None where they are switched off."""
        if self.backups == "off":
            return None
        return Path(self.backups) if self.backups else self.data / "backups"

    @property
    def https(self) -> bool:
        """Whether every request comes over TLS."""
        return self.secure_cookies or self.url.startswith("https:")

    @property
    def origin(self) -> str:
        """Scheme and host of the public address, empty where it is not set."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}" if self.url else ""

    @property
    def prefix(self) -> str:
        """The path of the public address without a slash at its end."""
        return prefix_in(urlsplit(self.url).path)

    @property
    def host_names(self) -> frozenset[str]:
        """The names under which the server answers, none for any."""
        names = (name.strip().lower() for name in self.hosts.split(","))
        return frozenset(name for name in names if name)

    @property
    def trusted(self) -> tuple[Network, ...]:
        """The proxies that are believed."""
        return networks(self.proxies)

    @property
    def rates(self) -> dict[str, str]:
        """The limit of each kind of costly work, by the name after `rate_`."""
        names = [name for name in type(self).model_fields if name.startswith("rate_")]
        return {name.removeprefix("rate_"): getattr(self, name) for name in names}


def rows(settings: Settings) -> list[tuple[str, str, str, str]]:
    """Each setting as (variable, value, default, meaning); the secret is hidden."""
    return [
        (
            f"{PREFIX}{name.upper()}",
            _shown(name, getattr(settings, name)),
            str(field.default),
            field.description or "",
        )
        for name, field in Settings.model_fields.items()
    ]


def unknown() -> list[str]:
    """A sentence for each variable that looks like a setting and is none."""
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
    return [
        _unknown(name, known)
        for name in sorted(os.environ)
        if name.startswith(PREFIX) and name not in known and not _NOT_OURS.match(name)
    ]


def _unknown(name: str, known: set[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    hint = f"Did you mean {near[0]}?" if near else "`headroom settings` lists all."
    return f"There is no setting {name}. {hint}"


def _shown(name: str, value: Any) -> str:
    return "(set)" if name in _HIDDEN and value else str(value)
