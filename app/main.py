"""Front door 1: builds the app from settings and mounts every room."""

import contextlib
import datetime as dt
import os
import secrets
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from fastapi import FastAPI
from itsdangerous import Signer

from app.api import routes as api
from app.authoring import routes as authoring
from app.authoring.survey import Surveyor
from app.belongings import routes as belongings
from app.calculators import routes as calculators
from app.concepts import routes as concepts
from app.concepts.sheets import Sheets
from app.config import ROOT, Settings
from app.content.library import LiveLibrary
from app.db.engine import make_engine, put_together, reading_room
from app.db.pulse import pulse_of
from app.db.writer import Turn, turns
from app.exams import routes as exams
from app.exams.closing import closing
from app.exchange import routes as exchange
from app.flashcards import routes as flashcards
from app.learners import routes as learners
from app.learners.codes import Patience
from app.notes import routes as notes
from app.progress import routes as progress
from app.quiz import routes as quiz
from app.search import routes as search
from app.web import errors, health, logs, worker
from app.web.addresses import RouteNames
from app.web.clock import system_clock
from app.web.front import Door, Front
from app.web.keeping import Pages
from app.web.metrics import Metrics, Sources
from app.web.readiness import Readiness
from app.web.render import make_templates
from app.web.static import StaticFiles
from app.web.visitor import Doorkeeper

# The files of the course are looked at fifty times a second at most: nobody saves one
# and reloads faster.
_GLANCE = 0.02
# Seconds for which a thread keeps the interpreter while another wants it: whoever
# writes gives it away at every statement, and a page in the making keeps it that long.
_SWITCH = 0.0005


def create_app(
    settings: Settings | None = None,
    clock: Callable[[], dt.datetime] = system_clock,
    library: LiveLibrary | None = None,
) -> FastAPI:
    """The application; `clock` gives the present in UTC."""
    settings = settings or Settings()
    app = FastAPI(
        title="Headroom",
        openapi_url=None,  # /api/v1 describes itself
        telemetry={"tracing": False, "metrics": False, "logs": False},
        lifespan=_living,
    )
    app.state.settings = settings
    app.state.clock = clock
    app.state.engine = make_engine(settings.database)
    app.state.reading_room = reading_room(app.state.engine)
    app.state.library = library or LiveLibrary(
        settings.content, settings.data / "cache", _GLANCE
    )
    app.state.static = StaticFiles(ROOT / "static")
    app.state.templates = make_templates(ROOT / "templates", app.state.static)
    app.state.doorkeeper = Doorkeeper(
        Signer(_secret(settings), salt="learner"), secure=settings.secure_cookies
    )
    app.state.sheets = Sheets(app.state.templates)
    app.state.patience = Patience()
    app.state.pages = Pages(pulse_of(app.state.engine))
    app.state.metrics = _metrics(app)
    app.state.turn = _turns(app)
    app.state.surveyor = Surveyor(app.state.engine, app.state.library, clock)
    app.state.readiness = Readiness(app.state.engine, settings.data, app.state.library)
    errors.install(app)
    _open_rooms(app)
    app.add_middleware(Front, door=_door(app))
    return app


def serve_app() -> FastAPI:
    """The application of a server process, whose log goes where the settings say."""
    settings = Settings()
    logs.configure(settings.log)
    return create_app(settings)


@contextlib.asynccontextmanager
async def _living(app: FastAPI) -> AsyncIterator[None]:
    """What runs beside the requests from start to stop."""
    state = app.state
    sys.setswitchinterval(_SWITCH)
    async with contextlib.AsyncExitStack() as beside:
        if state.metrics is not None:
            await beside.enter_async_context(state.metrics.living())
        beside.push_async_callback(state.surveyor.close)
        await beside.enter_async_context(
            closing(state.engine, state.library, state.clock)
        )
        yield
    put_together(state.engine)


def _open_rooms(app: FastAPI) -> None:
    """Mount the routes of every room; they are tried in this order."""
    app.router.routes.extend((*calculators.quick, *flashcards.quick))
    app.include_router(calculators.router)
    app.include_router(health.router)
    app.include_router(worker.router)
    app.include_router(learners.router)
    app.include_router(belongings.router)
    app.include_router(exchange.router)
    app.include_router(notes.router)
    app.include_router(progress.router)
    app.include_router(concepts.router)
    app.include_router(search.router)
    app.include_router(quiz.router)
    app.include_router(flashcards.router)
    app.include_router(exams.router)
    app.include_router(api.router)
    if app.state.settings.bench:
        app.include_router(authoring.router)


def _door(app: FastAPI) -> Door:
    state = app.state
    return Door(
        static=state.static,
        library=state.library,
        pages=state.pages,
        doorkeeper=state.doorkeeper,
        clock=state.clock,
        routes=RouteNames(app),
        https=state.settings.secure_cookies,
        metrics=state.metrics,
        uploads=exchange.UPLOADS,
    )


def _metrics(app: FastAPI) -> Metrics | None:
    """What is counted, where somebody may ask for it."""
    state = app.state
    if not state.settings.metrics_token:
        return None
    sources = Sources(
        kept_bytes=lambda: state.pages.size,
        content_problems=lambda: len(state.library.current().problems),
    )
    return Metrics(state.settings.metrics_token, sources)


def _turns(app: FastAPI) -> Turn:
    turn = turns(app.state.engine)
    metrics: Metrics | None = app.state.metrics
    return metrics.timed(turn) if metrics else turn


def _secret(settings: Settings) -> str:
    """The signing key: given, or made once and kept in the data folder."""
    if settings.secret:
        return settings.secret
    return _kept_secret(settings.data / "secret")


def _kept_secret(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Several server processes may start at once: the first link wins and all read it.
    draft = path.with_name(f"secret.{os.getpid()}")
    if not path.exists():
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_urlsafe(48), encoding="ascii")
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(draft)
        draft.unlink()
    return path.read_text(encoding="ascii")
