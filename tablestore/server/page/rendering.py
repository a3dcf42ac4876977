"""Renders pages: views into HTML, by templates that escape every text."""

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

from tablestore.materialized.figures.graphdrawing import freshness_word, graph_drawing, history_chart
from tablestore.materialized.figures.tablegraph import GraphNode
from tablestore.server.page.chartdrawing import bar_chart
from tablestore.server.page.pagelinks import SECTIONS, Links
from tablestore.server.page.plandrawing import plan_drawing
from tablestore.table.inspect.bucketdrawing import bucket_table, bucket_title
from tablestore.units import human_age, human_bytes, human_duration, iso_time

ASSETS: Mapping[str, str] = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "mark.svg": "image/svg+xml",
}
"""The files that pages need, and their types."""

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
"""The content security policy that every page keeps."""


class PageTemplates:
    """The templates of the pages. Threads may share it."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=PackageLoader("tablestore.server.page"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters |= {
            "bytes": human_bytes,
            "count": lambda number: f"{number:,}",
            "duration": human_duration,
            "iso": iso_time,
            "clock": clock_text,
        }
        self._environment.globals |= {
            "age": human_age,
            "bar_chart": bar_chart,
            "bucket_table": bucket_table,
            "bucket_title": bucket_title,
            "freshness_word": freshness_word,
            "graph_drawing": graph_drawing,
            "history_chart": history_chart,
            "plan_drawing": plan_drawing,
            "SECTIONS": SECTIONS,
        }

    def render(self, template: str, view: object, links: Links, *, now_ms: int, caller: str = "") -> str:
        """The page of a view. ``caller``: the name that is shown as who looks."""

        def link_of(node: GraphNode) -> str | None:
            if not node.name:
                return None
            if node.kind == "materialized":
                return links.materialized(node.database, node.name)
            return links.view(node.database, node.name) if node.kind == "view" else links.table(node.database, node.name)

        values = {"view": view, "links": links, "now_ms": now_ms, "caller": caller, "link_of": link_of}
        return self._environment.get_template(template).render(values)


def asset(name: str) -> bytes:
    """The content of one of :data:`ASSETS`."""
    return files("tablestore.server.page").joinpath("static", name).read_bytes()


def clock_text(time_millis: int) -> str:
    """A time for people, in UTC."""
    try:
        return f"{datetime.fromtimestamp(time_millis // 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return f"{time_millis} ms"
