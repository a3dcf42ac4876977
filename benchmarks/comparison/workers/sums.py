"""Sums rows, whatever their order: what each answer of a system is checked by.

Imports nothing of this project: the interpreters of other systems load it as well.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

CODE_MODULUS = 1_000_003
_TIE = 1009


def cents(prices: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Prices as whole numbers."""
    return np.rint(prices * 100).astype(np.int64)


def tied(ids: npt.NDArray[np.int64], quantities: npt.NDArray[np.int64]) -> int:
    """A sum that changes when two rows change places in one of the columns."""
    return int(((ids % _TIE) * (quantities % _TIE)).sum())


def sums(rows: pa.Table) -> dict[str, int]:
    """The number of rows, and a sum of each column that the rows have."""
    found = {"rows": rows.num_rows}
    columns = set(rows.schema.names)
    for name in ("id", "quantity"):
        if name in columns:
            found[name] = int(_numbers(rows[name]).sum())
    if "price" in columns:
        found["price"] = int(cents(rows["price"].to_numpy()).sum())
    if "code" in columns:
        codes = pc.cast(pc.cast(rows["code"], pa.string()), pa.int64()).to_numpy()
        found["code"] = int((codes % CODE_MODULUS).sum())
    if {"id", "quantity"} <= columns:
        found["tied"] = tied(_numbers(rows["id"]), _numbers(rows["quantity"]))
    return found


def _numbers(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    numbers: npt.NDArray[np.int64] = column.to_numpy()
    return numbers
