"""Numbers as people write them: groups, decimal commas, powers of ten, units."""

import dataclasses
import math
import re
import unicodedata

from app.content.numbers.units import CURRENCIES, TYPED, UNITS
from app.estimator.units import COUNT_SUFFIX
from app.questions.phrases import QUOTES, remove_invisible

_SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_RAISED = re.compile(r"(?<=\d)[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]+")
# Signs of which normalizing would make a letter, or an accent without one.
_ALONE = str.maketrans("\u00b4\u02da\u00ba", "'°°")
# Every hyphen and dash, and what stands for one on keyboards of Japan.
_MINUS = (
    "\u058a\u05be\u1806\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\u2500\u2796"
    "\u2e3a\u2e3b\u30fc\ufe58\ufe63\uff0d"
)
_SIGNS = str.maketrans(
    {
        **dict.fromkeys(_MINUS, "-"),
        **dict.fromkeys("\u2018\u2019\u02bb\u02bc`\u066c", "'"),
        "\u066b": ".",  # the decimal sign of Arabic, as the one before groups there
        "\u066a": "%",
    }
)
# Full stops and commas behind an answer, as many scripts have them.
_STOPS = " .,;\u0589\u060c\u06d4\u0964\u0965\u104a\u104b\u1362\u17d4\u3001\u3002"
_QUOTED = re.compile(f"[{QUOTES}](.*)[{QUOTES}]", re.DOTALL)
_SIGNS_OF_ONE = {
    "USD": "US$ $US U.S.$",
    "AUD": "A$ AU$",
    "BDT": "৳",
    "BRL": "R$",
    "CAD": "C$ CA$",
    "CHF": "Fr. Fr SFr.",
    "CNY": "CN¥ RMB 元",
    "CZK": "Kč",
    "EUR": "€",
    "HKD": "HK$",
    "HUF": "Ft",
    "IDR": "Rp",
    "ILS": "₪",
    "INR": "₹",
    "JPY": "JP¥ 円",
    "KRW": "₩",
    "MXN": "MX$",
    "MYR": "RM",
    "NGN": "₦",
    "NZD": "NZ$",
    "PHP": "₱",
    "PLN": "zł",
    "RON": "lei",
    "SGD": "S$",
    "THB": "฿",
    "TRY": "₺",
    "TWD": "NT$",
    "UAH": "₴",
    "VND": "₫",
    "ZAR": "R",
}
_SIGNS_OF_SEVERAL = {
    "$": ("USD", "AUD", "CAD", "HKD", "NZD", "SGD", "TWD", "MXN", "ARS", "CLP", "COP"),
    "£": ("GBP", "EGP"),
    "¥": ("JPY", "CNY"),
    "kr": ("SEK", "NOK", "DKK", "ISK"),
    "kr.": ("SEK", "NOK", "DKK", "ISK"),
    "Rs": ("INR", "PKR"),
    "Rs.": ("INR", "PKR"),
}
_MONEY = {code: (code,) for code in CURRENCIES} | _SIGNS_OF_SEVERAL
_MONEY |= {s: (code,) for code, signs in _SIGNS_OF_ONE.items() for s in signs.split()}
"""The currencies that each code or sign may mean; the first where none is asked for."""
_CODE = f"(?i:{'|'.join(CURRENCIES)})"
_PRICE = "|".join(re.escape(sign) for sign in sorted(_MONEY, key=len, reverse=True))
_SHAPE = re.compile(
    rf"""^[~≈=\u301c\s]*(?P<sign>[+-]?)\s*
    (?:(?P<money>(?:(?:US|{_CODE})\s*)?(?:{_PRICE})|{_CODE}|%)\s*(?P<inner>[+-]?)\s*)?
    (?P<digits>\d[\d.,'_\s]*\d|\d|[.,]\d+)(?:[.,](?:-{{1,2}}(?!\d))?)?
    (?:\s*[/\u2044]\s*(?P<below>\d{{1,6}}))?
    (?:\s*(?:[eE]|[x×*·]\s*10\s*(?:\^|\*\*))\s*(?P<power>[+-]?\s*\d{{1,3}})
      |\s*(?:\^|\*\*)\s*(?P<exponent>[+-]?\s*\d{{1,3}}))?
    \s*(?P<unit>.*)$""",
    re.VERBOSE | re.DOTALL,
)
_BEFORE_FRACTION = re.compile(r"(?<=\d)(?=[¼-¾⅐-⅞])")  # 1½ is not 11/2
_GROUPED = re.compile(r"^\d{1,3}(?:[\s'_]\d{3})+(?:[.,]\d+)?$")
_SPELLED = {
    "percent": "%",
    "dollar": "USD",
    "dollars": "USD",
    "pounds": "GBP",
    "rupees": "INR",
    "second": "s",
    "seconds": "s",
    "sec": "s",
    "millisecond": "ms",
    "milliseconds": "ms",
    "microsecond": "µs",
    "microseconds": "µs",
    "minute": "min",
    "mins": "min",
    "hour": "h",
    "hr": "h",
    "hrs": "h",
    "year": "years",
    "tflops": "TFLOP/s",
    "pflops": "PFLOP/s",
    "gflops": "GFLOP/s",
    "eflops": "EFLOP/s",
    "gbps": "Gbit/s",
    "mbps": "Mbit/s",
    "tbps": "Tbit/s",
    "gpus": "GPUs",
    "gpu": "GPU",
    "euro": "EUR",
    "euros": "EUR",
    "francs": "CHF",
    "yen": "JPY",
    "meter": "m",
    "meters": "m",
    "kilometer": "km",
    "kilometers": "km",
    "liter": "L",
    "liters": "L",
    "gram": "g",
    "grams": "g",
    "kilogram": "kg",
    "kilograms": "kg",
    "kmh": "km/h",
    "kph": "km/h",
    "volts": "V",
    "ohms": "Ω",
}
_PREFIX = {
    "kilo": "k",
    "mega": "M",
    "giga": "G",
    "tera": "T",
    "peta": "P",
    "exa": "E",
    "kibi": "Ki",
    "mebi": "Mi",
    "gibi": "Gi",
    "tebi": "Ti",
    "pebi": "Pi",
}
_STEM = {"byte": "B", "bit": "bit", "watt": "W"}
_LARGE = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}


@dataclasses.dataclass(frozen=True, slots=True)
class TypedNumber:
    """A number as typed: `value` as it stands, `unit` the word behind it."""

    value: float
    unit: str


def read_number(text: str) -> TypedNumber | None:
    """Split what was typed into a number and the word behind it, or None.

    A comma or dot before exactly three last digits groups thousands (a dot only when
    there are several); any other single one is the decimal sign. Spaces, apostrophes
    and underscores group. A fraction has a whole number above and below its line. A
    currency may stand before the number, and is the word then.

    >>> read_number("1,120 GB")
    Written(value=1120.0, unit='GB')
    >>> read_number("1,12 TB")
    Written(value=1.12, unit='TB')
    >>> read_number("1.12 × 10^12 B").value
    1120000000000.0
    >>> read_number("3/4 TB")
    Written(value=0.75, unit='TB')
    >>> read_number("-US$5.80")
    Written(value=-5.8, unit='US$')
    """
    match = _SHAPE.match(_plain(text))
    if match is None or (match["sign"] and match["inner"]):
        return None
    digits = _decimal(match["digits"])
    # “1,024e3” may have a group, or a decimal comma, as many write it.
    either = match["power"] and "," in match["digits"] and "." not in (digits or "")
    if digits is None or either:
        return None
    value = _raised(digits, match["power"], match["exponent"])
    if match["below"]:
        value = _parted(match["digits"], value, float(match["below"]))
    if not math.isfinite(value):
        return None
    unit = _with_money(match["money"] or "", match["unit"].strip())
    negative = "-" in (match["sign"], match["inner"])
    return TypedNumber(-value if negative else value, unit)


@dataclasses.dataclass(frozen=True, slots=True)
class TypedUnit:
    """A unit as understood: `factor` to its base, and whether it fits what is asked."""

    name: str
    factor: float
    fits: bool


def read_unit(word: str, like: str) -> TypedUnit | None:
    """The unit meant by `word` where one like `like` is expected, or None.

    Letter case is forgiven where only one unit of that kind can be meant; Gb is a
    gigabit. A count may carry k, M, B, T or their words.

    >>> read_unit("gigabytes", "TB")
    Unit(name='GB', factor=1000000000.0, fits=True)
    >>> read_unit("billion parameters", "").factor
    1000000000.0
    >>> read_unit("ms", "GB").fits
    False
    """
    word = " ".join(word.replace("μ", "µ").split())
    word = _priced(re.sub(r" ?/ ?| per ", "/", word), like)
    if not word:
        return TypedUnit("", 1.0, kind(like) == "")
    if _counts(like) and (scale := _scale(word, like)):
        return TypedUnit(word, scale, fits=True)
    name = _name(word) or _forgiven(word, like)
    if name is None:
        return None
    return TypedUnit(name, UNITS[name][1], kind(name) == kind(like))


def kind(unit: str) -> str:
    """The base unit that `unit` is counted in; empty for plain numbers."""
    return UNITS.get(unit, (unit, 1.0))[0]


def _plain(text: str) -> str:
    text = _BEFORE_FRACTION.sub(" ", text)
    raised = _RAISED.sub(lambda m: "^" + m[0].translate(_SUPERSCRIPT), text)
    usual = unicodedata.normalize("NFKC", raised.translate(_ALONE))
    seen = remove_invisible(usual).strip()
    quoted = _QUOTED.fullmatch(seen)
    inside = quoted[1] if quoted else seen
    return inside.translate(_SIGNS).strip().rstrip(_STOPS)


def _decimal(digits: str) -> str | None:
    """The digits with a dot as the only sign, or None where they make no number."""
    if re.search(r"[\s'_]", digits):
        joined = re.sub(r"[\s'_]", "", digits).replace(",", ".")
        return joined if _GROUPED.match(digits) else None
    commas, dots = digits.count(","), digits.count(".")
    if commas and dots:
        return _both(digits)
    sign = "," if commas else "."
    if commas > 1 or dots > 1 or (commas and _groups(digits, ",")):
        return digits.replace(sign, "") if _groups(digits, sign) else None
    return digits.replace(",", ".")


def _both(digits: str) -> str | None:
    """One sign groups and the other, standing once and last, is decimal."""
    last = max(".,", key=digits.rfind)
    group = "," if last == "." else "."
    whole, _, part = digits.rpartition(last)
    if last in whole or not _groups(whole, group) or not part.isdigit():
        return None
    return f"{whole.replace(group, '')}.{part}"


def _groups(digits: str, sign: str) -> bool:
    first, *rest = digits.split(sign)
    fits = 1 <= len(first) <= 3 and first.isdigit() and not first.startswith("0")
    return fits and all(len(part) == 3 and part.isdigit() for part in rest)


def _parted(above: str, value: float, below: float) -> float:
    return value / below if above.isdigit() and below else math.nan


def _raised(digits: str, power: str | None, exponent: str | None) -> float:
    if power:
        return float(f"{digits}e{power.replace(' ', '')}")
    try:
        return float(digits) ** int(exponent.replace(" ", "") if exponent else 1)
    except (OverflowError, ZeroDivisionError):
        return math.nan


def _counts(unit: str) -> bool:
    nouns = {"", "token", "sequence", "parameter", "GPU", "node", "layer"}
    return kind(unit) in nouns and unit != "%"


def _scale(word: str, like: str) -> float | None:
    """The factor of a count: `k`, `B`, `billion parameters`, `GPUs`."""
    first, _, rest = word.partition(" ")
    factor = _LARGE.get(first.lower()) or COUNT_SUFFIX.get(first)
    noun = rest if factor else word
    name = _name(noun) if noun else ""
    if name is None or not _counts(name):
        return None
    same = kind(name) == kind(like) or not kind(name) or not kind(like)
    return (factor or 1.0) if same else None


def _name(word: str) -> str | None:
    """The unit written exactly so, or spelled out."""
    if re.fullmatch(r"[kMGTPE]b", word):
        word = word.replace("b", "bit")
    word = TYPED.get(word, word)
    if word in UNITS:
        return word
    lower = word.lower()
    if lower in _SPELLED:
        return _SPELLED[lower]
    stem = lower.removesuffix("s")
    for name, letter in _STEM.items():
        prefix = stem.removesuffix(name)
        if stem.endswith(name) and (not prefix or prefix in _PREFIX):
            unit = _PREFIX.get(prefix, "") + letter
            return unit if unit in UNITS else None
    return None


def _forgiven(word: str, like: str) -> str | None:
    fits = [u for u in UNITS if u.lower() == word.lower() and kind(u) == kind(like)]
    factors = {UNITS[u][1] for u in fits}
    return fits[0] if len(factors) == 1 else None


def _with_money(before: str, behind: str) -> str:
    """The unit of a number with a currency before it, and a unit or nothing behind."""
    if not before or not behind:
        return before or behind
    if behind.startswith("/") or set(_meant(before)) & set(_meant(behind)):
        return f"{before}{behind}" if behind.startswith("/") else behind
    return f"{before} {behind}"


def _meant(word: str) -> tuple[str, ...]:
    """The currencies that a code, a sign, or a code with its sign may mean."""
    name = word.replace(" ", "")
    if name not in _MONEY and len(name) > 3:
        return tuple({name[:3].upper()} & {*_meant(name[3:])})
    return _MONEY.get(name) or _MONEY.get(name.upper(), ())


def _priced(word: str, like: str) -> str:
    """The unit with its currency by its code: the one of `like` where that may be."""
    sign, slash, rest = word.partition("/")
    codes = _meant(sign)
    if not codes:
        return word
    wanted = like.partition("/")[0]
    code = wanted if wanted in codes else codes[0]
    name = f"{code}{slash}{rest}"
    return name if name in UNITS else f"{code}{slash}{_SPELLED.get(rest, rest)}"
