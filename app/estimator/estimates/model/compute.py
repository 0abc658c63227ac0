"""The numbers of `model`."""

import functools
import json

from app.estimator.models.architecture import (
    Architecture,
    UnreadableConfig,
    from_config,
)
from app.estimator.shared_inputs import refuse

# What arithmetic on sizes of the wrong kind can raise.
_CONTRADICTIONS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


# A text of 200,000 characters makes a model of 3 MB.
@functools.lru_cache(maxsize=8)
def read_config(text: str) -> Architecture:
    """Read a pasted `config.json`; BadInputs says what is wrong with it."""
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        message = "The text of config.json is not JSON; paste the whole file."
        raise refuse("config", text[:40], message) from None
    if not isinstance(config, dict):
        message = "config.json holds a list or a word; paste the whole file."
        raise refuse("config", text[:40], message)
    try:
        return from_config(config)
    except UnreadableConfig as error:
        raise refuse("config", text[:40], str(error)) from error
    except _CONTRADICTIONS as error:
        message = f"This config.json contradicts itself: {error}."
        raise refuse("config", text[:40], message) from error
