"""Draws the diagrams of the documents as SVG while the site is built: no script, no font and no host is needed to see them.

A hook of MkDocs (see ``mkdocs.yml``) for blocks of the language ``mermaid``, which code hosts draw by themselves. Of that language
it knows what the documents use, and refuses the rest, so that the build fails:

    flowchart TD | LR          a["text<br>text"], a --> b, a -->|text| b & c, chains, subgraph a ["text"] … end
    sequenceDiagram            participant a as text, a->>b: text, a-->>b: text

Each diagram has a title, ``accTitle: …``, which screen readers read. Text has the colour of the text around it, the rest colours
that are seen on light and dark. Boxes of one rank stand in the order of the text.
"""

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mkdocs.config.defaults import MkDocsConfig

from tablestore.htmltext import HtmlText, html_element, html_join

FONT, LINE, CHARACTER = 14, 19, 7.4
PADDING, GAP_ALONG, GAP_ACROSS, FRAME = 14, 34, 24, 14
BRAND, MUTED = "#1f8a9e", "#8a8f98"
_TEXT = {"fill": "currentColor", "font-size": FONT, "text-anchor": "middle"}
_NODE = re.compile(r'(?P<id>\w+)(?:\["(?P<quoted>[^"]+)"\]|\[(?P<plain>[^\]"]+)\])?')
_ARROW = re.compile(r"-->(?:\|(?:\"(?P<quoted>[^\"]+)\"|(?P<plain>[^|\"]+))\|)?")
_GROUP = re.compile(r'subgraph (?P<id>\w+)(?: \["(?P<label>[^"]+)"\])?')
_PARTICIPANT = re.compile(r"participant (?P<id>\w+)(?: as (?P<label>.+))?")
_MESSAGE = re.compile(r"(?P<source>\w+)(?P<arrow>--?>>)(?P<target>\w+): (?P<text>.+)")


class DiagramError(ValueError):
    """A diagram that is not drawn; the message says which line and what is expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """An arrow of a flowchart; its ends are nodes or groups."""

    source: str
    target: str
    label: str


@dataclass(slots=True, kw_only=True)
class Flowchart:
    """Nodes by their ids in the order of the text, with the lines of their labels. ``groups``: the members of each frame."""

    title: str
    down: bool
    nodes: dict[str, list[str]] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    groups: dict[str, list[str]] = field(default_factory=dict)
    group_labels: dict[str, str] = field(default_factory=dict)

    def members(self, end: str) -> Sequence[str]:
        """The nodes that an end of an arrow stands for."""
        return self.groups.get(end, [end])


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A rectangle by its middle."""

    x: float
    y: float
    width: float
    height: float


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Makes the site draw blocks of the language mermaid."""
    for fence in config.mdx_configs["pymdownx.superfences"]["custom_fences"]:
        if fence["name"] == "mermaid":
            fence["format"] = fence_drawing
    return config


def fence_drawing(source: str, language: str, class_name: str, options: Mapping[str, Any], md: Any, **_: Any) -> str:
    """The diagram of a block, as superfences wants it."""
    return html_element("div", {"class": "diagram"}, draw(source))


def draw(source: str) -> HtmlText:
    """A diagram as SVG. Raises DiagramError."""
    lines = [line.strip() for line in source.splitlines() if line.strip() and not line.strip().startswith("%%")]
    kind, *rest = lines or [""]
    titles = [line.partition(":")[2].strip() for line in rest if line.startswith("accTitle:")]
    if len(titles) != 1 or not titles[0]:
        raise DiagramError(f"expected one line 'accTitle: …', which screen readers read, found {len(titles)} in {source!r:.100}")
    rest = [line for line in rest if not line.startswith("accTitle:")]
    match kind.split():
        case ["flowchart", "TD" | "LR" as direction]:
            return _draw_flowchart(parse_flowchart(titles[0], direction == "TD", rest))
        case ["sequenceDiagram"]:
            return _draw_sequence(titles[0], rest)
    raise DiagramError(f"expected flowchart TD, flowchart LR or sequenceDiagram, found {kind!r:.100}")


# -- flowcharts


def parse_flowchart(title: str, down: bool, lines: Sequence[str]) -> Flowchart:
    """Parses the lines behind the first one. Raises DiagramError."""
    chart, group = Flowchart(title=title, down=down), ""
    for line in lines:
        if found := _GROUP.fullmatch(line):
            group = found["id"]
            chart.groups[group], chart.group_labels[group] = [], found["label"] or group
        elif line == "end" and group:
            group = ""
        else:
            _parse_chain(chart, line, group)
    if group:
        raise DiagramError(f"expected 'end' of the subgraph {group}")
    return chart


def _parse_chain(chart: Flowchart, line: str, group: str) -> None:
    sources, place = _parse_ends(chart, line, 0, group)
    while place < len(line):
        arrow = _ARROW.match(line, place)
        if arrow is None:
            raise DiagramError(f"expected an arrow '-->' at {line[place:]!r} in {line!r}")
        targets, place = _parse_ends(chart, line, arrow.end(), group)
        label = arrow["quoted"] or arrow["plain"] or ""
        chart.edges += [Edge(source=one, target=other, label=label) for one in sources for other in targets]
        sources = targets


def _parse_ends(chart: Flowchart, line: str, place: int, group: str) -> tuple[list[str], int]:
    """The nodes between two arrows, joined by ``&``, and where they end."""
    ends: list[str] = []
    while True:
        place += len(line[place:]) - len(line[place:].lstrip())
        node = _NODE.match(line, place)
        if node is None:
            raise DiagramError(f"expected a node at {line[place:]!r} in {line!r}")
        name, label = node["id"], node["quoted"] or node["plain"]
        ends.append(name)
        if name not in chart.groups:
            if group and not any(name in members for members in chart.groups.values()):
                chart.groups[group].append(name)
            if label is not None or name not in chart.nodes:
                chart.nodes[name] = (label or name).split("<br>")
        place = node.end()
        place += len(line[place:]) - len(line[place:].lstrip())
        if not line.startswith("&", place):
            return ends, place
        place += 1


def ranks_of(chart: Flowchart) -> Mapping[str, int]:
    """How many steps each node lies behind the first ones. Raises DiagramError for arrows that close a circle."""
    ranks = dict.fromkeys(chart.nodes, 0)
    pairs = [(one, other) for edge in chart.edges for one in chart.members(edge.source) for other in chart.members(edge.target)]
    for _ in range(len(ranks) + 1):
        moved = False
        for one, other in pairs:
            if ranks[other] <= ranks[one]:
                ranks[other], moved = ranks[one] + 1, True
        if not moved:
            return ranks
    raise DiagramError("expected arrows that close no circle")


def _place(chart: Flowchart) -> Mapping[str, Box]:
    """The boxes of the nodes. ``along``: in the direction of the arrows; ``across``: beside each other."""
    ranks = ranks_of(chart)
    sizes = {name: _size(lines) for name, lines in chart.nodes.items()}
    across = {name: sizes[name][0 if chart.down else 1] for name in sizes}
    for edge in chart.edges:
        if chart.down and edge.target in across:
            # Its label stands above it.
            across[edge.target] = max(across[edge.target], len(edge.label) * CHARACTER)
    along = {name: sizes[name][1 if chart.down else 0] for name in sizes}
    rows = [[name for name in chart.nodes if ranks[name] == rank] for rank in range(max(ranks.values()) + 1)]
    middles: dict[str, float] = {}
    near = {
        name: [other for edge in chart.edges for one, other in _pairs(chart, edge) if one == name]
        + [one for edge in chart.edges for one, other in _pairs(chart, edge) if other == name]
        for name in chart.nodes
    }
    for sweep in range(6):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wanted = {name: _middle([middles[other] for other in near[name] if other in middles]) for name in row}
            edge, placed = float("-inf"), []
            for name in row:
                left = max(wanted[name] - across[name] / 2, edge + GAP_ACROSS)
                middles[name], edge = left + across[name] / 2, left + across[name]
                placed.append(name)
            # A row that was pushed aside goes back as a whole.
            shift = sum(middles[name] - wanted[name] for name in placed) / len(placed)
            for name in placed:
                middles[name] -= shift
    boxes: dict[str, Box] = {}
    start = 0.0
    gaps = [_gap(chart, ranks, rank) for rank in range(len(rows))]
    for rank, row in enumerate(rows):
        depth = max(along[name] for name in row)
        for name in row:
            middle, (width, height) = (middles[name], start + depth / 2), sizes[name]
            x, y = middle if chart.down else middle[::-1]
            boxes[name] = Box(x=x, y=y, width=width, height=height)
        start += depth + gaps[rank]
    return boxes


def _gap(chart: Flowchart, ranks: Mapping[str, int], rank: int) -> float:
    """The room behind a rank: for frames that end and begin there, and for the labels of arrows."""
    room = GAP_ALONG
    for members in map(set, chart.groups.values()):
        here, there = (any(ranks[name] == place for name in members) for place in (rank, rank + 1))
        room += FRAME if here and not there else FRAME + LINE if there and not here else 0
    labels = [edge.label for edge in chart.edges if edge.label and max(ranks[one] for one in chart.members(edge.source)) == rank]
    if chart.down:
        return room + (LINE if labels else 0)
    return max([room, *(len(label) * CHARACTER + 24 for label in labels)])


def _pairs(chart: Flowchart, edge: Edge) -> list[tuple[str, str]]:
    return [(one, other) for one in chart.members(edge.source) for other in chart.members(edge.target)]


def _middle(places: Sequence[float]) -> float:
    return sum(places) / len(places) if places else 0.0


def _size(lines: Sequence[str]) -> tuple[float, float]:
    return max(map(len, lines)) * CHARACTER + 2 * PADDING, len(lines) * LINE + 1.2 * PADDING


def _draw_flowchart(chart: Flowchart) -> HtmlText:
    boxes = dict(_place(chart))
    frames = {
        group: _frame([boxes[name] for name in members], chart.group_labels[group]) for group, members in chart.groups.items()
    }
    ends = {**boxes, **frames}
    shapes = [_frame_shape(frame) for frame in frames.values()]
    shapes += [_arrow_shape(edge.label, ends[edge.source], ends[edge.target], down=chart.down) for edge in chart.edges]
    shapes += [
        _words([chart.group_labels[group]], frame.x, frame.y - frame.height / 2 + LINE, behind=True)
        for group, frame in frames.items()
    ]
    shapes += [_box_shape(box, chart.nodes[name]) for name, box in boxes.items()]
    # A label may be wider than the box below it.
    most = max([0.0, *(len(edge.label) * CHARACTER - ends[edge.target].width for edge in chart.edges)]) if chart.down else 0.0
    return _svg(chart.title, list(ends.values()), shapes, 8 + most / 2)


def _frame(boxes: Sequence[Box], label: str) -> Box:
    left, right = min(box.x - box.width / 2 for box in boxes), max(box.x + box.width / 2 for box in boxes)
    top, bottom = min(box.y - box.height / 2 for box in boxes), max(box.y + box.height / 2 for box in boxes)
    width = max(right - left + 2 * FRAME, len(label) * CHARACTER + 2 * FRAME)
    top, bottom = top - FRAME - LINE, bottom + FRAME
    return Box(x=(left + right) / 2, y=(top + bottom) / 2, width=width, height=bottom - top)


def _frame_shape(frame: Box) -> HtmlText:
    place = {"x": frame.x - frame.width / 2, "y": frame.y - frame.height / 2, "width": frame.width, "height": frame.height}
    return html_element("rect", {**place, "rx": 10, "fill": MUTED, "fill-opacity": 0.1, "stroke": MUTED, "stroke-dasharray": "5 4"})


def _box_shape(box: Box, lines: Sequence[str]) -> HtmlText:
    place = {"x": box.x - box.width / 2, "y": box.y - box.height / 2, "width": box.width, "height": box.height}
    shape = html_element("rect", {**place, "rx": 7, "fill": BRAND, "fill-opacity": 0.14, "stroke": BRAND})
    return html_join([shape, _words(lines, box.x, box.y - (len(lines) - 1) * LINE / 2 + FONT * 0.35)])


def _arrow_shape(label: str, source: Box, target: Box, *, down: bool) -> HtmlText:
    if down:
        begin, end = (source.x, source.y + source.height / 2), (target.x, target.y - target.height / 2)
        bend = max((end[1] - begin[1]) / 2, 12)
        controls = ((begin[0], begin[1] + bend), (end[0], end[1] - bend))
    else:
        begin, end = (source.x + source.width / 2, source.y), (target.x - target.width / 2, target.y)
        bend = max((end[0] - begin[0]) / 2, 12)
        controls = ((begin[0] + bend, begin[1]), (end[0] - bend, end[1]))
    (one_x, one_y), (other_x, other_y) = controls
    path = f"M{begin[0]:.1f} {begin[1]:.1f}C{one_x:.1f} {one_y:.1f} {other_x:.1f} {other_y:.1f} {end[0]:.1f} {end[1]:.1f}"
    parts = [html_element("path", {"d": path, "fill": "none", "stroke": MUTED, "stroke-width": 1.5}), _head(end, down=down)]
    if label:
        x, y = (end[0], end[1] - 14) if down else ((begin[0] + end[0]) / 2, (begin[1] + end[1]) / 2 - 6)
        parts.append(_words([label], x, y, behind=True))
    return html_join(parts)


def _head(end: tuple[float, float], *, down: bool, left: bool = False) -> HtmlText:
    x, y = end
    back = 8 if left else -8
    points = f"{x:.1f},{y:.1f} {x - 5:.1f},{y - 8:.1f} {x + 5:.1f},{y - 8:.1f}"
    if not down:
        points = f"{x:.1f},{y:.1f} {x + back:.1f},{y - 5:.1f} {x + back:.1f},{y + 5:.1f}"
    return html_element("polygon", {"points": points, "fill": MUTED})


def _words(lines: Sequence[str], x: float, y: float, *, behind: bool = False) -> HtmlText:
    """Lines below each other. ``behind``: what lies behind them does not show through."""
    look = {**_TEXT, **({"class": "over"} if behind else {})}
    return html_join([html_element("text", {**look, "x": x, "y": y + place * LINE}, line) for place, line in enumerate(lines)])


# -- sequences


def _draw_sequence(title: str, lines: Sequence[str]) -> HtmlText:
    names: dict[str, str] = {}
    messages: list[re.Match[str]] = []
    for line in lines:
        if found := _PARTICIPANT.fullmatch(line):
            names[found["id"]] = found["label"] or found["id"]
        elif (found := _MESSAGE.fullmatch(line)) and found["source"] in names and found["target"] in names:
            messages.append(found)
        else:
            raise DiagramError(f"expected 'participant a as text', or a message between participants 'a->>b: text', found {line!r}")
    columns = {name: place for place, name in enumerate(names)}
    middles = _lifelines(names, columns, messages)
    height = 2 * PADDING + LINE
    boxes = {
        name: Box(x=middles[name], y=height / 2, width=len(text) * CHARACTER + 2 * PADDING, height=height - 8)
        for name, text in names.items()
    }
    arrows: list[HtmlText] = []
    y = height + 4.0
    for message in messages:
        text = _wrapped(message, names)
        y += len(text) * LINE + 12
        begin, end = middles[message["source"]], middles[message["target"]]
        place = {"x1": begin, "x2": end, "y1": y, "y2": y, "stroke": MUTED, "stroke-width": 1.5}
        arrows.append(html_element("line", {**place, **({"stroke-dasharray": "6 4"} if message["arrow"] == "-->>" else {})}))
        arrows.append(_head((end, y), down=False, left=end < begin))
        arrows.append(_words(text, (begin + end) / 2, y - 6 - (len(text) - 1) * LINE, behind=True))
    ground = y + LINE
    lines_down = [
        html_element(
            "line",
            {"x1": box.x, "x2": box.x, "y1": box.y + box.height / 2, "y2": ground, "stroke": MUTED, "stroke-dasharray": "3 4"},
        )
        for box in boxes.values()
    ]
    heads = [_box_shape(box, [names[name]]) for name, box in boxes.items()]
    last = Box(x=middles[next(iter(names))], y=ground, width=1, height=1)
    return _svg(title, [*boxes.values(), last], [*lines_down, *heads, *arrows])


def _wrapped(message: re.Match[str], names: Mapping[str, str]) -> Sequence[str]:
    """The lines of a message: the shorter the more participants stand beside each other."""
    return textwrap.wrap(message["text"], 34 if len(names) <= 3 else 20)


def _lifelines(names: Mapping[str, str], columns: Mapping[str, int], messages: Sequence[re.Match[str]]) -> Mapping[str, float]:
    """Where each participant stands: as far from those on its left as the messages between them are long."""
    middles: dict[str, float] = {}
    for name, text in names.items():
        own = len(text) * CHARACTER / 2 + PADDING
        before = [other for other in middles if columns[other] == columns[name] - 1]
        middles[name] = max(
            (middles[one] + len(names[one]) * CHARACTER / 2 + PADDING + own + GAP_ACROSS for one in before), default=own
        )
        for message in messages:
            ends, longest = {message["source"], message["target"]}, max(map(len, _wrapped(message, names)))
            if name in ends and (others := [one for one in ends if one in middles and one != name]):
                middles[name] = max(middles[name], middles[others[0]] + longest * CHARACTER + 28)
    return middles


def _svg(title: str, boxes: Sequence[Box], shapes: Sequence[HtmlText], edge: float = 8) -> HtmlText:
    left, right = min(box.x - box.width / 2 for box in boxes) - edge, max(box.x + box.width / 2 for box in boxes) + edge
    top, bottom = min(box.y - box.height / 2 for box in boxes) - 8, max(box.y + box.height / 2 for box in boxes) + 8
    width, height = right - left, bottom - top
    frame = {"viewBox": f"{left:.0f} {top:.0f} {width:.0f} {height:.0f}", "width": round(width), "height": round(height)}
    return html_element("svg", {**frame, "role": "img", "aria-label": title}, html_element("title", None, title), *shapes)
