"""Many files at once: shared among processes, the readings are the same."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from app.content.course import load_course

ROOT = Path(__file__).parents[2]
TINY = ROOT / "tests/courses/tiny"


@pytest.mark.parametrize("times", [1, pytest.param(9, marks=pytest.mark.drill)])
def test_a_crew_reads_what_one_reader_reads(times: int) -> None:
    program = textwrap.dedent(f"""
        from pathlib import Path
        from app.content import file_watcher as crew
        from app.content.file_reader import parse_file
        from app.content.parsed_file import compile_glossary_names

        names = compile_glossary_names(())
        tiny = Path("tests/courses/tiny")
        jobs = [
            (file.read_text(encoding="utf-8"), str(file.relative_to(tiny)), names)
            for file in sorted(tiny.rglob("*.*"))
        ]
        assert len(jobs) > 6
        every = jobs * {times}
        assert crew._parse_in_parallel(every, 3) == [parse_file(*job) for job in jobs] * {times}
    """)

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stderr == ""
    assert done.returncode == 0


@pytest.mark.drill
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_crew_ends_with_the_process_that_wants_its_readings(how: signal.Signals):
    program = textwrap.dedent("""
        import os
        import signal
        import time
        from app.content import file_watcher as crew

        # A job in the background is begun with this signal ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        wanting = os.getpid()

        def parse(*job):
            if os.getpid() == wanting:
                while True:  # a pause could begin just after the signal came
                    time.sleep(0.05)
            print("reads", flush=True)
            return "more than a pipe holds" * 100_000

        crew.parse_file = parse
        crew._parse_in_parallel([("", "", ())] * 2, 2)
    """)

    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as wanting:
        assert wanting.stdout
        assert wanting.stdout.readline() == b"reads\n"
        wanting.send_signal(how)

        try:
            wanting.communicate(timeout=60)  # until nobody is left who could print
        except subprocess.TimeoutExpired:
            os.killpg(wanting.pid, signal.SIGKILL)
            pytest.fail("a process is left")

    assert wanting.returncode == -how


@pytest.mark.drill
def test_a_large_course_comes_out_of_the_cache_as_it_went_in(tmp_path: Path) -> None:
    """Enough files to be shared; `benchmarks.content` times one of 2,000 questions."""
    course_folder = large_course(tmp_path / "course")

    course = load_course(course_folder, tmp_path / "cache")
    again = load_course(course_folder, tmp_path / "cache")

    assert (len(course.topics), len(course.questions)) == (60, 660)
    assert again == course


def large_course(folder: Path) -> Path:
    """The tiny course thirty times over, with eleven questions to a topic."""
    folder.mkdir()
    for name in ("sources.toml", "glossary.md", "syllabus.toml"):
        (folder / name).write_text((TINY / name).read_text())
    weights = (TINY / "topics/weights/quiz.md").read_text()
    cache = (TINY / "topics/kv-cache/quiz.md").read_text().partition("---\n\n")[2]
    pages = [(TINY / "topics" / t / "concept.md").read_text() for t in ("weights", "kv-cache")]
    for number in range(60):
        topic = folder / "topics" / f"topic-{number}"
        topic.mkdir(parents=True)
        page = pages[number % 2].replace("requires: weights\n", "")
        quiz = (weights + cache).rpartition("### Put the life")[0]
        for name, text in (("concept.md", page), ("quiz.md", quiz)):
            unique = text.replace("<!-- q: ", f"<!-- q: n{number}-")
            (topic / name).write_text(unique)
    return folder
