"""Many files read at once, by as many processes as there are processors."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Sequence
from multiprocessing.connection import Connection

from app.content.parsed import ParsedFile
from app.content.read import parse
from app.content.terms import GlossaryNames

Job = tuple[str, str, GlossaryNames]  # text, path, names of the glossary

_LEAST = 60  # files from which on it pays to start processes
_MOST_PROCESSES = 8


def read_all(jobs: Sequence[Job]) -> list[ParsedFile]:
    """The readings of many files, in order."""
    count = min(_processors(), _MOST_PROCESSES)
    # A process with other threads must not fork: their locks would stay locked.
    lone = threading.active_count() == 1 and hasattr(os, "fork")
    if len(jobs) < _LEAST or count < 2 or not lone:
        return [parse(*job) for job in jobs]
    return _shared(jobs, count)


def _processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def _shared(jobs: Sequence[Job], count: int) -> list[ParsedFile]:
    """Deal the jobs out like cards, so that long files spread evenly."""
    context = multiprocessing.get_context("fork")
    crew = []
    for number in range(1, count):
        ours, theirs = context.Pipe(duplex=False)
        # As a daemon it is ended, not waited for, where reading fails here.
        worker = context.Process(target=_work, args=(jobs[number::count], theirs), daemon=True)
        worker.start()
        theirs.close()
        crew.append((number, ours, worker))
    done: list[ParsedFile | None] = [None] * len(jobs)
    done[::count] = [parse(*job) for job in jobs[::count]]
    for number, ours, worker in crew:
        try:
            done[number::count] = ours.recv()
        except EOFError:  # a worker was killed: its part is read here
            done[number::count] = [parse(*job) for job in jobs[number::count]]
        worker.join()
    return [reading for reading in done if reading is not None]


def _work(jobs: Sequence[Job], answer: "Connection[list[ParsedFile], None]") -> None:
    """Answer with the readings, unless the process that wants them ends before.

    It ends without a word to this one, which would then wait for ever: a fork holds
    the end of the pipe that is read from as well, so writing to it never fails.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)  # what a server does then is not for us
    threading.Thread(target=_end_with_parent, daemon=True).start()
    answer.send([parse(*job) for job in jobs])
    answer.close()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
