"""The definition of a materialized table: how a schema carries it, and what leads from one to another."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

import tablestore as ts
from tablestore.materialized import difference as d
from tablestore.materialized.freshness import (
    Freshness,
    FreshnessRules,
    LogicalRefreshMode,
    RefreshMode,
    TimeUnit,
)
from tablestore.materialized.materializedtable import (
    MaterializedTable,
    RefreshHandler,
    RefreshStatus,
    Upkeep,
    definition_of,
    options_of,
    upkeep_of,
)
from tablestore.materialized.sametext import same_query, same_words
from tablestore.types.datatypes import Field
from tablestore.types.schema import TableSchema
from tablestore.types.typestring import parse_type

FIVE = Freshness(interval=5, unit=TimeUnit.MINUTE)


def fields(*columns: str) -> tuple[Field, ...]:
    pairs = [column.split(" ", 1) for column in columns]
    return tuple(Field(id=place, name=name, type=parse_type(kind)) for place, (name, kind) in enumerate(pairs))


COLUMNS = ("user_id BIGINT", "product_id INT", "price DECIMAL(10, 2)", "description STRING")
OLD = MaterializedTable(
    original_query="SELECT * FROM orders",
    expanded_query="SELECT * FROM `c`.`d`.`orders`",
    freshness=FIVE,
    refresh_mode=RefreshMode.CONTINUOUS,
    fields=fields(*COLUMNS),
)


def schema(definition: MaterializedTable, upkeep: Upkeep, **more: str) -> TableSchema:
    return TableSchema(
        version=3,
        id=0,
        fields=definition.fields,
        highest_field_id=9,
        partition_keys=definition.partition_by,
        primary_keys=definition.primary_key,
        options={**definition.options, **options_of(definition, upkeep), **more},
        comment=definition.comment,
        time_millis=0,
    )


def changed(**changes: Any) -> d.AlterationPlan:
    return d.diff(OLD, replace(OLD, **changes), same_query="fields" not in changes and "expanded_query" not in changes)


def evolved(*columns: str) -> d.AlterationPlan:
    return changed(fields=fields(*columns), expanded_query="SELECT …")


def test_a_schema_carries_the_whole_definition_and_how_it_stands() -> None:
    definition = replace(
        OLD,
        original_query="SELECT *\n  FROM orders -- 'all'",
        default_freshness=True,
        logical_mode=LogicalRefreshMode.FULL,
        refresh_mode=RefreshMode.FULL,
        primary_key=("user_id",),
        constraint="mine",
        partition_by=("description",),
        comment="c",
        options={"bucket": "2", "partition.fields.description.date-formatter": "yyyy-MM-dd"},
    )
    upkeep = Upkeep(status=RefreshStatus.ACTIVATED, epoch=7, since_ms=5, handler=RefreshHandler(summary="w", data=b"\x00\xff"))
    stored = schema(definition, upkeep)
    assert definition_of(stored) == definition
    assert upkeep_of(stored) == upkeep
    assert stored.options["type"] == "materialized-table"


def test_a_table_that_flink_made_has_its_expanded_query_as_the_original_one() -> None:
    stored = schema(OLD, Upkeep(status=RefreshStatus.SUSPENDED))
    options = {key: value for key, value in stored.options.items() if not key.startswith("tablestore.")}
    found = definition_of(replace(stored, options=options))
    assert found == replace(OLD, original_query=OLD.expanded_query)
    assert upkeep_of(replace(stored, options=options)) == Upkeep(status=RefreshStatus.SUSPENDED, epoch=0)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("materialized-table.interval-freshness", "none"),
        ("materialized-table.interval-freshness.time-unit", "WEEK"),
        ("tablestore.materialized-table.declared", "{"),
        ("tablestore.materialized-table.declared", "[]"),
        ("tablestore.materialized-table.declared", '{"options": {"a": 1}}'),
        ("tablestore.materialized-table.epoch", "x"),
        ("materialized-table.refresh-handler-bytes", "?"),
        ("materialized-table.refresh-status", "lost"),
    ],
)
def test_a_damaged_definition_says_which_option_it_is(key: str, value: str) -> None:
    stored = schema(OLD, Upkeep(status=RefreshStatus.ACTIVATED), **{key: value})
    with pytest.raises(ts.FormatError, match=f"option {key}"):
        definition_of(stored)
        upkeep_of(stored)


def test_the_query_of_the_definition_has_three_names_and_one_of_them_is_deprecated() -> None:
    assert (OLD.get_original_query(), OLD.get_expanded_query()) == ("SELECT * FROM orders", "SELECT * FROM `c`.`d`.`orders`")
    with pytest.warns(DeprecationWarning, match="get_expanded_query"):
        assert OLD.get_definition_query() == OLD.get_expanded_query()


def test_the_same_definition_is_no_change() -> None:
    plan = d.diff(OLD, replace(OLD, original_query="select *  from ORDERS"), same_query=True)
    assert plan.changes == () and str(plan) == "no change" and not plan.restarts


@pytest.mark.parametrize(
    ("changes", "shown", "restarts"),
    [
        ({"freshness": Freshness(interval=1, unit=TimeUnit.DAY)}, "SET FRESHNESS = INTERVAL '1' DAY", True),
        ({"logical_mode": LogicalRefreshMode.FULL, "refresh_mode": RefreshMode.FULL}, "SET REFRESH_MODE = FULL", True),
        ({"options": {"write-only": "true"}}, "SET 'write-only' = 'true'", False),
        ({"comment": "new"}, "SET COMMENT 'new'", False),
        ({"primary_key": ("user_id",), "constraint": "PK_user_id"}, "MODIFY PRIMARY KEY to (user_id)", False),
        ({"partition_by": ("description",)}, "MODIFY PARTITIONED BY to (description)", False),
        ({"expanded_query": "SELECT 1", "original_query": "SELECT  1"}, "MODIFY QUERY to: SELECT 1", True),
    ],
)
def test_each_aspect_of_the_definition_is_compared(changes: dict[str, Any], shown: str, restarts: bool) -> None:
    plan = changed(**changes)
    assert len(plan.changes) == 1
    assert str(plan).startswith(shown) and plan.restarts is restarts


def test_options_that_the_new_statement_lacks_are_set_back() -> None:
    old = replace(OLD, options={"a": "1", "b": "2", "c": "3"})
    (change,) = d.diff(old, replace(old, options={"b": "2", "c": "4", "d": "5"}), same_query=True).changes
    assert change == d.ModifyOptions(set={"c": "4", "d": "5"}, reset=("a",))


def test_columns_may_be_appended() -> None:
    plan = evolved(*COLUMNS, "note STRING")
    d.validate(plan)
    assert [one.name for one in plan.appended] == ["note"]
    assert "adds `note` STRING" in str(plan)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            COLUMNS[:3],
            "Failed to modify query because drop column is unsupported. When modifying a query, you can only append new columns at "
            "the end of original schema. The original schema has 4 columns, but the newly derived schema from the query has 3 "
            "columns.",
        ),
        (
            (COLUMNS[0], COLUMNS[2], COLUMNS[1], COLUMNS[3]),
            "When modifying the query of a materialized table, currently only support appending columns at the end of original "
            "schema, dropping, renaming, and reordering columns are not supported.\nColumn mismatch at position 1: Original column "
            "is [`product_id` INT], but new column is [`price` DECIMAL(10,2)].",
        ),
        (
            (*COLUMNS[:2], "price INT", COLUMNS[3]),
            "Column mismatch at position 2: Original column is [`price` DECIMAL(10,2)], but new column is [`price` INT].",
        ),
        (
            (*COLUMNS[:3], "text STRING"),
            "Column mismatch at position 3: Original column is [`description` STRING], but new column is [`text` STRING].",
        ),
    ],
)
def test_columns_that_go_move_or_change_are_refused_in_the_words_of_the_seed(columns: Sequence[str], message: str) -> None:
    with pytest.raises(ts.InvalidInputError) as error:
        d.validate(evolved(*columns))
    assert f"{message}\nSuch a version can be built beside the table" in str(error.value)


@pytest.mark.parametrize("changes", [{"partition_by": ("price",)}, {"primary_key": ("user_id",), "constraint": "PK_user_id"}])
def test_key_and_partitions_stay_and_the_way_out_is_named(changes: dict[str, Any]) -> None:
    with pytest.raises(ts.UnsupportedError, match="DROP MATERIALIZED TABLE it and create it anew"):
        d.validate(changed(**changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"partition_by": ("day",)},
            "Partition column 'day' not defined in the query's schema. Available columns: [user_id, product_id, price, "
            "description].",
        ),
        (
            {"primary_key": ("id",)},
            "Primary key column 'id' not defined in the query schema. Available columns: [user_id, product_id, price, "
            "description].",
        ),
        (
            {"options": {"partition.fields.day.date-formatter": "yyyy"}, "partition_by": ("price", "description")},
            "Column 'day' referenced by materialized table option 'partition.fields.day.date-formatter' isn't a partition column. "
            "Available partition columns: [price, description].",
        ),
        (
            {"options": {"partition.fields.price.date-formatter": "yyyy"}, "partition_by": ("price",)},
            "Materialized table option 'partition.fields.price.date-formatter' only supports referring to char, varchar and string "
            "type partition column. Column `price` type is DECIMAL(10,2).",
        ),
    ],
)
def test_what_does_not_fit_the_columns_of_the_query_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ts.InvalidInputError) as error:
        d.check_declared(replace(OLD, **changes))
    assert str(error.value) == message


def test_what_is_declared_as_before_stays_whatever_the_rules_are_now() -> None:
    hour, rules = Freshness(interval=1, unit=TimeUnit.HOUR), FreshnessRules(threshold_ms=0, continuous_ms=7_200_000)
    automatic = LogicalRefreshMode.AUTOMATIC
    assert d.settled(OLD, FIVE, automatic, rules) == (FIVE, RefreshMode.CONTINUOUS)
    assert d.settled(replace(OLD, default_freshness=True), None, automatic, rules) == (FIVE, RefreshMode.CONTINUOUS)
    assert d.settled(OLD, hour, automatic, rules) == (hour, RefreshMode.FULL)
    assert d.settled(OLD, None, automatic, rules) == (Freshness(interval=2, unit=TimeUnit.HOUR), RefreshMode.FULL)


@pytest.mark.parametrize(
    ("one", "other", "words", "query"),
    [
        ("SELECT id FROM orders", "select  id\n\tfrom `orders` -- all", True, True),
        ("SELECT id FROM orders;", "SELECT /* the id */ id FROM orders", True, True),
        ("SELECT id AS a FROM o WHERE a <> 1", "SELECT id a FROM o WHERE a != 1", False, True),
        ("SELECT count(*) AS n FROM o", "SELECT COUNT(*) AS n FROM o", False, True),
        ("SELECT 'a' AS x FROM o", "SELECT 'A' AS x FROM o", False, False),
        ("SELECT id FROM o WHERE v > 1", "SELECT id FROM o WHERE v > 2", False, False),
        ("SELECT a, b FROM o", "SELECT b, a FROM o", False, False),
        ("SELECT `a b` FROM o", "SELECT a b FROM o", False, False),
    ],
)
def test_layout_comments_and_spelling_make_no_other_query(one: str, other: str, words: bool, query: bool) -> None:
    assert same_words(one, other) is words
    assert same_query(one, other) is query
