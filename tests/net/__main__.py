"""`python -m tests.net record` keeps what the app does, `compare` says what differs.

Hashes are kept in `hashes.json`, by name; the texts lie beside it, where Git does not
look, so that a change can be read as a difference of two files.
"""

import hashlib
import json
import multiprocessing
import os
import re
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.net.repeatable import perform

HERE = Path(__file__).resolve().parent
ROOT = str(HERE.parents[1])
HASHES, TEXTS = HERE / "hashes.json", HERE / "texts"
# The longest first; `evening` and the others are functions of `tests.net.runs`.
RUNS = [
    "commands",
    "practitioner",
    "evening",
    "newcomer",
    "broken_courses",
    "interface",
]


def perform_all(names: list[str]) -> dict[str, str]:
    """The texts of several runs, each in a process of its own, two at a time."""
    # Some of what is stored stands in the order of a set of words.
    os.environ["PYTHONHASHSEED"] = "0"
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, context, max_tasks_per_child=1) as pool:
        found = [texts for each in pool.map(perform, names) for texts in each.items()]
    return dict(sorted(found))


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def file_of(name: str, side: str) -> Path:
    """Where the text of a name lies: `side` is recorded or found."""
    run, _, rest = name.partition("/")
    words = re.sub(r"[^\w.-]+", "_", rest)[:80].strip("_")
    return TEXTS / side / run / f"{words}-{digest(name)[:6]}.txt"


def keep(texts: dict[str, str], side: str) -> None:
    """Write texts to their files, in the place of those that were there."""
    shutil.rmtree(TEXTS / side, ignore_errors=True)
    for name, text in texts.items():
        file = file_of(name, side)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def record(texts: dict[str, str]) -> int:
    hashes = {name: digest(text) for name, text in texts.items()}
    HASHES.write_text(json.dumps(hashes, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
    keep(texts, "recorded")
    print(f"{len(texts)} texts recorded.")
    return 0


def compare(texts: dict[str, str]) -> int:
    known = json.loads(HASHES.read_text("utf-8"))
    hashes = {name: digest(text) for name, text in texts.items()}
    differing = [n for n in sorted({*known, *hashes}) if known.get(n) != hashes.get(n)]
    keep({name: texts[name] for name in differing if name in texts}, "found")
    for name in differing:
        was = "" if name in hashes else ", is gone"
        print(f"{name}{was if name in known else ', is new'}")
        print(f"    diff {file_of(name, 'recorded')} {file_of(name, 'found')}")
    print(f"{len(differing)} of {len(texts)} texts differ.")
    return 1 if differing else 0


if __name__ == "__main__":
    wishes = {"record": record, "compare": compare}
    if sys.argv[1:] not in [[wish] for wish in wishes]:
        sys.exit("usage: python -m tests.net record|compare")
    sys.exit(wishes[sys.argv[1]](perform_all(RUNS)))
