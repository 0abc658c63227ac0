"""Every problem that the check can name: what its code means, and what to do."""

import dataclasses
import textwrap
import tomllib
from pathlib import Path

_TABLE = Path(__file__).with_name("problem_codes.toml")
_WIDTH = 80


@dataclasses.dataclass(frozen=True, slots=True)
class ProblemCode:
    """What one code means, what mends it whatever the case, and what brings it."""

    meaning: str
    remedy: str
    example: str


RULES: dict[str, ProblemCode] = {
    code: ProblemCode(**row) for code, row in tomllib.loads(_TABLE.read_text("utf-8")).items()
}


def explain(code: str) -> str:
    """A code in words for a terminal; raises KeyError for one that is not known."""
    rule = RULES[code]
    kind = "an error, its item is left out" if code[0] == "E" else "a warning"
    example = textwrap.indent(rule.example.strip(), "    ")
    remedy = textwrap.fill(rule.remedy, _WIDTH)
    return f"{code}, {kind}: {rule.meaning}\n\nFor example:\n\n{example}\n\n{remedy}"
