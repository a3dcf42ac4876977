"""``tablestore.tombstone-retention``: a row that comes late behind a delete stays deleted, for as long as the table says."""

from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from tablestore.errors import UnsupportedError
from tablestore.io.memory import MemoryFileStore
from tablestore.testing.deterministic import ManualClock
from tablestore.testing.lab import Lab
from tablestore.types.evolution.schemachanges import RemoveOption, SchemaChange, SetOption

NAMES = count()
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("q", pa.int64())])
HOUR = 3_600_000
DAY = 24 * HOUR


class Late:
    """A table by sequence, and its clock."""

    def __init__(self, **options: str) -> None:
        given = {"bucket": "1", "write-only": "true", "sequence.field": "q", "tablestore.tombstone-retention": "8 d"}
        self.clock = ManualClock()
        store = MemoryFileStore(f"late-{next(NAMES)}", clock=self.clock)
        options = {**given, **{name.replace("_", "-"): value for name, value in options.items()}}
        self.lab = Lab(store, schema=SCHEMA, options={k: v for k, v in options.items() if v}, clock=self.clock)

    def write(self, *rows: tuple[Any, ...]) -> None:
        """Rows (kind, id, v, q)."""
        table = pa.Table.from_pylist([dict(zip(("id", "v", "q"), row[1:], strict=True)) for row in rows], schema=SCHEMA)
        self.lab.open().write_changes(table.append_column("_row_kind", pa.array([row[0] for row in rows])))

    def compact(self) -> None:
        self.lab.open().compact(full=True)

    def rows(self, **how: Any) -> list[tuple[Any, ...]]:
        return sorted(tuple(row.values()) for row in self.lab.open().scan(**how).to_arrow().to_pylist())

    def deletes(self) -> int:
        return sum(self.lab.open().files()["delete_row_count"].to_pylist())


def test_a_late_row_behind_a_delete_stays_deleted_after_a_full_compaction() -> None:
    table = Late()
    table.write(("+I", 1, "a", 1), ("+I", 2, "b", 1))
    table.write(("-D", 1, "a", 5))
    table.compact()
    assert table.rows() == [(2, "b", 1)]
    assert table.deletes() == 1 and set(table.lab.open().files()["level"].to_pylist()) == {5}
    table.write(("+I", 1, "late", 3))
    assert table.rows() == [(2, "b", 1)]
    table.compact()
    assert table.rows() == [(2, "b", 1)]
    table.write(("+I", 1, "new", 6))
    assert table.rows() == [(1, "new", 6), (2, "b", 1)]
    table.compact()
    assert (table.rows(), table.deletes()) == ([(1, "new", 6), (2, "b", 1)], 0)


def test_without_the_option_a_full_compaction_drops_the_delete() -> None:
    table = Late(**{"tablestore.tombstone-retention": ""})
    table.write(("+I", 1, "a", 1), ("+I", 2, "b", 1))
    table.write(("-D", 1, "a", 5))
    table.compact()
    assert table.deletes() == 0
    table.write(("+I", 1, "late", 3))
    assert table.rows() == [(1, "late", 3), (2, "b", 1)]


@pytest.mark.deep
def test_a_delete_goes_once_it_is_older_than_the_retention_and_not_before() -> None:
    table = Late()
    table.write(("+I", 0, "stays", 1))
    made: dict[int, int] = {}
    for day in range(40):
        table.write(("+I", 1000 + day, "x", 1), ("-D", day + 1, "gone", 5))
        made[day + 1] = table.clock.now_ms()
        table.compact()
        age = [table.clock.now_ms() - at for at in made.values()]
        kept = table.deletes()
        # Pairs of time and number lie an eighth of the retention apart, here a day, and commits a day.
        assert sum(one < 8 * DAY for one in age) <= kept <= sum(one <= 11 * DAY for one in age), f"day {day}"
        assert len(table.rows()) == day + 2 == table.lab.open().scan().count()
        table.clock.advance(DAY / 1000)
    latest = table.lab.open().snapshots()[-1]
    assert len(latest.properties["tablestore.sequence-times"].split(",")) <= 12, "the note does not grow"
    table.clock.advance(30 * DAY / 1000)
    table.compact()
    assert table.deletes() == 0


def test_a_host_whose_clock_is_ahead_drops_no_young_delete() -> None:
    table = Late()
    table.write(("+I", 1, "a", 1), ("+I", 2, "b", 1))
    table.write(("-D", 1, "a", 5))
    ahead = ManualClock()
    ahead.advance(30 * DAY / 1000)
    table.lab.open(clock=ahead).compact(full=True)
    assert table.deletes() == 1
    table.write(("+I", 1, "late", 3))
    assert table.rows() == [(2, "b", 1)]


def test_compactions_come_to_an_end_while_deletes_are_kept() -> None:
    table = Late(**{"write-only": "false", "target-file-size": "1 b"})
    for day in range(12):
        table.write(*[("-D" if (key + day) % 3 else "+I", key, "x", day) for key in range(50)])
        table.clock.advance(6 * HOUR / 1000)
        before = table.rows()
        table.compact()
        snapshots = len(table.lab.open().snapshots())
        table.compact()
        assert len(table.lab.open().snapshots()) == snapshots, "what was compacted is not compacted again"
        assert table.rows() == before


def test_a_note_of_times_that_is_lost_or_damaged_keeps_deletes() -> None:
    table = Late()
    table.write(("-D", 1, "a", 5), ("+I", 2, "b", 1))
    for properties in ({}, {"tablestore.sequence-times": "yesterday"}):
        table.lab.make_foreign(table.lab.open().snapshots()[-1].id, properties=properties)
        table.clock.advance(9 * DAY / 1000)
        table.compact()
        assert table.deletes() == 1
    table.write(("+I", 3, "c", 1))
    table.clock.advance(9 * DAY / 1000)
    table.write(("+I", 4, "d", 1))
    table.compact()
    assert table.deletes() == 0


def test_kept_deletes_are_no_rows_to_filters_counts_and_changes() -> None:
    table = Late()
    table.write(*[("+I", key, f"{key}", 1) for key in range(6)])
    table.write(*[("-D", key, f"{key}", 5) for key in range(3)])
    table.compact()
    opened = table.lab.open()
    assert opened.scan().count() == 3
    assert table.rows(filter="id = 1") == [] and table.rows(filter="v = '1'") == []
    assert opened.scan(filter="q > 3").count() == 0
    last = opened.snapshots()[-1].id
    assert opened.changes(from_snapshot=last - 1, to_snapshot=last).to_arrow().num_rows == 0
    opened.delete("id = 5")
    assert table.rows() == [(3, "3", 1), (4, "4", 1)]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("deletion-vectors.enabled", "true"),
        ("changelog-producer", "lookup"),
        ("changelog-producer", "full-compaction"),
        ("merge-engine", "partial-update"),
    ],
)
def test_tables_whose_stored_rows_count_as_live_refuse_the_retention(option: str, value: str) -> None:
    table = Late(**{option: value})
    with pytest.raises(UnsupportedError, match="cannot keep deletes"):
        table.write(("+I", 1, "a", 1))


@pytest.mark.parametrize("engine", ["first-row", "partial-update", "aggregation"])
def test_another_merge_engine_begins_without_kept_deletes(engine: str) -> None:
    """To it a kept delete would be the first row of its key, or one that it cannot fold."""
    table = Late()
    table.write(("+I", 1, "a", 1), ("+I", 2, "b", 1))
    table.write(("-D", 1, "a", 5))
    table.compact()
    changes: list[SchemaChange] = [SetOption("merge-engine", engine), RemoveOption("sequence.field")]
    with pytest.raises(UnsupportedError, match=r"remove tablestore\.tombstone-retention.* and run table\.compact"):
        table.lab.open().alter([RemoveOption("tablestore.tombstone-retention"), *changes])
    table.lab.open().alter(RemoveOption("tablestore.tombstone-retention"))
    with pytest.raises(UnsupportedError, match=r"run table\.compact"):
        table.lab.open().alter(changes)
    table.compact()
    table.lab.open().alter(changes)
    table.write(("+I", 1, "new", 3))
    table.compact()
    assert table.rows() == [(1, "new", 3), (2, "b", 1)]
