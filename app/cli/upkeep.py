"""`headroom backup`, `restore` and `doctor`, on the installation of the settings."""

import os
from collections.abc import Sequence

from app.cli.installation import installation_of, keeping_owner
from app.cli.settings import read_settings
from app.config import Settings
from app.upkeep.commands import upkeep_command
from app.upkeep.doctor import Deployment


def upkeep(words: Sequence[str]) -> int:
    """Run the command that `words` begin with."""
    settings = read_settings()
    names = frozenset(f"HEADROOM_{name.upper()}" for name in Settings.model_fields)
    place = Deployment(
        installation_of(settings),
        settings.content,
        names,
        os.environ,
        settings.max_data_gb,
    )
    with keeping_owner(settings):
        return upkeep_command(list(words), place)
