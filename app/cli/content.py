"""The commands `check`, `new` and `coverage`, and the course option of `import` and `export`."""

import argparse
import contextlib
import dataclasses
import datetime as dt
import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from app.authoring import scaffold
from app.authoring.course_report import (
    compute_coverage,
    count_disjoint_papers,
    coverage_column_titles,
    measure_answer_cues,
    reviews_due,
)
from app.authoring.scaffold import ScaffoldError, ScaffoldTarget, read_course
from app.cli.database import read_settings
from app.cli.import_export import exchange_command
from app.cli.launcher import CommandError
from app.content.check import (
    check_course,
    describe_new_lock,
    fix_folder,
    format_diff,
    format_problems,
    plan_file_changes,
)
from app.content.courses import SINGLE_COURSE, find_course_folders, name_course, skipped_folders
from app.content.file_watcher import SHARED, FileStamps, WatchedFiles
from app.content.library import assemble_library
from app.content.routes import has_short_route, measure_short_route
from app.markup.ids import did_you_mean
from app.markup.problems import LOG, RULES, ContentProblem, explain_code, make_problem
from app.settings import Settings

_OPTION = "--course"


def course_folder(settings: Settings, name: str) -> Path:
    """Return the folder of a course. Raises CommandError if the name is missing or unknown."""
    courses = find_course_folders(settings.content)
    if SINGLE_COURSE in courses:
        if name:
            raise CommandError(f"{settings.content} is one course alone; leave {_OPTION} out.")
        return courses[SINGLE_COURSE]
    if not name and len(courses) == 1:
        return next(iter(courses.values()))
    if name not in courses:
        meant = f"there is no course “{name}”" if name else "there are several courses"
        raise CommandError(f"{meant}; name one with {_OPTION}: {', '.join(courses)}.")
    return courses[name]


def pop_course_option(words: Sequence[str]) -> tuple[list[str], str]:
    """Split `--course NAME` from the arguments; the name is empty if the option is missing."""
    rest, name = list(words), ""
    for place, word in enumerate(rest):
        option, equals, value = word.partition("=")
        if option != _OPTION:
            continue
        if not equals:
            value = rest[place + 1] if place + 1 < len(rest) else ""
        if not value:
            raise CommandError(f"{_OPTION} needs the name of a course.")
        name = value
        del rest[place : place + (1 if equals else 2)]
        break
    return rest, name


def split_course_option(words: Sequence[str], naming: Sequence[str]) -> tuple[list[str], Path]:
    """Split the course option from the arguments; returns the rest and the course's folder.

    If the arguments ask for help or contain an option in `naming`, which names a
    folder, the folder is that of the settings.
    """
    settings = read_settings()
    rest, name = pop_course_option(words)
    asked = {word.partition("=")[0] for word in rest}
    if not name and asked & {*naming, "-h", "--help"}:
        return rest, settings.content
    return rest, course_folder(settings, name)


def check_content(given: argparse.Namespace) -> int:
    """Print the problems after applying `--fix`. Returns 1 if one is an error."""
    if given.explain:
        return _explain_codes(given.explain.upper())
    if given.dry_run and not given.fix:
        raise CommandError("--dry-run shows what --fix would write; say --fix as well.")
    if given.accept and not given.fix:
        raise CommandError("--accept says what --fix may enter; say --fix as well.")
    with _hide_internal_traceback(shown=given.verbose):
        return _check_courses(given)


@contextlib.contextmanager
def _hide_internal_traceback(*, shown: bool) -> Iterator[None]:
    """Hide tracebacks of internal failures unless `shown`; problem E00 reports them anyway."""
    before = LOG.disabled
    LOG.disabled = not shown
    try:
        yield
    finally:
        LOG.disabled = before


def _check_courses(given: argparse.Namespace) -> int:
    courses = find_course_folders(requested_folder(given))
    problems: list[ContentProblem] = []
    for name, folder in courses.items():
        if given.fix:
            _apply_fixes(folder, given)
        every = [_relative_problem(name, p) for p in check_course(folder)]
        found = [p for p in every if p not in problems]  # shared files are reported once
        if given.format == "text":
            print(_course_report(name, found))
        problems += found
    beside = _skipped_folder_problems(requested_folder(given))
    if beside and given.format == "text":
        print(format_problems(beside))
    problems += beside
    gc.freeze()  # the command ends soon: skip garbage collection
    if given.format != "text":
        print(format_problems(problems, given.format))
    return int(any(p.severity == "error" for p in problems))


def _skipped_folder_problems(content: Path) -> list[ContentProblem]:
    """Report E00 for each folder that looks like a course but is not served."""
    hints = "Write its syllabus.toml.", "Use lower-case letters, digits and hyphens."
    return [
        make_problem(
            (f"{name}/syllabus.toml", 1, 1),
            "E00",
            f"The folder “{name}” is no course of the server: {why}.",
            hints[0] if why.endswith(".toml") else f"Rename it. {hints[1]}",
        )
        for name, why in skipped_folders(content).items()
    ]


def _relative_problem(course: str, found: ContentProblem) -> ContentProblem:
    """Return a problem with its path relative to the folder of all courses."""
    shared = found.path.startswith(f"{SHARED}/")
    if shared == bool(course):  # relative to that folder already
        return found
    above = ".." if shared else course
    return dataclasses.replace(found, path=f"{above}/{found.path}")


def _course_report(course: str, found: list[ContentProblem]) -> str:
    """Format the problems of one course, under its name if there are several."""
    words = format_problems(found)
    gap = "\n" if found else " "
    return f"{course}:{gap}{words}" if course else words


def _apply_fixes(folder: Path, given: argparse.Namespace) -> None:
    """Apply `--fix`, or only compute it in a dry run, and print the diff.

    With a machine-readable format, the diff goes to standard error.
    """
    today = dt.datetime.now(dt.UTC).date()
    make = plan_file_changes if given.dry_run else fix_folder
    made = make(folder, today, given.accept)
    out = sys.stdout if given.format == "text" else sys.stderr
    for words in (format_diff(made), describe_new_lock(made, written=not given.dry_run)):
        if words:
            print(words, file=out)


def _explain_codes(code: str) -> int:
    if code not in RULES:
        hint = did_you_mean(code, RULES) or "They stand behind the place: E04, W87."
        raise CommandError(f"{code} is not a code of the check. {hint}")
    print(explain_code(code))
    return 0


def requested_folder(given: argparse.Namespace) -> Path:
    """Return the folder argument, or the folder of the settings."""
    if given.folder and given.course:
        raise CommandError("name a folder or a course, not both.")
    folder: Path = given.folder or course_folder(read_settings(), given.course)
    if not folder.is_dir():
        raise CommandError(f"{folder} is not a folder; name the folder that holds the course.")
    return folder


_PAUSE = 0.2
Found = tuple[ContentProblem, ...]


def watch_folder(folder: Path, wait: Callable[[], None] | None = None) -> Iterator[str]:
    """Yield the text to print: all problems first, then the differences after each change.

    Ends when `wait`, which is called between two checks, raises KeyboardInterrupt.
    """
    pause = wait or (lambda: time.sleep(_PAUSE))
    files = WatchedFiles(folder, None)
    before: Found | None = None
    try:
        while True:
            found, stamps = _check_with_stamps(files, folder)
            if before is None:
                yield format_problems(found)
            elif found != before:
                yield describe_differences(before, found)
            before = found
            while True:
                pause()
                if stamps.changed():
                    break
    except KeyboardInterrupt:
        return


def describe_differences(before: Found, now: Found) -> str:
    """Return which problems were fixed, which are new, and how many are left.

    A problem that only moved to another line is neither.
    """
    old, new = _index_problems(before), _index_problems(now)
    gone = [problem for words, problem in old.items() if words not in new]
    come = [problem for words, problem in new.items() if words not in old]
    lines = [f"mended  {_problem_location(p)} {p.code} {p.message}" for p in gone]
    for p in come:
        lines.append(f"new     {_problem_location(p)} {p.code} {p.message}")
        if p.hint:
            lines.append(f"        {p.hint}")
    summary = format_problems(now).splitlines()[-1]
    return "\n".join([*lines, f"{dt.datetime.now().astimezone():%H:%M:%S}  {summary}"])


def _check_with_stamps(files: WatchedFiles, folder: Path) -> tuple[Found, FileStamps]:
    # Check the files as they are. Only a server keeps the last good version.
    files.good.clear()
    readings, stamps = files.read()
    return tuple(sorted(assemble_library(readings, folder).problems)), stamps


def _index_problems(problems: Found) -> dict[tuple[str, str, str, int], ContentProblem]:
    """Index problems by everything but their line; equal ones by their order."""
    found: dict[tuple[str, str, str, int], ContentProblem] = {}
    for problem in problems:
        number = 0
        while (name := (problem.path, problem.code, problem.message, number)) in found:
            number += 1
        found[name] = problem
    return found


def _problem_location(problem: ContentProblem) -> str:
    return f"{problem.path}:{problem.line}:{problem.column}"


def new_command(words: Sequence[str], folder: Path, name: str = "") -> int:
    """Run `headroom new …`. Returns 0 if written, 2 with a message on stderr if not.

    `name` is the course's name, empty on a server with a single course.
    """
    given = _build_parser(folder).parse_args(words)
    given.base = f"/courses/{name}" if name else ""
    try:
        of_course = getattr(given, "begin", None)
        said: str = of_course(read_course(given.dir), given) if of_course else _start_course(given)
    except (ScaffoldError, OSError) as error:
        sys.stderr.write(f"headroom: {error}\n")
        return 2
    sys.stdout.write(f"{said}\n")
    return 0


def coverage_command(words: Sequence[str], folder: Path) -> int:
    """Run `headroom coverage`: items per objective, and answer cues of choice questions."""
    parser = argparse.ArgumentParser(
        prog="headroom coverage", description="Count what serves each objective."
    )
    parser.add_argument("folder", nargs="?", type=Path, default=folder, metavar="DIR")
    name_course(parser)
    library = read_course(parser.parse_args(words).folder).library
    for row in compute_coverage(library):
        sys.stdout.write(f"{row.number} {row.name}\n")
        cells = zip(coverage_column_titles(), row.cells, strict=True)
        sys.stdout.write("".join(f"  {head}: {cell}\n" for head, cell in cells))
    if has_short_route(library.topics.values()):
        short = measure_short_route(library)
        sys.stdout.write(
            f"short route: {short.words:,} words, {short.covered:,} of {short.questions:,} "
            "exam-level questions\n"
        )
    for title, count in count_disjoint_papers(library).items():
        sys.stdout.write(f"{title}: {count} papers without a repeat\n")
    for due in reviews_due(library, dt.datetime.now(dt.UTC).date()):
        sys.stdout.write(f"due for review: {due.path} “{due.name}” {due.why}\n")
    for cue in measure_answer_cues(library.questions.values()):
        sys.stdout.write(
            f"{cue.name}: {cue.right:.1%} right, by chance {cue.chance:.1%} "
            f"± {cue.noise:.1%}, of {cue.questions} questions\n"
        )
    return 0


def watch_command(folder: Path) -> int:
    """Run `headroom check --watch` until it is interrupted."""
    with contextlib.suppress(KeyboardInterrupt):  # may be raised while printing
        for words in watch_folder(folder):
            sys.stdout.write(f"{words}\n")
            sys.stdout.flush()
    return 0


def _build_parser(folder: Path) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="headroom new", description="Write a commented starting point."
    )
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        *("--content", "--dir"),
        dest="dir",
        metavar="DIR",
        type=Path,
        default=folder,
        help="the course (HEADROOM_CONTENT)",
    )
    name_course(shared)
    kinds = parser.add_subparsers(required=True, metavar="course|topic|question|exam")
    _add_course(kinds, folder)
    topic = kinds.add_parser("topic", parents=[shared], help="a page with all it needs")
    topic.add_argument("slug")
    topic.add_argument("--title", required=True)
    topic.add_argument("--objective", default="", help="a number of syllabus.toml")
    topic.set_defaults(begin=_start_topic)
    question = kinds.add_parser("question", parents=[shared], help="a question or card of a topic")
    question.add_argument("--topic", required=True, metavar="SLUG")
    question.add_argument("--type", choices=scaffold.KINDS, default="single")
    question.add_argument("--id", default="", help="else one is made of topic and type")
    question.set_defaults(begin=_start_question)
    exam = kinds.add_parser("exam", parents=[shared], help="a mock exam")
    exam.add_argument("slug")
    exam.add_argument("--title", default="")
    exam.add_argument("--questions", type=_parse_count, default=0)
    exam.add_argument("--minutes", type=_parse_count, default=0)
    exam.set_defaults(begin=_start_exam)
    return parser


def _add_course(kinds: Any, folder: Path) -> None:
    course = kinds.add_parser("course", help="a course beside others")
    course.add_argument("slug", help="its folder, and its name in addresses")
    course.add_argument("--title", required=True)
    course.add_argument("--exam", default="", help="the short name of the exam")
    course.add_argument(
        *("--content", "--dir"),
        dest="dir",
        metavar="DIR",
        type=Path,
        default=folder,
        help="the folder that holds the courses (HEADROOM_CONTENT)",
    )


def _start_course(given: argparse.Namespace) -> str:
    if (given.dir / "syllabus.toml").exists():
        raise ScaffoldError(
            f"{given.dir} is one course alone; name the folder that shall hold several with --dir."
        )
    today = dt.datetime.now(dt.UTC).date()
    place = given.dir / given.slug
    files = scaffold.new_course(place, given.title, given.exam, today)
    names = "\n".join(f"  {file}" for file in files)
    return (
        f"Written:\n{names}\nA server of this course alone (HEADROOM_CONTENT={place}) "
        f"shows it at /; one of all courses in {given.dir}, once it is started again, "
        f"at /courses/{given.slug}/"
    )


def _start_topic(course: ScaffoldTarget, given: argparse.Namespace) -> str:
    today = dt.datetime.now(dt.UTC).date()
    files = scaffold.new_topic(course, given.slug, given.title, given.objective, today)
    names = "\n".join(f"  {file}" for file in files)
    return (
        f"Written:\n{names}\nName “{given.slug}” in the order of syllabus.toml where "
        f"it is to be read.\nSee it at {given.base}/authoring/pages/{given.slug}"
    )


def _start_question(course: ScaffoldTarget, given: argparse.Namespace) -> str:
    path, line = scaffold.new_question(course, given.topic, given.type, given.id)
    return f"Written: {path}:{line}"


def _start_exam(course: ScaffoldTarget, given: argparse.Namespace) -> str:
    title = given.title or f"{course.library.syllabus.exam} mock exam".strip()
    path = scaffold.new_exam(course, given.slug, title, given.questions, given.minutes)
    return f"Written: {path}"


def _parse_count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 500:
        raise argparse.ArgumentTypeError(f"“{text}” is not a number from 1 to 500")
    return int(text)


def new(words: Sequence[str]) -> int:
    """Run `headroom new`: start a topic, a question or a mock exam."""
    if words[:1] == ["course"]:
        return new_command(words, read_settings().content)
    rest, folder = split_course_option(words, ("--content", "--dir"))
    return new_command(rest, folder, _served_course_name(folder) or "")


def exchange(words: Sequence[str]) -> int:
    """Run `headroom import` or `headroom export`."""
    rest, folder = split_course_option(words, ("--content",))
    return exchange_command(rest, folder, read_settings().database, _served_course_name(folder))


def _served_course_name(folder: Path) -> str | None:
    """Return the course's name on the server; None for any other folder."""
    courses = find_course_folders(read_settings().content)
    return next((name for name, place in courses.items() if place == folder), None)


def coverage(words: Sequence[str]) -> int:
    """Run `headroom coverage`: count what the course has for each objective."""
    rest, name = pop_course_option(words)
    given = name or not any(not word.startswith("-") for word in rest)
    _, folder = split_course_option(words, ()) if given else (rest, read_settings().content)
    return coverage_command(rest, folder)


def watch_content(given: argparse.Namespace) -> int:
    """Print problems after every change until interrupted."""
    folder = requested_folder(given)
    if given.fix or given.explain or given.format != "text":
        raise CommandError("--watch prints text and writes nothing; leave the others out.")
    courses = find_course_folders(folder)
    if SINGLE_COURSE not in courses:
        raise CommandError(f"--watch looks at one course; name one of {', '.join(courses)}.")
    return watch_command(folder)
