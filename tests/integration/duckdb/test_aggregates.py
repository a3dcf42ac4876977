"""Every aggregate of every type over rows that lie in every way: Spark's answers, or a refusal by name."""

from collections.abc import Iterator
from pathlib import Path
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
REFUSED = {"percentile_approx", "mode", "bit_and", "bit_or", "bit_xor", "regr_count"}
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


@pytest.mark.slow_after(4)
@pytest.mark.deep
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
    different = {
        one: (got, wanted[one])
        for one, got in zip(wanted, answers(found), strict=True)
        if not alike(got, wanted[one]) and not is_rounding(one, got, wanted[one])
    }
    assert not different, (layout, content, form)


def is_rounding(one: str, got: list[str | None], wanted: list[str | None]) -> bool:
    """True if moments that are all but zero differ in what rounding leaves of them: Spark's depend on its partitions."""
    if not one.startswith(("skewness(", "kurtosis(")):
        return False
    return all(
        a == b or (a is not None and b is not None and abs(float(a) - float(b)) < 1e-14) for a, b in zip(got, wanted, strict=True)
    )


@pytest.mark.deep_after(7)
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


@pytest.mark.deep_after(3)
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


@pytest.mark.deep_after(5)
@pytest.mark.parametrize(
    ("values", "aggregate", "expected"),
    [
        (("-Infinity", "0"), "median(f)", "nan"),
        (("-Infinity", "0"), "percentile(f, 0.25)", "nan"),
        (("-Infinity", "0"), "percentile(f, 0)", "-inf"),
        (("-Infinity", "0", "1"), "percentile(f, 0.25)", "nan"),
        (("-Infinity", "0", "1"), "median(f)", "0.0"),
        (("-Infinity", "-Infinity", "3"), "median(f)", "-inf"),
        (("-Infinity", "-Infinity", "3"), "percentile(f, 0.6)", "nan"),
        (("-Infinity", "Infinity"), "median(f)", "nan"),
        (("Infinity", "0"), "percentile(f, 0.25)", "inf"),
        (("-Infinity", "0", "0"), "median(f) FILTER (WHERE f = 0)", "0.0"),
    ],
)
def test_between_minus_infinity_and_a_value_lies_nan(
    tmp_path: Path, values: tuple[str, ...], aggregate: str, expected: str
) -> None:
    with ts.TableEnvironment.create(tmp_path, engine="duckdb") as env:
        rows = ", ".join(f"('{value}')" for value in values)
        query = f"SELECT {aggregate} AS x FROM (SELECT CAST(w AS DOUBLE) AS f FROM VALUES {rows} t(w))"
        assert str(env.execute_sql(query).to_arrow()["x"][0].as_py()) == expected


def test_several_percentiles_with_minus_infinity_are_refused(tmp_path: Path) -> None:
    with ts.TableEnvironment.create(tmp_path, engine="duckdb") as env:
        query = "SELECT percentile(CAST(w AS DOUBLE), array(0.5, 0.1)) FROM VALUES ('-Infinity'), ('0') t(w)"
        with pytest.raises(ts.UnsupportedError, match="a percentile that is -Infinity"):
            env.execute_sql(query).to_arrow()
