"""Statements with damage: every error is one of ours, and after an error nothing has changed."""

from pathlib import Path

import pytest

from tests.support.sql.mutated import prepared, run_damaged


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(("engine", "count"), [(None, 400), ("duckdb", 150)])
def test_damaged_statements_get_typed_errors_and_change_nothing(tmp_path: Path, engine: str | None, count: int) -> None:
    with prepared(tmp_path, engine=engine) as env:
        assert run_damaged(env, count, seed=1) > count / 2


@pytest.mark.slow
@pytest.mark.parametrize("engine", [None, "duckdb"])
@pytest.mark.parametrize("seed", [2, 3])
def test_many_damaged_statements_get_typed_errors_and_change_nothing(tmp_path: Path, engine: str | None, seed: int) -> None:
    with prepared(tmp_path, engine=engine) as env:
        assert run_damaged(env, 2_000, seed=seed) > 1_000
