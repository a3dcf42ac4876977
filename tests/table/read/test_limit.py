"""``limit`` and ``head``: the first rows and no more, and no file is opened that they do not need."""

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.io.local import LocalFileStore
from tablestore.testing.lab import Lab

FILES = 4


@pytest.fixture(params=["keyed", "append"])
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Lab:
    keyed = request.param == "keyed"
    lab = Lab(LocalFileStore(tmp_path), keyed=keyed, options={"bucket": "4"} if keyed else {})
    for number in range(FILES):
        lab.write_new(*((number * 10 + place, "v") for place in range(10)))
    return lab


@pytest.mark.deep_after(5)
@pytest.mark.parametrize(("limit", "rows"), [(0, 0), (1, 1), (10, 10), (11, 11), (39, 39), (40, 40), (2**40, 40)])
def test_at_most_so_many_rows_come_out_in_every_form(lab: Lab, limit: int, rows: int) -> None:
    table = lab.open()
    scan = table.scan(limit=limit)
    assert scan.count() == rows == scan.to_arrow().num_rows == table.head(limit).num_rows
    assert pa.RecordBatchReader.from_stream(scan).read_all().num_rows == rows
    assert table.scan().head(limit).equals(scan.to_arrow()) and scan.schema == table.schema
    assert scan.head(5).num_rows == min(5, rows)


def test_a_limit_counts_what_the_filter_leaves(lab: Lab) -> None:
    table = lab.open()
    assert table.scan(filter="id >= 35", limit=3).count() == 3 and table.scan(filter="id >= 38", limit=3).count() == 2
    table.delete("id < 38")
    assert table.scan(limit=3).count() == 2 == table.head(3).num_rows


def test_no_file_is_opened_that_the_rows_do_not_need(lab: Lab) -> None:
    table, faults = lab.faulty()
    table.scan(limit=3).to_arrow()
    opened = [call for call in faults.calls if call.op == "open_input" and "bucket-" in call.path]
    assert 1 <= len(opened) < (FILES * 4 if table.primary_key else FILES)


def test_a_limit_leaves_splits_out_of_the_plan_where_files_have_as_many_rows(tmp_path: Path) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", "id BIGINT, p INT", partition_by=["p"])
    table.append([(number, number % 5) for number in range(50)])
    assert (len(table.scan().plan.splits), len(table.scan(limit=11).plan.splits)) == (5, 2)
    assert pickle.loads(pickle.dumps(table.scan(limit=11))).count() == 11
    assert "limit      11 rows" in table.scan(limit=11).explain() and "limit=11" in repr(table.scan(limit=11))


@pytest.mark.parametrize("wrong", [-1, True, 1.5, "ten"])
def test_what_is_no_number_of_rows_is_refused(lab: Lab, wrong: object) -> None:
    with pytest.raises(ts.InvalidInputError, match="expected a number of rows as limit"):
        lab.open().scan(limit=wrong)  # type: ignore[arg-type]


def test_notebooks_show_what_there_is_without_markup_of_others(tmp_path: Path) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", "id BIGINT", primary_key=["id"], comment="<script>")
    assert "none: the table is empty" in table.scan()._repr_html_()
    table.upsert([(1,)])
    shown = [table._repr_html_(), table.scan(filter="id < 5")._repr_html_(), table.compact(full=True)._repr_html_()]
    assert all("<script>" not in html for html in shown) and "&lt;script&gt;" in shown[0] and "id &lt; 5" in shown[1]
    snapshot = table.snapshots()[0]
    assert f"{snapshot.time:%Y-%m-%d %H:%M:%S} UTC" in repr(snapshot) and "WRITE" in snapshot._repr_html_()
