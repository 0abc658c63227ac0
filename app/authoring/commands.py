"""What an author does from the command line: begin something, watch the check."""

import argparse
import contextlib
import datetime as dt
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.authoring import new_files
from app.authoring.course.coverage import compute_coverage, fresh_papers, heads
from app.authoring.course.cues import cues
from app.authoring.course.reviews import reviews_due
from app.authoring.new_files import ScaffoldError, ScaffoldTarget, read_course
from app.authoring.watching import watch
from app.content.live.courses import name_course


def new_command(words: Sequence[str], folder: Path, name: str = "") -> int:
    """`headroom new …`: 0 when written, 2 when not, with a sentence on stderr.

    `name` is that of the course among several, empty for one alone.
    """
    given = _parser(folder).parse_args(words)
    given.base = f"/courses/{name}" if name else ""
    try:
        of_course = getattr(given, "begin", None)
        said: str = of_course(read_course(given.dir), given) if of_course else _begun(given)
    except (ScaffoldError, OSError) as error:
        sys.stderr.write(f"headroom: {error}\n")
        return 2
    sys.stdout.write(f"{said}\n")
    return 0


def coverage_command(words: Sequence[str], folder: Path) -> int:
    """`headroom coverage`: what each objective has, and what choices give away."""
    parser = argparse.ArgumentParser(
        prog="headroom coverage", description="Count what serves each objective."
    )
    parser.add_argument("folder", nargs="?", type=Path, default=folder, metavar="DIR")
    name_course(parser)
    library = read_course(parser.parse_args(words).folder).library
    for row in compute_coverage(library):
        sys.stdout.write(f"{row.number} {row.name}\n")
        cells = zip(heads(), row.cells, strict=True)
        sys.stdout.write("".join(f"  {head}: {cell}\n" for head, cell in cells))
    for title, count in fresh_papers(library).items():
        sys.stdout.write(f"{title}: {count} papers without a repeat\n")
    for due in reviews_due(library, dt.datetime.now(dt.UTC).date()):
        sys.stdout.write(f"due for review: {due.path} “{due.name}” {due.why}\n")
    for cue in cues(library.questions.values()):
        sys.stdout.write(
            f"{cue.name}: {cue.right:.1%} right, by chance {cue.chance:.1%} "
            f"± {cue.noise:.1%}, of {cue.questions} questions\n"
        )
    return 0


def watch_command(folder: Path) -> int:
    """`headroom check --watch`: goes on until it is interrupted, and then quietly."""
    with contextlib.suppress(KeyboardInterrupt):  # it may come while printing
        for words in watch(folder):
            sys.stdout.write(f"{words}\n")
            sys.stdout.flush()
    return 0


def _parser(folder: Path) -> argparse.ArgumentParser:
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
    topic.set_defaults(begin=_topic)
    question = kinds.add_parser("question", parents=[shared], help="a question or card of a topic")
    question.add_argument("--topic", required=True, metavar="SLUG")
    question.add_argument("--type", choices=new_files.KINDS, default="single")
    question.add_argument("--id", default="", help="else one is made of topic and type")
    question.set_defaults(begin=_question)
    exam = kinds.add_parser("exam", parents=[shared], help="a mock exam")
    exam.add_argument("slug")
    exam.add_argument("--title", default="")
    exam.add_argument("--questions", type=_count, default=0)
    exam.add_argument("--minutes", type=_count, default=0)
    exam.set_defaults(begin=_exam)
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


def _begun(given: argparse.Namespace) -> str:
    if (given.dir / "syllabus.toml").exists():
        raise ScaffoldError(
            f"{given.dir} is one course alone; name the folder that shall hold several with --dir."
        )
    today = dt.datetime.now(dt.UTC).date()
    place = given.dir / given.slug
    files = new_files.new_course(place, given.title, given.exam, today)
    names = "\n".join(f"  {file}" for file in files)
    return (
        f"Written:\n{names}\nA server of this course alone (HEADROOM_CONTENT={place}) "
        f"shows it at /; one of all courses in {given.dir}, once it is started again, "
        f"at /courses/{given.slug}/"
    )


def _topic(course: ScaffoldTarget, given: argparse.Namespace) -> str:
    today = dt.datetime.now(dt.UTC).date()
    files = new_files.new_topic(course, given.slug, given.title, given.objective, today)
    names = "\n".join(f"  {file}" for file in files)
    return (
        f"Written:\n{names}\nName “{given.slug}” in the order of syllabus.toml where "
        f"it is to be read.\nSee it at {given.base}/authoring/pages/{given.slug}"
    )


def _question(course: ScaffoldTarget, given: argparse.Namespace) -> str:
    path, line = new_files.new_question(course, given.topic, given.type, given.id)
    return f"Written: {path}:{line}"


def _exam(course: ScaffoldTarget, given: argparse.Namespace) -> str:
    title = given.title or f"{course.library.syllabus.exam} mock exam".strip()
    path = new_files.new_exam(course, given.slug, title, given.questions, given.minutes)
    return f"Written: {path}"


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 500:
        raise argparse.ArgumentTypeError(f"“{text}” is not a number from 1 to 500")
    return int(text)
