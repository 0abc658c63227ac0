"""The server as `headroom serve` runs it; slow to import, so only that command does."""

import uvicorn
from fastapi import FastAPI

from app.config import Settings
from app.web import logs
from app.web.connections import Limits, guarded, room_for
from app.web.metrics import begin_shared

_GRACE = 8  # seconds that requests have to end in when the server is told to stop


def run(settings: Settings, app: FastAPI) -> None:
    """Serve until somebody says stop; `app` is used where one process is enough."""
    logs.configure(settings.log)
    if settings.metrics_token and settings.workers > 1:
        begin_shared(settings.data / "metrics")

    alone = settings.workers == 1  # several processes make an app each
    uvicorn.run(
        app if alone else "app.main:serve_app",
        factory=not alone,
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        loop="asyncio",  # uvloop lets new clients wait behind rendered pages
        http=guarded(
            Limits(
                connections=room_for(settings.connections),
                of_one_client=settings.client_connections,
                proxies=settings.trusted,
            )
        ),
        ws="none",
        access_log=False,  # slow and failed requests are logged by the app
        log_config=None,  # app.web.logs writes all of it
        log_level="warning",
        proxy_headers=False,  # the app believes the proxies that the settings name
        timeout_graceful_shutdown=_GRACE,
        server_header=False,
    )
