"""Shows what a statement that changes rows did: a sentence, or under ``--json`` its row with files, bytes and seconds too."""

from collections.abc import Callable, Iterator

import pyarrow as pa

from tablestore.environment.result import Result

_FILES = ("files_added", "files_removed", "bytes_added", "bytes_removed")


def landed_lines(result: Result, took: str) -> Iterator[str]:
    """The lines for people; a statement set has one for each INSERT. ``took``: what follows the sentence."""
    rows = result.to_arrow()
    if "table" in rows.column_names:
        for row in rows.to_pylist():
            snapshot, affected = row["snapshot_id"], row["num_affected_rows"]
            written = "" if affected is None else f", {affected:,} {'row' if affected == 1 else 'rows'} written"
            yield f"{row['table']}: " + ("nothing to change." if snapshot is None else f"snapshot {snapshot}{written}.")
    elif (landed := result.snapshot) is None:
        yield f"Nothing to change{took}."
    else:
        changed = landed.counts.text
        yield f"Snapshot {landed.id}{': ' if changed else ''}{changed}{took}."


def landed_rows(result: Result, seconds: Callable[[], float]) -> pa.Table:
    """The rows for programs. ``seconds`` tells the time that the statement took, when it is done."""
    rows, counts = result.to_arrow(), result.counts
    if counts is not None and "table" not in rows.column_names:
        for name in _FILES:
            rows = rows.append_column(name, pa.array([getattr(counts, name)], pa.int64()))
    return rows.append_column("seconds", pa.array([round(seconds(), 3)] * rows.num_rows, pa.float64()))
