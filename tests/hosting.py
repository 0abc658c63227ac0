"""The commands of docs/hosting.md, pasted into a shell as a host would do it."""

import dataclasses
import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parents[1]
GUIDE = (ROOT / "docs/hosting.md").read_text(encoding="utf-8")
_GIT = ["git", "-c", "user.name=Test", "-c", "user.email=test@example.org"]
_TITLE = 'image.title="Headroom"'


def blocks(heading: str, language: str = "sh") -> list[str]:
    """The code blocks below a heading, up to the next heading of any level."""
    many = re.DOTALL | re.MULTILINE
    below = re.search(rf"^##+ {re.escape(heading)}\n(.*?)(?=^##+ |\Z)", GUIDE + "\n", many)
    assert below, f"there is no heading {heading}"
    return re.findall(rf"^```{language}\n(.*?)^```$", below[1], many)


class Repository:
    """A repository to clone from, which gets a second release when it is told to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self._git("init", "-q", "-b", "main")

    def add(self, *names: str) -> None:
        """Add files and folders of the working tree as they are."""
        for name in names:
            for source in _files(name):
                target = self.folder / source.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)

    def release(self, title: str) -> None:
        """Commit everything; the image is called `title` from now on."""
        dockerfile = self.folder / "Dockerfile"
        text = (ROOT / "Dockerfile").read_text()
        assert _TITLE in text
        dockerfile.write_text(text.replace(_TITLE, f'image.title="{title}"'))
        self._git("add", "-A")
        self._git("commit", "-q", "-m", title)

    def _git(self, *words: str) -> None:
        subprocess.run([*_GIT, *words], cwd=self.folder, check=True)


def _files(name: str) -> list[Path]:
    """The files of the working tree below a name, without what is ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard", name],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [ROOT / path for path in listed.split("\0") if path and (ROOT / path).exists()]


@dataclasses.dataclass
class Host:
    """A machine on which the guide is followed.

    `replacements` are made in every block, so that nothing outside of `folder` is
    touched. `url` is where the test finds the server, `public` what HEADROOM_URL says.
    `headroom` begins a command, `title` prints the title of what runs.
    """

    folder: Path
    url: str
    public: str
    replacements: dict[str, str]
    headroom: str
    title: str
    programs: Path | None = None

    def paste(self, block: str) -> str:
        """Run a block until its first failure; returns its output."""
        for word, other in self.replacements.items():
            block = block.replace(word, other)
        clean = {k: v for k, v in os.environ.items() if not k.startswith("HEADROOM_")}
        if self.programs:
            clean["PATH"] = f"{self.programs}:{clean['PATH']}"
        done = subprocess.run(
            ["bash", "-euc", block],
            cwd=self.folder,
            env=clean,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def wait(self) -> None:
        """Return when the server is ready; fail after two minutes."""
        for _ in range(600):
            try:
                if self._ask("GET", "/readyz").status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.2)
        raise AssertionError(f"{self.url} is not ready after two minutes")

    def enroll(self, name: str) -> None:
        """Let a new learner write down a name."""
        self.wait()
        form = {"name": name, "minutes_a_day": "30", "retention": "90"}
        assert self._ask("POST", "/settings", data=form).status_code == 303

    def learners(self) -> set[str]:
        """The names that the server lists."""
        self.wait()
        lines = self.paste(f"{self.headroom} learners list").splitlines()
        return {line.split()[1] for line in lines[1:]}

    def _ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        # The certificate of a test is one that Caddy made for itself.
        return httpx.request(method, self.url + path, verify=False, timeout=30, **more)  # noqa: S501


def follow(host: Host, repository: Repository, way: str) -> None:
    """Start, back up, restore, upgrade and go back as the guide says for one way."""
    start, look = blocks(f"Start with {way}")
    host.paste(start)
    if "cd headroom" in start:
        host.folder /= "headroom"
    host.enroll("Anna")
    assert f"{host.public}/authoring/enter?token=" in host.paste(look)

    host.paste(blocks(f"Back up with {way}")[0])
    host.enroll("Bert")
    host.paste(blocks(f"Restore with {way}")[0])
    assert host.learners() == {"Anna"}

    repository.release("Headroom two")
    host.paste(blocks(f"Upgrade with {way}")[0])
    host.enroll("Carl")
    assert host.learners() == {"Anna", "Carl"}
    assert "Headroom two" in host.paste(host.title)

    host.paste(blocks(f"Go back with {way}")[0])
    assert host.learners() == {"Anna"}
    assert "Headroom two" not in host.paste(host.title)
