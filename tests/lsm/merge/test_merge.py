"""A merge of sorted runs gives what a dict of the newest versions would hold."""

from collections.abc import Iterator
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore.errors import FormatError
from tablestore.lsm.functions.mergefunction import MergeFunction, SequenceField
from tablestore.lsm.merge import sortedmerge as merge
from tablestore.lsm.merge.mergespec import MergeSpec, SortedSource
from tablestore.lsm.merge.sortedmerge import merge_section
from tablestore.lsm.merge.window import fold_window
from tablestore.types.datatypes import AtomicType, Field, TypeRoot
from tests.support.keycases import KEY_CASES, KeyCase, order_of

cases = pytest.mark.parametrize("case", KEY_CASES, ids=str)
few_cases = pytest.mark.parametrize("case", [c for c in KEY_CASES if c.name in ("int", "string", "string and int")], ids=str)

INT_KEY = (Field(id=0, name="k0", type=AtomicType(root=TypeRoot.INT, nullable=False)),)


def _batches(case: KeyCase, rows, sizes: list[int], *, with_sequence: bool) -> list[pa.RecordBatch]:
    """Rows (key, kind, sequence, value, version) as batches of the given sizes, the last one repeated."""
    out, start = [], 0
    while start < len(rows):
        size = sizes.pop(0) if len(sizes) > 1 else sizes[0]
        part = rows[start : start + size]
        columns = case.columns([row[0] for row in part])
        names = [field.name for field in case.fields]
        if with_sequence:
            columns.append(pa.array([row[2] for row in part], pa.int64()))
            names.append("_SEQUENCE_NUMBER")
        columns += [
            pa.array([row[1] for row in part], pa.int8()),
            pa.array([row[3] for row in part], pa.string()),
            pa.array([row[4] for row in part], pa.int32()),
        ]
        out.append(pa.RecordBatch.from_arrays(columns, names=[*names, "_VALUE_KIND", "value", "version"]))
        start += size
    return out


def _source(case: KeyCase, rows, sizes: list[int]) -> SortedSource:
    numbers = [row[2] for row in rows]
    low, high = min(numbers), max(numbers)
    batches = _batches(case, rows, list(sizes), with_sequence=low != high)

    def read() -> Iterator[pa.RecordBatch]:
        yield from batches

    return SortedSource(min_sequence=low, max_sequence=high, read=read)


def _draw_run(data, case: KeyCase, run: int, *, per_row: bool):
    """One run: a file or two with disjoint sorted keys."""
    keys = sorted(data.draw(st.lists(case.keys, min_size=1, max_size=14, unique_by=order_of)), key=order_of)
    rows = []
    for key in keys:
        kind = data.draw(st.sampled_from([0, 0, 2, 3, 1]))
        # Numbers of different runs may interleave, but no number occurs twice.
        sequence = data.draw(st.integers(0, 40)) * 8 + run if per_row else 100 * run
        version = data.draw(st.one_of(st.none(), st.integers(0, 3)))
        rows.append((key, kind, sequence, f"run {run}", version))
    cut = data.draw(st.integers(0, len(rows)))
    sizes = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    return rows, [_source(case, part, sizes) for part in (rows[:cut], rows[cut:]) if part]


def _read(batches) -> list[tuple]:
    return [row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)]


def _expected(runs, *, keep: str, rank):
    versions: dict = {}
    for run, rows in enumerate(runs):
        for row in rows:
            versions.setdefault(order_of(row[0]), []).append((rank(row), run, row))
    pick = max if keep == "last" else min
    winners = {key: pick(found, key=lambda item: item[:2])[2] for key, found in versions.items()}
    return [row for _, row in sorted(winners.items()) if row[1] in (0, 2)]


def _check(case: KeyCase, data, *, per_row: bool, function: MergeFunction, rank):
    runs, sources = [], []
    for run in range(data.draw(st.integers(1, 5))):
        rows, files = _draw_run(data, case, run, per_row=per_row)
        runs.append(rows)
        sources.append(files)
    mixed = data.draw(st.permutations(range(len(runs))))
    ordered = data.draw(st.booleans())
    spec = MergeSpec(
        key_fields=case.fields,
        output_columns=(*(field.name for field in case.fields), "value"),
        ordered=ordered,
        batch_rows=data.draw(st.sampled_from([1, 3, 1000])),
        function=function,
    )
    # What is small decides how far a run is looked ahead.
    with mock.patch.object(merge, "_SMALL_BATCH_ROWS", data.draw(st.sampled_from([0, 3, 4096]))):
        found = _read(merge_section([sources[run] for run in mixed], spec))
    width = len(case.fields)
    expected = _expected(runs, keep=function.keep, rank=rank)
    shown = [(order_of(row[:width]), row[width]) for row in found]
    wanted = [(order_of(row[0]), row[3]) for row in expected]
    assert (shown if ordered else sorted(shown)) == wanted


@pytest.mark.deep
@cases
@settings(max_examples=25)
@given(data=st.data())
def test_the_newest_file_wins_when_files_hold_one_number_each(case: KeyCase, data):
    _check(case, data, per_row=False, function=MergeFunction(), rank=lambda row: row[2])


@pytest.mark.deep
@few_cases
@settings(max_examples=60)
@given(data=st.data())
def test_the_largest_number_wins_when_files_interleave(case: KeyCase, data):
    _check(case, data, per_row=True, function=MergeFunction(), rank=lambda row: row[2])


@pytest.mark.deep
@few_cases
@settings(max_examples=60)
@given(data=st.data(), per_row=st.booleans())
def test_first_row_keeps_the_oldest_version(case: KeyCase, data, per_row):
    _check(case, data, per_row=per_row, function=MergeFunction(engine="first-row", keep="first"), rank=lambda row: row[2])


@pytest.mark.deep
@few_cases
@settings(max_examples=60)
@given(data=st.data(), per_row=st.booleans(), descending=st.booleans())
def test_sequence_fields_come_before_numbers_and_nulls_lose(case: KeyCase, data, per_row, descending):
    def rank(row):
        version = row[4]
        return ((0, 0) if version is None else (1, -version if descending else version), row[2])

    fields = (SequenceField(name="version", descending=descending),)
    _check(case, data, per_row=per_row, function=MergeFunction(sequence_fields=fields), rank=rank)


INT_CASE = KEY_CASES[0]


def _rows(keys, *, sequence, kind=0, value="v"):
    return [((key,), kind, sequence, value, None) for key in keys]


def _merged(runs, **parts):
    spec = MergeSpec(key_fields=INT_CASE.fields, output_columns=("k0", "value"), **{"function": MergeFunction(), **parts})
    return _read(merge_section([[_source(INT_CASE, rows, [4]) for rows in run] for run in runs], spec))


def test_of_equal_sequence_numbers_the_later_run_wins():
    assert _merged([[_rows([1], sequence=7, value="a")], [_rows([1], sequence=7, value="b")]]) == [(1, "b")]


def test_a_retraction_hides_older_rows_and_is_not_emitted():
    old, new = _rows([1, 2, 3], sequence=1), _rows([2, 9], sequence=2, kind=3)
    assert sorted(_merged([[old], [new]])) == [(1, "v"), (3, "v")]


def test_a_single_run_drops_retractions_too():
    assert _merged([[_rows([1], sequence=1), _rows([2], sequence=1, kind=3), _rows([3], sequence=1, kind=1)]]) == [(1, "v")]


def test_ignore_delete_leaves_the_older_row():
    runs = [[_rows([1, 2], sequence=1)], [_rows([2], sequence=2, kind=3)]]
    assert sorted(_merged(runs, function=MergeFunction(ignore_delete=True))) == [(1, "v"), (2, "v")]


def test_retractions_and_system_columns_are_kept_on_request():
    runs = [[_rows([1, 2], sequence=1)], [_rows([2], sequence=2, kind=3)]]
    found = _merged(runs, drop_retractions=False, emit_system_columns=True, ordered=True)
    assert found == [(1, 0, 1, "v"), (2, 3, 2, "v")]


def test_runs_without_rows_give_nothing():
    empty = SortedSource(min_sequence=1, max_sequence=1, read=lambda: iter(()))
    spec = MergeSpec(key_fields=INT_CASE.fields, output_columns=("k0",), function=MergeFunction())
    assert list(merge_section([[empty], [empty]], spec)) == []
    assert list(merge_section([], spec)) == []


@pytest.mark.parametrize("keys", [[1, 1, 2], [2, 1]], ids=["duplicate", "descending"])
def test_a_run_out_of_key_order_is_refused(keys):
    with pytest.raises(FormatError, match="ascending key order"):
        _merged([[_rows(keys, sequence=1)], [_rows([0, 1, 2, 3], sequence=2)]])


def test_files_of_a_run_that_overlap_are_refused():
    with pytest.raises(FormatError, match="ascending key order"):
        _merged([[_rows([1, 5], sequence=1), _rows([3], sequence=1)], [_rows([0, 9], sequence=2)]])


@pytest.mark.deep_after(2)
@pytest.mark.parametrize("spread", [1, 1000], ids=["dense", "sparse"])
@pytest.mark.parametrize("runs", [2, 5, 40])
def test_many_rows_merge_the_same_way_by_every_strategy(runs, spread):
    rng = np.random.default_rng(runs)
    newest: dict[int, int] = {}
    sources = []
    for run in range(runs):
        keys = np.unique(rng.integers(-5000, 5000, 400) * spread)
        newest.update(dict.fromkeys(keys.tolist(), run))
        batch = pa.record_batch(
            {
                "k0": pa.array(keys, pa.int32()),
                "_VALUE_KIND": pa.array(np.zeros(len(keys), np.int8)),
                "run": pa.array(np.full(len(keys), run)),
            }
        )
        pieces = [batch.slice(start, 77) for start in range(0, len(keys), 77)]
        sources.append([SortedSource(min_sequence=run, max_sequence=run, read=lambda pieces=pieces: iter(pieces))])
    spec = MergeSpec(key_fields=INT_KEY, output_columns=("k0", "run"), function=MergeFunction(), ordered=True)
    assert _read(merge_section(sources, spec)) == sorted(newest.items())


def test_small_runs_are_one_window_together(monkeypatch):
    windows = []

    def counted(chunks, spec):
        windows.append(len(chunks))
        return fold_window(chunks, spec)

    monkeypatch.setattr(merge, "fold_window", counted)
    found = _merged([[_rows([1, 4, 9], sequence=1)], [_rows([2, 4], sequence=2)], [_rows([3, 8], sequence=3)]])
    assert [row[0] for row in sorted(found)] == [1, 2, 3, 4, 8, 9]
    assert windows == [3]
    windows.clear()
    long = _rows(range(0, 40, 2), sequence=1)
    found = _merged([[long], [_rows([3], sequence=2)], [_rows([5, 6], sequence=3, value="w")]])
    assert sorted(found) == [(key, "w" if key in (5, 6) else "v") for key in sorted({*range(0, 40, 2), 3, 5})]
    assert windows == [3, 1, 1, 1, 1], "only the run that goes on ends windows"


def test_memory_does_not_grow_with_the_rows_of_the_runs():
    batch_rows = 20_000

    def peak(batches: int) -> int:
        def read(run: int) -> Iterator[pa.RecordBatch]:
            for number in range(batches):
                keys = np.arange(number * batch_rows, (number + 1) * batch_rows, dtype=np.int32) * 5 + run % 3
                yield pa.record_batch({"k0": keys, "_VALUE_KIND": np.zeros(batch_rows, np.int8), "value": keys * 2.0})

        runs = [[SortedSource(min_sequence=run, max_sequence=run, read=lambda run=run: read(run))] for run in range(5)]
        spec = MergeSpec(key_fields=INT_KEY, output_columns=("k0", "value"), function=MergeFunction(), ordered=True)
        before, highest, rows = pa.total_allocated_bytes(), 0, 0
        for batch in merge_section(runs, spec):
            rows += batch.num_rows
            highest = max(highest, pa.total_allocated_bytes() - before)
        assert rows == 3 * batches * batch_rows
        return highest

    few, many = peak(3), peak(24)
    assert many <= few * 1.5 + 100_000
