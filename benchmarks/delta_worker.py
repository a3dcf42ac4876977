"""deltalake in a process of its own, timed inside: what the process takes to start does not count.

python delta_worker.py create TABLE ROWS    a table of the rows (Arrow IPC)
python delta_worker.py merge TABLE ROWS     updates the rows of equal id, and inserts the others; prints what it took, as JSON
"""

import gc
import json
import sys
import time

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake


def main(command: str, table: str, path: str) -> None:
    """Runs one command."""
    with pa.OSFile(path, "rb") as source:
        rows = pa.ipc.open_stream(source)
        if command == "create":
            write_deltalake(table, rows)
            return
        changes = rows.read_all()
    delta = DeltaTable(table)
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    merge = delta.merge(changes, "t.id = s.id", source_alias="s", target_alias="t")
    done = merge.when_matched_update_all().when_not_matched_insert_all().execute()
    seconds = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    print(json.dumps({**seconds, "updated": done["num_target_rows_updated"], "inserted": done["num_target_rows_inserted"]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
