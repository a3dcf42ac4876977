"""A topic that tasks ingest is in the table once, and one process goes on where tasks have stopped, and the other way round."""

import json
import random
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.cdc.ingest.ingesting import run_ingest
from tablestore.cdc.ingest.ingestrequest import IngestRequest
from tablestore.distributed.ingest.ingestrounds import IngestRounds, IngestTarget
from tablestore.distributed.ingest.ingesttask import IngestJob, RangeDone, decode_range, encode_range, ingest_range
from tablestore.distributed.ingest.topicranges import LEAST_OF_A_TASK, TopicRange, behind, plan_ranges
from tablestore.distributed.spec import TableSpec
from tablestore.errors import TablestoreError
from tests.support.changelogs.memorytopic import MemoryTopic, Record

SCHEMA = pa.schema([pa.field("id", pa.int32(), nullable=False), ("v", pa.int16())])


class Died(Exception):
    """The driver ends here."""


@pytest.fixture
def catalog(tmp_path: Path) -> ts.Catalog:
    made = ts.open_catalog(str(tmp_path / "wh"))
    made.create_database("shop")
    return made


@pytest.fixture
def table(catalog: ts.Catalog) -> ts.Table:
    return catalog.create_table("shop.t", schema=SCHEMA, primary_key=["id"], options={"bucket": "2"})


@pytest.fixture
def letters(catalog: ts.Catalog) -> ts.Table:
    return ts.dead_letter_table(catalog, "shop.dead")


def request(**given: Any) -> IngestRequest:
    return IngestRequest(**{"name": "job", "on_error": "dead-letter", **given})


def change(op: str, id: object, v: object = None, **more: object) -> Record:
    row = {"id": id, "v": v, **more}
    return None, json.dumps({"before": row if op == "d" else None, "after": None if op == "d" else row, "op": op}).encode()


def place(table: ts.Table) -> IngestTarget:
    return IngestTarget(table.refresh(), TableSpec(location=table.location, storage_options={}))


def run_tasks(
    job: IngestJob, ranges: Sequence[TopicRange], before: Callable[[int], object] = lambda number: None
) -> tuple[list[RangeDone], TablestoreError | None]:
    """One after the other, the last one first: when a task runs must not matter."""
    done: list[RangeDone] = []
    failed: TablestoreError | None = None
    for number, one in reversed(list(enumerate(ranges))):
        before(number)
        try:
            # Of two attempts one counts.
            ingest_range(job, *decode_range(encode_range(one, number)))
            done.insert(0, RangeDone.from_bytes(ingest_range(job, one, number).to_bytes()))
        except TablestoreError as error:
            failed = error
    return done, failed


def rounds(table: ts.Table, topic: MemoryTopic, given: IngestRequest, letters: ts.Table | None = None, **more: Any) -> IngestRounds:
    dead = None if letters is None else place(letters)
    return IngestRounds(place(table), lambda: topic, given, dead, **{"run": run_tasks, "tasks": 4, **more})


def content(table: ts.Table) -> dict[int, int]:
    return {row["id"]: row["v"] for row in table.refresh().scan().to_arrow().to_pylist()}


def test_ranges_take_evenly_from_all_partitions_and_leave_nothing_between() -> None:
    million = 1_000_000
    assert plan_ranges({0: 5, 1: 7}, {0: 5, 1: 7}, most=10, tasks=4) == ()
    assert [
        (one.partition, one.start, one.end) for one in plan_ranges({0: 0, 1: 7, 2: 0}, {0: 9, 1: 9, 2: 1}, most=7, tasks=4)
    ] == [
        (0, 0, 4),
        (1, 7, 9),
        (2, 0, 1),
    ]
    cut = plan_ranges({0: 3, 1: 0}, {0: million, 1: 10}, most=2 * million, tasks=4)
    assert [one.partition for one in cut] == [0, 0, 0, 0, 1] and cut[0].start == 3
    assert all(one.end == other.start for one, other in pairwise(cut[:4]))
    assert behind({0: 3, 1: 0, 2: 8}, cut) == {0: million, 1: 10, 2: 8}
    assert all(
        one.end - one.start >= LEAST_OF_A_TASK for one in plan_ranges({0: 0}, {0: 3 * LEAST_OF_A_TASK}, most=million, tasks=9)
    )


@pytest.mark.deep
def test_tasks_and_one_process_take_turns_and_die_and_each_record_counts_once(table: ts.Table, letters: ts.Table) -> None:
    chance, topic, model, bad = random.Random(11), MemoryTopic(partitions=3), dict[int, int](), 0
    for step in range(24):
        for number in range(chance.randrange(1, 12)):
            id, v = chance.randrange(12), 100 * step + number
            kind = chance.random()
            topic.partitions[id % 3].append(change("c", id, v) if kind < 0.7 else change("d", id) if kind < 0.9 else (None, b"x"))
            if kind < 0.7:
                model[id] = v
            elif kind < 0.9:
                model.pop(id, None)
            bad += kind >= 0.9
        given = request(commit_records=chance.choice([3, 7, 1000]))
        if step % 3 == 2:
            run_ingest(table, topic, given, letters)
            continue
        # The driver dies behind some commit, then a new one goes on.
        for _ in rounds(table, topic, given, letters).commits():
            if chance.random() < 0.3:
                break
    list(rounds(table, topic, request(), letters).commits())
    assert content(table) == model
    assert list(rounds(table, topic, request(), letters).commits()) == []
    assert letters.refresh().scan().count() == bad


def test_the_last_record_of_a_key_wins_also_where_a_partition_is_cut(table: ts.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tablestore.distributed.ingest.topicranges.LEAST_OF_A_TASK", 2)
    topic, asked = MemoryTopic(), list[int]()
    topic.partitions[0] += [change("c", number % 3, number) for number in range(20)] + [change("d", 0), change("c", 1, 99)]
    (commit,) = rounds(table, topic, request(on_error="stop"), run=partial(run_tasks, before=asked.append)).commits()
    assert content(table) == {1: 99, 2: 17} and len(asked) == 4
    assert (commit.records, commit.bad_records, commit.lag, commit.offsets) == (22, 0, 0, {0: 22})


def test_of_two_drivers_the_slower_one_is_fenced_and_leaves_nothing(table: ts.Table) -> None:
    topic = MemoryTopic(partitions=2)
    topic.partitions[0] += [change("c", number, number) for number in range(9)]
    slow = rounds(table, topic, request(on_error="skip"), run=partial(run_tasks, before=lambda _: _overtake(table, topic)))
    with pytest.raises(ts.ConflictError, match="another process ingests") as error:
        list(slow.commits())
    assert error.value.kind == "fenced" and content(table) == {number: number for number in range(9)}
    assert len(table.refresh().snapshots()) == 1


def _overtake(table: ts.Table, topic: MemoryTopic) -> None:
    run_ingest(table, topic, request(on_error="skip"))


def test_bad_records_stop_it_unless_they_have_somewhere_to_go(table: ts.Table, letters: ts.Table) -> None:
    topic = MemoryTopic(partitions=2)
    topic.partitions[0] += [change("c", 1, 1), (b"k", b"nonsense")]
    topic.partitions[1] += [change("c", 2, 2)]
    with pytest.raises(ts.FormatError, match="offset 1 of partition 0 of topic topic cannot become a row") as error:
        list(rounds(table, topic, request(on_error="stop")).commits())
    assert error.value.kind == "bad-record" and table.refresh().snapshots() == ()
    with pytest.raises(ts.InvalidInputError, match="needs a table for them"):
        rounds(table, topic, request())
    (commit,) = rounds(table, topic, request(), letters).commits()
    assert (commit.records, commit.rows, commit.bad_records) == (3, 2, 1)
    assert [(row["offset"], row["value"]) for row in letters.refresh().scan().to_arrow().to_pylist()] == [(1, b"nonsense")]


def test_the_table_follows_its_records_and_whoever_alters_it_meanwhile(table: ts.Table, letters: ts.Table) -> None:
    topic, altered = MemoryTopic(partitions=2), list[int]()
    topic.partitions[0] += [change("c", 1, 1), change("c", 2, 70_000), change("c", 3, 1, paid=True)]
    topic.partitions[1] += [change("c", 4, 4, price=1.5), change("c", 5, "x")]

    def alter(number: int) -> None:
        if not altered:
            altered.append(number)
            ts.open_table(table.location).alter(ts.AddColumn("note", "STRING"))

    evolving = rounds(table, topic, request(evolve=True), letters, run=partial(run_tasks, before=alter))
    assert [(one.records, one.bad_records) for one in evolving.commits()] == [(5, 1)]
    types = {field.name: str(field.type) for field in table.refresh().schema}
    assert types == {"id": "int32", "v": "int64", "note": "string", "paid": "bool", "price": "double"}
    assert content(table) == {1: 1, 2: 70_000, 3: 1, 4: 4}


def test_it_follows_a_topic_until_it_is_stopped_also_in_new_partitions(table: ts.Table) -> None:
    topic, looks = MemoryTopic(), list[int]()
    topic.partitions[0].append(change("c", 1, 1))

    def stop() -> bool:
        looks.append(1)
        if len(looks) == 2:
            topic.partitions.append([change("c", 2, 2)])
            topic.first.append(0)
        return len(content(table)) == 2

    latest = request(on_error="skip", start="latest", follow=True, commit_every_s=0.001)
    found = []
    for commit in rounds(table, topic, latest).commits(stop):
        found.append((commit.records, dict(commit.offsets)))
        topic.partitions[0] += [change("c", 3, 3)] * (len(found) == 1)
    assert found[0] == (0, {0: 1}) and sum(count for count, _ in found) == 2 and content(table) == {2: 2, 3: 3}
