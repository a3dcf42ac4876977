"""Maps in rows of Python values: dicts and pairs, wherever a column has them."""

from datetime import date
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


@pytest.mark.parametrize(
    "row",
    [
        {"r": {"zz": 1}},
        {"r": {"zz": None}},
        {"r": {"day": date(2024, 1, 1), "zz": object()}},
        {"r": {"day": "2024-01-01", "zz": 1}},
        {"l": [{"a": 1}, {"zz": 1}]},
        {"l": [{"a": "1"}, {"zz": 1}]},
        {"m": {"k": {"zz": 1}}},
        {"s": {"t": {"a": 1.5, "zz": 1}}},
    ],
)
def test_a_field_that_a_row_of_the_table_does_not_have_is_refused_by_name_wherever_it_stands(
    tmp_path: Path, row: dict[str, Any]
) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("d")
    columns = "id INT, r ROW<day DATE, b INT>, l ARRAY<ROW<a INT>>, m MAP<STRING, ROW<a INT>>, s ROW<t ROW<a INT>>"
    table = catalog.create_table("d.t", columns)
    for rows in ([{"id": 1, "r": {"b": 1}}, {"id": 2, **row}], {name: [value] for name, value in row.items()}):
        with pytest.raises(ts.InvalidInputError, match="'zz'"):
            table.append(rows)
    table.append([{"id": 1, "r": {"b": 1}}, {"id": 2, "r": {"day": date(2024, 1, 1)}}, {"id": 3, "r": {}}])
    assert table.scan(["r"]).to_arrow()["r"].to_pylist() == [
        {"day": None, "b": 1}, {"day": date(2024, 1, 1), "b": None}, {"day": None, "b": None},
    ]  # fmt: skip
