"""What a manifest says about a file that passed through the run writer."""

from itertools import count

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tablestore.errors import InvalidInputError, StorageError
from tablestore.format.binaryrow import decode_row
from tablestore.format.manifest.datafile import FileSource
from tablestore.format.parquet.footer import GROUP_BYTES_KEY
from tablestore.format.parquet.parquetread import open_parquet_file
from tablestore.format.parquet.parquetschema import file_schema
from tablestore.format.stats import ColumnStats, decode_stats
from tablestore.io.memory import MemoryFileStore
from tablestore.store.settings import table_settings
from tablestore.store.write.runwriter import FileNames, RunTarget, RunWriter
from tablestore.testing.deterministic import ManualClock, SeededIds
from tablestore.testing.files import Faults, FaultyFileStore
from tablestore.types.newschema import new_schema

NAMES = count()
COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.string()), pa.field("x", pa.float64())])


def _target(files, *, keyed=True, options=None):
    schema = new_schema(
        schema=COLUMNS,
        primary_key=("id",) if keyed else (),
        partition_by=(),
        options={**({"bucket": "1"} if keyed else {}), **(options or {})},
        comment=None,
        time_millis=0,
    )
    settings = table_settings(schema)
    return RunTarget(
        files=files,
        schema=schema,
        settings=settings,
        clock=ManualClock(),
        names=FileNames(SeededIds(1).uuid()),
        file_schema=file_schema(schema, thin=settings.thin),
    )


def _writer(target, **arguments):
    given = {"partition": (), "bucket": 0, "total_buckets": 1, "level": 3, "source": FileSource.COMPACT, **arguments}
    return RunWriter(target, **given)


def _rows(first, count):
    ids = np.arange(first, first + count)
    values = pa.array([None if i % 7 == 0 else f"value {i}" for i in ids.tolist()], pa.string())
    return pa.Table.from_arrays([pa.array(ids), values, pa.array(ids / 2)], schema=COLUMNS)


def test_a_file_is_described_exactly_from_pieces_of_it() -> None:
    files = MemoryFileStore(f"run-{next(NAMES)}")
    target = _target(files)
    writer = _writer(target)
    pieces = [_rows(0, 10), _rows(10, 1), _rows(20, 300)]
    at = 0
    for piece in pieces:
        numbers = np.arange(100 - at, 100 - at - piece.num_rows, -1)
        kinds = (np.arange(at, at + piece.num_rows) % 4).astype(np.int8)
        writer.write(piece, kinds, numbers)
        at += piece.num_rows
    (entry,) = writer.close()
    file = entry.file
    types = [f.type for f in target.schema.key_fields]
    assert (file.row_count, file.level, file.file_source) == (311, 3, FileSource.COMPACT)
    assert (file.min_sequence_number, file.max_sequence_number) == (100 - 310, 100)
    assert decode_row(file.min_key, types) == (0,) and decode_row(file.max_key, types) == (319,)
    assert file.delete_row_count == sum(1 for i in range(311) if i % 4 in (1, 3))
    whole = pa.concat_tables(pieces)
    stats = decode_stats(file.value_stats, [f.type for f in target.schema.fields])
    assert [s.null_count for s in stats] == [0, whole["v"].null_count, 0]
    assert (stats[1].min, stats[1].max) == (min(filter(None, whole["v"].to_pylist())), max(filter(None, whole["v"].to_pylist())))
    found = open_parquet_file(
        files.open_input(f"bucket-0/{file.file_name}"),
        file_name=file.file_name,
        footer_digest=file.footer_digest,
        size=file.file_size,
    )
    back = pa.Table.from_batches(list(found.read(None)))
    assert back["_SEQUENCE_NUMBER"].to_pylist() == list(range(100, 100 - 311, -1))
    assert back["_VALUE_KIND"].to_pylist() == [i % 4 for i in range(311)]
    assert back.select(COLUMNS.names).to_pylist() == whole.to_pylist()


def test_bounds_are_unknown_once_a_piece_has_a_nan_and_known_where_a_piece_is_null() -> None:
    writer = _writer(_target(MemoryFileStore(f"run-{next(NAMES)}")))
    schema = COLUMNS
    for ids, v, x in (([1], [None], [1.0]), ([2], ["b"], [float("nan")]), ([3], ["a"], [2.0])):
        writer.write(pa.Table.from_pydict({"id": ids, "v": v, "x": x}, schema=schema), None, np.ones(1, dtype=np.int64))
    (entry,) = writer.close()
    stats = decode_stats(entry.file.value_stats, [f.type for f in _target(MemoryFileStore(f"run-{next(NAMES)}")).schema.fields])
    assert (stats[1].min, stats[1].max, stats[1].null_count) == ("a", "b", 1)
    assert (stats[2].min, stats[2].max) == (None, None)


V = ColumnStats(min="value 1", max="value 9", null_count=2)
CUT = ColumnStats(min="val", max="vam", null_count=2)
COUNT = ColumnStats(null_count=2)


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize(
    ("mode", "of_columns", "kept"),
    [
        ("full", {}, {"id": 9, "v": V, "x": 4.5}),
        ("truncate(3)", {}, {"id": 9, "v": CUT, "x": 4.5}),
        ("counts", {}, {"id": 0, "v": COUNT, "x": 0}),
        ("none", {}, {}),
        ("none", {"v": " Truncate(3)"}, {"v": CUT}),
        ("counts", {"v": "none", "x": "full"}, {"id": 0, "x": 4.5}),
        ("FULL", {"v": "counts", "id": "none"}, {"v": COUNT, "x": 4.5}),
        ("none", {"id": "full", "v": "full", "x": "counts"}, {"id": 9, "v": V, "x": 0}),
    ],
    ids=str,
)
def test_a_manifest_says_of_each_column_what_its_mode_asks_for(keyed: bool, mode: str, of_columns: dict, kept: dict) -> None:
    options = {"metadata.stats-mode": mode, **{f"fields.{name}.stats-mode": of for name, of in of_columns.items()}}
    target = _target(MemoryFileStore(f"run-{next(NAMES)}"), keyed=keyed, options=options)
    writer = _writer(target, numbers=lambda count: 1)
    writer.write(_rows(0, 10))
    (entry,) = writer.close()
    file, fields = entry.file, {field.name: field for field in target.schema.fields}
    assert file.value_stats_cols == (None if len(kept) == 3 else tuple(kept))
    bounds = {"id": ColumnStats(min=0, max=9, null_count=0), "x": ColumnStats(min=-0.0, max=4.5, null_count=0)}
    without = ColumnStats(null_count=0)
    expected = [column if name == "v" else bounds[name] if column else without for name, column in kept.items()]
    assert decode_stats(file.value_stats, [fields[name].type for name in kept]) == expected
    if keyed:
        assert decode_stats(file.key_stats, [fields["id"].type]) == [bounds["id"]], "keys are found whatever is asked for"


@pytest.mark.parametrize(
    ("asked", "least_groups", "most_bytes"), [("64 kb", 12, 64 << 10), ("1 b", 12, 64 << 10), ("1 gb", 1, 64 << 20)]
)
def test_row_groups_are_of_the_size_asked_for_within_limits(asked: str, least_groups: int, most_bytes: int) -> None:
    files = MemoryFileStore(f"run-{next(NAMES)}")
    target = _target(files, options={"file.block-size": asked})
    writer = _writer(target, numbers=lambda count: 1)
    rows = _rows(0, 20_000)
    writer.write(rows)
    (entry,) = writer.close()
    data = pa.BufferReader(files.read(f"bucket-0/{entry.file.file_name}"))
    metadata = pq.read_metadata(data)
    assert least_groups <= metadata.num_row_groups <= 2 * least_groups
    assert int(metadata.metadata[GROUP_BYTES_KEY.encode()]) <= most_bytes
    assert pq.read_table(data).select(COLUMNS.names).equals(rows)


def test_a_run_goes_on_in_a_new_file_at_the_target_size_and_where_it_is_cut() -> None:
    files = MemoryFileStore(f"run-{next(NAMES)}")
    taken: list[int] = []

    def numbers(count: int) -> int:
        taken.append(count)
        return 10 * len(taken)

    writer = _writer(_target(files), numbers=numbers, target_bytes=1, level=0, source=FileSource.APPEND)
    writer.write(_rows(0, 131_072 + 5))
    writer.cut()
    writer.cut()
    writer.write(_rows(200_000, 2))
    entries = writer.close()
    assert [e.file.row_count for e in entries] == [131_072, 5, 2]
    assert [(e.file.min_sequence_number, e.file.max_sequence_number) for e in entries] == [(10, 10), (20, 20), (30, 30)]
    assert taken == [1, 1, 1]


def test_an_append_run_counts_its_rows_and_keeps_told_numbers() -> None:
    files = MemoryFileStore(f"run-{next(NAMES)}")
    target = _target(files, keyed=False)
    counted = _writer(target, numbers=lambda count: 40, level=0)
    counted.write(_rows(0, 3))
    told = _writer(target, level=0)
    told.write(_rows(0, 3), None, np.array([7, 8, 9]))
    assert [(e.file.min_sequence_number, e.file.max_sequence_number) for w in (counted, told) for e in w.close()] == [
        (40, 42),
        (7, 9),
    ]


def test_an_abandoned_run_leaves_no_file() -> None:
    files = MemoryFileStore(f"run-{next(NAMES)}")
    writer = _writer(_target(files), numbers=lambda count: 1, target_bytes=1)
    writer.write(_rows(0, 131_073))
    assert len(files.list("bucket-0")) == 1, "the second file is still open"
    writer.abort()
    assert not files.list("bucket-0")


@pytest.mark.parametrize("op", ["open_output", "output.write", "output.close"])
@pytest.mark.parametrize("nth", [1, 2])
def test_a_failed_run_leaves_no_file(op: str, nth: int) -> None:
    store = MemoryFileStore(f"run-{next(NAMES)}")
    faults = Faults()
    writer = _writer(_target(FaultyFileStore(store, faults)), numbers=lambda count: 1, target_bytes=1)
    faults.fail_nth(nth, op=op)
    with pytest.raises(StorageError), writer:
        writer.write(_rows(0, 131_073))
        writer.close()
    assert faults.injected_total == 1 and faults.open_handles == 0
    assert not store.list("bucket-0")


def test_rows_that_do_not_fit_leave_no_file() -> None:
    store = MemoryFileStore(f"run-{next(NAMES)}")
    with pytest.raises((InvalidInputError, KeyError)), _writer(_target(store), numbers=lambda count: 1) as writer:
        writer.write(_rows(0, 10))
        writer.write(pa.table({"id": pa.array([1])}))
    assert not store.list("bucket-0")
