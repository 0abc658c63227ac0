"""Questions that people bring to the calculators, each as a link with its inputs."""

import dataclasses
from collections.abc import Mapping
from urllib.parse import urlencode

from app.estimator import data_files
from app.widgets.estimate_view import calculator_url


@dataclasses.dataclass(frozen=True, slots=True)
class ExampleQuestion:
    """A common question: the estimate that answers it, and its inputs.

    Inputs of two scenarios are named as in the URL of a comparison, such as `b.gpu`.
    """

    question: str
    example: str
    estimate: str
    typed: Mapping[str, str]

    @property
    def calculator_link(self) -> str:
        """URL of the calculator with these inputs, or of the comparison if they are of two."""
        part = "compare" if any(name[1:2] == "." for name in self.typed) else ""
        return calculator_url(self.estimate, urlencode(self.typed), part=part)


EXAMPLE_QUESTIONS = tuple(
    ExampleQuestion(**row) for row in data_files.load_toml("starting_points.toml")["start"]
)
