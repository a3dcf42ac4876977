"""Buckets are compacted on executors, and the rows stay what they are."""

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tablestore.errors import InvalidInputError
from tablestore.table.catalog import Catalog
from tablestore.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROWS = pa.schema([("id", pa.int64()), ("day", pa.string()), ("v", pa.int64())])


@pytest.fixture
def layered(catalog: Catalog) -> Table:
    table = catalog.create_table(
        "shop.layered",
        schema=ROWS,
        primary_key=["id", "day"],
        partition_by=["day"],
        options={"bucket": "3", "write-only": "true"},
    )
    for version in range(6):
        table.upsert(pa.table({"id": list(range(50)) * 2, "day": ["mon"] * 50 + ["tue"] * 50, "v": [version] * 100}))
    return table


def _rows(table: Table) -> list[tuple[int, str, int]]:
    return sorted((row["id"], row["day"], row["v"]) for row in table.scan().to_arrow().to_pylist())


@pytest.mark.deep
def test_all_buckets_of_all_partitions_are_compacted_on_executors(spark: "SparkSession", layered: Table) -> None:
    from pyspark_tablestore.compact import compact

    before = _rows(layered)
    report = compact(spark, layered.location, full=True)
    assert (report.tasks, report.buckets, report.dropped) == (6, 6, 0)
    assert _rows(layered) == before and set(layered.files()["level"].to_pylist()) == {5}
    assert compact(spark, layered.location, full=True).tasks == 0


@pytest.mark.deep
def test_some_partitions_are_compacted_as_far_as_it_is_due(spark: "SparkSession", layered: Table) -> None:
    from pyspark_tablestore.compact import compact

    before = _rows(layered)
    report = compact(spark, layered.location, partitions=[{"day": "tue"}])
    assert report.buckets == 3
    assert {(row["partition"].strip("/"), row["level"]) for row in layered.files().to_pylist()} == {("day=mon", 0), ("day=tue", 5)}
    assert _rows(layered) == before
    with pytest.raises(InvalidInputError, match="not a partition column"):
        compact(spark, layered.location, partitions=[{"dy": "tue"}])
