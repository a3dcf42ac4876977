"""The options of a table name its merge function; what makes no sense is refused, with the way out."""

import pyarrow as pa
import pytest

from tablestore.errors import InvalidInputError, TablestoreError, UnsupportedError
from tablestore.lsm.functions.mergefunction import ColumnFunction, SequenceField, SequenceGroup
from tablestore.lsm.functions.mergeoptions import check_column_options, merge_function
from tablestore.types.newschema import new_schema
from tablestore.types.schema import TableSchema

COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("n", pa.int32()),
        ("price", pa.decimal128(38, 2)),
        ("text", pa.string()),
        ("flag", pa.bool_()),
        ("tags", pa.list_(pa.string())),
        ("entries", pa.map_(pa.string(), pa.int32())),
        ("lines", pa.list_(pa.struct([("sku", pa.string()), ("n", pa.int32())]))),
        ("raw", pa.binary()),
        ("g", pa.int64()),
        ("h", pa.int64()),
    ]
)
KINDS_OF_COLUMNS = ("n", "price", "text", "flag", "tags", "entries", "lines", "raw")
AGGREGATION = {"merge-engine": "aggregation"}
PARTIAL = {"merge-engine": "partial-update"}


def _schema(options: dict[str, str]) -> TableSchema:
    return new_schema(schema=COLUMNS, primary_key=["id"], options={"bucket": "1", **options})


def test_without_options_the_last_row_wins() -> None:
    found = merge_function(_schema({}))
    assert (found.engine, found.keep, found.ignore_delete, found.sequence_fields) == ("deduplicate", "last", False, ())
    assert not found.computes


def test_options_are_taken_over() -> None:
    found = merge_function(_schema({"ignore-delete": "true", "sequence.field": "n, g", "sequence.field.sort-order": "descending"}))
    assert found.ignore_delete
    assert found.sequence_fields == (SequenceField(name="n", descending=True), SequenceField(name="g", descending=True))


def test_first_row_keeps_the_first() -> None:
    assert merge_function(_schema({"merge-engine": "first-row"})).keep == "first"


def test_an_aggregation_has_a_function_per_column() -> None:
    found = merge_function(
        _schema(
            {
                "merge-engine": "aggregation",
                "fields.default-aggregate-function": "last_value",
                "fields.n.aggregate-function": "sum",
                "fields.text.aggregate-function": "listagg",
                "fields.text.list-agg-delimiter": ";",
                "fields.text.distinct": "true",
                "fields.lines.aggregate-function": "nested_update",
                "fields.lines.nested-key": "sku",
                "fields.lines.count-limit": "3",
                "fields.flag.aggregate-function": "bool_or",
                "fields.flag.ignore-retract": "true",
                "sequence.field": "g",
            }
        )
    )
    functions = dict(found.functions)
    assert "id" not in functions
    assert functions["n"] == ColumnFunction(name="sum")
    assert functions["text"] == ColumnFunction(name="listagg", delimiter=";", distinct=True)
    assert functions["lines"] == ColumnFunction(name="nested_update", nested_key=("sku",), count_limit=3)
    assert functions["flag"] == ColumnFunction(name="bool_or", ignore_retract=True)
    assert functions["raw"] == functions["g"] == ColumnFunction(name="last_value")


def test_without_a_function_an_aggregation_takes_the_last_value_that_is_not_null() -> None:
    found = merge_function(_schema({"merge-engine": "aggregation"}))
    assert {function.name for _, function in found.functions} == {"last_non_null_value"}


def test_sequence_groups_and_what_has_to_be_read_for_a_column() -> None:
    found = merge_function(
        _schema(
            {
                "merge-engine": "partial-update",
                "fields.g.sequence-group": "n,text",
                "fields.h,flag.sequence-group": "tags",
                "fields.n.aggregate-function": "sum",
            }
        )
    )
    assert found.groups == (
        SequenceGroup(fields=("g",), columns=("n", "text")),
        SequenceGroup(fields=("h", "flag"), columns=("tags",)),
    )
    assert found.required_columns(["raw"]) == {"raw"}
    assert found.required_columns(["n"]) == {"n", "g"}
    assert found.required_columns(["tags", "raw"]) == {"tags", "raw", "h", "flag"}


def test_a_group_that_removes_rows_is_read_with_every_column() -> None:
    found = merge_function(
        _schema(
            {
                "merge-engine": "partial-update",
                "fields.g.sequence-group": "n",
                "fields.h.sequence-group": "text",
                "partial-update.remove-record-on-sequence-group": "g",
            }
        )
    )
    assert [group.removes for group in found.groups] == [True, False]
    assert found.required_columns(["raw"]) == {"raw", "g"}


@pytest.mark.parametrize(
    ("function", "columns"),
    [
        ("sum", {"n", "price"}),
        ("product", {"n"}),
        ("min", {"n", "price", "text", "flag", "raw"}),
        ("listagg", {"text"}),
        ("bool_and", {"flag"}),
        ("collect", {"tags", "lines"}),
        ("merge_map", {"entries"}),
        ("nested_update", {"lines"}),
        ("rbm32", {"raw"}),
        ("rbm64", {"raw"}),
        ("theta_sketch", {"raw"}),
        ("hll_sketch", {"raw"}),
        ("last_value", set(KINDS_OF_COLUMNS)),
        ("first_non_null_value", set(KINDS_OF_COLUMNS)),
    ],
)
def test_a_function_takes_the_types_that_it_is_made_for(function: str, columns: set[str]) -> None:
    for column in KINDS_OF_COLUMNS:
        options = AGGREGATION | {f"fields.{column}.aggregate-function": function}
        if column in columns:
            merge_function(_schema(options))
        else:
            with pytest.raises(TablestoreError, match=column) as error:
                merge_function(_schema(options))
            assert error.value.kind == "aggregate-type"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (AGGREGATION | {"fields.n.aggregate-function": "summ"}, "did you mean 'sum'"),
        (AGGREGATION | {"fields.default-aggregate-function": "smu"}, "sum"),
        (AGGREGATION | {"sequence.field": "g", "fields.g.aggregate-function": "max"}, "follows the last row"),
        (AGGREGATION | {"fields.lines.aggregate-function": "nested_update", "fields.lines.nested-key": "id"}, "do not have"),
        (AGGREGATION | {"aggregation.remove-record-on-delete": "true", "fields.n.ignore-retract": "true"}, "contradict"),
        (PARTIAL | {"fields.n.aggregate-function": "sum"}, "inside sequence groups"),
        (PARTIAL | {"fields.nope.sequence-group": "n"}, "'nope', which does not exist"),
        (PARTIAL | {"fields.g.sequence-group": "nope"}, "'nope', which does not exist"),
        (PARTIAL | {"fields.g.sequence-group": "n", "fields.h.sequence-group": "n,text"}, "more than one sequence group"),
        (PARTIAL | {"fields.g.sequence-group": "n", "fields.h.sequence-group": "g"}, "more than one sequence group"),
        (PARTIAL | {"fields.g.sequence-group": "id"}, "key column"),
        (PARTIAL | {"fields.id.sequence-group": "n"}, "key column"),
        (PARTIAL | {"fields.tags.sequence-group": "n"}, "cannot order rows"),
        (PARTIAL | {"fields.g.sequence-group": "n", "fields.g.aggregate-function": "max"}, "orders a sequence group"),
        (PARTIAL | {"fields.g.sequence-group": ""}, "sequence-group = <columns>"),
        (PARTIAL | {"partial-update.remove-record-on-sequence-group": "g"}, "no sequence group is ordered by it"),
        (PARTIAL | {"partial-update.remove-record-on-delete": "true", "ignore-delete": "true"}, "contradict"),
        (PARTIAL | {"partial-update.remove-record-on-delete": "true", "fields.g.sequence-group": "n"}, "contradict"),
        (
            PARTIAL
            | {
                "fields.g.sequence-group": "n",
                "partial-update.remove-record-on-sequence-group": "g",
                "ignore-delete": "true",
            },
            "contradict",
        ),
        ({"sequence.field": "nope"}, "'nope', which does not exist"),
        ({"sequence.field": "g,g"}, "more than once"),
        ({"sequence.field": "tags"}, "cannot order rows"),
        ({"merge-engine": "first-row", "sequence.field": "g"}, "the first arrival is kept"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        merge_function(_schema(options))


def test_an_unknown_engine_names_the_nearest() -> None:
    schema = _schema({})
    found = TableSchema(
        id=0,
        fields=schema.fields,
        highest_field_id=schema.highest_field_id,
        partition_keys=(),
        primary_keys=schema.primary_keys,
        options={"merge-engine": "agregation"},
    )
    with pytest.raises(InvalidInputError, match="did you mean 'aggregation'"):
        merge_function(found)


@pytest.mark.parametrize("function", ["merge_map_with_keytime", "nested_partial_update"])
def test_functions_that_we_lack_are_refused_by_name(function: str) -> None:
    with pytest.raises(UnsupportedError, match=f"does not have {function}"):
        merge_function(_schema(AGGREGATION | {"fields.raw.aggregate-function": function}))


@pytest.mark.parametrize("setting", ["nested-sequence-field", "nested-key-null-strategy"])
def test_settings_that_we_lack_are_refused_by_name(setting: str) -> None:
    options = AGGREGATION | {"fields.lines.aggregate-function": "nested_update", f"fields.lines.{setting}": "sku"}
    with pytest.raises(UnsupportedError, match=setting):
        merge_function(_schema(options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fields.nope.aggregate-function": "sum"}, "'nope', which does not exist"),
        ({"fields.n.agregate-function": "sum"}, "did you mean 'aggregate-function'"),
        ({"fields.id.aggregate-function": "sum"}, "key column"),
    ],
)
def test_a_table_that_is_written_has_no_options_that_do_nothing(options: dict[str, str], message: str) -> None:
    schema = _schema(AGGREGATION | options)
    merge_function(schema)
    with pytest.raises(InvalidInputError, match=message):
        check_column_options(schema)
