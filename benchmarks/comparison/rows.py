"""Makes the rows of all suites, and foretells what has to be read of a table after any number of changes.

Rows are those of :class:`benchmarks.workloads.Workload` with a bigint key. A commit is a share of rows that are there and a tenth
of rows that are new, so that tables grow. Keys are uniform, or Zipf: few keys change often, wherever they lie.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.comparison.workers.sums import CODE_MODULUS, cents, tied
from benchmarks.workloads import Numbers, Workload

Keys = Literal["uniform", "zipf"]
NEW_SHARE = 0.1
_ZIPF = 1.2
COLUMNS = ("id", "quantity", "price", "code")


@dataclass(slots=True)
class Expected:
    """What a table holds: the values of each row by its number, as numbers."""

    quantity: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    price: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    code: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    live: np.ndarray = field(default_factory=lambda: np.zeros(0, np.bool_))
    version: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    def put(self, rows: pa.Table, version: int = 0) -> None:
        """Rows of a version were upserted."""
        ids = rows["id"].to_numpy()
        more = int(ids.max()) + 1 - len(self.live) if len(ids) else 0
        if more > 0:
            for name in ("quantity", "price", "code", "live", "version"):
                values = getattr(self, name)
                setattr(self, name, np.concatenate([values, np.zeros(more, values.dtype)]))
        self.quantity[ids] = rows["quantity"].to_numpy()
        self.price[ids] = cents(rows["price"].to_numpy())
        self.code[ids] = rows["code"].cast(pa.int64()).to_numpy() % CODE_MODULUS
        self.live[ids] = True
        self.version[ids] = version

    def update(self) -> int:
        """What ``System.update`` does; the number of rows."""
        chosen = self.live & (np.arange(len(self.live)) % 100 == 3)
        self.quantity[chosen] += 1
        return int(chosen.sum())

    def delete(self) -> int:
        """What ``System.delete`` does; the number of rows."""
        chosen = self.live & (np.arange(len(self.live)) % 100 == 5)
        self.live[chosen] = False
        return int(chosen.sum())

    def sums(self, columns: Sequence[str] = COLUMNS, keys: Sequence[int] | None = None) -> dict[str, int]:
        """The sums of all rows, or of those with these keys."""
        ids = np.flatnonzero(self.live) if keys is None else np.array([key for key in keys if self.live[key]], np.int64)
        found = {"rows": len(ids)}
        if "id" in columns:
            found["id"] = int(ids.sum())
        for name in ("quantity", "price", "code"):
            if name in columns:
                found[name] = int(getattr(self, name)[ids].sum())
        if "id" in columns and "quantity" in columns:
            found["tied"] = tied(ids, self.quantity[ids])
        return found

    def table(self, seed: int) -> pa.Table:
        """The rows in the order of their keys, made anew: only after loads and upserts of a :class:`RowSource`."""
        workload = Workload("bigint", len(self.live), seed)
        ids = np.flatnonzero(self.live)
        versions = self.version[ids]
        parts = [workload.table(ids[versions == version].astype(np.uint64), int(version)) for version in np.unique(versions)]
        return pa.concat_tables(parts).sort_by("id")


class RowSource:
    """Rows under a seed, as Parquet files in a directory: each is made once and handed to all systems."""

    def __init__(self, directory: Path, seed: int) -> None:
        self._directory = directory
        self._seed = seed
        directory.mkdir(parents=True, exist_ok=True)

    def base(self, rows: int) -> tuple[Path, pa.Table]:
        """Rows 0 … rows-1 in random order."""
        workload = Workload("bigint", rows, self._seed)
        return self._file(f"base-{rows}", lambda: pa.concat_tables(workload.base()))

    def commit(self, number: int, *, rows: int, live: int, keys: Keys, new: float = NEW_SHARE) -> tuple[Path, pa.Table]:
        """The rows of commit ``number`` (1, 2, …) of so many rows into ``live`` rows: at most so many, each key once."""
        workload = Workload("bigint", live, self._seed)

        def make() -> pa.Table:
            draw = np.random.default_rng([self._seed, number, rows, live])
            added = int(rows * new)
            old = _drawn(draw, rows - added, live, keys, self._seed)
            numbers = np.concatenate([old, np.arange(live, live + added, dtype=np.uint64)])
            draw.shuffle(numbers)
            return workload.table(numbers, number)

        return self._file(f"commit-{keys}-{number}-{rows}-{live}-{new}", make)

    def range(self, first: int, rows: int) -> tuple[Path, pa.Table]:
        """Rows first … first+rows-1."""
        workload = Workload("bigint", rows, self._seed)
        numbers = np.arange(first, first + rows, dtype=np.uint64)
        return self._file(f"range-{first}-{rows}", lambda: workload.table(numbers))

    def newest(self, name: str, expected: Expected) -> Path:
        """The rows that a table holds, as a file."""
        return self._file(f"newest-{name}", lambda: expected.table(self._seed))[0]

    def _file(self, name: str, make: Callable[[], pa.Table]) -> tuple[Path, pa.Table]:
        path = self._directory / f"{name}.parquet"
        if not path.exists():
            table = make()
            # Every system reads it before anything is timed; its codec is one that all have.
            pq.write_table(table.cast(pa.schema([field.with_nullable(True) for field in table.schema])), path)
        return path, pq.read_table(path)


def _drawn(draw: np.random.Generator, count: int, live: int, keys: Keys, seed: int) -> Numbers:
    if keys == "uniform":
        return draw.choice(live, min(count, live), replace=False).astype(np.uint64)
    ranks = np.unique(draw.zipf(_ZIPF, count) % live)
    # Hot keys lie anywhere.
    return np.unique((ranks.astype(np.uint64) * np.uint64(2_654_435_761) + np.uint64(seed)) % np.uint64(live))
