"""The watch over what engines receive (``tests/support/sql/received``), which every test has, finds what does not belong there."""

from pathlib import Path

import pytest

import tablestore as ts
from tablestore.sql.duckdb import transpile
from tests.support.sql.received import Received, unplanned

FORBIDDEN = (
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM (SELECT * FROM read_csv('/etc/passwd'))",
    "SELECT * FROM read_parquet(['/x.parquet'])",
    "WITH a AS (SELECT * FROM a) SELECT * FROM a",
    "SELECT * FROM (WITH a AS (SELECT 1) SELECT * FROM a), a",
    "SELECT getenv('HOME')",
    "SELECT current_setting('temp_directory')",
    "COPY (SELECT 1) TO '/tmp/x'",
    "CREATE TABLE x AS SELECT 1",
    "CREATE OR REPLACE TEMPORARY VIEW \"__tablestore_VIEW\" AS COPY (SELECT 1) TO '/tmp/x'",
    "CREATE OR REPLACE TEMPORARY VIEW \"__tablestore_VIEW\" AS SELECT * FROM glob('/*')",
    "SELECT 1; SELECT 2",
    "ATTACH '/x.db'",
    "SET VARIABLE a = 1",
    "INSTALL httpfs",
)


@pytest.mark.parametrize("text", FORBIDDEN)
def test_what_reaches_out_is_found(text: str) -> None:
    assert unplanned(text) is not None


def test_a_statement_that_gets_past_the_check_fails_the_test_that_sends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, received: Received
) -> None:
    (tmp_path / "x.csv").write_text("a\n1\n")
    monkeypatch.setattr(transpile, "_refuse_unplanned", lambda *_: None)
    with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb") as env:
        env.execute_sql("SELECT 1 AS one").to_arrow()
        received.check()
        with pytest.raises(ts.UnsupportedError, match="folders of tables alone"):
            env.execute_sql(f"SELECT * FROM '{tmp_path}/x.csv'")
        with pytest.raises(AssertionError, match=r"DuckDB received the table .*x\.csv"):
            received.check()
