"""What is computed from the columns of manifests is what a walk over the objects finds, all along the lives of tables."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

from tablestore.errors import ConflictError
from tablestore.format.binaryrow import decode_row
from tablestore.format.manifest.entrycolumns import ENTRY_SCHEMA
from tablestore.format.manifest.liveset import live_entries
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.io.memory import MemoryFileStore
from tablestore.store import manifests as manifests_module
from tablestore.store.datapaths import entry_path
from tablestore.table.table import Table
from tablestore.testing.deterministic import ManualClock
from tablestore.testing.holdings import Holdings
from tablestore.testing.lab import Lab

COLUMNS = pa.schema(
    [pa.field("day", pa.int32(), nullable=False), pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.string())]
)
STEPS = 14
Names = Iterator[int]


@pytest.fixture(autouse=True)
def few_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every manifest is read as columns, but those of one entry: both kinds are met in one list."""
    monkeypatch.setattr(manifests_module, "_FEW_ENTRIES", 1)


def numbered(rng: random.Random, days: list[int]) -> pa.Table:
    rows = [{"day": day, "id": number, "v": f"{rng.random()}"} for day in days for number in rng.sample(range(20), 4)]
    return pa.Table.from_pylist(rows, COLUMNS)


def write(table: Table, rng: random.Random, names: Names) -> None:
    rows = numbered(rng, rng.sample(range(4), rng.randint(1, 3)))
    table.upsert(rows) if table.primary_key else table.append(rows)


def overwrite(table: Table, rng: random.Random, names: Names) -> None:
    day = rng.randrange(4)
    table.overwrite(numbered(rng, [day]), {"day": day})


def compact(table: Table, rng: random.Random, names: Names) -> None:
    table.compact(full=rng.random() < 0.5)


def delete(table: Table, rng: random.Random, names: Names) -> None:
    table.delete(f"id < {rng.randrange(20)} AND day = {rng.randrange(4)}")


def rollback(table: Table, rng: random.Random, names: Names) -> None:
    table.rollback_to(rng.choice(table.snapshots()).id)


def tag(table: Table, rng: random.Random, names: Names) -> None:
    table.create_tag(f"t{next(names)}")


def branch(table: Table, rng: random.Random, names: Names) -> None:
    table.create_branch(f"b{next(names)}", snapshot_id=table.snapshots()[-1].id)


def fast_forward(table: Table, rng: random.Random, names: Names) -> None:
    number = next(names)
    table.create_branch(f"b{number}", snapshot_id=rng.choice(table.snapshots()).id)
    with suppress(ConflictError):
        table.fast_forward(f"b{number}", discard_newer=True)


def expire(table: Table, rng: random.Random, names: Names) -> None:
    table.expire_snapshots(retain_min=1, retain_max=rng.randint(1, 3))


OPERATIONS: tuple[Callable[[Table, random.Random, Names], None], ...] = (
    *(write, write, overwrite, compact, delete),
    *(rollback, tag, branch, fast_forward, expire),
)


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_lives(keyed: bool, seed: int) -> None:
    rng, clock = random.Random(seed), ManualClock()
    lab = Lab(
        MemoryFileStore(f"walks-{keyed}-{seed}", clock=clock),
        keyed=keyed,
        schema=COLUMNS,
        primary_key=("day", "id"),
        partition_by=("day",),
        options={"write-only": "true", "bucket": "2" if keyed else "-1", "manifest.merge-min-count": str(rng.choice([2, 30]))},
        clock=clock,
    )
    names = iter(range(100))
    write(lab.open(), rng, names)
    for _ in range(STEPS):
        rng.choice(OPERATIONS)(lab.open(), rng, names)
        check(lab.open(), rng)
        assert Holdings(lab.files).missing() == {}
    lab.open().expire_snapshots(retain_min=1, retain_max=1)
    # Whatever is no longer needed has gone, and nothing else.
    clock.advance(10**9)
    lab.open().remove_orphan_files(dry_run=False)
    assert Holdings(lab.files).missing() == {}
    assert Holdings(lab.files).unheld() == set()
    check(lab.open(), rng)


@pytest.mark.deep
@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_lives_with_sidecars(keyed: bool, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same files are found in them, in an order of their own, and the same plans, counts and sums are made of them."""
    monkeypatch.setattr(manifests_module, "FEWEST_ENTRIES", 2)
    rng, clock = random.Random(seed), ManualClock()
    lab = Lab(
        MemoryFileStore(f"sidecars-{keyed}-{seed}", clock=clock),
        keyed=keyed,
        schema=COLUMNS,
        primary_key=("day", "id"),
        partition_by=("day",),
        options={"write-only": "true", "bucket": "2" if keyed else "-1", "manifest.merge-min-count": str(rng.choice([2, 30]))},
        clock=clock,
    )
    names = iter(range(100))
    write(lab.open(), rng, names)
    opened = []
    read = manifests_module.open_sidecar
    monkeypatch.setattr(manifests_module, "open_sidecar", lambda *given: opened.append(given) or read(*given))
    for _ in range(STEPS):
        rng.choice((write, write, overwrite, compact, delete, rollback))(lab.open(), rng, names)
        table = lab.open()
        manifests, latest = table.context.manifests, table.context.snapshots.latest()
        live = live_entries(map(manifests.read_manifest, (one.file_name for one in manifests.all_manifests(latest)))).values()
        assert sorted(manifests.live_columns(latest, ENTRY_SCHEMA.names).entries(), key=repr) == sorted(live, key=repr)
        assert sorted(file.file_name for file in table.scan().plan.files) == sorted(entry.file.file_name for entry in live)
        assert table.scan().count() == table.scan().to_arrow().num_rows
        counted = table.partitions().column("file_count").to_pylist()
        assert counted == [len(entries) for entries in grouped(list(live), lambda entry: entry.partition)]
    assert opened


def check(table: Table, rng: random.Random) -> None:
    context = table.context
    for snapshot in table.snapshots():
        live = context.manifests.live(snapshot)
        assert list(context.manifests.live_columns(snapshot, ENTRY_SCHEMA.names).entries()) == live
        columns = context.manifests.live_columns(snapshot, ("file_name", "row_count"))
        assert columns.table.to_pylist() == [{"file_name": e.file.file_name, "row_count": e.file.row_count} for e in live]
        places = {(entry.partition, entry.bucket) for entry in live if rng.random() < 0.5}
        chosen = [entry for entry in live if (entry.partition, entry.bucket) in places]
        assert context.manifests.live_in(snapshot, places.__contains__) == chosen
        assert context.manifests.live_named(snapshot, {entry.file.file_name for entry in chosen}) == chosen
    assert table.scan().count() == table.scan().to_arrow().num_rows
    check_listings(table, context.manifests.live(context.snapshots.latest()))


def check_listings(table: Table, live: list[ManifestEntry]) -> None:
    context = table.context
    days = {entry.partition: decode_row(entry.partition, [context.schema.partition_fields[0].type])[0] for entry in live}
    in_order = sorted(live, key=lambda e: (e.partition, e.bucket, e.file.level, e.file.file_name))
    assert table.files().select(["partition", "bucket", "file_path", "row_count", "level"]).to_pylist() == [
        {
            "partition": f"day={days[entry.partition]}",
            "bucket": entry.bucket,
            "file_path": entry_path(context.paths, entry, context.schema),
            "row_count": entry.file.row_count,
            "level": entry.file.level,
        }
        for entry in in_order
    ]
    assert table.partitions().drop_columns("last_update_time").to_pylist() == [
        {"partition": f"day={days[entries[0].partition]}", **sums(entries, "file_size_bytes")}
        for entries in grouped(live, lambda entry: days[entry.partition])
    ]
    wanted = ["record_count", "file_size_in_bytes", "file_count"]
    by_partition = grouped(live, lambda entry: entry.partition)
    assert table.system("partitions").to_arrow().select(wanted).to_pylist() == [sums(e, "file_size_in_bytes") for e in by_partition]
    by_bucket = grouped(live, lambda entry: (entry.partition, entry.bucket))
    assert table.system("buckets").to_arrow().select(["bucket", *wanted]).to_pylist() == [
        {"bucket": entries[0].bucket, **sums(entries, "file_size_in_bytes")} for entries in by_bucket
    ]
    assert [path.rpartition("/")[2] for path in table.system("files").to_arrow().column("file_path").to_pylist()] == [
        entry.file.file_name for entry in in_order
    ]


def grouped(live: list[ManifestEntry], group: Callable[[ManifestEntry], Any]) -> list[list[ManifestEntry]]:
    groups: dict[Any, list[ManifestEntry]] = defaultdict(list)
    for entry in live:
        groups[group(entry)].append(entry)
    return [groups[key] for key in sorted(groups)]


def sums(entries: list[ManifestEntry], size: str) -> dict[str, int]:
    return {
        "record_count": sum(entry.file.row_count for entry in entries),
        "file_count": len(entries),
        size: sum(entry.file.file_size for entry in entries),
    }
