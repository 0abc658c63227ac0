"""Cleaned drawings as HTML: the opening of one, and the figure of a page."""

import re
from collections.abc import Sequence
from html import escape

from app.content.model import ImageBlock, SvgFigure

WIDTHS = ("wide", "narrow")


def opening(drawing: SvgFigure, width: str, name: str) -> str:
    """The opening of its `<svg>`, with what is read aloud; ids begin with `name`."""
    own = f"{escape(name)}-{width}"
    return (
        f'<svg class="g dia {width}" viewBox="0 0 {drawing.width:g} {drawing.height:g}"'
        f' role="img" aria-labelledby="{own}-title" aria-describedby="{own}-desc"'
        ' fill="none" stroke="currentColor" font-family="sans-serif" font-size="13">'
        f'<title id="{own}-title">{escape(drawing.title)}</title>'
        f'<desc id="{own}-desc">{escape(drawing.desc)}</desc>'
    )


def figure(picture: ImageBlock, drawings: Sequence[SvgFigure], number: int = 1) -> str:
    """A picture of a page as a figure; one that is no drawing is shown as it is.

    `number` counts how often the page has shown it, which keeps the ids apart.
    """
    file = re.sub(r"[./]", "-", picture.file.removesuffix(".svg"))
    name = f"fig-{file}-{number}"
    inside = "\n".join(
        f"{opening(drawing, width, name)}{drawing.markup}</svg>"
        for width, drawing in zip(WIDTHS, drawings, strict=False)
    )
    words = escape(picture.caption)
    caption = f"\n<figcaption>{words}</figcaption>" if words else ""
    if not inside:
        return f'<figure class="fig">{picture.html}{caption}</figure>' if words else picture.html
    return f'<figure class="fig dias">\n{inside}{caption}\n</figure>'
