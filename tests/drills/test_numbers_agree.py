"""The same number on every screen: a played learner's pages, compared each morning and evening."""

import html
import re
from collections.abc import Iterator

import pytest

from app.content.live_courses import LiveCourse
from benchmarks import played

pytestmark = pytest.mark.drill

# What is said in several places, as the pattern that finds it on each page.
SAID: dict[str, tuple[tuple[str, str], ...]] = {
    "days left": (("/", r"(\d+) days? to your exam"), ("/plan", r"(\d+) days? to your exam")),
    "expected score": (
        ("/", r"About (\d+) of 50"),
        ("/progress", r"About (\d+) of 50"),
        ("/", r"Expected score, from \d+ on \w+ \d+ to (\d+) today"),
    ),
    "its range": (("/", r"likely (\d+ to \d+)"), ("/progress", r"Likely (\d+ to \d+)")),
    "its change": (
        ("/", r"(up \d+ since \w+ \d+|down \d+ since \w+ \d+|the same as on \w+ \d+)"),
        ("/progress", r"(up \d+ since \w+ \d+|down \d+ since \w+ \d+|the same as on \w+ \d+)"),
    ),
    "objectives ready": (
        ("/", r"(\d+) of 22 objectives ready"),
        ("/plan", r"Objectives ready (\d+) of 22"),
        ("/progress", r"Objectives ready (\d+) of 22"),
    ),
    "pages read": (
        ("/plan", r"Pages read (\d+ of \d+)"),
        ("/progress", r"Pages read (\d+ of \d+)"),
        ("/course", r"(\d+ of \d+) pages read"),
    ),
    "cards remembered": (
        ("/plan", r"remembered on a later day (.*?) as of this morning"),
        ("/progress", r"remembered on a later day (.*?) as of this morning"),
    ),
    "minutes of the list": (
        ("/", r"Today about (?:\d+ of )?(\d+) minutes"),
        ("/plan", r"Today (?:\d+ of )?(\d+) minutes"),
    ),
    "minutes left": (
        ("/", r"about (\d+ of \d+) minutes left"),
        ("/plan", r"Today (\d+ of \d+) minutes left"),
    ),
    "cards to review": (
        ("/", r"Review (\d+) cards?"),
        ("/plan", r"Review (\d+) cards?"),
        ("/flashcards?task=review", r"New 0 Learning 0 Due (\d+)"),
    ),
    "cards to learn": (
        ("/", r"Learn (\d+) cards?"),
        ("/plan", r"Learn (\d+) cards?"),
        ("/flashcards?task=new", r"New (\d+) Learning 0 Due 0"),
    ),
    "questions to answer": (
        ("/", r"Answer (\d+) questions?"),
        ("/plan", r"Answer (\d+) questions?"),
    ),
    "the next mock exam": (
        ("/exams", r"the next one on (\w+, \w+ \d+)"),
        ("/plan", r"60 minutes each (?:\w+, \w+ \d+ taken )*(\w+, \w+ \d+) Move"),
    ),
}


class Comparing(played.Player):
    """A learner who compares the pages each morning and evening, and after a mock exam."""

    def play(self) -> played.Result:
        self.found: set[tuple[str, str]] = set()
        self.asked: set[str] = set()
        return super().play()

    def answer(self, item: str, seed: int, page: str) -> dict[str, list[str]]:
        self.asked.add(item)
        return super().answer(item, seed, page)

    def study_day(self) -> None:
        self.compare("morning")
        super().study_day()
        self.compare("evening")

    def sit(self, address: str) -> None:
        super().sit(address)
        self.compare("after the mock exam")

    def compare(self, moment: str) -> None:
        pages = {page for places in SAID.values() for page, _ in places} | {"/quiz"}
        text = {page: _words_of(self.get(page)) for page in pages}
        differences = [*self.compare_pages(text), *self.compare_sums(text)]
        assert not differences, (moment, self.clock.now, differences)

    def compare_pages(self, text: dict[str, str]) -> Iterator[str]:
        for name, places in SAID.items():
            values = {
                place: match[1]
                for place in places
                if (match := re.search(place[1], text[place[0]]))
            }
            self.found |= values.keys()
            if len(set(values.values())) > 1:
                yield f"{name}: {values}"

    def compare_sums(self, text: dict[str, str]) -> Iterator[str]:
        ready = re.search(r"Objectives ready (\d+)", text["/progress"])
        for page in ("/progress", "/course"):
            by_domain = sum(map(int, re.findall(r"(\d+) of \d+ ready", text[page])))
            if ready and by_domain != int(ready[1]):
                yield f"ready by domain on {page}: {by_domain}, in all {ready[1]}"
        read, left = (
            re.search(pattern, text["/plan"])
            for pattern in (r"Pages read (\d+) of (\d+)", r"(\d+) pages? left")
        )
        if read and int(read[1]) != len(self.read):
            yield f"pages read: {read[1]}, of which the learner read {len(self.read)}"
        if read and left and int(read[1]) + int(left[1]) != int(read[2]):
            yield f"pages: {read[0]}, {left[0]}"
        counts = re.search(
            r"([\d,]+) questions: (\d+) right, (\d+) missed, ([\d,]+) not answered", text["/quiz"]
        )
        every, right, missed, rest = (
            (int(n.replace(",", "")) for n in counts.groups()) if counts else (0,) * 4
        )
        if every != right + missed + rest or right + missed != len(self.asked):
            yield f"practice: {counts and counts[0]}; the learner answered {len(self.asked)}"

    def result(self, planned: int) -> played.Result:
        unsaid = {place for places in SAID.values() for place in places} - self.found
        assert not unsaid
        return super().result(planned)


def test_what_is_said_on_several_pages_is_one_number(live_shipped: LiveCourse) -> None:
    played.play(played.Way(12, 30, skip=0.1, done=0.8), 5, live_shipped, Comparing)


def _words_of(page: str) -> str:
    """Return what the main part of a page says, with the names of its pictures."""
    main = page.partition("<main")[2].partition("</main>")[0]
    main = re.sub(r"<(template|script)\b.*?</\1>", " ", main, flags=re.DOTALL)
    named = re.sub(r'<svg[^>]*aria-label="([^"]*)"[^>]*>', r" \1 ", main)
    words = html.unescape(re.sub(r"<[^>]+>", " ", named)).replace("\N{NO-BREAK SPACE}", " ")
    return " ".join(words.split())
