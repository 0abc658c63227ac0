"""The commands `import` and `export`."""

import argparse
import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlmodel import Session

from app.cli import CommandError
from app.cli.content import find_course_folder, find_course_name_on_server, raise_if_packaged_course
from app.cli.database import read_settings
from app.content.check import format_count_noun
from app.database.engine import make_engine, redact_passwords_in_message, redact_passwords_of_url
from app.import_export import UnusableFileError
from app.import_export.course_files import (
    TopicUpdate,
    build_topic_update,
    list_slugs_of_topics_with_page,
    read_course_info,
    read_items_for_export,
    read_target_topic,
    write_topic_update,
)
from app.import_export.export_store import COLUMNS, iterate_attempt_rows
from app.import_export.formats import (
    ATTEMPT_FORMATS,
    CARD_ONLY_FORMATS,
    EXPECTED_FILE_BY_FORMAT,
    FORMATS_WITH_ALL_FIELDS,
    READERS,
    WRITERS,
)
from app.import_export.formats.csv_json import write_csv_table
from app.import_export.items import (
    ImportResult,
    Item,
    ItemRemark,
    list_recorded_losses,
    make_item_label,
)
from app.import_export.markdown_to_html import escape_placeholder_braces_in_item
from app.import_export.xml_files import MAX_XML_BYTES

_MAX_REMARKS_SHOWN = 4


def run_import_or_export_command(options: argparse.Namespace) -> int:
    """Run `headroom import` or `headroom export`, and print the report."""
    folder = options.content or find_course_folder(options.course)
    if options.command == "import" and not options.dry_run:
        raise_if_packaged_course(folder)
    path: Path = options.file
    if not folder.is_dir():
        raise CommandError(f"{folder} is not a folder; name the course with --content.")
    try:
        if options.command == "import":
            report = import_file(
                options.format, path, folder, options.topic, dry_run=options.dry_run
            )
        elif options.format in ATTEMPT_FORMATS:
            database = read_settings().database_url_or_default
            report = export_attempts(
                options.format, path, database, find_course_name_on_server(folder)
            )
        else:
            report = export_items(options.format, path, folder, options.topic, options.seed)
    except UnusableFileError as error:
        raise CommandError(str(error)) from None
    print(report, file=sys.stderr if str(path) == "-" else sys.stdout)
    return 0


def import_file(
    file_format: str, path: Path, folder: Path, topic_slug_or_empty: str, *, dry_run: bool = False
) -> str:
    """Import `path` into the course in `folder`; returns the report.

    Without a `topic_slug_or_empty`, each item goes into its own, and one that names none is refused. With `dry_run`,
    nothing is written and the report says what would be. Raises UnusableFileError and writes
    nothing if the file or the topic cannot be used.
    """
    target = read_target_topic(folder, topic_slug_or_empty) if topic_slug_or_empty else None
    content = _read_import_file(path)
    try:
        result = READERS[file_format](content)
    except UnusableFileError as error:
        expected = EXPECTED_FILE_BY_FORMAT[file_format]
        raise UnusableFileError(
            f"{path} cannot be used. {error} {expected[0].upper()}{expected[1:]} is needed."
        ) from None
    if (
        file_format not in FORMATS_WITH_ALL_FIELDS
    ):  # our own format already has its placeholders filled
        result = dataclasses.replace(
            result, items=tuple(map(escape_placeholder_braces_in_item, result.items))
        )
    updates = (
        {topic_slug_or_empty: build_topic_update(result, target)}
        if target
        else _plan_topic_updates_by_slug(result, folder)
    )
    written_paths: list[str] = []
    for slug, update in updates.items():
        if not dry_run:
            write_topic_update(folder, slug, update)
        written_paths += [
            f"topics/{slug}/{name}"
            for name in (*update.changed_text_by_file_name, *update.picture_by_name)
        ]
    count = sum(len(update.added_items) for update in updates.values())
    summary = f"{format_count_noun(count, 'item')} {'would be ' * dry_run}imported"
    summary += f" into {', '.join(written_paths)}." if written_paths else "; nothing was written."
    summary = "\n".join((summary, *result.remarks_on_file))
    refused = [remark for update in updates.values() for remark in update.refused_items]
    losses = [remark for update in updates.values() for remark in update.losses]
    return _format_report(summary, refused, losses, "; correct by hand what matters")


def _plan_topic_updates_by_slug(result: ImportResult, folder: Path) -> dict[str, TopicUpdate]:
    """Return what to add to each topic that items name; raises UnusableFileError if none does."""
    course_topics = list_slugs_of_topics_with_page(folder)
    slugs = sorted({item.topic for item in result.items} & course_topics)
    if not slugs:
        raise UnusableFileError(
            "No question names a topic of this course; name one with --topic. "
            f"There are {', '.join(sorted(course_topics)) or 'none'}."
        )
    refused = [
        ItemRemark(
            make_item_label(item),
            item.line,
            f"there is no topic “{item.topic}” here; name one with --topic"
            if item.topic
            else "it names no topic; name one with --topic",
        )
        for item in result.items
        if item.topic not in course_topics
    ]
    updates: dict[str, TopicUpdate] = {}
    ids: frozenset[str] = frozenset()
    for slug in slugs:
        items = tuple(item for item in result.items if item.topic == slug)
        target = read_target_topic(folder, slug)
        target = dataclasses.replace(target, used_ids=target.used_ids | ids)
        topic_result = ImportResult(
            items, (*result.refused_items, *refused) if slug == slugs[0] else ()
        )
        updates[slug] = build_topic_update(topic_result, target)
        ids |= {added.item_id for added in updates[slug].added_items}
    return updates


def export_items(
    file_format: str, path: Path, folder: Path, topic_slug_or_empty: str, number_seed: int
) -> str:
    """Export a course or one topic to `path` (`-`: standard output); returns the report."""
    result = read_items_for_export(folder, topic_slug_or_empty, number_seed)
    items = tuple(i for i in result.items if _can_format_hold_item(file_format, i))
    exported = WRITERS[file_format](items, read_course_info(folder))
    _write_output(path, exported.file_content)
    refused = (
        *(result.refused_items if file_format not in CARD_ONLY_FORMATS else ()),
        *exported.refused_items,
    )
    losses = (*(r for item in items for r in list_recorded_losses(item)), *exported.losses)
    cards = len(result.items) - len(items)
    reserved = sum(item.use == "exam" for item in items)
    not_live = sum(_can_format_hold_item(file_format, item) for item in result.not_live_items)
    summary = f"{format_count_noun(exported.written_item_count, 'item')} written."
    if cards and file_format not in CARD_ONLY_FORMATS:
        summary += f" {format_count_noun(cards, 'card')} left out; apkg exports them."
    if reserved:
        summary += (
            f" {format_count_noun(reserved, 'item')} reserved for mock exams among them, "
            "with answers."
        )
    if not_live:
        summary += f" {format_count_noun(not_live, 'item')} left out as not live (draft or review)."
    return _format_report(summary, refused, losses)


def _can_format_hold_item(file_format: str, item: Item) -> bool:
    return file_format in FORMATS_WITH_ALL_FIELDS or (item.kind == "card") == (
        file_format in CARD_ONLY_FORMATS
    )


def export_attempts(
    file_format: str, path: Path, database_url: str, course_name: str | None
) -> str:
    """Export all attempts of a database to `path` (`-`: standard output); returns the report."""
    engine = _make_engine_or_raise_unusable(database_url)
    try:
        with Session(engine) as session:
            rows = list(iterate_attempt_rows(session, course_name))
    except DBAPIError as error:
        raise UnusableFileError(
            f"the database {redact_passwords_of_url(database_url)} cannot be read "
            f"({redact_passwords_in_message(error.orig, database_url)})."
        ) from None
    finally:
        engine.dispose()
    if file_format == "attempts-csv":
        content = write_csv_table(COLUMNS, rows)
    else:
        content = json.dumps(rows, ensure_ascii=False, indent=1).encode() + b"\n"
    _write_output(path, content)
    return f"{format_count_noun(len(rows), 'attempt')} written."


def _make_engine_or_raise_unusable(database_url: str) -> Engine:
    try:
        return make_engine(database_url)
    except (ModuleNotFoundError, SQLAlchemyError, ValueError) as error:
        reason = redact_passwords_in_message(error, database_url)
        raise UnusableFileError(f"the database address cannot be used ({reason}).") from None


def _read_import_file(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_XML_BYTES + 1)
    except OSError as error:
        raise UnusableFileError(f"{path} cannot be read ({error.strerror}).") from None
    if len(content) > MAX_XML_BYTES:
        raise UnusableFileError(f"{path} is larger than {MAX_XML_BYTES // 1_000_000} MB.")
    return content


def _write_output(path: Path, content: bytes) -> None:
    if str(path) == "-":
        sys.stdout.buffer.write(content)
        return
    try:
        path.write_bytes(content)
    except OSError as error:
        raise UnusableFileError(f"{path} cannot be written ({error.strerror}).") from None


def _format_report(
    summary: str,
    refused_items: Sequence[ItemRemark],
    losses: Sequence[ItemRemark],
    advice: str = "",
) -> str:
    lines = [summary]
    if refused_items:
        lines += [
            f"{format_count_noun(len(refused_items), 'item')} refused:",
            *_format_remarks_by_reason(refused_items),
        ]
    if losses:
        items = {(remark.item_name, remark.path_and_line) for remark in losses}
        count = format_count_noun(len(items), "item")
        lines += [f"{count} with a loss{advice}:", *_format_remarks_by_reason(losses)]
    return "\n".join(lines)


def _format_remarks_by_reason(remarks: Sequence[ItemRemark]) -> list[str]:
    """Return the remarks as lines, many of one reason on one line that names every item."""
    groups: dict[str, list[ItemRemark]] = {}
    for remark in remarks:
        groups.setdefault(remark.sentence, []).append(remark)
    lines: list[str] = []
    for reason, group in groups.items():
        if len(group) <= _MAX_REMARKS_SHOWN:
            lines += [f"  {remark}" for remark in group]
        else:
            count = Counter(remark.item_name for remark in group)
            names = ", ".join(
                f"{r.item_name} ({r.path_and_line})"
                if r.path or count[r.item_name] > 1
                else r.item_name
                for r in group
            )
            lines.append(f"  {len(group)} items: {reason}: {names}")
    return lines


COMMANDS = {"import": run_import_or_export_command, "export": run_import_or_export_command}
