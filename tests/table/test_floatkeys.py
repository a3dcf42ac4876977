"""Keys with floats: one NaN, two zeros, in every place that compares or hashes a key."""

import struct
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tablestore.format import rowwords
from tablestore.format.rowwords import array_values
from tablestore.io.memory import MemoryFileStore
from tablestore.testing.lab import Lab

NAMES = count()
NAN, MINUS_NAN = (struct.unpack("<d", bytes.fromhex(bits))[0] for bits in ("000000000000f87f", "000000000000f8ff"))
SIGNALLING = struct.unpack("<d", bytes.fromhex("010000000000f07f"))[0]
SCHEMA = pa.schema([pa.field("x", pa.float64(), nullable=False), pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
SPECIAL = (-np.inf, -1.0, -0.0, 0.0, 1.0, np.inf, NAN)


def lab_with(*key: str, options: Mapping[str, str]) -> Lab:
    given = {"bucket": "1", "write-only": "false", **options}
    return Lab(MemoryFileStore(f"floats-{next(NAMES)}"), options=given, schema=SCHEMA, primary_key=key)


def rows_of(values: Sequence[float], ids: Sequence[int], text: str) -> pa.Table:
    return pa.table([pa.array(values, pa.float64()), pa.array(ids, pa.int64()), pa.array([text] * len(ids))], schema=SCHEMA)


def found(lab: Lab, **how: Any) -> list[tuple[str, int, str]]:
    """What a scan gives, the float as text: so -0.0 differs from 0.0, and NaN equals NaN."""
    rows = lab.open().scan(**how).to_arrow().to_pylist()
    return sorted((repr(row["x"]), row["id"], row["v"]) for row in rows)


@pytest.mark.parametrize("halves", [((NAN,), (NAN,)), (SPECIAL[:3], SPECIAL[3:])], ids=["NaN", "zeros"])
@pytest.mark.parametrize("vectors", ["false", "true"])
def test_rows_behind_nan_and_zeros_are_compacted_and_seen(vectors: str, halves: Sequence[Sequence[float]]) -> None:
    """A level of several files whose bounds are NaN, -0.0 and 0.0. With deletion vectors what is not compacted is not read."""
    lab = lab_with("x", "id", options={"target-file-size": "1 b", "deletion-vectors.enabled": vectors})
    each, rng = 10_000, np.random.default_rng(1)
    for half, values in enumerate(halves):
        # Smaller ids come second: the files part where the first column goes on from -0.0 to 0.0.
        ids = np.arange(each) + (1 - half) * each
        rows = rows_of(np.resize(values, each).tolist(), ids.tolist(), "")
        # Wide rows that do not compress, so that a level is several files.
        wide = pa.FixedSizeBinaryArray.from_buffers(pa.binary(200), each, [None, pa.py_buffer(rng.bytes(200 * each))])
        lab.open().upsert(rows.set_column(2, "v", pa.array([value.hex() for value in wide.to_pylist()])))
        assert lab.open().scan(columns=["id"]).to_arrow().num_rows == (half + 1) * each
    lab.open().compact(full=True)
    levels = lab.open().files()["level"].to_pylist()
    assert len(levels) > 1 and len(set(levels)) == 1, "one run of several files"


@pytest.mark.deep
def test_a_level_is_cut_at_any_float_and_stays_disjoint() -> None:
    lab = lab_with("x", "id", options={"target-file-size": "1 b", "num-sorted-run.compaction-trigger": "2"})
    model = set()
    for step in range(6):
        for value in SPECIAL:
            lab.open().upsert(rows_of([value] * 40, list(range(40)), f"{step}"))
        model = {(repr(value), key, f"{step}") for value in SPECIAL for key in range(40)}
        assert found(lab) == sorted(model)
    lab.auditor.check_metadata()


@pytest.mark.parametrize("bucket", ["1", "16", "-1"])
def test_nan_is_one_key_and_the_zeros_are_two_wherever_a_key_is_used(bucket: str) -> None:
    lab = lab_with("x", options={"bucket": bucket, "dynamic-bucket.target-row-num": "1"})
    for text, value in enumerate([NAN, MINUS_NAN, SIGNALLING, 0.0, -0.0]):
        lab.open().upsert(rows_of([value], [text], f"{text}"))
    assert found(lab) == [("-0.0", 4, "4"), ("0.0", 3, "3"), ("nan", 2, "2")]
    assert found(lab, filter="x = 0") == [("-0.0", 4, "4"), ("0.0", 3, "3")], "a filter takes the zeros for equal, as SQL does"
    lab.open().compact(full=True)
    assert len(found(lab)) == 3
    # Within one write, too, and as a retraction.
    lab.open().write_changes(
        rows_of([NAN, MINUS_NAN, -0.0], [7, 8, 9], "w").append_column("_row_kind", pa.array(["+I", "-D", "-D"]))
    )
    assert found(lab) == [("0.0", 3, "3")]
    lab.open().upsert(rows_of([MINUS_NAN, -0.0], [1, 2], "x"))
    lab.open().delete(pa.table({"x": pa.array([SIGNALLING, 0.0])}))
    assert found(lab) == [("-0.0", 2, "x")]
    lab.open().delete("x = 0")
    assert found(lab) == []


def test_nan_is_one_partition() -> None:
    lab = Lab(
        MemoryFileStore(f"floats-{next(NAMES)}"),
        options={"bucket": "1"},
        schema=SCHEMA,
        primary_key=("x", "id"),
        partition_by=("x",),
    )
    lab.open().upsert(rows_of([NAN, MINUS_NAN, SIGNALLING, -0.0, 0.0], [1, 1, 1, 1, 1], "a"))
    lab.open().upsert(rows_of([MINUS_NAN], [1], "b"))
    assert found(lab) == [("-0.0", 1, "a"), ("0.0", 1, "a"), ("nan", 1, "b")]
    assert lab.open().partitions().num_rows == 3


def test_a_table_whose_nans_lie_in_two_buckets_is_read_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Older versions hashed the bits as they were. Both rows are read; what is written now goes where NaN belongs, and an
    overwrite puts the table in order."""
    lab = lab_with("x", options={"bucket": "13"})
    with monkeypatch.context() as older:
        older.setattr(rowwords, "float_bits", lambda array: array_values(array, np.uint64))
        lab.open().upsert(rows_of([NAN, MINUS_NAN], [1, 2], "old"))
        lab.open().upsert(rows_of([MINUS_NAN], [2], "old"))
    assert len(set(lab.open().files()["bucket"].to_pylist())) == 2, "else this shows nothing"
    assert found(lab) == [("nan", 1, "old"), ("nan", 2, "old")]
    lab.open().compact(full=True)
    lab.open().upsert(rows_of([MINUS_NAN], [3], "new"))
    assert found(lab) == [("nan", 2, "old"), ("nan", 3, "new")]
    rows = lab.open().scan(filter="v = 'new'").to_arrow()
    lab.open().overwrite(rows)
    assert found(lab) == [("nan", 3, "new")]
