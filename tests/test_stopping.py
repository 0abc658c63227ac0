"""A server that is told to stop ends with status 0 and no word, whenever that comes."""

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from app.database.installation import Installation
from tests.browser.server import Server
from tests.conftest import TINY

ROOT = Path(__file__).parents[1]
STOPS = [signal.SIGTERM, signal.SIGINT]

pytestmark = pytest.mark.drill


SERVE = "from app.cli import main; main(['serve'])"
SERVE_APP = "from app.cli import create_server_app; create_server_app()"


@pytest.mark.parametrize(
    ("begin", "module", "how"),
    [
        *[(SERVE, "app.cli.server", how) for how in STOPS],
        *[(SERVE, "app.main", how) for how in STOPS],  # after most of the imports
        *[(SERVE_APP, "app.main", how) for how in STOPS],
    ],
)
def test_while_it_is_imported(begin: str, module: str, how: signal.Signals):
    done = _stopped_at(module, how, begin)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def _stopped_at(module: str, how: signal.Signals, begin: str) -> subprocess.CompletedProcess[str]:
    """What becomes of a program that is told to stop while it imports a module."""
    program = textwrap.dedent(f"""
        import os
        import sys

        class Stopper:
            def find_spec(name, *_):
                if name == {module!r}:
                    os.kill(os.getpid(), {how:d})

        sys.meta_path.insert(0, Stopper)
    """)
    return subprocess.run(
        [sys.executable, "-c", program + begin],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("command", "module"),
    [
        ("check", "app.cli.content"),
        ("check", "app.content.file_reader"),
    ],
)
def test_a_command_that_is_interrupted_says_so_by_its_status_alone(command: str, module: str):
    # In the background of a shell, SIGINT is ignored from the start.
    done = _stopped_at(
        module,
        signal.SIGINT,
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"from app.cli import main; sys.exit(main([{command!r}]))",
    )

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize(
    ("workers", "how"),
    [
        *[("1", how) for how in STOPS],
        # Ctrl-C, which all get; tests/drills/test_kill.py sends SIGTERM to two.
        ("2", signal.SIGINT),
    ],
)
def test_while_it_serves(tmp_path: Path, workers: str, how: signal.Signals):
    server = Server(tmp_path / "data", TINY, workers=workers).start()
    before = server.log

    assert server.stop(how) == 0
    assert server.log == before
    with Installation(server.data, "", "", None).hold_exclusive_lock():
        pass  # nobody holds the data any more
