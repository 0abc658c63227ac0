"""Where a part is used: calculators that can be asked of it, pages that name it."""

import functools

from app.content.live.library import Library
from app.content.model import HtmlBlock, Section
from app.estimator import registry
from app.estimator.hardware.accelerators import System
from app.estimator.hardware.parts import CatalogPart, address_of
from app.estimator.inputs import input_specs
from app.instruments.links import calculator_url

Links = tuple[tuple[str, str], ...]
_INPUT = {"accelerator": "gpu", "system": "system"}


def calculators_of(part: CatalogPart) -> Links:
    """The calculators that ask for a part like this, with this one chosen."""
    wanted = _INPUT.get(part.kind, "network")
    found = []
    for entry in registry.entries():
        asks = [n for n, one in input_specs(entry.inputs).items() if one.kind == wanted]
        if asks and _answers(entry.name, asks[0], part.id):
            found.append((calculator_url(entry.name, f"{asks[0]}={part.id}"), entry.title))
    return tuple(found)


@functools.cache
def _answers(name: str, field: str, part: str) -> bool:
    """Whether a calculator answers for this part, whose rate may be unknown."""
    try:
        registry.run_estimate(name, {field: part})
    except (ValueError, LookupError, ArithmeticError):
        return False
    return True


def pages_of(part: CatalogPart, library: Library) -> Links:
    """The pages of the course that show a value of this part."""
    link = f'href="{address_of(part.id)}#'
    return tuple(
        (f"/concepts/{topic.slug}", topic.title)
        for topic in library.topics.values()
        if any(_shows(section, link) for section in topic.sections)
    )


def _shows(section: Section, link: str) -> bool:
    return any(isinstance(p, HtmlBlock) and link in p.html for p in section.pieces)


def kin_of(part: CatalogPart, all_parts: tuple[CatalogPart, ...]) -> Links:
    """Parts that are built of this one, or that this one is built of."""
    if isinstance(part.entry, System):
        return ((address_of(part.entry.accelerator), part["accelerator"].words),)
    return tuple(
        (address_of(other.id), other.name)
        for other in all_parts
        if isinstance(other.entry, System) and other.entry.accelerator == part.id
    )
