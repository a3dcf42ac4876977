"""Row filters and column masks: who gets which, and the JSON that Paimon's clients decode."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

import tablestore as ts
from tablestore.server.access.queryrules import QueryAuth, QueryRule, check_rule, query_auth
from tablestore.server.access.roles import CATALOG, Grant, Principal, Resource, Role
from tablestore.types.datatypes import Field
from tablestore.types.schema import TableSchema
from tablestore.types.typestring import parse_type

ORDERS, VISITS = Resource("shop", "orders"), Resource("shop", "visits")
TYPES = {
    "id": "BIGINT NOT NULL",
    "name": "STRING",
    "day": "DATE",
    "price": "DOUBLE",
    "cents": "DECIMAL(10, 2)",
    "done": "BOOLEAN",
    "seen": "TIMESTAMP(6)",
    "short": "INT",
}
SCHEMA = TableSchema(
    id=0,
    fields=tuple(Field(id=place, name=name, type=parse_type(text)) for place, (name, text) in enumerate(TYPES.items())),
    highest_field_id=len(TYPES) - 1,
    partition_keys=(),
    primary_keys=(),
    options={},
)
READER = Principal(name="ada", grants=(Grant(Role.READER, Resource("shop")),))
OWNER = Principal(name="eve", grants=(Grant(Role.OWNER, CATALOG),))


def auth(*rules: QueryRule, caller: Principal = READER, select: Sequence[str] | None = None) -> QueryAuth:
    return query_auth(rules, caller, ORDERS, SCHEMA, select)


def filter_of(text: str) -> Any:
    (encoded,) = auth(QueryRule(table=ORDERS, row_filter=text)).filter
    return json.loads(encoded)


def mask_of(text: str | None, column: str = "name") -> Any:
    return json.loads(auth(QueryRule(table=ORDERS, column_masks=((column, text),))).column_masking[column])


def leaf(column: str, function: str, *literals: object) -> dict[str, object]:
    reference = {"index": list(TYPES).index(column), "name": column, "type": TYPES[column]}
    return {
        "kind": "LEAF",
        "transform": {"name": "FIELD_REF", "fieldRef": reference},
        "function": function,
        "literals": list(literals),
    }


def test_without_a_rule_nothing_is_restricted() -> None:
    assert auth() == QueryAuth()
    assert auth().to_json() == {"filter": [], "columnMasking": {}}


@pytest.mark.parametrize(
    ("rule", "reader", "owner"),
    [
        (QueryRule(table=ORDERS, row_filter="id = 1"), True, True),
        (QueryRule(table=ORDERS, row_filter="id = 1", roles=(Role.READER,)), True, False),
        (QueryRule(table=ORDERS, row_filter="id = 1", roles=(Role.OWNER, Role.ADMIN)), False, True),
        (QueryRule(table=ORDERS, row_filter="id = 1", principals=("eve",)), False, True),
        (QueryRule(table=ORDERS, row_filter="id = 1", principals=("eve",), roles=(Role.READER,)), True, True),
        (QueryRule(table=ORDERS, row_filter="id = 1", principals=("ad",)), False, False),
        (QueryRule(table=VISITS, row_filter="id = 1"), False, False),
        (QueryRule(table=Resource("Shop", "orders"), row_filter="id = 1"), False, False),
    ],
)
def test_a_rule_applies_to_whom_it_names(rule: QueryRule, reader: bool, owner: bool) -> None:
    assert [bool(auth(rule, caller=caller).filter) for caller in (READER, OWNER)] == [reader, owner]


def test_all_filters_that_apply_hold_together() -> None:
    rules = [QueryRule(table=ORDERS, row_filter=text) for text in ("id = 1", "short = 2", "id = 1")]
    assert [json.loads(text) for text in auth(*rules).filter] == [leaf("id", "EQUAL", 1), leaf("short", "EQUAL", 2)]


def test_masks_are_of_the_columns_that_are_selected() -> None:
    rule = QueryRule(table=ORDERS, column_masks=(("name", None), ("short", None)))
    assert set(auth(rule).column_masking) == {"name", "short"}
    assert set(auth(rule, select=["id", "name"]).column_masking) == {"name"}
    assert auth(rule, select=[]).column_masking == {}
    with pytest.raises(ts.InvalidInputError, match="did you mean 'name'"):
        auth(rule, select=["nam"])


def test_a_filter_holds_also_where_its_columns_are_not_selected() -> None:
    assert auth(QueryRule(table=ORDERS, row_filter="id = 1"), select=["name"]).filter


def test_two_masks_of_one_column_that_differ_show_nothing_of_it() -> None:
    upper, lower = (QueryRule(table=ORDERS, column_masks=(("name", text),)) for text in ("upper(name)", "lower(name)"))
    assert json.loads(auth(upper, lower).column_masking["name"]) == {"name": "NULL"}
    assert json.loads(auth(lower, upper, lower).column_masking["name"]) == {"name": "NULL"}
    assert json.loads(auth(upper, upper).column_masking["name"])["name"] == "UPPER"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id = 7", leaf("id", "EQUAL", 7)),
        ("id <> 7", leaf("id", "NOT_EQUAL", 7)),
        ("7 > id", leaf("id", "LESS_THAN", 7)),
        ("id <= 7", leaf("id", "LESS_OR_EQUAL", 7)),
        ("id > 7", leaf("id", "GREATER_THAN", 7)),
        ("NOT id < 7", leaf("id", "GREATER_OR_EQUAL", 7)),
        ("price >= 0.5", leaf("price", "GREATER_OR_EQUAL", 0.5)),
        ("done = true", leaf("done", "EQUAL", True)),
        ("name IS NULL", leaf("name", "IS_NULL")),
        ("name IS NOT NULL", leaf("name", "IS_NOT_NULL")),
        ("name IN ('a', 'it''s', NULL)", leaf("name", "IN", "a", "it's")),
        ("name NOT IN ('a', 'b')", leaf("name", "NOT_IN", "a", "b")),
        ("name LIKE 'a%'", leaf("name", "STARTS_WITH", "a")),
        ("name LIKE '%a_b'", leaf("name", "LIKE", "%a_b")),
        ("NAME = '</script>\"'", leaf("name", "EQUAL", '</script>"')),
    ],
)
def test_a_condition_is_a_leaf(text: str, expected: object) -> None:
    assert filter_of(text) == expected


def test_a_day_is_compared_as_text() -> None:
    reference = {"index": 2, "name": "day", "type": "DATE"}
    cast = {"name": "CAST", "fieldRef": reference, "type": "STRING"}
    assert filter_of("day >= DATE '2024-01-31'") == {
        "kind": "LEAF",
        "transform": cast,
        "function": "GREATER_OR_EQUAL",
        "literals": ["2024-01-31"],
    }
    assert filter_of("day IS NULL") == leaf("day", "IS_NULL")


def test_conditions_are_joined_and_negations_pushed_to_the_leaves() -> None:
    one, two = leaf("id", "NOT_EQUAL", 1), leaf("name", "NOT_IN", "a", "b")
    joined = filter_of("NOT (id = 1 OR (name IN ('a', 'b') AND done IS NULL))")
    assert joined["function"] == "AND"
    assert joined["children"][0] == one
    assert joined["children"][1] == {"kind": "COMPOUND", "function": "OR", "children": [two, leaf("done", "IS_NOT_NULL")]}


@pytest.mark.parametrize(
    ("text", "function"), [("true", "TRUE"), ("false", "FALSE"), ("name NOT IN ('a', NULL)", "FALSE"), ("id = NULL", "FALSE")]
)
def test_what_is_never_true_keeps_no_row(text: str, function: str) -> None:
    assert filter_of(text) == {"kind": "LEAF", "transform": {"name": "NULL"}, "function": function, "literals": []}


@pytest.mark.parametrize(
    "text",
    [
        "upper(name) = 'X'",
        "id = short",
        "name NOT LIKE 'a%b'",
        "name NOT LIKE 'a%'",
        "cents > 1",
        "seen > TIMESTAMP '2024-01-01 00:00:00'",
        "id + 1 = 2",
    ],
)
def test_a_condition_that_clients_could_not_carry_out_is_refused(text: str) -> None:
    with pytest.raises(ts.UnsupportedError, match=r"the rule of shop\.orders"):
        check_rule(QueryRule(table=ORDERS, row_filter=text), SCHEMA)


@pytest.mark.parametrize("text", ["", "id = ", "gone = 1", "id = 1; DROP TABLE x", "SELECT 1", "NOT " * 500 + "done"])
def test_a_filter_that_does_not_fit_stops_every_query(text: str) -> None:
    with pytest.raises(ts.TablestoreError, match=r"the rule of shop\.orders"):
        auth(QueryRule(table=ORDERS, row_filter=text))


NAME = {"index": 1, "name": "name", "type": "STRING"}


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        (None, "name", {"name": "NULL"}),
        (None, "id", {"name": "NULL"}),
        ("NULL", "day", {"name": "NULL"}),
        ("'***'", "name", {"name": "CONCAT", "inputs": ["***"]}),
        ("upper(name)", "name", {"name": "UPPER", "inputs": [NAME]}),
        ("lower(`name`)", "name", {"name": "LOWER", "inputs": [NAME]}),
        ("'a' || name || '-'", "name", {"name": "CONCAT", "inputs": ["a", NAME, "-"]}),
        (
            "CAST(id AS STRING)",
            "name",
            {"name": "CAST", "fieldRef": {"index": 0, "name": "id", "type": TYPES["id"]}, "type": "STRING"},
        ),
        ("CAST(id AS INT)", "short", {"name": "CAST", "fieldRef": {"index": 0, "name": "id", "type": TYPES["id"]}, "type": "INT"}),
        ("id", "id", {"name": "FIELD_REF", "fieldRef": {"index": 0, "name": "id", "type": TYPES["id"]}}),
    ],
)
def test_a_mask_is_a_transform_that_clients_know(text: str | None, column: str, expected: object) -> None:
    assert mask_of(text, column) == expected


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("1", "id"),
        ("'x'", "id"),
        ("id", "name"),
        ("upper(day)", "name"),
        ("upper(upper(name))", "name"),
        ("substring(name, 1, 2)", "name"),
        ("CAST(id AS STRING)", "short"),
        ("gone", "name"),
        ("other.name", "name"),
        ("(SELECT 1)", "name"),
        ("", "name"),
        ("name", "gone"),
    ],
)
def test_a_mask_of_another_type_or_that_clients_lack_is_refused(text: str, column: str) -> None:
    with pytest.raises((ts.UnsupportedError, ts.InvalidInputError), match=r"the rule of shop\.orders"):
        check_rule(QueryRule(table=ORDERS, column_masks=((column, text),)), SCHEMA)


def test_the_answer_is_the_protocols() -> None:
    rule = QueryRule(table=ORDERS, row_filter="id = 7", column_masks=(("name", None),))
    assert auth(rule).to_json() == {
        "filter": [
            '{"kind":"LEAF","transform":{"name":"FIELD_REF","fieldRef":{"index":0,"name":"id","type":"BIGINT NOT NULL"}},'
            '"function":"EQUAL","literals":[7]}'
        ],
        "columnMasking": {"name": '{"name":"NULL"}'},
    }
