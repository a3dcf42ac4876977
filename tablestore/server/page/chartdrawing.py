"""Draws a result as bars in SVG: one bar a row, from the line of 0 to the right or left. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from tablestore.htmltext import HtmlText, html_element

_WIDTH, _LABEL, _VALUE, _LINE, _BAR = 720, 180, 96, 26, 18
_CHARACTERS = 24


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """One bar. ``value`` None: no number."""

    label: str
    value: float | None
    text: str


def bar_chart(points: Sequence[ChartPoint], x: str, y: str) -> HtmlText:
    """The bars below each other, in the order of the rows."""
    values = [point.value for point in points if point.value is not None]
    least, most = min([0.0, *values]), max([0.0, *values])
    span, room = (most - least) or 1.0, _WIDTH - _LABEL - _VALUE
    zero = _LABEL + (0.0 - least) / span * room
    shapes = [html_element("line", {"class": "grid", "x1": zero, "x2": zero, "y1": 0, "y2": len(points) * _LINE})]
    for number, point in enumerate(points):
        top = number * _LINE
        place = {"class": "label", "x": _LABEL - 10, "y": top + 17, "text-anchor": "end"}
        shapes.append(html_element("text", place, html_element("title", None, point.label), _short(point.label)))
        end = zero
        if point.value is not None:
            end = _LABEL + (point.value - least) / span * room
            box = {"x": min(zero, end), "y": top + 4, "width": max(abs(end - zero), 1.0), "height": _BAR, "rx": 2}
            shapes.append(
                html_element("rect", {"class": "value", **box}, html_element("title", None, f"{point.label}: {point.text}"))
            )
        shapes.append(html_element("text", {"class": "tick", "x": max(zero, end) + 6, "y": top + 17}, point.text))
    height = max(len(points) * _LINE, _LINE)
    frame = {"class": "chart bars", "viewBox": f"0 0 {_WIDTH} {height}", "role": "img"}
    return html_element("svg", {**frame, "aria-label": f"{y} by {x}, {len(points)} bars"}, *shapes)


def _short(text: str) -> str:
    return text if len(text) <= _CHARACTERS else f"{text[: _CHARACTERS - 1]}…"
