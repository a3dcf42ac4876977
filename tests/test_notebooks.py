"""Notebooks show objects as HTML: with the pictures of the pages, bounded, every text escaped, without scripts."""

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

import tablestore as ts
from tablestore.environment.result import NOTEBOOK_COLUMNS, NOTEBOOK_ROWS
from tablestore.materialized.figures.freshnessfigures import PastRefresh
from tablestore.materialized.figures.graphdrawing import RefreshHistory, graph_drawing
from tablestore.materialized.figures.tablegraph import Freshness, lay_out_graph
from tablestore.table.inspect.catalogcard import MOST_DATABASES, MOST_TABLES, catalog_card

pytest.importorskip("duckdb", reason="queries need DuckDB: pip install 'managed-tablestore[duckdb]'")

MARKUP = "<script>alert('x')</script>\"&"
VOID = {"br", "hr", "img"}


class Shown(HTMLParser):
    """The tags of a text, and the text that a person sees. A tag that is not closed, or does something, is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.seen = ""
        self.feed(text)
        self.close()
        assert self.open == []
        assert not {"script", "iframe", "object", "link", "img", "foreignobject"} & set(self.tags)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not any(name.startswith("on") or name in ("href", "src") for name, _ in attrs), attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.seen += f"{data} "


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(str(tmp_path / "warehouse"), engine="duckdb") as environment:
        environment.execute_sql("CREATE TABLE orders (id BIGINT, item STRING, PRIMARY KEY (id) NOT ENFORCED)")
        environment.execute_sql("INSERT INTO orders SELECT id, 'pen' FROM range(30)").to_arrow()
        yield environment


def test_a_result_shows_its_first_rows_and_says_that_there_are_more(environment: ts.TableEnvironment) -> None:
    shown = Shown(environment.execute_sql("SELECT id, item FROM orders ORDER BY id")._repr_html_())
    assert shown.tags.count("tr") == NOTEBOOK_ROWS + 1 and "only the first 20 rows" in shown.seen
    few = Shown(environment.execute_sql("SELECT CAST(NULL AS INT) AS n, '' AS e FROM orders LIMIT 1")._repr_html_())
    assert "NULL" in few.seen and "only" not in few.seen


def test_a_result_of_many_columns_and_long_values_is_cut(environment: ts.TableEnvironment) -> None:
    columns = ", ".join(f"{number} AS c{number}" for number in range(NOTEBOOK_COLUMNS + 5))
    shown = Shown(environment.execute_sql(f"SELECT {columns}")._repr_html_())
    assert shown.tags.count("td") == NOTEBOOK_COLUMNS and "5 more columns" in shown.seen
    long = environment.execute_sql("SELECT repeat('x', 100000) AS v")._repr_html_()
    assert len(long) < 1_000 and "…" in long


def test_names_and_values_of_results_are_escaped(environment: ts.TableEnvironment) -> None:
    quoted = MARKUP.replace("'", "''")
    result = environment.execute_sql(f"SELECT '{quoted}' AS `{MARKUP}`")
    assert Shown(result._repr_html_()).seen.count(MARKUP) == 2


def test_a_query_shows_its_text_and_rows_and_one_that_fails_says_why(environment: ts.TableEnvironment) -> None:
    shown = Shown(environment.sql_query("SELECT count(*) AS n FROM orders")._repr_html_())
    assert "SELECT count(*) AS n" in shown.seen and " 30 " in shown.seen
    dropped = environment.sql_query("SELECT id FROM orders")
    environment.execute_sql("DROP TABLE orders")
    assert "orders" in Shown(dropped._repr_html_()).seen


def test_a_plan_is_shown_as_it_prints(environment: ts.TableEnvironment) -> None:
    result = environment.execute_sql("EXPLAIN SELECT id FROM orders")
    assert result.text is not None and result.text.strip() in Shown(result._repr_html_()).seen


def test_a_result_that_is_not_there_yet_is_not_waited_for(environment: ts.TableEnvironment) -> None:
    environment.execute_sql("SET 'execution.runtime-mode' = 'streaming'")
    result = environment.execute_sql("SELECT id FROM orders")
    assert "Result(" in Shown(result._repr_html_()).seen
    result.cancel()


def test_a_catalog_shows_its_databases_and_the_figures_of_its_tables(environment: ts.TableEnvironment) -> None:
    shown = Shown(environment.catalog()._repr_html_()).seen
    assert "default (1)" in shown and "default.orders" in shown and "keyed" in shown and " 30 " in shown


def test_a_catalog_of_many_tables_opens_few_and_says_how_many_there_are() -> None:
    opened: list[str] = []

    def context(name: str) -> None:
        opened.append(name)

    card = catalog_card("/w", [f"d{n}" for n in range(500)], lambda _: [f"{MARKUP}{n}" for n in range(1_000)], context)
    shown = Shown(card).seen
    assert len(opened) == MOST_TABLES and f"and {500 - MOST_DATABASES} more" in shown
    assert f"{MOST_DATABASES * 1_000 - MOST_TABLES:,} more tables" in shown and MARKUP in shown


def test_a_table_of_a_catalog_that_cannot_be_read_hides_no_other(environment: ts.TableEnvironment) -> None:
    environment.execute_sql("CREATE TABLE bad (id BIGINT)")
    place = Path(environment.catalog().location) / "default.db" / "bad" / "schema" / "schema-0"
    place.write_text("{")
    shown = Shown(environment.catalog()._repr_html_()).seen
    assert "default.bad" in shown and "cannot be read" in shown and "default.orders" in shown


def test_an_environment_and_a_materialized_table_show_the_pictures_of_the_pages(environment: ts.TableEnvironment) -> None:
    assert "svg" not in Shown(environment._repr_html_()).tags
    environment.execute_sql(
        "CREATE MATERIALIZED TABLE totals FRESHNESS = INTERVAL '1' HOUR REFRESH_MODE = FULL AS "
        "SELECT item, count(*) AS n FROM orders GROUP BY item"
    )
    environment.execute_sql("ALTER MATERIALIZED TABLE totals REFRESH").to_arrow()
    shown = Shown(environment._repr_html_())
    assert "svg" in shown.tags and "default.totals" in shown.seen and "default.orders" in shown.seen and "duckdb" in shown.seen
    definition = Shown(environment.materialized_table("totals")._repr_html_()).seen
    assert "GROUP BY item" in definition and "INTERVAL '1' HOUR" in definition and "full" in definition
    history = environment.refresh_history("totals")
    assert len(history) == 1 and "svg" in Shown(history._repr_html_()).tags  # type: ignore[attr-defined]


def test_a_closed_environment_is_shown_as_one(environment: ts.TableEnvironment) -> None:
    environment.close()
    assert "closed" in Shown(environment._repr_html_()).seen


def test_pictures_are_seen_on_light_and_dark_without_a_style_sheet() -> None:
    past = PastRefresh(snapshot_id=1, at_ms=0, took_ms=5, mode=MARKUP, reason=MARKUP, rows_in=1, rows_out=1, rows_more=0)
    graph = graph_drawing(lay_out_graph({MARKUP: "view"}, [("a.b", MARKUP)], {}, most=9), lambda _: None)
    for drawing in (graph, RefreshHistory([past] * 500)._repr_html_()):
        assert MARKUP in Shown(drawing).seen
        assert drawing.count("<text") == drawing.count('fill="currentColor"') > 0
        assert "black" not in drawing and "#000" not in drawing and "white" not in drawing and "#fff" not in drawing
        assert len(drawing) < 60_000
    assert {node.freshness for node in lay_out_graph({}, [("a.b", "a.c")], {}, most=9).nodes} == {Freshness.SOURCE}
