"""Sums up the live files of a snapshot by partition, or by partition and bucket, from the columns of its manifests."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tablestore.format.manifest.entrycolumns import EntryColumns
from tablestore.format.snapshot import Snapshot
from tablestore.store.manifests import Manifests
from tablestore.types.arrays import places_array


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSums:
    """The files of one group. ``rows`` are counted before merging; ``newest_millis``: when the newest file was written, if known;
    ``is_dated``: of every file.

    ``group``: the serialised partition, and the bucket if files are summed up by bucket.
    """

    group: tuple[Any, ...]
    rows: int
    files: int
    size_bytes: int
    newest_millis: int | None
    is_dated: bool


_NUMBERS = ("row_count", "file_size", "creation_time_millis")
_COUNTS = ("files", "dated")


def summed_files(manifests: Manifests, snapshot: Snapshot | None, *by: str) -> list[FileSums]:
    """The sums of each group, in the order of the serialised partitions. Memory: 20 bytes of each file, and the sums of each
    manifest."""
    parts = manifests.live_parts(snapshot, lambda _: (*by, *_NUMBERS), lambda files: _summed(files, by, counted=False))
    sums = _summed(EntryColumns(pa.concat_tables(parts).unify_dictionaries().combine_chunks()), by, counted=True)
    groups, which = EntryColumns(sums).groups(*by)
    rows = sums.select([*_NUMBERS, *_COUNTS]).to_pylist()
    of_group = dict(zip(which.tolist(), rows, strict=True))
    return [
        FileSums(
            group=group,
            rows=of_group[number]["row_count"],
            files=of_group[number]["files"],
            size_bytes=of_group[number]["file_size"],
            newest_millis=of_group[number]["creation_time_millis"],
            is_dated=of_group[number]["dated"] == of_group[number]["files"],
        )
        for number, group in enumerate(groups)
    ]


def _summed(files: EntryColumns, by: Sequence[str], *, counted: bool) -> pa.Table:
    """One row of each group. ``counted``: the rows are sums already, with the numbers of their files; else each row is a file."""
    _, which = files.groups(*by)
    first = np.unique(which, return_index=True)[1]
    numbers = [files.column(name) for name in _NUMBERS]
    counts = [files.column(name) for name in _COUNTS] if counted else _counts_of(files)
    table = pa.Table.from_arrays([places_array(which), *numbers, *counts], names=["group", *_NUMBERS, *_COUNTS])
    sums = (
        table.group_by("group")
        .aggregate([*((name, "sum") for name in ("row_count", "file_size", *_COUNTS)), ("creation_time_millis", "max")])
        .sort_by("group")
    )
    columns = {
        **{name: files.column(name).take(places_array(first)) for name in by},
        "row_count": sums.column("row_count_sum"),
        "file_size": sums.column("file_size_sum"),
        "creation_time_millis": sums.column("creation_time_millis_max"),
        **{name: sums.column(f"{name}_sum") for name in _COUNTS},
    }
    return pa.Table.from_arrays(list(columns.values()), names=list(columns))


def _counts_of(files: EntryColumns) -> list[pa.Array]:
    return [places_array(np.ones(len(files), np.int64)), files.column("creation_time_millis").is_valid().cast(pa.int64())]
