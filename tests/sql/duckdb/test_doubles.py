"""Functions of doubles that DuckDB has no words for, next to those of C: at the ends, near zero, and where a square overflows."""

import itertools
import math

import duckdb
import numpy as np
import pytest
from sqlglot import exp

from tablestore.sql.duckdb.functions import mathfunctions
from tablestore.sql.duckdb.functions.functionrule import from_text

_EDGES = (
    *(0.0, -0.0, 1e-300, 1e-16, -1e-16, 1e-10, 1e-5, 0.3, -0.3, 0.999, -0.999, 1.0, 2.5, -5.0, -36.5, -40.0, 50.0, 709.0, 710.0),
    *(1e100, 1e160, 1e308, 1e-160, 5e-324, math.inf, -math.inf, math.nan),
)


@pytest.mark.parametrize(
    ("template", "function", "count"),
    [(mathfunctions._LOG1P, np.log1p, 1), (mathfunctions._EXPM1, np.expm1, 1), (mathfunctions._HYPOT, np.hypot, 2)],
)
def test_a_function_of_doubles_differs_in_the_last_digit_at_most(template: str, function: np.ufunc, count: int) -> None:
    rows = list(itertools.product(_EDGES, repeat=count))
    if function is np.log1p:
        rows = [row for row in rows if not row[0] <= -1]
    columns = [[row[place] for row in rows] for place in range(count)]
    written = from_text(template, *map(exp.column, "xy"[:count])).sql("duckdb")
    parts = ", ".join(f"unnest(${place + 1}::DOUBLE[]) AS {'xy'[place]}" for place in range(count))
    with duckdb.connect() as connection:
        values = [value for (value,) in connection.execute(f"SELECT {written} FROM (SELECT {parts})", columns).fetchall()]
    with np.errstate(all="ignore"):
        expected = function(*map(np.array, columns))
    np.testing.assert_allclose(values, expected, rtol=1e-15, atol=0)
    assert (np.signbit(values) == np.signbit(expected))[~np.isnan(expected)].all()
