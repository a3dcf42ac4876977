"""The coarse pruning of large manifests drops nothing that file by file pruning keeps, and of plain ranges no less."""

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tablestore as ts
from tablestore.errors import FormatError
from tablestore.format.binaryrow import EMPTY_ROW, encode_row
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.manifest.entrycolumns import EntryColumns
from tablestore.format.manifest.liveset import live_entries
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.stats import EMPTY_STATS, ColumnStats, encode_stats
from tablestore.ids import SystemIds
from tablestore.io.memory import MemoryFileStore
from tablestore.store import manifests as manifests_module
from tablestore.store.manifests import Manifests, WrittenMetadata
from tablestore.store.scan.entrypruning import EntryPruning
from tablestore.store.scan.filepruning import FilePruning
from tablestore.types.filter.predicate import And, Comparison, IsIn, Not, Or, Predicate
from tablestore.types.newschema import new_schema
from tablestore.types.schema import TableSchema

UTC = dt.UTC
EPOCH = dt.datetime(1970, 1, 1)
# A column of each kind of order, with values at the ends of its type and close together.
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "tiny": (pa.int8(), [-128, -1, 0, 1, 127]),
    "small": (pa.int16(), [-(2**15), -129, 0, 2**15 - 1]),
    "whole": (pa.int32(), [-(2**31), -1, 0, 7, 2**31 - 1]),
    "long": (pa.int64(), [-(2**63), -1, 0, 1, 2**63 - 1]),
    "day": (pa.date32(), [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(9999, 12, 31)]),
    "money": (pa.decimal128(10, 2), [Decimal("-1.01"), Decimal("0.00"), Decimal("0.01"), Decimal("99999999.99")]),
    "wide": (pa.decimal128(38, 2), [Decimal("-1.01"), Decimal("0.00"), Decimal("12345678901234567890.01")]),
    "real": (pa.float64(), [-1.5, -0.0, 0.0, 2.5]),
    "ms": (pa.timestamp("ms"), [EPOCH - dt.timedelta(milliseconds=1), EPOCH, dt.datetime(2026, 1, 1)]),
    "us": (pa.timestamp("us"), [EPOCH, EPOCH + dt.timedelta(microseconds=1), EPOCH + dt.timedelta(microseconds=1000)]),
    "zoned": (pa.timestamp("us", "UTC"), [(EPOCH + dt.timedelta(microseconds=n)).replace(tzinfo=UTC) for n in (-1, 0, 1, 1000)]),
    "text": (pa.string(), ["", "a", "a" * 7, "a" * 8, "ab", "é", "\U0010ffff" * 4]),
    "raw": (pa.binary(), [b"", b"\0", b"\0\0", b"a" * 13, b"\xff"]),
    "flag": (pa.bool_(), [False, True]),
}
COLUMNS = pa.schema([(name, data_type) for name, (data_type, _) in VALUES.items()])
APPEND = new_schema(schema=COLUMNS, primary_key=(), partition_by=(), options={"bucket": "-1"})
OTHER_COLUMNS = ("text", "long")


def append_entry(
    bounds: dict[str, tuple[Any, Any]], *, columns: tuple[str, ...] | None = None, schema_id: int = 0
) -> ManifestEntry:
    chosen = [field for field in APPEND.fields if columns is None or field.name in columns]
    chosen.sort(key=lambda field: columns.index(field.name) if columns else field.id)
    ends = [ColumnStats(min=low, max=high, null_count=0) for low, high in (bounds.get(f.name, (None, None)) for f in chosen)]
    file = DataFileMeta(
        file_name="data.parquet",
        file_size=1,
        row_count=2,
        min_key=EMPTY_ROW,
        max_key=EMPTY_ROW,
        key_stats=EMPTY_STATS,
        value_stats=encode_stats(ends, [field.type for field in chosen]),
        min_sequence_number=0,
        max_sequence_number=0,
        schema_id=schema_id,
        level=0,
        value_stats_cols=columns,
        footer_digest=b"digest",
    )
    return ManifestEntry(kind=EntryKind.ADD, partition=EMPTY_ROW, bucket=0, total_buckets=-1, file=file)


def coarse(schema: TableSchema, predicate: Predicate, entries: list[ManifestEntry]) -> list[bool]:
    return EntryPruning(schema, predicate, stands_alone=not schema.is_keyed).keeps(EntryColumns.of(entries)).tolist()


def exact(predicate: Predicate, entries: list[ManifestEntry]) -> list[bool]:
    pruning = FilePruning(APPEND, predicate, {})
    return [pruning.file_may_match(predicate, entry.file) for entry in entries]


@st.composite
def leaves(draw: st.DrawFn) -> Predicate:
    name = draw(st.sampled_from(sorted(VALUES)))
    value = st.sampled_from(VALUES[name][1])
    if draw(st.booleans()):
        return Comparison(draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="])), name, draw(value))
    return IsIn(name, tuple(draw(st.lists(st.one_of(value, st.none()), max_size=4))))


predicates = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda children: And(tuple(children))),
        st.lists(inner, max_size=3).map(lambda children: Or(tuple(children))),
        inner.map(Not),
    ),
    max_leaves=4,
)


@st.composite
def entries(draw: st.DrawFn) -> ManifestEntry:
    bounds: dict[str, tuple[Any, Any]] = {}
    for name, (_, values) in VALUES.items():
        if draw(st.booleans()):
            low, high = sorted(draw(st.lists(st.integers(0, len(values) - 1), min_size=2, max_size=2)))
            bounds[name] = values[low], values[high]
    columns = draw(st.sampled_from([None, OTHER_COLUMNS, ()]))
    return append_entry(bounds, columns=columns, schema_id=draw(st.sampled_from([0, 0, 0, 7])))


@pytest.mark.deep
@settings(max_examples=200)
@given(st.lists(entries(), max_size=6), predicates)
def test_what_is_dropped_would_be_dropped_file_by_file(live: list[ManifestEntry], predicate: Predicate) -> None:
    assert all(keep or not may for keep, may in zip(coarse(APPEND, predicate, live), exact(predicate, live), strict=True))


@pytest.mark.deep_after(21)
@pytest.mark.parametrize("name", [name for name in VALUES if name not in ("wide", "real", "flag")])
@pytest.mark.parametrize("op", ["=", "<=", ">="])
def test_ranges_that_do_not_hold_a_value_are_dropped(name: str, op: Any) -> None:
    values = VALUES[name][1]
    live = [append_entry({name: (low, high)}) for low in values for high in values if values.index(low) <= values.index(high)]
    for value in values:
        predicate = Comparison(op, name, value)
        fine = exact(predicate, live)
        if name in ("us", "zoned"):
            # Milliseconds are compared: ranges that begin or end in the same one stay.
            assert all(keep for keep, may in zip(coarse(APPEND, predicate, live), fine, strict=True) if may)
        else:
            assert coarse(APPEND, predicate, live) == fine


def test_statistics_of_chosen_columns_and_of_other_schemas() -> None:
    live = [
        append_entry({"long": (1, 2), "text": ("a", "b")}),
        append_entry({"long": (1, 2), "text": ("a", "b")}, columns=("text", "long")),
        append_entry({"long": (5, 6), "text": ("a", "b")}, columns=("text", "long")),
        append_entry({"text": ("a", "b")}, columns=("text",)),
        append_entry({"long": (1, 2)}, schema_id=7),
    ]
    assert coarse(APPEND, Comparison("=", "long", 5), live) == [False, False, True, True, True]
    assert coarse(APPEND, IsIn("long", (5, None, 2**63)), live) == [True] * 5, "a value that does not fit says nothing"
    assert coarse(APPEND, IsIn("long", (0, 5, 7)), live) == [False, False, True, True, True]


KEYED = new_schema(
    schema=pa.schema([("p", pa.int32()), ("id", pa.int64()), ("k", pa.string()), ("v", pa.int64())]),
    primary_key=["p", "id", "k"],
    partition_by=["p"],
    options={"bucket": "2"},
)


def keyed_entry(
    partition: int, bucket: int, low: tuple[int, str], high: tuple[int, str], kind: EntryKind = EntryKind.ADD
) -> ManifestEntry:
    types = [field.type for field in KEYED.key_fields]
    texts = sorted([low[1], high[1]])
    keys = [ColumnStats(min=low[0], max=high[0], null_count=0), ColumnStats(min=texts[0], max=texts[1], null_count=0)]
    values = [ColumnStats()] * 3 + [ColumnStats(min=0, max=0, null_count=0)]
    file = replace(
        append_entry({}).file,
        min_key=encode_row(low, types),
        max_key=encode_row(high, types),
        key_stats=encode_stats(keys, types),
        value_stats=encode_stats(values, [field.type for field in KEYED.fields]),
    )
    row = encode_row([partition], [KEYED.field("p").type])
    return ManifestEntry(kind=kind, partition=row, bucket=bucket, total_buckets=2, file=file)


def test_keys_drop_files_of_a_keyed_table_and_values_do_not() -> None:
    live = [keyed_entry(1, 0, (0, "m"), (9, "b")), keyed_entry(1, 1, (10, "x"), (19, "x")), keyed_entry(2, 0, (0, "a"), (99, "z"))]
    assert coarse(KEYED, Comparison("=", "id", 12), live) == [False, True, True]
    assert coarse(KEYED, Comparison("=", "k", "n"), live) == [False, False, True]
    assert coarse(KEYED, Comparison("=", "p", 1), live) == [True, True, False]
    assert coarse(KEYED, Comparison("=", "v", 5), live) == [True] * 3, "their rows may hide older ones"
    assert coarse(KEYED, And((Comparison("=", "v", 5), Comparison(">", "id", 20))), live) == [False, False, True]


def test_a_delete_is_dropped_by_its_place_only() -> None:
    live = [keyed_entry(1, 0, (0, "a"), (9, "a"), EntryKind.DELETE), keyed_entry(2, 0, (0, "a"), (9, "a"), EntryKind.DELETE)]
    assert coarse(KEYED, Comparison("=", "id", 50), live) == [True, True]
    assert coarse(KEYED, Comparison("=", "p", 1), live) == [True, False]


def test_a_bucket_that_cannot_hold_the_key_is_dropped() -> None:
    live = [keyed_entry(1, bucket, (0, "a"), (9, "z")) for bucket in (0, 1)]
    predicate = And((Comparison("=", "p", 1), Comparison("=", "id", 3), Comparison("=", "k", "c")))
    assert sorted(coarse(KEYED, predicate, live)) == [False, True]
    deletes = [replace(one, kind=EntryKind.DELETE, total_buckets=7) for one in live]
    assert coarse(KEYED, predicate, deletes) == [True, True], "a DELETE may count other buckets than its ADD did"


def test_large_manifests_are_read_as_columns_and_small_ones_as_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests_module, "_FEW_ENTRIES", 3)
    files = MemoryFileStore("columns")
    store = Manifests(files, SystemIds(), [KEYED.field("p").type])
    written = WrittenMetadata()
    groups = [[keyed_entry(p, 0, (n, "a"), (n, "z")) for n in range(size)] for p, size in enumerate((5, 2, 9, 4))]
    for group in groups:
        for number, one in enumerate(group):
            group[number] = replace(one, file=replace(one.file, file_name=f"{one.partition.hex()}-{number}.parquet"))
    manifests = [m for group in groups for m in store.write_manifests(group, written)]
    store.flush(written)
    keeps = EntryPruning(KEYED, Comparison("=", "id", 1), stands_alone=False).keeps
    cold = Manifests(files, SystemIds(), [KEYED.field("p").type])
    first = list(cold.matching(manifests, keeps))
    assert first == [(groups[0][1],), tuple(groups[1]), (groups[2][1],), (groups[3][1],)]
    for manifest in manifests:
        files.delete(f"manifest/{manifest.file_name}")
    assert list(cold.matching(manifests, keeps)) == first, "a second plan reads nothing"
    none = cold.matching(manifests[:1], lambda columns: np.zeros(len(columns), np.bool_))
    assert list(none) == [()]


def test_a_file_that_a_rollback_brought_back_is_there_where_its_first_entry_was_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests_module, "_FEW_ENTRIES", 1)
    store = Manifests(MemoryFileStore("rollback"), SystemIds(), [KEYED.field("p").type])
    written = WrittenMetadata()
    file, other = keyed_entry(1, 0, (0, "a"), (9, "z")), keyed_entry(1, 0, (50, "a"), (59, "z"))
    other = replace(other, file=replace(other.file, file_name="other.parquet"))
    deleted = replace(file, kind=EntryKind.DELETE)
    manifests = [m for group in ([file, other], [deleted], [file]) for m in store.write_manifests(group, written)]
    store.flush(written)
    keeps = EntryPruning(KEYED, Comparison("=", "id", 55), stands_alone=False).keeps
    assert list(live_entries(store.matching(manifests, keeps), whole=False).values()) == [other, file]
    with pytest.raises(FormatError, match="deleted before"):
        live_entries([[deleted], [file]])


def test_a_plan_says_how_many_files_the_snapshot_has_whatever_manifests_it_reads(tmp_path: Path) -> None:
    catalog = ts.open_catalog(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", schema="p INT, v INT", partition_by=["p"], options={"bucket": "-1"})
    for p in (1, 2, 3):
        table.append(pa.table({"p": pa.array([p], pa.int32()), "v": pa.array([p], pa.int32())}))
    table.delete("p in (1, 3)")
    for p, read in ((1, 0), (2, 1)):
        assert f"files      {read} of 1 read" in table.scan(filter=f"p = {p}").explain()
