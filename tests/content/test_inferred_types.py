"""A question needs no `type` where its form says it."""

import pytest

from app.content.file_reader import parse_file

FRONT = "---\nobjective: 1.1\nsource: paged\n---\n\n"
FORMS = {
    "single": "- [x] Four\n  > Yes.\n- [ ] `Two` bytes\n  > No.",
    "multiple": "- [x] Four\n- [x] Five\n- [ ] `Two`\n  > No.",
    "true-false": "- [x] True\n- [ ] False\n  > No.",
    "numeric": "- [x] `-2.5 °C ± 0.1 °C`\n- [ ] `4 °C`\n  > No.",
    "order": "1. one\n2. two\n3. three\n\nBecause.",
    "match": "| A | B |\n|---|---|\n| a | b |\n| c | d |\n\nBecause.",
    "cloze": "A page has [[blocks|parts]].",
    "place": "- [x] `gpu` The GPU\n- [ ] `host` The host\n  > No.",
    "design": "> [!TIP]\n> Fewer bytes.",
}
KEYS = {
    "place": "figure: server.svg\n",
    "design": "estimate: inference-memory\ngiven: {model: 70B}\nchoose: [gpu]\naccept: [fits]\n",
}
SVG = "topics/a/quiz.md"


@pytest.mark.parametrize("kind", FORMS)
def test_the_form_says_the_type(kind: str) -> None:
    comment = f"<!-- q: one\n{KEYS.get(kind, '')}-->"
    text = f"{FRONT}### Which one of these?\n{comment}\n\n{FORMS[kind]}\n"

    parsed = parse_file(text, "topics/a/quiz.md")
    declared = parse_file(text.replace("<!-- q: one", f"<!-- q: one\ntype: {kind}"), parsed.path)

    assert [q.type for q in parsed.questions] == [kind]
    (one,), (other,) = parsed.questions, declared.questions
    assert (one.answer, one.explanation) == (other.answer, other.explanation)
    assert [p.code for p in parsed.problems] == [p.code for p in declared.problems]


def test_a_list_beside_options_without_a_tick_is_asked_about() -> None:
    text = f"{FRONT}### Which?\n<!-- q: one -->\n\n1. a\n2. b\n3. c\n\n- [ ] d\n- [ ] e\n"

    parsed = parse_file(text, "topics/a/quiz.md")

    assert not parsed.questions
    assert "or tick the right option" in parsed.problems[0].hint


def test_the_removed_rule_is_named_with_what_to_write_instead() -> None:
    text = f"{FRONT}### Which?\n<!-- q: one\npartial: coverage\n-->\n\n{FORMS['multiple']}\n"

    (problem, *_) = parse_file(text, "topics/a/quiz.md").problems

    assert (problem.code, "partial: net" in problem.hint) == ("E13", True)


@pytest.mark.parametrize("kind", ["single", "numeric", "order", "match", "cloze"])
def test_a_question_without_a_comment_gets_an_id(kind: str) -> None:
    text = f"{FRONT}### Which one of these?\n\n{FORMS[kind]}\n"

    parsed = parse_file(text, "topics/a/quiz.md")

    assert [p.code for p in parsed.problems] == ["E01"]
    assert [item.title for item in parsed.unidentified] == ["Which one of these?"]
