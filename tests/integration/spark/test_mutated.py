"""Statements with damage on Spark: no error of Spark, py4j or Arrow comes through, and after an error nothing has changed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.sql.mutated import QUERIES, STATEMENTS, prepared, run_damaged

pytestmark = pytest.mark.spark


@pytest.mark.deep
@pytest.mark.parametrize(
    ("statements", "most", "count"),
    [
        pytest.param(QUERIES, 1, 30, id="few"),
        pytest.param(STATEMENTS, 3, 500, id="all", marks=pytest.mark.slow),
        # Most of these reach Spark.
        pytest.param(QUERIES, 1, 500, id="queries", marks=pytest.mark.slow),
    ],
)
def test_damaged_statements_get_typed_errors_and_change_nothing(
    spark: Any, tmp_path: Path, statements: Sequence[str], most: int, count: int
) -> None:
    with prepared(tmp_path, spark=spark.newSession()) as env:
        assert run_damaged(env, count, 4, statements, most) > count / 2
