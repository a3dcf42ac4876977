"""Events of OpenLineage of statements that Spark runs: valid by the specification, and with the sources of each column."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tablestore as ts
from tests.telemetry.recordedevents import Recorded, names, ways

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.deep]


@pytest.fixture
def recorded(spark: "SparkSession", tmp_path: Path) -> Iterator[Recorded]:
    from pyspark_tablestore.engine import SparkEngine

    made = Recorded(tmp_path, SparkEngine(spark))
    yield made
    made.env.close()


def columns(event: dict[str, Any]) -> dict[str, set[tuple[str, str, str]]]:
    """The columns of inputs that each column of the output is from, with their ways in."""
    fields = event["outputs"][0]["facets"]["columnLineage"]["fields"]
    return {name: ways(one["inputFields"]) for name, one in fields.items()}


def chosen_by(event: dict[str, Any]) -> set[tuple[str, str, str]]:
    """The columns that say which rows there are."""
    return ways(event["outputs"][0]["facets"]["columnLineage"]["dataset"])


def test_statements_start_and_complete_with_their_columns(recorded: Recorded) -> None:
    def complete(statement: str, job: str, rows: int, text: str | None = None) -> dict[str, Any]:
        start, complete = recorded.of(lambda: recorded.run(statement))
        assert [start["eventType"], complete["eventType"]] == ["START", "COMPLETE"]
        assert start["run"]["runId"] == complete["run"]["runId"]
        assert complete["job"]["name"] == f"default.{job}"
        assert complete["job"]["facets"]["sql"]["query"] == (text or statement)
        assert complete["run"]["facets"]["processing_engine"]["name"] == "tablestore, spark"
        (output,) = complete["outputs"]
        assert output["name"] == recorded.catalog.table(names([output])[0]).location
        assert output["outputFacets"]["outputStatistics"]["rowCount"] == rows
        return complete

    event = complete("INSERT INTO t SELECT id, price * 2, item FROM s WHERE id > 0", "t.insert", 2)
    assert names(event["inputs"]) == ["default.s"]
    assert columns(event) == {
        "id": {("id", "DIRECT", "IDENTITY")},
        "price": {("price", "DIRECT", "TRANSFORMATION")},
        "item": {("item", "DIRECT", "IDENTITY")},
    }
    assert chosen_by(event) == {("id", "INDIRECT", "FILTER")}

    event = complete("CREATE TABLE u AS SELECT item, sum(price) AS total FROM s GROUP BY item", "u.create_table_as", 2)
    assert columns(event) == {"item": {("item", "DIRECT", "IDENTITY")}, "total": {("price", "DIRECT", "AGGREGATION")}}
    assert chosen_by(event) == {("item", "INDIRECT", "GROUP_BY")}

    event = complete(
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET price = s.price + 1 WHEN NOT MATCHED THEN INSERT *",
        "t.merge",
        2,
    )
    assert sorted(names(event["inputs"])) == ["default.s", "default.t"]
    assert ("price", "DIRECT", "TRANSFORMATION") in columns(event)["price"]
    assert {("id", "INDIRECT", "JOIN")} <= chosen_by(event)

    # The text of a refresh is the query that is stored.
    stored = "SELECT item, max(price) AS most FROM `tablestore`.`default`.`s` GROUP BY item"
    event = complete("CREATE MATERIALIZED TABLE m AS SELECT item, max(price) AS most FROM s GROUP BY item", "m.refresh", 2, stored)
    assert columns(event)["most"] == {("price", "DIRECT", "AGGREGATION")}


def test_a_statement_that_fails_says_why(recorded: Recorded) -> None:
    def fail() -> None:
        with pytest.raises(ts.TablestoreError):
            recorded.run("INSERT INTO t SELECT id, raise_error('no such price'), item FROM s")

    start, failed = recorded.of(fail)
    assert [start["eventType"], failed["eventType"]] == ["START", "FAIL"]
    assert "no such price" in failed["run"]["facets"]["errorMessage"]["message"]


def test_a_stream_runs_until_it_is_canceled(recorded: Recorded, tmp_path: Path) -> None:
    def stream() -> None:
        recorded.run("SET 'execution.runtime-mode' = 'streaming'")
        recorded.run(f"SET 'execution.checkpointing.dir' = '{tmp_path / 'checkpoints'}'")
        job = recorded.run("INSERT INTO t SELECT * FROM s").job
        job.cancel()
        job.wait()

    start, aborted = recorded.of(stream)
    assert [start["eventType"], aborted["eventType"]] == ["START", "ABORT"]
    assert names(aborted["inputs"]) == ["default.s"]
    assert columns(aborted)["price"] == {("price", "DIRECT", "IDENTITY")}
