"""The queries of TPC-H and TPC-DS give over managed tables what DuckDB 1.4.4 gives over its own."""

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from benchmarks.peers import PeerUnavailable
from benchmarks.tpc import Kind, difference, load, prepare
from tests.conftest import IN_CI


@pytest.mark.deep
@pytest.mark.interop
@pytest.mark.parametrize(
    ("kind", "scale"), [("tpch", 0.01), pytest.param("tpcds", 0.1, marks=pytest.mark.slow)], ids=["tpch", "tpcds"]
)
def test_every_query_has_its_answer(kind: Kind, scale: float, tmp_path: Path) -> None:
    try:
        data = prepare(kind, scale, tmp_path / "data")
    except PeerUnavailable as error:
        if IN_CI:
            raise
        pytest.skip(str(error))
    load(data, tmp_path / "warehouse")
    wrong: dict[int, str] = {}
    with ts.TableEnvironment.create(str(tmp_path / "warehouse"), engine="duckdb") as env:
        env.execute_sql(f"USE {kind}")
        for number, text in data.queries.items():
            try:
                data.check(number, env.execute_sql(text).to_arrow())
            except Exception as error:
                wrong[number] = f"{type(error).__name__}: {error}"
    assert not wrong, "\n".join(f"{number}: {why}" for number, why in wrong.items())
    assert len(data.queries) == {"tpch": 22, "tpcds": 99}[kind]


def test_answers_are_compared_as_bags_of_rows() -> None:
    rows = pa.table({"a": [1, 2, None], "b": [0.1 + 0.2, float("nan"), 2.0], "c": ["x", "y", "x"]})
    same = pa.table({"a": [2, 1, None], "sum": [float("nan"), 0.3, 2.0], "c": ["y", "x", "x"]})
    exact = pa.table({"a": [Decimal("2.00"), Decimal("1.00"), None], "b": same["sum"], "c": same["c"]})
    assert difference(rows, same) is None
    assert difference(rows, exact) is None
    for other in (same.slice(1), same.select(["a"]), same.set_column(1, "b", pa.array([1.0, 0.3, 2.0])), same.take([0, 1, 1])):
        assert difference(other, same) is not None
