"""Sums of a manifest say what its entries say, bucket by bucket; there are none where they would not, and others are refused."""

import base64
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tablestore.errors import FormatError
from tablestore.format.manifest.bucketsums import LOW_BITS, decode_sums, encode_sums, file_mask, sum_up
from tablestore.format.manifest.entrycolumns import BoundedColumn, EntryColumns
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tests.format.manifest.test_entrycolumns import _entry

COLUMN = BoundedColumn("key 0 of 1", "BIGINT")
MOST = 1 << 20


def entries_of(rng: random.Random, count: int) -> list[ManifestEntry]:
    """ADDs by partition and bucket, as in a sidecar."""
    entries = []
    for number in range(count):
        file = {
            "row_count": rng.choice([0, 7, 2**62, 2**63 - 1]),
            "level": rng.randrange(3),
            "min_sequence_number": rng.randrange(50),
            "max_sequence_number": rng.randrange(50, 90),
            "write_cols": rng.choice([None] * 9 + [("c",)]),
            "delete_row_count": rng.choice([0, 0, 0, 1, None]),
            "footer_digest": rng.choice([bytes(16), bytes(16), None]),
        }
        place = (bytes(12) + rng.choice([b"a", b"b", b"c"]), rng.randrange(3))
        entry = _entry(number, **file)
        entries.append(replace(entry, kind=EntryKind.ADD, partition=place[0], bucket=place[1], total_buckets=3))
    return sorted(entries, key=lambda entry: (entry.partition, entry.bucket))


def bounds_of(entries: Sequence[ManifestEntry], rng: random.Random, kind: pa.DataType) -> tuple[pa.Array, pa.Array]:
    """Bounds whose lows are in order in each bucket, unknown ones last."""
    lows: list[int | None] = []
    for place in sorted({(entry.partition, entry.bucket) for entry in entries}):
        count = sum((entry.partition, entry.bucket) == place for entry in entries)
        known = sorted(rng.randrange(200) for _ in range(count - (rng.random() < 0.3)))
        lows += [*known, *[None] * (count - len(known))]
    highs = [None if low is None else low + rng.choice([0, 0, 3, 90]) for low in lows]
    values = [[None if v is None else v if kind == pa.int64() else b"%03d" % v for v in bound] for bound in (lows, highs)]
    return pa.array(values[0], kind), pa.array(values[1], kind)


@pytest.mark.parametrize("kind", [pa.int64(), pa.binary()])
@pytest.mark.parametrize("seed", range(20))
def test_each_row_says_what_the_files_of_its_bucket_say(seed: int, kind: pa.DataType) -> None:
    rng = random.Random(seed)
    entries = entries_of(rng, rng.randint(40, 120))
    low, high = bounds_of(entries, rng, kind)
    columns = EntryColumns.of(entries)
    made = sum_up(columns, (COLUMN, (low, high)))
    assert made is not None
    sums = decode_sums(encode_sums(made), len(entries), MOST)
    assert sums.table.equals(made.table)
    members = defaultdict(list)
    for number, entry in enumerate(entries):
        members[entry.partition, entry.bucket].append(number)
    rows: list[dict[str, Any]] = sums.table.to_pylist()
    assert [(row["partition"], row["bucket"], row["total_buckets"]) for row in rows] == [(*place, 3) for place in sorted(members)]
    plain, quiet = (columns.column(name).to_pylist() for name in ("is_plain", "never_retracts"))
    for row, numbers in zip(rows, members.values(), strict=True):
        files = [entries[number].file for number in numbers]
        assert row["files"] == len(files)
        assert (row["rows_high"] << LOW_BITS) + row["rows_low"] == sum(file.row_count for file in files)
        levels = [file.level for file in files]
        assert (row["least_level"], row["most_level"]) == (min(levels), max(levels))
        assert row["min_sequence_number"] == min(file.min_sequence_number for file in files)
        assert row["max_sequence_number"] == max(file.max_sequence_number for file in files)
        assert row["is_plain"] == all(plain[number] for number in numbers)
        assert row["never_retracts"] == all(quiet[number] for number in numbers)
        bounds = [(low[number].as_py(), high[number].as_py()) for number in numbers]
        is_known = all(end is not None for end, _ in bounds)
        assert row["low key 0 of 1 BIGINT"] == (min(end for end, _ in bounds) if is_known else None)
        assert row["high key 0 of 1 BIGINT"] == (max(end for _, end in bounds) if is_known else None)
        apart = is_known and all(before[1] < after[0] for before, after in pairwise(bounds))
        assert row["is_apart"] == apart
    mask = np.array([rng.random() < 0.5 for _ in rows])
    chosen = {place for place, is_chosen in zip(sorted(members), mask, strict=True) if is_chosen}
    assert file_mask(sums, mask).tolist() == [(entry.partition, entry.bucket) in chosen for entry in entries]


def test_there_are_none_where_files_are_deleted_buckets_are_small_or_their_number_differs() -> None:
    entries = entries_of(random.Random(1), 80)
    assert sum_up(EntryColumns.of(entries), None) is not None
    assert sum_up(EntryColumns.of([replace(entries[0], kind=EntryKind.DELETE), *entries[1:]]), None) is None
    assert sum_up(EntryColumns.of([*entries[:-1], replace(entries[-1], total_buckets=4)]), None) is None
    assert sum_up(EntryColumns.of([replace(entry, bucket=number) for number, entry in enumerate(entries)]), None) is None
    assert sum_up(EntryColumns.of([]), None) is None


def test_other_bytes_and_sums_of_other_files_are_refused() -> None:
    entries = entries_of(random.Random(2), 80)
    sums = sum_up(EntryColumns.of(entries), None)
    assert sums is not None
    encoded = encode_sums(sums)
    assert decode_sums(encoded, 80, MOST).table.equals(sums.table)
    data = base64.b64decode(encoded)
    for damaged in (
        b"",
        b"!",
        encoded[:-8],
        encoded + b"AAAA",
        base64.b64encode(data[4:]),
        base64.b64encode(b"\xff" * 4 + data[4:]),
    ):
        with pytest.raises(FormatError, match="sums of a manifest"):
            decode_sums(damaged, 80, MOST)
    with pytest.raises(FormatError, match="at most 9 bytes"):
        decode_sums(encoded, 80, 9)
    with pytest.raises(FormatError, match="those of 81 files"):
        decode_sums(encoded, 81, MOST)
    rows = len(sums)
    for name, values in (
        ("files", pa.array([80, *[0] * (rows - 1)], pa.int32())),
        ("files", pa.array([81, -1, *[0] * (rows - 2)], pa.int32())),
        ("bucket", pa.array([-9] * rows, pa.int32())),
        ("rows_low", pa.nulls(rows, pa.int64())),
        ("rows_low", pa.array(range(rows), pa.int32())),
        ("partition", pa.array([b"short"] * rows, pa.binary()).dictionary_encode()),
    ):
        place = sums.table.column_names.index(name)
        other = EntryColumns(sums.table.set_column(place, pa.field(name, values.type), values))
        with pytest.raises(FormatError, match="sums of a manifest"):
            decode_sums(encode_sums(other), 80, MOST)
