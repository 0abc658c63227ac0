"""The blueprint map: a column for each objective, as wide as its share of the exam."""

import dataclasses
from collections.abc import Collection, Sequence

from app.progress.mastery.standing import DomainStanding, Standing
from app.web.words import count_of, percent_of

HEIGHT = 112


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """One objective; x, width and middle in per cent, top and height in pixels."""

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
    """A domain with its columns; `share` is its part of the exam, e.g. “38%”.

    `fifth` is that share in steps of 5%, which the style sheet turns into width.
    """

    number: str
    title: str
    share: str
    fifth: int
    columns: tuple[Column, ...]
    sentence: str


def plots(
    domains: Sequence[DomainStanding], here: Collection[str] = ()
) -> tuple[Plot, ...]:
    """The map; `here` are the objectives of the page that was read last.

    Before anything is done, nothing is said of single objectives.
    """
    begun = any(s.started for d in domains for s in d.standings)
    return tuple(_plot(domain, here, begun=begun) for domain in domains)


def _plot(domain: DomainStanding, here: Collection[str], *, begun: bool) -> Plot:
    columns = tuple(
        _column(standing, place / len(domain.standings), 1 / len(domain.standings))
        for place, standing in enumerate(domain.standings)
    )
    if not begun:
        columns = tuple(dataclasses.replace(c, words="") for c in columns)
    said = "; ".join(f"{c.number} {c.words}" for c in columns)
    return Plot(
        number=domain.domain.number,
        title=domain.domain.title,
        share=percent_of(domain.domain.weight),
        fifth=max(5, round(domain.domain.weight * 20) * 5),
        columns=tuple(_placed(c, here) for c in columns),
        sentence=said if begun else "nothing is started yet",
    )


def _column(standing: Standing, x: float, width: float) -> Column:
    evidence = standing.evidence
    height = HEIGHT * evidence.share if evidence.enough else 0.0
    return Column(
        number=standing.objective.number,
        title=standing.objective.title,
        address=_address(standing),
        x=_percent(x),
        width=_percent(width),
        middle=_percent(x + width / 2),
        end=_percent(x + width),
        top=f"{HEIGHT - height:.2f}",
        height=f"{height:.2f}",
        look="fill",
        words=_words(standing),
        here=False,
    )


def _placed(column: Column, here: Collection[str]) -> Column:
    if column.number not in here:
        return column
    return dataclasses.replace(column, look="mark", here=True)


def _address(standing: Standing) -> str:
    if standing.topics:
        return f"/concepts/{standing.topics[0].slug}"
    return f"/course#o{standing.objective.number}"


def _words(standing: Standing) -> str:
    evidence = standing.evidence
    if evidence.enough:
        return percent_of(evidence.share)
    if evidence.answers:
        return count_of(evidence.answers, "answer")
    return "begun" if standing.started else "not started"


def _percent(share: float) -> str:
    return f"{share * 100:.4g}%"
