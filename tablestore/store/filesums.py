"""Sums up the live files of a snapshot by partition, or by partition and bucket, from the columns of its manifests."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tablestore.format.snapshot import Snapshot
from tablestore.store.manifests import Manifests


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


def summed_files(manifests: Manifests, snapshot: Snapshot | None, *by: str) -> list[FileSums]:
    """The sums of each group, in the order of the serialised partitions. Memory: four numbers of each file, and its name."""
    live = manifests.live_columns(snapshot, (*by, "row_count", "file_size", "creation_time_millis"))
    groups, which = live.groups(*by)
    files = pa.table(
        {
            "group": which,
            "row_count": live.column("row_count"),
            "file_size": live.column("file_size"),
            "time": live.column("creation_time_millis"),
        }
    )
    sums = files.group_by("group").aggregate(
        [("row_count", "sum"), ("file_size", "sum"), ("time", "max"), ("time", "count"), ("group", "count")]
    )
    return [
        FileSums(
            group=groups[row["group"]],
            rows=row["row_count_sum"],
            files=row["group_count"],
            size_bytes=row["file_size_sum"],
            newest_millis=row["time_max"],
            is_dated=row["time_count"] == row["group_count"],
        )
        for row in sums.sort_by("group").to_pylist()
    ]
