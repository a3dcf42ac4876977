"""Rows that the table's log would not take are refused before the commit, by name. No broker is asked."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.errors import InvalidInputError
from tablestore.log.publish.claim import forget_record_limit
from tablestore.log.publish.ownerfile import LogOwner, read_log_owner, write_log_owner

pytest.importorskip("confluent_kafka")

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.string())])
KAFKA = {"bucket": "1", "log.kafka.bootstrap.servers": "localhost:1"}


@pytest.fixture(autouse=True)
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tablestore.log.publishedlog.PublishedLog.begin", lambda *_, **__: None)
    monkeypatch.setattr("tablestore.log.publishedlog.PublishedLog.after_commit", lambda *_: None)

    def asked(*_: object, **__: object) -> None:
        raise AssertionError("a write asks nobody")

    monkeypatch.setattr("tablestore_kafka.logstore.AdminClient", asked)


def make(path: Path, options: Mapping[str, str] | None = None, *, keyed: bool = True, partitioned: bool = False) -> ts.Table:
    catalog = ts.open_catalog(str(path / "warehouse"))
    catalog.create_database("shop")
    keys = ["p", "id"] if partitioned else ["id"]
    return catalog.create_table(
        "shop.t",
        SCHEMA,
        primary_key=keys if keyed else (),
        partition_by=["p"] if partitioned else (),
        options={**KAFKA, **(options or {})},
    )


def rows(*sizes: int, p: str = "a") -> pa.Table:
    return pa.table({"id": list(range(len(sizes))), "p": [p] * len(sizes), "v": ["x" * size for size in sizes]}, schema=SCHEMA)


def files_of(table: ts.Table) -> list[str]:
    return sorted(path.name for path in Path(table.location).rglob("data-*"))


def test_a_row_over_the_default_limit_is_refused_by_name_and_nothing_lands(tmp_path: Path) -> None:
    table = make(tmp_path)
    with pytest.raises(InvalidInputError) as refused:
        table.upsert(rows(5, 1_000_000, 5))
    said = str(refused.value)
    assert refused.value.kind == "log-record-too-large"
    assert 'the row with key {"id":1} makes a record of 1,000,0' in said and "expected at most 1,000,000" in said
    assert "log.kafka.message.max.bytes" in said and "change-tracking" in said and "filestore" in said
    assert table.snapshots() == () and files_of(table) == []
    assert table.upsert(rows(5, 900_000, 5)) is not None


def test_the_limit_is_that_of_the_option(tmp_path: Path) -> None:
    table = make(tmp_path, {"log.kafka.message.max.bytes": "2000"})
    assert table.upsert(rows(1_900)) is not None
    with pytest.raises(InvalidInputError, match="expected at most 2,000"):
        table.upsert(rows(1_990))
    assert table.scan().count() == 1


def test_the_limit_is_the_one_that_the_topic_told_when_it_is_lower(tmp_path: Path) -> None:
    table = make(tmp_path)
    owner = LogOwner(table=table.context.table_uuid, location=table.location, incarnation="i", record_bytes=3_000)
    write_log_owner(table.context.files, owner)
    assert read_log_owner(table.context.files) == owner
    with pytest.raises(InvalidInputError, match="expected at most 3,000"):
        ts.open_table(table.location).upsert(rows(4_000))
    forget_record_limit(table.context)
    assert ts.open_table(table.location).upsert(rows(4_000)) is not None


@pytest.mark.parametrize("producer", ["lookup", "full-compaction", "input"])
def test_with_a_changelog_producer_the_new_row_alone_counts(tmp_path: Path, producer: str) -> None:
    table = make(tmp_path, {"changelog-producer": producer})
    with pytest.raises(InvalidInputError, match="makes a record of"):
        table.upsert(rows(1_000_000))
    assert table.snapshots() == ()


def test_changes_and_deletes_are_looked_at_as_they_are_sent(tmp_path: Path) -> None:
    table = make(tmp_path, {"log.kafka.message.max.bytes": "2000"})
    changes = rows(3_000, 10).append_column("_row_kind", pa.array(["-D", "+I"]))
    assert table.write_changes(changes) is not None, "a delete is sent as its key"
    with pytest.raises(InvalidInputError, match=r'key \{"id":0\}'):
        table.write_changes(rows(3_000, 10).append_column("_row_kind", pa.array(["+U", "+I"])))
    assert table.delete(rows(3_000)) is not None


def test_a_row_without_a_key_is_named_by_its_place(tmp_path: Path) -> None:
    table = make(tmp_path, {"bucket": "-1"}, keyed=False)
    with pytest.raises(InvalidInputError, match="row 2 of those given makes a record of"):
        table.append(rows(5, 5, 1_000_000))
    assert table.snapshots() == ()


def test_rows_that_readers_of_changes_do_not_see_are_of_any_size(tmp_path: Path) -> None:
    table = make(tmp_path / "a", {"change-tracking": "false"})
    assert table.upsert(rows(1_500_000)) is not None
    partitioned = make(tmp_path / "b", {"change-tracking.untracked-partitions": '[{"p": "a"}]'}, partitioned=True)
    assert partitioned.upsert(rows(1_500_000, p="a")) is not None
    with pytest.raises(InvalidInputError, match="makes a record of"):
        partitioned.upsert(rows(1_500_000, p="b"))


def test_an_overwrite_is_of_any_size_since_the_log_moves_on_without_it(tmp_path: Path) -> None:
    table = make(tmp_path)
    assert table.overwrite(rows(1_500_000)) is not None


def test_a_table_whose_log_is_the_file_store_takes_rows_of_any_size(tmp_path: Path) -> None:
    table = make(tmp_path, {"log.system": "filestore"})
    assert table.upsert(rows(1_500_000)) is not None
