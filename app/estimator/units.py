"""Numbers to text and text to numbers; GB is 10^9 bytes, GiB is 2^30."""

import re

NBSP = "\u00a0"
MINUS = "\u2212"

_DECIMAL = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")

# Every unit that may be typed or written, as (base unit, factor to the base).
UNITS: dict[str, tuple[str, float]] = {
    "": ("", 1.0),
    "%": ("", 0.01),
    **{p + "B": ("B", 10.0 ** (3 * i)) for i, p in enumerate(_DECIMAL)},
    "KB": ("B", 1e3),
    "bytes": ("B", 1.0),
    "byte": ("B", 1.0),
    "KiB": ("B", 2.0**10),
    "MiB": ("B", 2.0**20),
    "GiB": ("B", 2.0**30),
    "TiB": ("B", 2.0**40),
    "PiB": ("B", 2.0**50),
    "bit": ("B", 0.125),
    "bits": ("B", 0.125),
    **{p + "bit": ("B", 10.0 ** (3 * i) / 8) for i, p in enumerate(_DECIMAL)},
    **{p + "B/s": ("B/s", 10.0 ** (3 * i)) for i, p in enumerate(_DECIMAL)},
    "GiB/s": ("B/s", 2.0**30),
    **{p + "bit/s": ("B/s", 10.0 ** (3 * i) / 8) for i, p in enumerate(_DECIMAL)},
    **{p + "b/s": ("B/s", 10.0 ** (3 * i) / 8) for i, p in enumerate(_DECIMAL)},
    **{p + "FLOP": ("FLOP", 10.0 ** (3 * i)) for i, p in enumerate(_DECIMAL)},
    **{p + "FLOP/s": ("FLOP/s", 10.0 ** (3 * i)) for i, p in enumerate(_DECIMAL)},
    **{p + "W": ("W", 10.0 ** (3 * i)) for i, p in enumerate(_DECIMAL)},
    **{p + "Wh": ("Wh", 10.0 ** (3 * i)) for i, p in enumerate(_DECIMAL)},
    "ns": ("s", 1e-9),
    "us": ("s", 1e-6),
    "µs": ("s", 1e-6),
    "ms": ("s", 1e-3),
    "s": ("s", 1.0),
    "min": ("s", 60.0),
    "minutes": ("s", 60.0),
    "h": ("s", 3600.0),
    "hours": ("s", 3600.0),
    "days": ("s", 86400.0),
    "day": ("s", 86400.0),
    "years": ("s", 365.25 * 86400.0),
    "USD": ("USD", 1.0),
    "$": ("USD", 1.0),
    "USD/h": ("USD/h", 1.0),
    "USD/kWh": ("USD/kWh", 1.0),
    "USD/month": ("USD/month", 1.0),
    "USD/Mtoken": ("USD/Mtoken", 1.0),
    "kg": ("kg", 1.0),
    "t": ("kg", 1e3),
    "A": ("A", 1.0),
    "V": ("V", 1.0),
    "m3/s": ("m3/s", 1.0),
    "tokens": ("token", 1.0),
    "token": ("token", 1.0),
    "tokens/s": ("token/s", 1.0),
    "token/s": ("token/s", 1.0),
    "sequences": ("sequence", 1.0),
    "sequence": ("sequence", 1.0),
    "GPUs": ("GPU", 1.0),
    "GPU": ("GPU", 1.0),
    "GPU-hours": ("GPU-h", 1.0),
    "nodes": ("node", 1.0),
    "layers": ("layer", 1.0),
    "parameters": ("parameter", 1.0),
    "requests/s": ("request/s", 1.0),
}

# Words that people put behind a bare count: 70B parameters, 128k tokens.
COUNT_SUFFIX: dict[str, float] = {
    "": 1.0,
    "k": 1e3,
    "K": 1e3,
    "Ki": 2.0**10,
    "M": 1e6,
    "Mi": 2.0**20,
    "B": 1e9,
    "bn": 1e9,
    "G": 1e9,
    "T": 1e12,
    "P": 1e15,
}

_NUMBER = re.compile(
    r"^(?P<number>[+\-\u2212]?(?:\d[\d,_'\u00a0\u202f ]*\d|\d)?(?:\.\d+)?"
    r"(?:[eE][+\-]?\d+)?)\s*(?P<unit>.*)$"
)


def split_number(text: str) -> tuple[float, str]:
    """Split a typed quantity into its number and the unit text behind it.

    Commas, spaces, underscores and apostrophes inside the number are grouping.
    Raises ValueError when no number stands at the start.

    >>> split_number("1,120 GB")
    (1120.0, 'GB')
    >>> split_number("1.12e12 B")
    (1120000000000.0, 'B')
    """
    match = _NUMBER.match(text.strip())
    if match is None or not any(c.isdigit() for c in match["number"]):
        raise ValueError(f"“{text}” does not start with a number")
    digits = re.sub(r"[,_'\u00a0\u202f ]", "", match["number"])
    return float(digits.replace(MINUS, "-")), match["unit"].strip()
