"""Real servers on an installation, looked at through browsers."""

import contextlib
from collections.abc import Iterator

import httpx

from app.database.installation import Installation
from tests.browser import server
from tests.conftest import TINY


class Server(server.Server):
    """A server on the data and the database of an installation."""

    def __init__(self, installation: Installation) -> None:
        super().__init__(installation.data_folder, TINY, database_url=installation.database_url)


@contextlib.contextmanager
def visit(running: Server) -> Iterator[httpx.Client]:
    """A new browser, which follows no redirects, at its first visit."""
    # The limit is only so that nothing hangs for ever.
    with httpx.Client(base_url=running.url, timeout=120) as browser:
        browser.get("/")
        yield browser
