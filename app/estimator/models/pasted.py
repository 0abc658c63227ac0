"""A model given as the text of its `config.json` instead of by name."""

import functools
import json

from app.estimator.models.architecture import Architecture
from app.estimator.models.config import UnreadableConfigError
from app.estimator.models.reading import from_config

# What arithmetic on sizes of the wrong kind can raise.
_CONTRADICTIONS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


def is_config(name: str) -> bool:
    """Whether a model is given as a configuration rather than by name or size.

    >>> is_config('{"model_type": "llama"}'), is_config("llama-2-7b")
    (True, False)
    """
    return name.lstrip().startswith("{")


def _read(text: str) -> Architecture:
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        message = "The text of config.json is not JSON; paste the whole file."
        raise UnreadableConfigError(message) from None
    if not isinstance(config, dict):
        message = "config.json holds a list or a word; paste the whole file."
        raise UnreadableConfigError(message)
    try:
        return from_config(config)
    except UnreadableConfigError:
        raise
    except _CONTRADICTIONS as error:
        message = f"This config.json contradicts itself: {error}."
        raise UnreadableConfigError(message) from error


# A text of 200,000 characters makes a model of 3 MB.
@functools.lru_cache(maxsize=8)
def read_pasted(text: str) -> Architecture:
    """The architecture that a pasted configuration describes.

    Raises UnreadableConfig with a sentence when it is no JSON, no table, lacks a
    size or contradicts itself.
    """
    return _read(text)


# What estimates count of a model is kept as long as the model is, so that only
# short texts are taken in the place of a name.
@functools.lru_cache(maxsize=256)
def read_short(text: str) -> Architecture:
    """The same for a text short enough to stand in the field of a name."""
    return _read(text)


def tidy(text: str) -> str:
    """A readable configuration without the blanks that it was typed with.

    Raises LookupError, as an unknown name does.
    """
    try:
        read_short(text)
    except UnreadableConfigError as error:
        raise LookupError(str(error)) from error
    return json.dumps(json.loads(text), separators=(",", ":"))
