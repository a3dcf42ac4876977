"""``table describe``: the facts, the picture, and both in files and JSON."""

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pytest
from rich.console import Console

import tablestore as ts
from tablestore.cli.text.picture import draw_buckets
from tablestore.errors import StorageError
from tablestore.format.sealed import CHECKSUM_KEY, object_checksum
from tablestore.table.inspect.bucketpicture import picture_buckets
from tests.support.commandline import Ran

Run = Callable[..., Ran]


def drawn(table: ts.Table, encoding: str = "utf-8", width: int = 60) -> str:
    context = table.context
    pictures = picture_buckets(context.manifests.live(context.snapshots.latest()), context.schema, context.settings)

    class Plain(Console):
        @property
        def encoding(self) -> str:
            return encoding

    console = Plain(width=width, no_color=True, force_terminal=False)
    with console.capture() as captured:
        console.print(draw_buckets(pictures, console, keyed=bool(table.primary_key)))
    return captured.get()


@pytest.fixture
def overlapping(catalog: ts.Catalog) -> ts.Table:
    table = catalog.create_table(
        "shop.overlapping", schema=pa.schema([("k", pa.int64())]), primary_key=["k"], options={"write-only": "true"}
    )
    for keys in ([0, 50], [25, 75], [100]):
        table.upsert(pa.table({"k": keys}))
    return table


def test_the_picture_shows_runs_newest_first_and_their_depth(overlapping: ts.Table) -> None:
    lines = drawn(overlapping).splitlines()
    assert "bucket 0" in lines[0]
    assert "3 run(s)" in lines[0]
    bars = [line for line in lines if line.startswith("  L0")]
    assert [bar.index("▒") for bar in bars] == sorted((bar.index("▒") for bar in bars), reverse=True)
    assert any(line.strip().endswith("runs here") and "2" in line for line in lines)


def test_a_terminal_without_unicode_gets_ascii(overlapping: ts.Table) -> None:
    assert drawn(overlapping, encoding="ascii").isascii()


@pytest.mark.parametrize("width", [20, 40, 200])
def test_the_picture_fits_the_terminal(overlapping: ts.Table, width: int) -> None:
    bars = [line for line in drawn(overlapping, width=width).splitlines() if line.startswith("  L0")]
    assert bars
    assert all(len(bar) <= max(width, 38) for bar in bars)


def test_many_runs_are_folded(catalog: ts.Catalog) -> None:
    table = catalog.create_table(
        "shop.many", schema=pa.schema([("k", pa.int64())]), primary_key=["k"], options={"write-only": "true"}
    )
    for key in range(20):
        table.upsert(pa.table({"k": [key]}))
    text = drawn(table)
    assert "8 more runs" in text
    assert sum(line.startswith("  L0") for line in text.splitlines()) == 12


def test_json_says_what_the_picture_shows(run: Run, overlapping: ts.Table) -> None:
    described = run("table", "describe", "shop.overlapping", "--json").json
    (bucket,) = described["buckets"]
    assert bucket["read_merges"] == described["totals"]["read_merges"] == 2
    assert [one["level"] for one in bucket["runs"]] == [0, 0, 0]
    assert bucket["debt_bytes"] == described["totals"]["debt_bytes"] > 0
    assert described["columns"] == [{"id": 0, "name": "k", "type": "BIGINT NOT NULL", "comment": None}]
    assert described["primary_key"] == ["k"]
    assert described["snapshot"]["id"] == 3


def test_text_says_it_too(run: Run, overlapping: ts.Table) -> None:
    text = run("table", "describe", "shop.overlapping").out
    assert "keyed by k" in text
    assert "tablestore compact --full shop.overlapping" in text
    assert "k  BIGINT NOT NULL  key" in text


def test_an_empty_table_is_described(run: Run, catalog: ts.Catalog, tmp_path: Path) -> None:
    catalog.create_table("shop.t", schema=pa.schema([("a", pa.int64())]), comment="[bold]not markup[/bold]")
    assert "[bold]not markup[/bold]" in run("table", "describe", "shop.t", "--svg", tmp_path / "t.svg").out
    assert run("table", "describe", "shop.t", "--json").json["buckets"] == []
    assert ElementTree.parse(tmp_path / "t.svg").getroot().tag.endswith("svg")


def test_the_picture_is_written_as_svg(run: Run, overlapping: ts.Table, tmp_path: Path) -> None:
    run("table", "describe", "shop.overlapping", "--svg", tmp_path / "t.svg")
    text = (tmp_path / "t.svg").read_text()
    assert "▒" in text
    assert ElementTree.fromstring(text).tag.endswith("svg")


def test_only_the_buckets_with_most_work_are_drawn(run: Run, catalog: ts.Catalog) -> None:
    table = catalog.create_table(
        "shop.wide", schema=pa.schema([("k", pa.int64())]), primary_key=["k"], options={"bucket": "12", "write-only": "true"}
    )
    table.upsert(pa.table({"k": list(range(200))}))
    few, every = run("table", "describe", "shop.wide"), run("table", "describe", "shop.wide", "--all")
    assert few.out.count("bucket ") + 4 == every.out.count("bucket ")
    assert "--all" in few.err


def test_what_the_next_compaction_does_is_due_and_then_done(run: Run, orders: ts.Table) -> None:
    for price in range(6):
        orders.upsert(pa.table({"id": [1, 2, 3], "item": ["x"] * 3, "price": [float(price)] * 3}))
    before = run("table", "describe", "shop.orders", "--json").json["totals"]
    assert before["due_buckets"] > 0
    assert 0 < before["due_bytes"] <= before["debt_bytes"]
    assert "tablestore compact shop.orders" in run("table", "describe", "shop.orders").out
    run("compact", "shop.orders")
    after = run("table", "describe", "shop.orders", "--json").json["totals"]
    assert (after["due_buckets"], after["due_bytes"]) == (0, 0)


def test_what_failed_behind_a_commit_is_described_until_it_is_done(
    run: Run, catalog: ts.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.create_table("shop.t", schema=pa.schema([("k", pa.int64())]), primary_key=["k"])
    with monkeypatch.context() as broken:

        def fail(*_: object, **__: object) -> None:
            raise StorageError("the disk is full")

        broken.setattr("tablestore.table.upkeep.aftercommit.compact_after_write", fail)
        table.upsert(pa.table({"k": [1]}))
    upkeep = run("table", "describe", "shop.t", "--json").json["upkeep"]
    (undone,) = upkeep["undone"]
    assert (undone["chore"], undone["snapshot"], undone["error"]) == ("compaction", 1, "the disk is full")
    assert upkeep["due_snapshots"] == 0 and upkeep["unpublished_snapshots"] is None
    assert "the disk is full; the next write does it, or `tablestore compact`" in run("table", "describe", "shop.t").out
    table.upsert(pa.table({"k": [2]}))
    assert run("table", "describe", "shop.t", "--json").json["upkeep"]["undone"] == []


def test_snapshots_that_are_held_back_are_described_with_who_holds_them(run: Run, catalog: ts.Catalog) -> None:
    options = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2", "write-only": "true"}
    table = catalog.create_table("shop.t", schema=pa.schema([("k", pa.int64())]), primary_key=["k"], options=options)
    for key in range(5):
        table.upsert(pa.table({"k": [key]}))
    assert "3 snapshot(s) are due" in run("table", "describe", "shop.t").out
    table.reset_consumer("slow", 2)
    upkeep = run("table", "describe", "shop.t", "--json").json["upkeep"]
    assert (upkeep["due_snapshots"], upkeep["held_by"]) == (1, "consumer 'slow'")


def test_postponed_rows_are_said_to_wait_and_the_command_compacts_them(run: Run, catalog: ts.Catalog) -> None:
    table = catalog.create_table("shop.late", schema=pa.schema([("id", pa.int64())]), primary_key=["id"], options={"bucket": "-2"})
    table.upsert({"id": [1]})
    assert "wait for a compaction, and are not read" in run("table", "describe", "shop.late").out
    run("compact", "shop.late")
    assert table.refresh().scan().count() == 1


def test_a_materialized_table_is_described_by_its_query_and_who_refreshes_it(run: Run, orders: ts.Table) -> None:
    pytest.importorskip("duckdb")
    query = "SELECT item, count(*) AS n FROM shop.orders GROUP BY item"
    options = "WITH ('target-file-size' = '64 mb')"
    made = run("sql", "-e", f"CREATE MATERIALIZED TABLE shop.n FRESHNESS = INTERVAL '1' MINUTE {options} AS {query}")
    assert "this process refreshes tablestore.shop.n every INTERVAL '1' MINUTE" in made.err and "tablestore mt serve" in made.err
    shown = run("table", "describe", "shop.n").out
    assert query in shown and "INTERVAL '1' MINUTE" in shown and "continuous, activated" in shown and "of process" in shown
    assert "target-file-size=64 mb" in shown and "materialized-table." not in shown
    handler = run("table", "describe", "shop.n", "--json").json["options"]["materialized-table.refresh-handler-bytes"]
    assert handler not in shown
    full = run("sql", "-e", f"CREATE MATERIALIZED TABLE shop.f FRESHNESS = INTERVAL '1' DAY REFRESH_MODE = FULL AS {query}")
    assert "refreshes" not in full.err


def test_a_damaged_definition_is_said_and_the_rest_described(run: Run, orders: ts.Table) -> None:
    pytest.importorskip("duckdb")
    run(
        "sql",
        "-e",
        "CREATE MATERIALIZED TABLE shop.n FRESHNESS = INTERVAL '1' DAY REFRESH_MODE = FULL AS SELECT id FROM shop.orders",
    )
    place = Path(orders.location).parent / "n" / "schema" / "schema-0"
    schema = json.loads(place.read_text())
    schema["options"]["materialized-table.interval-freshness"] = "-1"
    del schema[CHECKSUM_KEY]
    place.write_text(json.dumps({**schema, CHECKSUM_KEY: object_checksum(schema)}))
    assert "damaged" in run("table", "describe", "shop.n").out
