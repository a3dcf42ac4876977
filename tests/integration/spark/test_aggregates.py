"""Every aggregate on Spark: over plain rows it gives what is recorded, and over managed tables of every layout the same."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

import tablestore as ts
from tests.support.sql.aggregates import (
    CONTENTS,
    LAYOUTS,
    alike,
    answers,
    forms,
    make_table,
    questions,
    record,
    recorded,
    statement,
    table_name,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def session(spark: "SparkSession") -> "Iterator[SparkSession]":
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    for content, rows in CONTENTS.items():
        spark.createDataFrame(rows).createOrReplaceTempView(content)
    yield spark
    spark.conf.set("spark.sql.session.timeZone", zone)
    for content in CONTENTS:
        spark.catalog.dropTempView(content)


def test_spark_gives_what_is_recorded(session: "SparkSession") -> None:
    known: dict[str, Any] = {form: accepted(session, form, expressions) for form, expressions in questions().items()}
    found = {
        content: {
            form: dict(zip(known[form], answers(asked(session, form, known[form], content)), strict=True))
            for form in forms(content)
        }
        for content in CONTENTS
    }
    if os.environ.get("WRITE_SQL_CORPUS"):
        record(found)
    for content in CONTENTS:
        for form in forms(content):
            assert found[content][form].keys() == recorded()[content][form].keys(), (content, form)
            check(found[content][form], recorded()[content][form], content, form)


def check(found: Mapping[str, Any], wanted: Mapping[str, Any], *where: str) -> None:
    assert not {one: (found[one], answer) for one, answer in wanted.items() if not alike(found[one], answer)}, where


def asked(session: "SparkSession", form: str, expressions: Sequence[str], table: str) -> Any:
    return session.sql(statement(form, expressions, table)).toArrow()


def accepted(session: "SparkSession", form: str, expressions: Sequence[str]) -> list[str]:
    """Those that Spark does not refuse."""
    from pyspark.errors import AnalysisException

    found = []
    for one in expressions:
        try:
            session.sql(statement(form, [one], "plain")).schema  # noqa: B018
        except AnalysisException:
            continue
        found.append(one)
    return found


@pytest.mark.parametrize("layout", LAYOUTS)
def test_managed_tables_give_it_too(session: "SparkSession", layout: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    with ts.TableEnvironment.create(str(tmp_path_factory.mktemp("w")), engine="spark", spark=session) as env:
        env.execute_sql("CREATE DATABASE d")
        for content in CONTENTS:
            make_table(env.catalog(), layout, content)
            for form in ("together", "groups"):
                known = recorded()[content][form]
                found = answers(env.execute_sql(statement(form, list(known), table_name(layout, content))).to_arrow())
                check(dict(zip(known, found, strict=True)), known, content, form)
