"""What Progress shows of mastery and readiness."""

from typing import Any

from app.progress.mastery.standing import standings
from app.progress.objectives import AGO, groups
from app.progress.routes.picture import Picture


def mastery_of(picture: Picture) -> dict[str, Any]:
    """The rows by objective, now and four weeks ago, and the estimate."""
    before = standings(picture.library, picture.record, picture.day, AGO)
    return {
        "groups": groups(picture.domains, before),
        "ahead": picture.ahead,
        "lacking": picture.lacking,
        "chance": picture.chance,
    }
