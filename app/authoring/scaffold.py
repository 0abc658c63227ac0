"""Create starting files for courses, topics, questions and exams."""

import dataclasses
import datetime as dt
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from string import Template

from app.authoring.course_report import count_exam_questions_by_domain
from app.content.check import parse_as_if_ids_were_added
from app.content.course import Course, assemble_course
from app.content.course_facts import apportion_by_weight
from app.content.file_watcher import CachingCourseFileParser
from app.content.parse_cache import replace_file_atomically
from app.content.parsed_file import list_used_ids
from app.import_export.items import append_number_until_unused
from app.markup.model import Topic
from app.markup.text import LONGEST_ID, is_slug, write_hint_for_unknown_word
from app.questions import types

ITEM_TYPES = (*types.QUESTION_TYPES, "computed", "card")
_START_FILES_FOLDER = Path(__file__).parent / "starts"
_TYPES_OF_NEW_TOPIC = tuple(
    kind.name for kind in types.QUESTION_TYPES.values() if kind.is_in_scaffolded_topics
)
_MOST_QUESTIONS = 50
_MINUTES_PER_QUESTION = 1.2  # for each question, unless given


class ScaffoldError(Exception):
    """Nothing was written; the message says why and what to do."""


@dataclasses.dataclass(frozen=True, slots=True)
class ScaffoldTarget:
    course_folder: Path
    course: Course
    used_ids: frozenset[str]

    @property
    def first_source_key(self) -> str:
        """The key of a source to start with; raises ScaffoldError if there is none."""
        for key in self.course.sources:
            return key
        raise ScaffoldError(
            "sources.toml lists no source yet; write one first, for a page without "
            "a source does not pass the check."
        )

    @property
    def starting_objective(self) -> str:
        """The first objective without a page, otherwise the first of all."""
        domains = self.course.syllabus.domains
        numbers = [o.number for domain in domains for o in domain.objectives]
        pages = self.course.with_drafts().topics
        covered = {o for t in pages.values() for o in t.objectives}
        for number in [n for n in numbers if n not in covered] + numbers:
            return number
        raise ScaffoldError("syllabus.toml lists no objective yet; write one first.")


def read_scaffold_target(folder: Path) -> ScaffoldTarget:
    """Read the course with every id ever used; raises ScaffoldError.

    Items that have no id yet are read as if they had one.
    """
    if not folder.is_dir():
        raise ScaffoldError(f"{folder} is not a folder; name that of the course.")
    parsed_files = CachingCourseFileParser(folder, None).parse_current_files().parsed_files
    today = dt.datetime.now(dt.UTC).date()
    files_with_ids, _ = parse_as_if_ids_were_added(parsed_files, folder, today)
    return ScaffoldTarget(
        folder, assemble_course(files_with_ids, folder), frozenset(list_used_ids(parsed_files))
    )


def create_course(folder: Path, title: str, exam_name: str, today: dt.date) -> list[Path]:
    """Write a syllabus, a bibliography, a glossary and a topic; returns the files."""
    _require_valid_slug_and_title(folder.name, title)
    if folder.exists():
        raise ScaffoldError(f"{folder} is there already; choose another name.")
    values = {
        "heading": _quote_for_yaml_and_toml(title),
        "exam": _quote_for_yaml_and_toml(exam_name or title),
    }
    texts = {
        name: _fill_template(name, values)
        for name in ("syllabus.toml", "sources.toml", "glossary.md")
    }
    folder.mkdir(parents=True)
    files = [_write_file_atomically(folder / name, text) for name, text in texts.items()]
    return files + create_topic(
        read_scaffold_target(folder), "first-steps", "First steps", "1.1", today
    )


def create_topic(
    target: ScaffoldTarget, topic_slug: str, title: str, objective: str, today: dt.date
) -> list[Path]:
    """Write a page, starting questions and two cards; returns the files."""
    _require_valid_slug_and_title(topic_slug, title)
    folder = target.course_folder / "topics" / topic_slug
    if folder.exists():
        raise ScaffoldError(f"{folder} is there already; choose another slug.")
    objectives = {o.number for d in target.course.syllabus.domains for o in d.objectives}
    if objective and objective not in objectives:
        hint = write_hint_for_unknown_word(objective, objectives)
        raise ScaffoldError(f"“{objective}” is not an objective of syllabus.toml. {hint}")
    values = {
        "title": title,
        "objective": objective or target.starting_objective,
        "source": target.first_source_key,
        "today": today.isoformat(),
    }
    page = _fill_page_template(values, with_calculator=target.course.syllabus.offers_calculators)
    used_ids = set(target.used_ids)
    quiz = [
        _fill_item_template(
            kind, _reserve_unused_id(f"{topic_slug}-{kind}", used_ids), title, number
        )
        for number, kind in enumerate(_TYPES_OF_NEW_TOPIC, 1)
    ]
    cards = [
        _fill_item_template(
            "card", _reserve_unused_id(f"{topic_slug}-card", used_ids), title, number
        )
        for number in (1, 2)
    ]
    files = {"concept.md": page, "quiz.md": "\n".join(quiz), "cards.md": "\n".join(cards)}
    folder.mkdir(parents=True)
    return [_write_file_atomically(folder / name, text) for name, text in files.items()]


def add_question_or_card(
    target: ScaffoldTarget, topic_slug: str, item_type: str, item_id: str
) -> tuple[Path, int]:
    """Add a starting item to a topic; return its file and line."""
    topic = _require_topic(target, topic_slug)
    _refuse_type_needing_missing_calculators(target, item_type)
    if item_id in target.used_ids:
        raise ScaffoldError(f"The id “{item_id}” was used before; choose another.")
    if item_id:
        _require_valid_slug_and_title(item_id)
    stem = "cards" if item_type == "card" else "quiz"
    path = target.course_folder / "topics" / topic_slug / f"{stem}.md"
    old_text = path.read_text(encoding="utf-8") if path.exists() else ""
    number = old_text.count("<!-- q:") + 1
    item_id = item_id or append_number_until_unused(f"{topic_slug}-{item_type}", target.used_ids)
    id_line = f"<!-- q: {item_id}\n"
    draft_lines = "# Only authors see it; without this line it is live.\nstatus: draft\n"
    item = _fill_item_template(item_type, item_id, topic.title, number)
    item = item.replace(id_line, id_line + draft_lines, 1)
    text_before = old_text.rstrip("\n") + "\n\n" if old_text else ""
    if (_START_FILES_FOLDER / f"{item_type}.svg").exists():
        _write_file_atomically(path.with_name(f"{item_id}.svg"), _read_template(f"{item_type}.svg"))
    _write_file_atomically(path, text_before + item)
    return path, text_before.count("\n") + 1


def _require_topic(target: ScaffoldTarget, topic_slug: str) -> Topic:
    """Return the topic; raises ScaffoldError with the problem that keeps it from being read."""
    topics = target.course.with_drafts().topics
    if topic_slug in topics:
        return topics[topic_slug]
    for problem in target.course.problems:
        if problem.severity == "error" and topic_slug in problem.path.split("/"):
            reason = f"{problem.path}:{problem.line} {problem.message} {problem.hint}".strip()
            raise ScaffoldError(f"The topic “{topic_slug}” cannot be read: {reason}")
    hint = write_hint_for_unknown_word(topic_slug, set(topics))
    course_name = target.course_folder.absolute().name
    raise ScaffoldError(f"There is no topic “{topic_slug}” in {course_name}. {hint}".strip())


def _refuse_type_needing_missing_calculators(target: ScaffoldTarget, item_type: str) -> None:
    estimates = (
        item_type in types.QUESTION_TYPES and types.QUESTION_TYPES[item_type].needs_calculators
    )
    if estimates and not target.course.syllabus.offers_calculators:
        raise ScaffoldError(
            f"A question of the type “{item_type}” needs an estimate, and this course has "
            "none: syllabus.toml says calculators = false."
        )


def create_exam(
    target: ScaffoldTarget, exam_slug: str, title: str, question_count: int, minutes: int
) -> tuple[Path, list[str]]:
    """Write a mock exam whose domain counts follow the syllabus and the bank.

    If too few questions are live for it, drafts are counted as well. Return its file, and which
    drafts have to go live before it can be taken.
    """
    _require_valid_slug_and_title(exam_slug, title)
    path = target.course_folder / "exams" / f"{exam_slug}.toml"
    if path.exists():
        raise ScaffoldError(f"{path} is there already; choose another slug.")
    drafts: list[str] = []
    try:
        counts = _apportion_questions_to_domains(target.course, question_count)
    except ScaffoldError as error:
        try:
            counts = _apportion_questions_to_domains(target.course.with_drafts(), question_count)
        except ScaffoldError:
            raise error from None
        drafts = _describe_exam_drafts_by_file(target.course)
    total = sum(counts.values())
    titles = {d.number: d.title for d in target.course.syllabus.domains}
    values = {
        "heading": _quote_for_yaml_and_toml(title),
        "questions": str(total),
        "minutes": str(minutes or max(1, round(total * _MINUTES_PER_QUESTION))),
        "domains": "\n".join(f"{n} = {c}  # {titles[n]}" for n, c in counts.items()),
    }
    path.parent.mkdir(exist_ok=True)
    file = _write_file_atomically(path, _fill_template("exam.toml", values))
    return file, drafts


def _apportion_questions_to_domains(course: Course, question_count: int) -> dict[str, int]:
    available = count_exam_questions_by_domain(course)
    weights = {d.number: d.weight for d in course.syllabus.domains}
    max_questions = question_count or _MOST_QUESTIONS
    for number in range(max_questions, 0, -1):
        counts = apportion_by_weight(weights, number)
        if counts and all(available[name] >= count for name, count in counts.items()):
            if question_count and number < question_count:
                needed = apportion_by_weight(weights, question_count)
                raise _build_insufficient_questions_error(available, needed, number)
            return {name: count for name, count in counts.items() if count}
    raise _build_insufficient_questions_error(
        available, apportion_by_weight(weights, question_count or 1), 0
    )


def _describe_exam_drafts_by_file(course: Course) -> list[str]:
    """Return how many questions of each file exams would draw if they were live."""
    drafts = (
        question.place.path
        for question in course.with_drafts().questions.values()
        if question.may_be_asked_in_exams and question.id not in course.questions
    )
    return [f"{count} of {path}" for path, count in Counter(drafts).items()]


def _build_insufficient_questions_error(
    available_count_by_domain: Counter[str],
    wanted_count_by_domain: Mapping[str, int],
    largest_possible_count: int,
) -> ScaffoldError:
    """Return an error with what each domain has and needs, and the largest possible count."""
    shortages = ", ".join(
        f"domain {name} has {available_count_by_domain[name]} of {count}"
        for name, count in wanted_count_by_domain.items()
        if available_count_by_domain[name] < count
    )
    hint = f" --questions {largest_possible_count} would do." if largest_possible_count else ""
    return ScaffoldError(
        f"The course has too few questions for this exam: {shortages or 'no domain'}. Not counted "
        "are drafts, labs, designs, questions with “level: deeper”, and choices between two "
        f"options.{hint}"
    )


def _fill_page_template(text_by_placeholder: Mapping[str, str], *, with_calculator: bool) -> str:
    """Return a page, with a figure and a calculator if the course has them."""
    extra_words = {
        "heading": _quote_for_yaml_and_toml(text_by_placeholder["title"]),
        "figure": f" {_read_template('figure.md').rstrip()}" if with_calculator else "",
        "calculator": _read_template("calculator.md") if with_calculator else "",
    }
    return _fill_template("concept.md", {**text_by_placeholder, **extra_words})


def _fill_item_template(item_type: str, item_id: str, title: str, number: int) -> str:
    escaped_title = title.replace("{", r"\{")  # otherwise it would start a placeholder
    values = {"id": item_id, "title": escaped_title, "number": str(number)}
    return _fill_template(f"{item_type}.md", values)


def _fill_template(template_name: str, text_by_placeholder: Mapping[str, str]) -> str:
    return Template(_read_template(template_name)).substitute(text_by_placeholder)


def _read_template(template_name: str) -> str:
    return (_START_FILES_FOLDER / template_name).read_text(encoding="utf-8")


def _reserve_unused_id(name: str, used_ids: set[str]) -> str:
    unused_id = append_number_until_unused(name, used_ids)
    used_ids.add(unused_id)
    return unused_id


def _require_valid_slug_and_title(slug: str, title: str = "x") -> None:
    if not is_slug(slug) or len(slug) > LONGEST_ID:
        raise ScaffoldError(
            f"“{slug}” cannot stand in an address; use lower-case letters, digits "
            "and single hyphens: kv-cache."
        )
    if not title.strip() or not title.isprintable() or len(title) > 120:
        raise ScaffoldError("A title is one line of at most 120 letters.")


def _quote_for_yaml_and_toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _write_file_atomically(path: Path, text: str) -> Path:
    replace_file_atomically(path, text.encode())
    return path
