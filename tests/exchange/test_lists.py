"""Numbered lists of questions, as a word processor and pandoc write them."""

import pytest

from app.exchange.formats.lists import read_lists
from app.exchange.items import Item
from app.exchange.markup.texts import span_around

WORD = """\
Quiz on networks

1. Which device forwards packets by their
   IP address?
a) A hub
b) A router
c) A repeater
Answer: B
Feedback: Routers read the address of the network layer,
which hubs do not.

2) Which two are layers of the OSI model?
A. Session
B. Airport
C. Transport
D. Gateway
Answers: A and C

Question 3: Ethernet frames carry a checksum.
Answer: True

4. What does MTU stand for?
Answer: maximum transmission unit | MTU size

5. How many bits has an IPv4 address?
Answer: 32
"""

PANDOC = """\
# Quiz

1.  **Which layer routes packets?**

    a.  Data link

    b.  **Network**

    c.  Transport

2.  Which are cables?

    -   [x] Twisted pair
    -   [ ] Wi-Fi
    -   [x] Fiber

3\\.  Which one is *not* a protocol?

    a\\)  TCP

    b\\)  [Copper]{.underline}

    c\\)  UDP

4.  Which is a port?
    *a) 443
    b) eth0

5.  Which unit counts bits?
    (a) Gb/s ✓
    (b) GB/s

6.  Which is a mask?
    a. /24 (correct)
    b. 80/tcp

7.  Which is the loopback?
    a. 127.0.0.1
    b. 10.0.0.1

## Answer key

7. A
"""


def said(item: Item) -> list[tuple[str, bool]]:
    return [(option.text, option.right) for option in item.options]


def test_answers_may_stand_in_a_line_below() -> None:
    reading = read_lists(WORD)
    first, two, true, short, number = reading.items

    assert first.stem == "Which device forwards packets by their IP address?"
    assert said(first) == [("A hub", False), ("A router", True), ("A repeater", False)]
    why = "Routers read the address of the network layer, which hubs do not."
    assert " ".join(first.explanation.split()) == why
    assert first.line == 3
    assert (two.kind, [o.right for o in two.options]) == (
        "multiple",
        [True, False, True, False],
    )
    assert (true.kind, said(true)) == ("true-false", [("True", True), ("False", False)])
    assert (short.kind, [o.text for o in short.options]) == (
        "short",
        ["maximum transmission unit", "MTU size"],
    )
    assert (number.kind, number.options[0].span) == ("numeric", span_around(32, 0))
    assert [remark.name for remark in reading.refused] == ["Quiz on networks"]


def test_the_right_choice_may_be_marked_in_many_ways() -> None:
    reading = read_lists(PANDOC)
    right = [[o.text for o in item.options if o.right] for item in reading.items]

    assert right == [
        ["Network"],
        ["Twisted pair", "Fiber"],
        ["Copper"],
        ["443"],
        ["Gb/s"],
        ["/24"],
        ["127.0.0.1"],
    ]
    assert reading.refused == ()
    assert reading.items[0].stem == "Which layer routes packets?"
    assert reading.items[2].stem == "Which one is *not* a protocol?"


def test_a_question_whose_answer_is_not_told_is_refused(
    subtests: pytest.Subtests,
) -> None:
    for text, why in [
        ("1. Which?\na) one\nb) two", "no choice is marked as right"),
        ("1. Which?\n**a) one**\n**b) two**", "no choice is marked as right"),
        ("1. Which?\na) one\nb) two\nAnswer: D", "names none of its choices"),
        ("1. Which?\na) **one**\nb) two\nAnswer: B", "is not the one that its answer"),
        ("1. Which?\na) one\nAnswer: A", "one choice only"),
        ("1. What is there to say?", "neither choices nor an answer"),
    ]:
        with subtests.test(text=text, why=why):
            reading = read_lists(f"{text}\n\n2. Which?\na) one\nb) two\nAnswer: A\n")

            assert [item.line for item in reading.items] == [len(text.split("\n")) + 2]
            assert [why in remark.reason for remark in reading.refused] == [True]
            assert reading.refused[0].line == 1


def test_a_letter_that_is_not_the_next_one_begins_no_choice() -> None:
    item = read_lists(
        "1. Which of them wrote it?\na) J. Postel\nV. Cerf was asked.\n"
        "b) A. Turing\nAnswer: A"
    ).items[0]

    assert [o.text for o in item.options] == [
        "J. Postel V. Cerf was asked.",
        "A. Turing",
    ]


def test_questions_without_numbers_are_parted_by_an_empty_line() -> None:
    items = read_lists(
        "Which is right?\na) this\nb) that\nAnswer: a\n\n"
        "And which is wrong?\na) this\nb) that\nAnswer: b\n"
    ).items

    assert [item.stem for item in items] == ["Which is right?", "And which is wrong?"]


def test_hostile_text_is_read_in_the_time_that_its_length_takes(
    subtests: pytest.Subtests,
) -> None:
    for name, text in zip(
        ["spaces", "stars", "brackets", "underscores", "digits", "lines"],
        [
            "1. Which?\na) x" + " " * 300_000 + "y\nb) z\nAnswer: A",
            "1. Which?\na) " + "*" * 200_000 + "\nb) z\nAnswer: A",
            "1. Which?\na) " + "[" * 100_000 + "]{.\nb) z\nAnswer: A",
            "1. " + "__" * 100_000 + "x\na) y",
            "Answers\n" + "1" * 300_000,
            "1. Which?\na) one\n" + "more\n" * 50_000 + "b) two\nAnswer: A",
        ],
        strict=True,
    ):
        with subtests.test(name):
            reading = read_lists(text)  # squared it would take hours

            assert len(reading.items) + len(reading.refused) <= 1


COFFEE = """\
Cuestionario de café

1. ¿Qué temperatura tiene el agua?
a) 60 °C
b) 93 °C
Respuesta: B
Explicación: Es la norma.
2. El espresso usa molienda gruesa.
Respuesta correcta: Falso
3. ¿Qué aumenta la extracción?
☐ Una taza grande
☑ Una molienda fina
☑ Más tiempo
4. Hvilken er rigtig?
a) Den
b) Denne
Svar: B
"""


def test_a_list_in_another_language_is_read() -> None:
    found = read_lists(COFFEE)

    first, second, third, fourth = found.items
    assert [o.text for o in first.options] == ["60 °C", "93 °C"]
    assert [o.right for o in first.options] == [False, True]
    assert first.explanation == "Es la norma."
    assert second.kind == "true-false"
    assert [o.right for o in second.options] == [False, True]
    assert third.kind == "multiple"
    assert [o.right for o in third.options] == [False, True, True]
    assert [o.text for o in fourth.options if o.right] == ["Denne"]
    [title] = found.refused
    assert title.name == "Cuestionario de café"
    assert title.reason == "it has no number, choices or answer: a title, or a note?"


def test_a_numbered_list_in_a_stem_begins_no_question() -> None:
    text = "1. Which of these hold?\n1. Hot\n2. Cold\na) 1\nb) 2\nAnswer: A\n"

    [item] = read_lists(text).items

    assert len(item.options) == 2
