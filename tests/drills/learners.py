"""Learners who answer without a pause while the server is hurt, and what they know.

Each answer has a token of its own. Its number in the log is noted when the server has
acknowledged it; what got no answer is sent again with the same token, as a browser
does. At the end the log has to hold exactly those numbers: nothing is lost or doubled.
"""

import re
import threading
import time
import uuid
from collections.abc import Callable
from typing import Self

import httpx
from sqlalchemy import create_engine, text

QUESTION = "/quiz/weights/w-bf16-70b"
_TRIED_AGAIN = {408, 429, 500, 502, 503, 507}


class Learners:
    """So many learners, each in a thread, from `begin` to `end`.

    As a context they begin and end with it; where it fails they leave at once.
    """

    def __init__(self, address: str, count: int = 3) -> None:
        self.acknowledged: list[int] = []
        self.refused: set[int] = set()
        self._turned_away: set[int] = set()
        self.broken: list[BaseException] = []
        self._address = address
        self._over = threading.Event()
        self._left = threading.Event()
        self._wrote = threading.Condition()
        self._threads = [threading.Thread(target=self._study, daemon=True) for _ in range(count)]

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind:
            self._left.set()
        self.end()

    def begin(self) -> None:
        """Let them answer."""
        for thread in self._threads:
            thread.start()

    def wait_for(self, more: int) -> None:
        """Wait until so many more answers were acknowledged."""
        wanted = len(self.acknowledged) + more
        with self._wrote:
            found = self._wrote.wait_for(lambda: len(self.acknowledged) >= wanted, timeout=120)
        assert found, f"only {len(self.acknowledged)} of {wanted} were acknowledged"

    @property
    def all_refused(self) -> bool:
        """Whether each was refused; nobody then waits for an answer from before."""
        return len(self._turned_away) == len(self._threads)

    def end(self) -> None:
        """Let each finish what was begun, and wait for them."""
        self._over.set()
        for thread in self._threads:
            thread.join(timeout=120)
            assert not thread.is_alive()

    def _study(self) -> None:
        try:
            self._answer_on()
        except BaseException as error:  # noqa: BLE001 - told at the end
            self.broken.append(error)

    def _answer_on(self) -> None:
        with httpx.Client(base_url=self._address, timeout=30) as browser:
            page = self._sent_until_answered(lambda: browser.get(QUESTION))
            if not page:
                return
            found = re.search(r'name="answer" value="(\w+)"', page.text)
            assert found, page.text
            option = found[1]
            while not self._over.is_set():
                self._answer(browser, option)

    def _answer(self, browser: httpx.Client, option: str) -> None:
        form = {"token": uuid.uuid4().hex, "answer": option}
        answer = self._sent_until_answered(lambda: browser.post(f"{QUESTION}/attempts", data=form))
        if answer:
            self._note(answer)

    def _sent_until_answered(self, send: Callable[[], httpx.Response]) -> httpx.Response | None:
        """The answer to a request that is sent again until there is one; none: left."""
        while not self._left.is_set():
            try:
                answer = send()
            except httpx.TransportError:
                # Nobody can say whether it arrived, and a server may be starting.
                self._left.wait(0.02)
                continue
            if answer.status_code not in _TRIED_AGAIN:
                return answer
            self.refused.add(answer.status_code)
            self._turned_away.add(threading.get_ident())
        return None

    def _note(self, answer: httpx.Response) -> None:
        assert answer.status_code == 303, answer.text
        number = re.search(r"attempt=(\d+)", answer.headers["location"])
        assert number, answer.headers["location"]
        with self._wrote:
            self.acknowledged.append(int(number[1]))
            self._wrote.notify_all()


def log_of(database: str) -> list[int]:
    """The numbers of all answers in the log, from the database itself."""
    engine = create_engine(database)
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT id FROM attempt ORDER BY id"))
        numbers = [int(row[0]) for row in rows]
    engine.dispose()
    return numbers


def assert_nothing_lost_or_doubled(learners: Learners, database: str) -> None:
    """Each answer that was acknowledged is in the log once, and nothing else is."""
    assert not learners.broken, learners.broken
    told, held = sorted(learners.acknowledged), log_of(database)
    lost, beyond = set(told) - set(held), set(held) - set(told)
    assert told == held, f"lost {sorted(lost)}, never acknowledged {sorted(beyond)}"


def wait_until(fact: Callable[[], bool]) -> None:
    """Ask again until it is so; the learners go on meanwhile."""
    for _ in range(2400):
        if fact():
            return
        time.sleep(0.05)  # two minutes in all, so that a broken server ends the test
    raise AssertionError("it did not come to that")
