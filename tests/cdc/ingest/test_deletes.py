"""Deletes and changed keys of a topic take rows away, however little their records say; else they are dead letters."""

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.cdc.ingest.ingesting import run_ingest
from tablestore.cdc.ingest.ingestrequest import IngestRequest
from tests.support.changelogs.memorytopic import MemoryTopic, Record

PRODUCERS = ["none", "lookup", "full-compaction", "input"]
OLD, NEW = {"id": 1, "ts": 5, "v": 1}, {"id": 2, "ts": 5, "v": 1}


@pytest.fixture
def catalog(tmp_path: Path) -> ts.Catalog:
    opened = ts.open_catalog(str(tmp_path / "wh"))
    opened.create_database("d")
    return opened


def table_of(catalog: ts.Catalog, name: str = "d.t", *, nullable: bool = True, **options: str) -> ts.Table:
    columns = [pa.field("id", pa.int64(), nullable=False), pa.field("ts", pa.int64(), nullable=nullable), pa.field("v", pa.int64())]
    return catalog.create_table(name, schema=pa.schema(columns), primary_key=["id"], options={"bucket": "1", **options})


def change(op: str, before: Any = None, after: Any = None, key: Any = None) -> Record:
    named = key if key is not None else (after or before or OLD)["id"]
    return b'{"id":%d}' % named, json.dumps({"op": op, "before": before, "after": after}).encode()


def ingest(
    table: ts.Table, *records: Record, form: str = "debezium-json", letters: ts.Table | None = None, **how: Any
) -> ts.IngestReport:
    topic = MemoryTopic()
    topic.partitions[0] += records
    on_error = "stop" if letters is None else "dead-letter"
    return run_ingest(table, topic, IngestRequest(name="job", format=form, on_error=on_error, **how), letters)


def content(table: ts.Table) -> list[dict[str, Any]]:
    return sorted(table.refresh().scan().to_arrow().to_pylist(), key=lambda row: row["id"])


DELETES = {
    "whole row before": (change("d", before=OLD),),
    "key before": (change("d", before={"id": 1}),),
    "nothing before": (change("d"),),
    "tombstone": ((b'{"id":1}', None),),
    "tombstone of a value": ((b"1", None),),
    "d and its tombstone": (change("d", before=OLD), (b'{"id":1}', None)),
    "changed key": (change("u", before=OLD, after=NEW), change("d", before=NEW)),
    "changed key, key before": (change("u", before={"id": 1}, after=NEW), change("d", before={"id": 2})),
}


@pytest.mark.deep_after(10)
@pytest.mark.parametrize("nullable", [True, False], ids=["nullable", "not null"])
@pytest.mark.parametrize("producer", PRODUCERS)
@pytest.mark.parametrize("records", DELETES.values(), ids=DELETES)
def test_a_delete_wins_over_its_row_whatever_the_record_says(
    records: tuple[Record, ...], producer: str, nullable: bool, catalog: ts.Catalog
) -> None:
    table = table_of(catalog, nullable=nullable, **{"sequence.field": "ts", "changelog-producer": producer})
    other = {"id": 7, "ts": 1, "v": 7}
    table.upsert([OLD, other])
    ingest(table, *records)
    assert content(table) == [other]
    table.compact(full=True)
    assert content(table) == [other]


@pytest.mark.parametrize("commit_records", [1, 2, 100])
def test_a_delete_without_an_order_sees_what_came_before_it_and_not_what_comes_after(
    commit_records: int, catalog: ts.Catalog
) -> None:
    table = table_of(catalog, **{"sequence.field": "ts"})
    gone: Record = (b'{"id":1}', None)
    rows = [change("c", after={"id": 1, "ts": order, "v": order}) for order in (5, 7, 9)]
    ingest(
        table, rows[0], gone, rows[1], gone, rows[2], change("c", after={"id": 2, "ts": 1, "v": 1}), commit_records=commit_records
    )
    assert content(table) == [{"id": 1, "ts": 9, "v": 9}, {"id": 2, "ts": 1, "v": 1}]


def test_a_delete_loses_against_a_row_that_its_own_order_places_behind_it(catalog: ts.Catalog) -> None:
    table = table_of(catalog, **{"sequence.field": "ts"})
    table.upsert([{"id": 1, "ts": 9, "v": 9}])
    ingest(table, change("d", before=OLD), (b'{"id":1}', None))
    assert content(table) == [{"id": 1, "ts": 9, "v": 9}]


SUM = {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum", "fields.ts.aggregate-function": "max"}


@pytest.mark.parametrize(
    "record",
    [
        change("u", after={"id": 1, "ts": 6, "v": 3}),
        change("u", before={"id": 1}, after={"id": 1, "ts": 6, "v": 3}),
        change("u", before={"id": 1, "ts": None, "v": None}, after={"id": 1, "ts": 6, "v": 3}),
        change("d"),
        change("d", before={"id": 1}),
    ],
)
def test_a_change_that_does_not_say_what_it_takes_back_from_a_sum_is_a_dead_letter(record: Record, catalog: ts.Catalog) -> None:
    options = {**SUM, "fields.ts.ignore-retract": "true"}
    table, letters = table_of(catalog, **options), ts.dead_letter_table(catalog, "d.letters")
    good = change("u", before={"id": 1, "ts": 5, "v": 1}, after={"id": 1, "ts": 6, "v": 4})
    report = ingest(table, change("c", after=OLD), record, good, letters=letters)
    assert (report.bad_records, content(table)) == (1, [{"id": 1, "ts": 6, "v": 4}])
    (letter,) = letters.refresh().scan().to_arrow().to_pylist()
    assert "takes its values back" in letter["reason"] and "REPLICA IDENTITY FULL" in letter["reason"]


def test_a_row_of_nulls_that_is_no_mere_key_is_taken_back(catalog: ts.Catalog) -> None:
    table = table_of(catalog, **SUM, **{"fields.ts.ignore-retract": "true"})
    empty = {"id": 1, "v": None, "name": "what the table has no column for"}
    ingest(table, change("c", after=empty), change("u", before=empty, after={**empty, "v": 4}))
    assert content(table) == [{"id": 1, "ts": None, "v": 4}]


def test_a_tombstone_behind_its_delete_takes_nothing_back_twice(catalog: ts.Catalog) -> None:
    table = table_of(catalog, **SUM, **{"fields.ts.ignore-retract": "true"})
    two = {"id": 1, "ts": 5, "v": 2}
    ingest(table, change("c", after=OLD), change("c", after=two), change("d", before=two), (b'{"id":1}', None))
    assert content(table) == [OLD]
    with pytest.raises(ts.FormatError, match="no more than the key of the row that is gone"):
        ingest(table_of(catalog, "d.plain", **SUM), (b'{"id":1}', None), form="json")


@pytest.mark.parametrize("engine", ["first-row", "partial-update"])
def test_a_retraction_that_an_engine_does_not_take_is_a_dead_letter_with_the_way_out(engine: str, catalog: ts.Catalog) -> None:
    table, letters = table_of(catalog, **{"merge-engine": engine}), ts.dead_letter_table(catalog, "d.letters")
    records = [change("c", after=OLD), change("u", before=OLD, after={**OLD, "v": 3}), change("d", before=OLD), (b'{"id":1}', None)]
    report = ingest(table, *records, change("c", after=NEW), letters=letters)
    assert (report.bad_records, [row["id"] for row in content(table)]) == (2, [1, 2])
    assert all("ignore-delete" in letter["reason"] for letter in letters.refresh().scan().to_arrow().to_pylist())


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(12))
def test_random_changes_give_what_a_dict_gives(seed: int, catalog: ts.Catalog) -> None:
    chance = random.Random(seed)
    producer, order = chance.choice(PRODUCERS), chance.choice([{}, {"sequence.field": "ts"}])
    table = table_of(
        catalog, nullable=bool(seed % 2), bucket=chance.choice(["1", "2", "-1"]), **{"changelog-producer": producer}, **order
    )
    rows: dict[int, dict[str, Any]] = {}
    records: list[Record] = []
    for clock in range(60):
        key = chance.randrange(6)
        if key not in rows:
            rows[key] = {"id": key, "ts": clock, "v": chance.randrange(100)}
            records.append(change("c", after=rows[key]))
            continue
        before = chance.choice([rows[key], {"id": key}])
        if chance.random() < 0.5:
            free = [other for other in range(6) if other not in rows]
            moved = chance.choice(free) if free and chance.random() < 0.5 else key
            del rows[key]
            rows[moved] = {"id": moved, "ts": clock, "v": chance.randrange(100)}
            records.append(change("u", before=before, after=rows[moved]))
        else:
            del rows[key]
            tombstone: Record = (b'{"id":%d}' % key, None)
            said = [change("d", before=chance.choice([before, None]), key=key), tombstone]
            records += chance.choice([said, said[:1], said[1:]])
        if chance.random() < 0.05:
            table.compact(full=True)
    ingest(table, *records, commit_records=chance.choice([1, 5, 1000]))
    assert content(table) == sorted(rows.values(), key=lambda row: row["id"])
