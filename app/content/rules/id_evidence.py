"""What tells which item had an id first: ids.lock and the words of items. Pure."""

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from app.content.identity import jaccard_similarity
from app.content.parsed import ItemFingerprint, LockEntry, ParsedFile

LOCK = "ids.lock"
COPIED = 0.6  # from this likeness on an item says the same in other words
CLEAR = 0.5  # by how much more than another an item resembles a line of ids.lock
_REPLACED = 0.3  # below this likeness an item says something quite different
_SLIGHT = 0.2  # a difference of two fingerprints by chance
_FEW = 5  # lines of ids.lock with the same heading, or body, which still tell something
_RARE = 100  # lines of ids.lock that have a word in their fingerprint
_MOST_COMPARED = 20  # fingerprints with that of one item
# What keeps items from being seen at all; that they are gone would be said in vain.
_HIDING = frozenset({"E00", "E01", "E02", "E03", "E10", "E11", "E12", "E75", "E88"})


class ItemWords(Protocol):
    """The words of an item as hashes: see `ItemFingerprint` and `Unidentified`."""

    @property
    def sketch(self) -> tuple[int, ...]: ...
    @property
    def full_sketch(self) -> tuple[int, ...]: ...
    @property
    def heading(self) -> str: ...
    @property
    def body(self) -> str: ...


@dataclasses.dataclass(frozen=True, slots=True)
class Claim:
    """An item with the id that its comment says."""

    path: str
    fact: ItemFingerprint

    @property
    def place(self) -> tuple[str, int, int]:
        """Its file, line and column."""
        return self.path, self.fact.line, self.fact.column

    @property
    def where(self) -> str:
        """Its place in words."""
        return f"{self.path}:{self.fact.line}"


class IdEvidence:
    """What a course and its ids.lock tell of who had an id first."""

    def __init__(
        self, claims: Mapping[str, list[Claim]], readings: Mapping[str, ParsedFile]
    ) -> None:
        lock = readings.get(LOCK)
        self.claims = claims
        self.readings = readings
        self.entries = {entry.id: entry for entry in (lock.lock if lock else ())}
        self.has_lock = lock is not None and not lock.problems
        self.whole = not any(_hides_items(r) for r in readings.values())
        self.broken: dict[str, str] = {}
        for path, reading in readings.items():
            for name, line in reading.claims:
                self.broken.setdefault(name, f"{path}:{line}")
        self.gone = {
            name: entry
            for name, entry in self.entries.items()
            if not (entry.retired or name in claims or name in self.broken)
        }
        self.found: set[str] = set()  # of what is gone, that which stands elsewhere
        self._alike: dict[str, list[LockEntry]] = defaultdict(list)
        for entry in self.entries.values():
            if entry.heading:
                self._alike[f"#{entry.heading}"].append(entry)
            if entry.body:
                self._alike[entry.body].append(entry)
        self._sampled: dict[int, list[str]] = defaultdict(list)
        for entry in self.entries.values():
            for number in entry.sketch:
                self._sampled[number].append(entry.id)

    def is_named(self, path: str) -> bool:
        """Whether the syllabus names the topic of a file."""
        reading = self.readings.get("syllabus.toml")
        topics = reading.syllabus.topics if reading and reading.syllabus else ()
        return path.startswith("topics/") and path.split("/")[1] in topics

    def resemblance(self, entry: LockEntry, words: ItemWords) -> float:
        """How much of an item is as a line of ids.lock has it, from 0 to 3."""
        same = entry.heading == words.heading != "", entry.body == words.body != ""
        return _likeness(entry, words) + sum(same)

    def is_replaced(self, entry: LockEntry, words: ItemWords) -> bool:
        """Whether an item says something quite different than its line."""
        if entry in self._with_same(words):
            return False
        return bool(entry.sketch) and _likeness(entry, words) < _REPLACED

    def rival(self, own: LockEntry, words: ItemWords) -> LockEntry | None:
        """Another line of ids.lock that an item resembles clearly more than its own."""
        if (own.heading, own.body) == (words.heading, words.body):
            return None
        like = _likeness(own, words)
        others = self._partly_same(words)
        if like < COPIED:
            others += self._like(words, self.entries)
        best = self._nearest([e for e in others if e.id != own.id], words)
        if best is None:
            return None
        # The same first line tells more than the same answers, such as True and False.
        least = like - _SLIGHT if best.heading == words.heading else like
        if _likeness(best, words) <= least:
            return None
        lead = self.resemblance(best, words) - self.resemblance(own, words)
        return best if lead >= CLEAR else None

    def lost(self, words: ItemWords, named: Collection[str] = ()) -> LockEntry | None:
        """The line of an id that is gone, and whose item this seems to be."""
        said = [self.gone[name] for name in named if name in self.gone]
        others = [e for e in self._partly_same(words) if e.id in self.gone]
        return self._nearest(said or others + self._like(words, self.gone), words)

    def nearest_gone(self, words: ItemWords) -> LockEntry | None:
        """Of the lines whose ids are gone the one that an item resembles most."""
        return self._nearest([*self.gone.values()], words)

    def _nearest(self, found: Sequence[LockEntry], words: ItemWords) -> LockEntry | None:
        return max(found, key=lambda e: self.resemblance(e, words), default=None)

    def _with_same(self, words: ItemWords) -> list[LockEntry]:
        """The lines with its heading or its body, where they are few."""
        found = []
        for text in (f"#{words.heading}", words.body):
            same = self._alike.get(text, [])
            found += same if len(same) <= _FEW else []
        return found

    def _partly_same(self, words: ItemWords) -> list[LockEntry]:
        """Those of them that are not wholly different otherwise."""
        same = self._with_same(words)
        return [e for e in same if _likeness(e, words) >= _REPLACED]

    def _like(self, words: ItemWords, among: Mapping[str, LockEntry]) -> list[LockEntry]:
        """Those of some lines that say the same in other words; of many a few."""
        sampled = {*words.sketch, *words.full_sketch}
        rare = (self._sampled.get(number, ()) for number in sampled)
        shared = Counter(name for names in rare if len(names) <= _RARE for name in names)
        near = [among[name] for name, _ in shared.most_common() if name in among]
        return [e for e in near[:_MOST_COMPARED] if _likeness(e, words) >= COPIED]


def _likeness(entry: LockEntry, words: ItemWords) -> float:
    """How much an item shares with a line of ids.lock, from 0 to 1."""
    like = jaccard_similarity(entry.sketch, words.sketch)
    if entry.heading or entry.body:
        return like
    return max(like, jaccard_similarity(entry.sketch, words.full_sketch))  # an older line


def _hides_items(reading: ParsedFile) -> bool:
    """Whether a file was not read to the end, so that nobody knows what is gone."""
    return any(p.code in _HIDING and not p.item for p in reading.problems)
