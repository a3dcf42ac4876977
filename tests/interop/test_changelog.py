"""Changelogs across implementations: streaming readers of others follow our tables, and we follow theirs.

Each side writes with each producer, compacts what the other wrote, and both must tell the same changes. Known differences:

    pypaimon     has no lookup and no full-compaction producer of its own; it reads the changelog files of ours
    all others   tell the changes of a plain table as its level-0 files hold them: no -U, and nothing but the key in a -D of ours
"""

import random
from pathlib import Path
from typing import Any

import ours
import pytest
from canonical import Row
from oracles import JavaOracle
from ours import Ours
from random_tables import TableSpec, number_fields

import tablestore as ts

pytestmark = pytest.mark.interop

PRODUCERS = ("none", "input", "lookup", "full-compaction")
Change = tuple[str, Row]


def spec_of(producer: str, **options: str) -> TableSpec:
    return TableSpec(
        number_fields(
            [
                {"name": "k", "type": "INT NOT NULL"},
                {"name": "p", "type": "STRING NOT NULL"},
                {"name": "v", "type": "BIGINT"},
                {"name": "d", "type": "DECIMAL(20, 3)"},
            ]
        ),
        ("k", "p"),
        partition_by=("p",),
        options={"bucket": "2", "changelog-producer": producer, **options},
    )


def batch(rng: random.Random) -> tuple[list[Row], list[str]]:
    rows = [
        {"k": rng.randrange(12), "p": rng.choice(["a", "b"]), "v": rng.randrange(100), "d": f"{rng.randrange(10**6) / 1000:.3f}"}
        for _ in range(rng.choice([1, 15, 30]))
    ]
    return rows, [rng.choice(["+I", "+I", "+I", "-D"]) for _ in rows]


def by_key(changes: list[Change]) -> dict[str, list[Change]]:
    """The changes of each key, in order: all that two implementations must agree on."""
    found: dict[str, list[Change]] = {}
    for kind, row in changes:
        found.setdefault(f"{row['k']} {row['p']}", []).append((kind, row))
    return found


def _kinds_by_key(changes: list[Change]) -> dict[str, list[str]]:
    return {key: [kind for kind, _ in found] for key, found in by_key(changes).items()}


def told_by_us(path: Path, last: int, *, pairs: bool = True) -> list[Change]:
    rows = ts.open_table(str(path)).changes(0, last, pairs=pairs)
    return [(row.pop("_row_kind"), row) for row in ours.canonical.encode_rows(rows.to_arrow())]


def folded(changes: list[Change]) -> list[Row]:
    state: dict[str, Row] = {}
    for kind, row in changes:
        key = f"{row['k']} {row['p']}"
        if kind in ("+I", "+U"):
            state[key] = row
        else:
            state.pop(key, None)
    return sorted(state.values(), key=repr)


def latest(path: Path) -> int:
    return ts.open_table(str(path)).snapshots()[-1].id


@pytest.mark.deep
@pytest.mark.parametrize("producer", PRODUCERS)
def test_java_follows_our_tables_and_is_told_what_we_tell(java: JavaOracle, warehouse: Path, producer: str) -> None:
    rng = random.Random(f"ours {producer}")
    path = warehouse / "db.db" / "t"
    us = Ours()
    ours.create(us, path, spec_of(producer))
    for _ in range(6):
        rows, kinds = batch(rng)
        us.write(path, rows, kinds=kinds)
    us.compact(path)
    theirs = java.changes(path, from_snapshot=0, to_snapshot=latest(path))
    # A plain table's changes are its level-0 files to others: they know no rows before.
    mine = told_by_us(path, latest(path), pairs=producer != "none")
    assert theirs
    if producer == "none":
        assert _kinds_by_key(theirs) == _kinds_by_key(mine)
    else:
        assert by_key(theirs) == by_key(mine)
    assert folded(theirs) == folded(told_by_us(path, latest(path))) == sorted(us.read(path), key=repr)


@pytest.mark.deep
@pytest.mark.parametrize("producer", PRODUCERS)
def test_we_follow_tables_that_java_wrote_and_compacted(java: JavaOracle, warehouse: Path, producer: str) -> None:
    rng = random.Random(f"java {producer}")
    path = warehouse / "db.db" / "t"
    ours.create(java, path, spec_of(producer))
    for _ in range(6):
        rows, kinds = batch(rng)
        java.write(path, rows, kinds=kinds)
    last = java.compact(path)
    mine = told_by_us(path, last)
    if producer != "none":
        assert by_key(mine) == by_key(java.changes(path, from_snapshot=0, to_snapshot=last))
    assert folded(mine) == sorted(java.read(path), key=repr)


@pytest.mark.deep
@pytest.mark.parametrize("producer", ["lookup", "full-compaction"])
def test_writers_that_take_turns_tell_each_change_once(java: JavaOracle, warehouse: Path, producer: str) -> None:
    rng = random.Random(f"turns {producer}")
    path = warehouse / "db.db" / "t"
    us = Ours()
    ours.create(us, path, spec_of(producer))
    for step in range(8):
        rows, kinds = batch(rng)
        if step % 2:
            java.write(path, rows, kinds=kinds)
        else:
            us.write(path, rows, kinds=kinds)
        if step % 3 == 2:
            java.compact(path) if step % 2 else us.compact(path)
    us.compact(path)
    last = latest(path)
    mine = told_by_us(path, last)
    assert by_key(mine) == by_key(java.changes(path, from_snapshot=0, to_snapshot=last))
    state: dict[str, Any] = {}
    for kind, row in mine:
        key = f"{row['k']} {row['p']}"
        if kind in ("-U", "-D"):
            assert state.pop(key) == row
        else:
            assert key not in state
            state[key] = row
    assert sorted(state.values(), key=repr) == sorted(us.read(path), key=repr) == sorted(java.read(path), key=repr)


@pytest.mark.deep
@pytest.mark.parametrize("producer", ["input", "lookup", "full-compaction"])
@pytest.mark.parametrize("reader_name", ["pypaimon_pure"])
def test_pypaimon_reads_the_changes_of_our_tables(
    request: pytest.FixtureRequest, warehouse: Path, reader_name: str, producer: str
) -> None:
    reader = request.getfixturevalue(reader_name)
    rng = random.Random(f"pypaimon {producer}")
    path = warehouse / "db.db" / "t"
    us = Ours()
    ours.create(us, path, spec_of(producer))
    for _ in range(4):
        rows, kinds = batch(rng)
        us.write(path, rows, kinds=kinds)
    us.compact(path)
    theirs = reader.changes(path, from_snapshot=0, to_snapshot=latest(path))
    assert by_key(theirs) == by_key(told_by_us(path, latest(path)))


@pytest.mark.deep
def test_changes_without_effect_are_left_out_by_both(java: JavaOracle, warehouse: Path) -> None:
    option = {"changelog-producer.row-deduplicate": "true"}
    rows = [{"k": k, "p": "a", "v": 1, "d": None} for k in range(5)]
    told = []
    for name, writer in (("ours", Ours()), ("theirs", java)):
        path = warehouse / "db.db" / name
        ours.create(writer, path, spec_of("lookup", **option))
        writer.write(path, rows)
        writer.write(path, [*rows[:3], {"k": 3, "p": "a", "v": 2, "d": "0.500"}])
        told.append(by_key(told_by_us(path, latest(path))))
        assert told[-1] == by_key(java.changes(path, from_snapshot=0, to_snapshot=latest(path)))
    assert told[0] == told[1]
    assert [kind for kind, _ in told[0]["3 a"]] == ["+I", "-U", "+U"]
    assert [kind for kind, _ in told[0]["1 a"]] == ["+I"]
