"""Spark's own ORC scan, as part of a read, gives the rows that a scan of ours gives; what it would read otherwise we read."""

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark_tablestore
import pytest

import tablestore as ts
from tablestore.table.catalog import Catalog
from tablestore.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.deep]

ORC = {"file.format": "orc", "write-only": "true"}
UTC_MICROS = pa.timestamp("us", tz="UTC")


def typed(name: str, kind: pa.DataType, sql: str) -> pa.Field:
    return pa.field(name, kind, True, {b"tablestore.type": sql.encode()})


# What Spark reads of an ORC file, up to the ends of each type.
NATIVE: list[tuple[pa.Field, list[Any]]] = [
    (pa.field("boolean", pa.bool_()), [True, False, None]),
    (pa.field("tinyint", pa.int8()), [-128, 127, None]),
    (pa.field("smallint", pa.int16()), [-(2**15), 2**15 - 1, None]),
    (pa.field("int", pa.int32()), [-(2**31), 2**31 - 1, None]),
    (pa.field("bigint", pa.int64()), [-(2**63), 2**63 - 1, None]),
    (pa.field("float", pa.float32()), [-0.0, math.nan, math.inf]),
    (pa.field("double", pa.float64()), [5e-324, math.nan, -math.inf]),
    (pa.field("decimal_5", pa.decimal128(5, 2)), [Decimal("-999.99"), Decimal("0.01"), None]),
    (pa.field("decimal_18", pa.decimal128(18, 0)), [Decimal(10**18 - 1), Decimal(1 - 10**18), None]),
    (pa.field("decimal_38", pa.decimal128(38, 38)), [Decimal("0." + "9" * 38), Decimal("-0." + "9" * 38), None]),
    (typed("char", pa.string(), "CHAR(5)"), ["", "a  ", "äöü"]),
    (typed("varchar", pa.string(), "VARCHAR(7)"), ["seven77", "日本 ", None]),
    (pa.field("string", pa.string()), ["\x00 \U0001f9ee", "", "x" * 5000]),
    (typed("binary", pa.binary(), "BINARY(4)"), [b"\x00\xff\x00\xff", b"abcd", None]),
    (pa.field("bytes", pa.binary()), [b"", b"\x80" * 100, None]),
    (pa.field("date", pa.date32()), [date(1582, 10, 16), date(9999, 12, 31), date(1969, 12, 31)]),
    (
        pa.field("ltz_3", pa.timestamp("ms", tz="UTC")),
        [datetime(1970, 1, 1, tzinfo=UTC), datetime(2024, 3, 10, 7, 30, tzinfo=UTC), None],
    ),
    (pa.field("ltz_6", UTC_MICROS), [datetime(2024, 11, 3, 5, 30, 0, 1, tzinfo=UTC), datetime(2261, 1, 1, tzinfo=UTC), None]),
    (pa.field("array", pa.list_(pa.float64())), [[1.5, None, math.nan], [], None]),
    (pa.field("map", pa.map_(pa.string(), pa.int64())), [[("k", 1)], [], None]),
    (pa.field("row", pa.struct([("n", pa.int32()), ("T", pa.string())])), [{"n": 1, "T": "q"}, {"n": None, "T": None}, None]),
    (pa.field("Odd.name ä", pa.int32()), [1, 2, None]),
]
# What it reads otherwise, or not at all.
OURS: list[tuple[pa.Field, list[Any]]] = [
    (pa.field("old_date", pa.date32()), [date(1582, 10, 4), date(1, 1, 1), date(1500, 3, 1)]),
    (pa.field("gap_date", pa.date32()), [date(1582, 10, 15), date(1582, 10, 10), None]),
    (pa.field("ntz_6", pa.timestamp("us")), [datetime(2024, 3, 10, 2, 30), datetime(1860, 1, 1), None]),
    (
        pa.field("old_ltz", UTC_MICROS),
        [datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC), datetime(1700, 1, 1, tzinfo=UTC), None],
    ),
    (pa.field("dates", pa.list_(pa.date32())), [[date(2024, 1, 1)], [], None]),
    (pa.field("floats", pa.struct([("x", pa.float64())])), [{"x": math.nan}, {"x": -0.0}, None]),
]
ALL = [*NATIVE, *OURS]


@pytest.fixture
def rows() -> pa.Table:
    schema = pa.schema([pa.field("id", pa.int64(), False), *(field for field, _ in ALL)])
    return pa.Table.from_arrays(
        [pa.array([0, 1, 2], pa.int64()), *(pa.array(values, field.type) for field, values in ALL)], schema=schema
    )


def readers(spark: "SparkSession", table: Table, columns: list[str] | None = None) -> set[str]:
    """Who reads the files: ``orc`` is Spark's own scan, ``python`` tasks of ours."""
    plan = pyspark_tablestore.read(spark, table.location, columns=columns)._jdf.queryExecution().toString()
    return {name for name, words in {"orc": "Scan orc", "parquet": "Scan parquet", "python": "Python"}.items() if words in plan}


def texts(rows: pa.Table) -> list[str]:
    """The rows by their id; NaN is equal to itself as a text."""
    return [repr(row) for row in rows.sort_by("id").to_pylist()]


@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "append"])
def test_every_type_comes_out_as_in_a_scan_of_ours(spark: "SparkSession", catalog: Catalog, rows: pa.Table, keyed: bool) -> None:
    key: dict[str, Any] = {"primary_key": ["id"]} if keyed else {}
    table = catalog.create_table("shop.all", schema=rows.schema, options=ORC, **key)
    (table.upsert if keyed else table.append)(rows)
    names = ["id", *(field.name for field, _ in NATIVE)]
    assert readers(spark, table, names) == {"orc"}
    found = pyspark_tablestore.read(spark, table.location, columns=names).toArrow()
    assert texts(found.cast(table.scan(columns=names).to_arrow().schema)) == texts(table.scan(columns=names).to_arrow())
    others = [field.name for field, _ in OURS]
    for name in others:
        assert readers(spark, table, ["id", name]) == {"python"}, name
    found = pyspark_tablestore.read(spark, table.location, columns=["id", *others]).toArrow()
    assert texts(found.cast(table.scan(columns=["id", *others]).to_arrow().schema)) == texts(
        table.scan(columns=["id", *others]).to_arrow()
    )


CONDITIONS = (
    "date > DATE'1582-10-10'", "date = DATE'1582-10-16'", "date < DATE'1582-10-14'", "date IN (DATE'9999-12-31', DATE'1500-03-01')",
    "ltz_6 = TIMESTAMP'2024-11-03 05:30:00.000001+00:00'", "ltz_6 > TIMESTAMP'2024-11-03 05:30:00+00:00'",
    "ltz_6 >= TIMESTAMP'1850-01-01 00:00:00+00:00'", "ltz_3 < TIMESTAMP'1970-01-01 00:00:00.001+00:00'", "ltz_3 IS NULL",
    "double = double('NaN')", "double > 1e308", "NOT double < 0", "float = 0.0", "float IN (0.0, double('NaN'))",
    "string = repeat('x', 5000)", "string LIKE 'x%'", "string = ''", "string > 'a'", "char = 'a'", "char = 'a  '",
    "varchar = '日本 '", "binary = X'00ff00ff'", "bytes = X''", "decimal_5 = 0.01", "decimal_38 < 0", "decimal_18 > 1",
    "tinyint = -128", "bigint > 9223372036854775806", "boolean", "NOT boolean", "row.n = 1", "row IS NULL", "get(array, 0) = 1.5",
    "try_element_at(map, 'k') = 1", "int IS NOT NULL AND smallint < 0",
)  # fmt: skip


def test_conditions_keep_the_rows_that_they_keep_of_ours(spark: "SparkSession", catalog: Catalog, rows: pa.Table) -> None:
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as sf

    names = ["id", *(field.name for field, _ in NATIVE)]
    table = catalog.create_table("shop.files", schema=rows.select(names).schema, options=ORC)
    for place in range(rows.num_rows):
        # A file a row: what the reader skips by statistics is seen.
        table.append(rows.select(names).slice(place, 1))
    native = pyspark_tablestore.read(spark, table.location)
    assert readers(spark, table) == {"orc"}
    marks = [native.where(text).select(sf.lit(place).alias("place"), "id") for place, text in enumerate(CONDITIONS)]
    kept = {(row.place, row.id) for row in reduce(DataFrame.union, marks).collect()}
    memory = spark.createDataFrame(table.scan().to_arrow())
    answers = memory.select("id", *(sf.expr(text).alias(str(place)) for place, text in enumerate(CONDITIONS))).collect()
    expected = {(place, row.id) for row in answers for place in range(len(CONDITIONS)) if row[str(place)]}
    assert kept == expected
    assert len({place for place, _ in kept}) >= len(CONDITIONS) - 3
    for text in ("date > DATE '1582-10-10'", "double = 1.5 OR id = 1", "string = ''"):
        found = pyspark_tablestore.read(spark, table.location, columns=["id"], filter=text).collect()
        assert sorted(row.id for row in found) == sorted(table.scan(columns=["id"], filter=text).to_arrow()["id"].to_pylist())


def test_files_that_hold_more_than_live_rows_of_today_s_columns_are_read_by_us(spark: "SparkSession", catalog: Catalog) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), False), pa.field("n", pa.int32()), pa.field("Day", pa.date32())])
    table = catalog.create_table("shop.keyed", schema=schema, primary_key=["id"], options={**ORC, "bucket": "1"})
    day = [date(2024, 1, 1)] * 3
    table.upsert(pa.table({"id": [1, 2, 3], "n": [1, 2, 3], "Day": day}, schema=schema))
    table.upsert(pa.table({"id": [2], "n": [20], "Day": day[:1]}, schema=schema))
    table.delete(pa.table({"id": [3]}))
    assert readers(spark, table) == {"python"}
    table.compact(full=True)
    expected = table.scan().to_arrow().sort_by("id").to_pylist()
    assert readers(spark, table) == {"orc"}
    assert pyspark_tablestore.read(spark, table.location).toArrow().sort_by("id").to_pylist() == expected
    table.alter([ts.RenameColumn("n", to="m"), ts.AddColumn("extra", "STRING")])
    assert readers(spark, table, ["id", "Day"]) == {"orc"}
    assert readers(spark, table, ["id", "m"]) == readers(spark, table, ["id", "extra"]) == {"python"}
    renamed = pyspark_tablestore.read(spark, table.location, columns=["id", "m", "extra"]).toArrow().sort_by("id").to_pylist()
    assert renamed == [{"id": row["id"], "m": row["n"], "extra": None} for row in expected]
    # One more file, in another format: each is read by its own reader.
    table = catalog.create_table("shop.mixed", schema=schema, options={**ORC, "bucket": "-1"})
    table.append(pa.table({"id": [1], "n": [1], "Day": day[:1]}, schema=schema))
    table.append(pa.table({"id": [2], "n": [2], "Day": [date(1500, 1, 1)]}, schema=schema))
    assert readers(spark, table) == {"orc", "python"}
    assert sorted(row.Day for row in pyspark_tablestore.read(spark, table.location).collect()) == [date(1500, 1, 1), day[0]]


@pytest.mark.parametrize("setting", ["spark.sql.orc.enableVectorizedReader", "spark.sql.orc.impl"])
def test_settings_under_which_spark_reads_orc_otherwise_leave_it_to_us(
    spark: "SparkSession", catalog: Catalog, setting: str
) -> None:
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32())])
    table = catalog.create_table("shop.set", schema=schema, options=ORC)
    table.append(pa.table({"id": [1], "day": [date(2024, 1, 1)]}))
    by_place = catalog.create_table("shop.places", schema=pa.schema([("_col1", pa.int64()), ("_col0", pa.int64())]), options=ORC)
    by_place.append(pa.table({"_col1": [1], "_col0": [0]}))
    assert readers(spark, table) == {"orc"}
    assert readers(spark, by_place) == {"python"}
    before = spark.conf.get(setting, None)
    spark.conf.set(setting, {"spark.sql.orc.impl": "hive"}.get(setting, "false"))
    try:
        assert readers(spark, table) == {"python"}
        assert pyspark_tablestore.read(spark, table.location).count() == 1
    finally:
        spark.conf.unset(setting) if before is None else spark.conf.set(setting, before)
