"""Random queries have the recorded types and rows on Spark, and those of other seeds have the same on both engines.

With WRITE_SQL_CORPUS set the answers are written anew.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import tablestore as ts
from tests.support.sql.answers import EQUAL, TYPES, Answer, judge, plain_rows, read_answers, type_name, write_answers
from tests.support.sql.randomqueries import VIEWS, random_queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
_SEEDS, _QUERIES = 29, 10
_STEP = 40


@pytest.fixture
def session(spark: "SparkSession") -> "SparkSession":
    """A session with the views that the queries read."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.shuffle.partitions", "1")
    # Compiling them takes longer than running them.
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.adaptive.enabled", "false")
    for name, query in VIEWS.items():
        session.sql(query).createOrReplaceTempView(name)
    return session


def answers(session: "SparkSession", queries: Iterator[str]) -> Iterator[Answer]:
    from pyspark.errors import PySparkException

    for query in queries:
        try:
            rows = session.sql(query).toArrow()
        except PySparkException as error:
            yield Answer("random", query, error=error.getCondition() or type(error).__name__)
        else:
            yield Answer("random", query, types=tuple(type_name(one) for one in rows.schema.types), rows=plain_rows(rows))


@pytest.mark.deep
@pytest.mark.parametrize("step", [pytest.param(_STEP, id="some"), pytest.param(1, id="all", marks=pytest.mark.slow)])
def test_the_recorded_answers_are_sparks(step: int, session: "SparkSession") -> None:
    if os.environ.get("WRITE_SQL_CORPUS") and step == 1:
        queries = (query for seed in range(_SEEDS) for query in random_queries(seed, _QUERIES))
        write_answers(TYPES, answers(session, queries))
    known = read_answers(TYPES)[::step]
    found = list(answers(session, (answer.query for answer in known)))
    assert [(one.types, sorted(map(str, one.rows or ()))) for one in found] == [
        (one.types, sorted(map(str, one.rows or ()))) for one in known
    ]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1010))
def test_both_engines_give_the_same_types_and_rows(seed: int, session: "SparkSession") -> None:
    with ts.TableEnvironment.create({"metastore": "memory"}, engine="duckdb") as env:
        for name, query in VIEWS.items():
            env.execute_sql(f"CREATE TEMPORARY VIEW {name} AS {query}")
        verdicts = [judge(answer, env) for answer in answers(session, random_queries(seed, _QUERIES))]
    assert not [str(verdict) for verdict in verdicts if verdict.outcome != EQUAL]
