"""The wheel holds all that the app reads, and runs where nothing else is."""

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.browser.server import free_port
from tests.drills.learners import wait_until

ROOT = Path(__file__).resolve().parents[2]
BESIDE = ("content/", "migrations/", "static/", "templates/")


def tracked() -> list[str]:
    """The files of the working tree that Git does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [name for name in listed.stdout.split("\0") if (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the clone, because building writes into it."""
    folder = tmp_path_factory.mktemp("clone")
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def test_the_package_holds_every_file_that_the_app_reads(copy: Path, tmp_path: Path) -> None:
    command = [sys.executable, "setup.py", "-q", "build_py", "--build-lib", str(tmp_path)]
    subprocess.run(command, cwd=copy, check=True)

    built = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    read = [f"app/files/{name}" for name in tracked() if name.startswith(BESIDE)]
    read += [name for name in tracked() if name.startswith("app/")]
    assert {*read, "app/files/docs/authoring.md"} <= built
    assert not [name for name in built if "__pycache__" in name or "/." in name]


@pytest.fixture
def headroom(copy: Path, tmp_path: Path) -> Path:
    """The command in an environment that has the wheel and, as if installed, what it needs."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(tmp_path)]
    subprocess.run([*pip, *build, str(copy)], check=True)
    wheel = next(tmp_path.glob("headroom-*.whl"))
    assert len(zipfile.ZipFile(wheel).namelist()) > 500
    venv.create(tmp_path / "env", symlinks=True)
    python = tmp_path / "env" / "bin" / "python"
    subprocess.run(
        [*pip, "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)],
        check=True,
    )
    # A plain line adds the folder, but not the clone that is installed in it.
    packages = next((tmp_path / "env").glob("lib/python*/site-packages"))
    (packages / "needed.pth").write_text(sysconfig.get_path("purelib"))
    return python.with_name("headroom")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HEADROOM_", "PYTHON"))}
    (tmp_path / "home").mkdir()
    own = {"HOME": str(tmp_path / "home"), "HEADROOM_PORT": str(free_port())}
    return {k: v for k, v in kept.items() if k != "XDG_DATA_HOME"} | own


@pytest.mark.drill
def test_the_wheel_serves_the_course_and_one_of_your_own(
    headroom: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [headroom, *words],
            check=False,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )

    for page in serve(headroom, environment, tmp_path):
        assert page("/").status_code == 200
        assert "gpu-and-cpu" in page("/course").text
        assert page("/concepts/gpu-and-cpu").status_code == 200
        assert page("/static/css/base.css").status_code == 200
    assert (tmp_path / "home/.local/share/headroom/headroom.db").is_file()

    assert "cannot be changed in its place" in run("new", "topic", "x", "--title", "X").stderr
    assert "cannot be changed in its place" in run("check", "--fix").stderr
    assert run("check").returncode == 0

    made = run("new", "course", "brot-backen")
    assert made.returncode == 0, made.stderr
    assert "headroom serve brot-backen" in made.stdout
    for page in serve(headroom, environment, tmp_path, "brot-backen"):
        assert "Brot backen" in page("/").text
    data = tmp_path / "brot-backen" / ".headroom"
    assert (data / "headroom.db").is_file()
    assert (data / ".gitignore").read_text() == "*\n"
    assert "no syllabus.toml" in run("serve", "home").stderr


def serve(
    headroom: Path, environment: dict[str, str], folder: Path, *words: str
) -> Iterator[Callable[[str], httpx.Response]]:
    """Yield how to get a page of a running server, which is stopped afterwards."""
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [headroom, "serve", *words], cwd=folder, env=environment, stdout=log, stderr=log
        )
        try:
            wait_until(lambda: "Open " in (folder / "log").read_text())
            address = f"http://127.0.0.1:{environment['HEADROOM_PORT']}"
            with httpx.Client(base_url=address, timeout=60, follow_redirects=True) as browser:
                wait_until(lambda: answers(browser))
                yield browser.get
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)


def answers(browser: httpx.Client) -> bool:
    """Whether the server accepts connections."""
    try:
        return browser.get("/healthz").status_code == 200
    except httpx.TransportError:
        return False
