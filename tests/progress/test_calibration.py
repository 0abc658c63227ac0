"""How sure a learner was, against how often they were right."""

import xml.etree.ElementTree as ET

from app.progress.calibration import build_calibration_chart


def said(**levels: tuple[int, int]) -> dict[tuple[int, bool], int]:
    """Answers by level, as `sure_3=(all, right)`."""
    found = {}
    for name, (count, right) in levels.items():
        level = int(name[-1])
        found |= {(level, True): right, (level, False): count - right}
    return found


def elements(figure, tag: str) -> list[ET.Element]:
    return list(ET.fromstring(str(figure.svg)).iter(tag))  # noqa: S314 - our own


def test_levels_with_few_answers_are_counted_and_not_drawn():
    found = build_calibration_chart(said(sure_3=(4, 4)))

    assert found.svg == ""
    assert found.answer_count == 4
    assert found.sentences == ()


def test_sure_and_wrong_are_answers_nobody_would_check():
    (words,) = build_calibration_chart(said(sure_3=(118, 93))).sentences

    assert words == (
        "When you were sure, you were right 79% of the time; 25\u00a0answers you "
        "were sure of were wrong."
    )


def test_each_level_is_held_against_what_its_word_stands_for():
    guess, thought, sure = build_calibration_chart(
        said(sure_1=(60, 52), sure_2=(50, 36), sure_3=(90, 50))
    ).levels

    assert [level.comparison_with_target for level in (guess, thought, sure)] == [
        "above",
        "within",
        "below",
    ]


def test_good_guesses_are_worth_more_trust():
    words = build_calibration_chart(said(sure_1=(60, 52))).sentences[-1]

    assert "you know more than you think" in words


def test_a_range_lies_around_its_point_and_inside_the_drawing():
    drawn = build_calibration_chart(said(sure_2=(12, 12)))

    (dot,) = elements(drawn, "circle")
    (line,) = [e for e in elements(drawn, "line") if e.attrib["class"] == "edge"]
    top, foot = float(line.attrib["y1"]), float(line.attrib["y2"])
    assert 16 <= top <= float(dot.attrib["cy"]) < foot <= 236
