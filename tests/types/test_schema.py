"""Schemas of new tables: ids, keys and buckets are settled once, and settled right."""

from dataclasses import replace

import pyarrow as pa
import pytest

from tablestore.errors import InvalidInputError, NotFoundError, UnsupportedError
from tablestore.types.arrowtypes import fields_from_arrow
from tablestore.types.datatypes import Field
from tablestore.types.newschema import new_schema
from tablestore.types.schema import TableSchema
from tablestore.types.typestring import type_to_sql

ORDERS = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us")),
        ("wide", pa.decimal128(20, 2)),
        ("place", pa.struct([("x", pa.int32()), ("tags", pa.list_(pa.struct([("t", pa.string())])))])),
        pa.field("note", pa.string(), metadata={b"comment": b"free text"}),
    ]
)


def make(**given: object) -> TableSchema:
    return new_schema(**({"schema": ORDERS} | given))  # type: ignore[arg-type]


def test_ids_are_given_in_pre_order() -> None:
    schema = make()
    place = schema.field("place").type
    assert [field.id for field in schema.fields] == [0, 1, 2, 3, 4, 8]
    assert [field.id for field in place.fields] == [5, 6]  # type: ignore[union-attr]
    assert place.fields[1].type.element.fields[0].id == 7  # type: ignore[union-attr]
    assert schema.highest_field_id == 8
    assert schema.field("note").description == "free text"


def test_primary_key_columns_become_not_null_and_the_trimmed_key_keeps_its_order() -> None:
    schema = make(primary_key=["day", "note", "id"], partition_by=["day"], options={"bucket": "2"})
    assert schema.is_keyed
    assert schema.trimmed_primary_keys == schema.bucket_keys == ("note", "id")
    assert [type_to_sql(field.type) for field in schema.key_fields] == ["STRING NOT NULL", "BIGINT NOT NULL"]
    assert [field.name for field in schema.partition_fields] == ["day"]
    assert not schema.arrow_schema.field("day").nullable and schema.arrow_schema.field("at").nullable


def test_bucket_and_thin_mode_are_always_written_out() -> None:
    assert make().options == {"bucket": "-1"}
    assert make(primary_key=["id"]).options == {"bucket": "1", "data-file.thin-mode": "true"}
    chosen = {"bucket": "4", "data-file.thin-mode": "false", "bucket-key": "id"}
    assert make(primary_key=["id"], options=chosen).options == chosen
    assert make(options={"bucket": "2", "bucket-key": " note , id "}).bucket_keys == ("note", "id")


def test_unknown_column_names_the_nearest() -> None:
    with pytest.raises(NotFoundError, match="did you mean 'note'"):
        make().field("Note")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"schema": pa.schema([])}, "at least one column"),
        ({"schema": pa.schema([("a", pa.int8()), ("a", pa.int8())])}, "duplicate column names: a"),
        ({"schema": pa.schema([("_KEY_a", pa.int8())])}, "reserved"),
        ({"schema": pa.schema([("_SEQUENCE_NUMBER", pa.int8())])}, "reserved"),
        ({"schema": pa.schema([("rowkind", pa.int8())])}, "reserved"),
        ({"schema": pa.schema([(" ", pa.int8())])}, "column name"),
        ({"schema": pa.schema([("a", pa.struct([]))])}, "without fields"),
        ({"schema": pa.schema([("a", pa.list_(pa.struct([("x", pa.int8())] * 2)))])}, "duplicate field names"),
        ({"primary_key": ["id", "id"]}, "more than once"),
        ({"primary_key": ["ids"]}, "did you mean 'id'"),
        ({"partition_by": ["days"]}, "did you mean 'day'"),
        (
            {"primary_key": ["id"], "partition_by": ["day"]},
            r"Primary key constraint \['id'\] should include all partition fields \['day'\]",
        ),
        (
            {"primary_key": ["day"], "partition_by": ["day"]},
            r"Primary key constraint \['day'\] should not be same with partition fields \['day'\], "
            "this will result in only one record in a partition",
        ),
        ({"schema": pa.schema([("a", pa.int8())]), "partition_by": ["a"]}, "leaves no data"),
        ({"partition_by": ["at"]}, "must be NOT NULL"),
        ({"partition_by": ["wide"]}, "must be NOT NULL"),
        ({"options": {"bucket": "2", "bucket-key": "wide"}}, "must be NOT NULL"),
        ({"options": {"bucket": "0"}}, "bucket"),
        ({"options": {"bucket": "-3"}}, "bucket"),
        ({"options": {"bucket": "many"}}, "bucket"),
        ({"options": {"bucket": "-2"}}, "needs a primary key"),
        ({"options": {"bucket": "2"}}, "needs the option bucket-key"),
        ({"options": {"bucket-key": "id"}}, "forbids bucket-key"),
        ({"options": {"bucket": "2", "bucket-key": "nope"}}, "does not exist"),
        ({"options": {"bucket": "2", "bucket-key": "id,id"}}, "more than once"),
        ({"options": {"bucket": "2", "bucket-key": "day"}, "partition_by": ["day"]}, "partition columns"),
        ({"primary_key": ["id"], "options": {"bucket": "2", "bucket-key": "note"}}, "part of the primary key"),
        ({"primary_key": ["note"], "options": {"bucket-function.type": "mod"}}, "INT or BIGINT"),
        ({"options": {"bukket": "2"}}, "did you mean 'bucket'"),
    ],
    ids=str,
)
def test_what_readers_would_choke_on_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make(**given)


@pytest.mark.parametrize(
    "given",
    [
        {"primary_key": ["place"]},
        {"partition_by": ["place"]},
        {"options": {"bucket": "2", "bucket-key": "place"}},
        {"schema": pa.schema([("a", pa.null())])},
        {"schema": pa.schema([("a", pa.duration("s"))])},
        {"schema": pa.schema([("a", pa.decimal256(50, 2))])},
        {"schema": pa.schema([("a", pa.list_(pa.decimal128(5, -2)))])},
        {"options": {"data-evolution.enabled": "true"}},
    ],
    ids=str,
)
def test_what_tables_cannot_hold_is_unsupported(given: dict[str, object]) -> None:
    with pytest.raises(UnsupportedError):
        make(**given)


def test_wide_keys_are_fine_when_not_null() -> None:
    schema = pa.schema([pa.field("at", pa.timestamp("us"), nullable=False), ("v", pa.int8())])
    assert make(schema=schema, partition_by=["at"]).partition_keys == ("at",)
    assert make(primary_key=["wide"], options={"bucket": "3"}).bucket_keys == ("wide",)


def test_arrow_layouts_mean_the_same_types() -> None:
    layouts = pa.schema(
        [
            ("a", pa.dictionary(pa.int8(), pa.large_string())),
            ("b", pa.run_end_encoded(pa.int32(), pa.int16())),
            ("c", pa.binary(4)),
            ("d", pa.uint64()),
            ("e", pa.list_view(pa.float16())),
            ("f", pa.timestamp("s", "Europe/Berlin")),
            ("g", pa.time64("ns")),
            ("h", pa.uuid()),
            ("i", pa.date64()),
        ]
    )
    fields, highest = fields_from_arrow(layouts)
    assert highest == 8
    assert [type_to_sql(field.type) for field in fields] == [
        "STRING",
        "SMALLINT",
        "BINARY(4)",
        "DECIMAL(20, 0)",
        "ARRAY<FLOAT>",
        "TIMESTAMP(0) WITH LOCAL TIME ZONE",
        "TIME(3)",
        "BINARY(16)",
        "DATE",
    ]


def test_types_that_arrow_cannot_say_travel_in_metadata_while_they_are_true() -> None:
    told = {b"tablestore.type": b"VARCHAR(10)"}
    schema = pa.schema([pa.field("a", pa.string(), metadata=told), pa.field("b", pa.int32(), metadata=told)])
    made = make(schema=schema)
    assert [type_to_sql(field.type) for field in made.fields] == ["VARCHAR(10)", "INT"]
    assert [type_to_sql(field.type) for field in make(schema=made.arrow_schema).fields] == ["VARCHAR(10)", "INT"]
    with pytest.raises(InvalidInputError, match=r"tablestore\.type"):
        make(schema=pa.schema([pa.field("a", pa.string(), metadata={b"tablestore.type": b"VARCHR(10)"})]))


class Counted(str):
    """A name that counts how often it is compared."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_finding_each_column_takes_no_more_than_its_length() -> None:
    id_type = make().field("id").type
    fields = tuple(Field(id=i, name=Counted(f"c{i}"), type=id_type) for i in range(1_000))
    schema = replace(make(), fields=fields, highest_field_id=1_000)
    assert [schema.field(f"c{i}").id for i in range(1_000)] == list(range(1_000))
    assert Counted.comparisons < 10_000
