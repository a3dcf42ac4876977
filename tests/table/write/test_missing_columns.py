"""Rows that lack columns: nothing that is stored is lost without a word, and defaults touch only whole new rows."""

from itertools import count
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.distributed.spec import TableSpec
from tablestore.distributed.write import prepare_write
from tablestore.io.memory import MemoryFileStore
from tablestore.testing.lab import Lab

INNER = pa.struct([("a", pa.int32()), ("b", pa.int32())])
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("n", pa.int32()), ("s", pa.string()), ("r", INNER)])
FULL: dict[str, Any] = {"id": 1, "n": 1, "s": "one", "r": {"a": 1, "b": 2}}


# A table is made anew each time: a planted fault runs a test twice.
NUMBERS = count()


def table_of(name: str, *, keyed: bool = True, **options: str) -> ts.Table:
    options = {"bucket": "1" if keyed else "-1", **options}
    return Lab(MemoryFileStore(f"missing-{name}-{next(NUMBERS)}"), keyed=keyed, schema=SCHEMA, options=options).open()


def rows(*given: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(given), schema=pa.schema([field for field in SCHEMA if field.name in given[0]]))


def content(table: ts.Table) -> list[dict[str, Any]]:
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])


def test_an_upsert_that_lacks_columns_is_refused_and_changes_nothing() -> None:
    table = table_of("refused")
    table.upsert(rows(FULL))
    with pytest.raises(ts.InvalidInputError, match="lack s, r: ") as error:
        table.upsert(pa.table({"id": [1], "n": [2]}))
    assert error.value.kind == "missing-columns"
    with pytest.raises(ts.InvalidInputError, match="lack s, r: "), table.new_writer() as writer:
        writer.write(pa.table({"id": [1], "n": [2]}))
    assert content(table) == [FULL]


def test_a_row_value_that_lacks_fields_is_refused_too() -> None:
    table = table_of("nested")
    table.upsert(rows(FULL))
    with pytest.raises(ts.InvalidInputError, match=r"lack r\.b: "):
        table.upsert([{**FULL, "r": {"a": 5}}])
    assert content(table) == [FULL]


def test_dicts_of_which_some_lack_a_column_are_refused_and_none_is_dropped() -> None:
    table = table_of("ragged")
    table.upsert(rows(FULL))
    with pytest.raises(ts.InvalidInputError, match="lack s: "):
        table.upsert([{"id": 2, "n": 2, "r": None}, FULL])
    table.upsert([{"id": 2, "n": 2, "r": None}, {**FULL, "s": "uno"}], missing_columns="null")
    assert [row["s"] for row in content(table)] == ["uno", None]


def test_null_is_written_where_it_is_asked_for() -> None:
    table = table_of("null")
    table.upsert(rows(FULL))
    table.upsert(pa.table({"id": [1], "n": pa.array([2], pa.int32())}), missing_columns="null")
    assert content(table) == [{"id": 1, "n": 2, "s": None, "r": None}]


@pytest.mark.parametrize("engine", ["partial-update", "first-row"])
def test_engines_for_which_null_takes_nothing_away_take_rows_as_they_are(engine: str) -> None:
    table = table_of(f"natural-{engine}", **{"merge-engine": engine})
    table.upsert(pa.table({"id": [1], "n": pa.array([2], pa.int32())}))
    table.upsert(pa.table({"id": [1], "s": ["x"]}))
    table.compact(full=True)
    assert content(table) == [{"id": 1, "n": 2, "s": "x" if engine == "partial-update" else None, "r": None}]


def test_append_tables_and_overwrites_hold_nulls_for_what_is_missing() -> None:
    plain = table_of("append", keyed=False)
    plain.append(pa.table({"id": [1]}))
    plain.append([{"id": 2, "n": 5}, {"id": 3, "s": "x"}])
    assert [(row["n"], row["s"]) for row in content(plain)] == [(None, None), (5, None), (None, "x")]
    keyed = table_of("overwrite")
    keyed.upsert(rows(FULL))
    keyed.overwrite(pa.table({"id": [1], "s": ["x"]}))
    assert content(keyed) == [{"id": 1, "n": None, "s": "x", "r": None}]


def test_deletes_need_no_more_than_the_key() -> None:
    table = table_of("deletes", **{"sequence.field": "n"})
    table.upsert(rows(FULL, {**FULL, "id": 2}, {**FULL, "id": 3}))
    table.write_changes([{"id": 3, "_row_kind": "-D"}])
    table.write_changes(pa.table({"id": [1], "n": pa.array([7], pa.int32()), "_row_kind": ["-D"]}))
    with pytest.raises(ts.InvalidInputError, match="lack s, r: "):
        table.write_changes(pa.table({"id": [2, 2], "n": pa.array([7, 8], pa.int32()), "_row_kind": ["-D", "+U"]}))
    assert content(table) == [{**FULL, "id": 2}]


def test_rows_without_their_kind_are_refused() -> None:
    table = table_of("kinds", **{"rowkind.field": "s"})
    with pytest.raises(ts.InvalidInputError, match="lack s, which holds their kinds"):
        table.upsert(pa.table({"id": [1]}), missing_columns="null")


def test_a_distributed_write_is_refused_before_a_task_begins() -> None:
    table = table_of("tasks")
    spec = TableSpec(location=table.location, storage_options={})
    given = pa.schema([SCHEMA.field("id"), SCHEMA.field("n")])
    with pytest.raises(ts.InvalidInputError, match="lack s, r: "):
        prepare_write(table, spec, rows=given)
    assert prepare_write(table, spec, rows=given, missing_columns="null").missing_columns == "null"
    assert prepare_write(table, spec, rows=given, overwrite=True).missing_columns == "null"


def with_default(table: ts.Table) -> ts.Table:
    return table.alter([ts.ChangeDefault("n", "7")])


def test_a_default_never_takes_the_place_of_a_value_in_a_partial_row() -> None:
    table = with_default(table_of("partial-default", **{"merge-engine": "partial-update"}))
    table.upsert(rows(FULL))
    table.upsert(pa.table({"id": [1], "s": ["x"]}))
    table.upsert(pa.table({"id": [1], "n": pa.nulls(1, pa.int32())}))
    assert content(table) == [{**FULL, "s": "x"}]


def test_a_default_is_never_taken_into_or_out_of_an_aggregate() -> None:
    table = with_default(table_of("sum-default", **{"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}))
    table.upsert(rows(FULL))
    table.upsert(pa.table({"id": [1], "s": ["x"]}))
    table.write_changes(pa.table({"id": [1], "s": ["x"], "_row_kind": ["-D"]}))
    assert [row["n"] for row in content(table)] == [1]


def test_a_default_is_no_part_of_a_retraction() -> None:
    table = with_default(table_of("retraction-default", **{"changelog-producer": "input"}))
    given = rows({**FULL, "n": None}, {**FULL, "n": None}, {**FULL, "id": 2, "n": None})
    table.write_changes(given.append_column("_row_kind", pa.array(["-U", "+U", "-D"])))
    found = table.changes(0).to_arrow().sort_by("id").to_pylist()
    assert [(row["_row_kind"], row["n"]) for row in found] == [("-U", None), ("+U", 7), ("-D", None)]
