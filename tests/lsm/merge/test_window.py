"""Windows whose rows are larger than Arrow can hold as one."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from tablestore.errors import UnsupportedError
from tablestore.lsm.functions.mergefunction import MergeFunction
from tablestore.lsm.merge.mergespec import MergeSpec, SortedSource
from tablestore.lsm.merge.sortedmerge import merge_section
from tablestore.types.datatypes import AtomicType, Field, TypeRoot

# Zeros of the operating system, of which no page is ever touched.
HUGE = 900 << 20
ZEROS = pa.py_buffer(np.zeros(HUGE, dtype=np.uint8))


def huge_row() -> Iterator[pa.RecordBatch]:
    value = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(np.array([0, HUGE], np.int32)), ZEROS])
    columns = [pa.array([7]), pa.array([0], pa.int8()), value]
    yield pa.RecordBatch.from_arrays(columns, ["id", "_VALUE_KIND", "w"])


def merged(function: MergeFunction) -> Iterator[pa.RecordBatch]:
    fields = (Field(id=0, name="id", type=AtomicType(root=TypeRoot.BIGINT, nullable=False)),)
    runs = [[SortedSource(min_sequence=run, max_sequence=run, read=huge_row)] for run in range(3)]
    spec = MergeSpec(key_fields=fields, output_columns=("id", "w"), function=function, ordered=True)
    return merge_section(runs, spec)


def test_rows_that_are_too_large_together_are_kept_one_by_one() -> None:
    (batch,) = merged(MergeFunction())
    assert batch.num_rows == 1
    assert batch.column("w").nbytes >= HUGE


def test_rows_that_are_too_large_to_be_computed_with_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match=r"column 'w'.*compact more often"):
        list(merged(MergeFunction(engine="partial-update", key_columns=frozenset({"id"}))))
