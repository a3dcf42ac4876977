"""Maps in rows of Python values: dicts and pairs, wherever a column has them."""

from pathlib import Path
from typing import Any

import pytest

import tablestore as ts

SCHEMA = "id INT, tags MAP<STRING, STRING>, many ARRAY<MAP<INT, STRING>>, deep ROW<parts MAP<STRING, ROW<n INT>>, z INT>"


@pytest.fixture
def table(tmp_path: Path) -> ts.Table:
    catalog = ts.open_catalog(tmp_path)
    catalog.create_database("shop")
    return catalog.create_table("shop.mapped", schema=SCHEMA, primary_key="id")


def test_dicts_and_pairs_are_maps(table: ts.Table) -> None:
    table.upsert([{"id": 1, "tags": {"k": "v"}, "many": [{1: "x"}, None, {}], "deep": {"parts": {"k": {"n": 3}}, "z": 1}}])
    table.upsert([(2, {"k": None}, None, None), (3, [("k", "v")], [], {"parts": None})])
    table.upsert({"id": [4], "tags": [{}], "many": [None], "deep": [None]})
    assert table.scan().to_arrow().to_pylist() == [
        {"id": 1, "tags": [("k", "v")], "many": [[(1, "x")], None, []], "deep": {"parts": [("k", {"n": 3})], "z": 1}},
        {"id": 2, "tags": [("k", None)], "many": None, "deep": None},
        {"id": 3, "tags": [("k", "v")], "many": [], "deep": {"parts": None, "z": None}},
        {"id": 4, "tags": [], "many": None, "deep": None},
    ]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"tags": {"k": 5}}, "row 1 .*'k': 5.* does not go into column 'tags'"),
        ({"tags": {None: "v"}}, "row 1 .* null"),
        ({"tags": 7}, "row 1 .*: 7 does not go into column 'tags'"),
        ({"tags": [1]}, "row 1 .* does not go into column 'tags'"),
        ({"deep": {"parts": {}, "zz": 1}}, "row 1 .*no field 'zz'; its fields are parts, z"),
    ],
)
def test_what_is_no_map_is_refused_with_its_row(table: ts.Table, row: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"id": 1, "tags": {"k": "v"}, "many": None, "deep": None}
    with pytest.raises(ts.InvalidInputError, match=message):
        table.upsert([good, {**good, "id": 2, **row}])
    assert list(table.snapshots()) == []
