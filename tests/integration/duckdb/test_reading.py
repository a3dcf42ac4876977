"""What DuckDB reads itself, what tablestore reads for it, and what it is not asked."""

import dataclasses
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tablestore_duckdb import open_engine
from tablestore_duckdb.engine import DuckDBEngine
from tablestore_duckdb.rowtypes import plain_rows_out, rows_out
from tablestore_duckdb.scans import plan_managed

import tablestore as ts
from tablestore.environment.engine import BoundQuery, ChangeTarget
from tablestore.format.snapshot import Snapshot
from tablestore.table.write.changetasks import ChangeMessage, write_changes
from tablestore.testing.contracts.queryengine import bound, managed, rows_of

ROWS = pa.table({"id": pa.array(range(100)), "day": ["mon", "tue"] * 50, "note": [f"n{i}" for i in range(100)]})


@pytest.fixture
def engine() -> Iterator[DuckDBEngine]:
    engine = DuckDBEngine()
    yield engine
    engine.close()


def test_the_engine_is_found_by_its_entry_point() -> None:
    (point,) = entry_points(group="tablestore.query_engines", name="duckdb")
    engine = point.load()()
    assert engine.name == "duckdb"
    engine.close()


def test_without_the_package_the_way_to_get_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ts.UnsupportedError, match=r"pip install 'managed-tablestore\[duckdb\]'"):
        open_engine()


def test_duckdb_reads_files_that_need_no_merge_and_only_those(tmp_path: Path) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("d")
    options = {"bucket": "1", "write-only": "true"}
    table = catalog.create_table("d.t", schema=ROWS.schema, primary_key=["id", "day"], partition_by=["day"], options=options)
    table.upsert(ROWS)
    table.compact(full=True)
    assert shares(table) == (2, 0)
    table.upsert(ROWS.slice(0, 20))
    # Monday's two files overlap: the rows of the older one that are not in the newer one are DuckDB's, as are Tuesday's.
    assert shares(table) == (2, 2)
    assert shares(table, filter="day = 'tue'") == (1, 1)
    assert shares(table, filter="id = 90") == (2, 0)
    table.upsert(ROWS)
    assert shares(table, filter="day = 'tue'") == (0, 3)
    assert shares(table, filter="day = 'sun'") == (0, 0)


@pytest.mark.deep
def test_rows_under_newer_ones_are_those_of_a_scan(tmp_path: Path, engine: DuckDBEngine) -> None:
    chance = Random(7)
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("d")
    schema = pa.schema([("id", pa.int16()), ("part", pa.string()), ("x", pa.float64())])
    options = {"bucket": "2", "write-only": "true"}
    table = catalog.create_table("d.t", schema=schema, primary_key=["id", "part"], partition_by=["part"], options=options)

    def rows(ids: Iterable[int]) -> pa.Table:
        x = [chance.choice([None, float("nan"), -0.0, chance.random()]) for _ in ids]
        return pa.table({"id": ids, "part": ["even" if i % 2 == 0 else "odd" for i in ids], "x": x}, schema=schema)

    table.upsert(rows(range(-2000, 2000)))
    table.compact(full=True)
    layered = 0
    for _ in range(6):
        table.upsert(rows(chance.sample(range(-2200, 2200), chance.choice([1, 60, 150]))))
        table.delete(rows(chance.sample(range(-2200, 2200), 20)))
        for condition in (None, f"id = {chance.randrange(-2000, 2000)}", "x > 0.5", "x IS NULL AND part = 'odd'", "id > 1900"):
            relation = managed(table, filter=condition)
            layered += sum(bool(layer.newer) for layer in plan_managed(relation).layers)
            query = bound(f"SELECT * FROM {{0}} AS t WHERE {condition or 'true'} ORDER BY part, id", relation)
            found = engine.query(query).to_reader().read_all()
            wanted = table.scan(filter=condition).to_arrow().sort_by([("part", "ascending"), ("id", "ascending")])
            # As text, because NaN is not equal to itself.
            assert repr(found.to_pylist()) == repr(wanted.to_pylist()), condition
    assert layered > 20


def test_an_append_tables_files_are_duckdbs_but_for_those_with_deleted_rows(tmp_path: Path) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("d")
    table = catalog.create_table("d.t", schema=ROWS.schema, options={"deletion-vectors.enabled": "true"})
    table.append(ROWS)
    table.append(ROWS)
    assert shares(table) == (2, 0)
    table.delete("id = 5")
    assert shares(table) == (0, 2)


def test_files_that_duckdb_would_read_otherwise_are_read_for_it(tmp_path: Path, engine: DuckDBEngine) -> None:
    def one(folder: str, rows: pa.Table) -> ts.Table:
        catalog = ts.open_catalog(folder)
        catalog.create_database("d", ignore_if_exists=True)
        table = catalog.create_table("d.t", schema=rows.schema)
        table.append(rows)
        return table

    # Its path is a pattern to DuckDB, which also matches another file.
    patterned = one(str(tmp_path / "w[12]"), ROWS)
    # Its timestamps have digits that DuckDB cuts off.
    fine = one(str(tmp_path / "fine"), pa.table({"t": pa.array([1, -1, 2**63 - 1], pa.timestamp("ns"))}))
    # Its names differ by case only.
    cased = one(str(tmp_path / "cased"), pa.table({"a": [1, 2], "A": [3, 4]}))
    # It is not a file system of the machine's.
    remote = one("memory://duckdb-reading", ROWS)
    for table, wanted, pruned in ((patterned, 100, {}), (fine, 3, {}), (cased, 2, {"columns": ("A",)}), (remote, 100, {})):
        assert shares(table, **pruned)[0] == 0
        assert rows_of(engine, bound("SELECT count(*) AS n FROM {0} AS t", managed(table, **pruned))) == [{"n": wanted}]
    assert engine.query(bound("SELECT t FROM {0} AS t", managed(fine))).to_reader().read_all() == fine.scan().to_arrow()
    assert rows_of(engine, bound("SELECT sum(A) AS s FROM {0} AS t", managed(cased, columns=("A",)))) == [{"s": 7}]
    with pytest.raises(ts.UnsupportedError, match="a, A"):
        engine.query(bound("SELECT * FROM {0} AS t", managed(cased)))


def test_conditions_on_values_that_are_equal_but_for_nulls_see_the_nulls(tmp_path: Path, engine: DuckDBEngine) -> None:
    texts = ["a", None, "a", "a", None] * 20
    structs = [{"s": text, "deep": {"b": None if text is None else b"a"}} for text in texts]
    kinds = pa.struct([("s", pa.string()), ("deep", pa.struct([("b", pa.binary())]))])
    rows = pa.table({"text": texts, "pair": pa.array(structs, kinds), "notes": [[text] for text in texts]})
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("d")
    table = catalog.create_table("d.t", schema=rows.schema)
    table.append(rows)
    assert shares(table) == (1, 0)
    for condition, wanted in (
        ("t.text IS NULL", 40),
        ("t.pair.s IS NULL", 40),
        ("t.pair.deep.b IS NULL", 40),
        ("t.notes[0] IS NULL", 40),
        ("t.pair.s = 'a'", 60),
        ("t.text IS NULL OR t.text = 'b'", 40),
        ("t.pair IS NULL", 0),
    ):
        assert rows_of(engine, bound(f"SELECT count(*) AS n FROM {{0}} AS t WHERE {condition}", managed(table))) == [{"n": wanted}]


@pytest.mark.deep
def test_statistics_of_a_file_answer_no_min_or_max_of_a_float(tmp_path: Path, engine: DuckDBEngine) -> None:
    nan = math.nan
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("d")
    for place, (values, least, greatest) in enumerate(
        (
            ([2.7, 1.5, None], 1.5, 2.7),
            ([2.7, nan, 1.5], 1.5, nan),
            ([nan, None], nan, nan),
            ([0.0, 1.5], 0.0, 1.5),
            ([-0.0, -1.5], -1.5, -0.0),
            ([None], None, None),
        )
    ):
        for arrow in (pa.float32(), pa.float64()):
            floats = pa.array(values, arrow)
            rows = pa.table({"f": floats, "pair": pa.StructArray.from_arrays([floats], ["f"])})
            table = catalog.create_table(f"d.t{place}{arrow}", schema=rows.schema)
            table.append(rows)
            assert shares(table) == (1, 0)
            wanted = [shown.as_py() for shown in pa.array([least, greatest], arrow)]
            for column in ("f", "t.pair.f"):
                for one, value in zip(("min", "max"), wanted, strict=True):
                    found = rows_of(engine, bound(f"SELECT {one}({column}) AS a FROM {{0}} AS t", managed(table)))
                    # As text, because NaN is not equal to itself, and -0.0 equals 0.0.
                    assert repr(found) == repr([{"a": value}]), (values, arrow, column, one)


def test_conditions_on_floats_of_a_file_still_reach_its_row_groups(tmp_path: Path, engine: DuckDBEngine) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("d")
    table = catalog.create_table("d.t", schema=pa.schema([("f", pa.float64())]))
    table.append(pa.table({"f": [1.5, math.nan, 2.7]}))
    plan = engine.explain(bound("SELECT count(*) AS n FROM {0} AS t WHERE t.f > 2", managed(table)))
    scan = plan.rpartition("Read Parquet")[2]
    assert "Filters: (f * 1.0) > 2.0" in scan
    for condition, wanted in (("> 2", 2), ("< 2", 1), ("= CAST('NaN' AS DOUBLE)", 1), ("> 1e300", 1), ("IN (2.7D)", 1)):
        assert rows_of(engine, bound(f"SELECT count(*) AS n FROM {{0}} AS t WHERE t.f {condition}", managed(table))) == [
            {"n": wanted}
        ]


def test_a_connection_that_is_given_is_used_and_stays_open(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TEMPORARY TABLE labels AS SELECT 5 AS id, 'five' AS label").complete()
        connection.execute("CREATE TEMPORARY VIEW named AS FROM labels").complete()
        engine = open_engine(connection)
        assert engine.knows(("labels",))
        assert engine.knows(("TEMP", "main", "Labels"))
        assert engine.list_views() == ("named",)
        named = dataclasses.replace(bound("SELECT label FROM named WHERE id > 4"), engine_tables=(("named",),))
        assert rows_of(engine, named) == [{"label": "five"}]
        assert engine.list_views() == ("named",)
        native = engine.query(dataclasses.replace(bound("SELECT id + 1 AS next FROM labels"), engine_tables=(("labels",),))).native
        assert native.columns == ["next"]
        engine.close()
        assert connection.sql("SELECT 1").fetchall() == [(1,)]


def test_what_does_not_fit_into_memory_goes_to_a_folder_of_the_engines_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    engine = DuckDBEngine()
    shown = engine.execute("SELECT current_setting('temp_directory') AS place")
    assert shown is not None
    place = Path(shown.to_reader().read_all()["place"][0].as_py())
    assert place.exists()
    engine.close()
    assert not place.exists()
    assert not list(tmp_path.iterdir())


def test_statements_and_settings_of_duckdbs_own(engine: DuckDBEngine) -> None:
    shown = engine.execute("SHOW TABLES")
    assert shown is not None
    assert shown.to_reader().read_all().to_pylist() == []
    moment = "SELECT CAST(TIMESTAMP '2024-01-01 12:00:00 UTC' AS STRING) AS t"
    assert rows_of(engine, bound(moment)) == [{"t": "2024-01-01 12:00:00"}]
    engine.set_option("timezone", "Europe/Berlin")
    assert rows_of(engine, bound(moment)) == [{"t": "2024-01-01 13:00:00"}]
    engine.set_option("timezone", None)
    with pytest.raises(ts.InvalidInputError, match="did you mean 'timezone'"):
        engine.set_option("TimeZon", "UTC")
    with pytest.raises(ts.UnsupportedError, match="NO_SUCH_STATEMENT is not run on the engine duckdb"):
        engine.execute("no_such_statement 1")


def shares(table: ts.Table, **pruned: object) -> tuple[int, int]:
    """How many files DuckDB reads, and how many are read for it."""
    planned = plan_managed(managed(table, **pruned))
    return len(planned.native), sum(len(split.files) for split in planned.rest)


def test_the_types_that_need_no_export_are_those_that_an_export_has() -> None:
    plain = ["BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "VARCHAR", "DATE"]
    relation = duckdb.sql("SELECT " + ", ".join(f"CAST(NULL AS {name}) AS c{n}" for n, name in enumerate(plain)))
    exported = rows_out(relation.limit(0).to_arrow_table().schema, [str(one) for one in relation.types])
    assert plain_rows_out(relation.columns, plain) == exported
    assert plain_rows_out(["a", "b"], ["DATE", "TIMESTAMP WITH TIME ZONE"]) is None
    assert plain_rows_out(["a", "A"], ["DATE", "DATE"]) is None


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[ts.TableEnvironment]:
    """A table whose one file DuckDB reads itself, and has read: its checksums are not looked at again."""
    with ts.TableEnvironment.create(str(tmp_path), engine="duckdb") as environment:
        environment.execute_sql("CREATE DATABASE shop")
        fill(environment)
        yield environment


def fill(shop: ts.TableEnvironment) -> None:
    shop.execute_sql("CREATE TABLE shop.t (id BIGINT, v INT, PRIMARY KEY (id) NOT ENFORCED)")
    shop.execute_sql("INSERT INTO shop.t SELECT id, 0 FROM range(1000) AS r (id)")
    shop.execute_sql("ALTER TABLE shop.t COMPACT")
    assert len(shop.execute_sql("SELECT * FROM shop.t").to_arrow()) == 1000


def expire(shop: ts.TableEnvironment) -> None:
    shop.execute_sql("INSERT OVERWRITE shop.t VALUES (1, 10)")
    shop.execute_sql("CALL sys.expire_snapshots('shop.t', retain_max => 1, retain_min => 1)")


def replace(shop: ts.TableEnvironment) -> None:
    shop.execute_sql("DROP TABLE shop.t")
    fill(shop)


def drop(shop: ts.TableEnvironment) -> None:
    shop.execute_sql("DROP TABLE shop.t")


def before_the_first_change(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], None]) -> None:
    """Others do something between the plan of a statement and its run."""
    change, todo = DuckDBEngine.change, [meanwhile]

    def changed(engine: DuckDBEngine, query: BoundQuery, target: ChangeTarget) -> Snapshot | None:
        if todo:
            todo.pop()()
        return change(engine, query, target)

    def written(*arguments: Any) -> ChangeMessage:
        if todo:
            todo.pop()()
        return write_changes(*arguments)

    monkeypatch.setattr(DuckDBEngine, "change", changed)
    monkeypatch.setattr("tablestore.environment.rows.direct.write_changes", written)


def test_rows_whose_files_have_expired_are_named_as_a_scan_names_them(shop: ts.TableEnvironment) -> None:
    found = shop.execute_sql("SELECT * FROM shop.t")
    expire(shop)
    with pytest.raises(ts.NotFoundError, match="its snapshot expired while it was being read") as raised:
        found.to_arrow()
    assert raised.value.kind == "data-file-gone"


CHANGES = (
    "UPDATE shop.t SET v = v + 1",
    "MERGE INTO shop.t USING shop.t AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v + 1",
)


@pytest.mark.parametrize("statement", CHANGES)
def test_a_change_whose_files_expire_is_planned_again(
    shop: ts.TableEnvironment, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    before_the_first_change(monkeypatch, lambda: expire(shop))
    shop.execute_sql(statement)
    assert shop.execute_sql("SELECT * FROM shop.t").to_arrow().to_pylist() == [{"id": 1, "v": 11}]


@pytest.mark.deep_after(3)
@pytest.mark.parametrize("statement", [*CHANGES, "DELETE FROM shop.t WHERE v = 0 AND id > 1"])
@pytest.mark.parametrize(("meanwhile", "kind"), [(replace, "table-replaced"), (drop, "no-such-table")])
def test_a_change_of_a_table_that_is_dropped_meanwhile_says_so(
    shop: ts.TableEnvironment,
    monkeypatch: pytest.MonkeyPatch,
    statement: str,
    meanwhile: Callable[[ts.TableEnvironment], None],
    kind: str,
) -> None:
    before_the_first_change(monkeypatch, lambda: meanwhile(shop))
    with pytest.raises((ts.ConflictError, ts.NotFoundError)) as raised:
        shop.execute_sql(statement)
    assert raised.value.kind == kind


@pytest.mark.deep_after(4)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM t WHERE CAST(v AS INT) > 97",
        "SELECT id FROM t WHERE 9700 / w < 98.5 AND CAST(v AS INT) > 97",
        "SELECT id FROM (SELECT id, CAST(v AS INT) AS n FROM t) AS q WHERE n > 97",
        "SELECT id FROM computed WHERE n > 97",
        "SELECT id FROM plain WHERE CAST(text AS INT) > 97",
        "SELECT id FROM t WHERE v > 97",
        "SELECT id FROM t WHERE id > 90 AND v BETWEEN 98 AND 99",
        "SELECT id FROM t WHERE v IN (98, 99)",
        "SELECT id FROM plain WHERE text > 97",
        "SELECT id FROM t WHERE 100 / (id - 2) BETWEEN 0D AND 1.05D",
        "SELECT k AS id FROM (SELECT id AS k FROM t) AS q WHERE 100 / (k - 2) BETWEEN 0D AND 1.05D",
        "SELECT a.id FROM t AS a JOIN t AS b ON a.id = b.id AND CAST(a.v AS INT) = CAST(b.v AS INT) AND 97 < CAST(b.v AS INT)",
        "SELECT CAST(v AS INT) AS id FROM t GROUP BY CAST(v AS INT) HAVING CAST(v AS INT) > 97",
    ],
)
def test_a_condition_does_not_fail_on_rows_that_newer_ones_hide(tmp_path: Path, query: str) -> None:
    """DuckDB would put it to them first, as that lets it read less."""
    with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb") as env:
        env.execute_sql("CREATE TABLE t (id INT, v STRING, w INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('write-only' = 'true')")
        env.execute_sql("CREATE TEMPORARY VIEW computed AS SELECT id, CAST(v AS INT) AS n FROM t")
        env.execute_sql("CREATE TEMPORARY VIEW plain AS SELECT id, v AS text FROM t")
        table = env.catalog().table("default.t")
        ids = list(range(100))
        bad = {1: "x", 2: ""}
        table.upsert({"id": ids, "v": [bad.get(i, str(i)) for i in ids], "w": [0 if i in bad else i + 1 for i in ids]})
        table.compact(full=True)
        env.execute_sql("INSERT INTO t VALUES (1, '1', 2)")
        env.execute_sql("DELETE FROM t WHERE id = 2")
        assert any(layer.newer for layer in plan_managed(managed(table)).layers)
        assert sorted(env.execute_sql(query).to_arrow().column("id").to_pylist()) == [98, 99], query


@pytest.mark.deep_after(3)
@pytest.mark.parametrize(
    ("condition", "put_to_files"),
    [
        ("v = '98'", True),
        ("id < 99", True),
        ("upper(v) = '98' AND id < 99", True),
        ("CAST(v AS INT) > 97 AND w = 99", True),
        ("100 / (id - 2) < 2 AND w = 99", True),
        ("v > 97", False),
        ("100 / (id - 2) < 2", False),
    ],
)
def test_a_condition_that_cannot_fail_is_put_to_the_files_under_newer_rows(
    tmp_path: Path, condition: str, put_to_files: bool
) -> None:
    with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb") as env:
        env.execute_sql("CREATE TABLE t (id INT, v STRING, w INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('write-only' = 'true')")
        table = env.catalog().table("default.t")
        table.upsert({"id": list(range(100)), "v": [str(i) for i in range(100)], "w": list(range(1, 101))})
        table.compact(full=True)
        env.execute_sql("INSERT INTO t VALUES (1, '1', 2)")
        assert any(layer.newer for layer in plan_managed(managed(table)).layers)
        ((plan,),) = env.execute_sql(f"EXPLAIN SELECT w FROM t WHERE {condition}").to_arrow().to_pydict().values()
        assert plan.count("Filters:") == put_to_files, plan


FINE = 1_577_836_800_000_000_001  # 2020-01-01, and a nanosecond


@pytest.fixture
def fine(tmp_path: Path) -> Iterator[ts.TableEnvironment]:
    """A table with one row, whose timestamps count nanoseconds."""
    with ts.TableEnvironment.create(str(tmp_path), engine="duckdb") as env:
        env.execute_sql(
            "CREATE TABLE z (id BIGINT, at TIMESTAMP_LTZ(9), local TIMESTAMP(9), ms TIMESTAMP_LTZ(3), "
            "PRIMARY KEY (id) NOT ENFORCED)"
        )
        moments = {"at": pa.timestamp("ns", "UTC"), "local": pa.timestamp("ns")}
        columns = {name: pa.array([FINE], kind) for name, kind in moments.items()}
        ms = pa.array([FINE // 1_000_000], pa.timestamp("ms", "UTC"))
        env.catalog().table("default.z").upsert(pa.table({"id": [1], **columns, "ms": ms}))  # type: ignore[union-attr]
        yield env


@pytest.mark.deep_after(5)
@pytest.mark.parametrize("column", ["at", "local"])
@pytest.mark.parametrize(
    "condition",
    [
        "{} > TIMESTAMP '2019-01-01 00:00:00'",
        "{} < TIMESTAMP_NTZ '9999-01-01 00:00:00'",
        "{} BETWEEN '2019-01-01' AND current_timestamp()",
        "{} IN (SELECT ms FROM z)",
        "coalesce({}, TIMESTAMP '2019-01-01 00:00:00') > DATE '2019-01-01'",
        "if(id = 1, {}, current_timestamp()) = {}",
        "CASE {} WHEN TIMESTAMP '2020-01-01 00:00:00' THEN true ELSE false END",
        "year({}) = 2020 AND {} + INTERVAL 1 DAY < now()",
        "CAST({} AS STRING) = '2020-01-01 00:00:00'",
        "EXISTS (SELECT 1 FROM (SELECT {} AS inner_one FROM z) AS i WHERE i.inner_one <= z.ms)",
        "{} = {} AND {} = (SELECT max({}) FROM z)",
        "array({}, ms)[0] = ms AND greatest({}, ms) = ms",
    ],
)
def test_timestamps_of_nanoseconds_are_compared_and_computed_with_as_spark_reads_them(
    fine: ts.TableEnvironment, column: str, condition: str
) -> None:
    text = condition.replace("{}", column)
    assert fine.execute_sql(f"SELECT id FROM z WHERE {text}").to_arrow().num_rows == 1
    # Where nothing can be pushed down to the scan.
    assert fine.execute_sql(
        f"SELECT count_if({text}) AS n FROM z" if "SELECT" not in text else f"SELECT 1 FROM z WHERE {text}"
    ).count()


@pytest.mark.deep_after(2)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE z SET ms = NULL WHERE at < current_timestamp()",
        "INSERT INTO z SELECT * FROM z",
        "INSERT OVERWRITE z SELECT id, coalesce(at, at), CASE WHEN id = 1 THEN local END, ms FROM z",
        "MERGE INTO z USING (SELECT * FROM z) AS s ON z.id = s.id WHEN MATCHED AND s.at < now() THEN UPDATE SET at = s.at "
        "WHEN MATCHED THEN UPDATE SET local = s.local WHEN NOT MATCHED THEN INSERT *",
        "INSERT OVERWRITE z SELECT id, max(at), max(local), any_value(ms) FROM z GROUP BY id",
    ],
)
def test_nanoseconds_that_are_only_handed_on_stay(fine: ts.TableEnvironment, statement: str) -> None:
    fine.execute_sql(statement)
    (row,) = fine.catalog().table("default.z").scan().to_arrow().select(["at", "local"]).to_pylist()  # type: ignore[union-attr]
    assert [moment.value for moment in row.values()] == [FINE, FINE]


def test_a_table_whose_timestamps_become_finer_is_read_as_such_by_the_same_text(tmp_path: Path) -> None:
    with ts.TableEnvironment.create(str(tmp_path), engine="duckdb") as env:
        text = "SELECT a FROM r WHERE coalesce(a, a) <= current_timestamp()"
        for digits in (6, 9):
            env.execute_sql("DROP TABLE IF EXISTS r")
            env.execute_sql(f"CREATE TABLE r (a TIMESTAMP_LTZ({digits}))")
            env.execute_sql("INSERT INTO r VALUES (TIMESTAMP '2020-01-01 00:00:00')")
            assert env.execute_sql(text).count() == 1
