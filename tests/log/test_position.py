"""Positions: what is stored of them, and that one of another table or history is refused by name."""

import json
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tablestore as ts
from tablestore.errors import InvalidInputError, NotFoundError
from tablestore.log.follow.consumption import ChangeBatch
from tablestore.log.identity import snapshot_name
from tablestore.log.position import (
    POSITION_KEY,
    LogPlace,
    Position,
    StorePlace,
    done,
    parse_position,
    unnamed_fingerprint,
)
from tablestore.log.record import Mark
from tablestore.store.history.consumers import Consumers
from tablestore.store.snapshots import PARENT_PROPERTY
from tablestore.testing.auditor import walk
from tablestore.testing.memorylog import MemoryBroker, memory_logs
from tablestore.types.evolution.schemachanges import AddColumn, RenameColumn

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
LOG = LogPlace(incarnation="Xy", base=7, offsets={1: 5, 0: 120}, marks={10: Mark(9, 0), 0: Mark(8, 5)})
GOLDEN = [
    (Position(table="T", snapshot_uuid="u7", place=done(7)), '{"position":1,"table":"T","done":[7,"u7"]}'),
    (Position(table=None, snapshot_uuid=None, place=done(0)), '{"position":1,"table":null,"done":[0,null]}'),
    (
        Position(table="T", snapshot_uuid="u7", place=StorePlace(phase="frame", snapshot_id=7, rows=5000, reading="a1")),
        '{"position":1,"table":"T","frame":[7,"u7"],"rows":5000,"reading":"a1"}',
    ),
    (
        Position(table="T", snapshot_uuid="u8", place=StorePlace(phase="changes", snapshot_id=8, rows=20, reading="a1")),
        '{"position":1,"table":"T","changes":[8,"u8"],"rows":20,"reading":"a1"}',
    ),
    (
        Position(table="T", snapshot_uuid="u7", place=LOG),
        '{"position":1,"table":"T","done":[7,"u7"],"log":"Xy","offsets":{"0":120,"1":5},"marks":{"0":[8,5],"10":[9,0]}}',
    ),
    (
        Position(table="T", snapshot_uuid="u7", place=LOG, newest_uuid="u9"),
        '{"position":1,"table":"T","done":[7,"u7"],"log":"Xy","offsets":{"0":120,"1":5},"marks":{"0":[8,5],"10":[9,0]},"newest":"u9"}',
    ),
]
NUMBERS = count()
COUNTS = st.integers(0, 2**63 - 2)
NAMES = st.none() | st.text(min_size=1)
BUCKETS = st.integers(0, 10_000)
LOG_PLACES = st.builds(
    LogPlace,
    incarnation=st.text(),
    base=COUNTS,
    offsets=st.dictionaries(BUCKETS, COUNTS, max_size=4),
    marks=st.dictionaries(BUCKETS, st.builds(Mark, COUNTS, COUNTS), max_size=4),
)
PLACES = st.one_of(
    COUNTS.map(done),
    st.builds(StorePlace, phase=st.just("frame"), snapshot_id=COUNTS.filter(bool), rows=COUNTS, reading=st.text()),
    st.builds(StorePlace, phase=st.just("changes"), snapshot_id=COUNTS.filter(bool), rows=COUNTS.filter(bool), reading=st.text()),
)
POSITIONS = st.one_of(
    st.builds(Position, table=NAMES, snapshot_uuid=NAMES, place=PLACES),
    st.builds(Position, table=NAMES, snapshot_uuid=NAMES, place=LOG_PLACES, newest_uuid=NAMES),
)


def make(path: Path | str, **how: Any) -> ts.Table:
    catalog = ts.open_catalog(str(path))
    catalog.create_database("shop", ignore_if_exists=True)
    given = {"primary_key": ["id"], "options": {"bucket": "2", "write-only": "true"}}
    return catalog.create_table("shop.t", **{"schema": SCHEMA, **given, **how})


def rows(ids: Iterable[int], text: str = "a", column: str = "v") -> pa.Table:
    given = list(ids)
    return pa.table({"id": pa.array(given, pa.int64()), column: [f"{text}{i}" for i in given]})


def changes(batches: Iterable[ChangeBatch]) -> list[tuple[int, str, int]]:
    return [(batch.snapshot_id, row["_row_kind"], row["id"]) for batch in batches for row in batch.rows.to_pylist()]


def from_the_start(table: ts.Table, **how: Any) -> list[ChangeBatch]:
    return list(table.consume("from-timestamp", timestamp=0, follow=False, **how))


def in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows come in batches of a few."""
    monkeypatch.setattr("tablestore.log.follow.consumption.FileStoreConsumption._handed_out", _cut(2))


def _cut(count: int) -> Any:
    from tablestore.log.follow.consumption import FileStoreConsumption

    whole = FileStoreConsumption._handed_out

    def handed_out(self: Any, batches: Any, position: Any, *, frame: bool) -> Any:
        parts = (batch.slice(start, count) for batch in batches for start in range(0, batch.num_rows, count))
        return whole(self, parts, position, frame=frame)

    return handed_out


@pytest.mark.parametrize(("position", "text"), GOLDEN)
def test_what_is_stored_of_a_position_stays_the_same(position: Position, text: str) -> None:
    assert str(position) == text
    assert parse_position(text) == parse_position(json.loads(text)) == parse_position(position) == position


@given(POSITIONS)
def test_every_position_comes_back_from_its_text_and_the_text_is_always_the_same(position: Position) -> None:
    again = parse_position(str(position))
    assert again == position and str(again) == str(position)


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "[1]",
        "{}",
        "[" * 100_000,
        '{"position":1}',
        '{"position":1,"table":"T"}',
        '{"position":0,"table":"T","done":[7,"u"]}',
        '{"position":true,"table":"T","done":[7,"u"]}',
        '{"position":1.0,"table":"T","done":[7,"u"]}',
        '{"position":"1","table":"T","done":[7,"u"]}',
        '{"position":1,"done":[7,"u"]}',
        '{"position":1,"table":"","done":[7,"u"]}',
        '{"position":1,"table":7,"done":[7,"u"]}',
        '{"position":1,"table":"T","done":7}',
        '{"position":1,"table":"T","done":[7]}',
        '{"position":1,"table":"T","done":[7,""]}',
        '{"position":1,"table":"T","done":[-1,"u"]}',
        '{"position":1,"table":"T","done":[7.0,"u"]}',
        '{"position":1,"table":"T","done":[99999999999999999999,"u"]}',
        '{"position":1,"table":"T","done":[7,"u"],"rows":3}',
        '{"position":1,"table":"T","done":[7,"u"],"more":3}',
        '{"position":1,"table":"T","frame":[0,"u"],"rows":0,"reading":""}',
        '{"position":1,"table":"T","frame":[7,"u"],"rows":-1,"reading":""}',
        '{"position":1,"table":"T","frame":[7,"u"],"rows":true,"reading":""}',
        '{"position":1,"table":"T","frame":[7,"u"],"reading":""}',
        '{"position":1,"table":"T","changes":[7,"u"],"rows":0,"reading":""}',
        '{"position":1,"table":"T","changes":[7,"u"],"rows":1}',
        '{"position":1,"table":"T","frame":[7,"u"],"changes":[7,"u"],"rows":1,"reading":""}',
        '{"position":1,"table":"T","done":[7,"u"],"log":"X"}',
        '{"position":1,"table":"T","done":[7,"u"],"log":"X","offsets":{"a":1},"marks":{}}',
        '{"position":1,"table":"T","done":[7,"u"],"log":"X","offsets":{"01":1},"marks":{}}',
        '{"position":1,"table":"T","done":[7,"u"],"log":"X","offsets":{"1":-1},"marks":{}}',
        '{"position":1,"table":"T","done":[7,"u"],"log":"X","offsets":{},"marks":{"0":[1]}}',
        '{"position":1,"table":"T","done":[7,"u"],"log":"X","offsets":{},"marks":{"0":"12"}}',
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="expected a position") as caught:
        parse_position(text)
    assert caught.value.kind == "position" and len(str(caught.value)) < 600


@given(POSITIONS, st.data())
def test_a_position_that_was_damaged_is_refused_or_another_position(position: Position, data: st.DataObject) -> None:
    text = str(position)
    at = data.draw(st.integers(0, len(text) - 1))
    damaged = text[:at] + data.draw(st.text(max_size=2)) + text[at + 1 :]
    with suppress(InvalidInputError):
        assert isinstance(parse_position(damaged), Position)


def test_a_position_of_a_newer_version_is_refused_by_name() -> None:
    with pytest.raises(InvalidInputError, match="version 2, this tablestore reads version 1") as caught:
        parse_position('{"position":2,"whatever":1}')
    assert caught.value.kind == "position-too-new"


def test_a_batch_that_ends_a_snapshot_has_the_normal_form_whatever_is_read_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_pieces(monkeypatch)
    table = make(tmp_path)
    table.upsert(rows(range(6)))
    table.upsert(rows(range(3), "b"))
    readings = [{}, {"columns": ["id"]}, {"pairs": True}, {"filter": "id >= 0"}]
    ends = []
    for how in readings:
        batches = list(table.consume(position=table.position_after(0), follow=False, **how))
        assert len(batches) > 4
        ends.append([str(batch.position) for batch in batches if '"done"' in str(batch.position)])
    assert all(end == [str(table.position_after(1)), str(table.position_after(2))] for end in ends)
    frame = list(table.consume(follow=False))
    assert str(frame[-1].position) == str(table.position_after(2)) and len(frame) > 1
    for snapshot_id in (-1, 3):
        with pytest.raises(NotFoundError, match="newest is 2"):
            table.position_after(snapshot_id)


def test_a_position_of_a_table_that_was_made_again_is_refused(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.upsert(rows([1]))
    table.upsert(rows([2]))
    position = str(list(table.consume(follow=False))[-1].position)
    ts.open_catalog(str(tmp_path)).drop_table("shop.t")
    again = make(tmp_path)
    for number in range(4):
        again.upsert(rows([number]))
    with pytest.raises(InvalidInputError, match="dropped and made again") as caught:
        again.consume(position=position, follow=False)
    assert caught.value.kind == "position-table"


def test_a_position_of_an_older_copy_whose_ids_have_caught_up_is_refused(tmp_path: Path) -> None:
    table = make(tmp_path / "wh")
    table.upsert(rows([1]))
    shutil.copytree(tmp_path / "wh", tmp_path / "copy")
    shared = str(table.position_after(1))
    table.upsert(rows([2]))
    position = str(table.position_after(2))
    for batch in table.consume(consumer_id="c", follow=False):
        batch.commit()
    kept = Consumers(table.context.files).get("c")
    copy = ts.open_catalog(str(tmp_path / "copy")).table("shop.t")
    Consumers(copy.context.files).write("c", kept.next_snapshot, kept.extra)
    for newest in ("newest snapshot is 1", "snapshot 2 is another one now", "snapshot 2 is another one now"):
        for how in ({"position": position}, {"consumer_id": "c"}):
            with pytest.raises(InvalidInputError, match=newest) as caught:
                copy.consume(follow=False, **how)
            assert caught.value.kind == "position-history"
        copy.upsert(rows([9], "copy"))
    # Also when the snapshot itself has expired, as long as the one built on it is there.
    copy.context.files.delete("snapshot/snapshot-1")
    copy.context.files.delete("snapshot/snapshot-2")
    with pytest.raises(InvalidInputError, match="snapshot 2 was another one"):
        copy.consume(position=position, follow=False)
    assert changes(table.consume(position=shared, follow=False)) == [(2, "+I", 2)]


def test_a_position_in_the_midst_of_snapshots_that_were_lost_is_refused_also_behind_a_new_log() -> None:
    """It rests on a snapshot of both histories, and has handed out changes of one that only the other has."""
    broker = MemoryBroker("lost-in-the-midst")
    with memory_logs():
        kafka = {"bucket": "2", "write-only": "true", "log.kafka.bootstrap.servers": broker.address}
        table = make(f"memory://{broker.address}", options=kafka)
        files = table.context.files
        table.upsert(rows(range(9)))
        behind_first = list(table.consume(follow=False))[-1].position
        older = {path: files.read(path) for path in walk(files)}
        table.upsert(rows(range(9), "lost"))
        lost = list(table.consume(position=behind_first, follow=False))[-1].position
        assert lost.done_snapshot == 1 and isinstance(lost.place, LogPlace) and lost.place.newest == 2
        table.close()
        for path in list(walk(files)):
            files.delete(path)
        for path, data in older.items():
            files.write(path, data)
        restored = ts.open_table(table.location)
        restored.upsert(rows(range(9), "new"))
        restored.change_log.rebuild()
        with pytest.raises(InvalidInputError, match="snapshot 2 is another one now") as caught:
            restored.consume(position=str(lost), follow=False)
        assert caught.value.kind == "position-history"
        assert len(changes(restored.consume(position=behind_first, follow=False))) == 9
        restored.close()
    broker.close()


def test_a_position_whose_snapshot_has_expired_is_read_while_the_next_one_is_there(tmp_path: Path) -> None:
    table = make(tmp_path)
    for number in range(3):
        table.upsert(rows([number]))
    position = str(table.position_after(2))
    table.context.files.delete("snapshot/snapshot-1")
    table.context.files.delete("snapshot/snapshot-2")
    assert str(table.position_after(2)) == position
    assert changes(table.consume(position=position, follow=False)) == [(3, "+I", 2)]
    with pytest.raises(NotFoundError, match="has expired"):
        list(table.consume(position=table.position_after(1), follow=False))


def test_columns_may_come_and_be_renamed_in_the_midst_of_a_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_pieces(monkeypatch)
    table = make(tmp_path)
    table.upsert(rows(range(8)))
    whole = changes(table.consume(follow=False, filter="v != 'a3'"))
    first = next(table.consume(follow=False, filter="v != 'a3'"))
    assert '"frame"' in str(first.position)
    for batch in islice(table.consume(consumer_id="c", follow=False, filter="v != 'a3'"), 1):
        batch.commit()
    now = table.alter([AddColumn("n", pa.int64()), RenameColumn("v", to="w")])
    for how in ({"position": str(first.position)}, {"consumer_id": "c"}):
        rest = list(now.consume(follow=False, filter="w != 'a3'", **how))
        assert changes([first]) + changes(rest) == whole
        assert rest[0].rows.schema.names == ["_row_kind", "id", "w", "n"]
    assert (
        changes([first]) + changes(now.consume(position=first.position, filter="w != 'a3'", columns=["id"], follow=False)) == whole
    )
    for other in ({"filter": "w != 'a4'"}, {"filter": "w != 'a3'", "pairs": True}, {}):
        with pytest.raises(InvalidInputError, match="another filter or pairs"):
            now.consume(position=first.position, follow=False, **other)


@pytest.mark.parametrize(
    ("text", "behind"),
    [
        ('{"phase":"frame","snapshot":2,"rows":1,"reading":"x"}', 1),
        ('{"phase":"changes","snapshot":2,"rows":0,"reading":""}', 1),
        ('{"phase":"log","log":"X","base":1,"offsets":{"0":4},"marks":{}}', 1),
    ],
)
def test_a_position_of_an_early_version_is_refused_by_name_with_the_way_out(tmp_path: Path, text: str, behind: int) -> None:
    table = make(tmp_path)
    table.upsert(rows([1]))
    table.upsert(rows([2]))
    with pytest.raises(InvalidInputError, match=rf"table.position_after\({behind}\)") as caught:
        table.consume(position=text, follow=False)
    assert caught.value.kind == "position-unnamed"
    assert changes(table.consume(position=table.position_after(behind), follow=False)) == [(2, "+I", 2)]


@pytest.mark.parametrize("consumed", [0, 2])
def test_a_named_consumer_of_an_early_version_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, consumed: int) -> None:
    in_pieces(monkeypatch)
    table = make(tmp_path)
    table.upsert(rows(range(6)))
    whole = from_the_start(table, filter="id >= 0")
    reading = unnamed_fingerprint(("id", "v"), "id >= 0", False)
    stored = {"phase": "changes", "snapshot": 1, "rows": consumed, "reading": reading}
    Consumers(table.context.files).write("c", 1, {POSITION_KEY: stored})
    rest = table.consume(consumer_id="c", filter="id >= 0", follow=False)
    assert changes(rest) == changes(whole)[consumed:]
    named = Consumers(table.context.files).get("c").extra[POSITION_KEY]
    assert parse_position(named).table == table.context.table_uuid
    Consumers(table.context.files).write(
        "d", 2, {POSITION_KEY: {"phase": "log", "log": "X", "base": 1, "offsets": {}, "marks": {}}}
    )
    assert changes(table.consume(consumer_id="d", follow=False)) == []


def test_a_table_without_a_uuid_knows_its_history_by_its_snapshots(tmp_path: Path) -> None:
    golden = Path(__file__).parents[1] / "golden" / "paimon" / "py_pk_part"
    shutil.copytree(golden, tmp_path / "t")
    table = ts.open_table(str(tmp_path / "t"))
    newest = table.snapshots()[-1].id
    position = str(table.position_after(newest))
    assert table.context.table_uuid is None and list(table.consume(position=position, follow=False)) == []
    replaced = position.replace(snapshot_name(table.snapshots()[-1]), "another")
    with pytest.raises(InvalidInputError, match="is another one now") as caught:
        table.consume(position=replaced, follow=False)
    assert caught.value.kind == "position-history"
    if newest > 1:
        (tmp_path / "t" / "snapshot" / "snapshot-1").unlink()
        with pytest.raises(InvalidInputError, match="no uuid that would identify it"):
            table.consume(position=str(table.position_after(1)), follow=False)


def test_snapshots_without_a_uuid_are_told_apart_all_the_same(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.upsert(rows([1]))
    (snapshot,) = table.snapshots()
    foreign = replace(snapshot, uuid=None)
    assert snapshot_name(foreign) == snapshot_name(replace(foreign, properties={PARENT_PROPERTY: "x"}))
    others = [
        replace(foreign, commit_user="other"),
        replace(foreign, commit_identifier=99),
        replace(foreign, time_millis=1),
        replace(foreign, delta_manifest_list="other"),
    ]
    assert len({snapshot_name(one) for one in [foreign, snapshot, *others]}) == 6


@pytest.mark.deep
@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from(["write", "delete", "read", "add", "rename", "reopen"]), min_size=4, max_size=16), st.integers(1, 3)
)
def test_whatever_is_read_committed_and_altered_in_between_nothing_is_lost_or_comes_twice(steps: list[str], cut: int) -> None:
    table = make(f"memory://position-{next(NUMBERS)}")
    column, seen, position = "v", [], str(table.position_after(0))
    with pytest.MonkeyPatch.context() as patch:
        in_pieces(patch)
        for number, step in enumerate([*steps, "read all"]):
            if step == "write":
                table.upsert(rows(range(number, number + 4), f"s{number}-", column), missing_columns="null")
            elif step == "delete":
                table.delete(pa.table({"id": [number - 1, number]}))
            elif step == "add":
                table = table.alter([AddColumn(f"n{number}", pa.int64())])
            elif step == "rename":
                table, column = table.alter([RenameColumn(column, to=f"v{number}")]), f"v{number}"
            elif step == "reopen":
                table = ts.open_catalog(table.location.rpartition("/shop.db")[0]).table("shop.t")
            elif step.startswith("read"):
                # A named consumer and a position kept elsewhere are the same thing.
                for batch in islice(table.consume(position=position, follow=False), None if step == "read all" else cut):
                    seen += changes([batch])
                    position = str(parse_position(str(batch.position)))
    everything = changes(table.consume(position=table.position_after(0), follow=False))
    assert seen == everything
