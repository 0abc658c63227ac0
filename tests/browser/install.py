"""Finds or installs the browser that the tests drive, and the proxy in front of it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

_APT = ("apt-get", "install", "-y", "-q", "--no-install-recommends")
# The shell first: it draws the same pages without a window around them, which takes a
# third of the time for each new browser.
_SHELL = "chromium-headless-shell"
_OTHERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find() -> str | None:
    """The system's browser, or None where Playwright's own is to be used."""
    found = (shutil.which(name) for name in (_SHELL, *_OTHERS))
    return next((path for path in found if path), None)


def main() -> int:
    if shutil.which(_SHELL) and shutil.which("nginx"):
        return 0
    debian = Path("/etc/debian_version").exists()
    if debian and os.geteuid() == 0 and shutil.which("apt-get"):
        _run(["apt-get", "update", "-q"])
        _run([*_APT, _SHELL])  # not every release has it
        return _run([*_APT, *([] if find() else ["chromium"]), "nginx-light"])
    if find():  # without nginx one test is left out
        return 0
    playwright = [sys.executable, "-m", "playwright", "install", "--only-shell"]
    return _run([*playwright, "chromium"])


def _run(command: list[str]) -> int:
    """Run a command to its end; returns its exit code."""
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(command, check=False, env=quiet).returncode


if __name__ == "__main__":
    sys.exit(main())
