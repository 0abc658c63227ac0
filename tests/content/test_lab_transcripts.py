"""Transcripts of labs that authors bring along: wildcards, prompts, steps out of reach."""

import pytest

from app.content.file_reader import parse_file
from app.questions.lab_session import replay_lab_lines
from app.questions.types.lab import LabSpec

LAB = """---
title: T
objective: 1.1
source: a
---

### A link is slow. Why?
<!-- q: link
host: node-7
start: slow
goal: fixed
-->

```console first in slow
$ ibstat
Rate: 100
```
> `Rate: 100`: too slow.

```console in fixed
$ ibstat
Rate: 400
```

```console in slow to fixed
$ ibportstate 12 7 reset
```
> The port trains again.

```console
$ iblinkinfo …
12 7 4X
```

- [x] The port
- [ ] The switch
  > It runs.
"""


def told(text: str) -> list[str]:
    found = parse_file(text, "topics/a/quiz.md").problems
    return [f"{p.line} {p.code} {p.message} {p.hint}" for p in found]


def problems(old: str = "", new: str = "") -> list[str]:
    assert old in LAB
    return told(LAB.replace(old, new, 1))


def answers(spelling: str, typed: str) -> bool:
    text = LAB.replace("iblinkinfo …", spelling)
    question = parse_file(text, "topics/a/quiz.md").questions[0]
    assert isinstance(question.answer, LabSpec)
    return bool(replay_lab_lines(question.answer.lab, [typed]).entries[0].command_indices)


def test_the_lab_has_no_problem() -> None:
    assert problems() == []


@pytest.mark.parametrize(
    "typed", ["iblinkinfo", "iblinkinfo -l", "iblinkinfo a b", "sudo iblinkinfo --switch 3 a"]
)
def test_a_last_ellipsis_is_any_rest_or_none(typed: str) -> None:
    assert answers("iblinkinfo …", typed)


def test_what_stands_before_a_last_ellipsis_has_to_be_there() -> None:
    assert answers("ethtool -S …", "ethtool -S eth0")
    assert answers("apt remove …", "apt remove")
    assert not answers("ethtool -S …", "ethtool eth0")
    assert not answers("apt remove …", "apt purge a")


def test_an_ellipsis_before_other_words_or_as_a_value_is_one_word() -> None:
    assert answers("cp … /tmp", "cp a /tmp")
    assert not answers("cp … /tmp", "cp a b /tmp")
    assert not answers("squeue -i …", "squeue")


def test_an_ellipsis_is_any_host() -> None:
    assert answers("ssh … uptime -p", "ssh root@node3 uptime -p")
    assert any("cannot stand for a program" in p for p in problems("iblinkinfo …", "ssh a …"))
    assert any("cannot stand for a program" in p for p in problems("iblinkinfo …", "… -v"))


@pytest.mark.parametrize("sign", ["...", "[...]", "*", ".*", "<node>"])
def test_other_signs_for_any_text_are_told(sign: str) -> None:
    (line,) = problems("iblinkinfo …", f"iblinkinfo {sign}")

    assert " W89 " in line
    assert f"“{sign}” in “iblinkinfo {sign}” has to be typed as it stands." in line


@pytest.mark.parametrize("command", ["ls *", "cat /var/log/*", "grep a.* file", "kill %1"])
def test_stars_of_the_shell_are_not(command: str) -> None:
    assert problems("iblinkinfo …", command) == []


@pytest.mark.parametrize("prompt", ["# ", "root@node-7:~# ", "[root@node-7 ~]# ", "> ", "% "])
def test_a_command_behind_another_prompt_is_told(prompt: str) -> None:
    (line,) = problems("12 7 4X", f"12 7 4X\n\n{prompt}ibstatus")

    assert " W89 " in line
    assert "Write $ ibstatus" in line


@pytest.mark.parametrize("line", ["# a comment of a file", "#Entity  SMACT", "> quoted"])
def test_other_lines_of_an_output_are_not(line: str) -> None:
    assert problems("12 7 4X", line) == []


def test_a_lab_without_options_is_told_that_it_asks_for_a_diagnosis() -> None:
    text = LAB.partition("- [x]")[0]
    (line,) = told(text)

    assert " E22 The lab asks for no diagnosis" in line


def test_a_command_that_is_needed_in_two_states_is_one_step_that_either_answer_reaches() -> None:
    once = "```console in fixed\n$ ibstat\nRate: 400\n```"
    twice = "```console needed in fixed\n$ ibstat\nRate: 400\n```\n> `Rate: 400`: mended."
    labs = []
    for text in (NEEDED, NEEDED.replace(once, twice), LAB.replace(once, twice)):
        answer = parse_file(text, "topics/a/quiz.md").questions[0].answer
        assert isinstance(answer, LabSpec)
        labs.append(answer.lab)
    lines = ["ibportstate 12 7 reset", "ibstat"]

    assert problems(once, twice) == []
    assert [len(lab.goal_ids) for lab in labs] == [2, 2, 3]
    assert [len(replay_lab_lines(lab, lines).reached_goals) for lab in labs] == [1, 2, 2]
    assert len(replay_lab_lines(labs[1], ["ibstat"]).reached_goals) == 1


NEEDED = LAB.replace("first in slow", "needed in slow")
OTHER = NEEDED.replace("in fixed\n$ ibstat", "in fixed\n$ ibstatus")
BOTH = NEEDED.replace("in fixed\n$ ibstat", "in fixed needed\n$ ibstatus\n$ ibstat")


@pytest.mark.parametrize("text", [NEEDED, OTHER, NEEDED.replace("needed in slow", "needed")])
def test_first_in_place_of_needed_silences_the_message_that_advises_it(text: str) -> None:
    (line,) = told(text)

    assert (
        " W89 After “ibportstate 12 7 reset” the needed “ibstat” does not count any more." in line
    )
    assert line.endswith("; or write first in place of needed: it has to be run before.")
    assert told(text.replace("needed", "first")) == []


def test_the_other_advice_silences_it_as_well() -> None:
    (line,) = told(OTHER)
    assert "Answer it in fixed as well, with needed;" in line
    answer = "```console in fixed needed\n$ ibstat\nRate: 400\n```\n> `Rate: 400`: mended.\n\n"
    assert told(OTHER.replace("- [x]", f"{answer}- [x]")) == []

    assert len(told(NEEDED)) == 1
    assert (
        told(
            NEEDED.replace("Rate: 400\n```", "Rate: 400\n```\n> Mended.").replace(
                "in fixed\n", "in fixed needed\n"
            )
        )
        == []
    )


def test_one_spelling_in_common_makes_needed_commands_one_step() -> None:
    assert told(BOTH.replace("Rate: 400\n```", "Rate: 400\n```\n> Mended.")) == []


def test_first_without_a_state_counts_in_the_first_state_and_answers_in_all() -> None:
    text = LAB.replace("first in slow", "first").replace("in fixed\n$ ibstat", "\n$ ibstatus")
    answer = parse_file(text, "topics/a/quiz.md").questions[0].answer
    assert isinstance(answer, LabSpec)
    before, after = (
        replay_lab_lines(answer.lab, lines)
        for lines in (["ibstat", "ibportstate 12 7 reset"], ["ibportstate 12 7 reset", "ibstat"])
    )

    assert [len(session.reached_goals) for session in (before, after)] == [2, 1]
    assert after.entries[-1].output == "Rate: 100"
    assert answer.lab.is_goal_out_of_reach(after.state, after.reached_goals)
    assert not answer.lab.is_goal_out_of_reach(before.state, before.reached_goals)


def test_first_in_a_lab_of_one_state_is_told() -> None:
    text = LAB.replace("first in slow", "first").replace("slow to fixed", "slow")
    text = text.replace("in fixed\n$ ibstat", "in slow\n$ ibstatus").replace("goal: fixed\n", "")
    (line,) = told(text)

    assert " W89 “ibstat” cannot be first: no command leads to another state." in line
    assert "Write needed in place of first." in line


def test_two_answers_in_one_state_say_which_state_to_take_away() -> None:
    (line,) = problems("```console\n$ iblinkinfo …", "```console in slow\n$ ibstat")

    assert " E90 " in line
    assert "Take slow away from the in of one of the two" in line
