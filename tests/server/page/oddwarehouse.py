"""Fills a warehouse with all that pages have to show: odd texts, every kind of table, a history, late tables, broken ones."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

import tablestore as ts

MARKUP = '<script>alert("x")</script>&amp;\'`\u202e\u00e9\U0001f4a1'
COLUMN = "a <b> & \"c\" 'd'"


def fill(folder: Path) -> ts.Catalog:
    """The catalog of a new warehouse in this folder."""
    catalog = ts.open_catalog(folder)
    for name in ("Shop", "odd-1", "empty"):
        catalog.create_database(name)
    _keyed(catalog)
    _append(catalog)
    _odd(catalog)
    _derived(catalog)
    _others(catalog, folder)
    return catalog


def _keyed(catalog: ts.Catalog) -> None:
    options = {"bucket": 2, "write-only": True}
    schema = "id BIGINT, item STRING COMMENT 'what was sold', price DECIMAL(10, 2), day DATE"
    orders = catalog.create_table("Shop.orders", schema, "id", options=options, comment="every order, as it is now")
    for start in range(0, 60, 10):
        ids = range(start, start + 20)
        rows = pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "item": [f"item {number % 7}" for number in ids],
                "price": pa.array([Decimal(number) for number in ids], pa.decimal128(10, 2)),
                "day": [date(2026, 1, 1 + number % 28) for number in ids],
            }
        )
        orders.upsert(rows)
    orders.create_tag("end-of-january")
    orders.delete("id < 5")
    orders.compact(full=True)
    orders.upsert(pa.table({"id": pa.array([7, 500], pa.int64()), "item": [MARKUP, None]}), missing_columns="null")
    orders.create_branch("try.1", tag="end-of-january")
    orders.branch("try.1").upsert(pa.table({"id": pa.array([1], pa.int64())}), missing_columns="null")


def _append(catalog: ts.Catalog) -> None:
    visits = catalog.create_table("Shop.visits", "day DATE, page STRING, seconds DOUBLE", partition_by="day")
    for number in range(3):
        days = [date(2026, 1, 1 + place % 3) for place in range(12)]
        visits.append(pa.table({"day": days, "page": [f"/p/{place}" for place in range(12)], "seconds": [number + 0.5] * 12}))
    visits.overwrite(pa.table({"day": [date(2026, 1, 2)], "page": ["/only"], "seconds": [1.0]}))
    for _ in visits.consume(consumer_id="reader-1", follow=False):
        break


def _odd(catalog: ts.Catalog) -> None:
    schema = pa.schema([(COLUMN, pa.string()), ("MAP", pa.map_(pa.string(), pa.int32())), ("bytes", pa.binary())])
    odd = catalog.create_table("odd-1.Odd_Name", schema, comment=MARKUP)
    rows = pa.table({COLUMN: [MARKUP, None, "x" * 500], "MAP": [[("k", 1)], None, []], "bytes": [b"\x00<", None, b""]}, schema)
    odd.append(rows)
    catalog.create_table("odd-1.nothing", "id INT")
    catalog.create_table("odd-1.nothing_keyed", "id INT, v STRING", "id")


def _derived(catalog: ts.Catalog) -> None:
    with ts.TableEnvironment.create(catalog, engine="duckdb") as environment:
        for text in (
            "CREATE VIEW Shop.cheap COMMENT 'a <view>' AS SELECT id, item FROM Shop.orders WHERE price < 10",
            "CREATE MATERIALIZED TABLE Shop.totals (PRIMARY KEY (item) NOT ENFORCED) FRESHNESS = INTERVAL '1' DAY "
            "REFRESH_MODE = FULL AS SELECT item, count(*) AS n, sum(price) AS total FROM Shop.orders WHERE item IS NOT NULL "
            "GROUP BY item",
            "ALTER MATERIALIZED TABLE Shop.totals REFRESH",
            "CREATE MATERIALIZED TABLE Shop.top FRESHNESS = INTERVAL '12' HOUR REFRESH_MODE = FULL AS "
            "SELECT item, n FROM Shop.totals WHERE item <> '<&\"''>' ORDER BY n DESC LIMIT 3",
            "ALTER MATERIALIZED TABLE Shop.top REFRESH",
            "INSERT INTO Shop.orders VALUES (900, 'late', 3.5, DATE '2026-02-01')",
            "ALTER MATERIALIZED TABLE Shop.totals REFRESH",
            "ALTER MATERIALIZED TABLE Shop.top SUSPEND",
            "ANALYZE TABLE Shop.orders COMPUTE STATISTICS FOR ALL COLUMNS",
        ):
            environment.execute_sql(text).to_arrow()


def _others(catalog: ts.Catalog, folder: Path) -> None:
    broken = catalog.create_table("odd-1.broken", "id INT")
    broken.append(pa.table({"id": pa.array([1], pa.int32())}))
    for file in (folder / "odd-1.db" / "broken" / "manifest").glob("*"):
        file.write_bytes(b"<img src=x>")
    damaged = catalog.create_table("odd-1.damaged", "id INT")
    for file in Path(damaged.location.removeprefix("file://")).glob("schema/*"):
        file.write_text("{}")
