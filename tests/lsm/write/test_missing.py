"""What rows with fewer columns would lose, engine by engine."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest

from tablestore.errors import InvalidInputError
from tablestore.lsm.functions.mergeoptions import merge_function
from tablestore.lsm.missingchoice import MissingColumns
from tablestore.lsm.write.missingcolumns import MissingValues, lost_to_nulls, path_text
from tablestore.types.newschema import new_schema
from tablestore.types.rowkind import RowKind

INNER = pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.int32()), ("d", pa.int32())]))])
COLUMNS = pa.schema(
    [("id", pa.int64()), ("n", pa.int64()), ("m", pa.int64()), ("g", pa.int64()), ("r", INNER), ("l", pa.list_(INNER))]
)


def lost(given: pa.Schema, options: Mapping[str, str] | None = None, *, keyed: bool = True) -> MissingValues:
    schema = new_schema(schema=COLUMNS, primary_key=["id"] if keyed else [], options={"bucket": "1", **(options or {})})
    return lost_to_nulls(merge_function(schema) if keyed else None, schema.fields, given)


def names(found: MissingValues) -> list[str]:
    return [path_text(path) for path in found.paths]


def only(*columns: str) -> pa.Schema:
    return pa.schema([COLUMNS.field(name) for name in columns])


GROUP = {"merge-engine": "partial-update", "fields.g.sequence-group": "n,m"}
AGGREGATION = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "fields.m.aggregate-function": "last_value"}


@pytest.mark.parametrize(
    ("options", "given", "expected"),
    [
        ({}, ("id", "n", "r", "l"), ["m", "g"]),
        ({}, ("id", "n", "m", "g", "r", "l"), []),
        ({"merge-engine": "first-row"}, ("id",), []),
        ({"merge-engine": "partial-update"}, ("id",), []),
        ({"merge-engine": "partial-update", "sequence.field": "g"}, ("id", "n"), ["g"]),
        (GROUP, ("id", "r"), []),
        (GROUP, ("id", "g", "n"), ["m"]),
        ({**GROUP, "fields.m.aggregate-function": "sum"}, ("id", "g", "n"), []),
        ({**GROUP, "fields.m.aggregate-function": "last_value"}, ("id", "g", "n"), ["m"]),
        (AGGREGATION, ("id", "n"), ["m"]),
        (AGGREGATION, ("id", "m"), []),
        ({"merge-engine": "aggregation", "sequence.field": "g"}, ("id", "n"), ["g"]),
    ],
)
def test_a_column_is_lost_where_the_engine_would_take_its_null(
    options: Mapping[str, str], given: tuple[str, ...], expected: list[str]
) -> None:
    assert names(lost(only(*given), options)) == expected


def test_nothing_is_lost_in_an_append_table() -> None:
    assert lost(only("id"), {"bucket": "-1"}, keyed=False) == MissingValues()


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update", "aggregation"])
def test_fields_that_a_given_row_lacks_are_lost_at_every_depth(engine: str) -> None:
    thin = pa.struct([("b", pa.struct([("d", pa.int32())]))])
    whole = pa.schema([*only("id", "n", "m", "g"), pa.field("r", thin), pa.field("l", pa.large_list(thin))])
    assert names(lost(whole, {"merge-engine": engine})) == ["r.a", "r.b.c", "l[].a", "l[].b.c"]


def test_a_row_that_is_null_as_a_whole_lacks_nothing() -> None:
    given = pa.schema([*only("id", "n", "m", "g"), pa.field("r", pa.null()), pa.field("l", pa.null())])
    assert lost(given).paths == ()


def test_what_orders_rows_is_lost_to_rows_that_add_and_not_to_deletes_which_take_it_from_the_stored_row() -> None:
    given = lost(only("id", "n"), {"sequence.field": "g"})
    assert ("g",) in given.paths
    assert not any(given.retracted.values())


def test_what_is_taken_back_is_named_by_kind() -> None:
    options = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
    assert "n" in lost(only("id"), options).retracted[RowKind.DELETE]
    assert not lost(only("id", "m"), options).retracted[RowKind.DELETE]
    assert lost(only("id", "m"), {**options, "sequence.field": "g"}).retracted[RowKind.DELETE] == ("g",)
    removing = lost(only("id"), {**options, "aggregation.remove-record-on-delete": "true"}).retracted
    assert not removing[RowKind.DELETE]
    assert "n" in removing[RowKind.UPDATE_BEFORE]
    with pytest.raises(InvalidInputError, match=r"rows of kind -D for table t lack .*n"):
        lost(only("id"), options).check_retractions(np.array([0, 3], np.int8), "table t")


def test_the_refusal_names_the_columns_and_the_ways_out() -> None:
    ways = r'lack m, g: .*missing_columns="keep".*missing_columns="null".*partial-update'
    with pytest.raises(InvalidInputError, match=ways) as error:
        lost(only("id", "n", "r", "l")).check("table t")
    assert error.value.kind == "missing-columns"


def test_an_unknown_choice_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInputError, match=r"one of refuse, null, keep, found 'nul'; did you mean 'null'"):
        MissingColumns.of("nul")
