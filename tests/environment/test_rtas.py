"""CREATE OR REPLACE TABLE … AS, REPLACE TABLE … AS, ``save_as(path).replace()``: the old table until the new one is whole."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.table.read.scan import ArrowSource

Rows = Callable[[Any], list[tuple[Any, ...]]]


class Held(ArrowSource):
    """Rows that come when they are let go."""

    def __init__(self) -> None:
        self.asked, self.go_on = threading.Event(), threading.Event()

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([("id", pa.int64())])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        self.asked.set()
        assert self.go_on.wait(60)
        yield pa.record_batch({"id": [2]}, schema=self.schema)


@pytest.fixture
def env(duck: ts.TableEnvironment) -> ts.TableEnvironment:
    duck.execute_sql("CREATE TABLE t (id BIGINT, v STRING)")
    duck.execute_sql("INSERT INTO t VALUES (1, 'old')")
    return duck


def test_a_replaced_table_has_the_new_columns_and_rows_and_its_history(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql("CREATE OR REPLACE TABLE t COMMENT 'new' AS SELECT id + 1 AS id, v, 7 AS n FROM t")
    assert rows_of(env.execute_sql("SELECT * FROM t")) == [(2, "old", 7)]
    assert rows_of(env.execute_sql("SELECT id, v FROM t VERSION AS OF 1")) == [(1, "old")]
    env.execute_sql("REPLACE TABLE t AS SELECT 'x' AS w")
    assert rows_of(env.execute_sql("SELECT * FROM t")) == [("x",)]
    env.execute_sql("CREATE OR REPLACE TABLE t (PRIMARY KEY (k) NOT ENFORCED) AS SELECT 1 AS k")
    assert env.catalog().table("default.t").primary_key == ("k",)
    assert rows_of(env.execute_sql("SELECT * FROM t")) == [(1,)]


def test_the_result_names_the_snapshot_of_the_table_that_has_the_rows(env: ts.TableEnvironment) -> None:
    in_place = env.execute_sql("CREATE OR REPLACE TABLE t AS SELECT 2 AS id").snapshot
    assert in_place == env.catalog().table("default.t").snapshots()[-1] and in_place.id == 2
    another = env.execute_sql("CREATE OR REPLACE TABLE t (PRIMARY KEY (k) NOT ENFORCED) AS SELECT 1 AS k").snapshot
    assert another == env.catalog().table("default.t").snapshots()[-1] and another.id == 1


def test_replacing_creates_where_nothing_is_and_must_not_where_it_is_asked_to_exist(
    env: ts.TableEnvironment, rows_of: Rows
) -> None:
    env.execute_sql("CREATE OR REPLACE TABLE u AS SELECT 1 AS id")
    env.sql_query("SELECT 2 AS id").save_as("w").create_or_replace().execute()
    env.sql_query("SELECT 3 AS id").save_as("w").replace().execute()
    assert (rows_of(env.from_path("u")), rows_of(env.from_path("w"))) == ([(1,)], [(3,)])
    for run in (
        lambda: env.execute_sql("REPLACE TABLE nope AS SELECT 1 AS id"),
        lambda: env.sql_query("SELECT 1 AS id").save_as("nope").replace(),
    ):
        with pytest.raises(ts.NotFoundError, match="CREATE OR REPLACE TABLE makes it"):
            run()


def test_the_old_table_stays_until_the_new_one_is_whole_and_when_it_fails(env: ts.TableEnvironment, rows_of: Rows) -> None:
    held = Held()
    env.create_temporary_view("held", held)
    job = env.from_path("held").save_as("t").replace().execute_async()
    assert held.asked.wait(60)
    assert rows_of(env.execute_sql("SELECT * FROM t")) == [(1, "old")]
    held.go_on.set()
    assert job.result(60).snapshot is not None
    assert rows_of(env.execute_sql("SELECT * FROM t")) == [(2,)]
    with pytest.raises(ts.InvalidInputError, match="'b'"):
        env.execute_sql("REPLACE TABLE t AS SELECT CAST(v AS INT) AS n FROM (VALUES ('1'), ('b')) AS r (v)")
    assert rows_of(env.execute_sql("SELECT * FROM t")) == [(2,)]


def test_errors_name_the_table_and_not_the_place_where_it_was_staged(env: ts.TableEnvironment) -> None:
    with pytest.raises(ts.InvalidInputError, match=r"column 'a' of table tablestore\.default\.t is NOT NULL") as refused:
        env.execute_sql("CREATE OR REPLACE TABLE t (PRIMARY KEY (a) NOT ENFORCED) AS SELECT CAST(NULL AS STRING) AS a, 2 AS b")
    assert "_ctas" not in str(refused.value)


def test_what_cannot_be_replaced_is_refused(env: ts.TableEnvironment) -> None:
    env.create_temporary_view("t", "SELECT 1 AS id")
    with pytest.raises(ts.InvalidInputError, match="Drop it first before removing the permanent table"):
        env.execute_sql("REPLACE TABLE t AS SELECT 1 AS id")
    env.drop_temporary_view("t")
    env.execute_sql("CREATE TABLE c WITH ('connector' = 'filesystem', 'path' = '/nowhere')")
    for statement in (
        "REPLACE TABLE c AS SELECT 1 AS id",
        "CREATE OR REPLACE TABLE t WITH ('connector' = 'filesystem', 'path' = '/nowhere') AS SELECT 1 AS id",
    ):
        with pytest.raises(ts.UnsupportedError, match="only managed tables are replaced"):
            env.execute_sql(statement)


@pytest.mark.parametrize(
    ("definition", "versions"),
    [("(id BIGINT, w STRING DEFAULT 'x')", [1, 2]), ("(k INT, PRIMARY KEY (k) NOT ENFORCED)", []), ("LIKE t", [1, 2])],
    ids=["in place", "another layout", "its own"],
)
def test_a_table_is_replaced_by_an_empty_one_of_columns_that_are_written(
    env: ts.TableEnvironment, rows_of: Rows, definition: str, versions: list[int]
) -> None:
    before = env.catalog().table("default.t")
    reading = env.sql_query("SELECT * FROM t")
    env.execute_sql(f"CREATE OR REPLACE TABLE t {definition}")
    table = env.catalog().table("default.t")
    assert rows_of(env.execute_sql("SELECT * FROM t")) == []
    assert [snapshot.id for snapshot in table.snapshots()] == versions  # type: ignore[union-attr]
    if versions:
        # The table is the same one: its history stays, and handles of it see the new rows.
        assert before.scan().count() == 0
        assert env.execute_sql("RESTORE TABLE t TO VERSION AS OF 1").snapshot is not None
        assert [row[0] for row in rows_of(env.execute_sql("SELECT * FROM t"))] == [1]
    assert reading.to_arrow().num_rows == len(versions[:1])


def test_replacing_by_columns_creates_or_wants_a_table_and_what_fails_leaves_the_old_one(
    env: ts.TableEnvironment, rows_of: Rows
) -> None:
    assert env.execute_sql("CREATE OR REPLACE TABLE u (id INT) COMMENT 'c'").snapshot is None
    assert env.execute_sql("DESCRIBE u").to_arrow()["name"].to_pylist() == ["id"]
    env.execute_sql("REPLACE TABLE u (name STRING)")
    assert env.execute_sql("DESCRIBE u").to_arrow()["name"].to_pylist() == ["name"]
    with pytest.raises(ts.NotFoundError, match="CREATE OR REPLACE TABLE makes it"):
        env.execute_sql("REPLACE TABLE nope (id INT)")
    for definition, message in {
        "(id INT) WITH ('bukket' = '1')": "bukket",
        "(id INT) PARTITIONED BY (day)": "day",
        "(id INT) WITH ('connector' = 'kafka')": "only managed tables are replaced",
        "(id INT) WITH ('log.system' = 'nope')": "nope",
    }.items():
        with pytest.raises(ts.TablestoreError, match=message):
            env.execute_sql(f"CREATE OR REPLACE TABLE t {definition}")
    env.execute_sql("CREATE MATERIALIZED TABLE m REFRESH_MODE = FULL AS SELECT id FROM t")
    with pytest.raises(ts.InvalidInputError, match="m is a materialized table"):
        env.execute_sql("CREATE OR REPLACE TABLE m (id INT)")
    assert rows_of(env.execute_sql("SELECT * FROM t")) == [(1, "old")]
    assert env.catalog().list_creations() == ()


def test_a_reader_sees_the_old_table_or_the_empty_one(env: ts.TableEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    from tablestore.table.creation.stagedtable import StagedTable

    seen: list[list[object]] = []
    publish = StagedTable.publish

    def looking(staged: StagedTable) -> object:
        seen.append(env.execute_sql("SELECT * FROM t").to_arrow().to_pylist())
        return publish(staged)

    monkeypatch.setattr(StagedTable, "publish", looking)
    env.execute_sql("CREATE OR REPLACE TABLE t (n INT)")
    seen.append(env.execute_sql("SELECT * FROM t").to_arrow().to_pylist())
    assert seen == [[{"id": 1, "v": "old"}], []]


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("compacted", [False, True])
def test_a_query_finds_a_table_that_was_replaced_or_says_so(env: ts.TableEnvironment, rows_of: Rows, compacted: bool) -> None:
    """Before its rows are read; files that are merged, and files that DuckDB reads itself."""

    def ready(text: str) -> ts.environment.result.Result:
        env.execute_sql("CREATE OR REPLACE TABLE t (PRIMARY KEY (id) NOT ENFORCED) AS SELECT 1 AS id, 'old' AS v")
        if compacted:
            env.execute_sql("CALL sys.compact('t')")
        found = env.execute_sql(text)
        env.execute_sql(
            "CREATE OR REPLACE TABLE t (PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '2') AS SELECT 2 AS id, 'new' AS v"
        )
        return found

    assert rows_of(ready("SELECT * FROM t")) == [(2, "new")]
    assert ready("SELECT * FROM `t$files`").to_arrow().num_rows == 1
    assert ready("SELECT * FROM table_changes('t', 0)").to_arrow()["v"].to_pylist() == ["new"]
    env.create_temporary_view("w", "SELECT v FROM t")
    assert rows_of(ready("SELECT * FROM w WHERE v LIKE '%e%'")) == [("new",)]
    found = ready("SELECT * FROM t")
    env.execute_sql("CREATE OR REPLACE TABLE t (PRIMARY KEY (k) NOT ENFORCED) AS SELECT 'a' AS k")
    with pytest.raises(ts.ConflictError, match="open the table again") as refused:
        found.to_arrow()
    assert refused.value.kind == "table-replaced"
    found = ready("SELECT * FROM t")
    env.execute_sql("DROP TABLE t")
    with pytest.raises(ts.NotFoundError, match="does not exist"):
        found.to_arrow()


@pytest.mark.parametrize("compacted", [False, True])
def test_a_query_finds_a_table_that_was_replaced_while_it_was_planned(
    env: ts.TableEnvironment, rows_of: Rows, compacted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    env.execute_sql("CREATE OR REPLACE TABLE t (PRIMARY KEY (id) NOT ENFORCED) AS SELECT 1 AS id, 'old' AS v")
    if compacted:
        env.execute_sql("CALL sys.compact('t')")
    engine, catalog, replaced = env.engine, env.catalog(), []
    assert engine is not None
    ready = engine.query

    def query(bound: Any) -> Any:
        if not replaced:
            replaced.append(True)
            columns = pa.schema([pa.field("id", pa.int32(), nullable=False)])
            with catalog.stage_replacement("default.t", columns, ["id"], options={"bucket": "2"}) as staged:
                staged.publish()
        return ready(bound)

    monkeypatch.setattr(engine, "query", query)
    assert rows_of(env.execute_sql("SELECT * FROM t")) == [] and replaced


@pytest.mark.deep_after(2)
@pytest.mark.parametrize("while_read", [False, True])
@pytest.mark.parametrize("times", [2, 100])
def test_a_query_is_planned_anew_a_few_times_and_not_without_end(
    env: ts.TableEnvironment, rows_of: Rows, monkeypatch: pytest.MonkeyPatch, while_read: bool, times: int
) -> None:
    """However often the table is replaced, while the query is planned or before its rows are read."""
    env.execute_sql("CREATE OR REPLACE TABLE t (PRIMARY KEY (id) NOT ENFORCED) AS SELECT 0 AS id")
    engine, catalog = env.engine, env.catalog()
    assert engine is not None
    ready, planned = engine.query, 0

    def replace_table() -> None:
        columns = pa.schema([pa.field("id", pa.int32(), nullable=False)])
        # Another number of buckets: the new table takes the place of the old one.
        with catalog.stage_replacement("default.t", columns, ["id"], options={"bucket": str(1 + planned)}) as staged:
            staged.table.upsert([{"id": planned}])
            staged.publish()

    def query(bound: Any) -> Any:
        nonlocal planned
        planned += 1
        if planned > times:
            return ready(bound)
        if not while_read:
            replace_table()
            return ready(bound)
        found = ready(bound)
        replace_table()
        return found

    monkeypatch.setattr(engine, "query", query)
    if times == 2:
        assert rows_of(env.execute_sql("SELECT * FROM t")) == [(2,)] and planned == 3
        return
    with pytest.raises(ts.ConflictError, match="open the table again") as refused:
        env.execute_sql("SELECT * FROM t").to_arrow()
    assert refused.value.kind == "table-replaced" and planned == 5


class Replacing(Held):
    """Rows that replace a table while they are read."""

    def __init__(self, catalog: ts.Catalog) -> None:
        super().__init__()
        self.catalog = catalog
        self.go_on.set()

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        with self.catalog.stage_replacement("default.t", self.schema.set(0, pa.field("id", pa.int64())), ["id"]) as staged:
            staged.publish()
        yield from super().to_batches()


def test_a_table_that_is_replaced_while_a_job_still_has_to_read_it_is_named(env: ts.TableEnvironment) -> None:
    env.create_temporary_view("replacing", Replacing(env.catalog()))
    env.execute_sql("CREATE OR REPLACE TABLE t (PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '2') AS SELECT 1 AS id, 'old' AS v")
    env.execute_sql("CREATE TABLE u (id BIGINT)")
    statements = env.create_statement_set()
    statements.add_insert_sql("INSERT INTO u SELECT id FROM replacing")
    statements.add_insert_sql("INSERT INTO u SELECT id FROM t")
    with pytest.raises(ts.ConflictError, match=r"(?s)default\.db/t was dropped and created again, or replaced.*INSERT 2 of 2"):
        statements.execute()
