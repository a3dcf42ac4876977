"""Scans leave out row groups whose bounds say that no row is kept, and no row with them."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tablestore as ts
from tablestore.format.parquet.parquetread import ParquetFileReader

COUNT = 4_000
BASE = datetime(2020, 1, 1)
COLUMNS: dict[str, tuple[pa.DataType, Any]] = {
    "i": (pa.int64(), lambda n: n * (2**50) - 2**61),
    "t": (pa.int8(), lambda n: n % 120),
    "s": (pa.string(), lambda n: f"{n:05}é" if n % 7 else ""),
    "b": (pa.binary(), lambda n: n.to_bytes(4, "big") + b"\xff"),
    "f": (pa.float64(), lambda n: float("nan") if n % 97 == 0 else -0.0 if n % 89 == 0 else (n - 2000) * 1e300),
    "g": (pa.float32(), lambda n: float("inf") if n == 3000 else float(n)),
    "d": (pa.decimal128(38, 2), lambda n: Decimal(n - 2000) * Decimal(10**20)),
    "e": (pa.date32(), lambda n: date(1, 1, 1) + timedelta(days=900 * n)),
    "ts": (pa.timestamp("us"), lambda n: BASE + timedelta(seconds=n)),
    "tz": (pa.timestamp("us", "UTC"), lambda n: (BASE + timedelta(hours=n)).replace(tzinfo=UTC)),
    "ns": (pa.timestamp("ns"), lambda n: n * 1_000_000_007),
    "o": (pa.bool_(), lambda n: n > 3500),
}


def _rows() -> pa.Table:
    values = {name: [make(n) if n % 41 else None for n in range(COUNT)] for name, (_, make) in COLUMNS.items()}
    schema = pa.schema([("id", pa.int64()), *((name, kind) for name, (kind, _) in COLUMNS.items())])
    return pa.table({"id": list(range(COUNT)), **values}, schema=schema)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ts.Table:
    catalog = ts.open_catalog(str(tmp_path_factory.mktemp("groups")))
    catalog.create_database("db")
    rows = _rows()
    table = catalog.create_table("db.t", rows.schema, options={"file.block-size": "64 kb", "metadata.stats-mode": "none"})
    table.append(rows)
    return table


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """For each file that is read: how many row groups were, of how many."""
    seen: list[tuple[int, int]] = []
    read = ParquetFileReader.read

    def noted(self: ParquetFileReader, columns: Any = None, row_groups: Any = None, **how: Any) -> Any:
        count = self._file.metadata.num_row_groups
        seen.append((count if row_groups is None else len(row_groups), count))
        return read(self, columns, row_groups, **how)

    monkeypatch.setattr(ParquetFileReader, "read", noted)
    return seen


@pytest.mark.parametrize(
    "filter",
    [
        "id = 17",
        "i > 4300000000000000000",
        "s >= '03999'",
        "s LIKE '0123%'",
        "b < X'00000010'",
        "d BETWEEN -100 AND 100",
        "d > 190000000000000000000000.00",
        "e < DATE '0003-01-01'",
        "ts >= TIMESTAMP '2020-01-01 01:00:00'",
        "o",
        "id IN (5, 3999)",
        "NOT (id < 3990)",
        "g < 10",
        "id = 17 AND t = 99",
    ],
)
def test_a_filter_reads_few_row_groups_and_finds_all_rows(table: ts.Table, groups: list[tuple[int, int]], filter: str) -> None:
    expected = [row["id"] for row in _matching(table, filter)]
    groups.clear()
    result = table.scan(columns=["id"], filter=filter).to_arrow()["id"].to_pylist()
    assert result == expected
    [(read, count)] = groups
    assert count > 3 and read < count


@pytest.mark.parametrize(
    "filter",
    [
        "s = '00123é'",
        "f > 1e305",
        "f >= 0.0",
        "f = -0.0",
        "f < -1e303",
        "g > 3999",
        "i IS NULL",
        "t = 5 OR s IS NULL",
        "tz < TIMESTAMP '2020-01-01 05:00:00Z'",
        "ns > TIMESTAMP '1970-01-01 01:00:00.000000001'",
        "NOT (s = '' OR s > '00001')",
        "s != ''",
    ],
)
def test_no_row_is_lost_whatever_the_bounds_leave_open(table: ts.Table, groups: list[tuple[int, int]], filter: str) -> None:
    expected = [row["id"] for row in _matching(table, filter)]
    assert table.scan(columns=["id"], filter=filter).to_arrow()["id"].to_pylist() == expected


def _matching(table: ts.Table, filter: str) -> list[dict[str, Any]]:
    """The rows, filtered by the same rules after all of them were read."""
    from tablestore.types.filter.filters import parse_filter
    from tablestore.types.filter.predicate import evaluate

    rows = table.scan().to_arrow()
    mask = pa.chunked_array([evaluate(parse_filter(filter, table.context.schema.fields), b) for b in rows.to_batches()])
    return list(rows.filter(pc.fill_null(mask, False)).select(["id"]).to_pylist())


def test_rows_that_deletion_vectors_name_stay_deleted(tmp_path: Path, groups: list[tuple[int, int]]) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("db")
    rows = _rows().select(["id", "s"])
    table = catalog.create_table(
        "db.t", rows.schema, options={"file.block-size": "64 kb", "deletion-vectors.enabled": "true", "write-only": "true"}
    )
    table.append(rows)
    table.delete("id >= 3000 AND id < 3990")
    assert table.scan(columns=["id"], filter="id > 2997").to_arrow()["id"].to_pylist() == [2998, 2999, *range(3990, COUNT)]


def test_a_column_that_was_renamed_or_widened_is_not_taken_for_another(tmp_path: Path) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("db")
    rows = pa.table({"a": pa.array(range(COUNT), pa.int32()), "b": pa.array(range(COUNT, 0, -1), pa.int32())})
    table = catalog.create_table("db.t", rows.schema, options={"file.block-size": "64 kb", "metadata.stats-mode": "none"})
    table.append(rows)
    table.alter([ts.RenameColumn("a", to="c")])
    table.alter([ts.RenameColumn("b", to="a")])
    table.alter([ts.ChangeType("c", "BIGINT")])
    table = table.refresh()
    assert table.scan(filter="a = 1").to_arrow().to_pylist() == [{"c": COUNT - 1, "a": 1}]
    assert table.scan(filter="c = 1").to_arrow().to_pylist() == [{"c": 1, "a": COUNT - 1}]


def test_keyed_tables_hide_and_update_rows_as_ever(tmp_path: Path) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("db")
    rows = _rows().select(["id", "s", "t"])
    table = catalog.create_table("db.t", rows.schema, primary_key=["id"], options={"file.block-size": "64 kb"})
    table.upsert(rows)
    table.upsert(rows.slice(100, 50).set_column(2, "t", pa.array([-7] * 50, pa.int8())))
    table.delete("id > 3000 AND id < 3900")
    assert table.scan(columns=["id"], filter="t = -7").to_arrow()["id"].to_pylist() == list(range(100, 150))
    table.compact(full=True)
    table = table.refresh()
    assert table.scan(columns=["id"], filter="t = -7").to_arrow()["id"].to_pylist() == list(range(100, 150))
    assert table.scan(columns=["id"], filter="id > 2999").to_arrow()["id"].to_pylist() == [3000, *range(3900, COUNT)]
