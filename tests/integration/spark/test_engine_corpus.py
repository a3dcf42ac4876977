"""The corpus of statements through Spark's engine: managed tables give the rows that plain temp views give."""

from typing import TYPE_CHECKING, Any

import pytest

import tablestore as ts
from tablestore.testing.contracts.queryengine import managed
from tests.support.sql.corpus import Statement, bind_statement, canonical, expected, make_tables, statements

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

# A share of them where time is short.
_STEP = 16


@pytest.mark.deep
@pytest.mark.parametrize(
    "chosen",
    [pytest.param(statements()[::_STEP], id="some"), pytest.param(statements(), id="all", marks=pytest.mark.slow)],
)
def test_rows_are_those_of_temp_views(chosen: tuple[Statement, ...], spark: "SparkSession", catalog: ts.Catalog) -> None:
    from pyspark_tablestore.engine import SparkEngine

    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    engine, tables, known = SparkEngine(session), make_tables(catalog), expected()
    differ: dict[str, Any] = {}
    for statement in chosen:
        bound = bind_statement(statement, lambda name: managed(tables[name], name=f"shop.{name}"))
        try:
            found = canonical(engine.query(bound).to_reader().read_all(), ordered=statement.ordered)
        except ts.TablestoreError as error:
            found = str(error) if "_pyspark_" in str(error) else None
        if found != known[str(statement)].get("rows"):
            differ[str(statement)] = found
    assert not differ
