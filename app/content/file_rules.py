"""Rules for the files of a course: what is missing, and what nothing reads because of its name."""

from collections.abc import Mapping
from pathlib import Path

from app.content.file_watcher import (
    SHARED,
    TOPIC_FILES,
    empty_topic_folders,
    list_undecodable_names,
    misnamed_files,
    nested_topics,
    unread_files,
)
from app.content.parsed_file import ParsedFile
from app.markup.ids import closest_word
from app.markup.problems import ContentProblem, make_problem


def check_absent_files(readings: Mapping[str, ParsedFile], folder: Path) -> list[ContentProblem]:
    """Report E00: files and folders that are missing, empty, or read by nothing."""
    return [
        *_check_missing_files(readings),
        *map(_unread_file_problem, unread_files(folder)),
        *(_misnamed_file_problem(*pair) for pair in misnamed_files(folder).items()),
        *map(_nested_topic_problem, nested_topics(folder)),
        *map(_empty_folder_problem, empty_topic_folders(folder)),
        *map(_undecodable_name_problem, list_undecodable_names(folder)),
    ]


def _check_missing_files(readings: Mapping[str, ParsedFile]) -> list[ContentProblem]:
    return [
        make_problem((name, 1, 1), "E00", f"The course has no {name}.", hint)
        for name, hint in (
            ("syllabus.toml", "Name the exam, its domains and the order of topics."),
            ("sources.toml", "List what the pages rest on."),
        )
        if name not in readings and f"{SHARED}/{name}" not in readings
    ]


def _empty_folder_problem(path: str) -> ContentProblem:
    hint = "Write its concept.md, or delete the folder."
    return make_problem((path, 1, 1), "E00", "The folder of this topic is empty.", hint)


def _unread_file_problem(path: str) -> ContentProblem:
    hint = "Name it concept.md, quiz.md or cards.md, or move it out of the topic."
    near = closest_word(path.rpartition("/")[2].lower(), TOPIC_FILES)
    if near:
        hint = f"Is it to be {near}? {hint}"
    if path.startswith("exams/"):
        hint = "A mock exam is a file with .toml at its end."
    return make_problem((path, 1, 1), "E00", "Nothing reads a file of this name.", hint)


def _undecodable_name_problem(path: str) -> ContentProblem:
    hint = "Rename it in lower-case letters, digits and hyphens."
    return make_problem((path, 1, 1), "E00", "This name is not UTF-8 text.", hint)


def _misnamed_file_problem(name: str, near: str) -> ContentProblem:
    message = "Nothing reads a file or folder of this name."
    return make_problem((name, 1, 1), "E00", message, f"Is it to be {near}?")


def _nested_topic_problem(path: str) -> ContentProblem:
    message = "A topic inside of another folder is not read."
    return make_problem((path, 1, 1), "E00", message, "Move its folder right below topics/.")
