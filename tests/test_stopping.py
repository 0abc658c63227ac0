"""A server that is told to stop ends with status 0 and no word, whenever that comes."""

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.browser.server import Server
from tests.conftest import TINY

ROOT = Path(__file__).parents[1]
STOPS = [signal.SIGTERM, signal.SIGINT]


@pytest.mark.parametrize("how", STOPS)
@pytest.mark.parametrize(
    ("begin", "module"),
    [
        ("from app.cli import main; main(['serve'])", "app.cli.serving"),
        ("from app.cli import main; main(['serve'])", "app.main"),
        ("from app.cli.starting import serve_app; serve_app()", "app.main"),
    ],
)
def test_while_it_is_imported(begin: str, module: str, how: signal.Signals):
    program = textwrap.dedent(f"""
        import os
        import sys

        class Stopper:
            def find_spec(name, *_):
                if name == {module!r}:
                    os.kill(os.getpid(), {how:d})

        sys.meta_path.insert(0, Stopper)
        {begin}
    """)

    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("how", STOPS)
@pytest.mark.parametrize("workers", ["1", "2"])
def test_while_it_serves(tmp_path: Path, workers: str, how: signal.Signals):
    server = Server(tmp_path / "data", TINY, workers=workers).start()
    before = server.log

    assert server.stop(how) == 0
    assert server.log == before
