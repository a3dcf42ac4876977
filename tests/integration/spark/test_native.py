"""Spark's own Parquet scan, as part of a read, keeps the rows that a scan of ours keeps: for every condition, setting and path."""

import math
import random
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark_tablestore
import pytest
from pyspark_tablestore import native
from pyspark_tablestore.conditions import condition
from pyspark_tablestore.relation import KeptScans

import tablestore as ts
from tablestore.table.catalog import Catalog
from tablestore.table.table import Table
from tablestore.types.filter.filters import parse_filter
from tests.integration.spark.test_types import OURS_ONLY
from tests.integration.spark.test_types import SCHEMA as ALL_TYPES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

(MINUS_NAN,) = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0000))
FLOATS = (math.nan, MINUS_NAN, 0.0, -0.0, math.inf, -math.inf, 1.0, -1.0, 2.5, 5e-324, 1.7976931348623157e308, None)
SINGLES = (math.nan, MINUS_NAN, 0.0, -0.0, math.inf, -math.inf, 1.0, -1.0, 2.5, 0.10000000149011612, None)
TEXTS = ("", "a", "a\nb", "a%_b", "ä", "\U0001f9ee", "Z", "zz", None)
LITERALS = ("double('NaN')", "0.0", "-0.0", "1", "2.5", "-1.0", "double('Infinity')", "-double('Infinity')", "0.1", "5e-324")
FUZZED = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("part", pa.string(), nullable=False),
        pa.field("x", pa.float64()),
        pa.field("y", pa.float32()),
        pa.field("n", pa.int32()),
        pa.field("t", pa.string()),
        pa.field("s", pa.struct([("f", pa.float64()), ("deep", pa.struct([("g", pa.float32()), ("n", pa.int32())]))])),
        pa.field("a", pa.list_(pa.float64())),
        pa.field("m", pa.map_(pa.string(), pa.float64())),
    ]
)
PLAIN = ("id", "part", "x", "y", "n", "t")


def fuzzed_rows(draw: random.Random, ids: Sequence[int], part: str) -> pa.Table:
    """Rows of few values, so that a file often holds one value only, or NaN beside one other."""
    pools = [draw.sample(pool, draw.randint(1, 3)) for pool in (FLOATS, SINGLES, (1, -5, 7, None), TEXTS)]

    def row(key: int) -> dict[str, Any]:
        x, y, n, t = (draw.choice(pool) for pool in pools)
        nested = draw.choice(({"f": x, "deep": {"g": y, "n": n}}, {"f": x, "deep": None}, None))
        return {"id": key, "part": part, "x": x, "y": y, "n": n, "t": t, "s": nested, "a": [x, None], "m": [("k", x)]}

    return pa.Table.from_pylist([row(key) for key in ids], schema=FUZZED)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Table]:
    """The same kind of rows three times: read natively, partly by us, and natively without the rows that newer ones hide. Files and
    row groups are small."""
    draw = random.Random(20)
    catalog = ts.open_catalog(str(tmp_path_factory.mktemp("fuzzed")))
    catalog.create_database("shop")
    options = {"write-only": "true"}
    plain = catalog.create_table("shop.plain", schema=FUZZED, options=options)
    for file in range(24):
        plain.append(fuzzed_rows(draw, range(8 * file, 8 * file + draw.randint(1, 8)), "p"))
    key = {"primary_key": ["part", "id"], "partition_by": ["part"]}
    mixed = catalog.create_table("shop.mixed", schema=FUZZED, options=options, **key)  # type: ignore[arg-type]
    for number in range(8):
        mixed.upsert(fuzzed_rows(draw, range(6), f"p{number}"))
    for number in range(0, 8, 4):
        mixed.upsert(fuzzed_rows(draw, range(3, 9), f"p{number}"))
    layered = catalog.create_table("shop.layered", schema=FUZZED, options={**options, "bucket": "2"}, **key)  # type: ignore[arg-type]
    for part in ("p0", "p1"):
        layered.upsert(fuzzed_rows(draw, range(120), part))
        for version in range(3):
            layered.upsert(fuzzed_rows(draw, range(version, 12, 4), part))
        layered.delete(pa.table({"part": [part], "id": [2]}))
    return {"native": plain, "mixed": mixed, "layered": layered}


class Conditions:
    """Random conditions, as SQL text that Spark and tablestore both read; ``nested`` ones only Spark reads."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw

    def condition(self, depth: int = 2, *, nested: bool = False) -> str:
        kind = self.draw.random()
        if depth and kind < 0.35:
            join = self.draw.choice((" AND ", " OR "))
            return "(" + join.join(self.condition(depth - 1, nested=nested) for _ in range(2)) + ")"
        if depth and kind < 0.45:
            return f"NOT {self.condition(depth - 1, nested=nested)}"
        return self.leaf(nested=nested)

    def leaf(self, *, nested: bool) -> str:
        column = self.draw.choice(("x", "x", "y", "y", "id", "n", "t"))
        if nested:
            column = self.draw.choice(("s.f", "s.f", "s.deep.g", "s.deep.g", "s.deep.n", "a[0]", "m['k']", "x"))
        if column == "t":
            value = "'" + str(self.draw.choice(TEXTS[:-1])).replace("\n", "\\n") + "'"
            values = [value, "'b'"]
        elif column in ("id", "n", "s.deep.n"):
            values = [str(self.draw.choice((1, -5, 7, 50, 0))) for _ in range(2)]
        else:
            values = [self.draw.choice(LITERALS) for _ in range(3)]
        match self.draw.randrange(8):
            case 0:
                return f"{column} IS {self.draw.choice(('', 'NOT '))}NULL"
            case 1:
                return f"{column} IN ({', '.join(values)})"
            case 2 if column not in ("t", "id"):
                return f"{column} BETWEEN {values[0]} AND {values[1]}"
            case 3:
                return f"{column} <=> {values[0]}"
            case _:
                return f"{column} {self.draw.choice(('=', '<>', '<', '<=', '>', '>='))} {values[0]}"


def kept(frames: "Sequence[DataFrame]") -> list[list[tuple[str, int]]]:
    """The keys of the rows of each frame, of all frames in one query."""
    from pyspark.sql import functions as sf

    numbered = [frame.select(sf.lit(number).alias("query"), "part", "id") for number, frame in enumerate(frames)]
    found: list[list[tuple[str, int]]] = [[] for _ in frames]
    for row in reduce(lambda one, two: one.union(two), numbered).collect():
        found[row.query].append((row.part, row.id))
    return [sorted(keys) for keys in found]


def scanned(table: Table, condition: str) -> list[tuple[str, int]]:
    rows = table.scan(columns=["part", "id"], filter=condition).to_arrow()
    return sorted(zip(rows["part"].to_pylist(), rows["id"].to_pylist(), strict=True))


def is_native(frame: "DataFrame") -> bool:
    plan = frame._jdf.queryExecution().toString()
    return "FileScan parquet" in plan or "BatchScan parquet" in plan


@contextmanager
def settings(spark: "SparkSession", **values: str) -> Iterator[None]:
    """Settings of the session, for a time; ``__`` stands for a dot."""
    named = {f"spark.sql.{key.replace('__', '.')}": value for key, value in values.items()}
    before = {key: spark.conf.get(key, None) for key in named}
    for key, value in named.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)


def fuzz(spark: "SparkSession", fuzzed: dict[str, Table], count: int, seed: int, *, few: int = 1, step: int = 20) -> None:
    """``few``: our own tasks run anew for every condition, so only one in so many is asked where they take part."""
    conditions = Conditions(random.Random(seed))
    texts = [conditions.condition() for _ in range(count)]
    for name, table in fuzzed.items():
        # Without the struct, in which a float alone would keep the reader from skipping anything.
        by_spark = pyspark_tablestore.read(spark, table.location, columns=PLAIN)
        assert is_native(by_spark)
        assert ("Python" in by_spark._jdf.queryExecution().toString()) == (name == "mixed")
        plans = {name: (by_spark, texts[::few] if name == "mixed" else texts)}
        if name == "mixed":
            plans["ours"] = (spark.read.format("tablestore").load(table.location), texts[::few])
        for plan, (frame, asked) in plans.items():
            expected = {text: scanned(table, text) for text in asked}
            assert sum(map(bool, expected.values())) > len(asked) // 4
            for start in range(0, len(asked), step):
                some = asked[start : start + step]
                found = kept([frame.where(text) for text in some])
                assert dict(zip(some, found, strict=True)) == {text: expected[text] for text in some}, plan


def fuzz_filters(spark: "SparkSession", fuzzed: dict[str, Table], count: int, seed: int, *, few: int = 1, step: int = 20) -> None:
    conditions = Conditions(random.Random(seed))
    texts = [conditions.condition() for _ in range(count)]
    for name, table in fuzzed.items():
        texts = texts if name == "native" else texts[::few]
        for start in range(0, len(texts), step):
            some = texts[start : start + step]
            frames = [pyspark_tablestore.read(spark, table.location, columns=["part", "id"], filter=text) for text in some]
            assert dict(zip(some, kept(frames), strict=True)) == {text: scanned(table, text) for text in some}, name


def fuzz_nested(spark: "SparkSession", fuzzed: dict[str, Table], count: int, seed: int, *, step: int = 20) -> None:
    """What only Spark filters, beside a table of Spark's own that holds the same rows in memory."""
    conditions = Conditions(random.Random(seed))
    texts = [conditions.condition(1, nested=True) for _ in range(count)]
    for name, table in fuzzed.items():
        # Not cached: batches of Spark's cache are left out by bounds without NaN, too.
        memory = spark.createDataFrame(table.scan().to_arrow())
        for start in range(0, count, step):
            some = texts[start : start + step]
            frame = pyspark_tablestore.read(spark, table.location)
            assert is_native(frame)
            expected = kept([memory.where(text) for text in some])
            assert dict(zip(some, kept([frame.where(text) for text in some]), strict=True)) == dict(
                zip(some, expected, strict=True)
            ), name


# Java is not compiled for every condition, and a scan of small files is one task or two.
QUICK = {"codegen__wholeStage": "false", "codegen__factoryMode": "NO_CODEGEN", "files__openCostInBytes": "1"}


@pytest.fixture
def quick(spark: "SparkSession") -> Iterator[None]:
    with settings(spark, **QUICK):
        yield


@pytest.mark.deep
@pytest.mark.usefixtures("quick")
def test_conditions_keep_the_rows_of_a_scan(spark: "SparkSession", fuzzed: dict[str, Table]) -> None:
    fuzz(spark, fuzzed, 20, 1, few=5)


@pytest.mark.deep
@pytest.mark.usefixtures("quick")
def test_filters_keep_the_rows_of_a_scan(spark: "SparkSession", fuzzed: dict[str, Table]) -> None:
    fuzz_filters(spark, fuzzed, 20, 2, few=4)


@pytest.mark.deep
@pytest.mark.usefixtures("quick")
def test_conditions_on_nested_floats_keep_the_rows_that_spark_keeps_in_memory(
    spark: "SparkSession", fuzzed: dict[str, Table]
) -> None:
    fuzz_nested(spark, {"native": fuzzed["native"]}, 20, 3)


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions make every scan anew: how it is made depends on what a test changes."""
    monkeypatch.setattr(KeptScans, "of", lambda _: KeptScans())


@pytest.mark.deep
@pytest.mark.usefixtures("quick", "forgetful")
def test_conditions_find_floats_that_reach_the_parquet_reader(
    spark: "SparkSession", fuzzed: dict[str, Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    some = {"native": fuzzed["native"]}
    monkeypatch.setattr(native, "_screened", lambda field: native.column(field.name))
    with pytest.raises(AssertionError, match="native"):
        fuzz(spark, some, 20, 1)
    monkeypatch.setattr(native, "_SKIP_NOTHING", {})
    with pytest.raises(AssertionError, match="native"):
        fuzz_nested(spark, some, 20, 3)


# By what Parquet is read: columns as vectors, row by row, and by the second version of Spark's sources.
READERS: dict[str, dict[str, str]] = {
    "vectors": {},
    "rows": {"parquet__enableVectorizedReader": "false"},
    "v2": {"sources__useV1SourceList": ""},
}


@pytest.mark.slow
@pytest.mark.usefixtures("quick", "forgetful")
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("what", ["conditions", "filters", "nested"])
def test_many_conditions_keep_the_rows_of_a_scan(spark: "SparkSession", fuzzed: dict[str, Table], reader: str, what: str) -> None:
    strict = {"parquet__recordLevelFilter__enabled": "true", "parquet__aggregatePushdown": "true"}
    # 100 that Spark reads natively, and 20 of them partly by us and by us alone, where each is a job that starts Python anew.
    count, few = 100, 5
    with settings(spark, **READERS[reader], **strict):
        match what:
            case "conditions":
                fuzz(spark, fuzzed, count, 11, few=few, step=50)
            case "filters":
                fuzz_filters(spark, fuzzed, count, 13, few=few, step=50)
            case _:
                fuzz_nested(spark, {"native": fuzzed["native"]}, count, 12, step=50)


@pytest.mark.deep
def test_text_of_any_length_and_many_values_are_filtered_natively_or_by_us(spark: "SparkSession", catalog: Catalog) -> None:
    table = catalog.create_table("shop.long", schema=pa.schema([("id", pa.int64()), ("t", pa.string())]))
    table.append(pa.table({"id": range(3000), "t": ["x" * (n % 7) for n in range(3000)]}))
    for text, natively in (
        (f"id IN ({', '.join(map(str, range(0, 900, 3)))})", True),
        (" OR ".join(f"id = {n}" for n in range(300)), True),
        (" OR ".join(f"id = {n}" for n in range(1100)), False),
        (f"t = '{'x' * 5000}' OR id = 7", True),
        (r"t LIKE '\x_' OR t LIKE 'xx\%' OR t LIKE ''", True),
        ("NULL OR id = 3", True),
    ):
        frame = pyspark_tablestore.read(spark, table.location, filter=text)
        assert is_native(frame) == natively
        assert sorted(row.id for row in frame.collect()) == sorted(table.scan(filter=text).to_arrow()["id"].to_pylist())


# For each column of `test_types`, values in the middle, at the ends, and beyond what the type holds.
VALUES: dict[str, Sequence[str]] = {
    "boolean": ("TRUE", "FALSE"),
    "tinyint": ("-128", "127", "1.5", "1000"),
    "smallint": ("-32768", "0"),
    "int": ("-2147483648", "2147483647", "1e30"),
    "bigint": ("-9223372036854775808", "9223372036854775807", "0.5"),
    "float": ("0", "1.5", "0.1", "1e300"),
    "double": ("5e-324", "-1.7976931348623157e308", "0"),
    "decimal_small": ("-999.99", "0.01", "0.015"),
    "decimal_large": ("1e27", "-0.0000000001", "1e-11"),
    "char": ("'äöü'", "''", "'zz'"),
    "varchar": ("'日本'", "'seven77'"),
    "string": ("''", "'\U0001f9ee'", "'\uffff'"),
    "binary": ("X'61626364'", "X'00ff00ff'", "X''"),
    "varbinary": ("X''", "X'00'"),
    "bytes": ("X'80'", "X'7f'"),
    "date": ("'0001-01-01'", "'9999-12-31'", "'1582-10-10'"),
    "ts_0": ("'0001-01-01 00:00:00'", "'2024-03-10 02:30:00'", "'1582-10-10'"),
    "ts_3": ("'1860-01-01 00:00:01'", "'2024-03-10 02:30:00.0001'"),
    "ts_6": ("'9999-12-31 23:59:59.999999'", "'2024-11-03 01:30:00.123456'", "'0001-01-01'"),
    "ltz_0": ("'0001-01-01 00:00:00Z'", "'1582-10-10 00:00:00Z'"),
    "ltz_3": ("'2024-03-10 02:30:00Z'", "'1860-01-01 00:00:01Z'"),
    "ltz_6": ("'9999-12-31 23:59:59.999999Z'", "'2024-11-02 21:30:00.123456-04:00'", "'0001-01-01 00:00:00Z'"),
}
OTHER_SETTINGS: dict[str, dict[str, str]] = {
    "as they are": {},
    "legacy calendar": {
        "parquet__datetimeRebaseModeInRead": "LEGACY",
        "parquet__int96RebaseModeInRead": "LEGACY",
        "session__timeZone": "Asia/Tokyo",
    },
    "other readings of types": {
        "parquet__binaryAsString": "true",
        "parquet__int96AsTimestamp": "false",
        "parquet__inferTimestampNTZ__enabled": "false",
        "parquet__fieldId__read__enabled": "true",
        "parquet__mergeSchema": "true",
        "caseSensitive": "true",
        "timestampType": "TIMESTAMP_NTZ",
        "ansi__enabled": "false",
        "legacy__parquet__nanosAsLong": "true",
    },
    "row by row": {
        "parquet__enableVectorizedReader": "false",
        "parquet__recordLevelFilter__enabled": "true",
        "parquet__enableNestedColumnVectorizedReader": "false",
        "codegen__wholeStage": "false",
    },
    "second version": {"sources__useV1SourceList": "", "parquet__aggregatePushdown": "true"},
}


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Two files with the edge values of every type, in columns that Spark reads as we do."""
    from tests.integration.spark.test_types import CASES

    catalog = ts.open_catalog(str(tmp_path_factory.mktemp("typed")))
    catalog.create_database("shop")
    table = catalog.create_table("shop.typed", schema=ALL_TYPES)
    for start in (0, 3):
        ids = pa.array([start, start + 1, start + 2], pa.int64())
        table.append(pa.Table.from_arrays([ids, *(pa.array(values, f.type) for f, values in CASES)], schema=ALL_TYPES))
    return table


@pytest.mark.parametrize("setting", OTHER_SETTINGS)
def test_no_setting_of_the_session_changes_a_value(spark: "SparkSession", typed: Table, setting: str) -> None:
    names = [name for name in ALL_TYPES.names if name not in OURS_ONLY]
    with settings(spark, **OTHER_SETTINGS[setting]):
        frame = pyspark_tablestore.read(spark, typed.location, columns=names)
        assert "Python" not in frame._jdf.queryExecution().toString()
        found = frame.toArrow().sort_by("id")
    assert found.to_pylist() == typed.scan(columns=names).to_arrow().sort_by("id").to_pylist()


@pytest.mark.deep
@pytest.mark.usefixtures("quick", "forgetful")
def test_literals_of_every_type_filter_as_in_a_scan(spark: "SparkSession", typed: Table) -> None:
    texts = [
        f"{name} {op} {value}"
        for position, (name, values) in enumerate(VALUES.items())
        for number, value in enumerate(values)
        for op in (("=", "<>", "<=", ">")[(position + number) % 4],)
    ]
    texts += [f"{name} IN ({', '.join(values)}, NULL)" for name, values in VALUES.items()]
    fields = {field.name: field for field in typed.context.schema.fields}
    names = [name for name in ALL_TYPES.names if name not in OURS_ONLY]
    with settings(spark, ansi__enabled="false", session__timeZone="Asia/Tokyo"):
        frame = pyspark_tablestore.read(spark, typed.location, columns=names)
        said = [condition(predicate, fields) for text in texts if (predicate := parse_filter(text, list(fields.values())))]
        rows = frame.select("id", *(one.alias(f"c{number}") for number, one in enumerate(said))).collect()
        for number, text in enumerate(texts):
            found = sorted(row.id for row in rows if row[number + 1])
            assert (text, found) == (text, sorted(typed.scan(columns=["id"], filter=text).to_arrow()["id"].to_pylist()))
        # And together, as filters that reach the Parquet reader.
        for text in (" AND ".join(f"({name} >= {values[0]} OR id < 3)" for name, values in VALUES.items()), " OR ".join(texts)):
            frame = pyspark_tablestore.read(spark, typed.location, columns=["id"], filter=text)
            assert is_native(frame)
            found = sorted(row.id for row in frame.collect())
            assert found == sorted(typed.scan(columns=["id"], filter=text).to_arrow()["id"].to_pylist())


def test_filter_leaves_out_files_before_spark_sees_them(spark: "SparkSession", fuzzed: dict[str, Table]) -> None:
    frame = pyspark_tablestore.read(spark, fuzzed["native"].location, columns=["t"], filter="id = 17")
    assert is_native(frame)
    assert frame.columns == ["t"]
    assert len(frame.inputFiles()) == 1
    assert [row.t for row in frame.collect()] == fuzzed["native"].scan(filter="id = 17").to_arrow()["t"].to_pylist()


def test_missing_file_is_said_whatever_the_session_passes_over(spark: "SparkSession", catalog: Catalog) -> None:
    table = catalog.create_table("shop.missing", schema=pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1, 2]}))
    table.append(pa.table({"id": [3, 4]}))
    first, second = sorted(Path(table.location).glob("bucket-0/*.parquet"))
    with settings(spark, files__ignoreMissingFiles="true", files__ignoreCorruptFiles="true"):
        frame = pyspark_tablestore.read(spark, table.location)
        second.write_bytes(second.read_bytes()[:40])
        with pytest.raises(Exception, match=r"(?i)parquet"):
            frame.collect()
        first.unlink()
        with pytest.raises(Exception, match=r"(?i)not.*exist|not.*found"):
            frame.collect()
        with pytest.raises(Exception, match=r"(?i)not.*exist|not.*found"):
            pyspark_tablestore.read(spark, table.location).collect()


@pytest.mark.deep
def test_columns_that_differ_in_case_only_are_read_by_us(spark: "SparkSession", catalog: Catalog) -> None:
    nested = pa.struct([("f", pa.int64()), ("F", pa.int64())])
    for name, schema in {
        "top": pa.schema([("id", pa.int64()), ("a", pa.string()), ("A", pa.string())]),
        "inner": pa.schema([("id", pa.int64()), ("s", pa.list_(nested))]),
        "greek": pa.schema([("id", pa.int64()), ("\u03c2", pa.string()), ("\u03a3", pa.string())]),
    }.items():
        table = catalog.create_table(f"shop.{name}", schema=schema)
        values: list[Any] = [[{"f": 1, "F": 2}]] if name == "inner" else ["x"]
        table.append(pa.table([[1], *([values] * (len(schema) - 1))], schema=schema))
        some = pyspark_tablestore.read(spark, table.location, columns=schema.names[:2])
        assert not is_native(some)
        assert some.toArrow().to_pylist() == table.scan(columns=schema.names[:2]).to_arrow().to_pylist()
        with settings(spark, caseSensitive="true"):
            everything = pyspark_tablestore.read(spark, table.location)
            assert everything.toArrow().to_pylist() == table.scan().to_arrow().to_pylist()


def test_key_columns_that_shadow_a_column_are_read_by_us(spark: "SparkSession", catalog: Catalog) -> None:
    schema = pa.schema([("id", pa.int64()), ("_key_ID", pa.int64())])
    table = catalog.create_table("shop.shadow", schema=schema, primary_key=["id"])
    table.upsert(pa.table({"id": [1], "_key_ID": [2]}))
    frame = pyspark_tablestore.read(spark, table.location)
    assert not is_native(frame)
    assert frame.toArrow().to_pylist() == [{"id": 1, "_key_ID": 2}]


@pytest.mark.deep
def test_odd_names_of_columns_partitions_and_folders_are_read(spark: "SparkSession", tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("a.b", pa.float64()), ("we`ird, (n)\u00fc", pa.float32()), ("p q", pa.string())])
    values = ["a\nb", "'", "", "%", "100%25", "a=b", "a:b", "a/b", "{x", "[y]", "*", "?", "\\", "#", ",", "}"]
    values += ["\u00e9", "\U0001f9ee", "_h", ".h", '"', "null"]
    for folder, natively in (("%20 #=:+&; \u00e9\U0001f9ee,", True), ("{a,b} [x-z] *? \\", False)):
        catalog = ts.open_catalog(str(tmp_path / folder))
        catalog.create_database("shop")
        table = catalog.create_table("shop.odd", schema=schema, partition_by=["p q"])
        rows = [{"id": n, "a.b": math.nan, "we`ird, (n)\u00fc": 1.5, "p q": value} for n, value in enumerate(values)]
        table.append(pa.Table.from_pylist(rows, schema=schema))
        frame = pyspark_tablestore.read(spark, table.location)
        assert is_native(frame) == natively
        assert len(frame.inputFiles()) == (len(values) if natively else 0)
        assert sorted((row[0], row[2], row[3]) for row in frame.collect()) == [(n, 1.5, value) for n, value in enumerate(values)]
        some = pyspark_tablestore.read(spark, table.location, columns=["p q"], filter="`a.b` > 5 AND id < 3")
        assert is_native(some) == natively
        assert sorted(row[0] for row in some.collect()) == sorted(values[:3])


@pytest.mark.deep
def test_many_files_are_read_natively_without_a_listing_job(spark: "SparkSession", catalog: Catalog) -> None:
    table = catalog.create_table("shop.files", schema=pa.schema([("id", pa.int64()), ("p", pa.int32())]), partition_by=["p"])
    table.append(pa.table({"id": range(70), "p": pa.array(range(70), pa.int32())}))
    tracker = spark.sparkContext.statusTracker()

    def listing_jobs() -> int:
        return len(tracker.getJobIdsForGroup("listing of files"))

    spark.sparkContext.setJobGroup("listing of files", "none are wanted")
    try:
        frame = pyspark_tablestore.read(spark, table.location)
        assert listing_jobs() == 0
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    assert "Python" not in frame._jdf.queryExecution().toString()
    assert sorted(row.id for row in frame.collect()) == list(range(70))
    with settings(spark, sources__parallelPartitionDiscovery__threshold="1"):
        # As many scans as a union may have, and the rest is ours.
        mixed = pyspark_tablestore.read(spark, table.location)
    plan = mixed._jdf.queryExecution().toString()
    assert "FileScan parquet" in plan
    assert "Python" in plan
    assert sorted(row.id for row in mixed.collect()) == list(range(70))
