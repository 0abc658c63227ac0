"""The files of a course as the exchange reads and writes them."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from app.content.live.cache import replace_file
from app.content.live.pictures import image_problem
from app.content.live.watched_files import WatchedFiles
from app.content.model import Topic
from app.content.parsed import ParsedFile, used_ids
from app.content.rules.bank import NO_SYLLABUS
from app.exchange.course.authored import read_authored
from app.exchange.course.intake import TargetTopic, TopicUpdate
from app.exchange.items import CourseInfo, ImportResult, Item, ItemRemark, UnusableFileError
from app.exchange.markup.pictures import digest, made, shown_in

_FILES = ("quiz.md", "cards.md")


def place_of(folder: Path, slug: str) -> TargetTopic:
    """A topic as it stands in a course; raises Unusable when there is none."""
    readings, _ = WatchedFiles(folder, None).read()
    page = readings.get(f"topics/{slug}/concept.md")
    if page is None or page.topic is None:
        known = ", ".join(sorted({p.split("/")[1] for p in readings if p.startswith("topics/")}))
        where = f"{folder.absolute().name} has"
        raise UnusableFileError(
            f"There is no topic “{slug}” with a concept.md; {where} {known or 'none'}."
        )
    topic, objectives, sources = page.topic, _objectives(readings), _sources(readings)
    if not topic.objectives or not topic.sources:
        raise UnusableFileError(f"The page of “{slug}” names no objective or no source.")
    return TargetTopic(
        slug,
        topic.title,
        {name: _text(folder / "topics" / slug / name) for name in _FILES},
        frozenset(used_ids(readings)),
        topic.objectives[0],
        topic.sources[0],
        objectives,
        sources,
        _digests(folder, slug),
    )


def _digests(folder: Path, slug: str) -> dict[str, str]:
    """The pictures of a topic by name, each with a digest of what it holds."""
    topic = folder / "topics" / slug
    names = (f.relative_to(topic).as_posix() for f in topic.rglob("*") if f.is_file())
    shown = (n for n in names if not image_problem(folder, f"topics/{slug}/{n}"))
    return {name: digest((topic / name).read_bytes()) for name in shown}


def with_pictures(folder: Path, item: Item) -> Item:
    """An item with the pictures that it shows, as they lie in its topic's `folder`."""
    course = folder.parent.parent
    sound = (
        name for name in shown_in(item) if not image_problem(course, f"topics/{folder.name}/{name}")
    )
    pictures = tuple(made(name, (folder / name).read_bytes()) for name in sound)
    return dataclasses.replace(item, pictures=pictures)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8-sig") if path.is_file() else ""


def _objectives(readings: Mapping[str, ParsedFile]) -> frozenset[str]:
    syllabus = readings["syllabus.toml"].syllabus if "syllabus.toml" in readings else None
    domains = syllabus.domains if syllabus else ()
    return frozenset(o.number for d in domains for o in d.objectives)


def _sources(readings: Mapping[str, ParsedFile]) -> frozenset[str]:
    return frozenset(s.key for r in readings.values() for s in r.sources)


def write_files(folder: Path, slug: str, taken: TopicUpdate) -> None:
    """Replace files of a topic, each at once, so that no reader sees half of one.

    Pictures come first, for no page may name one that is not there.
    """
    texts = {name: text.encode() for name, text in taken.files.items()}
    for name, content in {**taken.pictures, **texts}.items():
        path = folder / "topics" / slug / name
        path.parent.mkdir(exist_ok=True)
        replace_file(path, content)


def about(folder: Path) -> CourseInfo:
    """What a course says of itself; one without a name has that of its folder."""
    readings, _ = WatchedFiles(folder, None).read()
    read = readings["syllabus.toml"].syllabus if "syllabus.toml" in readings else None
    syllabus = read or NO_SYLLABUS
    return CourseInfo(syllabus.exam or folder.resolve().name, syllabus.language)


def items_of(folder: Path, slug: str, seed: int) -> ImportResult:
    """Every sound item of a course, or of one topic, in authored order.

    What learners do not see yet is in `waiting`, whatever else is true of it.
    """
    readings, _ = WatchedFiles(folder, None).read()
    items: list[Item] = []
    waiting: list[Item] = []
    refused: list[ItemRemark] = []
    wanted = [p for p in readings if p.startswith(f"topics/{slug}/" if slug else "topics/")]
    if slug and not wanted:
        where = folder.absolute().name
        raise UnusableFileError(f"There is no topic “{slug}” in {where}.")
    for path in wanted:
        topic = path.split("/")[1]
        page = readings.get(f"topics/{topic}/concept.md")
        live = _live(readings[path], page.topic if page else None)
        found = read_authored(_text(folder / path), path, seed)
        for item in found.items:
            if item.name in live:
                there = with_pictures(folder / "topics" / topic, item)
                whole = dataclasses.replace(there, topic=topic)
                (items if live[item.name] else waiting).append(whole)
        refused += (r for r in found.refused if live.get(r.name, True))
    return ImportResult(tuple(items), tuple(refused), tuple(waiting))


def _live(reading: ParsedFile, page: Topic | None) -> dict[str, bool]:
    """The sound items of a file, and whether learners see them: with their page."""
    open_page = page is None or page.status == "live"
    questions = {q.id: open_page and q.status == "live" for q in reading.questions}
    cards = {c.id: open_page and c.status == "live" for c in reading.cards}
    return questions | cards
