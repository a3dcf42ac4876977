"""The picture of a table: bars along the keys, and how many runs lie over each other."""

from datetime import date

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.table.inspect.bucketpicture import BucketPicture, picture_buckets


@pytest.fixture
def catalog() -> ts.Catalog:
    catalog = ts.open_catalog("memory://describe")
    catalog.create_database("d", ignore_if_exists=True)
    for name in catalog.list_tables("d"):
        catalog.drop_table(f"d.{name}")
    return catalog


def pictures(table: ts.Table) -> tuple[BucketPicture, ...]:
    context = table.context
    return picture_buckets(context.manifests.live(context.snapshots.latest()), context.schema, context.settings)


def keyed(catalog: ts.Catalog, kind: pa.DataType, *runs: list[object]) -> BucketPicture:
    schema = pa.schema([("k", kind), ("v", pa.int32())])
    table = catalog.create_table("d.keyed", schema=schema, primary_key=["k"], options={"write-only": "true"})
    for keys in runs:
        table.upsert(pa.table({"k": keys, "v": list(range(len(keys)))}, schema=schema))
    (picture,) = pictures(table)
    return picture


def test_an_empty_table_has_no_picture(catalog: ts.Catalog) -> None:
    assert pictures(catalog.create_table("d.t", schema=pa.schema([("a", pa.int32())]))) == ()


def test_bars_lie_along_the_keys_newest_run_first(catalog: ts.Catalog) -> None:
    picture = keyed(catalog, pa.int64(), [0, 50], [25, 75], [100])
    assert [(run.files[0].left, run.files[0].right) for run in picture.runs] == [(1.0, 1.0), (0.25, 0.75), (0.0, 0.5)]
    assert [run.level for run in picture.runs] == [0, 0, 0]
    assert picture.depth(4) == (1, 2, 1, 1)
    assert (picture.files, picture.rows) == (3, 5)


def test_what_overlaps_is_merged_and_is_the_debt(catalog: ts.Catalog) -> None:
    picture = keyed(catalog, pa.int64(), [0, 50], [25, 75], [100])
    assert picture.most_merged == 2
    first, second = picture.runs[2], picture.runs[1]
    assert picture.merged_bytes == picture.debt_bytes == first.size_bytes + second.size_bytes


def test_runs_beside_each_other_are_no_debt(catalog: ts.Catalog) -> None:
    picture = keyed(catalog, pa.int64(), [0, 1], [2, 3])
    assert (picture.most_merged, picture.debt_bytes) == (1, 0)


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        (pa.string(), [["a", "m"], ["b", "z"]]),
        (pa.string(), [["a"], ["a"]]),
        (pa.date32(), [[date(2026, 1, 1)], [date(2026, 1, 31)]]),
        (pa.float64(), [[float("nan"), 1.0], [2.0]]),
        (pa.int64(), [[7], [7]]),
        (pa.bool_(), [[False], [True]]),
    ],
    ids=["text", "one text", "dates", "nan", "one number", "booleans"],
)
def test_every_kind_of_key_has_a_place(catalog: ts.Catalog, kind: pa.DataType, keys: list[list[object]]) -> None:
    picture = keyed(catalog, kind, *keys)
    for run in picture.runs:
        for file in run.files:
            assert 0 <= file.left <= file.right <= 1
    assert sum(picture.depth(10)) >= len(picture.runs)


def test_append_files_lie_along_their_rows_by_partition(catalog: ts.Catalog) -> None:
    schema = pa.schema([("day", pa.date32()), ("n", pa.int64())])
    table = catalog.create_table("d.t", schema=schema, partition_by=["day"])
    day = date(2026, 1, 31)
    table.append(pa.table({"day": [day] * 3, "n": [1, 2, 3]}, schema=schema))
    table.append(pa.table({"day": [day], "n": [4]}, schema=schema))
    (picture,) = pictures(table)
    assert picture.partition == "day=2026-01-31"
    assert [(file.left, file.right) for file in picture.runs[0].files] == [(0.0, 0.75), (0.75, 1.0)]
    assert picture.debt_bytes == picture.size_bytes
    assert picture.most_merged == 1


def test_one_small_file_alone_is_no_debt(catalog: ts.Catalog) -> None:
    table = catalog.create_table("d.t", schema=pa.schema([("n", pa.int64())]))
    table.append(pa.table({"n": [1]}))
    assert pictures(table)[0].debt_bytes == 0
