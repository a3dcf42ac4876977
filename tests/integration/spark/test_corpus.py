"""The corpus of statements on Spark: managed tables, pruned to what a statement uses, give the rows of plain temp views."""

import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from pyspark_tablestore.engine import open_engine

import tablestore as ts
from tablestore.environment.engine import BoundQuery, ManagedRelation, QueryEngine, Relation
from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.testing.contracts.queryengine import managed
from tablestore.types.filter.predicatetext import to_sql
from tests.support.sql.corpus import (
    EXPECTED,
    Statement,
    bind_statement,
    canonical,
    corpus_tables,
    expected,
    make_tables,
    statements,
)
from tests.support.sql.names import NAMES, ROW

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def session(spark: "SparkSession") -> "Iterator[SparkSession]":
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    for name, table in corpus_tables().items():
        spark.createDataFrame(table.rows).createOrReplaceTempView(f"`{name}`")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", str(zone))
    for name in corpus_tables():
        spark.catalog.dropTempView(name)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ts.Table]:
    return make_tables(ts.open_catalog(str(tmp_path_factory.mktemp("warehouse"))))


def test_pruned_tables_give_the_rows_of_temp_views(session: "SparkSession", tables: dict[str, ts.Table]) -> None:
    found: dict[str, Any] = {}
    differ: dict[str, Any] = {}
    for statement in statements():
        entry = rows_of_views(session, statement)
        bound = bind_statement(statement, lambda name: managed(tables[name], name=f"shop.{name}"))
        if "rows" in entry and rows_of_bound(session, bound, statement) != entry["rows"]:
            differ[str(statement)] = bound.relations
        found[str(statement)] = entry
    assert not differ
    if os.environ.get("WRITE_SQL_CORPUS"):
        write(found, tables)
    else:
        known = expected()
        assert {name: entry.get("rows") for name, entry in found.items()} == {name: known[name].get("rows") for name in found}


def test_the_engine_gives_the_rows_of_temp_views(session: "SparkSession", tables: dict[str, ts.Table]) -> None:
    known = expected()
    engine = open_engine(session)
    differ = [
        str(statement)
        for statement in statements()
        if (rows := known[str(statement)].get("rows")) is not None and rows_of_engine(engine, statement, tables) != rows
    ]
    assert not differ


def test_names_of_columns_without_an_alias(session: "SparkSession") -> None:
    session.sql(f"CREATE OR REPLACE TEMP VIEW T AS {ROW}")
    found = {}
    for expression in NAMES:
        found[expression] = session.sql(f"SELECT {expression} FROM T").columns[0]
    session.catalog.dropTempView("T")
    assert found == NAMES


def rows_of_engine(engine: QueryEngine, statement: Statement, tables: dict[str, ts.Table]) -> list[Any] | str:
    bound = bind_statement(statement, lambda name: managed(tables[name], name=f"shop.{name}"))
    try:
        return canonical(engine.query(bound).to_reader().read_all(), ordered=statement.ordered)
    except ts.TablestoreError as error:
        return str(error)


def rows_of_views(session: "SparkSession", statement: Statement) -> dict[str, Any]:
    from pyspark.errors import PySparkException

    try:
        rows = session.sql(statement.text, args=statement.parameters or None).toArrow()
    except PySparkException as error:
        return {"refused by Spark": error.getCondition()}
    return {"rows": canonical(rows, ordered=statement.ordered)}


def rows_of_bound(session: "SparkSession", query: BoundQuery, statement: Statement) -> list[Any]:
    text = query.edited(lambda relation: f"{{m{relation}}}", lambda part: part.replace("{", "{{").replace("}", "}}"))
    frames = {f"m{place}": frame_of(session, relation) for place, relation in enumerate(query.relations)}
    return canonical(session.sql(text, args=dict(query.parameters) or None, **frames).toArrow(), ordered=statement.ordered)


def frame_of(session: "SparkSession", relation: Relation) -> Any:
    """The rows of a relation as pruned as its columns and filter say: engines may read more, never less."""
    assert isinstance(relation, ManagedRelation)
    if relation.columns == ():
        return session.range(relation.table.scan(filter=relation.filter).count()).select()
    return session.createDataFrame(relation.table.scan(columns=relation.columns, filter=relation.filter).to_arrow())


def write(found: dict[str, Any], tables: dict[str, ts.Table]) -> None:
    """``expected.json`` anew, with what is read of the tables and what DuckDB refuses."""
    from tablestore_duckdb.engine import DuckDBEngine

    engine = DuckDBEngine()
    for statement in statements():
        entry = found[str(statement)]
        bound = bind_statement(statement, lambda name: managed(tables[name], name=f"shop.{name}"))
        entry["reads"] = [
            [relation.name, relation.columns, relation.filter and to_sql(relation.filter)]
            for relation in bound.relations
            if isinstance(relation, ManagedRelation)
        ]
        try:
            engine.query(bound)
        except UnsupportedError as error:
            entry["refused by DuckDB"] = str(error).partition("DuckDB does not run ")[2].partition(" as Spark does")[0]
        except InvalidInputError:
            assert "rows" not in entry, statement
    engine.close()
    lines = [f"{json.dumps(name)}: {json.dumps(entry, ensure_ascii=False)}" for name, entry in found.items()]
    EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
