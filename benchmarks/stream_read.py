"""``python -m benchmarks.stream_read <table>``: read a table batch by batch, keep none.

Prints the number of rows, their digest, the seconds, and the peak resident memory of this process in bytes.
"""

import sys
import time

import pyarrow as pa

import tablestore as ts
from benchmarks.digest import digest
from benchmarks.measure import own_peak_memory


def main() -> None:
    """Reads and prints."""
    pa.set_cpu_count(1)
    rows, total, busy = 0, 0, 0.0
    start = time.perf_counter()
    for batch in ts.open_table(sys.argv[1]).scan().to_batches():
        busy += time.perf_counter() - start
        count, part = digest(pa.Table.from_batches([batch]), "id")
        rows, total = rows + count, (total + part) % 2**64
        start = time.perf_counter()
    print(rows, total, f"{busy + time.perf_counter() - start:.3f}", own_peak_memory())


if __name__ == "__main__":
    main()
