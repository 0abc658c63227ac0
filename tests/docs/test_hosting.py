"""The guide for hosts: its commands run, and programs accept its files."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from app.cli import main
from tests.browser.server import free_port
from tests.conftest import TINY
from tests.hosting import GUIDE, ROOT, Host, Repository, blocks, follow

_BIN = Path(sys.executable).parent
_PATH = f"{_BIN}:{os.environ['PATH']}:/usr/sbin"
_MAKEFILE = f"""env:
	mkdir -p .venv/bin
	ln -sf {_BIN}/headroom .venv/bin/headroom
"""
# Stand-ins for what only root may do, or only a machine with systemd.
_PROGRAMS = {
    "sudo": 'exec "$@"',
    "useradd": "",
    "runuser": 'shift 3; exec "$@"',
    "nano": 'cat $MACHINE/changes >> "$1"',
    "systemctl": r"""case "$*" in
daemon-reload) ;;
"enable --now headroom" | "start headroom")
    set -a; . $MACHINE/etc/headroom.env
    $(sed -n s/^ExecStart=//p $MACHINE/etc/systemd/system/headroom.service) \
        > $MACHINE/log 2>&1 & echo $! > $MACHINE/pid ;;
"stop headroom")
    pid=$(cat $MACHINE/pid)
    kill $pid
    while grep -qs "^State:.[^Z]" /proc/$pid/status; do sleep 0.1; done ;;
*) exit 1 ;;
esac""",
}


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder with the places and the programs of a machine with systemd."""
    machine = tmp_path / "machine"
    programs = machine / "usr/local/bin"
    for folder in (programs, machine / "etc/systemd/system", machine / "opt"):
        folder.mkdir(parents=True)
    for name, text in _PROGRAMS.items():
        (programs / name).write_text(f"#!/bin/sh\nMACHINE={machine}\n{text}\n")
        (programs / name).chmod(0o755)
    return machine


@pytest.mark.drill
@pytest.mark.skipif(sys.platform != "linux", reason="systemd is for Linux")
def test_the_guide_for_systemd_works_word_for_word(machine: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    (machine / "changes").write_text(
        f"HEADROOM_URL={url}/\nHEADROOM_PORT={port}\nHEADROOM_CONTENT={TINY}\n"
    )
    places = ("/opt/headroom", "/etc/", "/usr/local/bin/", "/var/lib/", "/var/backups/")
    moved = {place: f"{machine}{place}" for place in places}
    repository = Repository(machine / "origin")
    repository.add("deploy")
    for path in (repository.folder / "deploy").iterdir():
        path.write_text(re.sub("|".join(places), lambda at: moved[at[0]], path.read_text()))
    (repository.folder / "Makefile").write_text(_MAKEFILE)
    repository.release("Headroom")
    host = Host(
        machine,
        url,
        url,
        {
            "ADDRESS": str(repository.folder),
            "-o headroom -g headroom ": "",  # there is no such user
            **moved,
        },
        "sudo headroom",
        "cat opt/headroom/Dockerfile",
        programs=machine / "usr/local/bin",
    )
    try:
        follow(host, repository, "systemd")
    finally:
        host.paste("systemctl stop headroom")


@pytest.fixture
def environment(tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation with the tiny course, for commands."""
    shutil.copytree(TINY, tmp_path / "content")
    monkeypatch.setenv("HEADROOM_DATA", str(tmp_path))
    monkeypatch.setenv("HEADROOM_DATABASE_URL", database)
    monkeypatch.setenv("HEADROOM_CONTENT", str(tmp_path / "content"))


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("heading", ["Authors", "Learners who lost their browser, or a lost key"])
def test_a_command_of_the_guide_is_one(heading: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Whom a command names is not there, which is told by 1 and not by 2."""
    lines = blocks(heading)[0].splitlines()

    assert lines
    for line in lines:
        words = line.partition("#")[0].replace('"', "").split()
        assert words[0] == "headroom"
        assert main(words[1:]) in {0, 1}, capsys.readouterr().err


@pytest.mark.usefixtures("environment")
def test_one_course_becomes_several_as_the_guide_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    *before, command = blocks("Several courses")[0].splitlines()
    content, *words = command.split()
    assert words.pop(0) == "headroom"
    accept("bash", "-euc", "\n".join(before), cwd=tmp_path)
    monkeypatch.setenv(*content.split("="))

    assert main(words) == 0, capsys.readouterr().err


def test_what_cuts_the_digests_leaves_none(tmp_path: Path) -> None:
    command = re.search(r"`(sed -i 's/@sha256[^`]+)`", GUIDE)
    assert command
    for name in ("Dockerfile", "compose.yaml"):
        shutil.copy(ROOT / name, tmp_path)
    accept("sh", "-c", command[1], cwd=tmp_path)

    for name in ("Dockerfile", "compose.yaml"):
        assert "@sha256" in (ROOT / name).read_text()
        assert "@sha256" not in (tmp_path / name).read_text()


def test_each_service_of_compose_has_limits_and_only_caddy_a_way_out() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    networks = yaml.safe_load((ROOT / "compose.yaml").read_text())["networks"]
    outside = {name for name, made in networks.items() if not (made or {}).get("internal")}

    assert {name for name, one in services.items() if outside & {*one["networks"]}} == {"caddy"}
    assert [name for name, one in services.items() if "ports" in one] == ["caddy"]
    for service in services.values():
        assert service["mem_limit"]
        assert {"max-size", "max-file"} <= service["logging"]["options"].keys()


def test_the_image_says_which_version_it_is() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    dockerfile = (ROOT / "Dockerfile").read_text()

    for label in ("version", "description"):
        assert f'image.{label}="{project[label]}"' in dockerfile


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        not shutil.which(program, path=_PATH), reason=f"{program} is not installed"
    )


def accept(*words: str, cwd: Path) -> None:
    """Run a program that has to accept what it is given."""
    done = subprocess.run(
        words,
        cwd=cwd,
        env={**os.environ, "PATH": _PATH, "HOME": str(cwd)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@needs("systemd-analyze")
def test_systemd_accepts_the_service(tmp_path: Path) -> None:
    text = (ROOT / "deploy/headroom.service").read_text()
    program = "/opt/headroom/.venv/bin/headroom"
    assert program in text
    unit = tmp_path / "headroom.service"
    unit.write_text(text.replace(program, "/bin/sh"))

    accept("systemd-analyze", "verify", "--man=no", str(unit), cwd=tmp_path)


@needs("nginx")
@needs("openssl")
@pytest.mark.parametrize("which", [0, 1])
def test_nginx_accepts_what_the_guide_says(which: int, tmp_path: Path) -> None:
    accept(
        *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x"),
        *("-keyout", "privkey.pem", "-out", "fullchain.pem"),
        cwd=tmp_path,
    )
    text = blocks("Behind a proxy", "nginx")[which]
    text = text.replace("/etc/letsencrypt/live/study.example", str(tmp_path))
    text = text if "server {" in text else f"server {{ listen 8443; {text} }}"
    file = tmp_path / "nginx.conf"
    file.write_text(
        f"pid {tmp_path}/pid; error_log {tmp_path}/log;\n"
        f"events {{}}\nhttp {{ access_log off;\n{text} }}\n"
    )

    accept("nginx", "-t", "-p", str(tmp_path), "-c", str(file), cwd=tmp_path)


@needs("caddy")
@pytest.mark.parametrize("which", [0, 1])
def test_caddy_accepts_what_the_guide_says(which: int, tmp_path: Path) -> None:
    file = tmp_path / "Caddyfile"
    file.write_text(blocks("Behind a proxy", "caddy")[which])

    accept(
        *("caddy", "validate", "--adapter", "caddyfile", "--config", str(file)),
        cwd=tmp_path,
    )


@needs("docker")
def test_compose_accepts_its_file(tmp_path: Path) -> None:
    known = ["docker", "compose", "version"]
    if subprocess.run(known, check=False, capture_output=True).returncode:
        pytest.skip("docker compose is not installed")
    shutil.copy(ROOT / "compose.yaml", tmp_path)
    (tmp_path / ".env").write_text("DOMAIN=study.example\nPOSTGRES_PASSWORD=1\n")

    accept("docker", "compose", "config", "--quiet", cwd=tmp_path)


@pytest.mark.parametrize("heading", ["Kubernetes", "A new major version of PostgreSQL"])
def test_a_yaml_file_of_the_guide_can_be_read(heading: str) -> None:
    (text,) = blocks(heading, "yaml")

    assert yaml.safe_load(text.replace("!override ", ""))
