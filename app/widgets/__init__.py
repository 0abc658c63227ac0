"""Charts and calculator forms as HTML and SVG."""

from app.estimator.result import Chart, Picture, StackedBar
from app.widgets.bar_charts import draw_bar
from app.widgets.line_charts import draw_chart, draw_timeline
from app.widgets.svg import SvgChart


def draw_picture(picture: Picture) -> SvgChart:
    """Draw any chart of an estimate as SVG."""
    if isinstance(picture, StackedBar):
        return draw_bar(picture)
    if isinstance(picture, Chart):
        return draw_chart(picture)
    return draw_timeline(picture)
