"""More runs than a process may have open files: whatever merges them takes turns."""

import subprocess
import sys
from pathlib import Path

import pytest

# Two thirds as many open files as there are runs, in a process of its own: a limit holds for the whole process.
SCRIPT = """
import resource, sys
import pyarrow as pa
from tablestore import open_catalog

RUNS = 90
catalog = open_catalog(sys.argv[1])
catalog.create_database("db")
options = {"bucket": "1", "write-only": "true"} | dict(pair.split("=") for pair in sys.argv[3:])
schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.int64()), pa.field("w", pa.string())])
table = catalog.create_table("db.t", schema, primary_key=["id"], options=options)
expected = {}
for run in range(RUNS):
    # Enough rows that a file is not read to its end at once.
    ids = range(run, 5000 + run)
    table.upsert(pa.table({"id": ids, "v": [run] * len(ids), "w": [str(run)] * len(ids)}, schema=schema))
    expected.update(dict.fromkeys(ids, (run, str(run))))
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


def check(rows):
    assert {r["id"]: (r["v"], r["w"]) for r in rows.to_pylist()} == expected, "the rows are not those that were written"


step = sys.argv[2]
if step == "scan":
    check(table.scan().to_arrow())
    assert table.scan(columns=["w"], filter="id < 10").count() == sum(i < 10 for i in expected)
elif step == "compact":
    if options.get("changelog-producer") is None and options.get("deletion-vectors.enabled") is None:
        check(table.scan().to_arrow())
    table.compact(full=True)
    check(table.scan().to_arrow())
elif step == "changes":
    table.compact(full=True)
    kinds = {}
    for batch in table.changes(0).to_batches():
        for row in batch.to_pylist():
            if row["_row_kind"] in ("+I", "+U"):
                kinds[row["id"]] = (row["v"], row["w"])
            elif row["_row_kind"] == "-D":
                del kinds[row["id"]]
    assert kinds == expected
elif step == "delete":
    table.delete("id >= 200")
    expected = {i: row for i, row in expected.items() if i < 200}
    check(table.scan().to_arrow())
print("done")
"""


def run(tmp_path: Path, step: str, *options: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), step, *options], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout.strip() == "done", done.stderr[-3000:]


@pytest.mark.deep
@pytest.mark.parametrize("step", ["scan", "compact", "delete"])
def test_more_runs_than_open_files_allow_are_read_and_compacted(tmp_path: Path, step: str) -> None:
    run(tmp_path, step)


@pytest.mark.deep
def test_rows_are_computed_from_more_runs_than_open_files_allow(tmp_path: Path) -> None:
    run(tmp_path, "compact", "merge-engine=partial-update")


@pytest.mark.deep
def test_changes_are_found_among_more_runs_than_open_files_allow(tmp_path: Path) -> None:
    run(tmp_path, "changes", "changelog-producer=lookup")


@pytest.mark.deep
def test_deletion_vectors_are_made_of_more_runs_than_open_files_allow(tmp_path: Path) -> None:
    run(tmp_path, "compact", "deletion-vectors.enabled=true")
