"""Create starting files for courses, topics, questions and exams."""

import dataclasses
import datetime as dt
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import NamedTuple

from app.authoring.course_report import count_exam_questions_by_domain
from app.content.check import parse_as_if_ids_were_added
from app.content.course_facts import apportion_by_weight
from app.content.file_watcher import WatchedFiles
from app.content.library import Library, assemble_library
from app.content.parse_cache import replace_file_atomically
from app.content.parsed_file import list_used_ids
from app.import_export.items import append_number_until_unused
from app.markup.model import Topic
from app.markup.text import LONGEST_ID, is_slug, suggest_known_words
from app.questions import types

KINDS = (*types.QUESTION_TYPES, "computed", "card")
_STARTS = Path(__file__).parent / "starts"
_TYPES_OF_NEW_TOPIC = tuple(
    kind.name for kind in types.QUESTION_TYPES.values() if kind.is_in_new_topics
)
_MOST_QUESTIONS = 50
_MINUTES_PER_QUESTION = 1.2  # for each question, unless given


class ScaffoldError(Exception):
    """Nothing was written; the message says why and what to do."""


@dataclasses.dataclass(frozen=True, slots=True)
class ScaffoldTarget:
    folder: Path
    library: Library
    used_ids: frozenset[str]

    @property
    def first_source(self) -> str:
        """The key of a source to start with; raises ScaffoldError if there is none."""
        for key in self.library.sources:
            return key
        raise ScaffoldError(
            "sources.toml lists no source yet; write one first, for a page without "
            "a source does not pass the check."
        )

    @property
    def starting_objective(self) -> str:
        """The first objective without a page, otherwise the first of all."""
        domains = self.library.syllabus.domains
        numbers = [o.number for domain in domains for o in domain.objectives]
        pages = self.library.with_drafts().topics
        covered = {o for t in pages.values() for o in t.objectives}
        for number in [n for n in numbers if n not in covered] + numbers:
            return number
        raise ScaffoldError("syllabus.toml lists no objective yet; write one first.")


def read_target_course(folder: Path) -> ScaffoldTarget:
    """Read the course with every id ever used; raises ScaffoldError.

    Items that have no id yet are read as if they had one.
    """
    if not folder.is_dir():
        raise ScaffoldError(f"{folder} is not a folder; name that of the course.")
    parsed_files = WatchedFiles(folder, None).parse_current_files().parsed_files
    today = dt.datetime.now(dt.UTC).date()
    files_with_ids = parse_as_if_ids_were_added(parsed_files, folder, today).parsed_files
    return ScaffoldTarget(
        folder, assemble_library(files_with_ids, folder), frozenset(list_used_ids(parsed_files))
    )


def create_course(folder: Path, title: str, exam: str, today: dt.date) -> list[Path]:
    """Write a syllabus, a bibliography, a glossary and a topic; returns the files."""
    _check_slug_and_title(folder.name, title)
    if folder.exists():
        raise ScaffoldError(f"{folder} is there already; choose another name.")
    values = {"heading": _quote_text(title), "exam": _quote_text(exam or title)}
    texts = {
        name: _fill_template(name, values)
        for name in ("syllabus.toml", "sources.toml", "glossary.md")
    }
    folder.mkdir(parents=True)
    files = [_write_file_atomically(folder / name, text) for name, text in texts.items()]
    return files + create_topic(
        read_target_course(folder), "first-steps", "First steps", "1.1", today
    )


def create_topic(
    course: ScaffoldTarget, slug: str, title: str, objective: str, today: dt.date
) -> list[Path]:
    """Write a page, starting questions and two cards; returns the files."""
    _check_slug_and_title(slug, title)
    folder = course.folder / "topics" / slug
    if folder.exists():
        raise ScaffoldError(f"{folder} is there already; choose another slug.")
    objectives = {o.number for d in course.library.syllabus.domains for o in d.objectives}
    if objective and objective not in objectives:
        hint = suggest_known_words(objective, objectives)
        raise ScaffoldError(f"“{objective}” is not an objective of syllabus.toml. {hint}")
    values = {
        "title": title,
        "objective": objective or course.starting_objective,
        "source": course.first_source,
        "today": today.isoformat(),
    }
    page = _fill_page_template(values, with_calculator=course.library.syllabus.calculators)
    used_ids = set(course.used_ids)
    quiz = [
        _fill_item_template(kind, _reserve_unused_id(f"{slug}-{kind}", used_ids), title, number)
        for number, kind in enumerate(_TYPES_OF_NEW_TOPIC, 1)
    ]
    cards = [
        _fill_item_template("card", _reserve_unused_id(f"{slug}-card", used_ids), title, number)
        for number in (1, 2)
    ]
    files = {"concept.md": page, "quiz.md": "\n".join(quiz), "cards.md": "\n".join(cards)}
    folder.mkdir(parents=True)
    return [_write_file_atomically(folder / name, text) for name, text in files.items()]


class AddedItemPlace(NamedTuple):
    file: Path
    line: int


def add_question_or_card(course: ScaffoldTarget, slug: str, kind: str, name: str) -> AddedItemPlace:
    """Add a starting item to a topic; returns where it is."""
    topic = _read_topic(course, slug)
    _refuse_type_without_calculators(course, kind)
    if name in course.used_ids:
        raise ScaffoldError(f"The id “{name}” was used before; choose another.")
    if name:
        _check_slug_and_title(name)
    stem = "cards" if kind == "card" else "quiz"
    path = course.folder / "topics" / slug / f"{stem}.md"
    old_text = path.read_text(encoding="utf-8") if path.exists() else ""
    number = old_text.count("<!-- q:") + 1
    name = name or append_number_until_unused(f"{slug}-{kind}", course.used_ids)
    id_line = f"<!-- q: {name}\n"
    draft_lines = "# Only authors see it; without this line it is live.\nstatus: draft\n"
    item = _fill_item_template(kind, name, topic.title, number)
    item = item.replace(id_line, id_line + draft_lines, 1)
    text_before = old_text.rstrip("\n") + "\n\n" if old_text else ""
    if (_STARTS / f"{kind}.svg").exists():
        _write_file_atomically(path.with_name(f"{name}.svg"), _read_template(f"{kind}.svg"))
    _write_file_atomically(path, text_before + item)
    return AddedItemPlace(path, text_before.count("\n") + 1)


def _read_topic(course: ScaffoldTarget, slug: str) -> Topic:
    """Return the topic; raises ScaffoldError with the problem that keeps it from being read."""
    topics = course.library.with_drafts().topics
    if slug in topics:
        return topics[slug]
    for problem in course.library.problems:
        if problem.severity == "error" and slug in problem.path.split("/"):
            reason = f"{problem.path}:{problem.line} {problem.message} {problem.hint}".strip()
            raise ScaffoldError(f"The topic “{slug}” cannot be read: {reason}")
    hint = suggest_known_words(slug, set(topics))
    course_name = course.folder.absolute().name
    raise ScaffoldError(f"There is no topic “{slug}” in {course_name}. {hint}".strip())


def _refuse_type_without_calculators(course: ScaffoldTarget, kind: str) -> None:
    estimates = kind in types.QUESTION_TYPES and types.QUESTION_TYPES[kind].needs_calculators
    if estimates and not course.library.syllabus.calculators:
        raise ScaffoldError(
            f"A question of the type “{kind}” needs an estimate, and this course has "
            "none: syllabus.toml says calculators = false."
        )


class CreatedExam(NamedTuple):
    """The file of a mock exam, and which drafts have to go live before it can be taken."""

    file: Path
    needed_drafts: list[str]


def create_exam(
    course: ScaffoldTarget, slug: str, title: str, questions: int, minutes: int
) -> CreatedExam:
    """Write a mock exam whose domain counts follow the syllabus and the bank.

    If too few questions are live for it, drafts are counted as well.
    """
    _check_slug_and_title(slug, title)
    path = course.folder / "exams" / f"{slug}.toml"
    if path.exists():
        raise ScaffoldError(f"{path} is there already; choose another slug.")
    drafts: list[str] = []
    try:
        counts = _apportion_questions_to_domains(course.library, questions)
    except ScaffoldError as error:
        try:
            counts = _apportion_questions_to_domains(course.library.with_drafts(), questions)
        except ScaffoldError:
            raise error from None
        drafts = _describe_exam_drafts_by_file(course.library)
    total = sum(counts.values())
    titles = {d.number: d.title for d in course.library.syllabus.domains}
    values = {
        "heading": _quote_text(title),
        "questions": str(total),
        "minutes": str(minutes or max(1, round(total * _MINUTES_PER_QUESTION))),
        "domains": "\n".join(f"{n} = {c}  # {titles[n]}" for n, c in counts.items()),
    }
    path.parent.mkdir(exist_ok=True)
    file = _write_file_atomically(path, _fill_template("exam.toml", values))
    return CreatedExam(file, drafts)


def _apportion_questions_to_domains(library: Library, questions: int) -> dict[str, int]:
    available = count_exam_questions_by_domain(library)
    weights = {d.number: d.weight for d in library.syllabus.domains}
    max_questions = questions or _MOST_QUESTIONS
    for number in range(max_questions, 0, -1):
        counts = apportion_by_weight(weights, number)
        if counts and all(available[name] >= count for name, count in counts.items()):
            if questions and number < questions:
                needed = apportion_by_weight(weights, questions)
                raise _build_insufficient_questions_error(available, needed, number)
            return {name: count for name, count in counts.items() if count}
    raise _build_insufficient_questions_error(
        available, apportion_by_weight(weights, questions or 1), 0
    )


def _describe_exam_drafts_by_file(library: Library) -> list[str]:
    """Return how many questions of each file exams would draw if they were live."""
    drafts = (
        question.place.path
        for question in library.with_drafts().questions.values()
        if question.is_for_exams and question.id not in library.questions
    )
    return [f"{count} of {path}" for path, count in Counter(drafts).items()]


def _build_insufficient_questions_error(
    available: Counter[str], wanted: Mapping[str, int], largest_count: int
) -> ScaffoldError:
    """Return an error with what each domain has and needs, and the largest possible count."""
    shortages = ", ".join(
        f"domain {name} has {available[name]} of {count}"
        for name, count in wanted.items()
        if available[name] < count
    )
    hint = f" --questions {largest_count} would do." if largest_count else ""
    return ScaffoldError(
        f"The course has too few questions for this exam: {shortages or 'no domain'}. Not counted "
        "are drafts, labs, designs, questions with “level: deeper”, and choices between two "
        f"options.{hint}"
    )


def _fill_page_template(words: Mapping[str, str], *, with_calculator: bool) -> str:
    """Return a page, with a figure and a calculator if the course has them."""
    extra_words = {
        "heading": _quote_text(words["title"]),
        "figure": f" {_read_template('figure.md').rstrip()}" if with_calculator else "",
        "calculator": _read_template("calculator.md") if with_calculator else "",
    }
    return _fill_template("concept.md", {**words, **extra_words})


def _fill_item_template(kind: str, name: str, title: str, number: int) -> str:
    escaped_title = title.replace("{", r"\{")  # otherwise it would start a placeholder
    values = {"id": name, "title": escaped_title, "number": str(number)}
    return _fill_template(f"{kind}.md", values)


def _fill_template(name: str, words: Mapping[str, str]) -> str:
    return Template(_read_template(name)).substitute(words)


def _read_template(name: str) -> str:
    return (_STARTS / name).read_text(encoding="utf-8")


def _reserve_unused_id(name: str, used_ids: set[str]) -> str:
    """Return an unused id, and mark it as used."""
    unused_id = append_number_until_unused(name, used_ids)
    used_ids.add(unused_id)
    return unused_id


def _check_slug_and_title(slug: str, title: str = "x") -> None:
    if not is_slug(slug) or len(slug) > LONGEST_ID:
        raise ScaffoldError(
            f"“{slug}” cannot stand in an address; use lower-case letters, digits "
            "and single hyphens: kv-cache."
        )
    if not title.strip() or not title.isprintable() or len(title) > 120:
        raise ScaffoldError("A title is one line of at most 120 letters.")


def _quote_text(text: str) -> str:
    """Return the text quoted for both YAML and TOML."""
    return json.dumps(text, ensure_ascii=False)


def _write_file_atomically(path: Path, text: str) -> Path:
    replace_file_atomically(path, text.encode())
    return path
