"""What the addresses of the bench may say."""

from typing import Annotated, Literal

from fastapi import Form, Query
from pydantic import BaseModel, Field


class ProblemFilterForm(BaseModel):
    """Which problems are shown, and which of them is looked at."""

    severity: Literal["", "error", "warning"] = ""
    file: str = Field("", max_length=200)
    at: str = Field("", max_length=300)


class StatisticsTableForm(BaseModel):
    """Which questions are shown, in what order (a leading − falls), in what form.

    `start` is the number of the first row shown, counted from 0.
    """

    show: Literal["", "look", "answered", "all"] = ""
    sort: str = Field("discrimination", max_length=20)
    start: int = Field(0, ge=0, le=100_000)
    format: Literal["html", "csv", "exams-csv"] = "html"


class RegradePreviewForm(BaseModel):
    """Which answers are graded again; `graded` says how many just were."""

    reworded: bool = False
    graded: int = Field(0, ge=0, le=2**31)


class RegradeConfirmForm(BaseModel):
    """That they are to be graded again, by the wording that the author looked at."""

    reworded: bool = False
    revision: str = Field(max_length=64)


ListingAsked = Annotated[ProblemFilterForm, Query()]
TableAsked = Annotated[StatisticsTableForm, Query()]
RegradingAsked = Annotated[RegradePreviewForm, Query()]
Confirmed = Annotated[RegradeConfirmForm, Form()]
