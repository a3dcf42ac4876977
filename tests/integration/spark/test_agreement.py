"""What the small evaluator and every engine agree on has Spark's values: each operator with each type, values at the edges.

And a statement that needs no engine runs no job of Spark's.
"""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.errors import TablestoreError
from tablestore.types.expression.agreement import agreed_condition, agreed_type
from tablestore.types.expression.evaluate import ColumnValues, evaluate_expression
from tablestore.types.expression.expression import Expression
from tablestore.types.expression.sqlexpression import column_finder, parse_expression_text
from tests.support.sql.simplechanges import SCHEMA, Texts, edge_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
COLUMN_OF = column_finder({"": SCHEMA.names}, "expression")
READ = [name for name in SCHEMA.names if name not in ("ts", "tz", "st", "arr")]
KINDS = "int double float decimal text bool bytes date".split()  # noqa: SIM905


def type_of(name: str) -> pa.DataType:
    return SCHEMA.field(name).type


def agreed_texts(rng: random.Random, count: int) -> Iterator[tuple[str, Expression]]:
    """Random texts whose meaning is agreed on."""
    texts, left = Texts(rng), count
    while left:
        text = texts.expression(rng.choice(KINDS), rng.choice([1, 1, 2, 3]))
        try:
            expression = parse_expression_text(text, COLUMN_OF)
        except TablestoreError:
            continue
        found = agreed_type(expression, type_of)
        if found is not None and not pa.types.is_null(found):
            left -= 1
            yield text, expression


@pytest.mark.deep
@pytest.mark.parametrize("count", [pytest.param(300, id="some"), pytest.param(6000, id="all", marks=pytest.mark.slow)])
def test_what_is_agreed_on_has_the_values_that_spark_gives(count: int, spark: "SparkSession") -> None:
    rng = random.Random(7)
    session = spark.newSession()
    rows = edge_rows(rng, 60).select(READ)
    frame = session.createDataFrame(rows).repartition(1).cache()
    ours: list[tuple[str, list[str]]] = []
    for text, expression in agreed_texts(rng, count):
        columns = ColumnValues(rows.num_rows, lambda column: rows.column(column.name).combine_chunks())
        try:
            values = evaluate_expression(expression, columns)
        except TablestoreError:
            # It is the engine's to say what is wrong; but of a condition that cannot be.
            assert not agreed_condition(expression, type_of), text
            continue
        assert values.type == agreed_type(expression, type_of), text
        ours.append((text, shown(values.to_pylist())))
    assert len(ours) > count // 2
    for start in range(0, len(ours), 100):
        some = ours[start : start + 100]
        for (text, values), found in zip(some, values_of(frame, [text for text, _ in some]), strict=True):
            assert values == found, text


def values_of(frame: "DataFrame", texts: Sequence[str]) -> list[list[str]]:
    """The values of expressions; one that fails has its error."""
    try:
        found = frame.selectExpr(*(f"{text} AS c{place}" for place, text in enumerate(texts))).toArrow()
    except Exception as error:
        if len(texts) == 1:
            return [[f"{type(error).__name__}: {error}"[:200]]]
        middle = len(texts) // 2
        return values_of(frame, texts[:middle]) + values_of(frame, texts[middle:])
    return [shown(column.to_pylist()) for column in found.columns]


def shown(values: Sequence[object]) -> list[str]:
    return [repr(bytes(value) if isinstance(value, bytearray) else value) for value in values]


@pytest.mark.deep
def test_a_change_of_one_row_needs_no_job(tmp_path: Path, spark: "SparkSession") -> None:
    session = spark.newSession()
    tracker = spark.sparkContext.statusTracker()
    with ts.TableEnvironment.create(tmp_path / "wh", spark=session) as env:
        env.execute_sql("CREATE TABLE t (id BIGINT PRIMARY KEY NOT ENFORCED, n INT, s STRING) WITH ('bucket' = '1')")
        spark.sparkContext.setJobGroup("direct", "statements that need no engine")
        env.execute_sql("INSERT INTO t VALUES (1, 2147483646, 'a'), (2, 0, NULL)")
        env.execute_sql("UPDATE t SET n = n + 1, s = s || 'b' WHERE id = 1")
        env.execute_sql("DELETE FROM t WHERE n = 0")
        assert not tracker.getJobIdsForGroup("direct")
        table = env.catalog().table("default.t")
        assert table.scan().to_arrow().to_pylist() == [{"id": 1, "n": 2147483647, "s": "ab"}]
        # Without ANSI mode a sum that is too large wraps around, so Spark computes it.
        with pytest.raises(ts.TablestoreError, match="overflow"):
            env.execute_sql("UPDATE t SET n = n + 1")
        session.conf.set("spark.sql.ansi.enabled", "false")
        env.execute_sql("UPDATE t SET n = n + 1")
        assert table.scan().to_arrow().column("n").to_pylist() == [-2147483648]
