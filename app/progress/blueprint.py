"""The blueprint map: a column for each objective, as wide as its share of the exam."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence

from app.mastery.forecast import Forecast, Part
from app.mastery.standing import DomainStanding, Standing
from app.web.words import count_of, percent_of

HEIGHT = 112


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """One objective; x, width and middle in per cent, top and height in pixels.

    `look` is fill, mark for the page read last, none for what was not tested and
    stands at the rate of guessing.
    """

    number: str
    title: str
    address: str
    x: str
    width: str
    middle: str
    end: str
    top: str
    height: str
    look: str
    words: str
    here: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Plot:
    """A domain with its columns; `share` is its part of the exam or of the score.

    `fifth` is that part in steps of 5%, which the style sheet turns into width.
    """

    number: str
    title: str
    share: str
    fifth: int
    columns: tuple[Column, ...]
    sentence: str


def plots(
    domains: Sequence[DomainStanding],
    here: Collection[str] = (),
    ahead: Forecast | None = None,
) -> tuple[Plot, ...]:
    """The map; `here` are the objectives of the page that was read last.

    The filled area is the expected score, which is named by domain once there is
    enough to say it from. Before anything is done, nothing is said of objectives.
    """
    begun = any(s.started for d in domains for s in d.standings)
    parts: Mapping[str, Part] = ahead.parts if ahead else {}
    return tuple(
        _plot(domain, here, parts.get(domain.domain.number), begun=begun)
        for domain in domains
    )


def _plot(
    domain: DomainStanding, here: Collection[str], part: Part | None, *, begun: bool
) -> Plot:
    width = 1 / max(1, len(domain.standings))
    columns = tuple(
        _column(standing, place * width, width, here if begun else ())
        for place, standing in enumerate(domain.standings)
    )
    if not begun:
        columns = tuple(dataclasses.replace(c, words="") for c in columns)
    said = "; ".join(f"{c.number} {c.words}" for c in columns)
    share = f"{percent_of(domain.domain.weight)} of the exam"
    if part is not None:
        share = f"{part.expected:.1f} of {part.questions}"
        said = f"{share} expected; {said}"
    return Plot(
        number=domain.domain.number,
        title=domain.domain.title,
        share=share,
        fifth=max(5, round(domain.domain.weight * 20) * 5),
        columns=columns,
        sentence=said if begun else "nothing is started yet",
    )


def _column(
    standing: Standing, x: float, width: float, here: Collection[str]
) -> Column:
    height = HEIGHT * standing.belief.mean
    number = standing.objective.number
    current = number in here
    tested = standing.evidence.answers > 0
    return Column(
        number=number,
        title=standing.objective.title,
        address=_address(standing),
        x=_percent(x),
        width=_percent(width),
        middle=_percent(x + width / 2),
        end=_percent(x + width),
        top=f"{HEIGHT - height:.2f}",
        height=f"{height:.2f}",
        look=("mark" if current else "fill") if tested else "none",
        words=_words(standing),
        here=current,
    )


def _address(standing: Standing) -> str:
    if standing.topics:
        return f"/concepts/{standing.topics[0].slug}"
    return f"/course#o{standing.objective.number}"


def _words(standing: Standing) -> str:
    evidence = standing.evidence
    if evidence.enough:
        return percent_of(standing.belief.mean)
    if evidence.answers:
        return count_of(evidence.answers, "answer")
    return "not tested" if standing.started else "not started"


def _percent(share: float) -> str:
    return f"{share * 100:.4g}%"
