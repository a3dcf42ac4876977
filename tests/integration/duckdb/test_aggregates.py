"""Every aggregate of every type over rows that lie in every way: Spark's answers, or a refusal by name."""

from collections.abc import Iterator
from typing import Any

import pytest

import tablestore as ts
from tests.support.sql.aggregates import (
    CONTENTS,
    INTEGERS,
    LAYOUTS,
    ORDERED,
    alike,
    answers,
    forms,
    make_table,
    recorded,
    shown,
    statement,
    table_name,
)

# Functions that the engine does not run yet. Of all others nothing is refused.
REFUSED = {"skewness", "kurtosis", "percentile_approx", "mode", "bit_and", "bit_or", "bit_xor", "regr_count"}
# Of rows that lie in this way everything is asked for, and of those in these ways also where there is NaN.
SIMPLEST = "append, one file"
WITH_NAN = {SIMPLEST, "append, several files", "keyed, newer rows above"}


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(str(tmp_path_factory.mktemp("warehouse")), engine="duckdb") as env:
        env.execute_sql("CREATE DATABASE d")
        yield env


@pytest.fixture(scope="module", params=LAYOUTS)
def layout(request: pytest.FixtureRequest, env: ts.TableEnvironment) -> str:
    """A way in which rows lie, and a table of each content that is asked for."""
    for content in contents(request.param):
        make_table(env.catalog(), request.param, content)
    return str(request.param)


def contents(layout: str) -> list[str]:
    return [one for one in CONTENTS if layout == SIMPLEST or one == "plain" or (one == "nan" and layout in WITH_NAN)]


def test_aggregates_are_sparks_however_rows_lie(env: ts.TableEnvironment, layout: str) -> None:
    for content in contents(layout):
        for form in forms(content) if layout == SIMPLEST else ("alone",):
            check(env, form, layout, content)


@pytest.mark.slow
@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_aggregates_of_all_forms_are_sparks_however_rows_lie(
    layout: str, content: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with ts.TableEnvironment.create(str(tmp_path_factory.mktemp("w")), engine="duckdb") as env:
        env.execute_sql("CREATE DATABASE d")
        make_table(env.catalog(), layout, content)
        for form in forms(content):
            check(env, form, layout, content)


def check(env: ts.TableEnvironment, form: str, layout: str, content: str) -> None:
    wanted = {one: answer for one, answer in recorded()[content][form].items() if one.partition("(")[0] not in REFUSED}
    found = env.execute_sql(statement(form, list(wanted), table_name(layout, content))).to_arrow()
    different = {one: (got, wanted[one]) for one, got in zip(wanted, answers(found), strict=True) if not alike(got, wanted[one])}
    assert not different, (layout, content, form)


def test_a_scan_counts_what_the_engine_counts(env: ts.TableEnvironment, layout: str) -> None:
    for content in contents(layout):
        assert env.catalog().table(table_name(layout, content)).scan().count() == CONTENTS[content].num_rows


def of_python(one: str, values: list[Any]) -> Any:
    """An aggregate of values, NaN the greatest."""
    values = [value for value in values if value is not None]
    if one == "count":
        return len(values)
    if not values:
        return None
    if one == "sum":
        return sum(values)
    return {"min": min, "max": max}[one](values, key=lambda value: (value != value, value))


@pytest.mark.parametrize("content", CONTENTS)
def test_what_is_recorded_is_what_python_computes(content: str) -> None:
    rows, answered = CONTENTS[content], recorded()[content]["together"]
    for one, columns in (("count", ORDERED), ("min", ORDERED), ("max", ORDERED), ("sum", INTEGERS)):
        for column in columns:
            name, _, field = column.partition(".")
            values = rows[name].to_pylist()
            if field:
                values = [None if value is None else value[field] for value in values]
            if (answer := answered.get(f"{one}({column})")) is not None:
                assert answer == [shown(of_python(one, values))], (one, column)
