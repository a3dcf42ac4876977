"""The corpus of statements on DuckDB: the rows that Spark gives, or a refusal that names what DuckDB cannot do."""

import re
from collections.abc import Iterator

import pytest
from tablestore_duckdb.engine import DuckDBEngine

import tablestore as ts
from tablestore.testing.contracts.queryengine import managed
from tests.support.sql.corpus import Statement, bind_statement, canonical, expected, make_tables, statements

EXPECTED = expected()


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ts.Table]:
    return make_tables(ts.open_catalog(str(tmp_path_factory.mktemp("warehouse"))))


@pytest.fixture(scope="module")
def engine() -> Iterator[DuckDBEngine]:
    engine = DuckDBEngine()
    yield engine
    engine.close()


@pytest.mark.deep
@pytest.mark.parametrize("statement", statements(), ids=str)
def test_rows_are_sparks(statement: Statement, tables: dict[str, ts.Table], engine: DuckDBEngine) -> None:
    entry = EXPECTED[str(statement)]
    bound = bind_statement(statement, lambda name: managed(tables[name], name=f"shop.{name}"))
    if "rows" not in entry:
        pytest.skip("Spark refuses it too")
    if "refused by DuckDB" in entry:
        with pytest.raises(ts.UnsupportedError, match=re.escape(entry["refused by DuckDB"])):
            engine.query(bound)
        return
    rows = engine.query(bound).to_reader().read_all()
    assert canonical(rows, ordered=statement.ordered) == entry["rows"]
