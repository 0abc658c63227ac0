"""`headroom new topic|question|exam`: starting points that pass the check."""

import datetime as dt
import re
import tomllib
from pathlib import Path

import pytest

from app.authoring import scaffold as new_files
from app.authoring.scaffold import ITEM_TYPES
from app.cli import main
from app.content.check import check_course
from app.content.course import load_course
from app.content.course_facts import apportion_by_weight
from tests.amounts import each_of_sample, sample

pytestmark = pytest.mark.usefixtures("read_once")

STARTS = Path(new_files.__file__).parent / "starts"


def new(folder: Path, *words: str) -> int:
    return main(["new", words[0], "--content", str(folder), *words[1:]])


def finish(folder):
    """Make live what was begun."""
    for file in folder.glob("topics/*/*.md"):
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(x for x in lines if x != "status: draft\n"))


def lacking(folder):
    """What is wrong beside what the command says is left to do: words and order.

    Looked at as it will be once it is live.
    """
    finish(folder)
    return [p for p in check_course(folder) if p.code not in {"W36", "W77"}]


@each_of_sample("kind", ITEM_TYPES, 4)
def test_a_question_of_every_type_passes_the_check(folder, kind):
    assert new(folder, "question", "--topic", "weights", "--type", kind) == 0

    assert lacking(folder) == []
    made = load_course(folder)
    assert f"weights-{kind}" in {**made.questions, **made.cards}


OF_ONE_SUBJECT = re.compile(r"\b(?:GPU|model|weights|FP\d+|BF16|token|estimate)s?\b")


def test_a_question_to_begin_with_speaks_of_no_subject(subtests: pytest.Subtests):
    for kind in [kind for kind in ITEM_TYPES if kind != "design"]:
        with subtests.test(kind=kind):
            for file in STARTS.glob(f"{kind}.*"):
                assert OF_ONE_SUBJECT.findall(file.read_text(encoding="utf-8")) == []


@pytest.mark.drawn
def test_all_types_together_pass_the_check_twice_over(folder):
    for kind in (*ITEM_TYPES, *sample(ITEM_TYPES, 1, "twice")):
        assert new(folder, "question", "--topic", "weights", "--type", kind) == 0

    assert lacking(folder) == []


def test_a_question_stands_behind_what_was_there(folder, capsys):
    path = folder / "topics/weights/quiz.md"
    before = path.read_text()

    new(folder, "question", "--topic", "weights")
    after = path.read_text()

    assert after.startswith(before.rstrip("\n"))
    line = int(capsys.readouterr().out.rsplit(":", 1)[1])
    assert after.splitlines()[line - 1].startswith("### Starting point")


def test_a_topic_without_a_quiz_gets_one(folder):
    (folder / "topics/weights/cards.md").unlink()

    assert new(folder, "question", "--topic", "weights", "--type", "card") == 0

    assert lacking(folder) == []
    assert load_course(folder).cards["weights-card"].objectives == ("1.1",)


def test_an_id_is_taken_once(folder, capsys):
    words = ("question", "--topic", "weights", "--id", "k-trade")

    assert new(folder, *words) == 2
    assert "“k-trade” was used before" in capsys.readouterr().err


def test_an_id_that_was_retired_is_not_given_again(folder):
    new(folder, "question", "--topic", "weights")
    check_course(folder, apply_fixes=True)
    lock = folder / "ids.lock"
    lines = lock.read_text().splitlines()
    gone = [i for i, line in enumerate(lines) if line.startswith("weights-single ")]
    assert gone
    quiz = folder / "topics/weights/quiz.md"
    quiz.write_text(quiz.read_text().partition("### Starting point")[0])

    new(folder, "question", "--topic", "weights")

    assert "q: weights-single-2" in quiz.read_text()


def test_a_topic_that_is_not_there_is_named_with_its_neighbor(folder, capsys):
    assert new(folder, "question", "--topic", "wieghts") == 2
    assert "Did you mean “weights”?" in capsys.readouterr().err


@pytest.mark.parametrize("title", ["Power", 'Of "watts" & {braces}: $5 #1', "Ünïcode"])
def test_a_topic_passes_the_check_with_nothing_lacking(folder, title):
    before = dt.datetime.now(dt.UTC).date()
    assert new(folder, "topic", "power", "--title", title) == 0

    assert lacking(folder) == []
    topic = load_course(folder).topics["power"]
    assert topic.title == title
    assert len(topic.questions) == 5
    assert topic.reviewed
    assert before <= topic.reviewed <= dt.datetime.now(dt.UTC).date()


def test_two_topics_begun_alike_pass_the_check(folder):
    new(folder, "topic", "power", "--title", "Power")
    new(folder, "topic", "cooling", "--title", "Cooling", "--objective", "2.1")

    assert lacking(folder) == []
    assert load_course(folder).topics["cooling"].objectives == ("2.1",)


def test_nothing_is_written_over(folder, capsys):
    new(folder, "exam", "another")
    page = (folder / "topics/weights/concept.md").read_bytes()
    exam = (folder / "exams/another.toml").read_bytes()

    assert new(folder, "topic", "weights", "--title", "Other") == 2
    assert new(folder, "exam", "another", "--title", "Other") == 2

    assert capsys.readouterr().err.count("is there already") == 2
    assert (folder / "topics/weights/concept.md").read_bytes() == page
    assert (folder / "exams/another.toml").read_bytes() == exam


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("topic", "Not A Slug", "--title", "T"), "cannot stand in an address"),
        (("topic", "../up", "--title", "T"), "cannot stand in an address"),
        (("topic", "t", "--title", "two\nlines"), "one line"),
        (("topic", "t", "--title", "T", "--objective", "9.9"), "is not an objective"),
        (("exam", "e", "--questions", "400"), "too few questions"),
    ],
)
def test_what_cannot_be_is_one_sentence(folder, capsys, words, said):
    assert new(folder, *words) == 2

    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_an_exam_follows_the_weights_and_passes_the_check(folder):
    assert new(folder, "exam", "longer", "--questions", "10", "--minutes", "9") == 0

    assert lacking(folder) == []
    exam = load_course(folder).exams["longer"]
    assert (exam.question_count, exam.minutes) == (10, 9)
    assert exam.question_count_by_domain == {"1": 6, "2": 4}


def test_an_exam_counts_items_without_an_id(folder):
    quiz = folder / "topics/weights/quiz.md"
    quiz.write_text(re.sub(r"<!-- q: (w-grow|w-smaller)(?= -->|\n)", "<!--", quiz.read_text()))

    before = quiz.read_text()

    assert new(folder, "exam", "e", "--questions", "10") == 0

    exam = tomllib.loads((folder / "exams/e.toml").read_text())
    assert exam["domains"] == {"1": 6, "2": 4}
    assert quiz.read_text() == before
    assert check_course(folder, apply_fixes=True) == []


def test_an_exam_too_large_says_what_lacks_and_what_would_do(folder, capsys):
    quiz = folder / "topics/weights/quiz.md"
    draft = "<!-- q: w-bf16-70b\n"
    quiz.write_text(quiz.read_text().replace(draft, f"{draft}status: draft\n"))

    assert new(folder, "exam", "e", "--questions", "40") == 2

    said = capsys.readouterr().err
    have = dict(re.findall(r"domain (\d) has (\d+) of \d+", said))
    assert re.findall(r"of (\d+)", said) == ["24", "16"]
    assert "Not counted are drafts, labs, designs, questions with “level: deeper”" in said
    fits = re.search(r"--questions (\d+) would do", said)[1]
    assert apportion_by_weight({"1": 60, "2": 40}, int(fits))["1"] <= int(have["1"])
    assert new(folder, "exam", "e", "--questions", fits) == 0
    assert "Drafts" not in capsys.readouterr().out
    assert new(folder, "exam", "f", "--questions", str(int(fits) + 1)) == 0
    assert "Drafts would count: 1 of topics/weights/quiz.md" in capsys.readouterr().out


def test_an_exam_of_a_fresh_course_plans_with_its_drafts(tmp_path, capsys):
    folder = tmp_path / "bread"
    assert main(["new", "course", str(folder), "--title", "Bread"]) == 0
    capsys.readouterr()

    assert new(folder, "exam", "short") == 0

    said = capsys.readouterr().out
    asked = tomllib.loads((folder / "exams/short.toml").read_text())["questions"]
    assert f"too few of its questions are live. Drafts would count: {asked} of topics/" in said
    assert "then delete the line “status: draft”" in said
    assert [p.code for p in check_course(folder) if p.path == "exams/short.toml"] == ["E71"]
    finish(folder)
    assert [p for p in check_course(folder) if p.path == "exams/short.toml"] == []


def test_an_exam_asks_at_most_what_the_bank_has(folder):
    new(folder, "exam", "longest")

    made = tomllib.loads((folder / "exams/longest.toml").read_text())

    assert made["questions"] == sum(made["domains"].values())
    assert lacking(folder) == []


def test_a_course_without_sources_says_what_comes_first(folder, capsys):
    (folder / "sources.toml").write_text("")

    assert new(folder, "topic", "t", "--title", "T") == 2
    assert "sources.toml lists no source yet" in capsys.readouterr().err


def test_a_folder_that_is_none_is_one_sentence(tmp_path, capsys):
    assert new(tmp_path / "none", "topic", "t", "--title", "T") == 2
    assert "is not a folder" in capsys.readouterr().err


def test_a_course_to_begin_with_names_no_license(tmp_path):
    new_files.create_course(tmp_path / "c", "Backups", "", dt.date(2026, 6, 9))

    assert load_course(tmp_path / "c").syllabus.license == ""


def test_questions_are_parted_by_weight():
    assert apportion_by_weight({"1": 0.38, "2": 0.40, "3": 0.22}, 50) == {"1": 19, "2": 20, "3": 11}
    for number in range(60):
        assert sum(apportion_by_weight({"a": 1, "b": 1, "c": 1}, number).values()) == number


def test_what_was_begun_is_seen_by_authors_alone(folder):
    new(folder, "topic", "power", "--title", "Power")
    new(folder, "question", "--topic", "weights")

    made = load_course(folder)

    assert "power" not in made.topics
    assert "weights-single" not in made.questions
    assert "power" in made.with_drafts().topics
    assert "weights-single" in made.with_drafts().topics["weights"].questions
    assert [p.code for p in check_course(folder)] == []


def test_text_to_begin_with_is_told_once_it_is_live(folder):
    new(folder, "topic", "power", "--title", "Power")
    new(folder, "question", "--topic", "weights")
    finish(folder)

    assert "W77" in {p.code for p in check_course(folder)}


def test_a_topic_that_cannot_be_read_is_told_with_what_keeps_it(folder, capsys):
    (folder / "topics" / "weights" / "concept.md").write_bytes(b"\xff\xfe\xff")

    assert new(folder, "question", "--topic", "weights") == 2

    said = capsys.readouterr().err
    assert "“weights” cannot be read: topics/weights/concept.md:1" in said


def test_no_design_is_begun_in_a_course_without_calculators(folder, capsys):
    syllabus = folder / "syllabus.toml"
    syllabus.write_text(f"calculators = false\n{syllabus.read_text()}")

    assert new(folder, "question", "--topic", "weights", "--type", "design") == 2

    assert "calculators = false" in capsys.readouterr().err
