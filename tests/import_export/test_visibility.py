"""HTML that nobody sees: it comes into no text, and is told."""

import pytest

from app.import_export.formats.gift import read_gift
from app.import_export.formats.moodle_xml import read_moodle
from app.import_export.formats.qti_reader import read_qti
from app.import_export.html_to_markdown import convert_html_to_markdown
from app.import_export.items import ItemSkippedError

TOLD = "words that its HTML hides are left out"
HIDDEN = [
    '<span style="display:none">42</span>',
    '<span style="DISPLAY : none !important">42</span>',
    '<span style="color:red; visibility:hidden">42</span>',
    "<span hidden>42</span>",
    '<span hidden="">42</span>',
    '<span style="opacity:0">42</span>',
    '<span style="font-size: 0px">42</span>',
    '<span style="position:absolute; left:-9999px">42</span>',
    '<span style="text-indent:-5000px">42</span>',
    '<span style="height:1px; overflow:hidden">42</span>',
    '<span style="clip: rect(0, 0, 0, 0)">42</span>',
    '<span style="color:#fff">42</span>',
    '<span style="color: transparent">42</span>',
    '<font color="white">42</font>',
    '<span class="sr-only">42</span>',
    '<span class="hidden-readable">42</span>',
    '<span class="answer hidden">42</span>',
    '<span style="display:none">4<b>2</b><i style="color:red">!</i></span>',
    '<label style="display:none">42</label>',
    '<x-answer style="display:none">42</x-answer>',
    '<p style="display:none">42</p>',
    "<ul hidden><li>42</li></ul>",
    "<details><summary>Answer</summary>42</details>",
    '<p class="ui-helper-hidden-accessible">42</p>',
    '<p class="collapse">42</p>',
    "<p popover>42</p>",
    '<span style="filter: opacity(0)">42</span>',
    '<span style="zoom:0">42</span>',
    '<span style="scale: 0">42</span>',
    '<span style="translate:-9999px">42</span>',
    '<span style="font:0/0 a">42</span>',
    '<span style="font-size:.01px">42</span>',
    '<span style="opacity:.01">42</span>',
    '<span style="opacity:1%">42</span>',
    '<span style="clip-path:polygon(0 0, 0 0, 0 0)">42</span>',
    '<span style="color:rgb(255 255 255)">42</span>',
    '<span style="color:rgb(100%, 100%, 100%)">42</span>',
    '<span style="color:rgba(255, 255, 255, 1)">42</span>',
    '<span style="color:rgb(0 0 0 / 0)">42</span>',
    '<span style="color:hsl(0, 0%, 100%)">42</span>',
    '<span style="color:#fefefe">42</span>',
    '<span style="color:snow">42</span>',
    '<span style="background:#ff0;color:#ffff00">42</span>',
    '<span style="background:teal;color: Teal">42</span>',
    '<span style="background:black;color:#000">42</span>',
    '<span style="-webkit-text-fill-color:transparent">42</span>',
    '<style>.key, p#k {display:none}</style><span class="key">42</span>',
]
UNTOLD = ["<!-- 42 -->", "<template>42</template>", "<script>42</script>"]
SEEN = [
    '<span style="color:red">42</span>',
    '<span style="margin-left:-2px">42</span>',
    '<div style="background:#000"><span style="color:#fff">42</span></div>',
    '<span style="opacity:0.5">42</span>',
    "<details open><summary>42</summary></details>",
    '<style>@media print {.key {display:none}}</style><span class="key">42</span>',
    '<span style="width:0">42</span>',
    '<p class="collapse show">42</p>',
    '<p class="overflow-hidden hidden-xs">42</p>',
    '<span style="opacity:1.0">42</span>',
    '<span style="opacity:90%">42</span>',
    '<span style="color:rgb(0, 0, 0)">42</span>',
    '<span style="color:#ff0;background:#000">42</span>',
    '<span style="color:rgba(0,0,0,.9)">42</span>',
    '<span style="font:10px/0 a">42</span>',
    '<span style="color:hsl(0, 100%, 50%)">42</span>',
    '<div style="background:navy"><span style="color:white">42</span></div>',
]


def test_what_is_hidden_is_left_out_and_told(subtests: pytest.Subtests) -> None:
    for html in HIDDEN:
        with subtests.test(html=html):
            turned = convert_html_to_markdown(f"<div>What is it?{html}</div>")

            assert turned.markdown == "What is it?"
            assert turned.losses == (TOLD,)


def test_comments_templates_and_scripts_are_no_words(subtests: pytest.Subtests) -> None:
    for html in UNTOLD:
        with subtests.test(html=html):
            assert convert_html_to_markdown(f"What is it?{html}").markdown == "What is it?"


def test_what_is_seen_stays(subtests: pytest.Subtests) -> None:
    for html in SEEN:
        with subtests.test(html=html):
            assert "42" in convert_html_to_markdown(f"What is it? {html}").markdown


def test_hidden_words_stay_out_of_every_format(subtests: pytest.Subtests) -> None:
    seen = 'What is it?<span style="display:none">42</span>'
    escaped = seen.replace("<", "&lt;")
    moodle = (
        '<quiz><question type="truefalse"><questiontext format="{}"><text>{}</text>'
        '</questiontext><answer fraction="100"><text>true</text></answer>'
        '<answer fraction="0"><text>false</text></answer></question></quiz>'
    )
    newer = (
        '<assessmentItem identifier="i" title="t"><responseDeclaration identifier="R"'
        ' cardinality="single"><correctResponse><value>a</value></correctResponse>'
        f"</responseDeclaration><itemBody><div>{seen}</div><choiceInteraction"
        ' responseIdentifier="R" maxChoices="1"><simpleChoice identifier="a">x'
        '</simpleChoice><simpleChoice identifier="b">y</simpleChoice>'
        "</choiceInteraction></itemBody></assessmentItem>"
    )
    for name, reading in [
        ("gift html", read_gift(f"[html]{seen.replace(':', chr(92) + ':')}{{T}}")),
        ("gift", read_gift(f"{seen.replace(':', chr(92) + ':')}{{T}}")),
        ("markdown", read_gift(f"[markdown]{seen.replace(':', chr(92) + ':')}{{T}}")),
        ("moodle", read_moodle(moodle.format("html", escaped).encode())),
        ("moodle markdown", read_moodle(moodle.format("markdown", escaped).encode())),
        ("qti 2.1", read_qti(newer.encode())),
    ]:
        with subtests.test(name):
            assert [item.stem for item in reading.items] == ["What is it?"]
            assert [remark.sentence for remark in reading.losses] == [TOLD]


def test_tags_too_deep_to_tell_what_they_hide_are_refused() -> None:
    with pytest.raises(ItemSkippedError, match="more than 60"):
        convert_html_to_markdown("<i>" * 100 + '<b style="display:none">42</b>')
