"""Each function of the engine DuckDB is measured, by a call that runs."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from tablestore_duckdb import open_engine

import tablestore as ts
from benchmarks import bench_functions
from benchmarks.functioncalls import KINDS, UNMEASURED, Kind, called_functions
from benchmarks.report import Report
from benchmarks.setting import Setting
from tablestore.sql.duckdb.functions.functiontable import RULES

ROWS = 200


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET timezone = 'UTC'")
        yield connection


def test_each_function_with_a_rule_is_measured() -> None:
    calls = (call for kind in KINDS for call in kind.calls)
    measured = {RULES[name].name for call in calls for name in called_functions(call, RULES)}
    assert {rule.name for rule in RULES.values()} - measured == UNMEASURED.keys(), (
        "benchmarks/functioncalls.py needs a call of each"
    )


@pytest.mark.deep_after(3)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_calls_of_a_kind_and_their_base_run(kind: Kind, connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    with ts.TableEnvironment.create(warehouse=tmp_path, engine=open_engine(connection)) as env:
        bench_functions.fill(connection, env, kind, rows=ROWS, values=ROWS)
        table = "sketches" if kind.is_of_sketches else "input"
        assert connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0] > 0
        base = connection.execute(bench_functions.query_of(kind, kind.base, table, is_base=True)).fetchall()
        assert len(base) == 1
        for call in kind.calls:
            rows = env.execute_sql(bench_functions.query_of(kind, call, table)).to_arrow()
            assert rows.num_rows == 1, call


@pytest.mark.deep
def test_the_slowest_functions_are_the_first_bars(tmp_path: Path) -> None:
    setting = Setting(
        directory=tmp_path, rows=100, repeats=1, seed=7, report=Report(settings={}, machine={"cpu": "any"}), warm_up=False
    )
    bench_functions.run(setting, "crc32")
    assert {bar.name for bar in setting.report.bars} == {"`crc32(bin)`", "`crc32(bin) of 1,000 values`"}
    measured = [bar.measured for bar in setting.report.bars if bar.measured is not None]
    assert measured == sorted(measured, reverse=True)
