"""Rules over all files: identity, references, coverage; pure."""

import dataclasses
import datetime as dt
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping

from app.content.identity import closest_word, did_you_mean, normalize_text
from app.content.model import Syllabus
from app.content.parsed import ItemFingerprint, LockEntry, ParsedFile
from app.content.problems import ContentProblem, make_problem
from app.content.rules.drawings import check_drawing
from app.content.rules.id_owners import Owners, find_owners
from app.content.rules.links import check_link, check_picture, check_related
from app.content.source_file import CrossReference
from app.questions.model import Question

_STALE = dt.timedelta(days=365)
NO_SYLLABUS = Syllabus("", "", (), ())
_SAME = 0.9
_MOST_COMPARED = 500  # stems that share a rare word with another
_MOST_HINTS = 100  # unknown words for which the nearest known one is looked for


@dataclasses.dataclass(frozen=True, slots=True)
class ParsedCourse:
    """All files of a course, and the day on which it is looked at.

    `files` are the pictures that pages show, each with what is wrong with it.
    """

    readings: Mapping[str, ParsedFile]
    today: dt.date
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def syllabus(self) -> Syllabus:
        """The syllabus, or an empty one."""
        reading = self.readings.get("syllabus.toml")
        return (reading.syllabus if reading else None) or NO_SYLLABUS

    def objectives(self) -> set[str]:
        """The numbers of all objectives."""
        return {o.number for d in self.syllabus.domains for o in d.objectives}

    def source_keys(self) -> set[str]:
        """The keys of the bibliography."""
        return {s.key for r in self.readings.values() for s in r.sources}

    def is_sound(self, path: str) -> bool:
        """Whether a file is there and could be read."""
        reading = self.readings.get(path)
        return reading is not None and not any(
            p.code in {"E00", "E10", "E11"} for p in reading.problems
        )

    def is_known(self, paths: Iterable[str]) -> bool:
        """Whether one of the files is there, and each that is could be read."""
        there = [path for path in paths if path in self.readings]
        return bool(there) and all(map(self.is_sound, there))

    def renamed(self) -> dict[str, str]:
        """Topics of the order without a folder, with the one that may be them now."""
        order = self.syllabus.topics
        folders = {p.split("/")[1] for p in self.readings if p.startswith("topics/")}
        absent = [slug for slug in order if slug not in folders]
        pages = [r.topic.slug for r in self.readings.values() if r.topic]
        others = [slug for slug in pages if slug not in order]
        if len(absent) == len(others) == 1:
            return {absent[0]: others[0]}
        pairs = {slug: closest_word(slug, others) for slug in absent}
        return {slug: near for slug, near in pairs.items() if near}

    def in_order(self) -> list[tuple[str, ParsedFile]]:
        """The files, those of topics that the syllabus does not name at the end.

        Of two topics with the same items the named one has them: the other is a copy,
        whatever comes first in the alphabet.
        """
        named = set(self.syllabus.topics)
        return sorted(
            self.readings.items(),
            key=lambda file: file[0].startswith("topics/") and file[0].split("/")[1] not in named,
        )

    def facts(self) -> list[tuple[str, ItemFingerprint]]:
        """Every item with the path of its file, originals before their copies."""
        return [(p, f) for p, r in self.in_order() for f in r.facts]


def owners_of(bank: ParsedCourse, accepted: Collection[str] = ()) -> Owners:
    """The item that each id belongs to; see `find_owners`."""
    return find_owners(bank.facts(), bank.readings, accepted)


def locked_keys(entry: LockEntry, fact: ItemFingerprint) -> dict[str, str]:
    """New option keys to the keys under which their answers were counted before.

    An option with the words of before keeps its key; the others follow in order.
    """
    if entry.type != fact.type:
        return {}
    left = list(entry.options)
    fresh: list[str] = []
    pairs: dict[str, str] = {}
    for key, digest in fact.options:
        same = next((o for o in left if o[1] == digest), None)
        if same:
            left.remove(same)
            pairs[key] = same[0]
        else:
            fresh.append(key)
    taken = {k for k, _ in fact.options if k not in fresh} | set(pairs.values())
    for key, (old, _) in zip(fresh, left, strict=False):
        if old not in taken:
            pairs[key] = old
    return {new: old for new, old in pairs.items() if new != old}


# Where nothing can be looked up, nothing is reported as unknown.
_REGISTERS = {
    "objective": ("syllabus.toml",),
    "source": ("sources.toml", "shared/sources.toml"),
}


def check_mentions(bank: ParsedCourse) -> list[ContentProblem]:
    """E14, E86, E61, W95 and those of drawings: what other files must know."""
    known: dict[str, set[str]] = {
        "objective": bank.objectives(),
        "source": bank.source_keys(),
        "topic": {r.topic.slug for r in bank.readings.values() if r.topic},
    }
    unread = {kind for kind, files in _REGISTERS.items() if not bank.is_known(files)}
    hints: dict[tuple[str, str], str] = {}
    renamed = bank.renamed()
    found: list[ContentProblem] = []
    for path, reading in bank.readings.items():
        for mention in reading.mentions:
            if mention.kind in unread:
                continue
            if mention.kind not in known:
                found += _beyond(path, mention, bank)
            elif mention.value not in known[mention.kind]:
                words = known[mention.kind]
                hint = _moved(path, mention, renamed) or _hint(mention, words, hints)
                found.append(_unknown(path, mention, hint))
    return found


def _moved(path: str, mention: CrossReference, renamed: Mapping[str, str]) -> str:
    """What to do where the folder of a topic seems to have another name now."""
    now = renamed.get(mention.value, "") if mention.kind == "topic" else ""
    if now and path == "syllabus.toml":
        hint = f'If its folder is “{now}” now, write "{now}" in its place in order; '
        return f"{hint}else take the name out."
    return f"Did you mean “{now}”?" if now else ""


def _beyond(path: str, mention: CrossReference, bank: ParsedCourse) -> Iterable[ContentProblem]:
    """What is wrong with a word that stands in no register."""
    if mention.kind == "day":
        yield from _ahead(path, mention, bank.today)
    elif mention.kind == "calculator":
        yield from _switched_off(path, mention, bank)
    elif mention.kind == "file":
        yield from check_picture(path, mention, bank.files)
    elif mention.kind in {"drawing", "picture"}:
        yield from check_drawing(path, mention, bank.readings)
    elif mention.kind == "term":
        yield from check_related(path, mention, bank.readings)
    else:
        yield from check_link(path, mention, bank.readings)


def _switched_off(
    path: str, mention: CrossReference, bank: ParsedCourse
) -> Iterable[ContentProblem]:
    """W95: what leads to a calculator in a course that offers none."""
    if not bank.syllabus.calculators:
        message = f"This needs the calculator “{mention.value}”, and the course has none."
        hint = "Take it out, or take calculators = false out of syllabus.toml."
        place = (path, mention.line, mention.column)
        yield make_problem(place, "W95", message, hint, mention.item)


def _hint(mention: CrossReference, known: set[str], hints: dict[tuple[str, str], str]) -> str:
    """The nearest known word; none for the last of very many unknown ones."""
    word = (mention.kind, mention.value)
    if word not in hints and len(hints) < _MOST_HINTS:
        hints[word] = did_you_mean(mention.value, known)
    return hints.get(word, "")


def _unknown(path: str, mention: CrossReference, hint: str) -> ContentProblem:
    code, where = {
        "objective": ("E14", "an objective of syllabus.toml"),
        "source": ("E86", "a key of sources.toml"),
        "topic": ("E61", "a topic of this course"),
    }[mention.kind]
    if "," in mention.value:
        hint = f"Write several as a list: [{mention.value[:60]}]."
    place = (path, mention.line, mention.column)
    message = f"“{mention.value}” is not {where}."
    return make_problem(place, code, message, hint, mention.item)


def _ahead(path: str, mention: CrossReference, today: dt.date) -> Iterable[ContentProblem]:
    """E13: nobody has read a page in the future; tomorrow it may be elsewhere."""
    if dt.date.fromisoformat(mention.value) > today + dt.timedelta(days=1):
        message = f"“{mention.value}” lies in the future."
        hint = "Write the day on which the page was read last."
        yield make_problem((path, mention.line, mention.column), "E13", message, hint)


def check_dates(bank: ParsedCourse) -> list[ContentProblem]:
    """W18: pages and sources that nobody has read again for a year."""
    found = []
    for path, reading in bank.readings.items():
        topic = reading.topic
        if topic and topic.reviewed and bank.today - topic.reviewed > _STALE:
            message = f"The page was last reviewed on {topic.reviewed}."
            hint = "Read it again and write the date of today."
            found.append(make_problem((path, 1, 1), "W18", message, hint))
        for source in reading.sources:
            if source.read and bank.today - source.read > _STALE:
                message = f"The source “{source.key}” was last read on {source.read}."
                hint = "See whether it still says so, and write the date of today."
                line = dict(reading.entries).get(source.key, 1)
                found.append(make_problem((path, line, 1), "W18", message, hint))
    return found


def check_stems(bank: ParsedCourse, questions: Mapping[str, Question]) -> list[ContentProblem]:
    """W72: two questions whose stems say nearly the same, numbers included."""
    stems = [
        (path, fact, frozenset(normalize_text(questions[fact.id].stem.plain).split()))
        for path, fact in bank.facts()
        if fact.id in questions and fact.asks
    ]
    common = Counter(word for _, _, words in stems for word in words)
    found = []
    known: dict[str, list[tuple[str, frozenset[str]]]] = defaultdict(list)
    for path, fact, words in stems:
        # Who shares nearly all words shares one of the few that are the rarest.
        rarest = sorted(words, key=lambda word: (common[word], word))
        rarest = rarest[: len(words) - math.ceil(_SAME * len(words)) + 1]
        near = (pair for word in rarest for pair in known[word])
        some = itertools.islice(near, _MOST_COMPARED)
        other = next((i for i, w in some if i != fact.id and _same(words, w)), "")
        if other:
            where = questions[other].place
            message = f"The stem nearly repeats “{other}” in {where.path}:{where.line}."
            hint = "Ask something else, or delete one."
            place = (path, fact.line, fact.column)
            found.append(make_problem(place, "W72", message, hint, fact.id))
        for word in rarest:
            known[word].append((fact.id, words))
    return found


def _same(words: frozenset[str], others: frozenset[str]) -> bool:
    """Whether two stems share nearly all words and all numbers and signs."""
    different = words ^ others
    if len(different) > (1 - _SAME) * len(words | others):
        return False
    return not any(len(w) < 3 or any(c.isdigit() for c in w) for w in different)
