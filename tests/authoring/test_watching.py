"""`headroom check --watch`: what changed, and only that."""

import os
import signal
import time

from app.cli import main
from app.cli.content import check_course_at_each_change
from tests.browser.server import Server

QUIZ = "topics/kv-cache/quiz.md"


def rewrite(folder, old: str, new: str) -> None:
    path = folder / QUIZ
    path.write_text(path.read_text().replace(old, new))


def told(folder, *steps) -> list[str]:
    """What is printed while an author takes these steps, one after each look."""
    waiting = list(steps)

    def wait() -> None:
        if not waiting:
            raise KeyboardInterrupt
        waiting.pop(0)()

    return list(check_course_at_each_change(folder, wait))


def test_all_problems_come_first(folder):
    rewrite(folder, "- [ ] Accuracy", "- [ ]Accuracy")

    (first,) = told(folder)

    assert first.startswith(f"{QUIZ}:12:3 E24 ")
    assert first.endswith("1 error, 0 warnings.")


def test_then_only_what_changed(folder):
    rewrite(folder, "- [ ] Accuracy", "- [ ]Accuracy")

    _, second, third = told(
        folder,
        lambda: rewrite(folder, "- [ ] A larger", "- [ ]A larger"),
        lambda: rewrite(folder, "- [ ]Accuracy", "- [ ] Accuracy"),
    )

    assert second.startswith(f"new     {QUIZ}:32:3 E24 ")
    assert "Accuracy" not in second
    assert second.endswith("2 errors, 0 warnings.")
    assert third.startswith(f"fixed   {QUIZ}:12:3 E24 ")
    assert "larger" not in third


def test_a_change_that_mends_and_breaks_nothing_is_silent(folder):
    said = told(
        folder,
        lambda: rewrite(folder, "Accuracy for speed", "Accuracy for haste"),
        lambda: None,
    )

    assert len(said) == 1


def test_a_new_file_is_noticed(folder):
    def add() -> None:
        (folder / "topics/more").mkdir()
        (folder / "topics/more/notes.md").write_text("x")

    _, second = told(folder, add, lambda: None)

    assert "Nothing reads a file of this name." in second


def test_what_does_not_go_together_is_refused(folder, capsys):
    assert main(["check", str(folder), "--watch", "--fix"]) == 2
    assert "--watch prints text" in capsys.readouterr().err


def test_an_interrupt_ends_it_quietly(folder, tmp_path):
    said = tmp_path / "said"
    said.touch()
    process = Server(tmp_path / "data", folder).begin(said, "check", str(folder), "--watch")

    def wait_for(words: str) -> None:
        while not said.read_text().endswith(f"{words}\n"):
            assert process.is_alive(), said.read_text()
            time.sleep(0.02)

    wait_for("No problems.")
    rewrite(folder, "- [ ] Accuracy", "- [ ]Accuracy")
    wait_for("1 error, 0 warnings.")
    assert "E24" in said.read_text().splitlines()[1]

    before = said.read_text()
    os.kill(process.pid, signal.SIGINT)
    process.join(timeout=60)  # only so that nothing hangs for ever

    assert process.exitcode == 0
    assert said.read_text() == before
