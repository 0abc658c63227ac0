"""The library: everything under the content folder, read, cross-checked, kept live."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from app.content.model import (
    Card,
    ExamBlueprint,
    Question,
    Source,
    Syllabus,
    Term,
    Topic,
)
from app.content.problems import Problem


@dataclasses.dataclass(frozen=True, slots=True)
class Library:
    """One consistent state of the course. `version` changes when any content does."""

    version: str
    syllabus: Syllabus
    topics: Mapping[str, Topic]
    questions: Mapping[str, Question]
    cards: Mapping[str, Card]
    glossary: Mapping[str, Term]
    sources: Mapping[str, Source]
    exams: Mapping[str, ExamBlueprint]
    problems: tuple[Problem, ...]


def load(folder: Path, cache: Path | None = None) -> Library:
    """Read the whole course under `folder`; `cache` is a folder for parsed files."""
    raise NotImplementedError


class LiveLibrary:
    """The library of a running server: `current()` is never older than the files.

    A file that breaks keeps its last good version on show; its problems are in
    `current().problems`.
    """

    def __init__(self, folder: Path, cache: Path | None = None) -> None:
        self.folder = folder
        self.cache = cache

    def current(self) -> Library:
        """The newest good state; looks at file times, cheap when nothing changed."""
        raise NotImplementedError
