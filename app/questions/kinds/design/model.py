"""Design exercises as values."""

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True, slots=True)
class DesignAnswer:
    """A plan that the learner chooses and the estimator judges.

    `accept` keeps the conditions as written; `conditions.judge` answers them.
    """

    estimate: str
    given: Mapping[str, str]
    choose: tuple[str, ...]
    accept: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class OpenDesign:
    """A design on the page: the inputs left open and given, what stands in all of them.

    `fields` maps the name of an open input to the name under which the form sends
    it, `given` has the names of the others;
    `conditions` are (what is looked at, what it has to be).
    """

    estimate: str
    values: Mapping[str, str]
    fields: Mapping[str, str]
    given: Mapping[str, str]
    conditions: tuple[tuple[str, str], ...]
