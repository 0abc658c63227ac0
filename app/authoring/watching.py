"""`headroom check --watch`: the check again at every change, saying what changed."""

import datetime as dt
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from app.content.check import write
from app.content.live.library import assemble_library
from app.content.live.watched_files import FileStamps, WatchedFiles
from app.content.problems import ContentProblem

_PAUSE = 0.2
Found = tuple[ContentProblem, ...]


def watch(folder: Path, wait: Callable[[], None] | None = None) -> Iterator[str]:
    """What to print: every problem first, then after each change what is different.

    Ends when `wait`, which is called between two looks, raises KeyboardInterrupt.
    """
    pause = wait or (lambda: time.sleep(_PAUSE))
    files = WatchedFiles(folder, None)
    before: Found | None = None
    try:
        while True:
            found, stamps = _look(files, folder)
            if before is None:
                yield write(found)
            elif found != before:
                yield differences(before, found)
            before = found
            while True:
                pause()
                if stamps.changed():
                    break
    except KeyboardInterrupt:
        return


def differences(before: Found, now: Found) -> str:
    """What was mended and what is new, and how many are left.

    A problem whose line moved while its words stayed is neither.
    """
    old, new = _words(before), _words(now)
    gone = [problem for words, problem in old.items() if words not in new]
    come = [problem for words, problem in new.items() if words not in old]
    lines = [f"mended  {_place(p)} {p.code} {p.message}" for p in gone]
    for p in come:
        lines.append(f"new     {_place(p)} {p.code} {p.message}")
        if p.hint:
            lines.append(f"        {p.hint}")
    summary = write(now).splitlines()[-1]
    return "\n".join([*lines, f"{dt.datetime.now().astimezone():%H:%M:%S}  {summary}"])


def _look(files: WatchedFiles, folder: Path) -> tuple[Found, FileStamps]:
    # The check speaks of the files as they are; only a server keeps a good version.
    files.good.clear()
    readings, stamps = files.read()
    return tuple(sorted(assemble_library(readings, folder).problems)), stamps


def _words(problems: Found) -> dict[tuple[str, str, str, int], ContentProblem]:
    """Problems by all but their line; equal ones are told apart by their order."""
    found: dict[tuple[str, str, str, int], ContentProblem] = {}
    for problem in problems:
        number = 0
        while (name := (problem.path, problem.code, problem.message, number)) in found:
            number += 1
        found[name] = problem
    return found


def _place(problem: ContentProblem) -> str:
    return f"{problem.path}:{problem.line}:{problem.column}"
