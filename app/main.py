"""App factory: builds the FastAPI app from the settings and registers every router."""

import asyncio
import contextlib
import datetime as dt
import functools
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

from fastapi import APIRouter, Depends, FastAPI
from fastapi.concurrency import run_in_threadpool
from itsdangerous import Signer
from jinja2 import Environment
from starlette.routing import BaseRoute
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from app import ROOT, accounts, flashcards, progress, quiz
from app.accounts import author_access, personal_data
from app.accounts.downloads import DownloadQueue
from app.api import course, estimates
from app.authoring import pages as authoring_pages
from app.authoring.statistics_tables import StatisticsCache
from app.calculators import hardware_pages, pages
from app.clock import utc_now
from app.content.live_courses import SINGLE_COURSE, CourseRegistry, LiveCourse
from app.database.backup import run_daily_backups
from app.database.engine import (
    MAX_CONCURRENT_READS,
    OpenWriteSession,
    create_write_session_opener,
    make_engine,
)
from app.database.installation import Installation, load_or_create_secret_key
from app.database.quotas import DailyByteQuota, StorageLimit
from app.database.secure_delete import WalTruncator
from app.estimator.hardware.prices import load_price_list
from app.exams import pages as exams
from app.exams.sitting import close_overdue_sittings_in_background
from app.import_export import anki_card_pages
from app.import_export.anki_package_import import BackgroundCardImports
from app.lessons import course_pages, notes, search
from app.lessons.page_renderer import RenderedPageCache
from app.progress.weekly_mail import MailServer, run_weekly_mail_sender
from app.settings import Settings
from app.web import course_chooser_and_service_worker, error_responses, monitoring
from app.web.dependencies import require_calculators
from app.web.middleware import EdgeConfig, EdgeMiddleware
from app.web.monitoring import (
    Metrics,
    ReadinessChecks,
    RouteTemplates,
    stop_worker_when_parent_ends,
)
from app.web.render import StaticAssets, create_template_env
from app.web.request_limits import BodyLimits, BodyReceiver, FairSlots, RateLimiter, RequestGuard
from app.web.visitor import SessionCookies

# Check the course files at most twenty times a second. Authors do not save and reload
# faster, and each check takes a millisecond from other requests.
_FILE_CHECK_SECONDS = 0.05
# Requests that a process works on at a time; others wait. Rendering pages is limited by
# the single CPU core that Python uses: with more at a time, each would only take
# longer. Forms have separate slots, so that they do not wait behind pages, nor pages
# behind a locked database. Estimates and files have further ones, because they are
# slow.
_SLOTS = {"pages": 8, "forms": 4, "estimates": 8, "files": 32}


def create_app(
    settings: Settings,
    clock: Callable[[], dt.datetime] = utc_now,
    live_course: LiveCourse | None = None,
) -> FastAPI:
    """Create the application. `clock` returns the current time in UTC."""
    app = FastAPI(
        title="Headroom",
        openapi_url=None,  # /api/v1 has its own schema
        telemetry={"tracing": False, "metrics": False, "logs": False},
        lifespan=lifespan,
    )
    app.state.settings, app.state.clock = settings, clock
    app.state.engine = make_engine(settings.database_url_or_default)
    app.state.reader_slots = asyncio.Semaphore(MAX_CONCURRENT_READS)
    app.state.courses = courses = open_courses(settings, live_course)
    app.state.live_course = courses.live_courses[courses.default_course_name]
    assets = load_assets()
    app.state.static, app.state.templates = assets.static, assets.templates
    app.state.session_cookies = create_session_cookies(settings)
    app.state.sheets = {n: RenderedPageCache(app.state.templates) for n in courses.live_courses}
    app.state.rates = RateLimiter(settings.rate_settings_by_kind)
    app.state.prices = load_price_list(settings.prices)
    app.state.metrics = _create_metrics(app)
    app.state.open_write_session = _create_measured_write_session_opener(app)
    app.state.log_truncation = WalTruncator(app.state.engine)
    app.state.imports = BackgroundCardImports(app.state.open_write_session, clock)
    app.state.storage = StorageLimit(app.state.engine, settings.data, settings.max_data_gb)
    app.state.daily_quota = DailyByteQuota(settings.client_data_mb * 1e6)
    app.state.downloads = DownloadQueue(app.state.engine, app.state.storage)
    app.state.statistics = {
        name: StatisticsCache(app.state.engine, live, clock, name)
        for name, live in courses.live_courses.items()
    }
    app.state.readiness = ReadinessChecks(
        app.state.engine, settings.data, courses, app.state.storage
    )
    error_responses.register_error_handlers(app)
    app.router.routes.extend(list_routes_in_matching_order(authoring=settings.authoring))
    app.add_middleware(EdgeMiddleware, config=build_edge_config(app))
    if settings.trusted_proxies:
        trusted: Any = ProxyHeadersMiddleware  # uvicorn types ASGI apps in its own way
        app.add_middleware(
            trusted, trusted_hosts=[str(network) for network in settings.trusted_proxies]
        )
    return app


def open_courses(settings: Settings, live_course: LiveCourse | None) -> CourseRegistry:
    """Return the courses in the content folder, or only the given `live_course`."""
    if live_course is not None:
        return CourseRegistry({SINGLE_COURSE: live_course})
    cache_folder, last_good_folder = settings.data / "cache", settings.data / "last-good"
    return CourseRegistry.from_content_folder(
        settings.content,
        lambda folder: LiveCourse(folder, cache_folder, _FILE_CHECK_SECONDS, last_good_folder),
    )


def serve_app() -> FastAPI:
    """Create the application of a server process, and configure its log."""
    settings = Settings()
    monitoring.configure_logging(settings.log)
    return create_app(settings)


def create_session_cookies(settings: Settings) -> SessionCookies:
    """Return the object that recognizes browsers by their cookies and hashes device codes."""
    return SessionCookies(
        Signer(
            load_or_create_secret_key(settings.secret, settings.data / "secret"),
            salt="learner",
        ),
        settings.cookie,
    )


@contextlib.asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Load the courses before the server is open; run the background tasks until shutdown.

    Otherwise the first page would wait until a course is parsed, which takes seconds without a
    cache.
    """
    state, settings = app.state, app.state.settings
    installation = Installation(
        settings.data, settings.database_url_or_default, settings.secret, settings.backups_folder
    )
    mail_server = MailServer(settings.smtp, settings.mail_from, settings.url)
    for live in state.courses.live_courses.values():
        with contextlib.suppress(Exception):  # /readyz and each page say what is wrong with it
            await run_in_threadpool(live.get_current_course)
    async with contextlib.AsyncExitStack() as background_tasks:
        for task in (
            run_daily_backups(installation, state.clock),
            close_overdue_sittings_in_background(state.engine, state.courses, state.clock),
            run_weekly_mail_sender(state.engine, state.courses, mail_server, state.clock),
            state.imports.lifespan(),
        ):
            await background_tasks.enter_async_context(task)
        with stop_worker_when_parent_ends():
            yield
    await state.log_truncation.truncate_and_stop()


class Assets(NamedTuple):
    static: StaticAssets
    templates: Environment


@functools.cache
def load_assets() -> Assets:
    """Load static files and templates, once per process."""
    static = StaticAssets(ROOT / "static")
    return Assets(static, create_template_env(ROOT / "templates", static))


@functools.cache
def list_routes_in_matching_order(*, authoring: bool) -> tuple[BaseRoute, ...]:
    """Return all routes, in the order in which they are matched.

    They are cached for all apps of a process. FastAPI analyzes the parameters of a
    route when it is first used.
    """
    calculator_dependencies = [Depends(require_calculators)]
    combined_router = APIRouter(routes=[*pages.quick, *flashcards.quick])
    combined_router.include_router(pages.router, dependencies=calculator_dependencies)
    combined_router.include_router(hardware_pages.router, dependencies=calculator_dependencies)
    for router in (
        *(
            monitoring.router,
            course_chooser_and_service_worker.router,
            accounts.router,
            personal_data.router,
        ),
        *(anki_card_pages.router, notes.router, progress.router, course_pages.router),
        *(search.router, quiz.router, flashcards.router, exams.router),
        *(estimates.router, course.router),
    ):
        combined_router.include_router(router)
    if authoring:
        combined_router.include_router(author_access.router)
        combined_router.include_router(authoring_pages.authoring_router)
    return tuple(combined_router.routes)


def build_edge_config(app: FastAPI) -> EdgeConfig:
    state, settings = app.state, app.state.settings
    return EdgeConfig(
        static_assets=state.static,
        courses=state.courses,
        cookies=state.session_cookies,
        body_receiver=BodyReceiver(BodyLimits(settings.request_seconds)),
        fair_slots_by_kind={
            name: FairSlots(total, settings.client_requests) for name, total in _SLOTS.items()
        },
        rate_limiter=state.rates,
        route_templates=RouteTemplates(app),
        request_guard=RequestGuard(settings.accepted_host_names, settings.public_origin),
        path_prefix=settings.path_prefix,
        is_always_https=settings.has_https_url,
        metrics=state.metrics,
        max_upload_bytes_by_path=anki_card_pages.REQUEST_LIMITS,
    )


def _create_metrics(app: FastAPI) -> Metrics | None:
    """Return the metrics, None unless HEADROOM_METRICS_TOKEN is set."""
    state = app.state
    if not state.settings.metrics_token:
        return None
    return Metrics(state.settings.metrics_token, lambda: state.courses.problem_count)


def _create_measured_write_session_opener(app: FastAPI) -> OpenWriteSession:
    open_write_session = create_write_session_opener(app.state.engine)
    metrics: Metrics | None = app.state.metrics
    return (
        metrics.wrap_write_session_with_timing(open_write_session)
        if metrics
        else open_write_session
    )
