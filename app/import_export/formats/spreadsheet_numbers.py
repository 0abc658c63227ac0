"""Format spreadsheet numbers as their cells show them: plain numbers, percentages, currencies."""

import re
from decimal import ROUND_HALF_UP, Decimal

# The built-in formats that show a number in the same way in every country.
BUILTIN_FORMATS = {
    0: "General",
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    9: "0%",
    10: "0.00%",
    37: "#,##0",
    38: "#,##0",
    39: "#,##0.00",
    40: "#,##0.00",
    49: "@",
}
_SECTION = re.compile(r'((?:"[^"]*"|\\.|\[[^\]]*\]|[^";\\\[])*);')
# Text of a format: in quotes, escaped, a currency with its country, a sign, or a colored part.
_TEXT = r'(?:"[^"]*"|\\.|\[\$[^\]-]*(?:-[^\]]*)?\]|\[[A-Za-z]+\]|[_*].|[-+$€£¥%() ])*'
_FORMAT = re.compile(
    rf"(?P<before>{_TEXT})(?P<whole>[#0?][#0?,]*(?<!,))?(?:\.(?P<decimals>[0#?]+))?(?P<after>{_TEXT})"
)
_LITERAL = re.compile(r'"([^"]*)"|\\(.)|\[\$([^\]-]*)[^\]]*\]|\[[A-Za-z]+\]|[_*].|(.)')
_LARGEST = 1e21


def format_number(value: float, code: str) -> str | None:
    """Return a number as a cell of this format shows it; None for an unsupported format.

    >>> format_number(0.5, "0%"), format_number(0.5, "# ?/?"), format_number(1024, "#,##0")
    ('50%', None, '1,024')
    """
    if code in {"", "@", "General"}:
        whole = value == int(value) and abs(value) < _LARGEST
        return str(int(value)) if whole else f"{value:.15g}".upper()
    sections = _SECTION.findall(f"{code};")
    place = 1 if value < 0 and len(sections) > 1 else 2 if value == 0 and len(sections) > 2 else 0
    form = _FORMAT.fullmatch(sections[place]) if sections else None
    if form is None or abs(value) >= _LARGEST or not any(form.group("before", "whole", "after")):
        return None
    before, after = (
        "".join(map("".join, _LITERAL.findall(form[side]))) for side in ("before", "after")
    )
    sign = "-" if value < 0 and place == 0 else ""
    exact = Decimal(repr(abs(value))) * 100 ** (form["before"] + form["after"]).count("%")
    digits = _format_digits(exact, form["whole"], form["decimals"] or "") if form["whole"] else ""
    return f"{sign}{before}{digits}{after}".strip()


def _format_digits(value: Decimal, whole: str, decimals: str) -> str:
    rounded = value.quantize(Decimal(1).scaleb(-len(decimals)), ROUND_HALF_UP)
    above, _, below = (f"{rounded:,f}" if "," in whole else f"{rounded:f}").partition(".")
    above = above if "," in whole else above.zfill(whole.count("0"))
    fixed = len(decimals.rstrip("#?"))
    below = below[:fixed] + below[fixed:].rstrip("0")
    if above == "0" and "0" not in whole:
        above = ""
    return f"{above}.{below}" if below else above
