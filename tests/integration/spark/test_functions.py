"""Recorded answers about Spark's functions: they are what Spark says, and what an environment on Spark says.

With WRITE_SQL_CORPUS set the files of answers are written anew, in one Spark session.
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark_tablestore.engine import open_engine

import tablestore as ts
from tablestore.sql.query.functions import SPARK_FUNCTIONS
from tests.support.sql import scalaredges
from tests.support.sql.answers import (
    COLLECTIONS,
    EDGES,
    EQUAL,
    EXAMPLES,
    REFUSED,
    SCALAR_EDGES,
    Answer,
    judge,
    plain_rows,
    read_answers,
    type_name,
    write_answers,
)
from tests.support.sql.edges import Edge, aggregates, edges

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

_EXAMPLE = re.compile(r"^\s*> (SELECT\b.*?);\s*$", re.MULTILINE | re.DOTALL | re.IGNORECASE)
# They say the same twice within a second, or a day.
_OF_THE_MOMENT = re.compile(r"(?:current_time|localtime|unix_timestamp)\((?:0)?\)|current_date|curdate")
_NOT_OUT = ("NOT_IMPLEMENTED", "UNSUPPORTED_DATA_TYPE_FOR_ARROW_CONVERSION")
# The error of an answer that is a text, but none in UTF-8.
UNREADABLE = "NOT_UTF8"
# A share of them where time is short.
_STEP = 12


@pytest.fixture
def session(spark: "SparkSession") -> "SparkSession":
    """A session as an environment of its own has it."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.ansi.enabled", "true")
    return session


@pytest.mark.deep
@pytest.mark.parametrize("step", [pytest.param(_STEP, id="some"), pytest.param(1, id="all", marks=pytest.mark.slow)])
@pytest.mark.since(4, 3)
def test_an_environment_on_spark_answers_as_spark_does(step: int, session: "SparkSession", tmp_path: Path) -> None:
    with ts.TableEnvironment.create(tmp_path, engine=open_engine(session)) as env:
        verdicts = [judge(answer, env) for answer in read_answers(EXAMPLES)[::step]]
    assert not [
        str(verdict)
        for verdict in verdicts
        if verdict.outcome != EQUAL and not (verdict.outcome == REFUSED and cannot_leave_spark(verdict.answer))
    ]


def test_a_variant_that_is_null_is_refused_by_name(session: "SparkSession", tmp_path: Path) -> None:
    with ts.TableEnvironment.create(tmp_path, engine=open_engine(session)) as env:
        for query in ("SELECT try_parse_json('{')", "SELECT array(try_parse_json('{'))"):
            with pytest.raises(ts.UnsupportedError, match="VARIANT that is NULL"):
                env.execute_sql(query).to_arrow()
        assert env.execute_sql("SELECT to_json(try_parse_json('{')) AS v").to_arrow().to_pylist() == [{"v": None}]


def cannot_leave_spark(answer: Answer) -> bool:
    """Whether the values are of a type that Arrow has no words for: intervals of months, and VARIANT that is NULL."""
    return answer.error in _NOT_OUT or (
        answer.rows is None and any(kind.startswith(("interval", "variant")) for kind in answer.types)
    )


@pytest.mark.since(4, 3)
def test_the_functions_that_spark_has_are_known(session: "SparkSession") -> None:
    names = {name for (name,) in session.sql("SHOW FUNCTIONS").collect() if name.replace("_", "").isalnum()}
    assert names == SPARK_FUNCTIONS


@pytest.mark.skipif(not os.environ.get("WRITE_SQL_CORPUS"), reason="it writes the answers anew where WRITE_SQL_CORPUS is set")
def test_write_the_answers_of_examples(session: "SparkSession") -> None:
    write_answers(EXAMPLES, [answer_of(session, function, query) for function, query in examples(session)])


@pytest.mark.skipif(not os.environ.get("WRITE_SQL_CORPUS"), reason="it writes the answers anew where WRITE_SQL_CORPUS is set")
def test_write_the_answers_of_edges(session: "SparkSession") -> None:
    write_answers(EDGES, answers_of_edges(session, edges(), aggregates()))


@pytest.mark.skipif(not os.environ.get("WRITE_SQL_CORPUS"), reason="it writes the answers anew where WRITE_SQL_CORPUS is set")
def test_write_the_answers_of_edges_of_more_functions(session: "SparkSession") -> None:
    calls = edges(scalaredges.CALLS, scalaredges.WRITTEN)
    write_answers(SCALAR_EDGES, answers_of_edges(session, calls, aggregates(scalaredges.AGGREGATES)))


def answers_of_edges(session: "SparkSession", calls: Iterable[Edge], aggregated: Iterable[tuple[str, str]]) -> Iterable[Answer]:
    """The answers to calls of rows and to aggregates, each query once; without those that Python cannot read."""
    answers: dict[str, Answer] = {}
    for edge in calls:
        found = list(answers_of_edge(session, edge))
        found += [answer_of(session, edge.function, query, runs=1) for query in edge.written()]
        answers |= {answer.query: answer for answer in found}
    answers |= {query: answer_of(session, function, query, runs=1) for function, query in aggregated}
    return [answer for answer in answers.values() if answer.error != UNREADABLE]


@pytest.mark.skipif(not os.environ.get("WRITE_SQL_CORPUS"), reason="it writes the answers anew where WRITE_SQL_CORPUS is set")
def test_write_the_answers_about_collections(session: "SparkSession") -> None:
    # Its queries are in the file itself: a new one is a line without an answer.
    asked = read_answers(COLLECTIONS)
    write_answers(COLLECTIONS, [answer_of(session, one.function, one.query, runs=2) for one in asked])


def answers_of_edge(session: "SparkSession", edge: Edge) -> Iterator[Answer]:
    """The rows that give values in one query, and one row of each error."""
    whole = answer_of(session, edge.function, edge.query(edge.rows), runs=1)
    if whole.error is None:
        yield whole
        return
    rows, errors = [], {}
    for row in edge.rows:
        answer = answer_of(session, edge.function, edge.query([row]), runs=1)
        if answer.error is None:
            rows.append(row)
        else:
            errors.setdefault(answer.error, answer)
    if rows:
        yield answer_of(session, edge.function, edge.query(rows), runs=1)
    yield from errors.values()


def examples(session: "SparkSession") -> Iterator[tuple[str, str]]:
    """Each query in the documentation of each function, once a function."""
    for (function,) in session.sql("SHOW FUNCTIONS").collect():
        lines = session.sql(f"DESCRIBE FUNCTION EXTENDED `{function}`").collect()
        for query in dict.fromkeys(_EXAMPLE.findall("\n".join(line for (line,) in lines))):
            yield function, query


def answer_of(session: "SparkSession", function: str, query: str, runs: int = 2) -> Answer:
    """What Spark says; it is asked twice, to see whether it says the same."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        frame = session.sql(query)
        types = tuple(f.dataType.simpleString() for f in frame.schema.fields)
        found = [frame.toArrow(), *(session.sql(query).toArrow() for _ in range(1, runs))]
        rows, again = plain_rows(found[0]), plain_rows(found[-1])
    except UnicodeDecodeError:
        return Answer(function, query, error=UNREADABLE)
    except (PySparkException, Py4JError) as error:
        condition = getattr(error, "getCondition", lambda: None)() or type(error).__name__
        # Values of some types cannot leave Spark.
        return Answer(function, query, types=types) if condition in _NOT_OUT else Answer(function, query, error=condition)
    types = tuple(type_name(one) for one in found[0].schema.types)
    return Answer(function, query, types=types, rows=rows if str(rows) == str(again) and not _OF_THE_MOMENT.search(query) else None)
