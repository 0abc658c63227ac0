"""The bibliography of formulas: what a line of the working stands on."""

import dataclasses
import tomllib

from app.estimator.catalogue import DATA


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """A publication: title, who published it, year, https address."""

    title: str
    publisher: str
    year: int
    url: str


def _read() -> dict[str, Source]:
    with (DATA / "sources.toml").open("rb") as stream:
        return {key: Source(**row) for key, row in tomllib.load(stream).items()}


SOURCES: dict[str, Source] = _read()
