"""What a commit does with the parts of a message that are not new rows: compacted files, changelog files, index files."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.format.manifest.indexmanifest import DELETION_VECTORS, DeletionVectorRange, IndexEntry
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.paths import index_path
from tablestore.format.snapshot import CommitKind, Snapshot
from tablestore.log.opening import ChangeLogs
from tablestore.store.commit.conflict import StalePlan
from tablestore.store.context import TableContext
from tablestore.store.message import CommitMessage, merge_messages
from tablestore.store.snapshots import LOG_OFFSETS_PROPERTY
from tablestore.table.write.committing import Effect, Origin, commit_message

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
COMPACT = Effect(kind=CommitKind.COMPACT, operation="COMPACT")


@pytest.fixture
def table(tmp_path: Path) -> ts.Table:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", schema=SCHEMA, primary_key=["id"], options={"write-only": "true"})
    table.upsert(pa.table({"id": [1, 2], "v": ["a", "b"]}, schema=SCHEMA))
    return table


def message(context: TableContext, **parts: tuple[object, ...]) -> CommitMessage:
    latest = context.snapshots.latest()
    return CommitMessage(
        table_uuid=context.table_uuid,
        schema_id=context.schema.id,
        base_snapshot_id=latest.id if latest else 0,
        created_millis=context.clock.now_ms(),
        **parts,  # type: ignore[arg-type]
    )


def live(context: TableContext) -> list[ManifestEntry]:
    return context.manifests.live(context.snapshots.latest())


def upgrade(entry: ManifestEntry, level: int) -> dict[str, tuple[ManifestEntry, ...]]:
    return {
        "compact_before": (replace(entry, kind=EntryKind.DELETE),),
        "compact_after": (replace(entry, file=replace(entry.file, level=level)),),
    }


def commit(context: TableContext, part: CommitMessage, effect: Effect = COMPACT) -> Snapshot:
    snapshot = commit_message(context, ChangeLogs().of(context), part, effect, Origin(user="compactor"))
    assert snapshot is not None
    return snapshot


def index_file(context: TableContext, name: str, entry: ManifestEntry) -> IndexEntry:
    context.files.write(index_path(name), b"\x01vector")
    return IndexEntry(
        kind=EntryKind.ADD,
        partition=entry.partition,
        bucket=entry.bucket,
        index_type=DELETION_VECTORS,
        file_name=name,
        file_size=7,
        row_count=1,
        deletion_vectors=(DeletionVectorRange(data_file=entry.file.file_name, offset=1, length=2),),
    )


def test_an_upgrade_moves_a_file_to_another_level_with_its_delete_first(table: ts.Table) -> None:
    context = table.context
    snapshot = commit(context, message(context, **upgrade(live(context)[0], 5)))
    assert [(entry.kind, entry.file.level) for entry in context.manifests.delta(snapshot)] == [
        (EntryKind.DELETE, 0),
        (EntryKind.ADD, 5),
    ]
    assert snapshot.commit_kind is CommitKind.COMPACT and snapshot.total_record_count == 2
    assert table.scan().count() == 2


def test_a_compaction_of_files_that_are_gone_is_stale_and_leaves_the_upgraded_file_alone(table: ts.Table) -> None:
    context = table.context
    stale = message(context, **upgrade(live(context)[0], 5))
    commit(context, message(context, **upgrade(live(context)[0], 4)))
    with pytest.raises(StalePlan, match="no longer live"):
        commit(context, stale)
    assert sorted(row["id"] for row in table.scan().to_arrow().to_pylist()) == [1, 2]


def test_a_compaction_into_a_level_that_others_filled_meanwhile_is_stale(table: ts.Table) -> None:
    context = table.context
    first = message(context, **upgrade(live(context)[0], 5))
    table.upsert(pa.table({"id": [2, 3], "v": ["c", "d"]}, schema=SCHEMA))
    newer = next(entry for entry in live(context) if entry.file.max_sequence_number > 0)
    commit(context, message(context, **upgrade(newer, 5)))
    with pytest.raises(StalePlan, match="overlap"):
        commit(context, first)


def test_a_failed_compaction_takes_away_what_it_wrote_and_nothing_else(table: ts.Table) -> None:
    context = table.context
    entry = live(context)[0]
    gone = replace(entry, kind=EntryKind.DELETE, file=replace(entry.file, file_name="data-gone.parquet"))
    folder = "bucket-0"
    made = {}
    for name in ("data-rewritten.parquet", "changelog-new.parquet"):
        context.files.write(f"{folder}/{name}", b"x")
        made[name] = replace(entry, file=replace(entry.file, file_name=name, level=5))
    index = index_file(context, "index-new", entry)
    part = message(
        context,
        compact_before=(gone,),
        compact_after=(made["data-rewritten.parquet"],),
        changelog=(made["changelog-new.parquet"],),
        index_changes=(index,),
    )
    with pytest.raises(StalePlan):
        commit(context, part)
    assert [info.name for info in context.files.list(folder)] == [entry.file.file_name]
    assert not list(context.files.list("index"))


def test_changelog_files_are_listed_beside_the_delta_and_counted(table: ts.Table) -> None:
    context = table.context
    entry = live(context)[0]
    changelog = replace(entry, file=replace(entry.file, file_name="changelog-1.parquet"))
    snapshot = commit(context, message(context, **upgrade(entry, 5), changelog=(changelog,)))
    assert context.manifests.changelog(snapshot) == [changelog]
    assert snapshot.changelog_record_count == 2 and snapshot.changelog_manifest_list_size
    assert snapshot.properties["tablestore.tracked"] == "true"
    table.upsert(pa.table({"id": [9], "v": ["z"]}, schema=SCHEMA))
    latest = context.snapshots.latest()
    assert latest is not None and latest.changelog_manifest_list is None


def test_index_files_are_inherited_replaced_and_refused_when_somebody_else_replaced_them(table: ts.Table) -> None:
    context = table.context
    entry = live(context)[0]
    one = index_file(context, "index-1", entry)
    first = commit(context, message(context, index_changes=(one,)))
    assert context.manifests.read_index(first) == (one,)
    two = index_file(context, "index-2", entry)
    replacing = message(context, index_changes=(replace(one, kind=EntryKind.DELETE), two))
    assert context.manifests.read_index(commit(context, replacing)) == (two,)
    table.upsert(pa.table({"id": [9], "v": ["z"]}, schema=SCHEMA))
    latest = context.snapshots.latest()
    assert latest is not None and context.manifests.read_index(latest) == (two,)
    with pytest.raises(StalePlan, match="index file index-1"):
        commit(context, replace(replacing, index_changes=(replace(one, kind=EntryKind.DELETE),)))


def test_vectors_go_with_the_last_of_their_files(table: ts.Table) -> None:
    context = table.context
    commit(context, message(context, index_changes=(index_file(context, "index-1", live(context)[0]),)))
    snapshot = table.overwrite(pa.table({"id": [7], "v": ["x"]}, schema=SCHEMA))
    assert snapshot is not None and context.manifests.read_index(snapshot) == ()


def test_an_upgrade_keeps_the_vectors_of_its_file(table: ts.Table) -> None:
    context = table.context
    vector = index_file(context, "index-1", live(context)[0])
    commit(context, message(context, index_changes=(vector,)))
    assert context.manifests.read_index(commit(context, message(context, **upgrade(live(context)[0], 5)))) == (vector,)


def test_a_compaction_planned_under_an_older_schema_lands_and_rows_that_do_not_fit_it_do_not(table: ts.Table) -> None:
    context = table.context
    part = message(context, **upgrade(live(context)[0], 5))
    writer = table.new_writer()
    writer.write(pa.table({"id": [9], "v": ["z"]}, schema=SCHEMA))
    fields = tuple(replace(field, name=field.name.upper()) for field in context.schema.fields if field.name != "id")
    assert context.schemas.publish(replace(context.schema, id=1, fields=(context.schema.field("id"), *fields)))
    assert commit(context, part).id == 2
    with pytest.raises(ts.errors.ConflictError, match=r"schema 1 now.*column 'v' is 'V' now"):
        writer.commit()


def test_a_commit_that_knows_of_no_log_hands_on_where_it_was(table: ts.Table) -> None:
    context = table.context
    noted = {LOG_OFFSETS_PROPERTY: '{"log":"x","offsets":{"0":7}}'}
    commit(context, message(context), Effect(properties=noted, allow_empty=True))
    assert table.upsert(pa.table({"id": [3], "v": ["c"]}, schema=SCHEMA))
    table.compact(full=True)
    text = noted[LOG_OFFSETS_PROPERTY]
    assert [s.properties.get(LOG_OFFSETS_PROPERTY) for s in table.snapshots()] == [None, text, text, text]
    assert table.snapshots()[-1].commit_kind is CommitKind.COMPACT


def test_a_message_travels_as_bytes_with_all_its_parts(table: ts.Table) -> None:
    context = table.context
    entry = live(context)[0]
    whole = message(
        context, entries=(entry,), changelog=(entry,), index_changes=(index_file(context, "index-1", entry),), **upgrade(entry, 3)
    )
    assert CommitMessage.from_bytes(whole.to_bytes()) == whole
    doubled = merge_messages([whole, whole])
    assert doubled is not None
    parts: list[Callable[[CommitMessage], tuple[object, ...]]] = [
        lambda m: m.entries,
        lambda m: m.compact_before,
        lambda m: m.compact_after,
        lambda m: m.changelog,
        lambda m: m.index_changes,
    ]
    assert all(part(doubled) == part(whole) * 2 for part in parts)
