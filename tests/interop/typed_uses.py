"""A user's program for type checkers: rows of every kind that is taken, what is given for rows and is none, and what calls give.

Run by test_typecheckers.py, and checked there.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, TypedDict

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa

import tablestore as ts


class Price(TypedDict):
    item: str
    price: float


def batches() -> Iterator[pa.RecordBatch]:
    yield pa.record_batch([pa.array(["cap"]), pa.array([2.5])], names=["item", "price"])


def made(warehouse: str) -> ts.Table:
    catalog = ts.open_catalog(warehouse)
    catalog.create_database("shop")
    catalog.create_table("shop.a", schema={"id": "BIGINT", "day": "DATE"}, primary_key=None, partition_by=["day"])
    catalog.create_table("shop.b", schema=pa.schema([("id", pa.int64())]), primary_key="id")
    options = {"bucket": 4, "write-only": True, "target-file-size": "64 mb"}
    return catalog.create_table("shop.prices", schema="item STRING, price DOUBLE", primary_key=["item"], options=options)


def rows_of_every_kind(prices: ts.Table, typed: list[Price]) -> None:
    dicts = [{"item": "cap", "price": 2.5}, {"item": "gum", "price": 0.5}]
    tuples = [("cap", 2.5)]
    columns: dict[str, list[Any]] = {"item": ["cap"], "price": [2.5]}
    frame = pd.DataFrame(columns)
    lazy = pl.LazyFrame(columns)
    prices.upsert(dicts)
    prices.upsert(typed)
    prices.upsert(tuples)
    prices.upsert(columns)
    prices.upsert([])
    prices.upsert(frame)
    prices.upsert(pl.DataFrame(columns))
    prices.upsert(lazy)
    prices.upsert(pa.table(columns))
    prices.upsert(batches())
    prices.upsert(list(batches()))
    prices.upsert([pl.DataFrame(columns), pl.DataFrame(columns)])
    prices.upsert(duckdb.from_arrow(pa.table(columns)))
    prices.upsert(prices.scan())
    prices.upsert(prices)
    prices.delete([{"item": "cap"}])
    prices.delete("price > 3")
    with prices.new_writer() as writer:
        writer.write(dicts)
        committed: ts.Snapshot | None = writer.commit()
    if committed is not None:
        moment: datetime = committed.time
        print(committed.id, moment)


def no_rows(prices: ts.Table) -> None:
    prices.upsert(3)  # type: ignore[arg-type]
    prices.upsert("item")  # type: ignore[arg-type]
    prices.upsert([1, 2])  # type: ignore[arg-type]
    prices.upsert({"item", "price"})  # type: ignore[arg-type]
    prices.scan(columns=3)  # type: ignore[arg-type]
    print(prices.upsert([{"item": "cap"}]).id)  # type: ignore[union-attr]


def what_calls_give(prices: ts.Table) -> None:
    snapshots: list[ts.Snapshot] = list(prices.snapshots())
    report: ts.CompactReport = prices.compact(full=True)
    rows: pa.Table = prices.scan(["item"], "price > 3", limit=3).to_arrow()
    frame: pd.DataFrame = prices.to_pandas()
    lazy: pl.LazyFrame = prices.scan_polars()
    again: ts.Table = prices.alter([ts.AddColumn("note", "STRING"), ts.SetOption("write-only", "false")])
    merged: ts.Snapshot | None = (
        prices.merge([{"item": "cap", "price": 2.5, "note": "new"}], "item")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )
    updated: ts.Snapshot | None = prices.update({"price": "price * 2"}, "item = 'cap'")
    print(snapshots, report, rows, frame, lazy, again, merged, updated)
    for batch in prices.consume(follow=False):
        print(batch.snapshot_id, batch.rows.num_rows)
