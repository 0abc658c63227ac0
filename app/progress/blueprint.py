"""The blueprint map: a column for each objective, as wide as its share of the exam."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence

from markupsafe import Markup

from app.drawings.svg import line, rect, svg_root, text
from app.mastery.readiness import DomainForecast, ScoreForecast
from app.mastery.standing import DomainMastery, ObjectiveMastery
from app.web.words import format_percent

HEIGHT = 112


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectiveColumn:
    """One objective: its chance of a right answer (0..1), in words `words`.

    `look` is fill, mark for the page read last, none for what was not tested and
    stands at the rate of guessing.
    """

    number: str
    title: str
    address: str
    chance: float
    look: str
    words: str
    here: bool


@dataclasses.dataclass(frozen=True, slots=True)
class BlueprintDomain:
    """A domain with its columns; `share` is its part of the exam or of the score.

    `fifth` is that part in steps of 5%, which the style sheet turns into width.
    """

    number: str
    title: str
    share: str
    fifth: int
    columns: tuple[ObjectiveColumn, ...]
    svg: Markup


def plots(
    domains: Sequence[DomainMastery],
    here: Collection[str],
    ahead: ScoreForecast | None,
    target: int | None,
) -> tuple[BlueprintDomain, ...]:
    """The map; `here` are the objectives of the page that was read last.

    The filled area is the expected score, which is named by domain once there is
    enough to say it from. Before anything is done, nothing is said of objectives.
    """
    begun = any(s.started for d in domains for s in d.standings)
    parts: Mapping[str, DomainForecast] = ahead.parts if ahead else {}
    return tuple(
        _plot(
            domain,
            _columns(domain, here, begun=begun),
            parts.get(domain.domain.number),
            target,
        )
        for domain in domains
    )


def _plot(
    domain: DomainMastery,
    columns: tuple[ObjectiveColumn, ...],
    part: DomainForecast | None,
    target: int | None,
) -> BlueprintDomain:
    begun = any(c.words for c in columns)
    said = "; ".join(f"{c.number} {c.words}" for c in columns)
    share = f"{format_percent(domain.domain.weight)} of the exam"
    if part is not None:
        share = f"{part.expected:.1f} of {part.questions}"
        said = f"{share} expected; {said}"
    sentence = said if begun else "nothing is started yet"
    return BlueprintDomain(
        number=domain.domain.number,
        title=domain.domain.title,
        share=share,
        fifth=max(5, round(domain.domain.weight * 20) * 5),
        columns=columns,
        svg=_draw(columns, target, f"{domain.domain.title}: {sentence}"),
    )


def _draw(columns: Sequence[ObjectiveColumn], target: int | None, says: str) -> Markup:
    wide = 100 / max(1, len(columns))
    marks = []
    for place, column in enumerate(columns):
        marks += _tank(column, place * wide, wide)
    if target:
        at = HEIGHT - HEIGHT * target / 100
        marks.append(line("dash", 0, at, 100, at))
    return svg_root(marks, HEIGHT + 24, says)


def _tank(column: ObjectiveColumn, x: float, wide: float) -> list[str]:
    """The column filled up to the chance of a right answer, its number below."""
    full = HEIGHT * column.chance
    top = HEIGHT - full
    marks = [rect("bg tank", x, 0, wide, HEIGHT)]
    if full >= 0.01:
        marks.append(rect(f"{column.look} tank", x, top, wide, full))
        marks.append(line("edge", x, top, x + wide, top))
    return [*marks, text(column.number, x + wide / 2, HEIGHT + 17, "m")]


def _columns(
    domain: DomainMastery, here: Collection[str], *, begun: bool
) -> tuple[ObjectiveColumn, ...]:
    """The objectives; before anything is done nothing is said of them."""
    made = (_column(standing, here if begun else ()) for standing in domain.standings)
    return tuple(c if begun else dataclasses.replace(c, words="") for c in made)


def _column(standing: ObjectiveMastery, here: Collection[str]) -> ObjectiveColumn:
    number = standing.objective.number
    current = number in here
    tested = standing.evidence.answers > 0
    return ObjectiveColumn(
        number=number,
        title=standing.objective.name,
        address=_address(standing),
        chance=standing.belief.mean,
        look=("mark" if current else "fill") if tested else "none",
        words=_words(standing),
        here=current,
    )


def _address(standing: ObjectiveMastery) -> str:
    if standing.topics:
        return f"/concepts/{standing.topics[0].slug}"
    return f"/course#o{standing.objective.number}"


def _words(standing: ObjectiveMastery) -> str:
    return standing.unjudged or format_percent(standing.belief.mean)
