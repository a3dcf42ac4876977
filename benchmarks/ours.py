"""Tables of ours: made, filled and checked."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import tablestore as ts
from benchmarks.measure import WrongRows
from benchmarks.workloads import Workload

DATABASE = "bench"


def table_path(warehouse: Path, name: str) -> Path:
    """Where the table lies, in the layout that all implementations share."""
    return warehouse / f"{DATABASE}.db" / name


def create(
    warehouse: Path,
    name: str,
    workload: Workload,
    *,
    buckets: int,
    keyed: bool = True,
    extra: Mapping[str, str] | None = None,
) -> ts.Table:
    """A new, empty table."""
    catalog = ts.open_catalog(str(warehouse))
    catalog.create_database(DATABASE, ignore_if_exists=True)
    return catalog.create_table(
        f"{DATABASE}.{name}",
        schema=workload.schema,
        primary_key=workload.primary_key if keyed else [],
        options={**options(buckets), **(extra or {})},
    )


def options(buckets: int) -> Mapping[str, str]:
    """The options that our tables and the peers' share. Nobody compacts: what is read is what was written."""
    return {"bucket": str(buckets), "write-only": "true"}


def load(table: ts.Table, parts: Iterable[pa.Table]) -> None:
    """Write all parts with one commit."""
    with table.new_writer() as writer:
        for part in parts:
            writer.write(part)
        writer.commit()


def oldest_files(table: ts.Table) -> list[Path]:
    """The data files of the highest level on the local disk: all of a table that was compacted fully."""
    files = table.files()
    oldest = files.filter(pc.equal(files["level"], pc.max(files["level"])))
    return [Path(table.location) / path for path in oldest["file_path"].to_pylist()]


def check_exactly(workload: Workload, rows: pa.Table, expected: pa.Table) -> None:
    """Compare all cells. Raises WrongRows."""
    order = [(name, "ascending") for name in workload.primary_key]
    if not rows.select(expected.schema.names).sort_by(order).equals(expected.sort_by(order)):
        raise WrongRows(f"{rows.num_rows} rows were read, and they are not the {expected.num_rows} that were written")


def check(workload: Workload, rows: pa.Table, expected: tuple[int, int]) -> None:
    """Compare the digest. Raises WrongRows."""
    if (found := workload.digest(rows)) != expected:
        raise WrongRows(f"expected rows and digest {expected}, found {found}")
