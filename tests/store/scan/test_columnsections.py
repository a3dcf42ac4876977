"""Files that are columns come out in the splits, sections and runs that the same files come out in as objects."""

import random
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tablestore.distributed import splitcolumns
from tablestore.distributed.read import ReadTask, pack_tasks
from tablestore.distributed.splitcolumns import decode_columns, encoded_splits
from tablestore.errors import FormatError, UnsupportedError
from tablestore.format.binaryrow import EMPTY_ROW, encode_row
from tablestore.format.manifest import entrycolumns
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.manifest.entrycolumns import MANIFEST, ROW, EntryColumns, LateColumns
from tablestore.format.manifest.indexmanifest import DELETION_VECTORS, DeletionVectorRange, IndexEntry
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.stats import EMPTY_STATS
from tablestore.store.scan import splits as splits_module
from tablestore.store.scan.columnsections import PlannedColumns, column_splits
from tablestore.store.scan.scanplan import WantedFiles, deletion_files, plan_splits
from tablestore.store.scan.splits import ColumnSplits, Split, have_deletions, rows_of, sizes_of, weights_of
from tablestore.store.settings import table_settings
from tablestore.types.newschema import new_schema
from tablestore.types.schema import POSTPONE_BUCKET, TableSchema

COLUMNS = pa.schema([("p", pa.int64()), ("id", pa.int64()), ("s", pa.string()), ("x", pa.float64())])
EXTREMES = [-(2**63), -1, 0, 1, 2**63 - 1]


def schema_of(*key: str, **options: str) -> TableSchema:
    given = {
        "bucket": "3",
        **({} if key else {"bucket-key": "id"}),
        **options,
    }
    return new_schema(schema=COLUMNS, primary_key=["p", *key] if key else (), partition_by=["p"], options=given)


def entries_of(schema: TableSchema, rng: random.Random, count: int, *, spread: int) -> list[ManifestEntry]:
    """Files of which many have keys, sequence numbers or names of others. ``spread``: the fewer, the more overlap."""
    types = [field.type for field in schema.key_fields]
    partition_types = [field.type for field in schema.partition_fields]

    def key(number: int) -> tuple[Any, ...]:
        values = {
            "id": rng.choice(EXTREMES) if rng.random() < 0.05 else number,
            "s": chr(0x61 + number % 26) * (number % 9),
            "x": number / 2,
        }
        return tuple(values[field.name] for field in schema.key_fields)

    entries = []
    for number in range(count):
        start = rng.randrange(spread)
        low, high = sorted([key(start), key(start + rng.randrange(spread // 20 + 2))])
        sequence = rng.randrange(count // 4 + 1)
        file = DataFileMeta(
            file_name=f"f{rng.randrange(10**9)}-{number}.{'orc' if rng.random() < 0.1 else 'parquet'}",
            file_size=rng.choice([1, 300_000, 2_000_000, 9_000_000, 20_000_000]),
            row_count=rng.randrange(1_000),
            min_key=encode_row(low, types) if types else EMPTY_ROW,
            max_key=encode_row(high, types) if types else EMPTY_ROW,
            key_stats=EMPTY_STATS,
            value_stats=EMPTY_STATS,
            min_sequence_number=sequence,
            max_sequence_number=sequence + rng.randrange(3),
            schema_id=0,
            level=rng.randrange(3),
        )
        bucket = POSTPONE_BUCKET if rng.random() < 0.03 else rng.randrange(3)
        partition = encode_row((rng.choice([7, -7, 300]),), partition_types)
        entries.append(ManifestEntry(kind=EntryKind.ADD, partition=partition, bucket=bucket, total_buckets=3, file=file))
    return entries


def in_columns(
    entries: list[ManifestEntry], schema: TableSchema, index: list[IndexEntry], *, is_late: bool = False, **given: Any
) -> ColumnSplits:
    settings = table_settings(schema)
    planned = PlannedColumns(schema, settings, given.pop("wanted", None), is_late=is_late, has_vectors=bool(index))
    cut = len(entries) // 3
    manifests = [EntryColumns.of(part) for part in (entries[:cut], entries[cut:], [])]

    def selected(number: int) -> EntryColumns:
        manifest = manifests[number]
        names = [name for name in planned.names(manifest) if name not in (MANIFEST, ROW)]
        places = {MANIFEST: np.full(len(manifest), number), ROW: np.arange(len(manifest))}
        table = manifest.select(names).table
        for name in (MANIFEST, ROW) if is_late else ():
            table = table.append_column(name, pa.array(places[name], pa.int64()))
        return EntryColumns(table)

    parts = [planned.part(selected(number)) for number in range(len(manifests))]
    options = {"keeps": lambda *_: True, "split_bytes": 8 << 20, "vectors": deletion_files(index), **given}
    load = lambda number, rows, names: manifests[number].at_rows(rows, names)  # noqa: E731
    return column_splits(parts, schema, settings, load=load, **options)


def in_objects(entries: list[ManifestEntry], schema: TableSchema, index: list[IndexEntry]) -> tuple[Split, ...]:
    return plan_splits(entries, index, schema, table_settings(schema), None, file_fields={})


@pytest.mark.deep_after(8)
@pytest.mark.parametrize("spread", [5, 200, 100_000])
@pytest.mark.parametrize(
    "schema",
    [
        schema_of("id"),
        schema_of("s"),
        schema_of("id", "s"),
        schema_of("x"),
        schema_of("id", **{"merge-engine": "first-row"}),
        schema_of("id", **{"deletion-vectors.enabled": "true"}),
        schema_of(),
    ],
    ids=["number", "text", "two columns", "no order", "first row", "vectors", "append"],
)
@pytest.mark.parametrize("is_late", [False, True], ids=["whole", "late"])
def test_the_splits_are_those_of_objects(schema: TableSchema, spread: int, is_late: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splits_module, "FILES_LOADED", 40)
    monkeypatch.setattr(splitcolumns, "FILES_LOADED", 30)
    rng = random.Random(f"{schema.primary_keys} {spread}")
    entries = entries_of(schema, rng, 150, spread=spread)
    marked = [DeletionVectorRange(data_file=one.file.file_name, offset=n, length=9) for n, one in enumerate(entries[::7])]
    index = [
        IndexEntry(
            kind=EntryKind.ADD,
            partition=entries[0].partition,
            bucket=0,
            index_type=DELETION_VECTORS,
            file_name="index-1",
            file_size=1,
            row_count=1,
            deletion_vectors=tuple(marked),
        )
    ]
    splits, expected = in_columns(entries, schema, index, is_late=is_late), in_objects(entries, schema, index)
    assert isinstance(splits.files, LateColumns) == is_late
    assert tuple(splits) == expected
    assert tuple(splits[place] for place in range(len(splits))) == expected
    assert splits[-1] == expected[-1] and tuple(splits[3:9]) == expected[3:9] and tuple(splits[5:5]) == ()
    for of in (weights_of, sizes_of, rows_of):
        assert of(splits).tolist() == of(expected).tolist()
    assert have_deletions(splits) and have_deletions(expected)
    merged = [file for split in expected for section in split.sections if section.needs_merge for file in section.files]
    assert splits.merged_files == len(merged)
    task = ReadTask(table_uuid=None, schema_id=0, columns=("x",), filter=None, positions=False, splits=splits[2:-1])
    parsed = ReadTask.from_bytes(task.to_bytes())
    assert replace(parsed, splits=tuple(parsed.splits)) == replace(task, splits=expected[2:-1])
    for (task_bytes, parallelism), most_reads in product(((1, 1), (30 << 20, 1), (1 << 40, 4), (1 << 40, 1)), (0, 99)):
        # Each manifest is loaded once for all tasks, or for each of them.
        monkeypatch.setattr(entrycolumns, "_MOST_READS", most_reads)
        tasks = pack_tasks(splits, task_bytes=task_bytes, parallelism=parallelism)
        assert tuple(split for one in tasks for split in one) == expected
        assert all(len(one) == 1 or sum(split.weight for split in one) <= task_bytes for one in tasks)
    assert splits.buckets() == {(split.partition, split.bucket) for split in expected}


def test_the_order_of_the_manifests_does_not_matter() -> None:
    rng = random.Random(3)
    for schema in (schema_of("id"), schema_of()):
        entries = entries_of(schema, rng, 200, spread=10)
        shuffled = rng.sample(entries, len(entries))
        for is_late in (False, True):
            assert tuple(in_columns(shuffled, schema, [], is_late=is_late)) == in_objects(entries, schema, [])


def test_only_wanted_files_and_kept_buckets_are_there() -> None:
    schema = schema_of("id")
    entries = entries_of(schema, random.Random(4), 200, spread=1_000)
    place = (entries[0].partition, 1)
    wanted = WantedFiles(in_place=place.__eq__, at_level=lambda level: level > 0)
    expected = in_objects([one for one in entries if wanted.has(one)], schema, [])
    assert expected
    assert tuple(in_columns(entries, schema, [], wanted=wanted.mask)) == expected
    kept = in_columns(entries, schema, [], keeps=lambda partition, bucket, total: (partition, bucket, total) == (*place, 3))
    assert kept.buckets() == {place}
    assert tuple(in_columns(entries, schema, [], keeps=lambda *_: False)) == ()


def test_no_files_make_no_splits() -> None:
    for schema, is_late in product((schema_of("id"), schema_of()), (False, True)):
        splits = in_columns([], schema, [], is_late=is_late)
        assert tuple(splits) == () and pack_tasks(splits, task_bytes=9, parallelism=1) == ()


@pytest.mark.parametrize(
    ("odd", "kind"), [({"write_cols": ("x",)}, "partial-columns"), ({"external_path": "s3://b/f"}, "external-path")]
)
def test_files_that_would_be_read_wrong_are_refused(odd: dict[str, Any], kind: str) -> None:
    schema = schema_of()
    entries = entries_of(schema, random.Random(5), 20, spread=9)
    entries[7] = replace(entries[7], file=replace(entries[7].file, **odd), bucket=1)
    for is_late in (False, True):
        with pytest.raises(UnsupportedError) as caught:
            in_columns(entries, schema, [], is_late=is_late)
        assert caught.value.kind == kind and entries[7].file.file_name in caught.value.message


def test_a_task_of_other_bytes_is_refused() -> None:
    splits = in_columns(entries_of(schema_of("id"), random.Random(6), 30, spread=9), schema_of("id"), [])
    encoded = encoded_splits(splits)
    content, files = encoded.content, encoded.files
    assert tuple(decode_columns("read task", content, files)) == tuple(splits)
    few = [name for name in content["columns"] if name != "file_name"]
    damages = (
        {"bytes": content["bytes"] - 1},
        {"deletions": [["f"]]},
        {"columns": few},
        {"columns": [*few, "bucket"]},
        {"columns": [*few, "other"]},
        {"columns": [3]},
        {"columns": None},
    )
    for damage in damages:
        with pytest.raises(FormatError, match="not a read task"):
            decode_columns("read task", {**content, **damage}, files)
    for damaged in (files[:-8], b"AAAA", b""):
        with pytest.raises(FormatError, match="not a read task"):
            decode_columns("read task", content, damaged)
