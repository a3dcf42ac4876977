"""Properties of values, bounds and memory are tested themselves: a fault that is planted fails the property that guards against it.

Each fault takes one rule out. Each guard is a test of another folder, called with few examples, always the same ones: it passes
before the fault is planted and fails with it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, Verbosity, given, settings
from hypothesis import strategies as st

from tablestore import bounds
from tablestore.errors import TablestoreError
from tablestore.format import limits, stats
from tablestore.format.manifest import avro
from tablestore.format.parquet import parquetfile as parquet
from tablestore.format.parquet import parquetread
from tablestore.json import jsonrows
from tablestore.lsm import keys
from tablestore.lsm.compaction.compactiontask import KeptRetractions
from tablestore.table.upkeep import compactplan
from tablestore.table.write import writer
from tablestore.types.conform import conform
from tablestore.types.filter import arrowfilter
from tablestore.types.rebatch import slices_of
from tests.format import test_limits
from tests.format.parquet import test_parquetsizes
from tests.json import test_every_value
from tests.lsm import test_keys
from tests.lsm.merge import test_merge
from tests.model import test_partial_compactions
from tests.support.keycases import KEY_CASES
from tests.table import test_memory
from tests.table.read import test_bounds, test_many_runs
from tests.table.upkeep import test_tombstones
from tests.table.write import test_missing_columns
from tests.types.filter import test_filters

Plant = Callable[[pytest.MonkeyPatch], None]
Guard = Callable[[Path], None]
FAULTS: list[tuple[Plant, Guard]] = []
WIDE = next(case for case in KEY_CASES if case.name == "decimal of 19 digits")


def found_by(*guards: Guard) -> Callable[[Plant], Plant]:
    def note(plant: Plant) -> Plant:
        FAULTS.extend((plant, guard) for guard in guards)
        return plant

    return note


def few(test: Any, examples: int, strategies: dict[str, Any], **fixed: Any) -> Guard:
    """A property with so many examples, the same in every run."""
    # Not shrunk, nor noted for later runs: they are the planted fault's.
    options = settings(max_examples=examples, derandomize=True, database=None, phases=[Phase.generate], verbosity=Verbosity.quiet)

    def guard(_: Path) -> None:
        @options
        @given(drawn=st.fixed_dictionaries(strategies))
        def check(drawn: dict[str, Any]) -> None:
            test.hypothesis.inner_test(**fixed, **drawn)

        check()

    guard.__name__ = test.__name__
    return guard


def plain(test: Any, **fixed: Any) -> Guard:
    """A test that draws nothing."""

    def guard(path: Path) -> None:
        test(**{name: path if value is Path else value for name, value in fixed.items()})

    guard.__name__ = test.__name__
    return guard


# what readers refuse, and where they look


@found_by(few(test_bounds.test_a_filter_finds_the_same_rows_whatever_statistics_are_kept, 15, test_bounds.FILTERED))
def cut_upper_bounds_as_lower_ones(m: pytest.MonkeyPatch) -> None:
    m.setattr(stats, "cut_upper", lambda text, characters: text[:characters])


@found_by(
    few(test_limits.test_what_is_written_is_read_however_wide_and_many_entries_are, 30, test_limits.WRITTEN),
    plain(test_bounds.test_a_commit_that_no_reader_would_take_publishes_nothing),
)
def write_manifests_that_readers_refuse(m: pytest.MonkeyPatch) -> None:
    m.setattr(avro, "_check_readable", lambda *_: None)


@found_by(few(test_limits.test_a_document_that_is_written_is_read, 40, test_limits.NESTED))
def write_documents_that_readers_refuse(m: pytest.MonkeyPatch) -> None:
    m.setattr(limits, "_check_readable", lambda *_: None)


# keys


@found_by(
    few(test_keys.test_a_window_is_cut_behind_the_last_key_within_the_bound, 60, {"data": st.data()}, case=WIDE),
    few(test_merge.test_the_newest_file_wins_when_files_hold_one_number_each, 40, {"data": st.data()}, case=WIDE),
)
def compare_wide_keys_as_floats(m: pytest.MonkeyPatch) -> None:
    m.setattr(keys, "_number_of", lambda _, value: value)


# memory


@found_by(plain(test_parquetsizes.test_a_row_group_is_bounded_by_the_bytes_of_its_rows, width=10_000, rows=1_600))
def bound_row_groups_by_rows(m: pytest.MonkeyPatch) -> None:
    m.setattr(parquet, "slices_of", lambda rows, *, max_rows, max_bytes: slices_of(rows, max_rows=max_rows, max_bytes=2**62))


@found_by(
    plain(
        test_parquetsizes.test_a_batch_is_bounded_although_the_file_is_a_thousand_times_smaller,
        width=10_000,
        rows=1_600,
        bound=2 << 20,
    ),
    plain(test_memory.test_a_merging_scan_holds_a_window_and_no_more, tmp_path=Path, width=10_000),
)
def bound_batches_by_rows(m: pytest.MonkeyPatch) -> None:
    real = parquetread._Part
    m.setattr(parquetread, "_Part", lambda groups, **_: real(groups))


@found_by(plain(test_memory.test_a_merging_scan_holds_a_window_and_no_more, tmp_path=Path, width=10_000))
def give_each_run_a_window_of_its_own(m: pytest.MonkeyPatch) -> None:
    m.setattr(bounds.ReadBounds, "of_runs", lambda self, _: self)


@found_by(plain(test_many_runs.run, tmp_path=Path, step="scan"))
def open_the_files_of_all_runs(m: pytest.MonkeyPatch) -> None:
    # The process is another one.
    first = "from tablestore.store import read\nread.HandlePool = lambda store, _: store\n"
    m.setattr(test_many_runs, "SCRIPT", first + test_many_runs.SCRIPT)


# rows


@found_by(plain(test_missing_columns.test_a_default_is_no_part_of_a_retraction))
def fill_defaults_into_retractions(m: pytest.MonkeyPatch) -> None:
    m.setattr(writer, "conform", lambda rows, fields, *, where, fill: conform(rows, fields, where=where, fill=fill is not False))


@found_by(
    plain(test_missing_columns.test_a_default_never_takes_the_place_of_a_value_in_a_partial_row),
    plain(test_missing_columns.test_a_default_is_never_taken_into_or_out_of_an_aggregate),
)
def fill_defaults_into_partial_rows(m: pytest.MonkeyPatch) -> None:
    m.setattr(writer, "_fills", lambda _: True)


@found_by(few(test_filters.test_isin_of_floats_is_bit_for_bit_as_in_arrow, 20, test_filters.WANTED, kind=pa.float64()))
def take_both_zeros_for_one_value_in_isin(m: pytest.MonkeyPatch) -> None:
    m.setattr(arrowfilter, "_by_bits", lambda predicate: predicate)


@found_by(
    plain(test_partial_compactions.test_no_row_that_comes_late_comes_back_while_deletes_are_kept),
    plain(test_tombstones.test_a_late_row_behind_a_delete_stays_deleted_after_a_full_compaction),
)
def drop_deletes_that_are_retained(m: pytest.MonkeyPatch) -> None:
    none = KeptRetractions(from_sequence=2**62, noted_millis=2**40, retention_ms=0)
    m.setattr(compactplan, "kept_retractions", lambda *_, **__: none)


@found_by(
    few(
        test_every_value.test_what_is_encoded_is_decoded_as_the_same,
        50,
        {"columns": test_every_value._columns()},
        mode="upsert",
        copies=1,
    )
)
def read_what_lies_below_a_null(m: pytest.MonkeyPatch) -> None:
    m.setattr(jsonrows, "_children", lambda array: [array.field(i) for i in range(array.type.num_fields)])


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@pytest.mark.parametrize(("plant", "guard"), FAULTS, ids=lambda part: part.__name__)
def test_a_planted_fault_is_found(plant: Plant, guard: Guard, tmp_path: Path) -> None:
    guard(tmp_path / "as it is")
    with pytest.MonkeyPatch.context() as m:
        plant(m)
        # A promise that does not hold or a refusal, not a mistake of the patch.
        with pytest.raises((AssertionError, TablestoreError, pytest.fail.Exception)):
            guard(tmp_path / "with the fault")
