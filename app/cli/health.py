"""`headroom health`: ask the server that runs on this machine."""

import argparse
import http.client

from app.cli.settings import read_settings
from app.cli.stop import CommandError


def health(_given: argparse.Namespace) -> int:
    """Print what the server says of itself; 1 where it is not ready."""
    settings = read_settings()
    host = "127.0.0.1" if settings.host in {"0.0.0.0", "::"} else settings.host  # noqa: S104 - asked about, not listened on
    try:
        connection = http.client.HTTPConnection(host, settings.port, timeout=10)
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        words = answer.read().decode(errors="replace")
    except OSError as error:
        raise CommandError(f"no answer on {host}:{settings.port} ({error}).") from None
    print(words, end="")
    return int(answer.status != http.HTTPStatus.OK)
