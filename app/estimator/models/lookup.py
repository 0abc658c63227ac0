"""A model by the name that people give it: of the catalog, a size, a config.json."""

import dataclasses
import functools

from app.estimator import catalogue
from app.estimator.models import pasted
from app.estimator.models.architecture import Architecture, count_architecture
from app.estimator.models.reading import from_config
from app.estimator.models.sizes import is_size, parse_size, shape_for, size_name

_MODELS = ("models.toml", "model")


def model_id(name: str) -> str:
    """The catalog id for a model name, or the tidy form of a size such as `70B`.

    A short config.json is taken as well. Raises LookupError naming the nearest
    models, or what the configuration lacks.
    """
    if pasted.is_config(name):
        return pasted.tidy(name)
    if is_size(name):
        return size_name(parse_size(name))
    return catalogue.find_id(*_MODELS, name, "a model")


def find_model(name: str) -> Architecture:
    """The architecture for a catalog name, a size such as `70B`, or a config.json.

    A size gives a dense, Llama-shaped model with exactly that many parameters.

    >>> find_model("70B").parameters
    70000000000
    """
    if name.startswith("{"):
        return pasted.read_short(name)
    return _named(name)


@functools.lru_cache(maxsize=2048)
def _named(name: str) -> Architecture:
    if is_size(name):
        return generic(parse_size(name))
    key = model_id(name)
    row = catalogue.load_table(*_MODELS)[key]
    return from_config(row["config"], name=row["name"])


def models() -> tuple[tuple[str, str], ...]:
    """Ids and names of the catalog's models, in its order."""
    return tuple((key, row["name"]) for key, row in catalogue.load_table(*_MODELS).items())


def generic(parameters: int) -> Architecture:
    """A dense, Llama-shaped model with exactly `parameters` parameters."""
    config = shape_for(parameters)
    model = from_config(config, name=f"{size_name(parameters)} dense")
    return count_architecture(
        dataclasses.replace(model, other=model.other + parameters - model.parameters)
    )
