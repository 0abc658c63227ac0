"""Whatever an author does to the files, the history of a question stays its own.

Each question has a mark in its first line that the author never changes. An answer is
recorded under the id that a question has while it is served: the id of one mark never
comes to another one, as long as ids.lock has its line.
"""

import datetime as dt
import random
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.content.check import fix_course_files
from app.content.course import Course, load_course
from app.content.file_reader import parse_file
from app.content.parsed_file import ParsedFile
from tests.amounts import FACTOR

pytestmark = [pytest.mark.drawn, pytest.mark.usefixtures("read_once")]

DAY = dt.date(2026, 11, 21)
_MARK = re.compile(r"\bmark[0-9]+\b")
_ID = re.compile(r"(q[ \t]*:)[ \t]*(?:[a-z0-9]+(?:-[a-z0-9]+)*)?[ \t]*")
_FRONT_MATTER = re.compile(r"\A---.*?^---\n", re.DOTALL | re.MULTILINE)
_SYLLABUS = """exam = "E"
title = "Stones"
order = ["rocks", "rivers"]
[[domains]]
number = "1"
title = "All of it"
weight = 100
[[domains.objectives]]
number = "1.1"
title = "Know stones"
"""
_SOURCES = """[book]
title = "Stones"
publisher = "A publisher"
address = "https://example.org/stones"
read = 2026-11-01
"""
_FRONT = '---\ntitle: "{}"\nobjective: 1.1\nsource: book\n---\n\n'
_CHOICE = """### {}
<!-- q: {}
difficulty: 2
-->

- [x] {}
  > So it is.
- [ ] {}
  > It is not.
- [ ] Neither of the two
  > One is.

> [!NOTE]
> {}
"""
_CLAIM = """### {}
<!-- q: {} -->

- [x] True
- [ ] False
  > It is.
"""
_CARD = """### {}
<!-- q: {} -->

{}
"""
_TOPICS = {
    "rocks": {
        "quiz.md": [
            _CHOICE.format(
                "Which rock of mark1 floats?",
                "r-floats",
                "Pumice",
                "Basalt",
                "Its holes are full of air.",
            ),
            _CHOICE.format(
                "Which rock of mark2 was mud?",
                "r-mud",
                "Slate",
                "Granite",
                "Pressure made it of clay.",
            ),
            _CLAIM.format("Chalk of mark3 was once alive.", "r-chalk"),
            _CLAIM.format("Flint of mark4 was once alive.", "r-flint"),
        ],
        "cards.md": [
            _CARD.format("What mark5 is made of", "r-c-sand", "Of sand."),
            _CARD.format("What mark6 is made of", "r-c-lime", "Of lime."),
        ],
    },
    "rivers": {
        "quiz.md": [
            _CHOICE.format(
                "Which bank of mark7 does a river wear away?",
                "v-bank",
                "The outer one",
                "The inner one",
                "There it runs the fastest.",
            ),
            _CLAIM.format("Gravel of mark8 rolls by night.", "v-gravel"),
        ],
        "cards.md": [_CARD.format("Mark9: delta of mark9", "v-c-delta", "A mouth.")],
    },
}
_PAGE = """## Stones

They lie about.

### Is a pebble of mark{0} round?
<!-- q: {1}-pebble -->

- [x] Yes, as a rule
  > Water rolled it.
- [ ] No, never
  > Look again.

## Sand

It is small.
"""


class Author:
    """Somebody who edits the files of a course, not always with luck."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder = folder
        self.chance = chance
        self.copies: list[tuple[Path, str]] = []
        self.deleted: list[str] = []
        (folder / "syllabus.toml").write_text(_SYLLABUS)
        (folder / "sources.toml").write_text(_SOURCES)
        for number, (topic, files) in enumerate(_TOPICS.items()):
            self.begin(topic, _PAGE.format(20 + number, topic))
            for name, items in files.items():
                text = _FRONT.format(topic) + "\n".join(items)
                (folder / "topics" / topic / name).write_text(text)

    def begin(self, topic: str, more: str = "") -> None:
        place = self.folder / "topics" / topic
        place.mkdir(parents=True, exist_ok=True)
        page = place / "concept.md"
        if not page.exists():
            page.write_text(_FRONT.format(topic) + more)

    @property
    def files(self) -> list[Path]:
        return sorted(self.folder.glob("topics/*/*.md"))

    def pick(self) -> tuple[Path, list[str], int]:
        """A file, its parts, and the number of one of its items."""
        files = [f for f in self.files if "### " in f.read_text()]
        file = self.chance.choice(files or self.files)
        parts = re.split(r"(?m)^(?=### )", file.read_text())
        return file, parts, self.chance.randrange(1, max(len(parts), 2))

    def put(self, item: str) -> None:
        """Put an item somewhere into some file."""
        file, parts, at = self.pick()
        parts.insert(self.chance.choice([at, at + 1]), f"{item.rstrip()}\n\n")
        if not parts[0].endswith("\n\n"):
            parts[0] = f"{parts[0].rstrip()}\n\n"
        file.write_text("".join(parts))

    def copy_item(self) -> None:
        """Copy an item; mostly the copy is edited, and mostly that is all."""
        _, parts, at = self.pick()
        item = parts[at] if at < len(parts) else ""
        if item and self.chance.random() < 0.7:
            item = self._reworded(item)
        self.put(item)

    def copy_beside(self) -> None:
        """Copy an item to right above or right below itself, and edit it."""
        file, parts, at = self.pick()
        if at < len(parts):
            copy = f"{self._reworded(parts[at]).rstrip()}\n\n"
            parts[at] = f"{parts[at].rstrip()}\n\n"
            parts.insert(at + self.chance.choice([0, 1]), copy)
            file.write_text("".join(parts))

    def move_item(self) -> None:
        file, parts, at = self.pick()
        if at < len(parts):
            item = parts.pop(at)
            file.write_text("".join(parts))
            self.put(item)

    def delete_item(self) -> None:
        file, parts, at = self.pick()
        del parts[at : at + 1]
        file.write_text("".join(parts))

    def reword(self) -> None:
        self._edit(self._reworded)

    def rename_heading(self) -> None:
        """Other words around the mark."""

        def rename(item: str) -> str:
            heading, rest = item.split("\n", 1)
            mark = _MARK.search(heading.lower())
            if mark is None:
                return item
            words = self.chance.choice(["What of {}?", "Say what {} is", "Of {}, what is so?"])
            return f"### {words.format(mark[0])}\n{rest}"

        self._edit(rename)

    def spoil_id(self) -> None:
        """A slip in an id, or the id of another item."""
        others = re.findall(r"q: ([a-z0-9-]+)", "".join(self._texts()))

        def spoil(item: str) -> str:
            old = re.search(r"q: ([a-z0-9-]+)", item)
            if old is None:
                return item
            name = old[1]
            new = self.chance.choice(
                [name[:-1], f"{name}x", name.replace("-", ""), name.upper(), *others]
            )
            return item.replace(f"q: {name}", f"q: {new}", 1)

        self._edit(spoil)

    def spoil_comment(self) -> None:
        old, new = self.chance.choice(
            [
                ("<!-- q:", "<!- q:"),
                ("<!-- q:", "<-- q:"),
                ("<!-- q:", "<!-- Q:"),
                ("<!-- q:", "<!-- q"),
                ("<!-- q:", "<!-- id:"),
                ("<!-- q:", "<!-- qq:"),
                ("<!-- q:", "q:"),
                ("<!-- q:", "\n<!-- TODO -->\n<!-- q:"),
                ("<!-- q:", "\nSome words.\n\n<!-- q:"),
                ("<!-- q:", '<!-- q: "'),
                ("-->", ""),
                ("-->", "->"),
                ("difficulty: 2", "difficulty 2"),
                ("### ", "###"),
            ]
        )
        self._edit(lambda item: item.replace(old, new, 1))

    def lose_comment(self) -> None:
        self._edit(lambda item: re.sub(r"<!--.*?-->\n?", "", item, flags=re.DOTALL))

    def empty_id(self) -> None:
        self._edit(lambda item: re.sub(r"q: [a-z0-9-]+", "q:", item, count=1))

    def mend(self) -> None:
        """Write the id back where a slip took it."""
        self._edit(lambda item: re.sub(r"<!-{0,2} [Qq]:? ", "<!-- q: ", item, count=1))

    def rename_topic(self) -> None:
        old = self.chance.choice(self._folders())
        new = old.with_name(self.chance.choice(["hills", "a-stones", "zones"]))
        if not new.exists():
            old.rename(new)

    def rename_file(self) -> None:
        """To a name that nothing reads, or to one of the others."""
        file = self.chance.choice(self.files)
        new = file.with_name(self.chance.choice(["quizz.md", "quiz.md", "cards.md"]))
        if file.name != "concept.md" and not new.exists():
            file.rename(new)

    def merge(self) -> None:
        one, other = self.chance.choice(self.files), self.chance.choice(self.files)
        if one != other and other.name != "concept.md":
            more = _FRONT_MATTER.sub("", other.read_text())
            one.write_text(f"{one.read_text().rstrip()}\n\n{more.lstrip()}")
            other.unlink()

    def split(self) -> None:
        """The second half of a file becomes that of a new topic."""
        file, parts, at = self.pick()
        topic = self.chance.choice(["half", "a-half"])
        new = self.folder / "topics" / topic / "quiz.md"
        if not new.exists() and file.name == "quiz.md" and at < len(parts):
            self.begin(topic)
            new.write_text(_FRONT.format(topic) + "".join(parts[at:]))
            file.write_text("".join(parts[:at]))

    def copy_file(self) -> None:
        file = self.chance.choice(self.files)
        topic = self.chance.choice(["copy", "a-copy", *_TOPICS])
        self.begin(topic)
        if not (new := self.folder / "topics" / topic / file.name).exists():
            shutil.copy(file, new)

    def copy_topic(self) -> None:
        old = self.chance.choice(self._folders())
        new = old.with_name(self.chance.choice(["copy", "a-copy"]))
        if not new.exists():
            shutil.copytree(old, new)

    def swap_items(self) -> None:
        """Two items of a file change places."""
        file, parts, at = self.pick()
        if len(parts) > 2 and at < len(parts):
            other = self.chance.randrange(1, len(parts))
            parts[at], parts[other] = parts[other], parts[at]
            ended = (f"{part.rstrip()}\n\n" for part in parts[1:])
            file.write_text("".join([parts[0], *ended]))

    def swap_files(self) -> None:
        """Two files of one name change places."""
        name = self.chance.choice(["quiz.md", "cards.md"])
        files = [f for f in self.files if f.name == name]
        if len(files) > 1:
            one, other = self.chance.sample(files, 2)
            text = one.read_text()
            one.write_text(other.read_text())
            other.write_text(text)

    def swap_topics(self) -> None:
        syllabus = self.folder / "syllabus.toml"
        topics = re.sub(
            r'order = \["(.*)", "(.*)"\]', r'order = ["\2", "\1"]', syllabus.read_text()
        )
        syllabus.write_text(topics)

    def leave_conflict(self) -> None:
        """Two wordings of an item stand between the marks of a merge in Git."""

        def conflict(item: str) -> str:
            other = self._reworded(item)
            if self.chance.random() < 0.3:
                other = re.sub(r"q: ([a-z0-9-]+)", r"q: \1-new", other, count=1)
            return f"<<<<<<< HEAD\n{item.rstrip()}\n=======\n{other.rstrip()}\n>>>>>>> theirs\n\n"

        self._edit(conflict)

    def settle_conflict(self) -> None:
        """Keep one side of each conflict, or both."""
        keep = self.chance.choice([r"\1", r"\2", r"\1\2"])
        for file in self.files:
            text = re.sub(
                r"(?ms)^<<<<<<< HEAD\n(.*?)^=======\n(.*?)^>>>>>>> theirs\n",
                keep,
                file.read_text(),
            )
            file.write_text(text)

    def cut_item(self) -> None:
        """Delete an item, which may come back later."""
        file, parts, at = self.pick()
        if at < len(parts):
            self.deleted.append(parts.pop(at))
            file.write_text("".join(parts))

    def restore_item(self) -> None:
        """Put an item back that was deleted, mostly once."""
        if self.deleted:
            item = self.chance.choice(self.deleted)
            if self.chance.random() < 0.8:
                self.deleted.remove(item)
            self.put(item)

    def edit_lock(self) -> None:
        """A line of ids.lock gets lost, comes twice, or moves."""
        lock = self.folder / "ids.lock"
        lines = lock.read_text().splitlines(keepends=True) if lock.exists() else []
        if lines:
            at = self.chance.randrange(len(lines))
            line = lines.pop(at) if self.chance.random() < 0.7 else lines[at]
            if self.chance.random() < 0.5:
                lines.insert(self.chance.randrange(len(lines) + 1), line)
            lock.write_text("".join(lines))

    def delete_lock(self) -> None:
        (self.folder / "ids.lock").unlink(missing_ok=True)

    @property
    def locked(self) -> set[str]:
        """The ids that ids.lock knows: of others nobody can tell whose they were."""
        return {entry.id for entry in _parsed(self.folder, "ids.lock").lock_entries}

    def conflict_in_lock(self) -> None:
        """The marks of a merge in Git stand in ids.lock."""
        lock = self.folder / "ids.lock"
        lines = lock.read_text().splitlines(keepends=True) if lock.exists() else []
        if lines:
            at = self.chance.randrange(len(lines))
            lines[at : at + 1] = [
                "<<<<<<< HEAD\n",
                lines[at],
                "=======\n",
                lines[at],
                ">>>>>>> theirs\n",
            ]
            lock.write_text("".join(lines))

    def save(self) -> None:
        self.copies += [(file, file.read_text()) for file in self.files]

    def restore(self) -> None:
        """Put a file back as it was saved, in its place or in that of another."""
        if self.copies:
            file, text = self.chance.choice(self.copies)
            if file.parent.exists():
                file.write_text(text)

    def fix(self) -> None:
        """What is tested: it takes nothing away, and has nothing to do twice."""
        kept = self._unchanged()
        before = Counter(_without_ids(self._texts()))
        fix_course_files(self.folder, DAY)
        after = {f: f.read_bytes() for f in self.folder.rglob("*") if f.is_file()}

        assert Counter(_without_ids(self._texts())) == before
        for path, heading, name in kept:
            assert (heading, name) in _items(self.folder / path)
        assert fix_course_files(self.folder, DAY) == []
        assert after == {f: f.read_bytes() for f in after}

    def _edit(self, change: Callable[[str], str]) -> None:
        file, parts, at = self.pick()
        if at < len(parts):
            parts[at] = change(parts[at])
            file.write_text("".join(parts))

    def _reworded(self, item: str) -> str:
        old, new = self.chance.choice(
            [
                ("So it is.", "That is so, as can be seen."),
                ("of the", "of all the"),
                ("- [x] True\n- [ ]", "- [ ] True\n- [x]"),
                ("Which rock", "Which stone"),
                ("was once alive", "was never dead"),
                ("Of ", "Mostly of "),
                ("It is not.", "No, and it never was."),
            ]
        )
        return item.replace(old, new)

    def _folders(self) -> list[Path]:
        return sorted(self.folder.glob("topics/*/"))

    def _texts(self) -> list[str]:
        return [file.read_text() for file in self.files]

    def _unchanged(self) -> list[tuple[str, str, str]]:
        """Items that are as ids.lock has them, where it has them: they are originals.

        One with a twin of the same id and words in its file is told from it by nobody.
        """
        lock = _parsed(self.folder, "ids.lock").lock_entries
        found = []
        for entry in lock:
            file = self.folder / entry.path
            facts = _parsed(self.folder, entry.path).fingerprints if file.exists() else ()
            same = [
                fact
                for fact in facts
                if (fact.id, fact.heading_hash, fact.body_hash)
                == (entry.id, entry.heading_hash, entry.body_hash)
            ]
            if len(same) == 1:
                heading = file.read_text().split("\n")[same[0].line - 1]
                found.append((entry.path, heading, entry.id))
        return found


def _parsed(folder: Path, path: str) -> ParsedFile:
    file = folder / path
    return parse_file(file.read_text() if file.exists() else "", path)


def _items(file: Path) -> list[tuple[str, str]]:
    lines = file.read_text().split("\n")
    facts = parse_file(file.read_text(), f"topics/{file.parent.name}/{file.name}").fingerprints
    return [(lines[fact.line - 1], fact.id) for fact in facts]


def _without_ids(texts: list[str]) -> Iterator[str]:
    """The lines of files, but for ids and the comments that --fix writes."""
    for text in texts:
        for line in text.split("\n"):
            if (plain := _ID.sub(r"\1", line)) != "<!-- q:-->":
                yield plain.rstrip()


def marks_of(course: Course) -> dict[str, str]:
    """The mark of each item that learners are asked, by its id."""
    stems = {name: q.stem.plain for name, q in course.questions.items()}
    stems |= {c.id: c.front.plain for c in course.cards.values() if not c.is_reverse}
    marks = {name: _MARK.search(stem.lower()) for name, stem in stems.items()}
    return {name: mark[0] for name, mark in marks.items() if mark}


ACTIONS = sorted(
    name
    for name, value in vars(Author).items()
    if callable(value) and name[0] != "_" and name not in {"begin", "pick", "put"}
)


@settings(max_examples=8 if FACTOR == 1 else 80 * FACTOR)
@given(
    st.integers(0, 2**32),
    st.lists(st.sampled_from([*ACTIONS, "fix", "copy_beside"]), max_size=12),
    st.booleans(),
)
def test_the_history_of_a_question_never_comes_to_another_one(
    seed: int, actions: list[str], often: bool
) -> None:
    with tempfile.TemporaryDirectory() as place:
        author = Author(Path(place), random.Random(seed))  # noqa: S311 - a test
        author.fix()
        history = marks_of(load_course(author.folder))
        assert len(history) == 11
        if often:
            actions = [step for action in actions for step in (action, "fix")]

        for action in [*actions, "fix"]:
            locked = author.locked
            getattr(author, action)()
            if "lock" in action:
                lost = locked - author.locked
                history = {n: m for n, m in history.items() if n not in lost}
            now = marks_of(load_course(author.folder))
            assert {n: m for n, m in now.items() if history.get(n, m) != m} == {}
            if action == "fix":
                history = now | history
