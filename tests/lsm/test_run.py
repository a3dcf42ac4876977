"""Files are cut into sections and runs so that overlapping files always meet in one section, in different runs."""

import math
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore.format.binaryrow import encode_row
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.stats import EMPTY_STATS
from tablestore.lsm.keyorder import KeyOrder, comparable_key, row_bound
from tablestore.lsm.keys import key_at, plain_columns
from tablestore.lsm.run import levels, partition_intervals
from tests.support.keycases import KEY_CASES, KeyCase, order_of


def _file(name: str, low: int, high: int, *, level: int = 0, sequence: int = 0) -> DataFileMeta:
    return DataFileMeta(
        file_name=name,
        file_size=1,
        row_count=1,
        min_key=low.to_bytes(2, "big"),
        max_key=high.to_bytes(2, "big"),
        key_stats=EMPTY_STATS,
        value_stats=EMPTY_STATS,
        min_sequence_number=sequence,
        max_sequence_number=sequence,
        schema_id=0,
        level=level,
        creation_time_millis=0,
        delete_row_count=0,
        file_source=0,
    )


def _key(data: bytes) -> int:
    return int.from_bytes(data, "big")


ranges = st.tuples(st.integers(0, 60), st.integers(0, 15)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(st.lists(ranges, max_size=14))
def test_sections_are_disjoint_and_runs_hold_disjoint_files_in_order(bounds):
    files = [_file(f"f{i}", low, high) for i, (low, high) in enumerate(bounds)]
    sections = partition_intervals(files, _key)
    assert sorted(file.file_name for section in sections for file in section.files) == sorted(f.file_name for f in files)
    reached = -1
    for section in sections:
        assert min(_key(file.min_key) for file in section.files) > reached
        reached = max(_key(file.max_key) for file in section.files)
        for run in section.runs:
            assert all(_key(a.max_key) < _key(b.min_key) for a, b in pairwise(run))
        deepest = max(sum(low <= key <= high for low, high in bounds) for key in range(76))
        assert len(section.runs) <= deepest
        assert section.needs_merge == (len(section.runs) > 1)


def test_files_that_touch_in_one_key_belong_together():
    (section,) = partition_intervals([_file("a", 1, 5), _file("b", 5, 9)], _key)
    assert [[file.file_name for file in run] for run in section.runs] == [["a"], ["b"]]


def test_levels_put_the_newest_level_0_file_first_and_upper_levels_in_key_order():
    files = [
        _file("old", 0, 9, sequence=1),
        _file("new", 0, 9, sequence=5),
        _file("right", 6, 9, level=2),
        _file("left", 0, 5, level=2),
    ]
    found = levels(files, _key)
    assert [file.file_name for file in found.level_zero] == ["new", "old"]
    assert [[file.file_name for file in run] for run in found.upper] == [[], ["left", "right"]]
    assert [[file.file_name for file in run] for run in found.runs] == [["new"], ["old"], ["left", "right"]]
    assert found.top == 2
    assert levels([], _key).top == 0


@pytest.mark.deep_after(6)
@pytest.mark.parametrize("case", KEY_CASES, ids=str)
@settings(max_examples=25)
@given(data=st.data())
def test_serialised_keys_compare_as_the_rows_do(case: KeyCase, data):
    keys = data.draw(st.lists(case.keys, min_size=2, max_size=12))
    rows = list(zip(*(_stored(column) for column in case.columns(keys)), strict=True))
    types = [field.type for field in case.fields]
    serialised = [encode_row(row, types) for row in rows]
    plain = plain_columns(case.columns(keys), [field.type.nullable for field in case.fields])
    order = KeyOrder.of(case.fields)
    for one in range(len(keys)):
        assert row_bound(serialised[one], case.fields) == key_at(plain, one)
        for other in range(len(keys)):
            expected = order_of(keys[one]) < order_of(keys[other])
            assert (order(serialised[one]) < order(serialised[other])) == expected
            assert (key_at(plain, one) < key_at(plain, other)) == expected


def _stored(column: pa.Array) -> list:
    """Values as the engine serialises them."""
    nanoseconds = pa.types.is_timestamp(column.type) and column.type.unit == "ns"
    return list(column.to_numpy(zero_copy_only=False)) if nanoseconds else column.to_pylist()


def test_row_keys_compare_nulls_first_text_by_bytes_and_floats_as_java_does():
    keys = [(None, ""), (-1.0, "z"), (-0.0, "b"), (0.0, "\uffff"), (0.0, "\U00010000"), (math.nan, "a")]
    shuffled = [keys[i] for i in (3, 0, 5, 2, 4, 1)]
    assert sorted(shuffled, key=comparable_key) == keys
    assert comparable_key([Decimal("1.0"), b"a"]) == comparable_key([Decimal("1.00"), b"a"])
