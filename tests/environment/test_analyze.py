"""ANALYZE TABLE: the rows of a table and what its columns hold, counted once and kept beside its snapshots."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.format.snapshot import CommitKind
from tablestore.format.statisticsfile import ColumnCounts, TableStatistics, decode_statistics, encode_statistics
from tablestore.store.snapshots import CONTENT_PREFIX
from tablestore.table.upkeep.analysis import MOST_DISTINCT, read_statistics


def table_of(env: ts.TableEnvironment, name: str = "default.t") -> ts.Table:
    table = env.catalog().table(name)
    assert isinstance(table, ts.Table)
    return table


def files_of(env: ts.TableEnvironment) -> list[Path]:
    return sorted((Path(table_of(env).location) / "statistics").glob("*"))


def statistics_of(env: ts.TableEnvironment) -> TableStatistics | None:
    context = table_of(env).context
    return read_statistics(context, context.snapshots.latest())


def analyzed(env: ts.TableEnvironment, columns: dict[str, pa.Array], how: str = "FOR ALL COLUMNS") -> dict[str, ColumnCounts]:
    rows = pa.table(columns)
    env.catalog().create_database("default")
    env.catalog().create_table("default.t", schema=rows.schema).append(rows)
    env.execute_sql(f"ANALYZE TABLE t COMPUTE STATISTICS {how}")
    statistics = statistics_of(env)
    assert statistics is not None and statistics.row_count == rows.num_rows
    return dict(statistics.columns)


def test_the_file_is_that_of_the_format_and_any_writers_is_read() -> None:
    counts = ColumnCounts(column_id=3, distinct_count=2, least="a", greatest="é", null_count=1, average_length=1, greatest_length=2)
    statistics = TableStatistics(snapshot_id=7, schema_id=1, row_count=5, size_bytes=99, columns={"o'd, d": counts})
    data = encode_statistics(statistics)
    assert json.loads(data) == {
        "snapshotId": 7, "schemaId": 1, "mergedRecordCount": 5, "mergedRecordSize": 99,
        "colStats": {
            "o'd, d": {"colId": 3, "distinctCount": 2, "min": "a", "max": "é", "nullCount": 1, "avgLen": 1, "maxLen": 2}
        },
    }  # fmt: skip
    assert decode_statistics(data, "s") == statistics
    assert decode_statistics(b'{"snapshotId": 1, "schemaId": 0, "colStats": null, "other": []}', "s").columns == {}
    for damaged in (b"[]", b'{"snapshotId": "1", "schemaId": 0}', b'{"snapshotId": 1, "schemaId": 0, "colStats": {"a": {}}}'):
        with pytest.raises(ts.FormatError, match="s"):
            decode_statistics(damaged, "s")


def test_what_is_far_or_long_has_no_bounds_and_many_bytes_are_not_told_apart(env: ts.TableEnvironment) -> None:
    counts = analyzed(
        env,
        {
            "far": pa.array([2_932_902, -800_000], pa.int32()).cast(pa.date32()),
            "long": pa.array(["x" * 9_000_000, "y" * 9_000_000]),
        },
    )
    far, long = counts["far"], counts["long"]
    assert (far.least, far.greatest, far.distinct_count, far.null_count) == (None, None, 2, 0)
    assert (long.least, long.greatest, long.distinct_count, long.greatest_length) == (None, None, None, 9_000_000)


def test_bounds_are_those_of_all_files(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE t (n BIGINT, s STRING, d DECIMAL(38, 2), day DATE)")
    for n, text, d, day in ((2, "m", "0.5", 2), (9, "z", "-1", 1), (-5, "a", "7", 3)):
        table_of(env).append([{"n": n, "s": text, "d": Decimal(d), "day": date(2024, 1, day)}])
    env.execute_sql("ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS")
    statistics = statistics_of(env)
    assert statistics is not None
    assert {name: (one.least, one.greatest) for name, one in statistics.columns.items()} == {
        "n": ("-5", "9"),
        "s": ("a", "z"),
        "d": ("-1.00", "7.00"),
        "day": ("2024-01-01", "2024-01-03"),
    }


def test_each_kind_of_column_is_counted(env: ts.TableEnvironment) -> None:
    nan, moment = float("nan"), datetime(2026, 1, 1, tzinfo=UTC)
    counts = analyzed(
        env,
        {
            "i": pa.array([3, None, -(2**63), 3], pa.int64()),
            "zeros": pa.array([-0.0, 0.0, None, 1.5]),
            "nan": pa.array([nan, 1.0, nan, None]),
            "infinite": pa.array([float("inf"), float("-inf"), 0.0, 0.0], pa.float32()),
            "wide": pa.array([Decimal(10**37), Decimal(-1), None, None], pa.decimal128(38, 0)),
            "s": pa.array(["é", "", None, "long text"]),
            "day": pa.array([date(1, 1, 1), date(9999, 12, 31), None, None]),
            "at": pa.array([moment, None, moment, moment], pa.timestamp("us", "UTC")),
            "raw": pa.array([b"a", b"", None, b"a"]),
            "flag": pa.array([True, None, False, True]),
            "list": pa.array([[1], None, [], [1]], pa.list_(pa.int32())),
            "void": pa.array([None] * 4, pa.string()),
        },
    )
    told = {
        name: (one.null_count, one.distinct_count, one.least, one.greatest, one.average_length, one.greatest_length)
        for name, one in counts.items()
    }
    assert told == {
        "i": (1, 2, str(-(2**63)), "3", None, None),
        "zeros": (1, 2, "0.0", "1.5", None, None),
        "nan": (1, 2, None, None, None, None),
        "infinite": (0, 3, "-Infinity", "Infinity", None, None),
        "wide": (2, 2, "-1", str(10**37), None, None),
        "s": (1, 3, "", "é", 4, 9),
        "day": (2, 2, "0001-01-01", "9999-12-31", None, None),
        "at": (1, 1, None, None, None, None),
        "raw": (1, 2, None, None, None, None),
        "flag": (1, 2, None, None, None, None),
        "list": (1, None, None, None, None, None),
        "void": (4, 0, None, None, None, None),
    }
    assert [one.column_id for one in counts.values()] == [field.id for field in table_of(env).table_schema.fields]


def test_distinct_values_of_a_column_of_many_stay_unknown(env: ts.TableEnvironment) -> None:
    counts = analyzed(env, {"few": pa.array(range(MOST_DISTINCT + 1)).cast(pa.int64()), "one": pa.repeat(1, MOST_DISTINCT + 1)})
    assert (counts["few"].distinct_count, counts["one"].distinct_count) == (None, 1)
    assert counts["few"].greatest == str(MOST_DISTINCT)


def test_columns_are_named_regardless_of_case_or_none_and_an_unknown_one_is_refused(env: ts.TableEnvironment) -> None:
    assert list(analyzed(env, {"a": pa.array([1]), "b": pa.array([2])}, "FOR COLUMNS B")) == ["b"]
    env.execute_sql("ANALYZE TABLE t COMPUTE STATISTICS")
    statistics = statistics_of(env)
    assert statistics is not None and (statistics.row_count, dict(statistics.columns)) == (1, {})
    for text, message in {
        "ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS a, bb": "no stored column 'bb'; did you mean 'b'",
        "ANALYZE TABLE t PARTITION (a = 1) COMPUTE STATISTICS": "PARTITION is not supported for default.t",
        "ANALYZE TABLE t COMPUTE STATISTICS NOSCAN": "NOSCAN is not supported for default.t",
        "ANALYZE TABLE t$files COMPUTE STATISTICS": "for managed tables only",
    }.items():
        with pytest.raises(ts.TablestoreError, match=message.replace("$", r"\$")):
            env.execute_sql(text)


def test_the_commit_changes_no_row_and_merged_rows_are_counted(duck: ts.TableEnvironment) -> None:
    duck.execute_sql("CREATE TABLE t (id BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED)")
    assert duck.execute_sql("ANALYZE TABLE t COMPUTE STATISTICS").snapshot is None
    duck.execute_sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    duck.execute_sql("INSERT INTO t VALUES (2, 'c')")
    before = table_of(duck).snapshots()[-1]
    snapshot = duck.execute_sql("ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS").snapshot
    assert snapshot is not None and snapshot.commit_kind is CommitKind.ANALYZE and snapshot.delta_record_count == 0
    assert (snapshot.rows, snapshot.total_record_count) == (before.rows, before.total_record_count)
    statistics = statistics_of(duck)
    assert statistics is not None and (statistics.row_count, statistics.snapshot_id) == (2, before.id)
    assert duck.execute_sql("SELECT * FROM table_changes('t', 2)").to_arrow().num_rows == 0
    assert duck.execute_sql("SELECT id, v FROM t ORDER BY id").to_arrow().to_pydict() == {"id": [1, 2], "v": ["a", "c"]}


def test_explain_tells_the_rows_until_the_schema_changes_or_the_file_is_damaged(duck: ts.TableEnvironment) -> None:
    def told() -> bool:
        return "1 rows when analyzed at snapshot 1" in (duck.execute_sql("EXPLAIN SELECT * FROM t").text or "")

    duck.execute_sql("CREATE TABLE t (id BIGINT)")
    duck.execute_sql("INSERT INTO t VALUES (1)")
    assert not told()
    duck.execute_sql("ANALYZE TABLE t COMPUTE STATISTICS")
    assert told()
    duck.execute_sql("INSERT INTO t VALUES (2)")
    assert told()
    (file,) = files_of(duck)
    good = file.read_bytes()
    file.write_bytes(good.replace(b'"mergedRecordCount": 1', b'"mergedRecordCount": 7'))
    assert "when analyzed" not in (duck.execute_sql("EXPLAIN SELECT * FROM t").text or "")
    file.write_bytes(good)
    duck.execute_sql("ALTER TABLE t ADD COLUMN v STRING")
    duck.execute_sql("INSERT INTO t VALUES (3, 'x')")
    assert not told()


def test_expiry_and_the_removal_of_orphans_keep_the_file_that_is_named_and_remove_others(duck: ts.TableEnvironment) -> None:
    duck.execute_sql("CREATE TABLE t (id BIGINT)")
    duck.execute_sql("INSERT INTO t VALUES (1)")
    for _ in range(2):
        duck.execute_sql("ANALYZE TABLE t COMPUTE STATISTICS")
    assert len(files_of(duck)) == 2
    table = table_of(duck)
    table.remove_orphan_files(older_than=0, dry_run=False)
    assert len(files_of(duck)) == 2
    table.expire_snapshots(retain_max=1, retain_min=1)
    (kept,) = files_of(duck)
    assert kept.name == table.snapshots()[-1].statistics


def test_a_commit_that_is_refused_leaves_no_file(duck: ts.TableEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    from tablestore.table.upkeep import analysis

    class Refusing:
        def commit(self, request: Any) -> None:
            raise ts.ConflictError("another table")

    duck.execute_sql("CREATE TABLE t (id BIGINT)")
    duck.execute_sql("INSERT INTO t VALUES (1)")
    monkeypatch.setattr(analysis, "committer", lambda _: Refusing())
    with pytest.raises(ts.ConflictError):
        duck.execute_sql("ANALYZE TABLE t COMPUTE STATISTICS")
    assert files_of(duck) == []


def test_a_materialized_table_knows_its_sources_after_it_and_its_rows_are_as_fresh(duck: ts.TableEnvironment) -> None:
    duck.execute_sql("CREATE TABLE s (id BIGINT)")
    duck.execute_sql("INSERT INTO s VALUES (1)")
    duck.execute_sql("CREATE MATERIALIZED TABLE t REFRESH_MODE = FULL AS SELECT id FROM s")
    duck.execute_sql("ALTER MATERIALIZED TABLE t REFRESH")
    before = table_of(duck).snapshots()[-1].properties
    snapshot = duck.execute_sql("ANALYZE TABLE t COMPUTE STATISTICS").snapshot
    assert snapshot is not None
    content = {key: value for key, value in before.items() if key.startswith(CONTENT_PREFIX)}
    assert content and content.items() <= snapshot.properties.items()
    duck.execute_sql("INSERT INTO s VALUES (2)")
    duck.execute_sql("ALTER MATERIALIZED TABLE t REFRESH")
    assert sorted(duck.execute_sql("SELECT id FROM t").to_arrow()["id"].to_pylist()) == [1, 2]
