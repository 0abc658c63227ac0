"""Content problems with source lines, and the authoring guide."""

import dataclasses
import functools
import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from markdown_it.token import Token

from app.content.file_watcher import course_file_path
from app.content.library import Library
from app.markup.html_renderer import RenderContext, render_tokens
from app.markup.markdown_tokens import closing_index, parse_markdown, plain_text
from app.markup.problems import ContentProblem, SourceFile
from app.markup.text import slugify
from app.resources import ROOT

_CONTEXT_LINES = 8


@dataclasses.dataclass(frozen=True, slots=True)
class SourceLine:
    """One line of a source file; `hit` marks the line of the problem."""

    number: int
    text: str
    hit: bool


@dataclasses.dataclass(frozen=True, slots=True)
class ProblemFilter:
    """Which problems to show, by severity and file; empty means all."""

    severity: str = ""
    file: str = ""

    def matches_problem(self, problem: ContentProblem) -> bool:
        """Return whether a problem passes the filter."""
        return problem.severity.startswith(self.severity) and (
            not self.file or problem.path == self.file
        )


@dataclasses.dataclass(frozen=True, slots=True)
class ProblemList:
    """Problems, worst first; `place` is the index of the selected one."""

    problems: tuple[ContentProblem, ...]
    place: int
    files: tuple[tuple[str, int], ...]
    errors: int
    warnings: int

    @property
    def chosen(self) -> ContentProblem | None:
        """The selected problem; None if there are none."""
        return self.problems[self.place] if self.problems else None


def build_problem_list(
    library: Library, problem_filter: ProblemFilter, at: str = ""
) -> ProblemList:
    """Return the problems of a course that pass a filter; `at` is `name_of` the selected one."""
    every = sorted(library.problems, key=lambda p: (p.severity, p))
    shown = tuple(p for p in every if problem_filter.matches_problem(p))
    names = [problem_key(p) for p in shown]
    errors = sum(p.severity == "error" for p in every)
    return ProblemList(
        shown,
        names.index(at) if at in names else 0,
        tuple(sorted(Counter(p.path for p in every).items())),
        errors,
        len(every) - errors,
    )


def problem_key(problem: ContentProblem) -> str:
    """Return a problem's name in URLs: file, line, column and code."""
    return f"{problem.path}:{problem.line}:{problem.column}:{problem.code}"


def topic_of_path(path: str) -> str:
    """Return the slug of the topic that a file belongs to; empty for course-wide files."""
    parts = path.split("/")
    return parts[1] if parts[0] == "topics" and len(parts) > 2 else ""


def lines_around(
    folder: Path, path: str, line: int, around: int = _CONTEXT_LINES
) -> list[SourceLine]:
    """Return the lines of a file around `line`; empty if it cannot be read."""
    try:
        file = course_file_path(folder, path)
        text = file.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return []
    lines = text.splitlines()
    first = max(1, line - around)
    part = lines[first - 1 : line + around]
    return [SourceLine(n, words, n == line) for n, words in enumerate(part, first)]


def problems_of_topic(problems: Sequence[ContentProblem], topic: str) -> list[ContentProblem]:
    """Return the problems in the files of one topic, worst first."""
    here = [p for p in problems if topic_of_path(p.path) == topic]
    return sorted(here, key=lambda p: (p.severity, p))


PATH = ROOT / "docs" / "authoring.md"


@dataclasses.dataclass(frozen=True, slots=True)
class GuideSection:
    """The text under one second-level heading."""

    anchor: str
    title: str
    html: str


@dataclasses.dataclass(frozen=True, slots=True)
class AuthoringGuide:
    """The guide in sections; the first is the text before all headings."""

    title: str
    parts: tuple[GuideSection, ...]
    problems: tuple[ContentProblem, ...]


@functools.lru_cache(maxsize=1)
def read_authoring_guide(path: Path = PATH) -> AuthoringGuide:
    """Read the guide; raises OSError if it is not installed."""
    sheet = SourceFile(path.name, path.read_text(encoding="utf-8"))
    title, *chapters = _split_chapters(parse_markdown(sheet.text))
    scope = RenderContext(sheet, page=True)
    parts = tuple(_build_guide_section(chapter, scope) for chapter in chapters)
    return AuthoringGuide(plain_text(title), parts, tuple(sheet.problems))


def _split_chapters(tokens: list[Token]) -> list[list[Token]]:
    """Return the title, the text after it, and each chapter from its heading on."""
    starts = [i for i, t in enumerate(tokens) if t.type == "heading_open"]
    starts = [i for i in starts if tokens[i].tag == "h2" and not tokens[i].level]
    after = closing_index(tokens, 0) + 1
    cuts = [0, after, *starts, len(tokens)]
    return [tokens[a:b] for a, b in itertools.pairwise(cuts)]


def _build_guide_section(chapter: list[Token], scope: RenderContext) -> GuideSection:
    if chapter[0].type != "heading_open":
        return GuideSection("", "", render_tokens(chapter, scope).html)
    title = plain_text(chapter[1:2])
    return GuideSection(slugify(title), title, render_tokens(chapter, scope).html)
