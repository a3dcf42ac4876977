"""Draws the graph of a warehouse, and the refreshes of a table, as SVG. Colours are those of the classes; words say the same.

Where no style sheet knows the classes, as in a notebook, attributes stand for them: text in the colour of the text around it, the
rest in colours that are seen on light and dark.
"""

from collections.abc import Callable, Sequence

from tablestore.htmltext import HtmlText, html_element, html_join, html_table
from tablestore.materialized.figures.freshnessfigures import PastRefresh
from tablestore.materialized.figures.tablegraph import Freshness, GraphNode, TableGraph
from tablestore.units import human_duration, iso_time

_BOX, _HEIGHT, _ACROSS, _DOWN, _EDGE = 236, 62, 72, 22, 10
_NAME_CHARACTERS = 28
_WORDS = {
    Freshness.GOOD: "fresh",
    Freshness.NEAR: "nearly due",
    Freshness.LATE: "late",
    Freshness.FAILED: "failed",
    Freshness.SUSPENDED: "suspended",
}
_COLOURS = {
    Freshness.SOURCE: "#8a8f98",
    Freshness.GOOD: "#2e9e5b",
    Freshness.NEAR: "#c77d0a",
    Freshness.LATE: "#d64545",
    Freshness.FAILED: "#d64545",
    Freshness.SUSPENDED: "#8a8f98",
}
_LINE, _TEXT, _FULL, _INCREMENTAL = "#8a8f98", {"fill": "currentColor", "font-size": 12}, "#d08700", "#1f8a9e"
_SHOWN_REFRESHES, _DRAWN_REFRESHES = 10, 60
_CHART_WIDTH, _CHART_HEIGHT, _CHART_LEFT, _CHART_BOTTOM = 720, 180, 64, 24


class RefreshHistory(tuple[PastRefresh, ...]):
    """Refreshes, newest first, which notebooks show as the chart of a page."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        heads = ("snapshot", "began", "took", "mode", "rows", "because")
        shown = self[:_SHOWN_REFRESHES]
        lines = [
            (one.snapshot_id, iso_time(one.at_ms), human_duration(one.took_ms), one.mode, _rows(one), one.reason or "")
            for one in shown
        ]
        chart = html_element("div", {"style": f"max-width:{_CHART_WIDTH}px"}, history_chart(self[:_DRAWN_REFRESHES]))
        return chart + html_table(heads, lines, (0, 2))


def graph_drawing(graph: TableGraph, link: Callable[[GraphNode], str | None]) -> HtmlText:
    """The graph as SVG, in its own size. ``link``: the page of a node."""
    places = {node.key: (_left(node), _top(node)) for node in graph.nodes}
    width = max((left for left, _ in places.values()), default=0) + _BOX + _EDGE
    height = max((top for _, top in places.values()), default=0) + _HEIGHT + _EDGE
    lines = [_line(places[source], places[target]) for source, target in graph.edges]
    nodes = [_node(node, link(node)) for node in graph.nodes]
    frame = {"class": "graph", "viewBox": f"0 0 {width} {height}", "width": width, "height": height}
    # A group: the links in it are read one by one.
    return html_element("svg", {**frame, "role": "group", "aria-label": "sources, views and materialized tables"}, *lines, *nodes)


def freshness_word(freshness: Freshness) -> str:
    """The freshness in words, empty for a source."""
    return _WORDS.get(freshness, "")


def _left(node: GraphNode) -> int:
    return _EDGE + node.place.column * (_BOX + _ACROSS)


def _top(node: GraphNode) -> int:
    return _EDGE + node.place.row * (_HEIGHT + _DOWN)


def _line(source: tuple[int, int], target: tuple[int, int]) -> HtmlText:
    left, top = source[0] + _BOX, source[1] + _HEIGHT // 2
    right, bottom = target[0], target[1] + _HEIGHT // 2
    bend = max((right - left) // 2, 24)
    path = f"M{left} {top}C{left + bend} {top} {right - bend} {bottom} {right} {bottom}"
    return html_element("path", {"class": "edge", "d": path, "fill": "none", "stroke": _LINE})


def _node(node: GraphNode, link: str | None) -> HtmlText:
    left, top = _left(node), _top(node)
    name = f"{node.database}.{node.name}" if node.name else node.key
    word = freshness_word(node.freshness)
    second = node.kind
    if node.figures is not None:
        lag = "lag unknown" if node.figures.lag_ms is None else f"lag {human_duration(node.figures.lag_ms)}"
        second = f"{word}, {lag} of {human_duration(node.figures.target_ms)}"
    mode = "" if node.figures is None else f"{node.figures.mode.lower()} refresh{_last(node.figures.last)}"
    place = {"x": left, "y": top, "height": _HEIGHT}
    shapes = html_join(
        [
            html_element("title", None, f"{name}: {second}"),
            html_element("rect", {"class": "box", **place, "width": _BOX, "rx": 8, "fill": "none", "stroke": _LINE}),
            html_element("rect", {"class": "mark", **place, "width": 6, "rx": 3, "fill": _COLOURS[node.freshness]}),
            html_element("text", {"class": "name", "x": left + 16, "y": top + 21, **_TEXT, "font-weight": "bold"}, _short(name)),
            html_element("text", {"class": "fact", "x": left + 16, "y": top + 38, **_TEXT}, second),
            html_element("text", {"class": "fact", "x": left + 16, "y": top + 53, **_TEXT}, mode),
        ]
    )
    look = {"class": f"node {node.freshness.value} {node.kind}"}
    return html_element("g", look, shapes) if link is None else html_element("a", {**look, "href": link}, shapes)


def _last(last: PastRefresh | None) -> str:
    return "" if last is None else f", last was {last.mode}"


def _short(text: str) -> str:
    return text if len(text) <= _NAME_CHARACTERS else f"{text[: _NAME_CHARACTERS - 1]}…"


def history_chart(history: Sequence[PastRefresh]) -> HtmlText:
    """The refreshes of a table as bars of how long they took, oldest left; full ones look different."""
    past = tuple(reversed(history))
    most = max((one.took_ms for one in past), default=0) or 1
    step = (_CHART_WIDTH - _CHART_LEFT) / max(len(past), 12)
    ground = _CHART_HEIGHT - _CHART_BOTTOM
    shapes = [_axis(ground, "0 s"), _axis(_height(most, most, ground), human_duration(most))]
    shapes.append(_axis(_height(most / 2, most, ground), human_duration(most // 2)))
    for number, one in enumerate(past):
        top = _height(one.took_ms, most, ground)
        title = f"snapshot {one.snapshot_id}, {iso_time(one.at_ms)}: {one.mode}, {human_duration(one.took_ms)}, {_rows(one)}"
        box = {
            "x": _CHART_LEFT + number * step + 1,
            "y": top,
            "width": max(step - 3, 2.0),
            "height": max(ground - top, 1.5),
            "rx": 2,
            "fill": _FULL if one.mode == "full" else _INCREMENTAL,
        }
        shapes.append(html_element("rect", {"class": f"refresh {_mode_class(one)}", **box}, html_element("title", None, title)))
    if past:
        ends = {"y": _CHART_HEIGHT - 6, "class": "tick", **_TEXT}
        shapes.append(html_element("text", {**ends, "x": _CHART_LEFT}, f"snapshot {past[0].snapshot_id}"))
        if len(past) > 3:
            last = _CHART_LEFT + len(past) * step
            shapes.append(html_element("text", {**ends, "x": last, "text-anchor": "end"}, f"snapshot {past[-1].snapshot_id}"))
    frame = {"class": "chart", "viewBox": f"0 0 {_CHART_WIDTH} {_CHART_HEIGHT}", "role": "img"}
    label = f"how long the last {len(past)} refreshes took: at most {human_duration(most)}"
    return html_element("svg", {**frame, "aria-label": label}, *shapes)


def _rows(one: PastRefresh) -> str:
    if one.rows_more is None:
        return "rows unknown"
    if one.rows_out is None:
        return f"{one.rows_more:+,} rows"
    return f"{one.rows_in or 0:,} rows in, {one.rows_out:,} out"


def _mode_class(one: PastRefresh) -> str:
    return "full" if one.mode == "full" else "incremental"


def _height(value: float, most: float, ground: float) -> float:
    return ground - value / most * (ground - 12)


def _axis(top: float, text: str) -> HtmlText:
    line = html_element("line", {"class": "grid", "x1": _CHART_LEFT, "x2": _CHART_WIDTH, "y1": top, "y2": top, "stroke": _LINE})
    place = {"class": "tick", "x": _CHART_LEFT - 8, "y": top + 4, "text-anchor": "end"}
    return html_join([line, html_element("text", {**place, **_TEXT}, text)])
