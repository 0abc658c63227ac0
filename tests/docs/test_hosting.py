"""The guide for hosts: its commands run, and programs accept its files."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_image_says_which_version_it_is() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    dockerfile = (ROOT / "Dockerfile").read_text()

    for label in ("version", "description"):
        assert f'image.{label}="{project[label]}"' in dockerfile
