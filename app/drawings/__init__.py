"""Pictures of an estimate as SVG, each with the table behind it."""

from app.drawings.bars import draw_bar
from app.drawings.charts import draw_chart
from app.drawings.svg import Drawing
from app.drawings.timelines import draw_timeline
from app.estimator.estimate import Chart, Picture, StackedBar

__all__ = ["Drawing", "draw", "draw_bar", "draw_chart", "draw_timeline"]


def draw(picture: Picture) -> Drawing:
    """The drawing of any picture."""
    if isinstance(picture, StackedBar):
        return draw_bar(picture)
    if isinstance(picture, Chart):
        return draw_chart(picture)
    return draw_timeline(picture)
