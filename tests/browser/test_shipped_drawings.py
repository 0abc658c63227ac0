"""The drawings of the course, measured in a browser: whole, legible, and no larger."""

from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page

from tests.amounts import each_of_sample
from tests.browser.server import Server
from tests.conftest import SHIPPED

pytestmark = pytest.mark.browser
DRAWINGS = sorted((SHIPPED / "topics").glob("*/*.svg"))
# What is wrong with one drawing, each as words; sizes are in units of the drawing. A
# theme changes colors and nothing else, so places are looked at in one.
FAULTS = """({ text, width, places }) => {
  const holder = document.querySelector("main");
  holder.innerHTML = text;
  const svg = holder.querySelector("svg");
  svg.setAttribute("class", "g dia");
  svg.style.cssText = `width: ${width}px; max-width: none; height: auto`;
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const painted = new Map();
  const rgb = (color) => {
    if (!painted.has(color)) {
      pen.clearRect(0, 0, 1, 1);
      pen.fillStyle = color;
      pen.fillRect(0, 0, 1, 1);
      painted.set(color, [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3));
    }
    return painted.get(color);
  };
  const part = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const contrast = (a, b) => {
    const [x, y] = [light(rgb(a)), light(rgb(b))];
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  };
  const box = svg.viewBox.baseVal;
  const paper = getComputedStyle(document.documentElement).backgroundColor;
  // Everything is asked for once: a drawing has a hundred shapes and as many words.
  const drawn = [...svg.querySelectorAll(":is(rect, path, circle):not(.hit)")];
  const shapes = drawn.map((element, order) => {
    const { x: left, y: top, width, height } = element.getBBox();
    const { fill, stroke, rx, ry } = getComputedStyle(element);
    const round = Math.max(parseFloat(rx) || 0, parseFloat(ry) || 0);
    const inner = element.tagName === "rect" && { left: left + round, top: top + round,
      right: left + width - round, bottom: top + height - round };
    return { element, order, inner,
      left, top, right: left + width, bottom: top + height,
      fill: /^(none|url)/.test(fill) ? null : fill,
      stroke: stroke === "none" ? null : stroke };
  });
  const points = (s) => {  // of its line, asked for once
    if (!s.points) {
      const length = s.element.getTotalLength();
      s.points = [];
      for (let at = 0; at <= length; at += 1.5) {
        const { x, y } = s.element.getPointAtLength(at);
        s.points.push([x, y]);
      }
    }
    return s.points;
  };
  const [right, bottom] = [box.width + 2, box.height + 2];
  const whole = { left: -2, top: -2, right, bottom };
  const meet = (a, b) =>
    a.left <= b.right && b.left <= a.right && a.top <= b.bottom && b.top <= a.bottom;
  const holds = (a, b) =>
    a.left <= b.left && a.right >= b.right && a.top <= b.top && a.bottom >= b.bottom;
  const words = [...svg.querySelectorAll("text")].map((element) => {
    // Of the box of a text, what its letters fill: cap height about its middle.
    const b = element.getBBox();
    const middle = b.y + b.height / 2;
    return { element, said: element.textContent.trim(), left: b.x, right: b.x + b.width,
      middle, top: middle - 5.5, bottom: middle + 5.5 };
  });
  const out = [];
  let low = 0;
  for (const w of words) {
    low = Math.max(low, w.bottom);
    if (!holds(whole, w)) out.push(`“${w.said}” leaves the drawing`);
    for (const o of places ? words : []) {
      if (o === w) break;
      if (meet(w, o)) out.push(`“${w.said}” lies on “${o.said}”`);
    }
    let ground = paper;
    for (const s of shapes.filter((s) => meet(s, w))) {
      const later = Node.DOCUMENT_POSITION_FOLLOWING;
      if (!(s.element.compareDocumentPosition(w.element) & later)) continue;
      const under = s.left <= w.left + 3 && s.right >= (w.left + w.right) / 2
        && s.top <= w.middle && s.bottom >= w.middle;
      if (s.fill && under) ground = s.fill;
      const hides = (z) => z.order > s.order && z.fill && holds(z, w);
      if (!places || !s.stroke || shapes.some(hides)) continue;
      const wide = { ...w, left: w.left - 1, right: w.right + 1 };
      if (s.inner && holds(s.inner, wide)) continue;  // words in their own frame
      if (points(s).some(([x, y]) =>
        x > wide.left && x < wide.right && y > w.top && y < w.bottom))
        out.push(`a line goes through “${w.said}”`);
    }
    const seen = contrast(getComputedStyle(w.element).fill, ground);
    if (seen < 4.5) out.push(`“${w.said}” has a contrast of ${seen.toFixed(2)}`);
  }
  for (const s of shapes) {
    low = Math.max(low, s.bottom);
    if (!holds(whole, s)) out.push(`a ${s.element.tagName} leaves the drawing`);
    if (s.stroke && !s.element.matches(".core") && contrast(s.stroke, paper) < 3)
      out.push(`a ${s.element.getAttribute("class")} has too little contrast`);
  }
  const empty = Math.round(box.height - low);
  if (empty > 14) out.push(`its lowest ${empty} units are empty`);
  return out;
}"""


@each_of_sample("theme", ["light", "dark"], 1)
def test_every_drawing_is_whole_and_legible(
    page: Page, server: Server, theme: Literal["light", "dark"]
) -> None:
    page.emulate_media(color_scheme=theme)
    page.goto(f"{server.url}/concepts/cooling")

    places = theme == "light"
    found = {
        drawing.name: faults
        for drawing in DRAWINGS
        if (faults := page.evaluate(FAULTS, {**asked(drawing), "places": places}))
    }

    assert len(DRAWINGS) > 100
    assert found == {}


BARE = """<svg class="g dia" viewBox="0 0 60 40">
  <path d="M5 5h40"/><g class="frame"><rect x="5" y="9" width="9" height="9"/></g>
  <rect class="hit" x="5" y="9" width="24" height="24"/><rect class="band"/>
  <text x="5" y="30">Words</text></svg>"""


def test_a_shape_without_a_class_is_an_outline(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/concepts/cooling")

    seen = page.evaluate(
        """(text) => {
          document.querySelector("main").innerHTML = text;
          const ink = document.createElement("i");
          ink.style.color = "var(--ink)";
          document.querySelector("main").append(ink);
          const color = getComputedStyle(ink).color;
          return [...document.querySelectorAll("svg.dia *")].map((element) => {
            const { stroke } = getComputedStyle(element);
            return [element.tagName, stroke === color ? "ink" : stroke];
          });
        }""",
        BARE,
    )

    line, _, framed, *rest = seen
    assert line == ["path", "ink"]
    assert framed[1] not in {"ink", "none"}
    assert rest == [["rect", "none"], ["rect", "none"], ["text", "none"]]


def asked(drawing: Path) -> dict[str, object]:
    """A drawing, and the width at which its page shows it: a column, or a phone."""
    width = 358 if drawing.name.endswith(".narrow.svg") else 624
    return {"text": drawing.read_text(encoding="utf-8"), "width": width}
