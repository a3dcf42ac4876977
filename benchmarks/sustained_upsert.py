"""``python -m benchmarks.sustained_upsert <table> <keys> <rows> <commits> <seed>``: upsert random keys, commit after commit.

Prints the seconds of all commits, and the peak resident memory of this process in bytes.
"""

import sys
import time

import numpy as np
import pyarrow as pa

import tablestore as ts
from benchmarks.measure import own_peak_memory
from benchmarks.workloads import Workload


def main() -> None:
    """Writes and prints."""
    pa.set_cpu_count(1)
    location, (keys, rows, commits, seed) = sys.argv[1], map(int, sys.argv[2:6])
    workload = Workload("bigint", keys, seed)
    table = ts.open_table(location)
    seconds = []
    for number in range(commits):
        chosen = numbers_of(keys, rows, seed, number)
        batch = workload.table(chosen, number + 1)
        start = time.perf_counter()
        table.upsert(batch)
        seconds.append(time.perf_counter() - start)
    print(*(f"{took:.4f}" for took in seconds), own_peak_memory())


def numbers_of(keys: int, rows: int, seed: int, commit: int) -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
    """The row numbers of one commit: random, some of them twice."""
    return np.random.default_rng([seed, commit]).integers(0, keys, rows).astype(np.uint64)


if __name__ == "__main__":
    main()
