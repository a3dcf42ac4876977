"""Rows that are in no managed table, and what DuckDB does with types that no table holds."""

import json
import math
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tablestore_duckdb.engine import DuckDBEngine

import tablestore as ts
from tablestore.environment.engine import ConnectorRelation, NativeRelation, QueryRelation
from tablestore.testing.contracts.queryengine import bound, rows_of

ROWS = pa.table({"id": [1, 2], "note": ["one", None]})


@pytest.fixture
def engine() -> Iterator[DuckDBEngine]:
    engine = DuckDBEngine()
    yield engine
    engine.close()


def files(path: Path, **options: str) -> ConnectorRelation:
    schema = pa.schema([("id", pa.int16()), ("note", pa.string())])
    return ConnectorRelation(name="files", connector="filesystem", options={"path": str(path), **options}, schema=schema)


def test_objects_that_hold_rows_are_relations(engine: DuckDBEngine) -> None:
    own = engine.query(bound("SELECT id FROM {0} AS r", NativeRelation(name="r", value=ROWS))).native
    for value in (ROWS, ROWS.to_batches()[0], pd.DataFrame({"id": [1, 2]}), pl.DataFrame({"id": [1, 2]}), own):
        found = rows_of(engine, bound("SELECT sum(id) AS s FROM {0} AS r", NativeRelation(name="r", value=value)))
        assert found == [{"s": 3}]
    with pytest.raises(ts.InvalidInputError, match=r'shop\.r of type "object" not suitable'):
        engine.query(bound("SELECT * FROM {0} AS r", NativeRelation(name="shop.r", value=object())))


def test_files_are_read_by_format_and_with_the_columns_that_are_declared(engine: DuckDBEngine, tmp_path: Path) -> None:
    for folder in ("parquet", "json", "csv"):
        (tmp_path / folder / "part=1").mkdir(parents=True)
    pq.write_table(ROWS, tmp_path / "parquet" / "part=1" / "a.parquet")
    (tmp_path / "json" / "part=1" / "a.json").write_text("\n".join(json.dumps(row) for row in ROWS.to_pylist()))
    (tmp_path / "csv" / "part=1" / "a.csv").write_text("1;one\n2;\n")
    for relation in (
        files(tmp_path / "parquet"),
        files(tmp_path / "json", format="json"),
        files(tmp_path / "csv", format="CSV", sep=";"),
    ):
        found = engine.query(bound("SELECT * FROM {0} AS f ORDER BY id", relation)).to_reader().read_all()
        assert found.schema.types == [pa.int16(), pa.string()]
        assert found.to_pylist() == ROWS.to_pylist()


def test_a_path_that_exists_is_no_pattern(engine: DuckDBEngine, tmp_path: Path) -> None:
    for name, number in (("a[1]", 1), ("a1", 2), ("b*", 3), ("bc", 4), ("{c}?", 5), ("[a-z]", 6), ("x", 7)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f[2].csv").write_text(f"{number},x\n")
    for name, expected in (("a[1]", 1), ("a[1]/f[2].csv", 1), ("b*", 3), ("{c}?", 5), ("[a-z]", 6), ("[a-z]/f[2].csv", 6)):
        relation = files(tmp_path / name, format="csv")
        assert rows_of(engine, bound("SELECT id FROM {0} AS f", relation)) == [{"id": expected}]
    matched = rows_of(engine, bound("SELECT sum(id) AS s FROM {0} AS f", files(tmp_path / "b*" / "*.csv", format="csv")))
    assert matched == [{"s": 7}]


def test_parquet_files_of_others_may_hold_nan(engine: DuckDBEngine, tmp_path: Path) -> None:
    texts = ["a", None, "a"]
    rows = pa.table({"f": [1.5, math.nan, 2.7], "pair": [{"x": 0.0}, None, {"x": math.nan}], "text": texts})
    pq.write_table(rows, tmp_path / "a.parquet")
    for schema in (None, rows.schema):
        relation = ConnectorRelation(name="p", connector="filesystem", options={"path": str(tmp_path)}, schema=schema)
        for query, wanted in (
            ("SELECT max(f) AS a FROM {0} AS p", "nan"),
            ("SELECT min(f) AS a FROM {0} AS p", "1.5"),
            ("SELECT min(p.pair.x) AS a FROM {0} AS p", "0.0"),
            ("SELECT max(p.pair.x) AS a FROM {0} AS p", "nan"),
            ("SELECT count(*) AS a FROM {0} AS p WHERE f > 2", "2"),
            ("SELECT f AS a FROM {0} AS p ORDER BY f DESC LIMIT 1", "nan"),
            ("SELECT count(*) AS a FROM {0} AS p WHERE text IS NULL OR text = 'b'", "1"),
        ):
            assert str(rows_of(engine, bound(query, relation))[0]["a"]) == wanted, (query, schema)


def test_what_only_spark_reads_is_refused_by_name(engine: DuckDBEngine, tmp_path: Path) -> None:
    for relation, words in (
        (ConnectorRelation(name="k", connector="kafka", options={}), "kafka.*CALL sys.ingest"),
        (ConnectorRelation(name="j", connector="jdbc", options={}), "jdbc.*engine spark"),
        (files(tmp_path, format="xml"), "xml.*engine spark"),
    ):
        with pytest.raises(ts.UnsupportedError, match=words):
            engine.query(bound("SELECT * FROM {0} AS f", relation))
    with pytest.raises(ts.InvalidInputError, match="path"):
        engine.query(bound("SELECT * FROM {0} AS f", ConnectorRelation(name="f", connector="filesystem", options={})))
    with pytest.raises(ts.StorageError, match="nowhere"):
        engine.query(bound("SELECT * FROM {0} AS f", files(tmp_path / "nowhere.parquet")))


def test_what_a_query_computes_has_a_type_that_a_table_can_hold(engine: DuckDBEngine) -> None:
    def column(expression: str) -> pa.Array:
        # Not Spark's dialect: as DuckDB itself has it.
        relation = NativeRelation(name="d", value=engine.query(bound("SELECT 1 AS one")).native.project(expression))
        return engine.query(bound("SELECT * FROM {0} AS d", relation)).to_reader().read_all().column(0)

    for expression, wanted in (
        ("sum(one)", pa.scalar(1, pa.int64())),
        ("255::UTINYINT", pa.scalar(255, pa.int16())),
        ("18446744073709551615::UBIGINT", pa.scalar(Decimal(2**64 - 1), pa.decimal128(20, 0))),
        ("'a'::ENUM('b', 'a')", pa.scalar("a")),
        ("'00000000-0000-0000-0000-000000000001'::UUID", pa.scalar("00000000-0000-0000-0000-000000000001")),
        ("[1, 2]::INTEGER[2]", pa.scalar([1, 2], pa.list_(pa.field("element", pa.int32())))),
        ("TIME '23:59:59.999999'", pa.scalar(86_399_999, pa.time32("ms"))),
        ("TIMESTAMP_S '2024-01-01 00:00:00'", pa.scalar(1_704_067_200_000_000, pa.timestamp("us"))),
        ("NULL", pa.scalar(None)),
    ):
        found = column(expression)
        assert found.type == wanted.type, expression
        assert found[0] == wanted, expression
    with pytest.raises(ts.InvalidInputError, match=r"'sum\(.*DECIMAL\(38, 0\)"):
        column("sum(9223372036854775807::HUGEINT + one)")


def test_views_over_views_are_read_at_each_place(engine: DuckDBEngine) -> None:
    base = QueryRelation(name="base", query=bound("SELECT id FROM {0} AS r", NativeRelation(name="r", value=ROWS)))
    above = QueryRelation(name="above", query=bound("SELECT a.id + b.id AS s FROM {0} AS a, {0} AS b", base))
    assert rows_of(engine, bound("SELECT sum(x.s) AS s FROM {0} AS x, {0} AS y", above)) == [{"s": 48}]
    assert engine.list_views() == ()


def test_engines_on_one_connection_do_not_share_views() -> None:
    with duckdb.connect() as connection:
        kept = []
        for value in (1, 2):
            one = NativeRelation(name="r", value=pa.table({"id": [value]}))
            kept.append(DuckDBEngine(connection).query(bound("SELECT id FROM {0} AS r", one)).native)
        assert [relation.fetchall() for relation in kept] == [[(1,)], [(2,)]]
