"""The changes between two states are exactly what leads from one to the other."""

import random

import numpy as np
import pyarrow as pa
import pytest

from tablestore.lsm.merge.rowdiff import RowState, diff_rows, equal_values

SCHEMA = pa.schema(
    [pa.field("_SEQUENCE_NUMBER", pa.int64()), pa.field("_VALUE_KIND", pa.int8()), ("k", pa.int64()), ("v", pa.string())]
)


def _state(rows):
    """``rows``: key -> (sequence, value)."""
    keys = sorted(rows)
    table = pa.Table.from_pylist(
        [{"_SEQUENCE_NUMBER": rows[k][0], "_VALUE_KIND": 0, "k": k, "v": rows[k][1]} for k in keys], schema=SCHEMA
    )
    return RowState(table, np.array(keys, dtype=np.int64))


def _changes(before, after, **options):
    found = diff_rows(_state(before), _state(after), 1 + max([*before, *after, 0]), **options)
    assert found.schema.names == SCHEMA.names
    return [
        ("+I", "-U", "+U", "-D")[row["_VALUE_KIND"]] + f" {row['k']} {row['v']} #{row['_SEQUENCE_NUMBER']}"
        for row in found.to_pylist()
    ]


def test_each_case_of_before_and_after_gives_its_kinds_and_numbers_in_key_order():
    before = {1: (1, "a"), 2: (2, "b"), 4: (4, "d")}
    after = {0: (9, "new"), 2: (9, "B"), 4: (4, "d")}
    assert _changes(before, after) == ["+I 0 new #9", "-D 1 a #1", "-U 2 b #2", "+U 2 B #9"]


def test_equal_values_under_another_number_are_an_update_unless_rows_are_deduplicated():
    before, after = {1: (1, "a"), 2: (1, None)}, {1: (2, "a"), 2: (2, None)}
    assert len(_changes(before, after)) == 4
    assert _changes(before, after, deduplicate=True) == []


def test_equal_numbers_with_other_values_are_an_update():
    assert _changes({1: (1, "a")}, {1: (1, "b")}) == ["-U 1 a #1", "+U 1 b #1"]


def test_ignored_columns_do_not_count_when_rows_are_deduplicated():
    assert _changes({1: (1, "a")}, {1: (2, "b")}, deduplicate=True, ignored=["v"]) == []
    assert len(_changes({1: (1, "a")}, {1: (2, "b")}, deduplicate=True)) == 2


def test_no_rows_on_either_side_give_what_there_is_on_the_other():
    assert _changes({}, {3: (1, "x")}) == ["+I 3 x #1"]
    assert _changes({3: (1, "x")}, {}) == ["-D 3 x #1"]
    assert _changes({}, {}) == []


def test_changes_applied_to_the_state_before_give_the_state_after():
    for seed in range(50):
        rng = random.Random(seed)
        before, after = ({k: (rng.randrange(3), rng.choice("xyz")) for k in range(20) if rng.random() < 0.6} for _ in range(2))
        state = {k: v for k, (_, v) in before.items()}
        for change in _changes(before, after, deduplicate=rng.random() < 0.5):
            kind, key, value, _ = change.split()
            if kind in ("-U", "-D"):
                assert state.pop(int(key)) == value, seed
            else:
                assert int(key) not in state, seed
                state[int(key)] = value
        assert state == {k: v for k, (_, v) in after.items()}, seed


NAN = float("nan")
STRUCT = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])
SAMPLES = {
    pa.int64(): [None, 0, 1, -1],
    pa.string(): [None, "", "a", "aa"],
    pa.binary(): [None, b"", b"\0"],
    pa.bool_(): [None, True, False],
    pa.decimal128(30, 2): [None, 0, 10**20],
    pa.timestamp("us"): [None, 0, 1],
    pa.float32(): [None, 0.0, -0.0, 1.5, NAN],
    pa.float64(): [None, 0.0, -0.0, NAN],
    pa.list_(pa.int32()): [None, [], [None], [1], [1, 2], [2, 1], [1, None]],
    pa.map_(pa.string(), pa.float64()): [None, [], [("a", 1.0)], [("a", None)], [("a", NAN)], [("a", 1.0), ("b", 2.0)]],
    STRUCT: [None, {"a": None, "b": None}, {"a": 1, "b": []}, {"a": 1, "b": ["x", None]}, {"a": 1, "b": ["x"]}],
    pa.list_(STRUCT): [None, [], [None], [{"a": 1, "b": ["x"]}], [{"a": 1, "b": None}]],
}


@pytest.mark.parametrize("kind", SAMPLES, ids=str)
def test_values_equal_themselves_and_no_other_sample_whatever_the_type(kind):
    samples = SAMPLES[kind]
    rng = random.Random(1)
    pairs = [(i, j) for i in range(len(samples)) for j in range(len(samples))]
    rng.shuffle(pairs)
    padding = [0, 0, 0]
    left = pa.array([samples[i] for i in [*padding, *(i for i, _ in pairs)]], kind).slice(3)
    right = pa.array([samples[j] for _, j in pairs], kind)
    assert equal_values(left, right).tolist() == [i == j for i, j in pairs]
