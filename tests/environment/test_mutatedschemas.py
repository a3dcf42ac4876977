"""Schemas and definitions that a stranger has changed: a typed error or none, and nothing happens outside of the warehouse."""

from pathlib import Path

import pytest

from tests.support.sql.mutatedschemas import STATEMENTS, Watch, run_mutated

WATCH = Watch()


@pytest.mark.deep
def test_changed_schemas_act_nowhere(tmp_path: Path) -> None:
    assert run_mutated(tmp_path, 12, 1, WATCH, engine="duckdb") > 12


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_changed_schemas_act_nowhere(tmp_path: Path, seed: int) -> None:
    count = 80
    assert count < run_mutated(tmp_path, count, seed, WATCH, engine="duckdb") < count * len(STATEMENTS)
