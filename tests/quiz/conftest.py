"""The stage of the quiz tests: the hand-held course, and forms read as people do."""

from html.parser import HTMLParser

import pytest

from tests.quiz.course import EditableLiveCourse, every_type


@pytest.fixture
def live_course() -> EditableLiveCourse:
    """The course behind the app; `live_course.edit(…)` is an author at work."""
    return EditableLiveCourse(*every_type())


class Fields(HTMLParser):
    """The first form that is sent to an address ending so, as a browser fills it."""

    def __init__(self, ending: str) -> None:
        super().__init__()
        self.ending = ending
        self.action = ""
        self.values: dict[str, str] = {}
        self.options: dict[str, list[str]] = {}
        self.inside = False
        self.select = ""
        self.chosen = self.unnamed = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form" and not self.action:
            self.inside = given.get("action", "").endswith(self.ending)
            self.action = given["action"] if self.inside else ""
        name = given.get("name", "")
        if not self.inside or not name:
            if self.inside and tag == "option" and self.select:
                self.option(given)
            return
        kind = given.get("type", "text")
        if tag == "select":
            self.select = name
        elif tag == "input" and kind in {"radio", "checkbox"}:
            self.options.setdefault(name, []).append(given.get("value", "on"))
            if "checked" in given:
                self.values[name] = given.get("value", "on")
        elif tag == "input":
            self.values[name] = given.get("value", "")

    def option(self, given: dict[str, str]) -> None:
        self.chosen = "selected" in given or self.select not in self.values
        self.unnamed = "value" not in given
        if not self.unnamed:
            self.take(given["value"])

    def handle_data(self, data: str) -> None:
        if self.unnamed:
            self.take(data)
            self.unnamed = False

    def take(self, value: str) -> None:
        self.options.setdefault(self.select, []).append(value)
        if self.chosen:
            self.values[self.select] = value

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self.inside = False
        if tag == "select":
            self.select = ""


@pytest.fixture
def form():
    """`form(html)` is what a browser would send from the question on a page."""

    def read(html: str, ending: str = "/attempts") -> Fields:
        fields = Fields(ending)
        fields.feed(html)
        assert fields.action, "there is no such form on the page"
        return fields

    return read
