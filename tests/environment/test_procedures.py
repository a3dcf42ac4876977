"""CALL: the Python API by name."""

import inspect
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.environment.procedures.registry import PROCEDURES

Rows = Callable[[Any], list[tuple[Any, ...]]]


@pytest.fixture
def table(env: ts.TableEnvironment) -> ts.Table:
    env.execute_sql("CREATE TABLE t (day STRING, id INT, PRIMARY KEY (day, id) NOT ENFORCED) PARTITIONED BY (day)")
    found = env.catalog().table("default.t")
    assert isinstance(found, ts.Table)
    for day in ("a", "b"):
        found.upsert(pa.table({"day": [day], "id": pa.array([1], pa.int32())}))
    return found


def test_every_procedure_has_a_sentence_and_parameters_that_sql_can_write() -> None:
    for procedure in PROCEDURES.values():
        assert procedure.sentence.endswith("."), procedure.name
        names = {parameter.name for parameter in procedure.parameters}
        unwritable = {"self", "table", "progress", "on_commit", "stop", "properties", procedure.engine}
        assert names - {"tasks"} == set(inspect.signature(procedure.function).parameters) - unwritable, procedure.name
        assert ("tasks" in names) == (procedure.engine is not None), procedure.name
        assert all(parameter.kinds for parameter in procedure.parameters), procedure.name


def test_tags_branches_rollback_and_expiry(env: ts.TableEnvironment, table: ts.Table, rows_of: Rows) -> None:
    env.execute_sql("CALL sys.create_tag('t', 'v1', 1)")
    env.execute_sql("CALL sys.create_branch(table => 't', name => 'b', tag => 'v1')")
    assert [row[0] for row in rows_of(env.execute_sql("SHOW TAGS t"))] == ["v1"]
    assert [row[0] for row in rows_of(env.execute_sql("SHOW BRANCHES t"))] == ["b"]
    result = env.execute_sql("CALL sys.rollback_to('t', tag => 'v1')")
    assert (result.kind, result.snapshot.id) == ("snapshot", 3)  # type: ignore[union-attr]
    assert table.refresh().scan().count() == 1
    report = env.execute_sql("CALL sys.expire_snapshots('t', retain_max => 2, retain_min => 1, dry_run => true)").to_arrow()
    assert report.column("snapshots").to_pylist() == ["1"]
    env.execute_sql("CALL tablestore.sys.expire_snapshots('default.t', retain_min => 1, older_than => '0 ms')")
    assert len(table.snapshots()) == 1
    env.execute_sql("CALL sys.delete_branch('t', 'b')")
    env.execute_sql("CALL sys.delete_tag('t', 'v1')")
    assert rows_of(env.execute_sql("SHOW TAGS t")) == []


def test_compact_rescale_verify_and_repair(env: ts.TableEnvironment, table: ts.Table, rows_of: Rows) -> None:
    report = env.execute_sql("CALL sys.compact('t', full => true, partitions => 'day=a;day=b')").to_arrow()
    assert report.num_rows == 1
    env.execute_sql("CALL sys.rescale('t', 3)")
    assert env.catalog().table("default.t").options()["bucket"] == "3"
    assert rows_of(env.execute_sql("CALL sys.verify('t', deep => true)")) == []
    assert rows_of(env.execute_sql("CALL sys.repair('t')")) == []
    assert env.execute_sql("CALL sys.remove_orphan_files('t')").to_arrow().column("dry_run").to_pylist() == [True]
    assert ("sys.compact",) in rows_of(env.execute_sql("SHOW PROCEDURES"))


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CALL sys.expire_snapshot('t')", "did you mean 'expire_snapshots'"),
        ("CALL other.compact('t')", "no procedure 'other.compact'"),
        ("CALL nope.sys.compact('t')", "no catalog 'nope'"),
        ("CALL sys.compact()", "CALL compact needs table"),
        ("CALL sys.compact('nope')", "does not exist"),
        ("CALL sys.compact(7)", "expected a text as table, found 7"),
        ("CALL sys.create_tag('t')", "CALL create_tag needs name"),
        ("CALL sys.create_tag('t', 'v', 'x')", "expected a whole number or NULL as snapshot_id, found 'x'"),
        ("CALL sys.create_tag('t', nmae => 'v')", "did you mean 'name'"),
        ("CALL sys.create_tag('t', 'v', name => 'w')", "got 'name' twice"),
        ("CALL sys.expire_snapshots('t', older_than => 'long')", "expected a duration such as 1 h"),
        ("CALL sys.compact('t', partitions => 'dya=a')", "did you mean 'day'"),
        ("CALL sys.rollback_to('t')", "rollback_to: expected a snapshot id or a tag"),
        ("CALL sys.rescale('t', true)", "expected a whole number as buckets, found True"),
        ("CALL sys.delete_tag('t', 'v1', true, 1)", "takes at most 3 arguments"),
    ],
)
def test_wrong_calls_say_what_was_expected(env: ts.TableEnvironment, table: ts.Table, statement: str, message: str) -> None:
    with pytest.raises(ts.TablestoreError) as caught:
        env.execute_sql(statement)
    assert message in str(caught.value)
