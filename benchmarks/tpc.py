"""TPC-H and TPC-DS over managed tables, for any query engine.

    DuckDB 1.4.4, a process of its own    tables, queries and answers as files (``tpc_worker``)
    ours                                  managed tables with primary keys, compacted

The answers are those of DuckDB 1.4.4 over the same rows. Another release adds floats in another order, and rows that ORDER BY
leaves in any order may come in any: so answers are compared as bags of rows, floats to nine digits, and decimals (as which Spark
has averages) to their last one.
"""

import json
import math
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

import tablestore as ts
from benchmarks.peers import PeerUnavailable, find_interpreter

Kind = Literal["tpch", "tpcds"]
_WORKER = Path(__file__).with_name("tpc_worker.py")

# The tables whose key is more than their first column.
_KEYS = {
    "lineitem": ("l_orderkey", "l_linenumber"),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "store_sales": ("ss_item_sk", "ss_ticket_number"),
    "store_returns": ("sr_item_sk", "sr_ticket_number"),
    "catalog_sales": ("cs_item_sk", "cs_order_number"),
    "catalog_returns": ("cr_item_sk", "cr_order_number"),
    "web_sales": ("ws_item_sk", "ws_order_number"),
    "web_returns": ("wr_item_sk", "wr_order_number"),
    "inventory": ("inv_date_sk", "inv_item_sk", "inv_warehouse_sk"),
}
# A bucket for about so many rows.
_BUCKET_ROWS = 2_000_000


class WrongAnswer(Exception):
    """A query gave other rows than DuckDB 1.4.4."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TpcData:
    """Tables, queries and answers in a directory."""

    kind: Kind
    directory: Path

    @property
    def tables(self) -> dict[str, Path]:
        """The Parquet file of each table."""
        return {path.stem: path for path in sorted((self.directory / "tables").glob("*.parquet"))}

    @property
    def queries(self) -> dict[int, str]:
        """The text of each query, by its number."""
        found = json.loads((self.directory / "queries.json").read_text())
        return {int(number): text.strip().rstrip(";") for number, text in found.items()}

    def check(self, number: int, rows: pa.Table) -> None:
        """Raise WrongAnswer if these are not the rows of a query."""
        wanted = pq.ParquetFile(self.directory / "answers" / f"{number}.parquet").read()
        if why := difference(rows, wanted):
            raise WrongAnswer(f"{self.kind} query {number}: {why}")


def prepare(kind: Kind, scale: float, directory: Path) -> TpcData:
    """Make the data, if the directory does not have it yet. Raises PeerUnavailable."""
    if not (directory / "queries.json").exists():
        command = [str(find_interpreter("tpc")), str(_WORKER), kind, str(scale), str(directory)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise PeerUnavailable(f"{kind}: {done.stderr[-2000:]}")
    return TpcData(kind=kind, directory=directory)


def load(data: TpcData, warehouse: Path) -> None:
    """Write the tables as managed ones into the database of their kind, batch by batch, and compact them."""
    catalog = ts.open_catalog(str(warehouse))
    catalog.create_database(data.kind)
    for name, path in data.tables.items():
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            keys = _KEYS.get(name, (schema.names[0],))
            table = catalog.create_table(
                f"{data.kind}.{name}",
                schema=pa.schema([pa.field(field.name, field.type, field.name not in keys) for field in schema]),
                primary_key=keys,
                options={"bucket": str(1 + file.metadata.num_rows // _BUCKET_ROWS), "write-only": "true"},
            )
            table.upsert(pa.RecordBatchReader.from_batches(schema, file.iter_batches()))
        table.compact(full=True)


def difference(found: pa.Table, wanted: pa.Table) -> str | None:
    """How two answers differ; None if they do not. Columns are compared by their place."""
    if (found.num_rows, found.num_columns) != (wanted.num_rows, wanted.num_columns):
        sizes = [f"{table.num_rows} rows of {table.num_columns} columns" for table in (wanted, found)]
        return f"expected {sizes[0]}, found {sizes[1]}"
    allowed = [10.0**-field.type.scale if pa.types.is_decimal(field.type) else 1e-9 for field in found.schema]
    for ours, theirs in zip(_rows(found), _rows(wanted), strict=True):
        if not all(map(_is_same, ours, theirs, allowed)):
            return f"expected the row {theirs}, found {ours}"
    return None


def _rows(table: pa.Table) -> Sequence[tuple[Any, ...]]:
    return sorted(zip(*(map(_plain, column.to_pylist()) for column in table.columns), strict=True), key=_order)


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal | int) and not isinstance(value, bool) else value


def _order(row: tuple[Any, ...]) -> tuple[list[str], list[str], list[float]]:
    # Numbers that differ a little shall not part two rows that are the same.
    numbers = [value for value in row if isinstance(value, float)]
    return [str(value) for value in row if not isinstance(value, float)], [f"{value:.4e}" for value in numbers], numbers


def _is_same(ours: Any, theirs: Any, allowed: float) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=allowed) or (math.isnan(ours) and math.isnan(theirs))
    return bool(ours == theirs)
