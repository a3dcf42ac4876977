"""Every type goes through Spark and back unchanged, in a session whose time zone is not UTC."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tablestore.table.catalog import Catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def typed(name: str, data_type: pa.DataType, sql: str | None = None, *, nullable: bool = True) -> pa.Field:
    return pa.field(name, data_type, nullable, {b"tablestore.type": sql.encode()} if sql else None)


OLD, LATE = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)
# In New York 2024-03-10 02:30 does not exist and 2024-11-03 01:30 exists twice; before 1883 its offset has odd seconds.
GAP, TWICE, LMT = datetime(2024, 3, 10, 2, 30), datetime(2024, 11, 3, 1, 30, 0, 123456), datetime(1860, 1, 1, 0, 0, 1)
NESTED = pa.struct(
    [
        ("n", pa.int32()),
        ("list", pa.list_(pa.struct([("t", pa.timestamp("us")), ("z", pa.timestamp("ms", tz="UTC"))]))),
        ("map", pa.map_(pa.string(), pa.list_(pa.decimal128(5, 1)))),
    ]
)
CASES: list[tuple[pa.Field, list[Any]]] = [
    (typed("boolean", pa.bool_()), [True, False, None]),
    (typed("tinyint", pa.int8()), [-128, 127, None]),
    (typed("smallint", pa.int16()), [-(2**15), 2**15 - 1, None]),
    (typed("int", pa.int32()), [-(2**31), 2**31 - 1, None]),
    (typed("bigint", pa.int64()), [-(2**63), 2**63 - 1, None]),
    (typed("float", pa.float32()), [-0.0, 1.5, float("inf")]),
    (typed("double", pa.float64()), [-1.7976931348623157e308, 5e-324, None]),
    (typed("decimal_small", pa.decimal128(5, 2)), [Decimal("-999.99"), Decimal("0.01"), None]),
    (typed("decimal_large", pa.decimal128(38, 10)), [Decimal(10) ** 27, -Decimal("0.0000000001"), None]),
    (typed("char", pa.string(), "CHAR(5)"), ["", "äöü", None]),
    (typed("varchar", pa.string(), "VARCHAR(7)"), ["seven77", "日本", None]),
    (typed("string", pa.string()), ["\x00 \U0001f9ee", "", None]),
    (typed("binary", pa.binary(), "BINARY(4)"), [b"\x00\xff\x00\xff", b"abcd", None]),
    (typed("varbinary", pa.binary(), "VARBINARY(9)"), [b"", b"\x00" * 9, None]),
    (typed("bytes", pa.binary()), [b"", b"\x80" * 100, None]),
    (typed("date", pa.date32()), [date(1, 1, 1), date(9999, 12, 31), None]),
    (typed("time_0", pa.time32("ms"), "TIME(0)"), [time(0, 0), time(23, 59, 59), None]),
    (typed("time_3", pa.time32("ms"), "TIME(3)"), [time(0, 0, 0, 1000), time(23, 59, 59, 999000), None]),
    (typed("ts_0", pa.timestamp("ms"), "TIMESTAMP(0)"), [OLD, GAP, None]),
    (typed("ts_3", pa.timestamp("ms")), [GAP, LMT, None]),
    (typed("ts_6", pa.timestamp("us")), [OLD, LATE, TWICE]),
    (typed("ts_9", pa.timestamp("ns")), [GAP, TWICE, None]),
    (typed("ltz_0", pa.timestamp("ms", tz="UTC"), "TIMESTAMP(0) WITH LOCAL TIME ZONE"), [OLD.replace(tzinfo=UTC), None, None]),
    (typed("ltz_3", pa.timestamp("ms", tz="UTC")), [GAP.replace(tzinfo=UTC), LMT.replace(tzinfo=UTC), None]),
    (typed("ltz_6", pa.timestamp("us", tz="UTC")), [t.replace(tzinfo=UTC) for t in (OLD, LATE, TWICE)]),
    (typed("ltz_9", pa.timestamp("ns", tz="UTC")), [TWICE.replace(tzinfo=UTC), None, LMT.replace(tzinfo=UTC)]),
    (typed("array", pa.list_(pa.int16())), [[1, None, 3], [], None]),
    (typed("strict_array", pa.list_(pa.field("element", pa.string(), False)), nullable=False), [["a"], [], [""]]),
    (typed("map", pa.map_(pa.string(), pa.float64())), [[("a", 1.0), ("b", None)], [], None]),
    (typed("map_of_days", pa.map_(pa.date32(), pa.timestamp("us"))), [[(date(2024, 1, 1), GAP)], [], None]),
    (typed("multiset", pa.map_(pa.string(), pa.field("value", pa.int32(), False)), "MULTISET<STRING>"), [[("x", 2)], [], None]),
    (
        typed("row", NESTED),
        [
            {"n": 1, "list": [{"t": TWICE, "z": GAP.replace(tzinfo=UTC)}, None], "map": [("k", [Decimal("1.5"), None])]},
            {"n": None, "list": None, "map": []},
            None,
        ],
    ),
]
SCHEMA = pa.schema([pa.field("id", pa.int64(), False), *(field for field, _ in CASES)])
# Spark's Parquet scan reads all but these as we do.
OURS_ONLY = ("time_0", "time_3", "ts_9", "ltz_9")


@pytest.fixture
def rows() -> pa.Table:
    columns = [pa.array([0, 1, 2], pa.int64()), *(pa.array(values, field.type) for field, values in CASES)]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


@pytest.mark.deep
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "append"])
@pytest.mark.since(4, 1)
def test_all_types_through_the_data_source(spark: "SparkSession", catalog: Catalog, rows: pa.Table, keyed: bool) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "America/New_York"
    key = {"primary_key": ["id"]} if keyed else {}
    first, second = (catalog.create_table(f"shop.{name}", schema=SCHEMA, **key) for name in ("first", "second"))  # type: ignore[arg-type]
    (first.upsert if keyed else first.append)(rows)
    stored = first.scan().to_arrow().sort_by("id")
    assert stored.to_pylist() == rows.to_pylist()
    frame = spark.read.format("tablestore").load(first.location)
    frame.write.format("tablestore").mode("append").save(second.location)
    assert second.scan().to_arrow().sort_by("id").equals(stored)
    # And once more without a file of Spark's making in between: what Spark itself computes with.
    assert frame.where("ts_6 = TIMESTAMP_NTZ'2024-11-03 01:30:00.123456'").count() == 1
    assert frame.where("ltz_6 = TIMESTAMP'2024-11-03 01:30:00.123456+00:00'").count() == 1
    assert frame.where("time_0 = TIME'23:59:59' AND date = DATE'9999-12-31'").count() == 1


@pytest.mark.deep
@pytest.mark.since(4, 1)
def test_all_types_through_the_union_read_and_the_driver_s_write(spark: "SparkSession", catalog: Catalog, rows: pa.Table) -> None:
    from pyspark_tablestore import read, write

    tables = {name: catalog.create_table(f"shop.{name}", schema=SCHEMA, primary_key=["id"]) for name in ("first", "second")}
    tables["first"].upsert(rows)
    names = [name for name in SCHEMA.names if name not in OURS_ONLY]
    native = read(spark, tables["first"].location, columns=names)
    assert "Scan parquet" in native._jdf.queryExecution().toString()
    everything = read(spark, tables["first"].location)
    assert "Scan parquet" not in everything._jdf.queryExecution().toString()
    write(native.join(everything.select("id", *OURS_ONLY), "id"), tables["second"].location)
    assert tables["second"].scan().to_arrow().sort_by("id").to_pylist() == rows.to_pylist()


@pytest.mark.deep
def test_digits_that_spark_has_no_room_for_are_refused_by_name(spark: "SparkSession", catalog: Catalog) -> None:
    table = catalog.create_table("shop.nanos", schema=pa.schema([("id", pa.int64()), ("at", pa.timestamp("ns"))]))
    table.append(pa.table({"id": [1], "at": pa.array([1], pa.timestamp("ns"))}))
    with pytest.raises(Exception, match=r"(?s)UnsupportedError.*column 'at' has a value that Spark cannot hold.*columns"):
        spark.read.format("tablestore").load(table.location).collect()
    assert spark.read.format("tablestore").option("columns", "id").load(table.location).count() == 1


def test_spark_types_without_a_counterpart_are_refused_by_name(spark: "SparkSession", catalog: Catalog) -> None:
    table = catalog.create_table("shop.plain", schema=pa.schema([("id", pa.int64()), ("v", pa.string())]))
    with pytest.raises(Exception, match=r"UnsupportedError.*column 'v' has the Spark type interval year"):
        spark.sql("SELECT 1L AS id, INTERVAL '1' YEAR AS v").write.format("tablestore").mode("append").save(table.location)


def test_comments_and_nullability_are_shown(spark: "SparkSession", catalog: Catalog) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), False, {b"comment": b"who"}), ("tags", pa.list_(pa.string()))])
    table = catalog.create_table("shop.said", schema=schema)
    shown = spark.read.format("tablestore").load(table.location).schema
    assert shown["id"].metadata == {"comment": "who"}
    assert [field.nullable for field in shown] == [False, True]
