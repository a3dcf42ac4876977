"""Skewness and kurtosis of lists: Spark's digits, NULL where it has NULL, and the same of long lists."""

import math

import numpy as np
import pyarrow as pa
import pytest

from tablestore.sql.duckdb.functions import highermoments


def _of(values: list[list[float | None] | None]) -> list[tuple[float | None, float | None]]:
    lists = pa.array(values, pa.list_(pa.float64()))
    return list(zip(highermoments.skewness(lists).to_pylist(), highermoments.kurtosis(lists).to_pylist(), strict=True))


def test_digits_are_those_of_spark_in_one_part() -> None:
    far = [0.0, 1.0, -1.0, 7.0, -3.0, 2147483647.0, -2147483648.0]
    assert _of([[-10.0, -20.0, 100.0, 1000.0], [1.0, 10.0, 100.0, 10.0, 1.0], [-1000.0, -100.0, 10.0, 20.0], far]) == [
        (1.1135657469022011, -0.7014368047529609),
        (1.4581249961461293, 0.19432323191698986),
        (-1.113565746902201, -0.7014368047529627),
        (-2.426837555157183e-09, 0.5000000000000004),
    ]


def test_no_values_and_values_that_do_not_differ_have_none() -> None:
    assert _of([None, [], [None], [2.5], [2.5, None, 2.5], [0.0, -0.0]]) == [(None, None)] * 6
    (infinite,) = _of([[math.inf, -math.inf]])
    assert all(value is not None and math.isnan(value) for value in infinite)


@pytest.mark.parametrize("count", [highermoments.PART, highermoments.PART + 1, 3 * highermoments.PART + 7])
def test_long_lists_are_parted_without_loss(count: int) -> None:
    values = np.sin(np.arange(count)) ** 3 + 100
    distances = values - values.mean()
    second, third, fourth = (math.fsum(distances**power) for power in (2, 3, 4))
    ((skewness, kurtosis), *_) = _of([values.tolist(), [1.0, 2.0, 4.0]])
    assert skewness == pytest.approx(math.sqrt(count) * third / second**1.5, rel=1e-9, abs=1e-12)
    assert kurtosis == pytest.approx(count * fourth / second**2 - 3, rel=1e-9)
