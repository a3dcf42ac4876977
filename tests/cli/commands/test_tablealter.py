"""``table alter``: each change from the command line is the change of the API."""

from collections.abc import Callable

import pyarrow as pa
import pytest

import tablestore as ts
from tests.support.commandline import Ran

Run = Callable[..., Ran]


def names(orders: ts.Table) -> list[str]:
    return list(orders.refresh().schema.names)


def test_columns_are_added_moved_renamed_and_dropped(run: Run, orders: ts.Table) -> None:
    assert run("table", "alter", "add-column", "shop.orders", "note STRING COMMENT 'for whom'", "--after", "id", "--json").json == {
        "table": "shop.orders",
        "schema_id": 1,
    }
    assert orders.refresh().table_schema.field("note").description == "for whom"
    run("table", "alter", "add-column", "shop.orders", "`a.b` INT", "--first")
    run("table", "alter", "add-column", "shop.orders", "place ROW<x INT>", "--before", "item")
    run("table", "alter", "add-column", "shop.orders", "place.y STRING")
    assert names(orders) == ["a.b", "id", "note", "place", "item", "price"]
    assert orders.refresh().schema.field("place").type.get_field_index("y") == 1
    run("table", "alter", "move-column", "shop.orders", "note", "--last")
    run("table", "alter", "rename-column", "shop.orders", "price", "net")
    run("table", "alter", "drop-column", "shop.orders", "note", code=3)
    run("table", "alter", "drop-column", "shop.orders", "note", "--yes")
    assert names(orders) == ["a.b", "id", "place", "item", "net"]
    assert orders.refresh().scan().count() == 4
    assert run("table", "read", "shop.orders", "--snapshot", "1", "--filter", "price > 7", "--json").rows[0]["price"] == 8


def test_types_nulls_defaults_and_comments_change(run: Run, catalog: ts.Catalog) -> None:
    schema = pa.schema([pa.field("n", pa.int32(), nullable=False)])
    table = catalog.create_table("shop.t", schema=schema)
    run("table", "alter", "change-type", "shop.t", "n", "BIGINT")
    run("table", "alter", "set-null", "shop.t", "n")
    run("table", "alter", "set-default", "shop.t", "n", "7")
    run("table", "alter", "comment", "shop.t", "what it is")
    run("table", "alter", "comment", "shop.t", "a number", "--column", "n")
    now = table.refresh()
    field = now.table_schema.field("n")
    assert now.schema == pa.schema([("n", pa.int64())])
    assert (field.default_value, field.description, now.comment) == ("7", "a number", "what it is")
    run("table", "alter", "set-null", "shop.t", "n", "--not")
    run("table", "alter", "comment", "shop.t")
    assert table.refresh().comment is None


def test_options_are_set_and_unset(run: Run, orders: ts.Table) -> None:
    run("table", "alter", "set", "shop.orders", "snapshot.num-retained.max=100", "snapshot.time-retained=2 h")
    assert orders.refresh().options()["snapshot.time-retained"] == "2 h"
    run("table", "alter", "unset", "shop.orders", "snapshot.time-retained", "snapshot.num-retained.max")
    assert "snapshot.time-retained" not in orders.refresh().options()


def test_an_option_of_a_partition_is_set(run: Run, catalog: ts.Catalog) -> None:
    schema = pa.schema([pa.field("day", pa.date32(), nullable=False), ("v", pa.string())])
    table = catalog.create_table("shop.days", schema=schema, partition_by=["day"])
    run("table", "alter", "set", "shop.days", "change-tracking=false", "--partition", "day=2026-01-31")
    assert table.refresh().options()["change-tracking.untracked-partitions"] == '[{"day": "2026-01-31"}]'
    for args in (
        ["change-tracking=false", "-p", "day=x"],
        ["change-tracking=false", "-p", "v=x"],
        ["write-only=true", "-p", "day=2026-01-31"],
    ):
        run("table", "alter", "set", "shop.days", *args, code=1)
    run("table", "alter", "set", "shop.days", "change-tracking=true", "-p", "day=2026-01-31")
    assert "change-tracking.untracked-partitions" not in table.refresh().options()


@pytest.mark.deep_after(4)
@pytest.mark.parametrize(
    "args",
    [
        ["drop-column", "shop.orders", "id", "--yes"],
        ["change-type", "shop.orders", "price", "INT"],
        ["change-type", "shop.orders", "price", "NUMBER"],
        ["set", "shop.orders", "bucket=7"],
        ["set", "shop.orders", "bukket=7"],
        ["add-column", "shop.orders", "note"],
        ["add-column", "shop.orders", "a INT, b INT"],
        ["rename-column", "shop.orders", "price", "id"],
    ],
    ids=" ".join,
)
def test_what_may_not_change_stays(run: Run, orders: ts.Table, args: list[str]) -> None:
    ran = run("table", "alter", *args, code=1)
    assert "Traceback" not in ran.err
    assert orders.refresh().table_schema.id == 0


def test_a_table_gets_another_number_of_buckets(run: Run, orders: ts.Table) -> None:
    assert run("table", "rescale", "shop.orders", "3", "--json", code=3).json["plan"]["buckets_before"] == "2"
    run("table", "rescale", "shop.orders", "3", "--yes")
    assert orders.refresh().options()["bucket"] == "3"
    assert orders.refresh().scan().count() == 4
