"""Each place that writes data files gives them the format that the table's options say."""

import datetime
import decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.format.parquet.parquetschema import SEQUENCE_COLUMN
from tablestore.format.paths import file_format_of
from tablestore.store.commit.committerfactory import _rewrite
from tablestore.store.scan.splitreader import SplitReader
from tablestore.table.inspect.check import check_table

FORMATS = ("parquet", "orc", "avro")
COLUMNS = pa.schema(
    [
        pa.field("k", pa.int64(), nullable=False),
        pa.field("day", pa.date32(), nullable=False),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("time", pa.time32("ms")),
        pa.field("price", pa.decimal128(20, 3)),
        pa.field("tags", pa.map_(pa.string(), pa.list_(pa.struct([("x", pa.timestamp("ms"))])))),
    ]
)


def rows(*keys: int, day: int = 1) -> pa.Table:
    def row(key: int) -> dict[str, Any]:
        moment = datetime.datetime(2024, 1, 1, 12, 0, 0, key, tzinfo=datetime.UTC)
        tags = None if key % 3 == 0 else [(f"tag {key}", [{"x": moment.replace(tzinfo=None, microsecond=0)}, None])]
        return {
            "k": key,
            "day": datetime.date(2024, 1, day),
            "at": moment,
            "time": None if key % 2 else datetime.time(1, 2, 3, 4000),
            "price": decimal.Decimal(key) / 8 if key else None,
            "tags": tags,
        }

    return pa.Table.from_pylist([row(key) for key in keys], COLUMNS)


def created(tmp_path: Path, options: dict[str, str], key: tuple[str, ...] = ()) -> ts.Table:
    catalog = ts.open_catalog(f"memory://{tmp_path.name}")
    catalog.create_database("d")
    return catalog.create_table("d.t", schema=COLUMNS, primary_key=list(key), partition_by=["day"], options=options)


def formats(table: ts.Table) -> list[str]:
    return sorted({file_format_of(name) for name in table.system("files").to_arrow()["file_path"].to_pylist()})


@pytest.mark.parametrize("thin", ["true", "false"])
@pytest.mark.parametrize("file_format", FORMATS)
def test_a_file_that_gets_another_sequence_number_keeps_its_format_and_rows(tmp_path: Path, file_format: str, thin: str) -> None:
    table = created(tmp_path, key=("k", "day"), options={"bucket": "1", "file.format": file_format, "data-file.thin-mode": thin})
    table.upsert(rows(*range(9)))
    context = table.context
    (entry,) = context.manifests.live(context.snapshots.latest())
    renumbered = _rewrite(context, entry, 77)
    assert file_format_of(renumbered.file_name) == file_format
    assert (renumbered.min_sequence_number, renumbered.max_sequence_number) == (77, 77)
    reader = SplitReader.of(context, (), None)
    directory = reader.directory(entry.partition, entry.bucket)
    old, new = (
        pa.Table.from_batches(list(reader.file_rows(directory, file, COLUMNS.names, (SEQUENCE_COLUMN,))))
        for file in (entry.file, renumbered)
    )
    assert new.drop_columns(SEQUENCE_COLUMN).equals(old.drop_columns(SEQUENCE_COLUMN)) and new.num_rows == 9
    assert set(new[SEQUENCE_COLUMN].to_pylist()) == {77}


@pytest.mark.parametrize("vectors", ["false", "true"])
@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_rows_of_an_append_table_are_updated_and_deleted(tmp_path: Path, file_format: str, vectors: str) -> None:
    table = created(tmp_path, {"file.format": file_format, "deletion-vectors.enabled": vectors})
    table.append(rows(*range(6)))
    table.append(rows(*range(6, 9), day=2))
    table.delete("k IN (1, 7)")
    table.update({"price": "NULL"}, "k = 2")
    expected = {row["k"]: row for row in pa.concat_tables([rows(0, 2, 3, 4, 5), rows(6, 8, day=2)]).to_pylist()}
    expected[2]["price"] = None
    read = table.scan().to_arrow()
    assert {row["k"]: row for row in read.to_pylist()} == expected and read.num_rows == 7
    assert formats(table) == [file_format]
    table.compact(full=True)
    assert {row["k"]: row for row in table.scan().to_arrow().to_pylist()} == expected
    assert formats(table) == [file_format] and not check_table(table.context, deep=True)


def test_new_files_have_the_format_that_the_table_has_now(tmp_path: Path) -> None:
    table = created(tmp_path, key=("k", "day"), options={"bucket": "1", "write-only": "true"})
    for number, file_format in enumerate(FORMATS):
        table.alter(ts.SetOption("file.format", file_format))
        table.upsert(rows(number, 10 + number, 20))
        assert formats(table) == sorted(FORMATS[: number + 1])
    assert sorted(table.scan().to_arrow()["k"].to_pylist()) == [0, 1, 2, 10, 11, 12, 20]
    assert table.scan(filter="k = 11").to_arrow()["price"].to_pylist() == [decimal.Decimal("1.375")]
    table.overwrite(rows(5, day=2))
    assert formats(table) == ["avro", "orc", "parquet"]
    table.compact(full=True)
    assert formats(table) == ["avro"] and not check_table(table.context, deep=True)


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_a_restored_file_is_a_copy_in_its_format(tmp_path: Path, file_format: str) -> None:
    table = created(tmp_path, key=("k", "day"), options={"bucket": "1", "file.format": file_format})
    first = table.upsert(rows(1, 2))
    assert first is not None
    table.upsert(rows(2, 3))
    table.compact(full=True)
    table.alter(ts.SetOption("file.format", "parquet"))
    assert table.rollback_to(first.id) is not None
    assert sorted(table.scan().to_arrow()["k"].to_pylist()) == [1, 2]
    assert formats(table) == [file_format] and not check_table(table.context, deep=True)
