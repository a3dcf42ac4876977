"""The hybrid read on the file store, where it differs from that of a topic; what they share is in test_following."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tablestore as ts
from tablestore.errors import NotFoundError
from tablestore.log.follow.consumption import ChangeBatch
from tablestore.store.history.consumers import Consumers

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
KEYED = {"primary_key": ["id"], "options": {"bucket": "2", "write-only": "true"}}


def make(path: Path | str, **how: Any) -> ts.Table:
    catalog = ts.open_catalog(str(path))
    catalog.create_database("shop", ignore_if_exists=True)
    return catalog.create_table("shop.t", schema=SCHEMA, **how)


@pytest.fixture
def table(tmp_path: Path) -> ts.Table:
    return make(tmp_path, **KEYED)


def rows(ids: list[int], text: str) -> pa.Table:
    return pa.table({"id": ids, "v": [f"{text}{i}" for i in ids]}, schema=SCHEMA)


def listed(batches: Iterator[ChangeBatch] | list[ChangeBatch]) -> list[tuple[int, str, int, str | None]]:
    return [(batch.snapshot_id, row["_row_kind"], row["id"], row["v"]) for batch in batches for row in batch.rows.to_pylist()]


def folded(changes: list[tuple[int, str, int, str | None]]) -> dict[int, str | None]:
    state: dict[int, str | None] = {}
    for _, kind, key, value in changes:
        if kind in ("+I", "+U"):
            state[key] = value
        else:
            state.pop(key, None)
    return state


def content(table: ts.Table) -> dict[int, str | None]:
    return {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()}


def test_rows_of_a_snapshot_that_has_expired_are_refused_with_the_way_to_begin_anew(table: ts.Table) -> None:
    table.upsert(rows([1], "a"))
    table.overwrite(rows([], "o"))
    (restarted,) = table.consume(position=table.position_after(1), on_discontinuity="restart", follow=False)
    for step in range(3):
        table.upsert(rows([step], "b"))
    table.expire_snapshots(retain_min=1, retain_max=1)
    with pytest.raises(NotFoundError, match='begin anew with scan="full"') as caught:
        list(table.consume(position=str(restarted.position), follow=False))
    assert caught.value.kind == "snapshot-expired"


def test_a_named_consumer_goes_on_behind_its_last_commit(table: ts.Table) -> None:
    table.upsert(rows([1, 2], "a"))
    first = next(table.consume(consumer_id="billing", follow=False))
    assert folded(listed(table.consume(consumer_id="billing", follow=False))) == {1: "a1", 2: "a2"}, "nothing was committed"
    reading = table.consume(consumer_id="billing", follow=False)
    for batch in reading:
        batch.commit()
    assert first.snapshot_id == 1
    assert list(table.consume(consumer_id="billing", follow=False)) == []
    table.upsert(rows([2], "b"))
    assert listed(table.consume(consumer_id="billing", follow=False)) == [(2, "+I", 2, "b2")]


def test_an_older_batch_that_is_committed_late_does_not_move_the_consumer_back(table: ts.Table) -> None:
    for step in range(3):
        table.upsert(rows([10 + step], "c"))
    one, *others, last = table.consume("full", consumer_id="billing", follow=False)
    slower = [*table.consume(consumer_id="billing", follow=False)]
    last.commit()
    for older in (one, *others, *slower[:-1]):
        older.commit()
    assert list(table.consume(consumer_id="billing", follow=False)) == []
    table.upsert(rows([20], "d"))
    assert [key for _, _, key, _ in listed(table.consume(consumer_id="billing", follow=False))] == [20]


def test_a_named_consumer_that_is_done_needs_only_what_is_to_come(table: ts.Table) -> None:
    table.upsert(rows([1], "a"))
    for batch in table.consume(consumer_id="c", follow=False):
        batch.commit()
    for _ in range(3):
        table.upsert(rows([1], "b"))
        for batch in table.consume(consumer_id="c", follow=False):
            batch.commit()
    assert Consumers(table.context.files).get("c").next_snapshot == 5


@settings(max_examples=20)
@given(cuts=st.lists(st.integers(1, 4), max_size=12), seed=st.integers(0, 10**6))
def test_reading_in_pieces_from_position_to_position_is_reading_at_once(cuts: list[int], seed: int) -> None:
    table = make(f"memory://consume-{seed}-{len(cuts)}-{sum(cuts)}-{hash(tuple(cuts))}", **KEYED)
    for step in range(4):
        table.upsert(rows([step, step + 1, (seed + step) % 5], f"s{step}-"))
    at_once = listed(table.consume("from-timestamp", timestamp=0, follow=False, pairs=True))
    pieces: list[ChangeBatch] = []
    position: str | None = None
    for cut in [*cuts, None]:
        how: dict[str, Any] = {"position": position} if position else {"scan": "from-timestamp", "timestamp": 0}
        part = list(islice(table.consume(follow=False, pairs=True, **how), cut))
        pieces += part
        position = str(part[-1].position) if part else position
    assert listed(pieces) == at_once


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"scan": "fully"}, "expected scan to be one of"),
        ({"scan": "from-timestamp"}, "Must specify a timestamp if you choose timestamp startup mode"),
        ({"scan": "latest", "timestamp": 5}, "goes with"),
        ({"position": "nonsense"}, "expected a position"),
        ({"consumer_id": "../x"}, "consumer name"),
        ({"consumer_id": "a", "position": '{"position":1,"table":null,"done":[0,null]}'}, "not both"),
        ({"on_discontinuity": "ignore"}, "on_discontinuity"),
    ],
)
def test_bad_requests_are_refused_before_anything_is_read(table: ts.Table, how: dict[str, Any], message: str) -> None:
    with pytest.raises(ts.errors.InvalidInputError, match=message):
        table.consume(**how)


def test_a_nameless_consumer_has_nothing_to_commit(table: ts.Table) -> None:
    table.upsert(rows([1], "a"))
    with pytest.raises(ts.errors.InvalidInputError, match="consumer_id"):
        next(table.consume(follow=False)).commit()


def test_following_ends_when_it_is_told_to(table: ts.Table) -> None:
    table.upsert(rows([1], "a"))
    seen: list[ChangeBatch] = []
    for batch in table.consume(stop=lambda: bool(seen)):
        seen.append(batch)
    assert folded(listed(seen)) == {1: "a1"}
