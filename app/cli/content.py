"""The commands `check`, `new` and `coverage`."""

import argparse
import contextlib
import dataclasses
import datetime as dt
import gc
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from app import IN_WHEEL, ROOT
from app.authoring import scaffold
from app.authoring.course_report import (
    COVERAGE_COLUMN_TITLES,
    compute_coverage,
    count_disjoint_papers_by_title,
    list_due_content_reviews,
    measure_answer_cues,
)
from app.authoring.scaffold import ScaffoldError, read_scaffold_target
from app.cli import CommandError
from app.cli.database import read_settings
from app.content.check import (
    check_course,
    describe_new_lock_file,
    fix_course_files,
    format_diff,
    format_problems,
    plan_course_file_fixes,
)
from app.content.course import assemble_course
from app.content.course_rules import build_drafts_hint
from app.content.file_watcher import SHARED_FOLDER, CachingCourseFileParser
from app.content.live_courses import (
    SINGLE_COURSE,
    find_course_folders,
    map_skipped_folders_to_reasons,
)
from app.content.reading_routes import (
    has_course_short_route,
    list_short_route_questions_without_answer_on_route,
    measure_short_route_coverage,
)
from app.markup.problems import (
    LOG,
    PROBLEM_CODES,
    ContentProblem,
    ProblemLocation,
    describe_problem_code,
    make_problem,
)
from app.markup.text import write_hint_for_unknown_word


def find_course_folder(name: str) -> Path:
    """Return the folder of a course, by default the current one; raises CommandError."""
    settings = read_settings()
    if not (name or "content" in settings.model_fields_set) and Path("syllabus.toml").is_file():
        return Path()
    content = settings.content
    courses = find_course_folders(content)
    if SINGLE_COURSE in courses:
        if name:
            raise CommandError(f"{content} has a single course; leave --course out.")
        return courses[SINGLE_COURSE]
    if not name and len(courses) == 1:
        return next(iter(courses.values()))
    if name not in courses:
        reason = f"there is no course “{name}”" if name else "there are several courses"
        raise CommandError(f"{reason}; name one with --course: {', '.join(courses)}.")
    return courses[name]


def find_course_name_on_server(folder: Path) -> str | None:
    """Return the course's name on the server; None for any other folder."""
    courses = find_course_folders(read_settings().content)
    return next((name for name, course_folder in courses.items() if course_folder == folder), None)


def run_check_command(options: argparse.Namespace) -> int:
    """Print the problems after applying `--fix`. Returns 1 if one is an error."""
    if options.watch:
        return _watch_content(options)
    if options.explain:
        return _print_code_explanation(options.explain.upper())
    if options.dry_run and not options.fix:
        raise CommandError("--dry-run shows what --fix would write; add --fix.")
    if options.accept and not options.fix:
        raise CommandError("--accept works together with --fix; add --fix.")
    disabled = LOG.disabled
    LOG.disabled = not options.verbose  # problem E00 reports internal failures anyway
    try:
        return _fix_check_and_print_each_course(options)
    finally:
        LOG.disabled = disabled


def _fix_check_and_print_each_course(options: argparse.Namespace) -> int:
    content = _content_folder_from_options(options)
    problems: list[ContentProblem] = []
    for name, folder in find_course_folders(content).items():
        if options.fix:
            _apply_fixes_and_print_diff(folder, options)
        course_problems = [
            _with_path_relative_to_content_folder(name, problem) for problem in check_course(folder)
        ]
        # Shared files are reported once.
        new_problems = [p for p in course_problems if p not in problems]
        if options.format == "text":
            report = format_problems(new_problems)
            separator = "\n" if new_problems else " "
            print(f"{name}:{separator}{report}" if name else report)
        problems += new_problems
    skipped = _problems_of_skipped_folders(content)
    if skipped and options.format == "text":
        print(format_problems(skipped))
    problems += skipped
    gc.freeze()  # the command ends soon: skip garbage collection
    if options.format != "text":
        print(format_problems(problems, options.format))
    return int(any(p.severity == "error" for p in problems))


def _problems_of_skipped_folders(content: Path) -> list[ContentProblem]:
    """Report E00 for each folder that looks like a course but is not served."""
    rename_hint = "Rename it. Use lower-case letters, digits and hyphens."
    return [
        make_problem(
            ProblemLocation(f"{name}/syllabus.toml"),
            "E00",
            f"The folder “{name}” is no course of the server: {reason}.",
            "Write its syllabus.toml." if reason.endswith(".toml") else rename_hint,
        )
        for name, reason in map_skipped_folders_to_reasons(content).items()
    ]


def _with_path_relative_to_content_folder(
    course_name: str, problem: ContentProblem
) -> ContentProblem:
    shared = problem.path.startswith(f"{SHARED_FOLDER}/")
    if shared == bool(course_name):  # relative to that folder already
        return problem
    parent = ".." if shared else course_name
    return dataclasses.replace(problem, path=f"{parent}/{problem.path}")


def _apply_fixes_and_print_diff(folder: Path, options: argparse.Namespace) -> None:
    """Apply `--fix`, or only compute it; prints the diff, to standard error beside JSON."""
    if not options.dry_run:
        raise_if_packaged_course(folder)
    make_changes = plan_course_file_fixes if options.dry_run else fix_course_files
    changes = make_changes(folder, dt.datetime.now(dt.UTC).date(), options.accept)
    out = sys.stdout if options.format == "text" else sys.stderr
    for text in (
        format_diff(changes),
        describe_new_lock_file(changes, is_written=not options.dry_run),
    ):
        if text:
            print(text, file=out)


def raise_if_packaged_course(folder: Path) -> None:
    """Raise CommandError for the course inside an installed package, which updates replace."""
    if IN_WHEEL and folder.resolve().is_relative_to(ROOT):
        raise CommandError(
            "the course that is installed with Headroom cannot be changed in its place; "
            "name another folder, or set HEADROOM_CONTENT."
        )


def _print_code_explanation(code: str) -> int:
    if code == "ALL":
        for known_code, rule in PROBLEM_CODES.items():
            print(f"{known_code}  {rule.meaning}\n     {rule.remedy}")
        return 0
    if code not in PROBLEM_CODES:
        hint = (
            write_hint_for_unknown_word(code, PROBLEM_CODES)
            or "Codes look like E04 or W87; they follow the location."
        )
        raise CommandError(f"{code} is not a code of the check. {hint}")
    print(describe_problem_code(code))
    return 0


def _content_folder_from_options(options: argparse.Namespace) -> Path:
    if options.folder and options.course:
        raise CommandError("name a folder or a course, not both.")
    folder: Path = options.folder or find_course_folder(options.course)
    if not folder.is_dir():
        raise CommandError(f"{folder} is not a folder; name the folder that holds the course.")
    return folder


_SECONDS_BETWEEN_CHECKS = 0.2
Problems = tuple[ContentProblem, ...]


def _watch_content(options: argparse.Namespace) -> int:
    """Print problems after every change until interrupted."""
    folder = _content_folder_from_options(options)
    if options.fix or options.explain or options.format != "text":
        raise CommandError("--watch prints text and writes nothing; leave the other options out.")
    courses = find_course_folders(folder)
    if SINGLE_COURSE not in courses:
        raise CommandError(f"--watch checks one course; name one of {', '.join(courses)}.")
    with contextlib.suppress(KeyboardInterrupt):  # may be raised while printing
        for text in check_course_at_each_change(folder):
            print(text, flush=True)
    return 0


def check_course_at_each_change(
    folder: Path, wait_between_checks: Callable[[], None] | None = None
) -> Iterator[str]:
    """Yield the text to print: all problems first, then the differences after each change.

    Ends when `wait_between_checks`, which is called between two checks, raises KeyboardInterrupt.
    """
    pause = wait_between_checks or (lambda: time.sleep(_SECONDS_BETWEEN_CHECKS))
    files = CachingCourseFileParser(folder, None)
    previous: Problems | None = None
    try:
        while True:
            # Check the files as they are. Only a server keeps the last good version.
            files.last_good.clear()
            parsed_files, stamps = files.parse_current_files()
            problems = tuple(sorted(assemble_course(parsed_files, folder).problems))
            if previous is None:
                yield format_problems(problems)
            elif problems != previous:
                yield describe_fixed_and_new_problems(previous, problems)
            previous = problems
            pause()
            while not stamps.is_reload_due():
                pause()
    except KeyboardInterrupt:
        return


def describe_fixed_and_new_problems(problems_before: Problems, problems_now: Problems) -> str:
    """Return which problems were fixed, which are new, and how many are left."""
    old_index, new_index = (
        _index_problems_ignoring_line(problems_before),
        _index_problems_ignoring_line(problems_now),
    )
    lines = [f"fixed   {_format_problem(p)}" for k, p in old_index.items() if k not in new_index]
    for problem in (p for key, p in new_index.items() if key not in old_index):
        lines.append(f"new     {_format_problem(problem)}")
        if problem.hint:
            lines.append(f"        {problem.hint}")
    summary = format_problems(problems_now).splitlines()[-1]
    return "\n".join([*lines, f"{dt.datetime.now().astimezone():%H:%M:%S}  {summary}"])


class ProblemKey(NamedTuple):
    """Everything of a problem but its line; `occurrence` counts equal ones from 0."""

    path: str
    code: str
    message: str
    occurrence: int


def _index_problems_ignoring_line(problems: Problems) -> dict[ProblemKey, ContentProblem]:
    index: dict[ProblemKey, ContentProblem] = {}
    for problem in problems:
        key = ProblemKey(problem.path, problem.code, problem.message, occurrence=0)
        while key in index:
            key = key._replace(occurrence=key.occurrence + 1)
        index[key] = problem
    return index


def _format_problem(p: ContentProblem) -> str:
    return f"{p.path}:{p.line}:{p.column} {p.code} {p.message}"


def run_coverage_command(options: argparse.Namespace) -> int:
    """Print items per objective, reviews that are due, and answer cues of choice questions."""
    course = read_scaffold_target(options.folder or find_course_folder(options.course)).course
    for row in compute_coverage(course):
        print(row.number, row.name)
        for title, cell in zip(COVERAGE_COLUMN_TITLES.values(), row.cells, strict=True):
            print(f"  {title}: {cell}")
    if has_course_short_route(course.topics.values()):
        short = measure_short_route_coverage(course)
        print(
            f"short route: {short.word_count:,} words, {short.covered_question_count:,} of {short.question_count:,} "
            "exam-level questions"
        )
        for item in list_short_route_questions_without_answer_on_route(course):
            print(f"asked on the short route, which folds its answer: {item}")
    for title, count in count_disjoint_papers_by_title(course).items():
        print(f"{title}: {count} papers without a repeat")
    for due in list_due_content_reviews(course, dt.datetime.now(dt.UTC).date()):
        print(f"due for review: {due.file_path} “{due.name}” {due.reason}")
    for cue in measure_answer_cues(course.questions.values()):
        print(
            f"{cue.cue_description}: {cue.right_share:.1%} right, by chance {cue.chance_share:.1%} "
            f"± {cue.significance_margin:.1%}, of {cue.question_count} questions"
        )
    return 0


def run_new_command(options: argparse.Namespace) -> int:
    """Write the starting files of a course, topic, question or mock exam."""
    try:
        if options.kind == "course":
            print(_create_course(options))
        else:
            folder = options.content or find_course_folder(options.course)
            raise_if_packaged_course(folder)
            print(_create_topic_question_or_exam(options, folder))
    except (ScaffoldError, OSError) as error:
        raise CommandError(str(error)) from None
    return 0


def _create_course(options: argparse.Namespace) -> str:
    folder = _parent_folder_of_new_course(options.content) / options.folder
    title = options.title or folder.name.replace("-", " ").capitalize()
    files = scaffold.create_course(folder, title, options.exam, dt.datetime.now(dt.UTC).date())
    return (
        f"{_format_written_files(files)}\nStart it with `headroom serve {shlex.quote(str(folder))}`. A server with all "
        f"courses in {folder.parent} shows it at /courses/{folder.name}/ after a restart."
    )


def _parent_folder_of_new_course(requested: Path | None) -> Path:
    """Return the folder for a new course: by default that of several courses, or this one."""
    if requested and (requested / "syllabus.toml").exists():
        raise CommandError(
            f"{requested} has a single course; name the folder for several courses with --dir."
        )
    content_folder = read_settings().content
    if requested or not content_folder.is_dir() or (content_folder / "syllabus.toml").exists():
        return requested or Path()
    return content_folder


def _create_topic_question_or_exam(options: argparse.Namespace, folder: Path) -> str:
    target = read_scaffold_target(folder)
    if options.kind == "topic":
        files = scaffold.create_topic(
            target, options.slug, options.title, options.objective, dt.datetime.now(dt.UTC).date()
        )
        name = find_course_name_on_server(folder)
        base = f"/courses/{name}" if name else ""
        return (
            f"{_format_written_files(files)}\nAdd “{options.slug}” to the order in syllabus.toml, "
            f"at its place in the course.\nSee it at {base}/authoring/pages/{options.slug}"
        )
    if options.kind == "question":
        path, line = scaffold.add_question_or_card(target, options.topic, options.type, options.id)
        return f"Written: {path}:{line}"
    title = options.title or f"{target.course.syllabus.exam} mock exam".strip()
    path, drafts = scaffold.create_exam(
        target, options.slug, title, options.questions, options.minutes
    )
    warning = "\nIt cannot be taken yet: too few of its questions are live."
    return f"Written: {path}" + (f"{warning} {build_drafts_hint(drafts)}" if drafts else "")


def _format_written_files(files: Iterable[object]) -> str:
    return "\n".join(("Written:", *(f"  {file}" for file in files)))


COMMANDS = {"check": run_check_command, "coverage": run_coverage_command, "new": run_new_command}
