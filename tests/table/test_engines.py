"""Tables whose rows are computed: what users write and read, what is refused, and how to go on."""

from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.io.memory import MemoryFileStore
from tablestore.testing.lab import Lab

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("n", pa.int32()),
        ("small", pa.int8()),
        ("price", pa.decimal128(5, 2)),
        ("s", pa.string()),
        ("g", pa.int32()),
    ]
)
SUM = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "fields.small.aggregate-function": "sum"}


def table_of(name: str, **options: str) -> ts.Table:
    return Lab(MemoryFileStore(f"engines-{name}"), schema=SCHEMA, options={"bucket": "1", **options}).open()


def rows(*given: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(given), schema=SCHEMA)


def changes(*given: tuple[str, dict[str, Any]]) -> pa.Table:
    table = rows(*(row for _, row in given))
    return table.append_column("_row_kind", pa.array([kind for kind, _ in given]))


def content(table: ts.Table, **how: Any) -> list[dict[str, Any]]:
    found = sorted(table.scan(**how).to_arrow().to_pylist(), key=lambda row: row["id"])
    return [{name: value for name, value in row.items() if value is not None} for row in found]


def test_a_condition_sees_the_computed_row_and_not_its_parts() -> None:
    table = table_of("condition", **SUM)
    for _ in range(3):
        table.upsert(rows({"id": 1, "n": 4}, {"id": 2, "n": 1}))
    assert content(table, filter="n > 10") == [{"id": 1, "n": 12}]
    assert content(table, filter="n = 4") == []
    assert table.scan(filter="n = 3").count() == 1


def test_columns_that_are_not_asked_for_are_not_combined() -> None:
    table = table_of("narrow", **SUM)
    for _ in range(2):
        table.upsert(rows({"id": 1, "n": 4, "small": 100}))
    assert content(table, columns=["id", "n"]) == [{"id": 1, "n": 8}]
    with pytest.raises(ts.InvalidInputError, match="'small' leaves its type int8") as error:
        content(table)
    assert error.value.kind == "overflow"


@pytest.mark.parametrize(("column", "value"), [("small", 100), ("n", 2**31 - 1), ("price", 999)])
def test_a_sum_beyond_its_type_is_an_error_when_it_is_written(column: str, value: int) -> None:
    table = table_of(f"overflow {column}", **SUM, **{"fields.price.aggregate-function": "sum"})
    with pytest.raises(ts.InvalidInputError, match=f"'{column}' leaves its type"):
        table.upsert(rows({"id": 1, column: value}, {"id": 1, column: value}))
    assert table.snapshots() == ()
    table.upsert(rows({"id": 1, column: value}))
    assert len(content(table)) == 1


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"merge-engine": "partial-update"}, "partial-update.remove-record-on-delete"),
        (SUM | {"fields.s.aggregate-function": "listagg"}, "fields.s.ignore-retract"),
        ({"merge-engine": "first-row"}, "ignore-delete"),
    ],
)
def test_a_retraction_that_means_nothing_is_refused_with_the_way_out(options: dict[str, str], advice: str) -> None:
    table = table_of(f"retraction {advice}", **options)
    table.upsert(rows({"id": 1, "n": 1, "s": "a"}))
    before = table.snapshots()
    for kind in ("-D", "-U"):
        with pytest.raises(ts.InvalidInputError, match=advice) as error:
            table.write_changes(changes(("+I", {"id": 2}), (kind, {"id": 1, "n": 1, "s": "a"})))
        assert error.value.kind == "retraction"
    assert table.snapshots() == before


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"merge-engine": "partial-update"}, "partial-update.remove-record-on-delete"),
        (SUM, "aggregation.remove-record-on-delete"),
        ({"merge-engine": "first-row"}, "keeps the first row"),
        ({"ignore-delete": "true"}, "ignore-delete"),
    ],
)
def test_a_delete_that_would_remove_nothing_is_refused(options: dict[str, str], advice: str) -> None:
    table = table_of(f"delete {advice}", **options)
    table.upsert(rows({"id": 1, "n": 1}))
    before = table.snapshots()
    for target in ("id = 1", rows({"id": 1}).select(["id"])):
        with pytest.raises(ts.InvalidInputError, match=advice) as error:
            table.delete(target)
        assert error.value.kind == "delete"
    assert table.snapshots() == before


def test_rows_in_order_of_a_sequence_group_are_deleted_by_condition() -> None:
    options = {"fields.g.sequence-group": "n", "partial-update.remove-record-on-sequence-group": "g"}
    table = table_of("ordered by a group", **{"merge-engine": "partial-update"}, **options)
    table.upsert(rows({"id": 1, "n": 1, "g": 7}, {"id": 2, "n": 2, "g": 7}))
    with pytest.raises(ts.InvalidInputError, match="how new the delete is, rows are ordered by g"):
        table.delete(rows({"id": 1}).select(["id"]))
    table.delete("id = 1")
    assert content(table) == [{"id": 2, "n": 2, "g": 7}]


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update", "aggregation"])
def test_a_delete_by_key_has_the_order_of_the_row_that_it_removes(engine: str) -> None:
    removing = {} if engine == "deduplicate" else {"merge-engine": engine, f"{engine}.remove-record-on-delete": "true"}
    table = table_of(f"by key {engine}", **{"sequence.field": "g"}, **removing)
    table.upsert(rows({"id": 1, "n": 1, "g": 7}, {"id": 2, "n": 2, "g": 7}, {"id": 3, "n": 3, "g": 7}, {"id": 4, "n": 4, "g": 9}))
    table.delete(rows({"id": 1}).select(["id"]))
    table.write_changes(changes(("-D", {"id": 2}), ("-D", {"id": 4, "g": 8})))
    expected = [{"id": 3, "n": 3, "g": 7}, {"id": 4, "n": 4, "g": 9}]
    assert content(table) == expected
    table.upsert(rows({"id": 1, "n": 0, "g": 6}, {"id": 2, "n": 5, "g": 8}))
    assert content(table) == [{"id": 2, "n": 5, "g": 8}, *expected]
    table.compact(full=True)
    assert content(table) == [{"id": 2, "n": 5, "g": 8}, *expected]


def test_an_update_that_is_older_than_the_stored_row_leaves_it() -> None:
    table = table_of("older", **{"sequence.field": "g"})
    table.upsert(rows({"id": 1, "n": 1, "g": 7}, {"id": 2, "n": 2, "g": 7}))
    table.write_changes(
        changes(("-U", {"id": 1, "n": 1, "g": 7}), ("+U", {"id": 1, "n": 5, "g": 3}), ("-U", {"id": 2, "n": 2, "g": 7}))
    )
    assert content(table) == [{"id": 1, "n": 1, "g": 7}]


def test_a_retraction_that_lacks_what_it_takes_back_is_refused() -> None:
    table = table_of("taken back", **SUM)
    table.upsert(rows({"id": 1, "n": 5}))
    key_only = changes(("-D", {"id": 1})).select(["_row_kind", "id"])
    with pytest.raises(ts.InvalidInputError, match=r"rows of kind -D .* lack .*n.*Give the whole row"):
        table.write_changes(key_only)
    assert content(table) == [{"id": 1, "n": 5}]


@pytest.mark.parametrize("engine", ["partial-update", "aggregation"])
def test_after_a_delete_a_row_begins_anew_through_every_compaction(engine: str) -> None:
    table = table_of(f"anew {engine}", **{"merge-engine": engine, f"{engine}.remove-record-on-delete": "true"})
    table.upsert(rows({"id": 1, "n": 5, "s": "old"}))
    table.compact(full=True)
    table.write_changes(changes(("-D", {"id": 1, "n": 5, "s": "old"}), ("+I", {"id": 1, "n": 6})))
    table.upsert(rows({"id": 1, "g": 2}))
    expected = [{"id": 1, "n": 6, "g": 2}]
    assert content(table) == expected
    for full in (False, False, True):
        table.compact(full=full)
        assert content(table) == expected
    table.delete("id = 1")
    assert content(table) == []


def test_a_narrow_read_of_a_sequence_group_still_knows_which_row_is_newest() -> None:
    table = table_of("narrow group", **{"merge-engine": "partial-update", "fields.g.sequence-group": "n,s"})
    table.upsert(rows({"id": 1, "n": 1, "s": "new", "g": 9}))
    table.upsert(rows({"id": 1, "n": 2, "s": "late", "g": 3}))
    assert content(table, columns=["id", "n"]) == [{"id": 1, "n": 1}]
    assert content(table, columns=["id", "s"], filter="n = 1") == [{"id": 1, "s": "new"}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"merge-engine": "aggregation", "fields.s.aggregate-function": "sum"}, "needs a column of type"),
        ({"merge-engine": "aggregation", "fields.n.aggregate-function": "sums"}, "did you mean 'sum'"),
        ({"merge-engine": "aggregation", "fields.m.aggregate-function": "sum"}, "'m', which does not exist"),
        ({"merge-engine": "aggregation", "fields.id.aggregate-function": "sum"}, "key column"),
        ({"merge-engine": "partial-update", "fields.g.sequence-group": "x"}, "'x', which does not exist"),
        ({"merge-engine": "newest"}, "merge-engine"),
    ],
)
def test_a_table_whose_options_make_no_sense_is_not_created(options: dict[str, str], message: str, tmp_path: Any) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("db")
    with pytest.raises(ts.TablestoreError, match=message):
        catalog.create_table("db.t", schema=SCHEMA, primary_key=["id"], options=options)
    assert catalog.list_tables("db") == ()


def test_flipping_one_key_more_often_than_runs_can_tell_is_refused() -> None:
    table = table_of("flips", **{"merge-engine": "aggregation", "fields.s.aggregate-function": "last_non_null_value"})
    flips = [change for _ in range(50) for change in (("+I", {"id": 1, "s": "a"}), ("-D", {"id": 1, "s": "a"}))]
    with pytest.raises(ts.InvalidInputError, match="100 times in one flush, at most 64"):
        table.write_changes(changes(*flips))
    assert table.snapshots() == ()
    table.write_changes(changes(*flips[:6]))
    assert content(table) == [{"id": 1}]


def test_a_column_can_hold_the_kinds_of_rows() -> None:
    table = table_of("rowkind", **{"rowkind.field": "s"})
    table.upsert(rows({"id": 1, "n": 1, "s": "+I"}, {"id": 2, "n": 2, "s": "+I"}))
    table.upsert(rows({"id": 1, "n": 1, "s": "-D"}, {"id": 2, "n": 3, "s": "+U"}))
    assert content(table) == [{"id": 2, "n": 3, "s": "+U"}]
    table.delete(rows({"id": 2}).select(["id"]))
    assert content(table) == []
    before = table.snapshots()
    for wrong in (rows({"id": 3, "s": "insert"}), rows({"id": 3})):
        with pytest.raises(ts.InvalidInputError, match="in the column s"):
            table.upsert(wrong)
    with pytest.raises(ts.InvalidInputError, match="give no _row_kind as well"):
        table.write_changes(changes(("+I", {"id": 3, "s": "+I"})))
    assert table.snapshots() == before


@pytest.mark.parametrize(("column", "message"), [("n", "has to hold text"), ("nope", "'nope', which does not exist")])
def test_a_column_of_kinds_has_to_hold_text(column: str, message: str, tmp_path: Any) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("db")
    with pytest.raises(ts.InvalidInputError, match=message):
        catalog.create_table("db.t", schema=SCHEMA, primary_key=["id"], options={"rowkind.field": column})


def test_a_column_that_is_not_null_never_becomes_null() -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.int32(), nullable=False), ("g", pa.int32())])
    for name, options in {
        "group": {"merge-engine": "partial-update", "fields.g.sequence-group": "n"},
        "delete": {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
        "last": {"merge-engine": "aggregation", "fields.n.aggregate-function": "last_value"},
    }.items():
        table = Lab(MemoryFileStore(f"engines-not-null-{name}"), schema=schema, options={"bucket": "1", **options}).open()
        given = [("+I", 1, 5), ("+I", 2, 6), ("-D", 1, 5), ("+I", 2, 7), ("-U", 2, 7)]
        for kind, key, number in given:
            row = pa.Table.from_pylist([{"id": key, "n": number, "g": number}], schema=schema)
            table.write_changes(row.append_column("_row_kind", pa.array([kind])))
        for full in (False, True):
            found = table.scan().to_arrow()
            found.validate(full=True)
            assert found["n"].null_count == 0
            assert found.num_rows == (1 if name == "delete" else 2)
            table.compact(full=full)
