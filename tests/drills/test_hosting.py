"""The guide for hosts is followed with a real Docker engine, block by block."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.server import free_port
from tests.hosting import ROOT, Host, Repository, blocks, follow

BACKUP = "2026-11-22.backup"
_PORTS = """services:
  caddy:
    ports: !override ["127.0.0.1:{port}:443"]
"""


def docker(*words: str) -> str:
    """What `docker …` prints, empty where it fails."""
    done = subprocess.run(["docker", *words], check=False, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Repository]:
    """The working tree as a repository, where Docker may be used; all goes afterwards.

    The guide names its containers, volumes and images `headroom`. Where there are such
    already, they are somebody's, and nothing is done.
    """
    if not shutil.which("docker") or not docker("info", "-f", "{{.ServerVersion}}"):
        pytest.skip("needs a Docker engine that answers")
    if made_by_the_guide():
        pytest.skip("there is a container, volume or image named headroom already")
    repository = Repository(tmp_path / "origin")
    repository.add(".")
    repository.release("Headroom")
    yield repository
    for kind, names in made_by_the_guide().items():
        docker(*kind.split(), "rm", "-f", *names)


def made_by_the_guide() -> dict[str, list[str]]:
    """Names of containers, volumes, networks and images that the guide makes."""
    listed = {
        "container": docker("ps", "-a", "--filter", "name=headroom", "-q"),
        "volume": docker("volume", "ls", "--filter", "name=headroom", "-q"),
        "network": docker("network", "ls", "--filter", "name=headroom", "-q"),
        "image": docker("image", "ls", "headroom", "--format", "{{.Repository}}:{{.Tag}}"),
    }
    return {kind: names.split() for kind, names in listed.items() if names.split()}


def test_the_guide_for_docker_works_word_for_word(tmp_path: Path, repository: Repository) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    replacements = {
        "ADDRESS": str(repository.folder),
        "http://study.example:8000": url,
        "-p 8000:8000": f"-p 127.0.0.1:{port}:8000",
    }
    headroom = "docker exec headroom headroom"
    host = Host(tmp_path, url, url, replacements, headroom, "docker inspect headroom")

    follow(host, repository, "Docker")
    expect_a_way_in(host, "docker", "Restore with Docker")


def test_the_guide_for_compose_works_word_for_word(tmp_path: Path, repository: Repository) -> None:
    if not docker("compose", "version"):
        pytest.skip("needs Docker Compose")
    port = free_port()
    override = tmp_path / "compose.override.yaml"
    override.write_text(_PORTS.format(port=port))
    replacements = {
        "ADDRESS": str(repository.folder),
        "study.example": "localhost",  # for which Caddy makes a certificate itself
        "&& cd headroom": f"&& cd headroom && cp {override} .",
    }
    headroom = "docker compose exec -T headroom headroom"
    title = "docker inspect $(docker compose ps -q headroom)"
    home = "https://localhost"
    host = Host(tmp_path, f"{home}:{port}", home, replacements, headroom, title)

    follow(host, repository, "Compose")
    expect_a_way_in(host, "docker compose", "Restore with Compose")


def test_the_container_of_the_readme_serves(repository: Repository) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    readme = (ROOT / "README.md").read_text()
    block = next(b for b in readme.split("```sh\n") if b.startswith("docker build"))
    replacements = {
        "docker run": "docker run --detach --name headroom",
        "-p 8000:8000": f"-p 127.0.0.1:{port}:8000",
    }
    headroom = "docker exec headroom headroom"
    host = Host(repository.folder, url, url, replacements, headroom, "")

    host.paste(block.partition("```")[0])
    host.enroll("Anna")
    assert host.learners() == {"Anna"}


def expect_a_way_in(host: Host, docker: str, heading: str) -> None:
    """A backup that was taken away is brought into the volume and restored."""
    restore, bring = blocks(heading)
    host.enroll("Dora")
    host.paste(f"{docker} exec headroom rm /backups/{BACKUP}")
    host.paste(bring)
    host.paste(restore)
    assert host.learners() == {"Anna"}
