"""What a snapshot says of its rows is what a person would count, or it says nothing of rows."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.format.snapshot import Snapshot

Make = Callable[..., ts.Table]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    catalog = ts.open_catalog(tmp_path / "wh")
    catalog.create_database("d")

    def table(*, keyed: bool = True, **options: str) -> ts.Table:
        key = {"primary_key": "id"} if keyed else {}
        return catalog.create_table("d.t", "id INT, v INT", options=options, **key)  # type: ignore[arg-type]

    return table


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int32()), "v": pa.array(ids, pa.int32())})


def size(snapshot: Snapshot | None) -> str:
    assert snapshot is not None
    assert snapshot.size_text in str(snapshot)
    assert snapshot.size_text in snapshot._repr_html_()
    return snapshot.size_text


def test_a_delete_of_five_of_ten_rows_says_that_five_are_left(make: Make) -> None:
    table = make()
    assert size(table.upsert(rows(*range(10)))) == "10 rows (+10)"
    assert size(table.delete("id < 5")) == "5 rows (-5)"
    assert size(table.update({"v": "7"}, "id > 6")) == "5 rows (+0)"
    table.compact(full=True)
    assert size(table.snapshots()[-1]) == "5 rows (+0)"
    assert size(table.overwrite(rows(1, 2))) == "2 rows (-3)"


def test_an_upsert_that_may_replace_rows_claims_none(make: Make) -> None:
    table = make(bucket="1")
    table.upsert(rows(1, 2, 3))
    assert size(table.upsert(rows(3, 4))) == "5 records in files (+2)"
    assert size(table.delete("id = 4")) == "-1 row"
    assert size(table.delete(pa.table({"id": pa.array([1, 9], pa.int32())}))) == "8 records in files"
    assert size(table.overwrite(rows(5), partition={})) == "1 row"
    assert table.scan().count() == 1


def test_an_upsert_that_looks_its_keys_up_counts_the_rows_that_it_replaces(make: Make) -> None:
    table = make(bucket="2")
    table.upsert(rows(1, 2, 3))
    keys = pa.table({"id": pa.array([3, 4, 5], pa.int32())})
    assert size(table.upsert(keys, missing_columns="keep")) == "5 rows (+2)"
    table.delete(pa.table({"id": pa.array([4], pa.int32())}))
    assert size(table.upsert(keys, missing_columns="keep")) == "+1 row"
    assert table.scan().count() == 5


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_an_append_table_always_counts(make: Make, vectors: str) -> None:
    table = make(keyed=False, **{"deletion-vectors.enabled": vectors})
    table.append(rows(*range(10)))
    assert size(table.append(rows(1))) == "11 rows (+1)"
    assert size(table.delete("id < 5")) == "5 rows (-6)"
    assert size(table.update({"v": "7"}, "id > 6")) == "5 rows (+0)"
    table.compact(full=True)
    assert size(table.snapshots()[-1]).startswith("5 rows")


def test_deletes_and_updates_of_rows_that_a_compaction_shows_say_how_many_rows_they_change(make: Make) -> None:
    table = make(**{"deletion-vectors.enabled": "true"})
    table.upsert(rows(*range(10)))
    assert size(table.delete("id < 5")) == "-5 rows"
    assert size(table.update({"v": "7"}, "id > 6")) == "+0 rows"
    assert size(table.delete("id = 9")) == "-1 row"
    assert table.scan().count() == 4
    merge = table.merge(rows(5, 6), on="id").when_matched_delete()
    assert size(merge.execute()) == "-2 rows"
    assert size(table.delete(rows(1).select(["id"]))).endswith(" records in files")
    assert table.scan().count() == 2


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_a_change_of_rows_that_nobody_counts_has_no_number_with_a_sign(make: Make, vectors: str) -> None:
    table = make(**{"deletion-vectors.enabled": vectors, "write-only": vectors, "bucket": "1"})
    table.upsert(rows(1, 2, 3))
    table.upsert(rows(3, 4))
    changes: list[Callable[[], Snapshot | None]] = [
        lambda: table.delete(pa.table({"id": pa.array([1, 9], pa.int32())})),
        lambda: table.merge(rows(2, 5), on="id").when_matched_update_all().when_not_matched_insert_all().execute(),
    ]
    if vectors == "true":
        # Until somebody compacts the table its readers see the rows as they were.
        changes += [lambda: table.delete("id = 2"), lambda: table.update({"v": "7"}, "id = 3")]
    for change in changes:
        assert size(change()).endswith(" records in files")


@pytest.mark.parametrize("options", [{"merge-engine": "first-row"}, {"deletion-vectors.enabled": "true"}])
def test_rows_that_nobody_reads_before_a_compaction_are_not_counted(make: Make, options: dict[str, str]) -> None:
    table = make(**{"write-only": "true", **options})
    assert size(table.upsert(rows(1, 2))) == "2 records in files (+2)"


def test_keys_that_lie_in_two_files_are_not_counted_twice(make: Make) -> None:
    table = make(bucket="1")
    with table.new_writer() as writer:
        for ids in ((1, 2), (2, 3)):
            writer.write(rows(*ids))
            writer.flush()
        assert size(writer.commit()) == "4 records in files (+4)"
    table.delete("TRUE")
    with table.new_writer() as writer:
        for ids in ((3, 4), (1, 2)):
            writer.write(rows(*ids))
            writer.flush()
        writer.commit()
    assert table.scan().count() == 4
