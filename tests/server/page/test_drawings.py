"""The pictures of pages: graphs are laid out from left to right, plans are read from their text, and names are escaped."""

from xml.etree import ElementTree

import pytest

import tablestore as ts
from tablestore.htmltext import HtmlText, html_element, html_join
from tablestore.materialized.figures.freshnessfigures import PastRefresh
from tablestore.materialized.figures.graphdrawing import graph_drawing, history_chart
from tablestore.materialized.figures.graphlayout import lay_out
from tablestore.materialized.figures.tablegraph import Freshness, GraphNode, TableGraph
from tablestore.server.page.chartdrawing import ChartPoint, bar_chart
from tablestore.server.page.plandrawing import plan_drawing, plan_steps
from tablestore.table.inspect.bucketdrawing import bucket_table
from tablestore.table.inspect.bucketpicture import BucketPicture, FileBar, RunPicture
from tests.server.page.oddwarehouse import MARKUP

PLAN = """
╭─ Hash Group By ──────────╮
│ Groups: #0               │
╰─────────────┬────────────╯
╭─ Hash Join ─┴────────────╮
│ Conditions: v = v        │
╰─────────────┬────────────╯
              ├────────────────────────────╮
╭─ Filter ─────────────────╮  ╭─ Read Parquet ─────────╮
│ a                        │  │ Function: READ_PARQUET │
╰─────────────┬────────────╯  ╰────────────────────────╯
╭─ Read Parquet ───────────╮
│ Projections: v           │
╰──────────────────────────╯
"""


def test_a_table_stands_right_of_all_that_it_is_made_from() -> None:
    edges = [("a", "c"), ("b", "c"), ("c", "d"), ("a", "d"), ("x", "x"), ("a", "nobody")]
    places = lay_out(["d", "c", "b", "a", "x"], edges)
    assert [places[name].column for name in "abxcd"] == [0, 0, 0, 1, 2]
    assert len(set(places.values())) == 5


def test_a_circle_is_laid_out_too() -> None:
    places = lay_out(["a", "b", "c"], [("a", "b"), ("b", "a"), ("b", "c")])
    assert set(places) == {"a", "b", "c"} and len(set(places.values())) == 3


def test_a_node_stands_beside_what_it_is_made_from() -> None:
    nodes = [f"s{number}" for number in range(6)] + [f"t{5 - number}" for number in range(6)]
    places = lay_out(nodes, [(f"s{number}", f"t{number}") for number in range(6)])
    assert all(places[f"s{number}"].row == places[f"t{number}"].row for number in range(6))


def test_the_steps_of_a_plan_have_the_parents_that_its_text_shows() -> None:
    steps = plan_steps(PLAN)
    assert [(step.title, step.parent) for step in steps] == [
        ("Hash Group By", None),
        ("Hash Join", 0),
        ("Filter", 1),
        ("Read Parquet", 1),
        ("Read Parquet", 2),
    ]
    assert steps[3].facts == ("Function: READ_PARQUET",)
    assert len(ElementTree.fromstring(plan_drawing(steps)).findall("path")) == 4


def test_every_plan_of_duckdb_is_read(tmp_path: object) -> None:
    with ts.TableEnvironment.create(str(tmp_path), engine="duckdb") as environment:
        environment.execute_sql("CREATE TABLE t (id BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED)")
        environment.execute_sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        for text in (
            "SELECT * FROM t",
            "SELECT a.v, count(*) FROM t a JOIN t b ON a.id = b.id JOIN t c ON b.v = c.v GROUP BY a.v ORDER BY 2 LIMIT 3",
            "SELECT v FROM t UNION ALL SELECT v FROM t UNION ALL SELECT 'x'",
            "WITH w AS (SELECT id, row_number() OVER (ORDER BY v) AS n FROM t) SELECT * FROM w WHERE n IN (SELECT id FROM t)",
        ):
            plan = environment.execute_sql(f"EXPLAIN {text}").text or ""
            steps = plan_steps(plan)
            assert steps and all(step.title for step in steps) and plan.count("╰") + plan.count("└") == len(steps), plan


@pytest.mark.parametrize("text", ["", "no plan", "╭──╮", "│ a │\n╰───╯", "╭─ a ─╮\n│ b │", "   ╭─ a ─╮\n╭─ b ─╮"])
def test_a_text_that_is_no_plan_is_drawn_as_far_as_it_is_understood(text: str) -> None:
    ElementTree.fromstring(plan_drawing(plan_steps(text)))


def test_names_in_pictures_are_escaped() -> None:
    file = FileBar(name=MARKUP, left=0.0, right=1.0, size_bytes=1, rows=1, retractions=1)
    runs = (RunPicture(level=0, files=(file,)), RunPicture(level=5, files=(file,)))
    work = {"most_merged": 2, "merged_bytes": 1, "debt_bytes": 1, "due_bytes": 1}
    picture = BucketPicture(partition=MARKUP, bucket=0, runs=runs, due=MARKUP, **work)
    places = lay_out([MARKUP, "b"], [(MARKUP, "b")])
    nodes = tuple(
        GraphNode(key=key, database="", name=key, kind="table", freshness=Freshness.LATE, place=place)
        for key, place in places.items()
    )
    past = PastRefresh(snapshot_id=1, at_ms=2**60, took_ms=5, mode=MARKUP, reason=MARKUP, rows_in=None, rows_out=None, rows_more=-1)
    drawings = [
        bucket_table(picture, keyed=True),
        bucket_table(picture, keyed=False),
        graph_drawing(TableGraph(nodes=nodes, edges=((MARKUP, "b"),), left_out=0), lambda node: f"/{node.key}"),
        bar_chart([ChartPoint(MARKUP, 1.0, MARKUP), ChartPoint("b", None, "null"), ChartPoint("c", -1e300, "x")], MARKUP, MARKUP),
        history_chart([past]),
        history_chart([]),
        plan_drawing(plan_steps(PLAN.replace("Groups", "<b>'\""))),
    ]
    for drawing in drawings:
        assert isinstance(drawing, HtmlText) and "<script>" not in drawing
        ElementTree.fromstring(drawing)
    assert MARKUP in "".join(ElementTree.fromstring(drawings[0]).itertext())


def test_a_run_of_many_files_is_drawn_with_few_bars() -> None:
    files = tuple(
        FileBar(name=str(n), left=n / 9_000, right=(n + 1) / 9_000, size_bytes=1, rows=1, retractions=0) for n in range(9_000)
    )
    picture = BucketPicture(
        partition="", bucket=0, runs=(RunPicture(level=5, files=files),), most_merged=1, merged_bytes=0, debt_bytes=0
    )
    assert bucket_table(picture, keyed=True).count("<rect") <= 400


def test_html_is_escaped_once() -> None:
    inner = html_element("b", {"title": '"<'}, "<&", html_join(["'", HtmlText("<i></i>")]))
    assert (
        inner == '<b title="&quot;&lt;">&lt;&amp;&#x27;<i></i></b>' and html_element("p", {"x": None}, inner) == f"<p>{inner}</p>"
    )
