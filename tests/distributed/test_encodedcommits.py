"""Commits of many tasks whose files stay encoded have the outcome of those whose files are objects."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.distributed.spec import TableSpec
from tablestore.distributed.write import abort_messages, commit_messages, prepare_write, write_partition
from tablestore.errors import ConflictError
from tablestore.format.manifest import encodedentries
from tablestore.format.manifest.encodedentries import EncodedEntries
from tablestore.store import manifests as manifests_module
from tablestore.store.message import CommitMessage
from tablestore.table.inspect.check import check_table
from tablestore.table.table import Table

ROWS = pa.schema([pa.field("day", pa.int32(), nullable=False), pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
TASKS = 20
# The base and what else happens before the commit, and how it is made.
Before = Callable[[Table], object]


def rows(rng: random.Random, ids: range) -> pa.Table:
    return pa.table({"day": [rng.randrange(3) for _ in ids], "id": list(ids), "v": [f"{rng.random()}" for _ in ids]}, schema=ROWS)


def create(path: Path, *, keyed: bool, **options: str) -> Table:
    catalog = ts.open_catalog(str(path))
    catalog.create_database("d")
    options = {"bucket": "2" if keyed else "-1", **options}
    return catalog.create_table("d.t", ROWS, primary_key=["day", "id"] if keyed else (), partition_by=["day"], options=options)


def messages_of(table: Table, seed: int, *, apart: bool) -> list[bytes]:
    rng = random.Random(seed)
    job = prepare_write(table, TableSpec(location=table.location, storage_options={}), rows=ROWS)
    starts = [task * 10 if apart else rng.randrange(50) for task in range(TASKS)]
    parts = [rows(rng, range(start, start + 8)) for start in starts]
    return [write_partition(job, part.to_batches(), task).to_bytes() for task, part in enumerate(parts)]


def outcome_of(table: Table) -> list[object]:
    """What a table and its newest snapshot say, but for names and times."""
    table = ts.open_table(table.location)
    snapshot, context = table.snapshots()[-1], table.context
    live = context.manifests.live(context.snapshots.latest())
    names = sorted(entry.file.row_count for entry in live)
    said = {key: value for key, value in snapshot.properties.items() if key.startswith("tablestore.") and "row" in key}
    counts = (snapshot.id, snapshot.commit_kind, snapshot.total_record_count, snapshot.delta_record_count, said)
    assert [finding for finding in check_table(context) if finding.kind != "orphan"] == []
    return [counts, names, sorted(table.to_arrow().to_pylist(), key=repr), table.scan().count(), table.partitions().num_rows]


def nothing(table: Table) -> None:
    """No other commit lands."""


def some_rows(table: Table) -> None:
    write = table.upsert if table.primary_key else table.append
    write(rows(random.Random(9), range(0, 60, 3)))


@pytest.mark.deep_after(8)
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "append"])
@pytest.mark.parametrize("apart", [True, False], ids=["apart", "overlapping"])
@pytest.mark.parametrize("base", [nothing, some_rows], ids=["empty", "rows"])
@pytest.mark.parametrize("meanwhile", [nothing, some_rows], ids=["alone", "beside"])
@pytest.mark.parametrize("overwrite", [False, True], ids=["write", "overwrite"])
def test_the_outcome_is_that_of_objects(
    tmp_path: Path, keyed: bool, apart: bool, base: Before, meanwhile: Before, overwrite: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifests_module, "FEWEST_ENTRIES", 4)
    table = create(tmp_path / "a", keyed=keyed, **{"write-only": "true"})
    base(table)
    messages = messages_of(table, 1, apart=apart)
    meanwhile(table)
    outcomes = []
    for fewest in (10**9, 1):
        monkeypatch.setattr(encodedentries, "FEWEST_ENTRIES", fewest)
        shutil.rmtree(tmp_path / "b", ignore_errors=True)
        shutil.copytree(tmp_path / "a", tmp_path / "b")
        copy = ts.open_table(str(tmp_path / "b" / "d.db" / "t"))
        parsed = CommitMessage.all_from_bytes(messages)
        assert all(isinstance(message.entries, EncodedEntries) == (fewest == 1) for message in parsed)
        snapshot = commit_messages(copy, parsed, overwrite=overwrite)
        again = commit_messages(copy, CommitMessage.all_from_bytes(messages), overwrite=overwrite)
        assert snapshot is not None and again == snapshot, "committed again, nothing changes"
        outcomes.append(outcome_of(copy))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("options", [{}, {"deletion-vectors.enabled": "true"}, {"bucket": "-1"}, {"bucket": "-2"}])
def test_a_table_that_compacts_has_dynamic_or_postponed_buckets_takes_them(
    tmp_path: Path, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encodedentries, "FEWEST_ENTRIES", 1)
    table = create(tmp_path / "a", keyed=True, **options)
    some_rows(table)
    parsed = CommitMessage.all_from_bytes(messages_of(table, 2, apart=False))
    assert isinstance(parsed[0].entries, EncodedEntries)
    base = rows(random.Random(9), range(0, 60, 3)).to_pylist()
    expected = {(row["day"], row["id"]): row["v"] for row in base}
    rng = random.Random(2)
    starts = [rng.randrange(50) for _ in range(TASKS)]
    for start in starts:
        expected |= {(row["day"], row["id"]): row["v"] for row in rows(rng, range(start, start + 8)).to_pylist()}
    assert commit_messages(table, parsed) is not None
    table = ts.open_table(table.location)
    table.compact(full=True)
    assert {(row["day"], row["id"]): row["v"] for row in ts.open_table(table.location).to_arrow().to_pylist()} == expected


def test_what_is_refused_or_given_up_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encodedentries, "FEWEST_ENTRIES", 1)
    table = create(tmp_path / "a", keyed=True)
    some_rows(table)
    before = sorted(Path(table.location).glob("day=*/*/*.parquet"))
    parsed = CommitMessage.all_from_bytes(messages_of(table, 3, apart=True))
    abort_messages(table, parsed)
    assert sorted(Path(table.location).glob("day=*/*/*.parquet")) == before
    with pytest.raises(ConflictError, match="are gone"):
        commit_messages(table, parsed)
    first = messages_of(table, 4, apart=True)
    assert commit_messages(table, CommitMessage.all_from_bytes(first)) is not None
    with pytest.raises(ConflictError, match="have landed before"):
        commit_messages(table, CommitMessage.all_from_bytes([*first, *messages_of(table, 5, apart=True)]))
    count = ts.open_table(table.location).scan().count()
    assert count == len(ts.open_table(table.location).to_arrow()), "nothing that landed was removed"
