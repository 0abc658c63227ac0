"""Played learners: they open Today each morning, do its list through HTTP, and sit the exam.

Run: python -m benchmarks.played [SEEDS [FIRST]]. Each row is one way to study with the shipped
course, the mean of its seeds from FIRST on; `bias` is the one of the worst week, and `error` the
standard error of this bias, 1 to 2 with three seeds. The clock of the app is moved; nothing waits.
A learner answers a question right more often once its page was read, recalls a card with 85%, and
does the tasks in their order, so the true expected score is known on each morning.
"""

import collections
import dataclasses
import datetime as dt
import html
import itertools
import json
import math
import random
import re
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import text
from sqlmodel import Session

from app.content.course_facts import cached_course_facts
from app.content.live_courses import LiveCourse
from app.content.reading_routes import ESSENTIAL_SHARE, sum_reading_minutes_on_route
from app.database.schema import upgrade_schema
from app.main import create_app
from app.questions import types
from app.questions.model import draw_variant
from app.settings import Settings

CONTENT = Path(__file__).resolve().parents[1] / "content"
NOON = dt.datetime(2026, 6, 9, 12, tzinfo=dt.UTC)
_LEVEL, _READ, _ANSWERED, _RECALL = -1.3, 1.5, 0.3, 0.85  # logits, and a chance
_CARDS_COVER = 0.5  # part of what is asked about a page that its cards hold
_QUESTION, _NEW, _REVIEW = 1.2, 1.0, 0.19  # minutes


@dataclasses.dataclass(frozen=True)
class Way:
    """How a learner studies: `skip` is the chance that a day is skipped, `done` the part done."""

    days: int
    minutes: int
    skip: float = 0.0
    done: float = 1.0

    @property
    def name(self) -> str:
        parts = [f"{self.days} × {self.minutes}"]
        parts += [f"{self.skip:.0%} of days skipped"] if self.skip else []
        parts += [f"{self.done:.0%} done"] if self.done < 1 else []
        return ", ".join(parts)


PLANS = ((24, 30), (7, 60), (60, 20), (14, 45))
WAYS = (
    *(Way(days, minutes) for days, minutes in PLANS),
    *(Way(days, minutes, done=0.7) for days, minutes in PLANS),
    Way(24, 30, skip=0.2),
)


@dataclasses.dataclass(frozen=True)
class Result:
    """What a played learner reached: shares are 0 to 1, `score` is shown on the last morning.

    `cards` counts started ones, missed questions included; `domains` are the shares of course cards.

    `practice` counts on days without a mock exam but the last; on `planned_well` of them the list is
    within 10% of the minutes a day. `biases` are the shown less the true score after each week and on the last
    morning. `changes` counts the days on which a list or the date of a mock exam changed by itself.
    """

    cards: int
    domains: tuple[float, ...]
    reviewed_twice: float
    pages: int
    practice: float
    mocks: int
    planned_mocks: int
    tasks_done: float
    most_tasks: int
    score: float
    true: float
    biases: tuple[float, ...]
    planned_well: float
    changes: int
    lists: int


class Clock:
    """A clock that a played learner moves."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> dt.datetime:
        return self.now

    def wait(self, minutes: float) -> None:
        self.now += dt.timedelta(minutes=minutes)


class Player:
    """A learner at a browser without JavaScript."""

    def __init__(self, app: FastAPI, clock: Clock, way: Way, seed: int) -> None:
        self.app, self.clock, self.way = app, clock, way
        self.course = app.state.live_course.get_current_course()
        self.rng = random.Random(f"{seed} {way}")
        self.browser = TestClient(
            app, headers={"accept-encoding": "identity"}, follow_redirects=False
        )
        self.facts = cached_course_facts(self.course)
        general = self.rng.gauss(_LEVEL, 0.5)
        self.level = {page: self.rng.gauss(general, 0.5) for page in sorted(self.course.topics)}
        self.read: dict[str, float] = {}
        self.cards: set[str] = set()
        self.answered: collections.Counter[str] = collections.Counter()
        self.left = 0.0
        self.practiced = self.plain = self.planned_well = 0
        self.tasks = self.done = self.most = self.changes = 0
        self.truth: list[float] = []
        self.shown: list[float] = []

    def play(self) -> Result:
        """Study until the exam."""
        run = self.post("/quiz/runs", pick="placement", token="placement")  # noqa: S106
        self.left = 999
        self.work_through(run)
        exam = (NOON + dt.timedelta(days=self.way.days)).date().isoformat()
        self.post("/plan", exam_day=exam, minutes_a_day=str(self.way.minutes))
        mocks = self.query("SELECT mock_days FROM learner")
        for day in range(self.way.days):
            self.clock.now = NOON + dt.timedelta(days=day)
            self.truth.append(self.true_score())
            self.get("/")
            expected = self.query("SELECT expected FROM prediction ORDER BY day DESC LIMIT 1")
            self.shown.append(float(expected or 0))
            if day == 0 or self.rng.random() >= self.way.skip:
                before = self.newest_list()
                self.study_day()
                same = self.newest_list() == before
                self.changes += not same or self.query("SELECT mock_days FROM learner") != mocks
        return self.result(len(mocks.split()))

    def study_day(self) -> None:
        """Do the tasks of the day's list in their order."""
        tasks, done_before = self.tasks_on_today(), self.count_done()
        minutes = self.minutes_of_list()
        self.left = minutes * self.way.done if self.way.done < 1 else 999.0
        day = (self.clock.now - NOON).days
        if "mock" not in {kind for kind, _ in tasks} and day < self.way.days - 1:
            self.plain += 1
            placement = 15 if day == 0 else 0
            self.planned_well += abs((minutes + placement) / self.way.minutes - 1) <= 0.1
        for kind, address in tasks:
            if self.left <= 0:
                break
            if kind in {"review", "new"}:
                self.review_cards(kind)
            elif kind == "read":
                self.read_pages()
            elif kind == "practice":
                before = self.left
                self.work_through(self.post("/quiz/runs", pick="today"))
                self.practiced += round((before - self.left) / _QUESTION)
            else:
                self.sit(address)
        self.tasks += len(tasks)
        self.most = max(self.most, len(tasks))
        self.done += self.count_done() - done_before

    def count_done(self) -> int:
        return self.list_on_today().count('<li class="did">')

    def list_on_today(self) -> str:
        return self.get("/").partition('<ol class="todo">')[2].partition("</ol>")[0]

    def tasks_on_today(self) -> list[tuple[str, str]]:
        """Return kind and address of what is on the list and not done."""
        page = self.list_on_today()
        tasks = []
        for item in page.split("<li")[1:]:
            link = re.search(r'<h3>.*?<a href="([^"]+)"', item, re.DOTALL)
            address = link[1] if link else ""
            if 'value="today"' in item:
                tasks.append(("practice", ""))
            elif address.startswith("/exams"):
                tasks.append(("mock", address))
            elif address.startswith("/concepts"):
                tasks.append(("read", address))
            elif address:
                tasks.append(("new" if "Learn" in item else "review", address))
        return tasks

    def minutes_of_list(self) -> float:
        return sum(task["minutes"] for task in self.newest_list())

    def newest_list(self) -> list[dict[str, float]]:
        tasks = self.query("SELECT tasks FROM day_list ORDER BY day DESC LIMIT 1")
        made: list[dict[str, float]] = json.loads(tasks)["tasks"] if tasks else []
        return made

    def query(self, statement: str) -> str:
        """Return the first value of a query as text; empty without one."""
        with Session(self.app.state.engine) as db:
            value = db.execute(text(statement)).scalars().first()
        return "" if value is None else str(value)

    def read_pages(self) -> None:
        while self.left > 0:
            page = self.list_on_today()
            link = re.search(
                r'<h3>[^<]*(?:<span[^<]*</span>)?\s*<a href="/concepts/([\w-]+)([^"]*)"', page
            )
            if link is None:
                return
            slug, short = link[1], link[2] == "?route=short"
            topic = self.course.topics[slug]
            self.get(f"/concepts/{slug}{link[2]}")
            self.post(f"/concepts/{slug}/readings{link[2]}")
            before = self.read.get(slug, 0.0)
            left = topic.minutes - sum_reading_minutes_on_route(topic, "short") * (before > 0)
            self.spend(sum_reading_minutes_on_route(topic, "short") if short else left)
            self.read[slug] = max(before, ESSENTIAL_SHARE if short else 1.0)

    def review_cards(self, task: str) -> None:
        """Grade the cards of a task until none is left today; steps are waited for."""
        for _ in range(400):
            page = self.get(f"/flashcards?task={task}&show=1")
            action = re.search(r'action="(/flashcards/[^"]+/reviews)"', page)
            if action is None:
                if "The next card comes back in" not in page:
                    return
                self.clock.wait(12)
                continue
            if self.left <= 0:
                return
            fields = _hidden(page, action[1])
            rating = 3 if self.rng.random() < _RECALL else 1
            is_new = re.search(r'aria-current="true">New\b', page)
            self.spend(_NEW / 2 if is_new else _REVIEW)
            self.post(action[1], **fields, rating=str(rating))
            self.cards.add(action[1].split("/")[2])

    def work_through(self, run: str) -> None:
        for place in itertools.count(1):
            page = self.browser.get(f"{run}/{place}")
            if page.status_code == 404 or self.left <= 0:
                self.get(f"{run}/result")
                return
            action = re.search(r'action="(/quiz/[^"]+/attempts)"', page.text)
            if action is None:
                continue
            fields = _hidden(page.text, action[1])
            item = action[1].split("/")[3]
            seed = int(fields.get("seed", 0))
            answer = self.answer(item, seed, page.text)
            self.spend(_QUESTION)
            if not self.post(action[1], **fields, **answer):
                # The form takes no answer in a wrong unit or without a number.
                self.post(action[1], **fields, unknown="yes")

    def answer(self, item: str, seed: int, page: str) -> dict[str, list[str]]:
        """Return a response in the form's fields on a page: right if known, else a blind guess.

        So its mean score is `guess + (1 - guess) * known`, as `true_score` has it.
        """
        question = self.course.questions[item]
        variant = draw_variant(question, seed)
        right, *wrong = (
            raw for _, raw in types.question_type_of(variant).sample_responses(variant.answer)
        )
        known = self.rng.random() < self.chance(question.topic)
        self.answered[question.topic] += 1
        if known:
            return {name: list(values) for name, values in right.items()}
        options = list(dict.fromkeys(re.findall(r'name="answer" value="([^"]+)"', page)))
        if options and len(options) >= len(right["answer"]):
            return {"answer": self.rng.sample(options, len(right["answer"]))}
        if all(name.startswith("pair.") for name in right):
            values = [value for chosen in right.values() for value in chosen]
            self.rng.shuffle(values)
            return {name: [value] for name, value in zip(right, values, strict=True)}
        return {name: list(values) for name, values in (wrong or [right])[0].items()}

    def chance(self, page: str) -> float:
        """Return the chance that a page is known: from its reading, answers and cards."""
        gained = _READ * self.read.get(page, 0.0) + _ANSWERED * math.log1p(self.answered[page])
        known = 1 / (1 + math.exp(-self.level[page] - gained))
        cards = self.facts.pages[page].card_ids if page in self.facts.pages else ()
        recalled = _RECALL * len(self.cards.intersection(cards)) / max(1, len(cards))
        return known + (1 - known) * _CARDS_COVER * recalled

    def true_score(self) -> float:
        """Return the expected score of an exam today."""
        score = 0.0
        for domain in self.facts.domains:
            for number in domain.objective_numbers:
                facts = self.facts.objectives[number]
                known = sum(
                    share * self.chance(page)
                    for page, share in facts.question_share_by_page.items()
                )
                right = facts.guess_score + (1 - facts.guess_score) * known
                score += domain.exam_question_count * right / len(domain.objective_numbers)
        return score

    def sit(self, address: str) -> None:
        exam = max(self.course.exams.values(), key=lambda exam: exam.question_count)
        sitting = self.post(f"/exams/{exam.slug}/sittings", token=f"{address} {self.clock.now}")
        sitting = sitting.partition("/questions/")[0]
        for number in range(1, exam.question_count + 1):
            page = self.browser.get(f"{sitting}/questions/{number}").text
            seed = re.search(r'name="seed" value="(\d+)"', page)
            item = re.search(r'id="q-([\w-]+)-stem"', page)
            if item is None:
                raise SystemExit(f"question {number} of the mock exam has no stem")
            answer = self.answer(item[1], int(seed[1]) if seed else 0, page)
            self.post(
                f"{sitting}/answers/{number}", **answer, **({"seed": seed[1]} if seed else {})
            )
        self.post(f"{sitting}/submission")
        self.spend(exam.minutes * 0.85)

    def spend(self, minutes: float) -> None:
        self.left -= minutes
        self.clock.wait(minutes)

    def get(self, address: str) -> str:
        answer = self.browser.get(address)
        if answer.status_code != 200:
            raise SystemExit(f"GET {address} answered {answer.status_code}")
        return answer.text

    def post(self, address: str, **fields: object) -> str:
        """Send a form; returns where the answer leads to."""
        answer = self.browser.post(address, data=fields)
        if answer.status_code >= 400 and not (answer.status_code == 422 and "attempts" in address):
            raise SystemExit(f"POST {address} answered {answer.status_code}: {answer.text[:400]}")
        return answer.headers.get("location", "")

    def result(self, planned: int) -> Result:
        facts = self.facts
        page_of = {card: page for page in facts.pages.values() for card in page.card_ids}
        with Session(self.app.state.engine) as db:
            days = db.execute(
                text(
                    "SELECT card, COUNT(DISTINCT study_day) FROM review WHERE rating > 0 GROUP BY card"
                )
            ).all()
        started = {card: count for card, count in days if card in page_of}
        shares = [
            sum(page_of[card].domain == domain.number for card in started) / max(1, len(started))
            for domain in facts.domains
        ]
        return Result(
            cards=len(days),
            domains=tuple(shares),
            reviewed_twice=sum(n > 2 for _, n in days) / max(1, len(days)),
            pages=len(self.read),
            practice=self.practiced / max(1, self.plain),
            mocks=int(self.query("SELECT COUNT(*) FROM sitting WHERE closed_at > 0")),
            planned_mocks=planned,
            tasks_done=self.done / max(1, self.tasks),
            most_tasks=self.most,
            score=self.shown[-1],
            true=self.truth[-1],
            biases=tuple(
                self.shown[n] - self.truth[n]
                for n in (*range(7, self.way.days - 1, 7), self.way.days - 1)
            ),
            planned_well=self.planned_well / max(1, self.plain),
            changes=self.changes,
            lists=int(self.query("SELECT COUNT(*) FROM day_list")),
        )


def _hidden(page: str, action: str) -> dict[str, str]:
    form = page.partition(f'action="{action}"')[2].partition("</form>")[0]
    pairs = re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', form)
    return {name: html.unescape(value) for name, value in pairs}


def play(way: Way, seed: int, live_course: LiveCourse, player: type[Player] = Player) -> Result:
    """Play one learner on a server of its own, in this process."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            content=CONTENT,
            data=Path(folder),
            secret="of the measurement, which nobody guesses",  # noqa: S106
            rate_learners="off",
            rate_writes="off",
            rate_writes_browser="off",
        )
        clock = Clock()
        app = create_app(settings, clock, live_course)
        upgrade_schema(app.state.engine)
        try:
            return player(app, clock, way, seed).play()
        finally:
            app.state.engine.dispose()


def rows(ways: tuple[Way, ...], seeds: range) -> Iterator[tuple[Way, list[Result]]]:
    with tempfile.TemporaryDirectory() as cache:
        course = LiveCourse(CONTENT, Path(cache))
        for way in ways:
            yield way, [play(way, seed, course) for seed in seeds]


def main() -> int:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    print(
        f"{'days × minutes':32} {'cards':>5} {'by domain':>14} {'twice':>6} {'pages':>5} "
        f"{'practice':>8} {'mocks':>7} {'done':>5} {'in time':>7} {'changed':>7} {'score':>5} "
        f"{'true':>5} {'bias':>5} {'error':>5}"
    )
    for way, results in rows(WAYS, range(first, first + seeds)):

        def mean(name: str, found: list[Result] = results) -> float:
            return statistics.fmean(getattr(one, name) for one in found)

        weeks = list(zip(*(r.biases for r in results), strict=True))
        week = max(weeks, key=lambda found: abs(statistics.fmean(found)))
        worst = statistics.fmean(week)
        error = statistics.stdev(week) / math.sqrt(len(week)) if len(week) > 1 else math.inf
        shares = [statistics.fmean(x) for x in zip(*(r.domains for r in results), strict=True)]
        print(
            f"{way.name:32} {mean('cards'):5.0f} {'/'.join(f'{s:.0%}' for s in shares):>14} "
            f"{mean('reviewed_twice'):6.0%} {mean('pages'):5.0f} {mean('practice'):8.1f} "
            f"{mean('mocks'):3.1f}/{mean('planned_mocks'):3.1f} {mean('tasks_done'):5.0%} "
            f"{mean('planned_well'):7.0%} {sum(r.changes for r in results):7} {mean('score'):5.1f} "
            f"{mean('true'):5.1f} {worst:+5.1f} {error:5.1f}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
