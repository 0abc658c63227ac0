"""Models given as a size: `70B` as a dense shape with exactly that many weights."""

import math
import re
from typing import Any

from app.estimator.units import refuse_decimal_comma

_SIZE = re.compile(
    r"^\s*(?P<number>\d[\d,]*(?:\.\d+)?)\s*(?P<unit>[kKMBGT]|bn|million|billion|trillion)?"
    r"\s*(?:params?|parameters)?\s*$"
)
_FACTOR = {"k": 10**3, "M": 10**6, "B": 10**9, "G": 10**9, "T": 10**12}
_SPELLED = {"K": "k", "bn": "B", "million": "M", "billion": "B", "trillion": "T"}
SMALLEST, LARGEST = 10**7, 10**14

# Layers, width and heads of public dense models by size, from Pythia to Llama 3
# (405B) and on by the same proportions.
_SHAPES = (
    (1.0e7, 6, 192, 6),
    (2.0e7, 6, 256, 4),
    (1.6e8, 12, 768, 12),
    (4.1e8, 24, 1024, 16),
    (1.2e9, 16, 2048, 32),
    (3.2e9, 28, 3072, 24),
    (8.0e9, 32, 4096, 32),
    (1.3e10, 40, 5120, 40),
    (3.4e10, 60, 7168, 56),
    (7.0e10, 80, 8192, 64),
    (1.75e11, 96, 12288, 96),
    (4.05e11, 126, 16384, 128),
    (1.0e12, 128, 25600, 200),
    (5.0e12, 180, 49152, 384),
    (2.5e13, 240, 96000, 750),
    (1.0e14, 300, 180224, 1408),
)


def is_size(name: str) -> bool:
    """Whether a model is given as a number of parameters.

    >>> is_size("70B"), is_size("llama-2-7b")
    (True, False)
    """
    return _SIZE.match(name) is not None


def parse_size(name: str) -> int:
    """The number of parameters in a size; LookupError outside of 10M to 100T.

    >>> parse_size("1.5T")
    1500000000000
    """
    match = _SIZE.match(name)
    if match is None:
        raise LookupError(f"“{name}” is not a size such as 70B.")
    unit = match["unit"] or ""
    factor = _FACTOR.get(_SPELLED.get(unit, unit), 1)
    try:
        refuse_decimal_comma(match["number"])
    except ValueError as error:
        raise LookupError(f"{error}.") from None
    number = float(match["number"].replace(",", "")) * factor
    if not SMALLEST <= number <= LARGEST:  # a long one is infinite
        raise LookupError(f"“{name}” is outside of 10M to 100T parameters.")
    return round(number)


def size_name(parameters: int) -> str:
    """Write a size as people do.

    >>> size_name(70 * 10**9), size_name(494032768)
    ('70B', '494.032768M')
    """
    for unit in ("T", "B", "M"):
        text = f"{parameters / _FACTOR[unit]:.6f}".rstrip("0").rstrip(".")
        if parameters >= _FACTOR[unit] and round(float(text) * _FACTOR[unit]) == parameters:
            return text + unit
    return str(parameters)


def shape_for(parameters: int) -> dict[str, Any]:
    """A configuration with nearly `parameters` parameters, never more.

    The MLP width is solved for; what is left is less than one step of it.
    """

    def distance(shape: tuple[float, int, int, int]) -> float:
        return abs(math.log(shape[0] / parameters))

    for _, layers, hidden, heads in sorted(_SHAPES, key=distance):
        vocabulary = 128256 if parameters >= 10**9 else 32000
        tied = parameters < 4 * 10**9
        kv_heads = 8 if heads % 8 == 0 else heads
        tables = vocabulary * hidden * (1 if tied else 2)
        head = hidden // heads
        attention = 2 * hidden * hidden + 2 * hidden * kv_heads * head
        left = parameters - tables - hidden - layers * (attention + 2 * hidden)
        width = left // (3 * hidden * layers)
        if width >= hidden:
            return {
                "model_type": "llama",
                "hidden_size": hidden,
                "intermediate_size": width,
                "num_hidden_layers": layers,
                "num_attention_heads": heads,
                "num_key_value_heads": kv_heads,
                "vocab_size": vocabulary,
                "tie_word_embeddings": tied,
                "max_position_embeddings": 131072,
            }
    raise LookupError(f"No dense shape has {parameters} parameters.")
