"""Spark's functions on DuckDB: each query of a recording has Spark's answer, or is refused by name. There is no third."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tablestore as ts
from tablestore.sql.query.functions import SPARK_FUNCTIONS
from tests.support.sql.answers import EXAMPLES, judge, read_answers, share_by_function, wrong

# Nothing says of which type a column of NULLs is.
_OPEN = {"SELECT sum(col) FROM VALUES (NULL), (NULL) AS tab(col)"}


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path_factory.mktemp("warehouse"), engine="duckdb") as env:
        yield env


@pytest.mark.parametrize("recording", [EXAMPLES], ids=lambda path: path.stem)
def test_a_function_answers_as_in_spark_or_is_refused_by_name(recording: Path, env: ts.TableEnvironment) -> None:
    verdicts = [judge(answer, env) for answer in read_answers(recording)]
    sys.stdout.write("\n".join(share_by_function(verdicts)))
    assert not [str(verdict) for verdict in wrong(verdicts) if verdict.answer.query not in _OPEN]
    assert env.execute_sql("SELECT 1 AS a").to_arrow().to_pylist() == [{"a": 1}], "the session lives on"


def test_the_examples_are_of_functions_that_spark_has() -> None:
    named = {answer.function for answer in read_answers(EXAMPLES) if answer.function.replace("_", "").isalnum()}
    assert named <= SPARK_FUNCTIONS
