"""Pages of mkdocs-quiz."""

from app.exchange.formats.mkdocs import read_mkdocs

PAGE = """\
# A page

<quiz>
Which are **even**?

- [x] 2
> Yes.
- [ ] 3
* [X] 4
- [] 5

Halves are whole.
</quiz>

=== "Example"

    <quiz>
    2 + 2 = [[4]]

    ---
    That is `arithmetic`.
    </quiz>

~~~markdown
<quiz>
Only shown?
- [x] yes
</quiz>
~~~

<quiz>
Nothing to answer.
</quiz>
"""


def test_check_boxes_are_options_and_quotes_their_feedback() -> None:
    item = read_mkdocs(PAGE).items[0]

    assert (item.kind, item.stem, item.line) == ("multiple", "Which are **even**?", 3)
    assert [(o.text, o.right) for o in item.options] == [
        ("2", True),
        ("3", False),
        ("4", True),
        ("5", False),
    ]
    assert item.options[0].feedback == "Yes."
    assert item.explanation == "Halves are whole."


def test_double_brackets_are_gaps() -> None:
    item = read_mkdocs(PAGE).items[1]

    assert item.kind == "cloze"
    assert [b.answers for b in item.blanks] == [("4",)]
    assert item.explanation == "That is `arithmetic`."


def test_examples_in_code_are_left_alone_and_empty_ones_named() -> None:
    reading = read_mkdocs(PAGE)

    assert len(reading.items) == 2
    assert [str(r) for r in reading.refused] == [
        "line 31: Nothing to answer.: it has neither options nor gaps"
    ]
