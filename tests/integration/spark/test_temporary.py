"""Temporary objects in Spark: DataFrames as views, and functions of all its kinds by names of one to three parts."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tablestore as ts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def env(spark: "SparkSession", tmp_path: Path) -> Iterator[ts.TableEnvironment]:
    from pyspark_tablestore.engine import SparkEngine

    with ts.TableEnvironment.create(tmp_path / "wh", engine=SparkEngine(spark)) as made:
        yield made


class Add:
    def __init__(self, what: int = 10) -> None:
        self._what = what

    def eval(self, x: int) -> int:
        return x + self._what


def shout(text: pa.Array) -> pa.Array:
    return pc.utf8_upper(text)


def rows_of(env: ts.TableEnvironment, text: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in env.execute_sql(text).to_arrow().to_pylist()]


def test_a_dataframe_is_a_view_by_a_whole_name_and_hides_a_table(env: ts.TableEnvironment, spark: "SparkSession") -> None:
    env.execute_sql("CREATE TABLE t (id BIGINT)")
    env.create_temporary_view("t", spark.range(3))
    env.create_temporary_view("nowhere.shop.v", pa.table({"id": [1, 7]}))
    assert rows_of(env, "SELECT t.id FROM t JOIN nowhere.shop.v AS v ON t.id = v.id") == [(1,)]
    env.create_temporary_view("s", spark.readStream.format("rate").load())
    with pytest.raises(ts.TablestoreError):
        env.execute_sql("SELECT * FROM s").to_arrow()
    assert env.drop_temporary_view("t")
    assert rows_of(env, "SELECT count(*) FROM t") == [(0,)]
    with pytest.raises(ts.TablestoreError):
        env.execute_sql("SELECT * FROM shop.v")


def test_rows_of_this_process_are_all_there_however_they_are_cut(env: ts.TableEnvironment) -> None:
    """Spark passes over what comes behind two empty batches, and over the end of lists that begin in the middle of their data."""
    kinds = {
        "id": pa.int64(),
        "l": pa.list_(pa.timestamp("us")),
        "s": pa.struct({"x": pa.int32()}),
        "m": pa.map_(pa.string(), pa.int32()),
    }
    rows = pa.Table.from_pylist(
        [{"id": n, "l": None if n == 1 else [None], "s": {"x": n}, "m": [("k", n)]} for n in range(4)], pa.schema(kinds)
    )
    nothing = rows.slice(0, 0)
    for name, parts in {
        "cut": [nothing, nothing, rows.slice(0, 1), nothing, nothing, nothing, rows.slice(1), nothing],
        "none": [nothing],
        "plain": [nothing.select(["id"]), nothing.select(["id"]), rows.select(["id"])],
        "filtered": [rows.slice(n, 1).filter(pc.field("id") == 3) for n in range(4)],
    }.items():
        given = pa.concat_tables(parts)
        env.create_temporary_view(name, given)
        assert env.execute_sql(f"SELECT * FROM {name}").to_arrow().to_pylist() == given.to_pylist(), name
    env.create_temporary_view("batchless", pa.Table.from_batches([], rows.schema))
    assert rows_of(env, "SELECT count(*) FROM batchless") == [(0,)]
    env.create_temporary_view("others", pa.table({"v": pa.array(["a", None], pa.string_view()), "w": pa.array([1, 2], pa.uint8())}))
    assert rows_of(env, "SELECT v, w + 1 FROM others") == [("a", 2), (None, 3)]


class Mean:
    def create(self) -> list[float]:
        return [0.0, 0]

    def accumulate(self, state: list[float], value: float | None, weight: int) -> None:
        if value is not None:
            state[0] += value * weight
            state[1] += weight

    def merge(self, state: list[float], other: list[float]) -> list[float]:
        return [state[0] + other[0], state[1] + other[1]]

    def value(self, state: list[float]) -> float | None:
        return state[0] / state[1] if state[1] else None


def spread(values: pa.Array) -> float | None:
    return None if values.null_count == len(values) else pc.max(values).as_py() - pc.min(values).as_py()


def repeated(text: str, times: int) -> Iterator[tuple[str, int]]:
    for number in range(times):
        yield text, number


@pytest.mark.deep
def test_functions_of_groups_and_of_rows_run_as_on_duckdb(env: ts.TableEnvironment) -> None:
    env.create_temporary_function("mean", Mean)
    env.create_temporary_function("default.spread", spread, arguments=["DOUBLE"])
    env.create_temporary_function("repeated", repeated, returns="ROW<text STRING, number INT>")
    env.create_temporary_view("t", pa.table({"k": ["a", "a", "b"], "v": [1.0, 4.0, None], "w": [1, 2, 3]}))
    query = "SELECT k, mean(v, w) AS m, spread(v) AS s FROM t GROUP BY k ORDER BY k"
    assert rows_of(env, query) == [("a", 3.0, 3.0), ("b", None, None)]
    assert rows_of(env, "SELECT mean(id, 1) AS m FROM range(0, 200001, 1, 1)") == [(100_000.0,)]
    assert rows_of(env, "SELECT r.text, number FROM t, LATERAL repeated(t.k, t.w) AS r WHERE w = 2 ORDER BY number") == [
        ("a", 0),
        ("a", 1),
    ]

    class Breaks(Mean):
        def value(self, state: list[float]) -> float:
            raise ValueError("no mean today")

    env.create_temporary_function("breaks", Breaks)
    with pytest.raises(ts.TablestoreError, match="function breaks raised ValueError: no mean today"):
        env.execute_sql("SELECT breaks(v, w) AS b FROM t").to_arrow()


@pytest.mark.deep
def test_functions_of_every_kind_are_called_and_gone_with_the_environment(env: ts.TableEnvironment, spark: "SparkSession") -> None:
    import pandas as pd
    from pyspark.sql import functions as sf

    def total(values: pd.Series) -> float:
        return float(values.sum())

    class Pieces:
        def eval(self, text: str) -> Iterator[tuple[str]]:
            for piece in text.split(","):
                yield (piece,)

    env.create_temporary_function("add", Add)
    env.create_temporary_function("nowhere.shop.add", Add(100))
    env.create_temporary_function("shout", shout, returns="STRING")
    env.create_temporary_function("default.half", sf.udf(lambda x: x / 2, "double"))
    env.create_temporary_function("total", sf.pandas_udf(total, "double"))
    env.create_temporary_function("pieces", sf.udtf(Pieces, returnType="piece STRING"))
    env.create_temporary_function("default.abs", Add)
    env.execute_sql("CREATE TABLE t (id BIGINT, s STRING)")
    env.execute_sql("INSERT INTO t SELECT add(1), shout('a,b') UNION ALL SELECT nowhere.shop.add(1), 'c'")
    assert sorted(rows_of(env, "SELECT id, s FROM t")) == [(11, "A,B"), (101, "c")]
    assert rows_of(env, "SELECT half(id) AS h FROM t WHERE add(id) = 21") == [(5.5,)]
    assert rows_of(env, "SELECT total(id) AS n FROM t") == [(112.0,)]
    assert sorted(rows_of(env, "SELECT p.piece FROM t, LATERAL pieces(t.s) AS p")) == [("A",), ("B",), ("c",)]
    assert rows_of(env, "SELECT abs(-3) AS a, `default`.abs(-3) AS b") == [(3, 7)]
    assert not [name for name in rows_of(env, "SHOW FUNCTIONS") if "tablestore" in name[0]]
    assert {("upper",)} <= set(rows_of(env, "SHOW FUNCTIONS LIKE 'uppe_'")) <= {("upper",), ("system.builtin.upper",)}
    with pytest.raises(ts.InvalidInputError, match="Spark needs the type"):
        env.create_temporary_function("untyped", lambda x: x)
    env.drop_temporary_function("pieces")
    with pytest.raises(ts.TablestoreError):
        env.execute_sql("SELECT * FROM pieces('a')")
    env.close()
    assert not [one.name for one in spark.catalog.listFunctions() if one.name.startswith("__tablestore")]
