"""The bibliography of formulas: what a line of the working stands on."""

import dataclasses

from app.estimator import catalogue


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """A publication: title, who published it, year, https address."""

    title: str
    publisher: str
    year: int
    url: str


SOURCES: dict[str, Source] = {
    key: Source(**row) for key, row in catalogue.words("sources.toml").items()
}
