"""A lab on the bench: every state, and what learners typed."""

import re
from pathlib import Path

import pytest

LABS = Path(__file__).parents[1] / "quiz" / "labs.md"
AT = "/authoring/questions/lab-xid"


@pytest.fixture
def folder(folder: Path) -> Path:
    """The tiny course with three labs."""
    quiz = folder / "topics" / "kv-cache" / "quiz.md"
    labs = LABS.read_text(encoding="utf-8").split("---\n", 2)[2]
    quiz.write_text(f"{quiz.read_text(encoding='utf-8')}\n{labs}", encoding="utf-8")
    return folder


def link(html: str, words: str) -> str:
    found = re.search(rf'href="([^"]+)"[^>]*>{words}', html)
    assert found
    return found[1].replace("&amp;", "&").partition("#")[0]


def test_a_state_shows_all_its_answers_and_is_not_refused(client) -> None:
    html = client.get(AT).text
    shown = client.get(link(html, "All answers in the state “drained”")).text
    seen = shown.split('id="seen"')[1].split("</form>")[0]

    assert "1  drain dgx-03" in seen
    assert "No diagnosis is chosen." not in seen
    assert client.get(link(html, "Harmful in “up”: reboot")).text.count("Harmful") > 1


def test_a_line_can_be_typed_in_the_preview(client) -> None:
    html = client.get(f"{AT}/form", params={"command": "sinfo", "move": "enter"}).text

    assert "PARTITION AVAIL" in html
    assert '<input type="hidden" name="ran" value="sinfo">' in html


def test_the_author_reads_what_was_typed_first_and_where_learners_stopped(client) -> None:
    page = client.get("/quiz/kv-cache/lab-xid").text
    sent = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))
    answer = re.findall(r'name="answer" value="(\w+)"', page)[0]
    data = {**sent, "answer": answer, "ran": ["nvidia-smi -L", "iotop"]}
    assert client.post("/quiz/kv-cache/lab-xid/attempts", data=data).status_code in {200, 303}

    html = client.get(AT).text

    first, last = (
        html.split(f">{t}<")[1][:400] for t in ("Typed first", "Stopped short of the goal after")
    )
    assert "nvidia-smi -L</th>" in first
    assert "iotop (no answer)</th>" in last
