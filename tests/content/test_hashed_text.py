"""Revisions of questions outlive the names of the classes that they were made from."""

from app.markup.model import QuestionParameters, RegionBox, SvgFigure
from app.markup.text import repr_for_content_hash


def test_parameters_and_drawings_are_hashed_under_their_first_names() -> None:
    parameters = QuestionParameters({"w": (8, 16)}, (("right", "w * 2"),))
    figure = SvgFigure("<g/>", 10, 20, "T", "D", (RegionBox("a", 1, 2, 3, 4),))

    assert repr_for_content_hash(parameters) == (
        "Computed(params={'w': (8, 16)}, lets=(('right', 'w * 2'),))"
    )
    assert repr_for_content_hash({"f": figure}) == (
        "{'f': Drawing(markup='<g/>', width=10, height=20, title='T', desc='D', "
        "areas=(Area(region='a', x=1, y=2, width=3, height=4),), blurred={}, text=13, "
        "meant=False, line=1)}"
    )
