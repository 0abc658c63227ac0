"""Every picture as SVG: elements, scales, and the drawings made of them.

Geometry stands in attributes, x and widths in percent, y and heights in pixels; color
and type are those of the style sheet. Each drawing says in words what it shows.
"""

from app.drawings.bars import draw_bar
from app.drawings.charts import draw_chart
from app.drawings.svg import SvgChart
from app.drawings.timelines import draw_timeline
from app.estimator.estimate import Chart, Picture, StackedBar

__all__ = ["SvgChart", "draw", "draw_bar", "draw_chart", "draw_timeline"]


def draw(picture: Picture) -> SvgChart:
    """The drawing of any picture."""
    if isinstance(picture, StackedBar):
        return draw_bar(picture)
    if isinstance(picture, Chart):
        return draw_chart(picture)
    return draw_timeline(picture)
