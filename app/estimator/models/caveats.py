"""What was not understood, not given or not counted of a model, in sentences."""

from app.estimator.models.architecture import Architecture
from app.estimator.models.families import is_known
from app.estimator.models.formats import FORMATS, PUBLISHED, PUBLISHED_OR_FP8, format_of
from app.estimator.units import format_number

_MOST = 12


def weights_words(model: Architecture, name: str, label: str) -> str:
    """Say in a sentence how weights are counted, where a checkpoint is quantized.

    `name` and `label` are the format asked for; empty where nothing is to be said.
    """
    how = model.quantization
    if how is None:
        return ""
    published = format_of(model, PUBLISHED)
    if name not in (PUBLISHED, PUBLISHED_OR_FP8):
        said = f"Weights in {label}, as chosen; "
        if how.problem:
            return f"{said}how they are published, {how.problem}, cannot be read."
        same = published is FORMATS.get(name)
        return "" if same else f"{said}published in {published.label}."
    if how.problem:
        return f"Its quantization, {how.problem}, cannot be read: counted in BF16."
    return f"Weights as published: {published.label}."


def caveats(model: Architecture) -> tuple[str, ...]:
    """What a reader of the counts of `model` has to know; empty where all is known."""
    found = []
    if model.family and not is_known(model.family):
        found.append(f"The family “{model.family}” is not known; it was read as Llama-shaped.")
    if model.unread:
        found.append(f"Not understood, and not counted: {_listed(model.unread)}.")
    if model.assumed:
        found.append(
            f"Not given, and taken from the defaults of its class: {_listed(model.assumed)}."
        )
    if model.tower:
        found.append(
            f"Its vision tower has {format_number(model.tower_parameters)} parameters: "
            "loaded with the weights to answer, left out of training, operations and "
            "GGUF files."
        )
    return tuple(found)


def _listed(names: tuple[str, ...]) -> str:
    """Name fields in one line.

    >>> _listed(("a", "b"))
    'a, b'
    """
    shown = ", ".join(names[:_MOST])
    more = len(names) - _MOST
    return f"{shown} and {more} more" if more > 0 else shown
