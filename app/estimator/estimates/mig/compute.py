"""The numbers of `mig`."""

import re

from app.estimator.hardware.partitions import MigGpu, MigProfile
from app.estimator.shared_inputs import input_error

_COUNTED = re.compile(r"^(?:(\d{1,3})\s*[x×*]\s*)?(\S.*)$")


def read_instances(card: MigGpu, text: str) -> tuple[MigProfile, ...]:
    """Read `3g.40gb, 7x 1g.10gb`; BadInputs names the profiles of the card."""
    wanted: list[MigProfile] = []
    for word in re.split(r"[,;+\n]+", text):
        match = _COUNTED.match(word.strip())
        if match is None:
            continue
        profile = card.find(match[2])
        if profile is None:
            names = ", ".join(p.name for p in card.profiles)
            message = f"“{match[2]}” is not a profile of this GPU: {names}."
            raise input_error("instances", word.strip(), message)
        wanted += [profile] * min(int(match[1] or 1), 16)
    if not wanted:
        names = ", ".join(p.name for p in card.profiles)
        raise input_error("instances", text, f"Name at least one profile: {names}.")
    return tuple(wanted[:64])
