"""Rows are put in order in bounded memory: what is beyond it goes through files, and none is lost."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tablestore.errors import StorageError
from tablestore.lsm.clusterorder import ClusterOrder
from tablestore.store.write.clusteredrows import clustered_rows


def _batches(rows: pa.Table) -> Callable[[], Iterator[pa.RecordBatch]]:
    return lambda: iter(rows.to_batches(max_chunksize=1000))


def _clustered(rows: pa.Table, columns: tuple[str, ...], strategy: str, memory_bytes: int) -> list[pa.RecordBatch]:
    order = ClusterOrder(columns, strategy)
    picked = rows.select(columns)
    return list(clustered_rows(_batches(rows), _batches(picked), order, row_count=rows.num_rows, memory_bytes=memory_bytes))


def _rows(count: int, seed: int = 3) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "id": np.arange(count),
            "a": pa.array(rng.integers(0, 1000, count), mask=rng.random(count) < 0.05),
            "s": pa.array(rng.integers(0, 50, count).astype(str)),
        }
    )


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("memory_bytes", [1 << 30, 100_000, 5_000])
def test_all_rows_come_in_the_order_of_one_column_whatever_fits_into_memory(memory_bytes: int) -> None:
    rows = _rows(20_000)
    out = pa.Table.from_batches(_clustered(rows, ("a",), "order", memory_bytes))
    assert out.sort_by("id").equals(rows)
    values = np.asarray(out["a"].fill_null(-1))
    # Ranges of rows that went through files begin with nulls, those that were sorted in memory end with them.
    assert (np.diff(values[values >= 0]) >= 0).all()


@pytest.mark.parametrize("strategy", ["order", "zorder", "hilbert"])
def test_rows_through_files_lie_as_close_as_those_in_memory(strategy: str) -> None:
    rows = _rows(20_000)

    def spread(memory_bytes: int) -> float:
        out = pa.Table.from_batches(_clustered(rows, ("a", "s"), strategy, memory_bytes))
        assert out.sort_by("id").equals(rows)
        parts = [np.asarray(out["a"].slice(start, 500).drop_null()) for start in range(0, 20_000, 500)]
        return float(np.mean([np.ptp(part) for part in parts if len(part)]))

    assert spread(50_000) < 1.3 * spread(1 << 30)


def test_rows_in_order_of_the_column_already_are_cut_into_even_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    from tablestore.store.write import clusteredrows

    cuts = 0
    cut = clusteredrows._cut

    def counted(*args: object) -> object:
        nonlocal cuts
        cuts += 1
        return cut(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(clusteredrows, "_cut", counted)
    rows = pa.table({"a": np.arange(50_000)})
    assert pa.Table.from_batches(_clustered(rows, ("a",), "order", 40_000)).equals(rows)
    # 400 kB through 40 kB of memory: one pass, and none over what is nearly in order.
    assert cuts == 1


def test_rows_of_one_value_are_more_than_the_memory_holds() -> None:
    rows = pa.table({"a": np.repeat([7, 3], [30_000, 10]), "id": np.arange(30_010)})
    out = pa.Table.from_batches(_clustered(rows, ("a",), "zorder", 20_000))
    assert out.sort_by("id").equals(rows)
    assert out["a"][0].as_py() == 3


def test_a_value_that_the_sample_lacks_is_parted_from_the_rest() -> None:
    rows = pa.table({"a": np.concatenate([np.zeros(199_999, np.int64), [5]])})
    assert pa.Table.from_batches(_clustered(rows, ("a",), "order", 10_000)).equals(rows)


def test_no_rows_stay_none() -> None:
    assert _clustered(_rows(0), ("a",), "order", 100) == []


def test_a_row_larger_than_the_memory_goes_alone() -> None:
    rows = pa.table({"a": [2, 1], "s": ["x" * 100_000, "y" * 100_000]})
    out = pa.Table.from_batches(_clustered(rows, ("a",), "order", 1000))
    assert out["a"].to_pylist() == [1, 2]


def test_no_file_stays_also_if_the_reader_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    rows = _rows(20_000)
    batches = clustered_rows(
        _batches(rows), _batches(rows.select(["a"])), ClusterOrder(("a",), "order"), row_count=20_000, memory_bytes=50_000
    )
    next(batches)
    assert any(tmp_path.iterdir())
    batches.close()
    assert not any(tmp_path.iterdir())


def test_a_disk_that_is_full_is_an_error_with_the_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.ipc.new_stream", full)
    with pytest.raises(StorageError, match="set TMPDIR"):
        _clustered(_rows(20_000), ("a",), "order", 50_000)
    assert not any(tmp_path.iterdir())
