"""Files under a few newer rows, read without a merge, give the rows of a scan; all others stay with the merge."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.distributed import layers
from tablestore.distributed.read import pin_read, plan_read, planned_layer
from tablestore.distributed.spec import TableSpec
from tablestore.errors import FormatError
from tablestore.table.table import Table
from tablestore.types.evolution.schemachanges import AddColumn
from tests.distributed.layeredrows import layered_read

ROWS = pa.schema([("id", pa.int64()), ("part", pa.string()), ("x", pa.int64()), ("t", pa.string())])


@pytest.fixture
def catalog(tmp_path: Path) -> ts.Catalog:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    return catalog


def rows(ids: Sequence[int], x: int = 0, part: str = "a") -> pa.Table:
    return pa.table({"id": ids, "part": [part] * len(ids), "x": [x] * len(ids), "t": [f"t{x}"] * len(ids)}, schema=ROWS)


def made(catalog: ts.Catalog, schema: pa.Schema = ROWS, key: Sequence[str] = ("id",), **options: str) -> Table:
    given = {"bucket": "2", "write-only": "true", **{name.replace("_", "-"): value for name, value in options.items()}}
    return catalog.create_table("shop.t", schema=schema, primary_key=list(key), options=given)


def check(table: Table, filter: str | None = None, *, layered: int) -> None:
    found, read = layered_read(table, filter)
    assert sorted(read, key=str) == sorted(table.scan(filter=filter).to_arrow().to_pylist(), key=str)
    assert found == layered


def test_newer_rows_hide_older_ones_and_of_two_newer_ones_the_last_counts(catalog: ts.Catalog) -> None:
    table = made(catalog)
    table.upsert(rows(range(400)))
    table.upsert(rows(range(10, 30), 1))
    table.upsert(rows(range(20, 40), 2))
    table.delete(pa.table({"id": [0, 15, 25, 399]}))
    for filter in (None, "x = 0", "x = 1", "x > 1", "id = 15", "id = 16", "id = 25", "id = 26 AND x = 1", "id IN (0, 1)", "id < 0"):
        check(table, filter, layered=0 if filter == "id < 0" else 1)
    table.upsert(rows([25], 3))
    check(table, layered=1)


def test_a_newer_row_that_a_filter_drops_still_hides_the_older_one(catalog: ts.Catalog) -> None:
    table = made(catalog)
    table.upsert(rows(range(100), 7))
    table.upsert(rows([50], 8))
    check(table, "x = 7", layered=1)
    assert 50 not in {row["id"] for row in layered_read(table, "x = 7")[1]}


@pytest.mark.parametrize(("seed", "rounds"), [(5, 5), pytest.param(6, 60, marks=pytest.mark.slow)])
def test_random_histories_are_read_as_by_a_scan(catalog: ts.Catalog, seed: int, rounds: int) -> None:
    draw = random.Random(seed)
    seen = 0
    for number in range(rounds):
        catalog.drop_table("shop.t", ignore_if_not_exists=True)
        parts = ["a", "b", "c"][: draw.randint(1, 3)]
        options = {"bucket": str(draw.randint(1, 3)), "write-only": draw.choice(("true", "false"))}
        key = ["part", "id"] if len(parts) > 1 else ["id"]
        by = ["part"] if len(parts) > 1 else []
        table = catalog.create_table("shop.t", schema=ROWS, primary_key=key, partition_by=by, options=options)
        low = draw.choice((0, -300, 10**12))
        ids = range(low, low + 300)
        for part in parts:
            table.upsert(rows(draw.sample(ids, draw.randint(150, 300)), part=part))
        if draw.random() < 0.5:
            table.compact(full=True)
        for version in range(1, draw.randint(2, 6)):
            some = draw.sample(ids, draw.randint(1, 20))
            if draw.random() < 0.25:
                table.delete(pa.table({"id": some, "part": [draw.choice(parts)] * len(some)}).select(key))
            else:
                table.upsert(rows(some, version, draw.choice(parts)))
        middle = low + 150
        for filter in (None, "x = 0", "x > 1", f"id = {draw.choice(ids)}", f"id > {middle} AND t <> 't1'", "part = 'a' AND x < 3"):
            found, read = layered_read(table, filter)
            assert sorted(read, key=str) == sorted(table.scan(filter=filter).to_arrow().to_pylist(), key=str), (number, filter)
            seen += found
    assert seen > rounds


@pytest.mark.parametrize(
    "options",
    [
        {"sequence.field": "x"},
        {"ignore-delete": "true"},
        {"merge-engine": "first-row"},
        {"merge-engine": "partial-update"},
        {"merge-engine": "aggregation", "fields.x.aggregate-function": "sum"},
        {"deletion-vectors.enabled": "true"},
        {"bucket": "-1"},
    ],
    ids=str,
)
def test_tables_whose_last_row_does_not_hide_all_older_ones_stay_merged(catalog: ts.Catalog, options: Mapping[str, str]) -> None:
    given = {"bucket": "1", "write-only": "true", **options}
    table = catalog.create_table("shop.t", schema=ROWS, primary_key=["id"], options=given)
    table.upsert(rows(range(200), 5))
    table.upsert(rows(range(10, 20), 1))
    check(table, layered=0)


@pytest.mark.deep_after(4)
@pytest.mark.parametrize(
    ("arrow", "base", "newer", "layered"),
    [
        (pa.int8(), range(-128, 128), [-128, -1, 0, 127], 1),
        (pa.int16(), range(-32768, -32000), [-32768, -32001], 1),
        (pa.int32(), range(2**31 - 300, 2**31), [2**31 - 1, 2**31 - 300], 1),
        (pa.int64(), range(-(2**63), -(2**63) + 300), [-(2**63), -(2**63) + 299], 1),
        (pa.int64(), range(2**63 - 300, 2**63), [2**63 - 1, 2**63 - 300], 1),
        # The bitmap would be too large.
        (pa.int64(), [-(2**63), 2**63 - 1, *range(300)], [-(2**63), 2**63 - 1], 0),
        # Spark's zeros are equal, and ours are two keys.
        (pa.float64(), [-0.0, 0.0, float("nan"), *map(float, range(1, 200))], [-0.0, float("nan")], 0),
        (pa.string(), [f"k{n:03}" for n in range(200)], ["k000", "k199"], 0),
        (pa.decimal128(9, 0), range(200), [0, 199], 0),
    ],
    ids=str,
)
def test_keys_of_every_size_are_looked_up_and_others_stay_merged(
    catalog: ts.Catalog, arrow: pa.DataType, base: Sequence[Any], newer: Sequence[Any], layered: int
) -> None:
    table = made(catalog, pa.schema([("id", arrow), ("x", pa.int64())]), bucket="1")
    table.upsert(pa.table({"id": pa.array(base, arrow), "x": [0] * len(base)}))
    table.upsert(pa.table({"id": pa.array(newer, arrow), "x": [1] * len(newer)}))
    found, read = layered_read(table)
    assert sorted(map(str, read)) == sorted(map(str, table.scan().to_arrow().to_pylist()))
    assert found == layered


def test_keys_of_several_columns_many_newer_rows_and_changed_columns_stay_merged(catalog: ts.Catalog) -> None:
    table = made(catalog, key=("id", "part"))
    table.upsert(rows(range(100)))
    table.upsert(rows([5], 1))
    check(table, layered=0)
    catalog.drop_table("shop.t")
    table = made(catalog)
    table.upsert(rows(range(100)))
    table.upsert(rows(range(30, 80), 1))
    check(table, layered=0)
    catalog.drop_table("shop.t")
    table = made(catalog, bucket="1")
    table.upsert(rows(range(100)))
    changed = table.alter(AddColumn("y", pa.int64()))
    changed.upsert(rows([7], 1).append_column("y", pa.array([3])))
    check(changed, layered=0)


def test_layers_are_bounded_by_keys_and_number_and_the_largest_come_first(
    catalog: ts.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.create_table("shop.t", schema=ROWS, primary_key=["part", "id"], partition_by=["part"], options={"bucket": "1"})
    for size, part in ((100, "a"), (300, "b"), (200, "c")):
        table.upsert(rows(range(size), part=part))
        table.upsert(rows(range(10, 15), 1, part))
    check(table, layered=3)
    spec = TableSpec(location=table.location, storage_options={})
    bounds = {"MOST_LAYERS": (2, "bc"), "MOST_KEYS": (9, "b"), "MOST_RANGE": (4, ""), "MOST_NEWER_FILES": (0, "")}
    for name, (bound, expected) in bounds.items():
        with monkeypatch.context() as patch:
            patch.setattr(layers, name, bound)
            plan = plan_read(pin_read(table, spec), plain_files=tuple, layers=True)
            assert [layer.base[0].directory.split("/")[0] for layer in plan.layers] == [f"part={part}" for part in expected]
            check(table, layered=len(expected))


def test_plain_files_join_a_base_that_is_much_larger(catalog: ts.Catalog) -> None:
    for alone, expected in ((20, 0), (200, 1)):
        catalog.drop_table("shop.t", ignore_if_not_exists=True)
        table = made(catalog, bucket="1")
        table.upsert(rows(range(100)))
        table.upsert(rows(range(1000, 1000 + alone)))
        table.upsert(rows([5], 1))
        plan = plan_read(pin_read(table, TableSpec(location=table.location, storage_options={})), plain_files=tuple, layers=True)
        assert (len(plan.plain_files), len(plan.layers[0].base)) == (expected, 2 - expected)
        check(table, layered=1)
        # A choice without the base leaves the layer to the merge, and takes the plain file.
        first = plan.layers[0].base[0].path
        partly = plan_read(plan.pin, plain_files=lambda files: [file for file in files if file.path != first], layers=True)  # noqa: B023
        assert (len(partly.plain_files), partly.layers, len(partly.tasks)) == (1, (), 1)


def test_a_filter_leaves_out_files_of_every_layer(catalog: ts.Catalog) -> None:
    table = made(catalog, bucket="1", target_file_size="1kb")
    table.upsert(rows(range(2000)))
    table.compact(full=True)
    for start in (0, 500, 1990):
        table.upsert(rows([start, start + 5], 1))
    spec = TableSpec(location=table.location, storage_options={})
    assert len(table.files()) > 3

    def planned(filter: str) -> tuple[int, int]:
        plan = plan_read(pin_read(table, spec), filter=filter, plain_files=tuple, layers=True)
        layers = [planned_layer(plan, layer, filter) for layer in plan.layers]
        return len(plan.plain_files) + sum(len(layer.base) for layer in layers), sum(len(layer.newer) for layer in layers)

    assert planned("id = 500") == (1, 1)
    # In the range of the newer file, and not in it.
    assert planned("id = 502") == (1, 0)
    check(table, "id = 502", layered=1)
    # By statistics of other columns: no file of the base, and all newer ones, for their keys.
    assert planned("x = 1")[0] == 0
    check(table, "x = 1", layered=1)


def test_a_damaged_newer_file_is_refused(catalog: ts.Catalog) -> None:
    table = made(catalog, bucket="1")
    table.upsert(rows(range(100)))
    table.upsert(rows([5, 6], 1))
    plan = plan_read(pin_read(table, TableSpec(location=table.location, storage_options={})), plain_files=tuple, layers=True)
    path = Path(table.location, plan.layers[0].newer[0].path)
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(FormatError):
        planned_layer(plan, plan.layers[0], None)
    path.unlink()
    with pytest.raises(ts.NotFoundError):
        planned_layer(plan, plan.layers[0], None)
