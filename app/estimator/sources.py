"""The bibliography of formulas: what a line of the working stands on."""

import dataclasses

from app.estimator import catalogue


@dataclasses.dataclass(frozen=True, slots=True)
class Publication:
    """A publication: title, who published it, year, https address."""

    title: str
    publisher: str
    year: int
    url: str


SOURCES: dict[str, Publication] = {
    key: Publication(**row) for key, row in catalogue.load_toml("sources.toml").items()
}
