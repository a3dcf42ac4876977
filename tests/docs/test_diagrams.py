"""The diagrams of the documents are drawn when the site is built: whole, titled, and nothing is left out that is not understood."""

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pages
import pytest

DIAGRAMS = [
    pytest.param(block.code, id=f"{pages.name_of(page)}:{block.line}")
    for page in pages.documents()
    for block in pages.blocks(page)
    if block.language == "mermaid"
]
CHART = """flowchart LR
  accTitle: what <it> shows
  a["one & <b>two</b>"] -->|by way| b[three] & c
  subgraph g ["a frame"]
    b --> d
  end
  g --> e
"""


@pytest.fixture(scope="module")
def diagrams(project: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("diagrams", project / "docs" / "diagrams.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rectangles(drawing: str) -> Iterator[tuple[float, float, float, float]]:
    for box in ElementTree.fromstring(drawing).iter("rect"):
        x, y, width, height = (float(box.attrib[name]) for name in ("x", "y", "width", "height"))
        yield x, y, x + width, y + height


@pytest.mark.parametrize("source", DIAGRAMS)
def test_a_diagram_of_the_documents_is_whole_and_has_a_title(diagrams: ModuleType, source: str) -> None:
    drawing = diagrams.draw(source)
    root = ElementTree.fromstring(drawing)
    title = next(root.iter("title")).text
    assert root.attrib["role"] == "img" and root.attrib["aria-label"] == title and title in source
    left, top, width, height = map(float, root.attrib["viewBox"].split())
    for x, y, right, bottom in rectangles(drawing):
        assert left <= x and top <= y and right <= left + width + 1 and bottom <= top + height + 1
    # Text keeps at least three quarters of its size in the column of a page.
    assert width <= 920
    said = " ".join("".join(root.itertext()).split())
    for label in re.findall(r'[\[|]"?([^"\[\]|]+)"?[\]|]|: (?!.*accTitle)(.+)', source.partition("accTitle")[2].partition("\n")[2]):
        for words in re.split(r"<br>|\s", "".join(label)):
            assert words in said, words


@pytest.mark.parametrize("source", DIAGRAMS)
def test_boxes_do_not_lie_over_each_other(diagrams: ModuleType, source: str) -> None:
    boxes = list(rectangles(diagrams.draw(source)))
    for place, (left, top, right, bottom) in enumerate(boxes):
        for other_left, other_top, other_right, other_bottom in boxes[place + 1 :]:
            apart = right <= other_left or other_right <= left or bottom <= other_top or other_bottom <= top
            inside = left <= other_left and other_right <= right and top <= other_top and other_bottom <= bottom
            assert apart or inside


def test_a_frame_holds_what_is_named_in_it_and_arrows_go_on_from_it(diagrams: ModuleType) -> None:
    chart = diagrams.parse_flowchart("t", False, [line.strip() for line in CHART.splitlines()[2:]])
    assert chart.groups == {"g": ["b", "d"]} and chart.nodes["c"] == ["c"]
    assert diagrams.ranks_of(chart) == {"a": 0, "b": 1, "c": 1, "d": 2, "e": 3}


def test_texts_are_escaped(diagrams: ModuleType) -> None:
    source = CHART.replace("by way", "by <way>")
    root = ElementTree.fromstring(diagrams.draw(source))
    assert root.attrib["aria-label"] == "what <it> shows" and not root.findall(".//b")
    assert {"one & <b>two</b>", "by <way>"} <= {text.text for text in root.iter("text")}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("flowchart LR\n  a --> b", "accTitle"),
        ("flowchart LR\n  accTitle: t\n  a -.-> b", "an arrow"),
        ("flowchart LR\n  accTitle: t\n  a{question} --> b", "an arrow"),
        ("flowchart LR\n  accTitle: t\n  --> b", "a node"),
        ("flowchart LR\n  accTitle: t\n  a --> b\n  b --> a", "no circle"),
        ("flowchart LR\n  accTitle: t\n  subgraph g\n  a --> b", "'end'"),
        ("sequenceDiagram\n  accTitle: t\n  participant a\n  a->>b: hello", "between participants"),
        ("sequenceDiagram\n  accTitle: t\n  participant a\n  Note over a: hello", "participant a as text"),
        ("pie\n  accTitle: t", "flowchart TD"),
        ("", "accTitle"),
    ],
)
def test_what_is_not_understood_fails_the_build(diagrams: ModuleType, source: str, expected: str) -> None:
    with pytest.raises(diagrams.DiagramError, match=expected):
        diagrams.fence_drawing(source, "mermaid", "diagram", {}, None)


def test_the_mark_of_the_site_is_that_of_the_pages(project: Path) -> None:
    mark = (project / "tablestore" / "server" / "page" / "static" / "mark.svg").read_bytes()
    assert (project / "docs" / "images" / "mark.svg").read_bytes() == mark
