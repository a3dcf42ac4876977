"""What is kept from readers of changes, of a table or of some partitions: who says so, what a commit notes, what readers get."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.store.tracking import TRACKED_PROPERTY, UNTRACKED_PARTITIONS_PROPERTY

OPTION = "change-tracking.untracked-partitions"
SCHEMA = pa.schema(
    [
        pa.field("day", pa.date32(), nullable=False),
        pa.field("hour", pa.int32(), nullable=False),
        ("id", pa.int64()),
        ("v", pa.string()),
    ]
)
MON, TUE = dt.date(2026, 1, 5), dt.date(2026, 1, 6)


def make(path: Path, *, keyed: bool = True, **options: str) -> ts.Table:
    catalog = ts.open_catalog(str(path))
    catalog.create_database("shop", ignore_if_exists=True)
    return catalog.create_table(
        "shop.visits",
        schema=SCHEMA,
        primary_key=["day", "hour", "id"] if keyed else (),
        partition_by=["day", "hour"],
        options={key.replace("_", "-"): value for key, value in options.items()},
    )


def rows(*given: tuple[dt.date, int, int, str]) -> pa.Table:
    days, hours, ids, texts = zip(*given, strict=True)
    return pa.table({"day": days, "hour": hours, "id": ids, "v": texts}, schema=SCHEMA)


def track(table: ts.Table, value: str, **partition: Any) -> ts.Table:
    return table.alter(ts.SetOption("change-tracking", value, partition=partition))


def told(table: ts.Table, **how: Any) -> list[str]:
    found = table.changes(0, on_discontinuity="skip", **how).to_arrow().to_pylist()
    return sorted(f"{row['_row_kind']} {row['day'].day} {row['hour']} {row['v']}" for row in found)


def notes(table: ts.Table) -> list[tuple[str, str, object]]:
    """(kind, whether tracked, partitions that are left out) of every snapshot."""
    return [
        (
            str(one.commit_kind),
            one.properties[TRACKED_PROPERTY],
            json.loads(one.properties.get(UNTRACKED_PARTITIONS_PROPERTY, "null")),
        )
        for one in table.snapshots()
    ]


# -- who says so


def test_a_partition_is_switched_off_and_on_again(tmp_path: Path) -> None:
    table = make(tmp_path)
    table = track(table, "false", day=MON, hour=1)
    assert json.loads(table.options()[OPTION]) == [{"day": "2026-01-05", "hour": "1"}]
    table = track(table, "false", day=TUE)
    table = track(table, "false", day=TUE, hour=3)
    assert json.loads(table.options()[OPTION]) == [{"day": "2026-01-05", "hour": "1"}, {"day": "2026-01-06"}]
    table = track(table, "false", day=MON)
    assert json.loads(table.options()[OPTION]) == [{"day": "2026-01-06"}, {"day": "2026-01-05"}]
    table = track(table, "true", day=MON)
    table = track(track(table, "true", day=MON), "true", day=TUE)
    assert OPTION not in table.options() and "change-tracking" not in table.options()


def test_what_cannot_be_switched_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    table = track(make(tmp_path), "false", day=MON)
    before = table.options()
    for change, reason in (
        (ts.SetOption("change-tracking", "true", partition={"day": MON, "hour": 1}), "as a whole"),
        (ts.SetOption("change-tracking", "false", partition={"id": 1}), "not a partition column"),
        (ts.SetOption("change-tracking", "false", partition={"hour": "x"}), "does not fit column 'hour'"),
        (ts.SetOption("change-tracking", "false", partition={}), "expected a partition"),
        (ts.SetOption("change-tracking", "false", partition=["day"]), "expected a partition"),  # type: ignore[arg-type]
        (ts.SetOption("change-tracking", "perhaps", partition={"day": MON}), "perhaps"),
        (ts.SetOption("write-only", "true", partition={"day": MON}), "belongs to the table"),
        (ts.SetOption(OPTION, "monday"), "partitions as JSON"),
        (ts.SetOption(OPTION, '[{"week": "1"}]'), "not a partition column"),
        (ts.SetOption(OPTION, '[{"day": 5}]'), "partitions as JSON"),
        (ts.SetOption(OPTION, "[{}]"), "partitions as JSON"),
        (ts.SetOption(OPTION, "[" * 100_000), "partitions as JSON"),
    ):
        with pytest.raises(ts.InvalidInputError, match=reason):
            table.alter(change)
    silent = table.alter(ts.SetOption("change-tracking", "false"))
    with pytest.raises(ts.InvalidInputError, match="false for the whole table"):
        track(silent, "true", day=TUE)
    assert silent.alter(ts.RemoveOption("change-tracking")).options() == before


def test_a_table_is_created_with_untracked_partitions_or_refused_as_a_whole(tmp_path: Path) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    for text in ("nonsense", '[{"id": "1"}]'):
        with pytest.raises(ts.InvalidInputError):
            catalog.create_table("shop.t", schema=SCHEMA, partition_by=["day", "hour"], options={OPTION: text})
    assert catalog.list_tables("shop") == ()
    table = catalog.create_table("shop.t", schema=SCHEMA, partition_by=["day", "hour"], options={OPTION: '[{"hour": "1"}]'})
    table.append(rows((MON, 1, 1, "a"), (TUE, 2, 2, "b")))
    assert told(table) == ["+I 6 2 b"]


def test_rows_that_are_sent_early_are_of_tracked_partitions(tmp_path: Path) -> None:
    options = {"log.kafka.bootstrap.servers": "localhost:1", "log.consistency": "eventual", OPTION: '[{"hour": "1"}]'}
    with pytest.raises(ts.errors.UnsupportedError, match="change-tracking = false, of the table or of a partition"):
        make(tmp_path, **options)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (pa.string(), 'a,b="c"/é', 'a,b="c"/é'),
        (pa.int64(), -7, "-7"),
        (pa.bool_(), True, "true"),
        (pa.decimal128(9, 2), "12.50", "12.50"),
        (pa.timestamp("us"), dt.datetime(2026, 1, 5, 1, 2, 3, 4), "2026-01-05 01:02:03.000004"),
        (pa.string(), None, None),
    ],
    ids=str,
)
def test_partitions_of_every_type_are_named_by_text(tmp_path: Path, kind: pa.DataType, value: Any, text: str | None) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    schema = pa.schema([pa.field("p", kind, nullable=value is None), ("v", pa.string())])
    table = catalog.create_table("shop.t", schema=schema, partition_by=["p"])
    table = track(table, "false", p=pa.scalar(value, pa.string()).cast(kind).as_py() if pa.types.is_decimal(kind) else value)
    assert json.loads(table.options()[OPTION]) == [{"p": text}]
    given = pa.array([value], pa.string()).cast(kind) if pa.types.is_decimal(kind) else pa.array([value], kind)
    table.append(pa.table({"p": given, "v": ["kept back"]}, schema=schema))
    assert table.changes(0, on_discontinuity="skip").count() == 0 and table.scan().count() == 1
    assert [found.snapshot_id for found in table.changes(0).discontinuities()] == [1]


# -- what a commit notes, and what readers get


@pytest.mark.parametrize("producer", ["none", "input", "lookup", "full-compaction"])
def test_only_commits_that_touch_an_untracked_partition_say_so(tmp_path: Path, producer: str) -> None:
    table = track(make(tmp_path, changelog_producer=producer, write_only="true", bucket="1"), "false", day=MON)
    table.upsert(rows((TUE, 1, 1, "a")))
    table.upsert(rows((MON, 1, 1, "b"), (TUE, 1, 2, "c")))
    table.compact(full=True)
    told_by_compaction = producer in ("lookup", "full-compaction")
    left_out = [{"day": "2026-01-05"}]
    assert notes(table) == [
        ("APPEND", "true", None),
        ("APPEND", "true", left_out),
        ("COMPACT", "true", left_out if told_by_compaction else None),
    ]
    assert told(table) == ["+I 6 1 a", "+I 6 1 c"]
    # What the options say by then changes nothing of it; nor does a compaction of what lies in the frame already.
    table = track(table, "true", day=MON)
    assert told(table) == ["+I 6 1 a", "+I 6 1 c"]
    table.upsert(rows((MON, 1, 1, "d")))
    table.compact(full=True)
    assert [note[2] for note in notes(table)[3:]] == [None, None]
    assert any(change.endswith("5 1 d") for change in told(table))


@pytest.mark.parametrize("producer", ["none", "input", "lookup", "full-compaction"])
def test_a_compaction_while_nothing_is_tracked_is_told_by_name_if_it_keeps_changes_back(tmp_path: Path, producer: str) -> None:
    table = make(tmp_path, changelog_producer=producer, write_only="true", bucket="1")
    table.upsert(rows((MON, 1, 1, "a")))
    silent = table.alter(ts.SetOption("change-tracking", "false"))
    silent.compact(full=True)
    table = silent.alter(ts.SetOption("change-tracking", "true"))
    told_by_compaction = producer in ("lookup", "full-compaction")
    assert notes(table)[-1] == ("COMPACT", "false" if told_by_compaction else "true", None)
    assert [found.snapshot_id for found in table.changes(0).discontinuities()] == ([2] if told_by_compaction else [])
    assert told(table) == ([] if told_by_compaction else ["+I 5 1 a"])


def test_vectors_and_untracked_partitions(tmp_path: Path) -> None:
    table = track(make(tmp_path, **{"deletion-vectors.enabled": "true", "bucket": "1"}), "false", hour=1)
    table.upsert(rows((MON, 1, 1, "a"), (MON, 2, 1, "b")))
    table.upsert(rows((MON, 1, 1, "c"), (MON, 2, 1, "d")))
    assert told(table) == ["+I 5 2 b", "+U 5 2 d", "-U 5 2 b"]


@pytest.mark.parametrize("keyed", [True, False])
def test_an_overwrite_tells_what_it_did_to_tracked_partitions_only(tmp_path: Path, keyed: bool) -> None:
    table = make(tmp_path, keyed=keyed, streaming_read_overwrite="true", bucket="1" if keyed else "-1")
    write = table.upsert if keyed else table.append
    write(rows((MON, 1, 1, "a"), (TUE, 1, 1, "b")))
    table = track(table, "false", day=MON)
    table.overwrite(rows((MON, 1, 1, "A"), (TUE, 1, 1, "B")))
    changed = ["+U 6 1 B", "-U 6 1 b"] if keyed else ["+I 6 1 B", "-D 6 1 b"]
    assert told(table) == sorted(["+I 5 1 a", "+I 6 1 b", *changed])
    assert notes(table)[-1] == ("OVERWRITE", "true", [{"day": "2026-01-05"}])
    silent = table.alter(ts.SetOption("change-tracking", "false"))
    silent.overwrite(rows((TUE, 1, 1, "C")))
    assert notes(silent)[-1] == ("OVERWRITE", "false", None)
    assert [found.snapshot_id for found in silent.changes(0).discontinuities()] == [2, 3]


def test_a_reader_of_other_partitions_is_not_stopped(tmp_path: Path) -> None:
    table = track(make(tmp_path), "false", day=MON)
    table.upsert(rows((MON, 1, 1, "a"), (TUE, 1, 1, "b")))
    with pytest.raises(ts.NotFoundError, match="leaves out partitions"):
        table.changes(0).count()
    assert table.changes(0, filter="day = DATE '2026-01-06'").count() == 1
    read = list(table.consume(scan="from-timestamp", timestamp=0, filter="day > DATE '2026-01-05'", follow=False))
    assert [batch.rows.num_rows for batch in read] == [1]
    with pytest.raises(ts.NotFoundError, match="leaves out partitions"):
        table.changes(0, filter="v = 'a'").count()
    # It may be an hour of that day.
    with pytest.raises(ts.NotFoundError, match="leaves out partitions"):
        table.changes(0, filter="hour = 2").count()
