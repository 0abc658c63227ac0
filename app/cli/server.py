"""The command `serve`."""

import argparse
import gc
import os
import shlex
import socket
import sys
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from sqlmodel import Session

from app.accounts.learner_store import count_course_learners
from app.cli import LOCAL_DATA, CommandError, create_server_app
from app.cli.database import (
    create_data_folder,
    get_server_url,
    migrate_and_lock_data_folder,
    open_database,
    read_settings,
)
from app.cli.people import create_author_link, format_author_link
from app.clock import utc_now
from app.content.check import format_count_noun
from app.content.course import Course
from app.content.live_courses import SINGLE_COURSE, CourseRegistry
from app.estimator.hardware.prices import PriceList
from app.main import create_app
from app.settings import Settings
from app.web.connection_guard import (
    ConnectionLimits,
    create_guarded_protocol_factory,
    raise_file_limit_and_cap_connections,
)
from app.web.monitoring import configure_logging, share_metrics_between_processes

_SECONDS_TO_STOP = 8  # seconds that requests have to finish when the server is stopped


def run_serve_command(options: argparse.Namespace) -> int:
    """Migrate the database, load the course, print the URL and serve."""
    if options.folder:
        _set_folder_environment_variables(options.folder.absolute())
    for name, value in (("HEADROOM_HOST", options.host), ("HEADROOM_PORT", options.port)):
        if value is not None:
            os.environ[name] = value
    settings = read_settings()
    if not settings.content.is_dir():
        raise CommandError(
            f"the content folder {settings.content} is missing; "
            "set HEADROOM_CONTENT to the folder that holds syllabus.toml, or a folder "
            "for each course."
        )
    create_data_folder(settings.data)
    if settings.data == settings.content / LOCAL_DATA:
        (settings.data / ".gitignore").write_text("*\n", encoding="utf-8")
    _check_port_available(settings)
    with migrate_and_lock_data_folder(settings):
        app = create_app(settings)
        _announce_start_and_author_link(settings, app.state.courses)
        _announce_price_file(settings, app.state.prices)
        gc.freeze()  # the course is permanent: exclude it from garbage collection
        _run_server(settings, app)
    return 0


def _set_folder_environment_variables(course_folder: Path) -> None:
    """Set the folders of course and data in the environment; a data folder that is set stays."""
    if not any(any(course_folder.glob(name)) for name in ("syllabus.toml", "*/syllabus.toml")):
        raise CommandError(
            f"{course_folder} holds no course, for it has no syllabus.toml; "
            "`headroom new course DIR` begins one."
        )
    os.environ["HEADROOM_CONTENT"] = str(course_folder)
    if not os.environ.get("HEADROOM_DATA"):
        os.environ["HEADROOM_DATA"] = str(course_folder / LOCAL_DATA)


def _check_port_available(settings: Settings) -> None:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            raise CommandError(
                f"cannot listen on {settings.host}:{settings.port} "
                f"({error.strerror}); set HEADROOM_PORT to a free port, "
                f"e.g. HEADROOM_PORT={settings.port + 1}, or use --port {settings.port + 1}."
            ) from None


def _announce_start_and_author_link(settings: Settings, courses: CourseRegistry) -> None:
    for live in courses.live_courses.values():
        _announce_course(live.get_current_course(), live.folder)
    if courses.has_several_courses:
        _announce_learners_without_course(settings)
    print(f"Data:   {settings.data}")
    print(f"Open    {get_server_url(settings)}", flush=True)
    if settings.authoring and sys.stdout.isatty():
        with open_database(settings) as engine:
            link = create_author_link(engine, get_server_url(settings), utc_now())
        print(f"Author  {format_author_link(link)}", flush=True)


def _announce_course(course: Course, folder: Path) -> None:
    errors = sum(p.severity == "error" for p in course.problems)
    counts = (
        format_count_noun(len(course.topics), "topic"),
        format_count_noun(len(course.questions), "question"),
        format_count_noun(len(course.cards), "card"),
    )
    print(f"Course: {', '.join(counts)} from {folder}")
    if errors:
        command = f"headroom check {shlex.quote(str(folder))}"
        print(f"{format_count_noun(errors, 'error')} in the content; `{command}` lists them.")


def _announce_price_file(settings: Settings, prices: PriceList) -> None:
    if prices.problem:
        print(prices.problem, file=sys.stderr, flush=True)
    elif prices.prices:
        print(f"Prices: {len(prices.prices)} from {settings.prices}", flush=True)


def _announce_learners_without_course(settings: Settings) -> None:
    """Report learners of the former single course, which no course shows now."""
    with open_database(settings) as engine, Session(engine) as db:
        unassigned_count = count_course_learners(db, SINGLE_COURSE)
    if unassigned_count:
        print(
            f"What {format_count_noun(unassigned_count, 'learner')} did before this server had several courses belongs "
            "to none of them; `headroom learners adopt COURSE` moves it to one."
        )


def _run_server(settings: Settings, app: FastAPI) -> None:
    """Run uvicorn. `app` is used if there is a single process."""
    configure_logging(settings.log)
    if settings.metrics_token and settings.workers > 1:
        share_metrics_between_processes(settings.data / "metrics")

    single_process = settings.workers == 1  # several processes each create an app
    uvicorn.run(
        app if single_process else f"{create_server_app.__module__}:{create_server_app.__name__}",
        factory=not single_process,
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        loop="asyncio",  # with uvloop, new clients wait behind rendered pages
        http=create_guarded_protocol_factory(
            ConnectionLimits(
                max_connections=raise_file_limit_and_cap_connections(settings.connections),
                max_connections_per_client=settings.client_connections,
                proxies=settings.trusted_proxies,
            )
        ),
        ws="none",
        access_log=False,  # slow and failed requests are logged by the app
        log_config=None,  # app.web.monitoring configures logging
        log_level="warning",
        proxy_headers=False,  # TrustedProxyMiddleware handles the configured proxies
        timeout_graceful_shutdown=_SECONDS_TO_STOP,
        server_header=False,
    )
