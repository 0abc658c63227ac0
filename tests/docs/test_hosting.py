"""The guide for hosts: its commands run, and programs accept its files."""

import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]


def test_each_service_of_compose_has_limits_and_only_caddy_a_way_out() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    networks = yaml.safe_load((ROOT / "compose.yaml").read_text())["networks"]
    outside = {
        name for name, made in networks.items() if not (made or {}).get("internal")
    }

    assert {name for name, one in services.items() if outside & {*one["networks"]}} == {
        "caddy"
    }
    assert [name for name, one in services.items() if "ports" in one] == ["caddy"]
    for service in services.values():
        assert service["mem_limit"]
        assert {"max-size", "max-file"} <= service["logging"]["options"].keys()


def test_the_image_says_which_version_it_is() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    dockerfile = (ROOT / "Dockerfile").read_text()

    for label in ("version", "description"):
        assert f'image.{label}="{project[label]}"' in dockerfile
