"""What a schema becomes when it is altered, and what is refused: values in, values out."""

from typing import Any

import pyarrow as pa
import pytest

from tablestore.errors import AlreadyExistsError, InvalidInputError, NotFoundError, TablestoreError, UnsupportedError
from tablestore.types.datatypes import Field, RowType
from tablestore.types.evolution.evolve import evolve, same_content
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
    SetForeignOption,
    SetOption,
    SetTableComment,
)
from tablestore.types.newschema import new_schema
from tablestore.types.schema import TableSchema
from tablestore.types.typestring import type_to_sql

ADDRESS = pa.struct([pa.field("city", pa.string()), pa.field("zip", pa.int32())])
COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("day", pa.string(), nullable=False),
        pa.field("price", pa.int32()),
        pa.field("address", ADDRESS),
        pa.field("items", pa.list_(pa.struct([pa.field("sku", pa.string()), pa.field("count", pa.int16())]))),
        pa.field("scores", pa.map_(pa.string(), pa.int32())),
    ]
)


def base(**options: str) -> TableSchema:
    return new_schema(schema=COLUMNS, primary_key=["id", "day"], partition_by=["day"], options={"bucket": "2", **options})


def after(*changes: SchemaChange, schema: TableSchema | None = None, has_data: bool = True) -> TableSchema:
    return evolve(schema or base(), changes, has_data=has_data, time_millis=7).schema


def ids(fields: tuple[Field, ...]) -> dict[str, int]:
    return {field.name: field.id for field in fields}


def sql(schema: TableSchema) -> dict[str, str]:
    return {field.name: type_to_sql(field.type) for field in schema.fields}


def test_a_new_column_takes_the_next_id_that_was_never_used() -> None:
    first = after(AddColumn("note", "STRING", comment="free text"))
    assert (first.id, first.time_millis) == (1, 7)
    assert first.fields[-1] == Field(id=10, name="note", type=first.fields[-1].type, description="free text")
    assert base().highest_field_id == 9
    second = after(DropColumn("note"), AddColumn("note", "INT"), schema=first)
    assert ids(second.fields)["note"] == 11 == second.highest_field_id


def test_fields_of_a_new_nested_column_get_ids_in_pre_order() -> None:
    nested = pa.struct([pa.field("a", pa.struct([pa.field("b", pa.int8())])), pa.field("c", pa.int8())])
    for given in (nested, "ROW<a ROW<b TINYINT>, c TINYINT>", after(AddColumn("x", nested)).field("x").type):
        made = after(AddColumn("n", given), AddColumn("m", "INT"))
        outer = made.field("n")
        assert isinstance(outer.type, RowType)
        a, c = outer.type.fields
        assert isinstance(a.type, RowType)
        assert (outer.id, a.id, a.type.fields[0].id, c.id, made.field("m").id) == (10, 11, 12, 13, 14)


@pytest.mark.parametrize(
    ("place", "names"),
    [
        ({}, ["id", "day", "price", "address", "items", "scores", "n"]),
        ({"first": True}, ["n", "id", "day", "price", "address", "items", "scores"]),
        ({"after": "day"}, ["id", "day", "n", "price", "address", "items", "scores"]),
        ({"before": "day"}, ["id", "n", "day", "price", "address", "items", "scores"]),
    ],
)
def test_a_column_is_added_where_it_is_asked_for(place: dict[str, Any], names: list[str]) -> None:
    assert list(after(AddColumn("n", "INT", **place)).field_names) == names


@pytest.mark.parametrize(
    ("move", "names"),
    [
        (MoveColumn("price", first=True), ["price", "id", "day", "address", "items", "scores"]),
        (MoveColumn("id", last=True), ["day", "price", "address", "items", "scores", "id"]),
        (MoveColumn("id", after="price"), ["day", "price", "id", "address", "items", "scores"]),
        (MoveColumn("scores", before="day"), ["id", "scores", "day", "price", "address", "items"]),
        (MoveColumn("day", first=True), ["day", "id", "price", "address", "items", "scores"]),
    ],
)
def test_columns_move_and_keep_their_ids_and_keys(move: MoveColumn, names: list[str]) -> None:
    made = after(move)
    assert list(made.field_names) == names
    assert ids(made.fields) == ids(base().fields)
    assert (made.primary_keys, made.partition_keys) == (("id", "day"), ("day",))


def test_nested_fields_change_like_columns() -> None:
    made = after(
        AddColumn("address.street", "STRING", first=True),
        RenameColumn("address.city", to="town"),
        ChangeType("address.zip", "BIGINT"),
        DropColumn("items.element.sku"),
        ChangeType("items.element.count", pa.int64()),
        ChangeType("scores.value", "BIGINT"),
        ChangeComment("address.zip", "post code"),
        MoveColumn("address.zip", first=True),
        AddColumn("items.element.price", "DECIMAL(10, 2)", after="count"),
    )
    assert sql(made) == {
        "id": "BIGINT NOT NULL",
        "day": "STRING NOT NULL",
        "price": "INT",
        "address": "ROW<`zip` BIGINT, `street` STRING, `town` STRING>",
        "items": "ARRAY<ROW<`count` BIGINT, `price` DECIMAL(10, 2)>>",
        "scores": "MAP<STRING NOT NULL, BIGINT>",
    }
    address = made.field("address").type
    assert isinstance(address, RowType)
    assert ids(address.fields) == {"zip": 5, "street": 10, "town": 4}
    assert address.fields[0].description == "post code"


def test_a_name_with_a_dot_is_a_column_and_a_tuple_is_never_cut() -> None:
    made = after(AddColumn(("a.b",), "INT"), ChangeType("a.b", "BIGINT"), RenameColumn("a.b", to="c"))
    assert sql(made)["c"] == "BIGINT"


def test_comments_and_defaults_come_and_go() -> None:
    made = after(
        ChangeComment("price", "net"), ChangeDefault("price", "5"), SetTableComment("orders"), AddColumn("n", "INT", default="1")
    )
    assert (made.field("price").description, made.field("price").default_value, made.comment) == ("net", "5", "orders")
    assert made.field("n").default_value == "1"
    bare = after(ChangeComment("price", None), ChangeDefault("price", None), SetTableComment(None), schema=made)
    assert (bare.field("price").description, bare.field("price").default_value, bare.comment) == (None, None, None)


def test_a_renamed_key_is_renamed_in_keys_and_options() -> None:
    schema = new_schema(
        schema=COLUMNS,
        primary_key=["id", "day"],
        partition_by=["day"],
        options={
            "bucket": "2",
            "bucket-key": "id",
            "sequence.field": "price, scores",
            "fields.price.aggregate-function": "sum",
            "fields.price,id.sequence-group": "items,price",
            "fields.prices.ignore-retract": "true",
        },
    )
    made = after(RenameColumn("id", to="key"), RenameColumn("price", to="cost"), schema=schema)
    assert made.primary_keys == ("key", "day")
    assert made.bucket_keys == ("key",)
    assert dict(made.options) == {
        "bucket": "2",
        "bucket-key": "key",
        "data-file.thin-mode": "true",
        "sequence.field": "cost,scores",
        "fields.cost.aggregate-function": "sum",
        "fields.cost,key.sequence-group": "items,cost",
        "fields.prices.ignore-retract": "true",
    }
    assert ids(made.fields)["key"] == 0


def test_names_may_be_swapped_in_one_alteration() -> None:
    swapped = (RenameColumn("price", to="x"), RenameColumn("address", to="price"), RenameColumn("x", to="address"))
    made = after(*swapped)
    assert ids(made.fields)["price"] == 3
    assert ids(made.fields)["address"] == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("INT", "BIGINT"), ("TINYINT", "SMALLINT"), ("INT", "DOUBLE"), ("SMALLINT", "FLOAT"), ("INT", "DECIMAL(12, 2)"),
        ("FLOAT", "DOUBLE"), ("DECIMAL(5, 2)", "DECIMAL(8, 3)"), ("VARCHAR(4)", "VARCHAR(9)"), ("CHAR(4)", "STRING"),
        ("BINARY(4)", "BYTES"), ("DATE", "TIMESTAMP(3)"), ("TIMESTAMP(3)", "TIMESTAMP(6)"), ("INT", "STRING"),
        ("BIGINT", "BIGINT"),
    ],
)  # fmt: skip
def test_types_widen(old: str, new: str) -> None:
    made = after(AddColumn("x", old), ChangeType("x", new))
    assert sql(made)["x"] == new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("BIGINT", "INT"), ("BIGINT", "DOUBLE"), ("INT", "FLOAT"), ("INT", "DECIMAL(9, 0)"), ("DOUBLE", "FLOAT"),
        ("DECIMAL(8, 3)", "DECIMAL(5, 2)"), ("DECIMAL(5, 2)", "DECIMAL(5, 3)"), ("VARCHAR(9)", "VARCHAR(4)"),
        ("VARCHAR(9)", "CHAR(9)"), ("TIMESTAMP(6)", "TIMESTAMP(3)"), ("TIMESTAMP(6)", "TIMESTAMP(9)"), ("DATE", "TIMESTAMP(9)"),
        ("TIMESTAMP(3)", "TIMESTAMP(6) WITH LOCAL TIME ZONE"), ("STRING", "INT"), ("BOOLEAN", "INT"), ("DATE", "STRING"),
        ("TIMESTAMP(3)", "DATE"), ("BYTES", "STRING"),
    ],
)  # fmt: skip
def test_what_would_lose_values_is_no_widening(old: str, new: str) -> None:
    with pytest.raises(UnsupportedError, match="only widened") as refused:
        after(AddColumn("x", old), ChangeType("x", new))
    assert refused.value.kind == "narrowing"


def test_a_changed_type_keeps_its_nullability() -> None:
    schema = after(AddColumn("x", "INT NOT NULL"), has_data=False)
    assert sql(after(ChangeType("x", "BIGINT"), schema=schema))["x"] == "BIGINT NOT NULL"
    assert sql(after(ChangeType("price", "BIGINT NOT NULL"), schema=schema))["price"] == "BIGINT"
    assert sql(after(ChangeNullability("x", nullable=True), schema=schema))["x"] == "INT"


REFUSED: list[tuple[SchemaChange, type[TablestoreError], str]] = [
    (AddColumn("price", "INT"), AlreadyExistsError, "column 'price' already"),
    (AddColumn("address.city", "INT"), AlreadyExistsError, "in 'address' already"),
    (AddColumn("_KEY_x", "INT"), InvalidInputError, "reserved"),
    (AddColumn("", "INT"), InvalidInputError, "column name"),
    (AddColumn("a..b", "INT"), InvalidInputError, "column name"),
    (AddColumn("x", "INTT"), InvalidInputError, "expected a type"),
    (AddColumn("x", "ARRAY<INTT>"), InvalidInputError, "expected a type"),
    (AddColumn("x", 7), InvalidInputError, "expected a type"),
    (AddColumn("x", "INT NOT NULL"), InvalidInputError, "would have null in it"),
    (AddColumn("x", "INT", after="nope"), NotFoundError, "no column 'nope'"),
    (AddColumn("x", "INT", first=True, after="id"), InvalidInputError, "at most one"),
    (AddColumn("x", "INT", default="one"), InvalidInputError, "is not a value of type INT"),
    (AddColumn("x", pa.list_(pa.int32()), default="[]"), InvalidInputError, "nested types take none"),
    (AddColumn("address.x", "INT", default="1"), UnsupportedError, "only columns take a default"),
    (AddColumn("price.x", "INT"), InvalidInputError, "has no fields"),
    (AddColumn("items.x", "INT"), InvalidInputError, "'element'"),
    (AddColumn("nope.x", "INT"), NotFoundError, "no column 'nope'"),
    (DropColumn("prize"), NotFoundError, "did you mean 'price'"),
    (DropColumn("id"), UnsupportedError, "primary key column"),
    (DropColumn("day"), UnsupportedError, "partition column"),
    (DropColumn("address.nope"), NotFoundError, "in 'address'"),
    (RenameColumn("day", to="date"), UnsupportedError, "directories"),
    (RenameColumn("price", to="id"), AlreadyExistsError, "already"),
    (RenameColumn("price", to="_ROW_ID"), InvalidInputError, "reserved"),
    (RenameColumn("price", to=""), InvalidInputError, "new name"),
    (RenameColumn("nope", to="x"), NotFoundError, "no column 'nope'"),
    (MoveColumn("price"), InvalidInputError, "exactly one"),
    (MoveColumn("price", after="price"), InvalidInputError, "beside itself"),
    (MoveColumn("price", after="nope"), NotFoundError, "no column 'nope'"),
    (ChangeType("id", "STRING"), UnsupportedError, "keeps its type"),
    (ChangeType("day", "STRING"), UnsupportedError, "keeps its type"),
    (ChangeType("address", pa.struct([])), UnsupportedError, "part by part"),
    (ChangeType("price", pa.list_(pa.int32())), UnsupportedError, "part by part"),
    (ChangeType("nope", "INT"), NotFoundError, "no column 'nope'"),
    (ChangeType("scores.key", "INT"), UnsupportedError, "map key"),
    (ChangeType("items.x", "INT"), NotFoundError, "called 'element'"),
    (ChangeNullability("id", nullable=True), UnsupportedError, "stays NOT NULL"),
    (ChangeNullability("price", nullable=False), InvalidInputError, "old rows may have null"),
    (ChangeNullability("address.city", nullable=False), InvalidInputError, "old rows may have null"),
    (ChangeNullability("price", nullable=1), InvalidInputError, "True or False"),  # type: ignore[arg-type]
    (ChangeDefault("price", "abc"), InvalidInputError, "is not a value of type INT"),
    (ChangeDefault("address.zip", "1"), UnsupportedError, "only columns"),
    (ChangeComment("items.element", "x"), InvalidInputError, "has no fields"),
    (ChangeComment("price", 7), InvalidInputError, "text or None"),  # type: ignore[arg-type]
    (SetOption("bucket", "4"), UnsupportedError, "INSERT OVERWRITE"),
    (SetOption("bucket-key", "id,day"), UnsupportedError, "what the files that are there mean"),
    (SetOption("bucket-function.type", "mod"), UnsupportedError, "bucket-function.type"),
    (SetOption("partition.default-name", "none"), UnsupportedError, "where the files of all snapshots and tags lie"),
    (SetOption("tablestore.table-uuid", "x"), UnsupportedError, "which table"),
    (SetOption("primary-key", "id"), UnsupportedError, "which table"),
    (SetOption("path", "/x"), UnsupportedError, "which table"),
    (SetOption("buket", "4"), InvalidInputError, "did you mean 'bucket'"),
    (SetOption("write-only", "perhaps"), InvalidInputError, "true or false"),
    (SetOption("snapshot.num-retained.max", "2"), InvalidInputError, "must not exceed"),
    (RemoveOption("bucket"), InvalidInputError, "always written out"),
    (RemoveOption("write-onli"), InvalidInputError, "did you mean 'write-only'"),
    (RemoveOption("tablestore.table-uuid"), UnsupportedError, "which table"),
]


@pytest.mark.parametrize(("change", "error", "message"), REFUSED, ids=[repr(case[0]) for case in REFUSED])
def test_what_cannot_be_is_refused_with_the_way_out(change: SchemaChange, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        after(SetTableComment("not kept"), change)


@pytest.mark.parametrize("given", [[], "price", [("add", "x")], None, 7, [AddColumn]])
def test_only_changes_are_taken_as_changes(given: Any) -> None:
    with pytest.raises(InvalidInputError, match="expected"):
        evolve(base(), given, has_data=False, time_millis=0)


def test_one_change_may_stand_alone() -> None:
    assert evolve(base(), SetTableComment("x"), has_data=True, time_millis=0).schema.comment == "x"


@pytest.mark.parametrize(
    "change",
    [
        AddColumn("x", "INT NOT NULL"),
        ChangeNullability("price", nullable=False),
        SetOption("bucket", "4"),
        SetOption("bucket-function.type", "mod"),
        SetOption("data-file.path-directory", "data"),
    ],
)
def test_an_empty_table_takes_what_data_would_forbid_and_says_that_it_rests_on_that(change: SchemaChange) -> None:
    found = evolve(base(), [change], has_data=False, time_millis=0)
    assert found.needs_empty_table
    with pytest.raises((InvalidInputError, UnsupportedError)):
        evolve(base(), [change], has_data=True, time_millis=0)


def test_where_files_lie_stays_while_older_snapshots_have_some() -> None:
    for change in (SetOption("data-file.path-directory", "data"), SetOption("partition.legacy-name", "false")):
        assert evolve(base(), change, has_data=False, was_written=False, time_millis=0).needs_empty_table
        with pytest.raises(UnsupportedError, match="all snapshots and tags"):
            evolve(base(), change, has_data=False, was_written=True, time_millis=0)
    assert evolve(base(), SetOption("bucket", "4"), has_data=False, was_written=True, time_millis=0).schema.options["bucket"] == "4"


def test_other_changes_rest_on_nothing() -> None:
    changes: list[SchemaChange] = [
        AddColumn("x", "INT"),
        RenameColumn("id", to="key"),
        SetOption("bucket", "2"),
        SetOption("write-only", "true"),
        ChangeNullability("price", nullable=True),
    ]
    assert not evolve(base(), changes, has_data=False, time_millis=0).needs_empty_table


def test_options_that_only_go_together_are_set_together() -> None:
    both = (SetOption("snapshot.num-retained.max", "2"), SetOption("snapshot.num-retained.min", "1"))
    assert after(*both).options["snapshot.num-retained.max"] == "2"
    assert after(*reversed(both)).options["snapshot.num-retained.min"] == "1"
    with pytest.raises(InvalidInputError, match="expected text"):
        after(SetOption("write-only", None))  # type: ignore[arg-type]
    assert after(SetOption("write-only", True), SetOption("snapshot.num-retained.max", 12)).options == {
        **after(SetOption("write-only", "true"), SetOption("snapshot.num-retained.max", "12")).options
    }


def test_an_option_of_two_spellings_is_set_and_removed_as_one() -> None:
    one, other = "log.scan.timestamp-mills", "log.scan.timestamp-millis"
    with pytest.raises(InvalidInputError, match=f"{one} and {other} are one option; give one of them"):
        after(SetOption(one, "5"), SetOption(other, "6"))
    begun = evolve(base(), SetOption(one, "5"), has_data=True, time_millis=0).schema
    for change in (SetOption(other, "6"), [SetOption(other, "6"), RemoveOption(one)]):
        options = evolve(begun, change, has_data=True, time_millis=0).schema.options
        assert options[other] == "6" and one not in options
    assert one not in evolve(begun, RemoveOption(other), has_data=True, time_millis=0).schema.options
    assert evolve(base(), RemoveOption(other), has_data=True, time_millis=0).schema.options == base().options


def test_a_column_that_an_option_names_is_dropped_after_the_option() -> None:
    schema = base(**{"sequence.field": "price"})
    with pytest.raises(InvalidInputError, match="RemoveOption"):
        after(DropColumn("price"), schema=schema)
    made = after(RemoveOption("sequence.field"), DropColumn("price"), schema=schema)
    assert "price" not in made.field_names


def test_options_of_a_dropped_column_are_no_change_of_what_is_left() -> None:
    schema = base(**{"fields.price.aggregate-function": "sum", "fields.price,scores.sequence-group": "address"})
    dropped = (
        RemoveOption("fields.price.aggregate-function"),
        RemoveOption("fields.price,scores.sequence-group"),
        DropColumn("price"),
    )
    found = evolve(schema, dropped, has_data=True, time_millis=0)
    assert "fields.price.aggregate-function" not in found.options_before
    assert "fields.price,scores.sequence-group" in found.options_before


def test_how_an_old_column_combines_is_a_change_and_how_a_new_one_does_is_none() -> None:
    schema = base(**{"merge-engine": "aggregation"})
    changes: list[SchemaChange] = [
        RenameColumn("price", to="cost"),
        SetOption("fields.cost.aggregate-function", "sum"),
        AddColumn("n", "INT"),
        SetOption("fields.n.aggregate-function", "max"),
        SetOption("fields.n.sequence-group", "scores"),
        SetOption("fields.default-aggregate-function", "last_value"),
    ]
    found = evolve(schema, changes, has_data=True, time_millis=0)
    assert {key for key, value in found.options_before.items() if value == ""} == {
        "fields.cost.aggregate-function",
        "fields.n.sequence-group",
        "fields.default-aggregate-function",
    }


def test_a_column_that_orders_or_combines_rows_does_not_become_text() -> None:
    for key in ("sequence.field", "fields.price.sequence-group", "fields.price.aggregate-function"):
        schema = base(**{key: "price" if key == "sequence.field" else "address" if "group" in key else "max"})
        with pytest.raises(UnsupportedError, match=key):
            after(ChangeType("price", "STRING"), schema=schema)
        assert sql(after(ChangeType("price", "BIGINT"), schema=schema))["price"] == "BIGINT"


def test_the_bucket_key_of_an_append_table_stays() -> None:
    schema = new_schema(schema=COLUMNS, options={"bucket": "2", "bucket-key": "price"})
    for change in (DropColumn("price"), ChangeType("price", "BIGINT")):
        with pytest.raises(UnsupportedError, match="bucket-key column"):
            after(change, schema=schema)
    assert after(RenameColumn("price", to="cost"), schema=schema).bucket_keys == ("cost",)


def test_the_last_column_and_the_last_field_stay() -> None:
    single = new_schema(schema=pa.schema([pa.field("r", pa.struct([pa.field("a", pa.int8())]))]))
    for change in (DropColumn("r"), DropColumn("r.a")):
        with pytest.raises(InvalidInputError, match="last one left"):
            after(change, schema=single)


def test_an_odd_foreign_table_can_still_be_altered_elsewhere() -> None:
    odd = TableSchema(
        id=3,
        fields=base().fields,
        highest_field_id=9,
        partition_keys=("day",),
        primary_keys=("id", "day"),
        options={"bucket": "2", "unknown.option": "1", "file.format": "orc"},
    )
    made = after(AddColumn("x", "INT"), schema=odd)
    assert made.id == 4
    assert made.options == odd.options


def test_a_change_that_changes_nothing_is_recognised() -> None:
    assert same_content(base(), after(SetOption("bucket", "2"), ChangeComment("price", None)))
    assert not same_content(base(), after(ChangeComment("price", "")))


def test_an_option_of_other_engines_is_kept_beside_ours_which_stay_checked() -> None:
    first = after(SetForeignOption("sink.parallelism", "3"))
    assert first.options == {**base().options, "sink.parallelism": "3"}
    assert after(SetForeignOption("sink.parallelism", None), schema=first).options == base().options
    assert after(SetForeignOption("none.of.those", None)).options == base().options
    with pytest.raises(InvalidInputError, match="SetOption"):
        after(SetForeignOption("bucket", "7"))
    with pytest.raises(InvalidInputError, match="num-retained"):
        after(SetOption("snapshot.num-retained.min", "9"), SetOption("snapshot.num-retained.max", "3"), schema=first)
    with pytest.raises(InvalidInputError, match="unknown table option"):
        after(SetOption("none.of.those", "1"), schema=first)
