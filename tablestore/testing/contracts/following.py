"""Holds a log to what everybody who follows a table may rely on, whatever system it is.

    class TestKafka(Following): ...        pytest runs every test of the class; the fixture `new_table` makes tables

``new_table(*, keyed=True, by_day=False, **options)`` makes a table with the columns of :data:`SCHEMA` (``by_day``: partitioned, the
key is then ``day, id``) that compacts only when it is told to: :func:`make_table` does. Whoever follows sees batches of (snapshot,
kind, id, v); where the order is not promised (across buckets) they are compared sorted, what is promised per key is checked by
:func:`folded`.
"""

import random
import threading
from collections.abc import Callable, Iterable
from datetime import timedelta
from itertools import islice
from typing import Any

import pyarrow as pa
import pytest

from tablestore.errors import ConflictError, NotFoundError
from tablestore.log.events import Restarted, SchemaLanded
from tablestore.log.follow.consumption import ChangeBatch
from tablestore.table.opening import open_catalog, open_table
from tablestore.table.system.systemtable import SystemTable
from tablestore.table.table import Table
from tablestore.types.evolution.schemachanges import AddColumn, ChangeType, RenameColumn, SetOption

SCHEMA = pa.schema([pa.field("day", pa.string(), nullable=False), pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
NewTable = Callable[..., Table]
Change = tuple[int, str, int, str | None]


def make_table(warehouse: str, *, keyed: bool = True, by_day: bool = False, **options: str) -> Table:
    """The table ``shop.t`` of a warehouse. ``options`` are those of its log, and what a test asks for."""
    catalog = open_catalog(warehouse)
    catalog.create_database("shop", ignore_if_exists=True)
    key = ["day", "id"] if by_day else ["id"]
    return catalog.create_table(
        "shop.t",
        schema=SCHEMA,
        primary_key=key if keyed else (),
        partition_by=["day"] if by_day else (),
        options={**({"bucket": "1"} if keyed else {}), "write-only": "true", **options},
    )


def rows(ids: Iterable[int], text: str, *, day: str = "mon") -> pa.Table:
    """Rows whose ``v`` is the text and the id."""
    given = list(ids)
    return pa.table({"day": [day] * len(given), "id": given, "v": [f"{text}{i}" for i in given]}, schema=SCHEMA)


def keys(ids: Iterable[int], *, day: str = "mon") -> pa.Table:
    """Rows to delete by key."""
    given = list(ids)
    return pa.table({"day": [day] * len(given), "id": given})


def told(batches: Iterable[ChangeBatch], text: str = "v") -> list[Change]:
    """The changes handed out: (snapshot, kind, id, v). A row that is put in a table's place may be called +I or +U: here +I."""
    return [
        (batch.snapshot_id, row["_row_kind"].replace("+U", "+I"), row["id"], row[text])
        for batch in batches
        for row in batch.rows.to_pylist()
    ]


def exactly(batches: Iterable[ChangeBatch]) -> list[Change]:
    """As :func:`told`, with the kinds as they are."""
    return [(batch.snapshot_id, row["_row_kind"], row["id"], row["v"]) for batch in batches for row in batch.rows.to_pylist()]


def folded(changes: Iterable[tuple[Any, ...]], state: dict[int, str | None] | None = None) -> dict[int, str | None]:
    """The rows that the changes add up to; every key's snapshots must ascend."""
    state = {} if state is None else state
    newest: dict[int, int] = {}
    for snapshot_id, kind, key, value in changes:
        assert newest.get(key, 0) <= snapshot_id, f"key {key}: snapshot {snapshot_id} comes behind {newest[key]}"
        newest[key] = snapshot_id
        if kind in ("+I", "+U"):
            state[key] = value
        else:
            state.pop(key, None)
    return state


def once(changes: Iterable[tuple[Any, ...]]) -> bool:
    """True if no (snapshot, kind, key) comes twice."""
    places = [change[:3] for change in changes]
    return len(places) == len(set(places))


def content(table: Table) -> dict[int, str | None]:
    """The rows of a keyed table."""
    return {row["id"]: row["v"] for row in open_table(table.location).scan().to_arrow().to_pylist()}


def all_of(table: Table | SystemTable, **how: Any) -> list[ChangeBatch]:
    """Everything that there is to read."""
    return list(table.consume(follow=False, **how))


def from_the_start(table: Table, **how: Any) -> list[ChangeBatch]:
    """The changes of every snapshot that is there."""
    return all_of(table, scan="from-timestamp", timestamp=0, **how)


class Following:
    """The tests."""

    def test_the_rows_come_first_then_every_change_once(self, new_table: NewTable) -> None:
        table = new_table()
        table.upsert(rows([1, 2, 3], "a"))
        reading = table.consume(follow=False)
        first = next(reading)
        table.upsert(rows([2, 4], "b"))
        table.delete(keys([3]))
        batches = [first, *reading]
        got = told(batches)
        assert {batch.in_frame for batch in batches if batch.snapshot_id == 1} == {True}
        assert sorted(got[3:]) == [(2, "+I", 2, "b2"), (2, "+I", 4, "b4"), (3, "-D", 3, None)]
        assert once(got) and folded(got) == content(table) == {1: "a1", 2: "b2", 4: "b4"}

    def test_an_empty_table_is_followed_from_its_first_snapshot(self, new_table: NewTable) -> None:
        table = new_table()
        reading = table.consume(follow=False)
        table.upsert(rows([1], "a"))
        assert told(reading) == [(1, "+I", 1, "a1")]

    def test_latest_begins_behind_the_newest_snapshot(self, new_table: NewTable) -> None:
        table = new_table()
        table.upsert(rows([1], "a"))
        assert all_of(table, scan="latest", consumer_id="c") == []
        table.upsert(rows([1, 2], "b"))
        assert sorted(told(all_of(table, consumer_id="c"))) == [(2, "+I", 1, "b1"), (2, "+I", 2, "b2")]

    def test_from_timestamp_begins_with_the_first_snapshot_at_or_after_it(self, new_table: NewTable) -> None:
        table = new_table()
        for text in "abc":
            table.upsert(rows([1], text))
        second = table.snapshots()[1].time_millis
        assert told(all_of(table, scan="from-timestamp", timestamp=second)) == [(2, "+I", 1, "b1"), (3, "+I", 1, "c1")]
        assert told(from_the_start(table)) == [(1, "+I", 1, "a1"), (2, "+I", 1, "b1"), (3, "+I", 1, "c1")]
        assert all_of(table, scan="from-timestamp", timestamp=second + 10**9) == []

    def test_a_follower_sees_a_change_while_it_waits_and_goes_on_under_its_name(self, new_table: NewTable) -> None:
        table = new_table()
        table.upsert(rows([1], "a"))
        seen: list[ChangeBatch] = []
        arrived = threading.Event()

        def follow() -> None:
            for batch in table.consume("latest", consumer_id="c", stop=lambda: bool(seen)):
                seen.append(batch)
                batch.commit()
                arrived.set()

        follower = threading.Thread(target=follow)
        follower.start()
        writer, written = open_table(table.location), 0
        while not arrived.is_set() and written < 100:
            writer.upsert(rows([7], "x"))
            written += 1
            arrived.wait(0.5)
        follower.join(60)
        assert not follower.is_alive()
        for batch in table.consume(consumer_id="c", follow=False):
            seen.append(batch)
            batch.commit()
        assert len(told(seen)) <= written and once(told(seen)), "latest: those before it began are not read"
        table.upsert(rows([8], "y"))
        assert told(all_of(table, consumer_id="c")) == [(written + 2, "+I", 8, "y8")]

    @pytest.mark.parametrize("cut", [1, pytest.param(2, marks=pytest.mark.slow), 5])
    def test_a_restart_in_the_middle_repeats_what_was_not_committed_and_nothing_else(self, new_table: NewTable, cut: int) -> None:
        table = new_table(bucket="3")
        table.upsert(rows(range(12), "a"))
        reading = table.consume(consumer_id="c", follow=False)
        got = [next(reading)]
        got[0].commit()
        table.upsert(rows(range(6, 18), "b"))
        table.delete(keys(range(0, 6, 2)))
        for _ in range(30):
            part = list(islice(table.consume(consumer_id="c", follow=False), cut + 1))
            for batch in part[:cut]:
                batch.commit()
            got += part[:cut]
            if not part:
                break
        changes = told(got)
        assert once(changes) and folded(changes) == content(table)
        assert len(changes) == 12 + 12 + 3

    @pytest.mark.parametrize("cut", [1, pytest.param(3, marks=pytest.mark.slow)])
    def test_a_position_kept_with_the_results_is_exactly_once(self, new_table: NewTable, cut: int) -> None:
        table = new_table(bucket="2")
        for step in range(4):
            table.upsert(rows([step, step + 1, step + 2], f"s{step}-"))
        got: list[Change] = []
        position: str | None = None
        for _ in range(30):
            how: dict[str, Any] = {"position": position} if position else {"scan": "from-timestamp", "timestamp": 0}
            part = list(islice(open_table(table.location).consume(follow=False, **how), cut))
            if not part:
                break
            got += told(part)
            position = str(part[-1].position)
        assert once(got) and len(got) == 12 and folded(got) == content(table)

    def test_a_filter_lets_rows_enter_and_leave(self, new_table: NewTable) -> None:
        table = new_table()
        table.upsert(pa.table({"day": ["mon"] * 2, "id": [1, 2], "v": ["in", "out"]}, schema=SCHEMA))
        readings = [table.consume(filter="v = 'in'", pairs=pairs, follow=False) for pairs in (True, False)]
        firsts = [next(reading) for reading in readings]
        table.upsert(pa.table({"day": ["mon"] * 2, "id": [1, 2], "v": ["out", "in"]}, schema=SCHEMA))
        for first, reading in zip(firsts, readings, strict=True):
            assert told([first]) == [(1, "+I", 1, "in")]
            assert [change[:3] for change in sorted(told(reading))] == [(2, "+I", 2), (2, "-D", 1)]

    def test_columns_are_chosen_whatever_the_filter_needs(self, new_table: NewTable) -> None:
        table = new_table()
        table.upsert(rows([1, 2], "in"))
        reading = table.consume(filter="v like 'in%'", columns=["id"], follow=False)
        batches = [next(reading)]
        table.upsert(rows([1], "out"))
        table.upsert(rows([3], "in"))
        batches += reading
        assert {tuple(batch.rows.schema.names) for batch in batches} == {("_row_kind", "id")}
        found = [(row["_row_kind"], row["id"]) for batch in batches for row in batch.rows.to_pylist()]
        assert sorted(found[:2]) == [("+I", 1), ("+I", 2)] and found[2:] == [("-D", 1), ("+I", 3)]

    @pytest.mark.parametrize("mode", ["upsert", "all"])
    def test_pairs_have_the_row_before_and_others_do_not(self, new_table: NewTable, mode: str) -> None:
        table = new_table(**{"log.changelog-mode": mode})
        table.upsert(rows([1, 2], "a"))
        table.upsert(rows([1], "b"))
        table.delete(keys([2]))
        assert sorted(exactly(from_the_start(table, pairs=True))[2:]) == [
            (2, "+U", 1, "b1"),
            (2, "-U", 1, "a1"),
            (3, "-D", 2, "a2"),
        ]
        plain = told(from_the_start(table))
        assert [change[:3] for change in sorted(plain)] == [(1, "+I", 1), (1, "+I", 2), (2, "+I", 1), (3, "-D", 2)]
        assert folded(plain) == content(table)

    def test_append_tables_are_followed_too(self, new_table: NewTable) -> None:
        table = new_table(keyed=False)
        table.append(rows([1, 1], "a"))
        reading = table.consume(follow=False)
        got = [next(reading)]
        table.append(rows([1], "b"))
        assert told([*got, *reading]) == [(1, "+I", 1, "a1"), (1, "+I", 1, "a1"), (2, "+I", 1, "b1")]

    @pytest.mark.parametrize("how", ["overwrite", "untracked", "rollback"])
    def test_what_does_not_tell_its_changes_is_named_left_out_or_begun_anew(self, new_table: NewTable, how: str) -> None:
        table = new_table()
        table.upsert(rows([1], "a"))
        if how == "overwrite":
            table.overwrite(rows([7], "o"))
        elif how == "rollback":
            table.upsert(rows([7], "o"))
            table.rollback_to(1)
        else:
            silent = table.alter([SetOption("change-tracking", "false")])
            silent.upsert(rows([7], "o"))
            table = silent.alter([SetOption("change-tracking", "true")])
        gap = 3 if how == "rollback" else 2
        table.upsert(rows([8], "b"))
        with pytest.raises(NotFoundError, match=f"snapshot {gap}") as caught:
            from_the_start(table)
        assert caught.value.kind == "discontinuity"
        skipped = told(from_the_start(table, on_discontinuity="skip"))
        before: list[Change] = [(1, "+I", 1, "a1"), *([(2, "+I", 7, "o7")] if how == "rollback" else [])]
        assert skipped == [*before, (gap + 1, "+I", 8, "b8")]
        restarted = told(from_the_start(table, on_discontinuity="restart"))
        assert folded([change for change in restarted if change[0] >= gap]) == content(table)
        assert (gap, "+I", 1, "a1") not in restarted or how != "overwrite"

    @pytest.mark.parametrize("producer", ["none", "lookup", "input"])
    def test_what_is_written_to_an_untracked_partition_is_named_left_out_or_begun_anew(
        self, new_table: NewTable, producer: str
    ) -> None:
        options = {"changelog-producer": producer, "write-only": "false" if producer == "lookup" else "true"}
        table = new_table(by_day=True, **options)
        table.upsert(rows([1], "a"))
        silent = table.alter([SetOption("change-tracking", "false", partition={"day": "mon"})])
        # One commit to both: of the other partition it tells all.
        silent.upsert(pa.concat_tables([rows([1, 2], "b"), rows([5, 6], "b", day="tue")]))
        silent.upsert(rows([5], "c", day="tue"))
        table = silent.alter([SetOption("change-tracking", "true", partition={"day": "mon"})])
        table.upsert(rows([3], "d"))
        with pytest.raises(NotFoundError, match=r'change-tracking = false: \[{"day": "mon"}') as caught:
            from_the_start(table)
        assert caught.value.kind == "discontinuity"
        seen = folded(change[:4] for change in told(from_the_start(table, on_discontinuity="skip")))
        assert seen == {1: "a1", 5: "c5", 6: "b6", 3: "d3"}
        restarted = told(from_the_start(table, on_discontinuity="restart"))
        gap = min(change[0] for change in restarted if change[3] == "b2")
        assert folded(change for change in restarted if change[0] >= gap) == content(table)

    @pytest.mark.parametrize("how", ["empty", "overwrite", "producer"])
    def test_a_restart_is_told_also_where_no_row_follows(self, new_table: NewTable, how: str) -> None:
        producing = {"changelog-producer": "lookup", "write-only": "false"}
        table = new_table(**(producing if how == "producer" else {}))
        table.upsert(rows([1, 2], "a"))
        held: dict[int, str | None] = {}

        def apply(batches: Iterable[ChangeBatch]) -> list[Restarted]:
            events = []
            for batch in batches:
                if isinstance(batch.event, Restarted):
                    assert batch.rows.num_rows == 0 and batch.in_frame and batch.event.snapshot_id == batch.snapshot_id
                    held.clear()
                    events.append(batch.event)
                folded(told([batch]), held)
                batch.commit()
            return events

        assert apply(all_of(table, consumer_id="c", on_discontinuity="restart")) == [] and held == content(table)
        table.overwrite(rows([] if how == "empty" else [7], "o"))
        # Who stops before the event meets it again.
        first = next(iter(table.consume(consumer_id="c", on_discontinuity="restart", follow=False)))
        assert isinstance(first.event, Restarted)
        events = apply(all_of(table, consumer_id="c", on_discontinuity="restart"))
        assert events == [first.event] and held == content(table)
        table.upsert(rows([8], "b"))
        assert apply(all_of(table, consumer_id="c", on_discontinuity="restart")) == [] and held == content(table)

    def test_a_schema_that_lands_under_a_follower_is_told_and_the_table_opened_again_goes_on(self, new_table: NewTable) -> None:
        table = new_table()
        table.upsert(rows([1], "a"))
        reading = table.consume(follow=False)
        got = [next(reading)]
        now = table.alter([AddColumn("n", pa.int32()), RenameColumn("v", to="w")])
        now.upsert(pa.table({"day": ["mon"], "id": [2], "w": ["b2"], "n": pa.array([5], pa.int32())}))
        narrow = now.consume(position=now.position_after(1), follow=False)
        wide = now.alter([ChangeType("n", pa.int64())])
        wide.upsert(pa.table({"day": ["mon"], "id": [3], "w": ["c3"], "n": [2**40]}))
        got += reading
        events = [batch.event for batch in got if batch.event is not None]
        assert [(event.snapshot_id, event.schema_id) for event in events if isinstance(event, SchemaLanded)] == [(2, 1), (3, 2)]
        assert "column n came" in str(events[0]) and "column v is w now" in str(events[0])
        assert told(got) == [(1, "+I", 1, "a1"), (2, "+I", 2, "b2"), (3, "+I", 3, "c3")]
        # A stream that has the column, but not wide enough for what comes.
        part: list[ChangeBatch] = []
        with pytest.raises(ConflictError, match=r"call table.consume\(\) again") as caught:
            for batch in narrow:
                part.append(batch)
        assert caught.value.kind == "schema-changed"
        assert isinstance(part[-1].event, SchemaLanded) and "is BIGINT now, it was INT" in str(part[-1].event)
        rest = open_table(table.location).consume(position=str(part[-1].position), follow=False)
        assert [row["n"] for batch in [*part, *rest] for row in batch.rows.to_pylist()] == [5, 2**40]

    def test_a_schema_is_told_before_the_rows_of_a_restart_that_have_it(self, new_table: NewTable) -> None:
        table = new_table()
        table.upsert(rows([1], "a"))
        how: dict[str, Any] = {"position": str(table.position_after(1)), "on_discontinuity": "restart"}
        before = table.consume(follow=False, **how)
        now = table.alter(AddColumn("n", pa.int32()))
        now.overwrite(pa.table({"day": ["mon"], "id": [2], "v": ["b2"], "n": pa.array([5], pa.int32())}))
        restarted, landed, frame = before
        assert isinstance(restarted.event, Restarted) and isinstance(landed.event, SchemaLanded)
        assert "column n came" in str(landed.event) and told([frame]) == [(2, "+I", 2, "b2")]
        # The event is a place to go on from: the rows come with the new column then.
        rest = all_of(open_table(table.location), position=str(landed.position))
        assert [row["n"] for batch in rest for row in batch.rows.to_pylist()] == [5]
        # In a stream that has the column, but not wide enough.
        narrow = now.consume(position=now.position_after(2), on_discontinuity="restart", follow=False)
        wide = now.alter(ChangeType("n", pa.int64()))
        wide.overwrite(pa.table({"day": ["mon"], "id": [3], "v": ["c3"], "n": [2**40]}))
        part: list[ChangeBatch] = []
        with pytest.raises(ConflictError, match=r"call table.consume\(\) again") as caught:
            for batch in narrow:
                part.append(batch)
        assert caught.value.kind == "schema-changed"
        assert [type(batch.event) for batch in part] == [Restarted, SchemaLanded]
        rest = all_of(open_table(table.location), position=str(part[-1].position))
        assert [row["n"] for batch in rest for row in batch.rows.to_pylist()] == [2**40]

    def test_expiry_keeps_what_a_named_consumer_still_has_to_read(self, new_table: NewTable) -> None:
        table = new_table()
        table.upsert(rows([1], "a"))
        for batch in table.consume(consumer_id="c", follow=False):
            batch.commit()
        for step in range(6):
            table.upsert(rows([step], f"s{step}-"))
        table.expire_snapshots(retain_min=1, retain_max=1, older_than=timedelta(0))
        got = told(all_of(table, consumer_id="c"))
        assert once(got) and sorted(change[0] for change in got) == [2, 3, 4, 5, 6, 7]
        for batch in table.consume(consumer_id="c", follow=False):
            batch.commit()
        table.upsert(rows([9], "z"))
        assert told(all_of(table, consumer_id="c")) == [(8, "+I", 9, "z9")]

    def test_partitions_are_one_table(self, new_table: NewTable) -> None:
        table = new_table(by_day=True)
        table.upsert(rows([1, 2], "a"))
        reading = table.consume(follow=False)
        got = [next(reading)]
        table.upsert(pa.concat_tables([rows([3], "b", day="tue"), rows([2], "b")]))
        table.delete(keys([3], day="tue"))
        table.delete(keys([1]))
        changes = told([*got, *reading])
        assert once(changes) and folded(changes) == content(table) == {2: "b2"}

    def test_an_overwritten_partition_interrupts_the_changes(self, new_table: NewTable) -> None:
        table = new_table(by_day=True)
        table.upsert(pa.concat_tables([rows([1], "a"), rows([2], "a", day="tue")]))
        reading = table.consume(on_discontinuity="restart", follow=False)
        got = [next(reading)]
        table.overwrite(rows([3], "o"), partition={"day": "mon"})
        table.upsert(rows([4], "b"))
        changes = told([*got, *reading])
        assert folded([change for change in changes if change[0] > 1]) == content(table) == {2: "a2", 3: "o3", 4: "b4"}

    def test_deletes_by_condition_are_told(self, new_table: NewTable) -> None:
        table = new_table()
        table.upsert(rows(range(10), "a"))
        table.delete("id >= 5")
        changes = told(from_the_start(table))
        assert {change[2] for change in changes if change[1] == "-D"} == {5, 6, 7, 8, 9}
        assert folded(changes) == content(table)

    def test_compactions_change_nothing_for_readers(self, new_table: NewTable) -> None:
        table = new_table(bucket="2")
        table.upsert(rows(range(6), "a"))
        reading = table.consume(follow=False)
        got = [next(reading)]
        table.upsert(rows(range(3), "b"))
        table.compact(full=True)
        assert told(all_of(table, scan="full")), "the newest snapshot is a compaction's: its rows, and nothing behind them"
        table.upsert(rows(range(2), "c"))
        table.compact(full=True)
        changes = told([*got, *reading])
        assert once(changes) and folded(changes) == content(table)
        assert sorted(change[0] for change in changes) == [1] * 6 + [2] * 3 + [4] * 2

    def test_many_buckets_lose_nothing(self, new_table: NewTable) -> None:
        table = new_table(bucket="8")
        for step in range(3):
            table.upsert(rows(range(step * 20, step * 20 + 40), f"s{step}-"))
        changes = told(from_the_start(table))
        assert once(changes) and len(changes) == 120 and folded(changes) == content(table)

    def test_columns_that_come_and_are_renamed_between_are_told_by_id(self, new_table: NewTable) -> None:
        table = new_table()
        table.upsert(rows([1], "a"))
        for batch in table.consume(consumer_id="c", scan="latest", follow=False):
            batch.commit()
        table.upsert(rows([2], "b"))
        now = table.alter([AddColumn("n", pa.int64()), RenameColumn("v", to="w")])
        now.upsert(pa.table({"day": ["mon"], "id": [3], "w": ["c3"], "n": [5]}))
        got = [row for batch in now.consume(consumer_id="c", follow=False) for row in batch.rows.to_pylist()]
        assert [(row["id"], row["w"], row["n"]) for row in got] == [(2, "b2", None), (3, "c3", 5)]

    def test_a_merge_engine_with_a_changelog_is_told_as_its_compactions_show_it(self, new_table: NewTable) -> None:
        merging = {"merge-engine": "aggregation", "fields.v.aggregate-function": "max"}
        table = new_table(**merging, **{"changelog-producer": "lookup", "changelog-producer.row-deduplicate": "true"})
        reading = table.consume(follow=False)
        for text in "bac":
            table.upsert(rows([1, 2], text))
            table.compact()
        changes = told(reading)
        assert once(changes) and folded(changes) == {1: "c1", 2: "c2"}
        pairs = exactly(from_the_start(table, pairs=True))
        assert [change[1:] for change in pairs if change[2] == 1] == [
            ("+I", 1, "b1"),
            ("-U", 1, "b1"),
            ("+U", 1, "c1"),
        ]

    @pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 8))])
    def test_whatever_happens_the_changes_add_up_to_the_table(self, new_table: NewTable, seed: int) -> None:
        choose = random.Random(seed)
        table = new_table(bucket="2")
        table.upsert(rows(range(5), "first"))
        text, position = "v", str(table.position_after(0))
        named: list[Change] = []
        placed: list[Change] = []

        def read(count: int | None) -> None:
            nonlocal position
            for batch in islice(table.consume(consumer_id="c", follow=False), count):
                batch.commit()
                named.extend(told([batch], text))
            # A reader that keeps positions beside its results gets the same as a named one.
            for batch in islice(table.consume(position=position, follow=False), count):
                position = str(batch.position)
                placed.extend(told([batch], text))

        for step in range(14):
            match choose.choice(["upsert", "upsert", "upsert", "delete", "compact", "read", "read", "add", "rename"]):
                case "upsert":
                    some = rows(choose.sample(range(12), 4), f"s{step}-").rename_columns(["day", "id", text])
                    table.upsert(some, missing_columns="null")
                case "delete":
                    table.delete(keys(choose.sample(range(12), 3)))
                case "compact":
                    table.compact(full=choose.random() < 0.5)
                case "read":
                    read(choose.choice([1, 2, 20]))
                case "add":
                    table = table.alter([AddColumn(f"n{step}", pa.int64())])
                case "rename":
                    table, text = table.alter([RenameColumn(text, to=f"v{step}")]), f"v{step}"
        read(None)
        held = {row["id"]: row[text] for row in table.scan().to_arrow().to_pylist()}
        for seen in (named, placed):
            assert once(seen) and folded(seen) == held
