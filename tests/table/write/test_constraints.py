"""Constraints: every writer compares its rows with them, and an alteration the rows that are there."""

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.distributed.spec import TableSpec
from tablestore.distributed.write import commit_messages, prepare_write, write_partition
from tablestore.io.memory import MemoryFileStore
from tablestore.store.commit.alterschema import publish_schema
from tablestore.testing.files import FileCall
from tablestore.testing.lab import Lab

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("price", pa.float64()), ("low", pa.int32()), ("high", pa.int32())])
CHECKS = {"positive": "price > 0", "ordered": "low < high"}
GOOD = {"id": 1, "price": 1.0, "low": 1, "high": 2}
WRONG = {"id": 2, "price": -1.0, "low": 1, "high": 2}
TURNED = {"id": 3, "price": 1.0, "low": 2, "high": 1}


@pytest.fixture
def catalog(tmp_path: Path) -> ts.Catalog:
    opened = ts.open_catalog(tmp_path / "wh")
    opened.create_database("d")
    return opened


def table_of(catalog: ts.Catalog, name: str = "d.t", *, keyed: bool = True, **options: str) -> ts.Table:
    return catalog.create_table(name, SCHEMA, ["id"] if keyed else None, options=options, checks=CHECKS)


def rows(*of: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(of), SCHEMA)


def content(table: ts.Table) -> list[dict[str, Any]]:
    return sorted(table.refresh().scan().to_arrow().to_pylist(), key=lambda row: row["id"])


def distributed(table: ts.Table, *of: dict[str, Any]) -> None:
    job = prepare_write(table, TableSpec(location=table.location, storage_options={}), rows=SCHEMA)
    commit_messages(table, [write_partition(job, rows(*of).to_batches(), 0)])


def with_writer(table: ts.Table, *of: dict[str, Any]) -> None:
    with table.new_writer() as writer:
        writer.write(rows(*of))
        writer.commit()


def as_changes(table: ts.Table, *of: dict[str, Any]) -> None:
    with table.new_writer() as writer:
        writer.write(rows(*of).append_column("_row_kind", pa.array(["+I"] * len(of))), changes=True)
        writer.commit()


def merged(table: ts.Table, *of: dict[str, Any]) -> None:
    table.merge(rows(*of), on="target.id = source.id").when_matched_update_all().when_not_matched_insert_all().execute()


Writer = Callable[..., object]
BOTH: dict[str, Writer] = {
    "append or upsert": lambda table, *of: (table.upsert if table.primary_key else table.append)(rows(*of)),
    "overwrite": lambda table, *of: table.overwrite(rows(*of)),
    "writer": with_writer,
    "tasks": distributed,
    "merge": merged,
    "pickled": lambda table, *of: with_writer(pickle.loads(pickle.dumps(table)), *of),
}


@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "append"])
@pytest.mark.parametrize("write", BOTH.values(), ids=BOTH)
def test_every_writer_refuses_a_row_that_violates_a_constraint_and_names_it(
    write: Writer, keyed: bool, catalog: ts.Catalog
) -> None:
    table = table_of(catalog, keyed=keyed)
    for wrong, name, value in ((WRONG, "positive", "price = -1.0"), (TURNED, "ordered", "low = 2, high = 1")):
        with pytest.raises(ts.InvalidInputError) as error:
            write(table, GOOD, wrong)
        assert error.value.kind == "constraint"
        for words in (name, CHECKS[name], value, f"id = {wrong['id']}", table.location):
            assert words in str(error.value)
        assert content(table) == []
    write(table, GOOD, {"id": 4, "price": None, "low": None, "high": 0})
    assert [row["id"] for row in content(table)] == [1, 4]


VECTORS = {"deletion-vectors.enabled": "true"}


@pytest.mark.parametrize(
    ("keyed", "options"),
    [(True, {}), (True, VECTORS), (True, {"changelog-producer": "input"}), (False, {}), (False, VECTORS)],
    ids=str,
)
def test_an_update_compares_the_row_as_it_becomes(keyed: bool, options: dict[str, str], catalog: ts.Catalog) -> None:
    table = table_of(catalog, keyed=keyed, **options)
    (table.upsert if keyed else table.append)(rows(GOOD, {**GOOD, "id": 5, "price": 9.0}))
    with pytest.raises(ts.InvalidInputError, match=r"id = 1.* violates the constraint 'positive'"):
        table.update({"price": "price - 5"})
    table.update({"price": "price - 5"}, "id = 5")
    assert [row["price"] for row in content(table)] == [1.0, 4.0]


def test_the_statement_that_is_advised_quotes_a_name_that_needs_it(catalog: ts.Catalog) -> None:
    checks = {"we ird check": "id > 0", "plain": "id < 9"}
    table = catalog.create_table("d.odd", {"id": "int"}, primary_key="id", checks=checks)
    with pytest.raises(ts.InvalidInputError, match=r"DROP CONSTRAINT `we ird check`\)"):
        table.upsert([{"id": 0}])
    with pytest.raises(ts.InvalidInputError, match=r"DROP CONSTRAINT plain\)"):
        table.upsert([{"id": 10}])


def test_a_change_that_removes_a_row_is_not_compared(catalog: ts.Catalog) -> None:
    table = table_of(catalog)
    table.upsert(rows(GOOD))
    kinds = pa.array(["-U", "+U", "-D"])
    table.write_changes(rows({**WRONG, "id": 1}, {**GOOD, "price": 3.0}, {**TURNED, "id": 9}).append_column("_row_kind", kinds))
    assert content(table) == [{**GOOD, "price": 3.0}]
    as_changes(table, {**GOOD, "id": 6})
    with pytest.raises(ts.InvalidInputError, match="row 0"):
        as_changes(table, WRONG)
    table.delete("id = 1")
    assert [row["id"] for row in content(table)] == [6]


def test_a_row_that_keeps_what_it_lacks_is_compared_with_that_in_it(catalog: ts.Catalog) -> None:
    table = table_of(catalog)
    table.upsert(rows(GOOD))
    with pytest.raises(ts.InvalidInputError, match=r"'ordered'.*low = 2, high = 2"):
        table.upsert([{"id": 1, "low": 2}], missing_columns="keep")
    table.upsert([{"id": 1, "low": 0}], missing_columns="keep")
    assert content(table) == [{**GOOD, "low": 0}]


def test_a_row_that_keeps_is_compared_again_with_what_landed_meanwhile() -> None:
    lab = Lab(MemoryFileStore("constraint-keep"), schema=SCHEMA, options={"bucket": "1", "tablestore.constraint.o": "low < high"})
    lab.open().upsert(rows({**GOOD, "high": 9}))
    with lab.open().new_writer() as writer:
        writer.write([{"id": 1, "low": 5}], missing_columns="keep")
        writer.flush()
        lab.open().upsert(rows({**GOOD, "high": 3}))
        with pytest.raises(ts.InvalidInputError, match="low = 5, high = 3"):
            writer.commit()
    assert content(lab.open()) == [{**GOOD, "high": 3}]


def test_a_default_is_compared_as_a_value_is(catalog: ts.Catalog) -> None:
    table = table_of(catalog).alter([ts.ChangeDefault("price", "-3.0")])
    with pytest.raises(ts.InvalidInputError, match=r"price = -3\.0"):
        table.upsert(rows({**GOOD, "price": None}))


def test_the_number_of_a_row_counts_over_all_batches_of_a_write(catalog: ts.Catalog) -> None:
    batches = [rows(*({**GOOD, "id": number + 10 * place} for number in range(10))) for place in range(3)]
    batches.append(rows({**WRONG, "id": 77}))
    with pytest.raises(ts.InvalidInputError, match=r"row 30 \(the first is 0\) with id = 77"):
        table_of(catalog).upsert(iter(batches))


def test_a_table_without_constraints_computes_none(catalog: ts.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    table = catalog.create_table("d.t", SCHEMA, ["id"])
    monkeypatch.delattr("tablestore.store.write.rowconstraints.RowConstraints.of")
    table.upsert(rows(GOOD))
    table.update({"price": "price - 5"})
    assert content(table) == [{**GOOD, "price": -4.0}]


def test_a_text_is_kept_plainly_however_the_table_is_made(catalog: ts.Catalog) -> None:
    table = catalog.create_table("d.t", SCHEMA, ["id"], checks={"c": " price > 0 -- more\n AND low > 1 "})
    assert table.options()["tablestore.constraint.c"] == "price > 0 AND low > 1"


def test_a_replacement_is_compared_with_its_own_constraints(catalog: ts.Catalog) -> None:
    table = table_of(catalog)
    table.upsert(rows(GOOD))
    options = {"tablestore.constraint.c": "price < 0"}
    with catalog.stage_replacement("d.t", SCHEMA, ["id"], options=options) as staged:
        with pytest.raises(ts.InvalidInputError, match="'c'"):
            staged.table.upsert(rows(GOOD))
        staged.table.upsert(rows(WRONG))
        staged.publish()
    assert content(table) == [WRONG]
    with pytest.raises(ts.InvalidInputError, match="'c'"):
        table.upsert(rows(GOOD))


# -- merge engines


@pytest.mark.parametrize(
    ("options", "check", "kept"),
    [
        ({"merge-engine": "partial-update"}, "price > 0", True),
        ({"merge-engine": "partial-update"}, "id > 0", True),
        ({"merge-engine": "partial-update"}, "low < high", False),
        ({"merge-engine": "partial-update"}, "id < price", False),
        ({"merge-engine": "partial-update"}, "price IS NOT NULL", False),
        ({"merge-engine": "aggregation", "fields.price.aggregate-function": "sum"}, "price > 0", False),
        ({"merge-engine": "aggregation", "fields.price.aggregate-function": "max"}, "price > 0", True),
        ({"merge-engine": "first-row"}, "low < high", True),
        ({"merge-engine": "deduplicate"}, "low < high", True),
    ],
)
def test_a_constraint_that_merged_rows_might_violate_is_refused(
    options: dict[str, str], check: str, kept: bool, catalog: ts.Catalog
) -> None:
    def create() -> ts.Table:
        return catalog.create_table("d.t", SCHEMA, ["id"], options=options, checks={"c": check})

    if kept:
        with pytest.raises(ts.InvalidInputError, match="'c'"):
            create().upsert(rows({"id": -1, "price": -1.0, "low": 2, "high": 1}))
        return
    with pytest.raises(ts.UnsupportedError, match="says nothing of the rows that are read"):
        create()
    table = catalog.create_table("d.u", SCHEMA, ["id"], options=options)
    with pytest.raises(ts.UnsupportedError, match="says nothing of the rows that are read"):
        table.alter(ts.AddCheck("c", check))


def test_a_partial_update_is_compared_in_the_columns_that_it_sets(catalog: ts.Catalog) -> None:
    table = catalog.create_table("d.t", SCHEMA, ["id"], options={"merge-engine": "partial-update"}, checks={"c": "price > 0"})
    table.upsert([{"id": 1, "price": 2.0}])
    table.upsert([{"id": 1, "low": 7}])
    with pytest.raises(ts.InvalidInputError, match="'c'"):
        table.upsert([{"id": 1, "price": -2.0}])
    assert content(table) == [{"id": 1, "price": 2.0, "low": 7, "high": None}]


# -- altering


@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "append"])
def test_a_constraint_is_added_where_the_rows_that_are_there_hold_it(keyed: bool, catalog: ts.Catalog) -> None:
    table = catalog.create_table("d.t", SCHEMA, ["id"] if keyed else None)
    (table.upsert if keyed else table.append)(rows(GOOD, WRONG))
    with pytest.raises(ts.InvalidInputError, match=r"id = 2.*violates the constraint 'positive'") as error:
        table.alter(ts.AddCheck("positive", "price > 0"))
    assert error.value.kind == "constraint"
    assert table.refresh().table_schema.id == 0
    table.delete("price <= 0")
    table.alter(ts.AddCheck("positive", "price > 0"))
    with pytest.raises(ts.InvalidInputError, match="'positive'"):
        (table.upsert if keyed else table.append)(rows(WRONG))
    table.alter(ts.DropCheck("positive"))
    (table.upsert if keyed else table.append)(rows(WRONG))
    assert [row["id"] for row in content(table)] == [1, 2]


def test_rows_that_are_hidden_by_newer_ones_do_not_count(catalog: ts.Catalog) -> None:
    table = catalog.create_table("d.t", SCHEMA, ["id"])
    table.upsert(rows(WRONG))
    table.upsert(rows({**WRONG, "price": 5.0}))
    table.alter(ts.AddCheck("positive", "price > 0"))
    table.compact(full=True)
    assert [row["price"] for row in content(table)] == [5.0]


def test_rows_that_wait_for_a_compaction_are_asked_for_first(catalog: ts.Catalog) -> None:
    table = catalog.create_table("d.t", SCHEMA, ["id"], options={"bucket": "-2"})
    table.upsert(rows(WRONG))
    with pytest.raises(ts.InvalidInputError, match="only after a compaction"):
        table.alter(ts.AddCheck("positive", "price > 0"))
    table.compact(full=True)
    with pytest.raises(ts.InvalidInputError, match="id = 2"):
        table.alter(ts.AddCheck("positive", "price > 0"))


def test_a_writer_that_began_before_a_constraint_does_not_get_past_it() -> None:
    lab = Lab(MemoryFileStore("constraint-before"), schema=SCHEMA)
    with lab.open().new_writer() as writer:
        writer.write(rows(WRONG))
        lab.open().alter(ts.AddCheck("positive", "price > 0"))
        with pytest.raises(ts.ConflictError, match="constraint 'positive' was added"):
            writer.commit()
    assert content(lab.open()) == []


def test_a_writer_that_began_before_a_constraint_was_dropped_lands() -> None:
    lab = Lab(MemoryFileStore("constraint-dropped"), schema=SCHEMA, options={"tablestore.constraint.positive": "price > 0"})
    with lab.open().new_writer() as writer:
        writer.write(rows(GOOD))
        lab.open().alter(ts.DropCheck("positive"))
        writer.commit()
    assert content(lab.open()) == [GOOD]


def test_rows_that_land_between_the_look_and_the_alteration_take_it_back() -> None:
    lab = Lab(MemoryFileStore("constraint-race"), schema=SCHEMA)
    lab.open().upsert(rows(GOOD))
    table, faults = lab.faulty()
    landed: list[int] = []

    def meanwhile(call: FileCall) -> None:
        if call.path.startswith("schema/") and not landed:
            landed.append(1)
            lab.open().upsert(rows(WRONG))

    faults.before(meanwhile, op="publish_if_absent")
    with pytest.raises(ts.ConflictError, match="rows landed"):
        table.alter(ts.AddCheck("positive", "price > 0"))
    assert landed
    assert "tablestore.constraint.positive" not in lab.open().options()
    assert [row["id"] for row in content(lab.open())] == [1, 2]


def test_a_column_of_a_constraint_is_renamed_and_dropped_together_with_it(catalog: ts.Catalog) -> None:
    table = table_of(catalog)
    changes: list[Any] = [
        ts.RenameColumn("price", to="cost"),
        ts.DropColumn("price"),
        ts.ChangeType("low", "DOUBLE"),
        ts.ChangeType("low", "STRING"),
    ]
    for change in changes:
        with pytest.raises(ts.InvalidInputError, match="looks at it") as error:
            table.alter(change)
        assert error.value.kind == "column-in-constraint"
    table.alter(ts.ChangeType("low", "BIGINT"))
    table.alter([ts.DropCheck("positive"), ts.RenameColumn("price", to="cost"), ts.AddCheck("positive", "cost > 0")])
    with pytest.raises(ts.InvalidInputError, match=r"cost = -1\.0"):
        table.upsert([{"id": 1, "cost": -1.0, "low": 1, "high": 2}])


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (ts.AddCheck("positive", "price > 1"), ts.AlreadyExistsError, "there is a constraint 'positive' already"),
        (ts.AddCheck("Positive", "price > 1"), ts.AlreadyExistsError, "there is a constraint 'positive' already"),
        (ts.DropCheck("positve"), ts.NotFoundError, "did you mean 'positive'"),
        (ts.SetOption("tablestore.constraint.x", "price > 1"), ts.InvalidInputError, "AddCheck('x'"),
        (ts.RemoveOption("tablestore.constraint.positive"), ts.InvalidInputError, "DropCheck('positive')"),
        (ts.SetOption("fields.price.aggregate-function", "sum"), ts.TablestoreError, ""),
    ],
    ids=str,
)
def test_constraints_change_by_their_own_changes_alone(
    change: Any, error: type[ts.TablestoreError], words: str, catalog: ts.Catalog
) -> None:
    table = table_of(catalog, **({"merge-engine": "deduplicate"}))
    if isinstance(change, ts.SetOption) and change.key.startswith("fields."):
        options = {"merge-engine": "aggregation", "fields.price.aggregate-function": "max"}
        table = catalog.create_table("d.a", SCHEMA, ["id"], options=options, checks={"positive": "price > 0"})
    before = table.options()
    with pytest.raises(error) as raised:
        table.alter(change)
    assert words in str(raised.value)
    assert table.refresh().options() == before


def test_options_of_one_write_are_no_constraints(catalog: ts.Catalog) -> None:
    with pytest.raises(ts.InvalidInputError, match="AddCheck"):
        table_of(catalog).writing_with({"tablestore.constraint.x": "price > 1"})


def test_a_state_that_violates_a_constraint_is_not_brought_back(catalog: ts.Catalog) -> None:
    table = catalog.create_table("d.t", SCHEMA, ["id"])
    table.upsert(rows(WRONG))
    old = table.snapshots()[0]
    table.upsert(rows({**WRONG, "price": 5.0}))
    table.alter(ts.AddCheck("positive", "price > 0"))
    with pytest.raises(ts.InvalidInputError, match="'positive'"):
        table.rollback_to(old.id)
    assert [row["price"] for row in content(table)] == [5.0]


def test_a_table_whose_constraint_another_program_wrote_wrong_is_read_and_not_written() -> None:
    lab = Lab(MemoryFileStore("constraint-broken"), schema=SCHEMA)
    lab.open().upsert(rows(GOOD))
    context = lab.open().context
    broken = replace(context.schema, id=1, options={**context.schema.options, "tablestore.constraint.c": "price >"})
    assert publish_schema(context, broken, context.schema)
    assert content(lab.open()) == [GOOD]
    with pytest.raises(ts.InvalidInputError, match="cannot be written: the constraint 'c'"):
        lab.open().upsert(rows(GOOD))
    lab.open().alter(ts.DropCheck("c"))
    lab.open().upsert(rows({**GOOD, "price": 3.0}))
