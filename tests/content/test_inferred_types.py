"""A question needs no `type` where its form says it."""

import dataclasses

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


@pytest.mark.parametrize("kind", ["single", "true-false", "numeric", "place"])
def test_a_kind_without_parts_refuses_a_rule_of_partial_credit_at_its_line(kind: str) -> None:
    comment = f"<!-- q: one\n{KEYS.get(kind, '')}partial: each\n-->"
    text = f"{FRONT}### Which one of these?\n{comment}\n\n{FORMS[kind]}\n"

    (problem, *_) = (p for p in parse_file(text, "topics/a/quiz.md").problems if p.code == "E12")

    line = text.split("\n").index("partial: each") + 1
    assert (problem.path, problem.line) == ("topics/a/quiz.md", line)
    assert f"no meaning for an item of the type “{kind}”" in problem.message


@pytest.mark.parametrize("kind", ["single", "numeric", "order", "match", "cloze"])
def test_a_question_without_a_comment_gets_an_id(kind: str) -> None:
    text = f"{FRONT}### Which one of these?\n\n{FORMS[kind]}\n"

    parsed = parse_file(text, "topics/a/quiz.md")

    assert [p.code for p in parsed.problems] == ["E01"]
    assert [item.title for item in parsed.unidentified_items] == ["Which one of these?"]


TYPED_OR_CHOSEN = {
    "- [x] `200 g`\n- [ ] `100 g`\n  > No.": "write a tolerance: `200 g ± 2%`",
    "- [x] 200 g\n- [ ] 100 g\n  > No.": "write a tolerance: `200 g ± 2%`",
    "- [x] 200 g ± 2%\n- [ ] 100 g\n  > No.": "write each option as a number in code: `200 g ± 2%`",
    "- [x] `1.2.3`\n- [ ] `1.2.4`\n  > No.": "write type: short into",
    "- [x] `200 g ± 2`\n- [ ] `many`\n  > No.": "write each option as a number in code",
    "- [x] `discard`\n- [x] `a discard`\n- [ ] `hooch`\n  > No.": "write type: short into",
    "- [x] `ls`\n- [ ] `cd`\n  > No.\n- [ ] `rm`\n  > No.": "write type: short into",
}


@pytest.mark.parametrize("options", TYPED_OR_CHOSEN)
def test_a_choice_that_may_be_meant_to_be_typed_is_told_with_both_ways_out(options: str) -> None:
    text = f"{FRONT}### What is it?\n<!-- q: one -->\n\n{options}\n"

    parsed = parse_file(text, "topics/a/quiz.md")

    assert [q.id for q in parsed.questions] == ["one"]
    (problem,) = [p for p in parsed.problems if p.code != "W27"]
    assert (problem.code, problem.line) == ("W40", 9)
    assert TYPED_OR_CHOSEN[options] in problem.hint
    said = parsed.questions[0].type
    declared = parse_file(text.replace("q: one -->", f"q: one\ntype: {said}\n-->"), parsed.path)
    assert [p.code for p in declared.problems if p.code not in {"W22", "W27"}] == []


@pytest.mark.parametrize("options", ["- [x] 8 GB\n- [ ] 16 GB\n  > No.\n- [ ] 4 GB\n  > No."])
def test_a_choice_of_words_or_of_several_numbers_is_one_without_a_word(options: str) -> None:
    parsed = parse_file(f"{FRONT}### Which?\n<!-- q: one -->\n\n{options}\n", "topics/a/quiz.md")

    assert (parsed.questions[0].type, parsed.problems) == ("single", ())


LAB = """### Find it.
<!-- q: one
@KEYS@-->

```console@WORDS@
$ status
down
```

- [x] The disk
- [ ] The network
  > No.
"""


@pytest.mark.parametrize(
    ("keys", "words"), [("goal: up\n", ""), ("", " needed"), ("", " in start"), ("", " up")]
)
def test_a_lab_needs_no_type_where_its_keys_or_blocks_say_it(keys: str, words: str) -> None:
    text = FRONT + LAB.replace("@KEYS@", keys).replace("@WORDS@", words)

    parsed = parse_file(text, "topics/a/quiz.md")
    declared = parse_file(text.replace("q: one\n", "q: one\ntype: console\n"), parsed.path)

    assert [q.type for q in parsed.questions] == [q.type for q in declared.questions]
    assert parsed.problems == tuple(
        dataclasses.replace(p, line=p.line - (p.line > 7)) for p in declared.problems
    )
