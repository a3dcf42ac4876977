"""What makes a table managed, who makes it, and which options it gets."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.environment.managed.factory import GROUP, ManagedTableContext, discover_factory
from tablestore.environment.managed.tablefactory import TableStoreFactory
from tablestore.options import TABLE_OPTIONS
from tablestore.types.partitionspec import PartitionSpec

Rows = Callable[[Any], list[tuple[Any, ...]]]
Install = Callable[[Mapping[str, str]], None]
CALLS: list[tuple[str, Mapping[str, str]]] = []


class Recording(TableStoreFactory):
    """A factory of another package: notes what it is asked for, and refuses what the tests ask it to."""

    def factory_identifier(self) -> str:
        return "recording"

    def enrich_options(self, context: ManagedTableContext) -> Mapping[str, str]:
        enriched = super().enrich_options(context)
        CALLS.append(("enrich", dict(context.options)))
        return {**enriched, "target-file-size": "7 mb"}

    def on_create_table(self, context: ManagedTableContext, ignore_if_exists: bool) -> None:
        CALLS.append(("create", dict(context.options)))
        super().on_create_table(context, ignore_if_exists)

    def on_drop_table(self, context: ManagedTableContext, ignore_if_not_exists: bool) -> None:
        CALLS.append(("drop", dict(context.options)))
        super().on_drop_table(context, ignore_if_not_exists)

    def on_compact_table(self, context: ManagedTableContext, partition_spec: Sequence[PartitionSpec] | None) -> None:
        CALLS.append(("compact", {} if partition_spec is None else {"partitions": str(list(partition_spec))}))
        if partition_spec:
            raise ts.UnsupportedError("not these partitions")


class Empty(Recording):
    """As above, for managed tables."""

    def factory_identifier(self) -> str:
        return ""


@pytest.fixture
def only_these(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Offer other factories, in place of those that are installed."""

    def install(points: Mapping[str, str]) -> None:
        from importlib.metadata import EntryPoint, EntryPoints

        found = EntryPoints(EntryPoint(name=name, value=value, group=GROUP) for name, value in points.items())
        monkeypatch.setattr("tablestore.environment.managed.factory.entry_points", lambda group: found.select(group=group))

    return install


HERE = f"{__name__}:"


def test_the_factory_of_this_package_is_found_by_its_entry_point() -> None:
    assert type(discover_factory()).__name__ == "TableStoreFactory"
    assert discover_factory().factory_identifier() == ""


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ({}, "expected exactly one managed table factory .* found 0: none"),
        ({"a": "Recording"}, "found 0"),
        ({"a": "Empty", "b": "Empty"}, "found 2"),
        ({"a": "Empty", "b": "nope.nothing:Factory"}, "does not load"),
    ],
)
def test_zero_or_several_factories_with_an_empty_identifier_are_an_error(
    only_these: Install, points: Mapping[str, str], message: str
) -> None:
    only_these({name: value if ":" in value else HERE + value for name, value in points.items()})
    with pytest.raises(ts.UnsupportedError, match=message):
        ts.TableEnvironment.create()


def test_enriched_options_are_created_with_and_stored_and_dropped_with(only_these: Install, tmp_path: Path) -> None:
    only_these({"mine": HERE + "Empty", "other": HERE + "Recording"})
    CALLS.clear()
    with ts.TableEnvironment.create(tmp_path / "wh", config={"table-storage.bucket": "3"}) as env:
        env.execute_sql("CREATE TABLE t (id INT PRIMARY KEY NOT ENFORCED) WITH ('write-only' = 'true')")
        assert [name for name, _ in CALLS] == ["enrich", "create"]
        assert CALLS[0][1] == {"write-only": "true"}
        assert CALLS[1][1] == {"write-only": "true", "bucket": "3", "target-file-size": "7 mb"}
        stored = env.catalog().table("default.t").options()
        assert {key: stored[key] for key in CALLS[1][1]} == CALLS[1][1]
        env.execute_sql("ALTER TABLE t COMPACT")
        env.execute_sql("DROP TABLE t")
        assert [name for name, _ in CALLS[2:]] == ["compact", "drop"]
        assert CALLS[3][1] == stored
        env.execute_sql("CREATE TABLE k (id INT) WITH ('connector' = 'kafka')")
        env.execute_sql("DROP TABLE k")
        assert len(CALLS) == 4, "a table with a connector is not managed"


def test_what_the_factory_raises_refuses_a_compaction(only_these: Install, tmp_path: Path) -> None:
    only_these({"mine": HERE + "Empty"})
    with ts.TableEnvironment.create(tmp_path / "wh") as env:
        env.execute_sql("CREATE TABLE t (day STRING, id INT) PARTITIONED BY (day)")
        with pytest.raises(ts.UnsupportedError, match="not these partitions"):
            env.execute_sql("ALTER TABLE t PARTITION (day = 'a') COMPACT")


def test_options_of_the_table_beat_those_of_the_session_the_catalog_and_the_defaults(tmp_path: Path) -> None:
    catalog = {"warehouse": str(tmp_path / "wh"), "table-default.bucket": "5", "table-default.target-file-size": "5 mb"}
    with ts.TableEnvironment.create(catalog, config={"table-storage.bucket": "4"}) as env:
        env.execute_sql("SET 'table-storage.write-buffer-size' = '9 mb'")
        env.execute_sql("CREATE TABLE a (id INT PRIMARY KEY NOT ENFORCED) WITH ('bucket' = '3')")
        env.execute_sql("CREATE TABLE b (id INT PRIMARY KEY NOT ENFORCED)")
        env.execute_sql("RESET")
        env.execute_sql("CREATE TABLE c (id INT PRIMARY KEY NOT ENFORCED)")
        env.get_config().set("table-storage.bucket", "6")
        env.execute_sql("CREATE TABLE d (id INT PRIMARY KEY NOT ENFORCED)")
        options = {name: env.catalog().table(f"default.{name}").options() for name in "abcd"}
    assert [options[name]["bucket"] for name in "abcd"] == ["3", "4", "4", "6"]
    assert [options[name].get("write-buffer-size") for name in "abcd"] == ["9 mb", "9 mb", None, None]
    assert {options[name]["target-file-size"] for name in "abcd"} == {"5 mb"}


def test_a_prefixed_key_in_the_table_options_is_not_understood(env: ts.TableEnvironment) -> None:
    with pytest.raises(ts.InvalidInputError, match=r"unknown table option 'table-storage\.bucket'"):
        env.execute_sql("CREATE TABLE t (id INT) WITH ('table-storage.bucket' = '3')")


@pytest.mark.parametrize("key", ["log.scan", "log.scan.timestamp-mills", "log.scan.timestamp-millis", "change-tracking"])
def test_options_that_say_how_one_table_is_read_or_written_are_its_own(env: ts.TableEnvironment, key: str) -> None:
    value = {"log.scan": "latest", "change-tracking": "false"}.get(key, "7")
    with pytest.raises(ts.InvalidInputError, match="belongs to one table and cannot be set for a session"):
        env.execute_sql(f"SET 'table-storage.{key}' = '{value}'")
    env.execute_sql(f"CREATE TABLE t (id INT) WITH ('{key}' = '{value}')")
    assert env.catalog().table("default.t").options()[key] == value


def test_an_option_of_two_spellings_is_stored_once(tmp_path: Path) -> None:
    one, other = "log.scan.timestamp-mills", "log.scan.timestamp-millis"
    catalog = ts.open_catalog(tmp_path / "wh", **{f"table-default.{one}": "4"})
    with ts.TableEnvironment.create(catalog) as env:
        with pytest.raises(ts.InvalidInputError, match=f"{one} and {other} are one option; give one of them"):
            env.execute_sql(f"CREATE TABLE t (id INT) WITH ('{one}' = '5', '{other}' = '6')")
        env.execute_sql(f"CREATE TABLE t (id INT) WITH ('{other}' = '6')")
        with pytest.raises(ts.InvalidInputError, match="are one option; give one of them"):
            env.execute_sql(f"ALTER TABLE t SET ('{one}' = '5', '{other}' = '6')")
        with pytest.raises(ts.InvalidInputError, match=f"INCLUDING OPTIONS.*{other}.*OVERWRITING"):
            env.execute_sql(f"CREATE TABLE u WITH ('{one}' = '5') LIKE t (INCLUDING OPTIONS)")
        env.execute_sql(f"CREATE TABLE u WITH ('{one}' = '7') LIKE t")
        stored = [env.catalog().table(f"default.{name}").options() for name in "tu"]
        assert [(options.get(one), options.get(other)) for options in stored] == [(None, "6"), ("7", None)]
        env.execute_sql(f"ALTER TABLE t SET ('{one}' = '5')")
        assert other not in str(env.execute_sql("SHOW CREATE TABLE t").to_arrow().to_pylist())
        env.execute_sql(f"ALTER TABLE t RESET ('{other}')")
        assert one not in env.catalog().table("default.t").options()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("log.system", "filestore"),
        ("log.retention", "7 d"),
        ("log.consistency", "transactional"),
        ("log.changelog-mode", "all"),
        ("log.key.format", "json"),
        ("log.format", "debezium-json"),
        ("file.format", "parquet"),
        ("bucket", "4"),
    ],
)
def test_options_of_the_log_and_the_file_store_can_be_set_for_a_session_and_for_a_table(
    env: ts.TableEnvironment, key: str, value: str
) -> None:
    assert key in TABLE_OPTIONS
    env.execute_sql(f"SET 'table-storage.{key}' = '{value}'")
    env.execute_sql("CREATE TABLE s (id INT PRIMARY KEY NOT ENFORCED)")
    env.execute_sql("RESET")
    env.execute_sql(f"CREATE TABLE t (id INT PRIMARY KEY NOT ENFORCED) WITH ('{key}' = '{value}')")
    assert [env.catalog().table(f"default.{name}").options()[key] for name in "st"] == [value, value]


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("materialized-table.default-start-mode", "a new query begins from the beginning"),
        ("execution.checkpointing.savepoint-dir", "suspended and resumed without savepoints"),
    ],
)
def test_settings_that_ask_for_what_is_not_here_say_why(env: ts.TableEnvironment, key: str, why: str) -> None:
    for ask in (lambda: env.execute_sql(f"SET '{key}' = 'x'"), lambda: env.get_config().set(key, "x")):
        with pytest.raises(ts.UnsupportedError, match=f"there is no setting '{key}': .*{why}.*; leave it out"):
            ask()


def test_values_of_session_options_are_checked_when_they_are_set(env: ts.TableEnvironment) -> None:
    for statement, message in [
        ("SET 'table-storage.bucket' = 'many'", "option bucket: expected a number"),
        ("SET 'table-storage.log.consistency' = 'often'", "expected one of transactional, eventual"),
        ("SET 'execution.runtime-mode' = 'slow'", "expected one of batch, streaming"),
        ("SET 'execution.runtime-mod' = 'batch'", r"did you mean 'execution\.runtime-mode'"),
        ("SET 'spark.sql.shuffle.partitions' = '3'", "unknown setting"),
    ]:
        with pytest.raises(ts.InvalidInputError, match=message):
            env.execute_sql(statement)
    assert env.get_config().to_dict() == {}


def test_without_a_warehouse_the_session_says_where_tables_lie(tmp_path: Path) -> None:
    with ts.TableEnvironment.create() as env:
        with pytest.raises(ts.InvalidInputError, match=r"Please specify a root dir .* `SET 'table-storage\.file\.path' = "):
            env.execute_sql("CREATE TABLE t (id INT)")
        env.execute_sql(f"SET 'table-storage.file.path' = '{tmp_path / 'root'}'")
        env.execute_sql("CREATE TABLE t (id INT)")
        assert ts.open_table(str(tmp_path / "root" / "default.db" / "t")).schema.names == ["id"]
        with pytest.raises(ts.InvalidInputError, match="the catalog says where its tables lie"):
            env.execute_sql("CREATE TABLE u (id INT) WITH ('file.path' = '/elsewhere')")


def test_creating_makes_the_storage_and_dropping_removes_it(env: ts.TableEnvironment, tmp_path: Path) -> None:
    env.execute_sql("CREATE TABLE t (id INT)")
    directory = tmp_path / "wh" / "default.db" / "t"
    assert (directory / "schema" / "schema-0").is_file()
    with pytest.raises(ts.AlreadyExistsError) as caught:
        env.execute_sql("CREATE TABLE t (id INT)")
    for words in ("table `tablestore`.`default`.`t` already exists", "IF NOT EXISTS", "OR REPLACE", "DROP TABLE"):
        assert words in str(caught.value)
    assert "delete the current path" not in str(caught.value)
    env.execute_sql("CREATE TABLE IF NOT EXISTS t (other STRING)")
    assert env.catalog().table("default.t").schema.names == ["id"]
    env.execute_sql("DROP TABLE t")
    assert not directory.exists()
    with pytest.raises(ts.NotFoundError, match="please try `DROP TABLE IF EXISTS` ddl instead"):
        env.execute_sql("DROP TABLE t")
    env.execute_sql("DROP TABLE IF EXISTS t")


def test_a_table_whose_log_cannot_be_made_leaves_nothing(env: ts.TableEnvironment, tmp_path: Path) -> None:
    options = "'log.system' = 'kafka', 'log.kafka.bootstrap.servers' = 'localhost:1', 'log.kafka.security.protocol' = 'nonsense'"
    with pytest.raises(ts.TablestoreError):
        env.execute_sql(f"CREATE TABLE t (id INT PRIMARY KEY NOT ENFORCED) WITH ({options})")
    assert env.list_tables() == ()
    assert not (tmp_path / "wh" / "default.db" / "t").exists()


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("id", "Primary key constraint ['id'] should include all partition fields ['day']"),
        ("day", "should not be same with partition fields ['day']"),
    ],
)
def test_the_key_of_a_partitioned_table_has_all_partition_columns(env: ts.TableEnvironment, key: str, message: str) -> None:
    with pytest.raises(ts.InvalidInputError) as caught:
        env.execute_sql(f"CREATE TABLE t (id INT, day STRING, PRIMARY KEY ({key}) NOT ENFORCED) PARTITIONED BY (day)")
    assert message in str(caught.value)
    assert env.list_tables() == ()


def test_buckets_stay_while_there_are_rows_and_rescale_is_named(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE t (id INT PRIMARY KEY NOT ENFORCED)")
    table = env.catalog().table("default.t")
    assert isinstance(table, ts.Table)
    assert table.options()["bucket"] == "1"
    table.upsert(pa.table({"id": pa.array([1], pa.int32())}))
    with pytest.raises(ts.UnsupportedError, match="INSERT OVERWRITE"):
        env.execute_sql("ALTER TABLE t SET ('bucket' = '2')")
    env.execute_sql("CALL sys.rescale('t', 2)")


def test_describe_extended_has_every_row(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql(
        "CREATE TABLE t (day STRING, at TIMESTAMP(3), id INT, WATERMARK FOR at AS at, PRIMARY KEY (day, id) NOT ENFORCED) "
        "PARTITIONED BY (day) WITH ('log.retention' = '7 d', 'bucket' = '2', 'change-tracking' = 'false')"
    )
    table = env.catalog().table("default.t")
    assert isinstance(table, ts.Table)
    whole = rows_of(env.execute_sql("DESCRIBE TABLE EXTENDED t"))
    assert [row[:2] for row in whole] == [
        ("name", "String"), ("log.system", "String"), ("log.kafka.bootstrap.servers", "String"), ("log.retention", "Duration"),
        ("file.path", "String"), ("log.kafka.topic", "String"), ("watermark", "Timestamp"), ("file.format", "String"),
        ("bucket", "Integer"), ("change-tracking", "Boolean"), ("last-modified", "Timestamp"), ("num-files", "Integer"),
    ]  # fmt: skip
    values = {name: value for name, _, value in whole}
    assert (values["name"], values["log.system"], values["log.retention"]) == ("tablestore.default.t", "filestore", "7 d")
    assert (values["file.path"], values["bucket"], values["change-tracking"]) == (table.location, "2", "false")
    assert (values["last-modified"], values["num-files"]) == (None, "0")
    for day in ("a", "b"):
        table.upsert(pa.table({"day": [day], "id": pa.array([1], pa.int32()), "at": pa.array([0], pa.timestamp("ms"))}))
    values = {name: value for name, _, value in rows_of(env.execute_sql("DESC EXTENDED t"))}
    assert values["num-files"] == "2"
    assert values["last-modified"] is not None
    part = rows_of(env.execute_sql("DESCRIBE TABLE EXTENDED t PARTITION (day = 'b')"))
    assert [row[:2] for row in part] == [
        ("partition", "String"), ("file.path", "String"), ("last-modified", "Timestamp"), ("num-files", "Integer"),
    ]  # fmt: skip
    assert [row[2] for row in part][:2] == ["day=b", f"{table.location}/day=b"]
    assert part[3][2] == "1"
    env.execute_sql("CREATE TABLE plain (id INT)")
    assert "watermark" not in [row[0] for row in rows_of(env.execute_sql("DESCRIBE EXTENDED plain"))]
    with pytest.raises(ts.NotFoundError, match=r"no partition \(day=c\)"):
        env.execute_sql("DESCRIBE EXTENDED t PARTITION (day = 'c')")


def test_the_watermark_is_that_of_the_newest_row_or_of_the_newest_snapshot(duck: ts.TableEnvironment, rows_of: Rows) -> None:
    duck.execute_sql("CREATE TABLE t (at TIMESTAMP(3), id INT, WATERMARK FOR at AS at - INTERVAL '5' SECOND)")

    def shown() -> str | None:
        return {row[0]: row[2] for row in rows_of(duck.execute_sql("DESCRIBE EXTENDED t"))}["watermark"]  # type: ignore[no-any-return]

    assert shown() is None
    duck.execute_sql("INSERT INTO t VALUES (TIMESTAMP '2026-01-31 12:00:05', 1), (TIMESTAMP '2026-01-31 11:00:00', 2)")
    assert shown() == "2026-01-31 12:00:00.000"
    duck.execute_sql("INSERT INTO t VALUES (TIMESTAMP '2026-01-31 12:00:01', 3), (NULL, 4)")
    assert shown() == "2026-01-31 12:00:00.000"


def test_change_tracking_is_switched_for_a_table_and_for_a_partition(duck: ts.TableEnvironment, rows_of: Rows) -> None:
    duck.execute_sql("CREATE TABLE t (day STRING, id INT, PRIMARY KEY (day, id) NOT ENFORCED) PARTITIONED BY (day)")
    duck.execute_sql("INSERT INTO t VALUES ('a', 1)")
    duck.execute_sql("ALTER TABLE t PARTITION (day = 'a') SET 'change-tracking' = 'false'")
    duck.execute_sql("INSERT INTO t VALUES ('a', 2)")
    duck.execute_sql("INSERT INTO t VALUES ('b', 3)")
    duck.execute_sql("ALTER TABLE t PARTITION (day = 'a') SET 'change-tracking' = 'true'")
    duck.execute_sql("ALTER TABLE t SET 'change-tracking' = 'false'")
    duck.execute_sql("INSERT INTO t VALUES ('b', 4)")
    duck.execute_sql("ALTER TABLE t SET 'change-tracking' = 'true'")
    duck.execute_sql("INSERT INTO t VALUES ('b', 5)")
    followed = [row for batch in duck.catalog().table("default.t").consume("full", follow=False) for row in batch.rows.to_pylist()]
    assert {row["id"] for row in followed} == {1, 2, 3, 4, 5}, "a reader of now sees all rows"
    table = duck.catalog().table("default.t")
    assert isinstance(table, ts.Table)
    changes = table.changes(0, on_discontinuity="skip").to_arrow().column("id").to_pylist()
    assert sorted(changes) == [1, 3, 5]


def test_compact_is_synchronous_and_partition_narrows_it(duck: ts.TableEnvironment, rows_of: Rows) -> None:
    duck.execute_sql("CREATE TABLE t (day STRING, id INT, PRIMARY KEY (day, id) NOT ENFORCED) PARTITIONED BY (day)")
    for number in (1, 2):
        duck.execute_sql(f"INSERT INTO t VALUES ('a', {number}), ('b', {number})")

    def files() -> list[tuple[Any, ...]]:
        return rows_of(duck.execute_sql('SELECT "partition", count(*) FROM t$files GROUP BY 1 ORDER BY 1'.replace('"', "`")))

    assert [count for _, count in files()] == [2, 2]
    duck.execute_sql("ALTER TABLE t PARTITION (day = 'a') COMPACT")
    assert [count for _, count in files()] == [1, 2]
    duck.execute_sql("ALTER TABLE t COMPACT")
    assert [count for _, count in files()] == [1, 1]


def test_streaming_mode_refuses_what_needs_batch(duck: ts.TableEnvironment) -> None:
    duck.execute_sql("CREATE TABLE t (id INT)")
    duck.execute_sql("SET 'execution.runtime-mode' = 'streaming'")
    for statement, message in [
        ("ALTER TABLE t COMPACT", r"Compact managed table only works under batch mode\."),
        ("INSERT OVERWRITE t VALUES (1)", "INSERT OVERWRITE needs batch mode"),
        ("INSERT INTO t VALUES (1)", "the query reads no stream, so it would end"),
        ("SELECT count(*) FROM t", "CREATE MATERIALIZED TABLE"),
        ("DELETE FROM t", "DELETE needs batch mode"),
    ]:
        with pytest.raises(ts.UnsupportedError, match=message) as caught:
            duck.execute_sql(statement)
        assert caught.value.kind == "streaming"
    duck.execute_sql("RESET 'execution.runtime-mode'")
    assert duck.execute_sql("INSERT INTO t VALUES (1)").snapshot is not None


def test_a_select_in_streaming_mode_that_would_end_is_refused(duck: ts.TableEnvironment) -> None:
    duck.execute_sql("CREATE TABLE t (id INT)")
    duck.execute_sql("SET 'execution.runtime-mode' = 'streaming'")
    for query in (
        "SELECT * FROM t VERSION AS OF 1",
        "WITH x AS (SELECT 1) SELECT * FROM x",
        "VALUES (1)",
        "SELECT * FROM t$snapshots",
    ):
        with pytest.raises(ts.TablestoreError) as caught:
            duck.execute_sql(query)
        if "VERSION" not in query:
            assert caught.value.kind == "streaming"
            assert "SET 'execution.runtime-mode' = 'batch'" in str(caught.value)
    for query in ("FROM t |> WHERE id > 1", "TABLE t"):
        with pytest.raises(ts.UnsupportedError, match="CREATE MATERIALIZED TABLE"):
            duck.execute_sql(query)
    duck.execute_sql("SET 'execution.runtime-mode' = 'batch'")
    assert duck.execute_sql("SELECT * FROM t").to_arrow().num_rows == 0


def test_only_a_managed_table_is_compacted(duck: ts.TableEnvironment, tmp_path: Path) -> None:
    duck.execute_sql(f"CREATE TABLE f (id INT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}')")
    duck.execute_sql("CREATE TABLE t (id INT)")
    duck.execute_sql("CREATE TEMPORARY VIEW v AS SELECT 1 AS a")
    for name in ("f", "t$files", "v"):
        with pytest.raises(ts.InvalidInputError, match="Only managed table supports compaction"):
            duck.execute_sql(f"ALTER TABLE {name} COMPACT")


def test_a_catalog_that_does_not_support_managed_tables_says_so(env: ts.TableEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ts.Catalog, "supports_managed_table", False)
    with pytest.raises(ts.UnsupportedError, match="does not support managed tables: give the table the option 'connector'"):
        env.execute_sql("CREATE TABLE t (id INT)")
    env.execute_sql("CREATE TABLE t (id INT) WITH ('connector' = 'jdbc', 'url' = 'x')")


def test_a_table_with_a_connector_is_read_by_the_engine(duck: ts.TableEnvironment, tmp_path: Path, rows_of: Rows) -> None:
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"id": [1, 2], "v": ["a", "b"]}), tmp_path / "rows.parquet")
    duck.execute_sql(f"CREATE TABLE f (id BIGINT, v STRING) USING parquet OPTIONS (path '{tmp_path / 'rows.parquet'}')")
    duck.execute_sql("CREATE TABLE t (id BIGINT, v STRING)")
    duck.execute_sql("INSERT INTO t SELECT * FROM f WHERE id > 1")
    assert rows_of(duck.execute_sql("SELECT t.v FROM t JOIN f ON t.id = f.id")) == [("b",)]
    for statement in ("DELETE FROM f", "UPDATE f SET v = 'x'", "ALTER TABLE f ADD x INT", "TRUNCATE TABLE f"):
        with pytest.raises(ts.InvalidInputError) as caught:
            duck.execute_sql(statement)
        assert caught.value.kind == "not-managed", statement
    duck.execute_sql("CREATE TABLE k (id INT) WITH ('connector' = 'kafka')")
    with pytest.raises(ts.UnsupportedError, match=r"CALL sys\.ingest"):
        duck.execute_sql("SELECT * FROM k")
    with pytest.raises(ts.UnsupportedError, match="spark"):
        duck.execute_sql("INSERT INTO k VALUES (1)")


@pytest.mark.parametrize("metastore", ["filesystem", "memory", "jdbc"])
def test_every_catalog_takes_statements(metastore: str, tmp_path: Path, rows_of: Rows) -> None:
    options = {"metastore": metastore}
    if metastore != "memory":
        options["warehouse"] = str(tmp_path / "wh")
    if metastore == "jdbc":
        options["uri"] = f"jdbc:sqlite:{tmp_path / 'catalog.db'}"
    with ts.TableEnvironment.create(options, engine="duckdb") as env:
        env.execute_sql("CREATE DATABASE shop")
        env.execute_sql("CREATE TABLE shop.t (id INT PRIMARY KEY NOT ENFORCED, v INT)")
        env.execute_sql("INSERT INTO shop.t VALUES (1, 1), (2, 2)")
        env.execute_sql("UPDATE shop.t SET v = 5 WHERE id = 2")
        env.execute_sql("ALTER TABLE shop.t RENAME TO u")
        assert rows_of(env.execute_sql("SELECT * FROM shop.u ORDER BY id")) == [(1, 1), (2, 5)]
        with pytest.raises(ts.InvalidInputError, match="database"):
            env.execute_sql("DROP DATABASE shop")
        env.execute_sql("DROP DATABASE shop CASCADE")
        assert env.list_databases() == ("default",)


def test_an_engine_that_is_not_installed_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ts.InvalidInputError, match="no query engine 'duckbd'; did you mean 'duckdb'"):
        ts.TableEnvironment.create(engine="duckbd")
    with pytest.raises(ts.UnsupportedError, match="no query engine 'sail': Sail gives other values than Spark"):
        ts.TableEnvironment.create(engine="sail")
    from importlib.metadata import EntryPoint, EntryPoints

    broken = EntryPoints([EntryPoint(name="spark", value="nope_at_all:open_engine", group="tablestore.query_engines")])
    monkeypatch.setattr("tablestore.environment.session.engines.entry_points", lambda group: broken)
    with pytest.raises(ts.UnsupportedError, match=r"pip install 'managed-tablestore\[spark\]'"):
        ts.TableEnvironment.create(spark=object())


def test_without_an_engine_a_query_names_the_ways_out(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE t (id INT)")
    for statement in ("SELECT 1", "INSERT INTO t VALUES (1)", "DELETE FROM t", "EXPLAIN SELECT 1", "CACHE TABLE t"):
        with pytest.raises(ts.UnsupportedError, match=r"pip install 'managed-tablestore\[duckdb\]'") as caught:
            env.execute_sql(statement)
        assert caught.value.kind == "no-engine"
    with pytest.raises(ts.UnsupportedError, match="computed column"):
        env.execute_sql("CREATE TABLE c (id INT, twice AS id * 2)")


def test_a_directory_of_others_is_no_place_for_a_table(duck: ts.TableEnvironment, tmp_path: Path) -> None:
    """DROP TABLE would delete their files."""
    notes = tmp_path / "wh" / "default.db" / "t" / "notes" / "x.txt"
    notes.parent.mkdir(parents=True)
    notes.write_text("mine")
    for statement in ("CREATE TABLE t (id INT)", "CREATE TABLE t AS SELECT 1 AS id", "CREATE OR REPLACE TABLE t AS SELECT 1 AS id"):
        with pytest.raises(ts.AlreadyExistsError, match=r"Failed to create file store path.*'notes'.*no part of a table"):
            duck.execute_sql(statement)
    assert notes.read_text() == "mine"
    assert duck.execute_sql("SHOW TABLES").to_arrow().num_rows == 0
    duck.execute_sql("CREATE TABLE IF NOT EXISTS t (id INT)")
    duck.execute_sql("INSERT INTO t VALUES (1)")
    assert notes.read_text() == "mine"


@pytest.mark.parametrize("place", ["nowhere.d.t", "nowhere.default.t", "nowhere.t"])
def test_a_table_with_a_connector_lies_in_a_database_that_is_there(env: ts.TableEnvironment, place: str) -> None:
    options = "WITH ('connector' = 'filesystem', 'path' = '/tmp/rows', 'format' = 'csv')"
    with pytest.raises(ts.NotFoundError, match=r"(?s)nowhere.*line 1, column 14"):
        env.execute_sql(f"CREATE TABLE {place} (id INT) {options}")
    # A temporary one needs nothing of its name.
    env.execute_sql(f"CREATE TEMPORARY TABLE {place} (id INT) {options}")
