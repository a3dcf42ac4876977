"""Which alterations rows of before survive: values in, words out."""

from dataclasses import replace

import pyarrow as pa
import pytest

from tablestore.types.evolution.evolve import evolve
from tablestore.types.evolution.laterows import added_columns, obstacles
from tablestore.types.evolution.replacing import REPLACES_AFTER_OPTION
from tablestore.types.evolution.schemachanges import (
    AddColumn,
    ChangeComment,
    ChangeDefault,
    ChangeNullability,
    ChangeType,
    DropColumn,
    MoveColumn,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    SetTableComment,
)
from tablestore.types.newschema import new_schema
from tablestore.types.schema import TableSchema

COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("n", pa.int32()),
        pa.field("s", pa.string(), nullable=False),
        pa.field("r", pa.struct([pa.field("a", pa.int32())])),
    ]
)


def base() -> TableSchema:
    return new_schema(schema=COLUMNS, primary_key=["id"], partition_by=[], options={"bucket": "2"})


def altered(schema: TableSchema, *changes: SchemaChange) -> TableSchema:
    return evolve(schema, changes, has_data=False, was_written=False, time_millis=7).schema


@pytest.mark.parametrize(
    "change",
    [
        SetTableComment("what for"),
        ChangeComment("n", "a number"),
        MoveColumn("n", last=True),
        ChangeNullability("s", nullable=True),
        AddColumn("x", "INT"),
        AddColumn("x", pa.struct([pa.field("a", pa.int32())]), first=True),
        SetOption("snapshot.num-retained.max", "100"),
        SetOption("fields.n.stats-mode", "none"),
        SetOption("write-only", "true"),
    ],
)
def test_rows_land_after_what_says_nothing_about_them(change: SchemaChange) -> None:
    assert obstacles([base(), altered(base(), change)]) == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (DropColumn("n"), "column 'n' was dropped"),
        (RenameColumn("n", to="m"), "column 'n' is 'm' now"),
        (ChangeType("n", "BIGINT"), "column 'n' has another type"),
        (AddColumn("r.b", "INT"), "column 'r' has another type"),
        (ChangeNullability("n", nullable=False), "column 'n' has another type"),
        (ChangeDefault("n", "7"), "column 'n' has another default"),
        (AddColumn("x", "INT NOT NULL"), "column 'x' was added as NOT NULL"),
        (AddColumn("x", "INT", default="7"), "column 'x' was added with a default"),
        (SetOption("bucket", "3"), "option 'bucket' was changed"),
        (SetOption("sequence.field", "n"), "option 'sequence.field' was changed"),
        (SetOption("change-tracking", "false"), "option 'change-tracking' was changed"),
        (SetOption("tablestore.orphan-age", "1 h"), "option 'tablestore.orphan-age' was changed"),
    ],
)
def test_rows_do_not_land_after_what_gives_them_another_meaning(change: SchemaChange, words: str) -> None:
    assert obstacles([base(), altered(base(), change)]) == (words,)


def test_a_column_that_came_back_is_another_one_and_a_name_that_came_back_is_not() -> None:
    dropped = altered(base(), DropColumn("n"))
    assert obstacles([base(), dropped, altered(dropped, AddColumn("n", "INT"))]) == ("column 'n' was dropped",)
    renamed = altered(base(), RenameColumn("n", to="m"))
    assert obstacles([base(), renamed, altered(renamed, RenameColumn("m", to="n"))]) == ()


def test_an_option_that_was_changed_back_counts_as_do_replacements_that_were_taken_back() -> None:
    changed = altered(base(), SetOption("ignore-delete", "true"))
    assert obstacles([base(), changed, altered(changed, RemoveOption("ignore-delete"))]) == ("option 'ignore-delete' was changed",)
    replacing = replace(base(), id=1, options={**base().options, REPLACES_AFTER_OPTION: "3"})
    assert obstacles([base(), replacing, replace(base(), id=2)]) == ("the table was replaced",)
    assert obstacles([replacing, replace(base(), id=2)]) == ("the table was replaced",)


def test_keys_and_partitioning_stay_the_same() -> None:
    assert "key or partitioning" in obstacles([base(), replace(base(), id=1, primary_keys=())])[0]


def test_new_columns_are_named() -> None:
    assert added_columns(base(), altered(base(), AddColumn("x", "INT"), DropColumn("n"))) == ("x",)
