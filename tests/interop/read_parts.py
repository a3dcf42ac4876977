"""The recipes of docs/guides/read.md that give the parts of a scan to Ray or Daft, over scans of our choice.

    python read_parts.py ray|daft FOLDER        where that one is installed, beside what tablestore needs

Exits with 0 if each gives the rows of its scan.
"""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

import tablestore as ts
from tests.docs import pages

ROWS = 3000
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("page", pa.string()),
        ("seconds", pa.float64()),
        ("body", pa.binary()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("price", pa.decimal128(38, 5)),
        ("tags", pa.list_(pa.string())),
        ("place", pa.struct([("x", pa.float32()), ("odd `name", pa.int16())])),
    ]
)
SCANS: tuple[dict[str, Any], ...] = (
    {},
    {"columns": ["page", "id"]},
    {"columns": ["body", "id"], "filter": "seconds > 100 AND page IS NOT NULL"},
    {"filter": "id >= 2995"},
    {"filter": "id < 0"},
    {"snapshot_id": 1},
)


class Visits:
    """The table of the page, whose scan is ours whatever the page asks for."""

    def __init__(self, scan: ts.Scan) -> None:
        self._scan = scan

    def scan(self, **asked: Any) -> ts.Scan:
        return self._scan


def filled(folder: Path) -> ts.Table:
    """A table with nulls, NaN, nested values and a row of eight megabytes, in four buckets with three runs each."""
    catalog = ts.open_catalog(str(folder / "warehouse"))
    catalog.create_database("web")
    options = {"bucket": "4", "target-file-size": "1 mb", "write-only": "true"}
    table = catalog.create_table("web.visits", schema=SCHEMA, primary_key=["id"], options=options)
    for version in range(3):
        table.upsert(pa.Table.from_pylist([row(number, version) for number in range(version, ROWS, version + 1)], SCHEMA))
    return table


def row(number: int, version: int) -> dict[str, Any]:
    return {
        "id": number,
        "page": None if number % 11 == 0 else f"page {number % 7} of {version}",
        "seconds": float("nan") if number % 5 == 0 else number / 3,
        "body": os.urandom(8_000_000) if number == 7 else b"x" * (number % 100),
        "at": number * 1_000_003,
        "price": None if number % 13 == 0 else number * 10**20,
        "tags": None if number % 4 == 0 else [str(number)] * (number % 3),
        "place": None if number % 6 == 0 else {"x": -0.0, "odd `name": number},
    }


def rows_of(frame: Any, name: str) -> Iterable[pa.Table]:
    if name == "daft":
        return [frame.to_arrow()]
    import ray

    tables: list[pa.Table] = ray.get(frame.to_arrow_refs())
    return tables


def comparable(rows: pa.Table, names: list[str]) -> list[str]:
    """As texts: NaN is not equal to itself."""
    return sorted(map(str, rows.select(names).to_pylist()))


def main(name: str, folder: Path) -> None:
    (recipe,) = [block.code for block in pages.blocks(pages.PROJECT / "docs" / "guides" / "read.md") if block.need == name]
    table = filled(folder)
    for asked in SCANS:
        scan = table.scan(**asked)
        namespace: dict[str, Any] = {"visits": Visits(scan)}
        exec(compile(recipe, name, "exec"), namespace)
        found = pa.concat_tables([scan.schema.empty_table(), *rows_of(namespace["frame"], name)], promote_options="permissive")
        expected = scan.to_arrow()
        names = scan.schema.names
        assert comparable(found, names) == comparable(expected, names), (asked, found.num_rows, expected.num_rows)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
