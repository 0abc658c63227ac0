"""QTI 1.2, as learning platforms pack their quizzes."""

import io
import zipfile

import pytest

from app.import_export.formats.qti_reader import read_qti
from app.import_export.items import BLANK_CHARACTER, ImportResult, ItemBlank


def choice(*labels: tuple[str, str]) -> str:
    return "".join(
        f'<response_label ident="{name}"><material>'
        f'<mattext texttype="text/plain">{words}</mattext></material></response_label>'
        for name, words in labels
    )


def item(kind: str, stem: str, asked: str, rules: str, more: str = "") -> str:
    return f"""<item ident="i1" title="An item"><itemmetadata><qtimetadata>
<qtimetadatafield><fieldlabel>question_type</fieldlabel>
<fieldentry>{kind}</fieldentry></qtimetadatafield></qtimetadata></itemmetadata>
<presentation><material><mattext texttype="text/html">{stem}</mattext></material>
{asked}</presentation><resprocessing><outcomes>
<decvar maxvalue="100" minvalue="0" varname="SCORE" vartype="Decimal"/></outcomes>
{rules}</resprocessing>{more}</item>"""


def read(*items: str) -> ImportResult:
    text = (
        '<questestinterop xmlns="http://www.imsglobal.org/xsd/ims_qtiasiv1p2">'
        f'<assessment ident="a" title="T"><section ident="s">{"".join(items)}</section>'
        "</assessment></questestinterop>"
    )
    return read_qti(text.encode())


def earns(condition: str, score: int = 100) -> str:
    return (
        f'<respcondition continue="No"><conditionvar>{condition}</conditionvar>'
        f'<setvar action="Set" varname="SCORE">{score}</setvar></respcondition>'
    )


def equal(value: str, response: str = "response1") -> str:
    return f'<varequal respident="{response}">{value}</varequal>'


def note(name: str, words: str) -> str:
    return (
        f'<itemfeedback ident="{name}"><flow_mat><material>'
        f'<mattext texttype="text/plain">{words}</mattext></material></flow_mat>'
        "</itemfeedback>"
    )


ONE = (
    '<response_lid ident="response1" rcardinality="Single"><render_choice>'
    f"{choice(('1', 'A switch'), ('2', 'A pump'), ('3', 'A rack'))}"
    "</render_choice></response_lid>"
)


def test_a_single_choice_with_what_is_said_to_it() -> None:
    rules = (
        '<respcondition continue="Yes"><conditionvar><varequal respident="response1">'
        '2</varequal></conditionvar><displayfeedback linkrefid="2_fb"/></respcondition>'
    ) + earns(equal("1"))
    notes = note("2_fb", "It moves water.") + note("general_fb", "Packets pass it.")
    (found,) = read(
        item(
            "multiple_choice_question",
            "What &lt;b&gt;forwards&lt;/b&gt;?",
            ONE,
            rules,
            notes,
        )
    ).items

    assert found.kind == "single"
    assert found.stem == "What **forwards**?"
    assert [(o.text, o.right) for o in found.options] == [
        ("A switch", True),
        ("A pump", False),
        ("A rack", False),
    ]
    assert found.options[1].feedback == "It moves water."
    assert found.explanation == "Packets pass it."


def test_a_multiple_choice_says_what_may_not_be_ticked() -> None:
    asked = ONE.replace("Single", "Multiple")
    rules = earns(f"<and>{equal('1')}{equal('3')}<not>{equal('2')}</not></and>")
    (found,) = read(item("multiple_answers_question", "Which?", asked, rules)).items

    assert found.kind == "multiple"
    assert [o.right for o in found.options] == [True, False, True]


def test_what_earns_less_than_the_best_is_worth_a_part() -> None:
    rules = earns(equal("1"), 40) + earns(equal("2"), 80) + earns(equal("3"), 0)
    (found,) = read(item("multiple_choice_question", "Which?", ONE, rules)).items

    assert found.kind == "single"
    assert [(o.right, o.credit) for o in found.options] == [
        (False, 0.5),
        (True, 0.0),
        (False, 0.0),
    ]


def test_true_and_false() -> None:
    asked = (
        '<response_lid ident="response1" rcardinality="Single"><render_choice>'
        f"{choice(('t', 'True'), ('f', 'False'))}</render_choice></response_lid>"
    )
    (found,) = read(item("true_false_question", "It is.", asked, earns(equal("f")))).items

    assert found.kind == "true-false"
    assert [o.right for o in found.options] == [False, True]


def test_words_and_numbers() -> None:
    asked = '<response_str ident="response1"><render_fib/></response_str>'
    word = item(
        "short_answer_question",
        "Name it.",
        asked,
        earns(equal("fan") + equal("a fan")),
    )
    bounds = (
        f'<or>{equal("4.0")}<and><vargte respident="response1">3.5</vargte>'
        '<varlte respident="response1">4.5</varlte></and></or>'
    )
    number = item("numerical_question", "How many?", asked, earns(bounds))
    exact = item("numerical_question", "How many more?", asked, earns(equal("7")))
    short, ranged, bare = read(word, number, exact).items

    assert [o.text for o in short.options] == ["fan", "a fan"]
    assert (ranged.options[0].span.low, ranged.options[0].span.high) == (3.5, 4.5)
    assert bare.options[0].span.center == 7


def test_rows_with_partners_and_decoys() -> None:
    rows = "".join(
        f'<response_lid ident="response_{n}"><material><mattext>{left}</mattext>'
        "</material><render_choice>"
        f"{choice(('x', 'heat'), ('y', 'power'), ('z', 'noise'))}</render_choice>"
        "</response_lid>"
        for n, left in ((1, "pump"), (2, "battery"))
    )
    rules = earns(equal("x", "response_1"), 50) + earns(equal("y", "response_2"), 50)
    (found,) = read(item("matching_question", "Match.", rows, rules)).items

    assert [(p.left, p.right) for p in found.pairs] == [
        ("pump", "heat"),
        ("battery", "power"),
        ("", "noise"),
    ]


def test_gaps_to_choose_for_keep_their_choices() -> None:
    asked = "".join(
        f'<response_lid ident="response_{name}"><render_choice>'
        f"{choice(*labels)}</render_choice></response_lid>"
        for name, labels in (
            ("a", (("1", "leaf"), ("2", "root"))),
            ("b", (("3", "spine"), ("4", "branch"))),
        )
    )
    rules = earns(equal("1", "response_a"), 50) + earns(equal("3", "response_b"), 50)
    stem = "Each [a] switch meets each [b] switch."
    found = read(item("multiple_dropdowns_question", stem, asked, rules))

    (one,) = found.items
    assert one.text == f"Each {BLANK_CHARACTER} switch meets each {BLANK_CHARACTER} switch."
    assert one.blanks == (
        ItemBlank(("leaf",), wrong=("root",)),
        ItemBlank(("spine",), wrong=("branch",)),
    )
    assert not found.losses


@pytest.mark.parametrize(
    ("kind", "asked", "rules", "reason"),
    [
        (
            "essay_question",
            '<response_str ident="response1"><render_fib/></response_str>',
            "",
            "essay",
        ),
        ("text_only_question", "", "", "nothing is asked"),
        ("x", '<response_xy ident="response1"/>', "", "drawing"),
        (
            "short_answer_question",
            '<response_str ident="response1"><render_fib/></response_str>',
            "",
            "no right answer",
        ),
    ],
)
def test_what_has_no_counterpart_is_refused_with_a_reason(
    kind: str, asked: str, rules: str, reason: str
) -> None:
    found = read(item(kind, "Say.", asked, rules))

    assert not found.items
    assert reason in found.refused_items[0].sentence


def test_a_package_names_the_file_of_what_it_refuses() -> None:
    essay = item(
        "essay_question",
        "Say.",
        '<response_str ident="response1"><render_fib/></response_str>',
        "",
    )
    text = f"<questestinterop><assessment>{essay}</assessment></questestinterop>"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("imsmanifest.xml", "<manifest/>")
        archive.writestr("quiz/quiz.xml", text)
    (refused,) = read_qti(packed.getvalue()).refused_items

    assert refused.item_name == "quiz/quiz.xml: An item"


def blank(kind: str, stem: str, *labels: tuple[str, str], right: str = "1") -> ImportResult:
    asked = (
        '<response_lid ident="response_organ"><material><mattext>organ</mattext>'
        f"</material><render_choice>{choice(*labels)}</render_choice></response_lid>"
    )
    return read(item(kind, stem, asked, earns(equal(right, "response_organ"))))


def test_a_blank_alone_takes_all_of_its_spellings() -> None:
    kind, labels = (
        "fill_in_multiple_blanks_question",
        (("1", "HBM"), ("2", "GPU memory")),
    )
    (one,) = blank(kind, "The [organ] holds [other] it.", *labels).items

    assert one.kind == "cloze"
    assert one.text == f"The {BLANK_CHARACTER} holds \\[other\\] it."
    assert one.blanks == (ItemBlank(("HBM", "GPU memory")),)


def test_a_list_to_choose_from_alone_is_a_gap() -> None:
    labels = (("1", "red"), ("2", "&lt;b&gt;blue&lt;/b&gt;"))
    (one,) = blank("multiple_dropdowns_question", "It is [organ].", *labels).items

    assert (one.kind, one.text) == ("cloze", f"It is {BLANK_CHARACTER}.")
    assert one.blanks == (ItemBlank(("red",), wrong=("<b>blue</b>",)),)


def test_blanks_to_type_into_are_gaps() -> None:
    asked = '<response_str ident="response_organ"><render_fib/></response_str>'
    rules = earns(equal("HBM", "response_organ") + equal("stacks", "response_organ"))
    kind = "fill_in_multiple_blanks_question"
    (one,) = read(item(kind, "The [organ] holds it.", asked, rules)).items

    assert (one.kind, one.blanks) == ("cloze", (ItemBlank(("HBM", "stacks")),))


def test_a_gap_without_a_place_is_refused() -> None:
    found = blank("multiple_dropdowns_question", "It is so.", ("1", "red"), ("2", "b"))

    assert "has no place in its text" in found.refused_items[0].sentence


def test_plain_words_are_no_html() -> None:
    asked = (
        '<response_lid ident="response1" rcardinality="Single"><render_choice>'
        f"{choice(('1', '&lt;br&gt;'), ('2', '&lt;b&gt;x&lt;/b&gt;'))}</render_choice>"
        "</response_lid>"
    )
    stem = "Which is &lt;b&gt; for?"
    text = item("multiple_choice_question", stem, asked, earns(equal("1")))
    (found,) = read(text.replace("text/html", "text/plain")).items
    (untold,) = read(text.replace(' texttype="text/html"', "")).items

    assert found.stem == untold.stem == "Which is \\<b> for?"
    assert [o.text for o in found.options] == ["\\<br>", "\\<b>x\\</b>"]


def test_canvas_gives_hits_less_misses() -> None:
    asked = ONE.replace("Single", "Multiple")
    rules = earns(f"<and>{equal('1')}{equal('3')}<not>{equal('2')}</not></and>")
    (canvas,) = read(item("multiple_answers_question", "Which?", asked, rules)).items
    (other,) = read(item("", "Which?", asked, rules)).items

    assert (canvas.partial, other.partial) == ("net", "off")


def test_several_of_which_one_is_right_are_a_single_choice() -> None:
    asked = ONE.replace("Single", "Multiple")
    rules = earns(f"<and>{equal('1')}<not>{equal('2')}</not></and>")
    found = read(item("multiple_answers_question", "Which?", asked, rules))

    assert [(i.kind, i.partial) for i in found.items] == [("single", "")]
    assert "several boxes could be ticked" in found.losses[0].sentence


def test_marks_of_single_ticks_add_up_and_wrong_ones_cost() -> None:
    asked = ONE.replace("Single", "Multiple")
    rules = earns(equal("1"), 50) + earns(equal("3"), 50) + earns(equal("2"), -50)
    (found,) = read(item("", "Which?", asked, rules)).items

    assert [o.right for o in found.options] == [True, False, True]
    assert found.partial == "net"


def test_what_counts_wrong_answers_earns_nothing() -> None:
    rules = earns(equal("1")) + earns(equal("2")).replace("SCORE", "D2L_Incorrect")
    (found,) = read(item("", "Which?", ONE, rules)).items

    assert [o.right for o in found.options] == [True, False, False]


def test_every_number_that_counts_is_kept() -> None:
    asked = '<response_str ident="response1"><render_fib/></response_str>'
    rules = earns(f"<or>{equal('4')}{equal('5')}</or>")
    (found,) = read(item("numerical_question", "How many?", asked, rules)).items
    half = earns('<vargte respident="response1">3</vargte>')
    refused = read(item("numerical_question", "How many?", asked, half)).refused_items

    assert [o.span.center for o in found.options if o.span] == [4, 5]
    assert "one end only" in refused[0].sentence


def test_several_questions_in_one_item_are_no_match() -> None:
    asked = "".join(
        f'<response_lid ident="r{n}"><render_choice>{choice(*labels)}</render_choice>'
        "</response_lid>"
        for n, labels in (
            (1, (("1", "leaf"), ("2", "root"))),
            (2, (("3", "spine"), ("4", "branch"))),
        )
    )
    found = read(item("", "Which?", asked, earns(equal("1", "r1"))))

    assert "asks several questions at once" in found.refused_items[0].sentence


def test_a_refused_item_does_not_hide_what_another_of_its_name_lost() -> None:
    lost = item(
        "multiple_choice_question",
        "Which &lt;u&gt;one&lt;/u&gt;?",
        ONE,
        earns(equal("1")),
    )
    essay = '<response_str ident="response1"><render_fib/></response_str>'
    found = read(lost, item("essay_question", "Say.", essay, ""), lost)

    assert [r.item_name for r in found.losses] == ["Which one?", "Which one?"]
    lines = [
        found.losses[0].line_number,
        found.refused_items[0].line_number,
        found.losses[1].line_number,
    ]
    assert lines == sorted(set(lines))


def test_a_question_without_a_right_choice_is_refused() -> None:
    asked = ONE.replace("Single", "Multiple")
    none = f"<and><not>{equal('1')}</not><not>{equal('2')}</not></and>"
    reading = read(item("multiple_answers_question", "Which?", asked, earns(none)))

    assert not reading.items
    assert reading.refused_items[0].sentence == "it is right where nothing is ticked"
