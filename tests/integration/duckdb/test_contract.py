"""DuckDB keeps what every query engine promises."""

from collections.abc import Iterator

import pytest
from tablestore_duckdb.engine import DuckDBEngine

from tablestore.testing.contracts.queryengine import QueryEngineContract


class TestDuckDB(QueryEngineContract):
    @pytest.fixture
    def engine(self) -> Iterator[DuckDBEngine]:
        engine = DuckDBEngine()
        yield engine
        engine.close()
