"""E58, E59, W90, W91: whether drawings can be shown, pointed at and read."""

from collections.abc import Iterable, Mapping

from app.content.identity import did_you_mean
from app.content.model import SvgFigure, SvgProblem
from app.content.parsed import ParsedFile
from app.content.problems import ContentProblem, make_problem
from app.content.source_file import CrossReference
from app.content.svg_cleaning import LEAST, phone_variant

Readings = Mapping[str, ParsedFile]
_LEGIBLE = 11.0  # pixels
_PHONE, _DESK = 358.0, 600.0  # the least width in pixels of a narrow and a wide one
_POINTED = (
    f"Put a <rect> of at least {LEAST} by {LEAST} into the group; one of class “hit” is not seen."
)
_HINT = "A drawing holds shapes, texts and groups, and no colors of its own."


def drawings_at(readings: Readings, path: str) -> tuple[SvgFigure, ...]:
    """The drawing of a page, and the one for phones; none where it is a picture."""
    found = [_of(readings, path), _of(readings, phone_variant(path))]
    if not isinstance(found[0], SvgFigure) or not found[0].meant:
        return ()
    return tuple(d for d in found if isinstance(d, SvgFigure))


def check_drawing(
    path: str, mention: CrossReference, readings: Readings
) -> Iterable[ContentProblem]:
    """What is wrong with the drawing that `mention` in the file at `path` names."""
    file, _, region = mention.value.partition("#")
    folder = path.rpartition("/")[0]
    place = (path, mention.line, mention.column)
    pair = {n: _of(readings, f"{folder}/{n}") for n in (file, phone_variant(file))}
    asked = mention.kind == "drawing"
    if not asked and not any(d and d.meant for d in pair.values()):
        return
    for name, found in pair.items():
        if isinstance(found, SvgProblem) and not region:
            at = (f"{folder}/{name}", found.line, 1)
            message = f"This drawing cannot be shown: {found.why}."
            yield make_problem(at, "E58", message, found.remedy or _HINT, mention.item)
        elif isinstance(found, SvgFigure) and region in found.blurred:
            message = f"{name}, line {found.line}: {found.blurred[region]}."
            yield make_problem(place, "E58", message, _POINTED, mention.item)
        elif isinstance(found, SvgFigure) and region and region not in found.regions:
            message = f"{name} has no region “{region}”."
            hint = did_you_mean(region, sorted(found.regions - set(found.blurred)))
            yield make_problem(place, "E59", message, hint, mention.item)
    if not region:
        sound = {n: d for n, d in pair.items() if isinstance(d, SvgFigure)}
        yield from _legible(sound, place, mention.item)
        yield from _agreeing(sound, place, mention.item)


def _legible(
    pair: dict[str, SvgFigure], place: tuple[str, int, int], item: str
) -> Iterable[ContentProblem]:
    """W90: no text is under 11 px at the least width at which it is shown."""
    for number, (name, drawing) in enumerate(pair.items()):
        wide = number == 0 and len(pair) > 1
        pixels = min(1.0, (_DESK if wide else _PHONE) / drawing.width) * drawing.text
        if pixels < _LEGIBLE:
            message = f"{name} has text that is shown at {pixels:.1f} px."
            least = _LEGIBLE * drawing.text / pixels
            hint = f"Write it at {least:.1f} units or more."
            if len(pair) == 1:
                hint = f"Draw {phone_variant(name)}, 358 units wide, for phones."
            yield make_problem(place, "W90", message, hint, item)


def _agreeing(
    pair: dict[str, SvgFigure], place: tuple[str, int, int], item: str
) -> Iterable[ContentProblem]:
    """W91: the two drawings of one figure say the same."""
    if len(pair) < 2:
        return
    (_, wide), (name, small) = pair.items()
    same = {
        "title": wide.title == small.title,
        "desc": wide.desc == small.desc,
        "regions": wide.regions == small.regions,
    }
    other = [what for what, agrees in same.items() if not agrees]
    if other:
        message = f"{name} differs from the wide drawing in {' and '.join(other)}."
        only = sorted(wide.regions ^ small.regions)
        hint = f"Only one of them has {', '.join(only)}." if only else ""
        hint = hint or "Both say the same, in the same words."
        yield make_problem(place, "W91", message, hint, item)


def _of(readings: Readings, path: str) -> SvgFigure | SvgProblem | None:
    reading = readings.get(path)
    return reading.drawing if reading else None
