"""Settings from the environment; only the two front doors read them."""

from pathlib import Path
from typing import Any

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

ROOT = Path(__file__).resolve().parent.parent


class Settings(BaseSettings):
    """Everything that can be set, each as HEADROOM_<NAME> in the environment."""

    model_config = SettingsConfigDict(
        env_prefix="HEADROOM_", env_ignore_empty=True, extra="ignore"
    )

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=1, le=65535, description="Port to listen on.")
    data: Path = Field(
        ROOT / "data",
        description="Folder of the database, the secret and the content cache.",
    )
    content: Path = Field(ROOT / "content", description="Folder of the course.")
    database_url: str = Field(
        "",
        description="Database address; empty means SQLite in the data folder.",
    )
    secret: str = Field(
        "",
        description="Key that signs cookies; empty means one made in the data folder.",
    )
    workers: int = Field(1, ge=1, le=64, description="Server processes.")
    secure_cookies: bool = Field(
        False, description="Send cookies over HTTPS only (set it behind TLS)."
    )
    url: str = Field("", description="Public address, e.g. https://study.example/nca/")
    authoring: bool = Field(
        True,
        description="Offer the author's bench under /authoring, to browsers that "
        "`headroom author link` has let in; 0 removes it.",
    )

    @property
    def database(self) -> str:
        """The database address in force."""
        return self.database_url or f"sqlite:///{self.data / 'headroom.db'}"


def rows(settings: Settings) -> list[tuple[str, str, str, str]]:
    """Each setting as (variable, value, default, meaning); the secret is hidden."""
    return [
        (
            f"HEADROOM_{name.upper()}",
            _shown(name, getattr(settings, name)),
            str(field.default),
            field.description or "",
        )
        for name, field in Settings.model_fields.items()
    ]


def _shown(name: str, value: Any) -> str:
    return "(set)" if name == "secret" and value else str(value)
