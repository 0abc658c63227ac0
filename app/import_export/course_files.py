"""Read the items of a course, and add imported items to a topic."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from app.content.course_rules import EMPTY_SYLLABUS
from app.content.file_reader import parse_file
from app.content.file_watcher import CachingCourseFileParser
from app.content.link_and_picture_rules import explain_unshowable_image
from app.content.parse_cache import replace_file_atomically
from app.content.parsed_file import ParsedFile, list_used_ids
from app.import_export import UnusableFileError
from app.import_export.course_markdown import (
    choose_unused_item_id,
    ensure_heading_paragraph,
    read_items_of_course_file,
    write_item_as_markdown,
)
from app.import_export.html_to_markdown import join_into_one_line
from app.import_export.items import (
    CourseInfo,
    ImportResult,
    Item,
    ItemRemark,
    NumberRange,
    compute_image_digest,
    decode_image_or_empty,
    encode_image,
    list_shown_picture_names,
    make_image_name_or_empty,
    make_item_label,
    rename_or_drop_images,
)
from app.markup.model import Syllabus, Topic

_REASON_FOR_SHARED_RIGHT_SIDE = "It goes with more than one."
_ALREADY_IN_TOPIC = "the topic has this question already"
_FORBIDDEN_IN_BLANK = "|?[]\n"


@dataclasses.dataclass(frozen=True, slots=True)
class TargetTopic:
    """A topic in its current state, and what its items may refer to.

    `text_by_file_name` maps quiz.md and cards.md to their text (empty if missing).
    """

    slug: str
    title: str
    text_by_file_name: Mapping[str, str]
    used_ids: frozenset[str]
    default_objective: str
    default_source: str
    course_objectives: frozenset[str]
    course_sources: frozenset[str]
    name_by_picture_digest: Mapping[str, str]


class AddedItem(NamedTuple):
    item_id: str
    item: Item


@dataclasses.dataclass(frozen=True, slots=True)
class TopicUpdate:
    """The new text of the changed files, the new pictures, and a report."""

    changed_text_by_file_name: Mapping[str, str]
    picture_by_name: Mapping[str, bytes]
    added_items: tuple[AddedItem, ...]
    refused_items: tuple[ItemRemark, ...]
    losses: tuple[ItemRemark, ...]


def build_topic_update(import_result: ImportResult, target_topic: TargetTopic) -> TopicUpdate:
    """Add the items of an import to a topic; existing text is not changed.

    An item is refused if it already is in the topic, if the course check would refuse it, or if its
    Markdown would be parsed as something else.
    """
    texts = {
        name: _add_front_matter_if_empty(name, text, target_topic)
        for name, text in target_topic.text_by_file_name.items()
    }
    ids = set(target_topic.used_ids)
    known_keys = {
        _build_comparison_key(rename_or_drop_images(item, target_topic.name_by_picture_digest))
        for name, text in target_topic.text_by_file_name.items()
        for item in read_items_of_course_file(text, f"topics/{target_topic.slug}/{name}").items
    }
    added: list[AddedItem] = []
    refused = list(import_result.refused_items)
    item_remarks: list[ItemRemark] = []
    changed: set[str] = set()
    pictures: dict[str, bytes] = {}
    for raw in import_result.items:
        item, new_pictures = _extract_shown_pictures_with_unique_names(
            _fit_item_to_topic(raw, target_topic)
        )
        file = "cards.md" if item.kind == "card" else "quiz.md"
        name = choose_unused_item_id(item, ids)
        digests = {
            picture: compute_image_digest(content) for picture, content in new_pictures.items()
        }
        key = _build_comparison_key(rename_or_drop_images(_fill_in_first_variant(item), digests))
        reason = (
            _ALREADY_IN_TOPIC
            if key in known_keys
            else _explain_refusal(item, name, file, target_topic)
        )
        if reason:
            refused.append(ItemRemark(make_item_label(raw), raw.line, reason))
            continue
        ids.add(name)
        known_keys.add(key)
        texts[file] = f"{texts[file].rstrip()}\n\n{write_item_as_markdown(item, name)}"
        added.append(AddedItem(name, item))
        item_remarks += (ItemRemark(make_item_label(raw), raw.line, loss) for loss in item.lost)
        changed.add(file)
        pictures |= new_pictures
    files = {name: texts[name] for name in sorted(changed)}
    return TopicUpdate(files, pictures, tuple(added), tuple(refused), tuple(item_remarks))


def _fill_in_first_variant(item: Item) -> Item:
    """Return a computed item with the numbers of its first variant, as the course has it."""
    if not item.params:
        return item
    text = f"---\ntitle: T\n---\n\n{write_item_as_markdown(item, 'q')}"
    return next(iter(read_items_of_course_file(text, "topics/t/quiz.md").items), item)


def _add_front_matter_if_empty(file_name: str, current_text: str, target_topic: TargetTopic) -> str:
    """Return the file to append to, or new front matter."""
    if current_text.strip():
        return current_text
    noun = "cards" if file_name == "cards.md" else "questions"
    title = f"{target_topic.title}: {noun}".replace('"', "'").replace("\\", "/")
    return f'---\ntitle: "{title}"\nobjective: {target_topic.default_objective}\nsource: {target_topic.default_source}\n---\n'


def _fit_item_to_topic(item: Item, target_topic: TargetTopic) -> Item:
    """Return the item with only the objectives and sources that the course has."""
    objectives = tuple(o for o in item.objectives if o in target_topic.course_objectives)
    sources = tuple(s for s in item.sources if s in target_topic.course_sources)
    unknown = {*item.objectives, *item.sources} - {*objectives, *sources}
    if unknown:
        item = _add_loss_to_item(item, f"unknown here: {', '.join(sorted(unknown))}")
    # The file names its own ones for all of its items.
    objectives = () if objectives == (target_topic.default_objective,) else objectives
    sources = () if sources == (target_topic.default_source,) else sources
    adapted = dataclasses.replace(item, objectives=objectives, sources=sources)
    return _give_reason_for_shared_right_sides(ensure_heading_paragraph(adapted))


def _add_loss_to_item(item: Item, loss: str) -> Item:
    return dataclasses.replace(item, lost=(*item.lost, loss))


def _extract_shown_pictures_with_unique_names(item: Item) -> tuple[Item, dict[str, bytes]]:
    """Return the item with unique picture names, and the bytes of its pictures by name."""
    contents = {p.name: decode_image_or_empty(p) for p in item.pictures}
    names = {name: make_image_name_or_empty(content, name) for name, content in contents.items()}
    for name in list_shown_picture_names(item):
        if not names.get(name):
            item = _add_loss_to_item(item, f"the picture {name} is left out: it is not in the file")
    shown_pictures = {names[n]: contents[n] for n in list_shown_picture_names(item) if names.get(n)}
    return rename_or_drop_images(item, names), shown_pictures


def _give_reason_for_shared_right_sides(item: Item) -> Item:
    """Mark equal right sides as intended, which other formats do not require."""
    rights = [p.right for p in item.pairs if p.left]
    pairs = tuple(
        dataclasses.replace(p, why=p.why or _REASON_FOR_SHARED_RIGHT_SIDE)
        if rights.count(p.right) > 1
        else p
        for p in item.pairs
    )
    return dataclasses.replace(item, pairs=pairs)


def _explain_refusal(item: Item, item_id: str, file_name: str, target_topic: TargetTopic) -> str:
    """Return why an item cannot be added to a file of the topic; empty if it can."""
    answers = [word for b in item.blanks for word in (*b.answers, *b.wrong)]
    if any(set(w) & set(_FORBIDDEN_IN_BLANK) or "~" in w.split() for w in answers):
        return "the answer of a gap holds one of | ? [ ] ~"
    path = f"topics/{target_topic.slug}/{file_name}"
    source = f"{_add_front_matter_if_empty(file_name, '', target_topic)}\n{write_item_as_markdown(item, item_id)}"
    parsed = parse_file(source, path)
    problems = [p for p in parsed.problems if p.severity == "error"]
    if problems:
        return f"{problems[0].message} [{problems[0].code}]"
    parsed_again = read_items_of_course_file(source, path).items
    if item.params:  # it is read as one of its variants
        return ""
    if len(parsed_again) != 1 or _build_comparison_key(parsed_again[0]) != _build_comparison_key(
        item
    ):
        return "its text cannot be written so that it reads the same"
    return ""


def _build_comparison_key(item: Item) -> object:
    """Return a key that is equal for items with the same content."""

    def one_line(text: str) -> str:
        return _normalize_whitespace(join_into_one_line(text))

    def range_key(span: NumberRange | None) -> tuple[str, ...]:
        return (f"{span.center:.9g}", f"{span.tolerance:.6g}", span.unit) if span else ()

    return (
        item.kind,
        _normalize_whitespace(item.stem),
        tuple((one_line(o.text), o.right, range_key(o.span)) for o in item.options),
        tuple(one_line(s.text) for s in item.steps),
        tuple((one_line(p.left), one_line(p.right)) for p in item.pairs),
        _normalize_whitespace(item.text),
        tuple((b.answers, b.wrong) for b in item.blanks),
    )


def _normalize_whitespace(text: str) -> str:
    plain = text.replace("<br>", " ").replace("\\\n", " ").replace("\\{", "{")
    return " ".join(plain.split())


def _parse_course(folder: Path) -> dict[str, ParsedFile]:
    return CachingCourseFileParser(folder, None).parse_current_files().parsed_files


def _find_syllabus_or_empty(parsed_files: Mapping[str, ParsedFile]) -> Syllabus:
    file = parsed_files.get("syllabus.toml")
    return (file.syllabus if file else None) or EMPTY_SYLLABUS


def list_slugs_of_topics_with_page(course_folder: Path) -> frozenset[str]:
    parsed_files = _parse_course(course_folder).items()
    return frozenset(path.split("/")[1] for path, parsed in parsed_files if parsed.topic)


def read_target_topic(course_folder: Path, topic_slug: str) -> TargetTopic:
    """Return a topic of a course; raises UnusableFileError if there is none."""
    parsed_files = _parse_course(course_folder)
    page = parsed_files.get(f"topics/{topic_slug}/concept.md")
    if page is None or page.topic is None:
        known_slugs = {p.split("/")[1] for p in parsed_files if p.startswith("topics/")}
        raise UnusableFileError(
            f"There is no topic “{topic_slug}” with a concept.md; {course_folder.absolute().name} has "
            f"{', '.join(sorted(known_slugs)) or 'none'}."
        )
    topic = page.topic
    if not topic.objectives or not topic.sources:
        raise UnusableFileError(f"The page of “{topic_slug}” names no objective or no source.")
    return TargetTopic(
        topic_slug,
        topic.title,
        {n: _read_text(course_folder / "topics" / topic_slug / n) for n in ("quiz.md", "cards.md")},
        frozenset(list_used_ids(parsed_files)),
        topic.objectives[0],
        topic.sources[0],
        frozenset(
            o.number for d in _find_syllabus_or_empty(parsed_files).domains for o in d.objectives
        ),
        frozenset(s.key for parsed in parsed_files.values() for s in parsed.cited_sources),
        _map_picture_digests_to_names(course_folder, topic_slug),
    )


def _map_picture_digests_to_names(course_folder: Path, topic_slug: str) -> dict[str, str]:
    topic = course_folder / "topics" / topic_slug
    names = (f.relative_to(topic).as_posix() for f in topic.rglob("*") if f.is_file())
    pictures = (
        n for n in names if not explain_unshowable_image(course_folder, f"topics/{topic_slug}/{n}")
    )
    return {name: compute_image_digest((topic / name).read_bytes()) for name in pictures}


def load_shown_pictures_into_item(topic_folder: Path, item: Item) -> Item:
    course_folder = topic_folder.parent.parent
    usable_names = (
        name
        for name in list_shown_picture_names(item)
        if not explain_unshowable_image(course_folder, f"topics/{topic_folder.name}/{name}")
    )
    pictures = tuple(
        encode_image(name, (topic_folder / name).read_bytes()) for name in usable_names
    )
    return dataclasses.replace(item, pictures=pictures)


def _read_text(path: Path) -> str:
    return path.read_text(encoding="utf-8-sig") if path.is_file() else ""


def write_topic_update(course_folder: Path, topic_slug: str, update: TopicUpdate) -> None:
    """Replace files of a topic atomically, so that no reader sees half of one.

    Pictures come first, so that no page refers to a missing one.
    """
    texts = {name: text.encode() for name, text in update.changed_text_by_file_name.items()}
    for name, content in {**update.picture_by_name, **texts}.items():
        path = course_folder / "topics" / topic_slug / name
        path.parent.mkdir(exist_ok=True)
        replace_file_atomically(path, content)


def read_course_info(course_folder: Path) -> CourseInfo:
    """Return the title and language of a course; the title defaults to its folder name."""
    syllabus = _find_syllabus_or_empty(_parse_course(course_folder))
    return CourseInfo(syllabus.exam or course_folder.resolve().name, syllabus.language)


def read_items_for_export(course_folder: Path, only_topic_slug: str, seed: int) -> ImportResult:
    """Return every valid item of a course or of one topic, in authored order."""
    parsed_files = _parse_course(course_folder)
    items: list[Item] = []
    not_live: list[Item] = []
    refused: list[ItemRemark] = []
    prefix = f"topics/{only_topic_slug}/" if only_topic_slug else "topics/"
    paths = [path for path in parsed_files if path.startswith(prefix)]
    if only_topic_slug and not paths:
        raise UnusableFileError(
            f"There is no topic “{only_topic_slug}” in {course_folder.absolute().name}."
        )
    for path in paths:
        topic = path.split("/")[1]
        page = parsed_files.get(f"topics/{topic}/concept.md")
        live = _map_item_ids_to_liveness(parsed_files[path], page.topic if page else None)
        result = read_items_of_course_file(_read_text(course_folder / path), path, seed)
        for item in result.items:
            if item.name in live:
                with_pictures = load_shown_pictures_into_item(
                    course_folder / "topics" / topic, item
                )
                complete = dataclasses.replace(with_pictures, topic=topic)
                (items if live[item.name] else not_live).append(complete)
        refused += (r for r in result.refused_items if live.get(r.item_name, True))
    return ImportResult(tuple(items), tuple(refused), tuple(not_live))


def _map_item_ids_to_liveness(file: ParsedFile, page: Topic | None) -> dict[str, bool]:
    """Return the valid items of a file, and whether they are live together with their page."""
    open_page = page is None or page.status == "live"
    questions = {q.id: open_page and q.status == "live" for q in file.questions}
    cards = {c.id: open_page and c.status == "live" for c in file.cards}
    return questions | cards
