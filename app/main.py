"""Front door 1: builds the app from settings and mounts every room."""

import datetime as dt
import secrets
from collections.abc import Callable
from pathlib import Path

from fastapi import FastAPI
from itsdangerous import Signer

from app.config import ROOT, Settings
from app.content.library import LiveLibrary
from app.db.engine import make_engine
from app.web import errors
from app.web.clock import system_clock
from app.web.front import Front
from app.web.render import make_templates
from app.web.static import StaticFiles


def create_app(
    settings: Settings | None = None,
    clock: Callable[[], dt.datetime] = system_clock,
) -> FastAPI:
    """The application; `clock` gives the present in UTC."""
    settings = settings or Settings()
    app = FastAPI(title="Headroom", docs_url=None, redoc_url=None)
    app.state.settings = settings
    app.state.clock = clock
    app.state.engine = make_engine(settings.database)
    app.state.library = LiveLibrary(settings.content, settings.data / "cache")
    app.state.static = StaticFiles(ROOT / "static")
    app.state.templates = make_templates(ROOT / "templates", app.state.static)
    app.state.signer = Signer(_secret(settings), salt="learner")
    errors.install(app)
    app.add_middleware(Front, static=app.state.static)
    return app


def _secret(settings: Settings) -> str:
    """The signing key: given, or made once and kept in the data folder."""
    if settings.secret:
        return settings.secret
    return _kept_secret(settings.data / "secret")


def _kept_secret(path: Path) -> str:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(secrets.token_urlsafe(48), encoding="ascii")
    return path.read_text(encoding="ascii")
