"""A drawing as a file of its own: with the colors of the light theme inside."""

import re

from markupsafe import Markup

from app.drawings.svg import SvgChart, number

_WIDTH, _LEFT, _RIGHT, _ABOVE = 820, 60, 24, 10
_TOKEN = re.compile(r"--([\w-]+):\s*(?:light-dark\()?\s*(#[0-9a-f]+)")
_USE = re.compile(r"var\(--([\w-]+)\)")
_RULE = re.compile(r"^\.(?:g[ .]|defs)[^{]*\{[^}]*\}.*$", re.MULTILINE)
_HEIGHT = re.compile(r' height="([\d.]+)"')
_PATTERNS = (
    '<defs class="defs"><pattern id="fill-free" width="6" height="6"'
    ' patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<path d="M0 0v6" stroke-width="1"/></pattern>'
    '<pattern id="fill-over" width="7" height="7" patternUnits="userSpaceOnUse"'
    ' patternTransform="rotate(-45)"><path class="pap" d="M0 0v7"/></pattern></defs>'
)


def standalone(drawing: SvgChart, tokens: str, rules: str) -> str:
    """The drawing with its style; `tokens` and `rules` are the style sheets."""
    height = float((_HEIGHT.search(drawing.svg) or ["", "200"])[1])
    inner = drawing.svg.replace(
        Markup("<svg "),
        Markup(  # noqa: S704 - numbers of our own
            f'<svg x="{_LEFT}" y="{_ABOVE}" width="{_WIDTH - _LEFT - _RIGHT}" '
        ),
        1,
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}"'
        f' height="{number(height + 2 * _ABOVE)}" class="g">'
        f"<style>{style_of(tokens, rules)}</style>{_PATTERNS}"
        f'<rect width="100%" height="100%" fill="#fff"/>{inner}</svg>\n'
    )


def style_of(tokens: str, rules: str) -> str:
    """The rules of drawings with every color written out, light theme.

    >>> style_of("--ink: light-dark(#111, #eee)", ".g .e { fill: var(--ink) }")
    '.g .e { fill: #111 } .g { font: 400 13px "Source Sans 3", sans-serif }'
    """
    colors = dict(_TOKEN.findall(tokens))
    found = " ".join(rule[0] for rule in _RULE.finditer(rules))
    written = _USE.sub(lambda use: colors.get(use[1], "sans-serif"), found)
    return f'{written} .g {{ font: 400 13px "Source Sans 3", sans-serif }}'
