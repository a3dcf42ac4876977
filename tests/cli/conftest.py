"""A warehouse of its own for every test, and the command that works on it."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.cli.command import DEBUG_VARIABLE, WAREHOUSE_VARIABLE
from tablestore.clock import SystemClock
from tablestore.testing.deterministic import ManualClock
from tests.support.commandline import Ran, run_command


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path = str(tmp_path / "warehouse")
    monkeypatch.setenv(WAREHOUSE_VARIABLE, path)
    monkeypatch.delenv(DEBUG_VARIABLE, raising=False)
    # Wide, without colours: what is asserted is the text.
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("NO_COLOR", "1")
    return path


@pytest.fixture
def run(warehouse: str) -> Callable[..., Ran]:
    return run_command


@pytest.fixture
def catalog(warehouse: str) -> ts.Catalog:
    catalog = ts.open_catalog(warehouse)
    catalog.create_database("shop")
    return catalog


@pytest.fixture
def orders(catalog: ts.Catalog) -> ts.Table:
    """A keyed table of two commits: 1, 2, 3, then 2 again and 4."""
    table = catalog.create_table(
        "shop.orders",
        schema=pa.schema([("id", pa.int64()), ("item", pa.string()), ("price", pa.float64())]),
        primary_key=["id"],
        options={"bucket": "2", "write-only": "true"},
    )
    table.upsert(pa.table({"id": [1, 2, 3], "item": ["pen", "ink", "pad"], "price": [1.5, 8.0, 4.0]}))
    table.upsert(pa.table({"id": [2, 4], "item": ["ink", None], "price": [9.0, 0.5]}))
    return table


@pytest.fixture
def clock_env(warehouse: str) -> Callable[[], ts.TableEnvironment]:
    """Environments of the warehouse by DuckDB, with a clock that stands still."""
    return lambda: ts.TableEnvironment.create(warehouse, engine="duckdb", clock=ManualClock(start_ms=SystemClock().now_ms()))
