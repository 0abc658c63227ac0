"""What stands before an item of a list: numbers, letters, Roman numbers."""

import dataclasses
import re
from collections.abc import Mapping

_STYLE = re.compile(r"list-style(?:-type)?\s*:[^;]*?\b([a-z]+(?:-[a-z]+)*)", re.IGNORECASE)
_TYPES = {
    "A": "upper-alpha",
    "a": "lower-alpha",
    "I": "upper-roman",
    "i": "lower-roman",
    "1": "decimal",
}
_ROMAN = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc")),
    *((50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)
_GREEK = "αβγδεζηθικλμνξοπρστυφχψω"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MOST_ROMAN = 3999
_BULLETS = frozenset({"", "circle", "disc", "none", "square"})
_KNOWN = frozenset(
    {"", "none", "decimal", "decimal-leading-zero", "lower-alpha", "upper-alpha"}
    | {"lower-roman", "upper-roman", "lower-greek", "initial", "inherit", "inside"}
    | {"outside"}
)


def parse_list_style(kind: str, style: str) -> str:
    """How items are counted, by the `type` and the CSS of a list; "" if it is not told.

    >>> parse_list_style("A", ""), parse_list_style("", "list-style-type: lower-roman")
    ('upper-alpha', 'lower-roman')
    """
    found = _STYLE.search(style)
    named = found[1].lower().replace("latin", "alpha") if found else ""
    return named or _TYPES.get(kind, "")


def format_label(number: int, style: str) -> str:
    """The label of an item, as browsers show it.

    >>> format_label(28, "lower-alpha"), format_label(4, "upper-roman")
    ('ab.', 'IV.')
    """
    case, _, kind = style.partition("-")
    text = str(number)
    if style == "none":
        return ""
    if kind == "alpha" and number > 0:
        text = _in_letters(number, _LETTERS)
    elif style == "lower-greek" and number > 0:
        text = _in_letters(number, _GREEK)
    elif kind == "roman" and 0 < number <= _MOST_ROMAN:
        text = _roman(number)
    elif style == "decimal-leading-zero":
        text = f"{number:02d}"
    return f"{text.upper() if case == 'upper' else text}."


def _in_letters(number: int, letters: str) -> str:
    text = ""
    while number:
        number, rest = divmod(number - 1, len(letters))
        text = letters[rest] + text
    return text


def _roman(number: int) -> str:
    text = ""
    for value, letters in _ROMAN:
        count, number = divmod(number, value)
        text += letters * count
    return text


@dataclasses.dataclass(slots=True)
class OpenList:
    """A list that is read: how it is counted, and the number of its last item.

    It is `plain` as long as Markdown counts it alike.
    """

    ordered: bool
    style: str
    number: int
    step: int = 1
    plain: bool = True

    def next_item(self, given: Mapping[str, str | None]) -> tuple[str, str]:
        """The mark of Markdown before the next item, or else the label in words."""
        style = parse_list_style(given.get("type") or "", given.get("style") or "")
        style = style or self.style
        told = _whole(given.get("value"))
        number = self.number + self.step if told is None else told
        self.plain &= style in {"", "decimal"} and number == self.number + 1 >= 0
        self.number = number
        if not self.ordered and style in _BULLETS:
            return "- ", ""
        if self.ordered and self.plain:
            return f"{number}. ", ""
        return "", format_label(number, style)

    @property
    def is_foreign(self) -> bool:
        """Whether its items are counted in a way that is not known."""
        return self.ordered and self.style not in _KNOWN

    @property
    def is_bare(self) -> bool:
        """Whether its items have numbers that do not come along."""
        return self.step < 0 and self.style == "none"


def start_list(tag: str, given: Mapping[str, str | None]) -> OpenList:
    """A list as its tag describes it, bare if it is counted down from no number."""
    style = parse_list_style(given.get("type") or "", given.get("style") or "")
    first = _whole(given.get("start"))
    step = -1 if "reversed" in given else 1
    style = "none" if step < 0 and first is None else style
    return OpenList(tag == "ol", style, (1 if first is None else first) - step, step)


def _whole(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"-?\d{1,9}", text) else None
